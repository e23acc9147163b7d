/* SPDX-License-Identifier: MIT */
/* Transpose, of elements of 1, 2, 4 or 8 bytes. */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"

static int read_perm(const qs_infer *x, int32_t rank, int32_t perm[QSIM_MAX_RANK]) {
    int64_t given[QSIM_MAX_RANK];
    int32_t count;
    uint32_t seen = 0;
    int code = qs_infer_attr_ints(x, "perm", given, QSIM_MAX_RANK, &count);
    if (code)
        return code;
    if (count != QS_ABSENT && count != rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "perm has %d axes, the input %d", (int)count,
                             (int)rank);
    for (int32_t i = 0; i < rank; i++) {
        int64_t axis = count == QS_ABSENT ? rank - 1 - i : given[i];
        if (axis < 0 || axis >= rank || (seen & 1u << axis))
            return qs_infer_fail(x, QSIM_E_VALUE, "perm is not a permutation: axis %lld",
                                 (long long)axis);
        seen |= 1u << axis;
        perm[i] = (int32_t)axis;
    }
    return QSIM_OK;
}

static int infer_transpose(qs_infer *x) {
    const qs_value *in = x->in[0];
    int32_t perm[QSIM_MAX_RANK];
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (code || in->rank < 0)
        return code ? code : qs_infer_out(x, 0, in->dtype, -1, NULL);
    code = read_perm(x, in->rank, perm);
    if (code)
        return code;
    for (int32_t i = 0; i < in->rank; i++)
        dims[i] = in->dims[perm[i]];
    return qs_infer_out(x, 0, in->dtype, in->rank, dims);
}

/*
 * Merged axes of the result; the last two, (rows, columns), are one tile copy: columns are
 * contiguous in the result; in the input, rows are `row` elements apart and columns `column`.
 */
typedef struct transpose_params {
    int32_t rank; /* of the axes outside the tile */
    size_t outer, rows, columns, row, column, element;
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK];
} transpose_params;

#define BLOCK 32

#define NARROW 8

/* Few columns, as channels of an image: long loops over rows, all columns of one at a time. */
#define NARROW_TILE(T)                                                                             \
    static void narrow_##T(const T *restrict x, T *restrict y, const transpose_params *p) {        \
        size_t n = p->columns, row = p->row, column = p->column;                                   \
        if (n == 2) {                                                                              \
            for (size_t r = 0; r < p->rows; r++, x += row, y += 2) {                               \
                y[0] = x[0];                                                                       \
                y[1] = x[column];                                                                  \
            }                                                                                      \
        } else if (n == 3) {                                                                       \
            for (size_t r = 0; r < p->rows; r++, x += row, y += 3) {                               \
                y[0] = x[0];                                                                       \
                y[1] = x[column];                                                                  \
                y[2] = x[2 * column];                                                              \
            }                                                                                      \
        } else {                                                                                   \
            for (size_t c = 0; c < n; c++)                                                         \
                for (size_t r = 0; r < p->rows; r++)                                               \
                    y[r * n + c] = x[r * row + c * column];                                        \
        }                                                                                          \
    }

NARROW_TILE(uint8_t)
NARROW_TILE(uint16_t)
NARROW_TILE(uint32_t)
NARROW_TILE(uint64_t)

/* Both sides stay in cache while a block of BLOCK x BLOCK elements is turned. */
#define TILE(T)                                                                                    \
    static void tile_##T(const T *x, T *y, const transpose_params *p) {                            \
        if (p->columns < NARROW) {                                                                 \
            narrow_##T(x, y, p);                                                                   \
            return;                                                                                \
        }                                                                                          \
        for (size_t r0 = 0; r0 < p->rows; r0 += BLOCK) {                                           \
            size_t r1 = r0 + BLOCK < p->rows ? r0 + BLOCK : p->rows;                               \
            for (size_t c0 = 0; c0 < p->columns; c0 += BLOCK) {                                    \
                size_t c1 = c0 + BLOCK < p->columns ? c0 + BLOCK : p->columns;                     \
                for (size_t r = r0; r < r1; r++)                                                   \
                    for (size_t c = c0; c < c1; c++)                                               \
                        y[r * p->columns + c] = x[r * p->row + c * p->column];                     \
            }                                                                                      \
        }                                                                                          \
    }

