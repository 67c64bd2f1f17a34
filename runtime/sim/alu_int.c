// Integer and bitwise instructions, one handler a type. Types of 16 bits live zero-extended in words of 32.
#include "runtime/sim/internal.h"

#include <stdlib.h>

#define HANDLER(name) static void name(struct sim_warp *warp, const struct sim_op *op, uint32_t mask)

// One, two and three sources: `T` is the type that a, b, c have in `expr`, `U` the unsigned type that its
// value is cut to, `W` the register's lane.
#define ONE(fn, T, U, W, expr)                                                                               \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a);                                               \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, {                                                                                      \
      T a = (T)pa[l];                                                                                        \
      pd[l] = (U)(expr);                                                                                     \
    });                                                                                                      \
  }
#define TWO(fn, T, U, W, expr)                                                                               \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a),                                               \
            *pb = (const W *)(void *)sim_operand(warp, op->b);                                               \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, {                                                                                      \
      T a = (T)pa[l];                                                                                        \
      T b = (T)pb[l];                                                                                        \
      pd[l] = (U)(expr);                                                                                     \
    });                                                                                                      \
  }
#define THREE(fn, T, U, W, expr)                                                                             \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a),                                               \
            *pb = (const W *)(void *)sim_operand(warp, op->b);                                               \
    const W *pc = (const W *)(void *)sim_operand(warp, op->c);                                               \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, {                                                                                      \
      T a = (T)pa[l];                                                                                        \
      T b = (T)pb[l];                                                                                        \
      T c = (T)pc[l];                                                                                        \
      pd[l] = (U)(expr);                                                                                     \
    });                                                                                                      \
  }

