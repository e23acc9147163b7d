/* SPDX-License-Identifier: MIT */
/*
 * MatMulNBits of ONNX Runtime: y = a w + bias with w (columns, K) stored as 2, 4 or 8 bits in
 * blocks along K, each with a scale and a zero point: w = (q - zero point) * scale. Inputs: a,
 * bits, scales, zero points, the block of each k, bias.
 *
 * accuracy_level 4 rounds a to 8 bits, a block at a time, with its greatest magnitude as 127:
 *     y = sum over blocks of float(sum of qa * (q - zero point)) * (scale of a * scale of w)
 * where the inner sum is exact and the outer one in order, each product and sum rounded. Other
 * levels, zero points that are real numbers and blocks in another order multiply floats.
 */
#include "op/nn/codes.h"
#include "op/nn/product.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "quant/requantize.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

/* Products of at most 127 * 255 that an int32 sums. */
#define MOST_BLOCK 65536

typedef struct form {
    int64_t k, n, bits, block, blocks; /* blocks along k */
    int64_t bytes, zero_bytes;         /* of a block, of a row of zero points */
    bool rounds;                       /* a becomes 8 bits */
} form;

static int read_form(const qs_infer *x, form *f) {
    const qs_node *n = x->node;
    const int64_t level = qs_node_int(n, "accuracy_level", 0);
    const qs_value *zeros = qs_infer_in(x, ZEROS);
    f->k = qs_node_int(n, "K", 0);
    f->n = qs_node_int(n, "N", 0);
    f->bits = qs_node_int(n, "bits", 4);
    f->block = qs_node_int(n, "block_size", 0);
    if (f->k < 1 || f->n < 1 || f->k > INT32_MAX || f->n > INT32_MAX)
        return qs_infer_fail(x, QSIM_E_VALUE, "K is %lld, N %lld", (long long)f->k,
                             (long long)f->n);
    if (f->bits != 2 && f->bits != 4 && f->bits != 8)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "bits is %lld, not 2, 4 or 8",
                             (long long)f->bits);
    if (f->block < 16 || f->block > MOST_BLOCK || (f->block & (f->block - 1)))
        return qs_infer_fail(x, QSIM_E_VALUE, "block_size is %lld, not a power of 2 from 16 to %d",
                             (long long)f->block, MOST_BLOCK);
    if (level < 0 || level > 4)
        return qs_infer_fail(x, QSIM_E_VALUE, "accuracy_level is %lld", (long long)level);
    f->blocks = (f->k + f->block - 1) / f->block;
    f->bytes = f->block * f->bits / 8;
    f->zero_bytes = (f->blocks * f->bits + 7) / 8;
    f->rounds = level == 4 && !qs_infer_in(x, GROUPS) && !(zeros && zeros->dtype == QSIM_FLOAT);
    return QSIM_OK;
}

/* Fails unless input `index`, if there is one, is constant and of so many elements. */
static int check_constant(const qs_infer *x, int32_t index, uint32_t types, int64_t count) {
    qs_const c;
    if (!qs_infer_in(x, index))
        return QSIM_OK;
    int code = qs_infer_type(x, index, types);
    if (!code && !qs_infer_const(x, index, &c))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "input %d is not constant", (int)index);
    if (!code && c.elements != (size_t)count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %zu elements, expected %lld",
                             (int)index, c.elements, (long long)count);
    return code;
}

/* Blocks that there are; the list may be as long as K or as the blocks. */
static int check_groups(const qs_infer *x, const form *f) {
    qs_const c;
    if (!qs_infer_in(x, GROUPS))
        return QSIM_OK;
    const bool known = qs_infer_const(x, GROUPS, &c);
    const bool padded = known && c.elements == (size_t)(f->blocks * f->block);
    int code = check_constant(x, GROUPS, QS_T(QSIM_INT32), padded ? f->blocks * f->block : f->k);
    for (int64_t i = 0; i < f->k && !code; i++) {
        int32_t block;
        memcpy(&block, (const char *)c.data + (size_t)i * sizeof(block), sizeof(block));
        if (block < 0 || block >= f->blocks)
            code = qs_infer_fail(x, QSIM_E_VALUE, "g_idx %lld is %d of %lld blocks", (long long)i,
                                 (int)block, (long long)f->blocks);
    }
    return code;
}

