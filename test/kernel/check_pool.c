/* SPDX-License-Identifier: MIT */
/* Pools against their definition, bit for bit. */
#include "checkkernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/pool_window.h"

static size_t size_between(ck_state *s, int32_t least, int32_t greatest) {
    return (size_t)ck_between(s, least, greatest);
}

typedef struct pool {
    qk_pool p;
    void (*run)(const qk_pool *p);
} pool;

/* Taps of one output, by the definition. */
typedef struct taps {
    size_t at[400], inside, counted;
} taps;

static taps taps_of(const qk_pool *p, size_t ox) {
    taps t = {.inside = 0};
    for (size_t i = 0; i < p->kh * p->kw; i++) {
        const ptrdiff_t column = (ptrdiff_t)(ox * p->sw) - p->left + (ptrdiff_t)(i % p->kw * p->dw);
        if (column < 0 || column >= (ptrdiff_t)p->width)
            continue;
        t.at[t.inside++] =
            (size_t)((ptrdiff_t)(i / p->kw) * p->row_step) + (size_t)column * p->channels;
    }
    for (size_t i = 0; i < p->kw; i++) {
        const ptrdiff_t column = (ptrdiff_t)(ox * p->sw) - p->left + (ptrdiff_t)(i * p->dw);
        const ptrdiff_t end = (ptrdiff_t)p->width + (p->count_pads ? p->right : 0);
        t.counted += (column >= 0 || p->count_pads) && column < end;
    }
    t.counted *= p->count_rows;
    return t;
}

/* For vectors of several pixels: no dilation, few channels. */
static void usual_pool(ck_state *s, qk_pool *p) {
    static const size_t channels[] = {1, 2, 3, 4, 5, 8, 12, 16, 20, 24, 32, 64, 96};
    p->kh = p->kw = size_between(s, 2, 3);
    p->dw = 1;
    p->sw = size_between(s, 1, 2);
    p->left = ck_between(s, 0, 1);
    p->width = size_between(s, 3, 40);
    p->ow = (p->width + (size_t)p->left - p->kw) / p->sw + size_between(s, 0, 2);
    p->ow += p->ow == 0;
    p->channels = channels[size_between(s, 0, QS_COUNT(channels) - 1)];
}

/* Adds special values: of equal zeros a maximum keeps the first, NaNs never win. */
static void strew_specials(ck_state *s, float *x, size_t n) {
    static const float special[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, -0.0f, 0.0f, -2.0f};
    if (ck_between(s, 0, 3))
        return;
    for (size_t i = 0; i < n; i++)
        if (ck_between(s, 0, 3))
            x[i] = special[size_between(s, 0, QS_COUNT(special) - 1)];
}

/* One window is the whole image; sums of white ones are near the end of 16 bits. */
static void whole_pool(ck_state *s, qk_pool *p) {
    p->kh = size_between(s, 14, 18);
    p->kw = p->width = size_between(s, 14, 18);
    p->dw = p->sw = p->ow = 1;
    p->left = p->right = 0;
}

static void random_pool(ck_state *s, qk_pool *p, size_t element, bool average) {
    p->kh = size_between(s, 1, 4);
    p->kw = size_between(s, 1, 5);
    p->dw = size_between(s, 1, 3);
    p->sw = size_between(s, 1, 3);
    p->left = ck_between(s, 0, 4);
    p->right = ck_between(s, 0, 4);
    p->width = size_between(s, 1, 12);
    p->ow = size_between(s, 1, 6);
    p->channels = size_between(s, 1, 100);
    if (ck_between(s, 0, 2))
        usual_pool(s, p);
    const bool whole = ck_between(s, 0, 9) == 0;
    if (whole)
        whole_pool(s, p);
    p->row_step = (ptrdiff_t)(p->width * p->channels);
    p->y_step = p->channels + (ck_between(s, 0, 2) ? 0 : size_between(s, 1, 40));
    p->count_pads = ck_between(s, 0, 1);
    p->count_rows = p->kh + (p->count_pads ? size_between(s, 0, 2) : 0);
    p->x_scale = ck_real(s, 0.01f, 1.0f);
    p->y_scale = ck_real(s, 0.01f, 1.0f);
    p->x_zero = ck_between(s, 0, 255);
    p->y_zero = ck_between(s, 0, 255);
    p->lo = ck_between(s, 0, 90);
    p->hi = ck_between(s, 100, 255);
    if (ck_between(s, 0, 7)) /* leaving it out is valid, too */
        qk_pool_set_inside(p);
    p->lines = average ? 1 : size_between(s, 1, 3);
    p->line_step = ck_between(s, 0, 2) * p->row_step;
    p->out_line = (ptrdiff_t)(p->ow * p->y_step);
    const size_t down = (p->lines - 1) * (size_t)p->line_step;
    const size_t n = p->kh * p->width * p->channels + down;
    void *x = element == 1 ? ck_input(s, n) : ck_floats(s, n, -3.0f, 3.0f);
    if (whole && element == 1)
        memset(x, 255, n);
    if (element == 4 && !average)
        strew_specials(s, x, n);
    p->x = x;
}

static float pool_float(const float *x, const taps *t, size_t j, bool average) {
    float max = -INFINITY, sum = 0.0f;
    for (size_t i = 0; i < t->inside; i++) {
        const float v = x[t->at[i] + j];
        max = v > max ? v : max;
        sum += v;
    }
    return average ? sum / (float)(t->counted ? t->counted : 1) : max;
}

