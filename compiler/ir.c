#include "compiler/ir.h"

#include <math.h>
#include <string.h>

#include "compiler/arith.h"

// --- Tables -------------------------------------------------------------------------------------------------------

static const struct {
  const char *name;
  enum type_class class;
  uint32_t bits;
} types[TYPE_COUNT] = {
#define T(name, spelling, class, bits) [TYPE_##name] = {spelling, CLASS_##class, bits},
#include "compiler/types.def"
#undef T
};

const char *type_name(enum type type) { return types[type].name; }
enum type_class type_class_of(enum type type) { return types[type].class; }
uint32_t type_bits(enum type type) { return types[type].bits; }
uint32_t type_bytes(enum type type) { return types[type].bits / 8; }

bool type_parse(const char *name, enum type *type) {
  for (int t = 0; t < TYPE_COUNT; t++)
    if (t != TYPE_INDEX && strcmp(types[t].name, name) == 0) {
      *type = (enum type)t;
      return true;
    }
  return false;
}

bool type_is_signed(enum type type) {
  return types[type].class == CLASS_SIGNED || types[type].class == CLASS_INDEX;
}
bool type_is_integer(enum type type) { return type_is_signed(type) || types[type].class == CLASS_UNSIGNED; }
bool type_is_float(enum type type) { return types[type].class == CLASS_FLOAT; }

const struct op_info op_table[OP_COUNT] = {
#define O(name, spelling, operands, rule, properties) [OP_##name] = {spelling, operands, RULE_##rule, properties},
#include "compiler/ops.def"
#undef O
};

// --- Building -----------------------------------------------------------------------------------------------------

struct ir_expr *ir_raw(struct arena *arena, enum op op, enum type type, struct ir_expr **args, uint32_t count) {
  struct ir_expr *e = arena_new(arena, struct ir_expr);
  e->op = op;
  e->type = type;
  e->count = count;
  if (count) {
    e->args = arena_array(arena, struct ir_expr *, count);
    memcpy(e->args, args, sizeof *args * count);
    e->range = args[0]->range;
  }
  return e;
}

struct ir_expr *ir_int(struct arena *arena, enum type type, int64_t value) {
  struct ir_expr *e = ir_raw(arena, OP_CONST, type, NULL, 0);
  e->integer = value;
  return e;
}

struct ir_expr *ir_float(struct arena *arena, enum type type, double value) {
  struct ir_expr *e = ir_raw(arena, OP_CONST, type, NULL, 0);
  e->number = type == TYPE_F32 ? (double)(float)value : value;
  return e;
}

struct ir_expr *ir_ref(struct arena *arena, struct ir_var *var) {
  struct ir_expr *e = ir_raw(arena, OP_VAR, var->type, NULL, 0);
  e->var = var;
  e->range = var->range;
  return e;
}

struct ir_expr *ir_special(struct arena *arena, enum op op, uint32_t dimension) {
  struct ir_expr *e = ir_raw(arena, op, TYPE_INDEX, NULL, 0);
  e->dimension = dimension;
  return e;
}

struct ir_expr *ir_fact(struct arena *arena, enum op op, struct ir_mem *mem, uint32_t dimension) {
  struct ir_expr *e = ir_raw(arena, op, TYPE_I64, NULL, 0);
  e->mem = mem;
  e->dimension = dimension;
  return e;
}

struct ir_expr *ir_load(struct arena *arena, struct ir_mem *mem, const struct list *indices) {
  struct ir_expr *e = ir_raw(arena, OP_LOAD, mem->type, (struct ir_expr **)indices->at, indices->count);
  e->mem = mem;
  return e;
}

bool ir_is_const(const struct ir_expr *e) { return e->op == OP_CONST && !type_is_float(e->type); }
bool ir_const_is(const struct ir_expr *e, int64_t value) { return ir_is_const(e) && e->integer == value; }

static struct value value_of(const struct ir_expr *e) {
  struct value value = {.type = e->type};
  if (type_is_float(e->type))
    value.number = e->number;
  else
    value.integer = e->integer;
  return value;
}

