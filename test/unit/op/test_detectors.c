/* SPDX-License-Identifier: MIT */
/*
 * DeformConv, RoiAlign, NonMaxSuppression and NonZero on random tensors beside loops that follow
 * the text of the operators; sizes that end in the middle of what the library computes at a time.
 */
#include "net.h"

#include <math.h>
#include <stdlib.h>

static uint64_t state = 11;

static int64_t below(int64_t n) {
    return (int64_t)(test_random(&state) % (uint64_t)n);
}

static float *random_floats(size_t n, float low, float high) {
    float *x = malloc((n + 1) * sizeof(*x));
    for (size_t i = 0; i < n; i++)
        x[i] = low + (high - low) * (float)below(10000) / 10000;
    return x;
}

/* A network of one node, and its execution. */
typedef struct one_node {
    net n;
    qsim_session *session;
    qsim_run *run;
    qsim_tensor in[5], y;
} one_node;

static void begin(one_node *o, int64_t opset) {
    *o = (one_node){.run = NULL};
    net_begin(&o->n, NULL, opset);
}

static void execute(one_node *o, size_t inputs) {
    net_output(&o->n, "y");
    NET_OK(&o->n, net_end(&o->n));
    NET_OK(&o->n, qsim_session_create(o->n.model, NULL, &o->session, &o->n.error));
    NET_OK(&o->n, qsim_run_create(o->session, &o->run, &o->n.error));
    NET_OK(&o->n, qsim_run_execute(o->run, o->in, inputs, &o->y, 1, &o->n.error));
}

static void end(one_node *o) {
    qsim_run_free(o->run);
    qsim_session_free(o->session);
    net_free(&o->n);
}

/* ---- interpolation ---- */

/* A pixel of an image of h x w, 0 outside. */
static double pixel(const float *x, int64_t h, int64_t w, int64_t r, int64_t c) {
    return r < 0 || c < 0 || r >= h || c >= w ? 0 : (double)x[r * w + c];
}

static double between(const float *x, int64_t h, int64_t w, double r, double c) {
    const int64_t r0 = (int64_t)floor(r), c0 = (int64_t)floor(c);
    const double v = r - (double)r0, u = c - (double)c0;
    return (1 - v) * ((1 - u) * pixel(x, h, w, r0, c0) + u * pixel(x, h, w, r0, c0 + 1)) +
           v * ((1 - u) * pixel(x, h, w, r0 + 1, c0) + u * pixel(x, h, w, r0 + 1, c0 + 1));
}

/* ---- DeformConv ---- */

typedef struct deform {
    int64_t n, c, m, h, w, k, group, offsets, pad, stride, dilation, oh, ow;
    float *x, *weight, *offset, *bias, *mask;
} deform;

static double deformed(const deform *d, int64_t n, int64_t m, int64_t oy, int64_t ox) {
    const int64_t cg = d->c / d->group, area = d->oh * d->ow, taps = d->k * d->k;
    double sum = (double)d->bias[m];
    for (int64_t c = 0; c < cg; c++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t channel = m / (d->m / d->group) * cg + c;
            const int64_t group = n * d->offsets + channel / (d->c / d->offsets);
            const int64_t at = oy * d->ow + ox, tap = group * taps + t;
            const double dy = (double)d->offset[2 * tap * area + at];
            const double dx = (double)d->offset[(2 * tap + 1) * area + at];
            const double r = (double)(oy * d->stride - d->pad + t / d->k * d->dilation) + dy;
            const double q = (double)(ox * d->stride - d->pad + t % d->k * d->dilation) + dx;
            sum += between(d->x + (n * d->c + channel) * d->h * d->w, d->h, d->w, r, q) *
                   (double)d->mask[tap * area + at] * (double)d->weight[(m * cg + c) * taps + t];
        }
    return sum;
}

