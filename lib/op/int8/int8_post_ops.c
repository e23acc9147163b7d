/* SPDX-License-Identifier: MIT */
#include "op/int8/int8_post_ops.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "op/nn/window.h"

/* ---- rules ---- */

static const qs_value *input(const qs_infer *x, int32_t index) {
    return index < x->node->input_count ? qs_infer_in(x, index) : NULL;
}

static bool is_table(const qs_value *v) {
    return !v || (v->dtype == QSIM_UINT8 && v->rank == 1 && v->dims[0].size == 256);
}

/* Whether `other` has the results' type and shape. */
static bool same_dims(const qs_value *other, const qs_value *y) {
    bool same = other->dtype == QSIM_UINT8 && other->rank == y->rank;
    for (int32_t i = 0; same && i < y->rank; i++)
        same = other->dims[i].size < 0 || y->dims[i].size < 0 ||
               other->dims[i].size == y->dims[i].size;
    return same;
}

QS_COLD int qs_i8_infer_post_ops(const qs_infer *x) {
    const qs_value *other = input(x, QS_I8_OTHER);
    bool fits = is_table(input(x, QS_I8_FIRST)) && is_table(input(x, QS_I8_LAST));
    if (other)
        fits = fits && input(x, QS_I8_OWN_S) && input(x, QS_I8_OTHER_S) && input(x, QS_I8_SUM_S) &&
               same_dims(other, &x->out[0]);
    return fits ? QSIM_OK
                : qs_infer_fail(x, QSIM_E_INTERNAL, "what follows the product does not fit");
}

/* ---- execution ---- */

/* Bytes that are processed at a time, so that they stay in the first-level cache. */
#define PART 4096

typedef struct operands {
    const qs_i8_post_ops *b;
    const uint8_t *first, *other, *last;
} operands;

/* Rows that are contiguous in both operands are added as one. */
static void add_rows(const operands *r, const qs_conv_i8_block *k, const uint8_t *a,
                     size_t a_stride, uint8_t *y) {
    const uint8_t *other = r->other + k->at;
    const bool one = a_stride == k->n && k->stride == k->n;
    const size_t n = one ? k->n * k->rows : k->n, rows = one ? 1 : k->rows;
    for (size_t i = 0; i < rows; i++)
        r->b->t->add(a + i * a_stride, 1, other + i * k->stride, 1, y + i * n, n, &r->b->pair);
}

/* Rows that are contiguous in x and y are looked up as one. */
static void look_up(const qk_u8 *t, const uint8_t *table, const qs_conv_i8_block *k) {
    const bool one = k->x_stride == k->n && k->y_stride == k->n;
    t->table(table, k->x, k->x_stride, k->y, k->y_stride, one ? k->n * k->rows : k->n,
             one ? 1 : k->rows);
}

/* Applies the post-ops to a block of at most PART bytes, with a sum among them. */
static void sum_part(const operands *r, const qs_conv_i8_block *k) {
    uint8_t looked_up[PART], sums[PART];
    const bool direct = !r->last && k->y_stride == k->n;
    const uint8_t *a = r->first ? looked_up : k->x;
    uint8_t *y = direct ? k->y : sums;
    qs_conv_i8_block before = *k, after = *k;
    before.y = looked_up;
    after.x = sums;
    before.y_stride = after.x_stride = k->n;
    if (r->first)
        look_up(r->b->t, r->first, &before);
    add_rows(r, k, a, r->first ? k->n : k->x_stride, y);
    if (r->last)
        look_up(r->b->t, r->last, &after);
    else if (!direct)
        qs_copy_rows(sums, (ptrdiff_t)k->n, k->y, (ptrdiff_t)k->y_stride, k->n, k->rows);
}

static qs_conv_i8_block part_of(const qs_conv_i8_block *k, size_t row, size_t rows, size_t column,
                                size_t n) {
    return (qs_conv_i8_block){.x = k->x + row * k->x_stride + column,
                              .n = n,
                              .rows = rows,
                              .x_stride = k->x_stride,
                              .at = k->at + row * k->stride + column,
                              .stride = k->stride,
                              .y = k->y + row * k->y_stride + column,
                              .y_stride = k->y_stride};
}

static void sum_block(const void *arg, const qs_conv_i8_block *k) {
    const size_t n = k->n < PART ? k->n : PART, most = PART / n;
    for (size_t row = 0, rows; row < k->rows; row += rows) {
        rows = k->rows - row < most ? k->rows - row : most;
        for (size_t column = 0; column < k->n; column += n) {
            const size_t left = k->n - column;
            const qs_conv_i8_block part = part_of(k, row, rows, column, left < n ? left : n);
            sum_part(arg, &part);
        }
    }
}

