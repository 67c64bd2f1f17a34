// What is known of a value in every thread (struct av): bounds, symbols, which threads hold the same, and
// what a loop carries.
#include "passes/prove_engine.h"

#include <string.h>

// --- Bounds ------------------------------------------------------------------------------------------

void type_bounds(enum type type, int64_t *lo, int64_t *hi) {
  uint32_t bits = type_bits(type);
  *lo = INT64_MIN, *hi = INT64_MAX; // 64 bits, and what is no integer: nothing is said
  if (type == TYPE_BOOL)
    *lo = 0, *hi = 1;
  else if (!type_is_integer(type) || bits == 64)
    return;
  else if (type_is_signed(type))
    *lo = -(INT64_C(1) << (bits - 1)), *hi = (INT64_C(1) << (bits - 1)) - 1;
  else
    *lo = 0, *hi = (INT64_C(1) << bits) - 1;
}

bool bounds_fit(enum type type, int64_t lo, int64_t hi) {
  int64_t least, most;
  type_bounds(type, &least, &most);
  if (type == TYPE_U64) least = 0; // what is below may stand for what is above
  return lo >= least && hi <= most;
}

void value_known_bounds(const struct prover *p, const int64_t *known, int64_t *lo, int64_t *hi) {
  int64_t least = known[0], most = known[0];
  for (uint32_t t = 1; t < p->threads; t++) {
    least = known[t] < least ? known[t] : least;
    most = known[t] > most ? known[t] : most;
  }
  *lo = least, *hi = most;
}

void value_bounds(struct prover *p, const struct av *v, int64_t *lo, int64_t *hi) {
  if (v->lo > v->hi) {
    struct av *cached = (struct av *)v;
    value_known_bounds(p, v->known, &cached->lo, &cached->hi);
  }
  *lo = v->lo, *hi = v->hi;
}

// --- Making ------------------------------------------------------------------------------------------

struct threads *threads_new(struct prover *p) {
  return arena_new(p->scratch, struct threads);
}

struct av *value_new(struct prover *p, enum type type) {
  struct av *v = arena_new(p->scratch, struct av);
  v->type = type;
  return v;
}

const struct av *value_number(struct prover *p, enum type type, int64_t number) {
  struct av *v = value_new(p, type);
  v->number = v->lo = v->hi = number;
  return v;
}

const struct av *value_known(struct prover *p, enum type type, const int64_t *known) {
  struct av *v = value_new(p, type);
  v->known = known;
  v->lo = 1, v->hi = 0;
  return v;
}

const struct av *value_varying(struct prover *p, enum type type, int64_t lo, int64_t hi,
                               const int64_t *source) {
  struct av *v = value_new(p, type);
  v->is_varying = true;
  v->lo = lo, v->hi = hi;
  v->source = source;
  return v;
}

const struct av *value_affine(struct prover *p, enum type type, uint32_t base, int64_t number,
                              const int64_t *known, int64_t lo, int64_t hi) {
  struct av *v = value_new(p, type);
  v->base = base;
  v->number = known ? 0 : number;
  v->known = known;
  v->lo = lo, v->hi = hi;
  return v;
}

// Numbers for all threads where the array says the same for all.
const struct av *value_known_or_number(struct prover *p, enum type type, const int64_t *known) {
  for (uint32_t t = 1; t < p->threads; t++)
    if (known[t] != known[0]) return value_known(p, type, known);
  return value_number(p, type, known[0]);
}

const struct av *value_poisoned(struct prover *p, const struct av *v, const struct threads *poison,
                                const struct node *origin) {
  if (!poison && !v->poison) return v;
  struct av *copy = value_new(p, v->type);
  *copy = *v;
  copy->poison = poison;
  copy->origin = poison ? origin : NULL;
  return copy;
}

const struct av *value_bounded(struct prover *p, const struct av *v, int64_t lo, int64_t hi) {
  int64_t least, most;
  value_bounds(p, v, &least, &most);
  if (lo < least) lo = least;
  if (hi > most) hi = most;
  if ((lo == least && hi == most) || lo > hi || value_is_known(v))
    return v; // empty: the branch is never taken
  struct av *copy = value_new(p, v->type);
  *copy = *v;
  copy->lo = lo, copy->hi = hi;
  return copy;
}

bool value_is_same(const struct prover *p, const struct av *a, const struct av *b) {
  if (a == b) return true;
  if (a->is_varying || b->is_varying || a->base != b->base) return false;
  if (a->known && b->known)
    return a->known == b->known || memcmp(a->known, b->known, sizeof *a->known * p->threads) == 0;
  return !a->known && !b->known && a->number == b->number;
}

// --- Symbols -----------------------------------------------------------------------------------------

