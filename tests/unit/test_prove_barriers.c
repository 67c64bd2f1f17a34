// What pass `barriers` places, drops, keeps and refuses.
#include "tests/unit/prove_cases.h"

#define SHARED(words) "    shared s: f32[" words ":i64] strides [1:i64] align 4"
#define PUT(index, value) "store_flat s[" index "] = " value "\n"
#define GET(result, index) LET(result, "f32", "load_flat(s, " index ")")
#define BARRIER "barrier\n"
#define T THREAD
#define OTHER "sub(63:i32, " T ")"

// A row of letters: b barrier, w warp barrier, p store to shared memory, g let, o other store, i{..} condition, l{..} loop.
static void outline(const struct list *block, struct text *out) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    switch (stmt->kind) {
    case IR_LET: if (stmt->value->op == OP_LOAD_FLAT && stmt->value->mem->space == SPACE_SHARED) text_puts(out, "g"); break;
    case IR_STORE: text_puts(out, stmt->mem->space == SPACE_SHARED ? "p" : "o"); break;
    case IR_BARRIER: text_puts(out, "b"); break;
    case IR_SYNCWARP: text_puts(out, "w"); break;
    case IR_FOR:
    case IR_IF:
      text_puts(out, stmt->kind == IR_FOR ? "l{" : "i{");
      outline(&stmt->body, out);
      text_puts(out, "}");
      if (stmt->otherwise.count) text_puts(out, "e{"), outline(&stmt->otherwise, out), text_puts(out, "}");
      break;
    case IR_VAR: case IR_SET: case IR_ALLREDUCE: case IR_LOAD_WIDE: case IR_STORE_WIDE: case IR_ATOMIC: case IR_FENCE: case IR_GRID_WAIT: case IR_GRID_READY:
    case IR_COPY: case IR_COPY_COMMIT: case IR_COPY_WAIT: break;
    }
  }
}

// Expects that outline behind the pass, a proof that it leaves of it, and another one of the same.
static void expect(const char *block, const char *memory, const char *body, const char *wanted) {
  struct proved p;
  struct text got = {0};
  struct ir_entry *entry = proved_begin(&p, block, memory, body);
  struct ir_kernel *kernel = p.module.kernels.at[0];
  cr_expect(pass_barriers(&p.context, kernel, entry), "%s", proved_message(&p));
  outline(&entry->body, &got);
  cr_expect_str_eq(got.data, wanted);
  cr_expect(entry->proof && pass_prove(&p.context, kernel, entry), "%s", proved_message(&p));
  entry->proof = NULL;
  cr_expect(pass_prove(&p.context, kernel, entry), "%s", proved_message(&p));
  text_free(&got);
  proved_end(&p);
}

static void expect_refused(const char *block, const char *memory, const char *body, const char *message) {
  struct proved p;
  struct ir_entry *entry = proved_begin(&p, block, memory, body);
  cr_expect_not(pass_barriers(&p.context, p.module.kernels.at[0], entry));
  cr_expect(strstr(proved_message(&p), message), "wanted '%s', got: %s", message, proved_message(&p));
  proved_end(&p);
}

