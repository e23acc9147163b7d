/* SPDX-License-Identifier: MIT */
#include "calibrating.h"

#include <stdlib.h>
#include <string.h>

#include "common/progress.h"

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
            code = tool_error(t, e.code == QSIM_E_VALUE ? args_value(&t->args, "data") : file, &e);
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
    return code;
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
