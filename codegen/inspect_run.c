// redc inspect: one block of a kernel, all its threads at once, integers only.
//
// Statements run in order for a mask of threads. A condition that is known splits the mask. One that is not runs both ways with
// all threads and merges what they assigned; where it also differs between threads, collectives inside are findings. A loop runs
// round by round while its condition is known; otherwise twice, once as it begins and once with what it assigns made unknown.
#include "codegen/inspect_run.h"

#include <inttypes.h>

enum { MAX_STEPS = 400000, MAX_DEPTH = 200, MAX_TRIPS = 1 << 22 };

static uint8_t *copy_mask(struct run *run, const uint8_t *mask) {
  uint8_t *copy = arena_array(run->arena, uint8_t, run->threads);
  memcpy(copy, mask, run->threads);
  return copy;
}

// --- Findings

void run_find(struct run *run, enum finding_kind kind, struct range range, const char *format, ...) {
  struct list *findings = &run->report->findings;
  if (run->report->is_incomplete || run->values.is_full) return;
  for (uint32_t i = 0; i < findings->count; i++) {
    const struct finding *known = list_at(findings, struct finding, i);
    if (known->kind == kind && known->range.line == range.line && known->range.column == range.column) return;
  }
  struct finding *finding = arena_new(run->diag->arena, struct finding);
  va_list arguments;
  va_start(arguments, format);
  *finding = (struct finding){kind, range, arena_vprintf(run->diag->arena, format, arguments)};
  va_end(arguments);
  if (run->frame->call) finding->message = arena_printf(run->diag->arena, "%s; called on line %" PRIu32, finding->message, run->frame->call->line);
  list_push(run->diag->arena, findings, finding);
}

// --- Expressions

static struct value *evaluate(struct run *run, const struct cuda_expr *expr, const uint8_t *mask);
static void execute(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask);

static bool is_memory_object(const struct cuda_variable *variable) {
  return variable->space == SPACE_SHARED || variable->space == SPACE_DEVICE || variable->type.is_array;
}

static struct value *address_of_variable(struct run *run, const struct cuda_variable *variable) {
  struct value *address = variable->space == SPACE_SHARED ? value_constant(&run->values, 0) : value_new(&run->values, true);
  if (variable->space != SPACE_SHARED)
    address->cells->symbol = symbol_intern(&run->values, SYMBOL_FRESH, (struct cell){-1 - (int64_t)variable->number, 0}, (struct cell){0, 0});
  address->base = variable;
  return address;
}

static struct value *value_of_variable(struct run *run, const struct cuda_variable *variable) {
  struct value **place = &run->variables[variable->number];
  if (*place) return *place;
  const int64_t *given = variable->space == SPACE_PARAMETER ? map_get(&run->sizes->values, variable->name) : NULL;
  if (given) {
    *place = value_constant(&run->values, *given);
  } else {
    *place = value_unknown(&run->values);
    if (variable->type.kind == CUDA_POINTER && variable->space == SPACE_PARAMETER) (*place)->base = variable;
  }
  return *place;
}

// The address of what an expression names; NULL where it is a variable in registers, or none.
static struct value *address_of(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  const struct cuda_type bytes = {.kind = CUDA_INTEGER, .bytes = 8, .is_signed = true};
  if (expr->kind == EXPR_CAST && !expr->a->type.is_array) return address_of(run, expr->a, mask);
  if (expr->kind == EXPR_VARIABLE) return is_memory_object(expr->variable) ? address_of_variable(run, expr->variable) : NULL;
  if (expr->kind == EXPR_DEREF) return evaluate(run, expr->a, mask);
  if (expr->kind == EXPR_INDEX) {
    struct value *base = evaluate(run, expr->a, mask), *index = evaluate(run, expr->b, mask);
    struct value *size = value_constant(&run->values, expr->type.bytes);
    struct value *offset = value_binary(&run->values, CUDA_MUL, index, size, bytes);
    struct value *address = value_binary(&run->values, CUDA_ADD, base, offset, bytes);
    address->flags |= index->flags;
    if (index->flags) address->blame = index->blame;
    address->base = base->base;
    return address;
  }
  if (expr->kind == EXPR_MEMBER) {
    struct value *object = address_of(run, expr->a, mask);
    if (!object) return NULL;
    struct value *address = value_binary(&run->values, CUDA_ADD, object, value_constant(&run->values, expr->integer), bytes);
    address->base = object->base;
    return address;
  }
  return NULL;
}

