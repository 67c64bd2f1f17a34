// Each rule of the verifier: a module that breaks it is reported, in words that name the place.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/unit/ir_samples.h"

static struct ir_kernel *kernel_of(struct sample *s) {
  return list_at(&s->module.kernels, struct ir_kernel, 0);
}
static struct ir_entry *entry_of(struct sample *s, uint32_t which) {
  return list_at(&kernel_of(s)->entries, struct ir_entry, which);
}
static struct ir_stage *stage_of(struct sample *s, uint32_t which) {
  return list_at(&entry_of(s, 0)->stages, struct ir_stage, which);
}
static struct ir_axis *axis_of(struct sample *s, uint32_t which) {
  return list_at(&entry_of(s, 0)->axes, struct ir_axis, which);
}
static struct ir_stmt *stmt_of(struct sample *s, uint32_t which) {
  return list_at(&entry_of(s, 0)->body, struct ir_stmt, which);
}
static struct ir_mem *tensor_of(struct sample *s, uint32_t which) {
  return list_at(&kernel_of(s)->tensors, struct ir_mem, which);
}
static struct ir_var *size_of(struct sample *s) {
  return list_at(&kernel_of(s)->sizes, struct ir_var, 0);
}
static struct ir_reducer *reducer_of(struct sample *s) {
  return list_at(&s->module.reducers, struct ir_reducer, 0);
}
static struct ir_expr *i32(struct sample *s, int64_t value) {
  return ir_int(&s->arena, TYPE_I32, value);
}
static struct ir_expr *f32(struct sample *s, double value) {
  return ir_float(&s->arena, TYPE_F32, value);
}

// Breaks one rule of a sample that verifies; `message` is in what is reported.
struct damage {
  const char *rule;
  enum sample_kind kind;
  void (*apply)(struct sample *s);
  const char *message;
};
#define DAMAGE(name) static void name(struct sample *s)

// ---- Names

DAMAGE(size_twice) {
  list_push(&s->arena, &kernel_of(s)->sizes, size_of(s));
}
DAMAGE(size_named_as_tensor) {
  size_of(s)->name = "A";
}
DAMAGE(let_named_as_size) {
  stmt_of(s, 0)->var->name = "n";
}
DAMAGE(let_twice) {
  list_push(&s->arena, &entry_of(s, 0)->body, stmt_of(s, 0));
}
DAMAGE(empty_name) {
  stmt_of(s, 0)->var->name = "";
}
DAMAGE(kernel_twice) {
  list_push(&s->arena, &s->module.kernels, kernel_of(s));
}
DAMAGE(kernel_without_name) {
  kernel_of(s)->name = "";
}
DAMAGE(entry_twice) {
  entry_of(s, 1)->name = entry_of(s, 0)->name;
}
DAMAGE(entry_without_name) {
  entry_of(s, 0)->name = NULL;
}
DAMAGE(reducer_twice) {
  list_push(&s->arena, &s->module.reducers, reducer_of(s));
}
DAMAGE(reducer_without_name) {
  reducer_of(s)->name = NULL;
}
DAMAGE(parameter_twice) {
  struct list *params = &reducer_of(s)->combine.params;
  params->at[1] = params->at[0];
}

// ---- Scopes

DAMAGE(used_before_definition) {
  struct list *body = &entry_of(s, 0)->body;
  list_insert(&s->arena, body, 0, body->at[2]); // p, of v and w
  list_remove(body, 3);
}
DAMAGE(used_outside_its_loop) {
  struct ir_stmt *outer = stmt_of(s, 1);
  store(s, &entry_of(s, 0)->body, tensor_of(s, 1), ref(s, outer->var), ir_int(&s->arena, TYPE_U64, 1),
        no_range);
}
DAMAGE(used_outside_its_branch) {
  struct ir_stmt *branch = list_at(&stmt_of(s, 1)->body, struct ir_stmt, 1);
  struct ir_var *x = let(s, kernel_of(s), &branch->body, "x", ir_int(&s->arena, TYPE_U64, 1), no_range);
  set(s, &branch->otherwise, stmt_of(s, 0)->var, ref(s, x));
}
DAMAGE(variable_of_another_kernel) {
  struct ir_kernel *other = add_kernel(s, "other");
  struct ir_entry *entry = add_entry(s, other, "other", LEVEL_PROGRAM);
  let(s, other, &entry->body, "x", ref(s, size_of(s)), no_range);
}
DAMAGE(value_before_its_stage) {
  struct list *stages = &entry_of(s, 0)->stages;
  list_insert(&s->arena, stages, 0, stages->at[1]);
  list_remove(stages, 2);
}
DAMAGE(let_of_another_stage) {
  stage_of(s, 1)->value = ref(s, list_at(&stage_of(s, 0)->lets, struct ir_stmt, 0)->var);
}
DAMAGE(axis_of_another_stage) {
  list_remove(&stage_of(s, 1)->axes, 0);
}
DAMAGE(memory_of_another_entry) {
  stmt_of(s, 5)->value->mem = list_at(&entry_of(s, 1)->memory, struct ir_mem, 0);
}
DAMAGE(stored_memory_not_declared) {
  list_at(&stmt_of(s, 3)->body, struct ir_stmt, 0)->mem =
      new_mem(s, kernel_of(s), "Q", SPACE_SHARED, TYPE_F32, NULL, NULL);
}

// ---- Mutable and immutable

