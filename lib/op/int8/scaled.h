/* SPDX-License-Identifier: MIT */
/* Inputs of ConvIntegerScaled and MatMulIntegerScaled that passes add. */
#ifndef QS_SCALED_H
#define QS_SCALED_H

/* The tensor added to the results (op/nn/finish.h). */
#define QS_SCALED_OTHER 7
/* Input of ConvIntegerScaled with "into" (op/nn/window.h): the tensor that its channels go into. */
#define QS_SCALED_OVER 8

#endif
