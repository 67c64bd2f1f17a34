// Launches: what does not fit, order and replay, progress of blocks that wait for others, statistics.
#include "runtime/sim/sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

struct run {
  struct sim_module *module;
  struct sim_memory *memory;
  struct sim_launch launch;
  struct sim_options options;
  struct sim_report report;
  uint64_t parameters[4];
};

static void open_run(struct run *run, const char *text, uint32_t grid, uint32_t block) {
  memset(run, 0, sizeof *run);
  struct sim_error error;
  run->module = sim_module_parse(text, strlen(text), "l.ptx", &error);
  cr_assert(run->module, "%d: %s", error.line, error.message);
  run->memory = sim_memory_create();
  run->launch = (struct sim_launch){.entry = sim_module_entry(run->module, 0),
                                    .grid = {grid, 1, 1},
                                    .block = {block, 1, 1},
                                    .parameters = run->parameters,
                                    .parameter_bytes = sizeof run->parameters};
}

static enum sim_result go(struct run *run) {
  sim_report_free(&run->report);
  return sim_launch(run->module, run->memory, &run->launch, &run->options, &run->report);
}

static void close_run(struct run *run) {
  sim_report_free(&run->report);
  sim_memory_destroy(run->memory);
  sim_module_destroy(run->module);
}

// The launch is a finding of its own and nothing runs.
static void does_not_fit(struct run *run, const char *message) {
  cr_expect(go(run) == SIM_FOUND && run->report.finding_count == 1 &&
            run->report.findings[0].kind == SIM_BAD_LAUNCH);
  cr_expect(strstr(run->report.findings[0].message, message), "%s", run->report.findings[0].message);
  cr_expect(run->report.stats.blocks == 0 && !run->report.is_complete);
}

Test(launch, fits) {
  struct run run;
  open_run(&run,
           HEAD ".shared .align 4 .b8 s[4096];\n.entry k()\n.maxntid 512, 1, 1\n{ .reg .b32 %r; mov.u32 %r, "
                "s; ret; }\n",
           1, 512);
  cr_expect(go(&run) == SIM_OK && run.report.is_complete);
  run.launch.block[0] = 1025;
  does_not_fit(&run, "at most 1024");
  run.launch.block[0] = 1024;
  does_not_fit(&run, ".maxntid allows 512");
  run.launch.block[0] = 0;
  does_not_fit(&run, "at least 1");
  run.launch.block[0] = 2, run.launch.block[2] = 65;
  does_not_fit(&run, "64 in z");
  run.launch.block[2] = 1, run.launch.grid[1] = 65536;
  does_not_fit(&run, "65535 in y and z");
  run.launch.grid[1] = 1, run.launch.dynamic_shared = 163 * 1024 - 4095;
  does_not_fit(&run, "at most 166912 on sm_80");
  run.launch.dynamic_shared--;
  cr_expect(go(&run) == SIM_OK);
  run.options.arch = 75;
  does_not_fit(&run, "at most 65536 on sm_75");
  close_run(&run);
}

Test(launch, refusals) {
  struct run run;
  open_run(&run, HEAD ".entry k(.param .u64 a, .param .u32 b) { ret; }\n", 1, 1);
  run.launch.parameter_bytes = 11;
  cr_expect(go(&run) == SIM_REFUSED && strstr(run.report.error, "take 12 bytes, but 11"), "%s",
            run.report.error);
  run.launch.entry = NULL;
  cr_expect(go(&run) == SIM_REFUSED && strstr(run.report.error, "no entry"));
  close_run(&run);
}

