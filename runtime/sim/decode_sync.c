// Decodes warp instructions, barriers and fences.
#include "runtime/sim/decode.h"
#include "runtime/sim/collective.h"

static void nothing(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  (void)warp, (void)op, (void)mask;
}

// The membermask, operand `index`, into f.
static void member_mask(struct sim_decoder *decoder, size_t index) {
  struct sim_op *op = decoder->op;
  op->kind = SIM_OP_COLLECTIVE;
  op->f = sim_source(decoder, index, SIM_B32);
}

static void need_sync(struct sim_decoder *decoder) {
  if (!sim_take(decoder, "sync")) {
    sim_fail(decoder, "'%s' without .sync is not supported", decoder->instruction->opcode);
  }
}

// A result that may be a pair with a predicate.
static void result_pair(struct sim_decoder *decoder, enum sim_type type) {
  struct sim_op *op = decoder->op;
  const struct ptx_operand *result = sim_operand_at(decoder, 0);
  if (result->kind == PTX_PAIR) {
    op->d = sim_result_of(decoder, result->items, type);
    op->e = sim_result_of(decoder, result->items->next, SIM_PRED);
    op->has_result = true;
  } else {
    op->d = sim_result_of(decoder, result, type);
  }
}

void sim_decode_shfl(struct sim_decoder *decoder) {
  static const char *const modes[] = {"up", "down", "bfly", "idx"};
  struct sim_op *op = decoder->op;
  need_sync(decoder);
  bool is_found = false;
  for (unsigned i = 0; i < 4; i++) {
    if (sim_take(decoder, modes[i])) op->sub = (uint8_t)i, is_found = true;
  }
  if (!is_found || sim_take_type(decoder) != SIM_B32)
    sim_fail(decoder, "'shfl.sync' needs a mode and the type .b32");
  sim_operand_count(decoder, 5, 5);
  result_pair(decoder, SIM_B32);
  op->a = sim_source(decoder, 1, SIM_B32);
  op->b = sim_source(decoder, 2, SIM_B32);
  op->c = sim_source(decoder, 3, SIM_B32);
  member_mask(decoder, 4);
  op->run = sim_run_shfl;
}

void sim_decode_vote(struct sim_decoder *decoder) {
  static const char *const modes[] = {"all", "any", "uni", "ballot"};
  struct sim_op *op = decoder->op;
  need_sync(decoder);
  bool is_found = false;
  for (unsigned i = 0; i < 4; i++) {
    if (sim_take(decoder, modes[i])) op->sub = (uint8_t)i, is_found = true;
  }
  enum sim_type type = sim_take_type(decoder);
  if (!is_found || type != (op->sub == 3 ? SIM_B32 : SIM_PRED))
    sim_fail(decoder, "'vote.sync' needs a mode and its type");
  sim_operand_count(decoder, 3, 3);
  op->d = sim_result(decoder, 0, type);
  op->a = sim_predicate(decoder, sim_operand_at(decoder, 1), &op->c_is_negated);
  member_mask(decoder, 2);
  op->run = sim_run_vote;
}

void sim_decode_match(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  bool is_all = sim_take(decoder, "all");
  if (!is_all && !sim_take(decoder, "any")) sim_fail(decoder, "'match' needs .any or .all");
  need_sync(decoder);
  enum sim_type type = sim_take_type(decoder);
  if (type != SIM_B32 && type != SIM_B64) sim_fail(decoder, "'match' needs the type .b32 or .b64");
  op->sub = is_all;
  op->type = (uint8_t)type;
  sim_operand_count(decoder, 3, 3);
  result_pair(decoder, SIM_B32);
  op->a = sim_source(decoder, 1, type);
  member_mask(decoder, 2);
  op->run = sim_run_match;
}

void sim_decode_redux(struct sim_decoder *decoder) {
  static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
  struct sim_op *op = decoder->op;
  need_sync(decoder);
  bool is_found = false;
  for (unsigned i = 0; i < 6; i++) {
    if (sim_take(decoder, names[i])) op->sub = (uint8_t)i, is_found = true;
  }
  op->is_abs = sim_take(decoder, "abs");
  op->is_nan = sim_take(decoder, "NaN");
  enum sim_type type = sim_take_type(decoder);
  bool is_right = op->sub >= 3      ? type == SIM_B32
                  : type == SIM_F32 ? op->sub != 0
                                    : type == SIM_U32 || type == SIM_S32;
  if (!is_found || !is_right || (type != SIM_F32 && (op->is_abs || op->is_nan))) {
    sim_fail(decoder, "'redux.sync' needs an operation and a type that it takes");
  }
  op->type = (uint8_t)type;
  sim_operand_count(decoder, 3, 3);
  op->d = sim_result(decoder, 0, type);
  op->a = sim_source(decoder, 1, type);
  member_mask(decoder, 2);
  op->run = sim_run_redux;
}

void sim_decode_elect(struct sim_decoder *decoder) {
  need_sync(decoder);
  sim_operand_count(decoder, 2, 2);
  result_pair(decoder, SIM_B32);
  member_mask(decoder, 1);
  decoder->op->run = sim_run_elect;
}

void sim_decode_activemask(struct sim_decoder *decoder) {
  if (sim_take_type(decoder) != SIM_B32) sim_fail(decoder, "'activemask' needs the type .b32");
  sim_operand_count(decoder, 1, 1);
  decoder->op->d = sim_result(decoder, 0, SIM_B32);
  decoder->op->run = sim_run_activemask;
}

