#include "compiler/poly_model.h"

#include <string.h>

// Steps that the search for one proof takes at most: where conditions are many and none helps, it would go through all their sums. One that has taken FEW_STEPS
// looks for counterexamples, of what it is to prove and of what it comes upon.
enum { MAX_DEPTH = 24, MAX_STEPS = 1 << 12, FEW_STEPS = 48, MANY_CONDITIONS = 8 };

void facts_init(struct facts *facts, struct arena *arena) {
  memset(facts, 0, sizeof *facts);
  facts->arena = arena;
}

static struct atom *atom_at(struct facts *facts, uint32_t index) { return facts->atoms.at[index]; }

static uint32_t atom_of_var(struct facts *facts, struct ir_var *var) {
  for (uint32_t i = 0; i < facts->atoms.count; i++)
    if (atom_at(facts, i)->var == var) return i;
  struct atom *atom = arena_new(facts->arena, struct atom);
  atom->var = var;
  list_push(facts->arena, &facts->atoms, atom);
  return facts->atoms.count - 1;
}

static bool is_wide(enum type type) { return type_is_integer(type) && type_is_signed(type) && type_bits(type) == 64; }

// Whether two expressions have one value; an index and an i64 of the same arithmetic have.
static bool is_same(const struct ir_expr *a, const struct ir_expr *b) {
  while (a->op == OP_CAST && is_wide(a->type) && is_wide(a->args[0]->type)) a = a->args[0];
  while (b->op == OP_CAST && is_wide(b->type) && is_wide(b->args[0]->type)) b = b->args[0];
  if (a == b) return true;
  if (a->op != b->op || a->count != b->count) return false;
  if (!is_wide(a->type) || !is_wide(b->type)) return ir_equal(a, b);
  switch ((int)a->op) {
  case OP_CONST: return a->integer == b->integer;
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_NEG: case OP_MIN: case OP_MAX:
  case OP_DIV: case OP_MOD: case OP_QUO: case OP_REM: case OP_SELECT:
    for (uint32_t i = 0; i < a->count; i++)
      if (!is_same(a->args[i], b->args[i])) return false;
    return true;
  default: return ir_equal(a, b);
  }
}

static uint32_t atom_of_expr(struct facts *facts, const struct ir_expr *e) {
  for (uint32_t i = 0; i < facts->atoms.count; i++) {
    struct atom *atom = atom_at(facts, i);
    if (!atom->var && is_same(atom->expr, e)) return i;
  }
  struct atom *atom = arena_new(facts->arena, struct atom);
  atom->expr = e;
  list_push(facts->arena, &facts->atoms, atom);
  return facts->atoms.count - 1;
}

// --- Arithmetic -----------------------------------------------------------------------------------------------------

static const struct poly invalid = {0};

struct poly poly_constant(struct facts *facts, int64_t value) {
  struct poly p = {.is_valid = true};
  if (value) {
    p.terms = arena_new(facts->arena, struct poly_term);
    p.terms[0].coefficient = value;
    p.count = 1;
  }
  return p;
}

static struct poly poly_atom(struct facts *facts, uint32_t atom) {
  struct poly p = poly_constant(facts, 1);
  p.terms[0].degree = 1;
  p.terms[0].atoms[0] = atom;
  return p;
}

static int compare_terms(const struct poly_term *a, const struct poly_term *b) {
  if (a->degree != b->degree) return a->degree < b->degree ? -1 : 1;
  for (uint32_t i = 0; i < a->degree; i++)
    if (a->atoms[i] != b->atoms[i]) return a->atoms[i] < b->atoms[i] ? -1 : 1;
  return 0;
}

// a + factor * b
static struct poly combine(struct facts *facts, struct poly a, struct poly b, int64_t factor) {
  if (!a.is_valid || !b.is_valid) return invalid;
  struct poly sum = {.is_valid = true};
  sum.terms = arena_array(facts->arena, struct poly_term, a.count + b.count + 1);
  uint32_t i = 0, k = 0;
  while (i < a.count || k < b.count) {
    int order = i == a.count ? 1 : k == b.count ? -1 : compare_terms(&a.terms[i], &b.terms[k]);
    struct poly_term term = order <= 0 ? a.terms[i] : b.terms[k];
    int64_t scaled = 0;
    if (order >= 0 && __builtin_mul_overflow(b.terms[k].coefficient, factor, &scaled)) return invalid;
    if (order == 0 && __builtin_add_overflow(a.terms[i].coefficient, scaled, &term.coefficient)) return invalid;
    if (order > 0) term.coefficient = scaled;
    if (order <= 0) i++;
    if (order >= 0) k++;
    if (term.coefficient) sum.terms[sum.count++] = term;
  }
  return sum;
}

struct poly poly_add(struct facts *facts, struct poly a, struct poly b) { return combine(facts, a, b, 1); }
struct poly poly_sub(struct facts *facts, struct poly a, struct poly b) { return combine(facts, a, b, -1); }

