// Kernels and their statements as CUDA text, with the source line that each part came from above it.
#include "codegen/arguments.h"
#include "codegen/cuda.h"
#include "codegen/program.h"

#include <ctype.h>
#include <string.h>

static void put(struct cuda *cg, const char *text) {
  text_puts(&cg->line, text);
}

void cuda_line_end(struct cuda *cg) {
  if (cg->line.length)
    for (int i = 0; i < cg->depth; i++) text_puts(&cg->text, "  ");
  text_append(&cg->text, cg->line.data ? cg->line.data : "", cg->line.length);
  text_puts(&cg->text, "\n");
  cg->line.length = 0;
  struct range *range = arena_new(cg->context->arena, struct range);
  *range = cg->here;
  list_push(cg->context->arena, &cg->lines, range);
}

static bool was_shown(const struct cuda *cg, struct range range) {
  for (uint32_t i = 0; i < cg->shown.count; i++) {
    const struct range *known = list_at(&cg->shown, struct range, i);
    if (known->line == range.line && known->file == range.file) return true;
  }
  return false;
}

// A source line without the blanks around it and what a C++ comment must not hold: a backslash at its end
// would go on.
static void put_source_line(struct cuda *cg, const struct source *source, uint32_t line) {
  const char *start = source->lines[line - 1], *end = source->text + source->length;
  const char *stop = memchr(start, '\n', (size_t)(end - start));
  if (!stop) stop = end;
  while (start < stop && isspace((unsigned char)*start)) start++;
  while (start < stop && (isspace((unsigned char)stop[-1]) || stop[-1] == '\\')) stop--;
  for (; start < stop; start++) {
    char c = *start == '\t' || *start == '\r' || *start == '\0' ? ' ' : *start;
    text_append(&cg->line, &c, 1);
  }
}

// Names the source line of a statement where it is another than the last one's, with its text the first time.
static void show_source(struct cuda *cg, struct range range) {
  const struct list *sources = &cg->context->diag->sources;
  cg->here = range;
  if (range.line == 0 || (range.line == cg->shown_line && range.file == cg->shown_file)) return;
  if (range.file >= sources->count) return;
  const struct source *source = list_at(sources, struct source, range.file);
  if (!source->text || range.line > source->line_count) return;
  cg->shown_line = range.line;
  cg->shown_file = range.file;
  text_printf(&cg->line, "// %s:%u", source->name, range.line);
  if (!was_shown(cg, range)) {
    text_puts(&cg->line, ": ");
    put_source_line(cg, source, range.line);
    struct range *shown = arena_new(cg->context->arena, struct range);
    *shown = range;
    list_push(cg->context->arena, &cg->shown, shown);
  }
  cuda_line_end(cg);
}

const struct cuda_object *cuda_object(struct cuda *cg, const struct ir_mem *mem) {
  for (uint32_t i = 0; i < cg->objects.count; i++) {
    const struct cuda_object *object = list_at(&cg->objects, struct cuda_object, i);
    if (object->mem == mem) return object;
  }
  return NULL;
}

static struct cuda_object *add_object(struct cuda *cg, const struct ir_mem *mem) {
  struct cuda_object *object = arena_new(cg->context->arena, struct cuda_object);
  object->mem = mem;
  list_push(cg->context->arena, &cg->objects, object);
  return object;
}

static const char *declare(struct cuda *cg, struct ir_var *var) {
  struct cuda_var *known = cuda_var(cg, var);
  known->name = cuda_name(cg, &cg->names, var->label, var->name);
  return known->name;
}

// --- Statements --------------------------------------------------------------------------------------------

static void block(struct cuda *cg, const struct list *list);

static void body(struct cuda *cg, const struct list *list) {
  put(cg, " {");
  cuda_line_end(cg);
  cg->depth++;
  block(cg, list);
  cg->depth--;
}

static void declaration(struct cuda *cg, const struct ir_stmt *stmt) {
  struct cuda_var *var = cuda_var(cg, stmt->var);
  if (!var->is_live) return;
  text_printf(&cg->line, "%s %s = ", cuda_type(stmt->var->type), declare(cg, stmt->var));
  cuda_value(cg, stmt->value, stmt->kind == IR_LET && var->is_in_offset, stmt->var->was_index);
  put(cg, ";");
  cuda_line_end(cg);
}

