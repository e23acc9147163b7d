// SPDX-License-Identifier: MIT
// Cases of element-wise operators, reductions, products and what looks along an axis. Each: draw => what draw.js calls a case.
'use strict';

const opset = (g, since = 13) => g.pick([13, 14, 17, 18, 21, 22].filter((v) => v >= since));
const INTEGERS = ['int32', 'int64', 'int8', 'uint8', 'int16', 'uint16', 'uint32', 'uint64'];
const floatMostly = (g, others) => (g.chance(60) ? 'float' : g.pick(others));

const families = {};

// y = f(x): [name, since, size, around, attributes]
const unary = [
  ['Abs', 7, 4], ['Acos', 7, 1], ['Acosh', 9, 3, 4], ['Asin', 7, 1], ['Asinh', 9, 3], ['Atan', 7, 3], ['Atanh', 9, 0.9], ['Ceil', 7, 4],
  ['Cos', 7, 9], ['Cosh', 9, 3], ['Erf', 9, 3], ['Exp', 7, 5], ['Floor', 7, 4], ['HardSwish', 14, 5], ['IsNaN', 13, 3],
  ['Log', 7, 4, 4.01], ['Neg', 7, 4], ['Reciprocal', 7, 2, 3], ['Relu', 14, 4], ['Round', 11, 4], ['Sigmoid', 7, 9], ['Sign', 9, 3],
  ['Sin', 7, 9], ['Sinh', 9, 3], ['Softplus', 7, 8], ['Softsign', 7, 5], ['Sqrt', 7, 4, 4], ['Tan', 7, 1.2], ['Tanh', 7, 4],
  ['Mish', 18, 5], ['Identity', 13, 4],
];
for (const [name, since, size, around] of unary)
  families[name] = (g) => ({
    opset: Math.max(since, opset(g)), half: true,
    inputs: [g.tensor(floatMostly(g, name === 'Abs' || name === 'Neg' || name === 'Sign' || name === 'Relu' ? ['double', 'int32', 'int64', 'int8'] : ['double', 'float']),
                      g.dims(g.int(0, 5)), size, around || 0)],
  });

const curve = (name, since, attrs) => {
  families[name] = (g) => ({opset: Math.max(since, opset(g)), half: true, inputs: [g.tensor('float', g.dims(g.int(0, 4)), 4)],
                            attrs: Object.fromEntries(g.some(Object.keys(attrs)).map((k) => [k, attrs[k](g)]))});
};
const between = (low, high) => (g) => ({f: Math.fround(low + (high - low) * g.next())});
curve('Elu', 7, {alpha: between(0.2, 2)});
curve('Celu', 12, {alpha: between(0.3, 2)});
curve('Selu', 7, {alpha: between(0.3, 2), gamma: between(0.5, 2)});
curve('LeakyRelu', 7, {alpha: between(-1, 1)});
curve('HardSigmoid', 7, {alpha: between(0.1, 0.6), beta: between(0.1, 0.9)});
curve('ThresholdedRelu', 10, {alpha: between(0.1, 2)});
curve('Shrink', 9, {lambd: between(0.1, 2), bias: between(-1, 1)});
curve('Gelu', 20, {approximate: (g) => g.pick(['none', 'tanh'])});
for (const name of ['Affine', 'ScaledTanh', 'ParametricSoftplus']) // experiments, which ONNX Runtime has until opset 9
  families[name] = (g) => ({opset: g.int(7, 9), inputs: [g.tensor('float', g.dims(g.int(1, 4)), 4)], attrs: {alpha: between(-2, 2)(g), beta: between(0.2, 2)(g)}});
families.Swish = (g) => ({opset: 24, inputs: [g.tensor('float', g.dims(3), 4)], attrs: g.chance(50) ? {alpha: between(0.5, 2)(g)} : {}});
families.IsInf = (g) => ({opset: opset(g), inputs: [g.fill('float', g.dims(2), () => g.pick([1, -1, Infinity, -Infinity, NaN]))],
                          attrs: Object.fromEntries(g.some(['detect_negative', 'detect_positive']).map((k) => [k, g.int(0, 1)]))});
families.PRelu = (g) => {
  const dims = g.dims(g.int(1, 4));
  return {opset: opset(g), inputs: [g.tensor('float', dims), g.tensor('float', g.narrower(dims))]};
};

