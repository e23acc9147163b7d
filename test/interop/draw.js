// SPDX-License-Identifier: MIT
// Random tensors, and models of one node, or of a few, as ONNX files. A case is
//   {op, domain, opset, attrs, inputs, outputs, left, fixed, constants, last, half, within, steps, nodes, means}
// attrs: {name: number (float: {f: number})|string|list|{floats: list}|{strings: list}|tensor}; inputs: tensors, null where left
// out; left: the outputs left out; fixed: the inputs that are constants in the file whatever is drawn, constants: how many in
// a hundred others are; last: last axes are known; half: may be computed in float16;
// nodes: [[op, inputs, outputs, attrs, domain]] in place of one node, from x0, x1, ... to y0, y1, ...; means: what is
// different in the case that ONNX Runtime is given, for an operator that it does not have.
// A subgraph is an attribute {graph: {nodes, inputs: [[name, type, dims]], outputs}}; type and dims may be left out.
'use strict';

const TYPES = {
  float: [1, Float32Array, '<f4', 'float32'], uint8: [2, Uint8Array, '|u1', 'uint8'], int8: [3, Int8Array, '|i1', 'int8'],
  uint16: [4, Uint16Array, '<u2', 'uint16'], int16: [5, Int16Array, '<i2', 'int16'], int32: [6, Int32Array, '<i4', 'int32'],
  int64: [7, BigInt64Array, '<i8', 'int64'], bool: [9, Uint8Array, '|b1', 'bool'],
  float16: [10, Uint16Array, '<f2', 'float16'], double: [11, Float64Array, '<f8', 'float64'],
  uint32: [12, Uint32Array, '<u4', 'uint32'], uint64: [13, BigUint64Array, '<u8', 'uint64'],
  uint4: [21, Uint8Array], int4: [22, Uint8Array], // packed: constants only
};
const BIG = new Set(['int64', 'uint64']);
const LOW = {uint8: 0, int8: -128, uint16: 0, int16: -300, int32: -300, int64: -300, uint32: 0, uint64: 0, bool: 0};
const HIGH = {uint8: 255, int8: 127, uint16: 300, int16: 300, int32: 300, int64: 300, uint32: 300, uint64: 300, bool: 1};
const SIZES = [1, 1, 2, 2, 3, 3, 4, 5, 6, 7];

const product = (dims) => dims.reduce((a, b) => a * b, 1);

class Draw {
  constructor(seed) {
    this.state = (seed * 2654435761 + 12345) % 4294967296;
    for (let i = 0; i < 4; i++) this.next();
  }
  next() { // xorshift
    let x = this.state | 0 || 88172645;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x >>> 0;
    return this.state / 4294967296;
  }
  int(low, high) { return low + Math.floor(this.next() * (high - low + 1)); }
  chance(percent) { return this.next() * 100 < percent; }
  pick(list) { return list[this.int(0, list.length - 1)]; }
  shuffle(list) {
    const all = [...list];
    for (let i = all.length - 1; i > 0; i--) {
      const k = this.int(0, i);
      [all[i], all[k]] = [all[k], all[i]];
    }
    return all;
  }
  some(list, least = 0) { return this.shuffle(list).slice(0, this.int(least, list.length)); }
  // A size: small as a rule, sometimes of more elements than a vector or a tile has.
  size(most = 70) { return this.chance(8) ? this.int(8, most) : this.pick(SIZES); }
  dims(rank) { // at most one axis is long
    const all = Array.from({length: rank}, () => this.pick(SIZES));
    if (rank && this.chance(12)) all[this.int(0, rank - 1)] = this.int(8, 100);
    return all;
  }
  axis(rank) { return this.int(-rank, rank - 1); }
  fill(type, dims, make) {
    const data = new TYPES[type][1](product(dims));
    for (let i = 0; i < data.length; i++) data[i] = BIG.has(type) ? BigInt(Math.trunc(make(i))) : make(i);
    return {type, dims, data};
  }
  // Floats from -size to size, with some that are alike; integers of the type's range, cut to 300.
  tensor(type, dims, size = 3, around = 0) {
    if (type === 'float' || type === 'double')
      return this.fill(type, dims, () => around + (this.chance(10) ? this.int(-2, 2) * size / 4 : (this.next() * 2 - 1) * size));
    return this.fill(type, dims, () => this.int(LOW[type], HIGH[type]));
  }
  ints(type, dims, low, high) { return this.fill(type, dims, () => this.int(low, high)); }
  list(values, type = 'int64') { return this.fill(type, [values.length], (i) => values[i]); }
  scalar(type, value) { return this.fill(type, [], () => value); }
  packed(type, dims) { // two to a byte, the last one's upper half 0
    const data = new Uint8Array(Math.ceil(product(dims) / 2));
    for (let i = 0; i < data.length; i++) data[i] = this.int(0, 255);
    if (product(dims) % 2) data[data.length - 1] &= 15;
    return {type, dims, data};
  }
  // Of `dims`, one that broadcasts with it: leading axes left out, others 1.
  narrower(dims) {
    const cut = this.chance(50) ? 0 : this.int(0, dims.length);
    return dims.slice(cut).map((d) => (this.chance(30) ? 1 : d));
  }
}

