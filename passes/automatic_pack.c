// pack: boxes of a permute whose extents are known go through shared memory, each so cut that both sides move long runs.
//
//   Y[f, b, e, a, d] = X[a, b, d, e, f]     runs of the input  d, e, f (24 * 6 * 16 elements that lie side by side)
//                                           runs of the output a_in, d (4 * 24)
//   box: the union, a_in * d * e * f
//
// The input's run is its fastest axes, whole, and a part of the next; the output's the same of its own. All pairs of runs that fit are tried, and the
// cheapest by a model of sectors, instructions and shared accesses is taken. Both sides then give a thread the axes that are fastest there, and
// unroll the others: where a thread stands is divided once, and a step is a constant. Elements lie in shared memory in the order, and with the pad, that
// makes the fewest bank conflicts, counted lane by lane.
//
// pack_words: bytes, where it is asked for, and halves lie in shared memory as words of neighbours along the output's fastest axis, where that is made of them: a thread reads as
// many rows of the input and transposes them in registers. An H200, halves: [56, 15, 31, 78, 36] to (3, 2, 4, 1, 0) 0.68 of a copy as halves and 0.88 as words,
// [76, 76, 76, 76] to (1, 0, 3, 2) 0.81 and 0.96; but [98, 53, 82, 83] to (1, 3, 0, 2), which single halves can be read of only so, 0.86 and 0.78.
#include <string.h>

#include "passes/automatic_permute.h"

enum { MOST_THREADS = 512, MOST_BYTES = 68 * 1024, MOST_DIRECT = 16 * 1024, MOST_PIECES = 1024, MOST_STEPS = 64, BANKS = 32, MOST_PAD = 33, SECTOR = 32, BUSY = 264 };

// One side of a box: the axes that move it, the fastest first.
struct side {
  int order[MAX_GROUPS];        // groups
  int64_t stride[MAX_GROUPS];   // of each group, in elements
  int chain;                    // so many of the order lie side by side
  int64_t bytes;                // an element
};

// How a side's loops are given to threads. Axes are those of the box, the fastest first. The run is one loop over `fused` of them and, where rows of these
// are no whole vectors, so many of the rows behind them that they are: `rows` axes, which are one, are cut into that many.
struct walk {
  int axes[MAX_GROUPS], count;
  int fused, rows;
  int64_t rows_in_run;
  int64_t vector;              // elements of the run that are one access
  int64_t run;                 // accesses of the run
  int64_t items[MAX_GROUPS];   // extents of the loops around it, the fastest first: what is left of the rows, and axes
  int item_count;
  int64_t threads;
  int cut;       // the item that a part of belongs to threads; those in front of it do whole, those behind are steps. -1: the run itself is cut
  int64_t part;  // of it
  int64_t steps; // a thread
  bool is_along; // vectors begin where the tensor's do, wherever the run does
};

// What lies in shared memory is cells: elements, or `unit` neighbours along the output's fastest axis, which then is counted in cells, and so is the output.
struct pack {
  struct permute *p;
  int64_t count[MAX_GROUPS]; // iterations
  struct side in, out;
  int64_t unit, cell; // elements, and bytes, of a cell
  int64_t most;       // cells in shared memory
};

struct box {
  int64_t size[MAX_GROUPS];
  int64_t elements, run_in, run_out; // elements
  double cost;
};

// Where elements of a box lie in shared memory.
struct layout {
  int axes[MAX_GROUPS], count; // the fastest first
  int padded;                  // pad behind this place; -1: none
  int64_t pad;
  int64_t stride[MAX_GROUPS]; // of a group
  int64_t elements;
  double wavefronts; // 32 elements, of both sides
  double cost;
};

// --- Sides ----------------------------------------------------------------------------------------------------------

static bool make_side(const struct pack *k, const struct view_access *access, struct side *side) {
  int count = k->p->group_count;
  *side = (struct side){.bytes = type_bytes(access->mem->type)};
  for (int g = 0; g < count; g++) {
    if (!poly_is_constant(permute_stride(k->p, access, &k->p->groups[g]), &side->stride[g]) || side->stride[g] < 1) return false;
    int place = g;
    while (place > 0 && side->stride[side->order[place - 1]] > side->stride[g]) {
      side->order[place] = side->order[place - 1];
      place--;
    }
    side->order[place] = g;
  }
  if (side->stride[side->order[0]] != 1) return false;
  side->chain = 1;
  while (side->chain < count && side->stride[side->order[side->chain]] == side->stride[side->order[side->chain - 1]] * k->count[side->order[side->chain - 1]]) side->chain++;
  return true;
}

// --- Vectors --------------------------------------------------------------------------------------------------------

// The fastest axes that a vector of so many elements needs as one; 0: it cannot be, as a run or a row would end inside it.
static int axes_of_vector(const struct pack *k, const struct side *side, const struct box *box, int64_t vector) {
  int64_t product = 1;
  int count = k->p->group_count, fused = 0;
  while (fused < side->chain && (fused == 0 || product % vector)) {
    int g = side->order[fused];
    if (fused > 0 && side->stride[g] != product) return 0; // an axis in front of it is cut
    if (k->unit > 1 && side == &k->in && g == k->out.order[0]) return 0;
    product *= box->size[g];
    fused++;
  }
  if (product % vector) return 0;
  for (int i = 0; i < count; i++) {
    int g = side->order[i];
    bool is_cut = box->size[g] < k->count[g];
    if (i >= fused && side->stride[g] % vector) return 0;
    if (i < fused && is_cut && (side->stride[g] * box->size[g] % vector || (fused == 1 ? k->count[g] % vector : k->count[g] % box->size[g]))) return 0;
  }
  return fused;
}

