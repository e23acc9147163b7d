/* SPDX-License-Identifier: MIT */
#include "op/nn/float_jobs.h"
#include "op/nn/nbits_product.h"

#include <math.h>

#include "base/ctx.h"
#include "base/slices.h"
#include "kernel/ew.h"
#include "kernel/f32.h"
#include "op/nn/codes.h"
#include "quant/requantize.h"

#define PAIR ((size_t)QK_NBITS_GROUP * QK_NBITS_TOGETHER) /* columns computed together */

/* Between two checks for a stop: k of a column, products of one column. */
#define MOST_TERMS    ((size_t)1 << 13)
#define MOST_PRODUCTS ((size_t)1 << 17)

/* ---- packing ---- */

static int32_t code_at(const qs_nbits *w, size_t row, size_t k) {
    return qs_code_at(w->bits + row * (size_t)(w->f.blocks * w->f.bytes), w->f.bits, (int64_t)k);
}

static int32_t zero_at(const qs_nbits *w, size_t row, size_t block) {
    if (!w->zeros)
        return 1 << (w->f.bits - 1);
    return qs_code_at(w->zeros + row * (size_t)w->f.zero_bytes, w->f.bits, (int64_t)block);
}

/* `count` codes of a column, one of every `step`, in the bits of a dword. */
static uint32_t dword_at(const qs_nbits *w, size_t row, size_t k, size_t count, size_t step) {
    uint32_t dword = 0;
    for (size_t i = 0; i < count; i++)
        dword |= (uint32_t)code_at(w, row, k + i * step) << (32 / count * i);
    return dword;
}

/* The codes of a column, eight at a time. */
static void pack_codes(const qsim_ctx *ctx, const qs_nbits *w, size_t row, bool bytes,
                       uint32_t *codes) {
    const size_t k = (size_t)(w->f.blocks * w->f.block), step = bytes ? 2 : 1;
    codes += row / QK_NBITS_GROUP * (k / 8 * step) * QK_NBITS_GROUP + row % QK_NBITS_GROUP;
    for (size_t i = 0; i < k && (i % MOST_TERMS || !qs_stopped(ctx)); i += 8)
        for (size_t odd = 0; odd < step; odd++, codes += QK_NBITS_GROUP)
            *codes = dword_at(w, row, i + odd, 8 / step, step);
}

static void pack_scales(const qs_nbits *w, size_t row, float *scales, uint8_t *zeros) {
    const size_t lane = row % QK_NBITS_GROUP, group = row / QK_NBITS_GROUP;
    const size_t blocks = (size_t)w->f.blocks;
    for (size_t b = 0; b < blocks; b++) {
        const size_t at = (group * blocks + b) * QK_NBITS_GROUP + lane;
        scales[at] = w->scales[row * blocks + b];
        if (zeros)
            zeros[at] = (uint8_t)zero_at(w, row, b);
    }
}

QS_COLD int qs_nbits_pack(qs_pack *p, qs_nbits *w) {
    const size_t columns = qs_align((size_t)w->f.n, PAIR), blocks = (size_t)w->f.blocks;
    const size_t k = blocks * (size_t)w->f.block;
    const bool zeros = w->zeros || w->f.bits != 4, wide = w->f.bits == 8;
    size_t bytes;
    if ((wide && !w->f.rounds) || w->real_zeros || w->groups)
        return QSIM_OK;
    if (!qs_mul(columns, wide ? k : k / 2, &bytes))
        return qs_weights_too_large(p->error);
    uint32_t *codes = qs_arena_alloc64(p->arena, bytes);
    float *scales = qs_arena_alloc64(p->arena, columns * blocks * sizeof(*scales));
    uint8_t *z = zeros ? qs_arena_alloc64(p->arena, columns * blocks) : NULL;
    if (!codes || !scales || (zeros && !z))
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    for (size_t row = 0; row < (size_t)w->f.n && !qs_stopped(p->ctx); row++) {
        pack_codes(p->ctx, w, row, wide, codes);
        pack_scales(w, row, scales, z);
    }
    w->packed = (qk_nbits_weights){codes, scales, z, (size_t)w->f.block, blocks, wide};
    return QSIM_OK;
}

/* ---- floats ---- */

typedef struct params {
    const qs_nbits *w;
    const qk_nbits *kernels;
    const qk_f32 *f32;
    size_t m, k, n;
    int32_t bias; /* index of the input; -1: none */
    ptrdiff_t *row;
    size_t bias_floats, panel_floats, slices;
    size_t scale_bytes, sum_bytes, a_bytes;
} params;

