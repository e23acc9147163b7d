/* SPDX-License-Identifier: MIT */
/*
 * An element-wise float expression of one 8-bit tensor becomes a table of 256 bytes, computed by
 * the operators themselves on all 256 values, in a graph of its own.
 */
#include "pass/qdq/function.h"

static int replace_by_copy(qs_qdq *d, const qs_target *t, qs_id x) {
    const qs_id made = qs_qdq_replace(d, t, "", "Identity", &x, 1, QS_NONE);
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}

/* Replaces the target by QTable(x, table). */
static int replace_by_table(qs_qdq *d, const qs_target *t, qs_id x, const uint8_t *table) {
    const qs_id c = qs_pass_const_table(d->p, table);
    if (c < 0)
        return c;
    const qs_id in[2] = {x, c};
    const qs_id made = qs_qdq_replace(d, t, "qsim", "QTable", in, 2, QS_NONE);
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}

static int by_table(qs_qdq *d, const qs_target *t, const qs_function *f, bool *done) {
    qs_expression e;
    const qs_const *c;
    int code = qs_function_compute(d, f, t->node, d->g->nodes[t->node].outputs[0], &e, &c);
    if (!code && (!c || c->elements != 256 || c->dtype != QSIM_UINT8))
        code =
            qs_fail(d->p->error, QSIM_E_INTERNAL, "%s: a table could not be computed", d->p->model);
    if (!code) {
        const uint8_t *table = c->data;
        bool copies = true;
        for (int i = 0; i < 256; i++)
            copies &= table[i] == i;
        code = copies ? replace_by_copy(d, t, f->leaf) : replace_by_table(d, t, f->leaf, table);
        *done = !code;
    }
    qs_expression_end(&e);
    return code == QSIM_E_LIMIT ? QSIM_OK : code;
}

int qs_qdq_table(qs_qdq *d, qs_target *t, bool *done) {
    qs_function f;
    if (d->p->standard || !qs_function_find(d, d->g->nodes[t->node].inputs[0], &f))
        return QSIM_OK;
    if (!f.channels)
        return by_table(d, t, &f, done);
    return qs_function_find(d, t->value, &f) ? qs_qdq_piecewise(d, t, &f, done) : QSIM_OK;
}
