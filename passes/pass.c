// The table of passes, from passes.def.
#include "compiler/pass.h"

const struct pass pass_table[] = {
#define P(name, description) {#name, description, pass_##name},
#include "passes/passes.def"
#undef P
    {NULL, NULL, NULL},
};
