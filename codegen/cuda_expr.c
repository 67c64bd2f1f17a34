// Expressions as C++ text: infix, with as few parentheses as its precedence needs, and with the language's
// meaning whatever flags the compiler gets. A product whose value may reach a sum is written __fmul_rn, which
// nothing fuses; signed sums and products that may overflow go through unsigned.
#include "codegen/cuda.h"
#include "codegen/program.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// Whether sums and products of indices may be printed as they are: not in values, on the way down from an
// offset, everywhere in a bound.
enum trust { TRUST_VALUE, TRUST_OFFSET, TRUST_BOUND };
static void arithmetic(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool exposed,
                       enum trust trust);

const char *cuda_helper(struct cuda *cg, enum cuda_helper helper) {
  static const struct {
    const char *name;
    enum cuda_helper needs;
  } helpers[CUDA_HELPER_COUNT] = {
#define H(name, needs, code) [CUDA_##name] = {#name, CUDA_##needs},
#include "codegen/cuda_helpers.def"
#undef H
  };
  cg->helpers[helper] = true;
  if (helpers[helper].needs != CUDA_HELPER_COUNT) cg->helpers[helpers[helper].needs] = true;
  char *name = arena_printf(cg->context->arena, "red_%s", helpers[helper].name);
  for (char *c = name; *c; c++) *c = (char)tolower((unsigned char)*c);
  return name;
}

static void put(struct cuda *cg, const char *text) {
  text_puts(&cg->line, text);
}

static void call(struct cuda *cg, const char *function, const struct ir_expr *e, enum trust trust) {
  text_printf(&cg->line, "%s(", function);
  for (uint32_t i = 0; i < e->count; i++) {
    if (i) put(cg, ", ");
    arithmetic(cg, e->args[i], PLACE_ANY, false, trust);
  }
  put(cg, ")");
}

// A constant alone takes the type of what it is assigned to.
static bool is_small_constant(const struct ir_expr *e) {
  return e->op == OP_CONST && e->type == TYPE_I64 && e->integer == (int32_t)e->integer &&
         e->integer != INT32_MIN;
}

// An operand of a sign whose other operand is `other`. A small constant beside a long long needs no suffix.
static void operand(struct cuda *cg, const struct ir_expr *e, const struct ir_expr *other,
                    enum cuda_place place, bool exposed, enum trust trust) {
  if (!is_small_constant(e) || other->op == OP_CONST)
    arithmetic(cg, e, place, exposed, trust);
  else
    text_printf(&cg->line, e->integer < 0 && place >= PLACE_UNARY ? "(%lld)" : "%lld", (long long)e->integer);
}

static void infix(struct cuda *cg, const struct ir_expr *e, const char *sign, enum cuda_place binding,
                  enum cuda_place left, enum cuda_place right, enum cuda_place place, bool exposed) {
  if (place > binding) put(cg, "(");
  operand(cg, e->args[0], e->args[1], left, exposed, TRUST_VALUE);
  text_printf(&cg->line, " %s ", sign);
  operand(cg, e->args[1], e->args[0], right, exposed, TRUST_VALUE);
  if (place > binding) put(cg, ")");
}

// --- Integers ----------------------------------------------------------------------------------------------

static bool is_narrow(enum type type) {
  return type_bits(type) < 32;
}
static bool is_negative_constant(const struct ir_expr *e) {
  return e->op == OP_CONST && type_is_signed(e->type) && e->integer < 0 && e->integer > INT32_MIN;
}

