// A maximum and the sum of the exponentials of the distances to it, as in softmax, as one reduction.
#ifndef RED_PASSES_RESCALE_H
#define RED_PASSES_RESCALE_H

#include "compiler/pass.h"

// Whether `first` is max(AXES) x and `second` sum(AXES) exp(x - first), or exp2, of the same x over the same axes under the same guards.
bool rescale_fits(const struct ir_stage *first, const struct ir_stage *second);

// Makes one stage of the two, at the place of the first; what other stages read of the second becomes an expression of its results.
void rescale_join(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, struct ir_stage *first, struct ir_stage *second);

// exp(x - peak) of an x that `peak` is the maximum of, with others, becomes exp(-|x - peak|): the same value, of which pass `math` sees that it is not above 1.
void rescale_distances(struct pass_context *context, struct ir_entry *entry);

#endif
