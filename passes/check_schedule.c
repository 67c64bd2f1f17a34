// check, schedules: `when` and directives, their names still those of the source; pass `schedule` applies them.
#include "passes/check.h"

#include "compiler/ir_text.h"

#include <string.h>

// --- Expressions of schedules -------------------------------------------------------------------------------------

static bool type_of_name(struct checker *c, const struct ast_expr *e, enum type *type) {
  if (e->kind != AST_NAME) return false;
  for (uint32_t i = 0; i < c->types.count; i++) {
    struct type_binding *binding = c->types.at[i];
    if (strcmp(binding->name, e->name.text) == 0) {
      *type = binding->type;
      return true;
    }
  }
  return !check_find(c, e->name.text) && type_parse(e->name.text, type);
}

static struct ir_expr *schedule_expr(struct checker *c, const struct ast_expr *e, bool may_ask_extent);

static struct ir_mem *tensor_argument(struct checker *c, const struct ast_expr *e) {
  struct symbol *symbol = e->args.count ? check_find(c, list_at(&e->args, struct ast_expr, 0)->name.text ? list_at(&e->args, struct ast_expr, 0)->name.text : "") : NULL;
  if (symbol && symbol->kind == SYMBOL_TENSOR) return symbol->mem;
  diag_error(c->diag, ERROR_NOT_A_VALUE, e->range, "'%s' asks about a tensor of the kernel", e->name.text);
  return NULL;
}

static struct ir_expr *schedule_call(struct checker *c, const struct ast_expr *e, bool may_ask_extent) {
  const char *name = e->name.text;
  uint32_t count = e->args.count;
  const struct ast_expr *first = count ? e->args.at[0] : NULL;
  enum type type;
  if ((strcmp(name, "min") == 0 || strcmp(name, "max") == 0) && count == 2) {
    struct ir_expr *a = schedule_expr(c, first, may_ask_extent), *b = schedule_expr(c, e->args.at[1], may_ask_extent);
    return a && b ? ir_binary(c->arena, name[1] == 'i' ? OP_MIN : OP_MAX, a, b) : NULL;
  }
  if (strcmp(name, "bytes") == 0 && count == 1) {
    if (type_of_name(c, first, &type)) return ir_int(c->arena, TYPE_I64, type_bytes(type));
    diag_error(c->diag, ERROR_UNKNOWN_TYPE, first->range, "'bytes' takes a type");
    return NULL;
  }
  if (strcmp(name, "extent") == 0 && count == 1 && may_ask_extent && first->kind == AST_NAME) {
    struct ir_var *axis = arena_new(c->arena, struct ir_var);
    axis->kind = VAR_AXIS;
    axis->type = TYPE_I64;
    axis->name = axis->label = first->name.text;
    axis->range = first->range;
    return ir_ref(c->arena, axis);
  }
  if (strcmp(name, "aligned") == 0 && count == 2) {
    struct ir_mem *mem = tensor_argument(c, e);
    struct ir_expr *bytes = schedule_expr(c, e->args.at[1], false);
    if (!mem || !bytes) return NULL;
    struct ir_expr *rest = ir_binary(c->arena, OP_MOD, ir_fact(c->arena, OP_ADDRESS, mem, 0), bytes);
    return ir_binary(c->arena, OP_EQ, rest, ir_int(c->arena, TYPE_I64, 0));
  }
  if (strcmp(name, "stride") == 0 && count == 2) {
    struct ir_mem *mem = tensor_argument(c, e);
    struct ir_expr *d = schedule_expr(c, e->args.at[1], false);
    if (!mem || !d) return NULL;
    if (ir_is_const(d) && d->integer >= 0 && d->integer < (int64_t)mem->strides.count) return mem->strides.at[d->integer];
    diag_error(c->diag, ERROR_RANK, e->range, "'%s' has %u dimension%s", mem->label, mem->dims.count, mem->dims.count == 1 ? "" : "s");
    if (mem->dims.count) diag_note(c->diag, (struct range){0}, "they count from 0: stride(%s, %u) is the last one's", mem->label, mem->dims.count - 1);
    return NULL;
  }
  if (strcmp(name, "dense") == 0 && count == 1) {
    struct ir_mem *mem = tensor_argument(c, e);
    if (!mem) return NULL;
    struct ir_expr *is_dense = ir_int(c->arena, TYPE_BOOL, 1), *row = ir_int(c->arena, TYPE_I64, 1);
    for (uint32_t d = mem->dims.count; d-- > 0;) {
      is_dense = ir_binary(c->arena, OP_AND, is_dense, ir_binary(c->arena, OP_EQ, mem->strides.at[d], row));
      row = ir_binary(c->arena, OP_MUL, row, mem->dims.at[d]);
    }
    return is_dense;
  }
  diag_error(c->diag, ERROR_UNKNOWN_NAME, e->range, "'%s' is no function of a schedule's expressions", name);
  diag_note(c->diag, (struct range){0}, "they know min, max, bytes(T), aligned(A, 16), stride(A, 0), dense(A)%s", may_ask_extent ? " and extent(x)" : "");
  return NULL;
}

