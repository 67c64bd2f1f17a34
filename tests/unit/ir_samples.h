// Modules built by hand, for the tests of the IR's text and of its verifier.
#ifndef RED_TESTS_UNIT_IR_SAMPLES_H
#define RED_TESTS_UNIT_IR_SAMPLES_H

#include <stdio.h>
#include <string.h>

#include "compiler/ir.h"

struct sample {
  struct arena arena;
  struct diag diag;
  struct ir_module module;
};

// All of these are built and used by each test program that includes this.
enum sample_kind {
  SAMPLE_STAGES,     // row sum as stages, with directives, a derived axis and a guard
  SAMPLE_REDUCE,     // two-stage reduction of a row: shuffles, shared memory, barriers; two entries
  SAMPLE_TUPLE,      // argmax: a tuple reducer in stages and as an allreduce
  SAMPLE_UPDATE,     // mean and count: a reducer with update, init and lets
  SAMPLE_NESTS,      // loops and conditions in each other, local memory, mutable variables
  SAMPLE_OPERATIONS, // every operation with every type that it takes
  SAMPLE_COUNT
};

static const struct range no_range;

static struct range at(uint32_t line, uint32_t column) {
  return (struct range){line, column, line, column + 4, 0};
}

static void sample_init(struct sample *s) {
  memset(s, 0, sizeof *s);
  arena_init(&s->arena);
  diag_init(&s->diag, &s->arena);
  s->module.arena = &s->arena;
  s->module.diag = &s->diag;
}

static void sample_destroy(struct sample *s) {
  arena_destroy(&s->arena);
}

// ---- Short builders

static struct list exprs(struct sample *s, struct ir_expr *a, struct ir_expr *b) {
  struct list list = {0};
  if (a) list_push(&s->arena, &list, a);
  if (b) list_push(&s->arena, &list, b);
  return list;
}

static struct ir_expr *index_of(struct sample *s, int64_t value) {
  return ir_int(&s->arena, TYPE_INDEX, value);
}
static struct ir_expr *ref(struct sample *s, struct ir_var *var) {
  return ir_ref(&s->arena, var);
}

static struct ir_expr *load(struct sample *s, struct ir_mem *mem, struct ir_expr *a, struct ir_expr *b) {
  struct list indices = exprs(s, a, b);
  return ir_load(&s->arena, mem, &indices);
}

static struct ir_kernel *add_kernel(struct sample *s, const char *name) {
  struct ir_kernel *kernel = arena_new(&s->arena, struct ir_kernel);
  map_init(&kernel->names, &s->arena);
  kernel->name = kernel->label = name;
  kernel->range = at(1, 1);
  list_push(&s->arena, &s->module.kernels, kernel);
  return kernel;
}

static struct ir_entry *add_entry(struct sample *s, struct ir_kernel *kernel, const char *name,
                                  enum ir_level level) {
  struct ir_entry *entry = arena_new(&s->arena, struct ir_entry);
  entry->name = name;
  entry->schedule = "";
  entry->level = level;
  entry->range = kernel->range;
  entry->index_type = TYPE_INDEX;
  if (level == LEVEL_PROGRAM)
    for (int i = 0; i < 3; i++) {
      entry->block[i] = 1;
      entry->grid[i] = ir_int(&s->arena, TYPE_I64, 1);
    }
  list_push(&s->arena, &kernel->entries, entry);
  return entry;
}

static struct ir_var *add_size(struct sample *s, struct ir_kernel *kernel, const char *name) {
  struct ir_var *size = ir_new_var(kernel, VAR_SIZE, TYPE_I64, name);
  size->range = at(1, 18 + kernel->sizes.count);
  list_push(&s->arena, &kernel->sizes, size);
  return size;
}

// An object with dimensions a and b (either may be NULL), row by row.
static struct ir_mem *new_mem(struct sample *s, struct ir_kernel *kernel, const char *name,
                              enum ir_space space, enum type type, struct ir_expr *a, struct ir_expr *b) {
  struct ir_mem *mem = arena_new(&s->arena, struct ir_mem);
  mem->label = name;
  mem->name = ir_fresh_name(kernel, name);
  mem->space = space;
  mem->type = type;
  mem->dims = exprs(s, a, b);
  mem->strides = exprs(s, b ? b : NULL, a ? ir_int(&s->arena, TYPE_I64, 1) : NULL);
  mem->alignment = type_bytes(type);
  mem->range = at(1, 30);
  return mem;
}

