// mov in all its forms, and cvta.
#include "runtime/sim/decode.h"

#define HANDLER(name) static void name(struct sim_warp *warp, const struct sim_op *op, uint32_t mask)

HANDLER(mov_32) {
  const sim_u32 *pa = sim_r32(warp, op->a);
  sim_u32 *pd = sim_r32(warp, op->d);
  SIM_EACH(mask, l, { pd[l] = pa[l]; });
}

HANDLER(mov_64) {
  const sim_u64 *pa = sim_r64(warp, op->a);
  sim_u64 *pd = sim_r64(warp, op->d);
  SIM_EACH(mask, l, { pd[l] = pa[l]; });
}

HANDLER(mov_128) {
  const unsigned char *pa = sim_operand(warp, op->a);
  unsigned char *pd = sim_operand(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    memmove(pd + 16 * l, pa + 16 * l, 16);
  }
}

HANDLER(mov_pred) {
  sim_u32 *pd = sim_pred(warp, op->d);
  *pd = (*pd & ~mask) | (*sim_pred(warp, op->a) & mask);
}

// One value for all lanes, into a register of 32 or 64 bits.
static void broadcast(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, uint64_t value) {
  if (op->width == 64) {
    sim_u64 *pd = sim_r64(warp, op->d);
    SIM_EACH(mask, l, { pd[l] = value; });
  } else {
    sim_u32 *pd = sim_r32(warp, op->d);
    SIM_EACH(mask, l, { pd[l] = (uint32_t)value; });
  }
}

// The address of a variable.
HANDLER(mov_symbol) {
  uint64_t value = op->immediate;
  if (op->symbol != SIM_NONE) value += warp->block->launch->symbols[op->symbol];
  if (op->is_framed) value += warp->frame_local;
  broadcast(warp, op, mask, value);
}

// Clocks: the number of instructions the warp has issued, and a time made from it.
enum { CLOCK, CLOCK_HI, CLOCK64, TIMER, TIMER_LO, TIMER_HI, GRIDID, ZERO };

HANDLER(mov_clock) {
  uint64_t clock = warp->clock;
  switch (op->sub) {
  case CLOCK:
  case CLOCK64: broadcast(warp, op, mask, clock); break;
  case TIMER:
  case TIMER_LO: broadcast(warp, op, mask, UINT64_C(1000000000) + clock); break;
  case CLOCK_HI:
  case TIMER_HI: broadcast(warp, op, mask, clock >> 32); break;
  case GRIDID: broadcast(warp, op, mask, 1); break;
  case ZERO: *sim_pred(warp, op->d) &= ~mask; break;
  }
}

// Packs elements of op->bytes, whose slots stand in module->lists, into one register.
HANDLER(pack) {
  const int32_t *items = &warp->module->lists[op->target];
  uint32_t poison = 0;
  unsigned char *pd = sim_operand(warp, op->d);
  unsigned char out[SIM_LANES][16];
  unsigned bytes = op->bytes;
  for (unsigned i = 0; i < op->vector; i++) {
    poison |= *sim_poison(warp, items[i]);
    const unsigned char *from = sim_operand(warp, items[i]);
    unsigned lane_bytes = bytes == 8 ? 8 : 4;
    for (unsigned l = 0; l < SIM_LANES; l++) memcpy(&out[l][i * bytes], from + l * lane_bytes, bytes);
  }
  unsigned lane = op->width / 8 < 4 ? 4 : op->width / 8, total = bytes * op->vector;
  SIM_EACH_BIT(mask, l) {
    if (total < lane) memset(pd + l * lane, 0, lane);
    memcpy(pd + l * lane, out[l], total);
  }
  uint32_t *dp = sim_poison(warp, op->d);
  *dp = (*dp & ~mask) | (poison & mask);
}

HANDLER(unpack) {
  const int32_t *items = &warp->module->lists[op->target];
  unsigned bytes = op->bytes, lane = op->width / 8 < 4 ? 4 : op->width / 8;
  unsigned char in[SIM_LANES * 16];
  memcpy(in, sim_operand(warp, op->a), lane * SIM_LANES);
  uint32_t poison = *sim_poison(warp, op->a);
  for (unsigned i = 0; i < op->vector; i++) {
    unsigned char *to = sim_operand(warp, items[i]);
    SIM_EACH_BIT(mask, l) {
      if (bytes == 8) {
        memcpy(to + 8 * l, in + l * lane + 8 * i, 8);
      } else {
        uint32_t value = 0;
        memcpy(&value, in + l * lane + bytes * i, bytes);
        memcpy(to + 4 * l, &value, 4);
      }
    }
    uint32_t *dp = sim_poison(warp, items[i]);
    *dp = (*dp & ~mask) | (poison & mask);
  }
}

// cvta: generic to and from a window. Global and constant addresses are generic already.
HANDLER(cvta) {
  const sim_u64 *pa = sim_r64(warp, op->a);
  sim_u64 *pd = sim_r64(warp, op->d);
  uint64_t base = op->immediate;
  SIM_EACH(mask, l, { pd[l] = pa[l] + base; });
}

// ---- Decoding
// ----------------------------------------------------------------------------------------------

static uint64_t window(enum sim_space space) {
  switch (space) {
  case SIM_SPACE_SHARED: return SIM_SHARED_BASE;
  case SIM_SPACE_LOCAL: return SIM_LOCAL_BASE;
  case SIM_SPACE_PARAM: return SIM_PARAM_BASE;
  case SIM_SPACE_GENERIC:
  case SIM_SPACE_GLOBAL:
  case SIM_SPACE_CONST: break;
  }
  return 0;
}

