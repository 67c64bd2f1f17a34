// Data races, after FastTrack (Flanagan and Freund, PLDI 2009): each cell of memory keeps its last write and
// the reads since, as epochs; readers of one warp and epoch share one record. Pages of 4 KiB start with cells
// as large as their first access and are made finer as smaller ones come. Where whole warps go lane after
// lane through memory, as most do, one segment stands for 32 cells; whatever does not fit in turns the page
// into cells.
#include "runtime/sim/internal.h"

#include <sched.h>
#include <stdlib.h>

#define PAGE_BYTES (1u << SIM_PAGE_BITS)
#define COARSEST 4u // cells of 16 bytes
#define MOST_READERS_GLOBAL 6
#define MOST_READERS_SHARED 32

// Strength of an access, in the low bits of a mark.
enum { WEAK, CTA, GPU, VOLATILE_ };

// Marks: epoch << 7 | lane << 2 | strength for a write, epoch << 7 | strength for reads.
struct sim_cell {
  uint32_t writer; // warp over the grid, from 1; 0: none
  uint32_t write_mark;
  uint32_t write_op;
  uint32_t reader; // the first reader
  uint32_t read_mark;
  uint32_t read_lanes; // 0: none
  uint32_t read_op;
  uint32_t more; // index + 1 in the page's readers
};

// 32 cells: lane l of the writer or reader is the one that touched cell l.
struct sim_segment {
  uint32_t writer;
  uint32_t write_mark; // without a lane
  uint32_t write_lanes;
  uint32_t write_op;
  uint32_t reader;
  uint32_t read_mark;
  uint32_t read_lanes;
  uint32_t read_op;
};

struct sim_reader {
  uint32_t reader;
  uint32_t mark;
  uint32_t lanes;
  uint32_t op;
  uint32_t next; // index + 1
};

bool sim_shadow_create(struct sim_shadow *shadow, uint64_t bytes) {
  shadow->page_count = (bytes + PAGE_BYTES - 1) >> SIM_PAGE_BITS;
  if (shadow->page_count == 0) shadow->page_count = 1;
  // Whole segments, whatever their cells.
  shadow->page_bytes = bytes == 0 ? 512 : bytes < PAGE_BYTES ? (uint32_t)(bytes + 511) & ~511u : PAGE_BYTES;
  shadow->pages = sim_pages_map(shadow->page_count * sizeof *shadow->pages);
  if (!shadow->pages) return false;
  pthread_mutex_init(&shadow->lock, NULL);
  return true;
}

void sim_shadow_free(struct sim_shadow *shadow) {
  if (!shadow->pages) return;
  for (uint64_t i = 0; i < shadow->touched_count; i++) {
    struct sim_page *page = &shadow->pages[shadow->touched[i]];
    free(page->segments);
    free(page->cells);
    free(page->readers);
    memset(page, 0, sizeof *page);
  }
  free(shadow->touched);
  pthread_mutex_destroy(&shadow->lock);
  sim_pages_unmap(shadow->pages, shadow->page_count * sizeof *shadow->pages);
  shadow->pages = NULL;
}

// Remembers a page that holds memory, so that freeing need not look at all of them.
static bool touch(struct sim_shadow *shadow, uint64_t index) {
  pthread_mutex_lock(&shadow->lock);
  bool is_kept = true;
  if (shadow->touched_count == shadow->touched_room) {
    uint64_t room = shadow->touched_room ? 2 * shadow->touched_room : 64;
    uint64_t *grown = realloc(shadow->touched, room * sizeof *grown);
    if (grown) {
      shadow->touched = grown;
      shadow->touched_room = room;
    }
    is_kept = grown != NULL;
  }
  if (is_kept) shadow->touched[shadow->touched_count++] = index;
  pthread_mutex_unlock(&shadow->lock);
  return is_kept;
}

static void lock_page(struct sim_page *page) {
  for (unsigned tries = 0; atomic_exchange_explicit(&page->lock, 1, memory_order_acquire); tries++) {
    if (tries > 64) sched_yield();
  }
}

static void unlock_page(struct sim_page *page) {
  atomic_store_explicit(&page->lock, 0, memory_order_release);
}

