kernel k508004527(A5: f32[m, n], A6: u64[n, m], A7: u8[n + 2, m], A13: i32[n] strided, A14: bool[n, m], A17: i32[n], A21: i32[n] strided(1)) -> (B16: i32[n]) { for i in n { let v9 = prod(j in m if ((!(!((i & 1) == 0))) == (A7[i + 1, j] == 2)); init = 3) { let x8 = i32(A6[i, j]); x8 + x8 }; let v15 = sum(j in m if ((A14[i, m - 1 - j]) || (A5[j, i] > 3)); init = A13[n - 1 - i]) (~(v9 & 3)); B16[i] = ((A17[i] | 3) | (v15 | A21[i])); } }

schedule k508004527 { tile i by 32, j by 32 -> p0, q0, r0, u0; stage A13 at u0 in shared; tile r0 by 32, u0 by 32 -> p2, q2, r2, u2; }
