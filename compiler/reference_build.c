// From stages to the reference interpreter's code. One stage is one loop nest; the values of a reduce stage
// are arrays over its parallel axes, which are also its accumulators, so that axes may stand in any order.
#include "compiler/reference_code.h"

#include "runtime/half.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// Pointers (expressions, variables) to numbers, with scopes: what was set in a scope is gone after it.
struct table {
  struct table_entry {
    const void *key;
    uint32_t value; // NONE: gone
  } * entries;
  uint32_t capacity, used;
  const void **log;
  uint32_t log_count, log_capacity;
};
enum { NONE = UINT32_MAX };

// The result of a reduce stage.
struct stage_value {
  const struct ir_var *var;
  struct list axes;    // struct ir_axis: its dimensions
  const int64_t *dims; // largest extents
  uint8_t *data;
};

struct reference_builder {
  struct arena arena;
  struct program program;
  const struct ir_kernel *kernel;
  const struct reference_input *input;
  const struct ir_stage *stage;
  struct table registers; // of expressions and variables
  struct table loads;     // whether an expression loads: 1 or 0
  struct list values;     // struct stage_value
  struct list blocks;     // memory of values, to be freed
  bool failed;
  char *error;
  size_t error_bytes;
};

static void fail(struct reference_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct reference_builder *b, const char *format, ...) {
  if (b->failed) return;
  b->failed = true;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(b->error, b->error_bytes, format, arguments);
  va_end(arguments);
}

// --- Table
// ------------------------------------------------------------------------------------------------------------

static void *grow(void *memory, uint32_t *capacity, size_t item_bytes) {
  *capacity = *capacity ? *capacity * 2 : 256;
  memory = realloc(memory, *capacity * item_bytes);
  if (!memory) {
    fputs("redc: out of memory\n", stderr);
    exit(3);
  }
  return memory;
}

