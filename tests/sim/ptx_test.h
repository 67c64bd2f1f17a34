// Runs the annotated kernels of tests/sim/ptx. In a kernel's text
//   //@ launch grid X block X [shared N] [steps N]
//   //@ arg TYPE[N]=unwritten|zero|iota|ones   or   TYPE=VALUE
//   //@ result ARG INDEX VALUE                 a 32-bit word after the run
//   //@ find KIND                              a finding of this kind, on one of the lines that allow it
//   ... //! KIND KIND                          findings that this line must have
//   ... //? KIND KIND                          findings that it may have, as the order of threads has it
// say how to run it and what must come out: these findings and no others.
#ifndef RED_TESTS_SIM_PTX_TEST_H
#define RED_TESTS_SIM_PTX_TEST_H

#include "runtime/sim/sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct ptx_test {
  char *text;
  size_t length;
  struct sim_module *module;
  struct sim_memory *memory;
  struct sim_launch launch;
  struct sim_options options;
  unsigned char parameters[512];
  uint64_t address[16];
  uint64_t words[16];
  int arguments;
};

static inline char *ptx_test_load(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  cr_assert(file, "cannot read %s", path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*length + 1);
  cr_assert(fread(text, 1, *length, file) == *length);
  text[*length] = 0;
  fclose(file);
  return text;
}

// A launch with one block of 32 threads of the entry k, unless the annotations say otherwise.
static inline void ptx_test_annotation(struct ptx_test *test, const char *line) {
  unsigned value;
  char word[32];
  int used;
  if (sscanf(line, "//@ launch%n", &used) == 0 && strncmp(line, "//@ launch", 10) == 0) {
    const char *at = line + 10;
    while (sscanf(at, " %31s %u%n", word, &value, &used) == 2) {
      if (strcmp(word, "grid") == 0) test->launch.grid[0] = value;
      if (strcmp(word, "block") == 0) test->launch.block[0] = value;
      if (strcmp(word, "shared") == 0) test->launch.dynamic_shared = value;
      if (strcmp(word, "steps") == 0) test->options.max_steps = value;
      at += used;
      if (*at == '\n') break;
    }
  } else if (strncmp(line, "//@ arg ", 8) == 0) {
    int number = test->arguments++;
    const struct sim_parameter *parameter = &test->launch.entry->parameters[number];
    char type[8], how[32];
    if (sscanf(line + 8, "%3[a-z0-9][%u]=%31[a-z]", type, &value, how) == 3) {
      bool is_written = strcmp(how, "unwritten") != 0;
      char name[8];
      snprintf(name, sizeof name, "arg%d", number);
      uint64_t address = sim_alloc(test->memory, 4ull * value, name, is_written);
      cr_assert(address);
      test->address[number] = address;
      test->words[number] = value;
      uint32_t *words = sim_host(test->memory, address, 4ull * value);
      for (unsigned i = 0; i < value; i++) {
        float one = 1;
        if (strcmp(how, "iota") == 0) words[i] = i;
        if (strcmp(how, "ones") == 0) memcpy(&words[i], &one, 4);
      }
      memcpy(test->parameters + parameter->offset, &address, 8);
    } else {
      long long number_value;
      cr_assert(sscanf(line + 8, "%7[a-z0-9]=%lli", type, &number_value) == 2, "bad annotation: %.60s", line);
      memcpy(test->parameters + parameter->offset, &number_value, parameter->size);
    }
  }
}

static inline void ptx_test_open(struct ptx_test *test, const char *path) {
  memset(test, 0, sizeof *test);
  test->text = ptx_test_load(path, &test->length);
  struct sim_error error;
  test->module = sim_module_parse(test->text, test->length, path, &error);
  cr_assert(test->module, "%s:%d:%d: %s", path, error.line, error.column, error.message);
  test->memory = sim_memory_create();
  test->launch.entry = sim_module_find(test->module, "k");
  cr_assert(test->launch.entry);
  for (int i = 0; i < 3; i++) test->launch.grid[i] = test->launch.block[i] = 1;
  test->launch.block[0] = 32;
  test->launch.parameters = test->parameters;
  test->launch.parameter_bytes = sizeof test->parameters;
  for (const char *line = test->text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncmp(line, "//@", 3) == 0) ptx_test_annotation(test, line);
  }
}

