// Programs of PTX: loaded from text with its plan, taken apart entry by entry, and images.
#include "runtime/red.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static red_device *device;

static void open_device(void) {
  setenv("RED_CACHE", "off", 1);
  cr_assert_eq(red_open("sim", &device), RED_OK, "%s", red_message());
}
static void close_device(void) {
  red_close(device);
}
TestSuite(load, .init = open_device, .fini = close_device);

static const char TEXT[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n"
                           "kernel twice(A: i32[n]) -> (B: i32[n]) { for i in n { B[i] = 2 * A[i]; } }\n";

// The PTX of all schedules, which the caller frees.
static char *compile(void) {
  red_program *program;
  cr_assert_eq(red_compile_text(device, "test.red", TEXT, NULL, &program), RED_OK, "%s", red_message());
  const char *ptx = red_ptx(program);
  cr_assert_not_null(ptx, "%s", red_message());
  cr_assert_eq(ptx, red_ptx(program)); // made once
  char *copy = strdup(ptx);
  red_release(program);
  return copy;
}

static void launch_sums(const red_kernel *kernel) {
  static float a[4096], b[64];
  for (int i = 0; i < 4096; i++) a[i] = (float)(i % 9);
  static const int64_t shapes[][2] = {{60, 4}, {60, 5}, {7, 64}, {3, 1001}, {1, 4095}, {64, 64}}; // different schedules
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int shift = 0; shift < 2; shift++) { // aligned, and not
      red_tensor A = red_dense(a + shift, RED_F32, 2, shapes[s]), B = red_dense(b, RED_F32, 1, shapes[s]);
      if (shapes[s][0] * shapes[s][1] + shift > 4096) continue;
      red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
      cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
      for (int64_t i = 0; i < shapes[s][0]; i++) {
        float expected = 0;
        for (int64_t j = 0; j < shapes[s][1]; j++) expected += a[shift + i * shapes[s][1] + j];
        cr_assert_eq(b[i], expected, "shape %zu shift %d row %d", s, shift, (int)i);
      }
    }
}

static void launch_twice(const red_kernel *kernel) {
  int32_t a[5] = {1, -2, 3, 4, 5}, b[5];
  int64_t shape[] = {5};
  red_tensor A = red_dense(a, RED_I32, 1, shape), B = red_dense(b, RED_I32, 1, shape);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 5; i++) cr_expect_eq(b[i], 2 * a[i]);
}

Test(load, all_schedules_of_a_text) {
  char *ptx = compile();
  red_program *program;
  const red_kernel *rowsum, *twice;
  cr_assert_eq(red_load(device, "test.ptx", ptx, strlen(ptx), &program), RED_OK, "%s", red_message());
  cr_assert_eq(red_kernel_count(program), 2);
  cr_assert_eq(red_find(program, "rowsum", &rowsum), RED_OK);
  cr_assert_eq(red_find(program, "twice", &twice), RED_OK);
  launch_sums(rowsum);
  launch_twice(twice);
  cr_expect_str_eq(red_ptx(program), ptx);
  red_release(program);
  free(ptx);
}

Test(load, image) {
  char *ptx = compile();
  const char *const kernels[] = {"twice", "rowsum"};
  const red_image image = {"test.red", ptx, strlen(ptx), kernels, 2};
  const red_kernel *kernel, *again;
  cr_assert_eq(red_image_kernel(device, &image, 1, &kernel), RED_OK, "%s", red_message());
  launch_sums(kernel);
  cr_assert_eq(red_image_kernel(device, &image, 1, &again), RED_OK);
  cr_expect_eq(kernel, again);
  cr_assert_eq(red_image_kernel(device, &image, 0, &kernel), RED_OK);
  launch_twice(kernel);
  cr_expect_eq(red_image_kernel(device, &image, 2, &kernel), RED_ERROR_INVALID);
  red_close(device); // what the image loaded belongs to the device
  free(ptx);
  open_device();
}

