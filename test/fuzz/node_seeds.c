/* SPDX-License-Identifier: MIT */
/*
 * One line for each operator whose inputs are not all floats of 2 x 3 x 4, and for further forms of
 * some. A line has a name, with ms: before operators of com.microsoft, @ and an opset, / and a
 * number of outputs; then inputs, a letter for the type with sizes and perhaps = and values, behind
 * ! if they have to be constants, behind * for a sequence; then behind a colon attributes.
 */
#include "node_seeds.h"

#include <stdio.h>
#include <string.h>

#include <qsim/base.h>

static const char *const lines[] = {
    "AffineGrid f2,2,3 l4=2,1,3,3",
    "And o2,3 o2,3",
    "Attention f1,2,3,4 f1,2,5,4 f1,2,5,4",
    "Attention/3 f1,2,3,4 f1,2,5,4 f1,2,5,4 - f1,2,2,4 f1,2,2,4",
    "AveragePool f1,2,6,6 : kernel_shape=3,2 strides=2,2 pads=1,0,1,0 ceil_mode=1",
    "BatchNormalization f2,3,4 f3 f3 f3 f3=1",
    "BatchNormalization/3 f2,3,4 f3 f3 f3 f3=1 : training_mode=1",
    "BitCast f2,3 : to=6",
    "BitShift v2,3 v2,3 : direction=LEFT",
    "BitwiseAnd i2,3 i2,3",
    "BitwiseNot i2,3",
    "BitwiseOr i2,3 i2,3",
    "BitwiseXor i2,3 i2,3",
    "BlackmanWindow l=8",
    "Cast f2,3 : to=3",
    "Cast f2,19 : to=10",
    "Cast f2,19 : to=16",
    "Cast h2,19 : to=1",
    "Cast h2,19 : to=7",
    "Cast e2,19 : to=1",
    "Cast i2,19 : to=10",
    "CastLike f2,3 b2",
    "CausalConvWithState/2 f1,3,5 f3,1,2 f3 f1,3,1 : activation=silu",
    "CenterCropPad f3,4 l2=2,5",
    "Clip f2,3 f=0 f=1",
    "Col2Im f1,8,4 l2=3,3 l2=2,2",
    "Compress f3,4 o3=1,0,1 : axis=0",
    "Concat f2,3 f2,1 : axis=1",
    "ConcatFromSequence *f2,3 : axis=0",
    "Constant : value_floats=1,2",
    "ConstantOfShape l2=2,3 : value=1",
    "Conv f1,2,6,6 f4,2,3,3 f4 : pads=1,1,1,1 strides=2,2",
    "Conv f1,4,6,6 f4,1,3,3 : group=4",
    "Conv f1,2,8 f3,2,3 : dilations=2",
    "ConvInteger u1,2,5,5 u3,2,2,2 u=3 u=4",
    "ConvTranspose f1,2,4,4 f2,3,3,3 f3 : strides=2,2 output_padding=1,1",
    "Crop f1,2,5,4 : border=1,0,1,2",
    "CumProd@26 f2,3 i=1",
    "CumSum f2,3 i=1",
    "DeformConv f1,1,3,3 f1,1,2,2 f1,8,2,2 f1 f1,4,2,2",
    "DepthToSpace f1,8,2,3 : blocksize=2",
    "DequantizeLinear u2,3 f=1 u=1",
    "DequantizeLinear b2,6 f2,2 b2,2 : axis=1 block_size=3",
    "Det f2,3,3",
    "DFT f1,4,1 - l=1",
    "DFT@17 f1,8,2 l=6 : axis=1 onesided=0",
    "Dropout/2 f2,3 f=0",
    "Dropout/2 f2,3 - o=1 : seed=3",
    "DynamicQuantizeLinear/3 f2,3",
    "Einsum f2,3 f3,4 : equation=ij,jk->ik",
    "Einsum f1,2,3,4 f2,4,5,1 : equation=abcd,bdef->fceab",
    "Einsum f2,3,4 f2,4,5 : equation=bij,bjk->bik",
    "Einsum f2,3,4 f2,5,4 : equation=...ij,...kj->...ki",
    "Einsum h2,3 h4,3 : equation=ij,kj->ki",
    "Expand f2,1 l2=2,3",
    "EyeLike f3,4 : k=1",
    "Gather f3,4 l2=0,2 : axis=0",
    "GatherElements f3,4 l3,2=0,1,2 : axis=0",
    "GatherND f2,3 l2,1=0,1",
    "Gemm f2,3 f3,4 f4",
    "Gemm@7 f3,2 f4,3 f4 : transA=1 transB=1 alpha=2",
    "Gemm h2,3 h3,4 h4",
    "GridSample f1,1,3,3 f1,2,2,2",
    "GroupNormalization f1,4,3 f4 f4 : num_groups=2",
    "GRU/2 f3,2,4 f1,9,4 f1,9,3 : hidden_size=3",
    "HammingWindow l=8",
    "HannWindow l=8",
    "ImageScaler f1,3,2,2 : bias=1,2,3",
    "InstanceNormalization f1,2,3 f2 f2",
    "LayerNormalization/3 f2,3 f3 f3 : axis=-1",
    "LogSoftmax f4,7,3 : axis=1",
    "LinearAttention@27/2 f1,3,8 f1,3,8 f1,3,8 : q_num_heads=2 kv_num_heads=2 update_rule=linear",
    "LRN f1,4,3,3 : size=3",
    "LpPool f1,2,6,6 : kernel_shape=2,2",
    "LSTM/3 f3,2,4 f1,12,4 f1,12,3 f1,24 i2=3,2 f1,2,3 f1,2,3 f1,9 : hidden_size=3",
    "LSTM/1 d3,2,4 d2,12,4 d2,12,3 : hidden_size=3 direction=bidirectional",
    "MatMul f2,3 f3,4",
    "MatMul h2,3 h3,4",
    "MatMulInteger u2,3 b3,4 u=1 b=2",
    "MaxPool/2 f1,2,6,6 : kernel_shape=2,2 strides=2,2",
    "MaxPool@7 f1,2,6,6 : kernel_shape=2,2",
    "MaxRoiPool f1,2,6,6 f1,5=0,0,0,3,3 : pooled_shape=2,2",
    "MaxUnpool f1,1,2,2 l1,1,2,2=0,3,8,11 : kernel_shape=2,2 strides=2,2",
    "MeanVarianceNormalization f1,2,3,3",
    "MelWeightMatrix l=4 l=8 l=1000 f=10 f=400",
    "Mod i2,3 i2,3=3",
    "Mod f2,3 f2,3=3 : fmod=1",
    "Multinomial f2,3 : sample_size=2",
    "NegativeLogLikelihoodLoss f2,3 l2=0,2 f3=1",
    "NonMaxSuppression f1,3,4=0,0,1,1,0,0,2,2 f1,1,3 l=2 f=0 f=0",
    "Not o2,3",
    "OneHot l3=0,1,2 l=3 f2=0,1 : axis=-1",
    "Optional f2,3",
    "Or o2,3 o2,3",
    "Pad f2,3 l4=1,0,0,1 f=2",
    "Pad@10 f2,3 : pads=1,0,0,1 mode=edge",
    "Pad f1,2,5,7 l4=2,1,0,3 - l2=2,-1 : mode=reflect",
    "Pad@19 u2,5,3 l6=0,-1,1,1,0,2 : mode=wrap",
    "Pad h2,5 l4=1,2,0,1 h=3",
    "PRelu f2,3 f3",
    "QLinearConv u1,2,5,5 f=1 u=3 b3,2,3,3 f3=1 b=0 f=9 u=3 i3",
    "QLinearMatMul u2,3 f=1 u=3 b3,4 f=1 b=0 f=9 u=3",
    "QuantizeLinear f2,3 f=1 u=1",
    "QuantizeLinear f2,6 f2,2=1 b2,2 : axis=1 block_size=3",
    "RandomNormal : shape=2,3",
    "RandomUniform : shape=2,3",
    "Range l=0 l=5 l=2",
    "ReduceSum f2,3,4 l1=1 : keepdims=0",
    "ReduceMax f2,3,4 l2=0,-1",
    "ReduceMean@11 f2,3,4 : axes=1",
    "ReduceMean f2,3,4,5 l2=1,3",
    "ReduceMin f4,3,18 l1=0",
    "ReduceL2 h2,3,4 l2=0,-1 : keepdims=0",
    "ReduceProd i2,3,4 l1=1",
    "Reshape f2,6 l2=3,-1",
    "Resize f1,1,4,4 - f4=1,1,2,2 : mode=linear",
    "Resize f1,1,4,4 - - l4=1,1,3,5 : mode=cubic",
    "Resize@10 f1,1,4,4 f4=1,1,2,2",
    "ReverseSequence f4,2 l2=3,4",
    "RMSNormalization@23 f2,3 f3",
    "RNN/2 f3,2,4 f1,3,4 f1,3,3 : hidden_size=3",
    "RoiAlign f1,2,6,6 f1,4=0,0,3,3 l1=0 : output_height=2 output_width=2",
    "RotaryEmbedding@23 f1,2,3,4 f5,2 f5,2 l1,3=0,1,2",
    "Scatter@10 f3,3 l1,2=0,2 f1,2 : axis=0",
    "ScatterElements f3,3 l1,2=0,2 f1,2 : axis=0 reduction=add",
    "ScatterND f4 l2,1=1,3 f2",
    "SequenceAt *f2,3 l=1",
    "SequenceConstruct f2,3 f2,3",
    "SequenceErase *f2,3 !l=0",
    "SequenceInsert *f2,3 f2,3 !l=1",
    "SequenceLength *f2,3",
    "Shape f2,3 : start=0 end=1",
    "SimplifiedLayerNormalization f2,3 f3",
    "Slice f4,5 l2=0,1 l2=3,5 l2=0,1 l2=1,2",
    "Slice@9 f4,5 : starts=0 ends=2 axes=1",
    "Softmax f4,7,3 : axis=1",
    "Softmax f9,5 : axis=-1",
    "Softmax@11 h2,3,4 : axis=1",
    "SoftmaxCrossEntropyLoss/2 f2,3 l2=0,2 f3=1",
    "SpaceToDepth f1,2,4,4 : blocksize=2",
    "Split/2 f2,6 l2=2,4 : axis=1",
    "Split@11/2 f2,6 : axis=1 split=2,4",
    "SplitToSequence f4,3 !l2=1,3 : axis=0",
    "Squeeze f1,3 l1=0",
    "STFT f1,16,1 l=4 f8 l=8",
    "SwiGLU@28 f2,3 f2,3",
    "TensorScatter@24 f2,4,3 f2,2,3 l2=0,1",
    "Tile f2,3 l2=2,1",
    "TopK/2 f3,4 l1=2",
    "Transpose f2,3,4 : perm=2,0,1",
    "Trilu f3,4 l=1",
    "Unique/4 f6=2,1,1,3,2,1",
    "Unsqueeze f2,3 l1=1",
    "Upsample@9 f1,1,2,2 f4=1,1,2,2 : mode=nearest",
    "Upsample@7 f1,1,2,2 : scales=1,1,2,2",
    "Where o2,3 f2,3 f3",
    "Xor o2,3 o2,3",
    "ms:Attention f1,3,4 f4,12 f12 i1,3=1 : num_heads=2",
    "ms:BiasAdd f1,3,4 f4 f1,3,4",
    "ms:BiasGelu f2,4 f4",
    "ms:BiasSplitGelu f1,2,8 f8",
    "ms:CausalConvWithState/2 f1,3,5 f3,1,2 f3 f1,3,1 : activation=silu",
    "ms:ConvTransposeWithDynamicPads f1,2,4,4 f2,3,3,3 l4=1,1,1,1 : strides=2,2",
    "ms:DequantizeLinear u2,3 f=1 u=1",
    "ms:DynamicQuantizeLSTM/3 f3,2,4 b1,4,12 b1,3,12 f1,24 - - - - f1=1 b1=0 f1=1 b1=0 : "
    "hidden_size=3",
    "ms:DynamicQuantizeLSTM/2 f3,2,5 u2,5,16 u2,4,16 f2,32 i2=3,2 f2,2,4 f2,2,4 f2,12 f2,16=1 "
    "u2,16=128 f2,16=1 u2,16=120 : hidden_size=4 direction=bidirectional",
    "ms:DynamicQuantizeMatMul f2,3 b3,4 f=1 b=0 f4",
    "ms:EmbedLayerNormalization/2 i1,3 i1,3=1 f7,4 f5,4 f2,4 f4 f4 i1,3=1",
    "ms:FastGelu f2,4 f4",
    "ms:FusedConv f1,2,5,5 f3,2,3,3 f3 : activation=Relu kernel_shape=3,3 pads=1,1,1,1",
    "ms:FusedGemm f2,3 f3,4 f4 : activation=Relu",
    "ms:FusedMatMul f2,3 f4,3 : transB=1",
    "ms:GatherBlockQuantized u4,8 i2=0,2 f4,1=1 : bits=4 block_size=16 quantize_axis=1",
    "ms:GridSample f1,1,3,3 f1,2,2,2 : mode=bicubic",
    "ms:GroupNorm f1,3,3,4 f4 f4 : groups=2 activation=1",
    "ms:GroupQueryAttention/3 f1,1,32 f1,1,16 f1,1,16 f1,1,2,16 f1,1,2,16 i1=2 i=3 : num_heads=2 "
    "kv_num_heads=1",
    "ms:LinearAttention/2 f1,3,4 f1,3,4 f1,3,4 : q_num_heads=2 kv_num_heads=2 update_rule=linear",
    "ms:MatMulIntegerToFloat u2,3 b3,4 f=1 f=1 u=3 b=0 f4",
    "ms:MatMulNBits f2,16 !u4,1,8 !f4=1 : K=16 N=4 bits=4 block_size=16",
    "ms:MatMulNBits f3,40 !u5,3,16 !f15=1 !u15=9 - !f5 : "
    "K=40 N=5 bits=8 block_size=16 accuracy_level=4",
    "ms:MatMulNBits f3,40 !u5,3,8 !f15=1 !u10=9 : K=40 N=5 bits=4 block_size=16 accuracy_level=4",
    "ms:MatMulNBits f1,40 !u5,3,8 !f15=1 !f15=7 : K=40 N=5 bits=4 block_size=16",
    "ms:MatMulNBits f2,24 !u3,2,4 !f6=1 - !i24=1 : K=24 N=3 bits=2 block_size=16",
    "ms:MultiHeadAttention f1,3,4 f1,3,4 f1,3,4 f12 i1,3=1 : num_heads=2",
    "ms:NhwcConv f1,5,5,2 f3,2,2,2 f3",
    "ms:NhwcFusedConv f1,5,5,2 f3,2,2,2 f3 f1,4,4,3 : activation=Relu",
    "ms:NhwcMaxPool u1,6,5,3 : kernel_shape=2,2",
    "ms:Pad f2,3 l4=1,0,0,1 f=1",
    "ms:QAttention u1,3,4 b4,12 f12 f=1 f=1 i1,3=1 u=3 b=0 : num_heads=2",
    "ms:QEmbedLayerNormalization/2 i1,3 - u7,4 u5,4 - u4 u4 - f=1 f=1 - f=1 f=1 u=3 u=3 - u=3 u=3",
    "ms:QGemm u2,3 f=1 u=3 b3,4 f=1 b=0 i4 f=9 u=3",
    "ms:QLinearAdd u2,3 f=1 u=3 u2,3 f=1 u=3 f=2 u=3",
    "ms:QLinearAveragePool u1,2,6,6 f=1 u=3 f=1 u=3 : kernel_shape=2,2",
    "ms:QLinearConcat f=1 u=3 u2,3 f=1 u=3 u2,3 f=1 u=3 : axis=1",
    "ms:QLinearConv u1,2,5,5 f=1 u=3 b3,2,3,3 f3=1 b=0 f=9 u=3 i3",
    "ms:QLinearGlobalAveragePool u1,2,4,4 f=1 u=3 f=1 u=3",
    "ms:QLinearLeakyRelu u2,3 f=1 u=3 f=1 u=3",
    "ms:QLinearMul u2,3 f=1 u=3 u2,3 f=1 u=3 f=2 u=3",
    "ms:QLinearReduceMean u2,3 f=1 u=3 f=1 u=3 : axes=1",
    "ms:QLinearSigmoid u2,3 f=1 u=3 f=1 u=3",
    "ms:QLinearSoftmax u2,3 f=1 u=3 f=1 u=0 : axis=1 opset=13",
    "ms:QLinearWhere o2,3 u2,3 f=1 u=3 u2,3 f=1 u=3 f=1 u=3",
    "ms:QuantizeLinear f2,3 f=1 u=1",
    "ms:RotaryEmbedding f1,2,3,4 l1,3=0,1,2 f5,2 f5,2",
    "ms:SkipGroupNorm/2 f1,3,3,4 f4 f4 f1,4 f4 : groups=2 activation=1",
    "ms:SkipLayerNormalization f1,2,4 f1,2,4 f4 f4 f4",
    "ms:SkipSimplifiedLayerNormalization f1,2,4 f1,2,4 f4 f4",
    "ms:TransposeMatMul f2,3 f4,3 : transB=1",
    "ms:Trilu f3,4 l=1 : upper=0",
};
#define LINES (sizeof(lines) / sizeof(lines[0]))

