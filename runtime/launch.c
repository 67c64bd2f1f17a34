// Launches: arguments, variant, plan, workspace, and then the device.
//
// What a launch does the second time: it sorts the arguments, evaluates the plan on the stack, finds the workspace of the stream where the kernel needs
// some, and hands all to the device; with arguments of the kinds of one of the thread's last launches not even the first two. Everything else is done by the
// first launch, or by red_prepare.
#define RED_BUILDING
#include "runtime/repeat.h"
#include "runtime/workspace.h"

#include <stdio.h>
#include <string.h>

// Where a launch is to go. `has_stream` is false where only a question is asked.
struct target {
  red_stream stream;
  bool has_stream;
};

static red_error is_capturing(const struct red_device *device, const struct target *target, bool *capturing) {
  struct stream_state state = {0};
  red_error error = target->has_stream ? device->backend->stream_state((struct red_device *)(uintptr_t)device, target->stream, &state) : RED_OK;
  *capturing = state.capture != 0;
  return error;
}

static red_error error_of(enum plan_status status) {
  switch (status) {
  case PLAN_OK: return RED_OK;
  case PLAN_TYPE_MISMATCH: return RED_ERROR_TYPE;
  case PLAN_RANK: return RED_ERROR_RANK;
  case PLAN_SHAPE: return RED_ERROR_SHAPE;
  case PLAN_STRIDE: return RED_ERROR_STRIDE;
  case PLAN_NULL: return RED_ERROR_NULL_POINTER;
  case PLAN_MISALIGNED: return RED_ERROR_MISALIGNED;
  case PLAN_ALIAS: return RED_ERROR_ALIAS;
  case PLAN_OVERLAP: return RED_ERROR_OVERLAP;
  case PLAN_REQUIREMENT: return RED_ERROR_REQUIREMENT;
  case PLAN_LIMIT: return RED_ERROR_LIMIT;
  }
  return RED_ERROR_INTERNAL;
}

static red_error refuse(const struct call *call, enum plan_status status) {
  return error_set(error_of(status), "%s: %s", call->kernel->name, call->result.message);
}

// ---- Which variant

// The types of a generic kernel's parameters, from the tensors.
static red_error find_types(const struct red_kernel *kernel, const struct call *call, enum plan_type *types) {
  int32_t from[PROGRAM_MAX_TYPES]; // the tensor that a type comes from
  for (uint32_t p = 0; p < kernel->type_count; p++) from[p] = -1;
  for (uint32_t t = 0; t < kernel->plan->tensor_count; t++) {
    int p = kernel->type_of[t];
    if (p < 0) continue;
    enum plan_type type = call->tensors[t].type;
    if (from[p] < 0) {
      types[p] = type;
      from[p] = (int32_t)t;
    } else if (types[p] != type) {
      return error_set(RED_ERROR_TYPE, "%s: %s has elements of type %s, %s of type %s; both are %s", kernel->name, kernel->plan->tensors[from[p]].name,
                       plan_type_name(types[p]), kernel->plan->tensors[t].name, plan_type_name(type), kernel->types[p]);
    }
  }
  return RED_OK;
}

static red_error resolve_types(struct call *call, const struct target *target) {
  enum plan_type types[PROGRAM_MAX_TYPES];
  bool capturing;
  red_error error = find_types(call->kernel, call, types);
  if (error) return error;
  struct red_kernel *generic = call->kernel;
  if (!kernel_retype(generic, types, false, &call->kernel)) return RED_OK;
  error = is_capturing(generic->program->device, target, &capturing);
  return error ? error : kernel_retype(generic, types, !capturing, &call->kernel);
}

static bool is_aligned(const struct call *call) {
  uint64_t bits = 0;
  for (uint32_t t = 0; t < call->kernel->plan->tensor_count; t++) bits |= call->tensors[t].address;
  return bits % 16 == 0;
}

// Sets the variant of an entry that is compiled at launch; NULL where no launch takes it.
static red_error resolve_entry(struct call *call, const struct target *target, uint32_t entry) {
  struct red_kernel *kernel = call->kernel;
  bool capturing;
  enum slot_state state = SLOT_EXACT;
  bool is_own = plan_is_exact(&kernel->plan->entries[entry]);
  red_error error = is_own ? RED_OK : kernel_entry(kernel, entry, false, &state, &call->variant);
  if (error) {
    error = is_capturing(kernel->program->device, target, &capturing);
    if (!error) error = kernel_entry(kernel, entry, !capturing, &state, &call->variant);
  }
  if (error || state != SLOT_EXACT) return error;
  int64_t sizes[PLAN_MAX_SIZES];
  memcpy(sizes, call->result.sizes, kernel->plan->size_count * sizeof *sizes);
  struct fixed fixed = {sizes, is_own && is_aligned(call)};
  call->is_pinned = true;
  if (!kernel_resize(kernel, entry, &fixed, false, !is_own, &call->variant)) return RED_OK;
  error = is_capturing(kernel->program->device, target, &capturing);
  if (!error) error = kernel_resize(kernel, entry, &fixed, !capturing, !is_own, &call->variant);
  call->is_pinned = !error && call->variant;
  if (!error || !is_own || (error != RED_ERROR_CAPTURING && error != RED_ERROR_LIMIT)) return error;
  call->variant = NULL; // the schedules behind it do without: shapes that change all the time are not compiled each
  return RED_OK;
}

