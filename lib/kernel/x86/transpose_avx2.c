/* SPDX-License-Identifier: MIT */
/*
 * Transposes of 8 and 32-bit elements, AVX2, by tiles: 8 or 16 rows by up to 8 columns of 32 bits,
 * 16 rows by up to 16 columns of 8 bits. The last tile of a row or column overlaps the one before
 * and writes the same values again.
 */
#include "kernel/table.h"

#ifdef QK_YMM
#include <immintrin.h>

#include "kernel/u8_loops.h"

#define TARGET __attribute__((target("avx2")))
#define INLINE TARGET __attribute__((always_inline)) static inline

/* Lines of x that are read together: their part of a tile's row stays in the first-level cache. */
#define LINES ((size_t)64)
#define PAGE  ((size_t)1024) /* in 32-bit elements */

/* ---- 32 bits ---- */

INLINE __m256i half(const float *low, const float *high) {
    return _mm256_castps_si256(
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1));
}

/* 4 lines of 8 elements to rows 0 and 4, 1 and 5, 2 and 6, 3 and 7: 4 columns in each half. */
INLINE void transpose_half(__m256i a, __m256i b, __m256i c, __m256i d, __m256i *r) {
    const __m256i ab = _mm256_unpacklo_epi32(a, b), ab2 = _mm256_unpackhi_epi32(a, b);
    const __m256i cd = _mm256_unpacklo_epi32(c, d), cd2 = _mm256_unpackhi_epi32(c, d);
    r[0] = _mm256_unpacklo_epi64(ab, cd);
    r[1] = _mm256_unpackhi_epi64(ab, cd);
    r[2] = _mm256_unpacklo_epi64(ab2, cd2);
    r[3] = _mm256_unpackhi_epi64(ab2, cd2);
}

/* `tall` rows, 8 or 16: whole cache lines are read at once. */
INLINE void tile32x8(const float *x, size_t line, float *y, size_t columns, size_t tall) {
    __m256i r[4];
    for (size_t h = 0; h < tall; h += 4, x += 4, y += 4 * columns) {
        transpose_half(half(x, x + 4 * line), half(x + line, x + 5 * line),
                       half(x + 2 * line, x + 6 * line), half(x + 3 * line, x + 7 * line), r);
#pragma GCC unroll 16
        for (size_t i = 0; i < 4; i++)
            _mm256_storeu_si256((__m256i *)(void *)(y + i * columns), r[i]);
    }
}

INLINE void tile32x4(const float *x, size_t line, float *y, size_t columns, size_t tall) {
    __m256i r[4];
    for (size_t h = 0; h < tall; h += 8, x += 8, y += 8 * columns) {
        transpose_half(half(x, x + 4), half(x + line, x + line + 4),
                       half(x + 2 * line, x + 2 * line + 4), half(x + 3 * line, x + 3 * line + 4),
                       r);
#pragma GCC unroll 16
        for (size_t i = 0; i < 4; i++) {
            _mm_storeu_si128((__m128i *)(void *)(y + i * columns), _mm256_castsi256_si128(r[i]));
            _mm_storeu_si128((__m128i *)(void *)(y + (i + 4) * columns),
                             _mm256_extracti128_si256(r[i], 1));
        }
    }
}

/* Transposes `tall` rows of columns [c, end). */
INLINE void row32(const float *x, size_t line, float *y, size_t columns, size_t c, size_t end,
                  size_t tall) {
    for (; c + 8 <= end; c += 8)
        tile32x8(x + c * line, line, y + c, columns, tall);
    if (c + 4 < end && end >= 8)
        tile32x8(x + (end - 8) * line, line, y + end - 8, columns, tall);
    else if (c < end) {
        if (c + 4 <= end)
            tile32x4(x + c * line, line, y + c, columns, tall);
        if (c + 4 != end)
            tile32x4(x + (end - 4) * line, line, y + end - 4, columns, tall);
    }
}

/* 8 rows of 5 to 7 columns: each is stored as 8, the next row overwrites the excess. */
INLINE void tile32xfew(const float *x, size_t line, float *y, size_t columns) {
    const float *at[8];
    __m256i r[4];
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++)
        at[i] = x + (i < columns ? i : 0) * line;
