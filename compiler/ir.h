// The IR: kernels as stages, then as one thread's program. Typed, arena-allocated, a source range on every node; print.c
// writes it as text, read.c reads that back, verify.c checks it.
//
// A module holds kernels. A kernel declares sizes, scalars, tensors, reducers and requirements, and has one entry for each
// schedule. An entry begins as a list of stages with axes (level STAGES) and ends as one thread's program (level PROGRAM):
//
//   kernel rowsum {                                  // for i in n { B[i] = sum(j in 11) A[i, j]; }
//     entry rowsum {
//       stage B: reduce sum_f32, axes i parallel, j reduction, operand load(A, i, j), result total
//       stage B: store, axes i parallel, B[i] = total
//   ...
//     entry rowsum {                                 // one warp of 11 threads a block
//       let i: index = block.x
//       let j: index = thread.x
//       allreduce total = sum_f32(load(A, i, j)) over thread.x
//       if eq(thread.x, 0) { store B[i] = total }
//
// Expressions are pure trees: loads read memory that no statement between their evaluation and their use writes (a read of a
// shared object, and every shuffle, stands alone as the value of a LET). Names of variables and memory objects are unique in
// an entry and its kernel's declarations; `label` is what the source called it.
#ifndef RED_COMPILER_IR_H
#define RED_COMPILER_IR_H

#include "compiler/diag.h"

enum type {
#define T(name, spelling, class, bits) TYPE_##name,
#include "compiler/types.def"
#undef T
  TYPE_COUNT
};
enum type_class { CLASS_BOOL, CLASS_SIGNED, CLASS_UNSIGNED, CLASS_FLOAT, CLASS_STORAGE, CLASS_MOVED, CLASS_INDEX };
const char *type_name(enum type type);
enum type_class type_class_of(enum type type);
uint32_t type_bits(enum type type);
uint32_t type_bytes(enum type type);
// Whether `name` spells a type that a program may write (all but index).
bool type_parse(const char *name, enum type *type);
bool type_is_integer(enum type type); // SIGNED, UNSIGNED, INDEX
bool type_is_float(enum type type);   // FLOAT
bool type_is_signed(enum type type);  // SIGNED, INDEX

enum op {
#define O(name, spelling, operands, rule, properties) OP_##name,
#include "compiler/ops.def"
#undef O
  OP_COUNT
};
enum op_rule {
  RULE_NONE, RULE_SAME, RULE_COMPARE, RULE_SELECT, RULE_CONVERT, RULE_MEMORY, RULE_SPECIAL, RULE_SHUFFLE, RULE_REDUX, RULE_PREDICATE,
  RULE_FACT, RULE_AWAIT
};
struct op_info {
  const char *spelling;
  int operands;
  enum op_rule rule;
  const char *properties;
};
extern const struct op_info op_table[OP_COUNT];
// Whether lanes of a warp meet in it: a shuffle or a reduction of a warp.
static inline bool op_is_collective(enum op op) {
  return op_table[op].rule == RULE_SHUFFLE || op_table[op].rule == RULE_REDUX;
}

enum ir_var_kind {
  VAR_SIZE,   // i64, uniform: a size of the kernel
  VAR_SCALAR, // a scalar parameter of the kernel
  VAR_AXIS,   // index: a leaf axis of stages, or a loop variable of a program
  VAR_LET,    // immutable
  VAR_MUTABLE, // declared by VAR, changed by SET
  VAR_VALUE,  // the result of a reduce stage, read by later stages
};
struct ir_var {
  const char *name, *label;
  enum ir_var_kind kind;
  enum type type;
  struct range range;
  struct ir_expr *constant; // VAR_SIZE given by -D: its value; else NULL
  struct ir_expr *inferred; // VAR_SIZE: how a launch finds it, over DIM (see ir_dim); NULL: a scalar `n: size`
  bool was_index;           // LET of type index until pass index gave it a width: its arithmetic does not overflow
  struct ir_expr *subst;    // scratch of ir_substitute
  uint32_t mark;            // scratch of a pass
};

