// widen: vectors become accesses of up to 16 bytes.
//
//   for iv in 0 .. 4 unroll vector {                 load_wide (a, b, c, d) = A[k, ic * 4]
//     let i = ic * 4 + iv                      ->    store sum[0] = load(sum, 0) + a
//     store sum[iv] = load(sum, iv) + load(A, k, i)  store sum[1] = load(sum, 1) + b
//   }                                                ...
//
// Requires LEVEL_PROGRAM before pass `index`. In the fast entry a vector loop is unrolled here, and in each straight run of statements
// the loads, and the stores, of neighbouring elements are joined where the first one's place is a multiple of the width: 16 bytes, else 8, 4, 2.
// What that needs of sizes and addresses and what the schedule does not state becomes an assumption of the entry; the general entry behind it keeps the
// loop and takes the other launches. Joined loads move up to the first of them, joined stores down to the last: inputs are
// not written, and no two threads or iterations write one element of an output. Asynchronous copies are joined where they are neighbours on both
// sides; those that stay below 4 bytes become stores. Declines with a remark.
#include <string.h>

#include "compiler/pass.h"
#include "compiler/poly.h"
#include "passes/offset.h"
#include "passes/statement.h"

enum { MAX_BYTES = 16, MAX_RUN = 4096 };

struct widener {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list scope; // struct ir_stmt: LET and FOR around, outermost first
  struct lets lets;
};

// An access of one element in a run.
struct access {
  struct ir_mem *mem;
  struct ir_expr *load;  // or NULL: a store
  uint32_t place;        // of its statement in the run
  struct poly offset;    // in elements
  bool is_taken;
};

// --- Unrolling ------------------------------------------------------------------------------------------------------

static void unroll_vectors(struct widener *w, struct list *block) {
  struct list out = {0};
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    unroll_vectors(w, &stmt->body);
    unroll_vectors(w, &stmt->otherwise);
    bool is_vector = stmt->kind == IR_FOR && stmt->unroll == UNROLL_VECTOR && ir_is_const(stmt->hi) && ir_const_is(stmt->lo, 0);
    if (!is_vector) {
      list_push(w->arena, &out, stmt);
      continue;
    }
    for (int64_t v = 0; v < stmt->hi->integer; v++) {
      stmt->var->subst = ir_int(w->arena, TYPE_INDEX, v);
      struct list copy = ir_clone_block(w->kernel, &stmt->body);
      stmt->var->subst = NULL;
      list_append(w->arena, &out, &copy);
    }
  }
  *block = out;
}

// --- Facts ------------------------------------------------------------------------------------------------------------

static void scope_facts(struct widener *w, struct facts *facts) {
  facts_init(facts, w->arena);
  if (w->entry->when) facts_add_condition(facts, w->entry->when);
  for (uint32_t i = 0; i < w->entry->assumptions.count; i++)
    facts_add_condition(facts, list_at(&w->entry->assumptions, struct ir_requirement, i)->condition);
  for (uint32_t i = 0; i < w->scope.count; i++) statement_facts(w->entry, facts, w->scope.at[i]);
}

static struct poly offset_of(struct widener *w, struct facts *facts, const struct ir_mem *mem, struct ir_expr *const *indices) {
  struct poly offset = poly_constant(facts, 0);
  struct offset_term *terms = arena_array(w->arena, struct offset_term, mem->dims.count + 1);
  uint32_t count = offset_terms(&w->lets, mem, indices, mem->dims.count, terms);
  for (uint32_t d = 0; d < count; d++)
    offset = poly_add(facts, offset, poly_mul(facts, poly_of(facts, terms[d].index), poly_of(facts, terms[d].stride)));
  return offset;
}

// --- Alignment --------------------------------------------------------------------------------------------------------

static bool is_of_sizes(const struct ir_expr *e) {
  if (e->op == OP_VAR) return e->var->kind == VAR_SIZE;
  if (e->op == OP_LOAD || e->op == OP_THREAD || e->op == OP_BLOCK) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!is_of_sizes(e->args[i])) return false;
  return true;
}

