// Launches one behind another: an entry for what waits for values of the whole grid.
//
// The next launch is a copy of the entry, with axes, variables and memory of its own, of which only the stages stay that it makes. Values that
// the launch before left in the workspace are loads there.
#include "passes/cut.h"

#include <string.h>

#include "passes/stage.h"

struct copy {
  struct cut *c;
  struct arena *arena;
  struct ir_entry *from, *to;
  struct list vars; // struct ir_var whose `subst` is set
};

static struct ir_axis *copied_axis(const struct copy *copy, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < copy->from->axes.count; i++)
    if (copy->from->axes.at[i] == axis) return copy->to->axes.at[i];
  return NULL;
}

static struct ir_mem *copied_mem(const struct copy *copy, struct ir_mem *mem) {
  for (uint32_t i = 0; i < copy->from->memory.count; i++)
    if (copy->from->memory.at[i] == mem) return copy->to->memory.at[i];
  return mem;
}

static struct ir_expr *copy_load(struct arena *arena, struct ir_expr *e, void *state) {
  struct ir_mem *mem = e->op == OP_LOAD ? copied_mem(state, e->mem) : e->mem;
  if (e->op != OP_LOAD || mem == e->mem) return e;
  struct ir_expr *load = ir_raw(arena, OP_LOAD, e->type, e->args, e->count);
  load->mem = mem;
  load->range = e->range;
  return load;
}

// What stands for a variable of `from` may hold loads of `to` already: they are not among the memory of `from`.
static struct ir_expr *copy_expr(struct copy *copy, struct ir_expr *e) {
  return ir_substitute(copy->arena, ir_rewrite_expr(copy->arena, e, copy_load, copy));
}

static void copy_list(struct copy *copy, struct list *exprs) {
  *exprs = list_copy(copy->arena, exprs);
  for (uint32_t i = 0; i < exprs->count; i++) exprs->at[i] = copy_expr(copy, exprs->at[i]);
}

static struct ir_var *copy_var(struct copy *copy, struct ir_var *var) {
  if (var->subst && var->subst->op == OP_VAR) return var->subst->var; // stages share it
  struct ir_var *twin = arena_new(copy->arena, struct ir_var);
  *twin = *var;
  twin->subst = NULL;
  var->subst = ir_ref(copy->arena, twin);
  list_push(copy->arena, &copy->vars, var);
  return twin;
}

static void copy_lets(struct copy *copy, struct list *lets) {
  struct list out = {0};
  for (uint32_t i = 0; i < lets->count; i++) {
    struct ir_stmt *let = lets->at[i];
    struct ir_expr *value = copy_expr(copy, let->value);
    list_push(copy->arena, &out, ir_let(copy->arena, copy_var(copy, let->var), value, let->range));
  }
  *lets = out;
}

static struct ir_stage *copy_stage(struct copy *copy, const struct ir_stage *from) {
  struct ir_stage *stage = arena_new(copy->arena, struct ir_stage);
  *stage = *from;
  stage->axes = (struct list){0};
  for (uint32_t i = 0; i < from->axes.count; i++) {
    const struct ir_stage_axis *used = from->axes.at[i];
    struct ir_stage_axis *twin = arena_new(copy->arena, struct ir_stage_axis);
    *twin = *used;
    twin->axis = copied_axis(copy, used->axis);
    list_push(copy->arena, &stage->axes, twin);
  }
  copy_lets(copy, &stage->derived);
  copy_list(copy, &stage->guards);
  copy_lets(copy, &stage->lets);
  copy_list(copy, &stage->operands);
  copy_list(copy, &stage->init);
  copy_list(copy, &stage->indices);
  if (stage->value) stage->value = copy_expr(copy, stage->value);
  if (stage->mem) stage->mem = copied_mem(copy, stage->mem);
  stage->results = (struct list){0};
  for (uint32_t i = 0; i < from->results.count; i++) list_push(copy->arena, &stage->results, copy_var(copy, from->results.at[i]));
  return stage;
}

