// odd_runs: permutes whose fastest axis stays and is of any length. Its runs begin at no multiple of a word, so that direct accesses, and boxes, go element by element.
//
//   Y[b, a, r] = X[a, b, r]     u8, 91 by 91 runs of 8099 bytes
//
// A block copies runs of the input to shared memory as they lie, in pieces of 16 bytes counted from the start of X, and writes them in words counted from the start
// of Y: both are whole accesses wherever a run begins, and only the first and the last word of a run are written by elements. What is left in single elements
// are the reads of shared memory.
//
//   very long    pieces of 8 KiB of the output, counted from its start
//   long         parts of a run that are as alike as can be
//   whole        one run a block
//   short        boxes of neighbours along `out`, next to the run in the output, by neighbours along `in`, next to it in the input. A thread keeps its place in the run and
//                takes rows that lie whole words apart, so that it finds out once where its words begin.
//   shortest     the same, where words go on from one run to the next: a thread keeps its place in the run of the output, and takes rows along `in` alone.
#include <string.h>

#include "passes/automatic_permute.h"

// Bytes, but for threads (MOST_LANES) and steps of a thread.
enum { VERY_LONG = 512 * 1024, LONG = 16 * 1024, CHUNK = 8 * 1024, BOX = 8 * 1024, MOST_BOX = 40 * 1024, MOST_LANES = 384, ROW_OUT = 512, MOST_SPANNED = 384, SPANNED_OUT = 2 * 1024, SPANNED_IN = 200, SPANNED_BOX = 24 * 1024, LEAST_OUT = 900, MOST_STEPS = 8 };

// How a block takes runs.
struct odd {
  struct group *run, *out, *in;  // out and in: next to the run in the output and in the input; NULL: there is none, or it stays outside
  int64_t part, outs, ins;       // iterations of these in a block
  bool is_spanned;               // words go on from a row to the next along `out`
  bool is_row_out, is_row_in;    // steps along these do not continue the run of the input
  int64_t length;                // elements of such a run
  int64_t word, piece;           // elements: of an access of the output, and of the input
  int64_t words;                 // accesses of a run of the output
  int64_t lanes, outs_at_once, ins_at_once; // threads along words, out and in
};

static bool stride_of(const struct permute *p, const struct view_access *access, const struct group *group, int64_t *stride) {
  return poly_is_constant(permute_stride(p, access, group), stride) && *stride > 0;
}

// Whether both tensors lie dense, each is moved once, and the run is the fastest of both.
static bool can_be_copied(struct permute *p, const struct group *run) {
  const struct ir_mem *copies[MOST_COPIES];
  int reads = 0;
  if (run != p->fast_in || run != &p->groups[p->group_count - 1] || p->load->mem->is_strided || p->store->mem->is_strided || permute_copies(p, copies) != 1 || copies[0] != p->load->mem) return false;
  for (uint32_t i = 0; i < p->view.accesses.count; i++) {
    const struct view_access *access = p->view.accesses.at[i];
    reads += !access->is_store && access->mem == p->load->mem;
    if (!access->is_store && access->mem == p->store->mem) return false;
  }
  return reads == 1 && permute_is_dense(p);
}

// So many of an axis a tile that tiles are as alike as can be.
static int64_t even(int64_t count, int64_t most) {
  int64_t tiles = (count + most - 1) / most;
  return (count + tiles - 1) / tiles;
}

static int64_t at_least(int64_t n, int64_t least) { return n < least ? least : n; }
static int64_t at_most(int64_t n, int64_t most) { return n > most ? most : n; }

// The axes next to the run; false: it has none.
static bool find_near(struct permute *p, struct odd *o, int64_t *step_in) {
  int64_t least_out = 0, least_in = 0, stride;
  for (int g = 0; g < p->group_count; g++) {
    struct group *group = &p->groups[g];
    if (group == o->run) continue;
    if (!stride_of(p, p->store, group, &stride)) return false;
    if (!o->out || stride < least_out) o->out = group, least_out = stride;
    if (!stride_of(p, p->load, group, &stride)) return false;
    if (!o->in || stride < least_in) o->in = group, least_in = stride;
  }
  *step_in = least_in;
  return o->out && o->in != o->out;
}