struct poly poly_mul(struct facts *facts, struct poly a, struct poly b) {
  if (!a.is_valid || !b.is_valid) return invalid;
  if ((uint64_t)a.count * b.count > 256) return invalid;
  struct poly product = {.is_valid = true};
  for (uint32_t i = 0; i < a.count; i++)
    for (uint32_t k = 0; k < b.count; k++) {
      struct poly one = poly_constant(facts, 1);
      struct poly_term *term = one.terms;
      const struct poly_term *x = &a.terms[i], *y = &b.terms[k];
      if (x->degree + y->degree > POLY_MAX_DEGREE) return invalid;
      if (__builtin_mul_overflow(x->coefficient, y->coefficient, &term->coefficient)) return invalid;
      uint32_t p = 0, q = 0;
      while (p < x->degree || q < y->degree)
        term->atoms[term->degree++] =
            q == y->degree || (p < x->degree && x->atoms[p] <= y->atoms[q]) ? x->atoms[p++] : y->atoms[q++];
      product = poly_add(facts, product, one);
      if (!product.is_valid) return invalid;
    }
  return product;
}

bool poly_is_zero(struct poly p) { return p.is_valid && p.count == 0; }

bool poly_is_constant(struct poly p, int64_t *value) {
  if (!p.is_valid || p.count > 1 || (p.count == 1 && p.terms[0].degree)) return false;
  *value = p.count ? p.terms[0].coefficient : 0;
  return true;
}

bool poly_equal(struct facts *facts, struct poly a, struct poly b) { return poly_is_zero(poly_sub(facts, a, b)); }

// Whether e stays so far from the ends of 64 bits that sums and products of such expressions are exact: sizes and axes, which
// count elements, and values of at most 32 bits. A value of 64 bits that is read or given at launch is not; clamping makes it so.
static bool is_bounded(struct facts *facts, const struct ir_expr *e, bool below, bool above) {
  if (!type_is_integer(e->type)) return false;
  if (type_bits(e->type) < 64) return true;
  const struct ir_expr *x = e->count > 0 ? e->args[0] : NULL, *y = e->count > 1 ? e->args[1] : NULL;
  switch ((int)e->op) {
  case OP_CONST: case OP_THREAD: case OP_BLOCK: case OP_DIM: case OP_STRIDE: return true;
  case OP_VAR: {
    if (e->var->kind == VAR_SIZE || e->var->kind == VAR_AXIS) return true;
    struct atom *atom = atom_at(facts, atom_of_var(facts, e->var));
    return atom->is_axis || (atom->is_defined && atom->is_bounded);
  }
  case OP_CAST: return is_wide(e->type) && is_bounded(facts, x, below, above);
  case OP_MIN:
    return (!above || is_bounded(facts, x, false, true) || is_bounded(facts, y, false, true)) &&
           (!below || (is_bounded(facts, x, true, false) && is_bounded(facts, y, true, false)));
  case OP_MAX:
    return (!below || is_bounded(facts, x, true, false) || is_bounded(facts, y, true, false)) &&
           (!above || (is_bounded(facts, x, false, true) && is_bounded(facts, y, false, true)));
  case OP_SELECT: return is_bounded(facts, y, below, above) && is_bounded(facts, e->args[2], below, above);
  case OP_AND: return y->op == OP_CONST && y->integer >= 0;
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_NEG: case OP_DIV: case OP_MOD: case OP_QUO: case OP_REM:
    return is_wide(e->type) && is_bounded(facts, x, true, true) && (!y || is_bounded(facts, y, true, true));
  default: return false;
  }
}

// Whether the operation, whose result the machine takes modulo its width, gives what the mathematical one gives.
static bool is_exact(struct facts *facts, const struct ir_expr *e) {
  if (!is_wide(e->type)) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!is_bounded(facts, e->args[i], true, true)) return false;
  return true;
}

static bool prove(struct facts *facts, struct poly p, int depth);
static bool prove_from(struct facts *facts, struct poly p, int depth); // within MAX_STEPS

// (c * q + r) / c and (c * q + r) % c for a constant c, where 0 <= r < c and, since division truncates, c * q + r >= 0 or r is 0.
static struct poly divide(struct facts *facts, const struct ir_expr *e, bool wants_rest) {
  enum { SHALLOW = 11 }; // of the search for a proof: no conditions
  struct poly x = poly_of(facts, e->args[0]), quotient = {.is_valid = true}, rest = {.is_valid = true};
  int64_t divisor;
  if (!x.is_valid || x.count == 0 || !poly_is_constant(poly_of(facts, e->args[1]), &divisor) || divisor < 1) return invalid;
  quotient.terms = arena_array(facts->arena, struct poly_term, x.count);
  rest.terms = arena_array(facts->arena, struct poly_term, x.count);
  for (uint32_t i = 0; i < x.count; i++) {
    struct poly_term term = x.terms[i];
    if (term.degree == 0) { // part of a constant may be divided
      int64_t whole = term.coefficient / divisor - (term.coefficient % divisor < 0);
      struct poly_term left = term;
      left.coefficient -= whole * divisor;
      term.coefficient = whole;
      if (left.coefficient) rest.terms[rest.count++] = left;
      if (whole) quotient.terms[quotient.count++] = term;
    } else if (term.coefficient % divisor == 0) {
      term.coefficient /= divisor;
      quotient.terms[quotient.count++] = term;
    } else {
      rest.terms[rest.count++] = term;
    }
  }
  if (quotient.count == 0) return invalid;
  if (rest.count) {
    struct poly room = poly_sub(facts, poly_constant(facts, divisor - 1), rest);
    if (!prove_from(facts, rest, SHALLOW) || !prove_from(facts, room, SHALLOW) || !prove_from(facts, x, SHALLOW)) return invalid;
  }
  return wants_rest ? rest : quotient;
}

