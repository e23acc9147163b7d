/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a node of any operator with one size grown to where work is divided,
 * millions of elements, its constants in the model or beside it. C kernels, one thread and no
 * optimization give the bits of the best kernels, three threads and all optimization.
 */
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"
#include "node_seeds.h"

#define MOST_ELEMENTS ((int64_t)1 << 22)
#define MOST_BYTES    ((size_t)1 << 24) /* of a tensor */
#define MOST_OUTPUTS  8

/* ---- what grows ---- */

/* Around the lengths at which rows, sums, copies and windows are divided. */
static int64_t take_size(fuzz_bytes *b) {
    static const int64_t sizes[] = {(1 << 16) + 1, MOST_ELEMENTS, 4099,           65536,
                                    (1 << 18) + 1, (1 << 19) + 1, 1 << 20,        (1 << 20) + 1,
                                    1500007,       1 << 21,       (1 << 21) + 63, (1 << 22) - 1};
    return sizes[fuzz_below(b, sizeof(sizes) / sizeof(sizes[0]))];
}

static int64_t elements_of(const node_input *in) {
    int64_t n = 1;
    for (int32_t i = 0; i < in->rank; i++)
        n *= in->dims[i];
    return n;
}

/* The size, or what keeps the tensor within its bound. */
static int64_t bounded(const node_input *in, int64_t old, int64_t size) {
    const int64_t others = elements_of(in) / (old > 0 ? old : 1);
    return others > 0 && size > MOST_ELEMENTS / others ? MOST_ELEMENTS / others : size;
}

/* One axis of an input, and, in most cases, all axes of other inputs that had its size. */
static void grow_axis(node_form *f, fuzz_bytes *b) {
    node_input *in = &f->in[fuzz_below(b, (size_t)f->input_count)];
    if (in->rank == 0)
        return;
    const size_t axis = fuzz_below(b, (size_t)in->rank);
    const int64_t old = in->dims[axis];
    int64_t size = bounded(in, old, take_size(b));
    const bool alone = fuzz_byte(b) % 4 == 3;
    for (int32_t i = 0; !alone && i < f->input_count; i++)
        size = bounded(&f->in[i], old, size);
    for (int32_t i = 0; !alone && i < f->input_count; i++)
        for (int32_t k = 0; k < f->in[i].rank; k++)
            if (f->in[i].dims[k] == old && &f->in[i] != in && elements_of(&f->in[i]) < 4096)
                f->in[i].dims[k] = size;
    in->dims[axis] = size;
}

/* A number of an input that states sizes, or of an attribute. */
static void grow_number(node_form *f, fuzz_bytes *b) {
    node_input *in = &f->in[fuzz_below(b, (size_t)f->input_count + !f->input_count)];
    if (f->input_count > 0 && in->value_count > 0 && fuzz_byte(b) % 2 == 0)
        in->values[fuzz_below(b, (size_t)in->value_count)] = take_size(b);
    else if (f->attr_count > 0)
        f->attrs[fuzz_below(b, (size_t)f->attr_count)].ints[fuzz_below(b, NODE_LIST)] =
            take_size(b);
}

static void take_form(node_form *f, fuzz_bytes *b) {
    size_t index = fuzz_byte(b), count = 0;
    index += (size_t)fuzz_byte(b) << 8;
    while (node_seed(count, f))
        count++;
    node_seed(index % count, f);
    f->stated = (node_stated)fuzz_below(b, NODE_STATED);
    f->constants = fuzz_byte(b);
    f->place = (node_place)fuzz_below(b, NODE_PLACES);
    f->carries = fuzz_byte(b) % 2;
    f->outside = fuzz_byte(b) % 2;
    f->most = MOST_BYTES;
    if (f->place == NODE_IN_SCAN_8)
        f->opset = 8;
    if (f->input_count == 0 || fuzz_byte(b) % 4 == 3)
        grow_number(f, b);
    else
        grow_axis(f, b);
}

/* ---- a model's life ---- */

/* A form executed one way. */
typedef struct way {
    const node_form *form;
    void *files[NODE_INPUTS]; /* external data that were given */
    qsim_ctx *ctx;
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
    qsim_tensor y[MOST_OUTPUTS];
    int code;
} way;

/* Gives the bytes of constant "x<number>", exactly as many as it has. */
static int give(void *user, const char *location, const void **data, size_t *size) {
    way *w = user;
    const long i = strtol(location + 1, NULL, 10);
    if (i < 0 || i >= w->form->input_count || w->files[i])
        return -1;
    const node_input *in = &w->form->in[i];
    *size = node_constant_size(w->form, in);
    w->files[i] = calloc(*size + !*size, 1);
    if (!w->files[i])
        abort();
    node_fill(in, w->files[i], *size);
    *data = w->files[i];
    return 0;
}

