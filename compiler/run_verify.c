#include "compiler/run_verify.h"

#include "compiler/reference.h"
#include "compiler/run_compare.h"
#include "compiler/run_element.h"
#include "compiler/run_progress.h"

#include <inttypes.h>

static const struct range nowhere;

bool verify_reference(struct run_program *program, const struct buffer *const *buffers, enum verify_way way,
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
                                  .is_wide = way == VERIFY_WIDE,
                                  .is_turned = way == VERIFY_TURNED,
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

static bool agrees(struct run_program *program, uint32_t t, const struct expectation *expectation, struct comparison *result) {
  const struct buffer *got = &program->arguments.tensors[t].buffer;
  enum exactness exactness = compare_exactness(program->kernel, program->entry, list_at(&program->kernel->tensors, struct ir_mem, t));
  return compare_buffers(got, &expectation->want[t], &expectation->wide[t], expectation->has_turned ? &expectation->turned[t] : NULL, exactness, expectation->steps, result);
}

static bool compare_output(struct run_program *program, uint32_t t, const struct expectation *expectation) {
  const struct ir_mem *mem = list_at(&program->kernel->tensors, struct ir_mem, t);
  const struct buffer *got = &program->arguments.tensors[t].buffer, *want = &expectation->want[t];
  struct comparison result;
  enum exactness exactness = compare_exactness(program->kernel, program->entry, mem);
  if (agrees(program, t, expectation, &result)) return true;
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

static bool rounds(const struct run_program *program) {
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++) {
    const struct ir_mem *mem = list_at(&program->kernel->tensors, struct ir_mem, t);
    if (mem->is_output && compare_exactness(program->kernel, program->entry, mem) == ROUNDED) return true;
  }
  return false;
}

bool verify_begin(struct run_program *program, struct expectation *expectation) {
  uint32_t count = program->kernel->tensors.count;
  char error[256];
  expectation->want = arena_array(&program->c.arena, struct buffer, count + 1);
  expectation->wide = arena_array(&program->c.arena, struct buffer, count + 1);
  if (rounds(program)) expectation->turned = arena_array(&program->c.arena, struct buffer, count + 1);
  for (uint32_t t = 0; t < count; t++) {
    const struct buffer *buffer = &program->arguments.tensors[t].buffer;
    if (list_at(&program->kernel->tensors, struct ir_mem, t)->is_output &&
        (!buffer_copy(&expectation->want[t], buffer, error, sizeof error) ||
         !buffer_copy(&expectation->wide[t], buffer, error, sizeof error) ||
         (expectation->turned && !buffer_copy(&expectation->turned[t], buffer, error, sizeof error))))
      return program_refuse(program, ERROR_FILE, "%s", error);
  }
  return true;
}

void verify_end(struct run_program *program, struct expectation *expectation) {
  for (uint32_t t = 0; expectation->want && t < program->kernel->tensors.count; t++) {
    buffer_free(&expectation->want[t]);
    buffer_free(&expectation->wide[t]);
    if (expectation->turned) buffer_free(&expectation->turned[t]);
  }
}

// Runs the reference one way: outputs go to copies, one a tensor.
static bool run_reference(struct run_program *program, struct buffer *outputs, enum verify_way way, uint64_t *steps) {
  uint32_t count = program->kernel->tensors.count;
  const struct buffer **buffers = arena_array(&program->c.arena, const struct buffer *, count + 1);
  for (uint32_t t = 0; t < count; t++)
    buffers[t] = list_at(&program->kernel->tensors, struct ir_mem, t)->is_output ? &outputs[t] : &program->arguments.tensors[t].buffer;
  return verify_reference(program, buffers, way, steps);
}

bool verify_outputs(struct run_program *program, struct expectation *expectation) {
  bool ok = true, is_near = true;
  uint64_t steps;
  if (!expectation->steps && (!run_reference(program, expectation->want, VERIFY_PLAIN, &expectation->steps) ||
                              (expectation->turned && !run_reference(program, expectation->wide, VERIFY_WIDE, &expectation->steps))))
    return false;
  if (!expectation->steps) expectation->steps = 1; // nothing to evaluate
  for (uint32_t t = 0; t < program->kernel->tensors.count && is_near; t++) {
    struct comparison result;
    is_near = !list_at(&program->kernel->tensors, struct ir_mem, t)->is_output || agrees(program, t, expectation, &result);
  }
  if (is_near) return true;
  if (expectation->turned && !expectation->has_turned) { // is it the order of a sum that makes the difference?
    if (!run_reference(program, expectation->turned, VERIFY_TURNED, &steps)) return false;
    expectation->has_turned = true;
  }
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++)
    if (list_at(&program->kernel->tensors, struct ir_mem, t)->is_output) ok &= compare_output(program, t, expectation);
  return ok;
}
