// Decodes a module: variables, functions, scopes, labels, and each instruction through the table of opcodes.
#include "runtime/sim/decode.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_LOCAL (512u << 10) // bytes of local memory of one frame

const struct sim_opcode sim_opcodes[] = {
#define SIM_OPCODE(name, decode, class_) {name, decode, SIM_CLASS_##class_},
#include "runtime/sim/opcode.def"
#undef SIM_OPCODE
};
const size_t sim_opcode_count = sizeof sim_opcodes / sizeof *sim_opcodes;

// ---- Declarations
// ------------------------------------------------------------------------------------------

struct sim_declared sim_declaration(struct sim_decoder *decoder, const struct ptx_variable *variable) {
  struct sim_declared declared = {SIM_NO_TYPE, 0, 1, false};
  for (const struct ptx_dot *dot = variable->dots; dot; dot = dot->next) {
    enum sim_type type = sim_type_find(dot->text);
    if (type != SIM_NO_TYPE) {
      declared.type = type;
    } else if (strcmp(dot->text, "align") == 0) {
      declared.alignment = dot->value;
    } else if (strcmp(dot->text, "v2") == 0) {
      declared.vector = 2;
    } else if (strcmp(dot->text, "v4") == 0) {
      declared.vector = 4;
    } else if (strcmp(dot->text, "v8") == 0) {
      declared.vector = 8;
    } else if (strcmp(dot->text, "ptr") == 0) {
      declared.is_pointer = true;
    } else if (!declared.is_pointer) {
      sim_fail_at(decoder, variable->place, "unknown '.%s' in the declaration of '%s'", dot->text,
                  variable->name);
    }
  }
  if (declared.type == SIM_NO_TYPE)
    sim_fail_at(decoder, variable->place, "'%s' is declared without a type", variable->name);
  uint64_t natural = (sim_type_bits(declared.type) + 7) / 8 * declared.vector;
  // After .ptr the alignment is that of the memory pointed to.
  if (declared.alignment == 0 || declared.is_pointer) declared.alignment = natural;
  if ((declared.alignment & (declared.alignment - 1)) != 0 || declared.alignment > 1u << 20) {
    sim_fail_at(decoder, variable->place, "the alignment of '%s' is no power of two", variable->name);
  }
  return declared;
}

// Bytes a variable takes; an error where they are over `limit`.
static uint64_t variable_bytes(struct sim_decoder *decoder, const struct ptx_variable *variable,
                               const struct sim_declared *declared, uint64_t limit) {
  uint64_t each = (sim_type_bits(declared->type) + 7) / 8 * declared->vector;
  uint64_t elements = variable->is_open_array ? 0 : variable->elements;
  if (variable->is_overflowing || elements > limit / each) {
    sim_fail_at(decoder, variable->place, "'%s' is too large", variable->name);
  }
  return each * elements;
}

static char *copy_name(struct sim_decoder *decoder, const char *name) {
  char *copy = strdup(name ? name : "");
  if (!copy) sim_fail(decoder, "out of memory");
  return copy;
}

