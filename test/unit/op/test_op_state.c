/* SPDX-License-Identifier: MIT */
/* LinearAttention and CausalConvWithState against their definitions in double. */
#include "op_harness.h"

#include <math.h>

#define MOST 512

static void draw(uint64_t *seed, float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int32_t)(test_random(seed) % 2001) - 1000) / 1000.0f;
}

/* ---- LinearAttention ---- */

typedef struct sizes {
    int64_t batches, tokens, kv_heads, group, width, v_width;
    bool gated, delta, past, row_decay, one_beta;
} sizes;

static float q[MOST], k[MOST], v[MOST], past[MOST], decay[MOST], beta[MOST];

/* Updates state s by one token, and computes the answer to its query. */
static void take(const sizes *z, int64_t token, int64_t h, double *s, double *y) {
    for (int64_t i = 0; i < z->width && z->gated; i++) {
        const int64_t at =
            z->row_decay ? (token * z->kv_heads + h) * z->width + i : token * z->kv_heads + h;
        for (int64_t d = 0; d < z->v_width; d++)
            s[i * z->v_width + d] *= exp((double)decay[at]);
    }
    for (int64_t d = 0; d < z->v_width; d++) {
        double told = (double)v[(token * z->kv_heads + h) * z->v_width + d], known = 0;
        for (int64_t i = 0; i < z->width; i++)
            known += s[i * z->v_width + d] * (double)k[(token * z->kv_heads + h) * z->width + i];
        if (z->delta)
            told = (double)beta[z->one_beta ? token : token * z->kv_heads + h] * (told - known);
        for (int64_t i = 0; i < z->width; i++)
            s[i * z->v_width + d] += told * (double)k[(token * z->kv_heads + h) * z->width + i];
    }
    for (int64_t g = 0; g < z->group; g++)
        for (int64_t d = 0; d < z->v_width; d++) {
            const int64_t head = (token * z->kv_heads + h) * z->group + g;
            double sum = 0;
            for (int64_t i = 0; i < z->width; i++)
                sum += s[i * z->v_width + d] * (double)q[head * z->width + i];
            y[head * z->v_width + d] = sum * 0.25;
        }
}

static void linear_one(const sizes *z, uint64_t seed) {
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    static double y[MOST], s[MOST];
    const int64_t b = z->batches, t = z->tokens, h = z->kv_heads, rows = b * t * h;
    draw(&seed, q, MOST);
    draw(&seed, k, MOST);
    draw(&seed, v, MOST);
    draw(&seed, past, MOST);
    draw(&seed, decay, MOST);
    draw(&seed, beta, MOST);
    for (int64_t r = 0; r < b * h; r++) {
        double *own = s + r * z->width * z->v_width;
        for (int64_t i = 0; i < z->width * z->v_width; i++)
            own[i] = z->past ? (double)past[r * z->width * z->v_width + i] : 0;
        for (int64_t i = 0; i < t; i++)
            take(z, r / h * t + i, r % h, own, y);
    }
    op_case *c = case_new("", "LinearAttention", 27);
    case_input(c, QSIM_FLOAT, SHAPE(b, t, h * z->group * z->width), q);
    case_input(c, QSIM_FLOAT, SHAPE(b, t, h * z->width), k);
    case_input(c, QSIM_FLOAT, SHAPE(b, t, h * z->v_width), v);
    if (z->past)
        case_input(c, QSIM_FLOAT, SHAPE(b, h, z->width, z->v_width), past);
    else
        case_absent(c);
    if (z->gated)
        case_input(c, QSIM_FLOAT, SHAPE(b, t, z->row_decay ? h * z->width : h), decay);
    else
        case_absent(c);
    if (z->delta)
        case_input(c, QSIM_FLOAT, SHAPE(b, t, z->one_beta ? 1 : h), beta);
    case_node(c, 2);
    qs_node_set_int(c->g, c->node, "q_num_heads", h * z->group);
    qs_node_set_int(c->g, c->node, "kv_num_heads", h);
    qs_node_set_float(c->g, c->node, "scale", 0.25f);
    case_string(c, "update_rule", rules[z->gated + 2 * z->delta]);
    CHECK_INT(case_run(c), 0);
    for (int64_t i = 0; i < rows * z->group * z->v_width; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], y[i], 1e-5 * (1 + fabs(y[i])));
    for (int64_t i = 0; i < b * h * z->width * z->v_width; i++)
        CHECK_NEAR(((const float *)case_data(c, 1))[i], s[i], 1e-5 * (1 + fabs(s[i])));
    case_free(c);
}

