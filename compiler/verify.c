// Whether a module keeps the rules of ir.h and ops.def: ir_verify. One message for each fault, with kernel,
// entry and statement; a dump that verifies can be printed, read and handed to any pass behind the one that
// wrote it.
//
// Divergence, masks, bounds and races are pass `prove`'s.
#include "compiler/verify.h"

#include <string.h>

enum { MAX_FAULTS = 20 }; // one damaged pass gives many

void verify_fault(struct verifier *v, struct range range, const char *format, ...) {
  if (v->faults++ >= MAX_FAULTS) return;
  va_list arguments;
  va_start(arguments, format);
  const char *what = arena_vprintf(&v->scratch, format, arguments);
  va_end(arguments);
  struct text where = {0};
  if (v->kernel) text_printf(&where, "kernel '%s', ", v->kernel->name ? v->kernel->name : "");
  if (v->reducer) text_printf(&where, "reducer '%s', ", v->reducer->name ? v->reducer->name : "");
  if (v->entry) text_printf(&where, "entry '%s', ", v->entry->name ? v->entry->name : "");
  if (v->statement) text_printf(&where, "%s, ", v->statement);
  if (where.length) memcpy(where.data + where.length - 2, ": ", 2);
  const char *place = where.data ? where.data : "";
  if (v->from_user)
    diag_error(v->diag, ERROR_IR_VERIFY, range, "%s%s", place, what);
  else
    diag_internal(v->diag, v->pass, range, "%s%s", place, what);
  text_free(&where);
}

// ---- Names

void verify_declare(struct verifier *v, const char *name, const void *object, bool may_repeat) {
  if (!name || !*name) {
    verify_fault(v, v->range, "a declaration without a name");
    return;
  }
  struct known_name *known = map_get(&v->names, name);
  bool repeats = known && may_repeat && known->object == object && !known->is_visible;
  if (known && !repeats) {
    verify_fault(v, v->range, "name '%s' is declared twice", name);
    return;
  }
  if (!known) {
    known = arena_new(&v->scratch, struct known_name);
    *known = (struct known_name){.name = name, .object = object};
    map_set(&v->names, name, known);
    list_push(&v->scratch, &v->declared, known);
  }
  known->is_visible = true;
  list_push(&v->scratch, &v->scope, known);
}

void verify_forget(struct verifier *v, uint32_t count) {
  while (v->declared.count > count)
    map_set(&v->names, list_at(&v->declared, struct known_name, --v->declared.count)->name, NULL);
}

void verify_leave_scope(struct verifier *v, uint32_t count) {
  while (v->scope.count > count) list_at(&v->scope, struct known_name, --v->scope.count)->is_visible = false;
}

bool verify_is_visible(const struct verifier *v, const char *name, const void *object) {
  const struct known_name *known = name ? map_get(&v->names, name) : NULL;
  return known && known->object == object && known->is_visible;
}

// ---- Reducers

bool verify_has_reducer(const struct verifier *v, const struct ir_reducer *reducer) {
  for (uint32_t i = 0; i < v->module->reducers.count; i++)
    if (v->module->reducers.at[i] == reducer) return true;
  return false;
}

static void check_function(struct verifier *v, const struct ir_function *function, const char *what) {
  const struct list *components = &v->reducer->identity;
  v->statement = what;
  map_init(&v->names, &v->scratch);
  v->scope = v->declared = (struct list){0};
  for (uint32_t i = 0; i < function->params.count; i++) {
    const struct ir_var *param = list_at(&function->params, struct ir_var, i);
    verify_declare(v, param->name, param, false);
    if (param->kind != VAR_LET) verify_fault(v, v->range, "parameter '%s' is not immutable", param->name);
    uint32_t component = i < components->count ? i : i - components->count;
    bool is_component = i < components->count || strcmp(what, "combine") == 0;
    if (!is_component || component >= components->count) continue;
    enum type type = list_at(components, struct ir_expr, component)->type;
    if (param->type != type)
      verify_fault(v, v->range, "parameter '%s' has type %s, not %s", param->name, type_name(param->type),
                   type_name(type));
  }
  for (uint32_t i = 0; i < function->lets.count; i++)
    verify_let(v, list_at(&function->lets, struct ir_stmt, i), PLACE_PURE, false);
  v->statement = what;
  verify_matching(v, &function->results, components, PLACE_PURE, "result");
  v->statement = NULL;
}