// The same for each integer type; wrapping arithmetic is done unsigned.
#define WRAPPING(shape, name, expr)                                                                          \
  shape(name##_16, uint32_t, uint16_t, sim_u32, expr) shape(name##_32, uint32_t, uint32_t, sim_u32, expr)    \
      shape(name##_64, uint64_t, uint64_t, sim_u64, expr)
#define EVERY(shape, name, expr)                                                                             \
  shape(name##_u16, uint16_t, uint16_t, sim_u32, expr) shape(name##_s16, int16_t, uint16_t, sim_u32, expr)   \
      shape(name##_u32, uint32_t, uint32_t, sim_u32, expr)                                                   \
          shape(name##_s32, int32_t, uint32_t, sim_u32, expr)                                                \
              shape(name##_u64, uint64_t, uint64_t, sim_u64, expr)                                           \
                  shape(name##_s64, int64_t, uint64_t, sim_u64, expr)

WRAPPING(TWO, add, a + b)
WRAPPING(TWO, sub, a - b)
WRAPPING(TWO, mul, a *b)
WRAPPING(THREE, mad, a *b + c)
WRAPPING(TWO, and_, a &b)
WRAPPING(TWO, or_, a | b)
WRAPPING(TWO, xor_, a ^ b)
WRAPPING(ONE, not_, ~a)
WRAPPING(ONE, neg, 0 - a)
WRAPPING(ONE, cnot, a == 0)
EVERY(TWO, min, a < b ? a : b)
EVERY(TWO, max, a > b ? a : b)

// Division by zero gives all ones, as the hardware does; the smallest integer by -1 wraps.
#define DIVIDE_U(a, b, bits) ((b) == 0 ? UINT64_MAX : (uint64_t)((a) / (b)))
TWO(div_u16, uint16_t, uint16_t, sim_u32, DIVIDE_U(a, b, 16))
TWO(div_u32, uint32_t, uint32_t, sim_u32, DIVIDE_U(a, b, 32))
TWO(div_u64, uint64_t, uint64_t, sim_u64, DIVIDE_U(a, b, 64))
TWO(div_s16, int32_t, uint16_t, sim_u32, (int16_t)b == 0 ? -1 : (int16_t)a / (int16_t)b)
TWO(div_s32, int32_t, uint32_t, sim_u32, b == 0 ? -1 : b == -1 ? (int32_t)(0u - (uint32_t)a) : a / b)
TWO(div_s64, int64_t, uint64_t, sim_u64, b == 0 ? -1 : b == -1 ? (int64_t)(0ull - (uint64_t)a) : a / b)
// The remainder by zero is the dividend.
TWO(rem_u16, uint16_t, uint16_t, sim_u32, b == 0 ? a : a % b)
TWO(rem_u32, uint32_t, uint32_t, sim_u32, b == 0 ? a : a % b)
TWO(rem_u64, uint64_t, uint64_t, sim_u64, b == 0 ? a : a % b)
TWO(rem_s16, int32_t, uint16_t, sim_u32, (int16_t)b == 0 ? (int16_t)a : (int16_t)a % (int16_t)b)
TWO(rem_s32, int32_t, uint32_t, sim_u32, b == 0 ? a : b == -1 ? 0 : a % b)
TWO(rem_s64, int64_t, uint64_t, sim_u64, b == 0 ? a : b == -1 ? 0 : a % b)
ONE(abs_s16, int32_t, uint16_t, sim_u32, (int16_t)a < 0 ? 0u - (uint32_t)a : (uint32_t)a)
ONE(abs_s32, int32_t, uint32_t, sim_u32, a < 0 ? 0u - (uint32_t)a : (uint32_t)a)
ONE(abs_s64, int64_t, uint64_t, sim_u64, a < 0 ? 0ull - (uint64_t)a : (uint64_t)a)

static uint64_t high_u64(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned __int128)a * b >> 64);
}
static uint64_t high_s64(int64_t a, int64_t b) {
  return (uint64_t)((__int128)a * b >> 64);
}

TWO(mul_hi_u16, uint32_t, uint16_t, sim_u32, a *b >> 16)
TWO(mul_hi_s16, int32_t, uint16_t, sim_u32, (int16_t)a *(int16_t)b >> 16)
TWO(mul_hi_u32, uint64_t, uint32_t, sim_u32, a *b >> 32)
TWO(mul_hi_s32, int32_t, uint32_t, sim_u32, (int64_t)a *b >> 32)
TWO(mul_hi_u64, uint64_t, uint64_t, sim_u64, high_u64(a, b))
TWO(mul_hi_s64, int64_t, uint64_t, sim_u64, high_s64(a, b))
THREE(mad_hi_u16, uint32_t, uint16_t, sim_u32, (a * b >> 16) + c)
THREE(mad_hi_s16, int32_t, uint16_t, sim_u32, (uint32_t)((int16_t)a *(int16_t)b >> 16) + (uint32_t)c)
THREE(mad_hi_u32, uint64_t, uint32_t, sim_u32, (a * b >> 32) + c)
THREE(mad_hi_s32, int32_t, uint32_t, sim_u32, (uint32_t)((int64_t)a *b >> 32) + (uint32_t)c)
THREE(mad_hi_u64, uint64_t, uint64_t, sim_u64, high_u64(a, b) + c)
THREE(mad_hi_s64, int64_t, uint64_t, sim_u64, high_s64(a, b) + (uint64_t)c)

static uint64_t saturate_s32(int64_t value) {
  return (uint64_t)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}
static int64_t low24(uint32_t value) {
  return (int32_t)(value << 8) >> 8;
}

TWO(add_sat_s32, int32_t, uint32_t, sim_u32, saturate_s32((int64_t)a + b))
TWO(sub_sat_s32, int32_t, uint32_t, sim_u32, saturate_s32((int64_t)a - b))
THREE(mad_hi_sat_s32, int32_t, uint32_t, sim_u32, saturate_s32(((int64_t)a * b >> 32) + c))
TWO(mul24_lo_u32, uint32_t, uint32_t, sim_u32, (a & 0xffffffu) * (b & 0xffffffu))
TWO(mul24_lo_s32, uint32_t, uint32_t, sim_u32, (uint32_t)(low24(a) * low24(b)))
TWO(mul24_hi_u32, uint64_t, uint32_t, sim_u32, (a & 0xffffffu) * (b & 0xffffffu) >> 16)
TWO(mul24_hi_s32, uint32_t, uint32_t, sim_u32, (uint64_t)(low24(a) * low24(b)) >> 16)
THREE(mad24_lo_u32, uint32_t, uint32_t, sim_u32, (a & 0xffffffu) * (b & 0xffffffu) + c)
THREE(mad24_lo_s32, uint32_t, uint32_t, sim_u32, (uint32_t)(low24(a) * low24(b)) + c)
THREE(mad24_hi_u32, uint64_t, uint32_t, sim_u32, ((a & 0xffffffu) * (b & 0xffffffu) >> 16) + c)
THREE(mad24_hi_s32, uint32_t, uint32_t, sim_u32, (uint32_t)((uint64_t)(low24(a) * low24(b)) >> 16) + c)
THREE(mad24_hi_sat_s32, uint32_t, uint32_t, sim_u32, saturate_s32((low24(a) * low24(b) >> 16) + (int32_t)c))

THREE(sad_u16, uint16_t, uint16_t, sim_u32, c + (a < b ? b - a : a - b))
THREE(sad_s16, int32_t, uint16_t, sim_u32, (uint32_t)c + (uint32_t)abs((int16_t)a - (int16_t)b))
THREE(sad_u32, uint32_t, uint32_t, sim_u32, c + (a < b ? b - a : a - b))
THREE(sad_s32, int32_t, uint32_t, sim_u32,
      (uint32_t)c + (a < b ? (uint32_t)b - (uint32_t)a : (uint32_t)a - (uint32_t)b))
THREE(sad_u64, uint64_t, uint64_t, sim_u64, c + (a < b ? b - a : a - b))
THREE(sad_s64, int64_t, uint64_t, sim_u64,
      (uint64_t)c + (a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b))

// Products of full width: sources of 16 or 32 bits, result of twice that.
#define WIDE(fn, T, S, R, D)                                                                                 \
  HANDLER(fn) {                                                                                              \
    const sim_u32 *pa = sim_r32(warp, op->a), *pb = sim_r32(warp, op->b);                                    \
    D *pd = (D *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, { pd[l] = (R)((S)(T)pa[l] * (S)(T)pb[l]); });                                          \
  }
#define WIDE_ADD(fn, T, S, R, D)                                                                             \
  HANDLER(fn) {                                                                                              \
    const sim_u32 *pa = sim_r32(warp, op->a), *pb = sim_r32(warp, op->b);                                    \
    const D *pc = (const D *)(void *)sim_operand(warp, op->c);                                               \
    D *pd = (D *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, { pd[l] = (R)((S)(T)pa[l] * (S)(T)pb[l]) + pc[l]; });                                  \
  }
WIDE(mul_wide_u16, uint16_t, uint32_t, uint32_t, sim_u32)
WIDE(mul_wide_s16, int16_t, int32_t, uint32_t, sim_u32)
WIDE(mul_wide_u32, uint32_t, uint64_t, uint64_t, sim_u64)
WIDE(mul_wide_s32, int32_t, int64_t, uint64_t, sim_u64)
WIDE_ADD(mad_wide_u16, uint16_t, uint32_t, uint32_t, sim_u32)
WIDE_ADD(mad_wide_s16, int16_t, int32_t, uint32_t, sim_u32)
WIDE_ADD(mad_wide_u32, uint32_t, uint64_t, uint64_t, sim_u64)
WIDE_ADD(mad_wide_s32, int32_t, int64_t, uint64_t, sim_u64)

// Shifts: the amount is a word, clamped at the width.
#define SHIFT(fn, T, U, W, bits, over, expr)                                                                 \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a);                                               \
    const sim_u32 *pb = sim_r32(warp, op->b);                                                                \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, {                                                                                      \
      T a = (T)pa[l];                                                                                        \
      uint32_t b = pb[l] & (bits - 1);                                                                       \
      pd[l] = pb[l] >= bits ? (U)(over) : (U)(expr);                                                         \
    });                                                                                                      \
  }
SHIFT(shl_16, uint32_t, uint16_t, sim_u32, 16, 0, a << b)
SHIFT(shl_32, uint32_t, uint32_t, sim_u32, 32, 0, a << b)
SHIFT(shl_64, uint64_t, uint64_t, sim_u64, 64, 0, a << b)
SHIFT(shr_u16, uint16_t, uint16_t, sim_u32, 16, 0, a >> b)
SHIFT(shr_u32, uint32_t, uint32_t, sim_u32, 32, 0, a >> b)
SHIFT(shr_u64, uint64_t, uint64_t, sim_u64, 64, 0, a >> b)
SHIFT(shr_s16, int16_t, uint16_t, sim_u32, 16, a < 0 ? -1 : 0, a >> b)
SHIFT(shr_s32, int32_t, uint32_t, sim_u32, 32, a < 0 ? -1 : 0, a >> b)
SHIFT(shr_s64, int64_t, uint64_t, sim_u64, 64, a < 0 ? -1 : 0, a >> b)

// Funnel shifts of the pair (b:a).
static uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n) {
  return n == 0 ? b : n >= 32 ? a : b << n | a >> (32 - n);
}
static uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n) {
  return n == 0 ? a : n >= 32 ? b : a >> n | b << (32 - n);
}
THREE(shf_l_clamp, uint32_t, uint32_t, sim_u32, funnel_left(a, b, c > 32 ? 32 : c))
THREE(shf_l_wrap, uint32_t, uint32_t, sim_u32, funnel_left(a, b, c & 31))
THREE(shf_r_clamp, uint32_t, uint32_t, sim_u32, funnel_right(a, b, c > 32 ? 32 : c))
THREE(shf_r_wrap, uint32_t, uint32_t, sim_u32, funnel_right(a, b, c & 31))

// Counting and finding bits: the result is a word.
#define COUNT(fn, W, expr)                                                                                   \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a);                                               \
    sim_u32 *pd = sim_r32(warp, op->d);                                                                      \
    SIM_EACH(mask, l, {                                                                                      \
      W a = pa[l];                                                                                           \
      pd[l] = (uint32_t)(expr);                                                                              \
    });                                                                                                      \
  }
