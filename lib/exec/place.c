/* SPDX-License-Identifier: MIT */
/*
 * Places a plan's tensors in memory. Values that are parts of each other share one buffer, which is
 * in the arena, a constant of the session, or the caller's.
 *
 * An input is read from the caller's buffer if every step that reads it reads exactly its bytes,
 * since the caller's buffers have no slack after them; otherwise it is copied into the arena. An
 * output is written to the caller's buffer unless steps read it, too.
 */
#include <assert.h>

#include "exec/exec.h"

typedef struct buffer {
    size_t bytes;
    int32_t first, last; /* lifetime in steps; -1: before the first */
    int32_t slot;        /* in the arena; -1: not there */
    int32_t input;       /* the graph input whose bytes it has; -1: none */
    qs_id constant;      /* the constant whose bytes it has; QS_NONE: none */
    bool overread;       /* read by a step that may read past its end */
    bool read;
    bool in_place; /* an output is written to the caller's buffer */
} buffer;

typedef struct placing {
    const qsim_session *s;
    qs_plan *plan;
    const qs_part *part;
    const bool *kept, *deferred_values;
    qs_part *root; /* by value: the value whose buffer it is in, and its first byte there */
    qs_id *next;   /* by value: the next one in its buffer, from the root on; or QS_NONE */
    buffer *buffers;
    qs_slot *slots;
    int32_t slot_count;
    qs_arena arena;
} placing;

static void use_buffer(placing *p, qs_id value, int32_t step, bool reads, bool overread) {
    buffer *b = &p->buffers[p->root[value].value];
    if (b->first > step)
        b->first = step;
    if (b->last < step)
        b->last = step;
    b->read |= reads;
    b->overread |= reads && overread;
}

static void init_buffers(placing *p) {
    for (size_t v = 0; v < p->s->graph->value_count; v++) {
        p->root[v].value = QS_NONE;
        p->next[v] = QS_NONE;
        p->buffers[v] = (buffer){.first = INT32_MAX,
                                 .last = -1,
                                 .slot = -1,
                                 .input = -1,
                                 .constant = p->plan->values[v].data ? (qs_id)v : QS_NONE};
        if (!qs_value_size(&p->plan->values[v], NULL, &p->buffers[v].bytes))
            p->buffers[v].bytes = 0;
    }
}

/* Finds the root of each value, and at once of all values between the two. */
static void find_roots(placing *p) {
    for (size_t i = 0; i < p->s->graph->value_count; i++) {
        qs_id v = (qs_id)i;
        size_t from = 0;
        for (; p->root[v].value == QS_NONE && p->part[v].value != QS_NONE; v = p->part[v].value)
            from += p->part[v].from;
        const qs_part end = p->root[v].value == QS_NONE ? (qs_part){v, 0} : p->root[v];
        from += end.from;
        for (v = (qs_id)i; p->root[v].value == QS_NONE; v = p->part[v].value) {
            p->root[v] = (qs_part){end.value, v == end.value ? 0 : from};
            if (v == end.value)
                break;
            from -= p->part[v].from;
            p->next[v] = p->next[end.value];
            p->next[end.value] = v;
        }
    }
}

static void find_lifetimes(placing *p) {
    const qs_graph *g = p->s->graph;
    qs_plan *plan = p->plan;
    for (size_t i = 0; i < plan->step_count; i++) {
        const qs_node *n = &g->nodes[plan->steps[i].node];
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE)
                use_buffer(p, n->inputs[k], (int32_t)i, true,
                           !(n->op->traits & (QS_READS_EXACTLY | QS_ELEMENTWISE)));
        for (int32_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != QS_NONE)
                use_buffer(p, n->outputs[k], (int32_t)i, false, false);
    }
}

/* Keeps the values that are read after all steps. */
static void keep_until_end(placing *p) {
    for (size_t v = 0; v < p->s->graph->value_count; v++)
        if (p->kept[v] && !p->deferred_values[v])
            use_buffer(p, (qs_id)v, (int32_t)p->plan->step_count, true, true);
}

static int32_t add_slot(placing *p, size_t bytes, int32_t first, int32_t last) {
    qs_slot *s = &p->slots[p->slot_count];
    *s = (qs_slot){.bytes = qs_align(bytes + QS_SLACK, 64), .first = first, .last = last};
    return p->slot_count++;
}

