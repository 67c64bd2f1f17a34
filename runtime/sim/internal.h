// What the files of the simulator share: the decoded program, the state of warps and blocks, and the checks.
//
// Registers are arrays over the 32 lanes of a warp, so that one instruction is one loop over lanes. An
// operand is an offset in bytes; its two low bits choose the array it counts from: the frame of the running
// function, the module's constants, or the warp's special registers. In front of each array's first lane
// stands one word of poison bits, a bit a lane.
//
//   width   bytes of a lane    offset + 0        poison
//   pred    one bit of a word  uint32_t          offset - 4
//   32      4 (8- and 16-bit registers too, zero-extended)
//   64      8
//   128     16
#ifndef RED_SIM_INTERNAL_H
#define RED_SIM_INTERNAL_H

#include "runtime/sim/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SIM_LANES 32u
#define SIM_FULL 0xffffffffu
#define SIM_NONE 0xffffffffu

enum sim_type {
#define SIM_TYPE(type, name, bits, kind) SIM_##type,
#include "runtime/sim/type.def"
#undef SIM_TYPE
  SIM_TYPES,
  SIM_NO_TYPE = SIM_TYPES,
};

enum sim_type_kind { SIM_KIND_B, SIM_KIND_U, SIM_KIND_S, SIM_KIND_F, SIM_KIND_P };

unsigned sim_type_bits(enum sim_type type);
enum sim_type_kind sim_type_kind(enum sim_type type);
const char *sim_type_name(enum sim_type type);
// SIM_NO_TYPE when `name` is none.
enum sim_type sim_type_find(const char *name);

enum sim_space {
  SIM_SPACE_GENERIC,
  SIM_SPACE_GLOBAL,
  SIM_SPACE_SHARED,
  SIM_SPACE_LOCAL,
  SIM_SPACE_CONST,
  SIM_SPACE_PARAM, // a kernel's parameters
};

// Generic addresses. Below 2^40 lie the windows of the other spaces, 4 GiB each.
#define SIM_SHARED_BASE UINT64_C(0x100000000)
#define SIM_LOCAL_BASE UINT64_C(0x200000000)
#define SIM_PARAM_BASE UINT64_C(0x300000000)
#define SIM_CODE_BASE UINT64_C(0x400000000)
#define SIM_WINDOW UINT64_C(0x100000000)
#define SIM_SLOT_BITS 40
#define SIM_SLOT_START (UINT64_C(1) << 39)
#define SIM_SLOT_LIMIT (UINT64_C(1) << 39)

// ---- The decoded program
// -----------------------------------------------------------------------------------

struct sim_warp;
struct sim_op;

// Executes one instruction for the lanes in `mask`.
typedef void (*sim_handler)(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);

// How the interpreter's loop treats an instruction.
enum sim_op_kind {
  SIM_OP_ALU,    // run, then spread poison from a, b, c, f to d and e
  SIM_OP_RUN,    // run; the handler sees to poison
  SIM_OP_BRANCH, // to target
  SIM_OP_BRANCH_INDEX,
  SIM_OP_CALL,
  SIM_OP_RETURN,
  SIM_OP_EXIT,
  SIM_OP_COLLECTIVE, // waits for the lanes of its mask, then runs
  SIM_OP_BARRIER,    // a block barrier
  SIM_OP_YIELD,      // gives up the rest of the slice
  SIM_OP_TRAP,
};

// Operations of which one operand can decide the result alone, so that the other's poison does not reach it. A test of c | f against zero is
// decided by either where it is not zero.
enum { SIM_ABSORBS_NOTHING, SIM_ABSORBS_ZERO, SIM_ABSORBS_ONES, SIM_ABSORBS_EITHER };

// Forms of a block barrier, in op->sub.
enum { SIM_BAR_SYNC, SIM_BAR_ARRIVE, SIM_BAR_POPC, SIM_BAR_AND, SIM_BAR_OR };

enum sim_scope { SIM_SCOPE_WEAK, SIM_SCOPE_CTA, SIM_SCOPE_GPU };

