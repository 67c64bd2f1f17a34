// The choice of a form: what each would take, by the table of costs, and the cheapest.
#include "passes/allreduce.h"

enum {
#define C(name, cycles, what, measured) COST_##name = cycles,
#include "passes/allreduce_cost.def"
#undef C
  MOST_SERIAL = 64 // words that a thread reads one after the other
};

enum asked { ASKED_ANY, ASKED_AUTO, ASKED_SHUFFLE, ASKED_TREE };
static const struct form {
  enum asked asked;
  const char *title;
} form_table[] = {
#define F(name, asked, title) {ASKED_##asked, title},
#include "passes/allreduce_forms.def"
#undef F
};

const char *allreduce_title(enum allreduce_kind kind) { return form_table[kind].title; }

uint32_t next_power_of_two(uint32_t x) {
  uint32_t p = 1;
  while (p < x) p *= 2;
  return p;
}

static bool is_power_of_two(uint32_t x) { return x && !(x & (x - 1)); }

static uint32_t log2_ceil(uint32_t x) {
  uint32_t steps = 0;
  while ((1u << steps) < x) steps++;
  return steps;
}

// --- Shapes -----------------------------------------------------------------------------------------------------------

static struct allreduce_shape shape_of(const uint32_t block[3], uint32_t thread_axes) {
  struct allreduce_shape shape = {.threads = block[0] * block[1] * block[2], .extent = 1};
  uint32_t below = 1; // threads of the axes below the one looked at
  bool begun = false, ended = false, regular = true;
  for (int d = 0; d < 3; d++) {
    if (block[d] > 1) {
      if (thread_axes & (1u << d)) {
        if (!begun) shape.stride = below;
        if (ended) regular = false; // kept axes between reduced ones
        begun = true;
        shape.extent *= block[d];
      } else if (begun) {
        ended = true;
      }
    }
    below *= block[d];
  }
  if (!begun) shape.stride = 1;
  if (!regular) shape.stride = 0;
  shape.groups = shape.threads / shape.extent;
  return shape;
}

// A thread's number within its group, and its group's.
static void place_of(const uint32_t block[3], uint32_t thread_axes, uint32_t thread, uint32_t *member, uint32_t *group) {
  uint32_t place[3] = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
  *member = *group = 0;
  for (uint32_t d = 3; d-- > 0;) {
    uint32_t *which = thread_axes & (1u << d) ? member : group;
    *which = *which * block[d] + place[d];
  }
}

uint32_t allreduce_in_warp(const uint32_t block[3], uint32_t thread_axes, bool in_order) {
  struct allreduce_shape shape = shape_of(block, thread_axes);
  uint32_t count = next_power_of_two(shape.extent);
  for (; count > 1; count /= 2) {
    uint16_t warps[1024]; // of each run of members, warp + 1
    bool fits = true;
    for (uint32_t i = 0; i < shape.threads && i < 1024; i++) warps[i] = 0;
    for (uint32_t t = 0; fits && t < shape.threads; t++) {
      uint32_t member, group;
      place_of(block, thread_axes, t, &member, &group);
      if (!in_order && member >= count) continue;
      uint32_t run = group * ((shape.extent + count - 1) / count) + member / count;
      if (!warps[run]) warps[run] = (uint16_t)(t / 32 + 1);
      fits = warps[run] == t / 32 + 1;
    }
    if (fits) break;
  }
  return count;
}

// The most lanes of a warp that use different words of one bank.
static uint32_t passes_of(const uint32_t block[3], uint32_t thread_axes, bool member_fastest, uint32_t bytes) {
  struct allreduce_shape shape = shape_of(block, thread_axes);
  uint32_t most = 1, at_once = bytes > 4 ? 16 : 32, banks = 128 / (bytes < 4 ? 4 : bytes), a_word = bytes < 4 ? 4 / bytes : 1;
  for (uint32_t first = 0; first < shape.threads; first += at_once) {
    uint32_t words[32], used[32] = {0};
    for (uint32_t i = 0; i < at_once && first + i < shape.threads; i++) {
      uint32_t member, group;
      bool is_new = true;
      place_of(block, thread_axes, first + i, &member, &group);
      words[i] = (member_fastest ? group * shape.extent + member : member * shape.groups + group) / a_word;
      for (uint32_t k = 0; k < i; k++) is_new &= words[k] != words[i];
      if (is_new && ++used[words[i] % banks] > most) most = used[words[i] % banks];
    }
  }
  return most;
}

