// A plan as the comment block that plan_parse reads.
#include "runtime/plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct output {
  char *data;
  size_t length, capacity;
  bool failed;
};

// Room for so many bytes and a zero behind them.
static bool reserve(struct output *out, size_t bytes) {
  if (out->failed || out->capacity - out->length > bytes) return !out->failed;
  size_t capacity = (out->capacity + bytes) * 2 + 4096;
  char *larger = realloc(out->data, capacity);
  out->failed = !larger;
  if (!larger) return false;
  out->data = larger;
  out->capacity = capacity;
  return true;
}

static void put_text(struct output *out, const char *text) {
  size_t length = strlen(text);
  if (!reserve(out, length)) return;
  memcpy(out->data + out->length, text, length + 1);
  out->length += length;
}

static void put(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct output *out, const char *format, ...) {
  enum { USUAL = 64 };
  va_list arguments, again;
  if (!reserve(out, USUAL)) return;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(out->data + out->length, out->capacity - out->length, format, arguments);
  if (length > 0 && (size_t)length >= out->capacity - out->length)
    length = reserve(out, (size_t)length) ? vsnprintf(out->data + out->length, out->capacity - out->length, format, again) : 0;
  if (length > 0) out->length += (size_t)length;
  va_end(again);
  va_end(arguments);
}

// A name as it is, anything else in quotes.
static void put_name(struct output *out, const char *name) {
  bool is_plain = isalpha((unsigned char)name[0]) || name[0] == '_';
  for (const char *c = name; *c; c++) is_plain = is_plain && (isalnum((unsigned char)*c) || *c == '_');
  if (is_plain) {
    put_text(out, " ");
    put_text(out, name);
    return;
  }
  put_text(out, " \"");
  for (const char *c = name; *c; c++) {
    unsigned char byte = (unsigned char)*c;
    if (byte == '"' || byte == '\\')
      put(out, "\\%c", byte);
    else if (byte < 0x20 || byte >= 0x7f)
      put(out, "\\x%02x", byte);
    else
      put_text(out, (const char[]){(char)byte, 0});
  }
  put_text(out, "\"");
}

static void put_expr(struct output *out, const struct plan_expr *expr) {
  put_text(out, " [");
  for (uint32_t i = 0; i < expr->count; i++) {
    const struct plan_code *code = &expr->codes[i];
    if (i) put_text(out, " ");
    put_text(out, plan_op_spelling(code->op));
    switch (code->op) {
    case PLAN_OP_CONST:
    case PLAN_OP_SIZE:
    case PLAN_OP_SCALAR:
    case PLAN_OP_ADDRESS:
    case PLAN_OP_WRAP_SIGNED:
    case PLAN_OP_WRAP_UNSIGNED: put(out, "%" PRId64, code->operand); break;
    case PLAN_OP_DIM:
    case PLAN_OP_STRIDE: put(out, "%" PRId64 ":%" PRIu32, code->operand, code->dimension); break;
    case PLAN_OP_SMS:
    case PLAN_OP_ARCH:
    case PLAN_OP_SHARED:
    case PLAN_OP_ADD:
    case PLAN_OP_SUB:
    case PLAN_OP_MUL:
    case PLAN_OP_DIV:
    case PLAN_OP_MOD:
    case PLAN_OP_MIN:
    case PLAN_OP_MAX:
    case PLAN_OP_NEG:
    case PLAN_OP_ABS:
    case PLAN_OP_AND:
    case PLAN_OP_OR:
    case PLAN_OP_XOR:
    case PLAN_OP_NOT:
    case PLAN_OP_SHL:
    case PLAN_OP_SHR:
    case PLAN_OP_EQ:
    case PLAN_OP_NE:
    case PLAN_OP_LT:
    case PLAN_OP_LE:
    case PLAN_OP_GT:
    case PLAN_OP_GE:
    case PLAN_OP_SELECT:
    case PLAN_OP_COUNT: break;
    }
  }
  put_text(out, "]");
}

static void begin(struct output *out, const char *keyword) {
  put(out, "// red.plan %s", keyword);
}
static void end(struct output *out) {
  put_text(out, "\n");
}

static void put_requirement(struct output *out, const char *keyword,
                            const struct plan_requirement *requirement) {
  begin(out, keyword);
  put_expr(out, &requirement->condition);
  put_name(out, requirement->message);
  end(out);
}

