// SPDX-License-Identifier: Apache-2.0
// A load of 20 JavaScript frames: the module, f1 to f18, and leaf, which computes. `chain.js FILE`: the number of leaves done
// stands in FILE, 8 bytes.
'use strict';
const fs = require('fs');

function leaf(n) {
	let x = 0;
	for (let i = 0; i < n; i++)
		x = (x * 31 + i) & 0xffff;
	return x;
}

let source = '';
for (let i = 1; i <= 18; i++)
	source += `function f${i}(n) {\n\treturn ${i < 18 ? 'f' + (i + 1) : 'leaf'}(n) + 1;\n}\n`;
const f1 = new Function('leaf', source + 'return f1;')(leaf);

const progress = fs.openSync(process.argv[2], 'r+');
const bytes = Buffer.alloc(8);
for (let done = 1n;; done++) {
	for (let i = 0; i < 10; i++)
		f1(300000);
	bytes.writeBigUInt64LE(done);
	fs.writeSync(progress, bytes, 0, 8, 0);
}
