/* SPDX-License-Identifier: MIT */
/* Functions shared by several operators: types, axes, broadcasting, constant inputs, ranges. */
#ifndef QS_RULES_H
#define QS_RULES_H

#include "base/ctx.h"
#include "op/op.h"
#include "op/step.h"

#define QS_T_SIGNED   (QS_T(QSIM_INT8) | QS_T(QSIM_INT16) | QS_T(QSIM_INT32) | QS_T(QSIM_INT64))
#define QS_T_UNSIGNED (QS_T(QSIM_UINT8) | QS_T(QSIM_UINT16) | QS_T(QSIM_UINT32) | QS_T(QSIM_UINT64))
#define QS_T_INT      (QS_T_SIGNED | QS_T_UNSIGNED)
#define QS_T_REAL     (QS_T_FLOAT | QS_T(QSIM_DOUBLE))
#define QS_T_ARITH    (QS_T_REAL | QS_T_INT)
#define QS_T_FLOAT8                                                                                \
    (QS_T(QSIM_FLOAT8E4M3FN) | QS_T(QSIM_FLOAT8E4M3FNUZ) | QS_T(QSIM_FLOAT8E5M2) |                 \
     QS_T(QSIM_FLOAT8E5M2FNUZ))
/* Types of movement operators: all that occupy whole bytes. */
#define QS_T_BYTES                                                                                 \
    (QS_T_ARITH | QS_T(QSIM_BOOL) | QS_T(QSIM_FLOAT16) | QS_T(QSIM_BFLOAT16) | QS_T_FLOAT8 |       \
     QS_T(QSIM_FLOAT8E8M0))
/* Types of which a byte holds several. */
#define QS_T_PACKED                                                                                \
    (QS_T(QSIM_UINT4) | QS_T(QSIM_INT4) | QS_T(QSIM_UINT2) | QS_T(QSIM_INT2) |                     \
     QS_T(QSIM_FLOAT4E2M1))
#define QS_T_ANY (QS_T_BYTES | QS_T_PACKED)

/* Entries of a table by numeric type. */
#define QS_TYPES 16
_Static_assert(QSIM_FLOAT < QS_TYPES && QSIM_DOUBLE < QS_TYPES && QSIM_UINT64 < QS_TYPES,
               "numbers' types are among the first");

/* Newest opset of ai.onnx whose operators are known. */
#define QS_OPSET_NEWEST 28
/* `since`, `until` of operators of domain "qsim". */
#define QS_ANY_VERSION 0, INT16_MAX

/* Bytes of one element of a whole-byte type; 0 for packed and unknown ones. */
size_t qs_dtype_bytes(int32_t dtype);

/* ---- inputs and outputs ---- */

/* Input `index`, even beyond the first 64; NULL if it is left out. */
const qs_value *qs_infer_in(const qs_infer *x, int32_t index);

/* Finds which of `words`, as qs_node_word has them, an attribute is; fails, and names them, if it
 * is none. */
int qs_infer_word(const qs_infer *x, const char *attr, const char *words, int32_t *which);
/* Hints at the list of all that is supported. */
void qs_hint_supported(qsim_error *error);
/* Sizes that exceed size_t; both return LIMIT. */
int qs_weights_too_large(qsim_error *error);
int qs_scratch_too_large(qsim_error *error);

/* Fails unless input `index` is left out, of unknown type or of one in `set`. */
int qs_infer_type(const qs_infer *x, int32_t index, uint32_t set);

/* Fails unless input `index` is left out, of unknown rank, or has `rank` axes. */
int qs_infer_rank(const qs_infer *x, int32_t index, int32_t rank);
/* The same for `least` axes or more. */
int qs_infer_least_rank(const qs_infer *x, int32_t index, int32_t least);

/* Fails if an axis of input `index` has another size; -1, or no such axis: unknown. */
int qs_infer_size(const qs_infer *x, int32_t index, int32_t axis, int64_t size);
/* Fails unless input `index` is left out, of unknown rank, or has these sizes; -1: unknown. */
int qs_infer_sizes(const qs_infer *x, int32_t index, int32_t rank, const int64_t *sizes);

/* Fails unless input `index` is left out, of unknown shape, or a list of `count`; -1: any. */
int qs_infer_list(const qs_infer *x, int32_t index, int64_t count);

/* Fails if input `index` has another number of elements; -1: unknown. */
int qs_infer_count(const qs_infer *x, int32_t index, int64_t count);

/* The same, but one element is right as well, and none is wrong. */
int qs_infer_each(const qs_infer *x, int32_t index, int64_t count);