static int set_port(placing *p, qs_port *port, qs_id value) {
    const qs_value *v = &p->plan->values[value];
    int64_t *dims = qs_arena_alloc(&p->plan->arena, (size_t)v->rank + 1, sizeof(*dims));
    if (!dims)
        return QSIM_E_NOMEM;
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = v->dims[i].size;
    *port = (qs_port){.value = value,
                      .dtype = v->dtype,
                      .rank = v->rank,
                      .dims = dims,
                      .bytes = p->buffers[value].bytes,
                      .offset = QS_NOWHERE};
    return QSIM_OK;
}

/* Lists the values in the port's buffer. */
static int find_shared(placing *p, qs_port *port) {
    int32_t n = 0;
    const qs_id root = p->root[port->value].value;
    for (qs_id v = root; v != QS_NONE; v = p->next[v])
        n++;
    qs_part *parts = qs_arena_alloc(&p->plan->arena, (size_t)n, sizeof(*parts));
    if (!parts)
        return QSIM_E_NOMEM;
    n = 0;
    for (qs_id v = root; v != QS_NONE; v = p->next[v])
        parts[n++] = (qs_part){v, p->root[v].from};
    port->shared = parts;
    port->shared_count = n;
    return QSIM_OK;
}

static int place_inputs(placing *p) {
    const qs_graph *g = p->s->graph;
    for (size_t i = 0; i < g->input_count; i++) {
        buffer *b = &p->buffers[g->inputs[i]];
        qs_port *port = &p->plan->inputs[i];
        int code = set_port(p, port, g->inputs[i]);
        if (code)
            return code;
        port->fixed = p->s->by_value[i] ? p->plan->address[g->inputs[i]] : NULL;
        if (port->fixed)
            continue;
        b->input = (int32_t)i;
        b->first = -1;
        port->in_place = !b->overread;
        code = port->in_place ? find_shared(p, port) : QSIM_OK;
        if (code)
            return code;
    }
    return QSIM_OK;
}

/* Sets the port of an output of a deferred node. */
static int set_deferred_output(placing *p, qs_port *port, qs_id value) {
    *port = (qs_port){.value = value, .offset = QS_NOWHERE};
    port->found_dims = qs_arena_alloc(&p->plan->arena, QSIM_MAX_RANK, sizeof(*port->found_dims));
    return port->found_dims ? QSIM_OK : QSIM_E_NOMEM;
}

/* Keeps each output of an observed session until the step that completes it has run. */
static int place_observed(placing *p) {
    const qs_graph *g = p->s->graph;
    for (size_t k = 0; k < g->output_count; k++) {
        const size_t i = (size_t)p->plan->shown[k];
        buffer *b = &p->buffers[p->root[g->outputs[i]].value];
        const bool deferred = p->deferred_values[g->outputs[i]];
        if (p->plan->untaken && p->plan->untaken[i]) {
            p->plan->outputs[i] = (qs_port){.value = g->outputs[i], .offset = QS_NOWHERE};
            continue;
        }
        int code = deferred ? set_deferred_output(p, &p->plan->outputs[i], g->outputs[i])
                            : set_port(p, &p->plan->outputs[i], g->outputs[i]);
        if (code)
            return code;
        if (!deferred && b->last < p->plan->ready[k])
            b->last = p->plan->ready[k];
    }
    return QSIM_OK;
}

/*
 * Gives output 0 of step i the buffer of its input k, if no later step reads that buffer, and no
 * other input of the step is in it.
 */
static void take_over(placing *p, int32_t i, int32_t k) {
    const qs_step *s = &p->plan->steps[i];
    const qs_part x = p->root[s->in[k]], y = p->root[s->out[0]];
    buffer *to = &p->buffers[x.value];
    const buffer *from = &p->buffers[y.value];
    if (x.from || y.from || to == from || to->bytes != from->bytes || to->last != i ||
        from->first != i || from->in_place || to->constant != QS_NONE || to->input >= 0)
        return;
    for (int32_t other = 0; other < p->s->graph->nodes[s->node].input_count; other++)
        if (other != k && s->in[other] != QS_NONE && p->root[s->in[other]].value == x.value)
            return;
    to->last = from->last;
    qs_id last = y.value;
    for (qs_id v = last; v != QS_NONE; v = p->next[v]) {
        p->root[v].value = x.value;
        last = v;
    }
    p->next[last] = p->next[x.value];
    p->next[x.value] = y.value;
}

