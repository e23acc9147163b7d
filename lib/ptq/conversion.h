/* SPDX-License-Identifier: MIT */
/* Conversion of quantized models, between its files. */
#ifndef QS_CONVERSION_H
#define QS_CONVERSION_H

#include "pass/pass.h"

/* Fails with UNSUPPORTED: the node cannot be converted, because of `why`. */
int qs_convert_refuse(const qs_pass *p, qs_id node, const char *why);
/* Whether both are the same value, or equal constants. */
bool qs_convert_same(const qs_graph *g, qs_id a, qs_id b);
/* `name` without its ending, or all of it; NULL: out of memory. */
const char *qs_convert_cut(qs_graph *g, const char *name, const char *ending);

/* Products of dynamic quantization become those of floats (conversion_dynamic.c). */
int qs_convert_dynamic(qs_pass *p);
/*
 * Of a graph whose quantized operators are pairs (conversion.c): leaves out those of activations,
 * and dequantizes constants (conversion_floats.c).
 */
int qs_convert_floats(qs_pass *p);

#endif
