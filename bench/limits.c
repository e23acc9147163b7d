/* SPDX-License-Identifier: MIT */
/*
 * limits: what this core can do at most, for the percentages of kernels.sh. Arithmetic: loops over
 * registers only, one per instruction set; memory: reads, and copies of several mixes, at the size
 * of each cache and beyond. Each loop is one block of assembler with its counter inside: no
 * compiler can hoist, unroll or drop any of it (objdump -d shows the loops as they stand here).
 * Prints lines of three fields, separated by tabs: what, which, GMAC/s or GB/s. Best of many.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__GNUC__)

#define VECTORS                                                                                    \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* `step` for 12 accumulators: more than any latency times throughput of these instructions. */
#define TWELVE(step)                                                                               \
    step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10)       \
        step(11)

#define ARITHMETIC(name, isa, r, step)                                                             \
    __attribute__((noinline, target(isa))) static void name(long turns) {                          \
        static const uint32_t one_float = 0x3f800000, one_bytes = 0x01010101;                      \
        __asm__ volatile("vpbroadcastd %1, %%" r "14\n\tvpbroadcastd %2, %%" r "15\n"              \
                         "1:\n" TWELVE(step) "dec %0\n\tjnz 1b\n\tvzeroupper"                      \
                         : "+r"(turns)                                                             \
                         : "m"(one_float), "m"(one_bytes)                                          \
                         : VECTORS, "cc");                                                         \
    }

#define STEP_DP_ZMM(i) "vpdpbusd %%zmm15, %%zmm15, %%zmm" #i "\n\t"
#define STEP_DP_YMM(i) "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm" #i "\n\t"
/* Products alone are the limit; with their sums the pipes that both use give less. */
#define STEP_MADD(i) "vpmaddwd %%ymm15, %%ymm14, %%ymm" #i "\n\t"
#define STEP_MADD_ADD(i)                                                                           \
    "vpmaddwd %%ymm15, %%ymm14, %%ymm13\n\tvpaddd %%ymm13, %%ymm" #i ", %%ymm" #i "\n\t"
#define STEP_FMA_ZMM(i) "vfmadd231ps %%zmm14, %%zmm14, %%zmm" #i "\n\t"
#define STEP_FMA_YMM(i) "vfmadd231ps %%ymm14, %%ymm14, %%ymm" #i "\n\t"

ARITHMETIC(dp_zmm, "avx512f,avx512vnni", "zmm", STEP_DP_ZMM)
ARITHMETIC(dp_ymm, "avx2", "ymm", STEP_DP_YMM)
ARITHMETIC(madd_ymm, "avx2", "ymm", STEP_MADD)
ARITHMETIC(madd_add_ymm, "avx2", "ymm", STEP_MADD_ADD)
ARITHMETIC(fma_zmm, "avx512f", "zmm", STEP_FMA_ZMM)
ARITHMETIC(fma_ymm, "avx2,fma", "ymm", STEP_FMA_YMM)

/*
 * Loads and stores per turn, of 64 bytes each as two ymm: `body` uses source %0 and target %1,
 * which advance by `in` and `out` lines.
 */
#define LOAD(at, i) "vmovdqa " #at "(%0), %%ymm" #i "\n\tvmovdqa " #at "+32(%0), %%ymm" #i "\n\t"
#define STORE(at)   "vmovdqa %%ymm0, " #at "(%1)\n\tvmovdqa %%ymm0, " #at "+32(%1)\n\t"
#define MEMORY(name, in, out, body)                                                                \
    __attribute__((noinline, target("avx2"))) static void name(const uint8_t *source,              \
                                                               uint8_t *target, long turns) {      \
        __asm__ volatile(".p2align 6\n1:\n\t" body "add $64*" #in ", %0\n\tadd $64*" #out          \
                         ", %1\n\tdec %2\n\tjnz 1b\n\tvzeroupper"                                  \
                         : "+r"(source), "+r"(target), "+r"(turns)                                 \
                         :                                                                         \
                         : VECTORS, "cc", "memory");                                               \
    }

MEMORY(read4, 4, 0, LOAD(0, 0) LOAD(64, 1) LOAD(128, 2) LOAD(192, 3))
MEMORY(copy1_1, 4, 4,
       LOAD(0, 0) STORE(0) LOAD(64, 0) STORE(64) LOAD(128, 0) STORE(128) LOAD(192, 0) STORE(192))
