#include "compiler/arith.h"
#include "compiler/arith_scalar.h"

static bool is_number(enum type type) {
  return type_class_of(type) == CLASS_FLOAT || type_class_of(type) == CLASS_STORAGE;
}
static bool is_integer_or_bool(enum type type) {
  return type_is_integer(type) || type == TYPE_BOOL;
}

int64_t arith_wrap(enum type type, int64_t integer) {
  return type == TYPE_BOOL ? integer != 0 : scalar_wrap(integer, type_bits(type), type_is_signed(type));
}

double arith_round(enum type type, double number) {
  if (type == TYPE_F16) return (double)half_to_float(half_from_double(number));
  if (type == TYPE_BF16) return (double)bfloat_to_float(bfloat_from_double(number));
  return type == TYPE_F64 ? number : (double)(float)number;
}

struct value value_int(enum type type, int64_t integer) {
  return (struct value){.type = type, .integer = arith_wrap(type, integer)};
}
struct value value_float(enum type type, double number) {
  return (struct value){.type = type, .number = arith_round(type, number)};
}

bool arith_cast(enum type to, struct value a, struct value *out) {
  bool from_number = is_number(a.type);
  if (!from_number && !is_integer_or_bool(a.type)) return false;
  bool is_unsigned = type_class_of(a.type) == CLASS_UNSIGNED;
  switch (type_class_of(to)) {
  case CLASS_BOOL: *out = value_int(to, from_number ? a.number != 0 : a.integer != 0); return true;
  case CLASS_SIGNED:
  case CLASS_INDEX:
    *out = value_int(to, from_number ? scalar_to_signed(a.number, type_bits(to)) : a.integer);
    return true;
  case CLASS_UNSIGNED:
    *out = value_int(to, from_number ? (int64_t)scalar_to_unsigned(a.number, type_bits(to)) : a.integer);
    return true;
  case CLASS_FLOAT:
    if (from_number)
      *out = value_float(to, a.number);
    else if (to == TYPE_F32) // one rounding
      *out = value_float(to, is_unsigned ? (double)(float)(uint64_t)a.integer : (double)(float)a.integer);
    else
      *out = value_float(to, is_unsigned ? (double)(uint64_t)a.integer : (double)a.integer);
    return true;
  case CLASS_STORAGE: // an integer passes through f32, as every storage type does
    if (!from_number) a.number = is_unsigned ? (double)(float)(uint64_t)a.integer : (double)(float)a.integer;
    *out = value_float(to, a.number);
    return true;
  case CLASS_MOVED: return false;
  }
  return false;
}

// The bits of a value, zero-extended.
static uint64_t value_bits(struct value a) {
  uint64_t bits = 0;
  float single = (float)a.number;
  switch ((int)a.type) {
  case TYPE_F16: return half_from_double(a.number);
  case TYPE_BF16: return bfloat_from_double(a.number);
  case TYPE_F32: memcpy(&bits, &single, sizeof single); return bits;
  case TYPE_F64: memcpy(&bits, &a.number, sizeof bits); return bits;
  default: return (uint64_t)scalar_wrap(a.integer, type_bits(a.type), false);
  }
}

bool arith_bitcast(enum type to, struct value a, struct value *out) {
  if (type_bits(to) != type_bits(a.type) || (!is_number(a.type) && !type_is_integer(a.type))) return false;
  if (type_is_integer(to)) {
    *out = value_int(to, (int64_t)value_bits(is_number(a.type) ? a : value_int(a.type, a.integer)));
    return true;
  }
  if (!is_number(to)) return false;
  uint64_t bits = value_bits(a);
  struct value result = {.type = to};
  float single;
  if (to == TYPE_F16) {
    result.number = (double)half_to_float((uint16_t)bits);
  } else if (to == TYPE_BF16) {
    result.number = (double)bfloat_to_float((uint16_t)bits);
  } else if (to == TYPE_F32) {
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    result.number = (double)single;
  } else {
    memcpy(&result.number, &bits, sizeof bits);
  }
  if (value_bits(result) != bits) // a signalling NaN, which a conversion makes quiet
    return false;
  *out = result;
  return true;
}

