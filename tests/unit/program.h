// Builds programs (entries at LEVEL_PROGRAM) by hand for the tests of code generation.
#ifndef RED_TESTS_UNIT_PROGRAM_H
#define RED_TESTS_UNIT_PROGRAM_H

#include "codegen/codegen.h"

#include <string.h>

struct program {
  struct arena arena;
  struct diag diag;
  struct ir_module module;
  struct compile_options options;
  struct pass_context context;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list *block; // statements go here
  uint32_t line;      // of the next statement; columns are 1 to 10
};

static inline void program_entry(struct program *p, const char *name, uint32_t threads) {
  struct ir_entry *entry = arena_new(&p->arena, struct ir_entry);
  entry->name = entry->schedule = arena_strdup(&p->arena, name);
  entry->level = LEVEL_PROGRAM;
  entry->block[0] = threads, entry->block[1] = entry->block[2] = 1;
  entry->index_type = TYPE_I32;
  list_push(&p->arena, &p->kernel->entries, entry);
  p->entry = entry;
  p->block = &entry->body;
}

static inline void program_begin(struct program *p, const char *name, uint32_t threads, const char *source) {
  memset(p, 0, sizeof *p);
  arena_init(&p->arena);
  diag_init(&p->diag, &p->arena);
  diag_add_source(&p->diag, "test.red", source, source ? strlen(source) : 0);
  p->module.arena = &p->arena;
  p->module.diag = &p->diag;
  p->options.target = target_find("sm_90");
  p->options.optimize = 3;
  p->context = (struct pass_context){
      .arena = &p->arena, .diag = &p->diag, .module = &p->module, .options = &p->options};
  p->kernel = arena_new(&p->arena, struct ir_kernel);
  p->kernel->name = p->kernel->label = name;
  p->kernel->range = (struct range){.line = 1, .column = 1, .end_line = 1, .end_column = 7};
  map_init(&p->kernel->names, &p->arena);
  list_push(&p->arena, &p->module.kernels, p->kernel);
  program_entry(p, name, threads);
}

static inline void program_end(struct program *p) {
  arena_destroy(&p->arena);
}

static inline struct range program_range(struct program *p) {
  if (p->line == 0) return (struct range){0};
  return (struct range){.line = p->line, .column = 1, .end_line = p->line, .end_column = 10};
}

static inline struct ir_expr *program_int(struct program *p, enum type type, int64_t value) {
  return ir_int(&p->arena, type, value);
}

static inline struct ir_var *program_size(struct program *p, const char *name) {
  struct ir_var *var = ir_new_var(p->kernel, VAR_SIZE, TYPE_I64, name);
  list_push(&p->arena, &p->kernel->sizes, var);
  return var;
}

static inline struct ir_var *program_scalar(struct program *p, const char *name, enum type type) {
  struct ir_var *var = ir_new_var(p->kernel, VAR_SCALAR, type, name);
  list_push(&p->arena, &p->kernel->scalars, var);
  return var;
}

static inline struct ir_mem *program_object(struct program *p, const char *name, enum ir_space space,
                                            enum type type, struct ir_expr *extent) {
  struct ir_mem *mem = arena_new(&p->arena, struct ir_mem);
  mem->label = name;
  mem->name = ir_fresh_name(p->kernel, name);
  mem->space = space;
  mem->type = type;
  mem->alignment = type_bytes(type);
  list_push(&p->arena, &mem->dims, extent);
  list_push(&p->arena, &mem->strides, program_int(p, TYPE_I64, 1));
  return mem;
}

static inline struct ir_mem *program_tensor(struct program *p, const char *name, enum type type,
                                            bool is_output) {
  struct ir_mem *mem = program_object(p, name, SPACE_GLOBAL, type, program_int(p, TYPE_I64, 1 << 20));
  mem->is_output = is_output;
  mem->parameter = p->kernel->tensors.count;
  list_push(&p->arena, &p->kernel->tensors, mem);
  return mem;
}

static inline struct ir_mem *program_array(struct program *p, const char *name, enum ir_space space,
                                           enum type type, int64_t count) {
  struct ir_mem *mem = program_object(p, name, space, type, program_int(p, TYPE_I64, count));
  list_push(&p->arena, &p->entry->memory, mem);
  return mem;
}

static inline struct ir_expr *program_special(struct program *p, enum op op, uint32_t dimension) {
  struct ir_expr *e = ir_special(&p->arena, op, dimension);
  e->type = p->entry->index_type;
  return e;
}

static inline struct ir_expr *program_load(struct program *p, struct ir_mem *mem, struct ir_expr *offset) {
  struct ir_expr *e = ir_raw(&p->arena, OP_LOAD_FLAT, mem->type, &offset, 1);
  e->mem = mem;
  return e;
}