static int64_t widest(const struct pack *k, const struct side *side, const struct box *box, int64_t bytes) {
  int64_t vector = bytes > side->bytes ? bytes / side->bytes : 1;
  while (vector > 1 && !axes_of_vector(k, side, box, vector)) vector /= 2;
  return vector;
}

// An access of the output is a word: its elements are read one by one. Where the fastest axis stays they lie side by side, and more are read at once; so may cells.
static int64_t widest_out(const struct pack *k, const struct box *box) {
  bool stays = k->in.order[0] == k->out.order[0] || k->unit > 1;
  int64_t vector = widest(k, &k->out, box, stays ? VECTOR : WORD);
  while (stays && vector * k->out.bytes > WORD && axes_of_vector(k, &k->out, box, vector) > 1) vector /= 2;
  return vector;
}

// --- Boxes ----------------------------------------------------------------------------------------------------------

// Elements of the side that a step of the box's axis is.
static int64_t cells_of(const struct pack *k, const struct side *side, int g) { return side == &k->in && g == k->out.order[0] ? k->unit : 1; }

// The share of what is moved for a run of so many elements that is needed, as its contrary, with `lost` bytes where it ends inside a sector; lines of 128 bytes half used cost too.
static double sectors(const struct pack *k, const struct side *side, const struct box *box, int64_t run, double lost, double shortness) {
  double bytes = (double)(run * side->bytes), cost = 1;
  bool is_aligned = run * side->bytes % SECTOR == 0;
  for (int i = 0; i < k->p->group_count; i++) {
    int g = side->order[i];
    if (side->stride[g] >= run) is_aligned &= side->stride[g] * side->bytes % SECTOR == 0;
    else if (box->size[g] < k->count[g]) is_aligned &= side->stride[g] * box->size[g] * cells_of(k, side, g) * side->bytes % SECTOR == 0;
  }
  if (!is_aligned) cost += lost / bytes;
  if (bytes < 256) cost += shortness * (256 - bytes) / 256;
  if (bytes < 64) cost += 0.5 * (64 - bytes) / 64;
  return cost;
}

// Whether the output is best written in pieces of 16 bytes that begin where the tensor's do: a box that is one long run, which begins anywhere and is cut without rest.
// An H200, f32 [85, 92, 47, 47] to (2, 1, 0, 3) in runs of 3995 elements: 0.83 of a copy, and 0.96.
static bool is_written_along(const struct pack *k, const struct box *box) {
  enum { LEAST_BYTES = 8192 };
  if (k->cell < WORD || k->cell >= VECTOR || k->unit > 1 || box->run_out < box->elements || box->run_out * k->cell < LEAST_BYTES || widest(k, &k->out, box, VECTOR) * k->cell >= VECTOR) return false;
  for (int g = 0; g < k->p->group_count; g++)
    if (k->count[g] % box->size[g]) return false;
  return true;
}

// What accesses of so many bytes and so many loads a thread take; beyond MOST_STEPS loads wait for one another.
static double cost_of_accesses(double in, double out, double loads) {
  return 0.2 / in + 0.3 / out + (loads > MOST_STEPS ? 0.4 : 0.1 * loads / MOST_STEPS);
}

// What narrow elements cost: bytes lost where a run of the input or the output ends inside a sector, short runs, instructions and accesses, what hangs over, narrow
// stores. Bytes: an H200, u8 [20, 20, 20, 20, 20, 21] to (5, 1, 4, 2, 0, 3) 0.58 of a copy by the weights of halves and 0.80, [36, 36, 36, 36, 40] to
// (3, 1, 4, 0, 2) 0.73 and 0.82; of 15 permutes six gained 2 to 22 %, [26, 73, 20, 58, 82] to (3, 2, 1, 4, 0) lost 3 and others 2 at the most. Halves lost 9 and
// 18 % of odd ones by them.
struct narrow_weights {
  double lost_in, short_in, lost_out, short_out, work, waste, store;
};
static const struct narrow_weights weights_of_bytes = {8, 0.1, 80, 0.2, 0.3, 0.25, 0.8}, weights_of_halves = {20, 0.15, 28, 0.15, 0.5, 0.15, 0};

// Fewer blocks side by side: what a box of so many bytes of shared memory costs.
static double cost_of_room(double size, bool is_byte) {
  if (is_byte) return 0.3 * size / 65536 + 700 / size + (size > 48 * 1024 ? 0.1 : 0);
  return (size > 24 * 1024 ? 0.06 * (size - 24 * 1024) / (24 * 1024) : 0) + (size > 48 * 1024 ? 0.02 : 0);
}

// Times of a copy, of elements below 4 bytes: they are bound by instructions and passes too. `in`, `out`: elements of an access; `loads` a thread.
static double cost_of_narrow(const struct pack *k, const struct box *box, double in, double out, double waste, double loads) {
  bool is_byte = k->in.bytes == 1;
  const struct narrow_weights *w = is_byte ? &weights_of_bytes : &weights_of_halves;
  double bytes = (double)k->cell, size = (double)(box->elements * k->cell), unit = (double)k->unit;
  double instructions = (5 * unit / in + 1 + 1 + (unit > 1 ? unit / 2 : out > 1 ? 0.75 : 0) + 5 / out) / (14.5 * bytes), accesses = (unit / in + 1 + 1 + 1 / out) / (3.6 * bytes);
  double cost = 0.5 * sectors(k, &k->in, box, box->run_in, w->lost_in, w->short_in) + 0.5 * sectors(k, &k->out, box, box->run_out, w->lost_out, w->short_out);
  cost += w->work * waste * (instructions + accesses) + w->waste * (waste - 1) + w->store / (out * bytes);
  return cost + (loads > (in * (double)k->in.bytes == 1 ? MOST_STEPS / 2 : MOST_STEPS) ? 0.4 : 0) + cost_of_room(size, is_byte);
}