static void assignment(struct cuda *cg, const struct ir_stmt *stmt) {
  if (!cuda_var(cg, stmt->var)->is_live) return;
  text_printf(&cg->line, "%s = ", cuda_var(cg, stmt->var)->name);
  cuda_value(cg, stmt->value, false, stmt->var->was_index);
  put(cg, ";");
  cuda_line_end(cg);
}

static void store(struct cuda *cg, const struct ir_stmt *stmt) {
  const struct cuda_object *object = cuda_object(cg, stmt->mem);
  if (stmt->mem->space != SPACE_GLOBAL && !object->is_loaded) return; // an array that nothing reads is not declared
  const char *name = object ? object->name : stmt->mem->name;
  bool has_hint = object && cuda_has_hint(cg, stmt->mem);
  if (has_hint)
    text_printf(&cg->line, "%s(&%s[", cuda_hinted_store(cg, stmt->mem, cuda_memory_type(stmt->mem->type), type_bytes(stmt->mem->type)), name);
  else
    text_printf(&cg->line, "%s[", name);
  cuda_offset(cg, codegen_offset(cg->context->arena, cg->entry, stmt->mem,
                                 (struct ir_expr **)stmt->indices.at, stmt->indices.count, stmt->is_flat));
  put(cg, has_hint ? "], " : "] = ");
  cuda_expr(cg, stmt->value, PLACE_ANY, object && object->is_loaded);
  put(cg, has_hint ? ");" : ";");
  cuda_line_end(cg);
}

// The struct that a wide access moves: struct red_4_float { float v[4]; }, aligned to its size.
static const char *wide_type(struct cuda *cg, const struct ir_mem *mem, uint32_t count) {
  const char *element = cuda_memory_type(mem->type);
  char *name = arena_printf(cg->context->arena, "red_%u_%s", count, element);
  for (char *c = name; *c; c++)
    if (*c == ' ') *c = '_';
  const char *text = arena_printf(cg->context->arena, "struct __align__(%u) %s {\n  %s v[%u];\n};\n",
                                  count * type_bytes(mem->type), name, element, count);
  for (uint32_t i = 0; i < cg->wides.count; i++)
    if (strcmp(list_at(&cg->wides, char, i), text) == 0) return name;
  list_push(cg->context->arena, &cg->wides, (void *)text);
  return name;
}

static void wide_place(struct cuda *cg, const struct ir_stmt *stmt, const char *type, bool is_const) {
  const struct cuda_object *object = cuda_object(cg, stmt->mem);
  bool has_hint = object && cuda_has_hint(cg, stmt->mem);
  uint32_t bytes = (uint32_t)(stmt->results.count + stmt->inputs.count) * type_bytes(stmt->mem->type);
  if (has_hint)
    put(cg, is_const ? cuda_hinted_load(cg, stmt->mem, object->is_constant, type, bytes) : cuda_hinted_store(cg, stmt->mem, type, bytes));
  else
    put(cg, "*");
  text_printf(&cg->line, "%s(%s%s *)(%s + (", has_hint ? "(" : "", is_const ? "const " : "", type,
              object ? object->name : stmt->mem->name);
  cuda_offset(cg, codegen_offset(cg->context->arena, cg->entry, stmt->mem,
                                 (struct ir_expr **)stmt->indices.at, stmt->indices.count, stmt->is_flat));
  put(cg, "))");
}

// The place of element `i` of a wide access that is made one by one.
static void word_place(struct cuda *cg, const struct ir_stmt *stmt, uint32_t i) {
  const struct cuda_object *object = cuda_object(cg, stmt->mem);
  text_printf(&cg->line, "%s[", object ? object->name : stmt->mem->name);
  cuda_offset(cg, codegen_offset(cg->context->arena, cg->entry, stmt->mem, (struct ir_expr **)stmt->indices.at, stmt->indices.count, stmt->is_flat));
  if (i) text_printf(&cg->line, " + %u", i);
  put(cg, "]");
}

