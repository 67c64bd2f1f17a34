// Arithmetic, comparisons and conversions.
#include "codegen/nvptx_select.h"

#include <string.h>


enum { MOST_LANES = 8 };

struct select_operand select_widened(struct select *s, struct select_operand a, uint32_t bits, bool is_signed) {
  if (bits != 8) return a;
  if (a.kind == SELECT_CONSTANT) return select_constant(REGISTER_16, is_signed ? (uint64_t)(int64_t)(int8_t)a.bits : a.bits & 255);
  if (is_signed) return a.is_signed ? a : select_op1(s, REGISTER_16, "cvt.s16.s8", a);
  if (a.is_zeroed) return a;
  a = select_op2(s, REGISTER_16, "and.b16", a, select_constant(REGISTER_16, 255));
  a.is_zeroed = true;
  return a;
}

static struct select_operand operand(struct select *s, LLVMValueRef i, unsigned place) { return select_get(s, LLVMGetOperand(i, place)); }

static bool is_constant(LLVMValueRef value, uint64_t bits) { return LLVMIsAConstantInt(value) && LLVMConstIntGetZExtValue(value) == bits; }

// The name of an operation for registers of its size.
struct names {
  const char *of_16, *of_32, *of_64;
};

static const char *name_for(const struct names *names, uint32_t bits) { return bits <= 16 ? names->of_16 : bits == 32 ? names->of_32 : names->of_64; }

static void define(struct select *s, LLVMValueRef i, struct select_operand result) { select_define(s, i, result); }

static void binary(struct select *s, LLVMValueRef i, const struct names *names, uint32_t bits, enum select_register home) {
  define(s, i, select_op2(s, home, name_for(names, bits), operand(s, i, 0), operand(s, i, 1)));
}

// The sum of two extensions, or what is shifted or multiplied, in one instruction: a register of 32 bits, extended, times a constant.
static bool wide_product(struct select *s, LLVMValueRef i, uint64_t factor) {
  struct select_operand a = select_raw(s, LLVMGetOperand(i, 0));
  if (!a.extended || factor > INT32_MAX) return false;
  char letter = (char)a.extended;
  a.extended = 0;
  a.home = REGISTER_32;
  define(s, i, select_op2(s, REGISTER_64, letter == 's' ? "mul.wide.s32" : "mul.wide.u32", a, select_constant(REGISTER_32, factor)));
  return true;
}

static bool wide_multiplication(struct select *s, LLVMValueRef i) {
  LLVMValueRef b = LLVMGetOperand(i, 1);
  if (LLVMIsAConstantInt(b)) return wide_product(s, i, LLVMConstIntGetZExtValue(b));
  if (LLVMIsConstant(b) || LLVMIsConstant(LLVMGetOperand(i, 0))) return false;
  struct select_operand both[2] = {select_raw(s, LLVMGetOperand(i, 0)), select_raw(s, b)};
  if (!both[0].extended || both[0].extended != both[1].extended) return false;
  const char *name = both[0].extended == 's' ? "mul.wide.s32" : "mul.wide.u32";
  for (int k = 0; k < 2; k++) {
    both[k].extended = 0;
    both[k].home = REGISTER_32;
  }
  define(s, i, select_op2(s, REGISTER_64, name, both[0], both[1]));
  return true;
}

static void logic(struct select *s, LLVMValueRef i, const char *of_1, const struct names *names, uint32_t bits, enum select_register home) {
  if (bits == 1) {
    define(s, i, select_op2(s, REGISTER_PREDICATE, of_1, select_in_register(s, operand(s, i, 0)), select_in_register(s, operand(s, i, 1))));
    return;
  }
  struct select_operand a = operand(s, i, 0), b = operand(s, i, 1);
  struct select_operand result = select_op2(s, home, name_for(names, bits), a, b);
  result.is_zeroed = bits == 8 && a.is_zeroed && (b.is_zeroed || b.kind == SELECT_CONSTANT);
  define(s, i, result);
}

static struct select_operand negated(struct select *s, struct select_operand predicate) {
  return select_op1(s, REGISTER_PREDICATE, "not.pred", select_in_register(s, predicate));
}

static void exclusive_or(struct select *s, LLVMValueRef i, uint32_t bits, enum select_register home) {
  static const struct names xors = {"xor.b16", "xor.b32", "xor.b64"}, nots = {"not.b16", "not.b32", "not.b64"};
  LLVMValueRef b = LLVMGetOperand(i, 1);
  bool is_not = LLVMIsAConstantInt(b) && LLVMConstIntGetSExtValue(b) == -1;
  if (!is_not) logic(s, i, "xor.pred", &xors, bits, home);
  else if (bits == 1) define(s, i, negated(s, operand(s, i, 0)));
  else define(s, i, select_op1(s, home, name_for(&nots, bits), operand(s, i, 0)));
}

static bool is_register(struct select_operand a) { return a.kind == SELECT_REGISTER; }

