// Reads IR text back: ir_read. The form is docs/ir.md's; print.c is the other half. Here: the head of a dump,
// reducers and kernels. Text that is not what the printer wrote gives one message with its place in the dump.
#include "compiler/read.h"

#include <string.h>

// ---- Head

static void read_head(struct reader *r) {
  struct range start = r->scan.token.range;
  if (!read_accept_word(r, "red") || !read_accept(r, '-') || !read_accept_word(r, "ir")) {
    read_fail(r, start, "this is no IR text: it begins with 'red-ir %d'", IR_TEXT_VERSION);
    return;
  }
  struct range place = r->scan.token.range;
  uint32_t version = read_uint(r, "the version of the format");
  if (!r->failed && version != IR_TEXT_VERSION)
    read_fail(r, place, "IR text of version %u; this compiler reads version %d", version, IR_TEXT_VERSION);
  while (read_accept_word(r, "source")) {
    place = r->scan.token.range;
    uint32_t number = read_uint(r, "the number of a source");
    if (number != r->files.count)
      read_fail(r, place, "expected source %u, found source %u", r->files.count, number);
    const char *name = read_string(r, "the name of a source");
    if (r->failed) return;
    uint32_t file = diag_add_source(r->diag, name, NULL, 0);
    list_push(r->arena, &r->files, (void *)(uintptr_t)file);
  }
}

// ---- Reducers

static void read_function(struct reader *r, struct ir_function *function) {
  map_init(&r->symbols, r->arena);
  read_vars(r, VAR_LET, true, &function->params);
  read_expect(r, '{');
  while (read_accept_word(r, "let")) list_push(r->arena, &function->lets, read_definition(r, IR_LET, false));
  if (!read_at_word(r, "result")) read_expected(r, "'let' or 'result'");
  read_expect_word(r, "result");
  read_exprs(r, '(', ')', &function->results);
  read_expect(r, '}');
}

static void read_reducer(struct reader *r) {
  struct ir_reducer *reducer = arena_new(r->arena, struct ir_reducer);
  struct range place = r->scan.token.range;
  reducer->name = read_name(r, "the name of a reducer");
  if (!r->failed && map_get(&r->reducers, reducer->name))
    read_fail(r, place, "reducer '%s' is declared twice", reducer->name);
  reducer->is_ordered = read_accept_word(r, "ordered");
  reducer->is_commutative_bitwise = read_accept_word(r, "commutative");
  reducer->range = read_range(r);
  read_expect(r, '{');
  read_expect_word(r, "identity");
  map_init(&r->symbols, r->arena);
  read_exprs(r, '(', ')', &reducer->identity);
  read_expect_word(r, "combine");
  read_function(r, &reducer->combine);
  if (read_accept_word(r, "update")) read_function(r, &reducer->update);
  read_expect(r, '}');
  if (r->failed) return;
  map_set(&r->reducers, reducer->name, reducer);
  list_push(r->arena, &r->module->reducers, reducer);
}

// ---- Kernels

static void read_size(struct reader *r) {
  struct ir_var *size = arena_new(r->arena, struct ir_var);
  struct range place = r->scan.token.range;
  size->kind = VAR_SIZE;
  size->name = size->label = read_name(r, "the name of a size");
  if (r->scan.token.kind == TOKEN_STRING) size->label = read_string(r, "a label");
  size->type = read_accept(r, ':') ? read_type(r) : TYPE_I64;
  if (read_accept(r, '=')) size->constant = read_expr(r);
  size->range = read_range(r);
  read_declare_var(r, size, place);
  list_push(r->arena, &r->kernel->sizes, size);
}

static void read_scalar(struct reader *r) {
  struct range place;
  struct ir_var *scalar = read_var(r, VAR_SCALAR, &place);
  read_declare_var(r, scalar, place);
  list_push(r->arena, &r->kernel->scalars, scalar);
}

static void read_infer(struct reader *r) {
  struct token token = r->scan.token;
  struct symbol *symbol = read_known(r, "a size");
  if (symbol && (!symbol->var || symbol->var->kind != VAR_SIZE))
    read_fail(r, token.range, "'%s' is no size", token.text);
  if (symbol && symbol->var && symbol->var->inferred)
    read_fail(r, token.range, "size '%s' is inferred twice", token.text);
  read_expect(r, '=');
  struct ir_expr *inferred = read_expr(r);
  if (!r->failed) symbol->var->inferred = inferred;
}

static void read_kernel_item(struct reader *r) {
  if (read_accept_word(r, "size"))
    read_size(r);
  else if (read_accept_word(r, "scalar"))
    read_scalar(r);
  else if (read_accept_word(r, "tensor"))
    list_push(r->arena, &r->kernel->tensors, read_mem(r, SPACE_GLOBAL));
  else if (read_accept_word(r, "infer"))
    read_infer(r);
  else if (read_accept_word(r, "require"))
    list_push(r->arena, &r->kernel->requirements, read_condition(r));
  else if (read_accept_word(r, "entry"))
    read_entry(r);
  else
    read_expected(r, "a part of a kernel (size, scalar, tensor, infer, require, entry) or '}'");
}

static void read_kernel(struct reader *r) {
  struct ir_kernel *kernel = arena_new(r->arena, struct ir_kernel);
  map_init(&kernel->names, r->arena);
  map_init(&r->symbols, r->arena);
  r->kernel = kernel;
  kernel->name = kernel->label = read_name(r, "the name of a kernel");
  if (r->scan.token.kind == TOKEN_STRING) kernel->label = read_string(r, "a label");
  kernel->range = read_range(r);
  read_expect(r, '{');
  while (!r->failed && !read_accept(r, '}')) read_kernel_item(r);
  r->kernel = NULL;
  if (!r->failed) list_push(r->arena, &r->module->kernels, kernel);
}

bool ir_read(struct ir_module *module, uint32_t file) {
  const struct source *source = list_at(&module->diag->sources, struct source, file);
  struct reader reader = {.module = module, .arena = module->arena, .diag = module->diag, .file = file};
  struct reader *r = &reader;
  const char *text = source->text ? source->text : "";
  r->scan = (struct scanner){.at = text, .end = text + source->length, .line_start = text, .line = 1};
  map_init(&r->operations, r->arena);
  map_init(&r->reducers, r->arena);
  map_init(&r->symbols, r->arena);
  for (uintptr_t op = 0; op < OP_COUNT; op++)
    map_set(&r->operations, op_table[op].spelling, (void *)(op + 1));
  read_advance(r);
  read_head(r);
  while (!r->failed && r->scan.token.kind != TOKEN_END) {
    if (read_accept_word(r, "reducer"))
      read_reducer(r);
    else if (read_accept_word(r, "kernel"))
      read_kernel(r);
    else
      read_expected(r, "'reducer' or 'kernel'");
  }
  return !r->failed;
}
