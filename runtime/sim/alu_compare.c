// Comparison and selection: setp, set, selp, slct, testp, isspacep. Predicates are words with a bit a lane.
#include "runtime/sim/decode.h"
#include "runtime/sim/number.h"

#define HANDLER(name) static void name(struct sim_warp *warp, const struct sim_op *op, uint32_t mask)

// The unordered comparisons follow the ordered ones in the same order; lo, ls, hi, hs are unsigned lt, le,
// gt, ge.
enum { EQ, NE, LT, LE, GT, GE, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NAN_ };

static const char *const comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

#define ORDER(expr)                                                                                          \
  do {                                                                                                       \
    uint32_t out_ = 0;                                                                                       \
    for (unsigned l = 0; l < SIM_LANES; l++) out_ |= (uint32_t)(expr) << l;                                  \
    return out_;                                                                                             \
  } while (0)

// All lanes are compared; those that are not active hold some number too.
#define COMPARE(name, T, W)                                                                                  \
  static uint32_t compare_##name(const W *a, const W *b, unsigned how) {                                     \
    switch (how) {                                                                                           \
    case EQ: ORDER((T)a[l] == (T)b[l]);                                                                      \
    case NE: ORDER((T)a[l] != (T)b[l]);                                                                      \
    case LT: ORDER((T)a[l] < (T)b[l]);                                                                       \
    case LE: ORDER((T)a[l] <= (T)b[l]);                                                                      \
    case GT: ORDER((T)a[l] > (T)b[l]);                                                                       \
    default: ORDER((T)a[l] >= (T)b[l]);                                                                      \
    }                                                                                                        \
  }
COMPARE(u16, uint16_t, sim_u32)
COMPARE(s16, int16_t, sim_u32)
COMPARE(u32, uint32_t, sim_u32)
COMPARE(s32, int32_t, sim_u32)
COMPARE(u64, uint64_t, sim_u64)
COMPARE(s64, int64_t, sim_u64)

#define COMPARE_FLOAT(name, T)                                                                               \
  static uint32_t compare_##name(const T *a, const T *b, unsigned how) {                                     \
    switch (how) {                                                                                           \
    case EQ: ORDER(a[l] == b[l]);                                                                            \
    case NE: ORDER(a[l]<b[l] || a[l]> b[l]);                                                                 \
    case LT: ORDER(a[l] < b[l]);                                                                             \
    case LE: ORDER(a[l] <= b[l]);                                                                            \
    case GT: ORDER(a[l] > b[l]);                                                                             \
    case GE: ORDER(a[l] >= b[l]);                                                                            \
    case EQU: ORDER(!(a[l] < b[l] || a[l] > b[l]));                                                          \
    case NEU: ORDER(a[l] != b[l]);                                                                           \
    case LTU: ORDER(!(a[l] >= b[l]));                                                                        \
    case LEU: ORDER(!(a[l] > b[l]));                                                                         \
    case GTU: ORDER(!(a[l] <= b[l]));                                                                        \
    case GEU: ORDER(!(a[l] < b[l]));                                                                         \
    case NUM: ORDER(a[l] == a[l] && b[l] == b[l]);                                                           \
    default: ORDER(a[l] != a[l] || b[l] != b[l]);                                                            \
    }                                                                                                        \
  }
COMPARE_FLOAT(f32, sim_f32)
COMPARE_FLOAT(f64, sim_f64)

// Values of singles or halves for a comparison, flushed where the op says so. `part` is the half of a pair.
static uint32_t compare_narrow(struct sim_warp *warp, const struct sim_op *op, unsigned part) {
  sim_f32 a[SIM_LANES], b[SIM_LANES];
  const sim_u32 *pa = sim_r32(warp, op->a), *pb = sim_r32(warp, op->b);
  for (unsigned l = 0; l < SIM_LANES; l++) {
    if (op->from == SIM_F32) {
      a[l] = sim_float(pa[l]), b[l] = sim_float(pb[l]);
    } else if (op->from == SIM_F16 || op->from == SIM_F16X2) {
      a[l] = sim_half_value(pa[l] >> (16 * part)), b[l] = sim_half_value(pb[l] >> (16 * part));
    } else {
      a[l] = sim_bfloat_value(pa[l] >> (16 * part) & 0xffff),
      b[l] = sim_bfloat_value(pb[l] >> (16 * part) & 0xffff);
    }
    if (!op->is_ftz) continue;
    if (op->from == SIM_F32) {
      a[l] = sim_flush(a[l]), b[l] = sim_flush(b[l]);
    } else {
      if (a[l] < 0x1p-14f && a[l] > -0x1p-14f) a[l] = 0;
      if (b[l] < 0x1p-14f && b[l] > -0x1p-14f) b[l] = 0;
    }
  }
  return compare_f32(a, b, op->sub);
}