enum sim_atomic {
  SIM_ATOM_ADD,
  SIM_ATOM_AND,
  SIM_ATOM_OR,
  SIM_ATOM_XOR,
  SIM_ATOM_MIN,
  SIM_ATOM_MAX,
  SIM_ATOM_INC,
  SIM_ATOM_DEC,
  SIM_ATOM_EXCH,
  SIM_ATOM_CAS,
  SIM_ATOM_OPERATIONS,
};

enum {
  SIM_ACQUIRE = 1,
  SIM_RELEASE = 2,
};

enum sim_rounding { SIM_RN, SIM_RZ, SIM_RM, SIM_RP, SIM_RNA };

#define SIM_NO_GUARD 0

struct sim_op {
  sim_handler run;
  int32_t d, e;       // results; the first slot of a list where vector > 1
  int32_t a, b, c, f; // sources; the zero constant where unused
  int32_t guard;      // predicate, or SIM_NO_GUARD
  bool guard_is_negated;
  uint8_t kind;          // enum sim_op_kind
  uint8_t space;         // enum sim_space
  uint8_t type;          // enum sim_type
  uint8_t from;          // second type, of conversions
  uint8_t bytes;         // of one element of an access
  uint8_t vector;        // elements of an access
  uint8_t width;         // register width of the data of an access, in bits
  uint8_t address_width; // of the address register
  uint8_t rounding;      // enum sim_rounding
  uint8_t scope;         // enum sim_scope: how strong an access is
  uint8_t order;         // SIM_ACQUIRE, SIM_RELEASE
  uint8_t sub;           // which variant, as its handler defines
  uint8_t operation;     // enum sim_atomic
  uint8_t absorbs;       // SIM_ABSORBS_...
  bool has_result;       // of an atomic
  bool c_is_negated;     // source c is a predicate to be negated
  bool is_ftz, is_saturating, is_nan, is_abs;
  bool is_approximate;
  bool is_aligned;  // .aligned barrier
  bool is_volatile; // strong, but no order among the lanes of a warp
  bool is_leader;   // first instruction after a label
  uint32_t symbol;  // variable whose address is added to an access's, or SIM_NONE
  bool is_framed;   // the frame's offset in local memory is added to the address
  uint32_t target;  // instruction, function, or list in module->lists
  uint32_t join;    // where the lanes of a diverged branch meet again
  uint64_t immediate;
  int line;        // in the PTX text
  int loc;         // index into module->locs, or -1
  uint16_t opcode; // index into sim_opcodes
};

// A row of the instruction table.
struct sim_decoder;
struct sim_opcode {
  const char *name;
  void (*decode)(struct sim_decoder *decoder);
  enum sim_class class_;
};
extern const struct sim_opcode sim_opcodes[];
extern const size_t sim_opcode_count;

struct sim_loc {
  struct sim_source source;
  struct sim_source inlined_at;
};

// A variable of the module or, in shared memory, of a function. `initial` holds `initial_bytes`, the rest is
// zero; `fixups` are places that hold addresses.
struct sim_fixup {
  uint64_t offset;
  uint32_t variable;
  uint64_t addend;
};

struct sim_variable {
  char *name;
  enum sim_space space; // global, const or shared
  bool is_dynamic;      // an open array of shared memory
  uint64_t bytes;
  uint64_t alignment;
  unsigned char *initial;
  uint64_t initial_bytes;
  struct sim_fixup *fixups;
  size_t fixup_count;
};

// A parameter or result of a function, at an offset of its local frame.
struct sim_formal {
  uint32_t offset;
  uint32_t bytes;
  int32_t reg; // register slot where it is one, else -1
  uint8_t width;
};

struct sim_function {
  char *name;
  bool is_entry;
  bool has_body;
  int line;
  uint32_t start; // first instruction
  uint32_t end;
  uint32_t frame_bytes; // of the register file
  uint32_t local_bytes; // of each lane's local memory
  int32_t *registers;   // slots in the frame
  size_t register_count;
  struct sim_formal *parameters;
  size_t parameter_count;
  struct sim_formal *results;
  size_t result_count;
  struct sim_entry entry;
  struct sim_parameter *entry_parameters;
};

// The special registers that are the same for a whole run of a warp.
enum sim_special {
#define SIM_SPECIAL(special, name) SIM_SPECIAL_##special,
#include "runtime/sim/special.def"
#undef SIM_SPECIAL
  SIM_SPECIALS
};

