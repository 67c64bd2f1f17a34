// What pass `prove` says of shared memory: bounds, races, words that nothing wrote. Each planted fault is named.
#include "tests/unit/prove_cases.h"

#define SHARED(words) "    shared s: f32[" words ":i64] strides [1:i64] align 4"
#define PUT(index, value) "store_flat s[" index "] = " value "\n"
#define GET(result, index) LET(result, "f32", "load_flat(s, " index ")")
#define BARRIER "barrier\n"
#define T THREAD

static void expect(const char *block, const char *memory, const char *body, const char *message) { expect_proof("shared", block, memory, body, message); }

// --- Bounds ---------------------------------------------------------------------------------------------------------

Test(prove_shared, rejects_an_index_off_by_one) {
  expect("64 1 1", SHARED("64"), OWN PUT("add(" T ", 1:i32)", "x"), "lane 31 of warp 1 uses index 64 of 's', which has 64 elements");
  expect("64 1 1", SHARED("64"), OWN PUT("sub(" T ", 1:i32)", "x"), "lane 0 of warp 0 uses index -1 of 's'");
  expect("64 1 1", SHARED("65"), OWN PUT("add(" T ", 1:i32)", "x"), NULL);
}
Test(prove_shared, asks_only_threads_that_come_for_their_index) {
  expect("64 1 1", SHARED("64"), OWN "if lt(" T ", 63:i32) {\n" PUT("add(" T ", 1:i32)", "x") "}\n", NULL);
  expect("64 1 1", SHARED("64"), OWN "if and(lt(" T ", 63:i32), lt(x, 0.0:f32)) {\n" PUT("add(" T ", 1:i32)", "x") "}\n", NULL);
}
Test(prove_shared, bounds_an_index_of_a_loop) {
#define ROWS(limit) OWN "for r: i32 in 0:i32 .. min(cast.i32(n), " limit ") unroll never {\n" PUT("add(mul(r, 8:i32), " T ")", "x") "}\n"
  expect("8 1 1", SHARED("800"), ROWS("100:i32"), NULL);
  expect("8 1 1", SHARED("800"), ROWS("101:i32"), "may be 0 to 807");
}
Test(prove_shared, bounds_all_neighbours_of_a_wide_access) {
#define WIDE "if lt(" T ", 16:i32) {\nstore_wide_flat s[mul(" T ", 4:i32)] = (x, x, x, x)\n}\n"
  expect("32 1 1", SHARED("64"), OWN WIDE, NULL);
  expect("32 1 1", SHARED("63"), OWN WIDE, "lane 15 uses index 63 of 's', which has 63 elements");
}

// --- Races ----------------------------------------------------------------------------------------------------------