// The comparison of an op's a and b in all lanes; op->from is their type.
static uint32_t compare(struct sim_warp *warp, const struct sim_op *op) {
  const sim_u32 *a = sim_r32(warp, op->a), *b = sim_r32(warp, op->b);
  const sim_u64 *wide_a = sim_r64(warp, op->a), *wide_b = sim_r64(warp, op->b);
  switch ((enum sim_type)op->from) {
  case SIM_U16:
  case SIM_B16: return compare_u16(a, b, op->sub);
  case SIM_S16: return compare_s16(a, b, op->sub);
  case SIM_U32:
  case SIM_B32: return compare_u32(a, b, op->sub);
  case SIM_S32: return compare_s32(a, b, op->sub);
  case SIM_U64:
  case SIM_B64: return compare_u64(wide_a, wide_b, op->sub);
  case SIM_S64: return compare_s64(wide_a, wide_b, op->sub);
  case SIM_F32:
    if (!op->is_ftz) return compare_f32(sim_f32s(warp, op->a), sim_f32s(warp, op->b), op->sub);
    return compare_narrow(warp, op, 0);
  case SIM_F64: return compare_f64(sim_f64s(warp, op->a), sim_f64s(warp, op->b), op->sub);
  case SIM_F16:
  case SIM_BF16:
  case SIM_F16X2:
  case SIM_BF16X2: return compare_narrow(warp, op, 0);
  case SIM_PRED:
  case SIM_B8:
  case SIM_U8:
  case SIM_S8:
  case SIM_B128:
  case SIM_U16X2:
  case SIM_S16X2:
  case SIM_F32X2:
  case SIM_TYPES: break;
  }
  return 0;
}

enum { NO_BOOL, AND, OR, XOR };

static uint32_t combine(unsigned how, uint32_t a, uint32_t b) {
  return how == AND ? a & b : how == OR ? a | b : how == XOR ? a ^ b : a;
}

HANDLER(setp) {
  uint32_t truth = compare(warp, op), c = *sim_pred(warp, op->c);
  bool is_pair = op->from == SIM_F16X2 || op->from == SIM_BF16X2;
  uint32_t second = is_pair ? compare_narrow(warp, op, 1) : ~truth;
  if (op->c_is_negated) c = ~c;
  sim_u32 *d = sim_pred(warp, op->d), *e = sim_pred(warp, op->e);
  truth = combine(op->rounding, truth, c);
  *d = (*d & ~mask) | (truth & mask);
  if (op->immediate) *e = (*e & ~mask) | (combine(op->rounding, second, c) & mask);
}

// set: all ones or zero for integers, 1.0 or 0 for floats; op->type is the result's.
HANDLER(set) {
  uint32_t truth = compare(warp, op), c = *sim_pred(warp, op->c);
  bool is_pair = op->from == SIM_F16X2 || op->from == SIM_BF16X2;
  uint32_t second = is_pair ? compare_narrow(warp, op, 1) : 0;
  if (op->c_is_negated) c = ~c;
  truth = combine(op->rounding, truth, c);
  second = combine(op->rounding, second, c);
  uint32_t one = (uint32_t)op->immediate;
  sim_u32 *d = sim_r32(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    d[l] = truth >> l & 1 ? one : 0;
    if (is_pair) d[l] = (d[l] & 0xffff) | (second >> l & 1 ? one << 16 : 0);
  }
}

// selp and slct handle poison themselves: what is not chosen does not count.
static void select_poison(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, uint32_t chosen) {
  uint32_t a = *sim_poison(warp, op->a), b = *sim_poison(warp, op->b), *d = sim_poison(warp, op->d);
  uint32_t poison = *sim_poison(warp, op->c) | (a & chosen) | (b & ~chosen);
  *d = (*d & ~mask) | (poison & mask);
}

static void pick(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, uint32_t chosen) {
  select_poison(warp, op, mask, chosen);
  if (op->width == 64) {
    const sim_u64 *a = sim_r64(warp, op->a), *b = sim_r64(warp, op->b);
    sim_u64 *d = sim_r64(warp, op->d);
    SIM_EACH(mask, l, { d[l] = chosen >> l & 1 ? a[l] : b[l]; });
  } else {
    const sim_u32 *a = sim_r32(warp, op->a), *b = sim_r32(warp, op->b);
    sim_u32 *d = sim_r32(warp, op->d);
    SIM_EACH(mask, l, { d[l] = chosen >> l & 1 ? a[l] : b[l]; });
  }
}

HANDLER(selp) {
  pick(warp, op, mask, *sim_pred(warp, op->c) ^ (op->c_is_negated ? SIM_FULL : 0));
}

