// SPDX-License-Identifier: MIT
// Cases of com.microsoft. Each: draw => what draw.js calls a case. Keys that begin with ms_ stand beside an operator of ai.onnx.
'use strict';

const families = {};
const add = (name, make) => { families[name in PLAIN ? `ms_${name}` : name] = (g) => ({op: name, domain: 'com.microsoft', opset: g.pick([13, 17, 21]), ...make(g)}); };
const PLAIN = {Attention: 1, RotaryEmbedding: 1, Gelu: 1, QLinearConv: 1, QuantizeLinear: 1, DequantizeLinear: 1, CausalConvWithState: 1, GridSample: 1, LinearAttention: 1, Pad: 1, Trilu: 1};
const scale = (g, dims = []) => g.fill('float', dims, () => Math.fround(0.01 + g.next() * 0.1));
const zero = (g, t, d = []) => g.ints(t, d, t === 'int8' ? -20 : 100, t === 'int8' ? 20 : 140);
const eight = (g) => g.pick(['uint8', 'int8']);
const f = (g, dims, size = 1.5) => g.tensor('float', dims, size);

add('BiasGelu', (g) => { const d = g.dims(g.int(1, 3)); return {inputs: [f(g, d), f(g, d.slice(-1))]}; });
add('FastGelu', (g) => { const d = g.dims(g.int(1, 3)); return {within: 1e-3, inputs: [f(g, d), ...(g.chance(50) ? [f(g, d.slice(-1))] : [])]}; });
add('Gelu', (g) => ({inputs: [f(g, g.dims(3))]}));
add('QuickGelu', (g) => ({attrs: g.chance(60) ? {alpha: {f: 1.3}} : {}, inputs: [f(g, g.dims(3))]}));
for (const name of ['FusedMatMul', 'TransposeMatMul']) add(name, (g) => {
  const k = g.size(), m = g.size(), n = g.size(), batch = g.dims(g.int(0, 2)), transA = g.int(0, 1), transB = g.int(0, 1), attrs = {transA, transB};
  if (g.chance(40)) attrs.alpha = {f: 0.5};
  const turn = (dims, t, batched) => { const [x, y] = dims.slice(-2), lead = dims.slice(0, -2), last = t ? [y, x] : [x, y]; return batched ? [last[0], ...lead, last[1]] : [...lead, ...last]; };
  const batchedA = batch.length && g.chance(40) ? 1 : 0, batchedB = batch.length && g.chance(40) ? 1 : 0;
  if (batchedA) attrs.transBatchA = 1;
  if (batchedB) attrs.transBatchB = 1;
  return {attrs, inputs: [f(g, turn([...batch, m, k], transA, batchedA)), f(g, turn([...batch, k, n], transB, batchedB))]};
});
add('Inverse', (g) => { // diagonals are large, so that no matrix is near to one without an inverse
  const n = g.int(1, 5), t = g.tensor('float', [...g.dims(g.int(0, 2)), n, n]);
  for (let i = 0; i < t.data.length; i++) if (i % (n * n) % (n + 1) === 0) t.data[i] += 8 * Math.sign(t.data[i] || 1);
  return {within: 1e-3, inputs: [t]};
});
add('FusedGemm', (g) => {
  const [m, k, n] = g.dims(3), activation = g.pick(['Relu', 'Sigmoid', 'Tanh', 'LeakyRelu', 'HardSigmoid', 'Elu', 'Softplus', 'Softsign', 'ThresholdedRelu']), attrs = {activation};
  if (/LeakyRelu|HardSigmoid|Elu|Thresh/.test(activation) && g.chance(50)) attrs.activation_alpha = {f: 0.3};
  if (activation === 'HardSigmoid' && attrs.activation_alpha) attrs.activation_beta = {f: 0.4};
  return {attrs, inputs: [f(g, [m, k]), f(g, [k, n]), ...(g.chance(60) ? [f(g, [n])] : [])]};
});
add('FusedConv', (g) => {
  const c = g.int(1, 4), out = g.int(1, 4), [h, w] = [g.int(3, 7), g.int(3, 7)], activation = g.pick(['Relu', 'Sigmoid', 'Tanh', 'LeakyRelu', 'Clip', 'HardSigmoid']), attrs = {activation, kernel_shape: [3, 3], pads: [1, 1, 1, 1]};
  if (activation === 'LeakyRelu') attrs.activation_params = {floats: [0.2]};
  if (activation === 'Clip') attrs.activation_params = {floats: [-1, 2]};
  if (activation === 'HardSigmoid') attrs.activation_params = {floats: [0.3, 0.4]};
  const last = g.pick([[], [f(g, [out])], [f(g, [out]), f(g, [2, out, h, w])]]);
  return {attrs, constants: 50, inputs: [f(g, [2, c, h, w]), f(g, [out, c, 3, 3]), ...last]};
});
add('DynamicQuantizeMatMul', (g) => {
  const k = g.size(), n = g.size(), t = eight(g), per = g.chance(50) ? [n] : [];
  return {within: 1e-3, constants: 60, inputs: [f(g, [...g.dims(g.int(1, 2)), k]), g.tensor(t, [k, n]), scale(g, per), ...(g.chance(60) ? [zero(g, t, per), ...(g.chance(50) ? [f(g, [n])] : [])] : [])]};
});
add('MatMulIntegerToFloat', (g) => {
  const k = g.size(), n = g.size(), ta = eight(g), t = eight(g), per = g.chance(50) ? [n] : [];
  return {constants: 60, inputs: [g.tensor(ta, [...g.dims(g.int(1, 2)), k]), g.tensor(t, [k, n]), scale(g), scale(g, per), ...(g.chance(60) ? [zero(g, ta), zero(g, t, per), ...(g.chance(50) ? [f(g, [n])] : [])] : [])]};
});
add('QGemm', (g) => {
  const [m, k, n] = g.dims(3), ta = eight(g), t = ta === 'int8' ? 'int8' : eight(g), per = g.chance(50) ? [n] : [], transA = g.int(0, 1), transB = g.int(0, 1);
  const c = g.chance(50) ? g.ints('int32', [n], -500, 500) : null;
  return {steps: 1, constants: 70, attrs: {transA, transB}, inputs: [g.tensor(ta, transA ? [k, m] : [m, k]), scale(g), zero(g, ta), g.tensor(t, transB ? [n, k] : [k, n]), scale(g, per), zero(g, t, per),
                                                                      ...(g.chance(60) ? [c, g.scalar('float', 0.3), zero(g, ta)] : c ? [c] : [])]};
});
for (const name of ['QLinearAdd', 'QLinearMul'])
  add(name, (g) => {
    const d = g.dims(g.int(1, 4)), t = eight(g), both = g.shuffle([d, g.narrower(d)]);
    return {steps: 1, constants: 40, inputs: [g.tensor(t, both[0]), scale(g), zero(g, t), g.tensor(t, both[1]), scale(g), zero(g, t), g.scalar('float', 0.08), zero(g, t)]};
  });
