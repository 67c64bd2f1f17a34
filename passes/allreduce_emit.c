// Statements and expressions that the forms of pass `allreduce` share.
#include "passes/allreduce_emit.h"
#include "passes/stage.h"

struct ir_expr *emit_number(struct emitter *e, int64_t value) { return ir_int(e->arena, e->entry->index_type, value); }

struct ir_expr *emit_u32(struct emitter *e, uint32_t value) { return ir_int(e->arena, TYPE_U32, value); }

struct ir_expr *emit_binary(struct emitter *e, enum op op, struct ir_expr *a, struct ir_expr *b) { return ir_binary(e->arena, op, a, b); }

struct ir_expr *emit_let(struct emitter *e, const char *label, struct ir_expr *value) {
  if (value->op == OP_VAR || value->op == OP_CONST) return value;
  struct ir_var *var = ir_new_var(e->kernel, VAR_LET, value->type, label);
  var->range = e->source->range;
  list_push(e->arena, e->out, ir_let(e->arena, var, value, e->source->range));
  return ir_ref(e->arena, var);
}

// --- Where a thread is --------------------------------------------------------------------------------------------

struct ir_expr *emit_thread(struct emitter *e, uint32_t d) {
  if (e->entry->block[d] == 1) return emit_number(e, 0);
  struct ir_expr *special = ir_special(e->arena, OP_THREAD, d);
  special->type = e->entry->index_type;
  return special;
}

struct ir_expr *emit_linear(struct emitter *e) {
  const uint32_t *block = e->entry->block;
  if (e->linear) return e->linear;
  struct ir_expr *yz = emit_binary(e, OP_ADD, emit_thread(e, 1), emit_binary(e, OP_MUL, emit_thread(e, 2), emit_number(e, block[1])));
  struct ir_expr *all = emit_binary(e, OP_ADD, emit_thread(e, 0), emit_binary(e, OP_MUL, yz, emit_number(e, block[0])));
  return e->linear = all->op == OP_THREAD ? all : emit_let(e, "linear", all);
}

struct ir_expr *emit_lane(struct emitter *e) {
  if (e->lane) return e->lane;
  if (e->choice.shape.threads <= 32) return e->lane = emit_linear(e);
  return e->lane = emit_let(e, "lane", emit_binary(e, OP_REM, emit_linear(e), emit_number(e, 32)));
}

struct ir_expr *emit_warp(struct emitter *e) {
  if (e->warp) return e->warp;
  return e->warp = emit_let(e, "warp", emit_binary(e, OP_QUO, emit_linear(e), emit_number(e, 32)));
}

struct ir_expr *emit_existing_lanes(struct emitter *e) {
  uint32_t threads = e->choice.shape.threads, partial = threads % 32;
  if (e->mask) return e->mask;
  uint32_t last = (1u << partial) - 1;
  if (partial == 0) return e->mask = emit_u32(e, 0xffffffffu);
  if (threads < 32) return e->mask = emit_u32(e, last);
  struct ir_expr *is_last = emit_binary(e, OP_EQ, emit_warp(e), emit_number(e, threads / 32));
  return e->mask = emit_let(e, "mask", ir_select(e->arena, is_last, emit_u32(e, last), emit_u32(e, 0xffffffffu)));
}

struct ir_expr *emit_segment(struct emitter *e) {
  uint32_t extent = e->choice.shape.extent, stride = e->choice.shape.stride, lanes = 0;
  for (uint32_t i = 0; i < extent; i++) lanes |= 1u << i * stride;
  if (extent * stride == 32 && stride == 1) return emit_u32(e, lanes);
  // the first lane: the bits of a lane's number that say which member it is are dropped
  struct ir_expr *first = emit_binary(e, OP_AND, emit_lane(e), emit_number(e, 31 & ~((extent - 1) * stride)));
  return emit_let(e, "segment", emit_binary(e, OP_SHL, emit_u32(e, lanes), ir_cast(e->arena, TYPE_U32, first)));
}

struct place emit_remember(const struct emitter *e) { return (struct place){e->linear, e->lane, e->warp, e->mask}; }

void emit_recall(struct emitter *e, struct place place) {
  e->linear = place.linear;
  e->lane = place.lane;
  e->warp = place.warp;
  e->mask = place.mask;
}

struct list *emit_if(struct emitter *e, struct ir_expr *condition) {
  struct ir_stmt *test = ir_stmt(e->arena, IR_IF, e->source->range);
  test->value = condition;
  list_push(e->arena, e->out, test);
  struct list *outer = e->out;
  e->out = &test->body;
  return outer;
}

void emit_barrier(struct emitter *e) { list_push(e->arena, e->out, ir_stmt(e->arena, IR_BARRIER, e->source->range)); }

void emit_syncwarp(struct emitter *e) {
  struct ir_expr *mask = emit_existing_lanes(e);
  struct ir_stmt *stmt = ir_stmt(e->arena, IR_SYNCWARP, e->source->range);
  stmt->value = mask;
  list_push(e->arena, e->out, stmt);
}

// --- Values -------------------------------------------------------------------------------------------------------------

// Shuffles move numbers; a bool travels as u32.
struct ir_expr *emit_shuffle(struct emitter *e, enum op op, struct ir_expr *mask, struct ir_expr *value, struct ir_expr *where,
                             const char *label) {
  bool is_bool = value->type == TYPE_BOOL;
  struct ir_expr *moved = is_bool ? emit_let(e, "bit", ir_cast(e->arena, TYPE_U32, value)) : value;
  struct ir_expr *args[3] = {mask, moved, where};
  struct ir_expr *result = emit_let(e, label, ir_raw(e->arena, op, moved->type, args, 3));
  return is_bool ? emit_let(e, label, ir_cast(e->arena, TYPE_BOOL, result)) : result;
}

