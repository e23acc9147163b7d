/* SPDX-License-Identifier: MIT */
/* DFT, STFT, windows, MelWeightMatrix and Einsum against their defining sums, with libm's curves.
 */
#include "op_harness.h"

#include <math.h>

#define TAU 6.28318530717958647692

static float numbers[4000];

static void fill_numbers(void) {
    uint64_t seed = 7;
    for (size_t i = 0; i < QS_COUNT(numbers); i++)
        numbers[i] = (float)((int)(test_random(&seed) % 2001) - 1000) / 250.0f;
}

/* ---- DFT ---- */

/* Output k of the transform of the middle axis of numbers[2][points][3][parts]. */
static void expect_bin(int64_t points, int64_t n, int parts, size_t outer, size_t inner, int64_t k,
                       double sign, double out[2]) {
    out[0] = out[1] = 0;
    for (int64_t j = 0; j < points && j < n; j++) {
        const size_t at = ((outer * (size_t)points + (size_t)j) * 3 + inner) * (size_t)parts;
        const double re = (double)numbers[at], im = parts > 1 ? (double)numbers[at + 1] : 0;
        const double angle = sign * TAU * (double)(j * k % n) / (double)n;
        out[0] += re * cos(angle) - im * sin(angle);
        out[1] += re * sin(angle) + im * cos(angle);
    }
}

static void dft_one(int64_t version, int64_t points, int64_t n, int parts, bool inverse,
                    bool onesided) {
    op_case *c = case_new("", "DFT", version);
    case_input(c, QSIM_FLOAT, SHAPE(2, points, 3, parts), numbers);
    if (n != points)
        case_const(c, QSIM_INT64, 0, NULL, &n);
    else if (version >= 20)
        case_absent(c);
    if (version >= 20)
        case_const(c, QSIM_INT64, 0, NULL, DIMS(-3));
    case_node(c, 1);
    if (version < 20)
        qs_node_set_int(c->g, c->node, "axis", 1);
    qs_node_set_int(c->g, c->node, "inverse", inverse);
    qs_node_set_int(c->g, c->node, "onesided", onesided);
    CHECK_INT(case_run(c), 0);
    const int64_t bins = onesided ? n / 2 + 1 : n;
    CHECK_INT(case_out(c, 0)->dims[1].size, bins);
    const float *y = case_data(c, 0);
    for (size_t i = 0; i < 2 * 3 * (size_t)bins; i++) {
        double want[2];
        expect_bin(points, n, parts, i / 3 / (size_t)bins, i % 3, (int64_t)(i / 3 % (size_t)bins),
                   inverse ? 1 : -1, want);
        for (size_t k = 0; k < 2; k++)
            CHECK_NEAR(y[i * 2 + k], inverse ? want[k] / (double)n : want[k], 1e-4);
    }
    case_free(c);
}

/* Half a spectrum there and back. */
static void dft_back(int64_t n) {
    op_case *c = case_new("", "DFT", 20);
    double spectrum[64][2];
    float half[64];
    const int64_t bins = n / 2 + 1;
    for (int64_t k = 0; k < bins; k++) {
        spectrum[k][0] = spectrum[k][1] = 0;
        for (int64_t j = 0; j < n; j++) {
            spectrum[k][0] += (double)numbers[j] * cos(TAU * (double)(j * k) / (double)n);
            spectrum[k][1] -= (double)numbers[j] * sin(TAU * (double)(j * k) / (double)n);
        }
        half[2 * k] = (float)spectrum[k][0];
        half[2 * k + 1] = (float)spectrum[k][1];
    }
    case_input(c, QSIM_FLOAT, SHAPE(1, bins, 2), half);
    if (n % 2)
        case_const(c, QSIM_INT64, 0, NULL, &n);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "inverse", 1);
    qs_node_set_int(c->g, c->node, "onesided", 1);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(case_out(c, 0)->dims[1].size, n);
    CHECK_INT(case_out(c, 0)->dims[2].size, 1);
    for (int64_t j = 0; j < n; j++)
        CHECK_NEAR(((const float *)case_data(c, 0))[j], numbers[j], 1e-5);
    case_free(c);
}

static void test_dft(void) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 30, 49};
    for (size_t i = 0; i < QS_COUNT(lengths); i++) {
        const int64_t n = lengths[i];
        dft_one(17, n, n, 1, false, false);
        dft_one(20, n, n, 2, false, false);
        dft_one(17, n, n, 2, true, false);
        dft_one(20, n, n, 1, false, true);
        dft_one(20, n, n + 3, 2, false, false);
        if (n > 2)
            dft_one(17, n, n - 2, 1, false, true);
    }
    dft_back(10);
    dft_back(9);
    op_case *c = case_new("", "DFT", 17); /* half of a complex spectrum */
    case_input(c, QSIM_FLOAT, SHAPE(1, 8, 2), numbers);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "onesided", 1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
    c = case_new("", "DFT", 17); /* the axis of the parts */
    case_input(c, QSIM_FLOAT, SHAPE(1, 8, 2), numbers);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "axis", -1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
}

