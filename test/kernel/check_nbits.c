/* SPDX-License-Identifier: MIT */
/* Products with weights of 4 or 8 bits in blocks. */
#include "checkkernel.h"

#include "kernel/nbits.h"

#include <math.h>
#include <stdio.h>

typedef struct nbits_case {
    const qk_nbits *k;
    qk_nbits_weights w;
    qk_nbits_rows rows;
    const float *a;
    size_t depth, group, groups, columns, width, ldy;
    size_t first, cut; /* k where unpacking begins, and the block where `rounded` is called anew */
    int which;         /* 0: unpack, 1: row, 2: rounded */
    float *y;
} nbits_case;

static void call(void *arg) {
    const nbits_case *c = arg;
    if (c->which == 0)
        c->k->unpack(&c->w, c->group, c->first, c->depth, c->columns, c->y, c->width);
    else if (c->which == 1)
        c->k->row(&c->w, c->a, c->depth, c->group, c->groups, c->y);
    else
        for (size_t g = 0; g < c->groups; g += QK_NBITS_TOGETHER)
            for (size_t b = 0, end = c->cut; b < c->w.blocks; b = end, end = c->w.blocks)
                c->k->rounded(&c->w, &c->rows, c->group + g, b, end, c->y + g * QK_NBITS_GROUP,
                              c->ldy);
}

static void make_weights(ck_state *s, nbits_case *c, size_t groups, size_t block, size_t blocks,
                         bool zeros, bool bytes) {
    const size_t parts = groups * blocks * QK_NBITS_GROUP;
    uint8_t *z = ck_input(s, parts);
    for (size_t i = 0; i < parts && !bytes; i++)
        z[i] &= 15;
    c->w = (qk_nbits_weights){.codes = ck_input(s, bytes ? parts * block : parts * block / 2),
                              .scales = ck_floats(s, parts, -0.1f, 0.1f),
                              .zeros = zeros || bytes ? z : NULL,
                              .bytes = bytes,
                              .block = block,
                              .blocks = blocks};
}

static void make_rows(ck_state *s, nbits_case *c, size_t rows) {
    const size_t parts = rows * c->w.blocks;
    int8_t *a = ck_input(s, parts * c->w.block);
    int32_t *sums = ck_input(s, parts * sizeof(*sums));
    for (size_t i = 0; i < parts; i++) {
        sums[i] = 0;
        for (size_t k = 0; k < c->w.block; k++) {
            int8_t *v = &a[i * c->w.block + k];
            *v = *v == -128 ? -127 : *v;
            sums[i] += *v;
        }
    }
    c->rows = (qk_nbits_rows){a, ck_floats(s, parts, 0.01f, 1), sums, rows};
}

/* The definition in the header, without kernels: code minus zero point, and its scale. */
static int less_zero(const nbits_case *c, size_t k, size_t column, float *scale) {
    const size_t group = column / QK_NBITS_GROUP, lane = column % QK_NBITS_GROUP;
    const size_t eights = c->w.block * c->w.blocks / 8;
    const size_t at = (group * c->w.blocks + k / c->w.block) * QK_NBITS_GROUP + lane;
    const size_t eight = group * eights + k / 8, wide = eight * 2 + k % 2;
    const uint32_t dword = c->w.codes[(c->w.bytes ? wide : eight) * QK_NBITS_GROUP + lane];
    const uint32_t code = c->w.bytes ? dword >> (k % 8 / 2 * 8) & 255 : dword >> (k % 8 * 4) & 15;
    *scale = c->w.scales[at];
    return (int)code - (c->w.zeros ? c->w.zeros[at] : 8);
}

static float weight(const nbits_case *c, size_t k, size_t column) {
    float scale;
    const int code = less_zero(c, k, column, &scale);
    return (float)code * scale;
}

static float expected(const nbits_case *c, size_t row, size_t column, float sum) {
    const size_t whole = c->w.block * c->w.blocks;
    const size_t lane = column % QK_NBITS_GROUP, group = column / QK_NBITS_GROUP;
    for (size_t k = 0; c->which == 1 && k < c->depth; k++)
        sum = fmaf(c->a[k], weight(c, k, column), sum);
    for (size_t b = 0; c->which == 2 && b < c->w.blocks; b++) {
        const size_t at = (group * c->w.blocks + b) * QK_NBITS_GROUP + lane;
        const float scale = c->rows.scales[row * c->w.blocks + b] * c->w.scales[at];
        float unused;
        int32_t terms = 0;
        for (size_t k = b * c->w.block; k < (b + 1) * c->w.block; k++)
            terms += c->rows.a[row * whole + qk_nbits_place(k)] * less_zero(c, k, column, &unused);
        const float product = (float)terms * scale;
        sum += product;
    }
    return sum;
}

