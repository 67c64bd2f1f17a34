// What redc lift makes of a function, before it is text: statements of the language over symbolic values.
//
// A function is run once with symbols for values. What a scalar holds is an expression (struct ir_expr) over parameters, axes and
// elements as they were before the function ran. Scopes are loop bodies. A loop that is done (lift_loop.c) becomes reductions, for
// scalars and elements that carry a value from one iteration to the next, and a parallel loop for the elements that each iteration
// writes for itself. A read of an element that was written before (lift_array.c) becomes what was written there. So the order of
// what is left means nothing, which is what the language wants.
#ifndef RED_GRAMMAR_LIFT_KERNEL_H
#define RED_GRAMMAR_LIFT_KERNEL_H

#include "compiler/poly.h"
#include "grammar/lift_tree.h"

struct lift_axis {
  struct ir_var *var;     // VAR_AXIS, i64
  struct ir_expr *lo, *hi; // i64
  struct range range;
};

enum lift_item_kind { ITEM_LET, ITEM_REDUCE, ITEM_STORE, ITEM_FOR };

struct lift_item {
  enum lift_item_kind kind;
  struct range range;
  bool is_dead;       // overwritten, or used by nothing
  struct list guards; // STORE, FOR: struct ir_expr; without lets
  // LET
  struct ir_var *var;
  struct ir_expr *value; // LET, STORE
  // REDUCE
  const char *reducer;     // in the language
  enum op op;              // OP_ADD for sum; OP_COUNT for argmin and argmax
  struct list axes;        // struct lift_axis
  struct list conditions;  // struct ir_expr: where one is false the operand does not count
  struct list lets;        // struct lift_item: LET and REDUCE, of the body
  struct list operands;    // struct ir_expr
  struct list results;     // struct ir_var
  struct ir_var *start;    // goes on with what this placeholder holds: an enclosing loop's, or an element; NULL: with the identity
  // STORE
  struct lift_symbol *array;
  struct list indices; // struct ir_expr, i64
  // FOR
  struct lift_axis *axis;
  struct list items; // struct lift_item
};

// A variable of the function.
struct lift_symbol {
  struct host_var *host;
  const char *name; // in the language: unique
  // Scalars
  struct ir_expr *value; // now; NULL: none that can be used
  struct ir_expr *exact, *exact_for; // unsigned, where value == exact_for: the same without wrapping, for indices
  struct ir_var *size;   // parameters of integer type: as a size
  struct ir_var *scalar; // parameters: as a scalar
  bool is_size;          // counts in a range, a bound or an index
  bool is_used;
  const char *no_value;  // value is NULL: why
  // Arrays
  struct ir_mem *mem;
  bool is_accessed;
  bool is_flat;          // a pointer whose accesses fit no rows: one dimension
  struct list strides;   // pointers: struct ir_expr, what axes are multiplied by in indices
  struct list tails;     // pointers: the dims behind the first, or nothing
  struct ir_expr *extent; // of the first dimension where the declaration does not say: the least that holds all accesses
  struct range access;    // one that needs it
};

// A scalar that a loop's body assigns to and that lives outside.
struct lift_carried {
  struct lift_symbol *symbol;
  struct ir_var *entry; // VAR_MUTABLE: what it holds when an iteration begins
  struct ir_expr *before; // what it held before the loop
};

// An element read in a loop that writes to the array, before the iteration wrote there.
struct lift_entry {
  struct lift_symbol *array;
  struct list indices;
  struct list more;     // struct lift_axis: loops inside the scope that the indices mention
  struct ir_var *entry; // VAR_MUTABLE
  struct range range;
};

struct lift_scope {
  struct lift_scope *parent; // NULL: the function
  struct lift_axis *axis;    // NULL: the function
  struct list items;         // struct lift_item, in order
  struct list guards;        // struct ir_expr: of the branches that are open now
  struct list written;       // struct lift_symbol: arrays that the loop's body writes to
  struct list carried;       // struct lift_carried
  struct list entries;       // struct lift_entry
};

struct lift {
  struct diag *diag; // of the first run, which only finds shapes: one that nobody sees
  struct arena *arena;
  const struct host_function *function;
  struct lift_scope *scope;
  struct list symbols;  // struct lift_symbol
  struct list items;    // what is left in the end: struct lift_item
  struct map names;     // in use
  uint32_t count;       // of variables made
  bool finds_shapes;    // the first run
  bool reassociates;    // float reductions may be
  bool keeps_order;     // one of them is not: needs the schedule that keeps C's order
  struct range ordered; // where
  const char *ordered_name;
  bool is_refused;
  bool again; // a pointer turned out to be flat: run anew
};

// ---- lift_value.c: values

