/* SPDX-License-Identifier: MIT */
/* Float depthwise convolution and pooling, AVX2 with FMA3. */
#include "kernel/x86/pool_x86.h"

#ifdef QK_YMM
#include <math.h>

#include "kernel/x86/f32_ymm.h"

#define PICK_INDEX   __m256i
#define PICK_MOST    2
#define PICK_LOAD(i) _mm256_loadu_si256((const __m256i *)(const void *)(i))
#define PICK(v, i)   _mm256_permutevar8x32_ps(v, i)

#define DW_WIDEST 4

#include "kernel/f32_tile.h"
#include "kernel/f32_depthwise.h"
#include "kernel/pool_tile.h"

DW_ONE(3, 1, 3)
DW_ONE(3, 1, 4)
DW_ONE(3, 2, 3)
DW_ONE(3, 2, 4)
DW_ONE(5, 1, 3)
DW_ONE(5, 1, 4)
DW_ONE(5, 2, 3)
DW_ONE(5, 2, 4)

void qk_depthwise_f32_avx2(const qk_depthwise_f32 *d) {
    static const dw_kind kinds[] = {
        {3, 1, {[3] = dw_3_1_3, dw_3_1_4}, {NULL}},
        {3, 2, {[3] = dw_3_2_3, dw_3_2_4}, {NULL}},
        {5, 1, {[3] = dw_5_1_3, dw_5_1_4}, {NULL}},
        {5, 2, {[3] = dw_5_2_3, dw_5_2_4}, {NULL}},
    };
    dw_image(d, kinds, QS_COUNT(kinds));
}

#define AS_IT_IS(v, count) (v)
#define DIVIDE(v, count)   _mm256_div_ps(v, SET1((float)(count)))
POOL(max_f32, float, SET1(-INFINITY), MAX, AS_IT_IS, "GCC unroll 2")
POOL_OF_ANY_SIZE(average_f32, float, SET1(0.0f), ADD, DIVIDE, "GCC unroll 1")

void qk_max_f32_avx2(const qk_pool *p) {
    max_f32(p);
}

void qk_average_f32_avx2(const qk_pool *p) {
    average_f32(p);
}
#endif
