/* SPDX-License-Identifier: MIT */
/*
 * Calibration: chooses the tensors to observe, and feeds batches. A tensor is observed when a step
 * has made it, in the layout of the step, so that its memory is kept no longer than the network
 * needs it. The statistics of a batch are added after all of it has been observed, so that refused
 * data changes nothing.
 */
#include <assert.h>

#include "base/ctx.h"
#include "exec/run.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/rules.h"
#include "pass/layout/layout.h"
#include "ptq/equalize.h"
#include "ptq/gram.h"
#include "ptq/no_memory.h"

/* ---- which tensors ---- */

typedef struct listing {
    qsim_calibration *c;
    qsim_model *prepared;
    qs_graph *g; /* the main graph or one inside of it */
    const qsim_calibration_options *options;
    bool *wanted;  /* by value id */
    int32_t *axis; /* by value id: of the channels whose means are kept; -1: none */
    qsim_error *error;
} listing;

static bool is_observable(const qs_graph *g, qs_id value) {
    const qs_value *v = value == QS_NONE ? NULL : &g->values[value];
    return v && v->name[0] && v->dtype == QSIM_FLOAT && !v->data && !qs_value_is_sequence(g, value);
}

/*
 * Marks the input of a layer with weights for means, by which the errors of weights are multiplied.
 */
static void mark_means(const listing *l, const qs_node *n) {
    const qs_id x = qs_node_input(n, 0);
    const qs_const *w = qs_node_const(l->g, n, 1);
    if (!w || w->dtype != QSIM_FLOAT || !is_observable(l->g, x) || l->axis[x] >= 0)
        return;
    const int32_t rank = l->g->values[x].rank;
    if ((n->op->traits & QS_NEEDS_LAST) && qs_op_in(n->op->weight_inputs, 1))
        l->axis[x] = 1;
    else if ((n->op->traits & QS_MULTIPLIES) && w->rank == 2 && rank > 0)
        l->axis[x] = rank - 1;
    l->wanted[x] |= l->axis[x] >= 0;
}

/* Marks the tensors that get a scale with these options. */
static int mark_scaled(const listing *l, const qsim_quantize_options *options) {
    qsim_quantize_options own;
    qs_quantizer q;
    int code = qs_quantizer_options(options, &own, l->error);
    if (code || own.mode != QSIM_MODE_STATIC)
        return code;
    code = qs_quantizer_init(&q, l->prepared, l->g, NULL, &own, l->error);
    if (!code) {
        qs_activation_mark(&q);
        for (size_t i = 0; i < q.value_count; i++)
            l->wanted[i] |= q.activations[i].quantized;
    }
    qs_quantizer_free(&q);
    return code;
}

static int mark_named(const listing *l, const char *pattern) {
    bool found = false;
    if (!pattern)
        return qs_fail(l->error, QSIM_E_ARGUMENT, "calibration: a tensor's pattern is NULL");
    for (size_t i = 0; i < l->g->value_count; i++)
        if (is_observable(l->g, (qs_id)i) && qs_glob(pattern, l->g->values[i].name))
            found = l->wanted[i] = true;
    return found ? QSIM_OK
                 : qs_fail(l->error, QSIM_E_NOT_FOUND, "%s: no float activation is called '%s'",
                           l->prepared->name, pattern);
}

/* Marks all tensors if no tensor gets a scale, so that their ranges can be inspected. */
static void mark_all_if_none(const listing *l) {
    bool any = false;
    for (size_t i = 0; i < l->g->value_count; i++)
        any |= l->wanted[i] && is_observable(l->g, (qs_id)i);
    for (size_t i = 0; i < l->g->value_count && !any; i++)
        l->wanted[i] = true;
}

/*
 * Marks the tensors that equalization could multiply by factors: it needs the extremes of their
 * channels.
 */
