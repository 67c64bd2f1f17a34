// The disk cache: what was compiled once (PTX from source, cubins from PTX) is found again by the next
// process.
//
// One file an entry, under $RED_CACHE_DIR, else $XDG_CACHE_HOME/red, else $HOME/.cache/red, spread over 256
// folders. An entry holds its whole key and a checksum, and is published by rename: any number of processes
// read and write at once, a process may be killed anywhere, and a damaged entry is a miss that is removed.
// Nothing is ever waited for.
//
// RED_CACHE=rw (as if unset) reads and writes, ro only reads, off does neither. RED_CACHE_SIZE limits the
// whole, in bytes or with K, M or G behind the number (default 1G): where it is passed, the entries that were
// not used for longest go. The environment is read at each call.
//
// Thread rule: every function may be called from any thread at any time. No function fails in a way that a
// caller must handle: without a cache a program is slower, not wrong. What went wrong is told once, by
// red_cache_warning.
#ifndef RED_RUNTIME_CACHE_H
#define RED_RUNTIME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A key is a list of fields, each any bytes. Two keys are equal where they have as many fields and each field
// is equal, so {"ab", "c"} is not
// {"a", "bc"}. Put in whatever changes the value: the source, the options, the architecture, the versions of
// compiler and driver.
struct red_cache_field {
  const void *data;
  size_t size;
};
struct red_cache_key {
  const struct red_cache_field *fields;
  size_t count;
};

// The value stored under the key. 0: *data is a copy, which the caller frees (never NULL, and followed by a
// zero byte that *size does not count, so text can be used as it is). Otherwise an errno, and *data is NULL:
// ENOENT where there is no such entry, or the cache is off.
int red_cache_get(const struct red_cache_key *key, void **data, size_t *size);

// Stores a value under the key, in place of what was there. 0, also where the cache is off or only read;
// otherwise an errno. EFBIG: larger than the whole cache may be.
int red_cache_put(const struct red_cache_key *key, const void *data, size_t size);

// The first thing that went wrong with the cache in this process (no home, a folder that cannot be written, a
// bad RED_CACHE), as a sentence that lives as long as the process; NULL where nothing did, or where the
// sentence was already given: each is told once.
const char *red_cache_warning(void);

// --- For `redc cache`

enum red_cache_mode { RED_CACHE_OFF, RED_CACHE_READ_ONLY, RED_CACHE_READ_WRITE };

struct red_cache_stats {
  char folder[4096]; // "" where there is none
  enum red_cache_mode mode;
  uint64_t limit;   // bytes
  uint64_t entries; // files, and their bytes
  uint64_t bytes;
  uint64_t damaged;  // of the entries, those whose checksum is wrong (only where asked for)
  uint64_t leftover; // files that a killed process left behind
};

// Counts what is in the cache; with `check`, also reads every entry and counts the damaged. 0 or an errno; a
// folder that does not exist is empty.
int red_cache_scan(bool check, struct red_cache_stats *stats);

// Removes all entries and leftovers, and the folders that become empty; files that are not the cache's stay.
// *removed counts files. 0 or the errno of the first file that could not be removed.
int red_cache_clean(uint64_t *removed);

#endif
