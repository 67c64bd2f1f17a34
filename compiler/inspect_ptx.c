#include "compiler/inspect_ptx.h"

#include "compiler/json.h"
#include "runtime/sim/sim.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 64 };

struct ptx_line {
  uint32_t line;
  const char *op;   // "shfl.sync.down.b32"
  const char *mask; // the last operand of a collective; NULL: none
};
struct ptx_entry {
  const struct sim_entry *facts;
  uint32_t line;
  struct list collectives, accesses; // struct ptx_line
};

struct ptx_reader {
  struct diag *diag;
  uint32_t file, line;
  struct map active; // registers that hold what activemask said
  struct list entries;
};

static char *word(struct arena *arena, const char **at) {
  while (**at == ' ' || **at == '\t') ++*at;
  const char *start = *at;
  while (isalnum((unsigned char)**at) || (**at && strchr("._%$@!-", **at))) ++*at;
  return arena_strndup(arena, start, (size_t)(*at - start));
}

// The operands behind an opcode: names and numbers in order.
static struct list operands(struct arena *arena, const char *at) {
  struct list found = {0};
  while (*at && *at != ';' && *at != '\n') {
    char *one = word(arena, &at);
    if (*one) list_push(arena, &found, one);
    while (*at && *at != ';' && *at != '\n' && !isalnum((unsigned char)*at) && !strchr("%._-$", *at)) at++;
  }
  return found;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static void add(struct ptx_reader *reader, struct list *to, const char *op, const char *mask) {
  struct ptx_line *line = arena_new(reader->diag->arena, struct ptx_line);
  *line = (struct ptx_line){reader->line, op, mask};
  list_push(reader->diag->arena, to, line);
}

static void read_instruction(struct ptx_reader *reader, struct ptx_entry *entry, const char *op, const char *rest) {
  static const char *const collectives[] = {"shfl.", "vote.", "match.", "redux.", "bar.", "barrier.", "elect."};
  struct arena *arena = reader->diag->arena;
  struct list named = operands(arena, rest);
  const char *first = named.count ? list_at(&named, const char, 0) : NULL, *last = named.count ? list_at(&named, const char, named.count - 1) : NULL;
  struct range range = {reader->line, 1, reader->line, 2, reader->file};
  if (begins(op, "activemask") && first) map_set(&reader->active, first, reader);
  if (begins(op, "mov.") && named.count == 2 && map_get(&reader->active, last)) map_set(&reader->active, first, reader);
  for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
    if (!begins(op, collectives[i])) continue;
    bool is_block = begins(op, "bar.sync") || begins(op, "barrier.") || (begins(op, "bar.") && !begins(op, "bar.warp"));
    if (entry) add(reader, &entry->collectives, op, is_block ? NULL : last);
    if (!is_block && !strstr(op, ".sync"))
      diag_warning(reader->diag, 0, range, "%s has no mask: warp instructions without .sync have no defined lanes since sm_70 [legacy-shuffle]", op);
    else if (!is_block && last && map_get(&reader->active, last))
      diag_warning(reader->diag, 0, range, "%s: its mask comes from activemask, which does not say which lanes must arrive [activemask]", op);
  }
  static const char *const accesses[] = {"ld.global", "st.global", "ld.shared", "st.shared", "atom.", "red.", "cp.async", "ld.local", "st.local"};
  for (size_t i = 0; entry && i < sizeof accesses / sizeof *accesses; i++)
    if (begins(op, accesses[i])) add(reader, &entry->accesses, op, NULL);
}

static struct ptx_entry *find_entry(struct ptx_reader *reader, const struct sim_module *module, const char *text) {
  const char *at = strstr(text, ".entry ");
  if (!at) return NULL;
  at += strlen(".entry ");
  char *name = word(reader->diag->arena, &at);
  struct ptx_entry *entry = arena_new(reader->diag->arena, struct ptx_entry);
  entry->facts = sim_module_find(module, name);
  entry->line = reader->line;
  if (!entry->facts) return NULL;
  list_push(reader->diag->arena, &reader->entries, entry);
  return entry;
}

static void read_lines(struct ptx_reader *reader, const struct sim_module *module, const char *text, size_t length) {
  struct ptx_entry *entry = NULL;
  const char *end = text + length;
  for (reader->line = 1; text < end; reader->line++) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    if (!stop) stop = end;
    const char *line = arena_strndup(reader->diag->arena, text, (size_t)(stop - text)), *at = line;
    text = stop + 1;
    while (isspace((unsigned char)*at)) at++;
    if (begins(at, "//") || !*at) continue;
    if (strstr(at, ".entry ")) {
      entry = find_entry(reader, module, at);
      continue;
    }
    if (*at == '.' || *at == '}' || *at == '{') continue;
    char *op = word(reader->diag->arena, &at);
    if (*op == '@') op = word(reader->diag->arena, &at); // a predicate
    if (strchr(op, '.') || begins(op, "activemask")) read_instruction(reader, entry, op, at);
  }
}

