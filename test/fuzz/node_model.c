/* SPDX-License-Identifier: MIT */
/* Models of the forms in node_seeds.h: the node alone, or in a graph of If, Loop or Scan. */
#include "node_seeds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <qsim/base.h>

/* ---- elements ---- */

static void put_float(uint8_t *at, int64_t v, double unit) {
    const float x = (float)((double)v * unit);
    memcpy(at, &x, sizeof(x));
}

static void put_double(uint8_t *at, int64_t v, double unit) {
    const double x = (double)v * unit;
    memcpy(at, &x, sizeof(x));
}

/* The nearest below; infinity and NaN are kept. */
static void put_half(uint8_t *at, int64_t v, double unit) {
    const double x = (double)v * unit, size = fabs(x);
    int e = 0;
    const double fraction = isfinite(x) ? frexp(size, &e) : 0; /* 0.5 to 1 */
    uint32_t bits = x != x ? 0x7e00 : size >= 65536 ? 0x7c00 : 0;
    if (!bits && size >= 0x1p-14)
        bits = (uint32_t)((e + 13) * 1024 + (int)(fraction * 2048));
    else if (!bits)
        bits = (uint32_t)ldexp(size, 24); /* subnormal */
    bits |= signbit(x) ? 0x8000 : 0;
    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
}

static void put_brain(uint8_t *at, int64_t v, double unit) {
    uint8_t x[4];
    put_float(x, v, unit);
    memcpy(at, x + 2, 2);
}

void node_fill(const node_input *in, uint8_t *data, size_t bytes) {
    const size_t bits = (size_t)qsim_dtype_bits(in->dtype);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)((i * 37 + 11) & 0x3f);
    for (size_t i = 0; bits >= 8 && i < bytes / (bits / 8); i++) {
        int64_t v = (int64_t)(i * 7 + 3) % (in->dtype == QSIM_BOOL ? 2 : 5);
        if (in->value_count)
            v = in->values[i % (size_t)in->value_count];
        uint8_t *at = data + i * bits / 8;
        if (in->dtype == QSIM_FLOAT)
            put_float(at, v, in->unit);
        else if (in->dtype == QSIM_DOUBLE)
            put_double(at, v, in->unit);
        else if (in->dtype == QSIM_FLOAT16)
            put_half(at, v, in->unit);
        else if (in->dtype == QSIM_BFLOAT16)
            put_brain(at, v, in->unit);
        else if (in->dtype < QSIM_FLOAT16 || in->dtype == QSIM_UINT32 || in->dtype == QSIM_UINT64)
            for (size_t k = 0; k < bits / 8; k++)
                at[k] = (uint8_t)((uint64_t)v >> (8 * k));
    }
}

/* ---- parts of messages ---- */

size_t node_constant_size(const node_form *f, const node_input *in) {
    const size_t most = f->most ? f->most : 1u << 16;
    size_t bytes = 0;
    const int code = qsim_tensor_size(in->dtype, in->rank, in->dims, NULL, &bytes);
    return code || bytes > most ? 8 : bytes;
}

static void put_tensor(proto *p, uint32_t field, const char *name, const node_form *f,
                       const node_input *in) {
    const size_t bytes = node_constant_size(f, in);
    proto t = {0};
    for (int32_t i = 0; i < in->rank; i++)
        proto_int(&t, 1, in->dims[i]);
    proto_int(&t, 2, in->dtype);
    if (name)
        proto_text(&t, 8, name);
    if (name && f->outside) {
        proto_external(&t, "location", name);
        proto_int(&t, 14, 1);
    } else {
        uint8_t *data = calloc(bytes + 1, 1);
        if (!data)
            abort();
        node_fill(in, data, bytes);
        proto_bytes(&t, 9, data, bytes);
        free(data);
    }
    proto_take(p, field, &t);
    proto_free(&t);
}

/* Declares a graph's input with sizes, with the number of axes, or with its type alone. */
static void put_input(proto *graph, const char *name, const node_input *in, node_stated stated) {
    static const int64_t any[NODE_LIST] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    proto v = {0}, type = {0}, tensor = {0};
    if (stated != NODE_TYPES) {
        proto_value(graph, 11, name, in->dtype, stated == NODE_RANKS ? any : in->dims, in->rank);
        return;
    }
    proto_int(&tensor, 1, in->dtype);
    proto_take(&type, 1, &tensor);
    proto_text(&v, 1, name);
    proto_take(&v, 2, &type);
    proto_take(graph, 11, &v);
    proto_free(&v);
    proto_free(&type);
    proto_free(&tensor);
}

