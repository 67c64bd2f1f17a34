// Any bytes as a .npy file: an array that is read must fit the bytes, and must print and read back with the same elements.
#include "compiler/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct npy npy, again;
  char error[256];
  if (!npy_parse(&npy, (const char *)data, size, error, sizeof error)) return 0;
  size_t bytes = (size_t)npy.count * npy.bytes;
  if (bytes > size) abort();
  char *first = malloc(bytes + 1), *second = malloc(bytes + 1);
  npy_copy(&npy, first);
  for (int t = 0; t < TYPE_COUNT; t++) {
    enum type type = (enum type)t;
    if (type == TYPE_INDEX || (!npy_has_type(&npy, type) && !npy_can_hold(&npy, type))) continue;
    struct text text = {0};
    npy_print(&text, type, npy.rank, npy.dims, first);
    if (!npy_parse(&again, text.data, text.length, error, sizeof error) || again.count != npy.count) abort();
    npy_copy(&again, second);
    if (memcmp(first, second, bytes) != 0) abort();
    text_free(&text);
  }
  free(first);
  free(second);
  return 0;
}