for (const name of ['QLinearSigmoid', 'QLinearLeakyRelu'])
  add(name, (g) => { const t = eight(g); return {steps: 1, constants: 70, fixed: [1, 2, 3, 4], attrs: name === 'QLinearLeakyRelu' ? {alpha: {f: 0.2}} : {}, inputs: [g.tensor(t, g.dims(3)), scale(g), zero(g, t), scale(g), zero(g, t)]}; });
add('QLinearSoftmax', (g) => { const t = eight(g), rank = g.int(1, 4); return {steps: 1, fixed: [1, 2, 3, 4], attrs: {axis: g.axis(rank), opset: g.pick([12, 13])}, inputs: [g.tensor(t, g.dims(rank)), scale(g), zero(g, t), g.scalar('float', 1 / 256), g.scalar(t, t === 'int8' ? -128 : 0)]}; });
add('QLinearConcat', (g) => {
  const t = eight(g), rank = g.int(1, 4), axis = g.axis(rank), d = g.dims(rank), n = g.int(1, 4), inputs = [scale(g), zero(g, t)];
  for (let i = 0; i < n; i++) inputs.push(g.tensor(t, d.map((s, k) => (k === (axis + rank) % rank ? g.size() : s))), scale(g), zero(g, t));
  return {steps: 1, fixed: [...inputs.keys()].filter((i) => (i < 2 || (i - 2) % 3)), attrs: {axis}, inputs};
});
add('QLinearGlobalAveragePool', (g) => { const t = eight(g); return {steps: 1, fixed: [1, 2, 3, 4], attrs: {channels_last: g.int(0, 1)}, inputs: [g.tensor(t, g.dims(4)), scale(g), zero(g, t), scale(g), zero(g, t)]}; });
add('QLinearAveragePool', (g) => {
  const t = eight(g), k = [g.int(1, 3), g.int(1, 3)], attrs = {kernel_shape: k, strides: [g.int(1, 2), g.int(1, 2)], count_include_pad: g.int(0, 1), ceil_mode: g.int(0, 1)}, last = g.chance(30);
  if (g.chance(50)) attrs.pads = [...k, ...k].map((d) => g.int(0, d - 1));
  if (last) attrs.channels_last = 1;
  return {steps: 1, fixed: [1, 2, 3, 4], attrs, inputs: [g.tensor(t, last ? [2, 7, 6, 3] : [2, 3, 7, 6]), scale(g), zero(g, t), scale(g), zero(g, t)]};
});
add('QLinearReduceMean', (g) => { const t = eight(g), rank = g.int(1, 4), d = g.dims(rank); return {steps: 1, fixed: [1, 2, 3, 4], attrs: {axes: g.some([...d.keys()], 1), keepdims: g.int(0, 1)}, inputs: [g.tensor(t, d), scale(g), zero(g, t), scale(g), zero(g, t)]}; });
add('QLinearWhere', (g) => { const t = eight(g), d = g.dims(g.int(1, 3)); return {steps: 1, fixed: [2, 3, 5, 6, 7, 8], inputs: [g.tensor('bool', d), g.tensor(t, g.narrower(d)), scale(g), zero(g, t), g.tensor(t, d), scale(g), zero(g, t), scale(g), zero(g, t)]}; });
add('NhwcMaxPool', (g) => { const k = [g.int(1, 3), g.int(1, 3)]; return {attrs: {kernel_shape: k, strides: [g.int(1, 2), g.int(1, 2)], ceil_mode: g.int(0, 1), ...(g.chance(50) ? {pads: [...k, ...k].map((d) => g.int(0, d - 1))} : {})}, inputs: [g.tensor(eight(g), [2, 6, 5, 3])]}; });
for (const name of ['QuantizeLinear', 'DequantizeLinear'])
  add(name, (g) => {
    const rank = g.int(1, 4), d = g.dims(rank), axis = g.int(0, rank - 1), t = g.pick(['uint8', 'int8', 'uint16', 'int16']), per = g.chance(50) ? [d[axis]] : [];
    return {attrs: {axis}, inputs: [name === 'QuantizeLinear' ? f(g, d, 9) : g.tensor(t, d), scale(g, per), zero(g, t, per)]};
  });

