/* SPDX-License-Identifier: MIT */
/*
 * Tells analyzers, which see one file at a time, that qs_fail and functions like it return the code
 * that they are given, which is not 0.
 */
#include "exec/flow.h"
#include "graph/graph.h"
#include "onnx/reader.h"
#include "pass/pass.h"

#define qs_fail(error, code, ...)      (qs_fail(error, code, __VA_ARGS__), (code))
#define qs_infer_fail(x, code, ...)    (qs_infer_fail(x, code, __VA_ARGS__), (code))
#define qs_node_fail(error, code, ...) (qs_node_fail(error, code, __VA_ARGS__), (code))
#define qs_flow_fail(c, code, ...)     (qs_flow_fail(c, code, __VA_ARGS__), (code))
#define qs_read_fail(r, code, ...)     (qs_read_fail(r, code, __VA_ARGS__), (code))
#define qs_pass_no_memory(p)           (qs_pass_no_memory(p), QSIM_E_NOMEM)
#define qs_read_nomem(r)               (qs_read_nomem(r), QSIM_E_NOMEM)