// ---- files ----

function number(n) {
  let v = BigInt.asUintN(64, BigInt(n));
  const bytes = [];
  for (; v > 127n; v >>= 7n) bytes.push(Number(v & 127n) | 128);
  return Buffer.from([...bytes, Number(v)]);
}
const field = (n, body) => {
  const b = typeof body === 'string' ? Buffer.from(body) : body;
  return Buffer.concat([number(n * 8 + 2), number(b.length), b]);
};
const whole = (n, value) => Buffer.concat([number(n * 8), number(value)]);
function real(n, value) {
  const b = Buffer.alloc(4);
  b.writeFloatLE(value);
  return Buffer.concat([number(n * 8 + 5), b]);
}
const bytesOf = (t) => Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength);

function tensorProto(t, name) {
  return Buffer.concat([...t.dims.map((d) => whole(1, d)), whole(2, TYPES[t.type][0]), field(8, name), field(9, bytesOf(t))]);
}

function attribute(name, v) {
  const head = field(1, name);
  if (typeof v === 'number') return Buffer.concat([head, whole(3, v), whole(20, 2)]);
  if (typeof v === 'string') return Buffer.concat([head, field(4, v), whole(20, 3)]);
  if (Array.isArray(v)) return Buffer.concat([head, ...v.map((x) => whole(8, x)), whole(20, 7)]);
  if ('f' in v) return Buffer.concat([head, real(2, v.f), whole(20, 1)]);
  if (v.graph) return Buffer.concat([head, field(6, subgraph(v.graph)), whole(20, 5)]);
  if (v.floats) return Buffer.concat([head, ...v.floats.map((x) => real(7, x)), whole(20, 6)]);
  if (v.strings) return Buffer.concat([head, ...v.strings.map((x) => field(9, x)), whole(20, 8)]);
  return Buffer.concat([head, field(5, tensorProto(v, '')), whole(20, 4)]);
}

function value(name, type, dims) {
  const shape = dims ? field(2, Buffer.concat(dims.map((d) => field(1, typeof d === 'string' ? field(2, d) : whole(1, d))))) : Buffer.alloc(0);
  return Buffer.concat([field(1, name), type ? field(2, field(1, Buffer.concat([whole(1, type), shape]))) : Buffer.alloc(0)]);
}

function node(op, domain, inputs, outputs, attrs) {
  return field(1, Buffer.concat([
    ...inputs.map((i) => field(1, i)), ...outputs.map((o) => field(2, o)), field(4, op),
    ...Object.entries(attrs).map(([k, v]) => field(5, attribute(k, v))), field(7, domain)]));
}

