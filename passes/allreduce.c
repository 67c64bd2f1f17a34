// allreduce: reductions over threads become shuffles and shared memory.
//
//   allreduce sum = sum_f32(x) over x                    // a block of 11 threads
//   ->
//   let other = shfl_down(0x7ff, x, 8)
//   let part = select(lt(add(thread.x, 8), 11), add(x, other), x)
//   let other_2 = shfl_down(0x7ff, part, 4)
//   let part_2 = add(part, other_2)
//   ...
//   let sum = part_4
//
// Requires LEVEL_PROGRAM, every thread at the statement (pass `nest` sees to it). Breaks nothing that prove does not check: every mask
// names the lanes that exist, a warp of which the block has a part by a select on the warp's number; what a lane outside them gives
// is dropped, or stays in lanes that are not asked again.
// The forms are those of allreduce_forms.def, chosen by the costs of allreduce_cost.def. Values are combined in the order of the threads
// where a reducer is ordered, and every thread gets the same bits. Reductions that pass a block barrier and do not depend on each other share
// it. The method is that of TVM's LowerThreadAllreduce; masks are computed, never asked of the hardware.
#include "passes/allreduce_emit.h"
#include "passes/stage.h"

// --- What was chosen, for a person ------------------------------------------------------------------------------------

static void explain_cost(struct text *out, const struct allreduce_form_cost *cost) {
  text_printf(out, "%u cycles: %u step%s", cost->cycles, cost->steps, cost->steps == 1 ? "" : "s");
  if (cost->barriers) text_printf(out, ", %u barrier%s", cost->barriers, cost->barriers == 1 ? "" : "s");
  if (cost->warp_barriers) text_printf(out, ", %u warp barrier%s", cost->warp_barriers, cost->warp_barriers == 1 ? "" : "s");
  if (cost->shared_bytes) text_printf(out, ", %u shared bytes", cost->shared_bytes);
  if (cost->conflicts) text_printf(out, ", %u bank conflict%s an access", cost->conflicts, cost->conflicts == 1 ? "" : "s");
}

// What a wider block would have made possible.
static void explain_wider(const struct emitter *e, int how) {
  const uint32_t *block = e->entry->block;
  struct allreduce_request narrow = {.block = {block[0], block[1], block[2]}, .thread_axes = e->source->thread_axes, .reducer = e->source->reducer,
                                     .tuples = e->source->inputs.count / e->source->reducer->identity.count,
                                     .result_in_all = e->source->result_in_all, .sm = e->context->options->target->sm};
  struct allreduce_request wide;
  struct allreduce_choice choice;
  if (!allreduce_wider(&narrow, how, &wide, &choice)) return;
  text_printf(e->context->explain, "  not       %s in %u x %u x %u threads: ", allreduce_title(choice.kind), wide.block[0], wide.block[1], wide.block[2]);
  explain_cost(e->context->explain, &choice.forms[choice.kind]);
  text_printf(e->context->explain, "; a multiprocessor holds %u such blocks, %u as it is\n", allreduce_blocks_held(choice.shape.threads),
              allreduce_blocks_held(e->choice.shape.threads));
}

static void explain(const struct emitter *e) {
  struct text *out = e->context->explain;
  if (!out || e->entry->is_general) return; // the general entry does the same
  const struct allreduce_choice *c = &e->choice;
  text_printf(out, "%s:%u: ", e->entry->name, e->source->range.line);
  for (uint32_t i = 0; i < e->part_count; i++) text_printf(out, "%s%s", i ? " and " : "", e->parts[i].reducer->name);
  text_puts(out, " over");
  for (uint32_t d = 0; d < 3; d++)
    if (e->source->thread_axes & (1u << d)) text_printf(out, " thread.%c", (char)('x' + d));
  text_printf(out, "\n  form      %s\n  cost      ", allreduce_title(c->kind));
  explain_cost(out, &c->forms[c->kind]);
  text_puts(out, "\n");
  for (int kind = 0; kind < ALLREDUCE_KINDS && c->kind != ALLREDUCE_COPY; kind++) {
    const struct allreduce_form_cost *form = &c->forms[kind];
    if (kind == ALLREDUCE_COPY || kind == (int)c->kind) continue;
    text_printf(out, "  not       %s: ", allreduce_title((enum allreduce_kind)kind));
    if (form->refused) text_puts(out, form->refused);
    else explain_cost(out, form);
    text_puts(out, form->refused || form->cycles >= c->forms[c->kind].cycles ? "\n" : "; the schedule asks for another\n");
  }
  for (int how = 0; how < ALLREDUCE_WIDENINGS && c->kind != ALLREDUCE_COPY && !e->is_segmented; how++) explain_wider(e, how);
  text_printf(out, "  block     %u x %u x %u threads\n", e->entry->block[0], e->entry->block[1], e->entry->block[2]);
  text_printf(out, "  group     %u threads, %u group%s a block, stride %u\n", c->shape.extent, c->shape.groups, c->shape.groups == 1 ? "" : "s", c->shape.stride);
  if (c->kind != ALLREDUCE_TREE && c->kind != ALLREDUCE_SERIAL && c->kind != ALLREDUCE_COPY) {
    uint32_t partial = c->shape.threads % 32;
    if (e->is_segmented) text_printf(out, "  mask      of the group's lanes alone: groups come here at different times");
    else if (c->shape.threads >= 32) text_printf(out, "  mask      0xffffffff");
    if (partial && !e->is_segmented) text_printf(out, "%s0x%08x", c->shape.threads >= 32 ? ", the last warp " : "  mask      ", (1u << partial) - 1);
    text_puts(out, "\n");
  }
  text_printf(out, "  result    %s\n", e->source->result_in_all ? "in every thread" : "in each group's first thread");
}

