/* SPDX-License-Identifier: MIT */
/*
 * Loops for the limits of an x86 CPU: products in registers and reads. Twelve accumulators each:
 * more than latency times throughput of any of these instructions. They are named
 * variables, since gcc would keep an array of so many in memory; the empty assembler after each
 * keeps compilers from merging or hoisting them, as each takes its accumulator.
 */
#include "kernel/peaks.h"
#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/x86/amx_tiles.h"

#if QK_X86
#include <immintrin.h>

#define TWELVE(step)                                                                               \
    step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10)       \
        step(11)

#define FOUR(step)  step(0) step(1) step(2) step(3)
#define EIGHT(step) FOUR(step) step(4) step(5) step(6) step(7)

#define DECLARE(i) a##i = x,
#define LOOP(name, isa, vector, step, make, count)                                                 \
    __attribute__((target(isa))) static void name(int64_t turns) {                                 \
        const vector x = make;                                                                     \
        vector count(DECLARE) last = x;                                                            \
        for (int64_t i = 0; i < turns; i++) {                                                      \
            count(step)                                                                            \
        }                                                                                          \
        (void)last;                                                                                \
    }

#define OPAQUE(letter, v) __asm__ volatile("" : "+" letter(v))
#define DOT_ZMM(i)                                                                                 \
    a##i = _mm512_dpbusd_epi32(a##i, x, x);                                                        \
    OPAQUE("v", a##i);
#define DOT_YMM(i)                                                                                 \
    a##i = _mm256_dpbusd_avx_epi32(a##i, x, x);                                                    \
    OPAQUE("x", a##i);
/* Products without sums, which share ports with them and would lower the result. */
#define MADD_YMM(i)                                                                                \
    a##i = _mm256_madd_epi16(a##i, x);                                                             \
    OPAQUE("x", a##i);
#define FMA_ZMM(i)                                                                                 \
    a##i = _mm512_fmadd_ps(x, x, a##i);                                                            \
    OPAQUE("v", a##i);
#define FMA_YMM(i)                                                                                 \
    a##i = _mm256_fmadd_ps(x, x, a##i);                                                            \
    OPAQUE("x", a##i);

LOOP(dot_zmm, "avx512f,avx512vnni", __m512i, DOT_ZMM, _mm512_set1_epi8(1), TWELVE)
LOOP(dot_zmm_8, "avx512f,avx512vnni", __m512i, DOT_ZMM, _mm512_set1_epi8(1), EIGHT)
LOOP(dot_zmm_4, "avx512f,avx512vnni", __m512i, DOT_ZMM, _mm512_set1_epi8(1), FOUR)
LOOP(dot_ymm, "avx2,avxvnni", __m256i, DOT_YMM, _mm256_set1_epi8(1), TWELVE)
LOOP(madd_ymm, "avx2", __m256i, MADD_YMM, _mm256_set1_epi16(1), TWELVE)
LOOP(fma_zmm, "avx512f", __m512, FMA_ZMM, _mm512_set1_ps(0.5f), TWELVE)
LOOP(fma_ymm, "avx2,fma", __m256, FMA_YMM, _mm256_set1_ps(0.5f), TWELVE)

__attribute__((target("avx512f"))) static void read_zmm(const void *memory, size_t bytes) {
    const uint8_t *p = memory;
    for (size_t i = 0; i < bytes; i += 512)
        for (size_t k = 0; k < 512; k += 64) {
            __m512i v = _mm512_load_si512((const void *)(p + i + k));
            OPAQUE("v", v);
        }
}

__attribute__((target("avx2"))) static void read_ymm(const void *memory, size_t bytes) {
    const uint8_t *p = memory;
    for (size_t i = 0; i < bytes; i += 512)
        for (size_t k = 0; k < 512; k += 32) {
            __m256i v = _mm256_load_si256((const __m256i *)(const void *)(p + i + k));
            OPAQUE("x", v);
        }
}

#ifdef QK_AMX
/* The four accumulators of a block in i8_amx.h are enough: no product waits for its sum. */
static void dot_tiles(int64_t turns) {
    tile_config c = {.palette = 1};
    for (int32_t i = 0; i < 8; i++)
        c.rows[i] = 16, c.bytes[i] = 64;
    TILE_CONFIG(&c);
    for (int64_t i = 0; i < turns; i++) {
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 7);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    TILE_RELEASE();
}

qk_peak qk_peak_tiles(void) {
    return (qk_peak){dot_tiles, 4 * 16 * 16 * 64};
}
#else
qk_peak qk_peak_tiles(void) {
    return (qk_peak){NULL, 0};
}
#endif

static bool has_zmm(int32_t isa) {
    return isa == QSIM_ISA_AVX512VNNI || isa == QSIM_ISA_AMX;
}

qk_peak qk_peak_int8(int32_t isa) {
    if (has_zmm(isa))
        return (qk_peak){dot_zmm, 12 * 64};
    if (isa == QSIM_ISA_AVXVNNI)
        return (qk_peak){dot_ymm, 12 * 32};
    return (qk_peak){isa == QSIM_ISA_AVX2 ? madd_ymm : NULL, 12 * 16};
}

qk_peak qk_peak_float(int32_t isa) {
    if (has_zmm(isa))
        return (qk_peak){fma_zmm, 12 * 16};
    return (qk_peak){isa == QSIM_ISA_C ? NULL : fma_ymm, 12 * 8};
}

/* Half a microsecond; several rounds, because of interrupts and rising clock rates. */
#define PORT_TURNS  200
#define PORT_ROUNDS 6

static uint64_t time_turns(void (*loop)(int64_t turns)) {
    const uint64_t start = __rdtsc(); /* cheap, whatever the system's clocks cost */
    loop(PORT_TURNS);
    _mm_lfence(); /* else the clock is read hundreds of products early */
    return __rdtsc() - start;
}

/*
 * With one port eight take 1.6 to 2 times as long as four; with two ports as long, since both wait
 * for the latency of 4 to 6 cycles.
 */
bool qk_two_ports(void) {
    uint64_t eight = UINT64_MAX, four = UINT64_MAX;
    for (int i = 0; i < PORT_ROUNDS; i++) {
        const uint64_t a = time_turns(dot_zmm_8), b = time_turns(dot_zmm_4);
        eight = a < eight ? a : eight;
        four = b < four ? b : four;
    }
    return 10 * eight < 13 * four;
}

qk_read_fn qk_peak_read(void) {
    if (qs_cpu_has_isa(QSIM_ISA_AVX512VNNI))
        return read_zmm;
    return qs_cpu_has_isa(QSIM_ISA_AVX2) ? read_ymm : NULL;
}

#endif
