#include "runtime/cache.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Each test has a folder of its own.
static char folder[32];

static void begin(void) {
  snprintf(folder, sizeof folder, "/tmp/red-cache-XXXXXX");
  cr_assert(mkdtemp(folder));
  setenv("RED_CACHE_DIR", folder, 1);
  unsetenv("RED_CACHE");
  unsetenv("RED_CACHE_SIZE");
}

static void end(void) {
  char command[128];
  snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(cache, .init = begin, .fini = end, .timeout = 60);

// A key of texts.
struct text_key {
  struct red_cache_field fields[8];
  struct red_cache_key key;
};
static struct red_cache_key *key_of(struct text_key *k, size_t count, const char *const *texts) {
  for (size_t i = 0; i < count; i++) k->fields[i] = (struct red_cache_field){texts[i], strlen(texts[i])};
  k->key = (struct red_cache_key){k->fields, count};
  return &k->key;
}
#define KEY(...)                                                                                             \
  key_of(&(struct text_key){0}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                      \
         (const char *[]){__VA_ARGS__})

static void put(const struct red_cache_key *key, const char *text) {
  cr_expect_eq(red_cache_put(key, text, strlen(text)), 0);
}
// The value under the key, or "-"; good until the next call.
static const char *get(const struct red_cache_key *key) {
  static char text[256];
  void *data;
  size_t size;
  int error = red_cache_get(key, &data, &size);
  cr_expect_eq(error == 0, data != NULL);
  if (!data) return "-";
  cr_expect_eq(((char *)data)[size], 0);
  snprintf(text, sizeof text, "%s", (char *)data);
  free(data);
  return text;
}

static uint64_t entries(void) {
  struct red_cache_stats stats;
  cr_assert_eq(red_cache_scan(true, &stats), 0);
  cr_expect_eq(stats.damaged, 0);
  return stats.entries;
}

// The only entry's file.
static void find_file(char path[512]) {
  char command[128];
  snprintf(command, sizeof command, "find %s -type f", folder);
  FILE *found = popen(command, "r");
  cr_assert(found && fgets(path, 512, found));
  path[strcspn(path, "\n")] = 0;
  pclose(found);
}

Test(cache, gives_back_what_was_put) {
  put(KEY("a", "b"), "value");
  cr_expect_str_eq(get(KEY("a", "b")), "value");
  put(KEY("a", "b"), "newer");
  cr_expect_str_eq(get(KEY("a", "b")), "newer");
  put(KEY("empty"), "");
  cr_expect_str_eq(get(KEY("empty")), "");
  cr_expect_eq(entries(), 2);
  cr_expect_null(red_cache_warning());
}

Test(cache, every_field_of_a_key_matters) {
  const char *fields[] = {"source", "-D m=11", "sm_90", "red 0.1", "LLVM 19", "driver 12.4"};
  enum { COUNT = sizeof fields / sizeof *fields };
  struct text_key k;
  put(key_of(&k, COUNT, fields), "first");
  for (int i = 0; i < COUNT; i++) {
    const char *kept = fields[i];
    const char *others[] = {"", "other", "sm_9", "sm_900"};
    for (int j = 0; j < 4; j++) {
      fields[i] = others[j];
      cr_expect_str_eq(get(key_of(&k, COUNT, fields)), "-", "field %d as '%s'", i, others[j]);
    }
    fields[i] = kept;
  }
  cr_expect_str_eq(get(key_of(&k, COUNT, fields)), "first");
  cr_expect_str_eq(get(key_of(&k, COUNT - 1, fields)), "-");
}

Test(cache, fields_do_not_run_into_each_other) {
  put(KEY("ab", "c"), "1");
  cr_expect_str_eq(get(KEY("a", "bc")), "-");
  cr_expect_str_eq(get(KEY("abc")), "-");
  cr_expect_str_eq(get(KEY("ab", "c", "")), "-");
  cr_expect_str_eq(get(KEY("", "ab", "c")), "-");
}

Test(cache, two_architectures_share_a_folder) {
  put(KEY("source", "sm_80"), "for 80");
  put(KEY("source", "sm_90"), "for 90");
  cr_expect_str_eq(get(KEY("source", "sm_80")), "for 80");
  cr_expect_str_eq(get(KEY("source", "sm_90")), "for 90");
}

// Whatever happens to the bytes of the file, the entry is either right or gone, and can be put again.
static void damage_is_a_miss(const char *file, const unsigned char *bytes, size_t size, const char *what,
                             size_t where) {
  FILE *f = fopen(file, "wb");
  cr_assert(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
  cr_expect_str_eq(get(KEY("k")), "-", "%s at %zu", what, where);
  cr_expect_neq(access(file, F_OK), 0, "%s at %zu is kept", what, where);
}

Test(cache, truncated_and_flipped_entries_are_misses) {
  put(KEY("k"), "the value");
  char file[512];
  find_file(file);
  unsigned char bytes[512];
  FILE *f = fopen(file, "rb");
  size_t size = fread(bytes, 1, sizeof bytes - 16, f);
  fclose(f);
  cr_assert(size > 40 && size < 400);
  for (size_t i = 0; i < size; i++) damage_is_a_miss(file, bytes, i, "cut", i);
  for (size_t i = 0; i < 8 * size; i++) {
    bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    damage_is_a_miss(file, bytes, size, "bit", i);
    bytes[i / 8] ^= (unsigned char)(1 << i % 8);
  }
  damage_is_a_miss(file, bytes, size + 1, "longer", size);
  put(KEY("k"), "again");
  cr_expect_str_eq(get(KEY("k")), "again");
}

Test(cache, an_entry_of_another_key_at_the_place_is_no_hit) {
  char mine[512], command[1100];
  put(KEY("mine"), "my value");
  find_file(mine);
  snprintf(command, sizeof command, "mv %s %s/kept", mine, folder);
  cr_assert_eq(system(command), 0);
  put(KEY("yours"), "your value");
  snprintf(command, sizeof command, "mv $(find %s/v1 -type f) %s", folder, mine);
  cr_assert_eq(system(command), 0);
  cr_expect_str_eq(get(KEY("mine")), "-");
  cr_expect_eq(access(mine, F_OK), 0); // whole, though not ours
}

Test(cache, modes) {
  put(KEY("k"), "v");
  setenv("RED_CACHE", "off", 1);
  cr_expect_str_eq(get(KEY("k")), "-");
  put(KEY("other"), "v");
  setenv("RED_CACHE", "ro", 1);
  cr_expect_str_eq(get(KEY("k")), "v");
  put(KEY("other"), "v");
  cr_expect_str_eq(get(KEY("other")), "-");
  cr_expect_null(red_cache_warning());
  setenv("RED_CACHE", "OFF", 1);
  cr_expect_str_eq(get(KEY("k")), "-");
  cr_expect_str_eq(red_cache_warning(), "RED_CACHE is 'OFF': it may be off, ro or rw; nothing is cached");
  cr_expect_null(red_cache_warning());
}

Test(cache, a_damaged_entry_stays_where_it_is_only_read) {
  put(KEY("k"), "v");
  char file[512];
  find_file(file);
  cr_assert_eq(truncate(file, 10), 0);
  setenv("RED_CACHE", "ro", 1);
  cr_expect_str_eq(get(KEY("k")), "-");
  cr_expect_eq(access(file, F_OK), 0);
}

Test(cache, the_folder_comes_from_the_environment) {
  char xdg[128], home[128];
  snprintf(xdg, sizeof xdg, "%s/xdg", folder);
  snprintf(home, sizeof home, "%s/home", folder);
  unsetenv("RED_CACHE_DIR");
  setenv("HOME", home, 1);
  unsetenv("XDG_CACHE_HOME");
  put(KEY("k"), "home");
  setenv("XDG_CACHE_HOME", xdg, 1);
  cr_expect_str_eq(get(KEY("k")), "-");
  put(KEY("k"), "xdg");
  struct red_cache_stats stats;
  cr_assert_eq(red_cache_scan(false, &stats), 0);
  cr_expect_eq(strncmp(stats.folder, xdg, strlen(xdg)), 0);
  cr_expect_str_eq(stats.folder + strlen(xdg), "/red");
  setenv("XDG_CACHE_HOME", "relative", 1); // the specification: not absolute counts as unset
  cr_expect_str_eq(get(KEY("k")), "home");
  struct stat status;
  strcat(home, "/.cache/red");
  cr_assert_eq(stat(home, &status), 0);
  cr_expect_eq(status.st_mode & 0777, 0700);
}

Test(cache, no_home_is_one_warning) {
  unsetenv("RED_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  put(KEY("k"), "v");
  cr_expect_str_eq(get(KEY("k")), "-");
  cr_expect_str_eq(red_cache_warning(), "there is no folder for the cache (none of RED_CACHE_DIR, "
                                        "XDG_CACHE_HOME and HOME is set): nothing is cached");
  put(KEY("k"), "v");
  cr_expect_null(red_cache_warning());
}

// A folder that nobody can write, root neither: its name is that of a file.
Test(cache, a_folder_that_cannot_be_written_is_one_warning) {
  char file[128];
  snprintf(file, sizeof file, "%s/file", folder);
  fclose(fopen(file, "w"));
  setenv("RED_CACHE_DIR", file, 1);
  cr_expect_eq(red_cache_put(KEY("k"), "v", 1), ENOTDIR);
  cr_expect_str_eq(get(KEY("k")), "-");
  const char *warning = red_cache_warning();
  cr_assert(warning);
  cr_expect(strstr(warning, file) && strstr(warning, "Not a directory"), "%s", warning);
  cr_expect_eq(red_cache_put(KEY("k"), "v", 1), ENOTDIR);
  cr_expect_null(red_cache_warning());
  struct red_cache_stats stats;
  cr_expect_eq(red_cache_scan(false, &stats), ENOTDIR);
}

Test(cache, what_a_read_only_folder_holds_is_read) {
  put(KEY("k"), "v");
  char command[128];
  snprintf(command, sizeof command, "chmod -R a-w,a+rX %s", folder);
  cr_assert_eq(system(command), 0);
  if (getuid() == 0 && (setegid(65534) || seteuid(65534))) cr_skip_test("cannot give up root");
  // Of another user now, or of this one without the right to write; the entry itself is the owner's alone.
  cr_expect_neq(red_cache_put(KEY("new"), "v", 1), 0);
  cr_expect(red_cache_warning());
  if (getuid() != 0) cr_expect_str_eq(get(KEY("k")), "v");
  cr_assert(seteuid(getuid()) == 0 && setegid(getgid()) == 0);
}

Test(cache, the_limit_removes_what_was_not_used_for_longest) {
  setenv("RED_CACHE_SIZE", "64K", 1);
  char value[1024], name[16];
  memset(value, 'x', sizeof value);
  struct red_cache_stats stats;
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "%d", i);
    cr_assert_eq(red_cache_put(KEY(name), value, sizeof value), 0);
    cr_assert_eq(red_cache_scan(false, &stats), 0);
    cr_assert_leq(stats.bytes, 64 * 1024);
    nanosleep(&(struct timespec){0, 2000000}, NULL); // times that differ
  }
  cr_expect_geq(stats.entries, 40);
  cr_expect_str_neq(get(KEY("199")), "-");
  cr_expect_str_eq(get(KEY("0")), "-");
  static char large[70000];
  cr_expect_eq(red_cache_put(KEY("large"), large, sizeof large), EFBIG);
  cr_expect_str_neq(get(KEY("199")), "-");
}

Test(cache, sizes_that_are_none_are_a_warning) {
  const char *bad[] = {"0", "-1", "1T", "K", "1KB", "99999999999999999999", "20000000000G"};
  struct red_cache_stats stats;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("RED_CACHE_SIZE", bad[i], 1);
    cr_assert_eq(red_cache_scan(false, &stats), 0);
    cr_expect_eq(stats.limit, (uint64_t)1 << 30, "%s", bad[i]);
  }
  cr_expect(red_cache_warning());
  setenv("RED_CACHE_SIZE", "3M", 1);
  cr_assert_eq(red_cache_scan(false, &stats), 0);
  cr_expect_eq(stats.limit, 3 << 20);
}

