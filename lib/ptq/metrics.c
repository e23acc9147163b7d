/* SPDX-License-Identifier: MIT */
/* Distances between two tensors, and McNemar's test for two classifiers. */
#include "tensor/minifloat.h"

#include <math.h>
#include <stddef.h>

#include <qsim/ptq.h>

#include "ptq/divergence.h"

static bool is_known(int32_t dtype) {
    switch (dtype) {
    case QSIM_FLOAT:
    case QSIM_DOUBLE:
    case QSIM_FLOAT16:
    case QSIM_BFLOAT16:
    case QSIM_UINT8:
    case QSIM_INT8:
    case QSIM_UINT16:
    case QSIM_INT16:
    case QSIM_INT32:
    case QSIM_UINT32:
    case QSIM_INT64:
    case QSIM_UINT64:
    case QSIM_BOOL: return true;
    default: return false;
    }
}

double qs_element(const qsim_tensor *t, size_t i) {
    switch (t->dtype) {
    case QSIM_FLOAT: return (double)((const float *)t->data)[i];
    case QSIM_DOUBLE: return ((const double *)t->data)[i];
    case QSIM_FLOAT16: return (double)qs_half_value(((const uint16_t *)t->data)[i]);
    case QSIM_BFLOAT16: return (double)qs_brain_value(((const uint16_t *)t->data)[i]);
    case QSIM_BOOL:
    case QSIM_UINT8: return ((const uint8_t *)t->data)[i];
    case QSIM_INT8: return ((const int8_t *)t->data)[i];
    case QSIM_UINT16: return ((const uint16_t *)t->data)[i];
    case QSIM_INT16: return ((const int16_t *)t->data)[i];
    case QSIM_INT32: return ((const int32_t *)t->data)[i];
    case QSIM_UINT32: return ((const uint32_t *)t->data)[i];
    case QSIM_INT64: return (double)((const int64_t *)t->data)[i];
    default: return (double)((const uint64_t *)t->data)[i];
    }
}

/* Whether the caller's struct has the fields that later versions have added. */
static bool has_worst(const qsim_metrics *m) {
    return m->struct_size >= sizeof(*m);
}

static void add_difference(qsim_metrics *m, uint64_t at, double x, double y, double d) {
    bool worse = d > m->max_abs || (isnan(d) && !isnan(m->max_abs));
    if (worse)
        m->max_abs = d;
    double relative = d > 0 ? d / fabs(x) : 0;
    if (relative > m->max_rel || isnan(relative))
        m->max_rel = relative;
    if (!has_worst(m))
        return;
    m->nan_one += isnan(x) != isnan(y);
    if (worse) {
        m->worst = at;
        m->worst_a = x;
        m->worst_b = y;
    }
}

/*
 * Adds one row of the last axis; returns whether both have their greatest element at the same
 * index.
 */
static bool add_row(qsim_metrics *m, const qsim_tensor *a, const qsim_tensor *b, size_t first,
                    size_t n, double rtol, double atol) {
    size_t best_a = 0, best_b = 0, nan_a = 0, nan_b = 0;
    double top_a = -INFINITY, top_b = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double x = qs_element(a, first + i), y = qs_element(b, first + i), d = fabs(x - y);
        bool both_nan = isnan(x) && isnan(y);
        if (x == y || both_nan)
            d = 0; /* equal infinities have no difference */
        m->outside += d != 0 && !(d <= atol + rtol * fabs(x));
        add_difference(m, m->count + first + i, x, y, d);
        nan_a += isnan(x) != 0;
        nan_b += isnan(y) != 0;
        if (both_nan && has_worst(m)) {
            m->nan_both++;
        } else if (!both_nan) {
            m->signal += x * x;
            m->noise += d * d;
            m->dot += x * y;
            m->norm_b += y * y;
        }
        if (x > top_a) {
            top_a = x;
            best_a = i;
        }
        if (y > top_b) {
            top_b = y;
            best_b = i;
        }
    }
    return best_a == best_b && nan_a < n && nan_b < n;
}

int qsim_metrics_add(qsim_metrics *m, const qsim_tensor *a, const qsim_tensor *b, double rtol,
                     double atol) {
    size_t count;
    if (!m || !a || !b || m->struct_size < offsetof(qsim_metrics, nan_both))
        return QSIM_E_ARGUMENT;
    if (!is_known(a->dtype) || !is_known(b->dtype))
        return QSIM_E_DTYPE;
    const int code = qs_pair_size(a, b, &count);
    if (code)
        return code;
    size_t row = a->rank > 0 ? (size_t)a->dims[a->rank - 1] : 1;
    for (size_t i = 0; i < count; i += row) {
        m->agree += add_row(m, a, b, i, row, rtol, atol);
        m->rows++;
    }
    m->count += count;
    return QSIM_OK;
}

/* Whether all elements, and there are some, are NaN in both. */
static bool says_nothing(const qsim_metrics *m) {
    return has_worst(m) && m->count > 0 && m->nan_both == m->count;
}

double qsim_metrics_sqnr(const qsim_metrics *m) {
    if (m && says_nothing(m))
        return NAN;
    if (!m || m->noise == 0)
        return INFINITY;
    return 10 * log10(m->signal / m->noise);
}

double qsim_metrics_cosine(const qsim_metrics *m) {
    if (!m)
        return 0;
    if (says_nothing(m))
        return NAN;
    double norm = sqrt(m->signal) * sqrt(m->norm_b);
    if (norm > 0)
        return m->dot / norm;
    return m->signal == m->norm_b ? 1 : 0;
}

/*
 * Twice the tail of the binomial distribution with p = 1/2: 2 * sum(C(n, i), i <= k) / 2^n. Terms
 * are kept in range by powers of two, so that only exact and correctly rounded steps are used.
 */
static double binomial_tail(uint64_t n, uint64_t k) {
    double term = 1, sum = 1;
    int64_t exponent = 0;
    for (uint64_t i = 0; i < k; i++) {
        term *= (double)(n - i) / (double)(i + 1);
        sum += term;
        if (sum > 1e200) {
            term = ldexp(term, -600);
            sum = ldexp(sum, -600);
            exponent += 600;
        }
    }
    int64_t shift = exponent + 1 - (int64_t)n;
    return shift < -2000 ? 0 : ldexp(sum, (int)shift);
}

double qsim_mcnemar(uint64_t only_a, uint64_t only_b) {
    const uint64_t exact_up_to = 10000000; /* terms summed; beyond, the normal limit is as good */
    uint64_t k = only_a < only_b ? only_a : only_b, larger = only_a < only_b ? only_b : only_a;
    if (larger > UINT64_MAX / 4 || k + larger > exact_up_to) {
        double n = (double)k + (double)larger;
        double z = ((double)larger - (double)k - 1) / sqrt(n);
        return z <= 0 ? 1 : erfc(z / sqrt(2.0));
    }
    double p = binomial_tail(k + larger, k);
    return p < 1 ? p : 1;
}