#define REVERSE(between) OWN PUT(T, "x") between GET("y", "sub(63:i32, " T ")") STORE("y")
Test(prove_shared, accepts_a_barrier_between_a_store_and_anothers_load) { expect("64 1 1", SHARED("64"), REVERSE(BARRIER), NULL); }
Test(prove_shared, rejects_a_store_and_anothers_load_without_barrier) {
  expect("64 1 1", SHARED("64"), REVERSE(""), "lane 0 of warp 0 reads a word of 's' that another thread wrote, with no barrier between");
}
Test(prove_shared, accepts_a_thread_that_reads_its_own_word) { expect("64 1 1", SHARED("64"), OWN PUT(T, "x") GET("y", T) STORE("y"), NULL); }
Test(prove_shared, rejects_two_stores_to_one_word) {
  expect("64 1 1", SHARED("64"), OWN PUT("quo(" T ", 2:i32)", "x"), "lane 1 of warp 0 writes a word of 's' that another thread wrote");
}
Test(prove_shared, accepts_many_readers_of_one_word) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") BARRIER GET("y", "0:i32") STORE("y"), NULL);
}
Test(prove_shared, rejects_scratch_used_again_without_barrier) {
#define AGAIN(between) OWN PUT(T, "x") BARRIER GET("y", "sub(63:i32, " T ")") between PUT(T, "y") BARRIER GET("z", "sub(63:i32, " T ")") STORE("z")
  expect("64 1 1", SHARED("64"), AGAIN(BARRIER), NULL);
  expect("64 1 1", SHARED("64"), AGAIN(""), "lane 0 of warp 0 writes a word of 's' that another thread read");
}
#define LOOP(trips, head) "for r: i32 in 0:i32 .. " trips " unroll never {\n" LET("x", "f32", "load_flat(A, add(r, " T "))") head PUT(T, "x") BARRIER GET("y", "sub(63:i32, " T ")") STORE("y") "}\n"
Test(prove_shared, rejects_scratch_used_again_in_the_next_iteration) {
  expect("64 1 1", SHARED("64"), LOOP("cast.i32(n)", BARRIER), NULL);
  expect("64 1 1", SHARED("64"), LOOP("cast.i32(n)", ""), "writes a word of 's' that another thread read");
  expect("64 1 1", SHARED("64"), LOOP("3:i32", BARRIER), NULL);
  expect("64 1 1", SHARED("64"), LOOP("3:i32", ""), "writes a word of 's' that another thread read");
  expect("64 1 1", SHARED("64"), LOOP("1:i32", ""), NULL);
}
Test(prove_shared, accepts_two_buffers_by_turns_in_a_short_loop) {
#define TURNS(trips, parts) "for r: i32 in 0:i32 .. " trips " unroll never {\n" LET("x", "f32", "load_flat(A, add(r, " T "))") LET("h", "i32", "mul(rem(r, " parts ":i32), 64:i32)") \
    PUT("add(h, " T ")", "x") BARRIER GET("y", "add(h, sub(63:i32, " T "))") STORE("y") "}\n"
  expect("64 1 1", SHARED("128"), TURNS("8:i32", "2"), NULL);
  expect("64 1 1", SHARED("128"), TURNS("8:i32", "1"), "writes a word of 's' that another thread read");
}
Test(prove_shared, accepts_two_buffers_by_turns_in_a_long_loop) {
  expect("64 1 1", SHARED("128"), TURNS("cast.i32(n)", "2"), NULL);
  expect("64 1 1", SHARED("192"), TURNS("cast.i32(n)", "3"), NULL);
  expect("64 1 1", SHARED("64"), TURNS("cast.i32(n)", "1"), "writes a word of 's' that another thread read");
}
Test(prove_shared, meets_the_last_iteration_of_a_loop_with_its_first_in_a_loop_around) {
#define AROUND(inside) "for o: i32 in 0:i32 .. cast.i32(n) unroll never {\nfor p: i32 in 0:i32 .. cast.i32(n) unroll never {\n" inside "}\n}\n"
#define ONE(place) LET("x", "f32", "load_flat(A, " T ")") PUT(place, "x") BARRIER GET("y", "sub(63:i32, " T ")") STORE("y")
  // three turns with two buffers: the third and the next first one use the same
  expect("64 1 1", SHARED("128"), AROUND(TURNS("3:i32", "2")), "writes a word of 's' that another thread read");
  expect("64 1 1", SHARED("192"), AROUND(TURNS("3:i32", "3")), NULL);
  expect("64 1 1", SHARED("64"), AROUND("for r: i32 in 0:i32 .. 1:i32 unroll never {\n" ONE(T) "}\n"), "writes a word of 's' that another thread read");
  expect("64 1 1", SHARED("64"), AROUND("for r: i32 in 0:i32 .. cast.i32(n) unroll never {\n" ONE(T) "}\n"), "writes a word of 's' that another thread read");
  expect("64 1 1", SHARED("64"), AROUND("for r: i32 in 0:i32 .. cast.i32(n) unroll never {\n" BARRIER ONE(T) "}\n"), NULL);
  expect("64 1 1", SHARED("128"), AROUND("for r: i32 in 0:i32 .. 1:i32 unroll never {\n" ONE("add(mul(rem(o, 2:i32), 64:i32), " T ")") "}\n"), "writes a word of 's' that another thread read");
}
Test(prove_shared, counts_turns_from_where_the_loop_begins) {
#define FROM(lo, first) PUT("add(" first ", " T ")", "0.0:f32") BARRIER "for r: i32 in " lo " .. min(cast.i32(n), 1000:i32) unroll never {\n" GET("y", "add(mul(rem(r, 2:i32), 64:i32), sub(63:i32, " T "))") STORE("y") \
    "if lt(x, 0.0:f32) {\nfor q: i32 in 0:i32 .. 9:i32 unroll never {\n" STORE("x") "}\n}\n" PUT("add(mul(rem(add(r, 1:i32), 2:i32), 64:i32), " T ")", "y") BARRIER "}\n"
  expect("64 1 1", SHARED("128"), OWN FROM("0:i32", "0:i32"), NULL);
  expect("64 1 1", SHARED("128"), OWN FROM("1:i32", "64:i32"), NULL);
  expect("64 1 1", SHARED("128"), OWN FROM("1:i32", "0:i32"), "reads element 127 of 's', which nothing wrote");
  expect("64 1 1", SHARED("128"), OWN FROM("and(cast.i32(n), 7:i32)", "0:i32"), "nothing wrote");
}
Test(prove_shared, rejects_two_buffers_that_come_again_before_a_barrier) {
  // the barrier of every other iteration only: the third meets the first
  expect("64 1 1", SHARED("128"),
         "for r: i32 in 0:i32 .. cast.i32(n) unroll never {\n" LET("x", "f32", "load_flat(A, add(r, " T "))") LET("h", "i32", "mul(rem(r, 2:i32), 64:i32)") PUT("add(h, " T ")", "x")
         "if eq(rem(r, 4:i32), 0:i32) {\n" BARRIER "}\n" "if eq(rem(r, 4:i32), 0:i32) {\n" GET("y", "add(h, sub(63:i32, " T "))") STORE("y") "}\n}\n",
         "writes a word of 's' that another thread read");
}
Test(prove_shared, accepts_the_next_tile_stored_while_this_one_is_read) {
#define AHEAD(next) PUT(T, "0.0:f32") BARRIER "for r: i32 in 0:i32 .. min(cast.i32(n), 1000:i32) unroll never {\n" GET("y", "add(mul(rem(r, 2:i32), 64:i32), sub(63:i32, " T "))") STORE("y") \
    PUT("add(mul(rem(add(r, " next ":i32), 2:i32), 64:i32), " T ")", "y") BARRIER "}\n"
  expect("64 1 1", SHARED("128"), AHEAD("1"), NULL);
  expect("64 1 1", SHARED("128"), AHEAD("2"), "writes a word of 's' that another thread read");
}
Test(prove_shared, tells_slots_of_threads_apart_whatever_the_counter) {
  // each thread its own column, in every row
  expect("64 1 1", SHARED("6400"), "for r: i32 in 0:i32 .. min(cast.i32(n), 100:i32) unroll never {\n" LET("x", "f32", "load_flat(A, r)") PUT("add(mul(r, 64:i32), " T ")", "x") GET("y", "add(mul(r, 64:i32), " T ")") STORE("y") "}\n", NULL);
  expect("64 1 1", SHARED("6400"), "for r: i32 in 0:i32 .. min(cast.i32(n), 100:i32) unroll never {\n" LET("x", "f32", "load_flat(A, r)") PUT("add(mul(r, 63:i32), " T ")", "x") "}\n", "may write a word of 's' that another thread may have written");
}
Test(prove_shared, rejects_a_place_that_depends_on_data) {
  expect("64 1 1", SHARED("64"), OWN LET("w", "i32", "and(cast.i32(x), 63:i32)") PUT("w", "x"), "may write a word of 's' that another thread may write");
}
Test(prove_shared, follows_both_sides_of_a_uniform_condition) {
#define SIDES(first, second) OWN "if lt(block.x:i32, 3:i32) {\n" PUT(T, "x") first GET("y", "sub(63:i32, " T ")") STORE("y") "} else {\n" PUT("sub(63:i32, " T ")", "x") second GET("z", T) STORE("z") "}\n"
  expect("64 1 1", SHARED("64"), SIDES(BARRIER, BARRIER), NULL);
  expect("64 1 1", SHARED("64"), SIDES("", BARRIER), "reads a word of 's' that another thread wrote");
  expect("64 1 1", SHARED("64"), SIDES(BARRIER, ""), "reads a word of 's' that another thread wrote");
}
Test(prove_shared, rejects_a_barrier_that_only_one_side_has) {
  expect("64 1 1", SHARED("64"), OWN PUT(T, "x") "if lt(block.x:i32, 3:i32) {\n" BARRIER "}\n" GET("y", "sub(63:i32, " T ")") STORE("y"), "reads a word of 's' that another thread wrote");
}

