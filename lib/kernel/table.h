/* SPDX-License-Identifier: MIT */
/*
 * The kernel table: which function computes what on an instruction set.
 *
 * One constant sub-table per family and instruction set, defined in the family's files (c/, x86/,
 * arm/): `const qk_i8 qk_i8_avx2 = {...}`. A set that has no own version of a kernel names the one
 * of the set below it. The C kernels are the specification: every other variant equals them bit for
 * bit, which test/kernel checks. Kernels work on raw pointers, allocate nothing and cannot fail.
 */
#ifndef QK_TABLE_H
#define QK_TABLE_H

#include "base/base.h"
#include "base/ctx.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define QK_X86 1
#else
#define QK_X86 0
#endif
#if defined(__aarch64__) && defined(__GNUC__) && defined(__ARM_NEON)
#define QK_ARM 1
#else
#define QK_ARM 0
#endif
/* Instruction sets that this build has kernels for: -DQS_NO_AVX2 and so on leave one out. */
#if QK_X86 && !defined(QS_NO_AVX2)
#define QK_AVX2 1
#endif
#if QK_X86 && !defined(QS_NO_AVXVNNI)
#define QK_AVXVNNI 1
#endif
#if QK_X86 && !defined(QS_NO_AVX512VNNI)
#define QK_AVX512VNNI 1
#endif
/* AMX takes its epilogue, and products that tiles do not suit, from AVX-512. */
#if defined(QK_AVX512VNNI) && !defined(QS_NO_AMX)
#define QK_AMX 1
#endif
/* All three take float and byte kernels of 256 bits from the AVX2 files, */
#if defined(QK_AVX2) || defined(QK_AVXVNNI) || defined(QK_AVX512VNNI)
#define QK_YMM 1
#endif
/* two of them also integer kernels without products (i8_ymm.c). */
#if defined(QK_AVX2) || defined(QK_AVXVNNI)
#define QK_YMM_I8 1
#endif
#if QK_ARM && !defined(QS_NO_NEON)
#define QK_NEON 1
#endif
#if QK_ARM && !defined(QS_NO_NEONDOT)
#define QK_NEONDOT 1
#endif
#if QK_ARM && !defined(QS_NO_NEONI8MM)
#define QK_NEONI8MM 1
#endif
/* Function attribute: an extension of ARMv8. */
#if defined(__clang__)
#define QK_ARM_TARGET(extension) __attribute__((target(extension)))
#else
#define QK_ARM_TARGET(extension) __attribute__((target("arch=armv8.2-a+" extension)))
#endif

struct qk_i8;    /* kernel/i8.h: u8 x s8 products, convolution, requantization */
struct qk_f32;   /* kernel/f32.h: float products, convolution; pooling */
struct qk_ew;    /* kernel/ew.h: element-wise functions of floats */
struct qk_u8;    /* kernel/u8.h: and of bytes */
struct qk_nbits; /* kernel/nbits.h: products with 4-bit weights */

typedef struct qk_table {
    int32_t isa; /* QSIM_ISA_* */
    const struct qk_i8 *i8;
    const struct qk_f32 *f32;
    const struct qk_ew *ew;
    const struct qk_u8 *u8;
    const struct qk_nbits *nbits;
} qk_table;

/* The table of one instruction set (not AUTO); NULL if this build has none for it. Static. */
const struct qk_table *qk_table_get(int32_t isa);
/*
 * The table of an instruction set with other tiles, for cores with two ports for dot products of
 * 512 bits; NULL where there is none. Static.
 */
const struct qk_table *qk_table_two_ports(int32_t isa);
/* The one of these two that suits this CPU, by qk_two_ports (kernel/peaks.h). */
const struct qk_table *qk_table_here(int32_t isa);
/* The table of the best instruction set that this CPU runs and the system grants. Static. */
const struct qk_table *qk_table_best(void);

#endif