static double negate(double a) {
  return -a;
}
static double reciprocal_root(double a) {
  return 1 / sqrt(a);
}

arith_function *arith_function_of(enum op op) {
  switch ((int)op) {
  case OP_NEG: return negate;
  case OP_ABS: return fabs;
  case OP_SQRT: return sqrt; // rounding twice is exact for a root
  case OP_RSQRT: return reciprocal_root;
  case OP_EXP: return exp;
  case OP_EXP2: return exp2;
  case OP_LOG: return log;
  case OP_LOG2: return log2;
  case OP_SIN: return sin;
  case OP_COS: return cos;
  case OP_TANH: return tanh;
  case OP_ERF: return erf;
  case OP_FLOOR: return floor;
  case OP_CEIL: return ceil;
  case OP_ROUND: return round;
  case OP_TRUNC: return trunc;
  default: return NULL;
  }
}

bool arith_unary(enum op op, enum type type, struct value a, struct value *out) {
  if (op == OP_CAST) return arith_cast(type, a, out);
  if (op == OP_BITCAST) return arith_bitcast(type, a, out);
  if (op == OP_ISNAN || op == OP_ISINF) {
    if (!is_number(a.type)) return false;
    *out = value_int(TYPE_BOOL, op == OP_ISNAN ? isnan(a.number) : isinf(a.number));
    return true;
  }
  if (a.type != type) return false;
  if (type_is_float(type)) {
    arith_function *function = arith_function_of(op);
    if (!function) return false;
    *out = value_float(type, function(a.number));
    return true;
  }
  if (type == TYPE_BOOL && op == OP_NOT) {
    *out = value_int(type, !a.integer);
    return true;
  }
  if (!type_is_integer(type)) return false;
  switch ((int)op) {
  case OP_NEG: *out = value_int(type, (int64_t)(0 - (uint64_t)a.integer)); return true;
  case OP_NOT: *out = value_int(type, ~a.integer); return true;
  case OP_ABS:
    *out = value_int(type,
                     type_is_signed(type) && a.integer < 0 ? (int64_t)(0 - (uint64_t)a.integer) : a.integer);
    return true;
  default: return false;
  }
}

bool arith_compare(enum op op, struct value a, struct value b, bool *out) {
  if (a.type != b.type) return false;
  bool less, equal, greater;
  if (is_number(a.type)) {
    less = a.number<b.number, equal = a.number == b.number, greater = a.number> b.number;
  } else if (is_integer_or_bool(a.type)) {
    bool is_unsigned = type_class_of(a.type) == CLASS_UNSIGNED;
    equal = a.integer == b.integer;
    less = is_unsigned ? (uint64_t)a.integer < (uint64_t)b.integer : a.integer < b.integer;
    greater = !less && !equal;
  } else {
    return false;
  }
  switch ((int)op) {
  case OP_EQ: *out = equal; return true;
  case OP_NE: *out = !equal; return true;
  case OP_LT: *out = less; return true;
  case OP_LE: *out = less || equal; return true;
  case OP_GT: *out = greater; return true;
  case OP_GE: *out = greater || equal; return true;
  default: return false;
  }
}

static bool f32_binary(enum op op, float a, float b, float *out) {
  switch ((int)op) {
  case OP_ADD: *out = a + b; return true;
  case OP_SUB: *out = a - b; return true;
  case OP_MUL: *out = a * b; return true;
  case OP_DIV: *out = a / b; return true;
  case OP_MIN: *out = scalar_min_f32(a, b); return true;
  case OP_MAX: *out = scalar_max_f32(a, b); return true;
  case OP_FMIN: *out = scalar_fmin_f32(a, b); return true;
  case OP_FMAX: *out = scalar_fmax_f32(a, b); return true;
  case OP_POW: *out = (float)pow((double)a, (double)b); return true;
  default: return false;
  }
}
static bool f64_binary(enum op op, double a, double b, double *out) {
  switch ((int)op) {
  case OP_ADD: *out = a + b; return true;
  case OP_SUB: *out = a - b; return true;
  case OP_MUL: *out = a * b; return true;
  case OP_DIV: *out = a / b; return true;
  case OP_MIN: *out = scalar_min_f64(a, b); return true;
  case OP_MAX: *out = scalar_max_f64(a, b); return true;
  case OP_FMIN: *out = scalar_fmin_f64(a, b); return true;
  case OP_FMAX: *out = scalar_fmax_f64(a, b); return true;
  case OP_POW: *out = pow(a, b); return true;
  default: return false;
  }
}

