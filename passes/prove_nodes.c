// What can be said of statements before they are run: what they touch, what changes in them, how a loop's
// iterations differ.
#include "passes/prove_engine.h"

// --- The statements as nodes -------------------------------------------------------------------------

static void mark_expr(struct ir_expr *e, void *state) {
  struct node *node = state;
  if (op_is_collective(e->op)) node->has_collective = true;
  if ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space == SPACE_SHARED) node->has_shared = true;
  if ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space == SPACE_LOCAL) node->has_local = true;
}

void prove_number_var(struct prover *p, struct ir_var *var) {
  var->mark = ++p->slot_count;
}

static void add_set(struct prover *p, struct node *node, struct ir_var *var) {
  for (uint32_t i = 0; i < node->sets.count; i++)
    if (node->sets.at[i] == var) return;
  list_push(p->scratch, &node->sets, var);
}

// What a block declares is none of its parent's changes.
static void drop_own(const struct list *block, struct node *parent) {
  parent->only_float_sets = true;
  for (uint32_t i = 0; i < parent->sets.count; i++) {
    const struct ir_var *var = parent->sets.at[i];
    bool is_own = false;
    for (uint32_t k = 0; k < block->count && !is_own; k++) {
      const struct ir_stmt *stmt = block->at[k];
      is_own = stmt->kind == IR_VAR && stmt->var == var;
    }
    if (is_own)
      list_remove(&parent->sets, i--);
    else
      parent->only_float_sets &= type_is_float(var->type);
  }
}

static struct node *new_node(struct prover *p, struct list *block, uint32_t place, struct node *parent);

void prove_new_nodes(struct prover *p, struct list *block, struct node *parent, struct list *out) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct node *child = new_node(p, block, i, parent);
    list_push(p->scratch, out, child);
    if (!parent) continue;
    parent->size += child->size;
    parent->has_shared |= child->has_shared;
    parent->has_collective |= child->has_collective;
    parent->has_sync |= child->has_sync;
    parent->has_syncwarp |= child->has_syncwarp;
    parent->has_local |= child->has_local;
    for (uint32_t k = 0; k < child->sets.count; k++) add_set(p, parent, child->sets.at[k]);
  }
  if (parent) drop_own(block, parent);
}

static struct node *new_node(struct prover *p, struct list *block, uint32_t place, struct node *parent) {
  struct ir_stmt *stmt = block->at[place];
  struct node *node = arena_new(p->scratch, struct node);
  node->stmt = stmt;
  node->block = block;
  node->place = place;
  node->parent = parent;
  node->size = 1;
  node->only_float_sets = true;
  node->number = p->nodes.count;
  list_push(p->scratch, &p->nodes, node);
  if (stmt->value) ir_visit_expr(stmt->value, mark_expr, node);
  if (stmt->lo) ir_visit_expr(stmt->lo, mark_expr, node);
  if (stmt->hi) ir_visit_expr(stmt->hi, mark_expr, node);
  for (uint32_t i = 0; i < stmt->indices.count; i++) ir_visit_expr(stmt->indices.at[i], mark_expr, node);
  for (uint32_t i = 0; i < stmt->inputs.count; i++) ir_visit_expr(stmt->inputs.at[i], mark_expr, node);
  if (stmt->mem) {
    node->has_shared |= stmt->mem->space == SPACE_SHARED;
    node->has_local |= stmt->mem->space == SPACE_LOCAL;
  }
  if (stmt->kind == IR_BARRIER || stmt->kind == IR_SYNCWARP) node->has_collective = node->has_sync = true;
  if (stmt->kind == IR_COPY_COMMIT || stmt->kind == IR_COPY_WAIT) node->has_shared = node->has_sync = true;
  node->has_syncwarp = stmt->kind == IR_SYNCWARP;
  if (stmt->kind == IR_SET)
    add_set(p, node, stmt->var);
  else if (stmt->var)
    prove_number_var(p, stmt->var);
  for (uint32_t i = 0; i < stmt->results.count; i++) prove_number_var(p, stmt->results.at[i]);
  prove_new_nodes(p, &stmt->body, node, &node->body);
  prove_new_nodes(p, &stmt->otherwise, node, &node->otherwise);
  return node;
}

bool prove_is_collective(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    struct node node = {0};
    if (stmt->kind == IR_BARRIER || stmt->kind == IR_SYNCWARP || stmt->kind == IR_ALLREDUCE) return true;
    if (stmt->value) ir_visit_expr(stmt->value, mark_expr, &node);
    if (stmt->lo) ir_visit_expr(stmt->lo, mark_expr, &node);
    if (stmt->hi) ir_visit_expr(stmt->hi, mark_expr, &node);
    for (uint32_t k = 0; k < stmt->indices.count; k++) ir_visit_expr(stmt->indices.at[k], mark_expr, &node);
    for (uint32_t k = 0; k < stmt->inputs.count; k++) ir_visit_expr(stmt->inputs.at[k], mark_expr, &node);
    if (node.has_collective || prove_is_collective(&stmt->body) || prove_is_collective(&stmt->otherwise))
      return true;
  }
  return false;
}