// A launch's workspace begins with counters of 32 bits that are zero between launches.
enum { WORKSPACE_COUNTERS = 16384, WORKSPACE_HEADER_BYTES = 4 * WORKSPACE_COUNTERS };

enum ir_space { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL };
// A memory object: a tensor of the caller, a shared or local array of the program, or a part of the launch's workspace (global, of an entry).
struct ir_mem {
  const char *name, *label;
  enum ir_space space;
  enum type type;
  struct list dims;    // struct ir_expr, i64, over sizes; one an index
  struct list strides; // struct ir_expr, i64, in elements; as many as dims
  bool is_output;      // tensors only
  bool is_read;        // tensors only: some entry reads it
  bool is_strided;     // strides come at launch
  uint32_t alignment;  // bytes that the base is known to have; at least the element's
  uint32_t parameter;  // tensors: place among the kernel's tensors
  struct ir_expr *workspace; // parts of the workspace: where it begins there, bytes, i64 over sizes; else NULL
  bool is_polled; // of them: u64 words that other blocks wait for, 0 until one is written; each is read and written as one, and zero between launches
  // Shared ones whose places are permuted by pass `index`: of the number of a unit (the elements of the last dimension where that is
  // `unit` long and unit > 1, else one element), bits base..base+bits-1 ^= bits base+shift..base+shift+bits-1. bits 0: none.
  uint32_t unit, swizzle_bits, swizzle_base, swizzle_shift;
  bool is_dynamic; // shared: its bytes are asked for at launch, since a kernel declares 48 KiB at most; one an entry
  struct range range;
};

struct ir_expr {
  enum op op;
  enum type type;
  struct range range;
  uint32_t count;        // operands
  struct ir_expr **args; // operands
  union {
    int64_t integer; // CONST of bool, integer and index type (u64 as its bits)
    double number;   // CONST of f32 and f64
    struct ir_var *var;   // VAR
    struct ir_mem *mem;   // LOAD, LOAD_FLAT, DIM, STRIDE, ADDRESS
  };
  uint32_t dimension; // THREAD, BLOCK: 0 x, 1 y, 2 z; DIM, STRIDE: which
};

enum ir_stmt_kind {
  IR_LET,       // var = value, immutable
  IR_VAR,       // declares mutable var with a first value
  IR_SET,       // var = value
  IR_STORE,     // mem[indices] = value; is_flat: one flat offset in elements
  IR_FOR,       // for var in lo..hi (step 1) body
  IR_IF,        // if value body else otherwise
  IR_ALLREDUCE, // results = reducer over threads of inputs; every thread of the block takes part
  IR_BARRIER,   // block barrier
  IR_SYNCWARP,  // warp barrier, value: the mask
  IR_LOAD_WIDE, // results = neighbours of mem from indices on, one access aligned to its size: 2, 4, 8 or 16 bytes
  IR_STORE_WIDE, // neighbours of mem from indices on = inputs, likewise
  IR_ATOMIC,     // mem[indices] = it, changed by `value`; results: none, or what it was before
  IR_FENCE,      // what this thread did, and what it saw, is before what it does next, for all threads of the device
  IR_GRID_WAIT,  // the launch before has ended, all that it wrote is seen; at once where launches do not overlap
  IR_GRID_READY, // the launch behind may begin once every block has come here
  IR_COPY,        // `count` neighbours of mem, shared, from indices on, become those of a tensor from `value`, a load, on; some time before a COPY_WAIT
  IR_COPY_COMMIT, // the thread's copies since the last one are a group
  IR_COPY_WAIT,   // all of the thread's groups but the last `count` have landed; 0: all of its copies
};
enum { IR_STMT_KINDS = IR_COPY_WAIT + 1 };
// unroll of a loop that is a vector: its copies' accesses are joined by pass `widen`.
enum { UNROLL_VECTOR = 1u << 30 };

