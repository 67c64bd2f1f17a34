#include "runtime/arguments.h"

#include "runtime/dlpack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Tensors

static red_error take_tensor(const red_tensor *tensor, const char *name, struct plan_tensor_value *value) {
  if ((unsigned)tensor->type >= RED_TYPE_COUNT) return error_set(RED_ERROR_TYPE, "%s: there is no element type number %d", name, (int)tensor->type);
  value->type = (enum plan_type)tensor->type;
  value->rank = (uint32_t)tensor->rank;
  value->dims = tensor->shape;
  value->strides = tensor->strides;
  value->address = (uint64_t)(uintptr_t)tensor->data;
  return RED_OK;
}

// The element type of a DLDataType; false: red has none.
static bool dl_type(const struct dl_type *dl, enum plan_type *type) {
  static const struct {
    uint8_t code, bits;
    enum plan_type type;
  } table[] = {
      {DL_INT, 8, PLAN_I8},       {DL_INT, 16, PLAN_I16},       {DL_INT, 32, PLAN_I32},        {DL_INT, 64, PLAN_I64},
      {DL_UINT, 8, PLAN_U8},      {DL_UINT, 16, PLAN_U16},      {DL_UINT, 32, PLAN_U32},       {DL_UINT, 64, PLAN_U64},
      {DL_FLOAT, 16, PLAN_F16},   {DL_FLOAT, 32, PLAN_F32},     {DL_FLOAT, 64, PLAN_F64},      {DL_BFLOAT, 16, PLAN_BF16},
      {DL_COMPLEX, 64, PLAN_C64}, {DL_COMPLEX, 128, PLAN_C128}, {DL_BOOL, 8, PLAN_BOOL},       {DL_UINT, 1, PLAN_BOOL},
      {DL_F8E4M3, 8, PLAN_F8E4M3}, {DL_F8E4M3FN, 8, PLAN_F8E4M3}, {DL_F8E5M2, 8, PLAN_F8E5M2},
  };
  if (dl->lanes != 1) return false;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].code == dl->code && table[i].bits == dl->bits) {
      *type = table[i].type;
      return true;
    }
  return false;
}

static const char *dl_device_name(int32_t type) {
  switch (type) {
  case DL_CPU: return "the CPU";
  case DL_CUDA: return "cuda";
  case DL_CUDA_HOST: return "pinned host memory";
  case DL_CUDA_MANAGED: return "managed memory";
  default: return "a device of another kind";
  }
}

static bool dl_is_here(const struct red_device *device, const struct dl_tensor *tensor) {
  if (device->info.ordinal < 0) return tensor->device_type == DL_CPU || tensor->device_type == DL_CUDA_HOST;
  if (tensor->device_type == DL_CUDA) return tensor->device_id == device->info.ordinal;
  return tensor->device_type == DL_CUDA_HOST || tensor->device_type == DL_CUDA_MANAGED;
}

static red_error take_dltensor(const struct red_device *device, const struct dl_tensor *tensor, const char *name, struct plan_tensor_value *value) {
  if (!dl_is_here(device, tensor)) {
    char where[64];
    snprintf(where, sizeof where, "%s", dl_device_name(tensor->device_type));
    if (tensor->device_type == DL_CUDA) snprintf(where, sizeof where, "cuda:%" PRId32, tensor->device_id);
    return error_set(RED_ERROR_WRONG_DEVICE, "%s: the tensor lies on %s, the kernel runs on %s", name, where, device->name);
  }
  if (!dl_type(&tensor->type, &value->type))
    return error_set(RED_ERROR_TYPE, "%s: red has no element type for DLPack's code %d with %d bits and %d lanes", name, tensor->type.code, tensor->type.bits,
                     tensor->type.lanes);
  value->rank = (uint32_t)tensor->rank;
  value->dims = tensor->shape;
  value->strides = tensor->strides;
  value->address = tensor->data ? (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset : 0;
  return RED_OK;
}

red_error arguments_tensor(const struct red_device *device, const red_argument *argument, const char *name, struct plan_tensor_value *value) {
  const void *pointer = argument->value.pointer;
  if (!pointer) return error_set(RED_ERROR_INVALID, "%s: the tensor's description is NULL", name);
  red_error error = argument->kind == ARGUMENT_DLTENSOR ? take_dltensor(device, pointer, name, value) : take_tensor(pointer, name, value);
  if (error) return error;
  if ((int32_t)value->rank < 0 || value->rank > PLAN_MAX_RANK)
    return error_set(RED_ERROR_RANK, "%s: the argument has rank %" PRId32 "; ranks are 0 to %d", name, (int32_t)value->rank, PLAN_MAX_RANK);
  if (value->rank && !value->dims) return error_set(RED_ERROR_INVALID, "%s: the argument has rank %" PRIu32 " and no shape", name, value->rank);
  return RED_OK;
}

bool arguments_span(const struct plan_tensor_value *value, int64_t *low, int64_t *high) {
  __int128 lo = 0, hi = 0, row_major = 1;
  for (uint32_t d = value->rank; d-- > 0;) {
    if (value->dims[d] == 0) return false;
    __int128 reach = (value->strides ? value->strides[d] : row_major) * (value->dims[d] - 1);
    *(reach < 0 ? &lo : &hi) += reach;
    row_major *= value->dims[d];
    if (hi > INT64_MAX / 16) hi = INT64_MAX / 16 - 1;
    if (lo < INT64_MIN / 16) lo = INT64_MIN / 16;
    if (row_major > INT64_MAX) row_major = INT64_MAX;
  }
  int64_t bytes = plan_type_bytes(value->type);
  *low = (int64_t)lo * bytes;
  *high = ((int64_t)hi + 1) * bytes;
  return true;
}

// ---- Scalars

static red_error take_scalar(const struct plan_scalar *scalar, const red_argument *argument, union plan_number *value) {
  bool is_float = plan_type_is_float(scalar->type);
  if (is_float) {
    value->number = argument->kind == ARGUMENT_FLOAT ? argument->value.number : (double)argument->value.integer;
    return RED_OK;
  }
  if (argument->kind == ARGUMENT_FLOAT)
    return error_set(RED_ERROR_TYPE, "%s: the argument is a float, the kernel's scalar is %s", scalar->name, plan_type_name(scalar->type));
  value->integer = argument->value.integer;
  uint32_t bits = 8 * plan_type_bytes(scalar->type);
  bool is_signed = scalar->type >= PLAN_I8 && scalar->type <= PLAN_I64;
  if (scalar->type == PLAN_BOOL) bits = 1;
  int64_t high = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - is_signed)) - 1;
  int64_t low = is_signed ? -high - 1 : bits == 64 ? INT64_MIN : 0;
  if (value->integer < low || value->integer > high)
    return error_set(RED_ERROR_SCALAR, "%s: %" PRId64 " does not fit %s", scalar->name, value->integer, plan_type_name(scalar->type));
  return RED_OK;
}

