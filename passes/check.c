// check: from the syntax tree to stages.
//
//   for i in n { B[i] = sum(j in m) A[i, j]; }
//   ->
//   stage B: reduce sum_f32, axes i parallel, j reduction, operand load(A, i, j), result B_j
//   stage B: store, axes i parallel, B[i] = B_j
//
// Requires a parsed file. Resolves names, types and sizes; proves bounds and that no element is written twice; what it cannot prove
// of sizes becomes a requirement of the launch. Every schedule gets an entry with stages of its own.
#include "passes/check.h"

#include <string.h>

#include "compiler/suggest.h"
#include "passes/automatic.h"

struct symbol *check_find(struct checker *c, const char *name) {
  struct symbol *symbol = c->newest.arena ? map_get(&c->newest, name) : NULL;
  while (symbol && (symbol->place >= c->symbols.count || c->symbols.at[symbol->place] != symbol)) symbol = symbol->shadowed;
  return symbol;
}

void check_unknown(struct checker *c, const char *what, const char *name, struct range range, bool tensors_only) {
  if (c->kernel && !c->entry) { // among the parameters, where names are sizes
    diag_error(c->diag, ERROR_SIZE_UNKNOWN, range, "size '%s' cannot be inferred: it stands alone in no dimension", name);
    diag_note(c->diag, (struct range){0}, "give it with -D %s=..., or as a scalar `%s: size`", name, name);
    return;
  }
  diag_error(c->diag, ERROR_UNKNOWN_NAME, range, "unknown %s '%s'", what, name);
  struct suggestion near = suggest(name);
  for (uint32_t i = c->symbols.count; i-- > 0;) {
    struct symbol *symbol = c->symbols.at[i];
    if (!tensors_only || symbol->kind == SYMBOL_TENSOR) suggest_consider(&near, symbol->name);
  }
  if (near.best) diag_note(c->diag, (struct range){0}, "did you mean '%s'?", near.best);
}

struct symbol *check_declare(struct checker *c, enum symbol_kind kind, const struct ast_name *name, bool may_hide) {
  struct symbol *before = check_find(c, name->text);
  if (before && !(may_hide && before->kind == SYMBOL_LET)) {
    diag_error(c->diag, ERROR_DUPLICATE_NAME, name->range, "'%s' is declared twice", name->text);
    diag_note(c->diag, before->range, "first declared here");
  }
  struct symbol *symbol = arena_new(c->arena, struct symbol);
  symbol->name = name->text;
  symbol->kind = kind;
  symbol->range = name->range;
  symbol->place = c->symbols.count;
  symbol->shadowed = before;
  list_push(c->arena, &c->symbols, symbol);
  if (!c->newest.arena) map_init(&c->newest, c->arena);
  map_set(&c->newest, name->text, symbol);
  return symbol;
}

bool check_type(struct checker *c, const struct ast_name *name, enum type *type) {
  for (uint32_t i = 0; i < c->types.count; i++) {
    struct type_binding *binding = c->types.at[i];
    if (strcmp(binding->name, name->text) == 0) {
      *type = binding->type;
      return true;
    }
  }
  if (type_parse(name->text, type)) return true;
  diag_error(c->diag, ERROR_UNKNOWN_TYPE, name->range, "unknown type '%s'", name->text);
  diag_note(c->diag, (struct range){0}, "types are bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2, c64 and c128");
  return false;
}

// A condition, looked at through the lets that name it or its parts.
static void add_condition(struct checker *c, struct facts *facts, const struct ir_expr *e, uint32_t depth) {
  enum { MOST_LEVELS = 100 }; // what is further inside is not looked at
  while (e->op == OP_VAR && e->var->kind == VAR_LET && e->var->mark) e = list_at(&c->lets, struct ir_stmt, e->var->mark - 1)->value;
  if (e->op == OP_AND && e->type == TYPE_BOOL && depth < MOST_LEVELS) {
    add_condition(c, facts, e->args[0], depth + 1);
    add_condition(c, facts, e->args[1], depth + 1);
  } else {
    facts_add_condition(facts, e);
  }
}