// Rows of runs of so many bytes that make a box.
static void find_box(struct odd *o, int64_t bytes) {
  o->outs = at_most(at_least((ROW_OUT + bytes - 1) / bytes, 1), o->out->count);
  o->ins = at_most(at_least(BOX / (bytes * o->outs), 1), o->in->count);
  if (o->ins > o->word && o->ins < o->in->count) o->ins = at_most((even(o->in->count, o->ins) + o->word - 1) / o->word * o->word, o->in->count);
  o->outs = even(o->out->count, at_most(at_least(BOX / (bytes * o->ins), o->outs), o->out->count));
}

// The same for words that span rows: about 2 KiB of the output, by as few rows of the input as make two steps of a thread and 200 bytes. An H200, parts of a copy: u8
// [37, 37, 37, 37, 35] to (3, 2, 1, 0, 4) 0.70 with eight rows of the input, 0.58 with twenty; [91, 91, 91, 89] to (2, 1, 0, 3) 0.71 with 31 by 8 rows, 0.65 with 16 by 16.
static void find_spanned_box(struct odd *o, int64_t bytes) {
  o->ins = 2 * o->word;
  while (o->ins * bytes < SPANNED_IN) o->ins *= 2;
  while (o->ins > 1 && o->ins > o->in->count) o->ins /= 2;
  o->outs = even(o->out->count, at_least(at_most(SPANNED_OUT / bytes, SPANNED_BOX / (o->ins * bytes)), 1));
}

// How many parts a long run is cut into: of about 8 KiB, and of 12 KiB above 64. An H200, parts of a copy: u8 [47, 48, 30001] to (1, 0, 2) 0.98 and 0.91, f16 [6, 4, 3, 8, 58255] to
// (0, 1, 3, 2, 4) 0.88 and 0.96.
static int64_t parts_of(int64_t bytes) {
  int64_t part = bytes > 64 * 1024 ? CHUNK * 3 / 2 : CHUNK;
  return (bytes + part / 2) / part;
}

// What a block takes of the runs.
static bool find_rows(struct permute *p, struct odd *o, int64_t bytes) {
  int64_t step_in, stride;
  if (!find_near(p, o, &step_in)) return false;
  if (bytes > LONG) o->part = (o->run->count + parts_of(bytes) - 1) / parts_of(bytes);
  else if (o->is_spanned) find_spanned_box(o, bytes);
  else find_box(o, bytes);
  o->is_row_out = o->is_row_in = true;
  o->length = o->part;
  if (step_in == o->length && o->ins > 1) o->is_row_in = false, o->length *= o->ins;
  if (stride_of(p, p->load, o->out, &stride) && stride == o->length && o->outs > 1) o->is_row_out = false, o->length *= o->outs;
  return true;
}

// Threads: along the words of a run, then along as many rows of the input as begin at different places of a word, then along the output.
static void deal_out(struct odd *o) {
  int64_t of_out = o->is_spanned ? o->part * o->outs : o->part, phases, room, more;
  o->words = (of_out + 2 * o->word - 2) / o->word;
  if (o->is_spanned) { // one word of a row a thread, and steps along the input alone
    o->outs_at_once = o->outs;
    o->ins_at_once = at_most(o->ins, o->word);
    more = (o->words * o->ins_at_once + THREADS - 1) / THREADS;
    o->lanes = (o->words + more - 1) / more;
    return;
  }
  more = (o->words + THREADS - 1) / THREADS;
  o->lanes = (o->words + more - 1) / more;
  room = MOST_LANES / o->lanes;
  phases = room >= o->word ? o->word : 1;
  o->ins_at_once = at_most(o->ins, phases);
  o->outs_at_once = at_most(o->outs, room / o->ins_at_once);
  if (o->outs_at_once < o->outs && o->outs_at_once > o->word) o->outs_at_once -= o->outs_at_once % o->word;
  room /= o->outs_at_once * o->ins_at_once;
  o->ins_at_once = at_most(o->ins_at_once * room, o->ins);
}

static int64_t rows_of(const struct odd *o) { return o->outs * o->ins; }

// Pieces that a run of the input needs if its first element stands so far behind the start of one.
static int64_t pieces_from(const struct odd *o, int64_t phase) { return (o->length + phase - 1) / o->piece + 1; }

// Pieces behind each run for the words of the last row of which only a part is there: the proof that no thread reads behind the copy knows which threads come, not what is
// left of their words.
static int64_t pad_of(const struct odd *o) {
  int64_t loops = (o->words + o->lanes - 1) / o->lanes, over = loops * o->lanes * o->word - (o->is_spanned ? o->outs : 1) * o->part, pad = 0;
  for (int64_t phase = 0; phase < o->piece; phase += at_least(o->piece - 1, 1)) {
    int64_t behind = o->length + phase + over - pieces_from(o, phase) * o->piece;
    pad = at_least(pad, (behind + o->piece - 1) / o->piece);
  }
  return pad;
}

