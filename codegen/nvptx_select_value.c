// Values of LLVM and the registers that they lie in; lines of PTX.
#include "codegen/nvptx_select.h"

#include <string.h>

void select_refuse(struct select *s, const char *why) {
  if (!s->refusal) s->refusal = why;
}

static struct select_type scalar_type(LLVMTypeRef type) {
  switch ((int)LLVMGetTypeKind(type)) {
  case LLVMIntegerTypeKind: {
    unsigned bits = LLVMGetIntTypeWidth(type);
    enum select_register home = bits == 1 ? REGISTER_PREDICATE : bits <= 16 ? REGISTER_16 : bits == 32 ? REGISTER_32 : REGISTER_64;
    bool is_known = bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
    return (struct select_type){home, is_known ? bits : 0, 1, false};
  }
  case LLVMHalfTypeKind:
  case LLVMBFloatTypeKind: return (struct select_type){REGISTER_16, 16, 1, true};
  case LLVMFloatTypeKind: return (struct select_type){REGISTER_32, 32, 1, true};
  case LLVMDoubleTypeKind: return (struct select_type){REGISTER_64, 64, 1, true};
  case LLVMPointerTypeKind: return (struct select_type){REGISTER_64, 64, 1, false};
  default: return (struct select_type){REGISTER_64, 0, 1, false};
  }
}

struct select_type select_type(LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return scalar_type(type);
  struct select_type lane = scalar_type(LLVMGetElementType(type));
  lane.lanes = LLVMGetVectorSize(type);
  return lane;
}

uint64_t select_bytes(struct select *s, LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) == LLVMArrayTypeKind) {
    LLVMTypeRef element = LLVMGetElementType(type);
    if (LLVMGetTypeKind(element) != LLVMArrayTypeKind) return LLVMGetArrayLength2(type) * select_bytes(s, element);
    select_refuse(s, "an array of arrays");
    return 0;
  }
  struct select_type known = select_type(type);
  if (known.bits < 8) select_refuse(s, "a type without a size");
  return known.lanes * known.bits / 8;
}

struct select_operand select_new(struct select *s, enum select_register home) {
  return (struct select_operand){.kind = SELECT_REGISTER, .home = (uint8_t)home, .number = ++s->registers[home]};
}

struct select_operand select_constant(enum select_register home, uint64_t bits) {
  static const uint64_t masks[] = {1, UINT16_MAX, UINT32_MAX, UINT64_MAX};
  return (struct select_operand){.kind = SELECT_CONSTANT, .home = (uint8_t)home, .bits = bits & masks[home]};
}

static uint32_t slot_of(const struct select *s, LLVMValueRef key) {
  uint32_t at = (uint32_t)((uintptr_t)key >> 3) * 2654435761u >> 7 & (s->value_capacity - 1);
  while (s->values[at].key && s->values[at].key != key) at = (at + 1) & (s->value_capacity - 1);
  return at;
}

struct select_value *select_find(struct select *s, LLVMValueRef key) {
  if (!s->value_capacity) return NULL;
  struct select_value *value = &s->values[slot_of(s, key)];
  return value->key ? value : NULL;
}

static struct select_value *insert(struct select *s, LLVMValueRef key) {
  if (2 * s->value_count >= s->value_capacity) {
    struct select_value *old = s->values;
    uint32_t capacity = s->value_capacity;
    s->value_capacity = capacity ? 2 * capacity : 512;
    s->values = arena_array(s->cg->context->arena, struct select_value, s->value_capacity);
    for (uint32_t i = 0; i < capacity; i++)
      if (old[i].key) s->values[slot_of(s, old[i].key)] = old[i];
  }
  struct select_value *value = &s->values[slot_of(s, key)];
  if (!value->key) s->value_count++;
  *value = (struct select_value){.key = key};
  return value;
}

void select_define(struct select *s, LLVMValueRef key, struct select_operand operand) {
  struct select_value *value = insert(s, key);
  value->one = operand;
  value->count = 1;
}

void select_define_lanes(struct select *s, LLVMValueRef key, struct select_operand *lanes, uint32_t count) {
  struct select_value *value = insert(s, key);
  value->one = lanes[0];
  value->lanes = lanes;
  value->count = count;
}