// A signed value in unsigned arithmetic of its width.
static void wrapped(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  bool is_sum = e->op == OP_ADD || e->op == OP_SUB;
  if (e->op == OP_CONST) {
    bool is_wide = e->type == TYPE_I64;
    uint64_t value = is_wide ? (uint64_t)e->integer : (uint32_t)e->integer;
    text_printf(&cg->line, is_wide ? "%lluull" : "%lluu", (unsigned long long)value);
  } else if ((is_sum || e->op == OP_MUL) && !cuda_is_plain(cg, e, false)) {
    enum cuda_place binding = is_sum ? PLACE_SUM : PLACE_PRODUCT;
    const char *sign = e->op == OP_ADD ? " + " : e->op == OP_SUB ? " - " : " * ";
    if (place > binding) put(cg, "(");
    wrapped(cg, e->args[0], binding);
    if (e->op == OP_ADD && is_negative_constant(e->args[1])) {
      text_printf(&cg->line, " - %llu%s", (unsigned long long)-e->args[1]->integer,
                  e->type == TYPE_I64 ? "ull" : "u");
    } else {
      put(cg, sign);
      wrapped(cg, e->args[1], binding + 1);
    }
    if (place > binding) put(cg, ")");
  } else if (e->op == OP_CAST && type_class_of(e->args[0]->type) == CLASS_UNSIGNED &&
             type_bits(e->args[0]->type) == type_bits(e->type)) {
    cuda_expr(cg, e->args[0], place, false);
  } else {
    if (place > PLACE_UNARY) put(cg, "(");
    put(cg, e->type == TYPE_I64 ? "(unsigned long long)" : "(unsigned)");
    cuda_expr(cg, e, PLACE_UNARY, false);
    if (place > PLACE_UNARY) put(cg, ")");
  }
}

static void cast_begin(struct cuda *cg, enum type type, enum cuda_place place) {
  text_printf(&cg->line, place > PLACE_UNARY ? "((%s)(" : "(%s)(", cuda_type(type));
}
static void cast_end(struct cuda *cg, enum cuda_place place) {
  put(cg, place > PLACE_UNARY ? "))" : ")");
}

// A sum, difference or product of one integer type.
static void integer_sum(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, enum trust trust) {
  bool is_product = e->op == OP_MUL, is_signed = type_is_signed(e->type);
  enum cuda_place binding = is_product ? PLACE_PRODUCT : PLACE_SUM;
  const char *sign = is_product ? " * " : e->op == OP_ADD ? " + " : " - ";
  if (is_narrow(e->type)) { // C computes in int, where only the product of two u16 does not fit
    cast_begin(cg, e->type, place);
    if (is_product && type_bits(e->type) == 16) put(cg, "(unsigned)");
    cuda_expr(cg, e->args[0], is_product ? PLACE_UNARY : PLACE_SUM, false);
    put(cg, sign);
    if (is_product && type_bits(e->type) == 16) put(cg, "(unsigned)");
    cuda_expr(cg, e->args[1], is_product ? PLACE_UNARY : PLACE_PRODUCT, false);
    cast_end(cg, place);
    return;
  }
  if (is_signed && !cuda_is_plain(cg, e, trust != TRUST_VALUE)) {
    cast_begin(cg, e->type, place);
    wrapped(cg, e, PLACE_ANY);
    cast_end(cg, place);
    return;
  }
  if (place > binding) put(cg, "(");
  operand(cg, e->args[0], e->args[1], binding, false, trust);
  if (e->op == OP_ADD && is_negative_constant(e->args[1])) {
    text_printf(&cg->line, " - %lld", (long long)-e->args[1]->integer);
  } else {
    put(cg, sign);
    operand(cg, e->args[1], e->args[0], binding + 1, false, trust);
  }
  if (place > binding) put(cg, ")");
}

static void negation(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  const struct ir_expr *a = e->args[0];
  cast_begin(cg, e->type, place);
  if (is_narrow(e->type)) {
    put(cg, "0 - ");
    cuda_expr(cg, a, PLACE_PRODUCT, false);
  } else {
    put(cg, type_bits(e->type) == 64 ? "0ull - " : "0u - ");
    if (type_is_signed(e->type))
      wrapped(cg, a, PLACE_PRODUCT);
    else
      cuda_expr(cg, a, PLACE_PRODUCT, false);
  }
  cast_end(cg, place);
}

// A shift's count modulo the width.
static void shift_count(struct cuda *cg, const struct ir_expr *count) {
  int64_t mask = type_bits(count->type) - 1;
  if (count->op == OP_CONST) {
    text_printf(&cg->line, "%lld", (long long)(count->integer & mask));
    return;
  }
  if (count->op == OP_AND && ir_const_is(count->args[1], mask)) {
    cuda_expr(cg, count, PLACE_UNARY, false);
    return;
  }
  put(cg, "(");
  cuda_expr(cg, count, PLACE_UNARY, false);
  text_printf(&cg->line, " & %lld)", (long long)mask);
}

