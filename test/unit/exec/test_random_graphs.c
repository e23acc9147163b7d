/* SPDX-License-Identifier: MIT */
/*
 * Random graphs, each in several forms (floats, quantized by the library, quantized pairs with
 * random scales), give the same results for every instruction set, number of threads, batch and
 * optimization level, with other outputs besides, and in memory of any content.
 *
 *     test_random_graphs                       the seeds of every day
 *     test_random_graphs FIRST [COUNT [FORM]]  these seeds; FORM: one form alone
 *     test_random_graphs --write FOLDER FIRST COUNT   each as FOLDER/SEED_FORM.onnx,
 *                                              with inputs and what every tensor is
 */
#include "random_check.h"

#include "test.h"

#include <math.h>

#define EVERY_DAY 40

/* ---- forms ---- */

static void data(rc_subject *s, const qsim_model *m) {
    uint64_t state = s->seed * 31 + 17;
    for (int32_t i = 0; i < qsim_model_input_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        qsim_model_input(m, i, &v);
        memcpy(s->dims[i], v.dims, (size_t)v.rank * sizeof(int64_t));
        s->dims[i][0] = s->batch;
        for (int k = 0; k < 2; k++) {
            qsim_tensor *x = k ? &s->other[i] : &s->x[i];
            *x = (qsim_tensor){.dtype = v.dtype, .rank = v.rank, .dims = s->dims[i]};
            qsim_tensor_size(v.dtype, v.rank, x->dims, NULL, &x->bytes);
            uint8_t *bytes = x->data = malloc(x->bytes + !x->bytes);
            for (size_t j = 0; v.dtype != QSIM_FLOAT && j < x->bytes; j++)
                bytes[j] = (uint8_t)test_random(&state);
            for (size_t j = 0; v.dtype == QSIM_FLOAT && j < x->bytes / sizeof(float); j++)
                ((float *)x->data)[j] =
                    ((float)(test_random(&state) >> 8) * (2.0f / 16777216.0f) - 1) * 2;
        }
    }
}

static void release(rc_subject *s) {
    for (size_t i = 0; i < s->input_count; i++) {
        free(s->x[i].data);
        free(s->other[i].data);
    }
    free(s->file);
    memset(s->x, 0, sizeof(s->x));
    memset(s->other, 0, sizeof(s->other));
    s->file = NULL;
}

/* Least and greatest value of each tensor of the float graph. */
static bool measure(rc_subject *s, const rg *g, rg_range *ranges) {
    static rc_result r;
    const char *names[RG_TENSORS];
    for (int32_t i = 0; i < g->count; i++)
        names[i] = g->t[i].name;
    if (!rc_tensors(s, names, (size_t)g->count, &r))
        return false;
    for (int32_t i = 0; i < r.count; i++) {
        const float *v = r.t[i].data;
        ranges[i] = (rg_range){0, 0};
        rc_check(r.t[i].rank == g->t[i].rank &&
                     memcmp(r.dims[i], g->t[i].dims, (size_t)r.t[i].rank * sizeof(int64_t)) == 0,
                 s, "shape", g->t[i].name);
        for (size_t k = 0; k < r.t[i].bytes / sizeof(float); k++) {
            ranges[i].low = fminf(ranges[i].low, v[k]);
            ranges[i].high = fmaxf(ranges[i].high, v[k]);
        }
    }
    rc_drop(&r);
    return true;
}

