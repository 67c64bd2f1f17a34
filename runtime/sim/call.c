// Calls: frames of registers and local memory for the lanes of a split.
#include "runtime/sim/call.h"

#include <stdlib.h>

#define MOST_FILE (4u << 20)    // bytes of registers of a warp
#define MOST_LOCAL (512u << 10) // bytes of local memory of a lane

bool sim_local_reserve(struct sim_warp *warp, uint32_t bytes) {
  if (bytes <= warp->local_bytes) return true;
  uint32_t size = warp->local_bytes * 2 > bytes ? warp->local_bytes * 2 : bytes;
  for (unsigned l = 0; l < SIM_LANES; l++) {
    if (!(warp->exists >> l & 1)) continue;
    unsigned char *data = realloc(warp->local[l], size);
    if (!data) return false;
    warp->local[l] = data;
    unsigned char *written = realloc(warp->local_written[l], size);
    if (!written) return false;
    warp->local_written[l] = written;
    memset(data + warp->local_bytes, 0, size - warp->local_bytes);
    memset(written + warp->local_bytes, 0, size - warp->local_bytes);
  }
  warp->local_bytes = size;
  return true;
}

static bool reserve_file(struct sim_warp *warp, size_t bytes) {
  if (bytes <= warp->file_bytes) return true;
  size_t size = warp->file_bytes * 2 > bytes ? warp->file_bytes * 2 : bytes;
  unsigned char *file = realloc(warp->file, size);
  if (!file) return false;
  memset(file + warp->file_bytes, 0, size - warp->file_bytes);
  warp->file = file;
  warp->file_bytes = size;
  return true;
}

// The frame of a function called from a frame: one that other lanes have already, or one above all. SIM_NONE
// when memory is short.
static uint32_t frame_of(struct sim_warp *warp, uint32_t function, uint32_t parent, uint32_t top,
                         uint32_t mask) {
  for (size_t i = 0; i < warp->frame_count; i++) {
    struct sim_frame *frame = &warp->frames[i];
    if (frame->function != function || frame->parent != parent || !(frame->mask & warp->live)) continue;
    frame->mask |= mask;
    return frame->base;
  }
  while (warp->frame_count > 0 && !(warp->frames[warp->frame_count - 1].mask & warp->live))
    warp->frame_count--;
  if (warp->frame_count == warp->frame_room) {
    size_t room = warp->frame_room ? 2 * warp->frame_room : 8;
    struct sim_frame *grown = realloc(warp->frames, room * sizeof *grown);
    if (!grown) return SIM_NONE;
    warp->frames = grown;
    warp->frame_room = room;
  }
  if (warp->frame_count > 0) {
    const struct sim_frame *last = &warp->frames[warp->frame_count - 1];
    top = last->base + last->bytes;
  }
  top = (top + 15) & ~15u;
  uint32_t bytes = warp->module->functions[function].frame_bytes;
  warp->frames[warp->frame_count++] = (struct sim_frame){top, bytes, function, parent, mask};
  return top;
}

static void leave_frame(struct sim_warp *warp, uint32_t base, uint32_t mask) {
  for (size_t i = warp->frame_count; i-- > 0;) {
    if (warp->frames[i].base == base) warp->frames[i].mask &= ~mask;
  }
  while (warp->frame_count > 0 && !(warp->frames[warp->frame_count - 1].mask & warp->live))
    warp->frame_count--;
}

static bool fail(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op, const char *text) {
  struct sim_where at = {.warp = warp, .op = op, .lane = (uint32_t)__builtin_ctz(split->mask)};
  sim_find(warp->block->launch, SIM_BAD_CALL, &at, "%s", text);
  warp->block->is_stopped = true;
  return false;
}

static unsigned lane_bytes(unsigned width) {
  return width == 1 ? 0 : width / 8;
}

// One value from a slot of the caller's frame to a slot of the callee's, or back.
static void copy_slot(unsigned char *to, const unsigned char *from, unsigned width, uint32_t mask) {
  uint32_t poison, old;
  memcpy(&poison, from - 4, 4);
  memcpy(&old, to - 4, 4);
  old = (old & ~mask) | (poison & mask);
  memcpy(to - 4, &old, 4);
  if (width == 1) {
    uint32_t bits, kept;
    memcpy(&bits, from, 4);
    memcpy(&kept, to, 4);
    kept = (kept & ~mask) | (bits & mask);
    memcpy(to, &kept, 4);
    return;
  }
  unsigned bytes = lane_bytes(width);
  SIM_EACH_BIT(mask, l) memcpy(to + bytes * l, from + bytes * l, bytes);
}

