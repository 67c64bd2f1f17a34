// Which variables of a program count, and which are indices.
//
// A variable that nothing depends on is not printed: compilers warn of it. An index, computed from
// coordinates, counters, sizes and constants alone, and part of an offset or a bound, lies inside its object,
// so its sums and products do not overflow and are printed as they are; all other signed arithmetic goes
// through unsigned, where C++ lets it wrap.
#include "codegen/cuda.h"
#include "codegen/program.h"

struct cuda_var *cuda_var(struct cuda *cg, struct ir_var *var) {
  if (var->mark == 0) {
    struct cuda_var *known = arena_new(cg->context->arena, struct cuda_var);
    known->var = var;
    known->is_in_offset = var->was_index;
    known->is_index = var->was_index;
    list_push(cg->context->arena, &cg->vars, known);
    var->mark = cg->vars.count;
  }
  return list_at(&cg->vars, struct cuda_var, var->mark - 1);
}

// --- Live --------------------------------------------------------------------------------------------------

// Marks what an expression reads. Returns whether anything was new.
static bool read_expr(struct cuda *cg, const struct ir_expr *e) {
  bool changed = false;
  if (e->op == OP_VAR) {
    struct cuda_var *var = cuda_var(cg, e->var);
    changed = !var->is_live;
    var->is_live = true;
  } else if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) {
    struct cuda_object *object = (struct cuda_object *)cuda_object(cg, e->mem);
    changed = object && !object->is_loaded;
    if (object) object->is_loaded = true;
  }
  for (uint32_t i = 0; i < e->count; i++) changed |= read_expr(cg, e->args[i]);
  return changed;
}

// One walk, last statement first, so that a chain of lets takes one; loops may need another.
static bool find_live(struct cuda *cg, const struct list *block) {
  bool changed = false;
  for (uint32_t i = block->count; i-- > 0;) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    changed |= find_live(cg, &stmt->body);
    changed |= find_live(cg, &stmt->otherwise);
    bool is_assignment = stmt->kind == IR_LET || stmt->kind == IR_VAR || stmt->kind == IR_SET;
    if (is_assignment && !cuda_var(cg, stmt->var)->is_live) continue;
    if (stmt->value) changed |= read_expr(cg, stmt->value);
    if (stmt->lo) changed |= read_expr(cg, stmt->lo);
    if (stmt->hi) changed |= read_expr(cg, stmt->hi);
    for (uint32_t k = 0; k < stmt->inputs.count; k++)
      changed |= read_expr(cg, list_at(&stmt->inputs, struct ir_expr, k));
    for (uint32_t k = 0; k < stmt->indices.count; k++)
      changed |= read_expr(cg, list_at(&stmt->indices, struct ir_expr, k));
    if (stmt->kind == IR_LOAD_WIDE) {
      struct cuda_object *object = (struct cuda_object *)cuda_object(cg, stmt->mem);
      changed |= object && !object->is_loaded;
      if (object) object->is_loaded = true;
    }
  }
  return changed;
}

// --- Indices -----------------------------------------------------------------------------------------------

static bool is_index(struct cuda *cg, const struct ir_expr *e) {
  switch ((int)e->op) {
  case OP_CONST:
  case OP_THREAD:
  case OP_BLOCK: return true;
  case OP_VAR: return e->var->kind == VAR_SIZE || e->var->kind == VAR_AXIS || cuda_var(cg, e->var)->is_index;
  case OP_CAST:
    if (e->args[0]->type != TYPE_I64 && e->args[0]->type != TYPE_I32) return false;
    return is_index(cg, e->args[0]);
  case OP_ADD:
  case OP_SUB:
  case OP_MUL:
  case OP_QUO:
  case OP_REM:
  case OP_DIV:
  case OP_MOD:
  case OP_MIN:
  case OP_MAX:
  case OP_AND:
  case OP_XOR:
  case OP_SHL:
  case OP_SHR: return is_index(cg, e->args[0]) && is_index(cg, e->args[1]);
  case OP_SELECT: return is_index(cg, e->args[1]) && is_index(cg, e->args[2]);
  default: return false;
  }
}

static bool is_offset_product(const struct cuda *cg, const struct ir_expr *e) {
  for (uint32_t i = 0; i < cg->products.count; i++)
    if (ir_equal(list_at(&cg->products, struct ir_expr, i), e)) return true;
  return false;
}

