// Decodes arithmetic, logic, comparison and selection. The handler comes from the ALU tables by the
// instruction's name, with the modifiers that change the operation appended, and its type.
#include "runtime/sim/decode.h"
#include "runtime/sim/number.h"

#include <stdio.h>

static sim_handler find_in(const struct sim_alu *table, const char *name, enum sim_type type) {
  for (; table->name; table++) {
    if (table->type == type && strcmp(table->name, name) == 0) return table->run;
  }
  return NULL;
}

sim_handler sim_alu_find(const char *name, enum sim_type type) {
  sim_handler run = find_in(sim_alu_int, name, type);
  if (!run) run = find_in(sim_alu_float, name, type);
  return run ? run : find_in(sim_alu_half, name, type);
}

// Sets the op's handler to that of `opcode` with `suffix` (".hi"; may be empty).
static void choose_as(struct sim_decoder *decoder, const char *opcode, const char *suffix,
                      enum sim_type type) {
  char name[32];
  snprintf(name, sizeof name, "%s%s", opcode, suffix);
  decoder->op->type = (uint8_t)type;
  decoder->op->run = sim_alu_find(name, type);
  decoder->op->absorbs = strcmp(name, "and") == 0  ? SIM_ABSORBS_ZERO
                         : strcmp(name, "or") == 0 ? SIM_ABSORBS_ONES
                                                   : SIM_ABSORBS_NOTHING;
  if (!decoder->op->run) {
    sim_fail(decoder, "'%s%s' does not take the type .%s", decoder->instruction->opcode, suffix,
             sim_type_name(type));
  }
}

static void choose(struct sim_decoder *decoder, const char *suffix, enum sim_type type) {
  choose_as(decoder, decoder->instruction->opcode, suffix, type);
}

// d, a and as many more sources as `sources` says, all of one type.
static void same_operands(struct sim_decoder *decoder, size_t sources, enum sim_type type) {
  sim_operand_count(decoder, sources + 1, sources + 1);
  decoder->op->d = sim_result(decoder, 0, type);
  decoder->op->a = sim_source(decoder, 1, type);
  if (sources > 1) decoder->op->b = sim_source(decoder, 2, type);
  if (sources > 2) decoder->op->c = sim_source(decoder, 3, type);
}

static bool is_float(enum sim_type type) {
  return sim_type_kind(type) == SIM_KIND_F;
}
static bool is_half(enum sim_type type) {
  return is_float(type) && sim_type_bits(type) != 64 && type != SIM_F32;
}

// Modifiers of floating-point arithmetic into the op, and the handler: the general one where the fast one,
// which rounds to nearest and keeps denormals, will not do.
static void float_arith_as(struct sim_decoder *decoder, const char *opcode, size_t sources,
                           enum sim_type type) {
  struct sim_op *op = decoder->op;
  enum sim_rounding rounding = SIM_RN;
  sim_take_rounding(decoder, &rounding);
  op->rounding = (uint8_t)rounding;
  op->is_ftz = sim_take(decoder, "ftz");
  op->is_saturating = sim_take(decoder, "sat");
  if (sim_take(decoder, "relu")) op->sub = 1;
  if (op->is_ftz && type == SIM_F64) sim_fail(decoder, "'.ftz' is not for .f64");
  if (rounding == SIM_RNA || (rounding != SIM_RN && is_half(type))) {
    sim_fail(decoder, "this rounding of '%s' is not supported", decoder->instruction->opcode);
  }
  if (is_half(type) ? false : op->sub != 0) sim_fail(decoder, "'.relu' is not for .%s", sim_type_name(type));
  bool is_general = type == SIM_F32 && (op->is_ftz || op->is_saturating || rounding != SIM_RN || op->is_abs);
  choose_as(decoder, opcode, is_general ? ".general" : "", type);
  same_operands(decoder, sources, type);
}

static void float_arith(struct sim_decoder *decoder, size_t sources, enum sim_type type) {
  float_arith_as(decoder, decoder->instruction->opcode, sources, type);
}

static void carry_out(struct sim_decoder *decoder, bool has_in, bool has_out) {
  struct sim_op *op = decoder->op;
  op->sub = (uint8_t)((has_in ? 1 : 0) | (has_out ? 2 : 0));
  if (has_in) op->f = sim_carry(decoder);
  if (has_out) op->e = sim_carry(decoder);
}

