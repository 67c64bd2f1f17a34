// A batch: each line of a file is the arguments of one run. Workers are processes, forked before any device is opened: a case that
// crashes, hangs or breaks its device takes one worker with it, and another one goes on. A worker writes what a case says to a file of
// its own, which the parent reads between two cases; the two exchange the number of a case and its status through a socket.
#include "compiler/run_batch.h"

#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "compiler/run_options.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORKERS = 256, DEFAULT_TIMEOUT = 600, STATUS_TIMED_OUT = 124, STATUS_SIGNAL = 128 };

static const struct range nowhere;

struct batch_line {
  uint32_t number; // in the file, from 1
  struct list arguments; // char *, NULL at the end
  bool is_done;
  int status;
  struct text said;
};

struct worker {
  pid_t process; // 0: not running
  int socket;    // the parent's end
  FILE *said;    // what the case at hand writes to standard output and standard error
  struct batch_line *line; // NULL: idle
  double deadline;
};

struct batch {
  struct compilation c; // diagnostics of the batch's own, and the arena
  const char *path;
  uint32_t jobs, timeout; // timeout: seconds a case
  struct list common;     // char *: arguments of every case
  struct list lines;      // struct batch_line
  uint32_t next, printed, failed;
  struct worker workers[MAX_WORKERS];
  batch_case *run_case;
};

struct answer {
  int32_t status;
  bool is_lost;
};

bool batch_is_asked(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--batch") == 0 || strncmp(argv[i], "--batch=", 8) == 0) return true;
  return false;
}

// --- Command line and file --------------------------------------------------------------------------------------------

static bool parse_command_line(struct batch *batch, int argc, char **argv) {
  struct compilation *c = &batch->c;
  const char *value;
  int64_t number;
  for (int at = 1; at < argc;) {
    if (run_take_value(c, "--batch", argc, argv, &at, &value)) {
      if (value && batch->path) diag_error(&c->diag, ERROR_USAGE, nowhere, "--batch is given twice");
      batch->path = value;
    } else if (run_take_value(c, "--jobs", argc, argv, &at, &value)) {
      if (value && run_parse_integer(c, "--jobs", value, 1, MAX_WORKERS, &number)) batch->jobs = (uint32_t)number;
    } else if (run_take_value(c, "--timeout", argc, argv, &at, &value)) {
      if (value && run_parse_integer(c, "--timeout", value, 1, 1000000, &number)) batch->timeout = (uint32_t)number;
    } else {
      list_push(&c->arena, &batch->common, argv[at++]);
    }
  }
  return !c->diag.error_count;
}

static bool add_line(struct batch *batch, char *name, uint32_t number, const char *text, size_t length) {
  struct compilation *c = &batch->c;
  struct batch_line *line = arena_new(&c->arena, struct batch_line);
  line->number = number;
  list_push(&c->arena, &line->arguments, name);
  for (uint32_t i = 0; i < batch->common.count; i++) list_push(&c->arena, &line->arguments, batch->common.at[i]);
  uint32_t before = line->arguments.count;
  options_split(&c->arena, text, length, &line->arguments);
  if (line->arguments.count == before || *list_at(&line->arguments, char, before) == '#') return true;
  list_push(&c->arena, &line->arguments, NULL);
  list_push(&c->arena, &batch->lines, line);
  return true;
}

static bool read_lines(struct batch *batch, char *name) {
  struct text text = {0};
  bool ok = input_read(&batch->c.diag, batch->path, &text);
  if (ok && text.length && memchr(text.data, 0, text.length)) {
    diag_error(&batch->c.diag, ERROR_USAGE, nowhere, "batch '%s' is not text", batch->path);
    ok = false;
  }
  const char *at = text.data;
  for (uint32_t number = 1; ok && at && at < text.data + text.length; number++) {
    size_t left = (size_t)(text.data + text.length - at), length = 0;
    while (length < left && at[length] != '\n') length++;
    ok = add_line(batch, name, number, at, length);
    at += length + (length < left);
  }
  text_free(&text);
  return ok;
}

// --- Workers ----------------------------------------------------------------------------------------------------------

