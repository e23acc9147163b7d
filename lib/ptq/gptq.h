/* SPDX-License-Identifier: MIT */
/*
 * Rounds weights so that the errors of some compensate those of others (GPTQ: Frantar et al.,
 * "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2023).
 *
 * For one row of weights w and its rounded form q it makes (w - q) H (w - q)^T small, where H is
 * the second moment (or the covariance) of the row's inputs. With H = R R^T, R upper triangular,
 * that is the squared length of (w - q) R; weight after weight is rounded so that its component of
 * that vector, which depends on earlier errors only, is least.
 */
#ifndef QS_GPTQ_H
#define QS_GPTQ_H

#include "base/base.h"

/* The factors of H. */
typedef struct qs_gptq {
    qsim_ctx *ctx;
    size_t n;      /* weights of a row */
    double *root;  /* row j: R[i][j] / R[j][j] for i < j, in order of rounding */
    size_t *order; /* weights in order of rounding: falling diagonal of H */
} qs_gptq;

/* The integers that represent weights: w = (q - zero) * scale. */
typedef struct qs_grid {
    const float *scale;  /* of channel c and weight k: [c * blocks + k / block] */
    const int32_t *zero; /* likewise; NULL: 0 */
    size_t blocks, block;
    int32_t low, high;
    size_t taps; /* 0, or as for qs_pair_of: no two weights of one sign exceed QS_PAIR_MOST */
} qs_grid;

/* The weights: weight k of channel c is at c * stride + k * step. */
typedef struct qs_rows {
    const float *w;
    size_t channels, depth, stride, step;
} qs_rows;

/*
 * Factors H (n x n, symmetric, overwritten), with 1 % of its mean diagonal added to the diagonal.
 * The same bits everywhere. Errors: NOMEM, VALUE (H is not positive, or not finite).
 */
int qs_gptq_create(qsim_ctx *ctx, double *h, size_t n, qs_gptq *g);
void qs_gptq_free(qs_gptq *g);

/* Size of qs_gptq_round's scratch, in doubles. */
size_t qs_gptq_scratch(const qs_gptq *g);
/*
 * Rounds all channels; codes are in the order of the weights, one byte each, as int8 or, if low is
 * 0, uint8; with grid->taps they are 0 before. NULL for `g`: each to the nearest.
 */
void qs_gptq_round(const qs_gptq *g, const qs_rows *rows, const qs_grid *grid, void *codes,
                   double *scratch);

/* Where scale and zero of a weight are. */
static inline size_t qs_grid_at(const qs_grid *g, size_t channel, size_t k) {
    return channel * g->blocks + k / g->block;
}

/* Weights of a channel or block for which a scale is tried. */
#define QS_TRIED 256
typedef struct qs_tried {
    float w[QS_TRIED], weight[QS_TRIED]; /* 0 after the last */
    float low, high;                     /* codes less the zero point */
} qs_tried;

/* Sum of the weighted squared errors of n weights that are rounded to the nearest code. */
double qs_tried_error(const qs_tried *p, size_t n, float scale);

#endif