static struct table_entry *table_find(const struct table *table, const void *key) {
  uint32_t at =
      (uint32_t)(((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->capacity - 1);
  while (table->entries[at].key && table->entries[at].key != key) at = (at + 1) & (table->capacity - 1);
  return &table->entries[at];
}

static uint32_t table_get(const struct table *table, const void *key) {
  if (!table->capacity) return NONE;
  const struct table_entry *entry = table_find(table, key);
  return entry->key ? entry->value : NONE;
}

static void table_set(struct table *table, const void *key, uint32_t value) {
  if (table->used * 2 >= table->capacity) {
    struct table larger = *table;
    larger.capacity = table->capacity ? table->capacity * 2 : 256;
    larger.entries = calloc(larger.capacity, sizeof *larger.entries);
    if (!larger.entries) {
      fputs("redc: out of memory\n", stderr);
      exit(3);
    }
    for (uint32_t i = 0; i < table->capacity; i++)
      if (table->entries[i].key) *table_find(&larger, table->entries[i].key) = table->entries[i];
    free(table->entries);
    *table = larger;
  }
  struct table_entry *entry = table_find(table, key);
  if (!entry->key) table->used++;
  *entry = (struct table_entry){key, value};
  if (table->log_count == table->log_capacity)
    table->log = grow(table->log, &table->log_capacity, sizeof *table->log);
  table->log[table->log_count++] = key;
}

static uint32_t scope_open(const struct table *table) {
  return table->log_count;
}
static void scope_close(struct table *table, uint32_t mark) {
  while (table->log_count > mark) table_find(table, table->log[--table->log_count])->value = NONE;
}

// --- Code
// -------------------------------------------------------------------------------------------------------------

static uint32_t new_register(struct reference_builder *b) {
  struct program *p = &b->program;
  if (p->register_count == p->register_capacity)
    p->registers = grow(p->registers, &p->register_capacity, sizeof *p->registers);
  memset(&p->registers[p->register_count], 0, sizeof *p->registers);
  return p->register_count++;
}

static struct instr *emit(struct reference_builder *b, struct instr instr) {
  struct program *p = &b->program;
  if (p->count == p->capacity) p->instrs = grow(p->instrs, &p->capacity, sizeof *p->instrs);
  p->instrs[p->count] = instr;
  return &p->instrs[p->count++];
}

static uint32_t emit_to_new(struct reference_builder *b, struct instr instr) {
  instr.dst = new_register(b);
  emit(b, instr);
  return instr.dst;
}

static void patch(struct reference_builder *b, uint32_t jump) {
  b->program.instrs[jump].target = b->program.count;
}

static bool is_signed(enum type type) {
  return type_is_signed(type);
}
static uint8_t shift_of(enum type type) {
  return (uint8_t)(type == TYPE_BOOL ? 63 : 64 - type_bits(type));
}

// The type that a register of this type has in a wide run. Nothing is wider than f64: there it is the narrow one that tells how far
// rounding carries.
static enum type wide(const struct reference_builder *b, enum type type) {
  if (!b->input->is_wide) return type;
  return type == TYPE_F32 ? TYPE_F64 : type == TYPE_F64 ? TYPE_F32 : type;
}

// A register that holds a value before the program starts.
static uint32_t constant(struct reference_builder *b, struct value value) {
  uint32_t reg = new_register(b);
  union slot *slot = &b->program.registers[reg];
  if (wide(b, value.type) == TYPE_F32)
    slot->f = (float)value.number;
  else if (type_is_float(value.type))
    slot->d = value.number;
  else if (value.type == TYPE_F16)
    slot->i = half_from_double(value.number);
  else if (value.type == TYPE_BF16)
    slot->i = bfloat_from_double(value.number);
  else
    slot->i = value.integer;
  return reg;
}

static uint32_t convert(struct reference_builder *b, enum code code, uint32_t a, enum type to) {
  return emit_to_new(b, (struct instr){.code = code, .a = a, .shift = shift_of(to)});
}

// Between the types that registers have.
static uint32_t cast_register(struct reference_builder *b, uint32_t a, enum type from, enum type to) {
  if (from == to) return a;
  enum type_class source = type_class_of(from), target = type_class_of(to);
  if (source == CLASS_MOVED || target == CLASS_MOVED) {
    fail(b, "in stage '%s': %s cannot become %s", b->stage->label, type_name(from), type_name(to));
    return 0;
  }
  if (source == CLASS_STORAGE) { // read to f32, which holds every value of it
    a = convert(b, from == TYPE_F16 ? CODE_HALF_TO_F : CODE_BFLOAT_TO_F, a, to);
    return cast_register(b, a, TYPE_F32, to);
  }
  bool from_float = source == CLASS_FLOAT, is_unsigned = source == CLASS_UNSIGNED || source == CLASS_BOOL;
  if (from == TYPE_F32 && to != TYPE_F64)
    return cast_register(b, convert(b, CODE_F_TO_D, a, to), TYPE_F64, to);
  switch (target) {
  case CLASS_BOOL: return convert(b, from_float ? CODE_D_TO_BOOL : CODE_I_TO_BOOL, a, to);
  case CLASS_SIGNED:
  case CLASS_INDEX: return convert(b, from_float ? CODE_D_TO_S : CODE_WRAP_S, a, to);
  case CLASS_UNSIGNED: return convert(b, from_float ? CODE_D_TO_U : CODE_WRAP_U, a, to);
  case CLASS_FLOAT:
    if (from_float) return convert(b, to == TYPE_F32 ? CODE_D_TO_F : CODE_F_TO_D, a, to);
    if (to == TYPE_F32) return convert(b, is_unsigned ? CODE_U_TO_F : CODE_I_TO_F, a, to);
    return convert(b, is_unsigned ? CODE_U_TO_D : CODE_I_TO_D, a, to);
  case CLASS_STORAGE:
    if (!from_float) {
      a = convert(b, is_unsigned ? CODE_U_TO_F : CODE_I_TO_F, a, to);
      a = convert(b, CODE_F_TO_D, a, to);
    }
    return convert(b, to == TYPE_F16 ? CODE_D_TO_HALF : CODE_D_TO_BFLOAT, a, to);
  case CLASS_MOVED: break;
  }
  return a;
}

static uint32_t emit_cast(struct reference_builder *b, uint32_t a, enum type from, enum type to) {
  return cast_register(b, a, wide(b, from), wide(b, to));
}

static uint32_t emit_bitcast(struct reference_builder *b, uint32_t a, enum type from, enum type to) {
  if (from == TYPE_F32 && to != TYPE_F32) {
    a = cast_register(b, a, wide(b, from), from);
    return convert(b, is_signed(to) ? CODE_F_BITS_S : CODE_F_BITS_U, a, to);
  }
  if (to == TYPE_F32 && from != TYPE_F32)
    return cast_register(b, convert(b, CODE_BITS_F, a, to), to, wide(b, to));
  if (from == TYPE_F64 && to != TYPE_F64) return cast_register(b, a, wide(b, from), from);
  if (to == TYPE_F64 && from != TYPE_F64) return cast_register(b, a, to, wide(b, to));
  if (type_bits(to) == 64 || from == to) return a; // the same bits of a register
  return convert(b, is_signed(to) ? CODE_WRAP_S : CODE_WRAP_U, a, to);
}

// --- Expressions
// --------------------------------------------------------------------------------------------------------

static uint32_t build(struct reference_builder *b, const struct ir_expr *e);

static bool has_load(struct reference_builder *b, const struct ir_expr *e) {
  if (e->op == OP_LOAD || (e->op == OP_VAR && e->var->kind == VAR_VALUE)) return true;
  if (!e->count) return false;
  uint32_t known = table_get(&b->loads, e);
  if (known != NONE) return known;
  bool result = false;
  for (uint32_t i = 0; i < e->count && !result; i++) result = has_load(b, e->args[i]);
  table_set(&b->loads, e, result);
  return result;
}

static struct access *new_access(struct reference_builder *b, const char *name, uint8_t *data,
                                 uint32_t rank) {
  struct access *access = arena_alloc(&b->arena, sizeof *access + rank * sizeof *access->index);
  access->name = name;
  access->stage = b->stage->label;
  access->data = data;
  access->rank = rank;
  return access;
}

static int64_t size_of(struct reference_builder *b, const struct ir_expr *e) {
  int64_t size = 0;
  if (!reference_size(b->kernel, e, b->input->sizes, &size))
    fail(b, "an extent is not an expression over sizes");
  return size;
}

static const struct access *tensor_access(struct reference_builder *b, const struct ir_mem *mem,
                                          const uint32_t *indices, uint32_t count) {
  uint32_t which = 0;
  while (which < b->kernel->tensors.count && b->kernel->tensors.at[which] != mem) which++;
  if (which == b->kernel->tensors.count || count != mem->dims.count) {
    fail(b, "in stage '%s': '%s' is not a tensor of rank %" PRIu32, b->stage->label, mem->label, count);
    return NULL;
  }
  const struct reference_tensor *tensor = &b->input->tensors[which];
  struct access *access = new_access(b, mem->label, tensor->data, count);
  int64_t row_major = type_bytes(mem->type);
  for (uint32_t d = count; d-- > 0;) {
    int64_t dim = size_of(b, list_at(&mem->dims, struct ir_expr, d));
    access->index[d].reg = indices[d];
    access->index[d].dim = dim > 0 ? dim : 0;
    access->index[d].stride = tensor->strides ? tensor->strides[d] * type_bytes(mem->type) : row_major;
    if (__builtin_mul_overflow(row_major, dim, &row_major))
      row_major = 0; // only where some other extent is 0
  }
  return access;
}

static const struct access *value_access(struct reference_builder *b, const struct stage_value *value) {
  struct access *access = new_access(b, value->var->label, value->data, value->axes.count);
  int64_t stride = 8;
  for (uint32_t d = value->axes.count; d-- > 0;) {
    const struct ir_axis *axis = list_at(&value->axes, struct ir_axis, d);
    uint32_t reg = table_get(&b->registers, axis->var);
    if (reg == NONE)
      fail(b, "in stage '%s': '%s' is used outside axis '%s'", b->stage->label, value->var->label,
           axis->var->label);
    access->index[d] = (struct access_index){.reg = reg, .dim = value->dims[d], .stride = stride};
    stride *= value->dims[d];
  }
  return access;
}

static uint32_t build_var(struct reference_builder *b, const struct ir_var *var) {
  if (var->kind == VAR_VALUE)
    for (uint32_t i = 0; i < b->values.count; i++) {
      const struct stage_value *value = list_at(&b->values, struct stage_value, i);
      if (value->var != var) continue;
      const struct access *access = value_access(b, value);
      uint32_t reg = emit_to_new(b, (struct instr){.code = CODE_LOAD_VALUE, .access = access});
      table_set(&b->registers, var, reg);
      return reg;
    }
  // An axis computed from its pieces, where it is needed first.
  for (uint32_t i = 0; i < b->stage->derived.count; i++) {
    const struct ir_stmt *let = list_at(&b->stage->derived, struct ir_stmt, i);
    if (let->var != var) continue;
    uint32_t reg = build(b, let->value);
    table_set(&b->registers, var, reg);
    return reg;
  }
  fail(b, "in stage '%s': '%s' has no value here", b->stage->label, var->label ? var->label : var->name);
  return 0;
}

static uint32_t build_load(struct reference_builder *b, const struct ir_expr *e) {
  enum code code = CODE_LOAD_U8;
  switch (e->mem->type) {
  case TYPE_BOOL: code = CODE_LOAD_BOOL; break;
  case TYPE_I8: code = CODE_LOAD_I8; break;
  case TYPE_I16: code = CODE_LOAD_I16; break;
  case TYPE_I32: code = CODE_LOAD_I32; break;
  case TYPE_U8:
  case TYPE_F8E4M3:
  case TYPE_F8E5M2: code = CODE_LOAD_U8; break;
  case TYPE_U16:
  case TYPE_F16:
  case TYPE_BF16: code = CODE_LOAD_U16; break;
  case TYPE_U32: code = CODE_LOAD_U32; break;
  case TYPE_I64:
  case TYPE_U64:
  case TYPE_C64:
  case TYPE_INDEX:
  case TYPE_COUNT: code = CODE_LOAD_I64; break;
  case TYPE_F32: code = CODE_LOAD_F32; break;
  case TYPE_F64: code = CODE_LOAD_F64; break;
  case TYPE_C128: code = CODE_LOAD_128; break;
  }
  uint32_t *indices = arena_array(&b->arena, uint32_t, e->count + 1);
  for (uint32_t i = 0; i < e->count; i++) indices[i] = build(b, e->args[i]);
  const struct access *access = tensor_access(b, e->mem, indices, e->count);
  uint32_t reg = emit_to_new(b, (struct instr){.code = code, .access = access});
  return cast_register(b, reg, e->mem->type, wide(b, e->mem->type));
}

// condition ? yes : no, where only the arm that is chosen may be evaluated.
static uint32_t build_branch(struct reference_builder *b, const struct ir_expr *condition,
                             const struct ir_expr *yes, const struct ir_expr *no) {
  uint32_t out = new_register(b), test = build(b, condition);
  emit(b, (struct instr){.code = CODE_JUMP_UNLESS, .a = test});
  uint32_t to_no = b->program.count - 1, mark = scope_open(&b->registers);
  uint32_t value = build(b, yes);
  emit(b, (struct instr){.code = CODE_MOVE, .dst = out, .a = value});
  emit(b, (struct instr){.code = CODE_JUMP});
  uint32_t to_end = b->program.count - 1;
  scope_close(&b->registers, mark);
  patch(b, to_no);
  value = build(b, no);
  emit(b, (struct instr){.code = CODE_MOVE, .dst = out, .a = value});
  scope_close(&b->registers, mark);
  patch(b, to_end);
  return out;
}

struct choice {
  enum op op;
  enum code f32, f64, s, u;
};
static const struct choice choices[] = {
#define X(name, expr) {OP_##name, CODE_##name##_F32, CODE_##name##_F64, CODE_I##name##_S, CODE_I##name##_U},
    X(ADD, ) X(SUB, ) X(MUL, ) X(DIV, ) X(MIN, ) X(MAX, )
#undef X
#define X(name, operator) {OP_##name, CODE_##name##_F32, CODE_##name##_F64, CODE_##name##_S, CODE_##name##_U},
        CODE_COMPARE(X)
#undef X
            {OP_FMIN, CODE_FMIN_F32, CODE_FMIN_F64, CODE_END, CODE_END},
    {OP_FMAX, CODE_FMAX_F32, CODE_FMAX_F64, CODE_END, CODE_END},
    {OP_POW, CODE_POW_F32, CODE_POW_F64, CODE_END, CODE_END},
    {OP_FMA, CODE_FMA_F32, CODE_FMA_F64, CODE_END, CODE_END},
    {OP_MOD, CODE_END, CODE_END, CODE_IMOD_S, CODE_IMOD_U},
    {OP_QUO, CODE_END, CODE_END, CODE_IDIV_S, CODE_IDIV_U},
    {OP_REM, CODE_END, CODE_END, CODE_IMOD_S, CODE_IMOD_U},
    {OP_AND, CODE_END, CODE_END, CODE_IAND_S, CODE_IAND_U},
    {OP_OR, CODE_END, CODE_END, CODE_IOR_S, CODE_IOR_U},
    {OP_XOR, CODE_END, CODE_END, CODE_IXOR_S, CODE_IXOR_U},
    {OP_SHL, CODE_END, CODE_END, CODE_ISHL_S, CODE_ISHL_U},
    {OP_SHR, CODE_END, CODE_END, CODE_ISHR_S, CODE_ISHR_U},
    {OP_NEG, CODE_F_NEG, CODE_D_NEG, CODE_NEG_S, CODE_NEG_U},
    {OP_ABS, CODE_F_ABS, CODE_D_ABS, CODE_ABS_S, CODE_MOVE},
    {OP_NOT, CODE_END, CODE_END, CODE_NOT_S, CODE_NOT_U},
    {OP_SQRT, CODE_F_SQRT, CODE_CALL_F64, CODE_END, CODE_END},
    {OP_ISNAN, CODE_F_ISNAN, CODE_D_ISNAN, CODE_END, CODE_END},
    {OP_ISINF, CODE_F_ISINF, CODE_D_ISINF, CODE_END, CODE_END},
};

static enum code choose(enum op op, enum type type) {
  if (op == OP_NOT && type == TYPE_BOOL) return CODE_NOT_BOOL;
  bool is_float = type_is_float(type), is_integer = type_is_integer(type) || type == TYPE_BOOL;
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (choices[i].op == op && (is_float || is_integer))
      return is_float          ? type == TYPE_F32 ? choices[i].f32 : choices[i].f64
             : is_signed(type) ? choices[i].s
                               : choices[i].u;
  if (is_float && arith_function_of(op)) return type == TYPE_F32 ? CODE_CALL_F32 : CODE_CALL_F64;
  return CODE_END;
}

static uint32_t build_operation(struct reference_builder *b, const struct ir_expr *e) {
  uint32_t args[3] = {0};
  if (e->count < 1 || e->count > 3) {
    fail(b, "in stage '%s': operation '%s' has no place in a stage", b->stage->label,
         op_table[e->op].spelling);
    return 0;
  }
  for (uint32_t i = 0; i < e->count; i++) args[i] = build(b, e->args[i]);
  enum type from = e->args[0]->type;
  if (e->op == OP_CAST) return emit_cast(b, args[0], from, e->type);
  if (e->op == OP_BITCAST) return emit_bitcast(b, args[0], from, e->type);
  struct instr instr = {.a = args[0], .b = args[1], .c = args[2], .shift = shift_of(from)};
  instr.code = e->op == OP_SELECT ? CODE_SELECT : choose(e->op, wide(b, from));
  if (instr.code == CODE_CALL_F32 || instr.code == CODE_CALL_F64) instr.function = arith_function_of(e->op);
  if (instr.code == CODE_END)
    fail(b, "in stage '%s': operation '%s' has no meaning for %s", b->stage->label, op_table[e->op].spelling,
         type_name(from));
  return emit_to_new(b, instr);
}

static uint32_t build(struct reference_builder *b, const struct ir_expr *e) {
  if (b->failed) return 0;
  e = reference_unwrap(e);
  if (e->op == OP_VAR) {
    uint32_t reg = table_get(&b->registers, e->var);
    return reg != NONE ? reg : build_var(b, e->var);
  }
  uint32_t known = table_get(&b->registers, e), reg;
  if (known != NONE) return known;
  static const struct ir_expr no = {.op = OP_CONST, .type = TYPE_BOOL, .integer = 0};
  static const struct ir_expr yes = {.op = OP_CONST, .type = TYPE_BOOL, .integer = 1};
  if (e->op == OP_CONST)
    reg = constant(b, type_is_float(e->type) || type_class_of(e->type) == CLASS_STORAGE
                          ? value_float(e->type, e->number)
                          : value_int(e->type, e->integer));
  else if (e->op == OP_LOAD)
    reg = build_load(b, e);
  else if (e->op == OP_SELECT && (has_load(b, e->args[1]) || has_load(b, e->args[2])))
    reg = build_branch(b, e->args[0], e->args[1], e->args[2]);
  else if (e->op == OP_AND && e->type == TYPE_BOOL && has_load(b, e->args[1]))
    reg = build_branch(b, e->args[0], e->args[1], &no);
  else if (e->op == OP_OR && e->type == TYPE_BOOL && has_load(b, e->args[1]))
    reg = build_branch(b, e->args[0], &yes, e->args[1]);
  else
    reg = build_operation(b, e);
  if (e != &no && e != &yes) table_set(&b->registers, e, reg);
  return reg;
}

static void build_let(struct reference_builder *b, const struct ir_stmt *let) {
  uint32_t reg = build(b, let->value);
  table_set(&b->registers, let->var, reg);
}

// --- Stages
// -------------------------------------------------------------------------------------------------------------

// A loop over an axis: its code from here to close_loop.
static uint32_t open_loop(struct reference_builder *b, const struct ir_axis *axis) {
  uint32_t extent = build(b, axis->extent), var = new_register(b);
  emit(b, (struct instr){.code = CODE_LOOP_BEGIN, .dst = var, .a = extent});
  table_set(&b->registers, axis->var, var);
  return b->program.count - 1;
}
// The same where values are reduced: from the last iteration to the first, if that is asked for.
static uint32_t open_loop_of_reduction(struct reference_builder *b, const struct ir_stage *stage,
                                       const struct ir_stage_axis *axis) {
  uint32_t begin = open_loop(b, axis->axis);
  if (!b->input->is_turned || !axis->is_reduction || stage->reducer->is_ordered) return begin;
  struct ir_expr *one = ir_int(&b->arena, TYPE_INDEX, 1);
  uint32_t last = build(b, ir_binary(&b->arena, OP_SUB, axis->axis->extent, one));
  table_set(&b->registers, axis->axis->var,
            emit_to_new(b, (struct instr){.code = choose(OP_SUB, TYPE_INDEX),
                                          .a = last,
                                          .b = b->program.instrs[begin].dst,
                                          .shift = shift_of(TYPE_INDEX)}));
  return begin;
}
static void close_loop(struct reference_builder *b, uint32_t begin) {
  struct instr *head = &b->program.instrs[begin];
  emit(b, (struct instr){.code = CODE_LOOP_END, .dst = head->dst, .a = head->a, .target = begin + 1});
  patch(b, begin);
}

// Which variables of the stage depend on a reduction axis: marked in `table`.
static bool depends(const struct table *tainted, const struct ir_expr *e) {
  if (e->op == OP_VAR) return table_get(tainted, e->var) != NONE;
  for (uint32_t i = 0; i < e->count; i++)
    if (depends(tainted, e->args[i])) return true;
  return false;
}
static void find_tainted(const struct ir_stage *stage, struct table *tainted) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i);
    if (axis->is_reduction) table_set(tainted, axis->axis->var, 1);
  }
  for (uint32_t pass = 0; pass < 2; pass++) {
    const struct list *lets = pass ? &stage->lets : &stage->derived;
    for (uint32_t i = 0; i < lets->count; i++) {
      const struct ir_stmt *let = list_at(lets, struct ir_stmt, i);
      if (depends(tainted, let->value)) table_set(tainted, let->var, 1);
    }
  }
}

