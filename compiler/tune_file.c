#include "compiler/tune_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char HEADING[] = "// redc tune: ";

// --- The key

static bool is_stride(const struct ir_var *size) { return size->inferred && size->inferred->op == OP_STRIDE; }
static const char *label_of(const struct ir_var *size) { return size->label ? size->label : size->name; }

// The type of a type parameter in this kernel.
static const struct define *type_of(const struct run_program *program, const char *param) {
  for (uint32_t i = 0; i < program->c.options.defines.count; i++) {
    const struct define *define = program->c.options.defines.at[i];
    if (define->is_type && strcmp(define->name, param) == 0) return define;
  }
  return NULL;
}

static const struct ast_kernel *source_of(const struct run_program *program) {
  for (uint32_t i = 0; i < program->c.ast.kernels.count; i++) {
    const struct ast_kernel *kernel = program->c.ast.kernels.at[i];
    if (strcmp(kernel->name.text, program->kernel->label) == 0) return kernel;
  }
  return NULL;
}

void tune_key_make(struct run_program *program, const char *device, struct tune_key *key) {
  struct arena *arena = &program->c.arena;
  const struct ir_kernel *kernel = program->kernel;
  const char *heading = arena_printf(arena, "%s%s", HEADING, kernel->name), *name = "tuned";
  if (strcmp(kernel->name, kernel->label) != 0) name = arena_printf(arena, "tuned%s", kernel->name + strlen(kernel->label));
  for (uint32_t i = 0; i < kernel->sizes.count; i++) {
    const struct ir_var *size = kernel->sizes.at[i];
    if (is_stride(size)) continue;
    heading = arena_printf(arena, "%s, %s=%" PRId64, heading, label_of(size), program->arguments.sizes[i]);
    name = arena_printf(arena, "%s_%" PRId64, name, program->arguments.sizes[i]);
  }
  *key = (struct tune_key){arena_printf(arena, "%s, %s", heading, device), kernel->label, name};
}

// --- The condition

static struct ast_expr *node(struct arena *arena, enum ast_expr_kind kind) {
  struct ast_expr *e = arena_new(arena, struct ast_expr);
  e->kind = kind;
  e->depth = 1;
  return e;
}

static struct ast_expr *named(struct arena *arena, const char *name) {
  struct ast_expr *e = node(arena, AST_NAME);
  e->name.text = name;
  return e;
}

static struct ast_expr *binary(struct arena *arena, enum ast_binary_op op, struct ast_expr *a, struct ast_expr *b) {
  struct ast_expr *e = node(arena, AST_BINARY);
  e->binary = op;
  e->depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
  list_push(arena, &e->args, a);
  list_push(arena, &e->args, b);
  return e;
}

static struct ast_expr *both(struct arena *arena, struct ast_expr *a, struct ast_expr *b) { return a ? binary(arena, AST_AND_THEN, a, b) : b; }

// Whether it asks about anything but constants, sizes and types: strides, addresses, the device, scalars.
static bool asks_more(const struct run_program *program, const struct ast_kernel *source, const struct ast_expr *e) {
  bool is_known = e->kind != AST_NAME && (e->kind != AST_CALL || strcmp(e->name.text, "min") == 0 || strcmp(e->name.text, "max") == 0 || strcmp(e->name.text, "bytes") == 0);
  for (uint32_t i = 0; e->kind == AST_NAME && i < program->kernel->sizes.count; i++) is_known |= strcmp(label_of(program->kernel->sizes.at[i]), e->name.text) == 0;
  for (uint32_t i = 0; e->kind == AST_NAME && source && i < source->type_params.count; i++) is_known |= strcmp(list_at(&source->type_params, struct ast_name, i)->text, e->name.text) == 0;
  enum type type;
  if (e->kind == AST_NAME && type_parse(e->name.text, &type)) is_known = true;
  for (uint32_t i = 0; is_known && i < e->args.count; i++) is_known = !asks_more(program, source, e->args.at[i]);
  return !is_known;
}

static struct ast_expr *keep(struct run_program *program, const struct ast_kernel *source, struct ast_expr *all, struct ast_expr *when) {
  if (when->kind == AST_BINARY && when->binary == AST_AND_THEN) {
    all = keep(program, source, all, when->args.at[0]);
    return keep(program, source, all, when->args.at[1]);
  }
  return asks_more(program, source, when) ? both(&program->c.arena, all, when) : all;
}

struct ast_expr *tune_file_when(struct run_program *program, struct ast_expr *when) {
  struct arena *arena = &program->c.arena;
  const struct ast_kernel *source = source_of(program);
  struct ast_expr *all = NULL;
  for (uint32_t i = 0; source && i < source->type_params.count; i++) {
    const char *param = list_at(&source->type_params, struct ast_name, i)->text;
    const struct define *type = type_of(program, param);
    if (type) all = both(arena, all, binary(arena, AST_EQ, named(arena, param), named(arena, type_name(type->type))));
  }
  for (uint32_t i = 0; i < program->kernel->sizes.count; i++) {
    const struct ir_var *size = program->kernel->sizes.at[i];
    if (is_stride(size)) continue;
    struct ast_expr *value = node(arena, AST_INT);
    value->integer = (uint64_t)program->arguments.sizes[i];
    all = both(arena, all, binary(arena, AST_EQ, named(arena, label_of(size)), value));
  }
  return when ? keep(program, source, all, when) : all;
}

// --- The file

static size_t line_length(const char *text) {
  size_t length = strcspn(text, "\n");
  return length + (text[length] == '\n');
}

bool tune_file_has(const char *text, const struct tune_key *key) {
  size_t length = strlen(key->heading);
  for (; *text; text += line_length(text))
    if (strncmp(text, key->heading, length) == 0 && strchr("\r\n", text[length])) return true;
  return false;
}

// The bytes of the block that begins here: to its line `}`, or to the end.
static size_t block_length(const char *text) {
  size_t length = 0;
  while (text[length]) {
    const char *line = text + length;
    length += line_length(line);
    if (line[0] == '}' && (line[1] == '\n' || line[1] == '\r' || !line[1])) break;
  }
  return length;
}

static bool is_named(const char *block, size_t length, const struct tune_key *key) {
  char name[512];
  size_t wanted = (size_t)snprintf(name, sizeof name, "schedule %s as %s ", key->kernel, key->name);
  for (size_t at = 0; at < length; at += line_length(block + at))
    if (wanted < sizeof name && strncmp(block + at, name, wanted) == 0) return true;
  return false;
}

void tune_file_put(const char *text, const struct tune_key *key, const char *block, struct text *out) {
  bool is_put = false;
  while (*text) {
    bool is_block = strncmp(text, HEADING, strlen(HEADING)) == 0;
    size_t length = is_block ? block_length(text) : line_length(text);
    bool is_old = is_block && is_named(text, length, key);
    if (is_old && !is_put) text_puts(out, block);
    if (!is_old) text_append(out, text, length);
    is_put |= is_old;
    text += length;
  }
  if (is_put) return;
  if (out->length && out->data[out->length - 1] != '\n') text_puts(out, "\n");
  text_puts(out, block);
}
