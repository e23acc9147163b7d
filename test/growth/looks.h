/* SPDX-License-Identifier: MIT */
/* Steps over millions of elements, for counting how much they do between two looks for a stop. */
#ifndef GROWTH_LOOKS_H
#define GROWTH_LOOKS_H

#include <stdint.h>

typedef struct look_case {
    const char *op;
    /* Words: TYPE of what a run is given, TYPE<N with numbers below N, TYPE=1,2 a constant, "-". */
    const char *inputs;
    const char *attributes; /* words: axis=1 alpha=0.5 pads=[1,1] mode='max'; NULL: none */
    const char *domain;     /* NULL: ONNX's own */
    int outputs, opset;     /* 0: one output, opset 21 */
} look_case;

extern const look_case look_cases[];
extern const int look_case_count;

#endif
