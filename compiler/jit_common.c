// red_permute and red_reduce: their programs compiled at the first call of a kind, and launched.
#define RED_BUILDING
#include "compiler/jit.h"
#include "runtime/common.h"

static red_error compile(red_device *device, const struct common_key *key, const red_kernel **kernel) {
  char text[COMMON_TEXT_BYTES];
  red_program *program;
  common_text(key, text);
  red_error error = red_compile_text(device, key->op ? "<reduce>" : "<permute>", text, NULL, &program);
  return error ? error : common_add(device, key, program, kernel);
}

static red_error launch(red_device *device, red_stream stream, const struct common_key *key, const red_tensor *X, const red_tensor *Y) {
  const red_kernel *kernel = common_find(device, key);
  red_error error = kernel ? RED_OK : compile(device, key, &kernel);
  if (error) return error;
  const red_argument arguments[] = {red_of_tensor(X), red_of_tensor(Y)};
  return red_launch(kernel, stream, arguments, 2);
}

red_error red_permute(red_device *device, red_stream stream, const red_tensor *X, const red_tensor *Y, const int *perm) {
  struct common_key key;
  red_error error = device_check(device);
  if (!error) error = common_permute_key(X, Y, perm, &key);
  return error ? error : launch(device, stream, &key, X, Y);
}

red_error red_reduce(red_device *device, red_stream stream, const char *op, const red_tensor *X, const red_tensor *Y, const int *axes,
                     int axis_count) {
  struct common_key key;
  red_error error = device_check(device);
  if (!error) error = common_reduce_key(op, X, Y, axes, axis_count, &key);
  return error ? error : launch(device, stream, &key, X, Y);
}
