// A simulator of PTX kernels that checks every shuffle mask, barrier and memory access.
//
//   struct sim_error error;
//   struct sim_module *module = sim_module_parse(text, strlen(text), "k.ptx", &error);
//   if (!module) { fprintf(stderr, "k.ptx:%d:%d: %s\n", error.line, error.column, error.message); return 1; }
//   struct sim_memory *memory = sim_memory_create();
//   uint64_t in = sim_alloc(memory, 4096, "in", true), out = sim_alloc(memory, 4, "out", false);
//   sim_write(memory, in, host_in, 4096);
//   struct { uint64_t in, out; uint32_t n; } parameters = {in, out, 1024};
//   struct sim_launch launch = {.entry = sim_module_find(module, "sum"), .grid = {1, 1, 1}, .block = {256, 1,
//   1},
//                               .parameters = &parameters, .parameter_bytes = sizeof parameters};
//   struct sim_report report;
//   if (sim_launch(module, memory, &launch, NULL, &report) == SIM_FOUND) {
//     char line[1024];
//     for (size_t i = 0; i < report.finding_count; i++) {
//       sim_finding_print(&report.findings[i], line, sizeof line);
//       puts(line);
//     }
//   }
//   sim_report_free(&report);
//   sim_read(memory, out, &result, 4);
//   sim_memory_destroy(memory);
//   sim_module_destroy(module);
//
// What it executes: PTX as LLVM and nvcc write it for plain kernels (no tensor cores, textures or clusters).
// An instruction or modifier it does not know is an error of sim_module_parse that names it. Lanes of a
// diverged warp run in an order drawn from the seed and meet only at .sync instructions; blocks run in an
// order drawn from the seed, on several host threads. With jobs = 1 the same seed replays the same run.
// Instructions whose result the manual gives with an error bound (.approx, .full) return the correctly
// rounded result.
//
// What it holds against a kernel, where manuals leave room:
//  - Two accesses of a byte by different threads, one a write, race unless something orders them: a block
//  barrier, a
//    warp instruction with .sync that both execute, or a fence (or .release) before a strong write and a
//    fence (or .acquire) after the strong read that sees it. A barrier hands on what fences before it cover,
//    and what a read before it has seen. Strong accesses (.relaxed and stronger, .volatile, atomics) do not
//    race with each other; a plain read and an atomic do, since a compiler may move, repeat or tear what is
//    plain: the first read of a compare-and-swap loop is .volatile, .relaxed, or an atomic itself. .volatile
//    orders nothing among the lanes of a warp in shared memory.
//  - A mask may name neither lanes that have exited nor lanes that the block does not have. A shuffle hands
//  poison on
//    with the data, so that lanes whose value nobody uses in the end do no harm; votes, matches and
//    reductions do not.
//  - activemask names the lanes that have not diverged since they last met at a .sync instruction.
//  - Threads that have exited have not arrived at a barrier; a barrier of the whole block is one instruction.
//
// Threads: a module never changes once parsed and may be shared. One memory serves one call at a time;
// different memories are independent. There is no global state. Nothing here aborts or prints.
#ifndef RED_SIM_H
#define RED_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// Where reading a text failed: line and column from 1, or 0 when the error belongs to no place.
struct sim_error {
  int line;
  int column;
  char message[512];
};

// ---- Modules
// -----------------------------------------------------------------------------------------------

// A parsed and decoded PTX text. Independent of the text, which may be freed after the call.
typedef struct sim_module sim_module;

// Parses `length` bytes of PTX. `name` is what findings call the text; it is copied. Returns NULL and fills
// *error (which may be NULL) on a syntax error, an unknown or unsupported instruction, modifier, type or
// directive, an operand of the wrong kind or width, an undefined name, or when memory is short.
struct sim_module *sim_module_parse(const char *text, size_t length, const char *name,
                                    struct sim_error *error);
// Frees a module; NULL is fine. No memory that has run it may run it again.
void sim_module_destroy(struct sim_module *module);

// One parameter of an entry, in order of declaration. Its bytes stand at `offset` of the parameter blob, as
// the PTX calling convention lays them out: each at the next multiple of its alignment.
struct sim_parameter {
  const char *name;
  size_t offset;
  size_t size;      // in bytes
  size_t alignment; // in bytes
  bool is_pointer;  // declared .ptr; old PTX does not say, so false proves nothing
  bool is_array;    // an aggregate passed by value
  bool is_float;    // declared .f32, .f64 or the like
};

// One kernel entry. Numbers are 0 where the text does not say.
struct sim_entry {
  const char *name;
  size_t parameter_count;
  const struct sim_parameter *parameters;
  size_t parameter_bytes;     // size of the parameter blob
  uint64_t shared_bytes;      // static shared memory of a block
  uint32_t required_block[3]; // .reqntid
  uint32_t maximum_block[3];  // .maxntid
  uint32_t minimum_blocks;    // .minnctapersm
  uint32_t maximum_registers; // .maxnreg
};