static void transfer(int socket, void *data, size_t bytes, bool sends, bool *ok) {
  char *at = data;
  while (bytes && *ok) {
    ssize_t moved = sends ? send(socket, at, bytes, MSG_NOSIGNAL) : recv(socket, at, bytes, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) *ok = false;
    if (moved > 0) at += moved, bytes -= (size_t)moved;
  }
}

// What counts covered lines, where this is built with it: neither _exit nor a signal writes the counts.
void __gcov_dump(void) __attribute__((weak));
void __gcov_reset(void) __attribute__((weak));

static _Noreturn void work(struct batch *batch, int socket) {
  struct batch_session session = {0};
  uint32_t index;
  for (bool ok = true; ok;) {
    transfer(socket, &index, sizeof index, false, &ok);
    if (!ok) break;
    struct batch_line *line = batch->lines.at[index];
    struct answer answer;
    memset(&answer, 0, sizeof answer);
    answer.status = batch->run_case((int)line->arguments.count - 1, (char **)line->arguments.at, &session);
    fflush(NULL);
    if (__gcov_dump && __gcov_reset) __gcov_dump(), __gcov_reset();
    answer.is_lost = session.is_lost;
    transfer(socket, &answer, sizeof answer, true, &ok);
    if (session.is_lost) break;
  }
  _exit(0);
}

static bool start_worker(struct batch *batch, struct worker *worker) {
  int ends[2];
  if (!worker->said) worker->said = tmpfile();
  if (!worker->said || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    diag_error(&batch->c.diag, ERROR_FILE, nowhere, "cannot start a worker: %s", strerror(errno));
    return false;
  }
  fflush(NULL);
  pid_t process = fork();
  if (process == 0) {
    int null = freopen("/dev/null", "r", stdin) ? 0 : -1;
    (void)null;
    for (uint32_t i = 0; i < MAX_WORKERS; i++)
      if (batch->workers[i].process) close(batch->workers[i].socket);
    close(ends[0]);
    dup2(fileno(worker->said), STDOUT_FILENO);
    dup2(fileno(worker->said), STDERR_FILENO);
    work(batch, ends[1]);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    diag_error(&batch->c.diag, ERROR_FILE, nowhere, "cannot start a worker: %s", strerror(errno));
    return false;
  }
  worker->process = process;
  worker->socket = ends[0];
  return true;
}

// Ends a worker; returns what it would have ended with: its exit status, or 128 and the signal.
static int stop_worker(struct worker *worker, bool kills) {
  int status = 0;
  if (kills) kill(worker->process, SIGKILL);
  close(worker->socket);
  while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR) continue;
  worker->process = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_SIGNAL + WTERMSIG(status);
}

// Takes the text that the worker wrote since the last call.
static void take_said(struct worker *worker, struct text *said) {
  char buffer[4096];
  int file = fileno(worker->said);
  lseek(file, 0, SEEK_SET);
  for (;;) {
    ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text_append(said, buffer, (size_t)got);
  }
  if (ftruncate(file, 0) == 0) lseek(file, 0, SEEK_SET); // both processes share the place in the file
}

// --- The run ----------------------------------------------------------------------------------------------------------

// Prints what is done, in the order of the file.
static bool print_done(struct batch *batch) {
  struct text out = {0};
  for (; batch->printed < batch->lines.count && list_at(&batch->lines, struct batch_line, batch->printed)->is_done; batch->printed++) {
    struct batch_line *line = batch->lines.at[batch->printed];
    if (line->status == 0) text_printf(&out, "%" PRIu32 ": ok\n", line->number);
    else if (line->status == STATUS_TIMED_OUT) text_printf(&out, "%" PRIu32 ": no end after %" PRIu32 " s\n", line->number, batch->timeout);
    else if (line->status > STATUS_SIGNAL) text_printf(&out, "%" PRIu32 ": ended by signal %d\n", line->number, line->status - STATUS_SIGNAL);
    else text_printf(&out, "%" PRIu32 ": exit status %d\n", line->number, line->status);
    for (size_t at = 0; at < line->said.length;) {
      size_t length = 0;
      while (at + length < line->said.length && line->said.data[at + length] != '\n') length++;
      text_puts(&out, "  ");
      text_append(&out, line->said.data + at, length);
      text_puts(&out, "\n");
      at += length + 1;
    }
    batch->failed += line->status != 0;
    text_free(&line->said);
    line->said = (struct text){0};
  }
  bool ok = !out.length || output_write(&batch->c.diag, "-", out.data, out.length);
  text_free(&out);
  return ok;
}

