// Inputs for every_op.h's kernel and what the language says of each result.
#ifndef RED_TESTS_UNIT_EVERY_VALUES_H
#define RED_TESTS_UNIT_EVERY_VALUES_H

#include "compiler/arith_scalar.h"
#include "tests/unit/every_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct every_values {
  uint32_t count;                       // elements of each input
  unsigned char *inputs[3][TYPE_COUNT]; // X, Y, Z
  unsigned char *outputs[TYPE_COUNT];   // count * EVERY_WIDTH elements
  uint64_t random;
};

static inline uint64_t every_random(struct every_values *values) {
  values->random ^= values->random << 13;
  values->random ^= values->random >> 7;
  values->random ^= values->random << 17;
  return values->random;
}

// Zeros, ones, infinities, NaN, denormals, ties of conversions and the ends of integer ranges, as bits of
// f32.
static const uint32_t every_floats[] = {
    0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
    1,          0x80000001, 0x007fffff, 0x00800000, 0x3effffff, 0x3f000000, 0xbf000000,
    0x3fc00000, 0xc0200000, 0x4f000000, 0x4f800000, 0xcf000000, 0x5f000000, 0x5f800000,
    0x7f7fffff, 0xff7fffff, 0x4b000001, 0x42fe0000, 0x43000000, 0xc3010000, 0x477fe000,
    0x3f808000, 0x3f818000, 0x3f808001, 0x7f7f8000, 0x33000000, 0x33000001};
static const int64_t every_integers[] = {
    0,     1,     -1,        2,         3,          7,         -7,        31,       32,       33,
    63,    64,    127,       128,       -128,       255,       256,       32767,    32768,    -32768,
    65535, 65536, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, 16777217, 33554431, 1000003};
enum {
  EVERY_FLOATS = sizeof every_floats / sizeof *every_floats,
  EVERY_INTEGERS = sizeof every_integers / sizeof *every_integers
};

static inline double every_double(uint32_t bits) {
  float single;
  memcpy(&single, &bits, sizeof single);
  return (double)single;
}

