// The IR as text: ir_print, ir_print_expr. docs/ir.md describes the form; read.c reads it back, exactly:
// printing what was read from a dump gives the same bytes.
//
// An operation's type follows from its operands (ir_inferred_type); where a node's type is
// another one, it is spelled behind the operation, so that nothing is guessed even for IR that does not
// verify.
#include "compiler/print.h"

#include <inttypes.h>
#include <string.h>

// ---- Layout

static bool same_range(struct range a, struct range b) {
  if (!a.line || !b.line) return !a.line && !b.line;
  return a.line == b.line && a.column == b.column && a.end_line == b.end_line &&
         a.end_column == b.end_column && a.file == b.file;
}

static void begin_line(struct printer *p) {
  for (uint32_t i = 0; i < p->indent; i++) text_puts(p->out, "  ");
}

static void open_brace(struct printer *p) {
  text_puts(p->out, " {\n");
  p->indent++;
}

static void close_brace(struct printer *p) {
  p->indent--;
  begin_line(p);
  text_puts(p->out, "}\n");
}

// ---- Declarations

// `name "label": type nowrap @range`, nowrap where it was an index; the range where it is not that of the statement around it.
static void print_var(struct printer *p, const struct ir_var *var, struct range around) {
  print_name(p, var->name);
  print_label(p, var->name, var->label);
  text_printf(p->out, ": %s%s", type_name(var->type), var->was_index ? " nowrap" : "");
  if (!same_range(var->range, around)) print_range(p, var->range);
}

static void print_vars(struct printer *p, const struct list *vars, struct range around) {
  text_puts(p->out, "(");
  for (uint32_t i = 0; i < vars->count; i++) {
    if (i) text_puts(p->out, ", ");
    print_var(p, list_at(vars, struct ir_var, i), around);
  }
  text_puts(p->out, ")");
}

static void print_mem(struct printer *p, const char *keyword, const struct ir_mem *mem) {
  begin_line(p);
  text_printf(p->out, "%s ", keyword);
  print_name(p, mem->name);
  print_label(p, mem->name, mem->label);
  text_printf(p->out, ": %s", type_name(mem->type));
  print_exprs(p, &mem->dims, "[]");
  text_puts(p->out, " strides ");
  print_exprs(p, &mem->strides, "[]");
  text_printf(p->out, " align %u", mem->alignment);
  if (mem->is_output) text_puts(p->out, " out");
  if (mem->is_read) text_puts(p->out, " read");
  if (mem->is_strided) text_puts(p->out, " strided");
  if (mem->parameter) text_printf(p->out, " parameter %u", mem->parameter);
  if (mem->workspace) {
    text_puts(p->out, " at ");
    print_expr(p, mem->workspace);
  }
  if (mem->is_polled) text_puts(p->out, " polled");
  if (mem->is_dynamic) text_puts(p->out, " dynamic");
  if (mem->unit > 1) text_printf(p->out, " unit %u", mem->unit);
  if (mem->swizzle_bits)
    text_printf(p->out, " swizzle %u, %u, %u", mem->swizzle_bits, mem->swizzle_base, mem->swizzle_shift);
  print_range(p, mem->range);
  text_puts(p->out, "\n");
}

// ---- Statements

static void print_unroll(struct printer *p, uint32_t unroll) {
  if (unroll == 1)
    text_puts(p->out, " unroll never");
  else if (unroll == UINT32_MAX)
    text_puts(p->out, " unroll whole");
  else if (unroll == UNROLL_VECTOR)
    text_puts(p->out, " unroll vector");
  else if (unroll)
    text_printf(p->out, " unroll %u", unroll);
}

static void print_block(struct printer *p, const struct list *block);

static void print_store(struct printer *p, const struct ir_mem *mem, const struct list *indices, bool is_flat,
                        const struct ir_expr *value) {
  text_puts(p->out, is_flat ? "store_flat " : "store ");
  print_name(p, mem ? mem->name : NULL);
  print_exprs(p, indices, "[]");
  text_puts(p->out, " = ");
  print_expr(p, value);
}

