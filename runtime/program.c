// Programs: making them from variants, finding kernels, saying what a kernel takes.
#define RED_BUILDING
#include "runtime/program.h"

#include "runtime/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Making

struct red_program *program_create(struct red_device *device, uint32_t kernel_count) {
  struct red_program *program = calloc(1, sizeof *program);
  if (!program) return NULL;
  program->device = device;
  plan_init(&program->memory);
  program->kernels = calloc(kernel_count + 1, sizeof *program->kernels);
  if (program->kernels) return program;
  free(program);
  return NULL;
}

void kernel_init(struct red_kernel *kernel, struct red_program *program, const char *name) {
  static _Atomic uint64_t last;
  *kernel = (struct red_kernel){.serial = atomic_fetch_add(&last, 1) + 1, .program = program, .name = name};
  pthread_mutex_init(&kernel->lock, NULL);
}

static const char *shape_text(struct plan *memory, const struct plan_kernel *kernel, const struct plan_tensor *tensor) {
  const char *text = "";
  for (uint32_t d = 0; d < tensor->rank && text; d++) {
    const char *extent = describe_expr(memory, kernel, &tensor->dims[d]);
    char *joined = extent ? plan_alloc(memory, strlen(text) + strlen(extent) + 3) : NULL;
    if (joined) sprintf(joined, "%s%s%s", text, d ? ", " : "", extent);
    text = joined;
  }
  return text;
}

red_error kernel_finish(struct red_kernel *kernel) {
  const struct plan_kernel *plan = kernel->plan;
  struct plan *memory = &kernel->program->memory;
  if (plan->tensor_count > PROGRAM_MAX_TENSORS || plan->scalar_count > PROGRAM_MAX_SCALARS)
    return error_set(RED_ERROR_UNSUPPORTED, "kernel %s has %" PRIu32 " tensors and %" PRIu32 " scalars; a launch takes at most %d of each", kernel->name,
                     plan->tensor_count, plan->scalar_count, PROGRAM_MAX_TENSORS);
  const char **shapes = plan_alloc(memory, (plan->tensor_count + 1) * sizeof *shapes);
  if (!shapes) return error_memory();
  for (uint32_t t = 0; t < plan->tensor_count; t++)
    if (!(shapes[t] = shape_text(memory, plan, &plan->tensors[t]))) return error_memory();
  kernel->shapes = shapes;
  kernel->address_step = plan_address_step(plan);
  if (!kernel->variant && !kernel->type_count) kernel->slots = calloc(plan->entry_count + 1, sizeof *kernel->slots);
  return kernel->variant || kernel->type_count || kernel->slots ? RED_OK : error_memory();
}

red_error program_of_variant(struct variant *variant, const struct jit_ops *ops, void *jit, uint32_t more, struct red_program **out) {
  struct red_program *program = program_create(variant->device, variant->plan.kernel_count + more);
  *out = NULL;
  if (!program) {
    variant_release(variant);
    return error_memory();
  }
  red_error error = RED_OK;
  program->variant = variant;
  for (uint32_t k = 0; k < variant->plan.kernel_count && !error; k++) {
    struct red_kernel *kernel = &program->kernels[program->kernel_count++];
    kernel_init(kernel, program, variant->plan.kernels[k].name);
    kernel->plan = &variant->plan.kernels[k];
    kernel->variant = ops ? NULL : variant;
    kernel->place = k;
    error = kernel_finish(kernel);
  }
  if (error) {
    red_release(program);
    return error;
  }
  program->ops = ops;
  program->jit = jit;
  *out = program;
  return RED_OK;
}

static void kernel_destroy(struct red_kernel *kernel) {
  for (uint32_t e = 0; kernel->slots && e < kernel->plan->entry_count; e++) variant_release(kernel->slots[e].variant);
  free(kernel->slots);
  for (uint32_t i = 0; i < kernel->instance_count; i++) {
    variant_release(kernel->instances[i].variant);
    free(kernel->instances[i].sizes);
  }
  free(kernel->instances);
  struct typed *typed = atomic_load(&kernel->typed);
  while (typed) { // kernels of other kinds: this goes no deeper
    struct typed *next = typed->next;
    kernel_destroy(&typed->kernel);
    free(typed);
    typed = next;
  }
  pthread_mutex_destroy(&kernel->lock);
}

void red_release(red_program *program) {
  if (!program || device_check(program->device)) return;
  for (uint32_t k = 0; k < program->kernel_count; k++) kernel_destroy(&program->kernels[k]);
  variant_release(program->variant);
  variant_release(atomic_load(&program->whole));
  if (program->ops) program->ops->destroy(program->jit);
  plan_destroy(&program->memory);
  free(program->kernels);
  free(program->log);
  free(program);
}

