/* SPDX-License-Identifier: MIT */
#include "op/nn/product.h"

#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/nn/float_jobs.h"

/* Floats of a block of rows of a: they stay in the second-level cache while b is read. */
#define BLOCK_FLOATS ((size_t)128 * 1024)
/* Terms that kernels with `parts` read of a row at a time. */
#define PART_TERMS ((size_t)1024)
/* Rows that read a matrix once each: so few are multiplied sooner than it is packed. */
#define PACKED_ROWS ((size_t)64)
/* A multiple of the rows of every kernel's tile. */
#define ROW_UNIT ((size_t)24)

static bool right_floats(const qk_f32 *k, const qs_right *r, size_t *floats) {
    if (!qk_pack_f32_size(k->panel, r->k, r->n, floats) || *floats > SIZE_MAX / 64)
        return false;
    *floats = qs_align(*floats, 16);
    return true;
}

static void pack_right(const qsim_ctx *ctx, const qs_right *r, const void *data, bool flush,
                       float *to) {
    const qk_pack_source source = {data, 1, r->step_k, 0, r->step_n};
    qs_pack_f32(ctx, to, r->k, r->n, &source, flush);
}

QS_COLD int qs_product_pack(qs_pack *p, const qs_right *right, const void *data) {
    const qk_f32 *k = p->ctx->kernels->f32;
    size_t floats, bytes;
    if (!right_floats(k, right, &floats) || !qs_mul(floats, right->count, &bytes) ||
        !qs_mul(bytes, sizeof(float), &bytes))
        return qs_weights_too_large(p->error);
    float *to = qs_arena_raw64(p->arena, bytes);
    if (!to)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    p->result = to;
    const bool flush = qk_has_denormals(data, right->count * right->k * right->n,
                                        right->step_k == 1 ? right->k : right->n);
    for (size_t i = 0; i < right->count; i++)
        pack_right(p->ctx, right, (const uint8_t *)data + i * right->k * right->n * sizeof(float),
                   flush, to + i * floats);
    return QSIM_OK;
}

typedef struct job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const qs_product *p;
    const float *a, *b, *addend, *bias;
    float *y, *scratch;
} job;

/* Computes alpha * y + beta * addend and the clamp if the kernel did not. */
static void finish_block(const job *j, float *y, size_t first, size_t rows, size_t col,
                         size_t cols) {
    const qs_product *p = j->p;
    static const float none = -0.0f;
    const float *addend = j->addend ? j->addend : &none;
    const float beta = j->addend ? p->beta : 1.0f;
    for (size_t r = 0; r < rows; r++) {
        const float *c = addend + (ptrdiff_t)(first + r) * p->addend_row;
        float *to = y + r * p->right.n;
        for (size_t i = 0; i < cols; i++) {
            const float product = p->alpha * to[i];
            const float term = beta * c[(ptrdiff_t)(col + i) * p->addend_col];
            float v = product + term;
            v = v < p->lo ? p->lo : v;
            to[i] = v > p->hi ? p->hi : v;
        }
    }
}

/* Whether the kernel finishes the results: it adds one row, and has no alpha. */
static bool ends_in_kernel(const qs_product *p) {
    return p->alpha == 1.0f && (p->addend_input < 0 || p->addend_row == 0);
}

/* Computes one block of rows and columns. */
static void product_block(const job *j, const float *a, const float *b, float *y, size_t first,
                          size_t split) {
    const qs_product *p = j->p;
    const size_t col = split * p->columns, rest = p->right.n - col;
    const bool in_kernel = ends_in_kernel(p);
    const qk_gemm_f32 g = {.a = a,
                           .row = p->row,
                           .seg = (const ptrdiff_t[]){0},
                           .rows = p->m - first < p->rows ? p->m - first : p->rows,
                           .segs = 1,
                           .k = p->right.k,
                           .b = b + (p->in_place ? col : col * p->right.k),
                           .b_row = p->in_place ? p->right.n : 0,
                           .bias = j->bias + col,
                           .cols = rest < p->columns ? rest : p->columns,
                           .lo = in_kernel ? p->lo : -INFINITY,
                           .hi = in_kernel ? p->hi : INFINITY,
                           .c = y + col,
                           .ldc = p->right.n};
    qs_gemm_f32(j->ctx, p->kernels, &g);
    if (!in_kernel)
        finish_block(j, y + col, first, g.rows, col, g.cols);
}

/* Computes the items (block of columns, batch, block of rows) of a slice. */
static void product_slice(void *arg, size_t slice) {
    const job *j = arg;
    const qs_product *p = j->p;
    const size_t blocks = p->batches * p->blocks, items = blocks * p->splits, k = p->right.k;
    const size_t end = qs_slice_begin(items, p->slices, slice + 1);
    float *transposed_a = j->scratch + slice * p->slice_floats;
    size_t held = SIZE_MAX; /* the block that `transposed_a` holds */
    for (size_t i = qs_slice_begin(items, p->slices, slice); i < end && !qs_stopped(j->ctx); i++) {
        const size_t at = i % blocks, batch = at / p->blocks;
        const size_t first = at % p->blocks * p->rows;
        const float *a = j->a + (p->a ? p->a[batch] : 0);
        const float *b = j->b + (p->b ? p->b[batch] * p->floats : 0);
        const size_t rows = p->m - first < p->rows ? p->m - first : p->rows;
        if (p->transposed && held != at)
            j->ctx->kernels->u8->transpose32(a + first, p->m, transposed_a, rows, k);
        held = at;
        a = p->transposed ? transposed_a : a + first * k;
        product_block(j, a, b, j->y + (batch * p->m + first) * p->right.n, first, i / blocks);
    }
}

