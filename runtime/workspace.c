#define RED_BUILDING
#include "runtime/workspace.h"

#include <inttypes.h>
#include <stdlib.h>

struct block {
  void *data;
  int64_t bytes;
};
struct stream_workspace {
  struct stream_workspace *next;
  uint64_t stream;
  int64_t zeroed;
  _Atomic(struct block *) block; // NULL: none yet
};
struct old_workspace {
  struct old_workspace *next;
  struct block *block;
};
struct spare {
  struct spare *next;
  uint64_t handle, capture; // of the stream; capture: that uses it; 0: none
  int64_t zeroed;
  struct block block;
};

static _Atomic(struct stream_workspace *) *bucket(struct red_device *device, uint64_t stream) {
  uint64_t hash = stream * UINT64_C(0x9e3779b97f4a7c15);
  return &device->streams[hash >> 32 & (DEVICE_BUCKETS - 1)];
}

static struct stream_workspace *find(struct red_device *device, uint64_t stream, int64_t zeroed) {
  struct stream_workspace *w = atomic_load_explicit(bucket(device, stream), memory_order_acquire);
  while (w && (w->stream != stream || w->zeroed != zeroed)) w = w->next;
  return w;
}

// Memory whose every byte becomes zero in the stream.
static red_error make_block(struct red_device *device, red_stream stream, int64_t bytes, struct block *block) {
  red_error error = device->backend->alloc(device, (size_t)bytes, &block->data);
  if (error) return error;
  block->bytes = bytes;
  error = device->backend->zero(device, stream, block->data, (size_t)bytes);
  if (error) device->backend->free(device, block->data);
  return error;
}

// Under the lock.
static red_error grow(struct red_device *device, red_stream stream, struct stream_workspace *w, int64_t bytes) {
  struct block *old = atomic_load(&w->block);
  struct block *block = malloc(sizeof *block);
  struct old_workspace *kept = old ? malloc(sizeof *kept) : NULL;
  if (!block || (old && !kept)) {
    free(block);
    free(kept);
    return error_memory();
  }
  if (old && bytes < 2 * old->bytes) bytes = 2 * old->bytes;
  red_error error = make_block(device, stream, bytes, block);
  if (error) {
    free(block);
    free(kept);
    return error;
  }
  if (old) {
    *kept = (struct old_workspace){device->olds, old};
    device->olds = kept;
  }
  atomic_store_explicit(&w->block, block, memory_order_release);
  return RED_OK;
}

static red_error keep(struct red_device *device, red_stream stream, uint64_t id, int64_t bytes, int64_t zeroed, void **data) {
  red_error error = RED_OK;
  pthread_mutex_lock(&device->lock);
  struct stream_workspace *w = find(device, id, zeroed);
  if (!w) {
    w = calloc(1, sizeof *w);
    if (w) {
      *w = (struct stream_workspace){.next = atomic_load(bucket(device, id)), .stream = id, .zeroed = zeroed};
      atomic_store_explicit(bucket(device, id), w, memory_order_release);
    }
  }
  struct block *block = w ? atomic_load(&w->block) : NULL;
  if (!w)
    error = error_memory();
  else if (!block || block->bytes < bytes)
    error = grow(device, stream, w, bytes);
  if (!error) *data = atomic_load(&w->block)->data;
  pthread_mutex_unlock(&device->lock);
  return error;
}

// The spare that this capture of the stream uses, or a free one; NULL: there is none. Under the lock.
static struct spare *find_spare(struct red_device *device, const struct stream_state *state, int64_t bytes, int64_t zeroed) {
  struct spare *found = NULL;
  for (struct spare *s = device->spares; s; s = s->next) {
    if (s->handle != state->handle || s->zeroed != zeroed || s->block.bytes < bytes) continue;
    if (state->capture && s->capture == state->capture) return s;
    if (!s->capture) found = s;
  }
  return found;
}

