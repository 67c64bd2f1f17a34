// The decoder: from the reader's tree to the program that the interpreter runs. One sim_decoder decodes a
// module; the functions that sim_opcodes names decode one instruction each, into the decoder's current op.
#ifndef RED_SIM_DECODE_H
#define RED_SIM_DECODE_H

#include "runtime/sim/internal.h"
#include "runtime/sim/ptx.h"

#include <setjmp.h>

// What a name stands for. Registers declared as name<count> are one symbol.
enum sim_symbol_kind {
  SIM_SYMBOL_REGISTER,
  SIM_SYMBOL_RANGE,     // of registers
  SIM_SYMBOL_VARIABLE,  // index into module->variables
  SIM_SYMBOL_FRAME,     // offset in the frame's local memory
  SIM_SYMBOL_PARAMETER, // offset in the kernel's parameters
  SIM_SYMBOL_FUNCTION,  // index
  SIM_SYMBOL_LABEL,     // instruction
  SIM_SYMBOL_TARGETS,   // list
  SIM_SYMBOL_PROTOTYPE,
};

struct sim_symbol {
  const char *name;
  size_t length;
  uint32_t scope;
  enum sim_symbol_kind kind;
  enum sim_type type;
  uint64_t value; // index, offset or instruction
  uint64_t bytes;
  uint32_t vector;
  int32_t slot;   // of a register, 0 until it is used
  int32_t *slots; // of a range
  uint64_t count;
  const struct ptx_statement *statement;
};

// Open addressing by scope and name; entries point into symbols.
struct sim_table {
  struct sim_symbol *symbols;
  size_t count;
  size_t room;
  uint32_t *buckets; // index + 1
  size_t bucket_count;
};

struct sim_decoder {
  struct ptx_unit *unit;
  struct sim_module *module;
  jmp_buf out; // taken by sim_fail
  struct sim_table global;
  struct sim_table local;
  uint32_t *parents; // of the function's scopes
  size_t scope_count;
  size_t scope_room;
  uint32_t scope;
  uint32_t function_index;
  struct sim_function *function;
  size_t op_room;
  size_t list_room;
  size_t constant_room;
  uint32_t *constant_buckets;
  size_t constant_bucket_count;
  size_t constant_count;
  size_t register_room;
  size_t variable_room;
  int32_t sinks[4];
  int32_t carry; // the condition code's slot, 0 until used
  // The instruction in hand.
  const struct ptx_statement *statement;
  const struct ptx_instruction *instruction;
  struct ptx_dot *dots[32];
  bool taken[32];
  size_t dot_count;
  struct sim_op *op;
};

// Leaves the decoder with a message at the current instruction.
#if defined __GNUC__
__attribute__((noreturn, format(printf, 2, 3)))
#endif
void sim_fail(struct sim_decoder *decoder, const char *format, ...);
#if defined __GNUC__
__attribute__((noreturn, format(printf, 3, 4)))
#endif
void sim_fail_at(struct sim_decoder *decoder, struct ptx_place place, const char *format, ...);

// realloc that leaves the decoder when memory is short; the new part is zeroed.
void *sim_grow(struct sim_decoder *decoder, void *memory, size_t *room, size_t need, size_t size);

// Whether the modifier is there; it counts as understood then.
bool sim_take(struct sim_decoder *decoder, const char *modifier);
// The next type among the modifiers; an error when there is none.
enum sim_type sim_take_type(struct sim_decoder *decoder);
enum sim_type sim_take_type_if(struct sim_decoder *decoder);
// .rn, .rz, .rm, .rp; false when there is none.
bool sim_take_rounding(struct sim_decoder *decoder, enum sim_rounding *rounding);

// Operand number `index`; an error when there is none.
const struct ptx_operand *sim_operand_at(struct sim_decoder *decoder, size_t index);
// An error unless the instruction has `least` to `most` operands.
void sim_operand_count(struct sim_decoder *decoder, size_t least, size_t most);

// A source of the type's width: register or constant. `is_loose` lets the register be wider, as cvt and st
// do.
int32_t sim_source_of(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type);
int32_t sim_source(struct sim_decoder *decoder, size_t index, enum sim_type type);
int32_t sim_result(struct sim_decoder *decoder, size_t index, enum sim_type type);
int32_t sim_result_of(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type);
// A register of at least the type's width; its width in bits (1, 32, 64, 128) in *width and its declared
// type.
int32_t sim_register_loose(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type,
                           uint8_t *width, enum sim_type *declared);
// A predicate source, perhaps negated.
int32_t sim_predicate(struct sim_decoder *decoder, const struct ptx_operand *operand, bool *is_negated);
// A constant of `width` bits in every lane.
int32_t sim_constant(struct sim_decoder *decoder, uint64_t low, uint64_t high, unsigned width);
int32_t sim_zero(void);
int32_t sim_carry(struct sim_decoder *decoder);
// An integer operand known now.
uint64_t sim_immediate(struct sim_decoder *decoder, size_t index);
bool sim_is_register(struct sim_decoder *decoder, const struct ptx_operand *operand);
// The address operand into op->a, symbol, is_framed and immediate. The space may be refined by the name.
void sim_address(struct sim_decoder *decoder, size_t index);
// .global and others; SIM_SPACE_GENERIC when there is none.
enum sim_space sim_take_space(struct sim_decoder *decoder);
// Appends to module->lists; returns the index of the first.
uint32_t sim_list(struct sim_decoder *decoder, const int32_t *items, size_t count);

struct sim_symbol *sim_symbol_find(struct sim_decoder *decoder, const char *name);
struct sim_symbol *sim_label_find(struct sim_decoder *decoder, const char *name);
struct sim_symbol *sim_symbol_add(struct sim_decoder *decoder, struct sim_table *table,
                                  struct ptx_place place, const char *name, size_t length,
                                  enum sim_symbol_kind kind);
struct sim_symbol *sim_table_find(const struct sim_table *table, uint32_t scope, const char *name,
                                  size_t length);
// A slot for a register of the type in the current function's frame.
int32_t sim_slot_new(struct sim_decoder *decoder, enum sim_type type);
// The type, alignment and vector length that a declaration's dotted words say.
struct sim_declared {
  enum sim_type type;
  uint64_t alignment;
  uint32_t vector;
  bool is_pointer;
};
struct sim_declared sim_declaration(struct sim_decoder *decoder, const struct ptx_variable *variable);

// Cache operators and hints; true when a policy operand follows.
bool sim_take_hints(struct sim_decoder *decoder);
// .relaxed, .acquire and others with their scope, into the op.
void sim_take_strength(struct sim_decoder *decoder, bool is_atomic);

// Handlers of other files.
void sim_run_ld(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_st(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_atom(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_copy(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_copy_commit(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);
void sim_run_copy_wait(struct sim_warp *warp, const struct sim_op *op, uint32_t mask);

// Post-dominators: fills op->join of the conditional branches of a function. cfg.c.
bool sim_joins(struct sim_module *module, const struct sim_function *function);

// Whether an instruction is setp.eq or .ne of integers of 32 bits and nothing else.
bool sim_is_plain_test(const struct sim_op *op);

// One for each row of opcode.def.
#define SIM_OPCODE(name, decode, class_) void decode(struct sim_decoder *decoder);
#include "runtime/sim/opcode.def"
#undef SIM_OPCODE

#endif
