// redc bench: times one kernel on the GPU, beside what the GPU's memory can do; or counts what it does in the simulator.
#include "compiler/bench_gauge.h"
#include "compiler/driver.h"
#include "compiler/output.h"
#include "compiler/run_progress.h"
#include "compiler/subcommands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char HELP[] =
    "Usage: redc bench [options] FILE.red... -D NAME=N...\n"
    "Time one kernel on the GPU: microseconds, bytes a second, and the part that this is of what\n"
    "the GPU's memory gives to kernels that only read, or only copy, as many bytes, measured in\n"
    "the same run. L2 is cold: it is flushed before each launch.\n\n"
    "  -D NAME=N            a size, fixed when the kernel is compiled\n"
    "  --size NAME=N        a size's value at launch; the kernel is compiled for any\n"
    "  --arg NAME=VALUE     a tensor or scalar, as in redc run; rand and 1 if not given\n"
    "  --kernel NAME        which kernel, where there are several\n"
    "  --repeats N          how often it is timed; 30 if not given\n"
    "  --device=cuda|sim    sim: no times; what the simulator counts of it, without a GPU\n"
    "  --seed N  --jobs N   order of blocks, and host threads, of the simulator\n"
    "  --json               print one JSON object\n"
    "  --help               print this text\n\n"
    "Options of redc that choose code and messages apply too: --arch --schedule --class -O.\n\n"
    "Examples:\n"
    "  redc bench colsum.red -D m=10000 -D n=1000\n"
    "  redc bench colsum.red --size m=10000 --size n=1000 --schedule=mine --json\n"
    "  redc bench softmax.red --size n=64 --size m=1000 --device=sim\n\n"
    "Exit status: 0 it was measured; 1 an error, such as no GPU; 2 the command line is not\n"
    "legal; 3 a fault of the compiler.\n";

enum { CEILING_MOST = 1 << 30, COPY_SHARE = 8 }; // bytes; below 1/COPY_SHARE of all bytes written it counts as reading

// What the memory gives to a kernel that only reads, or copies.
struct ceiling {
  bool is_copy;
  double microseconds, rate; // of its own bytes; bytes a microsecond
};

struct bench {
  struct gauge gauge;
  bool is_json, wants_help;
};

// --- Command line

static bool parse(struct bench *bench, int argc, char **argv) {
  struct run_program *program = &bench->gauge.program;
  struct compilation *c = &program->c;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;) {
    if (run_take_flag("--json", argc, argv, &at)) bench->is_json = true;
    else if (run_take_flag("--help", argc, argv, &at)) bench->wants_help = true;
    else if (!gauge_take_option(&bench->gauge, argc, argv, &at) && options_take(&program->options, argc, argv, &at) == OPTION_NOT_ONE)
      list_push(&c->arena, &program->options.inputs, argv[at++]);
  }
  if (bench->wants_help || c->diag.error_count) return !c->diag.error_count;
  gauge_check_options(&bench->gauge, "bench", program->options.has_output);
  return !c->diag.error_count;
}

// --- The ceiling

// The fastest of kernels that read or copy `bytes` in all, rows of several lengths each.
static bool measure_ceiling(struct gauge *gauge, bool is_copy, int64_t bytes, struct ceiling *ceiling) {
  static const int64_t row_lengths[] = {256, 1024, 4096}; // of floats
  enum { FORMS = sizeof row_lengths / sizeof *row_lengths };
  struct cuda_run *cuda = &gauge->cuda;
  struct gpu_kernel kernels[FORMS] = {0}, *turns[FORMS];
  int64_t moved[FORMS], each = is_copy ? bytes / 2 : bytes;
  if (each > CEILING_MOST) each = CEILING_MOST;
  uint32_t count = 0;
  cu_pointer memory = 0;
  size_t room = (size_t)each + 4 * (size_t)row_lengths[FORMS - 1];
  cu_result error = cuda->driver->alloc(&memory, 2 * room);
  bool ok = !error && !(error = cuda->driver->fill(memory, 0, 2 * room, NULL));
  if (error) cuda_run_fail(cuda, "cuMemAlloc_v2", error);
  for (int f = 0; ok && f < FORMS; f++) {
    int64_t row = row_lengths[f], rows = (each + 4 * row - 1) / (4 * row);
    if (count && each < 4 * row) continue;
    turns[count] = &kernels[count];
    moved[count] = 4 * rows * row * (is_copy ? 2 : 1);
    ok = gpu_kernel_own(cuda, &kernels[count++], is_copy ? "copy" : "read", rows, row, memory, memory + room);
  }
  ok = ok && gpu_time(cuda, &gauge->clock, turns, count, gauge->rounds);
  for (uint32_t k = 0; ok && k < count; k++) {
    double median = quantiles_of(kernels[k].times, gauge->rounds).median, rate = median > 0 ? (double)moved[k] / median : 0;
    if (rate > ceiling->rate) *ceiling = (struct ceiling){is_copy, median, rate};
  }
  for (uint32_t k = 0; k < count; k++) gpu_kernel_free(cuda, &kernels[k]);
  if (memory) cuda->driver->free(memory);
  return ok;
}