Test(load, damaged_texts) {
  red_program *program;
  char *ptx = compile();
  size_t length = strlen(ptx);
  cr_expect_eq(red_load(device, "t", "", 0, &program), RED_ERROR_PLAN);
  cr_expect_eq(red_load(device, "t", NULL, 0, &program), RED_ERROR_INVALID);
  for (size_t cut = 1; cut < length; cut += length / 40 + 1) { // what is cut off is refused, at the latest by a launch
    const red_kernel *kernel;
    red_error error = red_load(device, "t", ptx, cut, &program);
    if (error) {
      cr_expect_eq(error, RED_ERROR_PLAN, "%s", red_message());
      continue;
    }
    int32_t a[5] = {0}, b[5];
    int64_t shape[] = {5};
    red_tensor A = red_dense(a, RED_I32, 1, shape), B = red_dense(b, RED_I32, 1, shape);
    red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
    if (red_find(program, "twice", &kernel) == RED_OK) {
      error = red_launch(kernel, NULL, arguments, 2);
      cr_expect(error == RED_ERROR_PLAN || error == RED_OK, "%s: %s", red_error_name(error), red_message());
    }
    red_release(program);
  }
  free(ptx);
}

// A cache that cannot be written is told in the log, once; the program works.
Test(load, cache_that_cannot_be_written) {
  red_program *program, *second;
  setenv("RED_CACHE", "rw", 1);
  setenv("RED_CACHE_DIR", "/proc/nowhere", 1);
  cr_assert_eq(red_compile_text(device, "a.red", TEXT, NULL, &program), RED_OK, "%s", red_message());
  cr_expect(strstr(red_log(program), "warning: "), "%s", red_log(program));
  cr_expect(strstr(red_log(program), "/proc/nowhere"), "%s", red_log(program));
  launch_twice(red_kernel_at(program, 1));
  cr_assert_eq(red_compile_text(device, "b.red", TEXT, NULL, &second), RED_OK, "%s", red_message());
  cr_expect_str_eq(red_log(second), "");
  red_release(program);
  red_release(second);
}

Test(load, simulators_of_every_architecture) {
  static const char *const names[] = {"sim:sm_75", "sim:sm_80", "sim:sm_86", "sim:sm_89", "sim:sm_90", "sim:sm_100", "sim:sm_120"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    red_device *other;
    red_device_info info;
    red_program *program;
    cr_assert_eq(red_open(names[i], &other), RED_OK, "%s", red_message());
    cr_expect_eq(red_describe_device(other, &info), RED_OK);
    cr_expect_str_eq(info.name, names[i]);
    cr_expect_eq(info.arch, atoi(names[i] + 7));
    cr_assert_eq(red_compile_text(other, "a.red", TEXT, NULL, &program), RED_OK, "%s", red_message());
    launch_twice(red_kernel_at(program, 1));
    red_release(program);
    red_close(other);
  }
}

Test(load, devices_that_are_not_there) {
  static const struct {
    const char *name;
    red_error error;
  } cases[] = {{"gpu", RED_ERROR_INVALID},    {"cuda:", RED_ERROR_INVALID},    {"cuda:x", RED_ERROR_INVALID}, {"cuda:-1", RED_ERROR_INVALID},
               {"sim:", RED_ERROR_INVALID},   {"sim:sm_11", RED_ERROR_INVALID}, {"", RED_ERROR_INVALID},      {"cuda:0", RED_ERROR_NO_DRIVER},
               {"sim:sm_90a", RED_ERROR_INVALID}, {"sim:sm_+90", RED_ERROR_INVALID}, {"sim:sm_ 90", RED_ERROR_INVALID}, {"sim:sm_090", RED_ERROR_INVALID}};
  setenv("RED_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    red_device *other = device;
    cr_expect_eq(red_open(cases[i].name, &other), cases[i].error, "%s: %s", cases[i].name, red_message());
    cr_expect_null(other);
  }
  red_device *automatic;
  red_device_info info;
  unsetenv("RED_DEVICE");
  cr_assert_eq(red_open("auto", &automatic), RED_OK, "%s", red_message());
  cr_expect_eq(red_describe_device(automatic, &info), RED_OK);
  cr_expect_str_eq(info.name, "sim");
  red_close(automatic);
}
