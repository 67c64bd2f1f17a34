// Rows that lie one behind another in memory, copied to shared memory as one run.
#include "passes/automatic_reduce.h"

// Whether blocks of rows are runs of memory that one stage reads, each element once, and nothing else moves with the rows and along them.
bool staged_fits(struct chooser *c) {
  enum { ASYNC_SM = 80 };
  const struct view_access *main = c->view.main;
  struct facts *facts = &main->stage->facts;
  if (c->view.a->context->options->target->sm < ASYNC_SM || c->length < 1 || c->row.outer.count || c->stages || c->view.space_count != 1 || !reduce_is_shared(&c->view)) return false;
  if (main->is_store || main->mem->is_output || main->mem->is_strided || !c->view.common.count || c->view.is_dependent || main->stage->stage->guards.count) return false;
  struct fused kept = view_fuse(&c->view, main->stage, &c->view.common, false);
  if (kept.outer.count || !kept.is_sorted || !c->row.is_sorted) return false;
  struct poly rest = main->offset;
  const struct list *lists[] = {&c->row.inner, &kept.inner};
  struct poly step = poly_constant(facts, 1); // each axis moves as far as all those inside it
  for (uint32_t l = 0; l < 2; l++)
    for (uint32_t i = lists[l]->count; i-- > 0;) {
      struct ir_axis *axis = lists[l]->at[i];
      struct poly stride, left;
      if (!poly_linear(facts, rest, axis->var, &stride, &left) || !poly_equal(facts, stride, step)) return false;
      rest = left;
      step = poly_mul(facts, step, poly_of(facts, axis->extent));
    }
  if (!poly_is_zero(rest)) return false;
  for (uint32_t i = 0; i < c->view.accesses.count; i++) {
    const struct view_access *access = c->view.accesses.at[i];
    bool moves_along = false, moves_across = false;
    if (access == main) continue;
    if (access->mem == main->mem && access->stage == main->stage && poly_equal(facts, access->offset, main->offset)) continue;
    if (access->mem == main->mem) return false;
    for (uint32_t l = 0; l < 2; l++)
      for (uint32_t k = 0; k < lists[l]->count; k++) {
        struct poly stride = view_stride(&c->view, access, lists[l]->at[k]);
        *(l ? &moves_across : &moves_along) |= !stride.is_valid || !poly_is_zero(stride);
      }
    if (moves_along && moves_across) return false;
  }
  return true;
}

// Rows of an odd number of elements, which loads of 16 bytes do not fit, that come from memory: copies of 16 bytes fit their run. Without the hint that only
// sizes known here allow it gains nothing. An H200, 2^20 rows, staged and with lanes, in parts of the time that reading takes: f32, 25 elements 0.99 and 0.88, 27
// 0.99 and 0.91, 31 1.00 and 0.94, 33 1.00 and 0.95, 37 0.99 and 0.99, 41 0.99 and 0.99, 49 1.00 and 0.83, 57 1.00 and 0.92, 65 1.00 and 0.97, but 21 0.98 and 1.00,
// 75 0.99 and 1.00; f16, 33 0.97 and 0.64, 65 0.95 and 0.59, 127 0.97 and 0.82.
bool staged_wants(struct chooser *c) {
  int64_t least = c->bytes == 4 ? 23 : 33, most = c->bytes == 4 ? 73 : c->bytes < 4 ? 127 : 39;
  if (c->view.a->context->options->batch_invariant || c->vector > 1 || c->length < least || c->length > most || !reduce_cache(c, HINT_MOST_ROWS)) return false;
  return c->rows * c->length * c->bytes % LINE == 0 && staged_fits(c);
}

void staged_write(struct chooser *c) {
  struct staged_form form = {.name = reduce_class_names[CLASS_STAGED], .tensor = c->view.main->mem->label, .lanes = 1, .rows = 64, .vector = LINE / c->bytes, .read = 1, .fuse_all = c->fuse_all};
  if (c->vector * c->bytes == LINE) form.lanes = 8, form.rows = 32, form.read = c->vector; // a thread a row would read one bank with others
  form.cache = reduce_cache(c, HINT_MOST_ROWS);
  form.reason = reduce_say(c, "%s elements a row: %d rows are copied to shared memory as one run, %d bytes at a time, %s", c->length_text, form.rows, form.vector * c->bytes,
                    form.lanes == 1 ? "and a thread adds up a row" : reduce_say(c, "and %d lanes add up a row", form.lanes));
  write_staged(&c->view, &form);
}
