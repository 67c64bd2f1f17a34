// Addresses, loads and stores.
#include "codegen/nvptx_select.h"

#include <string.h>

enum { GLOBAL = 1, SHARED = 3, LOCAL = 5 };

// A variable of the thread lies where it lies in local memory; its address is one there.
void select_slot(struct select *s, LLVMValueRef i) {
  uint64_t bytes = select_bytes(s, LLVMGetAllocatedType(i)), alignment = LLVMGetAlignment(i);
  if (!LLVMIsAConstantInt(LLVMGetOperand(i, 0)) || LLVMConstIntGetZExtValue(LLVMGetOperand(i, 0)) != 1 || alignment > 16) {
    select_refuse(s, "a variable of another form");
    return;
  }
  s->local_bytes = (s->local_bytes + alignment - 1) / alignment * alignment;
  char *name = arena_printf(s->cg->context->arena, "__local_depot%u", (unsigned)s->place);
  select_define(s, i, (struct select_operand){.kind = SELECT_SYMBOL, .home = REGISTER_64, .symbol = name, .distance = (int64_t)s->local_bytes});
  s->local_bytes += bytes;
}

// Which memory a pointer is of; -1: another.
static int space_of(LLVMValueRef pointer) {
  unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  if (space == GLOBAL || space == SHARED) return (int)space;
  if (space != 0) return -1;
  while (LLVMIsAGetElementPtrInst(pointer)) pointer = LLVMGetOperand(pointer, 0);
  return LLVMIsAAllocaInst(pointer) ? LOCAL : -1;
}

// index * size, of 64 bits.
static struct select_operand scaled(struct select *s, LLVMValueRef index, uint64_t size) {
  struct select_operand raw = select_raw(s, index);
  if (LLVMGetIntTypeWidth(LLVMTypeOf(index)) == 32) {
    raw = select_in_register(s, select_get(s, index));
    raw.extended = 's';
  }
  if (raw.extended && size <= INT32_MAX) {
    const char *name = raw.extended == 's' ? "mul.wide.s32" : "mul.wide.u32";
    raw.extended = 0;
    raw.home = REGISTER_32;
    return select_op2(s, REGISTER_64, name, raw, select_constant(REGISTER_32, size));
  }
  struct select_operand a = select_get(s, index);
  if (size == 1) return a;
  if ((size & (size - 1)) == 0) return select_op2(s, REGISTER_64, "shl.b64", a, select_constant(REGISTER_32, (uint64_t)__builtin_ctzll(size)));
  return select_op2(s, REGISTER_64, "mul.lo.s64", a, select_constant(REGISTER_64, size));
}

// Distances that are known stay beside the register, for the loads and stores of it.
void select_address(struct select *s, LLVMValueRef gep) {
  LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
  struct select_operand base = select_raw(s, LLVMGetOperand(gep, 0));
  int64_t distance = base.distance;
  base.distance = 0;
  unsigned count = (unsigned)LLVMGetNumOperands(gep);
  for (unsigned k = 1; k < count && !s->refusal; k++) {
    if (k > 1) {
      if (LLVMGetTypeKind(type) != LLVMArrayTypeKind) select_refuse(s, "an address inside a structure");
      else type = LLVMGetElementType(type);
    }
    uint64_t size = s->refusal ? 0 : select_bytes(s, type);
    LLVMValueRef index = LLVMGetOperand(gep, k);
    if (LLVMGetTypeKind(LLVMTypeOf(index)) != LLVMIntegerTypeKind || (LLVMGetIntTypeWidth(LLVMTypeOf(index)) != 64 && LLVMGetIntTypeWidth(LLVMTypeOf(index)) != 32)) {
      select_refuse(s, "an index of another type");
    } else if (LLVMIsAConstantInt(index)) {
      distance = (int64_t)((uint64_t)distance + (uint64_t)LLVMConstIntGetSExtValue(index) * size);
    } else if (LLVMIsAConstantExpr(gep)) {
      select_refuse(s, "a constant address of another form");
    } else {
      struct select_operand product = scaled(s, index, size);
      if (base.kind == SELECT_SYMBOL) base = select_op1(s, REGISTER_64, "mov.u64", base);
      base = select_sum(s, REGISTER_64, base, product);
    }
  }
  base.distance = distance;
  select_define(s, gep, base);
}

// Nothing writes what the load reads while the kernel runs.
static bool is_unchanging(struct select *s, LLVMValueRef load) { return LLVMGetMetadata(load, s->invariant) != NULL; }

// One access of a type: the opcode, what it moves, and its lanes where there are several.
struct access {
  struct select_type type;
  int space;
};

