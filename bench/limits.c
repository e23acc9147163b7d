/* SPDX-License-Identifier: MIT */
/*
 * limits: measures the highest rates of this core, to which kernels.sh relates its times.
 * Arithmetic: loops over registers only, one per instruction set. Memory: reads, and copies with
 * several ratios of loads to stores, at the size of each cache and beyond. Each loop is one block
 * of assembler with its counter inside, so that compilers cannot hoist, unroll or drop any of it.
 * Prints lines of three fields, separated by tabs: kind of limit, name, GMAC/s or GB/s. Each rate
 * is the best of many runs.
 */
#define _GNU_SOURCE /* syscall */
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
#ifdef __linux__
#include <sys/syscall.h>
#endif
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
        static uint8_t spot[64] __attribute__((aligned(64)));                                      \
        static const uint32_t one_float = 0x3f800000, one_bytes = 0x01010101;                      \
        __asm__ volatile("vpbroadcastd %2, %%" r "14\n\tvpbroadcastd %3, %%" r "15\n"              \
                         "1:\n" step "dec %0\n\tjnz 1b\n\tvzeroupper"                              \
                         : "+r"(turns), "=m"(spot)                                                 \
                         : "m"(one_float), "m"(one_bytes)                                          \
                         : VECTORS, "cc");                                                         \
    }

#define STEP_DP_ZMM(i) "vpdpbusd %%zmm15, %%zmm15, %%zmm" #i "\n\t"
#define STEP_DP_YMM(i) "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm" #i "\n\t"
/* Products alone: additions share their ports and would lower the rate. */
#define STEP_MADD(i) "vpmaddwd %%ymm15, %%ymm14, %%ymm" #i "\n\t"
#define STEP_MADD_ADD(i)                                                                           \
    "vpmaddwd %%ymm15, %%ymm14, %%ymm13\n\tvpaddd %%ymm13, %%ymm" #i ", %%ymm" #i "\n\t"
#define STEP_FMA_ZMM(i) "vfmadd231ps %%zmm14, %%zmm14, %%zmm" #i "\n\t"
#define STEP_FMA_YMM(i) "vfmadd231ps %%ymm14, %%ymm14, %%ymm" #i "\n\t"

ARITHMETIC(dp_zmm, "avx512f,avx512vnni", "zmm", TWELVE(STEP_DP_ZMM))
ARITHMETIC(dp_ymm, "avx2", "ymm", TWELVE(STEP_DP_YMM))
ARITHMETIC(madd_ymm, "avx2", "ymm", TWELVE(STEP_MADD))
ARITHMETIC(madd_add_ymm, "avx2", "ymm", TWELVE(STEP_MADD_ADD))
ARITHMETIC(fma_zmm, "avx512f", "zmm", TWELVE(STEP_FMA_ZMM))
ARITHMETIC(fma_ymm, "avx2,fma", "ymm", TWELVE(STEP_FMA_YMM))

/*
 * FMAs with stores: a store reads its data by the register port that an FMA reads its third operand
 * by (Zen 4: 1.5 FMAs per store of 64 bytes), which limits products of few terms.
 */
#define STEP_STORE "vmovups %%zmm15, %1\n\t"
#define FOUR_FMA_STORE(a, b, c, d)                                                                 \
    STEP_FMA_ZMM(a) STEP_FMA_ZMM(b) STEP_STORE STEP_FMA_ZMM(c) STEP_FMA_ZMM(d)
ARITHMETIC(fma_store_zmm, "avx512f", "zmm",
           FOUR_FMA_STORE(0, 1, 2, 3) FOUR_FMA_STORE(4, 5, 6, 7) FOUR_FMA_STORE(8, 9, 10, 11))

/*
 * The arithmetic instructions of 64 results of the kernels in u8_avx512.c, without loads and
 * stores: the limit that execution ports set. Per cycle two instructions on zmm registers start,
 * among them at most one product, and one sum, comparison or conversion.
 */
#define TERM(i)                                                                                    \
    "vmovdqa64 %%zmm14, %%zmm" #i "\n\tvpdpbusd %%zmm15, %%zmm14, %%zmm" #i                        \
    "\n\tvcvtdq2ps %%zmm" #i ", %%zmm" #i "\n\t"
#define TIMES(i) "vmulps %%zmm" #i ", %%zmm14, %%zmm" #i "\n\t"
#define JOIN(op, i)                                                                                \
    op " %%zmm" #i ", %%zmm1" #i ", %%zmm" #i "\n\tvcvtps2dq %%zmm" #i ", %%zmm" #i "\n\t"
