// Which build of the compiler this is: the build identifier that the linker put into the file that this code was loaded from.
#include "compiler/jit.h"

#include "red_version.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { IDENTITY_BYTES = 128, MAX_ID = 32 };
static char identity[IDENTITY_BYTES];

// The identifier in a segment of notes; NULL: none.
static const uint8_t *find_id(const char *notes, size_t bytes, uint32_t *id_bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    const ElfW(Nhdr) *note = (const void *)notes;
    size_t name = (note->n_namesz + 3u) & ~(size_t)3, value = (note->n_descsz + 3u) & ~(size_t)3;
    if (name > bytes || value > bytes || sizeof *note + name + value > bytes) return NULL;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(note + 1, "GNU", 4) == 0) {
      *id_bytes = note->n_descsz;
      return (const uint8_t *)(note + 1) + name;
    }
    notes += sizeof *note + name + value;
    bytes -= sizeof *note + name + value;
  }
  return NULL;
}

static bool holds_this_code(const struct dl_phdr_info *info) {
  ElfW(Addr) here = (ElfW(Addr))(uintptr_t)identity;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    ElfW(Addr) start = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && here >= start && here < start + segment->p_memsz) return true;
  }
  return false;
}

static int look(struct dl_phdr_info *info, size_t size, void *state) {
  (void)size, (void)state;
  if (!holds_this_code(info)) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uint32_t bytes = 0;
    if (segment->p_type != PT_NOTE) continue;
    const uint8_t *id = find_id((const char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz, &bytes);
    size_t used = strlen(identity);
    for (uint32_t b = 0; id && b < bytes && b < MAX_ID; b++) used += (size_t)snprintf(identity + used, sizeof identity - used, "%02x", id[b]);
    if (id) break;
  }
  return 1;
}

static void find(void) {
  snprintf(identity, sizeof identity, "llvm %d ", RED_LLVM_VERSION);
  dl_iterate_phdr(look, NULL);
}

const char *jit_identity(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find);
  return identity;
}
