// Statements of programs, and those that stages share with them.
#include "compiler/verify.h"

#include <string.h>

static void name_statement(struct verifier *v, const struct ir_stmt *s) {
  v->statement = ir_stmt_title(s, &v->scratch);
  if (s->range.line) v->range = s->range;
}

static bool is_offset_type(const struct verifier *v, enum type type) {
  return v->entry->index_type == TYPE_INDEX ? type == TYPE_INDEX : type == TYPE_I32 || type == TYPE_I64;
}

// A variable that this statement brings, of the kind that it brings.
static void declare(struct verifier *v, const struct ir_var *var, enum ir_var_kind kind) {
  if (var->kind != kind)
    verify_fault(v, v->range, "variable '%s' is of another kind than its statement", var->name);
  if (v->entry->index_type != TYPE_INDEX && var->type == TYPE_INDEX)
    verify_fault(v, v->range, "variable '%s' has type index behind the pass that replaces it", var->name);
  verify_declare(v, var->name, var, false);
}

static void check_value(struct verifier *v, const struct ir_var *var, const struct ir_expr *value,
                        enum place place) {
  if (verify_expr(v, value, place, true) && value->type != var->type)
    verify_fault(v, v->range, "the value of '%s' has type %s, not %s", var->name, type_name(value->type),
                 type_name(var->type));
}

void verify_let(struct verifier *v, const struct ir_stmt *s, enum place place, bool may_repeat) {
  if (s->kind != IR_LET || !s->var) {
    verify_fault(v, v->range, "a statement other than 'let' in a stage or reducer");
    return;
  }
  name_statement(v, s);
  check_value(v, s->var, s->value, place);
  // What was an axis and is now computed from its pieces may still say so.
  bool is_axis = may_repeat && s->var->kind == VAR_AXIS;
  if (s->var->kind != VAR_LET && !is_axis)
    verify_fault(v, v->range, "variable '%s' is of another kind than its statement", s->var->name);
  verify_declare(v, s->var->name, s->var, may_repeat);
}

void verify_store(struct verifier *v, const struct ir_mem *mem, const struct list *indices, bool is_flat,
                  const struct ir_expr *value, enum place place) {
  if (!mem || !verify_is_visible(v, mem->name, mem)) {
    verify_fault(v, v->range, "memory object '%s' is not declared here", mem ? mem->name : "?");
    return;
  }
  uint32_t rank = is_flat ? 1 : mem->dims.count;
  if (indices->count != rank)
    verify_fault(v, v->range, "a store to '%s' takes %u indices, found %u", mem->name, rank, indices->count);
  for (uint32_t i = 0; i < indices->count; i++)
    verify_typed(v, list_at(indices, struct ir_expr, i), place, v->entry->index_type, "an index");
  if (mem->space == SPACE_GLOBAL && !mem->is_output)
    verify_fault(v, v->range, "tensor '%s' is stored to and is no output", mem->name);
  if (!verify_expr(v, value, place, false)) return;
  bool converts = type_class_of(mem->type) == CLASS_STORAGE && value->type == TYPE_F32;
  if (value->type != mem->type && !converts)
    verify_fault(v, v->range, "a value of type %s is stored to '%s' of type %s", type_name(value->type),
                 mem->name, type_name(mem->type));
}

// One access of 2 to 16 bytes, a power of two, that holds two elements or more.
static void check_wide(struct verifier *v, const struct ir_stmt *s) {
  const struct ir_mem *mem = s->mem;
  bool loads = s->kind == IR_LOAD_WIDE;
  if (!mem || !verify_is_visible(v, mem->name, mem)) {
    verify_fault(v, v->range, "memory object '%s' is not declared here", mem ? mem->name : "?");
    return;
  }
  uint32_t rank = s->is_flat ? 1 : mem->dims.count, count = loads ? s->results.count : s->inputs.count;
  uint64_t bytes = (uint64_t)count * type_bytes(mem->type);
  if (count < 2 || (bytes & (bytes - 1)) || bytes > 16)
    verify_fault(v, v->range, "a wide access of %u elements of type %s", count, type_name(mem->type));
  if (s->indices.count != rank)
    verify_fault(v, v->range, "an access of '%s' takes %u indices, found %u", mem->name, rank, s->indices.count);
  for (uint32_t i = 0; i < s->indices.count; i++)
    verify_typed(v, list_at(&s->indices, struct ir_expr, i), PLACE_PROGRAM, v->entry->index_type, "an index");
  if (mem->space == SPACE_GLOBAL && !loads && !mem->is_output)
    verify_fault(v, v->range, "tensor '%s' is stored to and is no output", mem->name);
  for (uint32_t i = 0; i < s->inputs.count; i++)
    verify_typed(v, list_at(&s->inputs, struct ir_expr, i), PLACE_PROGRAM, mem->type, "a value");
  for (uint32_t i = 0; i < s->results.count; i++) {
    const struct ir_var *result = list_at(&s->results, struct ir_var, i);
    if (result->type != mem->type)
      verify_fault(v, v->range, "result '%s' has type %s, not %s", result->name, type_name(result->type), type_name(mem->type));
    declare(v, result, VAR_LET);
  }
}