static void copy_local(struct sim_warp *warp, uint32_t mask, uint32_t to, uint32_t from, uint32_t bytes) {
  SIM_EACH_BIT(mask, l) {
    memcpy(warp->local[l] + to, warp->local[l] + from, bytes);
    memcpy(warp->local_written[l] + to, warp->local_written[l] + from, bytes);
  }
}

// The function that an indirect call of the first lane reaches; other targets go apart. SIM_NONE when it is
// none.
static uint32_t indirect_target(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op) {
  const sim_u64 *pa = sim_r64(warp, op->a);
  uint64_t address = pa[__builtin_ctz(split->mask)];
  uint32_t same = 0;
  SIM_EACH_BIT(split->mask, l) same |= (uint32_t)(pa[l] == address) << l;
  if (same != split->mask) sim_split_cut(warp, split, split->mask & ~same);
  uint64_t index = (address - SIM_CODE_BASE) / 16;
  return address >= SIM_CODE_BASE && address % 16 == 0 && index < warp->module->function_count
             ? (uint32_t)index
             : SIM_NONE;
}

// What the driver's own functions do: printing prints nothing, a failed assertion stops the block.
static bool call_library(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op,
                         const struct sim_function *callee) {
  const int32_t *list = &warp->module->lists[op->target];
  const int32_t *result = list + SIM_CALL_FIRST + SIM_CALL_STRIDE * list[SIM_CALL_ARGUMENTS];
  if (strcmp(callee->name, "__assertfail") == 0) {
    struct sim_where at = {.warp = warp, .op = op, .lane = (uint32_t)__builtin_ctz(split->mask)};
    sim_find(warp->block->launch, SIM_TRAP, &at, "an assertion failed");
    warp->block->is_stopped = true;
    return false;
  }
  if (strcmp(callee->name, "vprintf") != 0 || callee->result_count != 1 || result[SIM_CALL_IS_SLOT]) {
    return fail(warp, split, op, "the function called is not defined in the module");
  }
  SIM_EACH_BIT(split->mask, l) {
    memset(warp->local[l] + split->local + result[SIM_CALL_VALUE], 0, (size_t)result[SIM_CALL_BYTES]);
    memset(warp->local_written[l] + split->local + result[SIM_CALL_VALUE], 1, (size_t)result[SIM_CALL_BYTES]);
  }
  split->pc++;
  return true;
}

