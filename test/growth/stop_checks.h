/* SPDX-License-Identifier: MIT */
/* Steps over millions of elements, for counting how much they do between two checks for a stop. */
#ifndef GROWTH_STOP_CHECKS_H
#define GROWTH_STOP_CHECKS_H

#include <stdint.h>

typedef struct stop_case {
    const char *op;
    /* Words: TYPE of what a run is given, TYPE<N with numbers below N, TYPE=1,2 a constant, TYPE! a
     * random one, "-". */
    const char *inputs;
    const char *attributes; /* words: axis=1 alpha=0.5 pads=[1,1] mode='max'; NULL: none */
    const char *domain;     /* NULL: ONNX's own */
    int outputs, opset;     /* 0: one output, opset 21 */
} stop_case;

extern const stop_case stop_cases[];
extern const int stop_case_count;

#endif