bool allreduce_member_fastest(const uint32_t block[3], uint32_t thread_axes, uint32_t bytes, uint32_t *conflicts) {
  uint32_t by_member = passes_of(block, thread_axes, true, bytes), by_group = passes_of(block, thread_axes, false, bytes);
  *conflicts = (by_member <= by_group ? by_member : by_group) - 1;
  return by_member <= by_group;
}

// --- Reducers ---------------------------------------------------------------------------------------------------------

enum op allreduce_redux_op(const struct ir_reducer *reducer) {
  const struct ir_function *combine = &reducer->combine;
  if (reducer->identity.count != 1 || combine->lets.count || combine->params.count != 2) return OP_CONST;
  const struct ir_expr *result = combine->results.at[0];
  bool is_bool = result->type == TYPE_BOOL;
  if (!is_bool && (!type_is_integer(result->type) || type_bits(result->type) > 32)) return OP_CONST;
  if (result->count != 2 || result->args[0]->op != OP_VAR || result->args[1]->op != OP_VAR || result->args[0]->var == result->args[1]->var) return OP_CONST;
  switch ((int)result->op) {
  case OP_ADD: return is_bool ? OP_CONST : OP_REDUX_ADD;
  case OP_MIN: return is_bool ? OP_CONST : OP_REDUX_MIN;
  case OP_MAX: return is_bool ? OP_CONST : OP_REDUX_MAX;
  case OP_AND: return OP_REDUX_AND;
  case OP_OR: return OP_REDUX_OR;
  case OP_XOR: return OP_REDUX_XOR;
  default: return OP_CONST;
  }
}

// 32-bit words that one value takes in registers, bytes that it takes in memory, and those of its largest component.
static uint32_t value_words(const struct ir_reducer *reducer) {
  uint32_t words = 0;
  for (uint32_t i = 0; i < reducer->identity.count; i++) words += type_bits(list_at(&reducer->identity, struct ir_expr, i)->type) > 32 ? 2 : 1;
  return words;
}
static uint32_t value_bytes(const struct ir_reducer *reducer, uint32_t *largest) {
  uint32_t bytes = 0;
  *largest = 1;
  for (uint32_t i = 0; i < reducer->identity.count; i++) {
    uint32_t one = type_bytes(list_at(&reducer->identity, struct ir_expr, i)->type);
    bytes += one;
    if (one > *largest) *largest = one;
  }
  return bytes;
}

// --- Costs ------------------------------------------------------------------------------------------------------------

struct costing {
  const struct allreduce_request *request;
  struct allreduce_choice *choice;
  uint32_t words, bytes, largest, warps;
  bool has_redux;
};

static struct allreduce_form_cost no(const char *reason) { return (struct allreduce_form_cost){.refused = reason}; }

// Cycles of a step of a shuffle, in which `keeps_order` says whether the lower lane's value must come first.
static uint32_t step_cycles(const struct costing *c, bool keeps_order) {
  uint32_t more = COST_MORE * (c->words - 1);
  bool orders = keeps_order && !c->request->reducer->is_commutative_bitwise;
  return COST_SHUFFLE + more + (orders ? COST_ORDER : 0);
}

static uint32_t word_cycles(const struct costing *c, uint32_t conflicts) {
  return COST_WORD + COST_MORE * (c->words - 1) + 2 * COST_CONFLICT * conflicts * c->words;
}

static uint32_t barrier_cycles(const struct costing *c) { return COST_BARRIER + COST_WARP * c->warps; }

static struct allreduce_form_cost cost_copy(const struct costing *c) {
  return c->choice->shape.extent == 1 ? (struct allreduce_form_cost){0} : no("a group has several threads");
}

