#include "compiler/run_compare.h"

#include "compiler/reference.h"
#include "compiler/run_element.h"

#include <math.h>
#include <string.h>

// Whether an operation gives the exact result for all floats.
static bool is_exact_op(const struct ir_expr *e) {
  switch ((int)e->op) {
  case OP_ADD:
  case OP_SUB:
  case OP_MUL:
  case OP_DIV:
  case OP_FMA:
  case OP_SQRT:
  case OP_RSQRT:
  case OP_EXP:
  case OP_EXP2:
  case OP_LOG:
  case OP_LOG2:
  case OP_SIN:
  case OP_COS:
  case OP_TANH:
  case OP_ERF:
  case OP_POW: return !type_is_float(e->type);
  default: return true;
  }
}

static void find_rounding(struct ir_expr *e, void *state) {
  if (!is_exact_op(e)) *(bool *)state = true;
}
static void visit_list(const struct list *list, bool *rounds) {
  for (uint32_t i = 0; i < list->count; i++)
    ir_visit_expr(list_at(list, struct ir_expr, i), find_rounding, rounds);
}
static void visit_function(const struct ir_function *function, bool *rounds) {
  ir_visit_block(&function->lets, find_rounding, rounds);
  visit_list(&function->results, rounds);
}

enum exactness compare_exactness(const struct ir_kernel *kernel, const struct ir_entry *entry,
                                 const struct ir_mem *output) {
  (void)kernel;
  bool rounds = false, only_moves = true;
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    const struct ir_stage *stage = list_at(&entry->stages, struct ir_stage, i);
    ir_visit_block(&stage->lets, find_rounding, &rounds);
    visit_list(&stage->operands, &rounds);
    visit_list(&stage->init, &rounds);
    if (stage->reducer) {
      visit_function(&stage->reducer->combine, &rounds);
      visit_function(&stage->reducer->update, &rounds);
    }
    if (stage->kind != STAGE_STORE) continue;
    ir_visit_expr(stage->value, find_rounding, &rounds);
    const struct ir_expr *moved = reference_unwrap(stage->value);
    if (stage->mem == output && (moved->op != OP_LOAD || moved->type != output->type)) only_moves = false;
  }
  if (only_moves ||
      (type_class_of(output->type) != CLASS_FLOAT && type_class_of(output->type) != CLASS_STORAGE))
    return EXACT_BITS;
  return rounds ? ROUNDED : EXACT_VALUES;
}

static double rounding_unit(enum type type) {
  return type == TYPE_F64 ? 0x1p-53 : type == TYPE_F32 ? 0x1p-24 : type == TYPE_F16 ? 0x1p-11 : 0x1p-8;
}
// The distance of neighbours among the subnormals: below it nothing is told apart.
static double least_step(enum type type) {
  return type == TYPE_F64 ? 0x1p-1074 : type == TYPE_F32 ? 0x1p-149 : type == TYPE_F16 ? 0x1p-24 : 0x1p-133;
}

static double number_at(const struct buffer *buffer, const uint8_t *element) {
  return element_get(buffer->type, element).number;
}

// max |want - wide| where both are finite.
static double sensitivity(const struct buffer *want, const struct buffer *wide) {
  struct buffer_walk w, v;
  double largest = 0;
  for (buffer_walk_begin(&w, want), buffer_walk_begin(&v, wide); !w.is_done;
       buffer_walk_next(&w), buffer_walk_next(&v)) {
    double distance = fabs(number_at(want, w.element) - number_at(wide, v.element));
    if (isfinite(distance) && distance > largest) largest = distance;
  }
  return largest;
}

// max |x| where finite.
static double magnitude(const struct buffer *wide) {
  struct buffer_walk v;
  double largest = 0;
  for (buffer_walk_begin(&v, wide); !v.is_done; buffer_walk_next(&v)) {
    double size = fabs(number_at(wide, v.element));
    if (isfinite(size) && size > largest) largest = size;
  }
  return largest;
}

// The distance of two numbers: 0 where they are the same, infinite or NaN ones too; infinite where one is not
// finite.
static double distance_of(double a, double b) {
  if (a == b || (isnan(a) && isnan(b))) return 0;
  double distance = fabs(a - b);
  return isnan(distance) ? (double)INFINITY : distance;
}

bool compare_buffers(const struct buffer *got, const struct buffer *want, const struct buffer *wide,
                     const struct buffer *turned, enum exactness exactness, uint64_t steps, struct comparison *result) {
  *result = (struct comparison){0};
  struct buffer_walk g, w, v = {0};
  size_t size = type_bytes(got->type);
  double unit = rounding_unit(got->type) * (16 + 2 * log2((double)steps + 1)), worst = -1;
  // Partial sums may be larger than their total: what the order of the reference loses is measured, and another order may lose as much
  // again a few times over, or, where this one was lucky, the square root of the steps of the largest element.
  // An f64 is compared with what f32 makes of it, which loses as many bits more as its units are larger, or twice as many: its roundings are others.
  double carried = 0;
  bool is_narrow = got->type == TYPE_F64;
  if (exactness == ROUNDED) {
    carried = 8 * sensitivity(want, wide) * (is_narrow ? 2 * rounding_unit(TYPE_F64) / rounding_unit(TYPE_F32) : 1);
    if (turned) carried = fmax(carried, 8 * sensitivity(want, turned));
    carried += 2 * sqrt((double)steps) * rounding_unit(got->type) * magnitude(is_narrow ? want : wide) + least_step(got->type);
  }
  if (exactness == ROUNDED) buffer_walk_begin(&v, wide);
  for (buffer_walk_begin(&g, got), buffer_walk_begin(&w, want); !g.is_done;
       buffer_walk_next(&g), buffer_walk_next(&w)) {
    double tolerance = 0, distance = 1;
    bool agrees = memcmp(g.element, w.element, size) == 0;
    if (!agrees && exactness == EXACT_VALUES) {
      agrees = isnan(number_at(got, g.element)) && isnan(number_at(want, w.element));
      distance = distance_of(number_at(got, g.element), number_at(want, w.element));
    } else if (!agrees && exactness == ROUNDED) {
      double a = number_at(got, g.element), b = number_at(want, w.element), c = number_at(wide, v.element);
      if (is_narrow || !isfinite(c)) c = b;
      tolerance = carried + (isfinite(c) ? unit * fabs(c) : 0);
      distance = fmin(distance_of(a, b), distance_of(a, c));
      agrees = distance <= tolerance;
    }
    if (exactness == ROUNDED) buffer_walk_next(&v);
    if (agrees) continue;
    result->different++;
    if (distance - tolerance <= worst) continue;
    worst = distance - tolerance;
    result->worst = g.flat;
    result->tolerance = tolerance;
    result->distance = distance;
  }
  return !result->different;
}
