// SPDX-License-Identifier: MIT
// Cases of several nodes: lists of tensors, optionals, branches and loops, random numbers; and of operators that ONNX Runtime
// has no kernel for, beside nodes that mean the same. Each: draw => what draw.js calls a case.
'use strict';
const ms = require('./draw_ms.js');

const opset = (g, since = 13) => g.pick([13, 14, 17, 18, 21, 22].filter((v) => v >= since));
const f = (g, dims, size = 2) => g.tensor('float', dims, size);
const families = {};

// ---- lists ----

// Sizes of parts that add up to n.
function parts(g, n) {
  const sizes = [];
  for (let left = n; left > 0; left -= sizes[sizes.length - 1]) sizes.push(g.int(1, left));
  return sizes;
}
// Nodes that read list `list` of `length` tensors: one of them, their number, and all of them if they differ in `axis` alone.
// Where shapes differ, `index` has to be a constant.
function read(g, list, length, axis, index) {
  return {nodes: [['SequenceAt', [list, index], ['y0']], ['SequenceLength', [list], ['y1']], ...(axis === null ? [] : [['ConcatFromSequence', [list], ['y2'], {axis}]])],
          outputs: axis === null ? 2 : 3, at: g.scalar(g.pick(['int32', 'int64']), g.int(-length, length - 1))};
}
families.SplitToSequence = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), n = dims[(axis + rank) % rank], how = g.int(0, 2), attrs = {axis};
  const sizes = how === 0 ? Array(n).fill(1) : parts(g, n), step = how === 1 ? g.int(1, n) : 0;
  const keeps = how === 0 ? g.int(0, 1) : 1, length = how === 1 ? Math.ceil(n / step) : sizes.length;
  if (!keeps || g.chance(20)) attrs.keepdims = keeps;
  const r = read(g, 's', length, keeps ? axis : null, 'x1'), uneven = how === 1 ? n % step : sizes.some((s) => s !== sizes[0]), given = how === 1 ? [g.scalar(g.pick(['int32', 'int64']), step)] : how === 2 ? [g.list(sizes, g.pick(['int32', 'int64']))] : [];
  return {opset: opset(g), constants: 60, fixed: uneven ? [1, 2] : [2], outputs: r.outputs, inputs: [g.tensor(g.pick(['float', 'int64', 'uint8']), dims), r.at, ...given],
          nodes: [['SplitToSequence', ['x0', ...given.map(() => 'x2')], ['s'], attrs], ...r.nodes]};
};
// Sizes of parts that the model computes: half of the axis, and the rest.
families.computed_parts = (g) => {
  const rank = g.int(1, 3), dims = g.dims(rank).map((d) => d + 1), axis = g.int(0, rank - 1), r = read(g, 's', 2, axis, 'x1');
  const nodes = [['Shape', ['x0'], ['shape']], ['Slice', ['shape', 'x2', 'x3'], ['size']], ['Div', ['size', 'x4'], ['half']], ['Sub', ['size', 'half'], ['rest']],
                 ['Concat', ['half', 'rest'], ['split'], {axis: 0}], ['SplitToSequence', ['x0', 'split'], ['s'], {axis}], ...r.nodes];
  return {opset: opset(g), fixed: [1, 2, 3, 4], outputs: 3, inputs: [f(g, dims), r.at, g.list([axis]), g.list([axis + 1]), g.list([2])], nodes};
};
// x0 and x1 differ in one axis; what is put in and taken out again follows.
function list(g, change) {
  const rank = g.int(1, 3), dims = g.dims(rank), axis = g.int(0, rank - 1), type = g.pick(['float', 'double', 'int64', 'uint8']), most = g.int(1, 3);
  const tensors = Array.from({length: most}, () => g.tensor(type, dims.map((d, i) => (i === axis ? g.size() : d))));
  const c = change(most), r = read(g, 'list', c.length, axis, `x${most}`), names = tensors.map((_, i) => `x${i}`);
  const more = c.index === undefined ? [] : [g.scalar(g.pick(['int32', 'int64']), c.index)];
  return {opset: opset(g), fixed: [most, most + 1], outputs: 3, inputs: [...tensors, r.at, ...more], nodes: [...c.nodes(names, more.length ? [`x${most + 1}`] : []), ...r.nodes]};
}
families.SequenceConstruct = (g) => list(g, (n) => ({length: n, nodes: (names) => [['SequenceConstruct', names, ['list']]]}));
families.SequenceAt = families.SequenceLength = families.ConcatFromSequence = families.SequenceConstruct;
families.SequenceInsert = (g) => list(g, (n) => ({length: n + 1, index: g.chance(80) ? g.int(-n, n) : undefined, nodes: (names, at) => [
  ['SequenceConstruct', names, ['before']], ['SequenceInsert', ['before', names[0], ...at], ['list']]]}));
