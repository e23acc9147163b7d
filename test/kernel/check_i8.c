/* SPDX-License-Identifier: MIT */
/* Integer products beside a plain loop: packing, every epilogue, every remainder, every table. */
#include "checkkernel.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernel/i8.h"

/* A random product: rows of `segs` segments anywhere in a buffer, any number of columns. */
typedef struct product {
    int32_t m, n, segs, k;
    bool int32_out, use_rows, clamp, fits16;
    bool floats; /* with int32_out */
    const uint8_t *a;
    const uint8_t **rows;
    int32_t *offset;
    ptrdiff_t a_stride;
    int32_t line; /* with use_rows: rows per line, a_stride apart, lines line_stride apart; or 0 */
    ptrdiff_t line_stride;
    const int8_t *w;
    int64_t sn, ss, sk; /* strides of columns, segments, terms */
    uint8_t flip;
    const int32_t *bias;
    const int32_t *init; /* per row, or NULL */
    float *mult, *add;
    int32_t zp, lo, hi;
    size_t out_stride, out_bytes;
    char text[128];
} product;

/* Bounds of float outputs. */
#define LOW  (-1.5f)
#define HIGH 6.25f

static int32_t float_of(int32_t acc, float scale, float add) {
    const float v = (float)acc * scale + add, low = v < LOW ? LOW : v, y = low > HIGH ? HIGH : low;
    memcpy(&acc, &y, 4);
    return acc;
}

static qk_source_i8 product_source(const product *p) {
    return (qk_source_i8){.w = p->w,
                          .flip = p->flip,
                          .n = p->n,
                          .kh = p->segs,
                          .kw = 1,
                          .c = p->k,
                          .sn = p->sn,
                          .sc = p->sk,
                          .sy = p->ss};
}

static int32_t weight_at(const product *p, int32_t n, int32_t segment, int32_t term) {
    const int8_t w = p->w[n * p->sn + segment * p->ss + term * p->sk];
    return (int8_t)((uint8_t)w ^ p->flip);
}

static void plain_product(const product *p, uint8_t *out) {
    for (int32_t r = 0; r < p->m; r++)
        for (int32_t n = 0; n < p->n; n++) {
            int64_t sum = (int64_t)p->bias[n] + (p->init ? p->init[r] : 0);
            for (int32_t s = 0; s < p->segs; s++)
                for (int32_t j = 0; j < p->k; j++) {
                    const uint8_t *a = p->use_rows ? p->rows[r] : p->a + r * p->a_stride;
                    sum += a[p->offset[s] + j] * weight_at(p, n, s, j);
                }
            int32_t acc = (int32_t)sum;
            uint8_t *to = out + (size_t)r * p->out_stride;
            if (p->floats)
                acc = float_of(acc, p->mult[n], p->add[n]);
            if (p->int32_out)
                memcpy(to + 4 * (size_t)n, &acc, 4);
            else
                to[n] = ck_requantize(acc, p->mult[n], p->zp, p->lo, p->hi);
        }
}

/* Prepared calls of the kernels: only these are timed. */
typedef struct call {
    qk_gemm_u8s8 g;
    int32_t panels; /* adjacent panels; 0: one, by gemm */
} call;

typedef struct packed {
    const qk_i8 *t;
    call *calls;
    int32_t count;
} packed;

static call next_call(const packed *k, const product *p, int32_t first, qk_gemm_u8s8 g) {
    const int32_t left = p->n - first, panels = qk_i8_panels(k->t, p->m, left);
    g.width = qk_i8_panel(k->t, left);
    const int32_t most = (panels > 0 ? panels : 1) * g.width;
    g.cols = left < most ? left : most;
    return (call){g, panels};
}

