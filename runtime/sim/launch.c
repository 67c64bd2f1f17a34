// Launches: what the hardware would refuse, then blocks on worker threads.
#include "runtime/sim/stats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

// Instructions a block runs before a worker looks around. Short, because it is also how late a limit is
// noticed.
#define BLOCK_SLICE 65536
#define DEFAULT_STEPS (UINT64_C(1) << 31)
#define DEFAULT_FINDINGS 100
#define DEFAULT_SMS 132
#define THREADS_OF_SM 2048
#define BLOCKS_OF_SM 32
#define RESERVED_SHARED 1024

// Shared memory a block may have, by the architecture (CUDA programming guide, table of technical
// specifications).
static uint64_t shared_limit(uint32_t arch) {
  if (arch < 75) return 96 << 10;
  if (arch < 80) return 64 << 10;
  if (arch == 80 || arch == 87) return 163 << 10;
  if (arch < 90) return 99 << 10;
  return arch < 120 ? 227 << 10 : 99 << 10;
}

static void set_options(struct sim_launch_state *state, const struct sim_options *options) {
  if (options) state->options = *options;
  struct sim_options *out = &state->options;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (out->jobs == 0) out->jobs = processors > 0 ? (uint32_t)processors : 1;
  if (out->max_steps == 0) out->max_steps = DEFAULT_STEPS;
  if (out->max_findings == 0) out->max_findings = DEFAULT_FINDINGS;
  if (out->sm_count == 0) out->sm_count = DEFAULT_SMS;
  if (out->arch == 0) out->arch = state->module->target ? (uint32_t)state->module->target : 75;
  if (out->shared_limit == 0) out->shared_limit = shared_limit(out->arch);
  state->checks = SIM_CHECK_ALL & ~out->unchecked;
}

// ---- What does not fit
// -------------------------------------------------------------------------------------

#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static void
refuse(struct sim_launch_state *state, const char *format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  struct sim_op entry = {.line = state->function->line, .loc = -1};
  struct sim_where where = {.op = &entry};
  state->checks |= SIM_CHECK(SIM_BAD_LAUNCH);
  sim_find(state, SIM_BAD_LAUNCH, &where, "%s", text);
}

// True when the launch is one that the hardware accepts; else there is a finding.
static bool fits(struct sim_launch_state *state) {
  const struct sim_launch *launch = state->launch;
  const struct sim_entry *entry = launch->entry;
  const uint32_t *block = launch->block, *grid = launch->grid;
  uint64_t threads = (uint64_t)block[0] * block[1];
  if (block[2] != 0 && threads > UINT64_MAX / block[2])
    threads = UINT64_MAX;
  else
    threads *= block[2];
  if (threads == 0 || threads > 1024 || block[0] > 1024 || block[1] > 1024 || block[2] > 64) {
    refuse(state,
           "a block of (%" PRIu32 ",%" PRIu32 ",%" PRIu32
           ") threads: at least 1, at most 1024 in all and in x and y, 64 in z",
           block[0], block[1], block[2]);
    return false;
  }
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 ||
      grid[2] > 65535) {
    refuse(state,
           "a grid of (%" PRIu32 ",%" PRIu32 ",%" PRIu32
           ") blocks: at least 1, at most 2^31-1 in x, 65535 in y and z",
           grid[0], grid[1], grid[2]);
    return false;
  }
  const uint32_t *need = entry->required_block, *most = entry->maximum_block;
  if (need[0] != 0 && memcmp(need, block, 3 * sizeof *need) != 0) {
    refuse(state,
           "a block of (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ") threads, but .reqntid says (%" PRIu32 ",%" PRIu32
           ",%" PRIu32 ")",
           block[0], block[1], block[2], need[0], need[1], need[2]);
    return false;
  }
  if (most[0] != 0 && threads > (uint64_t)most[0] * most[1] * most[2]) {
    refuse(state, "a block of %" PRIu64 " threads, but .maxntid allows %" PRIu64, threads,
           (uint64_t)most[0] * most[1] * most[2]);
    return false;
  }
  uint64_t limit = state->options.shared_limit, fixed = entry->shared_bytes;
  if (fixed > 48 << 10) {
    refuse(state, "%" PRIu64 " bytes of static shared memory: at most 49152", fixed);
    return false;
  }
  if (launch->dynamic_shared > limit || fixed + launch->dynamic_shared > limit) {
    refuse(state, "%" PRIu64 " bytes of shared memory: at most %" PRIu64 " on sm_%" PRIu32,
           fixed + launch->dynamic_shared, limit, state->options.arch);
    return false;
  }
  state->threads = (uint32_t)threads;
  state->warps = (state->threads + SIM_LANES - 1) / SIM_LANES;
  return true;
}

