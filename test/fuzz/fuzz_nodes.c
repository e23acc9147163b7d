/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a node of any operator, which is altered, put alone or into a graph of
 * If, Loop or Scan, declared with sizes or without, and executed on inputs of other sizes and with
 * extreme values. Levels of optimization give the same bits or both fail. An input that alters
 * nothing is legal.
 */
#include <math.h>
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"
#include "node_seeds.h"

#define MOST_BYTES   (1u << 16) /* of an input */
#define MOST_OUTPUTS 8

static const char *const words[] = {
    "linear",        "nearest",    "cubic",         "edge",
    "reflect",       "wrap",       "add",           "max",
    "reverse",       "forward",    "SAME_UPPER",    "VALID",
    "CRD",           "RIGHT",      "silu",          "ij->ji",
    "bidirectional", "half_pixel", "align_corners", "tf_crop_and_resize",
    "sum",           "none",       "i,j->",         "...ij->...ji",
    "asymmetric",    "border",     "Relu",          ""};

/* ---- what is altered ---- */

static void alter_attr(node_form *f, fuzz_bytes *b) {
    const size_t at = fuzz_below(b, (size_t)f->op->attr_count + 1);
    int32_t i = 0;
    if (at == (size_t)f->op->attr_count || f->attr_count >= NODE_ATTRS)
        return;
    while (i < f->attr_count && strcmp(f->attrs[i].name, f->op->attrs[at].name) != 0)
        i++;
    f->attr_count += i == f->attr_count;
    node_attr *a = &f->attrs[i];
    const int32_t count = a->count;
    *a = (node_attr){.name = f->op->attrs[at].name, .type = f->op->attrs[at].type};
    a->type += a->type ? 0 : 1 + (int32_t)fuzz_below(b, 3); /* 0: of several types */
    /* An attribute keeps its length in most cases. */
    a->count = fuzz_byte(b) % 4 || !count ? (int32_t)fuzz_below(b, 7) : count;
    for (int32_t k = 0; k < NODE_LIST; k++)
        a->ints[k] = k < a->count || k == 0 ? fuzz_number(b) : 0;
    a->real = (double)a->ints[0] / (fuzz_byte(b) % 2 ? 4 : 1);
    strcpy(a->text, words[fuzz_below(b, sizeof(words) / sizeof(words[0]))]);
}

static void alter_sizes(node_input *in, fuzz_bytes *b) {
    const int32_t at = (int32_t)fuzz_below(b, NODE_LIST - 2);
    switch (fuzz_byte(b) % 4) {
    case 0: /* one axis more */
        if (in->rank >= NODE_LIST)
            return;
        memmove(in->dims + 1, in->dims, (size_t)in->rank * sizeof(in->dims[0]));
        in->dims[0] = (int64_t)fuzz_below(b, 4);
        in->rank++;
        break;
    case 1: in->rank -= in->rank > 0; break;
    default:
        if (in->rank > 0)
            in->dims[at % in->rank] =
                fuzz_byte(b) > 250 ? fuzz_number(b) : (int64_t)fuzz_below(b, 9);
    }
}

static void alter_values(node_input *in, fuzz_bytes *b) {
    static const double units[] = {1, 1, 0.25, -1, 1e30, 1e-30, INFINITY, NAN};
    in->unit = units[fuzz_below(b, 8)];
    if (in->value_count == 0 || fuzz_byte(b) % 4 == 0)
        in->value_count = 1 + (int32_t)fuzz_below(b, NODE_LIST);
    for (int32_t k = 0; k < in->value_count; k++)
        if (fuzz_byte(b) % 2)
            in->values[k] = fuzz_number(b);
}

static void alter(node_form *f, fuzz_bytes *b) {
    node_input *in = &f->in[fuzz_below(b, (size_t)(f->input_count > 0 ? f->input_count : 1))];
    switch (fuzz_below(b, 8)) {
    case 0: in->dtype = 1 + (int32_t)fuzz_below(b, QSIM_INT2); break;
    case 1: in->given = in->given ? fuzz_byte(b) % 4 : in->dtype != 0; break;
    case 2:
        if (f->input_count < NODE_INPUTS)
            f->in[f->input_count++] = *in;
        break;
    case 3: f->input_count -= f->input_count > 0; break;
    case 4: f->outputs = (int32_t)fuzz_below(b, MOST_OUTPUTS - 1); break;
    case 5: alter_values(in, b); break;
    case 6: alter_sizes(in, b); break;
    default: alter_attr(f, b);
    }
}

