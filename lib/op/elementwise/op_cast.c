/* SPDX-License-Identifier: MIT */
/*
 * Cast and CastLike between floats and integers of any width, and bool. Floats are rounded to
 * narrower ones to nearest even; to integers they are truncated towards zero and saturate, NaN
 * gives 0. To 2 and 4 bits and between integers the low bits remain. Anything but 0 is true.
 * float8e8m0 has only an exponent: attribute round_mode says which power of two is taken.
 */
#include <math.h>

#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/rules.h"
#include "tensor/minifloat.h"

#define CHUNK 256
#define GROUP 4 /* as many elements of 2 bits have a byte */
/*
 * Loops over elements of whole bytes get a multiple of UNIT, so that compilers make no loop for a
 * remainder.
 */
#define UNIT  ((size_t)16)
#define WHOLE (n & ~(UNIT - 1))

/* Intermediate values: each type widens to one of three, from which every type is made exactly. */
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
        for (size_t i = 0; i < WHOLE; i++)                                                         \
            w->field[i] = x[i];                                                                    \
    }
LOAD(, f32, float, f)
LOAD(QS_COLD, f64, double, f)
LOAD(QS_COLD, s8, int8_t, i)
LOAD(QS_COLD, s16, int16_t, i)
LOAD(QS_COLD, s32, int32_t, i)
LOAD(, s64, int64_t, i)
LOAD(QS_COLD, u8, uint8_t, u)
LOAD(QS_COLD, u16, uint16_t, u)
LOAD(QS_COLD, u32, uint32_t, u)
LOAD(QS_COLD, u64, uint64_t, u)

QS_COLD static void load_e8m0(const void *vx, size_t n, wide *w) {
    const uint8_t *x = vx;
    for (size_t i = 0; i < n; i++)
        w->f[i] = x[i] == 255 ? (double)NAN : ldexp(1, x[i] - 127);
}

/* Several elements per byte, the first in the low bits. */
QS_COLD static void load_packed(const void *vx, size_t n, wide *w, unsigned bits) {
    const uint8_t *x = vx;
    const unsigned per = 8 / bits;
    for (size_t i = 0; i < n; i++)
        w->u[i] = (uint64_t)x[i / per] >> i % per * bits & ((1u << bits) - 1);
}

QS_COLD static void load_signed(const void *x, size_t n, wide *w, unsigned bits) {
    const int64_t sign = (int64_t)1 << (bits - 1);
    load_packed(x, n, w, bits);
    for (size_t i = 0; i < n; i++)
        w->i[i] = ((int64_t)w->u[i] ^ sign) - sign;
}

QS_COLD static void load_u4(const void *x, size_t n, wide *w) {
    load_packed(x, n, w, 4);
}
QS_COLD static void load_s4(const void *x, size_t n, wide *w) {
    load_signed(x, n, w, 4);
}
QS_COLD static void load_u2(const void *x, size_t n, wide *w) {
    load_packed(x, n, w, 2);
}
QS_COLD static void load_s2(const void *x, size_t n, wide *w) {
    load_signed(x, n, w, 2);
}
QS_COLD static void load_b8(const void *vx, size_t n, wide *w) {
    const uint8_t *x = vx;
    QS_IVDEP
    for (size_t i = 0; i < WHOLE; i++)
        w->u[i] = x[i] != 0;
}

#define STORE(RARE, suffix, T, kind, field, expression)                                            \
    RARE static void store_##suffix##_##kind(const wide *w, size_t n, void *vy) {                  \
        T *y = vy;                                                                                 \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < WHOLE; i++)                                                         \
            y[i] = (T)(expression(w->field[i]));                                                   \
    }

#define SAME(v)  (v)
#define TRUTH(v) ((v) != 0)
/* Without branches, so that compilers can vectorize it. */
static inline double clamp(double v, double low, double high) {
    const double number = v != v ? 0 : v, least = number < low ? low : number;
    return least > high ? high : least;
}

