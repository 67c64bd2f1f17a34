// Files are written whole or not at all.
#include "compiler/output.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena arena;
static struct diag diag;
static char folder[] = "/tmp/red-output-XXXXXX";

static void enter(void) {
  cr_assert(mkdtemp(folder));
  cr_assert_eq(chdir(folder), 0);
  umask(022);
  arena_init(&arena);
  diag_init(&diag, &arena);
}

static void leave(void) {
  char command[64];
  if (getuid() == 0) cr_assert_eq(seteuid(0), 0); // see leave_root
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_assert_eq(chdir("/"), 0);
  cr_assert_eq(system(command), 0);
  arena_destroy(&arena);
}

TestSuite(output, .init = enter, .fini = leave);

static bool put(const char *path, const char *text) {
  return output_write(&diag, path, text, strlen(text));
}

// The content of a file; "(none)" where it cannot be read.
static const char *get(const char *path) {
  static char content[4096];
  FILE *file = fopen(path, "rb");
  if (!file) return "(none)";
  content[fread(content, 1, sizeof content - 1, file)] = 0;
  fclose(file);
  return content;
}

static int count_files(void) {
  int count = 0;
  DIR *here = opendir(".");
  for (struct dirent *entry; (entry = readdir(here));)
    count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
  closedir(here);
  return count;
}

static mode_t mode_of(const char *path) {
  struct stat status;
  cr_assert_eq(stat(path, &status), 0);
  return status.st_mode & 07777;
}

static bool says(const char *text) {
  return diag.diagnostics.count && strstr(list_at(&diag.diagnostics, struct diagnostic, 0)->message, text);
}

// Permissions do not bind root.
static void leave_root(void) {
  if (geteuid() != 0) return;
  cr_assert_eq(chmod(".", 0777), 0);
  cr_assert_eq(seteuid(65534), 0);
}

Test(output, new_file_has_the_permissions_of_the_umask) {
  umask(027);
  cr_assert(put("a", "text"));
  cr_assert_str_eq(get("a"), "text");
  cr_assert_eq(mode_of("a"), 0640);
  cr_assert_eq(count_files(), 1);
}

Test(output, bytes_are_written_as_they_are) {
  char all[256], *back;
  for (int i = 0; i < 256; i++) all[i] = (char)i;
  cr_assert(output_write(&diag, "a", all, sizeof all));
  back = (char *)(uintptr_t)get("a");
  cr_assert_eq(memcmp(back, all, sizeof all), 0);
}

Test(output, nothing_to_write_makes_an_empty_file) {
  cr_assert(output_write(&diag, "a", NULL, 0));
  cr_assert_str_eq(get("a"), "");
}

Test(output, old_file_is_replaced_and_keeps_its_permissions) {
  cr_assert(put("a", "a long old text"));
  cr_assert_eq(chmod("a", 0751), 0);
  cr_assert(put("a", "new"));
  cr_assert_str_eq(get("a"), "new");
  cr_assert_eq(mode_of("a"), 0751);
  cr_assert_eq(count_files(), 1);
}

Test(output, reader_of_the_old_file_keeps_it_whole) {
  char content[8] = {0};
  cr_assert(put("a", "old"));
  int fd = open("a", O_RDONLY);
  cr_assert(put("a", "new"));
  cr_assert_eq(read(fd, content, sizeof content), 3);
  cr_assert_str_eq(content, "old");
  close(fd);
}

Test(output, full_disk_leaves_the_old_file_and_nothing_else) {
  struct rlimit limit = {10, 10};
  char text[1000];
  memset(text, 'x', sizeof text);
  cr_assert(put("a", "old"));
  signal(SIGXFSZ, SIG_IGN);
  cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  cr_assert(!output_write(&diag, "a", text, sizeof text));
  cr_assert(!output_write(&diag, "b", text, sizeof text));
  cr_assert(says("cannot write 'a': File too large"));
  cr_assert_str_eq(get("a"), "old");
  cr_assert_eq(count_files(), 1);
  cr_assert_eq(diag.error_count, 2);
}

Test(output, full_device_is_an_error) {
  cr_assert(!put("/dev/full", "text"));
  cr_assert(says("cannot write '/dev/full': No space left on device"));
}

Test(output, link_is_followed_and_stays) {
  struct stat status;
  cr_assert_eq(mkdir("d", 0755), 0);
  cr_assert(put("d/a", "old"));
  cr_assert_eq(symlink("d/a", "link"), 0);
  cr_assert(put("link", "new"));
  cr_assert_str_eq(get("d/a"), "new");
  cr_assert_eq(lstat("link", &status), 0);
  cr_assert(S_ISLNK(status.st_mode));
}

