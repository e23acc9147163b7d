/* SPDX-License-Identifier: MIT */
#include "ptq/side.h"

#include "exec/exec.h"
#include "tensor/minifloat.h"

#include <qsim/data.h>

int qs_side_open(const qsim_model *m, const char *const *names, size_t count, qs_side *s,
                 qsim_ctx *ctx, qsim_error *error) {
    const qsim_session_options o = {
        .struct_size = sizeof(o), .outputs = names, .output_count = count};
    qs_arena_init(&s->floats, ctx);
    int code = qs_session_compile(m, &o, 0, &s->session, error);
    if (!code)
        code = qsim_run_create(s->session, &s->run, error);
    if (code)
        return code;
    s->count = (size_t)qsim_session_output_count(s->session);
    s->outputs = qs_calloc(ctx, s->count + 1, sizeof(*s->outputs));
    return s->outputs ? QSIM_OK : QSIM_E_NOMEM;
}

void qs_side_close(qs_side *s, qsim_ctx *ctx) {
    qsim_run_free(s->run);
    qsim_session_free(s->session);
    qs_free(ctx, s->outputs);
    qs_arena_free(&s->floats);
    *s = (qs_side){0};
}

int qs_side_retype(qs_side *s, qsim_tensor *x, int32_t dtype, qsim_error *error) {
    const qsim_tensor from = *x;
    if (dtype == from.dtype || !qs_is_real(dtype) || !qs_is_real(from.dtype) ||
        qsim_tensor_size(dtype, from.rank, from.dims, NULL, &x->bytes))
        return QSIM_OK;
    x->dtype = dtype;
    x->data = qs_arena_alloc(&s->floats, x->bytes, 1);
    return x->data ? qsim_tensor_convert(&from, x, error) : QSIM_E_NOMEM;
}

int qs_side_execute(qs_side *s, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    const qs_graph *g = s->session->graph;
    qs_arena_free(&s->floats);
    qsim_tensor *own = NULL;
    int code = QSIM_OK;
    for (size_t i = 0; i < count && i < g->input_count && !code; i++) {
        const int32_t dtype = g->values[g->inputs[i]].dtype;
        if (dtype == inputs[i].dtype)
            continue;
        if (!own)
            own = qs_arena_copy(&s->floats, inputs, count * sizeof(*own));
        code = own ? qs_side_retype(s, &own[i], dtype, error) : QSIM_E_NOMEM;
    }
    memset(s->outputs, 0, s->count * sizeof(*s->outputs));
    return code ? code
                : qsim_run_execute(s->run, own ? own : inputs, count, s->outputs, s->count, error);
}