static int infer_nbits(qs_infer *x) {
    const qs_value *a = x->in[A], *zeros = qs_infer_in(x, ZEROS);
    form f;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, A, QS_T_FLOAT);
    if (!code)
        code = read_form(x, &f);
    if (!code)
        code = check_constant(x, B, QS_T(QSIM_UINT8), f.n * f.blocks * f.bytes);
    if (!code)
        code = check_constant(x, SCALES, QS_T_FLOAT, f.n * f.blocks);
    if (!code)
        code =
            check_constant(x, ZEROS, QS_T_FLOAT | QS_T(QSIM_UINT8),
                           f.n * (zeros && zeros->dtype == QSIM_FLOAT ? f.blocks : f.zero_bytes));
    if (!code)
        code = check_groups(x, &f);
    if (!code && qs_infer_in(x, BIAS))
        code = check_constant(x, BIAS, QS_T_FLOAT, f.n);
    if (code || a->rank < 0)
        return code ? code : qs_infer_out(x, 0, QSIM_FLOAT, -1, NULL);
    if (a->rank < 1 || (a->dims[a->rank - 1].size >= 0 && a->dims[a->rank - 1].size != f.k))
        return qs_infer_fail(x, QSIM_E_SHAPE, "the last axis of input 0 is not K, %lld",
                             (long long)f.k);
    memcpy(dims, a->dims, (size_t)a->rank * sizeof(*dims));
    dims[a->rank - 1] = (qs_dim){f.n, NULL};
    return qs_infer_out(x, 0, QSIM_FLOAT, a->rank, dims);
}

/* ---- weights ---- */

/* The session's constants. */
typedef struct weights {
    form f;
    const uint8_t *bits, *zeros;      /* zeros NULL: half of the range */
    const float *scales, *real_zeros; /* real_zeros NULL: the others */
    const int32_t *groups;            /* NULL: in order */
} weights;

static int32_t code_at(const weights *w, int64_t row, int64_t k) {
    return qs_code_at(w->bits + row * w->f.blocks * w->f.bytes, w->f.bits, k);
}

static int32_t zero_at(const weights *w, int64_t row, int64_t block) {
    if (!w->zeros)
        return 1 << (w->f.bits - 1);
    return qs_code_at(w->zeros + row * w->f.zero_bytes, w->f.bits, block);
}

static void make_floats(const weights *w, float *to) {
    for (int64_t row = 0; row < w->f.n; row++)
        for (int64_t k = 0; k < w->f.k; k++) {
            const int64_t block = w->groups ? w->groups[k] : k / w->f.block;
            const int64_t at = row * w->f.blocks + block;
            const float zero = w->real_zeros ? w->real_zeros[at] : (float)zero_at(w, row, block);
            *to++ = ((float)code_at(w, row, k) - zero) * w->scales[at];
        }
}

/* Codes less zero points; beyond K 0. */
static void make_integers(const weights *w, int16_t *to) {
    const int64_t whole = w->f.blocks * w->f.block;
    for (int64_t row = 0; row < w->f.n; row++)
        for (int64_t k = 0; k < whole; k++)
            *to++ = k < w->f.k ? (int16_t)(code_at(w, row, k) - zero_at(w, row, k / w->f.block))
                               : (int16_t)0;
}

/* What level 4 multiplies. */
typedef struct rounded {
    const int16_t *w; /* (n, blocks * block) */
    const float *scales;
} rounded;

static int no_memory(qs_pack *p) {
    return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
}

