// What a module says about itself, and its end.
#include "runtime/sim/call.h"

#include <stdlib.h>

// Marks what an entry reaches: functions through calls, variables through instructions.
static bool reach(const struct sim_module *module, const struct sim_function *entry, bool *functions,
                  bool *variables) {
  size_t *work = calloc(module->function_count + 1, sizeof *work), depth = 0;
  if (!work) return false;
  work[depth++] = (size_t)(entry - module->functions);
  functions[work[0]] = true;
  while (depth > 0) {
    const struct sim_function *function = &module->functions[work[--depth]];
    for (uint32_t pc = function->start; function->has_body && pc < function->end; pc++) {
      const struct sim_op *op = &module->ops[pc];
      if (op->symbol != SIM_NONE) variables[op->symbol] = true;
      if (op->kind != SIM_OP_CALL) continue;
      int32_t target = module->lists[op->target + SIM_CALL_TARGET];
      for (size_t i = 0; i < module->function_count; i++) {
        bool is_target = target < 0 ? !module->functions[i].is_entry : (size_t)target == i;
        if (!is_target || functions[i]) continue;
        functions[i] = true;
        work[depth++] = i;
      }
    }
  }
  free(work);
  return true;
}

static uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

bool sim_shared_layout(const struct sim_module *module, const struct sim_function *entry, uint64_t *offsets,
                       uint64_t *static_bytes) {
  bool *functions = calloc(module->function_count + 1, sizeof *functions);
  bool *variables = calloc(module->variable_count + 1, sizeof *variables);
  bool is_done = functions && variables && reach(module, entry, functions, variables);
  uint64_t bytes = 0, alignment = 1;
  for (size_t i = 0; is_done && i < module->variable_count; i++) {
    const struct sim_variable *variable = &module->variables[i];
    if (variable->space != SIM_SPACE_SHARED || !variables[i]) continue;
    if (variable->is_dynamic) {
      if (variable->alignment > alignment) alignment = variable->alignment;
      continue;
    }
    bytes = round_up(bytes, variable->alignment);
    if (offsets) offsets[i] = bytes;
    bytes += variable->bytes;
  }
  *static_bytes = bytes = round_up(bytes, alignment);
  for (size_t i = 0; is_done && offsets && i < module->variable_count; i++) {
    if (module->variables[i].space == SIM_SPACE_SHARED && module->variables[i].is_dynamic) offsets[i] = bytes;
  }
  free(functions);
  free(variables);
  return is_done;
}

bool sim_module_measure(struct sim_module *module) {
  for (size_t i = 0; i < module->entry_count; i++) {
    struct sim_function *function = &module->functions[module->entries[i]];
    function->entry.name = function->name;
    if (!sim_shared_layout(module, function, NULL, &function->entry.shared_bytes)) return false;
  }
  return true;
}

void sim_module_destroy(struct sim_module *module) {
  if (!module) return;
  for (size_t i = 0; i < module->variable_count; i++) {
    free(module->variables[i].name);
    free(module->variables[i].initial);
    free(module->variables[i].fixups);
  }
  for (size_t i = 0; i < module->function_count; i++) {
    struct sim_function *function = &module->functions[i];
    for (size_t k = 0; k < function->entry.parameter_count; k++)
      free((char *)(uintptr_t)function->entry_parameters[k].name);
    free(function->entry_parameters);
    free(function->name);
    free(function->registers);
    free(function->parameters);
    free(function->results);
  }
  free(module->variables);
  free(module->functions);
  free(module->entries);
  free(module->ops);
  free(module->lists);
  free(module->constants);
  free(module->locs);
  free(module->strings);
  free(module->name);
  free(module);
}

size_t sim_module_entry_count(const struct sim_module *module) {
  return module->entry_count;
}

const struct sim_entry *sim_module_entry(const struct sim_module *module, size_t index) {
  return index < module->entry_count ? &module->functions[module->entries[index]].entry : NULL;
}

const struct sim_entry *sim_module_find(const struct sim_module *module, const char *name) {
  for (size_t i = 0; i < module->entry_count; i++) {
    const struct sim_entry *entry = sim_module_entry(module, i);
    if (strcmp(entry->name, name) == 0) return entry;
  }
  return NULL;
}

int sim_module_target(const struct sim_module *module) {
  return module->target;
}

uint64_t sim_module_count(const struct sim_module *module, const char *opcode) {
  uint64_t count = 0;
  for (size_t f = 0; f < module->function_count; f++) {
    const struct sim_function *function = &module->functions[f];
    // The last instruction is the decoder's own end of the body.
    for (uint32_t pc = function->start; pc + 1 < function->end; pc++) {
      count += strcmp(sim_opcodes[module->ops[pc].opcode].name, opcode) == 0;
    }
  }
  return count;
}
