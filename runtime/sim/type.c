// The table of types.
#include "runtime/sim/internal.h"

static const struct {
  const char *name;
  uint8_t bits;
  uint8_t kind;
} types[] = {
#define SIM_TYPE(type, name, bits, kind) {name, bits, SIM_KIND_##kind},
#include "runtime/sim/type.def"
#undef SIM_TYPE
    {"none", 8, SIM_KIND_B},
};

unsigned sim_type_bits(enum sim_type type) {
  return types[type].bits;
}
enum sim_type_kind sim_type_kind(enum sim_type type) {
  return (enum sim_type_kind)types[type].kind;
}
const char *sim_type_name(enum sim_type type) {
  return types[type].name;
}

enum sim_type sim_type_find(const char *name) {
  for (int i = 0; i < SIM_TYPES; i++) {
    if (strcmp(types[i].name, name) == 0) return (enum sim_type)i;
  }
  return SIM_NO_TYPE;
}
