// The parts of the proof engine. prove_value.c, prove_known.c and prove_operation.c: what is known of a value in every
// thread; prove_evaluate.c: expressions; prove_collective.c: masks and shuffles; prove_memory.c: words of shared memory;
// prove_copy.c: asynchronous copies to them;
// prove_nodes.c: what statements are before they run; prove_run.c: statements.
//
// All threads run at once. A value is a uniform unknown (a symbol, numbered by its expression) plus a number
// known for each thread; or it varies in an unknown way, and then at most it is known which threads hold the
// same. A condition that is known splits the threads; one that is not leaves it open whether they come.
#ifndef RED_PASSES_PROVE_ENGINE_H
#define RED_PASSES_PROVE_ENGINE_H

#include "passes/prove.h"

enum { PROVE_THREADS = 1024, PROVE_SETS = PROVE_THREADS / 64, PROVE_WARPS = PROVE_THREADS / 32 };

// --- Sets of threads ---------------------------------------------------------------------------------

struct threads {
  uint64_t bits[PROVE_SETS];
};
static inline bool threads_has(const struct threads *s, uint32_t t) {
  return s->bits[t / 64] >> (t % 64) & 1;
}
static inline void threads_add(struct threads *s, uint32_t t) {
  s->bits[t / 64] |= UINT64_C(1) << (t % 64);
}
static inline uint32_t threads_warp(const struct threads *s, uint32_t warp) {
  return (uint32_t)(s->bits[warp / 2] >> (warp % 2 * 32));
}

// --- Values ------------------------------------------------------------------------------------------

struct node;

// Immutable. `type` is the expression's; numbers are extended as arith.h does. Of a float only symbols are
// kept.
struct av {
  enum type type;
  bool is_varying;       // nothing below but `source`; else wrap(symbol + number or known[t])
  uint32_t base;         // symbol; 0: none
  int64_t number;        // where known is NULL
  const int64_t *known;  // one a thread
  int64_t lo, hi;        // of the whole value, over all threads; lo > hi: not computed yet (known, no base)
  int64_t base_lo, base_hi; // has_base: of the symbol alone, where that is more than lo and hi say
  bool has_base;
  const int64_t *source; // is_varying: threads with equal entries hold equal values; NULL: nothing is known
  const int64_t *floor, *ceiling; // is_varying: bounds for each thread; NULL: lo and hi for all
  const struct threads *poison; // threads that hold what a shuffle should not have read; NULL: none
  const struct node *origin;    // that shuffle
};

struct symbol {
  enum op op;
  enum type type;
  uint32_t args[3];
  int64_t number;   // CONST: its value; BLOCK: dimension; VAR: a unique number
  int64_t multiple; // divides the value, at least 1
  uint32_t next;    // of its bucket
};

// The value of a variable now, and of an immutable one its expression.
struct slot {
  const struct av *value;
  struct ir_expr *definition;
};

// Bounds of an expression that hold in the branch at hand.
struct fact {
  const struct ir_expr *expr;
  int64_t lo, hi;
};

// A condition in force that is not known for each thread.
struct unknown {
  bool is_uniform;
  const int64_t *source; // else as in struct av
  uint32_t symbol;       // is_uniform: of the condition
  bool truth;
};

// --- Statements --------------------------------------------------------------------------------------

struct node {
  struct ir_stmt *stmt;
  struct list *block; // where it stands
  uint32_t place;
  struct node *parent;
  struct list body, otherwise; // struct node
  struct list sets;            // struct ir_var that a statement inside changes; IF and FOR
  uint32_t number;             // in prover->nodes
  uint32_t size;               // statements, itself too
  bool has_shared, has_collective, has_sync, has_syncwarp, has_local;
  bool only_float_sets;
  bool is_divergent; // some visit: its condition or trip count is not the same in all threads of the block
  bool is_required;  // BARRIER, SYNCWARP
  bool has_met_itself; // FOR: two successive iterations were followed
  bool is_reached;
  uint32_t faults; // bit a kind
  uint32_t *masks; // collective: a warp
  bool has_segments;
  const char *collective;
};

// --- Memory ------------------------------------------------------------------------------------------

