// How blocks find the last one of them: a part of pass `nest`.
#include "passes/arrival.h"

#include "passes/stage.h"

struct arrival {
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct ir_expr *const *logical;
};

static struct ir_var *new_let(struct arrival *a, const char *label, enum type type) { return ir_new_var(a->kernel, VAR_LET, type, label); }

static struct ir_stmt *push(struct arrival *a, struct list *out, enum ir_stmt_kind kind) {
  struct ir_stmt *stmt = ir_stmt(a->arena, kind, a->entry->range);
  list_push(a->arena, out, stmt);
  return stmt;
}

// The block axes that stages behind the arrival have.
static uint32_t axes_behind(const struct ir_entry *entry, const struct ir_stage *arrive) {
  uint32_t mask = 0;
  bool is_behind = false;
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    const struct ir_stage *stage = entry->stages.at[i];
    for (uint32_t d = 0; d < 3 && is_behind; d++)
      if (stage_bound_axis(stage, (enum ir_bind)(BIND_BLOCK_X + d))) mask |= 1u << d;
    is_behind |= stage == arrive;
  }
  return mask;
}

// Nothing is counted: the block whose place is the last goes on.
static struct list *arrive_in_order(struct arrival *a, const struct ir_stage *stage, struct list *out) {
  struct ir_expr *is_last = ir_int(a->arena, TYPE_BOOL, 1);
  for (uint32_t d = 0; d < 3; d++) {
    if (!(stage->block_axes >> d & 1)) continue;
    struct ir_expr *last = ir_binary(a->arena, OP_SUB, ir_cast(a->arena, TYPE_INDEX, entry_grid_extent(a->arena, a->entry, d)), ir_int(a->arena, TYPE_INDEX, 1));
    is_last = ir_binary(a->arena, OP_AND, is_last, ir_binary(a->arena, OP_EQ, a->logical[d], last));
  }
  struct ir_stmt *test = push(a, out, IR_IF);
  test->value = is_last;
  return &test->body;
}

// All stores of this block are before the count that one of its threads makes, between two fences; who finds that all others
// have counted is the last. The counter wraps to 0 by itself. Along axes that nothing behind has, only the first blocks wrote pieces,
// and only they go on. Returns the list that the last block's statements go to.
struct list *arrival_emit(struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_stage *stage, struct ir_expr *const logical[3], struct list *out) {
  struct arrival all = {kernel->names.arena, kernel, entry, logical}, *a = &all;
  struct arena *arena = a->arena;
  if (!stage->mem) return arrive_in_order(a, stage, out);
  struct ir_expr *place = ir_int(arena, TYPE_INDEX, 0), *count = ir_int(arena, TYPE_I64, 1);
  for (int d = 3; d-- > 0;) {
    struct ir_expr *extent = entry_grid_extent(arena, a->entry, (uint32_t)d);
    if (stage->block_axes >> d & 1) count = ir_binary(arena, OP_MUL, count, extent);
    else if (!ir_const_is(extent, 1)) place = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, place, ir_cast(arena, TYPE_INDEX, extent)), a->logical[d]);
  }
  struct ir_expr *last = ir_cast(arena, TYPE_U32, ir_binary(arena, OP_SUB, count, ir_int(arena, TYPE_I64, 1)));
  struct ir_mem *seen = arena_new(arena, struct ir_mem);
  seen->label = "arrival";
  seen->name = ir_fresh_name(a->kernel, seen->label);
  seen->space = SPACE_SHARED;
  seen->type = TYPE_U32;
  seen->alignment = 4;
  list_push(arena, &seen->dims, ir_int(arena, TYPE_I64, 1));
  list_push(arena, &seen->strides, ir_int(arena, TYPE_I64, 1));
  list_push(arena, &a->entry->memory, seen);
  push(a, out, IR_BARRIER);
  struct ir_expr *is_first = ir_int(arena, TYPE_BOOL, 1);
  for (uint32_t d = 0; d < 3; d++)
    if (a->entry->block[d] > 1) is_first = ir_binary(arena, OP_AND, is_first, ir_binary(arena, OP_EQ, ir_special(arena, OP_THREAD, d), ir_int(arena, TYPE_INDEX, 0)));
  struct list *inside = out;
  if (!ir_const_is(is_first, 1)) {
    struct ir_stmt *test = push(a, out, IR_IF);
    test->value = is_first;
    inside = &test->body;
  }
  push(a, inside, IR_FENCE);
  struct ir_stmt *atomic = push(a, inside, IR_ATOMIC);
  atomic->atomic = ATOMIC_INC;
  atomic->mem = stage->mem;
  list_push(arena, &atomic->indices, place);
  atomic->value = last;
  struct ir_var *before = new_let(a, "before", TYPE_U32);
  list_push(arena, &atomic->results, before);
  push(a, inside, IR_FENCE);
  struct ir_stmt *store = push(a, inside, IR_STORE);
  store->mem = seen;
  list_push(arena, &store->indices, ir_int(arena, TYPE_INDEX, 0));
  store->value = ir_ref(arena, before);
  push(a, out, IR_BARRIER);
  struct ir_var *arrived = new_let(a, "arrived", TYPE_U32);
  struct list first = {0};
  list_push(arena, &first, ir_int(arena, TYPE_INDEX, 0));
  list_push(arena, out, ir_let(arena, arrived, ir_load(arena, seen, &first), a->entry->range));
  struct ir_stmt *test = push(a, out, IR_IF);
  test->value = ir_binary(arena, OP_EQ, ir_ref(arena, arrived), last);
  uint32_t missing = ~(stage->block_axes | axes_behind(entry, stage));
  for (uint32_t d = 0; d < 3; d++)
    if (missing >> d & 1 && !ir_const_is(entry_grid_extent(arena, entry, d), 1))
      test->value = ir_binary(arena, OP_AND, test->value, ir_binary(arena, OP_EQ, logical[d], ir_int(arena, TYPE_INDEX, 0)));
  return &test->body;
}
