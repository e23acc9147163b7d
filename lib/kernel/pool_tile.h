/* SPDX-License-Identifier: MIT */
/*
 * A template of pooling for one type of element and vector; macros, since type, start, join and end
 * differ from use to use. Before including it, define TARGET, VEC, LANES, LOAD, STORE_FIRST as for
 * f32_tile.h, PICK(v, i), which moves dword i[k] of v to place k, PICK_LOAD(i), PICK_MOST, the most
 * dwords of a pixel for it, and PICK_STORE(p, v, n) if picked elements have a shorter store. POOL's
 * last argument is the pragma of the loop over the taps of any window: sums are faster without
 * unrolling.
 *
 * Windows wholly inside the image have all their columns. With stride 1 all their outputs are one
 * run of elements; with stride 2 and few channels a vector of such a run is computed and every
 * other pixel picked out of it. Each output takes its taps in the order of the window.
 */
#ifndef QK_POOL_TILE_H
#define QK_POOL_TILE_H

#include <assert.h>

#include "kernel/pool_window.h"

/*
 * The dwords of every other pixel of 1…5 dwords, and the number of such pixels in 16 dwords; half
 * of it in 8 dwords, for pixels of up to 2.
 */
extern const int32_t qk_pick_even[5][16]; /* table.c */
static const uint8_t pick_count[5] = {8, 4, 3, 2, 2};
_Static_assert(PICK_MOST <= QS_COUNT(pick_count), "an order for every size of pixel");

#ifndef PICK_STORE
#define PICK_STORE STORE_FIRST
#endif

#define INLINE TARGET __attribute__((always_inline)) static inline

#define POOL_JOIN(name, T, START, JOIN)                                                            \
    INLINE VEC name##_join(const T *line, ptrdiff_t row_step, ptrdiff_t step, size_t kh,           \
                           size_t kw) {                                                            \
        VEC m = START;                                                                             \
        _Pragma("GCC unroll 3") /* also for size */                                                \
            for (size_t ky = 0; ky < kh; ky++, line += row_step) {                                 \
            const T *v = line;                                                                     \
            __asm__("" : "+r"(v)); /* one pointer, not one for each tap */                         \
            if (__builtin_constant_p(kw) && (kw == 2 || kw == 3)) { /* also for size */            \
                m = JOIN(LOAD(v), m);                                                              \
                m = JOIN(LOAD(v + step), m);                                                       \
                if (kw == 3)                                                                       \
                    m = JOIN(LOAD(v + 2 * step), m);                                               \
            } else {                                                                               \
                for (size_t kx = 0; kx < kw; kx++, v += step)                                      \
                    m = JOIN(LOAD(v), m);                                                          \
            }                                                                                      \
        }                                                                                          \
        return m;                                                                                  \
    }

/*
 * `run` neighbouring outputs of windows of any size: four vectors at a time, so that joins do not
 * wait for each other, and a cache line is read at once where pixels lie a page apart.
 */
