// units: permutes whose fastest axis stays and is short, so that its runs are no 16 bytes: tiles of I by J of such runs through shared memory, neighbours along I of
// the output and along J of the input.
#include <string.h>

#include "passes/automatic_permute.h"

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

// --- In words -------------------------------------------------------------------------------------------------------

// A tile where sizes are known. A thread reads 16 bytes at a time of `across` runs side by side, of `unit` neighbours along I, and permutes them in registers to words
// of the output's rows; these lie in shared memory as they do in the output, and a warp writes each in words, wherever it begins.
struct units {
  int64_t bytes, length, unit; // of an element; elements of a run; neighbours along I that make words
  int64_t i, j;                // runs of a tile
  int64_t across, near, pad;   // runs; threads side by side along J; elements behind a row in shared memory, or behind so many rows as are across
  bool is_grouped;             // the latter
};

// Passes that the stores of one warp take, in words of 4 bytes of its first store.
static int64_t passes_of(const struct units *u, int64_t near, int64_t pad, bool is_grouped) {
  enum { LANES = 32, BANKS = 32 };
  int64_t step = u->across * (u->i * u->length + (is_grouped ? 0 : pad)) + (is_grouped ? pad : 0), wide = u->bytes > WORD ? u->bytes / WORD : 1, at_once = LANES / wide, passes = 0;
  for (int64_t first = 0; first < LANES; first += at_once) {
    int used[BANKS] = {0}, most = 0;
    for (int64_t lane = first; lane < first + at_once; lane++) {
      int64_t word = (lane % near * step + lane / near * u->unit * u->length) * u->bytes / WORD;
      for (int64_t w = 0; w < wide; w++) used[(word + w) % BANKS]++;
    }
    for (int b = 0; b < BANKS; b++) most = used[b] > most ? used[b] : most;
    passes += most;
  }
  return passes;
}

// The lanes and the pad that have the fewest conflicts; of these the most lanes along J, which read what lies side by side.
static void find_pad(struct units *u) {
  enum { MOST_NEAR = 8, MOST_PAD = 12 }; // lanes, elements of at least a word
  int64_t best = INT64_MAX, step = u->unit;
  for (int64_t near = MOST_NEAR; near >= 1; near /= 2)
    for (int64_t k = 1; k <= 2 * MOST_PAD && near <= u->j / u->across; k++) {
      bool is_grouped = k > MOST_PAD;
      int64_t pad = (is_grouped ? k - MOST_PAD : k) * step, passes = passes_of(u, near, pad, is_grouped);
      if (passes < best && !(is_grouped && u->across == 1)) best = passes, u->near = near, u->pad = pad, u->is_grouped = is_grouped;
    }
}

static bool find_units(const struct permute *p, const struct group *i, const struct group *j, struct units *u) {
  enum { ROW_BYTES = 768, IN_BYTES = 160, WIDE_IN_BYTES = 320, MOST_REGISTERS = 48, MOST_BYTES = 48 * 1024, LEAST_J = 8 };
  u->length = p->fast_out->count;
  u->unit = u->bytes < WORD ? WORD / u->bytes : 1;
  u->across = 1;
  while (u->across * u->length * u->bytes % VECTOR) u->across *= 2;
  while (u->across > 1 && (u->across * u->unit * u->length * u->bytes > MOST_REGISTERS * WORD || j->count % u->across)) u->across /= 2;
  if (u->across * u->length * u->bytes % WORD) return false;
  // with the word that hangs over a row is as many as whole warps write
  u->i = (ROW_BYTES - (u->unit > 1 ? WORD : 0)) / (u->length * u->bytes) / u->unit * u->unit;
  u->j = u->across;
  while (u->j * u->length * u->bytes < (u->bytes < WORD ? IN_BYTES : WIDE_IN_BYTES) && u->j * 2 * ROW_BYTES <= MOST_BYTES && u->j * 2 <= j->count) u->j *= 2;
  while (u->j > 2 * u->across && j->count % u->j) u->j /= 2; // what hangs over is copied element by element
  if (u->i < 2 * u->unit || i->count < u->i / 2) return false;
  find_pad(u);
  while (u->j > u->across && (u->i * u->length * u->j + u->pad * u->j / (u->is_grouped ? u->across : 1)) * u->bytes > MOST_BYTES) u->j /= 2, find_pad(u);
  return u->j >= LEAST_J;
}