// Times of a copy. Of elements of 4 bytes and more the weights were fitted to schedules of 24 permutes on an H200: sectors in which runs end, narrow accesses,
// shared memory a block and loads a thread tell what they take, bank conflicts, instructions and what hangs over add little.
static double cost_of(const struct pack *k, const struct box *box) {
  enum { USUAL_THREADS = 400 };
  double waste = 1, blocks = 1, in = (double)widest(k, &k->in, box, VECTOR), out = (double)widest_out(k, box), bytes = (double)k->cell, size = (double)(box->elements * k->cell), cost;
  double loads = size / (in * (double)k->in.bytes) / USUAL_THREADS;
  for (int g = 0; g < k->p->group_count; g++) {
    int64_t tiles = (k->count[g] + box->size[g] - 1) / box->size[g];
    blocks *= (double)tiles;
    waste *= (double)(tiles * box->size[g]) / (double)k->count[g];
  }
  if (k->in.bytes >= WORD) {
    out = is_written_along(k, box) ? VECTOR : out * bytes;
    cost = 0.5 * sectors(k, &k->in, box, box->run_in, 10, 0.05) + 0.5 * sectors(k, &k->out, box, box->run_out, 31, 0.155);
    cost += cost_of_accesses(in * (double)k->in.bytes, out, loads) + 0.05 / bytes + 0.15 * (waste - 1) + 0.09 * size / 65536;
    if (is_written_along(k, box)) cost -= 0.04;
  } else {
    cost = cost_of_narrow(k, box, in, out, waste, loads);
  }
  if (blocks < BUSY) cost += 0.5 * (BUSY - blocks) / BUSY;
  return cost + 300 / size; // blocks begin and end
}

// Pieces of an axis that are worth a try.
static bool is_piece(int64_t count, int64_t piece) {
  return piece == count || piece <= 32 || (piece <= 128 && (piece % 4 == 0 || count % piece == 0)) || piece % 32 == 0;
}

// Makes the first `whole` axes of the side whole and takes `piece` of the next; returns the run.
static int64_t take_run(const struct pack *k, const struct side *side, int whole, int64_t piece, int64_t *size) {
  int64_t run = 1;
  for (int i = 0; i < whole; i++) size[side->order[i]] = k->count[side->order[i]], run *= k->count[side->order[i]];
  if (piece > size[side->order[whole]]) size[side->order[whole]] = piece;
  return run * piece;
}

// Elements, or cells of the output, that lie side by side in a box.
static int64_t run_of(const struct pack *k, const struct side *side, const int64_t *size) {
  int64_t run = 1;
  for (int i = 0; i < side->chain; i++) {
    int g = side->order[i];
    run *= size[g] * cells_of(k, side, g);
    if (size[g] < k->count[g]) break;
  }
  return run;
}

static void try_box(const struct pack *k, const int64_t *size, int64_t most, struct box *best) {
  struct box box = {.elements = 1};
  for (int g = 0; g < k->p->group_count; g++) {
    box.size[g] = size[g];
    if (box.elements > most / size[g]) return;
    box.elements *= size[g];
  }
  if (k->unit > 1 && size[k->out.order[0]] < 2) return;
  box.run_in = run_of(k, &k->in, size);
  box.run_out = run_of(k, &k->out, size);
  box.cost = cost_of(k, &box);
  if (best->elements == 0 || box.cost < best->cost) *best = box;
}

static struct box find_box(const struct pack *k) {
  struct box best = {0};
  int64_t most = k->most, size[MAX_GROUPS], both[MAX_GROUPS];
  int count = k->p->group_count;
  for (int i = 0; i < k->in.chain; i++) {
    int64_t of_in = k->count[k->in.order[i]];
    for (int64_t a = i ? 2 : 1; a <= of_in && a <= MOST_PIECES; a++) {
      if (!is_piece(of_in, a)) continue;
      for (int g = 0; g < count; g++) size[g] = 1;
      if (take_run(k, &k->in, i, a, size) > most) break;
      for (int o = 0; o < k->out.chain; o++) {
        int64_t of_out = k->count[k->out.order[o]];
        for (int64_t b = o ? 2 : 1; b <= of_out && b <= MOST_PIECES; b++) {
          if (!is_piece(of_out, b)) continue;
          memcpy(both, size, sizeof both);
          if (take_run(k, &k->out, o, b, both) > most) break;
          try_box(k, both, most, &best);
        }
      }
    }
  }
  return best;
}

// --- Threads --------------------------------------------------------------------------------------------------------

static int64_t power_in(int64_t n) { return n & -n; }