size_t sim_module_entry_count(const struct sim_module *module);
// Entry `index` in order of definition; NULL when there is none. Lives as long as the module.
const struct sim_entry *sim_module_entry(const struct sim_module *module, size_t index);
// The entry of that name, or NULL.
const struct sim_entry *sim_module_find(const struct sim_module *module, const char *name);
// The number of the .target directive: 90 for sm_90.
int sim_module_target(const struct sim_module *module);

// How often an instruction stands in the text, by its opcode without modifiers ("shfl"), over the whole
// module.
uint64_t sim_module_count(const struct sim_module *module, const char *opcode);

// ---- Memory
// ------------------------------------------------------------------------------------------------

// A device address space. Allocations lie far apart, so that an access which leaves one meets none of the
// others; addresses are never used twice and are the same in every run. Bytes that nobody touched cost
// nothing, so sizes over the host's memory are fine.
typedef struct sim_memory sim_memory;

// NULL when memory is short.
struct sim_memory *sim_memory_create(void);
// Frees all allocations. NULL is fine.
void sim_memory_destroy(struct sim_memory *memory);

// Allocates `bytes`, aligned to 512, and returns its device address; 0 when the host has no room or `bytes`
// is over 2^39. `name` (may be NULL) is what findings call it; it is copied. The contents are zeros and, when
// `is_initialised` is false, count as never written. Zero bytes give an address that may not be accessed.
uint64_t sim_alloc(struct sim_memory *memory, uint64_t bytes, const char *name, bool is_initialised);
// The same for memory that the host owns and keeps until sim_free or sim_memory_destroy. The device address
// has the host address's remainder modulo 512.
uint64_t sim_map(struct sim_memory *memory, void *host, uint64_t bytes, const char *name,
                 bool is_initialised);
// Frees the allocation that starts at `address`; false when none does. Later accesses are findings.
bool sim_free(struct sim_memory *memory, uint64_t address);

// Copies from or to the host, or sets bytes; all three mark what they write as written. False, with nothing
// done, when the range does not lie within one allocation.
bool sim_write(struct sim_memory *memory, uint64_t address, const void *source, uint64_t bytes);
bool sim_read(struct sim_memory *memory, uint64_t address, void *target, uint64_t bytes);
bool sim_fill(struct sim_memory *memory, uint64_t address, int value, uint64_t bytes);
// Makes the bytes count as never written, or as written, without changing them. False as above.
bool sim_mark(struct sim_memory *memory, uint64_t address, uint64_t bytes, bool is_initialised);
// How many bytes of the range are initialised; 0 when it does not lie within one allocation.
uint64_t sim_initialised(const struct sim_memory *memory, uint64_t address, uint64_t bytes);
// The host's view of a range, for reading and writing in place; NULL when it does not lie within one
// allocation. It marks nothing as written.
void *sim_host(struct sim_memory *memory, uint64_t address, uint64_t bytes);

// The device address of a module's .global or .const variable in this memory, and its size; 0 when there is
// none of that name or no room. Variables are created with their initial values on first use, and keep what
// kernels write.
uint64_t sim_module_variable(struct sim_memory *memory, const struct sim_module *module, const char *name,
                             uint64_t *bytes);

// ---- Findings
// ----------------------------------------------------------------------------------------------

// What a run can find, and the bit of sim_options.checks that looks for it: SIM_CHECK(kind). finding.def
// explains each.
enum sim_kind {
#define SIM_KIND(kind, name, text) SIM_##kind,
#include "runtime/sim/finding.def"
#undef SIM_KIND
  SIM_KINDS
};

#define SIM_CHECK(kind) (UINT64_C(1) << (kind))
#define SIM_CHECK_ALL (SIM_CHECK(SIM_KINDS) - 1)

// "race-shared" and the like; lower case, stable.
const char *sim_kind_name(enum sim_kind kind);
// One sentence about the kind.
const char *sim_kind_text(enum sim_kind kind);

// A place in the source that .loc gives; file NULL when there is none.
struct sim_source {
  const char *file;
  uint32_t line;
  uint32_t column;
};

// One finding: the first of its kind at its PTX line, and how often it came. Strings live as long as the
// module.
struct sim_finding {
  enum sim_kind kind;
  uint64_t count;
  const char *module;
  const char *entry;
  int ptx_line;
  struct sim_source source;
  struct sim_source inlined_at;
  uint32_t block[3];
  uint32_t thread[3];
  uint32_t warp; // of the block
  uint32_t lane;
  bool has_thread;  // block, thread, warp and lane are meant
  bool has_address; // address and bytes are meant
  uint64_t address; // in its own space: from the start of shared or local memory, or a device address
  uint32_t bytes;
  int other_ptx_line; // the other access of a race, the shuffle that poison comes from; 0 when there is none
  struct sim_source other_source;
  char message[256];
};

