// barriers: places barriers that shared memory needs, drops those that a proof makes needless.
//
//   store_flat s[thread.x] = x                        store_flat s[thread.x] = x
//   barrier                                           barrier
//   let y = load_flat(s, sub(63, thread.x))     ->    let y = load_flat(s, sub(63, thread.x))
//   barrier                                           barrier
//   barrier
//   store_flat s[thread.x] = y                        store_flat s[thread.x] = y
//   let z = load_flat(s, sub(63, thread.x))           barrier
//                                                     let z = load_flat(s, sub(63, thread.x))
//
// Requires LEVEL_PROGRAM without ALLREDUCE. Keeps every statement but block and warp barriers, and loops and
// branches of nothing else, and their order. Leaves its last proof, which is that of the result, to pass `prove`. The proof of prove.h names two accesses that nothing orders: a block barrier goes in front of the
// second, outside the conditions that only some threads meet. Then, from the last to the first, a barrier
// goes where the program is proved without it; one that alone orders two accesses is not tried. Where memory
// of the device is stored to and read elsewhere in the same entry, all stay: nothing is proved about it. A wait for asynchronous copies goes
// where no copy stands between it and the wait before.
// Faults that no barrier mends are left to pass `prove`. Costs a proof, and one for each barrier placed or
// tried.
#include "passes/prove.h"

enum { MOST_PLACED = 64 };
static const uint64_t MOST_WORK = 1 << 20; // statements times threads, about 5 ms

static bool has_shared_memory(const struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->memory.count; i++)
    if (list_at(&entry->memory, struct ir_mem, i)->space == SPACE_SHARED) return true;
  return false;
}

static bool has_barrier(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_BARRIER || stmt->kind == IR_SYNCWARP || has_barrier(&stmt->body) ||
        has_barrier(&stmt->otherwise))
      return true;
  }
  return false;
}

// --- Memory of the device ----------------------------------------------------------------------------

struct exchange {
  const struct list *body;
  bool is_found;
};

static bool is_stored_elsewhere(const struct list *block, const struct ir_mem *mem,
                                const struct ir_expr *index) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool stores = (stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE) && stmt->mem == mem;
    if (stores &&
        (!index || !stmt->is_flat || stmt->kind == IR_STORE_WIDE || !ir_equal(stmt->indices.at[0], index)))
      return true;
    if (is_stored_elsewhere(&stmt->body, mem, index) || is_stored_elsewhere(&stmt->otherwise, mem, index))
      return true;
  }
  return false;
}

static void find_exchange(struct ir_expr *e, void *state) {
  struct exchange *x = state;
  if ((e->op != OP_LOAD && e->op != OP_LOAD_FLAT) || e->mem->space != SPACE_GLOBAL || !e->mem->is_output)
    return;
  x->is_found |= is_stored_elsewhere(x->body, e->mem, e->op == OP_LOAD_FLAT ? e->args[0] : NULL);
}

static void find_wide_exchange(const struct list *block, struct exchange *x) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LOAD_WIDE && stmt->mem->space == SPACE_GLOBAL && stmt->mem->is_output)
      x->is_found |= is_stored_elsewhere(x->body, stmt->mem, NULL);
    find_wide_exchange(&stmt->body, x);
    find_wide_exchange(&stmt->otherwise, x);
  }
}

// Whether threads may pass values on through memory of the device: it is read in another place than it is
// stored to.
static bool uses_device_memory(const struct ir_entry *entry) {
  struct exchange x = {.body = &entry->body};
  ir_visit_block(&entry->body, find_exchange, &x);
  find_wide_exchange(&entry->body, &x);
  return x.is_found;
}

// --- Placing -----------------------------------------------------------------------------------------

static const struct proof_fault *first_race(const struct proof *proof) {
  for (uint32_t i = 0; i < proof->faults.count; i++) {
    const struct proof_fault *fault = proof->faults.at[i];
    if (fault->kind == PROOF_RACE) return fault;
  }
  return NULL;
}