static struct allreduce_form_cost cost_xor(const struct costing *c) {
  const struct allreduce_shape *s = &c->choice->shape;
  if (s->stride == 0) return no("kept thread axes lie between reduced ones, so that a group's lanes have no common stride");
  if (!is_power_of_two(s->extent)) return no("the extent is no power of two");
  if (!is_power_of_two(s->stride) || s->extent * s->stride > 32) return no("a group's lanes are spread over several warps");
  struct allreduce_form_cost cost = {.steps = log2_ceil(s->extent)};
  cost.cycles = cost.steps * step_cycles(c, c->request->result_in_all);
  return cost;
}

// Steps down over `lanes` lanes, of which a warp has `least` at least: those that must drop what a lane past the end gave.
static uint32_t guarded_steps(const struct costing *c, uint32_t lanes, uint32_t least) {
  uint32_t steps = 0;
  for (uint32_t reach = next_power_of_two(lanes); reach > 1; reach /= 2) steps += c->request->reducer->is_ordered || reach > least;
  return steps;
}

static struct allreduce_form_cost cost_guarded(const struct costing *c) {
  const struct allreduce_shape *s = &c->choice->shape;
  if (s->groups > 1) return no("the block has several groups, which may straddle warps");
  if (s->extent > 32) return no("a group is larger than a warp");
  struct allreduce_form_cost cost = {.steps = log2_ceil(s->extent) + c->request->result_in_all};
  cost.cycles = log2_ceil(s->extent) * step_cycles(c, false) + COST_GUARD * guarded_steps(c, s->extent, s->extent) + (c->request->result_in_all ? COST_BROADCAST + COST_MORE * (c->words - 1) : 0);
  return cost;
}

static const char *why_no_redux(const struct costing *c) {
  if (c->request->sm < 80) return "the target is older than sm_80";
  return c->has_redux ? NULL : "the operator is none of sum, min, max, and, or, xor over integers of at most 32 bits";
}

static struct allreduce_form_cost cost_redux(const struct costing *c) {
  const struct allreduce_shape *s = &c->choice->shape;
  const char *reason = why_no_redux(c);
  if (reason) return no(reason);
  if (s->extent > 32) return no("a group is larger than a warp");
  if (s->stride != 1 || (s->extent != 32 && s->groups > 1)) return no("a warp holds lanes of several groups");
  return (struct allreduce_form_cost){.steps = 1, .cycles = COST_REDUX + (c->request->tuples - 1) * COST_MORE};
}

// Stage one in every warp, stage two over a group's words.
static struct allreduce_form_cost cost_warps(const struct costing *c) {
  const struct allreduce_shape *s = &c->choice->shape;
  bool in_all = c->request->result_in_all, is_partial = s->threads % 32 != 0;
  if (s->stride == 0) return no("kept thread axes lie between reduced ones, so that a group's lanes have no common stride");
  if (s->extent * s->stride <= 32) return no("a group is no larger than a warp");
  if (!is_power_of_two(s->stride) || s->stride >= 32) return no("a warp holds no several lanes of each of its groups at a stride of a power of two");
  if (s->groups > 1 && s->extent * s->stride % 32 != 0) return no("groups straddle warps");
  if (in_all && is_partial) return no("the last warp is partial and every thread needs the result");
  bool reduxes = s->stride == 1 && !why_no_redux(c);
  uint32_t slots = 32 / s->stride, warps = (s->extent * s->stride + 31) / 32, reads = (warps + slots - 1) / slots;
  uint32_t second = log2_ceil((warps + reads - 1) / reads), redux = COST_REDUX + (c->request->tuples - 1) * COST_MORE;
  struct allreduce_form_cost cost = {.barriers = 1, .shared_bytes = (s->threads + 31) / 32 * s->stride * c->bytes};
  uint32_t one = log2_ceil(slots) * step_cycles(c, false) + (is_partial ? COST_GUARD * guarded_steps(c, 32, s->threads % 32) : 0);
  uint32_t two = second * step_cycles(c, in_all);
  cost.steps = log2_ceil(slots) + second;
  if (reduxes && one > redux) one = redux, cost.steps -= log2_ceil(slots) - 1;
  if (reduxes && two > redux) two = redux, cost.steps -= second - 1;
  cost.cycles = one + two + word_cycles(c, 0) + (reads - 1) * COST_READ + barrier_cycles(c);
  return cost;
}

