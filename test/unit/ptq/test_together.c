/* SPDX-License-Identifier: MIT */
/* The search `auto` on a network with two layers that in 8 bits each spoil all. */
#include <math.h>
#include <stdbool.h>

#include "ptq_nets.h"

enum { BATCHES = 6, ROWS = 16, IN = 96, CLASSES = 16, GOOD = 4 };

/*
 * x (96) -> good0 -> ... -> good3 -> Relu -> left, right -> * -> head (16). One weight of `left`
 * and of `right` that multiplies 0 leaves all others 0 per tensor, and so the product, while one of
 * both is quantized.
 */
static qsim_model *make_product(void) {
    qsim_builder *b = NULL;
    static float weights[IN * IN], outlier[IN * IN];
    uint64_t seed = 5;
    const char *symbol[2] = {"N", NULL};
    const int64_t square[2] = {IN, IN};
    for (int i = 0; i < IN * IN; i++) {
        weights[i] = i % IN == 0 ? 0 : (float)(test_random(&seed) % 1000) / 1000 - 0.5f;
        outlier[i] = (float)(test_random(&seed) % 1000) / 4000 - 0.125f;
    }
    outlier[0] = 1000;
    const qsim_tensor w1 = {QSIM_FLOAT, 2, square, weights, sizeof(weights)};
    const qsim_tensor w2 = {QSIM_FLOAT, 2, square, outlier, sizeof(outlier)};
    CHECK_INT(qsim_builder_create(NULL, 13, "product", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, IN}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, CLASSES}, symbol);
    qsim_builder_constant(b, "w1", &w1);
    qsim_builder_constant(b, "w2", &w2);
    qsim_builder_constant(b, "w3", &w2);
    net_constant(b, "w4", 2, (int64_t[]){IN, CLASSES}, 0.5f, 4);
    for (int i = 0; i < GOOD; i++) {
        char in[24], name[24], out[24];
        snprintf(in, sizeof(in), i ? "g%d,w1" : "x,w1", i - 1);
        snprintf(name, sizeof(name), "good%d", i);
        snprintf(out, sizeof(out), "g%d", i);
        qsim_builder_node(b, "", "MatMul", name, in, out);
    }
    qsim_builder_node(b, "", "Relu", "relu", "g3", "gr");
    qsim_builder_node(b, "", "MatMul", "left", "gr,w2", "l");
    qsim_builder_node(b, "", "MatMul", "right", "gr,w3", "r");
    qsim_builder_node(b, "", "Mul", "times", "l,r", "p");
    qsim_builder_node(b, "", "MatMul", "head", "p,w4", "y");
    return net_finish(b);
}

static int32_t note_met(void *user, const qsim_attempt *a) {
    bool *met = user;
    *met = a->kept ? a->met : *met;
    return 0;
}

static bool is_float(const qsim_recipe *r, const char *layer) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    const int32_t at = qsim_recipe_find(r, QSIM_RECIPE_LAYER, layer);
    return at >= 0 && qsim_recipe_get(r, at, &e) == QSIM_OK && e.action == QSIM_RECIPE_FLOAT;
}

/* Times that no goal can go by. */
static void no_cost(void *user, const char *unit, double *in_float, double *in_integers) {
    (void)user, (void)unit;
    *in_float = *in_integers = NAN;
}

/* Whatever the goal, no more units are in float than max_drop asks for. */
static void search(const qsim_model *m, const qsim_calibration *c, const qsim_tensor *batches,
                   int32_t goal) {
    qsim_recipe *found = NULL;
    bool met = false;
    const qsim_quantize_options tensor = {.struct_size = sizeof(tensor),
                                          .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC,
                                          .no_bias_correction = 1};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = batches,
                                   .input_count = BATCHES,
                                   .goal = goal,
                                   .max_drop = 15,
                                   .attempt = note_met,
                                   .attempt_user = &met,
                                   .cost = no_cost};
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, &tensor, &o, found, NULL, NULL), QSIM_OK);
    CHECK(met);
    CHECK(is_float(found, "left") && is_float(found, "right"));
    CHECK(!is_float(found, "good0") && !is_float(found, "good1") && !is_float(found, "good2") &&
          !is_float(found, "good3") && !is_float(found, "head"));
    qsim_recipe_free(found);
}

int main(void) {
    static float data[BATCHES][ROWS * IN];
    static const int64_t dims[2] = {ROWS, IN};
    qsim_tensor batches[BATCHES];
    qsim_model *m = make_product();
    qsim_calibration *c = NULL;
    uint64_t seed = 11;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < ROWS * IN; i++)
            data[b][i] = (float)(test_random(&seed) % 2000) / 1000 - 1;
        batches[b] = (qsim_tensor){QSIM_FLOAT, 2, dims, data[b], sizeof(data[b])};
        CHECK_INT(qsim_calibration_feed(c, &batches[b], 1, NULL), QSIM_OK);
    }
    search(m, c, batches, QSIM_GOAL_SIZE);
    search(m, c, batches, QSIM_GOAL_ACCURACY);
    qsim_calibration_free(c);
    qsim_model_free(m);
    return test_done();
}
