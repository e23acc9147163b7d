// SPDX-License-Identifier: MIT
// Whether qsim and ONNX Runtime compute the same: random inputs, every output compared. Asked by answer.js:
//   agree QSIM WORK MODEL [basic|disabled] [within=T] [NAME=D,D,...[:uint8|:int8]]... [NAME:VALUE]...
// A size after a name makes up floats, or bytes, of that shape, a value after it an int64 scalar.
// basic: ONNX Runtime's optimization level; above it, products of dequantized weights quantize activations.
// within: of the largest value (1e-4).
'use strict';
const fs = require('fs');
const path = require('path');
const {execFileSync} = require('child_process');

function npy(file, descr, shape, bytes) {
  let text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.map((d) => d + ',').join(' ')}), }`;
  text += ' '.repeat(63 - ((10 + text.length) % 64)) + '\n';
  const head = Buffer.alloc(10);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(text.length, 8);
  fs.writeFileSync(file, Buffer.concat([head, Buffer.from(text, 'latin1'), bytes]));
}

function npyNumbers(file) {
  const raw = fs.readFileSync(file), end = 10 + raw.readUInt16LE(8), bytes = raw.subarray(end);
  const kinds = {'<f4': Float32Array, '|u1': Uint8Array, '|i1': Int8Array, '<u2': Uint16Array, '<i2': Int16Array};
  const Kind = kinds[/'descr': '(...)'/.exec(raw.toString('latin1', 0, end))[1]];
  return new Kind(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

let state = 1;
function random(n, scale = 4) {
  return Float32Array.from({length: n}, () => ((state = (state * 48271) % 2147483647) / 1073741824 - 1) * scale);
}

function makeInput(ort, work, spec) {
  const shaped = /^([^=:]+)=([\d,]*)(?::(u?int8))?$/.exec(spec), valued = /^([^=:]+):(-?\d+)$/.exec(spec);
  if (!shaped && !valued) throw new Error(`what is '${spec}'?`);
  const name = (shaped || valued)[1], file = path.join(work, `in_${name.replace(/\W/g, '_')}.npy`);
  if (valued) {
    const data = BigInt64Array.from([BigInt(valued[2])]);
    npy(file, '<i8', [], Buffer.from(data.buffer));
    return {name, file, tensor: new ort.Tensor('int64', data, [])};
  }
  const shape = shaped[2].split(',').filter((d) => d).map(Number);
  const floats = random(shape.reduce((a, b) => a * b, 1)), type = shaped[3];
  if (type) {
    const data = Uint8Array.from(floats, (f) => (f + 4) * 32);
    npy(file, type === 'int8' ? '|i1' : '|u1', shape, Buffer.from(data.buffer));
    return {name, file, tensor: new ort.Tensor(type, type === 'int8' ? new Int8Array(data.buffer) : data, shape)};
  }
  const data = floats;
  npy(file, '<f4', shape, Buffer.from(data.buffer));
  return {name, file, tensor: new ort.Tensor('float32', data, shape)};
}

// true: every output agrees.
async function agree(ort, [qsim, work, model, ...rest], say) {
  const level = /^(basic|disabled)$/.test(rest[0]) ? rest.shift() : 'all';
  const within = /^within=/.test(rest[0]) ? Number(rest.shift().slice(7)) : 1e-4;
  const session = await ort.InferenceSession.create(model, {intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3,
                                                           graphOptimizationLevel: level});
  state = 1;
  const inputs = rest.map((s) => makeInput(ort, work, s));
  const theirs = await session.run(Object.fromEntries(inputs.map((i) => [i.name, i.tensor])));
  execFileSync(qsim, ['run', '-q', '-f', model, '--output-dir', path.join(work, 'out'),
                      ...inputs.flatMap((i) => ['--input', `${i.name}=${i.file}`])], {stdio: ['ignore', 'ignore', 'inherit']});
  let good = true;
  session.outputNames.forEach((name, i) => {
    const want = theirs[name].data, got = npyNumbers(path.join(work, 'out', `output_${i}.npy`));
    let largest = 0, apart = got.length === want.length ? 0 : Infinity;
    for (let k = 0; k < want.length; k++) {
      largest = Math.max(largest, Math.abs(want[k]));
      const d = Math.abs(want[k] - got[k]);
      apart = d <= apart ? apart : d;
    }
    const fault = !(apart <= within * Math.max(largest, 1e-3)); // a detector may find nothing at all
    say(`${fault ? 'BAD ' : 'ok  '} ${path.basename(model)} ${name} [${theirs[name].dims}]: ` +
        `${apart.toExponential(1)} apart, largest value ${largest.toExponential(1)}`);
    good = good && !fault;
  });
  await session.release();
  return good;
}

module.exports = {agree};
