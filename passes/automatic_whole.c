// Schedules of permutes whose tensors have odd rows or short ones: what a block takes is one run of memory, in the input or in the output, whatever it begins at.
//
//   lines   matrices with rows of odd lengths: blocks of whole rows of the output that are whole lines of 128 bytes
//   whole   small matrices behind a batch: staged as they lie, whole, for extents and addresses of any kind
//   units   the fastest axis stays and is short: tiles of such runs through shared memory
#include <string.h>

#include "passes/automatic_permute.h"
#include "passes/stage.h"

// Whether the output is written without gaps: each group moves it by all that lies inside.
static bool is_dense_output(struct permute *p) {
  int64_t inside = 1, stride;
  for (int g = p->group_count; g-- > 0;) {
    if (p->groups[g].count < 0 || !poly_is_constant(permute_stride(p, p->store, &p->groups[g]), &stride) || stride != inside) return false;
    inside *= p->groups[g].count;
  }
  return true;
}

// --- whole ----------------------------------------------------------------------------------------------------------

const char *permute_stage_name(const struct permute *p) { return list_at(&p->a->entry->stages, struct ir_stage, 0)->label; }

int64_t permute_shared_limit(const struct permute *p) {
  const struct target *target = p->a->context->options->target;
  return target ? target->shared_limit : 48 * 1024;
}

// Whether the two last groups of the output are a matrix that lies whole in the input too, behind a batch of one axis.
static bool is_matrix_of_batch(struct permute *p, struct group **batch) {
  if (p->group_count != 3) return false;
  *batch = &p->groups[0];
  struct group *rows = &p->groups[1], *columns = &p->groups[2];
  const struct view_access *accesses[2] = {p->load, p->store};
  if (rows->count < 0 || columns->count < 0 || p->fast_out != columns || p->fast_in != rows) return false;
  for (int k = 0; k < 2; k++) {
    int64_t outer, inner;
    if (!poly_is_constant(permute_stride(p, accesses[k], *batch), &outer) || outer != rows->count * columns->count) return false;
    if (!poly_is_constant(permute_stride(p, accesses[k], k ? rows : columns), &inner) || inner != (k ? columns : rows)->count) return false;
  }
  return true;
}