// Writes the constants of an initialiser in order. The recursion of nested lists is an explicit walk over one
// level: PTX arrays of arrays nest, so lists are flattened with a stack of at most 8.
static void initialise(struct sim_decoder *decoder, const struct ptx_variable *variable,
                       struct sim_variable *out, const struct sim_declared *declared) {
  uint64_t each = (sim_type_bits(declared->type) + 7) / 8, at = 0, room = out->bytes;
  const struct ptx_operand *stack[8];
  size_t depth = 0;
  size_t fixup_room = 0, byte_room = 0;
  const struct ptx_operand *item = variable->initial;
  while (item || depth > 0) {
    if (!item) {
      item = stack[--depth]->next;
      continue;
    }
    if (item->kind == PTX_LIST) {
      if (depth == 8) sim_fail_at(decoder, item->place, "initialisers nest too deeply");
      stack[depth++] = item;
      item = item->items;
      continue;
    }
    if (at + each > room) sim_fail_at(decoder, item->place, "too many initialisers for '%s'", variable->name);
    out->initial = sim_grow(decoder, out->initial, &byte_room, at + each, 1);
    uint64_t value = item->value;
    if (item->kind == PTX_F64 && each == 4) {
      double wide;
      memcpy(&wide, &value, 8);
      float narrow = (float)wide;
      memcpy(&value, &narrow, 4);
    } else if (item->kind == PTX_NAME || item->kind == PTX_GENERIC) {
      struct sim_symbol *symbol = sim_table_find(&decoder->global, 0, item->text, strlen(item->text));
      bool is_function = symbol && symbol->kind == SIM_SYMBOL_FUNCTION;
      if (!symbol || (symbol->kind != SIM_SYMBOL_VARIABLE && !is_function) || each != 8) {
        sim_fail_at(decoder, item->place, "'%s' cannot initialise '%s'", item->text, variable->name);
      }
      if (is_function) {
        value += SIM_CODE_BASE + 16 * symbol->value;
      } else {
        out->fixups = sim_grow(decoder, out->fixups, &fixup_room, out->fixup_count + 1, sizeof *out->fixups);
        out->fixups[out->fixup_count++] = (struct sim_fixup){at, (uint32_t)symbol->value, value};
        value = 0;
      }
    }
    memcpy(out->initial + at, &value, each);
    at += each;
    out->initial_bytes = at;
    item = item->next;
  }
}

// Declares a variable in global, constant or shared memory, of the module or of a function.
static void declare_variable(struct sim_decoder *decoder, const struct ptx_variable *variable,
                             struct sim_table *table) {
  struct sim_declared declared = sim_declaration(decoder, variable);
  struct sim_module *module = decoder->module;
  enum sim_space space = SIM_SPACE_GLOBAL;
  if (strcmp(variable->space, "shared") == 0) space = SIM_SPACE_SHARED;
  if (strcmp(variable->space, "const") == 0) space = SIM_SPACE_CONST;
  if (variable->has_range)
    sim_fail_at(decoder, variable->place, "only registers are declared as name<count>");
  if (space == SIM_SPACE_SHARED && variable->initial) {
    sim_fail_at(decoder, variable->place, "shared memory takes no initial value");
  }
  size_t length = strlen(variable->name);
  struct sim_symbol *old = sim_table_find(table, decoder->scope, variable->name, length);
  bool is_extern = variable->linkage && strcmp(variable->linkage, "extern") == 0;
  if (old && is_extern) return;
  module->variables = sim_grow(decoder, module->variables, &decoder->variable_room,
                               module->variable_count + 1, sizeof *module->variables);
  struct sim_variable *out = &module->variables[module->variable_count];
  memset(out, 0, sizeof *out);
  out->name = copy_name(decoder, variable->name);
  uint32_t index = (uint32_t)module->variable_count++;
  out->space = space;
  out->alignment = declared.alignment;
  out->is_dynamic =
      space == SIM_SPACE_SHARED && (variable->is_open_array || (is_extern && variable->elements == 0));
  out->bytes = variable_bytes(decoder, variable, &declared, UINT64_C(1) << 38);
  if (is_extern && space != SIM_SPACE_SHARED) {
    sim_fail_at(decoder, variable->place, "'%s' is not defined in this module", variable->name);
  }
  struct sim_symbol *symbol =
      sim_symbol_add(decoder, table, variable->place, variable->name, length, SIM_SYMBOL_VARIABLE);
  symbol->value = index;
  symbol->bytes = out->bytes;
  symbol->type = declared.type;
  if (variable->is_open_array && variable->initial && space != SIM_SPACE_SHARED) {
    uint64_t count =
        variable->initial->kind == PTX_LIST && variable->initial->items ? variable->initial->items->count : 1;
    out->bytes = count * ((sim_type_bits(declared.type) + 7) / 8);
  }
  if (variable->initial) initialise(decoder, variable, out, &declared);
}

