#define RED_BUILDING
#include "runtime/error.h"

#include "red_version.h"
#include "runtime/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 16384, FILE_BYTES = 512 };

// One a thread, of fixed size: a failure needs no memory, and a thread that ends leaves nothing behind.
struct last_error {
  char message[MESSAGE_BYTES], file[FILE_BYTES];
  int driver, line, column;
};
static _Thread_local struct last_error last;

static void set(int driver, const char *file, int line, int column) {
  last.driver = driver;
  snprintf(last.file, sizeof last.file, "%s", file ? file : "");
  last.line = file ? line : 0;
  last.column = file ? column : 0;
}

red_error error_set(red_error error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last.message, sizeof last.message, format, arguments);
  va_end(arguments);
  set(0, NULL, 0, 0);
  return error;
}

red_error error_set_driver(int code, const char *text) {
  error_set(RED_ERROR_DRIVER, "%s", text);
  last.driver = code;
  return code == CU_ERROR_OUT_OF_MEMORY ? RED_ERROR_MEMORY : RED_ERROR_DRIVER;
}

red_error error_set_place(red_error error, const char *message, const char *file, int line, int column) {
  error_set(error, "%s", message);
  set(0, file, line, column);
  return error;
}

red_error error_memory(void) {
  return error_set(RED_ERROR_MEMORY, "there is no host memory left");
}

static const struct error_row {
  int number;
  const char *name, *text;
} table[] = {
    {0, "RED_OK", "all went well"},
#define X(name, number, text) {number, "RED_ERROR_" #name, text},
    RED_ERRORS(X)
#undef X
};

static const struct error_row *find(red_error error) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].number == (int)error) return &table[i];
  return NULL;
}

const char *red_error_name(red_error error) {
  const struct error_row *row = find(error);
  return row ? row->name : "RED_ERROR_?";
}

const char *red_error_text(red_error error) {
  const struct error_row *row = find(error);
  return row ? row->text : "unknown error";
}

const char *red_message(void) {
  return last.message;
}

int red_driver_error(void) {
  return last.driver;
}

int red_place(const char **file, int *line, int *column) {
  if (file) *file = last.file;
  if (line) *line = last.line;
  if (column) *column = last.column;
  return last.line > 0;
}

const char *red_version(void) {
  return RED_VERSION;
}
