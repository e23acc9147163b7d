/* SPDX-License-Identifier: MIT */
/* Transposes of every kind of step, at 1 and 3 threads, against a plain loop over all indices. */
#include "net.h"

#define MOST 60000

static const int32_t types[] = {QSIM_UINT8, QSIM_INT16, QSIM_FLOAT, QSIM_INT64};

/* y[perm of the index] = x[index], element by element. */
static void plain(const uint8_t *x, uint8_t *y, int32_t rank, const int64_t *dims,
                  const int64_t *perm, size_t element) {
    size_t step[QSIM_MAX_RANK], all = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        step[i] = all;
        all *= (size_t)dims[i];
    }
    for (size_t o = 0; o < all; o++) {
        size_t rest = o, at = 0;
        for (int32_t i = rank - 1; i >= 0; i--) {
            const size_t d = (size_t)dims[perm[i]];
            at += rest % d * step[perm[i]];
            rest /= d;
        }
        memcpy(y + o * element, x + at * element, element);
    }
}

static void one(qsim_ctx *ctx, int32_t type, int32_t rank, const int64_t *dims,
                const int64_t *perm) {
    static _Alignas(8) uint8_t x[MOST * 8 + 64], y[MOST * 8];
    static uint8_t expected[MOST * 8];
    net n;
    size_t elements = 1, bytes = 0;
    CHECK_INT(qsim_tensor_size(type, rank, dims, &elements, &bytes), 0);
    CHECK(elements <= MOST);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (uint8_t)(i * 31 + i / 251);
    plain(x, expected, rank, dims, perm, bytes / (elements + !elements));
    net_begin(&n, ctx, 13);
    net_input(&n, "x", type, rank, dims);
    net_ints(&n, net_node(&n, "", "Transpose", "x", "y"), "perm", rank, perm);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qsim_tensor in = {type, rank, dims, x, bytes}, out = {.data = y, .bytes = sizeof(y)};
    memset(y, 0x5a, sizeof(y));
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &out, 1));
    CHECK_INT(out.bytes, bytes);
    CHECK(memcmp(y, expected, bytes) == 0);
    net_free(&n);
}

static void all(qsim_ctx *ctx) {
    for (size_t t = 0; t < QS_COUNT(types); t++) {
        const int32_t e = types[t];
        /* an image to channels last and back; more than one block of rows */
        one(ctx, e, 4, (int64_t[]){1, 3, 130, 131}, (int64_t[]){0, 2, 3, 1});
        one(ctx, e, 4, (int64_t[]){2, 37, 17, 41}, (int64_t[]){0, 2, 3, 1});
        one(ctx, e, 4, (int64_t[]){2, 17, 41, 37}, (int64_t[]){0, 3, 1, 2});
        /* heads of attention, and their keys */
        for (int64_t d = 1; d <= 128; d = d < 3 ? d + 1 : d * 2 - d % 2)
            one(ctx, e, 4, (int64_t[]){1, 11, 5, d}, (int64_t[]){0, 2, 1, 3});
        one(ctx, e, 4, (int64_t[]){1, 33, 3, 32}, (int64_t[]){0, 2, 3, 1});
        /* a channel shuffle; small tiles of other kinds */
        one(ctx, e, 5, (int64_t[]){1, 13, 9, 2, 29}, (int64_t[]){0, 1, 2, 4, 3});
        one(ctx, e, 5, (int64_t[]){1, 13, 9, 5, 7}, (int64_t[]){0, 1, 2, 4, 3});
        one(ctx, e, 4, (int64_t[]){6, 4, 20, 9}, (int64_t[]){1, 0, 3, 2});
        /* depth to space; all axes apart */
        one(ctx, e, 6, (int64_t[]){1, 3, 3, 4, 9, 10}, (int64_t[]){0, 3, 4, 1, 5, 2});
        one(ctx, e, 5, (int64_t[]){3, 5, 7, 4, 6}, (int64_t[]){4, 2, 0, 3, 1});
        one(ctx, e, 2, (int64_t[]){1, 7}, (int64_t[]){1, 0});
        /* no elements, whichever axis is empty */
        for (int empty = 0; empty < 4; empty++) {
            int64_t dims[] = {3, 5, 4, 2};
            dims[empty] = 0;
            one(ctx, e, 4, dims, (int64_t[]){0, 2, 3, 1});
            one(ctx, e, 4, dims, (int64_t[]){1, 0, 2, 3});
            one(ctx, e, 4, dims, (int64_t[]){3, 2, 1, 0});
        }
    }
}

static int64_t product(const int64_t *dims, int32_t rank) {
    int64_t all = 1;
    for (int32_t i = 0; i < rank; i++)
        all *= dims[i];
    return all;
}

/* Axes of any order and size: some have one element, one may have hundreds. */
static void some(qsim_ctx *ctx, uint64_t *seed) {
    const int32_t rank = 2 + (int32_t)(test_random(seed) % 5);
    int64_t dims[QSIM_MAX_RANK], perm[QSIM_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) {
        const uint64_t kind = test_random(seed) % 8, r = test_random(seed) >> 8;
        dims[i] = 1 + (int64_t)(kind == 0 ? 0 : r % (kind == 1 ? 70 : kind == 2 ? 20 : 6));
        perm[i] = i;
    }
    if (test_random(seed) % 4 == 0 && product(dims, rank) < MOST / 1100)
        dims[test_random(seed) % (uint64_t)rank] = 900 + (int64_t)(test_random(seed) % 200);
    for (int32_t i = 0; i < rank; i++) {
        const int32_t k = i + (int32_t)(test_random(seed) % (uint64_t)(rank - i));
        const int64_t moved = perm[i];
        perm[i] = perm[k];
        perm[k] = moved;
    }
    while (product(dims, rank) > MOST)
        for (int32_t i = 0; i < rank; i++)
            dims[i] = (dims[i] + 1) / 2;
    one(ctx, types[test_random(seed) % QS_COUNT(types)], rank, dims, perm);
}

static void on(int32_t isa, int32_t threads, bool listed) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads, .isa = isa};
    qsim_ctx *ctx = NULL;
    uint64_t seed = (uint64_t)(10 * isa + threads + 1);
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    if (listed)
        all(ctx);
    for (int i = 0; i < 400; i++)
        some(ctx, &seed);
    qsim_ctx_free(ctx);
}

int main(void) {
    on(QSIM_ISA_AUTO, 1, true);
    on(QSIM_ISA_AUTO, 3, true);
    for (int32_t isa = QSIM_ISA_C; isa < QS_ISA_COUNT; isa++)
        if (qsim_isa_available(isa))
            on(isa, 1, false);
    return test_done();
}