// --- Output

// 12.5 MB and the like.
static const char *bytes_text(struct arena *arena, double bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, unit++;
  return arena_printf(arena, unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_launches(struct text *out, const struct measurement *m) {
  for (uint32_t i = 0; i < m->launches; i++) {
    text_printf(out, "  launch        grid %" PRIu32, m->grid[i][0]);
    for (int d = 1; d < 3; d++)
      if (m->grid[i][d] > 1) text_printf(out, " x %" PRIu32, m->grid[i][d]);
    text_printf(out, ", block %" PRIu32, m->block[i][0]);
    for (int d = 1; d < 3; d++)
      if (m->block[i][d] > 1) text_printf(out, " x %" PRIu32, m->block[i][d]);
    text_puts(out, "\n");
  }
}

static void print_text(struct bench *bench, const struct measurement *m, const struct ceiling *ceiling) {
  struct gauge *gauge = &bench->gauge;
  struct run_program *program = &gauge->program;
  struct text *out = &program->printed;
  int64_t bytes = gauge->bytes_read + gauge->bytes_written;
  text_printf(out, "%s on %s: entry %s\n", program->kernel->name, gauge->device, m->entry);
  print_launches(out, m);
  text_printf(out, "  moves         %s read, %s written\n", bytes_text(&program->c.arena, (double)gauge->bytes_read), bytes_text(&program->c.arena, (double)gauge->bytes_written));
  if (gauge->is_simulated) {
    const struct simulation_counts *n = &m->counts;
    text_printf(out, "  sectors       %" PRIu64 ", %.2f of the fewest that hold these bytes\n", n->sectors, bytes ? (double)n->sectors * 32 / (double)bytes : 0);
    text_printf(out, "  accesses      %" PRIu64 " of global memory, %.1f bytes each by a warp\n", n->accesses, n->accesses ? (double)n->bytes / (double)n->accesses : 0);
    text_printf(out, "  instructions  %" PRIu64 " of warps\n", n->instructions);
    text_printf(out, "  shared        %" PRIu64 " passes of the banks, %" PRIu64 " more than needed\n", n->shared_passes, n->shared_conflicts);
    text_printf(out, "  barriers      %" PRIu64 ", shuffles %" PRIu64 ", atomics %" PRIu64 "\n", n->barriers, n->shuffles, n->atomics);
    return;
  }
  text_printf(out, "  time          %.2f us, p20 %.2f, p80 %.2f, of %" PRIu32 " launches\n", m->time.median, m->time.p20, m->time.p80, gauge->rounds);
  text_printf(out, "  rate          %.0f GB/s\n", m->time.median > 0 ? (double)bytes / m->time.median * 1e-3 : 0);
  if (ceiling->rate > 0)
    text_printf(out, "  ceiling       %.0f GB/s by a kernel that only %s: %.1f %% of it\n", ceiling->rate * 1e-3, ceiling->is_copy ? "copies" : "reads",
                m->time.median > 0 ? 100 * (double)bytes / m->time.median / ceiling->rate : 0);
}

static void print_string(struct text *out, const char *name, const char *value) {
  text_printf(out, "\"%s\": \"", name);
  for (; *value; value++) text_printf(out, *value == '"' || *value == '\\' ? "\\%c" : (unsigned char)*value < 32 ? " " : "%c", *value);
  text_puts(out, "\", ");
}

static void print_json(struct bench *bench, const struct measurement *m, const struct ceiling *ceiling) {
  struct gauge *gauge = &bench->gauge;
  struct text *out = &gauge->program.printed;
  double bytes = (double)(gauge->bytes_read + gauge->bytes_written);
  text_puts(out, "{");
  print_string(out, "kernel", gauge->program.kernel->name);
  print_string(out, "device", gauge->device);
  print_string(out, "schedule", m->schedule);
  print_string(out, "entry", m->entry);
  text_puts(out, "\"launches\": [");
  for (uint32_t i = 0; i < m->launches; i++)
    text_printf(out, "%s{\"grid\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "], \"block\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "]}", i ? ", " : "", m->grid[i][0], m->grid[i][1], m->grid[i][2],
                m->block[i][0], m->block[i][1], m->block[i][2]);
  text_printf(out, "], \"bytes_read\": %" PRId64 ", \"bytes_written\": %" PRId64, gauge->bytes_read, gauge->bytes_written);
  if (gauge->is_simulated) {
    const struct simulation_counts *n = &m->counts;
    text_printf(out, ", \"sectors\": %" PRIu64 ", \"accesses\": %" PRIu64 ", \"bytes_asked\": %" PRIu64 ", \"instructions\": %" PRIu64 ", \"shared_passes\": %" PRIu64 ", \"shared_conflicts\": %" PRIu64
                     ", \"barriers\": %" PRIu64 ", \"shuffles\": %" PRIu64 ", \"atomics\": %" PRIu64 ", \"blocks\": %" PRIu64,
                n->sectors, n->accesses, n->bytes, n->instructions, n->shared_passes, n->shared_conflicts, n->barriers, n->shuffles, n->atomics, n->blocks);
  } else {
    text_printf(out, ", \"repeats\": %" PRIu32 ", \"us\": %.3f, \"p20\": %.3f, \"p80\": %.3f, \"best\": %.3f, \"gbps\": %.2f", gauge->rounds, m->time.median, m->time.p20, m->time.p80, m->time.best,
                m->time.median > 0 ? bytes / m->time.median * 1e-3 : 0);
    if (ceiling->rate > 0)
      text_printf(out, ", \"ceiling\": \"%s\", \"ceiling_gbps\": %.2f, \"percent\": %.2f", ceiling->is_copy ? "copy" : "read", ceiling->rate * 1e-3,
                  m->time.median > 0 ? 100 * bytes / m->time.median / ceiling->rate : 0);
  }
  text_puts(out, "}\n");
}