static uint32_t reader_new(struct sim_page *page) {
  if (page->reader_free) {
    uint32_t index = page->reader_free;
    page->reader_free = page->readers[index - 1].next;
    return index;
  }
  if (page->reader_count == page->reader_room) {
    uint32_t room = page->reader_room ? 2 * page->reader_room : 32;
    struct sim_reader *grown = realloc(page->readers, room * sizeof *grown);
    if (!grown) return 0;
    page->readers = grown;
    page->reader_room = room;
  }
  return ++page->reader_count;
}

static void readers_clear(struct sim_page *page, struct sim_cell *cell) {
  cell->read_lanes = 0;
  while (cell->more) {
    struct sim_reader *reader = &page->readers[cell->more - 1];
    uint32_t next = reader->next;
    reader->next = page->reader_free;
    page->reader_free = cell->more;
    cell->more = next;
  }
}

// A copy of a cell's chain of readers, for a cell split in two.
static uint32_t readers_copy(struct sim_page *page, uint32_t from) {
  uint32_t first = 0, last = 0;
  for (; from; from = page->readers[from - 1].next) {
    uint32_t index = reader_new(page);
    if (!index) return first;
    page->readers[index - 1] = page->readers[from - 1];
    page->readers[index - 1].next = 0;
    if (last) {
      page->readers[last - 1].next = index;
    } else {
      first = index;
    }
    last = index;
  }
  return first;
}

// Makes cells of 2^granule bytes out of larger ones.
static bool refine(const struct sim_shadow *shadow, struct sim_page *page, uint32_t granule) {
  uint32_t parts = 1u << (page->granule - granule), count = shadow->page_bytes >> page->granule;
  uint32_t room = shadow->page_bytes >> granule;
  struct sim_cell *cells = malloc(room * sizeof *cells);
  if (!cells) return false;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < parts; k++) {
      struct sim_cell *cell = &cells[i * parts + k];
      *cell = page->cells[i];
      if (k > 0 && cell->more) cell->more = readers_copy(page, cell->more);
    }
  }
  free(page->cells);
  page->cells = cells;
  page->cell_room = room;
  page->granule = granule;
  return true;
}

// Empty cells of 2^granule bytes.
static bool clear_cells(const struct sim_shadow *shadow, struct sim_page *page, uint32_t granule) {
  uint32_t count = shadow->page_bytes >> granule;
  if (count > page->cell_room) {
    free(page->cells);
    page->cell_room = 0;
    page->cells = calloc(count, sizeof *page->cells);
    if (!page->cells) return false;
    page->cell_room = count;
  } else {
    memset(page->cells, 0, count * sizeof *page->cells);
  }
  page->granule = granule;
  page->is_segmented = false;
  return true;
}

// Turns segments into cells.
static bool expand(const struct sim_shadow *shadow, struct sim_page *page) {
  uint32_t count = shadow->page_bytes >> (page->granule + 5);
  if (!clear_cells(shadow, page, page->granule)) return false;
  for (uint32_t i = 0; i < count; i++) {
    const struct sim_segment *segment = &page->segments[i];
    for (uint32_t l = 0; l < SIM_LANES; l++) {
      struct sim_cell *cell = &page->cells[i * SIM_LANES + l];
      if (segment->write_lanes >> l & 1) {
        cell->writer = segment->writer;
        cell->write_mark = segment->write_mark | l << 2;
        cell->write_op = segment->write_op;
      }
      if (segment->read_lanes >> l & 1) {
        cell->reader = segment->reader;
        cell->read_mark = segment->read_mark;
        cell->read_lanes = 1u << l;
        cell->read_op = segment->read_op;
      }
    }
  }
  return true;
}

// A page as it is at the start of a launch, in segments if wished.
static bool start_page(struct sim_shadow *shadow, struct sim_page *page, uint32_t generation,
                       uint32_t granule, bool in_segments) {
  if (!page->is_touched) {
    if (!touch(shadow, (uint64_t)(page - shadow->pages))) return false;
    page->is_touched = true;
  }
  page->reader_count = page->reader_free = 0;
  uint32_t count = shadow->page_bytes >> (granule + 5);
  if (in_segments && count > page->segment_room) {
    free(page->segments);
    page->segment_room = 0;
    page->segments = malloc(count * sizeof *page->segments);
    if (!page->segments) return false;
    page->segment_room = count;
  }
  if (in_segments) {
    memset(page->segments, 0, count * sizeof *page->segments);
    page->granule = granule;
    page->is_segmented = true;
  } else if (!clear_cells(shadow, page, granule)) {
    return false;
  }
  page->generation = generation;
  return true;
}