static void check(ck_state *s, int which) {
    static const size_t sizes[] = {16, 32, 64, 128};
    const size_t block = sizes[ck_random(s) % QS_COUNT(sizes)];
    const size_t blocks = (size_t)ck_between(s, 1, 5), groups = 2 * (size_t)ck_between(s, 1, 3);
    const bool zeros = ck_between(s, 0, 1), wide = which == 2 && ck_between(s, 0, 1);
    nbits_case c = {.which = which};
    char shape[96];
    make_weights(s, &c, groups, block, blocks, zeros, wide);
    c.depth = block * (blocks - 1) + (size_t)ck_between(s, 1, (int32_t)block);
    c.a = ck_floats(s, c.depth, -2, 2);
    c.group = (size_t)ck_between(s, 0, (int32_t)groups / 2 - 1) * 2;
    c.groups = which == 0 ? 1 : groups - c.group;
    c.columns = ck_between(s, 0, 1) ? 16 : 8;
    c.width = c.columns + 8 * (size_t)ck_between(s, 0, 3);
    c.first = (size_t)ck_between(s, 0, (int32_t)(c.depth - 1) / 8) * 8;
    c.cut = (size_t)ck_between(s, 1, (int32_t)blocks);
    make_rows(s, &c, (size_t)ck_between(s, 1, 20));
    c.ldy = c.groups * QK_NBITS_GROUP + (size_t)ck_between(s, 0, 5);
    const size_t lines = which == 0 ? c.depth : which == 1 ? 1 : c.rows.rows;
    const size_t across = which == 0 ? c.columns : c.groups * QK_NBITS_GROUP;
    const size_t line = which == 0 ? c.width : which == 1 ? across : c.ldy;
    const size_t bytes = ((lines - 1) * line + across) * sizeof(float);
    float *wanted = ck_output(s, bytes), *actual = ck_output(s, bytes);
    for (size_t r = which == 0 ? c.first : 0; r < lines; r++)
        for (size_t j = 0; j < across; j++) {
            float *y = &wanted[r * line + j];
            *y = which == 0 ? weight(&c, r, c.group * QK_NBITS_GROUP + j)
                            : expected(&c, r, c.group * QK_NBITS_GROUP + j, which == 2 ? *y : 0);
        }
    snprintf(shape, sizeof(shape), "block %zu, %zu blocks, depth %zu, %zu columns, %zu rows%s%s",
             block, blocks, c.depth, across, c.rows.rows, zeros ? ", zero points" : "",
             wide ? ", 8 bits" : "");
    c.k = s->t->nbits;
    c.y = actual;
    if (which == 1 && !c.k->row)
        return;
    call(&c);
    ck_same(s, wanted, actual, bytes, shape);
}

static void bench_one(ck_state *s, int which, size_t rows, size_t block, bool bytes) {
    nbits_case c = {.which = which, .depth = 2048, .groups = 128, .columns = 16, .width = 16};
    char shape[64];
    make_weights(s, &c, c.groups, block, c.depth / block, false, bytes);
    c.a = ck_floats(s, c.depth, -2, 2);
    make_rows(s, &c, rows);
    c.ldy = c.groups * QK_NBITS_GROUP;
    c.k = s->t->nbits;
    c.cut = c.w.blocks;
    c.y = ck_output(s, (which == 0 ? c.depth * 16 : rows * c.ldy) * sizeof(float));
    const double weights = (double)c.depth * (double)(which == 0 ? 16 : c.ldy);
    snprintf(shape, sizeof(shape), "%zu rows, 2048 x %d, block %zu%s", rows, which == 0 ? 16 : 2048,
             block, bytes ? ", 8 bits" : "");
    if (which != 1 || c.k->row)
        ck_time(s, shape, which == 0 ? 0 : weights * (double)rows, bytes ? weights : weights / 2,
                call, &c);
}

#define CASE(name, which)                                                                          \
    static void check_##name(ck_state *s) {                                                        \
        check(s, which);                                                                           \
    }

CASE(unpack, 0)
CASE(row, 1)
CASE(rounded, 2)

static void bench_unpack(ck_state *s) {
    bench_one(s, 0, 1, 32, false);
}

static void bench_row(ck_state *s) {
    bench_one(s, 1, 1, 32, false);
}

static void bench_rounded(ck_state *s) {
    bench_one(s, 2, 1, 32, false);
    bench_one(s, 2, 128, 32, false);
    bench_one(s, 2, 128, 128, false);
    bench_one(s, 2, 1, 32, true);
    bench_one(s, 2, 128, 32, true);
}

const ck_case ck_cases_nbits[] = {
    {"nbits unpack", check_unpack, bench_unpack},
    {"nbits row", check_row, bench_row},
    {"nbits rounded", check_rounded, bench_rounded},
};
const size_t ck_cases_nbits_count = QS_COUNT(ck_cases_nbits);