// Gives the run, and what is around it, to threads and steps; `is_exact`: steps without rest are better.
static void deal_out(struct walk *w, const struct box *box, int64_t rows, bool is_exact) {
  if (rows > w->rows_in_run) w->items[w->item_count++] = rows / w->rows_in_run;
  for (int i = w->fused + w->rows; i < w->count; i++) w->items[w->item_count++] = box->size[w->axes[i]];
  w->cut = w->item_count;
  if (w->run > MOST_THREADS) {
    w->steps = (w->run + MOST_THREADS - 1) / MOST_THREADS;
    w->part = w->threads = (w->run + w->steps - 1) / w->steps;
    w->cut = -1;
    for (int i = 0; i < w->item_count; i++) w->steps *= w->items[i];
    return;
  }
  w->threads = w->run;
  for (int i = 0; i < w->item_count; i++) {
    int64_t extent = w->items[i], part = 1;
    if (w->cut < w->item_count) {
      w->steps *= extent;
    } else if (w->threads * extent <= MOST_THREADS) {
      w->threads *= extent;
    } else {
      double best = 0;
      for (int64_t q = MOST_THREADS / w->threads; q >= 1; q--) {
        int64_t steps = (extent + q - 1) / q;
        double used = (double)extent / (double)(q * steps), score = used * (w->threads * q >= 192 ? 1 : (double)(w->threads * q) / 192) + (is_exact && extent % q == 0 ? 0.1 : 0);
        if (score > best + 0.02) best = score, part = q;
      }
      w->cut = i;
      w->part = part;
      w->threads *= part;
      w->steps *= (extent + part - 1) / part;
    }
  }
}

// The axes of the box's run: as many of the walk's as lie side by side.
static int axes_of_run(const struct pack *k, const struct side *side, const struct box *box) {
  int count = 0;
  for (int i = 0; i < side->chain; i++) {
    int g = side->order[i];
    count += box->size[g] > 1;
    if (box->size[g] < k->count[g]) break;
  }
  return count ? count : 1;
}

static struct walk make_walk(const struct pack *k, const struct side *side, const struct box *box, int64_t vector, bool is_along) {
  struct walk w = {.vector = vector, .threads = 1, .steps = 1, .rows_in_run = 1, .is_along = is_along};
  int64_t product = 1, rows = 1;
  for (int i = 0; i < k->p->group_count; i++)
    if (box->size[side->order[i]] > 1) w.axes[w.count++] = side->order[i];
  if (is_along) {
    w.fused = axes_of_run(k, side, box);
    for (int i = 0; i < w.fused; i++) product *= box->size[w.axes[i]];
    w.run = (product + 2 * vector - 2) / vector;
    deal_out(&w, box, rows, k->in.bytes >= WORD);
    return w;
  }
  int needed = axes_of_vector(k, side, box, vector), with_one = 0;
  for (int i = 0; i < needed; i++) with_one += box->size[side->order[i]] > 1;
  w.fused = with_one > 1 ? with_one : 1;
  for (int i = 0; i < w.fused; i++) product *= box->size[w.axes[i]];
  while (w.fused > 1) { // rows of fewer axes
    int64_t less = product / box->size[w.axes[w.fused - 1]], more = rows * box->size[w.axes[w.fused - 1]];
    int64_t in_run = vector / (power_in(less) < vector ? power_in(less) : vector);
    if (w.rows && product * w.rows_in_run / vector <= MOST_THREADS) break;
    w.fused--, w.rows++;
    product = less, rows = more;
    w.rows_in_run = in_run;
  }
  w.run = product * w.rows_in_run / vector;
  deal_out(&w, box, rows, k->in.bytes >= WORD);
  return w;
}

// --- Shared memory --------------------------------------------------------------------------------------------------

static void place_axes(const struct pack *k, const struct box *box, struct layout *l) {
  int64_t stride = 1;
  for (int g = 0; g < k->p->group_count; g++) l->stride[g] = 0;
  for (int i = 0; i < l->count; i++) {
    l->stride[l->axes[i]] = stride;
    stride = stride * box->size[l->axes[i]] + (i == l->padded ? l->pad : 0);
  }
  l->elements = stride;
}

// Whether the elements of a vector lie side by side, and each vector on a multiple of its size.
static bool is_vector_in(const struct walk *w, const struct box *box, const struct layout *l) {
  int64_t product = 1;
  if (w->is_along) return false;
  for (int i = 0; i < w->count; i++) {
    bool is_run = i < w->fused + w->rows;
    if (is_run && l->stride[w->axes[i]] != product) return false;
    if (!is_run && l->stride[w->axes[i]] % w->vector) return false;
    product *= box->size[w->axes[i]];
  }
  return true;
}

// Where element `flat` of the walk lies.
static int64_t address_of(const struct walk *w, const struct box *box, const struct layout *l, int64_t flat) {
  int64_t address = 0;
  for (int i = 0; i < w->count; i++) {
    address += flat % box->size[w->axes[i]] * l->stride[w->axes[i]];
    flat /= box->size[w->axes[i]];
  }
  return address;
}

// Passes that shared memory takes for the first warps of a walk, an element.
static double wavefronts_of(const struct walk *w, const struct box *box, const struct layout *l, int64_t bytes) {
  enum { WARPS = 4 };
  bool is_wide = w->vector > 1 && is_vector_in(w, box, l);
  int64_t each = is_wide ? 1 : w->vector, total = 0, elements = 0, lanes_at_once = bytes * (is_wide ? w->vector : 1) > 8 ? 8 : bytes * (is_wide ? w->vector : 1) > 4 ? 16 : 32;
  for (int64_t warp = 0; warp < WARPS && warp * 32 < w->threads; warp++) {
    for (int64_t e = 0; e < each; e++) {
      for (int64_t first = 0; first < 32; first += lanes_at_once) {
        int64_t words[BANKS][32];
        int used[BANKS] = {0}, most = 0;
        for (int64_t lane = first; lane < first + lanes_at_once && warp * 32 + lane < w->threads; lane++) {
          int64_t flat = (warp * 32 + lane) * w->vector + e, from, to;
          if (flat >= box->elements) break;
          elements += is_wide ? w->vector : 1;
          from = address_of(w, box, l, flat) * bytes;
          to = from + bytes * (is_wide ? w->vector : 1);
          for (int64_t word = from / 4; word * 4 < to; word++) {
            int bank = (int)(word % BANKS), i = 0;
            while (i < used[bank] && words[bank][i] != word) i++;
            if (i == used[bank]) words[bank][used[bank]++] = word;
            if (used[bank] > most) most = used[bank];
          }
        }
        total += most;
      }
    }
  }
  return elements ? 32.0 * (double)total / (double)elements : 1;
}