static struct ir_expr *schedule_name(struct checker *c, const struct ast_expr *e) {
  static const struct {
    const char *name;
    enum op op;
  } device_facts[] = {{"sms", OP_SMS}, {"arch", OP_ARCH}, {"shared", OP_SHARED_LIMIT}};
  struct symbol *symbol = check_find(c, e->name.text);
  if (symbol && (symbol->kind == SYMBOL_SIZE || (symbol->kind == SYMBOL_SCALAR && type_is_integer(symbol->value->type))))
    return ir_cast(c->arena, TYPE_I64, symbol->value);
  if (!symbol && c->context->options->sms > 0 && strcmp(e->name.text, "sms") == 0) return ir_int(c->arena, TYPE_I64, c->context->options->sms);
  for (uint32_t i = 0; i < sizeof device_facts / sizeof *device_facts && !symbol; i++)
    if (strcmp(device_facts[i].name, e->name.text) == 0) return ir_fact(c->arena, device_facts[i].op, NULL, 0);
  diag_error(c->diag, symbol ? ERROR_NOT_A_VALUE : ERROR_UNKNOWN_NAME, e->range, "'%s' is no size, integer scalar or fact of the device", e->name.text);
  diag_note(c->diag, (struct range){0}, "facts of the device are sms, arch and shared");
  return NULL;
}

// An i64 or bool expression of sizes, integer scalars, device and tensor facts.
static struct ir_expr *schedule_expr(struct checker *c, const struct ast_expr *e, bool may_ask_extent) {
  static const enum op ops[] = {
      [AST_OR_ELSE] = OP_OR, [AST_AND_THEN] = OP_AND, [AST_EQ] = OP_EQ, [AST_NE] = OP_NE, [AST_LT] = OP_LT, [AST_LE] = OP_LE,
      [AST_GT] = OP_GT, [AST_GE] = OP_GE, [AST_BIT_OR] = OP_OR, [AST_BIT_XOR] = OP_XOR, [AST_BIT_AND] = OP_AND, [AST_SHL] = OP_SHL,
      [AST_SHR] = OP_SHR, [AST_ADD] = OP_ADD, [AST_SUB] = OP_SUB, [AST_MUL] = OP_MUL, [AST_DIV] = OP_DIV, [AST_MOD] = OP_MOD,
  };
  struct ir_expr *args[3] = {NULL};
  enum type left, right;
  if (e->kind == AST_BINARY && (e->binary == AST_EQ || e->binary == AST_NE) && type_of_name(c, e->args.at[0], &left) &&
      type_of_name(c, e->args.at[1], &right))
    return ir_int(c->arena, TYPE_BOOL, (left == right) == (e->binary == AST_EQ));
  if (e->kind == AST_UNARY || e->kind == AST_BINARY || e->kind == AST_TERNARY)
    for (uint32_t i = 0; i < e->args.count; i++)
      if (!(args[i] = schedule_expr(c, e->args.at[i], may_ask_extent))) return NULL;
  bool same = true;
  switch (e->kind) {
  case AST_INT:
    if (e->integer > INT64_MAX) break;
    return ir_int(c->arena, TYPE_I64, (int64_t)e->integer);
  case AST_NAME: return schedule_name(c, e);
  case AST_CALL: return schedule_call(c, e, may_ask_extent);
  case AST_UNARY:
    if ((args[0]->type == TYPE_BOOL) != (e->unary == AST_NOT)) break;
    return ir_unary(c->arena, e->unary == AST_NEG ? OP_NEG : OP_NOT, args[0]);
  case AST_BINARY: {
    bool takes_bool = e->binary == AST_OR_ELSE || e->binary == AST_AND_THEN;
    same = args[0]->type == args[1]->type && (args[0]->type == TYPE_BOOL) == takes_bool;
    if (!same) {
      diag_error(c->diag, ERROR_TYPE_MISMATCH, e->range, "'%s' takes two %s", ast_binary_spelling(e->binary), takes_bool ? "conditions" : "integers");
      return NULL;
    }
    return ir_binary(c->arena, ops[e->binary], args[0], args[1]);
  }
  case AST_TERNARY:
    if (args[0]->type != TYPE_BOOL || args[1]->type != args[2]->type) break;
    return ir_select(c->arena, args[0], args[1], args[2]);
  case AST_FLOAT: case AST_ACCESS: case AST_FIELD: case AST_TUPLE: case AST_REDUCE: case AST_BLOCK: break;
  }
  diag_error(c->diag, ERROR_TYPE_MISMATCH, e->range, "an integer expression of sizes and constants is needed here");
  return NULL;
}