// The slot of the sum of two registers, in either order.
static struct select_sum *slot_of(struct select *s, enum select_register home, uint32_t a, uint32_t b) {
  uint32_t low = a < b ? a : b, high = a < b ? b : a;
  return &s->sums[(low * 31 + high * 7 + (uint32_t)home) % SELECT_SUMS];
}

static bool has_sum(struct select *s, enum select_register home, uint32_t a, uint32_t b, uint32_t *result) {
  const struct select_sum *slot = slot_of(s, home, a, b);
  bool is_same = (slot->a == a && slot->b == b) || (slot->a == b && slot->b == a);
  *result = slot->result;
  return slot->block == s->printed && slot->home == home && is_same;
}

// The parts of `a` in another order: (x + y) + b as (x + b) + y.
static bool take_apart(struct select *s, enum select_register home, struct select_operand *a, struct select_operand *b) {
  if (!is_register(*a) || !is_register(*b)) return false;
  const struct select_sum *parts = &s->parts[a->number % SELECT_SUMS];
  if (parts->block != s->printed || parts->result != a->number || parts->home != home) return false;
  uint32_t kept = 0;
  if (parts->b != b->number && has_sum(s, home, parts->a, b->number, &kept)) b->number = parts->b;
  else if (parts->a != b->number && has_sum(s, home, parts->b, b->number, &kept)) b->number = parts->a;
  else return false;
  a->number = kept;
  return true;
}

// What the block has of sums is forgotten where it names the register.
void select_forget_sums(struct select *s, enum select_register home, uint32_t number) {
  for (uint32_t i = 0; i < SELECT_SUMS; i++) {
    struct select_sum *both[] = {&s->sums[i], &s->parts[i]};
    for (int k = 0; k < 2; k++)
      if (both[k]->home == home && (both[k]->a == number || both[k]->b == number || both[k]->result == number)) both[k]->block = 0;
  }
}

struct select_operand select_sum(struct select *s, enum select_register home, struct select_operand a, struct select_operand b) {
  struct select_operand asked[2] = {a, b};
  if (!take_apart(s, home, &a, &b)) take_apart(s, home, &b, &a);
  struct select_operand result = select_op2(s, home, home == REGISTER_32 ? "add.s32" : "add.s64", a, b);
  if (!is_register(a) || !is_register(b)) return result;
  struct select_sum made = {s->printed, a.number, b.number, result.number, (uint8_t)home};
  *slot_of(s, home, a.number, b.number) = s->parts[result.number % SELECT_SUMS] = made;
  made.a = asked[0].number;
  made.b = asked[1].number;
  *slot_of(s, home, made.a, made.b) = made;
  return result;
}

// x * y + z in one, where nothing else reads the product: ptxas would make shifts and sums of some products.
static bool add_product(struct select *s, LLVMValueRef i, uint32_t bits, unsigned place) {
  LLVMValueRef product = LLVMGetOperand(i, place);
  bool is_product = bits == 32 && LLVMIsABinaryOperator(product) && LLVMGetInstructionOpcode(product) == LLVMMul && !LLVMGetNextUse(LLVMGetFirstUse(product));
  if (!is_product || LLVMGetInstructionParent(product) != LLVMGetInstructionParent(i)) return false;
  define(s, i, select_op3(s, REGISTER_32, "mad.lo.s32", operand(s, product, 0), operand(s, product, 1), operand(s, i, 1 - place)));
  return true;
}

// (x + constant) + y as (x + y) + constant, where x + y is there already or nothing else reads x + constant: neighbours then share x + y.
static bool add_behind(struct select *s, LLVMValueRef i, enum select_register home, unsigned place) {
  enum { LONGEST = 64 };
  LLVMValueRef part = LLVMGetOperand(i, place), x = part;
  if (LLVMIsConstant(LLVMGetOperand(i, 1 - place))) return false;
  uint64_t constant = 0;
  for (uint32_t k = 0; k < LONGEST && LLVMIsABinaryOperator(x); k++) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
    bool is_sum = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(x));
    if (!is_sum || !LLVMIsAConstantInt(LLVMGetOperand(x, 1))) break;
    constant += LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
    x = LLVMGetOperand(x, 0);
  }
  if (x == part) return false;
  struct select_operand first = select_get(s, x), y = operand(s, i, 1 - place), both;
  uint32_t known;
  if (!is_register(first) || !is_register(y)) return false;
  if (has_sum(s, home, first.number, y.number, &known)) both = (struct select_operand){.kind = SELECT_REGISTER, .home = (uint8_t)home, .number = known};
  else if (LLVMGetNextUse(LLVMGetFirstUse(part)) || LLVMGetInstructionParent(part) != LLVMGetInstructionParent(i)) return false;
  else both = select_sum(s, home, first, y);
  define(s, i, select_op2(s, home, home == REGISTER_32 ? "add.s32" : "add.s64", both, select_constant(home, constant)));
  return true;
}

