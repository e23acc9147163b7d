/* SPDX-License-Identifier: MIT */
/*
 * Blocks of pixels to channels and back, before and after convolutions that change nothing: against
 * a plain loop at every level; at the highest level the remaining steps are counted.
 */
#include "net.h"

#define C    3
#define MOST 180000

static float x[MOST], y[MOST], expected[MOST];

static void list(net *n, const char *name, int64_t count, const int64_t *v) {
    net_const(n, name, QSIM_INT64, 1, &count, v);
}

/* A 1x1 convolution of c channels whose weights are the identity. */
static void same_again(net *n, const char *from, const char *to, int64_t c) {
    static float w[64 * 64];
    char name[32], in[64];
    memset(w, 0, sizeof(w));
    for (int64_t i = 0; i < c; i++)
        w[i * c + i] = 1;
    snprintf(name, sizeof(name), "w_%s", to);
    net_const(n, name, QSIM_FLOAT, NET_DIMS(c, c, 1, 1), w);
    snprintf(in, sizeof(in), "%s,%s", from, name);
    net_node(n, "", "Conv", in, to);
}

/* to = from, quantized to bytes and back. */
static void pair(net *n, const char *from, const char *to) {
    char name[32], in[64];
    snprintf(name, sizeof(name), "%s_q", from);
    snprintf(in, sizeof(in), "%s,one,zero", from);
    net_node(n, "", "QuantizeLinear", in, name);
    snprintf(in, sizeof(in), "%s_q,one,zero", from);
    net_node(n, "", "DequantizeLinear", in, to);
}

/* Runs at every level; returns the number of this kernel's steps at the highest. */
static int check(net *n, const char *kernel, const int64_t *dims, size_t size) {
    int found = 0;
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_session_options o = {.struct_size = sizeof(o), .level = level};
        qsim_session *s = NULL;
        qsim_run *r = NULL;
        const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
        qsim_tensor out = {.data = y, .bytes = sizeof(y)};
        memset(y, 1, sizeof(y));
        NET_OK(n, qs_session_compile(n->model, &o, 0, &s, &n->error));
        NET_OK(n, qsim_run_create(s, &r, &n->error));
        NET_OK(n, qsim_run_execute(r, &in, 1, &out, 1, &n->error));
        CHECK_INT(out.bytes, size * sizeof(float));
        CHECK(memcmp(y, expected, size * sizeof(float)) == 0);
        found = 0;
        for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
            qsim_step_info info = {.struct_size = sizeof(info)};
            CHECK_INT(qsim_run_step(r, i, &info), 0);
            found += strcmp(info.kernel, kernel) == 0;
        }
        qsim_run_free(r);
        qsim_session_free(s);
    }
    return found;
}

typedef struct shape {
    int64_t batch, rows, columns, s; /* of the image, and the block's side */
    bool by_columns, behind;         /* phases of one column together; after a convolution */
    bool quantized;                  /* before the convolution */
    int broken;                      /* this phase begins where another does; -1: none */
} shape;

static void fill(const shape *d) {
    const int64_t h = d->rows / d->s, w = d->columns / d->s, planes = d->s * d->s * C;
    for (int64_t i = 0; i < d->batch * C * d->rows * d->columns; i++)
        x[i] = (float)(i * 7919 % 509 % 256);
    for (int64_t i = 0; i < d->batch * planes * h * w; i++) {
        const int64_t column = i % w, row = i / w % h, p = i / (w * h) % planes,
                      b = i / (w * h * planes);
        const int64_t k = p / C == d->broken ? 1 : p / C, c = p % C;
        const int64_t down = d->by_columns ? k % d->s : k / d->s;
        const int64_t right = d->by_columns ? k / d->s : k % d->s;
        expected[i] =
            x[((b * C + c) * d->rows + row * d->s + down) * d->columns + column * d->s + right];
    }
}