DAMAGE(set_of_let) {
  struct list *body = &entry_of(s, 0)->body;
  struct ir_var *x = let(s, kernel_of(s), body, "x", i32(s, 1), no_range);
  set(s, body, x, i32(s, 2));
}
DAMAGE(set_of_undeclared) {
  set(s, &entry_of(s, 0)->body, ir_new_var(kernel_of(s), VAR_MUTABLE, TYPE_I32, "x"), i32(s, 2));
}
DAMAGE(let_of_mutable) {
  stmt_of(s, 0)->var->kind = VAR_MUTABLE;
}
DAMAGE(var_of_let) {
  stmt_of(s, 0)->var->kind = VAR_LET;
}
DAMAGE(for_of_let) {
  stmt_of(s, 1)->var->kind = VAR_LET;
}
DAMAGE(let_without_variable) {
  stmt_of(s, 0)->var = NULL;
}
DAMAGE(let_without_value) {
  stmt_of(s, 0)->value = NULL;
}

// ---- Types of nodes

static void add_value(struct sample *s, struct ir_expr *value) {
  let(s, kernel_of(s), &entry_of(s, 0)->body, "x", value, at(40, 2));
}
static struct ir_expr *raw(struct sample *s, enum op op, enum type type, struct ir_expr *a, struct ir_expr *b,
                           struct ir_expr *c) {
  struct ir_expr *args[3] = {a, b, c};
  return ir_raw(&s->arena, op, type, args, (a != NULL) + (b != NULL) + (c != NULL));
}
DAMAGE(operand_missing) {
  add_value(s, raw(s, OP_ADD, TYPE_I32, i32(s, 1), NULL, NULL));
}
DAMAGE(operand_too_many) {
  add_value(s, raw(s, OP_SQRT, TYPE_F32, f32(s, 1), f32(s, 1), NULL));
}
DAMAGE(operands_differ) {
  add_value(s, raw(s, OP_ADD, TYPE_I32, i32(s, 1), f32(s, 1), NULL));
}
DAMAGE(result_differs) {
  add_value(s, raw(s, OP_ADD, TYPE_I64, i32(s, 1), i32(s, 1), NULL));
}
DAMAGE(class_not_taken) {
  add_value(s, raw(s, OP_SHL, TYPE_F32, f32(s, 1), f32(s, 1), NULL));
}
DAMAGE(bool_not_taken) {
  struct ir_expr *yes = ir_int(&s->arena, TYPE_BOOL, 1);
  add_value(s, raw(s, OP_LT, TYPE_BOOL, yes, yes, NULL));
}
DAMAGE(compare_not_bool) {
  add_value(s, raw(s, OP_EQ, TYPE_I32, i32(s, 1), i32(s, 1), NULL));
}
DAMAGE(predicate_not_bool) {
  add_value(s, raw(s, OP_ISNAN, TYPE_F32, f32(s, 1), NULL, NULL));
}
DAMAGE(select_condition) {
  add_value(s, raw(s, OP_SELECT, TYPE_I32, i32(s, 1), i32(s, 1), i32(s, 1)));
}
DAMAGE(select_arms) {
  add_value(s, raw(s, OP_SELECT, TYPE_I32, ir_int(&s->arena, TYPE_BOOL, 1), i32(s, 1), f32(s, 1)));
}
DAMAGE(cast_of_moved) {
  struct list none = {0};
  struct ir_mem *c = add_tensor(s, kernel_of(s), "C", TYPE_C64, false, NULL, NULL);
  add_value(s, raw(s, OP_CAST, TYPE_F32, ir_load(&s->arena, c, &none), NULL, NULL));
}
DAMAGE(cast_of_integer_to_storage) {
  add_value(s, raw(s, OP_CAST, TYPE_F16, i32(s, 1), NULL, NULL));
}
DAMAGE(bitcast_of_another_width) {
  add_value(s, raw(s, OP_BITCAST, TYPE_I64, f32(s, 1), NULL, NULL));
}
DAMAGE(shuffle_mask) {
  add_value(s, raw(s, OP_SHFL_XOR, TYPE_F32, i32(s, 1), f32(s, 1), i32(s, 1)));
}
DAMAGE(storage_computes) {
  struct list none = {0};
  struct ir_mem *h = add_tensor(s, kernel_of(s), "H", TYPE_F16, false, NULL, NULL);
  struct ir_expr *x = ir_load(&s->arena, h, &none);
  add_value(s, raw(s, OP_ADD, TYPE_F16, x, x, NULL));
}
DAMAGE(constant_outside_its_type) {
  add_value(s, ir_int(&s->arena, TYPE_U8, -1));
}
DAMAGE(constant_of_storage) {
  add_value(s, ir_int(&s->arena, TYPE_F16, 0));
}
DAMAGE(constant_between_floats) {
  struct ir_expr *e = f32(s, 0);
  e->number = 0.1;
  add_value(s, e);
}
DAMAGE(variable_of_another_type) {
  struct ir_expr *e = ref(s, stmt_of(s, 0)->var);
  e->type = TYPE_I32;
  add_value(s, e);
}
DAMAGE(load_of_another_type) {
  stmt_of(s, 0)->value->type = TYPE_I32;
}
DAMAGE(load_of_nothing) {
  stmt_of(s, 0)->value->mem = NULL;
}
DAMAGE(load_of_another_rank) {
  struct list one = exprs(s, i32(s, 0), NULL);
  add_value(s, ir_load(&s->arena, tensor_of(s, 0), &one));
}
DAMAGE(load_at_float) {
  struct list two = exprs(s, f32(s, 0), f32(s, 0));
  add_value(s, ir_load(&s->arena, tensor_of(s, 0), &two));
}
DAMAGE(dimension_of_thread) {
  struct ir_expr *e = ir_special(&s->arena, OP_THREAD, 3);
  e->type = TYPE_I32;
  add_value(s, e);
}
DAMAGE(type_of_thread) {
  struct ir_expr *e = ir_special(&s->arena, OP_THREAD, 0);
  e->type = TYPE_I64;
  add_value(s, e);
}
DAMAGE(type_unknown) {
  stmt_of(s, 0)->value->type = TYPE_COUNT;
}
DAMAGE(operation_unknown) {
  stmt_of(s, 0)->value->op = OP_COUNT;
}
DAMAGE(too_deep) {
  struct ir_expr *e = i32(s, 1);
  for (int i = 0; i < 5000; i++) e = raw(s, OP_NEG, TYPE_I32, e, NULL, NULL);
  add_value(s, e);
}

