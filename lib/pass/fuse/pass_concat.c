/* SPDX-License-Identifier: MIT */
/*
 * Removes a Concat of channels that is the only reader of a convolution, pool or Resize among its
 * producers. The first of these allocates the whole tensor and writes its own channels, each other
 * one writes its channels into the same tensor, through a table where the scale differs. Operands
 * of other producers are copied into it at the end (Insert).
 */
#include "pass/pass.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "op/int8/int8_post_ops.h"
#include "op/int8/qvalue.h"

typedef struct operand {
    qs_id value;
    qs_id producer;   /* node that writes into the tensor; QS_NONE: the operand is inserted */
    int32_t position; /* of the producer in the order; INT32_MAX: inserted */
    int64_t channels, column; /* number of its channels; the first one in the tensor */
    bool rescaled;            /* by the table */
    uint8_t table[256];
} operand;

typedef struct concat_fusion {
    qs_pass *p;
    qs_graph *g;
    qs_uses uses;
    int32_t *position; /* by node: its place in the order */
    operand *operands;
    int32_t count;
    int64_t channels;
    size_t fused;
} concat_fusion;

/* ---- which operands fit ---- */

/*
 * Whether writing into a larger tensor would cost more than the Concat: with few columns the kernel
 * writes several pixels at once, which have to be contiguous, and half a panel left over is written
 * in short vectors.
 */
static bool is_thin(const qs_pass *p, const qs_node *n) {
    const qs_value *w = &p->graph->values[n->inputs[3]];
    return p->ctx->kernels->i8->lanes < 4 && qs_node_int(n, "group", 1) == 1 && w->rank > 2 &&
           w->dims[w->rank - 1].size > 1 && w->dims[0].size < 32 && w->dims[0].size % 16 != 0;
}

/* Whether the node is a pool, or a Resize that copies whole pixels. */
static bool keeps_channels(const qs_graph *g, const qs_node *n) {
    const qs_value *x = &g->values[n->inputs[0]], *y = &g->values[n->outputs[0]];
    return qs_node_string_is(n, "mode", "nearest", true) && x->rank == y->rank && x->rank > 2 &&
           x->dims[x->rank - 1].size == y->dims[y->rank - 1].size;
}

/* Whether a convolution can write its channels into a larger tensor. */
static bool conv_writes(const qs_pass *p, const qs_node *n) {
    /*
     * An integer convolution needs constant weights, which are packed when the session is compiled.
     */
    if (qs_node_is(n, "qsim", "QLinearConv"))
        return qs_node_is_constant(p->graph, n, 1, QS_I8_OTHER) && !is_thin(p, n);
    if (n->input_count > n->op->over)
        return false;
    if (!qs_node_is(n, "qsim", "ConvIntegerScaled"))
        return true;
    const qs_const *scales = p->graph->values[n->inputs[5]].data;
    return qs_node_int(n, "group", 1) == 1 && scales && scales->elements > 1;
}

/* Whether a node can write its channels into a larger tensor. */
static bool writes(const qs_pass *p, const qs_node *n) {
    if (!n->op->over || qs_node_attr(n, "into") || qs_node_int(n, "channels_last", 0) != 1)
        return false;
    if (n->op->traits & QS_CONVOLVES)
        return conv_writes(p, n);
    return keeps_channels(p->graph, n) && (n->output_count == 1 || n->outputs[1] == QS_NONE);
}

/*
 * The producer of `v` if the Concat is the only reader and the producer can write into a larger
 * tensor; or QS_NONE.
 */
static qs_id producer_of(const concat_fusion *j, qs_id v) {
    const qs_id id = qs_only_producer(j->g, &j->uses, v);
    return id != QS_NONE && writes(j->p, &j->g->nodes[id]) ? id : QS_NONE;
}

bool qs_pass_q8(const qs_graph *g, qs_id scale, qs_id zero_point, qs_q8 *q) {
    const qs_const *s = scale == QS_NONE ? NULL : g->values[scale].data;
    const qs_const *z = zero_point == QS_NONE ? NULL : g->values[zero_point].data;
    if (!s || s->elements != 1 || (zero_point != QS_NONE && (!z || z->elements != 1)))
        return false;
    *q = (qs_q8){.zero_point = z ? *(const uint8_t *)z->data : 0};
    memcpy(&q->scale, s->data, sizeof(q->scale));
    return true;
}

bool qs_pass_rescaling(const qs_q8 *from, const qs_q8 *to, uint8_t *table) {
    bool changes = false;
    for (int32_t i = 0; i < 256; i++) {
        table[i] = qs_q8_byte(*to, qs_q8_value(*from, (uint8_t)i));
        changes |= table[i] != i;
    }
    return changes;
}