bool sim_call(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op) {
  const int32_t *list = &warp->module->lists[op->target];
  uint32_t target = (uint32_t)list[SIM_CALL_TARGET];
  if (target == SIM_NONE) {
    uint32_t poison = *sim_poison(warp, op->a) & split->mask;
    if (poison) sim_find_poison(warp, op, poison, "the target of a call");
    target = indirect_target(warp, split, op);
  }
  if (target == SIM_NONE) return fail(warp, split, op, "the target of the call is no function");
  const struct sim_function *callee = &warp->module->functions[target];
  const struct sim_function *caller = &warp->module->functions[list[SIM_CALL_CALLER]];
  uint32_t arguments = (uint32_t)list[SIM_CALL_ARGUMENTS];
  if (!callee->has_body) return call_library(warp, split, op, callee);
  if (arguments != callee->parameter_count || (uint32_t)list[SIM_CALL_RESULTS] != callee->result_count) {
    return fail(warp, split, op, "the call's arguments are not those of the function");
  }
  uint32_t local = split->local + caller->local_bytes;
  uint32_t frame =
      frame_of(warp, target, split->frame, warp->block->launch->function->frame_bytes, split->mask);
  if (frame != SIM_NONE &&
      (frame + (size_t)callee->frame_bytes > MOST_FILE || local + (size_t)callee->local_bytes > MOST_LOCAL)) {
    return fail(warp, split, op, "calls nest too deeply");
  }
  if (frame == SIM_NONE || !reserve_file(warp, frame + (size_t)callee->frame_bytes) ||
      !sim_local_reserve(warp, local + callee->local_bytes)) {
    atomic_store(&warp->block->launch->out_of_memory, true);
    warp->block->is_stopped = true;
    return false;
  }
  warp->base[0] = warp->file + split->frame;
  uint32_t mask = split->mask;
  unsigned char *to = warp->file + frame;
  for (size_t i = 0; i < callee->register_count; i++) {
    uint32_t poison;
    memcpy(&poison, to + callee->registers[i] - 4, 4);
    poison &= ~mask;
    memcpy(to + callee->registers[i] - 4, &poison, 4);
  }
  if (callee->local_bytes) {
    SIM_EACH_BIT(mask, l) memset(warp->local_written[l] + local, 0, callee->local_bytes);
  }
  const int32_t *argument = list + SIM_CALL_FIRST;
  for (uint32_t i = 0; i < arguments; i++, argument += SIM_CALL_STRIDE) {
    const struct sim_formal *formal = &callee->parameters[i];
    if (formal->reg >= 0) {
      if (argument[SIM_CALL_IS_SLOT] == 0 || argument[SIM_CALL_BYTES] != formal->width)
        return fail(warp, split, op, "an argument is of the wrong kind");
      copy_slot(to + formal->reg, sim_operand(warp, argument[SIM_CALL_VALUE]), formal->width, mask);
    } else if (argument[SIM_CALL_IS_SLOT] == 0) {
      uint32_t bytes = (uint32_t)argument[SIM_CALL_BYTES];
      copy_local(warp, mask, local + formal->offset, split->local + (uint32_t)argument[SIM_CALL_VALUE],
                 bytes < formal->bytes ? bytes : formal->bytes);
    } else {
      // A register or constant passed where memory is expected.
      unsigned bytes = lane_bytes((unsigned)argument[SIM_CALL_BYTES]);
      const unsigned char *from = sim_operand(warp, argument[SIM_CALL_VALUE]);
      uint32_t cut = bytes < formal->bytes ? bytes : formal->bytes;
      SIM_EACH_BIT(mask, l) {
        memcpy(warp->local[l] + local + formal->offset, from + bytes * l, cut);
        memset(warp->local_written[l] + local + formal->offset, 1, cut);
      }
    }
  }
  uint32_t *linkage = (uint32_t *)(void *)to;
  SIM_EACH_BIT(mask, l) {
    linkage[l] = split->pc + 1;
    linkage[SIM_LANES + l] = split->frame;
    linkage[2 * SIM_LANES + l] = split->local;
  }
  split->frame = frame;
  split->local = local;
  split->pc = callee->start;
  return true;
}

bool sim_return(struct sim_warp *warp, struct sim_split *split) {
  const unsigned char *from = warp->file + split->frame;
  const uint32_t *linkage = (const uint32_t *)(const void *)from;
  uint32_t lane = (uint32_t)__builtin_ctz(split->mask), same = 0;
  SIM_EACH_BIT(split->mask, l) {
    bool is_same = linkage[l] == linkage[lane] && linkage[SIM_LANES + l] == linkage[SIM_LANES + lane] &&
                   linkage[2 * SIM_LANES + l] == linkage[2 * SIM_LANES + lane];
    same |= (uint32_t)is_same << l;
  }
  if (same != split->mask) sim_split_cut(warp, split, split->mask & ~same);
  uint32_t pc = linkage[lane], frame = linkage[SIM_LANES + lane], local = linkage[2 * SIM_LANES + lane];
  const struct sim_op *call = &warp->module->ops[pc - 1];
  const struct sim_function *callee = &warp->module->functions[warp->module->ops[split->pc].target];
  const int32_t *list = &warp->module->lists[call->target];
  const int32_t *result = list + SIM_CALL_FIRST + SIM_CALL_STRIDE * list[SIM_CALL_ARGUMENTS];
  warp->base[0] = warp->file + frame;
  for (size_t i = 0; i < callee->result_count; i++, result += SIM_CALL_STRIDE) {
    const struct sim_formal *formal = &callee->results[i];
    if (formal->reg >= 0 && result[SIM_CALL_IS_SLOT]) {
      if (result[SIM_CALL_BYTES] != formal->width)
        return fail(warp, split, call, "a result is of the wrong width");
      copy_slot(sim_operand(warp, result[SIM_CALL_VALUE]), from + formal->reg, formal->width, same);
    } else if (formal->reg < 0 && !result[SIM_CALL_IS_SLOT]) {
      uint32_t bytes = (uint32_t)result[SIM_CALL_BYTES];
      copy_local(warp, same, local + (uint32_t)result[SIM_CALL_VALUE], split->local + formal->offset,
                 bytes < formal->bytes ? bytes : formal->bytes);
    } else {
      return fail(warp, split, call, "a result is of the wrong kind");
    }
  }
  leave_frame(warp, split->frame, same);
  split->pc = pc;
  split->frame = frame;
  split->local = local;
  return true;
}
