/* SPDX-License-Identifier: MIT */
/*
 * The lowest layer, for every file of the library: errors, memory, checked arithmetic.
 *
 *   need                         use                          never
 *   memory                       qs_alloc, qs_free, qs_arena  malloc, free
 *   a * b that sizes something   qs_mul, qs_add               plain products
 *   to report a failure          return qs_fail(error, ...)   printing, abort
 *   the time                     qs_clock_ns                  time, timespec_get
 */
#ifndef QS_BASE_H
#define QS_BASE_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#define QSIM_BUILDING 1
#include <qsim/base.h>

/*
 * Results are defined to the bit: no compiler may fuse a * b + c where the code does not say fmaf.
 * This holds from here on to the end of the file, whatever the command line says, also for
 * intrinsics, which gcc fuses like operators. gcc does not know the standard's pragma, clang not
 * gcc's.
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

/* Compilers and targets on which results would be wrong are refused here. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libqsim reads the tensors of models in place: it needs a little-endian CPU"
#endif
/* 16: as 0 except for _Float16, which the library does not compute in. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "float arithmetic would be rounded twice: for 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif
/* Also what it consists of, as far as compilers tell: without NaN checks of inputs would be gone.
 */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) ||           \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "-ffast-math changes results, which are defined to the bit: compile without it and its parts"
#endif

#if defined(__GNUC__)
#define QS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* Not on the hot path of inference: optimized for size. */
#define QS_COLD __attribute__((cold))
/* Never inlined: large, and a call costs little beside its work. */
#define QS_NOINLINE __attribute__((noinline))
/* Inlined, so that it has the caller's constants and instructions; not in code for size. */
#ifdef __OPTIMIZE_SIZE__
#define QS_INLINE static inline
#else
#define QS_INLINE __attribute__((always_inline)) static inline
#endif
#else
#define QS_PRINTF(fmt, args)
#define QS_COLD
#define QS_NOINLINE
#define QS_INLINE static inline
#endif

/* Before a loop: iterations are independent. y may equal x; partial overlap is not allowed. */
#if defined(__GNUC__) && !defined(__clang__)
#define QS_IVDEP _Pragma("GCC ivdep")
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* of loops that it makes no vectors of */
#define QS_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define QS_IVDEP
#endif

#define QS_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- errors (error.c) ---- */

/*
 * Fills `error` (may be NULL; an error already set stays: the first one wins) and returns `code`.
 * Control bytes and invalid UTF-8 in the result are escaped, an over-long message is elided in the
 * middle.
 */
int qs_fail(qsim_error *error, int code, const char *format, ...) QS_PRINTF(3, 4);

/* Fails with ARGUMENT, "`what`: an argument is missing". */
int qs_fail_missing(qsim_error *error, const char *what);

/* Adds the hint to an error that qs_fail has just set; `error` may be NULL. */
void qs_hint(qsim_error *error, const char *format, ...) QS_PRINTF(2, 3);

/* Empties an error struct so that qs_fail can fill it. Every public function starts with it. */
void qs_error_clear(qsim_error *error);

/* ---- memory (alloc.c) ---- */

/*
 * Whether arenas and short arrays allocate more than they need. Not in builds for tests: there each
 * request goes to the allocator, so that it can fail and a sanitizer knows where it ends.
 */
#ifdef QS_EXACT_MEMORY
#define QS_IN_ADVANCE false
#else
#define QS_IN_ADVANCE true
#endif

/*
 * Large pages are worth it if QS_WELL_FILLED bytes of one are used: the system hands out and clears
 * 512 small pages one by one, which takes four times as long.
 */
#define QS_LARGE_PAGE  ((size_t)2 << 20)
#define QS_WELL_FILLED (QS_LARGE_PAGE / 16 * 5)

/* Aligned to 64 bytes, not initialized; NULL: no memory, or count * size overflows. */
void *qs_alloc(qsim_ctx *ctx, size_t count, size_t size);
/* The same, zeroed. */
void *qs_calloc(qsim_ctx *ctx, size_t count, size_t size);
/* Frees a block, which remembers its size. `ptr` may be NULL. */
void qs_free(qsim_ctx *ctx, void *ptr);

/*
 * Makes room for one element after the first `count` of an array that grows by half (amortised).
 * `*array` and `*capacity` are updated; false when out of memory, the array untouched.
 */
bool qs_grow(qsim_ctx *ctx, void **array, size_t *capacity, size_t count, size_t element);

