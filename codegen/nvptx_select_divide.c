// Division, which ptxas has in one form for all divisors: by a constant as product and shifts; quotient and remainder of the same operands by one division.
//
// By a constant d of w bits: the quotient is the upper half of a product with about 2^(w+k)/d, shifted by k, after Hacker's Delight, chapter 10.
#include "codegen/nvptx_select.h"

struct width {
  uint32_t bits;
  enum select_register home;
};

static struct select_operand constant(struct width w, uint64_t bits) { return select_constant(w.home, bits); }

static struct select_operand op(struct select *s, struct width w, const char *of_32, const char *of_64, struct select_operand a, struct select_operand b) {
  return select_op2(s, w.home, w.bits == 32 ? of_32 : of_64, a, b);
}

static struct select_operand shift(struct select *s, struct width w, char how, struct select_operand a, uint32_t by) {
  if (!by) return a;
  struct select_operand count = select_constant(REGISTER_32, by);
  return how == 's' ? op(s, w, "shr.s32", "shr.s64", a, count) : op(s, w, "shr.u32", "shr.u64", a, count);
}

static struct select_operand sum(struct select *s, struct width w, struct select_operand a, struct select_operand b) { return op(s, w, "add.s32", "add.s64", a, b); }

static struct select_operand difference(struct select *s, struct width w, struct select_operand a, struct select_operand b) { return op(s, w, "sub.s32", "sub.s64", a, b); }

// By a power of two, toward zero.
static struct select_operand by_power(struct select *s, struct width w, struct select_operand a, uint32_t power) {
  struct select_operand sign = shift(s, w, 's', a, w.bits - 1), rest = shift(s, w, 'u', sign, w.bits - power);
  return shift(s, w, 's', sum(s, w, a, rest), power);
}

static struct select_operand signed_quotient(struct select *s, struct width w, struct select_operand a, int64_t divisor) {
  uint64_t size = divisor < 0 ? 0 - (uint64_t)divisor : (uint64_t)divisor;
  struct select_operand quotient;
  if ((size & (size - 1)) == 0) {
    quotient = by_power(s, w, a, (uint32_t)__builtin_ctzll(size));
    return divisor < 0 ? difference(s, w, constant(w, 0), quotient) : quotient;
  }
  // the least p with 2^p > nc * (d - 2^p mod d)
  __extension__ typedef unsigned __int128 wide;
  wide half = (wide)1 << (w.bits - 1), t = half + (divisor < 0), limit = t - 1 - t % size;
  uint32_t p = w.bits - 1;
  wide power, delta;
  do {
    power = (wide)1 << ++p;
    delta = size - power % size;
  } while (p < 2 * w.bits - 1 && power <= limit * delta);
  wide magic = (power + delta) / size;
  uint64_t factor = (uint64_t)(divisor < 0 ? 0 - magic : magic);
  bool is_negative = (factor >> (w.bits - 1) & 1) != 0;
  quotient = op(s, w, "mul.hi.s32", "mul.hi.s64", a, constant(w, factor));
  if (divisor > 0 && is_negative) quotient = sum(s, w, quotient, a);
  if (divisor < 0 && !is_negative) quotient = difference(s, w, quotient, a);
  quotient = shift(s, w, 's', quotient, p - w.bits);
  return sum(s, w, quotient, shift(s, w, 'u', quotient, w.bits - 1));
}

// Of a dividend of `bits` bits. With s the bits of the divisor less one, the factor 2^(w+s)/d rounded up has w bits; where what rounding adds is too much, an even divisor
// is halved first, and an odd one takes a factor of w + 1 bits.
static struct select_operand unsigned_quotient(struct select *s, struct width w, struct select_operand a, uint64_t divisor, uint32_t bits) {
  uint32_t zeros = (uint32_t)__builtin_ctzll(divisor);
  if ((divisor & (divisor - 1)) == 0) return shift(s, w, 'u', a, zeros);
  __extension__ typedef unsigned __int128 wide;
  for (uint32_t halved = 0; halved <= zeros; halved += zeros ? zeros : 1) {
    uint64_t d = divisor >> halved;
    uint32_t by = 63 - (uint32_t)__builtin_clzll(d);
    wide power = (wide)1 << (w.bits + by), factor = power / d + 1;
    if (factor * d - power > (wide)1 << (w.bits + by - (bits - halved))) continue;
    a = shift(s, w, 'u', a, halved);
    return shift(s, w, 'u', op(s, w, "mul.hi.u32", "mul.hi.u64", a, constant(w, (uint64_t)factor)), by);
  }
  // with l the bits of d - 1: factor = 2^w * (2^l - d) / d + 1; q = (t + (a - t) / 2) >> (l - 1), t the upper half of a * factor
  uint32_t l = 64 - (uint32_t)__builtin_clzll(divisor - 1);
  wide more = ((wide)1 << l) - divisor, factor = (more << w.bits) / divisor + 1;
  struct select_operand t = op(s, w, "mul.hi.u32", "mul.hi.u64", a, constant(w, (uint64_t)factor));
  struct select_operand rest = shift(s, w, 'u', difference(s, w, a, t), 1);
  return shift(s, w, 'u', sum(s, w, t, rest), l - 1);
}