// two operands, of which either may be the one that is broadcast
function two(g, type, size = 3) {
  const dims = g.dims(g.int(0, 4)), both = [dims, g.narrower(dims)];
  if (g.chance(25)) both[0] = dims.map((d) => (g.chance(30) ? 1 : d));
  return (g.chance(50) ? both : both.reverse()).map((d) => g.tensor(type, d, size));
}
for (const name of ['Add', 'Sub', 'Mul'])
  families[name] = (g) => ({opset: opset(g, 14), half: true, inputs: two(g, floatMostly(g, ['double', ...INTEGERS]))});
families.Div = (g) => {
  const type = floatMostly(g, ['double', ...INTEGERS]), c = {opset: opset(g, 14), half: true, inputs: two(g, type)};
  for (let i = 0; i < c.inputs[1].data.length; i++) if (Number(c.inputs[1].data[i]) === 0) c.inputs[1].data[i] = typeof c.inputs[1].data[i] === 'bigint' ? 3n : 3;
  return c;
};
families.Pow = (g) => {
  const dims = g.dims(g.int(0, 3)), type = floatMostly(g, ['double', 'int32', 'int64']);
  const by = g.pick(['float', 'int32', 'int64', type]), whole = !/float|double/.test(type);
  return {opset: opset(g), inputs: [whole ? g.ints(type, dims, -5, 5) : g.tensor(type, dims, 2, 2.5),
                                    /float|double/.test(by) && !whole ? g.tensor(by, g.narrower(dims), 2) : g.ints(by, g.narrower(dims), 0, 4)]};
};
families.Mod = (g) => {
  const fmod = g.int(0, 1), type = fmod ? g.pick(['float', 'int32', 'int64', 'double']) : g.pick(INTEGERS);
  const c = {opset: opset(g), inputs: two(g, type, 5), attrs: g.chance(80) || fmod ? {fmod} : {}};
  const b = c.inputs[1].data;
  for (let i = 0; i < b.length; i++) if (Math.abs(Number(b[i])) < 0.1) b[i] = typeof b[i] === 'bigint' ? 3n : 3;
  return c;
};
for (const name of ['Equal', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual'])
  families[name] = (g) => ({opset: opset(g), inputs: two(g, g.pick(name === 'Equal' ? ['float', 'bool', 'double', ...INTEGERS] : ['float', 'double', ...INTEGERS]))});
for (const name of ['And', 'Or', 'Xor']) families[name] = (g) => ({opset: opset(g), inputs: two(g, 'bool')});
families.Not = (g) => ({opset: opset(g), inputs: [g.tensor('bool', g.dims(3))]});
for (const name of ['BitwiseAnd', 'BitwiseOr', 'BitwiseXor']) families[name] = (g) => ({opset: opset(g, 18), inputs: two(g, g.pick(INTEGERS))});
families.BitwiseNot = (g) => ({opset: opset(g, 18), inputs: [g.tensor(g.pick(INTEGERS), g.dims(3))]});
families.BitShift = (g) => {
  const type = g.pick(['uint8', 'uint32', 'uint64']), dims = g.dims(2);
  return {opset: opset(g), attrs: {direction: g.pick(['LEFT', 'RIGHT'])}, inputs: [g.tensor(type, dims), g.ints(type, g.narrower(dims), 0, 7)]};
};
for (const name of ['Max', 'Min', 'Mean', 'Sum'])
  families[name] = (g) => {
    const type = /M[ai][xn]/.test(name) ? floatMostly(g, ['double', 'int32', 'int64', 'uint32', 'uint64', 'int8', 'uint8']) : 'float', dims = g.dims(g.int(0, 3));
    return {opset: opset(g), inputs: g.shuffle(Array.from({length: g.int(1, 4)}, (_, i) => g.tensor(type, i ? g.narrower(dims) : dims)))};
  };
families.Where = (g) => {
  const dims = g.dims(g.int(0, 4)), type = floatMostly(g, ['double', 'bool', ...INTEGERS]);
  return {opset: opset(g), inputs: [g.tensor('bool', g.narrower(dims)), g.tensor(type, dims), g.tensor(type, g.narrower(dims))]};
};
families.Clip = (g) => {
  const type = floatMostly(g, ['double', 'int32', 'int64', 'uint64', 'int8', 'uint8']), low = g.int(0, 1), high = low + g.int(0, 2);
  return {opset: opset(g), half: true, inputs: [g.tensor(type, g.dims(3), 4), ...g.pick([[], [low], [low, high], [null, high]]).map((v) => (v === null ? null : g.scalar(type, v)))]};
};
const CASTS = ['float', 'double', 'bool', 'float16', ...INTEGERS];
families.Cast = (g) => {
  const from = g.pick(CASTS.filter((t) => t !== 'float16')), to = g.pick(CASTS), numbers = {float: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, bool: 9, float16: 10, double: 11, uint32: 12, uint64: 13};
  const small = /uint/.test(to) ? [0, 100] : [-100, 100];
  const x = /float|double/.test(from) ? g.fill(from, g.dims(3), () => small[0] + g.next() * (small[1] - small[0])) : g.tensor(from, g.dims(3));
  return {opset: opset(g), inputs: [x], attrs: {to: numbers[to]}};
};
families.CastLike = (g) => ({opset: opset(g, 15), constants: 50, inputs: [g.tensor(g.pick(['float', 'int32', 'bool']), g.dims(2)), g.tensor(g.pick(['float', 'int64', 'double']), [2])]});

// ---- along axes ----

for (const name of ['ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum', 'ReduceSumSquare'])
  families[name] = (g) => {
    const rank = g.int(0, 5), dims = g.dims(rank), version = opset(g), input = version >= 18 || name === 'ReduceSum';
    const type = floatMostly(g, ['double', 'int32', 'int64', ...(/M[ai][xn]/.test(name) ? ['int8', 'uint8'] : [])]);
    const axes = g.some([...dims.keys()], g.chance(20) ? 0 : Math.min(1, rank)).map((a) => (g.chance(30) ? a - rank : a));
    const x = /float|double/.test(type) ? g.tensor(type, dims, 1.5, name === 'ReduceLogSum' ? 1.6 : 0) : g.ints(type, dims, name === 'ReduceLogSum' ? 1 : /int8/.test(type) ? 0 : -3, 3);
    const attrs = g.chance(70) ? {keepdims: g.int(0, 1)} : {}, given = g.chance(85);
    if (input && g.chance(25)) attrs.noop_with_empty_axes = g.int(0, 1);
    if (!input && given && axes.length) attrs.axes = axes;
    return {opset: version, half: true, within: 2e-4, attrs, fixed: g.chance(80) ? [1] : [], inputs: [x, ...(input && given ? [g.list(axes)] : [])]};
  };
for (const name of ['ArgMax', 'ArgMin'])
  families[name] = (g) => {
    const rank = g.int(1, 4), attrs = {};
    if (g.chance(70)) attrs.axis = g.axis(rank);
    if (g.chance(50)) attrs.keepdims = g.int(0, 1);
    if (g.chance(50)) attrs.select_last_index = g.int(0, 1);
    return {opset: opset(g), attrs, inputs: [g.tensor(floatMostly(g, ['double', 'int32', 'int8', 'uint8']), g.dims(rank))]};
  };
for (const name of ['Softmax', 'LogSoftmax', 'Hardmax'])
  families[name] = (g) => {
    const rank = g.int(1, 4);
    return {opset: g.pick([7, 11, 12, 13, 17, 22]), half: true, attrs: g.chance(75) ? {axis: g.int(0, rank - 1)} : {}, inputs: [g.tensor(g.chance(85) ? 'float' : 'double', g.dims(rank), 6)]};
  };
families.CumSum = (g) => {
  const rank = g.int(1, 4), attrs = {};
  if (g.chance(50)) attrs.exclusive = g.int(0, 1);
  if (g.chance(50)) attrs.reverse = g.int(0, 1);
  return {opset: opset(g), attrs, inputs: [g.tensor(floatMostly(g, ['double', 'int32', 'int64']), g.dims(rank)), g.pick([g.scalar('int64', g.axis(rank)), g.list([g.axis(rank)], 'int32')])]};
};
families.BitCast = (g) => {
  const [type, to] = g.pick([['float', 6], ['int32', 1], ['uint32', 6], ['int8', 2], ['uint16', 5], ['double', 7], ['int64', 13]]);
  return {opset: 26, attrs: {to}, inputs: [g.tensor(type, g.dims(g.int(0, 3)))]};
};
families.CumProd = (g) => ({...families.CumSum(g), opset: 26});
families.TopK = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), n = dims[(axis + rank) % rank];
  const x = g.fill(g.pick(['float', 'double', 'int64', 'int32']), dims, () => g.int(-6, 6));
  return {opset: opset(g), outputs: 2, attrs: {axis, ...(g.chance(50) ? {largest: g.int(0, 1)} : {}), sorted: 1}, inputs: [x, g.list([g.int(0, n)])]};
};

