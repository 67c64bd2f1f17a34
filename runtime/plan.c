// Tables, memory and well-formedness of a plan.
#include "runtime/plan.h"

#include <stdlib.h>
#include <string.h>

const char *plan_type_name(enum plan_type type) {
  static const char *const names[] = {
#define X(name, spelling, bytes) spelling,
      PLAN_TYPES(X)
#undef X
  };
  return names[type];
}

uint32_t plan_type_bytes(enum plan_type type) {
  static const uint32_t table[] = {
#define X(name, spelling, bytes) bytes,
      PLAN_TYPES(X)
#undef X
  };
  return table[type];
}

bool plan_type_is_float(enum plan_type type) {
  return type == PLAN_F16 || type == PLAN_BF16 || type == PLAN_F32 || type == PLAN_F64;
}

bool plan_type_find(const char *name, size_t length, enum plan_type *type) {
  for (uint32_t i = 0; i < PLAN_TYPE_COUNT; i++) {
    const char *spelling = plan_type_name((enum plan_type)i);
    if (strlen(spelling) == length && memcmp(spelling, name, length) == 0) {
      *type = (enum plan_type)i;
      return true;
    }
  }
  return false;
}

const char *plan_op_spelling(enum plan_op op) {
  static const char *const names[] = {
#define X(name, spelling, operands) spelling,
      PLAN_OPS(X)
#undef X
  };
  return names[op];
}

uint32_t plan_op_operands(enum plan_op op) {
  static const uint32_t table[] = {
#define X(name, spelling, operands) operands,
      PLAN_OPS(X)
#undef X
  };
  return table[op];
}

// Memory comes in chunks that are freed together.
struct plan_chunk {
  struct plan_chunk *next;
  size_t used, size;
  max_align_t data[];
};

void plan_init(struct plan *plan) {
  memset(plan, 0, sizeof *plan);
}

