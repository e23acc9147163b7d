/* SPDX-License-Identifier: MIT */
/*
 * Which passes run, and in which order: one table for compiling a session, optimizing a file and
 * preparing a graph for calibration and quantization.
 */
#include "pass/pass.h"
#include "pass/verify.h"

static int prune(qs_pass *p) {
    return qs_graph_prune(p->graph) ? qs_pass_no_memory(p) : QSIM_OK;
}

static int fold(qs_pass *p) {
    return qs_pass_fold(p, 0);
}

static int fold_quantize(qs_pass *p) {
    return qs_pass_fold(p, QS_FOLD_QUANTIZE);
}

static int fold_all(qs_pass *p) {
    return qs_pass_fold(p, QS_FOLD_QUANTIZE | QS_FOLD_DEQUANTIZE);
}

static int qdq(qs_pass *p) {
    return p->literal ? QSIM_OK : qs_pass_qdq(p);
}

static bool uses_domain(const qs_graph *g, const char *domain) {
    for (size_t i = 0; i < g->order_count; i++)
        if (strcmp(g->nodes[g->order[i]].domain, domain) == 0)
            return true;
    return false;
}

/*
 * Makes integer operators of ONNX and of com.microsoft. com.microsoft is imported first, since rows
 * are looked up by the imported version, and removed again if no node needs it.
 */
static int qdq_contributed(qs_pass *p) {
    qs_graph *g = p->graph;
    const size_t imports = g->import_count;
    if (qs_graph_import(g, "com.microsoft") <= 0 && qs_graph_set_import(g, "com.microsoft", 1))
        return qs_pass_no_memory(p);
    const int code = qs_pass_qdq(p);
    if (!code && !uses_domain(g, "com.microsoft"))
        g->import_count = imports;
    return code;
}

static int layout(qs_pass *p) {
    return qs_pass_layout(p, p->level >= QSIM_LEVEL_BASIC);
}

/* The lowest level at which a pass runs; quantization has no levels. */
#define ALWAYS   QSIM_LEVEL_DISABLE
#define BASIC    QSIM_LEVEL_BASIC
#define EXTENDED QSIM_LEVEL_EXTENDED
#define NEVER    (QSIM_LEVEL_ALL + 1)

/* Passes have names in builds with assertions, whose messages name the pass that broke a rule. */
#ifdef NDEBUG
#define NAMED(text)
#else
#define NAMED(text) .name = (text),
#endif

typedef struct stage {
#ifndef NDEBUG
    const char *name;
#endif
    int (*run)(qs_pass *p);
    int8_t level[QS_PURPOSES];
} stage;

_Static_assert(QS_FOR_SESSION == 0 && QS_FOR_FILE == 1 && QS_FOR_PTQ == 2 &&
                   QS_FOR_QUANTIZED == 3 && QS_PURPOSES == 4,
               "the columns of the table are the purposes");

/*
 * Integer results are the same at every level: the passes that decide what runs in integers always
 * run for a session.
 */