/* The model quantized by the library; NULL where the quantizer changes nothing. */
static qsim_model *quantize(rc_subject *s, const qsim_model *m) {
    uint64_t state = s->seed * 977 + (uint64_t)s->form;
    qsim_quantize_options o = {.struct_size = sizeof(o)};
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    qsim_error e = {.message = ""};
    for (int i = 0; i < 4; i++)
        test_random(&state);
    uint32_t bits = test_random(&state);
    o.mode = s->form == DYNAMIC   ? QSIM_MODE_DYNAMIC
             : s->form == WEIGHTS ? QSIM_MODE_WEIGHTS
                                  : QSIM_MODE_STATIC;
    o.format = s->form == QOPERATOR ? QSIM_FORMAT_QOPERATOR : QSIM_FORMAT_QDQ;
    o.activation_type = bits & 1 ? QSIM_INT8 : QSIM_UINT8;
    o.weight_type = (bits & 14) == 2 ? QSIM_UINT8 : QSIM_INT8;
    o.weight_scheme = (int32_t)(bits >> 4) % 3;
    o.activation_symmetric = (bits >> 8) % 4 == 0;
    o.reduce_range = (bits >> 10) % 4 == 0;
    o.per_row = s->form == DYNAMIC && (bits >> 12) % 2;
    int code = 0;
    if (o.mode == QSIM_MODE_STATIC) {
        code = qsim_calibration_create(m, NULL, &c, &e);
        if (!code)
            code = qsim_calibration_feed(c, s->x, s->input_count, &e);
    }
    if (!code)
        code = qsim_quantize(m, c, &o, &q, &e);
    if (code)
        rc_fail(s, "quantize", e.message);
    qsim_calibration_free(c);
    return q;
}

static qsim_model *in_form(rc_subject *s, rg *g, const qsim_model *floats, const rg_range *ranges) {
    qsim_error e = {.message = ""};
    qsim_model *m = NULL;
    if (s->form != PAIRS)
        return quantize(s, floats);
    m = rg_make(g, s->seed, ranges, NULL, &e);
    if (!m)
        rc_fail(s, "build", e.message);
    return m;
}

/* Whether optimizing keeps float bits; if not, integers quantized from them may differ. */
static bool is_exact(const qsim_model *m) {
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) == 0 &&
            (strcmp(n.op_type, "Erf") == 0 || strcmp(n.op_type, "Sub") == 0 ||
             strcmp(n.op_type, "BatchNormalization") == 0))
            return false;
    }
    return true;
}

static void seed(uint64_t number, int only, const char *folder) {
    static rg g;
    static rg_range ranges[RG_TENSORS];
    qsim_error e = {.message = ""};
    rc_subject s = {.seed = number, .form = FLOATS};
    qsim_model *floats = rg_make(&g, number, NULL, NULL, &e);
    if (!floats) {
        rc_fail(&s, "build", e.message);
        return;
    }
    s.batch = g.batch;
    s.fixed = g.fixed;
    s.input_count = g.input_count;
    rc_save(&s, floats);
    data(&s, floats);
    bool good = measure(&s, &g, ranges);
    if (folder)
        rc_write(&s, folder);
    else if (good && (only < 0 || only == FLOATS))
        rc_examine(&s);
    for (int form = FLOATS + 1; form < FORMS && good; form++) {
        if (only >= 0 && form != only)
            continue;
        s.form = (enum rc_form)form;
        qsim_model *m = in_form(&s, &g, floats, ranges);
        if (!m)
            continue;
        release(&s);
        rc_save(&s, m);
        data(&s, m);
        s.exact = is_exact(m);
        if (folder)
            rc_write(&s, folder);
        else
            rc_examine(&s);
        qsim_model_free(m);
        release(&s); /* the quantizers want the float inputs */
        data(&s, floats);
    }
    release(&s);
    qsim_model_free(floats);
}

int main(int argc, char **argv) {
    const char *folder = NULL;
    uint64_t first = 1, count = EVERY_DAY;
    int only = -1;
    if (argc > 2 && strcmp(argv[1], "--write") == 0) {
        folder = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc > 1) {
        first = strtoull(argv[1], NULL, 10);
        count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    for (int form = 0; argc > 3 && form < FORMS; form++)
        if (strcmp(argv[3], rc_form_names[form]) == 0)
            only = form;
    rc_begin();
    for (uint64_t i = 0; i < count && rc_sofar().failures < 200; i++)
        seed(first + i, only, folder);
    test_checks += rc_sofar().checks;
    test_failures += rc_sofar().failures;
    fprintf(stderr, "%ld comparisons were left to rounding\n", rc_sofar().shaky);
    rc_end();
    return test_done();
}