// ---- Types of statements

DAMAGE(let_of_another_type) {
  stmt_of(s, 2)->var->type = TYPE_I32;
}
DAMAGE(store_of_another_type) {
  list_at(&stmt_of(s, 3)->body, struct ir_stmt, 0)->value = i32(s, 1);
}
DAMAGE(store_of_f64_as_half) {
  stmt_of(s, 9)->value = ir_float(&s->arena, TYPE_F64, 1);
}
DAMAGE(store_at_another_rank) {
  stmt_of(s, 9)->indices.count = 0;
}
DAMAGE(store_at_another_index) {
  stmt_of(s, 9)->indices.at[0] = ir_int(&s->arena, TYPE_I64, 0);
}
DAMAGE(load_at_another_index) {
  stmt_of(s, 5)->value->args[0] = ir_int(&s->arena, TYPE_I64, 0);
}
DAMAGE(store_to_input) {
  stmt_of(s, 9)->mem = tensor_of(s, 0);
}
DAMAGE(load_of_unread) {
  tensor_of(s, 0)->is_read = false;
}
DAMAGE(condition_not_bool) {
  stmt_of(s, 3)->value = i32(s, 1);
}
DAMAGE(mask_not_u32) {
  stmt_of(s, 7)->value = i32(s, 1);
}
DAMAGE(bound_of_another_type) {
  stmt_of(s, 1)->hi = i32(s, 1);
}
DAMAGE(loop_over_float) {
  stmt_of(s, 1)->var->type = TYPE_F32;
}
DAMAGE(unknown_statement) {
  stmt_of(s, 4)->kind = (enum ir_stmt_kind)77;
}
DAMAGE(index_in_lowered_expression) {
  add_value(s, ir_cast(&s->arena, TYPE_I32, ir_cast(&s->arena, TYPE_INDEX, ref(s, size_of(s)))));
}
DAMAGE(index_in_lowered_variable) {
  struct ir_expr *lo = index_of(s, 0);
  struct ir_stmt *nest = loop(s, kernel_of(s), &entry_of(s, 0)->body, "k", TYPE_INDEX, 0, lo, 0);
  nest->var->type = TYPE_INDEX;
}
DAMAGE(index_in_lowered_memory) {
  list_at(&entry_of(s, 0)->memory, struct ir_mem, 0)->type = TYPE_INDEX;
}

// ---- Places of operations

DAMAGE(shuffle_inside) {
  struct ir_expr *w = stmt_of(s, 1)->value;
  stmt_of(s, 1)->value = ir_binary(&s->arena, OP_ADD, w, f32(s, 1));
}
DAMAGE(shared_load_inside) {
  struct ir_expr *w = stmt_of(s, 5)->value;
  stmt_of(s, 5)->value = ir_binary(&s->arena, OP_ADD, w, f32(s, 1));
}
DAMAGE(shared_load_stored) {
  stmt_of(s, 9)->value = stmt_of(s, 5)->value;
}
DAMAGE(fact_in_body) {
  add_value(s, ir_fact(&s->arena, OP_DIM, tensor_of(s, 0), 0));
}
DAMAGE(fact_in_dimension) {
  tensor_of(s, 0)->dims.at[0] = ir_fact(&s->arena, OP_SMS, NULL, 0);
}
DAMAGE(fact_of_memory) {
  size_of(s)->inferred->mem = list_at(&entry_of(s, 0)->memory, struct ir_mem, 0);
}
DAMAGE(fact_of_another_kernel) {
  size_of(s)->inferred->mem =
      new_mem(s, kernel_of(s), "Q", SPACE_GLOBAL, TYPE_F32, ir_int(&s->arena, TYPE_I64, 1), NULL);
}
DAMAGE(load_in_grid) {
  struct ir_expr *zero = i32(s, 0);
  struct ir_mem *a = add_tensor(s, kernel_of(s), "Q", TYPE_I64, false, ir_int(&s->arena, TYPE_I64, 1), NULL);
  entry_of(s, 0)->grid[1] = load(s, a, zero, NULL);
}
DAMAGE(thread_in_grid) {
  struct ir_expr *thread = ir_special(&s->arena, OP_THREAD, 0);
  entry_of(s, 0)->grid[1] = ir_cast(&s->arena, TYPE_I64, thread);
}
DAMAGE(thread_in_stage) {
  stage_of(s, 1)->indices.at[0] = ir_special(&s->arena, OP_THREAD, 0);
}
DAMAGE(flat_load_in_stage) {
  struct ir_expr *zero = index_of(s, 0);
  struct ir_expr *flat = raw(s, OP_LOAD_FLAT, TYPE_F32, zero, NULL, NULL);
  flat->mem = tensor_of(s, 0);
  stage_of(s, 1)->value = flat;
}
DAMAGE(float_scalar_in_plan) {
  struct ir_var *alpha = list_at(&kernel_of(s)->scalars, struct ir_var, 0);
  entry_of(s, 0)->when = ir_binary(&s->arena, OP_GT, ref(s, alpha), f32(s, 0));
}
DAMAGE(axis_in_plan) {
  struct ir_expr *i = ir_cast(&s->arena, TYPE_I64, ref(s, axis_of(s, 0)->var));
  entry_of(s, 0)->when = ir_binary(&s->arena, OP_GT, i, ir_int(&s->arena, TYPE_I64, 0));
}

// ---- Allreduce