void check_facts(struct checker *c, struct facts *facts, bool with_selected) {
  facts_init(facts, c->arena);
  for (uint32_t i = 0; i < c->axes.count; i++) {
    struct scope_axis *axis = c->axes.at[i];
    facts_add_axis(facts, axis->var, axis->lo, axis->hi);
  }
  for (uint32_t i = 0; i < c->lets.count; i++) {
    struct ir_stmt *let = c->lets.at[i];
    if (type_is_integer(let->value->type)) facts_add_definition(facts, let->var, let->value);
  }
  for (uint32_t i = 0; i < c->guards.count; i++) add_condition(c, facts, c->guards.at[i], 0);
  for (uint32_t i = 0; with_selected && i < c->selected.count; i++) add_condition(c, facts, c->selected.at[i], 0);
}

void check_require(struct checker *c, struct ir_expr *condition, struct range range, const char *message) {
  if (!c->is_first_entry || ir_const_is(condition, 1)) return;
  for (uint32_t i = 0; i < c->kernel->requirements.count; i++)
    if (ir_equal(list_at(&c->kernel->requirements, struct ir_requirement, i)->condition, condition)) return;
  struct ir_requirement *requirement = arena_new(c->arena, struct ir_requirement);
  requirement->condition = condition;
  requirement->message = message;
  requirement->range = range;
  list_push(c->arena, &c->kernel->requirements, requirement);
}

// --- Sizes, scalars and tensors -----------------------------------------------------------------------------------

static const struct define *find_define(struct checker *c, const char *name, bool is_type) {
  const struct list *defines = &c->context->options->defines;
  const struct define *found = NULL;
  for (uint32_t i = 0; i < defines->count; i++) {
    const struct define *define = defines->at[i];
    if (strcmp(define->name, name) == 0 && define->is_type == is_type) found = define;
  }
  return found;
}

static struct ir_var *add_size(struct checker *c, const struct ast_name *name) {
  struct symbol *symbol = check_declare(c, SYMBOL_SIZE, name, false);
  struct ir_var *size = ir_new_var(c->kernel, VAR_SIZE, TYPE_I64, name->text);
  size->range = name->range;
  const struct define *define = find_define(c, name->text, false);
  if (define) size->constant = ir_int(c->arena, TYPE_I64, define->integer);
  symbol->value = size->constant ? size->constant : ir_ref(c->arena, size);
  list_push(c->arena, &c->kernel->sizes, size);
  return size;
}

// Sizes that stand alone in a dimension, and those that -D gives, are declared before any expression is read.
static void declare_sizes(struct checker *c, const struct list *params) {
  for (uint32_t i = 0; i < params->count; i++) {
    const struct ast_param *param = params->at[i];
    for (uint32_t d = 0; d < param->dims.count; d++) {
      const struct ast_expr *dim = param->dims.at[d];
      if (dim->kind == AST_NAME && !check_find(c, dim->name.text)) add_size(c, &dim->name);
    }
    for (uint32_t d = 0; d < param->strides.count; d++) {
      const struct ast_expr *stride = param->strides.at[d];
      if (stride && stride->kind == AST_NAME && !check_find(c, stride->name.text)) add_size(c, &stride->name);
    }
  }
}

static void declare_given_sizes(struct checker *c, const struct ast_expr *e) {
  if (e->kind == AST_NAME && !check_find(c, e->name.text) && find_define(c, e->name.text, false)) add_size(c, &e->name);
  for (uint32_t i = 0; i < e->args.count; i++) declare_given_sizes(c, e->args.at[i]);
}

