/* SPDX-License-Identifier: MIT */
/*
 * .npy: a magic number, a version, a length and a Python dictionary with three keys. The dictionary
 * is parsed strictly: no expression is evaluated, no unknown key is skipped.
 */
#include "tensor/array.h"

#include <stdio.h>

/* NumPy's own limit is 10,000; no legal header of a supported type comes near this. */
#define HEADER_LIMIT 65536u

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4 };

typedef struct cursor {
    const char *p, *end;
    qsim_error *error;
} cursor;

static int bad(cursor *c, const char *what) {
    return qs_fail(c->error, QSIM_E_FORMAT, "malformed .npy header: %s", what);
}

static void skip_space(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n'))
        c->p++;
}

static bool take(cursor *c, char wanted) {
    skip_space(c);
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

/* Takes a quoted string without escapes; false: there is none. */
static bool take_string(cursor *c, const char **text, size_t *length) {
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    char quote = *c->p++;
    *text = c->p;
    while (c->p < c->end && *c->p != quote && *c->p != '\\' && *c->p != '\n')
        c->p++;
    if (c->p == c->end || *c->p != quote)
        return false;
    *length = (size_t)(c->p++ - *text);
    return true;
}

static bool take_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool same(const char *text, size_t length, const char *word) {
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static int32_t kind_dtype(char kind, char size) {
    static const struct {
        char kind, size;
        int32_t dtype;
    } kinds[] = {
        {'b', '1', QSIM_BOOL},    {'u', '1', QSIM_UINT8},  {'u', '2', QSIM_UINT16},
        {'u', '4', QSIM_UINT32},  {'u', '8', QSIM_UINT64}, {'i', '1', QSIM_INT8},
        {'i', '2', QSIM_INT16},   {'i', '4', QSIM_INT32},  {'i', '8', QSIM_INT64},
        {'f', '2', QSIM_FLOAT16}, {'f', '4', QSIM_FLOAT},  {'f', '8', QSIM_DOUBLE},
    };
    for (size_t i = 0; i < QS_COUNT(kinds); i++)
        if (kinds[i].kind == kind && kinds[i].size == size)
            return kinds[i].dtype;
    return QSIM_UNDEFINED;
}

static int parse_descr(cursor *c, qsim_array *a) {
    const char *text;
    size_t length;
    skip_space(c);
    if (c->p < c->end && *c->p == '[')
        return qs_fail(c->error, QSIM_E_UNSUPPORTED, ".npy: structured arrays are not supported");
    if (!take_string(c, &text, &length))
        return bad(c, "'descr' is not a string");
    char order = '=';
    const char *type = text;
    size_t left = length;
    if (strchr("<>=|", *type)) { /* of an empty text this is the closing quote */
        order = *type++;
        left--;
    }
    if (*type == 'O')
        return qs_fail(c->error, QSIM_E_UNSUPPORTED,
                       ".npy: arrays of Python objects (pickles) are refused");
    a->dtype = left == 2 ? kind_dtype(type[0], type[1]) : QSIM_UNDEFINED;
    if (left == 0)
        return bad(c, "'descr' names no type");
    if (a->dtype == QSIM_UNDEFINED)
        return qs_fail(c->error, QSIM_E_UNSUPPORTED, ".npy: element type '%.*s' is not supported",
                       (int)(length < 32 ? length : 32), text);
    bool one = qs_element_size(a->dtype) == 1;
    if (order == '|' && !one)
        return bad(c, "'descr' has no byte order");
    a->swapped = !one && order == (qs_big_endian() ? '<' : '>');
    return QSIM_OK;
}

static int parse_order(cursor *c, qsim_array *a) {
    if (take_word(c, "True"))
        a->fortran = 1;
    else if (!take_word(c, "False"))
        return bad(c, "'fortran_order' is neither True nor False");
    return QSIM_OK;
}

static int parse_size(cursor *c, int64_t *size) {
    const char *start = c->p;
    int64_t n = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
        if (!qs_mul64(n, 10, &n) || !qs_add64(n, *c->p - '0', &n))
            return qs_fail(c->error, QSIM_E_LIMIT, ".npy: a size in 'shape' is too large");
        c->p++;
    }
    if (c->p == start)
        return bad(c, "'shape' is not a tuple of sizes");
    if (c->p < c->end && *c->p == 'L') /* long integers of Python 2 */
        c->p++;
    *size = n;
    return QSIM_OK;
}

static int parse_shape(cursor *c, qsim_array *a) {
    if (!take(c, '('))
        return bad(c, "'shape' is not a tuple");
    bool comma = true;
    while (!take(c, ')')) {
        if (!comma)
            return bad(c, "'shape' is not a tuple of sizes");
        if (a->rank == QSIM_MAX_RANK)
            return qs_fail(c->error, QSIM_E_LIMIT, ".npy: more than %d dimensions", QSIM_MAX_RANK);
        int code = parse_size(c, &a->dims[a->rank]);
        if (code != QSIM_OK)
            return code;
        a->rank++;
        comma = take(c, ',');
        skip_space(c);
    }
    if (a->rank == 1 && !comma)
        return bad(c, "'shape' is a number, not a tuple");
    return QSIM_OK;
}

static int parse_value(cursor *c, const char *key, size_t length, qsim_array *a, int *seen) {
    int which = same(key, length, "descr")           ? KEY_DESCR
                : same(key, length, "fortran_order") ? KEY_ORDER
                : same(key, length, "shape")         ? KEY_SHAPE
                                                     : 0;
    if (which == 0)
        return bad(c, "a key other than 'descr', 'fortran_order' and 'shape'");
    if (*seen & which)
        return bad(c, "a key appears twice");
    *seen |= which;
    return which == KEY_DESCR   ? parse_descr(c, a)
           : which == KEY_ORDER ? parse_order(c, a)
                                : parse_shape(c, a);
}

static int parse_dictionary(cursor *c, qsim_array *a) {
    int seen = 0;
    bool comma = true;
    if (!take(c, '{'))
        return bad(c, "it is not a dictionary");
    while (!take(c, '}')) {
        const char *key;
        size_t length;
        if (!comma || !take_string(c, &key, &length) || !take(c, ':'))
            return bad(c, "the dictionary is cut short or malformed");
        int code = parse_value(c, key, length, a, &seen);
        if (code != QSIM_OK)
            return code;
        comma = take(c, ',');
    }
    skip_space(c);
    if (c->p != c->end)
        return bad(c, "text follows the dictionary");
    if (seen != (KEY_DESCR | KEY_ORDER | KEY_SHAPE))
        return bad(c, "'descr', 'fortran_order' or 'shape' is missing");
    return QSIM_OK;
}

/* Magic, version and length: finds the dictionary. */
static int find_header(const uint8_t *p, size_t size, cursor *c, size_t *offset) {
    if (size < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return qs_fail(c->error, QSIM_E_FORMAT,
                       "not a .npy file: it does not begin with \\x93NUMPY");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return qs_fail(c->error, QSIM_E_UNSUPPORTED, ".npy: format version %d.%d is not supported",
                       p[6], p[7]);
    size_t start = p[6] == 1 ? 10 : 12, length = (size_t)p[8] | (size_t)p[9] << 8;
    if (size < start)
        return bad(c, "it is cut short");
    if (p[6] > 1)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > size - start)
        return bad(c, "it is longer than the file");
    if (length > HEADER_LIMIT)
        return qs_fail(c->error, QSIM_E_LIMIT, ".npy: a header of %zu bytes", length);
    c->p = (const char *)p + start;
    c->end = c->p + length;
    *offset = start + length;
    return QSIM_OK;
}

int qsim_npy_parse(const void *data, size_t size, uint64_t file_size, qsim_array *array,
                   qsim_error *error) {
    qs_error_clear(error);
    if (!array || array->struct_size < sizeof(*array) || (!data && size > 0))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_npy_parse: no array or no data");
    qsim_array a = {.struct_size = array->struct_size};
    cursor c = {.error = error};
    int code = find_header(data, size, &c, &a.offset);
    if (code == QSIM_OK)
        code = parse_dictionary(&c, &a);
    if (code == QSIM_OK)
        code = qs_array_finish(&a, file_size > size ? file_size : size, ".npy", error);
    if (code == QSIM_OK)
        *array = a;
    return code;
}

static const char *npy_type(int32_t dtype) {
    switch (dtype) {
    case QSIM_BOOL: return "b1";
    case QSIM_UINT8: return "u1";
    case QSIM_UINT16: return "u2";
    case QSIM_UINT32: return "u4";
    case QSIM_UINT64: return "u8";
    case QSIM_INT8: return "i1";
    case QSIM_INT16: return "i2";
    case QSIM_INT32: return "i4";
    case QSIM_INT64: return "i8";
    case QSIM_FLOAT16: return "f2";
    case QSIM_FLOAT: return "f4";
    case QSIM_DOUBLE: return "f8";
    default: return NULL;
    }
}

int qsim_npy_header(const qsim_tensor *t, char header[QSIM_NPY_HEADER_MAX]) {
    if (!t || !header)
        return QSIM_E_ARGUMENT;
    if (t->rank < 0 || t->rank > QSIM_MAX_RANK || (t->rank > 0 && !t->dims))
        return QSIM_E_SHAPE;
    const char *type = npy_type(t->dtype);
    if (!type)
        return QSIM_E_UNSUPPORTED;
    char order = type[1] == '1' ? '|' : qs_big_endian() ? '>' : '<';
    /* 16 sizes of at most 19 digits and ", " are 336 bytes: everything fits. */
    int n = 10;
    n += snprintf(header + n, (size_t)(QSIM_NPY_HEADER_MAX - n),
                  "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, type);
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0)
            return QSIM_E_SHAPE;
        n += snprintf(header + n, (size_t)(QSIM_NPY_HEADER_MAX - n), "%s%lld", i ? ", " : "",
                      (long long)t->dims[i]);
    }
    n += snprintf(header + n, (size_t)(QSIM_NPY_HEADER_MAX - n), "%s), }", t->rank == 1 ? "," : "");
    int total = (int)qs_align((size_t)n + 1, 64);
    memset(header + n, ' ', (size_t)(total - n - 1));
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    return total;
}
