// The parts of redc run: buffers with canaries, the comparison with the reference, numbers as text.
#include "compiler/pipeline.h"
#include "compiler/run_buffer.h"
#include "compiler/run_compare.h"
#include "compiler/run_element.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct arena arena;
static char error[512];

static void begin(void) {
  arena_init(&arena);
}
static void end(void) {
  arena_destroy(&arena);
}
TestSuite(run, .init = begin, .fini = end);

static struct buffer make(enum type type, uint32_t rank, const int64_t *dims, const int64_t *strides,
                          int64_t offset) {
  struct buffer buffer;
  cr_assert(buffer_init(&buffer, "A", type, rank, dims, strides, offset, &arena, error, sizeof error), "%s",
            error);
  return buffer;
}

struct gaps {
  int64_t at[16][2];
  int count;
};
static void note_gap(int64_t offset, int64_t bytes, void *state) {
  struct gaps *gaps = state;
  gaps->at[gaps->count][0] = offset;
  gaps->at[gaps->count++][1] = bytes;
}

Test(run, gaps_lie_between_elements) {
  const int64_t dims[2] = {3, 2}, strides[2] = {5, 1};
  struct buffer b = make(TYPE_F32, 2, dims, strides, 1);
  struct gaps gaps = {.count = 0};
  cr_expect_eq(b.bytes, 4 * (1 + 2 * 5 + 2));
  buffer_visit_gaps(&b, note_gap, &gaps);
  cr_assert_eq(gaps.count, 3);
  cr_expect_eq(gaps.at[0][0], 0);
  cr_expect_eq(gaps.at[0][1], 4);
  cr_expect_eq(gaps.at[1][0], 12);
  cr_expect_eq(gaps.at[2][0], 32);
  cr_expect_eq(gaps.at[2][1], 12);
  buffer_free(&b);
  // Backwards, and with the outer dimension of the smaller stride: the same bytes.
  const int64_t turned_dims[2] = {2, 3}, turned[2] = {1, -5};
  b = make(TYPE_F32, 2, turned_dims, turned, 11);
  struct gaps again = {.count = 0};
  buffer_visit_gaps(&b, note_gap, &again);
  cr_expect_eq(memcmp(&gaps, &again, sizeof gaps), 0);
  buffer_free(&b);
  // Elements that overlap leave none.
  const int64_t sliding[2] = {1, 1};
  b = make(TYPE_F32, 2, dims, sliding, 0);
  again.count = 0;
  buffer_visit_gaps(&b, note_gap, &again);
  cr_expect_eq(again.count, 0);
  cr_expect_eq(b.bytes, 4 * 4);
  buffer_free(&b);
}

Test(run, every_byte_around_elements_is_watched) {
  const int64_t dims[2] = {3, 2}, strides[2] = {5, 1};
  struct buffer b = make(TYPE_I16, 2, dims, strides, 2);
  buffer_set_canaries(&b);
  buffer_fill(&b, 0x11);
  cr_expect(buffer_has_canaries(&b, error, sizeof error), "%s", error);
  for (int64_t at = -BUFFER_CANARY_BYTES; at < b.bytes + BUFFER_CANARY_BYTES; at++) {
    int64_t element = at >= 0 && at < b.bytes ? at / 2 - 2 : -1;
    bool is_element = element >= 0 && element % 5 < 2;
    uint8_t kept = b.start[at];
    cr_expect_eq(kept, is_element ? 0x11 : BUFFER_CANARY, "%d", (int)at);
    b.start[at] ^= 1;
    cr_expect_eq(buffer_has_canaries(&b, error, sizeof error), is_element, "%d", (int)at);
    b.start[at] = kept;
  }
  b.start[-3] = 0;
  cr_expect(!buffer_has_canaries(&b, error, sizeof error));
  cr_expect_str_eq(error, "A: 1 bytes around it were overwritten, the first 3 bytes before its start");
  buffer_free(&b);
}

Test(run, long_gaps_are_watched_at_both_ends) {
  const int64_t dims[1] = {2}, strides[1] = {1000000};
  struct buffer b = make(TYPE_U8, 1, dims, strides, 0);
  buffer_set_canaries(&b);
  const int64_t watched[] = {1, 256, 1000000 - 256, 999999};
  for (int i = 0; i < 4; i++) {
    b.start[watched[i]] = 0;
    cr_expect(!buffer_has_canaries(&b, error, sizeof error), "%d", (int)watched[i]);
    b.start[watched[i]] = BUFFER_CANARY;
  }
  cr_expect(buffer_has_canaries(&b, error, sizeof error));
  buffer_free(&b);
}

Test(run, scatter_and_gather) {
  const int64_t dims[2] = {2, 3}, strides[2] = {-1, 4};
  struct buffer b = make(TYPE_I32, 2, dims, strides, 1);
  const int32_t data[6] = {1, 2, 3, 4, 5, 6};
  int32_t back[6];
  buffer_scatter(&b, data);
  cr_expect_eq(((int32_t *)b.start)[1], 1);
  cr_expect_eq(((int32_t *)b.start)[0], 4);
  cr_expect_eq(((int32_t *)b.start)[8], 6);
  buffer_gather(&b, back);
  cr_expect_arr_eq(back, data, sizeof data);
  struct buffer copy;
  cr_assert(buffer_copy(&copy, &b, error, sizeof error));
  buffer_gather(&copy, back);
  cr_expect_arr_eq(back, data, sizeof data);
  buffer_free(&copy);
  buffer_free(&b);
}

