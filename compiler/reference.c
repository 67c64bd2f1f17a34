#include "compiler/reference.h"

#include "compiler/reference_code.h"

static bool size_value(const struct ir_kernel *kernel, const struct ir_expr *e, const int64_t *sizes,
                       struct value *out) {
  if (e->op == OP_CONST && (type_is_integer(e->type) || e->type == TYPE_BOOL)) {
    *out = value_int(e->type, e->integer);
    return true;
  }
  if (e->op == OP_VAR) {
    for (uint32_t i = 0; i < kernel->sizes.count; i++)
      if (kernel->sizes.at[i] == e->var) {
        *out = value_int(e->type, sizes[i]);
        return true;
      }
    return false;
  }
  struct value args[3];
  if (e->count < 1 || e->count > 3) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!size_value(kernel, e->args[i], sizes, &args[i])) return false;
  return arith_fold(e->op, e->type, args, e->count, out);
}

const struct ir_expr *reference_unwrap(const struct ir_expr *e) {
  while (e->op == OP_CAST && type_class_of(e->type) == CLASS_STORAGE && e->args[0]->op == OP_CAST &&
         type_is_float(e->args[0]->type) && e->args[0]->args[0]->type == e->type)
    e = e->args[0]->args[0];
  return e;
}

bool reference_size(const struct ir_kernel *kernel, const struct ir_expr *e, const int64_t *sizes,
                    int64_t *out) {
  struct value value;
  if (!size_value(kernel, e, sizes, &value) || value.type == TYPE_F32 || value.type == TYPE_F64) return false;
  *out = value.integer;
  return true;
}

// Where no output has an element nothing runs: a stage need not be inside all axes of what reads it.
static bool has_output_elements(const struct ir_kernel *kernel, const int64_t *sizes) {
  for (uint32_t t = 0; t < kernel->tensors.count; t++) {
    const struct ir_mem *mem = kernel->tensors.at[t];
    bool is_empty = !mem->is_output;
    int64_t extent;
    for (uint32_t d = 0; d < mem->dims.count && !is_empty; d++) is_empty = reference_size(kernel, mem->dims.at[d], sizes, &extent) && extent == 0;
    if (!is_empty) return true;
  }
  return false;
}

bool reference_run(const struct ir_kernel *kernel, const struct ir_entry *entry,
                   const struct reference_input *input, struct reference_count *count, char *error,
                   size_t error_bytes) {
  if (count) count->elements = 0;
  if (!has_output_elements(kernel, input->sizes)) return true;
  struct reference_builder *builder = reference_builder_new(kernel, input, error, error_bytes);
  bool ok = builder != NULL;
  for (uint32_t i = 0; ok && i < entry->stages.count; i++)
    ok = reference_build_stage(builder, list_at(&entry->stages, struct ir_stage, i));
  uint64_t elements = 0;
  ok = ok && reference_execute(reference_builder_program(builder), input, &elements, error, error_bytes);
  if (count) count->elements = elements;
  reference_builder_free(builder);
  return ok;
}
