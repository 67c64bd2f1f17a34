// Evaluates a plan: sizes, requirements, the entry, its launches. Allocates nothing.
#include "runtime/plan.h"

#include "runtime/half.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int64_t saturate(__int128 value) {
  return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

static int64_t wrap(int64_t value, int64_t bits, bool is_signed) {
  if (bits == 64) return !is_signed && value < 0 ? INT64_MAX : value;
  uint64_t kept = (uint64_t)value & ((UINT64_C(1) << bits) - 1);
  return is_signed && kept >> (bits - 1) ? (int64_t)(kept | ~UINT64_C(0) << bits) : (int64_t)kept;
}

// In 64 bits where that is enough: launches compute hundreds of these.
static inline int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t subtract(int64_t a, int64_t b) {
  int64_t difference;
  return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN) : difference;
}

static inline int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : product;
}

static inline int64_t divide(int64_t a, int64_t b) {
  if (b == 0) return -1;
  return b == -1 ? (a == INT64_MIN ? INT64_MAX : -a) : a / b;
}

static inline int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}

// The stride of a dimension in elements; row-major where the caller gives none.
static int64_t tensor_stride(const struct plan_tensor_value *tensor, uint32_t dimension) {
  if (tensor->strides) return tensor->strides[dimension];
  int64_t stride = 1;
  for (uint32_t d = tensor->rank; d-- > dimension + 1;) stride = multiply(stride, tensor->dims[d]);
  return stride;
}

static int64_t scalar_value(int64_t index, const struct plan_kernel *kernel, const struct plan_input *input) {
  int64_t value = input->scalars[index].integer;
  return kernel->scalars[index].type == PLAN_U64 && value < 0 ? INT64_MAX : value;
}

static int64_t address_value(int64_t index, const struct plan_input *input) {
  uint64_t address = input->tensors[index].address;
  return address > INT64_MAX ? INT64_MAX : (int64_t)address;
}

// One jump an operation: a launch computes a hundred of them.
int64_t plan_compute(const struct plan_expr *expr, const struct plan_kernel *kernel,
                     const struct plan_input *input, const int64_t *sizes) {
  int64_t stack[PLAN_MAX_DEPTH + 1], *top = stack; // top[-1] is the last operand
  const struct plan_code *code = expr->codes;
#define PUSH(value) *top++ = (value)
#define UNARY(value) top[-1] = (value)
#define BINARY(value) top--, top[-1] = (value)
  for (uint32_t left = expr->count; left; left--, code++) {
    int64_t operand = code->operand;
    switch (code->op) {
    case PLAN_OP_CONST: PUSH(operand); break;
    case PLAN_OP_SIZE: PUSH(sizes[operand]); break;
    case PLAN_OP_SCALAR: PUSH(scalar_value(operand, kernel, input)); break;
    case PLAN_OP_DIM: PUSH(input->tensors[operand].dims[code->dimension]); break;
    case PLAN_OP_STRIDE: PUSH(tensor_stride(&input->tensors[operand], code->dimension)); break;
    case PLAN_OP_ADDRESS: PUSH(address_value(operand, input)); break;
    case PLAN_OP_SMS: PUSH(input->facts.sms); break;
    case PLAN_OP_ARCH: PUSH(input->facts.arch); break;
    case PLAN_OP_SHARED: PUSH(input->facts.shared); break;
    case PLAN_OP_WRAP_SIGNED: UNARY(wrap(top[-1], operand, true)); break;
    case PLAN_OP_WRAP_UNSIGNED: UNARY(wrap(top[-1], operand, false)); break;
    case PLAN_OP_NEG: UNARY(subtract(0, top[-1])); break;
    case PLAN_OP_ABS: UNARY(top[-1] < 0 ? subtract(0, top[-1]) : top[-1]); break;
    case PLAN_OP_NOT: UNARY(top[-1] == 0); break;
    case PLAN_OP_ADD: BINARY(add(top[-1], top[0])); break;
    case PLAN_OP_SUB: BINARY(subtract(top[-1], top[0])); break;
    case PLAN_OP_MUL: BINARY(multiply(top[-1], top[0])); break;
    case PLAN_OP_DIV: BINARY(divide(top[-1], top[0])); break;
    case PLAN_OP_MOD: BINARY(modulo(top[-1], top[0])); break;
    case PLAN_OP_MIN: BINARY(top[-1] < top[0] ? top[-1] : top[0]); break;
    case PLAN_OP_MAX: BINARY(top[-1] > top[0] ? top[-1] : top[0]); break;
    case PLAN_OP_AND: BINARY(top[-1] & top[0]); break;
    case PLAN_OP_OR: BINARY(top[-1] | top[0]); break;
    case PLAN_OP_XOR: BINARY(top[-1] ^ top[0]); break;
    case PLAN_OP_SHL: BINARY(saturate((__int128)top[-1] * ((__int128)1 << (top[0] & 63)))); break;
    case PLAN_OP_SHR: BINARY(top[-1] >> (top[0] & 63)); break;
    case PLAN_OP_EQ: BINARY(top[-1] == top[0]); break;
    case PLAN_OP_NE: BINARY(top[-1] != top[0]); break;
    case PLAN_OP_LT: BINARY(top[-1] < top[0]); break;
    case PLAN_OP_LE: BINARY(top[-1] <= top[0]); break;
    case PLAN_OP_GT: BINARY(top[-1] > top[0]); break;
    case PLAN_OP_GE: BINARY(top[-1] >= top[0]); break;
    case PLAN_OP_SELECT:
      top -= 2;
      top[-1] = top[-1] ? top[0] : top[1];
      break;
    case PLAN_OP_COUNT: break;
    }
  }
#undef PUSH
#undef UNARY
#undef BINARY
  return top > stack ? stack[0] : 0;
}

