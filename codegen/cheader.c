// Kernels as a C header. For kernel rowsum(A: f32[n, m]) -> (B: f32[n]) it holds
//
//   the PTX as an array, and a red_image of it
//   rowsum_kernel(device, &kernel)             the handle, for all of red.h
//   rowsum_launch(device, stream, n, m, A, B)  a launch with types and sizes spelled out
//   rowsum_prepare(device, stream, n, m, A, B) all that the first launch does, but the launch
//
// The functions build the tensors and call the runtime, which evaluates the plan that stands in the PTX.
#include "codegen/cheader.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { BYTES_A_LINE = 24 };

struct writer {
  struct diag *diag;
  struct arena *arena;
  const struct plan_kernel *kernel;
  struct text *out;
  struct map taken;   // names of the function at hand
  const char **sizes; // C names
  const char **scalars, **tensors;
  bool *size_is_used;
  bool has_arithmetic; // an expression calls a helper
};

// --- Names

static bool is_reserved(const char *name) {
  static const char *const words[] = {
#define R(name) #name,
#include "codegen/cuda_reserved.def"
#undef R
      "device", "stream", "size_t", "ptrdiff_t", "intptr_t", "uintptr_t",
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

// A name for C that is the source's own where it can be.
static const char *take_name(struct writer *w, const char *name) {
  if (strncmp(name, "red_", 4) == 0 || strncmp(name, "RED_", 4) == 0) name = arena_printf(w->arena, "v_%s", name);
  while (is_reserved(name) || map_get(&w->taken, name)) name = arena_printf(w->arena, "%s_", name);
  map_set(&w->taken, name, w);
  return name;
}

// What the kernel's functions begin with: its name, but none of red.h's, as red_launch would be.
static const char *prefix_of(const struct writer *w) {
  const char *name = w->kernel->name;
  return strcmp(name, "red") == 0 || strncmp(name, "red_", 4) == 0 ? arena_printf(w->arena, "v_%s", name) : name;
}

// "row-sum.h" as "row_sum".
static const char *stem_of(struct arena *arena, const char *name) {
  const char *slash = strrchr(name, '/');
  if (slash) name = slash + 1;
  size_t length = strcspn(name, ".");
  char *stem =
      arena_printf(arena, "%s%.*s", isdigit((unsigned char)*name) || !length ? "k" : "", (int)length, name);
  for (char *c = stem; *c; c++)
    if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127) *c = '_';
  return stem;
}

// --- Types

// Of elements; halves and bytes without a C type are their bits, complex numbers are pairs.
static const char *element_type(enum plan_type type) {
  switch (type) {
  case PLAN_BOOL:
  case PLAN_U8:
  case PLAN_F8E4M3:
  case PLAN_F8E5M2: return "uint8_t";
  case PLAN_I8: return "int8_t";
  case PLAN_I16: return "int16_t";
  case PLAN_I32: return "int32_t";
  case PLAN_I64: return "int64_t";
  case PLAN_U16:
  case PLAN_F16:
  case PLAN_BF16: return "uint16_t";
  case PLAN_U32: return "uint32_t";
  case PLAN_U64: return "uint64_t";
  case PLAN_F32:
  case PLAN_C64: return "float";
  case PLAN_F64:
  case PLAN_C128: return "double";
  case PLAN_TYPE_COUNT: break;
  }
  return "void";
}

// Of a scalar; check refuses complex ones.
static const char *scalar_type(enum plan_type type) {
  switch (type) {
  case PLAN_BOOL: return "int";
  case PLAN_F16:
  case PLAN_BF16:
  case PLAN_F8E4M3:
  case PLAN_F8E5M2: return "float";
  case PLAN_C64:
  case PLAN_C128:
  case PLAN_TYPE_COUNT:
  case PLAN_I8:
  case PLAN_I16:
  case PLAN_I32:
  case PLAN_I64:
  case PLAN_U8:
  case PLAN_U16:
  case PLAN_U32:
  case PLAN_U64:
  case PLAN_F32:
  case PLAN_F64: break;
  }
  return element_type(type);
}

static bool is_float_scalar(enum plan_type type) {
  return plan_type_is_float(type) || type == PLAN_F8E4M3 || type == PLAN_F8E5M2;
}

static const char *type_constant(struct arena *arena, enum plan_type type) {
  char *name = arena_printf(arena, "RED_%s", plan_type_name(type));
  for (char *c = name; *c; c++) *c = (char)toupper((unsigned char)*c);
  return name;
}

// --- Expressions over sizes

static const char *binary_spelling(enum plan_op op) {
  switch ((int)op) {
  case PLAN_OP_ADD: return "+";
  case PLAN_OP_SUB: return "-";
  case PLAN_OP_MUL: return "*";
  case PLAN_OP_DIV: return "/";
  case PLAN_OP_MOD: return "%";
  case PLAN_OP_AND: return "&";
  case PLAN_OP_OR: return "|";
  case PLAN_OP_XOR: return "^";
  case PLAN_OP_EQ: return "==";
  case PLAN_OP_NE: return "!=";
  case PLAN_OP_LT: return "<";
  case PLAN_OP_LE: return "<=";
  case PLAN_OP_GT: return ">";
  case PLAN_OP_GE: return ">=";
  default: return NULL;
  }
}

static const char *literal(struct writer *w, int64_t value) {
  if (value == INT64_MIN) return "INT64_MIN";
  if (value > INT32_MAX || value < -INT32_MAX) return arena_printf(w->arena, "INT64_C(%" PRId64 ")", value);
  return arena_printf(w->arena, value < 0 ? "(%" PRId64 ")" : "%" PRId64, value);
}

// What saturates or may divide by zero is a call of a helper.
static const char *call(struct writer *w, enum plan_op op, const char *const *operands, uint32_t count,
                        bool is_comment) {
  static const char *const checked[] = {"add", "sub", "mul", "div", "mod", "min", "max", "neg", "abs", "shl"};
  const char *name = plan_op_spelling(op), *infix = binary_spelling(op), *text = "";
  bool is_checked = false;
  for (size_t i = 0; i < sizeof checked / sizeof *checked; i++) is_checked |= strcmp(checked[i], name) == 0;
  if (infix && (is_comment || !is_checked))
    return arena_printf(w->arena, "(%s %s %s)", operands[0], infix, operands[1]);
  if (op == PLAN_OP_SELECT)
    return arena_printf(w->arena, "(%s ? %s : %s)", operands[0], operands[1], operands[2]);
  if (op == PLAN_OP_NOT) return arena_printf(w->arena, "(int64_t)!%s", operands[0]);
  if (op == PLAN_OP_SHR) return arena_printf(w->arena, "(%s >> (%s & 63))", operands[0], operands[1]);
  for (uint32_t i = 0; i < count; i++)
    text = arena_printf(w->arena, "%s%s%s", text, i ? ", " : "", operands[i]);
  w->has_arithmetic |= !is_comment;
  return arena_printf(w->arena, "%s%s(%s)", is_comment ? "" : "red_ahead_", name, text);
}

// "(n + (r * 2))" as "n + (r * 2)".
static const char *without_parentheses(struct writer *w, const char *text) {
  size_t length = strlen(text), depth = 0;
  for (size_t i = 0; i < length; i++) {
    depth += text[i] == '(';
    depth -= text[i] == ')';
    if (depth == 0 && i + 1 < length) return text;
  }
  return text[0] == '(' ? arena_strndup(w->arena, text + 1, length - 2) : text;
}

// The expression as C, or, for a comment, as a person writes it. NULL where it needs more than sizes.
static const char *translate(struct writer *w, const struct plan_expr *expr, bool is_comment) {
  const char *stack[PLAN_MAX_DEPTH + 1];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < expr->count; i++) {
    const struct plan_code *code = &expr->codes[i];
    uint32_t operands = plan_op_operands(code->op);
    switch ((int)code->op) {
    case PLAN_OP_CONST: stack[depth++] = literal(w, code->operand); break;
    case PLAN_OP_SIZE: {
      const struct plan_size *size = &w->kernel->sizes[code->operand];
      if (!is_comment) w->size_is_used[code->operand] = true;
      stack[depth++] = size->is_constant ? literal(w, size->constant)
                       : is_comment      ? size->name
                                         : w->sizes[code->operand];
      break;
    }
    case PLAN_OP_SCALAR:
    case PLAN_OP_DIM:
    case PLAN_OP_STRIDE:
    case PLAN_OP_ADDRESS:
    case PLAN_OP_SMS:
    case PLAN_OP_ARCH:
    case PLAN_OP_SHARED:
    case PLAN_OP_WRAP_SIGNED:
    case PLAN_OP_WRAP_UNSIGNED: return NULL;
    default:
      depth -= operands;
      stack[depth] = call(w, code->op, stack + depth, operands, is_comment);
      depth++;
    }
  }
  const char *text = depth == 1 ? stack[0] : NULL;
  return text && is_comment ? without_parentheses(w, text) : text;
}