/*
 * Composes the rescaling of an operand with the table (QTable) that makes it. If the Concat is its
 * only reader, the producer before that table may write into the tensor.
 */
static void compose_tables(const concat_fusion *j, operand *a) {
    const qs_id id = j->g->values[a->value].producer;
    const qs_node *n = id == QS_NONE ? NULL : &j->g->nodes[id];
    const qs_const *t =
        n && qs_node_is(n, "qsim", "QTable") ? j->g->values[n->inputs[1]].data : NULL;
    uint8_t both[256];
    if (!t || t->dtype != QSIM_UINT8 || j->g->values[n->inputs[0]].dtype != QSIM_UINT8)
        return;
    for (int32_t i = 0; i < 256; i++)
        both[i] =
            a->rescaled ? a->table[((const uint8_t *)t->data)[i]] : ((const uint8_t *)t->data)[i];
    memcpy(a->table, both, sizeof(both));
    if (qs_only_reader(j->g, &j->uses, a->value) != QS_NONE)
        a->producer = producer_of(j, n->inputs[0]);
    a->value = n->inputs[0];
    a->rescaled = true;
}

/*
 * Reads operand i. `to`: the parameters of a QLinearConcat, whose operands have their own; NULL:
 * Concat. False: it does not fit.
 */
static bool read_operand(const concat_fusion *j, const qs_node *n, int32_t i, const qs_q8 *to,
                         operand *a) {
    const int32_t at = to ? 2 + 3 * i : i;
    const qs_value *y = &j->g->values[n->outputs[0]], *x = &j->g->values[n->inputs[at]];
    qs_q8 from;
    *a = (operand){.value = n->inputs[at], .producer = producer_of(j, n->inputs[at])};
    if (x->rank != y->rank || x->dtype != y->dtype || x->data || x->dims[x->rank - 1].size <= 0)
        return false;
    a->channels = x->dims[x->rank - 1].size;
    if (to && !qs_pass_q8(j->g, n->inputs[at + 1], n->inputs[at + 2], &from))
        return false;
    if (to)
        a->rescaled = qs_pass_rescaling(&from, to, a->table);
    if (x->dtype == QSIM_UINT8 && a->producer == QS_NONE)
        compose_tables(j, a);
    a->position = a->producer == QS_NONE ? INT32_MAX : j->position[a->producer];
    return true;
}

/* Sorts the operands by the position of their producers, inserted ones last. */
static void sort_operands(operand *operands, int32_t count) {
    for (int32_t i = 1; i < count; i++) {
        const operand a = operands[i];
        int32_t k = i;
        for (; k > 0 && operands[k - 1].position > a.position; k--)
            operands[k] = operands[k - 1];
        operands[k] = a;
    }
}

/* Reads the operands of a Concat of channels; false: the Concat is kept. */
static bool read_operands(concat_fusion *j, const qs_node *n) {
    const bool plain = qs_node_is_onnx(n, "Concat");
    const qs_value *y = &j->g->values[n->outputs[0]];
    const int64_t axis = qs_node_int(n, "axis", 1);
    int64_t copied = 0;
    int32_t producers = 0;
    qs_q8 to;
    j->count = plain ? n->input_count : (n->input_count - 2) / 3;
    j->channels = 0;
    if (y->rank < 3 || (axis < 0 ? axis + y->rank : axis) != y->rank - 1 ||
        (y->dtype != QSIM_UINT8 && !(plain && y->dtype == QSIM_FLOAT)) ||
        (!plain && !qs_pass_q8(j->g, n->inputs[0], n->inputs[1], &to)))
        return false;
    for (int32_t i = 0; i < j->count; i++) {
        if (!read_operand(j, n, i, plain ? NULL : &to, &j->operands[i]))
            return false;
        producers += j->operands[i].producer != QS_NONE;
        copied += j->operands[i].producer != QS_NONE ? 0 : j->operands[i].channels;
        j->operands[i].column = j->channels;
        if (!qs_add64(j->channels, j->operands[i].channels, &j->channels))
            return false;
    }
    sort_operands(j->operands, j->count);
    /* Copying inserted floats costs more than the other operands save, unless they are few. */
    return producers > 0 && (y->dtype != QSIM_FLOAT || copied <= j->channels / 4) && j->count > 1 &&
           j->channels <= INT32_MAX;
}

/* ---- fusion ---- */

/* Index of the input for the table that a node applies last. */
static int32_t last_table(const qs_node *n) {
    const bool sums = qs_node_is(n, "qsim", "QLinearConv") && n->input_count > QS_I8_OTHER;
    return sums ? QS_I8_LAST : n->op->over + 1;
}

