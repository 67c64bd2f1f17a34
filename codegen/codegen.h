// Every way out of the compiler.
#ifndef RED_CODEGEN_CODEGEN_H
#define RED_CODEGEN_CODEGEN_H

#include "compiler/pass.h"

// codegen/cuda.c: the module (all entries at LEVEL_PROGRAM) as CUDA source that a person reads; compiles with
// nvcc and NVRTC without a warning and needs no header. lines, when not NULL, gets one struct range (arena) a
// line of output; line 0: no origin.
bool codegen_cuda(struct pass_context *context, struct text *out, struct list *lines);

enum nvptx_output { NVPTX_PTX, NVPTX_LLVM };
// codegen/nvptx.c: PTX, or LLVM IR after optimisation, of the module. Never calls exit or abort on bad input;
// a refusal by LLVM is reported as ERROR_BACKEND.
bool codegen_nvptx(struct pass_context *context, enum nvptx_output output, struct text *out);
// "LLVM 19.1.7", for --version.
const char *codegen_llvm_version(void);

#endif
