// allreduce: reductions over threads become shuffles and shared memory.
//
//   allreduce sum = sum_f32(x) over x                    // a block of 11 threads
//   ->
//   let other = shfl_down(0x7ff, x, 1)
//   let step = select(lt(add(thread.x, 1), 11), add(x, other), x)
//   ...
//   let sum = step_4
//
// Requires LEVEL_PROGRAM, every thread at the statement (pass `nest` sees to it). Breaks nothing that prove does not check: every mask
// names the lanes that exist, a warp of which the block has a part by a select on the warp's number; every shuffle's source is one of them.
// The forms are those of allreduce.h. Values are combined in the order of the threads, neighbours first, so that ordered reducers
// are right and every thread gets the same bits. The method is that of TVM's LowerThreadAllreduce; masks are computed,
// never asked of the hardware.
#include "passes/allreduce.h"

#include <string.h>

struct emitter {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct ir_stmt *source; // the ALLREDUCE
  const struct ir_reducer *reducer;
  struct allreduce_choice choice;
  uint32_t count; // values: components of one or several tuples, which are reduced side by side
  struct list *out;
  struct ir_expr *linear, *lane, *warp, *mask; // made on first use
};

static struct ir_expr *number(struct emitter *e, int64_t value) { return ir_int(e->arena, e->entry->index_type, value); }

static struct ir_expr *binary(struct emitter *e, enum op op, struct ir_expr *a, struct ir_expr *b) { return ir_binary(e->arena, op, a, b); }

static struct ir_expr *let(struct emitter *e, const char *label, struct ir_expr *value) {
  if (value->op == OP_VAR || value->op == OP_CONST) return value;
  struct ir_var *var = ir_new_var(e->kernel, VAR_LET, value->type, label);
  var->range = e->source->range;
  list_push(e->arena, e->out, ir_let(e->arena, var, value, e->source->range));
  return ir_ref(e->arena, var);
}

// --- Where a thread is --------------------------------------------------------------------------------------------

static struct ir_expr *thread(struct emitter *e, uint32_t d) {
  if (e->entry->block[d] == 1) return number(e, 0);
  struct ir_expr *special = ir_special(e->arena, OP_THREAD, d);
  special->type = e->entry->index_type;
  return special;
}

static struct ir_expr *linear(struct emitter *e) {
  const uint32_t *block = e->entry->block;
  if (e->linear) return e->linear;
  struct ir_expr *yz = binary(e, OP_ADD, thread(e, 1), binary(e, OP_MUL, thread(e, 2), number(e, block[1])));
  struct ir_expr *all = binary(e, OP_ADD, thread(e, 0), binary(e, OP_MUL, yz, number(e, block[0])));
  return e->linear = all->op == OP_THREAD ? all : let(e, "linear", all);
}

static struct ir_expr *lane(struct emitter *e) {
  if (e->lane) return e->lane;
  if (e->choice.shape.threads <= 32) return e->lane = linear(e);
  return e->lane = let(e, "lane", binary(e, OP_REM, linear(e), number(e, 32)));
}

static struct ir_expr *warp(struct emitter *e) {
  if (e->warp) return e->warp;
  return e->warp = let(e, "warp", binary(e, OP_QUO, linear(e), number(e, 32)));
}

static struct ir_expr *mask_int(struct emitter *e, uint32_t mask) { return ir_int(e->arena, TYPE_U32, mask); }

// The lanes that exist in this thread's warp.
static struct ir_expr *existing_lanes(struct emitter *e) {
  uint32_t threads = e->choice.shape.threads, partial = threads % 32;
  if (e->mask) return e->mask;
  uint32_t last = (1u << partial) - 1;
  if (partial == 0) return e->mask = mask_int(e, 0xffffffffu);
  if (threads < 32) return e->mask = mask_int(e, last);
  struct ir_expr *is_last = binary(e, OP_EQ, warp(e), number(e, threads / 32));
  return e->mask = let(e, "mask", ir_select(e->arena, is_last, mask_int(e, last), mask_int(e, 0xffffffffu)));
}

// --- Values -------------------------------------------------------------------------------------------------------------

