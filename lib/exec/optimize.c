/* SPDX-License-Identifier: MIT */
#include "exec/passes.h"

int qsim_model_optimize(const qsim_model *model, int32_t level, qsim_model **out,
                        qsim_error *error) {
    qs_error_clear(error);
    if (!model || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "optimize: no model or no place for the result");
    *out = NULL;
    if (level < QSIM_LEVEL_DEFAULT || level > QSIM_LEVEL_ALL)
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: level %d does not exist", model->name,
                       (int)level);
    if (model->inspect_only)
        return qs_fail(error, QSIM_E_STATE, "%s: the model was loaded for inspection only",
                       model->name);
    qsim_model *m;
    int code = qs_model_derive(model, &m, error);
    if (code)
        return code;
    qs_pass p = {.ctx = m->ctx, .graph = m->graph, .model = m->name, .error = error};
    level = level == QSIM_LEVEL_DEFAULT ? QSIM_LEVEL_ALL : level;
    if (qs_graph_prune(m->graph))
        code = qs_pass_no_memory(&p);
    if (!code && level >= QSIM_LEVEL_BASIC)
        code = qs_pass_constants(&p);
    if (!code && level >= QSIM_LEVEL_BASIC)
        code = qs_pass_fold(&p, 0);
    if (!code && level >= QSIM_LEVEL_BASIC)
        code = qs_pass_identities(&p);
    if (!code && level >= QSIM_LEVEL_EXTENDED)
        code = qs_pass_batchnorm(&p);
    if (code) {
        qsim_model_free(m);
        return code;
    }
    *out = m;
    return QSIM_OK;
}
