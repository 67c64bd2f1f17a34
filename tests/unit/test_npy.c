#include "compiler/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

// A file: version, header text (padded by one newline), data.
static size_t make(char *out, int version, const char *header, const void *data, size_t bytes) {
  size_t length = strlen(header) + 1, start = version == 1 ? 10 : 12;
  memcpy(out, "\x93NUMPY", 6);
  out[6] = (char)version;
  out[7] = 0;
  out[8] = (char)length;
  out[9] = out[10] = out[11] = 0;
  memcpy(out + start, header, length - 1);
  out[start + length - 1] = '\n';
  memcpy(out + start + length, data, bytes);
  return start + length + bytes;
}

static bool parse(struct npy *npy, int version, const char *header, const void *data, size_t bytes,
                  char *error) {
  static char file[4096];
  return npy_parse(npy, file, make(file, version, header, data, bytes), error, 256);
}

Test(npy, reads_what_it_prints) {
  static const enum type types[] = {TYPE_BOOL, TYPE_I8,   TYPE_I16,  TYPE_I32,    TYPE_I64,   TYPE_U8,
                                    TYPE_U16,  TYPE_U32,  TYPE_U64,  TYPE_F16,    TYPE_F32,   TYPE_F64,
                                    TYPE_C64,  TYPE_C128, TYPE_BF16, TYPE_F8E4M3, TYPE_F8E5M2};
  char data[16 * 6], back[sizeof data], error[256];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 37 + 11);
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (uint32_t rank = 0; rank <= 3; rank++) {
      int64_t dims[3] = {rank == 1 ? 6 : 1, 2, 3};
      if (rank == 2) dims[0] = 3;
      struct text text = {0};
      npy_print(&text, types[t], rank, dims, data);
      struct npy npy;
      cr_assert(npy_parse(&npy, text.data, text.length, error, sizeof error), "%s", error);
      cr_assert_eq((npy.data - text.data) % 64, 0);
      cr_assert_eq(npy.rank, rank);
      cr_assert_eq(npy.count, rank ? 6 : 1);
      for (uint32_t d = 0; d < rank; d++) cr_assert_eq(npy.dims[d], dims[d]);
      cr_assert(npy_has_type(&npy, types[t]) != npy_can_hold(&npy, types[t]));
      npy_copy(&npy, back);
      cr_assert_eq(memcmp(back, data, (size_t)npy.count * type_bytes(types[t])), 0);
      text_free(&text);
    }
}

Test(npy, is_what_numpy_writes) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t dims[2] = {2, 3};
  struct text text = {0};
  npy_print(&text, TYPE_F32, 2, dims, data);
  static const char expected[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  cr_assert_eq(text.length, 128 + sizeof data);
  cr_assert_eq(memcmp(text.data, "\x93NUMPY\x01\x00\x76\x00", 10), 0);
  cr_assert_eq(memcmp(text.data + 10, expected, sizeof expected - 1), 0);
  cr_assert_eq(text.data[127], '\n');
  text_free(&text);
}

Test(npy, fortran_order) {
  int16_t data[6] = {0, 10, 1, 11, 2, 12}, back[6]; // columns of [[0 1 2] [10 11 12]]
  static const int16_t rows[6] = {0, 1, 2, 10, 11, 12};
  struct npy npy;
  char error[256];
  for (int version = 1; version <= 3; version++) {
    cr_assert(parse(&npy, version, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", data,
                    sizeof data, error),
              "%s", error);
    npy_copy(&npy, back);
    cr_assert_eq(memcmp(back, rows, sizeof rows), 0);
  }
}

Test(npy, big_endian) {
  static const unsigned char data[8] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}; // 1, -2
  float back[2];
  struct npy npy;
  struct arena arena;
  char error[256];
  arena_init(&arena);
  cr_assert(parse(&npy, 1, "{\"shape\": (2L,), \"descr\": \">f4\", 'fortran_order': False}", data, 8, error),
            "%s", error);
  cr_assert_str_eq(npy_type_name(&arena, &npy), "big-endian float32");
  npy_copy(&npy, back);
  cr_assert_eq(back[0], 1);
  cr_assert_eq(back[1], -2);
  cr_assert(parse(&npy, 1, "{'descr': '>c8', 'fortran_order': False, 'shape': (), }", data, 8, error), "%s",
            error);
  npy_copy(&npy, back); // the halves keep their order
  cr_assert_eq(back[0], 1);
  cr_assert_eq(back[1], -2);
  arena_destroy(&arena);
}

Test(npy, empty_arrays) {
  struct npy npy;
  char error[256];
  cr_assert(parse(&npy, 1,
                  "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0, "
                  "4611686018427387904), }",
                  "", 0, error),
            "%s", error);
  cr_assert_eq(npy.count, 0);
  npy_copy(&npy, NULL);
}

static void is_refused(const char *header, const char *message) {
  struct npy npy;
  char error[256] = "";
  cr_expect(!parse(&npy, 1, header, "12345678", 8, error), "%s", header);
  cr_expect_str_eq(error, message);
}

Test(npy, refusals) {
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
             "the file is cut off: 4 bytes of elements are missing");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "4 bytes follow the array");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
             "the file is cut off: its shape needs more than 2^63 bytes");
  is_refused("{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }",
             "elements of type '<f16' are not known here");
  is_refused("{'descr': '', 'fortran_order': False, 'shape': (1,), }",
             "elements of type '' are not known here");
  is_refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
             "elements of type '|O' are not known here");
  is_refused("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }",
             "records are not arrays of numbers");
  is_refused("{'descr': '<f4', 'fortran_order': False, }",
             "malformed header: descr, fortran_order or shape is missing");
  is_refused("{'descr': '<f4', 'fortran_order': No, 'shape': (2,)}",
             "malformed header: illegal fortran_order");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
             "malformed header: the shape is no tuple");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "malformed header: illegal extent");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
             "malformed header: illegal extent");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2",
             "malformed header: the shape is not closed");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
             "malformed header: the dictionary is not closed");
  is_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
             "malformed header: text behind the dictionary");
  is_refused("{'descr': '<f4', 'descr': '<f4'}", "malformed header: unexpected key 'descr'");
  is_refused("nonsense", "malformed header: no dictionary");
  is_refused("", "malformed header: no dictionary");
}

// Every cut and every changed byte gives an error or an array, never a crash.
Test(npy, survives_damage) {
  char file[256], error[256], back[64];
  double data[6] = {1, 2, 3, 4, 5, 6};
  size_t length =
      make(file, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", data, sizeof data);
  struct npy npy;
  for (size_t cut = 0; cut < length; cut++) cr_expect(!npy_parse(&npy, file, cut, error, sizeof error));
  for (size_t at = 0; at < length - sizeof data; at++)
    for (int byte = 0; byte < 256; byte++) {
      char kept = file[at];
      file[at] = (char)byte;
      if (npy_parse(&npy, file, length, error, sizeof error)) {
        cr_expect_leq((size_t)npy.count * npy.bytes, sizeof data);
        npy_copy(&npy, back);
      }
      file[at] = kept;
    }
}