static void add(struct select *s, LLVMValueRef i, uint32_t bits, enum select_register home) {
  static const struct names names = {"add.s16", "add.s32", "add.s64"};
  if (bits == 1) logic(s, i, "xor.pred", &names, bits, home);
  else if (bits <= 16) binary(s, i, &names, bits, home);
  else if (!add_product(s, i, bits, 0) && !add_product(s, i, bits, 1) && !add_behind(s, i, home, 0) && !add_behind(s, i, home, 1)) define(s, i, select_sum(s, home, operand(s, i, 0), operand(s, i, 1)));
}

// ptxas 13.0 forgets a neg.s16 of which min and max are made: not and add.
static void subtract(struct select *s, LLVMValueRef i, uint32_t bits, enum select_register home) {
  static const struct names names = {"sub.s16", "sub.s32", "sub.s64"}, negs = {NULL, "neg.s32", "neg.s64"};
  if (bits == 1) {
    logic(s, i, "xor.pred", &names, bits, home);
  } else if (!is_constant(LLVMGetOperand(i, 0), 0)) {
    binary(s, i, &names, bits, home);
  } else if (bits <= 16) {
    struct select_operand inverse = select_op1(s, home, "not.b16", operand(s, i, 1));
    define(s, i, select_op2(s, home, "add.s16", inverse, select_constant(REGISTER_16, 1)));
  } else {
    define(s, i, select_op1(s, home, name_for(&negs, bits), operand(s, i, 1)));
  }
}

// The count is a register of 32 bits.
static void shift(struct select *s, LLVMValueRef i, const struct names *names, uint32_t bits, enum select_register home) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  LLVMValueRef by = LLVMGetOperand(i, 1);
  bool is_constant_count = LLVMIsAConstantInt(by);
  uint64_t constant = is_constant_count ? LLVMConstIntGetZExtValue(by) : 0;
  if (opcode == LLVMShl && bits == 64 && is_constant_count && constant < 31 && wide_product(s, i, UINT64_C(1) << constant)) return;
  struct select_operand a = operand(s, i, 0), count = select_constant(REGISTER_32, constant);
  if (opcode != LLVMShl) a = select_widened(s, a, bits, opcode == LLVMAShr);
  if (!is_constant_count) {
    count = select_get(s, by);
    if (bits == 64) count = select_op1(s, REGISTER_32, "cvt.u32.u64", count);
    else if (bits <= 16) count = select_op1(s, REGISTER_32, "cvt.u32.u16", select_widened(s, count, bits, false));
  }
  struct select_operand result = select_op2(s, home, name_for(names, bits), a, count);
  result.is_zeroed = bits == 8 && opcode == LLVMLShr;
  define(s, i, result);
}

static void float_binary(struct select *s, LLVMValueRef i, const char *of_32, const char *of_64, const struct select_type *type) {
  if (type->bits == 16) select_refuse(s, "arithmetic of halves");
  define(s, i, select_op2(s, type->home, type->bits == 32 ? of_32 : of_64, operand(s, i, 0), operand(s, i, 1)));
}

static void float_divide(struct select *s, LLVMValueRef i, const struct select_type *type) {
  struct select_operand a = operand(s, i, 0);
  uint64_t one = type->bits == 32 ? UINT64_C(0x3F800000) : UINT64_C(0x3FF0000000000000);
  if (a.kind != SELECT_CONSTANT || a.bits != one || type->bits == 16) float_binary(s, i, "div.rn.f32", "div.rn.f64", type);
  else define(s, i, select_op1(s, type->home, type->bits == 32 ? "rcp.rn.f32" : "rcp.rn.f64", operand(s, i, 1)));
}

static void compare_integers(struct select *s, LLVMValueRef i) {
  static const char *const names[][3] = {
      {"setp.eq.s16", "setp.eq.s32", "setp.eq.s64"}, {"setp.ne.s16", "setp.ne.s32", "setp.ne.s64"}, {"setp.gt.u16", "setp.gt.u32", "setp.gt.u64"},
      {"setp.ge.u16", "setp.ge.u32", "setp.ge.u64"}, {"setp.lt.u16", "setp.lt.u32", "setp.lt.u64"}, {"setp.le.u16", "setp.le.u32", "setp.le.u64"},
      {"setp.gt.s16", "setp.gt.s32", "setp.gt.s64"}, {"setp.ge.s16", "setp.ge.s32", "setp.ge.s64"}, {"setp.lt.s16", "setp.lt.s32", "setp.lt.s64"},
      {"setp.le.s16", "setp.le.s32", "setp.le.s64"},
  };
  LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
  struct select_type type = select_type(LLVMTypeOf(LLVMGetOperand(i, 0)));
  if (type.lanes != 1 || !type.bits) {
    select_refuse(s, "a comparison of several lanes");
    return;
  }
  struct select_operand a = operand(s, i, 0), b = operand(s, i, 1);
  if (type.bits == 1) {
    if (predicate != LLVMIntEQ && predicate != LLVMIntNE) select_refuse(s, "an order of truth values");
    struct select_operand differ = select_op2(s, REGISTER_PREDICATE, "xor.pred", select_in_register(s, a), select_in_register(s, b));
    define(s, i, predicate == LLVMIntNE ? differ : negated(s, differ));
    return;
  }
  bool is_signed = predicate >= LLVMIntSGT;
  a = select_widened(s, a, type.bits, is_signed);
  b = select_widened(s, b, type.bits, is_signed);
  define(s, i, select_op2(s, REGISTER_PREDICATE, names[predicate - LLVMIntEQ][type.bits <= 16 ? 0 : type.bits == 32 ? 1 : 2], select_in_register(s, a), b));
}

