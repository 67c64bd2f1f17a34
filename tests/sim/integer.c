// Integer instructions against C, on edge values and random ones.
#include "tests/sim/eval.h"

typedef unsigned __int128 wide;
typedef __int128 swide;

static const uint64_t edges[] = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 31,
                                 32,
                                 33,
                                 63,
                                 64,
                                 65,
                                 127,
                                 128,
                                 255,
                                 256,
                                 0x7fff,
                                 0x8000,
                                 0xffff,
                                 0x10000,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x100000000,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xffffffffffffffff,
                                 0xfffffffffffffffe,
                                 0xffffffff80000000,
                                 0x5555555555555555};
#define EDGES (sizeof edges / sizeof *edges)

static void fill(size_t count) {
  for (size_t i = 0; i < count; i++) {
    eval_a[i] = i < EDGES * EDGES ? edges[i % EDGES] : eval_random() >> (eval_random() & 63);
    eval_b[i] = i < EDGES * EDGES ? edges[i / EDGES] : eval_random() >> (eval_random() & 63);
    eval_c[i] = eval_random() >> (eval_random() & 63);
  }
}

#define CHECK(line, width, expected)                                                                         \
  do {                                                                                                       \
    fill(2048);                                                                                              \
    eval(line, width, 2048);                                                                                 \
    for (size_t i = 0; i < 2048; i++) {                                                                      \
      uint64_t a = eval_a[i], b = eval_b[i], c = eval_c[i];                                                  \
      (void)a, (void)b, (void)c;                                                                             \
      uint64_t want = (uint64_t)(expected);                                                                  \
      cr_assert(eval_o[i] == want, "%s a=%llx b=%llx c=%llx: %llx, not %llx", line, (unsigned long long)a,   \
                (unsigned long long)b, (unsigned long long)c, (unsigned long long)eval_o[i],                 \
                (unsigned long long)want);                                                                   \
    }                                                                                                        \
  } while (0)

Test(integer, wraps) {
  CHECK("add.u16 %oh, %ah, %bh;", 16, (uint16_t)(a + b));
  CHECK("add.s32 %or, %ar, %br;", 32, (uint32_t)(a + b));
  CHECK("sub.s64 %od, %ad, %bd;", 64, a - b);
  CHECK("mul.lo.s16 %oh, %ah, %bh;", 16, (uint16_t)(a * b));
  CHECK("mul.lo.u32 %or, %ar, %br;", 32, (uint32_t)(a * b));
  CHECK("mul.lo.s64 %od, %ad, %bd;", 64, a * b);
  CHECK("mad.lo.s32 %or, %ar, %br, %cr;", 32, (uint32_t)(a * b + c));
  CHECK("neg.s32 %or, %ar;", 32, (uint32_t)(0 - a));
  CHECK("abs.s32 %or, %ar;", 32, (int32_t)a < 0 ? (uint32_t)(0 - a) : (uint32_t)a);
  CHECK("not.b16 %oh, %ah;", 16, (uint16_t)~a);
}

Test(integer, products) {
  CHECK("mul.hi.u32 %or, %ar, %br;", 32, (uint64_t)(uint32_t)a * (uint32_t)b >> 32);
  CHECK("mul.hi.s32 %or, %ar, %br;", 32, (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32));
  CHECK("mul.hi.u64 %od, %ad, %bd;", 64, (wide)a * b >> 64);
  CHECK("mul.hi.s64 %od, %ad, %bd;", 64, (swide)(int64_t)a * (int64_t)b >> 64);
  CHECK("mul.hi.s16 %oh, %ah, %bh;", 16, (uint16_t)((int16_t)a * (int16_t)b >> 16));
  CHECK("mul.wide.s32 %od, %ar, %br;", 64, (int64_t)(int32_t)a * (int32_t)b);
  CHECK("mul.wide.u32 %od, %ar, %br;", 64, (uint64_t)(uint32_t)a * (uint32_t)b);
  CHECK("mul.wide.s16 %or, %ah, %bh;", 32, (uint32_t)((int16_t)a * (int16_t)b));
  CHECK("mad.wide.u32 %od, %ar, %br, %cd;", 64, (uint64_t)(uint32_t)a * (uint32_t)b + c);
  CHECK("mul24.lo.u32 %or, %ar, %br;", 32, (uint32_t)((a & 0xffffff) * (b & 0xffffff)));
  CHECK("mad.hi.s32 %or, %ar, %br, %cr;", 32,
        (uint32_t)((uint64_t)((int64_t)(int32_t)a * (int32_t)b >> 32) + c));
}

Test(integer, division) {
  CHECK("div.u32 %or, %ar, %br;", 32, (uint32_t)b ? (uint32_t)a / (uint32_t)b : 0xffffffffu);
  CHECK("rem.u32 %or, %ar, %br;", 32, (uint32_t)b ? (uint32_t)a % (uint32_t)b : (uint32_t)a);
  CHECK("div.s64 %od, %ad, %bd;", 64,
        b == 0            ? UINT64_MAX
        : b == UINT64_MAX ? 0 - a
                          : (uint64_t)((int64_t)a / (int64_t)b));
  CHECK("rem.s32 %or, %ar, %br;", 32,
        (int32_t)b == 0    ? (uint32_t)a
        : (int32_t)b == -1 ? 0
                           : (uint32_t)((int32_t)a % (int32_t)b));
  CHECK("div.s16 %oh, %ah, %bh;", 16, (int16_t)b == 0 ? 0xffff : (uint16_t)((int16_t)a / (int16_t)b));
}

