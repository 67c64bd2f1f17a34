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
  c->options.batch_invariant = jit->batch_invariant;
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

// Whether a kernel of the source can be the one of a name in the plan.
static bool may_be(const struct ast_kernel *kernel, const char *name) {
  size_t length = strlen(kernel->name.text);
  return strncmp(kernel->name.text, name, length) == 0 && (!name[length] || name[length] == '_');
}

// Keeps the kernels that are meant, and the schedules of kernels that are not there, so that those are still reported.
static void select_kernels(struct jit *jit, const struct jit_unit *unit, struct ast_file *ast) {
  for (uint32_t k = ast->kernels.count; k-- > 0;) {
    const struct ast_kernel *kernel = list_at(&ast->kernels, struct ast_kernel, k);
    bool is_generic = jit_is_generic(jit, kernel);
    if (unit ? may_be(kernel, unit->name) && (unit->type_count || !is_generic) : !is_generic) continue;
    for (uint32_t s = ast->schedules.count; s-- > 0;)
      if (strcmp(list_at(&ast->schedules, struct ast_schedule, s)->kernel.text, kernel->name.text) == 0) list_remove(&ast->schedules, s);
    list_remove(&ast->kernels, k);
  }
}

// Only the kernel of the unit. A generic one has its types in its name.
static bool keep_kernel(struct ir_module *module, const struct jit_unit *unit) {
  for (uint32_t i = module->kernels.count; i-- > 0;) {
    const struct ir_kernel *kernel = list_at(&module->kernels, struct ir_kernel, i);
    if (strcmp(unit->type_count ? kernel->label : kernel->name, unit->name) != 0) list_remove(&module->kernels, i);
  }
  return module->kernels.count == 1;
}

// Parses and checks what is meant: a unit's kernel, or all that have their types. `is_at_launch`: for launches, which bring sizes.
static red_error check(struct jit *jit, const struct jit_unit *unit, const struct plan_kernel *plan, const int64_t *sizes, bool is_at_launch, struct compilation *c) {
  red_error error = jit_parse(jit, c);
  if (error) return error;
  c->options.is_at_launch = is_at_launch;
  c->options.sms = sizes ? jit->device->facts.sms : 0;
  select_kernels(jit, unit, &c->ast);
  if (unit) define_types(c, unit);
  if (sizes) define_sizes(c, plan, sizes);
  if (!compilation_check(c)) return report(c);
  if (unit && !keep_kernel(&c->module, unit)) return error_set(RED_ERROR_INTERNAL, "the kernel %s is not found again", unit->name);
  return RED_OK;
}

// ---- Builds: from the disk, or fresh and put there

// What is to be built, and the state of an entry after it.
struct build {
  struct jit *jit;
  const struct jit_unit *unit; // NULL: all kernels
  const struct plan_kernel *plan;
  const char *entry; // NULL: all entries
  const int64_t *sizes;
  const struct text *key;
  red_error (*fresh)(struct build *build, struct built *built);
  enum slot_state state;
  bool is_exact; // the entry stands for schedules that are chosen when sizes are known
  bool is_aligned; // is_exact: for launches whose tensors start on 16 bytes
};
// A build that gives nothing to keep, and is no error.
#define NOTHING ((red_error)-1)

// A value is the length of the log in eight bytes, the log and the text.
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
    built->ptx = built->log = NULL;
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

// What went wrong with the disk cache is told once in a process, in the log of what was compiled then.
static void add_cache_warning(struct built *built) {
  const char *warning = red_cache_warning();
  if (!warning) return;
  struct text log = {0};
  if (built->log) text_puts(&log, built->log);
  text_printf(&log, "warning: %s\n", warning);
  free(built->log);
  built->log = log.data;
}

static red_error build(void *state, struct built *built) {
  struct build *b = state;
  const struct red_cache_field fields[] = {{"ptx", 3}, {b->key->data, b->key->length}};
  const struct red_cache_key key = {fields, 2};
  void *data;
  size_t size;
  built->is_checked = b->entry != NULL && !b->is_exact;
  if (red_cache_get(&key, &data, &size) == 0) {
    bool ok = unpack(data, size, built);
    free(data);
    if (ok) return RED_OK;
  }
  red_error error = b->fresh(b, built);
  if (error) return error;
  pack(&key, built);
  add_cache_warning(built);
  return RED_OK;
}