static struct ir_mem *add_tensor(struct sample *s, struct ir_kernel *kernel, const char *name, enum type type,
                                 bool is_output, struct ir_expr *a, struct ir_expr *b) {
  struct ir_mem *mem = new_mem(s, kernel, name, SPACE_GLOBAL, type, a, b);
  mem->is_output = is_output;
  mem->is_read = !is_output;
  mem->parameter = kernel->tensors.count;
  list_push(&s->arena, &kernel->tensors, mem);
  return mem;
}

static struct ir_var *new_param(struct sample *s, const char *name, enum type type) {
  struct ir_var *var = arena_new(&s->arena, struct ir_var);
  *var = (struct ir_var){.name = name, .label = name, .kind = VAR_LET, .type = type};
  return var;
}

static struct ir_reducer *add_sum(struct sample *s) {
  struct ir_reducer *sum = arena_new(&s->arena, struct ir_reducer);
  struct ir_var *a = new_param(s, "a", TYPE_F32), *b = new_param(s, "b", TYPE_F32);
  sum->name = "sum_f32";
  sum->is_commutative_bitwise = true;
  sum->identity = exprs(s, ir_float(&s->arena, TYPE_F32, 0), NULL);
  list_push(&s->arena, &sum->combine.params, a);
  list_push(&s->arena, &sum->combine.params, b);
  sum->combine.results = exprs(s, ir_binary(&s->arena, OP_ADD, ref(s, a), ref(s, b)), NULL);
  list_push(&s->arena, &s->module.reducers, sum);
  return sum;
}

static struct ir_var *let(struct sample *s, struct ir_kernel *kernel, struct list *block, const char *name,
                          struct ir_expr *value, struct range range) {
  struct ir_var *var = ir_new_var(kernel, VAR_LET, value->type, name);
  var->range = range;
  list_push(&s->arena, block, ir_let(&s->arena, var, value, range));
  return var;
}

static struct ir_stmt *statement(struct sample *s, struct list *block, enum ir_stmt_kind kind,
                                 struct range range) {
  struct ir_stmt *stmt = ir_stmt(&s->arena, kind, range);
  list_push(&s->arena, block, stmt);
  return stmt;
}

static void store(struct sample *s, struct list *block, struct ir_mem *mem, struct ir_expr *index,
                  struct ir_expr *value, struct range range) {
  struct ir_stmt *stmt = statement(s, block, IR_STORE, range);
  stmt->mem = mem;
  stmt->indices = exprs(s, index, NULL);
  stmt->value = value;
}

static void set(struct sample *s, struct list *block, struct ir_var *var, struct ir_expr *value) {
  struct ir_stmt *stmt = statement(s, block, IR_SET, at(7, 7));
  stmt->var = var;
  stmt->value = value;
}

static struct ir_var *mutable_var(struct sample *s, struct ir_kernel *kernel, struct list *block,
                                  const char *name, struct ir_expr *value) {
  struct ir_stmt *stmt = statement(s, block, IR_VAR, at(6, 3));
  stmt->var = ir_new_var(kernel, VAR_MUTABLE, value->type, name);
  stmt->value = value;
  return stmt->var;
}

static struct ir_stmt *loop(struct sample *s, struct ir_kernel *kernel, struct list *block, const char *name,
                            enum type type, int64_t lo, struct ir_expr *hi, uint32_t unroll) {
  struct ir_stmt *stmt = statement(s, block, IR_FOR, at(5, 5));
  stmt->var = ir_new_var(kernel, VAR_AXIS, type, name);
  stmt->lo = ir_int(&s->arena, type, lo);
  stmt->hi = hi;
  stmt->unroll = unroll;
  return stmt;
}

static struct ir_axis *add_axis(struct sample *s, struct ir_kernel *kernel, struct ir_entry *entry,
                                const char *name, struct ir_expr *extent, enum ir_bind bind) {
  struct ir_axis *axis = arena_new(&s->arena, struct ir_axis);
  axis->var = ir_new_var(kernel, VAR_AXIS, TYPE_INDEX, name);
  axis->var->range = axis->range = at(2, 7 + entry->axes.count);
  axis->extent = extent;
  axis->bind = bind;
  if (bind != BIND_SERIAL) axis->bound_at = at(5, 3);
  list_push(&s->arena, &entry->axes, axis);
  return axis;
}

static void use_axis(struct sample *s, struct ir_stage *stage, struct ir_axis *axis, bool is_reduction) {
  struct ir_stage_axis *use = arena_new(&s->arena, struct ir_stage_axis);
  *use = (struct ir_stage_axis){axis, is_reduction};
  list_push(&s->arena, &stage->axes, use);
}