// --- Lowering ---------------------------------------------------------------------------------------------------------

struct lowering {
  struct pass_context *context;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct scratch_pool pool;
};

// `around`: the thread axes in which it differs whether, or how often, a thread comes to the reduction.
static bool choose(struct lowering *l, const struct ir_stmt *source, uint32_t around, struct allreduce_choice *choice) {
  struct allreduce_request request = {.thread_axes = source->thread_axes, .reducer = source->reducer,
                                      .tuples = source->inputs.count / source->reducer->identity.count, .result_in_all = source->result_in_all,
                                      .form = source->form, .sm = l->context->options->target->sm, .is_segmented = around != 0};
  for (int d = 0; d < 3; d++) request.block[d] = l->entry->block[d];
  return allreduce_choose(&request, choice);
}

static bool has_barrier(enum allreduce_kind kind) { return kind == ALLREDUCE_WARPS || kind == ALLREDUCE_SERIAL || kind == ALLREDUCE_TREE; }

// Reductions that are carried out together.
static void lower(struct lowering *l, const struct list *sources, const struct allreduce_choice *choice, bool is_segmented, bool needs_barrier,
                  struct list *out) {
  struct arena *arena = l->context->arena;
  struct emitter e = {.context = l->context, .arena = arena, .kernel = l->kernel, .entry = l->entry, .source = sources->at[0], .choice = *choice,
                      .part_count = sources->count, .is_segmented = is_segmented, .pool = &l->pool, .out = out};
  e.parts = arena_array(arena, struct part, sources->count);
  for (uint32_t i = 0; i < e.part_count; i++) {
    struct ir_stmt *source = sources->at[i];
    struct part *part = &e.parts[i];
    *part = (struct part){.source = source, .reducer = source->reducer, .count = source->inputs.count};
    part->values = arena_array(arena, struct ir_expr *, part->count);
    for (uint32_t k = 0; k < part->count; k++) part->values[k] = emit_let(&e, "own", source->inputs.at[k]);
  }
  explain(&e);
  switch (choice->kind) {
  case ALLREDUCE_COPY:
  case ALLREDUCE_KINDS: break;
  case ALLREDUCE_XOR: allreduce_emit_xor(&e); break;
  case ALLREDUCE_GUARDED: allreduce_emit_guarded(&e); break;
  case ALLREDUCE_REDUX: allreduce_emit_redux(&e); break;
  case ALLREDUCE_WARPS: allreduce_emit_warps(&e, needs_barrier); break;
  case ALLREDUCE_SERIAL: allreduce_emit_serial(&e, needs_barrier); break;
  case ALLREDUCE_TREE: allreduce_emit_tree(&e, needs_barrier); break;
  }
  if (has_barrier(choice->kind)) l->pool.turn ^= 1;
  for (uint32_t i = 0; i < e.part_count; i++)
    for (uint32_t k = 0; k < e.parts[i].count; k++)
      list_push(arena, out, ir_let(arena, e.parts[i].source->results.at[k], e.parts[i].values[k], e.parts[i].source->range));
}

// --- Reductions that go together --------------------------------------------------------------------------------------

struct group {
  struct list sources;  // struct ir_stmt ALLREDUCE
  struct list before, after; // struct ir_stmt between them: what does not depend on their results, what does
  struct list results;  // struct ir_var: of the sources, and what depends on them
  uint32_t end;         // behind the last source
};

struct question {
  const struct list *vars;
  bool mentions, reads_output, reads_mutable, reads_shared, is_collective;
};