static red_error find_or_build(struct build *b, struct variant **variant) {
  return variant_get(b->jit->device, b->key->data, b->key->length, b->jit->program.name, build, b, variant);
}

static void keep_log(const struct compilation *c, struct built *built) {
  struct text log = {0};
  struct diag_style style = {0};
  if (c->diag.warning_count) diag_print(&c->diag, &style, &log);
  built->log = log.data;
}

// ---- Code

// Entries other than the one of this name and its twin go: each of the two is lowered with the other in sight.
static bool select_pair(struct ir_kernel *kernel, const char *name, bool *is_general) {
  struct list kept = {0};
  for (uint32_t i = 0; i < kernel->entries.count; i++) {
    struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
    if (ir_is_of_pair(kernel, i, name)) list_push(kernel->names.arena, &kept, entry);
    if (strcmp(entry->name, name) == 0) *is_general = entry->is_general;
  }
  kernel->entries = kept;
  return kept.count > 0;
}

// Only the entry of this name, with its later launches; false where the passes found that no launch takes it. Where the pipeline put a plain schedule in place of one
// of the compiler's own, that is the entry.
static bool select_entry(const struct compilation *c, struct ir_kernel *kernel, const char *name, bool is_general) {
  uint32_t kept = 0;
  bool is_it = false; // of the entry, and so of the launches behind it
  for (uint32_t i = 0; i < kernel->entries.count; i++) {
    struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
    if (!entry->launch) is_it = c->options.is_plain ? entry->is_automatic && entry->is_general == is_general : strcmp(entry->name, name) == 0;
    if (is_it) kernel->entries.at[kept++] = entry;
  }
  kernel->entries.count = kept;
  return kept > 0;
}

// Whether a condition holds for tensors that start on 16 bytes.
static bool holds_aligned(const struct ir_expr *e) {
  if (e->op == OP_AND && e->type == TYPE_BOOL) return holds_aligned(e->args[0]) && holds_aligned(e->args[1]);
  const struct ir_expr *rest = e->op == OP_EQ && ir_const_is(e->args[1], 0) ? e->args[0] : NULL;
  if (!rest || rest->op != OP_MOD || rest->args[0]->op != OP_ADDRESS || !ir_is_const(rest->args[1])) return false;
  return rest->args[1]->integer > 0 && 16 % rest->args[1]->integer == 0;
}

// Of the schedules for sizes that are known: the first, and the first behind it that always applies, each with its twin.
static void select_exact(struct ir_kernel *kernel, bool is_aligned) {
  uint32_t kept = 0;
  bool is_kept = false, is_closed = false;
  for (uint32_t i = 0; i < kernel->entries.count; i++) {
    struct ir_entry *entry = kernel->entries.at[i];
    if (!entry->is_general) is_kept = !is_closed && (i == 0 || !entry->when);
    if (is_kept) kernel->entries.at[kept++] = entry;
    is_closed |= is_kept && (!entry->when || (is_aligned && holds_aligned(entry->when)));
  }
  kernel->entries.count = kept;
}

// The first entry alone, where launches of aligned tensors have all that it assumes.
static void drop_twin(struct ir_kernel *kernel) {
  const struct ir_entry *first = list_at(&kernel->entries, struct ir_entry, 0);
  if (kernel->entries.count != 2 || !list_at(&kernel->entries, struct ir_entry, 1)->is_general) return;
  for (uint32_t i = 0; i < first->assumptions.count; i++)
    if (!holds_aligned(list_at(&first->assumptions, struct ir_requirement, i)->condition)) return;
  kernel->entries.count = 1;
}

struct wanted {
  const char *name;
  bool is_general, is_exact;
};

// No pass behind `index`, which decides what a launch can take, looks at another entry. A general one does not stand without the one before it.
static void after_step(struct compilation *c, const char *step, void *state) {
  const struct wanted *wanted = state;
  if (strcmp(step, "index") != 0 || c->diag.error_count) return;
  if (wanted->is_exact)
    drop_twin(list_at(&c->module.kernels, struct ir_kernel, 0));
  else if (!wanted->is_general)
    select_entry(c, list_at(&c->module.kernels, struct ir_kernel, 0), wanted->name, wanted->is_general);
}

