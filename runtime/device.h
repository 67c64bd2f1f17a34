// Devices, and what differs between the GPU and the simulator.
#ifndef RED_RUNTIME_DEVICE_H
#define RED_RUNTIME_DEVICE_H

#include "runtime/error.h"
#include "runtime/plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct variant;
struct module; // a variant on a device: its code and its functions
struct call;
struct repeat;

// What a stream is at this moment.
struct stream_state {
  uint64_t id;      // unique among the streams that there have ever been, where the driver can say so; not known in a capture
  uint64_t handle;  // unique among those that there are now
  uint64_t capture; // of the capture that the stream is in; 0: none
};

// Every function returns after making the device's context current and putting back what was current before.
struct backend {
  void (*close)(struct red_device *device);
  red_error (*alloc)(struct red_device *device, size_t bytes, void **pointer);
  red_error (*free)(struct red_device *device, void *pointer);
  red_error (*copy_in)(struct red_device *device, void *to, const void *from, size_t bytes);
  red_error (*copy_out)(struct red_device *device, void *to, const void *from, size_t bytes);
  red_error (*zero)(struct red_device *device, red_stream stream, void *pointer, size_t bytes); // ordered in the stream
  red_error (*stream_create)(struct red_device *device, red_stream *stream);
  red_error (*stream_destroy)(struct red_device *device, red_stream stream);
  red_error (*synchronize)(struct red_device *device, red_stream stream);
  red_error (*stream_state)(struct red_device *device, red_stream stream, struct stream_state *state);
  // Loads a variant's PTX.
  red_error (*load)(struct red_device *device, const struct variant *variant, struct module **module);
  void (*unload)(struct red_device *device, struct module *module); // waits for running launches
  // Whether an address belongs to the device; `name` is the tensor's.
  red_error (*check_pointer)(struct red_device *device, const char *name, uint64_t address);
  // Starts all launches of a call that was evaluated.
  red_error (*run)(struct red_device *device, struct call *call, red_stream stream);
  // The same for one that was started before; `workspace`: where its workspace is. NULL: launches are not kept.
  red_error (*run_again)(struct red_device *device, const struct repeat *repeat, void *workspace, red_stream stream);
};

enum { DEVICE_BUCKETS = 64 };
struct red_device {
  const struct backend *backend;
  red_device_info info;
  char name[32], model[256];
  struct plan_facts facts;
  bool checks_pointers;     // RED_CHECK=1
  unsigned fork_generation; // of the process that opened it
  pthread_mutex_t lock;     // for what is not done in a launch: variants, workspace that grows, images
  pthread_cond_t built;     // a variant was built, or failed
  struct variant *variants; // most recently made first
  uint64_t use_clock;       // of variants that nobody holds
  _Atomic(struct stream_workspace *) streams[DEVICE_BUCKETS];
  struct spare *spares;         // workspace for captures
  struct old_workspace *olds;   // outgrown workspace, which launches may still use
  _Atomic(struct image_program *) images[DEVICE_BUCKETS];
  _Atomic(struct common_kernel *) common[DEVICE_BUCKETS];
  void *state; // the backend's
};

// RED_OK, or RED_ERROR_INVALID or RED_ERROR_FORKED for a handle that cannot be used.
red_error device_check(const struct red_device *device);

// Called where a device is about to be opened, and again when it is or cannot be; NULL: nothing is to be done. Set while the library is loaded.
extern void (*device_opens)(bool is_open);

// Fill in backend, info, facts and state.
red_error device_sim_open(struct red_device *device, const char *arch); // "sm_80"; NULL: sm_90
red_error device_cuda_open(struct red_device *device, int ordinal);     // -1: of the current context, else 0

#endif
