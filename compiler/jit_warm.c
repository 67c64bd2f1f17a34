// The first compilation of a process finds none of the compiler's pages mapped: 160 page faults, which cost 3 to 5 ms of 12 to 17 on a virtual machine with an H200.
// While the first device is opened, which takes the driver longer than that, a thread reads a byte of each page.
//
// In libred alone: device.c's hook is set as the library is loaded. The thread runs nothing but this file and ends by itself; unloading the library waits for it.
#include "runtime/device.h"

#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  bool is_running;
  pid_t process; // of the thread: a child of fork() has none
  pthread_t thread;
} warm;

__attribute__((no_sanitize_address)) static int touch_library(struct dl_phdr_info *info, size_t size, void *page) {
  (void)size;
  const ElfW(Addr) here = (ElfW(Addr))(void *)&warm;
  bool is_it = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    is_it |= segment->p_type == PT_LOAD && here - info->dlpi_addr - segment->p_vaddr < segment->p_memsz;
  }
  for (int i = 0; i < info->dlpi_phnum && is_it; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & (PF_R | PF_W)) != PF_R) continue;
    const volatile char *from = (const volatile char *)(info->dlpi_addr + segment->p_vaddr); // NOLINT: an address
    for (size_t at = 0; at < segment->p_filesz; at += *(const size_t *)page) (void)from[at];
  }
  return is_it;
}

static void *touch(void *unused) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  dl_iterate_phdr(touch_library, &page);
  return unused;
}

// Without a thread the first compilation takes longer, and that is all. Signals are for the host's own threads.
static void start(void) {
  sigset_t all, before;
  const char *wanted = getenv("RED_WARM");
  if ((wanted && strcmp(wanted, "0") == 0) || sysconf(_SC_NPROCESSORS_ONLN) < 2) return;
  warm.process = getpid();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  warm.is_running = pthread_create(&warm.thread, NULL, touch, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void start_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
}

static void __attribute__((constructor)) set_hook(void) { device_opens = start_once; }

static void __attribute__((destructor)) end(void) {
  if (warm.is_running && warm.process == getpid()) pthread_join(warm.thread, NULL);
}
