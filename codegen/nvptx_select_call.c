// Intrinsics and inline assembly.
#include "codegen/nvptx_select.h"

#include <string.h>

// The operations that LLVM's intrinsics are: `name` is in front of the type. How their operands are read, and how the name is completed:
enum how {
  OF_FLOATS,    // .f32 or .f64
  OF_SIGNED,    // .s16, .s32 or .s64; of 8 bits in all of 16
  OF_UNSIGNED,
  NULLARY,      // the name as it is, of no operand
  OF_HALVES,    // the name as it is, on machines from sm_80 on
  AS_IT_IS,     // the name as it is, of the operands in order
  MASK_FIRST,   // the first operand goes to the end
  FUNNEL,
};
static const struct intrinsic {
  const char *intrinsic, *name;
  enum how how;
  uint32_t operands;
} intrinsics[] = {
    {"llvm.fma.", "fma.rn", OF_FLOATS, 3},
    {"llvm.maximum.f32", "max.NaN.f32", AS_IT_IS, 2},
    {"llvm.minimum.f32", "min.NaN.f32", AS_IT_IS, 2},
    {"llvm.maximum.f16", "max.NaN.f16", OF_HALVES, 2},
    {"llvm.minimum.f16", "min.NaN.f16", OF_HALVES, 2},
    {"llvm.nvvm.shfl.sync.bfly.", "shfl.sync.bfly.b32", MASK_FIRST, 4},
    {"llvm.nvvm.shfl.sync.down.", "shfl.sync.down.b32", MASK_FIRST, 4},
    {"llvm.nvvm.shfl.sync.idx.", "shfl.sync.idx.b32", MASK_FIRST, 4},
    {"llvm.smin.", "min", OF_SIGNED, 2},
    {"llvm.smax.", "max", OF_SIGNED, 2},
    {"llvm.umin.", "min", OF_UNSIGNED, 2},
    {"llvm.umax.", "max", OF_UNSIGNED, 2},
    {"llvm.abs.", "abs", OF_SIGNED, 1},
    {"llvm.fabs.", "abs", OF_FLOATS, 1},
    {"llvm.nvvm.barrier0", "bar.sync \t0", NULLARY, 0},
    {"llvm.nvvm.barrier.cta.sync.aligned.all", "bar.sync \t0", NULLARY, 0},
    {"llvm.nvvm.read.ptx.sreg.tid.x", "%tid.x", NULLARY, 0},
    {"llvm.nvvm.read.ptx.sreg.tid.y", "%tid.y", NULLARY, 0},
    {"llvm.nvvm.read.ptx.sreg.tid.z", "%tid.z", NULLARY, 0},
    {"llvm.nvvm.read.ptx.sreg.ctaid.x", "%ctaid.x", NULLARY, 0},
    {"llvm.nvvm.read.ptx.sreg.ctaid.y", "%ctaid.y", NULLARY, 0},
    {"llvm.nvvm.read.ptx.sreg.ctaid.z", "%ctaid.z", NULLARY, 0},
    {"llvm.minnum.", "min", OF_FLOATS, 2},
    {"llvm.maxnum.", "max", OF_FLOATS, 2},
    {"llvm.sqrt.", "sqrt.rn", OF_FLOATS, 1},
    {"llvm.floor.f32", "cvt.rmi.f32.f32", AS_IT_IS, 1},
    {"llvm.ceil.f32", "cvt.rpi.f32.f32", AS_IT_IS, 1},
    {"llvm.trunc.f32", "cvt.rzi.f32.f32", AS_IT_IS, 1},
    {"llvm.floor.f64", "cvt.rmi.f64.f64", AS_IT_IS, 1},
    {"llvm.ceil.f64", "cvt.rpi.f64.f64", AS_IT_IS, 1},
    {"llvm.trunc.f64", "cvt.rzi.f64.f64", AS_IT_IS, 1},
    {"llvm.nvvm.d2f.rz", "cvt.rz.f32.f64", AS_IT_IS, 1},
    {"llvm.nvvm.bar.warp.sync", "bar.warp.sync", AS_IT_IS, 1},
    {"llvm.nvvm.redux.sync.add", "redux.sync.add.s32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.min", "redux.sync.min.s32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.umin", "redux.sync.min.u32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.max", "redux.sync.max.s32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.umax", "redux.sync.max.u32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.and", "redux.sync.and.b32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.or", "redux.sync.or.b32", AS_IT_IS, 2},
    {"llvm.nvvm.redux.sync.xor", "redux.sync.xor.b32", AS_IT_IS, 2},
    {"llvm.fshl.i32", "shf.l.wrap.b32", FUNNEL, 3},
    {"llvm.fshr.i32", "shf.r.wrap.b32", FUNNEL, 3},
};
enum { INTRINSICS = sizeof intrinsics / sizeof *intrinsics };