static void ask_expr(struct ir_expr *e, void *state) {
  struct question *q = state;
  if (e->op == OP_VAR) {
    q->reads_mutable |= e->var->kind == VAR_MUTABLE;
    for (uint32_t i = 0; i < q->vars->count && !q->mentions; i++) q->mentions = q->vars->at[i] == e->var;
  }
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) {
    q->reads_output |= e->mem->is_output;
    q->reads_shared |= e->mem->space != SPACE_GLOBAL;
  }
  q->is_collective |= op_is_collective(e->op);
}

// Statements that change no memory and meet no other thread.
static bool is_local(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool is_plain = stmt->kind == IR_LET || stmt->kind == IR_VAR || stmt->kind == IR_SET || stmt->kind == IR_FOR || stmt->kind == IR_IF ||
                    (stmt->kind == IR_LOAD_WIDE && !stmt->mem->is_output && stmt->mem->space == SPACE_GLOBAL);
    if (!is_plain || !is_local(&stmt->body) || !is_local(&stmt->otherwise)) return false;
  }
  return true;
}

// A let, or a store under conditions, of what depends on results: it may as well stand behind the next reduction.
static bool may_wait(const struct list *block, bool *stores) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool is_store = (stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE) && stmt->mem->space == SPACE_GLOBAL;
    *stores |= is_store;
    if (!is_store && stmt->kind != IR_LET && stmt->kind != IR_IF) return false;
    if (!may_wait(&stmt->body, stores) || !may_wait(&stmt->otherwise, stores)) return false;
  }
  return true;
}

static struct question ask(struct arena *arena, struct ir_stmt *stmt, const struct list *vars) {
  struct question q = {.vars = vars};
  struct list alone = {0};
  list_push(arena, &alone, stmt);
  ir_visit_block(&alone, ask_expr, &q);
  return q;
}

static bool go_together(const struct ir_stmt *a, const struct allreduce_choice *choice, const struct ir_stmt *b, const struct allreduce_choice *other) {
  return a->thread_axes == b->thread_axes && a->result_in_all == b->result_in_all && choice->kind == other->kind && has_barrier(choice->kind);
}

// From the reduction at `first` on, those that it shares barriers with.
static struct group find_group(struct lowering *l, const struct list *block, uint32_t first, const struct allreduce_choice *choice) {
  struct arena *arena = l->context->arena;
  struct ir_stmt *source = block->at[first];
  struct group group = {.end = first + 1};
  struct list before = {0}, after = {0}, results = list_copy(arena, &source->results);
  uint32_t bytes = choice->forms[choice->kind].shared_bytes;
  bool stores = false;
  list_push(arena, &group.sources, source);
  for (uint32_t i = first + 1; i < block->count && has_barrier(choice->kind); i++) {
    struct ir_stmt *stmt = block->at[i];
    struct question q = ask(arena, stmt, &results);
    struct list alone = {0};
    list_push(arena, &alone, stmt);
    if (stmt->kind == IR_ALLREDUCE) {
      struct allreduce_choice other;
      if (q.mentions || !choose(l, stmt, 0, &other) || !go_together(source, choice, stmt, &other)) break;
      bytes += other.forms[other.kind].shared_bytes;
      if (bytes > ALLREDUCE_TOGETHER_LIMIT) break;
      list_push(arena, &group.sources, stmt);
      list_append(arena, &results, &stmt->results);
      group.end = i + 1;
      group.before = list_copy(arena, &before);
      group.after = list_copy(arena, &after);
    } else if (q.is_collective || q.reads_shared) {
      break;
    } else if (!q.mentions && is_local(&alone) && !(stores && q.reads_output)) {
      list_push(arena, &before, stmt);
    } else if (!q.reads_mutable && may_wait(&alone, &stores)) {
      if (stmt->kind == IR_LET) list_push(arena, &results, stmt->var);
      list_push(arena, &after, stmt);
    } else {
      break;
    }
  }
  return group;
}

// --- Blocks -----------------------------------------------------------------------------------------------------------

// Where a statement list is: how often reductions in it may meet words that they have used before.
enum around { AROUND_NOTHING, AROUND_LOOP };

// Reductions with barriers in a block and in what is inside it.
static uint32_t count_shared(struct lowering *l, const struct list *block, bool *is_nested) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    struct allreduce_choice choice;
    if (stmt->kind == IR_ALLREDUCE) {
      if (!choose(l, stmt, 0, &choice)) continue;
      struct group group = find_group(l, block, i, &choice);
      count += has_barrier(choice.kind);
      i = group.end - 1;
      continue;
    }
    uint32_t inside = count_shared(l, &stmt->body, is_nested) + count_shared(l, &stmt->otherwise, is_nested);
    if (inside) *is_nested = true;
    count += inside;
  }
  return count;
}

