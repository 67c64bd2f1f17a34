#include "compiler/run_element.h"

#include "runtime/half.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void element_set(enum type type, uint8_t *element, struct value value) {
  struct value cast = value;
  float single;
  uint16_t half;
  uint64_t bits;
  memset(element, 0, type_bytes(type));
  switch (type_class_of(type)) {
  case CLASS_MOVED:
    if (type == TYPE_C64 || type == TYPE_C128) {
      element_set(type == TYPE_C64 ? TYPE_F32 : TYPE_F64, element, value);
      return;
    }
    arith_cast(TYPE_U8, value, &cast);
    *element = (uint8_t)cast.integer;
    return;
  case CLASS_STORAGE:
    arith_cast(type, value, &cast);
    half = type == TYPE_F16 ? half_from_double(cast.number) : bfloat_from_double(cast.number);
    memcpy(element, &half, sizeof half);
    return;
  case CLASS_FLOAT:
    arith_cast(type, value, &cast);
    single = (float)cast.number;
    if (type == TYPE_F32)
      memcpy(element, &single, sizeof single);
    else
      memcpy(element, &cast.number, sizeof cast.number);
    return;
  case CLASS_BOOL:
  case CLASS_SIGNED:
  case CLASS_UNSIGNED:
  case CLASS_INDEX:
    arith_cast(type, value, &cast);
    bits = (uint64_t)cast.integer;
    memcpy(element, &bits, type_bytes(type)); // little-endian
    return;
  }
}

struct value element_get(enum type type, const uint8_t *element) {
  struct value value = {.type = TYPE_I64};
  uint64_t bits = 0;
  float single;
  memcpy(&bits, element, type_bytes(type) < 8 ? type_bytes(type) : 8);
  switch (type_class_of(type)) {
  case CLASS_STORAGE:
    value.type = TYPE_F64;
    value.number =
        (double)(type == TYPE_F16 ? half_to_float((uint16_t)bits) : bfloat_to_float((uint16_t)bits));
    return value;
  case CLASS_FLOAT:
    value.type = TYPE_F64;
    memcpy(&single, element, sizeof single);
    value.number = (double)single;
    if (type == TYPE_F64) memcpy(&value.number, element, sizeof value.number);
    return value;
  case CLASS_BOOL: value.integer = *element != 0; return value;
  case CLASS_SIGNED:
  case CLASS_UNSIGNED:
  case CLASS_INDEX: value.integer = arith_wrap(type, (int64_t)bits); return value;
  case CLASS_MOVED: value.integer = (int64_t)bits; return value;
  }
  return value;
}

