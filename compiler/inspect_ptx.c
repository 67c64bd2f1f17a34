// The reader of the simulator gives the syntax of any PTX, also of instructions that the simulator cannot run. What is known of registers is
// found in one pass over a function, in the order of the text: constants, and what came from activemask or depends on the thread.
#include "compiler/inspect_ptx.h"

#include "compiler/json.h"
#include "runtime/sim/ptx.h"
#include "runtime/sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32 };

enum register_flag {
  FROM_ACTIVEMASK = 1,
  OF_THREAD = 2, // differs between threads, or may: a coordinate, what memory or another lane gave
  IS_CONSTANT = 4,
  IS_MANY = 8, // written in several places
};
struct known_register {
  unsigned flags;
  uint64_t value;
};

struct ptx_line {
  uint32_t line;
  const char *op;    // "shfl.sync.down.b32"
  const char *mask;  // as written, of a warp's collective; NULL: it has none
  bool is_known;     // the mask's value
  uint32_t value;
  const char *guard; // "@%p1", "@!%p1"; NULL: none
  uint32_t bytes;    // of an access, a lane; 0: not said by its type
};

struct ptx_part { // parameter or shared variable
  const char *type, *name;
  uint64_t bytes;
  bool is_open; // its bytes are given at launch
};

struct ptx_entry {
  const char *name;
  uint32_t line;
  uint64_t block[3], most_threads, least_blocks, most_registers; // 0: not said
  bool is_required; // block: exactly that, not at most
  int registers;    // that ptxas gives each thread; 0: not known
  struct list parameters, shared;               // struct ptx_part
  struct list collectives, accesses, loops;     // struct ptx_line; a loop: where it ends, and its label
};

struct inspector {
  struct diag *diag;
  struct arena *arena;
  uint32_t file;
  struct map registers; // struct known_register
  struct map labels;    // struct ptx_statement
  struct ptx_entry *entry; // NULL: in a function
};

static bool is_any(const char *text, const char *const *of, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(text, of[i]) == 0) return true;
  return false;
}
#define IS_ANY(text, ...) is_any(text, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static bool has_dot(const struct ptx_dot *dots, const char *text) {
  for (; dots; dots = dots->next)
    if (strcmp(dots->text, text) == 0) return true;
  return false;
}

// "shfl" with ".sync", ".down", ".b32".
static const char *op_text(struct arena *arena, const char *opcode, const struct ptx_dot *dots) {
  struct text text = {0};
  text_puts(&text, opcode);
  for (; dots; dots = dots->next) text_printf(&text, ".%s", dots->text);
  const char *copy = arena_strndup(arena, text.data, text.length);
  text_free(&text);
  return copy;
}

// The bytes of the last type among the modifiers, times the vector's length.
static uint32_t bytes_of(const struct ptx_dot *dots) {
  uint32_t bits = 0, length = 1;
  for (; dots; dots = dots->next) {
    const char *at = dots->text;
    if (*at == 'v' && at[1] >= '2' && at[1] <= '8' && !at[2]) length = (uint32_t)(at[1] - '0');
    if (!*at || !strchr("bsuf", *at)) {
      if (strcmp(at, "bf16") != 0) continue;
      at++;
    }
    char *end;
    long width = strtol(at + 1, &end, 10);
    if (end != at + 1 && !*end && (width == 8 || width == 16 || width == 32 || width == 64 || width == 128)) bits = (uint32_t)width;
  }
  return bits / 8 * length;
}

static struct range range_of(const struct inspector *inspector, struct ptx_place place, size_t length) {
  uint32_t line = place.line > 0 ? (uint32_t)place.line : 1, column = place.column > 0 ? (uint32_t)place.column : 1;
  return (struct range){line, column, line, column + (uint32_t)length, inspector->file};
}

// --- Registers

