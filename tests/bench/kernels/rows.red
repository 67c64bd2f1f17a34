// Sums of long rows and of one long vector, split over the grid. T threads a block, U loads of 16 bytes in flight a thread, k blocks a multiprocessor.
//
// redc run rows.red --kernel=total --schedule=dealt_4 --size n=268435456 --arg A=i0%5-2 --check --device=cuda
// redc run rows.red --kernel=rowsum --schedule=dealt_4 --size n=64 --size m=4194304 --arg A=i0%5-i1%3 --check --device=cuda
kernel total(A: f32[n]) -> (S: f32[]) {
  S[] = sum(k in n) A[k];
}

// T 512, U 8, k 4
schedule total as dealt_4 when n % 4 == 0 {
  split k by 4 -> kc, kv;
  split kc by 512 -> k1, kt;
  split k1 by 8 -> k2, ku;
  split k2 by 4 * sms -> kr, kg;
  bind kg -> block.x;
  bind kt -> thread.x;
  reorder kg, kt, kr, ku, kv;
  unroll ku;
  vectorize kv;
  combine kg by last_block;
}

// T 512, U 8, k 1
schedule total as dealt_1 when n % 4 == 0 {
  split k by 4 -> kc, kv;
  split kc by 512 -> k1, kt;
  split k1 by 8 -> k2, ku;
  split k2 by sms -> kr, kg;
  bind kg -> block.x;
  bind kt -> thread.x;
  reorder kg, kt, kr, ku, kv;
  unroll ku;
  vectorize kv;
  combine kg by last_block;
}

kernel rowsum(A: f32[n, m]) -> (B: f32[n]) {
  for i in n { B[i] = sum(k in m) A[i, k]; }
}

// T 512, U 8
schedule rowsum as dealt_4 when m % 4 == 0 {
  split k by 4 -> kc, kv;
  split kc by 512 -> k1, kt;
  split k1 by 8 -> k2, ku;
  split k2 by max(1, 4 * sms / extent(i)) -> kr, kg;
  bind i -> block.x;
  bind kg -> block.y;
  bind kt -> thread.x;
  reorder i, kg, kt, kr, ku, kv;
  unroll ku;
  vectorize kv;
  combine kg by last_block;
}
