// The pipeline: compilation_run at the end is the whole of it, top to bottom.
#include "compiler/pipeline.h"

#include "codegen/arguments.h"
#include "codegen/cheader.h"
#include "codegen/codegen.h"
#include "compiler/explain.h"
#include "compiler/input.h"
#include "compiler/plan_build.h"
#include "compiler/tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char CHECK[] = "check";       // the pass in front of pass_table, from the syntax tree
static const char HEADING[] = "// after "; // first line of a dump
static const struct range nowhere;

// Debug and sanitizer builds verify always.
#if !defined(__OPTIMIZE__) || defined(RED_SANITIZED)
enum { VERIFIES_ALWAYS = 1 };
#else
enum { VERIFIES_ALWAYS = 0 };
#endif

void compilation_init(struct compilation *c) {
  memset(c, 0, sizeof *c);
  arena_init(&c->arena);
  diag_init(&c->diag, &c->arena);
  c->module.arena = &c->arena;
  c->module.diag = &c->diag;
  c->options.target = target_find("sm_75");
  c->options.optimize = 3;
}

void compilation_destroy(struct compilation *c) {
  if (!c) return;
  text_free(&c->explain);
  arena_destroy(&c->arena);
}

// ---- Time

double pipeline_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void pipeline_count(struct compilation *c, const char *phase, double start) {
  double seconds = pipeline_now() - start;
  for (uint32_t i = 0; i < c->phases.count; i++) {
    struct phase *p = list_at(&c->phases, struct phase, i);
    if (strcmp(p->name, phase) == 0) {
      p->seconds += seconds;
      return;
    }
  }
  struct phase *p = arena_new(&c->arena, struct phase);
  p->name = phase;
  p->seconds = seconds;
  list_push(&c->arena, &c->phases, p);
}

// ---- Passes by name

// Its place in the order: 0 `check`, then pass_table; -1: there is none of the name.
static int pass_place(const char *name) {
  if (strcmp(name, CHECK) == 0) return 0;
  for (int i = 0; pass_table[i].name; i++)
    if (strcmp(pass_table[i].name, name) == 0) return i + 1;
  return -1;
}

bool pipeline_has_pass(const char *name) {
  return pass_place(name) >= 0;
}

static bool is_stopped_after(const struct compilation *c, const char *pass) {
  return c->stop_after && strcmp(c->stop_after, pass) == 0;
}

// The level that entries are at once `pass` has run.
static enum ir_level level_after(const char *pass) {
  return pass_place(pass) < pass_place("nest") ? LEVEL_STAGES : LEVEL_PROGRAM;
}

static struct pass_context make_context(struct compilation *c) {
  return (struct pass_context){
      .arena = &c->arena,
      .diag = &c->diag,
      .module = &c->module,
      .options = &c->options,
      .explain = c->wants_explain ? &c->explain : NULL,
      .schedules = c->schedules,
      .is_from_ir = c->reads_ir,
  };
}

// ---- Verification

// The number of the first line in which two texts differ.
static uint32_t first_difference(const char *a, const char *b) {
  uint32_t line = 1;
  for (; *a && *a == *b; a++, b++) line += *a == '\n';
  return line;
}

// Does what was printed, read back, print the same?
static void round_trip(struct compilation *c, const char *pass) {
  struct arena arena;
  struct diag diag;
  struct text first = {0}, second = {0};
  arena_init(&arena);
  diag_init(&diag, &arena);
  struct ir_module copy = {.arena = &arena, .diag = &diag};
  compilation_dump(c, pass, &first);
  if (!ir_read(&copy, diag_add_source(&diag, "dump", first.data, first.length))) {
    const struct diagnostic *why =
        diag.diagnostics.count ? list_at(&diag.diagnostics, struct diagnostic, 0) : NULL;
    diag_internal(&c->diag, pass, nowhere, "its dump cannot be read back: line %u: %s",
                  why ? why->range.line : 0, why ? why->message : "no reason given");
  } else {
    text_printf(&second, "%s%s\n", HEADING, pass);
    ir_print(&copy, &second);
    if (strcmp(first.data, second.data) != 0)
      diag_internal(&c->diag, pass, nowhere, "its dump, read back, prints differently from line %u on",
                    first_difference(first.data, second.data));
  }
  text_free(&first);
  text_free(&second);
  arena_destroy(&arena);
}