// Guards and lets of the body; where `tainted` is given those in front of a reduction: guards that depend on no reduction axis, and the lets of the initial value.
// Returns the jumps out of the body, to be patched.
static struct list build_guards(struct reference_builder *b, const struct table *tainted) {
  struct list jumps = {0}, initial = {0};
  if (tainted) initial = ir_initial_values(&b->arena, b->stage);
  for (uint32_t i = 0; i < b->stage->guards.count; i++) {
    const struct ir_expr *guard = list_at(&b->stage->guards, struct ir_expr, i);
    if (tainted && depends(tainted, guard)) continue;
    uint32_t test = build(b, guard);
    emit(b, (struct instr){.code = CODE_JUMP_UNLESS, .a = test});
    uint32_t *jump = arena_new(&b->arena, uint32_t);
    *jump = b->program.count - 1;
    list_push(&b->arena, &jumps, jump);
  }
  for (uint32_t i = 0; i < b->stage->lets.count; i++) {
    const struct ir_stmt *let = list_at(&b->stage->lets, struct ir_stmt, i);
    bool is_built = !tainted;
    for (uint32_t k = 0; k < initial.count && !is_built; k++) is_built = initial.at[k] == let->value;
    if (is_built) build_let(b, let);
  }
  return jumps;
}
static void patch_all(struct reference_builder *b, const struct list *jumps) {
  for (uint32_t i = 0; i < jumps->count; i++) patch(b, *list_at(jumps, uint32_t, i));
}