// ---- transformers ----

for (const name of ['SkipLayerNormalization', 'SkipSimplifiedLayerNormalization'])
  add(name, (g) => {
    const d = g.dims(g.int(2, 3)), last = d.slice(-1), simple = name !== 'SkipLayerNormalization';
    const skip = d.length === 3 && g.chance(40) ? g.pick([d.slice(1), [1, ...d.slice(1)]]) : d;
    const more = g.chance(50) ? [f(g, last)] : [], outputs = g.chance(50) ? 4 : 1;
    return {within: 1e-3, outputs, left: outputs === 4 ? [1, 2] : [], attrs: {epsilon: {f: 0.01}}, inputs: [f(g, d), f(g, skip), f(g, last), ...(simple ? more : g.chance(60) ? [f(g, last), ...more] : [])]};
  });
families.SimplifiedLayerNormalization = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank);
  return {op: 'SimplifiedLayerNormalization', opset: g.pick([13, 17, 21]), within: 1e-3, attrs: {axis, epsilon: {f: 0.01}}, inputs: [f(g, dims), f(g, dims.slice((axis + rank) % rank))]};
};
add('EmbedLayerNormalization', (g) => {
  const b = g.int(1, 2), s = g.int(1, 4), h = g.int(2, 6), segments = g.chance(60), inputs = [g.ints('int32', [b, s], 0, 6), segments ? g.ints('int32', [b, s], 0, 1) : null, f(g, [7, h]), f(g, [5, h]), segments ? f(g, [2, h]) : null, f(g, [h]), f(g, [h])];
  if (g.chance(60)) inputs.push(g.ints('int32', [b, s], 0, 1));
  else inputs.push(null);
  if (g.chance(40)) inputs.push(g.ints('int32', g.pick([[1, s], [b, s]]), 0, 4));
  const outputs = g.pick([2, 3]);
  return {within: 1e-3, fixed: [2, 3, 4, 5, 6], outputs, attrs: {epsilon: {f: 0.01}}, inputs: inputs[inputs.length - 1] ? inputs : inputs.slice(0, -1)};
});
add('Attention', (g) => {
  const b = g.int(1, 2), s = g.int(1, 4), heads = g.int(1, 3), d = g.int(1, 4), h = heads * d, w = g.int(1, 6), attrs = {num_heads: heads}, inputs = [f(g, [b, s, w]), f(g, [w, 3 * h], 0.6), f(g, [3 * h])];
  const past = g.chance(30) ? g.int(1, 3) : 0;
  if (g.chance(40)) attrs.unidirectional = 1;
  if (g.chance(30)) attrs.scale = {f: 0.4};
  const mask = g.chance(50) ? g.pick([g.ints('int32', [b, s + past], -1, 2), g.ints('int32', [b], 1, s + past), g.ints('int32', [b, s, s + past], -1, 2)]) : null;
  if (mask && mask.dims.length > 1) for (let i = 0; i < mask.data.length; i += mask.dims[mask.dims.length - 1]) mask.data[i] = 1;
  if (mask || past) inputs.push(mask);
  if (past) inputs.push(f(g, [2, b, heads, past, d]));
  if (g.chance(30)) {
    while (inputs.length < 5) inputs.push(null);
    inputs.push(f(g, [g.pick([1, b]), heads, s, s + past]));
  }
  return {last: true, within: 1e-3, attrs, outputs: past ? 2 : 1, inputs};
});
add('MatMulBnb4', (g) => {
  const K = g.int(1, 40), N = g.int(1, 9), block = g.pick([16, 32, 64]);
  return {within: 1e-4, fixed: [1, 2], attrs: {K, N, block_size: block, quant_type: g.int(0, 1)}, inputs: [f(g, [...g.dims(g.int(1, 2)), K]), g.ints('uint8', [Math.ceil(K * N / 2)], 0, 255), scale(g, [Math.ceil(K * N / block)])]};
});
add('QAttention', (g) => {
  const b = g.int(1, 2), s = g.int(1, 4), heads = g.int(1, 3), d = g.int(1, 4), h = heads * d, w = g.int(1, 6), per = g.chance(50) ? [3 * h] : [], past = g.chance(30) ? g.int(1, 3) : 0;
  const tw = eight(g), attrs = {num_heads: heads, ...(g.chance(40) ? {unidirectional: 1} : {})};
  const mask = g.chance(50) ? g.pick([g.ints('int32', [b, s + past], -1, 2), g.ints('int32', [b], 1, s + past)]) : null;
  if (mask && mask.dims.length > 1) for (let i = 0; i < mask.data.length; i += mask.dims[mask.dims.length - 1]) mask.data[i] = 1;
  const inputs = [g.tensor('uint8', [b, s, w]), g.tensor(tw, [w, 3 * h]), f(g, [3 * h]), scale(g), scale(g, per), mask, zero(g, 'uint8'), zero(g, tw, per)];
  if (past) inputs.push(f(g, [2, b, heads, past, d]));
  return {last: true, within: 1e-3, fixed: [1, 2, 4, 7], attrs, outputs: past ? 2 : 1, inputs};
});
add('MultiHeadAttention', (g) => {
  const b = g.int(1, 2), s = g.int(1, 4), t = g.chance(50) ? s : g.int(1, 5), heads = g.int(1, 3), d = g.int(1, 4), h = heads * d, attrs = {num_heads: heads};
  const bias = g.chance(40) ? f(g, [3 * h]) : null, past = g.chance(30) ? g.int(1, 3) : 0, total = t + past;
  const mask = !past && g.chance(40) ? g.ints('int32', [b, total], -1, 2) : null, add4 = g.chance(40) ? f(g, [g.pick([1, b]), g.pick([1, heads]), s, total]) : null;
  if (mask) for (let i = 0; i < mask.data.length; i += total) mask.data[i] = 1;
  if (g.chance(30)) attrs.scale = {f: 0.4};
  if (g.chance(30)) attrs.unidirectional = 1;
  const inputs = [f(g, [b, s, h]), f(g, [b, t, h]), f(g, [b, t, h]), bias, mask, add4, ...(past ? [f(g, [b, heads, past, d]), f(g, [b, heads, past, d])] : [])];
  while (!inputs[inputs.length - 1]) inputs.pop();
  return {last: true, within: 1e-3, attrs, outputs: past ? 3 : 1, inputs};
});
add('GroupQueryAttention', (g) => {
  const b = g.int(1, 2), kv = g.int(1, 2), q = kv * g.int(1, 3), d = 16, s = g.int(1, 4), decode = g.chance(40), n = decode ? 1 : s, past = decode ? g.int(1, 4) : 0, total = n + past, rotary = g.chance(50);
  const attrs = {num_heads: q, kv_num_heads: kv};
  if (rotary) Object.assign(attrs, {do_rotary: 1, rotary_interleaved: g.int(0, 1)});
  if (g.chance(30)) attrs.scale = {f: 0.3};
  if (g.chance(30)) attrs.softcap = {f: 2};
  if (g.chance(30)) attrs.local_window_size = g.int(1, 3);
  if (g.chance(20)) attrs.smooth_softmax = 1;
  const packed = g.chance(50), inputs = packed ? [f(g, [b, n, (q + 2 * kv) * d]), null, null] : [f(g, [b, n, q * d]), f(g, [b, n, kv * d]), f(g, [b, n, kv * d])];
  inputs.push(f(g, [b, kv, past, d]), f(g, [b, kv, past, d]), g.fill('int32', [b], () => total - 1), g.scalar('int32', total));
  if (rotary) inputs.push(f(g, [12, d / 2], 1), f(g, [12, d / 2], 1));
  return {within: 1e-3, attrs, outputs: 3, inputs};
});
add('RotaryEmbedding', (g) => {
  const b = g.int(1, 2), heads = g.int(1, 3), s = g.int(1, 4), half = g.int(1, 4), flat = g.chance(50), attrs = g.chance(50) ? {interleaved: g.int(0, 1)} : {}, size = 2 * half;
  return {attrs, inputs: [f(g, flat ? [b, s, heads * size] : [b, heads, s, size]), g.chance(50) ? g.ints('int64', [b, s], 0, 8) : g.list([g.int(0, 4)]), f(g, [9, half], 1), f(g, [9, half], 1)]};
});
add('MatMulNBits', (g) => {
  const bits = g.pick([4, 4, 8, 2]), block = g.pick([16, 32, 64]), k = g.pick([block, 2 * block, block + 9, 40, 3 * block]), n = g.int(1, g.chance(30) ? 70 : 9), blocks = Math.ceil(k / block), attrs = {K: k, N: n, bits, block_size: block};
  if (g.chance(60)) attrs.accuracy_level = g.pick([0, 1, 4]);
  const rows = g.fill('float', [...g.dims(g.int(0, 2)), g.size(), k], () => g.next() * 3 - 1.5); // level 4: no ties of rounding
  const inputs = [rows, g.tensor('uint8', [n, blocks, block * bits / 8]), g.fill('float', [n, blocks], () => (g.next() - 0.5) * 0.2)];
  const zeros = g.chance(50) ? g.tensor('uint8', [n, Math.ceil(blocks * bits / 8)]) : null, bias = g.chance(30) ? f(g, [n]) : null;
  if (zeros || bias) inputs.push(zeros);
  if (bias) inputs.push(null, bias);
  return {within: 1e-3, fixed: [1, 2, 3, 5], attrs, inputs};
});
add('GatherBlockQuantized', (g) => {
  const block = g.pick([16, 32]), rows = g.int(1, 6), width = block * g.int(1, 2), four = g.chance(60), blocks = width / block, kind = g.pick(['int4', 'uint4']), attrs = {block_size: block, gather_axis: 0, quantize_axis: 1};
  if (!four) attrs.bits = g.pick([4, 8]);
  const data = four ? g.packed(kind, [rows, width]) : g.tensor('uint8', [rows, width * attrs.bits / 8]);
  const zeros = g.chance(50) ? (four ? g.packed(kind, [rows, blocks]) : g.tensor('uint8', [rows, Math.ceil(blocks * attrs.bits / 8)])) : null;
  return {fixed: [0, 2, 3], opset: 21, attrs, inputs: [data, g.ints(g.pick(['int32', 'int64']), g.dims(g.int(1, 2)), 0, rows - 1), scale(g, [rows, blocks]), ...(zeros ? [zeros] : [])]};
});
add('BiasSplitGelu', (g) => { const d = [g.int(1, 2), g.int(1, 3), 2 * g.int(1, 4)]; return {inputs: [f(g, d), f(g, d.slice(-1))]}; });
add('QLinearConv', (g) => {
  const c = g.int(1, 3), out = g.int(1, 3), t = eight(g);
  return {steps: 1, fixed: [1, 2, 3, 4, 5, 6, 7], attrs: {channels_last: 1, kernel_shape: [3, 3]}, inputs: [g.tensor(t, [2, 6, 5, c]), scale(g), zero(g, t), g.tensor('int8', [out, c, 3, 3]), scale(g, [out]), g.fill('int8', [out], () => 0), g.scalar('float', 0.9), zero(g, t)]};
});
add('DynamicQuantizeLSTM', (g) => {
  const hidden = g.int(1, 5), direction = g.pick(['forward', 'reverse', 'bidirectional']), d = direction === 'bidirectional' ? 2 : 1, [time, batch, input] = [g.int(1, 4), g.int(1, 3), g.int(1, 5)], tw = eight(g);
  const per = g.chance(40) ? [d, 4 * hidden] : [d], attrs = {hidden_size: hidden, direction};
  if (g.chance(20)) attrs.clip = {f: 0.7};
  const state = () => (g.chance(50) ? f(g, [d, batch, hidden], 0.8) : null), zeros = () => (tw === 'int8' ? g.fill('int8', per, () => 0) : g.fill('uint8', per, () => 128));
  return {within: 4e-2, outputs: 3, fixed: [1, 2, 3, 8, 9, 10, 11], attrs, inputs: [f(g, [time, batch, input]), g.tensor(tw, [d, input, 4 * hidden]), g.tensor(tw, [d, hidden, 4 * hidden]), g.chance(70) ? f(g, [d, 8 * hidden], 0.5) : null,
                                                                                          g.chance(40) ? g.ints('int32', [batch], 1, time) : null, state(), state(), g.chance(30) ? f(g, [d, 3 * hidden], 0.5) : null, scale(g, per), zeros(), scale(g, per), zeros()]};
});
add('ConvTransposeWithDynamicPads', (g) => {
  const c = g.int(1, 3), out = g.int(1, 3), k = [g.int(2, 4), g.int(2, 4)], pads = g.list([...k, ...k].map((s) => g.int(0, s - 1)));
  return {constants: 50, attrs: {kernel_shape: k, strides: [g.int(1, 2), g.int(1, 2)]}, inputs: [f(g, [g.int(1, 2), c, g.int(3, 6), g.int(3, 6)]), f(g, [c, out, ...k]), pads, ...(g.chance(50) ? [f(g, [out])] : [])]};
});

