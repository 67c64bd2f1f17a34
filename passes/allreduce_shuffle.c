// Reductions over threads by shuffles: inside a warp, and over several with a few words of shared memory.
#include "passes/allreduce_emit.h"

static void find_branch(struct ir_expr *e, void *state) {
  bool divides = e->op == OP_DIV || e->op == OP_MOD || e->op == OP_QUO || e->op == OP_REM;
  bool chooses = e->op == OP_SELECT || ((e->op == OP_AND || e->op == OP_OR) && e->type == TYPE_BOOL);
  if (chooses || (divides && type_is_integer(e->type))) *(bool *)state = true;
}

// Whether a compiler may turn the combine into branches: those of an integer division depend on its operands, and ?:, && and || of the CUDA text
// become branches where nvcc finds that cheaper.
static bool combine_may_branch(const struct ir_reducer *reducer) {
  bool may = false;
  ir_visit_block(&reducer->combine.lets, find_branch, &may);
  for (uint32_t k = 0; k < reducer->combine.results.count; k++) ir_visit_expr(reducer->combine.results.at[k], find_branch, &may);
  return may;
}

static struct ir_expr **new_values(struct emitter *e, const struct part *part) { return arena_array(e->arena, struct ir_expr *, part->count); }

// Butterfly over `extent` lanes at `stride`: afterwards every lane of a group has the group's value, or only its first where only_first.
static void butterfly(struct emitter *e, struct part *part, struct ir_expr *mask, uint32_t extent, uint32_t stride, bool only_first) {
  struct ir_expr **values = part->values, **others = new_values(e, part), **low = new_values(e, part), **high = new_values(e, part);
  for (uint32_t offset = stride; offset < extent * stride; offset *= 2) {
    for (uint32_t k = 0; k < part->count; k++) others[k] = emit_shuffle(e, OP_SHFL_XOR, mask, values[k], emit_u32(e, offset), "other");
    bool keeps_order = !part->reducer->is_commutative_bitwise && !only_first;
    struct ir_expr *is_upper = NULL; // the lower lane's value stands left, so that both lanes compute the same bits
    if (keeps_order) is_upper = emit_let(e, "is_upper", emit_binary(e, OP_NE, emit_binary(e, OP_AND, emit_lane(e), emit_number(e, offset)), emit_number(e, 0)));
    for (uint32_t k = 0; k < part->count; k++) {
      low[k] = keeps_order ? emit_let(e, "low", ir_select(e->arena, is_upper, others[k], values[k])) : values[k];
      high[k] = keeps_order ? emit_let(e, "high", ir_select(e->arena, is_upper, values[k], others[k])) : others[k];
    }
    emit_combine(e, part, low, high, values);
    for (uint32_t k = 0; k < part->count; k++) values[k] = emit_let(e, "part", values[k]);
  }
}

// Down over the first `extent` of the lanes counted by `place`: afterwards the lane at place 0 has the value of all. What a lane past the
// end gives goes through the combine and is dropped behind it, unless branches could depend on it: then it is dropped before.
//
// Halves come first, where the order does not count: behind a step by `offset` only that many lanes are asked again, so that a step drops
// something only where fewer than twice `offset` lanes exist, in the warp that has the fewest, `least`. In order, neighbours come first,
// and every step drops.
static void down(struct emitter *e, struct part *part, struct ir_expr *mask, uint32_t extent, uint32_t least, struct ir_expr *place, struct ir_expr *end) {
  struct ir_expr **values = part->values, **others = new_values(e, part), **sums = new_values(e, part);
  bool drops_before = combine_may_branch(part->reducer), in_order = part->reducer->is_ordered;
  for (uint32_t reach = next_power_of_two(extent); reach > 1; reach /= 2) {
    uint32_t offset = in_order ? next_power_of_two(extent) / reach : reach / 2;
    bool drops = in_order || drops_before || 2 * offset > least;
    struct ir_expr *inside = drops ? emit_binary(e, OP_LT, emit_binary(e, OP_ADD, place, emit_number(e, offset)), end) : NULL;
    for (uint32_t k = 0; k < part->count; k++) others[k] = emit_shuffle(e, OP_SHFL_DOWN, mask, values[k], emit_u32(e, offset), "other");
    for (uint32_t k = 0; drops_before && k < part->count; k++) others[k] = emit_let(e, "other", ir_select(e->arena, inside, others[k], values[k]));
    emit_combine(e, part, values, others, sums);
    for (uint32_t k = 0; k < part->count; k++) values[k] = emit_let(e, "part", drops ? ir_select(e->arena, inside, sums[k], values[k]) : sums[k]);
  }
}