/* Reads numbers between commas; returns what follows them. */
static const char *read_numbers(const char *s, int64_t *v, int32_t *count) {
    char *end;
    for (*count = 0; *count < NODE_LIST && (*s == '-' || (*s >= '0' && *s <= '9')); s = end) {
        v[(*count)++] = strtoll(s, &end, 10);
        end += *end == ',';
    }
    return s;
}

static int32_t type_of(char letter) {
    static const char letters[] = "fdheuwbsilovqc";
    static const int32_t types[] = {
        QSIM_FLOAT, QSIM_DOUBLE, QSIM_FLOAT16, QSIM_BFLOAT16, QSIM_UINT8,  QSIM_UINT16, QSIM_INT8,
        QSIM_INT16, QSIM_INT32,  QSIM_INT64,   QSIM_BOOL,     QSIM_UINT32, QSIM_UINT64, QSIM_INT4};
    const char *at = strchr(letters, letter);
    return at && letter ? types[at - letters] : QSIM_UNDEFINED;
}

static const char *read_input(const char *s, node_input *in) {
    *in = (node_input){.given = *s != '-', .sequence = *s == '*', .constant = *s == '!', .unit = 1};
    if (!in->given)
        return s + 1;
    s += in->sequence || in->constant;
    in->dtype = type_of(*s++);
    s = read_numbers(s, in->dims, &in->rank);
    return *s == '=' ? read_numbers(s + 1, in->values, &in->value_count) : s;
}

