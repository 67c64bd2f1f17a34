// index: flat offsets, 32 or 64 bits wide.
//
//   store B[i] = load(A, i, j)                          // A: f32[n, 11]
//   ->
//   store_flat B[i] = load_flat(A, add(mul(i, 11), j))  // and index becomes i32
//
// Requires LEVEL_PROGRAM. The fast entry uses 32 bits where every tensor spans less than 2^31 bytes and no axis, its last step included,
// reaches 2^31: what sizes decide becomes an assumption of the entry, and the general entry behind it, with 64 bits, takes the
// launches for which it is false. Where the sizes are known and are too large, the fast entry has 64 bits too. An entry that is never, or always,
// needed is dropped. Afterwards no value has type index.
#include <string.h>

#include "compiler/pass.h"
#include "passes/offset.h"

struct flatten {
  struct arena *arena;
  struct lets lets;
  struct list tensors; // struct ir_mem, global ones that are accessed
};

// The offset in an object whose units are permuted: of a unit's number, bits base.. ^= bits base+shift..
static struct ir_expr *swizzle(struct arena *arena, const struct ir_mem *mem, struct ir_expr **indices, uint32_t count) {
  struct ir_expr *place = ir_int(arena, TYPE_INDEX, 0);
  uint32_t units = mem->unit > 1 ? count - 1 : count;
  int64_t unit = mem->unit > 1 ? mem->unit : 1, mask = (((int64_t)1 << mem->swizzle_bits) - 1) << mem->swizzle_base;
  for (uint32_t d = 0; d < units; d++) {
    struct ir_expr *stride = ir_int(arena, TYPE_INDEX, ((struct ir_expr *)mem->strides.at[d])->integer / unit);
    place = ir_binary(arena, OP_ADD, place, ir_binary(arena, OP_MUL, indices[d], stride));
  }
  struct ir_expr *high = ir_binary(arena, OP_SHR, place, ir_int(arena, TYPE_INDEX, mem->swizzle_shift));
  place = ir_binary(arena, OP_XOR, place, ir_binary(arena, OP_AND, high, ir_int(arena, TYPE_INDEX, mask)));
  if (unit == 1) return place;
  return ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, place, ir_int(arena, TYPE_INDEX, unit)), indices[units]);
}

static struct ir_expr *flat_offset(struct flatten *f, const struct ir_mem *mem, struct ir_expr **indices, uint32_t count) {
  struct arena *arena = f->arena;
  if (mem->swizzle_bits) return swizzle(arena, mem, indices, count);
  struct ir_expr *offset = ir_int(arena, TYPE_INDEX, 0);
  struct offset_term *terms = arena_array(arena, struct offset_term, count + 1);
  count = offset_terms(&f->lets, mem, indices, count, terms);
  for (uint32_t d = 0; d < count; d++) {
    struct ir_expr *stride = ir_cast(arena, TYPE_INDEX, terms[d].stride);
    if (ir_is_const(terms[d].stride)) stride = ir_int(arena, TYPE_INDEX, terms[d].stride->integer);
    offset = ir_binary(arena, OP_ADD, offset, ir_binary(arena, OP_MUL, terms[d].index, stride));
  }
  return offset;
}

static void note_tensor(struct flatten *f, struct ir_mem *mem) {
  if (mem->space != SPACE_GLOBAL) return;
  for (uint32_t i = 0; i < f->tensors.count; i++)
    if (f->tensors.at[i] == mem) return;
  list_push(f->arena, &f->tensors, mem);
}

static struct ir_expr *flatten_load(struct arena *arena, struct ir_expr *e, void *state) {
  if (e->op != OP_LOAD) return e;
  note_tensor(state, e->mem);
  struct ir_expr *offset = flat_offset(state, e->mem, e->args, e->count);
  struct ir_expr *load = ir_raw(arena, OP_LOAD_FLAT, e->type, &offset, 1);
  load->mem = e->mem;
  load->range = e->range;
  return load;
}

