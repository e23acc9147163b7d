// SPDX-License-Identifier: MIT
// Runs an ONNX model on ONNX Runtime over IDX images and compares with what qsim wrote. Asked by answer.js:
//   taps MODEL OUT                  adds every 8-bit activation to the graph's outputs
//   images IDX.gz COUNT OUT.npy     pixels as floats
//   cut IDX.gz FIRST COUNT OUT      these items alone, unpacked, for what reads them often
//   compare MODEL IMAGES.npy FOLDER
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');

const BATCH = 500;

function npyHeader(descr, shape) {
  let text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  text += ' '.repeat(63 - ((10 + text.length) % 64)) + '\n';
  const head = Buffer.alloc(10);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(text.length, 8);
  return Buffer.concat([head, Buffer.from(text, 'latin1')]);
}

function npyRead(file) {
  const raw = fs.readFileSync(file);
  const length = raw.readUInt16LE(8);
  const text = raw.toString('latin1', 10, 10 + length);
  const descr = /'descr': *'([^']+)'/.exec(text)[1];
  const shape = /'shape': *\(([^)]*)\)/.exec(text)[1].split(',').filter((s) => s.trim()).map(Number);
  const bytes = raw.subarray(10 + length);
  const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const kinds = {'<f4': Float32Array, '|u1': Uint8Array, '|i1': Int8Array};
  return {shape, data: new kinds[descr](copy)};
}

// Pixels / 255 as float32 with a channel axis, in one float division as qsim scales them.
function images(idx, count, out) {
  const raw = zlib.gunzipSync(fs.readFileSync(idx));
  const rows = raw.readUInt32BE(8), columns = raw.readUInt32BE(12);
  const pixels = new Float32Array(count * rows * columns);
  for (let i = 0; i < pixels.length; i++) pixels[i] = raw[16 + i] / 255;
  fs.writeFileSync(out, Buffer.concat([npyHeader('<f4', [count, 1, rows, columns]),
                                       Buffer.from(pixels.buffer)]));
}

// The header has the rank in its fourth byte, then each size; the first is the number of items.
function cut(idx, first, count, out) {
  const raw = zlib.gunzipSync(fs.readFileSync(idx)), rank = raw[3], head = Buffer.from(raw.subarray(0, 4 + 4 * rank));
  let size = 1;
  for (let i = 1; i < rank; i++) size *= head.readUInt32BE(4 + 4 * i);
  head.writeUInt32BE(count, 4);
  fs.writeFileSync(out, Buffer.concat([head, raw.subarray(head.length + first * size, head.length + (first + count) * size)]));
}

// ---- just enough of protobuf: fields of a message, and writing a length-delimited one ----

function varint(buffer, at) {
  let value = 0n;
  for (let shift = 0n;; shift += 7n) {
    const byte = buffer[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [Number(value), at];
  }
}

function fields(buffer) {
  const list = [];
  for (let at = 0; at < buffer.length;) {
    let tag, value;
    [tag, at] = varint(buffer, at);
    if ((tag & 7) === 0) {
      [value, at] = varint(buffer, at);
    } else if ((tag & 7) === 2) {
      let size;
      [size, at] = varint(buffer, at);
      value = buffer.subarray(at, at + size);
      at += size;
    } else {
      const size = (tag & 7) === 1 ? 8 : 4;
      value = buffer.subarray(at, at + size);
      at += size;
    }
    list.push({number: tag >> 3, value});
  }
  return list;
}

function number(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
  return Buffer.from([...bytes, n]);
}

function field(n, body) {
  return Buffer.concat([number(n * 8 + 2), number(body.length), body]);
}

// Data type of a QuantizeLinear's output: that of its zero point, an initializer.
function quantized(model) {
  const graph = fields(model).find((f) => f.number === 7).value;
  const types = new Map(), taps = [];
  for (const f of fields(graph).filter((g) => g.number === 5)) {
    const t = fields(f.value);
    types.set(t.find((x) => x.number === 8).value.toString(), t.find((x) => x.number === 2).value);
  }
  for (const f of fields(graph).filter((g) => g.number === 1)) {
    const n = fields(f.value);
    if (n.find((x) => x.number === 4).value.toString() !== 'QuantizeLinear') continue;
    const inputs = n.filter((x) => x.number === 1).map((x) => x.value.toString());
    taps.push({name: n.find((x) => x.number === 2).value.toString(), type: types.get(inputs[2])});
  }
  return taps;
}

// Protobuf parsers merge a message that occurs twice: a second graph with outputs only adds them.
function taps(model, out) {
  const bytes = fs.readFileSync(model);
  const outputs = quantized(bytes).map(({name, type}) => field(12, Buffer.concat([
    field(1, Buffer.from(name)), field(2, field(1, Buffer.from([8, type]))),
  ])));
  fs.writeFileSync(out, Buffer.concat([bytes, field(7, Buffer.concat(outputs))]));
}

function argmax(row) {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i;
  return best;
}

const bytesOf = (a) => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);