struct poly poly_of(struct facts *facts, const struct ir_expr *e) {
  struct poly result = invalid;
  switch ((int)e->op) {
  case OP_CONST:
    if (!ir_is_const(e) || (!type_is_signed(e->type) && e->integer < 0)) return invalid; // u64 beyond 2^63
    return poly_constant(facts, e->integer);
  case OP_VAR: {
    if (!type_is_integer(e->type)) return invalid;
    if (e->var->constant) return poly_of(facts, e->var->constant);
    uint32_t atom = atom_of_var(facts, e->var);
    return atom_at(facts, atom)->is_defined ? atom_at(facts, atom)->value : poly_atom(facts, atom);
  }
  case OP_ADD:
    if (is_exact(facts, e)) result = poly_add(facts, poly_of(facts, e->args[0]), poly_of(facts, e->args[1]));
    break;
  case OP_SUB:
    if (is_exact(facts, e)) result = poly_sub(facts, poly_of(facts, e->args[0]), poly_of(facts, e->args[1]));
    break;
  case OP_MUL:
    if (is_exact(facts, e)) result = poly_mul(facts, poly_of(facts, e->args[0]), poly_of(facts, e->args[1]));
    break;
  case OP_DIV: case OP_QUO: case OP_MOD: case OP_REM:
    if (is_exact(facts, e)) result = divide(facts, e, e->op == OP_MOD || e->op == OP_REM);
    break;
  case OP_NEG:
    if (is_exact(facts, e)) result = poly_sub(facts, poly_constant(facts, 0), poly_of(facts, e->args[0]));
    break;
  case OP_CAST: // exact where the wider type holds all values
    if (is_wide(e->type) && type_is_integer(e->args[0]->type) &&
        (type_is_signed(e->args[0]->type) || type_bits(e->args[0]->type) < 64))
      result = poly_of(facts, e->args[0]);
    break;
  default: break;
  }
  if (result.is_valid) return result;
  return type_is_integer(e->type) ? poly_atom(facts, atom_of_expr(facts, e)) : invalid;
}

// --- Facts ----------------------------------------------------------------------------------------------------------

void facts_add_axis(struct facts *facts, struct ir_var *var, struct ir_expr *lo, struct ir_expr *hi) {
  struct poly one = poly_constant(facts, 1);
  struct poly low = poly_of(facts, lo), high = poly_of(facts, hi);
  struct atom *atom = atom_at(facts, atom_of_var(facts, var));
  facts->known++;
  atom->is_axis = true;
  atom->lo = low;
  atom->hi = poly_sub(facts, high, one);
  struct poly last = poly_sub(facts, atom->hi, low); // extent - 1 >= 0
  if (last.is_valid && last.count <= 2 && last.count && last.terms[last.count - 1].degree == 1 &&
      last.terms[last.count - 1].coefficient == 1 && (last.count == 1 || last.terms[0].coefficient == -1) &&
      last.terms[0].degree == (last.count == 1)) {
    struct atom *size = atom_at(facts, last.terms[last.count - 1].atoms[0]);
    if (!size->is_axis && last.count == 2) {
      size->is_positive = true;
      return;
    }
  }
  int64_t constant;
  if (last.is_valid && !poly_is_constant(last, &constant)) {
    struct poly *kept = arena_new(facts->arena, struct poly);
    *kept = last;
    list_push(facts->arena, &facts->conditions, kept);
  }
}

void facts_add_definition(struct facts *facts, struct ir_var *var, struct ir_expr *value) {
  struct poly p = poly_of(facts, value);
  if (!p.is_valid) return;
  struct atom *atom = atom_at(facts, atom_of_var(facts, var));
  facts->known++;
  atom->is_defined = true;
  atom->is_bounded = is_bounded(facts, value, true, true);
  atom->value = p;
}

void facts_add_positive(struct facts *facts, struct ir_var *size) {
  atom_at(facts, atom_of_var(facts, size))->is_positive = true;
}