// Instructions of a walk, an element: the access of the tensor and its address, those of shared memory, what puts words together, and divisions, which a
// thread does once where its place in the run stays.
static double instructions_of(const struct walk *w, const struct box *box, const struct layout *l, int64_t bytes, int64_t unit) {
  bool is_wide = is_vector_in(w, box, l);
  double vector = (double)w->vector, places = is_wide ? 1 : vector, divisions = 5 * places * (w->fused + (w->rows > 0) - 1), around = 1;
  double all = 2 * (double)unit / vector + (is_wide ? 1 / vector : 1) + (unit > 1 ? (double)unit / 2 : w->vector > 1 && bytes < WORD && !is_wide ? 0.6 : 0);
  for (int i = 0; i < w->item_count; i++) around *= (double)w->items[i];
  all += divisions / vector / (w->cut < 0 ? around : (double)w->steps);
  if (w->rows > 1) all += 4 * places * (w->rows - 1) / vector;
  return all;
}

// What is left of the cost of a box when its walks and its layout are known.
static double cost_of_walks(const struct pack *k, const struct walk *in, const struct walk *out, const struct box *box, const struct layout *l) {
  double bytes = (double)k->cell, instructions = instructions_of(in, box, l, k->cell, k->unit) + instructions_of(out, box, l, k->cell, 1);
  if (k->in.bytes >= WORD) {
    int64_t extent = in->cut < 0 ? in->run : in->cut < in->item_count ? in->items[in->cut] : in->part;
    double rest = in->part > 0 && extent % in->part ? 0.02 : 0; // a last step of some of the threads
    return cost_of_accesses((double)(in->vector * k->in.bytes), (double)(out->vector * k->cell), (double)in->steps) + 0.02 * l->wavefronts / bytes + 0.004 * instructions / bytes + rest;
  }
  double passes = l->wavefronts + (double)k->unit / (double)in->vector + 1 / (double)out->vector;
  // Bytes read one by one leave little in flight. An H200, u8 [92, 96, 97, 98] to (3, 2, 0, 1): 98 us with bytes, 60 with words, in which instructions cost more.
  // [90, 90, 90, 92] to (1, 3, 2, 0): 0.41 of a copy with 90 loads a thread, which are not unrolled, 0.77 with fewer and wider ones.
  double narrow = k->in.bytes * in->vector == 1 ? 0.8 : 0;
  return passes / (3.6 * bytes) + instructions / (14.5 * bytes) + narrow + (in->steps > MOST_STEPS ? 0.5 : 0);
}

static void try_layout(const struct pack *k, const struct box *box, const struct walk *in, const struct walk *out, struct layout l, struct layout *best) {
  place_axes(k, box, &l);
  if (l.elements > k->most) return;
  l.wavefronts = wavefronts_of(in, box, &l, k->cell) + wavefronts_of(out, box, &l, k->cell);
  l.cost = cost_of_walks(k, in, out, box, &l) + 0.0001 * (double)l.pad;
  if (best->count == 0 || l.cost < best->cost - 1e-6) *best = l;
}

static struct layout find_layout(const struct pack *k, const struct box *box, const struct walk *in, const struct walk *out) {
  struct layout best = {0}, orders[3];
  memset(orders, 0, sizeof orders);
  // as the input; as the output; what the output's threads have behind the fastest axes of the input
  for (int i = 0; i < in->count; i++) orders[0].axes[i] = in->axes[i], orders[1].axes[i] = out->axes[i];
  orders[0].count = orders[1].count = in->count;
  bool is_placed[MAX_GROUPS] = {false}, is_out[MAX_GROUPS] = {false};
  for (int i = 0; i < k->out.chain; i++) {
    is_out[k->out.order[i]] = box->size[k->out.order[i]] > 1;
    if (box->size[k->out.order[i]] < k->count[k->out.order[i]]) break;
  }
  for (int i = 0; i < in->count && !is_out[in->axes[i]]; i++) orders[2].axes[orders[2].count++] = in->axes[i], is_placed[in->axes[i]] = true;
  for (int i = 0; i < out->count; i++)
    if (is_out[out->axes[i]] && !is_placed[out->axes[i]]) orders[2].axes[orders[2].count++] = out->axes[i], is_placed[out->axes[i]] = true;
  for (int i = 0; i < in->count; i++)
    if (!is_placed[in->axes[i]]) orders[2].axes[orders[2].count++] = in->axes[i];
  int64_t unit = k->cell < WORD ? WORD / k->cell : 1;
  for (int o = 0; o < 3; o++) {
    orders[o].padded = -1;
    try_layout(k, box, in, out, orders[o], &best);
    for (int i = 0; i + 1 < orders[o].count && !out->is_along; i++)
      for (int64_t pad = 1; pad < MOST_PAD * (i ? unit : 1); pad++) {
        if (pad > 8 && pad % unit) continue;
        orders[o].padded = i, orders[o].pad = pad;
        try_layout(k, box, in, out, orders[o], &best);
      }
    orders[o].padded = -1, orders[o].pad = 0;
  }
  return best;
}