// Cells ready for accesses of 2^granule bytes in this launch.
static bool prepare(struct sim_shadow *shadow, struct sim_page *page, uint32_t generation, uint32_t granule) {
  if (page->generation != generation) return start_page(shadow, page, generation, granule, false);
  if (page->is_segmented && !expand(shadow, page)) return false;
  return page->granule <= granule || refine(shadow, page, granule);
}

// ---- Cells
// -------------------------------------------------------------------------------------------------

// One lane's access while it is checked.
struct access {
  struct sim_warp *warp;
  const struct sim_op *op;
  uint32_t id; // of the warp over the grid
  uint32_t lane;
  uint32_t strength;
  uint32_t op_index;
  bool is_shared;
  uint64_t address;
  uint32_t bytes;
};

// Strong accesses whose scopes include each other do not race.
static bool are_strong(const struct access *access, uint32_t other, uint32_t id) {
  uint32_t mine = access->strength;
  if (mine == WEAK || other == WEAK) return false;
  if (mine == VOLATILE_ || other == VOLATILE_) return id != access->id;
  if (id - access->warp->first_id < access->warp->block->warp_count) return true;
  return mine == GPU && other == GPU;
}

#define PLAIN_READ " (of a word that an atomic changes: read it by .volatile or .relaxed)"

// Whether one is an atomic and the other a plain load.
static bool is_plain_read(const struct sim_op *one, const struct sim_op *other) {
  bool is_atomic = sim_opcodes[one->opcode].class_ == SIM_CLASS_ATOMIC;
  const struct sim_op *atomic = is_atomic ? one : other, *plain = is_atomic ? other : one;
  return sim_opcodes[atomic->opcode].class_ == SIM_CLASS_ATOMIC && plain->scope == SIM_SCOPE_WEAK &&
         strncmp(sim_opcodes[plain->opcode].name, "ld", 2) == 0;
}

static void report(const struct access *access, const char *mine, const char *theirs, uint32_t id,
                   uint32_t lane, uint32_t op_index) {
  struct sim_warp *warp = access->warp;
  struct sim_launch_state *launch = warp->block->launch;
  struct sim_where at = {
      warp, access->op, &warp->module->ops[op_index], access->lane, true, access->address, access->bytes};
  uint32_t warps = launch->warps, other_block = (id - 1) / warps, other_warp = (id - 1) % warps;
  bool is_same_block = id - warp->first_id < warps;
  char where[64] = "";
  if (!is_same_block) snprintf(where, sizeof where, " of block %u", other_block);
  sim_find(launch, access->is_shared ? SIM_RACE_SHARED : SIM_RACE_GLOBAL, &at,
           "%s, and %s by thread %u%s, with nothing between them that orders them%s", mine, theirs,
           other_warp * SIM_LANES + lane, where, is_plain_read(at.op, at.other) ? PLAIN_READ : "");
}

static bool check_writer(const struct access *access, const struct sim_cell *cell, const char *mine) {
  uint32_t mark = cell->write_mark, lane = mark >> 2 & 31;
  if (cell->writer == access->id && lane == access->lane) return true;
  if (are_strong(access, mark & 3, cell->writer)) return true;
  if (sim_ordered(access->warp, access->lane, cell->writer, 1u << lane, mark >> 7)) return true;
  report(access, mine, "a write", cell->writer, lane, cell->write_op);
  return false;
}

static bool check_reader(const struct access *access, uint32_t id, uint32_t mark, uint32_t lanes,
                         uint32_t op) {
  if (id == access->id) lanes &= ~(1u << access->lane);
  if (!lanes || are_strong(access, mark & 3, id)) return true;
  if (sim_ordered(access->warp, access->lane, id, lanes, mark >> 7)) return true;
  report(access, "a write", "a read", id, (uint32_t)__builtin_ctz(lanes), op);
  return false;
}

