/* SPDX-License-Identifier: MIT */
/* Reads tensors whose bytes are in another file, which is opened once for a model. */
#include "onnx/reader.h"
#include "base/ctx.h"

struct location_fields {
    qs_span location, offset, length;
    int locations, offsets, lengths;
};

/* Parses digits; false: there are other characters, none, or the number overflows. */
static bool parse_size(qs_span text, uint64_t *out) {
    uint64_t value = 0;
    if (text.size == 0)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

static void read_location(qs_span tensor, struct location_fields *p) {
    qs_wire wire;
    qs_field f;
    memset(p, 0, sizeof(*p));
    qs_wire_begin(&wire, tensor);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != TENSOR_EXTERNAL)
            continue;
        qs_span key = qs_wire_find(f.data, PAIR_KEY), value = qs_wire_find(f.data, PAIR_VALUE);
        if (qs_span_is(key, "location")) {
            p->location = value;
            p->locations++;
        } else if (qs_span_is(key, "offset")) {
            p->offset = value;
            p->offsets++;
        } else if (qs_span_is(key, "length")) {
            p->length = value;
            p->lengths++;
        }
    }
}

static int open_file(qs_reader *r, const char *location, const char *name, qs_outside *o) {
    qsim_error why = {0};
    int code;
    const char *fault = qs_location_fault(location);
    if (fault)
        return qs_read_fail(r, QSIM_E_VALUE, "'%s': external data location '%s' %s", name, location,
                            fault);
    if (r->external) {
        const void *data = NULL;
        code = r->external(r->external_user, location, &data, &o->size);
        o->data = data;
        if (code)
            return qs_read_fail(r, QSIM_E_IO, "'%s': external data '%s' was not given (code %d)",
                                name, location, code);
        return QSIM_OK;
    }
    if (!r->source || !r->source->folder)
        return qs_read_fail(r, QSIM_E_IO,
                            "'%s': external data '%s': a model in memory has no folder, and no "
                            "callback was given",
                            name, location);
    const bool copy = !r->source->map.mapped; /* like the model */
    code = qs_map_open_below(r->ctx, r->source->folder, location, copy, &o->map, &why);
    if (code)
        return qs_read_fail(r, code, "'%s': %s", name, why.message);
    o->data = o->map.data;
    o->size = o->map.size;
    return QSIM_OK;
}

static int find_file(qs_reader *r, qs_span location, const char *name, const qs_outside **out) {
    struct qs_source *s = r->source;
    for (size_t i = s->outside_count; i-- > 0;)
        if (qs_span_is(location, s->outside[i].location)) {
            *out = &s->outside[i];
            return QSIM_OK;
        }
    qs_outside o = {.location = qs_read_text(r, location)};
    if (!o.location || !qs_grow(r->ctx, (void **)&s->outside, &s->outside_capacity,
                                s->outside_count, sizeof(*s->outside)))
        return qs_read_nomem(r);
    int code = open_file(r, o.location, name, &o);
    if (code)
        return code;
    s->outside[s->outside_count] = o;
    *out = &s->outside[s->outside_count++];
    return QSIM_OK;
}

int qs_read_external(qs_reader *r, qs_span tensor, const char *what, const char *name, size_t bytes,
                     const void **out) {
    struct location_fields p;
    read_location(tensor, &p);
    if (!r->source)
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "%s '%s': external data", what, name);
    if (p.locations != 1 || p.offsets > 1 || p.lengths > 1)
        return qs_read_fail(r, QSIM_E_FORMAT,
                            "%s '%s': external data needs one location and at most one offset and "
                            "length",
                            what, name);
    uint64_t offset = 0, length = bytes;
    if ((p.offsets && !parse_size(p.offset, &offset)) ||
        (p.lengths && !parse_size(p.length, &length)))
        return qs_read_fail(r, QSIM_E_FORMAT,
                            "%s '%s': offset or length of external data is not a number", what,
                            name);
    if (length != bytes)
        return qs_read_fail(r, QSIM_E_FORMAT,
                            "%s '%s': external data has length %llu, the shape needs %zu", what,
                            name, (unsigned long long)length, bytes);
    const qs_outside *o = NULL;
    int code = find_file(r, p.location, name, &o);
    if (code)
        return code;
    if (offset > o->size || length > o->size - offset)
        return qs_read_fail(r, QSIM_E_FORMAT,
                            "%s '%s': external data '%s' ends at %zu, %llu + %llu are needed", what,
                            name, o->location, o->size, (unsigned long long)offset,
                            (unsigned long long)length);
    *out = o->data + offset;
    return QSIM_OK;
}

const char *qsim_model_external_file(const qsim_model *model, int32_t index) {
    const struct qs_source *s = model ? model->source : NULL;
    return s && index >= 0 && (size_t)index < s->outside_count ? s->outside[index].location : NULL;
}

void qs_source_release_pages(const qsim_model *model) {
    const struct qs_source *s = model->source;
    for (size_t i = 0; s && i < s->outside_count; i++)
        qs_map_forget(&s->outside[i].map);
    if (s)
        qs_map_forget(&s->map);
}

bool qs_source_keep(struct qs_source *s, qs_arena *arena) {
    bool kept = true;
    for (size_t i = 0; i < s->outside_count; i++) {
        const char *text = s->outside[i].location;
        s->outside[i].location = kept ? qs_arena_string(arena, text, strlen(text)) : NULL;
        kept = s->outside[i].location != NULL;
    }
    return kept;
}

void qs_source_free(qsim_model *model) {
    struct qs_source *s = model->source;
    if (!s)
        return;
    for (size_t i = 0; i < s->outside_count; i++)
        if (s->outside[i].map.data)
            qs_map_close(model->ctx, &s->outside[i].map);
    qs_map_close(model->ctx, &s->map);
    if (s->release)
        s->release(s->owner);
    qs_free(model->ctx, s->outside);
    qs_free(model->ctx, s->folder);
    qs_free(model->ctx, s);
    model->source = NULL;
}
