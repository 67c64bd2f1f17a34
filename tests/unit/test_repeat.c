// Which launches count as the same: every part of every argument.
#include "runtime/dlpack.h"
#include "runtime/repeat.h"

#include <criterion/criterion.h>
#include <string.h>

// The keys of two lists are equal, lengths and all.
static bool are_same(const red_argument *a, size_t a_count, const red_argument *b, size_t b_count) {
  struct repeat_key x, y;
  cr_assert(repeat_make_key(a, a_count, &x) && repeat_make_key(b, b_count, &y));
  return x.word_count == y.word_count && x.tensor_count == y.tensor_count && memcmp(x.words, y.words, x.word_count * sizeof *x.words) == 0 &&
         memcmp(x.addresses, y.addresses, x.tensor_count * sizeof *x.addresses) == 0;
}

Test(repeat, every_part_of_a_tensor_counts) {
  char data[64];
  int64_t shape[] = {3, 4}, other_shape[] = {4, 3}, strides[] = {4, 1}, other_strides[] = {1, 3};
  const red_tensor base = {data, RED_F32, 2, shape, strides};
  red_tensor same = base, changed[6];
  for (int i = 0; i < 6; i++) changed[i] = base;
  changed[0].data = data + 4;
  changed[1].type = RED_I32;
  changed[2].rank = 1;
  changed[3].shape = other_shape;
  changed[4].strides = other_strides;
  changed[5].strides = NULL;
  red_argument a = red_of_tensor(&base), b = red_of_tensor(&same);
  cr_expect(are_same(&a, 1, &b, 1));
  for (int i = 0; i < 6; i++) {
    b = red_of_tensor(&changed[i]);
    cr_expect_not(are_same(&a, 1, &b, 1), "part %d", i);
  }
}

Test(repeat, every_part_of_a_dltensor_counts) {
  char data[64];
  int64_t shape[] = {3, 4}, other_shape[] = {4, 3}, strides[] = {4, 1};
  const struct dl_tensor base = {data, DL_CUDA, 0, 2, {DL_FLOAT, 32, 1}, shape, NULL, 0};
  struct dl_tensor same = base, changed[10];
  for (int i = 0; i < 10; i++) changed[i] = base;
  changed[0].data = data + 4;
  changed[1].device_type = DL_CUDA_MANAGED;
  changed[2].device_id = 1;
  changed[3].rank = 1;
  changed[4].type.code = DL_INT;
  changed[5].type.bits = 64;
  changed[6].type.lanes = 2;
  changed[7].shape = other_shape;
  changed[8].strides = strides;
  changed[9].byte_offset = 4;
  red_argument a = red_of_dltensor(&base), b = red_of_dltensor(&same);
  cr_expect(are_same(&a, 1, &b, 1));
  for (int i = 0; i < 10; i++) {
    b = red_of_dltensor(&changed[i]);
    cr_expect_not(are_same(&a, 1, &b, 1), "part %d", i);
  }
}

Test(repeat, scalars_by_kind_and_value) {
  red_argument a[] = {red_int(1), red_float(1)}, b[] = {red_int(1), red_float(1)};
  cr_expect(are_same(a, 2, b, 2));
  b[0] = red_int(2);
  cr_expect_not(are_same(a, 2, b, 2));
  b[0] = red_size(1);
  cr_expect_not(are_same(a, 2, b, 2));
  b[0] = red_int(1);
  b[1] = red_float(-0.0);
  cr_expect_not(are_same(a, 2, b, 2));
  cr_expect_not(are_same(a, 2, a, 1));
}

// What is not legal, or does not fit, is left to the launch that evaluates.
Test(repeat, others_are_left_out) {
  struct repeat_key key;
  char data[4];
  int64_t shape[64];
  for (int i = 0; i < 64; i++) shape[i] = 1;
  red_tensor deep = {data, RED_F32, 64, shape, NULL}, negative = {data, RED_F32, -1, shape, NULL}, shapeless = {data, RED_F32, 2, NULL, NULL};
  red_argument one[] = {red_of_tensor(NULL)}, many[200];
  cr_expect_not(repeat_make_key(one, 1, &key));
  cr_expect_not(repeat_make_key(NULL, 1, &key));
  one[0] = red_of_tensor(&deep);
  cr_expect_not(repeat_make_key(one, 1, &key));
  one[0] = red_of_tensor(&negative);
  cr_expect_not(repeat_make_key(one, 1, &key));
  one[0] = red_of_tensor(&shapeless);
  cr_expect_not(repeat_make_key(one, 1, &key));
  one[0] = red_int(1);
  one[0].kind = 9;
  cr_expect_not(repeat_make_key(one, 1, &key));
  for (int i = 0; i < 200; i++) many[i] = red_int(i);
  cr_expect_not(repeat_make_key(many, 200, &key));
}