static void assume(struct widener *w, struct ir_expr *value, int64_t divisor, const char *message) {
  struct ir_expr *rest = ir_binary(w->arena, OP_MOD, value, ir_int(w->arena, TYPE_I64, divisor));
  struct ir_expr *condition = ir_binary(w->arena, OP_EQ, rest, ir_int(w->arena, TYPE_I64, 0));
  if (ir_const_is(condition, 1)) return;
  for (uint32_t i = 0; i < w->entry->assumptions.count; i++)
    if (ir_equal(list_at(&w->entry->assumptions, struct ir_requirement, i)->condition, condition)) return;
  struct ir_requirement *assumption = arena_new(w->arena, struct ir_requirement);
  assumption->condition = condition;
  assumption->message = message;
  assumption->range = w->entry->range;
  list_push(w->arena, &w->entry->assumptions, assumption);
}

// Where the base is not known to be a multiple of so many bytes, the entry assumes it.
static void assume_aligned(struct widener *w, struct ir_mem *mem, uint32_t bytes) {
  if (mem->alignment < bytes)
    assume(w, ir_fact(w->arena, OP_ADDRESS, mem, 0), bytes, arena_printf(w->arena, "'%s' does not start on %u bytes", mem->label, bytes));
}

// Whether the offset is a multiple of `width` elements. A stride of the tensor that is not known to be one is assumed to be, when
// may_assume; what is left must be.
static bool is_multiple(struct widener *w, struct facts *facts, const struct ir_mem *mem, struct poly offset, uint32_t width, bool may_assume) {
  struct ir_expr *factor = ir_int(w->arena, TYPE_I64, width), *e = poly_to_expr(facts, offset);
  if (!e) return false;
  if (prove_divides(facts, factor, e)) return true;
  struct poly rest = offset;
  struct list assumed = {0};
  for (uint32_t d = 0; d < mem->strides.count; d++) { // leave out the terms that hold a stride as a factor
    struct ir_expr *stride = mem->strides.at[d];
    if (ir_is_const(stride) || !is_of_sizes(stride)) continue;
    bool is_known = prove_divides(facts, factor, stride);
    struct poly kept = {.is_valid = true};
    bool left_out = false;
    for (uint32_t i = 0; i < rest.count; i++) {
      struct poly term = {true, 1, &rest.terms[i]};
      struct ir_expr *term_expr = poly_to_expr(facts, term);
      if (prove_divides(facts, stride, term_expr)) left_out = true;
      else kept = poly_add(facts, kept, term);
    }
    rest = kept;
    if (left_out && !is_known) list_push(w->arena, &assumed, stride);
  }
  if (assumed.count && !may_assume) return false;
  e = poly_to_expr(facts, rest);
  if (!e || !prove_divides(facts, factor, e)) return false;
  for (uint32_t i = 0; i < assumed.count; i++)
    assume(w, assumed.at[i], width, arena_printf(w->arena, "a row of '%s' does not start on %u bytes", mem->label, width * type_bytes(mem->type)));
  return true;
}

// --- Joining ----------------------------------------------------------------------------------------------------------

struct collector {
  struct widener *w;
  struct facts *facts;
  struct list accesses; // struct access
  uint32_t place;
};

static void add_access(struct collector *c, struct ir_mem *mem, struct ir_expr *load, struct ir_expr *const *indices) {
  if (mem->space == SPACE_LOCAL || c->accesses.count >= MAX_RUN) return;
  struct access *access = arena_new(c->w->arena, struct access);
  access->mem = mem;
  access->load = load;
  access->place = c->place;
  access->offset = offset_of(c->w, c->facts, mem, indices);
  if (access->offset.is_valid) list_push(c->w->arena, &c->accesses, access);
}

// Loads, but for those that are repeated until they see a value.
static void collect_loads(struct collector *c, struct ir_expr *e) {
  for (uint32_t i = 0; i < (e->op == OP_AWAIT ? 1 : e->count); i++) collect_loads(c, e->args[i]);
  if (e->op == OP_LOAD) add_access(c, e->mem, e, e->args);
}

// The access of the same kind that lies `distance` elements behind `first`.
static struct access *neighbour(struct collector *c, const struct access *first, int64_t distance) {
  for (uint32_t i = 0; i < c->accesses.count; i++) {
    struct access *other = c->accesses.at[i];
    int64_t gap;
    if (other->mem == first->mem && !other->load == !first->load && !other->is_taken &&
        poly_is_constant(poly_sub(c->facts, other->offset, first->offset), &gap) && gap == distance)
      return other;
  }
  return NULL;
}

