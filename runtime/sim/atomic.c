// atom and red. Lanes go one after another in a seeded order; each operation on global memory is atomic
// between host threads, by compare and exchange on the word that holds it.
#include "runtime/sim/decode.h"
#include "runtime/sim/number.h"

// New value from the old one.
static uint64_t integer_result(const struct sim_op *op, uint64_t old, uint64_t a, uint64_t b) {
  bool is_wide = op->bytes == 8;
  switch ((enum sim_atomic)op->operation) {
  case SIM_ATOM_ADD: return old + a;
  case SIM_ATOM_AND: return old & a;
  case SIM_ATOM_OR: return old | a;
  case SIM_ATOM_XOR: return old ^ a;
  case SIM_ATOM_MIN:
    if (op->type == SIM_S32) return (int32_t)old < (int32_t)a ? old : a;
    if (op->type == SIM_S64) return (int64_t)old < (int64_t)a ? old : a;
    return is_wide ? (old < a ? old : a) : (uint32_t)old < (uint32_t)a ? old : a;
  case SIM_ATOM_MAX:
    if (op->type == SIM_S32) return (int32_t)old > (int32_t)a ? old : a;
    if (op->type == SIM_S64) return (int64_t)old > (int64_t)a ? old : a;
    return is_wide ? (old > a ? old : a) : (uint32_t)old > (uint32_t)a ? old : a;
  case SIM_ATOM_INC: return old >= a ? 0 : old + 1;
  case SIM_ATOM_DEC: return old == 0 || old > a ? a : old - 1;
  case SIM_ATOM_EXCH: return a;
  case SIM_ATOM_CAS: return old == a ? b : old;
  case SIM_ATOM_OPERATIONS: break;
  }
  return old;
}

static uint32_t half_result(const struct sim_op *op, uint32_t old, uint32_t a) {
  bool is_bfloat = op->type == SIM_BF16 || op->type == SIM_BF16X2;
  struct sim_format format = is_bfloat ? sim_bfloat : sim_half;
  double x = sim_widen(old & 0xffff, format), y = sim_widen(a & 0xffff, format), r;
  if (op->operation == SIM_ATOM_MIN) {
    r = sim_min32((float)x, (float)y, false);
  } else if (op->operation == SIM_ATOM_MAX) {
    r = sim_max32((float)x, (float)y, false);
  } else {
    r = sim_add_odd(x, y);
  }
  return sim_narrow(r, format, SIM_RN);
}

static uint64_t result(const struct sim_op *op, uint64_t old, uint64_t a, uint64_t b, bool is_shared) {
  if (op->operation == SIM_ATOM_EXCH || op->operation == SIM_ATOM_CAS) return integer_result(op, old, a, b);
  switch ((enum sim_type)op->type) {
  case SIM_F32: {
    float x = sim_float((uint32_t)old), y = sim_float((uint32_t)a);
    if (is_shared) return sim_float_bits(sim_canonical(x + y));
    // On global memory denormals are flushed.
    return sim_float_bits(sim_flush(sim_canonical(sim_flush(x) + sim_flush(y))));
  }
  case SIM_F64: {
    double sum = sim_double(old) + sim_double(a);
    return sum == sum ? sim_double_bits(sum) : SIM_NAN64;
  }
  case SIM_F16:
  case SIM_BF16: return half_result(op, (uint32_t)old, (uint32_t)a);
  case SIM_F16X2:
  case SIM_BF16X2:
    return half_result(op, (uint32_t)old, (uint32_t)a) |
           (uint64_t)half_result(op, (uint32_t)old >> 16, (uint32_t)a >> 16) << 16;
  case SIM_PRED:
  case SIM_B8:
  case SIM_B16:
  case SIM_B32:
  case SIM_B64:
  case SIM_B128:
  case SIM_U8:
  case SIM_U16:
  case SIM_U32:
  case SIM_U64:
  case SIM_S8:
  case SIM_S16:
  case SIM_S32:
  case SIM_S64:
  case SIM_U16X2:
  case SIM_S16X2:
  case SIM_F32X2:
  case SIM_TYPES: break;
  }
  return integer_result(op, old, a, b);
}