static const char *dimension(struct writer *w, const struct plan_tensor *tensor, const struct plan_expr *expr,
                             bool is_comment) {
  const char *text = translate(w, expr, is_comment);
  if (text) return text;
  if (!is_comment)
    diag_error(w->diag, ERROR_BACKEND, (struct range){0},
               "a header cannot give '%s' of kernel '%s' its shape: it is no expression of sizes",
               tensor->name, w->kernel->name);
  return "?";
}

// --- The functions of a kernel

static void name_parameters(struct writer *w) {
  const struct plan_kernel *kernel = w->kernel;
  map_init(&w->taken, w->arena);
  w->sizes = arena_alloc(w->arena, (kernel->size_count + 1) * sizeof *w->sizes);
  w->scalars = arena_alloc(w->arena, (kernel->scalar_count + 1) * sizeof *w->scalars);
  w->tensors = arena_alloc(w->arena, (kernel->tensor_count + 1) * sizeof *w->tensors);
  w->size_is_used = arena_alloc(w->arena, kernel->size_count + 1);
  for (uint32_t i = 0; i < kernel->tensor_count; i++) w->tensors[i] = take_name(w, kernel->tensors[i].name);
  for (uint32_t i = 0; i < kernel->scalar_count; i++) w->scalars[i] = take_name(w, kernel->scalars[i].name);
  for (uint32_t i = 0; i < kernel->size_count; i++) w->sizes[i] = take_name(w, kernel->sizes[i].name);
}

