// Sum of each row.
// redc 01-rowsum.red -D m=11 -o rowsum.ptx --arch=sm_90
// redc 01-rowsum.red -D m=11 --emit=cuda
// redc run 01-rowsum.red -D m=11 -D n=4 --device=sim --check --arg "A=1000*i0 + i1" --print B
kernel rowsum(A: f32[n, m]) -> (B: f32[n]) {
  for i in n { B[i] = sum(j in m) A[i, j]; }
}
schedule rowsum {
  bind i -> block.x;
  bind j -> thread.x;
}