// As many matrices as make a good block, each whole: read and written as they lie, 16 bytes at a time where alignment is known, else by elements.
// Lanes that read neighbours of a column meet in a bank only as the odd part of the row's length says.
static void try_whole(struct permute *p, const char *name, bool is_wide) {
  enum { LEAST = 4096, MOST_BYTES = 96 * 1024, WIDE = 512, MANY = 32 };
  struct group *batch, *rows = p->fast_in, *columns = p->fast_out; // of the output
  const struct ir_mem *copies[MOST_COPIES];
  if (!is_matrix_of_batch(p, &batch) || permute_copies(p, copies) != 1) return;
  int64_t size = rows->count * columns->count, in = type_bytes(p->load->mem->type), out = type_bytes(p->store->mem->type), most = permute_shared_limit(p) < MOST_BYTES ? permute_shared_limit(p) : MOST_BYTES;
  int64_t each = size < LEAST ? LEAST / size : 1;
  if (size > most / in) return;
  int64_t vector_in = is_wide ? VECTOR / in : 1, vector_out = is_wide ? VECTOR / out : 1, widest = vector_in > vector_out ? vector_in : vector_out;
  struct when when = {.p = p};
  while (each > 1 && is_wide && size * each % widest) each--;
  if (size * each % widest) permute_refuse(&when, arena_printf(p->arena, "%lld elements are no multiple of %lld", (long long)(size * each), (long long)widest));
  if (is_wide) permute_need_multiple(&when, batch, each); // else the last block would end inside a vector
  permute_need_alignment(&when, copies[0], (uint32_t)vector_in);
  permute_need_alignment(&when, p->store->mem, (uint32_t)vector_out);
  const char *reason = arena_printf(p->arena, "%s, whole matrices of %lld by %lld, %lld a block: read and written as they lie, %lld bytes at a time in and %lld out", permute_describe(p), (long long)columns->count,
                                    (long long)rows->count, (long long)each, (long long)(vector_in * in), (long long)(vector_out * out));
  if (!permute_begin(p, name, &when, reason)) return;
  permute_write_groups(p);
  const char *block = batch->name, *one = NULL, *copy = permute_copy_name(p, 0), *fill = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy)), *all = permute_fresh(p, "out");
  if (each > 1) {
    block = permute_piece(p, batch, "_block"), one = permute_piece(p, batch, "_in");
    text_printf(p->out, "  split %s by %lld -> %s, %s;\n", batch->name, (long long)each, block, one);
  }
  text_printf(p->out, "  reorder %s, %s%s%s, %s;\n  bind %s -> block.x;\n  stage %s at %s in shared as %s;\n", block, one ? one : "", one ? ", " : "", columns->name, rows->name, block,
              copies[0]->label, block, copy);
  for (int k = 0; k < 2; k++) {
    const char *stage = k ? permute_stage_name(p) : copy, *flat = k ? all : fill, *part = flat, *vector = NULL;
    int64_t width = k ? vector_out : vector_in, count = size * each / width, threads = count < WIDE ? (count + 31) / 32 * 32 : WIDE;
    if (k) text_printf(p->out, "  reorder %s.%s, %s.%s;\n", stage, rows->name, stage, columns->name);
    text_printf(p->out, "  fuse ");
    if (one) text_printf(p->out, "%s.%s, ", stage, one);
    text_printf(p->out, "%s.%s, %s.%s -> %s;", stage, k ? rows->name : columns->name, stage, k ? columns->name : rows->name, flat);
    if (width > 1) {
      part = permute_fresh(p, arena_printf(p->arena, "%s_part", flat)), vector = permute_fresh(p, arena_printf(p->arena, "%s_vector", flat));
      text_printf(p->out, "  split %s by %lld -> %s, %s;", flat, (long long)width, part, vector);
    }
    const char *more = permute_fresh(p, arena_printf(p->arena, "%s_more", flat)), *thread = permute_fresh(p, arena_printf(p->arena, "%s_thread", flat));
    text_printf(p->out, "  split %s by %lld -> %s, %s;  bind %s -> thread.x;  unroll %s%s;\n", part, (long long)threads, more, thread, thread, more, count > threads * MANY ? " by 16" : "");
    if (vector) text_printf(p->out, "  vectorize %s;\n", vector);
  }
  permute_end(p);
}

void permute_whole(struct permute *p) {
  try_whole(p, "whole", true);
  if (!p->view.is_closed) try_whole(p, "whole_unaligned", false);
}

// --- lines ----------------------------------------------------------------------------------------------------------

