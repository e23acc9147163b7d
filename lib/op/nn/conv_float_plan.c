/* SPDX-License-Identifier: MIT */
/* Plans a float convolution: its bands, strips, slices and scratch memory. */
#include "op/nn/conv_float_plan.h"

#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "base/waves.h"
#include "kernel/table.h"
#include "op/nn/window.h"

/* Floats of a band of the image: they stay in a second-level cache beside the weights. */
#define BAND_FLOATS ((size_t)96 * 1024)
/* Weights per value of input and output from which on threads divide the weights. */
#define MANY_WEIGHTS ((size_t)4)
/* Most floats of weights that are read again for every band, so that results stay in the cache. */
#define SMALL_WEIGHTS ((size_t)64 * 1024)
/* Output pixels of a band: what one table of row offsets covers. */
#define BAND_PIXELS ((size_t)1024)
/* Output rows per band with depthwise_3x3: more would let x and y overlap less. */
#define CUT_LINES ((size_t)28)
/* Floats of an image that exceed the second-level cache. */
#define FAR_FLOATS ((size_t)256 * 1024)
/* Kernels up to this width leave padding out: wider ones would make too many strips. */
#define SKIP_WIDTH ((size_t)16)

/* Whether depthwise_3x3 handles padding itself: windows exceed the image by at most one tap. */
static bool can_cut(const qs_conv_plan *p) {
    const qs_geometry *g = &p->g;
    return p->form.depthwise && p->form.kh == 3 && p->form.kw == 3 && g->dh == 1 && g->dw == 1 &&
           g->sh <= 2 && g->sw <= 2 && g->top <= 1 && g->left <= 1 &&
           p->choice != QS_CONV_BORDERED && (g->oh - 1) * g->sh + 2 <= g->h + g->top &&
           (g->ow - 1) * g->sw + 2 <= g->w + g->left && g->ow >= QK_DEPTHWISE_3X3_LEAST &&
           p->kernels->depthwise_3x3;
}

/*
 * Cycles per term for `rows` rows. Kernels compute 8 or 4 rows at once, then 4, then 1; if these
 * have few columns, they wait for their own sums, 4 cycles.
 */
static double row_cycles(const qs_conv_plan *p, size_t rows) {
    const size_t panel = p->kernels->panel, columns = p->form.mg < panel ? p->form.mg : panel;
    const double row = qs_real(columns) / 16, least = 4.0;
    const size_t big = columns <= 32 ? 8 : 4, rest = rows % big, fours = rest / 4, ones = rest % 4;
    const double alone = row > least ? row : least;
    return row * qs_real(rows - rest) + (4 * row > least ? 4 * row : least) * qs_real(fours) +
           alone * (double)ones;
}

/* Rows or columns of a convolution: of its output, the padding before, the kernel and the image. */
typedef struct axis {
    size_t end, step, before, taps, dilation, size;
} axis;

static qs_tap_span inside_at(const axis *a, size_t at) {
    return qs_taps_inside(at * a->step, a->before, a->taps, a->dilation, a->size);
}

/* Counts outputs from `at` on with the same taps inside the image: *inside taps. */
static size_t alike(const axis *a, size_t at, size_t *inside) {
    const qs_tap_span first = inside_at(a, at);
    size_t next = at + 1;
    for (; next < a->end; next++) {
        const qs_tap_span s = inside_at(a, next);
        if (s.from != first.from || s.to != first.to)
            break;
    }
    *inside = first.to - first.from;
    return next - at;
}

/* Whether a small image is faster as a padded copy: else products at its border have few rows. */
static bool border_is_slow(const qs_conv_plan *p) {
    const qs_geometry *g = &p->g;
    const qs_conv_form *f = &p->form;
    const axis y = {g->oh, g->sh, g->top, f->kh, g->dh, g->h};
    const axis x = {g->ow, g->sw, g->left, f->kw, g->dw, g->w};
    double slow = 0;
    if (f->depthwise || g->oh * g->ow > 1024)
        return false;
    for (size_t oy = 0, rows, down; oy < g->oh; oy += rows) {
        rows = alike(&y, oy, &down);
        for (size_t ox = 0, count, across; ox < g->ow; ox += count) {
            count = alike(&x, ox, &across);
            slow += row_cycles(p, rows * count) * qs_real(down * across);
        }
    }
    return slow > 1.05 * row_cycles(p, g->oh * g->ow) * qs_real(f->kh * f->kw);
}