static uint64_t hash_of(const struct symbol *s) {
  uint64_t hash = (uint64_t)s->op * 31 + (uint64_t)s->type;
  for (int i = 0; i < 3; i++) hash = hash * UINT64_C(0x9e3779b97f4a7c15) + s->args[i];
  return (hash ^ (uint64_t)s->number) * UINT64_C(0x9e3779b97f4a7c15);
}

// Room for twice as many symbols, in as many buckets.
static void grow_symbols(struct prover *p) {
  enum { FIRST_BITS = 9 };
  p->bucket_bits = p->symbol_capacity ? p->bucket_bits + 1 : FIRST_BITS;
  uint32_t capacity = UINT32_C(1) << p->bucket_bits;
  struct symbol *more = arena_array(p->scratch, struct symbol, capacity);
  if (p->symbol_count) memcpy(more, p->symbols, sizeof *more * p->symbol_count);
  else p->symbol_count = 1; // 0 is none
  p->symbols = more;
  p->symbol_capacity = capacity;
  p->buckets = arena_array(p->scratch, uint32_t, capacity);
  for (uint32_t i = 1; i < p->symbol_count; i++) {
    uint32_t *bucket = &p->buckets[hash_of(&more[i]) >> (64 - p->bucket_bits)];
    more[i].next = *bucket;
    *bucket = i;
  }
}

uint32_t symbol_find(struct prover *p, const struct symbol *s) {
  if (p->symbol_count == p->symbol_capacity) grow_symbols(p);
  uint32_t *bucket = &p->buckets[hash_of(s) >> (64 - p->bucket_bits)];
  for (uint32_t i = *bucket; i; i = p->symbols[i].next) {
    const struct symbol *o = &p->symbols[i];
    if (o->op == s->op && o->type == s->type && o->number == s->number &&
        memcmp(o->args, s->args, sizeof o->args) == 0)
      return i;
  }
  uint32_t place = p->symbol_count++;
  p->symbols[place] = *s;
  p->symbols[place].next = *bucket;
  if (!s->multiple) p->symbols[place].multiple = 1;
  *bucket = place;
  return place;
}

int64_t value_multiple(const struct prover *p, uint32_t symbol) {
  return symbol ? p->symbols[symbol].multiple : 0;
}

const struct av *value_uniform(struct prover *p, enum type type, int64_t lo, int64_t hi) {
  if (lo == hi && (type == TYPE_BOOL || type_is_integer(type))) return value_number(p, type, lo);
  struct symbol s = {.op = OP_VAR, .type = type, .number = ++p->unique};
  return value_affine(p, type, symbol_find(p, &s), 0, NULL, lo, hi);
}

const struct av *value_block(struct prover *p, enum type type, uint32_t dimension, int64_t hi) {
  if (hi == 0) return value_number(p, type, 0);
  struct symbol s = {.op = OP_BLOCK, .type = type, .number = dimension};
  return value_affine(p, type, symbol_find(p, &s), 0, NULL, 0, hi);
}

const struct av *value_counter(struct prover *p, enum type type, int64_t multiple) {
  int64_t lo, hi;
  struct symbol s = {.op = OP_VAR, .type = type, .number = ++p->unique, .multiple = multiple};
  type_bounds(type, &lo, &hi);
  return value_affine(p, type, symbol_find(p, &s), 0, NULL, 0, hi);
}

uint32_t symbol_of_number(struct prover *p, enum type type, int64_t number) {
  struct symbol s = {.op = OP_CONST, .type = type, .number = number, .multiple = number > 0 ? number : 1};
  return symbol_find(p, &s);
}

// One symbol for a uniform value as a whole.
uint32_t symbol_of_value(struct prover *p, const struct av *v) {
  if (!v->base) return symbol_of_number(p, v->type, v->number);
  if (!v->number) return v->base;
  struct symbol s = {
      .op = OP_ADD, .type = v->type, .args = {v->base, symbol_of_number(p, v->type, v->number)}};
  return symbol_find(p, &s);
}

int64_t prove_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

uint32_t symbol_of_op(struct prover *p, enum op op, enum type type, uint32_t a, uint32_t b,
                      int64_t multiple) {
  bool commutes = op == OP_ADD || op == OP_MUL || op == OP_AND || op == OP_OR || op == OP_XOR ||
                  op == OP_MIN || op == OP_MAX || op == OP_EQ || op == OP_NE;
  if (commutes && b && a > b) {
    uint32_t swap = a;
    a = b;
    b = swap;
  }
  struct symbol s = {.op = op, .type = type, .args = {a, b}, .multiple = multiple};
  return symbol_find(p, &s);
}

// --- Sources -----------------------------------------------------------------------------------------