QS_COLD static void store_clamped(const wide *w, size_t n, double low, double high, int32_t *y) {
    QS_IVDEP
    for (size_t i = 0; i < WHOLE; i++)
        y[i] = (int32_t)clamp(w->f[i], low, high);
}

QS_COLD static void store_s32_f64(const wide *w, size_t n, void *y) {
    store_clamped(w, n, INT32_MIN, INT32_MAX, y);
}

/* The last double below 2^63 is 1023 less than the greatest integer. */
static inline int64_t to_s64(double v) {
    return (int64_t)clamp(v, -0x1p63, 0x1.fffffffffffffp62) + (v >= 0x1p63 ? 1023 : 0);
}

static uint64_t to_u64(double v) {
    return v >= 0x1p64 ? UINT64_MAX : v > 0 ? (uint64_t)v : 0;
}

/* The low bits of an integer, whatever its sign: by the width of the result. */
#define STORE_LOW(RARE, bits)                                                                      \
    RARE static void store_##bits(const wide *w, size_t n, void *vy) {                             \
        uint##bits##_t *y = vy;                                                                    \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < WHOLE; i++)                                                         \
            y[i] = (uint##bits##_t)w->u[i];                                                        \
    }
STORE_LOW(QS_COLD, 8)
STORE_LOW(QS_COLD, 16)
STORE_LOW(QS_COLD, 32)
STORE_LOW(, 64)

#define STORES(RARE, suffix, T)                                                                    \
    STORE(RARE, suffix, T, i64, i, SAME)                                                           \
    STORE(RARE, suffix, T, u64, u, SAME)                                                           \
    STORE(RARE, suffix, T, f64, f, SAME)
/* Stores of integer types whose values all fit int32. */
#define STORE_NARROW(suffix, T, low, high)                                                         \
    QS_COLD static void store_##suffix##_f64(const wide *w, size_t n, void *vy) {                  \
        int32_t v[CHUNK];                                                                          \
        T *y = vy;                                                                                 \
        store_clamped(w, n, low, high, v);                                                         \
        for (size_t i = 0; i < WHOLE; i++)                                                         \
            y[i] = (T)v[i];                                                                        \
    }

STORES(, f32, float)
STORES(QS_COLD, f64, double)
STORE_NARROW(s8, int8_t, INT8_MIN, INT8_MAX)
STORE_NARROW(s16, int16_t, INT16_MIN, INT16_MAX)
STORE(, s64, int64_t, f64, f, to_s64)
STORE_NARROW(u8, uint8_t, 0, UINT8_MAX)
STORE_NARROW(u16, uint16_t, 0, UINT16_MAX)
#define TO_U32(v) ((int64_t)clamp(v, 0, UINT32_MAX))
STORE(QS_COLD, u32, uint32_t, f64, f, TO_U32)
STORE(QS_COLD, u64, uint64_t, f64, f, to_u64)
STORE(QS_COLD, b8, uint8_t, i64, i, TRUTH)
STORE(QS_COLD, b8, uint8_t, u64, u, TRUTH)
STORE(QS_COLD, b8, uint8_t, f64, f, TRUTH)

#define STORE_PACKED(bits, kind, field, expression)                                                \
    QS_COLD static void store_##bits##_##kind(const wide *w, size_t n, void *vy) {                 \
        uint8_t *y = vy;                                                                           \
        for (size_t i = 0; i < n; i++) {                                                           \
            const unsigned per = 8 / bits, v = (unsigned)(expression(w->field[i]));                \
            const unsigned at = (unsigned)(i % per) * bits, low = (v & ((1u << bits) - 1)) << at;  \
            y[i / per] = (uint8_t)(at ? y[i / per] | low : low);                                   \
        }                                                                                          \
    }
#define STORES_PACKED(bits)                                                                        \
    STORE_PACKED(bits, u64, u, SAME)                                                               \
    STORE_PACKED(bits, f64, f, to_s64)
