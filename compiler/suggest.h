// "Did you mean": the known name that is nearest to a misspelt one.
//
//   struct suggestion s = suggest("--emitt");
//   for (...) suggest_consider(&s, names[i]);
//   if (s.best) diag_note(diag, range, "did you mean '%s'?", s.best);
#ifndef RED_COMPILER_SUGGEST_H
#define RED_COMPILER_SUGGEST_H

#include <stdint.h>

struct suggestion {
  const char *word;
  const char *best;  // nearest so far; NULL: none is near enough
  uint32_t distance; // of the best: fewer edits than this are looked for
};

struct suggestion suggest(const char *word);
// Makes `name` the best where it is nearer than all before: letters changed, added, dropped or swapped with
// their neighbour count one each, and a third of the word may be wrong. `name` must outlive the suggestion.
void suggest_consider(struct suggestion *suggestion, const char *name);

#endif
