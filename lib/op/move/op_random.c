/* SPDX-License-Identifier: MIT */
/*
 * RandomNormal, RandomUniform, the same Like a tensor, Bernoulli and Multinomial. Element i of a
 * result depends on the seed, the node's name and i alone (and on a Loop's iteration), so that
 * threads, instruction sets, levels and quantization do not change it.
 */
#include <assert.h>
#include "op/move/random.h"
#include "op/rules.h"
#include "op/signal/fourier.h"

#include "kernel/elementary.h"
#include "tensor/minifloat.h"

/* ---- numbers ---- */

QS_COLD void qs_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c[4], k0 = key[0], k1 = key[1];
    memcpy(c, counter, sizeof(c));
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9, k1 += 0xbb67ae85) {
        const uint64_t a = (uint64_t)c[0] * 0xd2511f53, b = (uint64_t)c[2] * 0xcd9e8d57;
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[3] = (uint32_t)a;
    }
    memcpy(out, c, sizeof(c));
}

typedef struct random_params {
    int32_t dtype, x_dtype;
    bool seeded; /* by the node's attribute, which is `key` then */
    bool normal;
    double a, b;     /* y = a + b x, of a normal or uniform x */
    uint64_t stream; /* without the attribute: the node's name, hashed */
    uint64_t key;
    int32_t bits; /* of a uniform number, so that all are different numbers of `dtype` below 1 */
    size_t elements, classes, samples;
} random_params;

/* A node's random numbers in one execution. */
typedef struct numbers {
    const random_params *p;
    uint64_t key;
    const void *x; /* of Bernoulli, Multinomial */
    void *y;
} numbers;

QS_COLD static numbers numbers_of(const qs_step *s, const qs_frame *f) {
    const random_params *p = s->params;
    return (numbers){.p = p,
                     .key = (p->seeded ? p->key : f->seed) + f->turn,
                     .x = p->x_dtype ? qs_step_in(s, f, 0) : NULL,
                     .y = qs_step_out(s, f, 0)};
}

/* Draws 128 random bits. */
QS_COLD static void draw(const numbers *n, uint64_t block, uint64_t out[2]) {
    const uint64_t stream = n->p->stream;
    const uint32_t key[2] = {(uint32_t)n->key, (uint32_t)(n->key >> 32)};
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                 (uint32_t)(stream >> 32)};
    uint32_t words[4];
    qs_philox(counter, key, words);
    for (int i = 0; i < 2; i++)
        out[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
}

/* Numbers 2 block and 2 block + 1: uniform in [0, 1), or normal by Box and Muller's formula. */
QS_COLD static void draw_pair(const numbers *n, uint64_t block, double pair[2]) {
    const size_t turns = (size_t)1 << 31;
    uint64_t bits[2];
    draw(n, block, bits);
    if (!n->p->normal) {
        const double unit = 1.0 / (double)(UINT64_C(1) << n->p->bits);
        for (int i = 0; i < 2; i++)
            pair[i] = (double)(bits[i] >> (64 - n->p->bits)) * unit;
        return;
    }
    const double radius = sqrt(-2.0 * qk_log64((double)((bits[0] >> 11) + 1) * 0x1p-53));
    const qs_complex turn = qs_turn((size_t)(bits[1] >> 33), turns);
    pair[0] = radius * turn.re;
    pair[1] = radius * turn.im;
}

/* ---- RandomNormal, RandomUniform ---- */

#define T_RANDOM (QS_T_REAL | QS_T(QSIM_FLOAT16) | QS_T(QSIM_BFLOAT16))

/* Gives output 0 the type of attribute "dtype" or, without it, `fallback`. */
QS_COLD static int infer_typed(const qs_infer *x, int32_t fallback, uint32_t types, int32_t rank,
                               const qs_dim *dims) {
    const int64_t dtype = qs_node_int(x->node, "dtype", fallback);
    if (dtype && (dtype < 0 || dtype >= 32 || !(types & QS_T(dtype))))
        return qs_infer_fail(x, QSIM_E_DTYPE, "random numbers of type %lld are not supported",
                             (long long)dtype);
    return qs_infer_out(x, 0, (int32_t)dtype, rank, dims);
}