/* Prepares a call for each panel, or for those that the table takes together. */
static void make_calls(packed *k, const product *p, qk_gemm_u8s8 g) {
    const size_t element = p->int32_out ? 4 : 1;
    for (int32_t first = 0; first < p->n;) {
        const call c = k->calls[k->count++] = next_call(k, p, first, g);
        const int32_t columns = (c.panels > 0 ? c.panels : 1) * c.g.width;
        g.out = (uint8_t *)g.out + element * (size_t)columns;
        g.o.bias += columns;
        if (g.o.mult)
            g.o.mult += columns;
        if (g.o.scale)
            g.o.scale += columns, g.o.add += columns;
        g.b += (size_t)p->segs * 4 * (size_t)g.k4 * (size_t)columns;
        first += columns;
    }
}

static qk_out_i8 floats_of(const float *scale, const float *add, const int32_t *bias) {
    return (qk_out_i8){.bias = bias, .scale = scale, .add = add, .low = LOW, .high = HIGH};
}

static packed pack_product(ck_state *s, const qk_i8 *t, const product *p, uint8_t *out) {
    qk_source_i8 source = product_source(p);
    qk_form_i8 form;
    qk_i8_form(t, &source, false, false, &form);
    int8_t *b = ck_output(s, form.bytes);
    qk_i8_pack(t, &source, false, false, b, NULL);
    ck_same(s, b, b, form.bytes, p->text); /* the guards */
    int32_t *bias = ck_input(s, 4 * (size_t)form.positions);
    float *mult = ck_input(s, 4 * (size_t)form.positions);
    qk_i8_spread(t, p->n, p->n, p->n, p->bias, bias);
    qk_i8_spread(t, p->n, p->n, p->n, p->mult, mult);
    packed k = {t, ck_input(s, sizeof(call) * (size_t)(p->n / 8 + 1)), 0};
    qk_gemm_u8s8 g = {.a = p->a, .m = p->m, .segs = p->segs, .k4 = form.k4, .b = b, .out = out};
    g.next = ck_random(s) % 2 ? b : NULL;
    const bool lines = t->tiles && p->line > 0;
    g.rows = p->use_rows && !lines ? p->rows : NULL;
    g.line = lines ? p->line : 0;
    g.line_stride = p->line_stride;
    g.a_stride = p->a_stride;
    g.seg_offset = p->segs == 1 && p->offset[0] == 0 ? NULL : p->offset;
    g.row_init = p->init;
    g.out_stride = (ptrdiff_t)p->out_stride;
    g.o = (qk_out_i8){.bias = bias,
                      .mult = p->int32_out ? NULL : mult,
                      .zp = p->zp,
                      .lo = p->lo,
                      .hi = p->hi,
                      .clamp = p->clamp,
                      .fits16 = p->fits16};
    if (p->floats) {
        float *add = ck_input(s, 4 * (size_t)form.positions);
        qk_i8_spread(t, p->n, p->n, p->n, p->add, add);
        g.o = floats_of(mult, add, bias);
    }
    make_calls(&k, p, g);
    return k;
}

static void run_packed(void *arg) {
    const packed *k = arg;
    for (int32_t i = 0; i < k->count; i++) {
        const call *c = &k->calls[i];
        if (c->panels > 0)
            k->t->panels(&c->g, c->panels);
        else
            k->t->gemm(&c->g);
    }
}

static void random_addresses(ck_state *s, product *p, size_t size) {
    int32_t span = (int32_t)size - p->k;
    p->offset = ck_input(s, 4 * (size_t)p->segs);
    p->rows = ck_input(s, sizeof(*p->rows) * (size_t)p->m);
    for (int32_t i = 0; i < p->segs; i++)
        p->offset[i] = i == 0 && ck_random(s) % 2 ? 0 : ck_between(s, 0, span / 2);
    for (int32_t i = 0; i < p->m; i++)
        p->rows[i] = p->a + ck_between(s, 0, span / 2);
    p->a_stride = span / 2 / p->m;
}