static void deform_sizes(deform *d) {
    d->group = 1 + below(3);
    d->offsets = 1 + below(2);
    d->n = 1 + below(2);
    d->c = d->group * d->offsets * (1 + below(3));
    d->m = d->group * (1 + below(9));
    d->k = 1 + below(3);
    d->pad = below(3);
    d->stride = 1 + below(2);
    d->dilation = 1 + below(2);
    d->h = 5 + below(9);
    d->w = 5 + below(14);
    d->oh = (d->h + 2 * d->pad - (d->k - 1) * d->dilation - 1) / d->stride + 1;
    d->ow = (d->w + 2 * d->pad - (d->k - 1) * d->dilation - 1) / d->stride + 1;
}

static void check_deform(void) {
    deform d;
    one_node o;
    deform_sizes(&d);
    const int64_t taps = d.k * d.k * d.offsets, area = d.oh * d.ow;
    const int64_t kernel[4] = {d.m, d.c / d.group, d.k, d.k};
    d.x = random_floats((size_t)(d.n * d.c * d.h * d.w), -1, 1);
    d.weight = random_floats((size_t)(d.m * kernel[1] * d.k * d.k), -1, 1);
    d.offset = random_floats((size_t)(d.n * 2 * taps * area), -3, 3);
    d.bias = random_floats((size_t)d.m, -1, 1);
    d.mask = random_floats((size_t)(d.n * taps * area), 0, 1);
    begin(&o, 19);
    net_input(&o.n, "x", QSIM_FLOAT, NET_DIMS(-1, d.c, -1, -1));
    net_const(&o.n, "w", QSIM_FLOAT, 4, kernel, d.weight);
    net_input(&o.n, "o", QSIM_FLOAT, NET_DIMS(-1, 2 * taps, -1, -1));
    net_const(&o.n, "b", QSIM_FLOAT, NET_DIMS(d.m), d.bias);
    net_input(&o.n, "k", QSIM_FLOAT, NET_DIMS(-1, taps, -1, -1));
    const qs_id node = net_node(&o.n, "", "DeformConv", "x,w,o,b,k", "y");
    net_ints(&o.n, node, "pads", 4, (const int64_t[]){d.pad, d.pad, d.pad, d.pad});
    net_ints(&o.n, node, "strides", 2, (const int64_t[]){d.stride, d.stride});
    net_ints(&o.n, node, "dilations", 2, (const int64_t[]){d.dilation, d.dilation});
    CHECK_INT(qs_node_set_int(o.n.g, node, "group", d.group), 0);
    CHECK_INT(qs_node_set_int(o.n.g, node, "offset_group", d.offsets), 0);
    o.in[0] = net_tensor(QSIM_FLOAT, NET_DIMS(d.n, d.c, d.h, d.w), d.x);
    o.in[1] = net_tensor(QSIM_FLOAT, NET_DIMS(d.n, 2 * taps, d.oh, d.ow), d.offset);
    o.in[2] = net_tensor(QSIM_FLOAT, NET_DIMS(d.n, taps, d.oh, d.ow), d.mask);
    execute(&o, 3);
    double worst = 0;
    for (int64_t i = 0; i < d.n * d.m * area; i++) {
        const double want = deformed(&d, i / area / d.m, i / area % d.m, i % area / d.ow, i % d.ow);
        worst = fmax(worst, fabs((double)((const float *)o.y.data)[i] - want));
    }
    CHECK_INT(o.y.dims[2] * o.y.dims[3], area);
    CHECK(worst < 1e-4);
    end(&o);
    free(d.x), free(d.weight), free(d.offset), free(d.bias), free(d.mask);
}

/* ---- RoiAlign ---- */

/* The mean of samples x samples positions in a bin; positions are clamped to the image. */
static double aligned_mean(const float *x, int64_t h, int64_t w, const double box[4],
                           const int64_t at[4], int64_t samples) {
    double sum = 0;
    for (int64_t i = 0; i < samples * samples; i++) {
        const double v = ((double)at[0] + ((double)(i / samples) + 0.5) / (double)samples);
        const double u = ((double)at[1] + ((double)(i % samples) + 0.5) / (double)samples);
        const double r = box[1] - 0.5 + v * (box[3] - box[1]) / (double)at[2];
        const double c = box[0] - 0.5 + u * (box[2] - box[0]) / (double)at[3];
        if (r < -1 || c < -1 || r > (double)h || c > (double)w)
            continue;
        sum += between(x, h, w, fmin(fmax(r, 0), (double)h - 1), fmin(fmax(c, 0), (double)w - 1));
    }
    return sum / (double)(samples * samples);
}