static enum code store_code(enum type type) {
  switch (type) {
  case TYPE_BOOL:
  case TYPE_I8:
  case TYPE_U8:
  case TYPE_F8E4M3:
  case TYPE_F8E5M2: return CODE_STORE_U8;
  case TYPE_I16:
  case TYPE_U16:
  case TYPE_F16:
  case TYPE_BF16: return CODE_STORE_U16;
  case TYPE_I32:
  case TYPE_U32: return CODE_STORE_U32;
  case TYPE_I64:
  case TYPE_U64:
  case TYPE_C64:
  case TYPE_INDEX:
  case TYPE_COUNT: return CODE_STORE_I64;
  case TYPE_F32: return CODE_STORE_F32;
  case TYPE_F64: return CODE_STORE_F64;
  case TYPE_C128: return CODE_STORE_128;
  }
  return CODE_STORE_U8;
}

static void build_store(struct reference_builder *b, const struct ir_stage *stage) {
  uint32_t *loops = arena_array(&b->arena, uint32_t, stage->axes.count + 1);
  for (uint32_t i = 0; i < stage->axes.count; i++)
    loops[i] = open_loop(b, list_at(&stage->axes, struct ir_stage_axis, i)->axis);
  struct list jumps = build_guards(b, NULL);
  emit(b, (struct instr){.code = CODE_COUNT_ELEMENT});
  uint32_t value = emit_cast(b, build(b, stage->value), stage->value->type, stage->mem->type);
  value = cast_register(b, value, wide(b, stage->mem->type), stage->mem->type);
  uint32_t *indices = arena_array(&b->arena, uint32_t, stage->indices.count + 1);
  for (uint32_t i = 0; i < stage->indices.count; i++)
    indices[i] = build(b, list_at(&stage->indices, struct ir_expr, i));
  const struct access *access = tensor_access(b, stage->mem, indices, stage->indices.count);
  emit(b, (struct instr){.code = store_code(stage->mem->type), .a = value, .access = access});
  patch_all(b, &jumps);
  for (uint32_t i = stage->axes.count; i-- > 0;) close_loop(b, loops[i]);
}