static void declare_scalars(struct checker *c, const struct list *params) {
  for (uint32_t i = 0; i < params->count; i++) {
    const struct ast_param *param = params->at[i];
    if (param->is_tensor) continue;
    if (strcmp(param->type.text, "size") == 0) {
      add_size(c, &param->name);
      continue;
    }
    enum type type;
    if (!check_type(c, &param->type, &type)) continue;
    if (type_class_of(type) == CLASS_MOVED) {
      diag_error(c->diag, ERROR_MOVE_ONLY, param->range, "a scalar of type %s cannot be used: it can only be moved in tensors",
                 type_name(type));
      continue;
    }
    struct symbol *symbol = check_declare(c, SYMBOL_SCALAR, &param->name, false);
    struct ir_var *scalar = ir_new_var(c->kernel, VAR_SCALAR, type, param->name.text);
    scalar->range = param->name.range;
    symbol->value = ir_cast(c->arena, type_computed(type), ir_ref(c->arena, scalar));
    list_push(c->arena, &c->kernel->scalars, scalar);
  }
}

static struct ir_expr *product(struct checker *c, const struct list *dims, uint32_t from) {
  struct ir_expr *result = ir_int(c->arena, TYPE_I64, 1);
  for (uint32_t i = from; i < dims->count; i++) result = ir_binary(c->arena, OP_MUL, result, dims->at[i]);
  return result;
}

// The strides of a tensor: row-major, or of the launch, or as `strided(...)` says.
static void set_strides(struct checker *c, const struct ast_param *param, struct ir_mem *mem) {
  mem->is_strided = param->is_strided;
  if (param->has_strides && param->strides.count != param->dims.count)
    diag_error(c->diag, ERROR_RANK, param->range, "'%s' has %u dimension%s and %u stride%s", param->name.text, param->dims.count,
               param->dims.count == 1 ? "" : "s", param->strides.count, param->strides.count == 1 ? "" : "s");
  for (uint32_t d = 0; d < param->dims.count; d++) {
    struct ir_expr *at_launch = ir_fact(c->arena, OP_STRIDE, mem, d);
    struct ir_expr *stride;
    const struct ast_expr *given = d < param->strides.count ? param->strides.at[d] : NULL;
    if (!param->is_strided) {
      stride = product(c, &mem->dims, d + 1);
    } else if (given) {
      stride = check_expr(c, given, TYPE_I64);
      if (!stride) continue;
      if (stride->op == OP_VAR && !stride->var->inferred && stride->var->kind == VAR_SIZE) {
        stride->var->inferred = at_launch;
      } else { // strides of extents 0 and 1 are ignored
        struct ir_expr *small = ir_binary(c->arena, OP_LE, mem->dims.at[d], ir_int(c->arena, TYPE_I64, 1));
        struct ir_expr *equal = ir_binary(c->arena, OP_EQ, at_launch, stride);
        check_require(c, ir_binary(c->arena, OP_OR, small, equal), given->range,
                      arena_printf(c->arena, "stride %u of '%s' is not as declared", d, mem->label));
      }
    } else {
      const char *label = arena_printf(c->arena, "%s_stride%u", mem->label, d);
      struct ir_var *size = ir_new_var(c->kernel, VAR_SIZE, TYPE_I64, label);
      size->range = param->range;
      size->inferred = at_launch;
      list_push(c->arena, &c->kernel->sizes, size);
      stride = ir_ref(c->arena, size);
    }
    list_push(c->arena, &mem->strides, stride);
  }
}

// The value of a dimension whose sizes are constant. False when it passes 2^63.
static bool dim_value(struct checker *c, const struct ast_expr *e, int64_t *value) {
  int64_t a, b;
  if (e->kind == AST_BINARY && (e->binary == AST_ADD || e->binary == AST_SUB || e->binary == AST_MUL)) {
    if (!dim_value(c, e->args.at[0], &a) || !dim_value(c, e->args.at[1], &b)) return false;
    return !(e->binary == AST_ADD   ? __builtin_add_overflow(a, b, value)
             : e->binary == AST_SUB ? __builtin_sub_overflow(a, b, value)
                                    : __builtin_mul_overflow(a, b, value));
  }
  const struct ir_expr *folded = check_expr(c, e, TYPE_I64);
  *value = folded && ir_is_const(folded) ? folded->integer : 0;
  return true;
}

