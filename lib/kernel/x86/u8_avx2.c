/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on 8 bits: the plain loops, and tables looked up 16 entries at a time. */
#include "kernel/table.h"

#if QK_X86
#include <immintrin.h>

#include "kernel/u8_loops.h"

#define TARGET __attribute__((target("avx2")))
#define INLINE TARGET __attribute__((always_inline)) static inline

QK_U8_LOOPS(avx2, TARGET)
QK_U8_DEQUANTIZE(avx2, TARGET)
QK_U8_TABLE(loops, TARGET)

/*
 * A byte's low 4 bits are looked up in all 16 rows. A shuffle gives 0 where the index is negative,
 * so that of a row and the eighth behind it one answers; the bits between, moved into the sign,
 * choose among those.
 */
typedef struct key {
    __m256i first, second, bit[3];
} key;

INLINE __m256i look_up_1(const __m256i *row, const key *k) {
    return _mm256_or_si256(_mm256_shuffle_epi8(row[0], k->first),
                           _mm256_shuffle_epi8(row[8], k->second));
}

INLINE __m256i look_up_2(const __m256i *row, const key *k) {
    return _mm256_blendv_epi8(look_up_1(row, k), look_up_1(row + 1, k), k->bit[0]);
}

INLINE __m256i look_up_4(const __m256i *row, const key *k) {
    return _mm256_blendv_epi8(look_up_2(row, k), look_up_2(row + 2, k), k->bit[1]);
}

INLINE __m256i look_up(const __m256i *row, __m256i x) {
    const __m256i first = _mm256_and_si256(x, _mm256_set1_epi8((char)0x8f));
    const key k = {first,
                   _mm256_xor_si256(first, _mm256_set1_epi8((char)0x80)),
                   {_mm256_slli_epi16(x, 3), _mm256_slli_epi16(x, 2), _mm256_add_epi8(x, x)}};
    return _mm256_blendv_epi8(look_up_4(row, &k), look_up_4(row + 4, &k), k.bit[2]);
}

INLINE void load_rows(const uint8_t *table, __m256i *row) {
    for (size_t r = 0; r < 16; r++)
        row[r] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * r)));
}

TARGET static void table_avx2(const uint8_t *table, const uint8_t *x, size_t x_stride, uint8_t *y,
                              size_t y_stride, size_t n, size_t rows) {
    const size_t whole = n & ~(size_t)31;
    __m256i row[16];
    if (n >= 32)
        load_rows(table, row);
    for (size_t r = 0; r < rows && whole; r++)
        for (size_t i = 0; i < whole; i += 32) {
            const void *from = x + r * x_stride + i;
            void *to = y + r * y_stride + i;
            _mm256_storeu_si256(to, look_up(row, _mm256_loadu_si256(from)));
        }
    table_loops(table, x + whole, x_stride, y + whole, y_stride, n - whole, rows);
}

const qk_u8 qk_u8_avx2 = {.add = add_avx2,
                          .mul = mul_avx2,
                          .table = table_avx2,
                          .interleave = interleave_avx2,
                          .quantize = quantize_avx2,
                          .dequantize = dequantize_avx2,
                          .turn8 = qk_turn8_avx2,
                          .turn32 = qk_turn32_avx2};
#endif
