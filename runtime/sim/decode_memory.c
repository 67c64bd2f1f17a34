// Modifiers that loads, stores and atomics share.
#include "runtime/sim/decode.h"

// Cache operators and hints change no result; .L2::cache_hint adds an operand, which must be a 64-bit value.
bool sim_take_hints(struct sim_decoder *decoder) {
  static const char *const hints[] = {"ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "nc",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_last",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B",
                                      "unified"};
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) sim_take(decoder, hints[i]);
  return sim_take(decoder, "L2::cache_hint");
}

// .weak, .volatile, .relaxed, .acquire, .release, .acq_rel and the scope, into the op.
void sim_take_strength(struct sim_decoder *decoder, bool is_atomic) {
  struct sim_op *op = decoder->op;
  bool is_strong = is_atomic;
  if (sim_take(decoder, "volatile")) {
    is_strong = true;
    op->is_volatile = true;
  }
  if (sim_take(decoder, "mmio")) is_strong = true;
  if (sim_take(decoder, "relaxed")) is_strong = true;
  if (sim_take(decoder, "acquire")) is_strong = true, op->order = SIM_ACQUIRE;
  if (sim_take(decoder, "release")) is_strong = true, op->order = SIM_RELEASE;
  if (sim_take(decoder, "acq_rel")) is_strong = true, op->order = SIM_ACQUIRE | SIM_RELEASE;
  sim_take(decoder, "weak");
  bool is_cta = sim_take(decoder, "cta");
  static const char *const wider[] = {"cluster", "gpu", "sys"};
  for (int i = 0; i < 3 && !is_cta; i++) sim_take(decoder, wider[i]);
  op->scope = (uint8_t)(!is_strong ? SIM_SCOPE_WEAK : is_cta ? SIM_SCOPE_CTA : SIM_SCOPE_GPU);
}

// .v2, .v4 or .v8; 1 without.
static uint8_t take_vector(struct sim_decoder *decoder) {
  if (sim_take(decoder, "v2")) return 2;
  if (sim_take(decoder, "v4")) return 4;
  if (sim_take(decoder, "v8")) return 8;
  return 1;
}

// The data operand of a load or store: registers into d and width, or a list where the access is a vector.
static void data_operand(struct sim_decoder *decoder, size_t index, enum sim_type type, bool is_load) {
  struct sim_op *op = decoder->op;
  const struct ptx_operand *operand = sim_operand_at(decoder, index);
  size_t count = operand->kind == PTX_LIST && operand->items ? operand->items->count : 1;
  if (count != op->vector)
    sim_fail(decoder, "'%s' has %zu elements where %u belong", decoder->instruction->opcode, count,
             op->vector);
  const struct ptx_operand *item = operand->kind == PTX_LIST ? operand->items : operand;
  int32_t slots[8] = {0};
  for (size_t i = 0; i < count; i++, item = item->next) {
    uint8_t width;
    enum sim_type declared;
    bool is_sink = item->kind == PTX_NAME && strcmp(item->text, "_") == 0;
    if (sim_is_register(decoder, item) || (is_sink && is_load)) {
      slots[i] = sim_register_loose(decoder, item, type, &width, &declared);
    } else if (is_load) {
      sim_fail_at(decoder, item->place, "'ld' loads into registers");
    } else {
      slots[i] = sim_source_of(decoder, item, type);
      width = sim_type_bits(type) <= 32 ? 32 : (uint8_t)sim_type_bits(type);
      declared = type;
    }
    if (i > 0 && width != op->width) sim_fail(decoder, "the registers of a vector differ in width");
    op->width = width;
    // Small results are extended to the register as declared: 16 bits or a whole word.
    if (is_load) op->sub = (uint8_t)(sim_type_bits(declared) < 32 ? sim_type_bits(declared) : 32);
  }
  op->d = slots[0];
  op->target = sim_list(decoder, slots, count);
}

static void decode_access(struct sim_decoder *decoder, bool is_load) {
  struct sim_op *op = decoder->op;
  bool has_hint = sim_take_hints(decoder);
  op->space = (uint8_t)sim_take_space(decoder);
  sim_take_strength(decoder, false);
  op->vector = take_vector(decoder);
  enum sim_type type = sim_take_type(decoder);
  unsigned bits = sim_type_bits(type);
  if (bits == 1) sim_fail(decoder, "predicates have no memory");
  if (bits / 8 * op->vector > 32) sim_fail(decoder, "an access of more than 32 bytes");
  op->type = (uint8_t)type;
  op->bytes = (uint8_t)(bits / 8);
  op->kind = SIM_OP_RUN;
  sim_operand_count(decoder, has_hint ? 3 : 2, has_hint ? 3 : 2);
  if (has_hint) sim_source(decoder, 2, SIM_B64);
  sim_address(decoder, is_load ? 1 : 0);
  data_operand(decoder, is_load ? 0 : 1, type, is_load);
  op->run = is_load ? sim_run_ld : sim_run_st;
}