// What is read from an address: the same where the address is the same.
static struct value *load(struct run *run, const struct value *address, const uint8_t *mask) {
  if (value_agreement(address, mask, run->threads) == AGREE_NONE) return value_varying(&run->values);
  struct value *result = value_new(&run->values, address->is_uniform);
  struct cell time = {(int64_t)run->values.fresh++, 0};
  uint32_t count = address->is_uniform ? 1 : result->is_uniform ? 0 : run->threads;
  for (uint32_t t = 0; t < count; t++) result->cells[t].symbol = symbol_intern(&run->values, SYMBOL_LOAD, address->cells[t], time);
  return result;
}

static void assign(struct run *run, const struct cuda_variable *variable, struct value *value, const uint8_t *mask) {
  struct value **place = &run->variables[variable->number];
  bool everyone = !memchr(mask, 0, run->threads);
  *place = everyone || !*place ? value : value_select(&run->values, mask, value, *place);
}

static void store(struct run *run, const struct cuda_expr *to, struct value *value, const uint8_t *mask, bool reads) {
  struct value *address = address_of(run, to, mask);
  if (address) {
    run_access(run, to, address, mask, reads, true, false, 0);
    return;
  }
  while (to->kind == EXPR_CAST || to->kind == EXPR_MEMBER) {
    if (to->kind == EXPR_MEMBER) value = value_varying(&run->values);
    to = to->a;
  }
  if (to->kind == EXPR_VARIABLE) assign(run, to->variable, value, mask);
}

static struct value *flagged(struct run *run, struct value *value, unsigned flags, struct range blame) {
  struct value *copy = arena_new(run->arena, struct value);
  *copy = *value;
  copy->flags |= flags;
  copy->blame = blame;
  return copy;
}

static struct value *apply(struct run *run, const struct cuda_expr *expr, enum cuda_op op, struct value *a, struct value *b, const uint8_t *mask) {
  struct cuda_type type = expr->type;
  if (type.kind == CUDA_POINTER && (op == CUDA_ADD || op == CUDA_SUB)) {
    struct value *size = value_constant(&run->values, type.pointee ? type.pointee : 1);
    type = (struct cuda_type){.kind = CUDA_INTEGER, .bytes = 8, .is_signed = true};
    if (b->base && !a->base) {
      struct value *other = a;
      a = b, b = other;
    }
    b = value_binary(&run->values, CUDA_MUL, b, size, type);
  } else if (op >= CUDA_LT && op <= CUDA_NE) {
    type = expr->kind == EXPR_BINARY ? expr->a->type : type; // signedness of the operands
  }
  bool is_float = type.kind == CUDA_FLOAT && !(op >= CUDA_LT && op <= CUDA_NE);
  if (is_float && (value_agreement(a, mask, run->threads) == AGREE_NONE || value_agreement(b, mask, run->threads) == AGREE_NONE))
    return flagged(run, value_varying(&run->values), a->flags | b->flags, a->flags ? a->blame : b->blame);
  struct value *result = value_binary(&run->values, op, a, b, type);
  if (type.kind == CUDA_FLOAT && !(op >= CUDA_LT && op <= CUDA_NE)) {
    enum agreement agreed = value_agreement(result, mask, run->threads);
    return agreed == AGREE_BLOCK ? value_unknown(&run->values) : result;
  }
  if ((op == CUDA_SHL || op == CUDA_SHR) && type.kind == CUDA_INTEGER)
    for (uint32_t t = 0; t < run->threads; t++) {
      struct cell count = value_cell(b, t);
      if (mask[t] && !count.symbol && (count.c < 0 || count.c >= (int64_t)type.bytes * 8)) {
        result = flagged(run, result, VALUE_SHIFT, expr->range);
        break;
      }
    }
  if (type.kind == CUDA_INTEGER && type.bytes == 4 && result->is_bounded && (op == CUDA_ADD || op == CUDA_MUL || op == CUDA_SHL)) {
    int64_t lo = type.is_signed ? INT32_MIN : 0, hi = type.is_signed ? INT32_MAX : UINT32_MAX;
    if (result->lo < lo || result->hi > hi) result = flagged(run, result, VALUE_OVERFLOW, expr->range);
  }
  return result;
}

static void merge_variables(struct run *run, struct value **one, struct value **other) {
  for (uint32_t i = 0; i < run->variable_count; i++)
    if (one[i] && other[i])
      run->variables[i] = value_merge(&run->values, one[i], other[i]);
    else
      run->variables[i] = one[i] ? one[i] : other[i];
}

static struct value **copy_variables(struct run *run) {
  struct value **copy = arena_array(run->arena, struct value *, run->variable_count + 1);
  memcpy(copy, run->variables, sizeof *copy * run->variable_count);
  return copy;
}

// --- Calls

