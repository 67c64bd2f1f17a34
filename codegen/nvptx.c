// PTX through LLVM: one LLVM context a module, built and optimised in memory. PTX is then selected by nvptx_select.c, or by LLVM where that knows not all of the module, with -G and with -O0.
//
// LLVM reports some failures by ending the process. Its diagnostics go to a handler that collects them, and
// its fatal errors leave through longjmp to the compile in progress on that thread (whose LLVM objects are
// then left alone, since their state is unknown). Targets, PTX versions and intrinsics come from closed
// tables, because LLVM answers an unknown one with unusable PTX.
#include "codegen/nvptx.h"
#include "codegen/nvptx_select.h"
#include "codegen/program.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char triple[] = "nvptx64-nvidia-cuda";

// The compile in progress on this thread; NULL: none.
static _Thread_local struct rescue {
  jmp_buf back;
  char *reason;
} * rescue;

static void on_fatal_error(const char *reason) {
  if (!rescue) return; // not from a compile of ours: LLVM ends the process
  rescue->reason = strdup(reason);
  longjmp(rescue->back, 1);
}

static void initialize(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  // LICM would read a word of shared memory in front of a loop in which some thread writes it under a condition: no thread uses what it read too early, but it is
  // a race, and of a word that nobody has written.
  // Behind instruction selection ptxas does all again that LLVM would: common subexpressions, motion out of loops, sinking, layout, schedules, registers. In front of it
  // NVPTX's own passes over IR begin with `safe-stack`, behind strength reduction, n-ary reassociation and CodeGenPrepare: PIPELINE ends with those of them that ptxas
  // wants. Two thirds of the time of emission, for the same code to 0.1 %.
  static const char *const options[] = {
      "red",
      "-disable-licm-promotion",
      "-start-before=safe-stack",
      "-disable-machine-licm",
      "-disable-machine-cse",
      "-disable-machine-sink",
      "-disable-peephole",
      "-disable-early-taildup",
      "-disable-block-placement",
      "-disable-branch-fold",
      "-disable-tail-duplicate",
      "-disable-copyprop",
      "-disable-ssc",
      "-enable-misched=false",
  };
  LLVMParseCommandLineOptions(sizeof options / sizeof *options, options, NULL);
  LLVMInstallFatalErrorHandler(on_fatal_error);
}

const char *codegen_llvm_version(void) {
  static _Thread_local char version[40];
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(version, sizeof version, "LLVM %u.%u.%u", major, minor, patch);
  return version;
}

void nvptx_fail(struct nvptx *cg, struct range range, const char *format, ...) {
  if (cg->failed) return;
  cg->failed = true;
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(cg->context->arena, format, arguments);
  va_end(arguments);
  diag_internal(cg->context->diag, "nvptx", range, "%s", message);
}

static void refuse(struct nvptx *cg, const char *message) {
  cg->failed = true;
  struct range nowhere = {0};
  diag_error(cg->context->diag, ERROR_BACKEND, nowhere, "LLVM refused the program: %s", message);
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *state) {
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *message = LLVMGetDiagInfoDescription(info);
  refuse(state, message);
  LLVMDisposeMessage(message);
}

// A target machine, and what it was made for. One costs a fiftieth of a small kernel, so that those that no compilation uses are kept for the next, of any thread.
struct machine {
  struct machine *next;
  LLVMTargetMachineRef machine;
  char target[16], feature[16];
  LLVMCodeGenOptLevel level;
};
enum { MOST_IDLE = 8 };
static struct {
  pthread_mutex_t lock;
  struct machine *first;
  int count;
} idle = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

static struct machine *take_idle(const struct machine *wanted) {
  pthread_mutex_lock(&idle.lock);
  struct machine **at = &idle.first;
  while (*at && (strcmp((*at)->target, wanted->target) != 0 || strcmp((*at)->feature, wanted->feature) != 0 || (*at)->level != wanted->level)) at = &(*at)->next;
  struct machine *found = *at;
  if (found) {
    *at = found->next;
    idle.count--;
  }
  pthread_mutex_unlock(&idle.lock);
  return found;
}

static void keep_machine(struct machine *machine) {
  pthread_mutex_lock(&idle.lock);
  bool is_kept = idle.count < MOST_IDLE;
  if (is_kept) {
    machine->next = idle.first;
    idle.first = machine;
    idle.count++;
  }
  pthread_mutex_unlock(&idle.lock);
  if (is_kept) return;
  LLVMDisposeTargetMachine(machine->machine);
  free(machine);
}

struct extent_of_code {
  uint32_t depth, loops; // loops around the innermost statement; of all
  uint64_t operations;
};

static void count_operation(struct ir_expr *e, void *state) {
  (void)e;
  ++*(uint64_t *)state;
}