// Pieces of a block.
static int64_t pieces_of(const struct odd *o) { return (pieces_from(o, o->piece - 1) + pad_of(o)) * (o->is_row_out ? o->outs : 1) * (o->is_row_in ? o->ins : 1); }

// --- Text -----------------------------------------------------------------------------------------------------------

static const char *of(struct permute *p, const char *stage, const char *axis) { return arena_printf(p->arena, "%s.%s", stage, axis); }

// Splits an axis so that `inner` of it go to threads; `*loops` gets what is left.
static const char *write_part(struct permute *p, const char *axis, const char *base, int64_t count, int64_t inner, const char **loops) {
  if (inner == count) return axis;
  if (inner == 1) {
    *loops = permute_join(p, *loops, axis);
    return NULL;
  }
  const char *far = permute_fresh(p, arena_printf(p->arena, "%s_far", base)), *near = permute_fresh(p, arena_printf(p->arena, "%s_near", base));
  text_printf(p->out, "  split %s by %lld -> %s, %s;\n", axis, (long long)inner, far, near);
  *loops = permute_join(p, *loops, far);
  return near;
}

// The copy's side: all pieces of the block as one axis.
static void write_fill(struct permute *p, const struct odd *o, const char *const *rows, int row_count, int64_t pieces) {
  const char *copy = permute_copy_name(p, 0), *all = of(p, copy, "piece"), *list = NULL;
  for (int i = 0; i < row_count; i++) list = permute_join(p, list, of(p, copy, rows[i]));
  if (list) {
    const char *fill = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy));
    text_printf(p->out, "  fuse %s, %s -> %s;\n", list, all, fill);
    all = fill;
  }
  if (pieces > THREADS) {
    const char *more = permute_fresh(p, arena_printf(p->arena, "%s_more", copy)), *thread = permute_fresh(p, arena_printf(p->arena, "%s_thread", copy));
    text_printf(p->out, "  split %s by %d -> %s, %s;  bind %s -> thread.x;  unroll %s;", all, THREADS, more, thread, thread, more);
  } else {
    text_printf(p->out, "  bind %s -> thread.x;", all);
  }
  if (o->piece > 1) text_printf(p->out, "  vectorize %s.element;", copy);
  text_puts(p->out, "\n");
}

static void write_long(struct permute *p, const struct odd *o) {
  const char *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p), *far = permute_piece(p, o->run, "_tile"), *near = permute_piece(p, o->run, "_in"), *tile = permute_fresh(p, "tile"), *order = NULL;
  int64_t chunk = CHUNK / type_bytes(p->store->mem->type), words = chunk / o->word;
  for (int g = 0; g + 1 < p->group_count; g++) order = permute_join(p, order, p->groups[g].name);
  text_printf(p->out, "  split %s by %lld along %s -> %s, %s;  fuse %s, %s -> %s;  bind %s -> block.x;\n", o->run->name, (long long)chunk, p->store->mem->label, far, near, order, far, tile, tile);
  text_printf(p->out, "  stage %s at %s in shared as %s along %lld;\n", p->load->mem->label, tile, copy, (long long)o->piece);
  write_fill(p, o, NULL, 0, chunk / o->piece + 1);
  const char *word = of(p, stage, near), *element = NULL;
  text_puts(p->out, "  ");
  if (o->word > 1) {
    const char *all = word;
    word = permute_fresh(p, "word"), element = permute_fresh(p, "unit");
    text_printf(p->out, "split %s by %lld -> %s, %s;  ", all, (long long)o->word, word, element);
  }
  if (words > THREADS) {
    const char *more = permute_fresh(p, "word_more"), *thread = permute_fresh(p, "word_thread");
    text_printf(p->out, "split %s by %d -> %s, %s;  bind %s -> thread.x;  unroll %s;", word, THREADS, more, thread, thread, more);
  } else {
    text_printf(p->out, "bind %s -> thread.x;", word);
  }
  if (element) text_printf(p->out, "  vectorize %s;", element);
  text_puts(p->out, "\n");
}