// Row of the table, INTRINSICS where it has none. Remembered by function.
static uint32_t row_of(struct select *s, LLVMValueRef function) {
  const struct select_value *known = select_find(s, function);
  if (known) return known->count;
  size_t length;
  const char *name = LLVMGetValueName2(function, &length);
  uint32_t row = 0;
  for (; row < INTRINSICS; row++) {
    const char *wanted = intrinsics[row].intrinsic;
    size_t size = strlen(wanted);
    if (wanted[size - 1] == '.' ? strncmp(name, wanted, size) == 0 : strcmp(name, wanted) == 0) break;
  }
  select_define_lanes(s, function, &(struct select_operand){0}, row);
  return row;
}

static void call_intrinsic(struct select *s, LLVMValueRef i, LLVMValueRef function) {
  uint32_t row = row_of(s, function);
  LLVMTypeRef type = LLVMTypeOf(i);
  bool is_void = LLVMGetTypeKind(type) == LLVMVoidTypeKind;
  struct select_type known = is_void ? (struct select_type){.home = REGISTER_32, .bits = 32, .lanes = 1} : select_type(type);
  bool is_known = row < INTRINSICS && known.lanes == 1 && known.bits;
  if (!is_known || (intrinsics[row].how == OF_HALVES && s->cg->context->options->target->sm < 80)) {
    select_refuse(s, "an intrinsic of another kind");
    return;
  }
  const struct intrinsic *intrinsic = &intrinsics[row];
  struct select_operand all[5] = {{0}};
  if (intrinsic->how == NULLARY && is_void) {
    text_printf(&s->body, "\t%s;\n", intrinsic->name);
    return;
  }
  if (intrinsic->how == NULLARY) {
    all[0] = select_new(s, REGISTER_32);
    all[1] = (struct select_operand){.kind = SELECT_SYMBOL, .symbol = intrinsic->name};
    select_line(s, "mov.u32", all, 2);
    select_define(s, i, all[0]);
    return;
  }
  uint32_t count = intrinsic->operands;
  for (uint32_t k = 0; k < count; k++) all[1 + k] = select_get(s, LLVMGetOperand(i, k));
  const char *name = intrinsic->name;
  char completed[24];
  if (intrinsic->how == OF_FLOATS || intrinsic->how == OF_SIGNED || intrinsic->how == OF_UNSIGNED) {
    uint32_t bits = known.bits <= 16 ? 16 : known.bits;
    if (known.bits == 1 || (intrinsic->how == OF_FLOATS && bits == 16)) select_refuse(s, "an intrinsic of bits or halves");
    char letter = intrinsic->how == OF_FLOATS ? 'f' : intrinsic->how == OF_SIGNED ? 's' : 'u';
    size_t length = strlen(name);
    memcpy(completed, name, length);
    completed[length++] = '.';
    completed[length++] = letter;
    completed[length++] = bits == 16 ? '1' : bits == 32 ? '3' : '6';
    completed[length++] = bits == 16 ? '6' : bits == 32 ? '2' : '4';
    completed[length] = 0;
    name = completed;
    if (intrinsic->how != OF_FLOATS)
      for (uint32_t k = 0; k < count; k++) all[1 + k] = select_widened(s, all[1 + k], known.bits, intrinsic->how == OF_SIGNED);
    all[1] = select_in_register(s, all[1]);
  } else if (intrinsic->how == MASK_FIRST) {
    struct select_operand mask = all[1];
    all[1] = select_in_register(s, all[2]);
    all[2] = all[3];
    all[3] = all[4];
    all[4] = mask;
  } else if (intrinsic->how == FUNNEL) { // of high and low; the instruction takes the low word first
    struct select_operand high = all[1];
    all[1] = select_in_register(s, all[2]);
    all[2] = select_in_register(s, high);
  } else if (!is_void) {
    all[1] = select_in_register(s, all[1]);
  }
  if (is_void) {
    select_line(s, name, all + 1, count);
    return;
  }
  all[0] = select_new(s, known.home);
  select_line(s, name, all, count + 1);
  all[0].is_zeroed = known.bits == 8 && intrinsic->how == OF_UNSIGNED;
  all[0].is_signed = known.bits == 8 && intrinsic->how == OF_SIGNED && count == 2; // not of abs, which may reach 128
  select_define(s, i, all[0]);
}