// --- Warp barriers ----------------------------------------------------------------------------------------------------

#define SYNC(mask) "syncwarp " mask ":u32\n"
Test(prove_shared, orders_a_warp_by_its_barrier) {
#define PAIR(between) OWN PUT(T, "x") between GET("y", "xor(" T ", 1:i32)") STORE("y")
  expect("32 1 1", SHARED("32"), PAIR(SYNC("4294967295")), NULL);
  expect("64 1 1", SHARED("64"), PAIR(SYNC("4294967295")), NULL);
  expect("32 1 1", SHARED("32"), PAIR(""), "reads a word of 's' that another thread wrote");
}
Test(prove_shared, rejects_a_warp_barrier_with_the_wrong_mask) {
  // even and odd lanes wait among themselves, neighbours do not
  expect("32 1 1", SHARED("32"), OWN PUT(T, "x") "syncwarp shl(1431655765:u32, cast.u32(rem(" T ", 2:i32)))\n" GET("y", "xor(" T ", 1:i32)") STORE("y"), "lane 0 reads a word of 's' that another thread wrote");
  expect("32 1 1", SHARED("32"), OWN PUT(T, "x") "syncwarp shl(1431655765:u32, cast.u32(rem(" T ", 2:i32)))\n" GET("y", "xor(" T ", 2:i32)") STORE("y"), NULL);
  expect("24 1 1", SHARED("24"), PAIR(SYNC("4294967295")), "the mask 0xffffffff of syncwarp names lane 24 of warp 0, which the block does not have");
  expect("24 1 1", SHARED("24"), PAIR(SYNC("8388607")), "lane 23 executes syncwarp and is not in its own mask");
}
Test(prove_shared, does_not_order_warps_by_a_warp_barrier) {
  expect("64 1 1", SHARED("64"), REVERSE(SYNC("4294967295")), "reads a word of 's' that another thread wrote");
}
Test(prove_shared, joins_what_two_warp_barriers_order) {
  // lane 0 to 1 by the first, 1 to 2 by the second: 0 is before 2 as well
  const char *chain = OWN "if eq(" T ", 0:i32) {\n" PUT("0:i32", "x") "}\nif lt(" T ", 2:i32) {\n" SYNC("3") "}\nif and(gt(" T ", 0:i32), lt(" T ", 3:i32)) {\n" SYNC("6") "}\nif eq(" T ", 2:i32) {\n" GET("y", "0:i32") STORE("y") "}\n";
  expect("32 1 1", SHARED("32"), chain, NULL);
}