/* Sets *size to `other` if it is -1, unknown; fails if both are known and differ. */
int qs_infer_match(const qs_infer *x, int64_t *size, int64_t other, const char *what);

/* Fails if the types of inputs a and b are known and differ. */
int qs_infer_same_type(const qs_infer *x, int32_t a, int32_t b);

/* Sets output `index`; checks that its size is not too large. rank -1: unknown. dims may alias. */
int qs_infer_out(const qs_infer *x, int32_t index, int32_t dtype, int32_t rank, const qs_dim *dims);

/* Gives output 0 a type and no shape. */
int qs_infer_unknown(const qs_infer *x, int32_t dtype);
/* Gives output `index` the type and shape of input `from`. */
int qs_infer_like(const qs_infer *x, int32_t index, int32_t from);

/*
 * Reads value `id`, a list of int64 or one number, as sizes. It is constant or computed from
 * shapes; an element that is not known is -1. `values` NULL: the graph's own. Returns the list's
 * length; -1: the length is not known, or too large (known_sizes.c).
 */
int32_t qs_known_sizes(const qs_graph *g, const qs_value *values, qs_id id,
                       qs_dim out[QSIM_MAX_RANK]);

/*
 * Sets *mask to the axes that a Slice cuts, bit i for axis i: the `count` given ones, or the first
 * ones if count is QS_ABSENT, as many as there are starts. If they are not known: all axes.
 */
int qs_known_cut(const qs_infer *x, const int64_t *axes, int32_t count, uint32_t *mask);

/* ---- sequences ---- */

/* Whether a value is a sequence of tensors. */
bool qs_value_is_sequence(const qs_graph *g, qs_id value);

/*
 * Sets *like to the type and shape of the tensors of a sequence. Sizes in which they differ are
 * unknown. `dims` is the memory for the shape (expand/op_sequence.c).
 */
int qs_sequence_tensors(const qs_infer *x, qs_id sequence, qs_value *like,
                        qs_dim dims[QSIM_MAX_RANK]);

/* Shape rule of nodes that make a sequence (op_sequence.c). */
int qs_sequence_infer(qs_infer *x);

/* The number of tensors of a sequence; -1: the file does not tell it. */
int32_t qs_sequence_count(const qs_infer *x, qs_id sequence);

/*
 * If each iteration of a Loop only appends a tensor to the sequence that is its state `state`: that
 * tensor's value in the body. QS_NONE: the body does something else with it (flow/op_flow.c).
 */
qs_id qs_loop_appended(const qs_node *loop, int32_t state);

/* ---- shapes ---- */

/* Checks an axis in [-rank, rank) and makes it >= 0. */
int qs_infer_axis(const qs_infer *x, int64_t axis, int32_t rank, int32_t *out);

/* Turns `count` distinct axes into a bit mask. */
int qs_infer_axes(const qs_infer *x, const int64_t *axes, int32_t count, int32_t rank,
                  uint32_t *mask);

/* Multidirectional broadcasting of values a and b; rank -1 if either is unknown. */
int qs_infer_broadcast(const qs_infer *x, const qs_value *a, const qs_value *b, int32_t *rank,
                       qs_dim dims[QSIM_MAX_RANK]);

/* Concatenation: adds input `index` to dims along the axis; the other sizes must agree. */
int qs_infer_join(const qs_infer *x, int32_t index, int32_t axis, int32_t rank, qs_dim *dims);

/* Product of the sizes in [from, to); -1 if one is unknown, or on overflow. */
int64_t qs_dims_product(const qs_dim *dims, int32_t from, int32_t to);

/* Whether a value has one element, as far as its sizes are known. */
bool qs_is_single(const qs_value *v);

/* Elements of a value whose sizes are all known. */
size_t qs_value_elements(const qs_value *v);

/* ---- constants and attributes ---- */

/*
 * Reads constant input `index` (int32 or int64, rank 0 or 1) into `out`. *count is set to -1 if the
 * input is left out, and to -2 if it is not constant.
 */
int qs_infer_ints(const qs_infer *x, int32_t index, int64_t *out, int32_t capacity, int32_t *count);
#define QS_ABSENT  (-1)
#define QS_DYNAMIC (-2)

/* Constant input `index`, an initializer or a Constant node's; dims may be missing. */
bool qs_infer_const(const qs_infer *x, int32_t index, qs_const *out);

/* Element i of a constant of floats, doubles, or integers other than unsigned ones above 8 bits. */
double qs_const_at(const qs_const *c, size_t i);

