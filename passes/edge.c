// edge: loops run their interior without predicates.
//
//   for jo in 0 .. quo(add(m, 31), 32) {            for jo in 0 .. quo(m, 32) {
//     let j = jo * 32 + ji                             let j = jo * 32 + ji
//     if j < m {                                       set acc = acc + load(A, i, j)
//       set acc = acc + load(A, i, j)        ->      }
//     }                                              for jo in quo(m, 32) .. quo(add(m, 31), 32) {
//   }                                                  let j = jo * 32 + ji
//                                                      let inside = j < m
//                                                      let clamped = min(j, m - 1)
//                                                      set acc = select(inside, acc + load(A, i, clamped), acc)
//                                                    }
//
// Requires LEVEL_PROGRAM before pass `index`. A loop is split where a guard x < E in it has x = v * F + r, v the loop's variable, with
// 0 <= r < F and E the same in every iteration: then the guard holds for all v < E / F. Where x = v * F + base + r and base is the same in all threads of
// the block, a piece of a split, it holds for v < (E - base) / F, and nowhere from there on but in one iteration: the loop ends there, unless it does
// something without the guard; so also where the guard is around nothing but accesses of tensors, which it stays around in the edge. In the edge a guarded load would be a branch and end the loads in flight: its address is clamped and its value selected.
// A loop that is unrolled whole, or of one iteration, is not split: all of it is clamped and selected, under E > 0. Declines, leaving the branch, where the guarded statements
// write tensors, read shared memory or what the guard left unwritten of the workspace, or test or loop further, and where the loop holds a collective.
// Cost: linear, but for the proofs of each guard.
#include "compiler/pass.h"
#include "compiler/poly.h"
#include "passes/edge.h"
#include "passes/statement.h"

struct edge {
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list scope; // struct ir_stmt: LET and FOR statements around, outermost first
  struct list tests; // struct ir_stmt: IF statements that this pass made, in front of loops that would read empty tensors
  struct list parts; // struct ir_stmt: FOR statements of loops split, where iterations are left that write nothing
};

struct candidate {
  struct ir_stmt *guard;  // the IF
  struct ir_expr *end;    // E
  struct ir_expr *factor; // F
  struct ir_expr *base;   // NULL: 0
  int64_t most;           // of r; where there is a base
};

static struct ir_expr *binary(struct edge *e, enum op op, struct ir_expr *a, struct ir_expr *b) { return ir_binary(e->arena, op, a, b); }
static struct ir_expr *number(struct edge *e, int64_t value) { return ir_int(e->arena, TYPE_INDEX, value); }

bool edge_moves_in(const struct ir_stmt *stmt, const struct ir_expr *e) {
  if (stmt->var && ir_mentions(e, stmt->var)) return true;
  for (uint32_t i = 0; i < stmt->results.count; i++)
    if (ir_mentions(e, stmt->results.at[i])) return true;
  for (uint32_t i = 0; i < stmt->body.count; i++)
    if (edge_moves_in(stmt->body.at[i], e)) return true;
  for (uint32_t i = 0; i < stmt->otherwise.count; i++)
    if (edge_moves_in(stmt->otherwise.at[i], e)) return true;
  return false;
}

static void find_changing(struct ir_expr *e, void *state) {
  *(bool *)state |= e->op == OP_LOAD || e->op == OP_LOAD_FLAT || e->op == OP_AWAIT || (e->op == OP_VAR && e->var->kind == VAR_MUTABLE);
}

bool edge_is_fixed(const struct ir_stmt *loop, struct ir_expr *e) {
  bool changes = false;
  ir_visit_expr(e, find_changing, &changes);
  return !changes && !edge_moves_in(loop, e);
}

static bool has_collective(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_ALLREDUCE || stmt->kind == IR_BARRIER || stmt->kind == IR_SYNCWARP) return true;
    if (has_collective(&stmt->body) || has_collective(&stmt->otherwise)) return true;
  }
  return false;
}

static void find_shared_read(struct ir_expr *e, void *state) { *(bool *)state |= e->op == OP_AWAIT || ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space == SPACE_SHARED); }