static void shift(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  bool is_left = e->op == OP_SHL;
  bool needs_cast = is_left && (type_is_signed(e->type) || is_narrow(e->type));
  if (needs_cast)
    cast_begin(cg, e->type, place);
  else if (place > PLACE_SHIFT)
    put(cg, "(");
  if (needs_cast) put(cg, e->type == TYPE_I64 ? "(unsigned long long)" : "(unsigned)");
  cuda_expr(cg, e->args[0], PLACE_UNARY, false);
  put(cg, is_left ? " << " : " >> ");
  shift_count(cg, e->args[1]);
  if (needs_cast)
    cast_end(cg, place);
  else if (place > PLACE_SHIFT)
    put(cg, ")");
}

// A helper of 32 or 64 bits; narrower operands are exact in it and the result is cut back.
static void helper_call(struct cuda *cg, const struct ir_expr *e, enum cuda_helper of_i32,
                        enum cuda_place place, enum trust trust) {
  bool is_wide = type_bits(e->type) == 64, is_unsigned = !type_is_signed(e->type);
  bool needs_cast = is_narrow(e->type);
  if (needs_cast) text_printf(&cg->line, place > PLACE_UNARY ? "((%s)" : "(%s)", cuda_type(e->type));
  // the table's order: i32, i64, u32, u64
  call(cg, cuda_helper(cg, of_i32 + (is_wide ? 1 : 0) + (is_unsigned ? 2 : 0)), e,
       trust == TRUST_BOUND ? trust : TRUST_VALUE);
  if (needs_cast && place > PLACE_UNARY) put(cg, ")");
}

static void bitwise(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  if (e->type == TYPE_BOOL) {
    enum cuda_place binding = e->op == OP_AND ? PLACE_AND_ALSO : e->op == OP_OR ? PLACE_OR_ELSE : PLACE_EQUAL;
    enum cuda_place left =
        e->op != OP_XOR && e->args[0]->op == e->op ? binding : PLACE_EQUAL + (e->op == OP_XOR);
    infix(cg, e,
          e->op == OP_AND  ? "&&"
          : e->op == OP_OR ? "||"
                           : "!=",
          binding, left, PLACE_EQUAL + (e->op == OP_XOR), place, false);
    return;
  }
  enum cuda_place binding = e->op == OP_AND ? PLACE_AND : e->op == OP_OR ? PLACE_OR : PLACE_XOR;
  enum cuda_place left = e->args[0]->op == e->op ? binding : PLACE_UNARY;
  bool hex = cg->hex;
  cg->hex = true;
  infix(cg, e, e->op == OP_AND ? "&" : e->op == OP_OR ? "|" : "^", binding, left, PLACE_UNARY, place, false);
  cg->hex = hex;
}

static void complement(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  bool needs_cast = is_narrow(e->type) && e->type != TYPE_BOOL;
  if (place > PLACE_UNARY) put(cg, "(");
  if (needs_cast) text_printf(&cg->line, "(%s)", cuda_type(e->type));
  put(cg, e->type == TYPE_BOOL ? "!" : "~");
  cuda_expr(cg, e->args[0], PLACE_UNARY, false);
  if (place > PLACE_UNARY) put(cg, ")");
}

static void quotient(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, enum trust trust) {
  bool is_division = e->op == OP_DIV || e->op == OP_QUO;
  const struct ir_expr *a = e->args[0], *b = e->args[1];
  bool is_defined = ir_is_const(b) && b->integer != 0 && !(type_is_signed(b->type) && b->integer == -1);
  if ((e->op == OP_DIV || e->op == OP_MOD) && !is_defined) {
    helper_call(cg, e, is_division ? CUDA_DIV_I32 : CUDA_MOD_I32, place, trust);
    return;
  }
  enum trust inner = trust == TRUST_BOUND ? trust : TRUST_VALUE;
  if (place > PLACE_PRODUCT) put(cg, "(");
  operand(cg, a, b, PLACE_PRODUCT, false, inner);
  put(cg, is_division ? " / " : " % ");
  operand(cg, b, a, PLACE_UNARY, false, inner);
  if (place > PLACE_PRODUCT) put(cg, ")");
}

