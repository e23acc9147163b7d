/* SPDX-License-Identifier: MIT */
#include "ptq/gram.h"
#include "ptq/recipe.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/f32.h"
#include "kernel/table.h"
#include "op/nn/float_jobs.h"
#include "pass/pass.h"

/* Rows of one sample: the 8,000 of 128 samples are enough for windows of some hundred elements. */
#define ROWS 64
/*
 * Largest matrices; larger ones take minutes to factor, and their weights are rounded to nearest.
 */
#define MOST 2048

/* ---- which layers ---- */

static void read_numbers(const qs_node *n, const char *name, int64_t otherwise, int64_t *to,
                         int32_t count) {
    const qs_attr *a = qs_node_attr(n, name);
    for (int32_t i = 0; i < count; i++)
        to[i] = a && i < a->count ? a->u.ints[i] : otherwise;
}

/* Reads the key of a layer's matrix; false: the layer has none. */
static bool read_key(const qs_graph *g, const qs_layer *l, qs_gram_key *key) {
    const qs_node *n = &g->nodes[l->node];
    const qs_const *w = g->values[n->inputs[1]].data;
    *key = (qs_gram_key){.tensor = g->values[n->inputs[0]].name};
    if (l->depth > MOST)
        return false;
    if (n->op->traits & QS_MULTIPLIES)
        return true;
    if (!(n->op->traits & QS_CONVOLVES) || w->rank != 4 || qs_node_int(n, "group", 1) != 1)
        return false;
    key->conv = true;
    for (int32_t i = 0; i < 2; i++)
        key->kernel[i] = w->dims[2 + i];
    read_numbers(n, "strides", 1, key->stride, 2);
    read_numbers(n, "dilations", 1, key->dilation, 2);
    const int32_t pad = qs_node_word(n, "auto_pad", QS_AUTO_PADS);
    key->padding = pad == QS_PAD_UPPER || pad == QS_PAD_LOWER ? pad : 0;
    if (!key->padding)
        read_numbers(n, "pads", 0, key->pads, 4);
    return true;
}

static bool same_key(const qs_gram_key *a, const qs_gram_key *b) {
    bool same = a->conv == b->conv && a->padding == b->padding;
    for (int i = 0; i < 2 && same; i++)
        same = a->kernel[i] == b->kernel[i] && a->stride[i] == b->stride[i] &&
               a->dilation[i] == b->dilation[i] && a->pads[i] == b->pads[i] &&
               a->pads[2 + i] == b->pads[2 + i];
    return same && strcmp(a->tensor, b->tensor) == 0;
}

static qs_gram *find(const qsim_calibration *c, const qs_gram_key *key) {
    for (size_t i = 0; i < c->gram_count; i++)
        if (same_key(&c->grams[i].key, key))
            return &c->grams[i];
    return NULL;
}

const qs_gram *qs_gram_find(const qs_quantizer *q, const qs_layer *l) {
    qs_gram_key key;
    if (!q->means || q->means->gram_count == 0 || !read_key(q->g, l, &key))
        return NULL;
    const qs_gram *g = find(q->means, &key);
    return g && g->n == l->depth && g->rows > 0 ? g : NULL;
}

/* ---- life ---- */

static int add(qsim_calibration *c, const qs_graph *g, const qs_layer *l) {
    qs_gram_key key;
    if (!read_key(g, l, &key) || find(c, &key))
        return QSIM_OK;
    const qs_id tensor = qs_names_find(c->names, key.tensor);
    if (tensor == QS_NONE)
        return QSIM_OK;
    if (!qs_grow(c->ctx, (void **)&c->grams, &c->gram_capacity, c->gram_count, sizeof(*c->grams)))
        return QSIM_E_NOMEM;
    key.tensor = c->tensors[tensor].name;
    qs_gram *made = &c->grams[c->gram_count];
    *made = (qs_gram){.key = key, .tensor = (size_t)tensor, .n = l->depth};
    made->sum = qs_calloc(c->ctx, (l->depth + 1) * l->depth, sizeof(*made->sum));
    c->gram_count += made->sum != NULL;
    return made->sum ? QSIM_OK : QSIM_E_NOMEM;
}

static bool is_wanted(const qsim_quantize_options *o) {
    bool wanted = o->keep_moments || (!o->no_gptq && qs_narrow_wanted(o));
    for (size_t i = 0; o->recipe && i < o->recipe->count && !wanted; i++)
        wanted = o->recipe->entries[i].rounding == QSIM_ROUNDING_GPTQ;
    return wanted;
}

int qs_gram_create(qsim_calibration *c, const qsim_quantize_options *options, qsim_error *error) {
    qsim_quantize_options own;
    qs_quantizer q;
    int code = options ? qs_quantizer_options(options, &own, error) : QSIM_OK;
    if (code || !options || !is_wanted(&own))
        return code;
    code = qs_quantizer_init(&q, c->prepared, c->prepared->graph, NULL, &own, error);
    for (size_t i = 0; i < q.layer_count && !code; i++) {
        const qs_layer *l = &q.layers[i];
        if (own.keep_moments || l->form.rounding == QSIM_ROUNDING_GPTQ)
            code = add(c, q.g, l);
    }
    qs_quantizer_free(&q);
    return code;
}

