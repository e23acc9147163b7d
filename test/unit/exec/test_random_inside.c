/* SPDX-License-Identifier: MIT */
/*
 * Random graphs moved whole into a branch of an If or a body of a Loop or Scan give the results
 * that they give outside, in floats and quantized in each mode: layers inside are quantized alike.
 *
 *     test_random_inside                   the seeds of every day
 *     test_random_inside FIRST [COUNT]     these seeds
 */
#include "proto.h"
#include "random_graph.h"
#include "test.h"

#include <math.h>

#define EVERY_DAY    16
#define MOST_OUTPUTS 16

/* ---- the model inside ---- */

enum place { IF, LOOP, SCAN, IF_IN_LOOP, PLACES };
static const char *const places[PLACES] = {"If", "Loop", "Scan", "If in Loop"};
static const int repeats[PLACES] = {1, 2, 2, 2}; /* of the results */

/* Copies the fields of a message whose bit is set in `wanted`. */
static void copy_fields(proto *to, const uint8_t *p, const uint8_t *end, uint32_t wanted) {
    while (p < end) {
        const uint8_t *begin = p;
        uint64_t v[2] = {0};
        for (int k = 0; k < 2; k++) { /* the tag, and a length or number */
            int shift = 0;
            for (; *p > 127; shift += 7)
                v[k] |= (uint64_t)(*p++ & 127) << shift;
            v[k] |= (uint64_t)*p++ << shift;
        }
        p += (v[0] & 7) == 2 ? v[1] : 0;
        if (wanted >> (v[0] >> 3) & 1)
            proto_raw(to, begin, (size_t)(p - begin));
    }
}

/* The content of the one field `number` of a message. */
static proto content(const uint8_t *data, size_t size, uint32_t number) {
    proto field = {0};
    copy_fields(&field, data, data + size, 1u << number);
    size_t at = 1;
    while (field.data[at++] > 127)
        continue;
    field.size -= at;
    memmove(field.data, field.data + at, field.size);
    return field;
}

static void output_names(const qsim_model *m, proto *to, uint32_t field, const char *prefix) {
    char name[80];
    for (int32_t i = 0; i < qsim_model_output_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        CHECK_INT(qsim_model_output(m, i, &v), QSIM_OK);
        snprintf(name, sizeof(name), "%s%s", prefix, v.name);
        if (field == 12)
            proto_name(to, 12, name);
        else
            proto_text(to, field, name);
    }
}

/*
 * Puts an If whose first branch is the graph's nodes and constants into `to`; the results of the
 * other one have other sizes, so that it stays an If.
 */
static void put_if(proto *to, const qsim_model *m, const proto *graph, const char *prefix) {
    proto node = {0}, branch = {0};
    qsim_value_info x = {.struct_size = sizeof(x)}, v = {.struct_size = sizeof(v)};
    char name[80];
    proto_text(&node, 1, "inside_on");
    output_names(m, &node, 2, prefix);
    proto_text(&node, 4, "If");
    copy_fields(&branch, graph->data, graph->data + graph->size, 1u << 1 | 1u << 5);
    output_names(m, &branch, 12, "");
    proto_graph(&node, "then_branch", &branch);
    CHECK_INT(qsim_model_input(m, 0, &x), QSIM_OK);
    for (int32_t i = 0; i < qsim_model_output_count(m); i++) {
        CHECK_INT(qsim_model_output(m, i, &v), QSIM_OK);
        snprintf(name, sizeof(name), "inside_%s", v.name);
        proto_node(&branch, "ReduceMax", NULL, x.name, NULL, name);
        proto_name(&branch, 12, name);
    }
    proto_graph(&node, "else_branch", &branch);
    proto_take(to, 1, &node);
    proto_free(&node);
    proto_free(&branch);
}

/* Puts a Loop or Scan whose body is the graph, or an If with it, into `to`. */
static void put_loop(proto *to, const qsim_model *m, const proto *graph, enum place place) {
    proto node = {0}, body = {0};
    if (place != SCAN)
        proto_text(&node, 1, "inside_two");
    proto_text(&node, 1, place == SCAN ? "inside_list" : "");
    output_names(m, &node, 2, "outside_");
    proto_text(&node, 4, place == SCAN ? "Scan" : "Loop");
    proto_name(&body, 11, "inside_i");
    if (place != SCAN) {
        proto_name(&body, 11, "inside_go");
        proto_node(&body, "Identity", NULL, "inside_go", NULL, "inside_more");
        proto_name(&body, 12, "inside_more");
    }
    if (place == IF_IN_LOOP)
        put_if(&body, m, graph, "between_");
    else
        copy_fields(&body, graph->data, graph->data + graph->size, 1u << 1 | 1u << 5);
    output_names(m, &body, 12, place == IF_IN_LOOP ? "between_" : "");
    proto_graph(&node, "body", &body);
    if (place == SCAN)
        proto_integer(&node, "num_scan_inputs", 1);
    proto_take(to, 1, &node);
    proto_free(&node);
    proto_free(&body);
}

