/* SPDX-License-Identifier: MIT */
#include "odd_scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "name_index.h"
#include "quantized.h"

typedef struct search {
    tensor_names tensors;
    qsim_node_info *nodes;
    bool *seen; /* by node: it was checked for one of those that read it, which may be many */
    name_index makers;
    odd_scale_fn note;
    void *user;
} search;

static void collect(const qsim_model *m, search *s) {
    const int32_t nodes = qsim_model_node_count(m);
    const size_t count = nodes > 0 ? (size_t)nodes : 0;
    tensor_names_read(m, &s->tensors);
    name_index_makers(m, &s->makers);
    s->nodes = tool_alloc(count, sizeof(*s->nodes));
    s->seen = tool_alloc(count, sizeof(*s->seen));
    for (int32_t i = 0; i < nodes; i++) {
        s->nodes[i].struct_size = sizeof(s->nodes[i]);
        if (qsim_model_node(m, i, &s->nodes[i]) != QSIM_OK)
            s->nodes[i].output_count = 0;
    }
}

/* Input `index` of a node, if it is a constant of this type; NULL: it is not. */
static const qsim_value_info *constant(const search *s, const qsim_node_info *n, int32_t index,
                                       int32_t dtype) {
    const qsim_value_info *v =
        index < n->input_count ? tensor_named(&s->tensors, n->inputs[index]) : NULL;
    return v && v->data && v->dtype == dtype ? v : NULL;
}

/* The node whose output 0 is input `index`, of this operator if it is not NULL; NULL: none. */
static const qsim_node_info *maker(const search *s, const qsim_node_info *n, int32_t index,
                                   const char *op_type) {
    const int32_t at = index < n->input_count ? name_index_find(&s->makers, n->inputs[index]) : -1;
    const qsim_node_info *found = at >= 0 ? &s->nodes[at] : NULL;
    return found && strcmp(found->outputs[0], n->inputs[index]) == 0 &&
                   (!op_type || strcmp(found->op_type, op_type) == 0)
               ? found
               : NULL;
}

/* Whether this is the first node that asks for what `maker` found. */
static bool is_first(const search *s, const qsim_node_info *found) {
    bool *seen = &s->seen[found - s->nodes];
    const bool first = !*seen;
    *seen = true;
    return first;
}

/* Scales in input `at` of a node: their number, 0 if they are not constant. */
static size_t scale_count(const search *s, const qsim_node_info *n, int32_t at) {
    const qsim_value_info *v = constant(s, n, at, QSIM_FLOAT);
    return v ? v->bytes / sizeof(float) : 0;
}

static double scale_at(const search *s, const qsim_node_info *n, int32_t at, size_t i) {
    float scale;
    const char *data = constant(s, n, at, QSIM_FLOAT)->data;
    memcpy(&scale, data + (scale_count(s, n, at) > 1 ? i : 0) * sizeof(scale), sizeof(scale));
    return (double)scale;
}

/* Zero points of 8 bits in input `at`, all equal; none is 0. False: others, or no constants. */
static bool zero_point(const search *s, const qsim_node_info *n, int32_t at, int32_t *zero) {
    const bool given = n->input_count > at && n->inputs[at][0];
    const qsim_value_info *u8 = constant(s, n, at, QSIM_UINT8), *i8 = constant(s, n, at, QSIM_INT8);
    const qsim_value_info *v = u8 ? u8 : i8;
    *zero = 0;
    if (!v || v->bytes == 0)
        return !given;
    const uint8_t *codes = v->data;
    for (size_t i = 1; i < v->bytes; i++)
        if (codes[i] != codes[0])
            return false;
    *zero = u8 ? codes[0] : (int8_t)codes[0];
    return true;
}

/* ---- operators on quantized tensors ---- */

static void say(const search *s, const qsim_node_info *n, const char *what) {
    text line = {0};
    text_printf(&line, "node '%.100s' (%s): %s", n->name[0] ? n->name : n->outputs[0], n->op_type,
                what);
    s->note(s->user, line.data);
    text_free(&line);
}

