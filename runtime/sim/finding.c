// Findings: recorded once for a kind and a PTX line, counted after that; and their one line of text.
#include "runtime/sim/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

static const struct {
  const char *name;
  const char *text;
} kinds[] = {
#define SIM_KIND(kind, name, text) {name, text},
#include "runtime/sim/finding.def"
#undef SIM_KIND
};

const char *sim_kind_name(enum sim_kind kind) {
  return kind < SIM_KINDS ? kinds[kind].name : "unknown";
}
const char *sim_kind_text(enum sim_kind kind) {
  return kind < SIM_KINDS ? kinds[kind].text : "";
}

static void place(const struct sim_module *module, const struct sim_op *op, int *line,
                  struct sim_source *source, struct sim_source *inlined_at) {
  *line = op->line;
  if (op->loc < 0 || (size_t)op->loc >= module->loc_count) return;
  *source = module->locs[op->loc].source;
  if (inlined_at) *inlined_at = module->locs[op->loc].inlined_at;
}

static void fill(struct sim_launch_state *launch, enum sim_kind kind, const struct sim_where *where,
                 struct sim_finding *out) {
  memset(out, 0, sizeof *out);
  out->kind = kind;
  out->count = 1;
  out->module = launch->module->name;
  out->entry = launch->function->name;
  if (where->op) place(launch->module, where->op, &out->ptx_line, &out->source, &out->inlined_at);
  if (where->other) place(launch->module, where->other, &out->other_ptx_line, &out->other_source, NULL);
  out->has_address = where->has_address;
  out->address = where->address;
  out->bytes = where->bytes;
  if (!where->warp) return;
  const uint32_t *block = launch->launch->block;
  uint32_t thread = where->warp->index * SIM_LANES + where->lane;
  out->has_thread = true;
  out->warp = where->warp->index;
  out->lane = where->lane;
  memcpy(out->block, where->warp->block->index, sizeof out->block);
  out->thread[0] = thread % block[0];
  out->thread[1] = thread / block[0] % block[1];
  out->thread[2] = thread / block[0] / block[1];
}

void sim_find(struct sim_launch_state *launch, enum sim_kind kind, const struct sim_where *where,
              const char *format, ...) {
  if (!(launch->checks & SIM_CHECK(kind))) return;
  int line = where->op ? where->op->line : 0;
  pthread_mutex_lock(&launch->lock);
  struct sim_report *report = launch->report;
  report->finding_total++;
  for (size_t i = 0; i < report->finding_count; i++) {
    struct sim_finding *old = &report->findings[i];
    if (old->kind != kind || old->ptx_line != line) continue;
    old->count++;
    pthread_mutex_unlock(&launch->lock);
    return;
  }
  if (report->finding_count < launch->options.max_findings) {
    if (report->finding_count == launch->finding_room) {
      size_t room = launch->finding_room ? 2 * launch->finding_room : 8;
      struct sim_finding *grown = realloc(report->findings, room * sizeof *grown);
      if (grown) {
        report->findings = grown;
        launch->finding_room = room;
      }
    }
    if (report->finding_count < launch->finding_room) {
      struct sim_finding *out = &report->findings[report->finding_count++];
      fill(launch, kind, where, out);
      va_list arguments;
      va_start(arguments, format);
      vsnprintf(out->message, sizeof out->message, format, arguments);
      va_end(arguments);
    }
  }
  pthread_mutex_unlock(&launch->lock);
}

void sim_find_poison(struct sim_warp *warp, const struct sim_op *op, uint32_t lanes, const char *what) {
  struct sim_where where = {.warp = warp, .op = op, .lane = (uint32_t)__builtin_ctz(lanes)};
  uint32_t absent = warp->absent_op[where.lane];
  if (absent) where.other = &warp->module->ops[absent - 1];
  sim_find(warp->block->launch, SIM_POISON, &where, "%s depends on a lane that took no part in a shuffle",
           what);
}

static int compare(const void *left, const void *right) {
  const struct sim_finding *a = left, *b = right;
  if (a->ptx_line != b->ptx_line) return a->ptx_line < b->ptx_line ? -1 : 1;
  return (a->kind > b->kind) - (a->kind < b->kind);
}

void sim_report_sort(struct sim_report *report) {
  if (report->finding_count > 1)
    qsort(report->findings, report->finding_count, sizeof *report->findings, compare);
}

void sim_report_free(struct sim_report *report) {
  free(report->findings);
  free(report->stats.opcodes);
  memset(report, 0, sizeof *report);
}

// Appends to a text of which `used` characters exist, of `size` that fit.
#if defined __GNUC__
__attribute__((format(printf, 4, 5)))
#endif
static void
append(char *text, size_t size, size_t *used, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t room = *used < size ? size - *used : 0;
  int length = vsnprintf(room ? text + *used : NULL, room, format, arguments);
  va_end(arguments);
  if (length > 0) *used += (size_t)length;
}

size_t sim_finding_print(const struct sim_finding *finding, char *text, size_t size) {
  size_t used = 0;
  if (size > 0) text[0] = 0;
  const struct sim_source *source = &finding->source;
  if (source->file) {
    append(text, size, &used, "%s:%" PRIu32 ":%" PRIu32 ": ", source->file, source->line, source->column);
  } else if (finding->ptx_line) {
    append(text, size, &used, "%s:%d: ", finding->module, finding->ptx_line);
  } else {
    append(text, size, &used, "%s: ", finding->module);
  }
  append(text, size, &used, "%s: %s", sim_kind_name(finding->kind), finding->message);
  if (source->file) append(text, size, &used, "; %s:%d", finding->module, finding->ptx_line);
  if (finding->inlined_at.file) {
    append(text, size, &used, "; inlined at %s:%" PRIu32 ":%" PRIu32, finding->inlined_at.file,
           finding->inlined_at.line, finding->inlined_at.column);
  }
  append(text, size, &used, "; entry %s", finding->entry);
  if (finding->has_thread) {
    append(text, size, &used,
           ", block (%" PRIu32 ",%" PRIu32 ",%" PRIu32 "), thread (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")"
           ", warp %" PRIu32 ", lane %" PRIu32,
           finding->block[0], finding->block[1], finding->block[2], finding->thread[0], finding->thread[1],
           finding->thread[2], finding->warp, finding->lane);
  }
  if (finding->has_address)
    append(text, size, &used, ", address 0x%" PRIx64 ", %" PRIu32 " bytes", finding->address, finding->bytes);
  if (finding->other_ptx_line) {
    append(text, size, &used, finding->kind == SIM_POISON ? "; the shuffle: " : "; the other access: ");
    if (finding->other_source.file) {
      append(text, size, &used, "%s:%" PRIu32 ":%" PRIu32 ", ", finding->other_source.file,
             finding->other_source.line, finding->other_source.column);
    }
    append(text, size, &used, "%s:%d", finding->module, finding->other_ptx_line);
  }
  if (finding->count > 1) append(text, size, &used, "; %" PRIu64 " times", finding->count);
  return used;
}