static struct ir_expr *constant_of(struct arena *arena, struct value value) {
  if (type_is_float(value.type)) return ir_float(arena, value.type, value.number);
  return ir_int(arena, value.type, value.integer);
}

// Whether a constant of this type can stand in the IR.
static bool is_foldable(enum type type) {
  enum type_class class = type_class_of(type);
  return class != CLASS_STORAGE && class != CLASS_MOVED;
}

static enum type result_type(enum op op, enum type operand) {
  return op_table[op].rule == RULE_COMPARE || op_table[op].rule == RULE_PREDICATE ? TYPE_BOOL : operand;
}

// Functions whose expansion may differ from the C library's in the last bit are left to the program.
static bool is_exact(enum op op) {
  return !(op == OP_RSQRT || (op >= OP_EXP && op <= OP_POW));
}

// Evaluates an operation on constants, or returns NULL. INDEX constants are folded as 64-bit numbers.
static struct ir_expr *fold(struct arena *arena, enum op op, enum type type, struct ir_expr **args, uint32_t count) {
  struct value operands[3], result;
  if (count == 0 || count > 3 || op == OP_LOAD || op == OP_LOAD_FLAT || op == OP_AWAIT || !is_exact(op) || !is_foldable(type)) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (args[i]->op != OP_CONST || !is_foldable(args[i]->type)) return NULL;
    operands[i] = value_of(args[i]);
  }
  if (!arith_fold(op, type, operands, count, &result)) return NULL;
  return constant_of(arena, result);
}

static bool is_bool_const(const struct ir_expr *e, bool value) { return e->type == TYPE_BOOL && ir_const_is(e, value); }

// x op c for integers and bools, where that is x or c; commuted operands are tried by the caller.
static struct ir_expr *drop_neutral(enum op op, struct ir_expr *x, struct ir_expr *c) {
  if (!ir_is_const(c)) return NULL;
  bool is_bool = c->type == TYPE_BOOL;
  int64_t ones = is_bool ? 1 : c->type == TYPE_U8 ? 255 : c->type == TYPE_U16 ? 65535 : c->type == TYPE_U32 ? 4294967295 : -1;
  int64_t v = c->integer;
#define WHEN(condition, result) return (condition) ? (result) : NULL
  switch ((int)op) {
  case OP_ADD: WHEN(v == 0, x);
  case OP_MUL: return v == 1 ? x : v == 0 ? c : NULL;
  case OP_AND: return v == 0 ? c : v == ones ? x : NULL;
  case OP_OR: return v == 0 ? x : v == ones ? c : NULL;
  case OP_XOR: WHEN(v == 0, x);
  default: return NULL;
  }
#undef WHEN
}

static struct ir_expr *simplify_binary(struct arena *arena, enum op op, struct ir_expr *a, struct ir_expr *b) {
  struct ir_expr *kept = drop_neutral(op, a, b);
  if (!kept) kept = drop_neutral(op, b, a);
  if (kept) return kept;
  bool integer = type_is_integer(a->type) || a->type == TYPE_BOOL;
  if (!integer) return NULL;
  switch ((int)op) {
  case OP_SUB:
    if (ir_const_is(b, 0)) return a;
    if (ir_equal(a, b)) return ir_int(arena, a->type, 0);
    break;
  case OP_DIV: case OP_QUO: case OP_SHL: case OP_SHR:
    if (ir_const_is(b, op == OP_DIV || op == OP_QUO)) return a;
    break;
  case OP_MOD: case OP_REM:
    if (ir_const_is(b, 1)) return ir_int(arena, a->type, 0);
    break;
  case OP_ADD: // (x + c) + d
    if (ir_is_const(b) && a->op == OP_ADD && ir_is_const(a->args[1]))
      return ir_binary(arena, OP_ADD, a->args[0], ir_binary(arena, OP_ADD, a->args[1], b));
    if (ir_is_const(a) && !ir_is_const(b)) return ir_binary(arena, OP_ADD, b, a);
    break;
  case OP_MUL:
    if (ir_is_const(b) && a->op == OP_MUL && ir_is_const(a->args[1]))
      return ir_binary(arena, OP_MUL, a->args[0], ir_binary(arena, OP_MUL, a->args[1], b));
    if (ir_is_const(a) && !ir_is_const(b)) return ir_binary(arena, OP_MUL, b, a);
    break;
  case OP_MIN: case OP_MAX: case OP_AND: case OP_OR:
    if (ir_equal(a, b)) return a;
    break;
  case OP_EQ: case OP_LE: case OP_GE:
    if (ir_equal(a, b)) return ir_int(arena, TYPE_BOOL, 1);
    break;
  case OP_NE: case OP_LT: case OP_GT:
    if (ir_equal(a, b)) return ir_int(arena, TYPE_BOOL, 0);
    break;
  default: break;
  }
  return NULL;
}

