// redc lift, the part that runs inside redc-clang: loop nests of C and C++ become programs of the language.
#ifndef RED_GRAMMAR_LIFT_H
#define RED_GRAMMAR_LIFT_H

#ifdef __cplusplus
extern "C" {
#endif

// The command: `argv` from "lift" on. Returns the exit status; prints the program on standard output.
int lift_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
