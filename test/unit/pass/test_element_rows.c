/* SPDX-License-Identifier: MIT */
/*
 * Promises for every element-wise row of the operator table: between two convolutions it leaves no
 * Transpose, and a graph input that it reads is not copied.
 */
#include "net.h"

#include "exec/run.h"

#include <math.h>
#include <sys/mman.h>

#define IMAGE  1, 4, 5, 7
#define PIXELS 140

/* How many inputs a test gives the row's nodes: the mandatory ones; two if there is no limit. */
static int32_t operands(const qs_op *op) {
    return op->max_in < 0 ? 2 : op->min_in;
}

/* CastLike is left out: its second input only states a type. */
static bool is_tested(const qs_op *op) {
    const bool stated = op->min_in > 1 && !qs_op_is_operand(op, 1);
    return !op->domain && (op->traits & QS_ELEMENTWISE) && !stated;
}

static bool has_attr(const qs_op *op, const char *name) {
    for (int32_t i = 0; i < op->attr_count; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return true;
    return false;
}

/* The row's node reads x0, x1, ... and writes "made". Mandatory attributes are set. */
static void add_node(net *n, const qs_op *op) {
    static const char *const names[] = {"x0", "x0,x1", "x0,x1,x2"};
    const qs_id id = net_node(n, "", op->name, names[operands(op) - 1], "made");
    if (has_attr(op, "to"))
        qs_node_set_int(n->g, id, "to", QSIM_FLOAT);
    if (has_attr(op, "direction")) {
        qs_attr a = {.name = "direction", .type = QSIM_ATTR_STRING};
        a.u.s = (qs_span){(const uint8_t *)"RIGHT", 5};
        qs_node_set_attr(n->g, id, &a);
    }
    if (has_attr(op, "fmod"))
        qs_node_set_int(n->g, id, "fmod", 1);
}

/* Bit i: operand i is a truth value or, with INTEGERS, an integer, not a float. */
#define INTEGERS 8u
static int32_t type_of(unsigned truths, int32_t operand) {
    return !(truths >> operand & 1) ? QSIM_FLOAT : truths & INTEGERS ? QSIM_UINT32 : QSIM_BOOL;
}

static void cast(net *n, const char *x, const char *y, int32_t to) {
    qs_node_set_int(n->g, net_node(n, "", "Cast", x, y), "to", to);
}

/* Whether the row's operands can have these types, and the type of the result. */
static bool fits(const qs_op *op, unsigned truths, int32_t *made) {
    static const char *const names[] = {"x0", "x1", "x2"};
    net n;
    net_begin(&n, NULL, qs_op_newest_opset());
    for (int32_t i = 0; i < operands(op); i++)
        net_input(&n, names[i], type_of(truths, i), NET_DIMS(IMAGE));
    add_node(&n, op);
    net_output(&n, "made");
    const bool fit = net_end(&n) == QSIM_OK;
    *made = fit ? n.g->values[qs_graph_find(n.g, "made")].dtype : QSIM_UNDEFINED;
    net_free(&n);
    return fit;
}

static bool find_types(const qs_op *op, unsigned *truths, int32_t *made) {
    for (*truths = 0; *truths < 2 * INTEGERS; ++*truths)
        if (fits(op, *truths, made))
            return true;
    CHECK_FAIL(op->name);
    return false;
}

/* x -> convolution of each operand -> the row -> convolution -> y. */
static void make_between(net *n, const qs_op *op, unsigned truths, int32_t made) {
    static const char *const names[] = {"x0", "x1", "x2"}, *const convs[] = {"c0", "c1", "c2"};
    net_begin(n, NULL, qs_op_newest_opset());
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(IMAGE));
    net_random(n, "w", NET_DIMS(4, 4, 1, 1), 1, 1);
    for (int32_t i = 0; i < operands(op); i++) {
        const bool truth = truths >> i & 1;
        net_node(n, "", "Conv", "x,w", truth ? convs[i] : names[i]);
        if (truth)
            cast(n, convs[i], names[i], type_of(truths, i));
    }
    add_node(n, op);
    if (made != QSIM_FLOAT)
        cast(n, "made", "floats", QSIM_FLOAT);
    net_node(n, "", "Conv", made == QSIM_FLOAT ? "made,w" : "floats,w", "y");
    net_output(n, "y");
    NET_OK(n, net_end(n));
}

