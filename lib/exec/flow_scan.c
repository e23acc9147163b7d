/* SPDX-License-Identifier: MIT */
/*
 * Scan: the body runs for each index of an axis of some inputs, in either direction; its results
 * are joined along an axis. In opset 8 the first axis of every tensor is a batch: Scan works on
 * each of its elements for itself, for the number of indices that the optional input 0 has for it.
 */
#include "exec/flow.h"
#include "tensor/shape.h"

typedef struct scan {
    qs_flow_call *c;
    int32_t first, states, scanned;
    int32_t batch;    /* 1: axis 0 is a batch; else 0 */
    int64_t length;   /* of the axis that is scanned along */
    qsim_tensor *fed; /* inputs of the body */
    int64_t (*dims)[QSIM_MAX_RANK];
    qs_store *slices; /* of each input that is scanned along */
    void **out;       /* of each output of the node, once it has memory */
} scan;

static int64_t axis_of(const scan *s, int32_t scanned, int32_t rank) {
    const int64_t axis = s->batch ? 1 : qs_node_entry(s->c->n, "scan_input_axes", scanned);
    return axis < 0 ? axis + rank : axis;
}

static bool is_reversed(const scan *s, int32_t scanned) {
    return qs_node_entry(s->c->n, s->batch ? "directions" : "scan_input_directions", scanned) == 1;
}

/* Narrows a tensor to element `b` of its batch, if there is one. */
static void select_element(const scan *s, int64_t b, qsim_tensor *t, int64_t *dims) {
    if (!s->batch)
        return;
    t->bytes = dims[0] ? t->bytes / (size_t)dims[0] : 0;
    t->data = (uint8_t *)t->data + (size_t)b * t->bytes;
    memmove(dims, dims + 1, (size_t)(t->rank - 1) * sizeof(*dims));
    t->rank--;
}

/* ---- inputs ---- */

static int find_length(scan *s) {
    int64_t dims[QSIM_MAX_RANK];
    s->length = -1;
    for (int32_t i = 0; i < s->scanned; i++) {
        const qsim_tensor t = qs_flow_input(s->c, s->first + s->states + i, dims);
        const int64_t axis = axis_of(s, i, t.rank);
        if (axis < 0 || axis >= t.rank)
            return qs_flow_fail(s->c, QSIM_E_SHAPE, "an input has no such axis to scan");
        if (s->length >= 0 && s->length != dims[axis])
            return qs_flow_fail(s->c, QSIM_E_SHAPE, "inputs to scan differ in length");
        s->length = dims[axis];
    }
    return QSIM_OK;
}

/* In opset 8 axis 0 of every input is the batch; the lengths, input 0, have no other axis. */
static int check_batch(const scan *s) {
    int64_t dims[QSIM_MAX_RANK], batch = -1;
    for (int32_t i = s->states + s->scanned - 1; s->batch && i >= -s->first; i--) {
        if (i < 0 && s->c->n->inputs[0] == QS_NONE)
            continue;
        const qsim_tensor t = qs_flow_input(s->c, s->first + i, dims);
        if (t.rank < 1 || (i < 0 && t.rank > 1) || (batch >= 0 && dims[0] != batch))
            return qs_flow_fail(s->c, QSIM_E_SHAPE, "inputs differ in the size of the batch");
        batch = dims[0];
    }
    return batch ? QSIM_OK : qs_flow_fail(s->c, QSIM_E_SHAPE, "the batch is empty");
}

static int begin_scan(scan *s) {
    const qs_node *n = s->c->n;
    qsim_ctx *ctx = s->c->deferred->ctx;
    s->batch = n->version < 9;
    s->first = s->batch;
    s->scanned = (int32_t)qs_node_int(n, "num_scan_inputs", 0);
    s->states = n->input_count - n->captured - s->first - s->scanned;
    const size_t fed = (size_t)(s->states + s->scanned) + 1;
    s->fed = qs_calloc(ctx, fed, sizeof(*s->fed));
    s->dims = qs_calloc(ctx, fed, sizeof(*s->dims));
    s->slices = qs_calloc(ctx, fed, sizeof(*s->slices));
    s->out = qs_calloc(ctx, (size_t)n->output_count + 1, sizeof(*s->out));
    if (!s->fed || !s->dims || !s->slices || !s->out)
        return qs_flow_fail(s->c, QSIM_E_NOMEM, "out of memory");
    int code = qs_flow_prepare(s->c, s->states);
    if (!code)
        code = check_batch(s);
    return code ? code : find_length(s);
}

