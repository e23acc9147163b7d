/* SPDX-License-Identifier: MIT */
#include "op/signal/fourier.h"

/* cos t and sin t for t in [0, pi / 4], by their Taylor series. */
static qs_complex short_arc(double t) {
    const double z = t * t;
    double c = 1, s = 1;
    for (int i = 16; i > 0; i -= 2) {
        s = 1 - z * s / (i * (i + 1));
        c = 1 - z * c / (i * (i - 1));
    }
    return (qs_complex){c, t * s};
}

qs_complex qs_turn(size_t k, size_t n) {
    const uint64_t eighths = (uint64_t)k * 8, octant = eighths / n;
    const size_t rest = (size_t)(eighths % n), part = octant % 2 ? n - rest : rest;
    const qs_complex a = short_arc(0.78539816339744830962 * (qs_real(part) / qs_real(n)));
    switch (octant) {
    case 0: return a;
    case 1: return (qs_complex){a.im, a.re};
    case 2: return (qs_complex){-a.im, a.re};
    case 3: return (qs_complex){-a.re, a.im};
    case 4: return (qs_complex){-a.re, -a.im};
    case 5: return (qs_complex){-a.im, -a.re};
    case 6: return (qs_complex){a.im, -a.re};
    default: return (qs_complex){a.re, -a.im};
    }
}

static size_t least_factor(size_t n) {
    for (size_t f = 2; f <= n / f; f++)
        if (n % f == 0)
            return f;
    return n;
}

bool qs_fourier_make(qs_fourier *f, size_t n, qs_arena *arena) {
    qs_complex *turns = qs_arena_alloc(arena, n, sizeof(*turns));
    if (!turns)
        return false;
    for (size_t k = 0; k < n; k++)
        turns[k] = qs_turn(k, n);
    *f = (qs_fourier){n, 1, turns};
    for (size_t rest = n; rest > 1; rest /= f->terms)
        f->terms = least_factor(rest);
    return true;
}

/* Points, or a prime factor, long enough that a check for a stop costs little. */
#define LONG ((size_t)1024)

typedef struct job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const qs_fourier *f;
    qs_complex *terms; /* scratch memory */
    bool inverse;
} job;

/* Combines two: half a turn more is the factor's negative, to the bit. */
static void join_two(const job *j, qs_complex *y, size_t m) {
    const qs_complex *w = j->f->turns;
    const size_t stride = j->f->n / (2 * m);
    for (size_t k = 0; k < m; k++, w += stride) {
        const qs_complex a = y[k], b = y[m + k];
        const double im = j->inverse ? w->im : -w->im;
        const qs_complex t = {b.re * w->re - b.im * im, b.re * im + b.im * w->re};
        y[k] = (qs_complex){a.re + t.re, a.im + t.im};
        y[m + k] = (qs_complex){a.re - t.re, a.im - t.im};
    }
}

/* Combines `factor` consecutive transforms of length m in y into one. */
static void join(const job *j, qs_complex *y, size_t factor, size_t m) {
    const qs_fourier *f = j->f;
    qs_complex *terms = j->terms;
    const size_t stride = f->n / (factor * m);
    for (size_t k = 0; k < m; k++) {
        for (size_t r = 0; r < factor; r++)
            terms[r] = y[r * m + k];
        for (size_t q = 0; q < factor && !(factor > LONG && qs_stopped(j->ctx)); q++) {
            const size_t turn = (q * m + k) * stride;
            qs_complex sum = terms[0];
            for (size_t r = 1, at = turn; r < factor && !qs_stopped_at(j->ctx, r); r++) {
                const qs_complex x = terms[r], w = f->turns[at];
                const double im = j->inverse ? w.im : -w.im;
                sum.re += x.re * w.re - x.im * im;
                sum.im += x.re * im + x.im * w.re;
                at = at >= f->n - turn ? at - (f->n - turn) : at + turn;
            }
            y[q * m + k] = sum;
        }
    }
}

/* Transforms every `step`-th number, n of them; recursion is as deep as n has prime factors. */
static void transform(const job *j, const qs_complex *x, size_t step, size_t n, qs_complex *y) {
    if (n == 1) {
        *y = *x;
        return;
    }
    if (n > LONG && qs_stopped(j->ctx))
        return;
    const size_t factor = least_factor(n), m = n / factor;
    for (size_t r = 0; r < factor; r++)
        transform(j, x + r * step, step * factor, m, y + r * m);
    if (factor == 2)
        join_two(j, y, m);
    else
        join(j, y, factor, m);
}

void qs_fourier_run(const qsim_ctx *ctx, const qs_fourier *f, const qs_complex *x, qs_complex *y,
                    qs_complex *terms, bool inverse) {
    const job j = {ctx, f, terms, inverse};
    transform(&j, x, 1, f->n, y);
}