static struct ir_stmt *allreduce_of(struct sample *s) {
  return stmt_of(s, 8);
}
DAMAGE(allreduce_over_nothing) {
  allreduce_of(s)->thread_axes = 0;
}
DAMAGE(allreduce_over_too_much) {
  allreduce_of(s)->thread_axes = 8;
}
DAMAGE(allreduce_of_unlisted_reducer) {
  s->module.reducers.count = 0;
}
DAMAGE(allreduce_inputs) {
  allreduce_of(s)->inputs.count = 0;
}
DAMAGE(allreduce_input_type) {
  allreduce_of(s)->inputs.at[0] = i32(s, 1);
}
DAMAGE(allreduce_results) {
  allreduce_of(s)->results.count = 0;
}
DAMAGE(allreduce_result_type) {
  list_at(&allreduce_of(s)->results, struct ir_var, 0)->type = TYPE_I32;
}
DAMAGE(allreduce_result_kind) {
  list_at(&allreduce_of(s)->results, struct ir_var, 0)->kind = VAR_MUTABLE;
}
DAMAGE(allreduce_form) {
  allreduce_of(s)->form = (enum allreduce_form)9;
}

// ---- Reducers

DAMAGE(reducer_without_components) {
  reducer_of(s)->identity.count = 0;
}
DAMAGE(identity_not_constant) {
  reducer_of(s)->identity.at[0] = raw(s, OP_NEG, TYPE_F32, f32(s, 1), NULL, NULL);
}
DAMAGE(combine_parameters) {
  reducer_of(s)->combine.params.count = 1;
}
DAMAGE(combine_parameter_type) {
  list_at(&reducer_of(s)->combine.params, struct ir_var, 1)->type = TYPE_F64;
}
DAMAGE(combine_results) {
  reducer_of(s)->combine.results.count = 0;
}
DAMAGE(combine_result_type) {
  reducer_of(s)->combine.results.at[0] = i32(s, 1);
}
DAMAGE(combine_of_size) {
  reducer_of(s)->combine.results.at[0] = ir_cast(&s->arena, TYPE_F32, ref(s, size_of(s)));
}
DAMAGE(combine_of_load) {
  struct list two = exprs(s, index_of(s, 0), index_of(s, 0));
  reducer_of(s)->combine.results.at[0] = ir_load(&s->arena, tensor_of(s, 0), &two);
}
DAMAGE(combine_of_thread) {
  struct ir_expr *thread = ir_special(&s->arena, OP_THREAD, 0);
  reducer_of(s)->combine.results.at[0] = ir_cast(&s->arena, TYPE_F32, thread);
}
DAMAGE(combine_with_store) {
  struct ir_stmt *stmt = statement(s, &reducer_of(s)->combine.lets, IR_STORE, no_range);
  stmt->mem = tensor_of(s, 1);
}
DAMAGE(update_without_operand) {
  reducer_of(s)->update.params.count = 2;
}
DAMAGE(update_state_type) {
  list_at(&reducer_of(s)->update.params, struct ir_var, 1)->type = TYPE_I32;
}
DAMAGE(update_results) {
  reducer_of(s)->update.results.count = 1;
}
DAMAGE(parameter_mutable) {
  list_at(&reducer_of(s)->combine.params, struct ir_var, 0)->kind = VAR_MUTABLE;
}

// ---- Stages

DAMAGE(stage_axis_unlisted) {
  list_remove(&entry_of(s, 0)->axes, 3);
}
DAMAGE(stage_axis_twice) {
  use_axis(s, stage_of(s, 0), axis_of(s, 0), false);
}
DAMAGE(store_reduces) {
  list_at(&stage_of(s, 1)->axes, struct ir_stage_axis, 0)->is_reduction = true;
}
DAMAGE(extent_type) {
  axis_of(s, 2)->extent = i32(s, 4);
}
DAMAGE(extent_missing) {
  axis_of(s, 2)->extent = NULL;
}
DAMAGE(extent_of_itself) {
  axis_of(s, 2)->extent = ref(s, axis_of(s, 2)->var);
}
DAMAGE(axis_type) {
  axis_of(s, 1)->var->type = TYPE_I64;
}
DAMAGE(axis_twice) {
  list_push(&s->arena, &entry_of(s, 0)->axes, axis_of(s, 0));
}
DAMAGE(axis_bind) {
  axis_of(s, 0)->bind = (enum ir_bind)40;
}
DAMAGE(guard_not_bool) {
  stage_of(s, 0)->guards.at[0] = index_of(s, 1);
}
DAMAGE(stage_let_is_set) {
  list_at(&stage_of(s, 0)->lets, struct ir_stmt, 0)->kind = IR_SET;
}
DAMAGE(stage_reducer_unlisted) {
  s->module.reducers.count = 0;
}
DAMAGE(stage_form) {
  stage_of(s, 0)->form = (enum allreduce_form)9;
}
DAMAGE(operands_missing) {
  stage_of(s, 0)->operands.count = 0;
}
DAMAGE(operand_type) {
  stage_of(s, 0)->operands.at[0] = i32(s, 1);
}
DAMAGE(update_operands_missing) {
  stage_of(s, 0)->operands.count = 0;
}
DAMAGE(update_operand_type) {
  stage_of(s, 0)->operands.at[0] = ir_float(&s->arena, TYPE_F64, 1);
}
DAMAGE(init_count) {
  stage_of(s, 0)->init.count = 1;
}
DAMAGE(init_type) {
  stage_of(s, 0)->init.at[0] = f32(s, 1);
}
DAMAGE(init_of_reduction) {
  stage_of(s, 0)->init.at[0] = ir_cast(&s->arena, TYPE_F32, ref(s, axis_of(s, 1)->var));
}
DAMAGE(results_missing) {
  stage_of(s, 0)->results.count = 1;
}
DAMAGE(result_type) {
  list_at(&stage_of(s, 0)->results, struct ir_var, 0)->type = TYPE_F64;
}
DAMAGE(result_kind) {
  list_at(&stage_of(s, 0)->results, struct ir_var, 0)->kind = VAR_LET;
}
DAMAGE(stage_stores_input) {
  stage_of(s, 1)->mem = tensor_of(s, 0);
}
DAMAGE(stage_stores_nothing) {
  stage_of(s, 1)->mem = NULL;
}
DAMAGE(stage_stores_type) {
  stage_of(s, 1)->value = i32(s, 1);
}
DAMAGE(factor_type) {
  list_at(&entry_of(s, 0)->directives, struct ir_directive, 0)->factor = f32(s, 1);
}

