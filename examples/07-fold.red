// Folding into what an output holds, as BLAS does with beta; and a matrix times a vector.
// redc 07-fold.red -o fold.ptx
// redc 07-fold.red --emit=cuda
// redc run 07-fold.red --kernel fold --size n=3 --size m=40 --device=sim --check --arg "A=i0 + i1" --arg "B=10*i0" --arg alpha=0.5 --arg beta=2 --print B
// redc run 07-fold.red --kernel matvec --size n=3 --size m=40 --device=sim --check --arg "A=i0 + i1" --arg "x=i0" --arg "y=1" --print y
kernel fold(A: f32[n, m], alpha: f32, beta: f32) -> (B: f32[n]) {
  for i in n { B[i] = alpha * B[i] + beta * sum(j in m) A[i, j]; }
}
kernel matvec(A: f32[n, m], x: f32[m]) -> (y: f32[n]) {
  for i in n { y[i] += sum(j in m) (A[i, j] * x[j]); }
}
schedule matvec {
  bind i -> block.x;
  split j by 64 -> jo, jt;
  bind jt -> thread.x;
}