#define TWO_TERMS(i)                                                                               \
    TERM(i)                                                                                        \
    "vmovdqa64 %%zmm14, %%zmm1" #i "\n\tvpdpbusd %%zmm15, %%zmm14, %%zmm1" #i                      \
    "\n\tvcvtdq2ps %%zmm1" #i ", %%zmm1" #i "\n\t"
#define ADD_TERMS(i) TWO_TERMS(i) TIMES(i) TIMES(1##i) JOIN("vaddps", i)
#define MUL_TERMS(i) TWO_TERMS(i) TIMES(i) JOIN("vmulps", i)
#define BYTES                                                                                      \
    "vpackssdw %%zmm1, %%zmm0, %%zmm4\n\tvpackssdw %%zmm3, %%zmm2, %%zmm5\n\t"                     \
    "vpaddsw %%zmm15, %%zmm4, %%zmm4\n\tvpaddsw %%zmm15, %%zmm5, %%zmm5\n\t"                       \
    "vpackuswb %%zmm5, %%zmm4, %%zmm4\n\tvpshufb %%zmm15, %%zmm4, %%zmm4\n\t"                      \
    "vpmaxub %%zmm15, %%zmm4, %%zmm4\n\tvpminub %%zmm14, %%zmm4, %%zmm4\n\t"                       \
    "vpxord %%zmm15, %%zmm4, %%zmm4\n\tvpxord %%zmm15, %%zmm14, %%zmm5\n\t"                        \
    "vpxord %%zmm15, %%zmm14, %%zmm6\n\t"
#define FOUR(step) step(0) step(1) step(2) step(3)
ARITHMETIC(add_zmm, "avx512f,avx512bw,avx512vnni", "zmm", FOUR(ADD_TERMS) BYTES)
ARITHMETIC(mul_zmm, "avx512f,avx512bw,avx512vnni", "zmm", FOUR(MUL_TERMS) BYTES)

/* Dependent additions: a sum over 16 lanes in its defined order. */
#define STEP_CHAIN(i) "vaddps %%zmm14, %%zmm0, %%zmm0\n\t"
#define STEP_DIV(i)   "vdivps %%zmm14, %%zmm14, %%zmm" #i "\n\t"
ARITHMETIC(chain_zmm, "avx512f", "zmm", TWELVE(STEP_CHAIN))
ARITHMETIC(div_zmm, "avx512f", "zmm", TWELVE(STEP_DIV))

#define BRACKET(i)                                                                                 \
    "vmaxps %%zmm14, %%zmm15, %%zmm" #i "\n\tvpminsd %%zmm14, %%zmm" #i ", %%zmm" #i               \
    "\n\tvmovaps %%zmm" #i ", %%zmm1" #i "\n\tvfmadd132ps %%zmm14, %%zmm15, %%zmm" #i              \
    "\n\tvfmadd132ps %%zmm14, %%zmm15, %%zmm1" #i "\n\tvpternlogd $0xf6, %%zmm" #i ", %%zmm1" #i   \
    ", %%zmm4\n\tvpmovdb %%zmm" #i ", %%xmm5\n\t"
#define WHETHER                                                                                    \
    "vptestmd %%zmm4, %%zmm4, %%k1\n\tkortestw %%k1, %%k1\n\tvpxor %%xmm4, %%xmm4, %%xmm4\n\t"
ARITHMETIC(quantize_zmm, "avx512f,avx512bw,avx512vnni", "zmm", FOUR(BRACKET) WHETHER)

#define PAGES(i)                                                                                   \
    "vpermi2b %%zmm14, %%zmm15, %%zmm" #i "\n\tvpermi2b %%zmm14, %%zmm15, %%zmm1" #i               \
    "\n\tvpmovb2m %%zmm15, %%k1\n\tvpblendmb %%zmm1" #i ", %%zmm" #i ", %%zmm" #i "%{%%k1%}\n\t"
#define WEAVE(kind, a, b, c, d)                                                                    \
    "vpunpckl" kind " %%zmm" #b ", %%zmm" #a ", %%zmm" #c "\n\t"                                   \
    "vpunpckh" kind " %%zmm" #b ", %%zmm" #a ", %%zmm" #d "\n\t"