/* Memory that is freed all at once. Blocks are aligned to 16; qs_arena_alloc zeroes. */
typedef struct qs_arena {
    qsim_ctx *ctx;
    struct qs_arena_block *blocks;
    size_t bytes; /* handed out */
} qs_arena;

void qs_arena_init(qs_arena *arena, qsim_ctx *ctx);
void *qs_arena_alloc(qs_arena *arena, size_t count, size_t size);
/* Both align to 64 bytes; qs_arena_raw64 does not zero. */
void *qs_arena_alloc64(qs_arena *arena, size_t bytes);
void *qs_arena_raw64(qs_arena *arena, size_t bytes);
/* Allocates these bytes as one block, since the system backs large blocks with large pages. */
int qs_arena_reserve(qs_arena *arena, size_t bytes);
void *qs_arena_copy(qs_arena *arena, const void *data, size_t bytes);
char *qs_arena_string(qs_arena *arena, const char *text, size_t length); /* adds the NUL */
void qs_arena_free(qs_arena *arena);

/* Whether two names are equal. Their first letters are compared inline, since most differ there. */
static inline __attribute__((always_inline)) bool qs_same(const char *a, const char *b) {
    return *a == *b && strcmp(a, b) == 0;
}

/* ---- checked arithmetic: false on overflow ---- */

static inline bool qs_mul(size_t a, size_t b, size_t *r) {
    return !__builtin_mul_overflow(a, b, r);
}
static inline bool qs_add(size_t a, size_t b, size_t *r) {
    return !__builtin_add_overflow(a, b, r);
}
static inline bool qs_mul64(int64_t a, int64_t b, int64_t *r) {
    return !__builtin_mul_overflow(a, b, r);
}
static inline bool qs_add64(int64_t a, int64_t b, int64_t *r) {
    return !__builtin_add_overflow(a, b, r);
}
/* Rounds up to a multiple of a power of two; the caller has checked that it fits. */
static inline size_t qs_align(size_t n, size_t power) {
    return (n + power - 1) & ~(power - 1);
}

/*
 * Convert a size or count to a double and back, by way of int64_t: none reaches 2^63, and the
 * conversion takes one instruction for signed integers, ten for unsigned ones.
 */
/* The greater and the lesser of two numbers; `b` if `a` is not a number. */
static inline double qs_max(double a, double b) {
    return a > b ? a : b;
}
static inline double qs_min(double a, double b) {
    return a < b ? a : b;
}

static inline double qs_real(uint64_t n) {
    return (double)(int64_t)n;
}
static inline size_t qs_whole(double v) {
    return (size_t)(int64_t)v;
}

/* ---- options (options.c) ---- */

/*
 * Copies an options struct into `own`, which has `own_size` bytes and is zeroed first: as many
 * bytes as both have. NULL options leave it zero. QSIM_E_VERSION if bytes beyond `own_size` are
 * set, QSIM_E_ARGUMENT if struct_size is smaller than the field itself, or larger than any struct.
 */
int qs_options(void *own, size_t own_size, const void *options, qsim_error *error);
#define QS_OPTIONS(own, options, error) qs_options(&(own), sizeof(own), options, error)

/*
 * Fills the caller's info struct, all but its struct_size, with as much of the library's struct as
 * fits; fields that only a newer caller knows are zeroed. QSIM_E_ARGUMENT for NULL or no
 * struct_size.
 */
int qs_give(void *theirs, const void *ours, size_t our_size);

/* ---- time (clock.c) ---- */

/* Nanoseconds since some fixed moment. Setting the system's clock does not move it. */
uint64_t qs_clock_ns(void);
/* A counter of the CPU that runs at a steady rate: cheap, but in units of its own. */
uint64_t qs_clock_ticks(void);

/* ---- SHA-256 (sha256.c) ---- */

typedef struct qs_sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
    int fast; /* with the CPU's instructions; 0: portable, the same bits */
} qs_sha256;

void qs_sha256_init(qs_sha256 *h);
void qs_sha256_add(qs_sha256 *h, const void *data, size_t size);
void qs_sha256_hex(qs_sha256 *h, char hex[65]);

/* ---- keyed hashes (siphash.c) ---- */

/*
 * The key of the hashes, chosen at random when a context is made, so that authors of files cannot
 * choose texts that collide.
 */
typedef struct qs_secret {
    uint64_t word[2];
} qs_secret;

void qs_secret_choose(qs_secret *secret);
/* The context's key; lives as long as the context. */
const qs_secret *qs_ctx_secret(const qsim_ctx *ctx);
/* SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"). */
uint64_t qs_keyed_hash(const qs_secret *secret, const void *data, size_t size);

#endif
