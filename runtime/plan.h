// The launch plan: all that a launch must know about compiled kernels, without any IR.
//
// A plan stands in the PTX as a block of comment lines, each with the prefix `// red.plan `. plan_parse reads
// them, however damaged, with an error and never a crash; plan_evaluate turns tensors, scalars and device
// facts into launches:
//
//   // red.plan version 1
//   // red.plan kernel rowsum
//   // red.plan size n [dim:0:0]
//   // red.plan size m 11 [dim:0:1]
//   // red.plan tensor A f32 input dense [s0] [s1]
//   // red.plan tensor B f32 output dense [s0]
//   // red.plan require [s0 2147483647 le] "n is at most 2147483647"
//   // red.plan entry rowsum schedule ""
//   // red.plan launch rowsum grid [s0] [1] [1] block 11 1 1 shared [0]
//   // red.plan argument tensor 0
//   // red.plan argument tensor 1
//   // red.plan argument integer 8 [s0]
//
// A launch that needs memory of its own has, in front of its launches and behind its arguments,
//
//   // red.plan workspace [65536 s0 4 mul add]   bytes
//   // red.plan zeroed [65536]                   of them, from the start: zero before the first launch, and zero again
//                                                after every one
//   // red.plan launch ... programmatic          it waits by itself for the launch before, so that they may overlap
//   // red.plan argument workspace [65536]       an address: so many bytes behind the workspace's start
//
//   // red.plan end
//
// One `kernel` ... `end` a kernel. Between brackets stands an integer expression in postfix, over
//
//   17 -3         an integer
//   s0            a size: the place among the kernel's sizes
//   a0            an integer or bool scalar, by its place; a u64 above 2^63-1 counts as 2^63-1
//   dim:T:D stride:T:D address:T    a tensor's extent, stride in elements, address in bytes
//   sms arch shared                 multiprocessors, architecture (90 for sm_90), shared bytes a block may
//   have add sub mul div mod min max neg abs and or xor not shl shr eq ne lt le gt ge select sN uN after
//   `wrap:`             `wrap:s32`, `wrap:u8`: the low bits, extended
//
// in 64 bits that saturate where they overflow. div truncates and mod has the sign of its left operand; x / 0
// is -1 and x % 0 is x; shift counts are taken modulo 64; comparisons give 0 or 1; and, or, xor work on bits;
// not is x == 0.
#ifndef RED_RUNTIME_PLAN_H
#define RED_RUNTIME_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAN_VERSION = 1, PLAN_WORKSPACE_ALIGNMENT = 256 };
// What one kernel may have, so that an evaluation needs no allocation. Larger ones are refused when the plan
// is made.
enum {
  PLAN_MAX_SIZES = 128,
  PLAN_MAX_RANK = 64,
  PLAN_MAX_LAUNCHES = 8,
  PLAN_MAX_ARGUMENTS = 256,
  PLAN_MAX_DEPTH = 128
};

// Element and scalar types: X(NAME, spelling, bytes).
#define PLAN_TYPES(X)                                                                                        \
  X(BOOL, "bool", 1)                                                                                         \
  X(I8, "i8", 1)                                                                                             \
  X(I16, "i16", 2) X(I32, "i32", 4) X(I64, "i64", 8) X(U8, "u8", 1) X(U16, "u16", 2) X(U32, "u32", 4)        \
      X(U64, "u64", 8) X(F16, "f16", 2) X(BF16, "bf16", 2) X(F32, "f32", 4) X(F64, "f64", 8)                 \
          X(F8E4M3, "f8e4m3", 1) X(F8E5M2, "f8e5m2", 1) X(C64, "c64", 8) X(C128, "c128", 16)
enum plan_type {
#define X(name, spelling, bytes) PLAN_##name,
  PLAN_TYPES(X)
#undef X
      PLAN_TYPE_COUNT
};
const char *plan_type_name(enum plan_type type);
uint32_t plan_type_bytes(enum plan_type type);
bool plan_type_is_float(enum plan_type type); // F16 BF16 F32 F64
bool plan_type_find(const char *name, size_t length, enum plan_type *type);