function subgraph({nodes, inputs = [], outputs}) {
  return Buffer.concat([...nodes.map(several), field(2, 'body'), ...inputs.map(([name, type, dims]) => field(11, value(name, type ? TYPES[type][0] : 0, dims))),
                        ...outputs.map((o) => field(12, value(o)))]);
}
const several = ([op, inputs, outputs, attrs = {}, domain = '']) => node(op, domain, inputs, outputs, attrs);

// The file, and what is fed: {bytes, feeds: [[name, tensor]], outputs: [name]}. Free axes, sizes left out and constants are
// drawn; half: floats of the node are float16, cast before and after.
function model(g, c) {
  const nodes = [], values = [], constants = [], feeds = [], names = [];
  const half = c.half && g.chance(12);
  c.inputs.forEach((t, i) => {
    if (!t) return names.push('');
    const name = `x${i}`, fixed = (c.fixed || []).includes(i) || TYPES[t.type].length < 4;
    if (fixed || g.chance(c.constants === undefined ? 15 : c.constants)) {
      constants.push(field(5, tensorProto(t, name)));
    } else {
      const known = g.int(0, 3);
      values.push(field(11, value(name, TYPES[t.type][0], t.dims.map((d, k) => (known === 0 || g.chance(known * 20) || (c.last && k === t.dims.length - 1) ? d : `d${i}_${k}`)))));
      feeds.push([name, t]);
    }
    if (half && t.type === 'float') {
      nodes.push(node('Cast', '', [name], [`${name}_half`], {to: 10}));
      names.push(`${name}_half`);
    } else {
      names.push(name);
    }
  });
  const outputs = Array.from({length: c.outputs || 1}, (_, i) => (c.left && c.left.includes(i) ? '' : `y${i}`));
  const made = outputs.map((o) => (half && o ? `${o}_half` : o));
  nodes.push(...(c.nodes ? c.nodes.map(several) : [node(c.op, c.domain || '', names, made, c.attrs || {})]));
  outputs.forEach((o, i) => { if (made[i] !== o) nodes.push(node('Cast', '', [made[i]], [o], {to: 1})); });
  const named = outputs.filter((o) => o);
  const graph = Buffer.concat([...nodes, field(2, 'one'), ...constants, ...values, ...named.map((o) => field(12, value(o)))]);
  const opset = c.opset || 17, imports = [field(8, whole(2, opset))];
  if (c.domain) imports.push(field(8, Buffer.concat([field(1, c.domain), whole(2, 1)])));
  const ir = opset < 9 ? 4 : opset < 15 ? 7 : opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : 11;
  return {bytes: Buffer.concat([whole(1, ir), field(7, graph), ...imports]), feeds, outputs: named, half};
}

function npy(t) {
  let text = `{'descr': '${TYPES[t.type][2]}', 'fortran_order': False, 'shape': (${t.dims.map((d) => d + ',').join(' ')}), }`;
  text += ' '.repeat(63 - ((10 + text.length) % 64)) + '\n';
  const head = Buffer.alloc(10);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(text.length, 8);
  return Buffer.concat([head, Buffer.from(text, 'latin1'), bytesOf(t)]);
}

// {type, dims, data}; type as ONNX Runtime calls it
function fromNpy(raw) {
  const at = 10 + raw.readUInt16LE(8), text = raw.toString('latin1', 10, at);
  const descr = /'descr': *'([^']+)'/.exec(text)[1];
  const dims = /'shape': *\(([^)]*)\)/.exec(text)[1].split(',').filter((s) => s.trim()).map(Number);
  const [name, row] = Object.entries(TYPES).find(([, r]) => r[2] === descr);
  const copy = raw.buffer.slice(raw.byteOffset + at, raw.byteOffset + raw.length);
  return {name, type: row[3], dims, data: new row[1](copy)};
}

module.exports = {Draw, TYPES, product, model, npy, fromNpy};