TILE(uint8_t)
TILE(uint16_t)
TILE(uint32_t)
TILE(uint64_t)

static void rows_copy(const char *x, char *y, const transpose_params *p) {
    for (size_t r = 0; r < p->rows; r++)
        memcpy(y + r * p->columns * p->element, x + r * p->row * p->element,
               p->columns * p->element);
}

typedef struct transpose_job {
    const transpose_params *p;
    const qk_u8 *k;
    const char *x;
    char *y;
} transpose_job;

static void transpose_range(const void *arg, size_t begin, size_t end) {
    const transpose_job *job = arg;
    const transpose_params *p = job->p;
    for (size_t o = begin; o < end; o++) {
        size_t at = 0, rest = o;
        for (int32_t i = p->rank - 1; i >= 0; i--) {
            at += rest % p->dims[i] * p->strides[i];
            rest /= p->dims[i];
        }
        const void *x = job->x + at * p->element;
        void *y = job->y + o * p->rows * p->columns * p->element;
        if (p->column == 1)
            rows_copy(x, y, p);
        else if (p->element == 1 && p->columns <= 4 && p->row == 1 && p->rows >= 1024)
            job->k->interleave(x, p->column, p->columns, y, p->rows);
        else if (p->element == 1)
            tile_uint8_t(x, y, p);
        else if (p->element == 2)
            tile_uint16_t(x, y, p);
        else if (p->element == 4)
            tile_uint32_t(x, y, p);
        else
            tile_uint64_t(x, y, p);
    }
}

static void run_transpose(const qs_step *s, const qs_frame *f) {
    const transpose_params *p = s->params;
    transpose_job job = {p, f->ctx->kernels->u8, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->outer, QS_GRAIN / (p->rows * p->columns + 1) + 1, transpose_range, &job);
}

/* Merged axes of the result with their strides in the input; returns how many. */
static int32_t merge_axes(const qs_value *x, const int32_t *perm, size_t *dims, size_t *strides) {
    size_t own[QSIM_MAX_RANK], step = 1;
    int32_t n = 0;
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= (size_t)x->dims[i].size;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        size_t d = (size_t)x->dims[perm[i]].size, s = own[perm[i]];
        if (d == 1)
            continue;
        if (n > 0 && strides[n - 1] == s * d) {
            dims[n - 1] *= d;
            strides[n - 1] = s;
            continue;
        }
        dims[n] = d;
        strides[n++] = s;
    }
    return n;
}

static int lower_transpose(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    int32_t perm[QSIM_MAX_RANK];
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK];
    qs_infer rules;
    qs_lower_infer(l, &rules);
    int code = read_perm(&rules, x->rank, perm);
    if (code)
        return code;
    int32_t n = merge_axes(x, perm, dims, strides);
    if (n <= 1) { /* only axes of size 1 move */
        l->alias = true;
        return QSIM_OK;
    }
    transpose_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->element = qs_dtype_bytes(x->dtype);
    p->rank = n - 2;
    p->outer = 1;
    for (int32_t i = 0; i < p->rank; i++) {
        p->dims[i] = dims[i];
        p->strides[i] = strides[i];
        p->outer *= dims[i];
    }
    p->rows = dims[n - 2];
    p->row = strides[n - 2];
    p->columns = dims[n - 1];
    p->column = strides[n - 1];
    l->step->run = run_transpose;
    l->step->kernel = "transpose";
    return QSIM_OK;
}

static const qs_attr_rule transpose_attrs[] = {{"perm", QS_ATTR_INTS, 1, 0}};

const qs_op qs_op_transpose = {.domain = "",
                               .name = "Transpose",
                               .since = 1,
                               .until = QS_OPSET_NEWEST,
                               .min_in = 1,
                               .max_in = 1,
                               .min_out = 1,
                               .max_out = 1,
                               .attrs = transpose_attrs,
                               .attr_count = QS_COUNT(transpose_attrs),
                               .infer = infer_transpose,
                               .lower = lower_transpose};
