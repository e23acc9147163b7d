/* SPDX-License-Identifier: MIT */
/*
 * qsim_model_save. A loaded model is written as the bytes it was read from, with external data put
 * into the file; any other model is written from its graph, fields in the order of their numbers,
 * unknown ones that were neighbours together. A model that is too large for one file has its large
 * constants in a second one.
 */
#include <assert.h>
#include <stdio.h>

#include "onnx/emit.h"
#include "onnx/reader.h"
#include "base/ctx.h"
#include "base/file.h"

#define SIZE_LIMIT ((size_t)INT32_MAX) /* of a protobuf message */

/* Oldest IR version in which constants need not be inputs too. */
#define IR_FREE_CONSTANTS 4

int64_t qs_ir_of_opset(int64_t opset) {
    static const struct {
        int8_t opset, ir;
    } table[] = {{26, 13}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
                 {15, 8},  {12, 7},  {11, 6},  {10, 5},  {9, 4}};
    for (size_t i = 0; i < QS_COUNT(table); i++)
        if (opset >= table[i].opset)
            return table[i].ir;
    return IR_FREE_CONSTANTS;
}

/* Fields that are kept as they were read, in the order of the file. */
struct kept {
    const qs_span *spans;
    size_t count, done;
};

/* Writes the next kept fields with numbers less than `below`. */
static bool emit_kept(pb_ostream_t *out, struct kept *k, uint32_t below) {
    for (; k->done < k->count; k->done++) {
        qs_wire wire;
        qs_field f;
        qs_wire_begin(&wire, k->spans[k->done]);
        if (qs_wire_next(&wire, &f) == 1 && f.number >= below)
            return true;
        if (!qs_emit_span(out, k->spans[k->done]))
            return false;
    }
    return true;
}

/* ---- a model written from its graph ---- */

/* The second file. */
struct outside {
    const char *location; /* its name, in the folder of the first */
    uint64_t *offset;     /* by value; INSIDE: in the first file */
};
#define INSIDE  UINT64_MAX
#define LARGE   ((size_t)1024) /* least bytes of a constant in the second file */
#define ALIGNED ((uint64_t)64)

struct job {
    const qsim_model *model;
    const bool *used;       /* by value: a constant that a node or output reads */
    struct outside outside; /* offset NULL: there is no second file */
};

static bool emit_constant(pb_ostream_t *out, const struct job *job, size_t value) {
    const qs_value *v = &job->model->graph->values[value];
    const struct outside *o = &job->outside;
    if (o->offset && o->offset[value] != INSIDE)
        return qs_emit_outside(out, GRAPH_INITIALIZER, v->name, v->data, o->location,
                               o->offset[value]);
    return qs_emit_tensor(out, GRAPH_INITIALIZER, v->name, v->data);
}

static bool emit_values(pb_ostream_t *out, const struct job *job) {
    const qs_graph *g = job->model->graph;
    bool ok = true;
    for (size_t i = 0; ok && i < g->input_count; i++)
        ok = qs_emit_value(out, GRAPH_INPUT, &g->values[g->inputs[i]]);
    for (size_t i = 0; ok && i < g->output_count; i++)
        ok = qs_emit_value(out, GRAPH_OUTPUT, &g->values[g->outputs[i]]);
    for (size_t i = 0; ok && i < g->value_count; i++) {
        const qs_value *v = &g->values[i];
        if (v->declared && !v->is_input && !v->is_output && !v->data && v->producer != QS_NONE &&
            !g->nodes[v->producer].removed)
            ok = qs_emit_value(out, GRAPH_VALUE, v);
    }
    return ok;
}

/* False after a stop, too. */
static bool emit_node(pb_ostream_t *out, const struct job *job, const qs_node *n) {
    return !qs_stopped(job->model->ctx) && qs_emit_node(out, job->model->graph, n);
}

static bool graph_body(pb_ostream_t *out, const void *arg) {
    const struct job *job = arg;
    const qs_graph *g = job->model->graph;
    struct kept kept = {job->model->kept_graph, job->model->kept_graph_count, 0};
    bool ok = true;
    for (size_t i = 0; ok && i < g->order_count; i++)
        if (!g->nodes[g->order[i]].removed)
            ok = emit_node(out, job, &g->nodes[g->order[i]]);
    ok = ok && qs_emit_text(out, GRAPH_NAME, g->name && g->name[0] ? g->name : "graph");
    for (size_t i = 0; ok && i < g->value_count; i++)
        if (job->used[i])
            ok = emit_constant(out, job, i);
    return ok && emit_kept(out, &kept, GRAPH_INPUT) && emit_values(out, job) &&
           emit_kept(out, &kept, UINT32_MAX);
}

