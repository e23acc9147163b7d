/* SPDX-License-Identifier: MIT */
/* The activations of recurrent layers. */
#include <math.h>

#include "op/nn/recurrent.h"

typedef struct curve_row {
    const char *name;
    qs_curve curve;
    bool has_alpha, has_beta;
    float alpha, beta; /* defaults */
} curve_row;

static const curve_row curves[] = {
    {"Sigmoid", QS_CURVE_SIGMOID, false, false, 0, 0},
    {"Tanh", QS_CURVE_TANH, false, false, 0, 0},
    {"Relu", QS_CURVE_RELU, false, false, 0, 0},
    {"Affine", QS_CURVE_AFFINE, true, true, 1.0f, 0},
    {"LeakyRelu", QS_CURVE_LEAKY_RELU, true, false, 0.01f, 0},
    {"ThresholdedRelu", QS_CURVE_THRESHOLDED_RELU, true, false, 1.0f, 0},
    {"ScaledTanh", QS_CURVE_SCALED_TANH, true, true, 1.0f, 1.0f},
    {"HardSigmoid", QS_CURVE_HARD_SIGMOID, true, true, 0.2f, 0.5f},
    {"Elu", QS_CURVE_ELU, true, false, 1.0f, 0},
    {"Softsign", QS_CURVE_SOFTSIGN, false, false, 0, 0},
};

static char lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Exporters do not agree on capitals. */
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

/* The next of a list of parameters. */
static float next(const qs_attr *list, int32_t *used, bool takes, float fallback) {
    return takes && list && *used < list->count ? list->u.floats[(*used)++] : fallback;
}

QS_COLD int qs_activations_read(const qs_infer *x, qs_recurrent *r) {
    static const qs_curve fallback[] = {QS_CURVE_SIGMOID, QS_CURVE_TANH, QS_CURVE_TANH};
    const qs_attr *names = qs_node_attr(x->node, "activations");
    const qs_attr *alphas = qs_node_attr(x->node, "activation_alpha");
    const qs_attr *betas = qs_node_attr(x->node, "activation_beta");
    const int32_t each = r->cell == QS_LSTM ? 3 : r->cell == QS_GRU ? 2 : 1;
    int32_t alpha = 0, beta = 0;
    if (names && names->count != each * r->directions)
        return qs_infer_fail(x, QSIM_E_VALUE, "%d activations, expected %d", (int)names->count,
                             (int)(each * r->directions));
    for (int32_t i = 0; i < each * r->directions; i++) {
        const curve_row *row = &curves[r->cell == QS_RNN ? QS_CURVE_TANH : fallback[i % each]];
        if (names)
            row = find_curve(names->u.strings[i]);
        if (!row)
            return qs_infer_fail(
                x, QSIM_E_UNSUPPORTED, "activation '%.*s' is not supported",
                (int)(names->u.strings[i].size < 40 ? names->u.strings[i].size : 40),
                (const char *)names->u.strings[i].data);
        r->act[i / each][i % each] =
            (qs_activation){row->curve, next(alphas, &alpha, row->has_alpha, row->alpha),
                            next(betas, &beta, row->has_beta, row->beta)};
    }
    return QSIM_OK;
}

static float clamp(float v, float lo, float hi) {
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

#define EACH(expression)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        const float v = x[i];                                                                      \
        y[i] = (expression);                                                                       \
    }                                                                                              \
    break

void qs_activate(const qk_ew *kernels, const qs_activation *act, float clip, float *restrict x,
                 float *restrict y, size_t n) {
    const float a = act->alpha, b = act->beta;
    for (size_t i = 0; i < n && clip < INFINITY; i++)
        x[i] = clamp(x[i], -clip, clip);
    switch (act->curve) {
    case QS_CURVE_SIGMOID: kernels->sigmoid(x, y, n); break;
    case QS_CURVE_TANH: kernels->tanh(x, y, n); break;
    case QS_CURVE_RELU: EACH(v < 0.0f ? 0.0f : v);
    case QS_CURVE_AFFINE: EACH(a * v + b);
    case QS_CURVE_LEAKY_RELU: EACH(v < 0.0f ? a * v : v);
    case QS_CURVE_THRESHOLDED_RELU: EACH(v < a ? 0.0f : v);
    case QS_CURVE_SCALED_TANH:
        for (size_t i = 0; i < n; i++)
            x[i] = b * x[i];
        kernels->tanh(x, y, n);
        for (size_t i = 0; i < n; i++)
            y[i] = a * y[i];
        break;
    case QS_CURVE_HARD_SIGMOID: EACH(clamp(a * v + b, 0.0f, 1.0f));
    case QS_CURVE_ELU:
        kernels->exp(x, y, n);
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] < 0.0f ? a * (y[i] - 1.0f) : x[i];
        break;
    case QS_CURVE_SOFTSIGN: EACH(v / (1.0f + fabsf(v)));
    }
}