// Structs cannot be read and written as volatile ones in C++: words that are polled go one by one.
static void load_words(struct cuda *cg, const struct ir_stmt *stmt) {
  for (uint32_t i = 0; i < stmt->results.count; i++) {
    struct ir_var *result = stmt->results.at[i];
    if (!cuda_var(cg, result)->is_live) continue;
    text_printf(&cg->line, "%s %s = ", cuda_type(result->type), declare(cg, result));
    word_place(cg, stmt, i);
    put(cg, ";");
    cuda_line_end(cg);
  }
}

static void store_words(struct cuda *cg, const struct ir_stmt *stmt) {
  for (uint32_t i = 0; i < stmt->inputs.count; i++) {
    word_place(cg, stmt, i);
    put(cg, " = ");
    cuda_expr(cg, list_at(&stmt->inputs, struct ir_expr, i), PLACE_ANY, false);
    put(cg, ";");
    cuda_line_end(cg);
  }
}

static void load_wide(struct cuda *cg, const struct ir_stmt *stmt) {
  uint32_t live = 0;
  for (uint32_t i = 0; i < stmt->results.count; i++) live += cuda_var(cg, stmt->results.at[i])->is_live;
  if (!live) return;
  if (stmt->mem->is_polled) {
    load_words(cg, stmt);
    return;
  }
  const char *type = wide_type(cg, stmt->mem, stmt->results.count);
  const char *wide =
      cuda_name(cg, &cg->names, arena_printf(cg->context->arena, "%s_wide", stmt->mem->label), "wide");
  text_printf(&cg->line, "%s %s = ", type, wide);
  wide_place(cg, stmt, type, true);
  put(cg, cuda_has_hint(cg, stmt->mem) ? ");" : ";");
  cuda_line_end(cg);
  for (uint32_t i = 0; i < stmt->results.count; i++) {
    struct ir_var *result = stmt->results.at[i];
    if (!cuda_var(cg, result)->is_live) continue;
    bool is_bool = result->type == TYPE_BOOL;
    text_printf(&cg->line, "%s %s = %s.v[%u]%s;", cuda_type(result->type), declare(cg, result), wide, i,
                is_bool ? " != 0" : "");
    cuda_line_end(cg);
  }
}

static void store_wide(struct cuda *cg, const struct ir_stmt *stmt) {
  if (stmt->mem->is_polled) {
    store_words(cg, stmt);
    return;
  }
  const char *type = wide_type(cg, stmt->mem, stmt->inputs.count);
  wide_place(cg, stmt, type, false);
  bool has_hint = cuda_has_hint(cg, stmt->mem);
  text_printf(&cg->line, has_hint ? ", %s{{" : " = %s{{", type);
  for (uint32_t i = 0; i < stmt->inputs.count; i++) {
    const struct ir_expr *input = list_at(&stmt->inputs, struct ir_expr, i);
    if (i) put(cg, ", ");
    // C computes narrow integers in int, and braces take no int for them
    bool is_narrow = type_is_integer(input->type) && type_bits(input->type) < 32 && input->count;
    if (is_narrow) text_printf(&cg->line, "(%s)", cuda_type(input->type));
    cuda_expr(cg, input, is_narrow ? PLACE_UNARY : PLACE_ANY, true);
  }
  put(cg, has_hint ? "}});" : "}};");
  cuda_line_end(cg);
}

