/* SPDX-License-Identifier: MIT */
/* Pooling and float depthwise kernels that x86 files share. */
#ifndef QK_POOL_X86_H
#define QK_POOL_X86_H

#include "kernel/f32.h"

/* The most bytes that always add up within 16 bits: 257 * 255 = 65535. */
#define QK_POOL_WORD_TAPS 257

void qk_depthwise_f32_avx2(const qk_depthwise_f32 *d);
void qk_max_f32_avx2(const qk_pool *p);
void qk_average_f32_avx2(const qk_pool *p);
void qk_max_u8_avx2(const qk_pool *p);
void qk_average_u8_avx2(const qk_pool *p);
void qk_average_u8_avx512(const qk_pool *p);

#endif