static inline void ptx_test_close(struct ptx_test *test) {
  sim_memory_destroy(test->memory);
  sim_module_destroy(test->module);
  free(test->text);
}

// The next word of a list that ends with its line; false at the end.
static inline bool ptx_test_word(const char **at, char *word) {
  while (**at == ' ') (*at)++;
  size_t length = strcspn(*at, " \n");
  if (length == 0 || length >= 32) return false;
  memcpy(word, *at, length);
  word[length] = 0;
  *at += length;
  return true;
}

static inline const char *ptx_test_line(const char *text, int wanted) {
  for (int number = 1; number < wanted && text; number++)
    text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
  return text;
}

// Whether the line's list that `mark` begins names the kind.
static inline bool ptx_test_names(const char *line, const char *mark, const char *kind) {
  const char *at = line ? strstr(line, mark) : NULL, *end = line ? strchr(line, '\n') : NULL;
  if (!at || (end && at > end)) return false;
  char word[32];
  for (at += 3; ptx_test_word(&at, word);) {
    if (strcmp(word, kind) == 0) return true;
  }
  return false;
}

// Every finding is allowed where it is, and every finding that must be is there.
static inline void ptx_test_check_findings(const char *path, const char *text, unsigned long long seed,
                                           const struct sim_report *report) {
  for (size_t i = 0; i < report->finding_count; i++) {
    const struct sim_finding *finding = &report->findings[i];
    const char *line = ptx_test_line(text, finding->ptx_line), *kind = sim_kind_name(finding->kind);
    char print[1024];
    sim_finding_print(finding, print, sizeof print);
    cr_expect(ptx_test_names(line, "//!", kind) || ptx_test_names(line, "//?", kind),
              "seed %llu, not expected: %s", seed, print);
  }
  int number = 1;
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL, number++) {
    const char *at = strstr(line, "//!"), *end = strchr(line, '\n');
    bool is_anywhere = strncmp(line, "//@ find", 8) == 0;
    if (is_anywhere) at = line + 5;
    if (!at || (end && at > end)) continue;
    char word[32];
    for (at += 3; ptx_test_word(&at, word);) {
      bool is_found = false;
      for (size_t i = 0; i < report->finding_count; i++) {
        is_found |= (is_anywhere || report->findings[i].ptx_line == number) &&
                    strcmp(sim_kind_name(report->findings[i].kind), word) == 0;
      }
      cr_expect(is_found, "%s:%d, seed %llu: no finding %s", path, number, seed, word);
    }
  }
}

static inline void ptx_test_check_results(struct ptx_test *test, const char *path) {
  for (const char *line = test->text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    int argument;
    unsigned index;
    long long value;
    if (sscanf(line, "//@ result %d %u %lli", &argument, &index, &value) != 3) continue;
    uint32_t word = 0;
    cr_assert(sim_read(test->memory, test->address[argument] + 4ull * index, &word, 4));
    cr_expect(word == (uint32_t)value, "%s: word %u of argument %d is %u, not %lld", path, index, argument,
              word, value);
  }
}

// Runs a file with a seed and a number of jobs, and compares everything.
static inline void ptx_test_run(const char *path, uint64_t seed, uint32_t jobs) {
  struct ptx_test test;
  ptx_test_open(&test, path);
  test.options.seed = seed;
  test.options.jobs = jobs;
  struct sim_report report;
  enum sim_result result = sim_launch(test.module, test.memory, &test.launch, &test.options, &report);
  cr_expect(result != SIM_REFUSED, "%s: %s", path, report.error);
  ptx_test_check_findings(path, test.text, seed, &report);
  ptx_test_check_results(&test, path);
  sim_report_free(&report);
  ptx_test_close(&test);
}

#endif
