#include "compiler/run_kernel.h"

#include "compiler/reference.h"
#include "compiler/run_element.h"
#include "compiler/suggest.h"

#include <inttypes.h>
#include <string.h>

static const struct range nowhere;

static bool refuse(struct kernel_arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct kernel_arguments *a, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(&a->c->arena, format, arguments);
  va_end(arguments);
  diag_error(&a->c->diag, ERROR_ARGUMENT, nowhere, "%s", message);
  return false;
}

static const char *var_label(const struct ir_var *var) {
  return var->label ? var->label : var->name;
}
static const char *mem_label(const struct ir_mem *mem) {
  return mem->label ? mem->label : mem->name;
}
static struct ir_mem *tensor_of(const struct kernel_arguments *a, uint32_t i) {
  return list_at(&a->kernel->tensors, struct ir_mem, i);
}
static struct ir_var *size_of(const struct kernel_arguments *a, uint32_t i) {
  return list_at(&a->kernel->sizes, struct ir_var, i);
}
static struct ir_var *scalar_of(const struct kernel_arguments *a, uint32_t i) {
  return list_at(&a->kernel->scalars, struct ir_var, i);
}

bool arguments_add_size(struct kernel_arguments *a, const char *text) {
  const char *name, *value;
  int64_t number;
  if (!run_split(a->c, "--size", text, &name, &value)) return false;
  if (!run_parse_integer(a->c, "--size", value, 0, INT64_MAX, &number)) return false;
  if (!a->given.arena) map_init(&a->given, &a->c->arena);
  int64_t *kept = map_get(&a->given, name);
  if (kept && *kept != number)
    return refuse(a, "--size %s is given twice, as %" PRId64 " and as %" PRId64, name, *kept, number);
  kept = arena_new(&a->c->arena, int64_t);
  *kept = number;
  map_set(&a->given, name, kept);
  return true;
}

// All names that --arg may have: "A, B, alpha".
static const char *all_names(const struct kernel_arguments *a, bool only_tensors) {
  const char *text = "";
  struct arena *arena = &a->c->arena;
  for (uint32_t i = 0; i < a->kernel->tensors.count; i++)
    text = arena_printf(arena, "%s%s%s", text, *text ? ", " : "", mem_label(tensor_of(a, i)));
  for (uint32_t i = 0; !only_tensors && i < a->kernel->scalars.count; i++)
    text = arena_printf(arena, "%s%s%s", text, *text ? ", " : "", var_label(scalar_of(a, i)));
  return text;
}

int64_t arguments_find_tensor(const struct kernel_arguments *a, const char *option, const char *name) {
  for (uint32_t i = 0; i < a->kernel->tensors.count; i++)
    if (strcmp(mem_label(tensor_of(a, i)), name) == 0) return i;
  diag_error(&a->c->diag, ERROR_USAGE, nowhere, "%s: kernel '%s' has no tensor '%s'; it has %s", option,
             a->kernel->label, name, all_names(a, true));
  return -1;
}

// --- Names
// --------------------------------------------------------------------------------------------------------------------

static bool assign_scalar(struct kernel_arguments *a, uint32_t i, const char *text) {
  char error[256];
  const char *name = var_label(scalar_of(a, i));
  if (a->has_scalar[i]) return refuse(a, "--arg %s is given twice", name);
  a->has_scalar[i] = true;
  return element_parse(&a->scalars[i], scalar_of(a, i)->type, text, error, sizeof error) ||
         refuse(a, "--arg %s: %s", name, error);
}

static bool assign(struct kernel_arguments *a, const char *text) {
  const char *name, *value;
  if (!run_split(a->c, "--arg", text, &name, &value)) return false;
  for (uint32_t i = 0; i < a->kernel->tensors.count; i++)
    if (strcmp(mem_label(tensor_of(a, i)), name) == 0) {
      struct tensor_argument *tensor = &a->tensors[i];
      if (tensor->is_given) return refuse(a, "--arg %s is given twice", name);
      tensor->is_given = true;
      return source_parse(&tensor->source, a->c, name, value) && source_load(&tensor->source, a->c);
    }
  for (uint32_t i = 0; i < a->kernel->scalars.count; i++)
    if (strcmp(var_label(scalar_of(a, i)), name) == 0) return assign_scalar(a, i, value);
  for (uint32_t i = 0; i < a->kernel->sizes.count; i++)
    if (strcmp(var_label(size_of(a, i)), name) == 0) return arguments_add_size(a, text);
  return refuse(a, "kernel '%s' has no argument '%s'; it has %s", a->kernel->label, name,
                all_names(a, false));
}

// --- Sizes
// --------------------------------------------------------------------------------------------------------------------