static bool dim_overflows(struct checker *c, const struct ast_expr *e) {
  int64_t value;
  return !dim_value(c, e, &value);
}

static void declare_tensors(struct checker *c, const struct list *params, bool is_output) {
  for (uint32_t i = 0; i < params->count; i++) {
    const struct ast_param *param = params->at[i];
    if (!param->is_tensor) {
      if (is_output)
        diag_error(c->diag, ERROR_NOT_A_VALUE, param->range, "output '%s' is a scalar; write `%s: %s[]` for an output of rank 0",
                   param->name.text, param->name.text, param->type.text);
      continue;
    }
    struct ir_mem *mem = arena_new(c->arena, struct ir_mem);
    if (!check_type(c, &param->type, &mem->type)) mem->type = TYPE_F32;
    mem->label = param->name.text;
    mem->name = ir_fresh_name(c->kernel, param->name.text);
    mem->space = SPACE_GLOBAL;
    mem->is_output = is_output;
    mem->alignment = type_bytes(mem->type);
    mem->parameter = c->kernel->tensors.count;
    mem->range = param->range;
    list_push(c->arena, &c->kernel->tensors, mem);
    check_declare(c, SYMBOL_TENSOR, &param->name, false)->mem = mem;
    for (uint32_t d = 0; d < param->dims.count; d++) {
      const struct ast_expr *source = param->dims.at[d];
      struct ir_expr *dim = check_expr(c, source, TYPE_I64), *at_launch = ir_fact(c->arena, OP_DIM, mem, d);
      if (!dim) {
        list_push(c->arena, &mem->dims, ir_int(c->arena, TYPE_I64, 1));
        continue;
      }
      if (dim->type != TYPE_I64) {
        diag_error(c->diag, ERROR_TYPE_MISMATCH, source->range, "a dimension is an i64 expression of sizes, not %s",
                   type_name(dim->type));
        dim = ir_int(c->arena, TYPE_I64, 1);
      }
      if (ir_is_const(dim) && (dim->integer < 0 || dim_overflows(c, source)))
        diag_error(c->diag, ERROR_DIVISION, source->range, "dimension %u of '%s' is %s", d, mem->label,
                   dim_overflows(c, source) ? "2^63 or more" : arena_printf(c->arena, "negative: %lld", (long long)dim->integer));
      list_push(c->arena, &mem->dims, dim);
      if (dim->op == OP_VAR && dim->var->kind == VAR_SIZE && !dim->var->inferred && source->kind == AST_NAME)
        dim->var->inferred = at_launch;
      else {
        struct text spelled = {0};
        ast_print_expr(source, &spelled);
        check_require(c, ir_binary(c->arena, OP_EQ, at_launch, dim), source->range,
                      arena_printf(c->arena, "dimension %u of '%s' is not %s", d, mem->label, spelled.data ? spelled.data : ""));
        text_free(&spelled);
      }
    }
    set_strides(c, param, mem);
  }
}

// A byte span of 2^63 or more has no address; with constant sizes this is the user's error here, else the launch's.
static void check_spans(struct checker *c) {
  for (uint32_t i = 0; i < c->kernel->tensors.count; i++) {
    struct ir_mem *mem = c->kernel->tensors.at[i];
    int64_t bytes = type_bytes(mem->type);
    bool known = true, overflow = false;
    for (uint32_t d = 0; d < mem->dims.count; d++) {
      struct ir_expr *dim = mem->dims.at[d];
      if (!ir_is_const(dim)) known = false;
      else if (dim->integer > 0 && __builtin_mul_overflow(bytes, dim->integer, &bytes)) overflow = true;
    }
    (void)known;
    if (overflow)
      diag_error(c->diag, ERROR_LITERAL, mem->range, "tensor '%s' has 2^63 bytes or more", mem->label);
  }
}