/* Multipliers at ties (1/2, 1/4), usual ones and, with clamp, ones that overflow int32. */
static void random_scales(ck_state *s, int32_t n, bool clamp, const int32_t **bias, float **mult) {
    int32_t *b = ck_input(s, 4 * (size_t)n);
    float *m = ck_floats(s, (size_t)n, 1e-5f, 0.01f);
    for (int32_t i = 0; i < n; i++) {
        b[i] = clamp && ck_random(s) % 4 == 0 ? b[i] : ck_between(s, -30000, 30000);
        if (ck_random(s) % 4 == 0)
            m[i] = clamp ? ck_real(s, 1.0f, 1e6f) : 1.0f / (float)(1 << ck_between(s, 1, 12));
    }
    *bias = b;
    *mult = m;
}

static void random_range(ck_state *s, int32_t *zp, int32_t *lo, int32_t *hi) {
    *zp = ck_random(s) % 3 ? ck_between(s, 0, 255) : 0;
    *lo = ck_random(s) % 2 ? 0 : ck_between(s, 0, 255);
    *hi = ck_random(s) % 2 ? 255 : ck_between(s, *lo, 255);
}

/* Draws multipliers so small that results fit 16 bits. */
static void fit_scales(product *p) {
    p->fits16 = true;
    for (int32_t n = 0; n < p->n; n++) {
        int32_t sum = 60000; /* bias and init */
        for (int32_t i = 0; i < p->segs * p->k; i++)
            sum += 255 * abs(weight_at(p, n, i / p->k, i % p->k));
        const float most = 0.999f * QK_I8_FITS16 / (float)sum;
        p->mult[n] = p->mult[n] < most ? p->mult[n] : most;
    }
}

/* Columns are adjacent in a matrix on the right, terms in a transposed one, else any order. */
static void random_order(ck_state *s, product *p) {
    const int64_t n = p->n, k = p->k, segs = p->segs;
    const int64_t orders[][3] = {/* of columns, segments, terms */
                                 {1, k * n, n},       {1, k * n, n}, {segs * k, k, 1},
                                 {segs * k, 1, segs}, {k, k * n, 1}, {segs, 1, segs * n}};
    const int64_t *order = orders[ck_random(s) % QS_COUNT(orders)];
    p->sn = order[0];
    p->ss = order[1];
    p->sk = order[2];
    p->flip = ck_random(s) % 3 ? 0 : 0x80;
}

/* A matrix of given sizes, with rows in `size` bytes. */
static product product_of(ck_state *s, product p, size_t size) {
    p.int32_out = ck_random(s) % 3 == 0;
    p.floats = p.int32_out && ck_random(s) % 2;
    p.use_rows = ck_random(s) % 2;
    p.a = ck_input(s, size);
    random_addresses(s, &p, size);
    p.w = ck_input(s, (size_t)p.segs * (size_t)p.k * (size_t)p.n);
    random_order(s, &p);
    random_range(s, &p.zp, &p.lo, &p.hi);
    p.clamp = ck_random(s) % 3 == 0;
    random_scales(s, p.n, p.clamp, &p.bias, &p.mult);
    p.add = ck_floats(s, (size_t)p.n, -3.0f, 3.0f);
    if (!p.clamp && ck_random(s) % 2)
        fit_scales(&p);
    if (ck_random(s) % 2) {
        int32_t *init = ck_input(s, 4 * (size_t)p.m);
        for (int32_t i = 0; i < p.m; i++)
            init[i] = ck_between(s, -30000, 30000);
        p.init = init;
    }
    size_t element = p.int32_out ? 4 : 1;
    p.out_stride = element * (size_t)(p.n + (ck_random(s) % 2 ? 0 : ck_between(s, 1, 40)));
    p.out_bytes = p.out_stride * (size_t)(p.m - 1) + element * (size_t)p.n;
    snprintf(p.text, sizeof(p.text), "m %d n %d segs %d k %d zp %d lo %d hi %d%s%s%s%s", p.m, p.n,
             p.segs, p.k, p.zp, p.lo, p.hi, p.int32_out ? " int32" : "", p.clamp ? " clamp" : "",
             p.fits16 ? " fits16" : "", p.use_rows ? " rows" : "");
    return p;
}

