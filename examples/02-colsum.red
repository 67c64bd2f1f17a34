// Sum of each column. Without a schedule the compiler takes its own (redc schedule 02-colsum.red). The
// schedule `column` is for larger sizes: threads side by side read columns side by side, 32 rows at a time, eight rows
// ahead, and combine their sums at the end.
// redc 02-colsum.red -o colsum.ptx
// redc 02-colsum.red --emit=cuda --schedule=column
// redc 02-colsum.red --explain --schedule=column
// redc run 02-colsum.red --size m=600 --size n=70 --device=sim --check --arg "A=i0 - 2*i1"
// redc run 02-colsum.red --size m=600 --size n=70 --device=sim --check --arg "A=i0 - 2*i1" --schedule auto
kernel colsum(A: f32[m, n]) -> (B: f32[n]) {
  for i in n { B[i] = sum(k in m) A[k, i]; }
}
schedule colsum as column when n >= 32 && m >= 256 {
  split i by 8 -> io, ii;    // 8 columns a block
  split k by 8 -> k1, ku;    // 8 rows in flight
  split k1 by 32 -> k2, ks;  // 32 threads along the rows
  bind io -> block.x;
  bind ii -> thread.x;
  bind ks -> thread.y;
  unroll ku;
}