/* The model of one node whose subgraph is this one's graph; its last input is a condition. */
static qsim_model *inside(const qsim_model *m, enum place place) {
    static const int64_t list[] = {5, 6}, two = 2;
    qsim_model *made = NULL;
    qsim_error e = {.message = ""};
    size_t size = 0;
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, &size, NULL), QSIM_OK);
    uint8_t *bytes = malloc(size);
    CHECK_INT(qsim_model_save_memory(m, bytes, size, &size, NULL), QSIM_OK);
    proto graph = content(bytes, size, 7), outer = {0}, model = {0};
    if (place == IF)
        put_if(&outer, m, &graph, "outside_");
    else
        put_loop(&outer, m, &graph, place);
    proto_constant(&outer, "inside_two", QSIM_INT64, -1, &two, sizeof(two));
    proto_constant(&outer, "inside_list", QSIM_INT64, 2, list, sizeof(list));
    proto_text(&outer, 2, "inside");
    copy_fields(&outer, graph.data, graph.data + graph.size, 1u << 11);
    proto_value(&outer, 11, "inside_on", QSIM_BOOL, NULL, 0);
    output_names(m, &outer, 12, "outside_");
    copy_fields(&model, bytes, bytes + size, 1u << 1 | 1u << 8);
    proto_take(&model, 7, &outer);
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_COPY};
    if (qsim_model_load_memory(NULL, model.data, model.size, &o, &made, &e))
        CHECK_FAIL(e.message);
    free(bytes);
    proto_free(&graph);
    proto_free(&outer);
    proto_free(&model);
    return made;
}

/* ---- quantizing and running ---- */

typedef struct feed {
    size_t count;
    qsim_tensor x[RG_INPUTS + 1];
    int64_t dims[RG_INPUTS][QSIM_MAX_RANK];
} feed;

static const uint8_t on = 1;

/* Inputs of a model, and behind them the condition. */
static void make_feed(feed *f, const qsim_model *m, uint64_t seed, int64_t batch) {
    uint64_t state = seed * 31 + 17;
    f->count = (size_t)qsim_model_input_count(m);
    for (size_t i = 0; i < f->count; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        CHECK_INT(qsim_model_input(m, (int32_t)i, &v), QSIM_OK);
        memcpy(f->dims[i], v.dims, (size_t)v.rank * sizeof(int64_t));
        f->dims[i][0] = batch;
        f->x[i] = (qsim_tensor){v.dtype, v.rank, f->dims[i], NULL, 0};
        qsim_tensor_size(v.dtype, v.rank, f->dims[i], NULL, &f->x[i].bytes);
        float *p = f->x[i].data = malloc(f->x[i].bytes + 1);
        for (size_t k = 0; k < f->x[i].bytes / sizeof(*p); k++)
            p[k] = (float)(test_random(&state) >> 8) * (4.0f / 16777216.0f) - 2;
    }
    f->x[f->count] = (qsim_tensor){QSIM_BOOL, 0, NULL, (void *)(uintptr_t)&on, 1};
}

enum form { FLOATS, STATIC, QOPERATOR, DYNAMIC, WEIGHTS, FORMS };
static const char *const forms[FORMS] = {"floats", "static", "qoperator", "dynamic", "weights"};

/* Layers and how they are quantized, as text. */
typedef struct listed {
    char text[1 << 14];
    size_t used;
} listed;

static int list(void *user, const qsim_layer_info *info) {
    listed *l = user;
    const int n = snprintf(l->text + l->used, sizeof(l->text) - l->used, "%s %s %d\n", info->name,
                           info->op_type, (int)info->scheme);
    l->used += n > 0 && (size_t)n < sizeof(l->text) - l->used ? (size_t)n : 0;
    return 0;
}