static const stage pipeline[] = {
    /* name, pass, {session, file, ptq, quantized} */
    {NAMED("prune") prune, {NEVER, ALWAYS, ALWAYS, NEVER}},
    {NAMED("constants") qs_pass_constants, {ALWAYS, BASIC, ALWAYS, NEVER}},
    {NAMED("half") qs_pass_half, {ALWAYS, NEVER, ALWAYS, NEVER}},
    {NAMED("shapes") qs_pass_shapes, {ALWAYS, NEVER, ALWAYS, NEVER}},
    {NAMED("broadcast") qs_pass_broadcast, {BASIC, BASIC, ALWAYS, NEVER}},
    {NAMED("fold") fold, {NEVER, BASIC, NEVER, NEVER}},
    {NAMED("fold_quantize") fold_quantize, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("fold_all") fold_all, {NEVER, NEVER, ALWAYS, NEVER}}, /* dequantizes 8-bit weights */
    {NAMED("sums") qs_pass_sums, {ALWAYS, BASIC, ALWAYS, NEVER}},
    {NAMED("identities") qs_pass_identities, {ALWAYS, BASIC, ALWAYS, NEVER}},
    {NAMED("redundant") qs_pass_redundant, {NEVER, BASIC, ALWAYS, NEVER}},
    {NAMED("slices") qs_pass_slices, {EXTENDED, BASIC, ALWAYS, NEVER}},
    {NAMED("batchnorm") qs_pass_batchnorm, {NEVER, BASIC, ALWAYS, NEVER}},
    {NAMED("rescale") qs_pass_rescale, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("u8") qs_pass_u8, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("qdq") qdq, {ALWAYS, NEVER, NEVER, ALWAYS}},
    {NAMED("products") qs_pass_products, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("dynamic") qs_pass_dynamic, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("mark_integers") qs_pass_mark_integers, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("identities") qs_pass_identities,
     {BASIC, NEVER, NEVER, NEVER}}, /* the qdq pass has made some */
    {NAMED("pads") qs_pass_pads, {BASIC, BASIC, ALWAYS, NEVER}},
    {NAMED("nbits") qs_pass_nbits, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("fold_all") fold_all, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("fold_quantize") fold_quantize, {NEVER, EXTENDED, NEVER, NEVER}},
    {NAMED("rescale") qs_pass_rescale, {NEVER, EXTENDED, NEVER, NEVER}},
    {NAMED("bias") qs_pass_bias, {EXTENDED, EXTENDED, ALWAYS, NEVER}},
    {NAMED("batchnorm") qs_pass_batchnorm,
     {BASIC, EXTENDED, ALWAYS, NEVER}}, /* again, without Adds before it */
    {NAMED("bias") qs_pass_bias,
     {EXTENDED, EXTENDED, ALWAYS, NEVER}}, /* again, of Adds after normalizations */
    {NAMED("depth") qs_pass_depth, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("gemm") qs_pass_gemm, {NEVER, NEVER, ALWAYS, NEVER}},
    {NAMED("qdq_contributed") qdq_contributed, {NEVER, EXTENDED, NEVER, NEVER}},
    {NAMED("curves") qs_pass_curves, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("attention") qs_pass_attention, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("fuse") qs_pass_fuse, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("table") qs_pass_table, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("phases") qs_pass_phases, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("layout") layout, {ALWAYS, NEVER, NEVER, NEVER}},
    {NAMED("epilogue") qs_pass_epilogue,
     {EXTENDED, NEVER, NEVER, NEVER}}, /* this and the next two need the layout */
    {NAMED("shuffle") qs_pass_shuffle, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("concat") qs_pass_concat, {EXTENDED, NEVER, NEVER, NEVER}},
    {NAMED("choices") qs_pass_choices, {NEVER, ALWAYS, ALWAYS, NEVER}},
    {NAMED("finish") qs_pass_finish, {NEVER, BASIC, ALWAYS, NEVER}},
    {NAMED("names") qs_pass_names, {NEVER, ALWAYS, ALWAYS, ALWAYS}},
};

static int run(qs_pass *p, const stage *s) {
    int code = s->run(p);
#ifndef NDEBUG
    if (!code)
        code = qs_graph_verify(p->graph, p->model, s->name, p->error);
#endif
    return code;
}

int qs_pipeline_run(qs_pass *p, qs_purpose purpose, int32_t level) {
    int code = QSIM_OK;
    p->level = level == QSIM_LEVEL_DEFAULT ? QSIM_LEVEL_ALL : level;
    /* A file keeps its half precision: passes that compute know floats only. */
    if (purpose == QS_FOR_FILE && qs_graph_has_half(p->graph))
        p->level = QSIM_LEVEL_DISABLE;
    for (size_t i = 0; i < QS_COUNT(pipeline) && !code; i++) {
        code = qs_go_on(p->ctx, p->model, p->error);
        if (!code && p->level >= pipeline[i].level[purpose])
            code = run(p, &pipeline[i]);
        if (p->only_marks && pipeline[i].run == qs_pass_mark_integers)
            break;
    }
    return code;
}
