/* SPDX-License-Identifier: MIT */
/*
 * Functions that a model defines itself. They are kept for saving; using one is refused for now,
 * and so is a set of definitions that calls itself.
 */
#include "onnx/reader.h"

struct function {
    qs_span domain, name, body;
    bool ends;
};

struct functions {
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

static struct function *find(const struct functions *all, qs_span domain, qs_span name) {
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

/* Heap sort: no recursion, no worst case. */
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

static void sort(struct functions *all) {
    for (size_t i = all->count / 2; i-- > 0;)
        sift(all->list, i, all->count);
    for (size_t n = all->count; n-- > 1;) {
        struct function last = all->list[n];
        all->list[n] = all->list[0];
        all->list[0] = last;
        sift(all->list, 0, n);
    }
}

/* Whether every local function that this one calls is known to end. */
static bool calls_end(const struct functions *all, const struct function *f) {
    qs_wire wire;
    qs_field node;
    qs_wire_begin(&wire, f->body);
    while (qs_wire_next(&wire, &node) == 1) {
        if (node.number != FUNCTION_NODE)
            continue;
        const struct function *called =
            find(all, plain_domain(qs_wire_find(node.data, NODE_DOMAIN)),
                 qs_wire_find(node.data, NODE_OP_TYPE));
        if (called && !called->ends)
            return false;
    }
    return true;
}

#define FUNCTION_LIMIT 2000 /* rounds below are quadratic */

static int check_recursion(qs_reader *r, struct functions *all) {
    size_t left = all->count;
    for (bool progress = true; progress && left > 0;) {
        progress = false;
        for (size_t i = 0; i < all->count; i++) {
            struct function *f = &all->list[i];
            if (f->ends || !calls_end(all, f))
                continue;
            f->ends = progress = true;
            left--;
        }
    }
    for (size_t i = 0; i < all->count; i++)
        if (!all->list[i].ends)
            return qs_read_fail(r, QSIM_E_GRAPH, "the local function '%s' calls itself",
                                qs_read_scratch(r, all->list[i].name));
    return QSIM_OK;
}

static int collect(qs_reader *r, qs_span model, struct functions *all) {
    qs_wire wire;
    qs_field f;
    size_t room = 0;
    qs_wire_begin(&wire, model);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != MODEL_FUNCTION)
            continue;
        if (all->count == FUNCTION_LIMIT)
            return qs_read_fail(r, QSIM_E_LIMIT, "more than %d local functions", FUNCTION_LIMIT);
        if (!qs_grow(r->ctx, (void **)&all->list, &room, all->count + 1, sizeof(*all->list)))
            return qs_read_nomem(r);
        all->list[all->count++] =
            (struct function){.domain = plain_domain(qs_wire_find(f.data, FUNCTION_DOMAIN)),
                              .name = qs_wire_find(f.data, FUNCTION_NAME),
                              .body = f.data};
    }
    return QSIM_OK;
}

static qs_span text_span(const char *text) {
    return (qs_span){(const uint8_t *)text, strlen(text)};
}

int qs_read_functions(qs_reader *r, qs_span model) {
    struct functions all = {0};
    int code = collect(r, model, &all);
    if (!code && all.count > 0) {
        sort(&all);
        code = check_recursion(r, &all);
    }
    for (size_t i = 0; !code && all.count > 0 && !r->inspect && i < r->graph->node_count; i++) {
        r->at = &r->graph->nodes[i];
        if (find(&all, text_span(r->at->domain), text_span(r->at->op_type)))
            code = qs_read_fail(r, QSIM_E_UNSUPPORTED,
                                "the model's own function '%s' is used: not supported",
                                r->at->op_type);
    }
    r->at = NULL;
    qs_free(r->ctx, all.list);
    return code;
}