// --- Checks
// ---------------------------------------------------------------------------------------------------------

struct evaluation {
  const struct plan_kernel *kernel;
  const struct plan_input *input;
  struct plan_result *result;
};

static enum plan_status refuse(struct plan_result *result, enum plan_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum plan_status refuse(struct plan_result *result, enum plan_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->message, sizeof result->message, format, arguments);
  va_end(arguments);
  return status;
}

static void note(struct plan_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct plan_result *result, const char *format, ...) {
  size_t used = strlen(result->notes);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->notes + used, sizeof result->notes - used, format, arguments);
  va_end(arguments);
}

static int64_t compute(const struct evaluation *e, const struct plan_expr *expr) {
  return plan_compute(expr, e->kernel, e->input, e->result->sizes);
}

static enum plan_status check_types(const struct evaluation *e) {
  for (uint32_t t = 0; t < e->kernel->tensor_count; t++) {
    const struct plan_tensor *tensor = &e->kernel->tensors[t];
    const struct plan_tensor_value *value = &e->input->tensors[t];
    if (value->type != tensor->type)
      return refuse(e->result, PLAN_TYPE_MISMATCH,
                    "%s: the argument has elements of type %s, the kernel's are %s", tensor->name,
                    plan_type_name(value->type), plan_type_name(tensor->type));
    if (value->rank != tensor->rank)
      return refuse(e->result, PLAN_RANK,
                    "%s: the argument has rank %" PRIu32 ", the kernel's tensor has rank %" PRIu32,
                    tensor->name, value->rank, tensor->rank);
    for (uint32_t d = 0; d < tensor->rank; d++)
      if (value->dims[d] < 0)
        return refuse(e->result, PLAN_SHAPE, "%s: extent %" PRId64 " in dimension %" PRIu32 " is negative",
                      tensor->name, value->dims[d], d);
  }
  return PLAN_OK;
}

static enum plan_status infer_sizes(const struct evaluation *e) {
  for (uint32_t i = 0; i < e->kernel->size_count; i++) {
    const struct plan_size *size = &e->kernel->sizes[i];
    int64_t *value = &e->result->sizes[i];
    if (size->is_constant)
      *value = size->constant;
    else if (size->inferred.count)
      *value = compute(e, &size->inferred);
    else
      *value = e->input->sizes[i];
    // Named strides are sizes that may be negative.
    bool is_stride = size->inferred.count == 1 && size->inferred.codes[0].op == PLAN_OP_STRIDE;
    if (*value < 0 && !is_stride)
      return refuse(e->result, PLAN_SHAPE, "size %s is %" PRId64 ", which is negative", size->name, *value);
  }
  return PLAN_OK;
}

