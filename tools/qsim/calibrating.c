/* SPDX-License-Identifier: MIT */
#include "calibrating.h"

#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "not_finite.h"

const char *const range_methods[] = {"minmax", "percentile", "mse", "entropy", NULL};
const char *const weight_schemes[] = {"channel", "tensor", "tensor-asymmetric",
                                      "channel-asymmetric", NULL};

int calibrate_data(const tool *t, const char *file, const qsim_model *m,
                   const qsim_calibration_options *options, dataset *d, qsim_calibration **out) {
    progress p;
    batch b;
    qsim_error e;
    uint64_t done = 0;
    *out = NULL;
    if (qsim_calibration_create(m, options, out, &e))
        return tool_error(t, file, &e);
    progress_begin(&p, t);
    int code;
    for (;;) {
        code = dataset_next(d, &b);
        if (code || b.samples == 0)
            break;
        const int failed = qsim_calibration_feed(*out, b.inputs, b.input_count, &e);
        if (failed && !(failed == QSIM_E_CANCELLED && tool_interrupted())) {
            code = e.code == QSIM_E_VALUE ? not_finite_fail(t, file, m, d, &b, &e)
                                          : tool_error(t, file, &e);
            break;
        }
        done += failed ? 0 : (uint64_t)b.samples;
        if (failed || progress_step(&p, "calibrating", done, (uint64_t)dataset_samples(d))) {
            code = tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted after %llu sample%s", file,
                             (unsigned long long)done, tool_plural((int64_t)done));
            break;
        }
    }
    progress_end(&p);
    return code == EXIT_OK ? calibration_has_data(t, file, *out) : code;
}

int calibration_has_data(const tool *t, const char *file, const qsim_calibration *c) {
    if (qsim_calibration_samples(c) > 0)
        return EXIT_OK;
    return tool_fail(t, QSIM_E_VALUE, "%s: no sample to calibrate with: axis 0 of an input is 0",
                     file);
}

/* A sample that alone widens a tensor's range by this factor is an outlier, as in verdicts. */
#define WIDENED 4.0

char *calibration_outlier(const qsim_calibration *c, const dataset *d) {
    qsim_outlier worst = {.ratio = WIDENED};
    int32_t count = 0, at = 0;
    text out = {0};
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        qsim_outlier o = {.struct_size = sizeof(o)};
        if (qsim_calibration_outlier(c, i, &o) || o.ratio < WIDENED)
            continue;
        at = o.ratio > worst.ratio || count == 0 ? i : at;
        worst = o.ratio > worst.ratio || count == 0 ? o : worst;
        count++;
    }
    if (count == 0)
        return NULL;
    dataset_name_sample(d, worst.sample, qsim_calibration_samples(c), &out);
    text_printf(&out, " alone widens the range of '%s' to %.6g (others reach %.6g)%s",
                qsim_calibration_name(c, at), (double)worst.value, (double)worst.others,
                count > 1 ? ", and of other tensors" : "");
    return out.data;
}

static int load_stdin(const tool *t, const char *path, qsim_calibration **out) {
    qsim_error e;
    void *data;
    size_t size;
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    code = qsim_calibration_load_memory(t->ctx, data, size, "(stdin)", out, &e);
    free(data);
    return code ? tool_error(t, "(stdin)", &e) : EXIT_OK;
}

int calibration_open(const tool *t, const char *path, qsim_calibration **out) {
    qsim_error e;
    int code = EXIT_OK;
    if (strcmp(path, "-") == 0)
        code = load_stdin(t, path, out);
    else if (qsim_calibration_load(t->ctx, path, out, &e))
        code = tool_error(t, path, &e);
    if (code == EXIT_OK && qsim_calibration_samples(*out) == 0)
        code = tool_fail(t, QSIM_E_VALUE, "%s: this calibration has seen no data", path);
    return code;
}
