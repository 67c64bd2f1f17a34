// The simulator as a device. Device memory is host memory: a launch maps what its tensors span into a memory of its own, so that launches of different
// threads do not meet, and an access outside a tensor is found.
#include "runtime/arguments.h"
#include "runtime/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, MULTIPROCESSORS = 132, DEFAULT_ARCH = 90, FINDING_BYTES = 1024 };

static const struct {
  int arch;
  int64_t shared; // bytes that a block may have
} archs[] = {{75, 65536}, {80, 166912}, {86, 101376}, {87, 166912}, {89, 101376}, {90, 232448}, {100, 232448}, {103, 232448}, {120, 101376}};

static void sim_close(struct red_device *device) {
  (void)device;
}

static red_error sim_device_alloc(struct red_device *device, size_t bytes, void **pointer) {
  if (bytes > SIZE_MAX - ALIGNMENT) return error_memory();
  *pointer = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return *pointer ? RED_OK : error_set(RED_ERROR_MEMORY, "%s has no room for %zu bytes", device->name, bytes);
}

static red_error sim_device_free(struct red_device *device, void *pointer) {
  (void)device;
  free(pointer);
  return RED_OK;
}

static red_error sim_copy(struct red_device *device, void *to, const void *from, size_t bytes) {
  (void)device;
  memmove(to, from, bytes);
  return RED_OK;
}

static red_error sim_zero(struct red_device *device, red_stream stream, void *pointer, size_t bytes) {
  (void)device, (void)stream;
  memset(pointer, 0, bytes);
  return RED_OK;
}

static red_error sim_stream_create(struct red_device *device, red_stream *stream) {
  (void)device;
  *stream = malloc(1);
  return *stream ? RED_OK : error_memory();
}

static red_error sim_stream_destroy(struct red_device *device, red_stream stream) {
  (void)device;
  free(stream);
  return RED_OK;
}

static red_error sim_synchronize(struct red_device *device, red_stream stream) {
  (void)device, (void)stream;
  return RED_OK;
}

// A launch has ended when it returns, so that threads, not streams, need workspace of their own.
static red_error sim_stream_state(struct red_device *device, red_stream stream, struct stream_state *state) {
  static _Thread_local char thread;
  (void)device, (void)stream;
  *state = (struct stream_state){.id = (uint64_t)(uintptr_t)&thread, .handle = (uint64_t)(uintptr_t)&thread};
  return RED_OK;
}

static red_error sim_check_pointer(struct red_device *device, const char *name, uint64_t address) {
  (void)device, (void)name, (void)address;
  return RED_OK;
}

// ---- Loading

static void sim_unload(struct red_device *device, struct module *module) {
  (void)device;
  sim_module_destroy(module->handle);
  free(module->functions);
  free(module);
}

// The functions of a variant in their order.
static red_error find_functions(const struct variant *variant, struct module *module) {
  const struct plan *plan = &variant->plan;
  uint32_t number = 0;
  for (uint32_t k = 0; k < plan->kernel_count; k++)
    for (uint32_t e = 0; e < plan->kernels[k].entry_count; e++)
      for (uint32_t l = 0; l < plan->kernels[k].entries[e].launch_count; l++) {
        const struct plan_launch *launch = &plan->kernels[k].entries[e].launches[l];
        const struct sim_entry *entry = sim_module_find(module->handle, launch->function);
        if (!entry || entry->parameter_count != launch->argument_count)
          return error_set(RED_ERROR_PLAN, "%s: the PTX has no entry %s with %" PRIu32 " parameters", variant->name, launch->function, launch->argument_count);
        for (uint32_t a = 0; a < launch->argument_count; a++)
          if (entry->parameters[a].size != launch->arguments[a].bytes)
            return error_set(RED_ERROR_PLAN, "%s: parameter %" PRIu32 " of %s has %zu bytes, the plan passes %" PRIu32, variant->name, a, entry->name,
                             entry->parameters[a].size, launch->arguments[a].bytes);
        module->functions[number++] = (void *)(uintptr_t)entry;
      }
  return RED_OK;
}

static red_error sim_load(struct red_device *device, const struct variant *variant, struct module **out) {
  struct sim_error why;
  struct module *module = calloc(1, sizeof *module);
  if (module) module->functions = calloc(variant->function_count + 1, sizeof *module->functions);
  if (!module || !module->functions) {
    free(module);
    return error_memory();
  }
  red_error error = RED_OK;
  module->handle = sim_module_parse(variant->ptx, variant->ptx_bytes, variant->name, &why);
  if (!module->handle)
    error = error_set(RED_ERROR_PLAN, "%s:%d:%d: the simulator refuses this PTX: %s", variant->name, why.line, why.column, why.message);
  if (!error) error = find_functions(variant, module);
  if (error)
    sim_unload(device, module);
  else
    *out = module;
  return error;
}

// ---- Launches

static red_error map(struct sim_memory *memory, uint64_t address, int64_t low, int64_t high, const char *name, uint64_t *mapped) {
  void *start = (void *)(uintptr_t)(address + (uint64_t)low);
  *mapped = sim_map(memory, start, (uint64_t)(high - low), name, true);
  if (!*mapped) return error_set(RED_ERROR_MEMORY, "%s: the simulator has no room for %" PRId64 " bytes", name, high - low);
  *mapped -= (uint64_t)low;
  return RED_OK;
}