static int mark_channels(const listing *l) {
    qs_uses uses;
    int code = qs_graph_uses(l->g, &uses) ? QSIM_E_NOMEM : QSIM_OK;
    for (size_t v = 0; v < l->g->value_count && !code; v++) {
        qs_site s;
        code = qs_site_find(l->c->ctx, l->g, &uses, (qs_id)v, &s)
                   ? QSIM_E_NOMEM
                   : qs_go_on(l->c->ctx, "calibration", l->error);
        for (size_t i = 0; i < s.tensor_count && s.reader_count > 0; i++)
            if (l->axis[s.tensors[i].value] < 0)
                l->axis[s.tensors[i].value] = s.tensors[i].axis;
        qs_site_free(l->c->ctx, &s);
    }
    qs_uses_free(l->g, &uses);
    return code;
}

static int choose_tensors(const listing *l) {
    const qsim_calibration_options *o = l->options;
    const qsim_rule all = {.struct_size = sizeof(all), .pattern = "*", .action = QSIM_RULE_INT8};
    const bool inside = l->g != l->prepared->graph;
    int code = QSIM_OK;
    if (o->tensor_count > 0 && !o->tensors)
        return qs_fail(l->error, QSIM_E_ARGUMENT, "calibration: the tensors' patterns are missing");
    for (size_t k = 0; k < l->g->order_count; k++)
        mark_means(l, &l->g->nodes[l->g->order[k]]);
    if (!inside)
        code = mark_channels(l);
    if (code)
        return code;
    if (o->tensor_count > 0)
        memset(l->wanted, 0, l->g->value_count * sizeof(*l->wanted));
    for (size_t i = 0; i < o->tensor_count && !inside && !code; i++)
        code = mark_named(l, o->tensors[i]);
    if (code || o->tensor_count > 0)
        return code;
    if (o->quantize)
        code = mark_scaled(l, o->quantize);
    /* All that get a scale in either format, with or without rules for more nodes in integers,
     * which may be nodes of curves. */
    for (int i = 0; i < 4 && !o->quantize && !code; i++) {
        const qsim_quantize_options q = {.struct_size = sizeof(q),
                                         .format = i % 2,
                                         .rules = &all,
                                         .rule_count = (size_t)i / 2,
                                         .split_curves = i / 2};
        code = mark_scaled(l, &q);
    }
    if (!inside)
        mark_all_if_none(l);
    return code;
}

static int add_tensor(void *user, qs_id value) {
    const listing *l = user;
    qsim_calibration *c = l->c;
    const int stopped = qs_go_on(c->ctx, "calibration", l->error);
    if (stopped)
        return stopped;
    if (!is_observable(l->g, value) || !l->wanted[value])
        return QSIM_OK;
    const char *name = l->g->values[value].name;
    int code = qs_calibration_add(c, name, strlen(name), l->error);
    if (code)
        return code;
    qs_seen *s = &c->tensors[c->count - 1];
    code = qs_record_create(c->ctx, c->bits, &s->batch);
    s->kept.means.axis = s->batch.means.axis = l->axis[value];
    return code;
}

/* Calls `each` for the first inputs of a graph, then for the outputs of its nodes, in order. */
static int for_tensors(const qs_graph *g, size_t inputs, int (*each)(void *user, qs_id value),
                       void *user) {
    int code = QSIM_OK;
    for (size_t i = 0; i < inputs && !code; i++)
        code = each(user, g->inputs[i]);
    for (size_t k = 0; k < g->order_count && !code; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        for (int32_t i = 0; i < n->output_count && !code; i++)
            code = each(user, n->outputs[i]);
    }
    return code;
}

static int list_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub);

/*
 * Lists the tensors of graphs inside of a graph, then its own: the first `inputs` inputs, and what
 * nodes make.
 */
static int list_graph(listing *l, size_t inputs) {
    l->wanted = qs_calloc(l->c->ctx, l->g->value_count + 1, sizeof(*l->wanted));
    l->axis = qs_alloc(l->c->ctx, l->g->value_count + 1, sizeof(*l->axis));
    if (!l->wanted || !l->axis)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < l->g->value_count; i++)
        l->axis[i] = -1;
    int code = qs_subgraphs_visit(l->g, list_inside, l);
    l->c->inside = l->c->count;
    if (!code)
        code = choose_tensors(l);
    return code ? code : for_tensors(l->g, inputs, add_tensor, l);
}

