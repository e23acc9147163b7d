/* SPDX-License-Identifier: MIT */
#include "odd_scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

typedef struct made {
    const char *name; /* the first output of the node */
    qsim_node_info node;
    bool seen; /* was checked for one of the nodes that read it: a model may have many */
} made;

typedef struct search {
    qsim_value_info *constants; /* sorted by name, as the nodes */
    made *nodes;
    size_t constant_count, node_count;
    odd_scale_fn note;
    void *user;
} search;

static int by_value_name(const void *a, const void *b) {
    return strcmp(((const qsim_value_info *)a)->name, ((const qsim_value_info *)b)->name);
}

static int by_output(const void *a, const void *b) {
    return strcmp(((const made *)a)->name, ((const made *)b)->name);
}

static void collect(const qsim_model *m, search *s) {
    const int32_t values = qsim_model_value_count(m), nodes = qsim_model_node_count(m);
    s->constants = tool_alloc(values > 0 ? (size_t)values : 0, sizeof(*s->constants));
    s->nodes = tool_alloc(nodes > 0 ? (size_t)nodes : 0, sizeof(*s->nodes));
    for (int32_t i = 0; i < values; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(m, i, &v) == QSIM_OK && v.data)
            s->constants[s->constant_count++] = v;
    }
    for (int32_t i = 0; i < nodes; i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) == QSIM_OK && n.output_count > 0)
            s->nodes[s->node_count++] = (made){n.outputs[0], n, false};
    }
    if (s->constant_count > 0)
        qsort(s->constants, s->constant_count, sizeof(*s->constants), by_value_name);
    if (s->node_count > 0)
        qsort(s->nodes, s->node_count, sizeof(*s->nodes), by_output);
}

/* Input `index` of a node, if it is a constant of this type; NULL: it is not. */
static const qsim_value_info *constant(const search *s, const qsim_node_info *n, int32_t index,
                                       int32_t dtype) {
    if (index >= n->input_count || s->constant_count == 0)
        return NULL;
    const qsim_value_info key = {.name = n->inputs[index]};
    const qsim_value_info *v =
        bsearch(&key, s->constants, s->constant_count, sizeof(key), by_value_name);
    return v && v->dtype == dtype ? v : NULL;
}

/* The node of this operator that makes input `index`; NULL: another one does, or none. */
static const qsim_node_info *maker(const search *s, const qsim_node_info *n, int32_t index,
                                   const char *op_type) {
    if (index >= n->input_count)
        return NULL;
    const made key = {.name = n->inputs[index]};
    const made *hit = bsearch(&key, s->nodes, s->node_count, sizeof(key), by_output);
    return hit && strcmp(hit->node.op_type, op_type) == 0 ? &hit->node : NULL;
}

/* Whether this is the first node that asks for what `maker` found. */
static bool is_first(const search *s, const qsim_node_info *found) {
    const made key = {.name = found->outputs[0]};
    made *hit = bsearch(&key, s->nodes, s->node_count, sizeof(key), by_output);
    const bool first = !hit->seen;
    hit->seen = true;
    return first;
}

/* Scales of a QuantizeLinear or DequantizeLinear: their number, 0 if they are not constant. */
static size_t scale_count(const search *s, const qsim_node_info *n) {
    const qsim_value_info *v = constant(s, n, 1, QSIM_FLOAT);
    return v ? v->bytes / sizeof(float) : 0;
}

static double scale_at(const search *s, const qsim_node_info *n, size_t i) {
    float scale;
    const char *data = constant(s, n, 1, QSIM_FLOAT)->data;
    memcpy(&scale, data + (scale_count(s, n) > 1 ? i : 0) * sizeof(scale), sizeof(scale));
    return (double)scale;
}

/* The only zero point, of 8 bits; none is 0. False: there are several, or of another type. */
static bool zero_point(const search *s, const qsim_node_info *n, int32_t *zero) {
    const bool given = n->input_count > 2 && n->inputs[2][0];
    const qsim_value_info *u8 = constant(s, n, 2, QSIM_UINT8), *i8 = constant(s, n, 2, QSIM_INT8);
    *zero = 0;
    if (u8 && u8->bytes == 1)
        *zero = *(const uint8_t *)u8->data;
    else if (i8 && i8->bytes == 1)
        *zero = *(const int8_t *)i8->data;
    else
        return !given;
    return true;
}

static void say(const search *s, const qsim_node_info *n, const char *what) {
    text line = {0};
    text_printf(&line, "node '%.100s' (%s): %s", n->name[0] ? n->name : n->outputs[0], n->op_type,
                what);
    s->note(s->user, line.data);
    text_free(&line);
}

static bool is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* Sums of integers have the scale of input times weight; the bias is added to them. */
static void check_bias(const search *s, const qsim_node_info *n) {
    static const char *const layers[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    const qsim_node_info *x = maker(s, n, 0, "DequantizeLinear"),
                         *w = maker(s, n, 1, "DequantizeLinear"),
                         *b = maker(s, n, 2, "DequantizeLinear");
    if (!is_one_of(n->op_type, layers) || !x || !w || !b || !constant(s, b, 0, QSIM_INT32) ||
        !is_first(s, b))
        return;
    const size_t of_w = scale_count(s, w), of_b = scale_count(s, b),
                 most = of_w > of_b ? of_w : of_b;
    if (scale_count(s, x) != 1 || of_w == 0 || of_b == 0 || (of_w > 1 && of_b > 1 && of_w != of_b))
        return;
    for (size_t i = 0; i < most; i++) {
        const double sum = scale_at(s, x, 0) * scale_at(s, w, i), bias = scale_at(s, b, i);
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

static void check_pair(const search *s, const qsim_node_info *n) {
    const qsim_node_info *q = maker(s, n, 0, "QuantizeLinear");
    int32_t there, here;
    char what[160];
    if (!q || scale_count(s, q) != 1 || scale_count(s, n) != 1 || !zero_point(s, q, &there) ||
        !zero_point(s, n, &here) || (scale_at(s, q, 0) == scale_at(s, n, 0) && there == here))
        return;
    snprintf(what, sizeof(what),
             "scale %.6g and zero point %d, but what it reads was quantized with %.6g and %d",
             scale_at(s, n, 0), here, scale_at(s, q, 0), there);
    say(s, n, what);
}

/* A scale that is too large leaves most codes unused. */
static void check_codes(const search *s, const qsim_node_info *n) {
    enum { FEW = 64, LARGEST = 7 }; /* smaller tensors tell nothing; a sixteenth of 128, less 1 */
    static const char *const layers[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    const qsim_node_info *w = maker(s, n, 1, "DequantizeLinear");
    int32_t zero, largest = 0;
    char what[160];
    if (!is_one_of(n->op_type, layers) || !w || !zero_point(s, w, &zero) || !is_first(s, w))
        return;
    const qsim_value_info *u8 = constant(s, w, 0, QSIM_UINT8), *i8 = constant(s, w, 0, QSIM_INT8);
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

void odd_scales_find(const qsim_model *m, odd_scale_fn note, void *user) {
    search s = {.note = note, .user = user};
    collect(m, &s);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) || n.output_count < 1)
            continue;
        if (strcmp(n.op_type, "DequantizeLinear") == 0)
            check_pair(&s, &n);
        check_bias(&s, &n);
        check_codes(&s, &n);
    }
    free(s.constants);
    free(s.nodes);
}