static bool is_given(const struct plan_size *size) {
  return !size->is_constant && !size->inferred.count;
}

// "A: f32[n, 11], s: f32) -> (B: f32[n]".
static void write_signature(struct writer *w) {
  const struct plan_kernel *kernel = w->kernel;
  bool was_output = false, is_first = true;
  text_printf(w->out, "// %s(", kernel->name);
  for (uint32_t i = 0; i < kernel->tensor_count; i++) {
    const struct plan_tensor *tensor = &kernel->tensors[i];
    if (tensor->is_output && !was_output) {
      for (uint32_t s = 0; s < kernel->scalar_count; s++, is_first = false)
        text_printf(w->out, "%s%s: %s", is_first ? "" : ", ", kernel->scalars[s].name,
                    plan_type_name(kernel->scalars[s].type));
      for (uint32_t s = 0; s < kernel->size_count; s++)
        if (is_given(&kernel->sizes[s])) {
          text_printf(w->out, "%s%s: size", is_first ? "" : ", ", kernel->sizes[s].name);
          is_first = false;
        }
      text_puts(w->out, ") -> (");
      was_output = is_first = true;
    }
    text_printf(w->out, "%s%s: %s", is_first ? "" : ", ", tensor->name, plan_type_name(tensor->type));
    for (uint32_t d = 0; d < tensor->rank; d++)
      text_printf(w->out, "%s%s%s", d ? ", " : "[", dimension(w, tensor, &tensor->dims[d], true),
                  d + 1 == tensor->rank ? "]" : "");
    if (tensor->is_strided) text_puts(w->out, " strided");
    is_first = false;
  }
  text_puts(w->out, ")\n");
}

// ", int64_t n, const float *A, float *B" as declared, or ", n, A, B" as passed on.
static void write_parameters(struct writer *w, bool is_declaration) {
  const struct plan_kernel *kernel = w->kernel;
  for (uint32_t i = 0; i < kernel->size_count; i++)
    if (is_given(&kernel->sizes[i]) || w->size_is_used[i])
      if (!kernel->sizes[i].is_constant)
        text_printf(w->out, ", %s%s", is_declaration ? "int64_t " : "", w->sizes[i]);
  for (uint32_t i = 0; i < kernel->scalar_count; i++)
    text_printf(w->out, ", %s%s%s", is_declaration ? scalar_type(kernel->scalars[i].type) : "",
                is_declaration ? " " : "", w->scalars[i]);
  for (uint32_t i = 0; i < kernel->tensor_count; i++) {
    const struct plan_tensor *tensor = &kernel->tensors[i];
    if (!is_declaration)
      text_printf(w->out, ", %s", w->tensors[i]);
    else
      text_printf(w->out, ", %s%s *%s", tensor->is_output ? "" : "const ", element_type(tensor->type),
                  w->tensors[i]);
  }
}