// ---- products ----

families.MatMul = (g) => {
  const k = g.size(), batch = g.dims(g.int(0, 2)), a = [...batch, g.size(), k], b = [...g.narrower(batch), k, g.size()];
  if (g.chance(15)) a.splice(0, a.length - 1);
  if (g.chance(15)) b.splice(0, b.length, k);
  return {opset: opset(g), half: true, inputs: [g.tensor('float', a), g.tensor('float', b)]};
};
families.Gemm = (g) => {
  const [m, k, n] = g.dims(3), transA = g.int(0, 1), transB = g.int(0, 1), attrs = {};
  if (transA || g.chance(30)) attrs.transA = transA;
  if (transB || g.chance(30)) attrs.transB = transB;
  if (g.chance(40)) attrs.alpha = between(-2, 2)(g);
  if (g.chance(40)) attrs.beta = between(-2, 2)(g);
  const c = g.pick([null, [n], [m, 1], [1, n], [m, n], [1], []]);
  return {opset: opset(g), half: true, attrs, inputs: [g.tensor('float', transA ? [k, m] : [m, k]), g.tensor('float', transB ? [n, k] : [k, n]), ...(c ? [g.tensor('float', c)] : [])]};
};
families.MatMulInteger = (g) => {
  const k = g.size(), n = g.size(), batch = g.dims(g.int(0, 2)), ta = g.pick(['uint8', 'int8']), tb = g.pick(['uint8', 'int8']);
  const a = g.tensor(ta, [...batch, g.size(), k]), b = g.tensor(tb, [k, n]);
  return {opset: opset(g), inputs: [a, b, ...g.pick([[], [g.tensor(ta, [])], [g.tensor(ta, []), g.tensor(tb, [])], [g.tensor(ta, []), g.tensor(tb, [n])], [null, g.tensor(tb, [])]])]};
};
const scale = (g, dims = []) => g.fill('float', dims, () => Math.fround(0.01 + g.next() * 0.1));
families.QLinearMatMul = (g) => {
  const k = g.size(), n = g.size(), batch = g.dims(g.int(0, 2)), ta = g.pick(['uint8', 'int8']), tb = ta === 'int8' ? 'int8' : g.pick(['uint8', 'int8']), per = g.chance(40) ? [n] : [];
  const zero = (t, d) => g.ints(t, d, t === 'int8' ? -20 : 100, t === 'int8' ? 20 : 140);
  return {opset: opset(g), constants: 60, steps: 1, inputs: [g.tensor(ta, [...batch, g.size(), k]), scale(g), zero(ta, []), g.tensor(tb, [k, n]), scale(g, per), zero(tb, per),
                                                             g.scalar('float', Math.fround(0.05 + g.next() * k)), zero(ta, [])]};
};
families.Einsum = (g) => {
  const [equation, ...shapes] = g.pick([['ij,jk->ik', 'ij', 'jk'], ['bij,bjk->bik', 'bij', 'bjk'], ['ij->ji', 'ij'], ['ii->i', 'ii'], ['ij,ij->', 'ij', 'ij'], ['ij,j', 'ij', 'j'],
                                        ['...ij,...jk->...ik', 'bij', 'bjk'], ['bhqd,bhkd->bhqk', 'bhqd', 'bhkd'], ['abc->b', 'abc'], ['i,j->ij', 'i', 'j'], ['i,i', 'i', 'i'],
                                        ['bqhd,bkhd->bhqk', 'bqhd', 'bkhd'], ['ij,jk,kl->il', 'ij', 'jk', 'kl'], [' b i , i o -> b o ', 'bi', 'io'], ['iij->j', 'iij'], ['...->...', 'abc'],
                                        ['bnd,hdk->bhnk', 'bnd', 'hdk'], ['bhnk,hkd->bnd', 'bhnk', 'hkd'], ['oc,bcn->bon', 'oc', 'bcn'], ['bhwc,hkc->bhwk', 'bhwc', 'hkc'],
                                        ['bqc,bchw->bqhw', 'bqc', 'bchw'], ['nkctv,kvw->nctw', 'nkctv', 'kvw'], ['...d,hd->h...', 'abd', 'hd']]);
  const sizes = {};
  const dims = (s) => [...s].map((l) => (sizes[l] = sizes[l] || g.size()));
  return {opset: opset(g), constants: 30, attrs: {equation}, inputs: shapes.map((s) => g.tensor('float', dims(s)))};
};
families.Det = (g) => {
  const n = g.int(1, 5), t = g.tensor('float', [...g.dims(g.int(0, 2)), n, n]);
  return {opset: opset(g), within: 1e-3, inputs: [t]};
};

