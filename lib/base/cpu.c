/* SPDX-License-Identifier: MIT */
/* What this CPU can run, and the state of its floating point unit. */
#ifdef __linux__
#define _GNU_SOURCE /* syscall */
#endif
#include "base/ctx.h"

static const char *const isa_names[QS_ISA_COUNT] = {
    "auto", "c", "avx2", "avxvnni", "avx512vnni", "neon", "neondot", "neoni8mm", "amx",
};

const char *qsim_isa_name(int32_t isa) {
    return isa >= 0 && isa < QS_ISA_COUNT ? isa_names[isa] : NULL;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Bits of XCR0, the registers that the system saves: xmm, ymm; also opmask, zmm; also tiles. */
#define XCR0_YMM   0x06u
#define XCR0_ZMM   0xe6u
#define XCR0_TILES 0x60000u

static uint32_t xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has_bits(uint32_t value, uint32_t bits) {
    return (value & bits) == bits;
}

/* Whether there are 8 tiles of 16 rows by 64 bytes, and products of that size, as kernels need. */
static bool has_whole_tiles(void) {
    uint32_t a, b, c, d;
    __cpuid_count(0x1d, 1, a, b, c, d);
    if (a >> 16 != 1024 || b != (8u << 16 | 64) || (c & 0xffff) != 16)
        return false;
    __cpuid_count(0x1e, 0, a, b, c, d);
    return (b & 0xffffff) == (64u << 8 | 16);
}

/* Whether the CPU has AMX-TILE and AMX-INT8, and the system saves tiles. */
static bool has_tiles(void) {
    uint32_t a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    return has_bits(d, 1u << 24 | 1u << 25) && qs_cpu_has_isa(QSIM_ISA_AVX512VNNI) &&
           has_bits(xcr0(), XCR0_TILES) && has_whole_tiles();
}

bool qs_cpu_has_isa(int32_t isa) {
    uint32_t a, b, c, d, b7 = 0, c7 = 0, a71 = 0;
    if (isa == QSIM_ISA_C)
        return true;
    /*
     * Asks as little as possible: in a virtual machine each CPUID instruction takes the host 5 us.
     */
    const uint32_t most = (uint32_t)__get_cpuid_max(0, NULL);
    if (isa == QSIM_ISA_AMX)
        return most >= 0x1e && has_tiles();
    if (isa < QSIM_ISA_AVX2 || isa > QSIM_ISA_AVX512VNNI || most < 1)
        return false;
    __cpuid(1, a, b, c, d);
    /* FMA3 | OSXSAVE | AVX | F16C */
    if (!has_bits(c, 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29) || !has_bits(xcr0(), XCR0_YMM))
        return false;
    if (most >= 7) {
        __cpuid_count(7, 0, a, b7, c7, d);
        if (a >= 1 && isa == QSIM_ISA_AVXVNNI)
            __cpuid_count(7, 1, a71, b, c, d);
    }
    bool avx2 = has_bits(b7, 1u << 5 | 1u << 3 | 1u << 8); /* AVX2, BMI1, BMI2 */
    /* AVX-512 F, DQ, BW, VL; VNNI, VBMI and VBMI2. */
    bool avx512 = has_bits(b7, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) &&
                  has_bits(c7, 1u << 11 | 1u << 6 | 1u << 1) && has_bits(xcr0(), XCR0_ZMM);
    if (isa == QSIM_ISA_AVX2)
        return avx2;
    if (isa == QSIM_ISA_AVXVNNI)
        return avx2 && has_bits(a71, 1u << 4);
    return avx2 && avx512;
}

bool qs_cpu_take_isa(int32_t isa) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    /* Room for tile data (component 18 of the extended state): ARCH_REQ_XCOMP_PERM. */
    if (isa == QSIM_ISA_AMX)
        return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#endif
    return isa != QSIM_ISA_AMX;
}

/* MXCSR: rounding control is bits 13-14, flush-to-zero 15, denormals-are-zero 6. */
#define MXCSR_CONTROL (1u << 6 | 3u << 13 | 1u << 15)

uint64_t qs_fp_enter(void) {
    uint32_t saved = _mm_getcsr();
    if (saved & MXCSR_CONTROL)
        _mm_setcsr(saved & ~MXCSR_CONTROL);
    return saved;
}

void qs_fp_restore(uint64_t saved) {
    if (saved & MXCSR_CONTROL)
        _mm_setcsr((uint32_t)saved);
}

#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#define HWCAP_DOTPROD   (1ul << 20)
#define HWCAP2_I8MM_BIT (1ul << 13)
#endif

bool qs_cpu_has_isa(int32_t isa) {
    if (isa == QSIM_ISA_C || isa == QSIM_ISA_NEON)
        return true;
#if defined(__linux__)
    bool dot = (getauxval(AT_HWCAP) & HWCAP_DOTPROD) != 0;
    bool i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM_BIT) != 0;
    if (isa == QSIM_ISA_NEONDOT)
        return dot;
    if (isa == QSIM_ISA_NEONI8MM)
        return dot && i8mm;
#endif
    return false;
}

/* FPCR: rounding mode is bits 22-23, flush-to-zero 24, FP16 flush 19. */
#define FPCR_CONTROL (3ull << 22 | 1ull << 24 | 1ull << 19)

uint64_t qs_fp_enter(void) {
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    if (saved & FPCR_CONTROL)
        __asm__ volatile("msr fpcr, %0" : : "r"(saved & ~FPCR_CONTROL));
    return saved;
}

void qs_fp_restore(uint64_t saved) {
    if (saved & FPCR_CONTROL)
        __asm__ volatile("msr fpcr, %0" : : "r"(saved));
}

#else
#include <fenv.h>

bool qs_cpu_has_isa(int32_t isa) {
    return isa == QSIM_ISA_C;
}

uint64_t qs_fp_enter(void) {
    const int saved = fegetround();
    if (saved != FE_TONEAREST)
        (void)fesetround(FE_TONEAREST);
    return (uint64_t)(int64_t)saved;
}

void qs_fp_restore(uint64_t saved) {
    if ((int)saved != FE_TONEAREST)
        (void)fesetround((int)saved);
}

#endif

#if !defined(__x86_64__)
bool qs_cpu_take_isa(int32_t isa) {
    (void)isa;
    return true;
}
#endif
