// simplify: folds, propagates copies, removes what is unused.
//
//   var acc: f32 = 0                    let acc: f32 = load_flat(A, i)
//   set acc = load_flat(A, i)     ->    store_flat B[0] = acc
//   let total: f32 = acc
//   store_flat B[0] = total
//
// Requires LEVEL_PROGRAM. A variable that is set once, right behind its declaration, becomes a let; a let of a variable or constant is
// replaced by it, one of an earlier let's value by that let; lets that nothing reads go, unless they are shuffles, which other lanes need; empty branches and loops go, a loop
// of one iteration becomes its body. A variable that only its own sets read goes with them.
// Keeps the order of what is left. Linear in the program, repeated until nothing changes.
#include "compiler/pass.h"

struct use {
  const struct ir_var *var;
  uint32_t reads, sets;
  uint32_t own_reads; // of them, those by its own sets: a variable that nothing else reads is not needed
};

// NULL where the entry does not define the variable: another one may have left a number on a size or a stride.
static struct use *use_of(struct list *uses, struct ir_var *var) {
  struct use *use = var->mark && var->mark <= uses->count ? uses->at[var->mark - 1] : NULL;
  return use && use->var == var ? use : NULL;
}

static void number_var(struct arena *arena, struct list *uses, struct ir_var *var) {
  struct use *use = arena_new(arena, struct use);
  use->var = var;
  list_push(arena, uses, use);
  var->mark = uses->count;
  var->subst = NULL;
}

struct counter {
  struct arena *arena;
  struct list uses; // struct use, by var->mark - 1
};

static void number_vars(struct counter *c, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->var && stmt->kind != IR_SET) number_var(c->arena, &c->uses, stmt->var);
    for (uint32_t k = 0; k < stmt->results.count; k++) number_var(c->arena, &c->uses, stmt->results.at[k]);
    number_vars(c, &stmt->body);
    number_vars(c, &stmt->otherwise);
  }
}

static void count_read(struct ir_expr *e, void *state) {
  struct counter *c = state;
  if (e->op != OP_VAR) return;
  struct use *use = use_of(&c->uses, e->var);
  if (use) use->reads++;
}

struct own_reads {
  const struct ir_var *var;
  uint32_t count;
};
static void count_own(struct ir_expr *e, void *state) {
  struct own_reads *own = state;
  own->count += e->op == OP_VAR && e->var == own->var;
}

static void count_sets(struct counter *c, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_SET) {
      struct use *use = use_of(&c->uses, stmt->var);
      struct own_reads own = {.var = stmt->var};
      ir_visit_expr(stmt->value, count_own, &own);
      if (use) use->sets++, use->own_reads += own.count;
    }
    count_sets(c, &stmt->body);
    count_sets(c, &stmt->otherwise);
  }
}

static bool is_shuffle(const struct ir_expr *e) { return op_is_collective(e->op); }


static void find_shuffle(struct ir_expr *e, void *state) { *(bool *)state |= is_shuffle(e); }

static struct ir_expr *propagate(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena, (void)state;
  while (e->op == OP_VAR && e->var->subst) e = e->var->subst; // a let of the counter of a loop that ran once
  return e;
}

static bool is_immutable(const struct ir_expr *e) {
  return e->op == OP_CONST || e->op == OP_THREAD || e->op == OP_BLOCK || (e->op == OP_VAR && e->var->kind != VAR_MUTABLE);
}

// Whether a value depends on its operands alone: no memory, no other lane, no variable that changes.
static bool is_pure(const struct ir_expr *e) {
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT || is_shuffle(e) || (e->op == OP_VAR && e->var->kind == VAR_MUTABLE)) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!is_pure(e->args[i])) return false;
  return true;
}

// A let before this one, among the nearest of the same block, that has the same value.
static struct ir_stmt *find_same(const struct list *before, const struct ir_stmt *let) {
  enum { NEAREST = 32 };
  if (!is_pure(let->value)) return NULL;
  for (uint32_t i = before->count; i-- > 0 && before->count - i <= NEAREST;) {
    struct ir_stmt *other = before->at[i];
    if (other->kind == IR_LET && other->var->type == let->var->type && ir_equal(other->value, let->value)) return other;
  }
  return NULL;
}

