#include "compiler/tune_search.h"

#include <string.h>

enum { MOST_FACTOR = 4096 };

struct factor {
  struct ast_expr *value; // AST_INT
  bool shifts;            // of a split or tile: what it loses another one may gain
};

struct search {
  struct arena *arena;
  struct ast_schedule *schedule;
  struct list factors; // struct factor
  struct list *out;
};

const char *search_text(struct arena *arena, const struct ast_schedule *schedule) {
  struct ast_file file = {0};
  struct text text = {0};
  list_push(arena, &file.schedules, (void *)(uintptr_t)schedule);
  ast_print(&file, &text);
  const char *copy = arena_strdup(arena, text.data);
  text_free(&text);
  return copy;
}

static void add(struct search *s) { list_push(s->arena, s->out, (void *)(uintptr_t)search_text(s->arena, s->schedule)); }

static void add_factor(struct search *s, struct ast_expr *value, bool shifts) {
  struct factor *factor = arena_new(s->arena, struct factor);
  *factor = (struct factor){value, shifts};
  list_push(s->arena, &s->factors, factor);
}

// Constants in front of `sms` in a number of blocks.
static void find_parts(struct search *s, struct ast_expr *e) {
  if (e->kind == AST_BINARY && e->binary == AST_MUL) {
    struct ast_expr *a = e->args.at[0], *b = e->args.at[1];
    if (a->kind == AST_INT && b->kind == AST_NAME && strcmp(b->name.text, "sms") == 0) add_factor(s, a, false);
  }
  for (uint32_t i = 0; i < e->args.count; i++) find_parts(s, e->args.at[i]);
}

static void find_factors(struct search *s) {
  for (uint32_t i = 0; i < s->schedule->directives.count; i++) {
    struct ast_directive *d = s->schedule->directives.at[i];
    bool shifts = (d->kind == AST_SPLIT && !d->is_into) || d->kind == AST_TILE;
    if (d->value && d->value->kind == AST_INT) add_factor(s, d->value, shifts);
    else if (d->value) find_parts(s, d->value);
    for (uint32_t v = 0; v < d->values.count; v++)
      if (list_at(&d->values, struct ast_expr, v)->kind == AST_INT) add_factor(s, d->values.at[v], shifts);
  }
}

// Twice or half; false where that is no factor.
static bool turn(struct ast_expr *value, bool doubles) {
  if (doubles ? value->integer > MOST_FACTOR / 2 : value->integer < 2 || value->integer % 2) return false;
  value->integer = doubles ? value->integer * 2 : value->integer / 2;
  return true;
}

// With factor `i` twice as large, every other one that may give half of itself.
static void shift_factors(struct search *s, uint32_t i) {
  for (uint32_t k = 0; k < s->factors.count; k++) {
    struct factor *other = s->factors.at[k];
    uint64_t before = other->value->integer;
    if (k == i || !other->shifts || !turn(other->value, false)) continue;
    add(s);
    other->value->integer = before;
  }
}

static void change_factors(struct search *s) {
  for (uint32_t i = 0; i < s->factors.count; i++) {
    struct factor *factor = s->factors.at[i];
    uint64_t before = factor->value->integer;
    if (turn(factor->value, false)) add(s);
    factor->value->integer = before;
    if (!turn(factor->value, true)) continue;
    add(s);
    if (factor->shifts) shift_factors(s, i);
    factor->value->integer = before;
  }
}

// All other words in a directive's place.
static void change_word(struct search *s, struct ast_directive *d, const char *const *words) {
  const char *before = d->word.text;
  for (; *words; words++) {
    if (strcmp(*words, before) == 0) continue;
    d->word.text = *words;
    add(s);
  }
  d->word.text = before;
}

static const char *const hints[] = {"evict_first", "evict_last", "no_allocate", "streaming", NULL};
static const char *const combines[] = {"last_block", "flag", "second_kernel", "atomic", NULL};

static void change_words(struct search *s) {
  struct list *directives = &s->schedule->directives;
  for (uint32_t i = 0; i < directives->count; i++) {
    struct ast_directive *d = directives->at[i];
    if (d->kind == AST_COMBINE) change_word(s, d, combines);
    if (d->kind != AST_CACHE) continue;
    change_word(s, d, hints);
    list_remove(directives, i);
    add(s);
    list_insert(s->arena, directives, i, d);
  }
}

static void add_with(struct search *s, struct ast_directive *d) {
  struct list *directives = &s->schedule->directives;
  list_push(s->arena, directives, d);
  add(s);
  list_remove(directives, directives->count - 1);
}

static bool has_directive(const struct search *s, enum ast_directive_kind kind, const char *name) {
  for (uint32_t i = 0; i < s->schedule->directives.count; i++) {
    const struct ast_directive *d = s->schedule->directives.at[i];
    if (d->kind == kind && (!name || strcmp(list_at(&d->names, struct ast_name, 0)->text, name) == 0)) return true;
  }
  return false;
}

static void add_hints(struct search *s, const struct ir_kernel *kernel) {
  for (uint32_t t = 0; t < kernel->tensors.count; t++) {
    const struct ir_mem *mem = kernel->tensors.at[t];
    struct ast_name *name = arena_new(s->arena, struct ast_name);
    name->text = mem->label;
    if (mem->is_output || has_directive(s, AST_CACHE, name->text)) continue;
    for (const char *const *hint = hints; *hint; hint++) {
      struct ast_directive *d = arena_new(s->arena, struct ast_directive);
      d->kind = AST_CACHE;
      d->word.text = *hint;
      list_push(s->arena, &d->names, name);
      add_with(s, d);
    }
  }
}

static void add_blocks(struct search *s) {
  for (uint64_t blocks = 2; blocks <= 4 && !has_directive(s, AST_BLOCKS, NULL); blocks *= 2) {
    struct ast_directive *d = arena_new(s->arena, struct ast_directive);
    d->kind = AST_BLOCKS;
    d->value = arena_new(s->arena, struct ast_expr);
    d->value->kind = AST_INT;
    d->value->integer = blocks;
    add_with(s, d);
  }
}

void search_neighbours(struct arena *arena, struct ast_schedule *schedule, const struct ir_kernel *kernel, struct list *out) {
  struct search s = {.arena = arena, .schedule = schedule, .out = out};
  find_factors(&s);
  change_factors(&s);
  change_words(&s);
  add_hints(&s, kernel);
  add_blocks(&s);
}
