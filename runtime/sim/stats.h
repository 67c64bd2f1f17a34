// Summing up what the workers counted.
#ifndef RED_SIM_STATS_H
#define RED_SIM_STATS_H

#include "runtime/sim/internal.h"

// Adds the workers' counts into a zeroed *out; false when memory is short.
bool sim_stats_gather(const struct sim_module *module, const struct sim_worker *workers, size_t count,
                      struct sim_stats *out);

#endif
