/* SPDX-License-Identifier: MIT */
/*
 * Every public struct, field by field, on 64-bit machines. The frozen ones never change: a change
 * here breaks every program that was ever linked. The others, which begin with struct_size, grow at
 * the end only: add the new field and the new size, and leave the lines before them as they are.
 */
#include "test.h"

#include <qsim/qsim.h>

#define AT(type, field, offset) CHECK_INT(offsetof(type, field), offset)
#define SIZE(type, size)        CHECK_INT(sizeof(type), size)

static void frozen(void) {
    SIZE(qsim_error, 584);
    AT(qsim_error, code, 0);
    AT(qsim_error, flags, 4);
    AT(qsim_error, message, 8);
    AT(qsim_error, hint, 392);

    SIZE(qsim_allocator, 24);
    AT(qsim_allocator, alloc, 0);
    AT(qsim_allocator, free, 8);
    AT(qsim_allocator, user, 16);

    SIZE(qsim_tensor, 32);
    AT(qsim_tensor, dtype, 0);
    AT(qsim_tensor, rank, 4);
    AT(qsim_tensor, dims, 8);
    AT(qsim_tensor, data, 16);
    AT(qsim_tensor, bytes, 24);

    SIZE(qsim_bytes, 16);
    AT(qsim_bytes, data, 0);
    AT(qsim_bytes, size, 8);

    SIZE(qsim_qparams, 40);
    AT(qsim_qparams, dtype, 0);
    AT(qsim_qparams, axis, 4);
    AT(qsim_qparams, block, 8);
    AT(qsim_qparams, count, 16);
    AT(qsim_qparams, scale, 24);
    AT(qsim_qparams, zero_point, 32);
}

static void growing_base(void) {
    SIZE(qsim_ctx_options, 64);
    AT(qsim_ctx_options, struct_size, 0);
    AT(qsim_ctx_options, allocator, 8);
    AT(qsim_ctx_options, log, 16);
    AT(qsim_ctx_options, log_user, 24);
    AT(qsim_ctx_options, parallel_for, 32);
    AT(qsim_ctx_options, parallel_user, 40);
    AT(qsim_ctx_options, threads, 48);
    AT(qsim_ctx_options, isa, 52);
    AT(qsim_ctx_options, limits, 56);
    SIZE(qsim_limits, 104);
    AT(qsim_limits, struct_size, 0);
    AT(qsim_limits, memory, 8);
    AT(qsim_limits, milliseconds, 16);
    AT(qsim_limits, file, 24);
    AT(qsim_limits, stream, 32);
    AT(qsim_limits, nodes, 40);
    AT(qsim_limits, values, 48);
    AT(qsim_limits, elements, 56);
    AT(qsim_limits, attributes, 64);
    AT(qsim_limits, nesting, 72);
    AT(qsim_limits, entries, 80);
    AT(qsim_limits, ratio, 88);
    AT(qsim_limits, threads, 96);
}

static void growing_data(void) {
    SIZE(qsim_array, 176);
    AT(qsim_array, struct_size, 0);
    AT(qsim_array, dims, 8);
    AT(qsim_array, offset, 136);
    AT(qsim_array, elements, 144);
    AT(qsim_array, bytes, 152);
    AT(qsim_array, dtype, 160);
    AT(qsim_array, rank, 164);
    AT(qsim_array, fortran, 168);
    AT(qsim_array, swapped, 172);
}

static void growing_package(void) {
    SIZE(qsim_package_entry, 40);
    AT(qsim_package_entry, struct_size, 0);
    AT(qsim_package_entry, name, 8);
    AT(qsim_package_entry, sha256, 16);
    AT(qsim_package_entry, bytes, 24);
    AT(qsim_package_entry, role, 32);
    AT(qsim_package_entry, stored, 36);
}