static bool import_body(pb_ostream_t *out, const void *arg) {
    const qs_import *i = arg;
    return qs_emit_text(out, OPSET_DOMAIN, i->domain) &&
           qs_emit_int(out, OPSET_VERSION, i->version);
}

static bool property_body(pb_ostream_t *out, const void *arg) {
    const qs_property *p = arg;
    return qs_emit_text(out, PAIR_KEY, p->key) && qs_emit_text(out, PAIR_VALUE, p->value);
}

static bool model_body(pb_ostream_t *out, const void *arg) {
    const struct job *job = arg;
    const qsim_model *m = job->model;
    struct kept kept = {m->kept, m->kept_count, 0};
    int64_t ir = qs_ir_of_opset(qs_graph_import(m->graph, ""));
    bool ok = qs_emit_int(out, MODEL_IR_VERSION, m->ir_version > ir ? m->ir_version : ir) &&
              qs_emit_text(out, MODEL_PRODUCER_NAME, "libqsim") &&
              qs_emit_text(out, MODEL_PRODUCER_VERSION, qsim_version_string()) &&
              emit_kept(out, &kept, MODEL_GRAPH) &&
              qs_emit_message(out, MODEL_GRAPH, graph_body, job);
    for (size_t i = 0; ok && i < m->graph->import_count; i++)
        ok = qs_emit_message(out, MODEL_OPSET, import_body, &m->graph->imports[i]);
    ok = ok && emit_kept(out, &kept, MODEL_METADATA);
    for (size_t i = 0; ok && i < m->property_count; i++)
        ok = qs_emit_message(out, MODEL_METADATA, property_body, &m->properties[i]);
    return ok && emit_kept(out, &kept, UINT32_MAX);
}

/* Whether an attribute is a list of graphs, which are kept but not read. */
static bool has_unread_graphs(const qs_graph *g) {
    for (size_t i = 0; i < g->node_count; i++)
        for (int32_t k = 0; !g->nodes[i].removed && k < g->nodes[i].attr_count; k++)
            if (g->nodes[i].attrs[k].type == QSIM_ATTR_OTHER)
                return true;
    return false;
}

/*
 * Marks the constants to write: those that are read, or all if there are graphs that are not read.
 */
static void find_used(const qs_graph *g, bool *used) {
    bool all = has_unread_graphs(g);
    for (size_t i = 0; i < g->value_count; i++)
        used[i] = all || g->values[i].is_output;
    for (size_t i = 0; i < g->node_count; i++)
        for (int32_t k = 0; !g->nodes[i].removed && k < g->nodes[i].input_count; k++)
            if (g->nodes[i].inputs[k] != QS_NONE)
                used[g->nodes[i].inputs[k]] = true;
    for (size_t i = 0; i < g->value_count; i++)
        used[i] = used[i] && g->values[i].data && g->values[i].producer == QS_NONE;
}

/* ---- a loaded model with external data ---- */

static bool is_outside(qs_span tensor) {
    qs_wire wire;
    qs_field f;
    uint64_t location = 0;
    qs_wire_begin(&wire, tensor);
    while (qs_wire_next(&wire, &f) == 1)
        if (f.number == TENSOR_LOCATION)
            location = f.value;
    return location == 1;
}

struct inlined {
    const struct job *job;
    qs_span span;
    qs_id *next_const, *next_node; /* the next initializer and node of the file */
};

/*
 * Writes a graph with its external data. Values of initializers, and nodes, are in the order of the
 * file.
 */
static bool inlined_graph(pb_ostream_t *out, const void *arg) {
    const struct inlined *in = arg;
    const qs_graph *g = in->job->model->graph;
    const uint64_t *offset = in->job->outside.offset;
    qs_id value = *in->next_const, node = *in->next_node;
    qs_wire wire;
    qs_field f;
    bool ok = true;
    qs_wire_begin(&wire, in->span);
    while (ok && qs_wire_next(&wire, &f) == 1) {
        if (f.number == GRAPH_INITIALIZER) {
            const bool made = is_outside(f.data) || (offset && offset[value] != INSIDE);
            ok = made ? emit_constant(out, in->job, (size_t)value) : qs_emit_span(out, f.whole);
            value++;
        } else if (f.number == GRAPH_NODE) {
            ok = emit_node(out, in->job, &g->nodes[node++]);
        } else {
            ok = qs_emit_span(out, f.whole);
        }
    }
    *in->next_const = value;
    *in->next_node = node;
    return ok;
}