// Reads, changes and writes one element; returns the old value.
static uint64_t change(const struct sim_op *op, unsigned char *host, uint64_t a, uint64_t b, bool is_shared) {
  if (op->bytes == 8) {
    uint64_t *word = (uint64_t *)(void *)host;
    uint64_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &old, result(op, old, a, b, is_shared), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    return old;
  }
  if (op->bytes == 4) {
    uint32_t *word = (uint32_t *)(void *)host;
    uint32_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &old, (uint32_t)result(op, old, a, b, is_shared), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
  }
  uint16_t *half = (uint16_t *)(void *)host;
  uint16_t old = __atomic_load_n(half, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(half, &old, (uint16_t)result(op, old, a, b, is_shared), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return old;
}

// 128-bit exchange and compare-and-swap, under one lock: no other access is of this width and atomic.
static void change_wide(struct sim_warp *warp, const struct sim_op *op, unsigned lane, unsigned char *host,
                        const int32_t *slots) {
  struct sim_launch_state *launch = warp->block->launch;
  const int32_t *sources = slots + (op->has_result ? 1 : 0);
  unsigned char old[16];
  pthread_mutex_lock(&launch->lock);
  memcpy(old, host, 16);
  const unsigned char *a = sim_operand(warp, sources[0]) + 16 * lane;
  if (op->operation == SIM_ATOM_EXCH) {
    memcpy(host, a, 16);
  } else if (memcmp(old, a, 16) == 0) {
    memcpy(host, sim_operand(warp, sources[1]) + 16 * lane, 16);
  }
  pthread_mutex_unlock(&launch->lock);
  memcpy(sim_operand(warp, slots[0]) + 16 * lane, old, 16);
}

static uint64_t lane_value(struct sim_warp *warp, const struct sim_op *op, int32_t slot, unsigned lane) {
  return op->bytes == 8 ? sim_r64(warp, slot)[lane] : sim_r32(warp, slot)[lane];
}

static void run_lane(struct sim_warp *warp, const struct sim_op *op, unsigned lane, unsigned char *host,
                     bool is_shared) {
  const int32_t *slots = &warp->module->lists[op->target];
  if (op->bytes == 16) {
    change_wide(warp, op, lane, host, slots);
    return;
  }
  const int32_t *sources = slots + (op->has_result ? op->vector : 0);
  for (unsigned i = 0; i < op->vector; i++) {
    uint64_t a = lane_value(warp, op, sources[i], lane), b = 0;
    if (op->operation == SIM_ATOM_CAS) b = lane_value(warp, op, sources[op->vector + i], lane);
    uint64_t old = change(op, host + i * op->bytes, a, b, is_shared);
    if (!op->has_result) continue;
    if (op->bytes == 8) {
      sim_r64(warp, slots[i])[lane] = old;
    } else {
      sim_r32(warp, slots[i])[lane] = (uint32_t)old;
    }
  }
}

void sim_run_atom(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  uint64_t address[SIM_LANES], first[SIM_LANES];
  unsigned char *host[SIM_LANES];
  const int32_t *slots = &warp->module->lists[op->target];
  unsigned results = op->has_result ? op->vector : 0,
           sources = op->operation == SIM_ATOM_CAS ? 2u * op->vector : op->vector;
  uint32_t poison = 0;
  for (unsigned i = 0; i < sources; i++) poison |= *sim_poison(warp, slots[results + i]);
  if (poison & mask) sim_find_poison(warp, op, poison & mask, "the operand of an atomic");
  uint32_t sound = sim_addresses(warp, op, mask, address);
  memcpy(first, address, sizeof first);
  uint32_t done = sim_access(warp, op, (enum sim_space)op->space, sound, address,
                             (uint32_t)op->bytes * op->vector, SIM_READ_WRITE, host);
  warp->worker->counters.stats.atomics++;
  warp->worker->strong += op->has_result;
  uint64_t base = op->space == SIM_SPACE_SHARED ? SIM_SHARED_BASE : 0;
  unsigned turn = (unsigned)(sim_random(&warp->rng) & 31);
  for (unsigned i = 0; i < SIM_LANES; i++) {
    unsigned lane = (i + turn) & 31;
    if (!(done >> lane & 1)) continue;
    sim_clock_release(warp, op, lane, base + first[lane]);
    uint64_t generic = base + first[lane];
    run_lane(warp, op, lane, host[lane],
             generic >= SIM_SHARED_BASE && generic < SIM_SHARED_BASE + SIM_WINDOW);
    sim_clock_acquire(warp, op, lane, base + first[lane]);
  }
  for (unsigned i = 0; i < results; i++) {
    *sim_poison(warp, slots[i]) &= ~mask;
    if (mask & ~done) {
      SIM_EACH_BIT(mask & ~done, l) {
        if (op->bytes == 8) {
          sim_r64(warp, slots[i])[l] = 0;
        } else if (op->bytes <= 4) {
          sim_r32(warp, slots[i])[l] = 0;
        }
      }
    }
  }
}
