/* SPDX-License-Identifier: MIT */
#include "base/slices.h"

size_t qs_slice_count(const qsim_ctx *ctx, size_t items, double ns) {
    const double worth = ns / (ctx->parallel ? QS_LENT_SLICE_NS : QS_SLICE_NS);
    const size_t most = worth < 1.0            ? 1
                        : worth < ctx->threads ? qs_whole(worth)
                                               : (size_t)ctx->threads;
    return items > most ? most : items ? items : 1;
}

size_t qs_slice_begin(size_t items, size_t n, size_t i) {
    return items / n * i + (items % n < i ? items % n : i);
}
