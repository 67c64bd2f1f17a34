// red: reductions, permutes and the element-wise work around them, compiled and launched from C or C++.
//
//   #include <red.h>
//   #include <stdio.h>
//
//   static const char text[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }";
//
//   int main(void) {
//     float a[4][11], b[4];
//     for (int i = 0; i < 4; i++)
//       for (int j = 0; j < 11; j++) a[i][j] = (float)(i + j);
//     red_device *device = NULL;
//     red_program *program = NULL;
//     const red_kernel *rowsum = NULL;
//     void *A = NULL, *B = NULL;
//     int64_t a_shape[] = {4, 11}, b_shape[] = {4};
//     if (red_open("auto", &device) || red_compile_text(device, "rowsum.red", text, NULL, &program) ||
//         red_find(program, "rowsum", &rowsum) || red_alloc(device, sizeof a, &A) || red_alloc(device, sizeof b, &B) ||
//         red_copy_in(device, A, a, sizeof a))
//       goto failed;
//     red_tensor tensor_a = red_dense(A, RED_F32, 2, a_shape), tensor_b = red_dense(B, RED_F32, 1, b_shape);
//     red_argument arguments[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_b)};
//     if (red_launch(rowsum, NULL, arguments, 2) || red_copy_out(device, b, B, sizeof b)) goto failed;
//     for (int i = 0; i < 4; i++) printf("%g\n", b[i]);
//     red_free(device, A);
//     red_free(device, B);
//     red_release(program);
//     red_close(device);
//     return 0;
//   failed:
//     fprintf(stderr, "%s\n", red_message());
//     return 1;
//   }
//
//   cc rowsum.c $(pkg-config --cflags --libs red) && RED_DEVICE=sim ./a.out
//
// Two libraries have this header. libred holds compiler and runtime. libred-rt is the runtime alone, without LLVM, for kernels that
// `redc k.red -o k.h` compiled ahead of time; functions marked [compiler] are not in it.
//
// Devices. A device is a GPU, through libcuda.so.1, which is loaded when the first GPU is opened (RED_LIBCUDA names another file), or the
// simulator of PTX: the same calls run there without a GPU, slowly, with every access, barrier and shuffle checked. On the simulator device
// memory is host memory: pointers from red_alloc, malloc or NumPy may be given as tensors, streams are ignored, and a launch has ended when
// it returns.
//
// Errors. Every function that can fail returns a red_error, RED_OK (0) where all went well. red_message() is what went wrong last in the
// calling thread, with names and numbers. After an error nothing was launched and nothing written, unless a function says otherwise; where a
// handle was asked for, it is NULL.
//
// Threads. Handles do not change once they are made and may be used by any number of threads at once; each may be closed or released once, when no
// thread uses it any more. Where threads compile the same program for the same device at the same time, one compiles and the others wait. A child
// of fork() cannot use handles of its parent: RED_ERROR_FORKED. A process may exit with handles open.
// The first red_open of a process has a thread of libred map the compiler's pages meanwhile; it gets no signals and has ended when red_open returns; RED_WARM=0 does without.
//
// Contexts. A device uses the CUDA context that is current in the thread that opens it, where that belongs to the GPU named, and otherwise the
// GPU's primary context, which the CUDA runtime, PyTorch and CuPy use too. Whatever context was current before a call is current after it.
//
// Environment: RED_DEVICE (what "auto" opens), RED_LIBCUDA, RED_CHECK=1 (launches ask the driver which device each pointer belongs to),
// RED_WARM, RED_CACHE=off|ro|rw, RED_CACHE_DIR, RED_CACHE_SIZE (the disk cache of compiled kernels: `redc cache --help`), RED_SIM_SEED (orders of blocks,
// warps and lanes in the simulator).
#ifndef RED_H
#define RED_H

#include <stddef.h>
#include <stdint.h>

#include "red_kernel.h" // RED_KERNEL, for redc lift

