// Words of shared memory: who touched them since the last barrier, and whether anything wrote them.
//
// A word remembers its last writer and its readers of this epoch; a block barrier begins a new one. Within an
// epoch two accesses of different threads are ordered only by warp barriers, of which every thread keeps, for
// each lane of its warp, up to when that lane's accesses are before its own. Accesses whose words are known
// up to a symbol are kept as a list and compared with their symbols' common factor; a store among them counts
// as writing all the words that it may reach.
#include "passes/prove_engine.h"

#include <string.h>

enum { NEVER, PERHAPS, SURELY };

// --- Objects -----------------------------------------------------------------------------------------

// Elements that the layout spans; -1: not a number.
static int64_t object_size(const struct ir_mem *mem) {
  int64_t last = 0, step;
  for (uint32_t d = 0; d < mem->dims.count; d++) {
    const struct ir_expr *dim = mem->dims.at[d], *stride = mem->strides.at[d];
    if (!ir_is_const(dim) || !ir_is_const(stride)) return -1;
    if (dim->integer <= 0) return 0;
    int64_t size = stride->integer < 0 ? -stride->integer : stride->integer;
    if (__builtin_mul_overflow(dim->integer - 1, size, &step) || __builtin_add_overflow(last, step, &last))
      return -1;
  }
  return last + 1;
}

void memory_begin(struct prover *p) {
  enum { MOST_WORDS = 1 << 18 }; // more than any block may have
  int64_t left = MOST_WORDS;
  p->object_count = p->entry->memory.count;
  p->objects = arena_array(p->scratch, struct object, p->object_count + 1);
  p->memory.words = arena_array(p->scratch, struct word *, p->object_count + 1);
  for (uint32_t i = 0; i < p->object_count; i++) {
    struct ir_mem *mem = p->entry->memory.at[i];
    p->objects[i] = (struct object){.mem = mem, .size = object_size(mem)};
    if (mem->space == SPACE_SHARED && p->objects[i].size > 0 && p->objects[i].size <= left) {
      p->memory.words[i] = arena_array(p->scratch, struct word, p->objects[i].size);
      left -= p->objects[i].size;
    }
  }
  p->memory.epoch = ++p->epochs;
}

static uint32_t object_of(const struct prover *p, const struct ir_mem *mem) {
  for (uint32_t i = 0; i < p->object_count; i++)
    if (p->objects[i].mem == mem) return i;
  return p->object_count;
}

// --- Order -------------------------------------------------------------------------------------------

// Whether what thread `first` did at `time` is before what `second` does now.
static bool is_ordered(const struct prover *p, uint32_t first, uint32_t time, uint32_t second) {
  if (p->order != ORDER_BARRIERS) return p->order == ORDER_OWN && first == second;
  if (first == second) return true;
  return p->memory.order && first / 32 == second / 32 && time < p->memory.order[second * 32 + first % 32];
}

static bool are_readers_ordered(const struct prover *p, const struct word *w, uint32_t t) {
  if (w->reader_warp == MANY) return false;
  for (uint32_t lanes = w->reader_lanes; lanes; lanes &= lanes - 1)
    if (!is_ordered(p, (uint32_t)w->reader_warp * 32 + (uint32_t)__builtin_ctz(lanes), w->read_time, t))
      return false;
  return true;
}

static bool has_other_reader(const struct word *w, uint32_t t) {
  if (w->reader_warp == NOBODY) return false;
  return w->reader_warp != t / 32 || (w->reader_lanes & ~(1u << t % 32)) != 0;
}

static void forget(struct word *w, uint32_t epoch) {
  w->epoch = epoch;
  w->writer = w->reader_warp = NOBODY;
  w->reader_lanes = w->write_time = w->read_time = 0;
}

static const struct node *node_at(const struct prover *p, uint32_t place) {
  return p->nodes.at[place];
}

static uint16_t node_place(const struct node *node) {
  return (uint16_t)node->number;
}