static void conv_geometry(qs_conv_plan *p, const qs_window *w) {
    const qs_conv_form *f = &p->form;
    p->g = qs_window_geometry(w);
    p->height = (f->kh - 1) * p->g.dh + 1;
    const size_t across = (f->kw - 1) * p->g.dw + 1;
    const size_t need_w = p->g.ow ? (p->g.ow - 1) * p->g.sw + across : 0;
    const size_t need_h = p->g.oh ? (p->g.oh - 1) * p->g.sh + p->height : 0;
    const bool padded = p->g.top || p->g.left || need_h > p->g.h || need_w > p->g.w;
    const bool skips =
        p->weights && p->weights->finite && f->kw <= SKIP_WIDTH && !border_is_slow(p);
    p->choice = !padded                              ? QS_CONV_WHOLE
                : !skips                             ? QS_CONV_BORDERED
                : qs_taps_suit(p->kernels, f, &p->g) ? QS_CONV_TAPS
                                                     : QS_CONV_STRIPS;
    p->line = (p->choice == QS_CONV_BORDERED ? need_w : p->g.w) * p->g.c;
    if (can_cut(p))
        p->choice = QS_CONV_CUT;
    if (p->kernels->parts) /* fewer rows at a time arrive sooner from beyond the cache */
        p->stretch = p->g.sw == 2 ? 2 : p->g.h * p->line > FAR_FLOATS ? 4 : 0;
    const bool pointwise = f->taps == 1 && !padded && p->g.sh == 1 && p->g.sw == 1;
    if (pointwise) { /* all pixels of all images are rows of one product */
        p->g.h = p->g.oh = p->g.n * p->g.oh * p->g.ow;
        p->g.n = p->g.w = p->g.ow = 1;
        p->line = p->g.c;
    }
}

static double conv_ns(const qs_conv_plan *p, double macs) {
    return macs / (p->form.depthwise ? QS_DEPTHWISE_F32 : QS_MACS_F32);
}

/*
 * Whether threads divide the columns instead of the rows: if reading the weights takes most of the
 * time, each thread reads only its part.
 */
static bool prefer_columns(const qs_conv_plan *p, size_t slices) {
    const size_t panels = (p->form.mg + p->kernels->panel - 1) / p->kernels->panel;
    const size_t pixels = p->g.h * p->g.w * p->g.c + p->g.oh * p->g.ow * p->form.m;
    return slices > 1 && p->g.n == 1 && !p->form.depthwise && panels >= 4 * slices &&
           p->form.floats / MANY_WEIGHTS > pixels;
}

/* Divides the output into bands, blocks of columns and slices. */
static void conv_split(const qsim_ctx *ctx, qs_conv_plan *p, double macs) {
    const size_t most = BAND_FLOATS;
    assert(p->g.oh > 0 && p->g.ow > 0); /* an output without elements is not computed */
    const size_t floats = p->line * p->g.sh, per_row = floats != 0 ? floats : 1;
    size_t by_size = most / per_row, by_pixels = BAND_PIXELS / p->g.ow;
    if (p->choice == QS_CONV_BORDERED)
        by_size = most / per_row > p->height / p->g.sh ? most / per_row - p->height / p->g.sh : 1;
    size_t band = by_size < by_pixels ? by_size : by_pixels;
    if ((p->end.sum || p->end.curve.fn) && p->form.floats <= SMALL_WEIGHTS) {
        const size_t by_results = most / (p->g.ow * p->form.m);
        band = band < by_results ? band : by_results;
    }
    if (p->choice == QS_CONV_CUT && !p->end.sum &&
        !p->end.curve.fn) /* its blocks run down the image */
        band = CUT_LINES;
    if (p->kernels->parts && p->choice != QS_CONV_BORDERED && p->form.floats >= p->g.h * p->line)
        band = by_pixels; /* weights are read once; kernels need a part of the image at a time */
    band = band < 1 ? 1 : band > p->g.oh ? p->g.oh : band;
    const size_t slices = qs_slice_count(ctx, SIZE_MAX, conv_ns(p, macs));
    p->by_columns = prefer_columns(p, slices);
    p->bands = (p->g.oh + band - 1) / band;
    if (p->g.n % slices != 0 && !p->by_columns)
        p->bands = (p->bands + slices - 1) / slices * slices;
    p->bands = p->bands < p->g.oh ? p->bands : p->g.oh;
    p->band = (p->g.oh + p->bands - 1) / p->bands;
    p->splits = 1;
    p->columns = p->form.mg;
    const size_t panel = p->kernels->panel, panels = (p->form.mg + panel - 1) / panel;
    if ((p->g.n * p->bands < slices || p->by_columns) && !p->form.depthwise && panels > 1) {
        size_t splits =
            p->by_columns ? slices : (slices + p->g.n * p->bands - 1) / (p->g.n * p->bands);
        splits = splits < panels ? splits : panels;
        p->columns = (panels + splits - 1) / splits * panel;
        p->splits = (p->form.mg + p->columns - 1) / p->columns;
    }
    p->slices = qs_slice_count(ctx, p->g.n * p->bands * p->splits, conv_ns(p, macs));
}

