// redc lift: from Clang's nodes to ours.
#include "grammar/lift.h"

#include "compiler/clang_front.h"

#include <cstdio>

int lift_main(int, char **) {
  std::fputs("redc lift: error: this build reads no C\n", stderr);
  return 1;
}
