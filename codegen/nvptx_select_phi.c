// Which phis, and which values that come into them, lie in one register, so that nothing is moved between them.
//
// Two values may share a register where neither lives at a place that defines the other. A phi is defined at the ends of the blocks before its own, whichever way they
// go on. ptxas removes most moves itself, but not those between the sums of a loop, of the loop that does what is left, and of what is behind both.
#include "codegen/nvptx_select.h"

#include <string.h>

struct candidate {
  LLVMValueRef value;
  uint32_t block, position; // of an instruction in its block
  bool is_phi;
  uint32_t class, next; // the first of those that share a register, and the one behind this; 0: none. Numbers from 1
  uint32_t last, size;  // of the first
  uint64_t *live;       // by block: lives where it begins
};

struct sharing {
  struct select *s;
  struct candidate *all; // from 1
  uint32_t count, capacity, words;
};

enum { MOST_CANDIDATES = 4000, MOST_BITS = 1 << 22, MOST_MEMBERS = 64 };

static uint32_t block_of(struct select *s, LLVMBasicBlockRef block) { return select_find(s, LLVMBasicBlockAsValue(block))->one.number; }

static uint32_t position_of(struct select *s, LLVMValueRef i) { return select_find(s, i)->one.number; }

static bool is_live(const struct candidate *c, uint32_t block) { return (c->live[block / 64] >> block % 64 & 1) != 0; }

// Whether the result has a register of its own that one line writes, and what reads it reads it where it stands.
static bool is_fit(LLVMValueRef value) {
  struct select_type type = select_type(LLVMTypeOf(value));
  if (type.lanes != 1 || type.bits < 32 || LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind || !LLVMIsAInstruction(value)) return false;
  switch ((int)LLVMGetInstructionOpcode(value)) {
  case LLVMPHI: if (LLVMCountIncoming(value) == 1) return false; break;
  case LLVMAdd: case LLVMSub: case LLVMMul: case LLVMFAdd: case LLVMFSub: case LLVMFMul: case LLVMFDiv: case LLVMFNeg: case LLVMSelect: case LLVMAnd: case LLVMOr: case LLVMCall: case LLVMLoad: break;
  default: return false;
  }
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsAInstruction(user)) return false;
    switch ((int)LLVMGetInstructionOpcode(user)) {
    case LLVMPHI: if (LLVMCountIncoming(user) == 1) return false; break;
    case LLVMAdd: case LLVMSub: case LLVMMul: case LLVMFAdd: case LLVMFSub: case LLVMFMul: case LLVMFDiv: case LLVMFNeg: case LLVMSelect: case LLVMAnd: case LLVMOr: case LLVMCall:
    case LLVMICmp: case LLVMFCmp: case LLVMStore: case LLVMXor: case LLVMShl: case LLVMFPExt: case LLVMFPTrunc: break;
    default: return false;
    }
  }
  return true;
}

static void visit_before(struct select *s, LLVMBasicBlockRef block, uint32_t *found, uint32_t *count) {
  *count = 0;
  for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsAInstruction(user)) continue;
    uint32_t from = block_of(s, LLVMGetInstructionParent(user));
    if (s->blocks[from].is_reached && *count < s->block_count) found[(*count)++] = from;
  }
}

// The value lives where the block begins: and so behind all that come before it, up to where it is defined.
static void mark(struct sharing *sharing, struct candidate *c, uint32_t block, uint32_t *stack, uint32_t *before) {
  struct select *s = sharing->s;
  uint32_t depth = 0;
  if (!is_live(c, block)) {
    c->live[block / 64] |= UINT64_C(1) << block % 64;
    stack[depth++] = block;
  }
  while (depth) {
    uint32_t count, at = stack[--depth];
    visit_before(s, s->blocks[at].block, before, &count);
    for (uint32_t i = 0; i < count; i++) {
      if (before[i] == c->block || is_live(c, before[i])) continue;
      c->live[before[i] / 64] |= UINT64_C(1) << before[i] % 64;
      stack[depth++] = before[i];
    }
  }
}

