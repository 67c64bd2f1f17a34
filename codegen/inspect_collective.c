// redc inspect: shuffles, votes and barriers. Which lanes each lane's mask names, and which of them come.
#include "codegen/inspect_run.h"

#include <inttypes.h>

struct collective_rule {
  const char *name;
  bool takes_mask, is_block, is_legacy, gives_mask;
};
static const struct collective_rule RULES[] = {
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
  struct inspect_collective *made = arena_new(run->diag->arena, struct inspect_collective);
  made->range = call->range;
  made->name = call->name;
  made->warp_count = (run->threads + 31) / 32;
  list_push(run->diag->arena, known, made);
  return made;
}

static uint32_t block_threads(const struct run *run) { return run->report->block[0] * run->report->block[1] * run->report->block[2]; }

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
      run_find(run, FINDING_MASK_LANE, call->range, "%s: the mask 0x%08" PRIx32 " of lane %" PRIu32 " of warp %" PRIu32 " does not name the lane itself",
           call->name, named, lane, run->report->warps[warp]);
    } else if (named & ~exists) {
      run_find(run, FINDING_MASK_LANE, call->range, "%s: the mask 0x%08" PRIx32 " names lane %d of warp %" PRIu32 ", which a block of %" PRIu32 " threads does not have",
           call->name, named, __builtin_ctz(named & ~exists), run->report->warps[warp], block_threads(run));
    } else if (named & ~arrived) {
      run_find(run, FINDING_MASK_LANE, call->range, "%s: the mask 0x%08" PRIx32 " names lane %d of warp %" PRIu32 ", which does not execute this call", call->name,
           named, __builtin_ctz(named & ~arrived), run->report->warps[warp]);
    } else {
      for (uint32_t other = 0; other < 32; other++) {
        struct cell theirs = value_cell(masks, warp * 32 + (warp * 32 + other < run->threads ? other : lane));
        if ((named >> other & 1) && !theirs.symbol && (uint32_t)theirs.c != named) {
          run_find(run, FINDING_MASK_LANE, call->range, "%s: lanes %" PRIu32 " and %" PRIu32 " of warp %" PRIu32 " name each other by different masks", call->name, lane,
                   other, run->report->warps[warp]);
          return;
        }
      }
      continue;
    }
    return;
  }
}

static void check_collective(struct run *run, const struct cuda_expr *call, const struct collective_rule *rule, const struct value *masks,
                             const uint8_t *mask) {
  struct inspect_collective *collective = collective_of(run, call);
  collective->is_block = rule->is_block;
  if (rule->is_legacy) {
    run_find(run, FINDING_LEGACY, call->range, "%s has no mask", call->name);
    return;
  }
  if (rule->is_block) {
    if (run->block_differs)
      run_find(run, FINDING_DIVERGENT, call->range, "%s under the condition of line %" PRIu32 ", which can differ between threads of the block", call->name,
           run->block_differs->line);
    else if (run->may_have_left)
      run_find(run, FINDING_DIVERGENT, call->range, "%s after the return on line %" PRIu32 ", which some threads may have taken", call->name,
           run->may_have_left->line);
    else if (memchr(mask, 0, run->threads))
      run_find(run, FINDING_DIVERGENT, call->range, "%s: only some threads of the block execute it", call->name);
    for (uint32_t warp = 0; warp < collective->warp_count; warp++) {
      collective->arrived[warp] = 0;
      for (uint32_t t = warp * 32; t < warp * 32 + 32 && t < run->threads; t++) collective->arrived[warp] |= (uint32_t)mask[t] << (t % 32);
    }
    run->block_barriers++;
    return;
  }
  if (!masks) masks = value_constant(&run->values, UINT32_MAX);
  if (masks->flags & VALUE_ACTIVEMASK) run_find(run, FINDING_ACTIVEMASK, call->range, "%s: its mask comes from __activemask()", call->name);
  if (masks->flags & VALUE_SHIFT)
    run_find(run, FINDING_MASK_SHIFT, masks->blame, "the mask of %s on line %" PRIu32 " is shifted by 32 or more", call->name, call->range.line);
  if (!(masks->flags & (VALUE_VOTE | VALUE_ACTIVEMASK))) {
    if (run->warp_differs)
      run_find(run, FINDING_DIVERGENT, call->range, "%s under the condition of line %" PRIu32 ", which can differ between lanes of a warp", call->name,
           run->warp_differs->line);
    else if (run->may_have_left)
      run_find(run, FINDING_DIVERGENT, call->range, "%s after the return on line %" PRIu32 ", which some lanes may have taken", call->name,
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

const struct collective_rule *collective_rule_of(const char *name) {
  for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
    if (strcmp(RULES[i].name, name) == 0) return &RULES[i];
  return NULL;
}

struct value *run_collective(struct run *run, const struct collective_rule *rule, const struct cuda_expr *call, struct value *const *operands, const uint8_t *mask) {
  const struct value *masks = rule->takes_mask && call->operand_count ? operands[0] : NULL;
  if (masks && !collective_of(run, call)->mask_text) collective_of(run, call)->mask_text = inspect_text(run->diag, call->operands[0]->range);
  if (!is_empty(run, mask)) check_collective(run, call, rule, masks, mask);
  find_sources(run, call, operands, mask);
  if (rule->is_block && strcmp(call->name, "__syncthreads") != 0) return value_unknown(&run->values);
  struct value *result = value_varying(&run->values);
  if (rule->gives_mask) result->flags = VALUE_VOTE, result->blame = call->range;
  return result;
}
