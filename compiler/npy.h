// Files of NumPy's .npy format: one array, versions 1 to 3, C or Fortran order, either byte order.
//
// Types that NumPy lacks travel as bytes: bf16 as u16 (or as V2), f8e4m3 and f8e5m2 as u8 (or as V1).
#ifndef RED_COMPILER_NPY_H
#define RED_COMPILER_NPY_H

#include "compiler/ir.h"

enum { NPY_MAX_RANK = 64 };
struct npy {
  char kind;       // of the descr: b i u f c V
  uint32_t bytes;  // of an element
  bool is_swapped; // big-endian
  bool is_fortran;
  uint32_t rank;
  int64_t dims[NPY_MAX_RANK];
  int64_t count;    // elements
  const char *data; // into the bytes that were parsed
};

// Reads a whole file's bytes, which must stay. False: `error` says what is wrong with them.
bool npy_parse(struct npy *npy, const char *bytes, size_t length, char *error, size_t error_bytes);
// Whether the elements are of this type as NumPy knows it.
bool npy_has_type(const struct npy *npy, enum type type);
// Whether the elements' bytes can stand for a type that NumPy lacks: u16 or V2 for bf16, u8 or V1 for f8e4m3.
bool npy_can_hold(const struct npy *npy, enum type type);
// NumPy's name of the elements' type, such as "float32" or "big-endian int16"; in the arena.
const char *npy_type_name(struct arena *arena, const struct npy *npy);
// The elements in row-major order and this machine's byte order: count * bytes.
void npy_copy(const struct npy *npy, void *target);
// Appends a file of version 1 in C order. `data` is row-major.
void npy_print(struct text *out, enum type type, uint32_t rank, const int64_t *dims, const void *data);

#endif