STORES_PACKED(4)
STORES_PACKED(2)

/* ---- between the types that networks have, at once ---- */

typedef void (*plain_fn)(const void *x, void *y, size_t n);

#define PLAIN(name, From, To, value)                                                               \
    static void name(const void *vx, void *vy, size_t n) {                                         \
        const From *x = vx;                                                                        \
        To *y = vy;                                                                                \
        for (size_t units = n / UNIT; units > 0; units--, x += UNIT, y += UNIT) {                  \
            QS_IVDEP                                                                               \
            for (size_t i = 0; i < UNIT; i++)                                                      \
                y[i] = value;                                                                      \
        }                                                                                          \
    }
PLAIN(s32_to_s64, int32_t, int64_t, x[i])
PLAIN(s64_to_s32, uint64_t, uint32_t, (uint32_t)x[i])
PLAIN(s64_to_f32, int64_t, float, (float)x[i])
PLAIN(f32_to_f64, float, double, x[i])
PLAIN(f64_to_f32, double, float, (float)x[i])
PLAIN(b8_to_s32, uint8_t, int32_t, x[i] != 0)
PLAIN(b8_to_s64, uint8_t, int64_t, x[i] != 0)
PLAIN(s32_to_b8, uint32_t, uint8_t, x[i] != 0)
PLAIN(s64_to_b8, uint64_t, uint8_t, ((uint32_t)x[i] | (uint32_t)(x[i] >> 32)) != 0)

/* The upper half of a float, rounded to the nearest, of two to the even one. */
#define BRAIN(u) (((u)&INT32_MAX) > 0x7f800000 ? 0x7fc0 : ((u) + 0x7fff + ((u) >> 16 & 1)) >> 16)
PLAIN(f32_to_brain, uint32_t, uint16_t, (uint16_t)BRAIN(x[i]))

/* Casts at most CHUNK numbers: through int32 if it can hold them all, else through double. */
static void f32_to_s64(const void *vx, void *vy, size_t n) {
    const float *x = vx;
    int64_t *y = vy;
    int32_t far = 0;
    wide w;
    for (size_t i = 0; i < WHOLE; i++)
        far |= !(fabsf(x[i]) < 0x1p31f);
    if (far) {
        load_f32(x, n, &w);
        store_s64_f64(&w, n, vy);
        return;
    }
    QS_IVDEP
    for (size_t i = 0; i < WHOLE; i++)
        y[i] = (int32_t)x[i];
}

/* Pairs of types that are cast in one loop: by the kernel `cast` with argument `how`, or `plain`.
 */
static const struct direct {
    uint8_t from, to, how;
    plain_fn plain;
} directs[] = {
    {QSIM_BOOL, QSIM_FLOAT, QK_FROM_BOOL, NULL},
    {QSIM_UINT8, QSIM_FLOAT, QK_FROM_U8, NULL},
    {QSIM_INT8, QSIM_FLOAT, QK_FROM_S8, NULL},
    {QSIM_INT32, QSIM_FLOAT, QK_FROM_S32, NULL},
    {QSIM_BFLOAT16, QSIM_FLOAT, QK_FROM_BRAIN, NULL},
    {QSIM_FLOAT16, QSIM_FLOAT, QK_FROM_HALF, NULL},
    {QSIM_FLOAT, QSIM_FLOAT16, QK_TO_HALF, NULL},
    {QSIM_FLOAT, QSIM_INT32, QK_TO_S32, NULL},
    {QSIM_FLOAT, QSIM_UINT8, QK_TO_U8, NULL},
    {QSIM_FLOAT, QSIM_INT8, QK_TO_S8, NULL},
    {QSIM_FLOAT, QSIM_BOOL, QK_TO_BOOL, NULL},
    {QSIM_FLOAT, QSIM_BFLOAT16, 0, f32_to_brain},
    {QSIM_FLOAT, QSIM_DOUBLE, 0, f32_to_f64},
    {QSIM_DOUBLE, QSIM_FLOAT, 0, f64_to_f32},
    {QSIM_FLOAT, QSIM_INT64, 0, f32_to_s64},
    {QSIM_INT32, QSIM_INT64, 0, s32_to_s64},
    {QSIM_INT64, QSIM_INT32, 0, s64_to_s32},
    {QSIM_INT64, QSIM_FLOAT, 0, s64_to_f32},
    {QSIM_BOOL, QSIM_INT32, 0, b8_to_s32},
    {QSIM_BOOL, QSIM_INT64, 0, b8_to_s64},
    {QSIM_INT32, QSIM_BOOL, 0, s32_to_b8},
    {QSIM_INT64, QSIM_BOOL, 0, s64_to_b8},
};

