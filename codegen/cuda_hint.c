// Accesses with cache hints, and asynchronous copies, in CUDA: device functions of inline assembly, one a hint, type and direction, printed where used.
#include "codegen/cuda.h"
#include "codegen/program.h"

#include <string.h>

static bool is_policy(enum cache_hint hint) { return hint == CACHE_EVICT_FIRST || hint == CACHE_EVICT_LAST; }

bool cuda_has_hint(const struct cuda *cg, const struct ir_mem *mem) {
  enum cache_hint hint = ir_hint_of(cg->entry, mem);
  return hint != CACHE_NORMAL && (!is_policy(hint) || cg->context->options->target->sm >= 80);
}

static const char *name_of(struct cuda *cg, enum cache_hint hint, const char *verb, const char *type) {
  static const char *const names[CACHE_COUNT] = {
      [CACHE_EVICT_FIRST] = "evict_first", [CACHE_EVICT_LAST] = "evict_last", [CACHE_NO_ALLOCATE] = "no_allocate", [CACHE_STREAMING] = "streaming"};
  char *name = arena_printf(cg->context->arena, "red_%s_%s_%s", verb, names[hint], strncmp(type, "red_", 4) == 0 ? type + 4 : type);
  for (char *c = name; *c; c++)
    if (*c == ' ') *c = '_';
  return name;
}

// The statement: registers r[0] and so on are %0 and so on behind `first`, the address is the operand `at`.
static const char *assembly(struct cuda *cg, enum cache_hint hint, bool loads, bool is_constant, uint32_t bytes) {
  static const char *const lists[2][5] = {{[1] = "%1", [2] = "{%1, %2}", [4] = "{%1, %2, %3, %4}"}, {[1] = "%0", [2] = "{%0, %1}", [4] = "{%0, %1, %2, %3}"}};
  struct arena *arena = cg->context->arena;
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  const char *type = bytes == 1 ? ".u8" : bytes == 2 ? ".u16" : words == 1 ? ".u32" : words == 2 ? ".v2.u32" : ".v4.u32";
  const char *mode = hint == CACHE_STREAMING ? ".cs" : hint == CACHE_NO_ALLOCATE ? ".L1::no_allocate" : ".L2::cache_hint";
  const char *kept = loads && is_constant ? ".nc" : "", *policy = "", *end = "", *operand = "";
  if (is_policy(hint)) {
    policy = arena_printf(arena, "{ .reg .b64 q; createpolicy.fractional.L2::%s.b64 q, 1.0; ", hint == CACHE_EVICT_FIRST ? "evict_first" : "evict_last");
    end = " }";
    operand = ", q";
  }
  const char *modes = hint == CACHE_STREAMING ? arena_printf(arena, "%s%s", mode, kept) : arena_printf(arena, "%s%s", kept, mode);
  if (loads) return arena_printf(arena, "%sld.global%s%s %s, [%%%u]%s;%s", policy, modes, type, lists[1][words], words, operand, end);
  return arena_printf(arena, "%sst.global%s%s [%%0], %s%s;%s", policy, modes, type, lists[0][words], operand, end);
}

static const char *registers(struct cuda *cg, const char *constraint, uint32_t bytes) {
  const char *text = "";
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  for (uint32_t i = 0; i < words; i++) text = arena_printf(cg->context->arena, "%s%s\"%s\"(u.r[%u])", text, i ? ", " : "", constraint, i);
  return text;
}

static const char *add(struct cuda *cg, const char *name, const char *text) {
  for (uint32_t i = 0; i < cg->wides.count; i++)
    if (strcmp(list_at(&cg->wides, char, i), text) == 0) return name;
  list_push(cg->context->arena, &cg->wides, (void *)text);
  return name;
}

// The function that loads a `type` of so many bytes from an object of the entry.
const char *cuda_hinted_load(struct cuda *cg, const struct ir_mem *mem, bool is_constant, const char *type, uint32_t bytes) {
  enum cache_hint hint = ir_hint_of(cg->entry, mem);
  const char *name = name_of(cg, hint, is_constant ? "load" : "reload", type);
  const char *code = assembly(cg, hint, true, is_constant, bytes), *outs = registers(cg, "=r", bytes);
  const char *result = bytes < 4 ? arena_printf(cg->context->arena, "(%s)u.r[0]", type) : "u.x";
  const char *text = arena_printf(cg->context->arena,
                                  "static __device__ __forceinline__ %s %s(const %s *p) {\n"
                                  "  union {\n    %s x;\n    unsigned r[%u];\n  } u;\n"
                                  "  asm%s(\"%s\" : %s : \"l\"(__cvta_generic_to_global(p))%s);\n  return %s;\n}\n",
                                  type, name, type, type, bytes < 4 ? 1 : bytes / 4, is_constant ? "" : " volatile", code, outs, is_constant ? "" : " : \"memory\"", result);
  return add(cg, name, text);
}

const char *cuda_hinted_store(struct cuda *cg, const struct ir_mem *mem, const char *type, uint32_t bytes) {
  enum cache_hint hint = ir_hint_of(cg->entry, mem);
  const char *name = name_of(cg, hint, "store", type);
  const char *code = assembly(cg, hint, false, false, bytes), *ins = registers(cg, "r", bytes);
  const char *text = arena_printf(cg->context->arena,
                                  "static __device__ __forceinline__ void %s(%s *p, %s x) {\n"
                                  "  union {\n    %s x;\n    unsigned r[%u];\n  } u;\n  u.%s = x;\n"
                                  "  asm volatile(\"%s\" : : \"l\"(__cvta_generic_to_global(p)), %s : \"memory\");\n}\n",
                                  name, type, type, type, bytes < 4 ? 1 : bytes / 4, bytes < 4 ? "r[0]" : "x", code, ins);
  return add(cg, name, text);
}

const char *cuda_copy(struct cuda *cg, const struct ir_mem *source, uint32_t bytes) {
  struct arena *arena = cg->context->arena;
  enum cache_hint hint = ir_hint_of(cg->entry, source);
  bool has_policy = is_policy(hint) && cuda_has_hint(cg, source);
  const char *kept = !has_policy ? "" : hint == CACHE_EVICT_FIRST ? "evict_first" : "evict_last";
  const char *name = arena_printf(arena, "red_copy_%u%s%s", bytes, has_policy ? "_" : "", kept);
  const char *policy = has_policy ? arena_printf(arena, "{ .reg .b64 q; .reg .b32 l, a; createpolicy.fractional.L2::%s.b64 q, 1.0; mov.b64 {l, a}, %%1; shr.u32 a, a, 31; or.b32 a, a, %%0; ", kept) : "";
  // ptxas 13.0 would add a uniform base in the copy's instruction, over the policy's low word: the top bit of `from`, always 0, makes it one of each thread; a sum would be taken apart
  const char *code = arena_printf(arena, "%scp.async.%s.shared.global%s [%s], [%%1], %u%s;%s", policy, bytes == 16 ? "cg" : "ca", has_policy ? ".L2::cache_hint" : "",
                                  has_policy ? "a" : "%0", bytes, has_policy ? ", q" : "", has_policy ? " }" : "");
  const char *text = arena_printf(arena,
                                  "// The %u bytes are there behind the thread's next wait.\n"
                                  "static __device__ __forceinline__ void %s(void *to, const void *from) {\n"
                                  "  asm volatile(\"%s\" : : \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from)) : \"memory\");\n}\n",
                                  bytes, name, code);
  return add(cg, name, text);
}
