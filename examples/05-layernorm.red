// Layer normalisation of halves: mean and variance in one pass over the row (Welford), with a reducer of our own. Halves are
// storage: they become f32 when they are read.
// redc 05-layernorm.red -o layernorm.ptx
// redc 05-layernorm.red --emit=cuda
// redc run 05-layernorm.red --size n=2 --size m=300 --device=sim --check --arg "X=rand(1)" --arg "G=const(1)" --arg "H=const(0)" --arg eps=1e-5
reducer welford(mean: f32, m2: f32, count: f32) {
  identity (0, 0, 0);
  combine(a, b) {
    let c = a.count + b.count;
    let d = b.mean - a.mean;
    let w = c > 0 ? b.count / c : 0;
    (a.mean + d * w, a.m2 + b.m2 + d * d * a.count * w, c)
  }
  update(a, x) {
    let c = a.count + 1;
    let d = x - a.mean;
    let mean = a.mean + d / c;
    (mean, a.m2 + d * (x - mean), c)
  }
}
kernel layernorm(X: f16[n, m], G: f16[m], H: f16[m], eps: f32) -> (Y: f16[n, m]) {
  for i in n {
    let (mean, m2, count) = welford(j in m) X[i, j];
    let r = rsqrt(m2 / m + eps);
    for j in m { Y[i, j] = (X[i, j] - mean) * r * G[j] + H[j]; }
  }
}
schedule layernorm {
  bind i -> block.x;
  split j by 128 -> jo, jt;
  bind jt -> thread.x;
}