/* Sums of integers have the scale of input times weight; the bias is added to them. */
static void check_bias(const search *s, const qsim_node_info *n) {
    const qsim_node_info *x = maker(s, n, 0, "DequantizeLinear"),
                         *w = maker(s, n, 1, "DequantizeLinear"),
                         *b = maker(s, n, 2, "DequantizeLinear");
    if (!x || !w || !b || !constant(s, b, 0, QSIM_INT32) || !is_first(s, b))
        return;
    const size_t of_w = scale_count(s, w, 1), of_b = scale_count(s, b, 1),
                 most = of_w > of_b ? of_w : of_b;
    if (scale_count(s, x, 1) != 1 || of_w == 0 || of_b == 0 ||
        (of_w > 1 && of_b > 1 && of_w != of_b))
        return;
    for (size_t i = 0; i < most; i++) {
        const double sum = scale_at(s, x, 1, 0) * scale_at(s, w, 1, i), bias = scale_at(s, b, 1, i);
        char what[160];
        if (fabs(bias - sum) <= 0.01 * sum) /* else it moves the bias by more than 1 % */
            continue;
        snprintf(what, sizeof(what),
                 "its bias has scale %.6g in channel %zu, input times weight %.6g: runtimes that "
                 "add it to integer sums take the latter",
                 bias, i, sum);
        say(s, n, what);
        return;
    }
}

/* Finds scale and zero point of a node's output 0; false: they are none of its inputs. */
static bool of_output(const search *s, const qsim_node_info *n, quantized *q) {
    int32_t from = 0;
    while (quantized_next(&s->tensors, n, &from, q))
        if (q->at < 0)
            return true;
    return false;
}

/* A tensor is to be read as it was quantized. */
static void check_pair(const search *s, const qsim_node_info *n, const quantized *read) {
    const qsim_node_info *writer = read->at < 0 ? NULL : maker(s, n, read->at, NULL);
    quantized y;
    int32_t there, here;
    char what[160];
    if (!writer || !of_output(s, writer, &y) || scale_count(s, writer, y.scale) != 1 ||
        scale_count(s, n, read->scale) != 1 || !zero_point(s, writer, y.zero, &there) ||
        !zero_point(s, n, read->zero, &here) ||
        (scale_at(s, writer, y.scale, 0) == scale_at(s, n, read->scale, 0) && there == here))
        return;
    snprintf(what, sizeof(what),
             "scale %.6g and zero point %d, but what it reads was quantized with %.6g and %d",
             scale_at(s, n, read->scale, 0), here, scale_at(s, writer, y.scale, 0), there);
    say(s, n, what);
}

/*
 * A scale that is too large leaves most codes unused. `holder` reads the 8-bit weights as input
 * `at`, their zero points as input `zeros`.
 */
static void check_codes(const search *s, const qsim_node_info *n, const qsim_node_info *holder,
                        int32_t at, int32_t zeros) {
    enum { FEW = 64, LARGEST = 7 }; /* smaller tensors tell nothing; a sixteenth of 128, less 1 */
    int32_t zero, largest = 0;
    char what[160];
    if (!zero_point(s, holder, zeros, &zero))
        return;
    const qsim_value_info *u8 = constant(s, holder, at, QSIM_UINT8),
                          *i8 = constant(s, holder, at, QSIM_INT8);
    const qsim_value_info *codes = u8 ? u8 : i8;
    for (size_t i = 0; codes && i < codes->bytes; i++) {
        const int32_t code = u8 ? ((const uint8_t *)u8->data)[i] : ((const int8_t *)i8->data)[i];
        largest = abs(code - zero) > largest ? abs(code - zero) : largest;
    }
    if (!codes || codes->bytes < FEW || largest == 0 || largest > LARGEST)
        return;
    snprintf(what, sizeof(what),
             "its 8-bit weights are at most %d codes from the zero point: their scale is %d times "
             "larger than needed",
             largest, 127 / largest);
    say(s, n, what);
}

/* Weights of a layer: input 1 is dequantized, or the node reads them as they are. */
static void check_weights(const search *s, const qsim_node_info *n) {
    const qsim_node_info *w = maker(s, n, 1, "DequantizeLinear");
    int32_t from = 0;
    quantized q;
    bool scaled = false;
    while (quantized_next(&s->tensors, n, &from, &q)) {
        scaled = true;
        if (q.at > 0)
            check_codes(s, n, n, q.at, q.zero);
    }
    if (n->macs == 0)
        return;
    if (w && is_first(s, w))
        check_codes(s, n, w, 0, 2);
    else if (!w && !scaled) /* ConvInteger: two tensors, then their zero points */
        check_codes(s, n, n, 1, 3);
}

void odd_scales_find(const qsim_model *m, odd_scale_fn note, void *user) {
    search s = {.note = note, .user = user};
    collect(m, &s);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        const qsim_node_info *n = &s.nodes[i];
        quantized q;
        int32_t from = 0;
        if (n->output_count < 1)
            continue;
        while (quantized_next(&s.tensors, n, &from, &q))
            check_pair(&s, n, &q);
        check_bias(&s, n);
        check_weights(&s, n);
    }
    tensor_names_free(&s.tensors);
    name_index_free(&s.makers);
    free(s.nodes);
    free(s.seen);
}