// A name for the launch's function that no entry of the module has: "k_2".
static const char *launch_name(struct cut *c, uint32_t launch) {
  const struct ir_module *module = c->context->module;
  const char *first = c->entry->name;
  for (uint32_t i = 0; i < c->kernel->entries.count; i++) {
    const struct ir_entry *entry = c->kernel->entries.at[i];
    if (entry->launch == 0) first = entry->name;
    if (entry == c->entry) break;
  }
  const char *name = arena_printf(c->arena, "%s_%u", first, launch + 1);
  for (bool taken = true; taken;) {
    taken = false;
    for (uint32_t k = 0; k < module->kernels.count; k++)
      for (uint32_t i = 0; i < list_at(&module->kernels, struct ir_kernel, k)->entries.count; i++)
        taken |= strcmp(list_at(&list_at(&module->kernels, struct ir_kernel, k)->entries, struct ir_entry, i)->name, name) == 0;
    if (taken) name = arena_printf(c->arena, "%s_", name);
  }
  return name;
}

// Where values of the launch before are read: the copies of the axes that they were kept over.
static void place_value(struct copy *copy, const struct cut_value *value) {
  struct list indices = {0};
  for (uint32_t i = 0; i < value->axes.count; i++)
    list_push(copy->arena, &indices, ir_ref(copy->arena, copied_axis(copy, value->axes.at[i])->var));
  value->var->subst = ir_load(copy->arena, copied_mem(copy, value->mem), &indices);
  list_push(copy->arena, &copy->vars, value->var);
}

void cut_drop_unused(struct cut *c, struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->axes.count;) {
    bool is_used = false;
    for (uint32_t n = 0; n < entry->stages.count; n++) {
      const struct ir_stage *stage = entry->stages.at[n];
      for (uint32_t k = 0; k < stage->axes.count; k++) is_used |= list_at(&stage->axes, struct ir_stage_axis, k)->axis == entry->axes.at[i];
    }
    if (is_used) i++;
    else list_remove(&entry->axes, i);
  }
  (void)c;
}

struct ir_entry *cut_next_launch(struct cut *c, const struct list *stages, const struct list *values) {
  struct arena *arena = c->arena;
  struct ir_entry *entry = arena_new(arena, struct ir_entry);
  struct copy copy = {.c = c, .arena = arena, .from = c->entry, .to = entry};
  *entry = *c->entry;
  entry->launch = c->entry->launch + 1;
  entry->name = launch_name(c, entry->launch);
  entry->assumptions = list_copy(arena, &entry->assumptions);
  entry->axes = entry->memory = entry->stages = (struct list){0};
  for (uint32_t i = 0; i < c->entry->memory.count; i++) {
    struct ir_mem *mem = arena_new(arena, struct ir_mem);
    *mem = *list_at(&c->entry->memory, struct ir_mem, i);
    list_push(arena, &entry->memory, mem);
  }
  for (uint32_t i = 0; i < c->entry->axes.count; i++) {
    struct ir_axis *axis = arena_new(arena, struct ir_axis);
    *axis = *list_at(&c->entry->axes, struct ir_axis, i);
    axis->var = copy_var(&copy, axis->var);
    list_push(arena, &entry->axes, axis);
  }
  for (uint32_t i = 0; i < values->count; i++) place_value(&copy, values->at[i]);
  for (uint32_t i = 0; i < stages->count; i++) list_push(arena, &entry->stages, copy_stage(&copy, stages->at[i]));
  for (uint32_t i = 0; i < entry->axes.count; i++) {
    struct ir_axis *axis = entry->axes.at[i];
    axis->extent = copy_expr(&copy, axis->extent);
  }
  for (uint32_t i = 0; i < copy.vars.count; i++) list_at(&copy.vars, struct ir_var, i)->subst = NULL;
  cut_drop_unused(c, entry);
  for (uint32_t i = 0; i < c->kernel->entries.count; i++)
    if (c->kernel->entries.at[i] == c->entry) list_insert(arena, &c->kernel->entries, i + 1, entry);
  return entry;
}