// --- Words that nothing wrote -------------------------------------------------------------------------------------------

Test(prove_shared, rejects_a_word_that_nothing_wrote) {
  expect("32 1 1", SHARED("33"), OWN PUT(T, "x") BARRIER GET("y", "add(" T ", 1:i32)") STORE("y"), "lane 31 reads element 32 of 's', which nothing wrote");
  expect("32 1 1", SHARED("32"), OWN "if lt(" T ", 31:i32) {\n" PUT(T, "x") "}\n" BARRIER GET("y", T) STORE("y"), "lane 31 reads element 31 of 's', which nothing wrote");
}
Test(prove_shared, rejects_a_word_that_perhaps_nothing_wrote) {
  expect("32 1 1", SHARED("32"), OWN "if lt(x, 0.0:f32) {\n" PUT(T, "x") "}\n" BARRIER GET("y", T) STORE("y"), "lane 0 reads element 0 of 's', which perhaps nothing wrote");
  expect("32 1 1", SHARED("32"), OWN "for r: i32 in 0:i32 .. cast.i32(n) unroll never {\n" PUT(T, "x") "}\n" BARRIER GET("y", T) STORE("y"), "which perhaps nothing wrote");
}
Test(prove_shared, accepts_a_load_under_the_condition_of_the_store) {
  expect("32 1 1", SHARED("32"), OWN "if lt(block.x:i32, 2:i32) {\n" PUT(T, "x") "}\n" BARRIER "if lt(block.x:i32, 2:i32) {\n" GET("y", "sub(31:i32, " T ")") STORE("y") "}\n", NULL);
}

// --- Reductions -------------------------------------------------------------------------------------------------------

