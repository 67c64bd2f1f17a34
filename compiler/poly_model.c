// Counterexamples: sizes and axes for which all facts hold and a polynomial is negative.
//
// A search for a proof that there is not goes through the sums of all conditions before it gives up; a few tries of numbers mostly tell. All sizes are one number,
// axes stand at an end; what the search takes for opaque (a load, an address) is 0, which it cannot exclude but by a condition, and all conditions are looked at.
#include "compiler/poly_model.h"

enum end { END_LAST, END_FIRST, END_WORST }; // where axes stand; END_WORST: where they make p the least, one by one
enum state { STATE_NONE, STATE_OPEN, STATE_KNOWN, STATE_FAILED };

struct model {
  struct facts *facts;
  int64_t size; // all sizes
  enum end end;
  uint32_t room;         // atoms that there is room for
  int64_t *values;       // of atoms
  unsigned char *states; // enum state
  struct poly p;         // END_WORST
  const int64_t *last;   // END_WORST: of atoms where all axes stand at their last
};

// Those in which all holds that was known when they were made.
enum { MOST_MODELS = 6 };
struct models {
  uint32_t known, conditions, count;
  struct model at[MOST_MODELS];
};

static struct atom *atom_at(const struct model *m, uint32_t i) { return m->facts->atoms.at[i]; }

static bool evaluate_atom(struct model *m, uint32_t place, int64_t *value);

static bool evaluate(struct model *m, struct poly p, int64_t *value) {
  *value = 0;
  for (uint32_t i = 0; i < p.count; i++) {
    int64_t product = p.terms[i].coefficient, one;
    for (uint32_t k = 0; k < p.terms[i].degree; k++)
      if (!evaluate_atom(m, p.terms[i].atoms[k], &one) || __builtin_mul_overflow(product, one, &product)) return false;
    if (__builtin_add_overflow(*value, product, value)) return false;
  }
  return p.is_valid;
}

// Whether the type has the number; what wraps is not looked at.
static bool fits(enum type type, int64_t x) {
  uint32_t bits = type_bits(type);
  if (type == TYPE_BOOL) return x == 0 || x == 1;
  if (bits == 64) return type_is_signed(type) || x >= 0;
  return type_is_signed(type) ? x >= -(INT64_C(1) << (bits - 1)) && x < INT64_C(1) << (bits - 1) : x >= 0 && x < INT64_C(1) << bits;
}

static bool evaluate_var(struct model *m, const struct ir_expr *e, int64_t *value);

static bool evaluate_expr(struct model *m, const struct ir_expr *e, int64_t *value) {
  int64_t x[3] = {0};
  *value = 0;
  if (e->type != TYPE_BOOL && !type_is_integer(e->type)) return false;
  if (e->op == OP_CONST) {
    *value = e->integer;
    return fits(e->type, e->integer);
  }
  if (e->op == OP_VAR) return evaluate_var(m, e, value);
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT || e->count > 3) return true;
  for (uint32_t i = 0; i < e->count; i++) {
    if (e->args[i]->type != TYPE_BOOL && !type_is_integer(e->args[i]->type)) return true;
    if (!evaluate_expr(m, e->args[i], &x[i])) return false;
  }
  bool divides = x[0] >= 0 && x[1] > 0, is_good = true;
  switch ((int)e->op) {
  case OP_ADD: is_good = !__builtin_add_overflow(x[0], x[1], value); break;
  case OP_SUB: is_good = !__builtin_sub_overflow(x[0], x[1], value); break;
  case OP_MUL: is_good = !__builtin_mul_overflow(x[0], x[1], value); break;
  case OP_NEG: is_good = !__builtin_sub_overflow(INT64_C(0), x[0], value); break;
  case OP_DIV: case OP_QUO:
    if (!divides) return false;
    *value = x[0] / x[1];
    break;
  case OP_MOD: case OP_REM:
    if (!divides) return false;
    *value = x[0] % x[1];
    break;
  case OP_MIN: *value = x[0] < x[1] ? x[0] : x[1]; break;
  case OP_MAX: *value = x[0] > x[1] ? x[0] : x[1]; break;
  case OP_SELECT: *value = x[0] ? x[1] : x[2]; break;
  case OP_CAST: *value = x[0]; break;
  case OP_AND:
    if (x[0] < 0 || x[1] < 0) return false;
    *value = x[0] & x[1];
    break;
  case OP_OR: case OP_XOR:
    if (x[0] < 0 || x[1] < 0) return false;
    *value = e->op == OP_OR ? x[0] | x[1] : x[0] ^ x[1];
    break;
  case OP_NOT:
    if (e->type != TYPE_BOOL) return false;
    *value = !x[0];
    break;
  case OP_SHR:
    if (x[0] < 0 || x[1] < 0 || x[1] >= type_bits(e->type)) return false;
    *value = x[0] >> x[1];
    break;
  case OP_SHL:
    if (x[0] < 0 || x[1] < 0 || x[1] > 62) return false;
    is_good = !__builtin_mul_overflow(x[0], INT64_C(1) << x[1], value);
    break;
  case OP_EQ: *value = x[0] == x[1]; break;
  case OP_NE: *value = x[0] != x[1]; break;
  case OP_LT: *value = x[0] < x[1]; break;
  case OP_LE: *value = x[0] <= x[1]; break;
  case OP_GT: *value = x[0] > x[1]; break;
  case OP_GE: *value = x[0] >= x[1]; break;
  default: break;
  }
  return is_good && fits(e->type, *value);
}