static const char *read_attr(const char *s, const node_form *f, node_attr *a) {
    const size_t name = strcspn(s, "=");
    *a = (node_attr){.type = QSIM_ATTR_INT};
    for (int32_t i = 0; i < f->op->attr_count; i++) {
        const qs_attr_rule *r = &f->op->attrs[i];
        if (strlen(r->name) == name && strncmp(r->name, s, name) == 0 &&
            (f->op->domain || !r->until || f->opset <= r->until)) {
            a->name = r->name;
            a->type = r->type ? r->type : QSIM_ATTR_INT;
        }
    }
    if (!a->name)
        abort();
    s += name + 1;
    const size_t length = strcspn(s, " ");
    snprintf(a->text, sizeof(a->text), "%.*s", (int)length, s);
    read_numbers(s, a->ints, &a->count);
    a->real = (double)a->ints[0];
    return s + length;
}

/* The row of a line, and what its name is followed by. */
static const char *read_name(const char *s, node_form *f) {
    char name[64];
    bool known;
    const bool ms = strncmp(s, "ms:", 3) == 0;
    s += ms ? 3 : 0;
    const size_t length = strcspn(s, " @/");
    snprintf(name, sizeof(name), "%.*s", (int)length, s);
    s += length;
    f->opset = *s == '@' ? strtoll(s + 1, (char **)(uintptr_t)&s, 10) : 21;
    while (!(f->op = qs_op_find(ms ? "com.microsoft" : "", name, ms ? 1 : f->opset, &known)) &&
           f->opset < qs_op_newest_opset())
        f->opset++;
    if (!f->op)
        abort();
    f->outputs = f->op->min_out ? f->op->min_out : 1;
    if (*s == '/')
        f->outputs = (int32_t)strtol(s + 1, (char **)(uintptr_t)&s, 10);
    return s;
}