static void growing_model(void) {
    SIZE(qsim_load_options, 40);
    AT(qsim_load_options, struct_size, 0);
    AT(qsim_load_options, external, 8);
    AT(qsim_load_options, external_user, 16);
    AT(qsim_load_options, name, 24);
    AT(qsim_load_options, flags, 32);
    AT(qsim_load_options, reserved, 36);

    SIZE(qsim_save_options, 16);
    AT(qsim_save_options, struct_size, 0);
    AT(qsim_save_options, flags, 8);
    AT(qsim_save_options, reserved, 12);

    SIZE(qsim_value_info, 56);
    AT(qsim_value_info, struct_size, 0);
    AT(qsim_value_info, name, 8);
    AT(qsim_value_info, dims, 16);
    AT(qsim_value_info, dim_names, 24);
    AT(qsim_value_info, data, 32);
    AT(qsim_value_info, bytes, 40);
    AT(qsim_value_info, dtype, 48);
    AT(qsim_value_info, rank, 52);

    SIZE(qsim_operator_info, 64);
    AT(qsim_operator_info, struct_size, 0);
    AT(qsim_operator_info, domain, 8);
    AT(qsim_operator_info, op_type, 16);
    AT(qsim_operator_info, integer_form, 24);
    AT(qsim_operator_info, kernel, 32);
    AT(qsim_operator_info, types, 40);
    AT(qsim_operator_info, since, 44);
    AT(qsim_operator_info, until, 48);
    AT(qsim_operator_info, min_inputs, 52);
    AT(qsim_operator_info, max_inputs, 56);
    AT(qsim_operator_info, reserved, 60);
    SIZE(qsim_node_info, 80);
    AT(qsim_node_info, struct_size, 0);
    AT(qsim_node_info, name, 8);
    AT(qsim_node_info, domain, 16);
    AT(qsim_node_info, op_type, 24);
    AT(qsim_node_info, inputs, 32);
    AT(qsim_node_info, outputs, 40);
    AT(qsim_node_info, input_count, 48);
    AT(qsim_node_info, output_count, 52);
    AT(qsim_node_info, macs, 56);
    AT(qsim_node_info, integer, 64);
    AT(qsim_node_info, graphs, 68);
    AT(qsim_node_info, operands, 72);
    SIZE(qsim_attr_info, 80);
    AT(qsim_attr_info, struct_size, 0);
    AT(qsim_attr_info, name, 8);
    AT(qsim_attr_info, ints, 16);
    AT(qsim_attr_info, floats, 24);
    AT(qsim_attr_info, strings, 32);
    AT(qsim_attr_info, tensor, 40);
    AT(qsim_attr_info, type, 72);
    AT(qsim_attr_info, count, 76);
}

static void growing_op(void) {
    SIZE(qsim_op_options, 112);
    AT(qsim_op_options, struct_size, 0);
    AT(qsim_op_options, flags, 8);
    AT(qsim_op_options, groups, 12);
    AT(qsim_op_options, stride_h, 16);
    AT(qsim_op_options, stride_w, 20);
    AT(qsim_op_options, dilation_h, 24);
    AT(qsim_op_options, dilation_w, 28);
    AT(qsim_op_options, pad_top, 32);
    AT(qsim_op_options, pad_left, 36);
    AT(qsim_op_options, pad_bottom, 40);
    AT(qsim_op_options, pad_right, 44);
    AT(qsim_op_options, x_zero_point, 48);
    AT(qsim_op_options, w_zero_point, 56);
    AT(qsim_op_options, w_zero_points, 64);
    AT(qsim_op_options, bias, 72);
    AT(qsim_op_options, multiplier, 80);
    AT(qsim_op_options, multipliers, 88);
    AT(qsim_op_options, y_zero_point, 96);
    AT(qsim_op_options, lo, 100);
    AT(qsim_op_options, hi, 104);
}

