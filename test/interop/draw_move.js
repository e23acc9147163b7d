// SPDX-License-Identifier: MIT
// Cases of operators that move, index, choose or make elements. Each: draw => what draw.js calls a case.
'use strict';
const {product} = require('./draw.js');

const opset = (g, since = 13) => g.pick([13, 14, 17, 18, 21, 22].filter((v) => v >= since));
const TYPES = ['float', 'float', 'float', 'double', 'int32', 'int64', 'int8', 'uint8', 'bool', 'int16', 'uint16', 'uint32', 'uint64'];
const any = (g, dims, types = TYPES) => g.tensor(g.pick(types), dims);
const at = (axis, rank) => (axis + rank) % rank;
const families = {};

families.Transpose = (g) => {
  const rank = g.int(0, 5), order = g.shuffle([...Array(rank).keys()]);
  return {opset: opset(g), attrs: rank && g.chance(85) ? {perm: order} : {}, inputs: [any(g, g.dims(rank))]};
};
families.Reshape = (g) => {
  const dims = g.dims(g.int(0, 4)), version = opset(g);
  let shape = g.pick([[-1], [...dims], dims.map((d, i) => (g.chance(50) && i < dims.length ? 0 : d)), [1, ...dims], [...dims, -1]]);
  const zeros = shape.map((d, i) => d === 0 && i).filter((i) => i !== false);
  if (zeros.length === 0 && dims.length > 1 && g.chance(30)) shape = [dims[0] * dims[1], ...dims.slice(2)];
  if (!zeros.length && g.chance(30) && !shape.includes(-1) && shape.length) shape[g.int(0, shape.length - 1)] = -1;
  return {opset: version, constants: 60, attrs: version >= 14 && g.chance(20) ? {allowzero: 0} : {}, inputs: [any(g, dims), g.list(shape)]};
};
families.Flatten = (g) => {
  const rank = g.int(1, 4);
  return {opset: opset(g), attrs: g.chance(70) ? {axis: g.int(-rank, rank)} : {}, inputs: [any(g, g.dims(rank))]};
};
families.Squeeze = (g) => {
  const dims = g.dims(g.int(1, 5)).map((d) => (g.chance(50) ? 1 : d)), ones = [...dims.keys()].filter((i) => dims[i] === 1);
  const axes = g.some(ones, 0).map((a) => (g.chance(40) ? a - dims.length : a));
  return {opset: opset(g), constants: 60, inputs: [any(g, dims), ...(axes.length ? [g.list(axes)] : [])]};
};
families.Unsqueeze = (g) => {
  const dims = g.dims(g.int(0, 3)), more = g.int(1, 3), rank = dims.length + more;
  const axes = g.shuffle([...Array(rank).keys()]).slice(0, more).map((a) => (g.chance(40) ? a - rank : a));
  return {opset: opset(g), constants: 60, inputs: [any(g, dims), g.list(axes)]};
};
families.Concat = (g) => {
  const rank = g.int(1, 4), axis = g.axis(rank), dims = g.dims(rank), type = g.pick(TYPES);
  return {opset: opset(g), attrs: {axis}, inputs: Array.from({length: g.int(1, 5)}, () => g.tensor(type, dims.map((d, i) => (i === at(axis, rank) ? g.int(0, 4) : d))))};
};
families.Split = (g) => {
  const rank = g.int(1, 4), axis = g.axis(rank), dims = g.dims(rank), n = dims[at(axis, rank)], version = opset(g), sizes = [];
  if (g.chance(50)) {
    for (let left = n; left || !sizes.length;) {
      sizes.push(sizes.length > 3 ? left : g.int(0, left));
      left -= sizes[sizes.length - 1];
    }
    return {opset: version, constants: 60, attrs: {axis}, outputs: sizes.length, inputs: [any(g, dims), g.list(sizes)]};
  }
  const pieces = version >= 18 ? g.int(1, n) : g.pick([...Array(n).keys()].map((i) => i + 1).filter((i) => n % i === 0));
  if (version >= 18 && Math.ceil(n / pieces) * (pieces - 1) >= n) return families.Split(g);
  return {opset: version, attrs: {axis, ...(version >= 18 ? {num_outputs: pieces} : {})}, outputs: pieces, inputs: [any(g, dims)]};
};
families.Slice = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), type = g.pick(['int32', 'int64']);
  const axes = g.some([...dims.keys()], 1), far = () => g.pick([g.int(-9, 9), g.int(-3, 3), 2147483647, -2147483648]);
  const starts = axes.map(far), ends = axes.map(far), steps = axes.map(() => g.pick([1, 1, 2, 3, -1, -2]));
  const shown = axes.map((a) => (g.chance(40) ? a - rank : a)), list = (v) => g.list(v, type);
  const last = g.chance(60) ? [list(shown), list(steps)] : g.chance(50) ? [list(shown)] : [];
  if (!last.length) axes.splice(0, axes.length, ...axes.keys());
  return {opset: opset(g), constants: 50, inputs: [any(g, dims), list(starts), list(ends), ...last]};
};
families.Pad = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank).map((d) => d + 1), version = opset(g), mode = g.pick(['constant', 'constant', 'reflect', 'edge', ...(version >= 19 ? ['wrap'] : [])]);
  const axes = version >= 18 && g.chance(40) ? g.some([...dims.keys()], 1) : null, count = axes ? axes.length : rank, type = mode === 'constant' ? g.pick(['float', 'double', 'int32', 'int64', 'int8', 'uint8', 'bool']) : g.pick(['float', 'int32', 'int64']);
  const most = (i) => Math.max(0, dims[axes ? axes[i] : i] - 1);
  const low = Array.from({length: count}, (_, i) => (mode === 'constant' ? g.int(-Math.min(1, most(i)), 3) : g.int(0, most(i)))), high = low.map((_, i) => (mode === 'constant' ? g.int(0, 3) : g.int(0, most(i))));
  const value = mode === 'constant' && g.chance(60) ? g.tensor(type, []) : null;
  return {opset: version, constants: 50, attrs: mode === 'constant' && g.chance(50) ? {} : {mode}, inputs: [g.tensor(type, dims), g.list([...low, ...high]), ...(axes ? [value, g.list(axes.map((a) => (g.chance(40) ? a - rank : a)))] : value ? [value] : [])]};
};
families.Tile = (g) => {
  const dims = g.dims(g.int(1, 4));
  return {opset: opset(g), constants: 50, inputs: [any(g, dims, ['float', 'double', 'int32', 'int64', 'bool', 'uint8', 'int8']), g.list(dims.map(() => g.pick([1, 1, 2, 3, 0])))]};
};
families.Expand = (g) => {
  const dims = g.dims(g.int(0, 4)), small = g.narrower(dims), shape = dims.map((d, i) => (g.chance(20) && i >= dims.length - small.length ? (small[i - dims.length + small.length] === d ? 1 : d) : d));
  return {opset: opset(g), constants: 50, inputs: [any(g, small), g.list(shape)]};
};
const indices = (g, dims, n) => g.ints(g.pick(['int32', 'int64']), dims, -n, n - 1);
families.Gather = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank);
  return {opset: opset(g), attrs: g.chance(80) ? {axis} : {}, inputs: [any(g, dims), indices(g, g.dims(g.int(0, 3)), dims[at(g.chance(80) ? axis : 0, rank)])]};
};
families.Gather = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.chance(80) ? g.axis(rank) : null;
  return {opset: opset(g), attrs: axis === null ? {} : {axis}, inputs: [any(g, dims), indices(g, g.dims(g.int(0, 3)), dims[at(axis || 0, rank)])]};
};
families.GatherElements = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), n = dims[at(axis, rank)];
  return {opset: opset(g), attrs: {axis}, inputs: [any(g, dims), indices(g, dims.map((d, i) => (i === at(axis, rank) ? g.size() : g.int(1, d))), n)]};
};
families.GatherND = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), b = g.int(0, Math.min(2, rank - 1)), last = g.int(1, rank - b), lead = [...dims.slice(0, b), ...g.dims(g.int(b ? 0 : 1, 2))];
  const n = g.fill('int64', [...lead, last], (i) => g.int(-dims[b + i % last], dims[b + i % last] - 1));
  return {opset: opset(g), attrs: g.chance(80) || b ? {batch_dims: b} : {}, inputs: [any(g, dims), n]};
};
families.ScatterElements = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), a = at(axis, rank), version = opset(g), small = dims.map((d) => g.int(1, d)), type = g.pick(['float', 'int32', 'int64', 'double']);
  const reduction = g.pick(version >= 18 ? ['none', 'add', 'mul', 'min', 'max'] : version >= 16 ? ['none', 'add', 'mul'] : ['none']);
  const x = g.tensor(type, dims), index = indices(g, small, dims[a]);
  if (reduction === 'none') { // an index twice leaves open which element stays
    const stride = product(small.slice(a + 1));
    for (let i = 0; i < index.data.length; i++) index.data[i] = typeof index.data[i] === 'bigint' ? BigInt(Math.floor(i / stride) % small[a]) : Math.floor(i / stride) % small[a];
  }
  return {opset: version, attrs: {axis, ...(reduction === 'none' ? {} : {reduction})}, inputs: [x, index, g.tensor(type, small)]};
};
families.Scatter = (g) => { // the older name, of opsets 9 and 10
  const dims = g.dims(g.int(1, 4)), axis = g.int(0, dims.length - 1), small = dims.map((d) => g.int(1, d)), type = g.pick(['float', 'int32', 'int64', 'double']);
  const stride = product(small.slice(axis + 1)), index = g.fill('int64', small, (i) => Math.floor(i / stride) % small[axis]);
  return {opset: g.pick([9, 10]), attrs: {axis}, inputs: [g.tensor(type, dims), index, g.tensor(type, small)]};
};
families.TensorScatter = (g) => {
  const dims = g.dims(g.int(3, 4)), axis = g.int(1, dims.length - 1), n = g.int(1, dims[axis]), circular = g.chance(40), type = g.pick(['float', 'int32', 'double']);
  const starts = g.ints('int64', [dims[0]], 0, circular ? dims[axis] - 1 : dims[axis] - n);
  return {opset: 24, attrs: {axis: g.chance(30) ? axis - dims.length : axis, mode: circular ? 'circular' : 'linear'},
          inputs: [g.tensor(type, dims), g.tensor(type, dims.map((d, i) => (i === axis ? n : d))), ...(g.chance(70) ? [starts] : [])]};
};
families.ScatterND = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), last = g.int(1, rank), version = opset(g), type = g.pick(['float', 'int32', 'int64', 'double']), some = g.int(1, 4);
  const reduction = g.pick(version >= 18 ? ['none', 'add', 'mul', 'min', 'max'] : version >= 16 ? ['none', 'add', 'mul'] : ['none']);
  const n = reduction === 'none' ? 1 : some, index = g.fill('int64', [n, last], (i) => g.int(-dims[i % last], dims[i % last] - 1));
  return {opset: version, attrs: reduction === 'none' ? {} : {reduction}, inputs: [g.tensor(type, dims), index, g.tensor(type, [n, ...dims.slice(last)])]};
};
families.OneHot = (g) => {
  const rank = g.int(0, 3), depth = g.int(1, 5), type = g.pick(['float', 'int64', 'int32']);
  return {opset: opset(g), constants: 50, attrs: g.chance(60) ? {axis: g.int(-rank - 1, rank)} : {}, inputs: [g.ints(g.pick(['int64', 'int32']), g.dims(rank), -depth - 1, depth + 1), g.pick([g.scalar('int64', depth), g.list([depth])]), g.tensor(type, [2])]};
};
families.Unique = (g) => {
  const rank = g.int(1, 3), axis = g.chance(50) ? {axis: g.axis(rank)} : {};
  return {opset: opset(g), outputs: 4, attrs: {...axis, ...(g.chance(60) ? {sorted: g.int(0, 1)} : {})}, inputs: [g.ints(g.pick(['float', 'int64', 'int8', 'double']), g.dims(rank), -2, 2)]};
};
families.NonZero = (g) => ({opset: opset(g), inputs: [g.ints(g.pick(['float', 'int32', 'int64', 'bool', 'uint8']), g.dims(g.int(0, 4)), 0, 1)]});
families.Compress = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.chance(60) ? g.axis(rank) : null, n = axis === null ? product(dims) : dims[at(axis, rank)];
  return {opset: opset(g), attrs: axis === null ? {} : {axis}, inputs: [any(g, dims), g.tensor('bool', [g.int(1, n)])]};
};
families.ReverseSequence = (g) => {
  const time = g.int(0, 1), dims = g.dims(g.int(2, 4)), lengths = g.ints('int64', [dims[1 - time]], 1, dims[time]);
  return {opset: opset(g), attrs: {time_axis: time, batch_axis: 1 - time}, inputs: [any(g, dims), lengths]};
};
families.Trilu = (g) => ({opset: opset(g, 14), constants: 50, attrs: g.chance(70) ? {upper: g.int(0, 1)} : {}, inputs: [any(g, g.dims(g.int(2, 4)), ['float', 'double', 'int64']), ...(g.chance(60) ? [g.scalar('int64', g.int(-5, 5))] : [])]});
families.EyeLike = (g) => ({opset: opset(g), attrs: {...(g.chance(60) ? {k: g.int(-3, 3)} : {}), ...(g.chance(50) ? {dtype: g.pick([1, 7, 6, 11])} : {})}, inputs: [any(g, g.dims(2), ['float', 'int32', 'int64', 'double'])]});
families.Range = (g) => {
  const type = g.pick(['float', 'int32', 'int64', 'int16', 'double']), step = g.pick([1, 2, 3, -1, -2]);
  return {opset: opset(g), constants: 50, inputs: [g.int(-5, 5), g.int(-8, 12), step].map((v) => g.scalar(type, v))};
};
families.ConstantOfShape = (g) => ({opset: opset(g), constants: 50, attrs: g.chance(70) ? {value: any(g, [1], ['float', 'int64', 'int32', 'bool', 'uint8', 'double'])} : {}, inputs: [g.list(g.dims(g.int(0, 4)))]});
families.Shape = (g) => ({opset: opset(g, 15) < 15 ? 15 : opset(g, 17), attrs: Object.fromEntries(g.some(['start', 'end']).map((k) => [k, g.int(-5, 5)])), inputs: [any(g, g.dims(g.int(0, 4)))]});
families.Size = (g) => ({opset: opset(g), inputs: [any(g, g.dims(g.int(0, 4)))]});
families.DepthToSpace = (g) => {
  const b = g.int(1, 3), [n, c, h, w] = g.dims(4);
  return {opset: opset(g), attrs: {blocksize: b, ...(g.chance(60) ? {mode: g.pick(['DCR', 'CRD'])} : {})}, inputs: [any(g, [n, c * b * b, h, w], ['float', 'double', 'uint8'])]};
};
families.SpaceToDepth = (g) => {
  const b = g.int(1, 3), [n, c, h, w] = g.dims(4);
  return {opset: opset(g), attrs: {blocksize: b}, inputs: [any(g, [n, c, h * b, w * b], ['float', 'double', 'uint8'])]};
};
families.CenterCropPad = (g) => {
  const dims = g.dims(g.int(1, 4)), axes = g.chance(50) ? g.some([...dims.keys()], 1) : null;
  return {opset: opset(g, 18), constants: 60, attrs: axes ? {axes: axes.map((a) => (g.chance(30) ? a - dims.length : a))} : {}, inputs: [g.tensor('float', dims), g.list((axes || dims).map(() => g.int(1, 7)))]};
};
families.Dropout = (g) => ({opset: opset(g), outputs: g.int(1, 2), fixed: [1, 2], inputs: [g.tensor('float', g.dims(3)), ...(g.chance(60) ? [g.scalar('float', 0.3), ...(g.chance(50) ? [g.scalar('bool', 0)] : [])] : [])]});

module.exports = families;