struct ir_expr *ir_make(struct arena *arena, enum op op, enum type type, struct ir_expr **args, uint32_t count) {
  struct ir_expr *simple = fold(arena, op, type, args, count);
  if (simple) return simple;
  if (count == 2 && (op_table[op].rule == RULE_SAME || op_table[op].rule == RULE_COMPARE)) {
    simple = simplify_binary(arena, op, args[0], args[1]);
    if (simple) return simple;
  }
  if (op == OP_CAST) {
    if (args[0]->type == type) return args[0];
    // i64(index), then index again; a size cast to index and back
    if (args[0]->op == OP_CAST && args[0]->args[0]->type == type && type_bits(type) == type_bits(args[0]->type) &&
        type_is_integer(type) && type_is_integer(args[0]->type))
      return args[0]->args[0];
    // a storage type read and stored again: a copy is a move, NaNs and all
    if (args[0]->op == OP_CAST && args[0]->args[0]->type == type && type_class_of(type) == CLASS_STORAGE && type_is_float(args[0]->type))
      return args[0]->args[0];
  }
  if (op == OP_NOT && args[0]->op == OP_NOT) return args[0]->args[0];
  if (op == OP_NOT && type == TYPE_BOOL && args[0]->count == 2 && type_is_integer(args[0]->args[0]->type)) {
    static const struct {
      enum op op, not;
    } opposites[] = {{OP_LT, OP_GE}, {OP_GE, OP_LT}, {OP_GT, OP_LE}, {OP_LE, OP_GT}, {OP_EQ, OP_NE}, {OP_NE, OP_EQ}};
    for (uint32_t i = 0; i < sizeof opposites / sizeof *opposites; i++)
      if (args[0]->op == opposites[i].op) return ir_binary(arena, opposites[i].not, args[0]->args[0], args[0]->args[1]);
  }
  if (op == OP_SELECT) {
    if (is_bool_const(args[0], true)) return args[1];
    if (is_bool_const(args[0], false)) return args[2];
    if (ir_equal(args[1], args[2])) return args[1];
  }
  return ir_raw(arena, op, type, args, count);
}

struct ir_expr *ir_unary(struct arena *arena, enum op op, struct ir_expr *a) {
  return ir_make(arena, op, result_type(op, a->type), &a, 1);
}

struct ir_expr *ir_binary(struct arena *arena, enum op op, struct ir_expr *a, struct ir_expr *b) {
  struct ir_expr *args[2] = {a, b};
  return ir_make(arena, op, result_type(op, a->type), args, 2);
}

struct ir_expr *ir_select(struct arena *arena, struct ir_expr *condition, struct ir_expr *a, struct ir_expr *b) {
  struct ir_expr *args[3] = {condition, a, b};
  return ir_make(arena, OP_SELECT, a->type, args, 3);
}

struct ir_expr *ir_cast(struct arena *arena, enum type type, struct ir_expr *a) {
  return ir_make(arena, OP_CAST, type, &a, 1);
}

struct ir_stmt *ir_stmt(struct arena *arena, enum ir_stmt_kind kind, struct range range) {
  struct ir_stmt *stmt = arena_new(arena, struct ir_stmt);
  stmt->kind = kind;
  stmt->range = range;
  return stmt;
}

struct ir_stmt *ir_let(struct arena *arena, struct ir_var *var, struct ir_expr *value, struct range range) {
  struct ir_stmt *stmt = ir_stmt(arena, IR_LET, range);
  stmt->var = var;
  stmt->value = value;
  return stmt;
}

