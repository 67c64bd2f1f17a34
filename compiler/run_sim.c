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
  }
  sim_report_free(&report);
  return result == SIM_OK;
}