static product random_product(ck_state *s) {
    product p = {
        .m = ck_random(s) % 4 ? ck_between(s, 1, 21) : 1, .segs = 1, .k = ck_between(s, 1, 70)};
    p.n = ck_between(s, 1, ck_random(s) % 2 ? 200 : 40);
    if (ck_random(s) % 2)
        p.segs = ck_between(s, 2, 9);
    return product_of(s, p, 2000);
}

/* Many rows, or more weights than caches hold; some rows are in lines. */
static product large_product(ck_state *s) {
    product p = {.m = ck_between(s, 1, 100), .segs = 1, .k = ck_between(s, 50, 300)};
    const uint32_t which = ck_random(s) % 32;
    int32_t lines = 1;
    p.n = ck_between(s, 1, 140);
    if (which == 0) {
        p.m = ck_between(s, 17, 40);
        p.n = ck_between(s, 1000, 1100);
        p.k = ck_between(s, 1200, 1300);
    } else if (which < 3) {
        p.m = ck_between(s, 500, 1200);
        p.k = ck_between(s, 1, 70);
    } else if (which < 12) {
        p.segs = ck_between(s, 2, 4);
        p.k = ck_between(s, 1, 150);
    }
    if (ck_random(s) % 2 && p.m > 1)
        lines = ck_between(s, 2, p.m < 9 ? p.m : 9);
    p.m = p.m / lines * lines;
    p = product_of(s, p, (size_t)(p.k + 2 * p.m * ck_between(s, 1, 200)));
    if (!p.use_rows || lines == 1)
        return p;
    p.line = p.m / lines;
    p.a_stride = p.a_stride / 2;
    p.line_stride = (p.line + (ck_random(s) % 2 ? ck_between(s, 0, p.line) : 0)) * p.a_stride;
    for (int32_t r = 0; r < p.m; r++)
        p.rows[r] = p.a + r / p.line * p.line_stride + r % p.line * p.a_stride;
    return p;
}

static void check_product(ck_state *s, product p) {
    uint8_t *expected = ck_output(s, p.out_bytes), *actual = ck_output(s, p.out_bytes);
    packed k = pack_product(s, s->t->i8, &p, actual);
    run_packed(&k);
    plain_product(&p, expected);
    ck_same(s, expected, actual, p.out_bytes, p.text);
}

static void check_gemm(ck_state *s) {
    check_product(s, random_product(s));
}

static void check_large_gemm(ck_state *s) {
    check_product(s, large_product(s));
}

static void check_row_sums(ck_state *s) {
    product p = random_product(s);
    int32_t factor = ck_between(s, -255, 255);
    size_t bytes = 4 * (size_t)p.m;
    int32_t *actual = ck_output(s, bytes), *expected = ck_output(s, bytes);
    qk_gemm_u8s8 g = {.a = p.a,
                      .rows = p.use_rows ? p.rows : NULL,
                      .a_stride = p.a_stride,
                      .seg_offset = p.offset,
                      .m = p.m,
                      .segs = p.segs};
    s->t->i8->row_sums(&g, p.k, factor, actual);
    for (int32_t r = 0; r < p.m; r++) {
        const uint8_t *a = p.use_rows ? p.rows[r] : p.a + r * p.a_stride;
        expected[r] = 0;
        for (int32_t i = 0; i < p.segs * p.k; i++)
            expected[r] += factor * a[p.offset[i / p.k] + i % p.k];
    }
    ck_same(s, (const uint8_t *)expected, (const uint8_t *)actual, bytes, p.text);
}

