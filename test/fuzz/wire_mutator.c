/* SPDX-License-Identifier: MIT */
#include "wire_mutator.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 2048
#define MOST_DEPTH  12

typedef struct field {
    size_t begin;   /* place of the tag */
    size_t length;  /* place of the length; for wire type 2 */
    size_t content; /* place of the content after tag and length */
    size_t end;
    int32_t parent; /* -1: the message itself */
    uint32_t number, wire;
} field;

typedef struct message {
    const uint8_t *data;
    field fields[MOST_FIELDS];
    int32_t count;
} message;

static uint32_t draw(uint64_t *state, uint32_t below) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 2685821657736338717ull) >> 32) % below;
}

static bool get_varint(const uint8_t *data, size_t end, size_t *at, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; *at < end && shift < 70; shift += 7) {
        const uint8_t byte = data[(*at)++];
        *v |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128)
            return true;
    }
    return false;
}

static size_t put_varint(uint8_t *out, uint64_t v) {
    size_t n = 0;
    for (; v > 127; v >>= 7)
        out[n++] = (uint8_t)(v & 127) | 128;
    out[n++] = (uint8_t)v;
    return n;
}

static bool next_field(const uint8_t *data, size_t *at, size_t end, field *f) {
    uint64_t tag, n = 0;
    f->begin = *at;
    if (!get_varint(data, end, at, &tag) || tag >> 3 == 0 || tag >> 3 > 1000)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (uint32_t)(tag & 7);
    f->length = f->content = *at;
    switch (f->wire) {
    case 0:
        if (!get_varint(data, end, at, &n))
            return false;
        n = 0;
        break;
    case 1: n = 8; break;
    case 5: n = 4; break;
    case 2:
        if (!get_varint(data, end, at, &n))
            return false;
        f->content = *at;
        break;
    default: return false;
    }
    if (n > end - *at)
        return false;
    f->end = *at += (size_t)n;
    return true;
}

/* Parses the fields of data[at, end), and contents that parse as messages; false: not a message. */
static bool parse(message *m, size_t at, size_t end, int32_t parent, int depth) {
    const int32_t before = m->count;
    while (at < end && m->count < MOST_FIELDS) {
        const int32_t index = m->count;
        field *f = &m->fields[index];
        if (!next_field(m->data, &at, end, f)) {
            m->count = parent < 0 ? m->count : before;
            return false;
        }
        f->parent = parent;
        m->count++;
        if (f->wire == 2 && depth < MOST_DEPTH && f->end - f->content > 1)
            parse(m, f->content, f->end, index, depth + 1);
    }
    return true;
}

/* Replaces data[from, to) of message `parent` by `n` bytes; corrects the lengths around it. */
static size_t replace(const message *m, uint8_t *data, size_t size, size_t capacity, size_t from,
                      size_t to, const uint8_t *bytes, size_t n, int32_t parent) {
    if (size - (to - from) + n + 10 * MOST_DEPTH > capacity)
        return size;
    memmove(data + from + n, data + to, size - to);
    if (n)
        memcpy(data + from, bytes, n);
    ptrdiff_t grown = (ptrdiff_t)n - (ptrdiff_t)(to - from);
    size = (size_t)((ptrdiff_t)size + grown);
    for (; parent >= 0; parent = m->fields[parent].parent) {
        const field *f = &m->fields[parent];
        const size_t old = f->content - f->length;
        uint8_t length[10];
        const size_t now = put_varint(length, (uint64_t)((ptrdiff_t)(f->end - f->content) + grown));
        memmove(data + f->length + now, data + f->content, size - f->content);
        memcpy(data + f->length, length, now);
        size = size - old + now;
        grown += (ptrdiff_t)now - (ptrdiff_t)old;
    }
    return size;
}

/* Draws a number that readers treat specially. */
static uint64_t telling(uint64_t *state, uint64_t old) {
    static const uint64_t some[] = {0,           1,          2,         7,       8,
                                    16,          17,         255,       65536,   0x7fffffff,
                                    0x80000000u, UINT64_MAX, INT64_MAX, 1u << 20};
    switch (draw(state, 4)) {
    case 0: return old + 1;
    case 1: return old - 1;
    case 2: return draw(state, 32);
    default: return some[draw(state, sizeof(some) / sizeof(some[0]))];
    }
}

/* A new content for a field of any wire type; returns its size. */
static size_t new_content(uint64_t *state, const uint8_t *data, const field *f, uint8_t out[64]) {
    static const char *const texts[] = {"",
                                        "x",
                                        "y",
                                        "..",
                                        "../x",
                                        "/x",
                                        "If",
                                        "Loop",
                                        "Constant",
                                        "\xff",
                                        "a/b",
                                        "float",
                                        "999999999999999999999"};
    size_t at = f->content, n;
    uint64_t v = 0;
    if (f->wire == 0) {
        get_varint(data, f->end, &at, &v);
        return put_varint(out, telling(state, v));
    }
    if (f->wire == 2) {
        const char *text = texts[draw(state, sizeof(texts) / sizeof(texts[0]))];
        n = strlen(text);
        memcpy(out, text, n);
        return n;
    }
    n = f->end - f->content;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)draw(state, 256);
    return n;
}