// ---- quantization ----

families.QuantizeLinear = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), n = dims[(axis + rank) % rank], type = g.pick(['uint8', 'int8', 'uint16', 'int16']), version = /16/.test(type) ? 21 : opset(g);
  const per = g.chance(50) ? [n] : [], zero = g.chance(75);
  return {opset: version, attrs: per.length ? {axis} : {}, inputs: [g.tensor('float', dims, 9), scale(g, per), ...(zero || type !== 'uint8' ? [g.ints(type, per, 0, 100)] : [])]};
};
families.DequantizeLinear = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), at = (axis + rank) % rank, n = dims[at], type = g.pick(['uint8', 'int8', 'int32', 'uint16', 'int16', 'uint4', 'int4']);
  const version = /16|t4/.test(type) ? 21 : opset(g), blocked = version >= 21 && g.chance(40), block = g.int(1, n);
  const per = blocked ? dims.map((d, i) => (i === at ? Math.ceil(d / block) : d)) : g.chance(50) ? [n] : [];
  const four = /t4/.test(type), make = (d) => (four ? g.packed(type, d) : g.tensor(type, d));
  const attrs = per.length ? {axis} : {};
  if (blocked) attrs.block_size = block;
  return {opset: version, attrs, constants: 60, inputs: [make(dims), scale(g, per), ...(g.chance(60) && type !== 'int32' ? [make(per)] : [])]};
};
families.DynamicQuantizeLinear = (g) => ({opset: opset(g), outputs: 3, inputs: [g.tensor('float', g.dims(g.int(1, 4)), 4, g.int(-3, 3))]});