// A .local or .param variable: room in the function's frame.
static struct sim_symbol *declare_framed(struct sim_decoder *decoder, const struct ptx_variable *variable,
                                         uint64_t *bytes) {
  struct sim_declared declared = sim_declaration(decoder, variable);
  *bytes = variable_bytes(decoder, variable, &declared, MOST_LOCAL);
  uint64_t offset = (decoder->function->local_bytes + declared.alignment - 1) & ~(declared.alignment - 1);
  if (offset + *bytes > MOST_LOCAL)
    sim_fail_at(decoder, variable->place, "'%s' is too large", variable->name);
  struct sim_symbol *symbol = sim_symbol_add(decoder, &decoder->local, variable->place, variable->name,
                                             strlen(variable->name), SIM_SYMBOL_FRAME);
  symbol->value = offset;
  symbol->bytes = *bytes;
  symbol->type = declared.type;
  decoder->function->local_bytes = (uint32_t)(offset + *bytes);
  return symbol;
}

static struct sim_symbol *declare_register(struct sim_decoder *decoder, const struct ptx_variable *variable) {
  struct sim_declared declared = sim_declaration(decoder, variable);
  if (declared.vector > 4)
    sim_fail_at(decoder, variable->place, "a vector register has two or four elements");
  if (variable->is_array) sim_fail_at(decoder, variable->place, "a register is no array");
  struct sim_symbol *symbol =
      sim_symbol_add(decoder, &decoder->local, variable->place, variable->name, strlen(variable->name),
                     variable->has_range ? SIM_SYMBOL_RANGE : SIM_SYMBOL_REGISTER);
  symbol->type = declared.type;
  symbol->vector = declared.vector;
  symbol->count = variable->has_range ? variable->range : 1;
  if (symbol->count > 1u << 22) sim_fail_at(decoder, variable->place, "too many registers");
  if (variable->has_range || declared.vector > 1) {
    symbol->slots = calloc(symbol->count * declared.vector + 1, sizeof *symbol->slots);
    if (!symbol->slots) sim_fail(decoder, "out of memory");
  }
  return symbol;
}

static void declare_in_function(struct sim_decoder *decoder, const struct ptx_variable *list) {
  for (const struct ptx_variable *variable = list; variable; variable = variable->next) {
    uint64_t bytes;
    if (strcmp(variable->space, "reg") == 0) {
      declare_register(decoder, variable);
    } else if (strcmp(variable->space, "local") == 0 || strcmp(variable->space, "param") == 0) {
      declare_framed(decoder, variable, &bytes);
    } else {
      declare_variable(decoder, variable, &decoder->local);
    }
  }
}

// ---- Functions
// ---------------------------------------------------------------------------------------------

// Parameters of an entry: the layout of its blob.
static void entry_parameters(struct sim_decoder *decoder, const struct ptx_function *function) {
  struct sim_function *out = decoder->function;
  size_t count = 0;
  for (const struct ptx_variable *variable = function->parameters; variable; variable = variable->next)
    count++;
  out->entry_parameters = calloc(count + 1, sizeof *out->entry_parameters);
  if (!out->entry_parameters) sim_fail(decoder, "out of memory");
  out->entry.parameters = out->entry_parameters;
  uint64_t offset = 0;
  for (const struct ptx_variable *variable = function->parameters; variable; variable = variable->next) {
    struct sim_declared declared = sim_declaration(decoder, variable);
    if (strcmp(variable->space, "param") != 0)
      sim_fail_at(decoder, variable->place, "a kernel's parameters are .param");
    uint64_t bytes = variable_bytes(decoder, variable, &declared, 1u << 20);
    offset = (offset + declared.alignment - 1) & ~(declared.alignment - 1);
    struct sim_symbol *symbol = sim_symbol_add(decoder, &decoder->local, variable->place, variable->name,
                                               strlen(variable->name), SIM_SYMBOL_PARAMETER);
    symbol->value = offset;
    symbol->bytes = bytes;
    symbol->type = declared.type;
    struct sim_parameter *parameter = &out->entry_parameters[out->entry.parameter_count++];
    parameter->name = copy_name(decoder, variable->name);
    parameter->offset = offset;
    parameter->size = bytes;
    parameter->alignment = declared.alignment;
    parameter->is_pointer = declared.is_pointer;
    parameter->is_array = variable->is_array;
    parameter->is_float = sim_type_kind(declared.type) == SIM_KIND_F;
    offset += bytes;
    if (offset > 1u << 20)
      sim_fail_at(decoder, variable->place, "the parameters of '%s' are too large", function->name);
  }
  out->entry.parameter_bytes = offset;
}

