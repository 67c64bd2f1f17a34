// Every operation on every type, through both backends, for every target and level.
#include "tests/unit/codegen_check.h"
#include "tests/unit/every_op.h"

static void check_target(const struct target *target, uint32_t level) {
  struct every *every = malloc(sizeof *every);
  every_begin(every);
  struct text ptx = check_ptx(&every->program, target->name, level);
  cr_expect(check_count(ptx.data, ".visible .entry") == (int)every->program.kernel->entries.count);
  check_assembles(ptx.data, target->name);
  text_free(&ptx);
  program_end(&every->program);
  free(every);
}

Test(codegen_every_op, assembles_at_level_0) {
  for (const struct target *target = target_table(); target->name; target++) check_target(target, 0);
}
Test(codegen_every_op, assembles_at_level_1) {
  for (const struct target *target = target_table(); target->name; target++) check_target(target, 1);
}
Test(codegen_every_op, assembles_at_level_2) {
  for (const struct target *target = target_table(); target->name; target++) check_target(target, 2);
}
Test(codegen_every_op, assembles_at_level_3) {
  for (const struct target *target = target_table(); target->name; target++) check_target(target, 3);
}

// ptxas fuses a product and a sum that lack .rn, and flushes nothing by itself.
Test(codegen_every_op, float_arithmetic_rounds_to_nearest_and_keeps_denormals) {
  struct every *every = malloc(sizeof *every);
  every_begin(every);
  struct text ptx = check_ptx(&every->program, "sm_75", 3);
  cr_expect(strstr(ptx.data, "add.rn.f32") && strstr(ptx.data, "mul.rn.f64") &&
            strstr(ptx.data, "div.rn.f32"));
  static const char *const loose[] = {"add.f32", "sub.f32", "mul.f32", "add.f64",
                                      "sub.f64", "mul.f64", ".approx", ".ftz"};
  for (size_t k = 0; k < sizeof loose / sizeof *loose; k++)
    cr_expect(strstr(ptx.data, loose[k]) == NULL, "%s", loose[k]);
  text_free(&ptx);
  program_end(&every->program);
  free(every);
}

Test(codegen_every_op, cuda_compiles_without_a_warning, .timeout = 100) {
  struct every *every = malloc(sizeof *every);
  every_begin(every);
  struct text cuda = {0};
  struct list lines = {0};
  cr_assert(codegen_cuda(&every->program.context, &cuda, &lines));
  cr_expect(check_count(cuda.data, "\n") == (int)lines.count, "a range for each line");
  check_compiles(cuda.data, "sm_75");
  check_compiles(cuda.data, "sm_90");
  text_free(&cuda);
  program_end(&every->program);
  free(every);
}