static void flatten_stores(struct flatten *f, struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->mem && !stmt->is_flat) {
      note_tensor(f, stmt->mem);
      struct ir_expr *offset = flat_offset(f, stmt->mem, (struct ir_expr **)stmt->indices.at, stmt->indices.count);
      stmt->indices = (struct list){0};
      list_push(f->arena, &stmt->indices, offset);
      stmt->is_flat = true;
    }
    flatten_stores(f, &stmt->body);
    flatten_stores(f, &stmt->otherwise);
  }
}

// The bytes from the lowest to the highest address of a tensor, as an i64 expression of sizes.
static struct ir_expr *span(struct arena *arena, const struct ir_mem *mem) {
  struct ir_expr *elements = ir_int(arena, TYPE_I64, 1), *one = elements, *zero = ir_int(arena, TYPE_I64, 0);
  for (uint32_t d = 0; d < mem->dims.count; d++) {
    struct ir_expr *stride = mem->strides.at[d], *steps = ir_binary(arena, OP_SUB, mem->dims.at[d], one);
    if (mem->is_strided) {
      stride = ir_binary(arena, OP_MAX, stride, ir_unary(arena, OP_NEG, stride));
      steps = ir_binary(arena, OP_MAX, steps, zero);
    }
    elements = ir_binary(arena, OP_ADD, elements, ir_binary(arena, OP_MUL, steps, stride));
  }
  return ir_binary(arena, OP_MUL, elements, ir_int(arena, TYPE_I64, type_bytes(mem->type)));
}

// A dense tensor's span is its number of elements.
static struct ir_expr *dense_span(struct arena *arena, const struct ir_mem *mem) {
  struct ir_expr *bytes = ir_int(arena, TYPE_I64, type_bytes(mem->type));
  for (uint32_t d = 0; d < mem->dims.count; d++) bytes = ir_binary(arena, OP_MUL, bytes, mem->dims.at[d]);
  return bytes;
}


static void narrow_expr(struct ir_expr *e, void *state) {
  enum type type = *(enum type *)state;
  if (e->op == OP_VAR && e->var->type == TYPE_INDEX) e->var->type = type, e->var->was_index = e->var->kind == VAR_LET;
  if (e->type == TYPE_INDEX) {
    e->type = type;
    if (e->op == OP_CONST && type == TYPE_I32) e->integer = (int32_t)e->integer;
  }
}

static void narrow_vars(const struct list *block, enum type type) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->var && stmt->var->type == TYPE_INDEX) stmt->var->type = type, stmt->var->was_index = stmt->var->kind == VAR_LET;
    narrow_vars(&stmt->body, type);
    narrow_vars(&stmt->otherwise, type);
  }
}

static struct ir_expr *drop_casts(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena, (void)state;
  return e->op == OP_CAST && e->args[0]->type == e->type ? e->args[0] : e;
}

static uint32_t place_of(const struct ir_kernel *kernel, const struct ir_entry *entry) {
  for (uint32_t i = 0; i < kernel->entries.count; i++)
    if (kernel->entries.at[i] == entry) return i;
  return UINT32_MAX;
}

// Whether an assumption is about the width of offsets. A condition that never holds is a constant by now: its message tells.
static bool is_about_width(const struct ir_requirement *assumption) { return strstr(assumption->message, "2^31") != NULL; }

// The grid would have more blocks than one launch may have: only the general entry loops over them.
static bool is_grid_too_large(const struct ir_entry *entry) { return entry->grid[0] && ir_const_is(entry->grid[0], INT32_MAX); }

// Takes away the assumptions that always hold. Returns false when one never holds. Where all that never holds is about the width of offsets, these
// are gone too, and *type becomes I64.
static bool settle_assumptions(struct ir_entry *entry, enum type *type) {
  bool possible = true;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < entry->assumptions.count; i++) {
    struct ir_requirement *assumption = entry->assumptions.at[i];
    if (ir_const_is(assumption->condition, 1)) continue;
    if (ir_const_is(assumption->condition, 0) && is_about_width(assumption) && !is_grid_too_large(entry)) {
      *type = TYPE_I64;
      continue;
    }
    if (ir_const_is(assumption->condition, 0)) possible = false;
    entry->assumptions.at[kept++] = assumption;
  }
  entry->assumptions.count = kept;
  return possible;
}

