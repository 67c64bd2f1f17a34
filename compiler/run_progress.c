#include "compiler/run_progress.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *show(void *state) {
  struct progress *p = state;
  struct timespec next;
  clock_gettime(CLOCK_REALTIME, &next);
  pthread_mutex_lock(&p->lock);
  for (int seconds = 1; !p->ends; seconds++) {
    next.tv_sec++;
    while (!p->ends && pthread_cond_timedwait(&p->changed, &p->lock, &next) != ETIMEDOUT) continue;
    if (p->ends || seconds < 2) continue;
    if (p->elements)
      fprintf(stderr, "\r%s: %d s, %.0f million elements\033[K", p->what, seconds,
              (double)p->elements * 1e-6);
    else
      fprintf(stderr, "\r%s: %d s\033[K", p->what, seconds);
    fflush(stderr);
  }
  pthread_mutex_unlock(&p->lock);
  fputs("\r\033[K", stderr);
  return NULL;
}

void progress_begin(struct progress *p, const char *what) {
  *p = (struct progress){.what = what};
  if (!isatty(STDERR_FILENO)) return;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->changed, NULL);
  p->is_running = pthread_create(&p->thread, NULL, show, p) == 0;
}

void progress_update(uint64_t elements, void *progress) {
  struct progress *p = progress;
  if (!p->is_running) return;
  pthread_mutex_lock(&p->lock);
  p->elements = elements;
  pthread_mutex_unlock(&p->lock);
}

void progress_end(struct progress *p) {
  if (!p->is_running) return;
  pthread_mutex_lock(&p->lock);
  p->ends = true;
  pthread_cond_signal(&p->changed);
  pthread_mutex_unlock(&p->lock);
  pthread_join(p->thread, NULL);
  p->is_running = false;
}