static int pack_rounded(qs_pack *p, const weights *w) {
    const size_t count = (size_t)(w->f.n * w->f.blocks * w->f.block);
    rounded *r = qs_arena_alloc(p->arena, 1, sizeof(*r));
    int16_t *to = r ? qs_arena_raw64(p->arena, count * sizeof(*to)) : NULL;
    if (!to)
        return no_memory(p);
    make_integers(w, to);
    *r = (rounded){to, w->scales};
    p->result = r;
    return QSIM_OK;
}

static int pack_floats(qs_pack *p, const weights *w) {
    const size_t k = (size_t)w->f.k, n = (size_t)w->f.n;
    const qs_right right = {k, n, 1, 1, (ptrdiff_t)k};
    float *floats = qs_alloc(p->ctx, n, k * sizeof(*floats));
    if (!floats)
        return no_memory(p);
    make_floats(w, floats);
    int code = qs_product_pack(p, &right, floats);
    qs_free(p->ctx, floats);
    return code;
}

/* A constant at its element's alignment, also one that a Constant node has. */
static int pack_nbits(qs_pack *p) {
    qs_infer x = {.graph = p->graph,
                  .node = p->node,
                  .node_id = p->node_id,
                  .model = p->model,
                  .values = p->graph->values,
                  .error = p->error};
    for (int32_t i = 0; i < p->node->input_count; i++)
        x.in[i] = p->node->inputs[i] == QS_NONE ? NULL : &p->graph->values[p->node->inputs[i]];
    weights w = {.bits = qs_pack_bytes(p, B)};
    int code = read_form(&x, &w.f);
    if (code)
        return code;
    const bool real = x.in[ZEROS] && x.in[ZEROS]->dtype == QSIM_FLOAT;
    w.scales = qs_pack_const(p, SCALES);
    w.zeros = real ? NULL : qs_pack_bytes(p, ZEROS);
    w.real_zeros = real ? qs_pack_const(p, ZEROS) : NULL;
    w.groups = qs_pack_const(p, GROUPS);
    if (!w.bits || !w.scales || (x.in[ZEROS] && !w.zeros && !w.real_zeros) ||
        (x.in[GROUPS] && !w.groups))
        return no_memory(p);
    return w.f.rounds ? pack_rounded(p, &w) : pack_floats(p, &w);
}

/* ---- level 4 ---- */

typedef struct rounded_params {
    const rounded *w;
    size_t m, n, k, block, blocks, scale_bytes;
    bool bias;
} rounded_params;

typedef struct rounded_job {
    const rounded_params *p;
    const int8_t *a;
    const float *a_scales, *bias;
    float *y;
} rounded_job;

/* One block of a, `count` numbers of it; the rest is 0. */
static float round_block(const qk_ew *ew, const float *a, size_t count, size_t block, int8_t *to) {
    const float most = ew->magnitude(a, count);
    memset(to, 0, block);
    if (!(most < INFINITY))
        return most; /* times sums of 0: no number */
    const float factor = most > 0.0f ? 127.0f / most : 0.0f;
    for (size_t i = 0; i < count; i++) {
        const float v = a[i] * factor, low = v < -127.0f ? -127.0f : v;
        to[i] = (int8_t)qs_round_even(low > 127.0f ? 127.0f : low == low ? low : 0.0f);
    }
    return most / 127.0f;
}

static void round_rows(const qs_frame *f, const rounded_params *p, const float *a, int8_t *to,
                       float *scales) {
    for (size_t r = 0; r < p->m; r++)
        for (size_t b = 0; b < p->blocks; b++) {
            const size_t at = b * p->block, rest = p->k - at;
            scales[r * p->blocks + b] = round_block(f->ctx->kernels->ew, a + r * p->k + at,
                                                    rest < p->block ? rest : p->block, p->block,
                                                    to + (r * p->blocks + b) * p->block);
        }
}

static int32_t block_sum(const int8_t *a, const int16_t *w, size_t n) {
    int32_t sum = 0;
    for (size_t k = 0; k < n; k += 16)
        for (size_t i = 0; i < 16; i++)
            sum += a[k + i] * w[k + i];
    return sum;
}

