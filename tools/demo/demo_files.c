/* SPDX-License-Identifier: MIT */
/* Files written by the demo: table, numbers, charts. */
#include "demo_report.h"

#include "common/chart.h"

#include <qsim/data.h>
#include <qsim/ptq.h>

/* Writes `t` as dir/name unless *status is a failure, and frees it. */
static void put_file(const char *dir, const char *name, text *t, int *status, qsim_error *error) {
    text path = {0};
    text_printf(&path, "%s/%s", dir, name);
    const qsim_bytes piece = {t->data, t->size};
    if (*status == QSIM_OK)
        *status = qsim_file_write(NULL, path.data, QSIM_FILE_REPLACE, &piece, 1, error);
    text_free(&path);
    text_free(t);
    *t = (text){0};
}

static void summary_row(const demo_result *r, const demo_mode *m, text *t) {
    text_printf(t, "%s,%s,%.4f,%.4f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%lld,%lld,", r->data_name,
                m->name, 100.0 * (double)m->val_correct / (double)r->val_count,
                100.0 * (double)m->test_correct / (double)r->test_count, m->single.mean,
                m->single.p50, m->single.p90, m->batch.mean / DEMO_BATCH, m->batch.p50 / DEMO_BATCH,
                m->batch.p90 / DEMO_BATCH, (long long)m->weight_bytes, (long long)m->file_bytes);
}

static void summary_csv(const demo_result *r, text *t) {
    text_puts(t, "data,mode,val_percent,test_percent,batch1_mean_ms_per_image,"
                 "batch1_p50_ms_per_image,batch1_p90_ms_per_image,batch64_mean_ms_per_image,"
                 "batch64_p50_ms_per_image,batch64_p90_ms_per_image,weight_bytes,file_bytes,"
                 "agreement_percent,only_fp32_right,only_int8_right,mcnemar_p\n");
    summary_row(r, &r->mode[0], t);
    text_puts(t, ",,,\n");
    summary_row(r, &r->mode[1], t);
    text_printf(t, "%.4f,%llu,%llu,%.6g\n", 100.0 * (double)r->agree / (double)r->test_count,
                (unsigned long long)r->only_fp32, (unsigned long long)r->only_int8,
                qsim_mcnemar(r->only_fp32, r->only_int8));
}

/* counts - minus, where minus may be NULL. */
static void confusion_csv(const demo_result *r, const uint64_t *counts, const uint64_t *minus,
                          text *t) {
    text_puts(t, "actual\\predicted");
    for (size_t c = 0; c < DEMO_CLASSES; c++)
        text_printf(t, ",%s", r->classes[c]);
    for (size_t i = 0; i < DEMO_COUNTS; i++) {
        if (i % DEMO_CLASSES == 0)
            text_printf(t, "\n%s", r->classes[i / DEMO_CLASSES]);
        text_printf(t, ",%lld", (long long)counts[i] - (long long)(minus ? minus[i] : 0));
    }
    text_puts(t, "\n");
}

static void class_accuracy(const demo_mode *m, double percent[DEMO_CLASSES]) {
    for (size_t c = 0; c < DEMO_CLASSES; c++) {
        uint64_t total = 0;
        for (size_t k = 0; k < DEMO_CLASSES; k++)
            total += m->confusion[c * DEMO_CLASSES + k];
        percent[c] = 100.0 * (double)m->confusion[c * DEMO_CLASSES + c] / (double)total;
    }
}

static void per_class(const demo_result *r, text *csv, text *svg, const chart *c) {
    double percent[2][DEMO_CLASSES];
    class_accuracy(&r->mode[0], percent[0]);
    class_accuracy(&r->mode[1], percent[1]);
    text_puts(csv, "class,fp32_percent,int8_percent,difference\n");
    for (size_t i = 0; i < DEMO_CLASSES; i++)
        text_printf(csv, "%s,%.4f,%.4f,%+.4f\n", r->classes[i], percent[0][i], percent[1][i],
                    percent[1][i] - percent[0][i]);
    chart_bars(svg, c, (const chart_series[]){{"FP32", percent[0]}, {"INT8", percent[1]}}, 2);
}

int demo_write(const demo_result *r, const char *dir, qsim_error *error) {
    const uint64_t *fp32 = r->mode[0].confusion, *int8 = r->mode[1].confusion;
    text note[3] = {{0}}, t = {0}, csv = {0};
    int status = QSIM_OK;
    for (size_t i = 0; i < 2; i++)
        text_printf(&note[i], "%s, %zu test images, %.2f %% right", r->data_name, r->test_count,
                    demo_accuracy(r, i));
    text_printf(&note[2], "%s, %zu test images, FP32 %.2f %%, INT8 %.2f %%", r->data_name,
                r->test_count, demo_accuracy(r, 0), demo_accuracy(r, 1));
    summary_csv(r, &t);
    put_file(dir, "summary.csv", &t, &status, error);
    confusion_csv(r, fp32, NULL, &t);
    put_file(dir, "confusion_fp32.csv", &t, &status, error);
    confusion_csv(r, int8, NULL, &t);
    put_file(dir, "confusion_int8.csv", &t, &status, error);
    confusion_csv(r, int8, fp32, &t);
    put_file(dir, "confusion_difference.csv", &t, &status, error);
    chart_confusion(&t, &(chart){DEMO_CLASSES, r->classes, "LeNetLite, FP32", note[0].data}, fp32);
    put_file(dir, "confusion_fp32.svg", &t, &status, error);
    chart_confusion(&t, &(chart){DEMO_CLASSES, r->classes, "LeNetLite, INT8", note[1].data}, int8);
    put_file(dir, "confusion_int8.svg", &t, &status, error);
    chart_difference(&t, &(chart){DEMO_CLASSES, r->classes, "LeNetLite, INT8 - FP32", note[2].data},
                     fp32, int8);
    put_file(dir, "confusion_difference.svg", &t, &status, error);
    per_class(r, &csv, &t, &(chart){DEMO_CLASSES, r->classes, "Accuracy per class", note[2].data});
    put_file(dir, "per_class.csv", &csv, &status, error);
    put_file(dir, "per_class.svg", &t, &status, error);
    for (size_t i = 0; i < 3; i++)
        text_free(&note[i]);
    return status;
}
