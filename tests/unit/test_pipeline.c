// The compiler as a library: compilation_* of compiler/pipeline.h.
#include "compiler/pipeline.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char KERNEL[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) {\n"
                             "  for i in n { B[i] = sum(j in m) A[i, j]; }\n"
                             "}\n";
static const char SCHEDULE[] = "schedule rowsum as rows { bind i -> block.x; bind j -> thread.x; }\n";

static struct compilation c;
static struct text out;

static void begin(void) {
  compilation_init(&c);
}

static void end(void) {
  text_free(&out);
  compilation_destroy(&c);
}

TestSuite(pipeline, .init = begin, .fini = end);

static bool parse(struct compilation *compilation, const char *text) {
  return compilation_parse_text(compilation, "test.red", text, strlen(text));
}

static void define(struct compilation *compilation, const char *name, int64_t value) {
  struct define *d = arena_new(&compilation->arena, struct define);
  d->name = name;
  d->integer = value;
  list_push(&compilation->arena, &compilation->options.defines, d);
}

static bool holds(const char *text) {
  return out.data && strstr(out.data, text);
}

Test(pipeline, text_becomes_ptx_for_the_target) {
  c.options.target = target_find("sm_90");
  cr_assert(parse(&c, KERNEL) && compilation_lower(&c) && compilation_emit(&c, EMIT_PTX, &out));
  cr_assert(holds(".target sm_90") && holds(".visible .entry rowsum_")); // and the name of the schedule that it chose
  cr_assert_eq(c.diag.error_count, 0);
}

Test(pipeline, text_may_go_away_once_it_is_parsed) {
  char *text = strdup(KERNEL);
  cr_assert(parse(&c, text));
  memset(text, 'x', strlen(text));
  free(text);
  cr_assert(compilation_lower(&c) && compilation_emit(&c, EMIT_CUDA, &out));
  cr_assert(holds("for i in n { B[i] = sum(j in m) A[i, j]; }"));
}

Test(pipeline, several_texts_are_one_program) {
  define(&c, "m", 64);
  cr_assert(parse(&c, SCHEDULE) && parse(&c, KERNEL) && compilation_lower(&c) &&
            compilation_emit(&c, EMIT_PTX, &out));
  cr_assert(holds(".entry rowsum_rows("));
}

Test(pipeline, several_outputs_come_from_one_lowering) {
  static const enum emit_kind kinds[] = {EMIT_AST, EMIT_IR, EMIT_CUDA, EMIT_LLVM, EMIT_PTX, EMIT_PTX};
  char *first = NULL;
  cr_assert(parse(&c, KERNEL) && compilation_lower(&c));
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    text_free(&out);
    cr_assert(compilation_emit(&c, kinds[i], &out));
    cr_assert(holds("rowsum"));
    if (i == 4) first = strdup(out.data);
  }
  cr_assert_str_eq(out.data, first);
  free(first);
}

Test(pipeline, plan_describes_the_launches) {
  struct plan plan;
  define(&c, "m", 64);
  cr_assert(parse(&c, KERNEL) && parse(&c, SCHEDULE) && compilation_lower(&c));
  plan_init(&plan);
  cr_assert(compilation_plan(&c, &plan));
  const struct plan_kernel *kernel = plan_find(&plan, "rowsum");
  cr_assert(kernel);
  cr_assert_eq(kernel->tensor_count, 2);
  cr_assert_str_eq(kernel->entries[0].name, "rowsum_rows");
  cr_assert_eq(kernel->entries[0].launches[0].block[0], 64);
  plan_destroy(&plan);
}

Test(pipeline, plan_in_the_ptx_reads_back) {
  struct plan plan;
  char error[200] = "";
  cr_assert(parse(&c, KERNEL) && compilation_lower(&c) && compilation_emit(&c, EMIT_PTX, &out));
  plan_init(&plan);
  cr_assert(plan_parse(&plan, out.data, out.length, error, sizeof error), "%s", error);
  cr_assert(plan_find(&plan, "rowsum"));
  plan_destroy(&plan);
}