static bool evaluate_var(struct model *m, const struct ir_expr *e, int64_t *value) {
  if (e->var->constant) return evaluate_expr(m, e->var->constant, value);
  for (uint32_t i = 0; i < m->facts->atoms.count; i++)
    if (atom_at(m, i)->var == e->var) return evaluate_atom(m, i, value);
  if (e->var->kind == VAR_SIZE) *value = m->size;
  return fits(e->type, *value);
}

// Which way p grows with an atom, others where all axes stand at their last.
static bool grows(const struct model *m, uint32_t place) {
  double slope = 0;
  for (uint32_t i = 0; i < m->p.count; i++) {
    const struct poly_term *term = &m->p.terms[i];
    double product = (double)term->coefficient;
    uint32_t power = 0;
    for (uint32_t k = 0; k < term->degree; k++)
      if (term->atoms[k] != place || power++) product *= term->atoms[k] < m->room ? (double)m->last[term->atoms[k]] : 0;
    if (power) slope += product;
  }
  return slope > 0;
}

static bool find_value(struct model *m, uint32_t place, int64_t *value) {
  const struct atom *atom = atom_at(m, place);
  int64_t lo, hi;
  if (!atom->var) return evaluate_expr(m, atom->expr, value);
  if (atom->is_defined) return evaluate(m, atom->value, value);
  *value = atom->var->kind == VAR_SIZE ? m->size : 0;
  if (!atom->is_axis) return fits(atom->var->type, *value);
  if (!evaluate(m, atom->lo, &lo) || !evaluate(m, atom->hi, &hi) || lo > hi) return false;
  bool is_first = m->end == END_FIRST || (m->end == END_WORST && grows(m, place));
  *value = is_first ? lo : hi;
  return fits(atom->var->type, *value);
}

static bool evaluate_atom(struct model *m, uint32_t place, int64_t *value) {
  *value = 0;
  if (place >= m->room) return false;
  if (m->states[place] == STATE_NONE) {
    m->states[place] = STATE_OPEN; // where it is asked for again meanwhile, it has no value
    m->states[place] = find_value(m, place, &m->values[place]) ? STATE_KNOWN : STATE_FAILED;
  }
  *value = m->values[place];
  return m->states[place] == STATE_KNOWN;
}

// Whether all that is known holds.
static bool has_facts(struct model *m) {
  int64_t value;
  for (uint32_t i = 0; i < m->facts->conditions.count; i++)
    if (!evaluate(m, *(const struct poly *)m->facts->conditions.at[i], &value) || value < 0) return false;
  for (uint32_t i = 0; i < m->facts->atoms.count; i++)
    if (atom_at(m, i)->is_positive && (!evaluate_atom(m, i, &value) || value < 1)) return false;
  return true;
}

static struct model make_model(struct facts *facts, int64_t size, enum end end) {
  enum { LATER = 32 }; // atoms that searches come upon
  struct model m = {.facts = facts, .size = size, .end = end, .room = facts->atoms.count + LATER};
  m.values = arena_array(facts->arena, int64_t, m.room);
  m.states = arena_array(facts->arena, unsigned char, m.room);
  return m;
}

static void find_models(struct facts *facts) {
  static const int64_t sizes[] = {256, 8, 4096};
  struct models *models = facts->models ? facts->models : arena_new(facts->arena, struct models);
  models->known = facts->known, models->conditions = facts->conditions.count, models->count = 0;
  for (uint32_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (enum end end = END_LAST; end <= END_FIRST; end++) {
      struct model m = make_model(facts, sizes[s], end);
      if (has_facts(&m)) models->at[models->count++] = m;
    }
  facts->models = models;
  facts->keeps = true;
}

static bool are_current(const struct facts *facts) {
  return facts->models && facts->models->known == facts->known && facts->models->conditions == facts->conditions.count;
}

bool poly_is_refuted(struct facts *facts, struct poly p) {
  int64_t value;
  for (uint32_t i = 0; are_current(facts) && i < facts->models->count; i++)
    if (evaluate(&facts->models->at[i], p, &value) && value < 0) return true;
  return false;
}

bool poly_refute(struct facts *facts, struct poly p) {
  if (!are_current(facts)) find_models(facts);
  if (poly_is_refuted(facts, p)) return true;
  for (uint32_t i = 0; i < facts->models->count; i++) {
    const struct model *last = &facts->models->at[i];
    if (last->end != END_LAST) continue;
    struct model m = make_model(facts, last->size, END_WORST);
    int64_t value;
    m.p = p, m.last = last->values;
    if (evaluate(&m, p, &value) && value < 0 && has_facts(&m)) return true;
  }
  return false;
}