static void print_definition(struct printer *p, const char *keyword, const struct ir_stmt *s) {
  text_printf(p->out, "%s ", keyword);
  print_var(p, s->var, s->range);
  text_puts(p->out, " = ");
  print_expr(p, s->value);
}

static void print_allreduce(struct printer *p, const struct ir_stmt *s) {
  text_puts(p->out, "allreduce ");
  print_vars(p, &s->results, s->range);
  text_puts(p->out, " = ");
  print_name(p, s->reducer ? s->reducer->name : NULL);
  print_exprs(p, &s->inputs, "()");
  text_puts(p->out, " over");
  if (!(s->thread_axes & 7)) text_puts(p->out, " none");
  for (uint32_t i = 0; i < 3; i++)
    if (s->thread_axes >> i & 1) text_printf(p->out, " %c", "xyz"[i]);
  if (s->result_in_all) text_puts(p->out, " all");
  text_printf(p->out, " form %s", ir_form_names[s->form]);
}

static void print_for(struct printer *p, const struct ir_stmt *s) {
  text_puts(p->out, "for ");
  print_var(p, s->var, s->range);
  text_puts(p->out, " in ");
  print_expr(p, s->lo);
  text_puts(p->out, " .. ");
  print_expr(p, s->hi);
  print_unroll(p, s->unroll);
  print_range(p, s->range);
  open_brace(p);
  print_block(p, &s->body);
  close_brace(p);
}

static void print_if(struct printer *p, const struct ir_stmt *s) {
  text_puts(p->out, "if ");
  print_expr(p, s->value);
  print_range(p, s->range);
  open_brace(p);
  print_block(p, &s->body);
  if (s->otherwise.count) {
    p->indent--;
    begin_line(p);
    text_puts(p->out, "} else");
    open_brace(p);
    print_block(p, &s->otherwise);
  }
  close_brace(p);
}

static void print_wide(struct printer *p, const struct ir_stmt *s) {
  bool loads = s->kind == IR_LOAD_WIDE;
  text_puts(p->out, loads ? "load_wide" : "store_wide");
  text_puts(p->out, s->is_flat ? "_flat " : " ");
  if (loads) {
    print_vars(p, &s->results, s->range);
    text_puts(p->out, " = ");
  }
  print_name(p, s->mem ? s->mem->name : NULL);
  print_exprs(p, &s->indices, "[]");
  if (loads) return;
  text_puts(p->out, " = ");
  print_exprs(p, &s->inputs, "()");
}

static void print_atomic(struct printer *p, const struct ir_stmt *s) {
  text_puts(p->out, s->is_flat ? "atomic_flat " : "atomic ");
  if (s->results.count) {
    print_vars(p, &s->results, s->range);
    text_puts(p->out, " = ");
  }
  text_printf(p->out, "%s ", ir_atomic_names[s->atomic]);
  print_name(p, s->mem ? s->mem->name : NULL);
  print_exprs(p, &s->indices, "[]");
  text_puts(p->out, " by ");
  print_expr(p, s->value);
}

// `copy_async 4 S[i] = load(A, j)`
static void print_copy(struct printer *p, const struct ir_stmt *s) {
  text_printf(p->out, s->is_flat ? "copy_async_flat %u " : "copy_async %u ", s->count);
  print_name(p, s->mem ? s->mem->name : NULL);
  print_exprs(p, &s->indices, "[]");
  text_puts(p->out, " = ");
  print_expr(p, s->value);
}