static struct ir_stage *add_stage(struct sample *s, struct ir_entry *entry, enum ir_stage_kind kind,
                                  const char *label) {
  struct ir_stage *stage = arena_new(&s->arena, struct ir_stage);
  stage->kind = kind;
  stage->label = label;
  stage->range = at(3, 3);
  list_push(&s->arena, &entry->stages, stage);
  return stage;
}

static struct ir_expr *extent_of(struct sample *s, struct ir_var *size) {
  return ir_cast(&s->arena, TYPE_INDEX, ref(s, size));
}

static void require(struct sample *s, struct list *conditions, struct ir_expr *condition,
                    const char *message) {
  struct ir_requirement *requirement = arena_new(&s->arena, struct ir_requirement);
  *requirement = (struct ir_requirement){condition, message, at(1, 2)};
  list_push(&s->arena, conditions, requirement);
}

// ---- Samples

static void build_stages(struct sample *s) {
  struct arena *arena = &s->arena;
  struct ir_reducer *sum = add_sum(s);
  sum->range = (struct range){4, 1, 6, 2, diag_add_source(&s->diag, "reducers.red", NULL, 0)};
  struct ir_kernel *kernel = add_kernel(s, "rowsum");
  kernel->label = "row sum";
  struct ir_var *n = add_size(s, kernel, "n"), *m = add_size(s, kernel, "m"), *k = add_size(s, kernel, "k");
  struct ir_var *alpha = ir_new_var(kernel, VAR_SCALAR, TYPE_F32, "alpha");
  list_push(arena, &kernel->scalars, alpha);
  struct ir_mem *A = add_tensor(s, kernel, "A", TYPE_F32, false, ref(s, n), ref(s, m));
  struct ir_mem *B = add_tensor(s, kernel, "B", TYPE_F16, true, ref(s, n), NULL);
  B->is_strided = true;
  n->inferred = ir_fact(arena, OP_DIM, A, 0);
  m->inferred = ir_fact(arena, OP_DIM, A, 1);
  m->constant = ir_int(arena, TYPE_I64, 11);
  require(s, &kernel->requirements, ir_binary(arena, OP_GE, ref(s, k), ir_int(arena, TYPE_I64, INT64_MIN)),
          "k has a \"value\" \\ of\nsome kind\x01");
  struct ir_entry *entry = add_entry(s, kernel, "rowsum_column", LEVEL_STAGES);
  entry->schedule = "column";
  entry->when = ir_binary(arena, OP_GT, ref(s, n), ir_fact(arena, OP_SMS, NULL, 0));
  require(s, &entry->assumptions,
          ir_binary(arena, OP_EQ, ir_fact(arena, OP_STRIDE, B, 0), ir_int(arena, TYPE_I64, 1)),
          "B is contiguous");

  struct ir_directive *split = arena_new(arena, struct ir_directive);
  *split = (struct ir_directive){.kind = DIRECTIVE_SPLIT_INTO, .range = at(5, 1)};
  struct ir_var *named = new_param(s, "S.j", TYPE_INDEX);
  named->kind = VAR_AXIS;
  split->factor = ir_binary(arena, OP_MIN, ref(s, named), index_of(s, 32));
  list_push(arena, &split->stages, "total");
  list_push(arena, &split->axes, "j");
  struct range *place = arena_new(arena, struct range);
  *place = at(5, 7);
  list_push(arena, &split->axis_places, place);
  list_push(arena, &split->names, "jo");
  list_push(arena, &split->names, "ji");
  list_push(arena, &entry->directives, split);
  struct ir_directive *bind = arena_new(arena, struct ir_directive);
  *bind = (struct ir_directive){.kind = DIRECTIVE_BIND, .bind = BIND_BLOCK_Y, .form = FORM_TREE};
  list_push(arena, &bind->stages, "");
  list_push(arena, &bind->axes, "i");
  list_push(arena, &bind->axis_places, arena_new(arena, struct range));
  list_push(arena, &entry->directives, bind);

  struct ir_expr *pieces =
      ir_cast(arena, TYPE_INDEX, ir_binary(arena, OP_DIV, ref(s, m), ir_int(arena, TYPE_I64, 4)));
  struct ir_axis *i = add_axis(s, kernel, entry, "i", extent_of(s, n), BIND_BLOCK_X);
  struct ir_axis *jo = add_axis(s, kernel, entry, "jo", pieces, BIND_SERIAL);
  struct ir_axis *ji = add_axis(s, kernel, entry, "ji", index_of(s, 4), BIND_THREAD_X);
  struct ir_axis *q = add_axis(s, kernel, entry, "q", NULL, BIND_SERIAL);
  jo->unroll = 4;
  jo->is_guarded = true;
  ji->unroll = UINT32_MAX;
  q->unroll = 1;
  struct ir_stage *total = add_stage(s, entry, STAGE_REDUCE, "total");
  use_axis(s, total, i, false);
  use_axis(s, total, jo, true);
  use_axis(s, total, ji, true);
  use_axis(s, total, q, true);
  struct ir_var *j = let(
      s, kernel, &total->derived, "j",
      ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, ref(s, jo->var), index_of(s, 4)), ref(s, ji->var)),
      at(2, 9));
  q->extent = ir_binary(arena, OP_ADD, ref(s, j), index_of(s, 1)); // what a stage derives, further down
  list_push(arena, &total->guards, ir_binary(arena, OP_LT, ref(s, j), extent_of(s, m)));
  struct ir_var *x = let(s, kernel, &total->lets, "x", load(s, A, ref(s, i->var), ref(s, j)), no_range);
  total->reducer = sum;
  total->form = FORM_SHUFFLE;
  total->operands = exprs(s, ir_binary(arena, OP_MUL, ref(s, x), ref(s, x)), NULL);
  total->init = exprs(s, ref(s, alpha), NULL);
  struct ir_var *result = ir_new_var(kernel, VAR_VALUE, TYPE_F32, "total");
  result->range = at(3, 9);
  list_push(arena, &total->results, result);

  struct ir_stage *out = add_stage(s, entry, STAGE_STORE, "B#2");
  use_axis(s, out, i, false);
  use_axis(s, out, jo, false);
  use_axis(s, out, ji, false);
  list_push(arena, &out->derived,
            ir_let(arena, j, list_at(&total->derived, struct ir_stmt, 0)->value, no_range));
  out->mem = B;
  out->indices = exprs(s, ref(s, i->var), NULL);
  out->value = ir_binary(arena, OP_MUL, ref(s, result), ir_float(arena, TYPE_F32, 0.1));
}

