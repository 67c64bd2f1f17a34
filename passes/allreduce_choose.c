// The choice of a form. Costs are counted, not timed: a step is a shuffle or a shared-memory round and a combine, a component.
#include "passes/allreduce.h"

uint32_t next_power_of_two(uint32_t x) {
  uint32_t p = 1;
  while (p < x) p *= 2;
  return p;
}

static bool is_power_of_two(uint32_t x) { return x && !(x & (x - 1)); }

static uint32_t log2_ceil(uint32_t x) {
  uint32_t steps = 0;
  while ((1u << steps) < x) steps++;
  return steps;
}

struct allreduce_shape allreduce_shape_of(const uint32_t block[3], uint32_t thread_axes) {
  struct allreduce_shape shape = {.threads = block[0] * block[1] * block[2], .extent = 1};
  uint32_t below = 1; // threads of the axes below the one looked at
  bool begun = false, ended = false, regular = true;
  for (int d = 0; d < 3; d++) {
    if (block[d] > 1) {
      if (thread_axes & (1u << d)) {
        if (!begun) shape.stride = below;
        if (ended) regular = false; // kept axes between reduced ones
        begun = true;
        shape.extent *= block[d];
      } else if (begun) {
        ended = true;
      }
    }
    below *= block[d];
  }
  if (!begun) shape.stride = 1;
  if (!regular) shape.stride = 0;
  shape.groups = shape.threads / shape.extent;
  return shape;
}

static uint32_t component_bytes(const struct ir_reducer *reducer) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < reducer->identity.count; i++) {
    uint32_t one = type_bytes(list_at(&reducer->identity, struct ir_expr, i)->type);
    bytes += one;
  }
  return bytes;
}

// Whether warps alone can do it; sets the kind and its cost.
static bool choose_shuffle(const struct ir_reducer *reducer, bool result_in_all, struct allreduce_choice *choice) {
  struct allreduce_shape *shape = &choice->shape;
  uint32_t extent = shape->extent;
  if (shape->stride == 0) {
    choice->refused = "kept thread axes lie between reduced ones, so that a group's lanes have no common stride";
    return false;
  }
  if (is_power_of_two(extent) && is_power_of_two(shape->stride) && extent * shape->stride <= 32) {
    choice->kind = ALLREDUCE_XOR;
    choice->steps = log2_ceil(extent);
    return true;
  }
  uint32_t spread = extent * shape->stride;
  if (shape->stride > 1 && shape->stride <= 32 && is_power_of_two(shape->stride) && spread % 32 == 0 && shape->threads % 32 == 0) {
    uint32_t lanes = 32 / shape->stride, warps = spread / 32;
    choice->kind = ALLREDUCE_STRIDED;
    choice->steps = 2 * log2_ceil(lanes) + (warps + lanes - 1) / lanes - 1;
    choice->barriers = 1;
    choice->shared_bytes = shape->threads / 32 * shape->stride * component_bytes(reducer);
    return true;
  }
  if (shape->stride != 1) {
    choice->refused = "a group's lanes are spread over several warps";
    return false;
  }
  if (extent <= 32 && shape->groups == 1) {
    choice->kind = ALLREDUCE_GUARDED;
    choice->steps = log2_ceil(extent) + result_in_all;
    return true;
  }
  if (extent <= 32 || (shape->groups > 1 && extent % 32 != 0)) {
    choice->refused = "groups straddle warps";
    return false;
  }
  uint32_t warps = (extent + 31) / 32;
  if (result_in_all && shape->threads % 32 != 0) {
    choice->refused = "the last warp is partial and every thread needs the result";
    return false;
  }
  choice->kind = ALLREDUCE_WARPS;
  choice->steps = 5 + log2_ceil(warps);
  choice->barriers = 1;
  choice->shared_bytes = (shape->threads + 31) / 32 * component_bytes(reducer);
  return true;
}

bool allreduce_choose(const uint32_t block[3], uint32_t thread_axes, const struct ir_reducer *reducer, bool result_in_all, enum allreduce_form form,
                      struct allreduce_choice *choice) {
  *choice = (struct allreduce_choice){.shape = allreduce_shape_of(block, thread_axes)};
  if (choice->shape.extent == 1) {
    choice->kind = ALLREDUCE_COPY;
    return true;
  }
  if (form != FORM_TREE && choose_shuffle(reducer, result_in_all, choice)) return true;
  if (form == FORM_SHUFFLE) return false;
  if (form == FORM_TREE) choice->refused = "the schedule asks for the tree";
  choice->kind = ALLREDUCE_TREE;
  choice->steps = log2_ceil(choice->shape.extent);
  choice->barriers = choice->steps + result_in_all;
  choice->shared_bytes = choice->shape.threads * component_bytes(reducer);
  return true;
}

void allreduce_widen(uint32_t block[3], uint32_t thread_axes, const struct ir_reducer *reducer, bool result_in_all, enum allreduce_form form) {
  struct allreduce_choice choice;
  if (form == FORM_TREE) return;
  if (allreduce_choose(block, thread_axes, reducer, result_in_all, FORM_SHUFFLE, &choice)) return;
  uint32_t wide[3] = {block[0], block[1], block[2]};
  uint32_t extent = choice.shape.extent, last = 3, low = 1;
  for (uint32_t d = 0; d < 3; d++)
    if (thread_axes & (1u << d) && block[d] > 1) last = d;
  if (last == 3) return;
  if (extent <= 32 && choice.shape.groups > 1) { // each reduced extent to a power of two
    for (uint32_t d = 0; d < 3; d++)
      if (thread_axes & (1u << d)) wide[d] = next_power_of_two(wide[d]);
  } else { // whole warps: the outermost reduced axis, and the ones below it where that is not enough
    for (uint32_t d = 0; d < last; d++)
      if (thread_axes & (1u << d)) wide[d] = next_power_of_two(wide[d]);
    for (uint32_t d = 0; d < last; d++) low *= wide[d];
    while ((low * wide[last]) % 32 != 0 && low * wide[last] <= 1024) wide[last]++;
  }
  if (wide[0] * wide[1] * wide[2] > 1024 || wide[2] > 64) return;
  if (allreduce_choose(wide, thread_axes, reducer, result_in_all, FORM_SHUFFLE, &choice))
    for (uint32_t d = 0; d < 3; d++) block[d] = wide[d];
}