// 100 threads: shuffles in a warp, a word a warp, shuffles in the first warp.
#define DOWN_IN_BLOCK(n, m, offset) LET("o" n, "f32", "shfl_down(mask, p" m ", " offset ":u32)") LET("p" n, "f32", "select(lt(add(" T ", " offset ":i32), 100:i32), add(p" m ", o" n "), p" m ")")
#define TWO_STAGES(mask, leader, words, barrier, last)                                                          \
  LET("p0", "f32", "load_flat(A, " T ")") LET("lane", "i32", "rem(" T ", 32:i32)") LET("warp", "i32", "quo(" T ", 32:i32)") LET("mask", "u32", mask)    \
  DOWN_IN_BLOCK("1", "0", "16") DOWN_IN_BLOCK("2", "1", "8") DOWN_IN_BLOCK("3", "2", "4") DOWN_IN_BLOCK("4", "3", "2") DOWN_IN_BLOCK("5", "4", "1")      \
  "if eq(lane, " leader ":i32) {\n" PUT("warp", "p5") "}\n" barrier                                             \
  "if eq(warp, 0:i32) {\n" GET("q0", "rem(lane, " words ":i32)") XOR("r1", "q0", last, "2") XOR("r2", "add(q0, r1)", last, "1")                         \
  "if eq(lane, 0:i32) {\n" STORE("add(add(q0, r1), r2)") "}\n}\n"
#define PARTIAL "select(eq(warp, 3:i32), 15:u32, 4294967295:u32)"
Test(prove_shared, accepts_two_stages_with_a_partial_last_warp) { expect("100 1 1", SHARED("4"), TWO_STAGES(PARTIAL, "0", "4", BARRIER, "4294967295"), NULL); }
Test(prove_shared, rejects_two_stages_with_a_whole_mask) {
  expect("100 1 1", SHARED("4"), TWO_STAGES("4294967295:u32", "0", "4", BARRIER, "4294967295"), "names lane 4 of warp 3, which the block does not have");
}
Test(prove_shared, rejects_two_stages_whose_last_mask_is_too_small) {
  expect("100 1 1", SHARED("4"), TWO_STAGES(PARTIAL, "0", "4", BARRIER, "15"), "lane 4 of warp 0 executes shfl_xor and is not in its own mask");
}
Test(prove_shared, rejects_two_stages_without_barrier) {
  expect("100 1 1", SHARED("4"), TWO_STAGES(PARTIAL, "0", "4", "", "4294967295"), "reads a word of 's' that another thread wrote");
}
Test(prove_shared, rejects_two_stages_that_read_a_word_too_many) {
  expect("100 1 1", SHARED("4"), TWO_STAGES(PARTIAL, "0", "5", BARRIER, "4294967295"), "uses index 4 of 's', which has 4 elements");
  expect("100 1 1", SHARED("8"), TWO_STAGES(PARTIAL, "0", "5", BARRIER, "4294967295"), "reads element 4 of 's', which nothing wrote");
}
Test(prove_shared, rejects_two_stages_whose_leader_is_missing_in_the_last_warp) {
  expect("100 1 1", SHARED("4"), TWO_STAGES(PARTIAL, "4", "4", BARRIER, "4294967295"), "reads element 3 of 's', which nothing wrote");
}

// A tree over 48 threads.
#define STEP(n, m, offset, limit, barrier)                                                                      \
  "if and(lt(" T ", " offset ":i32), lt(add(" T ", " offset ":i32), " limit ":i32)) {\n" GET("o" n, "add(" T ", " offset ":i32)") GET("w" n, T) PUT(T, "add(w" n ", o" n ")") "}\n" barrier
#define TREE(one, two)                                                                                          \
  OWN PUT(T, "x") BARRIER STEP("1", "0", "32", "48", BARRIER) STEP("2", "1", "16", "48", one) STEP("3", "2", "8", "48", BARRIER) STEP("4", "3", "4", "48", two)                        \
  STEP("5", "4", "2", "48", BARRIER) STEP("6", "5", "1", "48", BARRIER) GET("y", "0:i32") STORE("y")
Test(prove_shared, accepts_a_tree) { expect("48 1 1", SHARED("48"), TREE(BARRIER, BARRIER), NULL); }
Test(prove_shared, rejects_a_tree_without_one_of_its_barriers) {
  expect("48 1 1", SHARED("48"), TREE("", BARRIER), "reads a word of 's' that another thread wrote");
  expect("48 1 1", SHARED("48"), TREE(BARRIER, ""), "reads a word of 's' that another thread wrote");
}
Test(prove_shared, accepts_a_tree_with_warp_barriers_where_one_warp_works) {
  expect("48 1 1", SHARED("48"), TREE(BARRIER, "if lt(" T ", 32:i32) {\n" SYNC("4294967295") "}\n"), NULL);
  expect("48 1 1", SHARED("48"), TREE(BARRIER, "if lt(" T ", 2:i32) {\n" SYNC("3") "}\n"), "reads a word of 's' that another thread wrote");
}
