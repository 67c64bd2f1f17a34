#include "compiler/plan_build.h"

#include <string.h>

struct builder {
  struct plan *plan;
  struct ir_module *module;
  const struct ir_kernel *kernel;
  struct range range; // of what is translated, for errors
  bool failed;
};

static void report(struct builder *b, enum diag_code number, const char *what) {
  if (!b->failed)
    diag_error(b->module->diag, number, b->range, "kernel '%s' has no launch plan: %s",
               b->kernel->label, what);
  b->failed = true;
}

static void refuse(struct builder *b, const char *what) { report(b, ERROR_UNSUPPORTED, what); }
static void refuse_size(struct builder *b, const char *what) { report(b, ERROR_TOO_LARGE, what); }

static void *need(struct builder *b, void *memory) {
  if (!memory) refuse(b, "out of memory");
  return memory;
}

static const char *copy_name(struct builder *b, const char *name) {
  const char *copy = need(b, plan_strdup(b->plan, name ? name : "", name ? strlen(name) : 0));
  return copy ? copy : "";
}

static enum plan_type plan_type_of(enum type type) {
  switch (type) {
  case TYPE_BOOL: return PLAN_BOOL;
  case TYPE_I8: return PLAN_I8;
  case TYPE_I16: return PLAN_I16;
  case TYPE_I32: return PLAN_I32;
  case TYPE_I64: return PLAN_I64;
  case TYPE_U8: return PLAN_U8;
  case TYPE_U16: return PLAN_U16;
  case TYPE_U32: return PLAN_U32;
  case TYPE_U64: return PLAN_U64;
  case TYPE_F16: return PLAN_F16;
  case TYPE_BF16: return PLAN_BF16;
  case TYPE_F32: return PLAN_F32;
  case TYPE_F64: return PLAN_F64;
  case TYPE_F8E4M3: return PLAN_F8E4M3;
  case TYPE_F8E5M2: return PLAN_F8E5M2;
  case TYPE_C64: return PLAN_C64;
  case TYPE_C128: return PLAN_C128;
  case TYPE_INDEX:
  case TYPE_COUNT: break;
  }
  return PLAN_I64;
}

// --- Expressions
// ------------------------------------------------------------------------------------------------------

static void emit(struct builder *b, struct plan_expr *out, enum plan_op op, int64_t operand,
                 uint32_t dimension) {
  struct plan_code *codes = need(b, plan_grow(b->plan, out->codes, &out->count, sizeof *codes));
  if (!codes) return;
  out->codes = codes;
  codes[out->count - 1] = (struct plan_code){.op = op, .operand = operand, .dimension = dimension};
}

static int64_t place(const struct list *list, const void *item) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->at[i] == item) return i;
  return -1;
}

static void emit_var(struct builder *b, const struct ir_var *var, struct plan_expr *out) {
  int64_t size = place(&b->kernel->sizes, var), scalar = place(&b->kernel->scalars, var);
  if (size >= 0)
    emit(b, out, PLAN_OP_SIZE, size, 0);
  else if (scalar >= 0)
    emit(b, out, PLAN_OP_SCALAR, scalar, 0);
  else
    refuse(b, "an expression of the launch mentions a variable of the kernel's body");
}

static void emit_fact(struct builder *b, const struct ir_expr *e, enum plan_op op, struct plan_expr *out) {
  int64_t tensor = place(&b->kernel->tensors, e->mem);
  if (tensor < 0) refuse(b, "an expression of the launch mentions memory that is no tensor");
  emit(b, out, op, tensor, op == PLAN_OP_ADDRESS ? 0 : e->dimension);
}

