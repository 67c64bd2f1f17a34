// red_compile_text and red_compile_file.
#define RED_BUILDING
#include "compiler/jit.h"

#include "red_version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void destroy_text(struct jit_text *text) {
  free(text->name);
  free(text->text);
}

static void destroy(void *state) {
  struct jit *jit = state;
  jit_forget(jit);
  destroy_text(&jit->program);
  destroy_text(&jit->schedules);
  for (size_t i = 0; i < jit->define_count; i++) free(jit->defines[i]);
  free(jit->defines);
  free(jit->schedule);
  text_free(&jit->key);
  pthread_mutex_destroy(&jit->lock);
  free(jit);
}

// ---- Options

static const struct target *newest_target(int arch) {
  const struct target *best = NULL;
  for (const struct target *target = target_table(); target->name; target++)
    if ((int)target->sm <= arch) best = target;
  return best;
}

static red_error choose_target(struct jit *jit, const char *arch) {
  const red_device_info *info = &jit->device->info;
  jit->target = arch ? target_find(arch) : newest_target(info->arch);
  if (jit->target) return RED_OK;
  if (arch) return error_set(RED_ERROR_INVALID, "there is no target \"%.32s\"; see redc --list-targets", arch);
  return error_set(RED_ERROR_UNSUPPORTED, "%s is an sm_%d, older than every target", info->name, info->arch);
}

static red_error copy_text(struct jit_text *to, const char *name, const char *text, size_t length) {
  to->name = strdup(name);
  to->text = malloc(length + 1);
  if (!to->name || !to->text) return error_memory();
  memcpy(to->text, text, length);
  to->text[length] = 0;
  to->length = length;
  return RED_OK;
}

static red_error read_text(struct jit_text *to, const char *path) {
  FILE *file = fopen(path, "rb");
  struct text text = {0};
  char part[4096];
  size_t got;
  if (!file) return error_set(RED_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
  errno = 0;
  while ((got = fread(part, 1, sizeof part, file)) > 0) text_append(&text, part, got);
  bool failed = ferror(file) != 0;
  int why = errno;
  fclose(file);
  red_error error =
      failed ? error_set(RED_ERROR_FILE, "cannot read '%s': %s", path, strerror(why)) : copy_text(to, path, text.data ? text.data : "", text.length);
  text_free(&text);
  return error;
}

static red_error take_options(struct jit *jit, const red_options *options) {
  static const red_options none;
  if (!options) options = &none;
  if (options->optimize < 0 || options->optimize > 4) return error_set(RED_ERROR_INVALID, "options.optimize is %d; it is 0 to 4", options->optimize);
  if (options->define_count && !options->defines) return error_set(RED_ERROR_INVALID, "options.defines is NULL");
  if (options->schedule_text && options->schedule_file)
    return error_set(RED_ERROR_INVALID, "options.schedule_text and options.schedule_file are both given");
  jit->optimize = options->optimize ? (uint32_t)options->optimize - 1 : 3;
  jit->no_contract = options->no_contract;
  jit->debug = options->debug;
  jit->batch_invariant = options->batch_invariant;
  jit->defines = calloc(options->define_count + 1, sizeof *jit->defines);
  jit->schedule = options->schedule ? strdup(options->schedule) : NULL;
  if (!jit->defines || (options->schedule && !jit->schedule)) return error_memory();
  for (size_t i = 0; i < options->define_count; i++) {
    if (!options->defines[i]) return error_set(RED_ERROR_INVALID, "options.defines[%zu] is NULL", i);
    if (!(jit->defines[i] = strdup(options->defines[i]))) return error_memory();
    jit->define_count++;
  }
  red_error error = choose_target(jit, options->arch);
  if (!error && options->schedule_text)
    error = copy_text(&jit->schedules, "<schedules>", options->schedule_text, strlen(options->schedule_text));
  if (!error && options->schedule_file) error = read_text(&jit->schedules, options->schedule_file);
  return error;
}

// ---- Keys

void jit_key_field(struct text *key, const void *data, size_t size) {
  uint64_t length = size;
  text_append(key, (const char *)&length, sizeof length);
  if (size) text_append(key, data, size);
}

void jit_key_string(struct text *key, const char *string) { jit_key_field(key, string ? string : "", string ? strlen(string) + 1 : 0); }

// Everything that the code depends on.
static void make_key(struct jit *jit) {
  struct text *key = &jit->key;
  const uint8_t flags[] = {(uint8_t)jit->optimize, jit->no_contract, jit->debug, jit->batch_invariant};
  jit_key_string(key, RED_VERSION);
  jit_key_string(key, jit_identity());
  jit_key_string(key, jit->target->name);
  jit_key_field(key, flags, sizeof flags);
  jit_key_string(key, jit->schedule);
  jit_key_string(key, jit->program.name);
  jit_key_field(key, jit->program.text, jit->program.length);
  jit_key_string(key, jit->schedules.name);
  jit_key_field(key, jit->schedules.text, jit->schedules.length);
  jit_key_field(key, &jit->define_count, sizeof jit->define_count);
  for (size_t i = 0; i < jit->define_count; i++) jit_key_string(key, jit->defines[i]);
}

// ---- Generic kernels

static struct jit_unit *make_unit(struct plan *memory, const char *name) {
  struct jit_unit *unit = plan_alloc(memory, sizeof *unit);
  if (unit) unit->name = plan_strdup(memory, name, strlen(name));
  return unit && unit->name ? unit : NULL;
}

// What the kernel takes, found by trying types, since which ones it may have is for `check` to say.
static red_error look_at(struct jit *jit, struct jit_unit *unit, struct plan *memory, const struct plan_kernel **plan) {
  static const enum plan_type tried[] = {PLAN_F32, PLAN_I32, PLAN_U32, PLAN_BOOL, PLAN_C64, PLAN_F16};
  red_error error = RED_OK;
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    for (uint32_t t = 0; t < unit->type_count; t++) unit->values[t] = tried[i];
    error = jit_check(jit, unit, memory, plan);
    if (error != RED_ERROR_COMPILE) return error;
  }
  return error;
}