// What a dimension's expression is called in a message: a size's name where it is one alone.
static const char *expr_name(const struct evaluation *e, const struct plan_expr *expr) {
  return expr->count == 1 && expr->codes[0].op == PLAN_OP_SIZE ? e->kernel->sizes[expr->codes[0].operand].name
                                                               : NULL;
}

static enum plan_status refuse_extent(const struct evaluation *e, const struct plan_tensor *tensor,
                                      uint32_t d, int64_t expected, int64_t got) {
  const char *name = expr_name(e, &tensor->dims[d]);
  char why[160] = "";
  if (name) {
    const struct plan_size *size = &e->kernel->sizes[tensor->dims[d].codes[0].operand];
    if (size->is_constant)
      snprintf(why, sizeof why, " (%.48s = %" PRId64 " was given at compile time)", name, expected);
    else if (size->inferred.count == 1 && size->inferred.codes[0].op == PLAN_OP_DIM)
      snprintf(why, sizeof why, " (%.48s = %" PRId64 " comes from %.48s, dimension %" PRIu32 ")", name,
               expected, e->kernel->tensors[size->inferred.codes[0].operand].name,
               size->inferred.codes[0].dimension);
    else
      snprintf(why, sizeof why, " (%.48s = %" PRId64 ")", name, expected);
  }
  return refuse(e->result, PLAN_SHAPE,
                "%s: extent %" PRId64 " in dimension %" PRIu32 ", but the kernel needs %" PRId64 "%s",
                tensor->name, got, d, expected, why);
}

static bool is_empty(const struct plan_tensor_value *value) {
  for (uint32_t d = 0; d < value->rank; d++)
    if (value->dims[d] == 0) return true;
  return false;
}

static enum plan_status check_shapes(const struct evaluation *e) {
  for (uint32_t t = 0; t < e->kernel->tensor_count; t++) {
    const struct plan_tensor *tensor = &e->kernel->tensors[t];
    const struct plan_tensor_value *value = &e->input->tensors[t];
    for (uint32_t d = 0; d < tensor->rank; d++) {
      int64_t expected = compute(e, &tensor->dims[d]);
      if (expected != value->dims[d]) return refuse_extent(e, tensor, d, expected, value->dims[d]);
    }
  }
  return PLAN_OK;
}

// Strides that the kernel fixes: row-major unless strided, else as declared. Those of extents 0 and 1 are
// ignored.
static enum plan_status check_strides(const struct evaluation *e) {
  for (uint32_t t = 0; t < e->kernel->tensor_count; t++) {
    const struct plan_tensor *tensor = &e->kernel->tensors[t];
    const struct plan_tensor_value *value = &e->input->tensors[t];
    if (is_empty(value) || (!value->strides && !tensor->is_strided)) continue;
    int64_t row_major = 1;
    for (uint32_t d = tensor->rank; d-- > 0;) {
      int64_t expected = tensor->is_strided
                             ? tensor->strides ? compute(e, &tensor->strides[d]) : tensor_stride(value, d)
                             : row_major;
      int64_t got = tensor_stride(value, d);
      if (value->dims[d] > 1 && got != expected)
        return refuse(e->result, PLAN_STRIDE,
                      "%s: stride %" PRId64 " in dimension %" PRIu32 ", but the kernel needs %" PRId64 "%s",
                      tensor->name, got, d, expected,
                      tensor->is_strided ? "" : " (its tensors are row-major; declare it `strided`)");
      row_major = multiply(row_major, value->dims[d]);
    }
  }
  return PLAN_OK;
}

// Bytes that a tensor touches, as offsets from its address: lo to hi, hi exclusive.
static void byte_span(const struct plan_tensor_value *value, int64_t *lo, int64_t *hi) {
  int64_t low = 0, high = 0, row_major = 1, bytes = plan_type_bytes(value->type);
  for (uint32_t d = value->rank; d-- > 0;) {
    int64_t reach = multiply(value->strides ? value->strides[d] : row_major, value->dims[d] - 1);
    if (reach < 0)
      low = add(low, reach);
    else
      high = add(high, reach);
    row_major = multiply(row_major, value->dims[d]);
  }
  *lo = multiply(low, bytes);
  *hi = add(multiply(high, bytes), bytes);
}