static uint32_t top_bit(uint64_t a) {
  return a ? 63u - (uint32_t)__builtin_clzll(a) : SIM_NONE;
}
static uint64_t unsign32(uint32_t a) {
  return (int32_t)a < 0 ? ~a : a;
}
static uint64_t unsign64(uint64_t a) {
  return (int64_t)a < 0 ? ~a : a;
}
static uint32_t from_top(uint32_t bit, uint32_t top) {
  return bit == SIM_NONE ? SIM_NONE : top - bit;
}
COUNT(popc_32, sim_u32, __builtin_popcount(a))
COUNT(popc_64, sim_u64, __builtin_popcountll(a))
COUNT(clz_32, sim_u32, a ? __builtin_clz(a) : 32)
COUNT(clz_64, sim_u64, a ? __builtin_clzll(a) : 64)
COUNT(bfind_u32, sim_u32, top_bit(a))
COUNT(bfind_s32, sim_u32, top_bit(unsign32(a)))
COUNT(bfind_u64, sim_u64, top_bit(a))
COUNT(bfind_s64, sim_u64, top_bit(unsign64(a)))
COUNT(bfind_shift_u32, sim_u32, from_top(top_bit(a), 31))
COUNT(bfind_shift_s32, sim_u32, from_top(top_bit(unsign32(a)), 31))
COUNT(bfind_shift_u64, sim_u64, from_top(top_bit(a), 63))
COUNT(bfind_shift_s64, sim_u64, from_top(top_bit(unsign64(a)), 63))