// Of rows of an output: elements that differ, by how much at most, and of floats whether the class is the same.
function count(s, theirs, mine, width) {
  s.elements += theirs.length;
  for (let at = 0; at < theirs.length; at += width) {
    const a = theirs.subarray(at, at + width), b = mine.subarray(at, at + width);
    if (a instanceof Float32Array) s.agree += argmax(a) === argmax(b);
    if (a.constructor === b.constructor && Buffer.compare(bytesOf(a), bytesOf(b)) === 0) continue; // most are
    for (let k = 0; k < width; k++) {
      const d = Math.abs(a[k] - b[k]);
      s.different += d !== 0;
      if (!(d <= s.largest)) s.largest = d;
    }
  }
}

async function compare(ort, model, imageFile, folder) {
  const session = await ort.InferenceSession.create(model, {intraOpNumThreads: 1});
  const x = npyRead(imageFile);
  const size = x.shape.slice(1).reduce((a, b) => a * b, 1);
  const stats = session.outputNames.map(() => ({elements: 0, different: 0, largest: 0, agree: 0, rows: 0}));
  const ours = session.outputNames.map((_, i) => npyRead(path.join(folder, `output_${i}.npy`)));
  for (let start = 0; start < x.shape[0]; start += BATCH) {
    const n = Math.min(BATCH, x.shape[0] - start);
    const input = new ort.Tensor('float32', x.data.subarray(start * size, (start + n) * size),
                                 [n, ...x.shape.slice(1)]);
    const result = await session.run({[session.inputNames[0]]: input});
    session.outputNames.forEach((name, i) => {
      const theirs = result[name].data, width = theirs.length / n, s = stats[i], base = start * width;
      count(s, theirs, ours[i].data.subarray(base, base + theirs.length), width);
      s.rows += n;
    });
  }
  const names = session.outputNames;
  await session.release();
  return names.map((name, i) => ({name, integer: !(ours[i].data instanceof Float32Array), ...stats[i]}));
}

// true: nothing differs more than docs/QUANTIZATION.md, section 14, has it: one step, rarely. The first output is the
// classifier's.
async function compared(ort, args, say) {
  let good = true;
  for (const s of await compare(ort, ...args)) {
    const top1 = 100 * s.agree / s.rows, share = s.different / s.elements;
    const fault = s.integer ? s.largest > 1 || share > 1e-3 : top1 < 99.9;
    say(`${fault ? 'BAD ' : 'ok  '} ${s.name}: ${s.elements} values, ${s.different} differ, ` +
        `largest ${s.largest}${s.integer ? ' steps' : `, same top-1 ${top1.toFixed(2)} %`}`);
    good = good && !fault;
  }
  return good;
}

module.exports = {argmax, npyRead, taps, images, cut, compared};
