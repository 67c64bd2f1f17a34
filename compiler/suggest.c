#include "compiler/suggest.h"

#include <string.h>

enum { MAX_LENGTH = 64 }; // longer names are never suggested

static uint32_t min(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// Optimal string alignment distance of two words of at most MAX_LENGTH letters.
static uint32_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  uint32_t rows[3][MAX_LENGTH + 1];
  uint32_t *before = rows[0], *last = rows[1], *row = rows[2];
  for (uint32_t j = 0; j <= b_length; j++) last[j] = j;
  for (uint32_t i = 1; i <= a_length; i++) {
    row[0] = i;
    for (uint32_t j = 1; j <= b_length; j++) {
      row[j] = min(min(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = min(row[j], before[j - 2] + 1);
    }
    uint32_t *spare = before;
    before = last;
    last = row;
    row = spare;
  }
  return last[b_length];
}

struct suggestion suggest(const char *word) {
  return (struct suggestion){.word = word, .distance = (uint32_t)strnlen(word, MAX_LENGTH) / 3 + 1};
}

void suggest_consider(struct suggestion *suggestion, const char *name) {
  size_t length = strnlen(suggestion->word, MAX_LENGTH + 1), other = strnlen(name, MAX_LENGTH + 1);
  if (length > MAX_LENGTH || other > MAX_LENGTH) return;
  uint32_t edits = distance(suggestion->word, length, name, other);
  if (edits >= suggestion->distance) return;
  suggestion->distance = edits;
  suggestion->best = name;
}