static int64_t magnitude(int64_t x) {
  return x < 0 ? saturate(-(__int128)x) : x;
}

// Whether every element has an address of its own, for strides that nest: each at least the reach of the
// smaller ones.
static bool is_injective(const struct plan_tensor_value *value) {
  if (!value->strides) return true;
  int64_t last = 0,
          reach = 0; // |stride| of the dimension before, elements that the dimensions so far span, less one
  bool used[PLAN_MAX_RANK] = {false};
  for (uint32_t round = 0; round < value->rank; round++) {
    uint32_t least = UINT32_MAX;
    for (uint32_t d = 0; d < value->rank; d++)
      if (!used[d] && value->dims[d] > 1 &&
          (least == UINT32_MAX ||
           magnitude(tensor_stride(value, d)) < magnitude(tensor_stride(value, least))))
        least = d;
    if (least == UINT32_MAX) break;
    used[least] = true;
    last = magnitude(tensor_stride(value, least));
    if (last <= reach) return false;
    reach = saturate(reach + (__int128)last * (value->dims[least] - 1));
  }
  return true;
}

// Whether two tensors with a common stride P lie in different residues modulo P: columns of one buffer.
static bool lie_in_columns(const struct plan_tensor_value *a, const struct plan_tensor_value *b,
                           uint64_t a_bytes, uint64_t b_bytes) {
  for (uint32_t i = 0; i < a->rank; i++)
    for (uint32_t j = 0; j < b->rank; j++) {
      __int128 pitch = (__int128)magnitude(tensor_stride(a, i)) * (int64_t)a_bytes;
      if (!pitch || a->dims[i] < 2 || b->dims[j] < 2 ||
          pitch != (__int128)magnitude(tensor_stride(b, j)) * (int64_t)b_bytes)
        continue;
      // The spans without that dimension.
      struct plan_tensor_value inner[2] = {*a, *b};
      int64_t dims[2][PLAN_MAX_RANK], strides[2][PLAN_MAX_RANK], lo[2], hi[2];
      for (int side = 0; side < 2; side++) {
        for (uint32_t d = 0; d < inner[side].rank; d++) {
          dims[side][d] = d == (side ? j : i) ? 1 : inner[side].dims[d];
          strides[side][d] = tensor_stride(side ? b : a, d);
        }
        inner[side].dims = dims[side];
        inner[side].strides = strides[side];
        byte_span(&inner[side], &lo[side], &hi[side]);
      }
      __int128 a_lo = (__int128)a->address + lo[0], b_lo = (__int128)b->address + lo[1];
      __int128 distance =
          ((b_lo - a_lo) % pitch + pitch) % pitch; // of b's first byte behind a's, modulo the pitch
      if (distance >= (__int128)hi[0] - lo[0] && distance + ((__int128)hi[1] - lo[1]) <= pitch) return true;
    }
  return false;
}

static bool overlap(const struct plan_tensor_value *a, const struct plan_tensor_value *b) {
  int64_t a_lo, a_hi, b_lo, b_hi;
  byte_span(a, &a_lo, &a_hi);
  byte_span(b, &b_lo, &b_hi);
  if ((__int128)a->address + a_hi <= (__int128)b->address + b_lo ||
      (__int128)b->address + b_hi <= (__int128)a->address + a_lo)
    return false;
  return !lie_in_columns(a, b, plan_type_bytes(a->type), plan_type_bytes(b->type));
}

