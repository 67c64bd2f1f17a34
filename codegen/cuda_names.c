// Names for the CUDA text: the source's own, with an underscore behind those that C++ or CUDA takes.
#include "codegen/cuda.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Keywords of C++, what CUDA declares without a header, macros and functions of the headers that nvcc
// includes by itself. Sorted.
static const char *const reserved[] = {
#define R(name) #name,
#include "codegen/cuda_reserved.def"
#undef R
};

static int compare_names(const void *key, const void *entry) {
  return strcmp(key, *(const char *const *)entry);
}

// Lower case of a helper's enumerator, without "red_".
static bool is_helper(const char *name) {
  static const char *const helpers[] = {
#define H(name, needs, code) #name,
#include "codegen/cuda_helpers.def"
#undef H
  };
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
    if (strcasecmp(name, helpers[i]) == 0) return true;
  return false;
}

static bool is_reserved(const char *name) {
  if (strncmp(name, "red_", 4) == 0 && is_helper(name + 4)) return true;
  return bsearch(name, reserved, sizeof reserved / sizeof *reserved, sizeof *reserved, compare_names);
}

const char *cuda_name(struct cuda *cg, struct map *taken, const char *label, const char *fallback) {
  struct arena *arena = cg->context->arena;
  const char *wanted = label && *label ? label : fallback;
  char *base = arena_alloc(arena, strlen(wanted) + 3);
  size_t length = 0;
  if (!isalpha((unsigned char)wanted[0])) base[length++] = 'v';
  for (const char *c = wanted; *c; c++) base[length++] = isalnum((unsigned char)*c) ? *c : '_';
  if (is_reserved(base)) base[length++] = '_';
  // A number behind the name counts on from where this base stopped.
  uintptr_t used = (uintptr_t)map_get(taken, base);
  char *name = base;
  while (map_get(taken, name) || map_get(&cg->globals, name))
    name = arena_printf(arena, "%s_%u", base, (unsigned)(used = used < 2 ? 2 : used + 1));
  map_set(taken, base, (void *)(used ? used : 1));
  map_set(taken, name, (void *)(name == base && used ? used : 1));
  return name;
}