// Shuffles move numbers; a bool travels as u32.
static struct ir_expr *shuffle(struct emitter *e, enum op op, struct ir_expr *mask, struct ir_expr *value, struct ir_expr *where, const char *label) {
  bool is_bool = value->type == TYPE_BOOL;
  struct ir_expr *moved = is_bool ? let(e, "bit", ir_cast(e->arena, TYPE_U32, value)) : value;
  struct ir_expr *args[3] = {mask, moved, where};
  struct ir_expr *result = let(e, label, ir_raw(e->arena, op, moved->type, args, 3));
  return is_bool ? let(e, label, ir_cast(e->arena, TYPE_BOOL, result)) : result;
}

static uint32_t components(const struct emitter *e) { return e->reducer->identity.count; }

static void combine(struct emitter *e, struct ir_expr **a, struct ir_expr **b, struct ir_expr **results) {
  uint32_t tuple = components(e);
  struct ir_expr **arguments = arena_array(e->arena, struct ir_expr *, 2 * tuple), **combined = arena_array(e->arena, struct ir_expr *, tuple);
  for (uint32_t first = 0; first < e->count; first += tuple) {
    for (uint32_t k = 0; k < tuple; k++) {
      arguments[k] = a[first + k];
      arguments[tuple + k] = b[first + k];
    }
    ir_inline(e->kernel, &e->reducer->combine, arguments, e->out, e->source->range, combined);
    for (uint32_t k = 0; k < tuple; k++) results[first + k] = combined[k];
  }
}

static void name_all(struct emitter *e, struct ir_expr **values, const char *label) {
  for (uint32_t k = 0; k < e->count; k++) values[k] = let(e, label, values[k]);
}

static struct ir_expr *identity(struct emitter *e, uint32_t k) { return e->reducer->identity.at[k % components(e)]; }

// Butterfly over `extent` lanes at `stride`: afterwards every lane of a group has the group's value.
static void emit_butterfly(struct emitter *e, struct ir_expr *mask, uint32_t extent, uint32_t stride, bool only_first, struct ir_expr **values) {
  struct ir_expr **others = arena_array(e->arena, struct ir_expr *, e->count), **low = arena_array(e->arena, struct ir_expr *, e->count),
                 **high = arena_array(e->arena, struct ir_expr *, e->count);
  for (uint32_t offset = stride; offset < extent * stride; offset *= 2) {
    for (uint32_t k = 0; k < e->count; k++) others[k] = shuffle(e, OP_SHFL_XOR, mask, values[k], ir_int(e->arena, TYPE_U32, offset), "other");
    bool keeps_order = !e->reducer->is_commutative_bitwise && !only_first;
    struct ir_expr *is_upper = NULL; // the lower lane's value stands left, so that both lanes compute the same bits
    if (keeps_order) is_upper = let(e, "is_upper", binary(e, OP_NE, binary(e, OP_AND, lane(e), number(e, offset)), number(e, 0)));
    for (uint32_t k = 0; k < e->count; k++) {
      low[k] = keeps_order ? let(e, "low", ir_select(e->arena, is_upper, others[k], values[k])) : values[k];
      high[k] = keeps_order ? let(e, "high", ir_select(e->arena, is_upper, values[k], others[k])) : others[k];
    }
    combine(e, low, high, values);
    name_all(e, values, "part");
  }
}

static void find_division(struct ir_expr *e, void *state) {
  bool divides = e->op == OP_DIV || e->op == OP_MOD || e->op == OP_QUO || e->op == OP_REM;
  if (divides && type_is_integer(e->type)) *(bool *)state = true;
}

// Whether the backend may turn the combine into branches: those of an integer division depend on its operands.
static bool combine_may_branch(const struct ir_reducer *reducer) {
  bool may = false;
  ir_visit_block(&reducer->combine.lets, find_division, &may);
  for (uint32_t k = 0; k < reducer->combine.results.count; k++) ir_visit_expr(reducer->combine.results.at[k], find_division, &may);
  return may;
}