static struct known_register know(struct inspector *inspector, const struct ptx_operand *operand) {
  struct known_register known = {0};
  if (!operand) return known;
  if (operand->kind == PTX_INTEGER) return (struct known_register){IS_CONSTANT, operand->value};
  if (operand->kind == PTX_NAME) {
    if (IS_ANY(operand->text, "%tid", "%laneid", "%warpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge"))
      known.flags = OF_THREAD;
    const struct known_register *found = map_get(&inspector->registers, operand->text);
    return found ? *found : known;
  }
  for (const struct ptx_operand *item = operand->items; item; item = item->next) known.flags |= know(inspector, item).flags & ~(unsigned)IS_CONSTANT;
  return known;
}

static void learn(struct inspector *inspector, const struct ptx_operand *to, struct known_register value) {
  if (to && to->kind != PTX_NAME) {
    value.flags &= ~(unsigned)IS_CONSTANT;
    for (const struct ptx_operand *item = to->items; item; item = item->next) learn(inspector, item, value);
    return;
  }
  if (!to || !to->text) return;
  struct known_register *known = map_get(&inspector->registers, to->text);
  if (known) {
    known->flags = ((known->flags | value.flags) & ~(unsigned)IS_CONSTANT) | IS_MANY;
    return;
  }
  known = arena_new(inspector->arena, struct known_register);
  *known = value;
  map_set(&inspector->registers, to->text, known);
}

// The result of integer arithmetic of constants.
static bool fold(const char *opcode, uint64_t a, uint64_t b, uint64_t *out) {
  if (strcmp(opcode, "mov") == 0 || strcmp(opcode, "cvt") == 0) *out = a;
  else if (strcmp(opcode, "and") == 0) *out = a & b;
  else if (strcmp(opcode, "or") == 0) *out = a | b;
  else if (strcmp(opcode, "xor") == 0) *out = a ^ b;
  else if (strcmp(opcode, "not") == 0) *out = ~a;
  else if (strcmp(opcode, "add") == 0) *out = a + b;
  else if (strcmp(opcode, "sub") == 0) *out = a - b;
  else if (strcmp(opcode, "shl") == 0) *out = b < 32 ? a << b : 0;
  else if (strcmp(opcode, "shr") == 0) *out = b < 32 ? (uint32_t)a >> b : 0;
  else return false;
  return true;
}

static void learn_result(struct inspector *inspector, const struct ptx_instruction *instruction) {
  const struct ptx_operand *to = instruction->operands;
  struct known_register result = {0}, first = {0}, second = {0};
  if (!to || IS_ANY(instruction->opcode, "st", "bra", "bar", "barrier", "ret", "red", "call", "membar", "fence")) return;
  bool constant = to->next != NULL;
  for (const struct ptx_operand *operand = to->next; operand; operand = operand->next) {
    struct known_register known = know(inspector, operand);
    if (operand == to->next) first = known;
    else second = known;
    constant = constant && known.flags & IS_CONSTANT;
    result.flags |= known.flags & (FROM_ACTIVEMASK | OF_THREAD);
  }
  if (constant && !instruction->guard && fold(instruction->opcode, first.value, second.value, &result.value)) result.flags |= IS_CONSTANT;
  if (strcmp(instruction->opcode, "activemask") == 0) result.flags = FROM_ACTIVEMASK | OF_THREAD;
  if (strcmp(instruction->opcode, "vote") == 0 || strcmp(instruction->opcode, "match") == 0) result.flags = 0; // the same in all lanes that are named
  if (IS_ANY(instruction->opcode, "atom", "shfl")) result.flags = OF_THREAD;
  learn(inspector, to, result);
}

// --- Instructions

static struct ptx_line *add(struct inspector *inspector, struct list *to, const struct ptx_statement *statement) {
  const struct ptx_instruction *instruction = statement->instruction;
  struct ptx_line *line = arena_new(inspector->arena, struct ptx_line);
  line->line = (uint32_t)statement->place.line;
  line->op = op_text(inspector->arena, instruction->opcode, instruction->modifiers);
  if (instruction->guard) line->guard = arena_printf(inspector->arena, "@%s%s", instruction->guard_is_negated ? "!" : "", instruction->guard);
  if (inspector->entry) list_push(inspector->arena, to, line);
  return line;
}

static const struct ptx_operand *last_operand(const struct ptx_instruction *instruction) {
  const struct ptx_operand *operand = instruction->operands;
  while (operand && operand->next) operand = operand->next;
  return operand;
}