static struct extent_of_code extent_of_block(const struct list *block) {
  struct extent_of_code all = {0};
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool is_loop = stmt->kind == IR_FOR;
    const struct list *parts[] = {&stmt->body, &stmt->otherwise};
    all.loops += is_loop;
    for (int k = 0; k < 2; k++) {
      struct extent_of_code part = extent_of_block(parts[k]);
      all.loops += part.loops;
      if (part.depth + is_loop > all.depth) all.depth = part.depth + is_loop;
    }
  }
  return all;
}

// LLVM's analyses of loops take twice the time for each level of a nest, and more than in proportion for many loops and long code: a module with an entry far larger than
// kernels are is translated as it stands.
static uint32_t level_of(const struct pass_context *context) {
  enum { DEEPEST = 16, MOST_LOOPS = 128, MOST_OPERATIONS = 30000 };
  uint32_t level = context->options->optimize;
  for (uint32_t k = 0; k < context->module->kernels.count; k++) {
    const struct ir_kernel *kernel = context->module->kernels.at[k];
    for (uint32_t i = 0; i < kernel->entries.count; i++) {
      const struct ir_entry *entry = kernel->entries.at[i];
      struct extent_of_code extent = extent_of_block(&entry->body);
      ir_visit_block(&entry->body, count_operation, &extent.operations);
      if (extent.depth <= DEEPEST && extent.loops <= MOST_LOOPS && extent.operations <= MOST_OPERATIONS) continue;
      if (level)
        diag_remark(context->diag, "codegen", entry->range, "entry '%s' has %u loops, %u in each other, and %llu operations: too many, so that the program is compiled as by -O0", entry->name,
                    extent.loops, extent.depth, (unsigned long long)extent.operations);
      level = 0;
    }
  }
  return level;
}

const char *nvptx_ptx_version(const struct nvptx *cg) {
  const char *version = cg->context->options->target->ptx_version;
  return nvptx_needs_ptx74(cg->context->module) && strcmp(version, "7.4") < 0 ? "7.4" : version;
}

// It is the caller's until keep_machine. A compilation that ends by a fatal error never gives it back.
static struct machine *take_machine(struct nvptx *cg, const struct target *target) {
  static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault};
  uint32_t optimize = cg->level;
  struct machine wanted = {.level = levels[optimize > 2 ? 2 : optimize]};
  // "+ptx78" for "7.8"
  const char *version = nvptx_ptx_version(cg), *dot = strchr(version, '.');
  snprintf(wanted.feature, sizeof wanted.feature, "+ptx%.*s%s", (int)(dot - version), version, dot + 1);
  snprintf(wanted.target, sizeof wanted.target, "%s", target->name);
  struct machine *machine = take_idle(&wanted);
  if (machine) return machine;
  LLVMTargetRef description;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(triple, &description, &message)) {
    refuse(cg, message);
    LLVMDisposeMessage(message);
    return NULL;
  }
  machine = malloc(sizeof *machine);
  if (!machine) {
    refuse(cg, "out of memory");
    return NULL;
  }
  *machine = wanted;
  machine->machine = LLVMCreateTargetMachine(description, triple, target->name, wanted.feature, wanted.level, LLVMRelocDefault, LLVMCodeModelDefault);
  return machine;
}

static bool verify(struct nvptx *cg) {
  char *message = NULL;
  struct range nowhere = {0};
  if (LLVMVerifyModule(cg->module, LLVMReturnStatusAction, &message))
    nvptx_fail(cg, nowhere, "the LLVM module does not verify: %s", message);
  LLVMDisposeMessage(message);
  return !cg->failed;
}

// What LLVM may not do to a function, by attributes that are taken off again before code is emitted.
// noimplicitfloat: its own vectorisers, which its parser of default<O3> turns on whatever the options say. They join bytes into <16 x i8> aligned to 1, which NVPTX
// loads as if aligned to 16. Wide accesses are pass `widen`'s, where alignment is known. Behind it the load and store vectoriser, which heeds alignment, joins what was
// taken apart.
// sanitize_thread (a word; no pass that heeds it by adding checks is run): loads of memory that is known to exist, as shared memory is, in front of conditions. Where one thread alone reads
// what it wrote itself, the others would read beside it: a race, of a value that is not used.
static void forbid(struct nvptx *cg, bool forbidden) {
  static const char *const names[] = {"noimplicitfloat", "sanitize_thread"};
  LLVMAttributeIndex place = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
  for (uint32_t i = 0; i < 2; i++) {
    unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
    for (LLVMValueRef f = LLVMGetFirstFunction(cg->module); f; f = LLVMGetNextFunction(f)) {
      if (LLVMIsDeclaration(f)) continue;
      if (forbidden) LLVMAddAttributeAtIndex(f, place, LLVMCreateEnumAttribute(cg->llvm, kind, 0));
      else LLVMRemoveEnumAttributeAtIndex(f, place, kind);
    }
  }
}