// A copy in shared memory lacks the elements that the guard leaves out: what is read of it there is no value to select from. What the guard leaves
// out nobody may wait for.
static bool reads_shared(const struct ir_stmt *stmt) {
  bool reads = stmt->kind == IR_LOAD_WIDE && stmt->mem->space == SPACE_SHARED;
  if (stmt->value) ir_visit_expr(stmt->value, find_shared_read, &reads);
  return reads;
}

static void find_array_read(struct ir_expr *e, void *state) { *(bool *)state |= e->op == OP_AWAIT || ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space != SPACE_GLOBAL); }

struct partial {
  const struct ir_var *clamped;
  bool is_read; // a part of the workspace, at indices that the clamp does not change
};

static void find_partial_read(struct ir_expr *e, void *state) {
  struct partial *partial = state;
  if ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->workspace && !ir_mentions(e, partial->clamped)) partial->is_read = true;
}

// The workspace is written where the guard held, and nowhere else: an element of it may be read in vain only at an index that is clamped.
static bool reads_partial(const struct list *block, const struct ir_var *clamped) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    struct partial partial = {clamped, stmt->kind == IR_LOAD_WIDE && stmt->mem->workspace};
    if (stmt->value) ir_visit_expr(stmt->value, find_partial_read, &partial);
    if (partial.is_read || reads_partial(&stmt->body, clamped)) return true;
  }
  return false;
}

enum { HAS_GUARD = 1, IS_WRITTEN = 2, IS_PARTLY_WRITTEN = 4 };

static bool is_among(const struct list *stmts, const struct ir_stmt *stmt) {
  for (uint32_t i = 0; i < stmts->count; i++)
    if (stmts->at[i] == stmt) return true;
  return false;
}

// Whether a block holds the guard, and how it stores to the array: under conditions that are not around the guard too, or without.
static unsigned find_stores(const struct edge *e, const struct list *block, const struct ir_mem *mem, const struct ir_stmt *guard) {
  unsigned found = 0;
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt == guard) {
      found |= HAS_GUARD;
      continue;
    }
    if (stmt->kind == IR_STORE && stmt->mem == mem) found |= IS_WRITTEN;
    bool is_condition = stmt->kind == IR_IF ? !is_among(&e->tests, stmt) : is_among(&e->parts, stmt);
    unsigned body = find_stores(e, &stmt->body, mem, guard), otherwise = find_stores(e, &stmt->otherwise, mem, guard);
    unsigned inside = body & HAS_GUARD ? body : otherwise & HAS_GUARD ? otherwise : body | otherwise; // on the other side nothing runs
    found |= is_condition && inside & IS_WRITTEN && !(inside & HAS_GUARD) ? IS_PARTLY_WRITTEN : inside;
  }
  return found;
}

struct partly {
  const struct edge *edge;
  const struct ir_stmt *guard;
  bool is_read;
};

static void find_partly_written(struct ir_expr *x, void *state) {
  struct partly *partly = state;
  if (partly->is_read || (x->op != OP_LOAD && x->op != OP_LOAD_FLAT) || x->mem->space != SPACE_LOCAL) return;
  unsigned found = find_stores(partly->edge, &partly->edge->entry->body, x->mem, partly->guard);
  partly->is_read = found & IS_PARTLY_WRITTEN && !(found & IS_WRITTEN);
}

// Whether what is guarded reads an array that stages before wrote under conditions alone: nothing was written where the guard does not hold.
static bool reads_partly_written(const struct edge *e, const struct ir_stmt *guard) {
  struct partly partly = {e, guard, false};
  ir_visit_block(&guard->body, find_partly_written, &partly);
  return partly.is_read;
}

static bool is_selectable(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (reads_shared(stmt)) return false;
    bool is_local_store = stmt->kind == IR_STORE && stmt->mem->space == SPACE_LOCAL;
    if (stmt->kind == IR_FOR ? !is_selectable(&stmt->body) : stmt->kind != IR_LET && stmt->kind != IR_LOAD_WIDE && stmt->kind != IR_SET && !is_local_store) return false;
  }
  return true;
}