static void assume_spans(struct arena *arena, struct ir_entry *entry, const struct list *tensors) {
  for (uint32_t i = 0; i < tensors->count; i++) {
    struct ir_mem *mem = tensors->at[i];
    struct ir_requirement *assumption = arena_new(arena, struct ir_requirement);
    struct ir_expr *bytes = mem->is_strided ? span(arena, mem) : dense_span(arena, mem);
    assumption->condition = ir_binary(arena, OP_LE, bytes, ir_int(arena, TYPE_I64, 2147483647));
    assumption->message = arena_printf(arena, "'%s' spans 2^31 bytes or more", mem->label);
    assumption->range = entry->range;
    list_push(arena, &entry->assumptions, assumption);
  }
}

// Whether a condition is one of those that another joins by `and`.
static bool is_part(const struct ir_expr *condition, const struct ir_expr *of) {
  for (; of && of->op == OP_AND && of->type == TYPE_BOOL; of = of->args[0])
    if (is_part(condition, of->args[1])) return true;
  return of && ir_equal(condition, of);
}

// Whether the twin assumes all that the entry does, or is not asked for without it: then it is never needed.
static bool is_needless(const struct ir_entry *entry, const struct ir_entry *twin) {
  for (uint32_t i = 0; i < entry->assumptions.count; i++) {
    const struct ir_expr *condition = list_at(&entry->assumptions, struct ir_requirement, i)->condition;
    bool is_shared = is_part(condition, entry->when);
    for (uint32_t k = 0; k < twin->assumptions.count && !is_shared; k++)
      is_shared = ir_equal(condition, list_at(&twin->assumptions, struct ir_requirement, k)->condition);
    if (!is_shared) return false;
  }
  return true;
}

static bool is_of_several_launches(const struct ir_kernel *kernel, const struct ir_entry *entry, uint32_t place) {
  return entry->launch || (place + 1 < kernel->entries.count && list_at(&kernel->entries, struct ir_entry, place + 1)->launch);
}

bool pass_index(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct arena *arena = context->arena;
  struct flatten flatten = {.arena = arena};
  lets_collect(&flatten.lets, arena, &entry->body);
  flatten_stores(&flatten, &entry->body);
  ir_rewrite_block(arena, &entry->body, flatten_load, &flatten);
  uint32_t place = place_of(kernel, entry);
  bool is_one_of_several = is_of_several_launches(kernel, entry, place); // such groups keep their twins
  bool has_twin = place + 1 < kernel->entries.count && list_at(&kernel->entries, struct ir_entry, place + 1)->is_general;
  enum type type = entry->is_general || !(has_twin || is_one_of_several) ? TYPE_I64 : TYPE_I32;
  if (type == TYPE_I32) assume_spans(arena, entry, &flatten.tensors);
  if (type == TYPE_I32 && is_one_of_several) {
    settle_assumptions(entry, &type);
  } else if (type == TYPE_I32) {
    struct ir_entry *twin = kernel->entries.at[place + 1];
    if (!settle_assumptions(entry, &type)) { // the general entry takes this one's place
      const char *name = entry->name;
      *entry = *twin;
      entry->name = name;
      entry->is_general = false;
      list_remove(&kernel->entries, place + 1);
      return pass_index(context, kernel, entry);
    }
    if (is_needless(entry, twin)) list_remove(&kernel->entries, place + 1);
  }
  ir_visit_block(&entry->body, narrow_expr, &type);
  narrow_vars(&entry->body, type);
  ir_rewrite_block(arena, &entry->body, drop_casts, NULL);
  entry->index_type = type;
  return true;
}