Test(output, dangling_link_makes_its_file) {
  cr_assert_eq(symlink("a", "link"), 0);
  cr_assert(put("link", "new"));
  cr_assert_str_eq(get("a"), "new");
  cr_assert_eq(count_files(), 2);
}

static void *read_pipe(void *content) {
  int fd = open("pipe", O_RDONLY);
  for (ssize_t got; (got = read(fd, content, 100)) > 0;) content = (char *)content + got;
  close(fd);
  return NULL;
}

Test(output, pipe_is_written_directly) {
  char content[100] = {0};
  struct stat status;
  pthread_t reader;
  cr_assert_eq(mkfifo("pipe", 0600), 0);
  cr_assert_eq(pthread_create(&reader, NULL, read_pipe, content), 0);
  cr_assert(put("pipe", "text"));
  pthread_join(reader, NULL);
  cr_assert_str_eq(content, "text");
  cr_assert_eq(stat("pipe", &status), 0);
  cr_assert(S_ISFIFO(status.st_mode));
}

Test(output, named_descriptor_goes_on_where_it_stands) {
  char path[32];
  int fd = open("a", O_WRONLY | O_CREAT, 0600);
  cr_assert_eq(write(fd, "1 ", 2), 2);
  snprintf(path, sizeof path, "/dev/fd/%d", fd);
  cr_assert(put(path, "2 "));
  cr_assert_eq(write(fd, "3", 1), 1);
  close(fd);
  cr_assert_str_eq(get("a"), "1 2 3");
}

Test(output, closed_descriptor_is_an_error) {
  cr_assert(!put("/dev/fd/987", "text"));
  cr_assert(says("Bad file descriptor"));
}

Test(output, folder_is_an_error) {
  cr_assert_eq(mkdir("d", 0755), 0);
  cr_assert(!put("d", "text"));
  cr_assert(says("cannot write 'd': Is a directory"));
  cr_assert_eq(count_files(), 1);
}

Test(output, missing_folder_is_an_error) {
  cr_assert(!put("no/a", "text"));
  cr_assert(says("cannot write 'no/a': No such file or directory"));
}

Test(output, empty_path_is_an_error) {
  cr_assert(!put("", "text"));
  cr_assert_eq(count_files(), 0);
}

Test(output, read_only_file_is_an_error) {
  leave_root();
  cr_assert(put("a", "old"));
  cr_assert_eq(chmod("a", 0444), 0);
  cr_assert(!put("a", "new"));
  cr_assert(says("cannot write 'a': Permission denied"));
  cr_assert_str_eq(get("a"), "old");
  cr_assert_eq(count_files(), 1);
}

Test(output, read_only_folder_is_an_error) {
  leave_root();
  cr_assert_eq(mkdir("d", 0555), 0);
  cr_assert(!put("d/a", "new"));
  cr_assert(says("cannot write 'd/a': Permission denied"));
}

Test(output, longest_legal_name_is_written) {
  char name[256] = {0};
  memset(name, 'n', 255);
  cr_assert(put(name, "text"));
  cr_assert_str_eq(get(name), "text");
}

static void *write_often(void *unused) {
  (void)unused;
  struct arena own;
  struct diag messages;
  arena_init(&own);
  diag_init(&messages, &own);
  bool ok = true;
  for (int i = 0; i < 20; i++) ok &= output_write(&messages, "a", "0123456789", 10);
  arena_destroy(&own);
  return ok ? &arena : NULL;
}

Test(output, writers_at_the_same_time_leave_one_whole_file) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) cr_assert_eq(pthread_create(&threads[i], NULL, write_often, NULL), 0);
  for (int i = 0; i < 4; i++) {
    void *ok;
    pthread_join(threads[i], &ok);
    cr_assert(ok);
  }
  cr_assert_str_eq(get("a"), "0123456789");
  cr_assert_eq(count_files(), 1);
}

Test(output, same_file_is_recognized_through_links) {
  cr_assert(put("a", "text"));
  cr_assert_eq(symlink("a", "link"), 0);
  cr_assert(output_is_same_file("a", "./link"));
  cr_assert(put("b", "text"));
  cr_assert(!output_is_same_file("a", "b"));
  cr_assert(!output_is_same_file("a", "no"));
}