static bool inlined_body(pb_ostream_t *out, const void *arg) {
    const qsim_model *m = ((const struct job *)arg)->model;
    qs_id value = 0, node = 0;
    qs_wire wire;
    qs_field f;
    bool ok = true;
    qs_wire_begin(&wire, m->source->bytes);
    while (ok && qs_wire_next(&wire, &f) == 1) {
        qs_id value_before = value, node_before = node;
        struct inlined in = {arg, f.data, &value, &node};
        pb_ostream_t size = PB_OSTREAM_SIZING;
        if (f.number != MODEL_GRAPH) {
            ok = qs_emit_span(out, f.whole);
            continue;
        }
        ok = inlined_graph(&size, &in);
        value = value_before;
        node = node_before;
        ok = ok && pb_encode_tag(out, PB_WT_STRING, MODEL_GRAPH) &&
             pb_encode_varint(out, size.bytes_written) && inlined_graph(out, &in);
    }
    return ok;
}

/* ---- both ---- */

static bool source_body(pb_ostream_t *out, const void *arg) {
    const qsim_model *m = ((const struct job *)arg)->model;
    assert(m->source); /* choose_body chooses another function for other models */
    return qs_emit_span(out, m->source->bytes);
}

static int check_nodes(const qsim_model *m, qsim_error *error) {
    for (size_t i = 0; i < m->graph->order_count; i++) {
        const qs_node *n = &m->graph->nodes[m->graph->order[i]];
        if (n->removed)
            continue;
        if (strcmp(n->domain, "qsim") == 0)
            return qs_fail(error, QSIM_E_STATE, "%s: an internal operator cannot be saved (%s)",
                           m->name, n->op_type);
        if (qs_graph_import(m->graph, n->domain) == 0 && !m->source)
            return qs_node_fail(error, QSIM_E_GRAPH, m->name, n,
                                "the model does not import the domain '%s'", n->domain);
    }
    return QSIM_OK;
}

static int measure(const struct job *job, qs_emit_fn body, size_t *size, qsim_error *error) {
    pb_ostream_t counter = PB_OSTREAM_SIZING;
    const bool whole = body(&counter, job);
    const int stopped = qs_go_on(job->model->ctx, job->model->name, error);
    if (!whole && !stopped)
        return qs_fail(error, QSIM_E_INTERNAL, "%s: the model cannot be sized", job->model->name);
    *size = counter.bytes_written;
    return stopped;
}

static int check_size(const qsim_model *m, size_t size, qsim_error *error) {
    return size <= SIZE_LIMIT
               ? QSIM_OK
               : qs_fail(error, QSIM_E_LIMIT, "%s: %zu bytes; an ONNX file holds 2 GB at most",
                         m->name, size);
}

/*
 * Chooses the function that writes the model, and its argument, and measures its size. The caller
 * frees *used.
 */
static int choose_body(const qsim_model *m, struct job *job, bool **used, qs_emit_fn *body,
                       size_t *size, qsim_error *error) {
    *used = NULL;
    *body = NULL;
    *size = 0;
    *job = (struct job){.model = m};
    if (m->problem_count > 0)
        return qs_fail(error, QSIM_E_STATE, "%s: parts of the model were left out", m->name);
    int code = check_nodes(m, error);
    if (code)
        return code;
    *body = !m->source                      ? model_body
            : m->source->outside_count == 0 ? source_body
            : m->flattened                  ? model_body
                                            : inlined_body;
    if (!m->source || m->flattened) {
        *used = qs_calloc(m->ctx, m->graph->value_count, sizeof(**used));
        if (!*used)
            return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", m->name);
        find_used(m->graph, *used);
        job->used = *used;
    }
    code = measure(job, *body, size, error);
    if (!code)
        atomic_store(&((qsim_model *)(uintptr_t)m)->saved_bytes, *size);
    return code;
}

/* A buffer that is written to its end. */
struct place {
    const qsim_ctx *ctx;
    uint8_t *at;
};

static bool place_write(pb_ostream_t *stream, const pb_byte_t *data, size_t count) {
    struct place *p = stream->state;
    const int stopped = qs_copy(p->ctx, p->at, data, count);
    p->at += count;
    return !stopped;
}