static int64_t place(const struct list *list, const void *item) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->at[i] == item) return i;
  return -1;
}

// Sizes that -D or --size fix.
static bool take_given_sizes(struct kernel_arguments *a) {
  for (uint32_t i = 0; i < a->kernel->sizes.count; i++) {
    const struct ir_var *size = size_of(a, i);
    const int64_t *given = a->given.arena ? map_get(&a->given, var_label(size)) : NULL;
    a->has_size[i] = size->constant || given;
    a->sizes[i] = size->constant ? size->constant->integer : given ? *given : 0;
    if (given && *given != a->sizes[i])
      return refuse(a, "size '%s' is %" PRId64 " by -D and %" PRId64 " by --size", var_label(size),
                    a->sizes[i], *given);
  }
  return true;
}

// Sizes that stand alone in a dimension of a file's array.
static bool take_sizes_of_files(struct kernel_arguments *a) {
  for (uint32_t t = 0; t < a->kernel->tensors.count; t++) {
    const struct argument_source *source = &a->tensors[t].source;
    const struct list *dims = &tensor_of(a, t)->dims;
    if (!a->tensors[t].is_given || source->kind != SOURCE_FILE) continue;
    if (source->npy.rank != dims->count)
      return refuse(a, "--arg %s: %s has shape %s, the kernel's tensor has rank %" PRIu32, source->name,
                    source->text, shape_text(&a->c->arena, source->npy.rank, source->npy.dims), dims->count);
    for (uint32_t d = 0; d < dims->count; d++) {
      const struct ir_expr *dim = list_at(dims, struct ir_expr, d);
      int64_t i = dim->op == OP_VAR ? place(&a->kernel->sizes, dim->var) : -1;
      if (i < 0 || a->has_size[i]) continue;
      a->has_size[i] = true;
      a->sizes[i] = source->npy.dims[d];
    }
  }
  return true;
}

static bool find_dims(struct kernel_arguments *a, uint32_t t, int64_t *dims) {
  const struct ir_mem *mem = tensor_of(a, t);
  for (uint32_t d = 0; d < mem->dims.count; d++)
    if (!reference_size(a->kernel, list_at(&mem->dims, struct ir_expr, d), a->sizes, &dims[d]))
      return refuse(a, "dimension %" PRIu32 " of '%s' is no expression over sizes", d, mem_label(mem));
  return true;
}

// The stride of a tensor as its view gives it, or row-major.
static int64_t stride_of(struct kernel_arguments *a, uint32_t t, uint32_t dimension, const int64_t *dims) {
  const struct argument_source *source = &a->tensors[t].source;
  if (source->has_strides && dimension < source->stride_count) return source->strides[dimension];
  int64_t stride = 1;
  for (uint32_t d = tensor_of(a, t)->dims.count; d-- > dimension + 1;)
    if (__builtin_mul_overflow(stride, dims[d], &stride)) stride = INT64_MAX;
  return stride;
}

// Named strides, once the extents are known.
static bool take_strides(struct kernel_arguments *a) {
  for (uint32_t i = 0; i < a->kernel->sizes.count; i++) {
    const struct ir_expr *inferred = size_of(a, i)->inferred;
    if (a->has_size[i] || !inferred || inferred->op != OP_STRIDE) continue;
    int64_t t = place(&a->kernel->tensors, inferred->mem), dims[NPY_MAX_RANK];
    if (t < 0 || !find_dims(a, (uint32_t)t, dims)) return false;
    a->has_size[i] = true;
    a->sizes[i] = stride_of(a, (uint32_t)t, inferred->dimension, dims);
  }
  return true;
}

static bool is_stride_name(const struct ir_var *size) {
  return size->inferred && size->inferred->op == OP_STRIDE;
}

static bool find_sizes(struct kernel_arguments *a) {
  if (!take_given_sizes(a) || !take_sizes_of_files(a)) return false;
  bool ok = true;
  for (uint32_t i = 0; i < a->kernel->sizes.count; i++)
    if (!a->has_size[i] && !is_stride_name(size_of(a, i)))
      ok = refuse(a, "size '%s' is not known: give --size %s=N, -D %s=N, or a file whose shape says it",
                  var_label(size_of(a, i)), var_label(size_of(a, i)), var_label(size_of(a, i)));
  return ok && take_strides(a);
}

// --- Buffers
// ------------------------------------------------------------------------------------------------------------------