static void add_fact(struct facts *facts, struct poly p) {
  if (!p.is_valid) return;
  struct poly *kept = arena_new(facts->arena, struct poly);
  *kept = p;
  list_push(facts->arena, &facts->conditions, kept);
}

// A size that is a constant is that constant from here on.
static void define_size(struct facts *facts, struct ir_expr *size, struct ir_expr *value) {
  if (size->op != OP_VAR || size->var->kind != VAR_SIZE || !ir_is_const(value)) return;
  if (!atom_at(facts, atom_of_var(facts, size->var))->is_defined) facts_add_definition(facts, size->var, value);
}

// c holds, or where `is_negated` does not hold.
static void add_condition(struct facts *facts, const struct ir_expr *c, bool is_negated) {
  while (c->op == OP_NOT && c->type == TYPE_BOOL) {
    c = c->args[0];
    is_negated = !is_negated;
  }
  if (c->type == TYPE_BOOL && c->op == (is_negated ? OP_OR : OP_AND)) {
    add_condition(facts, c->args[0], is_negated);
    add_condition(facts, c->args[1], is_negated);
    return;
  }
  if (c->count != 2 || !type_is_integer(c->args[0]->type)) return;
  struct poly a = poly_of(facts, c->args[0]), b = poly_of(facts, c->args[1]), one = poly_constant(facts, 1);
  struct poly a_less = poly_sub(facts, poly_sub(facts, b, a), one), b_less = poly_sub(facts, poly_sub(facts, a, b), one);
  struct poly a_most = poly_sub(facts, b, a), b_most = poly_sub(facts, a, b);
  int depth = facts->conditions.count > MANY_CONDITIONS ? MAX_DEPTH / 2 - 1 : MAX_DEPTH; // among many, others than this one are not asked
  switch ((int)c->op) {
  case OP_LT: add_fact(facts, is_negated ? b_most : a_less); break;
  case OP_LE: add_fact(facts, is_negated ? b_less : a_most); break;
  case OP_GT: add_fact(facts, is_negated ? a_most : b_less); break;
  case OP_GE: add_fact(facts, is_negated ? a_less : b_most); break;
  case OP_EQ: case OP_NE:
    if ((c->op == OP_EQ) != is_negated) {
      add_fact(facts, a_most);
      add_fact(facts, b_most);
      define_size(facts, c->args[0], c->args[1]);
      define_size(facts, c->args[1], c->args[0]);
    } else if (prove_from(facts, b_most, depth)) { // different, and not less
      add_fact(facts, b_less);
    } else if (prove_from(facts, a_most, depth)) {
      add_fact(facts, a_less);
    }
    break;
  default: break;
  }
}

void facts_add_condition(struct facts *facts, const struct ir_expr *c) { add_condition(facts, c, false); }

// --- Proofs ---------------------------------------------------------------------------------------------------------

// p with every occurrence of `atom` (of degree one) replaced; false when it occurs in a higher power.
static bool split_linear(struct facts *facts, struct poly p, uint32_t atom, struct poly *coefficient, struct poly *rest) {
  *coefficient = *rest = (struct poly){.is_valid = true};
  coefficient->terms = arena_array(facts->arena, struct poly_term, p.count + 1);
  rest->terms = arena_array(facts->arena, struct poly_term, p.count + 1);
  for (uint32_t i = 0; i < p.count; i++) {
    struct poly_term term = p.terms[i];
    uint32_t place = 0, hits = 0;
    for (uint32_t k = 0; k < term.degree; k++)
      if (term.atoms[k] == atom) hits++, place = k;
    if (hits > 1) return false;
    if (!hits) {
      rest->terms[rest->count++] = term;
    } else {
      memmove(term.atoms + place, term.atoms + place + 1, sizeof *term.atoms * (term.degree - place - 1));
      term.degree--;
      uint32_t at = coefficient->count++; // dropping one atom keeps terms distinct, but not their order
      for (; at && compare_terms(&term, &coefficient->terms[at - 1]) < 0; at--) coefficient->terms[at] = coefficient->terms[at - 1];
      coefficient->terms[at] = term;
    }
  }
  return true;
}

bool poly_split(struct facts *facts, struct poly p, struct ir_var *var, struct poly *coefficient, struct poly *rest) {
  return p.is_valid && split_linear(facts, p, atom_of_var(facts, var), coefficient, rest);
}

// Whether var stands inside something that p takes for one value: a remainder, or a name that is defined.
static bool hides(struct facts *facts, struct poly p, const struct ir_var *var) {
  for (uint32_t i = 0; i < p.count; i++)
    for (uint32_t k = 0; k < p.terms[i].degree; k++) {
      const struct atom *atom = atom_at(facts, p.terms[i].atoms[k]);
      if (atom->var == var || (!atom->var && ir_mentions(atom->expr, var)) || (atom->is_defined && hides(facts, atom->value, var))) return true;
    }
  return false;
}

bool poly_linear(struct facts *facts, struct poly p, struct ir_var *var, struct poly *coefficient, struct poly *rest) {
  return poly_split(facts, p, var, coefficient, rest) && !hides(facts, *coefficient, var) && !hides(facts, *rest, var);
}

