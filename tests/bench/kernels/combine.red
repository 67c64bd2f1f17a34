// Column sums of 12 and 40 MB, combined over the grid in two ways:
//   redc bench combine.red -D m=10000 -D n=300 --schedule=flag_8         redc bench combine.red -D m=10000 -D n=1000 --schedule=flag_16
//   redc bench combine.red -D m=10000 -D n=300 --schedule=last_8         redc bench combine.red -D m=10000 -D n=1000 --schedule=last_16
// --schedule=auto is the compiler's own choice.
kernel colsum(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(k in m) A[k, i]; } }
schedule colsum as flag_8 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 8 -> io, ii;
  split k by 32 -> k1, ks;
  split k1 by 8 -> k2, ku;
  split k2 by max(1, min(extent(k2), 4 * sms / extent(io))) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.z;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, ii, kg, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by flag;
  cache A by no_allocate;
}
schedule colsum as flag_16 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 16 -> io, ii;
  split k by 16 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, min(extent(k2), 4 * sms / extent(io))) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.z;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, ii, kg, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by flag;
  cache A by no_allocate;
}
schedule colsum as last_8 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 8 -> io, ii;
  split k by 32 -> k1, ks;
  split k1 by 8 -> k2, ku;
  split k2 by max(1, min(extent(k2), 4 * sms / extent(io))) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.z;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, ii, kg, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
  cache A by no_allocate;
}
schedule colsum as last_16 when n % 4 == 0 {
  split i by 4 -> ic, iv;
  split ic by 16 -> io, ii;
  split k by 16 -> k1, ks;
  split k1 by 16 -> k2, ku;
  split k2 by max(1, min(extent(k2), 4 * sms / extent(io))) -> kr, kg;
  bind io -> block.x;
  bind kg -> block.z;
  bind ii -> thread.x;
  bind ks -> thread.y;
  reorder io, ii, kg, ks, kr, ku, iv;
  unroll ku;
  vectorize iv;
  combine kg by last_block;
  cache A by no_allocate;
}
