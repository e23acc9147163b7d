/* SPDX-License-Identifier: MIT */
/* Einsum as a matrix product: against the sum that its equation defines, and which stay. */
#include "net.h"

#include <math.h>

#define MOST 8 /* letters of an equation, a to h */

/* ---- drawn equations ---- */

typedef struct drawn {
    int letters, in[2], out; /* numbers of letters */
    char term[2][MOST + 1], result[MOST + 1], equation[4 * MOST];
    int64_t sizes[MOST];
    int64_t dims[2][MOST], declared[2][MOST], made[MOST];
    float x[2][4096], y[4096];
} drawn;

static uint64_t seed = 5;

static uint32_t draw(uint32_t below) {
    return test_random(&seed) % below;
}

/* Inserts a letter at a drawn place. */
static void insert(char *term, char letter) {
    const size_t length = strlen(term), at = draw((uint32_t)length + 1);
    memmove(term + at + 1, term + at, length - at + 1);
    term[at] = letter;
}

/* Adds up to `most` letters to those of the three terms that `where` has a bit of. */
static void add_letters(drawn *d, uint32_t most, int where) {
    char *terms[] = {d->term[0], d->term[1], d->result};
    for (uint32_t count = draw(most + 1); count-- && d->letters < MOST;) {
        for (int t = 0; t < 3; t++)
            if (where >> t & 1)
                insert(terms[t], (char)('a' + d->letters));
        d->sizes[d->letters++] = 1 + draw(4);
    }
}

/* A letter of both operands and the result may have size 1 in one of them. */
static int64_t drawn_size(const drawn *d, int term, char letter) {
    const bool other = strchr(d->term[!term], letter) != NULL;
    const bool batch = other && strchr(d->result, letter) != NULL;
    return batch && term && draw(4) == 0 ? 1 : d->sizes[letter - 'a'];
}

static void draw_equation(drawn *d) {
    memset(d, 0, sizeof(*d));
    add_letters(d, 2, 7);
    add_letters(d, 2, 5);
    add_letters(d, 2, 3);
    add_letters(d, 2, 6);
    snprintf(d->equation, sizeof(d->equation), "%s,%s->%s", d->term[0], d->term[1], d->result);
    for (int t = 0; t < 2; t++) {
        size_t count = 1;
        for (int i = 0; d->term[t][i]; i++) {
            d->dims[t][i] = drawn_size(d, t, d->term[t][i]);
            d->declared[t][i] = draw(3) ? d->dims[t][i] : -1;
            count *= (size_t)d->dims[t][i];
        }
        for (size_t i = 0; i < count; i++)
            d->x[t][i] = (float)((int32_t)draw(2001) - 1000) / 1000.0f;
    }
    for (int i = 0; d->result[i]; i++)
        d->made[i] = d->sizes[d->result[i] - 'a'];
}

/* The place of an element whose letters have values `at`; an axis of size 1 is broadcast. */
static size_t place(const char *term, const int64_t *dims, const int64_t *at) {
    size_t index = 0;
    for (int i = 0; term[i]; i++)
        index = index * (size_t)dims[i] + (size_t)(dims[i] == 1 ? 0 : at[term[i] - 'a']);
    return index;
}

static size_t define(const drawn *d, double *y) {
    size_t count = 1, all = 1;
    for (int i = 0; d->result[i]; i++)
        count *= (size_t)d->made[i];
    for (int i = 0; i < d->letters; i++)
        all *= (size_t)d->sizes[i];
    memset(y, 0, count * sizeof(*y));
    for (size_t i = 0; i < all; i++) {
        int64_t at[MOST];
        size_t rest = i;
        for (int k = 0; k < d->letters; rest /= (size_t)d->sizes[k++])
            at[k] = (int64_t)(rest % (size_t)d->sizes[k]);
        y[place(d->result, d->made, at)] += (double)d->x[0][place(d->term[0], d->dims[0], at)] *
                                            (double)d->x[1][place(d->term[1], d->dims[1], at)];
    }
    return count;
}