static bool report_race(struct prover *p, const struct ir_mem *mem, const char *what, uint32_t t,
                        const char *did, const struct node *other) {
  return prove_fault(p, PROOF_RACE, other, "the other access is here",
                     "%s %s of '%s' that another thread %s, with no barrier between", prove_thread_name(p, t),
                     what, mem->name, did);
}

static void note_required(struct prover *p, const struct word *w, uint32_t t, bool is_write) {
  bool conflicts = (w->writer != NOBODY && w->writer != t) || (is_write && has_other_reader(w, t));
  if (conflicts && w->epoch == p->memory.previous && p->memory.barrier) p->memory.barrier->is_required = true;
}

// --- Known words -------------------------------------------------------------------------------------

static void touch(struct prover *p, uint32_t object, int64_t place, uint32_t t, bool is_write, bool is_sure) {
  struct word *w = &p->memory.words[object][place];
  const struct ir_mem *mem = p->objects[object].mem;
  if (w->epoch != p->memory.epoch) {
    if (w->epoch) note_required(p, w, t, is_write);
    forget(w, p->memory.epoch);
  }
  bool is_written = w->writer != NOBODY && w->writer != t &&
                    (w->writer == MANY || !is_ordered(p, w->writer, w->write_time, t));
  if (!is_written && w->writer != NOBODY && w->writer != t && w->write_time + 1 == p->time && p->syncwarp)
    p->syncwarp->is_required = true; // no other barrier stands between the two
  if (is_written)
    report_race(p, mem, is_write ? "writes a word" : "reads a word", t, "wrote", node_at(p, w->writer_node));
  if (is_write) {
    if (!is_written && has_other_reader(w, t) && !are_readers_ordered(p, w, t))
      report_race(p, mem, "writes a word", t, "read", node_at(p, w->reader_node));
    w->writer = (uint16_t)t;
    w->write_time = p->time;
    w->writer_node = node_place(p->current);
    if (w->level < SURELY) w->level = is_sure ? SURELY : PERHAPS;
    return;
  }
  if (w->level == NEVER || (w->level == PERHAPS && is_sure))
    prove_fault(p, PROOF_UNWRITTEN, NULL, NULL, "%s reads element %lld of '%s', which %s wrote",
                prove_thread_name(p, t), (long long)place, mem->name,
                w->level == NEVER ? "nothing" : "perhaps nothing");
  if (w->reader_warp == NOBODY)
    w->reader_warp = (uint16_t)(t / 32);
  else if (w->reader_warp != t / 32)
    w->reader_warp = MANY;
  w->reader_lanes |= 1u << t % 32;
  w->read_time = p->time;
  w->reader_node = node_place(p->current);
}

// --- Words known up to a symbol ----------------------------------------------------------------------

struct far_access *memory_far(struct prover *p, uint32_t object, const struct av *index, bool is_write, uint32_t count) {
  struct far_access *access = arena_new(p->scratch, struct far_access);
  *access = (struct far_access){.epoch = p->memory.epoch,
                                .time = p->time,
                                .object = object,
                                .is_write = is_write,
                                .index = index,
                                .who = p->may,
                                .count = count,
                                .node = p->current};
  value_bounds(p, index, &access->lo, &access->hi);
  access->hi += count - 1;
  access->least = INT64_MAX, access->most = INT64_MIN;
  for (uint32_t t = 0; t < p->threads; t++) {
    if (!threads_has(&p->may, t)) continue;
    int64_t place = value_at(index, t);
    if (place < access->least) access->least = place;
    if (place + count - 1 > access->most) access->most = place + count - 1;
  }
  if (access->lo < 0) access->lo = 0;
  if (p->objects[object].size >= 0 && access->hi >= p->objects[object].size)
    access->hi = p->objects[object].size - 1;
  return access;
}

static int64_t modulo(int64_t x, int64_t by) {
  return by ? ((x % by) + by) % by : x;
}