static uint64_t reverse(uint64_t a, unsigned bits) {
  uint64_t out = 0;
  for (unsigned i = 0; i < bits; i++) out |= (a >> i & 1) << (bits - 1 - i);
  return out;
}
ONE(brev_32, uint32_t, uint32_t, sim_u32, reverse(a, 32))
ONE(brev_64, uint64_t, uint64_t, sim_u64, reverse(a, 64))

// Bit fields: position and length are the low bytes of words.
static uint64_t extract(uint64_t a, uint32_t position, uint32_t length, unsigned bits, bool is_signed) {
  position &= 255, length &= 255;
  uint32_t top = position + length > bits ? bits - 1 : position + length - 1;
  bool sign = is_signed && length > 0 && (a >> top & 1);
  uint64_t out = position < bits ? a >> position : 0;
  uint32_t kept = position >= bits ? 0 : length < bits - position ? length : bits - position;
  uint64_t low = kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1;
  return sign ? (out & low) | ~low : out & low;
}
static uint64_t insert(uint64_t a, uint64_t b, uint32_t position, uint32_t length, unsigned bits) {
  position &= 255, length &= 255;
  if (position >= bits || length == 0) return b;
  uint32_t kept = length < bits - position ? length : bits - position;
  uint64_t low = (kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1) << position;
  return (b & ~low) | (a << position & low);
}
#define FIELD(fn, U, W, bits, is_signed)                                                                     \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a);                                               \
    const sim_u32 *pb = sim_r32(warp, op->b), *pc = sim_r32(warp, op->c);                                    \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, { pd[l] = (U)extract(pa[l], pb[l], pc[l], bits, is_signed); });                        \
  }
