// Address spaces: allocations in slots of 2^40 addresses each, backed by pages that the host provides when
// touched.
#include "runtime/sim/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT 512u

void *sim_pages_map(uint64_t bytes) {
  if (bytes == 0) bytes = 1;
  if (bytes > SIZE_MAX / 2) return NULL;
  void *memory =
      mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void sim_pages_unmap(void *memory, uint64_t bytes) {
  if (memory) munmap(memory, bytes ? (size_t)bytes : 1);
}

struct sim_memory *sim_memory_create(void) {
  struct sim_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return NULL;
  memory->slot_count = 1; // slot 0 holds the windows of the other spaces
  memory->slots = calloc(16, sizeof *memory->slots);
  memory->slot_room = 16;
  if (!memory->slots) {
    free(memory);
    return NULL;
  }
  return memory;
}

// Gives an allocation's memory back; the record stays, so that later accesses can be explained.
static void release(struct sim_allocation *allocation) {
  if (!allocation->is_live) return;
  if (!allocation->is_mapped) sim_pages_unmap(allocation->host, allocation->bytes);
  sim_pages_unmap(allocation->written, allocation->bytes);
  sim_shadow_free(&allocation->shadow);
  allocation->is_live = false;
}

void sim_memory_destroy(struct sim_memory *memory) {
  if (!memory) return;
  for (uint32_t i = 0; i < memory->slot_count; i++) {
    if (!memory->slots[i]) continue;
    release(memory->slots[i]);
    free(memory->slots[i]->name);
    free(memory->slots[i]);
  }
  for (size_t i = 0; i < memory->module_count; i++) free(memory->modules[i].addresses);
  free(memory->modules);
  free(memory->slots);
  free(memory);
}

static struct sim_allocation *allocate(struct sim_memory *memory, void *host, uint64_t bytes,
                                       const char *name, bool is_initialised) {
  if (bytes > SIM_SLOT_LIMIT - ALIGNMENT || memory->slot_count == UINT32_MAX >> 8) return NULL;
  if (memory->slot_count == memory->slot_room) {
    uint32_t room = 2 * memory->slot_room;
    struct sim_allocation **grown = realloc(memory->slots, room * sizeof *grown);
    if (!grown) return NULL;
    memory->slots = grown;
    memory->slot_room = room;
  }
  struct sim_allocation *allocation = calloc(1, sizeof *allocation);
  if (!allocation) return NULL;
  allocation->base =
      ((uint64_t)memory->slot_count << SIM_SLOT_BITS) + SIM_SLOT_START + ((uintptr_t)host & (ALIGNMENT - 1));
  allocation->bytes = bytes;
  allocation->is_mapped = host != NULL;
  allocation->is_live = true;
  allocation->host = host ? host : sim_pages_map(bytes);
  allocation->name = name ? strdup(name) : NULL;
  if (!is_initialised) allocation->written = sim_pages_map(bytes);
  bool is_whole = allocation->host && (!name || allocation->name) &&
                  (is_initialised || allocation->written) && sim_shadow_create(&allocation->shadow, bytes);
  if (!is_whole) {
    release(allocation);
    free(allocation->name);
    free(allocation);
    return NULL;
  }
  memory->slots[memory->slot_count++] = allocation;
  return allocation;
}

uint64_t sim_alloc(struct sim_memory *memory, uint64_t bytes, const char *name, bool is_initialised) {
  struct sim_allocation *allocation = allocate(memory, NULL, bytes, name, is_initialised);
  return allocation ? allocation->base : 0;
}

uint64_t sim_map(struct sim_memory *memory, void *host, uint64_t bytes, const char *name,
                 bool is_initialised) {
  static unsigned char nothing[1];
  struct sim_allocation *allocation =
      allocate(memory, host ? host : nothing, host ? bytes : 0, name, is_initialised);
  return allocation ? allocation->base : 0;
}

bool sim_free(struct sim_memory *memory, uint64_t address) {
  struct sim_allocation *allocation = sim_slot(memory, address);
  if (!allocation || !allocation->is_live || allocation->base != address) return false;
  release(allocation);
  return true;
}

static struct sim_allocation *find(const struct sim_memory *memory, uint64_t address, uint64_t bytes) {
  struct sim_allocation *allocation = sim_slot(memory, address);
  if (!allocation || !allocation->is_live || address < allocation->base) return NULL;
  uint64_t offset = address - allocation->base;
  return offset <= allocation->bytes && bytes <= allocation->bytes - offset ? allocation : NULL;
}

bool sim_mark(struct sim_memory *memory, uint64_t address, uint64_t bytes, bool is_initialised) {
  struct sim_allocation *allocation = find(memory, address, bytes);
  if (!allocation) return false;
  if (!allocation->written) {
    if (is_initialised || bytes == 0) return true;
    allocation->written = sim_pages_map(allocation->bytes);
    if (!allocation->written) return false;
    memset(allocation->written, 1, allocation->bytes);
  }
  uint64_t offset = address - allocation->base;
  if (is_initialised && offset == 0 && bytes == allocation->bytes) {
    sim_pages_unmap(allocation->written, allocation->bytes);
    allocation->written = NULL;
    return true;
  }
  memset(allocation->written + offset, is_initialised ? 1 : 0, bytes);
  return true;
}

bool sim_write(struct sim_memory *memory, uint64_t address, const void *source, uint64_t bytes) {
  struct sim_allocation *allocation = find(memory, address, bytes);
  if (!allocation) return false;
  if (bytes) memcpy(allocation->host + (address - allocation->base), source, bytes);
  return sim_mark(memory, address, bytes, true);
}

bool sim_read(struct sim_memory *memory, uint64_t address, void *target, uint64_t bytes) {
  struct sim_allocation *allocation = find(memory, address, bytes);
  if (!allocation) return false;
  if (bytes) memcpy(target, allocation->host + (address - allocation->base), bytes);
  return true;
}

bool sim_fill(struct sim_memory *memory, uint64_t address, int value, uint64_t bytes) {
  struct sim_allocation *allocation = find(memory, address, bytes);
  if (!allocation) return false;
  if (bytes) memset(allocation->host + (address - allocation->base), value, bytes);
  return sim_mark(memory, address, bytes, true);
}

uint64_t sim_initialised(const struct sim_memory *memory, uint64_t address, uint64_t bytes) {
  const struct sim_allocation *allocation = find(memory, address, bytes);
  if (!allocation) return 0;
  if (!allocation->written) return bytes;
  const unsigned char *written = allocation->written + (address - allocation->base);
  uint64_t count = 0;
  for (uint64_t i = 0; i < bytes; i++) count += written[i] == 1;
  return count;
}

void *sim_host(struct sim_memory *memory, uint64_t address, uint64_t bytes) {
  struct sim_allocation *allocation = find(memory, address, bytes);
  return allocation ? allocation->host + (address - allocation->base) : NULL;
}

// ---- Variables of modules
// ----------------------------------------------------------------------------------

const uint64_t *sim_memory_link(struct sim_memory *memory, const struct sim_module *module) {
  for (size_t i = 0; i < memory->module_count; i++) {
    if (memory->modules[i].module == module) return memory->modules[i].addresses;
  }
  uint64_t *addresses = calloc(module->variable_count + 1, sizeof *addresses);
  struct sim_memory_module *grown = realloc(memory->modules, (memory->module_count + 1) * sizeof *grown);
  if (grown) memory->modules = grown;
  if (!addresses || !grown) {
    free(addresses);
    return NULL;
  }
  for (size_t i = 0; i < module->variable_count; i++) {
    const struct sim_variable *variable = &module->variables[i];
    if (variable->space == SIM_SPACE_SHARED) continue;
    struct sim_allocation *allocation = allocate(memory, NULL, variable->bytes, variable->name, true);
    if (!allocation) {
      free(addresses);
      return NULL;
    }
    allocation->is_constant = variable->space == SIM_SPACE_CONST;
    if (variable->initial_bytes) memcpy(allocation->host, variable->initial, variable->initial_bytes);
    addresses[i] = allocation->base;
  }
  for (size_t i = 0; i < module->variable_count; i++) {
    const struct sim_variable *variable = &module->variables[i];
    for (size_t k = 0; k < variable->fixup_count; k++) {
      const struct sim_fixup *fixup = &variable->fixups[k];
      uint64_t value = addresses[fixup->variable] + fixup->addend;
      memcpy(sim_slot(memory, addresses[i])->host + fixup->offset, &value, 8);
    }
  }
  memory->modules[memory->module_count++] = (struct sim_memory_module){module, addresses};
  return addresses;
}

uint64_t sim_module_variable(struct sim_memory *memory, const struct sim_module *module, const char *name,
                             uint64_t *bytes) {
  const uint64_t *addresses = sim_memory_link(memory, module);
  if (!addresses) return 0;
  for (size_t i = 0; i < module->variable_count; i++) {
    const struct sim_variable *variable = &module->variables[i];
    if (variable->space == SIM_SPACE_SHARED || strcmp(variable->name, name) != 0) continue;
    if (bytes) *bytes = variable->bytes;
    return addresses[i];
  }
  return 0;
}
