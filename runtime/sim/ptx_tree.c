// The tree that grammar/ptx.y builds: arena, constructors, first error.
#include "runtime/sim/ptx.h"
#include "runtime/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ptx_chunk {
  struct ptx_chunk *next;
  _Alignas(16) unsigned char bytes[];
};

void *ptx_alloc(struct ptx_arena *arena, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  if (arena->chunks && arena->size - arena->used >= bytes) {
    void *memory = arena->chunks->bytes + arena->used;
    arena->used += bytes;
    return memory;
  }
  size_t size = bytes > 65536 ? bytes : 65536;
  struct ptx_chunk *chunk = calloc(1, sizeof *chunk + size);
  if (!chunk) {
    arena->failed = true;
    longjmp(*arena->out, 2);
  }
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->size = size;
  arena->used = bytes;
  return chunk->bytes;
}

char *ptx_copy(struct ptx_arena *arena, const char *text, size_t length) {
  char *copy = ptx_alloc(arena, length + 1);
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

void ptx_arena_free(struct ptx_arena *arena) {
  for (struct ptx_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
  memset(arena, 0, sizeof *arena);
}

void ptx_unit_free(struct ptx_unit *unit) {
  if (!unit) return;
  ptx_arena_free(&unit->arena);
  free(unit->locs);
  free(unit);
}

void ptx_error_set(struct sim_error *error, int line, int column, const char *message) {
  if (!error) return;
  error->line = line;
  error->column = column;
  snprintf(error->message, sizeof error->message, "%s", message);
}

void ptx_fail(struct ptx_unit *unit, struct ptx_place place, const char *format, ...) {
  if (unit->failed) return;
  unit->failed = true;
  char message[sizeof unit->error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  ptx_error_set(unit->error, place.line, place.column, message);
}

struct ptx_operand *ptx_operand_new(struct ptx_unit *unit, struct ptx_place place, enum ptx_operand_kind kind,
                                    const char *text, uint64_t value) {
  struct ptx_operand *operand = ptx_alloc(&unit->arena, sizeof *operand);
  operand->kind = kind;
  operand->place = place;
  operand->text = text;
  operand->value = value;
  operand->count = 1;
  operand->last = operand;
  return operand;
}

struct ptx_operand *ptx_operand_wrap(struct ptx_unit *unit, struct ptx_place place,
                                     enum ptx_operand_kind kind, struct ptx_operand *items, uint64_t value) {
  struct ptx_operand *operand = ptx_operand_new(unit, place, kind, NULL, value);
  operand->items = items;
  return operand;
}

struct ptx_operand *ptx_operand_append(struct ptx_operand *list, struct ptx_operand *item) {
  list->last->next = item;
  list->last = item->last;
  list->count += item->count;
  return list;
}

struct ptx_dot *ptx_dot_append(struct ptx_unit *unit, struct ptx_dot *list, const char *text,
                               uint64_t value) {
  struct ptx_dot *dot = ptx_alloc(&unit->arena, sizeof *dot);
  dot->text = text;
  dot->value = value;
  dot->last = dot;
  if (!list) return dot;
  list->last->next = dot;
  list->last = dot;
  return list;
}

struct ptx_variable *ptx_variable_new(struct ptx_unit *unit, struct ptx_place place, const char *name) {
  struct ptx_variable *variable = ptx_alloc(&unit->arena, sizeof *variable);
  variable->place = place;
  variable->name = name;
  variable->elements = 1;
  variable->last = variable;
  return variable;
}

struct ptx_variable *ptx_variable_dimension(struct ptx_variable *variable, bool is_open, uint64_t extent) {
  variable->is_array = true;
  if (is_open) {
    variable->is_open_array = true;
  } else if (extent != 0 && variable->elements > UINT64_MAX / extent) {
    variable->is_overflowing = true;
  } else {
    variable->elements *= extent;
  }
  return variable;
}

struct ptx_variable *ptx_variable_append(struct ptx_variable *list, struct ptx_variable *item) {
  list->last->next = item;
  list->last = item->last;
  return list;
}

struct ptx_variable *ptx_variable_finish(struct ptx_variable *list, const char *linkage, const char *space,
                                         struct ptx_dot *dots) {
  for (struct ptx_variable *variable = list; variable; variable = variable->next) {
    variable->linkage = linkage;
    variable->space = space;
    variable->dots = dots;
  }
  return list;
}

struct ptx_statement *ptx_statement_new(struct ptx_unit *unit, struct ptx_place place,
                                        enum ptx_statement_kind kind) {
  struct ptx_statement *statement = ptx_alloc(&unit->arena, sizeof *statement);
  statement->kind = kind;
  statement->place = place;
  statement->loc = unit->loc;
  statement->last = statement;
  return statement;
}

struct ptx_statement *ptx_statement_append(struct ptx_statement *list, struct ptx_statement *item) {
  if (!list) return item;
  if (!item) return list;
  list->last->next = item;
  list->last = item->last;
  return list;
}

struct ptx_tuning *ptx_tuning_append(struct ptx_tuning *list, struct ptx_tuning *item) {
  item->last = item;
  if (!list) return item;
  list->last->next = item;
  list->last = item;
  return list;
}

struct ptx_function *ptx_function_new(struct ptx_unit *unit, struct ptx_place place, bool is_entry,
                                      struct ptx_variable *results, const char *name,
                                      struct ptx_variable *parameters) {
  struct ptx_function *function = ptx_alloc(&unit->arena, sizeof *function);
  function->place = place;
  function->is_entry = is_entry;
  function->results = results;
  function->name = name;
  function->parameters = parameters;
  unit->loc = -1;
  return function;
}

void ptx_unit_add_function(struct ptx_unit *unit, struct ptx_function *function, const char *linkage) {
  function->linkage = linkage;
  if (unit->last_function) {
    unit->last_function->next = function;
  } else {
    unit->functions = function;
  }
  unit->last_function = function;
}

void ptx_unit_add_variables(struct ptx_unit *unit, struct ptx_variable *list) {
  unit->variables = unit->variables ? ptx_variable_append(unit->variables, list) : list;
}

void ptx_unit_add_file(struct ptx_unit *unit, uint64_t number, const char *name) {
  struct ptx_file *file = ptx_alloc(&unit->arena, sizeof *file);
  file->number = number;
  file->name = name;
  file->next = unit->files;
  unit->files = file;
}

void ptx_unit_add_loc(struct ptx_unit *unit, struct ptx_loc loc) {
  if (unit->loc_count == unit->loc_room) {
    size_t room = unit->loc_room ? 2 * unit->loc_room : 64;
    struct ptx_loc *grown = realloc(unit->locs, room * sizeof *grown);
    if (!grown) {
      unit->arena.failed = true;
      longjmp(*unit->arena.out, 2);
    }
    unit->locs = grown;
    unit->loc_room = room;
  }
  unit->loc = (int)unit->loc_count;
  unit->locs[unit->loc_count++] = loc;
}