QS_COLD static int infer_like(qs_infer *x) {
    return infer_typed(x, x->in[0]->dtype, T_RANDOM, x->in[0]->rank, x->in[0]->dims);
}

QS_COLD static int infer_shaped(qs_infer *x) {
    int64_t shape[QSIM_MAX_RANK];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t count;
    int code = qs_infer_attr_ints(x, "shape", shape, QSIM_MAX_RANK, &count);
    for (int32_t i = 0; i < count && !code; i++) {
        dims[i] = (qs_dim){shape[i], NULL};
        if (shape[i] < 0)
            code = qs_infer_fail(x, QSIM_E_VALUE, "axis %d of the shape is %lld", (int)i,
                                 (long long)shape[i]);
    }
    if (!code && count == QS_ABSENT)
        code = qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is missing", "shape");
    return code ? code : infer_typed(x, QSIM_FLOAT, T_RANDOM, count, dims);
}

QS_COLD static void fill(const void *arg, size_t begin, size_t end) {
    const numbers *n = arg;
    const random_params *p = n->p;
    double pair[2];
    for (size_t i = begin; i < end; i++) {
        if (i == begin || i % 2 == 0)
            draw_pair(n, i / 2, pair);
        const double v = p->a + p->b * pair[i % 2];
        if (p->dtype == QSIM_FLOAT)
            ((float *)n->y)[i] = (float)v;
        else if (p->dtype == QSIM_DOUBLE)
            ((double *)n->y)[i] = v;
        else
            ((uint16_t *)n->y)[i] =
                (uint16_t)qs_minifloat_bits(qs_minifloat_of(p->dtype), v, false);
    }
}

#define RANDOM_GRAIN 256 /* elements that take about QS_SLICE_NS */

QS_COLD static void run_fill(const qs_step *s, const qs_frame *f) {
    const numbers n = numbers_of(s, f);
    qs_ranges(f->ctx, n.p->elements, RANDOM_GRAIN, fill, &n);
}

/* Bits of the fraction of a type of floats, with the leading one. */
QS_COLD static int32_t precision_of(int32_t dtype) {
    const qs_minifloat *narrow = qs_minifloat_of(dtype);
    return narrow ? narrow->mantissa + 1 : dtype == QSIM_FLOAT ? 24 : 53;
}

/* Parameters of a step that draws uniform numbers of 53 bits; NULL: out of memory. */
QS_COLD static random_params *make_params(qs_lower *l, qs_step_fn run) {
    random_params *p = qs_lower_params(l, sizeof(*p));
    const qs_attr *seed = qs_node_attr(l->node, "seed");
    if (!p)
        return NULL;
    p->dtype = qs_lower_out(l, 0)->dtype;
    p->x_dtype = l->node->input_count ? qs_lower_in(l, 0)->dtype : QSIM_UNDEFINED;
    p->bits = 53;
    p->elements = qs_value_elements(qs_lower_out(l, 0));
    p->seeded = seed != NULL;
    if (seed)
        p->key = qk_bits(seed->u.f);
    for (const char *c = l->node->name; *c && !seed; c++)
        p->stream = (p->stream ^ (uint8_t)*c) * UINT64_C(0x100000001b3); /* as FNV-1 mixes */
    l->step->run = run;
    return p;
}

QS_COLD static int lower_normal(qs_lower *l) {
    random_params *p = make_params(l, run_fill);
    if (!p)
        return QSIM_E_NOMEM;
    p->normal = true;
    p->a = (double)qs_node_float(l->node, "mean", 0.0f);
    p->b = (double)qs_node_float(l->node, "scale", 1.0f);
    return QSIM_OK;
}

QS_COLD static int lower_uniform(qs_lower *l) {
    random_params *p = make_params(l, run_fill);
    if (!p)
        return QSIM_E_NOMEM;
    p->bits = precision_of(p->dtype);
    p->a = (double)qs_node_float(l->node, "low", 0.0f);
    p->b = (double)qs_node_float(l->node, "high", 1.0f) - p->a;
    return QSIM_OK;
}

