// Wide accesses of every type and width: one load and one store each, in both backends.
#include "tests/unit/codegen_check.h"

// One entry: B[i * count ..] = f(A[i * count ..]), where f makes the elements' values anew.
static void add_copy(struct program *p, enum type type, uint32_t count) {
  struct arena *arena = &p->arena;
  program_entry(p, arena_printf(arena, "copy_%u_%s", count, type_name(type)), 32);
  struct ir_mem *in = program_tensor(p, arena_printf(arena, "A_%u_%s", count, type_name(type)), type, false);
  struct ir_mem *out = program_tensor(p, arena_printf(arena, "B_%u_%s", count, type_name(type)), type, true);
  out->alignment = in->alignment = 16;
  struct ir_expr *i = program_let(p, "i", program_special(p, OP_THREAD, 0));
  struct ir_expr *offset = ir_binary(arena, OP_MUL, i, program_int(p, TYPE_I32, count));
  struct ir_stmt *load = program_stmt(p, IR_LOAD_WIDE);
  load->mem = in, load->is_flat = true;
  list_push(arena, &load->indices, offset);
  for (uint32_t k = 0; k < count; k++)
    list_push(arena, &load->results, ir_new_var(p->kernel, VAR_LET, type, "v"));
  struct ir_stmt *store = program_stmt(p, IR_STORE_WIDE);
  store->mem = out, store->is_flat = true;
  list_push(arena, &store->indices, offset);
  for (uint32_t k = 0; k < count; k++) { // reversed, and complemented where the type can be
    struct ir_expr *value = ir_ref(arena, load->results.at[count - 1 - k]);
    if (type_is_integer(type) || type == TYPE_BOOL) value = ir_unary(arena, OP_NOT, value);
    list_push(arena, &store->inputs, value);
  }
}

static void begin_copies(struct program *p) {
  program_begin(p, "copies", 32, NULL);
  p->kernel->entries.count = 0;
  for (int type = 0; type < TYPE_COUNT; type++)
    for (uint32_t count = 2; type != TYPE_INDEX && count * type_bytes((enum type)type) <= 16; count *= 2)
      add_copy(p, (enum type)type, count);
}

// Accesses of one entry: instructions that begin with `what`.
static int count_in_entry(const char *ptx, const char *name, const char *what) {
  char head[80];
  snprintf(head, sizeof head, ".entry %s(", name);
  const char *start = strstr(ptx, head), *end = start ? strstr(start, "\n}") : NULL;
  cr_assert(start && end, "no entry %s", name);
  char *body = strndup(start, (size_t)(end - start));
  int count = check_count(body, what);
  free(body);
  return count;
}

static void check_single_accesses(struct program *p, const char *ptx, const char *what) {
  for (uint32_t k = 0; k < p->kernel->entries.count; k++) {
    const char *name = list_at(&p->kernel->entries, struct ir_entry, k)->name;
    cr_expect(count_in_entry(ptx, name, "\tld.global") == 1, "%s: loads of %s", what, name);
    cr_expect(count_in_entry(ptx, name, "\tst.global") == 1, "%s: stores of %s", what, name);
  }
}

Test(codegen_wide, ptx_has_one_access_a_statement) {
  for (uint32_t level = 0; level <= 3; level += 3) {
    struct program p;
    begin_copies(&p);
    struct text ptx = check_ptx(&p, "sm_75", level);
    check_single_accesses(&p, ptx.data, level ? "-O3" : "-O0");
    check_assembles(ptx.data, "sm_75");
    text_free(&ptx);
    program_end(&p);
  }
}

Test(codegen_wide, cuda_has_one_access_a_statement) {
  struct program p;
  begin_copies(&p);
  struct text cuda = {0}, ptx = {0};
  cr_assert(codegen_cuda(&p.context, &cuda, NULL));
  if (check_tool("nvcc")) {
    int status = check_run("nvcc -Werror all-warnings -arch=sm_90 -ptx -o - %s 2>&1", ".cu", cuda.data, &ptx);
    cr_assert(status == 0, "%s", ptx.data);
    check_single_accesses(&p, ptx.data, "nvcc");
  } else {
    fprintf(stderr, "nvcc was not found: CUDA is not compiled\n");
  }
  text_free(&cuda);
  text_free(&ptx);
  program_end(&p);
}