static struct value *call_function(struct run *run, const struct cuda_expr *call, struct value *const *operands, const uint8_t *mask) {
  if (run->depth > MAX_DEPTH / 8) return value_varying(&run->values);
  const struct list *parameters = &call->function->parameters;
  for (uint32_t i = 0; i < parameters->count && i < call->operand_count; i++)
    run->variables[list_at(parameters, struct cuda_variable, i)->number] = operands[i];
  struct frame *outer = run->frame, frame = {outer->call ? outer->call : &call->range, arena_array(run->arena, uint8_t, run->threads), NULL};
  struct loop_exits *loop = run->loop;
  const struct range *left = run->may_have_left;
  run->frame = &frame;
  run->loop = NULL;
  run->depth += 8;
  execute(run, call->function->body, copy_mask(run, mask));
  run->depth -= 8;
  run->frame = outer;
  run->loop = loop;
  run->may_have_left = left;
  return frame.result ? frame.result : value_varying(&run->values);
}

// The bytes that a function copies asynchronously to shared memory: __pipeline_memcpy_async(to, from, bytes), or what redc prints for it,
// red_copy_16(to, from), whose body is one instruction. 0: it is none.
static uint32_t copied_bytes(const struct cuda_expr *call) {
  static const char *const copies[] = {"red_copy_4", "red_copy_8", "red_copy_16"};
  if (strcmp(call->name, "__pipeline_memcpy_async") == 0 && call->operand_count > 2 && call->operands[2]->kind == EXPR_INTEGER) return (uint32_t)call->operands[2]->integer;
  for (uint32_t i = 0; i < 3 && call->operand_count == 2; i++) {
    size_t length = strlen(copies[i]);
    if (strncmp(call->name, copies[i], length) == 0 && (!call->name[length] || call->name[length] == '_')) return 4u << i;
  }
  return 0;
}

static struct value *evaluate_call(struct run *run, const struct cuda_expr *call, const uint8_t *mask) {
  struct value **operands = arena_array(run->arena, struct value *, call->operand_count + 1);
  for (uint32_t i = 0; i < call->operand_count; i++) operands[i] = evaluate(run, call->operands[i], mask);
  if (!call->name) return value_varying(&run->values);
  const struct collective_rule *rule = collective_rule_of(call->name);
  if (rule) return run_collective(run, rule, call, operands, mask);
  if (strcmp(call->name, "__activemask") == 0) return flagged(run, value_varying(&run->values), VALUE_ACTIVEMASK, call->range);
  if (strncmp(call->name, "atomic", 6) == 0 && call->operand_count) {
    run_access(run, call, operands[0], mask, true, true, true, call->type.bytes);
    return value_varying(&run->values);
  }
  static const char *const loads[] = {"__ldg", "__ldcs", "__ldcg", "__ldca", "__ldlu", "__ldcv"};
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
    if (strcmp(call->name, loads[i]) == 0 && call->operand_count) {
      run_access(run, call, operands[0], mask, true, false, false, call->type.bytes);
      return load(run, operands[0], mask);
    }
  static const char *const stores[] = {"__stcs", "__stcg", "__stwb", "__stwt"};
  for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
    if (strcmp(call->name, stores[i]) == 0 && call->operand_count > 1)
      run_access(run, call, operands[0], mask, false, true, false, call->operands[1]->type.bytes);
  uint32_t copied = copied_bytes(call);
  if (copied) {
    run_access(run, call->operands[1], operands[1], mask, true, false, false, copied);
    run_access(run, call->operands[0], operands[0], mask, false, true, false, copied);
    return value_varying(&run->values);
  }
  if (call->function && call->function->body) return call_function(run, call, operands, mask);
  for (uint32_t i = 0; i < call->operand_count; i++)
    if (value_agreement(operands[i], mask, run->threads) != AGREE_BLOCK) return value_varying(&run->values);
  return value_unknown(&run->values);
}

// --- Expressions, each kind

static struct value *evaluate_builtin(struct run *run, const struct cuda_expr *expr) {
  const uint32_t *block = run->report->block;
  struct value *result;
  switch (expr->builtin) {
  case BUILTIN_THREAD:
    if (block[expr->dimension] == 1) return value_constant(&run->values, 0);
    result = value_new(&run->values, false);
    for (uint32_t t = 0; t < (result->is_uniform ? 0 : run->threads); t++)
      result->cells[t].c = expr->dimension == 0 ? thread_of(run, t) % block[0] : expr->dimension == 1 ? thread_of(run, t) / block[0] % block[1] : thread_of(run, t) / block[0] / block[1];
    result->is_bounded = true;
    result->hi = (int64_t)block[expr->dimension] - 1;
    return result;
  case BUILTIN_BLOCK_DIM: return value_constant(&run->values, block[expr->dimension]);
  case BUILTIN_WARP_SIZE: return value_constant(&run->values, 32);
  case BUILTIN_GRID_DIM:
    if (run->sizes->grid[expr->dimension]) return value_constant(&run->values, run->sizes->grid[expr->dimension]);
    break;
  case BUILTIN_BLOCK: break;
  }
  result = value_new(&run->values, true);
  result->cells->symbol =
      symbol_intern(&run->values, SYMBOL_FRESH, (struct cell){-1000000 - (int64_t)expr->builtin * 3 - (int64_t)expr->dimension, 0}, (struct cell){0, 0});
  if (expr->builtin == BUILTIN_BLOCK && run->sizes->grid[expr->dimension]) {
    result->is_bounded = true;
    result->hi = run->sizes->grid[expr->dimension] - 1;
  }
  return result;
}