static void table_block(const void *arg, const qs_conv_i8_block *k) {
    const operands *r = arg;
    if (!r->first)
        qs_copy_rows(k->x, (ptrdiff_t)k->x_stride, k->y, (ptrdiff_t)k->y_stride, k->n, k->rows);
    else
        look_up(r->b->t, r->first, k);
}

static void run_post_ops(const qs_step *s, const qs_frame *f) {
    const qs_i8_post_ops *b = s->params;
    qs_conv_i8 conv = b->product.conv;
    const int32_t inputs = b->product.input_count;
    operands r = {.b = b};
    r.first = inputs > QS_I8_FIRST ? qs_step_in(s, f, QS_I8_FIRST) : NULL;
    r.other = b->sums ? qs_step_in(s, f, QS_I8_OTHER) : NULL;
    r.last = inputs > QS_I8_LAST ? qs_step_in(s, f, QS_I8_LAST) : NULL;
    conv.after_arg = &r;
    qs_conv_i8_run(f->ctx, &conv, qs_step_in(s, f, 0), qs_step_out(s, f, 0), f->scratch,
                   s->overlaps);
}

/* ---- lowering ---- */

/* The element of a constant scalar, or 0. */
static float scale_of(const qs_lower *l, int32_t index) {
    const qs_value *v = qs_lower_in(l, index);
    float s = 0;
    if (v && v->data)
        memcpy(&s, v->data->data, sizeof(s));
    return s;
}

QS_COLD static int32_t zero_of(const qs_lower *l, int32_t index) {
    const qs_value *v = index < l->node->input_count ? qs_lower_in(l, index) : NULL;
    return v && v->data ? *(const uint8_t *)v->data->data : 0;
}

static qk_u8_pair pair_of(const qs_lower *l) {
    const float sum = scale_of(l, QS_I8_SUM_S);
    const int32_t zero = zero_of(l, QS_I8_SUM_ZP);
    return (qk_u8_pair){.ma = scale_of(l, QS_I8_OWN_S) / sum,
                        .mb = scale_of(l, QS_I8_OTHER_S) / sum,
                        .za = zero_of(l, QS_I8_OWN_ZP),
                        .zb = zero_of(l, QS_I8_OTHER_ZP),
                        .zc = zero,
                        .lo = (float)((int32_t)qs_node_int(l->node, "sum_lo", 0) - zero),
                        .hi = (float)((int32_t)qs_node_int(l->node, "sum_hi", 255) - zero)};
}

QS_COLD void qs_i8_plan_post_ops(const qs_lower *l, qs_i8_post_ops *b) {
    const qs_node *n = l->node;
    b->t = l->ctx->kernels->u8;
    /* A depthwise convolution writes into a larger tensor through `after`, post-ops or not. */
    const bool strided = b->product.conv.g.y_channels > 0 && qs_node_int(n, "group", 1) > 1;
    if (n->input_count <= QS_I8_FIRST && !strided)
        return;
    b->sums = n->input_count > QS_I8_OTHER;
    if (b->sums)
        b->pair = pair_of(l);
    b->product.conv.after = b->sums ? sum_block : table_block;
    b->product.conv.after_in_place = !b->sums && b->product.conv.g.y_channels == 0;
}

QS_COLD int qs_i8_lower_post_ops(qs_lower *l, qs_i8_post_ops *b) {
    static const char *const names[3][2] = {{"gemm int8", "depthwise int8"},
                                            {"gemm int8 table", "depthwise int8 table"},
                                            {"gemm int8 add", "depthwise int8 add"}};
    const int kind = b->sums ? 2 : l->node->input_count > QS_I8_FIRST;
    if (!b->product.conv.after || qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    if (!b->product.prepared)
        return qs_node_fail(l->error, QSIM_E_INTERNAL, l->model, l->node,
                            "something follows a product without weights");
    l->step->run = run_post_ops;
    /* Sums are stored a part at a time, after the same part of the other tensor has been read. */
    l->step->in_place = b->sums && b->product.conv.g.y_channels == 0 ? 1u << QS_I8_OTHER : 0;
    l->step->kernel = names[kind][qs_conv_i8_is_depthwise(&b->product.conv.w)];
    return QSIM_OK;
}
