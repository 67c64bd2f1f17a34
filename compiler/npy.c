#include "compiler/npy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool refuse(char *error, size_t error_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(char *error, size_t error_bytes, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error, error_bytes, format, arguments);
  va_end(arguments);
  return false;
}

// The header's dictionary: a cursor over Python literals.
struct cursor {
  const char *at, *end;
};

static void skip_space(struct cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}
static bool accept(struct cursor *c, const char *text) {
  skip_space(c);
  size_t length = strlen(text);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0) return false;
  c->at += length;
  return true;
}

// A quoted text without escapes, whose place is returned.
static bool accept_text(struct cursor *c, const char **text, size_t *length) {
  skip_space(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
  const char *close = memchr(c->at + 1, *c->at, (size_t)(c->end - c->at - 1));
  if (!close) return false;
  *text = c->at + 1;
  *length = (size_t)(close - *text);
  c->at = close + 1;
  return true;
}

static bool accept_integer(struct cursor *c, int64_t *out) {
  skip_space(c);
  const char *start = c->at;
  for (*out = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, *c->at - '0', out))
      return false;
  if (c->at == start) return false;
  accept(c, "L"); // as Python 2 wrote it
  return true;
}

static bool parse_descr(struct npy *npy, const char *text, size_t length, char *error, size_t error_bytes) {
  static const char *const known[] = {"b1", "i1", "i2", "i4", "i8", "u1",  "u2", "u4",
                                      "u8", "f2", "f4", "f8", "c8", "c16", "V1", "V2"};
  size_t order = length && strchr("<>=|", text[0]) ? 1 : 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strlen(known[i]) != length - order || memcmp(known[i], text + order, length - order) != 0) continue;
    npy->kind = known[i][0];
    npy->bytes = (uint32_t)(known[i][1] - '0');
    if (known[i][2]) npy->bytes = 16;
    npy->is_swapped = order && text[0] == '>' && npy->bytes > 1;
    return true;
  }
  return refuse(error, error_bytes, "elements of type '%.*s' are not known here",
                (int)(length < 40 ? length : 40), text);
}

static bool parse_shape(struct npy *npy, struct cursor *c, char *error, size_t error_bytes) {
  if (!accept(c, "(")) return refuse(error, error_bytes, "malformed header: the shape is no tuple");
  while (!accept(c, ")")) {
    if (npy->rank == NPY_MAX_RANK) return refuse(error, error_bytes, "more than %d dimensions", NPY_MAX_RANK);
    if (!accept_integer(c, &npy->dims[npy->rank]))
      return refuse(error, error_bytes, "malformed header: illegal extent");
    npy->rank++;
    if (!accept(c, ",")) {
      if (!accept(c, ")")) return refuse(error, error_bytes, "malformed header: the shape is not closed");
      break;
    }
  }
  return true;
}

static bool parse_header(struct npy *npy, struct cursor *c, char *error, size_t error_bytes) {
  bool has_descr = false, has_order = false, has_shape = false;
  if (!accept(c, "{")) return refuse(error, error_bytes, "malformed header: no dictionary");
  while (!accept(c, "}")) {
    const char *key, *text;
    size_t key_length, length;
    if (!accept_text(c, &key, &key_length) || !accept(c, ":"))
      return refuse(error, error_bytes, "malformed header: no key");
    if (key_length == 5 && memcmp(key, "descr", 5) == 0 && !has_descr) {
      has_descr = true;
      if (!accept_text(c, &text, &length))
        return refuse(error, error_bytes, "records are not arrays of numbers");
      if (!parse_descr(npy, text, length, error, error_bytes)) return false;
    } else if (key_length == 13 && memcmp(key, "fortran_order", 13) == 0 && !has_order) {
      has_order = true;
      npy->is_fortran = accept(c, "True");
      if (!npy->is_fortran && !accept(c, "False"))
        return refuse(error, error_bytes, "malformed header: illegal fortran_order");
    } else if (key_length == 5 && memcmp(key, "shape", 5) == 0 && !has_shape) {
      has_shape = true;
      if (!parse_shape(npy, c, error, error_bytes)) return false;
    } else {
      return refuse(error, error_bytes, "malformed header: unexpected key '%.*s'",
                    (int)(key_length < 40 ? key_length : 40), key);
    }
    if (!accept(c, ",") && !(c->at < c->end && *c->at == '}'))
      return refuse(error, error_bytes, "malformed header: the dictionary is not closed");
  }
  skip_space(c);
  if (c->at != c->end) return refuse(error, error_bytes, "malformed header: text behind the dictionary");
  return (has_descr && has_order && has_shape) ||
         refuse(error, error_bytes, "malformed header: descr, fortran_order or shape is missing");
}

