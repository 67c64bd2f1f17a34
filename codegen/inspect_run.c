// redc inspect: one block of a kernel, all its threads at once, integers only.
//
// Statements run in order for a mask of threads. A condition that is known splits the mask. One that is not runs both ways with
// all threads and merges what they assigned; where it also differs between threads, collectives inside are findings. A loop runs
// round by round while its condition is known; otherwise twice, once as it begins and once with what it assigns made unknown.
#include "codegen/inspect_report.h"
#include "codegen/inspect_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 64, MAX_STEPS = 400000, MAX_DEPTH = 200, MAX_SHARED_BYTES = 256 * 1024 };

// The last accesses of four bytes of shared memory, for races. Threads are counted from 1.
struct shadow_word {
  uint16_t writer, reader;
  bool many_readers;
  uint32_t write_block, write_warp, read_block, read_warp; // barriers passed by then
  struct range write_range, read_range;
};

struct frame {
  uint8_t *returned;
  struct value *result;
};
struct loop_exits {
  uint8_t *broke, *continued;
};

struct run {
  struct diag *diag;
  struct arena *arena;
  const struct inspect_sizes *sizes;
  struct kernel_report *report;
  struct values values;
  uint32_t threads;
  struct value **variables; // by number; NULL: not assigned yet
  uint32_t variable_count;
  struct shadow_word **shadows; // of shared variables, by number
  uint32_t block_barriers;
  uint32_t warp_barriers[INSPECT_MAX_WARPS];
  struct frame *frame;
  struct loop_exits *loop;
  uint32_t steps, depth, conditions; // conditions: enclosing ones that are not known
  const struct range *warp_differs, *block_differs; // the innermost unknown condition that differs inside a warp, a block
  const struct range *may_have_left;               // a return that some threads may have taken
};

static uint8_t *copy_mask(struct run *run, const uint8_t *mask) {
  uint8_t *copy = arena_array(run->arena, uint8_t, run->threads);
  memcpy(copy, mask, run->threads);
  return copy;
}

static bool is_empty(const struct run *run, const uint8_t *mask) { return !memchr(mask, 1, run->threads); }

// --- Findings