// Marks the variables whose value is part of an offset by sums and products alone.
static void mark_offset(struct cuda *cg, const struct ir_expr *e) {
  if (e->op == OP_VAR) {
    cuda_var(cg, e->var)->is_in_offset = true;
  } else if (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL) {
    if (e->op == OP_MUL && !is_offset_product(cg, e)) list_push(cg->context->arena, &cg->products, (void *)e);
    mark_offset(cg, e->args[0]);
    mark_offset(cg, e->args[1]);
  }
}

static void mark_offsets_in(struct cuda *cg, const struct ir_expr *e) {
  bool is_load = e->op == OP_LOAD || e->op == OP_LOAD_FLAT;
  for (uint32_t i = 0; i < e->count; i++) {
    mark_offsets_in(cg, e->args[i]);
    if (is_load) mark_offset(cg, e->args[i]);
  }
}

// Provenance goes with the program's order; what is in an offset goes against it.
static void find_indices(struct cuda *cg, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (stmt->kind == IR_LET && (stmt->var->type == TYPE_I32 || stmt->var->type == TYPE_I64))
      cuda_var(cg, stmt->var)->is_index |= is_index(cg, stmt->value);
    find_indices(cg, &stmt->body);
    find_indices(cg, &stmt->otherwise);
  }
}

static void find_offsets(struct cuda *cg, const struct list *block) {
  for (uint32_t i = block->count; i-- > 0;) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    find_offsets(cg, &stmt->otherwise);
    find_offsets(cg, &stmt->body);
    if (stmt->value) mark_offsets_in(cg, stmt->value);
    for (uint32_t k = 0; k < stmt->inputs.count; k++)
      mark_offsets_in(cg, list_at(&stmt->inputs, struct ir_expr, k));
    if (stmt->kind == IR_LET && cuda_var(cg, stmt->var)->is_in_offset) mark_offset(cg, stmt->value);
    if (stmt->lo) mark_offset(cg, stmt->lo);
    if (stmt->hi) mark_offset(cg, stmt->hi);
    for (uint32_t k = 0; k < stmt->indices.count; k++) {
      mark_offsets_in(cg, list_at(&stmt->indices, struct ir_expr, k));
      mark_offset(cg, list_at(&stmt->indices, struct ir_expr, k));
    }
  }
}

// A counter or coordinate, times a number below 2^31, fits 64 bits.
static bool is_wide_step(struct cuda *cg, const struct ir_expr *e) {
  const struct ir_expr *a = e->args[0], *b = e->args[1];
  bool is_leaf = a->op == OP_THREAD || a->op == OP_BLOCK || (a->op == OP_VAR && a->var->kind == VAR_AXIS) ||
                 (a->op == OP_VAR && a->var->kind == VAR_LET && cuda_var(cg, a->var)->is_in_offset);
  return e->type == TYPE_I64 && is_leaf && is_index(cg, a) && b->op == OP_CONST &&
         b->integer == (int32_t)b->integer;
}

// A product of sizes: in 64 bits no tensor has as many elements; in 32 bits what an index is compared with
// fits.
static bool is_size_product(const struct ir_expr *e) {
  if (e->op == OP_MUL) return is_size_product(e->args[0]) && is_size_product(e->args[1]);
  if (e->op == OP_CAST) return e->args[0]->op == OP_VAR && e->args[0]->var->kind == VAR_SIZE;
  return e->op == OP_CONST || (e->op == OP_VAR && e->var->kind == VAR_SIZE);
}

bool cuda_is_plain(struct cuda *cg, const struct ir_expr *e, bool in_offset) {
  if (e->op == OP_CONST) return in_offset || (e->integer < 1 << 20 && e->integer > -(1 << 20));
  if (e->op != OP_ADD && e->op != OP_SUB && e->op != OP_MUL) return is_index(cg, e);
  if (e->op == OP_MUL && !in_offset)
    return is_index(cg, e) && (is_wide_step(cg, e) || is_offset_product(cg, e) ||
                               (is_size_product(e) && (e->type == TYPE_I64 || cg->in_comparison)));
  return cuda_is_plain(cg, e->args[0], in_offset) && cuda_is_plain(cg, e->args[1], in_offset);
}

void cuda_find_uses(struct cuda *cg, const struct list *block) {
  codegen_clear_marks(block);
  cg->vars.count = 0;
  cg->products.count = 0;
  while (find_live(cg, block)) {
  }
  find_indices(cg, block);
  find_offsets(cg, block);
}