static void let_go(struct call *call) {
  if (call->is_pinned) kernel_unpin(call->kernel, call->variant);
  call->is_pinned = false;
  call->variant = NULL;
}

// The first entry whose `when` holds is compiled; where its own plan does not take the launch, the next one.
static red_error resolve_entries(struct call *call, const struct target *target) {
  struct plan_kernel rest = *call->kernel->plan;
  enum plan_status status = plan_evaluate(&rest, &call->input, &call->result);
  while (status == PLAN_OK) {
    uint32_t entry = (uint32_t)(call->result.entry - call->kernel->plan->entries);
    red_error error = resolve_entry(call, target, entry);
    if (error) return error;
    if (call->variant) {
      call->plan = &call->variant->plan.kernels[0];
      call->place = 0;
      status = plan_evaluate_checked(call->plan, &call->input, &call->result);
      if (status == PLAN_OK) return RED_OK;
      if (status != PLAN_LIMIT) break;
      let_go(call);
    }
    rest.entries = call->kernel->plan->entries + entry + 1;
    rest.entry_count = call->kernel->plan->entry_count - entry - 1;
    status = plan_evaluate_checked(&rest, &call->input, &call->result);
  }
  return refuse(call, status);
}

// Sorts the arguments, finds the variant and evaluates its plan. call_end follows, also after an error.
static red_error call_begin(struct call *call, const struct red_kernel *kernel, const red_argument *arguments, size_t count, const struct target *target) {
  call->variant = NULL;
  call->workspace = NULL;
  call->is_pinned = false;
  if (!kernel) return error_set(RED_ERROR_INVALID, "the kernel is NULL");
  red_error error = device_check(kernel->program->device);
  call->kernel = (struct red_kernel *)(uintptr_t)kernel; // what is compiled at launch is kept in it, under its lock
  if (!error) error = arguments_take(kernel, arguments, count, call);
  if (!error && kernel->type_count) error = resolve_types(call, target);
  if (!error && call->kernel != kernel) error = arguments_take(call->kernel, arguments, count, call);
  if (error) return error;
  if (!call->kernel->variant) return resolve_entries(call, target);
  call->variant = call->kernel->variant;
  call->plan = call->kernel->plan;
  call->place = call->kernel->place;
  enum plan_status status = plan_evaluate(call->plan, &call->input, &call->result);
  return status == PLAN_OK ? RED_OK : refuse(call, status);
}

static void call_end(struct call *call, bool was_captured) {
  if (call->is_pinned && !was_captured) kernel_unpin(call->kernel, call->variant);
}

// ---- Loading

static red_error load(struct call *call, const struct target *target) {
  bool capturing;
  call->module = variant_module(call->variant);
  if (call->module) return RED_OK;
  red_error error = is_capturing(call->variant->device, target, &capturing);
  if (error) return error;
  if (capturing)
    return error_set(RED_ERROR_CAPTURING, "%s is not loaded yet, and its stream is being captured: call red_prepare before the capture", call->kernel->name);
  return variant_load(call->variant, &call->module);
}

static red_error check_pointers(struct call *call) {
  struct red_device *device = call->variant->device;
  red_error error = RED_OK;
  for (uint32_t t = 0; t < call->plan->tensor_count && !error; t++)
    if (call->tensors[t].address) error = device->backend->check_pointer(device, call->plan->tensors[t].name, call->tensors[t].address);
  return error;
}

static red_error check_workspace(const struct red_kernel *kernel, int64_t needed, const void *workspace, size_t bytes) {
  if (bytes < (size_t)needed || !workspace)
    return error_set(RED_ERROR_WORKSPACE, "%s needs %lld bytes of workspace; %zu were given", kernel->name, (long long)needed, workspace ? bytes : 0);
  if ((uintptr_t)workspace % PLAN_WORKSPACE_ALIGNMENT)
    return error_set(RED_ERROR_WORKSPACE, "%s: the workspace at %p is not aligned to %d bytes", kernel->name, workspace, PLAN_WORKSPACE_ALIGNMENT);
  return RED_OK;
}

// ---- Launches

// The caller's workspace, or none: then the stream's.
struct given {
  bool is_given;
  void *data;
  size_t bytes;
};

static red_error find_workspace(const struct red_kernel *kernel, red_stream stream, const struct given *given, int64_t bytes, int64_t zeroed, void **data) {
  *data = given->data;
  if (!bytes) return RED_OK;
  if (given->is_given) return check_workspace(kernel, bytes, given->data, given->bytes);
  return workspace_take(kernel->program->device, kernel->name, stream, bytes, zeroed, data);
}

