// redc inspect, the part that runs inside redc-clang.
#ifndef RED_CODEGEN_INSPECT_H
#define RED_CODEGEN_INSPECT_H

#ifdef __cplusplus
extern "C" {
#endif

// The command: `argv` from "inspect" on. Returns the exit status; prints on standard output and standard error.
int inspect_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