static struct sim_formal *formals(struct sim_decoder *decoder, const struct ptx_variable *list,
                                  size_t *count) {
  size_t total = 0;
  for (const struct ptx_variable *variable = list; variable; variable = variable->next) total++;
  struct sim_formal *out = calloc(total + 1, sizeof *out);
  if (!out) sim_fail(decoder, "out of memory");
  *count = total;
  size_t i = 0;
  // The caller owns `out` at once, so that a failure below leaks nothing.
  for (const struct ptx_variable *variable = list; variable; variable = variable->next, i++) out[i].reg = -1;
  return out;
}

static void declare_formals(struct sim_decoder *decoder, const struct ptx_variable *list,
                            struct sim_formal *out) {
  size_t i = 0;
  for (const struct ptx_variable *variable = list; variable; variable = variable->next, i++) {
    if (strcmp(variable->space, "reg") == 0) {
      struct sim_symbol *symbol = declare_register(decoder, variable);
      if (symbol->slots) sim_fail_at(decoder, variable->place, "a parameter is one register");
      symbol->slot = sim_slot_new(decoder, symbol->type);
      out[i].reg = symbol->slot;
      unsigned bits = sim_type_bits(symbol->type);
      out[i].width = (uint8_t)(bits == 1 ? 1 : bits <= 32 ? 32 : bits);
    } else if (strcmp(variable->space, "param") == 0) {
      uint64_t bytes;
      struct sim_symbol *symbol = declare_framed(decoder, variable, &bytes);
      out[i].offset = (uint32_t)symbol->value;
      out[i].bytes = (uint32_t)bytes;
    } else {
      sim_fail_at(decoder, variable->place, "a parameter is .param or .reg");
    }
  }
}

static void tuning(struct sim_decoder *decoder, const struct ptx_function *function,
                   struct sim_entry *entry) {
  for (const struct ptx_tuning *tuning = function->tuning; tuning; tuning = tuning->next) {
    uint32_t value[3];
    for (int i = 0; i < 3; i++) {
      if (i < tuning->count && (tuning->value[i] == 0 || tuning->value[i] > UINT32_MAX)) {
        sim_fail_at(decoder, tuning->place, "'.%s' is out of range", tuning->text);
      }
      value[i] = i < tuning->count ? (uint32_t)tuning->value[i] : 1;
    }
    if (strcmp(tuning->text, "reqntid") == 0) {
      memcpy(entry->required_block, value, sizeof value);
    } else if (strcmp(tuning->text, "maxntid") == 0) {
      memcpy(entry->maximum_block, value, sizeof value);
    } else if (strcmp(tuning->text, "minnctapersm") == 0) {
      entry->minimum_blocks = value[0];
    } else if (strcmp(tuning->text, "maxnreg") == 0) {
      entry->maximum_registers = value[0];
    } else if (strcmp(tuning->text, "maxnctapersm") != 0 && strcmp(tuning->text, "noreturn") != 0) {
      bool is_one = value[0] == 1 && value[1] == 1 && value[2] == 1 && tuning->count > 0;
      if (!is_one) sim_fail_at(decoder, tuning->place, "clusters ('.%s') are not supported", tuning->text);
    }
  }
}

static uint32_t open_scope(struct sim_decoder *decoder, uint32_t parent) {
  decoder->parents = sim_grow(decoder, decoder->parents, &decoder->scope_room, decoder->scope_count + 1,
                              sizeof *decoder->parents);
  decoder->parents[decoder->scope_count] = parent;
  return (uint32_t)decoder->scope_count++;
}