void qs_gram_free(qsim_calibration *c) {
    for (size_t i = 0; i < c->gram_count; i++) {
        qs_free(c->ctx, c->grams[i].sum);
        qs_free(c->ctx, c->grams[i].kept);
    }
    qs_free(c->ctx, c->grams);
    qs_free(c->ctx, c->gram_scratch);
}

/* ---- rows of a sample ---- */

/* The layout of a sample in memory; for a matrix h is the number of rows and w is 1. */
typedef struct sample {
    const float *x;
    int64_t channels, h, w;
    int64_t channel_step, pixel_step; /* elements */
    int64_t oh, ow, before[2];
} sample;

static void size_axis(const qs_gram_key *k, int axis, int64_t in, int64_t *out, int64_t *before) {
    const int64_t span = (k->kernel[axis] - 1) * k->dilation[axis] + 1, stride = k->stride[axis];
    *before = k->pads[axis];
    if (k->padding) {
        *out = (in + stride - 1) / stride;
        const int64_t all = (*out - 1) * stride + span - in;
        *before = all <= 0 ? 0 : (all + (k->padding == 2)) / 2;
    } else {
        *out = (in + k->pads[axis] + k->pads[axis + 2] - span) / stride + 1;
    }
}

/* Finds the layout of a sample; false: the tensor does not fit the layer. */
static bool find_layout(const qs_gram *g, const qsim_tensor *t, bool last, int64_t samples,
                        int64_t at, sample *s) {
    size_t all = 1;
    for (int32_t i = 0; i < t->rank; i++)
        all *= (size_t)t->dims[i];
    all /= (size_t)samples;
    *s = (sample){.x = (const float *)t->data + (size_t)at * all, .w = 1, .channel_step = 1};
    if (!g->key.conv) {
        s->channels = (int64_t)g->n;
        s->h = s->oh = (int64_t)(all / g->n);
        s->ow = 1;
        s->pixel_step = s->channels;
        return all % g->n == 0 && !last;
    }
    if (t->rank != 4)
        return false;
    s->channels = t->dims[last ? 3 : 1];
    s->h = t->dims[last ? 1 : 2];
    s->w = t->dims[last ? 2 : 3];
    s->channel_step = last ? 1 : s->h * s->w;
    s->pixel_step = last ? s->channels : 1;
    size_axis(&g->key, 0, s->h, &s->oh, &s->before[0]);
    size_axis(&g->key, 1, s->w, &s->ow, &s->before[1]);
    return s->oh > 0 && s->ow > 0 &&
           (int64_t)g->n == s->channels * g->key.kernel[0] * g->key.kernel[1];
}

/* Reads the row of output position p, in the order of the weights of a channel. */
static void read_row(const qs_gram_key *k, const sample *s, int64_t p, float *to) {
    const int64_t y = p / s->ow * k->stride[0] - s->before[0];
    const int64_t x = p % s->ow * k->stride[1] - s->before[1];
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t ky = 0; ky < k->kernel[0]; ky++)
            for (int64_t kx = 0; kx < k->kernel[1]; kx++) {
                const int64_t iy = y + ky * k->dilation[0], ix = x + kx * k->dilation[1];
                const bool inside = iy >= 0 && iy < s->h && ix >= 0 && ix < s->w;
                *to++ = inside ? s->x[c * s->channel_step + (iy * s->w + ix) * s->pixel_step] : 0;
            }
}

/* Reads rows of a sample, evenly spaced from a first one that depends on the sample's number. */
static size_t read_rows(const qs_gram *g, const sample *s, int64_t number, float *rows) {
    const int64_t all = s->oh * s->ow, count = all < ROWS ? all : ROWS;
    const uint64_t mixed = ((uint64_t)number + 1) * 0x9e3779b97f4a7c15u;
    const int64_t begin = all > ROWS ? (int64_t)((mixed >> 32) % (uint64_t)all) : 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t p = (begin + i * all / count) % all;
        float *to = rows + (size_t)i * g->n;
        if (g->key.conv)
            read_row(&g->key, s, p, to);
        else
            memcpy(to, s->x + p * s->pixel_step, g->n * sizeof(*to));
    }
    return (size_t)count;
}

/* ---- sums ---- */

/* Scratch for one sample. */
typedef struct work {
    float *rows, *transposed, *packed, *product, *bias;
    ptrdiff_t *at;
} work;

