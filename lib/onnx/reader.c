/* SPDX-License-Identifier: MIT */
/* Functions that the files of loading share: messages, names, kept fields, types. */
#include "base/ctx.h"
#include "onnx/reader.h"

#include <stdarg.h>
#include <stdio.h>

int qs_read_fail(qs_reader *r, int code, const char *format, ...) {
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    const qs_node *n = r->at;
    if (!n)
        return qs_fail(r->error, code, "%s: %s", r->name, what);
    qs_span output = {0};
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, n->source);
    while (!n->name[0] && !output.size && qs_wire_next(&wire, &f) == 1)
        if (f.number == NODE_OUTPUT)
            output = f.data;
    if (output.size)
        return qs_fail(r->error, code, "%s: %s (node of '%.*s', %s)", r->name, what,
                       QS_SPAN_TEXT(output), n->op_type);
    return qs_fail(r->error, code, "%s: %s (node '%s', %s)", r->name, what, n->name, n->op_type);
}

int qs_read_nomem(qs_reader *r) {
    return qs_fail(r->error, QSIM_E_NOMEM, "%s: out of memory", r->name);
}

int qs_read_collect(qs_reader *r, int code) {
    enum { MOST = 1000 };
    qsim_model *m = r->model;
    if (!code || !r->collects || code == QSIM_E_NOMEM || m->problem_count >= MOST ||
        qs_stopped(r->ctx))
        return code;
    if (!qs_grow(r->ctx, (void **)&m->problems, &m->problem_capacity, m->problem_count,
                 sizeof(*m->problems)))
        return qs_read_nomem(r);
    m->problems[m->problem_count++] = *r->error;
    qs_error_clear(r->error);
    return QSIM_OK;
}

int qs_read_break(qs_reader *r, qs_span text) {
    if (text.size == 0)
        return QSIM_OK;
    const char *name = qs_read_scratch(r, text);
    if (!name)
        return qs_read_nomem(r);
    qs_id id = qs_graph_find(r->graph, name);
    if (id == QS_NONE)
        id = qs_graph_add_value(r->graph, name);
    if (id < 0)
        return qs_read_nomem(r);
    r->graph->values[id].broken = true;
    return QSIM_OK;
}

const char *qs_read_text(qs_reader *r, qs_span text) {
    return text.size ? qs_arena_string(r->arena, (const char *)text.data, text.size) : "";
}

const char *qs_read_scratch(qs_reader *r, qs_span text) {
    if (!qs_grow(r->ctx, (void **)&r->text, &r->text_capacity, text.size, 1))
        return NULL;
    if (text.size)
        memcpy(r->text, text.data, text.size);
    r->text[text.size] = 0;
    return r->text;
}

int qs_keep_field(qsim_ctx *ctx, qs_span **kept, size_t *capacity, size_t *count, qs_span field) {
    if (*count > 0) {
        qs_span *last = &(*kept)[*count - 1];
        if (last->data + last->size == field.data) {
            last->size += field.size;
            return QSIM_OK;
        }
    }
    if (!qs_grow(ctx, (void **)kept, capacity, *count, sizeof(**kept)))
        return QSIM_E_NOMEM;
    (*kept)[(*count)++] = field;
    return QSIM_OK;
}

/* ---- types ---- */

static int read_dim(qs_reader *r, qs_span message, const char *value, qs_dim *dim) {
    qs_wire wire;
    qs_field f;
    *dim = (qs_dim){-1, NULL};
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number == DIM_VALUE) {
            dim->size = (int64_t)f.value;
            dim->symbol = NULL;
        } else if (f.number == DIM_PARAM) {
            dim->size = -1;
            dim->symbol = f.data.size ? qs_read_text(r, f.data) : NULL;
            if (f.data.size && !dim->symbol)
                return qs_read_nomem(r);
        }
    }
    if (dim->size < -1) /* some exporters write -1 for an unknown size */
        return qs_read_fail(r, QSIM_E_SHAPE, "tensor '%s' has the negative size %lld", value,
                            (long long)dim->size);
    return QSIM_OK;
}

static int read_shape(qs_reader *r, qs_span message, const char *value, qs_type *type) {
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, message);
    if (type->rank < 0)
        type->rank = 0;
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != SHAPE_DIM)
            continue;
        if (type->rank == QSIM_MAX_RANK)
            return qs_read_fail(r, QSIM_E_LIMIT, "tensor '%s' has more than %d axes", value,
                                QSIM_MAX_RANK);
        int code = read_dim(r, f.data, value, &type->dims[type->rank]);
        if (code)
            return code;
        type->rank++;
    }
    return QSIM_OK;
}

static int read_tensor_type(qs_reader *r, qs_span message, const char *value, qs_type *type) {
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        int code = QSIM_OK;
        if (f.number == TENSOR_TYPE_SHAPE)
            code = read_shape(r, f.data, value, type);
        else if (f.number == TENSOR_TYPE_ELEM && f.value > QSIM_INT2)
            code = qs_read_fail(r, QSIM_E_DTYPE, "tensor '%s' has the unknown element type %llu",
                                value, (unsigned long long)f.value);
        else if (f.number == TENSOR_TYPE_ELEM)
            type->dtype = (int32_t)f.value;
        if (code)
            return code;
    }
    return QSIM_OK;
}

static const char *other_type(uint32_t number) {
    switch (number) {
    case TYPE_SEQUENCE: return "sequence";
    case TYPE_MAP: return "map";
    case TYPE_OPAQUE: return "opaque";
    case TYPE_SPARSE: return "sparse tensor";
    case TYPE_OPTIONAL: return "optional";
    default: return NULL;
    }
}

int qs_read_type(qs_reader *r, qs_span message, const char *value, qs_type *type) {
    qs_wire outer, inner;
    qs_field f, g;
    type->present = false;
    type->dtype = QSIM_UNDEFINED;
    type->rank = -1;
    type->other = NULL;
    qs_wire_begin(&outer, message);
    while (qs_wire_next(&outer, &f) == 1) {
        if (f.number != VALUE_TYPE)
            continue;
        qs_wire_begin(&inner, f.data);
        while (qs_wire_next(&inner, &g) == 1) {
            int code = QSIM_OK;
            if (g.number == TYPE_TENSOR)
                code = read_tensor_type(r, g.data, value, type);
            else if (other_type(g.number))
                type->other = other_type(g.number);
            if (code)
                return code;
            type->present = type->present || g.number == TYPE_TENSOR || type->other;
        }
    }
    return QSIM_OK;
}