#define FLOATS                                                                                     \
    WEAVE("bw", 0, 1, 4, 5)                                                                        \
    WEAVE("bw", 2, 3, 6, 7)                                                                        \
    WEAVE("wd", 4, 6, 8, 9) WEAVE("wd", 5, 7, 8, 9) "vpermd %%zmm14, %%zmm15, %%zmm9\n\t"
ARITHMETIC(lookup_zmm, "avx512f,avx512bw,avx512vbmi", "zmm", FOUR(PAGES) FLOATS)

/* The same for 32 results of the kernels in u8_avx2.c. */
#define TERM_YMM(i)                                                                                \
    "vpmovzxbd %%xmm14, %%ymm" #i "\n\tvpxor %%ymm14, %%ymm" #i ", %%ymm" #i                       \
    "\n\tvsubps %%ymm15, %%ymm" #i ", %%ymm" #i "\n\t"
#define TIMES_YMM(i) "vmulps %%ymm" #i ", %%ymm14, %%ymm" #i "\n\t"
#define JOIN_YMM(op, i)                                                                            \
    op " %%ymm" #i ", %%ymm1" #i ", %%ymm" #i "\n\tvminps %%ymm" #i ", %%ymm14, %%ymm" #i          \
       "\n\tvcvtps2dq %%ymm" #i ", %%ymm" #i "\n\t"
#define ADD_YMM(i) TERM_YMM(i) TERM_YMM(1##i) TIMES_YMM(i) TIMES_YMM(1##i) JOIN_YMM("vaddps", i)
#define MUL_YMM(i) TERM_YMM(i) TERM_YMM(1##i) TIMES_YMM(i) JOIN_YMM("vmulps", i)
#define PACK_YMM   "vpackssdw %%ymm1, %%ymm0, %%ymm4\n\tvpackssdw %%ymm3, %%ymm2, %%ymm5\n\t"
#define BYTES_YMM  "vpackuswb %%ymm5, %%ymm4, %%ymm4\n\tvpermd %%ymm4, %%ymm15, %%ymm4\n\t"
#define LIMITED_YMM                                                                                \
    PACK_YMM "vpaddsw %%ymm15, %%ymm4, %%ymm4\n\tvpaddsw %%ymm15, %%ymm5, %%ymm5\n\t" BYTES_YMM    \
             "vpmaxub %%ymm15, %%ymm4, %%ymm4\n\tvpxor %%ymm15, %%ymm4, %%ymm4\n\t"
ARITHMETIC(add_ymm, "avx2", "ymm", FOUR(ADD_YMM) LIMITED_YMM)
ARITHMETIC(mul_ymm, "avx2", "ymm", FOUR(MUL_YMM) LIMITED_YMM)

#define BRACKET_YMM(i)                                                                             \
    "vmaxps %%ymm14, %%ymm15, %%ymm" #i "\n\tvminps %%ymm14, %%ymm" #i ", %%ymm" #i                \
    "\n\tvmovaps %%ymm" #i ", %%ymm1" #i "\n\tvfmadd132ps %%ymm14, %%ymm15, %%ymm" #i              \
    "\n\tvfmadd132ps %%ymm14, %%ymm15, %%ymm1" #i "\n\tvpxor %%ymm" #i ", %%ymm1" #i ", %%ymm1" #i \
    "\n\tvpor %%ymm1" #i ", %%ymm6, %%ymm6\n\tvpand %%ymm" #i ", %%ymm14, %%ymm" #i "\n\t"
#define WHETHER_YMM "vptest %%ymm6, %%ymm6\n\tvpxor %%xmm6, %%xmm6, %%xmm6\n\t"
ARITHMETIC(quantize_ymm, "avx2,fma", "ymm", FOUR(BRACKET_YMM) PACK_YMM BYTES_YMM WHETHER_YMM)

/* Lookups of a table of sixteen rows: each blend halves the number of candidate rows. */
#define ROWS                                                                                       \
    "vpshufb %%ymm14, %%ymm15, %%ymm0\n\tvpshufb %%ymm13, %%ymm15, %%ymm1\n\t"                     \
    "vpor %%ymm0, %%ymm1, %%ymm2\n\t"
#define CHOOSE   "vpblendvb %%ymm12, %%ymm2, %%ymm14, %%ymm3\n\t"
#define TWO_ROWS ROWS ROWS CHOOSE
#define KEYS                                                                                       \
    "vpand %%ymm14, %%ymm15, %%ymm4\n\tvpxor %%ymm14, %%ymm15, %%ymm5\n\t"                         \
    "vpsllw $3, %%ymm15, %%ymm6\n\tvpsllw $2, %%ymm15, %%ymm7\n\t"                                 \
    "vpaddb %%ymm15, %%ymm15, %%ymm12\n\t"