static void integer_op(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, enum trust trust) {
  enum trust inner = trust == TRUST_BOUND ? trust : TRUST_VALUE;
  switch ((int)e->op) {
  case OP_ADD:
  case OP_SUB:
  case OP_MUL: integer_sum(cg, e, place, trust); break;
  case OP_DIV:
  case OP_MOD:
  case OP_QUO:
  case OP_REM: quotient(cg, e, place, trust); break;
  case OP_NEG: negation(cg, e, place); break;
  case OP_ABS:
    if (type_is_signed(e->type))
      helper_call(cg, e, CUDA_ABS_I32, place, TRUST_VALUE);
    else
      cuda_expr(cg, e->args[0], place, false);
    break;
  case OP_MIN: call(cg, "min", e, inner); break;
  case OP_MAX: call(cg, "max", e, inner); break;
  case OP_AND:
  case OP_OR:
  case OP_XOR: bitwise(cg, e, place); break;
  case OP_NOT: complement(cg, e, place); break;
  case OP_SHL:
  case OP_SHR: shift(cg, e, place); break;
  default: break; // not accepted
  }
}

// --- Floats ------------------------------------------------------------------------------------------------

static const char *float_function(struct cuda *cg, enum op op, bool is_single) {
  switch ((int)op) {
  case OP_MIN: return cuda_helper(cg, is_single ? CUDA_MIN_F32 : CUDA_MIN_F64);
  case OP_MAX: return cuda_helper(cg, is_single ? CUDA_MAX_F32 : CUDA_MAX_F64);
  case OP_FMIN: return is_single ? "fminf" : "fmin";
  case OP_FMAX: return is_single ? "fmaxf" : "fmax";
  case OP_ABS: return is_single ? "fabsf" : "fabs";
  case OP_SQRT: return is_single ? "__fsqrt_rn" : "__dsqrt_rn";
  case OP_FLOOR: return is_single ? "floorf" : "floor";
  case OP_CEIL: return is_single ? "ceilf" : "ceil";
  case OP_ROUND: return is_single ? "roundf" : "round";
  default: return is_single ? "truncf" : "trunc";
  }
}

static void float_op(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool exposed) {
  bool is_single = e->type == TYPE_F32;
  switch ((int)e->op) {
  case OP_ADD: infix(cg, e, "+", PLACE_SUM, PLACE_SUM, PLACE_PRODUCT, place, true); break;
  case OP_SUB: infix(cg, e, "-", PLACE_SUM, PLACE_SUM, PLACE_PRODUCT, place, true); break;
  case OP_MUL:
    if (exposed)
      call(cg, is_single ? "__fmul_rn" : "__dmul_rn", e, TRUST_VALUE);
    else
      infix(cg, e, "*", PLACE_PRODUCT, PLACE_PRODUCT, PLACE_UNARY, place, false);
    break;
  case OP_DIV: // a division by a power of two is a product to a compiler, one by zero a mistake
    if (e->args[1]->op == OP_CONST && (exposed || e->args[1]->number == 0))
      call(cg, is_single ? "__fdiv_rn" : "__ddiv_rn", e, TRUST_VALUE);
    else
      infix(cg, e, "/", PLACE_PRODUCT, PLACE_PRODUCT, PLACE_UNARY, place, false);
    break;
  case OP_NEG:
    if (place > PLACE_UNARY) put(cg, "(");
    put(cg, "-");
    cuda_expr(cg, e->args[0], PLACE_PRIMARY, exposed);
    if (place > PLACE_UNARY) put(cg, ")");
    break;
  case OP_FMA:
    put(cg, is_single ? "fmaf(" : "fma(");
    for (uint32_t i = 0; i < 3; i++) {
      cuda_expr(cg, e->args[i], PLACE_ANY, i == 2);
      put(cg, i == 2 ? ")" : ", ");
    }
    break;
  case OP_RSQRT:
    if (place > PLACE_PRODUCT) put(cg, "(");
    put(cg, is_single ? "1.0f / " : "1.0 / ");
    call(cg, float_function(cg, OP_SQRT, is_single), e, TRUST_VALUE);
    if (place > PLACE_PRODUCT) put(cg, ")");
    break;
  default: call(cg, float_function(cg, e->op, is_single), e, TRUST_VALUE); break;
  }
}