static void check_roialign(void) {
    const int64_t n = 2, c = 1 + below(5), h = 5 + below(9), w = 5 + below(9), rois = 1 + below(5);
    const int64_t oh = 1 + below(4), ow = 1 + below(4), samples = 1 + below(8);
    int64_t image[5];
    float *x = random_floats((size_t)(n * c * h * w), -1, 1), boxes[20];
    one_node o;
    double worst = 0;
    for (int64_t i = 0; i < rois; i++) {
        image[i] = below(n);
        boxes[4 * i] = (float)below(5 * w) / 4 - 2;
        boxes[4 * i + 1] = (float)below(5 * h) / 4 - 2;
        boxes[4 * i + 2] = boxes[4 * i] + (float)below(4 * w) / 4;
        boxes[4 * i + 3] = boxes[4 * i + 1] + (float)below(4 * h) / 4;
    }
    begin(&o, 16);
    net_input(&o.n, "x", QSIM_FLOAT, NET_DIMS(n, c, h, w));
    net_input(&o.n, "r", QSIM_FLOAT, NET_DIMS(rois, 4));
    net_input(&o.n, "i", QSIM_INT64, NET_DIMS(rois));
    const qs_id node = net_node(&o.n, "", "RoiAlign", "x,r,i", "y");
    CHECK_INT(qs_node_set_int(o.n.g, node, "output_height", oh), 0);
    CHECK_INT(qs_node_set_int(o.n.g, node, "output_width", ow), 0);
    CHECK_INT(qs_node_set_int(o.n.g, node, "sampling_ratio", samples), 0);
    o.in[0] = net_tensor(QSIM_FLOAT, NET_DIMS(n, c, h, w), x);
    o.in[1] = net_tensor(QSIM_FLOAT, NET_DIMS(rois, 4), boxes);
    o.in[2] = net_tensor(QSIM_INT64, NET_DIMS(rois), image);
    execute(&o, 3);
    for (int64_t i = 0; i < rois * c * oh * ow; i++) {
        const int64_t roi = i / (c * oh * ow), channel = i / (oh * ow) % c;
        const int64_t at[4] = {i / ow % oh, i % ow, oh, ow};
        double box[4];
        for (int k = 0; k < 4; k++)
            box[k] = (double)boxes[4 * roi + k];
        const double want =
            aligned_mean(x + (image[roi] * c + channel) * h * w, h, w, box, at, samples);
        worst = fmax(worst, fabs((double)((const float *)o.y.data)[i] - want));
    }
    CHECK(worst < 1e-4);
    end(&o);
    free(x);
}

/* ---- NonMaxSuppression ---- */

static float overlap(const float *a, const float *b) {
    const float h = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    const float w = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    if (!(h > 0) || !(w > 0))
        return 0;
    const float both = h * w;
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

/* Of equal scores the first box goes first. Returns the number of selected boxes. */
static int64_t suppress(const float *boxes, const float *score, int64_t n, int64_t most,
                        float least, int64_t *selected) {
    bool *gone = calloc((size_t)n + 1, sizeof(*gone));
    int64_t count = 0;
    while (count < most) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!gone[i] && score[i] > least && (best < 0 || score[i] > score[best]))
                best = i;
        if (best < 0)
            break;
        selected[count++] = best;
        for (int64_t i = 0; i < n; i++)
            gone[i] |= i == best || overlap(boxes + 4 * best, boxes + 4 * i) > 0.4f;
    }
    free(gone);
    return count;
}

