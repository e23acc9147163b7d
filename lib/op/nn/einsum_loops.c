/* SPDX-License-Identifier: MIT */
#include "op/nn/einsum.h"

/*
 * A sum of products in order. Of two operands, one of which has neighbouring elements for
 * neighbouring outputs and the other one element for all of them, `columns` takes four terms at a
 * time for each of many outputs, in the same order.
 */
#define LOOPS(name, T, A, field)                                                                   \
    QS_COLD static void row_##name(const qs_einsum *p, const void *const *x, const size_t *at,     \
                                   size_t from, size_t count, qs_total *sum) {                     \
        for (size_t i = from; i < from + count; i++) {                                             \
            A product = (A)((const T *)x[0])[at[0] + i * p->inner_steps[0]];                       \
            for (int32_t k = 1; k < p->operands; k++)                                              \
                product *= (A)((const T *)x[k])[at[k] + i * p->inner_steps[k]];                    \
            sum->field += product;                                                                 \
        }                                                                                          \
    }
#define COLUMNS(name, T, A, field)                                                                 \
    static void columns_##name(const qs_einsum *p, const void *const *x, const size_t *at,         \
                               size_t from, size_t count, size_t n, qs_total *sums) {              \
        const int32_t d = p->dense;                                                                \
        const size_t sa = p->inner_steps[!d], sb = p->inner_steps[d];                              \
        const T *a = (const T *)x[!d] + at[!d] + from * sa;                                        \
        const T *b = (const T *)x[d] + at[d] + from * sb;                                          \
        for (size_t i = 0; i < count; i += 4, a += 4 * sa, b += 4 * sb) {                          \
            const A f = (A)a[0], g = (A)a[sa], h = (A)a[2 * sa], e = (A)a[3 * sa];                 \
            QS_IVDEP                                                                               \
            for (size_t c = 0; c < n; c++)                                                         \
                sums[c].field = sums[c].field + f * (A)b[c] + g * (A)b[sb + c] +                   \
                                h * (A)b[2 * sb + c] + e * (A)b[3 * sb + c];                       \
        }                                                                                          \
    }
LOOPS(f32, float, double, real)
LOOPS(f64, double, double, real)
COLUMNS(f64, double, double, real)
LOOPS(u8, uint8_t, uint64_t, whole) /* integers wrap, signed ones to the same bits */
LOOPS(u16, uint16_t, uint64_t, whole)
LOOPS(u32, uint32_t, uint64_t, whole)
COLUMNS(u32, uint32_t, uint64_t, whole)
LOOPS(u64, uint64_t, uint64_t, whole)
/* SSE2 has no product of 64 bits: vectors would be ten times the code. */
QS_COLD COLUMNS(u64, uint64_t, uint64_t, whole)

QS_COLD void qs_einsum_loops(qs_einsum *p) {
    static const qs_einsum_row rows[9] = {
        [1] = row_u8, [2] = row_u16, [4] = row_u32, [8] = row_u64};
    const size_t bytes = qs_dtype_bytes(p->dtype);
    p->row = p->dtype == QSIM_FLOAT ? row_f32 : p->dtype == QSIM_DOUBLE ? row_f64 : rows[bytes];
    const size_t *steps = p->steps[p->kept > 0 ? p->kept - 1 : 0];
    if (p->kept == 0 || p->operands != 2 || steps[0] + steps[1] != 1)
        return;
    p->dense = steps[1] == 1;
    p->columns = p->dtype == QSIM_DOUBLE               ? columns_f64
                 : p->dtype == QSIM_FLOAT || bytes < 4 ? NULL
                 : bytes == 4                          ? columns_u32
                                                       : columns_u64;
}
