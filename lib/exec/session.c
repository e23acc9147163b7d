/* SPDX-License-Identifier: MIT */
/* Creates sessions: runs the passes of the level, then packs every weight once. */
#include "exec/deferred.h"
#include "kernel/context.h"
#include "pass/pass.h"

static int no_memory(const qsim_session *s, qsim_error *error) {
    return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory for a session", s->name);
}

/* ---- passes ---- */

/*
 * Names unnamed nodes after their first output, since passes may remove that output, and profiles
 * and messages name nodes.
 */
static void name_nodes(qs_graph *g) {
    for (size_t i = 0; i < g->order_count; i++) {
        qs_node *n = &g->nodes[g->order[i]];
        if (!n->name[0] && n->output_count > 0 && n->outputs[0] != QS_NONE)
            n->name = g->values[n->outputs[0]].name;
    }
}

static int run_passes(qsim_session *s, int32_t level, int flags, qsim_error *error) {
    const qs_graph *model = s->model->graph;
    s->integer = qs_arena_alloc(&s->arena, model->order_count + 1, sizeof(bool));
    if (!s->integer)
        return no_memory(s, error);
    for (size_t i = 0; i < model->order_count; i++)
        s->node_count += !model->nodes[model->order[i]].removed;
    qs_pass p = {.ctx = s->ctx,
                 .graph = s->graph,
                 .model = s->name,
                 .error = error,
                 .literal = (flags & QS_COMPILE_LITERAL) != 0,
                 .origin = model,
                 .integer = s->integer,
                 .channels_last = s->channels_last};
    name_nodes(s->graph);
    return qs_pipeline_run(&p, QS_FOR_SESSION, level);
}

/* ---- weights ---- */

/*
 * The pages of the mapped file are released after so many bytes of constants, and at the end if
 * there are as many.
 */
#define RELEASE_EVERY ((size_t)1 << 20)
#define RELEASE_LAST  ((size_t)64 * 1024)

/* Releases the pages of constants that have been packed or copied, if there are enough. */
static void release_pages(qsim_session *s, size_t bytes, size_t enough) {
    s->stale += bytes;
    if (s->stale < enough)
        return;
    s->stale = 0;
    for (const qsim_model *m = s->model; m; m = m->base)
        if (m->release_pages)
            m->release_pages(m);
}

/* Packed weights of fewer bytes are in the arena's ordinary blocks. */
#define RESERVED ((size_t)64 * 1024)

/* The constant that packing reads as input `index`, or NULL. */
static const qs_const *packed_const(const qsim_session *s, const qs_node *n, int32_t index) {
    if (n->inputs[index] == QS_NONE || !qs_op_in(n->op->weight_inputs, index))
        return NULL;
    return s->graph->values[n->inputs[index]].data;
}

/*
 * Reserves one block for all packed weights: the bytes of the constants, each counted once, and a
 * sixteenth for padding.
 */
static int reserve(qsim_session *s, const qs_id *packed_by) {
    const qs_graph *g = s->graph;
    size_t bytes = 0;
    bool *counted = qs_calloc(s->ctx, g->value_count + 1, sizeof(*counted)), fits = counted;
    for (size_t i = 0; fits && i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        for (int32_t k = 0;
             packed_by[i] == QS_NONE && qs_op_more_of(n->op)->pack && k < n->input_count; k++) {
            const qs_const *c = packed_const(s, n, k);
            if (c && !counted[n->inputs[k]])
                fits = fits && qs_add(bytes, c->bytes, &bytes);
            if (c)
                counted[n->inputs[k]] = true;
        }
    }
    qs_free(s->ctx, counted);
    if (!fits || !qs_add(bytes, bytes / 16, &bytes))
        return QSIM_E_NOMEM;
    /* Blocks are rounded up to whole large pages: what stays unused serves later allocations. */
    if (bytes % QS_LARGE_PAGE >= QS_WELL_FILLED)
        bytes = qs_align(bytes, QS_LARGE_PAGE) - 256;
    return bytes < RESERVED ? QSIM_OK : qs_arena_reserve(&s->arena, bytes);
}

/* `packed_by[i]`: the node whose packed weights node i of the order uses, or QS_NONE. */
static int pack_each(qsim_session *s, const qs_id *packed_by, const void **kept,
                     qsim_error *error) {
    qs_graph *g = s->graph;
    /* Once packing has seen a stop it stays stopped, since weights may be packed in part. */
    qs_stop stop = {.outer = s->ctx->stop};
    qsim_ctx view;
    int code = QSIM_OK;
    qs_ctx_view(s->ctx, &stop, &view);
    for (size_t i = 0; i < g->order_count && !code; i++) {
        qs_id id = g->order[i];
        code = qs_go_on(&view, s->name, error);
        if (code || !qs_op_more_of(g->nodes[id].op)->pack)
            continue;
        if (packed_by[i] != QS_NONE) {
            s->packed[id] = s->packed[packed_by[i]];
            continue;
        }
        qs_pack p = {.ctx = &view,
                     .graph = g,
                     .node_id = id,
                     .node = &g->nodes[id],
                     .arena = &s->arena,
                     .model = s->name,
                     .error = error,
                     .kept = kept};
        code = qs_op_more_of(g->nodes[id].op)->pack(&p);
        if (!code && p.no_memory)
            code = qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", s->name);
        s->packed[id] = p.result;
        for (int32_t k = 0; p.result && k < g->nodes[id].input_count; k++) {
            const qs_const *c = packed_const(s, &g->nodes[id], k);
            release_pages(s, c ? c->bytes : 0, RELEASE_EVERY);
        }
    }
    return code ? code : qs_go_on(&view, s->name, error);
}

