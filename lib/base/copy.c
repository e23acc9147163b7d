/* SPDX-License-Identifier: MIT */
/*
 * Copies and clears what may be large, or short and frequent: compiled for speed, since gcc copies
 * by rep movsb for size, which takes longer to begin than a row of some hundred bytes has.
 */
#include "base/ctx.h"

/* Copies x, or writes zeros if x is NULL, and checks for a stop between two pieces. */
static int in_pieces(const qsim_ctx *ctx, uint8_t *y, const uint8_t *x, size_t bytes) {
    int code = QSIM_OK;
    for (size_t n; bytes && !code; bytes -= n, y += n) {
        n = bytes < QS_COPY_PIECE ? bytes : QS_COPY_PIECE;
        if (x)
            memcpy(y, x, n), x += n;
        else
            memset(y, 0, n);
        if (n < bytes && ctx)
            code = qs_stop_code(ctx);
    }
    return code;
}

int qs_copy(const qsim_ctx *ctx, void *to, const void *from, size_t bytes) {
    return in_pieces(ctx, to, from, bytes);
}

int qs_clear(const qsim_ctx *ctx, void *to, size_t bytes) {
    return in_pieces(ctx, to, NULL, bytes);
}
