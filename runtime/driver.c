#include "runtime/driver.h"

#include "runtime/plan.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct driver functions;
static const char *failure; // NULL: functions are loaded and the driver runs
static char failure_text[512];

static void load(void) {
  const char *name = getenv("RED_LIBCUDA");
  if (!name || !*name) name = "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(failure_text, sizeof failure_text, "no CUDA driver: %s", dlerror());
    failure = failure_text;
    return;
  }
  static const struct {
    const char *symbol;
    size_t place;
    int is_optional;
  } table[] = {
#define X(member, symbol, parameters) {symbol, offsetof(struct driver, member), 0},
      DRIVER_FUNCTIONS(X)
#undef X
#define X(member, symbol, parameters) {symbol, offsetof(struct driver, member), 1},
      DRIVER_OPTIONAL(X)
#undef X
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    void *found = dlsym(library, table[i].symbol);
    if (!found && table[i].is_optional) continue;
    if (!found) {
      snprintf(failure_text, sizeof failure_text, "%s has no function %s: the CUDA driver is too old", name, table[i].symbol);
      failure = failure_text;
      return;
    }
    memcpy((char *)&functions + table[i].place, &found, sizeof found);
  }
  cu_result error = functions.init(0);
  if (error) {
    driver_error_text(&functions, "cuInit", error, failure_text, sizeof failure_text);
    failure = failure_text;
  }
}

const struct driver *driver_open(const char **why) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  *why = failure;
  return failure ? NULL : &functions;
}

void driver_error_text(const struct driver *driver, const char *call, cu_result error, char *text, size_t bytes) {
  const char *name = NULL, *string = NULL;
  int version = 0;
  if (driver->error_name(error, &name) || !name) name = "unknown error";
  if (driver->error_string(error, &string) || !string) string = "";
  size_t length = (size_t)snprintf(text, bytes, "%s: %s (%d): %s", call, name, error, string);
  if (length >= bytes || driver->driver_version(&version)) return;
  int major = version / 1000, minor = version % 1000 / 10;
  if (error == CU_ERROR_NO_BINARY_FOR_GPU)
    snprintf(text + length, bytes - length, "; the code is for another GPU than this one (driver for CUDA %d.%d)", major, minor);
  if (error == CU_ERROR_INVALID_PTX || error == CU_ERROR_UNSUPPORTED_PTX_VERSION)
    snprintf(text + length, bytes - length, "; the driver, for CUDA %d.%d, does not take this PTX: its first lines name the version that it needs", major, minor);
}

cu_result driver_start(const struct driver *driver, cu_function function, const struct driver_shape *shape, cu_stream stream, void **parameters) {
  const uint32_t *grid = shape->grid, *block = shape->block;
  if (!shape->is_programmatic || !driver->launch_ex)
    return driver->launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shape->shared, stream, parameters, NULL);
  struct cu_launch_attribute attribute = {.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.is_allowed = 1}};
  struct cu_launch_config config = {
      .grid = {grid[0], grid[1], grid[2]}, .block = {block[0], block[1], block[2]}, .shared = shape->shared, .stream = stream, .attributes = &attribute, .attribute_count = 1};
  return driver->launch_ex(&config, function, parameters, NULL);
}

cu_result driver_launch(const struct driver *driver, cu_function function, const struct plan_launch_value *value, cu_stream stream, void **parameters) {
  const struct plan_launch *launch = value->launch;
  struct driver_shape shape = {{value->grid[0], value->grid[1], value->grid[2]}, {launch->block[0], launch->block[1], launch->block[2]}, value->shared, launch->is_programmatic};
  return driver_start(driver, function, &shape, stream, parameters);
}
