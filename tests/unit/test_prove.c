// What pass `prove` says of shuffles, masks and control flow. The right forms are proved, each planted fault is named.
#include "tests/unit/prove_cases.h"

#define ALL "4294967295"

Test(prove, accepts_butterflies_over_whole_warps) {
  expect_proof("xor", "64 1 1", "", OWN XOR("a", "x", ALL, "16") XOR("b", "add(x, a)", ALL, "1") STORE("b"), NULL);
}

Test(prove, accepts_groups_of_eight_in_a_partial_warp) {
  expect_proof("8 of 24", "8 3 1", "", OWN XOR("a", "x", "16777215", "4") XOR("b", "a", "16777215", "2") XOR("c", "b", "16777215", "1") STORE("c"), NULL);
}

// Groups of 8 lanes: each its own mask.
#define SEGMENT LET("mask", "u32", "shl(255:u32, cast.u32(and(" THREAD ", 24:i32)))")
Test(prove, accepts_a_mask_a_segment) {
  expect_proof("segments", "32 1 1", "", OWN SEGMENT LET("a", "f32", "shfl_xor(mask, x, 4:u32)") STORE("a"), NULL);
}

Test(prove, accepts_segments_of_which_some_do_not_come) {
  expect_proof("guarded segments", "32 1 1", "",
               OWN SEGMENT LET("g", "i32", "add(mul(block.x:i32, 4:i32), quo(" THREAD ", 8:i32))") "if lt(g, cast.i32(n)) {\n" LET("a", "f32", "shfl_xor(mask, x, 4:u32)") STORE("a") "}\n", NULL);
}

Test(prove, rejects_a_condition_within_a_segment) {
  expect_proof("split segments", "32 1 1", "",
               OWN SEGMENT LET("g", "i32", "add(mul(block.x:i32, 8:i32), quo(" THREAD ", 4:i32))") "if lt(g, cast.i32(n)) {\n" LET("a", "f32", "shfl_xor(mask, x, 4:u32)") STORE("a") "}\n",
               "may differ between lane 0 and lane 4");
}

// 11 lanes: what a lane past the tenth gives is never used.
#define GUARD(result, sum, offset) LET(result, "f32", "select(lt(add(" THREAD ", " offset ":i32), 11:i32), " sum ", x)")
#define ELEVEN(mask, guard_offset)                                                                            \
  OWN DOWN("a", "x", mask, "8") GUARD("b", "add(x, a)", guard_offset) DOWN("c", "b", mask, "1")                \
  LET("d", "f32", "select(lt(add(" THREAD ", 1:i32), 11:i32), add(b, c), b)") STORE("d")