// --- Text -----------------------------------------------------------------------------------------------------------

// A name of an axis of the stage.
static const char *axis_of(struct permute *p, const char *stage, const char *name) { return arena_printf(p->arena, "%s.%s", stage, name); }

// Axes [first, first + count) of the walk as one.
static const char *write_fused(struct permute *p, const char *stage, const struct walk *w, int first, int count, const char *const *names, const char *inside, const char *name) {
  const char *list = NULL;
  if (count == 1 && !inside) return axis_of(p, stage, names[w->axes[first]]);
  for (int i = first + count; i-- > first;) list = permute_join(p, list, axis_of(p, stage, names[w->axes[i]]));
  if (inside) list = permute_join(p, inside, list);
  name = permute_fresh(p, arena_printf(p->arena, "%s_%s", stage, name));
  text_printf(p->out, "  fuse %s -> %s;\n", list, name);
  return name;
}

static void write_split(struct permute *p, const char *axis, int64_t by, const char **outer, const char **inner, const char *base, const char *a, const char *b) {
  *outer = permute_fresh(p, arena_printf(p->arena, "%s_%s", base, a));
  *inner = permute_fresh(p, arena_printf(p->arena, "%s_%s", base, b));
  text_printf(p->out, "  split %s by %lld -> %s, %s;\n", axis, (long long)by, *outer, *inner);
}

// The loops of one side: `stage` names it, `all_names` are the axes of the box. Of the copy a thread takes `unit` neighbours along the axis `across` at once,
// whose places are then rows; of the output, accesses are so many elements for each of a cell.
static void write_walk(struct permute *p, const struct walk *w, const struct box *box, const char *stage, const char *const *all_names, int across, int64_t unit, int64_t cell) {
  const char *names[MAX_GROUPS], *next = NULL, *order = NULL, *threads = NULL, *vector = NULL, *run, *rows = NULL, *rows_in = NULL, *base = arena_printf(p->arena, "%s_run", stage), *items[MAX_GROUPS], *steps[MAX_GROUPS];
  int64_t extents[MAX_GROUPS], unrolled = 1, all_rows = 1;
  int count = 0, item = 0;
  memcpy(names, all_names, sizeof names);
  if (unit > 1 && box->size[across] > 1) { // rows of the copy's cells, and those of a cell
    const char *rows_of;
    write_split(p, axis_of(p, stage, names[across]), unit, &rows_of, &next, arena_printf(p->arena, "%s_%s", stage, names[across]), "row", "unit");
    names[across] = rows_of;
  } else if (unit > 1) {
    next = axis_of(p, stage, names[across]);
  }
  for (int i = w->count; i-- > 0;) order = permute_join(p, order, axis_of(p, stage, names[w->axes[i]]));
  if (next) order = permute_join(p, order, next);
  if (strchr(order, ',')) text_printf(p->out, "  reorder %s;\n", order);
  for (int i = w->fused; i < w->fused + w->rows; i++) all_rows *= box->size[w->axes[i]];
  if (w->rows) {
    rows_in = write_fused(p, stage, w, w->fused, w->rows, names, NULL, "rows");
    if (all_rows > w->rows_in_run) write_split(p, rows_in, w->rows_in_run, &rows, &rows_in, arena_printf(p->arena, "%s_rows", stage), "more", "in");
    if (w->rows_in_run == 1) rows_in = NULL;
  }
  run = write_fused(p, stage, w, 0, w->fused, names, rows_in, "run");
  if (w->is_along) {
    const char *part = permute_fresh(p, arena_printf(p->arena, "%s_part", base));
    vector = permute_fresh(p, arena_printf(p->arena, "%s_vector", base));
    text_printf(p->out, "  split %s by %lld along %s -> %s, %s;\n", run, (long long)w->vector, p->store->mem->label, part, vector);
    run = part;
  } else if (w->vector * cell > 1 && w->run == 1) vector = run, run = NULL;
  else if (w->vector * cell > 1) write_split(p, run, w->vector * cell, &run, &vector, base, "part", "vector");
  if (rows) items[item++] = rows;
  for (int i = w->fused + w->rows; i < w->count; i++) items[item++] = axis_of(p, stage, names[w->axes[i]]);
  for (int i = w->item_count; i-- > 0;) {
    bool is_cut = i == w->cut && w->part < w->items[i];
    if (i > w->cut || (is_cut && w->part == 1)) {
      steps[count] = items[i], extents[count++] = w->items[i];
    } else if (is_cut) {
      const char *inner;
      write_split(p, items[i], w->part, &steps[count], &inner, arena_printf(p->arena, "%s_item", stage), "more", "part");
      extents[count++] = (w->items[i] + w->part - 1) / w->part;
      threads = permute_join(p, threads, inner);
    } else {
      threads = permute_join(p, threads, items[i]);
    }
  }
  if (w->cut < 0) {
    write_split(p, run, w->part, &steps[count], &run, base, "more", "thread");
    extents[count++] = (w->run + w->part - 1) / w->part;
  }
  if (run) threads = permute_join(p, threads, run);
  order = NULL;
  for (int i = 0; i < count; i++) order = permute_join(p, order, steps[i]);
  if (threads) order = permute_join(p, order, threads);
  if (next) vector = vector ? arena_printf(p->arena, "%s, %s", next, vector) : next;
  if (vector) order = permute_join(p, order, vector);
  if (strchr(order, ',')) text_printf(p->out, "  reorder %s;\n", order);
  if (threads && strchr(threads, ',')) {
    const char *thread = permute_fresh(p, arena_printf(p->arena, "%s_thread", stage));
    text_printf(p->out, "  fuse %s -> %s;", threads, thread);
    threads = thread;
  }
  if (threads) text_printf(p->out, "  bind %s -> thread.x;", threads);
  for (int i = count; i-- > 0;) {
    if (extents[i] == 1 || unrolled * extents[i] > MOST_STEPS) break;
    unrolled *= extents[i];
    text_printf(p->out, "  unroll %s;", steps[i]);
  }
  if (vector) text_printf(p->out, "  vectorize %s;", vector);
  text_puts(p->out, "\n");
}