// Matrices of any size behind any batch: blocks of whole rows of the output, so many that a block is whole lines of 128 bytes, wherever its matrices begin
// and end. They lie in shared memory as they do in the output, and are written as they lie; rows of odd lengths are read there without conflicts.
void permute_lines(struct permute *p) {
  enum { LINE = 128, MOST_BYTES = 36 * 1024, MOST_ROWS = 64, MANY = 32 };
  struct group *columns = p->fast_out, *rows = p->fast_in; // of the output
  const struct ir_mem *copies[MOST_COPIES];
  int64_t in = type_bytes(p->load->mem->type), out = type_bytes(p->store->mem->type), count = 0;
  if (p->group_count < 2 || columns != &p->groups[p->group_count - 1] || rows != &p->groups[p->group_count - 2] || columns->count < SMALLEST_SIDE || rows->count < SMALLEST_SIDE) return;
  if (in < WORD || in >= VECTOR || in != out || columns->count % 2 == 0 || permute_copies(p, copies) != 1 || !is_dense_output(p)) return;
  for (int64_t n = MOST_ROWS; n * in >= LINE && !count; n /= 2)
    if (columns->count * n * in <= MOST_BYTES) count = n;
  if (!count) return;
  int64_t elements = count * columns->count, vector = VECTOR / out, lanes = THREADS / count, steps = elements / vector;
  struct when when = {.p = p};
  permute_need_alignment(&when, p->store->mem, (uint32_t)vector);
  const char *reason = arena_printf(p->arena, "%s, blocks of %lld whole rows of the output, which are %lld lines of 128 bytes: %lld elements side by side in the input, 16 bytes at a time out", permute_describe(p), (long long)count,
                                    (long long)(elements * out / LINE), (long long)count);
  if (!permute_begin(p, "lines", &when, reason)) return;
  permute_write_groups(p);
  const char *all = rows->name, *block = NULL, *row = NULL, *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p), *flat = permute_fresh(p, "out");
  const char *more = permute_fresh(p, arena_printf(p->arena, "%s_more", copy)), *part = permute_fresh(p, arena_printf(p->arena, "%s_part", copy)), *fill = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy));
  if (p->group_count > 2) {
    const char *names = NULL;
    all = permute_fresh(p, "row");
    for (int g = 0; g + 1 < p->group_count; g++) names = permute_join(p, names, p->groups[g].name);
    text_printf(p->out, "  fuse %s -> %s;", names, all);
  }
  block = permute_fresh(p, arena_printf(p->arena, "%s_tile", all)), row = permute_fresh(p, arena_printf(p->arena, "%s_in", all));
  text_printf(p->out, "  split %s by %lld -> %s, %s;  bind %s -> block.x;\n", all, (long long)count, block, row, block);
  text_printf(p->out, "  stage %s at %s in shared as %s;\n", copies[0]->label, block, copy);
  text_printf(p->out, "  reorder %s.%s, %s.%s;  split %s.%s by %lld -> %s, %s;  fuse %s, %s.%s -> %s;  bind %s -> thread.x;  unroll %s%s;\n", copy, columns->name, copy, row, copy, columns->name, (long long)lanes, more, part, part, copy, row,
              fill, fill, more, (columns->count + lanes - 1) / lanes > MANY ? " by 16" : "");
  text_printf(p->out, "  fuse %s.%s, %s.%s -> %s;", stage, row, stage, columns->name, flat);
  const char *piece = flat, *element = NULL;
  if (vector > 1) {
    piece = permute_fresh(p, "piece"), element = permute_fresh(p, "element");
    text_printf(p->out, "  split %s by %lld -> %s, %s;", flat, (long long)vector, piece, element);
  }
  const char *outer = permute_fresh(p, "piece_more"), *thread = permute_fresh(p, "piece_thread");
  text_printf(p->out, "  split %s by %d -> %s, %s;  bind %s -> thread.x;  unroll %s%s;", piece, THREADS, outer, thread, thread, outer, steps > THREADS * MANY ? " by 16" : "");
  if (element) text_printf(p->out, "  vectorize %s;", element);
  text_puts(p->out, "\n");
  permute_end(p);
}