typedef struct job {
    const qsim_ctx *ctx;
    const params *p;
    const float *a, *bias;
    float *y, *scratch;
    qk_nbits_rows rows;
} job;

/* Unpacks [begin, end) of a column into a panel of the float kernel. */
static void unpack_column(const qs_nbits *w, size_t row, size_t begin, size_t end, size_t width,
                          float *to) {
    const size_t blocks = (size_t)w->f.blocks, block = (size_t)w->f.block;
    const uint8_t *bytes = w->bits + row * blocks * (size_t)w->f.bytes;
    float zero = 0, scale = 0;
    for (size_t k = begin; k < end; k++) {
        if (w->groups || k == begin || k % block == 0) {
            const size_t b = w->groups ? (size_t)w->groups[k] : k / block;
            zero = w->real_zeros ? w->real_zeros[row * blocks + b] : (float)zero_at(w, row, b);
            scale = w->scales[row * blocks + b];
        }
        const int32_t code = w->f.bits == 8 ? bytes[k] : code_at(w, row, k);
        to[k * width] = ((float)code - zero) * scale;
    }
}

/* Unpacks [begin, end) of columns [col, col + width); zero after the last. */
static void unpack_slowly(const qs_nbits *w, size_t col, size_t begin, size_t end, size_t width,
                          float *to) {
    for (size_t j = 0; j < width; j++) {
        if (col + j < (size_t)w->f.n)
            unpack_column(w, col + j, begin, end, width, to + j);
        for (size_t k = begin; col + j >= (size_t)w->f.n && k < end; k++)
            to[k * width + j] = 0;
    }
}

static void unpack_panel(const job *of, size_t col, size_t width, float *to) {
    const params *p = of->p;
    const size_t group = QK_NBITS_GROUP;
    for (size_t k = 0, end; k < p->k && !qs_stopped(of->ctx); k = end) {
        end = p->k - k < MOST_TERMS ? p->k : k + MOST_TERMS;
        if (!p->w->packed.codes)
            unpack_slowly(p->w, col, k, end, width, to);
        for (size_t j = 0; p->w->packed.codes && j < width; j += group)
            p->kernels->unpack(&p->w->packed, (col + j) / group, k, end,
                               width - j < group ? width - j : group, to + j, width);
    }
}

static void product_slice(void *arg, size_t slice) {
    const job *j = arg;
    const params *p = j->p;
    const size_t panel = p->f32->panel, panels = (p->n + panel - 1) / panel;
    const size_t end = qs_slice_begin(panels, p->slices, slice + 1);
    float *b = j->scratch + slice * p->panel_floats;
    for (size_t i = qs_slice_begin(panels, p->slices, slice); i < end && !qs_stopped(j->ctx); i++) {
        const size_t col = i * panel, rest = p->n - col;
        unpack_panel(j, col, qk_panel_width(panel, p->n, col), b);
        const qk_gemm_f32 g = {.a = j->a,
                               .row = p->row,
                               .seg = (const ptrdiff_t[]){0},
                               .rows = p->m,
                               .segs = 1,
                               .k = p->k,
                               .b = b,
                               .bias = j->bias + col,
                               .cols = rest < panel ? rest : panel,
                               .lo = -INFINITY,
                               .hi = INFINITY,
                               .c = j->y + col,
                               .ldc = p->n};
        qs_gemm_f32(j->ctx, p->f32, &g);
    }
}

static void run_product(const qs_step *s, const qs_frame *f) {
    const params *p = s->params;
    float *bias = f->scratch;
    const float *given = p->bias < 0 ? NULL : qs_step_in(s, f, p->bias);
    for (size_t i = 0; i < p->bias_floats; i++)
        bias[i] = given && i < p->n ? given[i] : -0.0f;
    job j = {.ctx = f->ctx,
             .p = p,
             .a = qs_step_in(s, f, 0),
             .bias = bias,
             .y = qs_step_out(s, f, 0),
             .scratch = bias + p->bias_floats};
    qs_parallel(f->ctx, p->slices, product_slice, &j);
}

/* ---- one row of floats ---- */