// Every block adds to a word and the threads race: the same seed tells the same story, whatever ran before.
Test(launch, replays) {
  static const char text[] = HEAD
      ".entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n"
      "ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
      "atom.global.add.u32 %r3, [%d1], 1;\nmad.lo.u32 %r4, %r1, 32, %r2;\nmul.wide.u32 %d3, %r3, 4;\n"
      "add.u64 %d3, %d2, %d3;\nst.global.u32 [%d3], %r4;\nst.global.u32 [%d2], %r4;\nret;\n}\n";
  uint32_t order[3][32 * 8];
  char print[3][512];
  uint64_t seeds[3] = {5, 5, 6};
  for (int i = 0; i < 3; i++) {
    struct run run;
    open_run(&run, text, 8, 32);
    run.parameters[0] = sim_alloc(run.memory, 4, "count", true);
    run.parameters[1] = sim_alloc(run.memory, sizeof order[0], "order", false);
    run.options.seed = seeds[i];
    run.options.jobs = 1;
    cr_expect(go(&run) == SIM_FOUND);
    sim_finding_print(&run.report.findings[0], print[i], sizeof print[i]);
    cr_expect(sim_read(run.memory, run.parameters[1], order[i], sizeof order[i]));
    close_run(&run);
  }
  cr_expect(memcmp(order[0], order[1], sizeof order[0]) == 0 && strcmp(print[0], print[1]) == 0);
  cr_expect(memcmp(order[0], order[2], sizeof order[0]) != 0);
}

// Atomics of many blocks on several host threads lose nothing.
Test(launch, atomics_in_parallel) {
  struct run run;
  open_run(
      &run,
      HEAD
      ".entry k(.param .u64 a)\n{\n.reg .b64 %d<5>;\n.reg .f32 %f<2>;\nld.param.u64 %d1, [a];\n"
      "red.global.add.u64 [%d1], 3;\nmov.f32 %f1, 0f3f800000;\nred.global.add.f32 [%d1+8], %f1;\nret;\n}\n",
      500, 64);
  run.parameters[0] = sim_alloc(run.memory, 16, "sums", true);
  run.options.jobs = 4;
  cr_expect(go(&run) == SIM_OK && run.report.is_complete);
  uint64_t sum = 0;
  float single = 0;
  cr_expect(sim_read(run.memory, run.parameters[0], &sum, 8) && sum == 500 * 64 * 3);
  cr_expect(sim_read(run.memory, run.parameters[0] + 8, &single, 4) && single == 32000);
  close_run(&run);
}

// Each block waits until all have come: all must be resident together, on however few host threads.
Test(launch, grid_barrier) {
  static const char text[] =
      HEAD ".entry k(.param .u64 a)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n"
           "ld.param.u64 %d1, [a];\nmov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %tid.x;\nsetp.ne.u32 %p1, %r2, 0;\n"
           "@%p1 bra MEET;\natom.acq_rel.gpu.global.add.u32 %r3, [%d1], 1;\n"
           "WAIT:\nld.acquire.gpu.global.u32 %r3, [%d1];\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra WAIT;\n"
           "MEET:\nbar.sync 0;\nret;\n}\n";
  for (uint32_t jobs = 1; jobs <= 3; jobs += 2) {
    struct run run;
    open_run(&run, text, 100, 64);
    run.parameters[0] = sim_alloc(run.memory, 4, "count", true);
    run.options.jobs = jobs;
    cr_expect(go(&run) == SIM_OK && run.report.is_complete);
    // A device with room for fewer blocks never gets there, and says so.
    run.options.sm_count = 1;
    run.options.max_steps = 1000000;
    cr_expect(sim_fill(run.memory, run.parameters[0], 0, 4));
    cr_expect(go(&run) == SIM_FOUND && run.report.findings[0].kind == SIM_STEP_LIMIT &&
              !run.report.is_complete);
    close_run(&run);
  }
}

Test(launch, checks_can_be_off) {
  struct run run;
  open_run(&run,
           HEAD ".entry k(.param .u64 a)\n{\n.reg .b64 %d<5>;\n.reg .b32 %r<3>;\n.reg .pred "
                "%p<2>;\nld.param.u64 %d1, [a];\n"
                "ld.global.u32 %r1, [%d1];\nmov.u32 %r2, %tid.x;\nsetp.gt.u32 %p1, %r2, 15;\n@%p1 ret;\n"
                "shfl.sync.down.b32 %r2, %r2, 1, 31, 0xffff;\nst.global.u32 [%d1], %r2;\nret;\n}\n",
           2, 32);
  run.parameters[0] = sim_alloc(run.memory, 4, "word", false);
  run.options.jobs = 1;
  cr_expect(go(&run) == SIM_FOUND && run.report.finding_count == 4);
  run.options.unchecked = SIM_CHECK(SIM_RACE_GLOBAL) | SIM_CHECK(SIM_UNINITIALISED) | SIM_CHECK(SIM_POISON);
  cr_expect(go(&run) == SIM_OK && run.report.finding_total == 0);
  run.options.unchecked = 0;
  run.options.max_findings = 1;
  cr_expect(go(&run) == SIM_FOUND && run.report.finding_count == 1 && run.report.finding_total > 3);
  close_run(&run);
}