static void bench_gemm(ck_state *s) {
    static const int32_t shapes[][3] = {
        {64, 64, 64},    {256, 256, 256}, {1024, 1024, 1024}, {196, 64, 576}, {3136, 256, 64},
        {3136, 64, 256}, {1568, 96, 16},  {784, 24, 144},     {196, 16, 200}, {784, 8, 40},
        {784, 40, 64},   {49, 56, 64},    {2, 256, 256},      {3, 256, 256},  {1, 64, 256},
        {1, 512, 512},   {1, 1024, 1024}, {1, 4096, 4096},    {1, 10, 128}};
    for (size_t i = 0; i < QS_COUNT(shapes); i++) {
        product p = {.m = shapes[i][0], .n = shapes[i][1], .segs = 1, .k = shapes[i][2], .hi = 255};
        p.zp = 7;
        p.fits16 = true; /* true for the multipliers below */
        p.a_stride = p.k;
        p.a = ck_input(s, (size_t)p.m * (size_t)p.k);
        p.w = ck_input(s, (size_t)p.k * (size_t)p.n);
        p.sn = 1;
        p.sk = p.n;
        p.offset = memset(ck_input(s, 4), 0, 4);
        p.out_stride = (size_t)p.n;
        p.out_bytes = p.out_stride * (size_t)p.m;
        p.bias = memset(ck_input(s, 4 * (size_t)p.n), 0, 4 * (size_t)p.n);
        p.mult = ck_floats(s, (size_t)p.n, 1e-4f, 2e-4f);
        packed k = pack_product(s, s->t->i8, &p, ck_output(s, p.out_bytes));
        snprintf(p.text, sizeof(p.text), "%dx%dx%d", p.m, p.n, p.k);
        ck_time(s, p.text, (double)p.m * p.n * p.k, 0, run_packed, &k);
    }
}

/* ---- depthwise ---- */

typedef struct channels {
    int32_t m, taps, n;
    bool int32_out, clamp, floats;
    const uint8_t *a;
    ptrdiff_t a_stride;
    int32_t *offset;
    const int8_t *w;
    int64_t sn, st; /* strides of channels, taps */
    uint8_t flip;
    const int32_t *bias;
    float *mult, *add;
    int32_t zp, lo, hi;
    size_t out_stride, out_bytes;
    char text[128];
} channels;

static void plain_depthwise(const channels *p, uint8_t *out) {
    for (int32_t r = 0; r < p->m; r++)
        for (int32_t n = 0; n < p->n; n++) {
            int64_t sum = p->bias[n];
            for (int32_t t = 0; t < p->taps; t++)
                sum += p->a[r * p->a_stride + p->offset[t] + n] *
                       (int8_t)((uint8_t)p->w[n * p->sn + t * p->st] ^ p->flip);
            int32_t acc = (int32_t)sum;
            uint8_t *to = out + (size_t)r * p->out_stride;
            if (p->floats)
                acc = float_of(acc, p->mult[n], p->add[n]);
            if (p->int32_out)
                memcpy(to + 4 * (size_t)n, &acc, 4);
            else
                to[n] = ck_requantize(acc, p->mult[n], p->zp, p->lo, p->hi);
        }
}

typedef struct depthwise_call {
    const qk_i8 *t;
    qk_depthwise_u8s8 d;
} depthwise_call;