// ---- Entries and kernels

DAMAGE(stages_with_body) {
  statement(s, &entry_of(s, 0)->body, IR_BARRIER, no_range);
}
DAMAGE(stages_with_global_memory) {
  list_push(&s->arena, &entry_of(s, 0)->memory, tensor_of(s, 0));
}
DAMAGE(stages_with_block) {
  entry_of(s, 0)->block[0] = 1;
}
DAMAGE(stages_with_index_type) {
  entry_of(s, 0)->index_type = TYPE_I32;
}
DAMAGE(program_with_stages) {
  add_stage(s, entry_of(s, 0), STAGE_STORE, "B");
}
DAMAGE(program_without_grid) {
  entry_of(s, 0)->grid[2] = NULL;
}
DAMAGE(grid_type) {
  entry_of(s, 0)->grid[2] = i32(s, 1);
}
DAMAGE(block_empty) {
  entry_of(s, 0)->block[1] = 0;
}
DAMAGE(block_too_wide) {
  entry_of(s, 0)->block[1] = 4096;
}
DAMAGE(block_too_large) {
  entry_of(s, 0)->block[1] = 17;
}
DAMAGE(when_not_bool) {
  entry_of(s, 0)->when = ref(s, size_of(s));
}
DAMAGE(assumption_not_bool) {
  list_at(&entry_of(s, 0)->assumptions, struct ir_requirement, 0)->condition = ref(s, size_of(s));
}
DAMAGE(requirement_not_bool) {
  list_at(&kernel_of(s)->requirements, struct ir_requirement, 0)->condition = ref(s, size_of(s));
}
DAMAGE(requirement_without_message) {
  list_at(&kernel_of(s)->requirements, struct ir_requirement, 0)->message = NULL;
}
DAMAGE(general_first) {
  entry_of(s, 0)->is_general = true;
}
DAMAGE(index_type_of_entry) {
  entry_of(s, 0)->index_type = TYPE_U32;
}
DAMAGE(memory_global) {
  list_at(&entry_of(s, 0)->memory, struct ir_mem, 0)->space = SPACE_GLOBAL;
}
DAMAGE(memory_marked) {
  list_at(&entry_of(s, 0)->memory, struct ir_mem, 0)->is_read = true;
}
DAMAGE(local_size) {
  struct ir_mem *local = list_at(&entry_of(s, 0)->memory, struct ir_mem, 0);
  local->dims.at[0] = ref(s, add_size(s, kernel_of(s), "n"));
}
DAMAGE(tensor_shared) {
  tensor_of(s, 1)->space = SPACE_SHARED;
}
DAMAGE(tensor_number) {
  tensor_of(s, 1)->parameter = 5;
}
DAMAGE(strides_missing) {
  tensor_of(s, 0)->strides.count = 1;
}
DAMAGE(dimension_type) {
  tensor_of(s, 0)->dims.at[1] = i32(s, 64);
}
DAMAGE(stride_type) {
  tensor_of(s, 0)->strides.at[1] = i32(s, 1);
}
DAMAGE(alignment_small) {
  tensor_of(s, 0)->alignment = 2;
}
DAMAGE(alignment_odd) {
  tensor_of(s, 0)->alignment = 12;
}
DAMAGE(size_type) {
  size_of(s)->type = TYPE_I32;
}
DAMAGE(size_constant) {
  size_of(s)->constant = ref(s, size_of(s));
}
DAMAGE(size_inferred) {
  size_of(s)->inferred = i32(s, 1);
}
DAMAGE(scalar_kind) {
  list_at(&kernel_of(s)->scalars, struct ir_var, 0)->kind = VAR_LET;
}