// The threads of the block where the entry says exactly how many; 0: it does not.
static uint64_t exact_threads(const struct ptx_entry *entry) {
  return entry && entry->is_required ? entry->block[0] * entry->block[1] * entry->block[2] : 0;
}

static void check_mask(struct inspector *inspector, struct ptx_line *line, struct range range, const struct ptx_operand *mask) {
  struct known_register known = know(inspector, mask);
  uint64_t threads = exact_threads(inspector->entry);
  uint32_t exists = threads && threads < WARP ? (1u << threads) - 1 : UINT32_MAX;
  line->mask = !mask                          ? NULL
               : mask->kind == PTX_INTEGER ? arena_printf(inspector->arena, "0x%08" PRIx32, (uint32_t)mask->value)
               : mask->text                   ? mask->text
                                              : "?";
  line->is_known = known.flags & IS_CONSTANT;
  line->value = (uint32_t)known.value;
  if (known.flags & FROM_ACTIVEMASK)
    diag_warning(inspector->diag, 0, range, "%s: its mask comes from activemask, which does not say which lanes must arrive [activemask]", line->op);
  if (line->is_known && !line->value)
    diag_warning(inspector->diag, 0, range, "%s: its mask names no lane, and so not the one that executes it [mask-lane]", line->op);
  else if (line->is_known && line->value & ~exists)
    diag_warning(inspector->diag, 0, range, "%s: the mask 0x%08" PRIx32 " names lane %d, which a block of %" PRIu64 " threads does not have [mask-lane]", line->op,
                 line->value, __builtin_ctz(line->value & ~exists), threads);
}

static void read_collective(struct inspector *inspector, const struct ptx_statement *statement) {
  const struct ptx_instruction *instruction = statement->instruction;
  struct ptx_line *line = add(inspector, inspector->entry ? &inspector->entry->collectives : NULL, statement);
  struct range range = range_of(inspector, statement->place, strlen(instruction->opcode));
  bool is_block = IS_ANY(instruction->opcode, "bar", "barrier") && !has_dot(instruction->modifiers, "warp");
  const struct ptx_operand guard = {.kind = PTX_NAME, .text = instruction->guard};
  bool is_divergent = instruction->guard && know(inspector, &guard).flags & OF_THREAD;
  if (is_block) {
    if (is_divergent && !has_dot(instruction->modifiers, "arrive"))
      diag_warning(inspector->diag, 0, range, "%s under '%s', which can differ between threads of the block [divergent-collective]", line->op, line->guard);
    return;
  }
  if (!has_dot(instruction->modifiers, "sync")) {
    diag_warning(inspector->diag, 0, range, "%s has no mask: warp instructions without .sync have no defined lanes since sm_70 [legacy-shuffle]", line->op);
    return;
  }
  check_mask(inspector, line, range, last_operand(instruction));
  if (is_divergent && line->is_known && line->value == UINT32_MAX)
    diag_warning(inspector->diag, 0, range, "%s of all lanes under '%s', which can differ between them [divergent-collective]", line->op, line->guard);
}

static void read_access(struct inspector *inspector, const struct ptx_statement *statement) {
  const struct ptx_instruction *instruction = statement->instruction;
  if (!inspector->entry || has_dot(instruction->modifiers, "param") || has_dot(instruction->modifiers, "const")) return;
  struct ptx_line *line = add(inspector, &inspector->entry->accesses, statement);
  line->bytes = bytes_of(instruction->modifiers);
}

// A branch back to a label; the last of several ends the loop.
static void add_loop(struct inspector *inspector, const struct ptx_statement *start, uint32_t end) {
  struct list *loops = &inspector->entry->loops;
  for (uint32_t i = 0; i < loops->count; i++) {
    struct ptx_line *known = list_at(loops, struct ptx_line, i);
    if (known->line != (uint32_t)start->place.line) continue;
    known->value = end;
    return;
  }
  struct ptx_line *line = arena_new(inspector->arena, struct ptx_line);
  *line = (struct ptx_line){.line = (uint32_t)start->place.line, .op = start->label, .value = end};
  list_push(inspector->arena, loops, line);
}