// --- Kernels ----------------------------------------------------------------------------------------------------------

static void mark_read(struct ir_expr *e, void *state) {
  (void)state;
  if (e->op == OP_LOAD) e->mem->is_read = true;
}

static void mark_reads(const struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    struct ir_stage *stage = entry->stages.at[i];
    ir_visit_block(&stage->lets, mark_read, NULL);
    for (uint32_t k = 0; k < stage->guards.count; k++) ir_visit_expr(stage->guards.at[k], mark_read, NULL);
    for (uint32_t k = 0; k < stage->operands.count; k++) ir_visit_expr(stage->operands.at[k], mark_read, NULL);
    for (uint32_t k = 0; k < stage->init.count; k++) ir_visit_expr(stage->init.at[k], mark_read, NULL);
    for (uint32_t k = 0; k < stage->indices.count; k++) ir_visit_expr(stage->indices.at[k], mark_read, NULL);
    if (stage->value) ir_visit_expr(stage->value, mark_read, NULL);
  }
}

// An output that no statement assigns keeps what it holds; a kernel that assigns none does nothing.
static void check_assigned(struct checker *c) {
  if (!c->is_first_entry) return;
  if (!c->entry->stages.count)
    diag_error(c->diag, ERROR_NOTHING, c->source->name.range, "kernel '%s' assigns nothing", c->source->name.text);
  for (uint32_t i = 0; i < c->kernel->tensors.count && c->entry->stages.count; i++) {
    struct ir_mem *mem = c->kernel->tensors.at[i];
    bool is_assigned = !mem->is_output;
    for (uint32_t k = 0; k < c->entry->stages.count; k++) is_assigned |= list_at(&c->entry->stages, struct ir_stage, k)->mem == mem;
    if (!is_assigned)
      diag_warning(c->diag, ERROR_NOTHING, mem->range, "output '%s' is never assigned and keeps what it holds", mem->label);
  }
}

// A schedule's fast entry, and behind it the general one whose offsets are 64 bits wide; pass `index` keeps the ones that are needed.
// Returns false when the kernel itself is at fault, so that no other schedule need be tried. *always: whether the schedule always applies; one that
// never does, by the sizes given, is left out.
static bool add_entries(struct checker *c, const struct ast_schedule *schedule, bool *always) {
  uint32_t symbols = c->symbols.count;
  for (int general = 0; general < 2; general++) { // names are unique in an entry; each starts from the kernel's
    struct ir_entry *entry = arena_new(c->arena, struct ir_entry);
    ir_collect_names(c->kernel, entry);
    const char *name = schedule && schedule->name.text
                           ? arena_printf(c->arena, "%s_%s", c->kernel->name, schedule->name.text)
                           : schedule || c->kernel->entries.count == 0 ? c->kernel->name
                                                                        : arena_printf(c->arena, "%s_auto", c->kernel->name);
    for (uint32_t number = 2; !general; number++) { // a second schedule of the same name
      bool taken = false;
      for (uint32_t i = 0; i < c->kernel->entries.count; i++)
        taken |= strcmp(list_at(&c->kernel->entries, struct ir_entry, i)->name, name) == 0;
      if (!taken) break;
      name = arena_printf(c->arena, "%s_%u", c->kernel->name, number);
    }
    if (general)
      name = arena_printf(c->arena, "%s_general",
                          list_at(&c->kernel->entries, struct ir_entry, c->kernel->entries.count - 1)->name);
    entry->name = name;
    entry->schedule = schedule && schedule->name.text ? schedule->name.text : "";
    entry->is_automatic = !schedule;
    entry->is_general = general;
    entry->range = schedule ? schedule->range : c->source->range;
    entry->index_type = TYPE_INDEX;
    c->entry = entry;
    c->symbols.count = symbols;
    c->axes.count = c->guards.count = c->selected.count = c->lets.count = c->let_sizes.count = c->stages_of_values.count = 0;
    uint32_t errors = c->diag->error_count;
    check_statements(c, &c->source->body);
    if (c->diag->error_count == errors) check_overlaps(c);
    if (c->diag->error_count == errors) check_assigned(c);
    if (c->diag->error_count != errors) return false;
    *always = !schedule || !schedule->when;
    if (schedule && !check_schedule(c, schedule)) return true; // the other schedules are looked at too
    if (entry->when && ir_const_is(entry->when, 0)) return true;
    if (entry->when && ir_const_is(entry->when, 1)) entry->when = NULL, *always = true;
    mark_reads(entry);
    list_push(c->arena, &c->kernel->entries, entry);
    c->is_first_entry = false;
  }
  return true;
}

