// Modules, functions, blocks, phis and places in the source.
//
// Blocks are worked on in an order in which what a block uses comes before it, and printed in LLVM's. A phi is two registers: the blocks before it write one, and its own
// block copies that to the other, so that phis which exchange their values, or are read behind the loop that writes them, need no care; ptxas makes one of both.
#include "codegen/nvptx_select.h"

#include <string.h>

static void *grown(struct select *s, void *old, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return old;
  *capacity = count ? 2 * count : 4;
  char *new = arena_array(s->cg->context->arena, char, *capacity * size);
  if (count) memcpy(new, old, count * size);
  return new;
}

// --- Places in the source ----------------------------------------------------------------------------------

// Number of the file for .loc, 0 for one that is not among the compilation's.
static uint32_t file_number(struct select *s, LLVMMetadataRef place) {
  LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(place));
  const struct nvptx *cg = s->cg;
  uint32_t sources = cg->context->diag->sources.count + 1;
  for (uint32_t i = 0; i < sources; i++) {
    if (cg->files[i] != file) continue;
    if (!s->file_numbers[i]) s->file_numbers[i] = ++s->file_count;
    return s->file_numbers[i];
  }
  return 0;
}

static void print_place(struct select *s, LLVMValueRef i) {
  LLVMMetadataRef place = LLVMInstructionGetDebugLoc(i);
  if (!place || place == s->at) return;
  s->at = place;
  unsigned line = LLVMDILocationGetLine(place);
  uint32_t file = line ? file_number(s, place) : 0;
  if (file) text_printf(&s->body, "\t.loc\t%u %u %u\n", (unsigned)file, line, LLVMDILocationGetColumn(place));
}

static void print_files(struct select *s) {
  const struct list *sources = &s->cg->context->diag->sources;
  for (uint32_t number = 1; number <= s->file_count; number++)
    for (uint32_t i = 0; i < sources->count + 1; i++) {
      if (s->file_numbers[i] != number) continue;
      text_printf(s->out, "\t.file\t%u \"", (unsigned)number);
      const char *name = sources->count ? list_at(sources, struct source, i)->name : "<unknown>";
      for (; *name; name++) {
        if (*name == '"' || *name == '\\') text_append(s->out, "\\", 1);
        text_append(s->out, name, 1);
      }
      text_puts(s->out, "\"\n");
    }
}

// --- Blocks ------------------------------------------------------------------------------------------------

static LLVMValueRef key_of(LLVMBasicBlockRef block) { return LLVMBasicBlockAsValue(block); }

static uint32_t index_of(struct select *s, LLVMBasicBlockRef block) {
  const struct select_value *value = select_find(s, key_of(block));
  return value->one.number;
}

static void find_blocks(struct select *s) {
  s->block_count = LLVMCountBasicBlocks(s->function);
  s->blocks = arena_array(s->cg->context->arena, struct select_block, s->block_count);
  uint32_t count = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(s->function); block; block = LLVMGetNextBasicBlock(block)) {
    select_define(s, key_of(block), (struct select_operand){.number = count});
    s->blocks[count++].block = block;
  }
}

// The blocks that are reached, each behind those that dominate it: depth first, backwards.
static uint32_t order_blocks(struct select *s, uint32_t *order) {
  struct frame {
    uint32_t block, left;
  } *stack = arena_array(s->cg->context->arena, struct frame, s->block_count);
  uint32_t depth = 0, at = s->block_count;
  LLVMValueRef end = LLVMGetBasicBlockTerminator(s->blocks[0].block);
  s->blocks[0].is_reached = true;
  stack[depth++] = (struct frame){0, LLVMGetNumSuccessors(end)};
  while (depth) {
    struct frame *top = &stack[depth - 1];
    if (!top->left) {
      order[--at] = top->block;
      depth--;
      continue;
    }
    end = LLVMGetBasicBlockTerminator(s->blocks[top->block].block);
    uint32_t next = index_of(s, LLVMGetSuccessor(end, --top->left));
    if (s->blocks[next].is_reached) continue;
    s->blocks[next].is_reached = true;
    stack[depth++] = (struct frame){next, LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(s->blocks[next].block))};
  }
  uint32_t count = s->block_count - at;
  memmove(order, order + at, count * sizeof *order);
  for (uint32_t i = 0; i < count; i++) s->blocks[order[i]].rank = i;
  uint32_t capacity = 0;
  s->back_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    end = LLVMGetBasicBlockTerminator(s->blocks[order[i]].block);
    for (unsigned k = 0; k < LLVMGetNumSuccessors(end); k++) {
      uint32_t to = s->blocks[index_of(s, LLVMGetSuccessor(end, k))].rank;
      if (to > i) continue;
      s->backs = grown(s, s->backs, s->back_count, &capacity, sizeof *s->backs);
      s->backs[s->back_count++] = (struct select_back){i, to};
    }
  }
  return count;
}