// Warps with a thread that needs the result: the first of a group, or every one.
static uint32_t reading_warps(const struct costing *c) {
  uint32_t warps = 0, last = UINT32_MAX;
  for (uint32_t t = 0; t < c->choice->shape.threads && !c->request->result_in_all; t++) {
    uint32_t member, group;
    place_of(c->request->block, c->request->thread_axes, t, &member, &group);
    if (member == 0 && t / 32 != last) warps++, last = t / 32;
  }
  return c->request->result_in_all ? c->warps : warps;
}

static struct allreduce_form_cost cost_serial(const struct costing *c) {
  const struct allreduce_shape *s = &c->choice->shape;
  if (s->extent > MOST_SERIAL) return no("a thread would read too many words");
  for (int kind = ALLREDUCE_XOR; kind <= ALLREDUCE_REDUX; kind++)
    if (!c->choice->forms[kind].refused) return no("a warp does without shared memory");
  struct allreduce_form_cost cost = {.steps = s->extent - 1, .barriers = 1, .shared_bytes = s->threads * c->bytes};
  allreduce_member_fastest(c->request->block, c->request->thread_axes, c->largest, &cost.conflicts);
  uint32_t readers = reading_warps(c);
  cost.cycles = word_cycles(c, cost.conflicts) + (s->extent - 1) * (COST_READ + COST_READER * (readers - 1)) * c->words + barrier_cycles(c);
  return cost;
}

static struct allreduce_form_cost cost_tree(const struct costing *c) {
  const struct allreduce_shape *s = &c->choice->shape;
  bool in_order = c->request->reducer->is_ordered, in_all = c->request->result_in_all;
  struct allreduce_form_cost cost = {.steps = log2_ceil(s->extent), .shared_bytes = s->threads * c->bytes};
  allreduce_member_fastest(c->request->block, c->request->thread_axes, c->largest, &cost.conflicts);
  uint32_t inside = log2_ceil(allreduce_in_warp(c->request->block, c->request->thread_axes, in_order));
  cost.warp_barriers = inside > cost.steps ? cost.steps : inside;
  cost.barriers = cost.steps - cost.warp_barriers;
  // a word is stored in front of each step; behind the last one where every thread reads the result
  if (in_all && cost.warp_barriers < cost.steps) cost.barriers++;
  else if (in_all) cost.warp_barriers++;
  cost.cycles = cost.steps * (word_cycles(c, cost.conflicts) + COST_GUARD) + cost.barriers * barrier_cycles(c) + cost.warp_barriers * COST_SYNCWARP + (in_all ? COST_WORD : 0);
  return cost;
}

static bool is_allowed(enum allreduce_kind kind, enum allreduce_form form) {
  enum asked asked = form_table[kind].asked;
  return asked == ASKED_ANY || form == FORM_AUTO || asked == (form == FORM_SHUFFLE ? ASKED_SHUFFLE : ASKED_TREE);
}

bool allreduce_choose(const struct allreduce_request *request, struct allreduce_choice *choice) {
  struct costing c = {.request = request, .choice = choice, .words = request->tuples * value_words(request->reducer)};
  *choice = (struct allreduce_choice){.shape = shape_of(request->block, request->thread_axes), .kind = ALLREDUCE_KINDS};
  c.bytes = request->tuples * value_bytes(request->reducer, &c.largest);
  c.warps = (choice->shape.threads + 31) / 32;
  c.has_redux = allreduce_redux_op(request->reducer) != OP_CONST;
  choice->uses_redux = !why_no_redux(&c);
  choice->forms[ALLREDUCE_COPY] = cost_copy(&c);
  choice->forms[ALLREDUCE_XOR] = cost_xor(&c);
  choice->forms[ALLREDUCE_GUARDED] = cost_guarded(&c);
  choice->forms[ALLREDUCE_REDUX] = cost_redux(&c);
  choice->forms[ALLREDUCE_WARPS] = cost_warps(&c);
  choice->forms[ALLREDUCE_SERIAL] = cost_serial(&c);
  choice->forms[ALLREDUCE_TREE] = cost_tree(&c);
  for (int kind = ALLREDUCE_GUARDED; kind < ALLREDUCE_KINDS && request->is_segmented; kind++)
    choice->forms[kind] = no("groups come here at different times, so that a warp's lanes or the block's threads do not meet");
  for (int kind = 0; kind < ALLREDUCE_KINDS; kind++)
    if (choice->forms[kind].shared_bytes > ALLREDUCE_SHARED_LIMIT) choice->forms[kind] = no("a block may not have so much shared memory");
  if (choice->shape.extent == 1) {
    choice->kind = ALLREDUCE_COPY;
    return true;
  }
  for (int kind = 0; kind < ALLREDUCE_KINDS; kind++) {
    const struct allreduce_form_cost *form = &choice->forms[kind];
    if (form->refused || !is_allowed((enum allreduce_kind)kind, request->form)) continue;
    if (choice->kind == ALLREDUCE_KINDS || form->cycles < choice->forms[choice->kind].cycles) choice->kind = (enum allreduce_kind)kind;
  }
  return choice->kind != ALLREDUCE_KINDS;
}