// The shortest digits that read back as the number; decimal unless it is very large or small.
static void print_float(struct text *out, enum type type, double number) {
  char text[64] = "";
  if (!isfinite(number)) {
    text_puts(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
    return;
  }
  int digits = 0;
  do snprintf(text, sizeof text, "%.*e", digits, number);
  while (arith_round(type, strtod(text, NULL)) != number && ++digits < 17);
  int exponent = atoi(strchr(text, 'e') + 1);
  if (exponent < -5 || exponent >= 16) {
    text_puts(out, text);
    return;
  }
  int behind_point = digits > exponent ? digits - exponent : 0;
  text_printf(out, behind_point ? "%.*f" : "%.*f.", behind_point, number);
}

void element_print(struct text *out, enum type type, const uint8_t *element) {
  struct value value = element_get(type, element);
  switch (type_class_of(type)) {
  case CLASS_MOVED: break;
  case CLASS_BOOL: text_puts(out, value.integer ? "true" : "false"); return;
  case CLASS_STORAGE:
  case CLASS_FLOAT: print_float(out, type, value.number); return;
  case CLASS_SIGNED:
  case CLASS_INDEX: text_printf(out, "%" PRId64, value.integer); return;
  case CLASS_UNSIGNED: text_printf(out, "%" PRIu64, (uint64_t)value.integer); return;
  }
  if (type == TYPE_C64 || type == TYPE_C128) {
    enum type part = type == TYPE_C64 ? TYPE_F32 : TYPE_F64;
    struct value imaginary = element_get(part, element + type_bytes(part));
    print_float(out, part, element_get(part, element).number);
    text_puts(out, signbit(imaginary.number) ? "" : "+");
    print_float(out, part, imaginary.number);
    text_puts(out, "j");
    return;
  }
  text_printf(out, "0x%02x", (unsigned)(value.integer & 255));
}

bool element_parse(struct value *value, enum type type, const char *text, char *error, size_t error_bytes) {
  char *end = NULL;
  errno = 0;
  value->type = type;
  if (type_is_float(type) || type_class_of(type) == CLASS_STORAGE) {
    value->number = arith_round(type, strtod(text, &end));
    if (*text && !*end && *text != ' ') return true;
    snprintf(error, error_bytes, "'%s' is no number", text);
    return false;
  }
  if (type == TYPE_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
    value->integer = *text == 't';
    return true;
  }
  const char *digits = text + (*text == '-');
  int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
  if (*digits < '0' || *digits > '9') {
    snprintf(error, error_bytes, "'%s' is no integer", text);
    return false;
  }
  if (type == TYPE_U64 && *text != '-')
    value->integer = (int64_t)strtoull(text, &end, base);
  else
    value->integer = strtoll(text, &end, base);
  if (*end) {
    snprintf(error, error_bytes, "'%s' is no integer", text);
    return false;
  }
  bool fits = type == TYPE_BOOL
                  ? (uint64_t)value->integer <= 1
                  : arith_wrap(type, value->integer) == value->integer && (type != TYPE_U64 || *text != '-');
  if (errno || !fits) {
    snprintf(error, error_bytes, "%s does not fit %s", text, type_name(type));
    return false;
  }
  return true;
}

const char *shape_text(struct arena *arena, uint32_t rank, const int64_t *dims) {
  const char *text = "(";
  for (uint32_t d = 0; d < rank; d++)
    text = arena_printf(arena, "%s%s%" PRId64, text, d ? ", " : "", dims[d]);
  return arena_printf(arena, "%s%s)", text, rank == 1 ? "," : "");
}

// --- Arrays
// ---------------------------------------------------------------------------------------------------------------

enum { EDGE = 3, THRESHOLD = 1000, LINE = 79 };

struct array_printer {
  struct text *out;
  const struct buffer *buffer;
  bool is_cut;
  size_t width; // of the widest element
  size_t column;
};

// Whether the printout shows index i of a dimension; *skip: it stands for what is left out.
static bool shows(const struct array_printer *p, uint32_t d, int64_t i, bool *skip) {
  int64_t dim = p->buffer->dims[d];
  *skip = p->is_cut && dim > 2 * EDGE && i == EDGE;
  return !p->is_cut || dim <= 2 * EDGE || i < EDGE || i >= dim - EDGE;
}

static void put(struct array_printer *p, const char *text, size_t length) {
  text_append(p->out, text, length);
  p->column = text[length - 1] == '\n' ? 0 : p->column + length;
}

static void visit(struct array_printer *p, uint32_t d, const uint8_t *at, bool measures);

static void print_element(struct array_printer *p, const uint8_t *at, bool measures, bool is_first) {
  struct text text = {0};
  element_print(&text, p->buffer->type, at);
  if (measures) {
    if (text.length > p->width) p->width = text.length;
  } else {
    if (p->column + p->width + 2 > LINE && p->column > p->buffer->rank) {
      put(p, "\n", 1);
      for (uint32_t i = 0; i < p->buffer->rank; i++) put(p, " ", 1);
    } else if (!is_first) {
      put(p, " ", 1);
    }
    for (size_t i = text.length; i < p->width; i++) put(p, " ", 1);
    put(p, text.data, text.length);
  }
  text_free(&text);
}

// Between two rows: one line, more where whole blocks end.
static void separate(struct array_printer *p, uint32_t d) {
  for (uint32_t i = d; i + 1 < p->buffer->rank; i++) put(p, "\n", 1);
  for (uint32_t i = 0; i <= d; i++) put(p, " ", 1);
}

static void visit(struct array_printer *p, uint32_t d, const uint8_t *at, bool measures) {
  const struct buffer *b = p->buffer;
  if (d == b->rank) {
    print_element(p, at, measures, true);
    return;
  }
  if (!measures) put(p, "[", 1);
  int64_t step = b->strides[d] * (int64_t)type_bytes(b->type);
  bool is_row = d + 1 == b->rank, skip;
  for (int64_t i = 0; i < b->dims[d]; i++) {
    bool is_last = i + 1 == b->dims[d];
    if (!shows(p, d, i, &skip)) {
      if (skip && !measures) {
        put(p, is_row ? " ..." : "...", is_row ? 4 : 3);
        if (!is_row) separate(p, d);
      }
      i = b->dims[d] - EDGE - 1;
      continue;
    }
    if (is_row) {
      print_element(p, at + i * step, measures, !i);
    } else {
      visit(p, d + 1, at + i * step, measures);
      if (!measures && !is_last) separate(p, d);
    }
  }
  if (!measures) put(p, "]", 1);
}

void array_print(struct text *out, const struct buffer *buffer) {
  struct array_printer p = {.out = out, .buffer = buffer, .is_cut = buffer->count > THRESHOLD};
  visit(&p, 0, buffer_data(buffer), true);
  visit(&p, 0, buffer_data(buffer), false);
  text_puts(out, "\n");
}