static void verify(struct compilation *c, const char *pass) {
  if (!c->verify_each && !VERIFIES_ALWAYS) return;
  double start = pipeline_now();
  if (ir_verify(&c->module, pass, false)) round_trip(c, pass);
  pipeline_count(c, "verify", start);
}

// ---- Parsing

// The pass that the heading of a dump names, or NULL.
static const char *heading_pass(struct compilation *c, const char *text, size_t length) {
  size_t heading = strlen(HEADING);
  if (length < heading || memcmp(text, HEADING, heading) != 0) return NULL;
  const char *name = text + heading, *end = name;
  while (end < text + length && *end != '\n' && *end != '\r' && *end != ' ') end++;
  return arena_strndup(&c->arena, name, (size_t)(end - name));
}

static bool read_ir(struct compilation *c, uint32_t file, const char *text, size_t length) {
  struct range start = {1, 1, 1, 1, file};
  if (!c->from) c->from = heading_pass(c, text, length);
  if (!c->from) {
    diag_error(&c->diag, ERROR_IR_TEXT, start, "this text does not say which pass it was printed after");
    diag_note(&c->diag, nowhere, "say it with --from=PASS, or with a first line '%sPASS'", HEADING);
    return false;
  }
  if (!pipeline_has_pass(c->from)) {
    diag_error(&c->diag, ERROR_IR_TEXT, start, "there is no pass '%s'; see --list-passes", c->from);
    return false;
  }
  if (c->stop_after && pass_place(c->stop_after) < pass_place(c->from)) {
    diag_error(&c->diag, ERROR_USAGE, start, "this text is past pass '%s', behind '%s': it cannot stop there",
               c->stop_after, c->from);
    return false;
  }
  if (!ir_read(&c->module, file)) return false;
  if (!c->module.kernels.count) {
    diag_error(&c->diag, ERROR_NOTHING, nowhere, "the input has no kernel");
    return false;
  }
  enum ir_level level = level_after(c->from);
  for (uint32_t k = 0; k < c->module.kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&c->module.kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count; i++) {
      const struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
      if (entry->level != level)
        diag_error(&c->diag, ERROR_IR_VERIFY, entry->range, "entry '%s' is %s; after pass '%s' it is %s",
                   entry->name, entry->level == LEVEL_STAGES ? "a list of stages" : "a program", c->from,
                   level == LEVEL_STAGES ? "a list of stages" : "a program");
    }
  }
  return !c->diag.error_count && ir_verify(&c->module, c->from, true);
}

bool compilation_parse_text(struct compilation *c, const char *name, const char *text, size_t length) {
  double start = pipeline_now();
  char *copy = arena_alloc(&c->arena, length + 2); // zeroed: ends with the two zeros that a scanner may want
  if (length) memcpy(copy, text, length);
  uint32_t file = diag_add_source(&c->diag, name, copy, length);
  c->running = "parse";
  bool ok = input_is_text(&c->diag, file) &&
            (c->reads_ir ? read_ir(c, file, copy, length) : red_parse(&c->diag, file, &c->ast));
  c->running = NULL;
  pipeline_count(c, "parse", start);
  return ok;
}

bool compilation_parse_file(struct compilation *c, const char *path) {
  struct text text = {0};
  double start = pipeline_now();
  bool ok = input_read(&c->diag, path, &text);
  pipeline_count(c, "read", start);
  ok = ok && compilation_parse_text(c, input_name(path), text.data, text.length);
  text_free(&text);
  return ok;
}

// ---- Passes

// What every pass is followed by. `worked`: what the pass returned; `errors`: how many there were before it.
static bool finish_pass(struct compilation *c, const char *pass, bool worked, uint32_t errors, double start) {
  c->running = NULL;
  pipeline_count(c, pass, start);
  if (!worked && c->diag.error_count == errors)
    diag_internal(&c->diag, pass, nowhere, "it failed and reported no error");
  if (c->diag.error_count == errors) verify(c, pass);
  if (c->after_step) c->after_step(c, pass, c->after_step_state);
  return c->diag.error_count == errors;
}

// One pass over every entry. An entry that fails does not keep the others from being tried, so that all
// errors are reported.
static bool run_entries(struct compilation *c, const struct pass *pass) {
  struct pass_context context = make_context(c);
  bool worked = true;
  c->running = pass->name;
  for (uint32_t k = 0; k < c->module.kernels.count; k++) {
    struct ir_kernel *kernel = list_at(&c->module.kernels, struct ir_kernel, k);
    bool entry_worked = true;
    for (uint32_t i = 0; i < kernel->entries.count; i++) { // the pass may append entries
      struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
      if (entry->is_general && !entry_worked) continue; // its twin reported the errors
      ir_collect_names(kernel, entry);
      entry_worked = pass->run(&context, kernel, entry);
      worked &= entry_worked;
    }
  }
  c->running = NULL;
  return worked;
}

