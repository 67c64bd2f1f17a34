// Expressions of a plan as text: "n, m + 2".
#include "runtime/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A part of the text and how tight its last operator binds; 9: it needs no parentheses.
struct piece {
  char *text;
  int binding;
};

static const struct {
  enum plan_op op;
  const char *spelling;
  int binding;
} operators[] = {
    {PLAN_OP_EQ, "==", 1}, {PLAN_OP_NE, "!=", 1},  {PLAN_OP_LT, "<", 1},   {PLAN_OP_LE, "<=", 1}, {PLAN_OP_GT, ">", 1}, {PLAN_OP_GE, ">=", 1},
    {PLAN_OP_OR, "|", 2},  {PLAN_OP_XOR, "^", 3},  {PLAN_OP_AND, "&", 4},  {PLAN_OP_SHL, "<<", 5}, {PLAN_OP_SHR, ">>", 5}, {PLAN_OP_ADD, "+", 6},
    {PLAN_OP_SUB, "-", 6}, {PLAN_OP_MUL, "*", 7}, {PLAN_OP_DIV, "/", 7},  {PLAN_OP_MOD, "%", 7},
};

static struct piece leaf(const struct plan_kernel *kernel, const struct plan_code *code) {
  struct piece piece = {NULL, 9};
  int length = -1;
  switch ((int)code->op) {
  case PLAN_OP_CONST: length = asprintf(&piece.text, "%" PRId64, code->operand); break;
  case PLAN_OP_SIZE: length = asprintf(&piece.text, "%s", kernel->sizes[code->operand].name); break;
  case PLAN_OP_SCALAR: length = asprintf(&piece.text, "%s", kernel->scalars[code->operand].name); break;
  case PLAN_OP_DIM:
  case PLAN_OP_STRIDE:
    length = asprintf(&piece.text, "%s(%s, %" PRIu32 ")", code->op == PLAN_OP_DIM ? "extent" : "stride",
                      kernel->tensors[code->operand].name, code->dimension);
    break;
  case PLAN_OP_ADDRESS: length = asprintf(&piece.text, "address(%s)", kernel->tensors[code->operand].name); break;
  default: length = asprintf(&piece.text, "%s", plan_op_spelling(code->op)); break;
  }
  if (length < 0) piece.text = NULL;
  return piece;
}

static struct piece infix(const struct piece *a, const struct piece *b, const char *spelling, int binding) {
  struct piece piece = {NULL, binding};
  bool left = a->binding < binding, right = b->binding <= binding;
  if (asprintf(&piece.text, "%s%s%s %s %s%s%s", left ? "(" : "", a->text, left ? ")" : "", spelling, right ? "(" : "", b->text,
               right ? ")" : "") < 0)
    piece.text = NULL;
  return piece;
}

static struct piece call(const struct plan_code *code, const struct piece *operands, uint32_t count) {
  struct piece piece = {NULL, 9};
  int length;
  if (count == 1)
    length = asprintf(&piece.text, "%s%.0" PRId64 "(%s)", plan_op_spelling(code->op), code->operand, operands[0].text);
  else if (count == 2)
    length = asprintf(&piece.text, "%s(%s, %s)", plan_op_spelling(code->op), operands[0].text, operands[1].text);
  else
    length = asprintf(&piece.text, "%s(%s, %s, %s)", plan_op_spelling(code->op), operands[0].text, operands[1].text, operands[2].text);
  if (length < 0) piece.text = NULL;
  return piece;
}

static struct piece combine(const struct plan_code *code, const struct piece *operands, uint32_t count) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (operators[i].op == code->op) return infix(&operands[0], &operands[1], operators[i].spelling, operators[i].binding);
  return call(code, operands, count);
}

const char *describe_expr(struct plan *memory, const struct plan_kernel *kernel, const struct plan_expr *expr) {
  struct piece stack[PLAN_MAX_DEPTH];
  uint32_t top = 0;
  bool ok = true;
  for (uint32_t i = 0; i < expr->count && ok; i++) {
    const struct plan_code *code = &expr->codes[i];
    uint32_t operands = plan_op_operands(code->op);
    struct piece made = operands ? combine(code, &stack[top - operands], operands) : leaf(kernel, code);
    for (uint32_t o = 0; o < operands; o++) free(stack[--top].text);
    stack[top++] = made;
    ok = made.text != NULL;
  }
  const char *text = ok ? plan_strdup(memory, top ? stack[0].text : "", top ? strlen(stack[0].text) : 0) : NULL;
  while (top) free(stack[--top].text);
  return text;
}