static void compare_floats(struct select *s, LLVMValueRef i) {
  static const char *const names[][2] = {
      [LLVMRealOEQ] = {"setp.eq.f32", "setp.eq.f64"},   [LLVMRealOGT] = {"setp.gt.f32", "setp.gt.f64"},   [LLVMRealOGE] = {"setp.ge.f32", "setp.ge.f64"},
      [LLVMRealOLT] = {"setp.lt.f32", "setp.lt.f64"},   [LLVMRealOLE] = {"setp.le.f32", "setp.le.f64"},   [LLVMRealONE] = {"setp.ne.f32", "setp.ne.f64"},
      [LLVMRealORD] = {"setp.num.f32", "setp.num.f64"}, [LLVMRealUNO] = {"setp.nan.f32", "setp.nan.f64"}, [LLVMRealUEQ] = {"setp.equ.f32", "setp.equ.f64"},
      [LLVMRealUGT] = {"setp.gtu.f32", "setp.gtu.f64"}, [LLVMRealUGE] = {"setp.geu.f32", "setp.geu.f64"}, [LLVMRealULT] = {"setp.ltu.f32", "setp.ltu.f64"},
      [LLVMRealULE] = {"setp.leu.f32", "setp.leu.f64"}, [LLVMRealUNE] = {"setp.neu.f32", "setp.neu.f64"}, [LLVMRealPredicateTrue] = {NULL, NULL},
  };
  LLVMRealPredicate predicate = LLVMGetFCmpPredicate(i);
  struct select_type type = select_type(LLVMTypeOf(LLVMGetOperand(i, 0)));
  if (type.lanes != 1 || type.bits < 32 || !names[predicate][0]) {
    select_refuse(s, "a comparison of several lanes or of halves");
    return;
  }
  define(s, i, select_op2(s, REGISTER_PREDICATE, names[predicate][type.bits == 64], select_in_register(s, operand(s, i, 0)), operand(s, i, 1)));
}

// c ? a : b of truth values: (c and a) or (not c and b).
static struct select_operand choose_truth(struct select *s, struct select_operand c, struct select_operand a, struct select_operand b) {
  c = select_in_register(s, c);
  if (b.kind == SELECT_CONSTANT && !b.bits) return select_op2(s, REGISTER_PREDICATE, "and.pred", c, select_in_register(s, a));
  if (a.kind == SELECT_CONSTANT && a.bits) return select_op2(s, REGISTER_PREDICATE, "or.pred", c, select_in_register(s, b));
  struct select_operand other = negated(s, c);
  if (a.kind == SELECT_CONSTANT) return select_op2(s, REGISTER_PREDICATE, "and.pred", other, select_in_register(s, b));
  if (b.kind == SELECT_CONSTANT) return select_op2(s, REGISTER_PREDICATE, "or.pred", other, select_in_register(s, a));
  struct select_operand first = select_op2(s, REGISTER_PREDICATE, "and.pred", c, a), second = select_op2(s, REGISTER_PREDICATE, "and.pred", other, b);
  return select_op2(s, REGISTER_PREDICATE, "or.pred", first, second);
}

static void choose(struct select *s, LLVMValueRef i, const struct select_type *type) {
  static const char *const names[2][4] = {{NULL, "selp.b16", "selp.b32", "selp.b64"}, {NULL, "selp.b16", "selp.f32", "selp.f64"}};
  if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMVectorTypeKind || type->lanes > MOST_LANES) {
    select_refuse(s, "a choice of lanes");
    return;
  }
  struct select_operand condition = operand(s, i, 0), *lanes = arena_array(s->cg->context->arena, struct select_operand, type->lanes);
  if (type->bits != 1) condition = select_in_register(s, condition);
  for (uint32_t k = 0; k < type->lanes; k++) {
    struct select_operand a = select_lane(s, LLVMGetOperand(i, 1), k), b = select_lane(s, LLVMGetOperand(i, 2), k);
    if (type->bits == 1) {
      lanes[k] = choose_truth(s, condition, a, b);
    } else {
      lanes[k] = select_op3(s, type->home, names[type->is_float][type->home], a, b, condition);
      lanes[k].is_zeroed = type->bits == 8 && (a.is_zeroed || a.kind == SELECT_CONSTANT) && (b.is_zeroed || b.kind == SELECT_CONSTANT);
    }
  }
  select_define_lanes(s, i, lanes, type->lanes);
}

