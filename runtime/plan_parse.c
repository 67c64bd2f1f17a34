// Reads the comment block that plan_print writes. Everything is checked: what comes out can be evaluated.
#include "runtime/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = "// red.plan ";

// One token: a word such as `dim:0:1`, a quoted text (without quotes, escapes undone), a bracket, or the end
// of the line.
enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_TEXT, TOKEN_OPEN, TOKEN_CLOSE };

struct reader {
  struct plan *plan;
  const char *at, *end; // the rest of the line
  enum token_kind kind;
  const char *text; // of WORD and TEXT
  size_t length;
  uint32_t line;              // of the PTX, from 1
  struct plan_kernel *kernel; // open, or NULL
  jmp_buf failed;
  char *error;
  size_t error_bytes;
};

static _Noreturn void fail(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static _Noreturn void fail(struct reader *reader, const char *format, ...) {
  char message[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  snprintf(reader->error, reader->error_bytes, "malformed plan, line %u: %s", reader->line, message);
  longjmp(reader->failed, 1);
}

static void *need(struct reader *reader, void *memory) {
  if (!memory) fail(reader, "out of memory");
  return memory;
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A quoted text; reader->at is behind the opening quote.
static void next_text(struct reader *reader) {
  char *out = need(reader, plan_alloc(reader->plan, (size_t)(reader->end - reader->at) + 1));
  size_t length = 0;
  for (;; reader->at++) {
    if (reader->at == reader->end) fail(reader, "a text is not closed");
    char c = *reader->at;
    if (c == '"') break;
    if (c == '\\') {
      if (++reader->at == reader->end) fail(reader, "a text is not closed");
      c = *reader->at;
      if (c == 'x') {
        if (reader->end - reader->at < 3 || hex_digit(reader->at[1]) < 0 || hex_digit(reader->at[2]) < 0)
          fail(reader, "malformed escape");
        c = (char)(hex_digit(reader->at[1]) * 16 + hex_digit(reader->at[2]));
        reader->at += 2;
        if (!c) fail(reader, "malformed escape");
      } else if (c != '"' && c != '\\') {
        fail(reader, "malformed escape");
      }
    }
    out[length++] = c;
  }
  reader->at++;
  reader->kind = TOKEN_TEXT;
  reader->text = out;
  reader->length = length;
}

static void next(struct reader *reader) {
  while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r'))
    reader->at++;
  if (reader->at == reader->end) {
    reader->kind = TOKEN_END;
    return;
  }
  char c = *reader->at;
  if (c == '[' || c == ']') {
    reader->kind = c == '[' ? TOKEN_OPEN : TOKEN_CLOSE;
    reader->at++;
    return;
  }
  if (c == '"') {
    reader->at++;
    next_text(reader);
    return;
  }
  reader->kind = TOKEN_WORD;
  reader->text = reader->at;
  while (reader->at < reader->end && !strchr(" \t\r[]\"", *reader->at)) reader->at++;
  reader->length = (size_t)(reader->at - reader->text);
  if (!reader->length) // a NUL, which strchr finds
    fail(reader, "illegal character");
}

static bool is_word(const struct reader *reader, const char *word) {
  return reader->kind == TOKEN_WORD && strlen(word) == reader->length &&
         memcmp(word, reader->text, reader->length) == 0;
}

static bool accept(struct reader *reader, const char *word) {
  if (!is_word(reader, word)) return false;
  next(reader);
  return true;
}

static void expect(struct reader *reader, const char *word) {
  if (!accept(reader, word)) fail(reader, "'%s' is missing", word);
}

// Decimal digits with an optional sign, whole in 64 bits; advances *at.
static bool parse_integer(const char **at, const char *end, int64_t *out) {
  bool is_negative = *at < end && **at == '-';
  const char *digit = *at + is_negative;
  if (digit == end || *digit < '0' || *digit > '9') return false;
  uint64_t value = 0, limit = is_negative ? UINT64_C(1) << 63 : INT64_MAX;
  for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
    uint64_t units = (uint64_t)(*digit - '0');
    if (value > (limit - units) / 10) return false;
    value = value * 10 + units;
  }
  *at = digit;
  *out = (int64_t)(is_negative ? 0 - value : value);
  return true;
}

static int64_t expect_integer(struct reader *reader, int64_t lo, int64_t hi) {
  int64_t value;
  const char *at = reader->text;
  if (reader->kind != TOKEN_WORD || !parse_integer(&at, reader->text + reader->length, &value) ||
      at != reader->text + reader->length)
    fail(reader, "an integer is missing");
  if (value < lo || value > hi) fail(reader, "%lld is out of range", (long long)value);
  next(reader);
  return value;
}

static const char *expect_name(struct reader *reader) {
  if (reader->kind != TOKEN_WORD && reader->kind != TOKEN_TEXT) fail(reader, "a name is missing");
  const char *name = need(reader, plan_strdup(reader->plan, reader->text, reader->length));
  next(reader);
  return name;
}

static enum plan_type expect_type(struct reader *reader) {
  enum plan_type type;
  if (reader->kind != TOKEN_WORD || !plan_type_find(reader->text, reader->length, &type))
    fail(reader, "a type is missing");
  next(reader);
  return type;
}

// An operation with its operand after a spelling: s0, dim:0:1, wrap:s32, 17.
static bool parse_operand(const char *at, const char *end, enum plan_op op, struct plan_code *code) {
  const char *spelling = plan_op_spelling(op);
  size_t length = strlen(spelling);
  if ((size_t)(end - at) < length || memcmp(at, spelling, length) != 0) return false;
  at += length;
  if (!parse_integer(&at, end, &code->operand)) return false;
  code->op = op;
  if (op == PLAN_OP_DIM || op == PLAN_OP_STRIDE) {
    int64_t dimension;
    if (at == end || *at++ != ':' || !parse_integer(&at, end, &dimension) || dimension < 0 ||
        dimension >= PLAN_MAX_RANK)
      return false;
    code->dimension = (uint32_t)dimension;
  }
  return at == end;
}

static struct plan_code parse_code(struct reader *reader) {
  struct plan_code code = {0};
  for (uint32_t op = 0; op < PLAN_OP_COUNT; op++) {
    if (op <= PLAN_OP_WRAP_UNSIGNED) {
      if (parse_operand(reader->text, reader->text + reader->length, (enum plan_op)op, &code)) return code;
    } else if (is_word(reader, plan_op_spelling((enum plan_op)op))) {
      code.op = (enum plan_op)op;
      return code;
    }
  }
  fail(reader, "unknown operation '%.*s'", (int)(reader->length < 32 ? reader->length : 32), reader->text);
}

static struct plan_expr expect_expr(struct reader *reader, bool may_be_empty) {
  struct plan_expr expr = {0};
  if (reader->kind != TOKEN_OPEN) fail(reader, "'[' is missing");
  for (next(reader); reader->kind == TOKEN_WORD; next(reader)) {
    struct plan_code code = parse_code(reader);
    expr.codes = need(reader, plan_grow(reader->plan, expr.codes, &expr.count, sizeof *expr.codes));
    expr.codes[expr.count - 1] = code;
  }
  if (reader->kind != TOKEN_CLOSE) fail(reader, "']' is missing");
  if (!expr.count && !may_be_empty) fail(reader, "an expression is empty");
  next(reader);
  return expr;
}

#define GROW(reader, array, count)                                                                           \
  ((array) = need((reader), plan_grow((reader)->plan, (array), &(count), sizeof *(array))),                  \
   &(array)[(count)-1])

static void read_size(struct reader *reader, struct plan_kernel *kernel) {
  if (kernel->size_count == PLAN_MAX_SIZES) fail(reader, "more than %d sizes", PLAN_MAX_SIZES);
  struct plan_size *size = GROW(reader, kernel->sizes, kernel->size_count);
  size->name = expect_name(reader);
  if (accept(reader, "given")) return;
  if (reader->kind == TOKEN_WORD) {
    size->is_constant = true;
    size->constant = expect_integer(reader, 0, INT64_MAX);
  }
  if (reader->kind == TOKEN_OPEN || !size->is_constant) size->inferred = expect_expr(reader, false);
}

static void read_tensor(struct reader *reader, struct plan_kernel *kernel) {
  struct plan_tensor *tensor = GROW(reader, kernel->tensors, kernel->tensor_count);
  tensor->name = expect_name(reader);
  tensor->type = expect_type(reader);
  tensor->is_output = is_word(reader, "output");
  if (!tensor->is_output && !is_word(reader, "input")) fail(reader, "'input' or 'output' is missing");
  next(reader);
  tensor->is_strided = is_word(reader, "strided");
  if (!tensor->is_strided && !is_word(reader, "dense")) fail(reader, "'strided' or 'dense' is missing");
  next(reader);
  while (reader->kind == TOKEN_OPEN) {
    if (tensor->rank == PLAN_MAX_RANK) fail(reader, "more than %d dimensions", PLAN_MAX_RANK);
    struct plan_expr dim = expect_expr(reader, false);
    *GROW(reader, tensor->dims, tensor->rank) = dim;
  }
  if (accept(reader, "strides")) {
    uint32_t count = 0;
    while (reader->kind == TOKEN_OPEN) {
      struct plan_expr stride = expect_expr(reader, false);
      *GROW(reader, tensor->strides, count) = stride;
    }
    if (count != tensor->rank) fail(reader, "%u dimensions and %u strides", tensor->rank, count);
  }
}

static struct plan_entry *last_entry(struct reader *reader, struct plan_kernel *kernel) {
  if (!kernel->entry_count) fail(reader, "no entry is open");
  return &kernel->entries[kernel->entry_count - 1];
}

static void read_requirement(struct reader *reader, struct plan_requirement *requirement) {
  requirement->condition = expect_expr(reader, false);
  requirement->message = expect_name(reader);
}

static void read_launch(struct reader *reader, struct plan_entry *entry) {
  if (entry->launch_count == PLAN_MAX_LAUNCHES) fail(reader, "more than %d launches", PLAN_MAX_LAUNCHES);
  struct plan_launch *launch = GROW(reader, entry->launches, entry->launch_count);
  launch->function = expect_name(reader);
  expect(reader, "grid");
  for (int d = 0; d < 3; d++) launch->grid[d] = expect_expr(reader, false);
  expect(reader, "block");
  for (int d = 0; d < 3; d++) launch->block[d] = (uint32_t)expect_integer(reader, 1, d == 2 ? 64 : 1024);
  if ((uint64_t)launch->block[0] * launch->block[1] * launch->block[2] > 1024)
    fail(reader, "more than 1024 threads");
  expect(reader, "shared");
  launch->shared = expect_expr(reader, true);
  launch->is_programmatic = accept(reader, "programmatic");
}

static void read_argument(struct reader *reader, struct plan_kernel *kernel, struct plan_entry *entry) {
  if (!entry->launch_count) fail(reader, "no launch is open");
  struct plan_launch *launch = &entry->launches[entry->launch_count - 1];
  if (launch->argument_count == PLAN_MAX_ARGUMENTS)
    fail(reader, "more than %d arguments", PLAN_MAX_ARGUMENTS);
  struct plan_argument *argument = GROW(reader, launch->arguments, launch->argument_count);
  if (accept(reader, "tensor")) {
    argument->kind = PLAN_ARGUMENT_TENSOR;
    argument->index = (uint32_t)expect_integer(reader, 0, (int64_t)kernel->tensor_count - 1);
    argument->bytes = 8;
  } else if (accept(reader, "scalar")) {
    argument->kind = PLAN_ARGUMENT_SCALAR;
    argument->index = (uint32_t)expect_integer(reader, 0, (int64_t)kernel->scalar_count - 1);
    argument->bytes = plan_type_bytes(kernel->scalars[argument->index].type);
  } else if (accept(reader, "workspace")) {
    argument->kind = PLAN_ARGUMENT_WORKSPACE;
    argument->bytes = 8;
    argument->expr = expect_expr(reader, false);
    if (!entry->workspace.count) fail(reader, "entry %s has no workspace", entry->name);
  } else {
    expect(reader, "integer");
    argument->kind = PLAN_ARGUMENT_INTEGER;
    argument->bytes = (uint32_t)expect_integer(reader, 4, 8);
    if (argument->bytes != 4 && argument->bytes != 8) fail(reader, "an integer argument has 4 or 8 bytes");
    argument->expr = expect_expr(reader, false);
  }
}

static void check_expr(struct reader *reader, const struct plan_kernel *kernel, const struct plan_expr *expr,
                       const char *what, const char *name) {
  const char *fault = plan_expr_fault(kernel, expr);
  if (fault) fail(reader, "kernel %s: %s %s: %s", kernel->name, what, name, fault);
}

// Every expression, once all that it may mention is known.
static void check_kernel(struct reader *reader, const struct plan_kernel *kernel) {
  if (!kernel->entry_count) fail(reader, "kernel %s has no entry", kernel->name);
  struct plan_kernel before = *kernel; // a size is inferred from earlier ones only
  for (uint32_t i = 0; i < kernel->size_count; i++) {
    before.size_count = i;
    check_expr(reader, &before, &kernel->sizes[i].inferred, "size", kernel->sizes[i].name);
  }
  for (uint32_t i = 0; i < kernel->tensor_count; i++) {
    const struct plan_tensor *tensor = &kernel->tensors[i];
    for (uint32_t d = 0; d < tensor->rank; d++) {
      check_expr(reader, kernel, &tensor->dims[d], "tensor", tensor->name);
      if (tensor->strides) check_expr(reader, kernel, &tensor->strides[d], "tensor", tensor->name);
    }
  }
  for (uint32_t i = 0; i < kernel->requirement_count; i++)
    check_expr(reader, kernel, &kernel->requirements[i].condition, "requirement",
               kernel->requirements[i].message);
  for (uint32_t i = 0; i < kernel->entry_count; i++) {
    const struct plan_entry *entry = &kernel->entries[i];
    check_expr(reader, kernel, &entry->when, "entry", entry->name);
    check_expr(reader, kernel, &entry->workspace, "entry", entry->name);
    check_expr(reader, kernel, &entry->zeroed, "entry", entry->name);
    for (uint32_t a = 0; a < entry->assumption_count; a++)
      check_expr(reader, kernel, &entry->assumptions[a].condition, "entry", entry->name);
    if (!entry->launch_count) fail(reader, "entry %s has no launch", entry->name);
    for (uint32_t l = 0; l < entry->launch_count; l++) {
      const struct plan_launch *launch = &entry->launches[l];
      check_expr(reader, kernel, &launch->shared, "launch", launch->function);
      for (int d = 0; d < 3; d++) check_expr(reader, kernel, &launch->grid[d], "launch", launch->function);
      for (uint32_t a = 0; a < launch->argument_count; a++)
        check_expr(reader, kernel, &launch->arguments[a].expr, "launch", launch->function);
    }
  }
}

static void read_line(struct reader *reader) {
  struct plan_kernel *kernel = reader->kernel;
  next(reader);
  if (accept(reader, "version")) {
    int64_t version = expect_integer(reader, 0, INT64_MAX);
    if (version != PLAN_VERSION)
      fail(reader, "it has version %lld; this runtime reads version %d", (long long)version, PLAN_VERSION);
    if (kernel) fail(reader, "'end' is missing");
  } else if (accept(reader, "kernel")) {
    if (kernel) fail(reader, "'end' is missing");
    reader->kernel = GROW(reader, reader->plan->kernels, reader->plan->kernel_count);
    reader->kernel->name = expect_name(reader);
    for (uint32_t i = 0; i + 1 < reader->plan->kernel_count; i++)
      if (strcmp(reader->plan->kernels[i].name, reader->kernel->name) == 0)
        fail(reader, "kernel %s stands there twice", reader->kernel->name);
  } else if (!kernel) {
    fail(reader, "no kernel is open");
  } else if (accept(reader, "size")) {
    read_size(reader, kernel);
  } else if (accept(reader, "scalar")) {
    struct plan_scalar *scalar = GROW(reader, kernel->scalars, kernel->scalar_count);
    scalar->name = expect_name(reader);
    scalar->type = expect_type(reader);
    if (plan_type_bytes(scalar->type) > 8) fail(reader, "a scalar of more than 8 bytes");
  } else if (accept(reader, "tensor")) {
    read_tensor(reader, kernel);
  } else if (accept(reader, "require")) {
    read_requirement(reader, GROW(reader, kernel->requirements, kernel->requirement_count));
  } else if (accept(reader, "entry")) {
    struct plan_entry *entry = GROW(reader, kernel->entries, kernel->entry_count);
    entry->name = expect_name(reader);
    expect(reader, "schedule");
    entry->schedule = expect_name(reader);
  } else if (accept(reader, "when")) {
    last_entry(reader, kernel)->when = expect_expr(reader, false);
  } else if (accept(reader, "assume")) {
    struct plan_entry *entry = last_entry(reader, kernel);
    read_requirement(reader, GROW(reader, entry->assumptions, entry->assumption_count));
  } else if (accept(reader, "workspace")) {
    last_entry(reader, kernel)->workspace = expect_expr(reader, false);
  } else if (accept(reader, "zeroed")) {
    last_entry(reader, kernel)->zeroed = expect_expr(reader, false);
  } else if (accept(reader, "launch")) {
    read_launch(reader, last_entry(reader, kernel));
  } else if (accept(reader, "argument")) {
    read_argument(reader, kernel, last_entry(reader, kernel));
  } else if (accept(reader, "end")) {
    check_kernel(reader, kernel);
    reader->kernel = NULL;
  } else {
    fail(reader, "unknown line");
  }
  if (reader->kind != TOKEN_END) fail(reader, "more than the line may have");
}

bool plan_parse(struct plan *plan, const char *text, size_t length, char *error, size_t error_bytes) {
  struct reader reader = {.plan = plan, .error = error, .error_bytes = error_bytes};
  if (setjmp(reader.failed)) {
    plan_destroy(plan);
    return false;
  }
  const char *end = text + length;
  bool has_version = false;
  for (const char *line = text, *after; line < end; line = after) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    after = stop ? stop + 1 : end;
    reader.line++;
    if ((size_t)(after - line) < sizeof prefix - 1 || memcmp(line, prefix, sizeof prefix - 1) != 0) continue;
    reader.at = line + sizeof prefix - 1;
    reader.end = stop ? stop : end;
    if (!has_version && (size_t)(reader.end - reader.at) >= 7 && memcmp(reader.at, "version", 7) != 0)
      fail(&reader, "the version is missing");
    has_version = true;
    read_line(&reader);
  }
  if (reader.kernel) fail(&reader, "'end' is missing");
  if (!has_version) {
    snprintf(error, error_bytes, "no plan: the text has no line that begins with '// red.plan '");
    plan_destroy(plan);
    return false;
  }
  return true;
}
