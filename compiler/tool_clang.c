#include "compiler/tool_clang.h"

#include "compiler/tool.h"
#include "red_clang.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char PROGRAM[] = "redc-clang";

// The folder of the running program, or NULL.
static const char *own_folder(struct arena *arena) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  while (length > 0 && path[length - 1] != '/') length--;
  return length > 0 && (size_t)length < sizeof path ? arena_strndup(arena, path, (size_t)length - 1) : NULL;
}

const char *tool_clang_find(struct diag *diag, const char *command) {
  const char *folder = own_folder(diag->arena), *path = NULL;
  static const char *const places[] = {"", "/../libexec/red"};
  for (size_t i = 0; folder && i < sizeof places / sizeof *places; i++) {
    path = arena_printf(diag->arena, "%s%s/%s", folder, places[i], PROGRAM);
    if (access(path, X_OK) == 0) return path;
  }
  path = tool_find(diag->arena, PROGRAM);
  if (path) return path;
  static const struct range nowhere;
  diag_error(diag, ERROR_TOOL, nowhere, "%s needs %s, which is neither beside redc nor in PATH", command, PROGRAM);
  diag_note(diag, nowhere, "it is built with redc where Clang is found: install %s, then configure and build anew",
            RED_CLANG_PACKAGES);
  return NULL;
}

// Reads the pipe until its other end is closed.
static void drain(int fd, struct text *out) {
  char buffer[4096];
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    text_append(out, buffer, (size_t)got);
  }
}

int tool_clang_run(struct diag *diag, char *const *arguments, struct text *out) {
  static const struct range nowhere;
  int ends[2] = {-1, -1}, status = 0;
  pid_t child;
  int error = out && pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
  if (!error) error = tool_start(arguments, -1, ends[1], -1, &child);
  if (ends[1] >= 0) close(ends[1]);
  if (!error && out) drain(ends[0], out);
  if (ends[0] >= 0) close(ends[0]);
  while (!error && waitpid(child, &status, 0) < 0)
    if (errno != EINTR) error = errno;
  if (error) {
    diag_error(diag, ERROR_TOOL, nowhere, "cannot run '%s': %s", arguments[0], strerror(error));
    return -1;
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  diag_internal(diag, PROGRAM, nowhere, "'%s' ended by signal %d", arguments[0], WTERMSIG(status));
  return -1;
}