void sim_decode_add(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool has_carry = sim_take(decoder, "cc");
  enum sim_type type = sim_take_type(decoder);
  if (is_float(type)) {
    float_arith(decoder, 2, type);
  } else if (has_carry) {
    char name[8];
    snprintf(name, sizeof name, "%sc", decoder->instruction->opcode);
    op->type = (uint8_t)type;
    op->run = sim_alu_find(name, type);
    if (!op->run)
      sim_fail(decoder, "'%s.cc' does not take the type .%s", decoder->instruction->opcode,
               sim_type_name(type));
    same_operands(decoder, 2, type);
    carry_out(decoder, false, true);
  } else {
    choose(decoder, sim_take(decoder, "sat") ? ".sat" : "", type);
    same_operands(decoder, 2, type);
  }
}

void sim_decode_addc(struct sim_decoder *decoder) {
  bool has_out = sim_take(decoder, "cc");
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  same_operands(decoder, 2, type);
  carry_out(decoder, true, has_out);
}

// .lo, .hi or .wide as a suffix.
static const char *part(struct sim_decoder *decoder) {
  if (sim_take(decoder, "lo")) return ".lo";
  if (sim_take(decoder, "hi")) return ".hi";
  if (sim_take(decoder, "wide")) return ".wide";
  sim_fail(decoder, "'%s' needs .lo, .hi or .wide", decoder->instruction->opcode);
}

static enum sim_type doubled(struct sim_decoder *decoder, enum sim_type type) {
  if (type == SIM_U16) return SIM_U32;
  if (type == SIM_S16) return SIM_S32;
  if (type == SIM_U32) return SIM_U64;
  if (type == SIM_S32) return SIM_S64;
  sim_fail(decoder, "'%s.wide' does not take the type .%s", decoder->instruction->opcode,
           sim_type_name(type));
}

void sim_decode_mul(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  if (is_float(type)) {
    float_arith(decoder, 2, type);
    return;
  }
  const char *suffix = part(decoder);
  choose(decoder, suffix, type);
  sim_operand_count(decoder, 3, 3);
  decoder->op->d = sim_result(decoder, 0, strcmp(suffix, ".wide") == 0 ? doubled(decoder, type) : type);
  decoder->op->a = sim_source(decoder, 1, type);
  decoder->op->b = sim_source(decoder, 2, type);
}

void sim_decode_fma(struct sim_decoder *decoder) {
  float_arith(decoder, 3, sim_take_type(decoder));
}

// mad.cc and madc: the handler adds the carry where the op says so.
static void decode_mad_carry(struct sim_decoder *decoder, bool has_in, bool has_out, enum sim_type type) {
  const char *suffix = part(decoder);
  char name[16];
  snprintf(name, sizeof name, "madc%s", suffix);
  decoder->op->type = (uint8_t)type;
  decoder->op->run = sim_alu_find(name, type);
  if (!decoder->op->run)
    sim_fail(decoder, "'mad%s.cc' does not take the type .%s", suffix, sim_type_name(type));
  same_operands(decoder, 3, type);
  carry_out(decoder, has_in, has_out);
}

void sim_decode_mad(struct sim_decoder *decoder) {
  bool has_carry = sim_take(decoder, "cc");
  enum sim_type type = sim_take_type(decoder);
  if (is_float(type)) {
    float_arith_as(decoder, "fma", 3, type);
    return;
  }
  if (has_carry) {
    decode_mad_carry(decoder, false, true, type);
    return;
  }
  const char *suffix = part(decoder);
  bool is_saturating = sim_take(decoder, "sat");
  if (is_saturating && strcmp(suffix, ".hi") != 0) sim_fail(decoder, "'mad.sat' is for .hi only");
  choose(decoder, is_saturating ? ".hi.sat" : suffix, type);
  enum sim_type wide = strcmp(suffix, ".wide") == 0 ? doubled(decoder, type) : type;
  sim_operand_count(decoder, 4, 4);
  decoder->op->d = sim_result(decoder, 0, wide);
  decoder->op->a = sim_source(decoder, 1, type);
  decoder->op->b = sim_source(decoder, 2, type);
  decoder->op->c = sim_source(decoder, 3, wide);
}

