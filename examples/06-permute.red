// The first two axes of a tensor exchanged, for elements of any type: -D T=... says which, once for each kernel wanted.
// redc 06-permute.red -D T=f16 -D T=c64 -o permute.ptx
// redc 06-permute.red -D T=f32 --emit=cuda
// redc run 06-permute.red -D T=f16 --size a=3 --size b=5 --size c=70 --device=sim --check --arg X=iota
kernel permute<T>(X: T[a, b, c]) -> (Y: T[b, a, c]) {
  for i in a, j in b, k in c { Y[j, i, k] = X[i, j, k]; }
}
