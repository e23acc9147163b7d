// SPDX-License-Identifier: MIT
// Cases of operators on images: convolutions, pools, sampling, boxes. Each: draw => what draw.js calls a case.
'use strict';

const opset = (g, since = 13) => g.pick([13, 14, 17, 18, 21, 22].filter((v) => v >= since));
const families = {};

// Windows over `space` axes: {attrs, kernel, dims}; every axis holds at least one window. `padded`: pads may exceed the
// kernel, which ONNX Runtime refuses for pools (also where SAME with long dilations makes them).
function windows(g, space, dilates, groups, padded) {
  const kernel = Array.from({length: space}, () => g.int(1, g.chance(10) ? 7 : 4)), attrs = {};
  if (g.chance(20)) kernel.fill(1)[g.int(0, space - 1)] = g.int(4, 17); // as convolutions of signals have it
  const strides = kernel.map(() => g.int(1, 3)), dilations = kernel.map(() => (dilates ? g.int(1, padded && g.chance(15) ? 4 : 2) : 1));
  const pads = [...kernel, ...kernel].map((k) => g.int(0, padded && g.chance(10) ? 2 * k + 1 : k - 1)), auto = g.chance(25) ? g.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID']) : null;
  if (g.chance(70)) attrs.strides = strides;
  if (g.chance(60) && dilates) attrs.dilations = dilations;
  if (auto) attrs.auto_pad = auto;
  else if (g.chance(60)) attrs.pads = pads;
  if (groups) attrs.group = groups;
  return {attrs, kernel, dims: kernel.map((k, i) => (k - 1) * dilations[i] + (space < 3 && g.chance(10) ? g.int(10, 30) : g.int(1, 9)))};
}
function conv(g, space) {
  const group = g.pick([1, 1, 1, 2, 3, g.int(2, 40)]), w = windows(g, space, true, group === 1 && g.chance(60) ? 0 : group, true), depth = group === 1 ? g.pick([g.size(), g.size(), g.size(), 4 * g.int(1, 12)]) : g.pick([1, 1, 2, g.int(3, 20)]);
  const out = group * g.pick([g.int(1, 5), g.int(1, 5), g.int(1, 70)]), attrs = {...w.attrs, ...(g.chance(60) ? {kernel_shape: w.kernel} : {})};
  return {attrs, x: [g.int(1, 3), depth * group, ...w.dims], w: [out, depth, ...w.kernel], out};
}
families.Conv = (g) => {
  const c = conv(g, g.int(1, 3));
  return {opset: opset(g), half: true, constants: 50, attrs: c.attrs, inputs: [g.tensor('float', c.x), g.tensor('float', c.w), ...(g.chance(60) ? [g.tensor('float', [c.out])] : [])]};
};
families.ConvTranspose = (g) => {
  const space = g.int(1, 3), group = g.pick([1, 1, 2]), depth = g.int(1, g.chance(20) ? 40 : 4), out = g.int(1, g.chance(20) ? 40 : 4), w = windows(g, space, true, group === 1 ? 0 : group), attrs = {...w.attrs};
  if (g.chance(60)) attrs.kernel_shape = w.kernel;
  const strides = attrs.strides || w.kernel.map(() => 1);
  if (g.chance(40)) attrs.output_padding = strides.map((s) => g.int(0, s - 1));
  return {opset: opset(g), constants: 50, attrs, inputs: [g.tensor('float', [g.int(1, 2), depth * group, ...w.kernel.map(() => g.int(2, 6))]), g.tensor('float', [depth * group, out, ...w.kernel]), ...(g.chance(60) ? [g.tensor('float', [out * group])] : [])]};
};
families.ImageScaler = (g) => {
  const dims = g.dims(4), bias = Array.from({length: dims[1]}, () => Math.fround(g.next() * 4 - 2));
  return {opset: g.int(7, 9), inputs: [g.tensor('float', dims)], attrs: {...(g.chance(80) ? {scale: {f: Math.fround(g.next() * 2)}} : {}), bias: {floats: bias}}};
};
families.Crop = (g) => {
  const dims = g.dims(4), left = g.int(0, dims[3] - 1), top = g.int(0, dims[2] - 1);
  const attrs = {border: [left, top, g.int(0, dims[3] - 1 - left), g.int(0, dims[2] - 1 - top)]};
  if (g.chance(40)) attrs.scale = [g.int(1, dims[2] - top), g.int(1, dims[3] - left)];
  return {opset: g.int(7, 9), inputs: [g.tensor('float', dims)], attrs};
};
const scale = (g, dims = []) => g.fill('float', dims, () => Math.fround(0.01 + g.next() * 0.1));
const zero = (g, t, d = []) => g.ints(t, d, t === 'int8' ? -20 : 100, t === 'int8' ? 20 : 140);
families.ConvInteger = (g) => {
  const c = conv(g, g.int(1, 2)), tx = 'uint8';
  return {opset: opset(g), constants: 50, attrs: c.attrs, inputs: [g.tensor(tx, c.x), g.tensor('uint8', c.w), ...(g.chance(60) ? [zero(g, tx), ...(g.chance(50) ? [zero(g, 'uint8')] : [])] : [])]};
};
families.QLinearConv = (g) => {
  const c = conv(g, g.int(1, 2)), tx = g.pick(['uint8', 'int8']), tw = tx === 'int8' ? 'int8' : g.pick(['int8', 'uint8']), per = g.chance(50) ? [c.out] : [];
  const k = c.w.slice(1).reduce((a, b) => a * b, 1), zw = zero(g, tw, per);
  zw.data.fill(zw.data[0]);
  return {opset: opset(g), constants: 70, fixed: [3, 4, 5], steps: 1, attrs: c.attrs, inputs: [g.tensor(tx, c.x), scale(g), zero(g, tx), g.tensor(tw, c.w), scale(g, per), zw, g.scalar('float', Math.fround(0.05 + g.next() * k)), zero(g, tx),
                                                                                              ...(g.chance(50) ? [g.ints('int32', [c.out], -2000, 2000)] : [])]};
};
const pool = (g, dilates) => {
  const w = windows(g, g.int(1, 3), dilates, 0);
  w.attrs.kernel_shape = w.kernel;
  return {w, x: [g.int(1, 2), g.int(1, g.chance(20) ? 70 : 5), ...w.dims]};
};
families.MaxPool = (g) => {
  const {w, x} = pool(g, true), type = g.pick(['float', 'float', 'double', 'int8', 'uint8']), outputs = /8/.test(type) || g.chance(70) ? 1 : 2;
  if (g.chance(40)) w.attrs.ceil_mode = g.int(0, 1);
  if (outputs === 2 && g.chance(40)) w.attrs.storage_order = g.int(0, 1);
  return {opset: opset(g), attrs: w.attrs, outputs, inputs: [g.tensor(type, x)]};
};
families.AveragePool = (g) => {
  const version = opset(g), {w, x} = pool(g, version >= 19);
  if (g.chance(40)) w.attrs.ceil_mode = g.int(0, 1);
  if (g.chance(50)) w.attrs.count_include_pad = g.int(0, 1);
  return {opset: version, attrs: w.attrs, inputs: [g.tensor('float', x)]};
};
families.LpPool = (g) => {
  const version = opset(g), {w, x} = pool(g, version >= 18);
  if (g.chance(60)) w.attrs.p = g.int(1, 3);
  if (version >= 18 && g.chance(40)) w.attrs.ceil_mode = g.int(0, 1);
  return {opset: version, attrs: w.attrs, within: 1e-3, inputs: [g.tensor('float', x)]};
};
for (const name of ['GlobalAveragePool', 'GlobalMaxPool', 'GlobalLpPool'])
  families[name] = (g) => ({opset: opset(g), attrs: name === 'GlobalLpPool' && g.chance(60) ? {p: g.int(1, 3)} : {}, inputs: [g.tensor('float', g.dims(g.int(3, 5)))]});