struct replacement {
  struct list loads; // struct ir_expr
  struct list vars;  // struct ir_var
};

static struct ir_expr *replace_load(struct arena *arena, struct ir_expr *e, void *state) {
  struct replacement *r = state;
  if (e->op != OP_LOAD) return e;
  for (uint32_t i = 0; i < r->loads.count; i++)
    if (ir_equal(r->loads.at[i], e)) return ir_ref(arena, r->vars.at[i]);
  return e;
}

// What is put in front of, or in place of, the statements of a run.
struct edit {
  struct list before; // struct ir_stmt
  struct ir_stmt *instead;
  bool is_dropped;
};

static void join_loads(struct widener *w, struct collector *c, const struct list *run, struct access **group, uint32_t width, struct edit *edits, struct replacement *r) {
  struct ir_mem *mem = group[0]->mem;
  struct ir_stmt *wide = ir_stmt(w->arena, IR_LOAD_WIDE, list_at(run, struct ir_stmt, group[0]->place)->range);
  wide->mem = mem;
  for (uint32_t d = 0; d < group[0]->load->count; d++) list_push(w->arena, &wide->indices, group[0]->load->args[d]);
  for (uint32_t i = 0; i < width; i++) {
    struct ir_var *var = ir_new_var(w->kernel, VAR_LET, mem->type, arena_printf(w->arena, "%s_v", mem->label));
    var->range = wide->range;
    list_push(w->arena, &wide->results, var);
    list_push(w->arena, &r->loads, group[i]->load);
    list_push(w->arena, &r->vars, var);
    for (struct access *same; (same = neighbour(c, group[0], i)); same->is_taken = true) { // the same element read again
      list_push(w->arena, &r->loads, same->load);
      list_push(w->arena, &r->vars, var);
    }
  }
  list_push(w->arena, &edits[group[0]->place].before, wide);
}

static void join_stores(struct widener *w, const struct list *run, struct access **group, uint32_t width, struct edit *edits) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < width; i++)
    if (group[i]->place > last) last = group[i]->place;
  struct ir_stmt *first = run->at[group[0]->place], *wide = ir_stmt(w->arena, IR_STORE_WIDE, first->range);
  wide->mem = first->mem;
  wide->indices = first->indices;
  for (uint32_t i = 0; i < width; i++) {
    struct ir_stmt *store = run->at[group[i]->place];
    struct ir_var *var = ir_new_var(w->kernel, VAR_LET, store->mem->type, arena_printf(w->arena, "%s_v", store->mem->label));
    var->range = store->range;
    edits[group[i]->place].instead = ir_let(w->arena, var, store->value, store->range);
    list_push(w->arena, &wide->inputs, ir_ref(w->arena, var));
  }
  list_push(w->arena, &edits[last + 1].before, wide);
}

// Asynchronous copies of neighbours on both sides, placed where the last of them stood.
static void join_copies(struct widener *w, const struct list *run, struct access **group, uint32_t width, struct edit *edits) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < width; i++) {
    if (group[i]->place > last) last = group[i]->place;
    edits[group[i]->place].is_dropped = true;
  }
  const struct ir_stmt *first = run->at[group[0]->place];
  struct ir_stmt *wide = ir_stmt(w->arena, IR_COPY, first->range);
  wide->mem = first->mem;
  wide->indices = first->indices;
  wide->value = first->value;
  wide->count = width;
  list_push(w->arena, &edits[last + 1].before, wide);
}

// Whether asynchronous copies to neighbours come from neighbours of one tensor; *offset is that of the first.
static bool have_neighbours(struct collector *c, const struct list *run, struct access **group, uint32_t width, struct poly *offset) {
  const struct ir_expr *first = list_at(run, struct ir_stmt, group[0]->place)->value;
  *offset = offset_of(c->w, c->facts, first->mem, first->args);
  for (uint32_t i = 1; i < width; i++) {
    const struct ir_expr *other = list_at(run, struct ir_stmt, group[i]->place)->value;
    int64_t gap;
    if (other->mem != first->mem || !poly_is_constant(poly_sub(c->facts, offset_of(c->w, c->facts, other->mem, other->args), *offset), &gap) || gap != i) return false;
  }
  return offset->is_valid;
}

