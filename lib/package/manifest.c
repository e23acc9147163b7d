/* SPDX-License-Identifier: MIT */
/*
 * JSON as far as packages need it: checks that a text is well formed and reads "schema" and "model"
 * of a manifest, which has no other fields that are used.
 */
#include "package/archive.h"

#include "onnx/schema.h"

#define DEEPEST 64

typedef struct cursor {
    const uint8_t *p, *end;
    int depth;
} cursor;

static void skip_blanks(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool accept(cursor *c, char byte) {
    skip_blanks(c);
    if (c->p >= c->end || *c->p != (uint8_t)byte)
        return false;
    c->p++;
    return true;
}

static bool is_hex(uint8_t b) {
    return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F');
}

static bool skip_escape(cursor *c) {
    if (c->p >= c->end || *c->p == 0 || !strchr("\"\\/bfnrtu", *c->p))
        return false;
    if (*c->p++ != 'u')
        return true;
    for (int i = 0; i < 4; i++, c->p++)
        if (c->p >= c->end || !is_hex(*c->p))
            return false;
    return true;
}

static bool skip_string(cursor *c) {
    if (!accept(c, '"'))
        return false;
    while (c->p < c->end && *c->p >= 0x20) {
        uint8_t b = *c->p++;
        if (b == '"')
            return true;
        if (b == '\\' && !skip_escape(c))
            return false;
    }
    return false;
}

static bool skip_digits(cursor *c) {
    const uint8_t *from = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
        c->p++;
    return c->p > from;
}

/* Skips a number; at least one byte is left. */
static bool skip_number(cursor *c) {
    c->p += *c->p == '-';
    const uint8_t *first = c->p;
    if (!skip_digits(c) || (*first == '0' && c->p - first > 1))
        return false;
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        if (!skip_digits(c))
            return false;
    }
    if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
        c->p++;
        c->p += c->p < c->end && (*c->p == '+' || *c->p == '-');
        return skip_digits(c);
    }
    return true;
}

static bool skip_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool skip_value(cursor *c);

/* Skips the items of an array or object after its opening bracket. */
static bool skip_items(cursor *c, char close, bool keys) {
    if (++c->depth > DEEPEST)
        return false;
    if (!accept(c, close)) {
        do {
            if (keys && (!skip_string(c) || !accept(c, ':')))
                return false;
            if (!skip_value(c))
                return false;
        } while (accept(c, ','));
        if (!accept(c, close))
            return false;
    }
    c->depth--;
    return true;
}

static bool skip_value(cursor *c) {
    skip_blanks(c);
    if (c->p >= c->end)
        return false;
    switch (*c->p) {
    case '{': c->p++; return skip_items(c, '}', true);
    case '[': c->p++; return skip_items(c, ']', false);
    case '"': return skip_string(c);
    case 't': return skip_word(c, "true");
    case 'f': return skip_word(c, "false");
    case 'n': return skip_word(c, "null");
    default: return skip_number(c);
    }
}

static bool at_end(cursor *c) {
    skip_blanks(c);
    return c->p == c->end;
}

const char *qs_json_fault(const uint8_t *text, size_t size) {
    cursor c = {text, text + size, 0};
    if (!qs_text_ok((qs_span){text, size}))
        return "is not UTF-8 text";
    return skip_value(&c) && at_end(&c) ? NULL : "is not well-formed JSON";
}

static bool is_key(const uint8_t *from, const uint8_t *to, const char *word) {
    size_t n = strlen(word);
    return (size_t)(to - from) == n + 2 && memcmp(from + 1, word, n) == 0;
}

/* Reads an integer of at most eighteen digits; the value is not empty. */
static bool read_integer(const uint8_t *from, const uint8_t *to, int64_t *out) {
    int64_t n = 0;
    if (to - from > 18)
        return false;
    for (; from < to; from++) {
        if (*from < '0' || *from > '9')
            return false;
        n = n * 10 + (*from - '0');
    }
    *out = n;
    return true;
}

const char *qs_manifest_read(const uint8_t *text, size_t size, int64_t *schema,
                             const uint8_t **model, size_t *model_size) {
    const char *fault = qs_json_fault(text, size);
    cursor c = {text, text + size, 1};
    *schema = -1;
    *model = NULL;
    *model_size = 0;
    if (fault)
        return fault;
    if (!accept(&c, '{'))
        return "is not a JSON object";
    while (!accept(&c, '}')) {
        skip_blanks(&c);
        const uint8_t *key = c.p;
        skip_string(&c);
        const uint8_t *key_end = c.p;
        accept(&c, ':');
        skip_blanks(&c);
        const uint8_t *value = c.p;
        skip_value(&c);
        if (is_key(key, key_end, "schema")) {
            if (*schema >= 0 || !read_integer(value, c.p, schema))
                return "has a \"schema\" that is not a number, or two";
        } else if (is_key(key, key_end, "model")) {
            if (*model || *value != '"')
                return "has a \"model\" that is not a string, or two";
            *model = value + 1;
            *model_size = (size_t)(c.p - value) - 2;
        }
        accept(&c, ',');
    }
    return *schema < 0 ? "has no \"schema\"" : !*model ? "has no \"model\"" : NULL;
}
