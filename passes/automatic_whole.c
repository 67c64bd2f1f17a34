// Schedules of permutes whose tensors have odd rows or short ones: what a block takes is one run of memory, in the input or in the output, whatever it begins at.
//
//   lines   matrices with rows of odd lengths: blocks of whole rows of the output that are whole lines of 128 bytes
//   whole   small matrices behind a batch: staged as they lie, whole, for extents and addresses of any kind; of few bytes and halves, permuted in registers
#include <string.h>

#include "passes/automatic_permute.h"
#include "passes/stage.h"

bool permute_is_dense(struct permute *p) {
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

// A thread reads a whole matrix of bytes or halves, permutes it in registers, and puts it into shared memory as it lies in the output, in words; a block writes
// as many matrices as it has there in one run. What a thread reads and writes are vectors in the order of an axis that is made of words and one that is not.
// An H200, in parts of a copy's speed, beside pack: u8 [5592405, 3, 8] 1.04 and 0.90, [2791667, 8, 3] 1.08 and 0.93, [1395833, 3, 16] 1.09 and 0.98, 5 by 8, 7 by 8, 3 by 4
// and 4 by 3 1.07 to 1.11 and 0.98 to 1.10; f16 5 by 4 1.08 and 0.89, 3 by 8 1.08 and 1.03; but u8 8 by 8 1.06 and 1.08.
bool permute_whole_in_registers(struct permute *p) {
  enum { MOST_BYTES = 56, MOST_FORCED = 64, LEAST_BLOCK = 12 * 1024, WIDEST = 8 }; // bytes
  struct group *batch, *rows = p->fast_in, *columns = p->fast_out; // of the output
  const struct ir_mem *copies[MOST_COPIES];
  int64_t bytes = type_bytes(p->load->mem->type), vector = WIDEST / bytes;
  if (bytes >= WORD || bytes != type_bytes(p->store->mem->type) || !is_matrix_of_batch(p, &batch) || batch->count < 0 || permute_copies(p, copies) != 1) return false;
  int64_t size = rows->count * columns->count;
  bool is_by_rows = rows->count * bytes % WORD == 0;
  if ((size * bytes > MOST_BYTES && !p->a->forced) || size * bytes > MOST_FORCED || (!is_by_rows && columns->count * bytes % WORD)) return false;
  while (size % vector) vector /= 2;
  int64_t each = THREADS * ((LEAST_BLOCK + THREADS * size * bytes - 1) / (THREADS * size * bytes));
  struct when when = {.p = p};
  permute_need_alignment(&when, copies[0], (uint32_t)(VECTOR / bytes));
  permute_need_alignment(&when, p->store->mem, (uint32_t)(VECTOR / bytes));
  const char *reason = arena_printf(p->arena, "%s, matrices of %lld by %lld: one a thread, permuted in registers, %lld a block through shared memory, %lld bytes at a time out", permute_describe(p), (long long)columns->count,
                                    (long long)rows->count, (long long)each, (long long)(vector * bytes));
  if (!permute_begin(p, "whole_registers", &when, reason)) return false;
  permute_write_groups(p);
  const char *block = permute_piece(p, batch, "_block"), *one = permute_piece(p, batch, "_in"), *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p), *row = permute_fresh(p, "row"), *part = permute_fresh(p, "row_part"),
             *element = permute_fresh(p, "row_vector"), *all = permute_fresh(p, "out"), *more = permute_fresh(p, arena_printf(p->arena, "%s_more", copy)), *fill = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy)), *outer = is_by_rows ? rows->name : columns->name, *inner = is_by_rows ? columns->name : rows->name;
  text_printf(p->out, "  split %s by %lld -> %s, %s;  reorder %s, %s, %s, %s;  bind %s -> block.x;\n  stage %s at %s in shared as %s", batch->name, (long long)each, block, one, block, one, rows->name, columns->name, block, copies[0]->label,
              block, copy);
  if (size * bytes % (2 * WIDEST) == 0) text_printf(p->out, " pad %lld along %s", (long long)(WIDEST / bytes), rows->name); // else these accesses meet in banks
  text_printf(p->out, ";\n  reorder %s.%s, %s.%s, %s.%s;  vectorize %s.%s, %s.%s;\n", copy, one, copy, outer, copy, inner, copy, outer, copy, inner);
  if (each == THREADS) text_printf(p->out, "  bind %s.%s -> thread.x;\n", copy, one);
  else text_printf(p->out, "  split %s.%s by %d -> %s, %s;  bind %s -> thread.x;  unroll %s;\n", copy, one, THREADS, more, fill, fill, more);
  text_printf(p->out, "  fuse %s.%s, %s.%s -> %s;  split %s by %lld -> %s, %s;  fuse %s.%s, %s -> %s;\n", stage, rows->name, stage, columns->name, row, row, (long long)vector, part, element, stage, one, part, all);
  permute_write_threads(p, all, each * size / vector);
  text_printf(p->out, "  vectorize %s;\n", element);
  permute_end(p);
  return true;
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
  if (in < WORD || in >= VECTOR || in != out || columns->count % 2 == 0 || permute_copies(p, copies) != 1 || !permute_is_dense(p)) return;
  for (int64_t n = MOST_ROWS; n * in >= LINE && !count; n /= 2)
    if (columns->count * n * in <= MOST_BYTES) count = n;
  if (!count) return;
  int64_t rest = 1; // rows of the last block
  for (int g = 0; g + 1 < p->group_count; g++) rest = rest * (p->groups[g].count % count) % count;
  // a last block of fewer rows brings guards to every load, and boxes are faster then: an H200, f32 [510, 129, 255] to (0, 2, 1) 0.57 of a copy and 1.01, [4097, 63, 65] 0.65 and
  // 1.06, [14525, 33, 35] 0.74 and 1.06; of whole blocks [2048, 127, 129] 0.94 and 0.91, [256, 257, 255] 0.98 and 0.94
  if (rest && !p->a->forced) return;
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
  enum { LEAST_BYTES = 12 * 1024, MOST_BYTES = 48 * 1024, MANY_BYTES = 24 * 1024, LINE = 128 };
  struct group *batch, *rows = p->fast_in, *columns = p->fast_out; // of the output
  const struct ir_mem *copies[MOST_COPIES];
  int64_t bytes = type_bytes(p->load->mem->type), total;
  if (bytes >= WORD || bytes != type_bytes(p->store->mem->type) || !is_matrix_of_batch(p, &batch) || permute_copies(p, copies) != 1 || p->load->mem->is_strided || p->store->mem->is_strided) return;
  int64_t size = rows->count * columns->count, each = size * bytes < LEAST_BYTES ? (LEAST_BYTES + size * bytes - 1) / (size * bytes) : 1, piece = VECTOR / bytes, word = WORD / bytes, line = LINE / bytes;
  if (size * each * bytes > MOST_BYTES || batch->count < 0 || __builtin_mul_overflow(size, batch->count, &total) || rows->count % 2 == 0) return;
  while (total % piece) piece /= 2;
  if (piece < word) return;
  int64_t threads = size * each * bytes <= MANY_BYTES ? 256 : 512; // best for 16 and 32 KiB on an H200; asynchronous copies are 2 to 4 % slower
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
  text_printf(p->out, "  split %s.piece by %d -> %s, %s;  bind %s -> thread.x;  vectorize %s.element;  unroll %s;\n", copy, (int)threads, more, thread, thread, copy, more);
  text_printf(p->out, "  reorder %s.%s, %s.%s;  fuse ", stage, rows->name, stage, columns->name);
  if (one) text_printf(p->out, "%s.%s, ", stage, one);
  text_printf(p->out, "%s.%s, %s.%s -> %s;\n", stage, rows->name, stage, columns->name, all);
  text_printf(p->out, "  split %s by %lld along %s -> %s, %s;  split %s by %lld -> %s, %s;  split %s by %lld -> %s, %s;  fuse %s, %s -> %s;  bind %s -> thread.x;  vectorize %s;\n", all, (long long)line, p->store->mem->label, far, near, near,
              (long long)word, words, element, far, (long long)(threads / 32), outer, warp, warp, words, out, out, element);
  permute_end(p);
}
