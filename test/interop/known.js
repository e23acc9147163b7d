// SPDX-License-Identifier: MIT
// Known disagreements. Each: when it holds, why, and what the specification's text says instead, which must be what
// qsim computes: as another node that ONNX Runtime reads in that way, or as numbers of our own.
'use strict';
const {product} = require('./draw.js');
const lstm = require('./lstm.js');

const fill = (type, dims, data) => ({type, dims, data});
const nested = (t) => {
  const cut = (at, dims, size) => (dims.length ? Array.from({length: dims[0]}, (_, i) => cut(at + i * size / dims[0], dims.slice(1), size / dims[0])) : Number(t.data[at]));
  return cut(0, t.dims, product(t.dims));
};
// Axes in another order.
function moved(t, order) {
  const dims = order.map((a) => t.dims[a]), step = (a) => product(t.dims.slice(a + 1)), data = new Float32Array(t.data.length);
  data.forEach((_, i) => { data[i] = t.data[order.reduce((at, a, k) => at + Math.floor(i / product(dims.slice(k + 1))) % dims[k] * step(a), 0)]; });
  return fill(t.type, dims, data);
}
const turned = (rows) => rows[0].map((_, j) => rows.map((r) => r[j]));
const flat = (t) => (t ? t.data : null);

// Attributes with explicit pads in place of SAME: totals along each axis may be below 0, where they become output_padding.
function padded(c, total) {
  const {auto_pad: how, ...attrs} = c.attrs, totals = spatial(c).map((_, i) => total(i));
  const less = totals.map((n) => (how === 'SAME_UPPER' ? Math.floor(n / 2) : Math.ceil(n / 2))).map((n) => Math.max(0, n));
  attrs.pads = [...less, ...totals.map((n, i) => Math.max(0, n) - less[i])];
  if (totals.some((n) => n < 0)) attrs.output_padding = totals.map((n, i) => ((attrs.output_padding || [])[i] || 0) + Math.max(0, -n));
  return {...c, attrs};
}
const spatial = (c) => c.attrs.kernel_shape || c.inputs[1].dims.slice(2);
const extent = (c, i) => (spatial(c)[i] - 1) * ((c.attrs.dilations || [])[i] || 1) + 1;
const stride = (c, i) => (c.attrs.strides || [])[i] || 1;

// A dynamically quantized tensor as the numbers that it stands for: ONNX's text of DynamicQuantizeLinear.
function rounded(t) {
  const low = Math.min(0, ...t.data), high = Math.max(0, ...t.data), step = Math.fround((high - low) / 255) || 1;
  const even = (v) => (Math.abs(v % 1) === 0.5 ? 2 * Math.round(v / 2) : Math.round(v)), zero = Math.max(0, Math.min(255, even(-low / step)));
  return fill('float', t.dims, Array.from(t.data, (v) => (Math.max(0, Math.min(255, even(v / step) + zero)) - zero) * step));
}

// [D][4H][I] of what is stored as [D, I, 4H] in bytes, with a step and a zero point for each direction or column
function widened(t, step, zero) {
  return nested(t).map((rows, d) => turned(rows.map((row) => row.map((v, k) => {
    const at = step.data.length > t.dims[0] ? d * t.dims[2] + k : d;
    return (v - Number(zero.data[at])) * step.data[at];
  }))));
}

// Keys after the last that a query may see get a bias of -1e9 (before: keys of the past).
function masked(queries, keys, before) {
  return fill('float', [1, 1, queries, keys], Float32Array.from({length: queries * keys}, (_, i) => (i % keys > Math.floor(i / keys) + before ? -1e9 : 0)));
}

const endless = (tensors) => tensors.some((t) => t.data.some((v) => !Number.isFinite(v)));

// The nearest number with 11 bits, as float16 has them from 2^-14 on; ties to even.
function halved(v) {
  const step = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(v)))) - 10), k = v / step, low = Math.floor(k);
  return v === 0 ? v : step * (k - low === 0.5 ? low + Math.abs(low % 2) : Math.round(k));
}