static bool plan_op_of(enum op op, enum plan_op *out) {
  static const struct {
    enum op from;
    enum plan_op to;
  } table[] = {
      {OP_ADD, PLAN_OP_ADD},       {OP_SUB, PLAN_OP_SUB},
      {OP_MUL, PLAN_OP_MUL},       {OP_DIV, PLAN_OP_DIV},
      {OP_MOD, PLAN_OP_MOD},       {OP_QUO, PLAN_OP_DIV},
      {OP_REM, PLAN_OP_MOD},       {OP_NEG, PLAN_OP_NEG},
      {OP_ABS, PLAN_OP_ABS},       {OP_MIN, PLAN_OP_MIN},
      {OP_MAX, PLAN_OP_MAX},       {OP_AND, PLAN_OP_AND},
      {OP_OR, PLAN_OP_OR},         {OP_XOR, PLAN_OP_XOR},
      {OP_SHL, PLAN_OP_SHL},       {OP_SHR, PLAN_OP_SHR},
      {OP_EQ, PLAN_OP_EQ},         {OP_NE, PLAN_OP_NE},
      {OP_LT, PLAN_OP_LT},         {OP_LE, PLAN_OP_LE},
      {OP_GT, PLAN_OP_GT},         {OP_GE, PLAN_OP_GE},
      {OP_SELECT, PLAN_OP_SELECT}, {OP_SMS, PLAN_OP_SMS},
      {OP_ARCH, PLAN_OP_ARCH},     {OP_SHARED_LIMIT, PLAN_OP_SHARED},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].from == op) {
      *out = table[i].to;
      return true;
    }
  return false;
}

// Types narrower than 64 bits wrap; the plan's own arithmetic saturates in 64.
static void emit_wrap(struct builder *b, enum type type, struct plan_expr *out) {
  if (type != TYPE_BOOL && type_bits(type) < 64)
    emit(b, out, type_is_signed(type) ? PLAN_OP_WRAP_SIGNED : PLAN_OP_WRAP_UNSIGNED, type_bits(type), 0);
}

static void emit_expr(struct builder *b, const struct ir_expr *e, struct plan_expr *out) {
  if (b->failed) return;
  if (e->type != TYPE_BOOL && !type_is_integer(e->type)) {
    refuse(b, "an expression of the launch is not of integers");
    return;
  }
  for (uint32_t i = 0; i < e->count; i++) emit_expr(b, e->args[i], out);
  enum plan_op op;
  switch ((int)e->op) {
  case OP_CONST:
    emit(b, out, PLAN_OP_CONST, e->type == TYPE_U64 && e->integer < 0 ? INT64_MAX : e->integer, 0);
    return;
  case OP_VAR: emit_var(b, e->var, out); return;
  case OP_DIM: emit_fact(b, e, PLAN_OP_DIM, out); return;
  case OP_STRIDE: emit_fact(b, e, PLAN_OP_STRIDE, out); return;
  case OP_ADDRESS: emit_fact(b, e, PLAN_OP_ADDRESS, out); return;
  case OP_NOT:
    if (e->type == TYPE_BOOL) {
      emit(b, out, PLAN_OP_NOT, 0, 0);
    } else { // ~x is -1 - x, without a place to overflow
      emit(b, out, PLAN_OP_CONST, -1, 0);
      emit(b, out, PLAN_OP_XOR, 0, 0);
      emit_wrap(b, e->type, out);
    }
    return;
  case OP_CAST:
    if (e->type == TYPE_BOOL) {
      emit(b, out, PLAN_OP_CONST, 0, 0);
      emit(b, out, PLAN_OP_NE, 0, 0);
    } else if (type_bits(e->type) < type_bits(e->args[0]->type) ||
               type_is_signed(e->type) != type_is_signed(e->args[0]->type)) {
      emit_wrap(b, e->type, out);
    }
    return;
  default: break;
  }
  if (!plan_op_of(e->op, &op)) {
    refuse(b, "an expression of the launch uses an operation that only kernels have");
    return;
  }
  // Shift counts are taken modulo the operand's width, not modulo 64.
  if ((op == PLAN_OP_SHL || op == PLAN_OP_SHR) && type_bits(e->type) < 64) {
    emit(b, out, PLAN_OP_CONST, (int64_t)type_bits(e->type) - 1, 0);
    emit(b, out, PLAN_OP_AND, 0, 0);
  }
  emit(b, out, op, 0, 0);
  if (op == PLAN_OP_ADD || op == PLAN_OP_SUB || op == PLAN_OP_MUL || op == PLAN_OP_NEG || op == PLAN_OP_ABS ||
      op == PLAN_OP_SHL || op == PLAN_OP_DIV)
    emit_wrap(b, e->type, out);
}

static struct plan_expr translate(struct builder *b, const struct ir_expr *e) {
  struct plan_expr out = {0};
  if (!e) return out;
  emit_expr(b, e, &out);
  return out;
}

static struct plan_expr translate_int(struct builder *b, int64_t value) {
  struct plan_expr out = {0};
  emit(b, &out, PLAN_OP_CONST, value, 0);
  return out;
}