/* RandomNormalLike and Bernoulli have some of RandomNormal's attributes. */
static const qs_attr_rule normal_attrs[] = {{"shape", QSIM_ATTR_INTS, 1, 0},
                                            {"mean", QSIM_ATTR_FLOAT, 1, 0},
                                            {"scale", QSIM_ATTR_FLOAT, 1, 0},
                                            {"dtype", QSIM_ATTR_INT, 1, 0},
                                            {"seed", QSIM_ATTR_FLOAT, 1, 0}};
static const qs_attr_rule uniform_attrs[] = {{"shape", QSIM_ATTR_INTS, 1, 0},
                                             {"low", QSIM_ATTR_FLOAT, 1, 0},
                                             {"high", QSIM_ATTR_FLOAT, 1, 0},
                                             {"dtype", QSIM_ATTR_INT, 1, 0},
                                             {"seed", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(random_normal, .name = "RandomNormal", .min_in = 0, QS_ATTRS(normal_attrs),
      .traits = QS_RANDOM, .kernel = QS_KERNEL_RANDOM, .infer = infer_shaped,
      .lower = lower_normal);
QS_OP(random_normal_like, .name = "RandomNormalLike", .min_in = 1, .attrs = normal_attrs + 1,
      .attr_count = 4, .traits = QS_RANDOM | QS_READS_EXACTLY, .setting_inputs = 1 << 0,
      .kernel = QS_KERNEL_RANDOM, .infer = infer_like, .lower = lower_normal);
QS_OP(random_uniform, .name = "RandomUniform", .min_in = 0, QS_ATTRS(uniform_attrs),
      .traits = QS_RANDOM, .kernel = QS_KERNEL_RANDOM, .infer = infer_shaped,
      .lower = lower_uniform);
QS_OP(random_uniform_like, .name = "RandomUniformLike", .min_in = 1, .attrs = uniform_attrs + 1,
      .attr_count = 4, .traits = QS_RANDOM | QS_READS_EXACTLY, .setting_inputs = 1 << 0,
      .kernel = QS_KERNEL_RANDOM, .infer = infer_like, .lower = lower_uniform);

/* ---- Bernoulli ---- */

QS_COLD static int infer_bernoulli(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_REAL);
    return code ? code
                : infer_typed(x, x->in[0]->dtype, T_RANDOM | QS_T_INT | QS_T(QSIM_BOOL),
                              x->in[0]->rank, x->in[0]->dims);
}

/* The bits of the number 1. */
QS_COLD static uint64_t one_of(int32_t dtype) {
    const double real = 1.0;
    const qs_minifloat *narrow = qs_minifloat_of(dtype);
    uint64_t one = 1;
    if (dtype == QSIM_DOUBLE)
        memcpy(&one, &real, sizeof(one));
    else if (dtype == QSIM_FLOAT)
        one = qk_bits(1.0f);
    else if (narrow)
        one = qs_minifloat_bits(narrow, real, false);
    return one;
}

QS_COLD static double real_at(const numbers *n, size_t i) {
    return n->p->x_dtype == QSIM_DOUBLE ? ((const double *)n->x)[i]
                                        : (double)((const float *)n->x)[i];
}

QS_COLD static void toss(const void *arg, size_t begin, size_t end) {
    const numbers *n = arg;
    const uint64_t one = one_of(n->p->dtype);
    const size_t size = qs_dtype_bytes(n->p->dtype);
    double pair[2];
    for (size_t i = begin; i < end; i++) {
        if (i == begin || i % 2 == 0)
            draw_pair(n, i / 2, pair);
        const uint64_t bits = pair[i % 2] < real_at(n, i) ? one : 0;
        memcpy((char *)n->y + i * size, &bits, size); /* little-endian */
    }
}

QS_COLD static void run_bernoulli(const qs_step *s, const qs_frame *f) {
    const numbers n = numbers_of(s, f);
    qs_ranges(f->ctx, n.p->elements, RANDOM_GRAIN, toss, &n);
}

QS_COLD static int lower_bernoulli(qs_lower *l) {
    return make_params(l, run_bernoulli) ? QSIM_OK : QSIM_E_NOMEM;
}

QS_OP(bernoulli, .name = "Bernoulli", .since = 15, .min_in = 1, .attrs = normal_attrs + 3,
      .attr_count = 2, .traits = QS_RANDOM | QS_READS_EXACTLY, .kernel = QS_KERNEL_RANDOM,
      .infer = infer_bernoulli, .lower = lower_bernoulli);

/* ---- Multinomial ---- */

QS_COLD static int infer_multinomial(qs_infer *x) {
    const qs_value *in = x->in[0];
    const int64_t samples = qs_node_int(x->node, "sample_size", 1);
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_rank(x, 0, 2);
    if (!code && samples < 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "sample_size is %lld", (long long)samples);
    const qs_dim dims[2] = {in->rank == 2 ? in->dims[0] : (qs_dim){-1, NULL}, {samples, NULL}};
    return code ? code : infer_typed(x, QSIM_INT32, QS_T(QSIM_INT32) | QS_T(QSIM_INT64), 2, dims);
}

/* Fills sums[i] with e^x[0] + ... + e^x[i], divided by e^(the greatest x). */
QS_COLD static bool add_up(const numbers *n, const qsim_ctx *ctx, size_t row, double *sums) {
    const size_t classes = n->p->classes, from = row * classes;
    double most = -INFINITY, sum = 0;
    for (size_t c = 0; c < classes && !qs_stopped_at(ctx, c); c++)
        most = real_at(n, from + c) > most ? real_at(n, from + c) : most;
    for (size_t c = 0; c < classes && !qs_stopped_at(ctx, c); c++)
        sums[c] = sum += qk_exp64(real_at(n, from + c) - most);
    return sum > 0;
}

/* The first class whose sum is above `at`. */
QS_COLD static size_t class_of(const double *sums, size_t classes, double at) {
    size_t begin = 0, end = classes - 1;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (sums[middle] > at)
            end = middle;
        else
            begin = middle + 1;
    }
    return begin;
}

