#include "red_version.h"

#include <stdio.h>

int main(void) {
  puts("redc " RED_VERSION);
  return 0;
}