static red_error make_code(struct build *b, struct compilation *c, bool is_checked, struct text *ptx) {
  struct wanted wanted = {.name = b->entry, .is_exact = b->is_exact};
  if (b->is_exact && !b->sizes) {
    begin(b->jit, c);
    b->state = SLOT_EXACT;
    return NOTHING;
  }
  if (!is_checked) {
    red_error error = check(b->jit, b->unit, b->plan, b->sizes, b->entry != NULL, c);
    if (error) return error;
  }
  if (b->is_exact) select_exact(list_at(&c->module.kernels, struct ir_kernel, 0), b->is_aligned);
  else if (b->entry && !select_pair(list_at(&c->module.kernels, struct ir_kernel, 0), b->entry, &wanted.is_general))
    return error_set(RED_ERROR_INTERNAL, "the entry %s is not found again", b->entry);
  if (b->entry && (!b->is_exact || b->is_aligned)) {
    c->after_step = after_step;
    c->after_step_state = &wanted;
  }
  if (!compilation_lower(c)) {
    if (!needs_sizes(&c->diag) || b->sizes) return report(c);
    b->state = SLOT_EXACT;
    return NOTHING;
  }
  if (b->unit && !keep_kernel(&c->module, b->unit)) return error_set(RED_ERROR_INTERNAL, "the kernel %s is not found again", b->unit->name);
  if (b->entry && !b->is_exact && !select_entry(c, list_at(&c->module.kernels, struct ir_kernel, 0), b->entry, wanted.is_general)) {
    b->state = SLOT_ABSENT;
    return NOTHING;
  }
  return compilation_emit(c, EMIT_PTX, ptx) ? RED_OK : report(c);
}

// The program as red_compile_text checked it, with the kernel of the unit alone; NULL: it is to be checked again.
static struct compilation *take_checked(struct build *b) {
  struct jit *jit = b->jit;
  if (!b->entry || b->is_exact || b->sizes || b->unit->type_count) return NULL;
  pthread_mutex_lock(&jit->lock);
  struct compilation *c = jit->checked;
  jit->checked = NULL;
  pthread_mutex_unlock(&jit->lock);
  if (!c) return NULL;
  select_kernels(jit, b->unit, &c->ast);
  if (keep_kernel(&c->module, b->unit)) return c;
  compilation_destroy(c);
  free(c);
  return NULL;
}

void jit_forget(struct jit *jit) {
  compilation_destroy(jit->checked);
  free(jit->checked);
  jit->checked = NULL;
}

static red_error fresh_code(struct build *b, struct built *built) {
  struct compilation own, *checked = take_checked(b), *c = checked ? checked : &own;
  struct text ptx = {0};
  red_error error = make_code(b, c, checked != NULL, &ptx);
  if (!error) {
    built->ptx = ptx.data;
    built->ptx_bytes = ptx.length;
    keep_log(c, built);
  } else {
    text_free(&ptx);
  }
  compilation_destroy(c);
  free(checked);
  return error;
}

red_error jit_entry(struct jit *jit, const struct jit_unit *unit, const struct plan_kernel *plan, uint32_t entry, const struct fixed *fixed, enum slot_state *state,
                    struct variant **variant) {
  struct text key = {0};
  const int64_t *sizes = fixed ? fixed->sizes : NULL;
  bool is_exact = plan_is_exact(&plan->entries[entry]), is_aligned = is_exact && fixed && fixed->is_aligned;
  struct build b = {jit, unit, plan, plan->entries[entry].name, sizes, &key, fresh_code, SLOT_COMPILED, is_exact, is_aligned};
  text_append(&key, jit->key.data, jit->key.length);
  jit_key_string(&key, unit->name);
  jit_key_string(&key, b.entry);
  for (uint32_t i = 0; i < unit->type_count; i++) {
    jit_key_string(&key, unit->types[i]);
    jit_key_field(&key, &unit->values[i], sizeof unit->values[i]);
  }
  jit_key_field(&key, sizes, sizes ? plan->size_count * sizeof *sizes : 0);
  if (sizes) jit_key_field(&key, &jit->device->facts.sms, sizeof jit->device->facts.sms);
  if (sizes) jit_key_field(&key, &is_aligned, sizeof is_aligned);
  red_error error = find_or_build(&b, variant);
  text_free(&key);
  *state = b.state;
  return error == NOTHING ? RED_OK : error;
}