static void end_scan(scan *s) {
    qsim_ctx *ctx = s->c->deferred->ctx;
    for (int32_t i = 0; s->slices && i < s->scanned; i++)
        qs_free(ctx, s->slices[i].data);
    qs_free(ctx, s->fed);
    qs_free(ctx, s->dims);
    qs_free(ctx, s->slices);
    qs_free(ctx, s->out);
}

/* ---- one element of the batch ---- */

/* Copies the slice of input `scanned` at index t, for the body. */
static int slice_input(scan *s, int32_t scanned, int64_t b, int64_t t) {
    int64_t *dims = s->dims[s->states + scanned];
    qsim_tensor x = qs_flow_input(s->c, s->first + s->states + scanned, dims);
    const int64_t axis = axis_of(s, scanned, x.rank) - s->batch;
    qs_store *to = &s->slices[scanned];
    size_t outer = 1;
    select_element(s, b, &x, dims);
    for (int32_t i = 0; i < axis; i++)
        outer *= (size_t)dims[i];
    const size_t whole = x.bytes;
    const size_t bytes = outer && s->length ? whole / outer / (size_t)s->length : 0;
    if (!qs_grow(s->c->deferred->ctx, &to->data, &to->capacity, bytes * outer, 1))
        return qs_flow_fail(s->c, QSIM_E_NOMEM, "out of memory for a part of an input");
    if (bytes)
        qs_copy_many_rows(&s->c->run->view, (const uint8_t *)x.data + (size_t)t * bytes,
                          (ptrdiff_t)(bytes * (size_t)s->length), to->data, (ptrdiff_t)bytes, bytes,
                          outer);
    memmove(dims + axis, dims + axis + 1, (size_t)(x.rank - 1 - axis) * sizeof(*dims));
    s->fed[s->states + scanned] = (qsim_tensor){x.dtype, x.rank - 1, dims, to->data, bytes * outer};
    return QSIM_OK;
}

static int iterate(scan *s, int64_t b, int64_t t, int64_t length) {
    struct qs_flow *f = s->c->node->flow;
    int code = QSIM_OK;
    for (int32_t i = 0; i < s->states; i++)
        s->fed[i] = f->state[i].t;
    for (int32_t i = 0; i < s->scanned && !code; i++)
        code = slice_input(s, i, b, is_reversed(s, i) ? length - 1 - t : t);
    s->c->iteration = (uint64_t)(b * s->length + t);
    if (!code)
        code = qs_flow_run(s->c, 0, s->fed);
    for (int32_t i = 0; i < s->states && !code; i++)
        code = qs_flow_copy(s->c, &f->state[i], &f->out[i]);
    for (int32_t i = 0; i < f->stacks && !code; i++)
        code = qs_flow_push(s->c, &f->stack[i], &f->out[s->states + i]);
    return code;
}

/* Reads the number of indices that are scanned for element `b`. */
static int read_length(const scan *s, int64_t b, int64_t *length) {
    *length = s->length;
    if (!s->batch || s->c->n->inputs[0] == QS_NONE)
        return QSIM_OK;
    memcpy(length, (const int64_t *)s->c->plan->address[s->c->n->inputs[0]] + b, sizeof(*length));
    return *length < 0 || *length > s->length
               ? qs_flow_fail(s->c, QSIM_E_VALUE, "a length is beyond the sequence")
               : QSIM_OK;
}

static int run_slices(scan *s, int64_t b, int64_t length) {
    struct qs_flow *f = s->c->node->flow;
    int64_t dims[QSIM_MAX_RANK];
    int code = QSIM_OK;
    for (int32_t i = 0; i < s->states && !code; i++) {
        qsim_tensor t = qs_flow_input(s->c, s->first + i, dims);
        select_element(s, b, &t, dims);
        code = qs_flow_copy(s->c, &f->state[i], &t);
    }
    for (int32_t i = 0; i < f->stacks; i++)
        f->stack[i].count = 0;
    for (int64_t t = 0; t < length && !code; t++)
        if (!(code = qs_stop_code(&s->c->run->view)))
            code = iterate(s, b, t, length);
    return code;
}

