// Schedules of element-wise work and copies whose fastest axis stays.
#include "passes/automatic.h"

bool automatic_map(struct automatic *a) {
  (void)a;
  return false;
}
