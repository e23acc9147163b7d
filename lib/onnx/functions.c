/* SPDX-License-Identifier: MIT */
/*
 * Lists the local functions that a model defines itself, to find them by domain and name. Recursive
 * ones are refused.
 */
#include "onnx/reader.h"

struct function {
    qs_span domain, name, body;
    bool terminates; /* known not to be recursive */
};

struct qs_functions {
    struct function *list;
    size_t count;
};

static qs_span plain_domain(qs_span domain) {
    return qs_span_is(domain, "ai.onnx") ? (qs_span){0} : domain;
}

static int compare_spans(qs_span a, qs_span b) {
    size_t n = a.size < b.size ? a.size : b.size;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

static int compare(const struct function *f, qs_span domain, qs_span name) {
    int c = compare_spans(f->name, name);
    return c ? c : compare_spans(f->domain, domain);
}

static struct function *find(const struct qs_functions *all, qs_span domain, qs_span name) {
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare(&all->list[mid], domain, name);
        if (c == 0)
            return &all->list[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Heap sort: qsort may need recursion or quadratic time. */
static void sift(struct function *list, size_t root, size_t count) {
    struct function moved = list[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count &&
            compare(&list[child], list[child + 1].domain, list[child + 1].name) < 0)
            child++;
        if (compare(&list[child], moved.domain, moved.name) <= 0)
            break;
        list[root] = list[child];
    }
    list[root] = moved;
}

static void sort(struct qs_functions *all) {
    for (size_t i = all->count / 2; i-- > 0;)
        sift(all->list, i, all->count);
    for (size_t n = all->count; n-- > 1;) {
        struct function last = all->list[n];
        all->list[n] = all->list[0];
        all->list[0] = last;
        sift(all->list, 0, n);
    }
}

/* Whether all local functions that this one calls are known to terminate. */
static bool calls_terminate(const struct qs_functions *all, const struct function *f) {
    qs_wire wire;
    qs_field node;
    qs_wire_begin(&wire, f->body);
    while (qs_wire_next(&wire, &node) == 1) {
        if (node.number != FUNCTION_NODE)
            continue;
        const struct function *called =
            find(all, plain_domain(qs_wire_find(node.data, NODE_DOMAIN)),
                 qs_wire_find(node.data, NODE_OP_TYPE));
        if (called && !called->terminates)
            return false;
    }
    return true;
}

#define FUNCTION_LIMIT 2000 /* check_recursion is quadratic */

static int check_recursion(qs_reader *r, struct qs_functions *all) {
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < all->count; i++) {
            struct function *f = &all->list[i];
            if (f->terminates || !calls_terminate(all, f))
                continue;
            f->terminates = progress = true;
        }
    }
    for (size_t i = 0; i < all->count; i++)
        if (!all->list[i].terminates)
            return qs_read_fail(r, QSIM_E_GRAPH, "the local function '%s' calls itself",
                                qs_read_scratch(r, all->list[i].name));
    return QSIM_OK;
}

static int collect(qs_reader *r, qs_span model, struct qs_functions *all) {
    qs_wire wire;
    qs_field f;
    size_t capacity = 0;
    qs_wire_begin(&wire, model);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != MODEL_FUNCTION)
            continue;
        if (all->count == FUNCTION_LIMIT)
            return qs_read_fail(r, QSIM_E_LIMIT, "more than %d local functions", FUNCTION_LIMIT);
        if (!qs_grow(r->ctx, (void **)&all->list, &capacity, all->count, sizeof(*all->list)))
            return qs_read_nomem(r);
        all->list[all->count++] =
            (struct function){.domain = plain_domain(qs_wire_find(f.data, FUNCTION_DOMAIN)),
                              .name = qs_wire_find(f.data, FUNCTION_NAME),
                              .body = f.data};
    }
    return QSIM_OK;
}

int qs_read_functions(qs_reader *r, qs_span model) {
    r->functions = qs_calloc(r->ctx, 1, sizeof(*r->functions));
    if (!r->functions)
        return qs_read_nomem(r);
    const int code = collect(r, model, r->functions);
    if (code || r->functions->count == 0)
        return code;
    sort(r->functions);
    return check_recursion(r, r->functions);
}

void qs_free_functions(qs_reader *r) {
    if (r->functions)
        qs_free(r->ctx, r->functions->list);
    qs_free(r->ctx, r->functions);
    r->functions = NULL;
}

qs_span qs_find_function(const qs_reader *r, qs_span domain, qs_span name) {
    const struct function *f = r->functions ? find(r->functions, plain_domain(domain), name) : NULL;
    return f && f->terminates ? f->body : (qs_span){0};
}
