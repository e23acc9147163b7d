/* SPDX-License-Identifier: MIT */
/* What saturation changes in sums of two products, beside loops that follow the definition. */
#include "test.h"

#include "qsim/saturation.h"

#include <string.h>

enum { CODES = 4096, WEIGHTS = 4096, RESULTS = 8192 };

static uint8_t codes[CODES];
static int8_t weights[WEIGHTS];
static float results[RESULTS];
static int32_t integers[RESULTS];

static int64_t between(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(test_random(state) % (uint64_t)(high - low + 1));
}

/* Large codes and weights, so that some sums saturate. */
static void fill(uint64_t *state) {
    for (int i = 0; i < CODES; i++)
        codes[i] = (uint8_t)between(state, 0, 3) ? (uint8_t)between(state, 100, 255) : 0;
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = (int8_t)between(state, -128, 127);
    memset(results, 0, sizeof(results));
    memset(integers, 0, sizeof(integers));
}

static int32_t cut(int32_t sum) {
    return sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum;
}

/* The change of one element: codes and weights in the order of the window, two by two. */
static int32_t changed(const int32_t *x, const int32_t *w, int64_t count, uint64_t *saturated) {
    int32_t change = 0;
    for (int64_t i = 0; i + 1 < count; i += 2) {
        const int32_t sum = x[i] * w[i] + x[i + 1] * w[i + 1];
        change += cut(sum) - sum;
        *saturated += cut(sum) != sum;
    }
    return change;
}

typedef struct shape {
    int64_t n, groups, channels, columns, h, w, kh, kw, sh, sw, dh, dw, ph, pw, oh, ow;
} shape;

static shape draw(uint64_t *s) {
    shape c = {.n = between(s, 1, 2), .groups = between(s, 1, 3), .channels = between(s, 1, 5)};
    c.columns = c.groups * between(s, 1, 4);
    c.h = between(s, 3, 7), c.w = between(s, 3, 7);
    c.kh = between(s, 1, 3), c.kw = between(s, 1, 3);
    c.sh = between(s, 1, 2), c.sw = between(s, 1, 2);
    c.dh = c.h >= 5 ? between(s, 1, 2) : 1, c.dw = c.w >= 5 ? between(s, 1, 2) : 1;
    c.ph = between(s, 0, 1), c.pw = between(s, 0, 1);
    c.oh = (c.h + 2 * c.ph - (c.kh - 1) * c.dh - 1) / c.sh + 1;
    c.ow = (c.w + 2 * c.pw - (c.kw - 1) * c.dw - 1) / c.sw + 1;
    return c;
}

static saturation_layer layer_of(const shape *c, bool is_signed, const float *scales) {
    return (saturation_layer){.zero = 7,
                              .is_signed = is_signed,
                              .scale = 0.5f,
                              .scales = scales,
                              .scale_count = (size_t)c->columns,
                              .weights = weights,
                              .columns = c->columns,
                              .channels = c->channels,
                              .groups = c->groups,
                              .taps = c->kh * c->kw,
                              .axes = 2,
                              .kernel = {c->kh, c->kw},
                              .stride = {c->sh, c->sw},
                              .dilation = {c->dh, c->dw},
                              .pad = {c->ph, c->pw}};
}

/* The change of element (y, x) of a column: kernel positions first, channels last. */
static int32_t at(const shape *c, const saturation_layer *l, int64_t n, int64_t column, int64_t y,
                  int64_t x, uint64_t *saturated) {
    int32_t a[64], w[64];
    int64_t count = 0;
    const int64_t group = column / (c->columns / c->groups);
    for (int64_t i = 0; i < c->kh; i++)
        for (int64_t j = 0; j < c->kw; j++)
            for (int64_t k = 0; k < c->channels; k++, count++) {
                const int64_t r = y * c->sh + i * c->dh - c->ph, q = x * c->sw + j * c->dw - c->pw;
                const bool inside = r >= 0 && r < c->h && q >= 0 && q < c->w;
                const int64_t plane = (n * c->groups + group) * c->channels + k;
                const int32_t code = inside ? codes[(plane * c->h + r) * c->w + q] : 0;
                a[count] = !inside ? l->zero : l->is_signed ? (int8_t)code + 128 : code;
                w[count] = weights[((column * c->channels + k) * c->kh + i) * c->kw + j];
            }
    return changed(a, w, count, saturated);
}