static void read_statement(struct inspector *inspector, const struct ptx_statement *statement) {
  struct arena *arena = inspector->arena;
  if (statement->kind == PTX_LABEL) {
    map_set(&inspector->labels, statement->label, (void *)(uintptr_t)statement);
  } else if (statement->kind == PTX_VARIABLE) {
    for (const struct ptx_variable *variable = statement->variables; variable && inspector->entry; variable = variable->next) {
      if (strcmp(variable->space, "shared") != 0) continue;
      struct ptx_part *part = arena_new(arena, struct ptx_part);
      *part = (struct ptx_part){op_text(arena, "", variable->dots), variable->name, bytes_of(variable->dots) * variable->elements, variable->is_open_array};
      list_push(arena, &inspector->entry->shared, part);
    }
  } else if (statement->kind == PTX_INSTRUCTION) {
    const struct ptx_instruction *instruction = statement->instruction;
    const struct ptx_operand *to = instruction->operands;
    if (IS_ANY(instruction->opcode, "shfl", "vote", "match", "redux", "bar", "barrier", "elect")) read_collective(inspector, statement);
    if (IS_ANY(instruction->opcode, "ld", "st", "atom", "red", "cp", "ldu")) read_access(inspector, statement);
    if (strcmp(instruction->opcode, "bra") == 0 && inspector->entry && to && to->text) {
      const struct ptx_statement *start = map_get(&inspector->labels, to->text);
      if (start) add_loop(inspector, start, (uint32_t)statement->place.line);
    }
    learn_result(inspector, instruction);
  }
}

// --- Entries

static struct ptx_entry *new_entry(struct inspector *inspector, const struct ptx_unit *unit, const struct ptx_function *function) {
  struct arena *arena = inspector->arena;
  struct ptx_entry *entry = arena_new(arena, struct ptx_entry);
  entry->name = function->name;
  entry->line = (uint32_t)function->place.line;
  for (const struct ptx_tuning *tuning = function->tuning; tuning; tuning = tuning->next) {
    bool is_required = strcmp(tuning->text, "reqntid") == 0;
    for (int d = 0; d < 3 && (is_required || (strcmp(tuning->text, "maxntid") == 0 && !entry->is_required)); d++)
      entry->block[d] = d < tuning->count ? tuning->value[d] : 1;
    entry->is_required |= is_required;
    if (strcmp(tuning->text, "minnctapersm") == 0) entry->least_blocks = tuning->value[0];
    if (strcmp(tuning->text, "maxnreg") == 0) entry->most_registers = tuning->value[0];
  }
  for (const struct ptx_variable *parameter = function->parameters; parameter; parameter = parameter->next) {
    struct ptx_part *part = arena_new(arena, struct ptx_part);
    *part = (struct ptx_part){op_text(arena, "", parameter->dots), parameter->name, bytes_of(parameter->dots) * parameter->elements, false};
    list_push(arena, &entry->parameters, part);
  }
  for (const struct ptx_variable *variable = unit->variables; variable; variable = variable->next) {
    if (strcmp(variable->space, "shared") != 0) continue;
    struct ptx_part *part = arena_new(arena, struct ptx_part);
    *part = (struct ptx_part){op_text(arena, "", variable->dots), variable->name, bytes_of(variable->dots) * variable->elements, variable->is_open_array};
    list_push(arena, &entry->shared, part);
  }
  return entry;
}

// --- Printing

static bool is_same(const struct ptx_line *a, const struct ptx_line *b) {
  const char *masks[] = {a->mask ? a->mask : "", b->mask ? b->mask : ""}, *guards[] = {a->guard ? a->guard : "", b->guard ? b->guard : ""};
  bool same_mask = a->is_known && b->is_known ? a->value == b->value : strcmp(masks[0], masks[1]) == 0;
  return strcmp(a->op, b->op) == 0 && same_mask && strcmp(guards[0], guards[1]) == 0;
}