enum allreduce_form { FORM_AUTO, FORM_SHUFFLE, FORM_TREE };
// INC: 0 where it was at least `value`, else one more.
enum ir_atomic { ATOMIC_ADD, ATOMIC_MIN, ATOMIC_MAX, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_INC, ATOMIC_COUNT };
// How caches are to keep what an access of a tensor touches. STREAMING: read once; NO_ALLOCATE: not in the first level.
enum cache_hint { CACHE_NORMAL, CACHE_EVICT_FIRST, CACHE_EVICT_LAST, CACHE_NO_ALLOCATE, CACHE_STREAMING, CACHE_COUNT };
enum { IR_MAX_COMBINE_FLIGHT = 64 };
// How the values of blocks become one.
enum combine_form { COMBINE_AUTO, COMBINE_LAST_BLOCK, COMBINE_FLAG, COMBINE_SECOND_KERNEL, COMBINE_ATOMIC, COMBINE_COUNT };

struct ir_stmt {
  enum ir_stmt_kind kind;
  struct range range;
  struct ir_var *var;
  struct ir_expr *value; // LET VAR SET STORE ATOMIC; IF: condition; SYNCWARP: mask; COPY: a load of the first element
  struct ir_mem *mem;    // STORE, LOAD_WIDE, STORE_WIDE, ATOMIC, COPY
  struct list indices;   // STORE, LOAD_WIDE, STORE_WIDE, ATOMIC, COPY: struct ir_expr
  bool is_flat;          // the same: one flat offset in elements
  struct ir_expr *lo, *hi; // FOR
  uint32_t unroll;         // FOR: 0 as the backend likes, 1 never, UINT32_MAX whole, else the factor
  struct list body, otherwise; // FOR, IF: struct ir_stmt
  struct ir_reducer *reducer;  // ALLREDUCE
  struct list results;         // ALLREDUCE, LOAD_WIDE, ATOMIC: struct ir_var, LET
  enum ir_atomic atomic;       // ATOMIC
  uint32_t count;              // COPY, COPY_WAIT
  struct list inputs;          // ALLREDUCE (components of one or several tuples), STORE_WIDE: struct ir_expr
  uint32_t thread_axes;        // ALLREDUCE: reduced ones, bit 0 x, 1 y, 2 z
  bool result_in_all;          // ALLREDUCE: else only threads whose reduced coordinates are all 0 use it
  enum allreduce_form form;    // ALLREDUCE
};

// A pure function of values: lets, then results.
struct ir_function {
  struct list params;  // struct ir_var, LET
  struct list lets;    // struct ir_stmt, LET
  struct list results; // struct ir_expr
};

// An associative operator over tuples. Without `update`, operands are combined as values.
struct ir_reducer {
  const char *name; // unique in the module, such as sum_f32
  bool is_ordered;
  bool is_commutative_bitwise; // combine(a, b) and combine(b, a) have the same bits
  struct list identity;        // struct ir_expr, constants: one a component
  struct ir_function combine;  // params: a's components, then b's
  struct ir_function update;   // params: the state's components, then operands; no params: none
  struct range range;
};

enum ir_bind { BIND_SERIAL, BIND_BLOCK_X, BIND_BLOCK_Y, BIND_BLOCK_Z, BIND_THREAD_X, BIND_THREAD_Y, BIND_THREAD_Z, BIND_VECTOR };

// A leaf axis: runs 0..extent. Several stages may share one.
struct ir_axis {
  struct ir_var *var;     // VAR_AXIS; its label is the name that directives use
  struct ir_expr *extent; // index, over sizes (and enclosing axes' variables)
  enum ir_bind bind;
  uint32_t unroll;        // as ir_stmt.unroll
  struct range range;     // declared here
  struct range bound_at;  // bound here
  bool is_guarded;        // an outer piece: a guard on the whole keeps it below its extent
};
struct ir_stage_axis {
  struct ir_axis *axis;
  bool is_reduction; // in this stage
};