void sim_decode_madc(struct sim_decoder *decoder) {
  bool has_out = sim_take(decoder, "cc");
  decode_mad_carry(decoder, true, has_out, sim_take_type(decoder));
}

void sim_decode_mul24(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  bool is_low = sim_take(decoder, "lo");
  if (!is_low && !sim_take(decoder, "hi"))
    sim_fail(decoder, "'%s' needs .lo or .hi", decoder->instruction->opcode);
  choose(decoder, is_low ? ".lo" : sim_take(decoder, "sat") ? ".hi.sat" : ".hi", type);
  same_operands(decoder, strcmp(decoder->instruction->opcode, "mad24") == 0 ? 3 : 2, type);
}

void sim_decode_div(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  if (sim_take(decoder, "approx") || sim_take(decoder, "full")) decoder->op->is_approximate = true;
  if (is_float(type)) {
    float_arith(decoder, 2, type);
  } else {
    choose(decoder, "", type);
    same_operands(decoder, 2, type);
  }
}

void sim_decode_rem(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  same_operands(decoder, 2, type);
}

void sim_decode_sad(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  same_operands(decoder, 3, type);
}

// abs and neg.
void sim_decode_unary(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  decoder->op->is_ftz = sim_take(decoder, "ftz");
  choose(decoder, "", type);
  same_operands(decoder, 1, type);
}

void sim_decode_copysign(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  same_operands(decoder, 2, type);
}

void sim_decode_minmax(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  enum sim_type type = sim_take_type(decoder);
  if (!is_float(type)) {
    if (sim_take(decoder, "relu")) sim_fail(decoder, "'.relu' is not supported here");
    choose(decoder, "", type);
    same_operands(decoder, 2, type);
    return;
  }
  op->is_nan = sim_take(decoder, "NaN");
  if (sim_take(decoder, "xorsign")) op->is_abs = sim_take(decoder, "abs");
  if (op->is_nan && type == SIM_F64) sim_fail(decoder, "'.NaN' is not for .f64");
  if (type == SIM_F32 && decoder->instruction->operand_count == 4) {
    op->is_ftz = sim_take(decoder, "ftz");
    choose(decoder, "3", type);
    same_operands(decoder, 3, type);
    return;
  }
  float_arith(decoder, 2, type);
}

// rcp, rsqrt, sqrt.
void sim_decode_rcp(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  enum sim_type type = sim_take_type(decoder);
  op->is_approximate = sim_take(decoder, "approx");
  bool is_reciprocal_root = strcmp(decoder->instruction->opcode, "rsqrt") == 0;
  if (type == SIM_F64 && op->is_approximate && sim_take(decoder, "ftz")) {
    op->sub = is_reciprocal_root;
    op->type = SIM_F64;
    op->run = sim_alu_find("rcp.ftz", SIM_F64);
    same_operands(decoder, 1, type);
  } else if (is_reciprocal_root) {
    op->is_ftz = sim_take(decoder, "ftz");
    choose(decoder, "", type);
    same_operands(decoder, 1, type);
  } else {
    float_arith(decoder, 1, type);
  }
}

void sim_decode_special(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  enum sim_type type = sim_take_type(decoder);
  if (!sim_take(decoder, "approx")) sim_fail(decoder, "'%s' needs .approx", decoder->instruction->opcode);
  op->is_approximate = true;
  op->is_ftz = sim_take(decoder, "ftz");
  choose(decoder, "", type);
  same_operands(decoder, 1, type);
}

// ---- Logic and bits
// ----------------------------------------------------------------------------------------

void sim_decode_logic(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  same_operands(decoder, 2, type);
}

void sim_decode_logic_one(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  same_operands(decoder, 1, type);
}

void sim_decode_shift(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  sim_operand_count(decoder, 3, 3);
  decoder->op->d = sim_result(decoder, 0, type);
  decoder->op->a = sim_source(decoder, 1, type);
  decoder->op->b = sim_source(decoder, 2, SIM_U32);
}