// Element k of input `which`: first all pairs of the listed values, then random ones.
static inline uint64_t every_input(struct every_values *values, enum type type, uint32_t k, int which) {
  bool is_integer = type_is_integer(type);
  uint32_t listed = is_integer ? EVERY_INTEGERS : EVERY_FLOATS,
           at = which == 0 ? k % listed : k / listed % listed;
  bool is_listed = k < listed * listed;
  if (which == 2 || !is_listed) at = (uint32_t)(every_random(values) % listed);
  if (type == TYPE_BOOL) return (uint64_t[]){0, 1, 2, 255}[every_random(values) % 4];
  if (is_integer)
    return is_listed ? (uint64_t)every_integers[at] : every_random(values) >> (every_random(values) % 64);
  if (type == TYPE_F32) return is_listed ? every_floats[at] : (uint32_t)every_random(values);
  if (type == TYPE_BF16) return is_listed ? every_floats[at] >> 16 : every_random(values) & 0xffff;
  if (type == TYPE_F16)
    return is_listed ? (uint64_t)half_from_double(every_double(every_floats[at]))
                     : every_random(values) & 0xffff;
  double number = every_double(every_floats[at]);
  if (every_random(values) % 4 == 0) number = nextafter(number, every_random(values) & 1 ? 1e300 : -1e300);
  if (!is_listed)
    number = ldexp((double)(int64_t)every_random(values), (int)(every_random(values) % 140) - 100);
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

static inline uint64_t every_bits(const unsigned char *base, enum type type, size_t i) {
  uint64_t bits = 0;
  memcpy(&bits, base + i * type_bytes(type), type_bytes(type));
  return bits;
}

static inline void every_values_begin(struct every_values *values, uint32_t count) {
  memset(values, 0, sizeof *values);
  values->count = count;
  values->random = 88172645463325252u;
  for (int type = 0; type < TYPE_COUNT; type++) {
    if (!every_has_values((enum type)type)) continue;
    uint32_t bytes = type_bytes((enum type)type);
    values->outputs[type] = calloc((size_t)count * EVERY_WIDTH, bytes);
    for (int which = 0; which < 3; which++) {
      values->inputs[which][type] = malloc((size_t)count * bytes);
      for (uint32_t k = 0; k < count; k++) {
        uint64_t bits = every_input(values, (enum type)type, k, which);
        memcpy(values->inputs[which][type] + (size_t)k * bytes, &bits, bytes);
      }
    }
  }
}

static inline void every_values_end(struct every_values *values) {
  for (int type = 0; type < TYPE_COUNT; type++) {
    free(values->outputs[type]);
    for (int which = 0; which < 3; which++) free(values->inputs[which][type]);
  }
}

static inline struct value every_value(enum type type, uint64_t bits) {
  struct value value = {.type = type};
  if (type == TYPE_F64)
    memcpy(&value.number, &bits, sizeof bits);
  else if (type == TYPE_F32)
    value.number = every_double((uint32_t)bits);
  else if (type == TYPE_F16)
    value.number = (double)half_to_float((uint16_t)bits);
  else if (type == TYPE_BF16)
    value.number = (double)bfloat_to_float((uint16_t)bits);
  else
    value = value_int(type, (int64_t)bits);
  return value;
}

// The bits that a case moves unchanged to result i, for those that only move.
static inline bool every_moves(const struct every_values *values, const struct every_case *c, uint32_t i,
                               uint64_t *bits) {
  const unsigned char *x = values->inputs[0][c->operand];
  uint32_t lane = i % 32, source = i;
  bool chooses_x = values->inputs[0][TYPE_BOOL][i] != 0;
  switch ((int)c->op) {
  case OP_BITCAST: break;
  case OP_SELECT:
    if (!chooses_x) x = values->inputs[1][c->operand];
    break;
  case OP_SHFL_DOWN: source = lane < 27 ? i + 5 : i; break;
  case OP_SHFL_XOR: source = i - lane + (lane ^ 5); break;
  case OP_SHFL_IDX: source = i - lane + 5; break;
  default: return false;
  }
  *bits = every_bits(x, c->operand, source);
  return true;
}

// Whether result i of a case is what the language says. NaNs are alike.
static inline bool every_is_right(const struct every_values *values, const struct every_case *c, uint32_t i) {
  uint64_t got = every_bits(values->outputs[c->result], c->result, (size_t)i * EVERY_WIDTH + c->slot), moved;
  if (every_moves(values, c, i, &moved)) return c->result == TYPE_BOOL ? got == (moved != 0) : got == moved;
  struct value args[3], wanted;
  for (int which = 0; which < 3; which++)
    args[which] = every_value(c->operand, every_bits(values->inputs[which][c->operand], c->operand, i));
  if (c->has_constant)
    args[1] = c->constant;
  else if (c->op == OP_QUO || c->op == OP_REM)
    args[1] = value_int(c->operand, (args[1].integer & 0x55) | 1);
  if (!arith_fold(c->op, c->result, args, (uint32_t)op_table[c->op].operands, &wanted)) return false;
  if (c->op == OP_RSQRT) // a square root and a division, each rounded
    wanted = value_float(c->result, c->result == TYPE_F32 ? (double)(1.0f / sqrtf((float)args[0].number))
                                                          : 1.0 / sqrt(args[0].number));
  struct value value = every_value(c->result, got);
  if (type_is_integer(c->result)) return value.integer == wanted.integer;
  if (c->result == TYPE_BOOL) return got == (uint64_t)wanted.integer;
  if (isnan(wanted.number)) return isnan(value.number);
  return value.number == wanted.number && signbit(value.number) == signbit(wanted.number);
}

// Reports wrong results on standard error, one line a case, and returns how many cases have some.
static inline int every_wrong_cases(const struct every *every, const struct every_values *values,
                                    const char *what) {
  int wrong = 0;
  for (uint32_t k = 0; k < every->count; k++) {
    const struct every_case *c = &every->cases[k];
    uint32_t count = 0, first = 0;
    for (uint32_t i = 0; i < values->count; i++)
      if (!every_is_right(values, c, i) && count++ == 0) first = i;
    if (count == 0) continue;
    wrong++;
    unsigned long long operands[3];
    for (int which = 0; which < 3; which++)
      operands[which] = every_bits(values->inputs[which][c->operand], c->operand, first);
    fprintf(stderr, "%s: %s %s -> %s: %u wrong, first (%llx, %llx, %llx) gives %llx\n", what,
            op_table[c->op].spelling, type_name(c->operand), type_name(c->result), count, operands[0],
            operands[1], operands[2],
            (unsigned long long)every_bits(values->outputs[c->result], c->result,
                                           (size_t)first * EVERY_WIDTH + c->slot));
  }
  return wrong;
}

#endif