QS_COLD static void run_multinomial(const qs_step *s, const qs_frame *f) {
    const numbers n = numbers_of(s, f);
    const size_t samples = n.p->samples;
    double *sums = f->scratch, pair[2];
    for (size_t i = 0; i < n.p->elements && !qs_stopped_at(f->ctx, i); i++) {
        assert(n.x && n.y);
        if (i % samples == 0 && !add_up(&n, f->ctx, i / samples, sums)) {
            qs_step_fails(f); /* every class is impossible, or a number is NaN */
            return;
        }
        if (i % 2 == 0)
            draw_pair(&n, i / 2, pair);
        const size_t c = class_of(sums, n.p->classes, pair[i % 2] * sums[n.p->classes - 1]);
        if (n.p->dtype == QSIM_INT64)
            ((int64_t *)n.y)[i] = (int64_t)c;
        else
            ((int32_t *)n.y)[i] = (int32_t)c;
    }
}

QS_COLD static int lower_multinomial(qs_lower *l) {
    random_params *p = make_params(l, run_multinomial);
    if (!p)
        return QSIM_E_NOMEM;
    p->classes = (size_t)qs_lower_in(l, 0)->dims[1].size;
    p->samples = (size_t)qs_lower_out(l, 0)->dims[1].size;
    return qs_mul(p->classes, sizeof(double), &l->step->scratch) ? QSIM_OK : QSIM_E_LIMIT;
}

static const qs_attr_rule multinomial_attrs[] = {{"sample_size", QSIM_ATTR_INT, 7, 0},
                                                 {"dtype", QSIM_ATTR_INT, 7, 0},
                                                 {"seed", QSIM_ATTR_FLOAT, 7, 0}};

QS_OP(multinomial, .name = "Multinomial", .since = 7, .min_in = 1, QS_ATTRS(multinomial_attrs),
      .traits = QS_RANDOM | QS_READS_EXACTLY, .kernel = QS_KERNEL_RANDOM,
      .infer = infer_multinomial, .lower = lower_multinomial);
