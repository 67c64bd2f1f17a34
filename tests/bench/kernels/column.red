// Sums of columns, split over the grid: a schedule for each shape of block that is worth measuring. V floats a load, U loads in flight a thread, BX lanes
// along the outputs, T threads a block; rows are dealt to blocks in turn ("dealt") or in pieces of neighbours ("pieces").
//
// redc run column.red --schedule=dealt_32 --size m=100000 --size n=1000 --arg A=i0%5-i1%3 --check --device=cuda
kernel colsum(A: f32[m, n]) -> (B: f32[n]) {
  for i in n { B[i] = sum(k in m) A[k, i]; }
}

// BX 32, T 512, U 16
schedule colsum as dealt_32 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 32 -> io, ii;
  split k by 16 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, 2 * sms / extent(io)) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.y;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}

// BX 32, T 256, U 16
schedule colsum as dealt_32_256 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 32 -> io, ii;
  split k by 8 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, 4 * sms / extent(io)) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.y;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}

// BX 16, T 256, U 16
schedule colsum as dealt_16 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 16 -> io, ii;
  split k by 16 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, 4 * sms / extent(io)) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.y;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}

// BX 8, T 256, U 8
schedule colsum as dealt_8 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 8 -> io, ii;
  split k by 32 -> k1, ks;
  split k1 by 8 -> k2, ku;
  split k2 by max(1, 4 * sms / extent(io)) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.y;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}

// BX 8, T 512, U 16: whole rows of 32
schedule colsum as dealt_row_32 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 8 -> io, ii;
  split k by 64 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, sms / extent(io)) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.y;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}

// BX 1, T 256, U 16: whole rows of 4
schedule colsum as dealt_row_4 when n % 4 == 0 {
  split i by 4 -> io, iv;
  split k by 256 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, 6 * sms / extent(io)) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.y;
  bind ks -> thread.x;
  reorder io, kg, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}

// BX 32, T 512, U 16, pieces of neighbours
schedule colsum as pieces_32 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 32 -> io, ii;
  split k by 16 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 into min(extent(k2), max(1, 2 * sms / extent(io))) -> kg, kr;
  bind io -> block.x;
  bind kg -> block.y;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
}
