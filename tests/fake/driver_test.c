// runtime/driver.c against the fake driver. Each test is a process of its own.
#include "tests/fake/fake.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *why;

static const struct driver *open_with(const char *library) {
  setenv("RED_LIBCUDA", library, 1);
  return driver_open(&why);
}

Test(driver, finds_every_function) {
  const struct driver *driver = open_with(FAKE_PATH);
  cr_assert(driver, "%s", why);
  cr_expect_null(why);
#define X(member, symbol, parameters) cr_expect(driver->member == fake_##member, symbol);
  DRIVER_FUNCTIONS(X)
  DRIVER_OPTIONAL(X)
#undef X
  cr_expect_eq(fake_count("cuInit"), 1);
  cr_expect_eq(driver_open(&why), driver);
  cr_expect_eq(fake_count("cuInit"), 1);
}

Test(driver, an_older_driver_lacks_some) {
  const struct driver *driver = open_with(FAKE_OLD_PATH);
  cr_assert(driver, "%s", why);
  cr_expect_null(driver->stream_id);
  cr_expect_null(driver->stream_capture);
  cr_expect(driver->launch);
}

Test(driver, no_library) {
  cr_expect_null(open_with("/nowhere/libcuda.so.1"));
  cr_expect(strstr(why, "no CUDA driver: ") && strstr(why, "/nowhere/libcuda.so.1"), "%s", why);
  cr_expect_null(open_with(FAKE_PATH)); // the answer of the first call stays
}

Test(driver, a_library_that_is_no_driver) {
  cr_expect_null(open_with("libm.so.6"));
  cr_expect_str_eq(why, "libm.so.6 has no function cuInit: the CUDA driver is too old");
}

Test(driver, a_driver_that_does_not_start) {
  setenv("FAKE_CUDA", "fail=cuInit:100", 1);
  cr_expect_null(open_with(FAKE_PATH));
  cr_expect_str_eq(why, "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected");
}

static const char *text_of(cu_result error) {
  static char text[512];
  driver_error_text(open_with(FAKE_PATH), "cuCall", error, text, sizeof text);
  return text;
}

Test(driver, errors_have_name_number_and_text) {
  cr_expect_str_eq(text_of(2), "cuCall: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  cr_expect_str_eq(text_of(12345), "cuCall: unknown error (12345): ");
}

Test(driver, errors_about_versions_name_the_drivers) {
  setenv("FAKE_CUDA", "driver=11040", 1);
  cr_expect(strstr(text_of(209), "(209)") &&
                strstr(text_of(209), "the code is for another GPU than this one") &&
                strstr(text_of(209), "CUDA 11.4"),
            "%s", text_of(209));
  cr_expect(strstr(text_of(218), "CUDA 11.4"), "%s", text_of(218));
  cr_expect(strstr(text_of(222), "CUDA 11.4") && strstr(text_of(222), "does not take this PTX"), "%s",
            text_of(222));
}

Test(driver, errors_fit_where_there_is_little_room) {
  const struct driver *driver = open_with(FAKE_PATH);
  for (size_t bytes = 1; bytes < 200; bytes++) {
    char text[200];
    memset(text, 'x', sizeof text);
    driver_error_text(driver, "cuCall", 222, text, bytes);
    cr_assert_lt(strnlen(text, sizeof text), bytes);
    cr_assert(bytes == sizeof text || text[bytes] == 'x');
  }
}