static int transposes(const qs_graph *g) {
    int count = 0;
    for (size_t i = 0; i < g->order_count; i++)
        count += strcmp(g->nodes[g->order[i]].op_type, "Transpose") == 0;
    return count;
}

/* Only the input's and the output's Transpose remain; numbers equal those without any pass. */
static void check_between(net *n, const char *name) {
    float x[PIXELS], y[2][PIXELS];
    const int64_t dims[] = {IMAGE};
    qsim_session *s = NULL;
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i % 17) / 8 - 0.9f;
    NET_OK(n, qsim_session_create(n->model, NULL, &s, &n->error));
    if (s && transposes(s->graph) != 2) {
        fprintf(stderr, "%s: %d transposes\n", name, transposes(s->graph));
        CHECK_FAIL("an element-wise operator between convolutions has transposes around it");
    }
    qsim_session_free(s);
    for (int i = 0; i < 2; i++) {
        qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        NET_OK(n, net_run(n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
    }
    int wrong = 0;
    for (int i = 0; i < PIXELS; i++)
        wrong += isnan(y[0][i]) ? !isnan(y[1][i])
                                : !(fabsf(y[0][i] - y[1][i]) <= 1e-5f * (1 + fabsf(y[0][i])) ||
                                    y[0][i] == y[1][i]);
    CHECK_INT(wrong, 0);
}

/* Mish, as exporters write it. */
static void test_mish(void) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(IMAGE));
    net_random(&n, "w", NET_DIMS(4, 4, 1, 1), 1, 1);
    net_node(&n, "", "Conv", "x,w", "a");
    net_node(&n, "", "Softplus", "a", "b");
    net_node(&n, "", "Tanh", "b", "c");
    net_node(&n, "", "Mul", "a,c", "d");
    net_node(&n, "", "Conv", "d,w", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    check_between(&n, "Mish");
    net_free(&n);
}

/* Before version 7 an operand of fewer axes says where it begins: here at the channels. */
static void test_legacy_axis(void) {
    net n;
    net_begin(&n, NULL, 6);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(IMAGE));
    net_random(&n, "w", NET_DIMS(4, 4, 1, 1), 1, 1);
    net_random(&n, "f", NET_DIMS(4), 2, 1);
    net_node(&n, "", "Conv", "x,w", "a");
    const qs_id mul = net_node(&n, "", "Mul", "a,f", "b");
    qs_node_set_int(n.g, mul, "broadcast", 1);
    qs_node_set_int(n.g, mul, "axis", 1);
    net_node(&n, "", "Relu", "b", "c");
    net_output(&n, "c");
    NET_OK(&n, net_end(&n));
    float x[PIXELS], y[2][PIXELS];
    const int64_t dims[] = {IMAGE};
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i % 17) / 8 - 0.9f;
    for (int i = 0; i < 2; i++) {
        qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        NET_OK(&n, net_run(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
    }
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    net_free(&n);
}

/* ---- inputs read in the caller's memory ---- */

#define PAGE ((size_t)4096)

/* `bytes` followed by a page that must not be read; *pages is passed to let_go. */
static void *at_the_end(size_t bytes, char **pages) {
    void *p = NULL;
    if (posix_memalign(&p, PAGE, 3 * PAGE) || mprotect((char *)p + 2 * PAGE, PAGE, PROT_NONE))
        CHECK_FAIL("no memory to protect");
    *pages = p;
    return *pages + 2 * PAGE - bytes;
}

static void let_go(char *pages) {
    if (pages)
        mprotect(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE);
    free(pages);
}

/* Runs the net with inputs at the end of readable memory: a step that reads further is killed. */
static void run_at_the_end(net *n, const char *name) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor x[3], y = {0};
    char *pages[3] = {NULL};
    NET_OK(n, qsim_session_create(n->model, NULL, &s, &n->error));
    if (s)
        NET_OK(n, qsim_run_create(s, &r, &n->error));
    for (size_t i = 0; r && i < n->g->input_count; i++) {
        const qs_value *v = &n->g->values[n->g->inputs[i]];
        static const int64_t dims[] = {IMAGE};
        x[i] = net_tensor(v->dtype, 4, dims, NULL);
        x[i].data = at_the_end(x[i].bytes, &pages[i]);
        memset(x[i].data, v->dtype == QSIM_BOOL, x[i].bytes);
    }
    if (r) {
        NET_OK(n, qsim_run_execute(r, x, n->g->input_count, &y, 1, &n->error));
        const qs_plan *plan = r->plan;
        for (size_t i = 0; plan && i < n->g->input_count; i++)
            if (!plan->inputs[i].in_place) {
                fprintf(stderr, "%s: input %zu\n", name, i);
                CHECK_FAIL("an input of an element-wise operator is copied");
            }
        CHECK(plan != NULL);
    }
    for (int i = 0; i < 3; i++)
        let_go(pages[i]);
    qsim_run_free(r);
    qsim_session_free(s);
}

