/* SPDX-License-Identifier: MIT */
/*
 * An element-wise float expression of one 8-bit tensor that differs by channel, as PRelu and
 * BatchNormalization do, becomes QPiecewise if it is two lines that meet at the zero point. The
 * operators themselves compute all 256 values of each channel; the lines go through the first one,
 * the zero point's and the last one. The expression stays if a single code would not be the same,
 * and where a channel has so few elements that finding lines takes longer than they save.
 */
#include "pass/qdq/function.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "quant/affine.h"

#include <math.h>

/*
 * Float rounding may take a value that lies between two codes to the other one. The lines are moved
 * by so little, in steps of a float's last bits, that few other codes can change.
 */
#define TRIES 16
#define STEP  0x1p-16f

typedef struct fit {
    float scale; /* of the result */
    size_t channels;
    const float *v;                 /* [256, channels]: the results, before they are quantized */
    uint8_t *all, *expected, *made; /* the same of codes */
    float *below, *above, *offset;
    qk_piecewise w;
} fit;

/* The value of a code before it is rounded. */
static double value(const fit *f, size_t c, int32_t code) {
    return (double)f->v[(size_t)code * f->channels + c] / (double)f->scale;
}

/* Draws the lines; false: values are not finite, or beyond what kernels convert. */
static bool draw(const fit *f) {
    const double most = 1 << 20;
    const int32_t zx = f->w.zx;
    for (size_t c = 0; c < f->channels; c++) {
        const double first = value(f, c, 0), zero = value(f, c, zx), last = value(f, c, 255);
        if (!(fabs(first) < most && fabs(zero) < most && fabs(last) < most))
            return false;
        f->below[c] = zx > 0 ? (float)((zero - first) / zx) : 0;
        f->above[c] = zx < 255 ? (float)((last - zero) / (255 - zx)) : 0;
        f->offset[c] = (float)zero;
    }
    return true;
}

/* Moves the lines of each channel with another code than expected; false: there is none. */
static bool move(const fit *f, int32_t tried) {
    const float by = (float)(tried % 2 ? tried + 1 : -tried - 1) * STEP; /* -1, 1, -2, 2 in all */
    bool moved = false;
    for (size_t c = 0; c < f->channels; c++) {
        bool same = true;
        for (size_t i = 0; i < 256; i++)
            same &= f->made[i * f->channels + c] == f->expected[i * f->channels + c];
        if (!same)
            f->offset[c] += by;
        moved |= !same;
    }
    return moved;
}

/* Finds lines that give the expected codes; false: there are none. */
static bool find_lines(const qs_qdq *d, const qs_target *t, fit *f) {
    const size_t n = 256 * f->channels;
    qs_quantize_u8(f->v, n, t->q.s, t->q.z, f->expected);
    for (size_t i = 0; i < n; i++) {
        const uint8_t low = (uint8_t)t->lo, high = (uint8_t)t->hi, y = f->expected[i];
        f->all[i] = (uint8_t)(i / f->channels);
        f->expected[i] = y < low ? low : y > high ? high : y;
    }
    if (!draw(f))
        return false;
    for (int32_t tried = 0; tried < TRIES; tried++) {
        d->p->ctx->kernels->u8->piecewise(&f->w, f->all, f->made, f->channels, 256);
        if (!move(f, tried))
            return true;
    }
    return false;
}

static int replace(qs_qdq *d, qs_target *t, const qs_function *from, const fit *f) {
    const qs_id zx = qs_pass_const_u8(d->p, QSIM_UINT8, (uint8_t)from->zero_point);
    const float *lines[3] = {f->below, f->above, f->offset};
    qs_id in[6] = {from->leaf, zx, qs_qdq_zero_point(d, &t->q)};
    for (size_t i = 0; i < 3; i++)
        in[3 + i] = qs_pass_const(d->p, QSIM_FLOAT, 1, &from->channels, lines[i]);
    for (size_t i = 1; i < 6; i++)
        if (in[i] < 0)
            return in[i];
    const qs_id made = qs_qdq_replace(d, t, "qsim", "QPiecewise", in, 6, QS_NONE);
    if (made < 0)
        return made;
    if (qs_node_set_int(d->g, made, "axis", from->axis))
        return qs_pass_no_memory(d->p);
    return qs_qdq_set_bounds(d, t, made);
}

/* Allocates what `fit` needs, in one piece; NULL: out of memory. */
static void *allocate(const qs_qdq *d, const qs_target *t, const qs_function *from, fit *f) {
    const size_t n = (size_t)from->channels;
    float *lines = qs_alloc(d->p->ctx, n, 3 * sizeof(float) + 3 * 256);
    if (!lines)
        return NULL;
    f->scale = t->q.s;
    f->channels = n;
    f->below = lines;
    f->above = lines + n;
    f->offset = lines + 2 * n;
    f->all = (uint8_t *)(lines + 3 * n);
    f->expected = f->all + 256 * n;
    f->made = f->expected + 256 * n;
    f->w = (qk_piecewise){.below = f->below,
                          .above = f->above,
                          .offset = f->offset,
                          .zx = from->zero_point,
                          .zy = t->q.z,
                          .lo = (float)(t->lo - t->q.z),
                          .hi = (float)(t->hi - t->q.z)};
    return lines;
}

/* Elements of a channel, in a batch of 1, that are worth its lines: finding these takes some 256.
 */
#define WORTH 8

static bool is_worth(const qs_qdq *d, const qs_function *f) {
    const qs_value *v = &d->g->values[f->leaf];
    int64_t n = 1;
    for (int32_t i = 1; i < v->rank && n < WORTH; i++)
        n *= i != f->axis && v->dims[i].size > 0 ? v->dims[i].size : 1;
    return n >= WORTH;
}

int qs_qdq_piecewise(qs_qdq *d, qs_target *t, const qs_function *from, bool *done) {
    qs_expression e;
    const qs_const *c;
    fit f;
    if (!is_worth(d, from))
        return QSIM_OK;
    int code = qs_function_compute(d, from, QS_NONE, t->value, &e, &c);
    if (!code && c && c->elements == 256 * (size_t)from->channels && c->dtype == QSIM_FLOAT) {
        void *memory = allocate(d, t, from, &f);
        f.v = c->data;
        if (!memory) {
            code = qs_pass_no_memory(d->p);
        } else if (find_lines(d, t, &f)) {
            code = replace(d, t, from, &f);
            *done = !code;
        }
        qs_free(d->p->ctx, memory);
    }
    qs_expression_end(&e);
    return code == QSIM_E_LIMIT ? QSIM_OK : code;
}
