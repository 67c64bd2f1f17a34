// The reference interpreter's code: a register machine with loops. Between reference.c, reference_build.c and
// reference_execute.c alone.
//
// Registers are typed by their use: f32 in `f`, f64 in `d`, integers extended in `i` (f16 and bf16 as their
// bits), moved types in `raw`. Integer results are wrapped by shifting left and right by `shift` = 64 -
// width.
#ifndef RED_COMPILER_REFERENCE_CODE_H
#define RED_COMPILER_REFERENCE_CODE_H

#include "compiler/reference.h"

// Operations on two operands in four kinds of register; EXPR of a and b.
#define CODE_FLOAT_BINARY(X) X(ADD, a + b) X(SUB, a - b) X(MUL, a *b) X(DIV, a / b)
#define CODE_FLOAT_SCALAR(X) X(MIN, min) X(MAX, max) X(FMIN, fmin) X(FMAX, fmax)
#define CODE_COMPARE(X) X(EQ, ==) X(NE, !=) X(LT, <) X(LE, <=) X(GT, >) X(GE, >=)
#define CODE_INTEGER_BINARY(X)                                                                               \
  X(ADD) X(SUB) X(MUL) X(DIV) X(MOD) X(MIN) X(MAX) X(AND) X(OR) X(XOR) X(SHL) X(SHR)
// Element types in memory: X(NAME, C type, member).
#define CODE_ELEMENTS(X)                                                                                     \
  X(I8, int8_t, i)                                                                                           \
  X(I16, int16_t, i)                                                                                         \
  X(I32, int32_t, i)                                                                                         \
  X(I64, int64_t, i) X(U8, uint8_t, i) X(U16, uint16_t, i) X(U32, uint32_t, i) X(F32, float, f)              \
      X(F64, double, d)
// Conversions: X(NAME, to member, from member, EXPR of a).
#define CODE_CONVERSIONS(X)                                                                                  \
  X(I_TO_F, f, i, (float)a)                                                                                  \
  X(U_TO_F, f, i, (float)(uint64_t)a)                                                                        \
  X(I_TO_D, d, i, (double)a)                                                                                 \
  X(U_TO_D, d, i, (double)(uint64_t)a) X(F_TO_D, d, f, (double)a) X(D_TO_F, f, d, (float)a)                  \
      X(HALF_TO_F, f, i, half_to_float((uint16_t)a)) X(BFLOAT_TO_F, f, i, bfloat_to_float((uint16_t)a))      \
          X(D_TO_HALF, i, d, half_from_double(a)) X(D_TO_BFLOAT, i, d, bfloat_from_double(a))                \
              X(D_TO_BOOL, i, d, a != 0) X(I_TO_BOOL, i, i, a != 0) X(NOT_BOOL, i, i, !a) X(F_NEG, f, f, -a) \
                  X(D_NEG, d, d, -a) X(F_ABS, f, f, fabsf(a)) X(D_ABS, d, d, fabs(a))                        \
                      X(F_SQRT, f, f, sqrtf(a)) X(F_ISNAN, i, f, isnan(a) != 0)                              \
                          X(D_ISNAN, i, d, isnan(a) != 0) X(F_ISINF, i, f, isinf(a) != 0)                    \
                              X(D_ISINF, i, d, isinf(a) != 0)

enum code {
#define X(name, expr) CODE_##name##_F32, CODE_##name##_F64,
  CODE_FLOAT_BINARY(X) CODE_FLOAT_SCALAR(X)
#undef X
#define X(name, operator) CODE_##name##_F32, CODE_##name##_F64, CODE_##name##_S, CODE_##name##_U,
      CODE_COMPARE(X)
#undef X
#define X(name) CODE_I##name##_S, CODE_I##name##_U,
          CODE_INTEGER_BINARY(X)
#undef X
#define X(name, type, member) CODE_LOAD_##name, CODE_STORE_##name,
              CODE_ELEMENTS(X)
#undef X
#define X(name, to, from, expr) CODE_##name,
                  CODE_CONVERSIONS(X)
#undef X
                      CODE_LOAD_BOOL,
  CODE_LOAD_128,
  CODE_STORE_128,
  CODE_LOAD_VALUE,
  CODE_STORE_VALUE, // dst or a, values
  CODE_POW_F32,
  CODE_POW_F64,
  CODE_FMA_F32,
  CODE_FMA_F64,
  CODE_CALL_F32,
  CODE_CALL_F64, // function
  CODE_NEG_S,
  CODE_NEG_U,
  CODE_NOT_S,
  CODE_NOT_U,
  CODE_ABS_S,
  CODE_WRAP_S,
  CODE_WRAP_U, // dst = wrap(a)
  CODE_D_TO_S,
  CODE_D_TO_U, // saturating, to 64 - shift bits
  CODE_F_BITS_S,
  CODE_F_BITS_U, // the bits of an f32, extended
  CODE_BITS_F,   // an f32 of these bits
  CODE_MOVE,
  CODE_SELECT, // dst = a;  dst = a ? b : c
  CODE_JUMP,
  CODE_JUMP_UNLESS, // to target; unless a
  CODE_LOOP_BEGIN,  // dst = 0; to target where extent a <= 0
  CODE_LOOP_END,    // ++dst < a: to target
  CODE_COUNT_ELEMENT,
  CODE_END,
};

union slot {
  int64_t i;
  float f;
  double d;
  uint64_t raw[2];
};

// An access to a tensor, or to the values of a reduce stage (which count in elements of 8 bytes).
struct access_index {
  uint32_t reg;
  int64_t dim, stride; // stride in bytes
};
struct access {
  const char *name;
  const char *stage;
  uint8_t *data;
  uint32_t rank;
  struct access_index index[];
};

struct instr {
  enum code code;
  uint32_t dst, a, b, c;
  uint32_t target; // an instruction's number
  uint8_t shift;
  union {
    const struct access *access;
    arith_function *function;
  };
};

struct program {
  struct instr *instrs;
  uint32_t count, capacity;
  union slot *registers;
  uint32_t register_count, register_capacity;
};

// reference_build.c: translates stages. Arrays for the values of reduce stages are the builder's; they and
// the program live until reference_builder_free.
struct reference_builder;
struct reference_builder *reference_builder_new(const struct ir_kernel *kernel,
                                                const struct reference_input *input, char *error,
                                                size_t error_bytes);
// Appends one stage. False: `error` says why.
bool reference_build_stage(struct reference_builder *builder, const struct ir_stage *stage);
// Ends the program, which is valid until the next stage.
const struct program *reference_builder_program(struct reference_builder *builder);
void reference_builder_free(struct reference_builder *builder);

// reference_execute.c: runs a program that ends with CODE_END.
bool reference_execute(const struct program *program, const struct reference_input *input, uint64_t *elements,
                       char *error, size_t error_bytes);

#endif