static bool poly_mentions(struct poly p, uint32_t atom) {
  for (uint32_t i = 0; i < p.count; i++)
    for (uint32_t k = 0; k < p.terms[i].degree; k++)
      if (p.terms[i].atoms[k] == atom) return true;
  return false;
}

// The first atom from `from` on that p mentions; UINT32_MAX: none.
static uint32_t next_atom(struct poly p, uint32_t from) {
  uint32_t next = UINT32_MAX;
  for (uint32_t i = 0; i < p.count; i++)
    for (uint32_t k = 0; k < p.terms[i].degree; k++)
      if (p.terms[i].atoms[k] >= from && p.terms[i].atoms[k] < next) next = p.terms[i].atoms[k];
  return next;
}

// The last atom that p mentions and that is an axis or an expression; UINT32_MAX: none.
static uint32_t innermost_atom(struct facts *facts, struct poly p) {
  uint32_t last = UINT32_MAX;
  for (uint32_t i = 0; i < p.count; i++)
    for (uint32_t k = 0; k < p.terms[i].degree; k++) {
      uint32_t a = p.terms[i].atoms[k];
      if (last != UINT32_MAX && a <= last) continue;
      const struct atom *atom = atom_at(facts, a);
      if (!atom->var || atom->is_axis) last = a;
    }
  return last;
}

// The sign of a polynomial over sizes: 1 never negative, -1 never positive, 0 unknown.
static int sign_of(struct facts *facts, struct poly p) {
  bool plus = true, minus = true;
  for (uint32_t i = 0; i < p.count; i++) {
    for (uint32_t k = 0; k < p.terms[i].degree; k++) {
      struct atom *atom = atom_at(facts, p.terms[i].atoms[k]);
      if (!atom->var || (atom->var->kind != VAR_SIZE && !atom->is_axis)) return 0;
    }
    if (p.terms[i].coefficient > 0) minus = false;
    if (p.terms[i].coefficient < 0) plus = false;
  }
  return plus ? 1 : minus ? -1 : 0;
}

static struct poly replace(struct facts *facts, struct poly coefficient, struct poly value, struct poly rest) {
  return poly_add(facts, poly_mul(facts, coefficient, value), rest);
}

// 1: p over sizes is never negative; -1: shifting sizes cannot show it; 0: it may. Nothing is allocated: most of what a search comes upon ends here.
// A shift keeps the coefficients of the highest degree, and makes the constant what p is where each size is the least that it can be.
static int look_over_sizes(struct facts *facts, struct poly p) {
  int64_t least = 0;
  bool is_plus = true, is_least = true;
  for (uint32_t i = 0; i < p.count; i++) {
    const struct poly_term *term = &p.terms[i];
    bool is_one = true; // what the term's sizes at their least come to: 1, or 0
    for (uint32_t k = 0; k < term->degree; k++) {
      const struct atom *atom = atom_at(facts, term->atoms[k]);
      if (!atom->var || atom->var->kind != VAR_SIZE) return -1;
      is_one &= atom->is_positive;
    }
    if (term->coefficient < 0) is_plus = false;
    if (is_one) is_least &= !__builtin_add_overflow(least, term->coefficient, &least);
    if (term->coefficient < 0 && term->degree == p.terms[p.count - 1].degree) return -1;
  }
  return is_plus ? 1 : is_least && least < 0 ? -1 : 0;
}

// Sizes known to be positive are shifted by one; then every coefficient must be non-negative.
static bool is_nonnegative_over_sizes(struct facts *facts, struct poly p) {
  int seen = look_over_sizes(facts, p);
  if (seen) return seen > 0;
  for (uint32_t a = next_atom(p, 0); a != UINT32_MAX; a = next_atom(p, a + 1)) {
    struct atom *atom = atom_at(facts, a);
    if (!atom->var || atom->var->kind != VAR_SIZE) return false;
    if (!atom->is_positive) continue;
    struct poly shifted = {.is_valid = true};
    struct poly one_more = poly_add(facts, poly_atom(facts, a), poly_constant(facts, 1));
    for (uint32_t i = 0; i < p.count; i++) {
      struct poly_term term = p.terms[i];
      struct poly factor = poly_constant(facts, term.coefficient);
      for (uint32_t k = 0; k < term.degree; k++)
        factor = poly_mul(facts, factor, term.atoms[k] == a ? one_more : poly_atom(facts, term.atoms[k]));
      shifted = poly_add(facts, shifted, factor);
    }
    if (!shifted.is_valid) return false;
    p = shifted;
  }
  for (uint32_t i = 0; i < p.count; i++)
    if (p.terms[i].coefficient < 0) return false;
  return true;
}