// Amounts at or over the width shift everything out.
Test(integer, shifts) {
  CHECK("shl.b32 %or, %ar, %br;", 32, (uint32_t)b >= 32 ? 0 : (uint32_t)((uint32_t)a << ((uint32_t)b & 31)));
  CHECK("shl.b64 %od, %ad, %br;", 64, (uint32_t)b >= 64 ? 0 : a << ((uint32_t)b & 63));
  CHECK("shl.b16 %oh, %ah, %br;", 16,
        (uint32_t)b >= 16 ? 0 : (uint16_t)((uint32_t)(uint16_t)a << ((uint32_t)b & 15)));
  CHECK("shr.u32 %or, %ar, %br;", 32, (uint32_t)b >= 32 ? 0 : (uint32_t)a >> ((uint32_t)b & 31));
  CHECK("shr.s32 %or, %ar, %br;", 32, (uint32_t)((int32_t)a >> ((uint32_t)b >= 32 ? 31 : (uint32_t)b)));
  CHECK("shr.s64 %od, %ad, %br;", 64, (int64_t)a >> ((uint32_t)b >= 64 ? 63 : (uint32_t)b));
  CHECK("shr.s16 %oh, %ah, %br;", 16, (uint16_t)((int16_t)a >> ((uint32_t)b >= 16 ? 15 : (uint32_t)b)));
  CHECK("shf.l.wrap.b32 %or, %ar, %br, %cr;", 32, ((b << 32 | (uint32_t)a) << (c & 31)) >> 32);
  CHECK("shf.r.wrap.b32 %or, %ar, %br, %cr;", 32, (uint32_t)((b << 32 | (uint32_t)a) >> (c & 31)));
  CHECK("shf.l.clamp.b32 %or, %ar, %br, %cr;", 32,
        (uint32_t)c >= 32 ? (uint32_t)a : ((b << 32 | (uint32_t)a) << (uint32_t)c) >> 32);
}

Test(integer, order) {
  CHECK("min.s32 %or, %ar, %br;", 32, (uint32_t)((int32_t)a < (int32_t)b ? a : b));
  CHECK("min.u16 %oh, %ah, %bh;", 16, (uint16_t)a < (uint16_t)b ? (uint16_t)a : (uint16_t)b);
  CHECK("max.s64 %od, %ad, %bd;", 64, (int64_t)a > (int64_t)b ? a : b);
  CHECK("max.u64 %od, %ad, %bd;", 64, a > b ? a : b);
  CHECK("setp.lt.s16 %op, %ah, %bh; selp.b32 %or, 1, 0, %op;", 32, (int16_t)a < (int16_t)b);
  CHECK("setp.hs.u64 %op|%oq, %ad, %bd; selp.b32 %or, 1, 0, %op; @%oq or.b32 %or, %or, 2;", 32,
        a >= b ? 1 : 2);
  CHECK("setp.eq.s32 %ap, %cr, 0; setp.gt.or.s32 %op, %ar, %br, !%ap; selp.b32 %or, 1, 0, %op;", 32,
        (int32_t)a > (int32_t)b || (uint32_t)c != 0);
  CHECK("set.le.u32.s32 %or, %ar, %br;", 32, (int32_t)a <= (int32_t)b ? 0xffffffffu : 0);
  CHECK("slct.b32.s32 %or, %ar, %br, %cr;", 32, (uint32_t)((int32_t)c >= 0 ? a : b));
}

Test(integer, carries) {
  CHECK("add.cc.u32 %or, %ar, %br; addc.u32 %or, %cr, 0;", 32,
        (uint32_t)(c + (((a & 0xffffffff) + (b & 0xffffffff)) >> 32)));
  CHECK("sub.cc.u64 %od, %ad, %bd; subc.u64 %od, %cd, 0;", 64, c - (a < b));
  CHECK("mad.lo.cc.u64 %od, %ad, %bd, %cd; madc.hi.u64 %od, %ad, %bd, 0;", 64, ((wide)a * b + c) >> 64);
}

static uint64_t reverse(uint64_t a, int bits) {
  uint64_t out = 0;
  for (int i = 0; i < bits; i++) out |= (a >> i & 1) << (bits - 1 - i);
  return out;
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t out = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t pick = c >> (4 * i) & 15, byte = (uint32_t)(((uint64_t)b << 32 | a) >> (8 * (pick & 7))) & 255;
    out |= (pick & 8 ? (byte >> 7) * 255 : byte) << (8 * i);
  }
  return out;
}