// All lanes of the mask by one instruction. Narrow types widen: what wraps, wraps the same in 32 bits and back.
static void redux(struct emitter *e, struct part *part, struct ir_expr *mask) {
  enum type type = part->values[0]->type, wide = type_is_signed(type) ? TYPE_I32 : TYPE_U32;
  for (uint32_t k = 0; k < part->count; k++) {
    struct ir_expr *args[2] = {mask, type == wide ? part->values[k] : emit_let(e, "wide", ir_cast(e->arena, wide, part->values[k]))};
    struct ir_expr *all = emit_let(e, "all", ir_raw(e->arena, allreduce_redux_op(part->reducer), wide, args, 2));
    part->values[k] = type == wide ? all : emit_let(e, "all", ir_cast(e->arena, type, all));
  }
}

static bool part_uses_redux(const struct emitter *e, const struct part *part) {
  return e->context->options->target->sm >= 80 && allreduce_redux_op(part->reducer) != OP_CONST;
}

void allreduce_emit_xor(struct emitter *e) {
  struct ir_expr *mask = e->is_segmented ? emit_segment(e) : emit_existing_lanes(e);
  for (uint32_t i = 0; i < e->part_count; i++)
    butterfly(e, &e->parts[i], mask, e->choice.shape.extent, e->choice.shape.stride, !e->source->result_in_all);
}

void allreduce_emit_guarded(struct emitter *e) {
  struct ir_expr *mask = emit_existing_lanes(e), *end = emit_number(e, e->choice.shape.extent);
  for (uint32_t i = 0; i < e->part_count; i++) {
    struct part *part = &e->parts[i];
    down(e, part, mask, e->choice.shape.extent, e->choice.shape.extent, emit_lane(e), end);
    for (uint32_t k = 0; e->source->result_in_all && k < part->count; k++)
      part->values[k] = emit_shuffle(e, OP_SHFL_IDX, mask, part->values[k], emit_u32(e, 0), "all");
  }
}

void allreduce_emit_redux(struct emitter *e) {
  for (uint32_t i = 0; i < e->part_count; i++) redux(e, &e->parts[i], emit_existing_lanes(e));
}

// --- Over several warps -----------------------------------------------------------------------------------------------

// A group's words: `warps` of them, each lane slot reads `reads` neighbours, `lanes` slots hold some.
struct second_stage {
  uint32_t stride, warps, reads, lanes;
  struct ir_expr *column, *slot, *base; // of the lane: its group in the warp, its number in the group; the number of the group's first warp
};

static struct second_stage second_stage_of(const struct emitter *e) {
  struct second_stage s = {.stride = e->choice.shape.stride, .warps = (e->choice.shape.extent * e->choice.shape.stride + 31) / 32};
  uint32_t slots = 32 / s.stride;
  s.reads = (s.warps + slots - 1) / slots;
  s.lanes = next_power_of_two((s.warps + s.reads - 1) / s.reads);
  return s;
}

// What lane slots hold of a part's words, as the part's values; identities where there is none. All loads come before the first combine.
static void read_words(struct emitter *e, struct part *part, const struct second_stage *s, struct ir_expr *slot) {
  struct ir_expr ***words = arena_array(e->arena, struct ir_expr **, s->reads), *first = emit_binary(e, OP_MUL, slot, emit_number(e, s->reads)), *start = emit_number(e, 0);
  bool is_whole = s->lanes * s->reads == s->warps;
  if (s->base) start = emit_binary(e, OP_MUL, s->base, emit_number(e, s->stride));
  if (s->column) start = emit_binary(e, OP_ADD, start, s->column);
  if (is_whole) start = emit_let(e, "start", emit_binary(e, OP_ADD, emit_binary(e, OP_MUL, first, emit_number(e, s->stride)), start));
  for (uint32_t i = 0; i < s->reads; i++) {
    struct ir_expr *inside = NULL, *word = emit_number(e, (int64_t)i * s->stride);
    if (!is_whole) {
      struct ir_expr *number = emit_binary(e, OP_ADD, first, emit_number(e, i));
      inside = emit_let(e, "inside", emit_binary(e, OP_LT, number, emit_number(e, s->warps)));
      word = emit_binary(e, OP_MUL, ir_select(e->arena, inside, number, emit_number(e, 0)), emit_number(e, s->stride));
    }
    word = emit_let(e, "word", emit_binary(e, OP_ADD, start, word));
    words[i] = new_values(e, part);
    for (uint32_t k = 0; k < part->count; k++) {
      words[i][k] = emit_load(e, part->scratch[k], word, "partial");
      if (inside) words[i][k] = emit_let(e, "partial", ir_select(e->arena, inside, words[i][k], emit_identity(part, k)));
    }
  }
  for (uint32_t k = 0; k < part->count; k++) part->values[k] = words[0][k];
  for (uint32_t i = 1; i < s->reads; i++) {
    emit_combine(e, part, part->values, words[i], part->values);
    for (uint32_t k = 0; k < part->count; k++) part->values[k] = emit_let(e, "part", part->values[k]);
  }
}