// --- Directives -------------------------------------------------------------------------------------------------------

static struct ir_directive *add_directive(struct checker *c, enum ir_directive_kind kind, const struct ast_directive *source) {
  struct ir_directive *directive = arena_new(c->arena, struct ir_directive);
  directive->kind = kind;
  directive->range = source->range;
  list_push(c->arena, &c->entry->directives, directive);
  return directive;
}

static void add_axis(struct checker *c, struct ir_directive *directive, const char *stage, const char *axis, struct range range) {
  struct range *place = arena_new(c->arena, struct range);
  *place = range;
  list_push(c->arena, &directive->stages, (void *)(stage ? stage : ""));
  list_push(c->arena, &directive->axes, (void *)axis);
  list_push(c->arena, &directive->axis_places, place);
}

static void add_refs(struct checker *c, struct ir_directive *directive, const struct list *refs) {
  for (uint32_t i = 0; i < refs->count; i++) {
    const struct ast_ref *ref = refs->at[i];
    add_axis(c, directive, ref->stage.text, ref->axis.text, ref->range);
  }
}

static void add_names(struct checker *c, struct ir_directive *directive, const struct list *names) {
  for (uint32_t i = 0; i < names->count; i++) list_push(c->arena, &directive->names, (void *)list_at(names, struct ast_name, i)->text);
}

static bool set_factor(struct checker *c, struct ir_directive *directive, const struct ast_expr *e) {
  struct ir_expr *factor = schedule_expr(c, e, true);
  if (!factor) return false;
  bool is_parts = directive->kind == DIRECTIVE_SPLIT_INTO; // parts below 1 count as 1
  if (factor->type == TYPE_BOOL || (!is_parts && ir_is_const(factor) && factor->integer < 1)) {
    diag_error(c->diag, ERROR_SPLIT, e->range, "a factor is a positive integer, not %s",
               factor->type == TYPE_BOOL ? "a condition" : arena_printf(c->arena, "%lld", (long long)factor->integer));
    diag_note(c->diag, (struct range){0}, "legal here: integer expressions above 0 of constants, sizes, integer scalars, sms, arch, shared and extent(x)");
    return false;
  }
  directive->factor = check_as_index(c, factor);
  return true;
}

// The kernel's tensors; without outputs: its inputs.
static void note_tensors(struct checker *c, bool with_outputs) {
  struct text names = {0};
  for (uint32_t i = 0; i < c->kernel->tensors.count; i++) {
    const struct ir_mem *mem = c->kernel->tensors.at[i];
    if (with_outputs || !mem->is_output) text_printf(&names, "%s%s", names.length ? ", " : "", mem->label);
  }
  diag_note(c->diag, (struct range){0}, "%s here: %s", with_outputs ? "tensors" : "inputs", names.length ? names.data : "none");
  text_free(&names);
}

// tile i by 32, j by 32 -> io, jo, ii, ji: the splits, then the order outers before inners.
static bool check_tile(struct checker *c, const struct ast_directive *source) {
  uint32_t count = source->refs.count;
  for (uint32_t i = 0; i < count; i++) {
    struct ir_directive *split = add_directive(c, DIRECTIVE_SPLIT_BY, source);
    const struct ast_ref *ref = source->refs.at[i];
    add_axis(c, split, ref->stage.text, ref->axis.text, ref->range);
    list_push(c->arena, &split->names, (void *)list_at(&source->names, struct ast_name, i)->text);
    list_push(c->arena, &split->names, (void *)list_at(&source->names, struct ast_name, count + i)->text);
    if (!set_factor(c, split, source->values.at[i])) return false;
  }
  struct ir_directive *order = add_directive(c, DIRECTIVE_REORDER, source);
  for (uint32_t i = 0; i < 2 * count; i++) {
    const struct ast_name *name = source->names.at[i];
    add_axis(c, order, list_at(&source->refs, struct ast_ref, i % count)->stage.text, name->text, name->range);
  }
  return true;
}

