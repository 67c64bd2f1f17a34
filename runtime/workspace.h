// Workspace that the device keeps for its streams, for launches whose callers give none.
//
// A stream's workspace grows and is never moved under a launch: what it outgrew stays until red_trim or red_close. Kernels that agree on how many
// bytes at the start are zero before and after each launch share one; others have one of their own. A capture takes a spare that red_prepare made: the
// graph may run beside the stream later.
#ifndef RED_RUNTIME_WORKSPACE_H
#define RED_RUNTIME_WORKSPACE_H

#include "runtime/device.h"

// Sets *data to workspace for a launch on the stream now: what is kept for it, which grows; in a capture, a spare.
red_error workspace_take(struct red_device *device, const char *kernel, red_stream stream, int64_t bytes, int64_t zeroed, void **data);
// Makes what later launches on the stream with so much workspace take, and a spare for its next capture where none is free.
red_error workspace_prepare(struct red_device *device, red_stream stream, int64_t bytes, int64_t zeroed);
// Frees all.
void workspace_close(struct red_device *device);

#endif