Test(pipeline, errors_are_collected_and_nothing_is_emitted) {
  cr_assert(!parse(&c, "kernel a(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = ; } }\n"
                       "kernel b(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = ; } }\n"));
  cr_assert_eq(c.diag.error_count, 2);
  cr_assert_eq(out.length, 0);
}

Test(pipeline, empty_text_is_an_error) {
  cr_assert(compilation_parse_text(&c, "empty.red", NULL, 0));
  cr_assert(!compilation_lower(&c));
  cr_assert_eq(list_at(&c.diag.diagnostics, struct diagnostic, 0)->code, ERROR_NOTHING);
}

static void note_step(struct compilation *compilation, const char *step, void *state) {
  text_printf(state, "%s%s", ((struct text *)state)->length ? " " : "", step);
  (void)compilation;
}

Test(pipeline, steps_are_observed_in_order_up_to_the_stop) {
  c.stop_after = "nest";
  c.after_step = note_step;
  c.after_step_state = &out;
  cr_assert(parse(&c, KERNEL) && compilation_lower(&c));
  cr_assert_str_eq(out.data, "check schedule cut nest");
  cr_assert_eq(list_at(&list_at(&c.module.kernels, struct ir_kernel, 0)->entries, struct ir_entry, 0)->level,
               LEVEL_PROGRAM);
}

Test(pipeline, ir_text_goes_on_behind_its_heading) {
  struct compilation later;
  struct text text = {0};
  c.stop_after = "nest";
  cr_assert(parse(&c, KERNEL) && compilation_lower(&c) && compilation_emit(&c, EMIT_IR, &text));
  compilation_init(&later);
  later.reads_ir = true;
  later.after_step = note_step;
  later.after_step_state = &out;
  cr_assert(compilation_parse_text(&later, "step.ir", text.data, text.length));
  cr_assert_str_eq(later.from, "nest");
  cr_assert(compilation_lower(&later));
  const struct pass *next = pass_table;
  while (strcmp(next++->name, "nest")) {}
  size_t length = strlen(next->name);
  cr_assert(!strncmp(out.data, next->name, length) && out.data[length] == ' ', "%s", out.data);
  text_free(&text);
  compilation_destroy(&later);
}

Test(pipeline, phases_name_each_pass_once) {
  cr_assert(parse(&c, KERNEL) && parse(&c, SCHEDULE));
  define(&c, "m", 64);
  cr_assert(compilation_lower(&c) && compilation_emit(&c, EMIT_CUDA, &out));
  uint32_t parses = 0, checks = 0;
  for (uint32_t i = 0; i < c.phases.count; i++) {
    const struct phase *phase = list_at(&c.phases, struct phase, i);
    parses += strcmp(phase->name, "parse") == 0;
    checks += strcmp(phase->name, "check") == 0;
    cr_expect_geq(phase->seconds, 0);
  }
  cr_assert_eq(parses, 1);
  cr_assert_eq(checks, 1);
}

static void *compile_alone(void *target) {
  struct compilation own;
  struct text text = {0};
  compilation_init(&own);
  own.options.target = target_find(target);
  define(&own, "m", 300);
  bool ok = parse(&own, KERNEL) && parse(&own, SCHEDULE) && compilation_lower(&own) &&
            compilation_emit(&own, EMIT_PTX, &text);
  compilation_destroy(&own);
  if (ok) return text.data;
  text_free(&text);
  return NULL;
}

Test(pipeline, compilations_in_several_threads_are_independent) {
  static char *const targets[] = {"sm_75", "sm_80", "sm_90"};
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  void *texts[THREADS], *alone[3];
  for (int i = 0; i < 3; i++) alone[i] = compile_alone(targets[i]);
  for (int i = 0; i < THREADS; i++)
    cr_assert_eq(pthread_create(&threads[i], NULL, compile_alone, targets[i % 3]), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &texts[i]);
    cr_assert(texts[i]);
    cr_expect_str_eq(texts[i], alone[i % 3]);
    free(texts[i]);
  }
  for (int i = 0; i < 3; i++) free(alone[i]);
}

Test(pipeline, destroying_nothing_is_fine) {
  compilation_destroy(NULL);
}