// Operations: X(NAME, spelling, operands). The first eight have operands of their own, see struct plan_code.
#define PLAN_OPS(X)                                                                                          \
  X(CONST, "", 0)                                                                                            \
  X(SIZE, "s", 0)                                                                                            \
  X(SCALAR, "a", 0) X(DIM, "dim:", 0) X(STRIDE, "stride:", 0) X(ADDRESS, "address:", 0)                      \
      X(WRAP_SIGNED, "wrap:s", 1) X(WRAP_UNSIGNED, "wrap:u", 1) X(SMS, "sms", 0) X(ARCH, "arch", 0)          \
          X(SHARED, "shared", 0) X(ADD, "add", 2) X(SUB, "sub", 2) X(MUL, "mul", 2) X(DIV, "div", 2)         \
              X(MOD, "mod", 2) X(MIN, "min", 2) X(MAX, "max", 2) X(NEG, "neg", 1) X(ABS, "abs", 1)           \
                  X(AND, "and", 2) X(OR, "or", 2) X(XOR, "xor", 2) X(NOT, "not", 1) X(SHL, "shl", 2)         \
                      X(SHR, "shr", 2) X(EQ, "eq", 2) X(NE, "ne", 2) X(LT, "lt", 2) X(LE, "le", 2)           \
                          X(GT, "gt", 2) X(GE, "ge", 2) X(SELECT, "select", 3)
enum plan_op {
#define X(name, spelling, operands) PLAN_OP_##name,
  PLAN_OPS(X)
#undef X
      PLAN_OP_COUNT
};
const char *plan_op_spelling(enum plan_op op);
uint32_t plan_op_operands(enum plan_op op);

struct plan_code {
  enum plan_op op;
  uint32_t dimension; // DIM, STRIDE
  int64_t operand;    // CONST: the integer; SIZE, SCALAR, DIM, STRIDE, ADDRESS: which; WRAP: bits, 1..64
};
struct plan_expr {
  struct plan_code *codes; // postfix
  uint32_t count;          // 0: no expression
};

struct plan_size {
  const char *name;
  bool is_constant; // given at compile time
  int64_t constant;
  struct plan_expr inferred; // over DIM and STRIDE; none and not constant: the caller gives it (`n: size`)
};
struct plan_scalar {
  const char *name;
  enum plan_type type;
};
struct plan_tensor {
  const char *name;
  enum plan_type type;
  uint32_t rank;
  bool is_output, is_strided;
  struct plan_expr *dims;    // rank of them, over sizes
  struct plan_expr *strides; // rank of them in elements; NULL: row-major
};
struct plan_requirement {
  struct plan_expr condition;
  const char *message;
};

enum plan_argument_kind {
  PLAN_ARGUMENT_TENSOR,
  PLAN_ARGUMENT_SCALAR,
  PLAN_ARGUMENT_INTEGER,
  PLAN_ARGUMENT_WORKSPACE
};
struct plan_argument {
  enum plan_argument_kind kind;
  uint32_t index;        // TENSOR, SCALAR: which
  uint32_t bytes;        // INTEGER: 4 or 8; TENSOR, WORKSPACE: 8; SCALAR: those of its type
  struct plan_expr expr; // INTEGER; WORKSPACE: bytes behind the start
};
struct plan_launch {
  const char *function; // the PTX entry
  struct plan_expr grid[3];
  uint32_t block[3];
  struct plan_expr shared; // bytes of dynamic shared memory
  bool is_programmatic;    // it may begin before the launch in front of it has ended
  struct plan_argument *arguments;
  uint32_t argument_count;
};
struct plan_entry {
  const char *name;
  const char *schedule;  // "" for the compiler's own
  struct plan_expr when; // none: always
  struct plan_requirement *assumptions;
  struct plan_launch *launches;
  uint32_t assumption_count, launch_count;
  struct plan_expr workspace; // bytes; none: 0
  struct plan_expr zeroed;    // bytes at its start; none: 0
};
// A schedule of the compiler's own of this name has no code: it stands for those that it chooses when a launch has brought the sizes.
#define PLAN_EXACT "sizes_of_launch"
bool plan_is_exact(const struct plan_entry *entry);

struct plan_kernel {
  const char *name;
  struct plan_size *sizes;
  struct plan_scalar *scalars;
  struct plan_tensor *tensors;
  struct plan_requirement *requirements;
  struct plan_entry *entries; // in the order in which a launch tries them
  uint32_t size_count, scalar_count, tensor_count, requirement_count, entry_count;
};
struct plan_chunk;
struct plan {
  struct plan_kernel *kernels;
  uint32_t kernel_count;
  struct plan_chunk *chunks; // all memory of the plan
};