red_error jit_whole(struct jit *jit, struct variant **variant) {
  struct text key = {0};
  struct build b = {.jit = jit, .key = &key, .fresh = fresh_code, .state = SLOT_COMPILED};
  text_append(&key, jit->key.data, jit->key.length);
  jit_key_string(&key, "all");
  red_error error = find_or_build(&b, variant);
  text_free(&key);
  return error == NOTHING ? error_set(RED_ERROR_COMPILE, "%s: the code depends on sizes of a launch", jit->program.name) : error;
}

// ---- Plans without code

static struct list no_parameters(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)arena, (void)kernel, (void)entry;
  return (struct list){0};
}

static bool is_of_user(const struct compilation *c, const struct ir_entry *entry) {
  return !entry->is_automatic && !diag_is_own(&c->diag, entry->range);
}

static bool has_user_schedules(const struct compilation *c) {
  for (uint32_t k = 0; k < c->module.kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&c->module.kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count; i++)
      if (is_of_user(c, list_at(&kernel->entries, struct ir_entry, i))) return true;
  }
  return false;
}

// Reports what is wrong with schedules that users wrote, but for sizes that only launches know: lowers them, and what is left of the module is of no use.
static red_error try_schedules(struct compilation *c) {
  if (!has_user_schedules(c)) return RED_OK;
  for (uint32_t k = 0; k < c->module.kernels.count; k++) {
    struct ir_kernel *kernel = list_at(&c->module.kernels, struct ir_kernel, k);
    for (uint32_t i = kernel->entries.count; i-- > 0;)
      if (!is_of_user(c, list_at(&kernel->entries, struct ir_entry, i))) list_remove(&kernel->entries, i);
  }
  return compilation_lower(c) || needs_sizes(&c->diag) ? RED_OK : report(c);
}

static red_error print_plan(struct compilation *c, struct built *built) {
  struct plan plan;
  plan_init(&plan);
  red_error error = plan_build(&plan, &c->module, no_parameters) ? RED_OK : report(c);
  built->ptx = error ? NULL : plan_print(&plan);
  if (!error && !built->ptx) error = error_memory();
  if (!error) built->ptx_bytes = strlen(built->ptx);
  plan_destroy(&plan);
  return error;
}

static red_error fresh_plan(struct build *b, struct built *built) {
  struct compilation *c = malloc(sizeof *c);
  if (!c) return error_memory();
  red_error error = check(b->jit, NULL, NULL, NULL, true, c);
  if (!error) error = print_plan(c, built);
  bool is_kept = !error && !has_user_schedules(c);
  if (!error) error = try_schedules(c);
  if (!error) {
    keep_log(c, built);
  } else {
    free(built->ptx);
    *built = (struct built){0};
  }
  if (is_kept) {
    jit_forget(b->jit);
    b->jit->checked = c; // the program is not made yet, and its launches wait for it
  } else {
    compilation_destroy(c);
    free(c);
  }
  return error;
}

red_error jit_interface(struct jit *jit, uint32_t *generic, struct variant **variant) {
  struct build b = {.jit = jit, .key = &jit->key, .fresh = fresh_plan};
  struct compilation c;
  *generic = 0;
  *variant = NULL;
  if (strchr(jit->program.text, '<')) { // a kernel may have type parameters
    red_error error = jit_parse(jit, &c);
    uint32_t count = c.ast.kernels.count;
    for (uint32_t k = 0; k < count && !error; k++) *generic += jit_is_generic(jit, list_at(&c.ast.kernels, struct ast_kernel, k));
    compilation_destroy(&c);
    if (error || (count && *generic == count)) return error;
  }
  return find_or_build(&b, variant);
}

red_error jit_check(struct jit *jit, const struct jit_unit *unit, struct plan *memory, const struct plan_kernel **plan) {
  struct compilation c;
  red_error error = check(jit, unit, NULL, NULL, true, &c);
  struct plan_kernel *copy = plan_alloc(memory, sizeof *copy); // plan_build moves its own
  if (!error && !copy) error = error_memory();
  if (!error && !plan_build(memory, &c.module, no_parameters)) error = report(&c);
  if (!error) {
    *copy = memory->kernels[memory->kernel_count - 1];
    *plan = copy;
    error = try_schedules(&c);
  }
  compilation_destroy(&c);
  return error;
}