// The largest extent that each parallel axis has anywhere, by running the loops around it.
static bool measure_axes(struct reference_builder *b, const struct list *axes, int64_t *dims) {
  bool is_dependent = false;
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ir_axis *axis = list_at(axes, struct ir_axis, i);
    if (!reference_size(b->kernel, axis->extent, b->input->sizes, &dims[i])) is_dependent = true;
  }
  if (!is_dependent) return true;
  struct program saved = b->program;
  b->program.instrs = NULL;
  b->program.count = b->program.capacity = 0;
  uint32_t mark = scope_open(&b->registers);
  uint32_t *largest = arena_array(&b->arena, uint32_t, axes->count),
           *loops = arena_array(&b->arena, uint32_t, axes->count);
  for (uint32_t i = 0; i < axes->count; i++) {
    largest[i] = new_register(b);
    loops[i] = 0;
  }
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ir_axis *axis = list_at(axes, struct ir_axis, i);
    uint32_t extent = build(b, axis->extent);
    emit(b, (struct instr){.code = CODE_IMAX_S, .dst = largest[i], .a = largest[i], .b = extent});
    if (i + 1 < axes->count) loops[i] = open_loop(b, axis);
  }
  for (uint32_t i = axes->count; i-- > 1;) close_loop(b, loops[i - 1]);
  emit(b, (struct instr){.code = CODE_END});
  uint64_t ignored = 0;
  bool ok = !b->failed && reference_execute(&b->program, b->input, &ignored, b->error, b->error_bytes);
  for (uint32_t i = 0; i < axes->count; i++) dims[i] = b->program.registers[largest[i]].i;
  scope_close(&b->registers, mark);
  free(b->program.instrs);
  b->program.instrs = saved.instrs;
  b->program.count = saved.count;
  b->program.capacity = saved.capacity;
  b->failed = b->failed || !ok;
  return ok;
}