/* Replaces the content of a field, and its length. */
static size_t refill(message *m, uint8_t *data, size_t size, size_t capacity, const field *f,
                     const uint8_t *content, size_t n) {
    uint8_t bytes[4096 + 10];
    size_t at = f->wire == 2 ? put_varint(bytes, n) : 0;
    if (n > 4096)
        return size;
    memcpy(bytes + at, content, n);
    return replace(m, data, size, capacity, f->length, f->end, bytes, at + n, f->parent);
}

/* Inserts a copy of field `g` of `from` before field `f`. */
static size_t insert(message *m, uint8_t *data, size_t size, size_t capacity, const field *f,
                     const uint8_t *from, const field *g) {
    uint8_t bytes[4096];
    const size_t n = g->end - g->begin;
    if (n > sizeof(bytes))
        return size;
    memcpy(bytes, from + g->begin, n);
    return replace(m, data, size, capacity, f->begin, f->begin, bytes, n, f->parent);
}

size_t fuzz_wire_mutate(uint8_t *data, size_t size, size_t capacity, const uint8_t *other,
                        size_t other_size, uint32_t seed) {
    static message own, theirs;
    uint64_t state = seed * 2654435761ull + 1;
    uint8_t bytes[64], copy[4096];
    own.data = data;
    theirs.data = other ? other : data;
    own.count = theirs.count = 0;
    parse(&own, 0, size, -1, 0);
    parse(&theirs, 0, other ? other_size : size, -1, 0);
    if (own.count == 0 || theirs.count == 0)
        return size;
    const field *f = &own.fields[draw(&state, (uint32_t)own.count)];
    const field *g = &theirs.fields[draw(&state, (uint32_t)theirs.count)];
    size_t n;
    switch (other ? 5 + draw(&state, 2) : draw(&state, 8)) {
    case 0: return replace(&own, data, size, capacity, f->begin, f->end, NULL, 0, f->parent);
    case 1: return insert(&own, data, size, capacity, f, data, f);
    case 2:
        n = put_varint(bytes, (uint64_t)(1 + draw(&state, 26)) << 3 | f->wire);
        return replace(&own, data, size, capacity, f->begin, f->length, bytes, n, f->parent);
    case 3: /* a content of another length */
        if (f->wire == 2 && f->end > f->content) {
            n = draw(&state, (uint32_t)(f->end - f->content));
            n = n < sizeof(copy) ? n : sizeof(copy);
            memcpy(copy, data + f->content, n);
            return refill(&own, data, size, capacity, f, copy, n);
        }
        break;
    case 5: /* the content of another field of this wire type */
        for (int k = 0; k < 20 && g->wire != f->wire; k++)
            g = &theirs.fields[draw(&state, (uint32_t)theirs.count)];
        n = g->end - g->content;
        if (g->wire != f->wire || n > sizeof(copy))
            break;
        memcpy(copy, theirs.data + g->content, n);
        return refill(&own, data, size, capacity, f, copy, n);
    case 6: return insert(&own, data, size, capacity, f, theirs.data, g);
    default: break;
    }
    n = new_content(&state, data, f, bytes);
    return refill(&own, data, size, capacity, f, bytes, n);
}

size_t fuzz_wire_grow(uint8_t *data, size_t size, size_t capacity, uint32_t seed) {
    static message m;
    uint64_t state = seed * 2654435761ull + 1;
    m.data = data;
    m.count = 0;
    parse(&m, 0, size, -1, 0);
    if (m.count == 0 || capacity < size + 10 * MOST_DEPTH)
        return size;
    const int32_t index = (int32_t)draw(&state, (uint32_t)m.count);
    const field *f = &m.fields[index];
    const bool whole = f->wire != 2 || f->content == f->end || draw(&state, 2);
    const size_t from = whole ? f->begin : f->content, n = f->end - from;
    const size_t most = (capacity - size - 10 * MOST_DEPTH) / n;
    const size_t more = draw(&state, (uint32_t)most + 1) * n;
    uint8_t *bytes = malloc(more + n);
    if (bytes)
        memcpy(bytes, data + from, n);
    for (size_t done = n, some; bytes && done < more; done += some) {
        some = done < more - done ? done : more - done;
        memcpy(bytes + done, bytes, some);
    }
    if (bytes)
        size =
            replace(&m, data, size, capacity, from, from, bytes, more, whole ? f->parent : index);
    free(bytes);
    return size;
}
