#include "compiler/crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static const char *volatile *watched;

// Only calls that are legal in a signal handler.
static void say(const char *text) {
  ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
  (void)ignored;
}

static void handle(int number) {
  const char *part = watched ? *watched : NULL;
  say("error: internal error");
  if (part) {
    say(" in pass '");
    say(part);
    say("'");
  }
  say(number == SIGABRT   ? ": a check failed"
      : number == SIGSEGV ? ": memory fault or stack overflow"
                          : ": fatal signal");
  say("; this is a fault of the compiler, please report it with the input\n");
  _exit(3);
}

void crash_watch(const char *volatile *running) {
#ifndef RED_SANITIZED           // the sanitizers have handlers of their own, which say more
  static char stack[64 * 1024]; // a stack overflow leaves no other
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_flags = SA_ONSTACK | SA_RESETHAND};
  action.sa_handler = running ? handle : SIG_DFL;
  watched = running;
  sigaltstack(&alternate, NULL);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
#else
  watched = running;
  (void)handle;
  (void)signals;
#endif
}