// ---- All

static bool is_given(const struct plan_size *size) {
  return !size->is_constant && !size->inferred.count;
}

// Where there are too few or too many of a kind: all of them, by name.
static red_error refuse_count(const struct red_kernel *kernel, const char *what, size_t given, size_t needed) {
  char names[512] = "";
  const struct plan_kernel *plan = kernel->plan;
  size_t used = 0;
  const char *separator = "";
  bool tensors = strcmp(what, "tensor") == 0, scalars = strcmp(what, "scalar") == 0;
  uint32_t count = tensors ? plan->tensor_count : scalars ? plan->scalar_count : plan->size_count;
  for (uint32_t i = 0; i < count && used < sizeof names; i++) {
    if (!tensors && !scalars && !is_given(&plan->sizes[i])) continue;
    const char *name = tensors ? plan->tensors[i].name : scalars ? plan->scalars[i].name : plan->sizes[i].name;
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", separator, name);
    separator = ", ";
  }
  return error_set(RED_ERROR_COUNT, "%s takes %zu %s%s%s%s%s; %zu %s given", kernel->name, needed, what, needed == 1 ? "" : "s", needed ? " (" : "", names,
                   needed ? ")" : "", given, given == 1 ? "was" : "were");
}

red_error arguments_take(const struct red_kernel *kernel, const red_argument *arguments, size_t count, struct call *call) {
  const struct plan_kernel *plan = kernel->plan;
  size_t tensors = 0, scalars = 0, sizes = 0, given_sizes = 0;
  uint32_t size = 0; // the next one that a launch gives
  if (count && !arguments) return error_set(RED_ERROR_INVALID, "%s: the arguments are NULL", kernel->name);
  for (uint32_t i = 0; i < plan->size_count; i++) given_sizes += is_given(&plan->sizes[i]);
  for (size_t i = 0; i < count; i++) {
    const red_argument *argument = &arguments[i];
    red_error error = RED_OK;
    switch (argument->kind) {
    case ARGUMENT_TENSOR:
    case ARGUMENT_DLTENSOR:
      if (tensors < plan->tensor_count) error = arguments_tensor(kernel->program->device, argument, plan->tensors[tensors].name, &call->tensors[tensors]);
      tensors++;
      break;
    case ARGUMENT_INTEGER:
    case ARGUMENT_FLOAT:
      if (scalars < plan->scalar_count && !kernel->type_count) error = take_scalar(&plan->scalars[scalars], argument, &call->scalars[scalars]);
      scalars++;
      break;
    case ARGUMENT_SIZE:
      while (size < plan->size_count && !is_given(&plan->sizes[size])) size++;
      if (size < plan->size_count) call->sizes[size++] = argument->value.integer;
      sizes++;
      break;
    default: return error_set(RED_ERROR_INVALID, "%s: argument %zu is of no kind that red.h makes", kernel->name, i);
    }
    if (error) return error;
  }
  if (tensors != plan->tensor_count) return refuse_count(kernel, "tensor", tensors, plan->tensor_count);
  if (scalars != plan->scalar_count) return refuse_count(kernel, "scalar", scalars, plan->scalar_count);
  if (sizes != given_sizes) return refuse_count(kernel, "size", sizes, given_sizes);
  call->input = (struct plan_input){call->tensors, call->scalars, call->sizes, kernel->program->device->facts};
  return RED_OK;
}
