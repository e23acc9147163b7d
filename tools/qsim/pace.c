/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/profile.h>

#include "modelinfo.h"
#include "pace_reasons.h"

/*
 * Both models are run until a quarter of a second is over, or, where runs are short, until each
 * block of rounds that the margin comes from has a hundred; not in the first milliseconds, in which
 * a core may still wake.
 */
#define LEAST_ROUNDS  5
#define MOST_MS       250.0
#define ENOUGH_ROUNDS (100 * LATENCY_BLOCKS)
#define ENOUGH_MS     25.0
#define REPEATS       5

bool pace_fails(time_ratio r) {
    return r.value > 0 && r.value + r.margin < PACE_LEAST_GAIN; /* false for NaN: unknown */
}

/* ---- steps ---- */

static pace_kind kind_of(const qsim_run *run, int32_t index, const qsim_step_info *info) {
    int64_t dims[QSIM_MAX_RANK];
    bool bytes = false;
    if (strstr(info->op_type, "QuantizeLinear"))
        return CONVERTING;
    for (int32_t i = 0; i < info->input_count + info->output_count; i++) {
        qsim_tensor x;
        if (qsim_run_step_tensor(run, index, i, dims, &x) == QSIM_OK)
            bytes |= x.dtype == QSIM_UINT8 || x.dtype == QSIM_INT8;
    }
    return bytes ? IN_INTEGERS : IN_FLOATS;
}

static size_t read_steps(const engine *e, pace_step **out) {
    const int32_t count = qsim_run_step_count(e->run);
    *out = tool_alloc((size_t)(count > 0 ? count : 0), sizeof(**out));
    for (int32_t i = 0; i < count; i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        if (qsim_run_step(e->run, i, &info))
            continue;
        (*out)[i] = (pace_step){info.node, info.op_type, kind_of(e->run, i, &info), INFINITY};
    }
    return (size_t)(count > 0 ? count : 0);
}

bool pace_is_integer(const engine *e) {
    pace_step *steps;
    bool any = false;
    size_t n = read_steps(e, &steps);
    for (size_t i = 0; i < n; i++)
        any |= steps[i].kind == IN_INTEGERS;
    free(steps);
    return any;
}

static int time_steps(const tool *t, const char *file, engine *e, const qsim_tensor *inputs,
                      size_t count, pace_step **steps, size_t *n) {
    int code = EXIT_OK;
    *steps = NULL;
    qsim_run_set_timing(e->run, 1);
    for (int k = 0; k < REPEATS && code == EXIT_OK; k++) {
        code = engine_execute(t, file, e, inputs, count);
        if (code == EXIT_OK && !*steps)
            *n = read_steps(e, steps);
        for (size_t i = 0; i < *n && code == EXIT_OK; i++) {
            qsim_step_info info = {.struct_size = sizeof(info)};
            if (qsim_run_step(e->run, (int32_t)i, &info) == QSIM_OK)
                (*steps)[i].us = fmin((*steps)[i].us, (double)info.nanoseconds / 1000);
        }
    }
    qsim_run_set_timing(e->run, 0);
    return code;
}

/* ---- why ---- */

