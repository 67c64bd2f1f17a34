// The common cases, red_permute and red_reduce: the programs that they stand for, and their kernels on a device.
#ifndef RED_RUNTIME_COMMON_H
#define RED_RUNTIME_COMMON_H

#include "runtime/device.h"

enum { COMMON_TEXT_BYTES = 16384 };

// What a text depends on; compared byte by byte, so zeroed first.
struct common_key {
  uint8_t op; // a row of common_ops; 0: permute
  uint8_t types[2], ranks[2], is_strided[2];
  uint8_t axes[PLAN_MAX_RANK]; // permute: perm; reduce: 1 for those that are reduced
};
struct common_kernel {
  struct common_kernel *next;
  struct common_key key;
  struct red_program *program;
  const struct red_kernel *kernel;
};

red_error common_permute_key(const red_tensor *X, const red_tensor *Y, const int *perm, struct common_key *key);
red_error common_reduce_key(const char *op, const red_tensor *X, const red_tensor *Y, const int *axes, int axis_count, struct common_key *key);
// The program's text, at most COMMON_TEXT_BYTES with its zero byte.
void common_text(const struct common_key *key, char *text);
// The kernel of a key on the device; NULL: not compiled yet.
const struct red_kernel *common_find(struct red_device *device, const struct common_key *key);
// Keeps a program for the key, or releases it where another thread was faster; gives the kernel that is kept.
red_error common_add(struct red_device *device, const struct common_key *key, struct red_program *program, const struct red_kernel **kernel);
void common_close(struct red_device *device);

#endif