static bool run_pass(struct compilation *c, const struct pass *pass) {
  uint32_t errors = c->diag.error_count;
  double start = pipeline_now();
  return finish_pass(c, pass->name, run_entries(c, pass), errors, start);
}

bool compilation_check(struct compilation *c) {
  if (c->reads_ir) return true;
  if (!c->ast.kernels.count) {
    diag_error(&c->diag, ERROR_NOTHING, nowhere, "the input has no kernel");
    return false;
  }
  struct pass_context context = make_context(c);
  uint32_t errors = c->diag.error_count;
  double start = pipeline_now();
  c->running = CHECK;
  if (finish_pass(c, CHECK, pass_check(&context, &c->ast), errors, start)) return true;
  // The kernels that are right may have schedules that are not: all errors are reported at once. Nothing is verified, as the module is not whole.
  for (const struct pass *pass = pass_table; !c->diag.internal && pass->name; pass++)
    if (strcmp(pass->name, "schedule") == 0) run_entries(c, pass);
  return false;
}

static bool lower(struct compilation *c) {
  if (!c->module.kernels.count && !compilation_check(c)) return false;
  const char *done = c->reads_ir ? c->from : CHECK;
  if (is_stopped_after(c, done)) return true;
  for (const struct pass *pass = pass_table + pass_place(done); pass->name; pass++) {
    if (!run_pass(c, pass)) return false;
    if (is_stopped_after(c, pass->name)) return true;
  }
  if (c->wants_explain) explain_module(&c->module, &c->explain);
  return true;
}

// Whether an entry has a schedule that the automatic scheduler wrote.
static bool has_own_schedule(const struct compilation *c) {
  for (uint32_t k = 0; k < c->module.kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&c->module.kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count; i++)
      if (diag_is_own(&c->diag, list_at(&kernel->entries, struct ir_entry, i)->range)) return true;
  }
  return false;
}

// A program is not refused for a schedule that the compiler chose itself: where lowering fails with such ones, it is tried again with the
// plainest of them, and only what that reports is the user's.
bool compilation_lower(struct compilation *c) {
  uint32_t reported = c->diag.diagnostics.count, errors = c->diag.error_count, warnings = c->diag.warning_count;
  if (lower(c)) return true;
  if (c->diag.internal || c->reads_ir || c->options.class_name || c->options.is_plain || !has_own_schedule(c)) return false;
  const char *why = "";
  for (uint32_t i = reported; i < c->diag.diagnostics.count; i++) {
    const struct diagnostic *diagnostic = c->diag.diagnostics.at[i];
    if (diagnostic->kind == DIAG_ERROR && !*why) why = diagnostic->message;
  }
  c->diag.diagnostics.count = reported;
  c->diag.error_count = errors;
  c->diag.warning_count = warnings;
  c->diag.last = NULL;
  c->module.kernels.count = c->module.reducers.count = 0;
  c->explain.length = 0;
  c->options.is_plain = true;
  diag_remark(&c->diag, "schedule", nowhere, "the compiler's own schedules could not be lowered, and plain ones take their place: %s", why);
  return lower(c);
}

// ---- Output

void compilation_dump(const struct compilation *c, const char *pass, struct text *out) {
  text_printf(out, "%s%s\n", HEADING, pass);
  ir_print(&c->module, out);
}

// The last pass that has run, or will have run.
static const char *last_pass(const struct compilation *c) {
  if (c->stop_after) return c->stop_after;
  const struct pass *pass = pass_table;
  while (pass[1].name) pass++;
  return pass->name;
}

// The arguments of the generated code, as the plan wants them.
static struct list plan_parameters(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct list arguments = {0}, parameters = {0};
  codegen_arguments(arena, kernel, entry, &arguments);
  for (uint32_t i = 0; i < arguments.count; i++) {
    const struct codegen_argument *argument = list_at(&arguments, struct codegen_argument, i);
    struct plan_parameter *parameter = arena_new(arena, struct plan_parameter);
    switch (argument->kind) {
    case ARGUMENT_TENSOR: *(argument->mem->workspace ? &parameter->workspace : &parameter->tensor) = argument->mem; break;
    case ARGUMENT_SCALAR: parameter->scalar = argument->var; break;
    case ARGUMENT_SIZE: parameter->integer = ir_ref(arena, argument->var); break;
    }
    list_push(arena, &parameters, parameter);
  }
  return parameters;
}