void plan_destroy(struct plan *plan) {
  if (!plan) return;
  for (struct plan_chunk *chunk = plan->chunks, *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
  plan_init(plan);
}

void *plan_alloc(struct plan *plan, size_t bytes) {
  if (bytes > SIZE_MAX / 4) return NULL;
  bytes = (bytes + sizeof(max_align_t)) / sizeof(max_align_t) * sizeof(max_align_t);
  struct plan_chunk *chunk = plan->chunks;
  if (!chunk || chunk->size - chunk->used < bytes) {
    size_t size = bytes > 4096 ? bytes : 4096;
    chunk = calloc(1, sizeof *chunk + size);
    if (!chunk) return NULL;
    chunk->size = size;
    chunk->next = plan->chunks;
    plan->chunks = chunk;
  }
  void *memory = (char *)chunk->data + chunk->used;
  chunk->used += bytes;
  return memory;
}

char *plan_strdup(struct plan *plan, const char *text, size_t length) {
  char *copy = plan_alloc(plan, length + 1);
  if (copy) memcpy(copy, text, length);
  return copy;
}

void *plan_grow(struct plan *plan, void *array, uint32_t *count, size_t item_bytes) {
  // Capacities are the powers of two: an array is full where its count is one.
  if ((*count & (*count - 1)) == 0) {
    char *larger = plan_alloc(plan, (*count ? 2 * (size_t)*count : 1) * item_bytes);
    if (!larger) return NULL;
    if (*count) memcpy(larger, array, *count * item_bytes);
    array = larger;
  }
  ++*count;
  return array;
}

const char *plan_expr_fault(const struct plan_kernel *kernel, const struct plan_expr *expr) {
  uint32_t depth = 0;
  for (uint32_t i = 0; i < expr->count; i++) {
    const struct plan_code *code = &expr->codes[i];
    if ((uint32_t)code->op >= PLAN_OP_COUNT) return "unknown operation";
    uint64_t which = (uint64_t)code->operand;
    switch (code->op) {
    case PLAN_OP_SIZE:
      if (which >= kernel->size_count) return "no such size";
      break;
    case PLAN_OP_SCALAR:
      if (which >= kernel->scalar_count) return "no such scalar";
      if (plan_type_is_float(kernel->scalars[which].type) || kernel->scalars[which].type > PLAN_F64)
        return "the scalar is not an integer";
      break;
    case PLAN_OP_DIM:
    case PLAN_OP_STRIDE:
    case PLAN_OP_ADDRESS:
      if (which >= kernel->tensor_count) return "no such tensor";
      if (code->op != PLAN_OP_ADDRESS && code->dimension >= kernel->tensors[which].rank)
        return "no such dimension";
      break;
    case PLAN_OP_WRAP_SIGNED:
    case PLAN_OP_WRAP_UNSIGNED:
      if (which < 1 || which > 64) return "illegal width";
      break;
    case PLAN_OP_CONST:
    case PLAN_OP_SMS:
    case PLAN_OP_ARCH:
    case PLAN_OP_SHARED:
    case PLAN_OP_ADD:
    case PLAN_OP_SUB:
    case PLAN_OP_MUL:
    case PLAN_OP_DIV:
    case PLAN_OP_MOD:
    case PLAN_OP_MIN:
    case PLAN_OP_MAX:
    case PLAN_OP_NEG:
    case PLAN_OP_ABS:
    case PLAN_OP_AND:
    case PLAN_OP_OR:
    case PLAN_OP_XOR:
    case PLAN_OP_NOT:
    case PLAN_OP_SHL:
    case PLAN_OP_SHR:
    case PLAN_OP_EQ:
    case PLAN_OP_NE:
    case PLAN_OP_LT:
    case PLAN_OP_LE:
    case PLAN_OP_GT:
    case PLAN_OP_GE:
    case PLAN_OP_SELECT:
    case PLAN_OP_COUNT: break;
    }
    uint32_t operands = plan_op_operands(code->op);
    if (depth < operands) return "an operand is missing";
    depth = depth - operands + 1;
    if (depth > PLAN_MAX_DEPTH) return "too deep";
  }
  return expr->count && depth != 1 ? "more than one value" : NULL;
}

const struct plan_kernel *plan_find(const struct plan *plan, const char *kernel) {
  for (uint32_t i = 0; i < plan->kernel_count; i++)
    if (strcmp(plan->kernels[i].name, kernel) == 0) return &plan->kernels[i];
  return NULL;
}

// --- What depends on addresses

// Raises *step to what the expression looks at; false: it uses an address for more than its remainder by a power of two.
static bool add_step(const struct plan_expr *expr, uint32_t *step) {
  enum { MOST = 4096 };
  for (uint32_t i = 0; i < expr->count; i++) {
    if (expr->codes[i].op != PLAN_OP_ADDRESS) continue;
    if (i + 2 >= expr->count || expr->codes[i + 1].op != PLAN_OP_CONST || expr->codes[i + 2].op != PLAN_OP_MOD) return false;
    int64_t divisor = expr->codes[i + 1].operand;
    if (divisor < 1 || divisor > MOST || divisor & (divisor - 1)) return false;
    if (divisor > *step) *step = (uint32_t)divisor;
  }
  return true;
}

static bool add_launch(const struct plan_launch *launch, uint32_t *step) {
  bool ok = add_step(&launch->shared, step);
  for (int d = 0; d < 3; d++) ok = ok && add_step(&launch->grid[d], step);
  for (uint32_t a = 0; a < launch->argument_count; a++) ok = ok && add_step(&launch->arguments[a].expr, step);
  return ok;
}

static bool add_entry(const struct plan_entry *entry, uint32_t *step) {
  bool ok = add_step(&entry->when, step) && add_step(&entry->workspace, step) && add_step(&entry->zeroed, step);
  for (uint32_t a = 0; a < entry->assumption_count; a++) ok = ok && add_step(&entry->assumptions[a].condition, step);
  for (uint32_t l = 0; l < entry->launch_count; l++) ok = ok && add_launch(&entry->launches[l], step);
  return ok;
}

uint32_t plan_address_step(const struct plan_kernel *kernel) {
  uint32_t step = 1;
  bool ok = true;
  for (uint32_t s = 0; s < kernel->size_count; s++) ok = ok && add_step(&kernel->sizes[s].inferred, &step);
  for (uint32_t r = 0; r < kernel->requirement_count; r++) ok = ok && add_step(&kernel->requirements[r].condition, &step);
  for (uint32_t e = 0; e < kernel->entry_count; e++) ok = ok && add_entry(&kernel->entries[e], &step);
  return ok ? step : 0;
}

bool plan_is_exact(const struct plan_entry *entry) { return strcmp(entry->schedule, PLAN_EXACT) == 0; }
