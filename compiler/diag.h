// Sources and diagnostics: what went wrong, where, and what would be legal.
//
// Passes report and go on; the driver prints everything at the end, errors of one file together. Three streams: errors
// (the user's), warnings, and remarks (why a choice was made; shown on request). A note hangs on the diagnostic before it.
#ifndef RED_COMPILER_DIAG_H
#define RED_COMPILER_DIAG_H

#include "compiler/arena.h"

// A place in a source: 1-based lines and byte columns, the end exclusive. line 0: no place.
struct range {
  uint32_t line, column, end_line, end_column;
  uint32_t file; // index into diag->sources
};

// The range from the start of `a` to the end of `b`.
struct range range_join(struct range a, struct range b);

struct source {
  const char *name; // as the user wrote it; "<stdin>" for standard input
  const char *text; // NULL where it is not at hand (a dump read back)
  size_t length;
  const char **lines; // start of each line
  uint32_t line_count;
  bool is_schedule; // it holds schedules alone: line tables leave it out
  bool is_own;      // the automatic scheduler wrote it
};

enum diag_kind { DIAG_ERROR, DIAG_WARNING, DIAG_REMARK, DIAG_NOTE };

// Error numbers: X(NAME, number, title). See errors.def for the explanations.
enum diag_code {
#define E(name, number, title, explanation) ERROR_##name = number,
#include "compiler/errors.def"
#undef E
};

struct diagnostic {
  enum diag_kind kind;
  enum diag_code code; // 0 for notes and remarks
  struct range range;
  const char *pass; // of a remark
  const char *message;
  struct list notes; // struct diagnostic
};

struct diag {
  struct arena *arena;
  struct list sources;     // struct source
  struct list diagnostics; // struct diagnostic, in the order of reporting
  struct diagnostic *last; // the one that notes hang on; NULL where it was beyond error_limit
  uint32_t error_count, warning_count;
  uint32_t error_limit; // 0: none. Beyond it errors are counted but not kept
  bool warnings_are_errors;
  bool internal; // an internal error was reported: exit status 3
};

void diag_init(struct diag *diag, struct arena *arena);
// Registers a source; `text` must live as long as the arena and may be NULL. Returns its index.
uint32_t diag_add_source(struct diag *diag, const char *name, const char *text, size_t length);

void diag_error(struct diag *diag, enum diag_code code, struct range range, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_warning(struct diag *diag, enum diag_code code, struct range range, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_remark(struct diag *diag, const char *pass, struct range range, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Hangs a note on the diagnostic reported last. A range with line 0 is a note without a place.
void diag_note(struct diag *diag, struct range range, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// A fault of the compiler: names the pass and the place, asks for a report, makes the exit status 3.
void diag_internal(struct diag *diag, const char *pass, struct range range, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct diag_style {
  bool json;            // one JSON object a line
  bool color;           // ANSI colours
  bool remarks;         // remarks too
  const char *only_pass; // remarks of this pass only; NULL for all
};
// Appends all diagnostics to `out`, sorted by file and place where they have one.
void diag_print(const struct diag *diag, const struct diag_style *style, struct text *out);
// Whether the place is in a text that the automatic scheduler wrote.
bool diag_is_own(const struct diag *diag, struct range range);
// The title and explanation of an error number, or NULL.
const char *diag_explain(int number, const char **title);

#endif