// The stages of the kernel for the automatic scheduler to look at: an entry of its own, which is not kept.
static struct ir_entry *make_probe(struct checker *c) {
  struct ir_entry *entry = arena_new(c->arena, struct ir_entry);
  uint32_t symbols = c->symbols.count, errors = c->diag->error_count;
  bool was_first = c->is_first_entry;
  ir_collect_names(c->kernel, entry);
  entry->range = c->source->range;
  entry->index_type = TYPE_INDEX;
  c->entry = entry;
  c->is_first_entry = false;
  c->axes.count = c->guards.count = c->selected.count = c->lets.count = c->let_sizes.count = c->stages_of_values.count = 0;
  check_statements(c, &c->source->body);
  c->symbols.count = symbols;
  c->is_first_entry = was_first;
  return c->diag->error_count == errors ? entry : NULL;
}

// `T == f16 && U == f32`: which instance of a kernel with type parameters this is; NULL: it has none.
static const char *instance_condition(struct checker *c) {
  const char *text = NULL;
  for (uint32_t i = 0; i < c->types.count; i++) {
    const struct type_binding *binding = c->types.at[i];
    text = arena_printf(c->arena, "%s%s%s == %s", text ? text : "", text ? " && " : "", binding->name, type_name(binding->type));
  }
  return text;
}

// The text of the automatic scheduler as a file of its own.
static bool parse_automatic(struct checker *c, const struct text *text, struct ast_file *ast) {
  char *copy = arena_alloc(c->arena, text->length + 2); // ends with the two zeros that the scanner wants
  memcpy(copy, text->data, text->length);
  uint32_t file = diag_add_source(c->diag, arena_printf(c->arena, "<schedules of %s>", c->kernel->name), copy, text->length);
  struct source *source = c->diag->sources.at[file];
  source->is_schedule = source->is_own = true;
  return red_parse(c->diag, file, ast);
}

// Whether --schedule leaves this one of the compiler's own out. The last one closes the list and stays.
static bool is_left_out(const struct checker *c, const struct ast_schedule *schedule, bool is_last) {
  const char *wanted = c->context->options->schedule;
  return wanted && strcmp(wanted, "auto") != 0 && !is_last && strcmp(wanted, schedule->name.text) != 0;
}

// The compiler's own schedules, parsed from the text that the automatic scheduler writes; behind them, where none of them always applies,
// the general one. *found: whether --schedule names one of them.
static bool add_automatic(struct checker *c, bool *found) {
  struct ir_entry *probe = make_probe(c);
  if (!probe) return false;
  struct text text = {0};
  struct ast_file ast = {0};
  bool is_closed = false, good = c->context->options->is_plain || (c->is_large && !c->context->options->class_name) || automatic_schedules(c->context, c->kernel, probe, instance_condition(c), &text);
  if (good && text.length) good = parse_automatic(c, &text, &ast);
  if (good && c->context->schedules) text_append(c->context->schedules, text.data, text.length);
  text_free(&text);
  const char *wanted = c->context->options->schedule;
  for (uint32_t i = 0; i < ast.schedules.count && good && !is_closed; i++) {
    const struct ast_schedule *schedule = ast.schedules.at[i];
    if (wanted && strcmp(wanted, schedule->name.text) == 0) *found = true;
    if (is_left_out(c, schedule, i + 1 == ast.schedules.count)) continue;
    good = add_entries(c, schedule, &is_closed);
  }
  return good && (is_closed || add_entries(c, NULL, &is_closed));
}