HANDLER(slct) {
  uint32_t chosen = 0;
  SIM_EACH_BIT(mask, l) {
    uint32_t c = sim_r32(warp, op->c)[l];
    bool is_first =
        op->from == SIM_S32 ? (int32_t)c >= 0 : (op->is_ftz ? sim_flush(sim_float(c)) : sim_float(c)) >= 0;
    chosen |= (uint32_t)is_first << l;
  }
  pick(warp, op, mask, chosen);
}

enum { FINITE, INFINITE, NUMBER, NOTANUMBER, NORMAL, SUBNORMAL };

HANDLER(testp) {
  uint32_t out = 0;
  SIM_EACH_BIT(mask, l) {
    double value = op->type == SIM_F32 ? (double)sim_f32s(warp, op->a)[l] : sim_f64s(warp, op->a)[l];
    double least = op->type == SIM_F32 ? 0x1p-126 : 0x1p-1022;
    bool truth = false;
    switch (op->sub) {
    case FINITE: truth = isfinite(value); break;
    case INFINITE: truth = isinf(value); break;
    case NUMBER: truth = value == value; break;
    case NOTANUMBER: truth = value != value; break;
    case NORMAL: truth = isfinite(value) && (value == 0 || fabs(value) >= least); break; // zeros count
    case SUBNORMAL: truth = value != 0 && fabs(value) < least; break;
    }
    out |= (uint32_t)truth << l;
  }
  sim_u32 *d = sim_pred(warp, op->d);
  *d = (*d & ~mask) | out;
}

HANDLER(isspacep) {
  uint32_t out = 0;
  SIM_EACH_BIT(mask, l) {
    uint64_t address = sim_r64(warp, op->a)[l];
    enum sim_space space = SIM_SPACE_GLOBAL;
    if (address >= SIM_SHARED_BASE && address < SIM_SHARED_BASE + SIM_WINDOW) space = SIM_SPACE_SHARED;
    if (address >= SIM_LOCAL_BASE && address < SIM_LOCAL_BASE + SIM_WINDOW) space = SIM_SPACE_LOCAL;
    if (address >= SIM_PARAM_BASE && address < SIM_PARAM_BASE + SIM_WINDOW) space = SIM_SPACE_PARAM;
    const struct sim_allocation *allocation = sim_slot(warp->block->launch->memory, address);
    if (allocation && allocation->is_constant) space = SIM_SPACE_CONST;
    out |= (uint32_t)(space == (enum sim_space)op->space) << l;
  }
  sim_u32 *d = sim_pred(warp, op->d);
  *d = (*d & ~mask) | out;
}

// ---- Decoding
// ----------------------------------------------------------------------------------------------

// The comparison and the Boolean operation that joins it with a predicate, into sub and rounding.
static void take_comparison(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool is_found = false;
  for (unsigned i = 0; i < sizeof comparisons / sizeof *comparisons && !is_found; i++) {
    if (sim_take(decoder, comparisons[i])) op->sub = (uint8_t)i, is_found = true;
  }
  static const char *const unsigned_names[] = {"lo", "ls", "hi", "hs"};
  for (unsigned i = 0; i < 4 && !is_found; i++) {
    if (sim_take(decoder, unsigned_names[i])) op->sub = (uint8_t)(LT + i), is_found = true;
  }
  if (!is_found) sim_fail(decoder, "'%s' needs a comparison", decoder->instruction->opcode);
  if (sim_take(decoder, "and")) op->rounding = AND;
  if (sim_take(decoder, "or")) op->rounding = OR;
  if (sim_take(decoder, "xor")) op->rounding = XOR;
  op->is_ftz = sim_take(decoder, "ftz");
}

// Sources a, b of op->from and, with a Boolean operation, the predicate c.
static void compared(struct sim_decoder *decoder, enum sim_type type) {
  struct sim_op *op = decoder->op;
  bool is_float = sim_type_kind(type) == SIM_KIND_F;
  unsigned bits = sim_type_bits(type);
  if (bits < 16 || bits > 64 || type == SIM_U16X2 || type == SIM_S16X2 || type == SIM_F32X2) {
    sim_fail(decoder, "'%s' does not take the type .%s", decoder->instruction->opcode, sim_type_name(type));
  }
  if (!is_float && op->sub > GE) sim_fail(decoder, "this comparison is for floats only");
  if (sim_type_kind(type) == SIM_KIND_B && op->sub > NE)
    sim_fail(decoder, "bits are compared by .eq and .ne only");
  op->from = (uint8_t)type;
  sim_operand_count(decoder, op->rounding ? 4 : 3, op->rounding ? 4 : 3);
  op->a = sim_source(decoder, 1, type);
  op->b = sim_source(decoder, 2, type);
  if (op->rounding) op->c = sim_predicate(decoder, sim_operand_at(decoder, 3), &op->c_is_negated);
}

