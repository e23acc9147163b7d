/* SPDX-License-Identifier: MIT */
/*
 * ConvIntegerScaled, depthwise. Its results are floats, four times the bytes of its input, so a
 * band of rows goes all the way while it is in the cache: dequantized with scale 1 and a border of
 * zeros, through the float kernel, scaled. Whole numbers below 2^24 and their sums are floats, so
 * these are the sums of integers in any order.
 */
#include "op/scaled.h"

#include <math.h>

#include "base/ctx.h"
#include "base/slices.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/conv_float.h"
#include "op/window.h"

/* |x - zp| and |w - zp| are at most 255. */
#define MOST_TAPS ((1 << 24) / (255 * 255))
/* Floats of a band's input and output: half of a second-level cache. */
#define BAND_FLOATS ((size_t)64 * 1024)

typedef struct depthwise_packed {
    qs_conv_form form;
    qs_conv_weights weights;
} depthwise_packed;

typedef struct depthwise_plan {
    qs_scaled scaled;
    const depthwise_packed *packed;
    const qk_f32 *f32;
    const qk_u8 *u8;
    qs_geometry g;
    size_t line, height;        /* floats of a bordered row; rows under a window */
    size_t band, bands, slices; /* rows of output of a band, bands of an image */
    size_t slice_floats;
} depthwise_plan;

static float weight_at(const uint8_t *w, const uint8_t *zp, bool is_signed, size_t i, size_t k) {
    const int32_t value = is_signed ? (int8_t)w[i] : w[i];
    const int32_t zero = !zp ? 0 : is_signed ? (int8_t)zp[k] : zp[k];
    return (float)(value - zero);
}

QS_RARE int qs_scaled_depthwise_pack(qs_pack *p) {
    const qs_value *w = &p->graph->values[p->node->inputs[1]];
    const qs_id zp_id = p->node->inputs[3];
    const uint8_t *bytes = qs_pack_const(p, 1);
    const uint8_t *zp = zp_id == QS_NONE ? NULL : qs_pack_const(p, 3);
    const qk_f32 *k = p->ctx->kernels->f32;
    qs_conv_form f = {0};
    if (!bytes || (zp_id != QS_NONE && !zp) ||
        !qs_conv_form_make(k, w, qs_node_int(p->node, "group", 1), &f) || !f.depthwise ||
        f.taps > MOST_TAPS)
        return QSIM_OK;
    const size_t zps = zp ? qs_value_elements(&p->graph->values[zp_id]) : 0;
    float *to = qs_arena_alloc64(p->arena, f.floats * sizeof(*to));
    depthwise_packed *out = qs_arena_alloc(p->arena, 1, sizeof(*out));
    float *wide = to && out ? qs_alloc(p->ctx, f.m * f.taps, sizeof(*wide)) : NULL;
    if (!wide)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < f.m * f.taps; i++)
        wide[i] = weight_at(bytes, zp, w->dtype == QSIM_INT8, i, zps > 1 ? i / f.taps : 0);
    out->form = f;
    out->weights = qs_conv_pack(k, &f, wide, NULL, to);
    qs_free(p->ctx, wide);
    p->result = out;
    return QSIM_OK;
}

/* ---- running ---- */

typedef struct depthwise_job {
    const depthwise_plan *p;
    qs_scaling scaling;
    const uint8_t *x;
    uint8_t zp;
    float *scratch;
} depthwise_job;

static void fill_zero(float *to, size_t n) {
    memset(to, 0, n * sizeof(*to));
}

/* Rows [first, first + rows) of the bordered image. */
static void widen_band(const depthwise_job *j, const uint8_t *image, size_t first, size_t rows,
                       float *to) {
    const depthwise_plan *p = j->p;
    const size_t row = p->g.w * p->g.c, left = p->g.left * p->g.c;
    const size_t before = left < p->line ? left : p->line;
    const size_t inside = p->line - before < row ? p->line - before : row;
    for (size_t i = first; i < first + rows; i++, to += p->line) {
        if (i < p->g.top || i - p->g.top >= p->g.h) {
            fill_zero(to, p->line);
            continue;
        }
        fill_zero(to, before);
        p->u8->dequantize(image + (i - p->g.top) * row, inside, 1.0f, j->zp, 0, to + before);
        fill_zero(to + before + inside, p->line - before - inside);
    }
}

