// Statistics: sums over workers, names, printing.
#include "runtime/sim/stats.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const class_names[] = {
#define SIM_CLASS(class, name) name,
#include "runtime/sim/class.def"
#undef SIM_CLASS
};

const char *sim_class_name(enum sim_class class_) {
  return class_ < SIM_CLASSES ? class_names[class_] : "unknown";
}

// The numbers that are simply added, in the order of printing.
static const struct {
  const char *name;
  size_t offset;
} fields[] = {
#define FIELD(name)                                                                                          \
  { #name, offsetof(struct sim_stats, name) }
    FIELD(thread_instructions),
    FIELD(warp_instructions),
    FIELD(blocks),
    FIELD(global_loads),
    FIELD(global_stores),
    FIELD(global_sectors_loaded),
    FIELD(global_sectors_stored),
    FIELD(global_lines),
    FIELD(global_bytes_loaded),
    FIELD(global_bytes_stored),
    FIELD(shared_loads),
    FIELD(shared_stores),
    FIELD(shared_wavefronts),
    FIELD(shared_conflicts),
    FIELD(local_loads),
    FIELD(local_stores),
    FIELD(constant_loads),
    FIELD(barriers),
    FIELD(warp_barriers),
    FIELD(shuffles),
    FIELD(votes),
    FIELD(atomics),
    FIELD(approximate),
    FIELD(divergent_branches),
#undef FIELD
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

static uint64_t *field(struct sim_stats *stats, size_t i) {
  return (uint64_t *)(void *)((unsigned char *)stats + fields[i].offset);
}

static uint64_t field_value(const struct sim_stats *stats, size_t i) {
  uint64_t value;
  memcpy(&value, (const unsigned char *)stats + fields[i].offset, sizeof value);
  return value;
}

// Arithmetic on floats counts by its type, whatever its opcode.
static enum sim_class class_of(const struct sim_op *op) {
  enum sim_class class_ = sim_opcodes[op->opcode].class_;
  if (class_ != SIM_CLASS_INTEGER && class_ != SIM_CLASS_FLOAT32) return class_;
  if (sim_type_kind((enum sim_type)op->type) != SIM_KIND_F) return class_;
  if (op->type == SIM_F32 || op->type == SIM_F32X2) return SIM_CLASS_FLOAT32;
  return op->type == SIM_F64 ? SIM_CLASS_FLOAT64 : SIM_CLASS_HALF;
}

static int compare(const void *left, const void *right) {
  const struct sim_opcode_count *a = left, *b = right;
  return strcmp(a->name, b->name);
}

bool sim_stats_gather(const struct sim_module *module, const struct sim_worker *workers, size_t count,
                      struct sim_stats *out) {
  out->opcodes = calloc(sim_opcode_count + 1, sizeof *out->opcodes);
  if (!out->opcodes) return false;
  struct sim_opcode_count *all = calloc(sim_opcode_count, sizeof *all);
  if (!all) return false;
  for (size_t w = 0; w < count; w++) {
    const struct sim_counters *counters = &workers[w].counters;
    for (size_t i = 0; i < FIELD_COUNT; i++) *field(out, i) += field_value(&counters->stats, i);
    for (size_t pc = 0; pc < module->op_count; pc++) {
      uint64_t threads = counters->threads[pc], warps = counters->warps[pc];
      if (warps == 0) continue;
      const struct sim_op *op = &module->ops[pc];
      all[op->opcode].threads += threads;
      all[op->opcode].warps += warps;
      out->by_class[class_of(op)] += threads;
      out->thread_instructions += threads;
      out->warp_instructions += warps;
      if (op->is_approximate) out->approximate += threads;
    }
  }
  for (size_t i = 0; i < sim_opcode_count; i++) {
    if (all[i].warps == 0) continue;
    all[i].name = sim_opcodes[i].name;
    out->opcodes[out->opcode_count++] = all[i];
  }
  free(all);
  qsort(out->opcodes, out->opcode_count, sizeof *out->opcodes, compare);
  return true;
}

bool sim_stats_print(const struct sim_stats *stats, FILE *stream) {
  for (size_t i = 0; i < FIELD_COUNT; i++) {
    fprintf(stream, "%-24s", fields[i].name);
    fprintf(stream, " %" PRIu64 "\n", field_value(stats, i));
  }
  fprintf(stream, "thread-instructions by class:\n");
  for (int i = 0; i < SIM_CLASSES; i++) {
    if (stats->by_class[i]) fprintf(stream, "  %-22s %" PRIu64 "\n", class_names[i], stats->by_class[i]);
  }
  fprintf(stream, "by opcode:\n");
  for (size_t i = 0; i < stats->opcode_count; i++) {
    fprintf(stream, "  %-22s %" PRIu64 " (%" PRIu64 " by warps)\n", stats->opcodes[i].name,
            stats->opcodes[i].threads, stats->opcodes[i].warps);
  }
  return !ferror(stream);
}

bool sim_stats_print_json(const struct sim_stats *stats, FILE *stream) {
  fputc('{', stream);
  for (size_t i = 0; i < FIELD_COUNT; i++)
    fprintf(stream, "\"%s\": %" PRIu64 ", ", fields[i].name, field_value(stats, i));
  fputs("\"classes\": {", stream);
  for (int i = 0; i < SIM_CLASSES; i++) {
    fprintf(stream, "%s\"%s\": %" PRIu64, i ? ", " : "", class_names[i], stats->by_class[i]);
  }
  fputs("}, \"opcodes\": {", stream);
  for (size_t i = 0; i < stats->opcode_count; i++) {
    fprintf(stream, "%s\"%s\": {\"threads\": %" PRIu64 ", \"warps\": %" PRIu64 "}", i ? ", " : "",
            stats->opcodes[i].name, stats->opcodes[i].threads, stats->opcodes[i].warps);
  }
  fputs("}}\n", stream);
  return !ferror(stream);
}