// Small matrices of bytes or halves, in blocks of one or a few, copied as they lie: pieces of 16 bytes of the input, words of the output, each warp's on a line.
void permute_lines_of_words(struct permute *p) {
  enum { LEAST_BYTES = 12 * 1024, MOST_BYTES = 48 * 1024, LINE = 128, LINE_THREADS = 512 };
  struct group *batch, *rows = p->fast_in, *columns = p->fast_out; // of the output
  const struct ir_mem *copies[MOST_COPIES];
  int64_t bytes = type_bytes(p->load->mem->type), total;
  if (bytes >= WORD || bytes != type_bytes(p->store->mem->type) || !is_matrix_of_batch(p, &batch) || permute_copies(p, copies) != 1 || p->load->mem->is_strided || p->store->mem->is_strided) return;
  int64_t size = rows->count * columns->count, each = size * bytes < LEAST_BYTES ? (LEAST_BYTES + size * bytes - 1) / (size * bytes) : 1, piece = VECTOR / bytes, word = WORD / bytes, line = LINE / bytes;
  if (size * each * bytes > MOST_BYTES || batch->count < 0 || __builtin_mul_overflow(size, batch->count, &total) || rows->count % 2 == 0) return;
  while (total % piece) piece /= 2;
  if (piece < word) return;
  struct when when = {.p = p};
  permute_need_alignment(&when, copies[0], (uint32_t)piece);
  permute_need_alignment(&when, p->store->mem, (uint32_t)line);
  const char *reason = arena_printf(p->arena, "%s, %lld whole matrices of %lld by %lld a block: copied in pieces of %lld bytes, written in words, lines of 128 bytes by one warp", permute_describe(p), (long long)each,
                                    (long long)columns->count, (long long)rows->count, (long long)(piece * bytes));
  if (!permute_begin(p, "lines", &when, reason)) return;
  permute_write_groups(p);
  const char *block = batch->name, *one = NULL, *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p), *more = permute_fresh(p, arena_printf(p->arena, "%s_more", copy)),
             *thread = permute_fresh(p, arena_printf(p->arena, "%s_thread", copy)), *all = permute_fresh(p, "out"), *far = permute_fresh(p, "line"), *near = permute_fresh(p, "place"), *words = permute_fresh(p, "word"),
             *element = permute_fresh(p, "byte"), *outer = permute_fresh(p, "line_more"), *warp = permute_fresh(p, "warp"), *out = permute_fresh(p, "out_thread");
  if (each > 1) {
    block = permute_piece(p, batch, "_block"), one = permute_piece(p, batch, "_in");
    text_printf(p->out, "  split %s by %lld -> %s, %s;\n", batch->name, (long long)each, block, one);
  }
  text_printf(p->out, "  reorder %s, %s%s%s, %s;  bind %s -> block.x;\n  stage %s at %s in shared as %s along %lld;\n", block, one ? one : "", one ? ", " : "", columns->name, rows->name, block, copies[0]->label, block, copy,
              (long long)piece);
  text_printf(p->out, "  split %s.piece by %d -> %s, %s;  bind %s -> thread.x;  vectorize %s.element;  unroll %s;\n", copy, LINE_THREADS, more, thread, thread, copy, more);
  text_printf(p->out, "  reorder %s.%s, %s.%s;  fuse ", stage, rows->name, stage, columns->name);
  if (one) text_printf(p->out, "%s.%s, ", stage, one);
  text_printf(p->out, "%s.%s, %s.%s -> %s;\n", stage, rows->name, stage, columns->name, all);
  text_printf(p->out, "  split %s by %lld along %s -> %s, %s;  split %s by %lld -> %s, %s;  split %s by %lld -> %s, %s;  fuse %s, %s -> %s;  bind %s -> thread.x;  vectorize %s;\n", all, (long long)line, p->store->mem->label, far, near, near,
              (long long)word, words, element, far, (long long)(LINE_THREADS / 32), outer, warp, warp, words, out, out, element);
  permute_end(p);
}

// --- units ----------------------------------------------------------------------------------------------------------

// Short runs, I of the output and J of the input next to them: tiles of I by J runs through shared memory, rows padded so that neighbours along I
// lie in neighbouring banks.
void permute_units(struct permute *p) {
  enum { J = 32 };
  struct group *run = p->fast_out, *i = NULL, *j = NULL;
  const struct ir_mem *copies[MOST_COPIES];
  uint32_t bytes = type_bytes(p->load->mem->type);
  int64_t per_word_row = 128 / bytes, length = run->count, I = bytes < 8 ? 64 : 32;
  const char *outside = NULL;
  if (length < 2 || length > 31 || length * bytes % VECTOR == 0 || permute_copies(p, copies) != 1) return;
  for (int g = 0; g < p->group_count; g++) {
    struct group *group = &p->groups[g];
    if (group == run) continue;
    if (!i || permute_is_at_most(p, p->store, group, i)) i = group;
    if (!j || permute_is_at_most(p, p->load, group, j)) j = group;
  }
  if (!i || !j || i == j || I * (J * length + per_word_row) * bytes > 48 * 1024) return;
  struct when when = {.p = p};
  permute_need_least(&when, i, I / 2);
  permute_need_least(&when, j, J / 2);
  int64_t pad = ((length - J * length) % per_word_row + per_word_row) % per_word_row;
  const char *reason = arena_printf(p->arena, "%s, short runs of %lld elements: tiles of %lld by %d of them through shared memory", permute_describe(p), (long long)length, (long long)I, J);
  if (!permute_begin(p, "units", &when, reason)) return;
  permute_write_groups(p);
  const char *io = permute_piece(p, i, "_tile"), *ii = permute_piece(p, i, "_in"), *jo = permute_piece(p, j, "_tile"), *ji = permute_piece(p, j, "_in"), *tile = permute_fresh(p, "tile"), *row = permute_fresh(p, "row");
  const char *jr = permute_piece(p, j, "_out"), *kr = permute_piece(p, run, "_out"), *copy = permute_copy_name(p, 0), *fill = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy)), *all = permute_fresh(p, "out"), *order = NULL;
  for (int g = 0; g < p->group_count; g++)
    if (&p->groups[g] != run && &p->groups[g] != i && &p->groups[g] != j) outside = permute_join(p, outside, p->groups[g].name);
  order = permute_join(p, permute_join(p, outside, io), jo);
  text_printf(p->out, "  split %s by %lld -> %s, %s;  split %s by %d -> %s, %s;\n", i->name, (long long)I, io, ii, j->name, J, jo, ji);
  text_printf(p->out, "  reorder %s, %s, %s, %s;\n  fuse %s -> %s;  bind %s -> block.x;\n", order, ii, ji, run->name, order, tile, tile);
  text_printf(p->out, "  fuse %s, %s -> %s;\n  stage %s at %s in shared as %s pad %lld;\n", ji, run->name, row, copies[0]->label, tile, copy, (long long)pad);
  text_printf(p->out, "  fuse %s.%s, %s.%s -> %s;\n", copy, ii, copy, row, fill);
  permute_write_threads(p, fill, I * J * length);
  const char *stage = permute_stage_name(p);
  text_printf(p->out, "  split %s.%s by %lld -> %s, %s;  reorder %s, %s.%s, %s;  fuse %s, %s.%s, %s -> %s;\n", stage, row, (long long)length, jr, kr, jr, stage, ii, kr, jr, stage, ii, kr, all);
  permute_write_threads(p, all, I * J * length);
  permute_end(p);
}