static bool make_buffer(struct kernel_arguments *a, uint32_t t) {
  struct ir_mem *mem = tensor_of(a, t);
  struct tensor_argument *tensor = &a->tensors[t];
  const char *name = mem_label(mem);
  uint32_t rank = mem->dims.count;
  char error[256];
  if (rank > NPY_MAX_RANK) return refuse(a, "'%s' has more than %d dimensions", name, NPY_MAX_RANK);
  int64_t *dims = arena_array(&a->c->arena, int64_t, rank + 1);
  if (!find_dims(a, t, dims)) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (dims[d] < 0) return refuse(a, "dimension %" PRIu32 " of '%s' would be %" PRId64, d, name, dims[d]);
  const struct argument_source *source = &tensor->source;
  if (source->has_strides && source->stride_count != rank)
    return refuse(a, "--arg %s: a view of %" PRIu32 " strides, the kernel's tensor has rank %" PRIu32, name,
                  source->stride_count, rank);
  int64_t *strides = source->has_strides ? arena_array(&a->c->arena, int64_t, rank + 1) : NULL;
  for (uint32_t d = 0; strides && d < rank; d++) strides[d] = source->strides[d];
  return buffer_init(&tensor->buffer, name, mem->type, rank, dims, strides, source->offset, &a->c->arena,
                     error, sizeof error) ||
         refuse(a, "--arg %s", error);
}

// Whether every tensor has a value where it needs one.
static bool check_values(struct kernel_arguments *a) {
  bool ok = true;
  for (uint32_t t = 0; t < a->kernel->tensors.count; t++) {
    const struct ir_mem *mem = tensor_of(a, t);
    if (a->tensors[t].source.kind != SOURCE_NONE) continue;
    if (!mem->is_output)
      ok = refuse(a, "argument '%s' is missing: give it with --arg %s=...", mem_label(mem), mem_label(mem));
    else if (mem->is_read)
      ok = refuse(a, "output '%s' is read before it is written: give its value with --arg %s=...",
                  mem_label(mem), mem_label(mem));
  }
  return ok;
}

static bool check_memory(struct kernel_arguments *a) {
  char error[256];
  int64_t total = 0;
  for (uint32_t t = 0; t < a->kernel->tensors.count; t++) {
    int64_t bytes = buffer_element_bytes(&a->tensors[t].buffer);
    for (int copy = 0; copy < (a->copies_outputs && tensor_of(a, t)->is_output ? 3 : 1); copy++)
      if (__builtin_add_overflow(total, bytes, &total)) total = INT64_MAX;
  }
  return buffer_memory_suffices(total, error, sizeof error) || refuse(a, "%s", error);
}

static bool fill_buffer(struct kernel_arguments *a, uint32_t t) {
  struct tensor_argument *tensor = &a->tensors[t];
  uint32_t count = a->kernel->sizes.count;
  buffer_set_canaries(&tensor->buffer);
  if (tensor->source.kind == SOURCE_NONE) buffer_fill(&tensor->buffer, BUFFER_POISON);
  struct source_size *sizes = arena_array(&a->c->arena, struct source_size, count + 1);
  for (uint32_t i = 0; i < count; i++) sizes[i] = (struct source_size){var_label(size_of(a, i)), a->sizes[i]};
  return source_fill(&tensor->source, a->options, sizes, count, &tensor->buffer);
}

bool arguments_prepare(struct kernel_arguments *a, const struct ir_kernel *kernel, const struct list *args) {
  struct arena *arena = &a->c->arena;
  bool ok = true;
  a->kernel = kernel;
  a->tensors = arena_array(arena, struct tensor_argument, kernel->tensors.count + 1);
  a->scalars = arena_array(arena, struct value, kernel->scalars.count + 1);
  a->has_scalar = arena_array(arena, bool, kernel->scalars.count + 1);
  a->sizes = arena_array(arena, int64_t, kernel->sizes.count + 1);
  a->has_size = arena_array(arena, bool, kernel->sizes.count + 1);
  for (uint32_t i = 0; i < args->count; i++) ok &= assign(a, list_at(args, const char, i));
  for (uint32_t i = 0; i < kernel->scalars.count; i++)
    if (!a->has_scalar[i])
      ok = refuse(a, "argument '%s' is missing: give it with --arg %s=...", var_label(scalar_of(a, i)),
                  var_label(scalar_of(a, i)));
  ok = ok && check_values(a) && find_sizes(a);
  for (uint32_t t = 0; ok && t < kernel->tensors.count; t++) ok = make_buffer(a, t);
  if (!ok || !check_memory(a)) return false;
  for (uint32_t t = 0; t < kernel->tensors.count; t++) ok &= fill_buffer(a, t);
  return ok;
}

void arguments_free(struct kernel_arguments *a) {
  for (uint32_t t = 0; a->kernel && t < a->kernel->tensors.count; t++) {
    buffer_free(&a->tensors[t].buffer);
    source_free(&a->tensors[t].source);
  }
}