// Prints a finding as one line without a newline, cut to fit `size`; returns the length the whole line has.
size_t sim_finding_print(const struct sim_finding *finding, char *text, size_t size);

// ---- Statistics
// --------------------------------------------------------------------------------------------

enum sim_class {
#define SIM_CLASS(class, name) SIM_CLASS_##class,
#include "runtime/sim/class.def"
#undef SIM_CLASS
  SIM_CLASSES
};

const char *sim_class_name(enum sim_class class_);

// Thread-instructions of one opcode ("fma"), its modifiers aside.
struct sim_opcode_count {
  const char *name;
  uint64_t threads; // executed, one for each active lane
  uint64_t warps;   // executed, one for each group of lanes that ran it together
};

// Counts of one launch, over all blocks. An access is one instruction of the lanes that execute it together.
struct sim_stats {
  uint64_t thread_instructions;
  uint64_t warp_instructions;
  uint64_t by_class[SIM_CLASSES];   // thread-instructions
  struct sim_opcode_count *opcodes; // those executed at least once, by name
  size_t opcode_count;
  uint64_t global_loads;          // accesses
  uint64_t global_stores;         // accesses
  uint64_t global_sectors_loaded; // 32-byte sectors, each counted once an access
  uint64_t global_sectors_stored;
  uint64_t global_lines;        // 128-byte lines, each counted once an access
  uint64_t global_bytes_loaded; // that the lanes asked for
  uint64_t global_bytes_stored;
  uint64_t shared_loads; // accesses
  uint64_t shared_stores;
  uint64_t shared_wavefronts; // passes that the banks need
  uint64_t shared_conflicts;  // passes beyond those that the same bytes need at best
  uint64_t local_loads;
  uint64_t local_stores;
  uint64_t constant_loads; // .const and .param
  uint64_t barriers;       // arrivals of groups of lanes at a block barrier
  uint64_t warp_barriers;  // bar.warp.sync
  uint64_t shuffles;
  uint64_t votes;       // vote, match, redux, activemask, elect
  uint64_t atomics;     // accesses
  uint64_t approximate; // thread-instructions with .approx or .full
  uint64_t divergent_branches;
  uint64_t blocks;
};

// Print to a stream; false when writing failed.
bool sim_stats_print(const struct sim_stats *stats, FILE *stream);
bool sim_stats_print_json(const struct sim_stats *stats, FILE *stream);

// ---- Launches
// ----------------------------------------------------------------------------------------------

// Every field that is zero takes its default.
struct sim_options {
  uint64_t seed;         // orders of blocks, warps and lanes
  uint32_t jobs;         // host threads; default: the host's processors
  uint64_t unchecked;    // SIM_CHECK bits that are off; default: all checks on
  uint64_t max_steps;    // instructions that warps may issue before the run is stopped; default 2^31
  uint32_t max_findings; // different findings kept; default 100
  uint32_t sm_count;     // multiprocessors, for co-residency and %nsmid; default 132
  uint64_t shared_limit; // bytes of shared memory a block may have; default by the architecture
  uint32_t arch;         // 90 for sm_90; default: the module's target
};

// What to launch. The block's shared memory is the entry's static bytes and `dynamic_shared` bytes after
// them.
struct sim_launch {
  const struct sim_entry *entry;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t dynamic_shared;
  const void *parameters; // the parameter blob
  size_t parameter_bytes;
};

enum sim_result {
  SIM_OK,      // ran, nothing found
  SIM_FOUND,   // ran, perhaps not to the end; the report has findings
  SIM_REFUSED, // did not run: the report's error says why
};

struct sim_report {
  struct sim_finding *findings; // by PTX line, then by kind
  size_t finding_count;
  uint64_t finding_total; // with repetitions, and with those that max_findings dropped
  bool is_complete;       // every thread came to its end
  struct sim_stats stats;
  char error[256];
};

// Runs a kernel to its end. `options` may be NULL. Always fills *report, which is to be freed with
// sim_report_free. A launch that the hardware would not accept (too many threads, too much shared memory, a
// grid over the limits, a block that differs from .reqntid) is a finding, and nothing runs. SIM_REFUSED: no
// entry, a blob smaller than the entry's parameters, or no memory.
enum sim_result sim_launch(const struct sim_module *module, struct sim_memory *memory,
                           const struct sim_launch *launch, const struct sim_options *options,
                           struct sim_report *report);
// Frees what a report holds; a zeroed one is fine.
void sim_report_free(struct sim_report *report);

#ifdef __cplusplus
}
#endif

#endif
