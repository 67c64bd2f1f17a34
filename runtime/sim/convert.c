// cvt: conversions between all integer and floating-point types.
#include "runtime/sim/decode.h"
#include "runtime/sim/number.h"

#define HANDLER(name) static void name(struct sim_warp *warp, const struct sim_op *op, uint32_t mask)

// Bits of NaN from one format in another. Conversions from and to doubles keep the sign and the leading bits and make it quiet, those that only
// move bits keep it as it is, all others give the canonical one.
static uint64_t convert_nan(uint64_t bits, enum sim_type to, enum sim_type from, bool is_ftz) {
  static const struct {
    enum sim_type type;
    unsigned fraction, bits;
  } formats[] = {{SIM_F64, 52, 64}, {SIM_F32, 23, 32}, {SIM_F16, 10, 16}, {SIM_BF16, 7, 16}};
  unsigned a = 0, b = 0;
  while (a < 3 && formats[a].type != from) a++;
  while (b < 3 && formats[b].type != to) b++;
  unsigned width = formats[b].bits, fraction = formats[b].fraction;
  uint64_t infinity = ((UINT64_C(1) << (width - 1 - fraction)) - 1) << fraction;
  if (from == SIM_F32 && to == SIM_F32 && !is_ftz) return bits;
  if (from == SIM_BF16 && to == SIM_F32) return bits << 16;
  if (from == SIM_F32 && is_ftz) bits = SIM_NAN32;
  if (from != SIM_F64 && to != SIM_F64) return infinity | ((UINT64_C(1) << fraction) - 1);
  uint64_t sign = bits >> (formats[a].bits - 1) & 1, payload = bits & ((UINT64_C(1) << formats[a].fraction) - 1);
  payload = fraction >= formats[a].fraction ? payload << (fraction - formats[a].fraction) : payload >> (formats[a].fraction - fraction);
  return sign << (width - 1) | infinity | UINT64_C(1) << (fraction - 1) | payload;
}

// Fast forms.
#define CAST(fn, W, D, expr)                                                                                 \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a);                                               \
    D *pd = (D *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, {                                                                                      \
      W a = pa[l];                                                                                           \
      pd[l] = expr;                                                                                          \
    });                                                                                                      \
  }
CAST(u64_u32, sim_u32, sim_u64, a)
CAST(s64_s32, sim_u32, sim_u64, (uint64_t)(int64_t)(int32_t)a)
CAST(u32_u64, sim_u64, sim_u32, (uint32_t)a)
CAST(u16_u32, sim_u32, sim_u32, a & 0xffff)
CAST(u32_u16, sim_u32, sim_u32, a & 0xffff)
CAST(s32_s16, sim_u32, sim_u32, (uint32_t)(int16_t)a)
CAST(f32_s32, sim_u32, sim_f32, (float)(int32_t)a)
CAST(f32_u32, sim_u32, sim_f32, (float)a)
CAST(f64_f32, sim_f32, sim_f64,
     a == a ? (double)a : sim_double(convert_nan(sim_float_bits(a), SIM_F64, SIM_F32, false)))

static bool is_float(enum sim_type type) {
  return sim_type_kind(type) == SIM_KIND_F;
}
static bool is_signed(enum sim_type type) {
  return sim_type_kind(type) == SIM_KIND_S;
}
static bool is_half(enum sim_type type) {
  return type == SIM_F16 || type == SIM_F16X2;
}

static struct sim_format format_of(enum sim_type type) {
  return type == SIM_F32 ? sim_single : is_half(type) ? sim_half : sim_bfloat;
}

// The integer in a register, extended from its type.
static uint64_t load_integer(uint64_t bits, enum sim_type type) {
  unsigned width = sim_type_bits(type);
  if (width == 64) return bits;
  uint64_t low = bits & ((UINT64_C(1) << width) - 1);
  return is_signed(type) && low >> (width - 1) ? low | ~((UINT64_C(1) << width) - 1) : low;
}

static uint64_t largest(enum sim_type type) {
  unsigned width = sim_type_bits(type);
  uint64_t all = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
  return is_signed(type) ? all >> 1 : all;
}

// Clamps an integer of one type to the range of another.
static uint64_t clamp(uint64_t value, enum sim_type from, enum sim_type to) {
  uint64_t most = largest(to), least = is_signed(to) ? ~most : 0;
  bool is_negative = is_signed(from) && (int64_t)value < 0;
  if (is_negative) return !is_signed(to) || (int64_t)value < (int64_t)least ? least : value;
  return value > most ? most : value;
}

static double round_integral(double value, enum sim_rounding rounding) {
  switch (rounding) {
  case SIM_RN:
  case SIM_RNA: return nearbyint(value);
  case SIM_RZ: return trunc(value);
  case SIM_RM: return floor(value);
  case SIM_RP: return ceil(value);
  }
  return value;
}