// --- Conversions -------------------------------------------------------------------------------------------

static void extend(struct select *s, LLVMValueRef i, const struct select_type *to, bool is_signed) {
  struct select_type from = select_type(LLVMTypeOf(LLVMGetOperand(i, 0)));
  struct select_operand a = operand(s, i, 0);
  static const char *const chosen[] = {NULL, "selp.b16", "selp.b32", "selp.b64"};
  if (from.lanes != 1 || !from.bits) {
    select_refuse(s, "an extension of lanes");
  } else if (from.bits == 1) {
    struct select_operand result = select_op3(s, to->home, chosen[to->home], select_constant(to->home, is_signed ? UINT64_MAX : 1), select_constant(to->home, 0), select_in_register(s, a));
    result.is_zeroed = !is_signed;
    define(s, i, result);
  } else if (from.bits <= 16) {
    a = select_in_register(s, select_widened(s, a, from.bits, is_signed));
    if (to->bits == 16) define(s, i, a);
    else define(s, i, select_op1(s, to->home, to->bits == 32 ? is_signed ? "cvt.s32.s16" : "cvt.u32.u16" : is_signed ? "cvt.s64.s16" : "cvt.u64.u16", a));
  } else {
    a = select_in_register(s, a);
    a.extended = is_signed ? 's' : 'u';
    a.home = REGISTER_64;
    define(s, i, a);
  }
}

// Whether the first reader of 8 bits takes them as a signed number.
static bool wants_sign(LLVMValueRef value) {
  LLVMUseRef use = LLVMGetFirstUse(value);
  LLVMValueRef user = use ? LLVMGetUser(use) : NULL;
  if (!user || !LLVMIsAInstruction(user)) return false;
  LLVMOpcode opcode = LLVMGetInstructionOpcode(user);
  if (opcode == LLVMCall && LLVMIsAFunction(LLVMGetCalledValue(user))) {
    size_t length;
    const char *name = LLVMGetValueName2(LLVMGetCalledValue(user), &length);
    return strncmp(name, "llvm.sm", 7) == 0 || strncmp(name, "llvm.abs", 8) == 0;
  }
  if (opcode == LLVMICmp) return LLVMGetICmpPredicate(user) >= LLVMIntSGT;
  return opcode == LLVMSExt || opcode == LLVMSIToFP || opcode == LLVMAShr || opcode == LLVMSDiv || opcode == LLVMSRem;
}

static bool is_upper_half(LLVMValueRef value) {
  return LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == LLVMLShr && is_constant(LLVMGetOperand(value, 1), 16);
}

bool select_is_cut_by_store(LLVMValueRef value) {
  if (!LLVMIsATruncInst(value) || select_type(LLVMTypeOf(value)).bits < 8 || select_type(LLVMTypeOf(LLVMGetOperand(value, 0))).bits != 32) return false;
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
    if (!LLVMIsAStoreInst(LLVMGetUser(use))) return false;
  return true;
}

static void truncate(struct select *s, LLVMValueRef i, const struct select_type *to) {
  struct select_type from = select_type(LLVMTypeOf(LLVMGetOperand(i, 0)));
  if (select_is_cut_by_store(i)) return;
  struct select_operand a = select_raw(s, LLVMGetOperand(i, 0));
  if (from.bits == 64 && a.extended) { // its lower half is there
    a.extended = 0;
    a.home = REGISTER_32;
    from.bits = 32;
  } else {
    a = operand(s, i, 0);
  }
  if (from.lanes != 1 || !from.bits) {
    select_refuse(s, "a truncation of lanes");
  } else if (to->bits == 1) {
    static const struct names ands = {"and.b16", "and.b32", "and.b64"}, tests = {"setp.ne.s16", "setp.ne.s32", "setp.ne.s64"};
    struct select_operand low = select_op2(s, from.home, name_for(&ands, from.bits), a, select_constant(from.home, 1));
    define(s, i, select_op2(s, REGISTER_PREDICATE, name_for(&tests, from.bits), low, select_constant(from.home, 0)));
  } else if (to->bits == 32) {
    define(s, i, from.bits == 32 ? a : select_op1(s, REGISTER_32, "cvt.u32.u64", select_in_register(s, a)));
  } else if (from.bits == 16) {
    a.is_zeroed = a.is_signed = false;
    define(s, i, a);
  } else if (to->bits == 16 && from.bits == 32 && is_upper_half(LLVMGetOperand(i, 0))) {
    struct select_operand low = select_new(s, REGISTER_16), high = select_new(s, REGISTER_16), whole = select_in_register(s, operand(s, LLVMGetOperand(i, 0), 0));
    text_printf(&s->body, "\tmov.b32 \t{%%rs%u, %%rs%u}, ", (unsigned)low.number, (unsigned)high.number);
    select_operand_text(&s->body, whole);
    text_puts(&s->body, ";\n");
    define(s, i, high);
  } else if (to->bits == 16) {
    define(s, i, select_op1(s, REGISTER_16, from.bits == 32 ? "cvt.u16.u32" : "cvt.u16.u64", select_in_register(s, a)));
  } else { // the upper half as the first reader wants it
    bool is_signed = wants_sign(i);
    a = select_in_register(s, a);
    if (is_signed && from.bits == 32) {
      LLVMValueRef shifted = LLVMGetOperand(i, 0), by = LLVMIsABinaryOperator(shifted) && LLVMGetInstructionOpcode(shifted) == LLVMLShr ? LLVMGetOperand(shifted, 1) : NULL;
      if (by && LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) <= 24)
        a = select_op3(s, REGISTER_32, "bfe.s32", select_in_register(s, operand(s, shifted, 0)), operand(s, shifted, 1), select_constant(REGISTER_32, 8));
      a = select_op1(s, REGISTER_16, "cvt.s8.s32", a);
    } else {
      a = select_op1(s, REGISTER_16, is_signed ? "cvt.s16.s8" : "cvt.u16.u8", a);
    }
    a.is_signed = is_signed;
    a.is_zeroed = !is_signed;
    define(s, i, a);
  }
}

