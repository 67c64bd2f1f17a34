// redc cache: what the disk cache holds, and emptying it.
#include "compiler/driver.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"
#include "runtime/cache.h"

#include <string.h>

static const char HELP[] =
    "Usage: redc cache stats [--check]\n"
    "       redc cache clean\n"
    "Look at, or empty, the cache of compiled kernels that programs with libred keep.\n\n"
    "  stats      print its folder, how it is used, and how much is in it\n"
    "  --check    read every entry and count the damaged ones; the exit status is 1 where there are any\n"
    "  clean      remove all entries; programs that run are not disturbed\n"
    "  --help     print this text\n\n"
    "Environment:\n"
    "  RED_CACHE_DIR    the folder; else $XDG_CACHE_HOME/red, else $HOME/.cache/red\n"
    "  RED_CACHE        rw (the default), ro: only read, off: neither\n"
    "  RED_CACHE_SIZE   bytes that it may hold, with K, M or G behind the number; 1G by default\n";

static const struct range nowhere;

// The statistics as text. Returns the exit status.
static int stats(struct compilation *c, struct text *out, bool check) {
  static const char *const modes[] = {"off", "ro", "rw"};
  struct red_cache_stats stats;
  int error = red_cache_scan(check, &stats);
  if (error) {
    diag_error(&c->diag, ERROR_FILE, nowhere, "cannot read '%s': %s", stats.folder, strerror(error));
    return EXIT_USER;
  }
  text_printf(out, "folder    %s\n", stats.folder[0] ? stats.folder : "none");
  text_printf(out, "mode      %s\n", modes[stats.mode]);
  text_printf(out, "entries   %llu\n", (unsigned long long)stats.entries);
  text_printf(out, "bytes     %llu of at most %llu\n", (unsigned long long)stats.bytes,
              (unsigned long long)stats.limit);
  text_printf(out, "leftover  %llu\n", (unsigned long long)stats.leftover);
  if (check) text_printf(out, "damaged   %llu\n", (unsigned long long)stats.damaged);
  return stats.damaged ? EXIT_USER : EXIT_OK;
}

static int clean(struct compilation *c, struct text *out) {
  uint64_t removed;
  int error = red_cache_clean(&removed);
  text_printf(out, "removed %llu file%s\n", (unsigned long long)removed, removed == 1 ? "" : "s");
  if (error)
    diag_error(&c->diag, ERROR_FILE, nowhere, "some files of the cache cannot be removed: %s",
               strerror(error));
  return error ? EXIT_USER : EXIT_OK;
}

static int run(struct compilation *c, struct text *out, int argc, char **argv) {
  const char *verb = NULL;
  bool check = false;
  for (int i = 1; i < argc; i++) {
    bool is_verb = strcmp(argv[i], "stats") == 0 || strcmp(argv[i], "clean") == 0;
    if (strcmp(argv[i], "--help") == 0) {
      text_puts(out, HELP);
      return EXIT_OK;
    }
    if (strcmp(argv[i], "--check") == 0)
      check = true;
    else if (is_verb && !verb)
      verb = argv[i];
    else
      diag_error(&c->diag, ERROR_USAGE, nowhere,
                 "redc cache takes stats or clean, not '%s'; see redc cache --help", argv[i]);
  }
  if (c->diag.error_count) return EXIT_USAGE;
  bool cleans = verb && strcmp(verb, "clean") == 0;
  if (!verb)
    diag_error(&c->diag, ERROR_USAGE, nowhere, "redc cache needs stats or clean; see redc cache --help");
  else if (cleans && check)
    diag_error(&c->diag, ERROR_USAGE, nowhere, "--check belongs to redc cache stats");
  if (c->diag.error_count) return EXIT_USAGE;
  return cleans ? clean(c, out) : stats(c, out, check);
}

int redc_cache(int argc, char **argv) {
  struct compilation c;
  struct options options;
  struct text out = {0};
  compilation_init(&c);
  options_init(&options, &c);
  int status = run(&c, &out, argc, argv);
  const char *warning = red_cache_warning();
  if (warning) diag_warning(&c.diag, ERROR_FILE, nowhere, "%s", warning);
  if (out.length && !output_write(&c.diag, "-", out.data, out.length)) status = EXIT_USER;
  driver_print_diagnostics(&options);
  text_free(&out);
  compilation_destroy(&c);
  return status;
}