/* Sets the distances at which output and input may overlap in memory. */
static void conv_distances(const qs_conv_plan *p, qs_step *step) {
    const size_t items = p->g.n * p->bands;
    qs_reach r = {.h = p->g.h,
                  .oh = p->g.oh,
                  .step = p->g.sh,
                  .top = p->g.top,
                  .taps = p->height,
                  .row = p->g.w * p->g.c * sizeof(float),
                  .out = p->g.ow * p->stride * sizeof(float)};
    for (size_t i = 0; i < items; i += p->wave) {
        const size_t last = (items - i < p->wave ? items : i + p->wave) - 1;
        qs_reach_wave(&r, i / p->bands, qs_conv_band(p, i % p->bands), last / p->bands,
                      qs_conv_band(p, last % p->bands + 1));
    }
    step->min_lead = r.min_lead;
    step->min_lag = r.min_lag;
}

/* The code of a stop, looked for at each 32768th item. */
static int stop_at(const qs_arena *arena, size_t i) {
    return (i & 0x7fff) == 0x7fff ? qs_stop_code(arena->ctx) : QSIM_OK;
}

/* Makes the tables of a strip. Fails if memory runs out or the run is stopped. */
static int strip_tables(qs_arena *arena, const qs_conv_plan *p, qs_conv_strip *s) {
    const qs_conv_form *f = &p->form;
    const size_t taps = s->inside.to - s->inside.from;
    if (f->depthwise)
        return QSIM_OK;
    const bool merged = p->g.dw == 1 && f->groups == 1 && taps > 0;
    s->per_row = merged ? 1 : taps;
    s->k = merged ? taps * f->cg : f->cg;
    const size_t pixels = p->band * s->count, segs = f->kh * s->per_row;
    const bool dense = s->count == p->g.ow;
    size_t bytes, seg_bytes;
    if (!qs_mul(pixels, sizeof(*s->row), &bytes) || !qs_mul(segs + 1, sizeof(*s->seg), &seg_bytes))
        return QSIM_E_NOMEM;
    s->row = qs_arena_raw64(arena, bytes);
    s->out = dense ? NULL : qs_arena_raw64(arena, bytes);
    s->seg = qs_arena_raw64(arena, seg_bytes);
    s->at = qs_arena_raw64(arena, seg_bytes);
    if (!s->row || (!s->out && !dense) || !s->seg || !s->at)
        return QSIM_E_NOMEM;
    int code = QSIM_OK;
    for (size_t y = 0, i = 0; y < p->band; y++)
        for (size_t x = 0; x < s->count && !code; x++, i++) {
            s->row[i] = (ptrdiff_t)(y * p->g.sh * p->line + x * p->g.sw * p->g.c);
            if (!dense)
                s->out[i] = (ptrdiff_t)((y * p->g.ow + x) * p->stride);
            code = stop_at(arena, i);
        }
    s->seg[segs] = 0, s->at[segs] = 0;
    for (size_t i = 0; i < segs && !code; i++) {
        const size_t ky = i / s->per_row, kx = i % s->per_row;
        const size_t tap = ky * f->kw + s->inside.from + kx;
        s->seg[i] = (ptrdiff_t)(ky * p->g.dh * p->line + kx * p->g.dw * p->g.c);
        s->at[i] = tap * f->cg;
        code = stop_at(arena, i);
    }
    return code;
}

