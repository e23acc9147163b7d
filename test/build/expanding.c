/* SPDX-License-Identifier: MIT */
/*
 * Writes a model whose operator the library replaces by others, which the model does not name.
 * Usage: expanding FILE
 */
#include <qsim/model.h>

#include <stdio.h>

int main(int argc, char **argv) {
    const qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_error e = {.message = ""};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    int code = argc == 2 ? qsim_builder_create(NULL, 13, "expanding", &b, &e) : QSIM_E_ARGUMENT;
    code = code ? code : qsim_builder_input_as(b, "x", "float[2,3,4,4]");
    code = code ? code : qsim_builder_node(b, "", "MeanVarianceNormalization", "mvn", "x", "y");
    code = code ? code : qsim_builder_output_as(b, "y", "float[2,3,4,4]");
    code = code ? code : qsim_builder_finish(b, &m, &e);
    code = code ? code : qsim_model_save(m, argv[1], &replace, &e);
    if (code)
        fprintf(stderr, "expanding: %s %s\n", qsim_error_text(code), e.message);
    qsim_model_free(m);
    qsim_builder_free(b);
    return code != QSIM_OK;
}