/* Makes the vector that the kernel adds: beta * the addend's only row, or -0. */
static void make_bias(const qsim_ctx *ctx, const qs_product *p, const float *addend, float *bias) {
    const bool used = addend && ends_in_kernel(p);
    for (size_t i = 0; i < p->bias_floats && !qs_stopped_at(ctx, i); i++)
        bias[i] = used && i < p->right.n ? p->beta * addend[(ptrdiff_t)i * p->addend_col] : -0.0f;
}

static void run_product(const qs_step *s, const qs_frame *f) {
    const qs_product *p = s->params;
    float *scratch = f->scratch;
    job j = {
        .ctx = f->ctx, .p = p, .a = qs_step_in(s, f, 0), .b = p->packed, .y = qs_step_out(s, f, 0)};
    j.addend = p->addend_input >= 0 ? qs_step_in(s, f, p->addend_input) : NULL;
    make_bias(f->ctx, p, j.addend, scratch);
    j.bias = scratch;
    scratch += p->bias_floats;
    const float *data = p->packed ? NULL : qs_step_in(s, f, 1);
    if (p->in_place) {
        j.b = data;
    } else if (!p->packed) {
        j.b = scratch;
        for (size_t i = 0; i < p->right.count; i++, scratch += p->floats)
            pack_right(f->ctx, &p->right, data + i * p->right.k * p->right.n, false, scratch);
    }
    j.scratch = scratch;
    qs_parallel(f->ctx, p->slices, product_slice, &j);
}

/* ---- lowering ---- */

static void split_product(const qsim_ctx *ctx, qs_product *p, double ns) {
    const size_t k = p->right.k ? p->right.k : 1, panel = p->kernels->panel;
    const size_t terms = p->kernels->parts && k > PART_TERMS ? PART_TERMS : k;
    size_t rows = BLOCK_FLOATS / terms / ROW_UNIT * ROW_UNIT;
    const size_t most = 20 * ROW_UNIT, least = 2 * ROW_UNIT;
    rows = rows > most ? most : rows < least ? least : rows;
    const size_t slices = qs_slice_count(ctx, SIZE_MAX, ns);
    const size_t panels = (p->right.n + panel - 1) / panel;
    /* If most of what is read is weights, each thread reads only its own columns. */
    const bool across = slices > 1 && p->batches == 1 && !p->transposed && panels >= 4 * slices &&
                        p->right.n >= 4 * p->m;
    if (!across && p->batches < slices) { /* blocks for every thread, of whole row units */
        const size_t share = (p->m + slices - 1) / slices;
        const size_t unit = (share + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
        rows = rows < unit ? rows : unit;
    }
    p->rows = rows < p->m ? rows : p->m;
    p->blocks = (p->m + p->rows - 1) / p->rows;
    p->splits = 1;
    p->columns = p->right.n;
    const size_t items = p->batches * p->blocks;
    assert(items > 0); /* an output without elements is not computed */
    if (across || (items < slices && panels > 1)) {
        const size_t wanted = across ? slices : (slices + items - 1) / items;
        const size_t splits = wanted < panels ? wanted : panels;
        p->columns = (panels + splits - 1) / splits * panel;
        p->splits = (p->right.n + p->columns - 1) / p->columns;
    }
    p->slices = qs_slice_count(ctx, items * p->splits, ns);
}

QS_COLD static int product_scratch(qs_lower *l, qs_product *p) {
    size_t packed = 0, transposed_a = 0, all;
    p->bias_floats = qs_align(p->right.n, 64);
    if (!p->packed && !p->in_place && !qs_mul(p->floats, p->right.count, &packed))
        return qs_fail(l->error, QSIM_E_LIMIT, "a matrix product is too large");
    if (p->transposed && !qs_mul(p->rows, p->right.k, &p->slice_floats))
        return qs_fail(l->error, QSIM_E_LIMIT, "a matrix product is too large");
    p->slice_floats = p->transposed ? qs_align(p->slice_floats, 16) + 16 : 0;
    if (!qs_mul(p->slice_floats, p->slices, &transposed_a) || !qs_add(packed, transposed_a, &all) ||
        !qs_add(all, p->bias_floats, &all) || !qs_mul(all, sizeof(float), &l->step->scratch))
        return qs_fail(l->error, QSIM_E_LIMIT, "a matrix product is too large");
    return QSIM_OK;
}

/* Whether few rows read each matrix, which is one that kernels take without packing. */
static bool reads_in_place(const qs_product *p) {
    const qs_right *r = &p->right;
    return !p->packed && r->step_n == 1 && r->step_k == (ptrdiff_t)r->n && r->n % 8 == 0 &&
           qs_real(p->batches) * qs_real(p->m) <= qs_real(PACKED_ROWS * r->count);
}

QS_COLD int qs_product_lower(qs_lower *l, qs_product *p) {
    l->step->params = p;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    p->kernels = l->ctx->kernels->f32;
    p->packed = l->packed;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    if (!right_floats(p->kernels, &p->right, &p->floats))
        return qs_fail(l->error, QSIM_E_LIMIT, "a matrix product is too large");
    p->in_place = reads_in_place(p);
    p->floats = p->in_place ? p->right.k * p->right.n : p->floats;
    const double macs =
        qs_real(p->batches) * qs_real(p->m) * qs_real(p->right.n) * qs_real(p->right.k);
    split_product(l->ctx, p, macs / QS_MACS_F32);
    p->row = qs_arena_alloc(l->arena, p->rows, sizeof(*p->row));
    if (!p->row)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < p->rows; i++)
        p->row[i] = (ptrdiff_t)(i * p->right.k);
    l->step->run = run_product;
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return product_scratch(l, p);
}