// ---- Loading

struct loading {
  const char *ptx;
  size_t bytes;
};

static red_error build_loaded(void *state, struct built *built) {
  const struct loading *loading = state;
  built->ptx = malloc(loading->bytes + 1);
  if (!built->ptx) return error_memory();
  memcpy(built->ptx, loading->ptx, loading->bytes);
  built->ptx[loading->bytes] = 0;
  built->ptx_bytes = loading->bytes;
  return RED_OK;
}

red_error red_load(red_device *device, const char *name, const char *ptx, size_t bytes, red_program **program) {
  if (program) *program = NULL;
  red_error error = device_check(device);
  if (error) return error;
  if (!ptx || !program) return error_set(RED_ERROR_INVALID, "red_load: %s is NULL", ptx ? "the place for the program" : "the text");
  struct loading loading = {ptx, bytes};
  struct variant *variant;
  error = variant_get(device, ptx, bytes, name ? name : "PTX", build_loaded, &loading, &variant);
  if (error) return error;
  bool is_sliced = slice_is_possible(variant);
  return program_of_variant(variant, is_sliced ? &slice_ops : NULL, variant, 0, program);
}

// ---- Kernels compiled at launch

red_error kernel_retype(struct red_kernel *kernel, const enum plan_type *types, bool may_compile, struct red_kernel **out) {
  size_t bytes = kernel->type_count * sizeof *types;
  for (struct typed *t = atomic_load_explicit(&kernel->typed, memory_order_acquire); t; t = t->next)
    if (memcmp(t->types, types, bytes) == 0) {
      *out = &t->kernel;
      return RED_OK;
    }
  if (!may_compile)
    return error_set(RED_ERROR_CAPTURING, "%s is not compiled for these types, and the stream is being captured: call red_prepare before", kernel->name);
  red_error error = RED_OK;
  pthread_mutex_lock(&kernel->lock);
  struct typed *typed = atomic_load(&kernel->typed);
  while (typed && memcmp(typed->types, types, bytes) != 0) typed = typed->next;
  if (!typed && !(typed = calloc(1, sizeof *typed))) error = error_memory();
  if (!error && !typed->kernel.plan) {
    memcpy(typed->types, types, bytes);
    kernel_init(&typed->kernel, kernel->program, kernel->name);
    error = kernel->program->ops->type(kernel->program->jit, kernel, types, &typed->kernel);
    if (!error) {
      typed->next = atomic_load(&kernel->typed);
      atomic_store_explicit(&kernel->typed, typed, memory_order_release);
    } else {
      kernel_destroy(&typed->kernel);
      free(typed);
    }
  }
  pthread_mutex_unlock(&kernel->lock);
  if (!error) *out = &typed->kernel;
  return error;
}

red_error kernel_entry(struct red_kernel *kernel, uint32_t entry, bool may_compile, enum slot_state *state, struct variant **variant) {
  struct slot *slot = &kernel->slots[entry];
  red_error error = RED_OK;
  *state = (enum slot_state)atomic_load_explicit(&slot->state, memory_order_acquire);
  if (*state == SLOT_NEW) {
    if (!may_compile)
      return error_set(RED_ERROR_CAPTURING, "%s is not compiled yet, and its stream is being captured: call red_prepare before the capture", kernel->name);
    struct variant *built = NULL;
    error = kernel->program->ops->entry(kernel->program->jit, kernel, entry, NULL, state, &built);
    if (error) return error;
    pthread_mutex_lock(&kernel->lock);
    if (atomic_load(&slot->state) == SLOT_NEW) {
      slot->variant = built;
      built = NULL;
      atomic_store_explicit(&slot->state, *state, memory_order_release);
    }
    pthread_mutex_unlock(&kernel->lock);
    variant_release(built); // another thread was faster, with the same
  }
  *variant = slot->variant;
  return RED_OK;
}

static struct instance *find_instance(struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed) {
  for (uint32_t i = 0; i < kernel->instance_count; i++) {
    struct instance *instance = &kernel->instances[i];
    if (instance->entry == entry && instance->is_aligned == fixed->is_aligned &&
        memcmp(instance->sizes, fixed->sizes, kernel->plan->size_count * sizeof *fixed->sizes) == 0)
      return instance;
  }
  return NULL;
}

