#define RED_BUILDING
#include "runtime/image.h"

#include "runtime/program.h"

#include <stdlib.h>

struct image_program {
  struct image_program *next;
  const red_image *image;
  struct red_program *program;
  const struct red_kernel *kernels[]; // by their places in the image
};

static _Atomic(struct image_program *) *bucket(struct red_device *device, const red_image *image) {
  return &device->images[(uint64_t)(uintptr_t)image * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (DEVICE_BUCKETS - 1)];
}

static struct image_program *find(struct red_device *device, const red_image *image) {
  struct image_program *found = atomic_load_explicit(bucket(device, image), memory_order_acquire);
  while (found && found->image != image) found = found->next;
  return found;
}

static red_error load(struct red_device *device, const red_image *image, struct image_program **out) {
  struct red_program *program;
  red_error error = red_load(device, image->name, image->ptx, image->bytes, &program);
  if (error) return error;
  struct image_program *loaded = malloc(sizeof *loaded + (image->kernel_count + 1) * sizeof *loaded->kernels);
  if (!loaded) error = error_memory();
  for (size_t i = 0; i < image->kernel_count && !error; i++) error = red_find(program, image->kernels[i], &loaded->kernels[i]);
  if (error) {
    free(loaded);
    red_release(program);
    return error;
  }
  loaded->image = image;
  loaded->program = program;
  pthread_mutex_lock(&device->lock);
  struct image_program *other = find(device, image); // another thread may have been faster
  if (!other) {
    loaded->next = atomic_load(bucket(device, image));
    atomic_store_explicit(bucket(device, image), loaded, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
  *out = other ? other : loaded;
  if (other) {
    red_release(program);
    free(loaded);
  }
  return RED_OK;
}

red_error red_image_kernel(red_device *device, const red_image *image, size_t index, const red_kernel **kernel) {
  if (kernel) *kernel = NULL;
  red_error error = device_check(device);
  if (error) return error;
  if (!image || !kernel || index >= image->kernel_count) return error_set(RED_ERROR_INVALID, "red_image_kernel: there is no such kernel, or no place for it");
  struct image_program *found = find(device, image);
  if (!found) error = load(device, image, &found);
  if (!error) *kernel = found->kernels[index];
  return error;
}

void image_close(struct red_device *device) {
  for (int i = 0; i < DEVICE_BUCKETS; i++) {
    struct image_program *program = atomic_exchange(&device->images[i], NULL);
    while (program) {
      struct image_program *next = program->next;
      red_release(program->program);
      free(program);
      program = next;
    }
  }
}