families.SequenceErase = (g) => list(g, (n) => ({length: n, index: g.chance(80) ? g.int(-n - 1, n) : undefined, nodes: (names, at) => [
  ['SequenceConstruct', [...names, names[0]], ['before']], ['SequenceErase', ['before', ...at], ['list']]]}));
families.SequenceEmpty = (g) => {
  const type = g.pick(['float', 'double', 'int64']), code = {float: 1, double: 11, int64: 7}[type];
  return {opset: opset(g), outputs: 3, fixed: [1], inputs: [g.tensor(type, g.dims(g.int(1, 3))), g.scalar('int64', 0)], nodes: [
    ['SequenceEmpty', [], ['none'], type === 'float' && g.chance(50) ? {} : {dtype: code}], ['SequenceInsert', ['none', 'x0'], ['list']], ...read(g, 'list', 1, 0, 'x1').nodes]};
};

// ---- optionals ----

families.Optional = (g) => ({opset: opset(g, 18), outputs: 2, inputs: [g.tensor(g.pick(['float', 'int64', 'bool']), g.dims(g.int(0, 3)))], nodes: [
  ['Optional', ['x0'], ['o']], ['OptionalHasElement', ['o'], ['y0']], ['OptionalGetElement', ['o'], ['y1']]]});
families.OptionalHasElement = families.OptionalGetElement = families.Optional;

// ---- branches and loops ----

families.If = (g) => {
  const dims = g.dims(g.int(1, 3)), other = g.chance(50) ? 'Neg' : 'Abs';
  const late = g.pick([[['Concat', ['x0', 'x0'], ['b'], {axis: 0}]], [[other, ['x0'], ['b']]], [[other, ['x0'], ['a']], ['Add', ['a', 'x2'], ['b']]]]);
  const branch = (nodes, output) => ({graph: {nodes, outputs: [output]}});
  return {opset: opset(g), outputs: 1, constants: 20, inputs: [f(g, dims), g.scalar('bool', g.int(0, 1)), f(g, [])], nodes: [
    ['If', ['x1'], ['y0'], {then_branch: branch([['Mul', ['x0', 'x2'], ['a0']]], 'a0'), else_branch: branch(late, 'b')}]]};
};
// A sum that is carried, a row each time, a value of the outside; ends early or not. One iteration at least: a row that is
// never made has the sizes that a body declares, of which there need be none.
families.Loop = (g) => {
  const dims = g.dims(g.int(1, 3)), ends = g.chance(40), inputs = [f(g, dims), g.scalar('int64', g.int(1, 4)), f(g, dims), g.scalar('int64', g.int(0, 4)), g.scalar('bool', 1)];
  const body = {inputs: [['i', 'int64', []], ['go', 'bool', []], ['v', 'float']], outputs: ['next', 'sum', 'row'], nodes: [
    ['Add', ['v', 'x2'], ['sum']], ['Sin', ['sum'], ['row']], ends ? ['Less', ['i', 'x3'], ['next']] : ['Identity', ['go'], ['next']]]};
  return {opset: opset(g), outputs: 2, constants: 30, last: true, inputs, nodes: [['Loop', ['x1', 'x4', 'x0'], ['y0', 'y1'], {body: {graph: body}}]]};
};
// A list that grows by one in each iteration.
families.growing_list = (g) => {
  const dims = g.dims(g.int(1, 3)), type = g.chance(50) ? [['SequenceEmpty', [], ['begin']]] : [['SequenceConstruct', ['x0'], ['begin']]], count = g.int(1, 4);
  const body = {inputs: [['i', 'int64', []], ['go', 'bool', []], ['s']], outputs: ['go1', 's1'], nodes: [
    ['Cast', ['i'], ['k'], {to: 1}], ['Add', ['x0', 'k'], ['e']], ['SequenceInsert', ['s', 'e'], ['s1']], ['Identity', ['go'], ['go1']]]};
  const r = read(g, 'all', count, 0, 'x2');
  return {opset: opset(g), outputs: 3, fixed: [1, 2], inputs: [f(g, dims), g.scalar('int64', count), r.at], nodes: [...type, ['Loop', ['x1', '', 'begin'], ['all'], {body: {graph: body}}], ...r.nodes]};
};
families.Scan = (g) => {
  const rank = g.int(1, 3), dims = g.dims(rank), axis = g.int(0, rank - 1), out = g.int(0, rank - 1), rest = dims.filter((_, i) => i !== axis), back = g.int(0, 1), turned = g.int(0, 1);
  const body = {inputs: [['s', 'float', rest], ['e', 'float', rest]], outputs: ['s1', 'row'], nodes: [['Add', ['s', 'e'], ['s1']], ['Mul', ['s1', 'x2'], ['row']]]};
  return {opset: opset(g), outputs: 2, last: true, constants: 20, inputs: [f(g, rest), f(g, dims), f(g, [])], nodes: [['Scan', ['x0', 'x1'], ['y0', 'y1'], {
    num_scan_inputs: 1, scan_input_axes: [axis], scan_input_directions: [back], scan_output_axes: [out], scan_output_directions: [turned], body: {graph: body}}]]};
};