// The copy's side: neighbouring threads along J, then along I.
static void write_copy(struct permute *p, const struct units *u, const char *copy, const char *yi, const char *ji, const char *jn) {
  const char *row = permute_fresh(p, "S_row"), *inside = permute_fresh(p, "S_element"), *unit = NULL, *part = arena_printf(p->arena, "%s.%s", copy, ji), *next = jn ? arena_printf(p->arena, "%s.%s", copy, jn) : NULL, *fill = permute_fresh(p, "S_fill");
  int64_t parts = u->j / u->across;
  if (u->unit > 1) {
    const char *units = permute_fresh(p, "S_units");
    unit = permute_fresh(p, "S_unit");
    text_printf(p->out, "  split %s.%s by %lld -> %s, %s;  split %s by %lld -> %s, %s;", copy, yi, (long long)(u->unit * u->length), row, units, units, (long long)u->length, unit, inside);
  } else {
    text_printf(p->out, "  split %s.%s by %lld -> %s, %s;", copy, yi, (long long)u->length, row, inside);
  }
  if (u->across > 1 && !jn) {
    const char *across = permute_fresh(p, "S_across");
    next = permute_fresh(p, "S_next");
    text_printf(p->out, "  split %s by %lld -> %s, %s;", part, (long long)u->across, across, next);
    part = across;
  }
  const char *vectors = inside;
  if (next) vectors = arena_printf(p->arena, "%s, %s", next, vectors);
  if (unit) vectors = arena_printf(p->arena, "%s, %s", unit, vectors);
  if (parts > u->near) {
    const char *far = permute_fresh(p, "S_far"), *near = permute_fresh(p, "S_near");
    text_printf(p->out, "\n  split %s by %lld -> %s, %s;  reorder %s, %s, %s, %s;  fuse %s, %s, %s -> %s;", part, (long long)u->near, far, near, far, row, near, vectors, far, row, near, fill);
  } else {
    text_printf(p->out, "\n  reorder %s, %s, %s;  fuse %s, %s -> %s;", row, part, vectors, row, part, fill);
  }
  text_puts(p->out, "\n");
  permute_write_threads(p, fill, u->i / u->unit * parts);
  text_printf(p->out, "  vectorize %s;\n", vectors);
}

// The output's side: a warp a row.
static void write_rows(struct permute *p, const struct units *u, const char *stage, const char *yi, const char *ji, const char *jn) {
  enum { LANES = 32 };
  const char *part = arena_printf(p->arena, "%s.%s", stage, yi), *element = NULL, *more = permute_fresh(p, "word_more"), *lane = permute_fresh(p, "lane"), *row = permute_fresh(p, "row"), *warp = permute_fresh(p, "warp"), *out = permute_fresh(p, "out"), *rows = arena_printf(p->arena, "%s.%s", stage, ji);
  text_puts(p->out, "  ");
  if (jn) {
    const char *both = permute_fresh(p, "rows");
    text_printf(p->out, "fuse %s, %s.%s -> %s;  ", rows, stage, jn, both);
    rows = both;
  }
  if (u->unit > 1) {
    const char *word = permute_fresh(p, "word");
    element = permute_fresh(p, "element");
    text_printf(p->out, "split %s by %lld along %s -> %s, %s;  ", part, (long long)u->unit, p->store->mem->label, word, element);
    part = word;
  }
  text_printf(p->out, "split %s by %d -> %s, %s;  split %s by %d -> %s, %s;  reorder %s, %s, %s, %s%s%s;\n  fuse %s, %s -> %s;  bind %s -> thread.x;  unroll %s;", part, LANES, more, lane, rows, THREADS / LANES, row, warp, row, more,
              warp, lane, element ? ", " : "", element ? element : "", warp, lane, out, out, more);
  if (element) text_printf(p->out, "  vectorize %s;", element);
  text_puts(p->out, "\n");
}