// --- Making and reading
// -------------------------------------------------------------------------------------------
void plan_init(struct plan *plan);
void plan_destroy(struct plan *plan);
// Zeroed memory that lives as long as the plan; NULL when there is none left.
void *plan_alloc(struct plan *plan, size_t bytes);
char *plan_strdup(struct plan *plan, const char *text, size_t length);
// Grows an array of `count` items by one zeroed item and returns it, or NULL. The array moves.
void *plan_grow(struct plan *plan, void *array, uint32_t *count, size_t item_bytes);
// NULL where `expr` is well-formed for this kernel (counts, indices, depth), else what is wrong with it.
const char *plan_expr_fault(const struct plan_kernel *kernel, const struct plan_expr *expr);

// The comment block, with every line's prefix; the caller frees it. NULL: out of memory.
char *plan_print(const struct plan *plan);
// Reads the comment block out of a PTX text into a plan of plan_init. False: `error` says what and in which
// line, and the plan is empty. A text without a plan is an error.
bool plan_parse(struct plan *plan, const char *text, size_t length, char *error, size_t error_bytes);
const struct plan_kernel *plan_find(const struct plan *plan, const char *kernel); // NULL: none of that name

// --- A launch
// -------------------------------------------------------------------------------------------------------
struct plan_tensor_value {
  enum plan_type type;
  uint32_t rank;
  const int64_t *dims;    // rank extents
  const int64_t *strides; // in elements, any sign; NULL: row-major
  uint64_t address;       // of element (0, ..., 0); 0 only where there is no element
};
union plan_number {
  int64_t integer; // bool and integers
  double number;   // floats
};
struct plan_facts {
  int64_t sms, arch, shared;
};
struct plan_input {
  const struct plan_tensor_value *tensors; // as many as the kernel has
  const union plan_number *scalars;
  const int64_t
      *sizes; // by size; only those that the caller gives are read. May be NULL where there are none
  struct plan_facts facts;
};

enum plan_status {
  PLAN_OK,
  PLAN_TYPE_MISMATCH, // a tensor of another element type
  PLAN_RANK,          // a tensor of another rank
  PLAN_SHAPE,         // extents that disagree, negative sizes
  PLAN_STRIDE,        // a stride that the kernel does not take
  PLAN_NULL,          // a null address where there are elements
  PLAN_MISALIGNED,    // an address that is no multiple of the element's bytes
  PLAN_ALIAS,         // two elements of an output at one address
  PLAN_OVERLAP,       // an output in the memory of another tensor
  PLAN_REQUIREMENT,   // a requirement of the kernel
  PLAN_LIMIT,         // no entry fits the device, or a number overflows
};
struct plan_launch_value {
  const struct plan_launch *launch;
  uint32_t grid[3];                       // all at least 1
  uint32_t shared;                        // bytes
  uint64_t arguments[PLAN_MAX_ARGUMENTS]; // their bytes, little-endian, in order
  uint64_t workspace;                     // the address that arguments are based on
};
struct plan_result {
  const struct plan_entry *entry;
  int64_t sizes[PLAN_MAX_SIZES];
  uint32_t launch_count; // those that are not empty
  // Bytes; where there are any, plan_place_workspace must follow. The first `zeroed` are zero before the first launch and after each.
  int64_t workspace, zeroed;
  char message[512];     // of a status that is not PLAN_OK
  char notes[512];       // why entries were passed over, one a line
  struct plan_launch_value launches[PLAN_MAX_LAUNCHES];
};
// Chooses an entry and computes its launches. Allocates nothing; any number of threads may evaluate one plan.
enum plan_status plan_evaluate(const struct plan_kernel *kernel, const struct plan_input *input,
                               struct plan_result *result);
// The same without the checks of types, shapes, strides and addresses: for another plan of a kernel whose plan was evaluated with this input. Notes are
// added to those of the result.
enum plan_status plan_evaluate_checked(const struct plan_kernel *kernel, const struct plan_input *input,
                                       struct plan_result *result);
// Tells the launches of a result where their workspace is: `workspace` bytes, aligned to PLAN_WORKSPACE_ALIGNMENT. Launches that may
// run at the same time need one each. May be called again, for another place.
void plan_place_workspace(struct plan_result *result, uint64_t address);
// The power of two, 1 to 4096, modulo which addresses must be the same for evaluations to choose the same entry, grids and numbers; tensors' shapes, strides
// and scalars being the same. 0: the plan looks at addresses in other ways.
uint32_t plan_address_step(const struct plan_kernel *kernel);
// One well-formed expression; `sizes` are final. Saturates.
int64_t plan_compute(const struct plan_expr *expr, const struct plan_kernel *kernel,
                     const struct plan_input *input, const int64_t *sizes);

#endif