void sim_decode_shf(struct sim_decoder *decoder) {
  bool is_left = sim_take(decoder, "l");
  if (!is_left && !sim_take(decoder, "r")) sim_fail(decoder, "'shf' needs .l or .r");
  bool is_clamp = sim_take(decoder, "clamp");
  if (!is_clamp && !sim_take(decoder, "wrap")) sim_fail(decoder, "'shf' needs .clamp or .wrap");
  enum sim_type type = sim_take_type(decoder);
  char suffix[16];
  snprintf(suffix, sizeof suffix, ".%s.%s", is_left ? "l" : "r", is_clamp ? "clamp" : "wrap");
  choose(decoder, suffix, type);
  same_operands(decoder, 3, type);
}

// popc, clz, brev: the first two give a word.
void sim_decode_bits(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  sim_operand_count(decoder, 2, 2);
  bool is_reversal = strcmp(decoder->instruction->opcode, "brev") == 0;
  decoder->op->d = sim_result(decoder, 0, is_reversal ? type : SIM_U32);
  decoder->op->a = sim_source(decoder, 1, type);
}

void sim_decode_bfind(struct sim_decoder *decoder) {
  bool is_shift = sim_take(decoder, "shiftamt");
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, is_shift ? ".shiftamt" : "", type);
  sim_operand_count(decoder, 2, 2);
  decoder->op->d = sim_result(decoder, 0, SIM_U32);
  decoder->op->a = sim_source(decoder, 1, type);
}

void sim_decode_bfe(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  sim_operand_count(decoder, 4, 4);
  decoder->op->d = sim_result(decoder, 0, type);
  decoder->op->a = sim_source(decoder, 1, type);
  decoder->op->b = sim_source(decoder, 2, SIM_U32);
  decoder->op->c = sim_source(decoder, 3, SIM_U32);
}

void sim_decode_bfi(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  sim_operand_count(decoder, 5, 5);
  decoder->op->d = sim_result(decoder, 0, type);
  decoder->op->a = sim_source(decoder, 1, type);
  decoder->op->b = sim_source(decoder, 2, type);
  decoder->op->c = sim_source(decoder, 3, SIM_U32);
  decoder->op->f = sim_source(decoder, 4, SIM_U32);
}

void sim_decode_bmsk(struct sim_decoder *decoder) {
  bool is_clamp = sim_take(decoder, "clamp");
  if (!is_clamp && !sim_take(decoder, "wrap")) sim_fail(decoder, "'bmsk' needs .clamp or .wrap");
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, is_clamp ? ".clamp" : ".wrap", type);
  same_operands(decoder, 2, type);
}

void sim_decode_prmt(struct sim_decoder *decoder) {
  static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  enum sim_type type = sim_take_type(decoder);
  const char *suffix = "";
  for (unsigned i = 0; i < 6; i++) {
    if (sim_take(decoder, modes[i])) decoder->op->sub = (uint8_t)i, suffix = ".mode";
  }
  choose(decoder, suffix, type);
  same_operands(decoder, 3, type);
}

void sim_decode_lop3(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool is_or = sim_take(decoder, "or"), is_and = sim_take(decoder, "and");
  if (is_or || is_and) sim_fail(decoder, "'lop3' with a predicate result is not supported");
  enum sim_type type = sim_take_type(decoder);
  choose(decoder, "", type);
  sim_operand_count(decoder, 5, 5);
  op->d = sim_result(decoder, 0, type);
  op->a = sim_source(decoder, 1, type);
  op->b = sim_source(decoder, 2, type);
  op->c = sim_source(decoder, 3, type);
  op->immediate = sim_immediate(decoder, 4);
  if (op->immediate > 255) sim_fail(decoder, "the table of 'lop3' is over 255");
}

void sim_decode_dp(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool is_dp2a = strcmp(decoder->instruction->opcode, "dp2a") == 0;
  if (is_dp2a) {
    op->sub = sim_take(decoder, "hi");
    if (!op->sub && !sim_take(decoder, "lo")) sim_fail(decoder, "'dp2a' needs .lo or .hi");
  }
  enum sim_type a = sim_take_type(decoder), b = sim_take_type(decoder);
  bool is_right = (a == SIM_U32 || a == SIM_S32) && (b == SIM_U32 || b == SIM_S32);
  if (!is_right) sim_fail(decoder, "'%s' takes .u32 and .s32", decoder->instruction->opcode);
  op->type = (uint8_t)a;
  op->from = (uint8_t)b;
  op->run = sim_alu_find(decoder->instruction->opcode, SIM_B32);
  same_operands(decoder, 3, SIM_B32);
}