bool compilation_plan(struct compilation *c, struct plan *plan) {
  double start = pipeline_now();
  bool ok = plan_build(plan, &c->module, plan_parameters);
  pipeline_count(c, "plan", start);
  return ok;
}

// PTX behind the plan that its launches follow.
static bool generate_ptx(struct compilation *c, struct pass_context *context, struct text *out) {
  struct plan plan;
  plan_init(&plan);
  char *comments = compilation_plan(c, &plan) ? plan_print(&plan) : NULL;
  if (comments) text_puts(out, comments);
  if (!comments && !c->diag.error_count) diag_internal(&c->diag, "plan", nowhere, "out of memory");
  free(comments);
  plan_destroy(&plan);
  double start = pipeline_now();
  bool ok = comments && codegen_nvptx(context, NVPTX_PTX, out);
  pipeline_count(c, "codegen", start);
  return ok;
}

// The PTX in a C header.
static bool generate_header(struct compilation *c, struct pass_context *context, struct text *out) {
  const struct source *first = c->diag.sources.count ? list_at(&c->diag.sources, struct source, 0) : NULL;
  const char *name = c->header_name ? c->header_name : first ? first->name : "kernels";
  struct text ptx = {0};
  struct plan plan;
  plan_init(&plan);
  bool ok = generate_ptx(c, context, &ptx) && compilation_plan(c, &plan) && codegen_cheader(&c->diag, &plan, &ptx, name, out);
  plan_destroy(&plan);
  text_free(&ptx);
  return ok;
}

bool compilation_emit_cuda(struct compilation *c, struct text *out, struct list *lines) {
  struct compile_options options = c->options;
  struct pass_context context = make_context(c);
  options.all_entries = true;
  context.options = &options;
  return codegen_cuda(&context, out, lines);
}

// Code or text of one kind, with its time.
static bool generate(struct compilation *c, enum emit_kind kind, struct text *out) {
  struct pass_context context = make_context(c);
  double start = pipeline_now();
  bool ok = true;
  switch (kind) {
  case EMIT_AST: ast_print(&c->ast, out); break;
  case EMIT_IR: compilation_dump(c, last_pass(c), out); break;
  case EMIT_CUDA: ok = codegen_cuda(&context, out, NULL); break;
  case EMIT_LLVM: ok = codegen_nvptx(&context, NVPTX_LLVM, out); break;
  case EMIT_PTX:
  case EMIT_CUBIN: return generate_ptx(c, &context, out);
  case EMIT_HEADER: return generate_header(c, &context, out);
  }
  pipeline_count(c, "codegen", start);
  return ok;
}

static bool assemble(struct compilation *c, const struct text *ptx, struct text *cubin) {
  double start = pipeline_now();
  c->running = "ptxas";
  bool ok = tool_ptxas(&c->diag, &c->options, ptx, cubin);
  c->running = NULL;
  pipeline_count(c, "ptxas", start);
  return ok;
}

bool compilation_emit(struct compilation *c, enum emit_kind kind, struct text *out) {
  uint32_t errors = c->diag.error_count;
  struct text ptx = {0};
  c->running = "codegen";
  bool ok = generate(c, kind, kind == EMIT_CUBIN ? &ptx : out);
  c->running = NULL;
  if (ok && kind == EMIT_CUBIN) ok = assemble(c, &ptx, out);
  text_free(&ptx);
  if (!ok && c->diag.error_count == errors)
    diag_internal(&c->diag, "codegen", nowhere, "it failed and reported no error");
  return c->diag.error_count == errors;
}

bool compilation_run(struct compilation *c, const struct list *paths, enum emit_kind kind, struct text *out) {
  bool ok = true;
  for (uint32_t i = 0; i < paths->count; i++) // all files, so that all errors are reported
    ok &= compilation_parse_file(c, list_at(paths, const char, i));
  if (!ok) return false;
  if (c->after_step && !c->reads_ir) c->after_step(c, "parse", c->after_step_state);
  if (kind == EMIT_AST) return compilation_emit(c, EMIT_AST, out);
  if (!compilation_lower(c)) return false;
  return compilation_emit(c, kind, out);
}