// One bit at a time, as the manual writes it.
static uint64_t extract(uint64_t a, uint32_t position, uint32_t length, int bits, bool is_signed) {
  uint64_t out = 0;
  position &= 255, length &= 255;
  uint32_t top = position + length - 1 > (uint32_t)bits - 1 ? (uint32_t)bits - 1 : position + length - 1;
  uint64_t sign = is_signed && length ? a >> top & 1 : 0;
  for (uint32_t i = 0; i < (uint32_t)bits; i++) {
    uint64_t bit = i < length && position + i < (uint32_t)bits ? a >> (position + i) & 1 : sign;
    out |= bit << i;
  }
  return out;
}

static uint64_t insert(uint64_t a, uint64_t b, uint32_t position, uint32_t length, int bits) {
  position &= 255, length &= 255;
  for (uint32_t i = 0; i < length && position + i < (uint32_t)bits; i++) {
    b = (b & ~(UINT64_C(1) << (position + i))) | (a >> i & 1) << (position + i);
  }
  return b;
}

Test(integer, bits) {
  CHECK("popc.b64 %or, %ad;", 32, __builtin_popcountll(a));
  CHECK("clz.b32 %or, %ar;", 32, (uint32_t)a ? __builtin_clz((uint32_t)a) : 32);
  CHECK("brev.b32 %or, %ar;", 32, reverse(a, 32));
  CHECK("brev.b64 %od, %ad;", 64, reverse(a, 64));
  CHECK("bfind.u32 %or, %ar;", 32, (uint32_t)a ? 31u - (uint32_t)__builtin_clz((uint32_t)a) : 0xffffffffu);
  CHECK("bfind.shiftamt.u64 %or, %ad;", 32, a ? (uint32_t)__builtin_clzll(a) : 0xffffffffu);
  CHECK("bfe.u32 %or, %ar, %br, %cr;", 32, extract((uint32_t)a, (uint32_t)b, (uint32_t)c, 32, false));
  CHECK("bfe.s32 %or, %ar, %br, %cr;", 32, extract((uint32_t)a, (uint32_t)b, (uint32_t)c, 32, true));
  CHECK("bfe.s64 %od, %ad, %br, %cr;", 64, extract(a, (uint32_t)b, (uint32_t)c, 64, true));
  CHECK("bfi.b32 %or, %ar, %cr, %br, 9;", 32, insert((uint32_t)a, (uint32_t)c, (uint32_t)b, 9, 32));
  CHECK("bfi.b64 %od, %ad, %cd, %br, 70;", 64, insert(a, c, (uint32_t)b, 70, 64));
  CHECK("prmt.b32 %or, %ar, %br, %cr;", 32, permute((uint32_t)a, (uint32_t)b, (uint32_t)c));
  CHECK("lop3.b32 %or, %ar, %br, %cr, 0xe8;", 32, (uint32_t)((a & b) | (a & c) | (b & c)));
  CHECK("lop3.b32 %or, %ar, %br, %cr, 0x96;", 32, (uint32_t)(a ^ b ^ c));
  CHECK("dp4a.u32.u32 %or, %ar, %br, %cr;", 32,
        (uint32_t)(c + (a & 255) * (b & 255) + (a >> 8 & 255) * (b >> 8 & 255) +
                   (a >> 16 & 255) * (b >> 16 & 255) + (a >> 24 & 255) * (b >> 24 & 255)));
  CHECK("sad.u32 %or, %ar, %br, %cr;", 32,
        (uint32_t)(c + ((uint32_t)a > (uint32_t)b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a)));
}

Test(integer, conversions) {
  CHECK("cvt.s64.s32 %od, %ar;", 64, (int64_t)(int32_t)a);
  CHECK("cvt.u64.u16 %od, %ah;", 64, (uint16_t)a);
  CHECK("cvt.s32.s8 %or, %ar;", 32, (uint32_t)(int8_t)a);
  CHECK("cvt.u16.u64 %oh, %ad;", 16, (uint16_t)a);
  CHECK("cvt.sat.u8.s32 %or, %ar;", 32, (int32_t)a < 0 ? 0 : (int32_t)a > 255 ? 255 : (uint32_t)a);
  CHECK("cvt.sat.s16.s64 %or, %ad;", 32,
        (uint32_t)((int64_t)a < -32768  ? -32768
                   : (int64_t)a > 32767 ? 32767
                                        : (int64_t)a));
  CHECK("cvt.sat.s32.u32 %or, %ar;", 32, (uint32_t)a > 0x7fffffff ? 0x7fffffff : (uint32_t)a);
}

// Packing and unpacking keep every bit where the manual says: the first element is the lowest.
Test(integer, packing) {
  CHECK("mov.b32 %or, {%ah, %bh};", 32, (uint32_t)(uint16_t)a | (uint32_t)(uint16_t)b << 16);
  CHECK("mov.b64 %od, {%ar, %br};", 64, (uint32_t)a | (uint64_t)(uint32_t)b << 32);
  CHECK("mov.b64 {%or, %br}, %ad;", 32, (uint32_t)a);
  CHECK("mov.b64 {%bh, %ch, %oh, %ah}, %ad;", 16, (uint16_t)(a >> 32));
  CHECK("{ .reg .b128 q; mov.b128 q, {%ad, %bd}; mov.b128 {%cd, %od}, q; }", 64, b);
}