static void predicate(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  bool is_single = e->args[0]->type == TYPE_F32;
  if (e->op == OP_ISNAN) {
    call(cg, cuda_helper(cg, is_single ? CUDA_ISNAN_F32 : CUDA_ISNAN_F64), e, TRUST_VALUE);
    return;
  }
  if (place > PLACE_EQUAL) put(cg, "(");
  call(cg, is_single ? "fabsf" : "fabs", e, TRUST_VALUE);
  put(cg, is_single ? " == __int_as_float(0x7f800000)" : " == __longlong_as_double(0x7ff0000000000000ll)");
  if (place > PLACE_EQUAL) put(cg, ")");
}

// --- The rest ----------------------------------------------------------------------------------------------

// A value that consists of coordinates and constants and lies below 2^31 means the same in unsigned
// arithmetic, so that it needs no conversion where it stands alone: its largest value and one, or 0 when it
// is none.
static uint64_t coordinate_bound(struct cuda *cg, const struct ir_expr *e) {
  uint64_t limit = UINT64_C(1) << 31, a, b;
  if (e->op == OP_BLOCK) return e->dimension ? 65536 : limit;
  if (e->op == OP_THREAD) return cg->entry->block[e->dimension] > 1 ? cg->entry->block[e->dimension] : 0;
  if (e->count != 2 || !ir_is_const(e->args[1]) || e->args[1]->integer <= 0 ||
      e->args[1]->integer >= INT32_MAX)
    return 0;
  a = coordinate_bound(cg, e->args[0]), b = (uint64_t)e->args[1]->integer;
  if (a == 0) return 0;
  switch ((int)e->op) {
  case OP_ADD: return a + b <= limit ? a + b : 0;
  case OP_MUL: return (a - 1) * b < limit ? (a - 1) * b + 1 : 0;
  case OP_QUO:
  case OP_DIV: return (a - 1) / b + 1;
  case OP_REM:
  case OP_MOD: return b < a ? b : a;
  default: return 0;
  }
}

static void bare_coordinate(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  if (e->count == 0) {
    text_printf(&cg->line, "%s.%c", e->op == OP_THREAD ? "threadIdx" : "blockIdx", "xyz"[e->dimension]);
    return;
  }
  enum cuda_place binding = e->op == OP_ADD ? PLACE_SUM : PLACE_PRODUCT;
  const char *sign = e->op == OP_ADD                      ? "+"
                     : e->op == OP_MUL                    ? "*"
                     : e->op == OP_QUO || e->op == OP_DIV ? "/"
                                                          : "%";
  if (place > binding) put(cg, "(");
  bare_coordinate(cg, e->args[0], binding);
  text_printf(&cg->line, " %s %lld", sign, (long long)e->args[1]->integer);
  if (place > binding) put(cg, ")");
}

static bool is_zero(const struct ir_expr *e) {
  return ir_const_is(e, 0);
}