// The place of a parameter's type among the unit's type parameters; -1: it has one of its own.
static int8_t place_of_type(const struct jit_unit *unit, const struct ast_param *param) {
  for (uint32_t t = 0; t < unit->type_count; t++)
    if (strcmp(unit->types[t], param->type.text) == 0) return (int8_t)t;
  return -1;
}

// These places for the kernel's tensors, and behind them for its scalars.
static red_error find_parameters(const struct ast_kernel *source, const struct jit_unit *unit, struct plan *memory, const int8_t **type_of) {
  int8_t *places = plan_alloc(memory, source->inputs.count + source->outputs.count + 1);
  bool found[PROGRAM_MAX_TYPES] = {false};
  uint32_t count = 0;
  if (!places) return error_memory();
  for (int scalars = 0; scalars < 2; scalars++)
    for (int outputs = 0; outputs < 2; outputs++) {
      const struct list *params = outputs ? &source->outputs : &source->inputs;
      for (uint32_t i = 0; i < params->count; i++) {
        const struct ast_param *param = list_at(params, struct ast_param, i);
        if (param->is_tensor == scalars || strcmp(param->type.text, "size") == 0) continue;
        int8_t place = place_of_type(unit, param);
        if (place >= 0 && !scalars) found[place] = true;
        places[count++] = place;
      }
    }
  for (uint32_t t = 0; t < unit->type_count; t++)
    if (!found[t])
      return error_set(RED_ERROR_COMPILE, "kernel '%s': no tensor has the type parameter '%s', so a launch cannot say what it is: give it with a definition %s=f32",
                       unit->name, unit->types[t], unit->types[t]);
  *type_of = places;
  return RED_OK;
}

static red_error add_generic(struct jit *jit, struct red_program *program, const struct ast_kernel *source) {
  struct plan *memory = &program->memory;
  struct jit_unit *unit = make_unit(memory, source->name.text);
  if (!unit) return error_memory();
  for (uint32_t i = 0; i < source->type_params.count; i++) {
    const char *name = list_at(&source->type_params, struct ast_name, i)->text;
    if (jit_defines(jit, name)) continue;
    if (unit->type_count == PROGRAM_MAX_TYPES)
      return error_set(RED_ERROR_UNSUPPORTED, "kernel '%s' has more than %d type parameters for the launch to decide", unit->name, PROGRAM_MAX_TYPES);
    if (!(unit->types[unit->type_count++] = plan_strdup(memory, name, strlen(name)))) return error_memory();
  }
  struct red_kernel *kernel = &program->kernels[program->kernel_count++];
  kernel_init(kernel, program, unit->name);
  kernel->unit = unit;
  kernel->type_count = unit->type_count;
  memcpy(kernel->types, unit->types, sizeof kernel->types);
  red_error error = look_at(jit, unit, memory, &kernel->plan);
  if (!error) error = find_parameters(source, unit, memory, &kernel->type_of);
  return error ? error : kernel_finish(kernel);
}