// First walk: scopes, labels and lists of branch targets, so that names may be used before they stand.
static void find_labels(struct sim_decoder *decoder, const struct ptx_function *function) {
  uint32_t index = (uint32_t)decoder->module->op_count;
  const char *label = NULL;
  for (const struct ptx_statement *statement = function->body; statement; statement = statement->next) {
    decoder->statement = statement;
    switch (statement->kind) {
    case PTX_INSTRUCTION: index++; break;
    case PTX_OPEN: decoder->scope = open_scope(decoder, decoder->scope); break;
    case PTX_CLOSE: decoder->scope = decoder->parents[decoder->scope]; break;
    case PTX_LABEL: {
      struct sim_symbol *symbol = sim_symbol_add(decoder, &decoder->local, statement->place, statement->label,
                                                 strlen(statement->label), SIM_SYMBOL_LABEL);
      symbol->value = index;
      label = statement->label;
      break;
    }
    case PTX_TARGETS:
    case PTX_PROTOTYPE: {
      struct sim_symbol *symbol = label ? sim_label_find(decoder, label) : NULL;
      if (!symbol) sim_fail(decoder, "a list of targets needs a label");
      symbol->kind = statement->kind == PTX_TARGETS ? SIM_SYMBOL_TARGETS : SIM_SYMBOL_PROTOTYPE;
      symbol->statement = statement;
      break;
    }
    case PTX_VARIABLE: break;
    }
  }
}

// The source line that findings at this instruction name.
static int statement_loc(const struct sim_decoder *decoder) {
  return decoder->statement->loc;
}

static struct sim_op *new_op(struct sim_decoder *decoder) {
  struct sim_module *module = decoder->module;
  if (module->op_count >= 1u << 27) sim_fail(decoder, "too many instructions");
  module->ops = sim_grow(decoder, module->ops, &decoder->op_room, module->op_count + 1, sizeof *module->ops);
  struct sim_op *op = &module->ops[module->op_count++];
  memset(op, 0, sizeof *op);
  op->d = op->e = op->a = op->b = op->c = op->f = sim_zero();
  op->symbol = SIM_NONE;
  op->join = SIM_NONE;
  op->loc = -1;
  op->kind = SIM_OP_ALU;
  return op;
}

static const struct sim_opcode *find_opcode(const char *name) {
  for (size_t i = 0; i < sim_opcode_count; i++) {
    if (strcmp(sim_opcodes[i].name, name) == 0) return &sim_opcodes[i];
  }
  return NULL;
}

// ALU instructions without a second result point it at a word that nobody reads.
static void finish_results(struct sim_decoder *decoder, struct sim_op *op) {
  if (op->kind != SIM_OP_ALU) return;
  if (!decoder->sinks[0]) decoder->sinks[0] = sim_slot_new(decoder, SIM_PRED);
  if (op->d == sim_zero()) op->d = decoder->sinks[0];
  if (op->e == sim_zero()) op->e = decoder->sinks[0];
}

static void decode_instruction(struct sim_decoder *decoder, const struct ptx_statement *statement) {
  const struct ptx_instruction *instruction = statement->instruction;
  decoder->instruction = instruction;
  decoder->dot_count = 0;
  memset(decoder->taken, 0, sizeof decoder->taken);
  for (struct ptx_dot *dot = instruction->modifiers; dot; dot = dot->next) {
    if (decoder->dot_count == sizeof decoder->dots / sizeof *decoder->dots)
      sim_fail(decoder, "too many modifiers");
    decoder->dots[decoder->dot_count++] = dot;
  }
  const struct sim_opcode *opcode = find_opcode(instruction->opcode);
  if (!opcode) sim_fail(decoder, "unknown instruction '%s'", instruction->opcode);
  struct sim_op *op = new_op(decoder);
  decoder->op = op;
  op->line = statement->place.line;
  op->loc = statement_loc(decoder);
  op->opcode = (uint16_t)(opcode - sim_opcodes);
  if (instruction->guard) {
    struct ptx_operand guard = {.kind = PTX_NAME, .place = statement->place, .text = instruction->guard};
    op->guard = sim_source_of(decoder, &guard, SIM_PRED);
    op->guard_is_negated = instruction->guard_is_negated;
  }
  opcode->decode(decoder);
  for (size_t i = 0; i < decoder->dot_count; i++) {
    if (!decoder->taken[i]) {
      sim_fail(decoder, "unknown modifier '.%s' of '%s'", decoder->dots[i]->text, instruction->opcode);
    }
  }
  finish_results(decoder, op);
}