static void rounded_columns(const void *arg, size_t begin, size_t end) {
    const rounded_job *j = arg;
    const rounded_params *p = j->p;
    for (size_t c = begin; c < end; c++)
        for (size_t r = 0; r < p->m; r++) {
            float y = 0.0f;
            for (size_t b = 0; b < p->blocks; b++) {
                const int32_t sum = block_sum(j->a + (r * p->blocks + b) * p->block,
                                              p->w->w + (c * p->blocks + b) * p->block, p->block);
                const float scale =
                    j->a_scales[r * p->blocks + b] * p->w->scales[c * p->blocks + b];
                y += (float)sum * scale;
            }
            j->y[r * p->n + c] = j->bias ? y + j->bias[c] : y;
        }
}

static void run_rounded(const qs_step *s, const qs_frame *f) {
    const rounded_params *p = s->params;
    float *scales = f->scratch;
    int8_t *a = (int8_t *)f->scratch + p->scale_bytes;
    const rounded_job j = {.p = p,
                           .a = a,
                           .a_scales = scales,
                           .bias = p->bias ? qs_step_in(s, f, BIAS) : NULL,
                           .y = qs_step_out(s, f, 0)};
    if (!p->m)
        return;
    round_rows(f, p, qs_step_in(s, f, A), a, scales);
    qs_ranges(f->ctx, p->n, QS_GRAIN * 8 / (p->m * p->k + 1) + 1, rounded_columns, &j);
}

static int lower_rounded(qs_lower *l, const form *f, size_t m) {
    rounded_params *p = qs_lower_params(l, sizeof(*p));
    size_t bytes;
    if (!p)
        return QSIM_E_NOMEM;
    *p = (rounded_params){.w = l->packed,
                          .m = m,
                          .n = (size_t)f->n,
                          .k = (size_t)f->k,
                          .block = (size_t)f->block,
                          .blocks = (size_t)f->blocks,
                          .bias = qs_lower_in(l, BIAS) != NULL};
    if (!qs_mul(m, p->blocks, &bytes) || !qs_mul(bytes, p->block + 64, &bytes))
        return qs_fail(l->error, QSIM_E_LIMIT, "a matrix product is too large");
    p->scale_bytes = qs_align(m * p->blocks * sizeof(float), 64);
    l->step->scratch = p->scale_bytes + m * p->blocks * p->block;
    l->step->run = run_rounded;
    l->step->kernel = "nbits";
    l->step->macs = (int64_t)(m * p->n * p->k);
    return QSIM_OK;
}

static int lower_nbits(qs_lower *l) {
    const qs_value *a = qs_lower_in(l, A);
    qs_infer x;
    form f;
    qs_lower_infer(l, &x);
    int code = read_form(&x, &f);
    if (code)
        return code;
    const size_t m = (size_t)qs_dims_product(a->dims, 0, a->rank - 1);
    if (f.rounds)
        return lower_rounded(l, &f, m);
    qs_product *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->right = (qs_right){(size_t)f.k, (size_t)f.n, 1, 1, (ptrdiff_t)f.k};
    p->batches = 1;
    p->m = m;
    p->alpha = 1.0f;
    p->beta = 1.0f;
    p->addend_input = qs_lower_in(l, BIAS) ? BIAS : -1;
    p->addend_col = 1;
    return qs_product_lower(l, p);
}

static const qs_attr_rule nbits_attrs[] = {
    {"K", QS_ATTR_INT, 1, 0},
    {"N", QS_ATTR_INT, 1, 0},
    {"bits", QS_ATTR_INT, 1, 0},
    {"block_size", QS_ATTR_INT, 1, 0},
    {"accuracy_level", QS_ATTR_INT, 1, 0},
};

QS_OP(ms_nbits, .domain = "com.microsoft", .name = "MatMulNBits", .min_in = 3, .max_in = 6,
      QS_ATTRS(nbits_attrs), .traits = QS_PLAIN, .setting_inputs = 0xf << 2, .infer = infer_nbits,
      .pack = pack_nbits, .lower = lower_nbits);
