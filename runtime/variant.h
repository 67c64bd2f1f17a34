// Variants: PTX with its plan, compiled under one set of options, types and sizes, for one device. Each is made once for its key, whoever asks, and
// loaded when it is first used. Those that nobody holds are kept for the next who asks: the last VARIANT_IDLE of a device.
#ifndef RED_RUNTIME_VARIANT_H
#define RED_RUNTIME_VARIANT_H

#include "runtime/device.h"

enum { VARIANT_IDLE = 64 };

// A variant's code on the device. `functions` are numbered as variant_function says.
struct module {
  void *handle;
  void **functions;
};

struct variant {
  struct variant *next;
  struct red_device *device;
  char *key;
  size_t key_bytes;
  bool is_ready;       // false: a thread is building it
  uint32_t references; // those who hold it, and the thread that builds it
  uint64_t used;       // device->use_clock when the last one let go
  const char *name;    // of the source, for messages; in the plan's memory
  char *ptx, *log;     // log: warnings, "" for none
  size_t ptx_bytes;
  struct plan plan;
  uint32_t *entry_base; // by kernel: number of its first entry among all entries
  uint32_t *first;      // by entry: number of the function of its first launch
  uint32_t function_count;
  uint32_t address_step; // plan_address_step of all of the plan's kernels; 0: one has none
  _Atomic(struct module *) module; // NULL: not loaded
  pthread_mutex_t loading;
};

// What a build gives: all from malloc; log may be NULL.
struct built {
  char *ptx, *log;
  size_t ptx_bytes;
  bool is_checked; // requirements and `when` were found to hold by another plan of the kernel, and need no second look
};
typedef red_error variant_build(void *state, struct built *built);

// The variant of a key (any bytes), built by `build` where there is none. While a thread builds, others who ask for the key wait. The caller holds
// it until variant_release.
red_error variant_get(struct red_device *device, const void *key, size_t key_bytes, const char *name, variant_build *build, void *state,
                      struct variant **variant);
void variant_release(struct variant *variant);
// Its code; loads it at the first call.
red_error variant_load(struct variant *variant, struct module **module);
static inline struct module *variant_module(const struct variant *variant) { // NULL: not loaded yet
  return atomic_load_explicit(&variant->module, memory_order_acquire);
}
// The number of the function of a launch of an entry.
static inline uint32_t variant_function(const struct variant *variant, uint32_t kernel, const struct plan_entry *entry,
                                        const struct plan_launch *launch) {
  uint32_t number = variant->entry_base[kernel] + (uint32_t)(entry - variant->plan.kernels[kernel].entries);
  return variant->first[number] + (uint32_t)(launch - entry->launches);
}
// Unloads all.
void variant_close(struct red_device *device);

#endif