// What an operand of an atom that is an expression is. A search asks again and again.
static struct poly argument_of(struct facts *facts, uint32_t a, uint32_t place) {
  struct atom *atom = atom_at(facts, a);
  const struct ir_expr *e = atom->expr;
  if (facts->is_refuted) return invalid; // what is kept was made with proofs
  if (atom->known != facts->known + 1) {
    for (uint32_t i = 0; i < 2; i++) {
      struct poly arg = e->count > i && type_is_integer(e->args[i]->type) ? poly_of(facts, e->args[i]) : invalid;
      atom->args[i] = arg;
    }
    atom->known = facts->known + 1;
    facts->keeps = true;
  }
  return atom->args[place];
}

// An atom that is an expression: bound it by what it is.
static bool prove_opaque(struct facts *facts, uint32_t a, struct poly coefficient, struct poly rest, int depth) {
  const struct ir_expr *e = atom_at(facts, a)->expr;
  int sign = sign_of(facts, coefficient);
  if (!sign) return false;
  struct poly x = argument_of(facts, a, 0), y = argument_of(facts, a, 1);
  struct poly zero = poly_constant(facts, 0);
#define TRY(value) prove(facts, replace(facts, coefficient, (value), rest), depth)
  switch ((int)e->op) {
  case OP_MIN: return sign < 0 ? TRY(x) || TRY(y) : TRY(x) && TRY(y);
  case OP_MAX: return sign > 0 ? TRY(x) || TRY(y) : TRY(x) && TRY(y);
  case OP_SELECT: {
    struct poly z = poly_of(facts, e->args[2]);
    return TRY(y) && TRY(z);
  }
  case OP_MOD: case OP_REM:
    if (!prove(facts, x, depth) || !prove(facts, poly_sub(facts, y, poly_constant(facts, 1)), depth)) return false;
    return sign > 0 ? TRY(zero) : TRY(poly_sub(facts, y, poly_constant(facts, 1))) || TRY(x);
  case OP_DIV: case OP_QUO: {
    int64_t divisor;
    if (!prove(facts, x, depth) || !prove(facts, poly_sub(facts, y, poly_constant(facts, 1)), depth)) return false;
    if (sign < 0 && poly_is_constant(y, &divisor)) { // divisor * (rest + c * q) >= 0 with divisor * q <= x
      struct poly scaled = poly_add(facts, poly_mul(facts, rest, poly_constant(facts, divisor)), poly_mul(facts, coefficient, x));
      int64_t times;
      if (poly_is_constant(coefficient, &times) && times == -1) // q <= rest exactly when x < divisor * (rest + 1)
        scaled = poly_add(facts, scaled, poly_constant(facts, divisor - 1));
      if (prove(facts, scaled, depth)) return true;
    }
    if (sign > 0 && poly_is_constant(y, &divisor)) { // divisor * q >= x - (divisor - 1)
      struct poly least = poly_sub(facts, x, poly_constant(facts, divisor - 1));
      struct poly scaled = poly_add(facts, poly_mul(facts, rest, poly_constant(facts, divisor)), poly_mul(facts, coefficient, least));
      if (prove(facts, scaled, depth)) return true;
    }
    return sign > 0 ? TRY(zero) : TRY(x);
  }
  case OP_THREAD: case OP_BLOCK: return sign > 0 && TRY(zero);
  case OP_CAST: case OP_LOAD: case OP_LOAD_FLAT: case OP_ABS:
  default:
    if (type_class_of(e->type) == CLASS_UNSIGNED && sign > 0) return TRY(zero);
    if (e->op == OP_CAST && type_class_of(e->args[0]->type) == CLASS_UNSIGNED && sign > 0) return TRY(zero);
    return false;
  }
#undef TRY
}

// Of a polynomial; never 0.
static uint64_t hash_of(struct poly p) {
  uint64_t hash = p.count;
  for (uint32_t i = 0; i < p.count; i++) {
    hash = (hash ^ (uint64_t)p.terms[i].coefficient) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t k = 0; k < p.terms[i].degree; k++) hash = (hash ^ p.terms[i].atoms[k] ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    hash ^= hash >> 32;
  }
  return hash | 1;
}

static bool search(struct facts *facts, struct poly p, int depth);

// A search comes upon the same polynomial again and again. One that failed at this depth or a greater one is not tried anew; two with one hash are taken for the same,
// which loses a proof and never makes one.
static bool prove(struct facts *facts, struct poly p, int depth) {
  if (!p.is_valid || depth <= 0 || facts->is_refuted || ++facts->steps > MAX_STEPS) return false;
  if (facts->steps == FEW_STEPS) facts->is_refuted = poly_refute(facts, facts->goal);
  if (facts->is_refuted || poly_is_refuted(facts, p)) return false;
  uint64_t hash = hash_of(p);
  struct failed_proof *failed = &facts->failed[hash >> 32 & (FAILED_PROOFS - 1)];
  if (failed->hash == hash && failed->depth >= depth) return false;
  if (search(facts, p, depth)) return true;
  *failed = (struct failed_proof){hash, depth};
  return false;
}