// ---- Workers
// -----------------------------------------------------------------------------------------------

static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t modulus) {
  return (uint64_t)((unsigned __int128)a * b % modulus);
}

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// A seeded order of blocks: i goes to (i * factor + offset) modulo their number.
static void draw_order(struct sim_launch_state *state) {
  struct sim_rng rng = {sim_mix(state->options.seed + 1)};
  do {
    state->order_factor = sim_random(&rng) % state->blocks;
  } while (gcd(state->order_factor, state->blocks) != 1);
  state->order_offset = sim_random(&rng) % state->blocks;
}

static bool must_stop(struct sim_launch_state *state) {
  return atomic_load_explicit(&state->stop, memory_order_relaxed) ||
         atomic_load_explicit(&state->out_of_memory, memory_order_relaxed);
}

static void push(struct sim_worker *worker, struct sim_block *block) {
  block->next = NULL;
  *worker->ready_end = block;
  worker->ready_end = &block->next;
  worker->resident++;
}

static struct sim_block *pop(struct sim_worker *worker) {
  struct sim_block *block = worker->ready;
  if (!block) return NULL;
  worker->ready = block->next;
  if (!worker->ready) worker->ready_end = &worker->ready;
  worker->resident--;
  return block;
}

// Starts the next block of the grid, if there is one and it may be resident; NULL else.
static struct sim_block *start_next(struct sim_worker *worker) {
  struct sim_launch_state *state = worker->launch;
  if (atomic_load(&state->next_block) >= state->blocks) return NULL;
  if (atomic_fetch_add(&state->resident, 1) >= state->resident_limit) {
    atomic_fetch_sub(&state->resident, 1);
    return NULL;
  }
  uint64_t next = atomic_fetch_add(&state->next_block, 1);
  if (next >= state->blocks) {
    atomic_fetch_sub(&state->resident, 1);
    return NULL;
  }
  struct sim_block *block = worker->spare;
  if (block) {
    worker->spare = block->next;
  } else {
    block = sim_block_create(worker);
  }
  if (!block) {
    atomic_store(&state->out_of_memory, true);
    return NULL;
  }
  uint64_t linear =
      (multiply_modulo(next, state->order_factor, state->blocks) + state->order_offset) % state->blocks;
  sim_block_start(block, linear);
  worker->counters.stats.blocks++;
  return block;
}

static void finish(struct sim_worker *worker, struct sim_block *block) {
  if (block->is_stopped) atomic_fetch_add(&worker->launch->incomplete, 1);
  sim_clock_end(block);
  block->next = worker->spare;
  worker->spare = block;
  atomic_fetch_sub(&worker->launch->resident, 1);
}

static void stop_at_limit(struct sim_launch_state *state, struct sim_block *block) {
  for (uint32_t w = 0; w < block->warp_count; w++) {
    const struct sim_warp *warp = &block->warps[w];
    if (warp->split_count == 0) continue;
    uint32_t index = warp->running < warp->split_count ? warp->running : 0;
    const struct sim_split *split = &warp->splits[index];
    struct sim_where at = {
        .warp = warp, .op = &state->module->ops[split->pc], .lane = (uint32_t)__builtin_ctz(split->mask)};
    if (!atomic_exchange(&state->stop, true)) {
      sim_find(state, SIM_STEP_LIMIT, &at, "stopped after %" PRIu64 " warp instructions",
               state->options.max_steps);
    }
    return;
  }
}

