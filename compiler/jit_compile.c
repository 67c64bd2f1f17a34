// Compilations of the just-in-time compiler: from a program and what is fixed of it to PTX.
#include "compiler/jit.h"

#include "compiler/options.h"
#include "compiler/plan_build.h"
#include "runtime/cache.h"

#include <stdlib.h>
#include <string.h>

// ---- Diagnostics

// The first error with a place, else the first.
static const struct diagnostic *first_error(const struct diag *diag) {
  const struct diagnostic *first = NULL;
  for (uint32_t i = 0; i < diag->diagnostics.count; i++) {
    const struct diagnostic *d = list_at(&diag->diagnostics, struct diagnostic, i);
    if (d->kind != DIAG_ERROR) continue;
    if (d->range.line) return d;
    if (!first) first = d;
  }
  return first;
}

static red_error report(const struct compilation *c) {
  struct text text = {0};
  struct diag_style style = {0};
  diag_print(&c->diag, &style, &text);
  while (text.length && text.data[text.length - 1] == '\n') text.data[--text.length] = 0;
  const struct diagnostic *first = first_error(&c->diag);
  const struct source *source =
      first && first->range.line && first->range.file < c->diag.sources.count ? list_at(&c->diag.sources, struct source, first->range.file) : NULL;
  red_error error = error_set_place(c->diag.internal ? RED_ERROR_INTERNAL : RED_ERROR_COMPILE, text.data ? text.data : "it failed without a message",
                                    source ? source->name : NULL, first ? (int)first->range.line : 0, first ? (int)first->range.column : 0);
  text_free(&text);
  return error;
}

// Whether all that is wrong is that an axis on threads has no constant extent.
static bool needs_sizes(const struct diag *diag) {
  for (uint32_t i = 0; i < diag->diagnostics.count; i++) {
    const struct diagnostic *d = list_at(&diag->diagnostics, struct diagnostic, i);
    if (d->kind == DIAG_ERROR && d->code != ERROR_EXTENT) return false;
  }
  return diag->error_count > 0;
}

// ---- Parsing

bool jit_defines(const struct jit *jit, const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < jit->define_count; i++)
    if (strncmp(jit->defines[i], name, length) == 0 && jit->defines[i][length] == '=') return true;
  return false;
}

bool jit_is_generic(const struct jit *jit, const struct ast_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->type_params.count; i++)
    if (!jit_defines(jit, list_at(&kernel->type_params, struct ast_name, i)->text)) return true;
  return false;
}

static void begin(struct jit *jit, struct compilation *c) {
  compilation_init(c);
  c->options.target = jit->target;
  c->options.optimize = jit->optimize;
  c->options.no_contract = jit->no_contract;
  c->options.debug = jit->debug;
  c->options.schedule = jit->schedule;
  c->diag.error_limit = 20;
}

red_error jit_parse(struct jit *jit, struct compilation *c) {
  begin(jit, c);
  bool ok = true;
  for (size_t i = 0; i < jit->define_count; i++) ok &= options_define(c, jit->defines[i]);
  ok &= compilation_parse_text(c, jit->program.name, jit->program.text, jit->program.length);
  if (jit->schedules.text) ok &= compilation_parse_text(c, jit->schedules.name, jit->schedules.text, jit->schedules.length);
  return ok ? RED_OK : report(c);
}

static void define(struct compilation *c, const char *name, bool is_type, enum type type, int64_t integer) {
  struct define *d = arena_new(&c->arena, struct define);
  *d = (struct define){.name = arena_strdup(&c->arena, name), .is_type = is_type, .type = type, .integer = integer};
  list_push(&c->arena, &c->options.defines, d);
}

static void define_types(struct compilation *c, const struct jit_unit *unit) {
  for (uint32_t i = 0; i < unit->type_count; i++) {
    enum type type;
    if (type_parse(plan_type_name(unit->values[i]), &type)) define(c, unit->types[i], true, type, 0);
  }
}