static void print_stmt(struct printer *p, const struct ir_stmt *s) {
  begin_line(p);
  switch (s->kind) {
  case IR_LET: print_definition(p, "let", s); break;
  case IR_VAR: print_definition(p, "var", s); break;
  case IR_SET:
    text_puts(p->out, "set ");
    print_name(p, s->var->name);
    text_puts(p->out, " = ");
    print_expr(p, s->value);
    break;
  case IR_STORE: print_store(p, s->mem, &s->indices, s->is_flat, s->value); break;
  case IR_FOR: print_for(p, s); return;
  case IR_IF: print_if(p, s); return;
  case IR_ALLREDUCE: print_allreduce(p, s); break;
  case IR_BARRIER: text_puts(p->out, "barrier"); break;
  case IR_SYNCWARP:
    text_puts(p->out, "syncwarp ");
    print_expr(p, s->value);
    break;
  case IR_LOAD_WIDE:
  case IR_STORE_WIDE: print_wide(p, s); break;
  case IR_ATOMIC: print_atomic(p, s); break;
  case IR_FENCE: text_puts(p->out, "fence"); break;
  case IR_GRID_WAIT: text_puts(p->out, "grid_wait"); break;
  case IR_GRID_READY: text_puts(p->out, "grid_ready"); break;
  case IR_COPY: print_copy(p, s); break;
  case IR_COPY_COMMIT: text_puts(p->out, "copy_commit"); break;
  case IR_COPY_WAIT: text_printf(p->out, "copy_wait %u", s->count); break;
  }
  print_range(p, s->range);
  text_puts(p->out, "\n");
}

static void print_block(struct printer *p, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) print_stmt(p, list_at(block, struct ir_stmt, i));
}

// ---- Reducers

static void print_function(struct printer *p, const char *keyword, const struct ir_function *function) {
  begin_line(p);
  text_printf(p->out, "%s ", keyword);
  print_vars(p, &function->params, (struct range){0});
  open_brace(p);
  print_block(p, &function->lets);
  begin_line(p);
  text_puts(p->out, "result ");
  print_exprs(p, &function->results, "()");
  text_puts(p->out, "\n");
  close_brace(p);
}

static void print_reducer(struct printer *p, const struct ir_reducer *reducer) {
  text_puts(p->out, "\nreducer ");
  print_name(p, reducer->name);
  if (reducer->is_ordered) text_puts(p->out, " ordered");
  if (reducer->is_commutative_bitwise) text_puts(p->out, " commutative");
  print_range(p, reducer->range);
  open_brace(p);
  begin_line(p);
  text_puts(p->out, "identity ");
  print_exprs(p, &reducer->identity, "()");
  text_puts(p->out, "\n");
  print_function(p, "combine", &reducer->combine);
  if (reducer->update.params.count) print_function(p, "update", &reducer->update);
  close_brace(p);
}

// ---- Entries

static void print_condition(struct printer *p, const char *keyword,
                            const struct ir_requirement *requirement) {
  begin_line(p);
  text_printf(p->out, "%s ", keyword);
  print_expr(p, requirement->condition);
  text_puts(p->out, " ");
  print_quoted(p, requirement->message ? requirement->message : "", '"');
  print_range(p, requirement->range);
  text_puts(p->out, "\n");
}

static void print_names(struct printer *p, const char *keyword, const struct list *names) {
  if (!names->count) return;
  text_printf(p->out, " %s (", keyword);
  for (uint32_t i = 0; i < names->count; i++) {
    if (i) text_puts(p->out, ", ");
    print_name(p, list_at(names, const char, i));
  }
  text_puts(p->out, ")");
}

// Whether the stages are one empty name for each axis: what the reader takes for a list that is not there.
static bool names_no_stage(const struct ir_directive *directive) {
  for (uint32_t i = 0; i < directive->stages.count; i++)
    if (*list_at(&directive->stages, const char, i)) return false;
  return directive->stages.count == directive->axes.count;
}

