// Schedules of element-wise work and copies whose fastest axis stays.
//
// Axes that move every tensor alike become one. Where that is all of them, threads side by side take 16 bytes side by side, several of them a
// thread, all in flight. Where it is not (a bias along one axis, views) and the sizes are known, all axes become one too, and places are taken
// apart by divisions; where they are not known, blocks take pieces of rows, or each thread an element.
#include "passes/automatic_write.h"
#include "passes/stage.h"

enum { THREADS = 256, MOST_FLIGHT = 4, BLOCKS = 4 * 132, LAST_BYTES = 64 << 20, LAST_MOST = 512 << 20 }; // BLOCKS: as many blocks as keep a large device busy

// Loads a thread: several where that leaves enough blocks.
static int choose_flight(int64_t count, int vector) {
  int flight = MOST_FLIGHT;
  while (count >= 0 && flight > 1 && count < (int64_t)BLOCKS * THREADS * vector * flight) flight /= 2;
  return flight;
}

static const char *product(const struct view *view, const struct list *axes) {
  const char *text = "";
  for (uint32_t i = 0; i < axes->count; i++)
    text = arena_printf(view->a->arena, "%s%s%s", text, i ? " * " : "", view_text(view, list_at(axes, struct ir_axis, i)->extent));
  return axes->count > 1 ? arena_printf(view->a->arena, "(%s)", text) : text;
}

static void write_flat(struct view *view, const struct fused *fused, int vector, const char *name, const char *when) {
  struct arena *arena = view->a->arena;
  int64_t count = view_product(&fused->inner);
  struct map_form form = {.name = name, .when = when, .vector = vector, .flight = choose_flight(count, vector), .fused = fused};
  int64_t bytes = view_product(&view->common);
  if (bytes > 0 && bytes < (int64_t)1 << 40) bytes *= type_bytes(view->main->mem->type);
  if (bytes >= LAST_BYTES && bytes <= LAST_MOST) form.cache = "evict_last"; // measured: 1.2 of 67.4 us of a copy of 128 MiB
  form.reason = arena_printf(arena, "neighbours in memory: %d element%s a load, %d load%s a thread, all in flight", vector, vector > 1 ? "s" : "", form.flight, form.flight > 1 ? "s" : "");
  write_map(view, &form);
}

// The axes that all stages share are all that there is.
static void write_maps(struct view *view) {
  struct arena *arena = view->a->arena;
  struct fused fused = view_fuse(view, view->main->stage, &view->common, false);
  int64_t inner = view_product(&fused.inner), all = view_product(&view->common);
  int vector = view_vector(view, -1, &fused);
  if (fused.outer.count && (all >= 0 || inner == 1 || vector == 1)) { // one axis all the same: divisions by sizes tell the places
    struct fused whole = view_fuse(view, view->main->stage, &view->common, true);
    if (inner < 0) vector = 1;
    while (vector > 1 && inner % vector) vector /= 2;
    write_flat(view, &whole, vector, "map", NULL);
    return;
  }
  const char *text = product(view, &fused.inner);
  if (vector > 1 && inner < 0) {
    const char *when = arena_printf(arena, fused.outer.count ? "%s %% %d == 0 && %s >= %d" : "%s %% %d == 0", text, vector, text, THREADS * vector);
    write_flat(view, &fused, vector, "map", when);
  } else if (vector > 1) {
    write_flat(view, &fused, vector, "map", NULL);
  }
  if (view->is_closed) return;
  struct fused whole = view_fuse(view, view->main->stage, &view->common, true);
  write_flat(view, &whole, 1, vector > 1 ? "map_odd" : "map", NULL);
}

bool automatic_map(struct automatic *a) {
  struct view view;
  if (!view_make(a, &view) || !view.main) return false;
  if (view.space_count) return automatic_rows(&view);
  bool is_wanted = automatic_takes(a, "map") || !a->forced;
  if (is_wanted && view.common.count) write_maps(&view);
  if ((automatic_takes(a, "thread") || !a->forced) && !view.is_closed) write_thread(&view, NULL, "one thread an output, outputs in row-major order");
  return true;
}