/* Returns whether the form is as its line has it. */
static bool take_form(node_form *f, fuzz_bytes *b) {
    size_t index = fuzz_byte(b), count = 0;
    index += (size_t)fuzz_byte(b) << 8;
    while (node_seed(count, f))
        count++;
    node_seed(index % count, f);
    const uint8_t opset = fuzz_byte(b);
    f->stated = (node_stated)fuzz_below(b, NODE_STATED);
    f->constants = fuzz_byte(b);
    f->place = (node_place)fuzz_below(b, NODE_PLACES);
    f->carries = fuzz_byte(b) % 2;
    size_t changes = fuzz_below(b, 8);
    const bool legal = f->is_line && !opset && !changes && f->place == NODE_PLAIN &&
                       f->constants == 0 && f->stated == NODE_SIZES;
    if (f->place == NODE_IN_SCAN_8)
        f->opset = 8;
    if (opset)
        f->opset = opset % 30;
    for (; changes > 0; changes--)
        alter(f, b);
    return legal;
}

/* ---- execution ---- */

typedef struct fed {
    qsim_tensor x[NODE_FED], y[MOST_OUTPUTS + 1];
    size_t count, outputs;
} fed;

/* Makes the tensors; false: they are too large. */
static bool feed_tensors(const node_feed *feed, fed *t) {
    t->count = 0;
    for (int32_t i = 0; i < feed->count; i++) {
        const node_input *in = &feed->in[i];
        qsim_tensor *x = &t->x[i];
        *x = (qsim_tensor){in->dtype, in->rank, in->dims, NULL, 0};
        if (qsim_tensor_size(in->dtype, in->rank, in->dims, NULL, &x->bytes) ||
            x->bytes > MOST_BYTES)
            return false;
        x->data = malloc(x->bytes + !x->bytes);
        if (!x->data)
            abort();
        t->count++;
        node_fill(in, x->data, x->bytes);
    }
    return true;
}

static void free_tensors(fed *t) {
    for (size_t i = 0; i < t->count; i++)
        free(t->x[i].data);
    t->count = 0;
}

static int same_bytes(const qsim_tensor *a, const qsim_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0 &&
           memcmp(a->data, b->data, a->bytes) == 0;
}

/*
 * Whether floats differ by less than 1e-4 of the largest one, as rounding of fused operators may
 * add up to when a Loop carries results into its next turn (docs/QUANTIZATION.md: 1e-5 in one).
 */
static bool is_close(const qsim_tensor *a, const qsim_tensor *b) {
    const float *x = a->data, *y = b->data;
    float most = 0;
    if (a->dtype != QSIM_FLOAT || b->dtype != QSIM_FLOAT || a->rank != b->rank ||
        a->bytes != b->bytes || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) != 0)
        return false;
    for (size_t i = 0; i < a->bytes / sizeof(*x); i++)
        most = isfinite(x[i]) && fabsf(x[i]) > most ? fabsf(x[i]) : most;
    for (size_t i = 0; i < a->bytes / sizeof(*x); i++)
        if (memcmp(x + i, y + i, sizeof(*x)) != 0 && !(fabsf(x[i] - y[i]) <= 1e-4f * most))
            return false;
    return true;
}

/* What a legal form gives; a busy machine may not be done with it in time. */
static bool is_good(int code) {
    return code == QSIM_OK || code == QSIM_E_TIME;
}

/* Both sessions on inputs, the second time of other sizes, the third time with other values, too.
 */