static struct select_operand constant_of(struct select *s, LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  struct select_type known = select_type(type);
  if (known.lanes != 1 || !known.bits) {
    select_refuse(s, "a constant of several parts");
    return select_constant(known.home, 0);
  }
  if (LLVMIsAConstantInt(value)) return select_constant(known.home, LLVMConstIntGetZExtValue(value));
  if (LLVMIsUndef(value) || LLVMIsNull(value)) return select_constant(known.home, 0); // poison is undefined too
  if (LLVMIsAConstantFP(value)) {
    LLVMValueRef bits = LLVMConstBitCast(value, LLVMIntTypeInContext(s->cg->llvm, known.bits));
    if (LLVMIsAConstantInt(bits)) return select_constant(known.home, LLVMConstIntGetZExtValue(bits));
  }
  if (LLVMIsAGlobalVariable(value)) {
    uint32_t i = 0;
    while (i < s->shared_count && s->shared[i] != value) i++;
    if (i == s->shared_count) {
      if (i == s->shared_capacity) {
        LLVMValueRef *old = s->shared;
        s->shared_capacity = i ? 2 * i : 8;
        s->shared = arena_array(s->cg->context->arena, LLVMValueRef, s->shared_capacity);
        if (i) memcpy(s->shared, old, i * sizeof *old);
      }
      s->shared[s->shared_count++] = value;
    }
    size_t length;
    return (struct select_operand){.kind = SELECT_SYMBOL, .home = REGISTER_64, .symbol = LLVMGetValueName2(value, &length)};
  }
  select_refuse(s, "a constant of another kind");
  return select_constant(known.home, 0);
}

struct select_operand select_raw(struct select *s, LLVMValueRef value) {
  const struct select_value *known = select_find(s, value);
  if (known) {
    if (known->count != 1) select_refuse(s, "one lane of several");
    return known->one;
  }
  if (LLVMIsAConstantExpr(value)) {
    LLVMOpcode opcode = LLVMGetConstOpcode(value);
    if (opcode == LLVMGetElementPtr) {
      select_address(s, value);
      known = select_find(s, value);
      if (known && known->one.kind == SELECT_SYMBOL) return known->one;
    } else if (opcode == LLVMPtrToInt && select_type(LLVMTypeOf(value)).bits == 64) {
      return select_raw(s, LLVMGetOperand(value, 0));
    } else if (opcode == LLVMPtrToInt && select_type(LLVMTypeOf(value)).bits == 32) {
      return select_op1(s, REGISTER_32, "cvt.u32.u64", select_get(s, LLVMGetOperand(value, 0)));
    }
    select_refuse(s, "a constant expression");
    return select_constant(REGISTER_64, 0);
  }
  if (!LLVMIsConstant(value)) {
    select_refuse(s, "a value that is not defined");
    return select_constant(REGISTER_64, 0);
  }
  return constant_of(s, value);
}

static struct select_operand plain(struct select *s, struct select_operand a) {
  if (a.kind == SELECT_SYMBOL) {
    struct select_operand symbol = a;
    symbol.distance = 0;
    int64_t distance = a.distance;
    a = select_op1(s, REGISTER_64, "mov.u64", symbol);
    a.distance = distance;
  }
  if (a.extended) {
    struct select_operand narrow = a;
    narrow.extended = 0;
    narrow.home = REGISTER_32;
    return select_op1(s, REGISTER_64, a.extended == 's' ? "cvt.s64.s32" : "cvt.u64.u32", narrow);
  }
  if (!a.distance) return a;
  struct select_operand base = a;
  base.distance = 0;
  return select_op2(s, REGISTER_64, "add.s64", base, select_constant(REGISTER_64, (uint64_t)a.distance));
}

struct select_operand select_get(struct select *s, LLVMValueRef value) {
  struct select_value *known = select_find(s, value);
  if (known && known->plain_block == s->printed) return known->plain;
  struct select_operand raw = select_raw(s, value);
  if (raw.kind != SELECT_SYMBOL && !raw.extended && !raw.distance) return raw;
  struct select_operand result = plain(s, raw);
  known = select_find(s, value);
  if (known) {
    known->plain = result;
    known->plain_block = s->printed;
  }
  return result;
}

