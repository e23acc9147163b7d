/* SPDX-License-Identifier: MIT */
#include "onnx/wire.h"

void qs_wire_begin(qs_wire *wire, qs_span message) {
    static const uint8_t nothing;
    if (!message.data)
        message = (qs_span){&nothing, 0};
    wire->stream = pb_istream_from_buffer(message.data, message.size);
    wire->end = message.data + message.size;
}

static const uint8_t *position(const qs_wire *wire) {
    return wire->end - wire->stream.bytes_left;
}

static int malformed(qs_wire *wire, const char *why) {
    wire->stream.errmsg = why;
    return -1;
}

static int payload(qs_wire *wire, qs_field *field) {
    uint64_t length;
    if (!pb_decode_varint(&wire->stream, &length))
        return malformed(wire, "a length is malformed");
    if (length > wire->stream.bytes_left)
        return malformed(wire, "a length reaches beyond the end");
    field->data.data = position(wire);
    field->data.size = (size_t)length;
    if (!pb_read(&wire->stream, NULL, (size_t)length))
        return malformed(wire, "a field is truncated");
    return 1;
}

static int number(qs_wire *wire, qs_field *field) {
    uint32_t word;
    switch (field->type) {
    case PB_WT_VARINT:
        return pb_decode_varint(&wire->stream, &field->value)
                   ? 1
                   : malformed(wire, "a number is malformed or truncated");
    case PB_WT_64BIT:
        return pb_decode_fixed64(&wire->stream, &field->value)
                   ? 1
                   : malformed(wire, "a 64-bit number is truncated");
    case PB_WT_32BIT:
        if (!pb_decode_fixed32(&wire->stream, &word))
            return malformed(wire, "a 32-bit number is truncated");
        field->value = word;
        return 1;
    default: return malformed(wire, "a field has a wire type that no message uses");
    }
}

int qs_wire_next(qs_wire *wire, qs_field *field) {
    memset(field, 0, sizeof(*field));
    if (wire->stream.bytes_left == 0)
        return 0;
    const uint8_t *begin = position(wire);
    uint64_t tag;
    if (!pb_decode_varint(&wire->stream, &tag) || tag > UINT32_MAX)
        return malformed(wire, "a field tag is malformed");
    field->number = (uint32_t)(tag >> 3);
    field->type = (uint32_t)(tag & 7);
    if (field->number == 0)
        return malformed(wire, "a field has the number 0");
    int code = field->type == PB_WT_STRING ? payload(wire, field) : number(wire, field);
    field->whole.data = begin;
    field->whole.size = (size_t)(position(wire) - begin);
    return code;
}

const char *qs_wire_problem(const qs_wire *wire) {
    return wire->stream.errmsg ? wire->stream.errmsg : "malformed";
}

size_t qs_wire_varint_count(qs_span packed) {
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
            if (numbers->packed.stream.bytes_left > 0)
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
        if (field.type != PB_WT_STRING)
            return -1;
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
            count += (int64_t)qs_wire_varint_count(field.data);
        } else {
            size_t size = width == PB_WT_32BIT ? 4 : 8;
            if (field.data.size % size != 0)
                return -1;
            count += (int64_t)(field.data.size / size);
        }
    }
    return code < 0 ? -1 : count;
}
