/* SPDX-License-Identifier: MIT */
/*
 * The first half of i8_window.h: how the work is cut, and the rows of the image interleaved into
 * scratch.
 */
#ifndef QK_I8_WINDOW_FILL_H
#define QK_I8_WINDOW_FILL_H

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
    W_ALL = 4 * W_BYTES, /* of a column's group in scratch, of one dword of all weights */
    W_ROOM = 4 * 7 * 16 / W_GROUP * W_ALL, /* what four pixels may need */
    W_GOAL = 16 << 10,                     /* of scratch */
    W_PIXELS = 128,
    W_TAPS = 2 * 7 * 4
};

typedef struct plan {
    const qk_window_u8s8 *d;
    int32_t groups; /* dwords of one column of the kernel */
    int32_t stored; /* of one column of the image */
    int32_t second; /* the first of them that the second row of output looks at */
    int32_t next;   /* the first that the next pair of rows looks at; `stored`: none */
    bool shared;    /* moved weights instead */
    int32_t taps;   /* dwords of a sum */
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

/* Rows of the image, from i8_slide.h. */
typedef struct slides slides;

typedef void (*slide_fn)(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e);

/* Channels of one kind of block. */
typedef struct part {
    int32_t begin, end; /* channels */
    int32_t each;       /* channels of a range of columns in a vector */
    int32_t ranges;
    int32_t q;                          /* columns of output in a range */
    int32_t xs, pairs;                  /* columns and pairs of rows taken at once */
    bool apart;                         /* every pixel has its own columns in scratch */
    int32_t columns;                    /* of one pair of rows */
    ptrdiff_t column_bytes, pair_bytes; /* of scratch: from column to column, from pair to pair */
    slide_fn run;                       /* NULL: through scratch */
    slide_out o;
    int32_t tap[W_TAPS]; /* from a pixel's first column in scratch to its dwords, of two sets */
} part;

/* What is in scratch: pixels of the first rows of output. */
typedef struct pixels {
    int32_t count;
    int32_t at[W_PIXELS + 4]; /* in scratch */
    int32_t x[W_PIXELS + 4], y[W_PIXELS + 4];
    ptrdiff_t out[W_PIXELS + 4][2]; /* bytes from d->out, channel 0; both rows */
} pixels;

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
    p.taps = d->kw * p.groups;
    p.set_bytes = (size_t)p.taps * W_ALL;
    p.block_bytes = (size_t)sets * p.set_bytes;
    p.next = p.stored;
    if ((p.shared || p.second < p.groups) && 2 * d->stride_h % W_GROUP == 0 &&
        2 * d->stride_h / W_GROUP < p.stored)
        p.next = 2 * d->stride_h / W_GROUP;
    p.row_bytes = (ptrdiff_t)d->wd * d->channels;
    return p;
}

/* Columns of the image that n neighbouring columns of output look at. */
static int64_t columns_of(const qk_window_u8s8 *d, int32_t n) {
    return (int64_t)(n - 1) * d->stride_w + (int64_t)(d->kw - 1) * d->dilation_w + 1;
}

static void list_taps(const plan *p, part *t) {
    int32_t i = 0;
    for (int32_t set = 0; set < 2; set++)
        for (int32_t x = 0; x < p->d->kw; x++)
            for (int32_t k = 0; k < p->groups; k++)
                t->tap[i++] =
                    (int32_t)(x * (t->apart ? 1 : p->d->dilation_w) * t->column_bytes) + k * W_ALL;
}

/* Parts of about the same width, no more than `most` columns. */
static int32_t part_width(int32_t columns, int32_t most) {
    if (most >= columns)
        return columns;
    return most > 4 ? ((columns - 1) / ((columns + most - 1) / most) + 4) & ~3 : 4;
}

/* Dwords of a column of `pairs` pairs of rows. */
static int64_t stored_of(const plan *p, int32_t pairs) {
    return (int64_t)(pairs - 1) * p->next + p->stored;
}

