// The costs of passes/allreduce_cost.def against the measurements that set them: what is chosen is what was fastest.
#include "passes/allreduce.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct measured {
  uint32_t extent, groups;
  bool is_strided;
  enum allreduce_kind kind;
  uint32_t lanes, time; // threads along the reduced axis; hundredths of a microsecond
} measured[] = {
#define M(extent, groups, is_strided, form, lanes, time) {extent, groups, is_strided, ALLREDUCE_##form, lanes, time},
#include "passes/allreduce_measured.def"
#undef M
};
enum { COUNT = sizeof measured / sizeof *measured };
// Two runs of one kernel differ by so much.
static const double NOISE = 1.02;

static struct ir_expr *param(struct arena *arena, struct ir_reducer *reducer, const char *name) {
  struct ir_var *var = arena_new(arena, struct ir_var);
  *var = (struct ir_var){.name = name, .label = name, .kind = VAR_LET, .type = TYPE_F32};
  list_push(arena, &reducer->combine.params, var);
  return ir_ref(arena, var);
}

static struct ir_reducer *sum_f32(struct arena *arena) {
  struct ir_reducer *sum = arena_new(arena, struct ir_reducer);
  sum->name = "sum_f32";
  sum->is_commutative_bitwise = true;
  list_push(arena, &sum->identity, ir_float(arena, TYPE_F32, 0));
  struct ir_expr *a = param(arena, sum, "a"), *b = param(arena, sum, "b");
  list_push(arena, &sum->combine.results, ir_binary(arena, OP_ADD, a, b));
  return sum;
}

static struct allreduce_request request_of(uint32_t extent, uint32_t groups, bool is_strided, const struct ir_reducer *reducer) {
  return (struct allreduce_request){.block = {is_strided ? groups : extent, is_strided ? extent : groups, 1}, .thread_axes = is_strided ? 2 : 1,
                                    .reducer = reducer, .tuples = 1, .form = FORM_AUTO, .sm = 90};
}

Test(allreduce, what_is_chosen_is_what_was_fastest) {
  struct arena arena;
  uint32_t best[COUNT], taken[COUNT], count = 0;
  arena_init(&arena);
  const struct ir_reducer *sum = sum_f32(&arena);
  for (uint32_t i = 0; i < COUNT; i++) {
    const struct measured *m = &measured[i];
    struct allreduce_request request = request_of(m->extent, m->groups, m->is_strided, sum);
    struct allreduce_choice choice;
    allreduce_widen(&request);
    cr_assert(allreduce_choose(&request, &choice));
    best[i] = UINT32_MAX, taken[i] = 0;
    for (uint32_t k = 0; k < COUNT; k++) {
      const struct measured *other = &measured[k];
      if (other->extent != m->extent || other->groups != m->groups || other->is_strided != m->is_strided) continue;
      if (other->time < best[i]) best[i] = other->time;
      if (other->kind == choice.kind && other->lanes == choice.shape.extent) taken[i] = other->time;
    }
    cr_expect(taken[i] <= NOISE * best[i], "%u x %u%s: '%s' takes %u, the fastest %u hundredths of a microsecond", m->extent, m->groups,
              m->is_strided ? " stride" : "", allreduce_title(choice.kind), taken[i], best[i]);
    count += taken[i] > 0;
  }
  cr_expect(count == COUNT, "what was chosen was measured in %u of %d cases", count, COUNT);
  arena_destroy(&arena);
}

// More lanes a row are worth it where they take no more warps: 3 rows of 11 or of 16 lanes are two, 23 rows 8 and 12.
Test(allreduce, widens_where_a_multiprocessor_holds_as_many_rows) {
  struct arena arena;
  arena_init(&arena);
  const struct ir_reducer *sum = sum_f32(&arena);
  static const struct {
    uint32_t extent, groups, lanes;
  } cases[] = {{11, 3, 16}, {11, 23, 11}, {33, 1, 33}, {33, 7, 33}, {31, 8, 32}, {20, 12, 20}, {1000, 1, 1000}, {5, 100, 5}, {7, 32, 7}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct allreduce_request request = request_of(cases[i].extent, cases[i].groups, false, sum);
    allreduce_widen(&request);
    cr_expect_eq(request.block[0], cases[i].lanes, "%u x %u: %u lanes, not %u", cases[i].extent, cases[i].groups, request.block[0], cases[i].lanes);
    request = request_of(cases[i].extent, cases[i].groups, false, sum);
    request.form = FORM_TREE;
    allreduce_widen(&request);
    cr_expect_eq(request.block[0], cases[i].extent);
  }
  arena_destroy(&arena);
}
