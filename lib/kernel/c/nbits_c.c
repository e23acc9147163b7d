/* SPDX-License-Identifier: MIT */
/* The specification of products with weights of 4 or 8 bits in blocks. */
#include "kernel/nbits.h"

static void unpack(const qk_nbits_weights *w, size_t group, size_t begin, size_t end,
                   size_t columns, float *to, size_t width) {
    const uint32_t *codes = qk_nbits_codes(w, group);
    for (size_t k = begin; k < end; k++) {
        const size_t at = (group * w->blocks + k / w->block) * QK_NBITS_GROUP;
        for (size_t j = 0; j < columns; j++) {
            const uint32_t code = codes[k / 8 * QK_NBITS_GROUP + j] >> (k % 8 * 4) & 15;
            const int32_t zero = w->zeros ? w->zeros[at + j] : 8;
            to[k * width + j] = (float)((int32_t)code - zero) * w->scales[at + j];
        }
    }
}

/* Sums of a block for 16 columns, zero points subtracted. */
static void block_sums(const qk_nbits_weights *w, const uint32_t *codes, size_t at, const int8_t *a,
                       int32_t sum_a, int32_t sums[QK_NBITS_GROUP]) {
    for (size_t j = 0; j < QK_NBITS_GROUP; j++)
        sums[j] = -(w->zeros ? w->zeros[at + j] : 8) * sum_a;
    for (size_t k = 0; k < w->block; k++) {
        const int32_t x = a[qk_nbits_place(k)];
        const uint32_t *dwords = codes + (w->bytes ? k / 8 * 2 + k % 2 : k / 8) * QK_NBITS_GROUP;
        const size_t shift = w->bytes ? k % 8 / 2 * 8 : k % 8 * 4;
        const uint32_t mask = w->bytes ? 255 : 15;
        for (size_t j = 0; j < QK_NBITS_GROUP; j++)
            sums[j] += x * (int32_t)(dwords[j] >> shift & mask);
    }
}

static void rounded(const qk_nbits_weights *w, const qk_nbits_rows *a, size_t group, size_t begin,
                    size_t end, float *y, size_t ldy) {
    const size_t depth = w->block * w->blocks;
    for (size_t g = 0; g < QK_NBITS_TOGETHER; g++)
        for (size_t r = 0; r < a->rows; r++) {
            float *sum = y + r * ldy + g * QK_NBITS_GROUP;
            for (size_t b = begin; b < end; b++) {
                const size_t at = ((group + g) * w->blocks + b) * QK_NBITS_GROUP;
                const uint32_t *codes =
                    qk_nbits_codes(w, group + g) + qk_nbits_dwords(w, b * w->block);
                int32_t sums[QK_NBITS_GROUP];
                block_sums(w, codes, at, a->a + r * depth + b * w->block,
                           a->sums[r * w->blocks + b], sums);
                for (size_t j = 0; j < QK_NBITS_GROUP; j++) {
                    const float scale = a->scales[r * w->blocks + b] * w->scales[at + j];
                    const float product = (float)sums[j] * scale;
                    sum[j] += product;
                }
            }
        }
}

const qk_nbits qk_nbits_c = {.unpack = unpack, .rounded = rounded};
