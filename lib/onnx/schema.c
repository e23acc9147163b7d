/* SPDX-License-Identifier: MIT */
#include "onnx/schema.h"

#include "onnx/onnx_fields.h"

enum kind { INT = 1, FLOAT, TEXT, BYTES, MESSAGE, INTS, FLOATS, DOUBLES };

struct rule {
    uint8_t number, kind, message;
};

#define SUB(number, message)                                                                       \
    { number, MESSAGE, QS_MESSAGE_##message }

static const struct rule model_rules[] = {
    {MODEL_IR_VERSION, INT, 0},        {MODEL_PRODUCER_NAME, TEXT, 0},
    {MODEL_PRODUCER_VERSION, TEXT, 0}, {MODEL_DOMAIN, TEXT, 0},
    {MODEL_VERSION, INT, 0},           {MODEL_DOC, BYTES, 0},
    SUB(MODEL_GRAPH, GRAPH),           SUB(MODEL_OPSET, OPSET),
    SUB(MODEL_METADATA, PAIR),         SUB(MODEL_TRAINING, TRAINING),
    SUB(MODEL_FUNCTION, FUNCTION),     {0}};
static const struct rule graph_rules[] = {SUB(GRAPH_NODE, NODE),
                                          {GRAPH_NAME, TEXT, 0},
                                          SUB(GRAPH_INITIALIZER, TENSOR),
                                          {GRAPH_DOC, BYTES, 0},
                                          SUB(GRAPH_INPUT, VALUE),
                                          SUB(GRAPH_OUTPUT, VALUE),
                                          SUB(GRAPH_VALUE, VALUE),
                                          SUB(GRAPH_ANNOTATION, ANNOTATION),
                                          SUB(GRAPH_SPARSE, SPARSE),
                                          SUB(GRAPH_METADATA, PAIR),
                                          {0}};
static const struct rule node_rules[] = {{NODE_INPUT, TEXT, 0},     {NODE_OUTPUT, TEXT, 0},
                                         {NODE_NAME, TEXT, 0},      {NODE_OP_TYPE, TEXT, 0},
                                         SUB(NODE_ATTRIBUTE, ATTR), {NODE_DOC, BYTES, 0},
                                         {NODE_DOMAIN, TEXT, 0},    {NODE_OVERLOAD, TEXT, 0},
                                         SUB(NODE_METADATA, PAIR),  {0}};
static const struct rule attr_rules[] = {{ATTR_NAME, TEXT, 0},
                                         {ATTR_F, FLOAT, 0},
                                         {ATTR_I, INT, 0},
                                         {ATTR_S, BYTES, 0},
                                         SUB(ATTR_T, TENSOR),
                                         SUB(ATTR_G, GRAPH),
                                         {ATTR_FLOATS, FLOATS, 0},
                                         {ATTR_INTS, INTS, 0},
                                         {ATTR_STRINGS, BYTES, 0},
                                         SUB(ATTR_TENSORS, TENSOR),
                                         SUB(ATTR_GRAPHS, GRAPH),
                                         {ATTR_DOC, BYTES, 0},
                                         SUB(ATTR_TP, TYPE),
                                         SUB(ATTR_TYPE_PROTOS, TYPE),
                                         {ATTR_TYPE, INT, 0},
                                         {ATTR_REF, TEXT, 0},
                                         SUB(ATTR_SPARSE, SPARSE),
                                         SUB(ATTR_SPARSES, SPARSE),
                                         {0}};
static const struct rule value_rules[] = {{VALUE_NAME, TEXT, 0},
                                          SUB(VALUE_TYPE, TYPE),
                                          {VALUE_DOC, BYTES, 0},
                                          SUB(VALUE_METADATA, PAIR),
                                          {0}};
static const struct rule tensor_rules[] = {
    {TENSOR_DIMS, INTS, 0},       {TENSOR_DTYPE, INT, 0},
    SUB(TENSOR_SEGMENT, SEGMENT), {TENSOR_FLOATS, FLOATS, 0},
    {TENSOR_INT32S, INTS, 0},     {TENSOR_STRINGS, BYTES, 0},
    {TENSOR_INT64S, INTS, 0},     {TENSOR_NAME, TEXT, 0},
    {TENSOR_RAW, BYTES, 0},       {TENSOR_DOUBLES, DOUBLES, 0},
    {TENSOR_UINT64S, INTS, 0},    {TENSOR_DOC, BYTES, 0},
    SUB(TENSOR_EXTERNAL, PAIR),   {TENSOR_LOCATION, INT, 0},
    SUB(TENSOR_METADATA, PAIR),   {0}};
static const struct rule segment_rules[] = {{1, INT, 0}, {2, INT, 0}, {0}};
static const struct rule sparse_rules[] = {
    SUB(SPARSE_VALUES, TENSOR), SUB(SPARSE_INDICES, TENSOR), {SPARSE_DIMS, INTS, 0}, {0}};
static const struct rule type_rules[] = {SUB(TYPE_TENSOR, TENSOR_TYPE),
                                         SUB(TYPE_SEQUENCE, ELEMENT),
                                         SUB(TYPE_MAP, MAP),
                                         {TYPE_DENOTATION, TEXT, 0},
                                         SUB(TYPE_OPAQUE, OPAQUE),
                                         SUB(TYPE_SPARSE, TENSOR_TYPE),
                                         SUB(TYPE_OPTIONAL, ELEMENT),
                                         {0}};
static const struct rule tensor_type_rules[] = {
    {TENSOR_TYPE_ELEM, INT, 0}, SUB(TENSOR_TYPE_SHAPE, SHAPE), {0}};
static const struct rule element_rules[] = {SUB(ELEMENT_TYPE, TYPE), {0}};
static const struct rule map_rules[] = {{MAP_KEY, INT, 0}, SUB(MAP_VALUE, TYPE), {0}};
static const struct rule opaque_rules[] = {{1, TEXT, 0}, {2, TEXT, 0}, {0}};
static const struct rule shape_rules[] = {SUB(SHAPE_DIM, DIM), {0}};
static const struct rule dim_rules[] = {
    {DIM_VALUE, INT, 0}, {DIM_PARAM, TEXT, 0}, {DIM_DENOTATION, TEXT, 0}, {0}};
static const struct rule pair_rules[] = {{PAIR_KEY, TEXT, 0}, {PAIR_VALUE, TEXT, 0}, {0}};
static const struct rule opset_rules[] = {{OPSET_DOMAIN, TEXT, 0}, {OPSET_VERSION, INT, 0}, {0}};
static const struct rule function_rules[] = {{FUNCTION_NAME, TEXT, 0},
                                             {FUNCTION_INPUT, TEXT, 0},
                                             {FUNCTION_OUTPUT, TEXT, 0},
                                             {FUNCTION_ATTRIBUTE, TEXT, 0},
                                             SUB(FUNCTION_NODE, NODE),
                                             {FUNCTION_DOC, BYTES, 0},
                                             SUB(FUNCTION_OPSET, OPSET),
                                             {FUNCTION_DOMAIN, TEXT, 0},
                                             SUB(FUNCTION_ATTRIBUTE_PROTO, ATTR),
                                             SUB(FUNCTION_VALUE, VALUE),
                                             {FUNCTION_OVERLOAD, TEXT, 0},
                                             SUB(FUNCTION_METADATA, PAIR),
                                             {0}};
static const struct rule training_rules[] = {SUB(TRAINING_INIT, GRAPH),
                                             SUB(TRAINING_ALGORITHM, GRAPH),
                                             SUB(TRAINING_INIT_BINDING, PAIR),
                                             SUB(TRAINING_UPDATE_BINDING, PAIR),
                                             {0}};
static const struct rule annotation_rules[] = {
    {ANNOTATION_NAME, TEXT, 0}, SUB(ANNOTATION_PAIRS, PAIR), {0}};

static const struct {
    const char *name;
    const struct rule *rules;
} messages[QS_MESSAGE_COUNT] = {
    [QS_MESSAGE_MODEL] = {"ModelProto", model_rules},
    [QS_MESSAGE_GRAPH] = {"GraphProto", graph_rules},
    [QS_MESSAGE_NODE] = {"NodeProto", node_rules},
    [QS_MESSAGE_ATTR] = {"AttributeProto", attr_rules},
    [QS_MESSAGE_VALUE] = {"ValueInfoProto", value_rules},
    [QS_MESSAGE_TENSOR] = {"TensorProto", tensor_rules},
    [QS_MESSAGE_SEGMENT] = {"TensorProto.Segment", segment_rules},
    [QS_MESSAGE_SPARSE] = {"SparseTensorProto", sparse_rules},
    [QS_MESSAGE_TYPE] = {"TypeProto", type_rules},
    [QS_MESSAGE_TENSOR_TYPE] = {"TypeProto.Tensor", tensor_type_rules},
    [QS_MESSAGE_ELEMENT] = {"TypeProto.Sequence", element_rules},
    [QS_MESSAGE_MAP] = {"TypeProto.Map", map_rules},
    [QS_MESSAGE_OPAQUE] = {"TypeProto.Opaque", opaque_rules},
    [QS_MESSAGE_SHAPE] = {"TensorShapeProto", shape_rules},
    [QS_MESSAGE_DIM] = {"TensorShapeProto.Dimension", dim_rules},
    [QS_MESSAGE_PAIR] = {"StringStringEntryProto", pair_rules},
    [QS_MESSAGE_OPSET] = {"OperatorSetIdProto", opset_rules},
    [QS_MESSAGE_FUNCTION] = {"FunctionProto", function_rules},
    [QS_MESSAGE_TRAINING] = {"TrainingInfoProto", training_rules},
    [QS_MESSAGE_ANNOTATION] = {"TensorAnnotation", annotation_rules},
};

/* Length of the UTF-8 sequence at s (RFC 3629); 0: it is none, or NUL. */
static size_t sequence(const uint8_t *s, size_t left) {
    if (s[0] < 0x80)
        return s[0] != 0;
    size_t n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
               (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
    return bad ? 0 : n;
}

/* Whether these 8 bytes are ASCII without NUL. A byte of 0 borrows when 1 is taken off each. */
static bool is_plain(const uint8_t *s) {
    uint64_t word;
    memcpy(&word, s, sizeof(word));
    return ((word | (word - 0x0101010101010101)) & 0x8080808080808080) == 0;
}

bool qs_text_ok(qs_span text) {
    for (size_t i = 0; i < text.size;) {
        const bool plain = text.size - i >= sizeof(uint64_t) && is_plain(text.data + i);
        size_t n = plain ? sizeof(uint64_t) : sequence(text.data + i, text.size - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

static bool varints_ok(qs_span packed) {
    size_t length = 0;
    for (size_t i = 0; i < packed.size; i++) {
        length++;
        if (packed.data[i] >= 0x80) {
            if (length >= 10)
                return false;
        } else {
            if (length == 10 && packed.data[i] > 1)
                return false;
            length = 0;
        }
    }
    return length == 0;
}

/* What is wrong with a field of this kind; NULL: nothing. */
static const char *field_problem(const qs_field *f, uint8_t kind) {
    const char *wire = "has the wrong wire type";
    switch (kind) {
    case INT: return f->type == PB_WT_VARINT ? NULL : wire;
    case FLOAT: return f->type == PB_WT_32BIT ? NULL : wire;
    case TEXT:
        if (f->type != PB_WT_STRING)
            return wire;
        return qs_text_ok(f->data) ? NULL : "is not UTF-8 text or holds a NUL";
    case BYTES:
    case MESSAGE: return f->type == PB_WT_STRING ? NULL : wire;
    case INTS:
        if (f->type == PB_WT_STRING)
            return varints_ok(f->data) ? NULL : "is a malformed list of numbers";
        return f->type == PB_WT_VARINT ? NULL : wire;
    case FLOATS:
        if (f->type == PB_WT_STRING)
            return f->data.size % 4 == 0 ? NULL : "is a truncated list of floats";
        return f->type == PB_WT_32BIT ? NULL : wire;
    case DOUBLES:
        if (f->type == PB_WT_STRING)
            return f->data.size % 8 == 0 ? NULL : "is a truncated list of doubles";
        return f->type == PB_WT_64BIT ? NULL : wire;
    default: return NULL;
    }
}

static const struct rule *find_rule(uint8_t message, uint32_t number) {
    for (const struct rule *r = messages[message].rules; r->number; r++)
        if (r->number == number)
            return r;
    return NULL;
}

struct level {
    qs_wire wire;
    uint8_t message;
};

int qs_schema_check(qs_span message, enum qs_message kind, const char *name, qsim_error *error) {
    struct level stack[QS_MESSAGE_DEPTH];
    size_t depth = 1;
    stack[0].message = (uint8_t)kind;
    qs_wire_begin(&stack[0].wire, message);
    while (depth > 0) {
        struct level *top = &stack[depth - 1];
        qs_field field;
        int code = qs_wire_next(&top->wire, &field);
        size_t at = (size_t)(top->wire.at - message.data);
        if (code < 0) {
            qs_fail(error, QSIM_E_FORMAT, "%s: malformed near byte %zu: %s (%s)", name, at,
                    qs_wire_problem(&top->wire), messages[top->message].name);
            if (depth == 1) /* of the file itself */
                qs_hint(error, "was the download interrupted?");
            return QSIM_E_FORMAT;
        }
        if (code == 0) {
            depth--;
            continue;
        }
        const struct rule *rule = find_rule(top->message, field.number);
        const char *problem = rule ? field_problem(&field, rule->kind) : NULL;
        if (problem)
            return qs_fail(error, QSIM_E_FORMAT, "%s: malformed near byte %zu: field %u of %s %s",
                           name, at, field.number, messages[top->message].name, problem);
        if (!rule || rule->kind != MESSAGE)
            continue;
        if (depth == QS_MESSAGE_DEPTH)
            return qs_fail(error, QSIM_E_LIMIT, "%s: graphs or types are nested over %d deep", name,
                           QS_MESSAGE_DEPTH / 3);
        stack[depth].message = rule->message;
        qs_wire_begin(&stack[depth].wire, field.data);
        depth++;
    }
    return QSIM_OK;
}