static void find_life(struct sharing *sharing, struct candidate *c, uint32_t *stack, uint32_t *before) {
  struct select *s = sharing->s;
  for (LLVMUseRef use = LLVMGetFirstUse(c->value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsAPHINode(user)) {
      uint32_t block = block_of(s, LLVMGetInstructionParent(user));
      if (block != c->block && s->blocks[block].is_reached) mark(sharing, c, block, stack, before);
      continue;
    }
    for (unsigned k = 0; k < LLVMCountIncoming(user); k++) {
      if (LLVMGetIncomingValue(user, k) != c->value) continue;
      uint32_t block = block_of(s, LLVMGetIncomingBlock(user, k));
      if (block != c->block && s->blocks[block].is_reached) mark(sharing, c, block, stack, before);
    }
  }
}

static LLVMValueRef incoming_from(LLVMValueRef phi, LLVMBasicBlockRef block) {
  for (unsigned k = 0; k < LLVMCountIncoming(phi); k++)
    if (LLVMGetIncomingBlock(phi, k) == block) return LLVMGetIncomingValue(phi, k);
  return NULL;
}

// Whether x lives behind the end of a block of which `value` is moved to another register there.
static bool lives_at_end(struct select *s, const struct candidate *x, LLVMBasicBlockRef block, LLVMValueRef value) {
  LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
  for (unsigned k = 0; k < LLVMGetNumSuccessors(end); k++) {
    uint32_t next = block_of(s, LLVMGetSuccessor(end, k));
    if (is_live(x, next)) return true;
    if (x->is_phi && x->block == next && incoming_from(x->value, block) != value) return true;
  }
  return false;
}

// Whether the end of a block, where x is moved to another register, gives x another value.
static bool is_replaced(struct select *s, const struct candidate *x, LLVMBasicBlockRef block) {
  LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
  for (unsigned k = 0; x->is_phi && k < LLVMGetNumSuccessors(end); k++)
    if (x->block == block_of(s, LLVMGetSuccessor(end, k)) && incoming_from(x->value, block) != x->value) return true;
  return false;
}

static bool lives_behind(struct select *s, const struct candidate *x, uint32_t block, uint32_t position) {
  bool is_defined = x->block == block ? x->is_phi || x->position < position : is_live(x, block);
  if (!is_defined) return false;
  LLVMValueRef end = LLVMGetBasicBlockTerminator(s->blocks[block].block);
  for (unsigned k = 0; k < LLVMGetNumSuccessors(end); k++)
    if (is_live(x, block_of(s, LLVMGetSuccessor(end, k)))) return true;
  for (LLVMUseRef use = LLVMGetFirstUse(x->value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (LLVMIsAPHINode(user)) {
      if (incoming_from(user, s->blocks[block].block) == x->value) return true;
    } else if (block_of(s, LLVMGetInstructionParent(user)) == block && position_of(s, user) > position) {
      return true;
    }
  }
  return false;
}

// Whether x lives where y is defined.
static bool meets(struct select *s, const struct candidate *x, const struct candidate *y) {
  if (!y->is_phi) return lives_behind(s, x, y->block, y->position);
  for (unsigned k = 0; k < LLVMCountIncoming(y->value); k++) {
    LLVMBasicBlockRef from = LLVMGetIncomingBlock(y->value, k);
    LLVMValueRef value = LLVMGetIncomingValue(y->value, k);
    if (!s->blocks[block_of(s, from)].is_reached) continue;
    if (value == x->value ? is_replaced(s, x, from) : lives_at_end(s, x, from, value)) return true;
  }
  return false;
}

// Whether the phi is written at an end behind which its old value is read.
static bool meets_itself(struct select *s, const struct candidate *phi) {
  for (unsigned k = 0; k < LLVMCountIncoming(phi->value); k++) {
    LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi->value, k);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    if (!s->blocks[block_of(s, from)].is_reached || LLVMGetIncomingValue(phi->value, k) == phi->value) continue;
    for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++)
      if (is_live(phi, block_of(s, LLVMGetSuccessor(end, i)))) return true;
  }
  return false;
}

static uint32_t candidate_of(struct sharing *sharing, LLVMValueRef value) {
  const struct select_value *known = select_find(sharing->s, value);
  return known ? known->plain_block : 0;
}

