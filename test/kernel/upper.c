/* SPDX-License-Identifier: MIT */
/* Are the upper halves of vector registers in use? The answer of XGETBV with ECX = 1. */
#include "checkkernel.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Upper halves of YMM registers (bit 2) and of ZMM0 to 15 (bit 6). */
#define UPPER (1u << 2 | 1u << 6)

bool ck_upper_in_use(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low & UPPER) != 0;
}

void ck_upper_clear(void) {
    __asm__ volatile("vzeroupper" ::: "memory");
}

bool ck_upper_known(void) {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (!qsim_isa_available(QSIM_ISA_AVX2) || !__get_cpuid_count(13, 1, &a, &b, &c, &d) ||
        !(a & 1u << 2))
        return false;
    ck_upper_clear();
    if (ck_upper_in_use())
        return false;
    __asm__ volatile("vpcmpeqb %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
    const bool seen = ck_upper_in_use();
    ck_upper_clear();
    return seen;
}

#else

bool ck_upper_in_use(void) {
    return false;
}

void ck_upper_clear(void) {
}

bool ck_upper_known(void) {
    return false;
}
#endif