// ---- Statistics
// --------------------------------------------------------------------------------------------

// One warp loads and stores with a stride of `stride` words, in shared memory too.
static void traffic(unsigned stride, unsigned sectors, unsigned lines, unsigned wavefronts) {
  char text[1024];
  snprintf(
      text, sizeof text,
      HEAD
      ".shared .align 4 .b8 s[8192];\n.entry k(.param .u64 a)\n{\n.reg .b64 %%d<5>;\n.reg .b32 %%r<5>;\n"
      "ld.param.u64 %%d1, [a];\nmov.u32 %%r1, %%tid.x;\nmul.lo.u32 %%r2, %%r1, %u;\nmul.wide.u32 %%d2, %%r2, "
      "4;\n"
      "add.u64 %%d3, %%d1, %%d2;\nld.global.u32 %%r3, [%%d3];\nshl.b32 %%r2, %%r2, 2;\nmov.u32 %%r4, s;\n"
      "add.u32 %%r4, %%r4, %%r2;\nst.shared.u32 [%%r4], %%r3;\nret;\n}\n",
      stride);
  struct run run;
  open_run(&run, text, 1, 32);
  run.parameters[0] = sim_alloc(run.memory, 8192, "a", true);
  cr_expect(go(&run) == (stride ? SIM_OK : SIM_FOUND));
  const struct sim_stats *stats = &run.report.stats;
  cr_expect(stats->global_loads == 1 && stats->global_bytes_loaded == 128 && stats->global_stores == 0);
  cr_expect(stats->global_sectors_loaded == sectors && stats->global_lines == lines,
            "stride %u: %llu sectors, %llu lines", stride, (unsigned long long)stats->global_sectors_loaded,
            (unsigned long long)stats->global_lines);
  cr_expect(stats->shared_stores == 1 && stats->shared_wavefronts == wavefronts &&
            stats->shared_conflicts == wavefronts - 1);
  cr_expect(stats->thread_instructions == 11 * 32 && stats->warp_instructions == 11);
  close_run(&run);
}

Test(launch, traffic) {
  traffic(1, 4, 1, 1);
  traffic(2, 8, 2, 2);
  traffic(8, 32, 8, 8);
  traffic(32, 32, 32, 32);
  traffic(33, 32, 32, 1);
  traffic(0, 1, 1, 1);
}

static uint64_t opcode(const struct sim_stats *stats, const char *name) {
  for (size_t i = 0; i < stats->opcode_count; i++) {
    if (strcmp(stats->opcodes[i].name, name) == 0) return stats->opcodes[i].threads;
  }
  return 0;
}

Test(launch, counts) {
  struct run run;
  open_run(&run,
           HEAD ".entry k()\n{\n.reg .pred %p;\n.reg .f32 %f<3>;\n.reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\n"
                "setp.lt.u32 %p, %r1, 5;\nmov.f32 %f1, 0f3f800000;\n@%p add.f32 %f2, %f1, "
                "%f1;\nsin.approx.f32 %f2, %f1;\n"
                "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nbar.sync 0;\nret;\n}\n",
           3, 64);
  cr_expect(go(&run) == SIM_OK);
  const struct sim_stats *stats = &run.report.stats;
  cr_expect(stats->blocks == 3 && stats->shuffles == 6 && stats->barriers == 6 && stats->approximate == 192);
  cr_expect(opcode(stats, "add") == 15 && opcode(stats, "sin") == 192 && opcode(stats, "ret") == 192);
  cr_expect(stats->by_class[SIM_CLASS_FLOAT32] == 15 && stats->by_class[SIM_CLASS_BARRIER] == 192);
  FILE *file = tmpfile();
  char text[4096] = "";
  cr_expect(sim_stats_print_json(stats, file));
  rewind(file);
  cr_expect(fread(text, 1, sizeof text - 1, file) > 0 && strstr(text, "\"shuffles\": 6") &&
            strstr(text, "\"sin\": {\"threads\": 192"));
  fclose(file);
  close_run(&run);
}