// One block of 64 threads a row: two warps, whose partials meet in shared memory.
static void build_reduce_entry(struct sample *s, struct ir_kernel *kernel, struct ir_reducer *sum,
                               struct ir_mem *A, struct ir_mem *B, const char *name, enum type index) {
  struct arena *arena = &s->arena;
  struct ir_entry *entry = add_entry(s, kernel, name, LEVEL_PROGRAM);
  entry->is_automatic = true;
  entry->index_type = index;
  entry->is_general = index == TYPE_I64;
  entry->block[0] = 64;
  entry->grid[0] = ref(s, list_at(&kernel->sizes, struct ir_var, 0));
  struct ir_mem *S = new_mem(s, kernel, "S", SPACE_SHARED, TYPE_F32, ir_int(arena, TYPE_I64, 2), NULL);
  list_push(arena, &entry->memory, S);
  struct ir_expr *thread = ir_special(arena, OP_THREAD, 0), *block = ir_special(arena, OP_BLOCK, 0);
  thread->type = block->type = index;
  struct list *body = &entry->body;
  struct ir_expr *offset =
      ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, block, ir_int(arena, index, 64)), thread);
  struct ir_expr *flat = ir_raw(arena, OP_LOAD_FLAT, TYPE_F32, &offset, 1);
  flat->mem = A;
  struct ir_var *v = let(s, kernel, body, "v", flat, at(3, 5));
  struct ir_expr *args[3] = {ir_int(arena, TYPE_U32, 0xffffffff), ref(s, v), ir_int(arena, TYPE_U32, 16)};
  struct ir_var *w = let(s, kernel, body, "w", ir_raw(arena, OP_SHFL_DOWN, TYPE_F32, args, 3), at(3, 5));
  struct ir_var *p = let(s, kernel, body, "p", ir_binary(arena, OP_ADD, ref(s, v), ref(s, w)), at(3, 5));
  struct ir_stmt *first = statement(s, body, IR_IF, at(3, 5));
  struct ir_expr *lane = ir_binary(arena, OP_MOD, thread, ir_int(arena, index, 32));
  first->value = ir_binary(arena, OP_EQ, lane, ir_int(arena, index, 0));
  store(s, &first->body, S, ir_binary(arena, OP_DIV, thread, ir_int(arena, index, 32)), ref(s, p), at(3, 5));
  statement(s, body, IR_BARRIER, at(3, 5));
  struct ir_var *a = let(s, kernel, body, "a", load(s, S, ir_int(arena, index, 0), NULL), at(3, 5));
  struct ir_var *b = let(s, kernel, body, "a", load(s, S, ir_int(arena, index, 1), NULL), at(3, 5));
  statement(s, body, IR_SYNCWARP, no_range)->value = ir_int(arena, TYPE_U32, 0xffff);
  struct ir_stmt *all = statement(s, body, IR_ALLREDUCE, at(3, 5));
  struct ir_var *total = ir_new_var(kernel, VAR_LET, TYPE_F32, "total");
  total->range = at(3, 5);
  list_push(arena, &all->results, total);
  all->reducer = sum;
  all->inputs = exprs(s, ir_binary(arena, OP_ADD, ref(s, a), ref(s, b)), NULL);
  all->thread_axes = 5;
  all->form = FORM_SHUFFLE;
  struct ir_stmt *last = statement(s, body, IR_STORE, at(3, 5));
  last->mem = B;
  last->is_flat = true;
  last->indices = exprs(s, block, NULL);
  last->value = ref(s, total);
}