static void check_reducer(struct verifier *v, const struct ir_reducer *reducer, struct map *names) {
  v->reducer = reducer;
  v->range = reducer->range;
  uint32_t components = reducer->identity.count;
  if (!reducer->name || !*reducer->name) {
    verify_fault(v, v->range, "a reducer without a name");
  } else {
    if (map_get(names, reducer->name)) verify_fault(v, v->range, "the name of the reducer is declared twice");
    map_set(names, reducer->name, (void *)1);
  }
  if (!components) verify_fault(v, v->range, "a reducer without components");
  bool is_whole = components > 0;
  for (uint32_t i = 0; i < components; i++) {
    const struct ir_expr *identity = list_at(&reducer->identity, struct ir_expr, i);
    is_whole = is_whole && identity;
    if (verify_expr(v, identity, PLACE_PURE, false) && identity->op != OP_CONST)
      verify_fault(v, v->range, "an identity is no constant");
  }
  if (is_whole && reducer->combine.params.count != 2 * components)
    verify_fault(v, v->range, "'combine' takes %u parameters, not twice %u", reducer->combine.params.count,
                 components);
  else if (is_whole)
    check_function(v, &reducer->combine, "combine");
  if (is_whole && reducer->update.params.count && reducer->update.params.count <= components)
    verify_fault(v, v->range, "'update' takes no operand");
  else if (is_whole && reducer->update.params.count)
    check_function(v, &reducer->update, "update");
  v->reducer = NULL;
}

// ---- Kernels

void verify_condition(struct verifier *v, const struct ir_requirement *requirement, const char *what) {
  struct range around = v->range;
  if (requirement->range.line) v->range = requirement->range;
  verify_typed(v, requirement->condition, PLACE_PLAN, TYPE_BOOL, what);
  if (!requirement->message) verify_fault(v, v->range, "%s without a message", what);
  v->range = around;
}

void verify_mem(struct verifier *v, const struct ir_mem *mem) {
  struct range around = v->range;
  if (mem->range.line) v->range = mem->range;
  v->statement = arena_printf(&v->scratch, "memory object '%s'", mem->name ? mem->name : "");
  if (mem->dims.count != mem->strides.count)
    verify_fault(v, v->range, "%u dimensions and %u strides", mem->dims.count, mem->strides.count);
  for (uint32_t i = 0; i < mem->dims.count; i++)
    verify_typed(v, list_at(&mem->dims, struct ir_expr, i), PLACE_SIZES, TYPE_I64, "a dimension");
  for (uint32_t i = 0; i < mem->strides.count; i++)
    verify_typed(v, list_at(&mem->strides, struct ir_expr, i), PLACE_SIZES, TYPE_I64, "a stride");
  bool is_power = mem->alignment && !(mem->alignment & (mem->alignment - 1));
  if (!is_power || mem->alignment < type_bytes(mem->type))
    verify_fault(v, v->range, "an alignment of %u bytes", mem->alignment);
  if (mem->space != SPACE_GLOBAL && (mem->is_output || mem->is_read || mem->is_strided))
    verify_fault(v, v->range, "marks of a tensor on an object of the program");
  bool is_permuted = mem->is_dynamic || mem->unit || mem->swizzle_bits || mem->swizzle_base || mem->swizzle_shift;
  if (is_permuted && mem->space != SPACE_SHARED) verify_fault(v, v->range, "a layout of shared memory on another object");
  const struct ir_expr *last = mem->dims.count ? mem->dims.at[mem->dims.count - 1] : NULL;
  if (mem->unit && (mem->unit == 1 || !last || !ir_const_is(last, mem->unit)))
    verify_fault(v, v->range, "a unit that is not the last dimension");
  if (mem->swizzle_bits > 10 || mem->swizzle_base > 20 || mem->swizzle_shift > 20 || (mem->swizzle_bits && !mem->swizzle_shift))
    verify_fault(v, v->range, "a swizzle of %u bits from %u by %u", mem->swizzle_bits, mem->swizzle_base, mem->swizzle_shift);
  v->range = around;
  v->statement = NULL;
}