void permute_units_in_words(struct permute *p) {
  struct group *run = p->fast_out, *i = NULL, *j = NULL;
  const struct ir_mem *copies[MOST_COPIES];
  struct units u = {.bytes = type_bytes(p->load->mem->type)};
  int64_t step;
  if (run->count < 2 || run->count > 15 || run->count * u.bytes % VECTOR == 0 || u.bytes != type_bytes(p->store->mem->type) || permute_copies(p, copies) != 1) return;
  if (p->group_count < 3 || run != &p->groups[p->group_count - 1] || p->load->mem->is_strided || !permute_is_dense(p)) return;
  i = &p->groups[p->group_count - 2];
  for (int g = 0; g + 1 < p->group_count; g++)
    if (!j || permute_is_at_most(p, p->load, &p->groups[g], j)) j = &p->groups[g];
  if (i == j || !poly_is_constant(permute_stride(p, p->load, j), &step) || step != run->count || !find_units(p, i, j, &u)) return;
  struct when when = {.p = p};
  permute_need_alignment(&when, copies[0], (uint32_t)(VECTOR / u.bytes));
  permute_need_alignment(&when, p->store->mem, (uint32_t)u.unit);
  const char *reason = arena_printf(p->arena, "%s, short runs of %lld elements: tiles of %lld by %lld of them, %lld side by side a thread, permuted in registers, through shared memory in words", permute_describe(p),
                                    (long long)u.length, (long long)u.i, (long long)u.j, (long long)u.across);
  if (!permute_begin(p, "units_words", &when, reason)) return;
  permute_write_groups(p);
  const char *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p), *order = NULL, *outside = NULL;
  const char *y = permute_fresh(p, arena_printf(p->arena, "%s_%s", i->name, run->name)), *yt = permute_fresh(p, "row_tile"), *yi = permute_fresh(p, "row_in"), *jo = permute_piece(p, j, "_tile"), *ji = permute_piece(p, j, "_in"),
             *tile = permute_fresh(p, "tile");
  for (int g = 0; g + 1 < p->group_count; g++)
    if (&p->groups[g] != i && &p->groups[g] != j) outside = permute_join(p, outside, p->groups[g].name);
  order = permute_join(p, permute_join(p, outside, jo), yt);
  const char *inside = ji, *jn = NULL;
  text_printf(p->out, "  fuse %s, %s -> %s;  split %s by %lld -> %s, %s;  split %s by %lld -> %s, %s;\n", i->name, run->name, y, y, (long long)(u.i * u.length), yt, yi, j->name, (long long)u.j, jo, ji);
  if (u.is_grouped) {
    const char *all = ji;
    ji = permute_piece(p, j, "_group"), jn = permute_piece(p, j, "_next");
    text_printf(p->out, "  split %s by %lld -> %s, %s;\n", all, (long long)u.across, ji, jn);
    inside = permute_join(p, ji, jn);
  }
  text_printf(p->out, "  reorder %s, %s, %s;\n  fuse %s -> %s;  bind %s -> block.x;\n  stage %s at %s in shared as %s pad %lld%s%s;\n", order, inside, yi, order, tile, tile, copies[0]->label, tile, copy, (long long)u.pad, jn ? " along " : "",
              jn ? jn : "");
  write_copy(p, &u, copy, yi, ji, jn);
  write_rows(p, &u, stage, yi, ji, jn);
  permute_end(p);
}
