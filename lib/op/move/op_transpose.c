/* SPDX-License-Identifier: MIT */
/* Transpose for elements of 1, 2, 4 or 8 bytes, and for smaller ones. */
#include <assert.h>

#include "op/expand.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"

/* Elements per item of work, approximately. */
#define BLOCK_ELEMENTS ((size_t)16384)
/* The same with one thread, which needs items only to check for a stop. */
#define ALONE_ELEMENTS ((size_t)2 << 20)

QS_COLD static int read_perm(const qs_infer *x, int32_t rank, int32_t perm[QSIM_MAX_RANK]) {
    int64_t given[QSIM_MAX_RANK];
    int32_t count;
    uint32_t seen = 0;
    int code = qs_infer_attr_ints(x, "perm", given, QSIM_MAX_RANK, &count);
    if (code)
        return code;
    if (count != QS_ABSENT && count != rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "perm has %d axes, the input %d", (int)count,
                             (int)rank);
    for (int32_t i = 0; i < rank; i++) {
        int64_t axis = count == QS_ABSENT ? rank - 1 - i : given[i];
        if (axis < 0 || axis >= rank || (seen & 1u << axis))
            return qs_infer_fail(x, QSIM_E_VALUE, "perm is not a permutation: axis %lld",
                                 (long long)axis);
        seen |= 1u << axis;
        perm[i] = (int32_t)axis;
    }
    return QSIM_OK;
}

QS_COLD static int infer_transpose(qs_infer *x) {
    const qs_value *in = x->in[0];
    int32_t perm[QSIM_MAX_RANK];
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_ANY);
    if (code || in->rank < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    code = read_perm(x, in->rank, perm);
    if (code)
        return code;
    for (int32_t i = 0; i < in->rank; i++)
        dims[i] = in->dims[perm[i]];
    return qs_infer_out(x, 0, in->dtype, in->rank, dims);
}

/* Rows that a kernel takes; of fewer, elements are copied one by one. */
#define FEW ((size_t)8)
/* Bytes of lines that transpose_lines gathers: a part of the first-level cache. */
#define LINES      ((size_t)16384)
#define MOST_LINES ((size_t)64)
/* Columns of two bytes that transpose_pairs takes at once. */
#define PAIR_COLUMNS ((size_t)32)

/*
 * Axes of the result, merged; the last two, (rows, columns), are copied as a tile. Columns are
 * contiguous in the result; in the input, rows are `row` elements apart and columns `column`.
 */
typedef struct transpose_params {
    int32_t rank; /* of the axes outside the tile */
    size_t outer, rows, columns, row, column, element;
    const size_t *lines;  /* offset of each column if columns span several axes; or NULL */
    size_t block, blocks; /* rows of a block; blocks of a tile */
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK];
} transpose_params;

/* For elements of 8 bytes, few rows, and columns of elements that lie apart. */
#define GATHER(T)                                                                                  \
    static void gather_##T(const T *restrict x, T *restrict y, const transpose_params *p,          \
                           size_t rows) {                                                          \
        const size_t columns = p->columns, column = p->column;                                     \
        for (size_t r = 0; r < rows; r++)                                                          \
            for (size_t c = 0; c < columns; c++, y++)                                              \
                *y = x[r * p->row + c * column];                                                   \
    }

GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

static void gather(const void *x, void *y, const transpose_params *p, size_t rows) {
    switch (p->element) {
    case 1: gather_uint8_t(x, y, p, rows); break;
    case 2: gather_uint16_t(x, y, p, rows); break;
    case 4: gather_uint32_t(x, y, p, rows); break;
    default: gather_uint64_t(x, y, p, rows); break;
    }
}

typedef struct transpose_job {
    const transpose_params *p;
    const qk_u8 *k;
    void (*kernel)(const void *x, size_t line, void *y, size_t rows, size_t columns); /* or NULL */
    const char *x;
    char *y;
} transpose_job;

static void weave_bytes(const uint8_t *restrict x, size_t line, uint8_t *restrict y, size_t rows) {
    for (size_t r = 0; r < rows; r++) {
        y[2 * r] = x[r];
        y[2 * r + 1] = x[line + r];
    }
}

/* Transposes many small tiles in order, as in a channel shuffle. */
static void transpose_tiles(const transpose_job *job, size_t begin, size_t end) {
    const transpose_params *p = job->p;
    const size_t step = p->rank > 0 ? p->strides[0] * p->element : 0;
    const size_t bytes = p->rows * p->columns * p->element;
    if (p->element == 1 && p->columns == 2) {
        for (size_t o = begin; o < end; o++)
            weave_bytes((const uint8_t *)job->x + o * step, p->column,
                        (uint8_t *)job->y + o * bytes, p->rows);
        return;
    }
    for (size_t o = begin; o < end; o++)
        job->kernel(job->x + o * step, p->column, job->y + o * bytes, p->rows, p->columns);
}