static void end_listing(const listing *l) {
    qs_free(l->c->ctx, l->wanted);
    qs_free(l->c->ctx, l->axis);
}

static int list_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    const listing *outer = user;
    listing l = *outer;
    bool broken;
    (void)g;
    l.g = sub->graph;
    int code = qs_ptq_infer_inside(l.g, l.prepared->name, &broken);
    if (code || broken)
        return code;
    code = list_graph(&l, (size_t)sub->fed);
    for (int32_t i = 0; i < sub->capture_count && !code; i++) {
        const qs_id inner = sub->captures[i].inner, x = n->inputs[sub->captures[i].input];
        outer->wanted[x] |= l.wanted[inner];
        outer->axis[x] = outer->axis[x] < 0 ? l.axis[inner] : outer->axis[x];
    }
    end_listing(&l);
    return code;
}

/* A subgraph whose listed tensors become its outputs. */
typedef struct watching {
    const qsim_calibration *c;
    qs_subgraph *sub;
} watching;

static int watch_tensor(void *user, qs_id value) {
    const watching *w = user;
    const qs_id at =
        value == QS_NONE ? QS_NONE : qs_names_find(w->c->names, w->sub->graph->values[value].name);
    if (at == QS_NONE)
        return QSIM_OK;
    w->sub->watched++;
    return qs_graph_push_output(w->sub->graph, value);
}

static int watch_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    watching w = {user, sub};
    (void)g, (void)n;
    const int code = for_tensors(sub->graph, (size_t)sub->fed, watch_tensor, &w);
    return code ? QSIM_E_NOMEM : qs_subgraphs_visit(sub->graph, watch_inside, user);
}

/* ---- tensors whose values are those of others ---- */

/* Whether the values of a tensor are counted: else its histogram is the sum of others'. */
static bool is_counted(const qs_seen *s) {
    return s->part_count == 0;
}

static bool is_read(const qs_seen *s) {
    return is_counted(s) || s->batch.means.axis >= 0;
}

/*
 * The index in the calibration of the tensor that a node makes by moving elements, if no products
 * of its rows are wanted; or QS_NONE.
 */
static qs_id moved_tensor(const qsim_calibration *c, const qs_graph *g, const qs_node *n) {
    if (!(n->op->traits & QS_KEEPS_ONCE) || !is_observable(g, n->outputs[0]))
        return QS_NONE;
    const qs_id at = qs_names_find(c->names, g->values[n->outputs[0]].name);
    bool plain = at != QS_NONE;
    for (size_t i = 0; i < c->gram_count && plain; i++)
        plain = c->grams[i].tensor != (size_t)at;
    return plain ? at : QS_NONE;
}

/*
 * Appends the observed tensors that have the values of an operand, and returns their number;
 * `parts` NULL: only counts them. 0: the operand is not observed, or it is an input, which is not
 * an input of the session if no node reads it.
 */
static size_t add_parts(const qsim_calibration *c, const qs_graph *g, qs_id operand,
                        int32_t *parts) {
    const bool made = is_observable(g, operand) && g->values[operand].producer != QS_NONE;
    const qs_id at = made ? qs_names_find(c->names, g->values[operand].name) : QS_NONE;
    const qs_seen *s = at == QS_NONE ? NULL : &c->tensors[at];
    assert(!parts || s); /* the caller has counted the parts, and there are some */
    if (parts && is_counted(s))
        *parts = at;
    else if (parts)
        memcpy(parts, s->parts, s->part_count * sizeof(*parts));
    return !s ? 0 : is_counted(s) ? 1 : s->part_count;
}

/*
 * Finds tensors that need not be counted, or not even read: the values of a tensor of moved
 * elements are those of the operands together, and its histogram is the sum of theirs.
 */