static void say_why(struct lowering *l, const struct ir_stmt *stmt, uint32_t differs, const struct allreduce_choice *choice) {
  struct diag *diag = l->context->diag;
  if (differs) {
    diag_error(diag, ERROR_COLLECTIVE, stmt->range, "%s under a condition or in a loop that is not the same for all threads of the block",
               differs & stmt->thread_axes ? "the threads of a group do not come to this reduction together: it stands" : "this reduction stands");
    diag_note(diag, (struct range){0}, differs & stmt->thread_axes ? "legal here: a bound or condition that mentions serial and block axes only"
              : "legal here: groups of 1, 2, 4, 8, 16 or 32 threads, neighbours on the lowest thread axes, by shuffle or auto; or a bound that mentions serial and block axes only");
    return;
  }
  if (stmt->form != FORM_SHUFFLE) {
    diag_error(diag, ERROR_SHARED_LIMIT, stmt->range, "this reduction over %u threads of a block takes more than %d bytes of shared memory", choice->shape.threads,
               ALLREDUCE_SHARED_LIMIT);
    diag_note(diag, (struct range){0}, "legal here: fewer threads, fewer values side by side, or groups of which shuffles do the most: whole warps, powers of two");
    return;
  }
  diag_error(diag, ERROR_COLLECTIVE, stmt->range, "this reduction cannot be done by shuffles: %s", allreduce_why_no_shuffle(choice));
  diag_note(diag, (struct range){0}, "legal here: allreduce ... by tree, or by auto");
}

static void refuse(struct lowering *l, const struct ir_stmt *stmt, uint32_t differs, const struct allreduce_choice *choice) {
  enum { MOST_AXES = 4 };
  say_why(l, stmt, differs, choice);
  for (uint32_t i = 0, n = 0; i < l->entry->bound.count && n < MOST_AXES; i++) {
    const struct ir_axis *axis = l->entry->bound.at[i];
    if (!bind_is_thread(axis->bind) || !(stmt->thread_axes >> (axis->bind - BIND_THREAD_X) & 1)) continue;
    axis_note(l->context->diag, axis);
    n++;
  }
}

static uint32_t varies_around(const struct lowering *l, const struct ir_stmt *stmt, uint32_t differs) {
  if (stmt->kind == IR_IF) return differs | allreduce_varies(l->entry, stmt->value);
  if (stmt->kind == IR_FOR) return differs | allreduce_varies(l->entry, stmt->lo) | allreduce_varies(l->entry, stmt->hi);
  return differs;
}

// `differs`: as `around` of choose.
static bool lower_block(struct lowering *l, struct list *block, enum around around, uint32_t differs) {
  struct pass_context *context = l->context;
  struct list out = {0};
  bool good = true, is_nested = false, is_first = true;
  // an even number of reductions takes turns with the words around a loop, too: then no iteration meets the words of the last one's end
  uint32_t count = around == AROUND_LOOP ? count_shared(l, block, &is_nested) : 0;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    struct allreduce_choice choice;
    if (stmt->kind != IR_ALLREDUCE) {
      uint32_t inside = varies_around(l, stmt, differs);
      good &= lower_block(l, &stmt->body, stmt->kind == IR_FOR ? AROUND_LOOP : is_nested ? around : AROUND_NOTHING, inside);
      good &= lower_block(l, &stmt->otherwise, is_nested ? around : AROUND_NOTHING, inside);
      list_push(context->arena, &out, stmt);
      continue;
    }
    if (differs & stmt->thread_axes || !choose(l, stmt, differs, &choice)) {
      refuse(l, stmt, differs, &choice);
      good = false;
      continue;
    }
    struct group group = find_group(l, block, i, &choice);
    bool needs_barrier = has_barrier(choice.kind) && around == AROUND_LOOP && (is_nested || (count % 2 == 1 && is_first));
    int64_t before = entry_shared_bytes(l->entry, true);
    list_append(context->arena, &out, &group.before);
    lower(l, &group.sources, &choice, differs != 0, needs_barrier, &out);
    list_append(context->arena, &out, &group.after);
    int64_t bytes, most;
    if (entry_exceeds_shared(l->entry, context, &bytes, &most) && bytes > before) {
      diag_error(context->diag, ERROR_SHARED_LIMIT, stmt->range, "with this reduction over threads a block takes %lld bytes of shared memory; at most %lld are legal",
                 (long long)bytes, (long long)most);
      diag_note(context->diag, (struct range){0}, "legal here: fewer threads, or smaller copies of tensors in shared memory");
      good = false;
    }
    is_first &= !has_barrier(choice.kind);
    i = group.end - 1;
  }
  *block = out;
  return good;
}

bool pass_allreduce(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct lowering lowering = {.context = context, .kernel = kernel, .entry = entry};
  allreduce_find_varying(entry);
  return lower_block(&lowering, &entry->body, AROUND_NOTHING, 0);
}