static void check_for(struct verifier *v, const struct ir_stmt *s) {
  if (!is_offset_type(v, s->var->type))
    verify_fault(v, v->range, "loop variable '%s' has type %s", s->var->name, type_name(s->var->type));
  verify_typed(v, s->lo, PLACE_PROGRAM, s->var->type, "the lower bound");
  verify_typed(v, s->hi, PLACE_PROGRAM, s->var->type, "the upper bound");
  uint32_t outside = v->scope.count;
  declare(v, s->var, VAR_AXIS);
  verify_body(v, &s->body);
  verify_leave_scope(v, outside);
}

static void check_if(struct verifier *v, const struct ir_stmt *s) {
  verify_typed(v, s->value, PLACE_PROGRAM, TYPE_BOOL, "the condition");
  uint32_t outside = v->scope.count;
  verify_body(v, &s->body);
  verify_leave_scope(v, outside);
  verify_body(v, &s->otherwise);
  verify_leave_scope(v, outside);
}

static void check_allreduce(struct verifier *v, const struct ir_stmt *s) {
  if (!verify_has_reducer(v, s->reducer)) {
    verify_fault(v, v->range, "a reducer that the module does not list");
    return;
  }
  const struct list *components = &s->reducer->identity;
  if (!s->thread_axes || s->thread_axes > 7) verify_fault(v, v->range, "an allreduce over no thread axis");
  if (s->form > FORM_TREE) verify_fault(v, v->range, "an allreduce of no known form");
  uint32_t tuples = components->count ? s->inputs.count / components->count : 0; // reduced side by side
  struct list like = {0};
  for (uint32_t i = 0; i < (tuples ? tuples : 1); i++) list_append(&v->scratch, &like, components);
  verify_matching(v, &s->inputs, &like, PLACE_PROGRAM, "input");
  if (s->results.count != like.count) {
    verify_fault(v, v->range, "the number of results is %u, not %u", s->results.count, like.count);
    return;
  }
  for (uint32_t i = 0; i < like.count; i++) {
    const struct ir_var *result = list_at(&s->results, struct ir_var, i);
    enum type type = list_at(&like, struct ir_expr, i)->type;
    if (result->type != type)
      verify_fault(v, v->range, "result '%s' has type %s, not %s", result->name, type_name(result->type),
                   type_name(type));
    declare(v, result, VAR_LET);
  }
}

// What atomics change: 32 and 64 bits wide, all but the wrapping increment of integers and floats as the device has them.
static void check_atomic(struct verifier *v, const struct ir_stmt *s) {
  const struct ir_mem *mem = s->mem;
  verify_store(v, mem, &s->indices, s->is_flat, s->value, PLACE_PROGRAM);
  if (!mem || s->results.count > 1) {
    verify_fault(v, v->range, "an atomic has one memory object and at most one result");
    return;
  }
  bool is_wide = type_bits(mem->type) >= 32, is_sum = s->atomic == ATOMIC_ADD;
  if (!is_wide || (type_is_float(mem->type) && !is_sum) || (!type_is_integer(mem->type) && !type_is_float(mem->type)) ||
      (s->atomic == ATOMIC_INC && mem->type != TYPE_U32) || mem->space == SPACE_LOCAL)
    verify_fault(v, v->range, "no atomic changes '%s' of type %s like that", mem->name, type_name(mem->type));
  for (uint32_t i = 0; i < s->results.count; i++) {
    const struct ir_var *result = list_at(&s->results, struct ir_var, i);
    if (result->type != mem->type)
      verify_fault(v, v->range, "result '%s' has type %s, not %s", result->name, type_name(result->type), type_name(mem->type));
    declare(v, result, VAR_LET);
  }
}