// Header bytes in front of a register's lanes, the last word of which is poison.
#define SIM_HEADER 16
#define SIM_SPECIAL_BYTES (SIM_HEADER + 4 * SIM_LANES)
// Bytes at the start of a called function's frame: return instruction, frame and local offset of each lane.
#define SIM_LINKAGE (3 * SIM_LANES * 4)

struct sim_module {
  char *name;
  int target;
  struct sim_op *ops;
  size_t op_count;
  int32_t *lists; // operand lists: vector elements, call arguments, branch targets
  size_t list_count;
  unsigned char *constants;
  size_t constant_bytes;
  struct sim_loc *locs;
  size_t loc_count;
  char *strings; // file names
  struct sim_variable *variables;
  size_t variable_count;
  struct sim_function *functions;
  size_t function_count;
  size_t *entries; // indices of functions
  size_t entry_count;
  uint64_t special_mask; // which special registers it reads
};

// ---- Memory
// ------------------------------------------------------------------------------------------------

struct sim_cell;

// Access history of 4 KiB, valid for one launch: segments as long as all accesses are of 2^granule bytes a
// lane, lane after lane from a segment's start; then cells of 2^granule bytes, made finer as accesses need.
struct sim_page {
  atomic_uint lock;
  uint32_t generation;
  uint32_t granule;
  bool is_touched; // owns memory, and its shadow knows
  bool is_segmented;
  struct sim_segment *segments;
  uint32_t segment_room;
  struct sim_cell *cells;
  uint32_t cell_room;
  struct sim_reader *readers;
  uint32_t reader_count;
  uint32_t reader_room;
  uint32_t reader_free;
};

#define SIM_PAGE_BITS 12

struct sim_shadow {
  struct sim_page *pages;
  uint64_t page_count;
  uint32_t page_bytes;  // 4096, or all there is in multiples of 512 where that is less
  pthread_mutex_t lock; // of what follows
  uint64_t *touched;    // pages that own memory
  uint64_t touched_count;
  uint64_t touched_room;
};

struct sim_allocation {
  uint64_t base;
  uint64_t bytes;
  char *name;
  unsigned char *host;
  unsigned char *written; // one byte a byte, NULL when all is initialised
  bool is_mapped;         // host memory belongs to the caller
  bool is_live;
  bool is_constant;
  struct sim_shadow shadow;
};

struct sim_memory_module {
  const struct sim_module *module;
  uint64_t *addresses; // of its variables
};

struct sim_sync;

struct sim_memory {
  struct sim_allocation **slots; // by the slot number of the address
  uint32_t slot_count;
  uint32_t slot_room;
  struct sim_memory_module *modules;
  size_t module_count;
  uint32_t generation; // of the current launch
};

// The allocation whose slot holds `address`, or NULL. It may be freed, and the address may lie outside it.
static inline struct sim_allocation *sim_slot(const struct sim_memory *memory, uint64_t address) {
  uint64_t slot = address >> SIM_SLOT_BITS;
  return slot < memory->slot_count ? memory->slots[slot] : NULL;
}

// The shared memory that an entry and the functions it calls use: offsets of the variables (others keep
// theirs), where dynamic memory starts, in *static_bytes. `offsets` may be NULL. False when memory is short.
bool sim_shared_layout(const struct sim_module *module, const struct sim_function *entry, uint64_t *offsets,
                       uint64_t *static_bytes);
// Fills what follows from the decoded functions: entries, shared bytes.
bool sim_module_measure(struct sim_module *module);
// The handler of an instruction's row in one of the ALU tables, or NULL.
sim_handler sim_alu_find(const char *name, enum sim_type type);

struct sim_alu {
  const char *name;
  enum sim_type type;
  sim_handler run;
};
extern const struct sim_alu sim_alu_int[];
extern const struct sim_alu sim_alu_float[];
extern const struct sim_alu sim_alu_half[];