void emit_combine(struct emitter *e, const struct part *part, struct ir_expr **a, struct ir_expr **b, struct ir_expr **results) {
  uint32_t tuple = part->reducer->identity.count;
  struct ir_expr **arguments = arena_array(e->arena, struct ir_expr *, 2 * tuple), **combined = arena_array(e->arena, struct ir_expr *, tuple);
  for (uint32_t first = 0; first < part->count; first += tuple) {
    for (uint32_t k = 0; k < tuple; k++) {
      arguments[k] = a[first + k];
      arguments[tuple + k] = b[first + k];
    }
    ir_inline(e->kernel, &part->reducer->combine, arguments, e->out, part->source->range, combined);
    for (uint32_t k = 0; k < tuple; k++) results[first + k] = combined[k];
  }
}

struct ir_expr *emit_identity(const struct part *part, uint32_t k) { return part->reducer->identity.at[k % part->reducer->identity.count]; }

// --- Shared memory ----------------------------------------------------------------------------------------------------

static struct ir_mem *new_shared(struct emitter *e, const char *label, enum type type) {
  struct ir_mem *mem = arena_new(e->arena, struct ir_mem);
  mem->label = arena_printf(e->arena, "%s_shared", label);
  mem->name = ir_fresh_name(e->kernel, mem->label);
  mem->space = SPACE_SHARED;
  mem->type = type;
  mem->alignment = type_bytes(type);
  mem->range = e->source->range;
  list_push(e->arena, &mem->dims, ir_int(e->arena, TYPE_I64, 0));
  list_push(e->arena, &mem->strides, ir_int(e->arena, TYPE_I64, 1));
  list_push(e->arena, &e->entry->memory, mem);
  return mem;
}

static bool is_used(const struct emitter *e, const struct scratch *scratch) {
  for (uint32_t i = 0; i < e->used.count; i++)
    if (e->used.at[i] == scratch) return true;
  return false;
}

// Words of the reduction's turn; of the other one where memory is short, at the cost of a barrier that pass `barriers` finds to be missing.
static struct ir_mem *take_scratch(struct emitter *e, const char *label, enum type type, uint32_t words) {
  struct scratch *found = NULL;
  for (uint32_t i = 0; i < e->pool->objects.count && !found; i++) {
    struct scratch *scratch = e->pool->objects.at[i];
    if (scratch->mem->type == type && scratch->turn == e->pool->turn && !is_used(e, scratch)) found = scratch;
  }
  bool is_short = entry_shared_bytes(e->entry, false) + (int64_t)words * type_bytes(type) > ALLREDUCE_SHARED_LIMIT;
  for (uint32_t i = 0; is_short && i < e->pool->objects.count && !found; i++) {
    struct scratch *scratch = e->pool->objects.at[i];
    if (scratch->mem->type == type && !is_used(e, scratch)) found = scratch;
  }
  if (!found) {
    found = arena_new(e->arena, struct scratch);
    *found = (struct scratch){.mem = new_shared(e, label, type), .turn = e->pool->turn};
    list_push(e->arena, &e->pool->objects, found);
  }
  list_push(e->arena, &e->used, found);
  if (found->words < words) {
    found->words = words;
    found->mem->dims.at[0] = ir_int(e->arena, TYPE_I64, words);
  }
  return found->mem;
}

void emit_scratch(struct emitter *e, struct part *part, uint32_t words) {
  part->scratch = arena_array(e->arena, struct ir_mem *, part->count);
  for (uint32_t k = 0; k < part->count; k++) {
    const struct ir_var *result = part->source->results.at[k];
    part->scratch[k] = take_scratch(e, result->label, emit_identity(part, k)->type, words);
  }
}

void emit_store(struct emitter *e, struct ir_mem *mem, struct ir_expr *index, struct ir_expr *value) {
  struct ir_stmt *stmt = ir_stmt(e->arena, IR_STORE, e->source->range);
  stmt->mem = mem;
  stmt->is_flat = true;
  stmt->value = value;
  list_push(e->arena, &stmt->indices, index);
  list_push(e->arena, e->out, stmt);
}

struct ir_expr *emit_load(struct emitter *e, struct ir_mem *mem, struct ir_expr *index, const char *label) {
  struct ir_expr *loaded = ir_raw(e->arena, OP_LOAD_FLAT, mem->type, &index, 1);
  loaded->mem = mem;
  return emit_let(e, label, loaded);
}

// --- Values that a branch changes -------------------------------------------------------------------------------------

void emit_keep(struct emitter *e, struct part *part) {
  part->kept = arena_array(e->arena, struct ir_stmt *, part->count);
  for (uint32_t k = 0; k < part->count; k++) {
    struct ir_stmt *stmt = part->kept[k] = ir_stmt(e->arena, IR_VAR, e->source->range);
    stmt->var = ir_new_var(e->kernel, VAR_MUTABLE, part->values[k]->type, "total");
    stmt->value = part->values[k];
    list_push(e->arena, e->out, stmt);
  }
}

void emit_set(struct emitter *e, const struct part *part, struct ir_expr **values) {
  for (uint32_t k = 0; k < part->count; k++) {
    struct ir_stmt *set = ir_stmt(e->arena, IR_SET, e->source->range);
    set->var = part->kept[k]->var;
    set->value = values[k];
    list_push(e->arena, e->out, set);
  }
}

void emit_take_kept(struct emitter *e, struct part *part) {
  for (uint32_t k = 0; k < part->count; k++) part->values[k] = ir_ref(e->arena, part->kept[k]->var);
}