FIELD(bfe_u32, uint32_t, sim_u32, 32, false)
FIELD(bfe_s32, uint32_t, sim_u32, 32, true)
FIELD(bfe_u64, uint64_t, sim_u64, 64, false)
FIELD(bfe_s64, uint64_t, sim_u64, 64, true)
#define INSERT(fn, U, W, bits)                                                                               \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a),                                               \
            *pb = (const W *)(void *)sim_operand(warp, op->b);                                               \
    const sim_u32 *pc = sim_r32(warp, op->c), *pf = sim_r32(warp, op->f);                                    \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, { pd[l] = (U)insert(pa[l], pb[l], pc[l], pf[l], bits); });                             \
  }
INSERT(bfi_32, uint32_t, sim_u32, 32)
INSERT(bfi_64, uint64_t, sim_u64, 64)

static uint32_t mask_of(uint32_t position, uint32_t length, bool is_clamped) {
  if (!is_clamped) {
    position &= 31, length &= 31;
  } else if (position >= 32) {
    return 0;
  } else if (length > 32) {
    length = 32;
  }
  uint64_t low = (UINT64_C(1) << length) - 1;
  return (uint32_t)(low << position);
}
TWO(bmsk_clamp, uint32_t, uint32_t, sim_u32, mask_of(a, b, true))
TWO(bmsk_wrap, uint32_t, uint32_t, sim_u32, mask_of(a, b, false))