static int find_parts(qsim_calibration *c, const qs_graph *g) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        const qs_id at = moved_tensor(c, g, n);
        const int32_t operands = at == QS_NONE ? 0 : qs_operand_count(g, n);
        size_t count = 0, all = operands > 0;
        for (int32_t i = 0; i < operands; i++) {
            const size_t some = add_parts(c, g, n->inputs[i], NULL);
            all &= some > 0;
            count += some;
        }
        if (!all)
            continue;
        qs_seen *s = &c->tensors[at];
        s->parts = qs_arena_alloc(&c->arena, count, sizeof(*s->parts));
        if (!s->parts)
            return QSIM_E_NOMEM;
        for (int32_t i = 0; i < operands; i++)
            s->part_count += add_parts(c, g, n->inputs[i], s->parts + s->part_count);
    }
    return QSIM_OK;
}

/* ---- create ---- */

/*
 * Appends the names of the model's outputs, if branches of the graph may be left out or graphs
 * inside of it are watched. Returns the number of names.
 */
static size_t add_outputs(const qs_graph *g, bool chooses, const char **names, size_t count) {
    for (size_t k = 0; k < g->order_count; k++)
        chooses |= (g->nodes[g->order[k]].op->traits & QS_CHOOSES) != 0;
    for (size_t i = 0; i < g->output_count && chooses; i++)
        if (!qs_value_is_sequence(g, g->outputs[i]))
            names[count++] = g->values[g->outputs[i]].name;
    return count;
}

/* Compiles the graph up to the tensors that are read. */
static int compile(qsim_calibration *c, qsim_error *error) {
    const qs_graph *g = c->prepared->graph;
    const char **names = qs_alloc(c->ctx, c->count + g->output_count + 1, sizeof(*names));
    size_t count = 0;
    qsim_model *m = NULL;
    int code = names ? qs_model_derive(c->prepared, &m, error) : QSIM_E_NOMEM;
    if (!code)
        code = qs_subgraphs_visit(m->graph, watch_inside, c);
    for (size_t i = 0; i < c->count && !code; i++) {
        c->read_count += is_read(&c->tensors[i]);
        if (i >= c->inside && is_read(&c->tensors[i]) &&
            !g->values[qs_graph_find(g, c->tensors[i].name)].is_input)
            names[count++] = c->tensors[i].name;
    }
    const size_t all = code ? 0 : add_outputs(g, c->inside > 0, names, count);
    qsim_session_options options = {
        .struct_size = sizeof(options), .outputs = names, .output_count = all};
    if (!code)
        code = qs_session_compile(m, &options, QS_COMPILE_OBSERVED, &c->session, error);
    qsim_model_free(m);
    if (!code && all > count)
        c->session->shown_count = count;
    if (!code)
        code = qsim_run_create(c->session, &c->run, error);
    for (int32_t i = 0; !code && i < qsim_session_input_count(c->session); i++) {
        qs_id at = qs_names_find(c->names, qsim_session_input_name(c->session, i));
        if (at != QS_NONE)
            c->tensors[at].input = i;
    }
    qs_free(c->ctx, names);
    return code;
}

static int read_options(qsim_calibration *c, const qsim_calibration_options *o, qsim_error *error) {
    if (o->batch_axis < 0 || o->batch_axis >= QSIM_MAX_RANK)
        return qs_fail(error, QSIM_E_ARGUMENT, "calibration: there is no batch axis %d",
                       o->batch_axis);
    int code = qs_observer_bits(o->bins, &c->bits, error);
    if (code)
        return code;
    c->batch_axis = o->batch_axis;
    c->progress = o->progress;
    c->progress_user = o->progress_user;
    return qs_watch_create(c->ctx, c->bits, &c->watch);
}