static void cast_directly(const struct direct *d, const qk_ew *ew, const void *x, void *y,
                          size_t n) {
    if (d->plain)
        d->plain(x, y, n);
    else
        ew->cast((qk_cast)d->how, x, y, n);
}

static bool is_long(int32_t from) {
    return from == QSIM_INT32 || from == QSIM_INT64;
}

/* Whether float holds n integers of int32 or int64: at least -2^24, less than 2^24. */
QS_COLD static bool fit_floats(size_t bits, const void *x, size_t n) {
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= bits == 32 ? ((const uint32_t *)x)[i] + (1u << 24)
                          : ((const uint64_t *)x)[i] + (1u << 24);
    return all >> 25 == 0;
}

/*
 * Whether a cast by way of float rounds once, of long integers to bfloat16 if they fit. Integers
 * that float cannot hold are infinite as float16.
 */
QS_COLD static bool by_floats(int32_t from, int32_t to) {
    return (QS_T(from) & (QS_T(QSIM_FLOAT16) | QS_T(QSIM_BFLOAT16))) ||
           (to == QSIM_FLOAT16 && from != QSIM_DOUBLE) ||
           (to == QSIM_BFLOAT16 &&
            (from == QSIM_BOOL || (QS_T_8BIT & QS_T(from)) || is_long(from)));
}

/* The row of `directs` for two types; NULL: there is none. */
QS_COLD static const struct direct *direct_of(int32_t from, int32_t to) {
    for (size_t i = 0; i < QS_COUNT(directs); i++)
        if (directs[i].from == from && directs[i].to == to)
            return directs + i;
    return NULL;
}

typedef struct cast_type {
    wide_kind kind;
    load_fn load;
    store_fn store[3]; /* by kind of the source */
} cast_type;

#define CAST_INTEGER(kind, suffix, bits)                                                           \
    {                                                                                              \
        kind, load_##suffix, {                                                                     \
            store_##bits, store_##bits, store_##suffix##_f64                                       \
        }                                                                                          \
    }
#define CAST_TYPE(kind, suffix)                                                                    \
    {                                                                                              \
        kind, load_##suffix, {                                                                     \
            store_##suffix##_i64, store_##suffix##_u64, store_##suffix##_f64                       \
        }                                                                                          \
    }

/* Narrow floats: load_minifloat, store_minifloat. */
#define CAST_FLOAT(load)                                                                           \
    {                                                                                              \
        WIDE_F64, load, {                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }
#define CAST_PACKED(kind, suffix, bits)                                                            \
    {                                                                                              \
        kind, load_##suffix, {                                                                     \
            store_##bits##_u64, store_##bits##_u64, store_##bits##_f64                             \
        }                                                                                          \
    }