// So many aligned neighbours of an object stay neighbours: pass `index` permutes units of shared ones.
static uint32_t unbroken(const struct ir_mem *mem) {
  return mem->swizzle_bits ? (mem->unit > 1 ? mem->unit : 1) << mem->swizzle_base : UINT32_MAX;
}

// Finds groups that begin at `first`, the widest first.
static void try_join(struct widener *w, struct collector *c, const struct list *run, struct access *first, struct edit *edits, struct replacement *r, bool *narrow) {
  struct access *group[MAX_BYTES];
  uint32_t bytes = type_bytes(first->mem->type);
  for (uint32_t width = MAX_BYTES / bytes; width >= 2; width /= 2) {
    uint32_t found = 1;
    group[0] = first;
    while (found < width && (group[found] = neighbour(c, first, found)) && (!first->load || group[found]->place >= first->place)) found++;
    if (found < width || width > unbroken(first->mem)) continue;
    const struct ir_stmt *stmt = run->at[first->place];
    bool is_copy = stmt->kind == IR_COPY;
    const struct ir_mem *source = is_copy ? stmt->value->mem : NULL;
    struct poly from;
    if (is_copy && !have_neighbours(c, run, group, width, &from)) continue;
    if (!is_multiple(w, c->facts, first->mem, first->offset, width, true) || (is_copy && !is_multiple(w, c->facts, source, from, width, true))) {
      *narrow = true;
      continue;
    }
    assume_aligned(w, first->mem, width * bytes);
    if (is_copy) assume_aligned(w, stmt->value->mem, width * bytes);
    for (uint32_t i = 0; i < width; i++) group[i]->is_taken = true;
    if (is_copy) join_copies(w, run, group, width, edits);
    else if (first->load) join_loads(w, c, run, group, width, edits, r);
    else join_stores(w, run, group, width, edits);
    return;
  }
}

// Objects that a run touches, as long as they are few and none is touched twice in one way.
enum { FEW_OBJECTS = 16 };
struct touched {
  const struct ir_mem *mems[2][FEW_OBJECTS]; // stored to or copied to; loaded
  uint32_t counts[2];
  bool has_two;
};

static void touch(struct touched *t, const struct ir_mem *mem, bool is_load) {
  uint32_t *count = &t->counts[is_load];
  if (mem->space == SPACE_LOCAL) return;
  for (uint32_t i = 0; i < *count; i++) t->has_two |= t->mems[is_load][i] == mem;
  t->has_two |= *count == FEW_OBJECTS;
  if (!t->has_two) t->mems[is_load][(*count)++] = mem;
}

static void touch_load(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD) touch(state, e->mem, true);
}

// Whether accesses of a run can be neighbours at all: what is known in the scope costs more than all the rest.
static bool has_two_accesses(const struct list *run) {
  struct touched t = {0};
  for (uint32_t i = 0; i < run->count && !t.has_two; i++) {
    const struct ir_stmt *stmt = run->at[i];
    if (stmt->value && stmt->kind != IR_COPY) ir_visit_expr(stmt->value, touch_load, &t);
    if (stmt->kind == IR_STORE || stmt->kind == IR_COPY) touch(&t, stmt->mem, false);
  }
  return t.has_two;
}

