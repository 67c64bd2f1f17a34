#include "passes/stage_load.h"

void stage_load_visit(struct ir_expr *e, void *state) {
  struct stage_load *find = state;
  if (e->op != OP_LOAD || e->mem != find->mem) return;
  if (!find->load) find->load = e;
  else if (!ir_equal(find->load, e)) find->differs = true;
}

struct stage_load stage_find_load(const struct ir_stage *stage, const struct ir_mem *mem) {
  struct stage_load find = {.mem = mem};
  const struct list *lists[] = {&stage->operands, &stage->init, &stage->guards, &stage->indices};
  for (uint32_t l = 0; l < 4; l++)
    for (uint32_t i = 0; i < lists[l]->count; i++) ir_visit_expr(lists[l]->at[i], stage_load_visit, &find);
  ir_visit_block(&stage->lets, stage_load_visit, &find);
  if (stage->value) ir_visit_expr(stage->value, stage_load_visit, &find);
  return find;
}

struct ir_expr *load_replace(struct arena *arena, struct ir_expr *e, void *state) {
  const struct load_replacement *replacement = state;
  (void)arena;
  return e->op == OP_LOAD && e->mem == replacement->mem ? replacement->by : e;
}

void load_replace_list(struct arena *arena, struct list *exprs, struct load_replacement *replacement) {
  *exprs = list_copy(arena, exprs);
  for (uint32_t i = 0; i < exprs->count; i++) exprs->at[i] = ir_rewrite_expr(arena, exprs->at[i], load_replace, replacement);
}