enum { NOBODY = 0xffff, MANY = 0xfffe };
struct word {
  uint32_t epoch;                 // of what follows but `level`
  uint32_t write_time, read_time; // as struct memory's time; the latest
  uint32_t reader_lanes;          // where reader_warp is a warp
  uint16_t writer, reader_warp;
  uint16_t writer_node, reader_node;
  uint8_t level; // 0 nothing wrote it, 1 perhaps, 2 surely
};

// An access whose place is known up to a symbol or not at all.
struct far_access {
  struct far_access *next;
  uint32_t epoch, time, object, count; // count: elements
  bool is_write;
  const struct av *index;
  struct threads who;
  int64_t lo, hi;      // words
  int64_t least, most; // of what is known of the index, its symbol left out
  const struct node *node;
};

// An asynchronous copy that no wait has been seen for. Immutable, as the list is.
struct copy {
  struct copy *next;
  const struct far_access *access; // its threads are those that still have it under way
  uint32_t commits;                // surely seen since
  const struct unknown *unknowns;  // in force where it was made
  uint32_t unknown_count;
};

struct object {
  struct ir_mem *mem;
  int64_t size; // elements; -1: launch-time
  // Local memory: threads that keep in an element what a shuffle should not have read, one an element, and that shuffle; NULL: none does.
  const struct threads **poison;
  const struct node *origin;
};

struct memory {
  uint32_t epoch, previous;
  bool has_passed;        // a block barrier, since a loop last said false
  struct node *barrier;   // that ended `previous`; NULL: not one alone
  struct word **words;    // one an object; NULL: local or of launch-time size
  struct far_access *far; // latest first
  struct copy *copies;    // under way, latest first
  uint32_t *order; // [thread][lane]: accesses of that lane before this time are ordered before the thread's;
                   // NULL: no SYNCWARP
};

// --- The state ---------------------------------------------------------------------------------------

// An operation on known numbers and what it gave. As many are kept as the two copies of an unrolled tile, inside and at the edge, have in common.
enum { KNOWN_RESULTS = 2048 };
struct known_result {
  enum op op;
  enum type type, from;
  const int64_t *known[3];
  int64_t number[3];
  const struct av *value;
};

struct prover {
  struct arena *arena; // of results
  struct arena *scratch;
  const struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct proof *proof;
  uint32_t limit;
  bool is_stopped, is_never_exact;
  bool does_not_wrap; // what is evaluated is arithmetic of indices, which never overflows
  bool is_enumerated; // else threads are not told apart: only bounds are asked
  uint32_t threads, warps, sets;
  const int64_t *coordinate[3];
  struct slot *slots; // by var->mark - 1
  uint32_t slot_count;
  struct symbol *symbols;
  uint32_t symbol_count, symbol_capacity;
  uint32_t *buckets; // of symbols, by hash: as many as there is room for symbols
  uint32_t bucket_bits;
  int64_t unique;
  struct fact *facts;
  uint32_t fact_count, fact_capacity;
  struct unknown unknowns[256];
  uint32_t unknown_count;
  struct threads may; // threads that may be here
  struct list nodes;  // struct node, in order
  struct node *current;
  struct object *objects;
  uint32_t object_count;
  struct memory memory;
  enum { ORDER_BARRIERS, ORDER_OWN, ORDER_NONE } order; // what orders accesses, as find_meeting asks: barriers and their own thread, that alone, nothing
  uint32_t epochs, time;
  struct node *syncwarp; // the latest; NULL: none
  uint64_t work;                       // statements times threads
  struct known_result *known;          // KNOWN_RESULTS, by hash; NULL: none yet
  const struct av *opaque[TYPE_COUNT]; // data of which nothing is known
  bool has_poison;                     // some value was, at some time
  struct {
    const int64_t *a, *b, *both;
  } combined[4]; // the latest results of sources joined
  uint32_t combined_next;
};

// prove_value.c, for the arithmetic
struct av *value_new(struct prover *p, enum type type);
// symbol + number, or + known where that is not NULL, within bounds.
const struct av *value_affine(struct prover *p, enum type type, uint32_t base, int64_t number,
                              const int64_t *known, int64_t lo, int64_t hi);
