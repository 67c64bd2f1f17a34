// combine x by flag: a value and a flag that it is there in one word, which the last block in order waits for.
//
//   stage B: store sum_partial[i, kg] = sum_part             stage B: store sum_partial[i, kg] = 1 << 32 | bits(sum_part)
//   stage arrive: counters over y                            stage arrive: in order over y
//   stage B: reduce sum_f32, axes i, piece_o, piece_u   ->   stage B: store sum_seen[piece_u] = load(sum_partial, i, piece), axes i, piece_o, piece_u
//     operand load(sum_partial, i, piece)                    stage B: store sum_came[piece_u] = await(load(sum_seen, piece_u), load(sum_partial, i, piece))
//                                                            stage B: reduce sum_f32, operand value(load(sum_came, piece_u))
//                                                            stage B: store sum_partial[i, piece] = 0
//
// No fence and no counter: what is waited for has the value in it. The loads of the first stage are all in flight before the first is looked at.
// Words are 0 between launches. Each is waited for by one thread alone, which makes it 0 again. The blocks that write words stand in front of the one that waits, so
// that they run, or have run, when it does.
#include "passes/cut.h"
#include "passes/stage.h"

enum { WORDS_IN_FLIGHT = 16 };

static bool refuse(struct cut *c, const struct ir_stage *stage, const char *why) {
  diag_error(c->context->diag, ERROR_DIRECTIVE, stage->range, "stage '%s' cannot be combined by flags: %s", stage->label, why);
  stage_note_reductions(c->context->diag, stage, bind_is_block);
  diag_note(c->context->diag, (struct range){0}, "legal here: combine ... by last_block");
  return false;
}

// --- Whether it can be --------------------------------------------------------------------------------------------------

static bool fits_word(enum type type) { return type == TYPE_BOOL || type == TYPE_F32 || (type_is_integer(type) && type != TYPE_INDEX && type_bits(type) <= 32); }

bool cut_takes_flag(struct cut *c, const struct ir_stage *stage) {
  for (uint32_t k = 0; k < stage->results.count; k++) {
    const struct ir_var *result = stage->results.at[k];
    if (!fits_word(result->type)) return refuse(c, stage, arena_printf(c->arena, "'%s' is %s, and a word has 32 bits beside its flag", result->label, type_name(result->type)));
  }
  for (int b = BIND_BLOCK_X; b <= BIND_THREAD_Z; b++) {
    bool is_used = false;
    for (uint32_t i = 0; i < c->entry->stages.count; i++) is_used |= stage_bound_axis(c->entry->stages.at[i], (enum ir_bind)b) != NULL;
    if (is_used && !stage_bound_axis(stage, (enum ir_bind)b))
      return refuse(c, stage, arena_printf(c->arena, "another stage has an axis on %s and this one has none: several threads would wait for one word",
                                           bind_is_block((enum ir_bind)b) ? "blocks" : "threads"));
  }
  for (uint32_t i = 0; i < c->entry->memory.count; i++) {
    const struct ir_mem *mem = c->entry->memory.at[i];
    if (mem->workspace && !mem->is_polled && !ir_const_is(mem->workspace, 0)) return refuse(c, stage, "a launch before it has left values in the workspace, where the words would stand");
  }
  return true;
}

uint32_t cut_flag_flight(const struct ir_stage *stage) {
  int64_t words = (int64_t)stage->results.count;
  bool is_inside = false;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    bool is_loop = !bind_is_block(used->axis->bind) && !bind_is_thread(used->axis->bind);
    is_inside |= is_loop && used->is_reduction;
    if (is_loop && !used->is_reduction && (is_inside || used->axis->bind == BIND_VECTOR) && ir_is_const(used->axis->extent)) words *= used->axis->extent->integer;
  }
  return words < 1 || words >= WORDS_IN_FLIGHT ? 1 : (uint32_t)(WORDS_IN_FLIGHT / words);
}

// --- Words --------------------------------------------------------------------------------------------------------------

struct ir_expr *cut_to_word(struct cut *c, struct ir_expr *value) {
  struct arena *arena = c->arena;
  struct ir_expr *bits = value->type == TYPE_F32 ? ir_make(arena, OP_BITCAST, TYPE_U32, &value, 1) : value;
  bits = ir_cast(arena, TYPE_U64, ir_cast(arena, TYPE_U32, bits));
  return ir_binary(arena, OP_OR, bits, ir_int(arena, TYPE_U64, INT64_C(1) << 32));
}

static struct ir_expr *from_word(struct cut *c, enum type type, struct ir_expr *word) {
  struct arena *arena = c->arena;
  struct ir_expr *bits = ir_cast(arena, TYPE_U32, word);
  if (type == TYPE_F32) return ir_make(arena, OP_BITCAST, TYPE_F32, &bits, 1);
  if (type == TYPE_BOOL) return ir_binary(arena, OP_NE, bits, ir_int(arena, TYPE_U32, 0));
  return ir_cast(arena, type, bits);
}

// --- Stages -------------------------------------------------------------------------------------------------------------