static void put_attr(proto *node, const node_form *f, const node_attr *a) {
    proto p = {0};
    const node_input number = {.dtype = QSIM_FLOAT,
                               .rank = 1,
                               .dims = {1},
                               .values = {a->ints[0]},
                               .value_count = 1,
                               .unit = 1};
    const float real = (float)a->real;
    proto_text(&p, 1, a->name);
    switch (a->type) {
    case QSIM_ATTR_INT: proto_int(&p, 3, a->ints[0]); break;
    case QSIM_ATTR_FLOAT:
        proto_tag(&p, 2, 5);
        proto_raw(&p, &real, sizeof(real));
        break;
    case QSIM_ATTR_STRING: proto_text(&p, 4, a->text); break;
    case QSIM_ATTR_STRINGS: proto_text(&p, 9, a->text); break;
    case QSIM_ATTR_TENSOR: put_tensor(&p, 5, NULL, f, &number); break;
    case QSIM_ATTR_FLOATS:
        for (int32_t i = 0; i < a->count; i++) {
            const float x = (float)a->ints[i];
            proto_tag(&p, 7, 5);
            proto_raw(&p, &x, sizeof(x));
        }
        break;
    default:
        for (int32_t i = 0; i < a->count; i++)
            proto_int(&p, 8, a->ints[i]);
    }
    /* The numbers of these types are ONNX's. */
    proto_int(&p, 20, a->type);
    proto_take(node, 5, &p);
    proto_free(&p);
}

static const char *name_of(char text[16], char letter, int32_t i) {
    snprintf(text, 16, "%c%d", letter, (int)i);
    return text;
}

/* The node, its input 0 called `first`, its outputs t0, t1, ...; of a list the length. */
static void put_node(proto *graph, const node_form *f, const char *first) {
    const bool optional = strcmp(f->op->name, "Optional") == 0;
    const bool list = (f->op->traits & QS_MAKES_SEQUENCE) != 0;
    proto node = {0};
    char text[16];
    for (int32_t i = 0; i < f->input_count; i++) {
        const char *name = i ? name_of(text, 'x', i) : first;
        if (f->in[i].given && f->in[i].sequence) {
            proto_node(graph, "SequenceConstruct", NULL, name, name, "list");
            name = "list";
        }
        proto_text(&node, 1, f->in[i].given ? name : "");
    }
    for (int32_t i = 0; i < f->outputs; i++)
        proto_text(&node, 2, (list || optional) && i == 0 ? "made" : name_of(text, 't', i));
    proto_text(&node, 3, "node");
    proto_text(&node, 4, f->op->name);
    for (int32_t i = 0; i < f->attr_count; i++)
        put_attr(&node, f, &f->attrs[i]);
    proto_text(&node, 7, qs_op_domain(f->op));
    proto_take(graph, 1, &node);
    if (list || optional)
        proto_node(graph, list ? "SequenceLength" : "OptionalGetElement", NULL, "made", NULL, "t0");
    proto_free(&node);
}

/* ---- graphs in graphs ---- */

static void put_names(proto *p, uint32_t field, char letter, int32_t count) {
    char text[16];
    for (int32_t i = 0; i < count; i++)
        proto_name(p, field, name_of(text, letter, i));
}

/* Another branch of as many outputs, all input 0. */
static void put_branch(proto *branch, const node_form *f) {
    char text[16];
    for (int32_t i = 0; i < f->outputs; i++)
        proto_node(branch, "Identity", NULL, "x0", NULL, name_of(text, 'e', i));
    put_names(branch, 12, 'e', f->outputs);
    proto_text(branch, 2, "branch");
}