// Blocks that do not end within their slice take turns. While they read strongly, as those do that wait for
// others, new ones start; else only now and then.
static void *work(void *argument) {
  struct sim_worker *worker = argument;
  struct sim_launch_state *state = worker->launch;
  uint64_t waited = 0;
  bool wants_new = true;
  while (!must_stop(state)) {
    struct sim_block *block = NULL;
    if (wants_new || !worker->ready) block = start_next(worker);
    wants_new = false;
    if (!block) block = pop(worker);
    if (!block) {
      bool is_over = atomic_load(&state->next_block) >= state->blocks;
      if (is_over || must_stop(state)) break;
      usleep(100); // the other workers' blocks fill the device
      continue;
    }
    uint64_t steps = atomic_load_explicit(&state->steps, memory_order_relaxed),
             limit = state->options.max_steps;
    uint64_t slice = steps >= limit                ? 0
                     : limit - steps < BLOCK_SLICE ? limit - steps
                                                   : BLOCK_SLICE,
             left = slice;
    uint64_t strong = worker->strong;
    bool is_done = slice > 0 && sim_block_run(block, &left);
    atomic_fetch_add_explicit(&state->steps, slice - left, memory_order_relaxed);
    if (is_done) {
      finish(worker, block);
      wants_new = !worker->ready;
      continue;
    }
    push(worker, block);
    if (atomic_load(&state->steps) >= limit) stop_at_limit(state, block);
    wants_new = worker->strong != strong || ++waited >= worker->resident;
    if (wants_new) waited = 0;
  }
  return NULL;
}

static void worker_destroy(struct sim_worker *worker) {
  for (struct sim_block *block; (block = pop(worker));) {
    atomic_fetch_add(&worker->launch->incomplete, 1);
    sim_block_destroy(block);
  }
  for (struct sim_block *block = worker->spare, *next; block; block = next) {
    next = block->next;
    sim_block_destroy(block);
  }
  free(worker->counters.threads);
  free(worker->counters.warps);
}

static bool worker_create(struct sim_worker *worker, struct sim_launch_state *state) {
  worker->launch = state;
  worker->ready_end = &worker->ready;
  worker->counters.threads = calloc(state->module->op_count + 1, sizeof *worker->counters.threads);
  worker->counters.warps = calloc(state->module->op_count + 1, sizeof *worker->counters.warps);
  return worker->counters.threads && worker->counters.warps;
}

