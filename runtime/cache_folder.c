#include "runtime/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENTRY_DIGITS = 30, LEFTOVER_SECONDS = 3600 };
static const uint64_t DEFAULT_LIMIT = (uint64_t)1 << 30;

// --- The warning

enum { NOTHING_SAID, BEING_WRITTEN, READY, SAID };
static atomic_int warning_state;
static char warning_text[CACHE_PATH_BYTES + 256];

void cache_warn(const char *format, ...) {
  int expected = NOTHING_SAID;
  if (!atomic_compare_exchange_strong(&warning_state, &expected, BEING_WRITTEN)) return;
  va_list list;
  va_start(list, format);
  vsnprintf(warning_text, sizeof warning_text, format, list);
  va_end(list);
  atomic_store(&warning_state, READY);
}

const char *red_cache_warning(void) {
  int expected = READY;
  return atomic_compare_exchange_strong(&warning_state, &expected, SAID) ? warning_text : NULL;
}

// --- The environment

// "64M" as bytes; 0 where the text is no size.
static uint64_t parse_size(const char *text) {
  char *end;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  if (errno || end[shift != 0] || number > UINT64_MAX >> shift) return 0;
  return (uint64_t)number << shift;
}

static const char *value_of(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

void cache_find(struct cache_place *place) {
  const char *mode = value_of("RED_CACHE"), *own = value_of("RED_CACHE_DIR"),
             *xdg = value_of("XDG_CACHE_HOME"), *home = value_of("HOME"), *limit = value_of("RED_CACHE_SIZE");
  *place = (struct cache_place){.mode = RED_CACHE_READ_WRITE, .limit = DEFAULT_LIMIT};
  if (limit && !(place->limit = parse_size(limit))) {
    cache_warn("RED_CACHE_SIZE is '%s': a number of bytes that is not 0, with K, M or G behind it or not; "
               "the limit is 1G",
               limit);
    place->limit = DEFAULT_LIMIT;
  }
  if (mode && strcmp(mode, "rw") != 0) {
    place->mode = strcmp(mode, "ro") == 0 ? RED_CACHE_READ_ONLY : RED_CACHE_OFF;
    if (place->mode == RED_CACHE_OFF && strcmp(mode, "off") != 0)
      cache_warn("RED_CACHE is '%s': it may be off, ro or rw; nothing is cached", mode);
  }
  int length = 0;
  if (own)
    length = snprintf(place->folder, sizeof place->folder, "%s", own);
  else if (xdg && *xdg == '/')
    length = snprintf(place->folder, sizeof place->folder, "%s/red", xdg);
  else if (home && *home == '/')
    length = snprintf(place->folder, sizeof place->folder, "%s/.cache/red", home);
  if (length && length < (int)sizeof place->folder) return;
  if (place->mode != RED_CACHE_OFF)
    cache_warn(length ? "the name of the cache's folder is too long: nothing is cached"
                      : "there is no folder for the cache (none of RED_CACHE_DIR, XDG_CACHE_HOME and HOME is "
                        "set): nothing is cached");
  place->mode = RED_CACHE_OFF;
  place->folder[0] = 0;
}

// --- Walking

static bool kind_of(const char *name, enum cache_file_kind *kind) {
  *kind = strncmp(name, "tmp.", 4) == 0 ? CACHE_LEFTOVER : CACHE_ENTRY;
  return *kind == CACHE_LEFTOVER || (strspn(name, "0123456789abcdef") == ENTRY_DIGITS && !name[ENTRY_DIGITS]);
}

bool cache_walk_shard(const struct cache_place *place, uint32_t shard, cache_visit *visit, void *closure) {
  char path[CACHE_PATH_BYTES];
  int length = snprintf(path, sizeof path, "%s/v1/%02x", place->folder, shard);
  DIR *folder = opendir(path);
  bool goes_on = true;
  if (!folder) return true;
  for (struct dirent *found; goes_on && (found = readdir(folder));) {
    enum cache_file_kind kind;
    struct stat status;
    if (!kind_of(found->d_name, &kind)) continue;
    if (snprintf(path + length, sizeof path - (size_t)length, "/%s", found->d_name) >=
        (int)sizeof path - length)
      continue;
    if (lstat(path, &status) || !S_ISREG(status.st_mode)) continue; // gone already, or not ours
    goes_on = visit(closure, path, kind, &status);
  }
  closedir(folder);
  return goes_on;
}

bool cache_walk(const struct cache_place *place, cache_visit *visit, void *closure) {
  for (uint32_t i = 0; i < CACHE_SHARDS; i++)
    if (!cache_walk_shard(place, i, visit, closure)) return false;
  return true;
}

// --- Counting and cleaning

struct scan {
  struct red_cache_stats *stats;
  bool check;
};

static bool count_file(void *closure, const char *path, enum cache_file_kind kind,
                       const struct stat *status) {
  struct scan *scan = closure;
  if (kind == CACHE_LEFTOVER) {
    scan->stats->leftover++;
    return true;
  }
  scan->stats->entries++;
  scan->stats->bytes += (uint64_t)status->st_size;
  struct cache_entry entry;
  if (!scan->check) return true;
  int error = cache_read(path, false, &entry);
  scan->stats->damaged += error && error != ENOENT;
  free(entry.bytes);
  return true;
}

int red_cache_scan(bool check, struct red_cache_stats *stats) {
  struct cache_place place;
  cache_find(&place);
  *stats = (struct red_cache_stats){.mode = place.mode, .limit = place.limit};
  snprintf(stats->folder, sizeof stats->folder, "%s", place.folder);
  if (!place.folder[0]) return 0;
  struct stat status;
  if (stat(place.folder, &status)) return errno == ENOENT ? 0 : errno;
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  if (access(place.folder, R_OK | X_OK)) return errno;
  cache_walk(&place, count_file, &(struct scan){stats, check});
  return 0;
}

struct cleaning {
  uint64_t removed;
  int error;
};

static bool remove_file(void *closure, const char *path, enum cache_file_kind kind,
                        const struct stat *status) {
  struct cleaning *cleaning = closure;
  (void)kind, (void)status;
  if (unlink(path) == 0)
    cleaning->removed++;
  else if (errno != ENOENT && !cleaning->error)
    cleaning->error = errno;
  return true;
}

int red_cache_clean(uint64_t *removed) {
  struct cache_place place;
  struct cleaning cleaning = {0};
  char path[CACHE_PATH_BYTES];
  cache_find(&place);
  *removed = 0;
  if (!place.folder[0]) return 0;
  cache_walk(&place, remove_file, &cleaning);
  for (uint32_t i = 0; i < CACHE_SHARDS; i++) {
    snprintf(path, sizeof path, "%s/v1/%02x", place.folder, i);
    rmdir(path); // only if it is empty
  }
  snprintf(path, sizeof path, "%s/v1", place.folder);
  rmdir(path);
  *removed = cleaning.removed;
  return cleaning.error;
}

// --- Keeping the limit

struct old_file {
  struct timespec used;
  uint64_t bytes;
  char *path;
};
struct trimming {
  struct old_file *files;
  size_t count, room;
  uint64_t bytes;
};

static bool add_bytes(void *closure, const char *path, enum cache_file_kind kind, const struct stat *status) {
  (void)path, (void)kind;
  *(uint64_t *)closure += (uint64_t)status->st_size;
  return true;
}

// Lists the entries; removes what killed processes left long ago.
static bool list_file(void *closure, const char *path, enum cache_file_kind kind, const struct stat *status) {
  struct trimming *t = closure;
  if (kind == CACHE_LEFTOVER) {
    if (time(NULL) - status->st_mtime > LEFTOVER_SECONDS) unlink(path);
    return true;
  }
  if (t->count == t->room) {
    size_t room = t->room ? 2 * t->room : 256;
    struct old_file *more = realloc(t->files, room * sizeof *more);
    if (!more) return false;
    t->files = more;
    t->room = room;
  }
  struct old_file file = {status->st_mtim, (uint64_t)status->st_size, strdup(path)};
  if (!file.path) return false;
  t->files[t->count++] = file;
  t->bytes += file.bytes;
  return true;
}

static int older_first(const void *left, const void *right) {
  const struct old_file *a = left, *b = right;
  if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
  return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

// The whole cache is looked at only where the shard holds more than its share of the limit: names are hashes,
// so the shards grow alike. It is cut to three quarters of the limit, so that this is rare.
void cache_trim(const struct cache_place *place, uint32_t shard) {
  uint64_t bytes = 0;
  cache_walk_shard(place, shard, add_bytes, &bytes);
  if (bytes <= place->limit / CACHE_SHARDS) return;
  struct trimming t = {0};
  bool whole = cache_walk(place, list_file, &t);
  if (whole && t.bytes > place->limit) {
    qsort(t.files, t.count, sizeof *t.files, older_first);
    uint64_t goal = place->limit / 4 * 3;
    for (size_t i = 0; i + 1 < t.count && t.bytes > goal; i++) {
      unlink(t.files[i].path);
      t.bytes -= t.files[i].bytes;
    }
  }
  for (size_t i = 0; i < t.count; i++) free(t.files[i].path);
  free(t.files);
}