static int build(qsim_calibration *c, const qsim_model *model,
                 const qsim_calibration_options *options, qsim_error *error) {
    listing l = {.c = c, .options = options, .error = error};
    int code = read_options(c, options, error);
    if (!code && qsim_model_hash(model, c->model))
        code = QSIM_E_NOMEM;
    if (!code)
        code = qs_ptq_prepare(model, &c->prepared, error);
    if (code)
        return code;
    l.prepared = c->prepared;
    l.g = c->prepared->graph;
    code = list_graph(&l, l.g->input_count);
    end_listing(&l);
    if (!code && c->count == 0)
        code = qs_fail(error, QSIM_E_GRAPH, "%s: no activation is float32 and has a name",
                       model->name);
    if (!code)
        code = qs_gram_create(c, options->quantize, error);
    if (!code)
        code = find_parts(c, l.g);
    return code ? code : compile(c, error);
}

int qsim_calibration_create(const qsim_model *model, const qsim_calibration_options *options,
                            qsim_calibration **out, qsim_error *error) {
    qsim_calibration_options own;
    qsim_calibration *c = NULL;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail_missing(error, "calibration");
    int code = QS_OPTIONS(own, options, error);
    if (!code)
        code = qs_ptq_refuse_quantized(model, QSIM_MODE_STATIC, error);
    if (!code)
        code = qs_no_memory_in("calibration", qs_calibration_new(model->ctx, &c, error), error);
    if (code)
        return code;
    code = qs_no_memory_in("calibration", build(c, model, &own, error), error);
    code = qs_leave(c->ctx, code, error);
    if (code) {
        qsim_calibration_free(c);
        return code;
    }
    *out = c;
    return QSIM_OK;
}

/* ---- feed ---- */

typedef struct feeding {
    qsim_calibration *c;
    int64_t samples;
    uint64_t done; /* tensors */
    qs_seen *next; /* probably shown next, as tensors are listed in order; or their end */
} feeding;

/* The layout of a tensor in memory, by samples and channels, and what is wanted of it. */
static qs_watched watched(const feeding *f, const qs_seen *s, const qsim_tensor *t, int32_t axis) {
    const bool many = t->rank > 0 && axis != 0 && f->c->batch_axis == 0 && f->samples > 0 &&
                      t->dims[0] % f->samples == 0;
    qs_watched w = {.x = t->data,
                    .samples = many ? (size_t)f->samples : 1,
                    .outer = 1,
                    .channels = 1,
                    .inner = 1,
                    .means = axis >= 0,
                    .counted = is_counted(s),
                    .repeats = s < f->c->tensors + f->c->inside};
    for (int32_t i = 0; i < t->rank; i++) {
        const size_t size = (size_t)(many && i == 0 ? t->dims[0] / f->samples : t->dims[i]);
        if (i == axis)
            w.channels = size;
        else if (i < axis || axis < 0)
            w.outer *= size;
        else
            w.inner *= size;
    }
    return w;
}

static int watch(feeding *f, qs_seen *s, const qsim_tensor *t, bool last, qsim_error *error) {
    qsim_calibration *c = f->c;
    int32_t axis = s->batch.means.axis;
    if (last && axis >= 0)
        axis = qs_layout_axis(axis, t->rank);
    const qs_watched w = watched(f, s, t, axis);
    qs_observer_expect(s->batch.observer, s->kept.observer->exponent);
    int code = qs_watch_tensor(&c->watch, &w, &s->batch);
    if (!code && c->gram_count > 0)
        code = qs_gram_add(c, (size_t)(s - c->tensors), t, last, c->samples, f->samples);
    const int stopped = qs_go_on(c->ctx, "calibration", error);
    if (stopped)
        return stopped;
    if (code) {
        const bool value = code == QSIM_E_VALUE;
        qs_fail(error, code, "calibration: tensor '%s': %s", s->name,
                value ? "holds a NaN or an infinity" : qsim_error_text(code));
        if (value && s->input < 0)
            qs_hint(error, "if the inputs are finite, look at the weights");
        return code;
    }
    f->done++;
    if (c->progress && c->progress(c->progress_user, s->name, f->done, c->read_count))
        return qs_fail(error, QSIM_E_CANCELLED, "calibration: cancelled after tensor '%s'",
                       s->name);
    return QSIM_OK;
}

