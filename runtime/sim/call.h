// Layout of a call's list in module->lists: a header, then arguments and results of SIM_CALL_STRIDE numbers
// each.
#ifndef RED_SIM_CALL_H
#define RED_SIM_CALL_H

#include "runtime/sim/internal.h"

enum {
  SIM_CALL_TARGET, // function, or -1 for an indirect call
  SIM_CALL_CALLER,
  SIM_CALL_ARGUMENTS,
  SIM_CALL_RESULTS,
  SIM_CALL_FIRST,
};

enum {
  SIM_CALL_IS_SLOT, // else an offset in the caller's local frame
  SIM_CALL_VALUE,
  SIM_CALL_BYTES, // of memory; of a slot, its width in bits
  SIM_CALL_STRIDE,
};

#endif