static void build_reduce(struct sample *s) {
  struct ir_reducer *sum = add_sum(s);
  struct ir_kernel *kernel = add_kernel(s, "rowsum");
  struct ir_var *n = add_size(s, kernel, "n");
  struct ir_mem *A = add_tensor(s, kernel, "A", TYPE_F32, false, ref(s, n), ir_int(&s->arena, TYPE_I64, 64));
  struct ir_mem *B = add_tensor(s, kernel, "B", TYPE_BF16, true, ref(s, n), NULL);
  n->inferred = ir_fact(&s->arena, OP_DIM, A, 0);
  build_reduce_entry(s, kernel, sum, A, B, "rowsum", TYPE_I32);
  build_reduce_entry(s, kernel, sum, A, B, "rowsum_general", TYPE_I64);
}

// (value, index) of the largest value; on equal values the lower index.
static struct ir_reducer *add_argmax(struct sample *s) {
  struct arena *arena = &s->arena;
  struct ir_reducer *argmax = arena_new(arena, struct ir_reducer);
  static const char *const names[4] = {"a_value", "a_index", "b_value", "b_index"};
  struct ir_var *p[4];
  for (int i = 0; i < 4; i++) {
    p[i] = new_param(s, names[i], i % 2 ? TYPE_I32 : TYPE_F32);
    list_push(arena, &argmax->combine.params, p[i]);
  }
  argmax->name = "argmax_f32_i32";
  argmax->identity = exprs(s, ir_float(arena, TYPE_F32, -1.0 / 0.0), ir_int(arena, TYPE_I32, -1));
  struct ir_var *first = new_param(s, "first", TYPE_BOOL);
  struct ir_expr *greater = ir_binary(arena, OP_GT, ref(s, p[0]), ref(s, p[2]));
  list_push(arena, &argmax->combine.lets, ir_let(arena, first, greater, at(9, 2)));
  argmax->combine.results = exprs(s, ir_select(arena, ref(s, first), ref(s, p[0]), ref(s, p[2])),
                                  ir_select(arena, ref(s, first), ref(s, p[1]), ref(s, p[3])));
  list_push(arena, &s->module.reducers, argmax);
  return argmax;
}

static void build_tuple(struct sample *s) {
  struct arena *arena = &s->arena;
  struct ir_reducer *argmax = add_argmax(s);
  struct ir_kernel *kernel = add_kernel(s, "peak");
  struct ir_var *m = add_size(s, kernel, "m");
  struct ir_mem *A = add_tensor(s, kernel, "A", TYPE_F32, false, ref(s, m), NULL);
  struct ir_mem *P = add_tensor(s, kernel, "P", TYPE_I32, true, NULL, NULL);
  m->inferred = ir_fact(arena, OP_DIM, A, 0);
  struct ir_entry *entry = add_entry(s, kernel, "peak", LEVEL_STAGES);
  struct ir_axis *j = add_axis(s, kernel, entry, "j", extent_of(s, m), BIND_VECTOR);
  struct ir_stage *stage = add_stage(s, entry, STAGE_REDUCE, "value");
  use_axis(s, stage, j, true);
  stage->reducer = argmax;
  stage->operands = exprs(s, load(s, A, ref(s, j->var), NULL), ir_cast(arena, TYPE_I32, ref(s, j->var)));
  struct ir_var *value = ir_new_var(kernel, VAR_VALUE, TYPE_F32, "value");
  struct ir_var *place = ir_new_var(kernel, VAR_VALUE, TYPE_I32, "index");
  list_push(arena, &stage->results, value);
  list_push(arena, &stage->results, place);
  struct ir_stage *out = add_stage(s, entry, STAGE_STORE, "P");
  out->mem = P;
  out->value = ref(s, place);

  struct ir_entry *program = add_entry(s, kernel, "peak_2", LEVEL_PROGRAM);
  program->block[2] = 32;
  struct ir_expr *thread = ir_special(arena, OP_THREAD, 2);
  struct ir_stmt *all = statement(s, &program->body, IR_ALLREDUCE, at(4, 4));
  list_push(arena, &all->results, ir_new_var(kernel, VAR_LET, TYPE_F32, "value"));
  list_push(arena, &all->results, ir_new_var(kernel, VAR_LET, TYPE_I32, "index"));
  all->reducer = argmax;
  all->inputs = exprs(s, load(s, A, thread, NULL), ir_cast(arena, TYPE_I32, thread));
  all->thread_axes = 4;
  all->result_in_all = true;
  store(s, &program->body, P, NULL, ref(s, list_at(&all->results, struct ir_var, 1)), no_range);
}

