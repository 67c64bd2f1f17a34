// RED_KERNEL marks a function of C or C++ for `redc lift`. Other compilers see nothing of it.
//
//   #include <red_kernel.h>
//
//   RED_KERNEL void rowsum(int n, int m, const float A[n][m], float B[n]) {
//     for (int i = 0; i < n; i++) {
//       float s = 0;
//       for (int j = 0; j < m; j++) s += A[i][j];
//       B[i] = s;
//     }
//   }
//
//   redc lift rowsum.c                # the kernel as text of the language
//   redc lift rowsum.c -o rowsum.ptx  # compiled
#ifndef RED_KERNEL_H
#define RED_KERNEL_H

#ifdef __clang__
#define RED_KERNEL __attribute__((annotate("red_kernel")))
#else
#define RED_KERNEL
#endif

#endif