static struct value *evaluate_choice(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  struct value *condition = evaluate(run, expr->a, mask);
  if (!value_is_known(condition, mask, run->threads)) {
    struct value *a = evaluate(run, expr->b, mask), *b = evaluate(run, expr->c, mask);
    struct value *merged = value_merge(&run->values, a, b);
    if (value_agreement(condition, mask, run->threads) == AGREE_NONE && a != b) {
      struct value *varying = value_varying(&run->values);
      varying->flags = merged->flags, varying->blame = merged->blame, varying->base = merged->base;
      return varying;
    }
    return merged;
  }
  uint8_t *yes = copy_mask(run, mask), *no = copy_mask(run, mask);
  for (uint32_t t = 0; t < run->threads; t++) {
    bool is_true = mask[t] && value_cell(condition, t).c;
    yes[t] &= is_true;
    no[t] &= !is_true;
  }
  if (is_empty(run, no)) return evaluate(run, expr->b, yes);
  if (is_empty(run, yes)) return evaluate(run, expr->c, no);
  return value_select(&run->values, yes, evaluate(run, expr->b, yes), evaluate(run, expr->c, no));
}

static struct value *evaluate_logic(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  struct value *a = evaluate(run, expr->a, mask);
  if (!value_is_known(a, mask, run->threads)) return apply(run, expr, expr->op, a, evaluate(run, expr->b, mask), mask);
  uint8_t *open = copy_mask(run, mask);
  for (uint32_t t = 0; t < run->threads; t++) open[t] &= (value_cell(a, t).c != 0) == (expr->op == CUDA_LAND);
  struct value *settled = value_constant(&run->values, expr->op == CUDA_LOR);
  if (is_empty(run, open)) return settled;
  struct value *zero = value_constant(&run->values, 0);
  struct value *b = value_binary(&run->values, CUDA_NE, evaluate(run, expr->b, open), zero, expr->b->type);
  return memcmp(open, mask, run->threads) == 0 ? b : value_select(&run->values, open, b, settled);
}

static struct value *evaluate_unary(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  struct value *a = evaluate(run, expr->a, mask);
  if (expr->op == CUDA_NEG) return apply(run, expr, CUDA_SUB, value_constant(&run->values, 0), a, mask);
  if (expr->op == CUDA_NOT) return apply(run, expr, CUDA_XOR, a, value_constant(&run->values, -1), mask);
  if (expr->op == CUDA_LNOT) return value_binary(&run->values, CUDA_EQ, a, value_constant(&run->values, 0), expr->a->type);
  return a;
}