// --- Phis --------------------------------------------------------------------------------------------------

// Whether the block is in a loop, or might be.
static bool is_repeated(const struct select *s, const struct select_block *block) {
  for (uint32_t i = 0; i < s->back_count; i++)
    if (s->backs[i].to <= block->rank && block->rank <= s->backs[i].from) return true;
  return false;
}

// Whether the phi is dead behind the instructions of its block, so that it may be written at the end of any: nothing reads it there, nor what has its register.
static bool ends_in_block(LLVMValueRef phi) {
  LLVMBasicBlockRef block = LLVMGetInstructionParent(phi);
  for (LLVMUseRef use = LLVMGetFirstUse(phi); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (user == phi) {
      for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingValue(phi, i) == phi && LLVMGetIncomingBlock(phi, i) != block) return false;
      continue;
    }
    if (!LLVMIsAInstruction(user) || LLVMGetInstructionParent(user) != block) return false;
    switch ((int)LLVMGetInstructionOpcode(user)) {
    case LLVMAdd: case LLVMSub: case LLVMMul: case LLVMFAdd: case LLVMFSub: case LLVMFMul: case LLVMFDiv: case LLVMSelect: case LLVMICmp: case LLVMFCmp: case LLVMShl: case LLVMCall: break;
    default: return false;
    }
  }
  return true;
}

static void add_phi(struct select *s, struct select_block *block, LLVMValueRef phi) {
  struct select_type type = select_type(LLVMTypeOf(phi));
  if (!type.bits) {
    select_refuse(s, "a type of another size");
    return;
  }
  struct arena *arena = s->cg->context->arena;
  const struct select_value *known = select_find(s, phi);
  struct select_operand shared = s->shares[known ? known->plain_block : 0].home;
  bool is_one = shared.kind == SELECT_REGISTER || !is_repeated(s, block) || ends_in_block(phi);
  struct select_operand *in = arena_array(arena, struct select_operand, type.lanes), *out = is_one ? in : arena_array(arena, struct select_operand, type.lanes);
  struct select_phi made = {phi, type.lanes, in, out};
  for (uint32_t k = 0; k < type.lanes; k++) {
    in[k] = shared.kind == SELECT_REGISTER ? shared : select_new(s, type.home);
    if (!is_one) out[k] = select_new(s, type.home);
  }
  select_define_lanes(s, phi, made.out, type.lanes);
  block->phis = grown(s, block->phis, block->phi_count, &block->phi_capacity, sizeof *block->phis);
  block->phis[block->phi_count++] = made;
}

// A phi of one block before it is the value itself, once the block is worked on.
static bool is_alone(LLVMValueRef phi) { return LLVMCountIncoming(phi) == 1; }

static void find_phis(struct select *s) {
  for (uint32_t b = 0; b < s->block_count && !s->refusal; b++) {
    if (!s->blocks[b].is_reached) continue;
    for (LLVMValueRef i = LLVMGetFirstInstruction(s->blocks[b].block); i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i))
      if (!is_alone(i)) add_phi(s, &s->blocks[b], i);
  }
}