/* Computes pairs of column groups [begin, end); the last pair may be incomplete. */
static void row_pairs(const void *arg, size_t begin, size_t end) {
    const job *j = arg;
    const params *p = j->p;
    const size_t whole = p->n / PAIR, direct = end < whole ? end : whole;
    const qk_nbits_weights *w = &p->w->packed;
    if (direct > begin)
        p->kernels->row(w, j->a, p->k, begin * QK_NBITS_TOGETHER,
                        (direct - begin) * QK_NBITS_TOGETHER, j->y + begin * PAIR);
    if (end > whole) {
        float last[PAIR];
        p->kernels->row(w, j->a, p->k, whole * QK_NBITS_TOGETHER, QK_NBITS_TOGETHER, last);
        memcpy(j->y + whole * PAIR, last, (p->n - whole * PAIR) * sizeof(*last));
    }
    const size_t columns = end * PAIR < p->n ? end * PAIR : p->n;
    for (size_t c = begin * PAIR; j->bias && c < columns; c++)
        j->y[c] += j->bias[c];
}

static void run_row(const qs_step *s, const qs_frame *f) {
    const params *p = s->params;
    const job j = {.p = p,
                   .a = qs_step_in(s, f, 0),
                   .bias = p->bias < 0 ? NULL : qs_step_in(s, f, p->bias),
                   .y = qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, (p->n + PAIR - 1) / PAIR, QS_GRAIN / (p->k * PAIR / 8 + 1) + 1, row_pairs,
              &j);
}

/* ---- accuracy_level 4 ---- */

/* Quantizes `count` numbers of a block of a; the rest is 0. Returns the scale; *sum: their sum. */
static float round_block(const qk_ew *ew, const float *a, size_t count, size_t block, int8_t *to,
                         int32_t *sum) {
    const float most = ew->magnitude(a, count);
    memset(to, 0, block);
    *sum = 0;
    if (!(most < INFINITY))
        return most; /* multiplied by sums of 0 it gives NaN */
    const float factor = most > 0.0f ? 127.0f / most : 0.0f;
    for (size_t i = 0; i < count; i++) {
        const float v = a[i] * factor, least = v < -127.0f ? -127.0f : v;
        const int32_t q = qs_round_even(least > 127.0f ? 127.0f : least == least ? least : 0.0f);
        to[qk_nbits_place(i)] = (int8_t)q;
        *sum += q;
    }
    return most / 127.0f;
}

static void round_rows(const void *arg, size_t begin, size_t end) {
    const job *j = arg;
    const params *p = j->p;
    const size_t blocks = (size_t)p->w->f.blocks, block = (size_t)p->w->f.block;
    for (size_t i = begin; i < end; i++) {
        const size_t r = i / blocks, at = i % blocks * block, rest = p->k - at;
        ((float *)(uintptr_t)j->rows.scales)[i] = round_block(
            j->ctx->kernels->ew, j->a + r * p->k + at, rest < block ? rest : block, block,
            (int8_t *)(uintptr_t)j->rows.a + i * block, (int32_t *)(uintptr_t)j->rows.sums + i);
    }
}

/* The product for a pair of groups, in parts that are short enough for a stop. */
static void rounded_pair(const job *j, size_t group, float *y, size_t ldy) {
    const params *p = j->p;
    const qk_nbits_weights *w = &p->w->packed;
    const qk_nbits_rows *m = &j->rows;
    const size_t some = w->block < MOST_TERMS ? MOST_TERMS / w->block : 1;
    const size_t step = some < w->blocks ? some : w->blocks;
    const size_t fit = MOST_PRODUCTS / (step * w->block), rows = fit < 8 ? fit : fit & ~(size_t)7;
    for (size_t r = 0; r < p->m; r += rows)
        for (size_t b = 0; b < w->blocks && !qs_stopped(j->ctx); b += step)
            p->kernels->rounded(
                w,
                &(qk_nbits_rows){m->a + r * w->blocks * w->block, m->scales + r * w->blocks,
                                 m->sums + r * w->blocks, p->m - r < rows ? p->m - r : rows},
                group, b, w->blocks - b < step ? w->blocks : b + step, y + r * ldy, ldy);
}

static void rounded_pairs(const void *arg, size_t begin, size_t end) {
    const job *j = arg;
    const params *p = j->p;
    for (size_t i = begin; i < end && !qs_stopped(j->ctx); i++) {
        const size_t col = i * PAIR, columns = p->n - col < PAIR ? p->n - col : PAIR;
        const bool whole = columns == PAIR;
        float *to = whole ? j->y + col : j->scratch;
        const size_t ld = whole ? p->n : PAIR;
        for (size_t r = 0; r < p->m; r++)
            memset(to + r * ld, 0, PAIR * sizeof(*to));
        rounded_pair(j, i * QK_NBITS_TOGETHER, to, ld);
        for (size_t r = 0; r < p->m; r++) {
            float *y = j->y + r * p->n + col;
            if (!whole)
                memcpy(y, to + r * PAIR, columns * sizeof(*y));
            for (size_t c = 0; j->bias && c < columns; c++)
                y[c] += j->bias[col + c];
        }
    }
}