// Whether the block moves elements of tensors, and neither tests nor loops further nor has to do with arrays of the block or of a thread.
static bool is_streamed(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool is_access = stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE || stmt->kind == IR_LOAD_WIDE, reads = false;
    if ((!is_access && stmt->kind != IR_LET) || (is_access && stmt->mem->space != SPACE_GLOBAL)) return false;
    if (stmt->value) ir_visit_expr(stmt->value, find_array_read, &reads);
    for (uint32_t k = 0; k < stmt->inputs.count; k++) ir_visit_expr(stmt->inputs.at[k], find_array_read, &reads);
    if (reads) return false;
  }
  return true;
}

// What differs from thread to thread, or in the loop, in an expression.
struct varying {
  const struct edge *edge;
  const struct ir_stmt *loop;
  bool is_found, reads_memory;
};

static void find_varying(struct ir_expr *e, void *state) {
  struct varying *v = state;
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) v->reads_memory = true;
  if (e->op == OP_THREAD) v->is_found = true;
  if (e->op != OP_VAR || e->var->kind == VAR_SIZE || e->var->kind == VAR_SCALAR) return;
  if (e->var->kind == VAR_MUTABLE || e->var->type != TYPE_INDEX) v->reads_memory = true;
  bool is_around = false;
  for (uint32_t i = 0; i < v->edge->scope.count; i++) {
    const struct ir_stmt *stmt = v->edge->scope.at[i];
    if (stmt->var != e->var) continue;
    is_around = true;
    if (stmt->kind == IR_LET) ir_visit_expr(stmt->value, find_varying, v);
  }
  if (!is_around) v->is_found = true;
}

static void gather(struct list *lets, struct list *loops, const struct list *block, struct arena *arena) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LET) list_push(arena, lets, stmt);
    if (stmt->kind == IR_FOR) list_push(arena, loops, stmt);
    gather(lets, loops, &stmt->body, arena);
    gather(lets, loops, &stmt->otherwise, arena);
  }
}

// The base as it is written: x where the loop, loops in it and threads are at 0. NULL where that is something else.
static struct ir_expr *written_base(struct edge *e, struct ir_stmt *loop, struct facts *facts, struct ir_expr *x, struct poly base) {
  struct list lets = {0}, loops = {0};
  struct ir_expr *zero = number(e, 0);
  gather(&lets, &loops, &loop->body, e->arena);
  list_push(e->arena, &loops, loop);
  for (uint32_t i = lets.count; i-- > 0;) {
    struct ir_stmt *let = lets.at[i];
    let->var->subst = let->value;
    x = ir_substitute(e->arena, x);
    let->var->subst = NULL;
  }
  for (uint32_t i = 0; i < e->scope.count; i++) {
    struct ir_stmt *stmt = e->scope.at[i];
    if (stmt->kind == IR_LET && stmt->value->op == OP_THREAD) list_push(e->arena, &loops, stmt);
  }
  for (uint32_t i = 0; i < loops.count; i++) list_at(&loops, struct ir_stmt, i)->var->subst = zero;
  x = ir_substitute(e->arena, x);
  for (uint32_t i = 0; i < loops.count; i++) list_at(&loops, struct ir_stmt, i)->var->subst = NULL;
  return poly_equal(facts, poly_of(facts, x), base) ? x : NULL;
}

