// The legal targets, from targets.def.
#include "compiler/pass.h"

#include <string.h>

static const struct target targets[] = {
#define G(name, sm, ptx_version, driver, shared_limit) {name, sm, ptx_version, driver, shared_limit},
#include "compiler/targets.def"
#undef G
    {NULL, 0, NULL, NULL, 0},
};

const struct target *target_table(void) { return targets; }

const struct target *target_find(const char *name) {
  for (const struct target *target = targets; target->name; target++)
    if (strcmp(target->name, name) == 0)
      return target;
  return NULL;
}