static void check_input(qsim_ctx *ctx, const qs_op *op, unsigned truths) {
    static const char *const names[] = {"x0", "x1", "x2"};
    net n;
    net_begin(&n, ctx, qs_op_newest_opset());
    for (int32_t i = 0; i < operands(op); i++)
        net_input(&n, names[i], type_of(truths, i), NET_DIMS(IMAGE));
    add_node(&n, op);
    net_output(&n, "made");
    NET_OK(&n, net_end(&n));
    run_at_the_end(&n, op->name);
    net_free(&n);
}

/* Bytes through a curve: a table gives floats or, quantized again, bytes. */
static void check_bytes(qsim_ctx *ctx, int32_t dtype, bool quantized) {
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", dtype, NET_DIMS(IMAGE));
    net_float(&n, "s", 0.05f);
    net_byte(&n, "z", dtype, 3);
    net_node(&n, "", "DequantizeLinear", "x,s,z", "f");
    net_node(&n, "", "Sigmoid", "f", "c");
    if (quantized)
        net_node(&n, "", "QuantizeLinear", "c,s,z", "y");
    net_output(&n, quantized ? "y" : "c");
    NET_OK(&n, net_end(&n));
    run_at_the_end(&n, "bytes");
    net_free(&n);
}

static void check_inputs(int32_t isa, const unsigned *truths) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .isa = isa};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    for (size_t i = 0; ctx && i < qs_op_count(); i++)
        if (is_tested(qs_op_at(i)))
            check_input(ctx, qs_op_at(i), truths[i]);
    for (int k = 0; k < 4; k++)
        check_bytes(ctx, k & 1 ? QSIM_INT8 : QSIM_UINT8, k & 2);
    qsim_ctx_free(ctx);
}

int main(void) {
    unsigned truths[512] = {0};
    CHECK(qs_op_count() <= QS_COUNT(truths));
    for (size_t i = 0; i < qs_op_count(); i++) {
        const qs_op *op = qs_op_at(i);
        int32_t made;
        net n;
        if (!is_tested(op) || !find_types(op, &truths[i], &made))
            continue;
        make_between(&n, op, truths[i], made);
        check_between(&n, op->name);
        net_free(&n);
    }
    test_mish();
    test_legacy_axis();
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa); isa++)
        if (qsim_isa_available(isa))
            check_inputs(isa, truths);
    return test_done();
}
