// The first compilation of a process finds none of the compiler's pages mapped: 160 page faults, which cost 3 to 5 ms of 12 to 17 on a virtual machine with an H200.
// While the first device is opened, which takes the driver longer than that, a thread reads a byte of each page.
//
// In libred alone: device.c's hook is set as the library is loaded. The thread runs nothing but this file and has ended when red_open returns.
#include "runtime/device.h"

#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SEGMENTS = 8 };

static struct {
  const volatile char *from[MOST_SEGMENTS]; // what of the library is read alone
  size_t bytes[MOST_SEGMENTS];
  uint32_t count;
  atomic_bool is_running;
  pid_t process; // of the thread: a child of fork() has none
  pthread_t thread;
} warm;

// The library that this variable is in. Nothing is touched here, under the loader's lock.
static int find_segments(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size;
  (void)unused;
  const ElfW(Addr) here = (ElfW(Addr))(void *)&warm;
  bool is_it = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    is_it |= segment->p_type == PT_LOAD && here - info->dlpi_addr - segment->p_vaddr < segment->p_memsz;
  }
  for (int i = 0; i < info->dlpi_phnum && is_it && warm.count < MOST_SEGMENTS; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & (PF_R | PF_W)) != PF_R) continue;
    warm.from[warm.count] = (const volatile char *)(info->dlpi_addr + segment->p_vaddr); // NOLINT: an address
    warm.bytes[warm.count++] = segment->p_filesz;
  }
  return is_it;
}

__attribute__((no_sanitize_address)) static void *touch(void *unused) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (uint32_t i = 0; i < warm.count; i++)
    for (size_t at = 0; at < warm.bytes[i]; at += page) (void)warm.from[i][at];
  return unused;
}

// Without a thread the first compilation takes longer, and that is all. Signals are for the host's own threads.
static void start(void) {
  sigset_t all, before;
  const char *wanted = getenv("RED_WARM");
  if ((wanted && strcmp(wanted, "0") == 0) || sysconf(_SC_NPROCESSORS_ONLN) < 2) return;
  warm.process = getpid();
  dl_iterate_phdr(find_segments, NULL);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  warm.is_running = pthread_create(&warm.thread, NULL, touch, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void opens(bool is_open) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!is_open)
    pthread_once(&once, start);
  else if (warm.process == getpid() && atomic_exchange(&warm.is_running, false))
    pthread_join(warm.thread, NULL);
}

static void __attribute__((constructor)) set_hook(void) { device_opens = opens; }
