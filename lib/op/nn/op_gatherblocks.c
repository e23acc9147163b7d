/* SPDX-License-Identifier: MIT */
/*
 * GatherBlockQuantized of ONNX Runtime: gathers rows of a table of codes, which are in blocks along
 * its last axis, each block with a scale and a zero point; y = (code - zero point) * scale. Inputs:
 * codes, indices, scales, zero points. An element of type uint8 holds 8 / bits codes, whose zero
 * point is half their range by default; that of int4 and uint4 is 0.
 */
#include <assert.h>

#include "op/expand.h"
#include "op/move/index.h"
#include "op/nn/codes.h"

enum { DATA, INDICES, SCALES, ZEROS };

typedef struct form {
    int64_t rows, inner, width,
        blocks; /* an index selects `inner` rows of `width` codes; -1: unknown */
    int64_t bits, block;
    bool packed; /* bytes hold several codes; rows begin at a byte */
} form;

static int read_form(const qs_infer *x, form *f) {
    const qs_node *n = x->node;
    const qs_value *v = x->in[DATA];
    *f = (form){.rows = -1, .inner = -1, .width = -1, .blocks = -1};
    f->packed = v->dtype == QSIM_UINT8;
    f->bits = f->packed ? qs_node_int(n, "bits", 4) : 4;
    f->block = qs_node_int(n, "block_size", 128);
    if (f->bits != 4 && f->bits != 8)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "bits is %lld, not 4 or 8", (long long)f->bits);
    if (f->block < 16 || f->block > INT32_MAX || (f->block & (f->block - 1)))
        return qs_infer_fail(x, QSIM_E_VALUE, "block_size is %lld, not a power of 2 from 16 on",
                             (long long)f->block);
    if (v->rank < 0)
        return QSIM_OK;
    const int64_t gather = qs_node_int(n, "gather_axis", 0);
    const int64_t quantize = qs_node_int(n, "quantize_axis", 1);
    if (v->rank < 2 || (gather != 0 && gather != -v->rank) ||
        (quantize != v->rank - 1 && quantize != -1))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "gather_axis %lld and quantize_axis %lld of rank %d, only the first "
                             "and the last are supported",
                             (long long)gather, (long long)quantize, (int)v->rank);
    f->rows = v->dims[0].size;
    f->inner = qs_dims_product(v->dims, 1, v->rank - 1);
    f->width = v->dims[v->rank - 1].size;
    f->width = f->width < 0 || !f->packed ? f->width : f->width * 8 / f->bits;
    f->blocks = f->width < 0 ? -1 : (f->width + f->block - 1) / f->block;
    return QSIM_OK;
}

static int check_inputs(const qs_infer *x, const form *f) {
    const bool known = f->rows >= 0 && f->inner >= 0 && f->blocks >= 0;
    const int64_t rows = known ? f->rows * f->inner : -1;
    int code = qs_infer_count(x, SCALES, known ? rows * f->blocks : -1);
    if (!code && qs_infer_in(x, ZEROS))
        code = qs_infer_same_type(x, DATA, ZEROS);
    if (code || !known)
        return code;
    return qs_infer_count(x, ZEROS, rows * (f->packed ? (f->blocks * f->bits + 7) / 8 : f->blocks));
}

static int infer_gather(qs_infer *x) {
    const qs_value *v = x->in[DATA], *indices = x->in[INDICES];
    qs_dim dims[2 * QSIM_MAX_RANK];
    int32_t rank = 0;
    form f;
    int code = qs_infer_type(x, DATA, QS_T(QSIM_UINT8) | QS_T(QSIM_INT4) | QS_T(QSIM_UINT4));
    if (!code)
        code = qs_infer_type(x, INDICES, QS_T_INDEX);
    if (!code)
        code = qs_infer_type(x, SCALES, QS_T_FLOAT);
    if (!code)
        code = read_form(x, &f);
    if (!code)
        code = check_inputs(x, &f);
    if (!code && f.rows >= 0)
        code = qs_infer_indices(x, INDICES, f.rows);
    if (code || v->rank < 0 || indices->rank < 0)
        return code ? code : qs_infer_unknown(x, QSIM_FLOAT);
    for (int32_t i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int32_t i = 1; i < v->rank; i++)
        dims[rank++] = v->dims[i];
    dims[rank - 1] = (qs_dim){f.width, NULL};
    return qs_infer_out(x, 0, QSIM_FLOAT, rank, dims);
}