/* How a part goes through scratch. */
QS_RARE static void lay_out(const plan *p, part *t) {
    const qk_window_u8s8 *d = p->d;
    const int64_t room = W_GOAL / W_ALL;
    int32_t most = 4;
    t->apart = columns_of(d, 4) > W_ROOM / W_ALL / p->stored;
    /* Where pairs of rows have half of their dwords in common, high parts beat wide ones. */
    const bool kept = !t->apart && 2 * p->next <= p->stored && d->rows > 2;
    const int32_t goal = kept ? 16 : W_PIXELS;
    while (!t->apart && most < t->q && most + 4 <= goal &&
           columns_of(d, most + 4) * p->stored <= room)
        most += 4;
    t->xs = part_width(t->q, most);
    t->columns = t->apart ? t->xs * d->kw : (int32_t)columns_of(d, t->xs);
    while (!t->apart && (kept || t->xs == t->q) && 2 * t->pairs < d->rows &&
           (t->pairs + 1) * t->xs <= W_PIXELS &&
           t->columns * (kept ? stored_of(p, t->pairs + 1) : (t->pairs + 1) * p->stored) <= room)
        t->pairs++;
    t->column_bytes = (ptrdiff_t)(kept ? stored_of(p, t->pairs) : p->stored) * W_ALL;
    t->pair_bytes = kept ? (ptrdiff_t)p->next * W_ALL : t->columns * t->column_bytes;
    list_taps(p, t);
}

/* ---- interleaving ---- */

/* Rows of the image in a group; what they are multiplied by is zero where there is none. */
typedef struct group {
    const uint8_t *row[W_GROUP];
} group;

#if W_GROUP == 4
INLINE void interleave(const w_vec *t, uint8_t *to) {
    const w_vec lo01 = W(unpacklo_epi8)(t[0], t[1]), hi01 = W(unpackhi_epi8)(t[0], t[1]);
    const w_vec lo23 = W(unpacklo_epi8)(t[2], t[3]), hi23 = W(unpackhi_epi8)(t[2], t[3]);
    w_store(to, W(unpacklo_epi16)(lo01, lo23));
    w_store(to + W_BYTES, W(unpackhi_epi16)(lo01, lo23));
    w_store(to + 2 * W_BYTES, W(unpacklo_epi16)(hi01, hi23));
    w_store(to + 3 * W_BYTES, W(unpackhi_epi16)(hi01, hi23));
}
#else
INLINE void interleave(const w_vec *t, uint8_t *to) {
    const w_vec lo = W(unpacklo_epi8)(t[0], t[1]), hi = W(unpackhi_epi8)(t[0], t[1]);
    const w_vec zero = _mm256_setzero_si256();
    w_store(to, W(unpacklo_epi8)(lo, zero));
    w_store(to + W_BYTES, W(unpackhi_epi8)(lo, zero));
    w_store(to + 2 * W_BYTES, W(unpacklo_epi8)(hi, zero));
    w_store(to + 3 * W_BYTES, W(unpackhi_epi8)(hi, zero));
}
#endif

/* n columns of the image, `step` bytes apart. */
QS_RARE TARGET static void interleave_columns(const group *g, ptrdiff_t at, ptrdiff_t step,
                                              int64_t n, uint8_t *to, ptrdiff_t to_step) {
    const group local = *g;
    for (; n > 0; n--, at += step, to += to_step) {
        w_vec t[W_GROUP];
        for (int32_t i = 0; i < W_GROUP; i++)
            t[i] = w_load(local.row[i] + at);
        interleave(t, to);
    }
}

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

/* The same columns of all ranges. */
QS_RARE TARGET static void interleave_ranges(const plan *p, const part *t, const group *g,
                                             int64_t x, int64_t step, int64_t n, uint8_t *to) {
    const ptrdiff_t apart = (ptrdiff_t)t->q * p->d->stride_w * p->d->channels;
    const group local = *g;
    const int32_t ranges = t->ranges;
    ptrdiff_t at = x * p->d->channels;
    for (; n > 0; n--, at += step * p->d->channels, to += t->column_bytes) {
        w_vec v[W_GROUP];
        for (int32_t i = 0; i < W_GROUP; i++) {
            const uint8_t *first = local.row[i] + at;
            const uint8_t *from[4] = {first, first + apart, first + 2 * apart, first + 3 * apart};
            v[i] = load_ranges(from, ranges);
        }
        interleave(v, to);
    }
}

/* A column that lies outside for some of the ranges. */
QS_RARE TARGET static void interleave_edge(const plan *p, const part *t, const group *g, int64_t x,
                                           uint8_t *to) {
    const qk_window_u8s8 *d = p->d;
    w_vec v[W_GROUP];
    for (int32_t i = 0; i < W_GROUP && t->ranges > 1; i++) {
        const uint8_t *from[4] = {d->zeros, d->zeros, d->zeros, d->zeros};
        for (int32_t r = 0; r < t->ranges; r++) {
            int64_t column = x + (int64_t)r * t->q * d->stride_w;
            bool inside = column >= 0 && column < d->wd;
            if (inside)
                from[r] = g->row[i] + column * d->channels;
        }
        v[i] = load_ranges(from, t->ranges);
    }
    for (int32_t i = 0; i < W_GROUP && t->ranges == 1; i++)
        v[i] = w_load(d->zeros);
    interleave(v, to);
}