static const struct damage damages[] = {
#define D(kind, name, message)                                                                               \
  { #name, SAMPLE_##kind, name, message }
    D(REDUCE, size_twice, "kernel 'rowsum': name 'n' is declared twice"),
    D(REDUCE, size_named_as_tensor, "name 'A' is declared twice"),
    D(REDUCE, let_named_as_size, "name 'n' is declared twice"),
    D(REDUCE, let_twice, "kernel 'rowsum', entry 'rowsum', let 'v': name 'v' is declared twice"),
    D(REDUCE, empty_name, "a declaration without a name"),
    D(REDUCE, kernel_twice, "the name of the kernel is declared twice"),
    D(REDUCE, kernel_without_name, "a kernel without a name"),
    D(REDUCE, entry_twice, "the name of the entry is declared twice"),
    D(REDUCE, entry_without_name, "an entry without a name"),
    D(REDUCE, reducer_twice, "the name of the reducer is declared twice"),
    D(REDUCE, reducer_without_name, "a reducer without a name"),
    D(REDUCE, parameter_twice, "reducer 'sum_f32', combine: name 'a' is declared twice"),
    D(REDUCE, used_before_definition, "let 'p': variable 'v' is not defined here, in v"),
    D(NESTS, used_outside_its_loop, "store 'B': variable 'k' is not defined here"),
    D(NESTS, used_outside_its_branch, "set 'sum': variable 'x' is not defined here"),
    D(REDUCE, variable_of_another_kernel,
      "kernel 'other', entry 'other', let 'x': variable 'n' is not defined here"),
    D(STAGES, value_before_its_stage, "stage 'B#2': variable 'total' is not defined here"),
    D(STAGES, let_of_another_stage, "stage 'B#2': variable 'x' is not defined here"),
    D(STAGES, axis_of_another_stage, "stage 'B#2': variable 'i' is not defined here"),
    D(REDUCE, memory_of_another_entry, "memory object 'S_2' is not declared here"),
    D(REDUCE, stored_memory_not_declared, "store 'Q': memory object 'Q' is not declared here"),
    D(NESTS, set_of_let, "variable 'x' is immutable"),
    D(NESTS, set_of_undeclared, "variable 'x' is not defined here"),
    D(REDUCE, let_of_mutable, "variable 'v' is of another kind than its statement"),
    D(NESTS, var_of_let, "variable 'sum' is of another kind than its statement"),
    D(NESTS, for_of_let, "variable 'k' is of another kind than its statement"),
    D(REDUCE, let_without_variable, "a statement without its variable"),
    D(REDUCE, let_without_value, "let 'v': an expression is missing"),
    D(REDUCE, operand_missing, "'add' takes 2 operands, found 1, in add(1:i32)"),
    D(REDUCE, operand_too_many, "'sqrt' takes 1 operand, found 2"),
    D(REDUCE, operands_differ, "'add' has operands of types i32 and f32, in add(1:i32, 1.0:f32)"),
    D(REDUCE, result_differs, "'add' of these operands has type i32, not i64"),
    D(REDUCE, class_not_taken, "'shl' takes no operands of type f32"),
    D(REDUCE, bool_not_taken, "'lt' takes no operands of type bool"),
    D(REDUCE, compare_not_bool, "'eq' of these operands has type bool, not i32"),
    D(REDUCE, predicate_not_bool, "'isnan' of these operands has type bool, not f32"),
    D(REDUCE, select_condition, "the condition of 'select' has type i32"),
    D(REDUCE, select_arms, "'select' has operands of types i32 and f32"),
    D(REDUCE, cast_of_moved, "'cast' cannot make f32 of c64"),
    D(REDUCE, cast_of_integer_to_storage, "'cast' cannot make f16 of i32"),
    D(REDUCE, bitcast_of_another_width, "'bitcast' cannot make i64 of f32"),
    D(REDUCE, shuffle_mask, "mask and lane of 'shfl_xor' are u32"),
    D(REDUCE, storage_computes, "'add' takes no operands of type f16"),
    D(REDUCE, constant_outside_its_type, "the constant -1 does not fit u8"),
    D(REDUCE, constant_of_storage, "a constant cannot have type f16"),
    D(REDUCE, constant_between_floats, "the constant 0.10000000000000001 is no value of f32"),
    D(REDUCE, variable_of_another_type, "'v' is a f32, not i32"),
    D(REDUCE, load_of_another_type, "'load_flat' of 'A' has type i32, and its elements have f32"),
    D(REDUCE, load_of_nothing, "'load_flat' names no memory object"),
    D(REDUCE, load_of_another_rank, "'A' has 2 dimensions, and 1 indices are given"),
    D(REDUCE, load_at_float, "an index of 'load' has type f32"),
    D(REDUCE, dimension_of_thread, "'thread' has dimensions x, y and z"),
    D(REDUCE, type_of_thread, "'thread' has type i64, and the entry's index type is i32"),
    D(REDUCE, type_unknown, "which do not exist"),
    D(REDUCE, operation_unknown, "which do not exist"),
    D(REDUCE, too_deep, "an expression is nested more than 4000 deep"),
    D(REDUCE, let_of_another_type, "the value of 'p' has type f32, not i32"),
    D(REDUCE, store_of_another_type, "a value of type i32 is stored to 'S' of type f32"),
    D(REDUCE, store_of_f64_as_half, "a value of type f64 is stored to 'B' of type bf16"),
    D(REDUCE, store_at_another_rank, "a store to 'B' takes 1 indices, found 0"),
    D(REDUCE, store_at_another_index, "an index has type i64, not i32"),
    D(REDUCE, load_at_another_index, "an index of 'S' has type i64, and the entry's index type is i32"),
    D(REDUCE, store_to_input, "tensor 'A' is stored to and is no output"),
    D(REDUCE, load_of_unread, "tensor 'A' is loaded and not marked as read"),
    D(REDUCE, condition_not_bool, "if: the condition has type i32, not bool"),
    D(REDUCE, mask_not_u32, "syncwarp: the mask has type i32, not u32"),
    D(NESTS, bound_of_another_type, "for 'k': the upper bound has type i32, not index"),
    D(NESTS, loop_over_float, "loop variable 'k' has type f32"),
    D(REDUCE, unknown_statement, "a statement of no known kind"),
    D(REDUCE, index_in_lowered_expression, "type index behind the pass that replaces it"),
    D(REDUCE, index_in_lowered_variable, "variable 'k' has type index behind the pass that replaces it"),
    D(REDUCE, index_in_lowered_memory, "memory object 'S' has type index behind the pass that replaces it"),
    D(REDUCE, shuffle_inside, "'shfl_down' is not the whole value of let, var or set"),
    D(REDUCE, shared_load_inside, "a load of shared memory ('S') is not the whole value of let, var or set"),
    D(REDUCE, shared_load_stored, "a load of shared memory ('S') is not the whole value of let, var or set"),
    D(REDUCE, fact_in_body, "'dim' outside expressions of the plan"),
    D(REDUCE, fact_in_dimension, "'sms' outside expressions of the plan"),
    D(REDUCE, fact_of_memory, "'dim' names no tensor"),
    D(REDUCE, fact_of_another_kernel, "'dim' of 'Q', which is no tensor of the kernel"),
    D(REDUCE, load_in_grid, "'load' outside stages and programs"),
    D(REDUCE, thread_in_grid, "'thread' outside programs"),
    D(STAGES, thread_in_stage, "'thread' outside programs"),
    D(STAGES, flat_load_in_stage, "'load_flat' in a stage"),
    D(STAGES, float_scalar_in_plan, "scalar 'alpha' of type f32 in an expression of the plan"),
    D(STAGES, axis_in_plan, "variable 'i' is not defined here"),
    D(REDUCE, allreduce_over_nothing, "allreduce: an allreduce over no thread axis"),
    D(REDUCE, allreduce_over_too_much, "an allreduce over no thread axis"),
    D(REDUCE, allreduce_of_unlisted_reducer, "a reducer that the module does not list"),
    D(REDUCE, allreduce_inputs, "the number of inputs is 0, not 1"),
    D(REDUCE, allreduce_input_type, "input 1 has type i32, not f32"),
    D(REDUCE, allreduce_results, "the number of results is 0, not 1"),
    D(REDUCE, allreduce_result_type, "result 'total' has type i32, not f32"),
    D(REDUCE, allreduce_result_kind, "variable 'total' is of another kind than its statement"),
    D(REDUCE, allreduce_form, "an allreduce of no known form"),
    D(REDUCE, reducer_without_components, "a reducer without components"),
    D(REDUCE, identity_not_constant, "an identity is no constant"),
    D(REDUCE, combine_parameters, "'combine' takes 1 parameters, not twice 1"),
    D(REDUCE, combine_parameter_type, "parameter 'b' has type f64, not f32"),
    D(REDUCE, combine_results, "the number of results is 0, not 1"),
    D(REDUCE, combine_result_type, "result 1 has type i32, not f32"),
    D(REDUCE, combine_of_size, "reducer 'sum_f32', combine: variable 'n' is not defined here"),
    D(REDUCE, combine_of_load, "'load' outside stages and programs"),
    D(REDUCE, combine_of_thread, "'thread' outside programs"),
    D(REDUCE, combine_with_store, "a statement other than 'let' in a stage or reducer"),
    D(UPDATE, update_without_operand, "'update' takes no operand"),
    D(UPDATE, update_state_type, "parameter 's_count' has type i32, not i64"),
    D(UPDATE, update_results, "reducer 'mean', update: the number of results is 1, not 2"),
    D(REDUCE, parameter_mutable, "parameter 'a' is not immutable"),
    D(STAGES, stage_axis_unlisted, "a stage has an axis that the entry does not list"),
    D(STAGES, stage_axis_twice, "axis 'i' stands twice in a stage"),
    D(STAGES, store_reduces, "axis 'i' is a reduction axis of a store"),
    D(STAGES, extent_type, "the extent of axis 'ji' has type i32, not index"),
    D(STAGES, extent_missing, "stage 'total': an expression is missing"),
    D(STAGES, extent_of_itself, "the extent of axis 'ji' mentions the axis itself"),
    D(STAGES, axis_type, "the variable of axis 'jo' is no axis of type index"),
    D(STAGES, axis_twice, "name 'i' is declared twice"),
    D(STAGES, axis_bind, "axis 'i' is bound to nothing known"),
    D(STAGES, guard_not_bool, "a guard has type index, not bool"),
    D(STAGES, stage_let_is_set, "a statement other than 'let' in a stage or reducer"),
    D(STAGES, stage_reducer_unlisted, "a reducer that the module does not list"),
    D(STAGES, stage_form, "a stage asks for no known form"),
    D(STAGES, operands_missing, "the number of operands is 0, not 1"),
    D(STAGES, operand_type, "operand 1 has type i32, not f32"),
    D(UPDATE, update_operands_missing, "the number of operands is 0, not 1"),
    D(UPDATE, update_operand_type, "operand 1 has type f64, not f32"),
    D(UPDATE, init_count, "the number of inits is 1, not 2"),
    D(UPDATE, init_type, "init 1 has type f32, not f64"),
    D(STAGES, init_of_reduction, "'init' mentions the reduction axis 'jo'"),
    D(UPDATE, results_missing, "the number of results is 1, not 2"),
    D(STAGES, result_type, "result 'total' has type f64, not f32"),
    D(STAGES, result_kind, "result 'total' is not of the kind of a stage's result"),
    D(STAGES, stage_stores_input, "tensor 'A' is stored to and is no output"),
    D(STAGES, stage_stores_nothing, "memory object '?' is not declared here"),
    D(STAGES, stage_stores_type, "a value of type i32 is stored to 'B' of type f16"),
    D(STAGES, factor_type, "directive: a factor of type f32"),
    D(STAGES, stages_with_body, "stages and a program in one entry"),
    D(STAGES, stages_with_global_memory, "is global"),
    D(STAGES, stages_with_block, "stages with a block or grid"),
    D(STAGES, stages_with_index_type, "stages with index type i32"),
    D(REDUCE, program_with_stages, "a program with stages, axes or directives"),
    D(REDUCE, program_without_grid, "entry 'rowsum': an expression is missing"),
    D(REDUCE, grid_type, "grid.z has type i32, not i64"),
    D(REDUCE, block_empty, "a block of 64 by 0 by 1 threads"),
    D(REDUCE, block_too_wide, "a block of 64 by 4096 by 1 threads"),
    D(REDUCE, block_too_large, "a block of 1088 threads"),
    D(STAGES, when_not_bool, "'when' has type i64, not bool"),
    D(STAGES, assumption_not_bool, "an assumption has type i64, not bool"),
    D(STAGES, requirement_not_bool, "a requirement has type i64, not bool"),
    D(STAGES, requirement_without_message, "a requirement without a message"),
    D(REDUCE, general_first, "a general entry without the one before it"),
    D(REDUCE, index_type_of_entry, "index type u32"),
    D(REDUCE, memory_global, "memory object 'S' is global"),
    D(REDUCE, memory_marked, "marks of a tensor on an object of the program"),
    D(NESTS, local_size, "local array 'L' has no constant size"),
    D(STAGES, tensor_shared, "tensor 'B' is no tensor"),
    D(STAGES, tensor_number, "tensor 'B' is no tensor"),
    D(REDUCE, strides_missing, "memory object 'A': 2 dimensions and 1 strides"),
    D(REDUCE, dimension_type, "a dimension has type i32, not i64"),
    D(REDUCE, stride_type, "a stride has type i32, not i64"),
    D(REDUCE, alignment_small, "an alignment of 2 bytes"),
    D(REDUCE, alignment_odd, "an alignment of 12 bytes"),
    D(REDUCE, size_type, "size 'n' is no size of type i64"),
    D(REDUCE, size_constant, "the value of size 'n' is no constant of type i64"),
    D(REDUCE, size_inferred, "a size has type i32, not i64"),
    D(STAGES, scalar_kind, "scalar 'alpha' is no scalar"),
#undef D
};

// Some message reported holds the text.
static bool reports(const struct sample *s, const char *message) {
  for (uint32_t i = 0; i < s->diag.diagnostics.count; i++)
    if (strstr(list_at(&s->diag.diagnostics, struct diagnostic, i)->message, message)) return true;
  return false;
}

Test(verify, each_damage_is_reported) {
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    struct sample s;
    sample_build(&s, damages[i].kind);
    cr_assert(ir_verify(&s.module, "test", true), "%s: %s", damages[i].rule, first_message(&s));
    damages[i].apply(&s);
    cr_expect(!ir_verify(&s.module, "test", true), "%s", damages[i].rule);
    cr_expect(reports(&s, damages[i].message), "%s: %s", damages[i].rule, first_message(&s));
    sample_destroy(&s);
  }
}

