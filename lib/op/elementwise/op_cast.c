/* SPDX-License-Identifier: MIT */
/*
 * Cast between float, double, the integers and bool. Floats are truncated towards zero and
 * saturate, a NaN becomes 0; integers wrap; anything but 0 is true.
 */
#include "op/rules.h"

#define QS_T_CAST (QS_T_ARITH | QS_T(QSIM_BOOL))
#define CHUNK     256

/* Values on their way: each type widens to one of three, from which every type is made exactly. */
typedef enum wide_kind { WIDE_I64, WIDE_U64, WIDE_F64 } wide_kind;

typedef union wide {
    int64_t i[CHUNK];
    uint64_t u[CHUNK];
    double f[CHUNK];
} wide;

typedef void (*load_fn)(const void *x, size_t n, wide *w);
typedef void (*store_fn)(const wide *w, size_t n, void *y);

#define LOAD(RARE, suffix, T, field)                                                               \
    RARE static void load_##suffix(const void *vx, size_t n, wide *w) {                            \
        const T *x = vx;                                                                           \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            w->field[i] = x[i];                                                                    \
    }
LOAD(, f32, float, f)
LOAD(QS_COLD, f64, double, f)
LOAD(QS_COLD, s8, int8_t, i)
LOAD(QS_COLD, s16, int16_t, i)
LOAD(QS_COLD, s32, int32_t, i)
LOAD(, s64, int64_t, i)
LOAD(, u8, uint8_t, u)
LOAD(QS_COLD, u16, uint16_t, u)
LOAD(QS_COLD, u32, uint32_t, u)
LOAD(QS_COLD, u64, uint64_t, u)

static void load_b8(const void *vx, size_t n, wide *w) {
    const uint8_t *x = vx;
    for (size_t i = 0; i < n; i++)
        w->u[i] = x[i] != 0;
}

#define STORE(RARE, suffix, T, kind, field, expression)                                            \
    RARE static void store_##suffix##_##kind(const wide *w, size_t n, void *vy) {                  \
        T *y = vy;                                                                                 \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (T)(expression(w->field[i]));                                                   \
    }

#define SAME(v)  (v)
#define TRUTH(v) ((v) != 0)
/* `top` is the first double above the type's range. */
#define SATURATE(v, T, low, high, top)                                                             \
    ((v) != (v) ? (T)0 : (v) <= (double)(low) ? (T)(low) : (v) >= (top) ? (T)(high) : (T)(v))
#define TO_S8(v)  SATURATE(v, int8_t, INT8_MIN, INT8_MAX, 128.0)
#define TO_S16(v) SATURATE(v, int16_t, INT16_MIN, INT16_MAX, 32768.0)
#define TO_S32(v) SATURATE(v, int32_t, INT32_MIN, INT32_MAX, 2147483648.0)
#define TO_S64(v) SATURATE(v, int64_t, INT64_MIN, INT64_MAX, 9223372036854775808.0)
#define TO_U8(v)  SATURATE(v, uint8_t, 0, UINT8_MAX, 256.0)
#define TO_U16(v) SATURATE(v, uint16_t, 0, UINT16_MAX, 65536.0)
#define TO_U32(v) SATURATE(v, uint32_t, 0, UINT32_MAX, 4294967296.0)
#define TO_U64(v) SATURATE(v, uint64_t, 0, UINT64_MAX, 18446744073709551616.0)

#define STORES(RARE, suffix, T, FROM_INT, FROM_FLOAT)                                              \
    STORE(RARE, suffix, T, i64, i, FROM_INT)                                                       \
    STORE(RARE, suffix, T, u64, u, FROM_INT)                                                       \
    STORE(RARE, suffix, T, f64, f, FROM_FLOAT)

STORES(, f32, float, SAME, SAME)
STORES(QS_COLD, f64, double, SAME, SAME)
STORES(QS_COLD, s8, int8_t, SAME, TO_S8)
STORES(QS_COLD, s16, int16_t, SAME, TO_S16)
STORES(QS_COLD, s32, int32_t, SAME, TO_S32)
STORES(, s64, int64_t, SAME, TO_S64)
STORES(QS_COLD, u8, uint8_t, SAME, TO_U8)
STORES(QS_COLD, u16, uint16_t, SAME, TO_U16)
STORES(QS_COLD, u32, uint32_t, SAME, TO_U32)
STORES(QS_COLD, u64, uint64_t, SAME, TO_U64)
STORES(QS_COLD, b8, uint8_t, TRUTH, TRUTH)

