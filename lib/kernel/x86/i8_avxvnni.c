/* SPDX-License-Identifier: MIT */
/* Integer kernels for AVX-VNNI: vpdpbusd in its VEX form, on 256-bit vectors. */
#include "kernel/table.h"

#if QK_X86
#define TARGET    __attribute__((target("avx2,fma,avxvnni")))
#define TABLE     qk_i8_avxvnni
#define TILE_ROWS 6
#define W_GROUP   4

#define LOAD_B(v) const __m256i w##v = load(b + 32 * v);
#define LOAD_A(r) const __m256i x##r = broadcast(p##r + i);
#define DOT(r, v)                                                                                  \
    a##r##_##v = _mm256_dpbusd_avx_epi32(a##r##_##v, x##r, w##v);                                  \
    __asm__("" : "+x"(a##r##_##v));

#include "kernel/x86/i8_ymm.h"

INLINE __m256i dot(__m256i acc, __m256i x, __m256i w) {
    return _mm256_dpbusd_avx_epi32(acc, x, w);
}

INLINE __m256i window_dot(__m256i acc, __m256i x, __m256i w) {
    return dot(acc, x, w);
}
#endif