// Addresses of the module's variables in this memory, created on first use; NULL when memory is short.
const uint64_t *sim_memory_link(struct sim_memory *memory, const struct sim_module *module);
// Lazily backed zero pages; NULL when there is no room.
void *sim_pages_map(uint64_t bytes);
void sim_pages_unmap(void *memory, uint64_t bytes);
void sim_shadow_free(struct sim_shadow *shadow);

// ---- A run
// -------------------------------------------------------------------------------------------------

struct sim_rng {
  uint64_t state;
};

static inline uint64_t sim_mix(uint64_t x) {
  x ^= x >> 30;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 27;
  x *= UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static inline uint64_t sim_random(struct sim_rng *rng) {
  rng->state += UINT64_C(0x9e3779b97f4a7c15);
  return sim_mix(rng->state);
}

enum sim_state {
  SIM_READY,
  SIM_PARKED,          // reached the join of a branch before the other lanes
  SIM_WAIT_COLLECTIVE, // at a warp instruction
  SIM_WAIT_ALIGNED,    // at an .aligned barrier, for the rest of the warp
  SIM_WAIT_BARRIER,    // at a block barrier
};

#define SIM_JOINS 8

// Lanes of a warp that run together.
struct sim_split {
  uint32_t mask;
  uint32_t pc;
  uint32_t frame; // of the register file
  uint32_t local; // of local memory
  uint8_t state;  // enum sim_state
  uint8_t barrier;
  uint8_t join_count;
  uint32_t joins[SIM_JOINS];
};

struct sim_clock;

struct sim_copy; // an asynchronous copy under way

// A called function's registers in the register file, and the lanes that have them on their stack. Lanes in
// different functions need different places, because a register's lanes lie as its width says.
struct sim_frame {
  uint32_t base;
  uint32_t bytes;
  uint32_t function;
  uint32_t parent; // the caller's base
  uint32_t mask;
};

struct sim_warp {
  unsigned char *base[4]; // frame, constants, special registers
  struct sim_block *block;
  struct sim_worker *worker;
  const struct sim_module *module;
  uint64_t checks;
  uint32_t index;  // in the block
  uint32_t exists; // lanes that the block has
  uint32_t live;   // and that have not exited
  struct sim_split splits[SIM_LANES];
  uint32_t split_count;
  uint32_t running; // index of the split that runs
  bool is_spinning; // at the end of its last turn
  uint64_t clock;   // instructions issued
  struct sim_rng rng;
  unsigned char *file; // registers
  size_t file_bytes;
  struct sim_frame *frames; // of called functions, by base
  size_t frame_count;
  size_t frame_room;
  unsigned char *special;
  uint32_t frame_local;                    // offset in local memory of the running split's frame
  unsigned char *local[SIM_LANES];         // local memory
  unsigned char *local_written[SIM_LANES]; // and of each byte, SIM_LOCAL_*
  uint32_t stored_poison;                  // lanes whose store, being carried out, has a value that is poison
  uint32_t loaded_poison;                  // lanes whose load found such a value in local memory
  uint32_t local_bytes;
  uint32_t masks[SIM_LANES];  // of the warp instruction that a lane waits at
  uint32_t absent_op[SIM_LANES]; // the last shuffle that gave a lane a value of none, + 1
  bool has_diverged;          // since all lanes last met; if not, groups is not kept
  uint32_t groups[SIM_LANES]; // lanes that have not diverged from a lane since they last met
  // Happens-before.
  uint32_t first_id;                     // of the block's warp 0, over the grid, from 1
  uint32_t epoch;                        // counts synchronisations
  uint32_t known;                        // epoch up to which all lanes know all lanes
  bool has_pairs;                        // lanes know of each other differently:
  uint32_t (*pairs)[SIM_LANES];          // [a][b]: up to which a knows b; NULL when that never was so
  uint32_t rows[SIM_LANES];              // up to which this warp knows warp v of the block
  struct sim_clock *released[SIM_LANES]; // what a lane's last fence covers
  uint32_t released_epoch[SIM_LANES];    // and up to which of its own accesses
  bool has_released;
  struct sim_copy *copies; // asynchronous
  size_t copy_count;
  size_t copy_room;
  uint32_t copy_group[SIM_LANES]; // groups committed
};

#define SIM_BARRIERS 16

// A named barrier of a block.
struct sim_barrier {
  uint32_t arrived;  // threads
  uint32_t expected; // 0: none arrived
  bool is_whole;     // all threads of the block
  int line;          // instruction of the first arrival
  uint32_t pc;
  uint32_t ones; // of a reduction: threads with a true predicate
  uint32_t voters;
  uint32_t rows[SIM_LANES]; // join of what the arrived know
  struct sim_clock *released;
};

struct sim_block {
  struct sim_launch_state *launch;
  struct sim_worker *worker;
  uint64_t linear;
  uint32_t index[3];
  struct sim_warp *warps;
  uint32_t warp_count;
  struct sim_rng rng;
  unsigned char *shared;
  unsigned char *shared_written;
  uint32_t shared_bytes;
  struct sim_shadow shadow;
  uint32_t generation; // of the shadow
  struct sim_barrier barriers[SIM_BARRIERS];
  bool is_stopped; // by a trap or a deadlock
  uint32_t next_warp;
  struct sim_item *items; // what its threads have read that others had released
  size_t item_count;
  size_t item_room;
  struct sim_block *next; // in a worker's list
};

// Counts of one worker.
struct sim_counters {
  uint64_t *threads; // by instruction
  uint64_t *warps;
  struct sim_stats stats;
};

struct sim_worker {
  struct sim_launch_state *launch;
  pthread_t thread;
  bool has_thread;
  struct sim_counters counters;
  struct sim_block *ready; // resident blocks, oldest first
  struct sim_block **ready_end;
  struct sim_block *spare; // to be used again
  uint64_t resident;       // blocks in `ready`
  uint64_t strong;         // strong reads, of which spinning is made
};

struct sim_launch_state {
  const struct sim_module *module;
  const struct sim_function *function;
  struct sim_memory *memory;
  const struct sim_launch *launch;
  struct sim_options options;
  uint64_t checks;
  uint64_t *symbols; // value of each of the module's variables
  unsigned char *parameters;
  size_t parameter_bytes;
  unsigned char *frame_image; // initial registers of the entry
  uint64_t blocks;
  uint32_t threads; // of a block
  uint32_t warps;   // of a block
  uint32_t shared_bytes;
  uint32_t reserved_shared; // of them, at the end, for libraries that ask by %reserved_smem_offset_*
  uint64_t order_factor;    // block i in order of start is (i * factor + offset) mod blocks
  uint64_t order_offset;
  atomic_uint_fast64_t next_block;
  atomic_uint_fast64_t steps;
  atomic_uint_fast32_t resident;
  uint32_t resident_limit;
  atomic_bool stop;
  atomic_bool out_of_memory;
  atomic_uint_fast64_t incomplete; // blocks that did not come to their end
  pthread_mutex_t lock;            // of what follows
  struct sim_report *report;
  size_t finding_room;
  struct sim_sync *sync; // release history of addresses
};

// ---- Operands
// ----------------------------------------------------------------------------------------------

// Lanes of a register, whatever they were written as.
#if defined __GNUC__
#define SIM_ALIAS __attribute__((may_alias))
#else
#define SIM_ALIAS
#endif
typedef uint32_t SIM_ALIAS sim_u32;
typedef uint64_t SIM_ALIAS sim_u64;
typedef float SIM_ALIAS sim_f32;
typedef double SIM_ALIAS sim_f64;

static inline unsigned char *sim_operand(const struct sim_warp *warp, int32_t offset) {
  return warp->base[offset & 3] + (offset & ~3);
}

static inline sim_u32 *sim_r32(const struct sim_warp *warp, int32_t offset) {
  return (sim_u32 *)(void *)sim_operand(warp, offset);
}

static inline sim_u64 *sim_r64(const struct sim_warp *warp, int32_t offset) {
  return (sim_u64 *)(void *)sim_operand(warp, offset);
}

static inline sim_f32 *sim_f32s(const struct sim_warp *warp, int32_t offset) {
  return (sim_f32 *)(void *)sim_operand(warp, offset);
}

static inline sim_f64 *sim_f64s(const struct sim_warp *warp, int32_t offset) {
  return (sim_f64 *)(void *)sim_operand(warp, offset);
}

static inline uint32_t *sim_pred(const struct sim_warp *warp, int32_t offset) {
  return (uint32_t *)(void *)sim_operand(warp, offset);
}

static inline uint32_t *sim_poison(const struct sim_warp *warp, int32_t offset) {
  return (uint32_t *)(void *)(sim_operand(warp, offset) - 4);
}

// A result may be one of the operands, lane by lane, which does not keep the loop from being vector code.
#if defined __GNUC__ && !defined __clang__
#define SIM_VECTOR _Pragma("GCC ivdep")
#else
#define SIM_VECTOR
#endif

// Runs `body` for each lane l of mask; the loop over a full warp has a constant count, for vector code.
#define SIM_EACH(mask, l, ...)                                                                               \
  do {                                                                                                       \
    if ((mask) == SIM_FULL) {                                                                                \
      SIM_VECTOR                                                                                             \
      for (unsigned l = 0; l < SIM_LANES; l++) {                                                             \
        __VA_ARGS__                                                                                          \
      }                                                                                                      \
    } else {                                                                                                 \
      for (uint32_t rest_ = (mask); rest_; rest_ &= rest_ - 1) {                                             \
        unsigned l = (unsigned)__builtin_ctz(rest_);                                                         \
        __VA_ARGS__                                                                                          \
      }                                                                                                      \
    }                                                                                                        \
  } while (0)

// Runs `body` for each lane of a mask that is seldom full.
#define SIM_EACH_BIT(mask, l)                                                                                \
  for (uint32_t rest_##l = (mask), l; rest_##l && (l = (uint32_t)__builtin_ctz(rest_##l), 1);                \
       rest_##l &= rest_##l - 1)

static inline unsigned sim_popcount(uint32_t mask) {
  return (unsigned)__builtin_popcount(mask);
}

// ---- Findings
// ----------------------------------------------------------------------------------------------

// Where a finding is: every field that does not apply stays zero.
struct sim_where {
  const struct sim_warp *warp;
  const struct sim_op *op;
  const struct sim_op *other;
  uint32_t lane;
  bool has_address;
  uint64_t address;
  uint32_t bytes;
};

// Records a finding unless its check is off. Thread-safe.
#if defined __GNUC__
__attribute__((format(printf, 4, 5)))
#endif
void sim_find(struct sim_launch_state *launch, enum sim_kind kind, const struct sim_where *where, const char *format, ...);
void sim_report_sort(struct sim_report *report);

static inline bool sim_checks(const struct sim_warp *warp, enum sim_kind kind) {
  return (warp->checks & SIM_CHECK(kind)) != 0;
}

// Reports lanes of `lanes` that hold poison; `what` says where it went ("a stored value").
void sim_find_poison(struct sim_warp *warp, const struct sim_op *op, uint32_t lanes, const char *what);

// ---- The parts of the interpreter
// --------------------------------------------------------------------------

// What an access does.
enum sim_access { SIM_READ = 1, SIM_WRITE = 2, SIM_READ_WRITE = 3 };

// access.c: addresses to host memory, with all checks and counts. Returns the lanes that may go on; fills
// host[l]. Generic addresses are resolved lane by lane.
uint32_t sim_access(struct sim_warp *warp, const struct sim_op *op, enum sim_space space, uint32_t mask,
                    uint64_t *address, uint32_t bytes, enum sim_access access, unsigned char **host);
// Addresses of an op's operand a plus its immediate; reports poisoned ones and returns the lanes that are
// sound.
uint32_t sim_addresses(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, uint64_t *address);

// traffic.c: what an access costs.
void sim_count_global(struct sim_stats *stats, uint32_t mask, const uint64_t *address, uint32_t bytes,
                      enum sim_access access);
void sim_count_shared(struct sim_stats *stats, uint32_t mask, const uint64_t *address, uint32_t bytes,
                      enum sim_access access);

// shadow.c: race check of one access; `written` as in sim_access. Offsets are within the allocation or the
// block's shared memory.
void sim_shadow_access(struct sim_warp *warp, const struct sim_op *op, struct sim_shadow *shadow,
                       uint32_t generation, bool is_shared, uint32_t mask, const uint64_t *offset,
                       uint64_t address_base, uint32_t bytes, enum sim_access access);
bool sim_shadow_create(struct sim_shadow *shadow, uint64_t bytes);

// clock.c: happens-before. Accesses are dated by their warp's epoch, which every synchronisation of the warp
// ends.
#define SIM_EPOCH_LIMIT ((1u << 25) - 1)
// Whether accesses at `epoch` of lanes `lanes` of warp `id` (over the grid, from 1) precede what `lane` of
// `warp` does now.
bool sim_ordered(const struct sim_warp *warp, uint32_t lane, uint32_t id, uint32_t lanes, uint32_t epoch);
void sim_clock_start(struct sim_warp *warp);
void sim_clock_end(struct sim_block *block);
void sim_clock_warp_sync(struct sim_warp *warp, uint32_t mask);
void sim_clock_arrive(struct sim_warp *warp, struct sim_barrier *barrier);
void sim_clock_leave(struct sim_warp *warp, const struct sim_barrier *barrier);
void sim_clock_close(struct sim_block *block, struct sim_barrier *barrier);
void sim_clock_fence(struct sim_warp *warp, uint32_t mask, enum sim_scope scope);
// Before a strong write, and after a strong read, of a generic address.
void sim_clock_release(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address);
void sim_clock_acquire(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address);

// sync.c: what strong writes to an address have published.
struct sim_sync *sim_sync_create(void);
void sim_sync_destroy(struct sim_sync *sync);

// collective.c: warp instructions, which wait for the lanes that their masks name.
// Lanes `mask`, all of `split`, have come to `op`; true when they ran it and may go on.
bool sim_collective_arrive(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op,
                           uint32_t mask);
// Runs what lanes that have exited leave complete.
void sim_collective_recheck(struct sim_warp *warp);
// Reports one instruction that will never be complete and runs it nevertheless; false when none waits.
bool sim_collective_force(struct sim_warp *warp);

// barrier.c: block barriers.
// The lanes of `split` have come to a barrier; true when they need not wait.
bool sim_barrier_arrive(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op);
void sim_barrier_recheck(struct sim_warp *warp);
// Reports one barrier that will never be complete and opens it; false when none waits.
bool sim_barrier_force(struct sim_block *block);

// call.c: both return false when the split is gone or must stop.
bool sim_call(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op);
bool sim_return(struct sim_warp *warp, struct sim_split *split);
// Bytes of local memory: never written, written, written with what depends on a lane that took no part in a shuffle.
enum { SIM_LOCAL_UNWRITTEN, SIM_LOCAL_WRITTEN, SIM_LOCAL_POISON = 3 };
// Room for local memory up to `bytes` a lane; false when memory is short.
bool sim_local_reserve(struct sim_warp *warp, uint32_t bytes);

// warp.c: runs a warp for at most *budget steps, less where all its lanes spin; false when no lane is ready.
bool sim_warp_run(struct sim_warp *warp, uint64_t *budget);
// Takes lanes out of a split into a new ready one at the same place; the lanes have diverged.
struct sim_split *sim_split_cut(struct sim_warp *warp, struct sim_split *split, uint32_t mask);
void sim_split_remove(struct sim_warp *warp, struct sim_split *split);
// Joins ready splits that stand at the same place.
void sim_splits_merge(struct sim_warp *warp);
// The lanes have met: they are one group for activemask.
void sim_lanes_meet(struct sim_warp *warp, uint32_t mask);
// Lanes of a split exit, which may end it and let others go on.
void sim_lanes_exit(struct sim_warp *warp, struct sim_split *split, uint32_t mask);
// What a lane is doing, for messages: "has exited", "waits at line 12".
void sim_lane_story(const struct sim_warp *warp, uint32_t lane, char *text, size_t size);

// block.c
struct sim_block *sim_block_create(struct sim_worker *worker);
// Makes a block ready to run; false when memory is short.
bool sim_block_start(struct sim_block *block, uint64_t linear);
// Runs a block for at most *budget steps, less where it only spins; true when it has ended or was stopped.
bool sim_block_run(struct sim_block *block, uint64_t *budget);
void sim_block_destroy(struct sim_block *block);

// async.c
void sim_copies_free(struct sim_warp *warp);

#endif