static void test_images(void) {
    uint64_t state = 5;
    int saturating = 0;
    for (int i = 0; i < 200; i++) {
        const shape c = draw(&state);
        float scales[16];
        for (int k = 0; k < 16; k++)
            scales[k] = (float)(k + 1);
        fill(&state);
        saturation_layer l = layer_of(&c, i % 2, scales);
        const int64_t in[] = {c.n, c.groups * c.channels, c.h, c.w},
                      out[] = {c.n, c.columns, c.oh, c.ow};
        const int64_t all = c.n * c.columns * c.oh * c.ow;
        qsim_tensor x = {QSIM_UINT8, 4, in, codes, (size_t)(in[0] * in[1] * in[2] * in[3])},
                    y = {QSIM_FLOAT, 4, out, results, (size_t)all * 4};
        saturation_add(&l, &x, &y, NULL);
        uint64_t saturated = 0;
        for (int64_t e = 0; e < all; e++) {
            const int64_t column = e / (c.oh * c.ow) % c.columns;
            const int32_t change = at(&c, &l, e / (c.columns * c.oh * c.ow), column,
                                      e / c.ow % c.oh, e % c.ow, &saturated);
            CHECK(results[e] == (float)(change * 0.5 * (double)(column + 1)));
        }
        CHECK_INT(l.saturated, saturated);
        CHECK_INT(l.sums, (uint64_t)all * (uint64_t)((l.channels * l.taps + 1) / 2));
        saturating += saturated > 0;
        free(l.pairs);
    }
    CHECK(saturating > 100);
}

/* Weights by rows or by columns; results in int32. */
static void test_matrices(void) {
    enum { ROWS = 5, DEPTH = 11, COLUMNS = 6 };
    uint64_t state = 9;
    for (int by_row = 0; by_row < 2; by_row++) {
        fill(&state);
        saturation_layer l = {.scale = 1,
                              .weights = weights,
                              .by_row = by_row,
                              .columns = COLUMNS,
                              .channels = DEPTH,
                              .groups = 1,
                              .taps = 1};
        const int64_t in[] = {ROWS, DEPTH}, out[] = {ROWS, COLUMNS};
        qsim_tensor x = {QSIM_UINT8, 2, in, codes, ROWS * DEPTH},
                    y = {QSIM_INT32, 2, out, integers, ROWS * COLUMNS * 4};
        saturation_add(&l, &x, &y, NULL);
        uint64_t saturated = 0;
        for (int i = 0; i < ROWS; i++)
            for (int m = 0; m < COLUMNS; m++) {
                int32_t a[DEPTH], w[DEPTH];
                for (int k = 0; k < DEPTH; k++) {
                    a[k] = codes[i * DEPTH + k];
                    w[k] = weights[by_row ? k * COLUMNS + m : m * DEPTH + k];
                }
                CHECK_INT(integers[i * COLUMNS + m], changed(a, w, DEPTH, &saturated));
            }
        CHECK(saturated > 0);
        CHECK_INT(l.saturated, saturated);
        free(l.pairs);
    }
}

/* Padding that follows from the sizes: an odd one is after the axis, or before it. */
static void test_same(void) {
    uint64_t state = 3;
    const float one = 1;
    for (int lower = 0; lower < 2; lower++) {
        const shape c = {1, 1, 2, 2, 4, 4, 2, 2, 1, 1, 1, 1, lower, lower, 4, 4};
        fill(&state);
        saturation_layer l = layer_of(&c, false, &one);
        l.scale_count = 1;
        l.pad[0] = l.pad[1] = -1;
        l.same_lower = lower;
        const int64_t in[] = {1, 2, 4, 4}, out[] = {1, 2, 4, 4};
        qsim_tensor x = {QSIM_UINT8, 4, in, codes, 32}, y = {QSIM_FLOAT, 4, out, results, 128};
        saturation_add(&l, &x, &y, NULL);
        uint64_t saturated = 0;
        for (int64_t e = 0; e < 32; e++)
            CHECK(results[e] == 0.5f * (float)at(&c, &l, 0, e / 16, e / 4 % 4, e % 4, &saturated));
        CHECK(saturated > 0);
        free(l.pairs);
    }
}

static bool always(void) {
    return true;
}

static void test_stopped(void) {
    saturation_layer l = {
        .scale = 1, .weights = weights, .columns = 2, .channels = 4, .groups = 1, .taps = 1};
    const int64_t in[] = {3, 4}, out[] = {3, 2};
    qsim_tensor x = {QSIM_UINT8, 2, in, codes, 12}, y = {QSIM_INT32, 2, out, integers, 24};
    saturation_add(&l, &x, &y, always);
    CHECK_INT(l.sums, 0);
    free(l.pairs);
}

int main(void) {
    test_images();
    test_stopped();
    test_matrices();
    test_same();
    return test_done();
}