// Stage one inside each warp, a word a warp and group, and stage two over the words: by every warp where all threads need the result, else by
// the first warp of a group.
void allreduce_emit_warps(struct emitter *e, bool needs_barrier) {
  struct allreduce_shape shape = e->choice.shape;
  struct second_stage s = second_stage_of(e);
  uint32_t outer = shape.groups / s.stride, slots = 32 / s.stride;
  bool in_all = e->source->result_in_all;
  emit_linear(e), emit_lane(e), emit_warp(e);
  struct ir_expr *mask = emit_existing_lanes(e);
  for (uint32_t i = 0; i < e->part_count; i++) {
    if (s.stride == 1 && part_uses_redux(e, &e->parts[i])) redux(e, &e->parts[i], mask);
    else if (shape.threads % 32 == 0) butterfly(e, &e->parts[i], mask, slots, s.stride, true);
    else down(e, &e->parts[i], mask, 32, shape.threads % 32, emit_linear(e), emit_number(e, shape.threads));
  }
  if (needs_barrier) emit_barrier(e);
  struct list *outside = e->out;
  if (s.stride == 1) emit_if(e, emit_binary(e, OP_EQ, emit_lane(e), emit_number(e, 0)));
  else emit_if(e, emit_binary(e, OP_LT, emit_lane(e), emit_number(e, s.stride)));
  struct ir_expr *own = emit_binary(e, OP_MUL, emit_warp(e), emit_number(e, s.stride));
  if (s.stride > 1) own = emit_binary(e, OP_ADD, own, emit_lane(e));
  for (uint32_t i = 0; i < e->part_count; i++) {
    struct part *part = &e->parts[i];
    emit_scratch(e, part, (shape.threads + 31) / 32 * s.stride);
    for (uint32_t k = 0; k < part->count; k++) emit_store(e, part->scratch[k], own, part->values[k]);
  }
  e->out = outside;
  emit_barrier(e);
  struct place before = emit_remember(e);
  if (!in_all) { // the first warp of each group
    for (uint32_t i = 0; i < e->part_count; i++) emit_keep(e, &e->parts[i]);
    struct ir_expr *first = outer == 1 ? emit_warp(e) : emit_binary(e, OP_REM, emit_warp(e), emit_number(e, s.warps));
    outside = emit_if(e, emit_binary(e, OP_EQ, first, emit_number(e, 0)));
  }
  s.slot = s.stride == 1 ? emit_lane(e) : emit_let(e, "slot", emit_binary(e, OP_QUO, emit_lane(e), emit_number(e, s.stride)));
  if (s.stride > 1) s.column = emit_let(e, "column", emit_binary(e, OP_REM, emit_lane(e), emit_number(e, s.stride)));
  if (outer > 1) s.base = emit_let(e, "base", emit_binary(e, OP_MUL, emit_binary(e, OP_QUO, emit_warp(e), emit_number(e, s.warps)), emit_number(e, s.warps)));
  for (uint32_t i = 0; i < e->part_count; i++) {
    struct part *part = &e->parts[i];
    // one instruction counts each word once; a butterfly over fewer lanes than a warp has repeats them in all its parts
    bool reduxes = s.stride == 1 && s.lanes > 2 && part_uses_redux(e, part);
    struct second_stage one = s;
    if (!reduxes && s.lanes < slots) one.slot = emit_let(e, "place", emit_binary(e, OP_REM, s.slot, emit_number(e, s.lanes)));
    if (reduxes) one.lanes = 32;
    read_words(e, part, &one, one.slot);
    // whole warps only get here: every one where all need the result, else a group's first
    if (reduxes) redux(e, part, emit_u32(e, 0xffffffffu));
    else butterfly(e, part, emit_u32(e, 0xffffffffu), s.lanes, s.stride, !in_all);
    if (!in_all) emit_set(e, part, part->values);
  }
  if (in_all) return;
  e->out = outside;
  emit_recall(e, before);
  for (uint32_t i = 0; i < e->part_count; i++) emit_take_kept(e, &e->parts[i]);
}