const char *ir_fresh_name(struct ir_kernel *kernel, const char *base) {
  char *name = arena_strdup(kernel->names.arena, base);
  // A number behind the name counts on from where this base stopped, so that many names of one base stay linear.
  uintptr_t used = (uintptr_t)map_get(&kernel->names, base);
  while (used) {
    used++;
    name = arena_printf(kernel->names.arena, "%s_%u", base, (unsigned)used);
    if (!map_get(&kernel->names, name)) break;
  }
  map_set(&kernel->names, base, (void *)(used ? used : 1));
  if (used) map_set(&kernel->names, name, (void *)1);
  return name;
}

static void collect(struct map *names, const char *name) { map_set(names, name, (void *)1); }

static void collect_block(struct map *names, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->var && stmt->kind != IR_SET) collect(names, stmt->var->name);
    for (uint32_t k = 0; k < stmt->results.count; k++) collect(names, list_at(&stmt->results, struct ir_var, k)->name);
    collect_block(names, &stmt->body);
    collect_block(names, &stmt->otherwise);
  }
}

bool ir_is_of_pair(const struct ir_kernel *kernel, uint32_t i, const char *name) {
  const struct ir_entry *entry = kernel->entries.at[i];
  const struct ir_entry *after = i + 1 < kernel->entries.count ? kernel->entries.at[i + 1] : NULL;
  const struct ir_entry *before = i ? kernel->entries.at[i - 1] : NULL;
  return strcmp(entry->name, name) == 0 || (after && after->is_general && strcmp(after->name, name) == 0) ||
         (entry->is_general && before && strcmp(before->name, name) == 0);
}

void ir_collect_names(struct ir_kernel *kernel, const struct ir_entry *entry) {
  struct map *names = &kernel->names;
  struct arena *arena = names->arena;
  map_init(names, arena);
  for (uint32_t i = 0; i < kernel->sizes.count; i++) collect(names, list_at(&kernel->sizes, struct ir_var, i)->name);
  for (uint32_t i = 0; i < kernel->scalars.count; i++) collect(names, list_at(&kernel->scalars, struct ir_var, i)->name);
  for (uint32_t i = 0; i < kernel->tensors.count; i++) collect(names, list_at(&kernel->tensors, struct ir_mem, i)->name);
  for (uint32_t i = 0; i < entry->axes.count; i++) collect(names, list_at(&entry->axes, struct ir_axis, i)->var->name);
  for (uint32_t i = 0; i < entry->memory.count; i++) collect(names, list_at(&entry->memory, struct ir_mem, i)->name);
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    struct ir_stage *stage = entry->stages.at[i];
    collect_block(names, &stage->derived);
    collect_block(names, &stage->lets);
    for (uint32_t k = 0; k < stage->results.count; k++) collect(names, list_at(&stage->results, struct ir_var, k)->name);
  }
  collect_block(names, &entry->body);
}

struct ir_var *ir_new_var(struct ir_kernel *kernel, enum ir_var_kind kind, enum type type, const char *label) {
  struct ir_var *var = arena_new(kernel->names.arena, struct ir_var);
  var->kind = kind;
  var->type = type;
  var->label = label;
  var->name = ir_fresh_name(kernel, label);
  return var;
}

bool ir_is_await(const struct ir_expr *e) {
  if (e->op != OP_AWAIT || e->type != TYPE_U64 || e->count != 2) return false;
  const struct ir_expr *again = e->args[1];
  return (again->op == OP_LOAD || again->op == OP_LOAD_FLAT) && again->mem && again->mem->is_polled;
}

bool ir_equal(const struct ir_expr *a, const struct ir_expr *b) {
  if (a == b) return true;
  if (a->op != b->op || a->type != b->type || a->count != b->count) return false;
  switch ((int)a->op) {
  case OP_CONST:
    if (type_is_float(a->type)) return memcmp(&a->number, &b->number, sizeof a->number) == 0;
    return a->integer == b->integer;
  case OP_VAR: return a->var == b->var;
  case OP_LOAD: case OP_LOAD_FLAT:
    if (a->mem != b->mem) return false;
    break;
  case OP_THREAD: case OP_BLOCK: return a->dimension == b->dimension;
  case OP_DIM: case OP_STRIDE: case OP_ADDRESS: return a->mem == b->mem && a->dimension == b->dimension;
  default: break;
  }
  for (uint32_t i = 0; i < a->count; i++)
    if (!ir_equal(a->args[i], b->args[i])) return false;
  return true;
}