/* Slices and a Concat, as in the first layer of detectors. */
static void phases(const shape *d, int transposes, int slices) {
    net n;
    char joined[256] = "", name[32], in[96];
    const int64_t dims[] = {d->batch, C, d->rows, d->columns}, planes = d->s * d->s * C;
    const int64_t ends[] = {INT64_MAX, INT64_MAX}, axes[] = {3, -2}, steps[] = {d->s, d->s};
    const char *from = d->behind ? "before" : "x";
    fill(d);
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, 4, dims);
    list(&n, "ends", 2, ends);
    list(&n, "axes", 2, axes);
    list(&n, "steps", 2, steps);
    if (d->behind)
        same_again(&n, "x", "before", C);
    for (int64_t k = 0; k < d->s * d->s; k++) {
        const int64_t at = k == d->broken ? 1 : k, slow = at / d->s, fast = at % d->s;
        const int64_t starts[] = {d->by_columns ? slow : fast, d->by_columns ? fast : slow};
        snprintf(name, sizeof(name), "from%d", (int)k);
        list(&n, name, 2, starts);
        snprintf(in, sizeof(in), "%s,%s,ends,axes,steps", from, name);
        snprintf(name, sizeof(name), "p%d", (int)k);
        net_node(&n, "", "Slice", in, name);
        snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", k ? "," : "",
                 name);
    }
    qs_node_set_int(n.g, net_node(&n, "", "Concat", joined, "j"), "axis", 1);
    net_float(&n, "one", 1);
    net_byte(&n, "zero", QSIM_UINT8, 0);
    if (d->quantized) {
        pair(&n, "j", "j_d");
        same_again(&n, "j_d", "sum", planes);
        pair(&n, "w_sum", "w_d");
        n.g->nodes[qs_pass_producer(n.g, qs_graph_find(n.g, "sum"), "Conv")].inputs[1] =
            net_value(&n, "w_d");
        pair(&n, "sum", "y");
    } else {
        same_again(&n, "j", "y", planes);
    }
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const size_t size = (size_t)(d->batch * C * d->rows * d->columns);
    CHECK_INT(check(&n, "transpose", dims, size), transposes);
    CHECK_INT(check(&n, "select", dims, size), slices);
    net_free(&n);
}

/* Reshape, Transpose, Reshape, which invert `phases` if `up`. */
static void transposed_blocks(bool up, bool by_columns, bool behind, bool before, int transposes) {
    net n;
    const int64_t s = 2, h = 19, w = 18, planes = s * s * C;
    const shape d = {1, h * s, w * s, s, by_columns, false, false, -1};
    const int64_t wide[] = {1, C, h * s, w * s}, deep[] = {1, planes, h, w};
    const int64_t cut_down[] = {1, C, h, s, w, s}, cut_up[] = {1, s, s, C, h, w};
    const int64_t down[] = {0, by_columns ? 5 : 3, by_columns ? 3 : 5, 1, 2, 4};
    const int64_t back[] = {0, 3, 4, by_columns ? 2 : 1, 5, by_columns ? 1 : 2};
    fill(&d);
    for (size_t i = 0; up && i < (size_t)(planes * h * w); i++) {
        const float v = x[i];
        x[i] = expected[i];
        expected[i] = v;
    }
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, 4, up ? deep : wide);
    list(&n, "cut", 6, up ? cut_up : cut_down);
    list(&n, "join", 4, up ? wide : deep);
    if (behind)
        same_again(&n, "x", "a", up ? planes : C);
    net_node(&n, "", "Reshape", behind ? "a,cut" : "x,cut", "b");
    net_ints(&n, net_node(&n, "", "Transpose", "b", "c"), "perm", 6, up ? back : down);
    net_node(&n, "", "Reshape", "c,join", before ? "d" : "y");
    if (before)
        same_again(&n, "d", "y", up ? C : planes);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    CHECK_INT(check(&n, "transpose", up ? deep : wide, (size_t)(planes * h * w)), transposes);
    net_free(&n);
}

int main(void) {
    for (int s = 2; s <= 4; s++) {
        const int64_t h = 17 * s, w = 19 * s;
        /* one from where the image is, and what the convolution's result needs */
        phases(&(shape){1, h, w, s, true, false, false, -1}, 2, 0);
        phases(&(shape){1, h, w, s, true, false, true, -1}, 2, 0);
        phases(&(shape){1, h, w, s, false, true, false, -1}, 3, 0);
        phases(&(shape){1, h, w, s, true, true, false, -1}, 3, 0);
        /* rows together: through the image with its channels last */
        phases(&(shape){1, h, w, s, false, false, false, -1}, 3, 0);
        phases(&(shape){1, h, w, s, true, false, false, 2}, 2, s * s);
    }
    phases(&(shape){2, 36, 800, 2, true, false, false, -1}, 2, 0);
    for (int k = 0; k < 4; k++) {
        const bool by_columns = k & 1, behind = k & 2;
        transposed_blocks(false, by_columns, behind, true, by_columns && !behind ? 2 : 3);
        transposed_blocks(true, by_columns, behind, true, 3);
        transposed_blocks(true, by_columns, true, false, 2);
    }
    transposed_blocks(false, true, true, false, 2);
    return test_done();
}