// x = v * F + base + r, where threads and what is in the loop make r, and base is the same in all the block: every iteration up to (E - base) / F
// has the guard in all threads. F may be a size then.
static bool has_base(struct edge *e, struct ir_stmt *loop, struct facts *facts, struct poly coefficient, struct poly rest, struct candidate *found) {
  struct poly base = {.is_valid = true}, inner = {.is_valid = true};
  for (uint32_t i = 0; i < rest.count; i++) {
    struct poly term = {true, 1, &rest.terms[i]};
    struct ir_expr *expr = poly_to_expr(facts, term);
    struct varying varying = {.edge = e, .loop = loop};
    if (!expr) return false;
    ir_visit_expr(expr, find_varying, &varying);
    if (varying.reads_memory) return false;
    if (varying.is_found) inner = poly_add(facts, inner, term);
    else base = poly_add(facts, base, term);
  }
  struct ir_expr *least = poly_minimum_expr(facts, poly_sub(facts, poly_constant(facts, 0), inner));
  if (!least || !ir_is_const(least) || least->integer > 0 || least->integer < -INT32_MAX) return false;
  if (!prove_nonnegative(facts, inner) || !prove_nonnegative(facts, poly_sub(facts, coefficient, poly_constant(facts, 1)))) return false;
  struct ir_expr *factor = poly_to_expr(facts, coefficient), *start = poly_to_expr(facts, base), *written = written_base(e, loop, facts, found->guard->value->args[0], base);
  if (!factor || !start) return false;
  found->factor = ir_cast(e->arena, TYPE_INDEX, factor);
  found->base = written ? written : ir_cast(e->arena, TYPE_INDEX, start);
  found->most = -least->integer;
  return true;
}

// Does the guard hold for every v < E / F?
static bool is_candidate(struct edge *e, struct ir_stmt *loop, struct facts *facts, struct ir_stmt *guard, struct candidate *found) {
  const struct ir_expr *condition = guard->value;
  if (condition->op != OP_LT || condition->args[0]->type != TYPE_INDEX || guard->otherwise.count || edge_moves_in(loop, condition->args[1])) return false;
  struct poly coefficient, rest;
  int64_t factor;
  *found = (struct candidate){.guard = guard, .end = condition->args[1]};
  if (!poly_split(facts, poly_of(facts, condition->args[0]), loop->var, &coefficient, &rest)) return false;
  if (poly_is_constant(coefficient, &factor)) {
    if (factor < 1) return false;
    found->factor = number(e, factor);
    if (prove_nonnegative(facts, rest) && prove_nonnegative(facts, poly_sub(facts, poly_constant(facts, factor - 1), rest))) return true;
  }
  bool is_whole = loop->unroll == UINT32_MAX || loop->unroll == UNROLL_VECTOR; // not split anyway
  return !is_whole && !poly_is_zero(coefficient) && (is_selectable(&guard->body) || is_streamed(&guard->body)) && has_base(e, loop, facts, coefficient, rest, found);
}

static bool find_candidate(struct edge *e, struct ir_stmt *loop, struct facts *facts, const struct list *block, struct candidate *found) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    statement_facts(e->entry, facts, stmt);
    if (stmt->kind == IR_IF && is_candidate(e, loop, facts, stmt, found)) return true;
    if ((stmt->kind == IR_FOR || stmt->kind == IR_IF) && find_candidate(e, loop, facts, &stmt->body, found)) return true;
  }
  return false;
}

// Whether a guard stands where find_candidate looks.
static bool has_guard(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_IF && stmt->value->op == OP_LT) return true;
    if ((stmt->kind == IR_FOR || stmt->kind == IR_IF) && has_guard(&stmt->body)) return true;
  }
  return false;
}

// The block with the guard replaced by what it guards.
static bool drop_guard(struct edge *e, struct list *block, const struct ir_stmt *guard) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt == guard) {
      struct list body = stmt->body;
      list_remove(block, i);
      for (uint32_t k = 0; k < body.count; k++) list_insert(e->arena, block, i + k, body.at[k]);
      return true;
    }
    if (drop_guard(e, &stmt->body, guard) || drop_guard(e, &stmt->otherwise, guard)) return true;
  }
  return false;
}

static bool loads(const struct ir_expr *e, const struct ir_mem *mem) {
  if ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem == mem) return true;
  for (uint32_t i = 0; i < e->count; i++)
    if (loads(e->args[i], mem)) return true;
  return false;
}

enum access { ACCESS_NONE, ACCESS_LOAD, ACCESS_STORE };