int pace_explain(const tool *t, const char *const file[2], engine e[2],
                 const qsim_tensor *const inputs[2], size_t count, text *why) {
    pace_step *steps[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    int code = EXIT_OK;
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        code = time_steps(t, file[k], &e[k], inputs[k], count, &steps[k], &n[k]);
    if (code == EXIT_OK)
        pace_reasons(steps[0], n[0], steps[1], n[1], why);
    free(steps[0]);
    free(steps[1]);
    return code;
}

/* ---- both models in turns ---- */

static bool is_enough(int rounds, double ms) {
    return rounds >= LEAST_ROUNDS && (ms > MOST_MS || (rounds >= ENOUGH_ROUNDS && ms > ENOUGH_MS));
}

static int time_both(const tool *t, const char *const file[2], engine e[2],
                     const qsim_tensor *inputs, size_t count, pace *p) {
    latency time[2] = {{0}, {0}};
    const double begin = tool_now();
    int code = EXIT_OK;
    for (int i = -1; code == EXIT_OK; i++) { /* the first round warms up */
        for (int n = 0; n < 2 && code == EXIT_OK; n++) {
            const int k = (i + n) & 1;
            const double start = tool_now();
            code = engine_execute(t, file[k], &e[k], inputs, count);
            if (i >= 0)
                latency_add(&time[k], tool_now() - start);
        }
        if (is_enough(i + 1, tool_now() - begin))
            break;
    }
    if (code == EXIT_OK) {
        p->ratio = latency_ratio(time[0].ms, time[1].ms, time[0].count);
        for (int k = 0; k < 2; k++)
            p->ms[k] = latency_median(time[k].ms, time[k].count);
    }
    latency_free(&time[0]);
    latency_free(&time[1]);
    return code;
}

/* Views of one sample of each input, if the model takes any number of samples. */
static bool take_one(const qsim_model *m, const qsim_tensor *inputs, size_t count, qsim_tensor *out,
                     int64_t (*dims)[QSIM_MAX_RANK]) {
    for (size_t i = 0; i < count; i++) {
        const qsim_tensor *x = &inputs[i];
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(m, (int32_t)i, &v) || v.rank < 1 || v.dims[0] >= 0 || x->rank < 1 ||
            x->dims[0] < 1 || x->dims[0] != inputs[0].dims[0])
            return false;
        memcpy(dims[i], x->dims, (size_t)x->rank * sizeof(*x->dims));
        dims[i][0] = 1;
        out[i] = *x;
        out[i].dims = dims[i];
        out[i].bytes = x->bytes / (size_t)x->dims[0];
    }
    return count > 0;
}

int pace_measure(const tool *t, const char *const file[2], const qsim_model *const model[2],
                 const qsim_tensor *inputs, size_t count, pace *p) {
    engine e[2] = {{0}, {0}};
    qsim_tensor *one = tool_alloc(count, sizeof(*one));
    int64_t(*dims)[QSIM_MAX_RANK] = tool_alloc(count, sizeof(*dims));
    const qsim_tensor *in = take_one(model[0], inputs, count, one, dims) ? one : inputs;
    int code = EXIT_OK;
    p->rows = count > 0 && in[0].rank > 0 ? in[0].dims[0] : 1;
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        code = engine_of_model(t, file[k], model[k], NULL, 0, &e[k]);
    if (code == EXIT_OK)
        code = time_both(t, file, e, in, count, p);
    if (code == EXIT_OK && pace_fails(p->ratio))
        code = pace_explain(t, file, e, (const qsim_tensor *const[]){in, in}, count, &p->why);
    engine_close(&e[0]);
    engine_close(&e[1]);
    free(one);
    free(dims);
    return code;
}

void pace_print(const pace *p) {
    char a[32], b[32], words[LATENCY_WORDS];
    if (p->ratio.value <= 0)
        return;
    table_line("speed", "fp32 %s -> int8 %s at batch %lld: %s", tool_time(p->ms[0], a),
               tool_time(p->ms[1], b), (long long)p->rows,
               latency_verdict(p->ratio, "fp32", words));
    if (p->why.size)
        table_line("", "not faster: %s", p->why.data);
}

void pace_json(const pace *p, json *out) {
    if (p->ratio.value <= 0)
        return;
    json_object(out, "speed");
    json_int(out, "batch", p->rows);
    json_number(out, "float_ms", p->ms[0]);
    json_number(out, "int8_ms", p->ms[1]);
    json_number(out, "ratio", p->ratio.value);
    json_number(out, "ratio_margin", p->ratio.margin);
    json_string(out, "why_not_faster", p->why.size ? p->why.data : NULL);
    json_end(out);
}

void pace_free(pace *p) {
    text_free(&p->why);
}