// Down over the first `extent` of the lanes counted by `place`: afterwards the lane at place 0 has the value of all. What a lane past the
// end gives goes through the combine and is dropped behind it, unless branches could depend on it: then it is dropped before.
static void emit_down(struct emitter *e, struct ir_expr *mask, uint32_t steps_extent, struct ir_expr *place, struct ir_expr *end, struct ir_expr **values) {
  struct ir_expr **others = arena_array(e->arena, struct ir_expr *, e->count), **sums = arena_array(e->arena, struct ir_expr *, e->count);
  bool drops_before = end && combine_may_branch(e->reducer);
  for (uint32_t offset = 1; offset < steps_extent; offset *= 2) {
    struct ir_expr *inside = end ? binary(e, OP_LT, binary(e, OP_ADD, place, number(e, offset)), end) : NULL;
    for (uint32_t k = 0; k < e->count; k++) others[k] = shuffle(e, OP_SHFL_DOWN, mask, values[k], ir_int(e->arena, TYPE_U32, offset), "other");
    for (uint32_t k = 0; drops_before && k < e->count; k++) others[k] = let(e, "other", ir_select(e->arena, inside, others[k], values[k]));
    combine(e, values, others, sums);
    for (uint32_t k = 0; k < e->count; k++) {
      if (end) sums[k] = ir_select(e->arena, inside, sums[k], values[k]);
      values[k] = let(e, "part", sums[k]);
    }
  }
}

// --- Shared memory ----------------------------------------------------------------------------------------------------

static struct ir_mem *new_scratch(struct emitter *e, uint32_t component, uint32_t words) {
  struct ir_mem *mem = arena_new(e->arena, struct ir_mem);
  struct ir_var *result = e->source->results.at[component];
  mem->label = arena_printf(e->arena, "%s_shared", result->label);
  mem->name = ir_fresh_name(e->kernel, mem->label);
  mem->space = SPACE_SHARED;
  mem->type = identity(e, component)->type;
  mem->alignment = type_bytes(mem->type);
  mem->range = e->source->range;
  list_push(e->arena, &mem->dims, ir_int(e->arena, TYPE_I64, words));
  list_push(e->arena, &mem->strides, ir_int(e->arena, TYPE_I64, 1));
  list_push(e->arena, &e->entry->memory, mem);
  return mem;
}

static void store(struct emitter *e, struct ir_mem *mem, struct ir_expr *index, struct ir_expr *value) {
  struct ir_stmt *stmt = ir_stmt(e->arena, IR_STORE, e->source->range);
  stmt->mem = mem;
  stmt->is_flat = true;
  stmt->value = value;
  list_push(e->arena, &stmt->indices, index);
  list_push(e->arena, e->out, stmt);
}

static struct ir_expr *load(struct emitter *e, struct ir_mem *mem, struct ir_expr *index, const char *label) {
  struct ir_expr *loaded = ir_raw(e->arena, OP_LOAD_FLAT, mem->type, &index, 1);
  loaded->mem = mem;
  return let(e, label, loaded);
}

static void barrier(struct emitter *e) { list_push(e->arena, e->out, ir_stmt(e->arena, IR_BARRIER, e->source->range)); }

static struct list *open_if(struct emitter *e, struct ir_expr *condition) {
  struct ir_stmt *test = ir_stmt(e->arena, IR_IF, e->source->range);
  test->value = condition;
  list_push(e->arena, e->out, test);
  struct list *outer = e->out;
  e->out = &test->body;
  return outer;
}

// --- The forms ----------------------------------------------------------------------------------------------------------

static void emit_guarded(struct emitter *e, struct ir_expr **values) {
  struct ir_expr *mask = existing_lanes(e);
  emit_down(e, mask, e->choice.shape.extent, lane(e), number(e, e->choice.shape.extent), values);
  for (uint32_t k = 0; e->source->result_in_all && k < e->count; k++) values[k] = shuffle(e, OP_SHFL_IDX, mask, values[k], ir_int(e->arena, TYPE_U32, 0), "all");
}

// Lets made inside a branch are unknown behind it.
struct place {
  struct ir_expr *linear, *lane, *warp, *mask;
};
static struct place remember(const struct emitter *e) { return (struct place){e->linear, e->lane, e->warp, e->mask}; }
static void recall(struct emitter *e, struct place p) {
  e->linear = p.linear;
  e->lane = p.lane;
  e->warp = p.warp;
  e->mask = p.mask;
}

