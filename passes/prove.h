// What a block's threads do together, proved for all of them at once: masks of collectives, control flow
// around them, indices into shared and local memory, races on shared memory. The engine is prove_*.c; passes
// `prove` and `barriers` and whoever wants to show a proof ask it here.
#ifndef RED_PASSES_PROVE_H
#define RED_PASSES_PROVE_H

#include "compiler/pass.h"

enum proof_kind {
  PROOF_MASK, // a mask that lacks its own lane, names absent lanes, or differs between lanes that name each
              // other
  PROOF_DIVERGENT, // a collective that not every thread that it waits for reaches
  PROOF_POISON,    // a use of what a shuffle read from a lane outside its mask
  PROOF_BOUNDS,    // an index that may leave its object
  PROOF_RACE,      // two threads on one word of shared memory, one writing, nothing in between
  PROOF_UNWRITTEN, // a read of a word of shared memory that nothing wrote
  PROOF_UNDER_WAY, // an access of a word to which an asynchronous copy is under way
  PROOF_LIMIT,     // too large to prove
};

struct proof_fault {
  enum proof_kind kind;
  struct range range;
  const char *statement; // such as "let 'other'"
  const char *message;
  struct range other;        // the access, or the shuffle, that the fault is about too; line 0: none
  const char *other_message; // NULL: none
  // PROOF_RACE: where a block barrier before the second access would stand, every thread passing it
  struct list *block;
  uint32_t place;
};

// A shuffle, warp barrier or block barrier that was reached.
struct proof_collective {
  const char *name;
  struct range range;
  uint32_t warps;
  const uint32_t *masks; // of each warp, 0 for one that does not come here; NULL for a block barrier
  bool has_segments;     // several masks a warp: `masks` has that of the first lane
};

// A block or warp barrier.
struct proof_barrier {
  struct list *block;
  uint32_t place;
  bool is_required; // two accesses of one word are ordered by it alone
};

struct proof {
  struct list faults;      // struct proof_fault, at most one a statement and kind
  struct list collectives; // struct proof_collective, in the order of the program
  struct list barriers;    // struct proof_barrier, in the order of the program
  uint64_t work;           // what it cost: statements times threads
};

// Reports a fault. What is not proved is a fault of the compiler; but where a schedule of the user's has copies, whose axes later directives may take
// apart in ways that the proof does not follow, and where it makes too much to prove, it is refused. `tail` stands behind the message.
void proof_report(struct pass_context *context, const char *pass, const struct ir_entry *entry, const struct proof_fault *fault, const char *tail);
// Whether there is anything to prove: shared or local memory, a shuffle or a barrier.
bool proof_is_needed(const struct ir_entry *entry);
// Analyses an entry at LEVEL_PROGRAM without ALLREDUCE, up to `limit` faults (0: a default). What `proof`
// points to lives in `arena`. Returns whether it is proved.
bool proof_run(struct arena *arena, const struct ir_kernel *kernel, struct ir_entry *entry, uint32_t limit,
               struct proof *proof);

#endif
