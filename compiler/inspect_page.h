// The page of redc inspect --html: program, IR after each pass, CUDA and PTX side by side, and what Clang found in the CUDA.
#ifndef RED_COMPILER_INSPECT_PAGE_H
#define RED_COMPILER_INSPECT_PAGE_H

#include "compiler/pipeline.h"

struct inspect_step {
  const char *pass, *text; // the dump after it
};
struct inspect_page {
  const char *title;
  struct list steps; // struct inspect_step
  const char *cuda, *ptx, *explain;
  const struct list *cuda_lines; // struct range, one a line of the CUDA
  const char *report;            // JSON of redc-clang; NULL: there is none
};

// Appends the page, which needs nothing beside it. Sources and remarks are those of c->diag.
void inspect_page_print(const struct compilation *c, const struct inspect_page *page, struct text *out);

#endif
