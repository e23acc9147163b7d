/* SPDX-License-Identifier: MIT */
/* Integer kernels for AVX-VNNI: vpdpbusd in its VEX form, on 256-bit vectors. */
#include "kernel/table.h"

#ifdef QK_AVXVNNI
#define TARGET __attribute__((target("avx2,fma,avxvnni")))
#define TABLE  qk_i8_avxvnni
#define VNNI   _mm256_dpbusd_avx_epi32

#include "kernel/x86/i8_vnni_ymm.h"
#endif