int qsim_model_save_memory(const qsim_model *model, void *buffer, size_t capacity, size_t *need,
                           qsim_error *error) {
    struct job job;
    bool *used;
    qs_emit_fn body;
    qs_error_clear(error);
    if (!model || !need || (!buffer && capacity))
        return qs_fail(error, QSIM_E_ARGUMENT, "save: no model, size or buffer");
    int code = choose_body(model, &job, &used, &body, need, error);
    code = code ? code : check_size(model, *need, error);
    if (!code && *need <= capacity) {
        struct place place = {model->ctx, buffer};
        pb_ostream_t out = {.callback = place_write, .state = &place, .max_size = *need};
        const bool whole = body(&out, &job) && out.bytes_written == *need;
        code = qs_go_on(model->ctx, model->name, error);
        if (!code && !whole)
            code = qs_fail(error, QSIM_E_INTERNAL, "%s: the model changed its size", model->name);
    }
    qs_free(model->ctx, used);
    return qs_leave(model->ctx, code, error);
}

/* A file with a buffer for small writes. */
struct buffered {
    qs_out *out;
    size_t used;
    uint8_t buffer[16384];
};

static bool flush(struct buffered *s) {
    bool ok = s->used == 0 || qs_out_write(s->out, s->buffer, s->used) == QSIM_OK;
    s->used = 0;
    return ok;
}

static bool write_buffered(pb_ostream_t *stream, const pb_byte_t *data, size_t count) {
    struct buffered *s = stream->state;
    if (count > sizeof(s->buffer) - s->used && !flush(s))
        return false;
    if (count > sizeof(s->buffer))
        return qs_out_write(s->out, data, count) == QSIM_OK;
    memcpy(s->buffer + s->used, data, count);
    s->used += count;
    return true;
}

/* ---- a second file ---- */

/* Whether value `i` is a constant that is written. */
static bool is_written(const struct job *job, size_t i) {
    const qs_value *v = &job->model->graph->values[i];
    return job->used ? job->used[i] : v->data && v->producer == QS_NONE;
}

/*
 * Names of the second file: PATH.data, PATH.data1, ... If a model is replaced, the new data gets a
 * free name, since the old model needs its data until the new one takes its place.
 */
#define DATA_NAMES 10

static void name_data(char *name, size_t capacity, const char *path, int which) {
    if (which)
        snprintf(name, capacity, "%s.data%d", path, which);
    else
        snprintf(name, capacity, "%s.data", path);
}

/* Names of the two files that a model is saved to. */
struct paths {
    const char *model;
    char *data, *other; /* `other` is for the data of replaced models */
    size_t capacity;
    bool replace;
};

static int open_data_file(const qsim_model *m, const struct paths *p, qs_out *data,
                          qsim_error *error) {
    int code = QSIM_E_EXISTS;
    for (int i = 0; code == QSIM_E_EXISTS && i < (p->replace ? DATA_NAMES : 1); i++) {
        qs_error_clear(error);
        name_data(p->data, p->capacity, p->model, i);
        code = qs_out_open(m->ctx, p->data, false, data, error);
    }
    return code;
}

/* Removes the data of replaced models: all files but the new one. */
static void remove_other_data(qsim_ctx *ctx, const struct paths *p) {
    for (int i = 0; i < DATA_NAMES; i++) {
        name_data(p->other, p->capacity, p->model, i);
        if (strcmp(p->other, p->data) != 0)
            qs_file_remove(ctx, p->other);
    }
}

/*
 * Sets the offsets of the large constants in the file `name` and checks the size of the model
 * without them.
 */