// Stage one inside each warp, a word a warp, and stage two over the words: by every warp where all threads need the result, else by
// the first warp of a group.
static void emit_warps(struct emitter *e, struct ir_expr **values, bool is_in_loop) {
  struct allreduce_shape shape = e->choice.shape;
  uint32_t warps = (shape.threads + 31) / 32, warps_a_group = (shape.extent + 31) / 32, lanes = next_power_of_two(warps_a_group);
  linear(e), lane(e), warp(e);
  if (shape.threads % 32 == 0) emit_butterfly(e, existing_lanes(e), 32, 1, true, values);
  else emit_down(e, existing_lanes(e), 32, linear(e), number(e, shape.threads), values);
  struct ir_mem **scratch = arena_array(e->arena, struct ir_mem *, e->count);
  if (is_in_loop) barrier(e);
  struct list *outer = open_if(e, binary(e, OP_EQ, lane(e), number(e, 0)));
  for (uint32_t k = 0; k < e->count; k++) {
    scratch[k] = new_scratch(e, k, warps);
    store(e, scratch[k], warp(e), values[k]);
  }
  e->out = outer;
  barrier(e);
  bool in_all = e->source->result_in_all;
  struct ir_stmt **kept = arena_array(e->arena, struct ir_stmt *, e->count);
  struct place before = remember(e);
  if (!in_all) { // the first warp of each group
    for (uint32_t k = 0; k < e->count; k++) {
      kept[k] = ir_stmt(e->arena, IR_VAR, e->source->range);
      kept[k]->var = ir_new_var(e->kernel, VAR_MUTABLE, scratch[k]->type, "total");
      kept[k]->value = values[k];
      list_push(e->arena, e->out, kept[k]);
    }
    struct ir_expr *first = shape.groups == 1 ? warp(e) : binary(e, OP_REM, warp(e), number(e, warps_a_group));
    outer = open_if(e, binary(e, OP_EQ, first, number(e, 0)));
  }
  struct ir_expr *place = lanes == 32 ? lane(e) : let(e, "place", binary(e, OP_REM, lane(e), number(e, lanes)));
  struct ir_expr *inside = lanes == warps_a_group ? NULL : let(e, "inside", binary(e, OP_LT, place, number(e, warps_a_group)));
  struct ir_expr *word = inside ? ir_select(e->arena, inside, place, number(e, 0)) : place;
  if (shape.groups > 1) {
    struct ir_expr *group = binary(e, OP_QUO, warp(e), number(e, warps_a_group));
    word = binary(e, OP_ADD, binary(e, OP_MUL, group, number(e, warps_a_group)), word);
  }
  word = let(e, "word", word);
  for (uint32_t k = 0; k < e->count; k++) {
    values[k] = load(e, scratch[k], word, "partial");
    if (inside) values[k] = let(e, "partial", ir_select(e->arena, inside, values[k], identity(e, k)));
  }
  // whole warps only get here: every one where all need the result, else a group's first
  emit_butterfly(e, mask_int(e, 0xffffffffu), lanes, 1, !in_all, values);
  if (in_all) return;
  for (uint32_t k = 0; k < e->count; k++) {
    struct ir_stmt *set = ir_stmt(e->arena, IR_SET, e->source->range);
    set->var = kept[k]->var;
    set->value = values[k];
    list_push(e->arena, e->out, set);
  }
  e->out = outer;
  recall(e, before);
  for (uint32_t k = 0; k < e->count; k++) values[k] = ir_ref(e->arena, kept[k]->var);
}