static void to_float(struct select *s, LLVMValueRef i, const struct select_type *to, bool is_signed) {
  static const char *const names[2][2][3] = {{{"cvt.rn.f32.u16", "cvt.rn.f32.u32", "cvt.rn.f32.u64"}, {"cvt.rn.f32.s16", "cvt.rn.f32.s32", "cvt.rn.f32.s64"}},
                                             {{"cvt.rn.f64.u16", "cvt.rn.f64.u32", "cvt.rn.f64.u64"}, {"cvt.rn.f64.s16", "cvt.rn.f64.s32", "cvt.rn.f64.s64"}}};
  struct select_type from = select_type(LLVMTypeOf(LLVMGetOperand(i, 0)));
  if (from.lanes != 1 || from.bits == 0 || to->bits == 16) {
    select_refuse(s, "a conversion to halves or of lanes");
    return;
  }
  struct select_operand a = operand(s, i, 0);
  if (from.bits == 1) {
    uint64_t one = to->bits == 32 ? is_signed ? 0xBF800000 : 0x3F800000 : is_signed ? UINT64_C(0xBFF0000000000000) : UINT64_C(0x3FF0000000000000);
    define(s, i, select_op3(s, to->home, to->bits == 32 ? "selp.f32" : "selp.f64", select_constant(to->home, one), select_constant(to->home, 0), select_in_register(s, a)));
    return;
  }
  a = select_in_register(s, select_widened(s, a, from.bits, is_signed));
  define(s, i, select_op1(s, to->home, names[to->bits == 64][is_signed][from.bits <= 16 ? 0 : from.bits == 32 ? 1 : 2], a));
}

static void resize_float(struct select *s, LLVMValueRef i) {
  LLVMTypeKind from = LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))), to = LLVMGetTypeKind(LLVMTypeOf(i));
  static const struct {
    LLVMTypeKind from, to;
    enum select_register home;
    const char *name;
  } forms[] = {
      {LLVMHalfTypeKind, LLVMFloatTypeKind, REGISTER_32, "cvt.f32.f16"},      {LLVMHalfTypeKind, LLVMDoubleTypeKind, REGISTER_64, "cvt.f64.f16"},
      {LLVMFloatTypeKind, LLVMDoubleTypeKind, REGISTER_64, "cvt.f64.f32"},    {LLVMFloatTypeKind, LLVMHalfTypeKind, REGISTER_16, "cvt.rn.f16.f32"},
      {LLVMDoubleTypeKind, LLVMHalfTypeKind, REGISTER_16, "cvt.rn.f16.f64"},  {LLVMDoubleTypeKind, LLVMFloatTypeKind, REGISTER_32, "cvt.rn.f32.f64"},
      {LLVMFloatTypeKind, LLVMBFloatTypeKind, REGISTER_16, "cvt.rn.bf16.f32"},
  };
  for (uint32_t k = 0; k < sizeof forms / sizeof *forms; k++)
    if (forms[k].from == from && forms[k].to == to) {
      define(s, i, select_op1(s, forms[k].home, forms[k].name, select_in_register(s, operand(s, i, 0))));
      return;
    }
  select_refuse(s, "a conversion between floats of other types");
}

