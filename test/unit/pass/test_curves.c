/* SPDX-License-Identifier: MIT */
/*
 * Gelu as exporters write it, of Erf and of Tanh, in the forms of PyTorch, JAX and TensorFlow, and
 * HardSwish: one step each, with the formula's numbers. Other polynomials, factors and readers stay
 * as they are.
 */
#include "net.h"

#include <math.h>

#define N 37

typedef struct form {
    const char *what;
    struct {
        const char *op, *in, *out;
    } nodes[10];
    int steps; /* with all optimizations */
    double (*formula)(double x);
} form;

static double by_erf(double x) {
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double by_tanh(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double by_parts(double x) {
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static const form forms[] = {
    {"erf, PyTorch",
     {{"Div", "x,root2", "a"},
      {"Erf", "a", "b"},
      {"Add", "b,1", "c"},
      {"Mul", "x,c", "d"},
      {"Mul", "d,0.5", "y"}},
     1,
     by_erf},
    {"erf, product",
     {{"Mul", "root,x", "a"},
      {"Erf", "a", "b"},
      {"Add", "1,b", "c"},
      {"Mul", "0.5,c", "d"},
      {"Mul", "d,x", "y"}},
     1,
     by_erf},
    {"tanh, GPT-2",
     {{"Mul", "x,0.5", "h"},
      {"Pow", "x,3", "a"},
      {"Mul", "a,0.044715", "b"},
      {"Add", "x,b", "c"},
      {"Mul", "c,0.797885", "d"},
      {"Tanh", "d", "e"},
      {"Add", "e,1", "f"},
      {"Mul", "h,f", "y"}},
     1,
     by_tanh},
    {"tanh, JAX",
     {{"Mul", "0.044715,x", "a"},
      {"Mul", "x,a", "b"},
      {"Mul", "x,b", "c"},
      {"Add", "x,c", "d"},
      {"Mul", "0.797885,d", "e"},
      {"Tanh", "e", "f"},
      {"Add", "1,f", "g"},
      {"Mul", "0.5,g", "h"},
      {"Mul", "x,h", "y"}},
     1,
     by_tanh},
    {"tanh, x outside",
     {{"Mul", "x,x", "a"},
      {"Mul", "a,0.0356774", "b"},
      {"Add", "b,0.797885", "c"},
      {"Mul", "c,x", "d"},
      {"Tanh", "d", "e"},
      {"Add", "e,1", "f"},
      {"Mul", "x,f", "g"},
      {"Mul", "0.5,g", "y"}},
     1,
     by_tanh},
    {"another cubic factor",
     {{"Pow", "x,3", "a"},
      {"Mul", "a,0.05", "b"},
      {"Add", "x,b", "c"},
      {"Mul", "c,0.797885", "d"},
      {"Tanh", "d", "e"},
      {"Add", "e,1", "f"},
      {"Mul", "x,f", "g"},
      {"Mul", "g,0.5", "y"}},
     8,
     NULL},
    {"a fifth power",
     {{"Pow", "x,3", "a"},
      {"Mul", "a,0.044715", "b"},
      {"Add", "x,b", "c"},
      {"Mul", "c,0.797885", "d"},
      {"Pow", "x,2", "i"},
      {"Mul", "i,b", "j"},
      {"Add", "d,j", "k"},
      {"Tanh", "k", "e"},
      {"Add", "e,1", "f"},
      {"Mul", "x,f", "y"}},
     10,
     NULL},
    {"no half",
     {{"Pow", "x,3", "a"},
      {"Mul", "a,0.044715", "b"},
      {"Add", "x,b", "c"},
      {"Mul", "c,0.797885", "d"},
      {"Tanh", "d", "e"},
      {"Add", "e,1", "f"},
      {"Mul", "x,f", "g"},
      {"Mul", "g,2", "y"}},
     8,
     NULL},
    {"HardSwish",
     {{"Add", "3,x", "a"}, {"Clip", "a,0,6", "b"}, {"Mul", "b,x", "c"}, {"Div", "c,6", "y"}},
     1,
     by_parts},
    {"no sum",
     {{"Mul", "3,x", "a"}, {"Clip", "a,0,6", "b"}, {"Mul", "b,x", "c"}, {"Div", "c,6", "y"}},
     4,
     NULL},
    {"another x",
     {{"Neg", "x", "n"},
      {"Div", "n,root2", "a"},
      {"Erf", "a", "b"},
      {"Add", "b,1", "c"},
      {"Mul", "x,c", "d"},
      {"Mul", "d,0.5", "y"}},
     6,
     NULL},
};

/* Runs at a level; returns the number of steps. */
static int run(net *n, int32_t level, float *x, float *y) {
    const qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    const int64_t dims[] = {1, N};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 2, dims, x);
    qsim_tensor out = {.data = y, .bytes = N * sizeof(float)};
    NET_OK(n, qs_session_compile(n->model, &o, 0, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    NET_OK(n, qsim_run_execute(r, &in, 1, &out, 1, &n->error));
    const int steps = qsim_run_step_count(r);
    qsim_run_free(r);
    qsim_session_free(s);
    return steps;
}

static void check(const form *f) {
    float x[N], plain[N], best[N];
    net n;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - N / 2) * 0.3f;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, N));
    net_float(&n, "root2", 1.41421354f);
    net_float(&n, "root", 0.707106769f);
    net_float(&n, "0.044715", 0.044715f);
    net_float(&n, "0.05", 0.05f);
    net_float(&n, "0.0356774", 0.797884583f * 0.044715f);
    net_float(&n, "0.797885", 0.797884583f);
    net_float(&n, "0.5", 0.5f);
    net_float(&n, "1", 1);
    net_float(&n, "2", 2);
    net_float(&n, "3", 3);
    net_float(&n, "0", 0);
    net_float(&n, "6", 6);
    for (size_t k = 0; k < QS_COUNT(f->nodes) && f->nodes[k].op; k++)
        net_node(&n, "", f->nodes[k].op, f->nodes[k].in, f->nodes[k].out);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    run(&n, QSIM_LEVEL_DISABLE, x, plain);
    const int steps = run(&n, QSIM_LEVEL_ALL, x, best);
    if (steps != f->steps)
        CHECK_FAIL(f->what);
    for (int i = 0; i < N; i++) {
        if (f->formula)
            CHECK_NEAR(best[i], f->formula((double)x[i]), 2e-6);
        CHECK_NEAR(best[i], plain[i], 4e-6);
    }
    net_free(&n);
}

int main(void) {
    for (size_t i = 0; i < QS_COUNT(forms); i++)
        check(&forms[i]);
    return test_done();
}
