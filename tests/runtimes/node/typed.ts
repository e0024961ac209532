// SPDX-License-Identifier: Apache-2.0
// A program of TypeScript, which has other lines as JavaScript: as cases.js does, it says in what chain it is.
import fs from "node:fs";
import process from "node:process";

interface Thing {
  name: string;
  count: number;
}

enum Kind { One, Two }

function typedLeaf(thing: Thing): never {
  const file: string = import.meta.filename!;
  process.title = "js-typed";
  fs.writeSync(1, JSON.stringify({comm: "js-typed", chain: [[null, file, 0], ["typedCaller", file, 0], ["typedLeaf", file, 0]], lines: [0, 0],
                                  waiting: 0, wasm: false, worker: false, stripped: false, foreign: true}) + "\n");
  fs.writeSync(1, JSON.stringify({ready: process.pid}) + "\n");
  while (fs.readSync(0, new Uint8Array(1), 0, 1) > 0);
  let x: number = Kind.Two;
  for (;;)
    x = (x + thing.count) % 1000;
}

function typedCaller(thing: Thing): void {
  typedLeaf(thing);
}

try {
  typedCaller({name: new Error("lines are known from here on").stack ?? "", count: 3});
} finally {
  fs.closeSync(1);
}
