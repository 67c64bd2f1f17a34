// redc check: runs any PTX in the simulator, with all its checks.
#include "compiler/run.h"

#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "compiler/run_element.h"
#include "compiler/run_sim.h"
#include "compiler/run_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "Usage: redc check FILE.ptx [--entry NAME] --grid X[,Y,Z] [--block X[,Y,Z]] [--shared BYTES] --arg "
    "ARG...\n"
    "Run one kernel of any PTX in the simulator and print what it finds: accesses out of\n"
    "bounds, misaligned or of memory never written, races, shuffles with wrong masks,\n"
    "barriers that not all threads reach. Needs no GPU.\n\n"
    "Options:\n"
    "  --entry NAME            which entry, where there are several\n"
    "  --grid X[,Y,Z]          blocks\n"
    "  --block X[,Y,Z]         threads; not needed where the entry has .reqntid\n"
    "  --shared BYTES          dynamic shared memory\n"
    "  --arg ARG               the next parameter; see below\n"
    "  --print N               print parameter N, counted from 0, after the run\n"
    "  --out N=FILE.npy        write it\n"
    "  --seed N                orders of blocks, warps and lanes; with --jobs 1 the same\n"
    "                          seed replays the same run\n"
    "  --jobs N                host threads\n"
    "  --stats[=json]          print what the simulator counted\n"
    "  --help                  print this text\n\n"
    "An ARG is one of these:\n"
    "  i32=37  f32=1.5         a scalar\n"
    "  f32[1024]=rand(1)       a pointer to a buffer of this type and shape, with contents as\n"
    "                          in redc run: rand iota const(X) FORMULA FILE.npy, and a view\n"
    "  f32=@FILE.npy           the shape of the file\n"
    "  f32[1024]               a buffer that counts as never written\n\n"
    "Exit status: 0 nothing was found; 1 something was, or an error; 2 the command line is\n"
    "not legal.\n";

// One parameter: a buffer, or a scalar's bytes.
struct parameter {
  bool is_buffer;
  struct argument_source source;
  enum type type;
  uint32_t rank;
  int64_t dims[NPY_MAX_RANK];
  struct buffer buffer;
  uint64_t address;
  struct value scalar;
  const char *name;
};

struct check {
  struct compilation c;
  struct options options;
  struct run_options common;
  bool has_grid, has_block;
  uint32_t grid[3], block[3];
  int64_t shared;
  int64_t bytes;                // of all buffers so far
  struct parameter *parameters; // as many as --arg
  struct text ptx;
  struct simulation simulation;
  struct text out;
};

static const struct range nowhere;

static bool refuse(struct check *check, enum diag_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct check *check, enum diag_code code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(&check->c.arena, format, arguments);
  va_end(arguments);
  diag_error(&check->c.diag, code, nowhere, "%s", message);
  return false;
}

// --- Command line
// ---------------------------------------------------------------------------------------------------------------

// X, X,Y or X,Y,Z.
static bool parse_dims(struct check *check, const char *option, const char *text, uint32_t out[3]) {
  out[0] = out[1] = out[2] = 1;
  for (int d = 0; d < 3; d++) {
    size_t length = strcspn(text, ",");
    int64_t value;
    if (!run_parse_integer(&check->c, option, arena_strndup(&check->c.arena, text, length), 1, UINT32_MAX,
                           &value))
      return false;
    out[d] = (uint32_t)value;
    if (!text[length]) return true;
    text += length + 1;
  }
  return refuse(check, ERROR_USAGE, "%s has at most three extents", option);
}

static bool take_option(struct check *check, int argc, char **argv, int *at) {
  const char *value;
  struct compilation *c = &check->c;
  if (run_take_option(&check->common, c, argc, argv, at)) return true;
  if (run_take_value(c, "--grid", argc, argv, at, &value)) {
    check->has_grid = value && parse_dims(check, "--grid", value, check->grid);
  } else if (run_take_value(c, "--block", argc, argv, at, &value)) {
    check->has_block = value && parse_dims(check, "--block", value, check->block);
  } else if (run_take_value(c, "--shared", argc, argv, at, &value)) {
    if (value) run_parse_integer(c, "--shared", value, 0, INT32_MAX, &check->shared);
  } else {
    return false;
  }
  return true;
}

