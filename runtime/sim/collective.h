// Handlers of warp instructions. Each runs once for all lanes that take part; warp->masks holds the mask each
// gave.
#ifndef RED_SIM_COLLECTIVE_H
#define RED_SIM_COLLECTIVE_H

#include "runtime/sim/internal.h"

// op->sub of bar.warp.sync, whose lanes need not stand at the same instruction.
#define SIM_WARP_BARRIER 255

void sim_run_shfl(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_vote(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_match(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_redux(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_elect(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_activemask(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);

#endif
