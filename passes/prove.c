// prove: what code generation relies on.
//
//   let other = shfl_down(0x7ff, x, 1)                  proved for every thread: its lane is in the mask, the
//   mask is the same in all store_flat B[i] = select(lt(lane, 10), ...)         lanes that it names, all of
//   them come, and what is stored is none that a lane
//                                                       outside the mask gave
//
// Requires LEVEL_PROGRAM without ALLREDUCE. Changes nothing. Every shuffle, barrier, index into shared or
// local memory and access of shared memory is followed for all threads of the block (prove.h); what cannot be
// proved is an internal error, or the user's where the IR came as text or a schedule takes copies apart. Costs a few operations a statement
// and thread; nothing for entries that have none of these, or that pass `barriers` has proved as they are.
#include "passes/prove.h"

#include <string.h>

static bool is_of_schedule(const struct ir_entry *entry, const struct proof_fault *fault) {
  bool is_barrier = fault->kind == PROOF_DIVERGENT && strcmp(fault->statement, "barrier") == 0; // pass barriers put it between accesses that it cannot tell apart
  bool may_be = fault->kind == PROOF_LIMIT || (entry->has_copies && (fault->kind >= PROOF_BOUNDS || is_barrier));
  return may_be && !entry->is_automatic;
}

void proof_report(struct pass_context *context, const char *pass, const struct ir_entry *entry, const struct proof_fault *fault, const char *tail) {
  if (context->is_from_ir) {
    diag_error(context->diag, ERROR_IR_VERIFY, fault->range, "entry '%s', %s: %s%s", entry->name, fault->statement, fault->message, tail);
  } else if (is_of_schedule(entry, fault)) {
    diag_error(context->diag, ERROR_UNPROVED, fault->range, "the schedule of '%s' is not proved: in %s, %s%s", entry->name, fault->statement, fault->message, tail);
    diag_note(context->diag, entry->range, "legal here: fewer loops and threads; axes split by constants, and in front of `stage`; or, behind it, axes of the copy alone");
  } else {
    diag_internal(context->diag, pass, fault->range, "entry '%s', %s: %s%s", entry->name, fault->statement, fault->message, tail);
  }
  if (fault->other_message && fault->other.line)
    diag_note(context->diag, fault->other, "%s", fault->other_message);
}

// --- The proof, for a person -------------------------------------------------------------------------

static bool is_same_mask(const struct proof_collective *a, const struct proof_collective *b) {
  return strcmp(a->name, b->name) == 0 && a->range.line == b->range.line &&
         a->range.column == b->range.column && a->has_segments == b->has_segments &&
         (a->masks == b->masks ||
          (a->masks && b->masks && memcmp(a->masks, b->masks, sizeof *a->masks * a->warps) == 0));
}

static void explain_masks(const struct proof_collective *c, struct text *out) {
  const char *separator = ": mask";
  for (uint32_t warp = 0, end; c->masks && warp < c->warps; warp = end) {
    for (end = warp + 1; end < c->warps && c->masks[end] == c->masks[warp];) end++;
    if (c->masks[warp])
      text_printf(out, "%s 0x%08x", separator, c->masks[warp]);
    else
      text_printf(out, "%s none", separator);
    if (end == warp + 1 && c->warps > 1)
      text_printf(out, " in warp %u", warp);
    else if (c->warps > 1)
      text_printf(out, " in warps %u to %u", warp, end - 1);
    separator = ",";
  }
  if (c->has_segments) text_puts(out, ", and others for other segments");
}

static void explain(const struct ir_entry *entry, const struct proof *proof, struct text *out) {
  for (uint32_t i = 0, end; i < proof->collectives.count; i = end) {
    const struct proof_collective *c = proof->collectives.at[i];
    for (end = i + 1; end < proof->collectives.count && is_same_mask(c, proof->collectives.at[end]);) end++;
    text_printf(out, "%s:%u:%u: %s", entry->name, c->range.line, c->range.column, c->name);
    if (end - i > 1) text_printf(out, " (%u times)", end - i);
    explain_masks(c, out);
    text_puts(out, ": proved\n");
  }
}

bool pass_prove(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct proof own;
  const struct proof *proof = entry->proof;
  if (!proof_is_needed(entry)) return true;
  if (!proof) {
    proof_run(context->arena, kernel, entry, 0, &own);
    proof = &own;
  }
  for (uint32_t i = 0; i < proof->faults.count; i++) proof_report(context, "prove", entry, proof->faults.at[i], "");
  if (proof->faults.count) return false;
  if (context->explain && !entry->is_general) explain(entry, proof, context->explain);
  return true;
}