static bool search(struct facts *facts, struct poly p, int depth) {
  if (is_nonnegative_over_sizes(facts, p)) return true;
  uint32_t a = innermost_atom(facts, p); // axes and expressions were registered in the order of the scope
  struct poly coefficient, rest;
  if (a != UINT32_MAX && split_linear(facts, p, a, &coefficient, &rest)) {
    const struct atom *atom = atom_at(facts, a);
    int sign = atom->var ? sign_of(facts, coefficient) : 0;
    if (!atom->var && prove_opaque(facts, a, coefficient, rest, depth - 1)) return true;
    if (sign && prove(facts, replace(facts, coefficient, sign > 0 ? atom->lo : atom->hi, rest), depth - 1)) return true;
  }
  if (depth < MAX_DEPTH - 12) return false; // conditions help at the top levels only, so that the search stays small
  for (uint32_t i = 0; i < facts->conditions.count; i++) {
    struct poly *fact = facts->conditions.at[i];
    if (prove(facts, poly_sub(facts, p, *fact), depth - 6)) return true;
  }
  return false;
}

static bool prove_from(struct facts *facts, struct poly p, int depth) {
  if (facts->is_proving) return prove(facts, p, depth);
  uint32_t before = facts->steps, atoms = facts->atoms.count;
  struct arena_mark mark = arena_place(facts->arena);
  facts->steps = 0;
  memset(facts->failed, 0, sizeof facts->failed);
  facts->is_proving = true;
  facts->goal = p;
  bool proved = prove(facts, p, depth);
  facts->is_proving = facts->is_refuted = false;
  facts->steps = before;
  if (facts->atoms.count == atoms && !facts->keeps) arena_release(facts->arena, mark); // of what a search makes, atoms and their operands alone are kept
  facts->keeps = false;
  return proved;
}

bool prove_nonnegative(struct facts *facts, struct poly p) { return prove_from(facts, p, MAX_DEPTH); }

bool prove_less(struct facts *facts, const struct ir_expr *a, const struct ir_expr *b) {
  struct poly gap = poly_sub(facts, poly_of(facts, b), poly_of(facts, a));
  return prove_nonnegative(facts, poly_sub(facts, gap, poly_constant(facts, 1)));
}

bool prove_at_most(struct facts *facts, const struct ir_expr *a, const struct ir_expr *b) {
  return prove_nonnegative(facts, poly_sub(facts, poly_of(facts, b), poly_of(facts, a)));
}

bool prove_equal(struct facts *facts, const struct ir_expr *a, const struct ir_expr *b) {
  struct poly gap = poly_sub(facts, poly_of(facts, b), poly_of(facts, a));
  if (poly_is_zero(gap)) return true;
  return prove_nonnegative(facts, gap) && prove_nonnegative(facts, poly_sub(facts, poly_constant(facts, 0), gap));
}

// x % m, also as x & (m - 1), is x modulo every divisor of m: one such remainder, as a term alone, becomes what it is of, and terms that the divisor divides go.
enum { MOST_REMAINDERS = 8 };
static bool open_remainder(struct facts *facts, struct poly *p, int64_t divisor) {
  for (uint32_t i = 0; i < p->count; i++) {
    struct atom *atom = p->terms[i].degree == 1 ? atom_at(facts, p->terms[i].atoms[0]) : NULL;
    int64_t modulus;
    if (!atom || atom->var || (atom->expr->op != OP_MOD && atom->expr->op != OP_REM && atom->expr->op != OP_AND)) continue;
    if (!poly_is_constant(poly_of(facts, atom->expr->args[1]), &modulus)) continue;
    if (atom->expr->op == OP_AND && (modulus & (modulus + 1))) continue;
    modulus += atom->expr->op == OP_AND; // x & m is x % (m + 1) for m = 1, 3, 7 ...
    if (modulus < 1 || modulus % divisor) continue;
    struct poly term = {true, 1, &p->terms[i]}, times = poly_constant(facts, p->terms[i].coefficient);
    struct poly whole = poly_add(facts, poly_sub(facts, *p, term), poly_mul(facts, times, poly_of(facts, atom->expr->args[0])));
    if (!whole.is_valid) continue;
    *p = (struct poly){.is_valid = true};
    for (uint32_t k = 0; k < whole.count; k++)
      if (whole.terms[k].coefficient % divisor) *p = poly_add(facts, *p, (struct poly){true, 1, &whole.terms[k]});
    return true;
  }
  return false;
}