void sim_decode_setp(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  take_comparison(decoder);
  enum sim_type type = sim_take_type(decoder);
  op->run = setp;
  compared(decoder, type);
  const struct ptx_operand *result = sim_operand_at(decoder, 0);
  if (result->kind == PTX_PAIR) {
    op->d = sim_result_of(decoder, result->items, SIM_PRED);
    op->e = sim_result_of(decoder, result->items->next, SIM_PRED);
    op->immediate = 1;
  } else {
    op->d = sim_result_of(decoder, result, SIM_PRED);
  }
}

bool sim_is_plain_test(const struct sim_op *op) {
  return op->run == setp && (op->sub == EQ || op->sub == NE) && !op->rounding && !op->immediate &&
         sim_type_bits((enum sim_type)op->from) == 32 && sim_type_kind((enum sim_type)op->from) != SIM_KIND_F;
}

void sim_decode_set(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  take_comparison(decoder);
  enum sim_type to = sim_take_type(decoder), type = sim_take_type(decoder);
  op->run = set;
  op->type = (uint8_t)to;
  compared(decoder, type);
  op->d = sim_result(decoder, 0, to);
  switch (to) {
  case SIM_F32: op->immediate = 0x3f800000; break;
  case SIM_F16:
  case SIM_F16X2: op->immediate = 0x3c00; break;
  case SIM_BF16:
  case SIM_BF16X2: op->immediate = 0x3f80; break;
  case SIM_U32:
  case SIM_S32: op->immediate = SIM_FULL; break;
  case SIM_U16:
  case SIM_S16: op->immediate = 0xffff; break;
  case SIM_PRED:
  case SIM_B8:
  case SIM_B16:
  case SIM_B32:
  case SIM_B64:
  case SIM_B128:
  case SIM_U8:
  case SIM_U64:
  case SIM_S8:
  case SIM_S64:
  case SIM_U16X2:
  case SIM_S16X2:
  case SIM_F32X2:
  case SIM_F64:
  case SIM_TYPES: sim_fail(decoder, "'set' does not give the type .%s", sim_type_name(to));
  }
  bool is_pair = type == SIM_F16X2 || type == SIM_BF16X2;
  if (is_pair) op->immediate &= 0xffff;
}

void sim_decode_selp(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  enum sim_type type = sim_take_type(decoder);
  unsigned bits = sim_type_bits(type);
  if (bits < 16 || bits > 64) sim_fail(decoder, "'selp' does not take the type .%s", sim_type_name(type));
  op->kind = SIM_OP_RUN;
  op->run = selp;
  op->width = bits == 64 ? 64 : 32;
  sim_operand_count(decoder, 4, 4);
  op->d = sim_result(decoder, 0, type);
  op->a = sim_source(decoder, 1, type);
  op->b = sim_source(decoder, 2, type);
  op->c = sim_predicate(decoder, sim_operand_at(decoder, 3), &op->c_is_negated);
}

void sim_decode_slct(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  op->is_ftz = sim_take(decoder, "ftz");
  enum sim_type type = sim_take_type(decoder), of = sim_take_type(decoder);
  unsigned bits = sim_type_bits(type);
  if (bits < 16 || bits > 64 || (of != SIM_S32 && of != SIM_F32))
    sim_fail(decoder, "'slct' does not take these types");
  op->kind = SIM_OP_RUN;
  op->run = slct;
  op->width = bits == 64 ? 64 : 32;
  op->from = (uint8_t)of;
  sim_operand_count(decoder, 4, 4);
  op->d = sim_result(decoder, 0, type);
  op->a = sim_source(decoder, 1, type);
  op->b = sim_source(decoder, 2, type);
  op->c = sim_source(decoder, 3, of);
}

void sim_decode_testp(struct sim_decoder *decoder) {
  static const char *const names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  struct sim_op *op = decoder->op;
  bool is_found = false;
  for (unsigned i = 0; i < 6; i++) {
    if (sim_take(decoder, names[i])) op->sub = (uint8_t)i, is_found = true;
  }
  enum sim_type type = sim_take_type(decoder);
  if (!is_found || (type != SIM_F32 && type != SIM_F64))
    sim_fail(decoder, "'testp' needs a property and .f32 or .f64");
  op->run = testp;
  op->type = (uint8_t)type;
  sim_operand_count(decoder, 2, 2);
  op->d = sim_result(decoder, 0, SIM_PRED);
  op->a = sim_source(decoder, 1, type);
}

void sim_decode_isspacep(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  op->space = (uint8_t)sim_take_space(decoder);
  if (op->space == SIM_SPACE_GENERIC) sim_fail(decoder, "'isspacep' needs a state space");
  op->run = isspacep;
  sim_operand_count(decoder, 2, 2);
  op->d = sim_result(decoder, 0, SIM_PRED);
  op->a = sim_source(decoder, 1, SIM_U64);
}