/* ---- STFT ---- */

/* Without an axis of parts, as PyTorch exports real signals, if `parts` is 0. */
static void stft_one(int parts, bool onesided, bool windowed) {
    enum { LENGTH = 41, FRAME = 12, STEP = 5, FRAMES = (LENGTH - FRAME) / STEP + 1 };
    const int64_t bins = onesided ? FRAME / 2 + 1 : FRAME;
    op_case *c = case_new("", "STFT", 17);
    if (parts == 0)
        case_input(c, QSIM_FLOAT, SHAPE(2, LENGTH), numbers);
    else
        case_input(c, QSIM_FLOAT, SHAPE(2, LENGTH, parts), numbers);
    case_const(c, QSIM_INT64, 0, NULL, DIMS(STEP));
    if (windowed)
        case_input(c, QSIM_FLOAT, SHAPE(FRAME), numbers + 1000);
    else
        case_absent(c);
    if (!windowed)
        case_const(c, QSIM_INT64, 0, NULL, DIMS(FRAME));
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "onesided", onesided);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(case_out(c, 0)->dims[1].size, FRAMES);
    CHECK_INT(case_out(c, 0)->dims[2].size, bins);
    const float *y = case_data(c, 0);
    for (int64_t i = 0; i < 2 * FRAMES * bins; i++) {
        const int64_t from = i / bins / FRAMES * LENGTH + i / bins % FRAMES * STEP;
        double re = 0, im = 0;
        for (int64_t j = 0; j < FRAME; j++) {
            const double w = windowed ? (double)numbers[1000 + j] : 1.0;
            const double a = w * (double)numbers[(from + j) * (parts > 1 ? parts : 1)];
            const double b = parts > 1 ? w * (double)numbers[(from + j) * parts + 1] : 0;
            const double angle = -TAU * (double)(j * (i % bins)) / FRAME;
            re += a * cos(angle) - b * sin(angle);
            im += a * sin(angle) + b * cos(angle);
        }
        CHECK_NEAR(y[2 * i], re, 1e-4);
        CHECK_NEAR(y[2 * i + 1], im, 1e-4);
    }
    case_free(c);
}

/* ---- windows ---- */

static void window_one(const char *name, bool periodic, double a, double b, double d) {
    op_case *c = case_new("", name, 17);
    case_const(c, QSIM_INT32, 0, NULL, &(int32_t){11});
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "periodic", periodic);
    qs_node_set_int(c->g, c->node, "output_datatype", QSIM_DOUBLE);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "double[11]");
    for (int k = 0; k < 11; k++) {
        const double angle = TAU * k / (periodic ? 11 : 10);
        CHECK_NEAR(((const double *)case_data(c, 0))[k], a - b * cos(angle) + d * cos(2 * angle),
                   1e-15);
    }
    case_free(c);
}

/* Five mel bins of 16 points at 8 kHz: rows of the edges by hand, from 0 to 4000 Hz. */
static void test_mel(void) {
    op_case *c = case_new("", "MelWeightMatrix", 17);
    case_const(c, QSIM_INT64, 0, NULL, DIMS(3));
    case_const(c, QSIM_INT64, 0, NULL, DIMS(16));
    case_const(c, QSIM_INT64, 0, NULL, DIMS(8192));
    case_const(c, QSIM_FLOAT, 0, NULL, &(float){0});
    case_const(c, QSIM_FLOAT, 0, NULL, &(float){4096});
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[9,3]");
    int rows[5];
    for (int i = 0; i < 5; i++) {
        const double mel = 2595 * log10(1 + 4096 / 700.0) / 5 * i;
        rows[i] = (int)floor(17 * 700 * (pow(10, mel / 2595) - 1) / 8192);
    }
    for (int row = 0; row < 9; row++)
        for (int i = 0; i < 3; i++) {
            const int low = rows[i], mid = rows[i + 1], high = rows[i + 2];
            double want = row < low || row > high ? 0 : row == mid ? 1 : 0;
            if (row > low && row < mid)
                want = (double)(row - low) / (mid - low);
            if (row > mid && row < high)
                want = (double)(high - row) / (high - mid);
            CHECK_NEAR(((const float *)case_data(c, 0))[row * 3 + i], want, 1e-6);
        }
    case_free(c);
}

static void test_windows(void) {
    for (int periodic = 0; periodic < 2; periodic++) {
        window_one("HannWindow", periodic, 0.5, 0.5, 0);
        window_one("HammingWindow", periodic, 25.0 / 46, 21.0 / 46, 0);
        window_one("BlackmanWindow", periodic, 0.42, 0.5, 0.08);
    }
    op_case *c = case_new("", "HannWindow", 17);
    case_const(c, QSIM_INT64, 0, NULL, DIMS(-1));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
}

int main(void) {
    fill_numbers();
    test_dft();
    stft_one(0, true, true);
    stft_one(1, true, false);
    stft_one(1, false, true);
    stft_one(2, false, true);
    test_windows();
    test_mel();
    return test_done();
}