// The same where sizes are known: a thread copies as many neighbours along I as make words of runs, and neighbours along J, and permutes them in registers;
// rows of I lie in shared memory as they do in the output, and are written in words, which begin on multiples in memory.
void permute_units_in_words(struct permute *p) {
  enum { NEAR = 8, LEAST = 16, ROWS_BYTES = 1536, MOST_THREADS = 512, STEPS = 4 };
  struct group *run = p->fast_out, *i = NULL, *j = NULL;
  const struct ir_mem *copies[MOST_COPIES];
  int64_t bytes = type_bytes(p->load->mem->type), length = run->count, unit = bytes < WORD ? WORD / bytes : 1, lines, step;
  if (length < 2 || length > 15 || length * bytes % VECTOR == 0 || bytes > WORD || bytes != type_bytes(p->store->mem->type) || permute_copies(p, copies) != 1) return;
  if (p->group_count < 3 || run != &p->groups[p->group_count - 1] || p->load->mem->is_strided || !is_dense_output(p)) return;
  i = &p->groups[p->group_count - 2];
  for (int g = 0; g + 1 < p->group_count; g++)
    if (!j || permute_is_at_most(p, p->load, &p->groups[g], j)) j = &p->groups[g];
  if (i == j || !poly_is_constant(permute_stride(p, p->load, j), &step) || step != length) return;
  // rows of whole vectors, and with the words that hang over no more than whole warps
  int64_t vector = unit * length, J = 32, across = bytes == WORD ? 4 : unit, row = ROWS_BYTES / bytes;
  if (bytes == WORD) row = 768 / bytes;
  while (J > across && j->count % J) J /= 2; // what hangs over would be copied in parts
  if (J < LEAST || j->count % J) return;
  while (row / unit + (unit > 1) > MOST_THREADS) row /= 2;
  row -= row % vector;
  while (row > vector && unit > 1 && (row / unit + 1 + 31) / 32 * 32 - (row / unit + 1) > 16) row -= vector;
  if (row < vector || i->count * length < row / 2 || j->count < J / 2) return;
  lines = unit > 1 ? row / unit + 1 : row;
  int64_t together = lines < MOST_THREADS / 2 ? MOST_THREADS / 2 / lines : 1, items = row / vector * (J / across), threads = lines * together;
  while (J % together) together--, threads = lines * together;
  struct when when = {.p = p};
  permute_need_alignment(&when, copies[0], (uint32_t)(VECTOR / bytes));
  permute_need_alignment(&when, p->store->mem, (uint32_t)unit);
  const char *reason = arena_printf(p->arena, "%s, short runs of %lld elements: tiles of %lld by %lld of them, permuted in registers, through shared memory in words", permute_describe(p), (long long)length, (long long)(row / length), (long long)J);
  if (!permute_begin(p, "units_words", &when, reason)) return;
  permute_write_groups(p);
  const char *y = permute_fresh(p, arena_printf(p->arena, "%s_%s", i->name, run->name)), *yt = permute_fresh(p, "row_tile"), *yi = permute_fresh(p, "row_in"), *jo = permute_piece(p, j, "_tile"), *ji = permute_piece(p, j, "_in"), *tile = permute_fresh(p, "tile");
  const char *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p), *order = NULL, *outside = NULL, *sy = permute_fresh(p, "S_row"), *sv = permute_fresh(p, "S_vector"), *su = permute_fresh(p, "S_unit"), *sc = permute_fresh(p, "S_element"),
             *sb = permute_fresh(p, "S_across"), *sw = permute_fresh(p, "S_next"), *sf = permute_fresh(p, "S_far"), *sn = permute_fresh(p, "S_near"), *st = permute_fresh(p, "S_fill"), *sm = permute_fresh(p, "S_more"), *sp = permute_fresh(p, "S_thread"),
             *yw = permute_fresh(p, "word"), *yv = permute_fresh(p, "element"), *bm = permute_fresh(p, "more"), *bp = permute_fresh(p, "part"), *ot = permute_fresh(p, "out");
  for (int g = 0; g + 1 < p->group_count; g++)
    if (&p->groups[g] != i && &p->groups[g] != j) outside = permute_join(p, outside, p->groups[g].name);
  text_printf(p->out, "  fuse %s, %s -> %s;  split %s by %lld -> %s, %s;  split %s by %lld -> %s, %s;\n", i->name, run->name, y, y, (long long)row, yt, yi, j->name, (long long)J, jo, ji);
  order = permute_join(p, permute_join(p, outside, jo), yt);
  text_printf(p->out, "  reorder %s, %s, %s;\n  fuse %s -> %s;  bind %s -> block.x;\n  stage %s at %s in shared as %s pad %lld;\n", order, ji, yi, order, tile, tile, copies[0]->label, tile, copy, (long long)(unit * (row / unit % 2 ? 2 : 1)));
  if (unit > 1) text_printf(p->out, "  split %s.%s by %lld -> %s, %s;  split %s by %lld -> %s, %s;", copy, yi, (long long)vector, sy, sv, sv, (long long)length, su, sc);
  else text_printf(p->out, "  split %s.%s by %lld -> %s, %s;", copy, yi, (long long)length, sy, sc);
  text_printf(p->out, "  split %s.%s by %lld -> %s, %s;  split %s by %lld -> %s, %s;\n  reorder %s, %s, %s, %s%s%s, %s;  fuse %s, %s, %s -> %s;", copy, ji, (long long)across, sb, sw, sb, (long long)(J / across < NEAR ? J / across : NEAR), sf, sn, sf, sy, sn, unit > 1 ? su : "",
              unit > 1 ? ", " : "", sw, sc, sf, sy, sn, st);
  text_printf(p->out, "  split %s by %lld -> %s, %s;  bind %s -> thread.x;  unroll %s;  vectorize %s%s%s, %s;\n", st, (long long)(items < threads ? items : threads), sm, sp, sp, sm, unit > 1 ? su : "", unit > 1 ? ", " : "", sw, sc);
  const char *part = arena_printf(p->arena, "%s.%s", stage, yi);
  if (unit > 1) {
    text_printf(p->out, "  split %s by %lld along %s -> %s, %s;", part, (long long)unit, p->store->mem->label, yw, yv);
    part = yw;
  }
  text_printf(p->out, "  split %s.%s by %lld -> %s, %s;  reorder %s, %s, %s%s%s;  fuse %s, %s -> %s;  bind %s -> thread.x;  unroll %s%s;%s%s%s\n", stage, ji, (long long)together, bm, bp, bm, bp, part, unit > 1 ? ", " : "", unit > 1 ? yv : "", bp,
              part, ot, ot, bm, J / together > STEPS && unit > 1 ? " by 4" : "", unit > 1 ? "  vectorize " : "", unit > 1 ? yv : "", unit > 1 ? ";" : "");
  permute_end(p);
}