MEMORY(copy2_1, 4, 2, LOAD(0, 0) LOAD(64, 1) STORE(0) LOAD(128, 0) LOAD(192, 1) STORE(64))
MEMORY(copy4_1, 4, 1, LOAD(0, 0) LOAD(64, 1) LOAD(128, 2) LOAD(192, 3) STORE(0))
MEMORY(copy1_4, 1, 4, LOAD(0, 0) STORE(0) STORE(64) STORE(128) STORE(192))

static double best_arithmetic(void (*loop)(long turns), double macs) {
    const long turns = 100000;
    double best = 1e30, start = now();
    while (now() - start < 0.3) {
        double t = now();
        loop(turns);
        t = now() - t;
        best = t < best ? t : best;
    }
    return 12.0 * macs * (double)turns / best * 1e-9;
}

static void arithmetic(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __cpuid_count(7, 1, a, b, c, d);
    const int vex_vnni = (a >> 4) & 1;
    if (__builtin_cpu_supports("avx512vnni"))
        printf("int8\tavx512vnni\t%.2f\n", best_arithmetic(dp_zmm, 64));
    if (vex_vnni)
        printf("int8\tavxvnni\t%.2f\n", best_arithmetic(dp_ymm, 32));
    printf("int8\tavx2\t%.2f\n", best_arithmetic(madd_ymm, 16));
    printf("int8\tavx2 with sums\t%.2f\n", best_arithmetic(madd_add_ymm, 16));
    if (__builtin_cpu_supports("avx512f"))
        printf("f32\tavx512vnni\t%.2f\n", best_arithmetic(fma_zmm, 16));
    if (__builtin_cpu_supports("fma")) {
        double rate = best_arithmetic(fma_ymm, 8);
        printf("f32\tavx2\t%.2f\nf32\tavxvnni\t%.2f\n", rate, rate);
    }
}

static double best_memory(void (*loop)(const uint8_t *, uint8_t *, long), uint8_t *memory,
                          size_t bytes, size_t in, size_t out) {
    const size_t turns = bytes / (64 * (in + out));
    uint8_t *target = memory + turns * 64 * in;
    const int calls = bytes < 1 << 20 ? (1 << 20) / (int)bytes + 1 : 1;
    double best = 1e30, start = now();
    for (int round = 0; round < 5 || now() - start < 0.2; round++) {
        double t = now();
        for (int i = 0; i < calls; i++)
            loop(memory, target, (long)turns);
        t = (now() - t) / calls;
        best = t < best ? t : best;
    }
    return (double)(turns * 64 * (in + out)) / best * 1e-9;
}

static void memory_level(const char *level, size_t bytes) {
    uint8_t *memory = NULL;
    if (posix_memalign((void **)&memory, 4096, bytes))
        return;
    memset(memory, 1, bytes);
    printf("%s\tread\t%.2f\n", level, best_memory(read4, memory, bytes, 4, 0));
    printf("%s\tcopy 1:1\t%.2f\n", level, best_memory(copy1_1, memory, bytes, 4, 4));
    printf("%s\tcopy 2:1\t%.2f\n", level, best_memory(copy2_1, memory, bytes, 4, 2));
    printf("%s\tcopy 4:1\t%.2f\n", level, best_memory(copy4_1, memory, bytes, 4, 1));
    printf("%s\tcopy 1:4\t%.2f\n", level, best_memory(copy1_4, memory, bytes, 1, 4));
    free(memory);
}

static size_t cache(int name, size_t usual) {
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : usual;
}

static void memory(void) {
    const size_t l1 = cache(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                 l2 = cache(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
    printf("size\tL1\t%zu\nsize\tL2\t%zu\n", l1, l2);
    memory_level("L1", l1 / 2);
    memory_level("L2", l2 / 2);
    /* What the system says of L3 is all that the machine has, not what one core reaches. */
    memory_level("L3", 4 * l2);
    memory_level("DRAM", (size_t)256 << 20);
}

int main(void) {
    if (!__builtin_cpu_supports("avx2")) {
        fprintf(stderr, "limits: this CPU has no AVX2\n");
        return 77;
    }
    arithmetic();
    memory();
    return 0;
}

#else

int main(void) {
    fprintf(stderr, "limits: written for x86-64 only\n");
    return 77;
}

#endif