static depthwise_call pack_depthwise(ck_state *s, const qk_i8 *t, const channels *p, void *out) {
    qk_source_i8 source = {.w = p->w, .n = p->n, .kh = 1, .kw = p->taps, .c = 1, .flip = p->flip};
    source.sn = p->sn;
    source.sx = p->st;
    size_t positions = (size_t)qk_i8_depthwise_positions(t, p->n);
    const size_t bytes = positions * 4 * (size_t)((p->taps + 3) / 4);
    int8_t *w = ck_output(s, bytes);
    qk_i8_pack_depthwise(t, &source, p->n, w, NULL);
    ck_same(s, w, w, bytes, p->text); /* the guards */
    int32_t *bias = ck_input(s, 4 * positions);
    float *mult = ck_input(s, 4 * positions);
    qk_i8_spread_depthwise(t, p->n, p->n, p->bias, bias);
    qk_i8_spread_depthwise(t, p->n, p->n, p->mult, mult);
    depthwise_call made = {t,
                           {.a = p->a,
                            .a_stride = p->a_stride,
                            .tap_offset = p->offset,
                            .m = p->m,
                            .taps = p->taps,
                            .channels = p->n,
                            .w = w,
                            .out = out,
                            .out_stride = (ptrdiff_t)p->out_stride,
                            .o = {.bias = bias,
                                  .mult = p->int32_out ? NULL : mult,
                                  .zp = p->zp,
                                  .lo = p->lo,
                                  .hi = p->hi,
                                  .clamp = p->clamp}}};
    if (p->floats) {
        float *add = ck_input(s, 4 * positions);
        qk_i8_spread_depthwise(t, p->n, p->n, p->add, add);
        made.d.o = floats_of(mult, add, bias);
    }
    return made;
}

static void run_depthwise(void *arg) {
    const depthwise_call *c = arg;
    c->t->depthwise(&c->d);
}

static channels random_channels(ck_state *s) {
    channels p = {.m = ck_between(s, 1, 9), .taps = ck_between(s, 1, 26)};
    p.n = ck_between(s, 1, ck_random(s) % 2 ? 150 : 33);
    p.int32_out = ck_random(s) % 3 == 0;
    p.floats = p.int32_out && ck_random(s) % 2;
    p.clamp = ck_random(s) % 3 == 0;
    p.a = ck_input(s, 2000);
    p.a_stride = ck_between(s, 0, 100);
    p.offset = ck_input(s, 4 * (size_t)p.taps);
    for (int32_t t = 0; t < p.taps; t++)
        p.offset[t] = ck_between(s, 0, 1000);
    p.w = ck_input(s, (size_t)p.taps * (size_t)p.n);
    p.flip = ck_random(s) % 3 ? 0 : 0x80;
    p.sn = ck_random(s) % 2 ? p.taps : 1;
    p.st = p.sn == 1 ? p.n : 1;
    random_range(s, &p.zp, &p.lo, &p.hi);
    random_scales(s, p.n, p.clamp, &p.bias, &p.mult);
    p.add = ck_floats(s, (size_t)p.n, -3.0f, 3.0f);
    size_t element = p.int32_out ? 4 : 1;
    p.out_stride = element * (size_t)(p.n + (ck_random(s) % 2 ? 0 : ck_between(s, 1, 40)));
    p.out_bytes = p.out_stride * (size_t)(p.m - 1) + element * (size_t)p.n;
    snprintf(p.text, sizeof(p.text), "m %d taps %d channels %d zp %d lo %d hi %d%s%s", p.m, p.taps,
             p.n, p.zp, p.lo, p.hi, p.int32_out ? " int32" : "", p.clamp ? " clamp" : "");
    return p;
}

static void check_depthwise(ck_state *s) {
    channels p = random_channels(s);
    uint8_t *expected = ck_output(s, p.out_bytes), *actual = ck_output(s, p.out_bytes);
    depthwise_call k = pack_depthwise(s, s->t->i8, &p, actual);
    run_depthwise(&k);
    plain_depthwise(&p, expected);
    ck_same(s, expected, actual, p.out_bytes, p.text);
}