void sim_decode_ld(struct sim_decoder *decoder) {
  decode_access(decoder, true);
}
void sim_decode_st(struct sim_decoder *decoder) {
  decode_access(decoder, false);
}

// ---- Atomics
// -----------------------------------------------------------------------------------------------

static const char *const atomic_names[] = {"add", "and", "or",  "xor",  "min",
                                           "max", "inc", "dec", "exch", "cas"};

// Whether the operation exists for the type.
static bool is_atomic_type(unsigned operation, enum sim_type type) {
  enum sim_type_kind kind = sim_type_kind(type);
  unsigned bits = sim_type_bits(type);
  switch (operation) {
  case SIM_ATOM_ADD:
    return type == SIM_U32 || type == SIM_S32 || type == SIM_U64 || type == SIM_S64 ||
           (kind == SIM_KIND_F && type != SIM_F32X2);
  case SIM_ATOM_AND:
  case SIM_ATOM_OR:
  case SIM_ATOM_XOR: return type == SIM_B32 || type == SIM_B64;
  case SIM_ATOM_MIN:
  case SIM_ATOM_MAX:
    return type == SIM_U32 || type == SIM_S32 || type == SIM_U64 || type == SIM_S64 ||
           (kind == SIM_KIND_F && bits <= 32 && type != SIM_F32);
  case SIM_ATOM_INC:
  case SIM_ATOM_DEC: return type == SIM_U32;
  case SIM_ATOM_EXCH: return kind == SIM_KIND_B && (bits == 32 || bits == 64 || bits == 128);
  case SIM_ATOM_CAS: return kind == SIM_KIND_B && bits >= 16;
  }
  return false;
}

void sim_decode_atom(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool is_red = strcmp(decoder->instruction->opcode, "red") == 0;
  if (sim_take(decoder, "async")) sim_fail(decoder, "'red.async' is not supported");
  bool has_hint = sim_take_hints(decoder);
  op->space = (uint8_t)sim_take_space(decoder);
  sim_take_strength(decoder, true);
  sim_take(decoder, "noftz");
  op->vector = take_vector(decoder);
  unsigned operation = SIM_ATOM_OPERATIONS;
  for (unsigned i = 0; i < SIM_ATOM_OPERATIONS; i++) {
    if (sim_take(decoder, atomic_names[i])) operation = i;
  }
  if (operation == SIM_ATOM_OPERATIONS)
    sim_fail(decoder, "'%s' needs an operation", decoder->instruction->opcode);
  enum sim_type type = sim_take_type(decoder);
  if (!is_atomic_type(operation, type)) {
    sim_fail(decoder, "'%s.%s' does not take the type .%s", decoder->instruction->opcode,
             atomic_names[operation], sim_type_name(type));
  }
  if (op->space != SIM_SPACE_GENERIC && op->space != SIM_SPACE_GLOBAL && op->space != SIM_SPACE_SHARED) {
    sim_fail(decoder, "atomics are for global and shared memory");
  }
  if (is_red && (operation == SIM_ATOM_EXCH || operation == SIM_ATOM_CAS)) {
    sim_fail(decoder, "unknown modifier '.%s' of 'red'", atomic_names[operation]);
  }
  if (op->vector > 1 && (sim_type_kind(type) != SIM_KIND_F || sim_type_bits(type) == 64)) {
    sim_fail(decoder, "vector atomics are for .f32 and halves");
  }
  op->type = (uint8_t)type;
  op->bytes = (uint8_t)(sim_type_bits(type) / 8);
  op->operation = (uint8_t)operation;
  op->kind = SIM_OP_RUN;
  op->run = sim_run_atom;
  op->has_result = !is_red;
  size_t sources = operation == SIM_ATOM_CAS ? 2 : 1, first = is_red ? 0 : 1;
  sim_operand_count(decoder, first + 1 + sources + has_hint, first + 1 + sources + has_hint);
  if (has_hint) sim_source(decoder, first + 1 + sources, SIM_B64);
  sim_address(decoder, first);
  // The list holds results, then sources.
  int32_t slots[24] = {0};
  size_t count = 0;
  for (size_t part = is_red ? 1 : 0; part < 1 + sources; part++) {
    const struct ptx_operand *operand = sim_operand_at(decoder, part == 0 ? 0 : first + part);
    size_t items = operand->kind == PTX_LIST && operand->items ? operand->items->count : 1;
    if (items != op->vector)
      sim_fail(decoder, "'%s' has %zu elements where %u belong", decoder->instruction->opcode, items,
               op->vector);
    const struct ptx_operand *item = operand->kind == PTX_LIST ? operand->items : operand;
    for (size_t i = 0; i < items; i++, item = item->next) {
      slots[count++] = part == 0 ? sim_result_of(decoder, item, type) : sim_source_of(decoder, item, type);
    }
  }
  op->target = sim_list(decoder, slots, count);
}