// What the block does first with the array.
static enum access first_access(const struct list *block, const struct ir_mem *mem) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if ((stmt->value && loads(stmt->value, mem)) || (stmt->kind == IR_LOAD_WIDE && stmt->mem == mem)) return ACCESS_LOAD;
    if (stmt->kind == IR_STORE && stmt->mem == mem) return ACCESS_STORE;
    enum access inside = first_access(&stmt->body, mem);
    if (inside != ACCESS_NONE) return inside;
  }
  return ACCESS_NONE;
}

static void select_values(struct edge *e, const struct list *guarded, struct list *block, struct ir_expr *inside) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_SET) stmt->value = ir_select(e->arena, inside, stmt->value, ir_ref(e->arena, stmt->var));
    // an array that is not read here is only read where the guard holds again; one that is written before it is read has no value to keep
    bool is_kept = stmt->kind == IR_STORE && first_access(guarded, stmt->mem) == ACCESS_LOAD;
    if (is_kept) stmt->value = ir_select(e->arena, inside, stmt->value, ir_load(e->arena, stmt->mem, &stmt->indices));
    if (stmt->kind == IR_FOR) select_values(e, guarded, &stmt->body, inside);
  }
}

static struct ir_expr *clamp_index(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena, (void)state;
  return e->op == OP_VAR && e->var->subst ? e->var->subst : e;
}

// Lets in front of the guard, in the loop, that are made of what is clamped: the guarded statements get their own.
static void clamp_lets(struct edge *e, const struct list *lets, struct list *out) {
  for (uint32_t i = 0; i < lets->count; i++) {
    struct ir_stmt *let = lets->at[i];
    struct ir_expr *value = ir_rewrite_expr(e->arena, let->value, clamp_index, NULL);
    if (value == let->value || let->var->subst) continue;
    struct ir_var *var = ir_new_var(e->kernel, VAR_LET, let->var->type, let->var->label);
    var->range = let->var->range;
    list_push(e->arena, out, ir_let(e->arena, var, value, let->range));
    let->var->subst = ir_ref(e->arena, var);
  }
}

// e in what the lets stand for, but for x.
static struct ir_expr *in_terms_of(struct edge *e, const struct list *lets, struct ir_expr *expr, const struct ir_var *x) {
  for (uint32_t i = lets->count; i-- > 0;) {
    struct ir_stmt *let = lets->at[i];
    if (let->var == x) continue;
    let->var->subst = let->value;
    expr = ir_substitute(e->arena, expr);
    let->var->subst = NULL;
  }
  return expr;
}

// Whether the wide load begins at whole vectors too where x has another value: it moves the place by multiples of them, or not at all.
static bool stays_aligned(struct edge *e, struct facts *facts, const struct list *lets, const struct ir_stmt *load, struct ir_var *x) {
  struct poly offset = poly_constant(facts, 0), by, rest;
  struct ir_var *any = ir_new_var(e->kernel, VAR_LET, TYPE_INDEX, x->label); // of which nothing is known
  for (uint32_t d = 0; d < load->indices.count; d++) {
    struct ir_expr *index = in_terms_of(e, lets, load->indices.at[d], x);
    if (!ir_mentions(index, x)) continue;
    x->subst = ir_ref(e->arena, any);
    index = ir_substitute(e->arena, index);
    x->subst = NULL;
    offset = poly_add(facts, offset, poly_mul(facts, poly_of(facts, index), poly_of(facts, load->mem->strides.at[d])));
  }
  struct ir_expr *step = poly_linear(facts, offset, any, &by, &rest) ? poly_to_expr(facts, by) : NULL;
  return step && prove_divides(facts, ir_int(e->arena, TYPE_I64, load->results.count), step);
}

static bool are_aligned(struct edge *e, struct facts *facts, const struct list *lets, const struct list *block, struct ir_var *x) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LOAD_WIDE && stmt->mem->space == SPACE_GLOBAL && !stays_aligned(e, facts, lets, stmt, x)) return false;
    if (!are_aligned(e, facts, lets, &stmt->body, x)) return false;
  }
  return true;
}

