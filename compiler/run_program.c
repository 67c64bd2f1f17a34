#include "compiler/run_program.h"

#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/plan_build.h"

#include <string.h>

void program_init(struct run_program *program) {
  memset(program, 0, sizeof *program);
  program->multiprocessors = 132;
  compilation_init(&program->c);
  options_init(&program->options, &program->c);
  program->arguments = (struct kernel_arguments){.options = &program->options, .c = &program->c};
}

void program_destroy(struct run_program *program) {
  for (uint32_t i = 0; program->texts && i < program->options.inputs.count; i++)
    text_free(&program->texts[i]);
  arguments_free(&program->arguments);
  text_free(&program->printed);
  compilation_destroy(&program->c);
}

bool program_refuse(struct run_program *program, enum diag_code code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(&program->c.arena, format, arguments);
  va_end(arguments);
  diag_error(&program->c.diag, code, (struct range){0}, "%s", message);
  return false;
}

bool program_take_option(struct run_program *program, int argc, char **argv, int *at) {
  const char *value;
  struct compilation *c = &program->c;
  if (run_take_value(c, "--kernel", argc, argv, at, &value)) {
    program->kernel_name = value;
  } else if (run_take_value(c, "--size", argc, argv, at, &value)) {
    if (value) list_push(&c->arena, &program->sizes, (void *)(uintptr_t)value);
  } else {
    return false;
  }
  return true;
}

bool program_read(struct run_program *program) {
  const struct list *inputs = &program->options.inputs;
  bool ok = true;
  program->texts = arena_array(&program->c.arena, struct text, inputs->count + 1);
  for (uint32_t i = 0; i < inputs->count; i++) {
    const char *path = list_at(inputs, const char, i);
    ok &= input_read(&program->c.diag, path, &program->texts[i]) &&
          compilation_parse_text(&program->c, input_name(path),
                                 program->texts[i].data ? program->texts[i].data : "",
                                 program->texts[i].length);
  }
  return ok && compilation_check(&program->c);
}

bool program_find_kernel(struct run_program *program, const char *verb) {
  const char *names = "";
  struct list *kernels = &program->c.module.kernels;
  for (uint32_t i = 0; i < kernels->count; i++) {
    const struct ir_kernel *kernel = list_at(kernels, struct ir_kernel, i);
    names = arena_printf(&program->c.arena, "%s%s%s", names, i ? ", " : "", kernel->name);
    if (program->kernel_name ? strcmp(kernel->name, program->kernel_name) == 0 : kernels->count == 1)
      program->kernel = kernel;
  }
  if (!program->kernel && program->kernel_name)
    return program_refuse(program, ERROR_USAGE, "there is no kernel '%s'; there are %s", program->kernel_name,
                          names);
  if (!program->kernel)
    return program_refuse(program, ERROR_USAGE, "say which kernel to %s with --kernel: %s", verb, names);
  if (!program->kernel->entries.count)
    return program_refuse(program, ERROR_USAGE, "kernel '%s' has no entry", program->kernel->name);
  program->entry = list_at(&program->kernel->entries, struct ir_entry, 0);
  return true;
}

// Whether all that was reported is that an axis bound to threads has no constant extent.
static bool needs_exact_sizes(const struct compilation *c) {
  for (uint32_t i = 0; i < c->diag.diagnostics.count; i++) {
    const struct diagnostic *d = list_at(&c->diag.diagnostics, struct diagnostic, i);
    if (d->kind == DIAG_ERROR && d->code != ERROR_EXTENT) return false;
  }
  return c->diag.error_count > 0;
}

// The other kernels of the program are not compiled.
static void keep_kernel(struct ir_module *module, const char *name) {
  for (uint32_t i = module->kernels.count; i-- > 0;)
    if (strcmp(list_at(&module->kernels, struct ir_kernel, i)->name, name) != 0)
      list_remove(&module->kernels, i);
}