families.MaxUnpool = (g) => {
  const [n, c, h, w] = g.dims(4), used = new Set(), all = n * c * h * w;
  const index = g.fill('int64', [n, c, h, w], (i) => { // distinct, each inside its own plane's four times the size
    const at = i * 4 + g.int(0, 3);
    used.add(at);
    return at;
  });
  void all;
  return {opset: opset(g), attrs: {kernel_shape: [2, 2], strides: [2, 2]}, inputs: [g.tensor('float', [n, c, h, w]), index]};
};
families.Resize = (g) => {
  const version = g.pick([11, 13, 18, 19, 21]), rank = g.int(2, 4), dims = Array.from({length: rank}, (_, i) => (i < rank - 2 ? g.int(1, 3) : g.int(2, 6)));
  const mode = g.pick(['nearest', 'linear', 'linear', 'cubic']), attrs = {mode}, out = dims.map((d, i) => (i < rank - 2 ? d : g.int(1, 10)));
  if (g.chance(80)) attrs.coordinate_transformation_mode = g.pick(['half_pixel', 'align_corners', 'asymmetric', 'pytorch_half_pixel', ...(version >= 19 ? ['half_pixel_symmetric'] : [])]);
  if (mode === 'nearest' && g.chance(70)) attrs.nearest_mode = g.pick(['round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil']);
  if (mode === 'cubic' && g.chance(50)) attrs.cubic_coeff_a = {f: -0.5};
  if (mode === 'cubic' && g.chance(30)) attrs.exclude_outside = 1;
  if (mode === 'linear' && version >= 18 && g.chance(30)) attrs.antialias = 1;
  const type = g.pick(['float', 'float', 'float', 'double', 'uint8', 'int8', 'int32']);
  const roi = version >= 13 ? null : g.fill('float', [0], () => 0), scales = g.chance(50);
  if (scales) return {opset: version, constants: 80, fixed: [1, 2], attrs, within: 1e-3, steps: 1, inputs: [g.tensor(type, dims), roi, g.fill('float', [rank], (i) => (i < rank - 2 ? 1 : g.pick([0.5, 1, 1.5, 2, 2.5, 0.75, 3])))]};
  return {opset: version, constants: 80, fixed: [1, 2, 3], attrs, within: 1e-3, steps: 1, inputs: [g.tensor(type, dims), roi, version >= 13 ? null : g.fill('float', [0], () => 0), g.list(out)]};
};
families.Upsample = (g) => ({opset: 9, steps: 1, constants: 90, attrs: {mode: g.pick(['nearest', 'linear'])}, inputs: [g.tensor(g.pick(['float', 'float', 'uint8', 'int32']), g.dims(4)), g.fill('float', [4], (i) => (i < 2 ? 1 : g.int(1, 3)))]});
families.GridSample = (g) => {
  const [n, c] = g.dims(2), version = g.pick([16, 17, 20, 22]), space = version >= 20 && g.chance(30) ? 3 : 2, mode = g.pick(version >= 20 ? ['linear', 'nearest', ...(space === 2 ? ['cubic'] : [])] : ['bilinear', 'nearest', 'bicubic']);
  const at = (d) => g.tensor('float', d, 1.4);
  return {opset: version, within: 1e-3, attrs: {mode, padding_mode: g.pick(['zeros', 'border', 'reflection']), align_corners: g.int(0, 1)}, inputs: [g.tensor('float', [n, c, ...g.dims(space).map((d) => d + 1)]), at([n, ...g.dims(space), space])]};
};
families.AffineGrid = (g) => {
  const space = g.int(2, 3), n = g.int(1, 3);
  return {opset: opset(g, 21), attrs: {align_corners: g.int(0, 1)}, constants: 40, inputs: [g.tensor('float', [n, space, space + 1]), g.list([n, g.int(1, 3), ...g.dims(space).map((d) => d + 1)])]};
};
families.MaxRoiPool = (g) => {
  const [n, c] = g.dims(2), h = g.int(4, 12), w = g.int(4, 12), rois = g.int(1, 4);
  const boxes = g.fill('float', [rois, 5], (i) => (i % 5 === 0 ? g.int(0, n - 1) : i % 5 < 3 ? g.next() * 6 - 2 : 3 + g.next() * 12));
  return {opset: g.pick([7, 13, 17, 22]), attrs: {pooled_shape: [g.int(1, 4), g.int(1, 4)], spatial_scale: {f: g.pick([1, 0.5, 1 / 16])}}, inputs: [g.tensor('float', [n, c, h, w]), boxes]};
};
families.RoiAlign = (g) => {
  const [n, c] = g.dims(2), h = g.int(4, 12), w = g.int(4, 12), rois = g.int(1, 4), version = g.pick([13, 16, 22]);
  const boxes = g.fill('float', [rois, 4], (i) => (i % 4 < 2 ? g.next() * 4 : 5 + g.next() * 8));
  const attrs = {output_height: g.int(1, 4), output_width: g.int(1, 4), sampling_ratio: g.int(0, 3), spatial_scale: {f: g.pick([1, 0.5])}, mode: g.pick(['avg', 'max'])};
  if (version >= 16) attrs.coordinate_transformation_mode = g.pick(['half_pixel', 'output_half_pixel']);
  return {opset: version, attrs, within: 1e-3, inputs: [g.tensor('float', [n, c, h, w]), boxes, g.ints('int64', [rois], 0, n - 1)]};
};
families.DeformConv = (g) => {
  const group = g.pick([1, 1, 2]), depth = g.int(1, 2), out = group * g.int(1, 2), kernel = [g.int(1, 3), g.int(1, 3)], size = [g.int(3, 6), g.int(3, 6)], offsets = g.chance(30) ? group * depth : 1;
  const n = g.int(1, 2), y = size.map((s, i) => s - kernel[i] + 1), masked = g.chance(50);
  return {opset: 19, attrs: {kernel_shape: kernel, group, offset_group: offsets}, within: 1e-3, inputs: [g.tensor('float', [n, group * depth, ...size]), g.tensor('float', [out, depth, ...kernel]), g.tensor('float', [n, offsets * 2 * kernel[0] * kernel[1], ...y], 1.2),
                                                                                   ...(masked ? [g.chance(50) ? g.tensor('float', [out]) : null, g.tensor('float', [n, offsets * kernel[0] * kernel[1], ...y])] : [])]};
};
families.Col2Im = (g) => {
  const space = g.int(1, 2), block = Array.from({length: space}, () => g.int(1, 3)), image = block.map((b) => b + g.int(0, 4)), n = g.int(1, 2), c = g.int(1, 3), strides = block.map(() => g.int(1, 2));
  const spots = image.map((d, i) => Math.floor((d - block[i]) / strides[i]) + 1);
  return {opset: opset(g, 18), constants: 60, fixed: [1, 2], attrs: {strides}, inputs: [g.tensor('float', [n, c * block.reduce((a, b) => a * b, 1), spots.reduce((a, b) => a * b, 1)]), g.list(image), g.list(block)]};
};
families.NonMaxSuppression = (g) => {
  const batch = g.int(1, 2), classes = g.int(1, 3), n = g.int(1, 12), center = g.int(0, 1);
  const boxes = g.fill('float', [batch, n, 4], (i) => (center ? (i % 4 < 2 ? g.next() : 0.1 + g.next() * 0.5) : g.next()));
  return {opset: opset(g), constants: 50, attrs: g.chance(60) || center ? {center_point_box: center} : {}, inputs: [boxes, g.fill('float', [batch, classes, n], () => g.next()), ...(g.chance(90) ? [g.scalar('int64', g.int(0, 5)), g.scalar('float', g.pick([0, 0.3, 0.5])), ...(g.chance(60) ? [g.scalar('float', 0.4)] : [])] : [])]};
};

module.exports = families;