// ---- signals ----

families.DFT = (g) => {
  const rank = g.int(2, 3), dims = [...g.dims(rank - 1).map((d) => d + 1), 1], axis = g.int(rank === 2 ? 0 : 1, rank - 2), inverse = g.int(0, 1), onesided = inverse ? 0 : g.int(0, 1), version = g.pick([17, 20, 22]);
  if (!onesided && g.chance(60)) dims[rank - 1] = 2;
  const length = g.chance(40) ? g.scalar('int64', g.int(1, 8)) : null;
  const attrs = {inverse, onesided};
  if (version === 17) attrs.axis = axis;
  return {opset: version, attrs, within: 1e-3, inputs: [g.tensor('float', dims), ...(version === 17 ? (length ? [length] : []) : [length, g.scalar('int64', axis)])]};
};
families.STFT = (g) => {
  const n = g.int(2, 8), frames = n + g.int(0, 20), onesided = g.int(0, 1), window = g.chance(60) ? g.tensor('float', [n]) : null;
  return {opset: opset(g, 17), attrs: {onesided}, within: 1e-3, inputs: [g.tensor('float', [g.int(1, 2), frames, 1]), g.scalar('int64', g.int(1, 5)), window, ...(window && g.chance(50) ? [] : [g.scalar('int64', n)])]};
};
for (const name of ['BlackmanWindow', 'HammingWindow', 'HannWindow'])
  families[name] = (g) => ({opset: opset(g, 17), constants: 50, attrs: {periodic: g.int(0, 1)}, inputs: [g.scalar(g.pick(['int32', 'int64']), g.int(2, 20))]});
families.MelWeightMatrix = (g) => ({opset: opset(g, 17), constants: 80, inputs: [g.scalar('int64', g.int(2, 8)), g.scalar('int64', 2 * g.int(8, 32)), g.scalar('int64', 8000), g.scalar('float', 100), g.scalar('float', 3500)]});

module.exports = families;
