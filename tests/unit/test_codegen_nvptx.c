// PTX of whole small programs.
#include "tests/unit/codegen_check.h"

Test(codegen_nvptx, rowsum_is_loads_shuffles_and_a_guarded_store) {
  struct program p;
  program_rowsum(&p);
  struct text ptx = check_ptx(&p, "sm_90", 3);
  cr_expect(check_count(ptx.data, ".version 7.8\n.target sm_90\n") == 1);
  cr_expect(check_count(ptx.data, ".visible .entry rowsum(") == 1);
  cr_expect(check_count(ptx.data, "ld.global.nc.") == 1);
  cr_expect(check_count(ptx.data, "shfl.sync.down.b32") == 4);
  cr_expect(check_count(ptx.data, ", 2047;") == 4, "the mask names 11 lanes");
  cr_expect(check_count(ptx.data, "add.rn.f32") == 4);
  cr_expect(check_count(ptx.data, "st.global.") == 1);
  check_assembles(ptx.data, "sm_90");
  text_free(&ptx);
  program_end(&p);
}

Test(codegen_nvptx, block_is_exact_and_one_a_multiprocessor_is_enough) {
  struct program p;
  program_rowsum(&p);
  p.entry->block[1] = 3;
  struct text ptx = check_ptx(&p, "sm_80", 3);
  cr_expect(check_count(ptx.data, ".reqntid 11, 3, 1\n") == 1);
  cr_expect(check_count(ptx.data, ".minnctapersm 1\n") == 1);
  text_free(&ptx);
  program_end(&p);
}

Test(codegen_nvptx, lines_are_those_of_the_source_and_do_not_ask_for_debug) {
  struct program p;
  program_rowsum(&p);
  struct text ptx = check_ptx(&p, "sm_90", 3);
  cr_expect(strstr(ptx.data, ".file\t1 \"test.red\""));
  cr_expect(strstr(ptx.data, ".loc\t1 2 1"));
  cr_expect_not(strstr(ptx.data, ", debug"));
  text_free(&ptx);
  p.options.debug = true;
  ptx = check_ptx(&p, "sm_90", 3);
  cr_expect(strstr(ptx.data, ".target sm_90, debug"));
  check_assembles(ptx.data, "sm_90");
  text_free(&ptx);
  program_end(&p);
}

Test(codegen_nvptx, every_target_and_level_assembles) {
  for (const struct target *target = target_table(); target->name; target++)
    for (uint32_t level = 0; level <= 3; level++) {
      struct program p;
      program_rowsum(&p);
      struct text ptx = check_ptx(&p, target->name, level);
      cr_expect(check_count(ptx.data, "shfl.sync.down.b32") == 4);
      check_assembles(ptx.data, target->name);
      text_free(&ptx);
      program_end(&p);
    }
}

// What a compilation leaves behind is of no consequence for later ones, of other targets and levels and of its own.
Test(codegen_nvptx, the_same_text_after_others) {
  char *first[2] = {NULL, NULL};
  for (int round = 0; round < 3; round++)
    for (int level = 0; level <= 3; level += 3)
      for (const struct target *target = target_table(); target->name; target++) {
        struct program p;
        program_rowsum(&p);
        struct text ptx = check_ptx(&p, target->name, (uint32_t)level);
        if (strcmp(target->name, "sm_90") == 0) {
          if (first[level == 3]) cr_expect_str_eq(ptx.data, first[level == 3]);
          else cr_assert(first[level == 3] = strdup(ptx.data));
        }
        char wanted[32];
        snprintf(wanted, sizeof wanted, ".target %s\n", target->name);
        cr_expect(check_count(ptx.data, wanted) == 1, "%s, level %d", target->name, level);
        text_free(&ptx);
        program_end(&p);
      }
  for (int i = 0; i < 2; i++) free(first[i]);
}

Test(codegen_nvptx, an_allreduce_left_over_is_an_internal_error) {
  struct program p;
  program_rowsum(&p);
  program_stmt(&p, IR_ALLREDUCE);
  struct text ptx = {0};
  cr_expect_not(codegen_nvptx(&p.context, NVPTX_PTX, &ptx));
  cr_expect(p.diag.internal);
  cr_expect(ptx.length == 0);
  text_free(&ptx);
  program_end(&p);
}