void verify_copy(struct verifier *v, const struct ir_mem *mem, const struct ir_expr *value) {
  if (!mem || mem->space != SPACE_SHARED)
    verify_fault(v, v->range, "an asynchronous copy goes to shared memory");
  else if (!value || (value->op != OP_LOAD && value->op != OP_LOAD_FLAT) || !value->mem || value->mem->space != SPACE_GLOBAL || value->mem->is_output ||
           value->mem->workspace || value->type != mem->type)
    verify_fault(v, v->range, "an asynchronous copy takes elements of an input, of the type of '%s'", mem->name);
}

// Behind pass `index` a copy has the 4, 8 or 16 bytes that machines copy.
static void check_copy(struct verifier *v, const struct ir_stmt *s) {
  verify_store(v, s->mem, &s->indices, s->is_flat, s->value, PLACE_PROGRAM);
  verify_copy(v, s->mem, s->value);
  uint64_t bytes = s->mem ? (uint64_t)s->count * type_bytes(s->mem->type) : 4;
  if (bytes < (s->is_flat ? 4 : 1) || (bytes & (bytes - 1)) || bytes > 16)
    verify_fault(v, v->range, "an asynchronous copy of %u elements of type %s", s->count, type_name(s->mem->type));
  if (s->value->op == (s->is_flat ? OP_LOAD : OP_LOAD_FLAT))
    verify_fault(v, v->range, "an asynchronous copy has one offset or one index a dimension on both sides");
}

static void check_stmt(struct verifier *v, const struct ir_stmt *s) {
  bool has_var = s->kind == IR_LET || s->kind == IR_VAR || s->kind == IR_SET || s->kind == IR_FOR;
  if (has_var && !s->var) {
    verify_fault(v, v->range, "a statement without its variable");
    return;
  }
  switch (s->kind) {
  case IR_LET:
  case IR_VAR:
    check_value(v, s->var, s->value, PLACE_PROGRAM);
    declare(v, s->var, s->kind == IR_LET ? VAR_LET : VAR_MUTABLE);
    return;
  case IR_SET:
    if (!verify_is_visible(v, s->var->name, s->var))
      verify_fault(v, v->range, "variable '%s' is not defined here", s->var->name);
    else if (s->var->kind != VAR_MUTABLE)
      verify_fault(v, v->range, "variable '%s' is immutable", s->var->name);
    check_value(v, s->var, s->value, PLACE_PROGRAM);
    return;
  case IR_STORE: verify_store(v, s->mem, &s->indices, s->is_flat, s->value, PLACE_PROGRAM); return;
  case IR_FOR: check_for(v, s); return;
  case IR_IF: check_if(v, s); return;
  case IR_ALLREDUCE: check_allreduce(v, s); return;
  case IR_BARRIER: return;
  case IR_LOAD_WIDE:
  case IR_STORE_WIDE: check_wide(v, s); return;
  case IR_ATOMIC: check_atomic(v, s); return;
  case IR_COPY: check_copy(v, s); return;
  case IR_COPY_WAIT:
    if (s->count > 1024) verify_fault(v, v->range, "a wait for all but %u groups", s->count);
    return;
  case IR_COPY_COMMIT:
  case IR_FENCE:
  case IR_GRID_WAIT:
  case IR_GRID_READY: return;
  case IR_SYNCWARP: verify_typed(v, s->value, PLACE_PROGRAM, TYPE_U32, "the mask"); return;
  }
  verify_fault(v, v->range, "a statement of no known kind");
}

void verify_body(struct verifier *v, const struct list *block) {
  struct range around = v->range;
  const char *statement = v->statement;
  if (v->depth >= IR_TEXT_MAX_DEPTH) {
    verify_fault(v, v->range, "statements are nested more than %d deep", IR_TEXT_MAX_DEPTH);
    return;
  }
  v->depth++;
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *s = list_at(block, struct ir_stmt, i);
    name_statement(v, s);
    check_stmt(v, s);
    v->range = around;
    v->statement = statement;
  }
  v->depth--;
}