ARITHMETIC(table_ymm, "avx2", "ymm", KEYS TWO_ROWS TWO_ROWS TWO_ROWS TWO_ROWS CHOOSE CHOOSE CHOOSE)

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

/* Prints the rate in GB/s of a kernel whose turn, for `bytes` bytes, only executes instructions. */
static void port(const char *isa, const char *kernel, void (*loop)(long turns), double bytes) {
    printf("ports %s\t%s\t%.2f\n", isa, kernel, best_arithmetic(loop, bytes / 12));
}

static void ports_avx2(void) {
    port("avx2", "u8 add", add_ymm, 96);
    port("avx2", "u8 mul", mul_ymm, 96);
    port("avx2", "u8 quantize", quantize_ymm, 160);
    port("avx2", "u8 table", table_ymm, 64);
}

/* Also prints the number of FMAs that a store displaces. */
static void ports_avx512(void) {
    const double fma = best_arithmetic(fma_zmm, 16), both = best_arithmetic(fma_store_zmm, 16);
    printf("store\tavx512vnni\t%.2f\n", 4 * (fma / both - 1));
    port("avx512vnni", "u8 add", add_zmm, 192);
    port("avx512vnni", "u8 mul", mul_zmm, 192);
    port("avx512vnni", "u8 quantize", quantize_zmm, 320);
    if (__builtin_cpu_supports("avx512vbmi"))
        port("avx512vnni", "u8 lookup", lookup_zmm, 320);
    port("avx512vnni", "ew divide", div_zmm, 12 * 128);
    port("avx512vnni", "ew sum", chain_zmm, 12 * 64);
    port("avx512vnni", "ew sum of squares", chain_zmm, 12 * 64);
}

#ifdef __linux__
/* Products of tiles: four tiles of sums, two of rows, two of weights. */
static void dp_tiles(long turns) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++)
        config.rows[i] = 16, config.bytes[i] = 64;
    __asm__ volatile("ldtilecfg %1\n"
                     "1:\n\t"
                     "tdpbusd %%tmm6, %%tmm4, %%tmm0\n\t"
                     "tdpbusd %%tmm7, %%tmm4, %%tmm1\n\t"
                     "tdpbusd %%tmm6, %%tmm5, %%tmm2\n\t"
                     "tdpbusd %%tmm7, %%tmm5, %%tmm3\n\t"
                     "dec %0\n\t"
                     "jnz 1b\n\t"
                     "tilerelease"
                     : "+r"(turns)
                     : "m"(config)
                     : "cc");
}

/* Asks the system for tiles, as the library does, and measures them. */
static void tiles(void) {
    unsigned a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    if ((d >> 24 & 3) == 3 && syscall(SYS_arch_prctl, 0x1023, 18) == 0)
        printf("int8\tamx\t%.2f\n", best_arithmetic(dp_tiles, 4 * 16 * 16 * 64 / 12.0));
}
#else
static void tiles(void) {
}
#endif

static void arithmetic(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __cpuid_count(7, 1, a, b, c, d);
    const int vex_vnni = (a >> 4) & 1;
    if (__builtin_cpu_supports("avx512vnni"))
        printf("int8\tavx512vnni\t%.2f\n", best_arithmetic(dp_zmm, 64));
    tiles();
    if (vex_vnni)
        printf("int8\tavxvnni\t%.2f\n", best_arithmetic(dp_ymm, 32));
    printf("int8\tavx2\t%.2f\n", best_arithmetic(madd_ymm, 16));
    printf("int8\tavx2 with sums\t%.2f\n", best_arithmetic(madd_add_ymm, 16));
    if (__builtin_cpu_supports("avx512f"))
        printf("f32\tavx512vnni\t%.2f\n", best_arithmetic(fma_zmm, 16));
    if (__builtin_cpu_supports("avx512vnni"))
        ports_avx512();
    if (__builtin_cpu_supports("fma")) {
        ports_avx2();
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
    /*
     * The system reports the machine's whole L3, of which one core reaches a part; beyond that part
     * reads slow down gradually, so sizes in between count as a level of their own.
     */
    printf("size\tL3\t%zu\nsize\t16 MB\t%zu\n", 8 * l2, (size_t)24 << 20);
    memory_level("L3", 4 * l2);
    memory_level("16 MB", (size_t)16 << 20);
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