/* n columns from x on, `step` columns apart. */
QS_RARE TARGET static void interleave_run(const plan *p, const part *t, const group *g, int64_t x,
                                          int64_t step, int32_t n, uint8_t *to) {
    const qk_window_u8s8 *d = p->d;
    int64_t last = x + (int64_t)(t->ranges - 1) * t->q * d->stride_w;
    int64_t before = x < 0 ? (-x + step - 1) / step : 0;
    int64_t inside = last < d->wd ? (d->wd - 1 - last) / step + 1 : 0;
    int64_t j = 0;
    for (; j < n && j < before; j++, x += step)
        interleave_edge(p, t, g, x, to + j * t->column_bytes);
    inside = (inside < n ? inside : n) - j;
    if (inside > 0) {
        uint8_t *first = to + j * t->column_bytes;
        if (t->ranges == 1)
            interleave_columns(g, x * d->channels, step * d->channels, inside, first,
                               t->column_bytes);
        else
            interleave_ranges(p, t, g, x, step, inside, first);
        j += inside;
        x += inside * step;
    }
    for (; j < n; j++, x += step)
        interleave_edge(p, t, g, x, to + j * t->column_bytes);
}

/* Row of the image, `dy` rows of the kernel below the first one that row y of output looks at. */
INLINE const uint8_t *row_at(const plan *p, int32_t y, int32_t dy) {
    const qk_window_u8s8 *d = p->d;
    int64_t at = d->top + (int64_t)y * d->stride_h + (int64_t)dy * d->dilation_h;
    return at < 0 || at >= d->h ? d->zeros : d->image + at * p->row_bytes;
}

/* Number i of the groups that rows of output y and y + 1 look at. */
INLINE group group_at(const plan *p, int32_t y, int32_t i, int32_t c) {
    bool own = !p->shared && p->second == p->groups && i >= p->groups;
    int32_t tap = W_GROUP * (own ? i - p->groups : i);
    group g;
    for (int32_t k = 0; k < W_GROUP; k++)
        g.row[k] = row_at(p, y + own, tap + k) + c;
    return g;
}

/* Everything that `pairs` pairs of rows from y on look at, from column x of output on. */
QS_RARE TARGET static void fill(const plan *p, const part *t, int32_t y, int32_t pairs, int32_t x,
                                int32_t c, uint8_t *scratch) {
    const qk_window_u8s8 *d = p->d;
    const bool kept = t->pair_bytes < t->column_bytes;
    for (int32_t i = 0; i < pairs; i++, scratch += t->pair_bytes)
        for (int32_t k = i > 0 && kept ? p->stored - p->next : 0; k < p->stored; k++) {
            group g = group_at(p, y + 2 * i, k, c);
            int64_t first = d->left + (int64_t)x * d->stride_w;
            uint8_t *to = scratch + k * W_ALL;
            if (!t->apart) {
                interleave_run(p, t, &g, first, 1, t->columns, to);
                continue;
            }
            for (int32_t j = 0; j < t->xs; j++, first += d->stride_w, to += d->kw * t->column_bytes)
                interleave_run(p, t, &g, first, d->dilation_w, d->kw, to);
        }
}

QS_RARE static void list_pixels(const plan *p, const part *t, int32_t y, int32_t pairs, int32_t x,
                                pixels *list) {
    const qk_window_u8s8 *d = p->d;
    int32_t n = t->q - x < t->xs ? t->q - x : t->xs, count = 0;
    int32_t column = t->apart ? d->kw : d->stride_w;
    for (int32_t i = 0; i < pairs; i++)
        for (int32_t j = 0; j < n; j++, count++) {
            list->at[count] = (int32_t)(i * t->pair_bytes + j * column * t->column_bytes);
            list->x[count] = x + j;
            list->y[count] = y + 2 * i;
            list->out[count][0] = ((ptrdiff_t)(y + 2 * i) * d->wo + x + j) * d->channels;
            /* Where there is no second row, its bytes go where the first one's follow. */
            list->out[count][1] = list->out[count][0] +
                                  (y + 2 * i + 1 < d->rows ? (ptrdiff_t)d->wo * d->channels : 0);
        }
    list->count = count;
    for (int32_t i = 0; i < 4; i++) {
        list->at[count + i] = list->at[count - 1];
        list->x[count + i] = list->x[count - 1];
        list->y[count + i] = list->y[count - 1];
        list->out[count + i][0] = list->out[count - 1][0];
        list->out[count + i][1] = list->out[count - 1][1];
    }
}

#endif
