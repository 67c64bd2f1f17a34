// Every kernel of tests/sim/ptx gives its results and exactly its findings, for several seeds and numbers of
// jobs.
#include "tests/sim/ptx_test.h"

#include <glob.h>

static void run_all(uint64_t seed, uint32_t jobs) {
  glob_t found;
  cr_assert(glob(RED_SOURCE_DIR "/tests/sim/ptx/*.ptx", 0, NULL, &found) == 0);
  cr_assert(found.gl_pathc >= 40);
  for (size_t i = 0; i < found.gl_pathc; i++) ptx_test_run(found.gl_pathv[i], seed, jobs);
  globfree(&found);
}

Test(kernels, one_job) {
  for (uint64_t seed = 0; seed < 20; seed++) run_all(seed, 1);
}

Test(kernels, two_jobs) {
  for (uint64_t seed = 0; seed < 5; seed++) run_all(seed, 2);
}

Test(kernels, many_jobs) {
  run_all(7, 8);
}