static void put_around(proto *graph, const node_form *f) {
    proto node = {0}, body = {0}, branch = {0};
    char text[16];
    const bool loops = f->place == NODE_IN_LOOP;
    if (f->place == NODE_IN_IF) {
        proto_text(&node, 1, "go");
    } else {
        if (loops) {
            proto_text(&node, 1, "trip");
            proto_text(&node, 1, "go");
            proto_name(&body, 11, "turn");
            proto_name(&body, 11, "again");
        } else if (f->place == NODE_IN_SCAN_8) {
            proto_text(&node, 1, "lengths");
        }
        if (!loops)
            proto_text(&node, 1, "state");
        proto_text(&node, 1, "x0");
        if (!loops)
            proto_name(&body, 11, "kept");
        proto_name(&body, 11, "s");
    }
    put_node(&body, f, f->place == NODE_IN_IF ? "x0" : "s");
    if (loops) {
        proto_node(&body, "Identity", NULL, "again", NULL, "more");
        proto_node(&body, "Identity", NULL, f->carries ? "t0" : "s", NULL, "next");
        proto_name(&body, 12, "more");
        proto_name(&body, 12, "next");
    } else if (f->place != NODE_IN_IF) {
        proto_node(&body, "Identity", NULL, "kept", NULL, "next");
        proto_name(&body, 12, "next");
    }
    put_names(&body, 12, 't', f->outputs);
    proto_text(&body, 2, "body");
    const int32_t more = f->place == NODE_IN_IF ? 0 : 1;
    for (int32_t i = 0; i < f->outputs + more; i++)
        proto_text(&node, 2, name_of(text, 'y', i));
    proto_text(&node, 4, f->place == NODE_IN_IF ? "If" : loops ? "Loop" : "Scan");
    proto_graph(&node, f->place == NODE_IN_IF ? "then_branch" : "body", &body);
    if (f->place == NODE_IN_IF) {
        put_branch(&branch, f);
        proto_graph(&node, "else_branch", &branch);
    } else if (!loops) {
        proto_integer(&node, "num_scan_inputs", 1);
    }
    proto_take(graph, 1, &node);
    put_names(graph, 12, 'y', f->outputs + more);
    proto_free(&node);
    proto_free(&body);
    proto_free(&branch);
}

/* ---- the model ---- */

static void feed_input(proto *graph, node_feed *feed, const char *name, const node_input *in,
                       node_stated stated) {
    put_input(graph, name, in, stated);
    feed->in[feed->count++] = *in;
}

/* What the node around the form reads besides its inputs. */
static void feed_around(proto *graph, const node_form *f, node_feed *feed) {
    const node_input trip = {
        .given = true, .dtype = QSIM_INT64, .values = {2}, .value_count = 1, .unit = 1};
    const node_input go = {
        .given = true, .dtype = QSIM_BOOL, .values = {1}, .value_count = 1, .unit = 1};
    node_input state = {.given = true, .dtype = QSIM_FLOAT, .rank = 1, .dims = {2}, .unit = 1};
    const node_input lengths = {.given = true,
                                .dtype = QSIM_INT64,
                                .rank = 1,
                                .dims = {2},
                                .values = {2, 3},
                                .value_count = 2,
                                .unit = 1};
    if (f->place == NODE_IN_LOOP)
        feed_input(graph, feed, "trip", &trip, f->stated);
    if (f->place == NODE_IN_LOOP || f->place == NODE_IN_IF)
        feed_input(graph, feed, "go", &go, f->stated);
    if (f->place == NODE_IN_SCAN_8)
        feed_input(graph, feed, "lengths", &lengths, f->stated);
    state.rank += f->place == NODE_IN_SCAN_8;
    state.dims[1] = 2;
    if (f->place == NODE_IN_SCAN || f->place == NODE_IN_SCAN_8)
        feed_input(graph, feed, "state", &state, f->stated);
}

/* Input 0 of a Scan: three slices, in a batch of two in opset 8. */
static node_input sliced(const node_form *f) {
    node_input in = f->in[0];
    const int32_t more = f->place == NODE_IN_SCAN ? 1 : f->place == NODE_IN_SCAN_8 ? 2 : 0;
    if (in.rank + more > NODE_LIST)
        return in;
    memmove(in.dims + more, in.dims, (size_t)in.rank * sizeof(in.dims[0]));
    in.rank += more;
    if (more)
        in.dims[more - 1] = 3;
    if (more > 1)
        in.dims[0] = 2;
    return in;
}

void node_model(const node_form *f, proto *model, node_feed *feed) {
    proto graph = {0}, opset = {0};
    char text[16];
    feed->count = 0;
    feed_around(&graph, f, feed);
    for (int32_t i = 0; i < f->input_count; i++) {
        const node_input in = i ? f->in[i] : sliced(f);
        const char *name = name_of(text, 'x', i);
        if (!in.given)
            continue;
        if (in.constant || (f->constants >> i & 1))
            put_tensor(&graph, 5, name, f, &in);
        else
            feed_input(&graph, feed, name, &in, f->stated);
    }
    if (f->place == NODE_PLAIN) {
        put_node(&graph, f, "x0");
        put_names(&graph, 12, 't', f->outputs);
    } else {
        put_around(&graph, f);
    }
    proto_text(&graph, 2, "g");
    proto_int(model, 1, 8);
    proto_take(model, 7, &graph);
    proto_int(&opset, 2, f->opset);
    proto_take(model, 8, &opset);
    proto_text(&opset, 1, "com.microsoft");
    proto_int(&opset, 2, 1);
    proto_take(model, 8, &opset);
    proto_free(&graph);
    proto_free(&opset);
}
