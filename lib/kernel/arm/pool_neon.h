/* SPDX-License-Identifier: MIT */
/* The pooling kernels of pool_neon.c. */
#ifndef QK_POOL_NEON_H
#define QK_POOL_NEON_H

#include "kernel/f32.h"

void qk_max_u8_neon(const qk_pool *p);
void qk_average_u8_neon(const qk_pool *p);

#endif
