// redc inspect: reads CUDA through Clang.
#include "codegen/inspect.h"

#include "compiler/clang_front.h"

#include <cstdio>

int inspect_main(int, char **) {
  std::fputs("redc inspect: error: this build reads no CUDA\n", stderr);
  return 1;
}