// ---- constants, and random numbers of which something is certain ----

families.Constant = (g) => {
  const dims = g.dims(g.int(0, 3)), tensor = g.tensor(g.pick(['float', 'float', 'double', 'int64', 'uint8', 'bool']), dims);
  const attrs = g.pick([{value: tensor}, {value: tensor}, {value_float: {f: 1.5}}, {value_floats: {floats: [1, -2.5, 3]}}, {value_int: -7}, {value_ints: [3, -1, 4]}]);
  return {opset: opset(g), outputs: 2, inputs: [f(g, [2])], nodes: [['Constant', [], ['y0'], attrs], ['Neg', ['x0'], ['y1']]]};
};
const certain = {RandomUniform: [{low: {f: 2}, high: {f: 3}}, 'Floor'], RandomNormal: [{mean: {f: 5}, scale: {f: 0.01}}, 'Round']};
for (const name of ['RandomUniform', 'RandomNormal', 'RandomUniformLike', 'RandomNormalLike'])
  families[name] = (g) => {
    const like = /Like$/.test(name), [attrs, sure] = certain[name.replace('Like', '')], dims = g.dims(g.int(1, 3)), more = {...attrs, ...(g.chance(50) ? {seed: {f: 3}} : {}), ...(like && g.chance(50) ? {} : {dtype: 1}), ...(like ? {} : {shape: dims})};
    return {opset: opset(g), outputs: 2, inputs: [f(g, dims)], nodes: [[name, like ? ['x0'] : [], ['r'], more], [sure, ['r'], ['y0']], ['Neg', ['x0'], ['y1']]]};
  };
families.Bernoulli = (g) => ({opset: opset(g, 17), inputs: [g.ints('float', g.dims(g.int(1, 3)), 0, 1)], attrs: g.chance(50) ? {dtype: g.pick([1, 7, 9])} : {}});
families.Multinomial = (g) => {
  const classes = g.int(1, 5), n = g.int(1, 3), sure = Array.from({length: n}, () => g.int(0, classes - 1));
  return {opset: opset(g), attrs: {sample_size: g.int(1, 4), ...(g.chance(50) ? {dtype: g.pick([6, 7])} : {})}, inputs: [g.fill('float', [n, classes], (i) => (i % classes === sure[Math.floor(i / classes)] ? 0 : -1000))]};
};

// ---- operators that ONNX Runtime has no kernel for ----

