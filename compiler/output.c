#include "compiler/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_write_all(int fd, const char *data, size_t length) {
  while (length) {
    ssize_t put = write(fd, data, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    if (put == 0) return ENOSPC;
    data += put;
    length -= (size_t)put;
  }
  return 0;
}

// Opens a new file in the folder of `path`, with the permissions of the umask. `name` gets its path. Returns
// the descriptor, or -1 with errno. The name is short, so that it is legal wherever that of `path` is.
static int open_beside(struct arena *arena, const char *path, const char **name) {
  static atomic_uint counter; // several threads may write into one folder
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash + 1 - path) : 0;
  for (int attempt = 0; attempt < 100; attempt++) {
    *name = arena_printf(arena, "%.*s.redc-%ld-%u.tmp", folder, path, (long)getpid(),
                         atomic_fetch_add(&counter, 1));
    int fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// Writes a device or a pipe, or what a dangling link names. Returns 0, or the errno.
static int write_directly(const char *path, const char *data, size_t length) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return errno;
  int error = output_write_all(fd, data, length);
  if (close(fd) != 0 && !error) error = errno;
  return error;
}

// Writes beside and renames. `old`: the status of the file that exists, or NULL. Returns 0, or the errno.
static int write_beside(struct arena *arena, const char *path, const struct stat *old, const char *data,
                        size_t length) {
  if (old && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return errno;
  const char *temporary;
  int fd = open_beside(arena, path, &temporary);
  if (fd < 0) return errno;
  int error = output_write_all(fd, data, length);
  if (!error && old && fchmod(fd, old->st_mode & 0777) != 0) error = errno;
  if (close(fd) != 0 && !error) error = errno;
  if (!error && rename(temporary, path) != 0) error = errno;
  if (error) unlink(temporary);
  return error;
}

// The descriptor of this process that a path such as /dev/stdout or /dev/fd/3 names, or -1. Opening such a
// path would truncate the file behind it, and renaming would replace it under whoever else holds it.
static int named_descriptor(const char *path) {
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *digits = path + strlen(folders[i]);
    if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *digits &&
        strspn(digits, "0123456789") == strlen(digits) && strlen(digits) < 9)
      return atoi(digits);
  }
  return -1;
}

static int write_path(struct arena *arena, const char *path, const char *data, size_t length) {
  struct stat status;
  if (*path == 0) return ENOENT;
  int fd = named_descriptor(path);
  if (fd >= 0) return output_write_all(fd, data, length);
  if (stat(path, &status) == 0) {
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISREG(status.st_mode)) return write_directly(path, data, length);
    char *real = realpath(path, NULL); // through symbolic links, so that the link stays one
    if (!real) return errno;
    int error = write_beside(arena, real, &status, data, length);
    free(real);
    return error;
  }
  if (errno != ENOENT) return errno;
  if (lstat(path, &status) == 0) return write_directly(path, data, length); // a dangling link
  return write_beside(arena, path, NULL, data, length);
}

bool output_write(struct diag *diag, const char *path, const char *data, size_t length) {
  bool is_standard = strcmp(path, "-") == 0;
  int error = is_standard ? output_write_all(STDOUT_FILENO, data, length)
                          : write_path(diag->arena, path, data, length);
  if (!error) return true;
  if (!is_standard)
    diag_error(diag, ERROR_FILE, (struct range){0}, "cannot write '%s': %s", path, strerror(error));
  else if (error != EPIPE)
    diag_error(diag, ERROR_FILE, (struct range){0}, "cannot write standard output: %s", strerror(error));
  return false;
}

bool output_is_same_file(const char *path, const char *other) {
  struct stat a, b;
  return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
