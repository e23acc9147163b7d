/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution on the image itself: a template in vectors of 128 * W_LANES bits. Before
 * including it, define TARGET, INLINE, epilogue_of, scale, narrow and narrow_u8 (i8_zmm.h,
 * i8_ymm.h) and
 *
 *   W_LANES           4 or 2
 *   W_GROUP           rows of the image in a dword: 4 bytes or 2 words
 *   window_dot(a, x, w)  function: sums of a dword's products, added up
 *
 * Two rows of output at a time. First, the rows of the image that they look at are interleaved into
 * scratch, column by column: dwords of W_GROUP vertical neighbours of one channel, 16 * W_LANES
 * channels in four vectors. Both rows of output read the same dwords where that takes no more of
 * them, the second with its weights moved down by the stride. Then a tile is four pixels of both
 * rows, one vector of channels after the other: weights are loaded once for four pixels, dwords
 * once for two rows. Packing gives four pixels of four channels a lane; a transpose puts the
 * channels together.
 *
 * That is the way of whatever has no kernel without scratch (i8_slide.h): sums that are stored as
 * int32 or clamped.
 *
 * Scratch stays in the first cache: columns, and rows where they are short, are taken in parts.
 * The last channels, where they fill half or a quarter of the lanes, are those of several ranges of
 * columns side by side.
 */
#ifndef QK_I8_WINDOW_H
#define QK_I8_WINDOW_H

#include "kernel/x86/i8_window_fill.h"

/* Defined by the including file. */
INLINE w_vec window_dot(w_vec a, w_vec x, w_vec w);

/* ---- tiles ---- */

typedef struct tile {
    const uint8_t *x0, *x1, *x2, *x3; /* four pixels' first columns in scratch */
    const int32_t *tap;               /* from there to a dword */
    int32_t taps;
    ptrdiff_t second;    /* from a dword of the first row to one of the second */
    const int8_t *w, *v; /* weights of both rows */
    const int32_t *bias;
    const float *mult;
    const epilogue *e;
} tile;

