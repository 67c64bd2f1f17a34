#include "runtime/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// An entry's file, all numbers little-endian: magic (8 bytes), version and number of fields (4 each), bytes
// of the key and of the value (8 each), the key (each field behind its length in 8 bytes), the value, and the
// checksum (8) of all before it.
enum { HEADER_BYTES = 32, CHECKSUM_BYTES = 8, FORMAT_VERSION = 1, TRIES = 4, USE_SECONDS = 3600 };
static const char magic[8] = "redcache";

// --- Hashing: SipHash-2-4 (Aumasson and Bernstein, 2012), with keys of our own

static uint64_t load64(const unsigned char *from) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | from[i];
  return value;
}

static void store(unsigned char *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t rotate(uint64_t x, int bits) {
  return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int count) {
  while (count--) {
    v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
    v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
  }
}

// The hash of the bytes; each `seed` is a function of its own.
static uint64_t sip(uint64_t seed, const unsigned char *data, size_t size) {
  uint64_t v[4] = {seed ^ 0x736f6d6570736575, ~seed ^ 0x646f72616e646f6d, seed ^ 0x6c7967656e657261,
                   ~seed ^ 0x7465646279746573};
  size_t whole = size & ~(size_t)7;
  for (size_t i = 0; i < whole; i += 8) {
    uint64_t word = load64(data + i);
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
  }
  uint64_t last = (uint64_t)size << 56;
  for (size_t i = whole; i < size; i++) last |= (uint64_t)data[i] << 8 * (i - whole);
  v[3] ^= last;
  sip_rounds(v, 2);
  v[0] ^= last;
  v[2] ^= 0xff;
  sip_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

// --- Keys

// The key as it stands in the file; NULL without memory.
static unsigned char *encode_key(const struct red_cache_key *key, size_t *size) {
  *size = 0;
  for (size_t i = 0; i < key->count; i++) *size += 8 + key->fields[i].size;
  unsigned char *bytes = malloc(*size ? *size : 1), *at = bytes;
  for (size_t i = 0; bytes && i < key->count; i++) {
    const struct red_cache_field *field = &key->fields[i];
    store(at, field->size, 8);
    if (field->size) memcpy(at + 8, field->data, field->size);
    at += 8 + field->size;
  }
  return bytes;
}

// The file of the key, and the folder that it is in: `path` holds the folder alone where it is cut at *slash.
static uint32_t name_entry(const struct cache_place *place, const unsigned char *key, size_t size,
                           char path[CACHE_PATH_BYTES], size_t *slash) {
  uint64_t high = sip(1, key, size), low = sip(2, key, size);
  uint32_t shard = (uint32_t)(high >> 56);
  *slash = (size_t)snprintf(path, CACHE_PATH_BYTES, "%s/v1/%02x", place->folder, shard);
  snprintf(path + *slash, CACHE_PATH_BYTES - *slash, "/%014llx%016llx",
           (unsigned long long)(high & 0xffffffffffffff), (unsigned long long)low);
  return shard;
}

// --- Reading

static int read_whole(int fd, unsigned char *to, size_t size) {
  while (size) {
    ssize_t got = read(fd, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return EBADMSG; // shorter than it was a moment ago
    to += got;
    size -= (size_t)got;
  }
  return 0;
}

// Are these the bytes of a whole entry? Fills in where its parts are.
static bool is_entry(struct cache_entry *entry, size_t size) {
  const unsigned char *bytes = entry->bytes;
  if (size < HEADER_BYTES + CHECKSUM_BYTES || memcmp(bytes, magic, sizeof magic) != 0) return false;
  size_t room = size - HEADER_BYTES - CHECKSUM_BYTES;
  uint64_t key_size = load64(bytes + 16), data_size = load64(bytes + 24);
  if (key_size > room || data_size != room - key_size) return false;
  if (load64(bytes + size - CHECKSUM_BYTES) != sip(3, bytes, size - CHECKSUM_BYTES)) return false;
  entry->field_count = (uint32_t)(load64(bytes + 8) >> 32);
  entry->key_at = HEADER_BYTES;
  entry->key_size = (size_t)key_size;
  entry->data_at = HEADER_BYTES + (size_t)key_size;
  entry->data_size = (size_t)data_size;
  return (uint32_t)load64(bytes + 8) == FORMAT_VERSION;
}

int cache_read(const char *path, bool marks_use, struct cache_entry *entry) {
  struct stat status;
  *entry = (struct cache_entry){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOTDIR ? ENOENT : errno;
  int error = fstat(fd, &status) ? errno : 0;
  size_t size = error ? 0 : (size_t)status.st_size;
  if (!error && !S_ISREG(status.st_mode)) error = EBADMSG;
  if (!error && !(entry->bytes = malloc(size + 1))) error = ENOMEM;
  if (!error) error = read_whole(fd, entry->bytes, size);
  if (!error && !is_entry(entry, size)) error = EBADMSG;
  if (!error && marks_use && time(NULL) - status.st_mtime > USE_SECONDS) futimens(fd, NULL);
  close(fd);
  if (!error) return 0;
  free(entry->bytes);
  entry->bytes = NULL;
  return error;
}

int red_cache_get(const struct red_cache_key *key, void **data, size_t *size) {
  struct cache_place place;
  char path[CACHE_PATH_BYTES];
  size_t key_size, slash;
  *data = NULL;
  *size = 0;
  cache_find(&place);
  if (place.mode == RED_CACHE_OFF) return ENOENT;
  unsigned char *wanted = encode_key(key, &key_size);
  if (!wanted) return ENOMEM;
  name_entry(&place, wanted, key_size, path, &slash);
  bool writes = place.mode == RED_CACHE_READ_WRITE;
  struct cache_entry entry;
  int error = cache_read(path, writes, &entry);
  if (error == EBADMSG) {
    if (writes) unlink(path); // what is rebuilt takes its place
    error = ENOENT;
  }
  if (!error && (entry.field_count != (uint32_t)key->count || entry.key_size != key_size ||
                 memcmp(entry.bytes + entry.key_at, wanted, key_size) != 0)) {
    free(entry.bytes); // another key with the same hash
    error = ENOENT;
  }
  free(wanted);
  if (error) {
    if (error != ENOENT) cache_warn("the cache cannot read '%s': %s", path, strerror(error));
    return error;
  }
  memmove(entry.bytes, entry.bytes + entry.data_at, entry.data_size);
  entry.bytes[entry.data_size] = 0;
  *data = entry.bytes;
  *size = entry.data_size;
  return 0;
}

// --- Writing

// Makes a folder and those above it, for the user alone. 0 or an errno.
static int make_folders(char *path) {
  for (char *at = path + 1; *at; at++) {
    if (*at != '/') continue;
    *at = 0;
    int error = mkdir(path, 0700) && errno != EEXIST ? errno : 0;
    *at = '/';
    if (error && error != EACCES && error != EROFS)
      return error; // a folder above may exist where it cannot be made
  }
  return mkdir(path, 0700) && errno != EEXIST ? errno : 0;
}

static int write_whole(int fd, const unsigned char *from, size_t size) {
  while (size) {
    ssize_t done = write(fd, from, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    from += done;
    size -= (size_t)done;
  }
  return 0;
}

// Writes the file beside its place and renames it there. The folder is path[0..slash).
static int publish(char path[CACHE_PATH_BYTES], size_t slash, const unsigned char *bytes, size_t size) {
  char beside[CACHE_PATH_BYTES];
  snprintf(beside, sizeof beside, "%.*s/tmp.XXXXXX", (int)slash, path);
  int fd = mkostemp(beside, O_CLOEXEC);
  if (fd < 0) return errno;
  int error = write_whole(fd, bytes, size);
  if (close(fd) && !error) error = errno;
  if (!error && rename(beside, path)) error = errno;
  if (error) unlink(beside);
  return error;
}

// The whole file of an entry; NULL without memory.
static unsigned char *encode_entry(size_t field_count, const unsigned char *key, size_t key_size,
                                   const void *data, size_t size, size_t *whole) {
  *whole = HEADER_BYTES + key_size + size + CHECKSUM_BYTES;
  unsigned char *bytes = malloc(*whole);
  if (!bytes) return NULL;
  memcpy(bytes, magic, sizeof magic);
  store(bytes + 8, FORMAT_VERSION, 4);
  store(bytes + 12, field_count, 4);
  store(bytes + 16, key_size, 8);
  store(bytes + 24, size, 8);
  if (key_size) memcpy(bytes + HEADER_BYTES, key, key_size);
  if (size) memcpy(bytes + HEADER_BYTES + key_size, data, size);
  store(bytes + *whole - CHECKSUM_BYTES, sip(3, bytes, *whole - CHECKSUM_BYTES), CHECKSUM_BYTES);
  return bytes;
}

int red_cache_put(const struct red_cache_key *key, const void *data, size_t size) {
  struct cache_place place;
  char path[CACHE_PATH_BYTES];
  size_t key_size, slash = 0, whole = 0;
  cache_find(&place);
  if (place.mode != RED_CACHE_READ_WRITE) return 0;
  unsigned char *encoded = encode_key(key, &key_size);
  unsigned char *bytes = encoded ? encode_entry(key->count, encoded, key_size, data, size, &whole) : NULL;
  int error = bytes ? 0 : ENOMEM;
  if (!error && whole > place.limit) error = EFBIG;
  if (!error) {
    uint32_t shard = name_entry(&place, encoded, key_size, path, &slash);
    error = publish(path, slash, bytes, whole);
    for (int i = 0; error == ENOENT && i < TRIES;
         i++) { // another process may remove the folder that was just made
      path[slash] = 0;
      error = make_folders(path);
      path[slash] = '/';
      if (!error) error = publish(path, slash, bytes, whole);
    }
    if (!error) cache_trim(&place, shard);
    if (error) cache_warn("the cache cannot write to '%s': %s", place.folder, strerror(error));
  }
  free(encoded);
  free(bytes);
  return error;
}
