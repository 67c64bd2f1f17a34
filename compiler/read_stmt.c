// Names, declarations and statements of IR text.
#include "compiler/read.h"

// ---- Names

struct symbol *read_declare(struct reader *r, const char *name, struct range place) {
  if (r->failed) return NULL;
  if (map_get(&r->symbols, name)) {
    read_fail(r, place, "name '%s' is declared twice", name);
    return NULL;
  }
  struct symbol *symbol = arena_new(r->arena, struct symbol);
  map_set(&r->symbols, name, symbol);
  list_push(r->arena, &r->entry_names, (void *)(uintptr_t)name);
  if (r->kernel) map_set(&r->kernel->names, name, (void *)1);
  return symbol;
}

struct symbol *read_known(struct reader *r, const char *what) {
  struct range place = r->scan.token.range;
  const char *name = read_name(r, what);
  struct symbol *symbol = name ? map_get(&r->symbols, name) : NULL;
  if (name && !symbol) read_fail(r, place, "unknown name '%s': expected %s", name, what);
  return r->failed ? NULL : symbol;
}

struct ir_mem *read_known_mem(struct reader *r) {
  struct token token = r->scan.token;
  struct symbol *symbol = read_known(r, "a tensor or memory object");
  if (symbol && !symbol->mem)
    read_fail(r, token.range, "'%s' is a variable, not a memory object", token.text);
  return r->failed ? NULL : symbol->mem;
}

struct ir_reducer *read_known_reducer(struct reader *r) {
  struct range place = r->scan.token.range;
  const char *name = read_name(r, "the name of a reducer");
  struct ir_reducer *reducer = name ? map_get(&r->reducers, name) : NULL;
  if (name && !reducer) read_fail(r, place, "unknown reducer '%s'", name);
  return reducer;
}

struct ir_var *read_var(struct reader *r, enum ir_var_kind kind, struct range *place) {
  struct ir_var *var = arena_new(r->arena, struct ir_var);
  *place = r->scan.token.range;
  var->kind = kind;
  var->name = var->label = read_name(r, "the name of a variable");
  if (r->scan.token.kind == TOKEN_STRING) var->label = read_string(r, "a label");
  read_expect(r, ':');
  var->type = read_type(r);
  var->was_index = read_accept_word(r, "nowrap");
  var->range = read_range(r);
  return r->failed ? NULL : var;
}

void read_declare_var(struct reader *r, struct ir_var *var, struct range place) {
  struct symbol *symbol = r->failed ? NULL : read_declare(r, var->name, place);
  if (symbol) symbol->var = var;
}

void read_inherit_range(struct ir_var *var, struct range around) {
  if (var && !var->range.line) var->range = around;
}

void read_vars(struct reader *r, enum ir_var_kind kind, bool declare, struct list *out) {
  read_expect(r, '(');
  while (!r->failed && !read_at(r, ')')) {
    if (out->count) read_expect(r, ',');
    struct range place;
    struct ir_var *var = read_var(r, kind, &place);
    if (declare) read_declare_var(r, var, place);
    if (!r->failed) list_push(r->arena, out, var);
  }
  read_expect(r, ')');
}

// ---- Statements

uint32_t read_unroll(struct reader *r) {
  if (!read_accept_word(r, "unroll")) return 0;
  if (read_accept_word(r, "never")) return 1;
  if (read_accept_word(r, "whole")) return UINT32_MAX;
  if (read_accept_word(r, "vector")) return UNROLL_VECTOR;
  struct range place = r->scan.token.range;
  uint32_t factor = read_uint(r, "'never', 'whole' or a factor");
  if (factor < 2 || factor >= UNROLL_VECTOR)
    read_fail(r, place, "a factor of unrolling is at least 2 and at most %u", UNROLL_VECTOR - 1);
  return factor;
}

enum allreduce_form read_form(struct reader *r) {
  if (!read_accept_word(r, "form")) return FORM_AUTO;
  return (enum allreduce_form)read_choice(r, ir_form_names, FORM_TREE + 1, "a form");
}

struct ir_stmt *read_definition(struct reader *r, enum ir_stmt_kind kind, bool is_stage) {
  struct ir_stmt *s = ir_stmt(r->arena, kind, (struct range){0});
  struct range place;
  s->var = read_var(r, kind == IR_VAR ? VAR_MUTABLE : VAR_LET, &place);
  read_expect(r, '=');
  s->value = read_expr(r);
  s->range = read_range(r);
  read_inherit_range(s->var, s->range);
  struct ir_var *shared = is_stage && !r->failed ? map_get(&r->stage_vars, s->var->name) : NULL;
  if (shared) {
    if (shared->type != s->var->type)
      read_fail(r, place, "'%s' has another type in another stage", shared->name);
    s->var = shared;
    return s;
  }
  read_declare_var(r, s->var, place);
  if (is_stage && !r->failed) map_set(&r->stage_vars, s->var->name, s->var);
  return s;
}

void read_store(struct reader *r, struct ir_mem **mem, struct list *indices, struct ir_expr **value) {
  *mem = read_known_mem(r);
  read_exprs(r, '[', ']', indices);
  read_expect(r, '=');
  *value = read_expr(r);
}

static void read_set(struct reader *r, struct ir_stmt *s) {
  struct token token = r->scan.token;
  struct symbol *symbol = read_known(r, "a variable");
  if (symbol && !symbol->var)
    read_fail(r, token.range, "'%s' is a memory object, not a variable", token.text);
  s->var = r->failed ? NULL : symbol->var;
  read_expect(r, '=');
  s->value = read_expr(r);
}

