#include "compiler/reference_code.h"

#include "compiler/arith_scalar.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t wrap_signed(uint64_t x, uint8_t shift) {
  return (int64_t)(x << shift) >> shift;
}
static int64_t wrap_unsigned(uint64_t x, uint8_t shift) {
  return (int64_t)(x << shift >> shift);
}

// The address of an access, or NULL where an index leaves its dimension.
static inline uint8_t *address(const struct access *access, const union slot *r) {
  uint8_t *data = access->data;
  for (uint32_t d = 0; d < access->rank; d++) {
    const struct access_index *index = &access->index[d];
    int64_t at = r[index->reg].i;
    if ((uint64_t)at >= (uint64_t)index->dim) return NULL;
    data += at * index->stride;
  }
  return data;
}

static bool refuse_access(const struct access *access, const union slot *r, char *error, size_t error_bytes) {
  char indices[256] = "", dims[256] = "";
  for (uint32_t d = 0; d < access->rank && d < 8; d++) {
    size_t i = strlen(indices), n = strlen(dims);
    snprintf(indices + i, sizeof indices - i, "%s%" PRId64, d ? ", " : "", r[access->index[d].reg].i);
    snprintf(dims + n, sizeof dims - n, "%s%" PRId64, d ? ", " : "", access->index[d].dim);
  }
  snprintf(error, error_bytes, "in stage '%s': %s[%s] is outside its extents [%s]", access->stage,
           access->name, indices, dims);
  return false;
}

bool reference_execute(const struct program *program, const struct reference_input *input, uint64_t *elements,
                       char *error, size_t error_bytes) {
  union slot *r = program->registers;
  const struct instr *code = program->instrs;
  uint64_t count = 0;
  uint8_t *at;
  for (const struct instr *pc = code;; pc++) {
    switch (pc->code) {
#define X(name, expr)                                                                                        \
  case CODE_##name##_F32: {                                                                                  \
    float a = r[pc->a].f, b = r[pc->b].f;                                                                    \
    r[pc->dst].f = expr;                                                                                     \
    break;                                                                                                   \
  }                                                                                                          \
  case CODE_##name##_F64: {                                                                                  \
    double a = r[pc->a].d, b = r[pc->b].d;                                                                   \
    r[pc->dst].d = expr;                                                                                     \
    break;                                                                                                   \
  }
      CODE_FLOAT_BINARY(X)
#undef X
#define X(name, function)                                                                                    \
  case CODE_##name##_F32: r[pc->dst].f = scalar_##function##_f32(r[pc->a].f, r[pc->b].f); break;             \
  case CODE_##name##_F64: r[pc->dst].d = scalar_##function##_f64(r[pc->a].d, r[pc->b].d); break;
      CODE_FLOAT_SCALAR(X)
#undef X
#define X(name, operator)                                                                                    \
  case CODE_##name##_F32: r[pc->dst].i = r[pc->a].f operator r[pc->b].f; break;                              \
  case CODE_##name##_F64: r[pc->dst].i = r[pc->a].d operator r[pc->b].d; break;                              \
  case CODE_##name##_S: r[pc->dst].i = r[pc->a].i operator r[pc->b].i; break;                                \
  case CODE_##name##_U: r[pc->dst].i = (uint64_t)r[pc->a].i operator(uint64_t) r[pc->b].i; break;
      CODE_COMPARE(X)
#undef X
#define INTEGER(name, s_expr, u_expr)                                                                        \
  case CODE_I##name##_S: {                                                                                   \
    int64_t a = r[pc->a].i, b = r[pc->b].i;                                                                  \
    r[pc->dst].i = wrap_signed((uint64_t)(s_expr), pc->shift);                                               \
    break;                                                                                                   \
  }                                                                                                          \
  case CODE_I##name##_U: {                                                                                   \
    uint64_t a = (uint64_t)r[pc->a].i, b = (uint64_t)r[pc->b].i;                                             \
    r[pc->dst].i = wrap_unsigned((uint64_t)(u_expr), pc->shift);                                             \
    break;                                                                                                   \
  }
      INTEGER(ADD, (uint64_t)a + (uint64_t)b, a + b)
      INTEGER(SUB, (uint64_t)a - (uint64_t)b, a - b)
      INTEGER(MUL, (uint64_t)a * (uint64_t)b, a * b)
      INTEGER(DIV, scalar_div(a, b, true), scalar_div((int64_t)a, (int64_t)b, false))
      INTEGER(MOD, scalar_mod(a, b, true), scalar_mod((int64_t)a, (int64_t)b, false))
      INTEGER(MIN, a < b ? a : b, a < b ? a : b)
      INTEGER(MAX, a < b ? b : a, a < b ? b : a)
      INTEGER(AND, a & b, a & b)
      INTEGER(OR, a | b, a | b)
      INTEGER(XOR, a ^ b, a ^ b)
      INTEGER(SHL, (uint64_t)a << (b & (63 - pc->shift)), a << (b & (uint64_t)(63 - pc->shift)))
      INTEGER(SHR, a >> (b & (63 - pc->shift)), a >> (b & (uint64_t)(63 - pc->shift)))