static void run_band(const depthwise_job *j, size_t image, size_t oy, size_t rows, float *scratch) {
    const depthwise_plan *p = j->p;
    const qs_conv_form *f = &p->packed->form;
    const size_t pixel = (image * p->g.oh + oy) * p->g.ow;
    widen_band(j, j->x + image * p->g.h * p->g.w * p->g.c, oy * p->g.sh,
               (rows - 1) * p->g.sh + p->height, scratch);
    const qk_depthwise_f32 d = {.a = scratch,
                                .lines = rows,
                                .pixels = p->g.ow,
                                .line_step = (ptrdiff_t)(p->g.sh * p->line),
                                .pixel_step = (ptrdiff_t)(p->g.sw * p->g.c),
                                .down = f->kh,
                                .across = f->kw,
                                .tap_down = (ptrdiff_t)(p->g.dh * p->line),
                                .tap_across = (ptrdiff_t)(p->g.dw * p->g.c),
                                .channels = p->g.c,
                                .stride = f->bias_stride,
                                .w_down = f->kw * f->bias_stride,
                                .w = p->packed->weights.packed,
                                .bias = p->packed->weights.bias,
                                .lo = -INFINITY,
                                .hi = INFINITY,
                                .c = j->scaling.y + pixel * p->g.c,
                                .out_line = (ptrdiff_t)(p->g.ow * p->g.c),
                                .out_pixel = (ptrdiff_t)p->g.c};
    p->f32->depthwise(&d);
    qs_scale_rows(&j->scaling, pixel, pixel + rows * p->g.ow);
}

static void run_slice(void *arg, size_t slice) {
    const depthwise_job *j = arg;
    const depthwise_plan *p = j->p;
    const size_t end = qs_slice_begin(p->g.n * p->bands, p->slices, slice + 1);
    for (size_t i = qs_slice_begin(p->g.n * p->bands, p->slices, slice); i < end; i++) {
        const size_t oy = i % p->bands * p->band, left = p->g.oh - oy;
        run_band(j, i / p->bands, oy, left < p->band ? left : p->band,
                 j->scratch + slice * p->slice_floats);
    }
}

static void run_depthwise(const qs_step *s, const qs_frame *f) {
    const depthwise_plan *p = s->params;
    depthwise_job j = {.p = p,
                       .scaling = qs_scaling_of(&p->scaled, s, f),
                       .x = qs_step_in(s, f, 0),
                       .zp = *(const uint8_t *)qs_step_in(s, f, 2),
                       .scratch = f->scratch};
    if (p->slices == 1)
        run_slice(&j, 0);
    else
        qs_parallel(f->ctx, p->slices, run_slice, &j);
}

static void run_nothing(const qs_step *s, const qs_frame *f) {
    (void)s;
    (void)f;
}

/* ---- lowering ---- */

static void set_geometry(depthwise_plan *p, const qs_window *w) {
    const qs_conv_form *f = &p->packed->form;
    p->g = qs_window_geometry(w);
    p->height = (f->kh - 1) * p->g.dh + 1;
    p->line = ((p->g.ow - 1) * p->g.sw + (f->kw - 1) * p->g.dw + 1) * p->g.c;
}

static void split_bands(const qsim_ctx *ctx, depthwise_plan *p, double ns) {
    const size_t each = p->g.sh * p->line + p->g.ow * p->g.c; /* floats of one more row */
    const size_t slices = qs_slice_count(ctx, SIZE_MAX, ns);
    size_t band = BAND_FLOATS / each;
    band = band < 1 ? 1 : band > p->g.oh ? p->g.oh : band;
    p->bands = (p->g.oh + band - 1) / band;
    if (p->g.n % slices != 0)
        p->bands = (p->bands + slices - 1) / slices * slices;
    p->band = (p->g.oh + p->bands - 1) / p->bands;
    p->bands = (p->g.oh + p->band - 1) / p->band;
    p->slices = qs_slice_count(ctx, p->g.n * p->bands, ns);
}

QS_RARE int qs_scaled_depthwise_lower(qs_lower *l, const qs_scaled *scaled) {
    qs_infer x;
    qs_window window;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, 0, qs_lower_in(l, 1)->dims + 2, &window);
    if (code)
        return code;
    if (!window.channels_last)
        return qs_infer_fail(&x, QSIM_E_INTERNAL, "convolution is executed channels last only");
    depthwise_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->scaled = *scaled;
    p->scaled.floats = true;
    p->packed = l->packed;
    p->f32 = l->ctx->kernels->f32;
    p->u8 = l->ctx->kernels->u8;
    l->step->run = run_nothing;
    l->step->kernel = "depthwise whole numbers";
    const size_t results = qs_value_elements(qs_lower_out(l, 0));
    if (results == 0)
        return QSIM_OK;
    set_geometry(p, &window);
    const double macs = (double)results * (double)p->packed->form.taps;
    split_bands(l->ctx, p, macs / QS_DEPTHWISE_F32);
    size_t floats = 0;
    if (!qs_mul((p->band - 1) * p->g.sh + p->height, p->line, &floats) ||
        !qs_add(floats, 48, &floats)) /* kernels may read behind a row */
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's padded image is too large");
    p->slice_floats = qs_align(floats, 16);
    if (!qs_mul(p->slice_floats, p->slices * sizeof(float), &l->step->scratch))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's scratch memory is too large");
    l->step->run = run_depthwise;
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return QSIM_OK;
}
