/* SPDX-License-Identifier: MIT */
/*
 * The AVX-VNNI kernels in EVEX form, for CPUs that have AVX-512 VNNI only, from the same source: so
 * they are tested although no CPU at hand may have the VEX form.
 */
#include "checkkernel.h"

#ifdef QK_AVXVNNI
#define TARGET __attribute__((target("avx2,fma,avx512f,avx512vl,avx512bw,avx512vnni")))
#define TABLE  ck_i8_evex256
#define VNNI   _mm256_dpbusd_epi32

extern const struct qk_i8 ck_i8_evex256;

#include "kernel/x86/i8_vnni_ymm.h"

const qk_table *ck_table_evex256(void) {
    static qk_table table;
    if (!qsim_isa_available(QSIM_ISA_AVX512VNNI))
        return NULL;
    table = *qk_table_get(QSIM_ISA_AVXVNNI);
    table.i8 = &ck_i8_evex256;
    return &table;
}
#else
const qk_table *ck_table_evex256(void) {
    return NULL;
}
#endif