// ---- operators that ai.onnx has, too ----

add('Trilu', (g) => ({attrs: g.chance(70) ? {upper: g.int(0, 1)} : {}, inputs: [g.tensor(g.pick(['float', 'double', 'int64']), g.dims(g.int(2, 4))), ...(g.chance(60) ? [g.scalar('int64', g.int(-3, 3))] : [])]}));
add('GridSample', (g) => {
  const n = g.int(1, 2), attrs = {mode: g.pick(['bilinear', 'nearest', 'bicubic']), padding_mode: g.pick(['zeros', 'border', 'reflection']), align_corners: g.int(0, 1)};
  return {within: 1e-3, attrs: g.chance(20) ? {} : attrs, inputs: [f(g, [n, g.int(1, 3), g.int(1, 6), g.int(1, 6)]), g.fill('float', [n, g.int(1, 5), g.int(1, 5), 2], () => (g.next() - 0.5) * 2.6)]};
});
add('Pad', (g) => {
  const rank = g.int(1, 4), d = g.dims(rank), mode = g.pick(['constant', 'edge', 'reflect']), most = (k) => (mode === 'reflect' ? d[k] - 1 : 3), t = g.pick(['float', 'double']);
  return {attrs: {mode}, inputs: [g.tensor(t, d), g.list([...d, ...d].map((_, i) => g.int(0, most(i % rank)))), ...(g.chance(40) ? [g.scalar(t, 1.5)] : [])]};
});
add('CausalConvWithState', (g) => {
  const n = g.int(1, 2), c = g.int(1, 4), k = g.int(1, 4), inputs = [f(g, [n, c, g.int(1, 5)]), f(g, [c, 1, k]), g.chance(50) ? f(g, [c]) : null, g.chance(50) ? f(g, [n, c, k - 1]) : null];
  while (!inputs[inputs.length - 1]) inputs.pop();
  return {last: true, outputs: 2, attrs: g.chance(50) ? {activation: g.pick(['silu', 'swish', 'none'])} : {}, inputs};
});
add('LinearAttention', (g) => {
  const rule = g.pick(['linear', 'gated', 'delta', 'gated_delta']), kv = g.int(1, 2), q = kv * g.int(1, 2), b = g.int(1, 2), t = g.int(1, 4), k = g.int(1, 4), v = g.int(1, 4), attrs = {update_rule: rule, q_num_heads: q, kv_num_heads: kv};
  if (g.chance(40)) attrs.scale = {f: 0.4};
  const inputs = [f(g, [b, t, q * k], 1), f(g, [b, t, kv * k], 0.5), f(g, [b, t, kv * v], 1), g.chance(50) ? f(g, [b, kv, k, v], 1) : null,
                  /gated/.test(rule) ? g.fill('float', [b, t, g.pick([kv, kv * k])], () => -g.next()) : null, /delta/.test(rule) ? g.fill('float', [b, t, g.pick([kv, 1])], () => g.next()) : null];
  while (!inputs[inputs.length - 1]) inputs.pop();
  return {last: true, within: 1e-3, outputs: 2, attrs, inputs};
});
add('QEmbedLayerNormalization', (g) => {
  const b = g.int(1, 2), s = g.int(1, 4), h = g.int(2, 6), segments = g.chance(60), t = eight(g), table = (dims) => g.tensor(t, dims), or = (v) => (segments ? v() : null);
  const inputs = [g.ints('int32', [b, s], 0, 6), or(() => g.ints('int32', [b, s], 0, 1)), table([7, h]), table([5, h]), or(() => table([2, h])), table([h]), table([h]), g.chance(60) ? g.ints('int32', [b, s], 0, 1) : null];
  for (let i = 0; i < 5; i++) inputs.push(i === 2 ? or(() => scale(g)) : scale(g));
  for (let i = 0; i < 5; i++) inputs.push(i === 2 ? or(() => zero(g, t)) : zero(g, t));
  return {within: 1e-3, fixed: [...inputs.keys()].slice(2).filter((i) => i !== 7), outputs: 2, attrs: {epsilon: {f: 0.01}}, inputs};
});

module.exports = families;