// [4,5] behind a type; *at moves behind it.
static bool parse_shape(struct check *check, struct parameter *p, const char **at) {
  const char *text = *at + 1;
  while (*text != ']') {
    char *end;
    if (p->rank == NPY_MAX_RANK)
      return refuse(check, ERROR_USAGE, "--arg %s: more than %d dimensions", p->name, NPY_MAX_RANK);
    if (*text < '0' || *text > '9')
      return refuse(check, ERROR_USAGE, "--arg %s: an extent is missing", p->name);
    long long extent = strtoll(text, &end, 10);
    if (extent == INT64_MAX) return refuse(check, ERROR_USAGE, "--arg %s: an extent is too large", p->name);
    p->dims[p->rank++] = extent;
    text = *end == ',' ? end + 1 : end;
    if (*end != ',' && *end != ']') return refuse(check, ERROR_USAGE, "--arg %s: ']' is missing", p->name);
  }
  *at = text + 1;
  return true;
}

static bool parse_parameter(struct check *check, uint32_t number, const char *text) {
  struct parameter *p = &check->parameters[number];
  struct compilation *c = &check->c;
  size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
  const char *at = text + length;
  char error[256];
  p->name = arena_printf(&c->arena, "%" PRIu32, number);
  if (!type_parse(arena_strndup(&c->arena, text, length), &p->type))
    return refuse(check, ERROR_USAGE, "--arg %s: '%s' begins with no type; see redc check --help", p->name,
                  text);
  p->is_buffer = *at == '[';
  if (p->is_buffer && !parse_shape(check, p, &at)) return false;
  // A view may follow without contents: f32[4]@offset:1.
  if (*at && *at != '=' && !(p->is_buffer && *at == '@'))
    return refuse(check, ERROR_USAGE, "--arg %s: unexpected '%s'", p->name, at);
  const char *value = *at == '=' ? at + 1 : at;
  if (!p->is_buffer &&
      (*value == '@' || (strlen(value) > 4 && strcmp(value + strlen(value) - 4, ".npy") == 0))) {
    p->is_buffer = true;
    if (!source_parse(&p->source, c, p->name, value) || !source_load(&p->source, c)) return false;
    p->rank = p->source.npy.rank;
    memcpy(p->dims, p->source.npy.dims, sizeof p->dims);
    if (!p->source.has_type &&
        npy_can_hold(&p->source.npy, p->type)) { // the type in front of `=` says what the bits are
      p->source.has_type = true;
      p->source.type = p->type;
    }
    return true;
  }
  if (p->is_buffer) return source_parse(&p->source, c, p->name, value) && source_load(&p->source, c);
  if (type_class_of(p->type) == CLASS_MOVED)
    return refuse(check, ERROR_USAGE, "--arg %s: there are no scalars of type %s", p->name,
                  type_name(p->type));
  return element_parse(&p->scalar, p->type, value, error, sizeof error) ||
         refuse(check, ERROR_USAGE, "--arg %s: %s", p->name, error);
}

static bool parse_command_line(struct check *check, int argc, char **argv) {
  struct compilation *c = &check->c;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;)
    if (!take_option(check, argc, argv, &at) &&
        options_take(&check->options, argc, argv, &at) == OPTION_NOT_ONE)
      list_push(&c->arena, &check->options.inputs, argv[at++]);
  if (check->common.wants_help) return !c->diag.error_count;
  if (check->options.inputs.count != 1)
    refuse(check, ERROR_USAGE, "redc check takes one PTX file; see redc check --help");
  if (!check->has_grid && !c->diag.error_count) refuse(check, ERROR_USAGE, "redc check needs --grid X[,Y,Z]");
  check->parameters = arena_array(&c->arena, struct parameter, check->common.args.count + 1);
  for (uint32_t i = 0; i < check->common.args.count; i++)
    parse_parameter(check, i, list_at(&check->common.args, const char, i));
  return !c->diag.error_count;
}

// --- Buffers
// --------------------------------------------------------------------------------------------------------------------