/* Columns that span several axes, as when blocks of pixels become channels, are gathered first. */
static void transpose_lines(const transpose_job *job, const char *x, char *y, size_t rows) {
    const transpose_params *p = job->p;
    uint64_t near[LINES / 8];
    const size_t most = LINES / (p->columns * p->element) / 16 * 16;
    assert(job->kernel); /* column_axes needs one */
    for (size_t r = 0; r < rows; r += most) {
        const size_t n = rows - r < most ? rows - r : most, bytes = n * p->element;
        for (size_t c = 0; c < p->columns; c++)
            memcpy((char *)near + c * bytes, x + (r + p->lines[c]) * p->element, bytes);
        job->kernel(near, n, y + r * p->columns * p->element, n, p->columns);
    }
}

static void weave(const uint16_t *restrict a, const uint16_t *restrict b, uint16_t *restrict y,
                  size_t n) {
    for (size_t i = 0; i < n; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}

/* Elements of two bytes: the kernel moves pairs, each of two neighbouring columns of a row. */
static void transpose_pairs(const transpose_job *job, const uint16_t *x, uint16_t *y, size_t rows) {
    const transpose_params *p = job->p;
    uint64_t near[LINES / 8], turned[LINES / 8];
    for (size_t c = 0, wide; c < p->columns; c += wide) {
        wide = p->columns - c < PAIR_COLUMNS ? p->columns - c : PAIR_COLUMNS;
        const size_t pairs = (wide + 1) / 2, tall = LINES / 4 / pairs / 16 * 16;
        for (size_t r = 0, n; r < rows; r += n) {
            n = rows - r < tall ? rows - r : tall;
            for (size_t i = 0; i < wide; i += 2) {
                const size_t a = c + i, b = i + 1 < wide ? a + 1 : a;
                weave(x + r + (p->lines ? p->lines[a] : a * p->column),
                      x + r + (p->lines ? p->lines[b] : b * p->column),
                      (uint16_t *)(void *)near + i * n, n);
            }
            job->kernel(near, n, turned, n, pairs);
            qs_copy_rows((const void *)turned, (ptrdiff_t)(4 * pairs),
                         (char *)(y + r * p->columns + c), (ptrdiff_t)(2 * p->columns), 2 * wide,
                         n);
        }
    }
}

/* Transposes `rows` rows of a tile. */
static void transpose_rows(const transpose_job *job, const void *x, void *y, size_t rows) {
    const transpose_params *p = job->p;
    if (job->kernel && p->element == 2)
        transpose_pairs(job, x, y, rows);
    else if (p->lines)
        transpose_lines(job, x, y, rows);
    else if (p->column == 1)
        qs_copy_rows(x, (ptrdiff_t)(p->row * p->element), y, (ptrdiff_t)(p->columns * p->element),
                     p->columns * p->element, rows);
    else if (p->row != 1)
        gather(x, y, p, rows);
    else if (p->element == 1 && p->columns <= 4 && rows >= 1024)
        job->k->interleave(x, p->column, p->columns, y, rows);
    else if (job->kernel)
        job->kernel(x, p->column, y, rows, p->columns);
    else
        gather(x, y, p, rows);
}

/* Transposes items (index of the outer axes, block of rows). */
static void transpose_range(const void *arg, size_t begin, size_t end) {
    const transpose_job *job = arg;
    const transpose_params *p = job->p;
    if (job->kernel && !p->lines && p->element != 2 && p->rank <= 1 && p->blocks == 1 &&
        p->rows < 1024) {
        transpose_tiles(job, begin, end);
        return;
    }
    for (size_t item = begin; item < end; item++) {
        const size_t o = p->blocks == 1 ? item : item / p->blocks;
        const size_t first = (item - o * p->blocks) * p->block;
        size_t at = first * p->row, rest = o;
        for (int32_t i = p->rank - 1; i > 0; i--) {
            at += rest % p->dims[i] * p->strides[i];
            rest /= p->dims[i];
        }
        if (p->rank > 0)
            at += rest * p->strides[0];
        const size_t rows = p->rows - first < p->block ? p->rows - first : p->block;
        transpose_rows(job, job->x + at * p->element,
                       job->y + (o * p->rows + first) * p->columns * p->element, rows);
    }
}

static void run_transpose(const qs_step *s, const qs_frame *f) {
    const transpose_params *p = s->params;
    const qk_u8 *k = f->ctx->kernels->u8;
    transpose_job job = {.p = p, .k = k, .x = qs_step_in(s, f, 0), .y = qs_step_out(s, f, 0)};
    if (p->row == 1 && p->column != 1 && p->element < 8 && p->rows >= FEW)
        job.kernel = p->element == 1 ? k->transpose8 : k->transpose32;
    qs_ranges(f->ctx, p->outer * p->blocks, QS_GRAIN / (p->block * p->columns + 1) + 1,
              transpose_range, &job);
}

/* Merges axes of the result; sets their sizes and strides in the input, returns their number. */
static int32_t merge_axes(const int64_t *sizes, const int32_t *perm, int32_t rank, size_t *dims,
                          size_t *strides) {
    size_t own[QSIM_MAX_RANK], step = 1;
    int32_t n = 0;
    for (int32_t i = rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= (size_t)sizes[i];
    }
    for (int32_t i = 0; i < rank; i++) {
        size_t d = (size_t)sizes[perm[i]], s = own[perm[i]];
        if (d == 1)
            continue;
        if (n > 0 && strides[n - 1] == s * d) {
            dims[n - 1] *= d;
            strides[n - 1] = s;
            continue;
        }
        dims[n] = d;
        strides[n++] = s;
    }
    return n;
}

/*
 * Number of last axes that are columns: more than one if the axis before them, the rows, has
 * adjacent elements in the input and a kernel transposes them.
 */
static int32_t column_axes(const size_t *dims, const size_t *strides, int32_t n, size_t element) {
    size_t columns = dims[n - 1];
    if (element == 8 || strides[n - 1] == 1 || strides[n - 2] == 1)
        return 1;
    for (int32_t i = n - 2; i > 0 && columns * dims[i] <= MOST_LINES; i--) {
        columns *= dims[i];
        if (strides[i - 1] == 1)
            return dims[i - 1] >= 16 ? n - i : 1;
    }
    return 1;
}

/* Sets up the tile of the last axes, of which `across` are columns. */
QS_COLD static int lower_tile(qs_lower *l, transpose_params *p, const size_t *dims,
                              const size_t *strides, int32_t n, int32_t across) {
    p->columns = 1;
    for (int32_t i = n - across; i < n; i++)
        p->columns *= dims[i];
    p->column = strides[n - 1];
    p->rows = dims[n - across - 1];
    p->row = strides[n - across - 1];
    if (across == 1)
        return QSIM_OK;
    size_t *lines = qs_arena_alloc(l->arena, p->columns, sizeof(*lines));
    for (size_t c = 0; lines && c < p->columns; c++) {
        size_t rest = c, at = 0;
        for (int32_t i = n - 1; i >= n - across; rest /= dims[i--])
            at += rest % dims[i] * strides[i];
        lines[c] = at;
    }
    p->lines = lines;
    return lines ? QSIM_OK : qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
}

QS_COLD int qs_lower_transpose(qs_lower *l, const int64_t *sizes, const int32_t *perm,
                               int32_t rank) {
    const qs_value *x = qs_lower_in(l, 0);
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK];
    const int32_t n = merge_axes(sizes, perm, rank, dims, strides);
    if (n <= 1 || qs_value_elements(x) == 0) { /* only axes of size 1 move, or no elements */
        l->alias = true;
        return QSIM_OK;
    }
    transpose_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->element = qs_dtype_bytes(x->dtype);
    const int32_t across = column_axes(dims, strides, n, p->element);
    const int32_t outer = n - 1 - across;
    assert(outer >= 0 && outer < n);
    p->rank = outer;
    p->outer = 1;
    for (int32_t i = 0; i < outer; i++) {
        p->dims[i] = dims[i];
        p->strides[i] = strides[i];
        p->outer *= dims[i];
    }
    const int code = lower_tile(l, p, dims, strides, n, across);
    if (code)
        return code;
    p->block = (l->ctx->threads == 1 ? ALONE_ELEMENTS : BLOCK_ELEMENTS) / p->columns / 64 * 64;
    p->block = p->block < 64 ? 64 : p->block;
    p->block = l->ctx->threads == 1 && p->block > p->rows ? p->rows : p->block;
    p->blocks = (p->rows + p->block - 1) / p->block;
    l->step->run = run_transpose;
    return QSIM_OK;
}

