/* SPDX-License-Identifier: MIT */
#include "op/elementwise/factor.h"

qs_factor qs_factor_of(const qs_value *v, bool right) {
    qs_factor f = {.rank = v->rank};
    for (int32_t i = 0; i < v->rank; i++)
        f.dims[i] = v->dims[i];
    if (v->rank == 1) {
        f.rank = 2;
        f.dims[right] = (qs_dim){1, NULL};
        f.dims[!right] = v->dims[0];
    }
    f.rows = f.dims[f.rank - 2].size;
    f.cols = f.dims[f.rank - 1].size;
    return f;
}

int qs_infer_batches(const qs_infer *x, const qs_factor *a, const qs_factor *b, int32_t *rank,
                     qs_dim dims[QSIM_MAX_RANK]) {
    const qs_value va = {.rank = a->rank - 2, .dims = a->dims};
    const qs_value vb = {.rank = b->rank - 2, .dims = b->dims};
    return qs_infer_broadcast(x, &va, &vb, rank, dims);
}

int qs_infer_product(const qs_infer *x, const qs_value *a, const qs_value *b, int32_t dtype) {
    if (a->rank == 0 || b->rank == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a factor is a scalar");
    if (a->rank < 0 || b->rank < 0)
        return qs_infer_unknown(x, dtype);
    const qs_factor left = qs_factor_of(a, false), right = qs_factor_of(b, true);
    if (left.cols >= 0 && right.rows >= 0 && left.cols != right.rows)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the factors meet with %lld and %lld elements",
                             (long long)left.cols, (long long)right.rows);
    qs_dim dims[QSIM_MAX_RANK];
    int32_t rank = 0;
    int code = qs_infer_batches(x, &left, &right, &rank, dims);
    if (code)
        return code;
    if (a->rank > 1)
        dims[rank++] = left.dims[left.rank - 2];
    if (b->rank > 1)
        dims[rank++] = right.dims[right.rank - 1];
    return qs_infer_out(x, 0, dtype, rank, dims);
}

size_t qs_factor_matrix(const qs_factor *f, const qs_dim *dims, int32_t rank, size_t batch) {
    size_t at = 0, step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t own = i - (rank - (f->rank - 2));
        const size_t index = batch % (size_t)dims[i].size;
        batch /= (size_t)dims[i].size;
        if (own < 0)
            continue;
        const size_t size = (size_t)f->dims[own].size;
        at += size == 1 ? 0 : index * step;
        step *= size;
    }
    return at;
}