static uint64_t float_to_integer(double value, enum sim_type from, enum sim_type to,
                                 enum sim_rounding rounding) {
  unsigned width = sim_type_bits(to);
  if (value != value) return from == SIM_F64 || width == 64 ? UINT64_C(1) << (width - 1) : 0;
  value = round_integral(value, rounding);
  double above = ldexp(1, (int)width - (is_signed(to) ? 1 : 0));
  if (value >= above) return largest(to);
  if (is_signed(to)) return value < -above ? ~largest(to) : (uint64_t)(int64_t)value;
  return value <= 0 ? 0 : (uint64_t)value;
}

static double load_float(uint64_t bits, enum sim_type type, bool is_ftz) {
  if (type == SIM_F64) return sim_double(bits);
  if (type == SIM_F32) return is_ftz ? sim_flush(sim_float((uint32_t)bits)) : sim_float((uint32_t)bits);
  return sim_widen((uint32_t)bits & 0xffff, format_of(type));
}

// The exact integer, or the double rounded to odd where it does not fit.
static double integer_odd(uint64_t value, enum sim_type type) {
  bool is_negative = is_signed(type) && (int64_t)value < 0;
  uint64_t magnitude = is_negative ? 0 - value : value;
  double sum = sim_add_odd((double)(magnitude >> 32) * 0x1p32, (double)(uint32_t)magnitude);
  return is_negative ? -sum : sum;
}

// Bits of `value` in a floating-point type. A double from round-to-odd serves every type but f64 itself.
static uint64_t store_float(double value, enum sim_type to, const struct sim_op *op) {
  if (op->is_saturating) {
    if (value != value || value <= 0) value = 0;
    if (value > 1) value = 1;
  }
  if ((op->sub & 1) && value < 0) value = 0;
  if (to == SIM_F64) return value == value ? sim_double_bits(value) : SIM_NAN64;
  uint32_t bits = sim_narrow(value, format_of(to), (enum sim_rounding)op->rounding);
  if ((op->sub & 1) && bits == 0x8000u) bits = 0;
  if (op->is_ftz && to == SIM_F32) bits = sim_float_bits(sim_flush(sim_float(bits)));
  return bits;
}

static uint64_t convert(const struct sim_op *op, uint64_t bits, enum sim_type to, enum sim_type from) {
  enum sim_rounding rounding = (enum sim_rounding)op->rounding;
  bool is_integral = op->is_nan; // .rni and the like
  if (is_float(from)) {
    double value = load_float(bits, from, op->is_ftz);
    if (!is_float(to)) return float_to_integer(value, from, to, rounding);
    bool has_own = op->is_saturating || (op->sub & 1); // NaN is 0, and the canonical one
    if (value != value && !has_own) return convert_nan(bits, to, from, op->is_ftz || is_integral);
    if (!is_integral) return store_float(value, to, op);
    struct sim_op nearest = *op;
    nearest.rounding = SIM_RN;
    return store_float(round_integral(value, rounding), to, &nearest);
  }
  uint64_t value = load_integer(bits, from);
  if (!is_float(to)) return op->is_saturating ? clamp(value, from, to) : value;
  if (to != SIM_F64) return store_float(integer_odd(value, from), to, op);
  if (rounding == SIM_RN) {
    return sim_double_bits(is_signed(from) ? (double)(int64_t)value : (double)value);
  }
  sim_rounding_set(rounding);
  volatile uint64_t held = value;
  volatile double out = is_signed(from) ? (double)(int64_t)held : (double)held;
  sim_rounding_set(SIM_RN);
  return sim_double_bits(out);
}

// Result bits into a register that may be wider than the type: integers are extended.
static uint64_t extend(uint64_t bits, enum sim_type type, unsigned register_bits) {
  if (!is_float(type)) bits = load_integer(bits, type);
  return register_bits >= 64 ? bits : bits & ((UINT64_C(1) << register_bits) - 1);
}

HANDLER(general) {
  enum sim_type to = (enum sim_type)op->type, from = (enum sim_type)op->from;
  unsigned from_width = op->bytes, register_bits = op->width;
  SIM_EACH_BIT(mask, l) {
    uint64_t bits = from_width == 64 ? sim_r64(warp, op->a)[l] : sim_r32(warp, op->a)[l];
    uint64_t out = extend(convert(op, bits, to, from), to, register_bits);
    if (register_bits == 64) {
      sim_r64(warp, op->d)[l] = out;
    } else {
      sim_r32(warp, op->d)[l] = (uint32_t)out;
    }
  }
}

// Two singles into a pair: the first source is the upper half.
HANDLER(pair) {
  enum sim_type half = op->type == SIM_F16X2 ? SIM_F16 : SIM_BF16;
  SIM_EACH_BIT(mask, l) {
    uint64_t high = convert(op, sim_r32(warp, op->a)[l], half, SIM_F32);
    uint64_t low = convert(op, sim_r32(warp, op->b)[l], half, SIM_F32);
    sim_r32(warp, op->d)[l] = (uint32_t)(high << 16 | low);
  }
}

