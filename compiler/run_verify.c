#include "compiler/run_verify.h"

#include "compiler/reference.h"
#include "compiler/run_compare.h"
#include "compiler/run_element.h"
#include "compiler/run_progress.h"

#include <inttypes.h>

static const struct range nowhere;

bool verify_reference(struct run_program *program, const struct buffer *const *buffers, bool is_wide,
                      uint64_t *elements) {
  const struct ir_kernel *kernel = program->kernel;
  char error[512];
  struct reference_count count;
  struct progress progress;
  struct reference_tensor *tensors =
      arena_array(&program->c.arena, struct reference_tensor, kernel->tensors.count + 1);
  for (uint32_t t = 0; t < kernel->tensors.count; t++)
    tensors[t] = (struct reference_tensor){buffer_data(buffers[t]), buffers[t]->strides};
  struct reference_input input = {.tensors = tensors,
                                  .scalars = program->arguments.scalars,
                                  .sizes = program->arguments.sizes,
                                  .is_wide = is_wide,
                                  .progress = progress_update,
                                  .progress_state = &progress};
  progress_begin(&progress, "reference");
  bool ok = reference_run(kernel, program->entry, &input, &count, error, sizeof error);
  progress_end(&progress);
  *elements = count.elements;
  if (!ok) diag_internal(&program->c.diag, "reference", nowhere, "%s", error);
  return ok;
}

// The row-major number of an element as its indices: "3, 17".
static const char *index_text(struct run_program *program, const struct buffer *buffer, int64_t flat) {
  const char *text = "";
  for (uint32_t d = buffer->rank; d-- > 0; flat /= buffer->dims[d])
    text =
        arena_printf(&program->c.arena, "%" PRId64 "%s%s", flat % buffer->dims[d], *text ? ", " : "", text);
  return text;
}

static const char *element_text(struct run_program *program, const struct buffer *buffer, int64_t flat) {
  struct text text = {0};
  const uint8_t *element = buffer_data(buffer);
  for (uint32_t d = buffer->rank; d-- > 0; flat /= buffer->dims[d])
    element += flat % buffer->dims[d] * buffer->strides[d] * (int64_t)type_bytes(buffer->type);
  element_print(&text, buffer->type, element);
  const char *copy = arena_strdup(&program->c.arena, text.data);
  text_free(&text);
  return copy;
}

static bool compare_output(struct run_program *program, uint32_t t, const struct buffer *want,
                           const struct buffer *wide, uint64_t steps) {
  const struct ir_mem *mem = list_at(&program->kernel->tensors, struct ir_mem, t);
  const struct buffer *got = &program->arguments.tensors[t].buffer;
  struct comparison result;
  enum exactness exactness = compare_exactness(program->kernel, program->entry, mem);
  if (compare_buffers(got, want, wide, exactness, steps, &result)) return true;
  program_refuse(program, ERROR_DIFFERENCE,
                 "%" PRId64 " of %" PRId64 " elements of '%s' differ from the reference", result.different,
                 got->count, got->name);
  if (exactness == ROUNDED)
    diag_note(&program->c.diag, nowhere, "the worst is %s[%s] = %s, expected %s within %.3g", got->name,
              index_text(program, got, result.worst), element_text(program, got, result.worst),
              element_text(program, want, result.worst), result.tolerance);
  else
    diag_note(&program->c.diag, nowhere, "the %s is %s[%s] = %s, expected %s",
              exactness == EXACT_BITS ? "first" : "worst", got->name, index_text(program, got, result.worst),
              element_text(program, got, result.worst), element_text(program, want, result.worst));
  return false;
}

bool verify_begin(struct run_program *program, struct expectation *expectation) {
  uint32_t count = program->kernel->tensors.count;
  char error[256];
  expectation->want = arena_array(&program->c.arena, struct buffer, count + 1);
  expectation->wide = arena_array(&program->c.arena, struct buffer, count + 1);
  for (uint32_t t = 0; t < count; t++) {
    const struct buffer *buffer = &program->arguments.tensors[t].buffer;
    if (list_at(&program->kernel->tensors, struct ir_mem, t)->is_output &&
        (!buffer_copy(&expectation->want[t], buffer, error, sizeof error) ||
         !buffer_copy(&expectation->wide[t], buffer, error, sizeof error)))
      return program_refuse(program, ERROR_FILE, "%s", error);
  }
  return true;
}

void verify_end(struct run_program *program, struct expectation *expectation) {
  for (uint32_t t = 0; expectation->want && t < program->kernel->tensors.count; t++) {
    buffer_free(&expectation->want[t]);
    buffer_free(&expectation->wide[t]);
  }
}

bool verify_outputs(struct run_program *program, struct expectation *expectation) {
  uint32_t count = program->kernel->tensors.count;
  const struct buffer **want = arena_array(&program->c.arena, const struct buffer *, count + 1);
  const struct buffer **wide = arena_array(&program->c.arena, const struct buffer *, count + 1);
  bool rounds = false, ok = true;
  for (uint32_t t = 0; t < count; t++) {
    struct ir_mem *mem = list_at(&program->kernel->tensors, struct ir_mem, t);
    const struct buffer *buffer = &program->arguments.tensors[t].buffer;
    want[t] = mem->is_output ? &expectation->want[t] : buffer;
    wide[t] = mem->is_output ? &expectation->wide[t] : buffer;
    rounds = rounds || (mem->is_output && compare_exactness(program->kernel, program->entry, mem) == ROUNDED);
  }
  if (!expectation->steps && (!verify_reference(program, want, false, &expectation->steps) ||
                              (rounds && !verify_reference(program, wide, true, &expectation->steps))))
    return false;
  if (!expectation->steps) expectation->steps = 1; // nothing to evaluate
  for (uint32_t t = 0; t < count; t++)
    if (list_at(&program->kernel->tensors, struct ir_mem, t)->is_output)
      ok &= compare_output(program, t, want[t], wide[t], expectation->steps);
  return ok;
}