bool ir_mentions(const struct ir_expr *e, const struct ir_var *var) {
  if (e->op == OP_VAR) return e->var == var;
  for (uint32_t i = 0; i < e->count; i++)
    if (ir_mentions(e->args[i], var)) return true;
  return false;
}

struct list ir_initial_values(struct arena *arena, const struct ir_stage *stage) {
  struct list values = {0};
  list_append(arena, &values, &stage->init);
  for (uint32_t i = stage->lets.count; i-- > 0;) {
    const struct ir_stmt *let = stage->lets.at[i];
    bool is_needed = false;
    for (uint32_t k = 0; k < values.count && let->var; k++) is_needed |= ir_mentions(values.at[k], let->var);
    if (is_needed) list_push(arena, &values, let->value);
  }
  return values;
}

// --- Walking and rewriting ------------------------------------------------------------------------------------------

struct ir_expr *ir_rewrite_expr(struct arena *arena, struct ir_expr *e, ir_rewriter *rewrite, void *state) {
  if (e->count) {
    struct ir_expr *small[4], **args = e->count <= 4 ? small : arena_array(arena, struct ir_expr *, e->count);
    bool changed = false;
    for (uint32_t i = 0; i < e->count; i++) {
      args[i] = ir_rewrite_expr(arena, e->args[i], rewrite, state);
      changed |= args[i] != e->args[i];
    }
    if (changed) {
      struct ir_expr *made = ir_make(arena, e->op, e->type, args, e->count);
      if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) made->mem = e->mem;
      if (made->op == e->op && made->range.line == 0) made->range = e->range;
      e = made;
    }
  }
  return rewrite(arena, e, state);
}

static void rewrite_list(struct arena *arena, struct list *exprs, ir_rewriter *rewrite, void *state) {
  for (uint32_t i = 0; i < exprs->count; i++)
    exprs->at[i] = ir_rewrite_expr(arena, exprs->at[i], rewrite, state);
}

void ir_rewrite_block(struct arena *arena, struct list *block, ir_rewriter *rewrite, void *state) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->value) stmt->value = ir_rewrite_expr(arena, stmt->value, rewrite, state);
    if (stmt->lo) stmt->lo = ir_rewrite_expr(arena, stmt->lo, rewrite, state);
    if (stmt->hi) stmt->hi = ir_rewrite_expr(arena, stmt->hi, rewrite, state);
    rewrite_list(arena, &stmt->indices, rewrite, state);
    rewrite_list(arena, &stmt->inputs, rewrite, state);
    ir_rewrite_block(arena, &stmt->body, rewrite, state);
    ir_rewrite_block(arena, &stmt->otherwise, rewrite, state);
  }
}

static struct ir_expr *substitute_var(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena, (void)state;
  return e->op == OP_VAR && e->var->subst ? e->var->subst : e;
}

struct ir_expr *ir_substitute(struct arena *arena, struct ir_expr *e) {
  return ir_rewrite_expr(arena, e, substitute_var, NULL);
}

void ir_substitute_list(struct arena *arena, struct list *exprs) {
  *exprs = list_copy(arena, exprs);
  for (uint32_t i = 0; i < exprs->count; i++) exprs->at[i] = ir_substitute(arena, exprs->at[i]);
}

void ir_visit_expr(struct ir_expr *e, void (*visit)(struct ir_expr *e, void *state), void *state) {
  visit(e, state);
  for (uint32_t i = 0; i < e->count; i++) ir_visit_expr(e->args[i], visit, state);
}