// --- Kernels
// ------------------------------------------------------------------------------------------------------------

static void build_size(struct builder *b, const struct ir_var *var, struct plan_size *size) {
  size->name = copy_name(b, var->label ? var->label : var->name);
  if (var->constant) {
    size->is_constant = true;
    size->constant = var->constant->integer;
  }
  size->inferred = translate(b, var->inferred);
}

static void build_tensor(struct builder *b, const struct ir_mem *mem, struct plan_tensor *tensor) {
  tensor->name = copy_name(b, mem->label ? mem->label : mem->name);
  tensor->type = plan_type_of(mem->type);
  tensor->is_output = mem->is_output;
  tensor->is_strided = mem->is_strided;
  tensor->rank = mem->dims.count;
  if (tensor->rank > PLAN_MAX_RANK) refuse_size(b, "a tensor has more than 64 dimensions");
  if (!tensor->rank || b->failed) return;
  tensor->dims = need(b, plan_alloc(b->plan, tensor->rank * sizeof *tensor->dims));
  tensor->strides =
      mem->is_strided ? need(b, plan_alloc(b->plan, tensor->rank * sizeof *tensor->strides)) : NULL;
  for (uint32_t d = 0; d < tensor->rank && !b->failed; d++) {
    tensor->dims[d] = translate(b, list_at(&mem->dims, struct ir_expr, d));
    if (mem->is_strided) tensor->strides[d] = translate(b, list_at(&mem->strides, struct ir_expr, d));
  }
}

static struct plan_requirement *build_requirements(struct builder *b, const struct list *list,
                                                   uint32_t *count) {
  struct plan_requirement *all = need(b, plan_alloc(b->plan, list->count * sizeof *all));
  if (!all) return NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const struct ir_requirement *requirement = list_at(list, struct ir_requirement, i);
    b->range = requirement->range;
    all[i].condition = translate(b, requirement->condition);
    all[i].message = copy_name(b, requirement->message);
  }
  *count = list->count;
  return all;
}

static void build_argument(struct builder *b, const struct plan_parameter *parameter,
                           struct plan_argument *argument) {
  if (parameter->tensor) {
    argument->kind = PLAN_ARGUMENT_TENSOR;
    argument->index = (uint32_t)place(&b->kernel->tensors, parameter->tensor);
    argument->bytes = 8;
  } else if (parameter->scalar) {
    argument->kind = PLAN_ARGUMENT_SCALAR;
    argument->index = (uint32_t)place(&b->kernel->scalars, parameter->scalar);
    argument->bytes = type_bytes(parameter->scalar->type);
  } else if (parameter->workspace) {
    argument->kind = PLAN_ARGUMENT_WORKSPACE;
    argument->bytes = 8;
    argument->expr = translate(b, parameter->workspace->workspace);
  } else {
    argument->kind = PLAN_ARGUMENT_INTEGER;
    argument->bytes = type_bits(parameter->integer->type) == 32 ? 4 : 8;
    argument->expr = translate(b, parameter->integer);
  }
}

// The workspace ends where its last part does.
static void build_workspace(struct builder *b, const struct ir_entry *from, struct plan_entry *entry) {
  struct arena *arena = b->module->arena;
  struct ir_expr *bytes = NULL, *zeroed = ir_int(arena, TYPE_I64, WORKSPACE_HEADER_BYTES);
  for (uint32_t i = 0; i < from->memory.count; i++) {
    const struct ir_mem *mem = list_at(&from->memory, struct ir_mem, i);
    if (!mem->workspace) continue;
    if (!bytes) bytes = ir_int(arena, TYPE_I64, WORKSPACE_HEADER_BYTES);
    if (ir_const_is(mem->workspace, 0)) continue; // the header
    struct ir_expr *size = ir_int(arena, TYPE_I64, type_bytes(mem->type));
    for (uint32_t d = 0; d < mem->dims.count; d++) size = ir_binary(arena, OP_MUL, size, list_at(&mem->dims, struct ir_expr, d));
    bytes = ir_binary(arena, OP_ADD, mem->workspace, size);
    if (mem->is_polled) zeroed = bytes; // those stand first
  }
  entry->workspace = translate(b, bytes);
  if (bytes) entry->zeroed = translate(b, zeroed);
}