static void begin_phis(struct select *s, struct select_block *block) {
  for (uint32_t p = 0; p < block->phi_count; p++)
    for (uint32_t k = 0; k < block->phis[p].lanes && block->phis[p].in != block->phis[p].out; k++) select_move(s, block->phis[p].out[k], block->phis[p].in[k]);
}

// Moves that happen at once.
struct moves {
  struct select_operand *to, *from;
  uint32_t count, to_capacity, from_capacity;
};

static void add_moves(struct select *s, LLVMBasicBlockRef from, const struct select_block *to, struct moves *moves) {
  for (uint32_t p = 0; p < to->phi_count; p++) {
    const struct select_phi *phi = &to->phis[p];
    unsigned count = LLVMCountIncoming(phi->phi), i = 0;
    while (i < count && LLVMGetIncomingBlock(phi->phi, i) != from) i++;
    if (i == count) continue;
    LLVMValueRef value = LLVMGetIncomingValue(phi->phi, i);
    if (LLVMIsUndef(value) || (value == phi->phi && phi->in == phi->out)) continue;
    for (uint32_t k = 0; k < phi->lanes; k++) {
      moves->to = grown(s, moves->to, moves->count, &moves->to_capacity, sizeof *moves->to);
      moves->from = grown(s, moves->from, moves->count, &moves->from_capacity, sizeof *moves->from);
      moves->from[moves->count] = select_lane(s, value, k);
      moves->to[moves->count++] = phi->in[k];
    }
  }
}

static bool is_same(const struct select_operand *a, const struct select_operand *b) { return a->kind == SELECT_REGISTER && b->kind == SELECT_REGISTER && a->home == b->home && a->number == b->number; }

// What an earlier move would write before a later one reads it is kept elsewhere.
static void make_moves(struct select *s, struct moves *moves) {
  for (uint32_t j = 1; j < moves->count; j++)
    for (uint32_t i = 0; i < j; i++) {
      if (!is_same(&moves->to[i], &moves->from[j]) || is_same(&moves->to[i], &moves->from[i])) continue;
      struct select_operand kept = select_new(s, (enum select_register)moves->from[j].home);
      select_move(s, kept, moves->from[j]);
      moves->from[j] = kept;
    }
  for (uint32_t i = 0; i < moves->count; i++)
    if (!is_same(&moves->to[i], &moves->from[i])) select_move(s, moves->to[i], moves->from[i]);
}

// --- Ends of blocks ----------------------------------------------------------------------------------------

static void branch(struct select *s, const char *condition, uint32_t number, uint32_t to) {
  s->blocks[to].is_named = true;
  if (condition) text_printf(&s->body, "\t@%s%%p%u bra \t$L__BB%u_%u;\n", condition, (unsigned)number, (unsigned)s->place, (unsigned)to);
  else text_printf(&s->body, "\tbra.uni \t$L__BB%u_%u;\n", (unsigned)s->place, (unsigned)to);
}

// The reached block that is printed behind this one.
static uint32_t next_block(const struct select *s) {
  uint32_t next = s->block + 1;
  while (next < s->block_count && !s->blocks[next].is_reached) next++;
  return next;
}

static void end_block(struct select *s, LLVMValueRef end) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(end);
  if (opcode == LLVMRet) {
    text_puts(&s->body, "\tret;\n");
    return;
  }
  if (opcode != LLVMBr) {
    select_refuse(s, "a block that ends in another way");
    return;
  }
  LLVMBasicBlockRef from = LLVMGetInstructionParent(end);
  uint32_t first = index_of(s, LLVMGetSuccessor(end, 0)), next = next_block(s);
  struct moves moves = {0};
  add_moves(s, from, &s->blocks[first], &moves);
  if (!LLVMIsConditional(end)) {
    make_moves(s, &moves);
    if (first != next) branch(s, NULL, 0, first);
    return;
  }
  uint32_t second = index_of(s, LLVMGetSuccessor(end, 1));
  if (second != first) add_moves(s, from, &s->blocks[second], &moves);
  struct select_operand condition = select_in_register(s, select_get(s, LLVMGetCondition(end)));
  make_moves(s, &moves);
  if (first == next) {
    branch(s, "!", condition.number, second);
    return;
  }
  branch(s, "", condition.number, first);
  if (second != next) branch(s, NULL, 0, second);
}