// A thread of `b` that may meet another thread of `a` on a word, unordered; PROVE_THREADS: none. Equal
// symbols: where the rest is equal; others: where it is equal modulo what divides both.
uint32_t memory_meeting(struct prover *p, const struct far_access *a, const struct far_access *b) {
  bool is_any = a->index->is_varying || b->index->is_varying;
  int64_t by = 0;
  if (!is_any && a->index->base != b->index->base) {
    by = prove_gcd(value_multiple(p, a->index->base), value_multiple(p, b->index->base));
    is_any = by <= 1;
  }
  if (!is_any && by == 0 && (a->least > b->most || b->least > a->most)) return PROVE_THREADS;
  p->work += p->threads;
  if (is_any) { // where what one reaches and what the other does overlap
    struct reach from = value_reach(p, a->index), to = value_reach(p, b->index);
    for (uint32_t t = 0; t < p->threads; t++)
      for (uint32_t u = 0; threads_has(&b->who, t) && u < p->threads; u++)
        if (threads_has(&a->who, u) && reach_meets(reach_lo(&from, u), reach_hi(&to, t), b->count) &&
            reach_meets(reach_lo(&to, t), reach_hi(&from, u), a->count) &&
            !is_ordered(p, u, a->time, t))
          return t;
    return PROVE_THREADS;
  }
  struct cell {
    int64_t place;
    uint32_t entry; // one more than it; 0: free
  };
  uint32_t entries = p->threads * a->count, slots = 64;
  while (slots < 2 * entries) slots *= 2;
  struct cell *table = arena_array(p->scratch, struct cell, slots);
  uint32_t *more = arena_array(p->scratch, uint32_t, entries); // the next of the same place, as cell.entry
  for (int round = 0; round < 2; round++) {
    const struct far_access *one = round ? b : a;
    for (uint32_t i = 0; i < p->threads * one->count; i++) {
      uint32_t t = i / one->count;
      if (!threads_has(&one->who, t)) continue;
      int64_t place = modulo(value_at(one->index, t) + i % one->count, by);
      uint32_t slot = (uint32_t)((uint64_t)place * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (slots - 1);
      while (table[slot].entry && table[slot].place != place) slot = (slot + 1) & (slots - 1);
      for (uint32_t u = round ? table[slot].entry : 0; u; u = more[u - 1])
        if (!is_ordered(p, (u - 1) / a->count, a->time, t)) return t;
      if (round) continue;
      table[slot].place = place;
      more[i] = table[slot].entry;
      table[slot].entry = i + 1;
    }
  }
  return PROVE_THREADS;
}

static void meet_far(struct prover *p, const struct far_access *now) {
  for (const struct far_access *old = p->memory.far; old; old = old->next) {
    if (old->epoch != p->memory.epoch || old->object != now->object || !(old->is_write || now->is_write) ||
        old->lo > now->hi || now->lo > old->hi)
      continue;
    uint32_t t = memory_meeting(p, old, now);
    if (t == PROVE_THREADS) continue;
    report_race(p, p->objects[now->object].mem, now->is_write ? "may write a word" : "may read a word", t,
                old->is_write ? "may have written" : "may have read", old->node);
    return;
  }
  if (!now->is_write) return;
  uint32_t t = memory_meeting(p, now, now); // threads of this store among themselves
  if (t != PROVE_THREADS)
    report_race(p, p->objects[now->object].mem, "may write a word", t, "may write", now->node);
}

// A far access against words that were touched as known ones.
static void meet_words(struct prover *p, const struct far_access *now) {
  struct word *words = p->memory.words[now->object];
  int64_t modulus = now->index->is_varying ? 1 : value_multiple(p, now->index->base);
  struct reach reach = value_reach(p, now->index);
  for (int64_t i = now->lo; words && i <= now->hi; i++) {
    const struct word *w = &words[i];
    if (w->epoch != p->memory.epoch || (w->writer == NOBODY && !(now->is_write && w->reader_warp != NOBODY)))
      continue;
    for (uint32_t t = 0; t < p->threads; t++) {
      if (!threads_has(&now->who, t)) continue;
      bool is_near = i >= reach_lo(&reach, t) && reach_meets(i, reach_hi(&reach, t), now->count), reaches = is_near && now->index->is_varying;
      for (uint32_t k = 0; is_near && !reaches && k < now->count; k++)
        reaches = (i - value_at(now->index, t) - k) % modulus == 0;
      bool is_written = reaches && w->writer != NOBODY &&
                        (w->writer == MANY || !is_ordered(p, w->writer, w->write_time, t));
      bool is_read = reaches && now->is_write && has_other_reader(w, t) && !are_readers_ordered(p, w, t);
      if (!is_written && !is_read) continue;
      report_race(p, p->objects[now->object].mem, now->is_write ? "may write a word" : "may read a word", t,
                  is_written ? "wrote" : "read", node_at(p, is_written ? w->writer_node : w->reader_node));
      return;
    }
  }
}

// What a far access says of the words that it may reach: a store, that they are written; a load, that they
// have to be.
static void level_words(struct prover *p, const struct far_access *now, bool is_sure) {
  struct word *words = p->memory.words[now->object];
  for (int64_t i = now->lo; words && i <= now->hi; i++) {
    if (now->is_write) {
      if (words[i].level < SURELY) words[i].level = is_sure ? SURELY : PERHAPS;
      continue;
    }
    if (words[i].level == SURELY || (words[i].level == PERHAPS && !is_sure)) continue;
    prove_fault(p, PROOF_UNWRITTEN, NULL, NULL, "this may read element %lld of '%s', which %s wrote",
                (long long)i, p->objects[now->object].mem->name,
                words[i].level == NEVER ? "nothing" : "perhaps nothing");
    return;
  }
}

// --- Accesses ----------------------------------------------------------------------------------------

static const struct av *flatten(struct prover *p, struct ir_mem *mem, const struct av *const *indices,
                                uint32_t rank) {
  const struct av *sum = NULL;
  for (uint32_t d = 0; d < rank && d < mem->strides.count; d++) {
    const struct ir_expr *stride = mem->strides.at[d];
    const struct av *step = ir_is_const(stride) ? value_number(p, indices[d]->type, stride->integer)
                                                : value_uniform(p, indices[d]->type, INT64_MIN, INT64_MAX);
    const struct av *one =
        value_op(p, OP_MUL, indices[d]->type, (const struct av *const[]){indices[d], step}, 2);
    sum = sum ? value_op(p, OP_ADD, sum->type, (const struct av *const[]){sum, one}, 2) : one;
  }
  return sum;
}

// Whether `count` elements from the index on lie below `size`, in every thread that is here.
static bool check_bounds(struct prover *p, const struct ir_mem *mem, const struct av *index, int64_t size,
                         uint32_t count) {
  int64_t lo, hi;
  value_bounds(p, index, &lo, &hi);
  if (lo >= 0 && hi <= size - count) return true;
  if (value_is_known(index) && p->is_enumerated) {
    for (uint32_t t = 0; t < p->threads; t++) {
      int64_t i = value_at(index, t);
      if (threads_has(&p->may, t) && (i < 0 || i > size - count))
        return prove_fault(p, PROOF_BOUNDS, NULL, NULL, "%s uses index %lld of '%s', which has %lld elements",
                           prove_thread_name(p, t), (long long)(i < 0 ? i : i + count - 1), mem->name,
                           (long long)size);
    }
    return true;
  }
  const int64_t *known = index->known;
  if (known && index->base && !index->is_varying) { // bounds of those that are here
    int64_t all_least = known[0], all_most = known[0], least = INT64_MAX, most = INT64_MIN;
    for (uint32_t t = 0; t < p->threads; t++) {
      if (known[t] < all_least) all_least = known[t];
      if (known[t] > all_most) all_most = known[t];
      if (threads_has(&p->may, t) && known[t] < least) least = known[t];
      if (threads_has(&p->may, t) && known[t] > most) most = known[t];
    }
    int64_t type_lo, type_hi;
    type_bounds(index->type, &type_lo, &type_hi);
    if (lo > type_lo && hi < type_hi && lo - all_most + least >= 0 && hi - all_least + most <= size - count &&
        lo >= 0)
      return true;
  }
  struct reach reach = value_reach(p, index);
  bool is_inside = p->is_enumerated && (reach.floor || reach.ceiling);
  for (uint32_t t = 0; t < p->threads && is_inside; t++)
    is_inside = !threads_has(&p->may, t) || (reach_lo(&reach, t) >= 0 && reach_hi(&reach, t) <= size - count);
  if (is_inside) return true;
  if (lo == INT64_MIN || hi == INT64_MAX)
    return prove_fault(p, PROOF_BOUNDS, NULL, NULL,
                       "an index of '%s', which has %lld elements, has no known bounds", mem->name,
                       (long long)size);
  return prove_fault(p, PROOF_BOUNDS, NULL, NULL,
                     "an index of '%s', which has %lld elements, may be %lld to %lld", mem->name,
                     (long long)size, (long long)lo, (long long)(hi + count - 1));
}

// An access of shared memory, its place inside the object.
static void access_shared(struct prover *p, uint32_t object, const struct av *index, bool is_write, uint32_t count, bool is_sure) {
  if (!value_is_known(index) || !p->memory.words[object]) {
    struct far_access *now = memory_far(p, object, index, is_write, count);
    meet_far(p, now);
    meet_words(p, now);
    level_words(p, now, is_sure);
    now->next = p->memory.far;
    p->memory.far = now;
    return;
  }
  for (uint32_t t = 0; t < p->threads && !p->is_stopped; t++) {
    if (!threads_has(&p->may, t)) continue;
    for (uint32_t k = 0; k < count; k++) touch(p, object, value_at(index, t) + k, t, is_write, is_sure);
  }
  if (!p->memory.far) return;
  struct far_access *now = memory_far(p, object, index, is_write, count);
  for (const struct far_access *old = p->memory.far; old; old = old->next) {
    if (old->epoch != p->memory.epoch || old->object != object || !(old->is_write || is_write) ||
        old->lo > now->hi || now->lo > old->hi)
      continue;
    uint32_t t = memory_meeting(p, old, now);
    if (t == PROVE_THREADS) continue;
    report_race(p, p->objects[object].mem, is_write ? "may write a word" : "may read a word", t,
                old->is_write ? "may have written" : "may have read", old->node);
    break;
  }
}

// Whether words are written was said where the copy was made.
void memory_land(struct prover *p, const struct far_access *access) {
  struct threads here = p->may;
  p->may = access->who;
  access_shared(p, access->object, access->index, true, access->count, false);
  p->may = here;
}

const struct av *memory_access(struct prover *p, struct ir_mem *mem, const struct av *const *indices,
                               uint32_t rank, bool is_flat, bool is_write, uint32_t count) {
  uint32_t object = object_of(p, mem);
  if (object == p->object_count || rank == 0) return NULL;
  const struct av *index = is_flat ? indices[0] : flatten(p, mem, indices, rank);
  int64_t size = p->objects[object].size;
  bool is_inside = true;
  if (!is_flat)
    for (uint32_t d = 0; d < rank && d < mem->dims.count; d++) {
      const struct ir_expr *dim = mem->dims.at[d];
      if (ir_is_const(dim))
        is_inside &= check_bounds(p, mem, indices[d], dim->integer, d + 1 == rank ? count : 1);
    }
  if (is_flat && size >= 0) is_inside = check_bounds(p, mem, index, size, count);
  if (!is_inside || mem->space != SPACE_SHARED || !p->is_enumerated) return index;
  copies_meet(p, object, index, is_write, count);
  access_shared(p, object, index, is_write, count, p->unknown_count == 0);
  return index;
}

// --- Local memory --------------------------------------------------------------------------------------

enum { MOST_KEPT = 4096 }; // elements

// The elements that an access reaches; false where the array is too large to follow.
static bool find_elements(struct prover *p, struct object *object, const struct av *index, uint32_t count, int64_t *lo, int64_t *hi) {
  if (!object->mem || object->mem->space != SPACE_LOCAL || object->size < 1 || object->size > MOST_KEPT || !index) return false;
  value_bounds(p, index, lo, hi);
  if (*lo < 0) *lo = 0;
  if (*hi > object->size - count) *hi = object->size - count;
  *hi += count - 1;
  return true;
}

void memory_keep(struct prover *p, struct ir_mem *mem, const struct av *index, uint32_t count, const struct av *value) {
  struct object *object = &p->objects[object_of(p, mem)];
  int64_t lo, hi;
  if (!value->poison && !object->poison) return;
  if (!find_elements(p, object, index, count, &lo, &hi)) {
    prove_clean(p, value, "a value to store");
    return;
  }
  if (!object->poison) object->poison = arena_array(p->scratch, const struct threads *, object->size);
  if (value->poison) object->origin = value->origin;
  for (int64_t i = lo; i <= hi; i++) { // a loop over the elements reaches all of them
    struct threads *kept = threads_new(p);
    bool is_any = false;
    for (uint32_t w = 0; w < PROVE_SETS; w++) {
      uint64_t before = object->poison[i] ? object->poison[i]->bits[w] : 0, now = value->poison ? value->poison->bits[w] : 0;
      kept->bits[w] = (before & ~p->may.bits[w]) | (now & p->may.bits[w]);
      is_any |= kept->bits[w] != 0;
    }
    object->poison[i] = is_any ? kept : NULL;
  }
}

const struct av *memory_kept(struct prover *p, struct ir_mem *mem, const struct av *index, uint32_t count, const struct av *value) {
  struct object *object = &p->objects[object_of(p, mem)];
  int64_t lo, hi;
  if (!object->poison || !find_elements(p, object, index, count, &lo, &hi)) return value;
  struct threads *all = NULL;
  for (int64_t i = lo; i <= hi; i++) {
    if (!object->poison[i]) continue;
    if (!all) all = threads_new(p);
    for (uint32_t w = 0; w < PROVE_SETS; w++) all->bits[w] |= object->poison[i]->bits[w];
  }
  return all ? value_poisoned(p, value, all, object->origin) : value;
}

// --- Barriers ----------------------------------------------------------------------------------------

void memory_barrier(struct prover *p) {
  p->memory.previous = p->memory.epoch;
  p->memory.epoch = ++p->epochs;
  p->memory.barrier = p->current;
  p->memory.has_passed = true;
  p->memory.far = NULL;
}

void memory_syncwarp(struct prover *p, const uint32_t *masks) {
  struct memory *m = &p->memory;
  if (!m->order) m->order = arena_array(p->scratch, uint32_t, p->threads * 32);
  p->time++;
  p->syncwarp = p->current;
  for (uint32_t first = 0; first < p->threads; first++) {
    uint32_t mask = masks[first], joined[32] = {0}, warp = first / 32 * 32;
    if (!mask || __builtin_ctz(mask) != (int)(first % 32)) continue; // once a group, at its first lane
    for (uint32_t t = 0; t < 32; t++)
      for (uint32_t u = 0; mask >> t & 1 && u < 32; u++)
        if (m->order[(warp + t) * 32 + u] > joined[u]) joined[u] = m->order[(warp + t) * 32 + u];
    for (uint32_t u = 0; u < 32; u++)
      if (mask >> u & 1) joined[u] = p->time;
    for (uint32_t t = 0; t < 32; t++)
      if (mask >> t & 1) memcpy(&m->order[(warp + t) * 32], joined, sizeof joined);
  }
}

// --- Branches ----------------------------------------------------------------------------------------

struct memory memory_copy(struct prover *p, const struct memory *m) {
  struct memory copy = *m;
  copy.words = arena_array(p->scratch, struct word *, p->object_count + 1);
  for (uint32_t i = 0; i < p->object_count; i++) {
    if (!m->words[i]) continue;
    copy.words[i] = arena_array(p->scratch, struct word, p->objects[i].size);
    memcpy(copy.words[i], m->words[i], sizeof(struct word) * (size_t)p->objects[i].size);
    p->work += (uint64_t)p->objects[i].size / 4;
  }
  if (m->order) {
    copy.order = arena_array(p->scratch, uint32_t, p->threads * 32);
    memcpy(copy.order, m->order, sizeof *copy.order * p->threads * 32);
  }
  return copy;
}

static bool is_same_access(const struct far_access *a, const struct far_access *b) {
  return a == b || (a->index == b->index && a->node == b->node && a->time == b->time && a->is_write == b->is_write && a->object == b->object &&
                    memcmp(&a->who, &b->who, sizeof a->who) == 0);
}
// Whether the list has the access, or a copy of it, in an epoch.
static bool is_listed(const struct far_access *list, uint32_t epoch, const struct far_access *access) {
  while (list && (list->epoch != epoch || !is_same_access(list, access))) list = list->next;
  return list != NULL;
}

static void merge_word(struct word *into, uint32_t into_epoch, struct word other, uint32_t other_epoch,
                       uint32_t epoch) {
  uint8_t level = into->level == other.level ? into->level : into->level || other.level ? PERHAPS : NEVER;
  if (into->epoch != into_epoch) forget(into, epoch);
  if (other.epoch != other_epoch) forget(&other, epoch);
  into->epoch = epoch;
  into->level = level;
  if (other.writer != NOBODY) {
    into->writer = into->writer == NOBODY || into->writer == other.writer ? other.writer : MANY;
    into->writer_node = other.writer_node;
    if (other.write_time > into->write_time) into->write_time = other.write_time;
  }
  if (other.reader_warp != NOBODY) {
    into->reader_warp =
        into->reader_warp == NOBODY || into->reader_warp == other.reader_warp ? other.reader_warp : MANY;
    into->reader_lanes |= other.reader_lanes;
    into->reader_node = other.reader_node;
    if (other.read_time > into->read_time) into->read_time = other.read_time;
  }
}

void memory_merge(struct prover *p, struct memory *into, const struct memory *other) {
  uint32_t epoch = ++p->epochs;
  bool is_one = into->epoch == other->epoch;
  into->has_passed &= other->has_passed;
  for (uint32_t i = 0; i < p->object_count; i++) {
    for (int64_t k = 0; into->words[i] && k < p->objects[i].size; k++)
      merge_word(&into->words[i][k], into->epoch, other->words[i][k], other->epoch, epoch);
    if (into->words[i]) p->work += (uint64_t)p->objects[i].size;
  }
  struct far_access *all = NULL;
  uint64_t listed = 0;
  for (int round = 0; round < 2; round++) {
    const struct memory *one = round ? other : into;
    for (const struct far_access *a = one->far; a; a = a->next) {
      p->work += 1 + (round ? listed : 0);
      if (a->epoch != one->epoch || (round && is_listed(into->far, into->epoch, a))) continue;
      listed += !round;
      struct far_access *copy = arena_new(p->scratch, struct far_access);
      *copy = *a;
      copy->epoch = epoch;
      copy->next = all;
      all = copy;
    }
  }
  into->far = all;
  into->copies = copies_merge(p, into->copies, other->copies);
  if (!other->order) into->order = NULL;
  for (uint32_t i = 0; into->order && i < p->threads * 32; i++)
    if (other->order[i] < into->order[i]) into->order[i] = other->order[i];
  into->epoch = epoch;
  if (!is_one || into->barrier != other->barrier) into->barrier = NULL;
  into->previous = 0;
}
