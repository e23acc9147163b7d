/* SPDX-License-Identifier: MIT */
/* Sensitivity and searches of a model whose answers are in half precision: judged as floats. */
#include <stdbool.h>

#include "ptq_nets.h"

enum { ROWS = 64, IN = 48, CLASSES = 12 };

/*
 * x -> first -> Relu -> head -> y, of `type`. Per tensor, one weight of 100 in `first` leaves the
 * others, of 0.5, one step or none.
 */
static qsim_model *make_net(int32_t type) {
    qsim_builder *b = NULL;
    static float first[IN * IN];
    uint64_t seed = 5;
    const char *symbol[2] = {"N", NULL};
    const bool cast = type != QSIM_FLOAT;
    for (int i = 0; i < IN * IN; i++)
        first[i] = (float)(test_random(&seed) % 1000) / 1000 - 0.5f;
    first[0] = 100;
    const qsim_tensor w = {QSIM_FLOAT, 2, (int64_t[]){IN, IN}, first, sizeof(first)};
    CHECK_INT(qsim_builder_create(NULL, 13, "half", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, IN}, symbol);
    qsim_builder_output(b, "y", type, 2, (int64_t[]){-1, CLASSES}, symbol);
    qsim_builder_constant(b, "w1", &w);
    net_constant(b, "w2", 2, (int64_t[]){IN, CLASSES}, 0.5f, 4);
    qsim_builder_node(b, "", "Gemm", "first", "x,w1", "f");
    qsim_builder_node(b, "", "Relu", "relu", "f", "r");
    qsim_builder_node(b, "", "Gemm", "head", "r,w2", cast ? "h" : "y");
    if (cast) {
        qsim_builder_node(b, "", "Cast", "cast", "h", "y");
        qsim_builder_attr_int(b, "to", type);
    }
    return net_finish(b);
}

static int32_t note_gain(void *user, const qsim_unit *u) {
    double *greatest = user;
    *greatest = u->loss_gained > *greatest ? u->loss_gained : *greatest;
    return 0;
}

static void judge(int32_t type, const qsim_tensor *x, qsim_judgement *plain, double *gain) {
    const qsim_quantize_options tensor = {.struct_size = sizeof(tensor),
                                          .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    const int64_t labels[ROWS] = {0};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = x,
                                   .input_count = 1,
                                   .labels = labels,
                                   .label_count = ROWS};
    qsim_model *m = make_net(type);
    qsim_calibration *c = NULL;
    qsim_recipe *found = NULL;
    *plain = (qsim_judgement){.struct_size = sizeof(*plain)};
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, x, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_sensitivity(m, c, &tensor, &o, note_gain, gain, plain, NULL), 2);
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, &tensor, &o, found, NULL, NULL), QSIM_OK);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    static float data[ROWS * IN];
    const qsim_tensor x = {QSIM_FLOAT, 2, (int64_t[]){ROWS, IN}, data, sizeof(data)};
    const int32_t types[] = {QSIM_FLOAT16, QSIM_BFLOAT16};
    const double near[] = {0.01, 0.1}; /* 11 and 8 bits of each answer */
    uint64_t seed = 11;
    qsim_judgement wanted, plain;
    double gain = 0;
    for (int i = 0; i < ROWS * IN; i++)
        data[i] = (float)(test_random(&seed) % 2000) / 1000 - 1;
    judge(QSIM_FLOAT, &x, &wanted, &gain);
    CHECK(wanted.loss > 0.01 && gain > 0.5 * wanted.loss);
    for (int i = 0; i < 2; i++) {
        double half_gain = 0;
        judge(types[i], &x, &plain, &half_gain);
        CHECK_INT(plain.rows, ROWS);
        CHECK_NEAR(plain.loss, wanted.loss, near[i] * wanted.loss);
        CHECK_NEAR(plain.top1, wanted.top1, 100.0 / ROWS);
        CHECK_NEAR(half_gain, gain, near[i] * wanted.loss);
    }
    return test_done();
}