static void atomic(struct cuda *cg, const struct ir_stmt *stmt) {
  static const char *const names[] = {
      [ATOMIC_ADD] = "atomicAdd", [ATOMIC_MIN] = "atomicMin", [ATOMIC_MAX] = "atomicMax", [ATOMIC_AND] = "atomicAnd",
      [ATOMIC_OR] = "atomicOr",   [ATOMIC_XOR] = "atomicXor", [ATOMIC_INC] = "atomicInc",
  };
  const struct cuda_object *object = cuda_object(cg, stmt->mem);
  struct ir_var *result = stmt->results.count ? stmt->results.at[0] : NULL;
  if (result && cuda_var(cg, result)->is_live)
    text_printf(&cg->line, "%s %s = ", cuda_type(result->type), declare(cg, result));
  // signed 64-bit integers go by the unsigned ones, which CUDA has
  bool is_unsigned = stmt->mem->type == TYPE_I64 && stmt->atomic != ATOMIC_MIN && stmt->atomic != ATOMIC_MAX;
  text_printf(&cg->line, "%s(%s&%s[", names[stmt->atomic], is_unsigned ? "(unsigned long long *)" : "", object ? object->name : stmt->mem->name);
  cuda_offset(cg, codegen_offset(cg->context->arena, cg->entry, stmt->mem, (struct ir_expr **)stmt->indices.at,
                                 stmt->indices.count, stmt->is_flat));
  put(cg, "], ");
  if (is_unsigned) put(cg, "(unsigned long long)");
  cuda_expr(cg, stmt->value, is_unsigned ? PLACE_UNARY : PLACE_ANY, true);
  put(cg, ");");
  cuda_line_end(cg);
}

static void copy(struct cuda *cg, const struct ir_stmt *stmt) {
  const struct ir_expr *source = stmt->value;
  const struct cuda_object *to = cuda_object(cg, stmt->mem), *from = cuda_object(cg, source->mem);
  if (!to->is_loaded) return; // an array that nothing reads is not declared
  text_printf(&cg->line, "%s(&%s[", cuda_copy(cg, source->mem, stmt->count * type_bytes(stmt->mem->type)), to->name);
  cuda_offset(cg, codegen_offset(cg->context->arena, cg->entry, stmt->mem, (struct ir_expr **)stmt->indices.at, stmt->indices.count, stmt->is_flat));
  text_printf(&cg->line, "], &%s[", from->name);
  cuda_offset(cg, codegen_offset(cg->context->arena, cg->entry, source->mem, source->args, source->count, source->op == OP_LOAD_FLAT));
  put(cg, "]);");
  cuda_line_end(cg);
}

static void copy_order(struct cuda *cg, const struct ir_stmt *stmt) {
  const char *what = stmt->kind == IR_COPY_COMMIT ? "commit_group" : stmt->count ? arena_printf(cg->context->arena, "wait_group %u", stmt->count) : "wait_all";
  text_printf(&cg->line, "asm volatile(\"cp.async.%s;\" : : : \"memory\");", what);
  cuda_line_end(cg);
}

// Whether an expression may have another value in a later iteration.
static bool may_change(const struct ir_expr *e) {
  if ((e->op == OP_VAR && e->var->kind == VAR_MUTABLE) || e->op == OP_LOAD || e->op == OP_LOAD_FLAT)
    return true;
  for (uint32_t i = 0; i < e->count; i++)
    if (may_change(e->args[i])) return true;
  return false;
}

static uint32_t node_count(const struct ir_expr *e) {
  uint32_t count = 1;
  for (uint32_t i = 0; i < e->count; i++) count += node_count(e->args[i]);
  return count;
}

static void loop(struct cuda *cg, const struct ir_stmt *stmt) {
  const char *type = cuda_type(stmt->var->type), *end = NULL;
  if (may_change(stmt->hi) || node_count(stmt->hi) > 5) { // named, so that the loop's head stays short
    const char *label = arena_printf(cg->context->arena, "%s_end", stmt->var->label);
    end = cuda_name(cg, &cg->names, label, label);
    text_printf(&cg->line, "%s %s = ", type, end);
    cuda_bound(cg, stmt->hi);
    put(cg, ";");
    cuda_line_end(cg);
  }
  if (stmt->unroll) {
    put(cg, "#pragma unroll");
    if (stmt->unroll < UNROLL_VECTOR) text_printf(&cg->line, " %u", stmt->unroll);
    cuda_line_end(cg);
  }
  const char *name = declare(cg, stmt->var);
  text_printf(&cg->line, "for (%s %s = ", type, name);
  cuda_bound(cg, stmt->lo);
  text_printf(&cg->line, "; %s < ", name);
  if (end)
    put(cg, end);
  else
    cuda_bound(cg, stmt->hi);
  text_printf(&cg->line, "; %s++)", name);
  body(cg, &stmt->body);
  put(cg, "}");
  cuda_line_end(cg);
}

