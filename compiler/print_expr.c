// Expressions, names and places of IR text, and the spellings that printer and reader share.
#include "compiler/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ir_bind_names[] = {
    [BIND_SERIAL] = "serial",     [BIND_BLOCK_X] = "block.x",   [BIND_BLOCK_Y] = "block.y",
    [BIND_BLOCK_Z] = "block.z",   [BIND_THREAD_X] = "thread.x", [BIND_THREAD_Y] = "thread.y",
    [BIND_THREAD_Z] = "thread.z", [BIND_VECTOR] = "vector",
};
const char *const ir_form_names[] = {[FORM_AUTO] = "auto", [FORM_SHUFFLE] = "shuffle", [FORM_TREE] = "tree"};
const char *const ir_stmt_names[] = {
    [IR_LET] = "let",
    [IR_VAR] = "var",
    [IR_SET] = "set",
    [IR_STORE] = "store",
    [IR_FOR] = "for",
    [IR_IF] = "if",
    [IR_ALLREDUCE] = "allreduce",
    [IR_BARRIER] = "barrier",
    [IR_SYNCWARP] = "syncwarp",
    [IR_LOAD_WIDE] = "load_wide",
    [IR_STORE_WIDE] = "store_wide",
    [IR_ATOMIC] = "atomic",
    [IR_FENCE] = "fence",
    [IR_GRID_WAIT] = "grid_wait",
    [IR_GRID_READY] = "grid_ready",
    [IR_COPY] = "copy_async",
    [IR_COPY_COMMIT] = "copy_commit",
    [IR_COPY_WAIT] = "copy_wait",
};
const char *const ir_atomic_names[] = {
    [ATOMIC_ADD] = "add", [ATOMIC_MIN] = "min", [ATOMIC_MAX] = "max", [ATOMIC_AND] = "and",
    [ATOMIC_OR] = "or",   [ATOMIC_XOR] = "xor", [ATOMIC_INC] = "inc",
};
const char *const ir_hint_names[] = {
    [CACHE_NORMAL] = "normal",           [CACHE_EVICT_FIRST] = "evict_first", [CACHE_EVICT_LAST] = "evict_last",
    [CACHE_NO_ALLOCATE] = "no_allocate", [CACHE_STREAMING] = "streaming",
};
const char *const ir_combine_names[] = {
    [COMBINE_AUTO] = "auto",
    [COMBINE_LAST_BLOCK] = "last_block",
    [COMBINE_FLAG] = "flag",
    [COMBINE_SECOND_KERNEL] = "second_kernel",
    [COMBINE_ATOMIC] = "atomic",
};

const char *const ir_directive_names[] = {
    [DIRECTIVE_SPLIT_BY] = "split_by",   [DIRECTIVE_SPLIT_INTO] = "split_into",
    [DIRECTIVE_FUSE] = "fuse",           [DIRECTIVE_REORDER] = "reorder",
    [DIRECTIVE_BIND] = "bind",           [DIRECTIVE_UNROLL] = "unroll",
    [DIRECTIVE_VECTORIZE] = "vectorize", [DIRECTIVE_ALLREDUCE] = "allreduce",
    [DIRECTIVE_JOIN] = "join",           [DIRECTIVE_REGISTERS] = "registers",
    [DIRECTIVE_COMBINE] = "combine",     [DIRECTIVE_CACHE] = "cache",
    [DIRECTIVE_BLOCKS] = "blocks",
    [DIRECTIVE_SHARED] = "shared",
};

enum type ir_inferred_type(enum op op, struct ir_expr *const *args, uint32_t count,
                           const struct ir_mem *mem) {
  switch (op_table[op].rule) {
  case RULE_SAME: return count > 0 ? args[0]->type : TYPE_INDEX;
  case RULE_SELECT:
  case RULE_SHUFFLE:
  case RULE_REDUX: return count > 1 ? args[1]->type : TYPE_INDEX;
  case RULE_COMPARE:
  case RULE_PREDICATE: return TYPE_BOOL;
  case RULE_MEMORY: return mem ? mem->type : TYPE_INDEX;
  case RULE_FACT: return TYPE_I64;
  case RULE_AWAIT: return TYPE_U64;
  case RULE_SPECIAL:
  case RULE_NONE:
  case RULE_CONVERT: return TYPE_INDEX;
  }
  return TYPE_INDEX;
}

