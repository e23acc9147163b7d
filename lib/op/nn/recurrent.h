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
#include "op/elementwise/curve.h"

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
    float clip;                              /* infinite: none */
    int64_t time, batch, input, hidden;      /* -1: unknown */
    qs_curve act[2][3];                      /* by direction: f, g, h */
    qs_curve64 act64[2][3];                  /* the same on doubles */
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

/* Checks the samples' lengths, known only during execution; lengths NULL: there are none. */
bool qs_recurrent_lengths(const qs_recurrent *r, const int32_t *lengths, const qs_frame *f);

#endif