// Puts a barrier in front of the second access of each race; *proof is that of the result.
static bool place_missing(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry,
                          struct proof *proof) {
  proof_run(context->arena, kernel, entry, 0, proof);
  for (uint32_t placed = 0; first_race(proof); placed++) {
    const struct proof_fault *race = first_race(proof);
    const struct ir_stmt *before = race->place ? race->block->at[race->place - 1] : NULL;
    bool stands_there = before && before->kind == IR_BARRIER;
    if (stands_there || placed == MOST_PLACED) {
      proof_report(context, "barriers", entry, race, ", and no barrier can stand there");
      return false;
    }
    list_insert(context->arena, race->block, race->place, ir_stmt(context->arena, IR_BARRIER, race->range));
    proof_run(context->arena, kernel, entry, 0, proof);
  }
  return true;
}

// --- Dropping ----------------------------------------------------------------------------------------

// Loops and branches that held nothing but barriers.
static void drop_empty(struct list *block) {
  for (uint32_t i = block->count; i-- > 0;) {
    struct ir_stmt *stmt = block->at[i];
    drop_empty(&stmt->body);
    drop_empty(&stmt->otherwise);
    if ((stmt->kind == IR_IF || stmt->kind == IR_FOR) && stmt->body.count == 0 && stmt->otherwise.count == 0) list_remove(block, i);
  }
}

// Stops where the proofs have cost much: a needless barrier is slow, not wrong. *proof is that of the result.
static void drop_needless(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry,
                          struct proof *proof) {
  uint64_t spent = proof->work;
  struct list barriers = proof->barriers;
  bool is_dropped = false;
  for (uint32_t i = barriers.count; i-- > 0 && spent < MOST_WORK;) {
    const struct proof_barrier *barrier = barriers.at[i];
    struct proof without;
    if (barrier->is_required) continue;
    struct ir_stmt *stmt = barrier->block->at[barrier->place];
    list_remove(barrier->block, barrier->place);
    if (proof_run(context->arena, kernel, entry, 1, &without)) {
      *proof = without;
      is_dropped = true;
    } else {
      list_insert(context->arena, barrier->block, barrier->place, stmt);
    }
    spent += without.work;
  }
  if (is_dropped) drop_empty(&entry->body);
}

// --- Waits -------------------------------------------------------------------------------------------

static bool makes_copies(const struct ir_stmt *stmt) {
  if (stmt->kind == IR_COPY || stmt->kind == IR_COPY_COMMIT) return true;
  for (uint32_t i = 0; i < stmt->body.count; i++)
    if (makes_copies(stmt->body.at[i])) return true;
  for (uint32_t i = 0; i < stmt->otherwise.count; i++)
    if (makes_copies(stmt->otherwise.at[i])) return true;
  return false;
}

static void drop_repeated_waits(struct list *block) {
  bool has_waited = false; // for all copies, and made none since
  for (uint32_t i = 0; i < block->count;) {
    struct ir_stmt *stmt = block->at[i];
    drop_repeated_waits(&stmt->body);
    drop_repeated_waits(&stmt->otherwise);
    if (stmt->kind == IR_COPY_WAIT && has_waited) {
      list_remove(block, i);
      continue;
    }
    if (stmt->kind == IR_COPY_WAIT && stmt->count == 0) has_waited = true;
    if (makes_copies(stmt)) has_waited = false;
    i++;
  }
}

bool pass_barriers(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  if (!has_shared_memory(entry) && !has_barrier(&entry->body)) return true;
  struct proof *proof = arena_new(context->arena, struct proof);
  drop_repeated_waits(&entry->body);
  if (!place_missing(context, kernel, entry, proof)) return false;
  if (proof->faults.count == 0 && !uses_device_memory(entry)) drop_needless(context, kernel, entry, proof);
  entry->proof = proof;
  return true;
}
