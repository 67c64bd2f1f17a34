// PTX from optimised LLVM IR, an instruction at a time: what the files of the selector share.
//
//   nvptx_select.c          modules, functions, blocks, phis, places in the source
//   nvptx_select_phi.c      which values share a register
//   nvptx_select_value.c    values and their registers, lines of PTX
//   nvptx_select_op.c       arithmetic, comparisons, conversions
//   nvptx_select_divide.c   division
//   nvptx_select_call.c     intrinsics and inline assembly
//   nvptx_select_memory.c   addresses, loads, stores
//
// LLVM's own selector builds graphs, combines, schedules and allocates what ptxas combines, schedules and allocates again, and costs half of a compilation. This one knows
// the instructions and types that red's programs consist of; a module with anything else in it is left to LLVM's.
#ifndef RED_CODEGEN_NVPTX_SELECT_H
#define RED_CODEGEN_NVPTX_SELECT_H

#include "codegen/nvptx.h"

// Registers by their size: floats lie in the same ones as integers. Integers of 8 bits lie in 16, of which the upper half is anything.
enum select_register { REGISTER_PREDICATE, REGISTER_16, REGISTER_32, REGISTER_64, REGISTER_COUNT };

enum select_kind { SELECT_NOTHING, SELECT_REGISTER, SELECT_CONSTANT, SELECT_SYMBOL };

// A value of one lane. A pointer may be a register or a symbol and a distance in bytes; an integer of 64 bits the extension of a register of 32.
struct select_operand {
  uint8_t kind;     // enum select_kind
  uint8_t home;     // enum select_register
  uint8_t extended; // 0, 's' or 'u'
  bool is_zeroed;   // of 8 bits: the upper half is 0
  bool is_signed;   // of 8 bits: the upper half is the sign's
  uint32_t number;  // of the register
  uint64_t bits;    // of a constant
  int64_t distance;
  const char *symbol;
};

// What is known of an LLVM value: its lanes, and the one lane without distance and extension where a block needed it.
struct select_value {
  LLVMValueRef key;
  struct select_operand one, plain, *lanes;
  uint32_t count, plain_block;
};

// A type in registers.
struct select_type {
  enum select_register home;
  uint32_t bits, lanes; // of a lane; 0 bits: none that the selector knows
  bool is_float;
};

struct select_division {
  LLVMValueRef a, b;
  bool is_signed;
  uint32_t block;
  struct select_operand quotient;
};

// A sum of two registers that the block in work has.
struct select_sum {
  uint32_t block, a, b, result;
  uint8_t home;
};

// The register that several values share.
struct select_share {
  struct select_operand home;
};

struct select_phi {
  LLVMValueRef phi;
  uint32_t lanes;
  struct select_operand *in, *out; // what the blocks before write, and what it is read as
};

// A branch to a block that is worked on before its own, by their ranks.
struct select_back {
  uint32_t from, to;
};

struct select_block {
  LLVMBasicBlockRef block;
  size_t from, to; // of the text
  bool is_reached, is_named; // some branch names it
  uint32_t rank; // in the order of work
  struct select_phi *phis;
  uint32_t phi_count, phi_capacity;
};

enum { SELECT_DIVISIONS = 8, SELECT_SUMS = 256 };

struct select {
  struct nvptx *cg;
  struct text *out, body;
  const char *refusal; // why the module is left to LLVM; NULL: it is not
  LLVMValueRef function;
  const char *name;
  uint32_t place; // of the function in its module
  struct select_value *values;
  uint32_t value_count, value_capacity;
  uint32_t registers[REGISTER_COUNT];
  struct select_block *blocks;
  struct select_share *shares; // by the number that select_share gives a value
  struct select_back *backs;
  uint32_t back_count, block_count, block, printed; // the one in work, and its number from 1
  struct select_division divisions[SELECT_DIVISIONS];
  uint32_t division_count;
  struct select_sum sums[SELECT_SUMS], parts[SELECT_SUMS]; // by their operands; by their results
  LLVMValueRef *shared, *local; // variables that the function names
  uint32_t shared_count, shared_capacity;
  uint64_t local_bytes;
  unsigned invariant, loop; // kinds of metadata
  LLVMMetadataRef at;       // the place of the line before
  uint32_t *file_numbers, file_count;
};

// Prints the module; false, with nothing printed, where it holds something that is not known here.
bool nvptx_select(struct nvptx *cg, struct text *out);

// --- nvptx_select_value.c
void select_refuse(struct select *s, const char *why);
struct select_type select_type(LLVMTypeRef type);
uint64_t select_bytes(struct select *s, LLVMTypeRef type); // in memory; 0: refused
struct select_operand select_new(struct select *s, enum select_register home);
struct select_operand select_constant(enum select_register home, uint64_t bits);
struct select_value *select_find(struct select *s, LLVMValueRef key);
void select_define(struct select *s, LLVMValueRef key, struct select_operand operand);
void select_define_lanes(struct select *s, LLVMValueRef key, struct select_operand *lanes, uint32_t count);
// As it was defined, with distance and extension.
struct select_operand select_raw(struct select *s, LLVMValueRef value);
// Without them: a register, a constant or the name of a variable's register.
struct select_operand select_get(struct select *s, LLVMValueRef value);
// Never a constant.
struct select_operand select_in_register(struct select *s, struct select_operand operand);
struct select_operand select_lane(struct select *s, LLVMValueRef value, uint32_t lane);
// A line: `name`, operands with commas between.
void select_line(struct select *s, const char *name, const struct select_operand *operands, uint32_t count);
void select_operand_text(struct text *out, struct select_operand operand);
void select_move(struct select *s, struct select_operand to, struct select_operand from);
// The line of an operation that gives `home` of one, two or three operands; constants of floats as such by the suffix of `name`.
struct select_operand select_op1(struct select *s, enum select_register home, const char *name, struct select_operand a);
struct select_operand select_op2(struct select *s, enum select_register home, const char *name, struct select_operand a, struct select_operand b);
struct select_operand select_op3(struct select *s, enum select_register home, const char *name, struct select_operand a, struct select_operand b, struct select_operand c);

// --- nvptx_select_phi.c
// Before any instruction is selected: value->plain_block of phis and of what comes into them is the number of their share, 0 for none.
void select_share(struct select *s);

// --- nvptx_select_op.c
// add.s32 or add.s64. Of (a + b) + c, where the block has a + c already, it makes (a + c) + b: what neighbours have in common is computed once.
void select_forget_sums(struct select *s, enum select_register home, uint32_t number);
struct select_operand select_sum(struct select *s, enum select_register home, struct select_operand a, struct select_operand b);
void select_instruction(struct select *s, LLVMValueRef i);
// An integer of 8 bits in all 16 of its register; others as they are.
struct select_operand select_widened(struct select *s, struct select_operand a, uint32_t bits, bool is_signed);

// Whether the value is a register of 32 bits of which stores alone take the lower ones: a store takes the register as it is.
bool select_is_cut_by_store(LLVMValueRef value);

// --- nvptx_select_divide.c
struct select_operand select_divide(struct select *s, LLVMValueRef i, uint32_t bits, bool is_signed, bool is_remainder);

// --- nvptx_select_call.c
void select_call(struct select *s, LLVMValueRef i);

// --- nvptx_select_memory.c
void select_address(struct select *s, LLVMValueRef gep);
void select_load(struct select *s, LLVMValueRef i);
void select_store(struct select *s, LLVMValueRef i);
void select_slot(struct select *s, LLVMValueRef i);

#endif
