// Asynchronous copies of every type, width and cache hint, in both backends.
#include "tests/unit/codegen_check.h"

// One entry: S[i * count ..] = A[i * count ..] asynchronously, waited for, then B[i] = S[i * count].
static void add_copy(struct program *p, enum type type, uint32_t count, enum cache_hint hint) {
  struct arena *arena = &p->arena;
  const char *what = arena_printf(arena, "%u_%s_%d", count, type_name(type), hint);
  program_entry(p, arena_printf(arena, "copy_%s", what), 32);
  struct ir_mem *in = program_tensor(p, arena_printf(arena, "A_%s", what), type, false);
  struct ir_mem *out = program_tensor(p, arena_printf(arena, "B_%s", what), type, true);
  struct ir_mem *tile = program_array(p, arena_printf(arena, "S_%s", what), SPACE_SHARED, type, 32 * count);
  struct ir_expr *i = program_let(p, "i", program_special(p, OP_THREAD, 0));
  struct ir_expr *offset = ir_binary(arena, OP_MUL, i, program_int(p, TYPE_I32, count));
  out->alignment = in->alignment = tile->alignment = 16;
  if (hint != CACHE_NORMAL) {
    struct ir_hint *said = arena_new(arena, struct ir_hint);
    *said = (struct ir_hint){in, hint};
    list_push(arena, &p->entry->hints, said);
  }
  struct ir_stmt *copy = program_stmt(p, IR_COPY);
  copy->mem = tile, copy->is_flat = true, copy->count = count;
  copy->value = program_load(p, in, offset);
  list_push(arena, &copy->indices, offset);
  program_stmt(p, IR_COPY_COMMIT);
  program_stmt(p, IR_COPY_WAIT)->count = 1;
  program_stmt(p, IR_COPY_WAIT);
  program_store(p, out, i, program_let(p, "x", program_load(p, tile, offset)));
}

static void begin_copies(struct program *p) {
  program_begin(p, "copies", 32, NULL);
  p->kernel->entries.count = 0;
  for (int type = 0; type < TYPE_COUNT; type++)
    for (uint32_t count = 1; type != TYPE_INDEX && count * type_bytes((enum type)type) <= 16; count *= 2)
      for (int hint = 0; hint < CACHE_COUNT && count * type_bytes((enum type)type) >= 4; hint++) add_copy(p, (enum type)type, count, (enum cache_hint)hint);
}

static void check_copies(struct program *p, const char *ptx) {
  int copies = (int)p->kernel->entries.count, hinted = copies / CACHE_COUNT * 2;
  cr_expect_eq(check_count(ptx, "cp.async.cg.shared.global") + check_count(ptx, "cp.async.ca.shared.global"), copies);
  cr_expect_eq(check_count(ptx, "L2::cache_hint ["), hinted);
  cr_expect_eq(check_count(ptx, "cp.async.commit_group;"), copies);
  cr_expect_eq(check_count(ptx, "cp.async.wait_group 1;"), copies);
  cr_expect_eq(check_count(ptx, "cp.async.wait_all;"), copies);
}

Test(codegen_copy, ptx_has_one_instruction_a_statement) {
  for (uint32_t level = 0; level <= 3; level += 3) {
    struct program p;
    begin_copies(&p);
    struct text ptx = check_ptx(&p, "sm_80", level);
    check_copies(&p, ptx.data);
    check_assembles(ptx.data, "sm_80");
    text_free(&ptx);
    program_end(&p);
  }
}

Test(codegen_copy, cuda_has_one_instruction_a_statement) {
  struct program p;
  begin_copies(&p);
  p.options.target = target_find("sm_80");
  struct text cuda = {0}, ptx = {0};
  cr_assert(codegen_cuda(&p.context, &cuda, NULL));
  if (check_tool("nvcc")) {
    int status = check_run("nvcc -Werror all-warnings -arch=sm_90 -ptx -o - %s 2>&1", ".cu", cuda.data, &ptx);
    cr_assert(status == 0, "%s", ptx.data);
    check_copies(&p, ptx.data);
  } else {
    fprintf(stderr, "nvcc was not found: CUDA is not compiled\n");
  }
  text_free(&cuda);
  text_free(&ptx);
  program_end(&p);
}

Test(codegen_copy, older_targets_are_refused) {
  struct program p;
  begin_copies(&p);
  p.options.target = target_find("sm_75");
  struct text ptx = {0};
  cr_expect(!codegen_nvptx(&p.context, NVPTX_PTX, &ptx));
  struct text messages = check_messages(&p);
  cr_expect(strstr(messages.data, "asynchronous copies need sm_80 or newer"), "%s", messages.data);
  text_free(&messages);
  text_free(&ptx);
  program_end(&p);
}