/* A model's output that is not listed only tells which branches are taken. */
static int observe(void *user, const char *output, const qsim_tensor *value, bool channels_last,
                   qsim_error *error) {
    feeding *f = user;
    const qsim_calibration *c = f->c;
    qs_seen *s = f->next;
    if (s == c->tensors + c->count || strcmp(s->name, output) != 0) {
        const qs_id at = qs_names_find(c->names, output);
        if (at == QS_NONE)
            return QSIM_OK;
        s = &c->tensors[at];
    }
    f->next = s + 1;
    return watch(f, s, value, channels_last, error);
}

/* Observes inputs in the caller's memory; the run reports errors of those that are skipped here. */
static int watch_inputs(feeding *f, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    int code = QSIM_OK;
    for (size_t i = 0; i < f->c->count && !code; i++) {
        qs_seen *s = &f->c->tensors[i];
        size_t bytes;
        if (s->input < 0 || (size_t)s->input >= count)
            continue;
        const qsim_tensor *t = &inputs[s->input];
        if (!qsim_tensor_size(t->dtype, t->rank, t->dims, NULL, &bytes) && t->data &&
            t->bytes >= bytes && (uintptr_t)t->data % sizeof(float) == 0)
            code = watch(f, s, t, false, error);
    }
    return code;
}

/* Allocates what adding the batch's statistics needs, then adds them, which cannot fail. */
static int commit(feeding *f, qsim_error *error) {
    qsim_calibration *c = f->c;
    const qs_reads *reads = &c->ctx->kernels->ew->reads;
    if (!qs_add64(c->samples, f->samples, &f->samples))
        return qs_fail(error, QSIM_E_LIMIT, "calibration: too many samples");
    for (size_t i = 0; i < c->count; i++) {
        qs_seen *s = &c->tensors[i];
        int code = qs_go_on(c->ctx, "calibration", error);
        if (code)
            return code;
        code = qs_record_reserve(c->ctx, &s->kept, &s->batch);
        for (size_t k = 0; k < s->part_count && !code; k++)
            code = qs_observer_reserve(s->kept.observer, c->tensors[s->parts[k]].batch.observer);
        if (code)
            return qs_fail(error, code, "calibration: tensor '%s': %s", s->name,
                           qsim_error_text(code));
    }
    for (size_t i = 0; i < c->count; i++) {
        qs_seen *s = &c->tensors[i];
        qs_record_merge(&s->kept, &s->batch, c->samples, reads);
        for (size_t k = 0; k < s->part_count; k++) {
            const qs_record *part = &c->tensors[s->parts[k]].batch;
            if (is_read(s)) /* its own extremes are known */
                (void)qs_observer_merge(s->kept.observer, part->observer, reads);
            else
                qs_record_merge_values(&s->kept, part, c->samples, reads);
        }
    }
    c->samples = f->samples;
    return QSIM_OK;
}

int qsim_calibration_feed(qsim_calibration *c, const qsim_tensor *inputs, size_t input_count,
                          qsim_error *error) {
    qs_error_clear(error);
    if (!c || (input_count > 0 && !inputs))
        return qs_fail_missing(error, "calibration");
    if (!c->run)
        return qs_fail(error, QSIM_E_STATE, "calibration: a loaded calibration takes no data");
    feeding f = {.c = c, .samples = 1, .next = c->tensors};
    /* Checks the shapes of the inputs, which are observed before the run begins. */
    int code = qsim_run_reserve(c->run, inputs, input_count, error);
    if (!code && input_count > 0 && inputs[0].rank > c->batch_axis)
        f.samples = inputs[0].dims[c->batch_axis];
    if (!code)
        code = watch_inputs(&f, inputs, input_count, error);
    if (!code)
        code = qs_run_observe(c->run, inputs, input_count, observe, &f, error);
    qs_watch_end(&c->watch);
    if (!code)
        code = commit(&f, error);
    qs_gram_end_batch(c, code == QSIM_OK);
    for (size_t i = 0; i < c->count; i++)
        qs_record_reset(&c->tensors[i].batch);
    return qs_leave(c->ctx, qs_no_memory_in("calibration", code, error), error);
}