// Cuts the axes and binds the boxes to blocks, of which the axis is returned. `axes` are those of the box, the fastest first; their names go to `names`.
// Blocks follow one another as the output does, or else next to where any tensor goes on. A sector in which a run of the output ends is best filled soon: one
// that waits for its other half may be written twice. An H200, f64 [203, 203, 203] to (1, 2, 0): 0.72 of a copy, and 0.92; f32 [29, 29, 29, 29, 23] to
// (2, 3, 4, 1, 0): 0.68 and 0.83; nothing that was measured lost by it.
static const char *write_box(const struct pack *k, const struct box *box, const int *axes, int axis_count, const char **names, bool by_output) {
  struct permute *p = k->p;
  const char *outside[MAX_GROUPS], *blocks = "", *inside = "", *tile;
  int64_t distance[MAX_GROUPS];
  int count = 0;
  for (int g = 0; g < p->group_count; g++) {
    names[g] = p->groups[g].name;
    if (box->size[g] == k->count[g]) continue;
    const char *axis = names[g];
    int64_t size = box->size[g] * cells_of(k, &k->in, g);
    if (size > 1) {
      axis = permute_piece(p, &p->groups[g], "_tile");
      names[g] = permute_piece(p, &p->groups[g], "_in");
      text_printf(p->out, "  split %s by %lld -> %s, %s;\n", p->groups[g].name, (long long)size, axis, names[g]);
    }
    int64_t of_out = k->out.stride[g], near = (!by_output && k->in.stride[g] < of_out ? k->in.stride[g] : of_out) * (by_output ? 1 : size);
    int place = count++;
    for (; place > 0 && distance[place - 1] < near; place--) distance[place] = distance[place - 1], outside[place] = outside[place - 1];
    distance[place] = near, outside[place] = axis;
  }
  for (int i = 0; i < count; i++) blocks = permute_join(p, i ? blocks : NULL, outside[i]);
  for (int i = axis_count; i-- > 0;) inside = permute_join(p, i + 1 < axis_count ? inside : NULL, names[axes[i]]);
  text_printf(p->out, "  reorder %s, %s;\n", blocks, inside);
  tile = blocks;
  if (count > 1) {
    tile = permute_fresh(p, "tile");
    text_printf(p->out, "  fuse %s -> %s;", blocks, tile);
  }
  text_printf(p->out, "  bind %s -> block.x;\n", tile);
  return tile;
}

static void write_pack(struct pack *k, const char *name, const struct box *box, int64_t most_in, int64_t most_out, bool is_aligned) {
  struct permute *p = k->p;
  const struct ir_mem *copies[MOST_COPIES];
  struct when when = {.p = p};
  permute_copies(p, copies);
  struct walk in = {0}, out = {0};
  struct layout layout = {0};
  bool along = is_aligned && is_written_along(k, box);
  if (along) most_out = VECTOR / k->cell;
  int64_t least_out = k->unit > 1 ? 1 : most_out;
  for (int64_t vector = most_in; vector >= 1; vector /= 2) // narrower ones may lie better
    for (int64_t vector_out = most_out; vector_out >= least_out; vector_out /= 2) {
      struct walk walk = make_walk(k, &k->in, box, vector, false), walk_out = make_walk(k, &k->out, box, vector_out, along);
      struct layout one = find_layout(k, box, &walk, &walk_out);
      if (one.count && (layout.count == 0 || one.cost < layout.cost)) layout = one, in = walk, out = walk_out;
    }
  if (layout.count == 0) return;
  permute_need_alignment(&when, copies[0], (uint32_t)in.vector);
  permute_need_alignment(&when, p->store->mem, (uint32_t)(out.vector * k->unit));
  const char *reason = arena_printf(p->arena, "%s, boxes of %lld elements through shared memory: %lld side by side in the input, %lld in the output; %lld bytes at a time in and %lld out, %.2f passes of shared memory a word",
                                    permute_describe(p), (long long)(box->elements * k->unit), (long long)box->run_in, (long long)(box->run_out * k->unit), (long long)(in.vector * k->in.bytes), (long long)(out.vector * k->out.bytes), layout.wavefronts);
  if (!permute_begin(p, name, &when, reason)) return;
  permute_write_groups(p);
  const char *names[MAX_GROUPS] = {NULL}, *tile = write_box(k, box, layout.axes, layout.count, names, true);
  text_printf(p->out, "  stage %s at %s in shared as %s", copies[0]->label, tile, permute_copy_name(p, 0));
  if (k->unit > 1) text_printf(p->out, " unit %lld along %s", (long long)k->unit, names[k->out.order[0]]);
  if (layout.padded >= 0) text_printf(p->out, " pad %lld along %s", (long long)layout.pad, names[layout.axes[layout.padded]]);
  text_puts(p->out, ";\n");
  write_walk(p, &in, box, permute_copy_name(p, 0), names, k->out.order[0], k->unit, 1);
  write_walk(p, &out, box, permute_stage_name(p), names, -1, 1, k->unit);
  // One block alone would wait at its barrier: registers for two at least, for three of bytes, whose loads are many. An H200, u8 [26, 73, 20, 58, 82] to (3, 2, 1, 4, 0):
  // 0.75 of a copy with two and 0.86 with three; of 48 KiB and more three are slower.
  int64_t size = layout.elements * k->cell, blocks = k->in.bytes == 1 && size <= 48 * 1024 ? 3 : 2;
  if (blocks * size <= permute_shared_limit(p)) text_printf(p->out, "  blocks %lld;\n", (long long)blocks);
  else if (2 * size <= permute_shared_limit(p)) text_puts(p->out, "  blocks 2;\n");
  p->is_plain = true;
  permute_end(p);
  p->is_plain = false;
}

