/* SPDX-License-Identifier: MIT */
/* Packing of s8 weights for the depthwise kernels: lists of taps, and windows. */
#include "kernel/i8.h"

int32_t qk_i8_depthwise_positions(const qk_i8 *t, int32_t channels) {
    int32_t block = 16 * t->lanes;
    return (channels + block - 1) / block * block;
}

/* Period of the channels in a block with `left` channels. */
static int32_t repeated(const qk_i8 *t, int32_t left) {
    int32_t block = 16 * t->lanes;
    return left <= 16 ? 16 : left <= 32 && block > 32 ? 32 : block;
}

/* Channel of a position in the block from `first` on. */
static int32_t depthwise_channel(const qk_i8 *t, int32_t channels, int32_t first, int32_t p) {
    return first + qk_i8_column(t, 16 * t->lanes, p) % repeated(t, channels - first);
}

/* A weight as s8. */
static int32_t s8_at(int8_t w, const qk_source_i8 *s) {
    return (int8_t)((uint8_t)w ^ s->flip);
}

/* The part of w - zp of a tap in the first or the second set. */
static int8_t depthwise_weight(const qk_source_i8 *s, int32_t n, int32_t tap, bool second) {
    int32_t w = s8_at(s->w[n * s->sn + tap / s->kw * s->sy + tap % s->kw * s->sx], s) -
                (s->zp ? s->zp[n] : 0);
    return qk_i8_part(w, second);
}

static void depthwise_sums(const qk_source_i8 *s, int32_t *colsum) {
    if (!colsum)
        return;
    qk_i8_column_sums(s, 0, s->n, colsum);
    for (int32_t n = 0; n < s->n && s->zp; n++)
        colsum[n] -= s->kh * s->kw * s->zp[n];
}

void qk_i8_pack_depthwise(const qk_i8 *t, const qk_source_i8 *s, int32_t channels, int8_t *w,
                          int32_t *colsum) {
    int32_t block = 16 * t->lanes, taps = s->kh * s->kw, fours = (taps + 3) / 4;
    int32_t sets = s->zp ? 2 : 1;
    for (int32_t first = 0; first < channels && !qk_i8_stopped(s); first += block)
        for (int32_t four = 0; four < sets * fours; four++)
            for (int32_t p = 0; p < 4 * block; p++) {
                int32_t n = depthwise_channel(t, channels, first, p / 4);
                int32_t tap = 4 * (four % fours) + p % 4;
                bool used = n < channels && tap < taps;
                *w++ = used ? depthwise_weight(s, n % s->n, tap, four >= fours) : 0;
            }
    depthwise_sums(s, colsum);
}

/* The most rows and columns of a window's kernel; groups of rows may begin MARGIN outside it. */
#define WINDOW 7
#define MARGIN 8

_Static_assert(MARGIN >= WINDOW, "a group of rows may begin a kernel's height outside");

/* w - zp of a channel by column of the kernel, zeros around: two s8 parts, and in 16 bits. */
typedef struct window_taps {
    int8_t part[2][WINDOW][MARGIN + WINDOW + MARGIN];
    int16_t wide[WINDOW][MARGIN + WINDOW + MARGIN];
} window_taps;

static void read_taps(const qk_source_i8 *s, int32_t n, window_taps *taps) {
    const int32_t zp = n < s->n && s->zp ? s->zp[n] : 0;
    for (int32_t y = 0; y < s->kh; y++)
        for (int32_t x = 0; x < s->kw; x++) {
            int32_t v = 0;
            if (n < s->n)
                v = s8_at(s->w[n * s->sn + y * s->sy + x * s->sx], s) - zp;
            const int32_t first = v < -128 ? -128 : v > 127 ? 127 : v;
            taps->part[0][x][MARGIN + y] = (int8_t)first;
            taps->part[1][x][MARGIN + y] = (int8_t)(v - first);
            taps->wide[x][MARGIN + y] = (int16_t)v;
        }
}

void qk_i8_pack_window(const qk_i8 *t, const qk_source_i8 *s, int32_t stride_h, int8_t *w,
                       int32_t *colsum) {
    const int32_t groups = qk_i8_window_groups(t, s->kh), block = 16 * t->lanes;
    const int32_t rows = qk_i8_window_shared(t, s->kh, stride_h) ? 2 : 1;
    const int32_t sets = qk_i8_window_sets(t, s->kh, stride_h, s->zp != NULL), parts = sets / rows;
    const size_t bytes = 4 * (size_t)sets * (size_t)s->kw * (size_t)groups; /* per channel */
    window_taps taps = {0};
    for (int32_t first = 0; first < s->n && !qk_i8_stopped(s);
         first += block, w += bytes * (size_t)block)
        for (int32_t p = 0; p < block; p++) {
            int8_t *to = w + 4 * p;
            read_taps(s, depthwise_channel(t, s->n, first, p), &taps);
            for (int32_t set = 0; set < sets; set++)
                for (int32_t x = 0; x < s->kw; x++)
                    for (int32_t g = 0; g < groups; g++, to += 4 * block) {
                        const int32_t y = MARGIN + g * t->window_group - set / parts * stride_h;
                        const void *from = t->window_group == 4
                                               ? (const void *)&taps.part[set % parts][x][y]
                                               : (const void *)&taps.wide[x][y];
                        memcpy(to, from, 4);
                    }
        }
    depthwise_sums(s, colsum);
}

void qk_i8_spread_depthwise(const qk_i8 *t, int32_t channels, int32_t n, const void *in,
                            void *out) {
    int32_t block = 16 * t->lanes;
    const uint32_t *from = in;
    uint32_t *to = out;
    for (int32_t first = 0; first < channels; first += block)
        for (int32_t p = 0; p < block; p++) {
            int32_t channel = depthwise_channel(t, channels, first, p);
            *to++ = channel < channels ? from[channel % n] : 0;
        }
}