// "int64_t red_shape_0[] = {n, 11};"
static void write_array(struct writer *w, const char *name, uint32_t number, const struct plan_tensor *tensor,
                        const struct plan_expr *exprs) {
  text_printf(w->out, "  const int64_t red_%s_%u[] = {", name, number);
  for (uint32_t d = 0; d < tensor->rank; d++)
    text_printf(w->out, "%s%s", d ? ", " : "", dimension(w, tensor, &exprs[d], false));
  text_puts(w->out, tensor->rank ? "};\n" : "0};\n");
}

static void write_body(struct writer *w) {
  const struct plan_kernel *kernel = w->kernel;
  uint32_t count = kernel->tensor_count + kernel->scalar_count, at = 0;
  for (uint32_t i = 0; i < kernel->size_count; i++) count += is_given(&kernel->sizes[i]);
  text_printf(w->out,
              "  const red_kernel *red_handle = NULL;\n  red_tensor red_tensors[%u];\n  red_argument "
              "red_arguments[%u];\n"
              "  red_error red_status = %s_kernel(device, &red_handle);\n",
              kernel->tensor_count, count, prefix_of(w));
  for (uint32_t i = 0; i < kernel->tensor_count; i++) {
    const struct plan_tensor *tensor = &kernel->tensors[i];
    write_array(w, "shape", i, tensor, tensor->dims);
    if (tensor->is_strided) write_array(w, "strides", i, tensor, tensor->strides);
  }
  text_puts(w->out, "  if (red_status) return red_status;\n");
  for (uint32_t i = 0; i < kernel->tensor_count; i++, at++) {
    const struct plan_tensor *tensor = &kernel->tensors[i];
    text_printf(w->out, "  red_tensors[%u] = red_dense(%s%s, %s, %u, red_shape_%u);\n", i,
                tensor->is_output ? "" : "(void *)", w->tensors[i], type_constant(w->arena, tensor->type),
                tensor->rank, i);
    if (tensor->is_strided) text_printf(w->out, "  red_tensors[%u].strides = red_strides_%u;\n", i, i);
    text_printf(w->out, "  red_arguments[%u] = red_of_tensor(&red_tensors[%u]);\n", at, i);
  }
  for (uint32_t i = 0; i < kernel->scalar_count; i++, at++) {
    enum plan_type type = kernel->scalars[i].type;
    const char *cast = type == PLAN_U64 ? "(int64_t)" : "";
    text_printf(w->out, "  red_arguments[%u] = %s(%s%s);\n", at,
                is_float_scalar(type) ? "red_float" : "red_int", cast, w->scalars[i]);
  }
  for (uint32_t i = 0; i < kernel->size_count; i++)
    if (is_given(&kernel->sizes[i]))
      text_printf(w->out, "  red_arguments[%u] = red_size(%s);\n", at++, w->sizes[i]);
  text_printf(w->out, "  return red_call(red_handle, stream, red_arguments, %u);\n", count);
}

// The functions of one kernel, behind its comment.
static void write_kernel(struct writer *w, const char *stem, uint32_t index) {
  const char *name = prefix_of(w);
  struct text body = {0}, *out = w->out;
  w->out = &body; // first, since it says which sizes are used
  write_body(w);
  w->out = out;
  text_puts(out, "\n");
  write_signature(w);
  text_printf(out,
              "static inline red_error %s_kernel(red_device *device, const red_kernel **red_handle) {\n"
              "  return red_image_kernel(device, &red_image_of_%s, %u, red_handle);\n}\n",
              name, stem, index);
  text_printf(out,
              "static inline red_error red_call_%s(red_error (*red_call)(const red_kernel *, red_stream, "
              "const red_argument *, size_t),\n"
              "    red_device *device, red_stream stream",
              name);
  write_parameters(w, true);
  text_puts(out, ") {\n");
  text_append(out, body.data, body.length);
  text_puts(out, "}\n");
  static const char *const calls[] = {"launch", "prepare"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    text_printf(out, "static inline red_error %s_%s(red_device *device, red_stream stream", name, calls[i]);
    write_parameters(w, true);
    text_printf(out, ") {\n  return red_call_%s(red_%s, device, stream", name, calls[i]);
    write_parameters(w, false);
    text_puts(out, ");\n}\n");
  }
  text_free(&body);
}

// --- The header

