// SPDX-License-Identifier: Apache-2.0
// A thread with a stack worth keeping, for every Node.js. Prints "ready" when it is there, and works until it is killed:
// its own functions are interpreted, compiled without and with optimization, one of them inlined.
'use strict';
const fs = require('fs');

function multiply(a, b) {
  return a * b % 1000003;
}

function hot(n) {
  let value = 1;
  for (let i = 0; i < n; i++)
    value = multiply(value, i) + 1;
  return value;
}

class Thing {
  constructor(next) {
    this.next = next;
  }

  key(depth) {
    return depth === 0 ? this.work() : this.next.key(depth - 1);
  }

  work() {
    for (let i = 0; i < 2000; i++)
      hot(1000);
    fs.writeSync(1, 'ready\n');
    for (;;)
      hot(1000000);
  }
}

// As a microtask, below which there is no function of Node.js's own: a case has the source of those that it shows.
Promise.resolve().then(() => [3, 1, 2].sort((a, b) => {
  const thing = new Thing(null);
  thing.next = thing;
  return thing.key(3) || a - b;
}));
