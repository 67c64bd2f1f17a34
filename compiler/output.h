// Writing files whole or not at all.
#ifndef RED_COMPILER_OUTPUT_H
#define RED_COMPILER_OUTPUT_H

#include "compiler/diag.h"

// Writes `length` bytes to a file; path "-" is standard output. The bytes go to a temporary file in the same
// folder, which is flushed to the disk and renamed: whoever looks at `path` sees the old content or the new
// one, never a part, and after an error the old content with nothing left beside it. A file that exists keeps
// its permissions, and must be writable; a new one gets those of the umask. A symbolic link is followed.
// Devices, pipes and the like are written directly. A failure is reported as ERROR_FILE with the system's
// message; only a broken pipe at standard output is silent.
bool output_write(struct diag *diag, const char *path, const char *data, size_t length);

// Writes to an open descriptor until all is written. Returns 0, or the errno.
int output_write_all(int fd, const char *data, size_t length);

// Whether both paths name one existing file.
bool output_is_same_file(const char *path, const char *other);

#endif