// The fault of a single statement gives a single message.
Test(verify, one_message_for_a_fault) {
  static void (*const single[])(struct sample *
                                s) = {operands_differ,        condition_not_bool, store_to_input,   grid_type,
                                      allreduce_over_nothing, shuffle_inside,     combine_of_thread};
  for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
    struct sample s;
    sample_build(&s, SAMPLE_REDUCE);
    single[i](&s);
    ir_verify(&s.module, "test", true);
    cr_expect_eq(s.diag.error_count, 1, "%zu: %u messages", i, s.diag.error_count);
    sample_destroy(&s);
  }
}

Test(verify, the_users_fault_has_its_place_and_the_compilers_its_pass) {
  struct sample s;
  sample_build(&s, SAMPLE_REDUCE);
  operands_differ(&s);
  cr_expect(!ir_verify(&s.module, "widen", true));
  const struct diagnostic *users = list_at(&s.diag.diagnostics, struct diagnostic, 0);
  cr_expect_eq(users->code, ERROR_IR_VERIFY);
  cr_expect_eq(users->range.line, 40, "the statement's place");
  cr_expect_not(s.diag.internal);
  cr_expect(!ir_verify(&s.module, "widen", false));
  const struct diagnostic *ours = list_at(&s.diag.diagnostics, struct diagnostic, 1);
  cr_expect_eq(ours->code, ERROR_INTERNAL);
  cr_expect(s.diag.internal);
  cr_expect(
      strstr(ours->message, "internal error in pass 'widen': kernel 'rowsum', entry 'rowsum', let 'x': "),
      "%s", ours->message);
  sample_destroy(&s);
}