static red_error take_spare(struct red_device *device, const char *kernel, const struct stream_state *state, int64_t bytes, int64_t zeroed, void **data) {
  pthread_mutex_lock(&device->lock);
  struct spare *spare = find_spare(device, state, bytes, zeroed);
  if (spare) {
    spare->capture = state->capture;
    *data = spare->block.data;
  }
  pthread_mutex_unlock(&device->lock);
  if (spare) return RED_OK;
  return error_set(RED_ERROR_CAPTURING, "%s needs %" PRId64 " bytes of workspace, and its stream is being captured: call red_prepare before the capture, or give workspace",
                   kernel, bytes);
}

// Where all of it is zero between launches, sizes that are near one another share one.
static void round_up(int64_t *bytes, int64_t *zeroed) {
  int64_t power = 1 << 16;
  if (*bytes != *zeroed) return;
  while (power < *bytes && power <= INT64_MAX / 2) power *= 2;
  if (power >= *bytes) *bytes = *zeroed = power;
}

red_error workspace_take(struct red_device *device, const char *kernel, red_stream stream, int64_t bytes, int64_t zeroed, void **data) {
  struct stream_state state;
  round_up(&bytes, &zeroed);
  red_error error = device->backend->stream_state(device, stream, &state);
  if (error) return error;
  if (state.capture) return take_spare(device, kernel, &state, bytes, zeroed, data);
  struct stream_workspace *w = find(device, state.id, zeroed);
  struct block *block = w ? atomic_load_explicit(&w->block, memory_order_acquire) : NULL;
  if (!block || block->bytes < bytes) return keep(device, stream, state.id, bytes, zeroed, data);
  *data = block->data;
  return RED_OK;
}

red_error workspace_prepare(struct red_device *device, red_stream stream, int64_t bytes, int64_t zeroed) {
  struct stream_state state;
  void *data;
  round_up(&bytes, &zeroed);
  red_error error = device->backend->stream_state(device, stream, &state);
  if (!error) error = keep(device, stream, state.id, bytes, zeroed, &data);
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  struct spare *spare = find_spare(device, &state, bytes, zeroed);
  if (!spare) {
    spare = calloc(1, sizeof *spare);
    error = spare ? make_block(device, stream, bytes, &spare->block) : error_memory();
    if (!error) {
      error = device->backend->synchronize(device, stream); // the graph may run on other streams
      if (error) device->backend->free(device, spare->block.data);
    }
    if (!error) {
      spare->next = device->spares;
      spare->handle = state.handle;
      spare->zeroed = zeroed;
      device->spares = spare;
    } else {
      free(spare);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return error;
}

static void free_block(struct red_device *device, struct block *block) {
  device->backend->free(device, block->data);
  free(block);
}

void workspace_close(struct red_device *device) {
  for (int i = 0; i < DEVICE_BUCKETS; i++) {
    struct stream_workspace *w = atomic_exchange(&device->streams[i], NULL);
    while (w) {
      struct stream_workspace *next = w->next;
      struct block *block = atomic_load(&w->block);
      if (block) free_block(device, block);
      free(w);
      w = next;
    }
  }
  while (device->olds) {
    struct old_workspace *old = device->olds;
    device->olds = old->next;
    free_block(device, old->block);
    free(old);
  }
  while (device->spares) {
    struct spare *spare = device->spares;
    device->spares = spare->next;
    device->backend->free(device, spare->block.data);
    free(spare);
  }
}

red_error red_trim(red_device *device) {
  red_error error = device_check(device);
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  workspace_close(device);
  pthread_mutex_unlock(&device->lock);
  return RED_OK;
}

red_error red_workspace_init(red_device *device, red_stream stream, void *data, size_t bytes) {
  red_error error = device_check(device);
  if (error || !bytes) return error;
  if (!data) return error_set(RED_ERROR_INVALID, "the workspace of %zu bytes is NULL", bytes);
  return device->backend->zero(device, stream, data, bytes);
}