static enum plan_status check_memory(const struct evaluation *e) {
  const struct plan_kernel *kernel = e->kernel;
  for (uint32_t t = 0; t < kernel->tensor_count; t++) {
    const struct plan_tensor_value *value = &e->input->tensors[t];
    uint32_t bytes = plan_type_bytes(value->type);
    if (is_empty(value)) continue;
    if (!value->address)
      return refuse(e->result, PLAN_NULL, "%s: the address is null", kernel->tensors[t].name);
    if (value->address % bytes)
      return refuse(e->result, PLAN_MISALIGNED,
                    "%s: address 0x%" PRIx64 " is not aligned to the element's %" PRIu32 " bytes",
                    kernel->tensors[t].name, value->address, bytes);
    if (kernel->tensors[t].is_output && !is_injective(value))
      return refuse(e->result, PLAN_ALIAS, "%s: the strides give two elements of an output one address",
                    kernel->tensors[t].name);
  }
  for (uint32_t t = 0; t < kernel->tensor_count; t++)
    for (uint32_t u = t + 1; u < kernel->tensor_count; u++)
      if ((kernel->tensors[t].is_output || kernel->tensors[u].is_output) &&
          !is_empty(&e->input->tensors[t]) && !is_empty(&e->input->tensors[u]) &&
          overlap(&e->input->tensors[t], &e->input->tensors[u]))
        return refuse(e->result, PLAN_OVERLAP, "%s and %s overlap in memory; an output may overlap nothing",
                      kernel->tensors[t].name, kernel->tensors[u].name);
  return PLAN_OK;
}

// The message of a requirement, with the sizes that it mentions and their values.
static enum plan_status refuse_requirement(const struct evaluation *e,
                                           const struct plan_requirement *requirement) {
  enum plan_status status = refuse(e->result, PLAN_REQUIREMENT, "%s", requirement->message);
  bool seen[PLAN_MAX_SIZES] = {false};
  const char *separator = ": ";
  for (uint32_t i = 0; i < requirement->condition.count; i++) {
    const struct plan_code *code = &requirement->condition.codes[i];
    if (code->op != PLAN_OP_SIZE || seen[code->operand]) continue;
    seen[code->operand] = true;
    size_t used = strlen(e->result->message);
    snprintf(e->result->message + used, sizeof e->result->message - used, "%s%s = %" PRId64, separator,
             e->kernel->sizes[code->operand].name, e->result->sizes[code->operand]);
    separator = ", ";
  }
  return status;
}

// --- Entries
// ----------------------------------------------------------------------------------------------------------

// A scalar in the bytes of its type.
static uint64_t scalar_bits(enum plan_type type, union plan_number value) {
  uint64_t bits = 0;
  float single = (float)value.number;
  if (type == PLAN_F32)
    memcpy(&bits, &single, sizeof single);
  else if (type == PLAN_F64)
    memcpy(&bits, &value.number, sizeof bits);
  else if (type == PLAN_F16)
    bits = half_from_double(value.number);
  else if (type == PLAN_BF16)
    bits = bfloat_from_double(value.number);
  else
    bits = (uint64_t)value.integer;
  return bits;
}

// Fills in one launch. Returns false, with a note, where a limit of the device or of CUDA is exceeded.
static bool evaluate_launch(const struct evaluation *e, const struct plan_entry *entry,
                            const struct plan_launch *launch, struct plan_launch_value *value, bool *runs) {
  static const int64_t limits[3] = {2147483647, 65535, 65535};
  value->launch = launch;
  *runs = true;
  for (int d = 0; d < 3; d++) {
    int64_t extent = compute(e, &launch->grid[d]);
    if (extent < 0 || extent > limits[d]) {
      note(e->result, "%s passed over: a grid of %" PRId64 " blocks along %c\n", entry->name, extent,
           "xyz"[d]);
      return false;
    }
    *runs = *runs && extent > 0;
    value->grid[d] = (uint32_t)extent;
  }
  int64_t shared = compute(e, &launch->shared);
  if (shared < 0 || shared > e->input->facts.shared) {
    note(e->result, "%s passed over: %" PRId64 " bytes of shared memory, a block may have %" PRId64 "\n",
         entry->name, shared, e->input->facts.shared);
    return false;
  }
  value->shared = (uint32_t)shared;
  for (uint32_t a = 0; a < launch->argument_count; a++) {
    const struct plan_argument *argument = &launch->arguments[a];
    int64_t integer;
    switch (argument->kind) {
    case PLAN_ARGUMENT_TENSOR: value->arguments[a] = e->input->tensors[argument->index].address; break;
    case PLAN_ARGUMENT_SCALAR:
      value->arguments[a] =
          scalar_bits(e->kernel->scalars[argument->index].type, e->input->scalars[argument->index]);
      break;
    case PLAN_ARGUMENT_INTEGER:
      integer = compute(e, &argument->expr);
      if (argument->bytes == 4 && (integer < INT32_MIN || integer > UINT32_MAX)) {
        note(e->result, "%s passed over: argument %" PRIu32 " is %" PRId64 ", more than 32 bits\n",
             entry->name, a, integer);
        return false;
      }
      value->arguments[a] = (uint64_t)integer;
      break;
    case PLAN_ARGUMENT_WORKSPACE: value->arguments[a] = (uint64_t)compute(e, &argument->expr); break;
    }
  }
  value->workspace = 0;
  return true;
}