/* Of the same model inside and outside with the same options. NULL: as it is, in floats. */
static qsim_model *quantized(const qsim_model *m, const feed *f, size_t inputs, enum form form,
                             uint64_t seed, listed *layers) {
    uint64_t state = seed * 977 + (uint64_t)form;
    for (int i = 0; i < 4; i++)
        test_random(&state);
    const uint32_t bits = test_random(&state);
    const qsim_quantize_options o = {
        .struct_size = sizeof(o),
        .mode = form == DYNAMIC   ? QSIM_MODE_DYNAMIC
                : form == WEIGHTS ? QSIM_MODE_WEIGHTS
                                  : QSIM_MODE_STATIC,
        .format = form == QOPERATOR ? QSIM_FORMAT_QOPERATOR : QSIM_FORMAT_QDQ,
        .activation_type = bits & 1 ? QSIM_INT8 : QSIM_UINT8,
        .weight_scheme = (int32_t)(bits >> 4) % 3,
        .weight_type = (bits >> 4) % 3 == QSIM_WEIGHT_TENSOR_ASYMMETRIC ? QSIM_UINT8 : QSIM_INT8,
        .per_row = form == DYNAMIC && (bits >> 12) % 2,
    };
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    qsim_error e = {.message = ""};
    int code = form == FLOATS ? QSIM_OK : qsim_calibration_create(m, NULL, &c, &e);
    if (c)
        code = qsim_calibration_feed(c, f->x, inputs, &e);
    *layers = (listed){.used = 0};
    if (c && !code && qsim_quantize_layers(m, c, &o, list, layers, &e) < 0)
        code = e.code;
    if (c && !code)
        code = qsim_quantize(m, c, &o, &q, &e);
    if (code)
        CHECK_FAIL(e.message);
    qsim_calibration_free(c);
    return q;
}

typedef struct results {
    size_t count;
    qsim_tensor y[MOST_OUTPUTS];
} results;

static bool run(const qsim_model *m, const feed *f, size_t inputs, int32_t level, results *to) {
    const qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {.message = ""};
    qsim_tensor y[MOST_OUTPUTS] = {{0}};
    const size_t count = (size_t)qsim_model_output_count(m);
    to->count = 0;
    if (qsim_session_create(m, &o, &s, &e) || qsim_run_create(s, &r, &e) ||
        qsim_run_execute(r, f->x, inputs, y, count, &e)) {
        CHECK_FAIL(e.message);
    } else {
        for (; to->count < count; to->count++) {
            qsim_tensor *t = &to->y[to->count];
            *t = y[to->count];
            t->data = malloc(t->bytes + 1);
            memcpy(t->data, y[to->count].data, t->bytes);
        }
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return to->count > 0;
}

static void drop(results *r) {
    for (size_t i = 0; i < r->count; i++)
        free(r->y[i].data);
}

/* The largest difference of a result, repeated, to another, in parts of the largest value. */
static double apart(const qsim_tensor *a, const qsim_tensor *b, int times) {
    double most = 0, largest = 1e-30;
    if (a->dtype != QSIM_FLOAT || b->dtype != QSIM_FLOAT || b->bytes != a->bytes * (size_t)times)
        return INFINITY;
    const float *p = a->data, *q = b->data;
    const size_t n = a->bytes / sizeof(float);
    for (size_t i = 0; i < n * (size_t)times; i++) {
        const double d = fabs((double)p[i % n] - (double)q[i]);
        if (memcmp(&p[i % n], &q[i], sizeof(*q)) == 0)
            continue;
        if (isnan(d))
            return INFINITY;
        largest = fmax(largest, fabs((double)p[i % n]));
        most = fmax(most, d);
    }
    return most / largest;
}

static void compare(const results *a, const results *b, uint64_t seed, enum place place,
                    enum form form, int32_t level, double within) {
    for (size_t i = 0; i < a->count; i++) {
        const double d = apart(&a->y[i], &b->y[i], repeats[place]);
        test_checks++;
        if (d <= within)
            continue;
        test_failures++;
        fprintf(stderr, "seed %d, %s, %s, level %d, output %zu differs by %.3g\n", (int)seed,
                places[place], forms[form], (int)level, i, d);
    }
}

static void one_seed(uint64_t seed) {
    static rg g;
    static listed layers[2];
    qsim_error e = {.message = ""};
    const enum place place = seed % PLACES;
    qsim_model *floats = rg_make(&g, seed, NULL, NULL, &e), *below = NULL;
    feed f = {0};
    if (!floats) {
        CHECK_FAIL(e.message);
        return;
    }
    below = inside(floats, place);
    make_feed(&f, floats, seed, g.batch);
    for (enum form form = FLOATS; form < FORMS && below; form++) {
        qsim_model *a = quantized(floats, &f, f.count, form, seed, &layers[0]);
        qsim_model *b = quantized(below, &f, f.count + 1, form, seed, &layers[1]);
        CHECK_STR(layers[1].text, layers[0].text);
        for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
            results x = {0}, y = {0};
            if (run(a ? a : floats, &f, f.count, level, &x) &&
                run(b ? b : below, &f, f.count + 1, level, &y))
                compare(&x, &y, seed, place, form, level, 0);
            drop(&x);
            drop(&y);
        }
        qsim_model_free(a);
        qsim_model_free(b);
    }
    for (size_t i = 0; i < f.count; i++)
        free(f.x[i].data);
    qsim_model_free(floats);
    qsim_model_free(below);
}

int main(int argc, char **argv) {
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : EVERY_DAY;
    for (uint64_t i = 0; i < count && test_failures < 200; i++)
        one_seed(first + i);
    return test_done();
}
