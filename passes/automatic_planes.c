// planes: a few planes and their elements side by side, one made of the other, as pictures of three colours are: X[n, place, colour] and Y[n, colour, place].
//
// A thread takes 16 bytes of each plane. To planes it reads the places that these are of, which lie side by side, and writes 16 bytes to each plane. From
// planes what it writes lies side by side for itself alone, so that it goes through shared memory, 16 bytes at a time as well. Bytes change their places in
// registers on both ways.
#include "passes/automatic_permute.h"

// A step of each of the groups but two moves the access by whole vectors.
static bool is_in_vectors(const struct permute *p, const struct view_access *access, const struct group *a, const struct group *b, int64_t vector) {
  for (int g = 0; g < p->group_count; g++) {
    int64_t stride;
    if (&p->groups[g] != a && &p->groups[g] != b && (!poly_is_constant(permute_stride(p, access, &p->groups[g]), &stride) || stride % vector)) return false;
  }
  return true;
}

// What stays outside: the groups but two, in the order of the output.
static const char *others(struct permute *p, const struct group *a, const struct group *b) {
  const char *names = NULL;
  for (int g = 0; g < p->group_count; g++)
    if (&p->groups[g] != a && &p->groups[g] != b) names = permute_join(p, names, p->groups[g].name);
  return names;
}

static void write_to_planes(struct permute *p, const struct group *planes, const struct group *places, int64_t vector) {
  const char *part = permute_piece(p, places, "_part"), *element = permute_piece(p, places, "_element"), *outside = others(p, planes, places), *flat = part, *block = permute_fresh(p, "block"), *thread = permute_fresh(p, "thread");
  const char *order = permute_join(p, outside, part);
  text_printf(p->out, "  split %s by %lld -> %s, %s;  reorder %s, %s, %s;\n", places->name, (long long)vector, part, element, order, element, planes->name);
  if (outside) {
    flat = permute_fresh(p, "place");
    text_printf(p->out, "  fuse %s -> %s;", order, flat);
  }
  text_printf(p->out, "  split %s by %d -> %s, %s;  bind %s -> block.x;  bind %s -> thread.x;  vectorize %s, %s;\n", flat, THREADS, block, thread, block, thread, element, planes->name);
}

static void write_from_planes(struct permute *p, const struct group *planes, const struct group *places, int64_t vector, int64_t threads, const struct ir_mem *source) {
  const char *tile = permute_piece(p, places, "_tile"), *in = permute_piece(p, places, "_in"), *outside = others(p, planes, places), *order = permute_join(p, outside, tile), *block = tile, *copy = permute_copy_name(p, 0), *stage = permute_stage_name(p);
  const char *part = permute_fresh(p, "S_part"), *element = permute_fresh(p, "S_element"), *run = permute_fresh(p, "run"), *piece = permute_fresh(p, "piece"), *vectors = permute_fresh(p, "element"), *more = permute_fresh(p, "piece_more"),
             *thread = permute_fresh(p, "piece_thread");
  text_printf(p->out, "  split %s by %lld -> %s, %s;  reorder %s, %s, %s;\n", places->name, (long long)(vector * threads), tile, in, order, in, planes->name);
  if (outside) {
    block = permute_fresh(p, "tile");
    text_printf(p->out, "  fuse %s -> %s;", order, block);
  }
  text_printf(p->out, "  bind %s -> block.x;\n  stage %s at %s in shared as %s;\n", block, source->label, block, copy);
  text_printf(p->out, "  split %s.%s by %lld -> %s, %s;  bind %s -> thread.x;  vectorize %s, %s.%s;\n", copy, in, (long long)vector, part, element, part, element, copy, planes->name);
  text_printf(p->out, "  fuse %s.%s, %s.%s -> %s;  split %s by %lld -> %s, %s;  split %s by %lld -> %s, %s;  bind %s -> thread.x;  unroll %s;  vectorize %s;\n", stage, in, stage, planes->name, run, run, (long long)vector, piece, vectors, piece,
              (long long)threads, more, thread, thread, more, vectors);
}

bool permute_planes(struct permute *p) {
  enum { MOST_PLANES = 6, MANY_BLOCKS = 8, LANES = 32 };
  const struct ir_mem *copies[MOST_COPIES];
  int64_t bytes = type_bytes(p->load->mem->type), vector = VECTOR / bytes, threads = THREADS, stride;
  bool is_to_planes = p->fast_in->count <= p->fast_out->count;
  struct group *planes = is_to_planes ? p->fast_in : p->fast_out, *places = is_to_planes ? p->fast_out : p->fast_in;
  if (bytes != type_bytes(p->store->mem->type) || vector < 2 || planes->count < 2 || planes->count > MOST_PLANES || places->count < 0 || places->count % vector || permute_copies(p, copies) != 1) return false;
  const struct view_access *mixed = is_to_planes ? p->load : p->store;
  if (!poly_is_constant(permute_stride(p, mixed, places), &stride) || stride != planes->count) return false;
  if (!is_in_vectors(p, p->load, planes, places, vector) || !is_in_vectors(p, p->store, planes, places, vector)) return false;
  if (!poly_is_constant(permute_stride(p, is_to_planes ? p->store : p->load, planes), &stride) || stride % vector) return false;
  int64_t parts = places->count / vector;
  if (parts < LANES) return false; // a warp would write beside itself
  if (!is_to_planes && parts < MANY_BLOCKS * threads) { // no part of a tile may hang over
    while (threads > LANES && parts % threads) threads /= 2;
    if (parts % threads) return false;
  }
  struct when when = {.p = p};
  permute_need_alignment(&when, copies[0], (uint32_t)vector);
  permute_need_alignment(&when, p->store->mem, (uint32_t)vector);
  const char *reason = arena_printf(p->arena, "%s, %lld planes %s elements side by side: 16 bytes of each a thread, permuted in registers%s", permute_describe(p), (long long)planes->count, is_to_planes ? "of" : "to",
                                    is_to_planes ? "" : ", written through shared memory");
  if (!permute_begin(p, "planes", &when, reason)) return false;
  permute_write_groups(p);
  if (is_to_planes) write_to_planes(p, planes, places, vector);
  else write_from_planes(p, planes, places, vector, threads, copies[0]);
  permute_end(p);
  return true;
}
