/* SPDX-License-Identifier: MIT */
/* Tile: repeats the input along every axis. */
#include "op/rules.h"

#include "base/ctx.h"

static int infer_tile(qs_infer *x) {
    const qs_value *in = x->in[0];
    int64_t repeats[QSIM_MAX_RANK];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t count = 0;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_ints(x, 1, repeats, QSIM_MAX_RANK, &count);
    if (code || in->rank < 0)
        return code ? code : qs_infer_out(x, 0, in->dtype, -1, NULL);
    if (count >= 0 && count != in->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%d repeats for an input of rank %d", (int)count,
                             (int)in->rank);
    for (int32_t i = 0; i < in->rank; i++) {
        const int64_t size = in->dims[i].size, times = count < 0 ? -1 : repeats[i];
        if (count >= 0 && times < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %d is repeated %lld times", (int)i,
                                 (long long)times);
        dims[i] = times == 1 ? in->dims[i] : (qs_dim){-1, NULL};
        if (size >= 0 && times >= 0 && !qs_mul64(size, times, &dims[i].size))
            return qs_infer_fail(x, QSIM_E_LIMIT, "axis %d becomes %lld times %lld", (int)i,
                                 (long long)size, (long long)times);
    }
    return qs_infer_out(x, 0, in->dtype, in->rank, dims);
}

/* A row of the result is `run` bytes of the input `times` times; outer axes select the run. */
typedef struct tile_params {
    int32_t rank;
    size_t rows, run, times;
    size_t dims[QSIM_MAX_RANK], sizes[QSIM_MAX_RANK], strides[QSIM_MAX_RANK];
} tile_params;

typedef struct tile_job {
    const tile_params *p;
    const char *x;
    char *y;
} tile_job;

/* Appends a copy of the bytes written so far, doubling them each time. */
static void repeat_run(const char *x, char *y, size_t run, size_t times) {
    const size_t total = run * times;
    memcpy(y, x, run);
    for (size_t done = run; done < total;) {
        const size_t n = done < total - done ? done : total - done;
        memcpy(y + done, y, n);
        done += n;
    }
}

static void tile_range(const void *arg, size_t begin, size_t end) {
    const tile_job *job = arg;
    const tile_params *p = job->p;
    for (size_t row = begin; row < end; row++) {
        size_t at = 0, rest = row;
        for (int32_t i = p->rank; i-- > 0; rest /= p->dims[i])
            at += rest % p->dims[i] % p->sizes[i] * p->strides[i];
        repeat_run(job->x + at, job->y + row * p->run * p->times, p->run, p->times);
    }
}

static void run_tile(const qs_step *s, const qs_frame *f) {
    const tile_params *p = s->params;
    tile_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->rows, QS_GRAIN * 4 / (p->run * p->times + 1) + 1, tile_range, &job);
}

static int lower_tile(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    tile_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = run_tile;
    if (qs_value_elements(y) == 0)
        return QSIM_OK; /* no rows */
    p->run = qs_dtype_bytes(x->dtype);
    p->times = p->rows = 1;
    int32_t axis = x->rank;
    while (axis > 0 && p->times == 1) {
        axis--;
        p->run *= (size_t)x->dims[axis].size;
        p->times = (size_t)(y->dims[axis].size / x->dims[axis].size);
    }
    size_t stride = p->run;
    p->rank = axis;
    for (int32_t i = axis; i-- > 0; stride *= (size_t)x->dims[i].size) {
        p->sizes[i] = (size_t)x->dims[i].size;
        p->dims[i] = (size_t)y->dims[i].size;
        p->strides[i] = stride;
        p->rows *= p->dims[i];
    }
    l->alias = p->times == 1;
    return QSIM_OK;
}

QS_OP(tile, .name = "Tile", .since = 6, .min_in = 2, .traits = QS_MOVES | QS_KEEPS,
      .shape_inputs = 1 << 1, .kernel = QS_KERNEL_TILE, .infer = infer_tile, .lower = lower_tile);