// default<O3> without what has no work in one function of loops and straight code that calls nothing (inlining and attributes, vectors, switches and tables, memcpy,
// dead stores, jump threading, constant propagation, loop distribution, loads of what an iteration before stored) or has little that ptxas does not do as well (GVN,
// induction variables, more than one round of InstCombine on either side of unrolling). Behind it come what NVPTX would have run: constants of addresses apart, cheap
// instructions in front of conditions, multiples by sums. Beside what this library ran before, over 550 entries of the examples and of the measured kernels: instructions behind ptxas
// 0.999, registers 1.015; on an H200 26 kernels took 0.9998 of the time, none more than 1.034.
#define INSTCOMBINE "instcombine<max-iterations=1;no-verify-fixpoint>"
#define PIPELINE                                                                                                                            \
  "function<eager-inv>(sroa<modify-cfg>,early-cse<memssa>,simplifycfg," INSTCOMBINE ",reassociate,"                                         \
  "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,licm<allowspeculation>,"                              \
  "simple-loop-unswitch<nontrivial;trivial>),loop(loop-deletion,loop-unroll-full),sroa<modify-cfg>,early-cse<memssa>,"                      \
  "correlated-propagation,simplifycfg<hoist-common-insts;sink-common-insts>,loop-unroll<O3>," INSTCOMBINE ","                               \
  "loop-mssa(licm<allowspeculation>),simplifycfg<no-keep-loops;hoist-common-insts;sink-common-insts>,"                                      \
  "separate-const-offset-from-gep,speculative-execution,slsr,early-cse)"

static bool optimize(struct nvptx *cg, LLVMTargetMachineRef machine) {
  static const char *const pipelines[] = {"default<O0>", "default<O1>", "default<O2>", PIPELINE};
  uint32_t level = cg->level;
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  forbid(cg, true);
  LLVMErrorRef error = LLVMRunPasses(cg->module, pipelines[level > 3 ? 3 : level], machine, options);
  LLVMDisposePassBuilderOptions(options);
  forbid(cg, false);
  if (error) {
    char *message = LLVMGetErrorMessage(error);
    refuse(cg, message);
    LLVMDisposeErrorMessage(message);
  }
  return !cg->failed;
}

// Whether the value is shifted by a byte.
static bool is_shifted(LLVMValueRef value) {
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    bool is_shift = LLVMIsAInstruction(user) && (LLVMGetInstructionOpcode(user) == LLVMShl || LLVMGetInstructionOpcode(user) == LLVMLShr);
    if (is_shift && LLVMIsAConstantInt(LLVMGetOperand(user, 1)) && LLVMConstIntGetZExtValue(LLVMGetOperand(user, 1)) == 8) return true;
  }
  return false;
}

// LLVM makes one byte swap of bytes that were loaded as one vector, whichever words of it they are in (DAGCombiner's isBSwapHWordElement compares nodes, not
// their results): words of which bytes move by one are frozen, which makes them nodes of their own and costs nothing.
static void part_words(struct nvptx *cg) {
  LLVMTypeRef word = LLVMInt32TypeInContext(cg->llvm);
  for (LLVMValueRef function = LLVMGetFirstFunction(cg->module); function; function = LLVMGetNextFunction(function))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef next, value = LLVMGetFirstInstruction(block); value; value = next) {
        next = LLVMGetNextInstruction(value);
        if (LLVMGetInstructionOpcode(value) != LLVMExtractElement || LLVMTypeOf(value) != word || !LLVMIsALoadInst(LLVMGetOperand(value, 0)) || !is_shifted(value)) continue;
        LLVMPositionBuilderBefore(cg->builder, next);
        LLVMValueRef frozen = LLVMBuildFreeze(cg->builder, value, "");
        LLVMReplaceAllUsesWith(value, frozen);
        LLVMSetOperand(frozen, 0, value);
      }
}

static bool begins(const char *line, const char *word) { return strncmp(line, word, strlen(word)) == 0; }

// Whether the line is a .loc of line 0: LLVM writes one in front of an instruction that it made of two with different places.
static bool is_lost_place(const char *line) {
  static const char word[] = "\t.loc\t";
  if (!begins(line, word)) return false;
  line += sizeof word - 1;
  line += strspn(line, "0123456789");
  return line[0] == ' ' && line[1] == '0' && line[2] == ' ';
}

// Whether ptxas would drop a negation: ptxas 13.0 for sm_90 joins two min.s16 or max.s16 to one VIMNMX3.S16x2, and forgets a neg.s16 of its second operand.
static bool loses_negations(const char *ptx) { return strstr(ptx, "\tneg.s16") && (strstr(ptx, "\tmin.s16") || strstr(ptx, "\tmax.s16")); }

