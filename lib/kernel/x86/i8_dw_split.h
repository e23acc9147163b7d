/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution on the image itself, to bytes without a clamp, or to floats where the table
 * says so: a template in vectors of
 * 128 * W_LANES bits. Before including it, define TARGET, INLINE, epilogue_of, scale, narrow and
 * narrow_u8 (i8_zmm.h, i8_ymm.h) and
 *
 *   W_LANES           4 or 2
 *   W_GROUP           rows of the image in a dword: 4 bytes or 2 words
 *   window_dot(a, x, w)  function: sums of a dword's products, added up
 *
 * Two rows of output at a time. Both read the same dwords, of W_GROUP vertical neighbours of one
 * channel, where that takes no more of them, the second with its weights moved down by the stride.
 * The kernels are those of i8_dw_rows.h; here is how the work is cut.
 *
 * The last channels, where they fill half or a quarter of the lanes, are those of several ranges of
 * columns side by side.
 */
#ifndef QK_I8_WINDOW_H
#define QK_I8_WINDOW_H

#include "kernel/i8.h"

#if W_LANES == 4
#define W(f)   _mm512_##f
#define W_ZERO _mm512_setzero_si512()
typedef __m512i w_vec;
INLINE w_vec w_load(const void *p) {
    return _mm512_loadu_si512(p);
}
INLINE void w_store(void *p, w_vec v) {
    _mm512_storeu_si512(p, v);
}
/* The first n bytes. */
INLINE void w_store_n(uint8_t *p, w_vec v, int32_t n) {
    _mm512_mask_storeu_epi8(p, ~(__mmask64)0 >> (64 - n), v);
}
#else
#define W(f)   _mm256_##f
#define W_ZERO _mm256_setzero_si256()
typedef __m256i w_vec;
INLINE w_vec w_load(const void *p) {
    return _mm256_loadu_si256(p);
}
INLINE void w_store(void *p, w_vec v) {
    _mm256_storeu_si256((__m256i *)p, v);
}
/* n <= 16 bytes, in overlapping halves. */
INLINE void copy_bytes(uint8_t *to, const uint8_t *from, int32_t n) {
    if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}
/* n > 16: fewer are those of two ranges. */
INLINE void w_store_n(uint8_t *p, w_vec v, int32_t n) {
    uint8_t all[32];
    w_store(all, v);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(v));
    memcpy(p + n - 16, all + n - 16, 16);
}
#endif

enum {
    W_BYTES = 16 * W_LANES, /* of a vector; channels of a block */
    W_DWORDS = 4 * W_LANES,
    W_ALL = 4 * W_BYTES, /* of one dword of all weights */
};

typedef struct plan {
    const qk_window_u8s8 *d;
    int32_t groups; /* dwords of one column of the kernel */
    int32_t stored; /* of one column of the image */
    int32_t second; /* the first of them that the second row of output looks at */
    bool shared;    /* moved weights instead */
    size_t set_bytes, block_bytes;
    ptrdiff_t row_bytes; /* of the image */
    epilogue e;
} plan;

/* What a pair of rows needs besides its columns. */
typedef struct slide_out {
    const int8_t *w, *v; /* of both rows */
    ptrdiff_t more;      /* from there to the second set, or 0 */
    ptrdiff_t moved;     /* from w to v */
    const int32_t *bias;
    const float *mult;
    const float *scale, *add; /* of floats */
    uint8_t *first, *second;
    int32_t n, wo;   /* columns of output in a range, of all */
    int32_t whole;   /* columns that all ranges have */
    ptrdiff_t pixel; /* bytes */
    int32_t cols;
    bool limits;
    int32_t stride, dilation, kw;   /* along the width */
    int32_t groups, stored, behind; /* groups of rows: of the kernel, of both rows of output, the
                                       first that the second one looks at */
    int32_t rows;                   /* of output at a time */
} slide_out;

/* Rows of the image, from i8_dw_rows.h. */
typedef struct slides slides;

typedef void (*slide_fn)(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e);

/* Channels of one kind of block. */
typedef struct part {
    int32_t begin, end; /* channels */
    int32_t each;       /* channels of a range of columns in a vector */
    int32_t ranges;
    int32_t q;     /* columns of output in a range */
    int32_t pairs; /* of rows taken at once */
    slide_fn run, run_single;
    slide_out o;
} part;

