#include "compiler/tool.h"

#include "compiler/input.h"
#include "compiler/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAID_MAX_BYTES = 64 * 1024 };

extern char **environ;

static bool is_program(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

const char *tool_find(struct arena *arena, const char *name) {
  const char *folders = getenv("PATH");
  while (folders && *folders) {
    size_t length = strcspn(folders, ":");
    const char *path = length ? arena_printf(arena, "%.*s/%s", (int)length, folders, name) : name;
    if (is_program(path)) return path;
    folders += length + (folders[length] == ':');
  }
  static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
  for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
    const char *home = getenv(homes[i]);
    if (!home || !*home) continue;
    const char *path = arena_printf(arena, "%s/bin/%s", home, name);
    if (is_program(path)) return path;
  }
  return NULL;
}

int tool_start(char *const *arguments, int in, int out, int err, pid_t *child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t defaults;
  const int given[] = {in, out, err};
  int error = posix_spawn_file_actions_init(&actions);
  if (error) return error;
  error = posix_spawnattr_init(&attributes);
  if (error) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  error = posix_spawnattr_setsigdefault(&attributes, &defaults);
  if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  for (int i = 0; i < 3 && !error; i++)
    if (given[i] >= 0) error = posix_spawn_file_actions_adddup2(&actions, given[i], i);
  if (!error) error = posix_spawn(child, arguments[0], &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int tool_run(char *const *arguments, struct text *said) {
  int ends[2], status;
  pid_t child;
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0) return -1;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    close(nothing);
    return -1;
  }
  int error = tool_start(arguments, nothing, ends[1], ends[1], &child);
  close(nothing);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    errno = error;
    return -1;
  }
  char buffer[4096];
  for (;;) {
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size_t room = said->length < SAID_MAX_BYTES ? SAID_MAX_BYTES - said->length : 0;
    text_append(said, buffer, (size_t)got < room ? (size_t)got : room);
  }
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs ptxas on in.ptx in the folder; reports its failure.
static bool assemble(struct diag *diag, const struct compile_options *options, const char *ptxas,
                     const char *in, const char *out) {
  const char *arguments[16];
  uint32_t count = 0;
  arguments[count++] = ptxas;
  arguments[count++] = arena_printf(diag->arena, "-arch=%s", options->target->name);
  if (options->debug) {
    arguments[count++] = "-g"; // implies -O0
  } else {
    arguments[count++] = "-lineinfo";
    arguments[count++] = arena_printf(diag->arena, "-O%u", options->optimize);
  }
  arguments[count++] = "-o";
  arguments[count++] = out;
  arguments[count++] = in;
  arguments[count] = NULL;
  struct text said = {0};
  int status = tool_run((char *const *)arguments, &said);
  while (said.length && said.data[said.length - 1] == '\n') said.data[--said.length] = 0;
  if (status < 0) {
    diag_error(diag, ERROR_TOOL, (struct range){0}, "cannot run '%s': %s", ptxas, strerror(errno));
  } else if (status > 0) {
    diag_error(diag, ERROR_TOOL, (struct range){0}, "'%s' failed with status %d", ptxas, status);
    if (said.length) diag_note(diag, (struct range){0}, "it said: %s", said.data);
  }
  text_free(&said);
  return status == 0;
}

bool tool_ptxas(struct diag *diag, const struct compile_options *options, const struct text *ptx,
                struct text *cubin) {
  static const struct range nowhere;
  const char *ptxas = tool_find(diag->arena, "ptxas");
  if (!ptxas) {
    diag_error(diag, ERROR_TOOL, nowhere,
               "a cubin needs ptxas, which is neither in PATH nor in $CUDA_HOME/bin");
    diag_note(diag, nowhere, "PTX needs no tool: --emit=ptx; the driver assembles it when it loads it");
    return false;
  }
  const char *base = getenv("TMPDIR");
  if (!base || !*base) base = "/tmp";
  char *folder = arena_printf(diag->arena, "%s/redc-XXXXXX", base);
  if (!mkdtemp(folder)) {
    diag_error(diag, ERROR_FILE, nowhere, "cannot make a folder in '%s': %s", base, strerror(errno));
    return false;
  }
  const char *in = arena_printf(diag->arena, "%s/in.ptx", folder);
  const char *out = arena_printf(diag->arena, "%s/out.cubin", folder);
  bool ok = output_write(diag, in, ptx->data, ptx->length) && assemble(diag, options, ptxas, in, out) &&
            input_read(diag, out, cubin);
  unlink(in);
  unlink(out);
  rmdir(folder);
  return ok;
}
