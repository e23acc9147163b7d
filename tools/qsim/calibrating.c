/* SPDX-License-Identifier: MIT */
#include "calibrating.h"

#include <stdlib.h>
#include <string.h>

#include "common/progress.h"

/* A sample that alone makes a tensor's range so many times as wide is worth a look. */
#define WIDENED 4.0

static void warn_of_outliers(const tool *t, const qsim_calibration *c) {
    qsim_outlier worst = {.ratio = WIDENED};
    int32_t count = 0, at = 0;
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        qsim_outlier o = {.struct_size = sizeof(o)};
        if (qsim_calibration_outlier(c, i, &o) || o.ratio < WIDENED)
            continue;
        count++;
        if (o.ratio > worst.ratio) {
            worst = o;
            at = i;
        }
    }
    if (count > 0)
        tool_warn(t, "sample %lld alone widens the range of '%s' %.3g times (%.6g, others %.6g)%s",
                  (long long)worst.sample, qsim_calibration_name(c, at), worst.ratio,
                  (double)worst.value, (double)worst.others,
                  count > 1 ? ", and of other tensors" : "");
}

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
        if (qsim_calibration_feed(*out, b.inputs, b.input_count, &e)) {
            code = tool_error(t, e.code == QSIM_E_VALUE ? args_value(&t->args, "data") : file, &e);
            break;
        }
        done += (uint64_t)b.samples;
        if (progress_step(&p, "calibrating", done, (uint64_t)dataset_samples(d))) {
            code = tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted after %llu sample%s", file,
                             (unsigned long long)done, tool_plural((int64_t)done));
            break;
        }
    }
    progress_end(&p);
    if (code == EXIT_OK)
        warn_of_outliers(t, *out);
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