static void build_update(struct sample *s) {
  struct arena *arena = &s->arena;
  struct ir_reducer *mean = arena_new(arena, struct ir_reducer);
  struct ir_var *a = new_param(s, "a", TYPE_F64), *ac = new_param(s, "a_count", TYPE_I64);
  struct ir_var *b = new_param(s, "b", TYPE_F64), *bc = new_param(s, "b_count", TYPE_I64);
  mean->name = "mean";
  mean->is_ordered = true;
  mean->identity = exprs(s, ir_float(arena, TYPE_F64, 0), ir_int(arena, TYPE_I64, 0));
  struct ir_var *const params[4] = {a, ac, b, bc};
  for (int i = 0; i < 4; i++) list_push(arena, &mean->combine.params, params[i]);
  struct ir_var *count = new_param(s, "count", TYPE_I64);
  list_push(arena, &mean->combine.lets,
            ir_let(arena, count, ir_binary(arena, OP_ADD, ref(s, ac), ref(s, bc)), no_range));
  mean->combine.results = exprs(s, ir_binary(arena, OP_ADD, ref(s, a), ref(s, b)), ref(s, count));
  struct ir_var *state = new_param(s, "s", TYPE_F64), *seen = new_param(s, "s_count", TYPE_I64);
  struct ir_var *x = new_param(s, "x", TYPE_F32);
  list_push(arena, &mean->update.params, state);
  list_push(arena, &mean->update.params, seen);
  list_push(arena, &mean->update.params, x);
  mean->update.results =
      exprs(s, ir_binary(arena, OP_ADD, ref(s, state), ir_cast(arena, TYPE_F64, ref(s, x))),
            ir_binary(arena, OP_ADD, ref(s, seen), ir_int(arena, TYPE_I64, 1)));
  list_push(arena, &s->module.reducers, mean);

  struct ir_kernel *kernel = add_kernel(s, "mean");
  struct ir_mem *X = add_tensor(s, kernel, "X", TYPE_F16, false, ir_int(arena, TYPE_I64, 77), NULL);
  struct ir_mem *M = add_tensor(s, kernel, "M", TYPE_F64, true, NULL, NULL);
  M->is_read = true;
  struct ir_entry *entry = add_entry(s, kernel, "mean", LEVEL_STAGES);
  struct ir_axis *i = add_axis(s, kernel, entry, "i", index_of(s, 77), BIND_SERIAL);
  struct ir_stage *stage = add_stage(s, entry, STAGE_REDUCE, "m");
  use_axis(s, stage, i, true);
  stage->reducer = mean;
  stage->operands = exprs(s, ir_cast(arena, TYPE_F32, load(s, X, ref(s, i->var), NULL)), NULL);
  stage->init = exprs(s, load(s, M, NULL, NULL), ir_int(arena, TYPE_I64, 1));
  struct ir_var *sum = ir_new_var(kernel, VAR_VALUE, TYPE_F64, "m");
  struct ir_var *number = ir_new_var(kernel, VAR_VALUE, TYPE_I64, "c");
  list_push(arena, &stage->results, sum);
  list_push(arena, &stage->results, number);
  struct ir_stage *out = add_stage(s, entry, STAGE_STORE, "M");
  out->mem = M;
  out->value = ir_binary(arena, OP_DIV, ref(s, sum), ir_cast(arena, TYPE_F64, ref(s, number)));
}

