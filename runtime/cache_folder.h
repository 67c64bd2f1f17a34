// Inside the disk cache: where it is, what its files are named, and walking over them. For runtime/cache*.c
// alone.
#ifndef RED_RUNTIME_CACHE_FOLDER_H
#define RED_RUNTIME_CACHE_FOLDER_H

#include "runtime/cache.h"

#include <sys/stat.h>

enum { CACHE_PATH_BYTES = 4096, CACHE_SHARDS = 256 };

// What the environment says, read anew by each call of the cache.
struct cache_place {
  enum red_cache_mode mode;
  uint64_t limit;
  char folder[CACHE_PATH_BYTES - 64]; // room for "/v1/ab/<name>" behind it; "" only where mode is OFF
};
void cache_find(struct cache_place *place);

// Keeps the first sentence for red_cache_warning.
__attribute__((format(printf, 1, 2))) void cache_warn(const char *format, ...);

// An entry is FOLDER/v1/ab/<30 hexadecimal digits>, a file being written FOLDER/v1/ab/tmp.XXXXXX.
enum cache_file_kind { CACHE_ENTRY, CACHE_LEFTOVER };

// Calls `visit` for each file of the cache in one shard. Returns false where the visit did.
typedef bool cache_visit(void *closure, const char *path, enum cache_file_kind kind,
                         const struct stat *status);
bool cache_walk_shard(const struct cache_place *place, uint32_t shard, cache_visit *visit, void *closure);
bool cache_walk(const struct cache_place *place, cache_visit *visit, void *closure);

// After an entry was stored in the shard: where the cache has outgrown its limit, removes the entries that
// were not used for longest.
void cache_trim(const struct cache_place *place, uint32_t shard);

// A whole file as it was read. The caller frees `bytes`, which end with a zero that no size counts.
struct cache_entry {
  unsigned char *bytes;
  size_t key_at, key_size, data_at, data_size;
  uint32_t field_count;
};
// Reads a file and checks that it is an entry. 0; ENOENT; EBADMSG where it is damaged; or another errno.
// marks_use: the file's time becomes now, if it is older than an hour, so that what is used is not trimmed.
int cache_read(const char *path, bool marks_use, struct cache_entry *entry);

#endif