static bool make_buffer(struct check *check, struct parameter *p) {
  char error[256];
  const int64_t *strides = p->source.has_strides ? p->source.strides : NULL;
  if (strides && p->source.stride_count != p->rank)
    return refuse(check, ERROR_ARGUMENT,
                  "--arg %s: a view of %" PRIu32 " strides, the shape has rank %" PRIu32, p->name,
                  p->source.stride_count, p->rank);
  const char *name = arena_printf(&check->c.arena, "parameter %s", p->name);
  if (!buffer_init(&p->buffer, name, p->type, p->rank, p->dims, strides, p->source.offset, &check->c.arena,
                   error, sizeof error))
    return refuse(check, ERROR_ARGUMENT, "%s", error);
  if (__builtin_add_overflow(check->bytes, buffer_element_bytes(&p->buffer), &check->bytes))
    check->bytes = INT64_MAX;
  if (!buffer_memory_suffices(check->bytes, error, sizeof error))
    return refuse(check, ERROR_ARGUMENT, "%s", error);
  buffer_set_canaries(&p->buffer);
  if (p->source.kind == SOURCE_NONE) buffer_fill(&p->buffer, BUFFER_POISON);
  return source_fill(&p->source, &check->options, NULL, 0, &p->buffer);
}

// The parameter that --print and --out name by its number.
static struct parameter *find_parameter(struct check *check, const char *option, const char *text) {
  int64_t number;
  if (!run_parse_integer(&check->c, option, text, 0,
                         check->common.args.count ? check->common.args.count - 1 : 0, &number))
    return NULL;
  if (number < check->common.args.count && check->parameters[number].is_buffer)
    return &check->parameters[number];
  refuse(check, ERROR_USAGE, "%s: parameter %s is no buffer", option, text);
  return NULL;
}

static bool check_outs(struct check *check) {
  const char *number, *path;
  for (uint32_t i = 0; i < check->common.prints.count; i++)
    if (!find_parameter(check, "--print", list_at(&check->common.prints, const char, i))) return false;
  for (uint32_t i = 0; i < check->common.outs.count; i++)
    if (!run_split(&check->c, "--out", list_at(&check->common.outs, const char, i), &number, &path) ||
        !find_parameter(check, "--out", number))
      return false;
  return true;
}

static void print_buffers(struct check *check) {
  for (uint32_t i = 0; i < check->common.prints.count; i++) {
    const char *number = list_at(&check->common.prints, const char, i);
    if (check->common.prints.count > 1) text_printf(&check->out, "%s:\n", number);
    array_print(&check->out, &find_parameter(check, "--print", number)->buffer);
  }
}

static bool write_buffers(struct check *check) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < check->common.outs.count; i++) {
    const char *number, *path;
    run_split(&check->c, "--out", list_at(&check->common.outs, const char, i), &number, &path);
    const struct buffer *buffer = &find_parameter(check, "--out", number)->buffer;
    char *data = malloc((size_t)buffer->count * type_bytes(buffer->type) + 1);
    if (!data) return refuse(check, ERROR_FILE, "out of memory");
    struct text file = {0};
    buffer_gather(buffer, data);
    npy_print(&file, buffer->type, buffer->rank, buffer->dims, data);
    ok = output_write(&check->c.diag, path, file.data, file.length);
    text_free(&file);
    free(data);
  }
  return ok;
}

// --- Launch
// ---------------------------------------------------------------------------------------------------------------------

static const struct sim_entry *find_entry(struct check *check) {
  struct sim_module *module = check->simulation.module;
  size_t count = sim_module_entry_count(module);
  const char *names = "";
  for (size_t i = 0; i < count; i++) {
    const struct sim_entry *entry = sim_module_entry(module, i);
    names = arena_printf(&check->c.arena, "%s%s%s", names, i ? ", " : "", entry->name);
    if (check->common.entry ? strcmp(entry->name, check->common.entry) == 0 : count == 1) return entry;
  }
  if (!count)
    refuse(check, ERROR_USAGE, "the PTX has no entry");
  else if (check->common.entry)
    refuse(check, ERROR_USAGE, "the PTX has no entry '%s'; it has %s", check->common.entry, names);
  else
    refuse(check, ERROR_USAGE, "say which entry to run with --entry: %s", names);
  return NULL;
}

// The bytes of a parameter of the launch.
static uint64_t parameter_bits(const struct parameter *p) {
  uint64_t bits = 0;
  uint8_t element[16] = {0};
  if (p->is_buffer) return p->address;
  struct value value = p->scalar;
  value.type = type_is_float(p->type) || type_class_of(p->type) == CLASS_STORAGE ? TYPE_F64 : TYPE_I64;
  element_set(p->type, element, value);
  memcpy(&bits, element, sizeof bits);
  return bits;
}