static bool integer_binary(enum op op, enum type type, int64_t a, int64_t b, int64_t *out) {
  bool is_signed = type_is_signed(type);
  uint32_t bits = type_bits(type), count = (uint32_t)b & (bits - 1);
  bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
  switch ((int)op) {
  case OP_ADD: *out = (int64_t)((uint64_t)a + (uint64_t)b); return true;
  case OP_SUB: *out = (int64_t)((uint64_t)a - (uint64_t)b); return true;
  case OP_MUL: *out = (int64_t)((uint64_t)a * (uint64_t)b); return true;
  case OP_DIV: *out = scalar_div(a, b, is_signed); return true;
  case OP_MOD: *out = scalar_mod(a, b, is_signed); return true;
  case OP_QUO:
  case OP_REM:
    if (b == 0 ||
        (is_signed && b == -1 && a == scalar_wrap((int64_t)(UINT64_C(1) << (bits - 1)), bits, true)))
      return false;
    *out = op == OP_QUO ? scalar_div(a, b, is_signed) : scalar_mod(a, b, is_signed);
    return true;
  case OP_MIN: *out = less ? a : b; return true;
  case OP_MAX: *out = less ? b : a; return true;
  case OP_AND: *out = a & b; return true;
  case OP_OR: *out = a | b; return true;
  case OP_XOR: *out = a ^ b; return true;
  case OP_SHL: *out = (int64_t)((uint64_t)a << count); return true;
  case OP_SHR: *out = is_signed ? a >> count : (int64_t)((uint64_t)a >> count); return true;
  default: return false;
  }
}

bool arith_binary(enum op op, enum type type, struct value a, struct value b, struct value *out) {
  bool truth;
  if (arith_compare(op, a, b, &truth)) {
    *out = value_int(TYPE_BOOL, truth);
    return true;
  }
  if (a.type != type || b.type != type) return false;
  if (type == TYPE_F32) {
    float number;
    if (!f32_binary(op, (float)a.number, (float)b.number, &number)) return false;
    *out = value_float(type, (double)number);
    return true;
  }
  if (type == TYPE_F64) {
    double number;
    if (!f64_binary(op, a.number, b.number, &number)) return false;
    *out = value_float(type, number);
    return true;
  }
  if (type == TYPE_BOOL ? op != OP_AND && op != OP_OR && op != OP_XOR : !type_is_integer(type)) return false;
  int64_t integer;
  if (!integer_binary(op, type, a.integer, b.integer, &integer)) return false;
  *out = value_int(type, integer);
  return true;
}

bool arith_fold(enum op op, enum type type, const struct value *args, uint32_t count, struct value *out) {
  if (count == 1) return arith_unary(op, type, args[0], out);
  if (count == 2) return arith_binary(op, type, args[0], args[1], out);
  if (count != 3) return false;
  if (op == OP_SELECT && args[0].type == TYPE_BOOL) {
    *out = args[0].integer ? args[1] : args[2];
    return true;
  }
  if (op != OP_FMA || !type_is_float(type) || args[0].type != type || args[1].type != type ||
      args[2].type != type)
    return false;
  double number = type == TYPE_F32
                      ? (double)fmaf((float)args[0].number, (float)args[1].number, (float)args[2].number)
                      : fma(args[0].number, args[1].number, args[2].number);
  *out = value_float(type, number);
  return true;
}
