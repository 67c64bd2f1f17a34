// Outputs of a launch against the reference.
#ifndef RED_COMPILER_RUN_VERIFY_H
#define RED_COMPILER_RUN_VERIFY_H

#include "compiler/run_program.h"

// What the outputs must be; zeroed at first.
struct expectation {
  struct buffer *want, *wide; // one a tensor; those of inputs are not used
  struct buffer *turned;      // the same; NULL where nothing rounds
  uint64_t steps;             // evaluations of all statements; 0: the reference has not run
  bool has_turned;            // it has run the other way too
};

// Keeps the outputs as they are before the launch, for the reference to write to. verify_end is needed in any
// case.
bool verify_begin(struct run_program *program, struct expectation *expectation);
// Compares the outputs in the program's buffers; the reference runs at the first call. False after an error
// that shows the worst element.
bool verify_outputs(struct run_program *program, struct expectation *expectation);
void verify_end(struct run_program *program, struct expectation *expectation);

// As it is written; with floats in f64 between loads and stores; with reductions from their last element to the first.
enum verify_way { VERIFY_PLAIN, VERIFY_WIDE, VERIFY_TURNED };
// Runs the reference on `buffers`, one a tensor.
bool verify_reference(struct run_program *program, const struct buffer *const *buffers, enum verify_way way,
                      uint64_t *elements);

#endif
