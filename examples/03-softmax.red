// Softmax of each row: three loops over a row, two of them reductions over the threads of a block. The second schedule
// keeps the row in registers, so that it is read once.
// redc 03-softmax.red -o softmax.ptx
// redc 03-softmax.red --emit=cuda --schedule=once
// redc run 03-softmax.red --size n=3 --size m=700 --device=sim --check --arg "X=rand(1)"
// redc run 03-softmax.red --size n=2 --size m=9000 --device=sim --check --arg "X=rand(1)"
kernel softmax(X: f32[n, m]) -> (Y: f32[n, m]) {
  for i in n {
    let peak = max(j in m) X[i, j];
    let total = sum(j in m) exp(X[i, j] - peak);
    for j in m { Y[i, j] = exp(X[i, j] - peak) / total; }
  }
}
schedule softmax as once when m <= 4096 {
  bind i -> block.x;
  split j by 256 -> jo, jt;  // all three j
  bind jt -> thread.x;
  stage X at i in registers;
}
schedule softmax as block {
  bind i -> block.x;
  split j by 256 -> jo, jt;
  bind jt -> thread.x;
}