struct select_operand select_lane(struct select *s, LLVMValueRef value, uint32_t lane) {
  const struct select_value *known = select_find(s, value);
  if (known && known->count > 1) {
    if (lane < known->count) return known->lanes[lane];
    select_refuse(s, "a lane behind the last");
    return known->lanes[0];
  }
  LLVMTypeRef type = LLVMTypeOf(value);
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return select_get(s, value);
  if (LLVMIsUndef(value) || LLVMIsNull(value)) return select_constant(select_type(type).home, 0);
  if (LLVMIsAConstantDataVector(value) || LLVMIsAConstantVector(value)) return select_get(s, LLVMGetAggregateElement(value, lane));
  select_refuse(s, "a vector of another kind");
  return select_constant(select_type(type).home, 0);
}

struct select_operand select_in_register(struct select *s, struct select_operand operand) {
  if (operand.kind == SELECT_REGISTER) return operand;
  struct select_operand to = select_new(s, (enum select_register)operand.home);
  select_move(s, to, operand);
  return to;
}

static size_t decimal(char *to, uint64_t number) {
  char digits[20];
  size_t count = 0, length = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  while (count) to[length++] = digits[--count];
  return length;
}

static const char *const prefixes[] = {"%p", "%rs", "%r", "%rd"};

void select_operand_text(struct text *out, struct select_operand operand) {
  char buffer[32];
  size_t length = 0;
  if (operand.kind == SELECT_SYMBOL) {
    text_puts(out, operand.symbol);
    return;
  }
  if (operand.kind == SELECT_REGISTER) {
    for (const char *c = prefixes[operand.home]; *c; c++) buffer[length++] = *c;
    length += decimal(buffer + length, operand.number);
  } else {
    int64_t number = operand.home == REGISTER_16   ? (int16_t)operand.bits
                     : operand.home == REGISTER_32 ? (int32_t)operand.bits
                     : operand.home == REGISTER_64 ? (int64_t)operand.bits
                                                   : -(int64_t)operand.bits;
    if (number < 0) buffer[length++] = '-';
    length += decimal(buffer + length, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
  }
  text_append(out, buffer, length);
}

// Whether an operation of this name reads floats.
static char float_letter(const char *name) {
  const char *end = name + strlen(name);
  return end - name > 4 && end[-4] == '.' && end[-3] == 'f' ? end[-2] : 0;
}

void select_line(struct select *s, const char *name, const struct select_operand *operands, uint32_t count) {
  struct text *out = &s->body;
  text_append(out, "\t", 1);
  text_puts(out, name);
  text_append(out, " \t", 2);
  char letter = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (i) text_append(out, ", ", 2);
    if (operands[i].kind == SELECT_CONSTANT && operands[i].home >= REGISTER_32) {
      if (!letter) letter = float_letter(name) ? float_letter(name) : 'i';
      if (letter == '3' && operands[i].home == REGISTER_32) {
        text_printf(out, "0f%08X", (unsigned)operands[i].bits);
        continue;
      }
      if (letter == '6' && operands[i].home == REGISTER_64) {
        text_printf(out, "0d%016llX", (unsigned long long)operands[i].bits);
        continue;
      }
    }
    select_operand_text(out, operands[i]);
  }
  text_append(out, ";\n", 2);
}

void select_move(struct select *s, struct select_operand to, struct select_operand from) {
  static const char *const names[] = {"mov.pred", "mov.b16", "mov.b32", "mov.b64"};
  struct select_operand both[2] = {to, from};
  select_line(s, from.kind == SELECT_SYMBOL ? "mov.u64" : names[to.home], both, 2);
}

struct select_operand select_op1(struct select *s, enum select_register home, const char *name, struct select_operand a) {
  struct select_operand all[2] = {select_new(s, home), a};
  select_line(s, name, all, 2);
  return all[0];
}

struct select_operand select_op2(struct select *s, enum select_register home, const char *name, struct select_operand a, struct select_operand b) {
  struct select_operand all[3] = {select_new(s, home), a, b};
  select_line(s, name, all, 3);
  return all[0];
}

struct select_operand select_op3(struct select *s, enum select_register home, const char *name, struct select_operand a, struct select_operand b, struct select_operand c) {
  struct select_operand all[4] = {select_new(s, home), a, b, c};
  select_line(s, name, all, 4);
  return all[0];
}