static void bench_depthwise(ck_state *s) {
    static const int32_t shapes[][2] = {{32, 112}, {144, 56}, {384, 14}, {960, 7}};
    for (size_t i = 0; i < QS_COUNT(shapes); i++) {
        int32_t n = shapes[i][0], width = shapes[i][1];
        channels p = {.m = width, .taps = 9, .n = n, .hi = 255, .a_stride = n};
        p.a = ck_input(s, (size_t)(3 * (width + 2) * n));
        p.offset = ck_input(s, 36);
        for (int32_t t = 0; t < 9; t++)
            p.offset[t] = (t / 3 * (width + 2) + t % 3) * n;
        p.w = ck_input(s, (size_t)(9 * n));
        p.sn = 9;
        p.st = 1;
        p.bias = memset(ck_input(s, 4 * (size_t)n), 0, 4 * (size_t)n);
        p.mult = ck_floats(s, (size_t)n, 1e-3f, 2e-3f);
        p.out_stride = (size_t)n;
        p.out_bytes = (size_t)(n * width);
        depthwise_call k = pack_depthwise(s, s->t->i8, &p, ck_output(s, p.out_bytes));
        snprintf(p.text, sizeof(p.text), "3x3 %d channels, row of %d", n, width);
        ck_time(s, p.text, 9.0 * n * width, 0, run_depthwise, &k);
    }
}

/* ---- requantization ---- */

static void check_requantize(ck_state *s) {
    size_t n = (size_t)ck_between(s, 0, 100);
    int32_t zp, lo, hi;
    random_range(s, &zp, &lo, &hi);
    float m = ck_random(s) % 2 ? ck_real(s, 1e-6f, 1.0f) : 0.5f;
    int32_t *acc = ck_input(s, 4 * n);
    for (size_t i = 0; i < n; i++)
        acc[i] = ck_random(s) % 4 ? ck_between(s, -2000, 2000) : acc[i];
    uint8_t *expected = ck_output(s, n), *actual = ck_output(s, n);
    s->t->i8->requantize(acc, n, m, zp, lo, hi, actual);
    for (size_t i = 0; i < n; i++)
        expected[i] = ck_requantize(acc[i], m, zp, lo, hi);
    ck_same(s, expected, actual, n, "requantize");
}

static void check_post(ck_state *s) {
    int32_t n = ck_between(s, 1, 150);
    const int32_t *bias;
    float *mult;
    qk_post_row_i8 p = {.n = n, .row_zp = (uint32_t)ck_between(s, 0, 255)};
    random_scales(s, n, ck_random(s) % 3 == 0, &bias, &mult);
    p.mult = mult;
    random_range(s, &p.o.zp, &p.o.lo, &p.o.hi);
    int32_t *colsum = ck_input(s, 4 * (size_t)n), *w_zp = ck_input(s, 4 * (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        colsum[i] = ck_between(s, -5000, 5000);
        w_zp[i] = ck_between(s, -128, 127);
    }
    p.acc = bias;
    p.colsum = colsum;
    p.w_zp = w_zp;
    p.rest = (uint32_t)ck_between(s, -9000, 9000);
    uint8_t *expected = ck_output(s, (size_t)n), *actual = ck_output(s, (size_t)n);
    p.out = actual;
    s->t->i8->post(&p);
    for (int32_t i = 0; i < n; i++) {
        int64_t sum =
            (int64_t)bias[i] - (int64_t)p.row_zp * colsum[i] - (int64_t)w_zp[i] * (int32_t)p.rest;
        expected[i] = ck_requantize((int32_t)sum, p.mult[i], p.o.zp, p.o.lo, p.o.hi);
    }
    ck_same(s, expected, actual, (size_t)n, "post");
}

const ck_case ck_cases_i8[] = {
    {"gemm_u8s8", check_gemm, bench_gemm},     {"gemm_u8s8 large", check_large_gemm, NULL},
    {"row_sums_u8", check_row_sums, NULL},     {"depthwise_u8s8", check_depthwise, bench_depthwise},
    {"requantize_u8", check_requantize, NULL}, {"post_u8", check_post, NULL},
};
const size_t ck_cases_i8_count = QS_COUNT(ck_cases_i8);
