/* SPDX-License-Identifier: MIT */
/*
 * A template of averages of u8, instantiated once for each vector width. It follows
 * kernel/pool_tile.h and the macros of that; before including it, define
 *
 *   FLOATS          the vector of floats beside VEC
 *   W(f)            intrinsic f of that width
 *   ZERO            a vector of zeros
 *   LOAD_HALF(p)    loads the bytes which, widened to words, fill a vector
 *   IN_ORDER(v)     the first 8 bytes of all lanes, then the second 8
 */

/*
 * Sums of LANES channels in the order of the unpack instructions: of the 16 channels of a lane,
 * v[0] has the first four, v[1] the next, and so on.
 */
typedef struct sums {
    VEC v[4];
} sums;

typedef struct average {
    FLOATS m, lo, hi;
    VEC bias, zero;
} average;

INLINE VEC words(const uint8_t *x) {
    return W(cvtepu8_epi16)(LOAD_HALF(x));
}

INLINE void add_tap(const uint8_t *x, VEC *a, VEC *b, bool wide) {
    *a = W(add_epi16)(*a, words(x));
    if (wide)
        *b = W(add_epi16)(*b, words(x + LANES / 2));
}

/* Adds a row of taps; `wide`: more than LANES / 2 channels remain. */
INLINE const uint8_t *add_row(const uint8_t *v, size_t count, ptrdiff_t step, VEC *a, VEC *b,
                              bool wide) {
    for (size_t pairs = count / 2; pairs > 0; pairs--, v += 2 * step) {
        add_tap(v, a, b, wide);
        add_tap(v + step, a, b, wide);
    }
    if (count & 1) {
        add_tap(v, a, b, wide);
        v += step;
    }
    return v;
}

INLINE void add_words(sums *s, VEC a, VEC b) {
    const VEC none = ZERO;
    s->v[0] = W(add_epi32)(s->v[0], W(unpacklo_epi16)(a, none));
    s->v[1] = W(add_epi32)(s->v[1], W(unpackhi_epi16)(a, none));
    s->v[2] = W(add_epi32)(s->v[2], W(unpacklo_epi16)(b, none));
    s->v[3] = W(add_epi32)(s->v[3], W(unpackhi_epi16)(b, none));
}

/* Adds a row of more taps than 16 bits can sum, in runs that they can. */
INLINE void add_runs(const uint8_t *v, size_t count, ptrdiff_t step, sums *s, bool wide) {
    for (size_t n; count > 0; count -= n) {
        VEC a = ZERO, b = a;
        n = count < QK_POOL_WORD_TAPS ? count : QK_POOL_WORD_TAPS;
        v = add_row(v, n, step, &a, &b, wide);
        add_words(s, a, b);
    }
}

TARGET __attribute__((noinline)) static void add_many(const qk_pool *p, const uint8_t *line,
                                                      size_t count, sums *s, bool wide) {
    const ptrdiff_t step = (ptrdiff_t)(p->dw * p->channels);
    sums t = *s;
    for (size_t rows = p->kh; rows > 0; rows--, line += p->row_step) {
        if (wide)
            add_runs(line, count, step, &t, true);
        else
            add_runs(line, count, step, &t, false);
    }
    *s = t;
}

INLINE sums sum_u8(const qk_pool *p, const uint8_t *line, size_t count, VEC bias, bool wide) {
    const ptrdiff_t step = (ptrdiff_t)(p->dw * p->channels);
    sums s = {{bias, bias, bias, bias}};
    size_t rows = p->kh;
    if (rows * count > QK_POOL_WORD_TAPS) {
        sums many = s;
        add_many(p, line, count, &many, wide);
        return many;
    }
    VEC a = ZERO, b = a;
    if (p->row_step == (ptrdiff_t)count * step) { /* window of whole rows */
        count *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, line += p->row_step)
        add_row(line, count, step, &a, &b, wide);
    add_words(&s, a, b);
    return s;
}

INLINE VEC rounded(VEC sum, const average *t) {
    const FLOATS v = W(mul_ps)(W(cvtepi32_ps)(sum), t->m);
    return W(add_epi32)(W(cvtps_epi32)(W(min_ps)(W(max_ps)(v, t->lo), t->hi)), t->zero);
}

INLINE VEC averages(const qk_pool *p, const uint8_t *line, size_t count, const average *t,
                    bool wide) {
    const sums s = sum_u8(p, line, count, t->bias, wide);
    const VEC low = W(packs_epi32)(rounded(s.v[0], t), rounded(s.v[1], t));
    if (!wide)
        return IN_ORDER(W(packus_epi16)(low, low));
    const VEC high = W(packs_epi32)(rounded(s.v[2], t), rounded(s.v[3], t));
    return IN_ORDER(W(packus_epi16)(low, high));
}

TARGET static void average_u8(const qk_pool *p) {
    const ptrdiff_t channels = (ptrdiff_t)p->channels;
    average t = {.lo = W(set1_ps)((float)(p->lo - p->y_zero)),
                 .hi = W(set1_ps)((float)(p->hi - p->y_zero)),
                 .zero = W(set1_epi32)(p->y_zero)};
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const uint8_t *const line = (const uint8_t *)p->x + w.first * channels;
        t.m = W(set1_ps)(qk_average_multiplier(p, &w));
        t.bias = W(set1_epi32)(-p->x_zero * (int32_t)(p->kh * w.count));
        for (ptrdiff_t j = 0; j < channels; j += LANES) {
            const size_t last = (size_t)(channels - j);
            const VEC bytes = last > LANES / 2 ? averages(p, line + j, w.count, &t, true)
                                               : averages(p, line + j, w.count, &t, false);
            STORE_FIRST(y + j, bytes, last < LANES ? last : LANES);
        }
    }
}
