// Sum of each row.
kernel rowsum(A: f32[n, m]) -> (B: f32[n]) {
  for i in n { B[i] = sum(j in m) A[i, j]; }
}
schedule rowsum {
  bind i -> block.x;
  bind j -> thread.x;
}
