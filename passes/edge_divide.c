// An unrolled loop that divides by what it does not change multiplies by the inverse, with the same bits.
//
//   for v in 0 .. 8 unroll whole {              let inverse = div(1, d);  let is_plain = abs(d) in 2^-40 .. 2^40
//     store Y[v] = div(x, d)               ->   for v in 0 .. 8 unroll whole { store quotients[v] = x;  set least = min(least, abs(x));  set most = max(most, abs(x)) }
//   }                                           if is_plain and least >= 2^-60 and most <= 2^60 {
//                                                 for v ... { let q = quotients[v] * inverse;  store Y[v] = fma(fma(-q, d, quotients[v]), inverse, q) }
//                                               } else {
//                                                 for v ... { store Y[v] = div(quotients[v], d) }
//                                               }
//
// What is left of x behind the first quotient is exact there, and the second quotient is that of the division (Markstein): a test of all divisors with the dividends
// whose quotients are nearest to the middle of two floats finds no other. Machines divide so too, with an inverse and a test for each quotient.
#include "passes/edge.h"

#include <math.h>

enum { GROUP = 8, LEAST_STEPS = 4, MOST_QUOTIENTS = 4 };

struct quotient {
  struct ir_expr *dividend, *divisor; // of the loop
  struct ir_mem *mem;                 // a group's dividends
  struct ir_expr *value, *inverse, *is_plain; // of the divisor, in front of the loop
};

struct divide {
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct ir_stmt *loop;
  struct list out; // struct ir_stmt: what stands in its place
  struct quotient quotients[MOST_QUOTIENTS];
  uint32_t count;
  int64_t group;
};

static bool is_quotient(const struct ir_stmt *loop, const struct ir_stmt *stmt) {
  const struct ir_expr *e = stmt->value;
  return e && e->op == OP_DIV && e->type == TYPE_F32 && e->args[1]->op != OP_CONST && edge_is_fixed(loop, e->args[1]) && !edge_is_fixed(loop, e->args[0]);
}

bool edge_divides(const struct ir_stmt *loop, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++)
    if (is_quotient(loop, block->at[i])) return true;
  return false;
}

static bool is_taken(const struct ir_stmt *loop) {
  uint32_t count = 0;
  if (loop->kind != IR_FOR || loop->unroll != UINT32_MAX || !ir_is_const(loop->lo) || !ir_is_const(loop->hi) || loop->hi->integer - loop->lo->integer < LEAST_STEPS) return false;
  for (uint32_t i = 0; i < loop->body.count; i++) {
    const struct ir_stmt *stmt = loop->body.at[i];
    bool is_store = (stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE) && stmt->mem->space == SPACE_GLOBAL;
    if (!is_store && stmt->kind != IR_LET) return false;
    count += is_quotient(loop, stmt);
  }
  return count && count <= MOST_QUOTIENTS;
}

static struct ir_expr *number(struct divide *d, double value) { return ir_float(d->arena, TYPE_F32, value); }

static struct ir_expr *define(struct divide *d, struct list *out, enum type type, const char *label, struct ir_expr *value) {
  struct ir_var *var = ir_new_var(d->kernel, VAR_LET, type, label);
  list_push(d->arena, out, ir_let(d->arena, var, value, d->loop->range));
  return ir_ref(d->arena, var);
}

static struct ir_stmt *statement(struct divide *d, struct list *out, enum ir_stmt_kind kind) {
  struct ir_stmt *stmt = ir_stmt(d->arena, kind, d->loop->range);
  list_push(d->arena, out, stmt);
  return stmt;
}

static struct ir_var *mutable(struct divide *d, struct list *out, const char *label, double first) {
  struct ir_stmt *stmt = statement(d, out, IR_VAR);
  stmt->var = ir_new_var(d->kernel, VAR_MUTABLE, TYPE_F32, label);
  stmt->value = number(d, first);
  return stmt->var;
}

