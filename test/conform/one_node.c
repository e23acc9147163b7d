/* SPDX-License-Identifier: MIT */
/*
 * Models of one node with recorded inputs and outputs: NAME.onnx and NAME.npz, whose members are
 * in_INPUT and out_OUTPUT. A result differs from the record by at most 2e-6 of the record's largest
 * value (conform.h). With a fourth argument models are converted to operators of ONNX at first.
 */
#include "conform.h"

#include <math.h>
#include <stdbool.h>

#include <qsim/ptq.h>

#define MAX_SLOTS 32
#define TOLERANCE 2e-6

static bool converts;

/* Reads the member PREFIX_NAME as a tensor, whose dims are those of `a`. */
static int take(qsim_npz *npz, const char *prefix, const char *name, qsim_array *a,
                qsim_tensor *t) {
    char wanted[256];
    snprintf(wanted, sizeof(wanted), "%s_%s", prefix, name);
    for (int32_t i = 0; i < qsim_npz_count(npz); i++)
        if (strcmp(qsim_npz_name(npz, i), wanted) == 0) {
            *a = (qsim_array){.struct_size = sizeof(*a)};
            if (qsim_npz_array(npz, i, a))
                return 0;
            *t = (qsim_tensor){a->dtype, a->rank, a->dims, malloc(a->bytes + 1), a->bytes};
            return qsim_npz_read(npz, i, t->data, a->bytes, NULL) == 0;
        }
    return 0;
}

static int same(const qsim_tensor *have, const qsim_tensor *want) {
    double most = 0;
    if (have->dtype != want->dtype || have->bytes != want->bytes || have->rank != want->rank)
        return 0;
    if (have->dtype != QSIM_FLOAT)
        return memcmp(have->data, want->data, want->bytes) == 0;
    const float *x = have->data, *y = want->data;
    const size_t n = want->bytes / sizeof(*y);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)y[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= TOLERANCE * most))
            return 0;
    return 1;
}

static enum verdict judge(qsim_session *s, qsim_npz *npz, qsim_error *e) {
    static qsim_array arrays[MAX_SLOTS], expected;
    qsim_tensor in[MAX_SLOTS], out[MAX_SLOTS], want;
    qsim_run *r = NULL;
    enum verdict v = PASSED;
    memset(in, 0, sizeof(in));
    memset(out, 0, sizeof(out));
    const int32_t ins = qsim_session_input_count(s), outs = qsim_session_output_count(s);
    for (int32_t i = 0; i < ins; i++)
        CHECK(take(npz, "in", qsim_session_input_name(s, i), &arrays[i], &in[i]));
    if (qsim_run_create(s, &r, e) || qsim_run_execute(r, in, (size_t)ins, out, (size_t)outs, e))
        v = REFUSED;
    for (int32_t i = 0; i < outs && v == PASSED; i++) {
        want.data = NULL;
        if (!take(npz, "out", qsim_session_output_name(s, i), &expected, &want) ||
            !same(&out[i], &want))
            v = WRONG;
        free(want.data);
    }
    for (int32_t i = 0; i < ins; i++)
        free(in[i].data);
    qsim_run_free(r);
    return v;
}

static int load(qsim_ctx *ctx, const char *path, qsim_model **m, qsim_error *e) {
    qsim_model *read = NULL;
    int code = qsim_model_load(ctx, path, NULL, converts ? &read : m, e);
    if (!code && converts)
        code = qsim_model_convert_to(read, QSIM_FORMAT_ONNX, m, e);
    qsim_model_free(read);
    return code;
}

static enum verdict try_model(qsim_ctx *ctx, const char *folder, const char *name, qsim_error *e) {
    char path[1200];
    size_t size = 0;
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_npz *npz = NULL;
    enum verdict v = REFUSED;
    snprintf(path, sizeof(path), "%s/%s.npz", folder, name);
    void *data = read_file(path, &size);
    snprintf(path, sizeof(path), "%s/%s.onnx", folder, name);
    CHECK(data && qsim_npz_open(ctx, data, size, &npz, e) == 0);
    if (npz && !load(ctx, path, &m, e) && !qsim_session_create(m, NULL, &s, e))
        v = judge(s, npz, e);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_npz_free(npz);
    free(data);
    return v;
}

int main(int argc, char **argv) {
    converts = argc > 4;
    return judge_list(argc - converts, argv, try_model);
}
