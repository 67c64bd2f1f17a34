#include "tests/fake/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PLANNED = 32 };

struct fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .device_count = 1,
                          .arch = 90,
                          .multiprocessors = 132,
                          .driver_version = 12080,
                          .next_id = 10};
_Thread_local struct cu_context_opaque *fake_current;

static pid_t initialised; // the process that called cuInit
static struct {
  char call[64];
  unsigned nth; // 0: each call
  cu_result error;
} planned[MAX_PLANNED];
static unsigned planned_count;
static FILE *log_file;
static char *log_text, *findings;
static size_t log_length, findings_length;

static void append(char **text, size_t *length, const char *more) {
  size_t added = strlen(more);
  char *grown = realloc(*text, *length + added + 2);
  if (!grown) abort();
  memcpy(grown + *length, more, added);
  memcpy(grown + *length + added, "\n", 2);
  *text = grown;
  *length += added + 1;
}

static void plan(const char *call, unsigned nth, cu_result error) {
  if (planned_count == MAX_PLANNED) abort();
  snprintf(planned[planned_count].call, sizeof planned->call, "%s", call);
  planned[planned_count].nth = nth;
  planned[planned_count++].error = error;
}

static bool set(const char *name, int value) {
  int *place = strcmp(name, "devices") == 0  ? &fake.device_count
               : strcmp(name, "arch") == 0   ? &fake.arch
               : strcmp(name, "sms") == 0    ? &fake.multiprocessors
               : strcmp(name, "driver") == 0 ? &fake.driver_version
                                             : NULL;
  if (place) *place = value;
  return place != NULL;
}

// Reads FAKE_CUDA, before the first call is answered.
static void configure(void) {
  const char *words = getenv("FAKE_CUDA");
  char copy[1024], *save = NULL;
  snprintf(copy, sizeof copy, "%s", words ? words : "");
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    char *value = strchr(word, '='), call[64];
    int error;
    unsigned nth = 1;
    if (!value) abort();
    *value++ = 0;
    if (strcmp(word, "log") == 0) {
      log_file = fopen(value, "a");
    } else if (strcmp(word, "fail") == 0) {
      if (sscanf(value, "%63[^:]:%d:%u", call, &error, &nth) < 2) abort();
      plan(call, nth, error);
    } else if (!set(word, atoi(value))) {
      fprintf(stderr, "FAKE_CUDA: '%s' is unknown\n", word);
      abort();
    }
  }
}

static void configure_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, configure);
}

void fake_initialise(void) {
  initialised = getpid();
  if (!fake.memory) fake.memory = sim_memory_create();
}

static cu_result planned_error(const char *call) {
  for (unsigned i = 0; i < planned_count; i++) {
    if (strcmp(planned[i].call, call) != 0) continue;
    if (planned[i].nth == 0) return planned[i].error;
    if (--planned[i].nth == 0) {
      cu_result error = planned[i].error;
      planned[i] = planned[--planned_count];
      return error;
    }
  }
  return 0;
}

cu_result fake_enter(const char *call, enum fake_needs needs) {
  configure_once();
  pthread_mutex_lock(&fake.lock);
  append(&log_text, &log_length, call);
  if (log_file) {
    fprintf(log_file, "%s\n", call);
    fflush(log_file);
  }
  cu_result error = planned_error(call);
  if (!error && needs != NEEDS_NOTHING && initialised != getpid()) error = FAKE_NOT_INITIALIZED;
  if (!error && needs == NEEDS_CONTEXT && (!fake_current || !fake_current->is_alive))
    error = FAKE_INVALID_CONTEXT;
  if (!error && needs == NEEDS_CONTEXT) error = fake_current->sticky;
  if (error) pthread_mutex_unlock(&fake.lock);
  return error;
}

cu_result fake_leave(cu_result error) {
  pthread_mutex_unlock(&fake.lock);
  return error;
}

void fake_keep_findings(const struct sim_report *report) {
  char line[1024];
  for (size_t i = 0; i < report->finding_count; i++) {
    sim_finding_print(&report->findings[i], line, sizeof line);
    append(&findings, &findings_length, line);
  }
  if (report->error[0]) append(&findings, &findings_length, report->error);
}

void fake_fail(const char *call, unsigned nth, cu_result error) {
  configure_once();
  pthread_mutex_lock(&fake.lock);
  plan(call, nth, error);
  pthread_mutex_unlock(&fake.lock);
}

unsigned fake_count(const char *call) {
  unsigned count = 0;
  size_t length = call ? strlen(call) : 0;
  pthread_mutex_lock(&fake.lock);
  for (const char *at = log_text ? log_text : ""; *at; at = strchr(at, '\n') + 1)
    count += !call || (strncmp(at, call, length) == 0 && at[length] == '\n');
  pthread_mutex_unlock(&fake.lock);
  return count;
}

static const char *copy_of(const char *text) {
  static char *copy;
  pthread_mutex_lock(&fake.lock);
  free(copy);
  copy = strdup(text ? text : "");
  pthread_mutex_unlock(&fake.lock);
  return copy;
}

const char *fake_log(void) {
  return copy_of(log_text);
}

const char *fake_findings(void) {
  return copy_of(findings);
}

void fake_clear(void) {
  pthread_mutex_lock(&fake.lock);
  free(log_text);
  log_text = NULL;
  log_length = 0;
  planned_count = 0;
  pthread_mutex_unlock(&fake.lock);
}

struct fake_live fake_live(void) {
  pthread_mutex_lock(&fake.lock);
  struct fake_live live = fake.live;
  pthread_mutex_unlock(&fake.lock);
  return live;
}

void fake_set(const char *name, int value) {
  configure_once();
  if (!set(name, value)) abort();
}