Test(cache, clean_removes_entries_and_leftovers_alone) {
  char command[512];
  put(KEY("a"), "v");
  put(KEY("b"), "v");
  snprintf(command, sizeof command,
           "touch $(dirname $(find %s -type f | head -1))/tmp.abcdef %s/v1/notes %s/mine", folder, folder,
           folder);
  cr_assert_eq(system(command), 0);
  uint64_t removed;
  cr_expect_eq(red_cache_clean(&removed), 0);
  cr_expect_eq(removed, 3);
  cr_expect_eq(entries(), 0);
  snprintf(command, sizeof command, "test -e %s/v1/notes && test -e %s/mine", folder, folder);
  cr_expect_eq(system(command), 0);
  put(KEY("a"), "v");
  cr_expect_str_eq(get(KEY("a")), "v");
}

// --- Many processes

static uint32_t next_random(uint32_t *state) {
  return *state = *state * 1664525 + 1013904223;
}

// A value that says of each of its bytes whether it is whole: its length and its bytes follow from its first.
static size_t make_value(uint32_t seed, unsigned char *to) {
  size_t size = 1 + seed % 200000;
  for (size_t i = 0; i < size; i++) to[i] = (unsigned char)(seed + i * 7);
  memcpy(to, &seed, size < 4 ? size : 4);
  return size;
}
static bool value_is_whole(const unsigned char *value, size_t size) {
  static unsigned char expected[200004];
  uint32_t seed = 0;
  memcpy(&seed, value, size < 4 ? size : 4);
  return size < 4 || (make_value(seed, expected) == size && memcmp(value, expected, size) == 0);
}

