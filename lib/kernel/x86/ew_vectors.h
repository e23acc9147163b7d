/* SPDX-License-Identifier: MIT */
/*
 * A template of the element-wise family, instantiated once for each vector width. Before including
 * it, define the macros of elementary_curves.h and
 *
 *   TARGET, INLINE         attributes of functions, and of those that are always inlined
 *   V, I, W                vectors of W floats and of W int32
 *   TABLE                  the name of the table of kernels
 *   load, store            W floats; no alignment
 *   get_some, put_some     the first n < W elements: the rest is 0, or left alone
 *   nans                   the type in which add_nans collects, from no_nans() on, for any_nan
 *   greater_bits(I, V)     the maximum of I and |V| as integers; starts from no_bits()
 *   softmax, NORMALIZE     the kernels of these names
 */

INLINE V get(const float *x, size_t left) {
    return left >= W ? load(x) : get_some(x, left);
}

INLINE void put(float *y, V v, size_t left) {
    if (left >= W)
        store(y, v);
    else
        put_some(y, v, left);
}

#define EACH(VALUE)                                                                                \
    for (size_t i = 0; i < n; i += W) {                                                            \
        const V v = get(x + i, n - i);                                                             \
        put(y + i, VALUE, n - i);                                                                  \
    }

#define CURVE(name)                                                                                \
    TARGET static void each_##name(const float *x, float *y, size_t n) {                           \
        EACH(v_##name(v))                                                                          \
    }

CURVE(exp)
CURVE(sigmoid)
CURVE(silu)
CURVE(tanh)
CURVE(erf)
CURVE(gelu)
CURVE(gelu_tanh)

/* The loop is so short that a test in each turn for an incomplete vector would cost time. */
TARGET static void each_hardswish(const float *x, float *y, size_t n) {
    for (; n >= W; n -= W, x += W, y += W)
        store(y, v_hardswish(load(x)));
    EACH(v_hardswish(v))
}

TARGET static void exp_shifted(const float *x, float shift, float *y, size_t n) {
    EACH(v_exp(v - QK_K(shift)))
}

/* ---- reductions ---- */

/*
 * Runs STEP(k, v), k < 4, on four vectors at a time, then on single ones, and last on the final W
 * elements, some of them again, which changes no extreme. n >= W.
 */
#define EXTREMES(STEP)                                                                             \
    size_t i = 0;                                                                                  \
    for (; i + 4 * W <= n; i += 4 * W) {                                                           \
        STEP(0, load(x + i))                                                                       \
        STEP(1, load(x + i + W))                                                                   \
        STEP(2, load(x + i + 2 * W))                                                               \
        STEP(3, load(x + i + 3 * W))                                                               \
    }                                                                                              \
    for (; i + W <= n; i += W)                                                                     \
        STEP(0, load(x + i))                                                                       \
    STEP(1, load(x + n - W))

#define EXTREME(best, v, which, four)                                                              \
    INLINE float best(const V *v) {                                                                \
        float part[W];                                                                             \
        store(part, which(which(v[0], v[1]), which(v[2], v[3])));                                  \
        __m128 f = _mm_loadu_ps(part);                                                             \
        for (size_t k = 4; k < W; k += 4)                                                          \
            f = four(f, _mm_loadu_ps(part + k));                                                   \
        f = four(f, _mm_movehl_ps(f, f));                                                          \
        return _mm_cvtss_f32(four(f, _mm_movehdup_ps(f)));                                         \
    }

/* clang-format off */
EXTREME(most, v, QK_MAX, _mm_max_ps)
EXTREME(least, v, QK_MIN, _mm_min_ps)
/* clang-format on */

/* A maximum of vectors depends on the order of zeros, and skips NaNs: the C loop decides then. */
TARGET static float greatest(const float *x, size_t n, uint32_t sign) {
    const I flip = (I)QK_K(qk_from_bits(sign));
    if (n < W)
        return qk_ew_c.greatest(x, n, sign);
    V top[4] = {QK_K(-INFINITY), QK_K(-INFINITY), QK_K(-INFINITY), QK_K(-INFINITY)};
    nans bad = no_nans();
#define STEP(k, value)                                                                             \
    {                                                                                              \
        const V v = (V)((I)value ^ flip);                                                          \
        top[k] = QK_MAX(v, top[k]);                                                                \
        bad = add_nans(bad, v);                                                                    \
    }
    EXTREMES(STEP)
#undef STEP
    const float best = most(top);
    return best == 0.0f || any_nan(bad) ? qk_ew_c.greatest(x, n, sign) : best;
}

TARGET static void range(const float *x, size_t n, float *low, float *high) {
    if (n < W) {
        qk_ew_c.range(x, n, low, high);
        return;
    }
    V lo[4] = {QK_K(0.0f), QK_K(0.0f), QK_K(0.0f), QK_K(0.0f)};
    V hi[4] = {QK_K(0.0f), QK_K(0.0f), QK_K(0.0f), QK_K(0.0f)};
#define STEP(k, value)                                                                             \
    {                                                                                              \
        const V v = value;                                                                         \
        lo[k] = QK_MIN(v, lo[k]);                                                                  \
        hi[k] = QK_MAX(v, hi[k]);                                                                  \
    }
    EXTREMES(STEP)
#undef STEP
    *low = least(lo);
    *high = most(hi);
}

TARGET static float magnitude(const float *x, size_t n) {
    if (n < W)
        return qk_ew_c.magnitude(x, n);
    I top[4] = {no_bits(), no_bits(), no_bits(), no_bits()};
    uint32_t part[W];
#define STEP(k, value) top[k] = greater_bits(top[k], value);
    EXTREMES(STEP)
#undef STEP
    const I pair = greater_bits(top[0], (V)top[1]);
    top[0] = greater_bits(greater_bits(pair, (V)top[2]), (V)top[3]);
    memcpy(part, top, sizeof(part));
    for (size_t k = 1; k < W; k++)
        part[0] = part[k] > part[0] ? part[k] : part[0];
    return qk_from_bits(part[0]);
}

const qk_ew TABLE = {.exp = each_exp,
                     .sigmoid = each_sigmoid,
                     .silu = each_silu,
                     .hardswish = each_hardswish,
                     .tanh = each_tanh,
                     .erf = each_erf,
                     .gelu = each_gelu,
                     .gelu_tanh = each_gelu_tanh,
                     .map = qk_map_avx2,
                     .cast = qk_cast_avx2,
                     .exp_shifted = exp_shifted,
                     .greatest = greatest,
                     .divide = qk_divide_avx2,
                     .subtract = qk_subtract_avx2,
                     .softmax = softmax,
                     .sum = qk_sum_avx2,
                     .sum_squares = qk_sum_squares_avx2,
                     .normalize = NORMALIZE,
                     .range = range,
                     .magnitude = magnitude,
                     .bound = qk_bound_avx2,
                     .muladd = qk_muladd_avx2,
                     .scale = qk_scale_avx2,
                     .reads = {extremes, bins, read_rows, qk_add_sums_avx2, qk_add_table_avx2}};