static void check_size(struct verifier *v, const struct ir_var *size) {
  if (size->range.line) v->range = size->range;
  if (size->kind != VAR_SIZE || size->type != TYPE_I64)
    verify_fault(v, v->range, "size '%s' is no size of type i64", size->name);
  if (size->constant && !(size->constant->op == OP_CONST && size->constant->type == TYPE_I64))
    verify_fault(v, v->range, "the value of size '%s' is no constant of type i64", size->name);
  if (size->inferred) verify_typed(v, size->inferred, PLACE_PLAN, TYPE_I64, "a size");
  v->range = v->kernel->range;
}

static void check_tensor(struct verifier *v, const struct ir_mem *tensor, uint32_t place) {
  if (tensor->space != SPACE_GLOBAL || tensor->parameter != place || tensor->type == TYPE_INDEX)
    verify_fault(v, tensor->range, "tensor '%s' is no tensor: its space, number or type is another's",
                 tensor->name);
  verify_mem(v, tensor);
}

static void check_kernel(struct verifier *v, const struct ir_kernel *kernel, struct map *names) {
  v->kernel = kernel;
  v->range = kernel->range;
  map_init(&v->names, &v->scratch);
  v->scope = v->declared = (struct list){0};
  if (!kernel->name || !*kernel->name) {
    verify_fault(v, v->range, "a kernel without a name");
  } else {
    if (map_get(names, kernel->name)) verify_fault(v, v->range, "the name of the kernel is declared twice");
    map_set(names, kernel->name, (void *)1);
  }
  for (uint32_t i = 0; i < kernel->sizes.count; i++)
    verify_declare(v, list_at(&kernel->sizes, struct ir_var, i)->name, kernel->sizes.at[i], false);
  for (uint32_t i = 0; i < kernel->scalars.count; i++) {
    const struct ir_var *scalar = list_at(&kernel->scalars, struct ir_var, i);
    verify_declare(v, scalar->name, scalar, false);
    if (scalar->kind != VAR_SCALAR || scalar->type >= TYPE_INDEX)
      verify_fault(v, scalar->range, "scalar '%s' is no scalar", scalar->name);
  }
  for (uint32_t i = 0; i < kernel->tensors.count; i++)
    verify_declare(v, list_at(&kernel->tensors, struct ir_mem, i)->name, kernel->tensors.at[i], false);
  for (uint32_t i = 0; i < kernel->sizes.count; i++) check_size(v, list_at(&kernel->sizes, struct ir_var, i));
  for (uint32_t i = 0; i < kernel->tensors.count; i++)
    check_tensor(v, list_at(&kernel->tensors, struct ir_mem, i), i);
  for (uint32_t i = 0; i < kernel->requirements.count; i++)
    verify_condition(v, list_at(&kernel->requirements, struct ir_requirement, i), "a requirement");
  for (uint32_t i = 0; i < kernel->entries.count; i++)
    verify_entry(v, list_at(&kernel->entries, struct ir_entry, i), i == 0);
  v->kernel = NULL;
}

bool ir_verify(const struct ir_module *module, const char *pass, bool from_user) {
  struct verifier verifier = {.module = module, .diag = module->diag, .pass = pass, .from_user = from_user};
  struct verifier *v = &verifier;
  struct map reducers, kernels;
  arena_init(&v->scratch);
  map_init(&reducers, &v->scratch);
  map_init(&kernels, &v->scratch);
  map_init(&v->entry_names, &v->scratch);
  for (uint32_t i = 0; i < module->reducers.count; i++)
    check_reducer(v, list_at(&module->reducers, struct ir_reducer, i), &reducers);
  for (uint32_t i = 0; i < module->kernels.count; i++)
    check_kernel(v, list_at(&module->kernels, struct ir_kernel, i), &kernels);
  arena_destroy(&v->scratch);
  return v->faults == 0;
}