#ifdef __cplusplus
extern "C" {
#endif

#if defined(RED_BUILDING) && (defined(__GNUC__) || defined(__clang__))
#define RED_API __attribute__((visibility("default")))
#else
#define RED_API
#endif

// ---- Errors -----------------------------------------------------------------------------------------------------------------------

// X(NAME, number, what it means): RED_ERROR_NAME. Numbers never change their meaning.
#define RED_ERRORS(X)                                                                                                                \
  X(INVALID, 1, "an argument of the call is not legal, a null handle for example")                                                   \
  X(MEMORY, 2, "there is no memory left, on the host or on the device")                                                              \
  X(INTERNAL, 3, "a fault of red itself: please report it")                                                                          \
  X(UNSUPPORTED, 4, "red cannot do this, on this device at least")                \
  X(FORKED, 5, "the handle was made before fork(): a child process opens its own device, before its parent opened one")               \
  X(NO_DRIVER, 10, "there is no CUDA driver, or it does not start")                                                                  \
  X(NO_DEVICE, 11, "there is no such device")                                                                                        \
  X(DRIVER, 12, "a call of the CUDA driver failed; red_driver_error() is its code")                                                  \
  X(CAPTURING, 13, "the stream is being captured, and the launch needs what only red_prepare can make; the capture is intact")       \
  X(WRONG_DEVICE, 14, "a tensor lies on another device than the kernel's")                                                           \
  X(FAULT, 15, "the simulator found a fault in the kernel: an access out of bounds, a race, a wrong mask")                           \
  X(FILE, 20, "a file cannot be read")                                                                                               \
  X(COMPILE, 21, "the program has errors; the message is the compiler's whole output, red_place says where the first one is")        \
  X(PLAN, 22, "the PTX holds no launch plan, or a damaged one, or one of another version of red")                                    \
  X(NO_KERNEL, 23, "the program has no kernel of this name")                                                                         \
  X(COUNT, 30, "too few or too many arguments of a kind")                                                                            \
  X(TYPE, 31, "an argument has another element type than the kernel takes, or one that red does not know")                           \
  X(RANK, 32, "a tensor has another rank than the kernel takes")                                                                     \
  X(SHAPE, 33, "extents disagree, or an extent or size is negative")                                                                 \
  X(STRIDE, 34, "a stride is not the one that the kernel needs")                                                                     \
  X(NULL_POINTER, 35, "a tensor that has elements has a null pointer")                                                               \
  X(MISALIGNED, 36, "a pointer is not a multiple of the element's size")                                                             \
  X(OVERLAP, 37, "an output shares memory with another tensor")                                                                      \
  X(ALIAS, 38, "the strides of an output give two of its elements one address")                                                      \
  X(REQUIREMENT, 39, "the sizes break a requirement of the kernel: a bound that it was compiled under")                              \
  X(LIMIT, 40, "no schedule of the kernel fits: a grid, an offset or shared memory beyond what there can be")                        \
  X(SCALAR, 41, "a scalar does not fit its type")                                                                                    \
  X(WORKSPACE, 42, "the workspace given is too small or not aligned to 256 bytes")

typedef enum red_error {
  RED_OK = 0,
#define RED_ERROR_ROW(name, number, text) RED_ERROR_##name = number,
  RED_ERRORS(RED_ERROR_ROW)
#undef RED_ERROR_ROW
} red_error;

// "RED_ERROR_SHAPE" and its line of the table; "RED_ERROR_?" and "unknown error" for a number that is none. Live for ever. Any thread.
RED_API const char *red_error_name(red_error error);
RED_API const char *red_error_text(red_error error);
// What the last call that failed in this thread said, without a newline at the end, at most 16383 bytes of it; "" where none did. Lives until the next call that fails in
// this thread.
RED_API const char *red_message(void);
// The CUresult of that failure where it was RED_ERROR_DRIVER; otherwise 0.
RED_API int red_driver_error(void);
// Where in a .red text that failure is: file as named to the compiler, line and column from 1. Returns 1, or 0 where it has no place. Each pointer
// may be NULL; *file lives until the next call that fails in this thread.
RED_API int red_place(const char **file, int *line, int *column);

// The version of the library, "0.1.0".
RED_API const char *red_version(void);

// ---- Devices ----------------------------------------------------------------------------------------------------------------------

typedef struct red_device red_device;

// Opens a device by its name; close it with red_close.
//   "cuda:0"          a GPU, by the driver's number; "cuda" is cuda:0
//   "sim"             the simulator, of a large GPU (sm_90); "sim:sm_80" of that architecture
//   "auto" or NULL    what RED_DEVICE names; unset: the GPU of the context that is current, else cuda:0, else, where there is no driver or no GPU, sim
// Errors: INVALID (the name), NO_DRIVER, NO_DEVICE, DRIVER, MEMORY. Any thread.
RED_API red_error red_open(const char *name, red_device **device);
// Closes the device and frees what it keeps: modules and workspace, but not memory of red_alloc. Programs of the device must have been released, and
// launches must have ended. NULL is fine.
RED_API void red_close(red_device *device);

typedef struct red_device_info {
  const char *name;   // "cuda:0", "sim"
  const char *model;  // "NVIDIA H200", "simulator"
  int arch;           // 90 for compute capability 9.0
  int multiprocessors;
  int64_t shared;     // bytes of shared memory that a block may have
  int ordinal;        // the driver's number; -1: the simulator
  int driver_version; // 12080 for CUDA 12.8; 0: the simulator
} red_device_info;
// The texts live as long as the device. Errors: INVALID, FORKED.
RED_API red_error red_describe_device(const red_device *device, red_device_info *info);

// Device memory, for programs that have no other way to it; any memory of the device may be given as a tensor. Aligned to 256 bytes, not
// initialised. *pointer is NULL where bytes is 0. Errors: INVALID, MEMORY, DRIVER, FORKED.
RED_API red_error red_alloc(red_device *device, size_t bytes, void **pointer);
// Frees memory of red_alloc; waits for running launches as cuMemFree does. NULL is fine.
RED_API red_error red_free(red_device *device, void *pointer);
// Copies between the host and the device and waits for it; ordered behind launches on the null stream only: call red_synchronize for others.
RED_API red_error red_copy_in(red_device *device, void *to, const void *from, size_t bytes);
RED_API red_error red_copy_out(red_device *device, void *to, const void *from, size_t bytes);

// A CUstream or cudaStream_t, converted; NULL is the legacy default stream, (red_stream)1 and (red_stream)2 are CUDA's legacy and per-thread
// streams. The simulator ignores it.
typedef void *red_stream;
// A stream that does not wait for the null stream; for programs that have no other way to one. Errors: INVALID, DRIVER, MEMORY, FORKED.
RED_API red_error red_stream_create(red_device *device, red_stream *stream);
RED_API red_error red_stream_destroy(red_device *device, red_stream stream);
// Waits until all work of the stream has ended; errors of its kernels appear here. Errors: DRIVER, INVALID, FORKED.
RED_API red_error red_synchronize(red_device *device, red_stream stream);

// ---- Programs ---------------------------------------------------------------------------------------------------------------------

typedef struct red_program red_program;
typedef struct red_kernel red_kernel; // belongs to its program

// How to compile. Zero everything, then set what differs: `red_options options = {0};`. All texts are copied.
typedef struct red_options {
  const char *arch;           // "sm_90"; NULL: the newest target that the device runs
  const char *const *defines; // "m=11" gives a size its value, "T=f16" a type parameter its type; a type parameter without one takes the type of
                              // the tensors of each launch
  size_t define_count;
  const char *schedule_text;  // further text with schedules for the kernels, NULL: none
  const char *schedule_file;  // a file of schedules, NULL: none
  const char *schedule;       // only the schedule of this name ("auto": the compiler's own); NULL: all
  int optimize;               // level 0 to 3 of the backend plus 1; 0: level 3
  int no_contract;            // 1: products that feed a sum are not fused
  int debug;                  // 1: full debug information
  int batch_invariant;        // 1: the order in which an output is summed depends neither on how many outputs there are nor on its place among them
} red_options;

// [compiler] Compiles a text, or a file; release the program with red_release. `name` is what messages call the text. `options` may be NULL. The program is
// checked here, with all its schedules; the code of a schedule is made when a launch (or red_prepare) first takes it, or comes from memory or the disk cache.
// Where a schedule needs a size at compile time (an axis bound to threads) that no option gives, it is compiled for each list of sizes that is launched, and
// the last 64 of a kernel are kept.
// Errors: COMPILE, FILE, INVALID, MEMORY, UNSUPPORTED (a device older than every target), FORKED. Any thread.
RED_API red_error red_compile_text(red_device *device, const char *name, const char *text, const red_options *options, red_program **program);
RED_API red_error red_compile_file(red_device *device, const char *path, const red_options *options, red_program **program);
// A program from PTX that redc wrote: with its launch plan, a comment block at its head. Nothing is compiled but by the driver.
// Errors: PLAN, INVALID, MEMORY, FORKED.
RED_API red_error red_load(red_device *device, const char *name, const char *ptx, size_t bytes, red_program **program);
// Releases the program and its kernels; their launches must have ended. NULL is fine.
RED_API void red_release(red_program *program);
// Warnings of the compilation, as text, and, once in a process, that the disk cache cannot be used; "" where there is none. Lives as long as the program.
RED_API const char *red_log(const red_program *program);
// The PTX of the program, with all schedules of all kernels, which are compiled for it at the first call; NULL where some need sizes or types of a launch.
// Lives as long as the program.
RED_API const char *red_ptx(const red_program *program);

// Finds a kernel by its name: as in the text, with _TYPE behind it where -D gave a type parameter several types. The name may be NULL where there is one kernel.
// Errors: NO_KERNEL (the message lists those that there are), INVALID, FORKED.
RED_API red_error red_find(const red_program *program, const char *name, const red_kernel **kernel);
RED_API size_t red_kernel_count(const red_program *program);
RED_API const red_kernel *red_kernel_at(const red_program *program, size_t index); // in the order of the text; NULL: there is none

// PTX with its plan inside the program, as `redc k.red -o k.h` writes it; constant, and alive as long as the devices that used it.
typedef struct red_image {
  const char *name;           // of the .red file, for messages
  const char *ptx;
  size_t bytes;               // of ptx, without the zero byte at its end
  const char *const *kernels; // their names
  size_t kernel_count;
} red_image;
// Kernel `index` of an image on a device: loaded at the first call, one look-up at all later ones. It belongs to the device. Errors: PLAN, INVALID, MEMORY,
// FORKED. Any thread.
RED_API red_error red_image_kernel(red_device *device, const red_image *image, size_t index, const red_kernel **kernel);

// ---- What a kernel takes ----------------------------------------------------------------------------------------------------------

// X(NAME, spelling in .red, bytes)
#define RED_TYPES(X)                                                                                                                 \
  X(BOOL, "bool", 1) X(I8, "i8", 1) X(I16, "i16", 2) X(I32, "i32", 4) X(I64, "i64", 8) X(U8, "u8", 1) X(U16, "u16", 2)                \
  X(U32, "u32", 4) X(U64, "u64", 8) X(F16, "f16", 2) X(BF16, "bf16", 2) X(F32, "f32", 4) X(F64, "f64", 8) X(F8E4M3, "f8e4m3", 1)     \
  X(F8E5M2, "f8e5m2", 1) X(C64, "c64", 8) X(C128, "c128", 16)
typedef enum red_type {
#define RED_TYPE_ROW(name, spelling, bytes) RED_##name,
  RED_TYPES(RED_TYPE_ROW)
#undef RED_TYPE_ROW
  RED_TYPE_COUNT // of a parameter: the type is the launch's (a type parameter that no option gave)
} red_type;
RED_API const char *red_type_name(red_type type); // "?" for a number that is none
RED_API size_t red_type_bytes(red_type type);     // 0 for one that is none

typedef enum red_kind { RED_INPUT, RED_OUTPUT, RED_SCALAR, RED_SIZE } red_kind;
typedef struct red_parameter {
  const char *name;
  red_kind kind;
  red_type type;     // of the elements or the scalar; RED_I64 for a size
  int rank;          // tensors
  int is_strided;    // tensors: takes any strides, or those that its declaration names
  const char *shape; // tensors: "n, m + 2"; "" for rank 0
} red_parameter;
typedef struct red_kernel_info {
  const char *name;
  size_t parameter_count; // tensors (inputs, then outputs), scalars, sizes that a launch must give
  size_t requirement_count;
  size_t schedule_count;
} red_kernel_info;
// All texts live as long as the program. Errors: INVALID (also an index past the end), FORKED.
RED_API red_error red_describe(const red_kernel *kernel, red_kernel_info *info);
RED_API red_error red_describe_parameter(const red_kernel *kernel, size_t index, red_parameter *parameter);
// What must hold of the sizes, as a sentence: "n is at most 2147483647".
RED_API red_error red_describe_requirement(const red_kernel *kernel, size_t index, const char **text);
// The entries in the order in which a launch tries them: the name of the schedule ("" for one without a name and for the compiler's own) and of the
// entry. Either pointer may be NULL.
RED_API red_error red_describe_schedule(const red_kernel *kernel, size_t index, const char **schedule, const char **entry);

// ---- Arguments --------------------------------------------------------------------------------------------------------------------

// A tensor in device memory. Element (i, j, ...) stands at data + bytes of the type * (i * strides[0] + j * strides[1] + ...).
typedef struct red_tensor {
  void *data; // element (0, ..., 0); may be NULL where there is no element
  red_type type;
  int rank;               // 0 to 64
  const int64_t *shape;   // rank extents
  const int64_t *strides; // rank strides in elements, of any sign, 0 for inputs; NULL: row-major
} red_tensor;

// One argument of a launch: make it with a function below. It keeps the pointer, not a copy.
typedef struct red_argument {
  int kind; // internal
  union {
    const void *pointer;
    int64_t integer;
    double number;
  } value;
} red_argument;

static inline red_argument red_argument_of(int kind, const void *pointer) {
  red_argument argument;
  argument.kind = kind;
  argument.value.pointer = pointer;
  return argument;
}
static inline red_argument red_argument_of_integer(int kind, int64_t integer) {
  red_argument argument;
  argument.kind = kind;
  argument.value.integer = integer;
  return argument;
}
static inline red_argument red_of_tensor(const red_tensor *tensor) {
  return red_argument_of(0, tensor);
}
// A DLPack tensor: a DLTensor *, as dlpack.h declares it. Its device is checked.
static inline red_argument red_of_dltensor(const void *dltensor) {
  return red_argument_of(1, dltensor);
}
// A scalar of an integer type or bool; it must fit the type. A u64 above 2^63-1 is given as its bits.
static inline red_argument red_int(int64_t value) {
  return red_argument_of_integer(2, value);
}
// A scalar of a float type; it is rounded to the type.
static inline red_argument red_float(double value) {
  red_argument argument;
  argument.kind = 3;
  argument.value.number = value;
  return argument;
}
// A size that a launch must give (`n: size` in the kernel).
static inline red_argument red_size(int64_t value) {
  return red_argument_of_integer(4, value);
}
// A row-major tensor.
static inline red_tensor red_dense(void *data, red_type type, int rank, const int64_t *shape) {
  red_tensor tensor;
  tensor.data = data;
  tensor.type = type;
  tensor.rank = rank;
  tensor.shape = shape;
  tensor.strides = NULL;
  return tensor;
}

// ---- Launches ---------------------------------------------------------------------------------------------------------------------
//
// Arguments are given in the order of the kernel's declaration. Only the order among tensors (inputs, then outputs), among scalars and among sizes
// counts: rowscale(A, s) -> (B) may be launched with (A, s, B) or (A, B, s).

// Launches the kernel on the stream and returns without waiting for it. The first launch of a variant loads it, which takes milliseconds; later ones
// evaluate the plan and call cuLaunchKernel. Where the kernel needs workspace, it takes what the device keeps for the stream, which grows outside
// captures. A launch whose outputs have no element launches nothing; a reduced extent of 0 stores what the statement computes from the identity.
// Errors: COUNT to WORKSPACE, COMPILE (see red_compile_text), CAPTURING, WRONG_DEVICE, DRIVER, FAULT (the simulator; outputs may be written), MEMORY, INVALID, FORKED.
RED_API red_error red_launch(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count);

// Does all that a first launch with these arguments does, but the launch: compiles, loads, makes workspace for the stream, and one more for the next
// capture of the stream, so that a captured launch does not share it with others. Asks the driver which device each pointer belongs to. Not during
// a capture of the stream: CAPTURING. Errors: those of red_launch.
RED_API red_error red_prepare(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count);

// Bytes of workspace that a launch with these arguments needs; 0 for many. Pointers are looked at for their alignment only. Errors: those of red_launch.
RED_API red_error red_workspace_size(const red_kernel *kernel, const red_argument *arguments, size_t count, size_t *bytes);
// Initialises workspace of the caller on a stream: zeroes it. One that is used for one kernel with the same sizes needs it once, since launches leave
// their counters zero; before it is used for others, initialise it again. `data` is device memory, aligned to 256 bytes.
RED_API red_error red_workspace_init(red_device *device, red_stream stream, void *data, size_t bytes);
// red_launch with the caller's workspace, initialised, which no other launch may use before this one has ended.
RED_API red_error red_launch_with(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count, void *workspace, size_t bytes);
// Frees the workspace that the device keeps for its streams. All launches must have ended, and graphs captured with it must not be launched again.
RED_API red_error red_trim(red_device *device);

// What a launch with these arguments would do.
typedef struct red_choice {
  const char *schedule, *entry; // as red_describe_schedule has them
  int launches;                 // 0: there is nothing to do
  uint32_t grid[3], block[3];   // of the first launch
  uint32_t shared;              // bytes of dynamic shared memory of the first launch
  size_t workspace;             // bytes
  char notes[512];              // why entries before it were passed over, one a line
} red_choice;
// Errors: those of red_launch. Compiles where a launch would.
RED_API red_error red_choose(const red_kernel *kernel, const red_argument *arguments, size_t count, red_choice *choice);

// ---- Common cases -----------------------------------------------------------------------------------------------------------------

// [compiler] Y[i_perm[0], i_perm[1], ...] = X[i_0, i_1, ...]: dimension d of Y is dimension perm[d] of X, as NumPy's transpose has it. Any rank up to 64, any type, any
// strides; Y has X's type. Compiled once a rank, perm and type; then a launch like red_launch. Errors: INVALID (perm is no permutation), those of red_launch.
RED_API red_error red_permute(red_device *device, red_stream stream, const red_tensor *X, const red_tensor *Y, const int *perm);
// [compiler] Y = the reduction of X over `axes`, each once, from 0 (negative: from the end); Y has X's other dimensions in their order, or all with extent 1 where
// reduced. op: "sum", "prod", "min", "max", "any", "all", "and", "or", "xor", "mean". Y's type is X's, or a wider one to accumulate in (sums of
// i8 into i64); "mean" takes floats. Errors: INVALID (op or axes), TYPE, those of red_launch.
RED_API red_error red_reduce(red_device *device, red_stream stream, const char *op, const red_tensor *X, const red_tensor *Y, const int *axes,
                             int axis_count);
// The .red text that the two would compile, as a C string in `text`, cut to `bytes`; *length (may be NULL) is its whole length. In both libraries.
RED_API red_error red_permute_text(const red_tensor *X, const red_tensor *Y, const int *perm, char *text, size_t bytes, size_t *length);
RED_API red_error red_reduce_text(const char *op, const red_tensor *X, const red_tensor *Y, const int *axes, int axis_count, char *text, size_t bytes,
                                  size_t *length);

#ifdef __cplusplus
}
#endif

#endif
