/* SPDX-License-Identifier: MIT */
#include "kernel/table.h"

#include "kernel/ew.h"
#include "kernel/f32.h"
#include "kernel/i8.h"
#include "kernel/nbits.h"
#include "kernel/peaks.h"
#include "kernel/u8.h"

/* For kernel/pool_tile.h. */
extern const int32_t qk_pick_even[5][16];
const int32_t qk_pick_even[5][16] = {
    {0, 2, 4, 6, 8, 10, 12, 14},         {0, 1, 4, 5, 8, 9, 12, 13},
    {0, 1, 2, 6, 7, 8, 12, 13, 14},      {0, 1, 2, 3, 8, 9, 10, 11},
    {0, 1, 2, 3, 4, 10, 11, 12, 13, 14},
};

#if QK_X86
/* The C kernels where the CPU has FMA3: float products without a library call for each. */
static const qk_table table_cfma = {.isa = QSIM_ISA_C,
                                    .i8 = &qk_i8_c,
                                    .f32 = &qk_f32_cfma,
                                    .ew = &qk_ew_c,
                                    .u8 = &qk_u8_c,
                                    .nbits = &qk_nbits_c};
#endif

/* In ascending order of preference. */
static const qk_table tables[] = {
    {.isa = QSIM_ISA_C,
     .i8 = &qk_i8_c,
     .f32 = &qk_f32_c,
     .ew = &qk_ew_c,
     .u8 = &qk_u8_c,
     .nbits = &qk_nbits_c},
#ifdef QK_AVX2
    {.isa = QSIM_ISA_AVX2,
     .i8 = &qk_i8_avx2,
     .f32 = &qk_f32_avx2,
     .ew = &qk_ew_avx2,
     .u8 = &qk_u8_avx2,
     .nbits = &qk_nbits_avx2},
#endif
#ifdef QK_AVXVNNI
    {.isa = QSIM_ISA_AVXVNNI,
     .i8 = &qk_i8_avxvnni,
     .f32 = &qk_f32_avx2,
     .ew = &qk_ew_avx2,
     .u8 = &qk_u8_avx2,
     .nbits = &qk_nbits_avx2},
#endif
#ifdef QK_AVX512VNNI
    {.isa = QSIM_ISA_AVX512VNNI,
     .i8 = &qk_i8_avx512vnni,
     .f32 = &qk_f32_avx512,
     .ew = &qk_ew_avx512,
     .u8 = &qk_u8_avx512,
     .nbits = &qk_nbits_avx512},
#endif
#ifdef QK_AMX
    {.isa = QSIM_ISA_AMX,
     .i8 = &qk_i8_amx,
     .f32 = &qk_f32_two_ports, /* all CPUs with tiles have two ports */
     .ew = &qk_ew_avx512,
     .u8 = &qk_u8_avx512,
     .nbits = &qk_nbits_avx512},
#endif
/* Element-wise float kernels are the C ones: any build for aarch64 compiles them to NEON. */
#ifdef QK_NEON
    {.isa = QSIM_ISA_NEON,
     .i8 = &qk_i8_neon,
     .f32 = &qk_f32_neon,
     .ew = &qk_ew_c,
     .u8 = &qk_u8_neon,
     .nbits = &qk_nbits_c},
#endif
#ifdef QK_NEONDOT
    {.isa = QSIM_ISA_NEONDOT,
     .i8 = &qk_i8_neondot,
     .f32 = &qk_f32_neon,
     .ew = &qk_ew_c,
     .u8 = &qk_u8_neon,
     .nbits = &qk_nbits_c},
#endif
#ifdef QK_NEONI8MM
    {.isa = QSIM_ISA_NEONI8MM,
     .i8 = &qk_i8_neoni8mm,
     .f32 = &qk_f32_neon,
     .ew = &qk_ew_c,
     .u8 = &qk_u8_neon,
     .nbits = &qk_nbits_c},
#endif
};

const struct qk_table *qk_table_get(int32_t isa) {
#if QK_X86
    if (isa == QSIM_ISA_C && qs_cpu_has_isa(QSIM_ISA_AVX2))
        return &table_cfma;
#endif
    for (size_t i = 0; i < QS_COUNT(tables); i++)
        if (tables[i].isa == isa)
            return &tables[i];
    return NULL;
}

const struct qk_table *qk_table_two_ports(int32_t isa) {
#ifdef QK_AVX512VNNI
    static const qk_table avx512vnni = {.isa = QSIM_ISA_AVX512VNNI,
                                        .i8 = &qk_i8_two_ports,
                                        .f32 = &qk_f32_two_ports,
                                        .ew = &qk_ew_avx512,
                                        .u8 = &qk_u8_avx512,
                                        .nbits = &qk_nbits_avx512};
    if (isa == QSIM_ISA_AVX512VNNI)
        return &avx512vnni;
#endif
    (void)isa;
    return NULL;
}

const struct qk_table *qk_table_here(int32_t isa) {
    const qk_table *other = qk_table_two_ports(isa);
    return other && qk_two_ports() ? other : qk_table_get(isa);
}

const struct qk_table *qk_table_best(void) {
    size_t i = QS_COUNT(tables) - 1;
    while (i > 0 && !(qs_cpu_has_isa(tables[i].isa) && qs_cpu_take_isa(tables[i].isa)))
        i--;
    return qk_table_get(tables[i].isa);
}