const plain = (name, more) => (g) => ({...ms[`ms_${name}`](g), domain: '', opset: g.pick([27, 28]), means: {domain: 'com.microsoft', opset: 17}, ...more});
families.CausalConvWithState = plain('CausalConvWithState');
families.LinearAttention = plain('LinearAttention');
families.SwiGLU = (g) => {
  const dims = g.dims(g.int(1, 4)), alpha = g.chance(50) ? 1.7 : 1, scale = g.scalar('float', alpha);
  return {opset: 28, attrs: alpha === 1 ? {} : {alpha: {f: alpha}}, inputs: [f(g, dims), f(g, dims)], means: {opset: 17, nodes: [
    ['Constant', [], ['alpha'], {value: scale}], ['Mul', ['x0', 'alpha'], ['a']], ['Sigmoid', ['a'], ['s']], ['Mul', ['x0', 's'], ['b']], ['Mul', ['b', 'x1'], ['y0']]]}};
};
families.BiasAdd = (g) => {
  const dims = g.dims(3);
  return {domain: 'com.microsoft', inputs: [f(g, dims), f(g, dims.slice(-1)), f(g, dims)], means: {nodes: [['Add', ['x0', 'x1'], ['a']], ['Add', ['a', 'x2'], ['y0']]]}};
};
// Channels first, `nodes` from a to b, and last again.
const first = (input, nodes, output = 'y0') => [['Transpose', [input], ['a'], {perm: [0, 3, 1, 2]}], ...nodes, ['Transpose', ['b'], [output], {perm: [0, 2, 3, 1]}]];
function groups(g, skips) {
  const num = g.int(1, 3), c = num * g.int(1, 3), [n, h, w] = g.dims(3), epsilon = {f: 0.05}, curved = g.int(0, 1), last = skips || g.chance(60), skip = skips ? g.pick([[n, h, w, c], [n, 1, 1, c], [n, c]]) : null;
  const dims = last ? [n, h, w, c] : [n, c, h, w], bias = skips && g.chance(60), inputs = [f(g, dims), f(g, [c]), f(g, [c]), ...(skips ? [f(g, skip)] : []), ...(bias ? [f(g, [c])] : [])];
  const norm = (x) => [['GroupNormalization', [x, 'x1', 'x2'], [curved ? 'p' : 'b'], {num_groups: num, epsilon}], ...(curved ? [['Sigmoid', ['p'], ['q']], ['Mul', ['p', 'q'], ['b']]] : [])];
  const wide = skip && skip.length === 2 ? [['Constant', [], ['axes'], {value: g.list([1, 2])}], ['Unsqueeze', ['x3', 'axes'], ['skip']]] : [['Identity', ['x3'], ['skip']]];
  const sum = skips ? [...wide, ['Add', ['x0', 'skip'], [bias ? 'part' : 'y1']], ...(bias ? [['Add', ['part', 'x4'], ['y1']]] : [])] : [];
  const nodes = last ? [...sum, ...first(skips ? 'y1' : 'x0', norm('a'))] : [...norm('x0'), ['Identity', ['b'], ['y0']]];
  return {domain: 'com.microsoft', within: 1e-3, outputs: skips ? 2 : 1, inputs, attrs: {groups: num, epsilon, activation: curved, channels_last: Number(last)}, means: {opset: 21, nodes}};
}
families.GroupNorm = (g) => groups(g, false);
families.SkipGroupNorm = (g) => groups(g, true);
families.NhwcConv = (g) => {
  const [c, out, n] = [g.int(1, 4), g.int(1, 4), g.int(1, 2)], attrs = {kernel_shape: [3, 2], pads: [g.int(0, 2), g.int(0, 1), g.int(0, 2), g.int(0, 1)], strides: [g.int(1, 2), g.int(1, 2)]}, bias = g.chance(50) ? [f(g, [out])] : [];
  return {domain: 'com.microsoft', constants: 50, attrs, inputs: [f(g, [n, g.int(3, 7), g.int(3, 7), c]), f(g, [out, 3, 2, c]), ...bias], means: {nodes: [
    ['Transpose', ['x1'], ['w'], {perm: [0, 3, 1, 2]}], ...first('x0', [['Conv', ['a', 'w', ...bias.map(() => 'x2')], ['b'], attrs]])]}};
};
families.NhwcFusedConv = (g) => {
  const [c, out, n, h, w] = [g.int(1, 4), g.int(1, 4), g.int(1, 2), g.int(3, 7), g.int(3, 7)], window = {kernel_shape: [3, 3], pads: [1, 1, 1, 1]}, sum = g.chance(50), curve = g.pick([null, 'Relu', 'Tanh']);
  const inputs = [f(g, [n, h, w, c]), f(g, [out, c, 3, 3]), f(g, [out]), ...(sum ? [f(g, [n, h, w, out])] : [])], last = curve || 'Identity';
  return {domain: 'com.microsoft', constants: 50, attrs: curve ? {...window, activation: curve} : window, inputs, means: {nodes: [
    ...first('x0', [['Conv', ['a', 'x1', 'x2'], ['b'], window]], 'd'), ...(sum ? [['Add', ['d', 'x3'], ['e']]] : []), [last, [sum ? 'e' : 'd'], ['y0']]]}};
};

module.exports = families;