static bool has_output_elements(const struct evaluation *e) {
  for (uint32_t t = 0; t < e->kernel->tensor_count; t++)
    if (e->kernel->tensors[t].is_output && !is_empty(&e->input->tensors[t])) return true;
  return false;
}

static bool evaluate_entry(const struct evaluation *e, const struct plan_entry *entry) {
  struct plan_result *result = e->result;
  if (entry->when.count && !compute(e, &entry->when)) return false;
  for (uint32_t a = 0; a < entry->assumption_count; a++)
    if (!compute(e, &entry->assumptions[a].condition)) {
      note(result, "%s passed over: %s\n", entry->name, entry->assumptions[a].message);
      return false;
    }
  result->launch_count = 0;
  for (uint32_t l = 0; l < entry->launch_count; l++) {
    bool runs;
    if (!evaluate_launch(e, entry, &entry->launches[l], &result->launches[result->launch_count], &runs))
      return false;
    result->launch_count += runs;
  }
  if (!has_output_elements(e)) result->launch_count = 0;
  result->workspace = compute(e, &entry->workspace);
  if (result->workspace < 0 || result->workspace == INT64_MAX) {
    note(result, "%s passed over: %" PRId64 " bytes of workspace\n", entry->name, result->workspace);
    return false;
  }
  result->zeroed = compute(e, &entry->zeroed);
  result->entry = entry;
  return true;
}

static void begin(struct plan_result *result) {
  result->entry = NULL;
  result->launch_count = 0;
  result->workspace = result->zeroed = 0;
  result->message[0] = 0;
}

// Requirements, then the first entry that can be.
static enum plan_status choose(const struct evaluation *e) {
  const struct plan_kernel *kernel = e->kernel;
  struct plan_result *result = e->result;
  for (uint32_t i = 0; i < kernel->requirement_count; i++)
    if (!compute(e, &kernel->requirements[i].condition)) return refuse_requirement(e, &kernel->requirements[i]);
  for (uint32_t i = 0; i < kernel->entry_count; i++)
    if (evaluate_entry(e, &kernel->entries[i])) return PLAN_OK;
  refuse(result, PLAN_LIMIT, "%s: no schedule fits this launch", kernel->name);
  if (result->notes[0]) {
    size_t used = strlen(result->message), length = strcspn(result->notes, "\n");
    snprintf(result->message + used, sizeof result->message - used, " (%.*s)", (int)length, result->notes);
  }
  return PLAN_LIMIT;
}

enum plan_status plan_evaluate(const struct plan_kernel *kernel, const struct plan_input *input,
                               struct plan_result *result) {
  struct evaluation e = {kernel, input, result};
  begin(result);
  result->notes[0] = 0;
  enum plan_status status = check_types(&e);
  if (status == PLAN_OK) status = infer_sizes(&e);
  if (status == PLAN_OK) status = check_shapes(&e);
  if (status == PLAN_OK) status = check_strides(&e);
  if (status == PLAN_OK) status = check_memory(&e);
  return status == PLAN_OK ? choose(&e) : status;
}

enum plan_status plan_evaluate_checked(const struct plan_kernel *kernel, const struct plan_input *input,
                                       struct plan_result *result) {
  struct evaluation e = {kernel, input, result};
  begin(result);
  enum plan_status status = infer_sizes(&e);
  return status == PLAN_OK ? choose(&e) : status;
}

void plan_place_workspace(struct plan_result *result, uint64_t address) {
  for (uint32_t l = 0; l < result->launch_count; l++) {
    struct plan_launch_value *value = &result->launches[l];
    for (uint32_t a = 0; a < value->launch->argument_count; a++)
      if (value->launch->arguments[a].kind == PLAN_ARGUMENT_WORKSPACE)
        value->arguments[a] += address - value->workspace;
    value->workspace = address;
  }
}
