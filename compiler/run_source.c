#include "compiler/run_source.h"

#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/reference.h"
#include "compiler/run_element.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct range nowhere;

static bool refuse(struct compilation *c, const struct argument_source *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct compilation *c, const struct argument_source *source, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(&c->arena, format, arguments);
  va_end(arguments);
  diag_error(&c->diag, ERROR_ARGUMENT, nowhere, "--arg %s: %s", source->name, message);
  return false;
}

// --- Text
// -----------------------------------------------------------------------------------------------------------------

static bool take_integer(const char **at, int64_t *out) {
  char *end;
  errno = 0;
  if (**at != '-' && (**at < '0' || **at > '9')) return false;
  *out = strtoll(*at, &end, 10);
  if (errno || end == *at) return false;
  *at = end;
  return true;
}

// offset:1,strides:1003:1
static bool parse_view(struct argument_source *source, struct compilation *c, const char *text) {
  const char *at = text;
  source->has_view = true;
  for (;;) {
    if (strncmp(at, "offset:", 7) == 0) {
      at += 7;
      if (!take_integer(&at, &source->offset) || source->offset < 0)
        return refuse(c, source, "an offset is a number of elements, 0 or more: '%s'", text);
    } else if (strncmp(at, "strides", 7) == 0) {
      at += 7;
      source->has_strides = true;
      while (*at == ':') {
        at++;
        if (source->stride_count == NPY_MAX_RANK)
          return refuse(c, source, "more than %d strides", NPY_MAX_RANK);
        if (!take_integer(&at, &source->strides[source->stride_count++]))
          return refuse(c, source, "strides are numbers of elements: '%s'", text);
      }
    } else {
      return refuse(c, source,
                    "a view is offset:N, strides:N:N..., or both with a comma between them, not '%s'", text);
    }
    if (!*at) return true;
    if (*at++ != ',') return refuse(c, source, "malformed view '%s'", text);
  }
}

// The view at the end of the text, or NULL. `@` is no operator of the language.
static const char *find_view(const char *text) {
  const char *at = strrchr(text, '@');
  return at && (strncmp(at, "@offset:", 8) == 0 || strncmp(at, "@strides", 8) == 0) ? at : NULL;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length > end_length && strcmp(text + length - end_length, end) == 0;
}

// TYPE@path, @path, path.npy
static bool parse_file(struct argument_source *source, struct compilation *c, const char *text) {
  const char *at = strchr(text, '@');
  if (at && type_parse(arena_strndup(&c->arena, text, (size_t)(at - text)), &source->type))
    source->has_type = true;
  if (at == text || source->has_type)
    source->text = at + 1;
  else if (ends_with(text, ".npy"))
    source->text = text;
  else
    return false;
  source->kind = SOURCE_FILE;
  return true;
}

bool source_parse(struct argument_source *source, struct compilation *c, const char *name, const char *text) {
  *source = (struct argument_source){.name = name};
  const char *view = find_view(text);
  if (view) {
    if (!parse_view(source, c, view + 1)) return false;
    text = arena_strndup(&c->arena, text, (size_t)(view - text));
  }
  size_t length = strlen(text);
  if (!length || parse_file(source, c, text)) return true;
  if (strcmp(text, "iota") == 0) {
    source->kind = SOURCE_IOTA;
  } else if (strcmp(text, "rand") == 0) {
    source->kind = SOURCE_RAND;
  } else if (strncmp(text, "rand(", 5) == 0 && text[length - 1] == ')') {
    const char *at = text + 5;
    int64_t seed;
    if (!take_integer(&at, &seed) || at != text + length - 1)
      return refuse(c, source, "rand takes an integer, not '%s'", text);
    source->kind = SOURCE_RAND;
    source->seed = (uint64_t)seed;
  } else if (strncmp(text, "const(", 6) == 0 && text[length - 1] == ')') {
    source->kind = SOURCE_CONST;
    source->text = arena_strndup(&c->arena, text + 6, length - 7);
  } else {
    source->kind = SOURCE_FORMULA;
    source->text = text;
  }
  return true;
}

bool source_load(struct argument_source *source, struct compilation *c) {
  char error[256];
  if (source->kind != SOURCE_FILE) return true;
  if (!input_read(&c->diag, source->text, &source->bytes)) return false;
  if (npy_parse(&source->npy, source->bytes.data ? source->bytes.data : "", source->bytes.length, error,
                sizeof error))
    return true;
  diag_error(&c->diag, ERROR_FILE, nowhere, "%s: %s", source->text, error);
  return false;
}

void source_free(struct argument_source *source) {
  text_free(&source->bytes);
}

// --- Elements
// -------------------------------------------------------------------------------------------------------------

