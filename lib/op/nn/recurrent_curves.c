/* SPDX-License-Identifier: MIT */
/* The activations of recurrent layers. */
#include <math.h>

#include "kernel/elementary64.h"
#include "op/nn/recurrent.h"

/* Activations that no operator has, or that an operator defines differently. */
static void affine(const qk_ew *k, const double *param, const float *x, float *y, size_t n) {
    const float a = (float)param[0], b = (float)param[1];
    (void)k;
    for (size_t i = 0; i < n; i++)
        y[i] = a * x[i] + b;
}

/* Unlike the operator, keeps an element equal to alpha. */
static void thresholded_relu(const qk_ew *k, const double *param, const float *x, float *y,
                             size_t n) {
    const float a = (float)param[0];
    (void)k;
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] < a ? 0.0f : x[i];
}

static void scaled_tanh(const qk_ew *k, const double *param, const float *x, float *y, size_t n) {
    const float a = (float)param[0], b = (float)param[1];
    for (size_t i = 0; i < n; i++)
        y[i] = b * x[i];
    k->tanh(y, y, n);
    for (size_t i = 0; i < n; i++)
        y[i] = a * y[i];
}

/* ---- of doubles ---- */

#define CURVE64(name, value)                                                                       \
    static double name##64(const double *param, double v) {                                        \
        (void)param;                                                                               \
        return value;                                                                              \
    }
CURVE64(sigmoid, 1 / (1 + qk_exp64(-v)))
CURVE64(tanh, qk_tanh64(v))
CURVE64(relu, v < 0 ? 0 : v)
CURVE64(affine, param[0] * v + param[1])
CURVE64(leaky_relu, v < 0 ? param[0] * v : v)
CURVE64(thresholded_relu, v < param[0] ? 0 : v)
CURVE64(scaled_tanh, param[0] * qk_tanh64(param[1] * v))
CURVE64(elu, v < 0 ? param[0] * qk_expm164(v) : v)
CURVE64(softsign, v / (1 + fabs(v)))
CURVE64(softplus, (v > 0 ? v : 0) + qk_log1p64(qk_exp64(-fabs(v))))

static double hard_sigmoid64(const double *param, double v) {
    v = param[0] * v + param[1];
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* ---- the table ---- */

typedef struct curve_row {
    const char *name;
    bool has_alpha, has_beta;
    double (*wide)(const double *param, double v);
    qs_curve own; /* fn NULL: the curve of the operator of that name */
} curve_row;

static const curve_row curves[] = {
    {"Sigmoid", false, false, sigmoid64, {0}},
    {"Tanh", false, false, tanh64, {0}},
    {"Relu", false, false, relu64, {0}},
    {"Affine", true, true, affine64, {affine, {1.0, 0.0}}},
    {"LeakyRelu", true, false, leaky_relu64, {0}},
    {"ThresholdedRelu", true, false, thresholded_relu64, {thresholded_relu, {1.0, 0.0}}},
    {"ScaledTanh", true, true, scaled_tanh64, {scaled_tanh, {1.0, 1.0}}},
    {"HardSigmoid", true, true, hard_sigmoid64, {0}},
    {"Elu", true, false, elu64, {0}},
    {"Softsign", false, false, softsign64, {0}},
    {"Softplus", false, false, softplus64, {0}},
};

static char lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Ignores case, on which exporters do not agree. */
static const curve_row *find_curve(qs_span name) {
    for (size_t i = 0; i < QS_COUNT(curves); i++) {
        const char *want = curves[i].name;
        bool same = strlen(want) == name.size;
        for (size_t k = 0; k < name.size && same; k++)
            same = lower_case(want[k]) == lower_case((char)name.data[k]);
        if (same)
            return &curves[i];
    }
    return NULL;
}

/* The next element of a list of parameters, or the fallback. */
static double next(const qs_attr *list, int32_t *used, bool takes, double fallback) {
    return takes && list && *used < list->count ? (double)list->u.floats[(*used)++] : fallback;
}

static const curve_row *default_curve(qs_cell cell, int32_t gate) {
    return &curves[cell != QS_RNN && gate == 0 ? 0 : 1]; /* Sigmoid, else Tanh */
}

QS_COLD int qs_activations_read(const qs_infer *x, qs_recurrent *r) {
    const qs_attr *names = qs_node_attr(x->node, "activations");
    const qs_attr *alphas = qs_node_attr(x->node, "activation_alpha");
    const qs_attr *betas = qs_node_attr(x->node, "activation_beta");
    const int32_t each = r->cell == QS_LSTM ? 3 : r->cell == QS_GRU ? 2 : 1;
    int32_t alpha = 0, beta = 0;
    if (names && names->count != each * r->directions)
        return qs_infer_fail(x, QSIM_E_VALUE, "%d activations, expected %d", (int)names->count,
                             (int)(each * r->directions));
    for (int32_t i = 0; i < each * r->directions; i++) {
        const curve_row *row = default_curve(r->cell, i % each);
        if (names)
            row = find_curve(names->u.strings[i]);
        if (!row)
            return qs_infer_fail(
                x, QSIM_E_UNSUPPORTED, "activation '%.*s' is not supported",
                (int)(names->u.strings[i].size < 40 ? names->u.strings[i].size : 40),
                (const char *)names->u.strings[i].data);
        qs_curve c = row->own.fn ? row->own : qs_curve_find(row->name);
        c.param[0] = next(alphas, &alpha, row->has_alpha, c.param[0]);
        c.param[1] = next(betas, &beta, row->has_beta, c.param[1]);
        r->act[i / each][i % each] = c;
        r->act64[i / each][i % each] = (qs_curve64){row->wide, {c.param[0], c.param[1]}};
    }
    return QSIM_OK;
}

static float clamp(float v, float lo, float hi) {
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

void qs_activate(const qk_ew *kernels, const qs_curve *act, float clip, float *restrict x,
                 float *restrict y, size_t n) {
    for (size_t i = 0; i < n && clip < INFINITY; i++)
        x[i] = clamp(x[i], -clip, clip);
    qs_curve_run(act, kernels, x, y, n);
}
