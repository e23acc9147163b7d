/* SPDX-License-Identifier: MIT */
/*
 * Curves: nodes that together compute one function of single elements of one activation, as
 * x * clip(x + 3, 0, 6) / 6 for HardSwish. Only the input and the result of a curve are rounded to
 * integers. A session computes it once for each of the 256 codes of its input (qdq_table.c).
 */
#include "pass/qdq/qdq.h"
#include "ptq/quantizer.h"

/* A session's expression also has the node that dequantizes its input. */
#define MOST_NODES (QS_TABLE_NODES - 1)

typedef struct curves {
    qs_quantizer *q;
    qs_id *source; /* by value: the activation that it is a function of; itself if it is rounded */
    size_t *place; /* by node: its place in the order */
} curves;

/* The nodes of a curve, its last one first. */
typedef struct members {
    qs_id nodes[MOST_NODES];
    int32_t count;
} members;

static bool has(const members *m, qs_id node) {
    for (int32_t i = 0; i < m->count; i++)
        if (m->nodes[i] == node)
            return true;
    return false;
}

/* Whether the value is a constant of one element that does not raise a result's rank. */
static bool is_number(const qs_graph *g, qs_id value, qs_id result) {
    const qs_const *c = g->values[value].data;
    return c && c->elements == 1 &&
           c->rank <= (g->values[result].rank < 0 ? 0 : g->values[result].rank);
}

/*
 * Whether the node computes each element of its one result from those at the same place; operators
 * of ONNX only, since sessions make tables of these.
 */
static bool is_elementwise(const qs_graph *g, const qs_node *n) {
    return !n->domain[0] && n->op->traits & QS_ELEMENTWISE && n->output_count == 1 &&
           qs_is_activation(g, n->outputs[0]);
}

/*
 * The activation that a node's result is a function of; QS_NONE: there are several, or none. `of`:
 * by value, what it is itself a function of; NULL: of itself.
 */
static qs_id source_of(const qs_graph *g, const qs_node *n, const qs_id *of) {
    qs_id source = QS_NONE;
    if (!is_elementwise(g, n))
        return QS_NONE;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_id x = n->inputs[i];
        if (x == QS_NONE || is_number(g, x, n->outputs[0]))
            continue;
        const qs_id from = of ? of[x] : x;
        if (!qs_is_activation(g, x) || (source != QS_NONE && source != from))
            return QS_NONE;
        source = from;
    }
    return source;
}

qs_id qs_curve_source(const qs_quantizer *q, qs_id node) {
    return source_of(q->g, &q->g->nodes[node], NULL);
}

/* Whether a value is rounded in any case. */
static bool is_rounded(const qs_quantizer *q, qs_id value) {
    bool rounded = q->g->values[value].is_output || qs_recipe_scales(q, value);
    for (qs_id u = q->uses.start[value]; u < q->uses.start[value + 1] && !rounded; u++)
        rounded = !is_elementwise(q->g, &q->g->nodes[q->uses.nodes[u]]);
    return rounded;
}

/* Whether all readers of the value are members. */
static bool is_inner(const curves *c, const members *m, qs_id value) {
    const qs_uses *uses = &c->q->uses;
    const qs_id first = uses->start[value], end = uses->start[value + 1];
    if (end - first > MOST_NODES)
        return false;
    for (qs_id u = first; u < end; u++)
        if (!has(m, uses->nodes[u]))
            return false;
    return true;
}

/* Collects the nodes that only lead to `last`, which are functions of the same activation. */
static void collect(const curves *c, qs_id last, qs_id source, members *m) {
    const qs_graph *g = c->q->g;
    *m = (members){.nodes = {last}, .count = 1};
    for (bool more = true; more;) {
        more = false;
        for (int32_t at = 0; at < m->count; at++) {
            const qs_node *n = &g->nodes[m->nodes[at]];
            for (int32_t i = 0; i < n->input_count; i++) {
                const qs_id x = n->inputs[i];
                const qs_id from = x == QS_NONE || x == source ? QS_NONE : g->values[x].producer;
                if (from == QS_NONE || has(m, from) || m->count == MOST_NODES ||
                    c->source[x] != source || c->q->choices[from].is_absorbed || !is_inner(c, m, x))
                    continue;
                m->nodes[m->count++] = from;
                more = true;
            }
        }
    }
}