static bool lay_out(struct check *check, const struct sim_entry *entry, char *blob) {
  uint32_t given = check->common.args.count;
  if (given != entry->parameter_count)
    return refuse(check, ERROR_ARGUMENT, "entry '%s' takes another number of arguments: %zu, not %" PRIu32,
                  entry->name, entry->parameter_count, given);
  for (uint32_t i = 0; i < given; i++) {
    const struct parameter *p = &check->parameters[i];
    const struct sim_parameter *declared = &entry->parameters[i];
    uint32_t bytes = p->is_buffer ? 8 : type_bytes(p->type);
    if (declared->size != bytes)
      return refuse(check, ERROR_ARGUMENT,
                    "parameter %" PRIu32 " ('%s') of entry '%s' has %zu bytes, --arg %s is %s of %" PRIu32, i,
                    declared->name, entry->name, declared->size, p->name,
                    p->is_buffer ? "a pointer" : type_name(p->type), bytes);
    uint64_t bits = parameter_bits(p);
    memcpy(blob + declared->offset, &bits, bytes);
  }
  return true;
}

static bool choose_block(struct check *check, const struct sim_entry *entry) {
  if (check->has_block) return true;
  if (!entry->required_block[0])
    return refuse(check, ERROR_USAGE, "entry '%s' does not say its block: give --block X[,Y,Z]", entry->name);
  for (int d = 0; d < 3; d++) check->block[d] = entry->required_block[d] ? entry->required_block[d] : 1;
  return true;
}

static bool launch(struct check *check, const struct sim_entry *entry) {
  char *blob = arena_alloc(&check->c.arena, entry->parameter_bytes + 16);
  if (!choose_block(check, entry) || !lay_out(check, entry, blob)) return false;
  struct sim_launch launched = {.entry = entry,
                                .dynamic_shared = (uint64_t)check->shared,
                                .parameters = blob,
                                .parameter_bytes = entry->parameter_bytes};
  memcpy(launched.grid, check->grid, sizeof launched.grid);
  memcpy(launched.block, check->block, sizeof launched.block);
  return simulation_launch(&check->simulation, &launched);
}

static bool run_check(struct check *check) {
  const char *path = list_at(&check->options.inputs, const char, 0);
  char error[256];
  bool ok = input_read(&check->c.diag, path, &check->ptx) && check_outs(check);
  for (uint32_t i = 0; ok && i < check->common.args.count; i++)
    if (check->parameters[i].is_buffer) ok = make_buffer(check, &check->parameters[i]);
  ok = ok && simulation_begin(&check->simulation, &check->c, check->ptx.data ? check->ptx.data : "",
                              check->ptx.length, input_name(path), &check->common);
  for (uint32_t i = 0; ok && i < check->common.args.count; i++) {
    struct parameter *p = &check->parameters[i];
    if (!p->is_buffer) continue;
    p->address = simulation_map(&check->simulation, &p->buffer, p->source.kind != SOURCE_NONE);
    ok = p->address != 0;
  }
  const struct sim_entry *entry = ok ? find_entry(check) : NULL;
  if (!entry) return false;
  ok = launch(check, entry);
  if (check->c.diag.error_count) return false;
  for (uint32_t i = 0; i < check->common.args.count; i++)
    if (check->parameters[i].is_buffer &&
        !buffer_has_canaries(&check->parameters[i].buffer, error, sizeof error))
      ok = refuse(check, ERROR_FINDINGS, "%s", error);
  text_append(&check->out, check->simulation.printed.data, check->simulation.printed.length);
  print_buffers(check);
  return ok && write_buffers(check);
}

int redc_check(int argc, char **argv) {
  struct check check = {0};
  int status = EXIT_USAGE;
  compilation_init(&check.c);
  options_init(&check.options, &check.c);
  if (parse_command_line(&check, argc, argv)) {
    bool ok = true;
    if (check.common.wants_help)
      text_puts(&check.out, HELP);
    else
      ok = run_check(&check);
    if (check.out.length) ok &= output_write(&check.c.diag, "-", check.out.data, check.out.length);
    status = run_status(&check.c, ok);
  }
  driver_print_diagnostics(&check.options);
  for (uint32_t i = 0; check.parameters && i < check.common.args.count; i++) {
    buffer_free(&check.parameters[i].buffer);
    source_free(&check.parameters[i].source);
  }
  simulation_end(&check.simulation);
  text_free(&check.ptx);
  text_free(&check.out);
  compilation_destroy(&check.c);
  return status;
}
