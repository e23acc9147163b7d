/* SPDX-License-Identifier: MIT */
/*
 * HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: tables for spectra, computed in
 * double and rounded, integers toward 0.
 */
#include "op/rules.h"
#include "op/signal/fourier.h"

#include "kernel/elementary.h"

QS_COLD static int32_t output_type(const qs_node *n) {
    return (int32_t)qs_node_int(n, "output_datatype", QSIM_FLOAT);
}

QS_COLD static int check_output_type(const qs_infer *x) {
    const int64_t type = qs_node_int(x->node, "output_datatype", QSIM_FLOAT);
    return type > 0 && type < 32 && (QS_T_ARITH & QS_T(type))
               ? QSIM_OK
               : qs_infer_fail(x, QSIM_E_DTYPE, "output_datatype %lld is not supported here",
                               (long long)type);
}

QS_COLD static void put(int32_t dtype, void *y, size_t i, double v) {
    switch (dtype) {
    case QSIM_FLOAT: ((float *)y)[i] = (float)v; break;
    case QSIM_DOUBLE: ((double *)y)[i] = v; break;
    case QSIM_INT8:
    case QSIM_UINT8: ((uint8_t *)y)[i] = (uint8_t)(int)v; break;
    case QSIM_INT16:
    case QSIM_UINT16: ((uint16_t *)y)[i] = (uint16_t)(int)v; break;
    case QSIM_INT32:
    case QSIM_UINT32: ((uint32_t *)y)[i] = (uint32_t)(int)v; break;
    default: ((uint64_t *)y)[i] = (uint64_t)(int)v; break;
    }
}

/* Reads a single integer; *known: it is constant, else *out is -1. */
QS_COLD static int read_size(const qs_infer *x, int32_t index, int64_t *out, bool *known) {
    int32_t count;
    *out = -1;
    int code = qs_infer_ints(x, index, out, 1, &count);
    *known = count == 1;
    if (!code && count == 0)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "input %d is empty, expected a number", (int)index);
    if (!code && *known && *out < 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "input %d is %lld", (int)index, (long long)*out);
    return code;
}

/* ---- windows ---- */

QS_COLD static int infer_window(qs_infer *x) {
    int64_t size;
    bool known;
    int code = check_output_type(x);
    if (!code)
        code = read_size(x, 0, &size, &known);
    if (!code && size > INT32_MAX)
        return qs_infer_fail(x, QSIM_E_LIMIT, "a window of %lld numbers", (long long)size);
    return code ? code : qs_infer_out(x, 0, output_type(x->node), 1, &(qs_dim){size, NULL});
}

/* w[k] = a - b cos(2 pi k / period) + c cos(4 pi k / period) */
typedef struct window_params {
    int32_t dtype;
    size_t size, period;
    double a, b, c;
} window_params;

QS_COLD static void run_window(const qs_step *s, const qs_frame *f) {
    const window_params *p = s->params;
    void *y = qs_step_out(s, f, 0);
    if (p->period == 0) { /* a symmetric window of one number: its middle */
        put(p->dtype, y, 0, 1.0);
        return;
    }
    for (size_t k = 0; k < p->size; k++) {
        const double one = qs_turn(k % p->period, p->period).re;
        const double two = qs_turn(k * 2 % p->period, p->period).re;
        put(p->dtype, y, k, p->a - p->b * one + p->c * two);
    }
}

QS_COLD static int lower_window(qs_lower *l, double a, double b, double c) {
    window_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    const bool periodic = qs_node_int(l->node, "periodic", 1) != 0;
    const size_t size = qs_value_elements(qs_lower_out(l, 0));
    *p = (window_params){output_type(l->node), size, size, a, b, c};
    if (!periodic && size > 0)
        p->period = size - 1;
    else if (size == 0)
        p->period = 1;
    l->step->run = run_window;
    return QSIM_OK;
}

QS_COLD static int lower_hann(qs_lower *l) {
    return lower_window(l, 0.5, 0.5, 0);
}
QS_COLD static int lower_hamming(qs_lower *l) {
    return lower_window(l, 25.0 / 46, 21.0 / 46, 0);
}
QS_COLD static int lower_blackman(qs_lower *l) {
    return lower_window(l, 0.42, 0.5, 0.08);
}

static const qs_attr_rule window_attrs[] = {{"output_datatype", QSIM_ATTR_INT, 17, 0},
                                            {"periodic", QSIM_ATTR_INT, 17, 0}};

