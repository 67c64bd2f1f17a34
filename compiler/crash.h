// A fault of the compiler that ends the process: an assertion, a wild pointer, the backend's own abort.
#ifndef RED_COMPILER_CRASH_H
#define RED_COMPILER_CRASH_H

// From now on such a signal prints one line, which names the part that runs (*running, NULL: none) and asks
// for a report, and ends the process with status 3. NULL: as before the first call. For the program redc
// only: signals belong to the process.
void crash_watch(const char *volatile *running);

#endif
