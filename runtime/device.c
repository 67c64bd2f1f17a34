// Opening and closing devices, and what users may do with one.
#define RED_BUILDING
#include "runtime/device.h"

#include "runtime/common.h"
#include "runtime/image.h"
#include "runtime/variant.h"
#include "runtime/workspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- fork

static atomic_uint fork_generation;

static void after_fork(void) {
  atomic_fetch_add(&fork_generation, 1);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, after_fork);
}

red_error device_check(const struct red_device *device) {
  if (!device) return error_set(RED_ERROR_INVALID, "the device is NULL");
  if (device->fork_generation != atomic_load_explicit(&fork_generation, memory_order_relaxed))
    return error_set(RED_ERROR_FORKED, "%s was opened before fork(); the child process cannot use it", device->name);
  return RED_OK;
}

// ---- Opening

void (*device_opens)(bool is_open);

// The number behind "cuda:"; -1: it is none.
static int parse_ordinal(const char *text) {
  if (!*text || strlen(text) > 4 || text[strspn(text, "0123456789")]) return -1;
  return atoi(text);
}

static red_error open_named(struct red_device *device, const char *name) {
  static const char HINT[] = "\"auto\", \"cuda\", \"cuda:N\", \"sim\" or \"sim:sm_NN\"";
  if (!name || strcmp(name, "auto") == 0) {
    const char *chosen = getenv("RED_DEVICE");
    if (chosen && *chosen && strcmp(chosen, "auto") != 0) return open_named(device, chosen);
    red_error error = device_cuda_open(device, -1);
    return error == RED_ERROR_NO_DRIVER || error == RED_ERROR_NO_DEVICE ? device_sim_open(device, NULL) : error;
  }
  if (strcmp(name, "sim") == 0) return device_sim_open(device, NULL);
  if (strncmp(name, "sim:", 4) == 0) return device_sim_open(device, name + 4);
  if (strcmp(name, "cuda") == 0) return device_cuda_open(device, 0);
  if (strncmp(name, "cuda:", 5) == 0 && parse_ordinal(name + 5) >= 0)
    return device_cuda_open(device, parse_ordinal(name + 5));
  return error_set(RED_ERROR_INVALID, "there is no device of the name \"%.64s\": it is %s", name, HINT);
}

static red_error open_device(const char *name, red_device **out) {
  struct red_device *device = calloc(1, sizeof *device);
  if (!device) return error_memory();
  device->fork_generation = atomic_load(&fork_generation);
  const char *check = getenv("RED_CHECK");
  device->checks_pointers = check && strcmp(check, "1") == 0;
  red_error error = open_named(device, name);
  if (error) {
    free(device);
    return error;
  }
  device->info.name = device->name;
  device->info.model = device->model;
  device->facts = (struct plan_facts){device->info.multiprocessors, device->info.arch, device->info.shared};
  pthread_mutex_init(&device->lock, NULL);
  pthread_cond_init(&device->built, NULL);
  *out = device;
  return RED_OK;
}

red_error red_open(const char *name, red_device **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!out) return error_set(RED_ERROR_INVALID, "red_open: the place for the device is NULL");
  *out = NULL;
  pthread_once(&once, watch_forks);
  if (device_opens) device_opens(false);
  red_error error = open_device(name, out);
  if (device_opens) device_opens(true);
  return error;
}

void red_close(red_device *device) {
  if (!device) return;
  if (!device_check(device)) { // in a forked child nothing of the parent's is touched
    common_close(device);
    image_close(device);
    workspace_close(device);
    variant_close(device);
    device->backend->close(device);
  }
  pthread_cond_destroy(&device->built);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

red_error red_describe_device(const red_device *device, red_device_info *info) {
  red_error error = device_check(device);
  if (error) return error;
  if (!info) return error_set(RED_ERROR_INVALID, "red_describe_device: the place for the description is NULL");
  *info = device->info;
  return RED_OK;
}

// ---- Memory and streams

red_error red_alloc(red_device *device, size_t bytes, void **pointer) {
  red_error error = device_check(device);
  if (error) return error;
  if (!pointer) return error_set(RED_ERROR_INVALID, "red_alloc: the place for the pointer is NULL");
  *pointer = NULL;
  return bytes ? device->backend->alloc(device, bytes, pointer) : RED_OK;
}

red_error red_free(red_device *device, void *pointer) {
  red_error error = device_check(device);
  if (error || !pointer) return error;
  return device->backend->free(device, pointer);
}

static red_error check_copy(const struct red_device *device, const void *to, const void *from, size_t bytes) {
  red_error error = device_check(device);
  if (error || !bytes || (to && from)) return error;
  return error_set(RED_ERROR_INVALID, "a copy of %zu bytes has a null pointer", bytes);
}

red_error red_copy_in(red_device *device, void *to, const void *from, size_t bytes) {
  red_error error = check_copy(device, to, from, bytes);
  return error || !bytes ? error : device->backend->copy_in(device, to, from, bytes);
}

red_error red_copy_out(red_device *device, void *to, const void *from, size_t bytes) {
  red_error error = check_copy(device, to, from, bytes);
  return error || !bytes ? error : device->backend->copy_out(device, to, from, bytes);
}

red_error red_stream_create(red_device *device, red_stream *stream) {
  red_error error = device_check(device);
  if (error) return error;
  if (!stream) return error_set(RED_ERROR_INVALID, "red_stream_create: the place for the stream is NULL");
  *stream = NULL;
  return device->backend->stream_create(device, stream);
}

red_error red_stream_destroy(red_device *device, red_stream stream) {
  red_error error = device_check(device);
  if (error) return error;
  if (!stream) return error_set(RED_ERROR_INVALID, "the null stream cannot be destroyed");
  return device->backend->stream_destroy(device, stream);
}

red_error red_synchronize(red_device *device, red_stream stream) {
  red_error error = device_check(device);
  return error ? error : device->backend->synchronize(device, stream);
}
