/* SPDX-License-Identifier: MIT */
/*
 * ONNX backend tests: every model that loads must compute the outputs that the test records
 * (conform.h). Names in the list are folders.
 */
#include "conform.h"

#include <math.h>

#define MAX_SLOTS 64

/* A tensor read from a TensorProto file. */
struct slot {
    qsim_array array;
    qsim_tensor tensor;
};

struct tolerance {
    double rtol, atol, integer;
};

/* Reads a slot: 0, a negative code, or 1 if there is no such file. */
static int read_slot(const char *folder, const char *kind, int index, struct slot *s) {
    char path[1200];
    size_t size;
    snprintf(path, sizeof(path), "%s/test_data_set_0/%s_%d.pb", folder, kind, index);
    void *data = read_file(path, &size);
    if (!data)
        return 1;
    s->array.struct_size = sizeof(s->array);
    int code = qsim_proto_parse(data, size, &s->array, NULL);
    if (!code) {
        s->tensor = (qsim_tensor){s->array.dtype, s->array.rank, s->array.dims,
                                  calloc(1, s->array.bytes + 1), s->array.bytes};
        code = qsim_proto_read(data, size, s->tensor.data, s->tensor.bytes, NULL);
    }
    free(data);
    return code;
}

static int read_slots(const char *folder, const char *kind, struct slot *slots, int *count) {
    for (*count = 0; *count < MAX_SLOTS; ++*count) {
        int code = read_slot(folder, kind, *count, &slots[*count]);
        if (code)
            return code < 0 ? code : 0;
    }
    return QSIM_E_LIMIT;
}

static void free_slots(struct slot *slots, int count) {
    for (int i = 0; i < count; i++)
        free(slots[i].tensor.data);
}

static double json_number(const char *text, const char *key, double fallback) {
    const char *at = text ? strstr(text, key) : NULL;
    at = at ? strchr(at, ':') : NULL;
    return at ? atof(at + 1) : fallback;
}

static struct tolerance tolerance_of(const char *folder) {
    char path[1200];
    size_t size;
    snprintf(path, sizeof(path), "%s/data.json", folder);
    char *text = read_file(path, &size);
    struct tolerance t = {json_number(text, "\"rtol\"", 1e-3), json_number(text, "\"atol\"", 1e-7),
                          json_number(text, "\"int_tol\"", 0)};
    free(text);
    return t;
}

static double half_value(const qsim_tensor *t, size_t i) {
    const uint16_t bits = ((const uint16_t *)t->data)[i];
    const int wide = t->dtype == QSIM_BFLOAT16, fraction = wide ? 7 : 10;
    const int most = wide ? 255 : 31, exponent = bits >> fraction & most;
    const int rest = bits & ((1 << fraction) - 1), middle = most / 2;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == most)
        return rest ? (double)NAN : sign * (double)INFINITY;
    return sign * ldexp(exponent ? rest + (1 << fraction) : rest,
                        (exponent ? exponent : 1) - middle - fraction);
}

static double element(const qsim_tensor *t, size_t i) {
    switch (t->dtype) {
    case QSIM_FLOAT16:
    case QSIM_BFLOAT16: return half_value(t, i);
    case QSIM_FLOAT: return (double)((const float *)t->data)[i];
    case QSIM_DOUBLE: return ((const double *)t->data)[i];
    case QSIM_INT8: return ((const int8_t *)t->data)[i];
    case QSIM_UINT16: return ((const uint16_t *)t->data)[i];
    case QSIM_INT16: return ((const int16_t *)t->data)[i];
    case QSIM_INT32: return ((const int32_t *)t->data)[i];
    default: return ((const uint8_t *)t->data)[i];
    }
}

static int is_real(int32_t dtype) {
    return dtype == QSIM_FLOAT || dtype == QSIM_DOUBLE || dtype == QSIM_FLOAT16 ||
           dtype == QSIM_BFLOAT16;
}

static int comparable(int32_t dtype) {
    return is_real(dtype) || dtype == QSIM_INT8 || dtype == QSIM_UINT8 || dtype == QSIM_INT16 ||
           dtype == QSIM_UINT16 || dtype == QSIM_INT32;
}

static int same(const qsim_tensor *a, const qsim_tensor *e, struct tolerance t) {
    if (a->dtype != e->dtype || a->rank != e->rank || a->bytes != e->bytes)
        return 0;
    for (int32_t i = 0; i < e->rank; i++)
        if (a->dims[i] != e->dims[i])
            return 0;
    if (!comparable(e->dtype)) /* 64-bit and packed integers, bool: exact */
        return e->bytes == 0 || memcmp(a->data, e->data, e->bytes) == 0;
    int is_float = is_real(e->dtype);
    size_t n = e->bytes / ((size_t)qsim_dtype_bits(e->dtype) / 8);
    for (size_t i = 0; i < n; i++) {
        double x = element(a, i), y = element(e, i);
        double bound = is_float ? t.atol + t.rtol * fabs(y) : t.integer;
        if (!(fabs(x - y) <= bound) && x != y && !(isnan(x) && isnan(y)))
            return 0;
    }
    return 1;
}

static enum verdict execute(qsim_session *s, struct slot *in, int in_count, struct slot *expected,
                            int out_count, struct tolerance t, qsim_error *e) {
    qsim_tensor inputs[MAX_SLOTS], outputs[MAX_SLOTS];
    qsim_run *r = NULL;
    memset(outputs, 0, sizeof(outputs));
    for (int i = 0; i < in_count; i++)
        inputs[i] = in[i].tensor;
    enum verdict v = REFUSED;
    if (!qsim_run_create(s, &r, e) &&
        !qsim_run_execute(r, inputs, (size_t)in_count, outputs, (size_t)out_count, e)) {
        v = PASSED;
        for (int i = 0; i < out_count; i++)
            if (!same(&outputs[i], &expected[i].tensor, t))
                v = WRONG;
    }
    qsim_run_free(r);
    return v;
}

static enum verdict try_test(qsim_ctx *ctx, const char *tests, const char *name, qsim_error *e) {
    static struct slot in[MAX_SLOTS], out[MAX_SLOTS];
    char folder[1024], path[1200];
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    int in_count = 0, out_count = 0;
    enum verdict v = REFUSED;
    snprintf(folder, sizeof(folder), "%s/%s", tests, name);
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    if (!qsim_model_load(ctx, path, NULL, &m, e) && !qsim_session_create(m, NULL, &s, e) &&
        !read_slots(folder, "input", in, &in_count) &&
        !read_slots(folder, "output", out, &out_count) && in_count == qsim_session_input_count(s) &&
        out_count == qsim_session_output_count(s))
        v = execute(s, in, in_count, out, out_count, tolerance_of(folder), e);
    free_slots(in, in_count);
    free_slots(out, out_count);
    qsim_session_free(s);
    qsim_model_free(m);
    return v;
}

int main(int argc, char **argv) {
    return judge_list(argc, argv, try_test);
}