// A compilation of the same program under the same options. `schedules`: parsed first, or NULL; `exact`: with every size of the kernel fixed.
static bool parse_again(struct run_program *program, struct compilation *code, const char *schedules, bool exact) {
  compilation_init(code);
  code->options = program->c.options;
  code->verify_each = program->c.verify_each;
  code->diag.error_limit = program->c.diag.error_limit;
  code->diag.warnings_are_errors = program->c.diag.warnings_are_errors;
  code->options.defines = list_copy(&code->arena, &program->c.options.defines);
  for (uint32_t i = 0; exact && i < program->kernel->sizes.count; i++) {
    const struct ir_var *size = list_at(&program->kernel->sizes, struct ir_var, i);
    if (size->constant || (size->inferred && size->inferred->op == OP_STRIDE)) continue;
    struct define *define = arena_new(&code->arena, struct define);
    *define = (struct define){.name = size->label ? size->label : size->name, .integer = program->arguments.sizes[i]};
    list_push(&code->arena, &code->options.defines, define);
  }
  bool ok = !schedules || compilation_parse_text(code, "schedules", schedules, strlen(schedules));
  for (uint32_t i = 0; ok && i < program->options.inputs.count; i++)
    ok = compilation_parse_text(code, input_name(list_at(&program->options.inputs, const char, i)), program->texts[i].data ? program->texts[i].data : "",
                                program->texts[i].length);
  return ok;
}

static struct list no_parameters(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)arena, (void)kernel, (void)entry;
  return (struct list){0};
}

// Where every device puts the buffers, as far as a plan asks: the first byte of each at the start of a page.
static uint64_t *page_addresses(struct run_program *program) {
  uint32_t count = program->kernel->tensors.count;
  uint64_t *addresses = arena_array(&program->c.arena, uint64_t, count + 1);
  for (uint32_t t = 0; t < count; t++) {
    const struct buffer *buffer = &program->arguments.tensors[t].buffer;
    addresses[t] = ((uint64_t)(t + 1) << 48) + (uint64_t)(buffer->offset * (int64_t)type_bytes(buffer->type));
  }
  return addresses;
}

// Of the entries with the compiler's own schedules only the one stays that a launch of the arguments takes, with its twin. Those of users stay, so
// that what is wrong with them is reported.
static void keep_entries_of_launch(struct run_program *program, struct compilation *code) {
  struct plan plan;
  struct plan_input input;
  struct plan_result *result = arena_new(&program->c.arena, struct plan_result);
  struct ir_kernel *kernel = list_at(&code->module.kernels, struct ir_kernel, 0);
  program_plan_input(program, page_addresses(program), &input);
  plan_init(&plan);
  if (plan_build(&plan, &code->module, no_parameters) && plan_evaluate(plan_find(&plan, kernel->name), &input, result) == PLAN_OK) {
    struct list kept = {0};
    for (uint32_t i = 0; i < kernel->entries.count; i++) {
      struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
      bool is_users = !entry->is_automatic && !diag_is_own(&code->diag, entry->range);
      if (is_users || ir_is_of_pair(kernel, i, result->entry->name)) list_push(&code->arena, &kept, entry);
    }
    kernel->entries = kept;
    program->notes = arena_strdup(&program->c.arena, result->notes);
  }
  plan_destroy(&plan);
}

// Whether a launch of the arguments finds an entry in the code.
static bool takes_launch(struct run_program *program, const struct text *ptx) {
  char error[512];
  struct plan plan;
  struct plan_input input;
  struct plan_result *result = arena_new(&program->c.arena, struct plan_result);
  program_plan_input(program, page_addresses(program), &input);
  plan_init(&plan);
  const struct plan_kernel *kernel = plan_parse(&plan, ptx->data, ptx->length, error, sizeof error) ? plan_find(&plan, program->kernel->name) : NULL;
  bool takes = !kernel || plan_evaluate(kernel, &input, result) != PLAN_LIMIT;
  plan_destroy(&plan);
  return takes;
}

static bool compile(struct run_program *program, struct compilation *code, const char *schedules, bool exact, bool keeps_all, struct text *ptx) {
  if (!parse_again(program, code, schedules, exact) || !compilation_check(code)) return false;
  keep_kernel(&code->module, program->kernel->name);
  program->notes = "";
  if (!keeps_all) keep_entries_of_launch(program, code);
  return compilation_lower(code) && compilation_emit(code, EMIT_PTX, ptx);
}