Test(run, impossible_buffers) {
  const int64_t large[2] = {INT64_MAX / 2, 8}, dims[1] = {3}, back[1] = {-2}, zero[2] = {INT64_MAX, 0};
  struct buffer b;
  cr_expect(!buffer_init(&b, "A", TYPE_F32, 2, large, NULL, 0, &arena, error, sizeof error));
  cr_expect_str_eq(error, "A: its shape and strides need more memory than there can be");
  cr_expect(!buffer_init(&b, "A", TYPE_F32, 1, dims, back, 3, &arena, error, sizeof error));
  cr_expect_str_eq(error, "A: the view begins 1 elements before its buffer; give it offset:4 or more");
  b = make(TYPE_F32, 2, zero, NULL, 0);
  cr_expect_eq(b.count, 0);
  cr_expect_eq(b.bytes, 0);
  buffer_free(&b);
}

// --- Comparison
// ---------------------------------------------------------------------------------------------------------------

static enum exactness exactness_of(const char *text) {
  struct compilation c;
  compilation_init(&c);
  cr_assert(compilation_parse_text(&c, "test.red", text, strlen(text)) && compilation_check(&c), "%s", text);
  const struct ir_kernel *kernel = list_at(&c.module.kernels, struct ir_kernel, 0);
  const struct ir_mem *output = list_at(&kernel->tensors, struct ir_mem, kernel->tensors.count - 1);
  enum exactness exactness = compare_exactness(kernel, list_at(&kernel->entries, struct ir_entry, 0), output);
  compilation_destroy(&c);
  return exactness;
}

Test(run, only_what_rounds_has_a_tolerance) {
  cr_expect_eq(
      exactness_of("kernel k(X: f16[a, b]) -> (Y: f16[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }"),
      EXACT_BITS);
  cr_expect_eq(exactness_of("kernel k(X: f16[a]) -> (Y: f32[a]) { for i in a { Y[i] = X[i]; } }"),
               EXACT_VALUES);
  cr_expect_eq(exactness_of("kernel k(X: f32[a]) -> (Y: f32[1]) { Y[0] = max(i in a) X[i]; }"), EXACT_VALUES);
  cr_expect_eq(exactness_of("kernel k(X: f32[a]) -> (Y: f32[1]) { Y[0] = sum(i in a) X[i]; }"), ROUNDED);
  cr_expect_eq(exactness_of("kernel k(X: i32[a]) -> (Y: i32[1]) { Y[0] = sum(i in a) X[i]; }"), EXACT_BITS);
  cr_expect_eq(exactness_of("kernel k(X: f32[a]) -> (Y: f16[a]) { for i in a { Y[i] = exp(X[i]); } }"),
               ROUNDED);
}

static struct buffer numbers(const float *values, int64_t count) {
  int64_t *dims = arena_array(&arena, int64_t, 1);
  dims[0] = count;
  struct buffer b = make(TYPE_F32, 1, dims, NULL, 0);
  buffer_scatter(&b, values);
  return b;
}

Test(run, sums_in_another_order_agree_and_lost_elements_do_not) {
  enum { N = 4096, M = 4 };
  float in_order[M], paired[M], lost[M], wide[M];
  for (int m = 0; m < M; m++) {
    static float x[N];
    double exact = 0;
    in_order[m] = 0;
    for (int i = 0; i < N; i++) {
      x[i] = (float)((i * 7919 + m * 31) % 1000) / 999.0f;
      in_order[m] += x[i];
      exact += (double)x[i];
    }
    lost[m] = in_order[m] - x[N / 3];
    wide[m] = (float)exact;
    for (int width = N / 2; width; width /= 2)
      for (int i = 0; i < width; i++) x[i] += x[i + width];
    paired[m] = x[0];
  }
  struct buffer want = numbers(in_order, M), w = numbers(wide, M), got = numbers(paired, M),
                wrong = numbers(lost, M);
  struct comparison result;
  cr_expect(memcmp(in_order, paired, sizeof paired) != 0, "both orders round alike: the test shows nothing");
  cr_expect(compare_buffers(&got, &want, &w, NULL, ROUNDED, N * M, &result));
  cr_expect(!compare_buffers(&wrong, &want, &w, NULL, ROUNDED, N * M, &result));
  cr_expect_gt(result.different, 0);
  cr_expect_gt(result.distance, result.tolerance);
  cr_expect(!compare_buffers(&got, &want, &w, NULL, EXACT_VALUES, N * M, &result));
  buffer_free(&want), buffer_free(&w), buffer_free(&got), buffer_free(&wrong);
}