// Whether the block has the quotient of this remainder's operands, or the other way round.
static bool has_partner(LLVMValueRef i) {
  LLVMValueRef a = LLVMGetOperand(i, 0), b = LLVMGetOperand(i, 1);
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  LLVMOpcode wanted = opcode == LLVMSRem ? LLVMSDiv : opcode == LLVMURem ? LLVMUDiv : opcode;
  for (LLVMUseRef use = LLVMGetFirstUse(b); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsAInstruction(user) || LLVMGetInstructionOpcode(user) != wanted || LLVMGetInstructionParent(user) != LLVMGetInstructionParent(i)) continue;
    if (LLVMGetOperand(user, 0) == a && LLVMGetOperand(user, 1) == b) return true;
  }
  return false;
}

static struct select_operand quotient_of(struct select *s, LLVMValueRef i, struct width w, bool is_signed) {
  LLVMValueRef a = LLVMGetOperand(i, 0), b = LLVMGetOperand(i, 1);
  for (uint32_t k = 0; k < SELECT_DIVISIONS; k++) {
    const struct select_division *done = &s->divisions[k];
    if (done->a == a && done->b == b && done->is_signed == is_signed && done->block == s->printed) return done->quotient;
  }
  struct select_operand dividend = select_get(s, a), quotient;
  if (LLVMIsAConstantInt(b) && LLVMConstIntGetZExtValue(b)) {
    dividend = select_in_register(s, dividend);
    quotient = is_signed ? signed_quotient(s, w, dividend, LLVMConstIntGetSExtValue(b)) : unsigned_quotient(s, w, dividend, LLVMConstIntGetZExtValue(b), w.bits);
  } else {
    quotient = is_signed ? op(s, w, "div.s32", "div.s64", dividend, select_get(s, b)) : op(s, w, "div.u32", "div.u64", dividend, select_get(s, b));
  }
  s->divisions[s->division_count++ % SELECT_DIVISIONS] = (struct select_division){a, b, is_signed, s->printed, quotient};
  return quotient;
}

struct select_operand select_divide(struct select *s, LLVMValueRef i, uint32_t bits, bool is_signed, bool is_remainder) {
  struct width w = {bits, bits == 32 ? REGISTER_32 : REGISTER_64};
  if (bits < 32) {
    static const char *const names[2][2] = {{"div.u16", "rem.u16"}, {"div.s16", "rem.s16"}};
    LLVMValueRef by = LLVMGetOperand(i, 1);
    struct select_operand a = select_widened(s, select_get(s, LLVMGetOperand(i, 0)), bits, is_signed), b = select_widened(s, select_get(s, by), bits, is_signed);
    if (!LLVMIsAConstantInt(by) || !LLVMConstIntGetZExtValue(by)) return select_op2(s, REGISTER_16, names[is_signed][is_remainder], a, b);
    struct width wide = {32, REGISTER_32};
    a = select_op1(s, REGISTER_32, is_signed ? "cvt.s32.s16" : "cvt.u32.u16", select_in_register(s, a));
    struct select_operand result = is_signed ? signed_quotient(s, wide, a, LLVMConstIntGetSExtValue(by)) : unsigned_quotient(s, wide, a, LLVMConstIntGetZExtValue(by), bits);
    if (is_remainder) result = difference(s, wide, a, op(s, wide, "mul.lo.s32", NULL, result, constant(wide, is_signed ? (uint64_t)LLVMConstIntGetSExtValue(by) : LLVMConstIntGetZExtValue(by))));
    return select_op1(s, REGISTER_16, "cvt.u16.u32", result);
  }
  if (!is_remainder) return quotient_of(s, i, w, is_signed);
  LLVMValueRef b = LLVMGetOperand(i, 1);
  struct select_operand a = select_get(s, LLVMGetOperand(i, 0)), divisor = select_get(s, b);
  if (!LLVMIsAConstantInt(b) && !has_partner(i)) return is_signed ? op(s, w, "rem.s32", "rem.s64", a, divisor) : op(s, w, "rem.u32", "rem.u64", a, divisor);
  struct select_operand quotient = quotient_of(s, i, w, is_signed);
  return difference(s, w, a, op(s, w, "mul.lo.s32", "mul.lo.s64", quotient, divisor));
}
