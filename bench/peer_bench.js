// SPDX-License-Identifier: MIT
// Times ONNX Runtime on models: node peer_bench.js ORT_FOLDER SECONDS BATCH MODEL...
// Prints one JSON line per model: {"file", "min_ms", "median_ms", "runs"}. Random input, fixed seed; one thread.
'use strict';
const path = require('path');

function random(n) {
  let s = 1;
  return Float32Array.from({length: n}, () => ((s = (s * 48271) % 2147483647) / 2147483647));
}

async function main() {
  const [folder, seconds, batch, ...models] = process.argv.slice(2);
  const ort = require(path.resolve(folder, 'node_modules', 'onnxruntime-node'));
  for (const file of models) {
    const session = await ort.InferenceSession.create(file, {intraOpNumThreads: 1, interOpNumThreads: 1});
    const feeds = {};
    for (const m of session.inputMetadata) {
      const shape = m.shape.map((d) => (typeof d === 'number' && d > 0 ? d : Number(batch)));
      feeds[m.name] = new ort.Tensor('float32', random(shape.reduce((a, b) => a * b, 1)), shape);
    }
    const times = [];
    const end = process.hrtime.bigint() + BigInt(Math.round(Number(seconds) * 1e9));
    for (let i = 0; i < 5 || process.hrtime.bigint() < end; i++) {
      const start = process.hrtime.bigint();
      await session.run(feeds);
      times.push(Number(process.hrtime.bigint() - start) / 1e6);
    }
    const counted = times.slice(2).sort((a, b) => a - b);
    console.log(JSON.stringify({file, min_ms: counted[0], median_ms: counted[counted.length >> 1], runs: counted.length}));
  }
}

main().catch((e) => {
  console.error(`peer: ${e.message}`);
  process.exitCode = 1;
});