static void sort(const curves *c, members *m) {
    for (int32_t i = 1; i < m->count; i++)
        for (int32_t k = i; k > 0 && c->place[m->nodes[k]] < c->place[m->nodes[k - 1]]; k--) {
            const qs_id node = m->nodes[k];
            m->nodes[k] = m->nodes[k - 1];
            m->nodes[k - 1] = node;
        }
}

/*
 * Whether the nodes read one activation and each other, and would be in integers one by one:
 * others, as Exp, need more than 8 bits between them.
 */
static bool is_curve(const curves *c, const members *m) {
    const qs_graph *g = c->q->g;
    qs_id leaf = QS_NONE;
    bool begins = false;
    for (int32_t at = 0; at < m->count; at++) {
        const qs_node *n = &g->nodes[m->nodes[at]];
        for (int32_t i = 0; i < n->input_count; i++) {
            const qs_id x = n->inputs[i];
            if (x == QS_NONE || g->values[x].data || has(m, g->values[x].producer))
                continue;
            if (leaf != QS_NONE && leaf != x)
                return false;
            leaf = x;
            begins |= c->q->choices[m->nodes[at]].kind != QS_KIND_FLOAT;
        }
    }
    return begins && m->count > 1;
}

/*
 * Makes the first node decide for all. If one of them is to stay in float they all do. false: rules
 * put some of them into integers, or ask for different things.
 */
static bool join_rules(const curves *c, const members *m, qs_choice *first) {
    int32_t ruled = 0;
    for (int32_t i = 0; i < m->count; i++) {
        const qs_choice *own = &c->q->choices[m->nodes[i]];
        if (own->wide != first->wide ||
            (own->forced && first->forced && own->forced != first->forced))
            return false;
        ruled += own->forced == QSIM_RULE_INT8 && own->rule > 0;
        first->forced = own->forced ? own->forced : first->forced;
        if (own->kind != QS_KIND_POOL)
            first->kind = QS_KIND_ARITHMETIC;
    }
    return ruled == 0 || ruled == m->count;
}

/* The first node absorbs the others. */
static void join(curves *c, members *m) {
    sort(c, m);
    qs_choice *choices = c->q->choices, first = choices[m->nodes[0]];
    if (!join_rules(c, m, &first))
        return;
    choices[m->nodes[0]] = first;
    for (int32_t i = 0; i < m->count; i++) {
        choices[m->nodes[i]].curve = m->nodes[0];
        choices[m->nodes[i]].is_absorbed = i > 0;
        choices[m->nodes[i]].absorbs = i + 1 < m->count ? m->nodes[i + 1] : QS_NONE;
    }
}

static void find(curves *c) {
    const qs_graph *g = c->q->g;
    for (size_t i = 0; i < g->value_count; i++)
        c->source[i] = (qs_id)i;
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_id node = g->order[k];
        const qs_id source =
            c->q->choices[node].is_absorbed ? QS_NONE : source_of(g, &g->nodes[node], c->source);
        c->place[node] = k;
        if (source != QS_NONE && !is_rounded(c->q, g->nodes[node].outputs[0]))
            c->source[g->nodes[node].outputs[0]] = source;
    }
    for (size_t k = g->order_count; k-- > 0;) {
        const qs_choice *own = &c->q->choices[g->order[k]];
        members m;
        if (own->kind == QS_KIND_FLOAT || own->is_absorbed || own->curve != QS_NONE)
            continue;
        const qs_id source = source_of(g, &g->nodes[g->order[k]], c->source);
        if (source == QS_NONE)
            continue;
        collect(c, g->order[k], source, &m);
        if (is_curve(c, &m))
            join(c, &m);
    }
}

int qs_curves_find(qs_quantizer *q) {
    curves c = {.q = q,
                .source = qs_calloc(q->ctx, q->value_count + 1, sizeof(*c.source)),
                .place = qs_calloc(q->ctx, q->node_count + 1, sizeof(*c.place))};
    const bool room = c.source && c.place;
    if (room && qs_has_curves(q))
        find(&c);
    qs_free(q->ctx, c.source);
    qs_free(q->ctx, c.place);
    return room ? QSIM_OK : QSIM_E_NOMEM;
}