static void mark_leaders(struct sim_decoder *decoder) {
  for (size_t i = 0; i < decoder->local.count; i++) {
    const struct sim_symbol *symbol = &decoder->local.symbols[i];
    if (symbol->kind == SIM_SYMBOL_LABEL) decoder->module->ops[symbol->value].is_leader = true;
  }
}

static bool writes(const struct sim_op *op, int32_t slot) { return op->d == slot || op->e == slot; }

// Compilers write `x != 0 || y != 0` as `(x | y) != 0`: the test is told of x and y, either of which decides it. They must be what they were,
// in the same straight run of plain instructions.
static void join_tests(struct sim_module *module, const struct sim_function *function) {
  enum { FARTHEST = 64 };
  for (size_t i = module->op_count; i-- > function->start;) {
    struct sim_op *test = &module->ops[i];
    if (test->kind != SIM_OP_ALU || !sim_is_plain_test(test)) continue;
    size_t at = i;
    bool is_straight = true;
    while (is_straight && at > function->start && i - at < FARTHEST && !writes(&module->ops[at - 1], test->a)) {
      is_straight = !module->ops[at].is_leader;
      at--;
      is_straight &= module->ops[at].kind <= SIM_OP_RUN && module->ops[at].vector <= 1;
    }
    if (!is_straight || at == function->start || i - at == FARTHEST || module->ops[at].is_leader) continue;
    const struct sim_op *both = &module->ops[at - 1];
    bool is_or = both->absorbs == SIM_ABSORBS_ONES && both->guard == SIM_NO_GUARD && both->type != SIM_PRED &&
                 sim_type_bits((enum sim_type)both->type) == 32;
    for (size_t k = at - 1; k < i && is_or; k++)
      is_or = !writes(&module->ops[k], both->a) && !writes(&module->ops[k], both->b);
    if (!is_or) continue;
    test->absorbs = SIM_ABSORBS_EITHER;
    test->c = both->a;
    test->f = both->b;
  }
}

static void reset_function(struct sim_decoder *decoder) {
  for (size_t i = 0; i < decoder->local.count; i++) free(decoder->local.symbols[i].slots);
  decoder->local.count = 0;
  if (decoder->local.buckets) {
    memset(decoder->local.buckets, 0, decoder->local.bucket_count * sizeof *decoder->local.buckets);
  }
  decoder->scope_count = 0;
  decoder->scope = 0;
  decoder->carry = 0;
  decoder->register_room = 0;
  memset(decoder->sinks, 0, sizeof decoder->sinks);
}

static void decode_body(struct sim_decoder *decoder, const struct ptx_function *function) {
  uint32_t next_scope = 1;
  for (const struct ptx_statement *statement = function->body; statement; statement = statement->next) {
    decoder->statement = statement;
    switch (statement->kind) {
    case PTX_INSTRUCTION: decode_instruction(decoder, statement); break;
    case PTX_OPEN: decoder->scope = next_scope++; break;
    case PTX_CLOSE: decoder->scope = decoder->parents[decoder->scope]; break;
    case PTX_VARIABLE: declare_in_function(decoder, statement->variables); break;
    case PTX_LABEL:
    case PTX_TARGETS:
    case PTX_PROTOTYPE: break;
    }
  }
}

