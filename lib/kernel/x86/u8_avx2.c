/* SPDX-License-Identifier: MIT */
#include "kernel/table.h"

#if QK_X86
#include "kernel/u8_loops.h"

QK_U8_INSTANCE(avx2, __attribute__((target("avx2"))), avx2);
#endif