// Puts, gets and now and then cleans under one key for ever; ends with status 1 at a torn value.
static void work(uint32_t seed) {
  static unsigned char value[200004];
  for (;;) {
    void *data;
    size_t size;
    uint32_t r = next_random(&seed) >> 8;
    if (r % 3 == 0)
      red_cache_put(KEY("one", "key"), value, make_value(r, value));
    else if (r % 1001 == 1)
      red_cache_clean(&(uint64_t){0});
    else if (red_cache_get(KEY("one", "key"), &data, &size) == 0) {
      bool whole = value_is_whole(data, size);
      free(data);
      if (!whole) _exit(1);
    }
  }
}

static pid_t start(uint32_t seed) {
  pid_t child = fork();
  if (child == 0) work(seed);
  return child;
}

Test(cache, sixteen_processes_on_one_key_killed_at_random) {
  enum { PROCESSES = 16, KILLS = 300 };
  pid_t children[PROCESSES];
  uint32_t random = 1;
  for (uint32_t i = 0; i < PROCESSES; i++) children[i] = start(i);
  int torn = 0, status;
  for (uint32_t i = 0; i < KILLS + PROCESSES; i++) {
    uint32_t victim = i < KILLS ? (next_random(&random) >> 16) % PROCESSES : i - KILLS;
    nanosleep(&(struct timespec){0, 1000 * (next_random(&random) >> 16) / 8}, NULL);
    kill(children[victim], SIGKILL);
    cr_assert_eq(waitpid(children[victim], &status, 0), children[victim]);
    torn += WIFEXITED(status);
    if (i < KILLS) children[victim] = start(1000 + i);
  }
  cr_expect_eq(torn, 0, "%d processes saw a torn value", torn);
  // What is left is whole, and the cache works.
  struct red_cache_stats stats;
  cr_assert_eq(red_cache_scan(true, &stats), 0);
  cr_expect_leq(stats.entries, 1);
  cr_expect_eq(stats.damaged, 0);
  cr_expect_gt(stats.leftover, 0, "no process was killed while it wrote: the test shows nothing");
  put(KEY("one", "key"), "after");
  cr_expect_str_eq(get(KEY("one", "key")), "after");
  cr_expect_null(red_cache_warning());
}