// An error at a place of the host source: "'name' is not lifted: ..."; the note says what to write, NULL: nothing.
void lift_refuse(struct lift *l, struct range range, const char *advice, const char *format, ...) __attribute__((format(printf, 4, 5)));
// A new variable. `name` is as C has it; it is made unique when it is printed.
struct ir_var *lift_var(struct lift *l, enum ir_var_kind kind, enum type type, const char *name, struct range range);
// The value of an expression, in its C type, or as i64 where it counts and C's arithmetic cannot wrap ("wide"). `is_index`: it is an
// index, a bound or a range, where even unsigned arithmetic is taken as exact, since what wraps could not be in bounds. NULL after a refusal.
struct ir_expr *lift_value(struct lift *l, const struct host_expr *e, bool is_index);
// Converts to a type; a wide value too.
struct ir_expr *lift_as(struct lift *l, enum type type, struct ir_expr *e);
// c ? a : b, where a and b do not ask for c again.
struct ir_expr *lift_select(struct lift *l, struct ir_expr *c, struct ir_expr *a, struct ir_expr *b);
// Gives a value a let of its own at the end of the open scope, where that is of use.
struct ir_expr *lift_named(struct lift *l, const char *name, struct ir_expr *value, struct range range);
// What is known in `scope`: axes and guards of it and of those around it. `more`: struct lift_axis, further ones inside; NULL: none.
struct facts lift_facts(struct lift *l, const struct lift_scope *scope, const struct list *more);
// The expression without the lets of items: only axes, parameters, elements and results of reductions are left.
struct ir_expr *lift_expand(struct lift *l, struct ir_expr *e, const struct list *items);
// Replaces variables (struct ir_var) by values (struct ir_expr).
struct ir_expr *lift_replace(struct lift *l, struct ir_expr *e, const struct list *vars, const struct list *values);
// Whether the expression mentions a variable that `is_one` accepts.
bool lift_mentions(const struct ir_expr *e, bool (*is_one)(const struct ir_var *var, const void *state), const void *state);
bool lift_mentions_var(const struct ir_expr *e, const struct ir_var *var);
// The item that defines a variable, in a list or in loops below; NULL: none.
struct lift_item *lift_definition(const struct list *items, const struct ir_var *var);
struct ir_expr *lift_all(struct lift *l, const struct list *conditions); // their conjunction; NULL: none
// Nodes when written out; beyond LIFT_MAX_NODES an expression is refused.
enum { LIFT_MAX_NODES = 4000 };
uint32_t lift_size(const struct ir_expr *e, uint32_t limit);

// ---- lift_match.c: what a loop does to a value that it carries

struct lift_step {
  enum op op;               // new = old op operand; OP_COUNT: the value does not change
  struct ir_expr *operand;  // does not mention `old`
  struct ir_expr *guard;    // NULL: always
  bool compares;            // OP_FMIN, OP_FMAX by a comparison: `operand < old ? operand : old`
  bool is_last;             // new = operand: the last iteration's; otherwise op is a reduction
};
// Whether `now` is a step from `old`; `advice` says what would be where it almost is.
bool lift_match(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct lift_step *step, const char **advice);
// Whether values move together under a comparison of the first's old value: `best` and `place` change where guard and `operand op best`.
bool lift_match_place(struct lift *l, struct ir_expr *best, const struct ir_var *old_best, struct ir_expr *place,
                      const struct ir_var *old_place, struct lift_step *step, struct ir_expr **operand, bool *is_strict);

// ---- lift_array.c: elements

// The tensor and the indices of an access, in `indices`. False after a refusal.
bool lift_access(struct lift *l, const struct host_expr *e, struct list *indices);
// What an element holds now, in the open scope. NULL after a refusal.
struct ir_expr *lift_read(struct lift *l, struct lift_symbol *array, const struct list *indices, struct range range);
// What it holds as the items of `scope` leave it, for a reader in `inner` (scope, or one inside it) and in the loops `more` inside that.
// Clones of reductions that the value needs go to the front of `into`.
struct ir_expr *lift_read_in(struct lift *l, struct lift_scope *scope, struct lift_scope *inner, const struct list *more,
                             struct lift_symbol *array, const struct list *indices, struct range range, struct list *into);
// Whether a statement before, in the open scope or around it, wrote to the element.
bool lift_was_written(struct lift *l, struct lift_symbol *array, const struct list *indices);
// Appends an item to the scope; stores before it that it overwrites are dead.
void lift_append(struct lift *l, struct lift_scope *scope, struct lift_item *item);
// Whether two lists of indices name one element in any case.
bool lift_same_indices(struct facts *facts, const struct list *a, const struct list *b);
// Visits the live stores of an item, in order, each with the loops around it inside the item.
struct lift_store {
  struct lift_item *item;
  struct list axes;   // struct lift_axis, outermost first
  struct list loops;  // struct lift_item: the same as FOR items
  struct list guards; // struct ir_expr: of the loops and of the store
};
struct list lift_stores(struct lift *l, struct lift_item *item); // struct lift_store

// ---- lift_shape.c: shapes of pointers

// The first run: notes what axes are multiplied by.
void lift_note_strides(struct lift *l, struct lift_symbol *array, struct ir_expr *index);
// Between the runs: dimensions from the strides.
void lift_shape(struct lift *l, struct lift_symbol *array);
// The second run: an index of a pointer as one index for each dimension. False: the array has become flat, run again.
bool lift_take_apart(struct lift *l, struct lift_symbol *array, struct ir_expr *index, struct list *indices);
// The second run: the first dimension holds this access. False after a refusal.
bool lift_extend(struct lift *l, struct lift_symbol *array, struct ir_expr *first, struct range range);

// ---- lift_loop.c: statements

struct lift_item *lift_item(struct lift *l, enum lift_item_kind kind, struct range range);
// Runs statements in the open scope. False after a refusal.
bool lift_run(struct lift *l, const struct list *statements);

// ---- lift_kernel.c, lift_print.c

// Lifts a function and appends its kernel, reducers and schedules to `out`, as text of the language. False after a refusal.
bool lift_function(struct diag *diag, const struct host_function *function, bool reassociates, struct text *out);
void lift_print(struct lift *l, struct text *out);

#endif
