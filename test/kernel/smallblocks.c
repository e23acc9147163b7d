/* SPDX-License-Identifier: MIT */
/*
 * The float products for two ports with blocks of few terms, from the same source: its own blocks
 * are larger than products that a plain loop can check in numbers.
 */
#include "checkkernel.h"

#ifdef QK_AVX512VNNI
#define FEW_TERMS             0
#define FAR_FLOATS            1
#define BLOCK_TERMS           24
#define qk_gemm_f32_two_ports ck_gemm_f32_small_blocks

#include "kernel/x86/f32_two_ports_avx512.c"

const qk_table *ck_table_smallblocks(void) {
    static qk_table table;
    static qk_f32 f32;
    if (!qsim_isa_available(QSIM_ISA_AVX512VNNI))
        return NULL;
    table = *qk_table_two_ports(QSIM_ISA_AVX512VNNI);
    f32 = *table.f32;
    f32.gemm = ck_gemm_f32_small_blocks;
    table.f32 = &f32;
    return &table;
}
#else
const qk_table *ck_table_smallblocks(void) {
    return NULL;
}
#endif