QS_COLD static int lower_transpose(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    int32_t perm[QSIM_MAX_RANK];
    int64_t sizes[QSIM_MAX_RANK];
    qs_infer rules;
    qs_lower_infer(l, &rules);
    const int code = read_perm(&rules, x->rank, perm);
    for (int32_t i = 0; i < x->rank; i++)
        sizes[i] = x->dims[i].size;
    return code ? code : qs_lower_transpose(l, sizes, perm, x->rank);
}

/* Types with several elements in a byte are moved as wider types with the same values. */
QS_COLD static void expand_transpose(qs_expand *e) {
    const int32_t dtype = qs_expand_value(e, 0)->dtype;
    if (!(QS_T_PACKED & QS_T(dtype)))
        return;
    const int32_t whole = dtype == QSIM_FLOAT4E2M1                     ? QSIM_FLOAT8E5M2
                          : dtype == QSIM_UINT4 || dtype == QSIM_UINT2 ? QSIM_UINT8
                                                                       : QSIM_INT8;
    e->out[0] = qs_expand_cast(e, qs_expand_as(e, 0, whole), dtype);
}

static const qs_attr_rule transpose_attrs[] = {{"perm", QSIM_ATTR_INTS, 1, 0}};

QS_OP(transpose, .name = "Transpose", .min_in = 1, QS_ATTRS(transpose_attrs),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_READS_EXACTLY, .kind = QS_KIND_MOVEMENT,
      .kernel = QS_KERNEL_TRANSPOSE, .infer = infer_transpose, .lower = lower_transpose,
      .expand = expand_transpose);