void ir_visit_block(const struct list *block, void (*visit)(struct ir_expr *e, void *state), void *state) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->value) ir_visit_expr(stmt->value, visit, state);
    if (stmt->lo) ir_visit_expr(stmt->lo, visit, state);
    if (stmt->hi) ir_visit_expr(stmt->hi, visit, state);
    for (uint32_t k = 0; k < stmt->indices.count; k++) ir_visit_expr(stmt->indices.at[k], visit, state);
    for (uint32_t k = 0; k < stmt->inputs.count; k++) ir_visit_expr(stmt->inputs.at[k], visit, state);
    ir_visit_block(&stmt->body, visit, state);
    ir_visit_block(&stmt->otherwise, visit, state);
  }
}

void ir_inline(struct ir_kernel *kernel, const struct ir_function *function, struct ir_expr **arguments, struct list *out,
               struct range range, struct ir_expr **results) {
  struct arena *arena = kernel->names.arena;
  for (uint32_t i = 0; i < function->params.count; i++) list_at(&function->params, struct ir_var, i)->subst = arguments[i];
  for (uint32_t i = 0; i < function->lets.count; i++) {
    struct ir_stmt *let = function->lets.at[i];
    struct ir_expr *value = ir_substitute(arena, let->value);
    struct ir_var *var = ir_new_var(kernel, VAR_LET, let->var->type, let->var->label);
    list_push(arena, out, ir_let(arena, var, value, range));
    let->var->subst = ir_ref(arena, var);
  }
  for (uint32_t i = 0; i < function->results.count; i++)
    results[i] = ir_substitute(arena, function->results.at[i]);
  for (uint32_t i = 0; i < function->params.count; i++) list_at(&function->params, struct ir_var, i)->subst = NULL;
  for (uint32_t i = 0; i < function->lets.count; i++) list_at(&function->lets, struct ir_stmt, i)->var->subst = NULL;
}


static struct ir_var *clone_var(struct ir_kernel *kernel, struct ir_var *var, struct list *cloned) {
  struct ir_var *copy = ir_new_var(kernel, var->kind, var->type, var->label);
  copy->range = var->range;
  copy->mark = var->mark;
  var->subst = ir_ref(kernel->names.arena, copy);
  list_push(kernel->names.arena, cloned, var);
  return copy;
}

static struct list clone_block(struct ir_kernel *kernel, const struct list *block, struct list *cloned) {
  struct arena *arena = kernel->names.arena;
  struct list copy = {0};
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *source = block->at[i];
    struct ir_stmt *stmt = arena_new(arena, struct ir_stmt);
    *stmt = *source;
    if (stmt->value) stmt->value = ir_substitute(arena, stmt->value);
    if (stmt->lo) stmt->lo = ir_substitute(arena, stmt->lo);
    if (stmt->hi) stmt->hi = ir_substitute(arena, stmt->hi);
    ir_substitute_list(arena, &stmt->indices);
    ir_substitute_list(arena, &stmt->inputs);
    if (stmt->var && stmt->kind == IR_SET) stmt->var = stmt->var->subst ? stmt->var->subst->var : stmt->var;
    else if (stmt->var) stmt->var = clone_var(kernel, source->var, cloned);
    stmt->results = (struct list){0};
    for (uint32_t k = 0; k < source->results.count; k++)
      list_push(arena, &stmt->results, clone_var(kernel, source->results.at[k], cloned));
    stmt->body = clone_block(kernel, &source->body, cloned);
    stmt->otherwise = clone_block(kernel, &source->otherwise, cloned);
    list_push(arena, &copy, stmt);
  }
  return copy;
}

struct list ir_clone_block(struct ir_kernel *kernel, const struct list *block) {
  struct list cloned = {0};
  struct list copy = clone_block(kernel, block, &cloned);
  for (uint32_t i = 0; i < cloned.count; i++) list_at(&cloned, struct ir_var, i)->subst = NULL;
  return copy;
}

enum cache_hint ir_hint_of(const struct ir_entry *entry, const struct ir_mem *mem) {
  for (uint32_t i = 0; i < entry->hints.count; i++) {
    const struct ir_hint *hint = entry->hints.at[i];
    if (hint->mem == mem) return hint->hint;
  }
  return CACHE_NORMAL;
}