static const cast_type types[] = {
    [QSIM_FLOAT] = CAST_TYPE(WIDE_F64, f32),
    [QSIM_DOUBLE] = CAST_TYPE(WIDE_F64, f64),
    [QSIM_INT8] = CAST_INTEGER(WIDE_I64, s8, 8),
    [QSIM_INT16] = CAST_INTEGER(WIDE_I64, s16, 16),
    [QSIM_INT32] = CAST_INTEGER(WIDE_I64, s32, 32),
    [QSIM_INT64] = CAST_INTEGER(WIDE_I64, s64, 64),
    [QSIM_UINT8] = CAST_INTEGER(WIDE_U64, u8, 8),
    [QSIM_UINT16] = CAST_INTEGER(WIDE_U64, u16, 16),
    [QSIM_UINT32] = CAST_INTEGER(WIDE_U64, u32, 32),
    [QSIM_UINT64] = CAST_INTEGER(WIDE_U64, u64, 64),
    [QSIM_BOOL] = CAST_TYPE(WIDE_U64, b8),
    [QSIM_FLOAT16] = CAST_FLOAT(NULL),
    [QSIM_BFLOAT16] = CAST_FLOAT(NULL),
    [QSIM_FLOAT8E4M3FN] = CAST_FLOAT(NULL),
    [QSIM_FLOAT8E4M3FNUZ] = CAST_FLOAT(NULL),
    [QSIM_FLOAT8E5M2] = CAST_FLOAT(NULL),
    [QSIM_FLOAT8E5M2FNUZ] = CAST_FLOAT(NULL),
    [QSIM_UINT4] = CAST_PACKED(WIDE_U64, u4, 4),
    [QSIM_INT4] = CAST_PACKED(WIDE_I64, s4, 4),
    [QSIM_UINT2] = CAST_PACKED(WIDE_U64, u2, 2),
    [QSIM_INT2] = CAST_PACKED(WIDE_I64, s2, 2),
    [QSIM_FLOAT4E2M1] = CAST_FLOAT(NULL),
    [QSIM_FLOAT8E8M0] = CAST_FLOAT(load_e8m0),
};

/* Attribute `to`; before version 6 it is a name, such as FLOAT. 0: no type. */
QS_COLD static int64_t type_of(const qs_node *n) {
    const qs_attr *a = qs_node_attr(n, "to");
    char name[16] = "";
    if (!a || a->type == QSIM_ATTR_INT || a->u.s.size >= sizeof(name))
        return a && a->type == QSIM_ATTR_INT ? a->u.i : 0;
    memcpy(name, a->u.s.data, a->u.s.size);
    for (int32_t i = QSIM_FLOAT; i < 32; i++)
        if (qs_op_compare(name, qsim_dtype_name(i)) == 0)
            return i;
    return 0;
}

QS_COLD static int upgrade_cast(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    const int64_t type = type_of(&g->nodes[node]);
    if (to < 6 || g->nodes[node].version >= 6)
        return QSIM_OK;
    return qs_node_set_int(g, node, "to", type) ? qs_op_no_memory(error) : QSIM_OK;
}

static const char roundings[] = "up|down|nearest"; /* to float8e8m0 */

QS_COLD static int check_cast(const qs_infer *x) {
    const int code = qs_infer_type(x, 0, QS_T_ANY);
    return code ? code : qs_infer_word(x, "round_mode", roundings, &(int32_t){0});
}

QS_COLD static int infer_cast(qs_infer *x) {
    int64_t to = type_of(x->node);
    int code = check_cast(x);
    if (code)
        return code;
    if (to <= 0 || to >= 32 || !(QS_T_ANY & QS_T(to)))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "casting to type %lld (%s) is not supported",
                             (long long)to,
                             qsim_dtype_name(to > 0 && to < 64 ? (int32_t)to : QSIM_UNDEFINED));
    return qs_infer_out(x, 0, (int32_t)to, x->in[0]->rank, x->in[0]->dims);
}

QS_COLD static int infer_cast_like(qs_infer *x) {
    int code = check_cast(x);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_ANY);
    return code ? code : qs_infer_out(x, 0, x->in[1]->dtype, x->in[0]->rank, x->in[0]->dims);
}

