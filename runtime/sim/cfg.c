// Immediate post-dominators of branches: where lanes that part there meet again. The iterative method of
// Cooper, Harvey and Kennedy on the reversed graph of basic blocks.
#include "runtime/sim/internal.h"

#include <stdlib.h>

struct graph {
  const struct sim_module *module;
  uint32_t start;
  uint32_t count;   // basic blocks; number `count` is the exit
  uint32_t *first;  // first instruction of each block, and one past the end
  uint32_t *block;  // of each instruction
  uint32_t *order;  // of each block in a post-order of the reversed graph
  uint32_t *sorted; // blocks by that order
  uint32_t *idom;   // immediate post-dominator
};

static bool ends_block(const struct sim_op *op) {
  return op->kind == SIM_OP_BRANCH || op->kind == SIM_OP_BRANCH_INDEX || op->kind == SIM_OP_RETURN ||
         op->kind == SIM_OP_EXIT || op->kind == SIM_OP_TRAP;
}

// Calls `visit` for each successor of a block.
static uint32_t successor(const struct graph *graph, uint32_t block, uint32_t index) {
  const struct sim_op *op = &graph->module->ops[graph->first[block + 1] - 1];
  uint32_t next = block + 1; // the exit when it is the last
  if (op->kind == SIM_OP_BRANCH) {
    if (index == 0) return graph->block[op->target - graph->start];
    return index == 1 && op->guard != SIM_NO_GUARD ? next : SIM_NONE;
  }
  if (op->kind == SIM_OP_BRANCH_INDEX) {
    if (index < op->immediate)
      return graph->block[(uint32_t)graph->module->lists[op->target + index] - graph->start];
    return index == op->immediate && op->guard != SIM_NO_GUARD ? next : SIM_NONE;
  }
  if (op->kind == SIM_OP_RETURN || op->kind == SIM_OP_EXIT || op->kind == SIM_OP_TRAP) {
    if (index == 0) return graph->count;
    return index == 1 && op->guard != SIM_NO_GUARD ? next : SIM_NONE;
  }
  return index == 0 ? next : SIM_NONE;
}

static void find_blocks(struct graph *graph, uint32_t end) {
  const struct sim_op *ops = graph->module->ops;
  graph->count = 0;
  for (uint32_t pc = graph->start; pc < end; pc++) {
    bool is_first = pc == graph->start || ops[pc].is_leader || ends_block(&ops[pc - 1]);
    if (is_first) graph->first[graph->count++] = pc;
    graph->block[pc - graph->start] = graph->count - 1;
  }
  graph->first[graph->count] = end;
}

// Post-order from the exit along reversed edges. Predecessor lists are built by counting.
static bool sort_blocks(struct graph *graph) {
  uint32_t count = graph->count, edges = 0;
  uint32_t *begin = calloc(count + 2, sizeof *begin);
  if (!begin) return false;
  for (uint32_t b = 0; b < count; b++) {
    for (uint32_t i = 0, to; (to = successor(graph, b, i)) != SIM_NONE; i++) begin[to + 1]++, edges++;
  }
  for (uint32_t b = 0; b <= count; b++) begin[b + 1] += begin[b];
  uint32_t *from = calloc(edges + 1, sizeof *from), *at = calloc(count + 1, sizeof *at),
           *stack = calloc(count + 2, sizeof *stack);
  bool is_ready = from && at && stack;
  if (is_ready) {
    for (uint32_t b = 0; b < count; b++) {
      for (uint32_t i = 0, to; (to = successor(graph, b, i)) != SIM_NONE; i++) from[begin[to] + at[to]++] = b;
    }
    memset(at, 0, (count + 1) * sizeof *at);
    for (uint32_t b = 0; b <= count; b++) graph->order[b] = SIM_NONE;
    uint32_t depth = 0, done = 0;
    stack[depth++] = count;
    graph->order[count] = 0;
    while (depth > 0) {
      uint32_t b = stack[depth - 1];
      if (begin[b] + at[b] < begin[b + 1]) {
        uint32_t next = from[begin[b] + at[b]++];
        if (graph->order[next] == SIM_NONE) {
          graph->order[next] = 0;
          stack[depth++] = next;
        }
      } else {
        graph->order[b] = done;
        graph->sorted[done++] = b;
        depth--;
      }
    }
    for (uint32_t i = done; i <= count; i++) graph->sorted[i] = SIM_NONE; // blocks that never reach the exit
  }
  free(begin);
  free(from);
  free(at);
  free(stack);
  return is_ready;
}

static uint32_t meet(const struct graph *graph, uint32_t a, uint32_t b) {
  while (a != b) {
    while (graph->order[a] < graph->order[b]) a = graph->idom[a];
    while (graph->order[b] < graph->order[a]) b = graph->idom[b];
  }
  return a;
}

static void find_dominators(struct graph *graph) {
  uint32_t count = graph->count;
  for (uint32_t b = 0; b <= count; b++) graph->idom[b] = SIM_NONE;
  graph->idom[count] = count;
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (uint32_t i = count + 1; i-- > 0;) {
      uint32_t b = graph->sorted[i], dominator = SIM_NONE;
      if (b == SIM_NONE || b == count) continue;
      for (uint32_t k = 0, to; (to = successor(graph, b, k)) != SIM_NONE; k++) {
        if (graph->idom[to] == SIM_NONE) continue;
        dominator = dominator == SIM_NONE ? to : meet(graph, dominator, to);
      }
      if (dominator != graph->idom[b]) {
        graph->idom[b] = dominator;
        is_changed = true;
      }
    }
  }
}

bool sim_joins(struct sim_module *module, const struct sim_function *function) {
  uint32_t length = function->end - function->start;
  struct graph graph = {.module = module, .start = function->start};
  graph.first = calloc(length + 2, sizeof *graph.first);
  graph.block = calloc(length + 1, sizeof *graph.block);
  graph.order = calloc(length + 2, sizeof *graph.order);
  graph.sorted = calloc(length + 2, sizeof *graph.sorted);
  graph.idom = calloc(length + 2, sizeof *graph.idom);
  bool is_ready = graph.first && graph.block && graph.order && graph.sorted && graph.idom;
  if (is_ready) {
    find_blocks(&graph, function->end);
    is_ready = sort_blocks(&graph);
  }
  if (is_ready) {
    find_dominators(&graph);
    for (uint32_t b = 0; b < graph.count; b++) {
      struct sim_op *op = &module->ops[graph.first[b + 1] - 1];
      bool is_split =
          (op->kind == SIM_OP_BRANCH && op->guard != SIM_NO_GUARD) || op->kind == SIM_OP_BRANCH_INDEX;
      uint32_t to = graph.idom[b];
      if (is_split && to != SIM_NONE && to != graph.count) op->join = graph.first[to];
    }
  }
  free(graph.first);
  free(graph.block);
  free(graph.order);
  free(graph.sorted);
  free(graph.idom);
  return is_ready;
}
