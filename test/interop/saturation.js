// SPDX-License-Identifier: MIT
// The first output of a model on ONNX Runtime beside what qsim says of it.
//   saturation.js run ORT_FOLDER MODEL IMAGES.npy OUT.f32     under an emulated CPU: writes the output
//   saturation.js judge EXACT.npy OUT.f32 SAID.json           fails if SQNR or agreement is another
'use strict';
const fs = require('fs');
const path = require('path');
const {argmax, npyRead} = require('./peer.js');

async function run(folder, model, images, out) {
  const ort = require(path.resolve(folder, 'node_modules', 'onnxruntime-node'));
  const session = await ort.InferenceSession.create(model, {intraOpNumThreads: 1, interOpNumThreads: 1});
  const x = npyRead(images);
  const result = await session.run({[session.inputNames[0]]: new ort.Tensor('float32', x.data, x.shape)});
  const y = result[session.outputNames[0]].data;
  fs.writeFileSync(out, Buffer.from(y.buffer, y.byteOffset, y.byteLength));
}

function judge(exactFile, outFile, saidFile) {
  const exact = npyRead(exactFile), bytes = fs.readFileSync(outFile);
  const y = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const rows = exact.shape[0], width = y.length / rows;
  let signal = 0, noise = 0, same = 0;
  for (let i = 0; i < y.length; i++) {
    signal += exact.data[i] ** 2;
    noise += (exact.data[i] - y[i]) ** 2;
  }
  for (let r = 0; r < rows; r++) {
    const part = (a) => a.subarray(r * width, (r + 1) * width);
    same += argmax(part(exact.data)) === argmax(part(y));
  }
  const said = JSON.parse(fs.readFileSync(saidFile)).outputs[0];
  const sqnr = 10 * Math.log10(signal / noise), agreement = 100 * same / rows;
  // Null: nothing saturates. What is left above 50 dB is a step of a scale here and there.
  const expected = said.sqnr_db === null ? Infinity : said.sqnr_db;
  const share = said.agreement === null ? 100 : said.agreement;
  const good = (Math.abs(sqnr - expected) < 0.5 || Math.min(sqnr, expected) > 50) &&
               Math.abs(agreement - share) <= 0.5;
  console.log(`${good ? 'ok  ' : 'BAD '} SQNR ${sqnr.toFixed(2)} dB, said ${expected.toFixed(2)}; agreement ` +
              `${agreement.toFixed(2)} %, said ${share.toFixed(2)}`);
  process.exitCode = good ? 0 : 1;
}

const [verb, ...args] = process.argv.slice(2);
if (verb === 'run') run(...args);
else judge(...args);