typedef struct cast_params {
    /* In place of load and store; NULL: none. `then` casts the floats that `direct` makes. */
    const struct direct *direct, *then;
    load_fn load;                  /* NULL: load_minifloat */
    store_fn store;                /* NULL: store_minifloat */
    const qs_minifloat *source;    /* format of the input */
    const qs_minifloat *minifloat; /* of the result; NULL: float8e8m0 */
    wide_kind kind;
    bool fitting; /* `then` only if floats hold the integers */
    bool saturate;
    int rounding; /* to float8e8m0: 0 away from zero, 1 towards it, 2 to the nearest */
    size_t elements, chunk, from, to; /* from, to: bits of an element */
} cast_params;

/* An integer as a double whose lost bits become one sticky bit, so that it rounds correctly. */
static double sticky(uint64_t magnitude) {
    if (magnitude >> 53)
        magnitude = (magnitude >> 12 | ((magnitude & 4095u) != 0)) << 12;
    return (double)magnitude;
}

static double widest(const wide *w, size_t i, wide_kind kind) {
    if (kind == WIDE_F64)
        return w->f[i];
    if (kind == WIDE_U64)
        return sticky(w->u[i]);
    return w->i[i] < 0 ? -sticky(0 - (uint64_t)w->i[i]) : sticky((uint64_t)w->i[i]);
}

/* A power of two as float8e8m0, which has no sign, no zero and no infinity. */
QS_COLD static uint32_t power_bits(const cast_params *p, double v) {
    int exponent;
    const double fraction = frexp(fabs(v), &exponent); /* from 1/2 on */
    if (!(fabs(v) < HUGE_VAL))
        return 255;
    exponent += 126 + (p->rounding == 0 ? fraction > 0.5 : p->rounding == 2 && fraction >= 0.75);
    return fraction == 0.0 || exponent < 0 ? 0
           : exponent < 255                ? (uint32_t)exponent
           : p->saturate                   ? 254u
                                           : 255u;
}

QS_COLD static void load_minifloat(const cast_params *p, const void *vx, size_t n, wide *w) {
    const uint16_t *x16 = vx;
    const uint8_t *x8 = vx;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = p->from == 16  ? x16[i]
                              : p->from == 8 ? x8[i]
                                             : (uint32_t)(x8[i / 2] >> i % 2 * 4) & 15u;
        w->f[i] = (double)qs_minifloat_value(p->source, bits);
    }
}

static void store_minifloat(const cast_params *p, const wide *w, size_t n, void *vy) {
    uint16_t *y16 = vy;
    uint8_t *y8 = vy;
    for (size_t i = 0; i < n; i++) {
        const double v = widest(w, i, p->kind);
        const uint32_t bits =
            p->minifloat ? qs_minifloat_bits(p->minifloat, v, p->saturate) : power_bits(p, v);
        if (p->to == 16)
            y16[i] = (uint16_t)bits;
        else if (p->to == 8)
            y8[i] = (uint8_t)bits;
        else
            y8[i / 2] = (uint8_t)(i % 2 ? y8[i / 2] | bits << 4 : bits);
    }
}

typedef struct cast_job {
    const qk_ew *ew;
    const cast_params *p;
    const char *x;
    char *y;
} cast_job;

/* Casts n elements, a multiple of UNIT except for packed ones and narrow floats. */
static void cast_some(const cast_job *job, const void *x, void *y, size_t n) {
    const cast_params *p = job->p;
    _Alignas(32) wide w;
    if (p->direct && (!p->fitting || fit_floats(p->from, x, n))) {
        cast_directly(p->direct, job->ew, x, p->then ? w.f : y, n);
        if (p->then)
            cast_directly(p->then, job->ew, w.f, y, n);
        return;
    }
    if (p->load)
        p->load(x, (n + UNIT - 1) & ~(UNIT - 1), &w);
    else
        load_minifloat(p, x, n, &w);
    if (p->store)
        p->store(&w, n, y);
    else
        store_minifloat(p, &w, n, y);
}