static struct value *evaluate(struct run *run, const struct cuda_expr *expr, const uint8_t *mask) {
  if (++run->steps > MAX_STEPS || run->depth > MAX_DEPTH) {
    run->report->is_incomplete = true;
    return value_varying(&run->values);
  }
  struct value *a, *b;
  switch (expr->kind) {
  case EXPR_INTEGER: return value_constant(&run->values, expr->integer);
  case EXPR_BUILTIN: return evaluate_builtin(run, expr);
  case EXPR_VARIABLE:
    if (expr->variable->type.is_array) return address_of_variable(run, expr->variable);
    if (!is_memory_object(expr->variable)) return value_of_variable(run, expr->variable);
    a = address_of_variable(run, expr->variable);
    run_access(run, expr, a, mask, true, false, false, 0);
    return load(run, a, mask);
  case EXPR_UNARY: return evaluate_unary(run, expr, mask);
  case EXPR_BINARY:
    if (expr->op == CUDA_LAND || expr->op == CUDA_LOR) return evaluate_logic(run, expr, mask);
    a = evaluate(run, expr->a, mask);
    b = evaluate(run, expr->b, mask);
    return apply(run, expr, expr->op, a, b, mask);
  case EXPR_ASSIGN:
    b = evaluate(run, expr->b, mask);
    if (expr->op != CUDA_NO_OP && !address_of(run, expr->a, mask)) b = apply(run, expr, expr->op, evaluate(run, expr->a, mask), b, mask);
    b = value_convert(&run->values, b, expr->a->type);
    store(run, expr->a, b, mask, expr->op != CUDA_NO_OP);
    return b;
  case EXPR_STEP:
    a = address_of(run, expr->a, mask) ? value_varying(&run->values) : evaluate(run, expr->a, mask);
    b = apply(run, expr, expr->op, a, value_constant(&run->values, 1), mask);
    store(run, expr->a, b, mask, true);
    return expr->is_postfix ? a : b;
  case EXPR_CHOICE: return evaluate_choice(run, expr, mask);
  case EXPR_CAST: return value_convert(&run->values, evaluate(run, expr->a, mask), expr->type);
  case EXPR_CALL: return evaluate_call(run, expr, mask);
  case EXPR_INDEX:
  case EXPR_DEREF:
    a = address_of(run, expr, mask);
    if (expr->type.is_array || expr->type.kind == CUDA_VOID) return a; // a row of an array
    run_access(run, expr, a, mask, true, false, false, 0);
    return load(run, a, mask);
  case EXPR_MEMBER:
    a = address_of(run, expr, mask);
    if (!a) {
      evaluate(run, expr->a, mask);
      return value_varying(&run->values);
    }
    run_access(run, expr, a, mask, true, false, false, 0);
    return load(run, a, mask);
  case EXPR_ADDRESS:
    a = address_of(run, expr->a, mask);
    return a ? a : value_unknown(&run->values);
  case EXPR_UNKNOWN:
    b = NULL;
    for (uint32_t i = 0; i < expr->operand_count; i++) {
      a = evaluate(run, expr->operands[i], mask);
      if (value_agreement(a, mask, run->threads) != AGREE_BLOCK) b = a;
    }
    return b ? value_varying(&run->values) : value_unknown(&run->values);
  }
  return value_varying(&run->values);
}

// --- Statements

static void execute_both(struct run *run, const struct cuda_stmt *stmt, const struct value *condition, uint8_t *mask) {
  const struct range *warp_differs = run->warp_differs, *block_differs = run->block_differs;
  enum agreement agreed = value_agreement(condition, mask, run->threads);
  if (agreed == AGREE_NONE) run->warp_differs = run->block_differs = &stmt->range;
  if (agreed == AGREE_WARP) run->block_differs = &stmt->range;
  uint8_t *yes = copy_mask(run, mask), *no = copy_mask(run, mask);
  struct value **before = copy_variables(run), **after;
  run->conditions++;
  if (stmt->body) execute(run, stmt->body, yes);
  after = copy_variables(run);
  memcpy(run->variables, before, sizeof *before * run->variable_count);
  if (stmt->other) { // only one of the two runs: what they touch does not meet
    run->block_barriers++;
    execute(run, stmt->other, no);
  }
  before = copy_variables(run);
  merge_variables(run, after, before);
  if (agreed != AGREE_BLOCK) // what was assigned differs as the condition does
    for (uint32_t i = 0; i < run->variable_count; i++)
      if (after[i] != before[i] && after[i] && before[i]) run->variables[i] = flagged(run, value_varying(&run->values), run->variables[i]->flags, run->variables[i]->blame);
  run->conditions--;
  run->warp_differs = warp_differs, run->block_differs = block_differs;
  for (uint32_t t = 0; t < run->threads; t++) {
    if (mask[t] && !(yes[t] && no[t]) && (yes[t] || no[t]) && agreed != AGREE_BLOCK) run->may_have_left = &stmt->range;
    mask[t] &= yes[t] | no[t];
  }
}

static void execute_if(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  struct value *condition = evaluate(run, stmt->expr, mask);
  if (!value_is_known(condition, mask, run->threads)) {
    execute_both(run, stmt, condition, mask);
    return;
  }
  uint8_t *yes = copy_mask(run, mask), *no = copy_mask(run, mask);
  for (uint32_t t = 0; t < run->threads; t++) {
    bool is_true = mask[t] && value_cell(condition, t).c;
    yes[t] &= is_true;
    no[t] &= !is_true;
  }
  if (stmt->body && !is_empty(run, yes)) execute(run, stmt->body, yes);
  if (stmt->other && !is_empty(run, no)) execute(run, stmt->other, no);
  for (uint32_t t = 0; t < run->threads; t++) mask[t] &= yes[t] | no[t];
}