static void branch(struct cuda *cg, const struct ir_stmt *stmt) {
  put(cg, "if (");
  cuda_expr(cg, stmt->value, PLACE_ANY, false);
  put(cg, ")");
  body(cg, &stmt->body);
  put(cg, "}");
  if (stmt->otherwise.count) {
    put(cg, " else");
    body(cg, &stmt->otherwise);
    put(cg, "}");
  }
  cuda_line_end(cg);
}

static bool is_printed(struct cuda *cg, const struct ir_stmt *stmt) {
  bool is_assignment = stmt->kind == IR_LET || stmt->kind == IR_VAR || stmt->kind == IR_SET;
  return !is_assignment || cuda_var(cg, stmt->var)->is_live;
}

static void statement(struct cuda *cg, const struct ir_stmt *stmt) {
  switch (stmt->kind) {
  case IR_LET:
  case IR_VAR: declaration(cg, stmt); break;
  case IR_SET: assignment(cg, stmt); break;
  case IR_STORE: store(cg, stmt); break;
  case IR_LOAD_WIDE: load_wide(cg, stmt); break;
  case IR_STORE_WIDE: store_wide(cg, stmt); break;
  case IR_ATOMIC: atomic(cg, stmt); break;
  case IR_COPY: copy(cg, stmt); break;
  case IR_COPY_COMMIT:
  case IR_COPY_WAIT: copy_order(cg, stmt); break;
  case IR_FENCE:
    put(cg, "__threadfence();");
    cuda_line_end(cg);
    break;
  case IR_GRID_WAIT:
  case IR_GRID_READY:
    text_printf(&cg->line, "asm volatile(\"griddepcontrol.%s;\" : : : \"memory\");", stmt->kind == IR_GRID_WAIT ? "wait" : "launch_dependents");
    cuda_line_end(cg);
    break;
  case IR_FOR: loop(cg, stmt); break;
  case IR_IF: branch(cg, stmt); break;
  case IR_BARRIER:
    put(cg, "__syncthreads();");
    cuda_line_end(cg);
    break;
  case IR_SYNCWARP:
    put(cg, "__syncwarp(");
    cg->hex = true;
    cuda_expr(cg, stmt->value, PLACE_ANY, false);
    cg->hex = false;
    put(cg, ");");
    cuda_line_end(cg);
    break;
  case IR_ALLREDUCE: break; // not accepted
  }
}

static void block(struct cuda *cg, const struct list *list) {
  struct range outside = cg->here;
  for (uint32_t i = 0; i < list->count; i++) {
    const struct ir_stmt *stmt = list_at(list, struct ir_stmt, i);
    if (!is_printed(cg, stmt)) continue;
    show_source(cg, stmt->range.line ? stmt->range : outside);
    statement(cg, stmt);
  }
  cg->here = outside;
}

// --- Kernels -----------------------------------------------------------------------------------------------

static void parameter(struct cuda *cg, const struct codegen_argument *argument) {
  if (argument->kind != ARGUMENT_TENSOR) {
    text_printf(&cg->line, "%s %s", cuda_memory_type(argument->type), declare(cg, argument->var));
    return;
  }
  struct cuda_object *object = (struct cuda_object *)cuda_object(cg, argument->mem);
  object->name = cuda_name(cg, &cg->names, argument->mem->label, argument->mem->name);
  text_printf(&cg->line, "%s%s%s *%s%s", argument->is_written ? "" : "const ", argument->mem->is_polled ? "volatile " : "", cuda_memory_type(argument->type),
              argument->is_shared ? "" : "__restrict__ ", object->name);
}