// Whether a branch back to the block says that its loop is not to be unrolled.
static bool stays_rolled(struct select *s, LLVMBasicBlockRef block, uint32_t rank) {
  for (LLVMUseRef use = LLVMGetFirstUse(key_of(block)); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use), loop = LLVMIsAInstruction(user) ? LLVMGetMetadata(user, s->loop) : NULL;
    if (!loop || s->blocks[index_of(s, LLVMGetInstructionParent(user))].rank < rank) continue;
    enum { MOST = 8 };
    LLVMValueRef parts[MOST];
    unsigned count = LLVMGetMDNodeNumOperands(loop);
    if (count > MOST) continue;
    LLVMGetMDNodeOperands(loop, parts);
    for (unsigned k = 1; k < count; k++) {
      LLVMValueRef part = parts[k], words[MOST];
      if (!part || LLVMGetMDNodeNumOperands(part) != 1) continue;
      LLVMGetMDNodeOperands(part, words);
      unsigned length;
      const char *word = words[0] ? LLVMGetMDString(words[0], &length) : NULL;
      static const char disabled[] = "llvm.loop.unroll.disable";
      if (word && length == sizeof disabled - 1 && memcmp(word, disabled, length) == 0) return true;
    }
  }
  return false;
}

// The result of the line before in the register that it shares.
static void put_in(struct select *s, LLVMValueRef i, struct select_operand home) {
  struct select_operand result = select_raw(s, i);
  size_t line = s->body.length - 1;
  while (line && s->body.data[line - 1] != '\n') line--;
  const char *place = memchr(s->body.data + line, '%', s->body.length - line);
  char *tail = place ? arena_strndup(s->cg->context->arena, place, (size_t)(s->body.data + s->body.length - place)) : NULL;
  struct text name = {0};
  select_operand_text(&name, result);
  bool is_last = result.kind == SELECT_REGISTER && !result.extended && !result.distance && result.home == home.home && result.number == s->registers[home.home] && tail &&
                 strncmp(tail, name.data, name.length) == 0 && tail[name.length] == ',';
  if (is_last) {
    s->body.length = (size_t)(place - s->body.data);
    select_operand_text(&s->body, home);
    text_puts(&s->body, tail + name.length);
    s->registers[home.home]--;
  } else {
    select_move(s, home, select_get(s, i));
  }
  text_free(&name);
  if (result.kind == SELECT_REGISTER) select_forget_sums(s, (enum select_register)result.home, result.number);
  select_forget_sums(s, (enum select_register)home.home, home.number);
  select_define(s, i, home);
}

static bool is_unused(LLVMValueRef i) {
  if (LLVMGetFirstUse(i) || LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMVoidTypeKind) return false;
  LLVMValueRef code = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
  return !code || (LLVMIsAInlineAsm(code) && !LLVMGetInlineAsmHasSideEffects(code));
}

static void print_block(struct select *s, uint32_t b) {
  struct select_block *block = &s->blocks[b];
  s->block = b;
  s->printed++;
  s->at = NULL;
  block->from = s->body.length;
  if (stays_rolled(s, block->block, block->rank)) text_puts(&s->body, "\t.pragma \"nounroll\";\n");
  begin_phis(s, block);
  LLVMValueRef end = LLVMGetBasicBlockTerminator(block->block);
  for (LLVMValueRef i = LLVMGetFirstInstruction(block->block); i && i != end && !s->refusal; i = LLVMGetNextInstruction(i)) {
    if (!LLVMIsAPHINode(i)) {
      if (is_unused(i)) continue;
      print_place(s, i);
      const struct select_value *known = select_find(s, i);
      uint32_t share = known->plain_block;
      select_instruction(s, i);
      if (share && s->shares[share].home.kind == SELECT_REGISTER && !s->refusal) put_in(s, i, s->shares[share].home);
    } else if (is_alone(i)) {
      LLVMValueRef value = LLVMGetIncomingValue(i, 0);
      struct select_type type = select_type(LLVMTypeOf(i));
      if (type.lanes == 1) {
        select_define(s, i, select_raw(s, value));
        continue;
      }
      struct select_operand *lanes = arena_array(s->cg->context->arena, struct select_operand, type.lanes);
      for (uint32_t k = 0; k < type.lanes; k++) lanes[k] = select_lane(s, value, k);
      select_define_lanes(s, i, lanes, type.lanes);
    }
  }
  if (!s->refusal) end_block(s, end);
  block->to = s->body.length;
}