static red_error start(struct call *call, const struct target *target, const struct given *given) {
  struct red_device *device = call->variant->device;
  const struct plan_result *result = &call->result;
  red_error error = device->checks_pointers ? check_pointers(call) : RED_OK;
  if (!error) error = load(call, target);
  if (!error) error = find_workspace(call->kernel, target->stream, given, result->workspace, result->zeroed, &call->workspace);
  call->workspace_bytes = (size_t)result->workspace;
  return error ? error : device->backend->run(device, call, target->stream);
}

// Whether launches of the kernel are kept for those that repeat them.
static bool keeps_launches(const struct red_kernel *kernel) {
  const struct red_device *device = kernel->program->device;
  return device->backend->run_again && !device->checks_pointers;
}

// A launch that is evaluated; it is kept for `key` where that is not NULL.
static red_error launch_first(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count, const struct given *given,
                              const struct repeat_key *key) {
  struct call call;
  struct target target = {stream, true};
  bool was_captured = false;
  red_error error = call_begin(&call, kernel, arguments, count, &target);
  if (!error && call.result.launch_count) {
    error = start(&call, &target, given);
    if (!error && key && !call.is_pinned) repeat_keep(kernel, key, &call);
  }
  if (!error && call.is_pinned) error = is_capturing(call.variant->device, &target, &was_captured);
  call_end(&call, was_captured);
  return error;
}

static red_error launch(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count, const struct given *given) {
  struct repeat_key key;
  void *workspace;
  if (!kernel) return error_set(RED_ERROR_INVALID, "the kernel is NULL");
  red_error error = device_check(kernel->program->device);
  if (error) return error;
  bool has_key = keeps_launches(kernel) && repeat_make_key(arguments, count, &key);
  const struct repeat *repeat = has_key ? repeat_find(kernel, &key) : NULL;
  if (!repeat) return launch_first(kernel, stream, arguments, count, given, has_key ? &key : NULL);
  error = find_workspace(kernel, stream, given, repeat->workspace, repeat->zeroed, &workspace);
  return error ? error : kernel->program->device->backend->run_again(kernel->program->device, repeat, workspace, stream);
}

red_error red_launch(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count) {
  const struct given none = {false, NULL, 0};
  return launch(kernel, stream, arguments, count, &none);
}

red_error red_launch_with(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count, void *workspace, size_t bytes) {
  const struct given given = {true, workspace, bytes};
  return launch(kernel, stream, arguments, count, &given);
}

red_error red_prepare(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count) {
  struct call call;
  struct target target = {stream, true};
  bool capturing;
  if (!kernel) return error_set(RED_ERROR_INVALID, "the kernel is NULL");
  red_error error = device_check(kernel->program->device);
  if (!error) error = is_capturing(kernel->program->device, &target, &capturing);
  if (error) return error;
  if (capturing) return error_set(RED_ERROR_CAPTURING, "%s: red_prepare comes before the capture, not into it", kernel->name);
  error = call_begin(&call, kernel, arguments, count, &target);
  if (!error) error = check_pointers(&call);
  if (!error) error = load(&call, &target);
  if (!error && call.result.workspace) error = workspace_prepare(kernel->program->device, stream, call.result.workspace, call.result.zeroed);
  call_end(&call, false);
  return error;
}

// ---- Questions

red_error red_workspace_size(const red_kernel *kernel, const red_argument *arguments, size_t count, size_t *bytes) {
  red_choice choice;
  if (!bytes) return error_set(RED_ERROR_INVALID, "red_workspace_size: the place for the size is NULL");
  *bytes = 0;
  red_error error = red_choose(kernel, arguments, count, &choice);
  if (!error) *bytes = choice.workspace;
  return error;
}

static void describe(const struct call *call, red_choice *choice) {
  const struct plan_result *result = &call->result;
  choice->schedule = result->entry->schedule;
  choice->entry = result->entry->name;
  choice->launches = (int)result->launch_count;
  choice->workspace = (size_t)result->workspace;
  snprintf(choice->notes, sizeof choice->notes, "%s", result->notes);
  if (!result->launch_count) return;
  const struct plan_launch_value *first = &result->launches[0];
  memcpy(choice->grid, first->grid, sizeof choice->grid);
  memcpy(choice->block, first->launch->block, sizeof choice->block);
  choice->shared = first->shared;
}

red_error red_choose(const red_kernel *kernel, const red_argument *arguments, size_t count, red_choice *choice) {
  struct call call;
  struct target target = {NULL, false};
  if (!choice) return error_set(RED_ERROR_INVALID, "red_choose: the place for the choice is NULL");
  *choice = (red_choice){0};
  red_error error = call_begin(&call, kernel, arguments, count, &target);
  if (!error) describe(&call, choice);
  call_end(&call, false);
  return error;
}