static bool waits_for_grid(const struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->body.count; i++)
    if (list_at(&entry->body, struct ir_stmt, i)->kind == IR_GRID_WAIT) return true;
  return false;
}

// What a launch asks for: the bytes that the layout of a dynamic object spans.
static struct ir_expr *shared_bytes(struct builder *b, const struct ir_mem *mem) {
  struct arena *arena = b->module->arena;
  struct ir_expr *one = ir_int(arena, TYPE_I64, 1), *last = one;
  for (uint32_t d = 0; d < mem->dims.count; d++)
    last = ir_binary(arena, OP_ADD, last, ir_binary(arena, OP_MUL, ir_binary(arena, OP_SUB, mem->dims.at[d], one), mem->strides.at[d]));
  return ir_binary(arena, OP_MUL, last, ir_int(arena, TYPE_I64, type_bytes(mem->type)));
}

static void build_launch(struct builder *b, struct ir_kernel *kernel, struct ir_entry *from, struct plan_entry *entry,
                         plan_parameters_function *parameters) {
  if (entry->launch_count == PLAN_MAX_LAUNCHES) refuse_size(b, "more than 8 launches");
  struct plan_launch *launches =
      need(b, plan_grow(b->plan, entry->launches, &entry->launch_count, sizeof *launches));
  if (!launches || b->failed) return;
  entry->launches = launches;
  struct plan_launch *launch = &launches[entry->launch_count - 1];
  launch->function = copy_name(b, from->name);
  launch->is_programmatic = waits_for_grid(from);
  for (int d = 0; d < 3; d++) {
    launch->grid[d] = from->grid[d] ? translate(b, from->grid[d]) : translate_int(b, 1);
    launch->block[d] = from->block[d] ? from->block[d] : 1;
  }
  for (uint32_t i = 0; i < from->memory.count; i++) {
    const struct ir_mem *mem = from->memory.at[i];
    if (mem->is_dynamic) launch->shared = translate(b, shared_bytes(b, mem));
  }
  struct list list = parameters(b->module->arena, kernel, from);
  if (list.count > PLAN_MAX_ARGUMENTS) refuse_size(b, "more than 256 arguments");
  launch->arguments = need(b, plan_alloc(b->plan, list.count * sizeof *launch->arguments));
  for (uint32_t i = 0; i < list.count && !b->failed; i++)
    build_argument(b, list_at(&list, struct plan_parameter, i), &launch->arguments[i]);
  launch->argument_count = b->failed ? 0 : list.count;
}

// All that the launches of an entry assume, each once.
static struct list gather_assumptions(struct builder *b, const struct ir_kernel *kernel, uint32_t first) {
  struct list all = {0};
  for (uint32_t i = first; i < kernel->entries.count; i++) {
    const struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
    if (i > first && !entry->launch) break;
    for (uint32_t a = 0; a < entry->assumptions.count; a++) {
      struct ir_requirement *assumption = list_at(&entry->assumptions, struct ir_requirement, a);
      bool is_new = true;
      for (uint32_t k = 0; k < all.count && is_new; k++)
        is_new = !ir_equal(list_at(&all, struct ir_requirement, k)->condition, assumption->condition);
      if (is_new) list_push(b->module->arena, &all, assumption);
    }
  }
  return all;
}

// The entry at `first`, with its later launches.
static void build_entry(struct builder *b, struct ir_kernel *kernel, uint32_t first, struct plan_entry *entry,
                        plan_parameters_function *parameters) {
  const struct ir_entry *from = list_at(&kernel->entries, struct ir_entry, first);
  struct list assumptions = gather_assumptions(b, kernel, first);
  b->range = from->range;
  entry->name = copy_name(b, from->name);
  entry->schedule = copy_name(b, from->schedule);
  entry->when = translate(b, from->when);
  entry->assumptions = build_requirements(b, &assumptions, &entry->assumption_count);
  const struct ir_entry *last = from;
  for (uint32_t i = first; i < kernel->entries.count && !b->failed; i++) {
    struct ir_entry *launch = list_at(&kernel->entries, struct ir_entry, i);
    if (i > first && !launch->launch) break;
    last = launch;
    build_launch(b, kernel, launch, entry, parameters);
  }
  build_workspace(b, last, entry); // the last launch has all parts
}