/* The last elements, n < CHUNK, in arrays that have room for a multiple of UNIT. */
static void cast_rest(const cast_job *job, const char *x, char *y, size_t n) {
    const cast_params *p = job->p;
    uint64_t in[CHUNK] = {0}, out[CHUNK];
    memcpy(in, x, (n * p->from + 7) / 8);
    cast_some(job, in, out, p->to < 8 ? n : (n + UNIT - 1) & ~(UNIT - 1));
    memcpy(y, out, (n * p->to + 7) / 8);
}

/* Casts groups of elements, so that no two ranges share a byte of smaller elements. */
static void cast_range(const void *arg, size_t begin, size_t end) {
    const cast_job *job = arg;
    const cast_params *p = job->p;
    end = GROUP * end < p->elements ? GROUP * end : p->elements;
    for (size_t i = GROUP * begin, n; i < end; i += n) {
        const size_t left = end - i;
        const char *x = job->x + i * p->from / 8;
        char *y = job->y + i * p->to / 8;
        n = left < CHUNK ? left : left < p->chunk ? CHUNK : p->chunk;
        if (n < CHUNK)
            cast_rest(job, x, y, n);
        else
            cast_some(job, x, y, n);
    }
}

static void run_cast(const qs_step *s, const qs_frame *f) {
    const cast_params *p = s->params;
    cast_job job = {f->ctx->kernels->ew, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, (p->elements + GROUP - 1) / GROUP, QS_GRAIN / GROUP, cast_range, &job);
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
    p->direct = direct_of(x->dtype, y->dtype);
    if (!p->direct && by_floats(x->dtype, y->dtype)) {
        p->fitting = is_long(x->dtype) && y->dtype == QSIM_BFLOAT16;
        p->then = direct_of(QSIM_FLOAT, y->dtype);
        p->direct = p->then ? direct_of(x->dtype, QSIM_FLOAT) : p->direct;
    }
    p->chunk = p->direct && !p->then && p->direct->plain != f32_to_s64 ? 16 * CHUNK : CHUNK;
    p->load = types[x->dtype].load;
    p->kind = types[x->dtype].kind;
    p->store = types[y->dtype].store[p->kind];
    p->source = qs_minifloat_of(x->dtype);
    p->minifloat = qs_minifloat_of(y->dtype);
    p->saturate = y->dtype == QSIM_FLOAT4E2M1 ||
                  (qsim_dtype_bits(y->dtype) == 8 && qs_node_int(l->node, "saturate", 1));
    p->rounding = qs_node_word(l->node, "round_mode", roundings);
    p->elements = qs_value_elements(x);
    p->from = (size_t)qsim_dtype_bits(x->dtype);
    p->to = (size_t)qsim_dtype_bits(y->dtype);
    l->step->run = run_cast;
    return QSIM_OK;
}

static const qs_attr_rule cast_attrs[] = {{"to", QSIM_ATTR_INT, 6, 0},
                                          {"to", QSIM_ATTR_STRING, 1, 5},
                                          {"saturate", QSIM_ATTR_INT, 19, 0},
                                          {"round_mode", QSIM_ATTR_STRING, 24, 0}};

static const qs_attr_rule cast_like_attrs[] = {{"saturate", QSIM_ATTR_INT, 19, 0},
                                               {"round_mode", QSIM_ATTR_STRING, 24, 0}};

QS_OP(cast, .name = "Cast", .min_in = 1, QS_ATTRS(cast_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_CAST, .infer = infer_cast, QS_MORE(QS_HISTORY(.upgrade = upgrade_cast)),
      .lower = lower_cast);
QS_OP(cast_like, .name = "CastLike", .since = 15, .min_in = 2, QS_ATTRS(cast_like_attrs),
      .traits = QS_ELEMENTWISE, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_CAST,
      .infer = infer_cast_like, .lower = lower_cast);