static void build_nests(struct sample *s) {
  struct arena *arena = &s->arena;
  struct ir_kernel *kernel = add_kernel(s, "nests");
  struct ir_mem *A = add_tensor(s, kernel, "A", TYPE_U64, false, ir_int(arena, TYPE_I64, 100), NULL);
  struct ir_mem *B = add_tensor(s, kernel, "B", TYPE_U64, true, ir_int(arena, TYPE_I64, 100), NULL);
  struct ir_entry *entry = add_entry(s, kernel, "nests", LEVEL_PROGRAM);
  struct ir_mem *L = new_mem(s, kernel, "L", SPACE_LOCAL, TYPE_U64, ir_int(arena, TYPE_I64, 4), NULL);
  L->alignment = 16;
  L->range = no_range;
  list_push(arena, &entry->memory, L);
  struct ir_var *sum = mutable_var(s, kernel, &entry->body, "sum", ir_int(arena, TYPE_U64, -1));
  struct ir_stmt *outer = loop(s, kernel, &entry->body, "k", TYPE_INDEX, 0, index_of(s, 25), 1);
  struct ir_stmt *inner = loop(s, kernel, &outer->body, "k", TYPE_INDEX, 0, index_of(s, 4), UINT32_MAX);
  struct ir_expr *place = ir_binary(
      arena, OP_ADD, ir_binary(arena, OP_MUL, ref(s, outer->var), index_of(s, 4)), ref(s, inner->var));
  store(s, &inner->body, L, ref(s, inner->var), load(s, A, place, NULL), at(8, 9));
  struct ir_stmt *branch = statement(s, &outer->body, IR_IF, at(9, 5));
  branch->value = ir_binary(arena, OP_LT, ref(s, outer->var), index_of(s, 12));
  struct ir_stmt *again = loop(s, kernel, &branch->body, "k", TYPE_INDEX, 0, index_of(s, 4), 2);
  set(s, &again->body, sum, ir_binary(arena, OP_XOR, ref(s, sum), load(s, L, ref(s, again->var), NULL)));
  struct ir_stmt *deeper = statement(s, &branch->otherwise, IR_IF, no_range);
  deeper->value = ir_int(arena, TYPE_BOOL, 1);
  set(s, &deeper->body, sum, ir_int(arena, TYPE_U64, INT64_MIN));
  statement(s, &deeper->otherwise, IR_IF, no_range)->value = ir_int(arena, TYPE_BOOL, 0);
  store(s, &entry->body, B, index_of(s, 0), ref(s, sum), at(12, 5));
}

static bool op_takes(enum op op, enum type type) {
  switch (type_class_of(type)) {
  case CLASS_BOOL: return strchr(op_table[op].properties, 'b') != NULL;
  case CLASS_SIGNED:
  case CLASS_UNSIGNED:
  case CLASS_INDEX: return strchr(op_table[op].properties, 'i') != NULL;
  case CLASS_FLOAT: return strchr(op_table[op].properties, 'f') != NULL;
  case CLASS_STORAGE:
  case CLASS_MOVED: return false;
  }
  return false;
}

// The operation on `operand` as often as it takes it; NULL where that does not exist.
static struct ir_expr *apply(struct sample *s, enum op op, struct ir_var *operand, enum type to) {
  struct ir_expr *x = ref(s, operand), *args[3] = {x, x, x};
  enum type type = operand->type;
  struct ir_expr *mask = ir_int(&s->arena, TYPE_U32, 0x80000001u);
  switch (op_table[op].rule) {
  case RULE_SAME: return ir_raw(&s->arena, op, type, args, (uint32_t)op_table[op].operands);
  case RULE_COMPARE:
  case RULE_PREDICATE: return ir_raw(&s->arena, op, TYPE_BOOL, args, (uint32_t)op_table[op].operands);
  case RULE_SELECT: args[0] = ir_int(&s->arena, TYPE_BOOL, 1); return ir_raw(&s->arena, op, type, args, 3);
  case RULE_CONVERT:
    if (op == OP_BITCAST && type_bits(type) != type_bits(to)) return NULL;
    return op_takes(op, to) ? ir_raw(&s->arena, op, to, args, 1) : NULL;
  case RULE_SHUFFLE: args[0] = args[2] = mask; return ir_raw(&s->arena, op, type, args, 3);
  case RULE_REDUX: args[0] = mask; return type_bits(type) == 32 ? ir_raw(&s->arena, op, type, args, 2) : NULL;
  case RULE_NONE:
    if (op == OP_VAR) return x;
    return type_is_float(type) ? ir_float(&s->arena, type, -2.5) : ir_int(&s->arena, type, 1);
  case RULE_MEMORY:
  case RULE_SPECIAL:
  case RULE_FACT:
  case RULE_AWAIT: return NULL;
  }
  return NULL;
}