static int make_work(qsim_calibration *c, const qs_gram *g, work *w) {
    const size_t panel = c->ctx->kernels->f32->panel, wide = qs_align(g->n, 64) + 64;
    const size_t rows = ROWS * g->n + 64;
    size_t packed;
    if (!qk_pack_f32_size(panel, ROWS, g->n, &packed))
        return QSIM_E_NOMEM;
    packed = qs_align(packed, 16);
    const size_t floats = 2 * qs_align(rows, 16) + packed + qs_align(g->n * g->n, 16) + wide;
    const size_t need = floats * sizeof(float) + g->n * sizeof(ptrdiff_t);
    if (c->gram_bytes < need) {
        qs_free(c->ctx, c->gram_scratch);
        c->gram_scratch = qs_alloc(c->ctx, need, 1);
        c->gram_bytes = c->gram_scratch ? need : 0;
    }
    if (!c->gram_scratch)
        return QSIM_E_NOMEM;
    w->at = c->gram_scratch;
    w->rows = (float *)(void *)(w->at + g->n);
    w->transposed = w->rows + qs_align(rows, 16);
    w->packed = w->transposed + qs_align(rows, 16);
    w->product = w->packed + packed;
    w->bias = w->product + qs_align(g->n * g->n, 16);
    for (size_t i = 0; i < wide; i++)
        w->bias[i] = -0.0f;
    return QSIM_OK;
}

/* sum += rows^T rows, by the kernel of float products, whose bits are the same everywhere. */
static void add_rows(const qsim_calibration *c, qs_gram *g, work *w, size_t count) {
    const qk_f32 *k = c->ctx->kernels->f32;
    const qk_pack_source source = {w->rows, 1, (ptrdiff_t)g->n, 0, 1};
    double *mean = g->sum + g->n * g->n;
    for (size_t i = 0; i < g->n; i++) {
        float sum = 0;
        w->at[i] = (ptrdiff_t)(i * count);
        for (size_t r = 0; r < count; r++) {
            w->transposed[i * count + r] = w->rows[r * g->n + i];
            sum += w->rows[r * g->n + i];
        }
        mean[i] += (double)sum;
    }
    qk_pack_f32(w->packed, k->panel, count, g->n, &source);
    const qk_gemm_f32 job = {.a = w->transposed,
                             .row = w->at,
                             .seg = (const ptrdiff_t[]){0},
                             .rows = g->n,
                             .segs = 1,
                             .k = count,
                             .b = w->packed,
                             .bias = w->bias,
                             .cols = g->n,
                             .lo = -INFINITY,
                             .hi = INFINITY,
                             .c = w->product,
                             .ldc = g->n};
    qs_gemm_f32(c->ctx, k, &job);
    for (size_t i = 0; i < g->n * g->n; i++)
        g->sum[i] += (double)w->product[i];
    g->rows += count;
}

/* Saves the sums before the first sample of a batch. */
static int save_sums(qsim_calibration *c, qs_gram *g) {
    const size_t count = (g->n + 1) * g->n;
    if (g->changed)
        return QSIM_OK;
    if (!g->kept && !(g->kept = qs_alloc(c->ctx, count, sizeof(*g->kept))))
        return QSIM_E_NOMEM;
    memcpy(g->kept, g->sum, count * sizeof(*g->sum));
    g->kept_rows = g->rows;
    g->changed = true;
    return QSIM_OK;
}

int qs_gram_add(qsim_calibration *c, size_t index, const qsim_tensor *t, bool channels_last,
                int64_t first, int64_t samples) {
    const bool per_sample =
        c->batch_axis == 0 && samples > 0 && t->rank > 0 && t->dims[0] % samples == 0;
    const int64_t parts = per_sample ? samples : 1;
    int code = QSIM_OK;
    for (size_t i = 0; i < c->gram_count && !code; i++) {
        qs_gram *g = &c->grams[i];
        work w = {0};
        sample s;
        if (g->tensor != index)
            continue;
        code = save_sums(c, g);
        if (!code)
            code = make_work(c, g, &w);
        for (int64_t at = 0; at < parts && !code && !qs_stop_code(c->ctx); at++)
            if (find_layout(g, t, channels_last, parts, at, &s)) {
                const size_t count = read_rows(g, &s, first + at, w.rows);
                add_rows(c, g, &w, count);
            }
    }
    return code;
}

void qs_gram_end_batch(qsim_calibration *c, bool counts) {
    for (size_t i = 0; i < c->gram_count; i++) {
        qs_gram *g = &c->grams[i];
        if (g->changed && !counts) {
            memcpy(g->sum, g->kept, (g->n + 1) * g->n * sizeof(*g->sum));
            g->rows = g->kept_rows;
        }
        g->changed = false;
    }
}

void qs_gram_merge(qsim_calibration *into, const qsim_calibration *from) {
    for (size_t i = 0; i < into->gram_count; i++) {
        qs_gram *g = &into->grams[i];
        const qs_gram *other = find(from, &g->key);
        const bool fits = other && other->n == g->n && other->rows > 0;
        for (size_t k = 0; fits && k < (g->n + 1) * g->n; k++)
            g->sum[k] += other->sum[k];
        g->rows = fits ? g->rows + other->rows : 0;
    }
}
