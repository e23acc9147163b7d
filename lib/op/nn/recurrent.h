/* SPDX-License-Identifier: MIT */
/*
 * Recurrent layers: LSTM, GRU, RNN.
 *
 * A gate is (h R^T) + (x W^T + (Wb + Rb)): two sums over k in order, each step a fused
 * multiply-add, then their sum. With linear_before_reset, GRU's last gate adds Rb separately.
 * Peepholes are added next, then come the clip and the activation.
 */
#ifndef QS_RECURRENT_H
#define QS_RECURRENT_H

#include "kernel/f32.h"
#include "kernel/i8.h"
#include "op/elementwise/curve.h"
#include "op/int8/qvalue.h"

typedef enum qs_cell { QS_RNN, QS_GRU, QS_LSTM } qs_cell;

/* An activation of doubles. */
typedef struct qs_curve64 {
    double (*fn)(const double *param, double v);
    double param[2]; /* alpha, beta */
} qs_curve64;

typedef struct qs_recurrent {
    qs_cell cell;
    int32_t gates, directions;
    bool reverse, batch_first, before_reset; /* reverse: the only direction is backwards */
    bool coupled;                            /* LSTM: the forget gate is 1 - the input gate */
    /*
     * Recurrent weights are in 8 bits, and the input is the inputs' part of all gates: the internal
     * LSTM. They are uint8; scales and zero points are given per column, else per direction.
     */
    bool integer, is_unsigned, scales, zero_points;
    float clip;                         /* infinite: none */
    int64_t time, batch, input, hidden; /* -1: unknown */
    qs_curve act[2][3];                 /* by direction: f, g, h */
    qs_curve64 act64[2][3];             /* the same on doubles */
} qs_recurrent;

/* y = curve(clip(x)); x is clipped, too. */
void qs_activate(const qk_ew *kernels, const qs_curve *act, float clip, float *restrict x,
                 float *restrict y, size_t n);

/* Reads the attribute `activations` and its parameters, or the operator's defaults. */
int qs_activations_read(const qs_infer *x, qs_recurrent *r);

/* Packs constant weights; p->result stays NULL if they are not constant. */
int qs_recurrent_pack(qs_pack *p, const qs_recurrent *r);
int qs_recurrent_lower(qs_lower *l, const qs_recurrent *r);
/* The same for doubles, whose weights are not packed (recurrent64.c). */
int qs_recurrent_lower64(qs_lower *l, const qs_recurrent *r);

/* ---- products of states by weights of 8 bits (recurrent8.c) ---- */

#define QS_STATES8 32768 /* at most: 255 * 255 times as much is below 2^31 */

typedef struct qs_states8 {
    const qk_i8 *t;
    const qk_ew *ew;
    const struct qk_u8 *u8;
    qk_form_i8 form;
    int32_t k, n;           /* of a state, of all gates */
    size_t floats, scratch; /* of a direction's packed weights; of scratch memory */
} qs_states8;

/* Weights, scales, and zero points or NULL, as the node has them. */
typedef struct qs_weights8 {
    const int8_t *w;
    const float *scale;
    const uint8_t *zp;
} qs_weights8;

/* Of a direction, in the order of its packed weights: sums of columns, zero points, scales. */
typedef struct qs_columns8 {
    const int32_t *sums, *zps;
    const float *scales;
} qs_columns8;

bool qs_states8_make(const qsim_ctx *ctx, const qs_recurrent *r, qs_states8 *f);
/* Packs direction d. */
void qs_states8_pack(const qs_states8 *f, const qs_recurrent *r, const qs_weights8 *w, int32_t d,
                     float *to);
/*
 * For a state that was quantized with q, writes to `to` the start values of the sums of n columns,
 * and after these the columns' scales. `rest` is the sum of the state's bytes minus their zero
 * points. (In recurrent.c, which is compiled for speed.)
 */
void qs_states8_columns(const qs_columns8 *from, size_t n, qs_q8 q, int32_t rest, float *to);
/* out = h times the weights of a direction, unless the run was stopped; none: floats of -0. */
void qs_states8_multiply(const qsim_ctx *ctx, const qs_states8 *f, const float *packed,
                         const float *h, const float *none, float *scratch, float *out);

/* Checks the samples' lengths, known only during execution; lengths NULL: there are none. */
bool qs_recurrent_lengths(const qs_recurrent *r, const int32_t *lengths, const qs_frame *f);

#endif