/* ---- results ---- */

/*
 * Finds the memory of element `b` of output `index`, allocated and set to 0 with the first element.
 */
static int place_element(scan *s, int32_t index, int64_t b, int64_t batch, const qsim_tensor *t,
                         uint8_t **to) {
    int64_t dims[QSIM_MAX_RANK];
    size_t bytes;
    if (t->rank + s->batch > QSIM_MAX_RANK)
        return qs_flow_fail(s->c, QSIM_E_LIMIT, "a result has too many axes");
    dims[0] = batch;
    qs_tensor_dims(t, dims + s->batch);
    int code = QSIM_OK;
    const qs_value *made = &s->c->plan->values[s->c->n->outputs[index]];
    bool same = !s->out[index] || made->rank == t->rank + s->batch;
    for (int32_t i = 0; s->out[index] && same && i < made->rank; i++)
        same = made->dims[i].size == dims[i];
    if (!same)
        return qs_flow_fail(s->c, QSIM_E_SHAPE,
                            "a result has other sizes in another element of the batch");
    if (!s->out[index]) {
        code = qs_deferred_output(s->c, index, t->dtype, t->rank + s->batch, dims, &s->out[index]);
        if (code)
            return code;
        qsim_tensor_size(t->dtype, t->rank + s->batch, dims, NULL, &bytes);
        code = qs_clear(&s->c->run->view, s->out[index], bytes);
    }
    qsim_tensor_size(t->dtype, t->rank, t->dims, NULL, &bytes);
    *to = (uint8_t *)s->out[index] + (size_t)b * bytes;
    return code;
}

static int set_scan_output(scan *s, int32_t index, int64_t b, int64_t batch) {
    const int32_t k = index - s->states;
    qs_stack *from = &s->c->node->flow->stack[k];
    int64_t dims[QSIM_MAX_RANK];
    uint8_t *to;
    if (from->count == 0)
        qs_flow_describe(s->c, (size_t)index, from);
    const int32_t rank = from->at.t.rank + 1;
    int64_t axis = s->batch ? 0 : qs_node_entry(s->c->n, "scan_output_axes", k);
    axis += axis < 0 ? rank : 0;
    if (rank > QSIM_MAX_RANK || axis < 0 || axis >= rank)
        return qs_flow_fail(s->c, QSIM_E_SHAPE, "a result cannot get the axis that is asked for");
    for (int32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? (s->batch ? s->length : from->count) : from->at.dims[i - (i > axis)];
    const qsim_tensor t = {.dtype = from->at.t.dtype, .rank = rank, .dims = dims};
    int code = place_element(s, index, b, batch, &t, &to);
    if (!code)
        qs_flow_unstack(&s->c->run->view, from, (int32_t)axis,
                        qs_node_entry(s->c->n, "scan_output_directions", k) == 1, to);
    return code;
}

static int set_outputs(scan *s, int64_t b, int64_t batch) {
    struct qs_flow *f = s->c->node->flow;
    int code = QSIM_OK;
    for (int32_t i = 0; i < s->c->n->output_count && !code; i++) {
        uint8_t *to;
        if (s->c->n->outputs[i] == QS_NONE)
            continue;
        if (i >= s->states) {
            code = set_scan_output(s, i, b, batch);
            continue;
        }
        code = place_element(s, i, b, batch, &f->state[i].t, &to);
        if (!code)
            code = qs_copy(&s->c->run->view, to, f->state[i].data, f->state[i].t.bytes);
    }
    return code;
}

int qs_flow_scan(qs_flow_call *c) {
    scan s = {.c = c};
    int64_t batch = 1, length, dims[QSIM_MAX_RANK];
    int code = begin_scan(&s);
    if (!code && s.batch) {
        qs_flow_input(c, s.first + s.states, dims);
        batch = dims[0];
    }
    for (int64_t b = 0; b < batch && !code; b++) {
        code = read_length(&s, b, &length);
        if (!code)
            code = run_slices(&s, b, length);
        if (!code)
            code = set_outputs(&s, b, batch);
    }
    end_scan(&s);
    return code;
}