static struct inspect_loop *loop_of(struct run *run, const struct cuda_stmt *stmt) {
  struct list *loops = &run->report->loops;
  for (uint32_t i = 0; i < loops->count; i++)
    if (list_at(loops, struct inspect_loop, i)->range.line == stmt->range.line && list_at(loops, struct inspect_loop, i)->range.column == stmt->range.column)
      return list_at(loops, struct inspect_loop, i);
  struct inspect_loop *loop = arena_new(run->diag->arena, struct inspect_loop);
  loop->range = stmt->range;
  loop->text = inspect_text(run->diag, stmt->range);
  list_push(run->diag->arena, loops, loop);
  return loop;
}

static void one_round(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  struct loop_exits exits = {arena_array(run->arena, uint8_t, run->threads), arena_array(run->arena, uint8_t, run->threads)}, *outer = run->loop;
  run->loop = &exits;
  if (stmt->body) execute(run, stmt->body, mask);
  run->loop = outer;
  for (uint32_t t = 0; t < run->threads; t++) mask[t] |= exits.continued[t];
  if (stmt->step && !is_empty(run, mask)) evaluate(run, stmt->step, mask);
}

static void unknown_rounds(struct run *run, const struct cuda_stmt *stmt, const struct value *condition, uint8_t *mask) {
  const struct range *warp_differs = run->warp_differs, *block_differs = run->block_differs;
  enum agreement agreed = condition ? value_agreement(condition, mask, run->threads) : AGREE_BLOCK;
  if (agreed == AGREE_NONE) run->warp_differs = run->block_differs = &stmt->range;
  if (agreed == AGREE_WARP) run->block_differs = &stmt->range;
  run->conditions++;
  for (int round = 0; round < 2; round++) {
    struct value **before = copy_variables(run);
    uint8_t *inside = copy_mask(run, mask);
    one_round(run, stmt, inside);
    for (uint32_t i = 0; i < run->variable_count; i++)
      if (before[i] && run->variables[i] && before[i] != run->variables[i])
        run->variables[i] = value_repeat(&run->values, before[i], run->variables[i]);
    if (round == 0 && stmt->expr) evaluate(run, stmt->expr, mask);
  }
  run->conditions--;
  run->warp_differs = warp_differs, run->block_differs = block_differs;
  for (uint32_t t = 0; t < run->threads; t++) mask[t] &= (uint8_t)!(run->frame->returned[t]);
}

// Whether evaluating it twice is no other than once.
static bool is_plain(const struct cuda_expr *expr) {
  if (expr->kind == EXPR_BINARY) return is_plain(expr->a) && is_plain(expr->b);
  if (expr->kind == EXPR_CAST || expr->kind == EXPR_UNARY) return is_plain(expr->a);
  return expr->kind == EXPR_INTEGER || expr->kind == EXPR_VARIABLE || expr->kind == EXPR_BUILTIN;
}

static bool changes_expr(const struct cuda_expr *expr, const struct cuda_variable *variable) {
  if (!expr) return false;
  if ((expr->kind == EXPR_ASSIGN || expr->kind == EXPR_STEP || expr->kind == EXPR_ADDRESS) && expr->a->kind == EXPR_VARIABLE && expr->a->variable == variable) return true;
  for (uint32_t i = 0; i < expr->operand_count; i++)
    if (changes_expr(expr->operands[i], variable)) return true;
  return changes_expr(expr->a, variable) || changes_expr(expr->b, variable) || changes_expr(expr->c, variable);
}

// Whether a loop's body changes its counter, or may leave the loop.
static bool changes(const struct cuda_stmt *stmt, const struct cuda_variable *counter) {
  if (!stmt) return false;
  if (stmt->kind == STMT_BREAK || stmt->kind == STMT_RETURN) return true;
  for (uint32_t i = 0; i < stmt->stmts.count; i++)
    if (changes(list_at(&stmt->stmts, struct cuda_stmt, i), counter)) return true;
  return changes_expr(stmt->expr, counter) || changes_expr(stmt->step, counter) || changes(stmt->first, counter) || changes(stmt->body, counter) ||
         changes(stmt->other, counter);
}

