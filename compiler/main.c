#include "compiler/driver.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

// Opens what the caller left closed of the three standard descriptors, so that no file of ours becomes one of
// them; the wrong way round, so that using it is still an error.
static void fill_descriptors(void) {
  for (;;) {
    int fd = open("/dev/null", O_WRONLY);
    if (fd == STDIN_FILENO) continue;
    if (fd >= 0) close(fd);
    if (fd != STDOUT_FILENO && fd != STDERR_FILENO) return;
    if (open("/dev/null", O_RDONLY) != fd) return;
  }
}

int main(int argc, char **argv) {
  fill_descriptors();
  signal(SIGPIPE, SIG_IGN); // a write that fails says so
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL); // or the status of tools is lost
  return driver_main(argc, argv);
}