// A name as a value: the address of a variable in its own space, or of a function. False when the name is
// none.
static bool symbol_value(struct sim_decoder *decoder, const struct ptx_operand *operand,
                         enum sim_space *space) {
  struct sim_op *op = decoder->op;
  if (operand->kind != PTX_NAME || operand->component) return false;
  struct sim_symbol *symbol = sim_symbol_find(decoder, operand->text);
  if (!symbol) return false;
  op->immediate = operand->value;
  if (symbol->kind == SIM_SYMBOL_VARIABLE) {
    op->symbol = (uint32_t)symbol->value;
    *space = decoder->module->variables[symbol->value].space;
  } else if (symbol->kind == SIM_SYMBOL_FRAME) {
    op->is_framed = true;
    op->immediate += symbol->value;
    *space = SIM_SPACE_LOCAL;
  } else if (symbol->kind == SIM_SYMBOL_PARAMETER) {
    op->immediate += symbol->value;
    *space = SIM_SPACE_PARAM;
  } else if (symbol->kind == SIM_SYMBOL_FUNCTION) {
    op->immediate += SIM_CODE_BASE + 16 * symbol->value;
    *space = SIM_SPACE_GENERIC;
  } else {
    return false;
  }
  return true;
}

static bool decode_clock(struct sim_decoder *decoder, const struct ptx_operand *operand, enum sim_type type) {
  static const struct {
    const char *name;
    uint8_t what, width;
  } clocks[] = {
      {"%clock", CLOCK, 32},       {"%clock_hi", CLOCK_HI, 32},       {"%clock64", CLOCK64, 64},
      {"%globaltimer", TIMER, 64}, {"%globaltimer_lo", TIMER_LO, 32}, {"%globaltimer_hi", TIMER_HI, 32},
      {"%gridid", GRIDID, 64},     {"%is_explicit_cluster", ZERO, 1}};
  if (operand->kind != PTX_NAME || operand->component) return false;
  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    if (strcmp(operand->text, clocks[i].name) != 0) continue;
    if (sim_type_bits(type) != clocks[i].width)
      sim_fail(decoder, "'%s' has %d bits", operand->text, clocks[i].width);
    decoder->op->sub = clocks[i].what;
    decoder->op->run = mov_clock;
    return true;
  }
  return false;
}

static enum sim_type bits_type(struct sim_decoder *decoder, unsigned bits) {
  switch (bits) {
  case 8: return SIM_B8;
  case 16: return SIM_B16;
  case 32: return SIM_B32;
  case 64: return SIM_B64;
  }
  sim_fail(decoder, "'mov' cannot split a value like this");
}

// Elements of a vector operand of `mov`: their slots, as results or as sources.
static void elements(struct sim_decoder *decoder, const struct ptx_operand *list, unsigned bits,
                     bool are_results) {
  struct sim_op *op = decoder->op;
  size_t count = list->items ? list->items->count : 0;
  if (count < 2 || count > 8 || bits % count) sim_fail(decoder, "'mov' cannot split a value like this");
  enum sim_type element = bits_type(decoder, (unsigned)(bits / count));
  int32_t slots[8];
  size_t i = 0;
  for (const struct ptx_operand *item = list->items; item; item = item->next, i++) {
    slots[i] = are_results ? sim_result_of(decoder, item, element) : sim_source_of(decoder, item, element);
  }
  op->kind = SIM_OP_RUN;
  op->vector = (uint8_t)count;
  op->bytes = (uint8_t)(bits / count / 8);
  op->target = sim_list(decoder, slots, count);
}

void sim_decode_mov(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  enum sim_type type = sim_take_type(decoder);
  unsigned bits = sim_type_bits(type);
  sim_operand_count(decoder, 2, 2);
  const struct ptx_operand *to = sim_operand_at(decoder, 0), *from = sim_operand_at(decoder, 1);
  op->width = (uint8_t)bits;
  op->type = (uint8_t)type;
  if (to->kind == PTX_LIST) {
    op->run = unpack;
    op->a = sim_source_of(decoder, from, type);
    elements(decoder, to, bits, true);
    return;
  }
  op->d = sim_result_of(decoder, to, type);
  if (from->kind == PTX_LIST && from->items && from->items->count > 1) {
    op->run = pack;
    elements(decoder, from, bits, false);
    return;
  }
  enum sim_space space;
  if (decode_clock(decoder, from, type)) return;
  if (!sim_is_register(decoder, from) && symbol_value(decoder, from, &space)) {
    if (bits != 32 && bits != 64) sim_fail(decoder, "an address has 32 or 64 bits");
    op->run = mov_symbol;
    return;
  }
  op->run = bits == 1 ? mov_pred : bits <= 32 ? mov_32 : bits == 64 ? mov_64 : mov_128;
  op->a = sim_source_of(decoder, from, type);
}

void sim_decode_cvta(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool is_to = sim_take(decoder, "to");
  enum sim_space space = sim_take_space(decoder), found;
  if (space == SIM_SPACE_GENERIC) sim_fail(decoder, "'cvta' needs a state space");
  enum sim_type type = sim_take_type(decoder);
  if (type != SIM_U64) sim_fail(decoder, "'cvta' needs the type .u64");
  sim_operand_count(decoder, 2, 2);
  op->width = 64;
  op->d = sim_result(decoder, 0, type);
  const struct ptx_operand *from = sim_operand_at(decoder, 1);
  uint64_t base = window(space);
  if (!sim_is_register(decoder, from) && symbol_value(decoder, from, &found)) {
    op->run = mov_symbol;
    op->immediate += is_to ? 0 : window(found);
    return;
  }
  op->run = cvta;
  op->a = sim_source_of(decoder, from, type);
  op->immediate = is_to ? 0 - base : base;
}
