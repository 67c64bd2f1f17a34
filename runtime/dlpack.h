// The part of DLPack's interface that launches read, under names of our own. Layouts are those of dlpack.h, versions 0.2 to 1.x.
#ifndef RED_RUNTIME_DLPACK_H
#define RED_RUNTIME_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 }; // DLDeviceType
enum { DL_INT, DL_UINT, DL_FLOAT, DL_OPAQUE, DL_BFLOAT, DL_COMPLEX, DL_BOOL, DL_F8E4M3 = 8, DL_F8E4M3FN = 10, DL_F8E5M2 = 12 }; // DLDataTypeCode

struct dl_type { // DLDataType
  uint8_t code, bits;
  uint16_t lanes;
};
struct dl_tensor { // DLTensor
  void *data;
  int32_t device_type, device_id;
  int32_t rank;
  struct dl_type type;
  int64_t *shape;
  int64_t *strides; // in elements; NULL: row-major
  uint64_t byte_offset;
};

// red_argument.kind, as the functions of red.h set it.
enum argument_kind { ARGUMENT_TENSOR, ARGUMENT_DLTENSOR, ARGUMENT_INTEGER, ARGUMENT_FLOAT, ARGUMENT_SIZE };

#endif
