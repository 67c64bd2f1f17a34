// The reader and decoder of PTX never crash, leak or hang, whatever the text; what they accept runs to an
// end.
#include "runtime/sim/sim.h"

#include <stdlib.h>
#include <string.h>

// Runs each entry on one small block, with parameters that point at a little memory.
static void run_entries(const struct sim_module *module) {
  for (size_t i = 0; i < sim_module_entry_count(module) && i < 2; i++) {
    const struct sim_entry *entry = sim_module_entry(module, i);
    struct sim_memory *memory = sim_memory_create();
    if (!memory) return;
    uint64_t address = sim_alloc(memory, 256, "a", true);
    size_t bytes = entry->parameter_bytes;
    unsigned char *parameters = calloc(bytes + 8, 1);
    if (parameters) {
      for (size_t at = 0; at + 8 <= bytes; at += 8) memcpy(parameters + at, &address, 8);
      struct sim_launch launch = {.entry = entry,
                                  .grid = {2, 1, 1},
                                  .block = {33, 1, 1},
                                  .parameters = parameters,
                                  .parameter_bytes = bytes};
      if (entry->required_block[0]) memcpy(launch.block, entry->required_block, sizeof launch.block);
      struct sim_options options = {.jobs = 1, .max_steps = 3000, .max_findings = 10};
      struct sim_report report;
      sim_launch(module, memory, &launch, &options, &report);
      sim_report_free(&report);
    }
    free(parameters);
    sim_memory_destroy(memory);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct sim_error error;
  struct sim_module *module = sim_module_parse((const char *)data, size, "fuzz", &error);
  if (module) run_entries(module);
  sim_module_destroy(module);
  return 0;
}