static void test_linear(void) {
    for (int i = 0; i < 16; i++)
        linear_one(&(sizes){.batches = 1 + i % 2,
                            .tokens = 1 + i % 4,
                            .kv_heads = 1 + i % 3,
                            .group = 1 + i % 2,
                            .width = 3,
                            .v_width = 2 + i % 3,
                            .gated = i & 1,
                            .delta = i & 2,
                            .past = i & 4,
                            .row_decay = i & 8,
                            .one_beta = i & 4},
                   (uint64_t)i + 1);
}

static void test_linear_refused(void) {
    static const struct {
        const char *rule;
        int64_t heads, last;
        bool decay;
        int code;
    } bad[] = {{"gated", 2, 4, false, QSIM_E_VALUE},
               {"linear", 2, 4, true, QSIM_E_VALUE},
               {"other", 2, 4, false, QSIM_E_VALUE},
               {"linear", 3, 4, false, QSIM_E_VALUE},
               {"linear", 2, 5, false, QSIM_E_SHAPE}};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        op_case *c = case_new("", "LinearAttention", 27);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, bad[i].last), q);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, 4), k);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, 4), v);
        case_absent(c);
        if (bad[i].decay)
            case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2), decay);
        case_node(c, 2);
        qs_node_set_int(c->g, c->node, "q_num_heads", bad[i].heads);
        qs_node_set_int(c->g, c->node, "kv_num_heads", 2);
        case_string(c, "update_rule", bad[i].rule);
        CHECK_INT(case_infer(c), bad[i].code);
        case_free(c);
    }
}

/* ---- CausalConvWithState ---- */

static void causal_one(int64_t length, int64_t taps, bool with_past, bool silu) {
    const int64_t channels = 3, before = taps - 1;
    op_case *c = case_new("", "CausalConvWithState", 27);
    case_input(c, QSIM_FLOAT, SHAPE(2, channels, length), q);
    case_input(c, QSIM_FLOAT, SHAPE(channels, 1, taps), k);
    case_input(c, QSIM_FLOAT, SHAPE(channels), v);
    if (with_past)
        case_input(c, QSIM_FLOAT, SHAPE(2, channels, before), past);
    case_node(c, 2);
    if (silu)
        case_string(c, "activation", "silu");
    CHECK_INT(case_run(c), 0);
    for (int64_t r = 0; r < 2 * channels; r++) {
        double all[64];
        for (int64_t i = 0; i < before; i++)
            all[i] = with_past ? (double)past[r * before + i] : 0;
        for (int64_t i = 0; i < length; i++)
            all[before + i] = (double)q[r * length + i];
        for (int64_t t = 0; t < length; t++) {
            double y = (double)v[r % channels];
            for (int64_t i = 0; i < taps; i++)
                y += all[t + i] * (double)k[r % channels * taps + i];
            y = silu ? y / (1 + exp(-y)) : y;
            CHECK_NEAR(((const float *)case_data(c, 0))[r * length + t], y, 1e-5);
        }
        for (int64_t i = 0; i < before; i++)
            CHECK_NEAR(((const float *)case_data(c, 1))[r * before + i], all[length + i], 0);
    }
    case_free(c);
}

int main(void) {
    test_linear();
    test_linear_refused();
    causal_one(7, 4, true, false);
    causal_one(2, 4, true, true);
    causal_one(1, 4, false, false);
    causal_one(5, 1, false, true);
    return test_done();
}