// Equal instructions together: "3 x ld.global.nc.v4.f32".
static void print_counted(struct diag *diag, const struct list *lines, const char *title, struct text *out) {
  bool *done = arena_array(diag->arena, bool, lines->count + 1);
  if (lines->count) text_printf(out, " %s\n", title);
  for (uint32_t i = 0; i < lines->count; i++) {
    const struct ptx_line *line = list_at(lines, struct ptx_line, i);
    uint32_t count = 0;
    for (uint32_t k = i; !done[i] && k < lines->count; k++) {
      const struct ptx_line *other = list_at(lines, struct ptx_line, k);
      bool same = strcmp(line->op, other->op) == 0 && (!line->mask) == (!other->mask) && (!line->mask || strcmp(line->mask, other->mask) == 0);
      if (same && k > i) done[k] = true;
      count += same;
    }
    if (!done[i])
      text_printf(out, "  %5" PRIu32 "    %3" PRIu32 " x %s%s%s\n", line->line, count, line->op, line->mask ? "  mask " : "", line->mask ? line->mask : "");
  }
}

static void print_json(const struct list *lines, const char *name, struct text *out) {
  text_printf(out, ", \"%s\": [", name);
  for (uint32_t i = 0; i < lines->count; i++) {
    const struct ptx_line *line = list_at(lines, struct ptx_line, i);
    text_printf(out, "%s{\"line\": %" PRIu32 ", \"op\": ", i ? ", " : "", line->line);
    json_string(out, line->op);
    if (line->mask) {
      text_puts(out, ", \"mask\": ");
      json_string(out, line->mask);
    }
    text_puts(out, "}");
  }
  text_puts(out, "]");
}

static void print_entry(struct diag *diag, const struct ptx_entry *entry, bool json, struct text *out) {
  const struct sim_entry *facts = entry->facts;
  const uint32_t *block = facts->required_block;
  if (json) {
    text_puts(out, "{\"name\": ");
    json_string(out, facts->name);
    text_printf(out, ", \"line\": %" PRIu32 ", \"block\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "], \"shared_bytes\": %" PRIu64 ", \"parameters\": %zu",
                entry->line, block[0], block[1], block[2], facts->shared_bytes, facts->parameter_count);
    print_json(&entry->collectives, "collectives", out);
    print_json(&entry->accesses, "accesses", out);
    text_puts(out, "}");
    return;
  }
  text_printf(out, "entry %s  (line %" PRIu32 ")\n", facts->name, entry->line);
  if (block[0]) text_printf(out, "  block %" PRIu32 " x %" PRIu32 " x %" PRIu32 "\n", block[0], block[1], block[2]);
  text_printf(out, "  shared %" PRIu64 " bytes, %zu parameters\n", facts->shared_bytes, facts->parameter_count);
  print_counted(diag, &entry->collectives, "collectives", out);
  print_counted(diag, &entry->accesses, "accesses", out);
}

bool inspect_ptx(struct diag *diag, uint32_t file, bool json, struct text *out) {
  const struct source *source = list_at(&diag->sources, const struct source, file);
  struct sim_error error;
  struct sim_module *module = sim_module_parse(source->text, source->length, source->name, &error);
  if (!module) {
    uint32_t line = error.line > 0 ? (uint32_t)error.line : 0, column = error.column > 0 ? (uint32_t)error.column : 1;
    diag_error(diag, ERROR_BACKEND, (struct range){line, column, line, column + 1, file}, "%s", error.message);
    return false;
  }
  struct ptx_reader reader = {.diag = diag, .file = file};
  map_init(&reader.active, diag->arena);
  read_lines(&reader, module, source->text, source->length);
  if (json) {
    text_puts(out, "{\"file\": ");
    json_string(out, source->name);
    text_puts(out, ", \"entries\": [");
  }
  for (uint32_t i = 0; i < reader.entries.count; i++) {
    if (i) text_puts(out, json ? ",\n" : "\n");
    print_entry(diag, list_at(&reader.entries, struct ptx_entry, i), json, out);
  }
  if (json) text_puts(out, "]}\n");
  sim_module_destroy(module);
  return true;
}