static bool find_access(struct select *s, LLVMValueRef pointer, LLVMTypeRef type, unsigned alignment, struct access *access) {
  access->type = select_type(type);
  access->space = space_of(pointer);
  uint32_t lanes = access->type.lanes, bytes = access->type.bits / 8 * lanes;
  bool is_known = access->space >= 0 && access->type.bits >= 8 && (lanes == 1 || lanes == 2 || lanes == 4) && bytes <= 16 && alignment >= bytes && (lanes == 1 || access->type.bits >= 16);
  if (!is_known) select_refuse(s, "an access of another form");
  return is_known;
}

static void append_place(struct select *s, LLVMValueRef pointer) {
  struct select_operand place = select_raw(s, pointer);
  if (place.distance > INT32_MAX || place.distance < INT32_MIN || place.extended || place.kind == SELECT_CONSTANT) {
    select_refuse(s, "an address of another form");
    return;
  }
  text_append(&s->body, "[", 1);
  select_operand_text(&s->body, place);
  if (place.distance) text_printf(&s->body, "+%lld", (long long)place.distance);
  text_append(&s->body, "]", 1);
}

static void append_lanes(struct select *s, const struct select_operand *lanes, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    text_puts(&s->body, k ? ", " : count > 1 ? "{" : "");
    select_operand_text(&s->body, lanes[k]);
  }
  if (count > 1) text_append(&s->body, "}", 1);
}

static void append_opcode(struct select *s, const char *name, bool is_volatile, const struct access *access, bool is_unchanging, const char *type) {
  struct text *out = &s->body;
  text_append(out, "\t", 1);
  text_puts(out, name);
  if (is_volatile) text_puts(out, ".volatile");
  text_puts(out, access->space == GLOBAL ? ".global" : access->space == SHARED ? ".shared" : ".local");
  if (is_unchanging) text_puts(out, ".nc");
  if (access->type.lanes > 1) text_puts(out, access->type.lanes == 2 ? ".v2" : ".v4");
  text_puts(out, type);
  text_append(out, " \t", 2);
}

static const char *memory_type(const struct select_type *type) {
  if (type->is_float && type->bits > 16) return type->bits == 32 ? ".f32" : ".f64";
  return type->bits == 8 ? ".u8" : type->bits == 16 ? ".u16" : type->bits == 32 ? ".u32" : ".u64";
}

// The one conversion that every reader of a load of 8 or 16 bits makes of it; NULL: none.
static LLVMValueRef only_extension(LLVMValueRef load) {
  LLVMValueRef first = NULL;
  for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsASExtInst(user) && !LLVMIsAZExtInst(user)) return NULL;
    if (!first) first = user;
    else if (LLVMGetInstructionOpcode(user) != LLVMGetInstructionOpcode(first)) return NULL;
  }
  return first;
}

void select_load(struct select *s, LLVMValueRef i) {
  LLVMValueRef pointer = LLVMGetOperand(i, 0);
  struct access access;
  if (!find_access(s, pointer, LLVMTypeOf(i), LLVMGetAlignment(i), &access)) return;
  struct select_operand *lanes = arena_array(s->cg->context->arena, struct select_operand, access.type.lanes);
  for (uint32_t k = 0; k < access.type.lanes; k++) lanes[k] = select_new(s, access.type.home);
  const char *type = memory_type(&access.type);
  LLVMValueRef extension = access.type.bits == 8 ? only_extension(i) : NULL;
  bool is_signed = extension && LLVMIsASExtInst(extension);
  if (access.type.bits == 8) {
    lanes[0].is_zeroed = !is_signed;
    lanes[0].is_signed = is_signed;
    if (is_signed) type = ".s8";
  }
  append_opcode(s, "ld", LLVMGetVolatile(i), &access, access.space == GLOBAL && !LLVMGetVolatile(i) && is_unchanging(s, i), type);
  append_lanes(s, lanes, access.type.lanes);
  text_append(&s->body, ", ", 2);
  append_place(s, pointer);
  text_append(&s->body, ";\n", 2);
  select_define_lanes(s, i, lanes, access.type.lanes);
}

void select_store(struct select *s, LLVMValueRef i) {
  LLVMValueRef value = LLVMGetOperand(i, 0), pointer = LLVMGetOperand(i, 1);
  enum { MOST = 4 };
  struct select_operand lanes[MOST];
  struct access access;
  if (!find_access(s, pointer, LLVMTypeOf(value), LLVMGetAlignment(i), &access)) return;
  for (uint32_t k = 0; k < access.type.lanes; k++) lanes[k] = select_in_register(s, select_is_cut_by_store(value) ? select_get(s, LLVMGetOperand(value, 0)) : select_lane(s, value, k));
  append_opcode(s, "st", LLVMGetVolatile(i), &access, false, memory_type(&access.type));
  append_place(s, pointer);
  text_append(&s->body, ", ", 2);
  append_lanes(s, lanes, access.type.lanes);
  text_append(&s->body, ";\n", 2);
}
