/* SPDX-License-Identifier: MIT */
#ifndef QK_POOL_X86_H
#define QK_POOL_X86_H

#include "kernel/f32.h"

void qk_max_u8_avx2(const qk_pool *p);
void qk_average_u8_avx2(const qk_pool *p);
void qk_max_u8_avx512(const qk_pool *p);
void qk_average_u8_avx512(const qk_pool *p);

#endif