// Whether the block holds the guard; *is_asked: whether a condition around it asks something of x, or of what is made of x, that another value of x need not have.
// That x is not below 0 it keeps.
static bool find_asked(struct edge *e, const struct list *lets, const struct list *block, const struct ir_stmt *guard, const struct ir_var *x, bool *is_asked) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt == guard) return true;
    if (!find_asked(e, lets, &stmt->body, guard, x, is_asked) && !find_asked(e, lets, &stmt->otherwise, guard, x, is_asked)) continue;
    const struct ir_expr *c = stmt->kind == IR_IF ? stmt->value : NULL;
    bool is_start = c && c->op == OP_GE && c->args[0]->op == OP_VAR && c->args[0]->var == x && ir_const_is(c->args[1], 0);
    *is_asked |= c && !is_start && ir_mentions(in_terms_of(e, lets, stmt->value, x), x);
    return true;
  }
  return false;
}

static bool can_select(struct edge *e, struct facts *facts, const struct ir_stmt *loop, const struct ir_stmt *guard) {
  const struct ir_expr *x = guard->value->args[0];
  struct list lets = {0}, loops = {0};
  gather(&lets, &loops, &loop->body, e->arena);
  if (x->op != OP_VAR || !is_selectable(&guard->body) || reads_partial(&guard->body, x->var) || !are_aligned(e, facts, &lets, &guard->body, x->var)) return false;
  bool is_asked = false;
  return find_asked(e, &lets, &loop->body, guard, x->var, &is_asked) && !is_asked;
}

// Clamps addresses and selects values in the guard's place, which is somewhere in the block. E is at least 1 where this runs. `lets` are those of the loop before `block`.
static bool select_guard(struct edge *e, struct list *block, struct ir_stmt *guard, struct list *lets) {
  uint32_t outside = lets->count;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt != guard) {
      if (stmt->kind == IR_LET) list_push(e->arena, lets, stmt);
      if (select_guard(e, &stmt->body, guard, lets)) return true;
      continue;
    }
    struct ir_expr *x = guard->value->args[0], *end = guard->value->args[1];
    struct ir_var *inside = ir_new_var(e->kernel, VAR_LET, TYPE_BOOL, "inside"), *clamped = ir_new_var(e->kernel, VAR_LET, TYPE_INDEX, "clamped");
    struct list body = {0};
    list_push(e->arena, &body, ir_let(e->arena, inside, guard->value, guard->range));
    list_push(e->arena, &body, ir_let(e->arena, clamped, binary(e, OP_MIN, x, binary(e, OP_SUB, end, number(e, 1))), guard->range));
    x->var->subst = ir_ref(e->arena, clamped);
    clamp_lets(e, lets, &body);
    ir_rewrite_block(e->arena, &guard->body, clamp_index, NULL);
    x->var->subst = NULL;
    for (uint32_t k = 0; k < lets->count; k++) list_at(lets, struct ir_stmt, k)->var->subst = NULL;
    select_values(e, &guard->body, &guard->body, ir_ref(e->arena, inside));
    list_append(e->arena, &body, &guard->body);
    list_remove(block, i);
    for (uint32_t k = 0; k < body.count; k++) list_insert(e->arena, block, i + k, body.at[k]);
    return true;
  }
  lets->count = outside;
  return false;
}

static struct ir_stmt *find_twin(const struct list *original, const struct list *copy, const struct ir_stmt *guard) {
  for (uint32_t i = 0; i < original->count; i++) {
    struct ir_stmt *a = original->at[i], *b = copy->at[i];
    if (a == guard) return b;
    struct ir_stmt *twin = find_twin(&a->body, &b->body, guard);
    if (!twin) twin = find_twin(&a->otherwise, &b->otherwise, guard);
    if (twin) return twin;
  }
  return NULL;
}

// Whether the block does nothing where the guard does not hold.
static bool guards_all(const struct list *block, const struct ir_stmt *guard) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool is_nothing = stmt == guard || stmt->kind == IR_LET || stmt->kind == IR_VAR, is_around = stmt->kind == IR_FOR || stmt->kind == IR_IF;
    if (!is_nothing && !(is_around && guards_all(&stmt->body, guard) && guards_all(&stmt->otherwise, guard))) return false;
  }
  return true;
}