static int append_table(concat_fusion *j, qs_id conv, const operand *a) {
    const int32_t at = last_table(&j->g->nodes[conv]);
    const qs_id before =
        at < j->g->nodes[conv].input_count ? j->g->nodes[conv].inputs[at] : QS_NONE;
    const uint8_t *inner = before == QS_NONE ? NULL : j->g->values[before].data->data;
    uint8_t made[256];
    for (int32_t i = 0; i < 256; i++)
        made[i] = a->table[inner ? inner[i] : i];
    const qs_id table = qs_pass_const_table(j->p, made);
    if (table < 0)
        return table;
    if (qs_node_grow_inputs(j->g, conv, at + 1))
        return qs_pass_no_memory(j->p);
    qs_node_set_input(j->g, conv, at, table);
    return QSIM_OK;
}

static int write_in_place(concat_fusion *j, const operand *a, qs_id over, qs_id y) {
    qs_graph *g = j->g;
    const qs_id id = a->producer;
    const int32_t at = g->nodes[id].op->over;
    int code = a->rescaled ? append_table(j, id, a) : QSIM_OK;
    if (code)
        return code;
    if (qs_node_grow_inputs(g, id, at + 1))
        return qs_pass_no_memory(j->p);
    qs_node_set_input(g, id, at, over);
    qs_pass_set_output(j->p, id, 0, y);
    return QSIM_OK;
}

static int insert(concat_fusion *j, const operand *a, const char *name, qs_id over, qs_id y,
                  qs_id *made) {
    const qs_id table = a->rescaled ? qs_pass_const_table(j->p, a->table) : QS_NONE;
    const qs_id in[] = {a->value, over, table};
    if (a->rescaled && table < 0)
        return table;
    *made = qs_graph_add_node(j->g, "qsim", "Insert", name, in, a->rescaled ? 3 : 2, &y, 1);
    return *made < 0 ? qs_pass_no_memory(j->p) : QSIM_OK;
}

/* Writes an operand into tensor `y`, which takes over the memory of `over`, the tensor so far. */
static int place_operand(concat_fusion *j, const operand *a, const char *name, qs_id over,
                         qs_id y) {
    qs_id id = a->producer;
    int code = id == QS_NONE ? insert(j, a, name, over, y, &id) : write_in_place(j, a, over, y);
    if (code)
        return code;
    if (qs_node_set_int(j->g, id, "into", j->channels) ||
        qs_node_set_int(j->g, id, "column", a->column))
        return qs_pass_no_memory(j->p);
    return qs_pass_resolve(j->p, id);
}

static int chain_operands(concat_fusion *j, qs_id concat) {
    const qs_id y = j->g->nodes[concat].outputs[0];
    const char *name = j->g->nodes[concat].name;
    qs_id over = QS_NONE;
    int code = QSIM_OK;
    qs_graph_remove_node(j->g, concat);
    for (int32_t i = 0; i < j->count && !code; i++) {
        const qs_id to = i + 1 < j->count ? qs_pass_value(j->p, y) : y;
        if (to < 0)
            return to;
        code = place_operand(j, &j->operands[i], name, over, to);
        over = to;
    }
    return code;
}

static bool is_concat(const qs_node *n) {
    return qs_node_is_onnx(n, "Concat") || (!n->removed && qs_same(n->op_type, "QLinearConcat"));
}

static int fuse_concat(concat_fusion *j, qs_id concat) {
    const qs_node *n = &j->g->nodes[concat];
    int code = QSIM_OK;
    if (!is_concat(n))
        return QSIM_OK;
    j->operands = qs_alloc(j->p->ctx, (size_t)n->input_count, sizeof(*j->operands));
    if (!j->operands)
        return qs_pass_no_memory(j->p);
    if (read_operands(j, n)) {
        code = chain_operands(j, concat);
        j->fused++;
    }
    qs_free(j->p->ctx, j->operands);
    return code;
}

int qs_pass_concat(qs_pass *p) {
    qs_graph *g = p->graph;
    concat_fusion j = {.p = p, .g = g};
    j.position = qs_calloc(p->ctx, g->node_count + 1, sizeof(*j.position));
    int code = !j.position || qs_graph_uses(g, &j.uses) ? qs_pass_no_memory(p) : QSIM_OK;
    for (size_t i = 0; i < g->order_count && !code; i++)
        j.position[g->order[i]] = (int32_t)i;
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = fuse_concat(&j, g->order[i]);
    qs_uses_free(g, &j.uses);
    qs_free(p->ctx, j.position);
    return code || !j.fused ? code : qs_pass_finish(p);
}
