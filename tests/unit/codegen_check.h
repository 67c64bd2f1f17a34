// What the tests of code generation share: running a backend, counting what it printed, assembling it.
#ifndef RED_TESTS_UNIT_CODEGEN_CHECK_H
#define RED_TESTS_UNIT_CODEGEN_CHECK_H

#include "tests/unit/program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline int check_count(const char *text, const char *what) {
  int count = 0;
  for (const char *at = strstr(text, what); at; at = strstr(at + strlen(what), what)) count++;
  return count;
}

// The diagnostics as text, to be freed.
static inline struct text check_messages(struct program *p) {
  struct text text = {0};
  struct diag_style style = {0};
  diag_print(&p->diag, &style, &text);
  text_puts(&text, "");
  return text;
}

// PTX for a target and level, to be freed; fails the test where there is none.
static inline struct text check_ptx(struct program *p, const char *target, uint32_t optimize) {
  struct text ptx = {0};
  p->options.target = target_find(target);
  p->options.optimize = optimize;
  if (!codegen_nvptx(&p->context, NVPTX_PTX, &ptx)) {
    struct text messages = check_messages(p);
    cr_assert(false, "no PTX for %s -O%u: %s", target, optimize, messages.data);
    text_free(&messages);
  }
  return ptx;
}

static inline bool check_tool(const char *tool) {
  char command[200];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", tool);
  return system(command) == 0;
}

// Writes `text` to a file and runs `format` with that file's name for %s. Returns the exit status, the output
// in `out`.
static inline int check_run(const char *format, const char *suffix, const char *text, struct text *out) {
  char name[64], command[400];
  snprintf(name, sizeof name, "/tmp/red-test-XXXXXX%s", suffix);
  int file = mkstemps(name, (int)strlen(suffix));
  cr_assert(file >= 0);
  cr_assert(write(file, text, strlen(text)) == (ssize_t)strlen(text));
  close(file);
  snprintf(command, sizeof command, format, name);
  FILE *pipe = popen(command, "r");
  cr_assert(pipe);
  char buffer[512];
  text_puts(out, "");
  while (fgets(buffer, sizeof buffer, pipe)) text_puts(out, buffer);
  int status = pclose(pipe);
  unlink(name);
  return status;
}

// Assembles PTX where ptxas is at hand; a warning fails too.
static inline void check_assembles(const char *ptx, const char *target) {
  static int has_ptxas = -1;
  if (has_ptxas < 0) has_ptxas = check_tool("ptxas");
  if (!has_ptxas) {
    fprintf(stderr, "ptxas was not found: PTX is not assembled\n");
    return;
  }
  char command[200];
  snprintf(command, sizeof command, "ptxas -Werror -arch=%s -o /dev/null %%s 2>&1", target);
  struct text out = {0};
  int status = check_run(command, ".ptx", ptx, &out);
  cr_assert(status == 0, "ptxas for %s: %s", target, out.data);
  text_free(&out);
}

// Compiles CUDA to PTX where nvcc is at hand; a warning fails too.
static inline void check_compiles(const char *cuda, const char *target) {
  static int has_nvcc = -1;
  if (has_nvcc < 0) has_nvcc = check_tool("nvcc");
  if (!has_nvcc) {
    fprintf(stderr, "nvcc was not found: CUDA is not compiled\n");
    return;
  }
  char command[200];
  snprintf(command, sizeof command, "nvcc -Werror all-warnings -arch=%s -ptx -o /dev/null %%s 2>&1", target);
  struct text out = {0};
  int status = check_run(command, ".cu", cuda, &out);
  cr_assert(status == 0, "nvcc for %s: %s", target, out.data);
  text_free(&out);
}

#endif