const REASONS = [
  {holds: (c, wrong, theirs, half) => half && /^(Floor|Ceil|Round)$/.test(c.op),
   why: 'Floor, Ceil and Round of float16: ONNX Runtime leaves out the Cast to float16 before them',
   restated: (c) => ({...c, inputs: [fill('float', c.inputs[0].dims, c.inputs[0].data.map(halved))]})},
  {holds: (c) => c.op === 'Bernoulli', why: 'Bernoulli: 1 with the probability that the input gives; ONNX Runtime gives 0 with it',
   values: (c) => [c.inputs[0].data]},
  {holds: (c) => c.op === 'LSTM' && c.attrs.clip,
   why: 'LSTM, clip: bounds the input of activations, that of the cell among them; ONNX Runtime leaves that one as it is',
   values: (c) => lstm(nested(c.inputs[0]), nested(c.inputs[1]), nested(c.inputs[2]), ...[3, 4, 5, 6, 7].map((i) => flat(c.inputs[i])), c.attrs)},
  {holds: (c, wrong) => c.op === 'DynamicQuantizeLSTM' && (c.attrs.clip || c.inputs[0].dims[1] > 1) && /^element/.test(wrong), within: 1e-2,
   why: 'DynamicQuantizeLSTM: each sample\'s state is rounded to 8 bits with a scale of its own, so that others do not change it; ONNX Runtime has one scale for all; clip as of LSTM',
   values: (c) => lstm(nested(rounded(c.inputs[0])), widened(c.inputs[1], c.inputs[8], c.inputs[9]), widened(c.inputs[2], c.inputs[10], c.inputs[11]),
                       ...[3, 4, 5, 6, 7].map((i) => flat(c.inputs[i])), {...c.attrs, rounds: true})},
  {holds: (c, wrong, theirs) => c.op === 'LSTM' && (c.attrs.activations || {strings: []}).strings.includes('Softplus') && endless(theirs),
   why: 'LSTM, Softplus of more than 88: ln(1 + e^x) is x; ONNX Runtime\'s e^x is infinite',
   values: (c) => lstm(nested(c.inputs[0]), nested(c.inputs[1]), nested(c.inputs[2]), ...[3, 4, 5, 6, 7].map((i) => flat(c.inputs[i])), c.attrs)},
  {holds: (c, wrong, theirs) => c.op === 'GRU' && (c.attrs.activations || {strings: []}).strings.includes('Softplus') && endless(theirs), within: Infinity,
   why: 'GRU, Softplus of more than 88: ln(1 + e^x) is x; ONNX Runtime\'s e^x is infinite'},
  {holds: (c) => c.op === 'MultiHeadAttention' && c.attrs.unidirectional && c.inputs[1].dims[1] > c.inputs[0].dims[1],
   why: 'MultiHeadAttention, unidirectional: ONNX Runtime lets the last query see keys behind it where there are more keys than queries',
   restated: (c) => {
     const inputs = [...c.inputs], past = inputs[6] ? inputs[6].dims[2] : 0, [queries, keys] = [inputs[0].dims[1], inputs[1].dims[1] + past];
     while (inputs.length < 6) inputs.push(null);
     const mask = masked(queries, keys, past), given = inputs[5] || fill('float', [1, 1, queries, keys], new Float32Array(queries * keys));
     inputs[5] = fill('float', given.dims, Float32Array.from(given.data, (v, i) => v + mask.data[i % mask.data.length]));
     return {...c, inputs, attrs: {...c.attrs, unidirectional: 0}};
   }},
  {holds: (c) => c.op === 'Attention' && !c.domain && c.attrs.is_causal && c.inputs[4] && c.inputs[0].dims[2] === 1,
   why: 'Attention, is_causal, one query after past keys: ONNX Runtime lets it see new keys behind it',
   restated: (c) => {
     const inputs = [...c.inputs], past = inputs[4].dims[2], keys = inputs[1].dims[2] + past, hide = masked(1, keys, past), given = inputs[3];
     inputs[3] = given && given.type === 'bool' ? fill('bool', given.dims, given.data.map((v, i) => v && !hide.data[i % keys]))
         : given ? fill('float', given.dims, given.data.map((v, i) => v + hide.data[i % keys])) : fill('float', [1, keys], hide.data);
     return {...c, inputs, attrs: {...c.attrs, is_causal: 0}};
   }},
  {holds: (c) => c.op === 'MatMulNBits' && c.attrs.bits === 2 && c.attrs.accuracy_level === 4,
   why: 'MatMulNBits, level 4: rows may be rounded to 8 bits by blocks; ONNX Runtime does not do so with weights of 2 bits',
   restated: (c) => { // the same numbers in 4 bits, where it does
     const wide = (t, bytes) => fill('uint8', [...t.dims.slice(0, -1), bytes], Uint8Array.from({length: t.data.length / t.dims[t.dims.length - 1] * bytes}, (_, i) => {
       const row = Math.floor(i / bytes) * t.dims[t.dims.length - 1], code = (k) => (k >> 2 < t.dims[t.dims.length - 1] ? t.data[row + (k >> 2)] >> (k % 4 * 2) & 3 : 0), k = i % bytes * 2;
       return code(k) | code(k + 1) << 4;
     }));
     const [a, w, s, z, ...rest] = c.inputs, blocks = w.dims[1];
     const zeros = z ? wide(z, Math.ceil(blocks / 2)) : fill('uint8', [w.dims[0], Math.ceil(blocks / 2)], new Uint8Array(w.dims[0] * Math.ceil(blocks / 2)).fill(0x22));
     return {...c, attrs: {...c.attrs, bits: 4}, inputs: [a, wide(w, w.dims[2] * 2), s, zeros, ...rest]};
   }},
  {holds: (c) => c.op === 'QLinearSoftmax' && c.inputs[0].type === 'uint8',
   why: 'QLinearSoftmax: 1 is 256 steps of 1/256, which saturates to 255; ONNX Runtime wraps it to 0',
   values: (c, theirs, ours) => [theirs[0].data.map((v, i) => (v === 0 && ours[0].data[i] === 255 ? 255 : v))]},
  {holds: (c) => c.op === 'QLinearAveragePool' && c.attrs.ceil_mode && c.attrs.count_include_pad,
   why: 'QLinearAveragePool, ceil_mode: what lies behind the padding is not counted, as AveragePool has it since version 19',
   restated: (c) => {
     const [x, xs, xz, ys, yz] = c.inputs, {channels_last: last, ...attrs} = c.attrs, zero = (t) => (t ? Number(t.data[0]) : 0), least = x.type === 'int8' ? -128 : 0;
     const numbers = fill('float', x.dims, Float32Array.from(x.data, (v) => (v - zero(xz)) * xs.data[0]));
     return {op: 'AveragePool', opset: 19, attrs, inputs: [last ? moved(numbers, [0, 3, 1, 2]) : numbers], back: last ? [0, 2, 3, 1] : null,
             then: (v) => Math.max(least, Math.min(least + 255, Math.round(v / ys.data[0]) + zero(yz))), steps: 1};
   }},
  {holds: (c) => c.op === 'Slice' && c.inputs[4] && c.inputs[2].data.some((e, i) => Number(e) === 2147483647 && Number(c.inputs[4].data[i]) < 0),
   why: 'Slice backward: an end of INT_MAX is cut to the last element; ONNX Runtime takes it for INT_MIN',
   restated: (c) => {
     const [x, starts, ends, axes, by] = c.inputs;
     const cut = ends.data.map((e, i) => {
       if (Number(e) !== 2147483647 || Number(by.data[i]) > 0) return e;
       const axis = axes ? Number(axes.data[i]) : i, n = x.dims[axis < 0 ? axis + x.dims.length : axis] - 1;
       return typeof e === 'bigint' ? BigInt(n) : n;
     });
     return {...c, inputs: [x, starts, fill(ends.type, ends.dims, cut), axes, by]};
   }},
  {holds: (c) => c.op === 'ConvTranspose' && /^SAME/.test(c.attrs.auto_pad),
   why: 'ConvTranspose, SAME: sizes are those of the input times strides; ONNX Runtime pads by 0 at least',
   restated: (c) => padded(c, (i) => extent(c, i) - stride(c, i) + ((c.attrs.output_padding || [])[i] || 0))},
  {holds: (c) => /Pool$/.test(c.op) && /^SAME/.test(c.attrs.auto_pad) && (c.attrs.dilations || spatial(c).some((_, i) => stride(c, i) > extent(c, i))),
   why: 'pools, SAME with dilations, or strides beyond the window: sizes are those of the input over strides, and nothing is cut off',
   restated: (c) => padded(c, (i) => Math.max(0, (Math.ceil(c.inputs[0].dims[i + 2] / stride(c, i)) - 1) * stride(c, i) + extent(c, i) - c.inputs[0].dims[i + 2]))},
  {holds: (c) => c.op === 'ReduceLogSumExp' && /int/.test(c.inputs[0].type), why: 'ReduceLogSumExp of integers: ONNX Runtime cuts each exponential to an integer',
   restated: (c) => ({...c, inputs: [fill('double', c.inputs[0].dims, Float64Array.from(c.inputs[0].data, Number)), ...c.inputs.slice(1)], then: Math.trunc, steps: 1})},
  {holds: (c) => c.op === 'Resize' && c.inputs[0].type === 'int8' && c.attrs.antialias,
   why: 'Resize, antialias of int8: what is below 0 stays so; ONNX Runtime makes 0 of it',
   restated: (c) => ({...c, inputs: [fill('float', c.inputs[0].dims, Float32Array.from(c.inputs[0].data)), ...c.inputs.slice(1)], then: (v) => Math.max(-128, Math.min(127, Math.trunc(v))), steps: 1})},
  {holds: (c) => c.op === 'GridSample' && /cubic/.test(c.attrs.mode) && c.attrs.padding_mode === 'border',
   why: 'GridSample, cubic with border: a place outside is moved to the border, as ONNX\'s reference has it; ONNX Runtime moves the pixels around it',
   restated: (c) => {
     const [x, grid] = c.inputs, sizes = [...x.dims.slice(2)].reverse();
     const most = (k) => (c.attrs.align_corners ? 1 : 1 - 1 / sizes[k]);
     return {...c, inputs: [x, fill('float', grid.dims, grid.data.map((v, i) => (Math.abs(v) > 1 ? Math.sign(v) * most(i % sizes.length) : v)))]};
   }},
];

module.exports = {moved, known: (c, wrong, theirs, half) => REASONS.find((r) => r.holds(c, wrong, theirs, half)) || null};