/* Adds a net's operand, an input of sizes `declared` or a constant. Returns whether it is one. */
static bool add_operand(net *n, drawn *d, int t) {
    const int32_t rank = (int32_t)strlen(d->term[t]);
    const bool constant = draw(4) == 0;
    const char *name = t ? "b" : "a";
    if (constant)
        net_const(n, name, QSIM_FLOAT, rank, d->dims[t], d->x[t]);
    else
        net_input(n, name, QSIM_FLOAT, rank, d->declared[t]);
    return constant;
}

static void test_drawn(qsim_ctx *ctx, int cases) {
    static drawn d;
    static double y[4096];
    for (int k = 0; k < cases; k++) {
        net n;
        qsim_tensor in[2];
        size_t inputs = 0;
        draw_equation(&d);
        const size_t count = define(&d, y);
        net_begin(&n, ctx, 13);
        for (int t = 0; t < 2; t++)
            if (!add_operand(&n, &d, t))
                in[inputs++] =
                    net_tensor(QSIM_FLOAT, (int32_t)strlen(d.term[t]), d.dims[t], d.x[t]);
        net_string(&n, net_node(&n, "", "Einsum", "a,b", "y"), "equation", d.equation);
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        for (int level = 0; level < 2; level++) {
            qsim_tensor out = net_tensor(QSIM_FLOAT, (int32_t)strlen(d.result), d.made, d.y);
            NET_OK(&n, net_run(&n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, in, inputs,
                               &out, 1));
            for (size_t i = 0; i < count; i++)
                CHECK_NEAR(d.y[i], y[i], 1e-5);
        }
        net_free(&n);
    }
}

/* ---- the nodes that equations become ---- */

typedef struct expected {
    const char *equation;
    int32_t dtype, rank[2];
    int64_t dims[2][6];
    int constant;      /* the operand that is one, or -1 */
    const char *nodes; /* of the graph afterwards */
} expected;