static uint8_t pool_u8(const qk_pool *p, const uint8_t *x, const taps *t, size_t j, bool average) {
    int32_t max = 0, sum = 0;
    for (size_t i = 0; i < t->inside; i++) {
        const int32_t v = x[t->at[i] + j];
        max = v > max ? v : max;
        sum += v - p->x_zero;
    }
    if (!average)
        return (uint8_t)max;
    const float m = p->x_scale / (p->y_scale * (float)(t->counted ? t->counted : 1));
    const float v = (float)sum * m;
    return (uint8_t)((int32_t)nearbyintf(
                         fminf(fmaxf(v, (float)(p->lo - p->y_zero)), (float)(p->hi - p->y_zero))) +
                     p->y_zero);
}

static void check_pool(ck_state *s, void (*run)(const qk_pool *p), size_t element, bool average) {
    qk_pool p = {.x = NULL};
    random_pool(s, &p, element, average);
    const size_t n = (p.lines * p.ow - 1) * p.y_step + p.channels;
    void *expected = ck_output(s, n * element);
    p.y = ck_output(s, n * element);
    memset(expected, 0x5a, n * element);
    memset(p.y, 0x5a, n * element);
    for (size_t i = 0; i < n; i++) {
        const size_t j = i % p.y_step;
        const taps t = taps_of(&p, i / p.y_step % p.ow);
        const size_t first = i / p.y_step / p.ow * (size_t)p.line_step;
        if (j >= p.channels) /* other channels stay unchanged */
            continue;
        if (element == 1)
            ((uint8_t *)expected)[i] = pool_u8(&p, (const uint8_t *)p.x + first, &t, j, average);
        else
            ((float *)expected)[i] = pool_float((const float *)p.x + first, &t, j, average);
    }
    run(&p);
    char text[128];
    snprintf(text, sizeof(text),
             "%zu rows, %zux%zu / %zu, dilation %zu, padding %d, width %zu, %zu of %zu channels",
             p.lines, p.kh, p.kw, p.sw, p.dw, (int)p.left, p.width, p.channels, p.y_step);
    ck_same(s, expected, p.y, n * element, text);
}

static void check_max_f32(ck_state *s) {
    check_pool(s, s->t->f32->max_f32, 4, false);
}
static void check_average_f32(ck_state *s) {
    check_pool(s, s->t->f32->average_f32, 4, true);
}
static void check_max_u8(ck_state *s) {
    check_pool(s, s->t->f32->max_u8, 1, false);
}
static void check_average_u8(ck_state *s) {
    check_pool(s, s->t->f32->average_u8, 1, true);
}

static void call_pool(void *arg) {
    const pool *p = arg;
    p->run(&p->p);
}

static void bench_pool(ck_state *s, void (*run)(const qk_pool *p), size_t element, const char *text,
                       size_t k, size_t stride, size_t ow, size_t channels) {
    pool b = {.run = run};
    const size_t width = (ow - 1) * stride + k;
    b.p = (qk_pool){.row_step = (ptrdiff_t)(width * channels),
                    .kh = k,
                    .kw = k,
                    .dw = 1,
                    .sw = stride,
                    .width = width,
                    .ow = ow,
                    .channels = channels,
                    .y_step = channels,
                    .lines = 1,
                    .count_rows = k,
                    .x_scale = 1.0f,
                    .y_scale = 1.0f,
                    .hi = 255};
    b.p.x = element == 1 ? ck_input(s, k * width * channels)
                         : ck_floats(s, k * width * channels, -1.0f, 1.0f);
    b.p.y = ck_output(s, ow * channels * element);
    qk_pool_set_inside(&b.p);
    ck_time(s, text, 0, (double)(k * width * channels * element), call_pool, &b);
}

static void bench_max_f32(ck_state *s) {
    bench_pool(s, s->t->f32->max_f32, 4, "2x2 / 2, row of 12 x 8", 2, 2, 12, 8);
    bench_pool(s, s->t->f32->max_f32, 4, "3x3 / 2, row of 56 x 64", 3, 2, 56, 64);
    bench_pool(s, s->t->f32->max_f32, 4, "5x5 / 1, row of 20 x 128", 5, 1, 20, 128);
}
static void bench_max_u8(ck_state *s) {
    bench_pool(s, s->t->f32->max_u8, 1, "2x2 / 2, row of 12 x 8", 2, 2, 12, 8);
    bench_pool(s, s->t->f32->max_u8, 1, "3x3 / 2, row of 56 x 24", 3, 2, 56, 24);
    bench_pool(s, s->t->f32->max_u8, 1, "3x3 / 2, row of 56 x 64", 3, 2, 56, 64);
    bench_pool(s, s->t->f32->max_u8, 1, "5x5 / 1, row of 20 x 128", 5, 1, 20, 128);
}
static void bench_average_f32(ck_state *s) {
    bench_pool(s, s->t->f32->average_f32, 4, "7x7 x 1024", 7, 1, 1, 1024);
}
static void bench_average_u8(ck_state *s) {
    bench_pool(s, s->t->f32->average_u8, 1, "7x7 x 1024", 7, 1, 1, 1024);
    bench_pool(s, s->t->f32->average_u8, 1, "7x7 x 64", 7, 1, 1, 64);
    bench_pool(s, s->t->f32->average_u8, 1, "4x4 x 16", 4, 1, 1, 16);
}

const ck_case ck_cases_pool[] = {
    {"max-f32", check_max_f32, bench_max_f32},
    {"average-f32", check_average_f32, bench_average_f32},
    {"max-u8", check_max_u8, bench_max_u8},
    {"average-u8", check_average_u8, bench_average_u8},
};
const size_t ck_cases_pool_count = QS_COUNT(ck_cases_pool);
