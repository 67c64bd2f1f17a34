// What red.h says when the driver fails, call by call.
#include "tests/fake/work.h"

Test(fake, no_driver) {
  red_device *device;
  setenv("RED_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  FAILS(NO_DRIVER, red_open("cuda:0", &device));
  cr_expect_null(device);
  SAYS("/nowhere/libcuda.so.1");
  OK(red_open("auto", &device));
  red_device_info info;
  OK(red_describe_device(device, &info));
  cr_expect_str_eq(info.name, "sim");
  red_close(device);
}

Test(fake, no_device) {
  red_device *device;
  FAILS(NO_DEVICE, red_open("cuda:1", &device));
  SAYS("cuda:1");
  FAILS(NO_DEVICE, red_open("cuda:99", &device));
  const char *bad[] = {
      "cuda:", "cuda:-1", "cuda:1x", "gpu", "", "cuda0", "sim:", "sim:sm_1", "cuda:99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    red_error error = red_open(bad[i], &device);
    cr_expect(error == RED_ERROR_INVALID || error == RED_ERROR_NO_DEVICE, "'%s': %s", bad[i],
              red_error_name(error));
    cr_expect_null(device);
  }
}

Test(fake, auto_without_a_gpu_is_the_simulator) {
  red_device *device;
  red_device_info info;
  setenv("FAKE_CUDA", "devices=0", 1);
  OK(red_open(NULL, &device));
  OK(red_describe_device(device, &info));
  cr_expect_str_eq(info.name, "sim");
  red_close(device);
}

static void load_says(const char *setting, int driver_error, const char *first, const char *second) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  fake_set("driver", atoi(setting));
  if (driver_error != CU_ERROR_UNSUPPORTED_PTX_VERSION) {
    fake_fail("cuLinkAddData_v2", 1, driver_error);
    fake_fail("cuModuleLoadDataEx", 1, driver_error);
  }
  FAILS(DRIVER, launch(&w, NULL));
  cr_expect_eq(red_driver_error(), driver_error);
  SAYS(first);
  SAYS(second);
  struct fake_live live = fake_live();
  cr_expect_eq(live.links, 0);
  cr_expect_eq(live.modules, 0);
  drop(&w);
}
Test(fake, ptx_newer_than_the_driver_names_both) {
  load_says("11000", 222, "CUDA 11.0", "PTX 7.8");
}
Test(fake, code_for_another_gpu_names_both) {
  load_says("12080", 209, "CUDA 12.8", "PTX 7.8 for sm_90, cuda:0 is an sm_90");
}
Test(fake, ptx_that_the_driver_refuses_names_both) {
  load_says("12080", 218, "CUDA 12.8", "PTX");
}

Test(fake, a_failed_load_is_tried_again) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  fake_fail("cuModuleLoadDataEx", 1, 2);
  red_error error = launch(&w, NULL);
  cr_expect(error == RED_ERROR_DRIVER || error == RED_ERROR_MEMORY, "%s", red_error_name(error));
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  nothing_lives();
}

Test(fake, no_memory_for_workspace) {
  struct work w;
  make(&w, "cuda:0", split_text);
  fake_fail("cuMemAlloc_v2", 1, 2);
  FAILS(MEMORY, launch(&w, NULL));
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  nothing_lives();
}

// Whatever call fails, the launch says so or works without it, and all is given back.
static red_error launch_first(struct work *w) {
  return launch(w, NULL);
}
static red_error prepare(struct work *w) {
  return red_prepare(w->kernel, NULL, w->arguments, 2);
}

static void each_call_may_fail(red_error (*first)(struct work *w)) {
  struct work w;
  char log[4096], seen[4096] = "\n";
  make(&w, "cuda:0", split_text);
  fake_clear();
  OK(first(&w));
  snprintf(log, sizeof log, "%s", fake_log());
  drop(&w);
  for (char *save = NULL, *call = strtok_r(log, "\n", &save); call; call = strtok_r(NULL, "\n", &save)) {
    char line[80];
    snprintf(line, sizeof line, "\n%s\n", call);
    if (strstr(seen, line) || strcmp(call, "cuLinkDestroy") == 0) continue; // what cannot be destroyed stays
    strcat(seen, line + 1);
    make(&w, "cuda:0", split_text);
    fake_clear();
    fake_fail(call, 1, 999);
    red_error error = first(&w);
    cr_expect(error == RED_OK || error == RED_ERROR_DRIVER, "%s: %s", call, red_error_name(error));
    if (error) cr_expect(strstr(red_message(), "999"), "%s: %s", call, red_message());
    fake_clear();
    spoil(&w);
    OK(launch(&w, NULL));
    check_result(&w);
    cu_context current;
    fake_context_current(&current);
    cr_expect_null(current, "%s leaves a context", call);
    drop(&w);
    nothing_lives();
  }
}
Test(fake, each_call_of_a_first_launch_may_fail, .timeout = 300) {
  each_call_may_fail(launch_first);
}
Test(fake, each_call_of_a_prepare_may_fail, .timeout = 300) {
  each_call_may_fail(prepare);
}

Test(fake, a_fault_of_a_kernel_comes_with_the_next_call) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  fake_fail("cuStreamSynchronize", 1, 719);
  FAILS(DRIVER, red_synchronize(w.device, NULL));
  cr_expect_eq(red_driver_error(), 719);
  SAYS("cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)");
  drop(&w);
}