INLINE plan plan_of(const qk_window_u8s8 *d) {
    plan p = {.d = d, .e = epilogue_of(&d->o)};
    int32_t both = (d->kh + d->stride_h + W_GROUP - 1) / W_GROUP, sets;
    p.groups = p.stored = (d->kh + W_GROUP - 1) / W_GROUP;
    sets = (both == p.groups ? 2 : 1) * (d->split && W_GROUP == 4 ? 2 : 1);
    p.shared = both == p.groups && d->dilation_h == 1;
    if (!p.shared) {
        bool step = d->dilation_h == 1 && d->stride_h % W_GROUP == 0 && d->stride_h < d->kh;
        p.second = step ? d->stride_h / W_GROUP : p.groups;
        p.stored = p.groups + p.second;
    }
    p.set_bytes = (size_t)(d->kw * p.groups) * W_ALL;
    p.block_bytes = (size_t)sets * p.set_bytes;
    p.row_bytes = (ptrdiff_t)d->wd * d->channels;
    return p;
}

/* Columns of the image that n neighbouring columns of output look at. */
static int64_t columns_of(const qk_window_u8s8 *d, int32_t n) {
    return (int64_t)(n - 1) * d->stride_w + (int64_t)(d->kw - 1) * d->dilation_w + 1;
}

/* Defined by the including file. */
INLINE w_vec window_dot(w_vec a, w_vec x, w_vec w);

/* In its register: gcc otherwise moves sums through memory. */
#if W_LANES == 4
#define W_KEEP(a) __asm__("" : "+v"(a));
#else
#define W_KEEP(a) __asm__("" : "+x"(a));
#endif

/* ---- loading and storing ---- */

INLINE __m128i load_16(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE __m256i load_2x16(const uint8_t *p, const uint8_t *q) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(q), 1);
}

#if W_LANES == 4
INLINE __m256i load_32(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
#endif

/* Channels of all ranges side by side. */
INLINE w_vec load_ranges(const uint8_t *const *from, int32_t ranges) {
#if W_LANES == 4
    /* Not with masked broadcasts, which are half as fast. */
    if (ranges == 2)
        return _mm512_inserti64x4(_mm512_castsi256_si512(load_32(from[0])), load_32(from[1]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(load_2x16(from[0], from[1])),
                              load_2x16(from[2], from[3]), 1);
#else
    (void)ranges;
    return load_2x16(from[0], from[1]);
#endif
}

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

/* ---- blocks of channels ---- */

static bool any_weight(const int8_t *w, size_t bytes) {
    uint64_t any = 0, eight;
    for (size_t i = 0; i < bytes; i += 8) {
        memcpy(&eight, w + i, 8);
        any |= eight;
    }
    return any != 0;
}

/*
 * The kernels, defined by the including file: what t->run and t->o are; pairs of rows from y on.
 */
QS_COLD static void start_slide(const plan *p, part *t);
static void slide(const plan *p, part *t, const part *last, int32_t y, int32_t pairs);

/* Bytes of a result. */
static int32_t element_of(const qk_window_u8s8 *d) {
    return d->o.scale ? 4 : 1;
}

static part part_of(const plan *p, int32_t begin, int32_t end, int32_t each) {
    part t = {.begin = begin, .end = end, .each = each, .ranges = W_BYTES / each};
    t.q = (p->d->wo + t.ranges - 1) / t.ranges;
    start_slide(p, &t);
    /* Rows of all blocks that stay in the first cache. */
    const int64_t most = 64 / columns_of(p->d, t.q);
    t.pairs = most < 1 ? 1 : most > 4 ? 4 : (int32_t)most;
    return t;
}

/* Rows begin ... end - 1 of output. */
static void run_parts(const plan *p, part *t, const part *last, int32_t begin, int32_t end) {
    for (int32_t y = begin; y < end; y += 2 * t->pairs) {
        const int32_t pairs = (end - y + 1) / 2;
        slide(p, t, last, y, pairs < t->pairs ? pairs : t->pairs);
    }
}

TARGET static void window_u8s8(const qk_window_u8s8 *d) {
    const plan p = plan_of(d);
    int32_t rest = d->channels % W_BYTES;
    int32_t each = rest == 0 ? W_BYTES : rest <= 16 ? 16 : rest <= 32 ? 32 : W_BYTES;
    if (d->o.scale) /* floats go in one range */
        each = W_BYTES;
    int32_t whole = each == W_BYTES ? d->channels : d->channels - rest;
    part parts[2];
    int32_t count = 0;
    if (whole > 0)
        parts[count++] = part_of(&p, 0, whole, W_BYTES);
    if (whole < d->channels)
        parts[count++] = part_of(&p, whole, d->channels, each);
    if (parts[0].o.rows == parts[count - 1].o.rows && !d->split) {
        run_parts(&p, parts, &parts[count - 1], 0, d->rows);
        return;
    }
    const int32_t band = 2 * parts[0].pairs;
    for (int32_t y = 0; y < d->rows; y += band)
        for (int32_t i = 0; i < count; i++)
            run_parts(&p, &parts[i], &parts[i], y, d->rows - y < band ? d->rows : y + band);
}

#endif