static void decode_function(struct sim_decoder *decoder, const struct ptx_function *function) {
  struct sim_module *module = decoder->module;
  reset_function(decoder);
  open_scope(decoder, 0);
  struct sim_function *out = &module->functions[decoder->function_index];
  decoder->function = out;
  out->has_body = true;
  out->line = function->place.line;
  out->start = (uint32_t)module->op_count;
  out->frame_bytes = SIM_LINKAGE;
  tuning(decoder, function, &out->entry);
  if (function->is_entry) {
    entry_parameters(decoder, function);
  } else {
    declare_formals(decoder, function->parameters, out->parameters);
    declare_formals(decoder, function->results, out->results);
  }
  find_labels(decoder, function);
  decoder->scope = 0;
  decode_body(decoder, function);
  decoder->statement = NULL;
  struct sim_op *op = new_op(decoder); // the end, for a body whose last instruction falls through
  op->kind = SIM_OP_RETURN;
  op->line = module->op_count > 1 ? module->ops[module->op_count - 2].line : function->place.line;
  op->opcode = (uint16_t)(find_opcode("ret") - sim_opcodes);
  mark_leaders(decoder);
  join_tests(module, out);
  out->end = (uint32_t)module->op_count;
  out->local_bytes = (out->local_bytes + 15) & ~15u;
  if (!sim_joins(module, out)) sim_fail(decoder, "out of memory");
}

// All functions have a number before any body is decoded, so that calls may look ahead.
static void declare_functions(struct sim_decoder *decoder) {
  struct sim_module *module = decoder->module;
  size_t count = 0;
  for (const struct ptx_function *function = decoder->unit->functions; function; function = function->next)
    count++;
  module->functions = calloc(count + 1, sizeof *module->functions);
  module->entries = calloc(count + 1, sizeof *module->entries);
  if (!module->functions || !module->entries) sim_fail(decoder, "out of memory");
  for (const struct ptx_function *function = decoder->unit->functions; function; function = function->next) {
    struct sim_symbol *symbol = sim_table_find(&decoder->global, 0, function->name, strlen(function->name));
    struct sim_function *out;
    if (symbol) {
      bool is_function = symbol->kind == SIM_SYMBOL_FUNCTION;
      out = is_function ? &module->functions[symbol->value] : NULL;
      if (!is_function || (out->has_body && function->has_body)) {
        sim_fail_at(decoder, function->place, "'%s' is declared twice", function->name);
      }
    } else {
      symbol = sim_symbol_add(decoder, &decoder->global, function->place, function->name,
                              strlen(function->name), SIM_SYMBOL_FUNCTION);
      symbol->value = module->function_count;
      out = &module->functions[module->function_count++];
      out->name = copy_name(decoder, function->name);
      out->is_entry = function->is_entry;
      out->parameters = formals(decoder, function->parameters, &out->parameter_count);
      out->results = formals(decoder, function->results, &out->result_count);
    }
    if (!function->has_body) continue;
    out->has_body = true;
    out->is_entry = function->is_entry;
    size_t parameters = 0, results = 0;
    for (const struct ptx_variable *v = function->parameters; v; v = v->next) parameters++;
    for (const struct ptx_variable *v = function->results; v; v = v->next) results++;
    if (parameters != out->parameter_count || results != out->result_count) {
      sim_fail_at(decoder, function->place, "'%s' was declared with other parameters", function->name);
    }
    if (function->is_entry) module->entries[module->entry_count++] = (size_t)symbol->value;
  }
}