static int pack_all(qsim_session *s, qsim_error *error) {
    const qs_graph *g = s->graph;
    qs_id *packed_by = qs_alloc(s->ctx, g->order_count + 1, sizeof(*packed_by));
    const void **kept = qs_calloc(s->ctx, g->value_count + 1, sizeof(*kept));
    s->packed = qs_arena_alloc(&s->arena, g->node_count + 1, sizeof(*s->packed));
    int code = QSIM_E_NOMEM;
    if (packed_by && kept && s->packed && !qs_find_packed_by(s->ctx, g, packed_by) &&
        !reserve(s, packed_by))
        code = pack_each(s, packed_by, kept, error);
    else
        no_memory(s, error);
    qs_free(s->ctx, (void *)kept);
    qs_free(s->ctx, packed_by);
    return code;
}

/* Marks constants that steps read or that are outputs. */
static void mark_read(const qsim_session *s, bool *read) {
    const qs_graph *g = s->graph;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        bool packed = s->packed[g->order[i]] != NULL;
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE && !(packed && qs_op_in(n->op->weight_inputs, k)))
                read[n->inputs[k]] = true;
    }
    for (size_t i = 0; i < g->output_count; i++)
        read[g->outputs[i]] = true;
}

/* Copies a constant in pieces, so that the file's pages do not stay in memory beside the copy. */
static int copy_constant(qsim_session *s, const qs_const *c, uint8_t *to, qsim_error *error) {
    int code = QSIM_OK;
    for (size_t at = 0, piece; at < c->bytes && !code; at += piece) {
        piece = c->bytes - at < RELEASE_EVERY ? c->bytes - at : RELEASE_EVERY;
        memcpy(to + at, (const uint8_t *)c->data + at, piece);
        release_pages(s, piece, RELEASE_EVERY);
        code = qs_go_on(s->ctx, s->name, error);
    }
    memset(to + c->bytes, 0, QS_SLACK);
    return code;
}

/* Copies the constants that steps read to aligned addresses with slack after them. */
static int place_constants(qsim_session *s, qsim_error *error) {
    qs_graph *g = s->graph;
    s->constants = qs_arena_alloc(&s->arena, g->value_count + 1, sizeof(*s->constants));
    bool *read = qs_calloc(s->ctx, g->value_count + 1, sizeof(*read));
    int code = s->constants && read ? QSIM_OK : no_memory(s, error);
    if (!code)
        mark_read(s, read);
    for (size_t v = 0; v < g->value_count && !code; v++) {
        const qs_const *c = g->values[v].data;
        size_t bytes;
        if (!c || !c->data)
            continue;
        if (!read[v]) {
            s->constants[v] = c->data;
            continue;
        }
        uint8_t *p = qs_add(c->bytes, QS_SLACK, &bytes) ? qs_arena_raw64(&s->arena, bytes) : NULL;
        if (!p) {
            code = no_memory(s, error);
        } else {
            s->constants[v] = p;
            code = copy_constant(s, c, p, error);
        }
    }
    release_pages(s, 0, RELEASE_LAST);
    qs_free(s->ctx, read);
    return code;
}

/* ---- life ---- */

static int name_outputs(qsim_session *s, const qsim_session_options *o, qsim_error *error) {
    const qs_graph *g = s->graph;
    size_t count = o->outputs ? o->output_count : g->output_count;
    s->output_names = qs_arena_alloc(&s->arena, count + 1, sizeof(*s->output_names));
    for (size_t i = 0; s->output_names && i < count; i++) {
        const char *name = o->outputs ? o->outputs[i] : g->values[g->outputs[i]].name;
        if (!name)
            return qs_fail(error, QSIM_E_ARGUMENT, "%s: the name of output %zu is NULL", s->name,
                           i);
        s->output_names[i] = qs_arena_string(&s->arena, name, strlen(name));
        if (!s->output_names[i])
            return no_memory(s, error);
    }
    return s->output_names ? QSIM_OK : no_memory(s, error);
}

