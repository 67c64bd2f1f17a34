#include "runtime/slice.h"

#include <stdlib.h>
#include <string.h>

static const char ENTRY[] = "\n.visible .entry ", END[] = "\n}\n", PLAN[] = "// red.plan ";

bool slice_is_possible(const struct variant *variant) {
  uint32_t entries = 0;
  for (uint32_t k = 0; k < variant->plan.kernel_count; k++) entries += variant->plan.kernels[k].entry_count;
  // Functions and full debug information are shared. The one section that line tables leave behind is empty.
  if (entries < 2 || strstr(variant->ptx, "\n.func") || strstr(variant->ptx, ".visible .func") || strstr(variant->ptx, ".debug_info")) return false;
  for (const char *at = strstr(variant->ptx, ENTRY); at; at = strstr(at + 1, ENTRY))
    if (!strstr(at, END)) return false;
  return true;
}

// --- The text of one entry

struct out {
  char *data;
  size_t length;
};

static void put(struct out *out, const char *from, size_t length) {
  memcpy(out->data + out->length, from, length);
  out->length += length;
}

// The lines from `from` to `to` that are not of the plan.
static void put_without_plan(struct out *out, const char *from, const char *to) {
  while (from < to) {
    const char *stop = memchr(from, '\n', (size_t)(to - from));
    const char *after = stop ? stop + 1 : to;
    if ((size_t)(after - from) < sizeof PLAN - 1 || memcmp(from, PLAN, sizeof PLAN - 1) != 0) put(out, from, (size_t)(after - from));
    from = after;
  }
}

// Whether the entry that starts at `at`, behind its keyword, is one of the functions that the plan's entry launches.
static bool is_launched(const char *at, const struct plan_entry *entry) {
  size_t length = strcspn(at, "(\n \t");
  for (uint32_t l = 0; l < entry->launch_count; l++)
    if (strlen(entry->launches[l].function) == length && memcmp(entry->launches[l].function, at, length) == 0) return true;
  return false;
}

static void put_code(struct out *out, const char *ptx, const struct plan_entry *entry) {
  const char *at = ptx, *start;
  while ((start = strstr(at, ENTRY))) {
    const char *stop = strstr(start, END) + sizeof END - 2; // with its brace
    put_without_plan(out, at, start);
    if (is_launched(start + sizeof ENTRY - 1, entry)) put(out, start, (size_t)(stop - start));
    at = stop;
  }
  put_without_plan(out, at, at + strlen(at));
}

struct slice {
  const struct variant *whole;
  const struct plan_kernel *kernel;
  uint32_t entry;
};

static red_error build(void *state, struct built *built) {
  const struct slice *slice = state;
  struct plan_kernel kernel = *slice->kernel;
  struct plan plan = {.kernels = &kernel, .kernel_count = 1};
  kernel.entries += slice->entry;
  kernel.entry_count = 1;
  char *comments = plan_print(&plan);
  struct out out = {comments ? malloc(strlen(comments) + slice->whole->ptx_bytes + 1) : NULL, 0};
  if (out.data) {
    put(&out, comments, strlen(comments));
    put_code(&out, slice->whole->ptx, &kernel.entries[0]);
    out.data[out.length] = 0;
  }
  free(comments);
  *built = (struct built){.ptx = out.data, .ptx_bytes = out.length, .is_checked = true};
  return out.data ? RED_OK : error_memory();
}

// --- For programs

static red_error slice_entry(void *state, struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed, enum slot_state *slot, struct variant **variant) {
  const struct variant *whole = state;
  struct slice slice = {whole, kernel->plan, entry};
  const char *name = kernel->plan->entries[entry].name;
  size_t length = strlen(name);
  (void)fixed;
  char *key = malloc(whole->key_bytes + length + 2); // that of the whole, a zero byte and the entry's name
  if (!key) return error_memory();
  memcpy(key, whole->key, whole->key_bytes);
  key[whole->key_bytes] = 0;
  memcpy(key + whole->key_bytes + 1, name, length + 1);
  red_error error = variant_get(whole->device, key, whole->key_bytes + length + 2, whole->name, build, &slice, variant);
  free(key);
  *slot = SLOT_COMPILED;
  return error;
}

static void slice_destroy(void *state) {
  (void)state; // the program holds the variant
}

const struct jit_ops slice_ops = {.entry = slice_entry, .destroy = slice_destroy};
