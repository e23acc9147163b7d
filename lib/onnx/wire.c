/* SPDX-License-Identifier: MIT */
#include "onnx/wire.h"

void qs_wire_begin(qs_wire *wire, qs_span message) {
    static const uint8_t nothing;
    if (!message.data)
        message = (qs_span){&nothing, 0};
    *wire = (qs_wire){message.data, message.data + message.size, NULL};
}

static size_t left(const qs_wire *wire) {
    return (size_t)(wire->end - wire->at);
}

static int malformed(qs_wire *wire, const char *why) {
    wire->problem = why;
    return -1;
}

/* Reads a varint: seven bits a byte, the lowest first; the eighth bit says that more follow. */
static bool long_varint(qs_wire *wire, uint64_t *value) {
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 64 && wire->at != wire->end; shift += 7) {
        const uint64_t byte = *wire->at++;
        if (shift == 63 && byte > 1)
            return false;
        sum |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = sum;
            return true;
        }
    }
    return false;
}

/* Reads a varint; nearly all have one byte. */
static inline bool varint(qs_wire *wire, uint64_t *value) {
    if (left(wire) == 0 || wire->at[0] >= 0x80)
        return long_varint(wire, value);
    *value = *wire->at++;
    return true;
}

static int payload(qs_wire *wire, qs_field *field) {
    uint64_t length;
    if (!varint(wire, &length))
        return malformed(wire, "a length is malformed");
    if (length > left(wire))
        return malformed(wire, "a length reaches beyond the end");
    field->data = (qs_span){wire->at, (size_t)length};
    wire->at += length;
    return 1;
}

/* Reads a little-endian number of `size` bytes. */
static bool fixed(qs_wire *wire, size_t size, uint64_t *value) {
    if (left(wire) < size)
        return false;
    *value = 0;
    for (size_t i = size; i-- > 0;)
        *value = *value << 8 | wire->at[i];
    wire->at += size;
    return true;
}

static int number(qs_wire *wire, qs_field *field) {
    switch (field->type) {
    case PB_WT_VARINT:
        return varint(wire, &field->value) ? 1
                                           : malformed(wire, "a number is malformed or truncated");
    case PB_WT_64BIT:
        return fixed(wire, 8, &field->value) ? 1 : malformed(wire, "a 64-bit number is truncated");
    case PB_WT_32BIT:
        return fixed(wire, 4, &field->value) ? 1 : malformed(wire, "a 32-bit number is truncated");
    default: return malformed(wire, "a field has a wire type that no message uses");
    }
}

int qs_wire_next(qs_wire *wire, qs_field *field) {
    memset(field, 0, sizeof(*field));
    if (wire->at == wire->end)
        return 0;
    const uint8_t *begin = wire->at;
    uint64_t tag;
    if (!varint(wire, &tag) || tag > UINT32_MAX)
        return malformed(wire, "a field tag is malformed");
    field->number = (uint32_t)(tag >> 3);
    field->type = (uint32_t)(tag & 7);
    if (field->number == 0)
        return malformed(wire, "a field has the number 0");
    int code = field->type == PB_WT_STRING ? payload(wire, field) : number(wire, field);
    field->whole.data = begin;
    field->whole.size = (size_t)(wire->at - begin);
    return code;
}

const char *qs_wire_problem(const qs_wire *wire) {
    return wire->problem;
}

/* Number of varints in a packed list: that of the bytes that end one. */
static size_t varint_count(qs_span packed) {
    size_t count = 0;
    for (size_t i = 0; i < packed.size; i++)
        count += packed.data[i] < 0x80;
    return count;
}

qs_span qs_wire_find(qs_span message, uint32_t wanted) {
    qs_span found = {0};
    qs_wire wire;
    qs_field field;
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &field) == 1)
        if (field.number == wanted && field.type == PB_WT_STRING)
            found = field.data;
    return found;
}

bool qs_span_is(qs_span span, const char *text) {
    size_t n = strlen(text);
    return span.size == n && (n == 0 || memcmp(span.data, text, n) == 0);
}

void qs_numbers_begin(qs_numbers *numbers, qs_span message, uint32_t wanted, uint32_t width) {
    memset(numbers, 0, sizeof(*numbers));
    qs_wire_begin(&numbers->message, message);
    numbers->number = wanted;
    numbers->width = width;
}

static int packed_next(qs_numbers *numbers, uint64_t *value) {
    qs_field one = {.type = numbers->width};
    int code = number(&numbers->packed, &one);
    *value = one.value;
    return code;
}

int qs_numbers_next(qs_numbers *numbers, uint64_t *value) {
    qs_field field;
    for (;;) {
        if (numbers->inside) {
            if (left(&numbers->packed) > 0)
                return packed_next(numbers, value);
            numbers->inside = false;
        }
        int code = qs_wire_next(&numbers->message, &field);
        if (code != 1)
            return code;
        if (field.number != numbers->number)
            continue;
        if (field.type == numbers->width) {
            *value = field.value;
            return 1;
        }
        qs_wire_begin(&numbers->packed, field.data);
        numbers->inside = true;
    }
}

int64_t qs_numbers_count(qs_span message, uint32_t wanted, uint32_t width) {
    qs_wire wire;
    qs_field field;
    int64_t count = 0;
    int code;
    qs_wire_begin(&wire, message);
    while ((code = qs_wire_next(&wire, &field)) == 1) {
        if (field.number != wanted)
            continue;
        if (field.type == width) {
            count++;
        } else if (field.type != PB_WT_STRING) {
            return -1;
        } else if (width == PB_WT_VARINT) {
            count += (int64_t)varint_count(field.data);
        } else {
            size_t size = width == PB_WT_32BIT ? 4 : 8;
            if (field.data.size % size != 0)
                return -1;
            count += (int64_t)(field.data.size / size);
        }
    }
    return code < 0 ? -1 : count;
}