static bool run(struct sim_launch_state *state) {
  uint64_t jobs = state->options.jobs < state->blocks ? state->options.jobs : state->blocks;
  if (jobs > 256) jobs = 256;
  state->options.jobs = (uint32_t)jobs;
  struct sim_worker *workers = calloc(jobs, sizeof *workers);
  if (!workers) return false;
  bool is_ready = true;
  size_t created = 0;
  for (; created < jobs && is_ready; created++) is_ready = worker_create(&workers[created], state);
  if (is_ready) {
    for (size_t i = 1; i < jobs; i++) {
      workers[i].has_thread = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
    work(&workers[0]);
    for (size_t i = 1; i < jobs; i++) {
      if (workers[i].has_thread) pthread_join(workers[i].thread, NULL);
    }
    is_ready = sim_stats_gather(state->module, workers, jobs, &state->report->stats);
  }
  for (size_t i = 0; i < created; i++) worker_destroy(&workers[i]);
  free(workers);
  return is_ready && !atomic_load(&state->out_of_memory);
}

// ---- The launch
// --------------------------------------------------------------------------------------------

// Registers as they are when a thread starts: zero. A register that nothing wrote is no poison: compilers
// leave undefined halves of packed values in such registers, and never let them reach a result.
static bool make_frame(struct sim_launch_state *state) {
  const struct sim_function *function = state->function;
  state->frame_image = calloc(function->frame_bytes + 1, 1);
  return state->frame_image != NULL;
}

static bool make_symbols(struct sim_launch_state *state) {
  const struct sim_module *module = state->module;
  const uint64_t *addresses = sim_memory_link(state->memory, module);
  state->symbols = calloc(module->variable_count + 1, sizeof *state->symbols);
  if (!addresses || !state->symbols) return false;
  memcpy(state->symbols, addresses, module->variable_count * sizeof *state->symbols);
  uint64_t bytes;
  if (!sim_shared_layout(module, state->function, state->symbols, &bytes)) return false;
  uint64_t reserved = 0;
  for (int i = SIM_SPECIAL_RESERVED_SMEM_0; i <= SIM_SPECIAL_RESERVED_SMEM_CAP; i++)
    reserved |= UINT64_C(1) << i;
  state->reserved_shared = module->special_mask & reserved ? RESERVED_SHARED : 0;
  bytes += state->launch->dynamic_shared;
  if (state->reserved_shared) bytes = (bytes + 15) & ~UINT64_C(15);
  state->shared_bytes = (uint32_t)bytes + state->reserved_shared;
  return true;
}

static bool prepare(struct sim_launch_state *state) {
  const struct sim_launch *launch = state->launch;
  state->parameter_bytes = launch->entry->parameter_bytes;
  state->parameters = calloc(state->parameter_bytes + 1, 1);
  if (!state->parameters || !make_symbols(state) || !make_frame(state)) return false;
  if (state->parameter_bytes) memcpy(state->parameters, launch->parameters, state->parameter_bytes);
  state->sync = sim_sync_create();
  state->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  uint32_t of_sm = THREADS_OF_SM / (state->warps * SIM_LANES);
  if (of_sm > BLOCKS_OF_SM) of_sm = BLOCKS_OF_SM;
  state->resident_limit = state->options.sm_count * (of_sm ? of_sm : 1);
  draw_order(state);
  state->memory->generation++;
  return state->sync != NULL;
}

static enum sim_result refused(struct sim_report *report, const char *text) {
  snprintf(report->error, sizeof report->error, "%s", text);
  return SIM_REFUSED;
}

enum sim_result sim_launch(const struct sim_module *module, struct sim_memory *memory,
                           const struct sim_launch *launch, const struct sim_options *options,
                           struct sim_report *report) {
  memset(report, 0, sizeof *report);
  if (!launch->entry) return refused(report, "no entry to launch");
  const struct sim_function *function = NULL;
  for (size_t i = 0; i < module->entry_count; i++) {
    if (&module->functions[module->entries[i]].entry == launch->entry)
      function = &module->functions[module->entries[i]];
  }
  if (!function) return refused(report, "the entry is not one of this module");
  if (launch->parameter_bytes < launch->entry->parameter_bytes) {
    snprintf(report->error, sizeof report->error, "the parameters take %zu bytes, but %zu are given",
             launch->entry->parameter_bytes, launch->parameter_bytes);
    return SIM_REFUSED;
  }
  struct sim_launch_state *state = calloc(1, sizeof *state);
  if (!state) return refused(report, "out of memory");
  state->module = module;
  state->function = function;
  state->memory = memory;
  state->launch = launch;
  state->report = report;
  pthread_mutex_init(&state->lock, NULL);
  set_options(state, options);
  bool is_refused = false;
  if (fits(state)) {
    is_refused = !prepare(state) || !run(state);
    report->is_complete = !is_refused && !atomic_load(&state->stop) && atomic_load(&state->incomplete) == 0;
  }
  sim_sync_destroy(state->sync);
  free(state->symbols);
  free(state->parameters);
  free(state->frame_image);
  pthread_mutex_destroy(&state->lock);
  free(state);
  if (is_refused) return refused(report, "out of memory");
  sim_report_sort(report);
  return report->finding_count || report->finding_total ? SIM_FOUND : SIM_OK;
}