// Memory for one value at every point of the parallel axes.
static uint8_t *value_memory(struct reference_builder *b, uint32_t rank, const int64_t *dims) {
  int64_t bytes = 8;
  for (uint32_t d = 0; d < rank; d++)
    if (__builtin_mul_overflow(bytes, dims[d] > 0 ? dims[d] : 1, &bytes)) bytes = INT64_MAX;
  uint8_t *memory = bytes > INT64_MAX / 2 ? NULL : malloc((size_t)bytes);
  if (!memory)
    fail(b, "the values of stage '%s' need %" PRId64 " bytes, which there are not", b->stage->label, bytes);
  else
    list_push(&b->arena, &b->blocks, memory);
  return memory;
}

static void emit_store_value(struct reference_builder *b, const struct stage_value *value, uint32_t reg) {
  const struct access *access = value_access(b, value);
  emit(b, (struct instr){.code = CODE_STORE_VALUE, .a = reg, .access = access});
}

// First pass over the parallel axes: every accumulator starts as init, or as the identity.
static void build_start(struct reference_builder *b, const struct ir_stage *stage, const struct list *axes,
                        struct stage_value **values) {
  struct table tainted = {0};
  uint32_t mark = scope_open(&b->registers);
  uint32_t *loops = arena_array(&b->arena, uint32_t, axes->count + 1);
  for (uint32_t i = 0; i < axes->count; i++) loops[i] = open_loop(b, list_at(axes, struct ir_axis, i));
  uint32_t to_end = 0;
  if (stage->init.count) {
    find_tainted(stage, &tainted);
    struct list jumps = build_guards(b, &tainted);
    for (uint32_t c = 0; c < stage->init.count; c++) {
      const struct ir_expr *init = list_at(&stage->init, struct ir_expr, c);
      emit_store_value(b, values[c], emit_cast(b, build(b, init), init->type, values[c]->var->type));
    }
    emit(b, (struct instr){.code = CODE_JUMP});
    to_end = b->program.count - 1;
    patch_all(b, &jumps);
  }
  for (uint32_t c = 0; c < stage->reducer->identity.count; c++)
    emit_store_value(b, values[c], build(b, list_at(&stage->reducer->identity, struct ir_expr, c)));
  if (stage->init.count) patch(b, to_end);
  for (uint32_t i = axes->count; i-- > 0;) close_loop(b, loops[i]);
  scope_close(&b->registers, mark);
  free(tainted.entries);
  free(tainted.log);
}