const struct av *value_known_or_number(struct prover *p, enum type type,
                                       const int64_t *known); // a number where all are equal
bool value_is_same(const struct prover *p, const struct av *a, const struct av *b);
bool bounds_fit(enum type type, int64_t lo, int64_t hi);
// Bounds of the symbol of symbol + number; false where the sum may have wrapped.
bool value_base_bounds(struct prover *p, const struct av *v, int64_t *lo, int64_t *hi);
void value_known_bounds(const struct prover *p, const int64_t *known, int64_t *lo, int64_t *hi);
uint32_t symbol_find(struct prover *p, const struct symbol *s); // the one that is equal, or a new one
uint32_t symbol_of_value(struct prover *p, const struct av *v); // one for a uniform value as a whole
uint32_t symbol_of_number(struct prover *p, enum type type, int64_t number);
uint32_t symbol_of_op(struct prover *p, enum op op, enum type type, uint32_t a, uint32_t b, int64_t multiple);
int64_t prove_gcd(int64_t a, int64_t b);

// prove_known.c: an operation whose operands are known in every thread
const struct av *value_known_op(struct prover *p, enum op op, enum type type, const struct av *const *args,
                                uint32_t count);

// prove_operation.c
// What tells the bounds of a value in each thread.
struct reach {
  const int64_t *floor, *ceiling; // added to lo and hi; NULL: 0
  int64_t lo, hi;
  int64_t least, most; // of all
};
struct reach value_reach(struct prover *p, const struct av *v);
static inline int64_t reach_lo(const struct reach *r, uint32_t t) {
  int64_t lo = r->lo + (r->floor ? r->floor[t] : 0);
  return lo > r->least ? lo : r->least;
}
// Whether places from lo on come at or before the `count` ones from hi on.
static inline bool reach_meets(int64_t lo, int64_t hi, uint32_t count) {
  return lo <= hi || (uint64_t)lo - (uint64_t)hi < count;
}
static inline int64_t reach_hi(const struct reach *r, uint32_t t) {
  int64_t hi = r->hi + (r->ceiling ? r->ceiling[t] : 0);
  return hi < r->most ? hi : r->most;
}
const struct av *value_op(struct prover *p, enum op op, enum type type, const struct av *const *args,
                          uint32_t count);

// prove_value.c
const struct av *value_number(struct prover *p, enum type type, int64_t number);
const struct av *value_uniform(struct prover *p, enum type type, int64_t lo, int64_t hi); // a new symbol
const struct av *value_counter(struct prover *p, enum type type, int64_t multiple); // a new symbol, from 0 on
const struct av *value_block(struct prover *p, enum type type, uint32_t dimension, int64_t hi);
const struct av *value_varying(struct prover *p, enum type type, int64_t lo, int64_t hi,
                               const int64_t *source);
const struct av *value_known(struct prover *p, enum type type, const int64_t *known);
const struct av *value_poisoned(struct prover *p, const struct av *v, const struct threads *poison,
                                const struct node *origin);
const struct av *value_bounded(struct prover *p, const struct av *v, int64_t lo, int64_t hi); // intersected
void value_bounds(struct prover *p, const struct av *v, int64_t *lo, int64_t *hi);
// What a loop may carry that had `before` at its head and `after` at its end; `before` itself where that says
// it already. Symbols from `since` on were made in the loop.
const struct av *value_widen(struct prover *p, const struct av *before, const struct av *after,
                             uint32_t since);
// The same with a new symbol, for another iteration.
const struct av *value_refresh(struct prover *p, const struct av *v, uint32_t since);
int64_t value_multiple(const struct prover *p, uint32_t symbol);
void type_bounds(enum type type, int64_t *lo, int64_t *hi);
static inline bool value_is_uniform(const struct av *v) {
  return !v->is_varying && !v->known;
}
static inline bool value_is_known(const struct av *v) {
  return !v->is_varying && !v->base;
}
static inline int64_t value_at(const struct av *v, uint32_t t) {
  return v->known ? v->known[t] : v->number;
}
// Threads with equal entries hold equal values: of values together; NULL with *is_opaque, or NULL where all
// are the same.
const int64_t *value_sources(struct prover *p, const struct av *const *args, uint32_t count, bool *is_opaque);
struct threads *threads_new(struct prover *p);