static void execute(const fuzz_heap *heap, qsim_session *const s[2], node_feed *feed, fuzz_bytes *b,
                    bool legal, bool carries, size_t outputs) {
    qsim_run *r[2] = {NULL, NULL};
    fed t[2];
    for (int i = 0; i < 2; i++)
        fuzz_legal(qsim_run_create(s[i], &r[i], NULL));
    for (int turn = 0; r[0] && r[1] && turn < 3; turn++) {
        int code[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            memset(&t[i], 0, sizeof(t[i]));
            if (feed_tensors(feed, &t[i]))
                code[i] =
                    fuzz_legal(qsim_run_execute(r[i], t[i].x, t[i].count, t[i].y, outputs, NULL));
        }
        if (legal && turn == 0)
            fuzz_must(heap, is_good(code[0]) && is_good(code[1]));
        for (size_t k = 0; t[0].count == (size_t)feed->count && !code[0] && !code[1] && k < outputs;
             k++)
            fuzz_must(heap, same_bytes(&t[0].y[k], &t[1].y[k]) ||
                                (carries && is_close(&t[0].y[k], &t[1].y[k])));
        free_tensors(&t[0]);
        free_tensors(&t[1]);
        if (feed->count > 0) {
            node_input *in = &feed->in[fuzz_below(b, (size_t)feed->count)];
            alter_sizes(in, b);
            if (turn == 1)
                alter_values(&feed->in[fuzz_below(b, (size_t)feed->count)], b);
        }
    }
    qsim_run_free(r[0]);
    qsim_run_free(r[1]);
}

static void quantize(const qsim_model *m, const node_feed *feed) {
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    fed t;
    if (feed_tensors(feed, &t) &&
        fuzz_legal(qsim_calibration_create(m, NULL, &c, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_calibration_feed(c, t.x, t.count, NULL)) == QSIM_OK)
        fuzz_legal(qsim_quantize(m, c, NULL, &q, NULL));
    qsim_model_free(q);
    qsim_calibration_free(c);
    free_tensors(&t);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    static const int32_t levels[] = {QSIM_LEVEL_DISABLE, QSIM_LEVEL_ALL};
    fuzz_bytes b = {data, size};
    node_form f;
    node_feed feed;
    proto p = {0};
    qsim_model *m = NULL;
    qsim_session *s[2] = {NULL, NULL};
    const bool legal = take_form(&f, &b);
    node_model(&f, &p, &feed);
    int code = fuzz_legal(qsim_model_load_memory(ctx, p.data, p.size, NULL, &m, NULL));
    fuzz_must(heap, is_good(code) || !legal);
    for (int i = 0; m && i < 2; i++) {
        const qsim_session_options o = {.struct_size = sizeof(o), .level = levels[i]};
        code = fuzz_legal(qsim_session_create(m, &o, &s[i], NULL));
        fuzz_must(heap, is_good(code) || !legal);
    }
    if (m && qsim_model_output_count(m) <= MOST_OUTPUTS) {
        if (data[size - 1] % 4 == 1)
            quantize(m, &feed);
        if (s[0] && s[1])
            execute(heap, s, &feed, &b, legal, f.place == NODE_IN_LOOP && f.carries,
                    (size_t)qsim_model_output_count(m));
    }
    qsim_session_free(s[0]);
    qsim_session_free(s[1]);
    qsim_model_free(m);
    proto_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const qsim_limits limits = {
        .struct_size = sizeof(limits), .memory = 1 << 25, .milliseconds = 2000};
    if (size > 0)
        fuzz_run_limited(attempt, &limits, data, size);
    return 0;
}

/*
 * Each form alone, declared with sizes and by its types, inside a graph, and of constants; the
 * bytes behind alter nothing.
 */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    const size_t form = index / 4, kind = index % 4;
    node_form f;
    if (capacity < 80 || !node_seed(form, &f))
        return 0;
    memset(buffer, 0, 80);
    buffer[0] = (uint8_t)form;
    buffer[1] = (uint8_t)(form >> 8);
    buffer[3] = (uint8_t)(kind == 1 || kind == 2 ? NODE_TYPES : NODE_SIZES);
    buffer[4] = kind == 3 ? UINT8_MAX : 0;
    buffer[5] = (uint8_t)(kind == 2 ? NODE_IN_IF + form % 4 : NODE_PLAIN);
    return 80;
}