// A fault in a dump is shown where it stands in the dump.
Test(verify, a_fault_in_a_dump_has_its_place_there) {
  static const char text[] =
      "red-ir 1\nsource 0 \"a.red\"\nkernel k { tensor A: f32[1:i64] strides [1:i64] align 4\n"
      "entry k program index index { block 1 1 1 grid x 1:i64 grid y 1:i64 grid z 1:i64\n"
      "body {\nlet x: f32 = neg(load(A, 0:index)) @7:1-7:2\n}}}";
  struct sample s;
  cr_assert(sample_read(&s, text, sizeof text - 1), "%s", first_message(&s));
  cr_expect(!ir_verify(&s.module, "test", true));
  const struct diagnostic *fault = list_at(&s.diag.diagnostics, struct diagnostic, 0);
  cr_expect_str_eq(fault->message,
                   "kernel 'k', entry 'k', let 'x': tensor 'A' is loaded and not marked as read, in "
                   "load(A, 0:index)");
  cr_expect_eq(fault->range.file, 0);
  cr_expect_eq(fault->range.line, 6);
  cr_expect_eq(fault->range.column, 18);
  sample_destroy(&s);
}

Test(verify, many_faults_are_cut_short) {
  struct sample s;
  sample_build(&s, SAMPLE_REDUCE);
  for (int i = 0; i < 100; i++) operands_differ(&s);
  cr_expect(!ir_verify(&s.module, "test", false));
  cr_expect_eq(s.diag.diagnostics.count, 20);
  sample_destroy(&s);
}

// Entries of a kernel may use the same names, and none of the kernel's.
Test(verify, names_are_unique_in_an_entry) {
  struct sample s;
  struct text text = {0};
  sample_build(&s, SAMPLE_REDUCE);
  struct ir_stmt *first = list_at(&entry_of(&s, 1)->body, struct ir_stmt, 0);
  first->var->name = stmt_of(&s, 0)->var->name;
  cr_expect(ir_verify(&s.module, "test", true), "%s", first_message(&s));
  ir_print(&s.module, &text);
  struct sample back;
  cr_expect(sample_read(&back, text.data, text.length), "%s", first_message(&back));
  cr_expect(ir_verify(&back.module, "test", true), "%s", first_message(&back));
  first->var->name = "A";
  cr_expect(!ir_verify(&s.module, "test", true));
  text_free(&text);
  sample_destroy(&back);
  sample_destroy(&s);
}
