// Names, registers, constants, operands and modifiers of the instruction in hand.
#include "runtime/sim/decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sim_fail_at(struct sim_decoder *decoder, struct ptx_place place, const char *format, ...) {
  char message[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  ptx_fail(decoder->unit, place, "%s", message);
  longjmp(decoder->out, 1);
}

void sim_fail(struct sim_decoder *decoder, const char *format, ...) {
  char message[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  ptx_fail(decoder->unit, decoder->statement ? decoder->statement->place : (struct ptx_place){0, 0}, "%s",
           message);
  longjmp(decoder->out, 1);
}

void *sim_grow(struct sim_decoder *decoder, void *memory, size_t *room, size_t need, size_t size) {
  if (need <= *room) return memory;
  size_t grown = *room ? *room : 16;
  while (grown < need) {
    if (grown > SIZE_MAX / 2 / size) sim_fail(decoder, "out of memory");
    grown *= 2;
  }
  unsigned char *bytes = realloc(memory, grown * size);
  if (!bytes) sim_fail(decoder, "out of memory");
  memset(bytes + *room * size, 0, (grown - *room) * size);
  *room = grown;
  return bytes;
}

// ---- Names
// -------------------------------------------------------------------------------------------------

static uint64_t hash_name(uint32_t scope, const char *name, size_t length) {
  uint64_t hash = UINT64_C(14695981039346656037) ^ scope;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
  return sim_mix(hash);
}

struct sim_symbol *sim_table_find(const struct sim_table *table, uint32_t scope, const char *name,
                                  size_t length) {
  if (table->bucket_count == 0) return NULL;
  for (size_t at = hash_name(scope, name, length) & (table->bucket_count - 1);;
       at = (at + 1) & (table->bucket_count - 1)) {
    uint32_t found = table->buckets[at];
    if (found == 0) return NULL;
    struct sim_symbol *symbol = &table->symbols[found - 1];
    if (symbol->scope == scope && symbol->length == length && memcmp(symbol->name, name, length) == 0)
      return symbol;
  }
}

static void table_rehash(struct sim_decoder *decoder, struct sim_table *table) {
  size_t count = table->bucket_count ? 2 * table->bucket_count : 64;
  uint32_t *buckets = calloc(count, sizeof *buckets);
  if (!buckets) sim_fail(decoder, "out of memory");
  for (size_t i = 0; i < table->count; i++) {
    const struct sim_symbol *symbol = &table->symbols[i];
    size_t at = hash_name(symbol->scope, symbol->name, symbol->length) & (count - 1);
    while (buckets[at]) at = (at + 1) & (count - 1);
    buckets[at] = (uint32_t)i + 1;
  }
  free(table->buckets);
  table->buckets = buckets;
  table->bucket_count = count;
}

struct sim_symbol *sim_symbol_add(struct sim_decoder *decoder, struct sim_table *table,
                                  struct ptx_place place, const char *name, size_t length,
                                  enum sim_symbol_kind kind) {
  if (sim_table_find(table, decoder->scope, name, length)) {
    sim_fail_at(decoder, place, "'%s' is declared twice", name);
  }
  table->symbols = sim_grow(decoder, table->symbols, &table->room, table->count + 1, sizeof *table->symbols);
  struct sim_symbol *symbol = &table->symbols[table->count++];
  memset(symbol, 0, sizeof *symbol);
  symbol->name = name;
  symbol->length = length;
  symbol->scope = decoder->scope;
  symbol->kind = kind;
  if (2 * table->count > table->bucket_count) {
    table_rehash(decoder, table);
  } else {
    size_t at = hash_name(symbol->scope, name, length) & (table->bucket_count - 1);
    while (table->buckets[at]) at = (at + 1) & (table->bucket_count - 1);
    table->buckets[at] = (uint32_t)table->count;
  }
  return symbol;
}

// The symbol of a name without a number, in the function's scopes from the inside out.
static struct sim_symbol *find_exact(struct sim_decoder *decoder, const char *name, size_t length) {
  for (uint32_t scope = decoder->scope;; scope = decoder->parents[scope]) {
    struct sim_symbol *symbol = sim_table_find(&decoder->local, scope, name, length);
    if (symbol && symbol->kind != SIM_SYMBOL_RANGE) return symbol;
    if (scope == 0) break;
  }
  return NULL;
}

// The innermost declaration of a register: by its name, or as name<count> that covers its number.
static struct sim_symbol *find_register(struct sim_decoder *decoder, const char *name, uint64_t *number) {
  size_t length = strlen(name), digits = 0;
  while (digits < length && digits < 10 && name[length - digits - 1] >= '0' &&
         name[length - digits - 1] <= '9')
    digits++;
  for (uint32_t scope = decoder->scope;; scope = decoder->parents[scope]) {
    struct sim_symbol *symbol = sim_table_find(&decoder->local, scope, name, length);
    if (symbol && symbol->kind == SIM_SYMBOL_REGISTER) return symbol;
    for (size_t taken = digits; taken > 0; taken--) {
      size_t prefix = length - taken;
      if (taken > 1 && name[prefix] == '0') continue;
      symbol = sim_table_find(&decoder->local, scope, name, prefix);
      if (!symbol || symbol->kind != SIM_SYMBOL_RANGE) continue;
      *number = strtoull(name + prefix, NULL, 10);
      if (*number < symbol->count) return symbol;
    }
    if (scope == 0) return NULL;
  }
}

struct sim_symbol *sim_symbol_find(struct sim_decoder *decoder, const char *name) {
  size_t length = strlen(name);
  struct sim_symbol *symbol = find_exact(decoder, name, length);
  return symbol ? symbol : sim_table_find(&decoder->global, 0, name, length);
}

struct sim_symbol *sim_label_find(struct sim_decoder *decoder, const char *name) {
  struct sim_symbol *symbol = find_exact(decoder, name, strlen(name));
  return symbol;
}

int32_t sim_slot_new(struct sim_decoder *decoder, enum sim_type type) {
  unsigned bits = sim_type_bits(type);
  uint32_t bytes = bits == 1 ? 16 : bits <= 32 ? 4 * SIM_LANES : bits == 64 ? 8 * SIM_LANES : 16 * SIM_LANES;
  struct sim_function *function = decoder->function;
  if (function->frame_bytes > 64u << 20) sim_fail(decoder, "the function uses too many registers");
  int32_t slot = (int32_t)function->frame_bytes + SIM_HEADER;
  function->frame_bytes += SIM_HEADER + bytes;
  function->registers = sim_grow(decoder, function->registers, &decoder->register_room,
                                 function->register_count + 1, sizeof *function->registers);
  function->registers[function->register_count++] = slot;
  return slot;
}

// ---- Modifiers
// ---------------------------------------------------------------------------------------------

bool sim_take(struct sim_decoder *decoder, const char *modifier) {
  for (size_t i = 0; i < decoder->dot_count; i++) {
    if (!decoder->taken[i] && strcmp(decoder->dots[i]->text, modifier) == 0) return decoder->taken[i] = true;
  }
  return false;
}

enum sim_type sim_take_type_if(struct sim_decoder *decoder) {
  for (size_t i = 0; i < decoder->dot_count; i++) {
    if (decoder->taken[i]) continue;
    enum sim_type type = sim_type_find(decoder->dots[i]->text);
    if (type == SIM_NO_TYPE) continue;
    decoder->taken[i] = true;
    return type;
  }
  return SIM_NO_TYPE;
}

enum sim_type sim_take_type(struct sim_decoder *decoder) {
  enum sim_type type = sim_take_type_if(decoder);
  if (type == SIM_NO_TYPE)
    sim_fail(decoder, "'%s' needs a type that the simulator knows", decoder->instruction->opcode);
  return type;
}

bool sim_take_rounding(struct sim_decoder *decoder, enum sim_rounding *rounding) {
  static const char *const names[] = {"rn", "rz", "rm", "rp", "rna"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    if (!sim_take(decoder, names[i])) continue;
    *rounding = (enum sim_rounding)i;
    return true;
  }
  return false;
}

enum sim_space sim_take_space(struct sim_decoder *decoder) {
  if (sim_take(decoder, "global")) return SIM_SPACE_GLOBAL;
  if (sim_take(decoder, "shared") || sim_take(decoder, "shared::cta")) return SIM_SPACE_SHARED;
  if (sim_take(decoder, "local")) return SIM_SPACE_LOCAL;
  if (sim_take(decoder, "const")) return SIM_SPACE_CONST;
  if (sim_take(decoder, "param") || sim_take(decoder, "param::entry") || sim_take(decoder, "param::func")) {
    return SIM_SPACE_PARAM;
  }
  return SIM_SPACE_GENERIC;
}

// ---- Operands
// ----------------------------------------------------------------------------------------------

void sim_operand_count(struct sim_decoder *decoder, size_t least, size_t most) {
  size_t count = decoder->instruction->operand_count;
  if (count < least || count > most) {
    sim_fail(decoder, "'%s' has %zu operands", decoder->instruction->opcode, count);
  }
}

const struct ptx_operand *sim_operand_at(struct sim_decoder *decoder, size_t index) {
  const struct ptx_operand *operand = decoder->instruction->operands;
  for (size_t i = 0; operand && i < index; i++) operand = operand->next;
  if (!operand) sim_fail(decoder, "'%s' needs more operands", decoder->instruction->opcode);
  return operand;
}

int32_t sim_zero(void) {
  return SIM_HEADER | 1;
}

int32_t sim_constant(struct sim_decoder *decoder, uint64_t low, uint64_t high, unsigned width) {
  struct sim_module *module = decoder->module;
  if (2 * (decoder->constant_count + 1) > decoder->constant_bucket_count) {
    // Buckets hold offsets; the constants themselves carry value and width in lane 0 and the header.
    size_t count = decoder->constant_bucket_count ? 2 * decoder->constant_bucket_count : 64;
    uint32_t *buckets = calloc(count, sizeof *buckets);
    if (!buckets) sim_fail(decoder, "out of memory");
    for (size_t i = 0; i < decoder->constant_bucket_count; i++) {
      uint32_t offset = decoder->constant_buckets[i];
      if (offset == 0) continue;
      uint64_t key[2];
      memcpy(key, module->constants + offset - SIM_HEADER, 8);
      size_t at = sim_mix(key[0]) & (count - 1);
      while (buckets[at]) at = (at + 1) & (count - 1);
      buckets[at] = offset;
    }
    free(decoder->constant_buckets);
    decoder->constant_buckets = buckets;
    decoder->constant_bucket_count = count;
  }
  if (width < 64) low &= width == 1 ? 1 : 0xffffffffu;
  if (width < 128) high = 0;
  // The first 8 bytes of the header keep a fingerprint for look-ups.
  uint64_t key = sim_mix(sim_mix(low + width * UINT64_C(0x9e3779b97f4a7c15)) ^ high);
  size_t lane_bytes = width == 1 ? 0 : width / 8, bytes = width == 1 ? 16 : lane_bytes * SIM_LANES;
  uint64_t pair[2] = {low, high};
  uint32_t truth = low ? SIM_FULL : 0;
  size_t at = sim_mix(key) & (decoder->constant_bucket_count - 1);
  for (; decoder->constant_buckets[at]; at = (at + 1) & (decoder->constant_bucket_count - 1)) {
    const unsigned char *slot = module->constants + decoder->constant_buckets[at];
    if (memcmp(slot - SIM_HEADER, &key, 8) != 0) continue;
    if (width == 1 ? memcmp(slot, &truth, 4) == 0 : memcmp(slot, pair, lane_bytes) == 0) {
      return (int32_t)decoder->constant_buckets[at] | 1;
    }
  }
  if (module->constant_bytes > 1u << 30) sim_fail(decoder, "too many constants");
  module->constants = sim_grow(decoder, module->constants, &decoder->constant_room,
                               module->constant_bytes + SIM_HEADER + bytes, 1);
  size_t offset = module->constant_bytes + SIM_HEADER;
  memcpy(module->constants + offset - SIM_HEADER, &key, 8);
  if (width == 1) {
    memcpy(module->constants + offset, &truth, 4);
  } else {
    for (unsigned l = 0; l < SIM_LANES; l++)
      memcpy(module->constants + offset + l * lane_bytes, pair, lane_bytes);
  }
  module->constant_bytes += SIM_HEADER + bytes;
  decoder->constant_buckets[at] = (uint32_t)offset;
  decoder->constant_count++;
  return (int32_t)offset | 1;
}

int32_t sim_carry(struct sim_decoder *decoder) {
  if (!decoder->carry) decoder->carry = sim_slot_new(decoder, SIM_PRED);
  return decoder->carry;
}

// A register by name: its slot and declared type. NULL type when the name is no register.
static int32_t register_slot(struct sim_decoder *decoder, const struct ptx_operand *operand,
                             enum sim_type *type) {
  *type = SIM_NO_TYPE;
  if (operand->kind != PTX_NAME || operand->value != 0) return 0;
  uint64_t number = 0;
  struct sim_symbol *symbol = find_register(decoder, operand->text, &number);
  if (!symbol) return 0;
  *type = symbol->type;
  uint32_t part = 0;
  if (symbol->vector > 1) {
    static const char names[] = "xyzw", others[] = "rgba";
    const char *at =
        operand->component && operand->component[1] == 0 ? strchr(names, operand->component[0]) : NULL;
    if (!at && operand->component && operand->component[1] == 0 &&
        (at = strchr(others, operand->component[0]))) {
      at = names + (at - others);
    }
    if (!at || !*at || (part = (uint32_t)(at - names)) >= symbol->vector) {
      sim_fail_at(decoder, operand->place, "'%s' is a vector of %u: name one component", operand->text,
                  symbol->vector);
    }
  } else if (operand->component) {
    sim_fail_at(decoder, operand->place, "'%s' is no vector", operand->text);
  }
  int32_t *slot =
      symbol->slots ? &symbol->slots[number * (symbol->vector ? symbol->vector : 1) + part] : &symbol->slot;
  if (*slot == 0) *slot = sim_slot_new(decoder, symbol->type);
  return *slot;
}

// A special register's slot, or 0.
static int32_t special_slot(struct sim_decoder *decoder, const struct ptx_operand *operand) {
  if (operand->kind != PTX_NAME || operand->text[0] != '%' || operand->value != 0) return 0;
  static const char *const names[] = {
#define SIM_SPECIAL(special, name) name,
#include "runtime/sim/special.def"
#undef SIM_SPECIAL
  };
  char text[64];
  snprintf(text, sizeof text, "%s%s%s", operand->text, operand->component ? "." : "",
           operand->component ? operand->component : "");
  for (int32_t i = 0; i < SIM_SPECIALS; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    decoder->module->special_mask |= UINT64_C(1) << i;
    return (i * SIM_SPECIAL_BYTES + SIM_HEADER) | 2;
  }
  return 0;
}

static unsigned width_of(enum sim_type type) {
  unsigned bits = sim_type_bits(type);
  return bits == 1 ? 1 : bits <= 32 ? 32 : bits;
}

bool sim_is_register(struct sim_decoder *decoder, const struct ptx_operand *operand) {
  uint64_t number;
  return operand->kind == PTX_NAME && operand->value == 0 && find_register(decoder, operand->text, &number);
}

#if defined __GNUC__
__attribute__((noreturn))
#endif
static void
fail_width(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type found,
           enum sim_type wanted) {
  sim_fail_at(decoder, operand->place, "'%s': '%s' is a .%s register where a .%s value belongs",
              decoder->instruction->opcode, operand->text, sim_type_name(found), sim_type_name(wanted));
}

// The bits of a constant operand as a value of `type`.
static int32_t constant_of(struct sim_decoder *decoder, const struct ptx_operand *operand,
                           enum sim_type type) {
  unsigned bits = sim_type_bits(type);
  uint64_t value = operand->value;
  if (operand->kind == PTX_F64 && bits == 32) {
    double wide;
    memcpy(&wide, &value, 8);
    float narrow = (float)wide;
    uint32_t word;
    memcpy(&word, &narrow, 4);
    value = word;
  } else if (operand->kind == PTX_F32 && bits == 64) {
    uint32_t word = (uint32_t)value;
    float narrow;
    memcpy(&narrow, &word, 4);
    double wide = narrow;
    memcpy(&value, &wide, 8);
  } else if (operand->kind != PTX_INTEGER && bits < 32) {
    sim_fail_at(decoder, operand->place, "a float constant where a .%s value belongs", sim_type_name(type));
  } else if (operand->kind == PTX_INTEGER && (type == SIM_F32 || type == SIM_F64)) {
    sim_fail_at(decoder, operand->place, "an integer constant where a .%s value belongs",
                sim_type_name(type));
  }
  if (bits < 32 && bits > 1) value &= (UINT64_C(1) << bits) - 1;
  uint64_t high = bits == 128 && sim_type_kind(type) != SIM_KIND_F && (int64_t)value < 0 ? UINT64_MAX : 0;
  return sim_constant(decoder, value, high, width_of(type));
}

int32_t sim_source_of(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type) {
  enum sim_type declared;
  switch (operand->kind) {
  case PTX_INTEGER:
  case PTX_F32:
  case PTX_F64: return constant_of(decoder, operand, type);
  case PTX_NAME: {
    int32_t slot = register_slot(decoder, operand, &declared);
    if (slot) {
      if (width_of(declared) != width_of(type)) fail_width(decoder, operand, declared, type);
      return slot;
    }
    slot = special_slot(decoder, operand);
    if (slot) {
      if (width_of(type) != 32) fail_width(decoder, operand, SIM_U32, type);
      return slot;
    }
    if (strcmp(operand->text, "WARP_SZ") == 0) return sim_constant(decoder, SIM_LANES, 0, width_of(type));
    sim_fail_at(decoder, operand->place, "'%s' is no register that is declared here", operand->text);
  }
  case PTX_LIST:
    if (operand->items && operand->items->count == 1) return sim_source_of(decoder, operand->items, type);
    break;
  case PTX_ADDRESS:
  case PTX_NOT:
  case PTX_PAIR:
  case PTX_GENERIC: break;
  }
  sim_fail_at(decoder, operand->place, "an operand of '%s' is of the wrong kind",
              decoder->instruction->opcode);
}

int32_t sim_source(struct sim_decoder *decoder, size_t index, enum sim_type type) {
  return sim_source_of(decoder, sim_operand_at(decoder, index), type);
}

static bool is_sink(const struct ptx_operand *operand) {
  return operand->kind == PTX_NAME && strcmp(operand->text, "_") == 0;
}

static int32_t sink_slot(struct sim_decoder *decoder, enum sim_type type) {
  unsigned width = width_of(type), index = width == 1 ? 0 : width == 32 ? 1 : width == 64 ? 2 : 3;
  if (!decoder->sinks[index]) decoder->sinks[index] = sim_slot_new(decoder, type);
  return decoder->sinks[index];
}

int32_t sim_result_of(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type) {
  if (is_sink(operand)) return sink_slot(decoder, type);
  enum sim_type declared;
  int32_t slot = register_slot(decoder, operand, &declared);
  if (!slot) {
    sim_fail_at(decoder, operand->place, "the result of '%s' needs a register that is declared here",
                decoder->instruction->opcode);
  }
  if (width_of(declared) != width_of(type)) fail_width(decoder, operand, declared, type);
  return slot;
}

int32_t sim_result(struct sim_decoder *decoder, size_t index, enum sim_type type) {
  return sim_result_of(decoder, sim_operand_at(decoder, index), type);
}

int32_t sim_register_loose(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type,
                           uint8_t *width, enum sim_type *declared) {
  if (is_sink(operand)) {
    *width = (uint8_t)width_of(type);
    *declared = type;
    return sink_slot(decoder, type);
  }
  int32_t slot = register_slot(decoder, operand, declared);
  if (!slot) {
    sim_fail_at(decoder, operand->place, "an operand of '%s' needs a register that is declared here",
                decoder->instruction->opcode);
  }
  *width = (uint8_t)width_of(*declared);
  if (*width == 1 || sim_type_bits(*declared) < sim_type_bits(type))
    fail_width(decoder, operand, *declared, type);
  return slot;
}

int32_t sim_predicate(struct sim_decoder *decoder, const struct ptx_operand *operand, bool *is_negated) {
  *is_negated = operand->kind == PTX_NOT;
  return sim_source_of(decoder, *is_negated ? operand->items : operand, SIM_PRED);
}

uint64_t sim_immediate(struct sim_decoder *decoder, size_t index) {
  const struct ptx_operand *operand = sim_operand_at(decoder, index);
  if (operand->kind != PTX_INTEGER) {
    sim_fail_at(decoder, operand->place, "an operand of '%s' must be an integer constant",
                decoder->instruction->opcode);
  }
  return operand->value;
}

uint32_t sim_list(struct sim_decoder *decoder, const int32_t *items, size_t count) {
  struct sim_module *module = decoder->module;
  module->lists = sim_grow(decoder, module->lists, &decoder->list_room, module->list_count + count,
                           sizeof *module->lists);
  uint32_t first = (uint32_t)module->list_count;
  for (size_t i = 0; i < count; i++) module->lists[first + i] = items[i];
  module->list_count += count;
  return first;
}

// Puts a variable's address into the op: the space must be the one the instruction names, if it names one.
static void address_symbol(struct sim_decoder *decoder, const struct ptx_operand *operand) {
  struct sim_op *op = decoder->op;
  struct sim_symbol *symbol = sim_symbol_find(decoder, operand->text);
  enum sim_space space = SIM_SPACE_GENERIC;
  if (symbol && symbol->kind == SIM_SYMBOL_VARIABLE) {
    op->symbol = (uint32_t)symbol->value;
    space = decoder->module->variables[symbol->value].space;
  } else if (symbol && symbol->kind == SIM_SYMBOL_FRAME) {
    op->is_framed = true;
    op->immediate += symbol->value;
    space = SIM_SPACE_LOCAL;
  } else if (symbol && symbol->kind == SIM_SYMBOL_PARAMETER) {
    op->immediate += symbol->value;
    space = SIM_SPACE_PARAM;
  } else {
    sim_fail_at(decoder, operand->place, "'%s' is no register or variable that is declared here",
                operand->text);
  }
  if (op->space == SIM_SPACE_GENERIC) op->space = (uint8_t)space;
  bool is_same = op->space == space || (op->space == SIM_SPACE_PARAM && space == SIM_SPACE_LOCAL) ||
                 (op->space == SIM_SPACE_GLOBAL && space == SIM_SPACE_CONST);
  if (!is_same) sim_fail_at(decoder, operand->place, "'%s' lies in another state space", operand->text);
  op->space = (uint8_t)space;
}

void sim_address(struct sim_decoder *decoder, size_t index) {
  const struct ptx_operand *operand = sim_operand_at(decoder, index);
  struct sim_op *op = decoder->op;
  if (operand->kind != PTX_ADDRESS) {
    sim_fail_at(decoder, operand->place, "'%s' needs an address in brackets", decoder->instruction->opcode);
  }
  op->a = sim_zero();
  op->address_width = 64;
  op->immediate = operand->value;
  if (operand->items) {
    enum sim_type declared;
    int32_t slot = register_slot(decoder, operand->items, &declared);
    if (!slot) {
      address_symbol(decoder, operand->items);
    } else {
      unsigned width = width_of(declared);
      if (sim_type_bits(declared) < 32 || width > 64) fail_width(decoder, operand->items, declared, SIM_U64);
      op->a = slot;
      op->address_width = (uint8_t)width;
    }
  }
  if (!decoder->function->is_entry && op->space == SIM_SPACE_PARAM) op->space = SIM_SPACE_LOCAL;
}