/*
 * Element-wise results are written over an operand: they stay in the cache, and the network takes
 * less memory. In an observed session sums are steps of their own, since what is added is shown.
 */
static void place_over_operands(placing *p) {
    for (size_t i = 0; i < p->plan->step_count; i++)
        for (int32_t k = 0; p->plan->steps[i].in_place >> k; k++)
            if (p->plan->steps[i].in_place >> k & 1)
                take_over(p, (int32_t)i, k);
}

/*
 * An output is written to the caller's buffer, or copied there from the arena. If its bytes are
 * those of a constant, an input or another output, it has a slot of its own for callers that give
 * no buffer.
 */
static int place_outputs(placing *p, const int32_t end) {
    const qs_graph *g = p->s->graph;
    for (size_t i = 0; i < g->output_count; i++) {
        buffer *b = &p->buffers[p->root[g->outputs[i]].value];
        qs_port *port = &p->plan->outputs[i];
        if (p->deferred_values[g->outputs[i]]) {
            if (set_deferred_output(p, port, g->outputs[i]))
                return QSIM_E_NOMEM;
            continue;
        }
        int code = set_port(p, port, g->outputs[i]);
        if (code)
            return code;
        b->last = end;
        bool not_ours = b->constant != QS_NONE ||
                        (b->input >= 0 && p->plan->inputs[b->input].in_place) || b->in_place;
        if (not_ours) {
            add_slot(p, port->bytes, end, end);
            port->offset = (size_t)(p->slot_count - 1);
        } else if (!b->read && b->input < 0 && b->bytes == port->bytes) {
            b->in_place = port->in_place = true;
            code = find_shared(p, port);
            if (code)
                return code;
        }
    }
    return QSIM_OK;
}

/*
 * The buffer of the input that step i may write its output over: no later step reads it, the step
 * reads no other value in it, and input and output begin their buffers. NULL: none.
 */
static buffer *overlapped_input(const placing *p, size_t i) {
    const qs_step *s = &p->plan->steps[i];
    const qs_node *n = &p->s->graph->nodes[s->node];
    if (!s->min_lead || s->reuses)
        return NULL;
    const qs_id in = s->in[0], out = s->out[0];
    buffer *x = &p->buffers[p->root[in].value], *y = &p->buffers[p->root[out].value];
    for (int32_t k = 1; k < n->input_count; k++)
        if (s->in[k] != QS_NONE && p->root[s->in[k]].value == p->root[in].value)
            return NULL;
    const bool ours = x->slot >= 0 && y->slot >= 0 && x != y;
    const bool whole = p->root[in].from == 0 && p->root[out].from == 0;
    return ours && whole && x->last == (int32_t)i && y->first == (int32_t)i ? x : NULL;
}

static int plan_slots(placing *p, size_t *total) {
    qs_plan *plan = p->plan;
    for (size_t i = 0; i < plan->step_count; i++) {
        const buffer *x = overlapped_input(p, i);
        if (!x)
            continue;
        qs_slot *slot = &p->slots[x->slot];
        slot->successor = &p->slots[p->buffers[p->root[plan->steps[i].out[0]].value].slot];
        slot->min_lead = qs_align(plan->steps[i].min_lead, 64);
        slot->min_lag = qs_align(plan->steps[i].min_lag, 64);
    }
    int code = qs_memory_plan(p->s->ctx, p->slots, (size_t)p->slot_count, plan->capacity, total,
                              &plan->live_bytes);
    for (size_t i = 0; i < plan->step_count; i++) {
        const buffer *x = overlapped_input(p, i);
        plan->steps[i].overlaps = x && qs_memory_overlaps(&p->slots[x->slot]);
    }
    return code;
}

