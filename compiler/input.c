#include "compiler/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *input_name(const char *path) {
  return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

static bool read_all(struct diag *diag, const char *name, int fd, struct text *out) {
  static const struct range nowhere;
  char buffer[64 * 1024];
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      diag_error(diag, ERROR_FILE, nowhere, "cannot read '%s': %s", name, strerror(errno));
      return false;
    }
    if (out->length + (size_t)got > INPUT_MAX_BYTES) {
      diag_error(diag, ERROR_FILE, nowhere, "cannot read '%s': it has more than %d MiB", name,
                 INPUT_MAX_BYTES / (1024 * 1024));
      return false;
    }
    text_append(out, buffer, (size_t)got);
  }
}

bool input_read(struct diag *diag, const char *path, struct text *out) {
  if (strcmp(path, "-") == 0) return read_all(diag, input_name(path), STDIN_FILENO, out);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    diag_error(diag, ERROR_FILE, (struct range){0}, "cannot open '%s': %s", path, strerror(errno));
    return false;
  }
  bool ok = read_all(diag, path, fd, out);
  close(fd);
  return ok;
}

bool input_is_text(struct diag *diag, uint32_t file) {
  const struct source *source = list_at(&diag->sources, struct source, file);
  const char *zero = source->length ? memchr(source->text, 0, source->length) : NULL;
  if (!zero) return true;
  uint32_t line = 1;
  while (line < source->line_count && source->lines[line] <= zero) line++;
  uint32_t column = (uint32_t)(zero - source->lines[line - 1]) + 1;
  diag_error(diag, ERROR_CHARACTER, (struct range){line, column, line, column + 1, file},
             "byte 0x00: this is not a text file");
  return false;
}