Test(prove, accepts_a_guarded_down_over_eleven) { expect_proof("11", "11 1 1", "", ELEVEN("2047", "8"), NULL); }
Test(prove, accepts_a_stricter_guard) { expect_proof("11", "11 1 1", "", ELEVEN("2047", "9"), NULL); }
Test(prove, rejects_a_guard_that_lets_one_lane_through) {
  expect_proof("guard", "11 1 1", "", ELEVEN("2047", "7"), "lane 2 uses, as a value to store, a value that a lane outside its mask gave");
}
Test(prove, rejects_a_mask_that_is_too_small) {
  expect_proof("small", "11 1 1", "", ELEVEN("1023", "8"), "lane 10 executes shfl_down and is not in its own mask 0x000003ff");
}
Test(prove, rejects_a_mask_with_absent_lanes) {
  expect_proof("absent", "11 1 1", "", ELEVEN(ALL, "8"), "the mask 0xffffffff of shfl_down names lane 11 of warp 0, which the block does not have");
}
Test(prove, rejects_a_shifted_mask) {
  expect_proof("shifted", "11 1 1", "", ELEVEN("4094", "8"), "lane 0 executes shfl_down and is not in its own mask 0x00000ffe");
}
Test(prove, rejects_a_missing_guard) {
  expect_proof("no guard", "11 1 1", "", OWN DOWN("a", "x", "2047", "8") LET("b", "f32", "add(x, a)") STORE("b"), "lane 3 uses, as a value to store");
}
Test(prove, accepts_a_missing_guard_where_only_the_first_lane_uses_the_result) {
  // lane 0 reads lanes 8 and 1, both inside; lane 3 holds poison that nobody uses
  expect_proof("first", "11 1 1", "", OWN DOWN("a", "x", "2047", "8") LET("b", "f32", "add(x, a)") DOWN("c", "b", "2047", "1") "if eq(" THREAD ", 0:i32) {\n" STORE("add(b, c)") "}\n", NULL);
}
Test(prove, rejects_poison_that_arrives_at_the_first_lane) {
  expect_proof("first", "11 1 1", "", OWN DOWN("a", "x", "2047", "8") LET("b", "f32", "add(x, a)") DOWN("c", "b", "2047", "3") "if eq(" THREAD ", 0:i32) {\n" STORE("add(b, c)") "}\n",
               "lane 0 uses, as a value to store");
}
Test(prove, keeps_a_lane_past_the_end_of_the_warp_for_itself) {
  expect_proof("past 31", "32 1 1", "", OWN DOWN("a", "x", ALL, "16") STORE("a"), NULL);
}
Test(prove, rejects_a_source_lane_outside_by_xor) {
  expect_proof("xor", "24 1 1", "", OWN XOR("a", "x", "16777215", "8") STORE("a"), "lane 16 uses");
}
Test(prove, rejects_a_source_lane_outside_by_index) {
  expect_proof("idx", "24 1 1", "", OWN LET("a", "f32", "shfl_idx(16777215:u32, x, 24:u32)") STORE("a"), "lane 0 uses");
}
Test(prove, rejects_poison_as_an_index) {
  expect_proof("index", "24 1 1", "", OWN LET("a", "i32", "shfl_xor(16777215:u32, " THREAD ", 8:u32)") "store_flat B[a] = x\n", "lane 16 uses, as an index");
}
Test(prove, rejects_poison_as_a_condition) {
  expect_proof("condition", "24 1 1", "", OWN XOR("a", "x", "16777215", "8") "if lt(a, x) {\n" STORE("x") "}\n", "lane 16 uses, as a condition");
}
Test(prove, rejects_poison_as_a_mask) {
  expect_proof("mask", "24 1 1", "", OWN LET("m", "u32", "shfl_xor(16777215:u32, 16777215:u32, 8:u32)") LET("a", "f32", "shfl_xor(m, x, 4:u32)") STORE("a"), "lane 16 uses, as a mask");
}
Test(prove, rejects_poison_as_an_operand_of_a_division_that_becomes_a_branch) {
#define DIVIDE(a) LET("x", "i64", "cast.i64(add(" THREAD ", 1:i32))") LET("o", "i64", "shfl_xor(16777215:u32, x, 8:u32)") LET("g", "bool", "lt(" THREAD ", 16:i32)") LET("q", "i64", "rem(x, " a ")") \
    "store_flat B[" THREAD "] = cast.f32(select(g, q, x))\n"
  expect_proof("division", "24 1 1", "", DIVIDE("o"), "lane 16 uses, as an operand of a 64-bit division");
  expect_proof("division", "24 1 1", "", DIVIDE("select(g, o, x)"), NULL);
}
Test(prove, follows_poison_through_a_variable) {
  expect_proof("loop", "11 1 1", "",
               "var s: f32 = load_flat(A, " THREAD ")\nfor r: i32 in 0:i32 .. block.x:i32 unroll never {\n" DOWN("a", "s", "2047", "1") "set s = add(s, a)\n}\nif eq(" THREAD ", 10:i32) {\n" STORE("s") "}\n",
               "lane 10 uses, as a value to store");
}
Test(prove, rejects_masks_that_differ_between_lanes_that_name_each_other) {
  expect_proof("unequal", "32 1 1", "", OWN LET("m", "u32", "select(lt(" THREAD ", 16:i32), " ALL ":u32, 4294901760:u32)") LET("a", "f32", "shfl_xor(m, x, 1:u32)") STORE("a"),
               "lane 0 has the mask 0xffffffff at shfl_xor, lane 16 of the same mask has 0xffff0000");
}
Test(prove, rejects_a_mask_that_depends_on_data) {
  expect_proof("data", "32 1 1", "", OWN LET("m", "u32", "select(lt(x, 0.0:f32), " ALL ":u32, 65535:u32)") LET("a", "f32", "shfl_xor(m, x, 1:u32)") STORE("a"), "cannot be told from the thread's number");
}
Test(prove, rejects_a_shuffle_that_named_lanes_do_not_reach) {
  expect_proof("guarded", "32 1 1", "", OWN "if lt(" THREAD ", 16:i32) {\n" XOR("a", "x", ALL, "1") STORE("a") "}\n", "the mask 0xffffffff of shfl_xor names lane 16, which does not come here");
}
Test(prove, accepts_a_shuffle_of_the_lanes_of_a_branch) {
  expect_proof("guarded", "32 1 1", "", OWN "if lt(" THREAD ", 16:i32) {\n" XOR("a", "x", "65535", "1") STORE("a") "}\n", NULL);
}
Test(prove, accepts_whole_warps_under_a_condition) {
  expect_proof("warps", "64 1 1", "", OWN "if eq(quo(" THREAD ", 32:i32), 1:i32) {\n" XOR("a", "x", ALL, "1") STORE("a") "}\n", NULL);
}
Test(prove, rejects_a_shuffle_under_a_condition_on_data) {
  expect_proof("data", "32 1 1", "", OWN "if lt(x, 0.0:f32) {\n" XOR("a", "x", ALL, "1") STORE("a") "}\n", "may differ between lane 0 and lane 1");
}
Test(prove, accepts_a_collective_under_a_condition_on_the_block) {
  expect_proof("block", "32 1 1", "", OWN "if eq(rem(block.x:i32, 2:i32), 0:i32) {\n" XOR("a", "x", ALL, "1") "barrier\n" STORE("a") "}\n", NULL);
}
Test(prove, rejects_a_shuffle_in_a_loop_of_different_lengths) {
  expect_proof("loop", "32 1 1", "", OWN "for r: i32 in 0:i32 .. cast.i32(x) unroll never {\n" XOR("a", "x", ALL, "1") STORE("a") "}\n", "may differ between lane 0 and lane 1");
}
Test(prove, rejects_a_shuffle_in_a_loop_of_known_different_lengths) {
  expect_proof("loop", "32 1 1", "", OWN "for r: i32 in 0:i32 .. " THREAD " unroll never {\n" XOR("a", "x", ALL, "1") STORE("a") "}\n", "names lane 0, which does not come here");
}
Test(prove, rejects_a_barrier_under_a_condition_on_data) {
  expect_proof("data", "64 1 1", "", OWN "if lt(x, 0.0:f32) {\nbarrier\n}\n" STORE("x"), "may differ between threads of the block");
}
Test(prove, rejects_a_barrier_under_a_condition_on_the_thread) {
  expect_proof("thread", "64 1 1", "", OWN "if lt(" THREAD ", 32:i32) {\nbarrier\n}\n" STORE("x"), "lane 0 of warp 1 of the block does not come to this barrier");
}
Test(prove, rejects_a_barrier_of_one_warp_where_the_warps_may_differ) {
  // the same for all lanes of a warp, which is enough for a shuffle and too little for a barrier
  expect_proof("shuffle", "64 1 1", "", OWN "if lt(add(mul(block.x:i32, 2:i32), quo(" THREAD ", 32:i32)), cast.i32(n)) {\n" XOR("a", "x", ALL, "1") STORE("a") "}\n", NULL);
  expect_proof("barrier", "64 1 1", "", OWN "if lt(add(mul(block.x:i32, 2:i32), quo(" THREAD ", 32:i32)), cast.i32(n)) {\nbarrier\n" STORE("x") "}\n", "may differ between threads of the block");
}
Test(prove, bounds_indices_into_local_memory) {
  const char *local = "    local t: f32[4:i64] strides [1:i64] align 4";
  expect_proof("local", "32 1 1", local, OWN "for r: i32 in 0:i32 .. min(cast.i32(n), 4:i32) unroll never {\nstore_flat t[r] = x\n}\n" STORE("x"), NULL);
  expect_proof("local", "32 1 1", local, OWN "for r: i32 in 0:i32 .. min(cast.i32(n), 5:i32) unroll never {\nstore_flat t[r] = x\n}\n" STORE("x"), "may be 0 to 4");
  expect_proof("local", "32 1 1", local, OWN LET("r", "i32", "cast.i32(n)") "if and(ge(r, 0:i32), lt(r, 4:i32)) {\nstore_flat t[r] = x\n}\n" STORE("x"), NULL);
  expect_proof("local", "32 1 1", local, OWN LET("r", "i32", "cast.i32(n)") "if lt(r, 4:i32) {\nstore_flat t[r] = x\n}\n" STORE("x"), "index of 't'");
}
Test(prove, says_what_it_proved) {
  struct proved p;
  struct ir_entry *entry = proved_begin(&p, "40 1 1", "", OWN LET("m", "u32", "select(lt(" THREAD ", 32:i32), " ALL ":u32, 255:u32)") LET("a", "f32", "shfl_xor(m, x, 1:u32)") "barrier\n" STORE("a"));
  cr_assert(pass_prove(&p.context, p.module.kernels.at[0], entry));
  cr_expect_str_eq(p.explain.data, "k:0:0: shfl_xor: mask 0xffffffff in warp 0, 0x000000ff in warp 1: proved\nk:0:0: barrier: proved\n");
  proved_end(&p);
}
