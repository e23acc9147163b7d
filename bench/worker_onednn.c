/* SPDX-License-Identifier: MIT */
/*
 * oneDNN on one layer, for layers.sh; the "model" is its text: TYPE conv GROUPS C N KERNEL STRIDE
 * SIZE (C and N per group, padding KERNEL / 2, square) or TYPE gemm M N K, TYPE being int8 (u8 x s8
 * to u8, a scale per output channel, no zero points) or f32. oneDNN chooses the layouts; only the
 * primitive is timed.
 */
#include "worker.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    dnnl_dims_t source, weights, target, bias, strides, pads;
    int rank, weight_rank;
    int integer, conv;
} layer;

static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[4];
    int arg_count;
} state;

static void set(dnnl_dim_t *dims, long a, long b, long c, long d, long e) {
    const long all[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++)
        dims[i] = all[i];
}

static int parse_layer(const char *text, layer *l) {
    char type[8], kind[8];
    long g = 0, c = 0, n = 0, k = 0, s = 0, size = 0;
    int fields =
        sscanf(text, "%7s %7s %ld %ld %ld %ld %ld %ld", type, kind, &g, &c, &n, &k, &s, &size);
    if (fields < 2)
        return -1;
    l->integer = strcmp(type, "int8") == 0;
    l->conv = strcmp(kind, "conv") == 0;
    if (!l->conv && fields == 5) {
        l->rank = l->weight_rank = 2;
        set(l->source, g, n, 0, 0, 0); /* for gemm, g, c and n are M, N and K */
        set(l->weights, n, c, 0, 0, 0);
        set(l->target, g, c, 0, 0, 0);
        return 0;
    }
    if (!l->conv || fields != 8)
        return -1;
    long out = (size + 2 * (k / 2) - k) / s + 1;
    l->rank = 4;
    l->weight_rank = g > 1 ? 5 : 4;
    l->bias[0] = g * n;
    l->strides[0] = l->strides[1] = s;
    l->pads[0] = l->pads[1] = k / 2;
    set(l->source, 1, g * c, size, size, 0);
    set(l->target, 1, g * n, out, out, 0);
    if (g > 1)
        set(l->weights, g, n, c, k, k);
    else
        set(l->weights, n, c, k, k, 0);
    return 0;
}

static dnnl_status_t describe(const layer *l, dnnl_primitive_desc_t *out) {
    const dnnl_data_type_t in = l->integer ? dnnl_u8 : dnnl_f32,
                           w = l->integer ? dnnl_s8 : dnnl_f32,
                           b = l->integer ? dnnl_s32 : dnnl_f32;
    dnnl_memory_desc_t md[4];
    dnnl_primitive_attr_t attr = NULL;
    dnnl_convolution_desc_t conv;
    dnnl_matmul_desc_t matmul;
    const dnnl_format_tag_t plain = l->conv ? dnnl_format_tag_any : dnnl_ab;
    dnnl_memory_desc_init_by_tag(&md[0], l->rank, l->source, in, plain);
    dnnl_memory_desc_init_by_tag(&md[1], l->weight_rank, l->weights, w, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&md[2], 1, l->bias, b, dnnl_x);
    dnnl_memory_desc_init_by_tag(&md[3], l->rank, l->target, in, plain);
    dnnl_primitive_attr_create(&attr);
    if (l->integer) {
        const dnnl_dim_t count = l->target[1];
        float *scales = malloc((size_t)count * sizeof(*scales));
        for (dnnl_dim_t i = 0; scales && i < count; i++)
            scales[i] = 1e-4f * (float)(1 + i % 7);
        dnnl_primitive_attr_set_output_scales(attr, count, 2, scales);
        free(scales);
    }
    dnnl_status_t code = l->conv ? dnnl_convolution_forward_desc_init(
                                       &conv, dnnl_forward_inference, dnnl_convolution_direct,
                                       &md[0], &md[1], &md[2], &md[3], l->strides, l->pads, l->pads)
                                 : dnnl_matmul_desc_init(&matmul, &md[0], &md[1], NULL, &md[3]);
    if (code == dnnl_success)
        code = dnnl_primitive_desc_create(
            out, l->conv ? (const void *)&conv : (const void *)&matmul, attr, state.engine, NULL);
    dnnl_primitive_attr_destroy(attr);
    return code;
}

/* An argument of the layout that the primitive asks for, filled with small values. */
static dnnl_status_t add_argument(const_dnnl_primitive_desc_t pd, dnnl_query_t query, int index,
                                  int argument) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, query, index);
    dnnl_memory_t memory = NULL;
    void *data = NULL;
    dnnl_status_t code = dnnl_memory_create(&memory, md, state.engine, DNNL_MEMORY_ALLOCATE);
    if (code == dnnl_success)
        code = dnnl_memory_get_data_handle(memory, &data);
    if (code != dnnl_success)
        return code;
    const size_t bytes = dnnl_memory_desc_get_size(md);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)data)[i] = md->data_type == dnnl_f32 ? 0x3c : (uint8_t)(i * 31 % 61);
    state.args[state.arg_count++] = (dnnl_exec_arg_t){argument, memory};
    return code;
}

static int open_layer(worker_job *job) {
    layer l = {.rank = 0};
    dnnl_primitive_desc_t pd = NULL;
    snprintf(job->refusal, sizeof(job->refusal), "oneDNN has no such layer");
    if (parse_layer(job->model, &l) || dnnl_engine_create(&state.engine, dnnl_cpu, 0) ||
        dnnl_stream_create(&state.stream, state.engine, dnnl_stream_default_flags) ||
        describe(&l, &pd) || dnnl_primitive_create(&state.primitive, pd) ||
        add_argument(pd, dnnl_query_src_md, 0, DNNL_ARG_SRC) ||
        add_argument(pd, dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS) ||
        add_argument(pd, dnnl_query_dst_md, 0, DNNL_ARG_DST) ||
        (l.conv && add_argument(pd, dnnl_query_weights_md, 1, DNNL_ARG_BIAS)))
        return -1;
    return dnnl_primitive_desc_destroy(pd) ? -1 : 0;
}

static int run_layer(worker_job *job) {
    (void)job;
    return dnnl_primitive_execute(state.primitive, state.stream, state.arg_count, state.args) ||
           dnnl_stream_wait(state.stream);
}

const worker_engine worker_onednn = {"onednn", NULL, open_layer, run_layer};