// An axis of which a block takes so many: its name inside, or NULL; what is outside joins *outside.
static const char *write_tile(struct permute *p, const struct group *group, int64_t inside, const char **outside) {
  if (inside == group->count) return group->name;
  if (inside == 1) {
    *outside = permute_join(p, *outside, group->name);
    return NULL;
  }
  const char *tile = permute_piece(p, group, "_tile"), *in = permute_piece(p, group, "_in");
  text_printf(p->out, "  split %s by %lld -> %s, %s;\n", group->name, (long long)inside, tile, in);
  *outside = permute_join(p, *outside, tile);
  return in;
}

static bool is_list(const char *names) { return strchr(names, ',') != NULL; }

// The output's side: words along the run, or along all runs that lie side by side.
static void write_words(struct permute *p, const struct odd *o, const char *run, const char *outs, const char *ins) {
  const char *stage = permute_stage_name(p), *word = of(p, stage, run), *element = NULL, *loops = NULL, *threads = NULL, *out_lane = NULL, *in_lane, *lane;
  if (o->is_spanned && outs) {
    const char *all = permute_fresh(p, "run");
    text_printf(p->out, "  ");
    if (ins) text_printf(p->out, "reorder %s.%s, %s.%s, %s;  ", stage, ins, stage, outs, word);
    text_printf(p->out, "fuse %s.%s, %s -> %s;\n", stage, outs, word, all);
    word = all;
  }
  if (o->word > 1) {
    const char *all = word;
    word = permute_fresh(p, "word"), element = permute_fresh(p, "unit");
    text_printf(p->out, "  split %s by %lld along %s -> %s, %s;\n", all, (long long)o->word, p->store->mem->label, word, element);
  }
  if (o->is_spanned) { // steps along the input are the innermost
    lane = write_part(p, word, "word", o->words, o->lanes, &loops);
    in_lane = ins ? write_part(p, of(p, stage, ins), ins, o->ins, o->ins_at_once, &loops) : NULL;
  } else {
    out_lane = outs ? write_part(p, of(p, stage, outs), outs, o->outs, o->outs_at_once, &loops) : NULL;
    in_lane = ins ? write_part(p, of(p, stage, ins), ins, o->ins, o->ins_at_once, &loops) : NULL;
    lane = write_part(p, word, "word", o->words, o->lanes, &loops);
  }
  if (out_lane) threads = permute_join(p, threads, out_lane);
  if (in_lane) threads = permute_join(p, threads, in_lane);
  if (lane) threads = permute_join(p, threads, lane);
  const char *order = loops ? permute_join(p, loops, threads) : threads;
  if (element) order = permute_join(p, order, element);
  if (is_list(order)) text_printf(p->out, "  reorder %s;\n", order);
  text_puts(p->out, "  ");
  if (is_list(threads)) {
    const char *thread = permute_fresh(p, "out");
    text_printf(p->out, "fuse %s -> %s;  ", threads, thread);
    threads = thread;
  }
  text_printf(p->out, "bind %s -> thread.x;", threads);
  if (element) text_printf(p->out, "  vectorize %s;", element);
  if (o->is_spanned && in_lane && o->ins > o->ins_at_once && o->ins <= MOST_STEPS * o->ins_at_once) text_printf(p->out, "  unroll %s;", strrchr(loops, ' ') ? strrchr(loops, ' ') + 1 : loops);
  text_puts(p->out, "\n");
}

static void write_rows(struct permute *p, const struct odd *o) {
  const char *copy = permute_copy_name(p, 0), *outside = NULL, *outs = NULL, *ins = NULL, *run, *inside = NULL, *rows[2];
  int row_count = 0;
  for (int g = 0; g + 1 < p->group_count; g++) {
    const struct group *group = &p->groups[g];
    if (group == o->out) outs = write_tile(p, group, o->outs, &outside);
    else if (group == o->in) ins = write_tile(p, group, o->ins, &outside);
    else outside = permute_join(p, outside, group->name);
  }
  run = write_tile(p, o->run, o->part, &outside);
  if (outs) inside = permute_join(p, inside, outs);
  if (outs && o->is_row_out) rows[row_count++] = outs;
  if (ins) inside = permute_join(p, inside, ins);
  if (ins && o->is_row_in) rows[row_count++] = ins;
  const char *tile = outside;
  if (inside && outside) text_printf(p->out, "  reorder %s, %s, %s;\n", outside, inside, run);
  if (is_list(outside)) {
    tile = permute_fresh(p, "tile");
    text_printf(p->out, "  fuse %s -> %s;", outside, tile);
  }
  text_printf(p->out, "  bind %s -> block.x;\n  stage %s at %s in shared as %s along %lld", tile, p->load->mem->label, tile, copy, (long long)o->piece);
  if (pad_of(o)) text_printf(p->out, " pad %lld", (long long)pad_of(o));
  text_puts(p->out, ";\n");
  write_fill(p, o, rows, row_count, pieces_of(o));
  write_words(p, o, run, outs, ins);
}