// Lane `k` of `lanes` of a value of half as many, or of twice as many: a part of a register, or two in one.
static struct select_operand repacked(struct select *s, LLVMValueRef a, const struct select_type *from, const struct select_type *to, uint32_t k) {
  static const char *const moves[] = {NULL, NULL, "mov.b32", "mov.b64"};
  struct text *out = &s->body;
  struct select_operand result = select_new(s, to->home);
  if (from->lanes < to->lanes) {
    struct select_operand whole = select_in_register(s, select_lane(s, a, k / 2)), other = select_new(s, to->home), low = k % 2 ? other : result, high = k % 2 ? result : other;
    text_printf(out, "\t%s \t{", moves[from->home]);
    select_operand_text(out, low);
    text_puts(out, ", ");
    select_operand_text(out, high);
    text_puts(out, "}, ");
    select_operand_text(out, whole);
  } else {
    struct select_operand low = select_in_register(s, select_lane(s, a, 2 * k)), high = select_in_register(s, select_lane(s, a, 2 * k + 1));
    text_printf(out, "\t%s \t", moves[to->home]);
    select_operand_text(out, result);
    text_puts(out, ", {");
    select_operand_text(out, low);
    text_puts(out, ", ");
    select_operand_text(out, high);
    text_puts(out, "}");
  }
  text_puts(out, ";\n");
  return result;
}

// The same bits: the same registers, where the lanes are as many.
static void reinterpret(struct select *s, LLVMValueRef i, const struct select_type *to) {
  LLVMValueRef a = LLVMGetOperand(i, 0);
  struct select_type from = select_type(LLVMTypeOf(a));
  uint32_t narrow = from.bits < to->bits ? from.bits : to->bits;
  bool is_same = from.lanes == to->lanes && from.bits == to->bits, is_repacked = from.lanes * from.bits == to->lanes * to->bits && narrow >= 16 && from.bits + to->bits == 3 * narrow;
  if (to->lanes > MOST_LANES || (!is_same && !is_repacked)) {
    select_refuse(s, "bits of several lanes in one");
    return;
  }
  struct select_operand *lanes = arena_array(s->cg->context->arena, struct select_operand, to->lanes);
  for (uint32_t k = 0; k < to->lanes; k++) lanes[k] = is_same ? select_lane(s, a, k) : repacked(s, a, &from, to, k);
  select_define_lanes(s, i, lanes, to->lanes);
}

static void pointer_to_integer(struct select *s, LLVMValueRef i, const struct select_type *to) {
  struct select_operand a = select_raw(s, LLVMGetOperand(i, 0));
  if (to->bits == 64) define(s, i, a);
  else if (to->bits == 32) define(s, i, select_op1(s, REGISTER_32, "cvt.u32.u64", select_in_register(s, operand(s, i, 0))));
  else select_refuse(s, "a pointer as a narrow integer");
}

// --- Lanes -------------------------------------------------------------------------------------------------

static void extract(struct select *s, LLVMValueRef i) {
  LLVMValueRef place = LLVMGetOperand(i, 1);
  if (!LLVMIsAConstantInt(place)) {
    select_refuse(s, "a lane by a number");
    return;
  }
  struct select_operand lane = select_lane(s, LLVMGetOperand(i, 0), (uint32_t)LLVMConstIntGetZExtValue(place));
  define(s, i, lane);
}

static void insert(struct select *s, LLVMValueRef i, const struct select_type *type) {
  LLVMValueRef place = LLVMGetOperand(i, 2);
  uint64_t at = LLVMIsAConstantInt(place) ? LLVMConstIntGetZExtValue(place) : UINT64_MAX;
  if (at >= type->lanes || type->lanes > MOST_LANES) {
    select_refuse(s, "a lane by a number");
    return;
  }
  struct select_operand *lanes = arena_array(s->cg->context->arena, struct select_operand, type->lanes);
  for (uint32_t k = 0; k < type->lanes; k++) lanes[k] = k == at ? operand(s, i, 1) : select_lane(s, LLVMGetOperand(i, 0), k);
  select_define_lanes(s, i, lanes, type->lanes);
}

static void shuffle(struct select *s, LLVMValueRef i, const struct select_type *type) {
  uint32_t from = LLVMGetVectorSize(LLVMTypeOf(LLVMGetOperand(i, 0)));
  if (type->lanes > MOST_LANES) {
    select_refuse(s, "many lanes");
    return;
  }
  struct select_operand *lanes = arena_array(s->cg->context->arena, struct select_operand, type->lanes);
  for (uint32_t k = 0; k < type->lanes; k++) {
    int at = LLVMGetMaskValue(i, k);
    lanes[k] = at < 0                 ? select_constant(type->home, 0)
               : (uint32_t)at < from ? select_lane(s, LLVMGetOperand(i, 0), (uint32_t)at)
                                     : select_lane(s, LLVMGetOperand(i, 1), (uint32_t)at - from);
  }
  select_define_lanes(s, i, lanes, type->lanes);
}

static void part(struct select *s, LLVMValueRef i) {
  if (LLVMGetNumIndices(i) != 1) select_refuse(s, "a part of a part");
  else define(s, i, select_lane(s, LLVMGetOperand(i, 0), *LLVMGetIndices(i)));
}

// --- Dispatch ----------------------------------------------------------------------------------------------