// Numbers such that two threads have the same one where they have the same in `a` and in `b`.
static const int64_t *join_sources(struct prover *p, const int64_t *a, const int64_t *b) {
  for (uint32_t i = 0; i < 4; i++)
    if (p->combined[i].a == a && p->combined[i].b == b) return p->combined[i].both;
  enum { SLOTS = 2 * PROVE_THREADS };
  uint16_t *table = arena_array(p->scratch, uint16_t, SLOTS);
  int64_t *both = arena_array(p->scratch, int64_t, p->threads);
  for (uint32_t t = 0; t < p->threads; t++) {
    uint64_t hash =
        ((uint64_t)a[t] * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)b[t]) * UINT64_C(0xff51afd7ed558ccd);
    uint32_t slot = (uint32_t)(hash >> 40) % SLOTS;
    while (table[slot] && (a[table[slot] - 1] != a[t] || b[table[slot] - 1] != b[t]))
      slot = (slot + 1) % SLOTS;
    if (!table[slot]) table[slot] = (uint16_t)(t + 1);
    both[t] = table[slot] - 1;
  }
  uint32_t place = p->combined_next++ % 4;
  p->combined[place].a = a, p->combined[place].b = b, p->combined[place].both = both;
  return both;
}

const int64_t *value_sources(struct prover *p, const struct av *const *args, uint32_t count,
                             bool *is_opaque) {
  const int64_t *source = NULL;
  *is_opaque = false;
  for (uint32_t i = 0; i < count; i++) {
    if (args[i]->is_varying && !args[i]->source) *is_opaque = true;
    const int64_t *one = args[i]->is_varying ? args[i]->source : args[i]->known;
    if (*is_opaque) return NULL;
    if (!one || one == source) continue;
    source = source ? join_sources(p, source, one) : one;
  }
  return source;
}

// --- Loops -------------------------------------------------------------------------------------------

// Whether two arrays differ by the same number everywhere.
static bool is_parallel(const struct prover *p, const int64_t *a, const int64_t *b) {
  if (a == b) return true; // numbers, both, too
  if (!a || !b) return false;
  for (uint32_t t = 1; t < p->threads; t++)
    if (a[t] - a[0] != b[t] - b[0]) return false;
  return true;
}

// A value that the loop at hand carries, named by widening it: its symbol is younger than the loop.
static bool is_carried(const struct prover *p, const struct av *v, uint32_t since) {
  return !v->is_varying && v->base >= since && p->symbols[v->base].op == OP_VAR;
}

const struct av *value_refresh(struct prover *p, const struct av *v, uint32_t since) {
  if (!is_carried(p, v, since)) return v;
  struct symbol s = {.op = OP_VAR, .type = v->type, .number = ++p->unique};
  struct av *copy = value_new(p, v->type);
  *copy = *v;
  copy->base = symbol_find(p, &s);
  return copy;
}

const struct av *value_widen(struct prover *p, const struct av *before, const struct av *after,
                             uint32_t since) {
  int64_t blo, bhi, alo, ahi;
  const struct threads *poison = before->poison;
  const struct node *origin = before->origin;
  value_bounds(p, before, &blo, &bhi);
  value_bounds(p, after, &alo, &ahi);
  bool fits_bounds = alo >= blo && ahi <= bhi, fits_poison = true;
  if (after->poison) {
    struct threads *both = threads_new(p);
    if (poison) *both = *poison;
    for (uint32_t i = 0; i < p->sets; i++) {
      fits_poison &= !(after->poison->bits[i] & ~both->bits[i]);
      both->bits[i] |= after->poison->bits[i];
    }
    poison = both;
    if (!origin) origin = after->origin;
  }
  bool is_affine = !before->is_varying && !after->is_varying && is_parallel(p, before->known, after->known);
  bool keeps_source =
      before->is_varying &&
      (!before->source || (after->is_varying ? after->source == before->source
                                             : !after->known || after->known == before->source));
  bool fits_form =
      value_is_same(p, before, after) || (is_affine && is_carried(p, before, since)) || keeps_source;
  if (before == after || (fits_bounds && fits_poison && fits_form && !before->floor && (!before->has_base || value_is_same(p, before, after)))) return before;
  if (!fits_bounds) { // to the end of the type, or to zero
    int64_t least, most;
    type_bounds(before->type, &least, &most);
    if (alo < blo) blo = alo >= 0 && blo >= 0 ? 0 : least;
    if (ahi > bhi) bhi = most;
  }
  const struct av *v;
  if (keeps_source) {
    v = value_varying(p, before->type, blo, bhi, before->source);
  } else if (value_is_same(p, before, after)) {
    v = value_affine(p, before->type, before->base, before->number, before->known, blo, bhi);
  } else if (is_affine) {
    struct symbol s = {.op = OP_VAR, .type = before->type, .number = ++p->unique};
    v = value_affine(p, before->type, symbol_find(p, &s), 0, before->known, blo, bhi);
  } else {
    const struct av *pair[2] = {before, after};
    bool is_opaque;
    v = value_varying(p, before->type, blo, bhi,
                      before->is_varying ? NULL : value_sources(p, pair, 2, &is_opaque));
  }
  return value_poisoned(p, v, poison, origin);
}