// Copies .loc entries with their file names, which then live in module->strings.
static void copy_locs(struct sim_decoder *decoder) {
  struct sim_module *module = decoder->module;
  const struct ptx_unit *unit = decoder->unit;
  size_t bytes = 1, count = 0;
  for (const struct ptx_file *file = unit->files; file; file = file->next)
    bytes += strlen(file->name) + 1, count++;
  module->strings = calloc(bytes, 1);
  module->locs = calloc(unit->loc_count + 1, sizeof *module->locs);
  const char **names = calloc(count + 1, sizeof *names);
  uint64_t *numbers = calloc(count + 1, sizeof *numbers);
  if (!module->strings || !module->locs || !names || !numbers) {
    free(names);
    free(numbers);
    sim_fail(decoder, "out of memory");
  }
  size_t at = 1, i = 0;
  for (const struct ptx_file *file = unit->files; file; file = file->next, i++) {
    names[i] = strcpy(module->strings + at, file->name);
    numbers[i] = file->number;
    at += strlen(file->name) + 1;
  }
  size_t last = 0;
  for (size_t loc = 0; loc < unit->loc_count; loc++) {
    const struct ptx_loc *from = &unit->locs[loc];
    struct sim_source *to[2] = {&module->locs[loc].source, &module->locs[loc].inlined_at};
    uint32_t file[2] = {from->file, from->inlined_file};
    for (int part = 0; part < 2; part++) {
      for (size_t tried = 0; tried < count; tried++, last = last + 1 < count ? last + 1 : 0) {
        if (numbers[last] == file[part]) {
          to[part]->file = names[last];
          break;
        }
      }
    }
    to[0]->line = from->line, to[0]->column = from->column;
    to[1]->line = from->inlined_line, to[1]->column = from->inlined_column;
  }
  module->loc_count = unit->loc_count;
  free(names);
  free(numbers);
}

static void decode_module(struct sim_decoder *decoder) {
  struct ptx_unit *unit = decoder->unit;
  struct sim_module *module = decoder->module;
  if (unit->address_size != 0 && unit->address_size != 64)
    sim_fail(decoder, "only '.address_size 64' is supported");
  if (unit->target && strncmp(unit->target, "sm_", 3) == 0) module->target = atoi(unit->target + 3);
  sim_constant(decoder, 0, 0, 128); // sim_zero
  copy_locs(decoder);
  open_scope(decoder, 0);
  declare_functions(decoder);
  for (const struct ptx_variable *variable = unit->variables; variable; variable = variable->next) {
    if (strcmp(variable->space, "reg") == 0 || strcmp(variable->space, "local") == 0 ||
        strcmp(variable->space, "param") == 0) {
      sim_fail_at(decoder, variable->place, ".%s variables belong into a function", variable->space);
    }
    declare_variable(decoder, variable, &decoder->global);
  }
  for (const struct ptx_function *function = unit->functions; function; function = function->next) {
    if (!function->has_body) continue;
    struct sim_symbol *symbol = sim_table_find(&decoder->global, 0, function->name, strlen(function->name));
    decoder->function_index = (uint32_t)symbol->value;
    decode_function(decoder, function);
  }
}

static void decoder_free(struct sim_decoder *decoder) {
  reset_function(decoder);
  free(decoder->local.symbols);
  free(decoder->local.buckets);
  free(decoder->global.symbols);
  free(decoder->global.buckets);
  free(decoder->parents);
  free(decoder->constant_buckets);
}

struct sim_module *sim_module_parse(const char *text, size_t length, const char *name,
                                    struct sim_error *error) {
  struct sim_error unused;
  if (!error) error = &unused;
  memset(error, 0, sizeof *error);
  struct ptx_unit *unit = ptx_read(text, length, error);
  if (!unit) return NULL;
  struct sim_decoder *decoder = calloc(1, sizeof *decoder);
  struct sim_module *module = calloc(1, sizeof *module);
  if (module) module->name = strdup(name ? name : "ptx");
  if (!decoder || !module || !module->name) {
    ptx_fail(unit, (struct ptx_place){0, 0}, "out of memory");
  } else {
    decoder->unit = unit;
    decoder->module = module;
    if (setjmp(decoder->out) == 0) {
      decode_module(decoder);
      if (!sim_module_measure(module)) ptx_fail(unit, (struct ptx_place){0, 0}, "out of memory");
    }
    decoder_free(decoder);
  }
  free(decoder);
  if (unit->failed) {
    sim_module_destroy(module);
    module = NULL;
  }
  ptx_unit_free(unit);
  return module;
}
