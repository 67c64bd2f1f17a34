#include "compiler/run_sim.h"

#include "compiler/run_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct range nowhere;

bool simulation_begin(struct simulation *s, struct compilation *c, const char *ptx, size_t length,
                      const char *name, const struct run_options *options) {
  struct sim_error error;
  *s = (struct simulation){
      .c = c, .options = {.seed = options->seed, .jobs = options->jobs}, .stats = options->stats};
  s->module = sim_module_parse(ptx, length, name, &error);
  if (!s->module) {
    diag_error(&c->diag, ERROR_BACKEND, nowhere, "%s:%d:%d: the simulator refuses this PTX: %s", name,
               error.line, error.column, error.message);
    return false;
  }
  s->memory = sim_memory_create();
  if (!s->memory) diag_error(&c->diag, ERROR_FILE, nowhere, "there is no memory for the simulator");
  return s->memory != NULL;
}

void simulation_end(struct simulation *s) {
  sim_memory_destroy(s->memory);
  sim_module_destroy(s->module);
  text_free(&s->printed);
}

struct gap_marks {
  struct simulation *simulation;
  uint64_t start;
};
static void mark_gap(int64_t offset, int64_t bytes, void *state) {
  const struct gap_marks *marks = state;
  sim_mark(marks->simulation->memory, marks->start + (uint64_t)offset, (uint64_t)bytes, false);
}

uint64_t simulation_map(struct simulation *s, const struct buffer *buffer, bool is_initialised) {
  uint64_t start = sim_map(s->memory, buffer->start, (uint64_t)buffer->bytes, buffer->name, is_initialised);
  if (!start) {
    diag_error(&s->c->diag, ERROR_FILE, nowhere, "%s: the simulator has no room for %" PRId64 " bytes",
               buffer->name, buffer->bytes);
    return 0;
  }
  struct gap_marks marks = {s, start};
  if (is_initialised) buffer_visit_gaps(buffer, mark_gap, &marks);
  return start + (uint64_t)(buffer->offset * (int64_t)type_bytes(buffer->type));
}

static void print_findings(const struct sim_report *report) {
  char line[1024];
  for (size_t i = 0; i < report->finding_count; i++) {
    sim_finding_print(&report->findings[i], line, sizeof line);
    fprintf(stderr, "%s\n", line);
  }
}

// Statistics come as a stream.
static void keep_stats(struct simulation *s, const struct sim_stats *stats) {
  char *data = NULL;
  size_t length = 0;
  FILE *stream = s->stats == STATS_NONE ? NULL : open_memstream(&data, &length);
  if (!stream) return;
  if (s->stats == STATS_JSON)
    sim_stats_print_json(stats, stream);
  else
    sim_stats_print(stats, stream);
  fclose(stream);
  text_append(&s->printed, data, length);
  if (length && data[length - 1] != '\n') text_puts(&s->printed, "\n");
  free(data);
}

static void add_counts(struct simulation_counts *counts, const struct sim_stats *stats) {
  counts->instructions += stats->warp_instructions;
  counts->sectors += stats->global_sectors_loaded + stats->global_sectors_stored;
  counts->bytes += stats->global_bytes_loaded + stats->global_bytes_stored;
  counts->accesses += stats->global_loads + stats->global_stores;
  counts->shared_passes += stats->shared_wavefronts;
  counts->shared_conflicts += stats->shared_conflicts;
  counts->barriers += stats->barriers;
  counts->shuffles += stats->shuffles;
  counts->atomics += stats->atomics;
  counts->blocks += stats->blocks;
}

bool simulation_launch(struct simulation *s, const struct sim_launch *launch) {
  struct sim_report report;
  struct progress progress;
  progress_begin(&progress, "simulating");
  enum sim_result result = sim_launch(s->module, s->memory, launch, &s->options, &report);
  progress_end(&progress);
  if (result == SIM_REFUSED) {
    diag_error(&s->c->diag, ERROR_USAGE, nowhere, "%s cannot be launched: %s", launch->entry->name,
               report.error);
  } else {
    print_findings(&report);
    s->finding_total += report.finding_total;
    keep_stats(s, &report.stats);
    add_counts(&s->counts, &report.stats);
  }
  sim_report_free(&report);
  return result == SIM_OK;
}

bool simulation_launch_plan(struct simulation *s, const struct plan_launch_value *value, const char *twin) {
  struct diag *diag = &s->c->diag;
  const struct plan_launch *launch = value->launch;
  const struct sim_entry *entry = sim_module_find(s->module, launch->function);
  bool is_there = entry && entry->parameter_count == launch->argument_count;
  if (!is_there && twin) diag_error(diag, ERROR_ARGUMENT, nowhere, "'%s' has no entry '%s' with %" PRIu32 " parameters", twin, launch->function, launch->argument_count);
  else if (!is_there) diag_internal(diag, "plan", nowhere, "the PTX has no entry '%s' with %" PRIu32 " parameters", launch->function, launch->argument_count);
  if (!is_there) return false;
  char *blob = arena_alloc(&s->c->arena, entry->parameter_bytes + 8);
  for (uint32_t i = 0; i < launch->argument_count; i++) {
    const struct sim_parameter *parameter = &entry->parameters[i];
    if (parameter->size != launch->arguments[i].bytes) {
      diag_internal(diag, "plan", nowhere, "parameter %" PRIu32 " of '%s' has %zu bytes, the plan passes %" PRIu32, i, entry->name, parameter->size, launch->arguments[i].bytes);
      return false;
    }
    memcpy(blob + parameter->offset, &value->arguments[i], parameter->size);
  }
  struct sim_launch launched = {.entry = entry, .dynamic_shared = value->shared, .parameters = blob, .parameter_bytes = entry->parameter_bytes};
  for (int d = 0; d < 3; d++) {
    launched.grid[d] = value->grid[d];
    launched.block[d] = launch->block[d];
  }
  if (s->stats == STATS_TEXT)
    text_printf(&s->printed, "%s: grid %" PRIu32 " %" PRIu32 " %" PRIu32 ", block %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", entry->name, launched.grid[0], launched.grid[1], launched.grid[2],
                launched.block[0], launched.block[1], launched.block[2]);
  return simulation_launch(s, &launched);
}