Test(prove_barriers, keeps_a_barrier_that_orders_two_accesses) { expect("64 1 1", SHARED("64"), OWN PUT(T, "x") BARRIER GET("y", OTHER) STORE("y"), "pbgo"); }
Test(prove_barriers, places_a_missing_barrier) { expect("64 1 1", SHARED("64"), OWN PUT(T, "x") GET("y", OTHER) STORE("y"), "pbgo"); }
Test(prove_barriers, places_one_before_scratch_is_used_again) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") BARRIER GET("y", OTHER) PUT(T, "y") BARRIER GET("z", OTHER) STORE("z"), "pbgbpbgo");
}
Test(prove_barriers, places_one_in_a_loop) {
  expect("64 1 1", SHARED("64"), "for r: i32 in 0:i32 .. cast.i32(n) unroll never {\n" LET("x", "f32", "load_flat(A, r)") PUT(T, "x") BARRIER GET("y", OTHER) STORE("y") "}\n", "l{bpbgo}");
}
Test(prove_barriers, places_one_outside_the_conditions_of_some_threads) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") "if lt(" T ", 9:i32) {\nif lt(x, 0.0:f32) {\n" GET("y", OTHER) STORE("y") "}\n}\n", "pbi{i{go}}");
}
Test(prove_barriers, places_one_inside_a_condition_of_the_block) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") "if lt(block.x:i32, 9:i32) {\n" GET("y", OTHER) STORE("y") "}\n", "pi{bgo}");
}
Test(prove_barriers, refuses_a_race_inside_a_condition_of_some_threads) {
  expect_refused("64 1 1", SHARED("64"), OWN "if lt(" T ", 9:i32) {\n" PUT(T, "x") GET("y", "sub(8:i32, " T ")") STORE("y") "}\n", "no barrier can stand there");
}
Test(prove_barriers, drops_one_of_two) { expect("64 1 1", SHARED("64"), OWN PUT(T, "x") BARRIER BARRIER GET("y", OTHER) STORE("y"), "pbgo"); }
Test(prove_barriers, drops_one_that_orders_nothing) {
  expect("64 1 1", SHARED("64"), OWN BARRIER PUT(T, "x") BARRIER GET("y", T) BARRIER STORE("y"), "pgo");
  expect("64 1 1", "", OWN BARRIER STORE("x"), "o");
}
Test(prove_barriers, drops_loops_and_branches_of_needless_ones) {
  expect("64 1 1", SHARED("64"), OWN "for r: i32 in 0:i32 .. 4:i32 unroll never {\n" BARRIER "if lt(block.x:i32, 9:i32) {\n" BARRIER "}\n}\n" PUT(T, "x") BARRIER GET("y", OTHER) STORE("y"), "pbgo");
  expect("64 1 1", SHARED("64"), OWN "if lt(block.x:i32, 9:i32) {\n" BARRIER "} else {\n" BARRIER STORE("x") "}\n", "i{}e{o}");
}
Test(prove_barriers, drops_the_first_of_a_loop_of_one_iteration) {
  expect("64 1 1", SHARED("64"), "for r: i32 in 0:i32 .. 1:i32 unroll never {\n" BARRIER LET("x", "f32", "load_flat(A, r)") PUT(T, "x") BARRIER GET("y", OTHER) STORE("y") "}\n", "l{pbgo}");
}
Test(prove_barriers, keeps_the_first_of_a_loop) {
  expect("64 1 1", SHARED("64"), "for r: i32 in 0:i32 .. cast.i32(n) unroll never {\n" BARRIER LET("x", "f32", "load_flat(A, r)") PUT(T, "x") BARRIER GET("y", OTHER) STORE("y") "}\n", "l{bpbgo}");
}
Test(prove_barriers, drops_warp_barriers_beside_block_barriers) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") "syncwarp 4294967295:u32\n" BARRIER GET("y", OTHER) STORE("y"), "pbgo");
}
Test(prove_barriers, keeps_a_warp_barrier_where_it_is_enough) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") "syncwarp 4294967295:u32\n" GET("y", "xor(" T ", 1:i32)") STORE("y"), "pwgo");
}
Test(prove_barriers, keeps_all_where_threads_may_meet_in_device_memory) {
  expect("64 1 1", "", OWN STORE("x") BARRIER LET("y", "f32", "load_flat(B, " OTHER ")") "store_flat B[add(" T ", 64:i32)] = y\n", "obo");
}
Test(prove_barriers, drops_where_device_memory_is_read_in_the_place_that_is_stored_to) {
  expect("64 1 1", "", LET("x", "f32", "load_flat(B, " T ")") BARRIER STORE("x"), "o");
}
Test(prove_barriers, leaves_other_faults_to_prove) {
  struct proved p;
  struct ir_entry *entry = proved_begin(&p, "24 1 1", "", OWN XOR("a", "x", "4294967295", "1") BARRIER STORE("a"));
  cr_expect(pass_barriers(&p.context, p.module.kernels.at[0], entry));
  cr_expect_eq(entry->body.count, 4);
  cr_expect_not(pass_prove(&p.context, p.module.kernels.at[0], entry));
  proved_end(&p);
}