// ---- Block barriers
// ----------------------------------------------------------------------------------------

// The number of the barrier, and of threads where it is given, from operand `index` on.
static size_t barrier_operands(struct sim_decoder *decoder, size_t index, size_t after) {
  struct sim_op *op = decoder->op;
  size_t count = decoder->instruction->operand_count;
  op->a = sim_source(decoder, index, SIM_U32);
  if (count <= index + 1 + after) return index + 1;
  op->b = sim_source(decoder, index + 1, SIM_U32);
  op->has_result = true; // a number of threads
  return index + 2;
}

static void block_barrier(struct sim_decoder *decoder, bool is_aligned) {
  struct sim_op *op = decoder->op;
  sim_take(decoder, "cta");
  op->kind = SIM_OP_BARRIER;
  op->is_aligned = is_aligned;
  op->run = nothing;
  if (sim_take(decoder, "sync")) {
    sim_operand_count(decoder, 1, 2);
    barrier_operands(decoder, 0, 0);
  } else if (sim_take(decoder, "arrive")) {
    op->sub = SIM_BAR_ARRIVE;
    sim_operand_count(decoder, 2, 2);
    barrier_operands(decoder, 0, 0);
  } else if (sim_take(decoder, "red")) {
    op->sub = sim_take(decoder, "popc") ? SIM_BAR_POPC : sim_take(decoder, "and") ? SIM_BAR_AND : SIM_BAR_OR;
    if (op->sub == SIM_BAR_OR && !sim_take(decoder, "or"))
      sim_fail(decoder, "a barrier's .red needs .popc, .and or .or");
    enum sim_type type = sim_take_type(decoder);
    if (type != (op->sub == SIM_BAR_POPC ? SIM_U32 : SIM_PRED))
      sim_fail(decoder, "a barrier's .red does not give this type");
    sim_operand_count(decoder, 3, 4);
    op->d = sim_result(decoder, 0, type);
    size_t next = barrier_operands(decoder, 1, 1);
    op->c = sim_predicate(decoder, sim_operand_at(decoder, next), &op->c_is_negated);
  } else {
    sim_fail(decoder, "'%s' needs .sync, .arrive or .red", decoder->instruction->opcode);
  }
}

void sim_decode_bar(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  if (!sim_take(decoder, "warp")) {
    block_barrier(decoder, true);
    return;
  }
  need_sync(decoder);
  sim_operand_count(decoder, 1, 1);
  member_mask(decoder, 0);
  op->sub = SIM_WARP_BARRIER;
  op->run = nothing;
}

void sim_decode_barrier(struct sim_decoder *decoder) {
  if (sim_take(decoder, "cluster")) sim_fail(decoder, "'barrier.cluster' is not supported");
  block_barrier(decoder, sim_take(decoder, "aligned"));
}

// ---- Fences and hints
// --------------------------------------------------------------------------------------

static void run_fence(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  atomic_thread_fence(memory_order_seq_cst);
  sim_clock_fence(warp, mask, (enum sim_scope)op->scope);
}

// membar.{cta,gl,sys} and fence{.sc,.acq_rel,.acquire,.release}.{cta,cluster,gpu,sys}.
void sim_decode_fence(struct sim_decoder *decoder) {
  static const char *const words[] = {"sc", "acq_rel", "acquire", "release"};
  struct sim_op *op = decoder->op;
  for (int i = 0; i < 4; i++) sim_take(decoder, words[i]);
  if (sim_take(decoder, "proxy")) {
    // Between proxies: here there is one.
    static const char *const proxies[] = {"alias", "async", "async.global", "global", "shared::cta"};
    for (int i = 0; i < 5; i++) sim_take(decoder, proxies[i]);
    op->kind = SIM_OP_RUN;
    op->run = nothing;
    return;
  }
  bool is_cta = sim_take(decoder, "cta");
  bool is_wide = sim_take(decoder, "gl") || sim_take(decoder, "gpu") || sim_take(decoder, "sys") ||
                 sim_take(decoder, "cluster");
  if (!is_cta && !is_wide) sim_fail(decoder, "'%s' needs a scope", decoder->instruction->opcode);
  sim_operand_count(decoder, 0, 0);
  op->scope = is_cta ? SIM_SCOPE_CTA : SIM_SCOPE_GPU;
  op->kind = SIM_OP_RUN;
  op->run = run_fence;
}

void sim_decode_griddepcontrol(struct sim_decoder *decoder) {
  if (!sim_take(decoder, "wait") && !sim_take(decoder, "launch_dependents")) {
    sim_fail(decoder, "'griddepcontrol' needs .wait or .launch_dependents");
  }
  decoder->op->kind = SIM_OP_RUN;
  decoder->op->run = nothing;
}

void sim_decode_pmevent(struct sim_decoder *decoder) {
  sim_take(decoder, "mask");
  sim_immediate(decoder, 0);
  decoder->op->kind = SIM_OP_RUN;
  decoder->op->run = nothing;
}

void sim_decode_nanosleep(struct sim_decoder *decoder) {
  sim_take_type(decoder);
  sim_source(decoder, 0, SIM_U32);
  decoder->op->kind = SIM_OP_YIELD;
  decoder->op->run = nothing;
}