#pragma GCC unroll 16
    for (size_t h = 0; h < 8; h += 4, y += 4 * columns) {
        transpose_half(half(at[0] + h, at[4] + h), half(at[1] + h, at[5] + h),
                       half(at[2] + h, at[6] + h), half(at[3] + h, at[7] + h), r);
#pragma GCC unroll 16
        for (size_t i = 0; i < 4; i++)
            _mm256_storeu_si256((__m256i *)(void *)(y + i * columns), r[i]);
    }
}

TARGET static void turn32_few(const float *x, size_t line, float *y, size_t rows, size_t columns) {
    float last[8 * 8];
    size_t r = 0;
    for (; r + 8 < rows; r += 8)
        tile32xfew(x + r, line, y + r * columns, columns);
    r = rows - 8;
    tile32xfew(x + r, line, last, columns);
    memcpy(y + r * columns, last, 8 * columns * sizeof(*last));
}

/* Three planes of an image to channels: 8 rows of 3 columns; element p belongs to row p / 3. */
INLINE void tile32x3(const float *x, size_t line, float *y) {
    const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + line);
    const __m256 c = _mm256_loadu_ps(x + 2 * line);
    const __m256i first = _mm256_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2);
    const __m256i middle = _mm256_setr_epi32(2, 3, 3, 3, 4, 4, 4, 5);
    const __m256i last = _mm256_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7);
#define PICK(rows, at_b, at_c)                                                                     \
    _mm256_blend_ps(_mm256_blend_ps(_mm256_permutevar8x32_ps(a, rows),                             \
                                    _mm256_permutevar8x32_ps(b, rows), at_b),                      \
                    _mm256_permutevar8x32_ps(c, rows), at_c)
    _mm256_storeu_ps(y, PICK(first, 0x92, 0x24));
    _mm256_storeu_ps(y + 8, PICK(middle, 0x24, 0x49));
    _mm256_storeu_ps(y + 16, PICK(last, 0x49, 0x92));
#undef PICK
}

TARGET void qk_transpose32_avx2(const void *from, size_t line, void *to, size_t rows,
                                size_t columns) {
    const float *x = from;
    float *y = to;
    if (rows >= 8 && columns == 3) {
        for (size_t r = 0; r < rows; r += 8) {
            const size_t at = r + 8 <= rows ? r : rows - 8;
            tile32x3(x + at, line, y + 3 * at);
        }
        return;
    }
    if (rows >= 8 && columns > 4 && columns < 8) {
        turn32_few(x, line, y, rows, columns);
        return;
    }
    if (rows < 8 || columns < 4) {
        qk_transpose32_c(from, line, to, rows, columns);
        return;
    }
    /* Lines whole pages apart share a set of the first-level cache, which may have 8 places. */
    const bool x_shares = line % PAGE == 0, y_shares = columns % PAGE == 0;
    const size_t tall = rows < 16 || y_shares ? 8 : 16;
    const size_t wide = y_shares ? 2 * LINES : x_shares ? LINES / 4 : LINES;
    for (size_t c = 0; c < columns; c += wide) {
        const size_t end = columns - c < wide ? columns : c + wide;
        for (size_t r = 0; r < rows; r += tall) {
            const size_t at = r + tall <= rows ? r : rows - tall;
            row32(x + at, line, y + at * columns, columns, c, end, tall);
        }
    }
}

/* ---- 8 bits ---- */

/* Interleaves lines i and i + 4 of 8: three rounds transpose a tile of 8, or two side by side. */
INLINE void round8(const __m128i *from, __m128i *to) {
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        to[2 * i] = _mm_unpacklo_epi8(from[i], from[i + 4]);
        to[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + 4]);
    }
}

INLINE void round16(const __m256i *from, __m256i *to) {
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        to[2 * i] = _mm256_unpacklo_epi8(from[i], from[i + 4]);
        to[2 * i + 1] = _mm256_unpackhi_epi8(from[i], from[i + 4]);
    }
}

INLINE void store16(uint8_t *y, __m128i v) {
    _mm_storeu_si128((__m128i *)(void *)y, v);
}

INLINE __m128i load8(const uint8_t *x) {
    return _mm_loadu_si128((const __m128i *)(const void *)x);
}

/* Keeps compilers from holding an address for each line: they run out of registers. */
#define WALK(p, step)                                                                              \
    p += step;                                                                                     \
    __asm__("" : "+r"(p));

