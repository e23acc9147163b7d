/* SPDX-License-Identifier: MIT */
/* Words of the recipe file, for reading and writing. */
#include "ptq/recipe.h"

#include <qsim/quant.h>

const qs_word qs_recipe_weight_types[] = {{"int8", QSIM_INT8},       {"uint8", QSIM_UINT8},
                                          {"int4", QSIM_INT4},       {"uint4", QSIM_UINT4},
                                          {"float16", QSIM_FLOAT16}, {NULL, 0}};
const qs_word qs_recipe_tensor_types[] = {{"uint8", QSIM_UINT8},
                                          {"int8", QSIM_INT8},
                                          {"uint16", QSIM_UINT16},
                                          {"int16", QSIM_INT16},
                                          {NULL, 0}};
const qs_word qs_recipe_granularities[] = {{"channel", QSIM_GRANULARITY_CHANNEL},
                                           {"tensor", QSIM_GRANULARITY_TENSOR},
                                           {"block", QSIM_GRANULARITY_BLOCK},
                                           {NULL, 0}};
const qs_word qs_recipe_roundings[] = {
    {"nearest", QSIM_ROUNDING_NEAREST}, {"gptq", QSIM_ROUNDING_GPTQ}, {NULL, 0}};
const qs_word qs_recipe_switches[] = {{"on", QSIM_BIAS_CORRECTION_ON},
                                      {"off", QSIM_BIAS_CORRECTION_OFF},
                                      {"given", QSIM_BIAS_CORRECTION_GIVEN},
                                      {NULL, 0}};
const qs_word qs_recipe_methods[] = {{"minmax", QSIM_METHOD_MINMAX},
                                     {"percentile", QSIM_METHOD_PERCENTILE},
                                     {"mse", QSIM_METHOD_MSE},
                                     {"entropy", QSIM_METHOD_ENTROPY},
                                     {NULL, 0}};

_Static_assert(QSIM_GRANULARITY_BLOCK + 2 == QS_COUNT(qs_recipe_granularities),
               "a word for each granularity");
_Static_assert(QSIM_ROUNDING_GPTQ + 2 == QS_COUNT(qs_recipe_roundings), "for each rounding");
_Static_assert(QSIM_BIAS_CORRECTION_GIVEN + 1 == QS_COUNT(qs_recipe_switches),
               "for each setting but the default");
_Static_assert(QSIM_METHOD_ENTROPY + 2 == QS_COUNT(qs_recipe_methods), "for each range method");

const char *qs_word_text(const qs_word *words, int32_t number) {
    while (words->text && words->number != number)
        words++;
    return words->text;
}

bool qs_word_number(const qs_word *words, const char *text, size_t length, int32_t *number) {
    for (; words->text; words++)
        if (strlen(words->text) == length && memcmp(words->text, text, length) == 0) {
            *number = words->number;
            return true;
        }
    return false;
}