static void read_line(const char *s, node_form *f) {
    *f = (node_form){0};
    for (s = read_name(s, f); *s == ' ' && s[1] != ':';)
        s = read_input(s + 1, &f->in[f->input_count++]);
    s += *s ? 2 : 0;
    while (*s == ' ')
        s = read_attr(s + 1, f, &f->attrs[f->attr_count++]);
    if (*s)
        abort();
}

static bool has_line(const qs_op *op) {
    node_form f;
    for (size_t i = 0; i < LINES; i++) {
        read_name(lines[i], &f);
        if (f.op == op)
            return true;
    }
    return false;
}

/* Rows of operators that a model may have, those with subgraphs aside: they are around others. */
static bool is_plain(const qs_op *op) {
    for (int32_t i = 0; i < op->attr_count; i++)
        if (op->attrs[i].type == QSIM_ATTR_GRAPH)
            return false;
    return op->domain != QS_DOMAIN_QSIM;
}

bool node_seed(size_t index, node_form *f) {
    static const qs_op *others[256];
    static size_t count;
    const size_t rows = count == 0 ? qs_op_count() : 0;
    for (size_t i = 0; i < rows; i++)
        if (is_plain(qs_op_at(i)) && !has_line(qs_op_at(i)))
            others[count++] = qs_op_at(i);
    if (index < LINES) {
        read_line(lines[index], f);
        f->is_line = true;
        return true;
    }
    if (index - LINES >= count)
        return false;
    const qs_op *op = others[index - LINES];
    *f = (node_form){.op = op, .opset = 21, .input_count = op->min_in};
    if (!op->domain && op->since > f->opset)
        f->opset = op->since;
    if (!op->domain && op->until && op->until < f->opset)
        f->opset = op->until;
    f->outputs = op->min_out ? op->min_out : 1;
    for (int32_t i = 0; i < op->min_in; i++)
        f->in[i] = (node_input){
            .given = true, .dtype = QSIM_FLOAT, .rank = 3, .dims = {2, 3, 4}, .unit = 1};
    return true;
}