static void growing_ptq(void) {
    SIZE(qsim_observer_options, 16);
    AT(qsim_observer_options, struct_size, 0);
    AT(qsim_observer_options, bins, 8);
    AT(qsim_observer_options, reserved, 12);

    SIZE(qsim_calibration_options, 56);
    AT(qsim_calibration_options, struct_size, 0);
    AT(qsim_calibration_options, tensors, 8);
    AT(qsim_calibration_options, tensor_count, 16);
    AT(qsim_calibration_options, quantize, 24);
    AT(qsim_calibration_options, progress, 32);
    AT(qsim_calibration_options, progress_user, 40);
    AT(qsim_calibration_options, bins, 48);
    AT(qsim_calibration_options, batch_axis, 52);

    SIZE(qsim_outlier, 32);
    AT(qsim_outlier, struct_size, 0);
    AT(qsim_outlier, sample, 8);
    AT(qsim_outlier, value, 16);
    AT(qsim_outlier, others, 20);
    AT(qsim_outlier, ratio, 24);

    SIZE(qsim_rule, 24);
    AT(qsim_rule, struct_size, 0);
    AT(qsim_rule, pattern, 8);
    AT(qsim_rule, action, 16);
    AT(qsim_rule, reserved, 20);

    SIZE(qsim_quantize_options, 120);
    AT(qsim_quantize_options, struct_size, 0);
    AT(qsim_quantize_options, rules, 8);
    AT(qsim_quantize_options, rule_count, 16);
    AT(qsim_quantize_options, recipe, 24);
    AT(qsim_quantize_options, decided, 32);
    AT(qsim_quantize_options, progress, 40);
    AT(qsim_quantize_options, progress_user, 48);
    AT(qsim_quantize_options, percentile, 56);
    AT(qsim_quantize_options, format, 64);
    AT(qsim_quantize_options, activation_type, 68);
    AT(qsim_quantize_options, weight_type, 72);
    AT(qsim_quantize_options, weight_scheme, 76);
    AT(qsim_quantize_options, activation_symmetric, 80);
    AT(qsim_quantize_options, method, 84);
    AT(qsim_quantize_options, reduce_range, 88);
    AT(qsim_quantize_options, mode, 92);
    AT(qsim_quantize_options, per_row, 96);
    AT(qsim_quantize_options, no_bias_correction, 100);
    AT(qsim_quantize_options, weight_block, 104);
    AT(qsim_quantize_options, no_gptq, 108);
    AT(qsim_quantize_options, keep_moments, 112);
    AT(qsim_quantize_options, split_curves, 116);
}

static void growing_ptq_layers(void) {
    SIZE(qsim_layer_info, 48);
    AT(qsim_layer_info, struct_size, 0);
    AT(qsim_layer_info, name, 8);
    AT(qsim_layer_info, op_type, 16);
    AT(qsim_layer_info, scheme, 24);
    AT(qsim_layer_info, dtype, 28);
    AT(qsim_layer_info, float_bytes, 32);
    AT(qsim_layer_info, bytes, 40);
}

static void growing_ptq_search(void) {
    SIZE(qsim_search_options, 176);
    AT(qsim_search_options, struct_size, 0);
    AT(qsim_search_options, methods, 8);
    AT(qsim_search_options, inputs, 16);
    AT(qsim_search_options, input_count, 24);
    AT(qsim_search_options, score, 32);
    AT(qsim_search_options, score_user, 40);
    AT(qsim_search_options, progress, 48);
    AT(qsim_search_options, progress_user, 56);
    AT(qsim_search_options, seed, 64);
    AT(qsim_search_options, start_percentile, 72);
    AT(qsim_search_options, float_score, 80);
    AT(qsim_search_options, max_drop, 88);
    AT(qsim_search_options, steps, 96);
    AT(qsim_search_options, bits, 100);
    AT(qsim_search_options, inputs_per_batch, 104);
    AT(qsim_search_options, goal, 108);
    AT(qsim_search_options, labels, 112);
    AT(qsim_search_options, label_count, 120);
    AT(qsim_search_options, seconds, 128);
    AT(qsim_search_options, attempt, 136);
    AT(qsim_search_options, attempt_user, 144);
    AT(qsim_search_options, cost, 152);
    AT(qsim_search_options, cost_user, 160);
    AT(qsim_search_options, no_classes, 168);
    AT(qsim_search_options, reserved, 172);
}