// Integer arithmetic that saturates, as the plan's.
static const char ARITHMETIC[] = //
    "\n#ifndef RED_AHEAD_ARITHMETIC\n#define RED_AHEAD_ARITHMETIC\n"
    "static inline int64_t red_ahead_add(int64_t a, int64_t b) {\n"
    "  return a > 0 && b > INT64_MAX - a ? INT64_MAX : a < 0 && b < INT64_MIN - a ? INT64_MIN : a + b;\n}\n"
    "static inline int64_t red_ahead_neg(int64_t a) { return a == INT64_MIN ? INT64_MAX : -a; }\n"
    "static inline int64_t red_ahead_sub(int64_t a, int64_t b) {\n"
    "  return b == INT64_MIN ? red_ahead_add(red_ahead_add(a, INT64_MAX), 1) : red_ahead_add(a, -b);\n}\n"
    "static inline int64_t red_ahead_mul(int64_t a, int64_t b) {\n"
    "  if (a > 0 ? b > INT64_MAX / a || b < INT64_MIN / a : a < -1 && (b > INT64_MIN / a || b < INT64_MAX / "
    "a))\n"
    "    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;\n"
    "  return a == -1 ? red_ahead_neg(b) : a * b;\n}\n"
    "static inline int64_t red_ahead_div(int64_t a, int64_t b) { return b == 0 ? -1 : b == -1 ? "
    "red_ahead_neg(a) : a / b; }\n"
    "static inline int64_t red_ahead_mod(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }\n"
    "static inline int64_t red_ahead_min(int64_t a, int64_t b) { return a < b ? a : b; }\n"
    "static inline int64_t red_ahead_max(int64_t a, int64_t b) { return a > b ? a : b; }\n"
    "static inline int64_t red_ahead_abs(int64_t a) { return a < 0 ? red_ahead_neg(a) : a; }\n"
    "static inline int64_t red_ahead_shl(int64_t a, int64_t b) {\n"
    "  for (b &= 63; b > 0; b--) a = red_ahead_add(a, a);\n"
    "  return a;\n}\n#endif\n";

// Numbers, since a text may have 4095 characters at most in C99.
static void write_bytes(const struct text *bytes, struct text *out) {
  for (size_t i = 0; i < bytes->length; i++) {
    unsigned char byte = (unsigned char)bytes->data[i];
    text_printf(out, byte < 128 ? "%s%u," : "%s'\\x%x',", i % BYTES_A_LINE ? "" : "\n  ", byte);
  }
  text_puts(out, "0};\n");
}

static void write_head(const char *name, const char *guard, struct text *out) {
  text_printf(out,
              "// %s, written by redc. A program that includes it links libred or, without a compiler in it, "
              "libred-rt.\n"
              "// Pointers are of device memory; f16, bf16 and f8 are their bits, complex numbers pairs. A "
              "stream of NULL is the default stream.\n"
              "#ifndef %s\n#define %s\n\n#ifdef __cplusplus\n#ifndef __STDC_LIMIT_MACROS\n#define "
              "__STDC_LIMIT_MACROS\n#endif\n#endif\n"
              "#include <red.h>\n",
              name, guard, guard);
}

bool codegen_cheader(struct diag *diag, const struct plan *plan, const struct text *ptx, const char *name,
                     struct text *out) {
  struct arena *arena = diag->arena;
  uint32_t errors = diag->error_count;
  const char *stem = stem_of(arena, name), *slash = strrchr(name, '/');
  char *guard = arena_printf(arena, "RED_AHEAD_%s_H", stem);
  struct text functions = {0};
  bool has_arithmetic = false;
  for (char *c = guard; *c; c++) *c = (char)toupper((unsigned char)*c);
  for (uint32_t i = 0; i < plan->kernel_count; i++) {
    struct writer w = {.diag = diag, .arena = arena, .kernel = &plan->kernels[i], .out = &functions};
    name_parameters(&w);
    write_kernel(&w, stem, i);
    has_arithmetic |= w.has_arithmetic;
  }
  write_head(slash ? slash + 1 : name, guard, out);
  if (has_arithmetic) text_puts(out, ARITHMETIC);
  text_printf(out, "\nstatic const char red_ptx_of_%s[] = {", stem);
  write_bytes(ptx, out);
  text_printf(out, "static const char *const red_kernels_of_%s[] = {", stem);
  for (uint32_t i = 0; i < plan->kernel_count; i++)
    text_printf(out, "%s\"%s\"", i ? ", " : "", plan->kernels[i].name);
  text_printf(out,
              "};\nstatic const red_image red_image_of_%s = {\n"
              "    \"%s\", red_ptx_of_%s, sizeof red_ptx_of_%s - 1, red_kernels_of_%s, %u};\n"
              "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
              stem, stem, stem, stem, stem, plan->kernel_count);
  text_append(out, functions.data, functions.length);
  text_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  text_free(&functions);
  return diag->error_count == errors;
}
