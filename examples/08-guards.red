// Ranges that depend on an axis, and conditions: where a guard is false nothing is evaluated, and no index is out of bounds.
// redc 08-guards.red -o guards.ptx
// redc 08-guards.red --emit=cuda
// redc run 08-guards.red --kernel triangle --size n=50 --device=sim --check --arg "A=i0 - i1" --print B
// redc run 08-guards.red --kernel even --size n=9 --size m=20 --device=sim --check --arg "A=1" --arg "B=-1" --print B
// redc run 08-guards.red --kernel blur --size n=40 --device=sim --check --arg "A=i0" --print B
kernel triangle(A: f32[n, n]) -> (B: f32[n]) {
  for i in n { B[i] = sum(j in 0..i + 1) A[i, j]; }
}
// The odd elements of B stay as they are.
kernel even(A: f32[n, m]) -> (B: f32[n]) {
  for i in n {
    if i % 2 == 0 { B[i] = sum(j in m if j <= i) A[i, j]; }
  }
}
kernel blur(A: f32[n]) -> (B: f32[n]) {
  for i in n { B[i] = sum(d in -2..3 if i + d >= 0 && i + d < n) A[i + d] / 5; }
}
schedule triangle {
  bind i -> block.x;
  split j by 32 -> jo, jt;
  bind jt -> thread.x;
}