static void run_rounded(const qs_step *s, const qs_frame *f) {
    const params *p = s->params;
    char *scratch = f->scratch;
    const size_t blocks = (size_t)p->w->f.blocks;
    const job j = {.ctx = f->ctx,
                   .p = p,
                   .a = qs_step_in(s, f, 0),
                   .bias = p->bias < 0 ? NULL : qs_step_in(s, f, p->bias),
                   .y = qs_step_out(s, f, 0),
                   .scratch =
                       (float *)(void *)(scratch + p->scale_bytes + p->sum_bytes + p->a_bytes),
                   .rows = {.scales = (const float *)(void *)scratch,
                            .sums = (const int32_t *)(void *)(scratch + p->scale_bytes),
                            .a = (const int8_t *)scratch + p->scale_bytes + p->sum_bytes,
                            .rows = p->m}};
    const size_t work = p->m * p->k + 1;
    qs_ranges(f->ctx, p->m * blocks, QS_GRAIN / (size_t)p->w->f.block + 1, round_rows, &j);
    qs_ranges(f->ctx, (p->n + PAIR - 1) / PAIR, QS_GRAIN * 8 / (work * PAIR / 8 + 1) + 1,
              rounded_pairs, &j);
}

/* ---- lowering ---- */

QS_COLD static int too_large(const qs_lower *l) {
    return qs_fail(l->error, QSIM_E_LIMIT, "a matrix product is too large");
}

QS_COLD static int lower_rounded(qs_lower *l, params *p) {
    const size_t blocks = (size_t)p->w->f.blocks;
    size_t bytes;
    if (!qs_mul(p->m, blocks, &bytes) || !qs_mul(bytes, (size_t)p->w->f.block + 64, &bytes) ||
        !qs_mul(p->m, PAIR * sizeof(float) * 2, &bytes))
        return too_large(l);
    p->scale_bytes = p->sum_bytes = qs_align(p->m * blocks * sizeof(float), 64);
    p->a_bytes = qs_align(p->m * blocks * (size_t)p->w->f.block, 64);
    l->step->scratch = p->scale_bytes + p->sum_bytes + p->a_bytes + p->m * PAIR * sizeof(float);
    l->step->run = run_rounded;
    return QSIM_OK;
}

QS_COLD static int lower_floats(qs_lower *l, params *p, double macs) {
    const size_t panel = p->f32->panel;
    size_t floats;
    p->slices = qs_slice_count(l->ctx, (p->n + panel - 1) / panel, macs / QS_MACS_F32);
    p->bias_floats = qs_align(p->n, panel);
    p->bias_floats = qs_align(p->bias_floats, 64);
    if (!qk_pack_f32_size(panel, p->k, panel, &p->panel_floats) ||
        p->panel_floats > SIZE_MAX / 64 / p->slices)
        return too_large(l);
    p->panel_floats = qs_align(p->panel_floats, 16);
    floats = p->bias_floats + p->slices * p->panel_floats;
    if (!qs_mul(floats, sizeof(float), &l->step->scratch))
        return too_large(l);
    p->row = qs_arena_alloc(l->arena, p->m + 1, sizeof(*p->row));
    if (!p->row)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < p->m; i++)
        p->row[i] = (ptrdiff_t)(i * p->k);
    l->step->run = run_product;
    return QSIM_OK;
}

QS_COLD int qs_nbits_lower(qs_lower *l, size_t m, int32_t bias) {
    const qs_nbits *w = l->packed;
    params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *p = (params){.w = w,
                  .kernels = l->ctx->kernels->nbits,
                  .f32 = l->ctx->kernels->f32,
                  .m = m,
                  .k = (size_t)w->f.k,
                  .n = (size_t)w->f.n,
                  .bias = bias};
    const double macs = qs_real(m) * qs_real(p->k) * qs_real(p->n);
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    l->step->run = qs_run_nothing;
    if (m == 0)
        return QSIM_OK;
    if (w->f.rounds)
        return lower_rounded(l, p);
    if (m == 1 && w->packed.codes && p->kernels->row && p->k <= MOST_PRODUCTS) {
        l->step->run = run_row;
        return QSIM_OK;
    }
    return lower_floats(l, p, macs);
}
