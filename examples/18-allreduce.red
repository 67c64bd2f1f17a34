// Three reductions over threads that compilers of this kind are shown with: rows of 11, a box of 4 x 8 on two thread axes, and a million short rows.
// docs/allreduce.md goes through what becomes of each.
// redc 18-allreduce.red -D m=8 --emit=cuda
// redc 18-allreduce.red -D m=32 --arch=sm_90 --explain
// redc 18-allreduce.red -D m=11 --arch=sm_90 -o allreduce.ptx
// redc run 18-allreduce.red -D m=8 --kernel elevens --device=sim --check --arg "A=i0 + i1" --print B
// redc run 18-allreduce.red -D m=8 --kernel box --device=sim --check --arg "A=8*i1 + i2" --print B
// redc run 18-allreduce.red -D m=16 --kernel million --size n=1000 --device=sim --check --arg "A=i % 5"
kernel elevens(A: f32[1024, 11]) -> (B: f32[1024]) {
  for i in 1024 { B[i] = sum(j in 11) A[i, j]; }
}
schedule elevens {
  bind i -> block.x;
  bind j -> thread.x;
}

kernel box(A: f32[1, 4, 8]) -> (B: f32[1]) {
  for i in 1 { B[i] = sum(j in 4, k in 8) A[i, j, k]; }
}
schedule box {
  bind i -> block.x;
  bind j -> thread.y;
  bind k -> thread.x;
}

// 128 threads a block, so many rows that they are full.
kernel million(A: f32[n, m]) -> (B: f32[n]) {
  for i in n { B[i] = sum(j in m) A[i, j]; }
}
schedule million {
  split i by 128 / m -> io, ii;
  bind io -> block.x;
  bind ii -> thread.y;
  bind j -> thread.x;
}