// The line `neg.s16 R, A;` as not and add, which ptxas keeps.
static void append_negation(struct text *out, const char *line) {
  const char *result = line + strcspn(line, "%"), *operand = result + strcspn(result, ",");
  int length = (int)(operand - result);
  text_printf(out, "\tnot.b16 \t%.*s%.*s;\n\tadd.s16 \t%.*s, %.*s, 1;\n", length, result, (int)strcspn(operand, ";"), operand, length, result, length, result);
}

// Copies the text. An instruction without a place of its own keeps that of the one before it.
static void append_ptx(struct text *out, const char *ptx, size_t length) {
  const char *end = ptx + length, *from = ptx;
  bool is_losing = loses_negations(ptx);
  for (const char *line = ptx; line < end;) {
    const char *newline = memchr(line, '\n', (size_t)(end - line)), *next = newline ? newline + 1 : end;
    bool is_negation = is_losing && begins(line, "\tneg.s16"), is_left_out = *line == '\t' && line[1] == '.' && line[2] == 'l' && is_lost_place(line);
    if (is_negation || is_left_out) {
      text_append(out, from, (size_t)(line - from));
      if (is_negation) append_negation(out, line);
      from = next;
    }
    line = next;
  }
  text_append(out, from, (size_t)(end - from));
}

static bool emit_ptx(struct nvptx *cg, LLVMTargetMachineRef machine, struct text *out) {
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, cg->module, LLVMAssemblyFile, &message, &buffer)) {
    refuse(cg, message ? message : "no code");
    LLVMDisposeMessage(message);
  }
  if (!buffer) return !cg->failed;
  const char *ptx = LLVMGetBufferStart(buffer);
  const char *external = strstr(ptx, ".extern .func");
  if (external) {
    struct range nowhere = {0};
    nvptx_fail(cg, nowhere, "the PTX calls an external function: %.*s", (int)strcspn(external, "\n"),
               external);
  } else if (!cg->failed) {
    append_ptx(out, ptx, LLVMGetBufferSize(buffer));
  }
  LLVMDisposeMemoryBuffer(buffer);
  return !cg->failed;
}

static bool build(struct nvptx *cg) {
  struct ir_module *module = cg->context->module;
  nvptx_debug_begin(cg);
  for (uint32_t k = 0; k < module->kernels.count; k++) {
    struct ir_kernel *kernel = list_at(&module->kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count; i++)
      if (!nvptx_entry(cg, kernel, list_at(&kernel->entries, struct ir_entry, i))) return false;
  }
  nvptx_debug_end(cg);
  return verify(cg);
}

static bool compile(struct nvptx *cg, LLVMTargetMachineRef machine, enum nvptx_output output,
                    struct text *out) {
  LLVMSetTarget(cg->module, triple);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(cg->module, layout);
  LLVMDisposeTargetData(layout);
  if (!build(cg) || !optimize(cg, machine)) return false;
  if (output == NVPTX_PTX && cg->level && !cg->context->options->debug && nvptx_select(cg, out)) return true;
  part_words(cg);
  if (output == NVPTX_PTX) return emit_ptx(cg, machine, out);
  char *text = LLVMPrintModuleToString(cg->module);
  text_puts(out, text);
  LLVMDisposeMessage(text);
  return !cg->failed;
}

bool codegen_nvptx(struct pass_context *context, enum nvptx_output output, struct text *out) {
  if (!codegen_accepts(context)) return false;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialize);
  struct nvptx *cg = arena_new(context->arena, struct nvptx);
  cg->context = context;
  cg->level = level_of(context);
  struct rescue here = {.reason = NULL}, *outer = rescue;
  if (setjmp(here.back)) {
    rescue = outer;
    refuse(cg, here.reason ? here.reason : "out of memory");
    free(here.reason);
    return false;
  }
  rescue = &here;
  cg->llvm = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(cg->llvm, on_diagnostic, cg);
  LLVMContextSetDiscardValueNames(cg->llvm, output == NVPTX_PTX);
  cg->module = LLVMModuleCreateWithNameInContext("red", cg->llvm);
  cg->builder = LLVMCreateBuilderInContext(cg->llvm);
  struct machine *machine = take_machine(cg, context->options->target);
  bool ok = machine && compile(cg, machine->machine, output, out);
  if (cg->debug) LLVMDisposeDIBuilder(cg->debug);
  LLVMDisposeBuilder(cg->builder);
  LLVMDisposeModule(cg->module);
  if (machine) keep_machine(machine);
  LLVMContextDispose(cg->llvm);
  rescue = outer;
  return ok;
}
