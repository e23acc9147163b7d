/* SPDX-License-Identifier: MIT */
/*
 * Prints the rows of all nodes that passes make of models, or have made and removed again: PURPOSE
 * FILE DOMAIN:OPERATOR. Inner graphs go through the passes as they stand. Usage: rows_of FILE...
 */
#include "op/op.h"
#include "pass/pass.h"

#include <stdio.h>

static void print(const char *purpose, const char *file, const qs_graph *g) {
    for (size_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op)
            printf("%s %s %s:%s\n", purpose, file, qs_op_domain(g->nodes[i].op),
                   g->nodes[i].op->name);
    for (size_t i = 0; i < g->owned_count; i++)
        print(purpose, file, g->owned[i]);
}

/* Runs a purpose's passes over a copy of the model. */
static int run(const qsim_model *model, qs_purpose purpose, int32_t level, const char *file,
               qsim_error *error) {
    static const char *const names[] = {"session", "file", "quantizer", "quantized"};
    qsim_model *m;
    int code = qs_model_derive_whole(model, &m, error);
    if (code)
        return code;
    qs_pass p = {.ctx = m->ctx, .graph = m->graph, .model = m->name, .error = error};
    p.standard = p.contributed = purpose != QS_FOR_SESSION;
    code = qs_pipeline_run(&p, purpose, level);
    if (!code)
        print(names[purpose], file, m->graph);
    qsim_model_free(m);
    return code;
}

int main(int argc, char **argv) {
    int code = QSIM_OK;
    for (int i = 1; i < argc && !code; i++) {
        qsim_error e = {.message = ""};
        qsim_model *m;
        code = qsim_model_load(NULL, argv[i], NULL, &m, &e);
        for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL && !code; level++) {
            code = run(m, QS_FOR_SESSION, level, argv[i], &e);
            code = code ? code : run(m, QS_FOR_FILE, level, argv[i], &e);
        }
        code = code ? code : run(m, QS_FOR_QUANTIZED, QSIM_LEVEL_ALL, argv[i], &e);
        code = code ? code : run(m, QS_FOR_PTQ, QSIM_LEVEL_ALL, argv[i], &e);
        if (code)
            fprintf(stderr, "rows_of: %s: %s\n", argv[i], e.message);
        qsim_model_free(m);
    }
    return code != QSIM_OK;
}