static void compare(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  static const char *const signs[] = {
      [OP_EQ] = "==", [OP_NE] = "!=", [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="};
  const struct ir_expr *a = e->args[0], *b = e->args[1];
  if (type_class_of(a->type) ==
      CLASS_UNSIGNED) { // compilers warn of an unsigned number compared with zero for order
    bool is_true = (e->op == OP_GE && is_zero(b)) || (e->op == OP_LE && is_zero(a));
    bool is_false = (e->op == OP_LT && is_zero(b)) || (e->op == OP_GT && is_zero(a));
    if (is_true || is_false) {
      put(cg, is_true ? "true" : "false");
      return;
    }
  }
  bool is_equality = e->op == OP_EQ || e->op == OP_NE;
  if (coordinate_bound(cg, a) && ir_is_const(b) && b->integer >= 0 && b->integer <= INT32_MAX &&
      !(e->op == OP_GE && is_zero(b)) && !(e->op == OP_LT && is_zero(b))) {
    enum cuda_place binding = is_equality ? PLACE_EQUAL : PLACE_LESS;
    if (place > binding) put(cg, "(");
    bare_coordinate(cg, a, PLACE_SUM);
    text_printf(&cg->line, " %s %lld", signs[e->op], (long long)b->integer);
    if (place > binding) put(cg, ")");
    return;
  }
  bool outer = cg->in_comparison;
  cg->in_comparison = true;
  infix(cg, e, signs[e->op], is_equality ? PLACE_EQUAL : PLACE_LESS, PLACE_SUM, PLACE_SUM, place, false);
  cg->in_comparison = outer;
}

static void choice(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool exposed,
                   enum trust trust) {
  trust = trust == TRUST_BOUND ? trust : TRUST_VALUE;
  if (place > PLACE_CONDITION) put(cg, "(");
  bool hex = cg->hex;
  cg->hex = false;
  cuda_expr(cg, e->args[0], PLACE_OR_ELSE, false);
  cg->hex = hex;
  put(cg, " ? ");
  arithmetic(cg, e->args[1], PLACE_OR_ELSE, exposed, trust);
  put(cg, " : ");
  arithmetic(cg, e->args[2], PLACE_CONDITION, exposed, trust);
  if (place > PLACE_CONDITION) put(cg, ")");
}

static void coordinate(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  if (e->op == OP_THREAD && cg->entry->block[e->dimension] <= 1) {
    put(cg, e->type == TYPE_I64 ? "0ll" : "0");
    return;
  }
  text_printf(&cg->line, place > PLACE_UNARY ? "((%s)%s.%c)" : "(%s)%s.%c", cuda_type(e->type),
              e->op == OP_THREAD ? "threadIdx" : "blockIdx", "xyz"[e->dimension]);
}

static void shuffle(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  const char *function = e->op == OP_SHFL_DOWN  ? "__shfl_down_sync"
                         : e->op == OP_SHFL_XOR ? "__shfl_xor_sync"
                                                : "__shfl_sync";
  bool needs_cast = is_narrow(e->type);
  if (needs_cast) text_printf(&cg->line, place > PLACE_UNARY ? "((%s)" : "(%s)", cuda_type(e->type));
  text_printf(&cg->line, "%s(", function);
  bool hex = cg->hex;
  cg->hex = true;
  cuda_expr(cg, e->args[0], PLACE_ANY, false);
  cg->hex = hex;
  put(cg, needs_cast ? ", (int)" : ", ");
  cuda_expr(cg, e->args[1], needs_cast ? PLACE_UNARY : PLACE_ANY, false);
  put(cg, ", ");
  if (e->args[2]->op == OP_CONST)
    text_printf(&cg->line, "%llu", (unsigned long long)e->args[2]->integer);
  else
    cuda_expr(cg, e->args[2], PLACE_ANY, false);
  put(cg, ")");
  if (needs_cast && place > PLACE_UNARY) put(cg, ")");
}

static void redux(struct cuda *cg, const struct ir_expr *e) {
  static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
  bool is_bits = e->op >= OP_REDUX_AND && e->type == TYPE_I32; // those take and give unsigned numbers only
  text_printf(&cg->line, "%s__reduce_%s_sync(", is_bits ? "(int)" : "", names[e->op - OP_REDUX_ADD]);
  bool hex = cg->hex;
  cg->hex = true;
  cuda_expr(cg, e->args[0], PLACE_ANY, false);
  cg->hex = hex;
  put(cg, is_bits ? ", (unsigned)" : ", ");
  cuda_expr(cg, e->args[1], is_bits ? PLACE_UNARY : PLACE_ANY, false);
  put(cg, ")");
}

static void not_zero(struct cuda *cg, const char *name, enum cuda_place place) {
  text_printf(&cg->line, place > PLACE_EQUAL ? "(%s != 0)" : "%s != 0", name);
}

static void variable(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  struct ir_var *var = e->var;
  if (var->kind == VAR_SIZE && var->constant) {
    cuda_expr(cg, var->constant, place, false);
    return;
  }
  const char *name = cuda_var(cg, var)->name;
  if (!name) name = var->name;
  if (var->kind == VAR_SCALAR && var->type == TYPE_BOOL)
    not_zero(cg, name, place);
  else
    put(cg, name);
}

static void load(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  bool is_bool = e->type == TYPE_BOOL, needs_parentheses = is_bool && place > PLACE_EQUAL;
  const struct cuda_object *object = cuda_object(cg, e->mem);
  struct arena *arena = cg->context->arena;
  bool hex = cg->hex;
  cg->hex = false;
  if (object && cuda_has_hint(cg, e->mem)) {
    const char *function = cuda_hinted_load(cg, e->mem, object->is_constant, cuda_memory_type(e->mem->type), type_bytes(e->mem->type));
    text_printf(&cg->line, "%s%s(&%s[", needs_parentheses ? "(" : "", function, object->name);
    cuda_offset(cg, codegen_offset(arena, cg->entry, e->mem, e->args, e->count, e->op == OP_LOAD_FLAT));
    text_printf(&cg->line, "])%s%s", is_bool ? " != 0" : "", needs_parentheses ? ")" : "");
    cg->hex = hex;
    return;
  }
  text_printf(&cg->line, "%s%s[", needs_parentheses ? "(" : "", object ? object->name : e->mem->name);
  cuda_offset(cg, codegen_offset(arena, cg->entry, e->mem, e->args, e->count, e->op == OP_LOAD_FLAT));
  text_printf(&cg->line, "]%s%s", is_bool ? " != 0" : "", needs_parentheses ? ")" : "");
  cg->hex = hex;
}

static void await(struct cuda *cg, const struct ir_expr *e) {
  text_printf(&cg->line, "%s(", cuda_helper(cg, CUDA_AWAIT));
  cuda_expr(cg, e->args[0], PLACE_ANY, false);
  put(cg, ", &");
  load(cg, e->args[1], PLACE_UNARY);
  put(cg, ")");
}

static void arithmetic(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool exposed,
                       enum trust trust) {
  switch ((int)e->op) {
  case OP_CONST: cuda_constant(cg, e, place, cg->hex); return;
  case OP_VAR: variable(cg, e, place); return;
  case OP_LOAD:
  case OP_LOAD_FLAT: load(cg, e, place); return;
  case OP_THREAD:
  case OP_BLOCK: coordinate(cg, e, place); return;
  case OP_SELECT: choice(cg, e, place, exposed, trust); return;
  case OP_CAST:
    if (trust == TRUST_BOUND && type_is_integer(e->type) && type_is_integer(e->args[0]->type)) {
      bool needs_parentheses = place > PLACE_UNARY;
      text_printf(&cg->line, needs_parentheses ? "((%s)" : "(%s)", cuda_type(e->type));
      arithmetic(cg, e->args[0], PLACE_UNARY, false, trust);
      if (needs_parentheses) put(cg, ")");
      return;
    }
    cuda_convert(cg, e, place);
    return;
  case OP_BITCAST: cuda_bitcast(cg, e, place); return;
  case OP_AWAIT: await(cg, e); return;
  case OP_ISNAN:
  case OP_ISINF: predicate(cg, e, place); return;
  case OP_SHFL_DOWN:
  case OP_SHFL_XOR:
  case OP_SHFL_IDX: shuffle(cg, e, place); return;
  case OP_REDUX_ADD:
  case OP_REDUX_MIN:
  case OP_REDUX_MAX:
  case OP_REDUX_AND:
  case OP_REDUX_OR:
  case OP_REDUX_XOR: redux(cg, e); return;
  default: break;
  }
  if (op_table[e->op].rule == RULE_COMPARE)
    compare(cg, e, place);
  else if (type_is_float(e->type))
    float_op(cg, e, place, exposed);
  else if (e->type == TYPE_BOOL && e->op == OP_NOT)
    complement(cg, e, place);
  else
    integer_op(cg, e, place, trust);
}

void cuda_expr(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool exposed) {
  arithmetic(cg, e, place, exposed, TRUST_VALUE);
}

// A constant or coordinate that stands alone.
static bool alone(struct cuda *cg, const struct ir_expr *e) {
  if (is_small_constant(e))
    text_printf(&cg->line, "%lld", (long long)e->integer);
  else if (coordinate_bound(cg, e))
    bare_coordinate(cg, e, PLACE_ANY);
  else
    return false;
  return true;
}

void cuda_offset(struct cuda *cg, const struct ir_expr *e) {
  if (!alone(cg, e)) arithmetic(cg, e, PLACE_ANY, false, TRUST_OFFSET);
}

void cuda_bound(struct cuda *cg, const struct ir_expr *e) {
  if (is_small_constant(e))
    text_printf(&cg->line, "%lld", (long long)e->integer);
  else
    arithmetic(cg, e, PLACE_ANY, false, TRUST_BOUND);
}

void cuda_value(struct cuda *cg, const struct ir_expr *e, bool in_offset, bool trusted) {
  if (!alone(cg, e))
    arithmetic(cg, e, PLACE_ANY, true, trusted ? TRUST_BOUND : in_offset ? TRUST_OFFSET : TRUST_VALUE);
}