// Kernels of one name by what they are called with their types: x of type f32, and x_f32.
static void check_kernel_name(struct checker *c) {
  const struct list *kernels = &c->context->module->kernels;
  for (uint32_t i = 0; i < kernels->count; i++) {
    const struct ir_kernel *other = kernels->at[i];
    if (strcmp(other->name, c->kernel->name) != 0 || strcmp(other->label, c->kernel->label) == 0) continue;
    diag_error(c->diag, ERROR_DUPLICATE_NAME, c->kernel->range, "kernel '%s' is called '%s' with its types, and so is another one", c->kernel->label, c->kernel->name);
    diag_note(c->diag, other->range, "the other one is '%s'", other->label);
  }
}

static bool check_kernel(struct checker *c, const struct ast_kernel *source, const struct list *schedules) {
  uint32_t errors = c->diag->error_count;
  if (!check_limits(c, source, schedules)) return false;
  c->source = source;
  c->kernel = arena_new(c->arena, struct ir_kernel);
  map_init(&c->kernel->names, c->arena);
  c->kernel->label = source->name.text;
  const char *name = source->name.text;
  for (uint32_t i = 0; i < c->types.count; i++)
    name = arena_printf(c->arena, "%s_%s", name, type_name(list_at(&c->types, struct type_binding, i)->type));
  c->kernel->name = name;
  c->kernel->range = source->name.range;
  check_kernel_name(c);
  c->is_first_entry = true;
  c->entry = NULL;
  c->symbols.count = 0;
  declare_scalars(c, &source->inputs);
  declare_sizes(c, &source->inputs);
  declare_sizes(c, &source->outputs);
  for (int outputs = 0; outputs < 2; outputs++) {
    const struct list *params = outputs ? &source->outputs : &source->inputs;
    for (uint32_t i = 0; i < params->count; i++)
      for (uint32_t d = 0; d < list_at(params, struct ast_param, i)->dims.count; d++)
        declare_given_sizes(c, list_at(params, struct ast_param, i)->dims.at[d]);
  }
  c->axes.count = c->guards.count = 0;
  declare_tensors(c, &source->inputs, false);
  declare_tensors(c, &source->outputs, true);
  check_spans(c);
  if (c->diag->error_count != errors) return false;
  bool is_closed = false, found = c->context->options->schedule == NULL;
  for (uint32_t i = 0; i < schedules->count && !is_closed && !c->context->options->class_name; i++) {
    const struct ast_schedule *schedule = schedules->at[i];
    const char *wanted = c->context->options->schedule;
    if (wanted && strcmp(wanted, schedule->name.text ? schedule->name.text : "") != 0) continue;
    found = true;
    if (!add_entries(c, schedule, &is_closed)) return false;
  }
  const char *wanted = c->context->options->schedule;
  if (wanted && strcmp(wanted, "auto") == 0) found = true;
  if (!is_closed && !add_automatic(c, &found)) return false;
  if (!found) {
    diag_error(c->diag, ERROR_NO_SCHEDULE, source->name.range, "kernel '%s' has no schedule named '%s'", source->name.text, wanted);
    return false;
  }
  if (c->diag->error_count != errors) return false;
  list_push(c->arena, &c->context->module->kernels, c->kernel);
  return true;
}