/* Lines 8 apart share a vector, so 8 registers hold the tile. */
INLINE void tile8x16(const uint8_t *x, size_t line, uint8_t *y, size_t columns) {
    __m256i a[8], b[8];
    const size_t far = 8 * line;
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++) {
        a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load8(x)), load8(x + far), 1);
        WALK(x, line)
    }
    round16(a, b);
    round16(b, a);
    round16(a, b);
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++) {
        const __m256i rows = _mm256_permute4x64_epi64(b[i], 0xd8);
        store16(y, _mm256_castsi256_si128(rows));
        WALK(y, columns)
        store16(y, _mm256_extracti128_si256(rows, 1));
        WALK(y, columns)
    }
}

INLINE void tile8x8(const uint8_t *x, size_t line, uint8_t *y, size_t columns) {
    __m128i a[8], b[8];
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++)
        a[i] = load8(x + i * line);
    round8(a, b);
    round8(b, a);
    round8(a, b);
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++) {
        _mm_storel_epi64((__m128i *)(void *)(y + 2 * i * columns), b[i]);
        _mm_storel_epi64((__m128i *)(void *)(y + (2 * i + 1) * columns),
                         _mm_unpackhi_epi64(b[i], b[i]));
    }
}

/* 16 rows of 5 to 7 columns: each is stored as 8, the next row overwrites the excess. */
INLINE void tile8xfew(const uint8_t *x, size_t line, uint8_t *y, size_t columns) {
    __m128i a[8], b[8];
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++)
        a[i] = load8(x + (i < columns ? i : 0) * line);
    round8(a, b);
    round8(b, a);
    round8(a, b);
#pragma GCC unroll 16
    for (size_t i = 0; i < 8; i++) {
        _mm_storel_epi64((__m128i *)(void *)y, b[i]);
        WALK(y, columns)
        _mm_storel_epi64((__m128i *)(void *)y, _mm_unpackhi_epi64(b[i], b[i]));
        WALK(y, columns)
    }
}

TARGET static void turn8_few(const uint8_t *x, size_t line, uint8_t *y, size_t rows,
                             size_t columns) {
    uint8_t last[16 * 8];
    size_t r = 0;
    for (; r + 16 < rows; r += 16)
        tile8xfew(x + r, line, y + r * columns, columns);
    r = rows - 16;
    tile8xfew(x + r, line, last, columns);
    memcpy(y + r * columns, last, 16 * columns);
}

/* Transposes 16 rows of columns [c, end). */
INLINE void row8(const uint8_t *x, size_t line, uint8_t *y, size_t columns, size_t c, size_t end) {
    for (; c + 16 <= end; c += 16)
        tile8x16(x + c * line, line, y + c, columns);
    if (c + 8 < end && end >= 16)
        tile8x16(x + (end - 16) * line, line, y + end - 16, columns);
    else if (c < end) {
        if (c + 8 <= end)
            tile8x8(x + c * line, line, y + c, columns);
        if (c + 8 != end)
            tile8x8(x + (end - 8) * line, line, y + end - 8, columns);
    }
}

TARGET void qk_transpose8_avx2(const void *from, size_t line, void *to, size_t rows,
                               size_t columns) {
    const uint8_t *x = from;
    uint8_t *y = to;
    if (rows >= 16 && columns > 4 && columns < 8) {
        turn8_few(x, line, y, rows, columns);
        return;
    }
    if (rows < 16 || columns < 8) {
        qk_transpose8_c(from, line, to, rows, columns);
        return;
    }
    for (size_t c = 0; c < columns; c += LINES) {
        const size_t end = columns - c < LINES ? columns : c + LINES;
        for (size_t r = 0; r < rows; r += 16) {
            const size_t at = r + 16 <= rows ? r : rows - 16;
            row8(x + at, line, y + at * columns, columns, c, end);
        }
    }
}

/* ---- two inputs interleaved ---- */

/* The last eight elements overlap those before. */
INLINE void weave32_avx2(const float *a, const float *b, float *y, size_t n) {
    size_t i = 0;
    for (; n >= 8 && i < n; i += 8) {
        i = i < n - 8 ? i : n - 8;
        const __m256 x = _mm256_loadu_ps(a + i), z = _mm256_loadu_ps(b + i);
        const __m256 low = _mm256_unpacklo_ps(x, z), high = _mm256_unpackhi_ps(x, z);
        _mm256_storeu_ps(y + 2 * i, _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_storeu_ps(y + 2 * i + 8, _mm256_permute2f128_ps(low, high, 0x31));
    }
    for (; i < n; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}

QK_U8_SHUFFLE32(avx2, TARGET)
#endif
