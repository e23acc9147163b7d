/* SPDX-License-Identifier: MIT */
#include "kernel/table.h"

#if QK_X86
#include "kernel/ew_loops.h"

QK_EW_INSTANCE(avx2, __attribute__((target("avx2"))))
QK_EW_INSTANCE(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))))
#endif