static void finish(struct worker *worker, int status) {
  take_said(worker, &worker->line->said);
  worker->line->status = status;
  worker->line->is_done = true;
  worker->line = NULL;
}

// Gives an idle worker the next case, started anew where it ended.
static bool give_work(struct batch *batch, struct worker *worker) {
  if (worker->line || batch->next == batch->lines.count) return true;
  if (!worker->process && !start_worker(batch, worker)) return false;
  uint32_t index = batch->next++;
  bool sent = true;
  worker->line = batch->lines.at[index];
  worker->deadline = pipeline_now() + batch->timeout;
  transfer(worker->socket, &index, sizeof index, true, &sent); // where that fails, the worker ended: its socket says so
  return true;
}

static void take_answer(struct worker *worker) {
  struct answer answer;
  bool ok = true;
  transfer(worker->socket, &answer, sizeof answer, false, &ok);
  if (!ok) {
    int status = stop_worker(worker, false);
    finish(worker, status ? status : EXIT_INTERNAL);
  } else {
    finish(worker, answer.status);
    if (answer.is_lost) stop_worker(worker, false);
  }
}

// Waits until some worker answers or its time is over.
static bool wait_for_answers(struct batch *batch) {
  struct pollfd polls[MAX_WORKERS];
  struct worker *waiting[MAX_WORKERS];
  nfds_t count = 0;
  double now = pipeline_now(), soonest = 1e300;
  for (uint32_t i = 0; i < batch->jobs; i++) {
    struct worker *worker = &batch->workers[i];
    if (!worker->line) continue;
    if (worker->deadline < soonest) soonest = worker->deadline;
    waiting[count] = worker;
    polls[count++] = (struct pollfd){.fd = worker->socket, .events = POLLIN};
  }
  if (!count) return false;
  double seconds = soonest > now ? soonest - now : 0;
  if (poll(polls, count, (int)(1000 * (seconds < 1000 ? seconds : 1000)) + 1) < 0) return errno == EINTR;
  now = pipeline_now();
  for (nfds_t i = 0; i < count; i++) {
    if (polls[i].revents) {
      take_answer(waiting[i]);
    } else if (waiting[i]->deadline <= now) {
      stop_worker(waiting[i], true);
      finish(waiting[i], STATUS_TIMED_OUT);
    }
  }
  return true;
}

static bool run_lines(struct batch *batch) {
  bool ok = true;
  do {
    for (uint32_t i = 0; ok && i < batch->jobs; i++) ok = give_work(batch, &batch->workers[i]);
    ok = ok && print_done(batch);
  } while (ok && wait_for_answers(batch));
  for (uint32_t i = 0; i < batch->jobs; i++) {
    struct worker *worker = &batch->workers[i];
    if (worker->process) stop_worker(worker, !ok);
    if (worker->said) fclose(worker->said);
  }
  return ok;
}

int batch_run(int argc, char **argv, batch_case *run_case) {
  struct batch *batch = calloc(1, sizeof *batch);
  struct options printing;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (!batch) return EXIT_USER;
  compilation_init(&batch->c);
  options_init(&printing, &batch->c);
  batch->run_case = run_case;
  batch->jobs = processors < 1 ? 1 : processors > MAX_WORKERS ? MAX_WORKERS : (uint32_t)processors;
  batch->timeout = DEFAULT_TIMEOUT;
  bool ok = parse_command_line(batch, argc, argv) && read_lines(batch, argv[0]) && run_lines(batch);
  if (ok) {
    struct text out = {0};
    text_printf(&out, "%" PRIu32 " passed, %" PRIu32 " failed\n", batch->lines.count - batch->failed, batch->failed);
    ok = output_write(&batch->c.diag, "-", out.data, out.length) && !batch->failed;
    text_free(&out);
  }
  for (uint32_t i = 0; i < batch->lines.count; i++) text_free(&list_at(&batch->lines, struct batch_line, i)->said);
  int status = run_status(&batch->c, ok);
  driver_print_diagnostics(&printing);
  compilation_destroy(&batch->c);
  free(batch);
  return status;
}