// The same for groups at a stride: each warp holds some members of `stride` groups, and leaves a word for each of them. Behind the barrier
// a lane takes neighbouring words of its group, one after another, and the lanes of a group shuffle again.
static void emit_strided(struct emitter *e, struct ir_expr **values, bool is_in_loop) {
  struct allreduce_shape shape = e->choice.shape;
  uint32_t stride = shape.stride, lanes = 32 / stride, warps_a_group = shape.extent * stride / 32, each = (warps_a_group + lanes - 1) / lanes;
  bool in_all = e->source->result_in_all, has_several = shape.groups > stride;
  linear(e), lane(e), warp(e);
  emit_butterfly(e, existing_lanes(e), lanes, stride, true, values);
  struct ir_expr *column = stride == 32 ? lane(e) : let(e, "column", binary(e, OP_REM, lane(e), number(e, stride)));
  struct ir_mem **scratch = arena_array(e->arena, struct ir_mem *, e->count);
  struct ir_stmt **kept = arena_array(e->arena, struct ir_stmt *, e->count);
  if (is_in_loop) barrier(e);
  struct list *outer = e->out;
  if (stride < 32) outer = open_if(e, binary(e, OP_LT, lane(e), number(e, stride)));
  for (uint32_t k = 0; k < e->count; k++) {
    scratch[k] = new_scratch(e, k, shape.threads / 32 * stride);
    store(e, scratch[k], binary(e, OP_ADD, binary(e, OP_MUL, warp(e), number(e, stride)), column), values[k]);
  }
  e->out = outer;
  barrier(e);
  struct place before = remember(e);
  if (!in_all) { // the first warp of each group
    for (uint32_t k = 0; k < e->count; k++) {
      kept[k] = ir_stmt(e->arena, IR_VAR, e->source->range);
      kept[k]->var = ir_new_var(e->kernel, VAR_MUTABLE, scratch[k]->type, "total");
      kept[k]->value = values[k];
      list_push(e->arena, e->out, kept[k]);
    }
    struct ir_expr *first = has_several ? binary(e, OP_REM, warp(e), number(e, warps_a_group)) : warp(e);
    outer = open_if(e, binary(e, OP_EQ, first, number(e, 0)));
  }
  struct ir_expr *row = lanes == 1 ? number(e, 0) : let(e, "row", binary(e, OP_MUL, binary(e, OP_QUO, lane(e), number(e, stride)), number(e, each)));
  struct ir_expr *base = number(e, 0);
  if (has_several) base = let(e, "base", binary(e, OP_MUL, binary(e, OP_QUO, warp(e), number(e, warps_a_group)), number(e, warps_a_group)));
  struct ir_expr **next = arena_array(e->arena, struct ir_expr *, e->count), **sums = arena_array(e->arena, struct ir_expr *, e->count);
  bool is_whole = each * lanes == warps_a_group;
  struct ir_expr ***loaded = arena_array(e->arena, struct ir_expr **, each);
  for (uint32_t step = 0; step < each; step++) { // all loads before the first combine
    struct ir_expr *which = binary(e, OP_ADD, row, number(e, step)), *inside = NULL;
    if (!is_whole) {
      inside = let(e, "inside", binary(e, OP_LT, which, number(e, warps_a_group)));
      which = ir_select(e->arena, inside, which, number(e, 0));
    }
    struct ir_expr *word = let(e, "word", binary(e, OP_ADD, binary(e, OP_MUL, binary(e, OP_ADD, base, which), number(e, stride)), column));
    loaded[step] = arena_array(e->arena, struct ir_expr *, e->count);
    for (uint32_t k = 0; k < e->count; k++) {
      loaded[step][k] = load(e, scratch[k], word, "partial");
      if (inside) loaded[step][k] = let(e, "partial", ir_select(e->arena, inside, loaded[step][k], identity(e, k)));
    }
  }
  for (uint32_t k = 0; k < e->count; k++) next[k] = loaded[0][k];
  for (uint32_t step = 1; step < each; step++) {
    combine(e, next, loaded[step], sums);
    for (uint32_t k = 0; k < e->count; k++) next[k] = let(e, "part", sums[k]);
  }
  for (uint32_t k = 0; k < e->count; k++) values[k] = next[k];
  emit_butterfly(e, mask_int(e, 0xffffffffu), lanes, stride, !in_all, values);
  if (in_all) return;
  for (uint32_t k = 0; k < e->count; k++) {
    struct ir_stmt *set = ir_stmt(e->arena, IR_SET, e->source->range);
    set->var = kept[k]->var;
    set->value = values[k];
    list_push(e->arena, e->out, set);
  }
  e->out = outer;
  recall(e, before);
  for (uint32_t k = 0; k < e->count; k++) values[k] = ir_ref(e->arena, kept[k]->var);
}