// ARRIVE: every block counts itself in mem; the stages behind it run in the last one of the blocks that differ in block_axes only. mem NULL: no
// counting, they run in the one whose place on these axes is the last, and wait for what they read.
enum ir_stage_kind { STAGE_REDUCE, STAGE_STORE, STAGE_ARRIVE };
struct ir_stage {
  enum ir_stage_kind kind;
  const char *label; // the name that directives use: of the let or the output
  struct range range;
  struct list axes;    // struct ir_stage_axis: the nest, outermost first
  struct list derived; // struct ir_stmt LET of index: original axes from their pieces, in order
  struct list guards;  // struct ir_expr bool: where one is false the body is not evaluated
  struct list lets;    // struct ir_stmt LET: evaluated where the guards hold
  // STAGE_REDUCE
  struct ir_reducer *reducer;
  struct list operands; // struct ir_expr
  struct list init;     // struct ir_expr, one a component, or empty; counted once
  struct list results;  // struct ir_var VALUE: one a component
  enum allreduce_form form; // what `allreduce` asked for
  enum combine_form combine; // what `combine` asked for
  uint32_t combine_flight;   // loads in flight a thread of what combines the pieces, as `unroll B.combine by F` asked for; 0: as many as the compiler likes
  // STAGE_STORE: to a tensor, or to a local array that later stages of the same thread read, or to the workspace. STAGE_ARRIVE: counters
  struct ir_mem *mem;
  struct list indices; // struct ir_expr index
  struct ir_expr *value;
  bool is_atomic;        // STAGE_STORE: mem[indices] is changed by `value`
  enum ir_atomic atomic;
  bool is_async;         // STAGE_STORE: the load that is its value goes to shared memory by asynchronous copies
  uint32_t depth;        // STAGE_STORE: above 1, so many iterations of a loop have a place in the copy, by the remainder that is its first index: all but one are filled ahead
  uint32_t block_axes; // STAGE_ARRIVE: bit 0 x, 1 y, 2 z
};

enum ir_directive_kind { DIRECTIVE_SPLIT_BY, DIRECTIVE_SPLIT_INTO, DIRECTIVE_FUSE, DIRECTIVE_REORDER, DIRECTIVE_BIND,
                         DIRECTIVE_UNROLL, DIRECTIVE_VECTORIZE, DIRECTIVE_ALLREDUCE, DIRECTIVE_JOIN,
                         DIRECTIVE_REGISTERS, // names[0]: a tensor; axes[0]: where it is kept; numbers[0], if any: of how many steps of the outermost loop
                         DIRECTIVE_COMBINE,
                         DIRECTIVE_CACHE,     // names[0]: a tensor
                         DIRECTIVE_BLOCKS,    // factor: how many
                         // names: a tensor and the stage that fills its copy; axes[0]: inside which axis, axes[1], if there:
                         // along which a unit lies; numbers: enum ir_shared_number
                         DIRECTIVE_SHARED,
                         DIRECTIVE_COUNT };
// ASYNC: 1 where copies are asynchronous. DEPTH: so many iterations of a loop have a copy at once.
enum ir_shared_number { SHARED_UNIT, SHARED_PAD, SHARED_BITS, SHARED_BASE, SHARED_SHIFT, SHARED_ASYNC, SHARED_PHASE, SHARED_DEPTH, SHARED_NUMBERS };
// A directive that pass `schedule` has yet to apply; factors are resolved to index expressions over sizes.
struct ir_directive {
  enum ir_directive_kind kind;
  struct range range;
  struct list stages;     // const char *: stage of each axis, "" where none is named
  struct list axes;       // const char *
  struct list axis_places; // struct range *
  struct list names;      // const char *: new axes; SPLIT_BY: then the tensor that pieces lie along, if any
  struct ir_expr *factor; // SPLIT, UNROLL (NULL: whole); extent(x) stands as a VAR named x of kind VAR_AXIS
  enum ir_bind bind;
  enum allreduce_form form;
  enum combine_form combine;
  enum cache_hint hint;
  struct list numbers;    // uintptr_t
};

struct ir_hint {
  struct ir_mem *mem; // a tensor
  enum cache_hint hint;
};

// A condition of a launch with the message that its failure gives.
struct ir_requirement {
  struct ir_expr *condition; // bool, over sizes and DIM
  const char *message;
  struct range range;
};