static void print_directive(struct printer *p, const struct ir_directive *directive) {
  begin_line(p);
  text_printf(p->out, "directive %s", ir_directive_names[directive->kind]);
  if (!names_no_stage(directive)) print_names(p, "stages", &directive->stages);
  print_names(p, "axes", &directive->axes);
  if (directive->axis_places.count) {
    text_puts(p->out, " places (");
    for (uint32_t i = 0; i < directive->axis_places.count; i++) {
      const struct range *place = list_at(&directive->axis_places, struct range, i);
      if (i) text_puts(p->out, ",");
      if (!place->line) text_puts(p->out, " none");
      print_range(p, *place);
    }
    text_puts(p->out, " )");
  }
  print_names(p, "names", &directive->names);
  if (directive->factor) {
    text_puts(p->out, " factor ");
    p->in_directive = true;
    print_expr(p, directive->factor);
    p->in_directive = false;
  }
  if (directive->bind != BIND_SERIAL) text_printf(p->out, " bind %s", ir_bind_names[directive->bind]);
  if (directive->form != FORM_AUTO) text_printf(p->out, " form %s", ir_form_names[directive->form]);
  if (directive->combine != COMBINE_AUTO) text_printf(p->out, " combine %s", ir_combine_names[directive->combine]);
  if (directive->hint != CACHE_NORMAL) text_printf(p->out, " hint %s", ir_hint_names[directive->hint]);
  for (uint32_t i = 0; i < directive->numbers.count; i++)
    text_printf(p->out, "%s%" PRIuPTR "%s", i ? ", " : " numbers (", (uintptr_t)directive->numbers.at[i],
                i + 1 == directive->numbers.count ? ")" : "");
  print_range(p, directive->range);
  text_puts(p->out, "\n");
}

static void print_axis(struct printer *p, const struct ir_axis *axis) {
  begin_line(p);
  text_puts(p->out, "axis ");
  print_var(p, axis->var, axis->range);
  text_puts(p->out, " extent ");
  print_expr(p, axis->extent);
  if (axis->bind != BIND_SERIAL) text_printf(p->out, " bind %s", ir_bind_names[axis->bind]);
  print_unroll(p, axis->unroll);
  if (axis->is_guarded) text_puts(p->out, " guarded");
  print_range(p, axis->range);
  if (axis->bound_at.line) {
    text_puts(p->out, " bound");
    print_range(p, axis->bound_at);
  }
  text_puts(p->out, "\n");
}

static void print_stage_list(struct printer *p, const char *keyword, const struct list *exprs) {
  if (!exprs->count) return;
  begin_line(p);
  text_printf(p->out, "%s ", keyword);
  print_exprs(p, exprs, "()");
  text_puts(p->out, "\n");
}

static void print_reduce(struct printer *p, const struct ir_stage *stage) {
  begin_line(p);
  text_puts(p->out, "reducer ");
  print_name(p, stage->reducer ? stage->reducer->name : NULL);
  text_puts(p->out, "\n");
  print_stage_list(p, "operands", &stage->operands);
  print_stage_list(p, "init", &stage->init);
  if (stage->form != FORM_AUTO) {
    begin_line(p);
    text_printf(p->out, "form %s\n", ir_form_names[stage->form]);
  }
  if (stage->combine != COMBINE_AUTO) {
    begin_line(p);
    text_printf(p->out, "combine %s\n", ir_combine_names[stage->combine]);
  }
  if (stage->combine_flight) {
    begin_line(p);
    text_printf(p->out, "combine_flight %u\n", stage->combine_flight);
  }
  begin_line(p);
  text_puts(p->out, "results ");
  print_vars(p, &stage->results, stage->range);
  text_puts(p->out, "\n");
}

// `arrive counters over x y`
static void print_arrive(struct printer *p, const struct ir_stage *stage) {
  begin_line(p);
  text_puts(p->out, "arrive ");
  if (stage->mem) print_name(p, stage->mem->name);
  else text_puts(p->out, "in order");
  text_puts(p->out, " over");
  for (uint32_t i = 0; i < 3; i++)
    if (stage->block_axes >> i & 1) text_printf(p->out, " %c", "xyz"[i]);
  text_puts(p->out, "\n");
}

