/* SPDX-License-Identifier: MIT */
/* Operators on numbers of any type: inputs and expected outputs are lists of doubles. */
#ifndef OP_NUMBERS_H
#define OP_NUMBERS_H

#include "op_harness.h"

#define MOST_NUMBERS 256

static const int32_t number_types[] = {QSIM_FLOAT,  QSIM_DOUBLE, QSIM_INT8,  QSIM_INT16,
                                       QSIM_INT32,  QSIM_INT64,  QSIM_UINT8, QSIM_UINT16,
                                       QSIM_UINT32, QSIM_UINT64};

#define NUMBERS(...) ((const double[]){__VA_ARGS__})

static inline size_t number_bytes(int32_t dtype) {
    return (size_t)qsim_dtype_bits(dtype) / 8;
}

static inline void put_number(int32_t dtype, void *to, size_t i, double v) {
    const int64_t whole = v >= -9e18 && v <= 9e18 ? (int64_t)v : 0;
    switch (dtype) {
    case QSIM_FLOAT: ((float *)to)[i] = (float)v; break;
    case QSIM_DOUBLE: ((double *)to)[i] = v; break;
    case QSIM_INT32:
    case QSIM_UINT32: ((int32_t *)to)[i] = (int32_t)whole; break;
    case QSIM_INT64:
    case QSIM_UINT64: ((int64_t *)to)[i] = whole; break;
    case QSIM_INT16:
    case QSIM_UINT16: ((int16_t *)to)[i] = (int16_t)whole; break;
    default: ((int8_t *)to)[i] = (int8_t)whole;
    }
}

static inline double get_number(int32_t dtype, const void *from, size_t i) {
    switch (dtype) {
    case QSIM_FLOAT: return (double)((const float *)from)[i];
    case QSIM_DOUBLE: return ((const double *)from)[i];
    case QSIM_INT32: return ((const int32_t *)from)[i];
    case QSIM_UINT32: return ((const uint32_t *)from)[i];
    case QSIM_INT64: return (double)((const int64_t *)from)[i];
    case QSIM_UINT64: return (double)((const uint64_t *)from)[i];
    case QSIM_INT16: return ((const int16_t *)from)[i];
    case QSIM_UINT16: return ((const uint16_t *)from)[i];
    case QSIM_INT8: return ((const int8_t *)from)[i];
    default: return ((const uint8_t *)from)[i];
    }
}

static inline void fill_numbers(int32_t dtype, int32_t rank, const int64_t *dims, const double *v,
                                int64_t to[MOST_NUMBERS]) {
    size_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    CHECK(n <= MOST_NUMBERS);
    for (size_t i = 0; i < n && i < MOST_NUMBERS; i++)
        put_number(dtype, to, i, v[i]);
}

/* case_numbers(c, dtype, SHAPE(2, 3), NUMBERS(...)): a graph input. */
static inline void case_numbers(op_case *c, int32_t dtype, int32_t rank, const int64_t *dims,
                                const double *v) {
    int64_t data[MOST_NUMBERS];
    fill_numbers(dtype, rank, dims, v, data);
    case_input(c, dtype, rank, dims, data);
}

static inline void case_attr_int(op_case *c, const char *name, int64_t value) {
    CHECK_INT(qs_node_set_int(c->g, c->node, name, value), 0);
}

/* Output `index` has this shape, and these numbers within `error`; NaN where they are NaN. */
static inline void check_numbers(const op_case *c, int32_t index, const char *shape,
                                 const double *expected, double error) {
    const int32_t dtype = case_out(c, index)->dtype;
    CHECK_STR(case_shape(c, index), shape);
    const size_t n = c->bytes[c->out[index]] / number_bytes(dtype);
    for (size_t i = 0; i < n; i++) {
        const double got = get_number(dtype, case_data(c, index), i), want = expected[i];
        const bool same = got == want || (got != got && want != want);
        const double most = error * (want < 0 ? -want : want) + error;
        if (!same && !(got - want <= most && want - got <= most)) {
            char text[160];
            snprintf(text, sizeof(text), "%s %s: element %zu is %.9g, expected %.9g", c->op_type,
                     shape, i, got, want);
            CHECK_FAIL(text);
        }
    }
    test_checks++;
}

/* Runs the case, which must not fail, checks output 0 and frees it. */
static inline void case_gives(op_case *c, const char *shape, const double *expected) {
    CHECK_INT(case_run(c), 0);
    CHECK_STR(c->error.message, "");
    CHECK_INT(c->fault.code, 0);
    if (c->g->values[c->out[0]].rank >= 0 && c->data[c->out[0]])
        check_numbers(c, 0, shape, expected, 0);
    case_free(c);
}

/* The case is refused by its rules with this code. */
static inline void case_refused(op_case *c, int code) {
    CHECK_INT(case_infer(c), code);
    case_free(c);
}

/* The step meets a value that breaks its rule, and reports it. */
static inline void case_breaks(op_case *c) {
    CHECK_INT(case_run(c), 0);
    CHECK_INT(c->fault.code, QSIM_E_VALUE);
    case_free(c);
}

#endif