static void build_operations(struct sample *s) {
  struct arena *arena = &s->arena;
  struct ir_kernel *kernel = add_kernel(s, "operations");
  struct ir_mem *A =
      add_tensor(s, kernel, "A", TYPE_C128, false, ir_int(arena, TYPE_I64, 9), ir_int(arena, TYPE_I64, 8));
  struct ir_mem *H = add_tensor(s, kernel, "H", TYPE_F16, false, NULL, NULL);
  struct ir_entry *entry = add_entry(s, kernel, "operations", LEVEL_PROGRAM);
  struct ir_var *vars[TYPE_COUNT] = {0};
  struct list *body = &entry->body;
  for (int t = 0; t < TYPE_COUNT; t++) {
    enum type type = (enum type)t;
    if (!op_takes(OP_CONST, type)) continue;
    struct ir_expr *one = type_is_float(type) ? ir_float(arena, type, 1) : ir_int(arena, type, 1);
    vars[t] = let(s, kernel, body, type_name(type), one, no_range);
  }
  for (int o = 0; o < OP_COUNT; o++) {
    enum op op = (enum op)o;
    for (int t = 0; t < TYPE_COUNT; t++)
      for (int to = 0; to < (op_table[op].rule == RULE_CONVERT ? TYPE_COUNT : 1); to++) {
        struct ir_expr *e =
            vars[t] && op_takes(op, (enum type)t) ? apply(s, op, vars[t], (enum type)to) : NULL;
        if (e) let(s, kernel, body, op_table[op].spelling, e, no_range);
      }
    if (op_table[op].rule == RULE_SPECIAL)
      for (uint32_t d = 0; d < 3; d++) let(s, kernel, body, "where", ir_special(arena, op, d), no_range);
    if (op_table[op].rule == RULE_FACT) {
      bool has_mem = op == OP_DIM || op == OP_STRIDE || op == OP_ADDRESS;
      struct ir_expr *fact = ir_fact(arena, op, has_mem ? A : NULL, op == OP_STRIDE);
      require(s, &kernel->requirements, ir_binary(arena, OP_GE, fact, ir_int(arena, TYPE_I64, 0)), "");
    }
  }
  struct ir_mem *words = new_mem(s, kernel, "words", SPACE_GLOBAL, TYPE_U64, ir_int(arena, TYPE_I64, 9), NULL);
  words->workspace = ir_int(arena, TYPE_I64, 65536);
  words->is_polled = words->is_output = words->is_read = true;
  list_push(arena, &entry->memory, words);
  struct ir_expr *word[2] = {ir_int(arena, TYPE_U64, 0), load(s, words, index_of(s, 2), NULL)};
  let(s, kernel, body, "came", ir_raw(arena, OP_AWAIT, TYPE_U64, word, 2), no_range);
  let(s, kernel, body, "pair", load(s, A, index_of(s, 3), index_of(s, 4)), no_range);
  struct ir_expr *offset = index_of(s, 5), *flat = ir_raw(arena, OP_LOAD_FLAT, TYPE_C128, &offset, 1);
  flat->mem = A;
  let(s, kernel, body, "pair", flat, no_range);
  struct ir_var *half = let(s, kernel, body, "half", load(s, H, NULL, NULL), no_range);
  struct ir_var *wide = let(s, kernel, body, "wide", ir_cast(arena, TYPE_F32, ref(s, half)), no_range);
  let(s, kernel, body, "narrow", ir_cast(arena, TYPE_BF16, ref(s, wide)), no_range);
  struct ir_expr *as_half = ref(s, half);
  let(s, kernel, body, "bits", ir_raw(arena, OP_BITCAST, TYPE_U16, &as_half, 1), no_range);
}

static void sample_build(struct sample *s, enum sample_kind kind) {
  sample_init(s);
  diag_add_source(&s->diag, "sample.red", NULL, 0);
  switch (kind) {
  case SAMPLE_STAGES: build_stages(s); return;
  case SAMPLE_REDUCE: build_reduce(s); return;
  case SAMPLE_TUPLE: build_tuple(s); return;
  case SAMPLE_UPDATE: build_update(s); return;
  case SAMPLE_NESTS: build_nests(s); return;
  case SAMPLE_OPERATIONS: build_operations(s); return;
  case SAMPLE_COUNT: return;
  }
}

// Reads a dump of `length` bytes into a sample of its own; the text must live as long as it.
static bool sample_read(struct sample *s, const char *text, size_t length) {
  sample_init(s);
  return ir_read(&s->module, diag_add_source(&s->diag, "dump.ir", text, length));
}

// The message reported first; "" where there is none.
static const char *first_message(const struct sample *s) {
  return s->diag.diagnostics.count ? list_at(&s->diag.diagnostics, struct diagnostic, 0)->message : "";
}

#endif