static void print_stage(struct printer *p, const struct ir_stage *stage) {
  begin_line(p);
  text_printf(p->out, "stage %s ", stage->kind == STAGE_REDUCE ? "reduce" : stage->kind == STAGE_STORE ? "store" : "arrive");
  print_quoted(p, stage->label ? stage->label : "", '"');
  print_range(p, stage->range);
  open_brace(p);
  if (stage->axes.count) {
    begin_line(p);
    text_puts(p->out, "axes (");
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      const struct ir_stage_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i);
      if (i) text_puts(p->out, ", ");
      print_name(p, axis->axis->var->name);
      text_puts(p->out, axis->is_reduction ? " reduction" : " parallel");
    }
    text_puts(p->out, ")\n");
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    const struct ir_stmt *s = list_at(&stage->derived, struct ir_stmt, i);
    begin_line(p);
    print_definition(p, "derive", s);
    print_range(p, s->range);
    text_puts(p->out, "\n");
  }
  print_stage_list(p, "guards", &stage->guards);
  print_block(p, &stage->lets);
  if (stage->kind == STAGE_REDUCE) {
    print_reduce(p, stage);
  } else if (stage->kind == STAGE_ARRIVE) {
    print_arrive(p, stage);
  } else {
    begin_line(p);
    if (stage->is_atomic) {
      text_printf(p->out, "atomic %s ", ir_atomic_names[stage->atomic]);
      print_name(p, stage->mem ? stage->mem->name : NULL);
      print_exprs(p, &stage->indices, "[]");
      text_puts(p->out, " by ");
      print_expr(p, stage->value);
    } else {
      if (stage->depth > 1) text_printf(p->out, "depth %u ", stage->depth);
      if (stage->is_async) text_puts(p->out, "async ");
      print_store(p, stage->mem, &stage->indices, false, stage->value);
    }
    text_puts(p->out, "\n");
  }
  close_brace(p);
}

static void print_launch(struct printer *p, const struct ir_entry *entry) {
  if (entry->block[0] || entry->block[1] || entry->block[2]) {
    begin_line(p);
    text_printf(p->out, "block %u %u %u\n", entry->block[0], entry->block[1], entry->block[2]);
  }
  for (uint32_t i = 0; i < 3; i++) {
    if (!entry->grid[i]) continue;
    begin_line(p);
    text_printf(p->out, "grid %c ", "xyz"[i]);
    print_expr(p, entry->grid[i]);
    text_puts(p->out, "\n");
  }
}

static void print_memory(struct printer *p, const struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->memory.count; i++) {
    const struct ir_mem *mem = list_at(&entry->memory, struct ir_mem, i);
    print_mem(p, mem->space == SPACE_SHARED ? "shared" : mem->space == SPACE_LOCAL ? "local" : "global", mem);
  }
}

static void print_entry(struct printer *p, const struct ir_entry *entry) {
  text_puts(p->out, "\n");
  begin_line(p);
  text_puts(p->out, "entry ");
  print_name(p, entry->name);
  text_printf(p->out, " %s index %s", entry->level == LEVEL_STAGES ? "stages" : "program",
              type_name(entry->index_type));
  if (entry->schedule && *entry->schedule) {
    text_puts(p->out, " schedule ");
    print_quoted(p, entry->schedule, '"');
  }
  if (entry->is_automatic) text_puts(p->out, " automatic");
  if (entry->is_general) text_puts(p->out, " general");
  if (entry->launch) text_printf(p->out, " launch %u", entry->launch);
  print_range(p, entry->range);
  open_brace(p);
  if (entry->when) {
    begin_line(p);
    text_puts(p->out, "when ");
    print_expr(p, entry->when);
    text_puts(p->out, "\n");
  }
  for (uint32_t i = 0; i < entry->assumptions.count; i++)
    print_condition(p, "assume", list_at(&entry->assumptions, struct ir_requirement, i));
  for (uint32_t i = 0; i < entry->hints.count; i++) {
    const struct ir_hint *hint = list_at(&entry->hints, struct ir_hint, i);
    begin_line(p);
    text_puts(p->out, "cache ");
    print_name(p, hint->mem->name);
    text_printf(p->out, " %s\n", ir_hint_names[hint->hint]);
  }
  if (entry->blocks) {
    begin_line(p);
    text_printf(p->out, "blocks %u\n", entry->blocks);
  }
  for (uint32_t i = 0; i < entry->directives.count; i++)
    print_directive(p, list_at(&entry->directives, struct ir_directive, i));
  for (uint32_t i = 0; i < entry->axes.count; i++) print_axis(p, list_at(&entry->axes, struct ir_axis, i));
  if (entry->level == LEVEL_STAGES) print_memory(p, entry);
  for (uint32_t i = 0; i < entry->stages.count; i++)
    print_stage(p, list_at(&entry->stages, struct ir_stage, i));
  print_launch(p, entry);
  if (entry->level == LEVEL_PROGRAM) print_memory(p, entry);
  if (entry->body.count) {
    begin_line(p);
    text_puts(p->out, "body");
    open_brace(p);
    print_block(p, &entry->body);
    close_brace(p);
  }
  close_brace(p);
}