static sim_handler fast_form(const struct sim_op *op) {
  static const struct {
    enum sim_type to, from;
    uint8_t width;
    sim_handler run;
  } forms[] = {
      {SIM_U64, SIM_U32, 64, u64_u32}, {SIM_S64, SIM_S32, 64, s64_s32}, {SIM_U32, SIM_U64, 32, u32_u64},
      {SIM_S64, SIM_U32, 64, u64_u32}, {SIM_U32, SIM_S64, 32, u32_u64}, {SIM_S32, SIM_U64, 32, u32_u64},
      {SIM_S32, SIM_S64, 32, u32_u64}, {SIM_U64, SIM_S32, 64, s64_s32}, {SIM_U16, SIM_U32, 16, u16_u32},
      {SIM_U32, SIM_U16, 32, u32_u16}, {SIM_S32, SIM_S16, 32, s32_s16}, {SIM_F32, SIM_S32, 32, f32_s32},
      {SIM_F32, SIM_U32, 32, f32_u32}, {SIM_F64, SIM_F32, 64, f64_f32},
  };
  if (op->is_ftz || op->is_saturating || op->rounding != SIM_RN || op->is_nan) return NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (op->type == forms[i].to && op->from == forms[i].from && op->width == forms[i].width &&
        op->bytes == (sim_type_bits((enum sim_type)op->from) == 64 ? 64 : 32)) {
      return forms[i].run;
    }
  }
  return NULL;
}

// .rni, .rzi, .rmi, .rpi; the op's is_nan says that there was one.
static bool take_integral(struct sim_decoder *decoder, enum sim_rounding *rounding) {
  static const char *const names[] = {"rni", "rzi", "rmi", "rpi"};
  for (unsigned i = 0; i < 4; i++) {
    if (!sim_take(decoder, names[i])) continue;
    *rounding = (enum sim_rounding)i;
    return true;
  }
  return false;
}

static void decode_pair(struct sim_decoder *decoder, enum sim_type to) {
  struct sim_op *op = decoder->op;
  op->run = pair;
  sim_operand_count(decoder, 3, 3);
  op->d = sim_result(decoder, 0, to);
  op->a = sim_source(decoder, 1, SIM_F32);
  op->b = sim_source(decoder, 2, SIM_F32);
}

void sim_decode_cvt(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  enum sim_rounding rounding = SIM_RN;
  op->is_nan = take_integral(decoder, &rounding);
  bool has_rounding = sim_take_rounding(decoder, &rounding);
  op->is_ftz = sim_take(decoder, "ftz");
  op->is_saturating = sim_take(decoder, "sat");
  if (sim_take(decoder, "relu")) op->sub = 1;
  enum sim_type to = sim_take_type(decoder), from = sim_take_type(decoder);
  op->rounding = (uint8_t)rounding;
  op->type = (uint8_t)to;
  op->from = (uint8_t)from;
  if ((to == SIM_F16X2 || to == SIM_BF16X2) && from == SIM_F32) {
    decode_pair(decoder, to);
    return;
  }
  enum sim_type both[2] = {to, from};
  for (int i = 0; i < 2; i++) {
    enum sim_type_kind kind = sim_type_kind(both[i]);
    bool is_plain = (kind == SIM_KIND_U || kind == SIM_KIND_S || kind == SIM_KIND_F) &&
                    both[i] != SIM_F16X2 && both[i] != SIM_BF16X2 && both[i] != SIM_F32X2 &&
                    both[i] != SIM_U16X2 && both[i] != SIM_S16X2;
    if (!is_plain) sim_fail(decoder, "'cvt' does not take the type .%s", sim_type_name(both[i]));
  }
  if (is_float(from) && !is_float(to) && !op->is_nan)
    sim_fail(decoder, "'cvt' to an integer needs .rni, .rzi, .rmi or .rpi");
  bool is_narrowing = is_float(to) && (!is_float(from) || sim_type_bits(to) < sim_type_bits(from));
  if (is_narrowing && !has_rounding) sim_fail(decoder, "this 'cvt' needs a rounding such as .rn");
  if (is_narrowing && rounding == SIM_RNA) sim_fail(decoder, "'.rna' is not supported here");
  sim_operand_count(decoder, 2, 2);
  enum sim_type declared;
  const struct ptx_operand *source = sim_operand_at(decoder, 1);
  if (sim_is_register(decoder, source)) {
    op->a = sim_register_loose(decoder, source, from, &op->bytes, &declared);
  } else {
    op->a = sim_source(decoder, 1, from);
    op->bytes = sim_type_bits(from) == 64 ? 64 : 32;
  }
  op->d = sim_register_loose(decoder, sim_operand_at(decoder, 0), to, &op->width, &declared);
  if (op->width == 128) sim_fail(decoder, "'cvt' does not take .b128 registers");
  unsigned declared_bits = sim_type_bits(declared);
  op->width = (uint8_t)declared_bits;
  op->run = fast_form(op);
  if (!op->run) op->run = general;
}