enum ir_level { LEVEL_STAGES, LEVEL_PROGRAM };
struct ir_entry {
  const char *name;     // of the PTX entry
  const char *schedule; // "" for the compiler's own or a schedule without a name
  bool is_automatic;    // no user schedule: pass `schedule` writes the directives
  bool has_copies;      // behind pass `schedule`: its directives copied or kept tensors
  struct range range;
  struct ir_expr *when;    // bool over sizes; NULL: always
  struct list assumptions; // struct ir_requirement: where one is false the next entry is tried
  bool is_general;         // the 64-bit twin of the entry before, or of the launches before
  uint32_t launch;         // above 0: a launch behind that of the entry before, which it belongs to
  enum ir_level level;
  struct list directives; // struct ir_directive
  struct list axes;       // struct ir_axis; none behind pass `nest`
  struct list bound;      // struct ir_axis: what `axes` were when pass `nest` ended, for messages alone
  struct list stages;     // struct ir_stage
  struct list hints;      // struct ir_hint, one a tensor at most
  uint32_t blocks;        // at least so many blocks of it run on a multiprocessor at once; 0: 1
  uint32_t block[3];      // threads; 0 until pass `nest`
  struct ir_expr *grid[3]; // extents of the logical block axes, i64 over sizes; NULL until `nest`
  struct list memory;      // struct ir_mem: shared and local, and parts of the workspace in the order in which they lie there
  struct list body;        // struct ir_stmt
  enum type index_type;    // INDEX until pass `index`, then I32 or I64
  const struct proof *proof; // passes/prove.h: what pass `barriers` found of the body as it is; NULL: nothing yet
};

struct ir_kernel {
  const char *name, *label; // label: as in the source
  struct range range;
  struct list sizes;   // struct ir_var
  struct list scalars; // struct ir_var
  struct list tensors; // struct ir_mem
  struct list requirements; // struct ir_requirement
  struct list entries;      // struct ir_entry, in the order in which a launch tries them
  struct map names;         // in use in the entry at hand: ir_collect_names, ir_fresh_name
};

struct ir_module {
  struct arena *arena;
  struct diag *diag;
  struct list kernels;  // struct ir_kernel
  struct list reducers; // struct ir_reducer
};

// --- Building -----------------------------------------------------------------------------------------------------
// Builders fold constants with the language's arithmetic and drop neutral operands, so that what they return may be another
// op than asked for. Operands are shared, never changed: treat expressions as immutable.
struct ir_expr *ir_int(struct arena *arena, enum type type, int64_t value);
struct ir_expr *ir_float(struct arena *arena, enum type type, double value);
struct ir_expr *ir_ref(struct arena *arena, struct ir_var *var);
struct ir_expr *ir_unary(struct arena *arena, enum op op, struct ir_expr *a);
struct ir_expr *ir_binary(struct arena *arena, enum op op, struct ir_expr *a, struct ir_expr *b);
struct ir_expr *ir_select(struct arena *arena, struct ir_expr *condition, struct ir_expr *a, struct ir_expr *b);
struct ir_expr *ir_cast(struct arena *arena, enum type type, struct ir_expr *a);
// Any op, by operands; folds what the others fold.
struct ir_expr *ir_make(struct arena *arena, enum op op, enum type type, struct ir_expr **args, uint32_t count);
struct ir_expr *ir_load(struct arena *arena, struct ir_mem *mem, const struct list *indices);
struct ir_expr *ir_special(struct arena *arena, enum op op, uint32_t dimension);
// Whether an AWAIT waits for a word of a polled object.
bool ir_is_await(const struct ir_expr *e);
// An expression without folding, fields set by the caller (the reader of IR text).
struct ir_expr *ir_raw(struct arena *arena, enum op op, enum type type, struct ir_expr **args, uint32_t count);

struct ir_stmt *ir_stmt(struct arena *arena, enum ir_stmt_kind kind, struct range range);
struct ir_stmt *ir_let(struct arena *arena, struct ir_var *var, struct ir_expr *value, struct range range);