Test(run, special_numbers_are_compared_as_such) {
  const float inf = INFINITY, nan = NAN;
  const float a[5] = {inf, -inf, nan, 0.0f, 1}, b[5] = {inf, -inf, -nan, 0.0f, 1},
              c[5] = {-inf, -inf, 1, -0.0f, 1}, d[5] = {3e38f, 1, nan, 0.0f, nan};
  struct buffer want = numbers(a, 5), same = numbers(b, 5), other = numbers(c, 5), finite = numbers(d, 5);
  struct comparison result;
  cr_expect(compare_buffers(&same, &want, &want, NULL, ROUNDED, 1, &result));
  cr_expect(compare_buffers(&same, &want, NULL, NULL, EXACT_VALUES, 1, &result));
  cr_expect(!compare_buffers(&same, &want, NULL, NULL, EXACT_BITS, 1, &result));
  cr_expect(!compare_buffers(&other, &want, &want, NULL, ROUNDED, 1, &result));
  cr_expect_eq(result.different, 2); // zeros of either sign are near each other
  cr_expect_eq(result.worst, 0);
  cr_expect(!compare_buffers(&other, &want, NULL, NULL, EXACT_VALUES, 1, &result));
  cr_expect_eq(result.different, 3);
  cr_expect(!compare_buffers(&finite, &want, &want, NULL, ROUNDED, 1, &result));
  cr_expect_eq(result.different, 3);
  buffer_free(&want), buffer_free(&same), buffer_free(&other), buffer_free(&finite);
}

// --- Text
// -----------------------------------------------------------------------------------------------------------------------

static void prints(enum type type, const void *element, const char *expected) {
  struct text text = {0};
  element_print(&text, type, element);
  cr_expect_str_eq(text.data, expected);
  text_free(&text);
}

Test(run, elements_as_text) {
  prints(TYPE_F32, &(float){0.1f}, "0.1");
  prints(TYPE_F64, &(double){0.1}, "0.1");
  prints(TYPE_F64, &(double){(double)0.1f}, "0.10000000149011612");
  prints(TYPE_F32, &(float){10}, "10.");
  prints(TYPE_F32, &(float){1.5e-7f}, "1.5e-07");
  prints(TYPE_F32, &(float){-0.0f}, "-0.");
  prints(TYPE_F32, &(float){-INFINITY}, "-inf");
  prints(TYPE_F64, &(double){1e16}, "1e+16");
  prints(TYPE_F16, &(uint16_t){0x2e66}, "0.1");
  prints(TYPE_BF16, &(uint16_t){0x3dcd}, "0.1");
  prints(TYPE_I8, &(int8_t){-128}, "-128");
  prints(TYPE_U64, &(uint64_t){UINT64_MAX}, "18446744073709551615");
  prints(TYPE_BOOL, &(uint8_t){2}, "true");
  prints(TYPE_F8E5M2, &(uint8_t){10}, "0x0a");
  prints(TYPE_C64, (float[2]){1, -2.5f}, "1.-2.5j");
}

Test(run, every_f16_reads_back_as_itself) {
  for (uint32_t bits = 0; bits < 0x7c00; bits++) {
    uint16_t half = (uint16_t)bits, back;
    struct text text = {0};
    struct value value;
    element_print(&text, TYPE_F16, (uint8_t *)&half);
    cr_assert(element_parse(&value, TYPE_F16, text.data, error, sizeof error), "%s", text.data);
    value.type = TYPE_F64;
    element_set(TYPE_F16, (uint8_t *)&back, value);
    cr_assert_eq(back, half, "%04x is %s", bits, text.data);
    text_free(&text);
  }
}

Test(run, scalars_must_fit) {
  static const struct {
    enum type type;
    const char *text;
    bool fits;
    int64_t value;
  } table[] = {{TYPE_I8, "-128", true, -128},
               {TYPE_I8, "128", false, 0},
               {TYPE_U8, "0xff", true, 255},
               {TYPE_U8, "-1", false, 0},
               {TYPE_U64, "18446744073709551615", true, -1},
               {TYPE_U64, "-1", false, 0},
               {TYPE_U64, "18446744073709551616", false, 0},
               {TYPE_I64, "-9223372036854775808", true, INT64_MIN},
               {TYPE_I64, "9223372036854775808", false, 0},
               {TYPE_BOOL, "true", true, 1},
               {TYPE_BOOL, "2", false, 0},
               {TYPE_I32, "", false, 0},
               {TYPE_I32, "1.5", false, 0},
               {TYPE_I32, " 1", false, 0},
               {TYPE_I32, "0x", false, 0}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    struct value value = {0};
    cr_expect_eq(element_parse(&value, table[i].type, table[i].text, error, sizeof error), table[i].fits,
                 "%s", table[i].text);
    if (table[i].fits) cr_expect_eq(value.integer, table[i].value, "%s", table[i].text);
  }
  struct value value;
  cr_expect(element_parse(&value, TYPE_F32, "1e-3", error, sizeof error) && value.number == (double)1e-3f);
  cr_expect(!element_parse(&value, TYPE_F32, "", error, sizeof error));
  cr_expect(!element_parse(&value, TYPE_F32, "1 ", error, sizeof error));
}