// --- Functions ---------------------------------------------------------------------------------------------

static const char *attribute_of(LLVMValueRef function, const char *key, unsigned *length) {
  LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, key, (unsigned)strlen(key));
  *length = 0;
  return attribute ? LLVMGetStringAttributeValue(attribute, length) : NULL;
}

static void print_head(struct select *s) {
  struct text *out = s->out;
  text_printf(out, ".visible .entry %s(\n", s->name);
  unsigned count = LLVMCountParams(s->function), length;
  for (unsigned i = 0; i < count; i++) {
    struct select_type type = select_type(LLVMTypeOf(LLVMGetParam(s->function, i)));
    text_printf(out, "\t.param .%c%u %s_param_%u%s\n", type.is_float && type.bits > 16 ? 'f' : 'u', (unsigned)type.bits, s->name, i, i + 1 < count ? "," : "");
  }
  text_puts(out, ")\n");
  const char *threads = attribute_of(s->function, "nvvm.reqntid", &length);
  if (threads) {
    text_puts(out, ".reqntid ");
    for (unsigned i = 0; i < length; i++) text_append(out, threads[i] == ',' ? ", " : &threads[i], threads[i] == ',' ? 2 : 1);
    text_puts(out, "\n");
  }
  const char *blocks = attribute_of(s->function, "nvvm.minctasm", &length);
  if (blocks) text_printf(out, ".minnctapersm %.*s\n", (int)length, blocks);
}

static void print_variables(struct select *s) {
  struct text *out = s->out;
  static const char *const kinds[] = {"pred", "b16", "b32", "b64"}, *const names[] = {"%p", "%rs", "%r", "%rd"};
  if (s->local_bytes) text_printf(out, "\t.local .align 16 .b8 \t__local_depot%u[%llu];\n", (unsigned)s->place, (unsigned long long)s->local_bytes);
  for (int home = 0; home < REGISTER_COUNT; home++)
    if (s->registers[home]) text_printf(out, "\t.reg .%s \t%s<%u>;\n", kinds[home], names[home], (unsigned)s->registers[home] + 1);
  for (uint32_t i = 0; i < s->shared_count; i++) {
    size_t length;
    uint64_t bytes = select_bytes(s, LLVMGlobalGetValueType(s->shared[i]));
    if (!LLVMIsDeclaration(s->shared[i]))
      text_printf(out, "\t.shared .align %u .b8 %s[%llu];\n", LLVMGetAlignment(s->shared[i]), LLVMGetValueName2(s->shared[i], &length), (unsigned long long)bytes);
  }
}

static void define_parameters(struct select *s) {
  unsigned count = LLVMCountParams(s->function);
  s->block = 0;
  // they come from where the first instruction with a place does
  LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(s->function));
  while (first && !LLVMInstructionGetDebugLoc(first)) first = LLVMGetNextInstruction(first);
  if (first) print_place(s, first);
  for (unsigned i = 0; i < count; i++) {
    LLVMValueRef parameter = LLVMGetParam(s->function, i);
    struct select_type type = select_type(LLVMTypeOf(parameter));
    if (type.lanes != 1 || type.bits < 8) {
      select_refuse(s, "a parameter of several parts");
      return;
    }
    if (!LLVMGetFirstUse(parameter)) continue;
    struct select_operand home = select_new(s, type.home);
    home.is_zeroed = type.bits == 8;
    text_printf(&s->body, "\tld.param.%c%u \t", type.is_float && type.bits > 16 ? 'f' : 'u', (unsigned)type.bits);
    select_operand_text(&s->body, home);
    text_printf(&s->body, ", [%s_param_%u];\n", s->name, i);
    select_define(s, parameter, home);
  }
}