// The innermost loops of the stage that combines: from the one over its loads in flight on.
static struct list slots_of(struct cut *c, const struct ir_stage *final, const struct ir_axis *unrolled) {
  struct list slots = {0};
  for (uint32_t i = 0; i < final->axes.count; i++) {
    const struct ir_stage_axis *used = final->axes.at[i];
    bool is_loop = !bind_is_block(used->axis->bind) && !bind_is_thread(used->axis->bind);
    if (used->axis == unrolled || (slots.count && is_loop)) list_push(c->arena, &slots, used->axis);
  }
  return slots;
}

static struct ir_mem *make_array(struct cut *c, const char *label, const struct list *slots) {
  struct ir_mem *mem = arena_new(c->arena, struct ir_mem);
  struct ir_expr *row = ir_int(c->arena, TYPE_I64, 1);
  mem->label = label;
  mem->name = ir_fresh_name(c->kernel, label);
  mem->space = SPACE_LOCAL;
  mem->type = TYPE_U64;
  mem->alignment = 8;
  for (uint32_t d = slots->count; d-- > 0;) {
    struct ir_expr *extent = extent_wide(c->arena, list_at(slots, struct ir_axis, d)->extent);
    if (ir_const_is(extent, 0)) extent = ir_int(c->arena, TYPE_I64, 1); // an array has elements even where no loop runs
    list_insert(c->arena, &mem->dims, 0, extent);
    list_insert(c->arena, &mem->strides, 0, row);
    row = ir_binary(c->arena, OP_MUL, row, extent);
  }
  list_push(c->arena, &c->entry->memory, mem);
  return mem;
}

static struct list vars_of(struct cut *c, const struct list *axes) {
  struct list vars = {0};
  for (uint32_t i = 0; i < axes->count; i++) list_push(c->arena, &vars, ir_ref(c->arena, list_at(axes, struct ir_axis, i)->var));
  return vars;
}

// A stage with the nest of `final`, its innermost loops with axes of its own. It stores `value` to mem[indices], both in the axes of `final`.
static struct ir_stage *make_twin(struct cut *c, const struct ir_stage *final, const struct list *slots, struct ir_mem *mem, const struct list *indices, struct ir_expr *value) {
  struct arena *arena = c->arena;
  struct ir_stage *stage = arena_new(arena, struct ir_stage);
  struct list renamed = {0};
  *stage = (struct ir_stage){.kind = STAGE_STORE, .label = final->label, .range = final->range, .mem = mem};
  for (uint32_t i = 0; i < final->axes.count; i++) {
    struct ir_axis *axis = list_at(&final->axes, struct ir_stage_axis, i)->axis;
    for (uint32_t s = 0; s < slots->count; s++) {
      if (slots->at[s] != axis) continue;
      struct ir_axis *own = cut_axis(c, axis->var->label, axis->extent, axis->bind, axis->range);
      own->unroll = axis->unroll;
      axis->var->subst = ir_ref(arena, own->var);
      axis = own;
      break;
    }
    cut_use_axis(c, &stage->axes, axis, false);
  }
  for (uint32_t i = 0; i < final->derived.count; i++) {
    struct ir_stmt *let = final->derived.at[i];
    struct ir_var *var = ir_new_var(c->kernel, VAR_LET, TYPE_INDEX, let->var->label);
    var->range = let->var->range;
    list_push(arena, &stage->derived, ir_let(arena, var, ir_substitute(arena, let->value), let->range));
    let->var->subst = ir_ref(arena, var);
    list_push(arena, &renamed, let->var);
  }
  stage->guards = list_copy(arena, &final->guards);
  stage->indices = list_copy(arena, indices);
  ir_substitute_list(arena, &stage->guards);
  ir_substitute_list(arena, &stage->indices);
  stage->value = ir_substitute(arena, value);
  for (uint32_t s = 0; s < slots->count; s++) list_at(slots, struct ir_axis, s)->var->subst = NULL;
  for (uint32_t i = 0; i < renamed.count; i++) list_at(&renamed, struct ir_var, i)->subst = NULL;
  return stage;
}

void cut_await(struct cut *c, struct ir_stage *final, const struct ir_axis *unrolled, struct list *before, struct list *behind) {
  struct arena *arena = c->arena;
  struct list slots = slots_of(c, final, unrolled), places = vars_of(c, &slots), waits = {0};
  for (uint32_t k = 0; k < final->operands.count; k++) {
    struct ir_expr *load = final->operands.at[k];
    const struct ir_var *result = final->results.at[k];
    struct list indices = {0};
    for (uint32_t i = 0; i < load->count; i++) list_push(arena, &indices, load->args[i]);
    struct ir_mem *seen = make_array(c, arena_printf(arena, "%s_seen", result->label), &slots), *came = make_array(c, arena_printf(arena, "%s_came", result->label), &slots);
    struct ir_expr *both[2] = {ir_load(arena, seen, &places), load};
    list_push(arena, before, make_twin(c, final, &slots, seen, &places, load));
    list_push(arena, &waits, make_twin(c, final, &slots, came, &places, ir_make(arena, OP_AWAIT, TYPE_U64, both, 2)));
    list_push(arena, behind, make_twin(c, final, &slots, load->mem, &indices, ir_int(arena, TYPE_U64, 0)));
    final->operands.at[k] = from_word(c, result->type, ir_load(arena, came, &places));
  }
  list_append(arena, before, &waits);
}