// The rounds of `for (..; i < END; i += STEP)` where all that is known and the same for all threads, which needs no round to be run; -1: not such a loop.
static int64_t count_rounds(struct run *run, const struct cuda_stmt *stmt, const uint8_t *mask) {
  const struct cuda_expr *test = stmt->expr, *step = stmt->step, *counter = test ? test->a : NULL;
  if (!test || !step || stmt->tests_last || test->kind != EXPR_BINARY || test->op < CUDA_LT || test->op > CUDA_NE) return -1;
  if (step->kind != EXPR_STEP && (step->kind != EXPR_ASSIGN || step->op == CUDA_NO_OP)) return -1;
  while (counter && counter->kind == EXPR_CAST) counter = counter->a;
  if (!counter || counter->kind != EXPR_VARIABLE || step->a->kind != EXPR_VARIABLE || step->a->variable != counter->variable) return -1;
  if (is_memory_object(counter->variable) || counter->type.kind != CUDA_INTEGER || !is_plain(test->b) || (step->b && !is_plain(step->b))) return -1;
  if (changes(stmt->body, counter->variable)) return -1;
  struct value *now = value_of_variable(run, counter->variable), *end = evaluate(run, test->b, mask), *by = value_constant(&run->values, 1);
  if (step->kind == EXPR_ASSIGN) by = evaluate(run, step->b, mask);
  if (!now->is_uniform || !end->is_uniform || !by->is_uniform || now->cells->symbol || end->cells->symbol || by->cells->symbol) return -1;
  int64_t at = now->cells->c, goes_on, next;
  for (int64_t rounds = 0; rounds <= MAX_TRIPS; rounds++, at = next) {
    if (!value_compute(test->op, at, end->cells->c, test->a->type, &goes_on) || !value_compute(step->op, at, by->cells->c, counter->type, &next)) return -1;
    if (!goes_on) return rounds;
    if (next == at) return -1;
  }
  return -1;
}

static void execute_loop(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  struct inspect_loop *loop = loop_of(run, stmt);
  if (stmt->first) execute(run, stmt->first, mask);
  int64_t counted = count_rounds(run, stmt, mask);
  uint8_t *left = arena_array(run->arena, uint8_t, run->threads), *inside = copy_mask(run, mask);
  int64_t rounds = 0;
  for (;; rounds++) {
    struct value *condition = stmt->expr && (rounds || !stmt->tests_last) ? evaluate(run, stmt->expr, inside) : NULL;
    if ((stmt->expr && condition && !value_is_known(condition, inside, run->threads)) || !stmt->expr || rounds >= run->max_rounds || run->report->is_incomplete) {
      loop->trips = counted;
      unknown_rounds(run, stmt, condition && value_is_known(condition, inside, run->threads) ? NULL : condition, inside);
      for (uint32_t t = 0; t < run->threads; t++) mask[t] &= left[t] | inside[t];
      return;
    }
    for (uint32_t t = 0; condition && t < run->threads; t++)
      if (inside[t] && !value_cell(condition, t).c) inside[t] = 0, left[t] = 1;
    if (is_empty(run, inside)) break;
    struct loop_exits exits = {left, arena_array(run->arena, uint8_t, run->threads)}, *outer = run->loop;
    run->loop = &exits;
    if (stmt->body) execute(run, stmt->body, inside);
    run->loop = outer;
    for (uint32_t t = 0; t < run->threads; t++) inside[t] |= exits.continued[t];
    if (stmt->step && !is_empty(run, inside)) evaluate(run, stmt->step, inside);
  }
  if (loop->trips >= 0 && rounds > loop->trips) loop->trips = rounds;
  for (uint32_t t = 0; t < run->threads; t++) mask[t] &= left[t];
}

static void leave(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  uint8_t *to = stmt->kind == STMT_RETURN ? run->frame->returned : !run->loop ? NULL : stmt->kind == STMT_BREAK ? run->loop->broke : run->loop->continued;
  if (stmt->kind == STMT_RETURN && stmt->expr) {
    struct value *result = evaluate(run, stmt->expr, mask);
    struct value **place = &run->frame->result;
    *place = !*place ? result : run->conditions ? value_merge(&run->values, *place, result) : value_select(&run->values, mask, result, *place);
  }
  for (uint32_t t = 0; to && t < run->threads; t++) to[t] |= mask[t];
  memset(mask, 0, run->threads);
}

static void execute(struct run *run, const struct cuda_stmt *stmt, uint8_t *mask) {
  run->report->is_incomplete |= run->values.is_full;
  if (!stmt || is_empty(run, mask) || run->report->is_incomplete) return;
  if (++run->depth > MAX_DEPTH) {
    run->report->is_incomplete = true;
    run->depth--;
    return;
  }
  switch (stmt->kind) {
  case STMT_EXPR: evaluate(run, stmt->expr, mask); break;
  case STMT_DECLARE:
    if (stmt->variable->space == SPACE_SHARED) break;
    if (stmt->expr && stmt->variable->type.is_array) {
      evaluate(run, stmt->expr, mask);
      break;
    }
    // A variable is new in every round of a loop.
    run->variables[stmt->variable->number] = stmt->expr ? value_convert(&run->values, evaluate(run, stmt->expr, mask), stmt->variable->type) : NULL;
    if (!stmt->expr) run->variables[stmt->variable->number] = value_varying(&run->values);
    break;
  case STMT_IF: execute_if(run, stmt, mask); break;
  case STMT_LOOP: execute_loop(run, stmt, mask); break;
  case STMT_BLOCK:
    for (uint32_t i = 0; i < stmt->stmts.count; i++) execute(run, list_at(&stmt->stmts, struct cuda_stmt, i), mask);
    break;
  case STMT_RETURN:
  case STMT_BREAK:
  case STMT_CONTINUE: leave(run, stmt, mask); break;
  }
  run->depth--;
}