static void write_cell(const struct access *access, struct sim_page *page, struct sim_cell *cell,
                       uint32_t epoch) {
  bool is_clean = !cell->writer || check_writer(access, cell, "a write");
  if (cell->read_lanes) {
    is_clean =
        is_clean && check_reader(access, cell->reader, cell->read_mark, cell->read_lanes, cell->read_op);
    for (uint32_t at = cell->more; at && is_clean; at = page->readers[at - 1].next) {
      const struct sim_reader *reader = &page->readers[at - 1];
      is_clean = check_reader(access, reader->reader, reader->mark, reader->lanes, reader->op);
    }
    readers_clear(page, cell);
  }
  cell->writer = access->id;
  cell->write_mark = epoch << 7 | access->lane << 2 | access->strength;
  cell->write_op = access->op_index;
}

// Adds a reader beside those that it is not ordered behind.
static void add_reader(const struct access *access, struct sim_page *page, struct sim_cell *cell,
                       uint32_t mark) {
  unsigned count = 0;
  for (uint32_t at = cell->more; at; at = page->readers[at - 1].next, count++) {
    struct sim_reader *reader = &page->readers[at - 1];
    if (reader->reader != access->id) continue;
    if (reader->mark == mark) {
      reader->lanes |= 1u << access->lane;
      return;
    }
    if (sim_ordered(access->warp, access->lane, reader->reader, reader->lanes, reader->mark >> 7)) {
      *reader = (struct sim_reader){access->id, mark, 1u << access->lane, access->op_index, reader->next};
      return;
    }
  }
  // Where very many read, a few stand for all: one of them will do to show a race with a later write.
  if (count >= (access->is_shared ? MOST_READERS_SHARED : MOST_READERS_GLOBAL)) return;
  uint32_t index = reader_new(page);
  if (!index) return;
  page->readers[index - 1] =
      (struct sim_reader){access->id, mark, 1u << access->lane, access->op_index, cell->more};
  cell->more = index;
}

static void read_cell(const struct access *access, struct sim_page *page, struct sim_cell *cell,
                      uint32_t epoch) {
  if (cell->writer) check_writer(access, cell, "a read");
  uint32_t mark = epoch << 7 | access->strength, bit = 1u << access->lane;
  if (cell->reader == access->id && cell->read_mark == mark && cell->read_lanes) {
    cell->read_lanes |= bit;
    return;
  }
  bool is_first = !cell->read_lanes;
  if (!is_first && !cell->more) {
    is_first = sim_ordered(access->warp, access->lane, cell->reader, cell->read_lanes, cell->read_mark >> 7);
  }
  if (!is_first) {
    add_reader(access, page, cell, mark);
    return;
  }
  cell->reader = access->id;
  cell->read_mark = mark;
  cell->read_lanes = bit;
  cell->read_op = access->op_index;
}

static uint32_t granule_of(uint32_t bytes) {
  uint32_t granule = (uint32_t)__builtin_ctz(bytes);
  return granule > COARSEST ? COARSEST : granule;
}

// Whether the lanes go one after another from a multiple of 32 elements; `granule` is that of an element.
static bool is_row(uint32_t mask, const uint64_t *offset, uint32_t bytes) {
  uint32_t first = (uint32_t)__builtin_ctz(mask);
  uint64_t base = offset[first] - (uint64_t)first * bytes, wrong = 0;
  if (bytes > 16 || (base & (SIM_LANES * bytes - 1)) != 0) return false;
  SIM_EACH(mask, l, { wrong |= offset[l] ^ (base + l * bytes); });
  return wrong == 0;
}

// Whether all accesses of a warp at an epoch are known to all lanes of another of its block.
static bool is_known(const struct sim_warp *warp, uint32_t id, uint32_t mark) {
  uint32_t other = id - warp->first_id;
  return other < warp->block->warp_count && other != warp->index && mark >> 7 <= warp->rows[other];
}