static int observe_outputs(qsim_session *s, int flags, qsim_error *error) {
    s->observed = (flags & QS_COMPILE_OBSERVED) != 0;
    if (!s->observed)
        return QSIM_OK;
    s->channels_last =
        qs_arena_alloc(&s->arena, s->graph->output_count + 1, sizeof(*s->channels_last));
    return s->channels_last ? QSIM_OK : no_memory(s, error);
}

static int compile(qsim_session *s, const qsim_session_options *o, int flags, qsim_error *error) {
    if (s->model->inspect_only)
        return qs_fail(error, QSIM_E_STATE, "%s: the model was loaded for inspection only",
                       s->name);
    if (o->reserved)
        return qs_fail(error, QSIM_E_VERSION, "%s: a reserved option is set", s->name);
    if (o->level < QSIM_LEVEL_DEFAULT || o->level > QSIM_LEVEL_ALL)
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: level %d does not exist", s->name,
                       (int)o->level);
    if (!o->outputs && o->output_count > 0)
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: %zu outputs are asked for without their names",
                       s->name, o->output_count);
    int code = qs_graph_clone(s->model->graph, s->ctx, &s->graph);
    if (code)
        return qs_stop_fail(s->ctx, code, s->name, error);
    qs_pass p = {.ctx = s->ctx, .graph = s->graph, .model = s->name, .error = error};
    code = name_outputs(s, o, error);
    if (!code)
        code = qs_pass_outputs(&p, o->outputs, o->output_count);
    if (!code)
        code = observe_outputs(s, flags, error);
    if (!code)
        code = run_passes(s, o->level, flags, error);
    if (!code && qs_find_by_value(s))
        code = no_memory(s, error);
    if (!code)
        code = pack_all(s, error);
    if (!code)
        code = qs_flow_compile(s, o->level, (flags & QS_COMPILE_LITERAL) != 0, error);
    return code ? code : place_constants(s, error);
}

int qs_session_compile(const qsim_model *model, const qsim_session_options *options, int flags,
                       qsim_session **out, qsim_error *error) {
    qsim_session_options o;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "session: no model or no place for the result");
    int code = QS_OPTIONS(o, options, error);
    if (code)
        return code;
    qsim_ctx *ctx;
    code = qs_ctx_hold(o.ctx ? o.ctx : model->ctx, &ctx, error);
    if (code)
        return code;
    qsim_session *s = qs_calloc(ctx, 1, sizeof(*s));
    if (!s) {
        qs_ctx_drop(ctx);
        return qs_fail(error, QSIM_E_NOMEM, "session: out of memory");
    }
    atomic_init(&s->holds, 1);
    s->model = qs_model_hold(model);
    s->ctx = ctx;
    s->name = model->name;
    s->seed = o.seed;
    qs_arena_init(&s->arena, s->ctx);
    code = qs_leave(ctx, compile(s, &o, flags, error), error);
    if (code) {
        qsim_session_free(s);
        return code;
    }
    *out = s;
    return QSIM_OK;
}

int qsim_session_create(const qsim_model *model, const qsim_session_options *options,
                        qsim_session **out, qsim_error *error) {
    int code = qs_session_compile(model, options, 0, out, error);
    if (!code)
        qs_log((*out)->ctx, QSIM_LOG_INFO, "%s: compiled to %zu nodes, %zu bytes of packed weights",
               (*out)->name, (*out)->graph->order_count, (*out)->arena.bytes);
    return code;
}

qsim_session *qs_session_hold(const qsim_session *session) {
    /* Only the reference count changes. */
    qsim_session *s = (qsim_session *)(uintptr_t)session;
    atomic_fetch_add(&s->holds, 1);
    return s;
}

void qsim_session_free(qsim_session *session) {
    if (!session || atomic_fetch_sub(&session->holds, 1) != 1)
        return;
    qsim_model *model = session->model;
    qsim_ctx *ctx = session->ctx;
    qs_flow_release(session);
    qs_graph_free(session->graph);
    qs_arena_free(&session->arena);
    qs_free(ctx, session);
    qsim_model_free(model);
    qs_ctx_drop(ctx);
}

/* ---- inspection ---- */

int32_t qsim_session_input_count(const qsim_session *session) {
    return session ? (int32_t)session->graph->input_count : 0;
}

int32_t qsim_session_output_count(const qsim_session *session) {
    return session ? (int32_t)session->graph->output_count : 0;
}

const char *qsim_session_input_name(const qsim_session *session, int32_t index) {
    if (index < 0 || index >= qsim_session_input_count(session))
        return NULL;
    return session->graph->values[session->graph->inputs[index]].name;
}

const char *qsim_session_output_name(const qsim_session *session, int32_t index) {
    if (index < 0 || index >= qsim_session_output_count(session))
        return NULL;
    return session->output_names[index];
}

int32_t qsim_session_node_integer(const qsim_session *session, int32_t index) {
    if (!session || index < 0 || index >= session->node_count)
        return 0;
    return session->integer[index];
}

size_t qsim_session_bytes(const qsim_session *session) {
    return session ? session->arena.bytes : 0;
}