static inline struct ir_expr *program_op(struct program *p, enum op op, enum type type, uint32_t count,
                                         struct ir_expr *a, struct ir_expr *b, struct ir_expr *c) {
  struct ir_expr *args[3] = {a, b, c};
  struct ir_expr *e = ir_raw(&p->arena, op, type, args, count);
  e->range = program_range(p);
  return e;
}

static inline struct ir_stmt *program_stmt(struct program *p, enum ir_stmt_kind kind) {
  struct ir_stmt *stmt = ir_stmt(&p->arena, kind, program_range(p));
  list_push(&p->arena, p->block, stmt);
  return stmt;
}

static inline struct ir_expr *program_let(struct program *p, const char *name, struct ir_expr *value) {
  struct ir_stmt *stmt = program_stmt(p, IR_LET);
  stmt->var = ir_new_var(p->kernel, VAR_LET, value->type, name);
  stmt->value = value;
  return ir_ref(&p->arena, stmt->var);
}

static inline struct ir_var *program_var(struct program *p, const char *name, struct ir_expr *value) {
  struct ir_stmt *stmt = program_stmt(p, IR_VAR);
  stmt->var = ir_new_var(p->kernel, VAR_MUTABLE, value->type, name);
  stmt->value = value;
  return stmt->var;
}

static inline void program_set(struct program *p, struct ir_var *var, struct ir_expr *value) {
  struct ir_stmt *stmt = program_stmt(p, IR_SET);
  stmt->var = var;
  stmt->value = value;
}

static inline void program_store(struct program *p, struct ir_mem *mem, struct ir_expr *offset,
                                 struct ir_expr *value) {
  struct ir_stmt *stmt = program_stmt(p, IR_STORE);
  stmt->mem = mem;
  stmt->is_flat = true;
  list_push(&p->arena, &stmt->indices, offset);
  stmt->value = value;
}

// Opens a loop; statements go into its body until p->block is set back.
static inline struct ir_expr *program_for(struct program *p, const char *name, struct ir_expr *lo,
                                          struct ir_expr *hi, uint32_t unroll) {
  struct ir_stmt *stmt = program_stmt(p, IR_FOR);
  stmt->var = ir_new_var(p->kernel, VAR_AXIS, lo->type, name);
  stmt->lo = lo, stmt->hi = hi;
  stmt->unroll = unroll;
  p->block = &stmt->body;
  return ir_ref(&p->arena, stmt->var);
}

static inline struct ir_stmt *program_if(struct program *p, struct ir_expr *condition) {
  struct ir_stmt *stmt = program_stmt(p, IR_IF);
  stmt->value = condition;
  p->block = &stmt->body;
  return stmt;
}

// Row sums: one warp a row of 11, each lane one element, the warp's sum by shuffles, stored by lane 0.
static inline void program_rowsum(struct program *p) {
  program_begin(p, "rowsum", 11,
                "kernel rowsum(A: f32[n, 11]) -> (B: f32[n]) {\n"
                "  for i in n { B[i] = sum(j in 11) A[i, j]; }\n}\n");
  struct arena *arena = &p->arena;
  struct ir_mem *A = program_tensor(p, "A", TYPE_F32, false), *B = program_tensor(p, "B", TYPE_F32, true);
  p->line = 2;
  struct ir_expr *i = program_let(p, "i", program_special(p, OP_BLOCK, 0));
  struct ir_expr *j = program_let(p, "j", program_special(p, OP_THREAD, 0));
  struct ir_expr *offset =
      ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, i, program_int(p, TYPE_I32, 11)), j);
  struct ir_var *total = program_var(p, "total", program_load(p, A, offset));
  for (int64_t distance = 8; distance; distance /= 2) {
    struct ir_expr *other =
        program_let(p, "other",
                    program_op(p, OP_SHFL_DOWN, TYPE_F32, 3, program_int(p, TYPE_U32, 0x7ff),
                               ir_ref(arena, total), program_int(p, TYPE_U32, distance)));
    struct ir_expr *in_range =
        ir_binary(arena, OP_LT, ir_binary(arena, OP_ADD, j, program_int(p, TYPE_I32, distance)),
                  program_int(p, TYPE_I32, 11));
    struct ir_expr *sum = ir_binary(arena, OP_ADD, ir_ref(arena, total), other);
    program_set(p, total, ir_select(arena, in_range, sum, ir_ref(arena, total)));
  }
  program_if(p, ir_binary(arena, OP_EQ, j, program_int(p, TYPE_I32, 0)));
  program_store(p, B, i, ir_ref(arena, total));
  p->block = &p->entry->body;
}

#endif