static void define_sizes(struct compilation *c, const struct plan_kernel *plan, const int64_t *sizes) {
  for (uint32_t i = 0; i < plan->size_count; i++) {
    const struct plan_size *size = &plan->sizes[i];
    bool is_stride = size->inferred.count == 1 && size->inferred.codes[0].op == PLAN_OP_STRIDE;
    if (!size->is_constant && !is_stride) define(c, size->name, false, TYPE_I64, sizes[i]);
  }
}

// Keeps the kernels that are meant, and the schedules of kernels that are not there, so that those are still reported.
static void select_kernels(struct jit *jit, const struct jit_unit *unit, struct ast_file *ast) {
  for (uint32_t k = ast->kernels.count; k-- > 0;) {
    const struct ast_kernel *kernel = list_at(&ast->kernels, struct ast_kernel, k);
    if (unit ? strcmp(kernel->name.text, unit->label) == 0 : !jit_is_generic(jit, kernel)) continue;
    for (uint32_t s = ast->schedules.count; s-- > 0;)
      if (strcmp(list_at(&ast->schedules, struct ast_schedule, s)->kernel.text, kernel->name.text) == 0) list_remove(&ast->schedules, s);
    list_remove(&ast->kernels, k);
  }
}

// Only the kernel of this name, where a unit names one.
static void keep_kernel(struct ir_module *module, const struct jit_unit *unit) {
  for (uint32_t i = module->kernels.count; unit && unit->name && i-- > 0;)
    if (strcmp(list_at(&module->kernels, struct ir_kernel, i)->name, unit->name) != 0) list_remove(&module->kernels, i);
}

// Parses and checks what is meant.
static red_error check(struct jit *jit, const struct jit_unit *unit, const struct plan_kernel *plan, const int64_t *sizes, struct compilation *c) {
  red_error error = jit_parse(jit, c);
  if (error) return error;
  select_kernels(jit, unit, &c->ast);
  if (unit) define_types(c, unit);
  if (sizes) define_sizes(c, plan, sizes);
  if (!compilation_check(c)) return needs_sizes(&c->diag) ? JIT_PARTS : report(c);
  keep_kernel(&c->module, unit);
  return RED_OK;
}

// ---- Compiling

struct build {
  struct jit *jit;
  const struct jit_unit *unit; // NULL: the whole program
  const struct plan_kernel *plan;
  const int64_t *sizes;
  const struct text *key;
};

static red_error compile(const struct build *b, struct compilation *c, struct text *ptx) {
  red_error error = check(b->jit, b->unit, b->plan, b->sizes, c);
  if (error) return error;
  if (compilation_lower(c) && compilation_emit(c, EMIT_PTX, ptx)) return RED_OK;
  return needs_sizes(&c->diag) && !b->sizes ? JIT_PARTS : report(c);
}

static bool has_generic(struct jit *jit, const struct ast_file *ast) {
  for (uint32_t k = 0; k < ast->kernels.count; k++)
    if (jit_is_generic(jit, list_at(&ast->kernels, struct ast_kernel, k))) return true;
  return false;
}

// Whether the whole program is one unit.
static red_error check_whole(struct jit *jit) {
  struct compilation c;
  red_error error = jit_parse(jit, &c);
  if (!error && has_generic(jit, &c.ast)) error = JIT_PARTS;
  compilation_destroy(&c);
  return error;
}

static red_error compile_fresh(const struct build *b, struct built *built) {
  struct compilation c;
  struct text ptx = {0}, log = {0};
  struct diag_style style = {0};
  red_error error = b->unit ? RED_OK : check_whole(b->jit);
  if (error) return error;
  error = compile(b, &c, &ptx);
  if (!error && c.diag.warning_count) diag_print(&c.diag, &style, &log);
  compilation_destroy(&c);
  if (error) {
    text_free(&ptx);
    text_free(&log);
    return error;
  }
  *built = (struct built){ptx.data, log.data, ptx.length};
  return RED_OK;
}

// ---- The disk