// ---- Hints and asynchronous copies
// -------------------------------------------------------------------------

static void nothing(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  (void)warp, (void)op, (void)mask;
}

// prefetch, prefetchu, discard, applypriority: no effect on results.
void sim_decode_hint(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  static const char *const levels[] = {"L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"};
  op->space = (uint8_t)sim_take_space(decoder);
  for (size_t i = 0; i < 4; i++) sim_take(decoder, levels[i]);
  sim_operand_count(decoder, 1, 2);
  sim_address(decoder, 0);
  if (decoder->instruction->operand_count == 2) sim_immediate(decoder, 1);
  op->kind = SIM_OP_RUN;
  op->run = nothing;
}

// A policy is an opaque number.
static void policy(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  sim_u64 *pd = sim_r64(warp, op->d);
  SIM_EACH_BIT(mask, l) pd[l] = UINT64_C(0x10f0000000000000);
}

void sim_decode_createpolicy(struct sim_decoder *decoder) {
  static const char *const words[] = {"fractional",
                                      "range",
                                      "cvt",
                                      "global",
                                      "L2",
                                      "L2::evict_last",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_unchanged"};
  // Primary and secondary priority may be the same word.
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) sim_take(decoder, words[i]);
  }
  if (sim_take_type(decoder) != SIM_B64) sim_fail(decoder, "'createpolicy' needs the type .b64");
  sim_operand_count(decoder, 1, 4);
  decoder->op->d = sim_result(decoder, 0, SIM_B64);
  decoder->op->run = policy;
}

void sim_decode_cp(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  if (!sim_take(decoder, "async")) sim_fail(decoder, "only 'cp.async' is supported");
  op->kind = SIM_OP_RUN;
  if (sim_take(decoder, "commit_group")) {
    sim_operand_count(decoder, 0, 0);
    op->run = sim_run_copy_commit;
    return;
  }
  bool is_all = sim_take(decoder, "wait_all");
  if (is_all || sim_take(decoder, "wait_group")) {
    sim_operand_count(decoder, is_all ? 0 : 1, is_all ? 0 : 1);
    op->immediate = is_all ? 0 : sim_immediate(decoder, 0);
    op->sub = is_all;
    op->run = sim_run_copy_wait;
    return;
  }
  bool has_hint = sim_take_hints(decoder);
  if (!sim_take(decoder, "shared") && !sim_take(decoder, "shared::cta"))
    sim_fail(decoder, "'cp.async' copies to shared memory");
  if (!sim_take(decoder, "global")) sim_fail(decoder, "'cp.async' copies from global memory");
  size_t count = decoder->instruction->operand_count;
  sim_operand_count(decoder, 3, 5);
  // The source's address goes through a second op's fields: b, f and rounding as its address width.
  op->space = SIM_SPACE_GLOBAL;
  sim_address(decoder, 1);
  if (op->symbol != SIM_NONE || op->is_framed)
    sim_fail(decoder, "'cp.async' takes its source's address from a register");
  op->b = op->a;
  uint64_t source_offset = op->immediate;
  op->space = SIM_SPACE_SHARED;
  sim_address(decoder, 0);
  uint64_t bytes = sim_immediate(decoder, 2);
  if (bytes != 4 && bytes != 8 && bytes != 16) sim_fail(decoder, "'cp.async' copies 4, 8 or 16 bytes");
  op->bytes = (uint8_t)bytes;
  int32_t offset[2] = {(int32_t)(uint32_t)source_offset, (int32_t)(uint32_t)(source_offset >> 32)};
  op->target = sim_list(decoder, offset, 2);
  if (count > 3 + (size_t)has_hint) {
    const struct ptx_operand *extra = sim_operand_at(decoder, 3);
    bool is_predicate = extra->kind == PTX_NOT;
    if (is_predicate) sim_fail(decoder, "'cp.async' with a negated predicate is not supported");
    op->c = sim_source_of(decoder, extra, SIM_U32);
    op->sub = 1;
  }
  if (has_hint) sim_source(decoder, count - 1, SIM_B64);
  op->run = sim_run_copy;
}