static void growing_ptq_measures(void) {
    SIZE(qsim_judgement, 48);
    AT(qsim_judgement, struct_size, 0);
    AT(qsim_judgement, loss, 8);
    AT(qsim_judgement, agreement, 16);
    AT(qsim_judgement, top1, 24);
    AT(qsim_judgement, sqnr, 32);
    AT(qsim_judgement, rows, 40);

    SIZE(qsim_attempt, 72);
    AT(qsim_attempt, struct_size, 0);
    AT(qsim_attempt, what, 8);
    AT(qsim_attempt, judgement, 16);
    AT(qsim_attempt, model, 24);
    AT(qsim_attempt, recipe, 32);
    AT(qsim_attempt, bytes, 40);
    AT(qsim_attempt, microseconds, 48);
    AT(qsim_attempt, floats, 56);
    AT(qsim_attempt, kept, 60);
    AT(qsim_attempt, met, 64);
    AT(qsim_attempt, mode, 68);

    SIZE(qsim_unit, 104);
    AT(qsim_unit, struct_size, 0);
    AT(qsim_unit, name, 8);
    AT(qsim_unit, op_type, 16);
    AT(qsim_unit, takes, 24);
    AT(qsim_unit, loss_alone, 32);
    AT(qsim_unit, loss_gained, 40);
    AT(qsim_unit, agreement, 48);
    AT(qsim_unit, sqnr, 56);
    AT(qsim_unit, float_bytes, 64);
    AT(qsim_unit, bytes, 72);
    AT(qsim_unit, float_us, 80);
    AT(qsim_unit, us, 88);
    AT(qsim_unit, before_knee, 96);
    AT(qsim_unit, reserved, 100);
}

static void growing_ptq_metrics(void) {
    SIZE(qsim_divergence, 64);
    AT(qsim_divergence, struct_size, 0);
    AT(qsim_divergence, rows, 8);
    AT(qsim_divergence, agree, 16);
    AT(qsim_divergence, skipped, 24);
    AT(qsim_divergence, kl, 32);
    AT(qsim_divergence, signal, 40);
    AT(qsim_divergence, noise, 48);
    AT(qsim_divergence, answer, 56);
    AT(qsim_divergence, reserved, 60);

    SIZE(qsim_metrics, 128);
    AT(qsim_metrics, struct_size, 0);
    AT(qsim_metrics, count, 8);
    AT(qsim_metrics, outside, 16);
    AT(qsim_metrics, rows, 24);
    AT(qsim_metrics, agree, 32);
    AT(qsim_metrics, max_abs, 40);
    AT(qsim_metrics, max_rel, 48);
    AT(qsim_metrics, signal, 56);
    AT(qsim_metrics, noise, 64);
    AT(qsim_metrics, dot, 72);
    AT(qsim_metrics, norm_b, 80);
    AT(qsim_metrics, nan_both, 88);
    AT(qsim_metrics, nan_one, 96);
    AT(qsim_metrics, worst, 104);
    AT(qsim_metrics, worst_a, 112);
    AT(qsim_metrics, worst_b, 120);
}

static void growing_recipe(void) {
    SIZE(qsim_recipe_entry, 96);
    AT(qsim_recipe_entry, struct_size, 0);
    AT(qsim_recipe_entry, name, 8);
    AT(qsim_recipe_entry, kind, 16);
    AT(qsim_recipe_entry, action, 20);
    AT(qsim_recipe_entry, dtype, 24);
    AT(qsim_recipe_entry, symmetric, 28);
    AT(qsim_recipe_entry, flags, 32);
    AT(qsim_recipe_entry, granularity, 36);
    AT(qsim_recipe_entry, block, 40);
    AT(qsim_recipe_entry, rounding, 48);
    AT(qsim_recipe_entry, bias_correction, 52);
    AT(qsim_recipe_entry, method, 56);
    AT(qsim_recipe_entry, low, 60);
    AT(qsim_recipe_entry, high, 64);
    AT(qsim_recipe_entry, reserved, 68);
    AT(qsim_recipe_entry, percentile, 72);
    AT(qsim_recipe_entry, shift, 80);
    AT(qsim_recipe_entry, shift_count, 88);
}

