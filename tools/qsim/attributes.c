/* SPDX-License-Identifier: MIT */
#include "attributes.h"

/* A string up to its first NUL, which JSON's readers would stumble over. */
static void json_bytes(json *j, const char *key, const qsim_bytes *b) {
    text value = {0};
    text_add(&value, b->data, b->size);
    json_string(j, key, b->size ? value.data : "");
    text_free(&value);
}

static void json_tensor(json *j, const char *key, const qsim_tensor *t) {
    json_object(j, key);
    json_string(j, "type", qsim_dtype_name(t->dtype));
    json_array(j, "shape");
    for (int32_t i = 0; i < t->rank; i++)
        json_int(j, NULL, t->dims[i]);
    json_end(j);
    json_end(j);
}

static void json_list(json *j, const qsim_attr_info *a) {
    json_row(j, a->name);
    for (int32_t i = 0; i < a->count; i++) {
        if (a->type == QSIM_ATTR_INTS)
            json_int(j, NULL, a->ints[i]);
        else if (a->type == QSIM_ATTR_FLOATS)
            json_number(j, NULL, (double)a->floats[i]);
        else
            json_bytes(j, NULL, &a->strings[i]);
    }
    json_end(j);
}

void attributes_json(json *j, const qsim_model *m, int32_t node) {
    qsim_attr_info a = {.struct_size = sizeof(a)};
    json_object(j, "attributes");
    for (int32_t i = 0; qsim_model_attr(m, node, i, &a) == QSIM_OK; i++) {
        switch (a.type) {
        case QSIM_ATTR_INT: json_int(j, a.name, *a.ints); break;
        case QSIM_ATTR_FLOAT: json_number(j, a.name, (double)*a.floats); break;
        case QSIM_ATTR_STRING: json_bytes(j, a.name, a.strings); break;
        case QSIM_ATTR_TENSOR: json_tensor(j, a.name, &a.tensor); break;
        case QSIM_ATTR_INTS:
        case QSIM_ATTR_FLOATS:
        case QSIM_ATTR_STRINGS: json_list(j, &a); break;
        default: json_null(j, a.name); break;
        }
    }
    json_end(j);
}