static void print_dynamic(struct select *s, LLVMValueRef *printed, uint32_t *count) {
  for (uint32_t i = 0; i < s->shared_count; i++) {
    if (!LLVMIsDeclaration(s->shared[i])) continue;
    uint32_t k = 0;
    while (k < *count && printed[k] != s->shared[i]) k++;
    if (k < *count) continue;
    size_t length;
    printed[(*count)++] = s->shared[i];
    text_printf(s->out, ".extern .shared .align %u .b8 %s[];\n", LLVMGetAlignment(s->shared[i]), LLVMGetValueName2(s->shared[i], &length));
  }
}

static void print_function(struct select *s, LLVMValueRef function, LLVMValueRef *dynamic, uint32_t *dynamic_count) {
  size_t length;
  s->function = function;
  s->name = LLVMGetValueName2(function, &length);
  s->body.length = 0;
  if (s->value_capacity) memset(s->values, 0, s->value_capacity * sizeof *s->values);
  s->value_count = s->shared_count = s->division_count = s->printed = 0;
  memset(s->divisions, 0, sizeof s->divisions);
  memset(s->sums, 0, sizeof s->sums);
  memset(s->parts, 0, sizeof s->parts);
  memset(s->registers, 0, sizeof s->registers);
  s->local_bytes = 0;
  find_blocks(s);
  uint32_t *order = arena_array(s->cg->context->arena, uint32_t, s->block_count), count = order_blocks(s, order);
  define_parameters(s);
  size_t head = s->body.length;
  select_share(s);
  find_phis(s);
  for (uint32_t i = 0; i < count && !s->refusal; i++) print_block(s, order[i]);
  if (s->refusal) return;
  print_dynamic(s, dynamic, dynamic_count);
  print_head(s);
  text_puts(s->out, "{\n");
  print_variables(s);
  text_append(s->out, s->body.data, head);
  for (uint32_t b = 0; b < s->block_count; b++) {
    const struct select_block *block = &s->blocks[b];
    if (!block->is_reached) continue;
    if (block->is_named) text_printf(s->out, "$L__BB%u_%u:\n", (unsigned)s->place, (unsigned)b);
    text_append(s->out, s->body.data + block->from, block->to - block->from);
  }
  text_puts(s->out, "}\n\n");
  s->place++;
}

bool nvptx_select(struct nvptx *cg, struct text *out) {
  struct arena *arena = cg->context->arena;
  struct select *s = arena_new(arena, struct select);
  s->cg = cg;
  s->out = out;
  s->invariant = LLVMGetMDKindIDInContext(cg->llvm, "invariant.load", strlen("invariant.load"));
  s->loop = LLVMGetMDKindIDInContext(cg->llvm, "llvm.loop", strlen("llvm.loop"));
  s->file_numbers = arena_array(arena, uint32_t, cg->context->diag->sources.count + 1);
  uint32_t globals = 0, dynamic_count = 0;
  for (LLVMValueRef global = LLVMGetFirstGlobal(cg->module); global; global = LLVMGetNextGlobal(global)) globals++;
  LLVMValueRef *dynamic = arena_array(arena, LLVMValueRef, globals + 1);
  size_t before = out->length;
  const char *version = nvptx_ptx_version(cg);
  text_printf(out, "\n.version %s\n.target %s\n.address_size 64\n\n", version, cg->context->options->target->name);
  for (LLVMValueRef function = LLVMGetFirstFunction(cg->module); function && !s->refusal; function = LLVMGetNextFunction(function))
    if (!LLVMIsDeclaration(function)) print_function(s, function, dynamic, &dynamic_count);
  if (!s->refusal) print_files(s);
  else out->length = before;
  text_free(&s->body);
  return !s->refusal;
}