// ---- At launch

static red_error compile_types(void *state, struct red_kernel *generic, const enum plan_type *types, struct red_kernel *kernel) {
  struct jit *jit = state;
  struct plan *memory = &generic->program->memory;
  red_error error = RED_OK;
  pthread_mutex_lock(&jit->lock); // for the program's memory
  struct jit_unit *unit = plan_alloc(memory, sizeof *unit);
  if (unit) {
    *unit = *(const struct jit_unit *)generic->unit;
    memcpy(unit->values, types, unit->type_count * sizeof *types);
    kernel->unit = unit;
    error = jit_check(jit, unit, memory, &kernel->plan);
  } else {
    error = error_memory();
  }
  if (!error) error = kernel_finish(kernel);
  pthread_mutex_unlock(&jit->lock);
  return error;
}

static red_error compile_entry(void *jit, struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed, enum slot_state *state, struct variant **variant) {
  const struct jit_unit named = {.name = kernel->name};
  return jit_entry(jit, kernel->unit ? kernel->unit : &named, kernel->plan, entry, fixed, state, variant);
}

static struct variant *compile_whole(void *jit) {
  struct variant *variant;
  return jit_whole(jit, &variant) ? NULL : variant;
}

static const struct jit_ops ops = {compile_types, compile_entry, compile_whole, destroy};

// ---- Programs

static red_error add_generics(struct jit *jit, struct red_program *program) {
  struct compilation c;
  red_error error = jit_parse(jit, &c);
  for (uint32_t k = 0; k < c.ast.kernels.count && !error; k++) {
    const struct ast_kernel *kernel = list_at(&c.ast.kernels, struct ast_kernel, k);
    if (jit_is_generic(jit, kernel)) error = add_generic(jit, program, kernel);
  }
  compilation_destroy(&c);
  return error;
}

static red_error make_program(struct jit *jit, red_program **program) {
  uint32_t generic;
  struct variant *variant;
  make_key(jit);
  red_error error = jit_interface(jit, &generic, &variant);
  if (error) return error;
  if (variant) {
    error = program_of_variant(variant, &ops, jit, generic, program);
    if (error) return error;
  } else {
    *program = program_create(jit->device, generic);
    if (!*program) return error_memory();
    (*program)->ops = &ops;
    (*program)->jit = jit;
  }
  if (generic) error = add_generics(jit, *program);
  if (error) {
    (*program)->ops = NULL; // the caller destroys it
    red_release(*program);
    *program = NULL;
  }
  return error;
}

static red_error compile(struct jit *jit, red_program **program) {
  red_error error = make_program(jit, program);
  if (error) destroy(jit);
  return error;
}

static struct jit *create(red_device *device) {
  struct jit *jit = calloc(1, sizeof *jit);
  if (!jit) return NULL;
  jit->device = device;
  pthread_mutex_init(&jit->lock, NULL);
  return jit;
}

red_error red_compile_text(red_device *device, const char *name, const char *text, const red_options *options, red_program **program) {
  if (program) *program = NULL;
  red_error error = device_check(device);
  if (error) return error;
  if (!text || !program) return error_set(RED_ERROR_INVALID, "red_compile_text: %s is NULL", text ? "the place for the program" : "the text");
  struct jit *jit = create(device);
  if (!jit) return error_memory();
  error = take_options(jit, options);
  if (!error) error = copy_text(&jit->program, name ? name : "<text>", text, strlen(text));
  if (error) {
    destroy(jit);
    return error;
  }
  return compile(jit, program);
}

red_error red_compile_file(red_device *device, const char *path, const red_options *options, red_program **program) {
  if (program) *program = NULL;
  red_error error = device_check(device);
  if (error) return error;
  if (!path || !program) return error_set(RED_ERROR_INVALID, "red_compile_file: %s is NULL", path ? "the place for the program" : "the path");
  struct jit *jit = create(device);
  if (!jit) return error_memory();
  error = take_options(jit, options);
  if (!error) error = read_text(&jit->program, path);
  if (error) {
    destroy(jit);
    return error;
  }
  return compile(jit, program);
}
