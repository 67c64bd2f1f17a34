// Constants and conversions in the CUDA text.
#include "codegen/cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cuda_type(enum type type) {
  switch (type) {
  case TYPE_BOOL: return "bool";
  case TYPE_I8: return "signed char";
  case TYPE_I16: return "short";
  case TYPE_I32: return "int";
  case TYPE_I64: return "long long";
  case TYPE_U8: return "unsigned char";
  case TYPE_U16: return "unsigned short";
  case TYPE_U32: return "unsigned";
  case TYPE_U64: return "unsigned long long";
  case TYPE_F16:
  case TYPE_BF16: return "unsigned short";
  case TYPE_F32: return "float";
  case TYPE_F64: return "double";
  case TYPE_F8E4M3:
  case TYPE_F8E5M2: return "unsigned char";
  case TYPE_C64: return "float2";
  case TYPE_C128: return "double2";
  case TYPE_INDEX:
  case TYPE_COUNT: break;
  }
  return "long long";
}

const char *cuda_memory_type(enum type type) {
  return type == TYPE_BOOL ? "unsigned char" : cuda_type(type);
}

// --- Constants ---------------------------------------------------------------------------------------------

// The shortest decimal that reads back as the same number.
static void float_constant(struct cuda *cg, enum type type, double number, enum cuda_place place) {
  bool is_single = type == TYPE_F32, is_negative = signbit(number);
  char text[40];
  if (isnan(number)) {
    float single = (float)number;
    uint32_t bits32;
    uint64_t bits64;
    memcpy(&bits32, &single, sizeof single);
    memcpy(&bits64, &number, sizeof number);
    if (is_single)
      text_printf(&cg->line, "__uint_as_float(0x%08xu)", bits32);
    else // as a sum, since the bits of a negative one are not a long long
      text_printf(&cg->line, "__longlong_as_double((long long)0x%016llxull)", (unsigned long long)bits64);
    return;
  }
  if (is_negative && place >= PLACE_UNARY) text_puts(&cg->line, "(");
  if (is_negative) text_puts(&cg->line, "-");
  number = fabs(number);
  if (isinf(number)) {
    text_puts(&cg->line,
              is_single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000ll)");
  } else {
    for (int digits = is_single ? 6 : 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, number);
      if (is_single ? strtof(text, NULL) == (float)number : strtod(text, NULL) == number) break;
    }
    if (!strpbrk(text, ".e")) strcat(text, ".0");
    text_printf(&cg->line, "%s%s", text, is_single ? "f" : "");
  }
  if (is_negative && place >= PLACE_UNARY) text_puts(&cg->line, ")");
}

void cuda_constant(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool is_mask) {
  if (type_is_float(e->type)) {
    float_constant(cg, e->type, e->number, place);
    return;
  }
  int64_t value = e->integer;
  if (e->type == TYPE_BOOL) {
    text_puts(&cg->line, value ? "true" : "false");
    return;
  }
  const char *suffix = e->type == TYPE_I64   ? "ll"
                       : e->type == TYPE_U64 ? "ull"
                       : e->type == TYPE_U32 ? "u"
                                             : "";
  if (!type_is_signed(e->type)) {
    text_printf(&cg->line, is_mask ? "0x%llx%s" : "%llu%s", (unsigned long long)value, suffix);
  } else if (value >= 0) {
    text_printf(&cg->line, "%lld%s", (long long)value, suffix);
  } else if (value == INT64_MIN || (e->type == TYPE_I32 && value == INT32_MIN)) { // no literal has that value
    text_printf(&cg->line, "(%lld%s - 1)", (long long)(value + 1), suffix);
  } else {
    text_printf(&cg->line, place >= PLACE_UNARY ? "(%lld%s)" : "%lld%s", (long long)value, suffix);
  }
}

// --- Conversions -------------------------------------------------------------------------------------------

static void call(struct cuda *cg, const char *function, const struct ir_expr *argument) {
  text_printf(&cg->line, "%s(", function);
  cuda_expr(cg, argument, PLACE_ANY, false);
  text_puts(&cg->line, ")");
}

static void group_begin(struct cuda *cg, bool needed) {
  if (needed) text_puts(&cg->line, "(");
}
static void group_end(struct cuda *cg, bool needed) {
  if (needed) text_puts(&cg->line, ")");
}

// A C cast. A product that is converted may still reach a sum.
static void cast(struct cuda *cg, enum type to, const struct ir_expr *argument, enum cuda_place place) {
  group_begin(cg, place > PLACE_UNARY);
  text_printf(&cg->line, "(%s)", cuda_type(to));
  cuda_expr(cg, argument, PLACE_UNARY, true);
  group_end(cg, place > PLACE_UNARY);
}

static const char *to_f32_function(struct cuda *cg, enum type from) {
  return cuda_helper(cg, from == TYPE_F16 ? CUDA_F16_TO_F32 : CUDA_BF16_TO_F32);
}

// A value as float: f64 stays as it is.
static void as_float(struct cuda *cg, const struct ir_expr *argument) {
  if (type_class_of(argument->type) == CLASS_STORAGE)
    call(cg, to_f32_function(cg, argument->type), argument);
  else if (type_is_float(argument->type))
    cuda_expr(cg, argument, PLACE_ANY, false);
  else
    cast(cg, TYPE_F32, argument, PLACE_ANY);
}