// --- Loops ----------------------------------------------------------------------------------------------

// What depends on a loop's counter, or on what the loop changes.
struct dependence {
  struct prover *p;
  struct list on; // struct ir_var: the counter, and lets made of it
  bool is_found;
  int64_t period;
};

static bool depends(const struct dependence *d, const struct ir_expr *e) {
  for (uint32_t i = 0; i < d->on.count; i++)
    if (ir_mentions(e, d->on.at[i])) return true;
  return false;
}

// Adds the lets of a block that are made of what is there.
static void add_dependent(struct dependence *d, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LET && !type_is_float(stmt->var->type) && depends(d, stmt->value))
      list_push(d->p->scratch, &d->on, stmt->var);
    add_dependent(d, &stmt->body);
    add_dependent(d, &stmt->otherwise);
  }
}

static void find_period(struct ir_expr *e, void *state) {
  enum { LONGEST = 8 };
  struct dependence *d = state;
  if (e->count != 2 || !ir_is_const(e->args[1])) return;
  int64_t by = e->args[1]->integer;
  if (e->op == OP_AND && by > 0 && by < LONGEST && !(by & (by + 1)))
    by++;
  else if (e->op != OP_REM && e->op != OP_MOD)
    return;
  if (by < 2 || by > LONGEST || d->period % by == 0 || !depends(d, e->args[0])) return;
  int64_t both = d->period;
  while (both % by) both += d->period;
  if (both <= LONGEST) d->period = both;
}

// After how many iterations a buffer that is chosen by the loop's counter comes again: the numbers that
// remainders of it are taken by.
int64_t loop_period(struct prover *p, const struct node *node) {
  struct dependence d = {.p = p, .period = 1};
  if (!node->has_shared || !node->has_sync) return 1;
  list_push(p->scratch, &d.on, node->stmt->var);
  add_dependent(&d, &node->stmt->body);
  ir_visit_block(&node->stmt->body, find_period, &d);
  return d.period;
}

static const struct node *only_relevant(const struct list *nodes, uint32_t *count) {
  const struct node *found = NULL;
  for (uint32_t i = 0; i < nodes->count; i++) {
    const struct node *node = nodes->at[i];
    if (!node->has_shared && !node->has_collective) continue;
    found = node;
    ++*count;
  }
  return found;
}

static const struct node *whole_inner(const struct node *node) {
  do {
    uint32_t count = 0;
    const struct node *body = only_relevant(&node->body, &count), *otherwise = only_relevant(&node->otherwise, &count);
    node = body ? body : otherwise;
    if (count != 1) return NULL;
  } while (node->stmt->kind == IR_IF);
  return node->stmt->kind == IR_FOR ? node : NULL;
}

static void find_dependent(struct ir_expr *e, void *state) {
  struct dependence *d = state;
  bool is_shuffle = op_is_collective(e->op),
       is_load = (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space == SPACE_SHARED;
  for (uint32_t i = 0; (is_load || is_shuffle) && i < e->count; i++)
    if ((is_load || i != 1) && depends(d, e->args[i])) d->is_found = true;
}

// Whether a place in shared memory, a mask, a source lane, or a condition or bound around such depends on
// these variables.
static void find_dependent_nodes(struct dependence *d, const struct list *nodes) {
  for (uint32_t i = 0; i < nodes->count && !d->is_found; i++) {
    const struct node *node = nodes->at[i];
    const struct ir_stmt *stmt = node->stmt;
    if (!node->has_shared && !node->has_collective) continue;
    if (stmt->value) ir_visit_expr(stmt->value, find_dependent, d);
    if ((stmt->kind == IR_IF || stmt->kind == IR_SYNCWARP) && depends(d, stmt->value)) d->is_found = true;
    if (stmt->kind == IR_FOR && (depends(d, stmt->lo) || depends(d, stmt->hi))) d->is_found = true;
    for (uint32_t k = 0; stmt->mem && stmt->mem->space == SPACE_SHARED && k < stmt->indices.count; k++)
      d->is_found |= depends(d, stmt->indices.at[k]);
    find_dependent_nodes(d, &node->body);
    find_dependent_nodes(d, &node->otherwise);
  }
}

// Whether iterations differ in what they do to shared memory and in their collectives.
bool loop_iterations_differ(struct prover *p, const struct node *node) {
  struct dependence d = {.p = p, .period = 1};
  list_push(p->scratch, &d.on, node->stmt->var);
  for (uint32_t i = 0; i < node->sets.count; i++)
    if (!type_is_float(((struct ir_var *)node->sets.at[i])->type))
      list_push(p->scratch, &d.on, node->sets.at[i]);
  add_dependent(&d, &node->stmt->body);
  find_dependent_nodes(&d, &node->body);
  return d.is_found;
}

const struct node *loop_met_inside(struct prover *p, const struct node *node) {
  const struct node *inner = whole_inner(node);
  for (const struct node *loop = node; inner && loop; loop = whole_inner(loop))
    if (loop_iterations_differ(p, loop)) return NULL;
  return inner;
}