// A thread's number within its group, and its group's.
static void coordinates(struct emitter *e, struct ir_expr **member, struct ir_expr **group) {
  const uint32_t *block = e->entry->block;
  *member = *group = number(e, 0);
  for (uint32_t d = 3; d-- > 0;) {
    struct ir_expr **which = e->source->thread_axes & (1u << d) ? member : group;
    *which = binary(e, OP_ADD, binary(e, OP_MUL, *which, number(e, block[d])), thread(e, d));
  }
  *member = let(e, "member", *member);
  *group = let(e, "group", *group);
}

static void emit_tree(struct emitter *e, struct ir_expr **values, bool is_in_loop) {
  struct allreduce_shape shape = e->choice.shape;
  struct ir_expr *member, *group;
  coordinates(e, &member, &group);
  // consecutive lanes use consecutive words, whichever of the two runs fastest
  bool member_fastest = shape.stride == 1;
  uint32_t step = member_fastest ? 1 : shape.groups;
  struct ir_expr *first = member_fastest ? binary(e, OP_MUL, group, number(e, shape.extent)) : group;
  first = let(e, "first", first);
  struct ir_expr *word = let(e, "word", binary(e, OP_ADD, first, binary(e, OP_MUL, member, number(e, step))));
  struct ir_mem **scratch = arena_array(e->arena, struct ir_mem *, e->count);
  struct ir_stmt **kept = arena_array(e->arena, struct ir_stmt *, e->count);
  struct ir_expr **others = arena_array(e->arena, struct ir_expr *, e->count), **sums = arena_array(e->arena, struct ir_expr *, e->count);
  if (is_in_loop) barrier(e);
  for (uint32_t k = 0; k < e->count; k++) {
    scratch[k] = new_scratch(e, k, shape.threads);
    store(e, scratch[k], word, values[k]);
    kept[k] = ir_stmt(e->arena, IR_VAR, e->source->range);
    kept[k]->var = ir_new_var(e->kernel, VAR_MUTABLE, scratch[k]->type, "total");
    kept[k]->value = values[k];
    list_push(e->arena, e->out, kept[k]);
  }
  barrier(e);
  bool in_order = e->reducer->is_ordered;
  for (uint32_t left = next_power_of_two(shape.extent) / 2, offset = in_order ? 1 : left; in_order ? offset < shape.extent : offset >= 1;
       offset = in_order ? offset * 2 : offset / 2) {
    bool is_last = in_order ? offset * 2 >= shape.extent : offset == 1;
    struct ir_expr *inside = binary(e, OP_LT, binary(e, OP_ADD, member, number(e, offset)), number(e, shape.extent));
    struct ir_expr *mine = in_order ? binary(e, OP_EQ, binary(e, OP_REM, member, number(e, 2 * offset)), number(e, 0)) : binary(e, OP_LT, member, number(e, offset));
    struct list *outer = open_if(e, binary(e, OP_AND, mine, inside));
    for (uint32_t k = 0; k < e->count; k++) others[k] = load(e, scratch[k], binary(e, OP_ADD, word, number(e, (int64_t)offset * step)), "other");
    for (uint32_t k = 0; k < e->count; k++) values[k] = ir_ref(e->arena, kept[k]->var);
    combine(e, values, others, sums);
    for (uint32_t k = 0; k < e->count; k++) sums[k] = let(e, "part", sums[k]);
    for (uint32_t k = 0; k < e->count; k++) {
      struct ir_stmt *set = ir_stmt(e->arena, IR_SET, e->source->range);
      set->var = kept[k]->var;
      set->value = sums[k];
      list_push(e->arena, e->out, set);
      if (!is_last || e->source->result_in_all) store(e, scratch[k], word, sums[k]);
    }
    e->out = outer;
    if (!is_last || e->source->result_in_all) barrier(e);
  }
  for (uint32_t k = 0; k < e->count; k++)
    values[k] = e->source->result_in_all ? load(e, scratch[k], first, "all") : ir_ref(e->arena, kept[k]->var);
}

// --- The pass -----------------------------------------------------------------------------------------------------------