/* Checks a scale: float and, if constant, finite and above 0. */
int qs_infer_scale(const qs_infer *x, int32_t index);
/* The same, but a scale may be negative. */
int qs_infer_any_scale(const qs_infer *x, int32_t index);

/* qs_infer_ints for a list attribute. */
int qs_infer_attr_ints(const qs_infer *x, const char *name, int64_t *out, int32_t capacity,
                       int32_t *count);

/* Element `index` of list attribute `name`; 0 without it. */
int64_t qs_node_entry(const qs_node *n, const char *name, int32_t index);

/* Whether a string attribute equals `text`; `fallback` if it is absent. */
bool qs_node_string_is(const qs_node *n, const char *name, const char *text, bool fallback);

/* Which word of a list "first|second|..." a string attribute is, from 0; absent, it is the first.
 * -1: none of them. */
int32_t qs_node_word(const qs_node *n, const char *attr, const char *words);

/* The words of auto_pad; the last one, an empty text, is NOTSET, too. */
#define QS_AUTO_PADS "NOTSET|SAME_UPPER|SAME_LOWER|VALID|"
enum { QS_PAD_NOTSET, QS_PAD_UPPER, QS_PAD_LOWER, QS_PAD_VALID };

/*
 * `also` of Softmax, LogSoftmax, Hardmax: before version 13 all axes from "axis" on count as one.
 */
uint32_t qs_also_axis(const qs_graph *g, const qs_node *n);

/* QSIM_E_NOMEM, and says so. */
int qs_op_no_memory(qsim_error *error);

/* ---- upgrades to a later version ---- */

/* Adds a constant; a negative code: out of memory. */
qs_id qs_upgrade_const(qs_graph *g, const char *base, int32_t dtype, int32_t rank,
                       const int64_t *dims, const void *data);
/* Makes `input` that of the node in place of an attribute; a negative one is QSIM_E_NOMEM. */
int qs_upgrade_input(qs_graph *g, qs_id node, const char *attr, int32_t index, qs_id input,
                     qsim_error *error);
/* Turns a list attribute into a constant 1-D int64 input. */
int qs_upgrade_ints_to_input(qs_graph *g, qs_id node, const char *attr, int32_t index,
                             qsim_error *error);

/* Adds op_type(a, b) or, with QS_NONE, op_type(a); returns its result, or a negative code. */
qs_id qs_upgrade_add(qs_graph *g, const char *op_type, const char *base, qs_id a, qs_id b);
/* Puts an Unsqueeze of opset `to` by `count` axes before input 1. */
int qs_upgrade_unsqueeze(qs_graph *g, qs_id node, int32_t to, const int64_t *axes, int64_t count,
                         qsim_error *error);

/* ---- lowering ---- */

/* The shape rules' view of a node that is being lowered: every size is known. */
void qs_lower_infer(const qs_lower *l, qs_infer *x);

/*
 * Calls fn(arg, begin, end) over [0, n) in ranges of at least `grain`, on the context's threads if
 * there is more than one range. Ranges of a thousand and more begin at multiples of 64.
 */
#define QS_GRAIN      16384 /* elements of cheap work that take about QS_SLICE_NS */
#define QS_RANGE_UNIT 64
typedef void (*qs_range_fn)(const void *arg, size_t begin, size_t end);
void qs_ranges(const qsim_ctx *ctx, size_t n, size_t grain, qs_range_fn fn, const void *arg);

/*
 * The length of the next piece of a row of `n` elements, of which `at` are done; checks for a stop
 * before each piece but the first and a short last one: for (size_t at = 0, count; (count =
 * qs_piece(ctx, at, n)); at += count). 0: the row is done, or stopped.
 */
#define QS_PIECE ((size_t)1 << 16)
size_t qs_piece(const qsim_ctx *ctx, size_t at, size_t n);

/*
 * Lowers a node to the transpose of its first input, read as one of `rank` axes of these sizes; the
 * result's axis i is the input's axis perm[i].
 */
int qs_lower_transpose(qs_lower *l, const int64_t *sizes, const int32_t *perm, int32_t rank);

/* Copies rows of n bytes, x_step bytes apart in x and y_step in y. */
void qs_copy_rows(const void *x, ptrdiff_t x_step, void *y, ptrdiff_t y_step, size_t n,
                  size_t rows);
/* The same for megabytes; copies fewer if `ctx` is stopped. */
void qs_copy_many_rows(const qsim_ctx *ctx, const void *x, ptrdiff_t x_step, void *y,
                       ptrdiff_t y_step, size_t n, size_t rows);

#endif