static void begin(way *w, const node_form *f, const proto *p, int32_t isa, int32_t threads,
                  int32_t level) {
    static const qsim_limits limits = {
        .struct_size = sizeof(limits), .memory = 1 << 28, .milliseconds = 3000};
    const qsim_ctx_options o = {
        .struct_size = sizeof(o), .threads = threads, .isa = isa, .limits = &limits};
    const qsim_load_options l = {.struct_size = sizeof(l), .external = give, .external_user = w};
    const qsim_session_options s = {.struct_size = sizeof(s), .level = level};
    *w = (way){.form = f};
    w->code = qsim_ctx_create(&o, &w->ctx, NULL);
    w->code =
        w->code ? w->code : qsim_model_load_memory(w->ctx, p->data, p->size, &l, &w->model, NULL);
    w->code = w->code ? w->code : qsim_session_create(w->model, &s, &w->session, NULL);
    w->code = w->code ? w->code : qsim_run_create(w->session, &w->run, NULL);
}

static void finish(way *w) {
    qsim_run_free(w->run);
    qsim_session_free(w->session);
    qsim_model_free(w->model);
    qsim_ctx_free(w->ctx);
    for (int i = 0; i < NODE_INPUTS; i++)
        free(w->files[i]);
}

/* Executes with inputs of exactly their bytes. */
static void execute(way *w, const node_feed *feed) {
    qsim_tensor x[NODE_FED];
    int32_t count = 0;
    const int32_t outputs = w->code ? 0 : qsim_model_output_count(w->model);
    for (; !w->code && count < feed->count; count++) {
        const node_input *in = &feed->in[count];
        x[count] = (qsim_tensor){in->dtype, in->rank, in->dims, NULL, 0};
        if (qsim_tensor_size(in->dtype, in->rank, in->dims, NULL, &x[count].bytes) ||
            x[count].bytes > MOST_BYTES) {
            w->code = QSIM_E_LIMIT;
            break;
        }
        x[count].data = malloc(x[count].bytes + !x[count].bytes);
        if (!x[count].data)
            abort();
        node_fill(in, x[count].data, x[count].bytes);
    }
    if (!w->code)
        w->code = outputs > MOST_OUTPUTS
                      ? QSIM_E_LIMIT
                      : qsim_run_execute(w->run, x, (size_t)count, w->y, (size_t)outputs, NULL);
    for (int32_t i = 0; i < count; i++)
        free(x[i].data);
}

/* The run lacked time or memory, which both ways need not lack. */
static bool lacks(int code) {
    return code == QSIM_E_TIME || code == QSIM_E_NOMEM || code == QSIM_E_LIMIT;
}

static void compare(const way *a, const way *b) {
    if (lacks(fuzz_legal(a->code)) || lacks(fuzz_legal(b->code)))
        return;
    if (a->code != b->code)
        abort();
    const int32_t outputs = a->code ? 0 : qsim_model_output_count(a->model);
    for (int32_t i = 0; i < outputs; i++) {
        const qsim_tensor *x = &a->y[i], *y = &b->y[i];
        if (x->dtype != y->dtype || x->rank != y->rank || x->bytes != y->bytes ||
            memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(x->dims[0])) != 0 ||
            memcmp(x->data, y->data, x->bytes) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes bytes = {data, size};
    node_form f;
    node_feed feed;
    proto p = {0};
    way a, b;
    take_form(&f, &bytes);
    node_model(&f, &p, &feed);
    begin(&a, &f, &p, QSIM_ISA_C, 1, QSIM_LEVEL_DISABLE);
    begin(&b, &f, &p, QSIM_ISA_AUTO, 3, QSIM_LEVEL_ALL);
    execute(&a, &feed);
    execute(&b, &feed);
    compare(&a, &b);
    finish(&a);
    finish(&b);
    proto_free(&p);
    return 0;
}

/* Each form with its first or last axis grown, constants inside and outside by turns. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    const size_t form = index / 2, last = index % 2;
    node_form f;
    if (capacity < 16 || !node_seed(form, &f))
        return 0;
    memset(buffer, 0, 16);
    buffer[0] = (uint8_t)form;
    buffer[1] = (uint8_t)(form >> 8);
    buffer[3] = last ? UINT8_MAX - 1 : 0; /* all but the first input */
    buffer[6] = (uint8_t)(form % 2);
    buffer[9] = (uint8_t)(last && f.in[0].rank > 0 ? f.in[0].rank - 1 : 0);
    return 16;
}