#define POOL_SPAN(name, T, START, JOIN, FINISH, TAPS)                                              \
    INLINE void name##_four(const T *line, ptrdiff_t row_step, ptrdiff_t step, size_t kh,          \
                            size_t kw, size_t divisor, T *y) {                                     \
        VEC m0 = START, m1 = m0, m2 = m0, m3 = m0;                                                 \
        (void)divisor;                                                                             \
        for (size_t ky = 0; ky < kh; ky++, line += row_step) {                                     \
            const T *v = line;                                                                     \
            _Pragma(TAPS) for (size_t kx = 0; kx < kw; kx++, v += step) {                          \
                m0 = JOIN(LOAD(v), m0);                                                            \
                m1 = JOIN(LOAD(v + LANES), m1);                                                    \
                m2 = JOIN(LOAD(v + 2 * LANES), m2);                                                \
                m3 = JOIN(LOAD(v + 3 * LANES), m3);                                                \
            }                                                                                      \
        }                                                                                          \
        STORE_FIRST(y, FINISH(m0, divisor), LANES);                                                \
        STORE_FIRST(y + LANES, FINISH(m1, divisor), LANES);                                        \
        STORE_FIRST(y + 2 * LANES, FINISH(m2, divisor), LANES);                                    \
        STORE_FIRST(y + 3 * LANES, FINISH(m3, divisor), LANES);                                    \
    }                                                                                              \
    TARGET __attribute__((noinline)) static void name##_span(const T *x, ptrdiff_t row_step,       \
                                                             ptrdiff_t step, size_t kh, size_t kw, \
                                                             size_t divisor, T *y, size_t run) {   \
        for (; run >= 4 * LANES; run -= 4 * LANES, x += 4 * LANES, y += 4 * LANES)                 \
            name##_four(x, row_step, step, kh, kw, divisor, y);                                    \
        for (; run > 0; x += LANES, y += LANES) {                                                  \
            const size_t count = run < LANES ? run : LANES;                                        \
            STORE_FIRST(y, FINISH(name##_join(x, row_step, step, kh, kw), divisor), count);        \
            run -= count;                                                                          \
        }                                                                                          \
    }

/* Outputs [ox, end), each from the window columns inside the image. */
#define POOL_BORDER(name, T)                                                                       \
    TARGET static void name##_border(const qk_pool *p, size_t ox, size_t end) {                    \
        const ptrdiff_t channels = (ptrdiff_t)p->channels, step = (ptrdiff_t)p->dw * channels;     \
        for (; ox < end; ox++) {                                                                   \
            const qk_window w = qk_window_at(p, ox);                                               \
            const T *x = (const T *)p->x + w.first * channels;                                     \
            T *y = (T *)p->y + ox * p->y_step;                                                     \
            for (size_t i = p->lines; i > 0; i--, x += p->line_step, y += p->out_line)             \
                name##_span(x, p->row_step, step, p->kh, w.count, w.divisor, y, p->channels);      \
        }                                                                                          \
    }

/* Outputs with windows wholly inside, of one line and of all. Constant kh and kw unroll loops. */
#define POOL_INSIDE(name, T, FINISH)                                                               \
    INLINE void name##_line(const qk_pool *p, const T *x, T *y, size_t kh, size_t kw,              \
                            size_t divisor) {                                                      \
        const size_t c = p->channels, words = c * sizeof(T) / 4, y_step = p->y_step;               \
        const ptrdiff_t step = (ptrdiff_t)(p->dw * c), row_step = p->row_step;                     \
        const size_t next = p->sw * c;                                                             \
        size_t n = p->inside_end - p->inside;                                                      \
        (void)divisor;                                                                             \
        if (p->sw == 2 && y_step == c && words <= PICK_MOST && c * sizeof(T) % 4 == 0) {           \
            const size_t most = pick_count[words - 1] * sizeof(VEC) / 64 * c;                      \
            const PICK_INDEX even = PICK_LOAD(qk_pick_even[words - 1]);                            \
            for (size_t left = n * c, count; left > 0; left -= count, x += 2 * most, y += most) {  \
                count = left < most ? left : most;                                                 \
                const VEC v = name##_join(x, row_step, step, kh, kw);                              \
                PICK_STORE(y, PICK(FINISH(v, divisor), even), count);                              \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        const size_t run = qk_pool_run(p, &n);                                                     \
        if (run <= LANES) {                                                                        \
            for (; n > 0; n--, x += next, y += y_step)                                             \
                STORE_FIRST(y, FINISH(name##_join(x, row_step, step, kh, kw), divisor), run);      \
            return;                                                                                \
        }                                                                                          \
        for (; n > 0; n--, x += next, y += y_step) {                                               \
            size_t j = 0;                                                                          \
            for (; j + LANES < run; j += LANES)                                                    \
                STORE_FIRST(y + j, FINISH(name##_join(x + j, row_step, step, kh, kw), divisor),    \
                            LANES);                                                                \
            STORE_FIRST(y + j, FINISH(name##_join(x + j, row_step, step, kh, kw), divisor),        \
                        run - j);                                                                  \
        }                                                                                          \
    }                                                                                              \
    INLINE void name##_inside(const qk_pool *p, size_t kh, size_t kw) {                            \
        const size_t divisor = qk_window_at(p, p->inside).divisor;                                 \
        const T *x = (const T *)p->x + qk_pool_first(p);                                           \
        T *y = (T *)p->y + p->inside * p->y_step;                                                  \
        for (size_t i = p->lines; i > 0; i--, x += p->line_step, y += p->out_line)                 \
            name##_line(p, x, y, kh, kw, divisor);                                                 \
    }

#define POOL_ANY(name, T)                                                                          \
    TARGET static void name##_any(const qk_pool *p) {                                              \
        const size_t divisor = qk_window_at(p, p->inside).divisor;                                 \
        const T *x = (const T *)p->x + qk_pool_first(p);                                           \
        T *y = (T *)p->y + p->inside * p->y_step;                                                  \
        size_t n = p->inside_end - p->inside;                                                      \
        const size_t run = qk_pool_run(p, &n);                                                     \
        const size_t next = p->sw * p->channels;                                                   \
        for (size_t i = p->lines; i > 0; i--, x += p->line_step, y += p->out_line)                 \
            for (size_t k = 0; k < n; k++)                                                         \
                name##_span(x + k * next, p->row_step, (ptrdiff_t)(p->dw * p->channels), p->kh,    \
                            p->kw, divisor, y + k * p->y_step, run);                               \
    }

#define POOL_SIZE(name, size, kh, kw)                                                              \
    TARGET __attribute__((noinline)) static void name##size(const qk_pool *p) {                    \
        name##_inside(p, kh, kw);                                                                  \
    }

#define POOL(name, T, START, JOIN, FINISH, TAPS)                                                   \
    POOL_JOIN(name, T, START, JOIN)                                                                \
    POOL_SPAN(name, T, START, JOIN, FINISH, TAPS)                                                  \
    POOL_BORDER(name, T)                                                                           \
    POOL_INSIDE(name, T, FINISH)                                                                   \
    POOL_SIZE(name, _2x2, 2, 2)                                                                    \
    POOL_SIZE(name, _3x3, 3, 3)                                                                    \
    POOL_ANY(name, T)                                                                              \
    POOL_RUN(name, name##_2x2(p), name##_3x3(p))

/* Windows of any size by the same loops. */
#define POOL_OF_ANY_SIZE(name, T, START, JOIN, FINISH, TAPS)                                       \
    POOL_JOIN(name, T, START, JOIN)                                                                \
    POOL_SPAN(name, T, START, JOIN, FINISH, TAPS)                                                  \
    POOL_BORDER(name, T)                                                                           \
    POOL_ANY(name, T)                                                                              \
    POOL_RUN(name, name##_any(p), name##_any(p))

/* The kernel: by_two and by_three compute windows of 2x2 and 3x3 that are wholly inside. */
#define POOL_RUN(name, by_two, by_three)                                                           \
    static void name(const qk_pool *p) {                                                           \
        assert(qk_pool_valid(p));                                                                  \
        if (p->inside > 0)                                                                         \
            name##_border(p, 0, p->inside);                                                        \
        if (p->inside == p->inside_end)                                                            \
            ;                                                                                      \
        else if (p->kh == 2 && p->kw == 2)                                                         \
            by_two;                                                                                \
        else if (p->kh == 3 && p->kw == 3)                                                         \
            by_three;                                                                              \
        else                                                                                       \
            name##_any(p);                                                                         \
        if (p->inside_end < p->ow)                                                                 \
            name##_border(p, p->inside_end, p->ow);                                                \
    }

#endif
