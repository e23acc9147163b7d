/* SPDX-License-Identifier: MIT */
/* Writes a small classifier with the input that the README's examples feed. Usage: make_model FILE
 */
#include "test.h"

#include <qsim/qsim.h>

int main(int argc, char **argv) {
    static float w[4 * 25], fc[10 * 4 * 576];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof(w) / sizeof(w[0]); i++)
        w[i] = (float)(test_random(&seed) % 2000) / 1000.0f - 1.0f;
    for (size_t i = 0; i < sizeof(fc) / sizeof(fc[0]); i++)
        fc[i] = (float)(test_random(&seed) % 2000) / 100000.0f - 0.01f;
    const int64_t x[] = {-1, 1, 28, 28}, y[] = {-1, 10}, dw[] = {4, 1, 5, 5}, dfc[] = {10, 2304};
    const char *const names[] = {"N", NULL, NULL, NULL};
    const qsim_tensor tw = {QSIM_FLOAT, 4, dw, w, sizeof(w)};
    const qsim_tensor tfc = {QSIM_FLOAT, 2, dfc, fc, sizeof(fc)};
    const qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_error e;
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    if (argc != 2 || qsim_builder_create(NULL, 13, "classifier", &b, &e))
        return 2;
    qsim_builder_input(b, "image", QSIM_FLOAT, 4, x, names);
    qsim_builder_constant(b, "w", &tw);
    qsim_builder_constant(b, "fc_w", &tfc);
    qsim_builder_node(b, "", "Conv", "conv", "image,w", "c");
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "Flatten", "flatten", "r", "f");
    qsim_builder_node(b, "", "Gemm", "fc", "f,fc_w", "scores");
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_output(b, "scores", QSIM_FLOAT, 2, y, names);
    int code = qsim_builder_finish(b, &m, &e);
    if (!code)
        code = qsim_model_save(m, argv[1], &replace, &e);
    if (code)
        fprintf(stderr, "%s\n", e.message);
    qsim_builder_free(b);
    qsim_model_free(m);
    return code != 0;
}
