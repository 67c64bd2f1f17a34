// The largest element of each row and where it is: a reduction of pairs. The lower index wins a tie.
// redc 04-argmax.red -o argmax.ptx
// redc 04-argmax.red --emit=cuda
// redc run 04-argmax.red --size n=3 --size m=50 --device=sim --check --arg "A=(i0 + 1) * (i1 % 7)" --print V --print P
kernel peak_at(A: f32[n, m]) -> (V: f32[n], P: i32[n]) {
  for i in n { (V[i], P[i]) = argmax(j in m) (A[i, j], i32(j)); }
}
schedule peak_at {
  bind i -> block.x;
  split j by 128 -> jo, jt;
  bind jt -> thread.x;
}
