// Contraction: every product of floats that feeds a sum becomes an fma, so that no later compiler has one
// left to fuse, and all of them give the same bits.
//
//   add(mul(a, b), c)           fma(a, b, c)
//   add(c, mul(a, b))           fma(a, b, c)
//   add(mul(a, b), mul(c, d))   fma(a, b, mul(c, d))        the left product is not rounded
//   sub(mul(a, b), c)     ->    fma(a, b, neg(c))
//   sub(c, mul(a, b))           fma(neg(a), b, c)
//   let p = mul(a, b)           fma(a, b, c)                where nothing else reads p
//   ... add(p, c)
//
// A product that is read more than once stays: it is needed anyway.
#include "passes/math_lower.h"

// A LET of a product: how often it is read, and whether the one sum that reads it has taken its factors.
struct product {
  struct ir_stmt *let;
  uint32_t reads;
  bool is_taken;
  struct list kept; // struct ir_stmt: LETs of the factors, in the product's place
};

struct contract {
  struct arena *arena;
  struct ir_kernel *kernel;
  struct list products; // struct product, by var->mark - 1
  bool changed;
};

static bool is_product(const struct ir_expr *e) {
  return (e->op == OP_MUL && type_is_float(e->type)) || (e->op == OP_NEG && is_product(e->args[0]));
}

static void find_products(struct contract *c, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (stmt->var) stmt->var->mark = 0;
    if (stmt->kind == IR_LET && is_product(stmt->value)) {
      struct product *product = arena_new(c->arena, struct product);
      product->let = stmt;
      list_push(c->arena, &c->products, product);
      stmt->var->mark = c->products.count;
    }
    find_products(c, &stmt->body);
    find_products(c, &stmt->otherwise);
  }
}

static struct product *product_of(const struct contract *c, const struct ir_expr *e) {
  if (e->op != OP_VAR || e->var->kind != VAR_LET || !e->var->mark || e->var->mark > c->products.count)
    return NULL;
  struct product *product = list_at(&c->products, struct product, e->var->mark - 1);
  return product->let->var == e->var ? product : NULL;
}

static void count_read(struct ir_expr *e, void *state) {
  struct product *product = product_of(state, e);
  if (product) product->reads++;
}

static struct ir_expr *negate(struct arena *arena, struct ir_expr *e) {
  return e->op == OP_NEG ? e->args[0] : ir_unary(arena, OP_NEG, e);
}

// A factor as something that has its value where the product is read, too.
static struct ir_expr *keep_factor(struct contract *c, struct product *product, struct ir_expr *factor) {
  if (factor->op == OP_CONST || (factor->op == OP_VAR && factor->var->kind != VAR_MUTABLE)) return factor;
  const char *label = arena_printf(c->arena, "%s_factor", product->let->var->label);
  struct ir_var *var = ir_new_var(c->kernel, VAR_LET, factor->type, label);
  var->range = factor->range;
  list_push(c->arena, &product->kept, ir_let(c->arena, var, factor, product->let->range));
  return ir_ref(c->arena, var);
}

// The factors of a product, or of a LET that holds one for this reader alone. Returns whether there are any.
static bool take_product(struct contract *c, struct ir_expr *e, struct ir_expr *factors[2]) {
  if (!type_is_float(e->type)) return false;
  if (e->op == OP_NEG) {
    if (!take_product(c, e->args[0], factors)) return false;
    factors[0] = negate(c->arena, factors[0]);
    return true;
  }
  if (e->op == OP_MUL) {
    factors[0] = e->args[0];
    factors[1] = e->args[1];
    return true;
  }
  struct product *product = product_of(c, e);
  if (!product || product->reads != 1 || product->is_taken || !take_product(c, product->let->value, factors))
    return false;
  product->is_taken = true;
  for (int i = 0; i < 2; i++) factors[i] = keep_factor(c, product, factors[i]);
  return true;
}

static struct ir_expr *contract_node(struct arena *arena, struct ir_expr *e, void *state) {
  struct contract *c = state;
  if ((e->op != OP_ADD && e->op != OP_SUB) || !type_is_float(e->type)) return e;
  struct ir_expr *args[3], *other;
  if (take_product(c, e->args[0], args)) {
    other = e->op == OP_SUB ? negate(arena, e->args[1]) : e->args[1];
  } else if (take_product(c, e->args[1], args)) {
    other = e->args[0];
    if (e->op == OP_SUB) args[0] = negate(arena, args[0]);
  } else {
    return e;
  }
  args[2] = other;
  c->changed = true;
  struct ir_expr *fma = ir_make(arena, OP_FMA, e->type, args, 3);
  if (fma->op == OP_FMA) fma->range = e->range;
  return fma;
}

static void drop_taken(struct contract *c, struct list *block) {
  struct list out = {0};
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    drop_taken(c, &stmt->body);
    drop_taken(c, &stmt->otherwise);
    struct product *product = stmt->kind == IR_LET && stmt->var->mark
                                  ? list_at(&c->products, struct product, stmt->var->mark - 1)
                                  : NULL;
    if (product && product->is_taken)
      list_append(c->arena, &out, &product->kept);
    else
      list_push(c->arena, &out, stmt);
  }
  *block = out;
}

bool math_contract(struct arena *arena, struct ir_kernel *kernel, struct list *block, struct list *results) {
  struct contract c = {.arena = arena, .kernel = kernel};
  find_products(&c, block);
  ir_visit_block(block, count_read, &c);
  for (uint32_t i = 0; results && i < results->count; i++) ir_visit_expr(results->at[i], count_read, &c);
  ir_rewrite_block(arena, block, contract_node, &c);
  for (uint32_t i = 0; results && i < results->count; i++)
    results->at[i] = ir_rewrite_expr(arena, results->at[i], contract_node, &c);
  if (c.changed) drop_taken(&c, block);
  return c.changed;
}
