// Rows of 8 elements, four rows a warp: thread.x reduces and thread.y does not, so that a warp holds four groups, and each
// shuffle stays inside its own.
// redc 09-groups.red -D m=8 -o groups.ptx
// redc 09-groups.red -D m=8 --emit=cuda
// redc 09-groups.red -D m=8 --explain
// redc run 09-groups.red -D m=8 --size n=9 --device=sim --check --arg "A=10*i0 + i1" --print B
kernel groups(A: f32[n, m]) -> (B: f32[n]) {
  for i in n { B[i] = sum(j in m) A[i, j]; }
}
schedule groups {
  split i by 4 -> io, ii;
  bind io -> block.x;
  bind ii -> thread.y;
  bind j -> thread.x;
}