// ---- Kernels

static void print_sizes(struct printer *p, const struct list *sizes) {
  for (uint32_t i = 0; i < sizes->count; i++) {
    const struct ir_var *size = list_at(sizes, struct ir_var, i);
    begin_line(p);
    text_puts(p->out, "size ");
    print_name(p, size->name);
    print_label(p, size->name, size->label);
    if (size->type != TYPE_I64) text_printf(p->out, ": %s", type_name(size->type));
    if (size->constant) {
      text_puts(p->out, " = ");
      print_expr(p, size->constant);
    }
    print_range(p, size->range);
    text_puts(p->out, "\n");
  }
}

static void print_kernel(struct printer *p, const struct ir_kernel *kernel) {
  text_puts(p->out, "\nkernel ");
  print_name(p, kernel->name);
  print_label(p, kernel->name, kernel->label);
  print_range(p, kernel->range);
  open_brace(p);
  print_sizes(p, &kernel->sizes);
  for (uint32_t i = 0; i < kernel->scalars.count; i++) {
    begin_line(p);
    text_puts(p->out, "scalar ");
    print_var(p, list_at(&kernel->scalars, struct ir_var, i), (struct range){0});
    text_puts(p->out, "\n");
  }
  for (uint32_t i = 0; i < kernel->tensors.count; i++)
    print_mem(p, "tensor", list_at(&kernel->tensors, struct ir_mem, i));
  for (uint32_t i = 0; i < kernel->sizes.count; i++) {
    const struct ir_var *size = list_at(&kernel->sizes, struct ir_var, i);
    if (!size->inferred) continue;
    begin_line(p);
    text_puts(p->out, "infer ");
    print_name(p, size->name);
    text_puts(p->out, " = ");
    print_expr(p, size->inferred);
    text_puts(p->out, "\n");
  }
  for (uint32_t i = 0; i < kernel->requirements.count; i++)
    print_condition(p, "require", list_at(&kernel->requirements, struct ir_requirement, i));
  for (uint32_t i = 0; i < kernel->entries.count; i++)
    print_entry(p, list_at(&kernel->entries, struct ir_entry, i));
  close_brace(p);
}

void ir_print(const struct ir_module *module, struct text *out) {
  struct text body = {0};
  struct printer p = {.out = &body, .module = module};
  for (uint32_t i = 0; i < module->reducers.count; i++)
    print_reducer(&p, list_at(&module->reducers, struct ir_reducer, i));
  for (uint32_t i = 0; i < module->kernels.count; i++)
    print_kernel(&p, list_at(&module->kernels, struct ir_kernel, i));
  p.out = out;
  text_printf(out, "red-ir %d\n", IR_TEXT_VERSION);
  for (uint32_t i = 0; i < p.files.count; i++) {
    uint32_t file = (uint32_t)(uintptr_t)p.files.at[i];
    const struct list *sources = &module->diag->sources;
    text_printf(out, "source %u ", i);
    print_quoted(&p, file < sources->count ? list_at(sources, struct source, file)->name : "<unknown>", '"');
    text_puts(out, "\n");
  }
  text_append(out, body.data ? body.data : "", body.length);
  text_free(&body);
}
