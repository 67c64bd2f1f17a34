// Kernels compiled ahead of time, on a device: red_image_kernel.
#ifndef RED_RUNTIME_IMAGE_H
#define RED_RUNTIME_IMAGE_H

#include "runtime/device.h"

void image_close(struct red_device *device);

#endif