static const char *describe(struct permute *p, const struct odd *o, bool is_long) {
  if (is_long) return arena_printf(p->arena, "in pieces of %d bytes", CHUNK);
  if (o->part < o->run->count) return arena_printf(p->arena, "in parts of %lld", (long long)o->part);
  if (rows_of(o) == 1) return "one a block";
  return arena_printf(p->arena, "%lld of the output by %lld of the input a block%s", (long long)o->outs, (long long)o->ins, o->is_spanned ? ", words across the output's" : "");
}

// Whether it is known to be faster than other classes. An H200, parts of a copy, with it and with boxes (pack): u8, runs of 15 bytes 0.70 and 0.59, 255 0.83 and 0.43, 1001 0.93 and 0.56; f16, runs of 35 elements
// 0.73 and 0.70, 73 0.86 and 0.79, 199 0.87 and 0.76; u8 of even extents, runs of 38 0.71 to 0.78 and 0.80 to 0.84, 49 0.66 and 0.81; f32, runs of 1001 1.02 both, 4369 1.02 and 0.86; f64, 7777 1.04 and 1.00. The rest is in docs/performance.md.
static bool is_faster(const struct odd *o, int64_t in, int64_t out, int64_t bytes) {
  if (o->is_spanned && (o->ins < o->word || o->ins * bytes < SPANNED_IN || o->outs * bytes < LEAST_OUT)) return false;
  if (in != out || bytes % VECTOR == 0) return false;
  if (in >= WORD) return bytes > LONG;
  if (bytes % WORD == 0) return false;
  bool is_paired = in > 1 || (o->in && o->out && (bytes % 2 == 0 || (o->in->count % 2 == 0 && o->out->count % 2 == 0))); // boxes of bytes then move two at a time
  return bytes >= (is_paired ? 70 : 15);
}

void permute_odd_runs(struct permute *p) {
  enum { BUSY = 264 };
  struct odd o = {.run = p->fast_out, .part = p->fast_out->count, .outs = 1, .ins = 1};
  int64_t in = type_bytes(p->load->mem->type), out = type_bytes(p->store->mem->type), bytes, blocks = 1;
  if (in >= VECTOR || out >= VECTOR || o.run->count < 2 || o.run->count > INT64_MAX / VECTOR || o.run->count < WORD / out || p->group_count < 2 || !can_be_copied(p, o.run)) return;
  bytes = o.run->count * (in > out ? in : out);
  o.word = out < WORD ? WORD / out : 1;
  o.piece = VECTOR / in;
  o.is_spanned = o.word > 1 && bytes < MOST_SPANNED;
  bool is_long = bytes > VERY_LONG;
  if (is_long) o.part = CHUNK / out;
  else if (!find_rows(p, &o, bytes)) return;
  else deal_out(&o);
  if (!is_long && pieces_of(&o) * VECTOR > MOST_BOX) return;
  for (int g = 0; g < p->group_count; g++) {
    const struct group *group = &p->groups[g];
    int64_t size = group == o.run ? o.part : group == o.out ? o.outs : group == o.in ? o.ins : 1;
    if (__builtin_mul_overflow(blocks, (group->count + size - 1) / size, &blocks)) return;
  }
  if (blocks < (!p->a->forced ? BUSY : o.is_spanned ? 16 : 2) || (!p->a->forced && !is_faster(&o, in, out, bytes))) return;
  struct when when = {.p = p};
  permute_need_alignment(&when, p->load->mem, (uint32_t)o.piece);
  permute_need_alignment(&when, p->store->mem, (uint32_t)o.word);
  const char *reason = arena_printf(p->arena, "%s, the fastest axis stays: runs of %lld elements that begin anywhere, %s, through shared memory: 16 bytes at a time in, as they lie in the input, and %lld out, as they lie in the output",
                                    permute_describe(p), (long long)o.run->count, describe(p, &o, is_long), (long long)(o.word * out));
  if (!permute_begin(p, "odd_runs", &when, reason)) return;
  permute_write_groups(p);
  if (is_long) write_long(p, &o);
  else write_rows(p, &o);
  p->is_plain = true;
  permute_end(p);
  p->is_plain = false;
}