bool npy_parse(struct npy *npy, const char *bytes, size_t length, char *error, size_t error_bytes) {
  memset(npy, 0, sizeof *npy);
  if (length < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return refuse(error, error_bytes, "this is no .npy file");
  const unsigned char *head = (const unsigned char *)bytes;
  if (head[6] < 1 || head[6] > 3)
    return refuse(error, error_bytes, "version %d.%d of the .npy format is not known", head[6], head[7]);
  size_t start = head[6] == 1 ? 10 : 12;
  if (length < start) return refuse(error, error_bytes, "the file is cut off in its header");
  size_t header = head[8] | (size_t)head[9] << 8;
  if (start == 12) header |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
  if (header > length - start) return refuse(error, error_bytes, "the file is cut off in its header");
  struct cursor cursor = {bytes + start, bytes + start + header};
  if (!parse_header(npy, &cursor, error, error_bytes)) return false;
  int64_t total = npy->bytes;
  npy->count = 1;
  bool is_empty = false, overflows = false;
  for (uint32_t d = 0; d < npy->rank; d++) {
    is_empty = is_empty || npy->dims[d] == 0;
    overflows = overflows || __builtin_mul_overflow(total, npy->dims[d], &total);
    npy->count = overflows ? 0 : npy->count * npy->dims[d];
  }
  if (overflows && !is_empty)
    return refuse(error, error_bytes, "the file is cut off: its shape needs more than 2^63 bytes");
  if (is_empty) npy->count = total = 0;
  npy->data = bytes + start + header;
  uint64_t present = length - start - header;
  if (present < (uint64_t)total)
    return refuse(error, error_bytes, "the file is cut off: %" PRId64 " bytes of elements are missing",
                  total - (int64_t)present);
  if (present > (uint64_t)total)
    return refuse(error, error_bytes, "%" PRIu64 " bytes follow the array", present - (uint64_t)total);
  return true;
}

// NumPy's kind and size of a type; V: none.
static char numpy_kind(enum type type) {
  switch (type_class_of(type)) {
  case CLASS_BOOL: return 'b';
  case CLASS_SIGNED:
  case CLASS_INDEX: return 'i';
  case CLASS_UNSIGNED: return 'u';
  case CLASS_FLOAT: return 'f';
  case CLASS_STORAGE: return type == TYPE_F16 ? 'f' : 'V';
  case CLASS_MOVED: return type == TYPE_C64 || type == TYPE_C128 ? 'c' : 'V';
  }
  return 'V';
}

bool npy_has_type(const struct npy *npy, enum type type) {
  return numpy_kind(type) != 'V' && npy->kind == numpy_kind(type) && npy->bytes == type_bytes(type);
}
bool npy_can_hold(const struct npy *npy, enum type type) {
  return numpy_kind(type) == 'V' && (npy->kind == 'u' || npy->kind == 'V') && npy->bytes == type_bytes(type);
}

const char *npy_type_name(struct arena *arena, const struct npy *npy) {
  const char *order = npy->is_swapped ? "big-endian " : "";
  switch (npy->kind) {
  case 'b': return "bool";
  case 'i': return arena_printf(arena, "%sint%u", order, npy->bytes * 8);
  case 'u': return arena_printf(arena, "%suint%u", order, npy->bytes * 8);
  case 'f': return arena_printf(arena, "%sfloat%u", order, npy->bytes * 8);
  case 'c': return arena_printf(arena, "%scomplex%u", order, npy->bytes * 8);
  default: return arena_printf(arena, "V%u", npy->bytes);
  }
}

// Copies one element; a complex number is swapped by halves.
static void copy_element(const struct npy *npy, char *target, const char *source) {
  uint32_t unit = npy->kind == 'c' ? npy->bytes / 2 : npy->bytes;
  if (!npy->is_swapped) {
    memcpy(target, source, npy->bytes);
    return;
  }
  for (uint32_t i = 0; i < npy->bytes; i++) target[i] = source[i / unit * unit + unit - 1 - i % unit];
}

void npy_copy(const struct npy *npy, void *target) {
  if (!npy->is_swapped && (!npy->is_fortran || npy->rank < 2)) {
    if (npy->count) memcpy(target, npy->data, (size_t)npy->count * npy->bytes);
    return;
  }
  int64_t index[NPY_MAX_RANK] = {0}, stride[NPY_MAX_RANK], step = 1, offset = 0;
  for (uint32_t i = 0; i < npy->rank && npy->count; i++) {
    uint32_t d = npy->is_fortran ? i : npy->rank - 1 - i;
    stride[d] = step;
    step *= npy->dims[d];
  }
  for (int64_t i = 0; i < npy->count; i++) { // row-major over the target
    copy_element(npy, (char *)target + i * npy->bytes, npy->data + offset * npy->bytes);
    for (uint32_t d = npy->rank; d-- > 0;) {
      offset += stride[d];
      if (++index[d] < npy->dims[d]) break;
      offset -= stride[d] * npy->dims[d];
      index[d] = 0;
    }
  }
}

void npy_print(struct text *out, enum type type, uint32_t rank, const int64_t *dims, const void *data) {
  struct text header = {0};
  char kind = numpy_kind(type);
  if (kind == 'V') kind = 'u';
  int64_t bytes = type_bytes(type);
  bool is_empty = false;
  text_printf(&header, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", bytes == 1 ? '|' : '<', kind,
              (int)bytes);
  for (uint32_t d = 0; d < rank; d++) {
    text_printf(&header, "%s%" PRId64, d ? ", " : "", dims[d]);
    is_empty |= dims[d] == 0;
  }
  for (uint32_t d = 0; d < rank; d++) bytes = is_empty ? 0 : bytes * dims[d]; // the others' product may not fit
  text_puts(&header, rank == 1 ? ",), }" : "), }");
  while ((10 + header.length + 1) % 64) text_puts(&header, " ");
  text_puts(&header, "\n");
  char head[10] = {
      (char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(header.length & 255), (char)(header.length >> 8)};
  text_append(out, head, sizeof head);
  text_append(out, header.data, header.length);
  if (bytes) text_append(out, data, (size_t)bytes);
  text_free(&header);
}