typedef struct cast_type {
    wide_kind kind;
    load_fn load;
    store_fn store[3]; /* by kind of the source */
} cast_type;

#define CAST_TYPE(kind, suffix)                                                                    \
    {                                                                                              \
        kind, load_##suffix, {                                                                     \
            store_##suffix##_i64, store_##suffix##_u64, store_##suffix##_f64                       \
        }                                                                                          \
    }

static const cast_type types[16] = {
    [QSIM_FLOAT] = CAST_TYPE(WIDE_F64, f32),  [QSIM_DOUBLE] = CAST_TYPE(WIDE_F64, f64),
    [QSIM_INT8] = CAST_TYPE(WIDE_I64, s8),    [QSIM_INT16] = CAST_TYPE(WIDE_I64, s16),
    [QSIM_INT32] = CAST_TYPE(WIDE_I64, s32),  [QSIM_INT64] = CAST_TYPE(WIDE_I64, s64),
    [QSIM_UINT8] = CAST_TYPE(WIDE_U64, u8),   [QSIM_UINT16] = CAST_TYPE(WIDE_U64, u16),
    [QSIM_UINT32] = CAST_TYPE(WIDE_U64, u32), [QSIM_UINT64] = CAST_TYPE(WIDE_U64, u64),
    [QSIM_BOOL] = CAST_TYPE(WIDE_U64, b8),
};

QS_COLD static int infer_cast(qs_infer *x) {
    int64_t to = qs_node_int(x->node, "to", 0);
    int code = qs_infer_type(x, 0, QS_T_CAST);
    if (code)
        return code;
    if (to <= 0 || to >= 32 || !(QS_T_CAST & QS_T(to)))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "casting to type %lld (%s) is not supported",
                             (long long)to,
                             qsim_dtype_name(to > 0 && to < 64 ? (int32_t)to : QSIM_UNDEFINED));
    return qs_infer_out(x, 0, (int32_t)to, x->in[0]->rank, x->in[0]->dims);
}

typedef struct cast_params {
    load_fn load;
    store_fn store;
    size_t elements, from, to;
} cast_params;

typedef struct cast_job {
    const cast_params *p;
    const char *x;
    char *y;
} cast_job;

static void cast_range(const void *arg, size_t begin, size_t end) {
    const cast_job *job = arg;
    const cast_params *p = job->p;
    wide w;
    for (size_t i = begin; i < end; i += CHUNK) {
        size_t n = end - i < CHUNK ? end - i : CHUNK;
        p->load(job->x + i * p->from, n, &w);
        p->store(&w, n, job->y + i * p->to);
    }
}

static void run_cast(const qs_step *s, const qs_frame *f) {
    const cast_params *p = s->params;
    cast_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->elements, QS_GRAIN, cast_range, &job);
}

QS_COLD static int lower_cast(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    if (x->dtype == y->dtype) {
        l->alias = true;
        return QSIM_OK;
    }
    cast_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->load = types[x->dtype].load;
    p->store = types[y->dtype].store[types[x->dtype].kind];
    p->elements = qs_value_elements(x);
    p->from = qs_dtype_bytes(x->dtype);
    p->to = qs_dtype_bytes(y->dtype);
    l->step->run = run_cast;
    l->step->kernel = "cast";
    return QSIM_OK;
}

static const qs_attr_rule cast_attrs[] = {{"to", QS_ATTR_INT, 6, 0},
                                          {"saturate", QS_ATTR_INT, 19, 0},
                                          {"round_mode", QS_ATTR_STRING, 24, 0}};

QS_OP(cast, .name = "Cast", .since = 6, .min_in = 1, QS_ATTRS(cast_attrs), .traits = QS_ELEMENTWISE,
      .infer = infer_cast, .lower = lower_cast);