// Boxes that go through registers: the fastest axis stays. An H200, f64 [21846, 3, 4, 4, 8] to (3, 1, 0, 2, 4): 0.79 of a copy with 4 by 4 runs of 64 bytes
// a block, 1.04 with boxes of 11 to 24 KiB; f32 [17, 17, 23, 73, 72] to (3, 2, 1, 0, 4): 0.91 and 0.94.
static void write_direct(struct pack *k, const char *name, const struct box *box, int64_t vector) {
  struct permute *p = k->p;
  struct when when = {.p = p};
  struct walk walk = make_walk(k, &k->out, box, vector, false);
  const char *names[MAX_GROUPS] = {NULL};
  permute_need_alignment(&when, p->load->mem, (uint32_t)vector);
  permute_need_alignment(&when, p->store->mem, (uint32_t)vector);
  const char *reason = arena_printf(p->arena, "%s, the fastest axis stays: boxes of %lld elements, %lld side by side in the input, %lld in the output, %lld bytes at a time", permute_describe(p), (long long)box->elements,
                                    (long long)box->run_in, (long long)box->run_out, (long long)(vector * k->out.bytes));
  if (!permute_begin(p, name, &when, reason)) return;
  permute_write_groups(p);
  write_box(k, box, walk.axes, walk.count, names, false);
  write_walk(p, &walk, box, permute_stage_name(p), names, -1, 1, 1);
  permute_end(p);
}

// Cells of so many elements: rows of the output are made of them. False: they are not, or the fastest axis stays.
static bool take_cells(struct pack *k, int64_t unit) {
  int fast = k->out.order[0];
  if (k->in.order[0] == fast || k->count[fast] % unit) return false;
  for (int i = 1; i < k->p->group_count; i++)
    if (k->out.stride[k->out.order[i]] % unit) return false;
  for (int i = 1; i < k->p->group_count; i++) k->out.stride[k->out.order[i]] /= unit;
  k->count[fast] /= unit;
  k->unit = unit;
  k->cell = k->out.bytes = k->in.bytes * unit;
  k->most /= unit;
  return true;
}

static bool is_cut(const struct pack *k, const struct box *box) {
  bool is = false;
  for (int g = 0; g < k->p->group_count; g++) is |= box->size[g] < k->count[g];
  return is;
}

// What is known of both sides; false: boxes cannot be cut.
static bool make_pack(struct permute *p, struct pack *k) {
  const struct ir_mem *copies[MOST_COPIES];
  *k = (struct pack){.p = p, .unit = 1};
  if (permute_copies(p, copies) != 1 || copies[0] != p->load->mem) return false;
  for (int g = 0; g < p->group_count; g++) {
    k->count[g] = p->groups[g].count;
    if (k->count[g] < 2) return false;
  }
  k->cell = type_bytes(p->load->mem->type);
  return make_side(k, p->load, &k->in) && make_side(k, p->store, &k->out);
}

bool permute_boxes_of_runs(struct permute *p, uint32_t vector) {
  struct pack k;
  size_t before = p->out->length;
  if (!make_pack(p, &k)) return false;
  k.most = MOST_DIRECT / k.in.bytes;
  struct box box = find_box(&k);
  if (box.elements < 2 || !is_cut(&k, &box) || !axes_of_vector(&k, &k.in, &box, vector) || axes_of_vector(&k, &k.out, &box, vector) != 1) return false;
  write_direct(&k, "runs", &box, vector);
  return p->out->length > before;
}

bool permute_pack(struct permute *p) {
  struct pack k, cells;
  size_t before = p->out->length;
  if (!make_pack(p, &k)) return false;
  int64_t bytes = permute_shared_limit(p) < MOST_BYTES ? permute_shared_limit(p) : MOST_BYTES;
  k.most = bytes / k.in.bytes;
  struct box box = find_box(&k);
  if (box.elements < 2 || !is_cut(&k, &box)) return false; // too small
  for (int64_t unit = WORD / k.in.bytes; unit >= 2 && (p->a->forced || k.in.bytes == 2); unit /= 2) {
    cells = k;
    struct box other;
    if (!take_cells(&cells, unit)) continue;
    other = find_box(&cells);
    if (other.elements < 2 || !is_cut(&cells, &other)) continue;
    if (!p->a->forced && widest(&cells, &cells.in, &other, VECTOR) < widest(&k, &k.in, &box, VECTOR)) continue;
    write_pack(&cells, "pack_words", &other, widest(&cells, &cells.in, &other, VECTOR), widest_out(&cells, &other), true);
    break;
  }
  write_pack(&k, "pack", &box, widest(&k, &k.in, &box, VECTOR), widest_out(&k, &box), true);
  if (!p->view.is_closed) write_pack(&k, "pack_unaligned", &box, 1, 1, false);
  return p->out->length > before;
}
