/* SPDX-License-Identifier: MIT */
/*
 * Insert, internal: copies x to channels "column" and following of a tensor of "into" channels
 * (window.h), looking bytes up in a table if there is one. Inputs: x, the tensor, table.
 */
#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/nn/window.h"

#define OVER  1
#define TABLE 2

typedef struct insert_params {
    size_t rows, n, into, column; /* n: bytes per row of x; of the tensor; before x in it */
    bool table;
} insert_params;

typedef struct insert_job {
    const insert_params *p;
    const qk_u8 *k;
    const uint8_t *x, *table;
    uint8_t *y;
} insert_job;

static int infer_insert(qs_infer *x) {
    const qs_value *v = x->in[0];
    const qs_value *table = x->node->input_count > TABLE ? qs_infer_in(x, TABLE) : NULL;
    int code = qs_infer_out(x, 0, v->dtype, v->rank, v->dims);
    if (!code && table &&
        (v->dtype != QSIM_UINT8 || table->dtype != QSIM_UINT8 || table->rank != 1 ||
         table->dims[0].size != 256))
        code = qs_infer_fail(x, QSIM_E_INTERNAL, "the table does not fit");
    return code ? code : qs_window_into(x, OVER);
}

static void insert_rows(const void *arg, size_t begin, size_t end) {
    const insert_job *j = arg;
    const insert_params *p = j->p;
    const uint8_t *x = j->x + begin * p->n;
    uint8_t *y = j->y + begin * p->into + p->column;
    if (j->table)
        j->k->table(j->table, x, p->n, y, p->into, p->n, end - begin);
    else
        qs_copy_rows(x, (ptrdiff_t)p->n, y, (ptrdiff_t)p->into, p->n, end - begin);
}

static void run_insert(const qs_step *s, const qs_frame *f) {
    const insert_params *p = s->params;
    const insert_job job = {.p = p,
                            .k = f->ctx->kernels->u8,
                            .x = qs_step_in(s, f, 0),
                            .table = p->table ? qs_step_in(s, f, TABLE) : NULL,
                            .y = qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->rows, QS_GRAIN / (p->n + 1) + 1, insert_rows, &job);
}

static int lower_insert(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    const int64_t channels = x->dims[x->rank - 1].size;
    const size_t element = qs_dtype_bytes(x->dtype);
    insert_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->rows = channels > 0 ? qs_value_elements(x) / (size_t)channels : 0;
    p->n = element * (size_t)channels;
    p->into = element * (size_t)qs_node_int(l->node, "into", 0);
    p->column = element * (size_t)qs_node_int(l->node, "column", 0);
    p->table = l->node->input_count > TABLE;
    if (l->node->input_count > OVER && qs_lower_in(l, OVER))
        l->step->reuses = OVER;
    l->step->run = run_insert;
    return QSIM_OK;
}

static const qs_attr_rule insert_attrs[] = {QS_INTO_ATTRS};

QS_OP(qsim_insert, .domain = QS_DOMAIN_QSIM, .name = "Insert", .over = 1, .min_in = 1, .max_in = 3,
      QS_ATTRS(insert_attrs), .traits = QS_PLAIN, .kernel = QS_KERNEL_INSERT, .infer = infer_insert,
      .lower = lower_insert);