// The buffer with one index only where the stride is 0: all indices there share their elements. `logical`
// gets the row-major strides of the whole shape.
static struct buffer distinct(const struct buffer *buffer, int64_t *dims, int64_t *logical) {
  struct buffer copy = *buffer;
  int64_t step = 1;
  copy.dims = dims;
  copy.count = 1;
  for (uint32_t d = buffer->rank; d-- > 0;) {
    logical[d] = step;
    step = (int64_t)((uint64_t)step * (uint64_t)buffer->dims[d]);
    dims[d] = buffer->dims[d] && !buffer->strides[d] ? 1 : buffer->dims[d];
    copy.count *= dims[d];
  }
  return copy;
}

static uint64_t mix(uint64_t seed, uint64_t element) {
  uint64_t z = seed * UINT64_C(0x9e3779b97f4a7c15) + element + UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void set_random(enum type type, uint8_t *element, uint64_t seed, uint64_t e) {
  uint64_t z = mix(seed, e);
  if (type == TYPE_C64 || type == TYPE_C128) {
    enum type part = type == TYPE_C64 ? TYPE_F32 : TYPE_F64;
    set_random(part, element, seed, 2 * e);
    set_random(part, element + type_bytes(part), seed, 2 * e + 1);
    return;
  }
  int bits = type == TYPE_F64    ? 53
             : type == TYPE_F32  ? 24
             : type == TYPE_F16  ? 11
             : type == TYPE_BF16 ? 8
                                 : 0;
  if (bits) {
    double unit = (double)(z >> (64 - bits)) / (double)(UINT64_C(1) << (bits - 1)) - 1;
    element_set(type, element, (struct value){.type = TYPE_F64, .number = unit});
    return;
  }
  uint32_t width = type == TYPE_BOOL ? 1 : type_bits(type);
  element_set(type, element, (struct value){.type = TYPE_I64, .integer = (int64_t)(z >> (64 - width))});
}

static void fill_generated(const struct argument_source *source, struct buffer *buffer, struct value value) {
  int64_t dims[NPY_MAX_RANK], logical[NPY_MAX_RANK];
  struct buffer part = distinct(buffer, dims, logical);
  struct buffer_walk w;
  bool is_whole = part.count == buffer->count;
  for (buffer_walk_begin(&w, &part); !w.is_done; buffer_walk_next(&w)) {
    int64_t flat = w.flat;
    for (uint32_t d = 0; !is_whole && d < part.rank; d++) flat = (d ? flat : 0) + w.index[d] * logical[d];
    if (source->kind == SOURCE_RAND) {
      set_random(buffer->type, w.element, source->seed, (uint64_t)flat);
    } else {
      if (source->kind == SOURCE_IOTA) value = (struct value){.type = TYPE_I64, .integer = flat};
      element_set(buffer->type, w.element, value);
    }
  }
}

// The value of const(X), of I64 or F64.
static bool parse_constant(const struct argument_source *source, struct compilation *c, enum type type,
                           struct value *value) {
  char error[256];
  enum type as = type_class_of(type) != CLASS_MOVED ? type : type_bytes(type) == 1 ? TYPE_U8 : TYPE_F64;
  if (!element_parse(value, as, source->text, error, sizeof error)) return refuse(c, source, "%s", error);
  value->type = type_is_float(as) || type_class_of(as) == CLASS_STORAGE ? TYPE_F64 : TYPE_I64;
  return true;
}

static bool fill_from_file(const struct argument_source *source, struct compilation *c,
                           struct buffer *buffer) {
  const struct npy *npy = &source->npy;
  enum type type = buffer->type;
  const char *stored = npy_type_name(&c->arena, npy);
  if (source->has_type && source->type != type)
    return refuse(c, source, "its elements are of type %s, not %s", type_name(type), type_name(source->type));
  bool fits = npy_has_type(npy, type) || (source->has_type && npy_can_hold(npy, type));
  if (!fits) {
    refuse(c, source, "%s has elements of type %s, the kernel's are %s", source->text, stored,
           type_name(type));
    if (npy_can_hold(npy, type))
      diag_note(&c->diag, nowhere, "where they are the bits of a %s, say %s=%s@%s", type_name(type),
                source->name, type_name(type), source->text);
    return false;
  }
  bool same = npy->rank == buffer->rank;
  for (uint32_t d = 0; same && d < npy->rank; d++) same = npy->dims[d] == buffer->dims[d];
  if (!same)
    return refuse(c, source, "%s has shape %s, the kernel needs %s", source->text,
                  shape_text(&c->arena, npy->rank, npy->dims),
                  shape_text(&c->arena, buffer->rank, buffer->dims));
  void *data = malloc((size_t)npy->count * npy->bytes + 1);
  if (!data) return refuse(c, source, "out of memory");
  npy_copy(npy, data);
  buffer_scatter(buffer, data);
  free(data);
  return true;
}

// --- Formulas
// -------------------------------------------------------------------------------------------------------------

static bool is_index_name(const char *name) {
  return name[0] == 'i' && name[1 + strspn(name + 1, "0123456789")] == 0;
}

// A kernel whose output is the argument; the formula stands on a line of its own, so that messages point into
// it.
static void print_kernel(struct text *out, const struct argument_source *source, const struct buffer *part,
                         const int64_t *logical, const struct source_size *sizes, uint32_t size_count) {
  text_printf(out, "kernel formula() -> (argument_: %s[", type_name(part->type));
  for (uint32_t d = 0; d < part->rank; d++) text_printf(out, "%s%" PRId64, d ? ", " : "", part->dims[d]);
  text_puts(out, "]) { ");
  for (uint32_t d = 0; d < part->rank; d++)
    text_printf(out, "%s i%" PRIu32 " in %" PRId64, d ? "," : "for", d, part->dims[d]);
  text_puts(out, part->rank ? " { let i = 0" : "let i = 0");
  for (uint32_t d = 0; d < part->rank; d++)
    if (part->dims[d] > 1) text_printf(out, " + i%" PRIu32 " * %" PRId64, d, logical[d]);
  text_puts(out, "; ");
  for (uint32_t s = 0; s < size_count; s++)
    if (!is_index_name(sizes[s].name))
      text_printf(out, "let %s = %" PRId64 "; ", sizes[s].name, sizes[s].value);
  text_puts(out, "argument_[");
  for (uint32_t d = 0; d < part->rank; d++) text_printf(out, "%si%" PRIu32, d ? ", " : "", d);
  text_printf(out, "] = %s(\n%s\n);%s }\n", type_name(part->type), source->text, part->rank ? " }" : "");
}

static bool run_formula(const struct argument_source *source, struct compilation *c, const char *text,
                        size_t length, struct buffer *part) {
  char error[512];
  if (!compilation_parse_text(c, arena_printf(&c->arena, "--arg %s", source->name), text, length) ||
      !compilation_check(c))
    return false;
  const struct ir_kernel *kernel = list_at(&c->module.kernels, struct ir_kernel, 0);
  struct reference_tensor tensor = {buffer_data(part), part->strides};
  struct reference_input input = {.tensors = &tensor};
  if (reference_run(kernel, list_at(&kernel->entries, struct ir_entry, 0), &input, NULL, error, sizeof error))
    return true;
  return refuse(c, source, "%s", error);
}

static bool fill_by_formula(const struct argument_source *source, const struct options *options,
                            const struct source_size *sizes, uint32_t size_count, struct buffer *buffer) {
  int64_t dims[NPY_MAX_RANK], logical[NPY_MAX_RANK];
  struct buffer part = distinct(buffer, dims, logical), parts;
  enum type type = buffer->type;
  struct compilation c;
  struct text text = {0};
  char error[256];
  bool is_complex = type == TYPE_C64 || type == TYPE_C128;
  if (!buffer->count) return true;
  compilation_init(&c);
  c.diag.error_limit = options->compilation->diag.error_limit;
  if (type_class_of(type) == CLASS_MOVED)
    part.type = is_complex ? type == TYPE_C64 ? TYPE_F32 : TYPE_F64 : TYPE_U8;
  bool ok = true;
  if (is_complex) { // the real parts, computed apart
    ok = buffer_init(&parts, source->name, part.type, part.rank, part.dims, NULL, 0, &c.arena, error,
                     sizeof error);
    if (!ok) refuse(&c, source, "%s", error);
  }
  print_kernel(&text, source, &part, logical, sizes, size_count);
  ok = ok && run_formula(source, &c, text.data, text.length, is_complex ? &parts : &part);
  if (ok && is_complex) {
    struct buffer_walk from, to;
    part.type = type;
    for (buffer_walk_begin(&from, &parts), buffer_walk_begin(&to, &part); !from.is_done;
         buffer_walk_next(&from), buffer_walk_next(&to))
      element_set(type, to.element, element_get(parts.type, from.element));
  }
  if (is_complex) buffer_free(&parts);
  struct options printing = *options;
  printing.compilation = &c;
  driver_print_diagnostics(&printing);
  text_free(&text);
  compilation_destroy(&c);
  return ok;
}

bool source_fill(const struct argument_source *source, const struct options *options,
                 const struct source_size *sizes, uint32_t size_count, struct buffer *buffer) {
  struct value value = {.type = TYPE_I64};
  switch (source->kind) {
  case SOURCE_NONE: return true;
  case SOURCE_FILE: return fill_from_file(source, options->compilation, buffer);
  case SOURCE_CONST:
    if (!parse_constant(source, options->compilation, buffer->type, &value)) return false;
    fill_generated(source, buffer, value);
    return true;
  case SOURCE_RAND:
  case SOURCE_IOTA: fill_generated(source, buffer, value); return true;
  case SOURCE_FORMULA: return fill_by_formula(source, options, sizes, size_count, buffer);
  }
  return false;
}
