// The last error of each thread, behind red_message and red_place.
#ifndef RED_RUNTIME_ERROR_H
#define RED_RUNTIME_ERROR_H

#include "runtime/red.h"

#include <stddef.h>

// Keeps the message for the calling thread, cut to what fits, and returns `error`.
red_error error_set(red_error error, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The same for a failed call of the driver: `text` as driver_error_text wrote it.
red_error error_set_driver(int code, const char *text);
// The same with a place in a text: file (may be NULL: no place), line and column from 1.
red_error error_set_place(red_error error, const char *message, const char *file, int line, int column);
red_error error_memory(void); // RED_ERROR_MEMORY, of the host

#endif
