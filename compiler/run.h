// Subcommands that run kernels: redc run compiles a program and runs it on arguments; redc check runs any PTX
// in the simulator.
#ifndef RED_COMPILER_RUN_H
#define RED_COMPILER_RUN_H

// argv[0] is the subcommand's name. Return the exit status.
int redc_run(int argc, char **argv);
int redc_check(int argc, char **argv);

#endif
