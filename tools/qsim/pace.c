/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/profile.h>

#include "modelinfo.h"

#define SPEND_MS    250.0
#define LEAST_GAIN  1.05
#define STEP_US     0.5 /* shorter steps are mostly overhead */
#define MOST_SLOWER 3
#define REPEATS     5

bool pace_fails(time_ratio r) {
    return r.value > 0 && r.value + r.margin < LEAST_GAIN; /* false for NaN: unknown */
}

/* ---- steps ---- */

enum { IN_INTEGERS, IN_FLOATS, CONVERTING };

typedef struct step {
    const char *node, *op_type;
    int kind;
    double us; /* the least of REPEATS runs */
} step;

static int kind_of(const qsim_run *run, int32_t index, const qsim_step_info *info) {
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

static size_t read_steps(const engine *e, step **out) {
    const int32_t count = qsim_run_step_count(e->run);
    *out = tool_alloc((size_t)(count > 0 ? count : 0), sizeof(**out));
    for (int32_t i = 0; i < count; i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        if (qsim_run_step(e->run, i, &info))
            continue;
        (*out)[i] = (step){info.node, info.op_type, kind_of(e->run, i, &info), INFINITY};
    }
    return (size_t)(count > 0 ? count : 0);
}

bool pace_is_integer(const engine *e) {
    step *steps;
    bool any = false;
    size_t n = read_steps(e, &steps);
    for (size_t i = 0; i < n; i++)
        any |= steps[i].kind == IN_INTEGERS;
    free(steps);
    return any;
}

static int time_steps(const tool *t, const char *file, engine *e, const qsim_tensor *inputs,
                      size_t count, step **steps, size_t *n) {
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

static void add(text *why, const char *part) {
    text_printf(why, "%s%s", why->size ? "; " : "", part);
}

/* The time of one kind of steps, and the longest of them. */
static double spent(const step *s, size_t n, int kind, const step **longest) {
    double sum = 0;
    *longest = NULL;
    for (size_t i = 0; i < n; i++)
        if (s[i].kind == kind) {
            sum += s[i].us;
            *longest = !*longest || s[i].us > (*longest)->us ? &s[i] : *longest;
        }
    return sum;
}

static double us_of(const step *s, size_t n, const char *node) {
    double sum = 0;
    for (size_t i = 0; i < n && *node; i++)
        sum += strcmp(s[i].node, node) == 0 ? s[i].us : 0;
    return sum;
}

/* The time that a step of B takes more than its node in A; 0: none, or A has no such node. */
static double lost(const step *a, size_t m, const step *b) {
    const double before = b->kind == IN_INTEGERS ? us_of(a, m, b->node) : 0;
    return before > 0 && b->us >= before * LEAST_GAIN ? b->us - before : 0;
}

/* Names the layers that lose most, the worst first. */
static void explain_slower(const step *a, size_t m, const step *b, size_t n, text *why) {
    text line = {0};
    double below = INFINITY;
    for (int found = 0; found < MOST_SLOWER; found++) {
        const step *worst = NULL;
        for (size_t i = 0; i < n; i++) {
            const double own = lost(a, m, &b[i]);
            if (own > 0 && own < below && (!worst || own > lost(a, m, worst)))
                worst = &b[i];
        }
        if (!worst)
            break;
        below = lost(a, m, worst);
        text_printf(&line, "%s'%.60s' %.3g -> %.3g \xc2\xb5s",
                    found ? ", " : "slower layers: ", worst->node, us_of(a, m, worst->node),
                    worst->us);
    }
    if (line.size)
        add(why, line.data);
    text_free(&line);
}

static void explain_steps(const step *a, size_t m, const step *b, size_t n, text *why) {
    const step *longest, *other, *layer;
    char line[256];
    const double floats = spent(b, n, IN_FLOATS, &longest);
    const double between = spent(b, n, CONVERTING, &other);
    const double all = floats + between + spent(b, n, IN_INTEGERS, &layer);
    if (longest && floats > 0.2 * all) {
        snprintf(line, sizeof(line),
                 "%.0f %% of its time stays in floats, '%.60s' (%s) most of all",
                 100 * floats / all, longest->node, longest->op_type);
        add(why, line);
    }
    if (other && between > 0.15 * all) {
        snprintf(line, sizeof(line),
                 "%.0f %% goes into conversions between floats and integers, '%.60s' most of all",
                 100 * between / all, other->node);
        add(why, line);
    }
    if (all < STEP_US * (double)n) {
        snprintf(
            line, sizeof(line),
            "too small: its %zu steps take %.3g \xc2\xb5s each, mostly their own beginning and "
            "end",
            n, all / (double)n);
        add(why, line);
    }
    const size_t known = why->size;
    explain_slower(a, m, b, n, why);
    if (why->size == known && layer && all >= STEP_US * (double)n) {
        snprintf(line, sizeof(line), "of its integer layers '%.60s' takes longest, %.3g \xc2\xb5s",
                 layer->node, layer->us);
        add(why, line);
    }
}

int pace_explain(const tool *t, const char *const file[2], engine e[2], const qsim_tensor *inputs,
                 size_t count, text *why) {
    step *steps[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    int code = EXIT_OK;
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        code = time_steps(t, file[k], &e[k], inputs, count, &steps[k], &n[k]);
    if (code == EXIT_OK && n[1] > 0)
        explain_steps(steps[0], n[0], steps[1], n[1], why);
    if (code == EXIT_OK && !why->size)
        text_puts(why, "no single layer; qsim profile tells where the time goes");
    free(steps[0]);
    free(steps[1]);
    return code;
}

/* ---- both models in turns ---- */

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
        if (i >= 4 && tool_now() - begin > SPEND_MS)
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
        code = pace_explain(t, file, e, in, count, &p->why);
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