static void read_for(struct reader *r, struct ir_stmt *s) {
  struct range place;
  s->var = read_var(r, VAR_AXIS, &place);
  read_expect_word(r, "in");
  s->lo = read_expr(r);
  if (r->scan.token.kind != TOKEN_DOTS) read_expected(r, "'..'");
  read_advance(r);
  s->hi = read_expr(r);
  s->unroll = read_unroll(r);
  s->range = read_range(r);
  read_declare_var(r, s->var, place);
  read_inherit_range(s->var, s->range);
  read_block(r, &s->body);
}

static void read_if(struct reader *r, struct ir_stmt *s) {
  s->value = read_expr(r);
  s->range = read_range(r);
  read_block(r, &s->body);
  if (read_accept_word(r, "else")) read_block(r, &s->otherwise);
}

static void read_allreduce(struct reader *r, struct ir_stmt *s) {
  struct scanner results = r->scan;
  read_vars(r, VAR_LET, false, &s->results);
  read_expect(r, '=');
  s->reducer = read_known_reducer(r);
  read_exprs(r, '(', ')', &s->inputs);
  read_expect_word(r, "over");
  if (!read_accept_word(r, "none"))
    for (bool more = true; more;) {
      more = false;
      for (uint32_t i = 0; i < 3; i++)
        if (read_accept_word(r, (const char *const[]){"x", "y", "z"}[i])) {
          s->thread_axes |= 1u << i;
          more = true;
        }
    }
  s->result_in_all = read_accept_word(r, "all");
  s->form = read_form(r);
  s->range = read_range(r);
  for (uint32_t i = 0; !r->failed && i < s->results.count; i++) {
    struct ir_var *var = list_at(&s->results, struct ir_var, i);
    read_declare_var(r, var, results.token.range);
    read_inherit_range(var, s->range);
  }
}

static void read_wide(struct reader *r, struct ir_stmt *s) {
  struct scanner results = r->scan;
  if (s->kind == IR_LOAD_WIDE) {
    read_vars(r, VAR_LET, false, &s->results);
    read_expect(r, '=');
  }
  s->mem = read_known_mem(r);
  read_exprs(r, '[', ']', &s->indices);
  if (s->kind == IR_STORE_WIDE) {
    read_expect(r, '=');
    read_exprs(r, '(', ')', &s->inputs);
  }
  s->range = read_range(r);
  for (uint32_t i = 0; !r->failed && i < s->results.count; i++) {
    struct ir_var *var = list_at(&s->results, struct ir_var, i);
    read_declare_var(r, var, results.token.range);
    read_inherit_range(var, s->range);
  }
}

static void read_atomic(struct reader *r, struct ir_stmt *s) {
  struct scanner results = r->scan;
  if (read_at(r, '(')) {
    read_vars(r, VAR_LET, false, &s->results);
    read_expect(r, '=');
  }
  s->atomic = (enum ir_atomic)read_choice(r, ir_atomic_names, ATOMIC_COUNT, "an atomic operation");
  s->mem = read_known_mem(r);
  read_exprs(r, '[', ']', &s->indices);
  read_expect_word(r, "by");
  s->value = read_expr(r);
  s->range = read_range(r);
  for (uint32_t i = 0; !r->failed && i < s->results.count; i++) {
    struct ir_var *var = list_at(&s->results, struct ir_var, i);
    read_declare_var(r, var, results.token.range);
    read_inherit_range(var, s->range);
  }
}

static void read_copy(struct reader *r, struct ir_stmt *s) {
  s->count = read_uint(r, "how many elements are copied");
  read_store(r, &s->mem, &s->indices, &s->value);
}

static struct ir_stmt *read_stmt(struct reader *r) {
  struct ir_stmt *s = ir_stmt(r->arena, IR_BARRIER, (struct range){0});
  uint32_t kind = 0;
  if (read_accept_word(r, "store_flat")) {
    s->is_flat = true;
    kind = IR_STORE;
  } else if (read_accept_word(r, "load_wide_flat")) {
    s->is_flat = true;
    kind = IR_LOAD_WIDE;
  } else if (read_accept_word(r, "store_wide_flat")) {
    s->is_flat = true;
    kind = IR_STORE_WIDE;
  } else if (read_accept_word(r, "atomic_flat")) {
    s->is_flat = true;
    kind = IR_ATOMIC;
  } else if (read_accept_word(r, "copy_async_flat")) {
    s->is_flat = true;
    kind = IR_COPY;
  } else {
    kind = read_choice(r, ir_stmt_names, IR_STMT_KINDS, "a statement");
  }
  s->kind = (enum ir_stmt_kind)kind;
  switch (s->kind) {
  case IR_LET:
  case IR_VAR: return read_definition(r, s->kind, false);
  case IR_SET: read_set(r, s); break;
  case IR_STORE: read_store(r, &s->mem, &s->indices, &s->value); break;
  case IR_FOR: read_for(r, s); return s;
  case IR_IF: read_if(r, s); return s;
  case IR_ALLREDUCE: read_allreduce(r, s); return s;
  case IR_BARRIER: break;
  case IR_SYNCWARP: s->value = read_expr(r); break;
  case IR_LOAD_WIDE:
  case IR_STORE_WIDE: read_wide(r, s); return s;
  case IR_ATOMIC: read_atomic(r, s); return s;
  case IR_COPY: read_copy(r, s); break;
  case IR_COPY_WAIT: s->count = read_uint(r, "how many groups may be under way"); break;
  case IR_COPY_COMMIT:
  case IR_FENCE:
  case IR_GRID_WAIT:
  case IR_GRID_READY: break;
  }
  s->range = read_range(r);
  return s;
}

void read_block(struct reader *r, struct list *out) {
  if (!read_enter(r)) return;
  read_expect(r, '{');
  while (!r->failed && !read_accept(r, '}')) list_push(r->arena, out, read_stmt(r));
  read_leave(r);
}