// One line where it fits, else one parameter a line.
static void signature(struct cuda *cg, const struct list *arguments, const char *name) {
  const uint32_t *block_size = cg->entry->block;
  uint32_t threads = block_size[0] * block_size[1] * block_size[2];
  text_printf(&cg->line, "extern \"C\" __global__ void __launch_bounds__(%u, %u) %s(", threads, codegen_blocks(cg->entry), name);
  bool is_short = arguments->count <= 2;
  if (!is_short) {
    cuda_line_end(cg);
    cg->depth += 2;
  }
  for (uint32_t i = 0; i < arguments->count; i++) {
    parameter(cg, list_at(arguments, struct codegen_argument, i));
    bool is_last = i + 1 == arguments->count;
    put(cg, is_last ? ") {" : is_short ? ", " : ",");
    if (!is_short && !is_last) cuda_line_end(cg);
  }
  if (arguments->count == 0) put(cg, ") {");
  cuda_line_end(cg);
  if (!is_short) cg->depth -= 2;
}

static void array(struct cuda *cg, const struct ir_mem *mem) {
  struct cuda_object *object = (struct cuda_object *)cuda_object(cg, mem);
  // all declarations of dynamic shared memory in a file name one object: those of two types need two names
  const char *label = mem->is_dynamic ? arena_printf(cg->context->arena, "%s_%s", cg->entry->name, mem->label) : mem->label;
  object->name = cuda_name(cg, &cg->names, label, mem->name);
  if (!object->is_loaded) return;
  uint32_t alignment = codegen_alignment(mem);
  if (mem->is_dynamic) put(cg, "extern ");
  if (mem->space == SPACE_SHARED) put(cg, "__shared__ ");
  if (alignment > type_bytes(mem->type)) text_printf(&cg->line, "__align__(%u) ", alignment);
  text_printf(&cg->line, "%s %s[", cuda_memory_type(mem->type), object->name);
  if (!mem->is_dynamic) text_printf(&cg->line, "%llu", (unsigned long long)codegen_element_count(mem));
  put(cg, "];");
  if (mem->is_dynamic) text_printf(&cg->line, " // %llu elements", (unsigned long long)codegen_element_count(mem));
  cg->here = mem->range;
  cuda_line_end(cg);
  cg->here = cg->kernel->range;
}

void cuda_entry(struct cuda *cg, const struct ir_kernel *kernel, const struct ir_entry *entry) {
  struct arena *arena = cg->context->arena;
  cg->kernel = kernel;
  cg->entry = entry;
  cg->here = kernel->range;
  cg->shown_line = 0;
  cg->shown.count = 0;
  cg->objects.count = 0;
  map_init(&cg->names, arena);
  struct list arguments = {0};
  codegen_arguments(arena, kernel, entry, &arguments);
  for (uint32_t i = 0; i < arguments.count; i++) {
    const struct codegen_argument *argument = list_at(&arguments, struct codegen_argument, i);
    if (argument->kind == ARGUMENT_TENSOR) add_object(cg, argument->mem)->is_constant = !argument->is_written;
  }
  for (uint32_t i = 0; i < entry->memory.count; i++)
    if (!list_at(&entry->memory, struct ir_mem, i)->workspace)
      add_object(cg, list_at(&entry->memory, struct ir_mem, i));
  cuda_find_uses(cg, &entry->body);

  const char *name = cuda_name(cg, &cg->globals, entry->name, entry->name);
  cuda_line_end(cg);
  text_printf(&cg->line, "// kernel %s", kernel->label ? kernel->label : kernel->name);
  if (entry->schedule && *entry->schedule) text_printf(&cg->line, ", schedule %s", entry->schedule);
  if (entry->launch) text_printf(&cg->line, ", launch %u", entry->launch + 1);
  if (entry->is_general) put(cg, ", for what the entry before does not take");
  if (strcmp(name, entry->name) != 0) text_printf(&cg->line, "; its name in PTX is %s", entry->name);
  text_printf(&cg->line, ": blocks of %u x %u x %u threads", entry->block[0], entry->block[1],
              entry->block[2]);
  cuda_line_end(cg);
  signature(cg, &arguments, name);
  cg->depth++;
  for (uint32_t i = 0; i < entry->memory.count; i++)
    if (!list_at(&entry->memory, struct ir_mem, i)->workspace)
      array(cg, list_at(&entry->memory, struct ir_mem, i));
  block(cg, &entry->body);
  cg->depth--;
  put(cg, "}");
  cuda_line_end(cg);
}
