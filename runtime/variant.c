#include "runtime/variant.h"

#include <stdlib.h>
#include <string.h>

static void destroy(struct variant *variant) {
  struct module *module = variant_module(variant);
  if (module) variant->device->backend->unload(variant->device, module);
  plan_destroy(&variant->plan);
  pthread_mutex_destroy(&variant->loading);
  free(variant->key);
  free(variant->ptx);
  free(variant->log);
  free(variant->entry_base);
  free(variant->first);
  free(variant);
}

static void unlink_variant(struct variant *variant) {
  struct variant **at = &variant->device->variants;
  while (*at != variant) at = &(*at)->next;
  *at = variant->next;
}

static struct variant *find(const struct red_device *device, const void *key, size_t key_bytes) {
  for (struct variant *v = device->variants; v; v = v->next)
    if (v->key_bytes == key_bytes && memcmp(v->key, key, key_bytes) == 0) return v;
  return NULL;
}

static struct variant *create(struct red_device *device, const void *key, size_t key_bytes) {
  struct variant *variant = calloc(1, sizeof *variant);
  if (!variant) return NULL;
  plan_init(&variant->plan);
  pthread_mutex_init(&variant->loading, NULL);
  variant->device = device;
  variant->references = 1;
  variant->key = malloc(key_bytes + 1);
  if (!variant->key) {
    destroy(variant);
    return NULL;
  }
  memcpy(variant->key, key, key_bytes);
  variant->key_bytes = key_bytes;
  return variant;
}

// Numbers the functions.
static bool number(struct variant *variant) {
  const struct plan *plan = &variant->plan;
  uint32_t entries = 0, functions = 0;
  for (uint32_t k = 0; k < plan->kernel_count; k++) entries += plan->kernels[k].entry_count;
  variant->entry_base = calloc(plan->kernel_count + 1, sizeof *variant->entry_base);
  variant->first = calloc(entries + 1, sizeof *variant->first);
  if (!variant->entry_base || !variant->first) return false;
  entries = 0;
  for (uint32_t k = 0; k < plan->kernel_count; k++) {
    variant->entry_base[k] = entries;
    for (uint32_t e = 0; e < plan->kernels[k].entry_count; e++) {
      variant->first[entries++] = functions;
      functions += plan->kernels[k].entries[e].launch_count;
    }
  }
  variant->function_count = functions;
  return true;
}

static red_error fill(struct variant *variant, const char *name, variant_build *build, void *state) {
  struct built built = {0};
  char why[512];
  red_error error = build(state, &built);
  variant->ptx = built.ptx;
  variant->ptx_bytes = built.ptx_bytes;
  variant->log = built.log;
  if (error) return error;
  if (!plan_parse(&variant->plan, variant->ptx, variant->ptx_bytes, why, sizeof why)) return error_set(RED_ERROR_PLAN, "%s: %s", name, why);
  for (uint32_t k = 0; k < variant->plan.kernel_count && built.is_checked; k++) {
    struct plan_kernel *kernel = &variant->plan.kernels[k];
    kernel->requirement_count = 0;
    for (uint32_t e = 0; e < kernel->entry_count; e++) kernel->entries[e].when.count = 0; // assumptions are this plan's alone
  }
  variant->address_step = 1;
  for (uint32_t k = 0; k < variant->plan.kernel_count; k++) {
    uint32_t step = plan_address_step(&variant->plan.kernels[k]);
    variant->address_step = step && variant->address_step ? (step > variant->address_step ? step : variant->address_step) : 0;
  }
  variant->name = plan_strdup(&variant->plan, name, strlen(name));
  return variant->name && number(variant) ? RED_OK : error_memory();
}

red_error variant_get(struct red_device *device, const void *key, size_t key_bytes, const char *name, variant_build *build, void *state,
                      struct variant **out) {
  struct variant *variant;
  *out = NULL;
  pthread_mutex_lock(&device->lock);
  while ((variant = find(device, key, key_bytes)) && !variant->is_ready) pthread_cond_wait(&device->built, &device->lock);
  if (variant) {
    variant->references++;
    pthread_mutex_unlock(&device->lock);
    *out = variant;
    return RED_OK;
  }
  variant = create(device, key, key_bytes);
  if (variant) {
    variant->next = device->variants;
    device->variants = variant;
  }
  pthread_mutex_unlock(&device->lock);
  if (!variant) return error_memory();
  red_error error = fill(variant, name, build, state);
  pthread_mutex_lock(&device->lock);
  if (error)
    unlink_variant(variant);
  else
    variant->is_ready = true;
  pthread_cond_broadcast(&device->built);
  pthread_mutex_unlock(&device->lock);
  if (error)
    destroy(variant);
  else
    *out = variant;
  return error;
}

// Takes the variant that nobody has used for longest out of the list, where there are more than are kept.
static struct variant *take_oldest(struct red_device *device) {
  struct variant *oldest = NULL;
  uint32_t idle = 0;
  for (struct variant *v = device->variants; v; v = v->next) {
    if (v->references) continue;
    idle++;
    if (!oldest || v->used < oldest->used) oldest = v;
  }
  if (idle <= VARIANT_IDLE) return NULL;
  unlink_variant(oldest);
  return oldest;
}

void variant_release(struct variant *variant) {
  if (!variant) return;
  struct red_device *device = variant->device;
  struct variant *oldest = NULL;
  pthread_mutex_lock(&device->lock);
  if (--variant->references == 0) {
    variant->used = ++device->use_clock;
    oldest = take_oldest(device);
  }
  pthread_mutex_unlock(&device->lock);
  if (oldest) destroy(oldest);
}

red_error variant_load(struct variant *variant, struct module **out) {
  red_error error = RED_OK;
  *out = variant_module(variant);
  if (*out) return RED_OK;
  pthread_mutex_lock(&variant->loading);
  *out = variant_module(variant);
  if (!*out) {
    error = variant->device->backend->load(variant->device, variant, out);
    if (!error) atomic_store_explicit(&variant->module, *out, memory_order_release);
  }
  pthread_mutex_unlock(&variant->loading);
  return error;
}

void variant_close(struct red_device *device) {
  while (device->variants) {
    struct variant *variant = device->variants;
    device->variants = variant->next;
    destroy(variant);
  }
}