static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t out = 0;
  for (unsigned i = 0; i < 4; i++) {
    uint32_t choice = selector >> (4 * i) & 15, byte = (uint32_t)(bytes >> (8 * (choice & 7))) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << (8 * i);
  }
  return out;
}
static uint32_t permute_mode(uint32_t a, uint32_t b, uint32_t c, unsigned mode) {
  static const uint16_t selectors[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
      {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
      {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
      {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
      {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
      {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
  };
  return permute(a, b, selectors[mode][c & 3]);
}
THREE(prmt_b32, uint32_t, uint32_t, sim_u32, permute(a, b, c))
THREE(prmt_mode, uint32_t, uint32_t, sim_u32, permute_mode(a, b, c, op->sub))

static uint32_t lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t out = 0;
  if (table & 0x01) out |= ~a & ~b & ~c;
  if (table & 0x02) out |= ~a & ~b & c;
  if (table & 0x04) out |= ~a & b & ~c;
  if (table & 0x08) out |= ~a & b & c;
  if (table & 0x10) out |= a & ~b & ~c;
  if (table & 0x20) out |= a & ~b & c;
  if (table & 0x40) out |= a & b & ~c;
  if (table & 0x80) out |= a & b & c;
  return out;
}
THREE(lop3_b32, uint32_t, uint32_t, sim_u32, lookup(a, b, c, (uint32_t)op->immediate))

// Dot products of four bytes, or of two halves with two of the bytes (the upper ones where sub is 1).
static uint32_t dot(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed, unsigned count,
                    bool is_high) {
  for (unsigned i = 0; i < count; i++) {
    uint32_t part = count == 4 ? a >> (8 * i) & 255 : a >> (16 * i) & 0xffff;
    uint32_t byte = b >> (8 * (i + (is_high ? 2 : 0))) & 255;
    int32_t x = !a_signed ? (int32_t)part : count == 4 ? (int8_t)part : (int16_t)part;
    int32_t y = b_signed ? (int8_t)byte : (int32_t)byte;
    c += (uint32_t)(x * y);
  }
  return c;
}
#define DOT(fn, count)                                                                                       \
  THREE(fn, uint32_t, uint32_t, sim_u32,                                                                     \
        dot(a, b, c, op->type == SIM_S32, op->from == SIM_S32, count, op->sub == 1))
DOT(dp4a_b32, 4)
DOT(dp2a_b32, 2)

// Two 16-bit integers in a word.
#define PAIRS(fn, T, expr)                                                                                   \
  static uint32_t fn##_half(T a, T b) {                                                                      \
    return (uint16_t)(expr);                                                                                 \
  }                                                                                                          \
  TWO(fn, uint32_t, uint32_t, sim_u32, fn##_half((T)a, (T)b) | fn##_half((T)(a >> 16), (T)(b >> 16)) << 16)
PAIRS(add_u16x2, uint16_t, a + b)
PAIRS(min_u16x2, uint16_t, a < b ? a : b)
PAIRS(max_u16x2, uint16_t, a > b ? a : b)
PAIRS(min_s16x2, int16_t, a < b ? a : b)
PAIRS(max_s16x2, int16_t, a > b ? a : b)

// Arithmetic with the condition code: carry in from f where sub has bit 0, out to e where it has bit 1.
#define CARRY(fn, U, W, D2, expr_low)                                                                        \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a),                                               \
            *pb = (const W *)(void *)sim_operand(warp, op->b);                                               \
    const W *pc = (const W *)(void *)sim_operand(warp, op->c);                                               \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    uint32_t in = op->sub & 1 ? *sim_pred(warp, op->f) : 0, out = 0;                                         \
    (void)pc;                                                                                                \
    SIM_EACH_BIT(mask, l) {                                                                                  \
      D2 a = (U)pa[l], b = (U)pb[l], c = (U)pc[l], carry = in >> l & 1;                                      \
      (void)c;                                                                                               \
      D2 sum = expr_low;                                                                                     \
      pd[l] = (U)sum;                                                                                        \
      out |= (uint32_t)(sum >> (8 * sizeof(U)) & 1) << l;                                                    \
    }                                                                                                        \
    if (op->sub & 2) {                                                                                       \
      sim_u32 *cc = sim_pred(warp, op->e);                                                                   \
      *cc = (*cc & ~mask) | out;                                                                             \
    }                                                                                                        \
  }
CARRY(addc_32, uint32_t, sim_u32, uint64_t, a + b + carry)
CARRY(addc_64, uint64_t, sim_u64, unsigned __int128, a + b + carry)
CARRY(subc_32, uint32_t, sim_u32, uint64_t, a - b - carry)
CARRY(subc_64, uint64_t, sim_u64, unsigned __int128, a - b - carry)
CARRY(madc_lo_32, uint32_t, sim_u32, uint64_t, (uint64_t)(uint32_t)(a *b) + c + carry)
CARRY(madc_lo_64, uint64_t, sim_u64, unsigned __int128, (unsigned __int128)(uint64_t)(a *b) + c + carry)
CARRY(madc_hi_u32, uint32_t, sim_u32, uint64_t, (a * b >> 32) + c + carry)
CARRY(madc_hi_s32, uint32_t, sim_u32, uint64_t,
      (uint64_t)(uint32_t)((int64_t)(int32_t)a *(int32_t)b >> 32) + c + carry)
CARRY(madc_hi_u64, uint64_t, sim_u64, unsigned __int128,
      (unsigned __int128)high_u64((uint64_t)a, (uint64_t)b) + c + carry)
CARRY(madc_hi_s64, uint64_t, sim_u64, unsigned __int128,
      (unsigned __int128)high_s64((int64_t)a, (int64_t)b) + c + carry)

// Predicates: whole words of lane bits.
#define PREDICATE(fn, expr)                                                                                  \
  HANDLER(fn) {                                                                                              \
    uint32_t a = *sim_pred(warp, op->a), b = *sim_pred(warp, op->b);                                         \
    sim_u32 *pd = sim_pred(warp, op->d);                                                                     \
    (void)b;                                                                                                 \
    *pd = (*pd & ~mask) | ((expr)&mask);                                                                     \
  }
PREDICATE(and_pred, a &b)
PREDICATE(or_pred, a | b)
PREDICATE(xor_pred, a ^ b)
PREDICATE(not_pred, ~a)

#define ROW_WRAPPING(name, fn)                                                                               \
  {name, SIM_U16, fn##_16}, {name, SIM_S16, fn##_16}, {name, SIM_B16, fn##_16}, {name, SIM_U32, fn##_32},    \
      {name, SIM_S32, fn##_32}, {name, SIM_B32, fn##_32}, {name, SIM_U64, fn##_64},                          \
      {name, SIM_S64, fn##_64}, {                                                                            \
    name, SIM_B64, fn##_64                                                                                   \
  }
#define ROW_EVERY(name, fn)                                                                                  \
  {name, SIM_U16, fn##_u16}, {name, SIM_S16, fn##_s16}, {name, SIM_U32, fn##_u32},                           \
      {name, SIM_S32, fn##_s32}, {name, SIM_U64, fn##_u64}, {                                                \
    name, SIM_S64, fn##_s64                                                                                  \
  }
#define ROW_WIDE(name, fn)                                                                                   \
  {name, SIM_U16, fn##_u16}, {name, SIM_S16, fn##_s16}, {name, SIM_U32, fn##_u32}, {                         \
    name, SIM_S32, fn##_s32                                                                                  \
  }
#define ROW_FOUR(name, fn)                                                                                   \
  {name, SIM_U32, fn##_u32}, {name, SIM_S32, fn##_s32}, {name, SIM_U64, fn##_u64}, {                         \
    name, SIM_S64, fn##_s64                                                                                  \
  }
#define ROW_CARRY(name, fn)                                                                                  \
  {name, SIM_U32, fn##_32}, {name, SIM_S32, fn##_32}, {name, SIM_B32, fn##_32}, {name, SIM_U64, fn##_64},    \
      {name, SIM_S64, fn##_64}, {                                                                            \
    name, SIM_B64, fn##_64                                                                                   \
  }

const struct sim_alu sim_alu_int[] = {ROW_WRAPPING("add", add),
                                      ROW_WRAPPING("sub", sub),
                                      ROW_WRAPPING("mul.lo", mul),
                                      ROW_WRAPPING("mad.lo", mad),
                                      ROW_WRAPPING("and", and_),
                                      ROW_WRAPPING("or", or_),
                                      ROW_WRAPPING("xor", xor_),
                                      ROW_WRAPPING("not", not_),
                                      ROW_WRAPPING("neg", neg),
                                      ROW_WRAPPING("cnot", cnot),
                                      ROW_WRAPPING("shl", shl),
                                      {"and", SIM_PRED, and_pred},
                                      {"or", SIM_PRED, or_pred},
                                      {"xor", SIM_PRED, xor_pred},
                                      {"not", SIM_PRED, not_pred},
                                      ROW_EVERY("min", min),
                                      ROW_EVERY("max", max),
                                      ROW_EVERY("div", div),
                                      ROW_EVERY("rem", rem),
                                      ROW_EVERY("mul.hi", mul_hi),
                                      ROW_EVERY("mad.hi", mad_hi),
                                      ROW_EVERY("sad", sad),
                                      ROW_EVERY("shr", shr),
                                      {"shr", SIM_B16, shr_u16},
                                      {"shr", SIM_B32, shr_u32},
                                      {"shr", SIM_B64, shr_u64},
                                      {"abs", SIM_S16, abs_s16},
                                      {"abs", SIM_S32, abs_s32},
                                      {"abs", SIM_S64, abs_s64},
                                      ROW_WIDE("mul.wide", mul_wide),
                                      ROW_WIDE("mad.wide", mad_wide),
                                      {"add.sat", SIM_S32, add_sat_s32},
                                      {"sub.sat", SIM_S32, sub_sat_s32},
                                      {"mad.hi.sat", SIM_S32, mad_hi_sat_s32},
                                      {"mul24.lo", SIM_U32, mul24_lo_u32},
                                      {"mul24.lo", SIM_S32, mul24_lo_s32},
                                      {"mul24.hi", SIM_U32, mul24_hi_u32},
                                      {"mul24.hi", SIM_S32, mul24_hi_s32},
                                      {"mad24.lo", SIM_U32, mad24_lo_u32},
                                      {"mad24.lo", SIM_S32, mad24_lo_s32},
                                      {"mad24.hi", SIM_U32, mad24_hi_u32},
                                      {"mad24.hi", SIM_S32, mad24_hi_s32},
                                      {"mad24.hi.sat", SIM_S32, mad24_hi_sat_s32},
                                      {"shf.l.clamp", SIM_B32, shf_l_clamp},
                                      {"shf.l.wrap", SIM_B32, shf_l_wrap},
                                      {"shf.r.clamp", SIM_B32, shf_r_clamp},
                                      {"shf.r.wrap", SIM_B32, shf_r_wrap},
                                      {"popc", SIM_B32, popc_32},
                                      {"popc", SIM_B64, popc_64},
                                      {"clz", SIM_B32, clz_32},
                                      {"clz", SIM_B64, clz_64},
                                      ROW_FOUR("bfind", bfind),
                                      ROW_FOUR("bfind.shiftamt", bfind_shift),
                                      {"brev", SIM_B32, brev_32},
                                      {"brev", SIM_B64, brev_64},
                                      ROW_FOUR("bfe", bfe),
                                      {"bfi", SIM_B32, bfi_32},
                                      {"bfi", SIM_B64, bfi_64},
                                      {"bmsk.clamp", SIM_B32, bmsk_clamp},
                                      {"bmsk.wrap", SIM_B32, bmsk_wrap},
                                      {"prmt", SIM_B32, prmt_b32},
                                      {"prmt.mode", SIM_B32, prmt_mode},
                                      {"lop3", SIM_B32, lop3_b32},
                                      {"dp4a", SIM_B32, dp4a_b32},
                                      {"dp2a", SIM_B32, dp2a_b32},
                                      {"add", SIM_U16X2, add_u16x2},
                                      {"add", SIM_S16X2, add_u16x2},
                                      {"min", SIM_U16X2, min_u16x2},
                                      {"max", SIM_U16X2, max_u16x2},
                                      {"min", SIM_S16X2, min_s16x2},
                                      {"max", SIM_S16X2, max_s16x2},
                                      ROW_CARRY("addc", addc),
                                      ROW_CARRY("subc", subc),
                                      ROW_CARRY("madc.lo", madc_lo),
                                      ROW_FOUR("madc.hi", madc_hi),
                                      {NULL, SIM_NO_TYPE, NULL}};
