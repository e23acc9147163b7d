/* SPDX-License-Identifier: MIT */
#include "op/elementwise/maps.h"

typedef struct map_params {
    qs_map_fn fn;
    bool floats;           /* fn is of doubles, the elements are floats */
    size_t elements, x, y; /* x, y: bytes of an element */
    double param[2];
} map_params;

typedef struct map_job {
    const map_params *p;
    const char *x;
    char *y;
} map_job;

QS_COLD int qs_infer_map(qs_infer *x, uint32_t types, int32_t dtype) {
    const int code = qs_infer_type(x, 0, types);
    const qs_value *v = x->in[0];
    return code ? code : qs_infer_out(x, 0, dtype ? dtype : v->dtype, v->rank, v->dims);
}

void qs_map_floats(qs_map_fn fn, const float *x, float *y, size_t n, const double *param) {
    double wide[64];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < QS_COUNT(wide) ? n - at : QS_COUNT(wide);
        for (size_t i = 0; i < m; i++)
            wide[i] = (double)x[at + i];
        fn(wide, wide, m, param);
        for (size_t i = 0; i < m; i++)
            y[at + i] = (float)wide[i];
    }
}

static void map_range(const void *arg, size_t begin, size_t end) {
    const map_job *job = arg;
    const map_params *p = job->p;
    const void *x = job->x + begin * p->x;
    void *y = job->y + begin * p->y;
    if (p->floats)
        qs_map_floats(p->fn, x, y, end - begin, p->param);
    else
        p->fn(x, y, end - begin, p->param);
}

static void run_map(const qs_step *s, const qs_frame *f) {
    const map_params *p = s->params;
    const map_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->elements, QS_GRAIN / 8, map_range, &job);
}

QS_COLD static int lower(qs_lower *l, const map_params *how) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    map_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *p = *how;
    p->elements = qs_value_elements(x);
    p->x = qs_dtype_bytes(x->dtype);
    p->y = qs_dtype_bytes(y->dtype);
    l->step->run = run_map;
    return QSIM_OK;
}

QS_COLD int qs_lower_map(qs_lower *l, qs_map_fn fn, double param0, double param1) {
    return lower(l, &(map_params){.fn = fn, .param = {param0, param1}});
}

QS_COLD int qs_lower_reals(qs_lower *l, qs_map_fn fn, double param0, double param1) {
    return lower(l, &(map_params){.fn = fn,
                                  .floats = qs_lower_in(l, 0)->dtype == QSIM_FLOAT,
                                  .param = {param0, param1}});
}
