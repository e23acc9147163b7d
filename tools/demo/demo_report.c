/* SPDX-License-Identifier: MIT */
#include "demo_report.h"

#include <qsim/ptq.h>

void demo_count(demo_result *r, const uint8_t *labels, const uint8_t *const predicted[2]) {
    for (size_t i = 0; i < r->test_count; i++) {
        const uint8_t actual = labels[i], a = predicted[0][i], b = predicted[1][i];
        r->mode[0].confusion[actual * DEMO_CLASSES + a]++;
        r->mode[1].confusion[actual * DEMO_CLASSES + b]++;
        r->mode[0].test_correct += a == actual;
        r->mode[1].test_correct += b == actual;
        r->agree += a == b;
        r->only_fp32 += a == actual && b != actual;
        r->only_int8 += a != actual && b == actual;
    }
}

double demo_accuracy(const demo_result *r, size_t mode) {
    return 100.0 * (double)r->mode[mode].test_correct / (double)r->test_count;
}

static double val_accuracy(const demo_result *r, size_t mode) {
    return 100.0 * (double)r->mode[mode].val_correct / (double)r->val_count;
}

static double kilobytes(int64_t bytes) {
    return (double)bytes / 1024.0;
}

static double ratio(int64_t a, int64_t b) {
    return (double)a / (double)b;
}

static void table_row(const demo_result *r, size_t mode, text *out) {
    const demo_mode *m = &r->mode[mode];
    const double n = DEMO_BATCH;
    text_printf(out,
                "%-10s %6.2f %7.2f   %7.4f %7.4f %7.4f   %7.4f %7.4f %7.4f   %11.2f KB %9.2f KB\n",
                m->name, val_accuracy(r, mode), demo_accuracy(r, mode), m->single.mean,
                m->single.p50, m->single.p90, m->batch.mean / n, m->batch.p50 / n, m->batch.p90 / n,
                kilobytes(m->weight_bytes), kilobytes(m->file_bytes));
}

static void ratio_row(const demo_mode *a, const demo_mode *b, text *out) {
    text_printf(out,
                "%-10s %6s %7s   %6.2fx %6.2fx %6.2fx   %6.2fx %6.2fx %6.2fx   %13.2fx %11.2fx\n",
                "fp32/int8", "", "", a->single.mean / b->single.mean, a->single.p50 / b->single.p50,
                a->single.p90 / b->single.p90, a->batch.mean / b->batch.mean,
                a->batch.p50 / b->batch.p50, a->batch.p90 / b->batch.p90,
                ratio(a->weight_bytes, b->weight_bytes), ratio(a->file_bytes, b->file_bytes));
}

void demo_table(const demo_result *r, text *out) {
    const double p = qsim_mcnemar(r->only_fp32, r->only_int8);
    text_printf(out,
                "data: %s, %zu validation and %zu test images; calibrated on %zu of the former\n",
                r->data_name, r->val_count, r->test_count, r->calibration_count);
    text_printf(out, "times: %d thread%s, %s kernels, both networks in turns\n\n", r->threads,
                r->threads == 1 ? "" : "s", r->isa);
    text_printf(out, "%-10s %14s   %23s   %23s   %27s\n", "", "accuracy", "batch 1, ms per image",
                "batch 64, ms per image", "size");
    text_printf(out, "%-10s %6s %7s   %7s %7s %7s   %7s %7s %7s   %14s %12s\n", "mode", "val %",
                "test %", "mean", "p50", "p90", "mean", "p50", "p90", "weights+biases", "file");
    table_row(r, 0, out);
    table_row(r, 1, out);
    ratio_row(&r->mode[0], &r->mode[1], out);
    text_printf(
        out, "\nint8 - fp32 on the test images: %+.2f points; %.2f %% of the predictions agree;\n",
        demo_accuracy(r, 1) - demo_accuracy(r, 0),
        100.0 * (double)r->agree / (double)r->test_count);
    text_printf(out, "only fp32 right: %llu, only int8 right: %llu; McNemar's p = %.3f: %s\n",
                (unsigned long long)r->only_fp32, (unsigned long long)r->only_int8, p,
                p < 0.05 ? "a significant difference" : "no significant difference");
}

static int bar(text *out, int met, const char *what, double value, const char *unit,
               const char *bound) {
    text_printf(out, "%s  %s: %.2f%s (bar: %s)\n", met ? "met   " : "MISSED", what, value, unit,
                bound);
    return met;
}

int demo_bars(const demo_result *r, text *out) {
    const demo_mode *a = &r->mode[0], *b = &r->mode[1];
    const double drop = demo_accuracy(r, 0) - demo_accuracy(r, 1);
    const double smaller = ratio(a->weight_bytes, b->weight_bytes);
    const double batch = a->batch.p50 / b->batch.p50, single = a->single.p50 / b->single.p50;
    int met =
        bar(out, drop < 0.2 + 1e-9, "test accuracy lost by int8", drop, " points", "at most 0.2");
    met &= bar(out, smaller >= 3.9, "weights and biases smaller", smaller, "x", "3.9");
    bar(out, batch >= 1.5, "faster at batch 64 (p50)", batch, "x", "1.5");
    bar(out, single >= 1.0, "faster at batch 1 (p50)", single, "x", "1");
    return met;
}

static void json_times(json *out, const char *key, const demo_times *t, double images) {
    json_line(out, key);
    json_number(out, "mean", t->mean / images);
    json_number(out, "p50", t->p50 / images);
    json_number(out, "p90", t->p90 / images);
    json_end(out);
}

void demo_json(const demo_result *r, int met, json *out) {
    json_object(out, NULL);
    json_int(out, "schema", 1);
    json_string(out, "data", r->data_name);
    json_int(out, "validation_images", (int64_t)r->val_count);
    json_int(out, "test_images", (int64_t)r->test_count);
    json_int(out, "calibrated", (int64_t)r->calibration_count);
    json_int(out, "threads", r->threads);
    json_string(out, "isa", r->isa);
    json_array(out, "models");
    for (size_t i = 0; i < 2; i++) {
        const demo_mode *m = &r->mode[i];
        json_object(out, NULL);
        json_string(out, "name", m->name);
        json_number(out, "validation", val_accuracy(r, i));
        json_number(out, "test", demo_accuracy(r, i));
        json_times(out, "batch1_ms_per_image", &m->single, 1);
        json_times(out, "batch64_ms_per_image", &m->batch, DEMO_BATCH);
        json_int(out, "weight_bytes", m->weight_bytes);
        json_int(out, "file_bytes", m->file_bytes);
        json_end(out);
    }
    json_end(out);
    json_number(out, "agreement", 100.0 * (double)r->agree / (double)r->test_count);
    json_int(out, "only_fp32_right", (int64_t)r->only_fp32);
    json_int(out, "only_int8_right", (int64_t)r->only_int8);
    json_number(out, "mcnemar_p", qsim_mcnemar(r->only_fp32, r->only_int8));
    json_bool(out, "met", met != 0);
    json_end(out);
}