static bool run_bench(struct bench *bench) {
  struct gauge *gauge = &bench->gauge;
  struct measurement m;
  struct ceiling ceiling = {0};
  struct progress progress;
  if (!gauge_begin(gauge, "bench")) return false;
  progress_begin(&progress, gauge->is_simulated ? "counting" : "measuring");
  bool ok = gauge_measure(gauge, NULL, NULL, false, &m);
  int64_t bytes = gauge->bytes_read + gauge->bytes_written;
  if (ok && !gauge->is_simulated && bytes) ok = measure_ceiling(gauge, gauge->bytes_written * COPY_SHARE > bytes, bytes, &ceiling);
  progress_end(&progress);
  if (!ok) return false;
  if (bench->is_json) print_json(bench, &m, &ceiling);
  else print_text(bench, &m, &ceiling);
  return true;
}

int redc_bench(int argc, char **argv) {
  struct bench bench = {0};
  struct run_program *program = &bench.gauge.program;
  int status = EXIT_USAGE;
  program_init(program);
  if (parse(&bench, argc, argv)) {
    bool ok = true;
    if (bench.wants_help) text_puts(&program->printed, HELP);
    else ok = run_bench(&bench);
    if (program->printed.length) ok &= output_write(&program->c.diag, "-", program->printed.data, program->printed.length);
    status = run_status(&program->c, ok);
  }
  driver_print_diagnostics(&program->options);
  gauge_end(&bench.gauge);
  program_destroy(program);
  return status;
}
