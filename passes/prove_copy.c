// Asynchronous copies to shared memory, for all threads at once.
//
// A copy writes its words at some time between the statement and the wait behind it, in the threads that made it. So it is a write where it stands,
// which what came before must be ordered with, and again where its thread waits, from where barriers order it with what comes behind. In between
// nobody may touch the words, whatever barriers stand there: what is read is not there yet, what is written may be lost.
#include "passes/prove_engine.h"

#include <string.h>

// --- Which copies are under way ------------------------------------------------------------------------

static struct copy *new_copy(struct prover *p, const struct far_access *access, struct copy *next) {
  struct copy *copy = arena_new(p->scratch, struct copy);
  struct unknown *unknowns = arena_array(p->scratch, struct unknown, p->unknown_count + 1);
  memcpy(unknowns, p->unknowns, sizeof *unknowns * p->unknown_count);
  *copy = (struct copy){next, access, 0, unknowns, p->unknown_count};
  return copy;
}

static struct copy *push(struct prover *p, const struct copy *copy, const struct threads *who, uint32_t commits, struct copy *next) {
  struct copy *pushed = arena_new(p->scratch, struct copy);
  struct far_access *access = arena_new(p->scratch, struct far_access);
  *access = *copy->access;
  access->who = *who;
  *pushed = *copy;
  pushed->access = access;
  pushed->commits = commits;
  pushed->next = next;
  return pushed;
}

// Whether the threads that made a copy and that may be here are here. What is the same in all threads is followed both ways.
static bool comes_surely(const struct prover *p, const struct copy *copy) {
  for (uint32_t i = 0; i < p->unknown_count; i++) {
    const struct unknown *now = &p->unknowns[i];
    bool was_there = now->is_uniform;
    for (uint32_t k = 0; k < copy->unknown_count && !was_there; k++) {
      const struct unknown *then = &copy->unknowns[k];
      was_there = !then->is_uniform && now->source && then->source == now->source && then->truth == now->truth;
    }
    if (!was_there) return false;
  }
  return true;
}

// The threads of a copy that are here, and those that are not.
static void part(const struct prover *p, const struct copy *copy, struct threads *here, struct threads *rest) {
  for (uint32_t i = 0; i < PROVE_SETS; i++) {
    here->bits[i] = copy->access->who.bits[i] & p->may.bits[i];
    rest->bits[i] = copy->access->who.bits[i] & ~p->may.bits[i];
  }
}

static bool is_nobody(const struct threads *s) {
  for (uint32_t i = 0; i < PROVE_SETS; i++)
    if (s->bits[i]) return false;
  return true;
}

static struct copy *reversed(struct copy *list) {
  struct copy *out = NULL;
  while (list) {
    struct copy *next = list->next;
    list->next = out;
    out = list;
    list = next;
  }
  return out;
}

struct copy *copies_merge(struct prover *p, struct copy *a, struct copy *b) {
  struct copy *all = a;
  for (struct copy *copy = b; copy && copy != a; copy = copy->next) {
    bool is_known = false;
    for (struct copy *other = a; other && !is_known; other = other->next)
      is_known = other == copy || (other->access == copy->access && other->commits <= copy->commits);
    p->work++;
    if (!is_known) all = push(p, copy, &copy->access->who, copy->commits, all);
  }
  return all;
}

// --- Accesses ------------------------------------------------------------------------------------------

// Copies of one thread may fall on one word in different iterations of a loop as far as is known of their places: only what is known to be one place is told.
static int order_of(const struct far_access *a, const struct far_access *b, bool is_copy) {
  bool is_exact = !a->index->is_varying && !b->index->is_varying && a->index->base == b->index->base;
  return is_copy && !is_exact ? ORDER_OWN : ORDER_NONE;
}

void copies_meet(struct prover *p, uint32_t object, const struct av *index, bool is_write, uint32_t count) {
  if (!p->memory.copies) return;
  struct far_access *now = memory_far(p, object, index, is_write, count);
  bool is_copy = p->current->stmt->kind == IR_COPY;
  for (const struct copy *copy = p->memory.copies; copy; copy = copy->next) {
    const struct far_access *old = copy->access;
    p->work++;
    if (old->object != object || old->lo > now->hi || now->lo > old->hi) continue;
    p->order = order_of(old, now, is_copy);
    uint32_t t = memory_meeting(p, old, now);
    p->order = ORDER_BARRIERS;
    if (t == PROVE_THREADS) continue;
    prove_fault(p, PROOF_UNDER_WAY, old->node, "the copy is here", "%s may %s a word of '%s' to which an asynchronous copy is under way, with no wait for it between",
                prove_thread_name(p, t), is_write ? "write" : "read", p->objects[object].mem->name);
    return;
  }
}

// --- Statements ----------------------------------------------------------------------------------------

void prove_copy(struct prover *p, struct ir_stmt *stmt) {
  const struct av **indices = arena_array(p->scratch, const struct av *, stmt->indices.count + 1);
  for (uint32_t i = 0; i < stmt->indices.count; i++) {
    indices[i] = prove_eval(p, stmt->indices.at[i]);
    prove_clean(p, indices[i], "an index");
  }
  for (uint32_t i = 0; i < stmt->value->count; i++) prove_clean(p, prove_eval(p, stmt->value->args[i]), "an index");
  const struct av *index = memory_access(p, stmt->mem, indices, stmt->indices.count, stmt->is_flat, true, stmt->count);
  uint32_t object = 0;
  while (object < p->object_count && p->objects[object].mem != stmt->mem) object++;
  if (index && object < p->object_count) p->memory.copies = new_copy(p, memory_far(p, object, index, true, stmt->count), p->memory.copies);
}

void prove_copy_commit(struct prover *p) {
  struct copy *kept = NULL;
  for (struct copy *copy = p->memory.copies; copy; copy = copy->next) {
    struct threads here, rest;
    part(p, copy, &here, &rest);
    bool counts = comes_surely(p, copy) && !is_nobody(&here);
    p->work += 1 + PROVE_SETS;
    if (counts) kept = push(p, copy, &here, copy->commits + 1, kept);
    if (!counts || !is_nobody(&rest)) kept = push(p, copy, counts ? &rest : &copy->access->who, copy->commits, kept);
  }
  p->memory.copies = reversed(kept);
}

void prove_copy_wait(struct prover *p, uint32_t groups) {
  struct copy *kept = NULL;
  for (struct copy *copy = p->memory.copies; copy; copy = copy->next) {
    struct threads here, rest;
    part(p, copy, &here, &rest);
    bool has_landed = (groups == 0 || copy->commits > groups) && !is_nobody(&here);
    p->work += 1 + PROVE_SETS;
    if (has_landed) memory_land(p, push(p, copy, &here, 0, NULL)->access);
    bool is_over = has_landed && comes_surely(p, copy);
    if (!is_over || !is_nobody(&rest)) kept = push(p, copy, is_over ? &rest : &copy->access->who, copy->commits, kept);
  }
  p->memory.copies = reversed(kept);
}