static bool unsupported(struct checker *c, const struct ast_directive *source, const char *what) {
  diag_error(c->diag, ERROR_UNSUPPORTED, source->range, "'%s' is not lowered by this version", what);
  return false;
}

// A constant of a `stage` directive.
static bool add_number(struct checker *c, struct ir_directive *directive, const struct ast_expr *e, int64_t otherwise) {
  struct ir_expr *value = e ? schedule_expr(c, e, false) : ir_int(c->arena, TYPE_I64, otherwise);
  if (!value) return false;
  if (!ir_is_const(value) || value->type == TYPE_BOOL || value->integer < 0 || value->integer > 65536) {
    diag_error(c->diag, ERROR_DIRECTIVE, e->range, "a number of a `stage` directive is a constant from 0 to 65536");
    return false;
  }
  list_push(c->arena, &directive->numbers, (void *)(uintptr_t)value->integer);
  return true;
}

static bool check_stage_shared(struct checker *c, const struct ast_directive *source, struct ir_mem *tensor) {
  enum { MOST_DEPTH = 8 }; // a proof goes through as many iterations
  bool is_async = source->by.text && strcmp(source->by.text, "cp_async") == 0;
  if (source->by.text && !is_async && strcmp(source->by.text, "copy") != 0) return unsupported(c, source, arena_printf(c->arena, "by %s", source->by.text));
  struct ir_directive *directive = add_directive(c, DIRECTIVE_SHARED, source);
  add_axis(c, directive, source->at.stage.text, source->at.axis.text, source->at.range);
  if (source->along.axis.text) add_axis(c, directive, source->along.stage.text, source->along.axis.text, source->along.range);
  else if (source->pad_along.axis.text) add_axis(c, directive, NULL, "", source->range); // no axis for the unit
  if (source->pad_along.axis.text) add_axis(c, directive, source->pad_along.stage.text, source->pad_along.axis.text, source->pad_along.range);
  list_push(c->arena, &directive->names, (void *)tensor->name);
  list_push(c->arena, &directive->names, (void *)(source->alias.text ? source->alias.text : source->tensor.text));
  bool good = add_number(c, directive, source->unit, 1) && add_number(c, directive, source->pad, 0);
  for (uint32_t i = 0; i < 3; i++)
    good = good && add_number(c, directive, i < source->swizzle.count ? list_at(&source->swizzle, struct ast_expr, i) : NULL, 0);
  good = good && add_number(c, directive, NULL, is_async) && add_number(c, directive, source->phase, 0) && add_number(c, directive, source->depth, 1);
  uintptr_t depth = good ? (uintptr_t)directive->numbers.at[SHARED_DEPTH] : 1;
  if (depth >= 1 && depth <= MOST_DEPTH) return good;
  diag_error(c->diag, ERROR_DIRECTIVE, source->depth->range, "a copy has places for 1 to %d iterations, not for %u", MOST_DEPTH, (unsigned)depth);
  return false;
}