// ---- Names, strings, ranges

static bool is_plain_name(const char *name) {
  static const char *const reserved[] = {"true", "false", "inf", "nan"};
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (strcmp(name, reserved[i]) == 0) return false;
  for (const char *c = name; *c; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    if (!letter && (c == name || *c < '0' || *c > '9')) return false;
  }
  return *name != 0;
}

void print_quoted(struct printer *p, const char *string, char quote) {
  text_append(p->out, &quote, 1);
  for (const char *c = string; *c; c++) {
    unsigned char byte = (unsigned char)*c;
    if (*c == quote || *c == '\\')
      text_printf(p->out, "\\%c", *c);
    else if (*c == '\n')
      text_puts(p->out, "\\n");
    else if (byte < ' ' || byte == 0x7f)
      text_printf(p->out, "\\x%02x", byte);
    else
      text_append(p->out, c, 1);
  }
  text_append(p->out, &quote, 1);
}

void print_name(struct printer *p, const char *name) {
  if (!name) name = "";
  if (is_plain_name(name))
    text_puts(p->out, name);
  else
    print_quoted(p, name, '`');
}

// ` "label"` where it is not the name itself.
void print_label(struct printer *p, const char *name, const char *label) {
  if (!label || (name && strcmp(name, label) == 0)) return;
  text_puts(p->out, " ");
  print_quoted(p, label, '"');
}

static uint32_t file_number(struct printer *p, uint32_t file) {
  for (uint32_t i = 0; i < p->files.count; i++)
    if ((uintptr_t)p->files.at[i] == file) return i;
  list_push(p->module->arena, &p->files, (void *)(uintptr_t)file);
  return p->files.count - 1;
}

// ` @line:column-line:column`, or nothing where there is no place.
void print_range(struct printer *p, struct range range) {
  if (!range.line) return;
  uint32_t file = file_number(p, range.file);
  text_puts(p->out, " @");
  if (file) text_printf(p->out, "%u/", file);
  text_printf(p->out, "%u:%u-%u:%u", range.line, range.column, range.end_line, range.end_column);
}

// ---- Expressions

// The shortest decimal that reads back as this value of this type; without regard to the locale's decimal
// point.
static bool print_decimal(struct printer *p, double value, bool is_f32) {
  char spelled[64], digits[32];
  int precision = 0;
  for (;; precision++) {
    if (precision > 17) return false;
    snprintf(spelled, sizeof spelled, "%.*e", precision, value);
    if (is_f32 ? (double)strtof(spelled, NULL) == value : strtod(spelled, NULL) == value) break;
  }
  int count = 0, exponent = 0;
  for (const char *c = spelled; *c; c++) {
    if (*c >= '0' && *c <= '9' && count < 31) digits[count++] = *c;
    if (*c == 'e') {
      exponent = atoi(c + 1);
      break;
    }
  }
  if (signbit(value)) text_puts(p->out, "-");
  if (exponent < -5 || exponent > 15) {
    text_append(p->out, digits, 1);
    if (count > 1) {
      text_puts(p->out, ".");
      text_append(p->out, digits + 1, (size_t)count - 1);
    }
    text_printf(p->out, "e%d", exponent);
    return true;
  }
  if (exponent < 0) text_puts(p->out, "0.");
  for (int i = exponent + 1; i < 0; i++) text_puts(p->out, "0");
  for (int i = 0; i < count || i <= exponent; i++) {
    if (i > 0 && i == exponent + 1) text_puts(p->out, ".");
    text_append(p->out, i < count ? digits + i : "0", 1);
  }
  if (count <= exponent + 1) text_puts(p->out, ".0");
  return true;
}