static struct list place(struct divide *d, struct ir_expr *step) {
  struct list indices = {0};
  list_push(d->arena, &indices, step);
  return indices;
}

static void prepare(struct divide *d, struct quotient *q) {
  struct ir_mem *mem = q->mem = arena_new(d->arena, struct ir_mem);
  mem->label = "dividends";
  mem->name = ir_fresh_name(d->kernel, mem->label);
  mem->space = SPACE_LOCAL;
  mem->type = TYPE_F32;
  mem->alignment = 4;
  mem->range = d->loop->range;
  list_push(d->arena, &mem->dims, ir_int(d->arena, TYPE_I64, d->group));
  list_push(d->arena, &mem->strides, ir_int(d->arena, TYPE_I64, 1));
  list_push(d->arena, &d->entry->memory, mem);
  for (const struct quotient *other = d->quotients; other < q; other++)
    if (ir_equal(other->divisor, q->divisor)) {
      q->value = other->value;
      q->inverse = other->inverse;
      q->is_plain = other->is_plain;
      return;
    }
  q->value = define(d, &d->out, TYPE_F32, "divisor", q->divisor);
  q->inverse = define(d, &d->out, TYPE_F32, "inverse", ir_binary(d->arena, OP_DIV, number(d, 1), q->value));
  struct ir_expr *size = ir_unary(d->arena, OP_ABS, q->value);
  q->is_plain = define(d, &d->out, TYPE_BOOL, "is_plain", ir_binary(d->arena, OP_AND, ir_binary(d->arena, OP_GE, size, number(d, 0x1p-40)), ir_binary(d->arena, OP_LE, size, number(d, 0x1p40))));
}

static bool mentions_any(const struct ir_expr *e, const struct list *vars) {
  for (uint32_t i = 0; i < vars->count; i++)
    if (ir_mentions(e, vars->at[i])) return true;
  return false;
}

// exp(-|x|), or a NaN.
static bool is_at_most_1(const struct ir_expr *e) { return (e->op == OP_EXP || e->op == OP_EXP2) && e->args[0]->op == OP_NEG && e->args[0]->args[0]->op == OP_ABS; }

enum part { DIVIDENDS, QUICK, SLOW };

// A loop over a group, which begins at iteration `first`: the dividends, or the rest of what the loop does.
static void write_part(struct divide *d, struct list *out, struct ir_expr *first, enum part part, struct ir_var *least, struct ir_var *most) {
  struct ir_stmt *loop = statement(d, out, IR_FOR);
  struct list body = {0}, gone = {0};
  loop->var = ir_new_var(d->kernel, VAR_AXIS, TYPE_INDEX, d->loop->var->label);
  loop->lo = ir_int(d->arena, TYPE_INDEX, 0);
  loop->hi = ir_int(d->arena, TYPE_INDEX, d->group);
  loop->unroll = UINT32_MAX;
  struct ir_expr *step = ir_ref(d->arena, loop->var);
  struct list indices = place(d, step);
  uint32_t n = 0;
  for (uint32_t i = 0; i < d->loop->body.count; i++) {
    struct ir_stmt *stmt = d->loop->body.at[i];
    if (!is_quotient(d->loop, stmt)) {
      bool is_left = part == DIVIDENDS && (stmt->kind != IR_LET || mentions_any(stmt->value, &gone));
      if (!is_left) list_push(d->arena, &body, stmt);
      else if (stmt->kind == IR_LET) list_push(d->arena, &gone, stmt->var);
      continue;
    }
    struct quotient *q = &d->quotients[n++];
    if (part == DIVIDENDS) {
      struct ir_stmt *store = statement(d, &body, IR_STORE);
      if (stmt->kind == IR_LET) list_push(d->arena, &gone, stmt->var);
      store->mem = q->mem;
      store->indices = indices;
      store->value = q->dividend;
      struct ir_expr *size = ir_unary(d->arena, OP_ABS, ir_load(d->arena, q->mem, &indices));
      struct ir_stmt *set = statement(d, &body, IR_SET);
      set->var = least;
      set->value = ir_binary(d->arena, OP_MIN, ir_ref(d->arena, least), size);
      if (is_at_most_1(q->dividend)) continue;
      set = statement(d, &body, IR_SET);
      set->var = most;
      set->value = ir_binary(d->arena, OP_MAX, ir_ref(d->arena, most), size);
      continue;
    }
    struct ir_expr *x = ir_load(d->arena, q->mem, &indices), *value = ir_binary(d->arena, OP_DIV, x, q->value);
    if (part == QUICK) {
      struct ir_expr *quotient = define(d, &body, TYPE_F32, "quotient", ir_binary(d->arena, OP_MUL, x, q->inverse));
      struct ir_expr *left[] = {ir_unary(d->arena, OP_NEG, quotient), q->value, x};
      struct ir_expr *better[] = {ir_make(d->arena, OP_FMA, TYPE_F32, left, 3), q->inverse, quotient};
      value = ir_make(d->arena, OP_FMA, TYPE_F32, better, 3);
    }
    struct ir_stmt *twin = arena_new(d->arena, struct ir_stmt);
    *twin = *stmt;
    twin->value = value;
    list_push(d->arena, &body, twin);
  }
  d->loop->var->subst = ir_binary(d->arena, OP_ADD, first, step);
  loop->body = ir_clone_block(d->kernel, &body);
  d->loop->var->subst = NULL;
}

