// What warp instructions compute once their lanes are together.
#include "runtime/sim/collective.h"
#include "runtime/sim/number.h"

static void set_pred(struct sim_warp *warp, int32_t slot, uint32_t mask, uint32_t value) {
  sim_u32 *pd = sim_pred(warp, slot);
  *pd = (*pd & ~mask) | (value & mask);
}

static void set_poison(struct sim_warp *warp, int32_t slot, uint32_t mask, uint32_t value) {
  uint32_t *pd = sim_poison(warp, slot);
  *pd = (*pd & ~mask) | (value & mask);
}

// Reports lanes whose operand is poison.
static void check_operand(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, int32_t slot) {
  uint32_t poison = *sim_poison(warp, slot) & mask;
  if (poison) sim_find_poison(warp, op, poison, "the operand of a warp instruction");
}

enum { UP, DOWN, BFLY, IDX };

// Poison in the data goes where the data goes: lanes whose value nobody uses in the end do no harm.
void sim_run_shfl(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  warp->worker->counters.stats.shuffles++;
  check_operand(warp, op, mask, op->b);
  check_operand(warp, op, mask, op->c);
  uint32_t data[SIM_LANES], poisoned = *sim_poison(warp, op->a), out_poison = 0, in_range = 0;
  memcpy(data, sim_r32(warp, op->a), sizeof data);
  const sim_u32 *pb = sim_r32(warp, op->b), *pc = sim_r32(warp, op->c);
  uint32_t source[SIM_LANES], clamp[SIM_LANES];
  memcpy(source, pb, sizeof source);
  memcpy(clamp, pc, sizeof clamp);
  sim_u32 *pd = sim_r32(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    uint32_t segment = clamp[l] >> 8 & 31, b = source[l] & 31;
    uint32_t bound = (l & segment) | (clamp[l] & 31 & ~segment), from = l;
    bool is_in = false;
    switch (op->sub) {
    case UP:
      is_in = (int32_t)l - (int32_t)b >= (int32_t)bound;
      from = l - b;
      break;
    case DOWN:
      is_in = l + b <= bound;
      from = l + b;
      break;
    case BFLY:
      is_in = (l ^ b) <= bound;
      from = l ^ b;
      break;
    case IDX:
      from = (l & segment) | (b & ~segment);
      is_in = from <= bound;
      break;
    }
    if (!is_in) from = l;
    from &= 31;
    in_range |= (uint32_t)is_in << l;
    bool is_there = mask & warp->masks[l] & 1u << from;
    if (!is_there) {
      warp->absent_op[l] = (uint32_t)(op - warp->module->ops) + 1;
    } else if (poisoned >> from & 1) {
      warp->absent_op[l] = warp->absent_op[from];
    }
    out_poison |= (uint32_t)(!is_there || (poisoned >> from & 1)) << l;
    pd[l] = data[from];
  }
  set_poison(warp, op->d, mask, out_poison);
  if (op->has_result) {
    set_pred(warp, op->e, mask, in_range);
    set_poison(warp, op->e, mask, 0);
  }
}

enum { ALL, ANY, UNI, BALLOT };

void sim_run_vote(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  warp->worker->counters.stats.votes++;
  check_operand(warp, op, mask, op->a);
  uint32_t truth = *sim_pred(warp, op->a) ^ (op->c_is_negated ? SIM_FULL : 0), out = 0;
  SIM_EACH_BIT(mask, l) {
    uint32_t there = mask & warp->masks[l], yes = truth & there;
    bool is_true = op->sub == ALL ? yes == there : op->sub == ANY ? yes != 0 : yes == 0 || yes == there;
    if (op->sub == BALLOT) {
      sim_r32(warp, op->d)[l] = yes;
    } else {
      out |= (uint32_t)is_true << l;
    }
  }
  if (op->sub != BALLOT) set_pred(warp, op->d, mask, out);
  set_poison(warp, op->d, mask, 0);
}

void sim_run_match(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  warp->worker->counters.stats.votes++;
  check_operand(warp, op, mask, op->a);
  uint64_t data[SIM_LANES];
  for (unsigned l = 0; l < SIM_LANES; l++) {
    data[l] = op->type == SIM_B64 ? sim_r64(warp, op->a)[l] : sim_r32(warp, op->a)[l];
  }
  uint32_t all_equal = 0;
  sim_u32 *pd = sim_r32(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    uint32_t there = mask & warp->masks[l], same = 0;
    for (uint32_t rest = there; rest; rest &= rest - 1) {
      unsigned k = (unsigned)__builtin_ctz(rest);
      same |= (uint32_t)(data[k] == data[l]) << k;
    }
    bool is_all = same == there;
    pd[l] = op->sub == 0 ? same : is_all ? there : 0;
    all_equal |= (uint32_t)is_all << l;
  }
  set_poison(warp, op->d, mask, 0);
  if (op->has_result) {
    set_pred(warp, op->e, mask, all_equal);
    set_poison(warp, op->e, mask, 0);
  }
}

static uint32_t reduce(const struct sim_op *op, uint32_t a, uint32_t b) {
  if (op->type == SIM_F32) {
    float x = sim_float(a), y = sim_float(b);
    return sim_float_bits(op->sub == 1 ? sim_min32(x, y, op->is_nan) : sim_max32(x, y, op->is_nan));
  }
  bool is_signed = op->type == SIM_S32, is_less = is_signed ? (int32_t)a < (int32_t)b : a < b;
  switch (op->sub) {
  case 0: return a + b;
  case 1: return is_less ? a : b;
  case 2: return is_less ? b : a;
  case 3: return a & b;
  case 4: return a | b;
  }
  return a ^ b;
}

void sim_run_redux(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  warp->worker->counters.stats.votes++;
  check_operand(warp, op, mask, op->a);
  uint32_t data[SIM_LANES];
  memcpy(data, sim_r32(warp, op->a), sizeof data);
  if (op->is_abs) {
    for (unsigned l = 0; l < SIM_LANES; l++) data[l] &= 0x7fffffffu;
  }
  sim_u32 *pd = sim_r32(warp, op->d);
  uint32_t last_mask = 0, last = 0;
  SIM_EACH_BIT(mask, l) {
    uint32_t there = mask & warp->masks[l];
    if (there == 0) there = 1u << l;
    if (there != last_mask) {
      uint32_t rest = there;
      last = data[__builtin_ctz(rest)];
      for (rest &= rest - 1; rest; rest &= rest - 1) last = reduce(op, last, data[__builtin_ctz(rest)]);
      last_mask = there;
    }
    pd[l] = last;
  }
  set_poison(warp, op->d, mask, 0);
}

void sim_run_elect(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  warp->worker->counters.stats.votes++;
  uint32_t elected = 0;
  SIM_EACH_BIT(mask, l) {
    uint32_t there = mask & warp->masks[l], leader = there ? (uint32_t)__builtin_ctz(there) : l;
    sim_r32(warp, op->d)[l] = leader;
    elected |= (uint32_t)(leader == l) << l;
  }
  set_poison(warp, op->d, mask, 0);
  if (op->has_result) {
    set_pred(warp, op->e, mask, elected);
    set_poison(warp, op->e, mask, 0);
  }
}

// Who is here now: of the lanes that run together, those that have not diverged since they last met. The
// hardware promises no more.
void sim_run_activemask(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  warp->worker->counters.stats.votes++;
  sim_u32 *pd = sim_r32(warp, op->d);
  SIM_EACH_BIT(mask, l) pd[l] = warp->has_diverged ? mask & warp->groups[l] : mask;
}