static void print_number(struct printer *p, double value, enum type type) {
  uint64_t bits, quiet = UINT64_C(0x7ff8000000000000);
  memcpy(&bits, &value, sizeof bits);
  if (isinf(value))
    text_puts(p->out, value > 0 ? "inf" : "-inf");
  else if (isnan(value) && bits == quiet)
    text_puts(p->out, "nan");
  else if (isnan(value) || !print_decimal(p, value, type == TYPE_F32))
    text_printf(p->out, "bits(0x%016" PRIx64 ")", bits);
  text_printf(p->out, ":%s", type_name(type));
}

static void print_constant(struct printer *p, const struct ir_expr *e) {
  if (type_is_float(e->type))
    print_number(p, e->number, e->type);
  else if (e->type == TYPE_BOOL && (uint64_t)e->integer <= 1)
    text_puts(p->out, e->integer ? "true" : "false");
  else if (e->type == TYPE_U64)
    text_printf(p->out, "%" PRIu64 ":u64", (uint64_t)e->integer);
  else
    text_printf(p->out, "%" PRId64 ":%s", e->integer, type_name(e->type));
}

static void print_variable(struct printer *p, const struct ir_expr *e) {
  if (p->in_directive && e->var->kind == VAR_AXIS) {
    text_puts(p->out, e->type == TYPE_INDEX ? "extent(" : "extent.");
    if (e->type != TYPE_INDEX) text_printf(p->out, "%s(", type_name(e->type));
    print_name(p, e->var->name);
    text_puts(p->out, ")");
    return;
  }
  print_name(p, e->var->name);
  if (e->type != e->var->type) text_printf(p->out, ":%s", type_name(e->type));
}

static void print_special(struct printer *p, const struct ir_expr *e) {
  text_printf(p->out, "%s.", op_table[e->op].spelling);
  if (e->dimension < 3)
    text_append(p->out, &"xyz"[e->dimension], 1);
  else
    text_printf(p->out, "%u", e->dimension);
  if (e->type != TYPE_INDEX) text_printf(p->out, ":%s", type_name(e->type));
}

void print_expr(struct printer *p, const struct ir_expr *e) {
  if (!e) {
    text_puts(p->out, "?");
    return;
  }
  if (e->op == OP_CONST) {
    print_constant(p, e);
    return;
  }
  if (e->op == OP_VAR) {
    print_variable(p, e);
    return;
  }
  const struct op_info *info = &op_table[e->op];
  if (info->rule == RULE_SPECIAL) {
    print_special(p, e);
    return;
  }
  bool has_mem = ir_op_has_mem(e->op);
  text_puts(p->out, info->spelling);
  if (info->rule == RULE_CONVERT ||
      e->type != ir_inferred_type(e->op, e->args, e->count, has_mem ? e->mem : NULL))
    text_printf(p->out, ".%s", type_name(e->type));
  const char *separator = "(";
  if (has_mem) {
    text_puts(p->out, separator);
    print_name(p, e->mem ? e->mem->name : NULL);
    separator = ", ";
  }
  if (ir_op_has_dimension(e->op)) {
    text_printf(p->out, "%s%u", separator, e->dimension);
    separator = ", ";
  }
  for (uint32_t i = 0; i < e->count; i++) {
    text_puts(p->out, separator);
    print_expr(p, e->args[i]);
    separator = ", ";
  }
  text_puts(p->out, separator[0] == '(' ? "()" : ")");
}

void ir_print_expr(const struct ir_expr *e, struct text *out) {
  struct printer p = {.out = out};
  print_expr(&p, e);
}

void print_exprs(struct printer *p, const struct list *exprs, const char *brackets) {
  text_append(p->out, brackets, 1);
  for (uint32_t i = 0; i < exprs->count; i++) {
    if (i) text_puts(p->out, ", ");
    print_expr(p, list_at(exprs, struct ir_expr, i));
  }
  text_append(p->out, brackets + 1, 1);
}

const char *ir_stmt_title(const struct ir_stmt *stmt, struct arena *arena) {
  const char *name = stmt->mem ? stmt->mem->name : stmt->var ? stmt->var->name : NULL;
  const char *kind = (uint32_t)stmt->kind < IR_STMT_KINDS ? ir_stmt_names[stmt->kind] : "statement";
  return name ? arena_printf(arena, "%s '%s'", kind, name) : kind;
}