static void add_candidate(struct sharing *sharing, LLVMValueRef value, uint32_t *stack, uint32_t *before) {
  struct select *s = sharing->s;
  if (!LLVMIsAInstruction(value) || candidate_of(sharing, value) || sharing->count == MOST_CANDIDATES || !is_fit(value)) return;
  uint32_t block = block_of(s, LLVMGetInstructionParent(value));
  if (!s->blocks[block].is_reached) return;
  if (sharing->count + 1 >= sharing->capacity) {
    struct candidate *old = sharing->all;
    sharing->capacity = 2 * sharing->capacity + 32;
    sharing->all = arena_array(s->cg->context->arena, struct candidate, sharing->capacity);
    if (old) memcpy(sharing->all, old, (sharing->count + 1) * sizeof *old);
  }
  struct candidate made = {.value = value, .block = block, .position = position_of(s, value), .is_phi = LLVMIsAPHINode(value) != NULL, .size = 1};
  made.live = arena_array(s->cg->context->arena, uint64_t, sharing->words);
  find_life(sharing, &made, stack, before);
  if (made.is_phi && meets_itself(s, &made)) return;
  made.class = made.last = ++sharing->count;
  sharing->all[sharing->count] = made;
  select_find(s, value)->plain_block = sharing->count;
}

static void join(struct sharing *sharing, uint32_t a, uint32_t b) {
  struct candidate *all = sharing->all;
  a = all[a].class;
  b = all[b].class;
  if (a == b || select_type(LLVMTypeOf(all[a].value)).home != select_type(LLVMTypeOf(all[b].value)).home || all[a].size + all[b].size > MOST_MEMBERS) return;
  for (uint32_t i = a; i; i = all[i].next)
    for (uint32_t k = b; k; k = all[k].next)
      if (meets(sharing->s, &all[i], &all[k]) || meets(sharing->s, &all[k], &all[i])) return;
  for (uint32_t k = b; k; k = all[k].next) all[k].class = a;
  all[all[a].last].next = b;
  all[a].last = all[b].last;
  all[a].size += all[b].size;
}

void select_share(struct select *s) {
  struct sharing sharing = {.s = s, .words = (s->block_count + 63) / 64};
  struct arena *arena = s->cg->context->arena;
  uint32_t *stack = arena_array(arena, uint32_t, s->block_count + 1), *before = arena_array(arena, uint32_t, s->block_count + 1);
  for (uint32_t b = 0; b < s->block_count; b++) {
    uint32_t position = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(s->blocks[b].block); i; i = LLVMGetNextInstruction(i))
      select_define_lanes(s, i, &(struct select_operand){.number = position++}, 0);
  }
  if ((uint64_t)MOST_CANDIDATES * s->block_count > (uint64_t)MOST_BITS * 16) return;
  for (uint32_t b = 0; b < s->block_count; b++) {
    if (!s->blocks[b].is_reached) continue;
    for (LLVMValueRef i = LLVMGetFirstInstruction(s->blocks[b].block); i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
      add_candidate(&sharing, i, stack, before);
      if (!candidate_of(&sharing, i)) continue;
      for (unsigned k = 0; k < LLVMCountIncoming(i); k++) add_candidate(&sharing, LLVMGetIncomingValue(i, k), stack, before);
    }
  }
  for (uint32_t p = 1; p <= sharing.count; p++) {
    if (!sharing.all[p].is_phi) continue;
    for (unsigned k = 0; k < LLVMCountIncoming(sharing.all[p].value); k++) {
      uint32_t other = candidate_of(&sharing, LLVMGetIncomingValue(sharing.all[p].value, k));
      if (other) join(&sharing, p, other);
    }
  }
  s->shares = arena_array(arena, struct select_share, sharing.count + 1);
  for (uint32_t p = 1; p <= sharing.count; p++) {
    struct candidate *c = &sharing.all[p];
    struct select_share *share = &s->shares[c->class];
    if (share->home.kind == SELECT_NOTHING && (c->is_phi || sharing.all[c->class].size > 1)) share->home = select_new(s, select_type(LLVMTypeOf(c->value)).home);
    select_find(s, c->value)->plain_block = c->class;
  }
}