static struct ir_expr *without_end(struct arena *arena, struct ir_expr *x, void *end) {
  return ir_equal(x, end) ? ir_int(arena, x->type, 0) : x;
}

// Whether the loop of the edge runs only where E is at least 1: in pieces of a split, which begin at 0 or behind it.
static bool is_empty_without_end(struct edge *e, struct facts *facts, const struct candidate *c, const struct ir_stmt *loop) {
  if (ir_is_const(c->end)) return c->end->integer > 0;
  if (c->base) return prove_nonnegative(facts, poly_of(facts, c->base));
  const struct ir_expr *last = ir_rewrite_expr(e->arena, loop->hi, without_end, c->end);
  return ir_is_const(last) && last->integer <= 0;
}

static struct ir_stmt *test_end(struct edge *e, const struct candidate *c, struct ir_stmt *loop) {
  struct ir_stmt *test = ir_stmt(e->arena, IR_IF, loop->range);
  test->value = binary(e, OP_GT, c->end, number(e, 0));
  list_push(e->arena, &e->tests, test);
  list_push(e->arena, &test->body, loop);
  return test;
}

// A loop that is unrolled whole and divides under the guard: iterations of which the guard holds, and the others. Returns how many loops there are, 0 where that is not known.
static uint32_t split_division(struct edge *e, struct list *block, uint32_t place, const struct candidate *c) {
  struct ir_stmt *loop = block->at[place];
  if (loop->unroll != UINT32_MAX || !ir_is_const(loop->lo) || !ir_is_const(loop->hi) || c->base || !ir_is_const(c->end) || !ir_is_const(c->factor) || !edge_divides(loop, &c->guard->body)) return 0;
  int64_t middle = c->end->integer / c->factor->integer;
  if (middle <= loop->lo->integer) return 0;
  uint32_t loops = middle < loop->hi->integer ? 2 : 1;
  if (loops == 2) {
    struct ir_stmt *edge = ir_stmt(e->arena, IR_FOR, loop->range);
    edge->var = ir_new_var(e->kernel, VAR_AXIS, TYPE_INDEX, loop->var->label);
    edge->lo = number(e, middle);
    edge->hi = loop->hi;
    edge->unroll = loop->unroll;
    loop->var->subst = ir_ref(e->arena, edge->var);
    edge->body = ir_clone_block(e->kernel, &loop->body);
    loop->var->subst = NULL;
    list_push(e->arena, &e->parts, loop), list_push(e->arena, &e->parts, edge);
    list_insert(e->arena, block, place + 1, edge);
    loop->hi = number(e, middle);
  }
  drop_guard(e, &loop->body, c->guard);
  return loops;
}