// Moves the call to the simulator's addresses, which are as aligned as the host's.
static red_error map_all(struct call *call, struct sim_memory *memory) {
  int64_t low, high;
  for (uint32_t t = 0; t < call->plan->tensor_count; t++) {
    struct plan_tensor_value *tensor = &call->tensors[t];
    if (!arguments_span(tensor, &low, &high)) continue;
    red_error error = map(memory, tensor->address, low, high, call->plan->tensors[t].name, &tensor->address);
    if (error) return error;
  }
  if (plan_evaluate(call->plan, &call->input, &call->result) != PLAN_OK)
    return error_set(RED_ERROR_INTERNAL, "%s: at the simulator's addresses: %s", call->kernel->name, call->result.message);
  if (!call->result.workspace) return RED_OK;
  uint64_t workspace;
  red_error error = map(memory, (uint64_t)(uintptr_t)call->workspace, 0, (int64_t)call->workspace_bytes, "workspace", &workspace);
  if (error) return error;
  sim_mark(memory, workspace + (uint64_t)call->result.zeroed, call->workspace_bytes - (uint64_t)call->result.zeroed, false);
  plan_place_workspace(&call->result, workspace);
  return RED_OK;
}

static red_error explain(const struct call *call, enum sim_result result, const struct sim_report *report) {
  char line[FINDING_BYTES] = "";
  if (result == SIM_OK) return RED_OK;
  if (result == SIM_REFUSED) return error_set(RED_ERROR_INTERNAL, "%s: the simulator refuses the launch: %s", call->kernel->name, report->error);
  if (report->finding_count) sim_finding_print(&report->findings[0], line, sizeof line);
  return error_set(RED_ERROR_FAULT, "%s: the simulator found %" PRIu64 " fault%s: %s", call->kernel->name, report->finding_total,
                   report->finding_total == 1 ? "" : "s", line);
}

static red_error run_one(const struct call *call, struct sim_memory *memory, const struct plan_launch_value *value) {
  uint32_t number = variant_function(call->variant, call->place, call->result.entry, value->launch);
  const struct sim_entry *entry = call->module->functions[number];
  uint64_t blob[2 * PLAN_MAX_ARGUMENTS];
  for (uint32_t a = 0; a < value->launch->argument_count; a++)
    memcpy((char *)blob + entry->parameters[a].offset, &value->arguments[a], entry->parameters[a].size);
  struct sim_launch launch = {.entry = entry, .dynamic_shared = value->shared, .parameters = blob, .parameter_bytes = entry->parameter_bytes};
  memcpy(launch.grid, value->grid, sizeof launch.grid);
  memcpy(launch.block, value->launch->block, sizeof launch.block);
  const struct red_device *device = call->variant->device;
  const char *seed = getenv("RED_SIM_SEED");
  struct sim_options options = {.seed = seed ? strtoull(seed, NULL, 0) : 0,
                                .sm_count = (uint32_t)device->info.multiprocessors,
                                .arch = (uint32_t)device->info.arch};
  struct sim_report report;
  enum sim_result result = sim_launch(call->module->handle, memory, &launch, &options, &report);
  red_error error = explain(call, result, &report);
  sim_report_free(&report);
  return error;
}

static red_error sim_run(struct red_device *device, struct call *call, red_stream stream) {
  (void)device, (void)stream;
  struct sim_memory *memory = sim_memory_create();
  if (!memory) return error_memory();
  red_error error = map_all(call, memory);
  for (uint32_t l = 0; l < call->result.launch_count && !error; l++) error = run_one(call, memory, &call->result.launches[l]);
  sim_memory_destroy(memory);
  return error;
}

static const struct backend backend = {
    .close = sim_close,
    .alloc = sim_device_alloc,
    .free = sim_device_free,
    .copy_in = sim_copy,
    .copy_out = sim_copy,
    .zero = sim_zero,
    .stream_create = sim_stream_create,
    .stream_destroy = sim_stream_destroy,
    .synchronize = sim_synchronize,
    .stream_state = sim_stream_state,
    .load = sim_load,
    .unload = sim_unload,
    .check_pointer = sim_check_pointer,
    .run = sim_run,
};

red_error device_sim_open(struct red_device *device, const char *name) {
  int arch = DEFAULT_ARCH;
  if (name) {
    const char *digits = strncmp(name, "sm_", 3) == 0 ? name + 3 : "";
    size_t length = strspn(digits, "0123456789");
    if (!length || length > 4 || *digits == '0' || digits[length])
      return error_set(RED_ERROR_INVALID, "\"sim:%.32s\" names no architecture; an example is sim:sm_80", name);
    arch = atoi(digits);
  }
  for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
    if (archs[i].arch != arch) continue;
    snprintf(device->name, sizeof device->name, name ? "sim:sm_%d" : "sim", arch);
    snprintf(device->model, sizeof device->model, "simulator");
    device->backend = &backend;
    device->info = (red_device_info){.arch = arch, .multiprocessors = MULTIPROCESSORS, .shared = archs[i].shared, .ordinal = -1};
    return RED_OK;
  }
  return error_set(RED_ERROR_INVALID, "the simulator does not know sm_%d", arch);
}