// accumulators = update(accumulators, operands), or combine where the reducer has no update. All components
// are computed before any is written.
static void build_update(struct reference_builder *b, const struct ir_reducer *reducer,
                         const uint32_t *accumulators, const uint32_t *operands, uint32_t operand_count) {
  const struct ir_function *function = reducer->update.params.count ? &reducer->update : &reducer->combine;
  uint32_t components = reducer->identity.count, mark = scope_open(&b->registers);
  if (function->params.count != components + operand_count || function->results.count != components) {
    fail(b, "in stage '%s': reducer '%s' takes another number of operands", b->stage->label, reducer->name);
    return;
  }
  for (uint32_t i = 0; i < function->params.count; i++)
    table_set(&b->registers, function->params.at[i],
              i < components ? accumulators[i] : operands[i - components]);
  for (uint32_t i = 0; i < function->lets.count; i++)
    build_let(b, list_at(&function->lets, struct ir_stmt, i));
  uint32_t *results = arena_array(&b->arena, uint32_t, components + 1);
  for (uint32_t i = 0; i < components; i++)
    results[i] = build(b, list_at(&function->results, struct ir_expr, i));
  scope_close(&b->registers, mark);
  struct instr *last = b->program.count ? &b->program.instrs[b->program.count - 1] : NULL;
  if (components == 1 && last && last->dst == results[0] && results[0] != accumulators[0] &&
      last->code <= CODE_FMA_F64 && last->code != CODE_STORE_VALUE) {
    last->dst = accumulators[0]; // the result is computed in place
    return;
  }
  for (uint32_t i = 0; i < components;
       i++) { // a result that is another accumulator is saved before that one changes
    if (results[i] == accumulators[i]) continue;
    results[i] = emit_to_new(b, (struct instr){.code = CODE_MOVE, .a = results[i]});
  }
  for (uint32_t i = 0; i < components; i++)
    if (results[i] != accumulators[i])
      emit(b, (struct instr){.code = CODE_MOVE, .dst = accumulators[i], .a = results[i]});
}