// A place for one more: the one not used for longest goes, where one may. NULL: there is none.
static struct instance *make_room(struct red_kernel *kernel, bool may_replace) {
  if (kernel->instance_count < KERNEL_MAX_INSTANCES) return &kernel->instances[kernel->instance_count];
  if (!may_replace) return NULL;
  struct instance *oldest = NULL;
  for (uint32_t i = 0; i < kernel->instance_count; i++)
    if (!kernel->instances[i].pins && (!oldest || kernel->instances[i].used < oldest->used)) oldest = &kernel->instances[i];
  return oldest;
}

static red_error add_instance(struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed, bool may_replace, struct instance **out) {
  if (!kernel->instances && !(kernel->instances = calloc(KERNEL_MAX_INSTANCES, sizeof *kernel->instances))) return error_memory();
  struct instance *instance = make_room(kernel, may_replace);
  struct variant *variant;
  if (!instance)
    return error_set(RED_ERROR_LIMIT, "%s is in use with %d different sizes at once; its schedule compiles each on its own", kernel->name,
                     KERNEL_MAX_INSTANCES);
  size_t bytes = kernel->plan->size_count * sizeof *fixed->sizes;
  int64_t *copy = malloc(bytes + 1);
  if (!copy) return error_memory();
  memcpy(copy, fixed->sizes, bytes);
  enum slot_state state;
  red_error error = kernel->program->ops->entry(kernel->program->jit, kernel, entry, fixed, &state, &variant);
  if (error) {
    free(copy);
    return error;
  }
  if (instance == &kernel->instances[kernel->instance_count]) {
    kernel->instance_count++;
  } else {
    variant_release(instance->variant);
    free(instance->sizes);
  }
  *instance = (struct instance){.variant = variant, .entry = entry, .sizes = copy, .is_aligned = fixed->is_aligned};
  *out = instance;
  return RED_OK;
}

red_error kernel_resize(struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed, bool may_compile, bool may_replace, struct variant **variant) {
  red_error error = RED_OK;
  pthread_mutex_lock(&kernel->lock);
  struct instance *instance = find_instance(kernel, entry, fixed);
  if (!instance && !may_compile)
    error = error_set(RED_ERROR_CAPTURING, "%s is not compiled for these sizes, and the stream is being captured: call red_prepare before", kernel->name);
  else if (!instance)
    error = add_instance(kernel, entry, fixed, may_replace, &instance);
  if (!error) {
    instance->used = ++kernel->clock;
    instance->pins++;
    *variant = instance->variant;
  }
  pthread_mutex_unlock(&kernel->lock);
  return error;
}

void kernel_unpin(struct red_kernel *kernel, const struct variant *variant) {
  pthread_mutex_lock(&kernel->lock);
  for (uint32_t i = 0; i < kernel->instance_count; i++)
    if (kernel->instances[i].variant == variant) kernel->instances[i].pins--;
  pthread_mutex_unlock(&kernel->lock);
}

// ---- Finding

static red_error check_program(const struct red_program *program, const void *place) {
  if (!program) return error_set(RED_ERROR_INVALID, "the program is NULL");
  if (!place) return error_set(RED_ERROR_INVALID, "the place for the result is NULL");
  return device_check(program->device);
}

red_error red_find(const red_program *program, const char *name, const red_kernel **out) {
  char names[1024] = "";
  if (out) *out = NULL;
  red_error error = check_program(program, out);
  if (error) return error;
  for (uint32_t k = 0; k < program->kernel_count; k++) {
    const struct red_kernel *kernel = &program->kernels[k];
    if (name ? strcmp(kernel->name, name) == 0 : program->kernel_count == 1) {
      *out = kernel;
      return RED_OK;
    }
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "", kernel->name);
  }
  if (!name) return error_set(RED_ERROR_NO_KERNEL, "say which kernel is meant; there are %s", names);
  return error_set(RED_ERROR_NO_KERNEL, "there is no kernel %s; there are %s", name, names);
}

size_t red_kernel_count(const red_program *program) {
  return program ? program->kernel_count : 0;
}

const red_kernel *red_kernel_at(const red_program *program, size_t index) {
  return program && index < program->kernel_count ? &program->kernels[index] : NULL;
}

const char *red_log(const red_program *program) {
  if (!program) return "";
  if (program->log) return program->log;
  return program->variant && program->variant->log ? program->variant->log : "";
}

const char *red_ptx(const red_program *program) {
  if (!program || device_check(program->device)) return NULL;
  if (!program->ops || !program->ops->whole) return program->variant ? program->variant->ptx : NULL;
  struct red_program *changed = (struct red_program *)(uintptr_t)program;
  struct variant *whole = atomic_load(&changed->whole), *none = NULL;
  if (whole) return whole->ptx;
  whole = program->ops->whole(program->jit);
  if (!whole) return NULL;
  if (!atomic_compare_exchange_strong(&changed->whole, &none, whole)) {
    variant_release(whole);
    whole = none;
  }
  return whole->ptx;
}

