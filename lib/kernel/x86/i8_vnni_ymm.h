/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels with vpdpbusd on 256-bit vectors, in one source for both of its forms: VEX
 * (i8_avxvnni.c) and EVEX (test/kernel/evex256.c). Before including it, define TARGET, TABLE and
 * VNNI(acc, x, w), the form's intrinsic.
 *
 * CPUs with AVX-VNNI are not always at hand: the tests run this source in its EVEX form on any CPU
 * with AVX-512 VNNI, which leaves untested only how the compiler encodes VEX.
 */
#define W_GROUP 4

#define LOAD_B(v) const __m256i w##v = load(b + 32 * v);
#define LOAD_A(r) const __m256i x##r = broadcast(p##r + i);
#define DOT(r, v)                                                                                  \
    a##r##_##v = VNNI(a##r##_##v, x##r, w##v);                                                     \
    __asm__("" : "+v"(a##r##_##v));

#include "kernel/x86/i8_ymm.h"

INLINE __m256i dot(__m256i acc, __m256i x, __m256i w) {
    return VNNI(acc, x, w);
}

INLINE __m256i window_dot(__m256i acc, __m256i x, __m256i w) {
    return VNNI(acc, x, w);
}

#include "kernel/x86/i8_dw_rows_avxvnni.h"
#include "kernel/x86/i8_dw_window.h"