// Equal instructions together: "3 x ld.global.nc.v4.f32".
static void print_counted(struct arena *arena, const struct list *lines, const char *title, struct text *out) {
  bool *done = arena_array(arena, bool, lines->count + 1);
  if (lines->count) text_printf(out, " %s\n", title);
  for (uint32_t i = 0; i < lines->count; i++) {
    const struct ptx_line *line = list_at(lines, struct ptx_line, i);
    uint32_t count = 0;
    if (done[i]) continue;
    for (uint32_t k = i; k < lines->count; k++) {
      bool same = !done[k] && is_same(line, list_at(lines, struct ptx_line, k));
      done[k] |= same;
      count += same;
    }
    text_printf(out, "  %5" PRIu32 "    %3" PRIu32 " x %s", line->line, count, line->op);
    if (line->bytes) text_printf(out, "  %" PRIu32 " bytes a lane", line->bytes);
    if (line->mask && line->is_known) text_printf(out, "  mask 0x%08" PRIx32, line->value);
    else if (line->mask) text_printf(out, "  mask %s (not known here)", line->mask);
    text_printf(out, "%s%s\n", line->guard ? "  under " : "", line->guard ? line->guard : "");
  }
}

static void print_parts(const struct list *parts, struct text *out) {
  for (uint32_t i = 0; i < parts->count; i++) {
    const struct ptx_part *part = list_at(parts, struct ptx_part, i);
    text_printf(out, "  %s %s", part->type, part->name);
    text_printf(out, part->is_open ? "  as many bytes as the launch gives\n" : "  %" PRIu64 " bytes\n", part->bytes);
  }
}

static void print_entry(struct arena *arena, const struct ptx_entry *entry, struct text *out) {
  text_printf(out, "entry %s  (line %" PRIu32 ")\n", entry->name, entry->line);
  if (entry->block[0])
    text_printf(out, "  block %s%" PRIu64 " x %" PRIu64 " x %" PRIu64 "\n", entry->is_required ? "" : "at most ", entry->block[0], entry->block[1], entry->block[2]);
  if (entry->least_blocks) text_printf(out, "  at least %" PRIu64 " blocks a multiprocessor\n", entry->least_blocks);
  if (entry->most_registers) text_printf(out, "  at most %" PRIu64 " registers\n", entry->most_registers);
  if (entry->registers) text_printf(out, "  registers %d\n", entry->registers);
  if (entry->parameters.count) text_puts(out, " parameters\n");
  print_parts(&entry->parameters, out);
  if (entry->shared.count) text_puts(out, " shared memory\n");
  print_parts(&entry->shared, out);
  print_counted(arena, &entry->collectives, "collectives", out);
  print_counted(arena, &entry->accesses, "accesses", out);
  if (entry->loops.count) text_puts(out, " loops\n");
  for (uint32_t i = 0; i < entry->loops.count; i++) {
    const struct ptx_line *line = list_at(&entry->loops, struct ptx_line, i);
    text_printf(out, "  %5" PRIu32 "    %s to line %" PRIu32 "\n", line->line, line->op, line->value);
  }
}

static void json_lines(const struct list *lines, const char *name, struct text *out) {
  text_printf(out, ", \"%s\": [", name);
  for (uint32_t i = 0; i < lines->count; i++) {
    const struct ptx_line *line = list_at(lines, struct ptx_line, i);
    text_printf(out, "%s{\"line\": %" PRIu32 ", \"op\": ", i ? ", " : "", line->line);
    json_string(out, line->op);
    if (line->bytes) text_printf(out, ", \"bytes\": %" PRIu32, line->bytes);
    if (line->guard) text_puts(out, ", \"guard\": "), json_string(out, line->guard);
    if (line->mask) text_puts(out, ", \"mask\": "), json_string(out, line->mask);
    if (line->mask && line->is_known) text_printf(out, ", \"mask_value\": %" PRIu32, line->value);
    text_puts(out, "}");
  }
  text_puts(out, "]");
}