/* Makes what the choice of kernels needs: strips with their tables, or taps. Errors as above. */
static int make_strips(qs_arena *arena, qs_conv_plan *p) {
    const size_t all = p->form.kw;
    if (p->choice == QS_CONV_CUT)
        return QSIM_OK;
    if (p->choice == QS_CONV_TAPS) {
        p->taps = qs_arena_alloc(arena, 1, sizeof(*p->taps));
        if (!p->taps)
            return QSIM_E_NOMEM;
        *p->taps =
            (qs_taps){p->kernels, &p->form, &p->g, p->line, p->stride, p->lo, p->hi, NULL, NULL};
        return qs_taps_make(arena, p->taps, p->band) ? QSIM_OK : QSIM_E_NOMEM;
    }
    const bool several = p->choice == QS_CONV_STRIPS;
    p->strips = qs_arena_alloc(arena, several ? p->g.ow : 1, sizeof(*p->strips));
    if (!p->strips)
        return QSIM_E_NOMEM;
    if (!several) {
        p->strip_count = 1;
        p->strips[0] = (qs_conv_strip){.count = p->g.ow, .inside = {0, all}};
        return strip_tables(arena, p, p->strips);
    }
    for (size_t ox = 0; ox < p->g.ow; ox++) {
        const qs_tap_span in = qs_taps_inside(ox * p->g.sw, p->g.left, all, p->g.dw, p->g.w);
        qs_conv_strip *s = p->strip_count ? &p->strips[p->strip_count - 1] : NULL;
        if (!s || s->inside.from != in.from || s->inside.to != in.to) {
            const size_t x = in.to ? ox * p->g.sw + in.from * p->g.dw - p->g.left : 0;
            s = &p->strips[p->strip_count++];
            *s = (qs_conv_strip){.ox = ox, .inside = in, .x = x * p->g.c};
        }
        s->count++;
    }
    int code = QSIM_OK;
    for (size_t i = 0; i < p->strip_count && !code; i++)
        code = strip_tables(arena, p, &p->strips[i]);
    p->inside = qs_arena_alloc(arena, p->g.oh, sizeof(*p->inside));
    for (size_t oy = 0; p->inside && oy < p->g.oh; oy++)
        p->inside[oy] = qs_taps_inside(oy * p->g.sh, p->g.top, p->form.kh, p->g.dh, p->g.h);
    return code || p->inside ? code : QSIM_E_NOMEM;
}

QS_COLD static int conv_scratch(qs_lower *l, qs_conv_plan *p) {
    size_t floats = 0;
    if (p->choice == QS_CONV_BORDERED &&
        (!qs_mul((p->band - 1) * p->g.sh + p->height, p->line, &floats) ||
         !qs_add(floats, 32, &floats)))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's padded image is too large");
    p->bordered_floats = qs_align(floats, 16);
    /* Results of a band, if their sums with another tensor may be stored over that tensor. */
    size_t all = 0, sums = 0;
    if (p->end.sum && p->splits == 1 && p->stride == p->form.m) {
        sums = p->band * p->g.ow * p->stride; /* at most the output's elements */
        l->step->in_place = 1u << QS_CONV_OTHER;
    }
    p->slice_floats = p->bordered_floats + qs_align(sums, 16);
    if (!qs_mul(p->slice_floats, p->slices, &all) ||
        (!p->weights && !qs_add(all, qs_align(p->form.floats, 16), &all)) ||
        !qs_mul(all, sizeof(float), &l->step->scratch))
        return qs_scratch_too_large(l->error);
    return QSIM_OK;
}

QS_COLD int qs_conv_lower(qs_lower *l) {
    const qs_value *w = qs_lower_in(l, 1);
    qs_infer x;
    qs_window window;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, 0, w->dims + 2, &window);
    if (code)
        return code;
    if (!window.channels_last)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, QS_UNRANKED);
    qs_conv_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->kernels = l->ctx->kernels->f32;
    p->weights = l->packed;
    p->has_bias = qs_lower_in(l, 2) != NULL;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    p->end = qs_finish_lower(l, QS_CONV_OTHER);
    if (l->node->input_count > QS_CONV_OVER && qs_lower_in(l, QS_CONV_OVER))
        l->step->reuses = QS_CONV_OVER;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    if (!qs_conv_form_make(p->kernels, w, qs_node_int(l->node, "group", 1), &p->form))
        return qs_weights_too_large(l->error);
    const int64_t into = qs_node_int(l->node, "into", 0);
    p->stride = into ? (size_t)into : p->form.m;
    p->column = (size_t)qs_node_int(l->node, "column", 0);
    const double pixels = qs_real(qs_value_elements(qs_lower_out(l, 0)) / p->stride);
    const double macs = pixels * qs_real(p->form.m) * qs_real(p->form.taps * p->form.cg);
    conv_geometry(p, &window);
    conv_split(l->ctx, p, macs);
    p->wave = qs_wave(p->g.n * p->bands, p->slices, conv_ns(p, macs));
    if (p->splits == 1)
        conv_distances(p, l->step);
    code = make_strips(l->arena, p);
    if (code)
        return code == QSIM_E_NOMEM ? qs_fail(l->error, code, "out of memory")
                                    : qs_stop_fail(l->ctx, code, l->model, l->error);
    l->step->run = qs_conv_run;
    l->step->kernel = p->form.depthwise ? p->end.curve.fn ? "depthwise curve" : "depthwise"
                      : p->end.sum      ? "conv add"
                      : p->end.curve.fn ? "conv curve"
                                        : "conv";
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return conv_scratch(l, p);
}