#undef INTEGER
#define X(name, type, member)                                                                                \
  case CODE_LOAD_##name: {                                                                                   \
    type element;                                                                                            \
    if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);             \
    memcpy(&element, at, sizeof element);                                                                    \
    r[pc->dst].member = element;                                                                             \
    break;                                                                                                   \
  }                                                                                                          \
  case CODE_STORE_##name: {                                                                                  \
    type element = (type)r[pc->a].member;                                                                    \
    if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);             \
    memcpy(at, &element, sizeof element);                                                                    \
    break;                                                                                                   \
  }
      CODE_ELEMENTS(X)
#undef X
#define X(name, to, from, expr)                                                                              \
  case CODE_##name: {                                                                                        \
    __typeof__(r->from) a = r[pc->a].from;                                                                   \
    r[pc->dst].to = expr;                                                                                    \
    break;                                                                                                   \
  }
      CODE_CONVERSIONS(X)
#undef X
    case CODE_LOAD_BOOL:
      if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);
      r[pc->dst].i = *at != 0;
      break;
    case CODE_LOAD_128:
      if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);
      memcpy(r[pc->dst].raw, at, 16);
      break;
    case CODE_STORE_128:
      if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);
      memcpy(at, r[pc->a].raw, 16);
      break;
    case CODE_LOAD_VALUE:
      if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);
      memcpy(&r[pc->dst].i, at, 8);
      break;
    case CODE_STORE_VALUE:
      if (!(at = address(pc->access, r))) return refuse_access(pc->access, r, error, error_bytes);
      memcpy(at, &r[pc->a].i, 8);
      break;
    case CODE_POW_F32: r[pc->dst].f = (float)pow((double)r[pc->a].f, (double)r[pc->b].f); break;
    case CODE_POW_F64: r[pc->dst].d = pow(r[pc->a].d, r[pc->b].d); break;
    case CODE_FMA_F32: r[pc->dst].f = fmaf(r[pc->a].f, r[pc->b].f, r[pc->c].f); break;
    case CODE_FMA_F64: r[pc->dst].d = fma(r[pc->a].d, r[pc->b].d, r[pc->c].d); break;
    case CODE_CALL_F32: r[pc->dst].f = (float)pc->function((double)r[pc->a].f); break;
    case CODE_CALL_F64: r[pc->dst].d = pc->function(r[pc->a].d); break;
    case CODE_NEG_S: r[pc->dst].i = wrap_signed(0 - (uint64_t)r[pc->a].i, pc->shift); break;
    case CODE_NEG_U: r[pc->dst].i = wrap_unsigned(0 - (uint64_t)r[pc->a].i, pc->shift); break;
    case CODE_NOT_S: r[pc->dst].i = ~r[pc->a].i; break;
    case CODE_NOT_U: r[pc->dst].i = wrap_unsigned(~(uint64_t)r[pc->a].i, pc->shift); break;
    case CODE_ABS_S:
      r[pc->dst].i = wrap_signed(r[pc->a].i < 0 ? 0 - (uint64_t)r[pc->a].i : (uint64_t)r[pc->a].i, pc->shift);
      break;
    case CODE_WRAP_S: r[pc->dst].i = wrap_signed((uint64_t)r[pc->a].i, pc->shift); break;
    case CODE_WRAP_U: r[pc->dst].i = wrap_unsigned((uint64_t)r[pc->a].i, pc->shift); break;
    case CODE_D_TO_S: r[pc->dst].i = scalar_to_signed(r[pc->a].d, 64u - pc->shift); break;
    case CODE_D_TO_U: r[pc->dst].i = (int64_t)scalar_to_unsigned(r[pc->a].d, 64u - pc->shift); break;
    case CODE_F_BITS_S: {
      int32_t bits;
      memcpy(&bits, &r[pc->a].f, 4);
      r[pc->dst].i = bits;
      break;
    }
    case CODE_F_BITS_U: {
      uint32_t bits;
      memcpy(&bits, &r[pc->a].f, 4);
      r[pc->dst].i = bits;
      break;
    }
    case CODE_BITS_F: {
      uint32_t bits = (uint32_t)r[pc->a].i;
      memcpy(&r[pc->dst].f, &bits, 4);
      break;
    }
    case CODE_MOVE: r[pc->dst] = r[pc->a]; break;
    case CODE_SELECT: r[pc->dst] = r[pc->a].i ? r[pc->b] : r[pc->c]; break;
    case CODE_JUMP: pc = code + pc->target - 1; break;
    case CODE_JUMP_UNLESS:
      if (!r[pc->a].i) pc = code + pc->target - 1;
      break;
    case CODE_LOOP_BEGIN:
      r[pc->dst].i = 0;
      if (r[pc->a].i <= 0) pc = code + pc->target - 1;
      break;
    case CODE_LOOP_END:
      if (++r[pc->dst].i < r[pc->a].i) pc = code + pc->target - 1;
      break;
    case CODE_COUNT_ELEMENT:
      if (!(++count & 0xfffff) && input->progress) input->progress(*elements + count, input->progress_state);
      break;
    case CODE_END: *elements += count; return true;
    }
  }
}
