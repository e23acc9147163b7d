/* SPDX-License-Identifier: MIT */
/* Inputs of ConvIntegerScaled and MatMulIntegerScaled that passes add. */
#ifndef QS_SCALED_H
#define QS_SCALED_H

/* The tensor added to the results (op/finish.h). */
#define QS_SCALED_OTHER 7
/*
 * Input of ConvIntegerScaled with "into" (op/window.h): the tensor that it writes its channels
 * into.
 */
#define QS_SCALED_OVER 8

#endif