static void explain(struct emitter *e) {
  static const char *const forms[] = {"none: one thread a group", "shuffle xor", "shuffle down, each combine guarded", "shuffle xor or down, a shared word a warp, shuffle xor", "shuffle xor at a stride, a shared word a warp and group, shuffle xor", "tree in shared memory"};
  struct text *out = e->context->explain;
  if (!out || e->entry->is_general) return; // the general entry does the same
  const struct allreduce_choice *c = &e->choice;
  text_printf(out, "%s:%u: %s over", e->entry->name, e->source->range.line, e->reducer->name);
  for (uint32_t d = 0; d < 3; d++)
    if (e->source->thread_axes & (1u << d)) text_printf(out, " thread.%c", (char)('x' + d));
  text_printf(out, "\n  form      %s\n", forms[c->kind]);
  if (c->refused) text_printf(out, "  refused   shuffles alone: %s\n", c->refused);
  text_printf(out, "  block     %u x %u x %u threads\n", e->entry->block[0], e->entry->block[1], e->entry->block[2]);
  text_printf(out, "  group     %u threads, %u group%s a block, stride %u\n", c->shape.extent, c->shape.groups, c->shape.groups == 1 ? "" : "s", c->shape.stride);
  if (c->kind != ALLREDUCE_TREE && c->kind != ALLREDUCE_COPY) {
    uint32_t partial = c->shape.threads % 32;
    if (c->shape.threads >= 32) text_printf(out, "  mask      0xffffffff");
    if (partial) text_printf(out, "%s0x%08x%s", c->shape.threads >= 32 ? ", the last warp " : "  mask      ", (1u << partial) - 1, "");
    text_puts(out, "\n");
  }
  text_printf(out, "  steps     %u\n  barriers  %u\n  shared    %u bytes\n  result    %s\n", c->steps, c->barriers, c->shared_bytes,
              e->source->result_in_all ? "in every thread" : "in each group's first thread");
}

static bool lower(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, struct ir_stmt *source, bool is_in_loop, struct list *out) {
  struct emitter e = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry, .source = source, .reducer = source->reducer,
                      .count = source->inputs.count, .out = out};
  if (!allreduce_choose(entry->block, source->thread_axes, source->reducer, source->result_in_all, source->form, &e.choice)) {
    diag_error(context->diag, ERROR_COLLECTIVE, source->range, "this reduction cannot be done by shuffles: %s", e.choice.refused);
    diag_note(context->diag, (struct range){0}, "legal here: allreduce ... by tree, or by auto");
    return false;
  }
  explain(&e);
  struct ir_expr **values = arena_array(e.arena, struct ir_expr *, e.count);
  for (uint32_t k = 0; k < e.count; k++) values[k] = let(&e, "own", source->inputs.at[k]);
  switch (e.choice.kind) {
  case ALLREDUCE_COPY: break;
  case ALLREDUCE_XOR: emit_butterfly(&e, existing_lanes(&e), e.choice.shape.extent, e.choice.shape.stride, !source->result_in_all, values); break;
  case ALLREDUCE_GUARDED: emit_guarded(&e, values); break;
  case ALLREDUCE_WARPS: emit_warps(&e, values, is_in_loop); break;
  case ALLREDUCE_STRIDED: emit_strided(&e, values, is_in_loop); break;
  case ALLREDUCE_TREE: emit_tree(&e, values, is_in_loop); break;
  }
  for (uint32_t k = 0; k < e.count; k++) list_push(e.arena, out, ir_let(e.arena, source->results.at[k], values[k], source->range));
  return true;
}

static bool lower_block(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, struct list *block, bool is_in_loop) {
  struct list out = {0};
  bool good = true;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_ALLREDUCE) {
      good &= lower(context, kernel, entry, stmt, is_in_loop, &out);
      continue;
    }
    good &= lower_block(context, kernel, entry, &stmt->body, is_in_loop || stmt->kind == IR_FOR);
    good &= lower_block(context, kernel, entry, &stmt->otherwise, is_in_loop);
    list_push(context->arena, &out, stmt);
  }
  *block = out;
  return good;
}

bool pass_allreduce(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  return lower_block(context, kernel, entry, &entry->body, false);
}