// --- Kernels

static void choose_block(struct kernel_report *report, const struct inspect_sizes *sizes) {
  for (int d = 0; d < 3; d++) report->block[d] = sizes->block[d] ? sizes->block[d] : 1;
  if (sizes->block[0]) return;
  int64_t bound = report->kernel->bound_threads;
  report->block_is_assumed = bound < 1 || bound > INSPECT_MAX_THREADS;
  report->block[0] = report->block_is_assumed ? 256 : (uint32_t)bound;
  report->block[1] = report->block[2] = 1;
}

static void collect_shared(struct run *run, const struct cuda_stmt *stmt) {
  if (!stmt) return;
  if (stmt->kind == STMT_DECLARE && stmt->variable->space == SPACE_SHARED) {
    list_push(run->diag->arena, &run->report->shared, stmt->variable);
    run->report->shared_bytes += stmt->variable->type.bytes;
  }
  for (uint32_t i = 0; i < stmt->stmts.count; i++) collect_shared(run, list_at(&stmt->stmts, struct cuda_stmt, i));
  collect_shared(run, stmt->first);
  collect_shared(run, stmt->body);
  collect_shared(run, stmt->other);
}

// What is run of a block where the whole of it is too much: warps, and rounds of a loop whose rounds are known. Each is tried when the one before it was.
static const struct {
  uint32_t warps, rounds;
} EXTENTS[] = {{INSPECT_MAX_WARPS, 64}, {4, 64}, {4, 8}, {2, 2}, {2, 0}};

// All warps of the block, or the first, the last and some between them.
static void choose_warps(struct kernel_report *report, uint32_t most) {
  report->block_warps = (report->block[0] * report->block[1] * report->block[2] + INSPECT_WARP - 1) / INSPECT_WARP;
  report->warp_count = report->block_warps < most ? report->block_warps : most;
  for (uint32_t w = 0; w < report->warp_count; w++)
    report->warps[w] = report->warp_count == report->block_warps || w < report->warp_count / 2 ? w : report->block_warps - report->warp_count + w;
}

static void run_kernel(struct diag *diag, struct arena *arena, const struct cuda_module *module, const struct inspect_sizes *sizes, struct kernel_report *report) {
  struct run run = {.diag = diag, .arena = arena, .sizes = sizes, .report = report, .variable_count = module->variables.count, .max_rounds = report->max_rounds};
  uint32_t threads = report->block[0] * report->block[1] * report->block[2], lanes = threads % INSPECT_WARP;
  run.threads = report->warp_count * INSPECT_WARP - (lanes ? INSPECT_WARP - lanes : 0);
  values_init(&run.values, run.arena, run.threads);
  run.variables = arena_array(run.arena, struct value *, run.variable_count + 1);
  run.shadows = arena_array(run.arena, struct shadow_word *, run.variable_count + 1);
  struct frame frame = {NULL, arena_array(run.arena, uint8_t, run.threads), NULL};
  run.frame = &frame;
  uint8_t *mask = arena_array(run.arena, uint8_t, run.threads);
  memset(mask, 1, run.threads);
  collect_shared(&run, report->kernel->body);
  execute(&run, report->kernel->body, mask);
  for (uint32_t i = 0; i < module->launches.count; i++) {
    const struct cuda_launch *launch = list_at(&module->launches, struct cuda_launch, i);
    if (strcmp(launch->kernel, report->kernel->name) == 0)
      run_find(&run, FINDING_GRID_DIMENSION, launch->range, "grid.%c of '%s' is '%s', which can pass 65535", launch->dimension, launch->kernel, launch->text);
  }
}

void inspect_kernel(struct diag *diag, const struct cuda_module *module, const struct cuda_function *kernel, const struct inspect_sizes *sizes,
                    struct kernel_report *report) {
  for (size_t i = 0; i < sizeof EXTENTS / sizeof *EXTENTS; i++) {
    struct arena arena;
    *report = (struct kernel_report){.kernel = kernel, .max_rounds = EXTENTS[i].rounds};
    choose_block(report, sizes);
    choose_warps(report, EXTENTS[i].warps);
    arena_init(&arena);
    run_kernel(diag, &arena, module, sizes, report);
    arena_destroy(&arena);
    if (!report->is_incomplete) break;
  }
}