// Splits one loop at `place` of a block; returns how many statements stand there now.
static uint32_t split_loop(struct edge *e, struct list *block, uint32_t place) {
  struct ir_stmt *loop = block->at[place];
  struct facts facts;
  struct candidate c;
  bool is_constant = loop->unroll == UINT32_MAX && ir_is_const(loop->lo);
  if ((!ir_const_is(loop->lo, 0) && !is_constant) || !has_guard(&loop->body) || has_collective(&loop->body)) return 1;
  facts_init(&facts, e->arena);
  if (e->entry->when) facts_add_condition(&facts, e->entry->when);
  for (uint32_t i = 0; i < e->entry->assumptions.count; i++)
    facts_add_condition(&facts, list_at(&e->entry->assumptions, struct ir_requirement, i)->condition);
  for (uint32_t i = 0; i < e->scope.count; i++) statement_facts(e->entry, &facts, e->scope.at[i]);
  statement_facts(e->entry, &facts, loop);
  if (!find_candidate(e, loop, &facts, &loop->body, &c)) return 1;
  uint32_t divided = split_division(e, block, place, &c);
  if (divided || !ir_const_is(loop->lo, 0)) return divided ? divided : 1;
  if (loop->unroll == UINT32_MAX || loop->unroll == UNROLL_VECTOR || ir_const_is(loop->hi, 1)) {
    if (!can_select(e, &facts, loop, c.guard) || reads_partly_written(e, c.guard)) return 1;
    struct list lets = {0};
    select_guard(e, &loop->body, c.guard, &lets);
    block->at[place] = test_end(e, &c, loop);
    return 1;
  }
  struct ir_expr *middle = binary(e, OP_QUO, c.end, c.factor), *last = loop->hi;
  bool is_cut = !c.base || guards_all(&loop->body, c.guard); // else the loop goes on where no thread has the guard, which stays
  if (c.base) {
    struct ir_expr *left = binary(e, OP_SUB, c.end, c.base), *less = binary(e, OP_SUB, c.factor, number(e, 1)), *zero = number(e, 0);
    middle = binary(e, OP_QUO, binary(e, OP_MAX, binary(e, OP_ADD, left, binary(e, OP_SUB, less, number(e, c.most))), zero), c.factor);
    if (is_cut) last = binary(e, OP_QUO, binary(e, OP_MAX, binary(e, OP_ADD, left, less), zero), c.factor);
    struct ir_var *whole = ir_new_var(e->kernel, VAR_LET, TYPE_INDEX, "whole"), *all = ir_new_var(e->kernel, VAR_LET, TYPE_INDEX, "all");
    list_insert(e->arena, block, place++, ir_let(e->arena, whole, binary(e, OP_MIN, middle, loop->hi), loop->range));
    list_insert(e->arena, block, place++, ir_let(e->arena, all, binary(e, OP_MIN, last, loop->hi), loop->range));
    middle = ir_ref(e->arena, whole);
    last = ir_ref(e->arena, all);
  }
  struct ir_var *var = ir_new_var(e->kernel, VAR_AXIS, TYPE_INDEX, loop->var->label);
  struct ir_stmt *edge = ir_stmt(e->arena, IR_FOR, loop->range);
  edge->var = var;
  edge->lo = middle;
  edge->hi = last;
  edge->unroll = 1;
  loop->var->subst = ir_ref(e->arena, var);
  edge->body = ir_clone_block(e->kernel, &loop->body);
  loop->var->subst = NULL;
  struct list lets = {0};
  bool is_selected = is_cut && can_select(e, &facts, loop, c.guard) && !reads_partly_written(e, c.guard);
  if (is_selected) select_guard(e, &edge->body, find_twin(&loop->body, &edge->body, c.guard), &lets);
  bool is_tested = is_selected && !is_empty_without_end(e, &facts, &c, loop);
  if (!is_selected || c.base) list_push(e->arena, &e->parts, loop), list_push(e->arena, &e->parts, edge);
  drop_guard(e, &loop->body, c.guard);
  loop->hi = c.base || prove_at_most(&facts, middle, loop->hi) ? middle : binary(e, OP_MIN, loop->hi, middle);
  list_insert(e->arena, block, place + 1, is_tested ? test_end(e, &c, edge) : edge);
  return c.base ? 4 : 2;
}

static void split_block(struct edge *e, struct list *block) {
  uint32_t outer = e->scope.count;
  for (uint32_t i = 0; i < block->count;) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LET) list_push(e->arena, &e->scope, stmt);
    if (stmt->kind == IR_FOR) {
      uint32_t count = split_loop(e, block, i);
      if (count == 1 && block->at[i] == stmt) { // a loop that was not split may hold one that is
        list_push(e->arena, &e->scope, stmt);
        split_block(e, &stmt->body);
        e->scope.count--;
      }
      i += count;
      continue;
    }
    split_block(e, &stmt->body);
    split_block(e, &stmt->otherwise);
    i++;
  }
  e->scope.count = outer;
}

bool pass_edge(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct edge e = {.arena = context->arena, .kernel = kernel, .entry = entry};
  edge_kept(context, kernel, entry);
  edge_depths(context, kernel, entry);
  edge_blocks(context, kernel, entry);
  split_block(&e, &entry->body);
  edge_ahead(context, kernel, entry);
  edge_divide(context, kernel, entry);
  return true;
}