static void build_reduce(struct reference_builder *b, const struct ir_stage *stage) {
  uint32_t components = stage->results.count, axis_count = stage->axes.count, outer = 0;
  if (stage->reducer->identity.count != components) {
    fail(b, "stage '%s' has %" PRIu32 " results, its reducer %" PRIu32, stage->label, components,
         stage->reducer->identity.count);
    return;
  }
  struct list parallel = {0};
  for (uint32_t i = 0; i < axis_count; i++) {
    struct ir_stage_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i);
    if (axis->is_reduction) continue;
    list_push(&b->arena, &parallel, axis->axis);
    outer = i + 1; // axes up to here, between which an accumulator changes
  }
  int64_t *dims = arena_array(&b->arena, int64_t, parallel.count + 1);
  if (!measure_axes(b, &parallel, dims)) return;
  struct stage_value **values = arena_array(&b->arena, struct stage_value *, components);
  for (uint32_t c = 0; c < components; c++) {
    values[c] = arena_new(&b->arena, struct stage_value);
    *values[c] = (struct stage_value){list_at(&stage->results, struct ir_var, c), parallel, dims, NULL};
    values[c]->data = value_memory(b, parallel.count, dims);
  }
  build_start(b, stage, &parallel, values);
  if (b->failed) return;

  uint32_t *loops = arena_array(&b->arena, uint32_t, axis_count + 1);
  uint32_t *accumulators = arena_array(&b->arena, uint32_t, components);
  for (uint32_t i = 0; i < outer; i++)
    loops[i] = open_loop_of_reduction(b, stage, list_at(&stage->axes, struct ir_stage_axis, i));
  for (uint32_t c = 0; c < components; c++) {
    const struct access *access = value_access(b, values[c]);
    accumulators[c] = emit_to_new(b, (struct instr){.code = CODE_LOAD_VALUE, .access = access});
  }
  for (uint32_t i = outer; i < axis_count; i++)
    loops[i] = open_loop_of_reduction(b, stage, list_at(&stage->axes, struct ir_stage_axis, i));
  struct list jumps = build_guards(b, NULL);
  emit(b, (struct instr){.code = CODE_COUNT_ELEMENT});
  uint32_t *operands = arena_array(&b->arena, uint32_t, stage->operands.count + 1);
  for (uint32_t i = 0; i < stage->operands.count; i++)
    operands[i] = build(b, list_at(&stage->operands, struct ir_expr, i));
  build_update(b, stage->reducer, accumulators, operands, stage->operands.count);
  patch_all(b, &jumps);
  for (uint32_t i = axis_count; i-- > outer;) close_loop(b, loops[i]);
  for (uint32_t c = 0; c < components; c++) emit_store_value(b, values[c], accumulators[c]);
  for (uint32_t i = outer; i-- > 0;) close_loop(b, loops[i]);
  for (uint32_t c = 0; c < components; c++) list_push(&b->arena, &b->values, values[c]);
}

bool reference_build_stage(struct reference_builder *b, const struct ir_stage *stage) {
  b->stage = stage;
  uint32_t mark = scope_open(&b->registers);
  if (stage->kind == STAGE_REDUCE)
    build_reduce(b, stage);
  else
    build_store(b, stage);
  scope_close(&b->registers, mark);
  return !b->failed;
}

struct reference_builder *reference_builder_new(const struct ir_kernel *kernel,
                                                const struct reference_input *input, char *error,
                                                size_t error_bytes) {
  struct reference_builder *b = calloc(1, sizeof *b);
  if (!b) {
    snprintf(error, error_bytes, "out of memory");
    return NULL;
  }
  arena_init(&b->arena);
  b->kernel = kernel;
  b->input = input;
  b->error = error;
  b->error_bytes = error_bytes;
  for (uint32_t i = 0; i < kernel->sizes.count; i++)
    table_set(&b->registers, kernel->sizes.at[i], constant(b, value_int(TYPE_I64, input->sizes[i])));
  for (uint32_t i = 0; i < kernel->scalars.count; i++)
    table_set(&b->registers, kernel->scalars.at[i], constant(b, input->scalars[i]));
  return b;
}

const struct program *reference_builder_program(struct reference_builder *b) {
  emit(b, (struct instr){.code = CODE_END});
  return &b->program;
}

void reference_builder_free(struct reference_builder *b) {
  if (!b) return;
  for (uint32_t i = 0; i < b->blocks.count; i++) free(b->blocks.at[i]);
  free(b->program.instrs);
  free(b->program.registers);
  free(b->registers.entries);
  free(b->registers.log);
  free(b->loads.entries);
  free(b->loads.log);
  arena_destroy(&b->arena);
  free(b);
}