static void put_tensor(struct output *out, const struct plan_tensor *tensor) {
  begin(out, "tensor");
  put_name(out, tensor->name);
  put(out, " %s %s %s", plan_type_name(tensor->type), tensor->is_output ? "output" : "input",
      tensor->is_strided ? "strided" : "dense");
  for (uint32_t d = 0; d < tensor->rank; d++) put_expr(out, &tensor->dims[d]);
  if (tensor->strides) {
    put(out, " strides");
    for (uint32_t d = 0; d < tensor->rank; d++) put_expr(out, &tensor->strides[d]);
  }
  end(out);
}

static void put_launch(struct output *out, const struct plan_launch *launch) {
  begin(out, "launch");
  put_name(out, launch->function);
  put(out, " grid");
  for (int d = 0; d < 3; d++) put_expr(out, &launch->grid[d]);
  put(out, " block %" PRIu32 " %" PRIu32 " %" PRIu32 " shared", launch->block[0], launch->block[1],
      launch->block[2]);
  put_expr(out, &launch->shared);
  if (launch->is_programmatic) put(out, " programmatic");
  end(out);
  for (uint32_t i = 0; i < launch->argument_count; i++) {
    const struct plan_argument *argument = &launch->arguments[i];
    begin(out, "argument");
    switch (argument->kind) {
    case PLAN_ARGUMENT_TENSOR: put(out, " tensor %" PRIu32, argument->index); break;
    case PLAN_ARGUMENT_SCALAR: put(out, " scalar %" PRIu32, argument->index); break;
    case PLAN_ARGUMENT_INTEGER:
      put(out, " integer %" PRIu32, argument->bytes);
      put_expr(out, &argument->expr);
      break;
    case PLAN_ARGUMENT_WORKSPACE:
      put(out, " workspace");
      put_expr(out, &argument->expr);
      break;
    }
    end(out);
  }
}

static void put_kernel(struct output *out, const struct plan_kernel *kernel) {
  begin(out, "kernel");
  put_name(out, kernel->name);
  end(out);
  for (uint32_t i = 0; i < kernel->size_count; i++) {
    const struct plan_size *size = &kernel->sizes[i];
    begin(out, "size");
    put_name(out, size->name);
    if (size->is_constant) put(out, " %" PRId64, size->constant);
    if (size->inferred.count)
      put_expr(out, &size->inferred);
    else if (!size->is_constant)
      put(out, " given");
    end(out);
  }
  for (uint32_t i = 0; i < kernel->scalar_count; i++) {
    begin(out, "scalar");
    put_name(out, kernel->scalars[i].name);
    put(out, " %s", plan_type_name(kernel->scalars[i].type));
    end(out);
  }
  for (uint32_t i = 0; i < kernel->tensor_count; i++) put_tensor(out, &kernel->tensors[i]);
  for (uint32_t i = 0; i < kernel->requirement_count; i++)
    put_requirement(out, "require", &kernel->requirements[i]);
  for (uint32_t i = 0; i < kernel->entry_count; i++) {
    const struct plan_entry *entry = &kernel->entries[i];
    begin(out, "entry");
    put_name(out, entry->name);
    put(out, " schedule");
    put_name(out, entry->schedule);
    end(out);
    if (entry->when.count) {
      begin(out, "when");
      put_expr(out, &entry->when);
      end(out);
    }
    for (uint32_t a = 0; a < entry->assumption_count; a++)
      put_requirement(out, "assume", &entry->assumptions[a]);
    if (entry->workspace.count) {
      begin(out, "workspace");
      put_expr(out, &entry->workspace);
      end(out);
    }
    if (entry->zeroed.count) {
      begin(out, "zeroed");
      put_expr(out, &entry->zeroed);
      end(out);
    }
    for (uint32_t l = 0; l < entry->launch_count; l++) put_launch(out, &entry->launches[l]);
  }
  begin(out, "end");
  end(out);
}

char *plan_print(const struct plan *plan) {
  struct output out = {0};
  put(&out, "// red.plan version %d\n", PLAN_VERSION);
  for (uint32_t i = 0; i < plan->kernel_count; i++) put_kernel(&out, &plan->kernels[i]);
  if (out.failed) {
    free(out.data);
    return NULL;
  }
  return out.data;
}