#define F QSIM_FLOAT
static const expected table[] = {
    /* attention: no sizes are needed */
    {"bhid,bhjd->bhij", F, {4, 4}, {{-1, 2, -1, 8}, {-1, 2, -1, 8}}, -1, "Transpose MatMul "},
    {"bhij,bhjd->bhid", F, {4, 4}, {{-1, 2, -1, -1}, {-1, 2, -1, 8}}, -1, "MatMul "},
    {"...ij,...jk->...ik", F, {3, 3}, {{2, 3, 4}, {2, 4, 5}}, -1, "MatMul "},
    {"bqnc,bnchw->bnqhw",
     F,
     {4, 5},
     {{1, -1, 2, 4}, {1, 2, 4, -1, 5}},
     -1,
     "Transpose Reshape MatMul Reshape "},
    /* relative positions: one operand is broadcast */
    {"bhwc,hkc->bhwk", F, {4, 3}, {{-1, 3, 5, 4}, {3, 6, 4}}, -1, "Transpose MatMul "},
    /* layers: constants are the right factor, of two axes */
    {"bij,jk->bik", F, {3, 2}, {{-1, -1, 4}, {4, 5}}, 1, "MatMul "},
    {"bnd,hdk->bhnk", F, {3, 3}, {{-1, -1, 4}, {2, 4, 3}}, 1, "MatMul Reshape Transpose "},
    {"bhnk,hkd->bnd", F, {4, 3}, {{-1, 2, -1, 3}, {2, 3, 4}}, 1, "Transpose Reshape MatMul "},
    {"oc,bcn->bon", F, {2, 3}, {{5, 4}, {-1, 4, -1}}, 0, "Transpose MatMul Transpose "},
    /* no sum: rotary positions, and axes that one operand lacks */
    {"i,j->ij", F, {1, 1}, {{-1}, {-1}}, -1, "Unsqueeze Mul "},
    {"bij,b->bij", F, {3, 1}, {{-1, 3, 4}, {-1}}, -1, "Unsqueeze Mul "},
    {"bic,c->bic", F, {3, 1}, {{-1, 3, -1}, {4}}, -1, "Mul "},
    {"ij,jb->bij", F, {2, 2}, {{3, -1}, {-1, -1}}, -1, "Transpose Unsqueeze Mul "},
    /* one operand */
    {"abc->cab", QSIM_INT8, {3, 0}, {{2, 3, 4}}, -1, "Transpose "},
    /* sizes that only a run tells: one axis of each operand can be left as it is */
    {"bqc,bchw->bqhw",
     F,
     {3, 4},
     {{1, 2, 4}, {1, 4, -1, -1}},
     -1,
     "Transpose Transpose MatMul Transpose "},
    {"bqxc,bchw->bqxhw", F, {4, 4}, {{1, -1, -1, 4}, {1, 4, -1, -1}}, -1, "Einsum "},
    /* no product of matrices */
    {"ij,ij->", F, {2, 2}, {{3, 4}, {3, 4}}, -1, "Einsum "},
    {"i,j->ij", QSIM_INT32, {1, 1}, {{3}, {4}}, -1, "Einsum "},
    {"iij,jk->ik", F, {3, 2}, {{3, 3, 4}, {4, 5}}, -1, "Einsum "},
    {"ij,jk->k", F, {2, 2}, {{3, 4}, {4, 5}}, -1, "Einsum "},
    {"ij,jk->ik", F, {2, 2}, {{3, 1}, {4, 5}}, -1, "Einsum "},
    {"ij,jk->ik", F, {2, 2}, {{3, -1}, {1, 5}}, -1, "Einsum "},
    {"ij,jk->ik", F, {2, 2}, {{0, 4}, {4, 5}}, -1, "Einsum "},
    {"ij,jk->ik", QSIM_DOUBLE, {2, 2}, {{3, 4}, {4, 5}}, -1, "Einsum "},
    {"ij,jk->ik", QSIM_INT32, {2, 2}, {{3, 4}, {4, 5}}, -1, "Einsum "},
    {"ij->i", F, {2, 0}, {{3, 4}}, -1, "Einsum "},
};

static void check_nodes(qsim_ctx *ctx, const expected *t) {
    static float zeros[64];
    char nodes[200] = "";
    net n;
    net_begin(&n, ctx, 13);
    for (int k = 0; k < (t->rank[1] ? 2 : 1); k++)
        if (k == t->constant)
            net_const(&n, k ? "b" : "a", t->dtype, t->rank[k], t->dims[k], zeros);
        else
            net_input(&n, k ? "b" : "a", t->dtype, t->rank[k], t->dims[k]);
    net_string(&n, net_node(&n, "", "Einsum", t->rank[1] ? "a,b" : "a", "y"), "equation",
               t->equation);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_expand(&p));
    NET_OK(&n, qs_pass_fold(&p, 0));
    NET_OK(&n, qs_pass_identities(&p));
    for (size_t i = 0; i < n.g->order_count; i++) {
        const qs_node *made = &n.g->nodes[n.g->order[i]];
        strcat(strcat(nodes, made->op_type), " ");
        if (t->constant >= 0 && strcmp(made->op_type, "MatMul") == 0)
            CHECK_INT(n.g->values[made->inputs[1]].data ? n.g->values[made->inputs[1]].rank : 0, 2);
    }
    CHECK_STR(nodes, t->nodes);
    net_free(&n);
}

int main(void) {
    qsim_ctx *ctx;
    qsim_error error;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, &error), 0);
    test_drawn(ctx, 400);
    for (size_t i = 0; i < QS_COUNT(table); i++)
        check_nodes(ctx, &table[i]);
    qsim_ctx_free(ctx);
    return test_done();
}