static void growing_session(void) {
    SIZE(qsim_session_options, 48);
    AT(qsim_session_options, struct_size, 0);
    AT(qsim_session_options, outputs, 8);
    AT(qsim_session_options, output_count, 16);
    AT(qsim_session_options, ctx, 24);
    AT(qsim_session_options, level, 32);
    AT(qsim_session_options, reserved, 36);
    AT(qsim_session_options, seed, 40);

    SIZE(qsim_step_info, 88);
    AT(qsim_step_info, struct_size, 0);
    AT(qsim_step_info, node, 8);
    AT(qsim_step_info, op_type, 16);
    AT(qsim_step_info, kernel, 24);
    AT(qsim_step_info, macs, 32);
    AT(qsim_step_info, nanoseconds, 40);
    AT(qsim_step_info, start_ns, 48);
    AT(qsim_step_info, bytes_read, 56);
    AT(qsim_step_info, bytes_written, 64);
    AT(qsim_step_info, input_count, 72);
    AT(qsim_step_info, output_count, 76);
    AT(qsim_step_info, isa, 80);
    AT(qsim_step_info, reserved, 84);

    SIZE(qsim_profile_event, 40);
    AT(qsim_profile_event, struct_size, 0);
    AT(qsim_profile_event, execution, 8);
    AT(qsim_profile_event, start_ns, 16);
    AT(qsim_profile_event, duration_ns, 24);
    AT(qsim_profile_event, step, 32);
    AT(qsim_profile_event, reserved, 36);

    SIZE(qsim_machine, 104);
    AT(qsim_machine, struct_size, 0);
    AT(qsim_machine, int8_gmacs, 8);
    AT(qsim_machine, float_gmacs, 16);
    AT(qsim_machine, read_gbs, 24);
    AT(qsim_machine, read_bytes, 56);
    AT(qsim_machine, threads, 88);
    AT(qsim_machine, reserved, 92);
    AT(qsim_machine, tile_gmacs, 96);
}

/* Numbers that files and other languages' bindings contain: they never change. */
static void growing_verdict(void) {
    SIZE(qsim_verdict_options, 40);
    AT(qsim_verdict_options, struct_size, 0);
    AT(qsim_verdict_options, calibration, 8);
    AT(qsim_verdict_options, method, 16);
    AT(qsim_verdict_options, seen, 20);
    AT(qsim_verdict_options, made_up, 24);
    AT(qsim_verdict_options, no_layers, 28);
    AT(qsim_verdict_options, no_classes, 32);
    AT(qsim_verdict_options, reserved, 36);

    SIZE(qsim_verdict_input_info, 48);
    AT(qsim_verdict_input_info, struct_size, 0);
    AT(qsim_verdict_input_info, name, 8);
    AT(qsim_verdict_input_info, least, 16);
    AT(qsim_verdict_input_info, greatest, 24);
    AT(qsim_verdict_input_info, mean, 32);
    AT(qsim_verdict_input_info, fits, 40);
    AT(qsim_verdict_input_info, reserved, 44);

    SIZE(qsim_verdict_labels_info, 40);
    AT(qsim_verdict_labels_info, struct_size, 0);
    AT(qsim_verdict_labels_info, rows, 8);
    AT(qsim_verdict_labels_info, right, 16);
    AT(qsim_verdict_labels_info, right_quantized, 24);
    AT(qsim_verdict_labels_info, confidence, 32);

    SIZE(qsim_verdict_info, 72);
    AT(qsim_verdict_info, struct_size, 0);
    AT(qsim_verdict_info, name, 8);
    AT(qsim_verdict_info, tensor, 16);
    AT(qsim_verdict_info, measure, 24);
    AT(qsim_verdict_info, grade, 28);
    AT(qsim_verdict_info, agreement, 32);
    AT(qsim_verdict_info, sqnr, 40);
    AT(qsim_verdict_info, cosine, 48);
    AT(qsim_verdict_info, before, 56);
    AT(qsim_verdict_info, rows, 64);
}

static void numbers(void) {
    CHECK_INT(QSIM_FLOAT, 1);
    CHECK_INT(QSIM_UINT8, 2);
    CHECK_INT(QSIM_INT8, 3);
    CHECK_INT(QSIM_INT32, 6);
    CHECK_INT(QSIM_UINT4, 21);
    CHECK_INT(QSIM_INT2, 26);
    CHECK_INT(QSIM_E_NOMEM, -20);
    CHECK_INT(QSIM_E_FORMAT, -30);
    CHECK_INT(QSIM_E_CANCELLED, -40);
    CHECK_INT(QSIM_ISA_AVX512VNNI, 4);
    CHECK_INT(QSIM_ISA_NEONI8MM, 7);
    CHECK_INT(QSIM_ISA_AMX, 8);
}

int main(void) {
    if (sizeof(void *) != 8)
        test_skip("the layout is written down for 64-bit machines");
    frozen();
    growing_base();
    growing_data();
    growing_package();
    growing_model();
    growing_op();
    growing_ptq();
    growing_ptq_layers();
    growing_ptq_search();
    growing_ptq_measures();
    growing_ptq_metrics();
    growing_recipe();
    growing_session();
    growing_verdict();
    numbers();
    return test_done();
}