// Every combination of the types that -D gives to the type parameters from `place` on.
static void check_instances(struct checker *c, const struct ast_kernel *source, const struct list *schedules, uint32_t place) {
  if (place == source->type_params.count) {
    check_kernel(c, source, schedules);
    return;
  }
  const struct ast_name *param = source->type_params.at[place];
  const struct list *defines = &c->context->options->defines;
  bool found = false;
  for (uint32_t i = 0; i < defines->count; i++) {
    const struct define *define = defines->at[i];
    if (!define->is_type || strcmp(define->name, param->text) != 0) continue;
    found = true;
    struct type_binding *binding = arena_new(c->arena, struct type_binding);
    binding->name = param->text;
    binding->type = define->type;
    list_push(c->arena, &c->types, binding);
    check_instances(c, source, schedules, place + 1);
    c->types.count--;
  }
  if (!found)
    diag_error(c->diag, ERROR_UNKNOWN_TYPE, param->range, "type parameter '%s' of kernel '%s' has no type: give it with -D %s=f32",
               param->text, source->name.text, param->text);
}

static void mark_file(struct diag *diag, uint32_t file, bool is_schedule) {
  if (file < diag->sources.count) list_at(&diag->sources, struct source, file)->is_schedule = is_schedule;
}

// Which files hold schedules alone?
static void mark_schedule_files(struct diag *diag, const struct ast_file *ast) {
  for (uint32_t i = 0; i < ast->schedules.count; i++) mark_file(diag, list_at(&ast->schedules, struct ast_schedule, i)->range.file, true);
  for (uint32_t i = 0; i < ast->kernels.count; i++) mark_file(diag, list_at(&ast->kernels, struct ast_kernel, i)->range.file, false);
  for (uint32_t i = 0; i < ast->reducers.count; i++) mark_file(diag, list_at(&ast->reducers, struct ast_reducer, i)->range.file, false);
}

bool pass_check(struct pass_context *context, const struct ast_file *ast) {
  struct diag *diag = context->diag;
  uint32_t errors = diag->error_count;
  struct map kernels, schedules_of;
  map_init(&kernels, context->arena);
  map_init(&schedules_of, context->arena);
  if (ast->kernels.count == 0) diag_error(diag, ERROR_SYNTAX, (struct range){0}, "the input has no kernel");
  for (uint32_t i = 0; i < ast->kernels.count; i++) {
    const struct ast_kernel *kernel = ast->kernels.at[i], *before = map_get(&kernels, kernel->name.text);
    if (before) {
      diag_error(diag, ERROR_DUPLICATE_NAME, kernel->name.range, "kernel '%s' is declared twice", kernel->name.text);
      diag_note(diag, before->name.range, "first declared here");
    }
    map_set(&kernels, kernel->name.text, (void *)kernel);
    map_set(&schedules_of, kernel->name.text, arena_new(context->arena, struct list));
  }
  for (uint32_t i = 0; i < ast->schedules.count; i++) {
    const struct ast_schedule *schedule = ast->schedules.at[i];
    struct list *of = map_get(&schedules_of, schedule->kernel.text);
    if (of) {
      list_push(context->arena, of, (void *)schedule);
    } else {
      diag_error(diag, ERROR_NO_KERNEL, schedule->kernel.range, "schedule for '%s', and no kernel has that name", schedule->kernel.text);
      struct suggestion near = suggest(schedule->kernel.text);
      for (uint32_t k = 0; k < ast->kernels.count; k++) suggest_consider(&near, list_at(&ast->kernels, struct ast_kernel, k)->name.text);
      if (near.best) diag_note(diag, (struct range){0}, "did you mean '%s'?", near.best);
    }
  }
  mark_schedule_files(diag, ast);
  for (uint32_t i = 0; i < ast->kernels.count; i++) {
    const struct ast_kernel *kernel = ast->kernels.at[i];
    struct checker checker = {.context = context, .arena = context->arena, .diag = diag, .ast = ast};
    check_instances(&checker, kernel, map_get(&schedules_of, kernel->name.text), 0);
  }
  return diag->error_count == errors;
}