static void find(struct run *run, enum finding_kind kind, struct range range, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void find(struct run *run, enum finding_kind kind, struct range range, const char *format, ...) {
  struct list *findings = &run->report->findings;
  if (run->report->is_incomplete || run->values.is_full) return;
  for (uint32_t i = 0; i < findings->count; i++) {
    const struct finding *known = list_at(findings, struct finding, i);
    if (known->kind == kind && known->range.line == range.line && known->range.column == range.column) return;
  }
  struct finding *finding = arena_new(run->arena, struct finding);
  va_list arguments;
  va_start(arguments, format);
  *finding = (struct finding){kind, range, arena_vprintf(run->arena, format, arguments)};
  va_end(arguments);
  list_push(run->arena, findings, finding);
}

// --- Memory

static struct inspect_access *access_of(struct run *run, struct range range, bool writes) {
  struct list *accesses = &run->report->accesses;
  for (uint32_t i = 0; i < accesses->count; i++) {
    struct inspect_access *known = list_at(accesses, struct inspect_access, i);
    if (known->range.line == range.line && known->range.column == range.column && known->range.end_column == range.end_column &&
        known->writes == writes)
      return known;
  }
  struct inspect_access *access = arena_new(run->arena, struct inspect_access);
  access->range = range;
  list_push(run->arena, accesses, access);
  return access;
}

static int compare_integers(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// Distinct values of `all`.
static uint32_t count_distinct(int64_t *all, uint32_t count) {
  uint32_t distinct = 0;
  qsort(all, count, sizeof *all, compare_integers);
  for (uint32_t i = 0; i < count; i++) distinct += i == 0 || all[i] != all[i - 1];
  return distinct;
}

static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static void count_sectors(struct inspect_access *access, int64_t lowest) {
  int64_t sectors[INSPECT_WARP * 2], bytes[INSPECT_WARP];
  uint32_t count = 0, lanes = 0;
  for (uint32_t lane = 0; lane < INSPECT_WARP; lane++) {
    if (!(access->lanes >> lane & 1)) continue;
    int64_t at = access->offsets[lane] + lowest, last = at + (int64_t)access->bytes - 1;
    sectors[count++] = floor_divide(at, 32);
    sectors[count++] = floor_divide(last, 32);
    bytes[lanes++] = at;
  }
  access->sectors = count_distinct(sectors, count);
  access->least_sectors = (count_distinct(bytes, lanes) * access->bytes + 31) / 32;
}

// How often the banks are passed over for lanes `from` to `to`: the most distinct words of one bank.
static uint32_t count_conflicts(const struct inspect_access *access, int64_t lowest, uint32_t from, uint32_t to) {
  uint32_t most = 1;
  for (int64_t bank = 0; bank < 32; bank++) {
    int64_t words[INSPECT_WARP * 4];
    uint32_t count = 0;
    for (uint32_t lane = from; lane < to; lane++) {
      if (!(access->lanes >> lane & 1)) continue;
      int64_t at = access->offsets[lane] + lowest;
      for (int64_t word = floor_divide(at, 4); word <= floor_divide(at + (int64_t)access->bytes - 1, 4) && count < INSPECT_WARP * 4; word++)
        if ((word % 32 + 32) % 32 == bank) words[count++] = word;
    }
    uint32_t distinct = count ? count_distinct(words, count) : 0;
    if (distinct > most) most = distinct;
  }
  return most;
}

static void measure_access(struct run *run, struct inspect_access *access, int64_t lowest) {
  if (access->space == SPACE_SHARED) {
    // Lanes are served in halves or quarters where an access is wider than four bytes.
    uint32_t together = access->bytes <= 4 ? 32 : access->bytes <= 8 ? 16 : 8;
    access->conflicts = 1;
    for (uint32_t lane = 0; lane < INSPECT_WARP; lane += together) {
      uint32_t found = count_conflicts(access, lowest, lane, lane + together);
      if (found > access->conflicts) access->conflicts = found;
    }
    if (access->conflicts > 1)
      find(run, FINDING_BANK_CONFLICT, access->range, "%s: %" PRIu32 " lanes of a warp meet in one bank", access->text, access->conflicts);
    return;
  }
  count_sectors(access, lowest);
  if (!access->is_atomic && access->sectors >= 2 * access->least_sectors && access->sectors > 2)
    find(run, FINDING_UNCOALESCED, access->range, "%s: a warp touches %" PRIu32 " sectors of 32 bytes; %" PRIu32 " hold as much", access->text,
         access->sectors, access->least_sectors);
}

// Fills the record from the first warp with most lanes.
static void record_access(struct run *run, struct inspect_access *access, const struct value *address, const uint8_t *mask) {
  uint32_t best = 0, best_lanes = 0;
  for (uint32_t warp = 0; warp * 32 < run->threads; warp++) {
    uint32_t lanes = 0;
    for (uint32_t t = warp * 32; t < warp * 32 + 32 && t < run->threads; t++) lanes |= (uint32_t)mask[t] << (t % 32);
    if (__builtin_popcount(lanes) > __builtin_popcount(best_lanes)) best = warp, best_lanes = lanes;
  }
  if (!best_lanes || __builtin_popcount(best_lanes) <= __builtin_popcount(access->lanes)) return;
  access->lanes = best_lanes;
  access->is_known = true;
  uint32_t lowest_lane = (uint32_t)__builtin_ctz(best_lanes);
  struct cell base = value_cell(address, best * 32 + lowest_lane);
  bool strided = false, whole = true;
  for (uint32_t lane = 0; lane < INSPECT_WARP; lane++) {
    if (!(best_lanes >> lane & 1)) continue;
    struct cell cell = value_cell(address, best * 32 + lane);
    if (cell.symbol != base.symbol || cell.symbol == SYMBOL_VARYING) {
      access->is_known = false;
      strided = strided || symbol_is_strided(&run->values, base.symbol, cell.symbol);
    }
    access->offsets[lane] = cell.c - (access->space == SPACE_SHARED ? 0 : base.c);
    // What an object begins with is aligned; a symbol that is more than the object's address may be anything.
    whole = whole && (cell.c % (int64_t)(access->bytes ? access->bytes : 1)) == 0;
  }
  bool only_base = address->base && base.symbol != SYMBOL_VARYING && (base.symbol == 0 || run->values.symbols[base.symbol].op == SYMBOL_FRESH);
  if (!whole && only_base && access->is_known && (access->bytes & (access->bytes - 1)) == 0 && access->bytes > 1)
    find(run, FINDING_MISALIGNED, access->range, "%s: %" PRIu32 " bytes at an offset that is no multiple of %" PRIu32, access->text, access->bytes,
         access->bytes);
  if (access->is_known)
    measure_access(run, access, access->space == SPACE_SHARED ? 0 : only_base ? base.c : 0);
  else if (strided && access->space != SPACE_SHARED)
    find(run, FINDING_UNCOALESCED, access->range, "%s: the lanes of a warp are apart by a size that is not known here", access->text);
}

static struct shadow_word *shadow_of(struct run *run, const struct cuda_variable *variable) {
  if (!run->shadows[variable->number]) run->shadows[variable->number] = arena_array(run->arena, struct shadow_word, MAX_SHARED_BYTES / 4);
  return run->shadows[variable->number];
}

static void report_race(struct run *run, const struct cuda_variable *variable, struct range now, struct range before, uint32_t thread,
                        uint32_t other, bool writes_now) {
  const char *text = inspect_text(run->diag, now);
  enum finding_kind kind = thread / 32 == other / 32 ? FINDING_WARP_SYNCHRONOUS : FINDING_SHARED_RACE;
  find(run, kind, now, "%s: thread %" PRIu32 " %s a word of '%s' that thread %" PRIu32 " %s on line %" PRIu32, text, thread,
       writes_now ? "writes" : "reads", variable->name, other, writes_now ? "accesses" : "writes", before.line);
}

static void touch_word(struct run *run, const struct cuda_variable *variable, struct shadow_word *word, uint32_t thread, bool writes,
                       struct range range) {
  uint32_t warp = thread / 32, block_now = run->block_barriers, warp_now = run->warp_barriers[warp];
  if (word->writer && word->writer != thread + 1u && word->write_block == block_now) {
    uint32_t other = word->writer - 1u;
    if (other / 32 != warp || word->write_warp == warp_now) report_race(run, variable, range, word->write_range, thread, other, writes);
  }
  if (writes && word->reader && (word->many_readers || word->reader != thread + 1u) && word->read_block == block_now) {
    uint32_t other = word->reader - 1u;
    if (other != thread && (other / 32 != warp || word->read_warp == warp_now)) report_race(run, variable, range, word->read_range, thread, other, true);
  }
  if (writes) {
    word->writer = (uint16_t)(thread + 1);
    word->write_block = block_now, word->write_warp = warp_now, word->write_range = range;
  } else {
    // A reader of another warp, or another lane, is worth keeping beside the thread that writes next.
    word->many_readers = word->reader && word->read_block == block_now && word->reader != thread + 1u;
    word->reader = (uint16_t)(thread + 1);
    word->read_block = block_now, word->read_warp = warp_now, word->read_range = range;
  }
}

static void touch_shared(struct run *run, const struct value *address, uint32_t bytes, const uint8_t *mask, bool writes, struct range range) {
  const struct cuda_variable *variable = address->base;
  if (!variable || variable->space != SPACE_SHARED) return;
  struct shadow_word *words = shadow_of(run, variable);
  for (uint32_t t = 0; t < run->threads; t++) {
    if (!mask[t]) continue;
    struct cell cell = value_cell(address, t);
    if (cell.symbol || cell.c < 0 || cell.c + (int64_t)bytes > MAX_SHARED_BYTES) continue;
    for (int64_t word = cell.c / 4; word <= (cell.c + (int64_t)bytes - 1) / 4; word++) touch_word(run, variable, &words[word], t, writes, range);
  }
}

static void access_memory(struct run *run, const struct cuda_expr *at, const struct value *address, const uint8_t *mask, bool reads, bool writes,
                          bool is_atomic, uint32_t bytes) {
  const struct cuda_variable *base = address->base;
  if (is_empty(run, mask) || (base && base->space == SPACE_LOCAL)) return;
  struct inspect_access *access = access_of(run, at->range, writes);
  access->text = inspect_text(run->diag, at->range);
  access->variable = base ? base->name : "?";
  access->space = base ? base->space : SPACE_DEVICE;
  access->reads |= reads, access->writes |= writes, access->is_atomic |= is_atomic;
  access->bytes = bytes ? bytes : at->type.bytes;
  if (address->flags & VALUE_OVERFLOW)
    find(run, FINDING_OVERFLOW, address->blame, "%s: part of the index is computed in 32 bits and leaves them at the given sizes", access->text);
  record_access(run, access, address, mask);
  if (is_atomic) return;
  // A read and a write of one statement: the reads of all lanes come first, so both are told apart.
  if (reads) touch_shared(run, address, access->bytes, mask, false, at->range);
  if (writes) touch_shared(run, address, access->bytes, mask, true, at->range);
}

// --- Expressions

static struct value *evaluate(struct run *run, const struct cuda_expr *expr, const uint8_t *mask);
static void execute(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask);

static bool is_memory_object(const struct cuda_variable *variable) {
  return variable->space == SPACE_SHARED || variable->space == SPACE_DEVICE || variable->type.is_array;
}

static struct value *address_of_variable(struct run *run, const struct cuda_variable *variable) {
  struct value *address = variable->space == SPACE_SHARED ? value_constant(&run->values, 0) : value_new(&run->values, true);
  if (variable->space != SPACE_SHARED)
    address->cells->symbol = symbol_intern(&run->values, SYMBOL_FRESH, (struct cell){-1 - (int64_t)variable->number, 0}, (struct cell){0, 0});
  address->base = variable;
  return address;
}

static struct value *value_of_variable(struct run *run, const struct cuda_variable *variable) {
  struct value **place = &run->variables[variable->number];
  if (*place) return *place;
  const int64_t *given = variable->space == SPACE_PARAMETER ? map_get(&run->sizes->values, variable->name) : NULL;
  if (given) {
    *place = value_constant(&run->values, *given);
  } else {
    *place = value_unknown(&run->values);
    if (variable->type.kind == CUDA_POINTER && variable->space == SPACE_PARAMETER) (*place)->base = variable;
  }
  return *place;
}

// The address of what an expression names; NULL where it is a variable in registers, or none.
static struct value *address_of(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  const struct cuda_type bytes = {.kind = CUDA_INTEGER, .bytes = 8, .is_signed = true};
  if (expr->kind == EXPR_CAST && !expr->a->type.is_array) return address_of(run, expr->a, mask);
  if (expr->kind == EXPR_VARIABLE) return is_memory_object(expr->variable) ? address_of_variable(run, expr->variable) : NULL;
  if (expr->kind == EXPR_DEREF) return evaluate(run, expr->a, mask);
  if (expr->kind == EXPR_INDEX) {
    struct value *base = evaluate(run, expr->a, mask), *index = evaluate(run, expr->b, mask);
    struct value *size = value_constant(&run->values, expr->type.bytes);
    struct value *offset = value_binary(&run->values, CUDA_MUL, index, size, bytes);
    struct value *address = value_binary(&run->values, CUDA_ADD, base, offset, bytes);
    address->flags |= index->flags;
    if (index->flags) address->blame = index->blame;
    address->base = base->base;
    return address;
  }
  if (expr->kind == EXPR_MEMBER) {
    struct value *object = address_of(run, expr->a, mask);
    if (!object) return NULL;
    struct value *address = value_binary(&run->values, CUDA_ADD, object, value_constant(&run->values, expr->integer), bytes);
    address->base = object->base;
    return address;
  }
  return NULL;
}

// What is read from an address: the same where the address is the same.
static struct value *load(struct run *run, const struct value *address) {
  struct value *result = value_new(&run->values, address->is_uniform);
  struct cell time = {(int64_t)run->values.fresh++, 0};
  uint32_t count = address->is_uniform ? 1 : result->is_uniform ? 0 : run->threads;
  for (uint32_t t = 0; t < count; t++) result->cells[t].symbol = symbol_intern(&run->values, SYMBOL_LOAD, address->cells[t], time);
  return result;
}

static void assign(struct run *run, const struct cuda_variable *variable, struct value *value, const uint8_t *mask) {
  struct value **place = &run->variables[variable->number];
  bool everyone = !memchr(mask, 0, run->threads);
  *place = everyone || !*place ? value : value_select(&run->values, mask, value, *place);
}

static void store(struct run *run, const struct cuda_expr *to, struct value *value, const uint8_t *mask, bool reads) {
  struct value *address = address_of(run, to, mask);
  if (address) {
    access_memory(run, to, address, mask, reads, true, false, 0);
    return;
  }
  while (to->kind == EXPR_CAST || to->kind == EXPR_MEMBER) {
    if (to->kind == EXPR_MEMBER) value = value_varying(&run->values);
    to = to->a;
  }
  if (to->kind == EXPR_VARIABLE) assign(run, to->variable, value, mask);
}

static struct value *flagged(struct run *run, struct value *value, unsigned flags, struct range blame) {
  struct value *copy = arena_new(run->arena, struct value);
  *copy = *value;
  copy->flags |= flags;
  copy->blame = blame;
  return copy;
}

static struct value *apply(struct run *run, const struct cuda_expr *expr, enum cuda_op op, struct value *a, struct value *b, const uint8_t *mask) {
  struct cuda_type type = expr->type;
  if (type.kind == CUDA_POINTER && (op == CUDA_ADD || op == CUDA_SUB)) {
    struct value *size = value_constant(&run->values, type.pointee ? type.pointee : 1);
    type = (struct cuda_type){.kind = CUDA_INTEGER, .bytes = 8, .is_signed = true};
    if (b->base && !a->base) {
      struct value *other = a;
      a = b, b = other;
    }
    b = value_binary(&run->values, CUDA_MUL, b, size, type);
  } else if (op >= CUDA_LT && op <= CUDA_NE) {
    type = expr->kind == EXPR_BINARY ? expr->a->type : type; // signedness of the operands
  }
  struct value *result = value_binary(&run->values, op, a, b, type);
  if (type.kind == CUDA_FLOAT && !(op >= CUDA_LT && op <= CUDA_NE)) {
    enum agreement agreed = value_agreement(result, mask, run->threads);
    return agreed == AGREE_BLOCK ? value_unknown(&run->values) : result;
  }
  if ((op == CUDA_SHL || op == CUDA_SHR) && type.kind == CUDA_INTEGER)
    for (uint32_t t = 0; t < run->threads; t++) {
      struct cell count = value_cell(b, t);
      if (mask[t] && !count.symbol && (count.c < 0 || count.c >= (int64_t)type.bytes * 8)) {
        result = flagged(run, result, VALUE_SHIFT, expr->range);
        break;
      }
    }
  if (type.kind == CUDA_INTEGER && type.bytes == 4 && result->is_bounded && (op == CUDA_ADD || op == CUDA_MUL || op == CUDA_SHL)) {
    int64_t lo = type.is_signed ? INT32_MIN : 0, hi = type.is_signed ? INT32_MAX : UINT32_MAX;
    if (result->lo < lo || result->hi > hi) result = flagged(run, result, VALUE_OVERFLOW, expr->range);
  }
  return result;
}

static void merge_variables(struct run *run, struct value **one, struct value **other) {
  for (uint32_t i = 0; i < run->variable_count; i++)
    if (one[i] && other[i])
      run->variables[i] = value_merge(&run->values, one[i], other[i]);
    else
      run->variables[i] = one[i] ? one[i] : other[i];
}

static struct value **copy_variables(struct run *run) {
  struct value **copy = arena_array(run->arena, struct value *, run->variable_count + 1);
  memcpy(copy, run->variables, sizeof *copy * run->variable_count);
  return copy;
}

// --- Collectives

struct mask_rule {
  const char *name;
  bool takes_mask, is_block, is_legacy, gives_mask;
};
static const struct mask_rule RULES[] = {
    {"__shfl_sync", true, false, false, false},       {"__shfl_up_sync", true, false, false, false},
    {"__shfl_down_sync", true, false, false, false},  {"__shfl_xor_sync", true, false, false, false},
    {"__any_sync", true, false, false, false},        {"__all_sync", true, false, false, false},
    {"__ballot_sync", true, false, false, true},      {"__match_any_sync", true, false, false, true},
    {"__match_all_sync", true, false, false, true},   {"__reduce_add_sync", true, false, false, false},
    {"__reduce_min_sync", true, false, false, false}, {"__reduce_max_sync", true, false, false, false},
    {"__reduce_and_sync", true, false, false, false}, {"__reduce_or_sync", true, false, false, false},
    {"__reduce_xor_sync", true, false, false, false}, {"__syncwarp", true, false, false, false},
    {"__syncthreads", false, true, false, false},     {"__syncthreads_count", false, true, false, false},
    {"__syncthreads_and", false, true, false, false}, {"__syncthreads_or", false, true, false, false},
    {"__shfl", false, false, true, false},            {"__shfl_up", false, false, true, false},
    {"__shfl_down", false, false, true, false},       {"__shfl_xor", false, false, true, false},
    {"__any", false, false, true, false},             {"__all", false, false, true, false},
    {"__ballot", false, false, true, true},
};

static struct inspect_collective *collective_of(struct run *run, const struct cuda_expr *call) {
  struct list *known = &run->report->collectives;
  for (uint32_t i = 0; i < known->count; i++) {
    struct inspect_collective *one = list_at(known, struct inspect_collective, i);
    if (one->range.line == call->range.line && one->range.column == call->range.column) return one;
  }
  struct inspect_collective *made = arena_new(run->arena, struct inspect_collective);
  made->range = call->range;
  made->name = call->name;
  made->warp_count = (run->threads + 31) / 32;
  list_push(run->arena, known, made);
  return made;
}

// The masks of one warp's lanes that arrive.
static void check_warp(struct run *run, struct inspect_collective *collective, const struct cuda_expr *call, const struct value *masks,
                       const uint8_t *mask, uint32_t warp) {
  uint32_t arrived = 0, exists = run->threads - warp * 32 >= 32 ? UINT32_MAX : (1u << (run->threads - warp * 32)) - 1;
  for (uint32_t lane = 0; lane < 32 && warp * 32 + lane < run->threads; lane++) arrived |= (uint32_t)mask[warp * 32 + lane] << lane;
  if (!arrived) return;
  collective->arrived[warp] = arrived;
  for (uint32_t lane = 0; lane < 32; lane++) {
    if (!(arrived >> lane & 1)) continue;
    struct cell cell = value_cell(masks, warp * 32 + lane);
    if (cell.symbol) {
      collective->is_known = false;
      return;
    }
    uint32_t named = (uint32_t)cell.c;
    if (lane == (uint32_t)__builtin_ctz(arrived)) collective->masks[warp] = named;
    if (!(named >> lane & 1)) {
      find(run, FINDING_MASK_LANE, call->range, "%s: the mask 0x%08" PRIx32 " of lane %" PRIu32 " of warp %" PRIu32 " does not name the lane itself",
           call->name, named, lane, warp);
    } else if (named & ~exists) {
      find(run, FINDING_MASK_LANE, call->range, "%s: the mask 0x%08" PRIx32 " names lane %d of warp %" PRIu32 ", which a block of %" PRIu32 " threads does not have",
           call->name, named, __builtin_ctz(named & ~exists), warp, run->threads);
    } else if (named & ~arrived) {
      find(run, FINDING_MASK_LANE, call->range, "%s: the mask 0x%08" PRIx32 " names lane %d of warp %" PRIu32 ", which does not execute this call", call->name,
           named, __builtin_ctz(named & ~arrived), warp);
    } else {
      for (uint32_t other = 0; other < 32; other++) {
        struct cell theirs = value_cell(masks, warp * 32 + (warp * 32 + other < run->threads ? other : lane));
        if ((named >> other & 1) && !theirs.symbol && (uint32_t)theirs.c != named) {
          find(run, FINDING_MASK_LANE, call->range, "%s: lanes %" PRIu32 " and %" PRIu32 " of warp %" PRIu32 " name each other by different masks", call->name, lane,
               other, warp);
          return;
        }
      }
      continue;
    }
    return;
  }
}

static void check_collective(struct run *run, const struct cuda_expr *call, const struct mask_rule *rule, const struct value *masks,
                             const uint8_t *mask) {
  struct inspect_collective *collective = collective_of(run, call);
  collective->is_block = rule->is_block;
  if (rule->is_legacy) {
    find(run, FINDING_LEGACY, call->range, "%s has no mask", call->name);
    return;
  }
  if (rule->is_block) {
    if (run->block_differs)
      find(run, FINDING_DIVERGENT, call->range, "%s under the condition of line %" PRIu32 ", which can differ between threads of the block", call->name,
           run->block_differs->line);
    else if (run->may_have_left)
      find(run, FINDING_DIVERGENT, call->range, "%s after the return on line %" PRIu32 ", which some threads may have taken", call->name,
           run->may_have_left->line);
    else if (memchr(mask, 0, run->threads))
      find(run, FINDING_DIVERGENT, call->range, "%s: only some threads of the block execute it", call->name);
    for (uint32_t warp = 0; warp < collective->warp_count; warp++) {
      collective->arrived[warp] = 0;
      for (uint32_t t = warp * 32; t < warp * 32 + 32 && t < run->threads; t++) collective->arrived[warp] |= (uint32_t)mask[t] << (t % 32);
    }
    run->block_barriers++;
    return;
  }
  if (!masks) masks = value_constant(&run->values, UINT32_MAX);
  if (masks->flags & VALUE_ACTIVEMASK) find(run, FINDING_ACTIVEMASK, call->range, "%s: its mask comes from __activemask()", call->name);
  if (masks->flags & VALUE_SHIFT)
    find(run, FINDING_MASK_SHIFT, masks->blame, "the mask of %s on line %" PRIu32 " is shifted by 32 or more", call->name, call->range.line);
  if (!(masks->flags & (VALUE_VOTE | VALUE_ACTIVEMASK))) {
    if (run->warp_differs)
      find(run, FINDING_DIVERGENT, call->range, "%s under the condition of line %" PRIu32 ", which can differ between lanes of a warp", call->name,
           run->warp_differs->line);
    else if (run->may_have_left)
      find(run, FINDING_DIVERGENT, call->range, "%s after the return on line %" PRIu32 ", which some lanes may have taken", call->name,
           run->may_have_left->line);
  }
  collective->is_known = true;
  for (uint32_t warp = 0; warp < collective->warp_count; warp++)
    if (!(masks->flags & (VALUE_ACTIVEMASK | VALUE_VOTE))) check_warp(run, collective, call, masks, mask, warp);
  if (masks->flags & (VALUE_ACTIVEMASK | VALUE_VOTE)) collective->is_known = false;
  // Any synchronising warp function orders the lanes, __syncwarp orders their memory.
  if (strcmp(call->name, "__syncwarp") == 0)
    for (uint32_t warp = 0; warp < collective->warp_count; warp++) {
      uint32_t lanes = run->threads - warp * 32 < 32 ? run->threads - warp * 32 : 32;
      run->warp_barriers[warp] += memchr(mask + warp * 32, 1, lanes) != NULL;
    }
}

// The lanes that the lanes of warp 0 read.
static void find_sources(struct run *run, const struct cuda_expr *call, struct value *const *operands, const uint8_t *mask) {
  static const char *const names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"};
  struct inspect_collective *collective = collective_of(run, call);
  int form = 0;
  while (form < 4 && strcmp(call->name, names[form]) != 0) form++;
  if (form == 4 || call->operand_count < 3 || collective->has_sources) return;
  collective->has_sources = true;
  for (int lane = 0; lane < INSPECT_WARP; lane++) {
    collective->sources[lane] = -1;
    if ((uint32_t)lane >= run->threads || !mask[lane]) continue;
    struct cell offset = value_cell(operands[2], (uint32_t)lane), width = {32, 0};
    if (call->operand_count > 3) width = value_cell(operands[3], (uint32_t)lane);
    if (offset.symbol || width.symbol || width.c < 1 || width.c > 32) {
      collective->has_sources = false;
      return;
    }
    int first = lane / (int)width.c * (int)width.c, by = (int)(offset.c & 31);
    int source = form == 0 ? first + by % (int)width.c : form == 1 ? lane - by : form == 2 ? lane + by : lane ^ by;
    collective->sources[lane] = source < first || source >= first + (int)width.c ? lane : source;
  }
}

// --- Calls

static struct value *call_function(struct run *run, const struct cuda_expr *call, struct value *const *operands, const uint8_t *mask) {
  if (run->depth > MAX_DEPTH / 8) return value_varying(&run->values);
  const struct list *parameters = &call->function->parameters;
  for (uint32_t i = 0; i < parameters->count && i < call->operand_count; i++)
    run->variables[list_at(parameters, struct cuda_variable, i)->number] = operands[i];
  struct frame frame = {arena_array(run->arena, uint8_t, run->threads), NULL}, *outer = run->frame;
  struct loop_exits *loop = run->loop;
  const struct range *left = run->may_have_left;
  run->frame = &frame;
  run->loop = NULL;
  run->depth += 8;
  execute(run, call->function->body, copy_mask(run, mask));
  run->depth -= 8;
  run->frame = outer;
  run->loop = loop;
  run->may_have_left = left;
  return frame.result ? frame.result : value_varying(&run->values);
}

static struct value *evaluate_call(struct run *run, const struct cuda_expr *call, const uint8_t *mask) {
  struct value **operands = arena_array(run->arena, struct value *, call->operand_count + 1);
  for (uint32_t i = 0; i < call->operand_count; i++) operands[i] = evaluate(run, call->operands[i], mask);
  if (!call->name) return value_varying(&run->values);
  for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
    const struct mask_rule *rule = &RULES[i];
    if (strcmp(rule->name, call->name) != 0) continue;
    const struct value *masks = rule->takes_mask && call->operand_count ? operands[0] : NULL;
    if (rule->takes_mask && call->operand_count) collective_of(run, call)->mask_text = inspect_text(run->diag, call->operands[0]->range);
    if (!is_empty(run, mask)) check_collective(run, call, rule, masks, mask);
    find_sources(run, call, operands, mask);
    if (rule->is_block && strcmp(call->name, "__syncthreads") != 0) return value_unknown(&run->values);
    return rule->gives_mask ? flagged(run, value_varying(&run->values), VALUE_VOTE, call->range) : value_varying(&run->values);
  }
  if (strcmp(call->name, "__activemask") == 0) return flagged(run, value_varying(&run->values), VALUE_ACTIVEMASK, call->range);
  if (strncmp(call->name, "atomic", 6) == 0 && call->operand_count) {
    access_memory(run, call, operands[0], mask, true, true, true, call->type.bytes);
    return value_varying(&run->values);
  }
  static const char *const loads[] = {"__ldg", "__ldcs", "__ldcg", "__ldca", "__ldlu", "__ldcv"};
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
    if (strcmp(call->name, loads[i]) == 0 && call->operand_count) {
      access_memory(run, call, operands[0], mask, true, false, false, call->type.bytes);
      return load(run, operands[0]);
    }
  static const char *const stores[] = {"__stcs", "__stcg", "__stwb", "__stwt"};
  for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
    if (strcmp(call->name, stores[i]) == 0 && call->operand_count > 1)
      access_memory(run, call, operands[0], mask, false, true, false, call->operands[1]->type.bytes);
  if (call->function && call->function->body) return call_function(run, call, operands, mask);
  for (uint32_t i = 0; i < call->operand_count; i++)
    if (value_agreement(operands[i], mask, run->threads) != AGREE_BLOCK) return value_varying(&run->values);
  return value_unknown(&run->values);
}

// --- Expressions, each kind

static struct value *evaluate_builtin(struct run *run, const struct cuda_expr *expr) {
  const uint32_t *block = run->report->block;
  struct value *result;
  switch (expr->builtin) {
  case BUILTIN_THREAD:
    if (block[expr->dimension] == 1) return value_constant(&run->values, 0);
    result = value_new(&run->values, false);
    for (uint32_t t = 0; t < (result->is_uniform ? 0 : run->threads); t++)
      result->cells[t].c = expr->dimension == 0 ? t % block[0] : expr->dimension == 1 ? t / block[0] % block[1] : t / block[0] / block[1];
    result->is_bounded = true;
    result->hi = (int64_t)block[expr->dimension] - 1;
    return result;
  case BUILTIN_BLOCK_DIM: return value_constant(&run->values, block[expr->dimension]);
  case BUILTIN_WARP_SIZE: return value_constant(&run->values, 32);
  case BUILTIN_GRID_DIM:
    if (run->sizes->grid[expr->dimension]) return value_constant(&run->values, run->sizes->grid[expr->dimension]);
    break;
  case BUILTIN_BLOCK: break;
  }
  result = value_new(&run->values, true);
  result->cells->symbol =
      symbol_intern(&run->values, SYMBOL_FRESH, (struct cell){-1000000 - (int64_t)expr->builtin * 3 - (int64_t)expr->dimension, 0}, (struct cell){0, 0});
  if (expr->builtin == BUILTIN_BLOCK && run->sizes->grid[expr->dimension]) {
    result->is_bounded = true;
    result->hi = run->sizes->grid[expr->dimension] - 1;
  }
  return result;
}

static struct value *evaluate_choice(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  struct value *condition = evaluate(run, expr->a, mask);
  if (!value_is_known(condition, mask, run->threads)) {
    struct value *a = evaluate(run, expr->b, mask), *b = evaluate(run, expr->c, mask);
    struct value *merged = value_merge(&run->values, a, b);
    if (value_agreement(condition, mask, run->threads) == AGREE_NONE && a != b) {
      struct value *varying = value_varying(&run->values);
      varying->flags = merged->flags, varying->blame = merged->blame, varying->base = merged->base;
      return varying;
    }
    return merged;
  }
  uint8_t *yes = copy_mask(run, mask), *no = copy_mask(run, mask);
  for (uint32_t t = 0; t < run->threads; t++) {
    bool is_true = mask[t] && value_cell(condition, t).c;
    yes[t] &= is_true;
    no[t] &= !is_true;
  }
  if (is_empty(run, no)) return evaluate(run, expr->b, yes);
  if (is_empty(run, yes)) return evaluate(run, expr->c, no);
  return value_select(&run->values, yes, evaluate(run, expr->b, yes), evaluate(run, expr->c, no));
}

static struct value *evaluate_logic(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  struct value *a = evaluate(run, expr->a, mask);
  if (!value_is_known(a, mask, run->threads)) return apply(run, expr, expr->op, a, evaluate(run, expr->b, mask), mask);
  uint8_t *open = copy_mask(run, mask);
  for (uint32_t t = 0; t < run->threads; t++) open[t] &= (value_cell(a, t).c != 0) == (expr->op == CUDA_LAND);
  struct value *settled = value_constant(&run->values, expr->op == CUDA_LOR);
  if (is_empty(run, open)) return settled;
  struct value *zero = value_constant(&run->values, 0);
  struct value *b = value_binary(&run->values, CUDA_NE, evaluate(run, expr->b, open), zero, expr->b->type);
  return memcmp(open, mask, run->threads) == 0 ? b : value_select(&run->values, open, b, settled);
}

static struct value *evaluate_unary(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  struct value *a = evaluate(run, expr->a, mask);
  if (expr->op == CUDA_NEG) return apply(run, expr, CUDA_SUB, value_constant(&run->values, 0), a, mask);
  if (expr->op == CUDA_NOT) return apply(run, expr, CUDA_XOR, a, value_constant(&run->values, -1), mask);
  if (expr->op == CUDA_LNOT) return value_binary(&run->values, CUDA_EQ, a, value_constant(&run->values, 0), expr->a->type);
  return a;
}

static struct value *evaluate(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  if (++run->steps > MAX_STEPS || run->depth > MAX_DEPTH) {
    run->report->is_incomplete = true;
    return value_varying(&run->values);
  }
  struct value *a, *b;
  switch (expr->kind) {
  case EXPR_INTEGER: return value_constant(&run->values, expr->integer);
  case EXPR_BUILTIN: return evaluate_builtin(run, expr);
  case EXPR_VARIABLE:
    if (expr->variable->type.is_array) return address_of_variable(run, expr->variable);
    if (!is_memory_object(expr->variable)) return value_of_variable(run, expr->variable);
    a = address_of_variable(run, expr->variable);
    access_memory(run, expr, a, mask, true, false, false, 0);
    return load(run, a);
  case EXPR_UNARY: return evaluate_unary(run, expr, mask);
  case EXPR_BINARY:
    if (expr->op == CUDA_LAND || expr->op == CUDA_LOR) return evaluate_logic(run, expr, mask);
    a = evaluate(run, expr->a, mask);
    b = evaluate(run, expr->b, mask);
    return apply(run, expr, expr->op, a, b, mask);
  case EXPR_ASSIGN:
    b = evaluate(run, expr->b, mask);
    if (expr->op != CUDA_NO_OP && !address_of(run, expr->a, mask)) b = apply(run, expr, expr->op, evaluate(run, expr->a, mask), b, mask);
    b = value_convert(&run->values, b, expr->a->type);
    store(run, expr->a, b, mask, expr->op != CUDA_NO_OP);
    return b;
  case EXPR_STEP:
    a = address_of(run, expr->a, mask) ? value_varying(&run->values) : evaluate(run, expr->a, mask);
    b = apply(run, expr, expr->op, a, value_constant(&run->values, 1), mask);
    store(run, expr->a, b, mask, true);
    return expr->is_postfix ? a : b;
  case EXPR_CHOICE: return evaluate_choice(run, expr, mask);
  case EXPR_CAST: return value_convert(&run->values, evaluate(run, expr->a, mask), expr->type);
  case EXPR_CALL: return evaluate_call(run, expr, mask);
  case EXPR_INDEX:
  case EXPR_DEREF:
    a = address_of(run, expr, mask);
    if (expr->type.is_array || expr->type.kind == CUDA_VOID) return a; // a row of an array
    access_memory(run, expr, a, mask, true, false, false, 0);
    return load(run, a);
  case EXPR_MEMBER:
    a = address_of(run, expr, mask);
    if (!a) {
      evaluate(run, expr->a, mask);
      return value_varying(&run->values);
    }
    access_memory(run, expr, a, mask, true, false, false, 0);
    return load(run, a);
  case EXPR_ADDRESS:
    a = address_of(run, expr->a, mask);
    return a ? a : value_unknown(&run->values);
  case EXPR_UNKNOWN:
    b = NULL;
    for (uint32_t i = 0; i < expr->operand_count; i++) {
      a = evaluate(run, expr->operands[i], mask);
      if (value_agreement(a, mask, run->threads) != AGREE_BLOCK) b = a;
    }
    return b ? value_varying(&run->values) : value_unknown(&run->values);
  }
  return value_varying(&run->values);
}

// --- Statements

static void execute_both(struct run *run, const struct cuda_stmt *stmt, const struct value *condition, uint8_t *mask) {
  const struct range *warp_differs = run->warp_differs, *block_differs = run->block_differs;
  enum agreement agreed = value_agreement(condition, mask, run->threads);
  if (agreed == AGREE_NONE) run->warp_differs = run->block_differs = &stmt->range;
  if (agreed == AGREE_WARP) run->block_differs = &stmt->range;
  uint8_t *yes = copy_mask(run, mask), *no = copy_mask(run, mask);
  struct value **before = copy_variables(run), **after;
  run->conditions++;
  if (stmt->body) execute(run, stmt->body, yes);
  after = copy_variables(run);
  memcpy(run->variables, before, sizeof *before * run->variable_count);
  if (stmt->other) { // only one of the two runs: what they touch does not meet
    run->block_barriers++;
    execute(run, stmt->other, no);
  }
  before = copy_variables(run);
  merge_variables(run, after, before);
  if (agreed != AGREE_BLOCK) // what was assigned differs as the condition does
    for (uint32_t i = 0; i < run->variable_count; i++)
      if (after[i] != before[i] && after[i] && before[i]) run->variables[i] = flagged(run, value_varying(&run->values), run->variables[i]->flags, run->variables[i]->blame);
  run->conditions--;
  run->warp_differs = warp_differs, run->block_differs = block_differs;
  for (uint32_t t = 0; t < run->threads; t++) {
    if (mask[t] && !(yes[t] && no[t]) && (yes[t] || no[t]) && agreed != AGREE_BLOCK) run->may_have_left = &stmt->range;
    mask[t] &= yes[t] | no[t];
  }
}

static void execute_if(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  struct value *condition = evaluate(run, stmt->expr, mask);
  if (!value_is_known(condition, mask, run->threads)) {
    execute_both(run, stmt, condition, mask);
    return;
  }
  uint8_t *yes = copy_mask(run, mask), *no = copy_mask(run, mask);
  for (uint32_t t = 0; t < run->threads; t++) {
    bool is_true = mask[t] && value_cell(condition, t).c;
    yes[t] &= is_true;
    no[t] &= !is_true;
  }
  if (stmt->body && !is_empty(run, yes)) execute(run, stmt->body, yes);
  if (stmt->other && !is_empty(run, no)) execute(run, stmt->other, no);
  for (uint32_t t = 0; t < run->threads; t++) mask[t] &= yes[t] | no[t];
}

static struct inspect_loop *loop_of(struct run *run, const struct cuda_stmt *stmt) {
  struct list *loops = &run->report->loops;
  for (uint32_t i = 0; i < loops->count; i++)
    if (list_at(loops, struct inspect_loop, i)->range.line == stmt->range.line && list_at(loops, struct inspect_loop, i)->range.column == stmt->range.column)
      return list_at(loops, struct inspect_loop, i);
  struct inspect_loop *loop = arena_new(run->arena, struct inspect_loop);
  loop->range = stmt->range;
  loop->text = inspect_text(run->diag, stmt->range);
  list_push(run->arena, loops, loop);
  return loop;
}

static void one_round(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  struct loop_exits exits = {arena_array(run->arena, uint8_t, run->threads), arena_array(run->arena, uint8_t, run->threads)}, *outer = run->loop;
  run->loop = &exits;
  if (stmt->body) execute(run, stmt->body, mask);
  run->loop = outer;
  for (uint32_t t = 0; t < run->threads; t++) mask[t] |= exits.continued[t];
  if (stmt->step && !is_empty(run, mask)) evaluate(run, stmt->step, mask);
}

static void unknown_rounds(struct run *run, const struct cuda_stmt *stmt, const struct value *condition, uint8_t *mask) {
  const struct range *warp_differs = run->warp_differs, *block_differs = run->block_differs;
  enum agreement agreed = condition ? value_agreement(condition, mask, run->threads) : AGREE_BLOCK;
  if (agreed == AGREE_NONE) run->warp_differs = run->block_differs = &stmt->range;
  if (agreed == AGREE_WARP) run->block_differs = &stmt->range;
  run->conditions++;
  for (int round = 0; round < 2; round++) {
    struct value **before = copy_variables(run);
    uint8_t *inside = copy_mask(run, mask);
    one_round(run, stmt, inside);
    for (uint32_t i = 0; i < run->variable_count; i++)
      if (before[i] && run->variables[i] && before[i] != run->variables[i])
        run->variables[i] = value_repeat(&run->values, before[i], run->variables[i]);
    if (round == 0 && stmt->expr) evaluate(run, stmt->expr, mask);
  }
  run->conditions--;
  run->warp_differs = warp_differs, run->block_differs = block_differs;
  for (uint32_t t = 0; t < run->threads; t++) mask[t] &= (uint8_t)!(run->frame->returned[t]);
}

static void execute_loop(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  struct inspect_loop *loop = loop_of(run, stmt);
  if (stmt->first) execute(run, stmt->first, mask);
  uint8_t *left = arena_array(run->arena, uint8_t, run->threads), *inside = copy_mask(run, mask);
  int64_t rounds = 0;
  for (;; rounds++) {
    struct value *condition = stmt->expr && (rounds || !stmt->tests_last) ? evaluate(run, stmt->expr, inside) : NULL;
    if ((stmt->expr && condition && !value_is_known(condition, inside, run->threads)) || !stmt->expr || rounds >= MAX_ROUNDS || run->report->is_incomplete) {
      loop->trips = -1;
      unknown_rounds(run, stmt, condition && value_is_known(condition, inside, run->threads) ? NULL : condition, inside);
      for (uint32_t t = 0; t < run->threads; t++) mask[t] &= left[t] | inside[t];
      return;
    }
    for (uint32_t t = 0; condition && t < run->threads; t++)
      if (inside[t] && !value_cell(condition, t).c) inside[t] = 0, left[t] = 1;
    if (is_empty(run, inside)) break;
    struct loop_exits exits = {left, arena_array(run->arena, uint8_t, run->threads)}, *outer = run->loop;
    run->loop = &exits;
    if (stmt->body) execute(run, stmt->body, inside);
    run->loop = outer;
    for (uint32_t t = 0; t < run->threads; t++) inside[t] |= exits.continued[t];
    if (stmt->step && !is_empty(run, inside)) evaluate(run, stmt->step, inside);
  }
  if (loop->trips >= 0 && rounds > loop->trips) loop->trips = rounds;
  for (uint32_t t = 0; t < run->threads; t++) mask[t] &= left[t];
}

static void leave(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  uint8_t *to = stmt->kind == STMT_RETURN ? run->frame->returned : !run->loop ? NULL : stmt->kind == STMT_BREAK ? run->loop->broke : run->loop->continued;
  if (stmt->kind == STMT_RETURN && stmt->expr) {
    struct value *result = evaluate(run, stmt->expr, mask);
    struct value **place = &run->frame->result;
    *place = !*place ? result : run->conditions ? value_merge(&run->values, *place, result) : value_select(&run->values, mask, result, *place);
  }
  for (uint32_t t = 0; to && t < run->threads; t++) to[t] |= mask[t];
  memset(mask, 0, run->threads);
}

static void execute(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  run->report->is_incomplete |= run->values.is_full;
  if (!stmt || is_empty(run, mask) || run->report->is_incomplete) return;
  if (++run->depth > MAX_DEPTH) {
    run->report->is_incomplete = true;
    run->depth--;
    return;
  }
  switch (stmt->kind) {
  case STMT_EXPR: evaluate(run, stmt->expr, mask); break;
  case STMT_DECLARE:
    if (stmt->variable->space == SPACE_SHARED) break;
    if (stmt->expr && stmt->variable->type.is_array) {
      evaluate(run, stmt->expr, mask);
      break;
    }
    // A variable is new in every round of a loop.
    run->variables[stmt->variable->number] = stmt->expr ? value_convert(&run->values, evaluate(run, stmt->expr, mask), stmt->variable->type) : NULL;
    if (!stmt->expr) run->variables[stmt->variable->number] = value_varying(&run->values);
    break;
  case STMT_IF: execute_if(run, stmt, mask); break;
  case STMT_LOOP: execute_loop(run, stmt, mask); break;
  case STMT_BLOCK:
    for (uint32_t i = 0; i < stmt->stmts.count; i++) execute(run, list_at(&stmt->stmts, struct cuda_stmt, i), mask);
    break;
  case STMT_RETURN:
  case STMT_BREAK:
  case STMT_CONTINUE: leave(run, stmt, mask); break;
  }
  run->depth--;
}

// --- Kernels

static void choose_block(struct kernel_report *report, const struct inspect_sizes *sizes) {
  for (int d = 0; d < 3; d++) report->block[d] = sizes->block[d] ? sizes->block[d] : 1;
  if (sizes->block[0]) return;
  int64_t bound = report->kernel->bound_threads;
  report->block_is_assumed = bound < 1 || bound > INSPECT_MAX_THREADS;
  report->block[0] = report->block_is_assumed ? 256 : (uint32_t)bound;
  report->block[1] = report->block[2] = 1;
}

static void collect_shared(struct run *run, const struct cuda_stmt *stmt) {
  if (!stmt) return;
  if (stmt->kind == STMT_DECLARE && stmt->variable->space == SPACE_SHARED) {
    list_push(run->arena, &run->report->shared, stmt->variable);
    run->report->shared_bytes += stmt->variable->type.bytes;
  }
  for (uint32_t i = 0; i < stmt->stmts.count; i++) collect_shared(run, list_at(&stmt->stmts, struct cuda_stmt, i));
  collect_shared(run, stmt->first);
  collect_shared(run, stmt->body);
  collect_shared(run, stmt->other);
}

void inspect_kernel(struct diag *diag, const struct cuda_module *module, const struct cuda_function *kernel, const struct inspect_sizes *sizes,
                    struct kernel_report *report) {
  struct run run = {.diag = diag, .arena = diag->arena, .sizes = sizes, .report = report, .variable_count = module->variables.count};
  *report = (struct kernel_report){.kernel = kernel};
  choose_block(report, sizes);
  run.threads = report->block[0] * report->block[1] * report->block[2];
  values_init(&run.values, run.arena, run.threads);
  run.variables = arena_array(run.arena, struct value *, run.variable_count + 1);
  run.shadows = arena_array(run.arena, struct shadow_word *, run.variable_count + 1);
  struct frame frame = {arena_array(run.arena, uint8_t, run.threads), NULL};
  run.frame = &frame;
  uint8_t *mask = arena_array(run.arena, uint8_t, run.threads);
  memset(mask, 1, run.threads);
  collect_shared(&run, kernel->body);
  execute(&run, kernel->body, mask);
  for (uint32_t i = 0; i < module->launches.count; i++) {
    const struct cuda_launch *launch = list_at(&module->launches, struct cuda_launch, i);
    if (strcmp(launch->kernel, kernel->name) == 0)
      find(&run, FINDING_GRID_DIMENSION, launch->range, "grid.%c of '%s' is '%s', which can pass 65535", launch->dimension, launch->kernel, launch->text);
  }
}
