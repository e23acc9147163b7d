/* SPDX-License-Identifier: MIT */
/* Options of qsim_quantize: checks them, and fills in defaults. */
#include "base/ctx.h"
#include "ptq/quantizer.h"

int qs_rule_get(const qsim_quantize_options *o, size_t index, qsim_rule *rule, qsim_error *error) {
    if (!o->rules)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: rule %zu is missing", index);
    const size_t stride = o->rules[0].struct_size;
    const void *at = (const char *)o->rules + index * stride;
    int code = QS_OPTIONS(*rule, at, error);
    if (code)
        return code;
    if (rule->struct_size != stride)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: rules 0 and %zu differ in size",
                       index);
    if (rule->reserved)
        return qs_fail(error, QSIM_E_VERSION, "quantization: rule %zu is of another version",
                       index);
    if (!rule->pattern || rule->action < QSIM_RULE_FLOAT || rule->action > QSIM_RULE_INT16)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: rule %zu is not valid", index);
    return QSIM_OK;
}

/* Whether weights are symmetric int8: what QSIM_REDUCE_PAIRS goes with. */
static bool can_pair(const qsim_quantize_options *o) {
    return (o->weight_type == QSIM_INT8 || o->weight_type == QSIM_INT4) &&
           (o->weight_scheme == QSIM_WEIGHT_CHANNEL_SYMMETRIC ||
            o->weight_scheme == QSIM_WEIGHT_TENSOR_SYMMETRIC);
}

int qs_quantizer_options(const qsim_quantize_options *options, qsim_quantize_options *own,
                         qsim_error *error) {
    int code = QS_OPTIONS(*own, options, error);
    if (code)
        return code;
    if (!own->activation_type)
        own->activation_type = QSIM_UINT8;
    if (!own->weight_type)
        own->weight_type = QSIM_INT8;
    if (own->percentile == 0)
        own->percentile = 99.999;
    const int32_t a = own->activation_type, w = own->weight_type;
    if ((a != QSIM_UINT8 && a != QSIM_INT8 && !qs_is_wide(a)) ||
        (w != QSIM_UINT8 && w != QSIM_INT8 && w != QSIM_FLOAT16 && !qs_is_narrow(w)))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "quantization: activations of %s with weights of %s: uint8 or int8, "
                       "activations also uint16 or int16, weights also int4, uint4 or float16",
                       qsim_dtype_name(a), qsim_dtype_name(w));
    if (own->mode < QSIM_MODE_STATIC || own->mode > QSIM_MODE_WEIGHTS)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: mode %d is not known", own->mode);
    if (w == QSIM_FLOAT16 && own->mode != QSIM_MODE_WEIGHTS)
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "quantization: weights of float16 go with the mode weights");
    if (own->per_row && own->mode != QSIM_MODE_DYNAMIC)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: per_row goes with the dynamic mode");
    if (own->format < QSIM_FORMAT_QDQ || own->format > QSIM_FORMAT_QOPERATOR)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: format %d is not known", own->format);
    if (own->weight_scheme < 0 || own->weight_scheme > QSIM_WEIGHT_CHANNEL_ASYMMETRIC)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: weight scheme %d is not known",
                       own->weight_scheme);
    if (own->reduce_range < 0 || own->reduce_range > QSIM_REDUCE_PAIRS)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: reduce_range %d is not known",
                       own->reduce_range);
    if (own->reduce_range == QSIM_REDUCE_PAIRS && !can_pair(own))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "quantization: pairs are reduced of symmetric weights of int8 alone");
    if (own->method < QSIM_METHOD_MINMAX || own->method > QSIM_METHOD_ENTROPY)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: method %d is not known", own->method);
    if (!(own->percentile > 0 && own->percentile <= 100))
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: percentile %g is not in (0, 100]",
                       own->percentile);
    for (size_t i = 0; i < own->rule_count && !code; i++) {
        qsim_rule rule;
        code = qs_rule_get(own, i, &rule, error);
    }
    return code ? code : qs_narrow_options(own, error);
}