static void check_depth(struct builder *b, const struct plan_kernel *kernel, const struct plan_expr *expr) {
  const char *fault = plan_expr_fault(kernel, expr);
  if (fault) refuse_size(b, arena_printf(b->module->arena, "an expression of the launch is %s", fault));
}

static void check(struct builder *b, const struct plan_kernel *kernel) {
  b->range = b->kernel->range;
  for (uint32_t i = 0; i < kernel->size_count; i++) check_depth(b, kernel, &kernel->sizes[i].inferred);
  for (uint32_t i = 0; i < kernel->tensor_count; i++)
    for (uint32_t d = 0; d < kernel->tensors[i].rank; d++) {
      check_depth(b, kernel, &kernel->tensors[i].dims[d]);
      if (kernel->tensors[i].strides) check_depth(b, kernel, &kernel->tensors[i].strides[d]);
    }
  for (uint32_t i = 0; i < kernel->requirement_count; i++)
    check_depth(b, kernel, &kernel->requirements[i].condition);
  for (uint32_t i = 0; i < kernel->entry_count; i++) {
    const struct plan_entry *entry = &kernel->entries[i];
    check_depth(b, kernel, &entry->when);
    check_depth(b, kernel, &entry->workspace);
    for (uint32_t a = 0; a < entry->assumption_count; a++)
      check_depth(b, kernel, &entry->assumptions[a].condition);
    for (uint32_t l = 0; l < entry->launch_count; l++) {
      for (int d = 0; d < 3; d++) check_depth(b, kernel, &entry->launches[l].grid[d]);
      for (uint32_t a = 0; a < entry->launches[l].argument_count; a++)
        check_depth(b, kernel, &entry->launches[l].arguments[a].expr);
    }
  }
}

static void build_kernel(struct builder *b, struct ir_kernel *from, plan_parameters_function *parameters) {
  b->kernel = from;
  b->range = from->range;
  if (from->sizes.count > PLAN_MAX_SIZES) refuse_size(b, "more than 128 sizes");
  struct plan_kernel *kernels =
      need(b, plan_grow(b->plan, b->plan->kernels, &b->plan->kernel_count, sizeof *kernels));
  if (!kernels) return;
  b->plan->kernels = kernels;
  struct plan_kernel *kernel = &kernels[b->plan->kernel_count - 1];
  kernel->name = copy_name(b, from->name);
  kernel->sizes = need(b, plan_alloc(b->plan, from->sizes.count * sizeof *kernel->sizes));
  kernel->scalars = need(b, plan_alloc(b->plan, from->scalars.count * sizeof *kernel->scalars));
  kernel->tensors = need(b, plan_alloc(b->plan, from->tensors.count * sizeof *kernel->tensors));
  kernel->entries = need(b, plan_alloc(b->plan, from->entries.count * sizeof *kernel->entries));
  if (b->failed) return;
  kernel->size_count = from->sizes.count;
  kernel->scalar_count = from->scalars.count;
  kernel->tensor_count = from->tensors.count;
  for (uint32_t i = 0; i < from->sizes.count; i++)
    build_size(b, list_at(&from->sizes, struct ir_var, i), &kernel->sizes[i]);
  for (uint32_t i = 0; i < from->scalars.count; i++) {
    const struct ir_var *scalar = list_at(&from->scalars, struct ir_var, i);
    kernel->scalars[i].name = copy_name(b, scalar->label ? scalar->label : scalar->name);
    kernel->scalars[i].type = plan_type_of(scalar->type);
  }
  for (uint32_t i = 0; i < from->tensors.count; i++)
    build_tensor(b, list_at(&from->tensors, struct ir_mem, i), &kernel->tensors[i]);
  kernel->requirements = build_requirements(b, &from->requirements, &kernel->requirement_count);
  uint32_t count = 0;
  for (uint32_t i = 0; i < from->entries.count && !b->failed; i++)
    if (!list_at(&from->entries, struct ir_entry, i)->launch) build_entry(b, from, i, &kernel->entries[count++], parameters);
  kernel->entry_count = b->failed ? 0 : count;
  if (!b->failed) check(b, kernel);
}

bool plan_build(struct plan *plan, struct ir_module *module, plan_parameters_function *parameters) {
  struct builder b = {.plan = plan, .module = module};
  for (uint32_t i = 0; i < module->kernels.count && !b.failed; i++)
    build_kernel(&b, list_at(&module->kernels, struct ir_kernel, i), parameters);
  return !b.failed;
}