static struct list join_run(struct widener *w, const struct list *run) {
  struct facts facts;
  if (!has_two_accesses(run)) return *run;
  scope_facts(w, &facts);
  struct collector c = {.w = w, .facts = &facts};
  for (c.place = 0; c.place < run->count; c.place++) {
    struct ir_stmt *stmt = run->at[c.place];
    statement_facts(w->entry, &facts, stmt);
    if (stmt->value && stmt->kind != IR_COPY) collect_loads(&c, stmt->value);
    if (stmt->kind == IR_STORE || stmt->kind == IR_COPY) add_access(&c, stmt->mem, NULL, (struct ir_expr *const *)stmt->indices.at);
  }
  struct edit *edits = arena_array(w->arena, struct edit, run->count + 1);
  struct replacement r = {0};
  for (uint32_t i = 0; i < c.accesses.count; i++) {
    struct access *first = c.accesses.at[i];
    bool narrow = false;
    if (!first->is_taken) try_join(w, &c, run, first, edits, &r, &narrow);
    if (narrow && !first->is_taken)
      diag_remark(w->context->diag, "widen", list_at(run, struct ir_stmt, first->place)->range, "accesses of '%s' stay narrow: its place is not known to be a multiple of the vector", first->mem->label);
  }
  struct list out = {0};
  for (uint32_t i = 0; i <= run->count; i++) {
    list_append(w->arena, &out, &edits[i].before);
    if (i < run->count && !edits[i].is_dropped) list_push(w->arena, &out, edits[i].instead ? edits[i].instead : run->at[i]);
  }
  if (r.loads.count) ir_rewrite_block(w->arena, &out, replace_load, &r);
  return out;
}

static bool is_straight(const struct ir_stmt *stmt) {
  return stmt->kind == IR_LET || stmt->kind == IR_VAR || stmt->kind == IR_SET || stmt->kind == IR_STORE || stmt->kind == IR_COPY;
}

static void widen_block(struct widener *w, struct list *block) {
  uint32_t outside = w->scope.count;
  struct list out = {0}, run = {0};
  for (uint32_t i = 0; i <= block->count; i++) {
    struct ir_stmt *stmt = i < block->count ? block->at[i] : NULL;
    if (stmt && is_straight(stmt)) {
      list_push(w->arena, &run, stmt);
      continue;
    }
    struct list joined = join_run(w, &run);
    list_append(w->arena, &out, &joined);
    for (uint32_t k = 0; k < run.count; k++) list_push(w->arena, &w->scope, run.at[k]);
    run = (struct list){0};
    if (!stmt) break;
    uint32_t inside = w->scope.count;
    list_push(w->arena, &w->scope, stmt);
    widen_block(w, &stmt->body);
    widen_block(w, &stmt->otherwise);
    w->scope.count = inside;
    list_push(w->arena, &out, stmt);
  }
  w->scope.count = outside;
  *block = out;
}

static bool has_vector(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if ((stmt->kind == IR_FOR && stmt->unroll == UNROLL_VECTOR) || has_vector(&stmt->body) || has_vector(&stmt->otherwise)) return true;
  }
  return false;
}

// Copies of fewer bytes than machines copy asynchronously become stores. Returns how many asynchronous ones are left.
static uint32_t store_narrow_copies(struct widener *w, const struct list *block) {
  enum { LEAST = 4 };
  uint32_t left = 0;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    left += store_narrow_copies(w, &stmt->body) + store_narrow_copies(w, &stmt->otherwise);
    if (stmt->kind != IR_COPY) continue;
    if (stmt->count * type_bytes(stmt->mem->type) >= LEAST) {
      left++;
      continue;
    }
    stmt->kind = IR_STORE;
    stmt->count = 0;
    if (!w->entry->is_general)
      diag_remark(w->context->diag, "widen", stmt->range, "copies of '%s' are not asynchronous: no %u bytes are known to be neighbours", stmt->mem->label, LEAST);
  }
  return left;
}

static void drop_waits(struct list *block) {
  for (uint32_t i = block->count; i-- > 0;) {
    struct ir_stmt *stmt = block->at[i];
    drop_waits(&stmt->body);
    drop_waits(&stmt->otherwise);
    if (stmt->kind == IR_COPY_WAIT || stmt->kind == IR_COPY_COMMIT) list_remove(block, i);
  }
}

static bool has_copy(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_COPY || has_copy(&stmt->body) || has_copy(&stmt->otherwise)) return true;
  }
  return false;
}

static void widen(struct widener *w) {
  struct ir_entry *entry = w->entry;
  if (entry->is_general || !has_vector(&entry->body)) return;
  unroll_vectors(w, &entry->body);
  lets_collect(&w->lets, w->arena, &entry->body);
  widen_block(w, &entry->body);
}

bool pass_widen(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct widener w = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry};
  widen(&w);
  if (has_copy(&entry->body) && !store_narrow_copies(&w, &entry->body)) drop_waits(&entry->body);
  return true;
}