static const char *to_integer_function(struct cuda *cg, enum type to, bool is_double) {
  bool is_wide = type_bits(to) == 64, is_signed = type_is_signed(to);
  if (is_wide && is_double) return cuda_helper(cg, is_signed ? CUDA_F64_TO_I64 : CUDA_F64_TO_U64);
  if (is_wide) return cuda_helper(cg, is_signed ? CUDA_F32_TO_I64 : CUDA_F32_TO_U64);
  if (is_double) return cuda_helper(cg, is_signed ? CUDA_F64_TO_I32 : CUDA_F64_TO_U32);
  return is_signed ? "__float2int_rz" : "__float2uint_rz";
}

static void to_integer(struct cuda *cg, enum type to, const struct ir_expr *argument, enum cuda_place place) {
  const char *function = to_integer_function(cg, to, argument->type == TYPE_F64);
  bool is_narrow = type_bits(to) < 32, is_signed = type_is_signed(to);
  int highest = type_bits(to) == 8 ? (is_signed ? 127 : 255) : is_signed ? 32767 : 65535;
  group_begin(cg, is_narrow && place > PLACE_UNARY);
  if (is_narrow && is_signed)
    text_printf(&cg->line, "(%s)max(%d, min(%d, ", cuda_type(to), -highest - 1, highest);
  else if (is_narrow)
    text_printf(&cg->line, "(%s)min(%du, ", cuda_type(to), highest);
  text_printf(&cg->line, "%s(", function);
  as_float(cg, argument);
  text_puts(&cg->line, ")");
  if (is_narrow) text_puts(&cg->line, is_signed ? "))" : ")");
  group_end(cg, is_narrow && place > PLACE_UNARY);
}

static void to_bool(struct cuda *cg, const struct ir_expr *argument, enum cuda_place place) {
  group_begin(cg, place > PLACE_EQUAL);
  if (type_class_of(argument->type) == CLASS_STORAGE)
    as_float(cg, argument);
  else
    cuda_expr(cg, argument, PLACE_LESS, false);
  text_puts(&cg->line, argument->type == TYPE_F64        ? " != 0.0"
                       : type_is_integer(argument->type) ? " != 0"
                                                         : " != 0.0f");
  group_end(cg, place > PLACE_EQUAL);
}

static void to_storage(struct cuda *cg, enum type to, const struct ir_expr *argument) {
  bool is_double = argument->type == TYPE_F64;
  enum cuda_helper helper = to == TYPE_F16 ? (is_double ? CUDA_F64_TO_F16 : CUDA_F32_TO_F16)
                                           : (is_double ? CUDA_F64_TO_BF16 : CUDA_F32_TO_BF16);
  text_printf(&cg->line, "%s(", cuda_helper(cg, helper));
  as_float(cg, argument);
  text_puts(&cg->line, ")");
}

void cuda_convert(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  const struct ir_expr *argument = e->args[0];
  enum type_class from = type_class_of(argument->type);
  if (e->type == argument->type) {
    cuda_expr(cg, argument, place, true);
    return;
  }
  switch (type_class_of(e->type)) {
  case CLASS_BOOL: to_bool(cg, argument, place); break;
  case CLASS_STORAGE: to_storage(cg, e->type, argument); break;
  case CLASS_FLOAT:
    if (from == CLASS_STORAGE && e->type == TYPE_F32)
      as_float(cg, argument);
    else if (from == CLASS_STORAGE)
      text_puts(&cg->line, "(double)"), as_float(cg, argument);
    else
      cast(cg, e->type, argument, place);
    break;
  case CLASS_SIGNED:
  case CLASS_UNSIGNED:
    if (from == CLASS_FLOAT || from == CLASS_STORAGE)
      to_integer(cg, e->type, argument, place);
    else
      cast(cg, e->type, argument, place);
    break;
  case CLASS_MOVED:
  case CLASS_INDEX: break; // not accepted
  }
}

// The same bits as another type.
void cuda_bitcast(struct cuda *cg, const struct ir_expr *e, enum cuda_place place) {
  const struct ir_expr *argument = e->args[0];
  bool from_float = type_is_float(argument->type), to_float = type_is_float(e->type);
  if (from_float == to_float) { // integers and the bits of f16 and bf16
    if (strcmp(cuda_type(e->type), cuda_type(argument->type)) == 0)
      cuda_expr(cg, argument, place, true);
    else
      cast(cg, e->type, argument, place);
    return;
  }
  bool is_unsigned = type_class_of(from_float ? e->type : argument->type) == CLASS_UNSIGNED;
  if (type_bits(e->type) == 32) {
    static const char *const functions[2][2] = {{"__int_as_float", "__uint_as_float"},
                                                {"__float_as_int", "__float_as_uint"}};
    call(cg, functions[from_float][is_unsigned], argument);
    return;
  }
  bool needs_parentheses = from_float && is_unsigned && place > PLACE_UNARY;
  group_begin(cg, needs_parentheses);
  if (from_float && is_unsigned) text_puts(&cg->line, "(unsigned long long)");
  text_puts(&cg->line, from_float ? "__double_as_longlong(" : "__longlong_as_double(");
  if (to_float && is_unsigned)
    cast(cg, TYPE_I64, argument, PLACE_ANY);
  else
    cuda_expr(cg, argument, PLACE_ANY, false);
  text_puts(&cg->line, ")");
  group_end(cg, needs_parentheses);
}