// Whether entry `i` of a kernel is the one of this name, or its twin: a general entry stands behind the one that it completes.
bool ir_is_of_pair(const struct ir_kernel *kernel, uint32_t i, const char *name);

// Makes kernel->names hold what the kernel and this entry declare: names are unique in an entry, and a pass that makes new ones
// starts from here, so that it makes the same whether its input was just lowered or read from text.
void ir_collect_names(struct ir_kernel *kernel, const struct ir_entry *entry);
// A name unused in the kernel, made from `base` ("total", "total_2"); it is in use from now on.
const char *ir_fresh_name(struct ir_kernel *kernel, const char *base);
struct ir_var *ir_new_var(struct ir_kernel *kernel, enum ir_var_kind kind, enum type type, const char *label);

bool ir_is_const(const struct ir_expr *e);              // CONST of integer, index or bool type
bool ir_const_is(const struct ir_expr *e, int64_t value);
bool ir_equal(const struct ir_expr *a, const struct ir_expr *b); // same tree
bool ir_mentions(const struct ir_expr *e, const struct ir_var *var);
// The initial values of a reduction, and the values of those of its lets that they are made of: struct ir_expr.
struct list ir_initial_values(struct arena *arena, const struct ir_stage *stage);

// Replaces each variable that has `subst` set by it (not repeatedly); shares what does not change. Rebuilds with folding.
struct ir_expr *ir_substitute(struct arena *arena, struct ir_expr *e);
// The same for each expression of a list; the list gets memory of its own, since stages share lists.
void ir_substitute_list(struct arena *arena, struct list *exprs);
// Calls `visit` on every expression of a statement list, outer nodes first.
void ir_visit_expr(struct ir_expr *e, void (*visit)(struct ir_expr *e, void *state), void *state);
void ir_visit_block(const struct list *block, void (*visit)(struct ir_expr *e, void *state), void *state);
// Rewrites every expression in a statement list, in place, bottom up; `rewrite` gets a node whose operands are rewritten.
typedef struct ir_expr *ir_rewriter(struct arena *arena, struct ir_expr *e, void *state);
struct ir_expr *ir_rewrite_expr(struct arena *arena, struct ir_expr *e, ir_rewriter *rewrite, void *state);
void ir_rewrite_block(struct arena *arena, struct list *block, ir_rewriter *rewrite, void *state);
// Applies a function to arguments: appends its lets (renamed) to `out` as LET statements and gives the results.
void ir_inline(struct ir_kernel *kernel, const struct ir_function *function, struct ir_expr **arguments, struct list *out,
               struct range range, struct ir_expr **results);

// A copy of a statement list whose variables are new (memory objects are shared). Variables with `subst` set are replaced along.
struct list ir_clone_block(struct ir_kernel *kernel, const struct list *block);

// What the entry's schedule says of the accesses of an object.
enum cache_hint ir_hint_of(const struct ir_entry *entry, const struct ir_mem *mem);

// A fact of a tensor as the launch sees it (DIM, STRIDE, ADDRESS), i64; only in expressions of the plan (sizes,
// requirements, `when`, assumptions, grid).
struct ir_expr *ir_fact(struct arena *arena, enum op op, struct ir_mem *mem, uint32_t dimension);

// --- Text ---------------------------------------------------------------------------------------------------------
void ir_print(const struct ir_module *module, struct text *out);
void ir_print_expr(const struct ir_expr *e, struct text *out);
// A statement in a message: its kind and what it defines or writes, "let 'sum'". Lives in the arena.
const char *ir_stmt_title(const struct ir_stmt *stmt, struct arena *arena);
// Reads what ir_print wrote, into an empty module. Errors go to module->diag.
bool ir_read(struct ir_module *module, uint32_t file);
// Checks every rule; reports to module->diag (code ERROR_IR_VERIFY when from_user, else an internal error that names `pass`).
bool ir_verify(const struct ir_module *module, const char *pass, bool from_user);

#endif