const char *allreduce_why_no_shuffle(const struct allreduce_choice *choice) {
  const struct allreduce_shape *s = &choice->shape;
  return choice->forms[s->extent * (s->stride ? s->stride : 1) > 32 ? ALLREDUCE_WARPS : s->groups > 1 || s->stride != 1 ? ALLREDUCE_XOR : ALLREDUCE_GUARDED].refused;
}

// --- Widening ---------------------------------------------------------------------------------------------------------

// Each reduced extent a power of two.
static void widen_to_powers(const struct allreduce_request *request, uint32_t block[3]) {
  for (uint32_t d = 0; d < 3; d++)
    if (request->thread_axes & (1u << d)) block[d] = next_power_of_two(block[d]);
}

// Whole warps: the outermost reduced axis, and the ones below it to powers of two where that is not enough.
static void widen_to_warps(const struct allreduce_request *request, uint32_t block[3]) {
  uint32_t last = 3, low = 1;
  for (uint32_t d = 0; d < 3; d++)
    if (request->thread_axes & (1u << d) && block[d] > 1) last = d;
  if (last == 3) return;
  for (uint32_t d = 0; d < last; d++) {
    if (request->thread_axes & (1u << d)) block[d] = next_power_of_two(block[d]);
    low *= block[d];
  }
  while (low * block[last] % 32 != 0 && low * block[last] <= 1024) block[last]++;
}

uint32_t allreduce_blocks_held(uint32_t threads) {
  uint32_t blocks = COST_WARPS_HELD / ((threads + 31) / 32);
  return blocks < COST_BLOCKS_HELD ? blocks : COST_BLOCKS_HELD;
}

// What a group costs where the multiprocessor is full: a block's life over the blocks that are alive at once; in thousandths of a cycle.
static uint64_t cost_when_full(const struct allreduce_choice *choice, uint32_t added) {
  return 1000 * ((uint64_t)COST_LIFE + added + choice->forms[choice->kind].cycles) / allreduce_blocks_held(choice->shape.threads);
}

bool allreduce_wider(const struct allreduce_request *narrow, int how, struct allreduce_request *wide, struct allreduce_choice *choice) {
  *wide = *narrow;
  if (how == 0) widen_to_powers(narrow, wide->block);
  else widen_to_warps(narrow, wide->block);
  uint64_t threads = (uint64_t)narrow->block[0] * narrow->block[1] * narrow->block[2], all = (uint64_t)wide->block[0] * wide->block[1] * wide->block[2];
  return all != threads && all <= 2 * threads && all <= 1024 && wide->block[2] <= 64 && allreduce_choose(wide, choice);
}

void allreduce_widen(struct allreduce_request *request) {
  struct allreduce_choice choice;
  if (request->form == FORM_TREE) return;
  const struct allreduce_request narrow = *request;
  uint64_t least = UINT64_MAX;
  if (allreduce_choose(&narrow, &choice) && choice.kind <= ALLREDUCE_REDUX) return; // a warp does it as it is
  if (choice.kind != ALLREDUCE_KINDS) least = cost_when_full(&choice, 0);
  for (int how = 0; how < ALLREDUCE_WIDENINGS; how++) {
    struct allreduce_request wide;
    if (!allreduce_wider(&narrow, how, &wide, &choice) || cost_when_full(&choice, COST_ADDED) >= least) continue;
    least = cost_when_full(&choice, COST_ADDED);
    *request = wide;
  }
}