static bool check_directive(struct checker *c, const struct ast_directive *source) {
  struct ir_directive *directive;
  switch (source->kind) {
  case AST_SPLIT:
    directive = add_directive(c, source->is_into ? DIRECTIVE_SPLIT_INTO : DIRECTIVE_SPLIT_BY, source);
    add_refs(c, directive, &source->refs);
    add_names(c, directive, &source->names);
    if (source->tensor.text) {
      struct symbol *symbol = check_find(c, source->tensor.text);
      if (!symbol || symbol->kind != SYMBOL_TENSOR) {
        diag_error(c->diag, ERROR_NOT_A_VALUE, source->tensor.range, "pieces lie along a tensor, and '%s' is none", source->tensor.text);
        note_tensors(c, true);
        return false;
      }
      list_push(c->arena, &directive->names, (void *)symbol->mem->name);
    }
    return set_factor(c, directive, source->value);
  case AST_FUSE:
    directive = add_directive(c, DIRECTIVE_FUSE, source);
    add_refs(c, directive, &source->refs);
    add_names(c, directive, &source->names);
    return true;
  case AST_TILE: return check_tile(c, source);
  case AST_REORDER:
    add_refs(c, add_directive(c, DIRECTIVE_REORDER, source), &source->refs);
    return true;
  case AST_BIND:
    directive = add_directive(c, DIRECTIVE_BIND, source);
    add_refs(c, directive, &source->refs);
    directive->bind = (enum ir_bind)((strcmp(source->word.text, "block") == 0 ? BIND_BLOCK_X : BIND_THREAD_X) + (source->dimension - 'x'));
    return true;
  case AST_UNROLL:
    directive = add_directive(c, DIRECTIVE_UNROLL, source);
    add_refs(c, directive, &source->refs);
    return !source->value || set_factor(c, directive, source->value);
  case AST_ALLREDUCE:
    directive = add_directive(c, DIRECTIVE_ALLREDUCE, source);
    add_refs(c, directive, &source->refs);
    directive->form = strcmp(source->word.text, "shuffle") == 0 ? FORM_SHUFFLE : strcmp(source->word.text, "tree") == 0 ? FORM_TREE : FORM_AUTO;
    return true;
  case AST_VECTORIZE:
    add_refs(c, add_directive(c, DIRECTIVE_VECTORIZE, source), &source->refs);
    return true;
  case AST_STAGE: {
    struct symbol *symbol = check_find(c, source->tensor.text);
    if (symbol && symbol->kind == SYMBOL_TENSOR && symbol->mem->is_output) {
      diag_error(c->diag, ERROR_UNSUPPORTED, source->tensor.range, "copies of outputs are not lowered by this version, and '%s' is one; 'stage' takes an input", source->tensor.text);
      note_tensors(c, false);
      return false;
    }
    if (!symbol || symbol->kind != SYMBOL_TENSOR) {
      diag_error(c->diag, ERROR_NOT_A_VALUE, source->tensor.range, "'stage' takes an input tensor, and '%s' is none", source->tensor.text);
      note_tensors(c, false);
      return false;
    }
    if (strcmp(source->word.text, "registers") != 0) return check_stage_shared(c, source, symbol->mem);
    directive = add_directive(c, DIRECTIVE_REGISTERS, source);
    add_axis(c, directive, source->at.stage.text, source->at.axis.text, source->at.range);
    list_push(c->arena, &directive->names, (void *)symbol->mem->name);
    return !source->depth || add_number(c, directive, source->depth, 0);
  }
  case AST_CACHE: {
    const struct ast_name *name = source->names.at[0];
    struct symbol *symbol = check_find(c, name->text);
    if (!symbol || symbol->kind != SYMBOL_TENSOR) {
      diag_error(c->diag, ERROR_NOT_A_VALUE, name->range, "'cache' takes a tensor, and '%s' is none", name->text);
      note_tensors(c, true);
      return false;
    }
    directive = add_directive(c, DIRECTIVE_CACHE, source);
    list_push(c->arena, &directive->names, (void *)symbol->mem->name);
    for (uint32_t i = CACHE_EVICT_FIRST; i < CACHE_COUNT; i++)
      if (strcmp(source->word.text, ir_hint_names[i]) == 0) directive->hint = (enum cache_hint)i;
    return true;
  }
  case AST_BLOCKS:
    directive = add_directive(c, DIRECTIVE_BLOCKS, source);
    return set_factor(c, directive, source->value);
  case AST_JOIN:
    directive = add_directive(c, DIRECTIVE_JOIN, source);
    for (uint32_t i = 0; i < source->names.count; i++) {
      const struct ast_name *name = source->names.at[i];
      add_axis(c, directive, name->text, name->text, name->range);
    }
    return true;
  case AST_COMBINE:
    for (uint32_t i = COMBINE_LAST_BLOCK; i < COMBINE_COUNT; i++) {
      if (strcmp(source->word.text, ir_combine_names[i]) != 0) continue;
      directive = add_directive(c, DIRECTIVE_COMBINE, source);
      add_refs(c, directive, &source->refs);
      directive->combine = (enum combine_form)i;
      return true;
    }
    return unsupported(c, source, "combine");
  }
  return true;
}

bool check_schedule(struct checker *c, const struct ast_schedule *schedule) {
  bool good = true;
  if (schedule->when) {
    struct ir_expr *when = schedule_expr(c, schedule->when, false);
    if (when && when->type != TYPE_BOOL) {
      diag_error(c->diag, ERROR_TYPE_MISMATCH, schedule->when->range, "`when` takes a condition, not a number");
      when = NULL;
    }
    c->entry->when = when;
    good = when != NULL;
  }
  for (uint32_t i = 0; i < schedule->directives.count; i++) good &= check_directive(c, schedule->directives.at[i]);
  return good;
}