// ---- What a kernel takes

// Whether the launch decides the type of a parameter, by its place among tensors and, behind them, scalars.
static bool is_generic(const struct red_kernel *kernel, size_t place) {
  return kernel->type_count && kernel->type_of[place] >= 0;
}

static red_error check_kernel(const struct red_kernel *kernel, const void *place) {
  if (!kernel) return error_set(RED_ERROR_INVALID, "the kernel is NULL");
  return check_program(kernel->program, place);
}

static red_error check_index(const struct red_kernel *kernel, const char *what, size_t index, size_t count) {
  if (index < count) return RED_OK;
  return error_set(RED_ERROR_INVALID, "%s has %zu %ss; there is no number %zu", kernel->name, count, what, index);
}

static bool is_given(const struct plan_size *size) {
  return !size->is_constant && !size->inferred.count;
}

static size_t parameter_count(const struct plan_kernel *plan) {
  size_t count = plan->tensor_count + plan->scalar_count;
  for (uint32_t i = 0; i < plan->size_count; i++) count += is_given(&plan->sizes[i]);
  return count;
}

red_error red_describe(const red_kernel *kernel, red_kernel_info *info) {
  red_error error = check_kernel(kernel, info);
  if (error) return error;
  info->name = kernel->name;
  info->parameter_count = parameter_count(kernel->plan);
  info->requirement_count = kernel->plan->requirement_count;
  info->schedule_count = kernel->plan->entry_count;
  return RED_OK;
}

red_error red_describe_parameter(const red_kernel *kernel, size_t index, red_parameter *parameter) {
  red_error error = check_kernel(kernel, parameter);
  if (error) return error;
  const struct plan_kernel *plan = kernel->plan;
  error = check_index(kernel, "parameter", index, parameter_count(plan));
  if (error) return error;
  *parameter = (red_parameter){.shape = "", .kind = RED_SIZE, .type = RED_I64};
  if (index < plan->tensor_count) {
    const struct plan_tensor *tensor = &plan->tensors[index];
    parameter->name = tensor->name;
    parameter->kind = tensor->is_output ? RED_OUTPUT : RED_INPUT;
    parameter->type = is_generic(kernel, index) ? RED_TYPE_COUNT : (red_type)tensor->type;
    parameter->rank = (int)tensor->rank;
    parameter->is_strided = tensor->is_strided;
    parameter->shape = kernel->shapes[index];
    return RED_OK;
  }
  index -= plan->tensor_count;
  if (index < plan->scalar_count) {
    parameter->name = plan->scalars[index].name;
    parameter->kind = RED_SCALAR;
    parameter->type = is_generic(kernel, plan->tensor_count + index) ? RED_TYPE_COUNT : (red_type)plan->scalars[index].type;
    return RED_OK;
  }
  index -= plan->scalar_count;
  for (uint32_t i = 0; i < plan->size_count; i++)
    if (is_given(&plan->sizes[i]) && index-- == 0) parameter->name = plan->sizes[i].name;
  return RED_OK;
}

red_error red_describe_requirement(const red_kernel *kernel, size_t index, const char **text) {
  red_error error = check_kernel(kernel, text);
  if (!error) error = check_index(kernel, "requirement", index, kernel->plan->requirement_count);
  if (!error) *text = kernel->plan->requirements[index].message;
  return error;
}

red_error red_describe_schedule(const red_kernel *kernel, size_t index, const char **schedule, const char **entry) {
  red_error error = check_kernel(kernel, kernel);
  if (!error) error = check_index(kernel, "schedule", index, kernel->plan->entry_count);
  if (error) return error;
  if (schedule) *schedule = kernel->plan->entries[index].schedule;
  if (entry) *entry = kernel->plan->entries[index].name;
  return RED_OK;
}

// ---- Types

const char *red_type_name(red_type type) {
  return (unsigned)type < RED_TYPE_COUNT ? plan_type_name((enum plan_type)type) : "?";
}

size_t red_type_bytes(red_type type) {
  return (unsigned)type < RED_TYPE_COUNT ? plan_type_bytes((enum plan_type)type) : 0;
}

#define X(name, spelling, bytes) _Static_assert((int)RED_##name == (int)PLAN_##name, "types of red.h and of plans");
RED_TYPES(X)
#undef X