/* In its register: gcc otherwise moves sums through memory. */
#if W_LANES == 4
#define W_KEEP(a) __asm__("" : "+v"(a));
#else
#define W_KEEP(a) __asm__("" : "+x"(a));
#endif
#define W_STEP(i)                                                                                  \
    {                                                                                              \
        w_vec d##i = w_load(k->x##i + at);                                                         \
        W_KEEP(d##i)                                                                               \
        a##i = window_dot(a##i, d##i, w);                                                          \
        W_KEEP(a##i)                                                                               \
        b##i = window_dot(b##i, w_load(k->x##i + at + k->second), v);                              \
        W_KEEP(b##i)                                                                               \
    }
#define W_SUMS                                                                                     \
    w_vec a0 = w_load(k->bias + z * W_DWORDS), a1 = a0, a2 = a0, a3 = a0;                          \
    w_vec b0 = a0, b1 = a0, b2 = a0, b3 = a0;                                                      \
    for (int32_t t = 0; t < taps; t++) {                                                           \
        const ptrdiff_t at = k->tap[t] + z * W_BYTES;                                              \
        w_vec w = w_load(k->w + t * W_ALL + z * W_BYTES);                                          \
        W_KEEP(w)                                                                                  \
        w_vec v = w_load(k->v + t * W_ALL + z * W_BYTES);                                          \
        W_KEEP(v)                                                                                  \
        W_STEP(0) W_STEP(1) W_STEP(2) W_STEP(3)                                                    \
    }

/* Sums of both rows: [row][pixel][position]. Rare: one function for all kernels. */
QS_RARE TARGET static void tile_sums(const tile *k, int32_t *to) {
    const int32_t taps = k->taps;
    for (int32_t z = 0; z < 4; z++, to += W_DWORDS) {
        W_SUMS
        w_store(to, a0);
        w_store(to + W_BYTES, a1);
        w_store(to + 2 * W_BYTES, a2);
        w_store(to + 3 * W_BYTES, a3);
        w_store(to + 4 * W_BYTES, b0);
        w_store(to + 5 * W_BYTES, b1);
        w_store(to + 6 * W_BYTES, b2);
        w_store(to + 7 * W_BYTES, b3);
    }
}

/* ---- storing ---- */

#if W_LANES == 4
/* Plain stores are faster than masked ones. */
INLINE void store_half(uint8_t *to, __m256i v, int32_t cols) {
    if (__builtin_expect(cols == 32, true))
        _mm256_storeu_si256((__m256i *)(void *)to, v);
    else
        _mm256_mask_storeu_epi8(to, 0xffffffff >> (32 - cols), v);
}

INLINE void store_quarter(uint8_t *to, __m128i v, int32_t cols) {
    if (__builtin_expect(cols == 16, true))
        _mm_storeu_si128((__m128i *)(void *)to, v);
    else
        _mm_mask_storeu_epi8(to, (__mmask16)(0xffff >> (16 - cols)), v);
}
#endif

/* The first n ranges of a vector, `cols` bytes of each. */
INLINE void store_ranges(uint8_t *to, w_vec v, ptrdiff_t apart, int32_t each, int32_t cols,
                         int32_t n) {
#if W_LANES == 4
    if (each == 32)
        store_half(to, _mm512_castsi512_si256(v), cols);
    else
        store_quarter(to, _mm512_castsi512_si128(v), cols);
    if (each == 32 && n > 1)
        store_half(to + apart, _mm512_extracti64x4_epi64(v, 1), cols);
    else if (n > 1)
        store_quarter(to + apart, _mm512_extracti32x4_epi32(v, 1), cols);
    if (each == 16 && n > 2)
        store_quarter(to + 2 * apart, _mm512_extracti32x4_epi32(v, 2), cols);
    if (each == 16 && n > 3)
        store_quarter(to + 3 * apart, _mm512_extracti32x4_epi32(v, 3), cols);
#else
    (void)each;
    if (__builtin_expect(cols == 16, true)) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(v));
        if (__builtin_expect(n > 1, true))
            _mm_storeu_si128((__m128i *)(void *)(to + apart), _mm256_extracti128_si256(v, 1));
        return;
    }
    uint8_t all[W_BYTES];
    w_store(all, v);
    for (int32_t r = 0; r < n; r++)
        copy_bytes(to + r * apart, all + 16 * r, cols);
#endif
}

/* Where a block's channels go. */
typedef struct target {
    const plan *p;
    const part *t;
    int32_t c, cols; /* first channel, channels of a range that are stored */
} target;

/* Bytes of one pixel of all ranges, the first of them at (x, y). */
INLINE void store_pixel(const target *s, w_vec v, int32_t x, int32_t y) {
    const qk_window_u8s8 *d = s->p->d;
    uint8_t *to = (uint8_t *)d->out + ((int64_t)y * d->wo + x) * d->channels + s->c;
    if (s->t->ranges == 1) {
        if (s->cols == W_BYTES)
            w_store(to, v);
        else
            w_store_n(to, v, s->cols);
        return;
    }
    const ptrdiff_t apart = (ptrdiff_t)s->t->q * d->channels;
    bool all = x + (s->t->ranges - 1) * s->t->q < d->wo; /* usual, and spares a division */
    store_ranges(to, v, apart, s->t->each, s->cols,
                 all ? s->t->ranges : (d->wo - 1 - x) / s->t->q + 1);
}

/* Sums of one pixel of all ranges, in positions. */
QS_RARE TARGET static void store_sums(const target *s, const int32_t *sums, int32_t x, int32_t y) {
    const qk_window_u8s8 *d = s->p->d;
    int32_t *out = d->out;
    for (int32_t r = 0; r < s->t->ranges && x < d->wo; r++, x += s->t->q) {
        int32_t *to = out + ((int64_t)y * d->wo + x) * d->channels + s->c;
        for (int32_t i = 0; i < s->cols; i += 4) {
            int32_t at = r * s->t->each + i, n = s->cols - i < 4 ? s->cols - i : 4;
            memcpy(to + i, sums + at % 16 / 4 * W_DWORDS + at / 16 * 4, 4 * (size_t)n);
        }
    }
}

/* The same with the clamp before the conversion. */
QS_RARE TARGET static void store_clamped(const target *s, const int32_t *sums, const float *mult,
                                         int32_t x, int32_t y) {
    const epilogue *e = &s->p->e;
    w_vec v[4];
    for (int32_t z = 0; z < 4; z++)
        v[z] = scale(w_load(sums + z * W_DWORDS), W(loadu_ps)(mult + z * W_DWORDS), e);
    store_pixel(s, narrow_u8(narrow(v[0], v[1], e), narrow(v[2], v[3], e), e), x, y);
}

/* ---- a block of channels ---- */

/* int32, or with the clamp. */
QS_RARE TARGET static void run_sums(tile *k, const target *s, const pixels *list,
                                    const uint8_t *scratch) {
    const qk_window_u8s8 *d = s->p->d;
    int32_t sums[8 * W_BYTES];
    for (int32_t i = 0; i < list->count; i += 4) {
        k->x0 = scratch + list->at[i];
        k->x1 = scratch + list->at[i + 1];
        k->x2 = scratch + list->at[i + 2];
        k->x3 = scratch + list->at[i + 3];
        tile_sums(k, sums);
        for (int32_t j = 0; j < 8; j++) {
            int32_t x = list->x[i + j % 4], y = list->y[i + j % 4] + j / 4;
            if (y < d->rows && d->o.mult)
                store_clamped(s, sums + j * W_BYTES, k->mult, x, y);
            else if (y < d->rows)
                store_sums(s, sums + j * W_BYTES, x, y);
        }
    }
}

static bool any_weight(const int8_t *w, size_t bytes) {
    uint64_t any = 0, eight;
    for (size_t i = 0; i < bytes; i += 8) {
        memcpy(&eight, w + i, 8);
        any |= eight;
    }
    return any != 0;
}

QS_RARE static void run_block(const plan *p, const part *t, int32_t c, const pixels *list,
                              const uint8_t *scratch) {
    const qk_window_u8s8 *d = p->d;
    bool halves = d->split && W_GROUP == 4;
    tile k = {.tap = t->tap, .taps = p->taps, .second = (ptrdiff_t)p->second * W_ALL};
    k.w = d->w + (size_t)(c / W_BYTES) * p->block_bytes;
    k.v = p->shared ? k.w + (halves ? 2 : 1) * p->set_bytes : k.w;
    k.bias = d->o.bias + c;
    k.mult = d->o.mult ? d->o.mult + c : NULL;
    if (halves && any_weight(k.w + p->set_bytes, p->set_bytes))
        k.taps *= 2;
    target s = {p, t, c, d->channels - c < t->each ? d->channels - c : t->each};
    run_sums(&k, &s, list, scratch);
}

/*
 * The kernels without scratch, defined by the including file: what t->run and t->o are; pairs of
 * rows from y on.
 */
QS_RARE static void start_slide(const plan *p, part *t);
static void slide(const plan *p, part *t, int32_t y, int32_t pairs);

static part part_of(const plan *p, int32_t begin, int32_t end, int32_t each) {
    part t = {.begin = begin, .end = end, .each = each, .ranges = W_BYTES / each, .pairs = 1};
    t.q = (p->d->wo + t.ranges - 1) / t.ranges;
    start_slide(p, &t);
    if (!t.run) {
        lay_out(p, &t);
        return t;
    }
    /* Rows of all blocks that stay in the first cache. */
    const int64_t most = 64 / columns_of(p->d, t.q);
    t.pairs = most < 1 ? 1 : most > 4 ? 4 : (int32_t)most;
    return t;
}

/* Rows begin … end - 1 of output. */
static void run_part(const plan *p, part *t, int32_t begin, int32_t end, uint8_t *scratch) {
    pixels list;
    for (int32_t y = begin; y < end; y += 2 * t->pairs) {
        int32_t pairs = (end - y + 1) / 2 < t->pairs ? (end - y + 1) / 2 : t->pairs;
        if (t->run) {
            slide(p, t, y, pairs);
            continue;
        }
        for (int32_t x = 0; x < t->q; x += t->xs) {
            list_pixels(p, t, y, pairs, x, &list);
            for (int32_t c = t->begin; c < t->end; c += W_BYTES) {
                fill(p, t, y, pairs, x, c, scratch);
                run_block(p, t, c, &list, scratch);
            }
        }
    }
}

TARGET static void window_u8s8(const qk_window_u8s8 *d) {
    _Alignas(64) uint8_t scratch[W_ROOM > W_GOAL ? W_ROOM : W_GOAL];
    const plan p = plan_of(d);
    int32_t rest = d->channels % W_BYTES;
    int32_t each = rest == 0 ? W_BYTES : rest <= 16 ? 16 : rest <= 32 ? 32 : W_BYTES;
    int32_t whole = each == W_BYTES ? d->channels : d->channels - rest;
    part parts[2];
    int32_t count = 0;
    if (whole > 0)
        parts[count++] = part_of(&p, 0, whole, W_BYTES);
    if (whole < d->channels)
        parts[count++] = part_of(&p, whole, d->channels, each);
    const int32_t band = 2 * parts[0].pairs;
    for (int32_t y = 0; y < d->rows; y += band)
        for (int32_t i = 0; i < count; i++)
            run_part(&p, &parts[i], y, d->rows - y < band ? d->rows : y + band, scratch);
}

#endif