// --- Inline assembly ---------------------------------------------------------------------------------------

static bool home_of(char letter, enum select_register *home) {
  *home = letter == 'h' ? REGISTER_16 : letter == 'r' || letter == 'f' ? REGISTER_32 : REGISTER_64;
  return letter == 'h' || letter == 'r' || letter == 'f' || letter == 'l' || letter == 'd';
}

// "$0" to "$9" are the operands, "$$" is a dollar.
static void append_assembly(struct select *s, const char *text, size_t length, const struct select_operand *operands, uint32_t count) {
  struct text *out = &s->body;
  const char *end = text + length;
  text_append(out, "\t", 1);
  while (text < end) {
    const char *dollar = memchr(text, '$', (size_t)(end - text));
    text_append(out, text, (size_t)((dollar ? dollar : end) - text));
    if (!dollar) break;
    text = dollar + 2;
    uint32_t number = dollar + 1 < end ? (uint32_t)(dollar[1] - '0') : count;
    if (dollar + 1 < end && dollar[1] == '$') text_append(out, "$", 1);
    else if (number < count) select_operand_text(out, operands[number]);
    else select_refuse(s, "assembly of another form");
  }
  text_append(out, "\n", 1);
}

static void call_assembly(struct select *s, LLVMValueRef i, LLVMValueRef code) {
  enum { MOST = 10 };
  struct select_operand operands[MOST];
  uint32_t count = 0, outs = 0, ins = 0;
  size_t length;
  const char *constraint = LLVMGetInlineAsmConstraintString(code, &length), *end = constraint + length;
  while (constraint < end && !s->refusal) {
    const char *comma = memchr(constraint, ',', (size_t)(end - constraint)), *next = comma ? comma : end;
    size_t size = (size_t)(next - constraint);
    enum select_register home;
    if (count == MOST) select_refuse(s, "assembly of many operands");
    else if (size == 2 && constraint[0] == '=' && home_of(constraint[1], &home)) {
      operands[count++] = select_new(s, home);
      outs++;
    } else if (size == 1 && home_of(constraint[0], &home)) {
      struct select_operand operand = select_in_register(s, select_get(s, LLVMGetOperand(i, ins++)));
      if (operand.home != (uint8_t)home) select_refuse(s, "assembly of other registers");
      operands[count++] = operand;
    } else if (size == 1 && constraint[0] == 'i') {
      operands[count++] = select_get(s, LLVMGetOperand(i, ins++));
    } else if (constraint[0] != '~') {
      select_refuse(s, "assembly of another form");
    }
    constraint = next + 1;
  }
  if (s->refusal) return;
  const char *text = LLVMGetInlineAsmAsmString(code, &length);
  append_assembly(s, text, length, operands, count);
  if (!outs) return;
  struct select_operand *lanes = arena_array(s->cg->context->arena, struct select_operand, outs);
  memcpy(lanes, operands, outs * sizeof *lanes);
  select_define_lanes(s, i, lanes, outs);
}

void select_call(struct select *s, LLVMValueRef i) {
  LLVMValueRef called = LLVMGetCalledValue(i);
  if (LLVMIsAInlineAsm(called)) call_assembly(s, i, called);
  else if (LLVMIsAFunction(called)) call_intrinsic(s, i, called);
  else select_refuse(s, "a call by a pointer");
}