// A value is the length of the log in eight bytes, the log and the PTX.
static bool unpack(const char *data, size_t size, struct built *built) {
  uint64_t log;
  if (size < sizeof log) return false;
  memcpy(&log, data, sizeof log);
  data += sizeof log;
  size -= sizeof log;
  if (log > size) return false;
  built->ptx_bytes = size - log;
  built->ptx = malloc(built->ptx_bytes + 1);
  built->log = malloc(log + 1);
  if (!built->ptx || !built->log) {
    free(built->ptx);
    free(built->log);
    *built = (struct built){0};
    return false;
  }
  memcpy(built->log, data, log);
  built->log[log] = 0;
  memcpy(built->ptx, data + log, built->ptx_bytes);
  built->ptx[built->ptx_bytes] = 0;
  return true;
}

static void pack(const struct red_cache_key *key, const struct built *built) {
  struct text value = {0};
  uint64_t log = built->log ? strlen(built->log) : 0;
  text_append(&value, (const char *)&log, sizeof log);
  if (log) text_append(&value, built->log, log);
  text_append(&value, built->ptx, built->ptx_bytes);
  red_cache_put(key, value.data, value.length);
  text_free(&value);
}

static red_error build(void *state, struct built *built) {
  const struct build *b = state;
  const struct red_cache_field fields[] = {{"ptx", 3}, {b->key->data, b->key->length}};
  const struct red_cache_key key = {fields, 2};
  void *data;
  size_t size;
  if (red_cache_get(&key, &data, &size) == 0) {
    bool ok = unpack(data, size, built);
    free(data);
    if (ok) return RED_OK;
  }
  red_error error = compile_fresh(b, built);
  if (!error) pack(&key, built);
  return error;
}

// ---- What programs are made of

static void key_field(struct text *key, const void *data, size_t size) {
  uint64_t length = size;
  text_append(key, (const char *)&length, sizeof length);
  if (size) text_append(key, data, size);
}

red_error jit_whole(struct jit *jit, struct variant **variant) {
  struct build b = {.jit = jit, .key = &jit->key};
  return variant_get(jit->device, jit->key.data, jit->key.length, jit->program.name, build, &b, variant);
}

red_error jit_part(struct jit *jit, const struct jit_unit *unit, const struct plan_kernel *plan, const int64_t *sizes, struct variant **variant) {
  struct text key = {0};
  text_append(&key, jit->key.data, jit->key.length);
  key_field(&key, unit->label, strlen(unit->label));
  key_field(&key, unit->name ? unit->name : "", unit->name ? strlen(unit->name) : 0);
  for (uint32_t i = 0; i < unit->type_count; i++) {
    key_field(&key, unit->types[i], strlen(unit->types[i]));
    key_field(&key, &unit->values[i], sizeof unit->values[i]);
  }
  key_field(&key, sizes, sizes ? plan->size_count * sizeof *sizes : 0);
  struct build b = {jit, unit, plan, sizes, &key};
  red_error error = variant_get(jit->device, key.data, key.length, jit->program.name, build, &b, variant);
  text_free(&key);
  return error;
}

static struct list no_parameters(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)arena, (void)kernel, (void)entry;
  return (struct list){0};
}

static red_error visit(struct compilation *c, struct plan *memory, jit_found *found, void *state) {
  uint32_t first = memory->kernel_count;
  if (!plan_build(memory, &c->module, no_parameters)) return report(c);
  red_error error = RED_OK;
  for (uint32_t i = 0; i < c->module.kernels.count && !error; i++) {
    struct plan_kernel *plan = plan_alloc(memory, sizeof *plan); // plan_build moves its own
    if (!plan) return error_memory();
    *plan = memory->kernels[first + i];
    plan->entry_count = 0;
    error = found(state, list_at(&c->module.kernels, struct ir_kernel, i), plan);
  }
  return error;
}

red_error jit_check(struct jit *jit, const struct jit_unit *unit, struct plan *memory, jit_found *found, void *state) {
  struct compilation c;
  red_error error = check(jit, unit, NULL, NULL, &c);
  if (error == JIT_PARTS) error = report(&c);
  if (!error) error = visit(&c, memory, found, state);
  compilation_destroy(&c);
  return error;
}
