// SPDX-License-Identifier: MIT
// An .npz archive, stored, of [[name, .npy file]].
'use strict';

const TABLE = Array.from({length: 256}, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

function crc(bytes) {
  let c = 0xffffffff;
  for (const b of bytes) c = TABLE[(c ^ b) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

module.exports = function npz(members) {
  const parts = [], directory = [];
  let at = 0;
  for (const [name, body] of members) {
    const file = Buffer.from(`${name}.npy`), head = Buffer.alloc(30), entry = Buffer.alloc(46), sum = crc(body);
    head.writeUInt32LE(0x04034b50, 0);
    entry.writeUInt32LE(0x02014b50, 0);
    for (const [b, from] of [[head, 4], [entry, 6]]) { // version, flags, method, time, date, crc, sizes, length of the name
      b.writeUInt16LE(20, from);
      b.writeUInt16LE(33, from + 8);
      b.writeUInt32LE(sum, from + 10);
      b.writeUInt32LE(body.length, from + 14);
      b.writeUInt32LE(body.length, from + 18);
      b.writeUInt16LE(file.length, from + 22);
    }
    entry.writeUInt32LE(at, 42);
    parts.push(head, file, body);
    directory.push(entry, file);
    at += 30 + file.length + body.length;
  }
  const all = Buffer.concat(directory), end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(members.length, 8);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(all.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, all, end]);
};