static int set_offsets(struct job *job, const char *name, qs_emit_fn *body, qsim_error *error) {
    const qsim_model *m = job->model;
    const size_t count = m->graph->value_count;
    const char *slash = strrchr(name, '/');
    uint64_t at = 0;
    size_t size;
    job->outside.offset = qs_calloc(m->ctx, count, sizeof(uint64_t));
    if (!job->outside.offset)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", m->name);
    job->outside.location = slash ? slash + 1 : name;
    for (size_t i = 0; i < count; i++) {
        const bool large = is_written(job, i) && m->graph->values[i].data->bytes >= LARGE;
        job->outside.offset[i] = large ? at : INSIDE;
        if (large)
            at += (m->graph->values[i].data->bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    *body = m->source && !m->flattened ? inlined_body : model_body;
    const int code = measure(job, *body, &size, error);
    return code ? code : check_size(m, size, error);
}

/* Writes the large constants. `file` keeps a failure, which qs_out_commit reports. */
static int write_outside(const struct job *job, qs_out *file) {
    const qs_graph *g = job->model->graph;
    for (size_t i = 0; i < g->value_count; i++)
        if (job->outside.offset[i] != INSIDE &&
            (qs_out_seek(file, job->outside.offset[i]) ||
             qs_out_write(file, g->values[i].data->data, g->values[i].data->bytes)))
            break;
    return file->code || file->stopped;
}

static int write_model(const struct job *job, qs_emit_fn body, qs_out *file, const char *path,
                       qsim_error *error) {
    struct buffered buffered = {.out = file};
    pb_ostream_t out = {.callback = write_buffered, .state = &buffered, .max_size = SIZE_MAX};
    if ((body(&out, job) && flush(&buffered)) || file->code || qs_stop_code(job->model->ctx))
        return QSIM_OK; /* qs_out_commit reports a failure of the file, and a stop */
    return qs_fail(error, QSIM_E_INTERNAL, "%s: the model cannot be written", path);
}

/* Writes both files and then gives the data its name; the caller gives the model its own. */
static int save_both(struct job *job, qs_emit_fn body, const struct paths *p, qs_out *file,
                     qsim_error *error) {
    qs_out data;
    int code = open_data_file(job->model, p, &data, error);
    if (code)
        return code;
    code = set_offsets(job, p->data, &body, error);
    code = code ? code : write_model(job, body, file, p->model, error);
    if (code || file->code || file->stopped) {
        qs_out_abort(&data);
        return code;
    }
    (void)write_outside(job, &data);
    code = qs_out_commit(&data, error);
    if (code && data.placed)
        qs_file_remove(job->model->ctx, p->data);
    return code;
}

static int save_external(struct job *job, qs_emit_fn body, const char *path, bool replace,
                         qsim_error *error) {
    struct paths p = {
        .model = path, .capacity = strlen(path) + sizeof(".data0"), .replace = replace};
    qs_out file;
    p.data = qs_calloc(job->model->ctx, 2, p.capacity);
    p.other = p.data ? p.data + p.capacity : NULL;
    if (!p.data)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", job->model->name);
    int code = qs_out_open(job->model->ctx, path, replace, &file, error);
    if (!code) {
        code = save_both(job, body, &p, &file, error);
        if (code)
            qs_out_abort(&file);
        else if ((code = qs_out_commit(&file, error)) && !file.placed)
            qs_file_remove(job->model->ctx, p.data);
        else if (!code && replace)
            remove_other_data(job->model->ctx, &p);
    }
    qs_free(job->model->ctx, p.data);
    return code;
}

static int save_one(const struct job *job, qs_emit_fn body, const char *path, bool replace,
                    qsim_error *error) {
    qs_out file;
    int code = qs_out_open(job->model->ctx, path, replace, &file, error);
    if (code)
        return code;
    code = write_model(job, body, &file, path, error);
    if (!code)
        return qs_out_commit(&file, error);
    qs_out_abort(&file);
    return code;
}

int qsim_model_save(const qsim_model *model, const char *path, const qsim_save_options *options,
                    qsim_error *error) {
    qsim_save_options o;
    struct job job = {0};
    bool *used = NULL;
    qs_emit_fn body;
    size_t size;
    qs_error_clear(error);
    if (!model || !path)
        return qs_fail(error, QSIM_E_ARGUMENT, "save: no model or no path");
    int code = QS_OPTIONS(o, options, error);
    if (code)
        return code;
    if (o.flags & ~(QSIM_SAVE_REPLACE | QSIM_SAVE_EXTERNAL))
        return qs_fail(error, QSIM_E_VERSION, "save: unknown flags (0x%x)", (unsigned)o.flags);
    if (o.reserved)
        return qs_fail(error, QSIM_E_VERSION, "save: a reserved option is set");
    code = choose_body(model, &job, &used, &body, &size, error);
    const bool replace = (o.flags & QSIM_SAVE_REPLACE) != 0;
    if (!code && ((o.flags & QSIM_SAVE_EXTERNAL) || size > SIZE_LIMIT))
        code = save_external(&job, body, path, replace, error);
    else if (!code)
        code = save_one(&job, body, path, replace, error);
    qs_free(model->ctx, job.outside.offset);
    qs_free(model->ctx, used);
    return qs_leave(model->ctx, code, error);
}

int64_t qsim_model_bytes(const qsim_model *model) {
    size_t need;
    if (!model)
        return 0;
    if (model->source) {
        int64_t bytes = model->bytes;
        for (size_t i = 0; i < model->source->outside_count; i++)
            bytes += (int64_t)model->source->outside[i].size;
        return bytes;
    }
    need = atomic_load(&model->saved_bytes);
    struct job job;
    bool *used = NULL;
    qs_emit_fn body;
    const int code = need ? QSIM_OK : choose_body(model, &job, &used, &body, &need, NULL);
    qs_free(model->ctx, used);
    return code ? code : (int64_t)need;
}
