// A line on the terminal while something takes long: what is done, and for how many seconds. Nothing where
// standard error is no terminal, or in the first two seconds.
#ifndef RED_COMPILER_RUN_PROGRESS_H
#define RED_COMPILER_RUN_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
  const char *what;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_running, ends;
  uint64_t elements; // done so far; 0: not known
};
void progress_begin(struct progress *progress, const char *what);
void progress_update(uint64_t elements, void *progress);
void progress_end(struct progress *progress);

#endif