static int place_slots(placing *p, qsim_error *error) {
    const qs_graph *g = p->s->graph;
    qs_plan *plan = p->plan;
    size_t total = 0;
    for (size_t v = 0; v < g->value_count; v++) {
        buffer *b = &p->buffers[v];
        bool ours = p->root[v].value == (qs_id)v && b->constant == QS_NONE && b->last >= b->first &&
                    b->first != INT32_MAX && !(b->input >= 0 && plan->inputs[b->input].in_place);
        if (ours && b->bytes >= QS_ARENA_LIMIT)
            return qs_too_large(p->s, (qs_id)v, b->bytes, error);
        if (ours)
            b->slot = add_slot(p, b->bytes, b->first, b->last);
    }
    int32_t scratch = p->slot_count;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].scratch)
            add_slot(p, plan->steps[i].scratch, (int32_t)i, (int32_t)i);
    int code = plan_slots(p, &total);
    if (code == QSIM_E_NOMEM)
        return code;
    if (code || total > QS_ARENA_LIMIT)
        return qs_fail(error, QSIM_E_LIMIT, "%s: activations need %zu bytes, the limit is %zu",
                       p->s->name, total, QS_ARENA_LIMIT);
    plan->arena_bytes = total;
    for (int32_t i = 0; i < p->slot_count; i++)
        assert(p->slots[i].offset % 64 == 0 && p->slots[i].bytes >= QS_SLACK);
    for (size_t i = 0; i < plan->step_count; i++)
        plan->scratch[i] = plan->steps[i].scratch ? p->slots[scratch++].offset : 0;
    return QSIM_OK;
}

static void store_places(placing *p) {
    const qs_graph *g = p->s->graph;
    qs_plan *plan = p->plan;
    for (size_t v = 0; v < g->value_count; v++) {
        const qs_part root = p->root[v];
        const buffer *b = &p->buffers[root.value];
        plan->offset[v] = b->slot < 0 ? QS_NOWHERE : p->slots[b->slot].offset + root.from;
        if (root.value != (qs_id)v && b->constant != QS_NONE)
            plan->address[v] = (uint8_t *)plan->address[root.value] + root.from;
    }
    for (size_t i = 0; i < g->input_count; i++)
        if (!plan->inputs[i].in_place && !plan->inputs[i].fixed)
            plan->inputs[i].offset = plan->offset[g->inputs[i]];
    for (size_t i = 0; i < g->output_count; i++) {
        qs_port *o = &plan->outputs[i];
        o->offset =
            o->offset != QS_NOWHERE ? p->slots[o->offset].offset : plan->offset[g->outputs[i]];
    }
}

int qs_plan_place(const qsim_session *s, const qs_eval *e, qs_plan *plan, const qs_part *part,
                  const bool *kept, const bool *deferred_values) {
    const qs_graph *g = s->graph;
    placing p = {
        .s = s, .plan = plan, .part = part, .kept = kept, .deferred_values = deferred_values};
    qs_arena_init(&p.arena, s->ctx);
    size_t slots = g->value_count + g->output_count + plan->step_count + 1;
    int code = QSIM_E_NOMEM;
    p.root = qs_arena_alloc(&p.arena, g->value_count + 1, sizeof(*p.root));
    p.next = qs_arena_alloc(&p.arena, g->value_count + 1, sizeof(*p.next));
    p.buffers = qs_arena_alloc(&p.arena, g->value_count + 1, sizeof(*p.buffers));
    p.slots = qs_arena_alloc(&p.arena, slots, sizeof(*p.slots));
    plan->offset = qs_arena_alloc(&plan->arena, g->value_count + 1, sizeof(*plan->offset));
    plan->inputs = qs_arena_alloc(&plan->arena, g->input_count + 1, sizeof(*plan->inputs));
    plan->outputs = qs_arena_alloc(&plan->arena, g->output_count + 1, sizeof(*plan->outputs));
    if (!p.root || !p.next || !p.buffers || !p.slots || !plan->offset || !plan->inputs ||
        !plan->outputs)
        goto done;
    init_buffers(&p);
    code = qs_go_on(e->ctx, s->name, e->error);
    if (code)
        goto done;
    find_roots(&p);
    find_lifetimes(&p);
    keep_until_end(&p);
    code = place_inputs(&p);
    if (!code)
        code = s->observed ? place_observed(&p) : place_outputs(&p, (int32_t)plan->step_count);
    if (!code)
        place_over_operands(&p);
    if (!code)
        code = place_slots(&p, e->error);
    if (!code)
        store_places(&p);
done:
    qs_arena_free(&p.arena);
    return code;
}

void qs_plan_rebase(const qsim_session *s, qs_plan *plan, uint8_t *base) {
    assert((uintptr_t)base % 64 == 0);
    for (size_t v = 0; v < s->graph->value_count; v++)
        if (plan->offset[v] != QS_NOWHERE)
            plan->address[v] = base + plan->offset[v];
}