static bool simplify_block(struct counter *c, struct list *block) {
  struct list out = {0};
  bool changed = false;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i], *next = i + 1 < block->count ? block->at[i + 1] : NULL;
    changed |= simplify_block(c, &stmt->body);
    changed |= simplify_block(c, &stmt->otherwise);
    struct use *use = stmt->var && stmt->kind != IR_SET ? use_of(&c->uses, stmt->var) : NULL;
    bool drop = false;
    struct ir_stmt *earlier = NULL;
    switch (stmt->kind) {
    case IR_VAR:
      if (next && next->kind == IR_SET && next->var == stmt->var && !ir_mentions(next->value, stmt->var)) {
        stmt->value = next->value; // the first value is never read
        use->sets--;
        list_remove(block, i + 1);
        changed = true;
      }
      if (use->sets == 0) {
        stmt->kind = IR_LET;
        stmt->var->kind = VAR_LET;
        changed = true;
      }
      break;
    case IR_LET:
      if (use->reads == 0 && !is_shuffle(stmt->value)) drop = true;
      else if ((earlier = find_same(&out, stmt))) {
        stmt->var->subst = ir_ref(c->arena, earlier->var);
        drop = true;
      }
      else if (is_immutable(stmt->value) && !is_shuffle(stmt->value) && (stmt->value->op == OP_CONST || stmt->value->op == OP_VAR)) {
        stmt->var->subst = stmt->value->op == OP_VAR && stmt->value->var->subst ? stmt->value->var->subst : stmt->value;
        drop = true;
      }
      break;
    case IR_IF:
      if (stmt->body.count == 0 && stmt->otherwise.count == 0) drop = true;
      else if (ir_const_is(stmt->value, 1) || ir_const_is(stmt->value, 0)) {
        list_append(c->arena, &out, ir_const_is(stmt->value, 1) ? &stmt->body : &stmt->otherwise);
        drop = true;
      }
      break;
    case IR_FOR:
      if (stmt->body.count == 0 || (ir_is_const(stmt->lo) && ir_is_const(stmt->hi) && stmt->hi->integer <= stmt->lo->integer)) {
        drop = true;
      } else if (ir_is_const(stmt->lo) && ir_is_const(stmt->hi) && stmt->hi->integer == stmt->lo->integer + 1) { // one iteration
        stmt->var->subst = stmt->lo;
        list_append(c->arena, &out, &stmt->body);
        drop = true;
      }
      break;
    case IR_LOAD_WIDE:
      drop = true;
      for (uint32_t k = 0; k < stmt->results.count; k++) {
        struct use *result = use_of(&c->uses, stmt->results.at[k]);
        if (!result || result->reads) drop = false;
      }
      break;
    case IR_SET:
      use = use_of(&c->uses, stmt->var);
      if (use && use->reads == use->own_reads) {
        bool shuffles = false;
        ir_visit_expr(stmt->value, find_shuffle, &shuffles);
        drop = !shuffles;
      }
      break;
    case IR_STORE_WIDE: case IR_STORE: case IR_ALLREDUCE: case IR_BARRIER: case IR_SYNCWARP: case IR_ATOMIC: case IR_FENCE: case IR_GRID_WAIT: case IR_GRID_READY:
    case IR_COPY: case IR_COPY_COMMIT: case IR_COPY_WAIT: break;
    }
    changed |= drop;
    if (!drop) list_push(c->arena, &out, stmt);
  }
  *block = out;
  return changed;
}

bool pass_simplify(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  const struct list *parameters[] = {&kernel->sizes, &kernel->scalars};
  for (uint32_t l = 0; l < 2; l++) // others have numbered these too
    for (uint32_t i = 0; i < parameters[l]->count; i++) list_at(parameters[l], struct ir_var, i)->mark = 0;
  for (int round = 0; round < 32; round++) {
    struct counter c = {.arena = context->arena};
    number_vars(&c, &entry->body);
    ir_visit_block(&entry->body, count_read, &c);
    count_sets(&c, &entry->body);
    bool changed = simplify_block(&c, &entry->body);
    ir_rewrite_block(context->arena, &entry->body, propagate, NULL);
    if (!changed) break;
  }
  return true;
}