QS_OP(hannwindow, .name = "HannWindow", .since = 17, .min_in = 1, QS_ATTRS(window_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 0, .kernel = QS_KERNEL_WINDOW, .infer = infer_window,
      .lower = lower_hann);
QS_OP(hammingwindow, .name = "HammingWindow", .since = 17, .min_in = 1, QS_ATTRS(window_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 0, .kernel = QS_KERNEL_WINDOW, .infer = infer_window,
      .lower = lower_hamming);
QS_OP(blackmanwindow, .name = "BlackmanWindow", .since = 17, .min_in = 1, QS_ATTRS(window_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 0, .kernel = QS_KERNEL_WINDOW, .infer = infer_window,
      .lower = lower_blackman);

/* ---- MelWeightMatrix ---- */

QS_COLD static int infer_mel(qs_infer *x) {
    int64_t bins, length;
    bool bins_known, length_known;
    int code = check_output_type(x);
    if (!code)
        code = read_size(x, 0, &bins, &bins_known);
    if (!code)
        code = read_size(x, 1, &length, &length_known);
    if (!code)
        code = qs_infer_type(x, 2, QS_T(QSIM_INT32) | QS_T(QSIM_INT64));
    for (int32_t i = 3; i < 5 && !code; i++)
        code = qs_infer_type(x, i, QS_T_REAL);
    for (int32_t i = 2; i < 5 && !code; i++)
        if (!qs_is_single(x->in[i]))
            code = qs_infer_fail(x, QSIM_E_SHAPE, "input %d is not a single number", (int)i);
    if (!code && (bins > INT32_MAX || length > INT32_MAX))
        code = qs_infer_fail(x, QSIM_E_LIMIT, "a matrix for %lld bins of %lld points",
                             (long long)bins, (long long)length);
    if (code)
        return code;
    const qs_dim dims[2] = {{length_known ? length / 2 + 1 : -1, NULL}, {bins, NULL}};
    return qs_infer_out(x, 0, output_type(x->node), 2, dims);
}

typedef struct mel_params {
    int32_t dtype, length_type, rate_type, edge_types[2];
    size_t rows, bins;
} mel_params;

QS_COLD static double integer_of(const void *x, int32_t dtype) {
    return dtype == QSIM_INT32 ? *(const int32_t *)x : (double)*(const int64_t *)x;
}

QS_COLD static double real_of(const void *x, int32_t dtype) {
    return dtype == QSIM_DOUBLE ? *(const double *)x : (double)*(const float *)x;
}

#define LOG_10 2.30258509299404568402

QS_COLD static double mel_of(double hertz) {
    return 2595.0 * (qk_log64(1.0 + hertz / 700.0) / LOG_10);
}

QS_COLD static double hertz_of(double mel) {
    return 700.0 * (qk_exp64(mel / 2595.0 * LOG_10) - 1.0);
}

/* A row of the matrix as an integer that fits; rows outside the matrix are cut off later. */
QS_COLD static int64_t row_of(double position) {
    const double most = 1e15;
    return (int64_t)floor(position < -most ? -most : position > most ? most : position);
}

/* Writes one column: a triangle that rises from row `low` to `mid` and falls to `high`. */
QS_COLD static void put_triangle(const mel_params *p, void *y, size_t column, int64_t low,
                                 int64_t mid, int64_t high) {
    const int64_t rows = (int64_t)p->rows;
    if (mid == low && mid >= 0 && mid < rows)
        put(p->dtype, y, (size_t)mid * p->bins + column, 1.0);
    for (int64_t j = low < 0 ? 0 : low; low < mid && j <= mid && j < rows; j++)
        put(p->dtype, y, (size_t)j * p->bins + column, (double)(j - low) / (double)(mid - low));
    for (int64_t j = mid < 0 ? 0 : mid; mid < high && j < high && j < rows; j++)
        put(p->dtype, y, (size_t)j * p->bins + column, (double)(high - j) / (double)(high - mid));
}

QS_COLD static void run_mel(const qs_step *s, const qs_frame *f) {
    const mel_params *p = s->params;
    void *y = qs_step_out(s, f, 0);
    const double length = integer_of(qs_step_in(s, f, 1), p->length_type);
    const double rate = integer_of(qs_step_in(s, f, 2), p->rate_type);
    const double low = mel_of(real_of(qs_step_in(s, f, 3), p->edge_types[0]));
    const double high = mel_of(real_of(qs_step_in(s, f, 4), p->edge_types[1]));
    const double step = (high - low) / qs_real(p->bins + 2);
    int64_t rows[3] = {0};
    memset(y, 0, p->rows * p->bins * qs_dtype_bytes(p->dtype));
    if (!(rate > 0)) {
        qs_step_outside(f, "sample_rate", row_of(rate), 1, INT64_MAX, -1);
        return;
    }
    if (!isfinite(low) || !isfinite(high)) {
        qs_step_fails(f);
        return;
    }
    for (size_t i = 0; i < p->bins + 2; i++) {
        rows[0] = rows[1];
        rows[1] = rows[2];
        rows[2] = row_of((length + 1) * hertz_of(qs_real(i) * step + low) / rate);
        if (i >= 2)
            put_triangle(p, y, i - 2, rows[0], rows[1], rows[2]);
    }
}

QS_COLD static int lower_mel(qs_lower *l) {
    mel_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->dtype = output_type(l->node);
    p->length_type = qs_lower_in(l, 1)->dtype;
    p->rate_type = qs_lower_in(l, 2)->dtype;
    for (int32_t i = 0; i < 2; i++)
        p->edge_types[i] = qs_lower_in(l, 3 + i)->dtype;
    p->rows = (size_t)qs_lower_out(l, 0)->dims[0].size;
    p->bins = (size_t)qs_lower_out(l, 0)->dims[1].size;
    l->step->run = run_mel;
    return QSIM_OK;
}

static const qs_attr_rule mel_attrs[] = {{"output_datatype", QSIM_ATTR_INT, 17, 0}};

QS_OP(melweightmatrix, .name = "MelWeightMatrix", .since = 17, .min_in = 5, QS_ATTRS(mel_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 0 | 1 << 1,
      .setting_inputs = 1 << 2 | 1 << 3 | 1 << 4, .kernel = QS_KERNEL_MEL_WEIGHTS,
      .infer = infer_mel, .lower = lower_mel);