static void arithmetic(struct select *s, LLVMValueRef i, LLVMOpcode opcode, const struct select_type *type) {
  static const struct names muls = {"mul.lo.s16", "mul.lo.s32", "mul.lo.s64"}, ands = {"and.b16", "and.b32", "and.b64"}, ors = {"or.b16", "or.b32", "or.b64"},
                            shls = {"shl.b16", "shl.b32", "shl.b64"}, lshrs = {"shr.u16", "shr.u32", "shr.u64"}, ashrs = {"shr.s16", "shr.s32", "shr.s64"};
  if (type->lanes != 1) {
    select_refuse(s, "arithmetic of lanes");
    return;
  }
  bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem, is_remainder = opcode == LLVMSRem || opcode == LLVMURem;
  switch ((int)opcode) {
  case LLVMAdd: add(s, i, type->bits, type->home); break;
  case LLVMSub: subtract(s, i, type->bits, type->home); break;
  case LLVMMul:
    if (type->bits == 1) logic(s, i, "and.pred", &ands, 1, type->home);
    else if (type->bits != 64 || !wide_multiplication(s, i)) binary(s, i, &muls, type->bits, type->home);
    break;
  case LLVMAnd: logic(s, i, "and.pred", &ands, type->bits, type->home); break;
  case LLVMOr: logic(s, i, "or.pred", &ors, type->bits, type->home); break;
  case LLVMXor: exclusive_or(s, i, type->bits, type->home); break;
  case LLVMShl: shift(s, i, &shls, type->bits, type->home); break;
  case LLVMLShr: shift(s, i, &lshrs, type->bits, type->home); break;
  case LLVMAShr: shift(s, i, &ashrs, type->bits, type->home); break;
  case LLVMFAdd: float_binary(s, i, "add.rn.f32", "add.rn.f64", type); break;
  case LLVMFSub: float_binary(s, i, "sub.rn.f32", "sub.rn.f64", type); break;
  case LLVMFMul: float_binary(s, i, "mul.rn.f32", "mul.rn.f64", type); break;
  case LLVMFDiv: float_divide(s, i, type); break;
  case LLVMFNeg:
    if (type->bits == 16) select_refuse(s, "a half's negation");
    else define(s, i, select_op1(s, type->home, type->bits == 32 ? "neg.f32" : "neg.f64", operand(s, i, 0)));
    break;
  default: define(s, i, select_divide(s, i, type->bits, is_signed, is_remainder)); break;
  }
}

static void conversion(struct select *s, LLVMValueRef i, LLVMOpcode opcode, const struct select_type *type) {
  if (opcode == LLVMBitCast) reinterpret(s, i, type);
  else if (type->lanes != 1) select_refuse(s, "a conversion of lanes");
  else if (opcode == LLVMZExt || opcode == LLVMSExt) extend(s, i, type, opcode == LLVMSExt);
  else if (opcode == LLVMTrunc) truncate(s, i, type);
  else if (opcode == LLVMSIToFP || opcode == LLVMUIToFP) to_float(s, i, type, opcode == LLVMSIToFP);
  else if (opcode == LLVMPtrToInt) pointer_to_integer(s, i, type);
  else resize_float(s, i);
}

void select_instruction(struct select *s, LLVMValueRef i) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  struct select_type type = select_type(LLVMTypeOf(i));
  bool has_parts = opcode == LLVMCall || opcode == LLVMStore || opcode == LLVMExtractValue;
  if (!type.bits && !has_parts) {
    select_refuse(s, "a type of another size");
    return;
  }
  switch ((int)opcode) {
  case LLVMAdd: case LLVMSub: case LLVMMul: case LLVMAnd: case LLVMOr: case LLVMXor: case LLVMShl: case LLVMLShr: case LLVMAShr: case LLVMFAdd: case LLVMFSub:
  case LLVMFMul: case LLVMFDiv: case LLVMFNeg: case LLVMSDiv: case LLVMUDiv: case LLVMSRem: case LLVMURem: arithmetic(s, i, opcode, &type); break;
  case LLVMZExt: case LLVMSExt: case LLVMTrunc: case LLVMSIToFP: case LLVMUIToFP: case LLVMFPExt: case LLVMFPTrunc: case LLVMBitCast: case LLVMPtrToInt:
    conversion(s, i, opcode, &type);
    break;
  case LLVMICmp: compare_integers(s, i); break;
  case LLVMFCmp: compare_floats(s, i); break;
  case LLVMSelect: choose(s, i, &type); break;
  case LLVMFreeze: reinterpret(s, i, &type); break;
  case LLVMExtractElement: extract(s, i); break;
  case LLVMInsertElement: insert(s, i, &type); break;
  case LLVMShuffleVector: shuffle(s, i, &type); break;
  case LLVMExtractValue: part(s, i); break;
  case LLVMGetElementPtr: select_address(s, i); break;
  case LLVMLoad: select_load(s, i); break;
  case LLVMStore: select_store(s, i); break;
  case LLVMAlloca: select_slot(s, i); break;
  case LLVMCall: select_call(s, i); break;
  default: select_refuse(s, "an instruction of another kind"); break;
  }
}
