// Reductions over threads in shared memory, for any extents: a word a thread.
#include "passes/allreduce_emit.h"

// Where a thread's word is, and those of its group's others.
struct layout {
  struct ir_expr *member, *first, *word; // the thread's number in its group; the words of the group's first thread and of this one
  uint32_t step;                         // words from a member to the next
};

static struct layout lay_out(struct emitter *e) {
  const uint32_t *block = e->entry->block;
  struct allreduce_shape shape = e->choice.shape;
  struct layout layout = {.member = emit_number(e, 0)};
  struct ir_expr *group = emit_number(e, 0);
  uint32_t bytes = 1, conflicts;
  for (uint32_t d = 3; d-- > 0;) {
    struct ir_expr **which = e->source->thread_axes & (1u << d) ? &layout.member : &group;
    *which = emit_binary(e, OP_ADD, emit_binary(e, OP_MUL, *which, emit_number(e, block[d])), emit_thread(e, d));
  }
  layout.member = emit_let(e, "member", layout.member);
  group = emit_let(e, "group", group);
  for (uint32_t i = 0; i < e->part_count; i++)
    for (uint32_t k = 0; k < e->parts[i].count; k++)
      if (type_bytes(e->parts[i].values[k]->type) > bytes) bytes = type_bytes(e->parts[i].values[k]->type);
  bool member_fastest = allreduce_member_fastest(block, e->source->thread_axes, bytes, &conflicts);
  layout.step = member_fastest ? 1 : shape.groups;
  layout.first = emit_let(e, "first", member_fastest ? emit_binary(e, OP_MUL, group, emit_number(e, shape.extent)) : group);
  layout.word = emit_let(e, "word", emit_binary(e, OP_ADD, layout.first, emit_binary(e, OP_MUL, layout.member, emit_number(e, layout.step))));
  return layout;
}

static void store_all(struct emitter *e, const struct part *part, struct ir_expr *word) {
  for (uint32_t k = 0; k < part->count; k++) emit_store(e, part->scratch[k], word, part->values[k]);
}

// The values of the member `offset` further.
static struct ir_expr **load_all(struct emitter *e, const struct part *part, const struct layout *layout, struct ir_expr *from, uint32_t offset, const char *label) {
  struct ir_expr **values = arena_array(e->arena, struct ir_expr *, part->count);
  struct ir_expr *word = emit_binary(e, OP_ADD, from, emit_number(e, (int64_t)offset * layout->step));
  for (uint32_t k = 0; k < part->count; k++) values[k] = emit_load(e, part->scratch[k], word, label);
  return values;
}

// A group's words, read one after the other in order by each thread that needs the result.
void allreduce_emit_serial(struct emitter *e, bool needs_barrier) {
  struct layout layout = lay_out(e);
  bool in_all = e->source->result_in_all;
  struct list *outside = e->out;
  if (needs_barrier) emit_barrier(e);
  for (uint32_t i = 0; i < e->part_count; i++) {
    emit_scratch(e, &e->parts[i], e->choice.shape.threads);
    store_all(e, &e->parts[i], layout.word);
  }
  for (uint32_t i = 0; !in_all && i < e->part_count; i++) emit_keep(e, &e->parts[i]);
  emit_barrier(e);
  if (!in_all) outside = emit_if(e, emit_binary(e, OP_EQ, layout.member, emit_number(e, 0)));
  for (uint32_t i = 0; i < e->part_count; i++) {
    struct part *part = &e->parts[i];
    struct ir_expr **sums = in_all ? load_all(e, part, &layout, layout.first, 0, "part") : part->values;
    for (uint32_t m = 1; m < e->choice.shape.extent; m++) {
      struct ir_expr **other = load_all(e, part, &layout, layout.first, m, "other");
      emit_combine(e, part, sums, other, other);
      for (uint32_t k = 0; k < part->count; k++) other[k] = emit_let(e, "part", other[k]);
      sums = other;
    }
    if (in_all) part->values = sums;
    else emit_set(e, part, sums);
  }
  e->out = outside;
  for (uint32_t i = 0; !in_all && i < e->part_count; i++) emit_take_kept(e, &e->parts[i]);
}

// Halves at a time, or neighbours first where the order counts. Between two steps stands a block barrier, or a warp barrier where the members
// that the next step combines lie in one warp.
void allreduce_emit_tree(struct emitter *e, bool needs_barrier) {
  uint32_t extent = e->choice.shape.extent;
  bool in_all = e->source->result_in_all, in_order = false;
  struct layout layout = lay_out(e);
  for (uint32_t i = 0; i < e->part_count; i++) in_order |= e->parts[i].reducer->is_ordered;
  uint32_t in_warp = allreduce_in_warp(e->entry->block, e->source->thread_axes, in_order);
  if (needs_barrier) emit_barrier(e);
  for (uint32_t i = 0; i < e->part_count; i++) {
    emit_scratch(e, &e->parts[i], e->choice.shape.threads);
    store_all(e, &e->parts[i], layout.word);
    emit_keep(e, &e->parts[i]);
  }
  if (in_warp > 1) emit_existing_lanes(e); // in front of the conditions
  for (uint32_t reach = in_order ? 2 : next_power_of_two(extent); in_order ? reach < 2 * extent : reach > 1; reach = in_order ? reach * 2 : reach / 2) {
    uint32_t offset = reach / 2;
    bool is_last = in_order ? reach >= extent : reach == 2;
    if (reach <= in_warp) emit_syncwarp(e);
    else emit_barrier(e);
    struct ir_expr *inside = emit_binary(e, OP_LT, emit_binary(e, OP_ADD, layout.member, emit_number(e, offset)), emit_number(e, extent));
    struct ir_expr *mine = in_order ? emit_binary(e, OP_EQ, emit_binary(e, OP_REM, layout.member, emit_number(e, reach)), emit_number(e, 0))
                                    : emit_binary(e, OP_LT, layout.member, emit_number(e, offset));
    struct list *outside = emit_if(e, emit_binary(e, OP_AND, mine, inside));
    for (uint32_t i = 0; i < e->part_count; i++) {
      struct part *part = &e->parts[i];
      struct ir_expr **others = load_all(e, part, &layout, layout.word, offset, "other");
      emit_take_kept(e, part);
      emit_combine(e, part, part->values, others, others);
      for (uint32_t k = 0; k < part->count; k++) part->values[k] = emit_let(e, "part", others[k]);
      emit_set(e, part, part->values);
      if (!is_last || in_all) store_all(e, part, layout.word);
    }
    e->out = outside;
  }
  if (in_all && extent <= in_warp) emit_syncwarp(e);
  else if (in_all) emit_barrier(e);
  for (uint32_t i = 0; i < e->part_count; i++) {
    struct part *part = &e->parts[i];
    if (in_all) part->values = load_all(e, part, &layout, layout.first, 0, "all");
    else emit_take_kept(e, part);
  }
}