bool prove_divides(struct facts *facts, const struct ir_expr *b, const struct ir_expr *a) {
  struct poly p = poly_of(facts, a), d = poly_of(facts, b);
  int64_t divisor;
  if (!p.is_valid || !d.is_valid) return false;
  if (poly_is_zero(p)) return true;
  if (poly_is_constant(d, &divisor)) {
    if (divisor == 0) return false;
    struct poly remaining = {.is_valid = true};
    for (uint32_t i = 0; i < p.count; i++)
      if (p.terms[i].coefficient % divisor) {
        struct poly one = {true, 1, &p.terms[i]};
        remaining = poly_add(facts, remaining, one);
      }
    for (int round = 0; round < MOST_REMAINDERS && open_remainder(facts, &remaining, divisor); round++) {}
    if (poly_is_zero(remaining)) return true;
    // a condition a % b == 0, known as 0 <= a % b <= 0
    for (uint32_t k = 0; k < facts->atoms.count; k++) {
      struct atom *atom = atom_at(facts, k);
      if (atom->var || (atom->expr->op != OP_MOD && atom->expr->op != OP_REM)) continue;
      int64_t modulus;
      struct poly operand = poly_of(facts, atom->expr->args[0]);
      if (!poly_is_constant(poly_of(facts, atom->expr->args[1]), &modulus) || modulus % divisor) continue;
      if (!poly_equal(facts, operand, remaining)) continue;
      for (uint32_t c = 0; c < facts->conditions.count; c++) {
        struct poly *fact = facts->conditions.at[c]; // - (a % b) >= 0
        if (poly_equal(facts, *fact, poly_sub(facts, poly_constant(facts, 0), poly_atom(facts, k)))) return true;
      }
    }
    return false;
  }
  if (d.count != 1) return false;
  for (uint32_t i = 0; i < p.count; i++) { // a product of sizes: every term holds all of them
    if (p.terms[i].coefficient % d.terms[0].coefficient) return false;
    uint32_t found = 0;
    for (uint32_t k = 0; k < p.terms[i].degree && found < d.terms[0].degree; k++)
      if (p.terms[i].atoms[k] == d.terms[0].atoms[found]) found++;
    if (found < d.terms[0].degree) return false;
  }
  return true;
}

struct ir_expr *poly_to_expr(struct facts *facts, struct poly p) {
  if (!p.is_valid) return NULL;
  struct arena *arena = facts->arena;
  struct ir_expr *sum = ir_int(arena, TYPE_I64, 0);
  for (uint32_t i = 0; i < p.count; i++) {
    struct ir_expr *term = ir_int(arena, TYPE_I64, p.terms[i].coefficient);
    for (uint32_t k = 0; k < p.terms[i].degree; k++) {
      struct atom *atom = atom_at(facts, p.terms[i].atoms[k]);
      struct ir_expr *factor = atom->var ? ir_ref(arena, atom->var) : (struct ir_expr *)atom->expr;
      term = ir_binary(arena, OP_MUL, term, ir_cast(arena, TYPE_I64, factor));
    }
    sum = ir_binary(arena, OP_ADD, sum, term);
  }
  return sum;
}

// The smaller or the larger of two expressions, where either may be missing.
static struct ir_expr *either(struct arena *arena, enum op op, struct ir_expr *a, struct ir_expr *b) {
  if (!a || !b) return op == OP_MAX ? (a ? a : b) : NULL;
  return ir_equal(a, b) ? a : ir_binary(arena, op, a, b);
}

// Whether a launch knows the value from its sizes.
static bool is_of_sizes(const struct ir_expr *e) {
  if (e->op == OP_VAR) return e->var->kind == VAR_SIZE;
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!is_of_sizes(e->args[i])) return false;
  return e->count > 0 || e->op == OP_CONST;
}

static struct ir_expr *minimum(struct facts *facts, struct poly p, int depth) {
  if (!p.is_valid || depth <= 0) return NULL;
  for (uint32_t a = facts->atoms.count; a-- > 0;) { // innermost first
    struct atom *atom = atom_at(facts, a);
    if (!poly_mentions(p, a) || (atom->var ? !atom->is_axis : is_of_sizes(atom->expr))) continue;
    struct poly coefficient, rest;
    int sign = split_linear(facts, p, a, &coefficient, &rest) ? sign_of(facts, coefficient) : 0;
    if (!sign) return NULL;
    if (atom->var) return minimum(facts, replace(facts, coefficient, sign > 0 ? atom->lo : atom->hi, rest), depth - 1);
    const struct ir_expr *e = atom->expr;
    if (e->op != OP_MIN && e->op != OP_MAX) return NULL;
    struct ir_expr *ends[2];
    for (int i = 0; i < 2; i++) ends[i] = minimum(facts, replace(facts, coefficient, poly_of(facts, e->args[i]), rest), depth - 1);
    return either(facts->arena, (e->op == OP_MIN) == (sign > 0) ? OP_MIN : OP_MAX, ends[0], ends[1]);
  }
  for (uint32_t i = 0; i < p.count; i++)
    for (uint32_t k = 0; k < p.terms[i].degree; k++) {
      struct atom *atom = atom_at(facts, p.terms[i].atoms[k]);
      if (atom->var && atom->var->kind != VAR_SIZE) return NULL;
    }
  return poly_to_expr(facts, p);
}

struct ir_expr *poly_minimum_expr(struct facts *facts, struct poly p) { return minimum(facts, p, MAX_DEPTH); }