// A row's access to a segment. False, with nothing done, where cells must tell.
static bool touch_segment(const struct access *access, struct sim_segment *segment, uint32_t mask,
                          uint32_t epoch, bool is_write) {
  const struct sim_warp *warp = access->warp;
  uint32_t mark = epoch << 7 | access->strength;
  bool is_own_write = segment->writer == access->id, is_own_read = segment->reader == access->id;
  // Own lanes meet only themselves: lane l touches cell l.
  bool is_after_write =
      !segment->write_lanes || is_own_write || is_known(warp, segment->writer, segment->write_mark);
  bool is_after_read =
      !segment->read_lanes || is_own_read || is_known(warp, segment->reader, segment->read_mark);
  if (!is_after_write || (is_write && !is_after_read)) return false;
  if (is_write) {
    bool is_same = is_own_write && segment->write_mark == mark;
    if (!is_same && (segment->write_lanes & ~mask)) return false;
    segment->write_lanes = is_same ? segment->write_lanes | mask : mask;
    segment->writer = access->id;
    segment->write_mark = mark;
    segment->write_op = access->op_index;
    segment->read_lanes &= ~mask;
  } else {
    bool is_same = is_own_read && segment->read_mark == mark;
    if (!is_same && ((segment->read_lanes & ~mask) || !is_after_read)) return false;
    segment->read_lanes = is_same ? segment->read_lanes | mask : mask;
    segment->reader = access->id;
    segment->read_mark = mark;
    segment->read_op = access->op_index;
  }
  return true;
}

// A row's access to its page: true when segments could take it.
static bool row_access(const struct access *access, struct sim_shadow *shadow, struct sim_page *page,
                       uint32_t generation, uint32_t mask, uint64_t offset, bool is_write) {
  uint32_t granule = granule_of(access->bytes);
  if (page->generation != generation && !start_page(shadow, page, generation, granule, true)) return false;
  if (!page->is_segmented || page->granule != granule) return false;
  struct sim_segment *segment = &page->segments[(offset & (PAGE_BYTES - 1)) >> (granule + 5)];
  return touch_segment(access, segment, mask, access->warp->epoch, is_write);
}

void sim_shadow_access(struct sim_warp *warp, const struct sim_op *op, struct sim_shadow *shadow,
                       uint32_t generation, bool is_shared, uint32_t mask, const uint64_t *offset,
                       uint64_t address_base, uint32_t bytes, enum sim_access kind) {
  uint32_t strength = op->scope == SIM_SCOPE_WEAK ? WEAK : op->scope == SIM_SCOPE_CTA ? CTA : GPU;
  if (is_shared && op->is_volatile) strength = VOLATILE_;
  struct access access = {.warp = warp,
                          .op = op,
                          .id = warp->first_id + warp->index,
                          .strength = strength,
                          .op_index = (uint32_t)(op - warp->module->ops),
                          .is_shared = is_shared,
                          .bytes = bytes};
  uint32_t granule = granule_of(bytes), epoch = warp->epoch;
  bool is_locked = !is_shared && warp->block->launch->options.jobs > 1;
  struct sim_page *page = NULL;
  uint64_t page_index = UINT64_MAX;
  bool is_ready = false;
  if (!is_shared && is_row(mask, offset, bytes)) {
    page_index = offset[__builtin_ctz(mask)] >> SIM_PAGE_BITS;
    page = &shadow->pages[page_index];
    if (is_locked) lock_page(page);
    bool is_done =
        row_access(&access, shadow, page, generation, mask, offset[__builtin_ctz(mask)], kind != SIM_READ);
    if (is_locked) unlock_page(page);
    if (is_done) return;
    page = NULL;
    page_index = UINT64_MAX;
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(rest);
    uint64_t at = offset[lane], index = at >> SIM_PAGE_BITS;
    if (index != page_index) {
      if (page && is_locked) unlock_page(page);
      page = &shadow->pages[index];
      page_index = index;
      if (is_locked) lock_page(page);
      is_ready = prepare(shadow, page, generation, granule);
      if (!is_ready) atomic_store(&warp->block->launch->out_of_memory, true);
    }
    if (!is_ready) continue;
    access.lane = lane;
    access.address = address_base + at;
    uint32_t first = (uint32_t)(at & (PAGE_BYTES - 1)) >> page->granule;
    uint32_t last = (uint32_t)((at & (PAGE_BYTES - 1)) + bytes - 1) >> page->granule;
    for (uint32_t i = first; i <= last; i++) {
      if (kind == SIM_READ) {
        read_cell(&access, page, &page->cells[i], epoch);
      } else {
        write_cell(&access, page, &page->cells[i], epoch);
      }
    }
  }
  if (page && is_locked) unlock_page(page);
}