// Once more, into what is made anew.
static bool compile_again(struct run_program *program, struct compilation *code, const char *schedules, bool exact, bool keeps_all, struct text *ptx) {
  compilation_destroy(code);
  text_free(ptx);
  *ptx = (struct text){0};
  return compile(program, code, schedules, exact, keeps_all, ptx);
}

bool program_own_schedules(struct run_program *program, struct text *out) {
  struct compilation code;
  bool ok = parse_again(program, &code, NULL, false);
  code.schedules = out;
  code.options.schedule = "auto"; // those of the program are left out
  ok = ok && compilation_check(&code);
  compilation_destroy(&code);
  return ok;
}

bool program_compile(struct run_program *program, const char *schedules, bool is_quiet, struct text *ptx) {
  struct compilation code;
  bool keeps_all = program->keeps_all, exact = false;
  bool ok = compile(program, &code, schedules, exact, keeps_all, ptx);
  if (!ok && needs_exact_sizes(&code)) {
    exact = true;
    ok = compile_again(program, &code, schedules, exact, keeps_all, ptx);
  }
  if (ok && !keeps_all && !takes_launch(program, ptx)) ok = compile_again(program, &code, schedules, exact, true, ptx);
  struct options printing = program->options;
  printing.compilation = &code;
  if (!is_quiet || code.diag.internal) driver_print_diagnostics(&printing);
  program->c.diag.internal |= code.diag.internal;
  compilation_destroy(&code);
  return ok;
}

static enum plan_type plan_type_of(enum type type) {
  enum plan_type found = PLAN_I64;
  plan_type_find(type_name(type), strlen(type_name(type)), &found);
  return found;
}

void program_plan_input(struct run_program *program, const uint64_t *addresses, struct plan_input *input) {
  const struct ir_kernel *kernel = program->kernel;
  struct plan_tensor_value *tensors =
      arena_array(&program->c.arena, struct plan_tensor_value, kernel->tensors.count + 1);
  union plan_number *scalars = arena_array(&program->c.arena, union plan_number, kernel->scalars.count + 1);
  for (uint32_t t = 0; t < kernel->tensors.count; t++) {
    const struct buffer *buffer = &program->arguments.tensors[t].buffer;
    tensors[t] = (struct plan_tensor_value){plan_type_of(buffer->type), buffer->rank, buffer->dims,
                                            buffer->strides, addresses[t]};
  }
  for (uint32_t i = 0; i < kernel->scalars.count; i++) {
    const struct value *value = &program->arguments.scalars[i];
    if (type_is_float(value->type) || type_class_of(value->type) == CLASS_STORAGE)
      scalars[i].number = value->number;
    else
      scalars[i].integer = value->integer;
  }
  const struct target *target = program->c.options.target;
  *input = (struct plan_input){tensors,
                               scalars,
                               program->arguments.sizes,
                               {program->multiprocessors, target->sm, target->shared_limit}};
}

// The requirements come from the stages; the plan's entries do not matter.
bool program_check_requirements(struct run_program *program) {
  struct plan plan;
  struct plan_input input;
  struct plan_result *result = arena_new(&program->c.arena, struct plan_result);
  uint64_t *addresses = arena_array(&program->c.arena, uint64_t, program->kernel->tensors.count + 1);
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++)
    addresses[t] = (uint64_t)(uintptr_t)buffer_data(&program->arguments.tensors[t].buffer);
  program_plan_input(program, addresses, &input);
  plan_init(&plan);
  bool ok = plan_build(&plan, &program->c.module, no_parameters);
  const struct plan_kernel *kernel = ok ? plan_find(&plan, program->kernel->name) : NULL;
  enum plan_status status = kernel ? plan_evaluate(kernel, &input, result) : PLAN_LIMIT;
  if (status != PLAN_OK && status != PLAN_LIMIT)
    ok = program_refuse(program, ERROR_ARGUMENT, "%s", result->message);
  plan_destroy(&plan);
  return ok;
}