static void check_nms(void) {
    const int64_t n = below(200), classes = 1 + below(3), most = below(3) ? 1 + below(30) : 1000;
    const float least = 0.3f, limit = 0.4f;
    float *boxes = random_floats((size_t)(4 * n), 0, 10), *scores = malloc(4096 * sizeof(float));
    int64_t selected[1024], at = 0;
    one_node o;
    int bad = 0;
    for (int64_t i = 0; i < n; i++) {
        boxes[4 * i + 2] = boxes[4 * i] + 0.5f + (float)below(16) / 4;
        boxes[4 * i + 3] = boxes[4 * i + 1] + 0.5f + (float)below(16) / 4;
    }
    for (int64_t i = 0; i < classes * n; i++)
        scores[i] = (float)below(20) / 20; /* many are equal */
    begin(&o, 11);
    net_input(&o.n, "b", QSIM_FLOAT, NET_DIMS(1, n, 4));
    net_input(&o.n, "s", QSIM_FLOAT, NET_DIMS(1, classes, n));
    net_const(&o.n, "most", QSIM_INT64, NET_DIMS(1), &most);
    net_const(&o.n, "limit", QSIM_FLOAT, NET_DIMS(1), &limit);
    net_const(&o.n, "least", QSIM_FLOAT, NET_DIMS(1), &least);
    net_node(&o.n, "", "NonMaxSuppression", "b,s,most,limit,least", "y");
    o.in[0] = net_tensor(QSIM_FLOAT, NET_DIMS(1, n, 4), boxes);
    o.in[1] = net_tensor(QSIM_FLOAT, NET_DIMS(1, classes, n), scores);
    execute(&o, 2);
    const int64_t *y = o.y.data;
    for (int64_t c = 0; c < classes; c++) {
        const int64_t count = suppress(boxes, scores + c * n, n, most, least, selected);
        for (int64_t i = 0; i < count; i++, at++)
            bad += at >= o.y.dims[0] || y[3 * at] != 0 || y[3 * at + 1] != c ||
                   y[3 * at + 2] != selected[i];
    }
    CHECK_INT(o.y.dims[0], at);
    CHECK_INT(bad, 0);
    end(&o);
    free(boxes), free(scores);
}

/* ---- NonZero ---- */

static void check_nonzero(int32_t dtype) {
    int64_t dims[3];
    const int32_t rank = (int32_t)below(4);
    size_t elements = 1, element = dtype == QSIM_BOOL ? 1 : dtype == QSIM_FLOAT ? 4 : 8;
    for (int32_t i = 0; i < rank; i++)
        elements *= (size_t)(dims[i] = i == 1 ? below(4) : 1 + below(40));
    uint8_t *x = calloc(elements + 1, element);
    one_node o;
    int bad = 0;
    int64_t count = 0;
    for (size_t i = 0; i < elements; i++) /* one byte that is not 0; of floats -0 or 2 */
        if (below(3) == 0)
            x[i * element + element - 1] = dtype != QSIM_FLOAT ? 1 : below(2) ? 0x80 : 0x40;
    begin(&o, 13);
    net_input(&o.n, "x", dtype, rank, dims);
    net_node(&o.n, "", "NonZero", "x", "y");
    o.in[0] = net_tensor(dtype, rank, dims, x);
    execute(&o, 1);
    const int64_t columns = o.y.dims[1], *y = o.y.data;
    for (size_t i = 0; i < elements; i++) {
        const uint8_t top = x[i * element + element - 1];
        size_t rest = i;
        if (top == 0 || (dtype == QSIM_FLOAT && top == 0x80))
            continue;
        for (int32_t axis = rank; axis-- > 0; rest /= (size_t)dims[axis])
            bad += count >= columns ||
                   y[axis * columns + count] != (int64_t)(rest % (size_t)dims[axis]);
        count++;
    }
    CHECK_INT(o.y.dims[0], rank ? rank : 1);
    CHECK_INT(columns, count);
    CHECK_INT(bad, 0);
    end(&o);
    free(x);
}

int main(void) {
    for (int i = 0; i < 40; i++)
        check_deform();
    for (int i = 0; i < 60; i++) {
        check_roialign();
        check_nms();
        check_nonzero(QSIM_BOOL);
        check_nonzero(QSIM_FLOAT);
        check_nonzero(QSIM_INT64);
    }
    return test_done();
}