typedef struct gather_params {
    form f;
    size_t count;
    bool wide, zeros;
    int32_t dtype;
} gather_params;

typedef struct gather_job {
    const gather_params *p;
    const uint8_t *data, *zeros;
    const void *indices;
    const float *scales;
    float *y;
    const qs_frame *frame;
} gather_job;

static int32_t zero_at(const gather_job *j, int64_t row, int64_t block) {
    const form *f = &j->p->f;
    if (!j->zeros)
        return f->packed ? 1 << (f->bits - 1) : 0;
    const int64_t bytes = (f->blocks * f->bits + 7) / 8;
    const int32_t code = f->packed ? qs_code_at(j->zeros + row * bytes, f->bits, block)
                                   : qs_code_at(j->zeros, f->bits, row * f->blocks + block);
    return j->p->dtype == QSIM_INT4 && code > 7 ? code - 16 : code;
}

static void decode_row(const gather_job *j, int64_t row, float *y) {
    const form *f = &j->p->f;
    for (int64_t b = 0; b < f->blocks; b++) {
        const int32_t zero = zero_at(j, row, b);
        const float scale = j->scales[row * f->blocks + b];
        const int64_t end = (b + 1) * f->block < f->width ? (b + 1) * f->block : f->width;
        for (int64_t k = b * f->block; k < end; k++) {
            int32_t code = qs_code_at(j->data, f->bits, row * f->width + k);
            code -= j->p->dtype == QSIM_INT4 && code > 7 ? 16 : 0;
            assert(y);
            y[k] = (float)(code - zero) * scale;
        }
    }
}

static void gather_range(const void *arg, size_t begin, size_t end) {
    const gather_job *j = arg;
    const form *f = &j->p->f;
    for (size_t i = begin; i < end; i++) {
        assert(j->indices);
        const int64_t row = qs_index_wrap(qs_index_at(j->indices, j->p->wide, i), f->rows);
        float *y = j->y + (int64_t)i * f->inner * f->width;
        if (row < 0) {
            if (y)
                memset(y, 0, (size_t)(f->inner * f->width) * sizeof(*y));
            qs_index_outside(j->frame, qs_index_at(j->indices, j->p->wide, i), f->rows, 0);
        } else
            for (int64_t r = 0; r < f->inner; r++)
                decode_row(j, row * f->inner + r, y + r * f->width);
    }
}

static void run_gather(const qs_step *s, const qs_frame *f) {
    const gather_params *p = s->params;
    const gather_job j = {.p = p,
                          .data = qs_step_in(s, f, DATA),
                          .zeros = p->zeros ? qs_step_in(s, f, ZEROS) : NULL,
                          .indices = qs_step_in(s, f, INDICES),
                          .scales = qs_step_in(s, f, SCALES),
                          .y = qs_step_out(s, f, 0),
                          .frame = f};
    gather_range(&j, 0, p->count);
}

static int lower_gather(qs_lower *l) {
    qs_infer x;
    gather_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    p->count = qs_value_elements(qs_lower_in(l, INDICES));
    p->wide = qs_lower_in(l, INDICES)->dtype == QSIM_INT64;
    p->zeros = qs_lower_in(l, ZEROS) != NULL;
    p->dtype = qs_lower_in(l, DATA)->dtype;
    l->step->run = run_gather;
    return read_form(&x, &p->f);
}

static const qs_attr_rule gather_attrs[] = {{"bits", QSIM_ATTR_INT, 1, 0},
                                            {"block_size", QSIM_ATTR_INT, 1, 0},
                                            {"gather_axis", QSIM_ATTR_INT, 1, 0},
                                            {"quantize_axis", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_gatherblocks, .domain = QS_DOMAIN_MICROSOFT, .name = "GatherBlockQuantized", .min_in = 3,
      .max_in = 4, QS_ATTRS(gather_attrs), .traits = QS_PLAIN,
      .setting_inputs = 1 << DATA | 1 << INDICES | 1 << SCALES | 1 << ZEROS,
      .kernel = QS_KERNEL_GATHER, .infer = infer_gather, .lower = lower_gather,
      .expand = qs_expand_gather_blocks);