// prove_nodes.c
void prove_new_nodes(struct prover *p, struct list *block, struct node *parent, struct list *out);
void prove_number_var(struct prover *p, struct ir_var *var);
// Whether a block has a shuffle or a barrier.
bool prove_is_collective(const struct list *block);
// After how many iterations a buffer that is chosen by the loop's counter comes again: a common multiple of
// the numbers that remainders of it are taken by; 1 where there are none.
int64_t loop_period(struct prover *p, const struct node *node);
// The loop inside this one, perhaps under conditions, that does all that an iteration does to shared memory and in
// collectives, where no iteration of either differs from another: two iterations of this loop meet as two of that one
// do. NULL: there is none.
const struct node *loop_met_inside(struct prover *p, const struct node *node);
// Whether iterations differ in what they do to shared memory and in their collectives.
bool loop_iterations_differ(struct prover *p, const struct node *node);

// prove_evaluate.c
const struct av *prove_eval(struct prover *p, struct ir_expr *e);
// What a load of so many neighbours gives, with the checks of the access.
const struct av *prove_loaded(struct prover *p, struct ir_mem *mem, enum type type,
                              const struct av *const *indices, uint32_t count, bool is_flat,
                              uint32_t elements);
// Adds the bounds that `condition` being `truth` gives; take them back by setting fact_count to what it was.
void prove_assume(struct prover *p, struct ir_expr *condition, bool truth);
// Whether an expression has its value whenever it is evaluated: no memory, no other lane, no variable that
// changes.
bool prove_is_constant_in_time(struct ir_expr *e);
bool prove_fault(struct prover *p, enum proof_kind kind, const struct node *other, const char *other_message,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
// Reports where a thread that is here holds poison.
void prove_clean(struct prover *p, const struct av *v, const char *what);
const char *prove_thread_name(struct prover *p, uint32_t t);

// prove_collective.c
const struct av *prove_shuffle(struct prover *p, struct ir_expr *e);
const struct av *prove_redux(struct prover *p, struct ir_expr *e);
void prove_syncwarp(struct prover *p, struct ir_expr *mask);
void prove_barrier(struct prover *p);

// prove_memory.c
void memory_begin(struct prover *p);
// Checks bounds of `count` elements from the index on, and for shared memory records and checks the access.
// Returns the flat index.
const struct av *memory_access(struct prover *p, struct ir_mem *mem, const struct av *const *indices,
                               uint32_t rank, bool is_flat, bool is_write, uint32_t count);
// What a thread keeps in local memory may be what a shuffle should not have read: a later load gives that. `index` is of the first of `count` elements.
void memory_keep(struct prover *p, struct ir_mem *mem, const struct av *index, uint32_t count, const struct av *value);
const struct av *memory_kept(struct prover *p, struct ir_mem *mem, const struct av *index, uint32_t count, const struct av *value);
void memory_barrier(struct prover *p);
// An access of one object by the threads that are here, as a list of them is kept.
struct far_access *memory_far(struct prover *p, uint32_t object, const struct av *index, bool is_write, uint32_t count);
// A thread of `b` that may meet one of `a` on a word, with no order between as p->order says; PROVE_THREADS: none.
uint32_t memory_meeting(struct prover *p, const struct far_access *a, const struct far_access *b);
// The words that an asynchronous copy reaches are written now, by its threads.
void memory_land(struct prover *p, const struct far_access *access);

// prove_copy.c
// An access of shared memory, beside the copies that are under way.
void copies_meet(struct prover *p, uint32_t object, const struct av *index, bool is_write, uint32_t count);
void prove_copy(struct prover *p, struct ir_stmt *stmt);
void prove_copy_commit(struct prover *p);
void prove_copy_wait(struct prover *p, uint32_t groups);
struct copy *copies_merge(struct prover *p, struct copy *a, struct copy *b);
void memory_syncwarp(struct prover *p, const uint32_t *masks);
struct memory memory_copy(struct prover *p, const struct memory *m);
void memory_merge(struct prover *p, struct memory *into, const struct memory *other);

#endif