static void json_parts(const struct list *parts, const char *name, struct text *out) {
  text_printf(out, ", \"%s\": [", name);
  for (uint32_t i = 0; i < parts->count; i++) {
    const struct ptx_part *part = list_at(parts, struct ptx_part, i);
    text_puts(out, i ? ", {\"name\": " : "{\"name\": ");
    json_string(out, part->name);
    text_puts(out, ", \"type\": ");
    json_string(out, part->type);
    text_printf(out, ", \"bytes\": %" PRIu64 ", \"dynamic\": %s}", part->bytes, part->is_open ? "true" : "false");
  }
  text_puts(out, "]");
}

static void json_entry(const struct ptx_entry *entry, struct text *out) {
  uint64_t shared = 0;
  for (uint32_t i = 0; i < entry->shared.count; i++) shared += list_at(&entry->shared, struct ptx_part, i)->is_open ? 0 : list_at(&entry->shared, struct ptx_part, i)->bytes;
  text_puts(out, "{\"name\": ");
  json_string(out, entry->name);
  text_printf(out, ", \"line\": %" PRIu32 ", \"block\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "], \"block_required\": %s, \"bound_blocks\": %" PRIu64 ", \"shared_bytes\": %" PRIu64,
              entry->line, entry->block[0], entry->block[1], entry->block[2], entry->is_required ? "true" : "false", entry->least_blocks, shared);
  if (entry->registers) text_printf(out, ", \"registers\": %d", entry->registers);
  json_parts(&entry->parameters, "parameters", out);
  json_parts(&entry->shared, "shared", out);
  json_lines(&entry->collectives, "collectives", out);
  json_lines(&entry->accesses, "accesses", out);
  text_puts(out, ", \"loops\": [");
  for (uint32_t i = 0; i < entry->loops.count; i++) {
    const struct ptx_line *line = list_at(&entry->loops, struct ptx_line, i);
    text_printf(out, "%s{\"line\": %" PRIu32 ", \"end_line\": %" PRIu32 "}", i ? ", " : "", line->line, line->value);
  }
  text_puts(out, "]}");
}

bool inspect_ptx(struct diag *diag, uint32_t file, const char *kernel, bool json, const struct list *registers, struct text *out) {
  const struct source *source = list_at(&diag->sources, const struct source, file);
  struct sim_error error;
  struct list entries = {0};
  struct ptx_unit *unit = ptx_read(source->text, source->length, &error);
  if (!unit) {
    uint32_t line = error.line > 0 ? (uint32_t)error.line : 0, column = error.column > 0 ? (uint32_t)error.column : 1;
    diag_error(diag, ERROR_BACKEND, (struct range){line, column, line, column + 1, file}, "%s", error.message);
    return false;
  }
  for (const struct ptx_function *function = unit->functions; function; function = function->next) {
    struct inspector inspector = {.diag = diag, .arena = diag->arena, .file = file};
    if (!function->has_body || (kernel && function->is_entry && strcmp(kernel, function->name) != 0)) continue;
    map_init(&inspector.registers, diag->arena);
    map_init(&inspector.labels, diag->arena);
    if (function->is_entry) {
      inspector.entry = new_entry(&inspector, unit, function);
      for (uint32_t i = 0; i < registers->count; i++) {
        const struct inspect_registers *used = list_at(registers, struct inspect_registers, i);
        if (strcmp(used->entry, function->name) == 0) inspector.entry->registers = used->count;
      }
      list_push(diag->arena, &entries, inspector.entry);
    }
    for (const struct ptx_statement *statement = function->body; statement; statement = statement->next) read_statement(&inspector, statement);
  }
  if (json) {
    text_puts(out, "{\"file\": ");
    json_string(out, source->name);
    text_puts(out, ", \"entries\": [");
  }
  for (uint32_t i = 0; i < entries.count; i++) {
    if (i) text_puts(out, json ? ",\n" : "\n");
    if (json) json_entry(list_at(&entries, struct ptx_entry, i), out);
    else print_entry(diag->arena, list_at(&entries, struct ptx_entry, i), out);
  }
  if (json) text_puts(out, "]}\n");
  if (!entries.count) diag_error(diag, ERROR_ARGUMENT, (struct range){0}, kernel ? "'%s' has no entry '%s'" : "'%s' has no entry", source->name, kernel);
  ptx_unit_free(unit);
  return entries.count != 0;
}