static void write_group(struct divide *d, struct list *out, struct ir_expr *first) {
  struct ir_var *least = mutable(d, out, "least", INFINITY), *most = mutable(d, out, "most", 0);
  write_part(d, out, first, DIVIDENDS, least, most);
  struct ir_expr *is_plain = ir_binary(d->arena, OP_AND, ir_binary(d->arena, OP_GE, ir_ref(d->arena, least), number(d, 0x1p-60)), ir_binary(d->arena, OP_LE, ir_ref(d->arena, most), number(d, 0x1p60)));
  for (uint32_t i = 0; i < d->count; i++) is_plain = ir_binary(d->arena, OP_AND, is_plain, d->quotients[i].is_plain);
  struct ir_stmt *test = statement(d, out, IR_IF);
  test->value = is_plain;
  write_part(d, &test->body, first, QUICK, NULL, NULL);
  write_part(d, &test->otherwise, first, SLOW, NULL, NULL);
}

static struct list divide_loop(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry, struct ir_stmt *loop) {
  int64_t first = loop->lo->integer, steps = loop->hi->integer - first;
  struct divide d = {.arena = arena, .kernel = kernel, .entry = entry, .loop = loop, .group = steps < GROUP ? steps : GROUP};
  int64_t groups = steps / d.group;
  for (uint32_t i = 0; i < loop->body.count; i++) {
    const struct ir_stmt *stmt = loop->body.at[i];
    if (!is_quotient(loop, stmt)) continue;
    struct quotient *q = &d.quotients[d.count++];
    q->dividend = stmt->value->args[0];
    q->divisor = stmt->value->args[1];
    prepare(&d, q);
  }
  for (int64_t g = 0; g < groups; g++) write_group(&d, &d.out, ir_int(arena, TYPE_INDEX, first + g * d.group));
  if (groups * d.group < steps) {
    loop->lo = ir_int(arena, TYPE_INDEX, first + groups * d.group);
    list_push(arena, &d.out, loop);
  }
  return d.out;
}

static void visit_block(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry, struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (is_taken(stmt)) {
      struct list out = divide_loop(arena, kernel, entry, stmt);
      list_remove(block, i);
      for (uint32_t k = 0; k < out.count; k++) list_insert(arena, block, i + k, out.at[k]);
      i += out.count - 1;
      continue;
    }
    visit_block(arena, kernel, entry, &stmt->body);
    visit_block(arena, kernel, entry, &stmt->otherwise);
  }
}

void edge_divide(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  if (!entry->is_general) visit_block(context->arena, kernel, entry, &entry->body);
}
