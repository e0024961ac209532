// SPDX-License-Identifier: Apache-2.0
// Programs of JavaScript that say in what chain of functions they are: runtimes.py says how. The argument is the case, and
// what its process is called.
'use strict';
const fs = require('fs');
const vm = require('vm');
const worker = require('worker_threads');

Error.stackTraceLimit = Infinity;

const name = worker.isMainThread ? process.argv[2] : worker.workerData;
const isForeign = process.versions.deno !== undefined || process.env.CASES_FOREIGN === '1'; // not Node.js's own build
const wasmIsKnown = parseInt(process.versions.node) >= 16 && !isForeign;
const withAsync = process.env.CASES_ASYNC === '1';
const buffer = Buffer.alloc(1);
let told = false;

// What V8 itself says of the calls that are not builtins' own, outermost first; without `skipped` of the innermost ones.
function tell(low, high, skipped = 0) {
  const prepare = Error.prepareStackTrace;
  Error.prepareStackTrace = (_, sites) => sites;
  const sites = new Error().stack.slice(1 + skipped);
  Error.prepareStackTrace = prepare;
  const isWasm = (s) => /wasm-function\[|wasm:/.test(String(s));
  const isOurs = (s) => !s.isNative() && (wasmIsKnown || !isWasm(s)) && (withAsync || !s.isAsync()) && !s.isPromiseAll() && s.getLineNumber() !== null;
  const ofWasm = (s) => [s.getFunctionName() || String(s).match(/wasm-function\[\d+\]/)[0], null, 0];
  const ofScript = (s) => [s.getFunctionName(), s.getFileName() || null, s.getLineNumber()];
  const chain = sites.filter(isOurs).map((s) => isWasm(s) ? ofWasm(s) : ofScript(s)).reverse();
  const waiting = withAsync ? sites.filter((s) => isOurs(s) && s.isAsync()).length : 0;
  fs.writeSync(1, JSON.stringify({waiting, comm: process.title, chain, lines: [low, high], wasm: wasmIsKnown, worker: !worker.isMainThread, stripped: process.config.variables.node_shared === true, foreign: isForeign}) + '\n');
  fs.writeSync(1, JSON.stringify({ready: process.pid}) + '\n');
  while (fs.readSync(0, buffer, 0, 1) > 0);
}

function leaf() {
  let x = 0;
  if (!told) {
    told = true;
    tell(35, 51);
  }
  for (;;) {
    x = (x + 3) % 1000;
    if (x % 7 === 3)
      x += Math.sqrt(x) | 0;
    if (x === 11)
      x = [x, 2, 5].length + 12;
    if (x === 15)
      x = ('' + x).length + 20;
    // A line that is longer
    x = x | 0;
  }
}

// Called again and again, and so compiled, with what it calls.
function short(n) {
  let x = 0;
  if (!told) {
    told = true;
    tell(54, 66);
  }
  for (let i = 0; i < n; i++) {
    x = (x + i * 3) % 1000;
    if (i % 7 === 3)
      x += Math.sqrt(i);
  }
  return x;
}

class Thing {
  constructor(next) {
    this.next = next;
    if (next === 0)
      leaf();
  }

  method(n) {
    return this.inner(n);
  }

  inner(n) {
    return Thing.fixed(n);
  }

  static fixed(n) {
    return new Thing(n).value;
  }

  get value() {
    return this.next;
  }
}

class Other extends Thing {
  constructor() {
    super(1);
    this.number = this.value;
  }

  get value() {
    return leaf();
  }
}

function hotInner(n) {
  return short(n) + 1;
}

const hotArrow = (n) =>
  hotInner(n + 1);

class Hot {
  call(n) {
    return [n].map((v) => hotArrow(v))[0];
  }
}

function hot() {
  const h = new Hot();
  for (;;)
    h.call(2000);
}

// Calls that compiled code makes within what it has inlined.
const words = Array.from({length: 200}, (_, i) => ({word: 'word ' + i}));

function textOf(n) {
  if (!told) {
    told = true;
    tell(126, 131);
  }
  return JSON.stringify(words).length + n;
}

const textArrow = (n) =>
  textOf(n) + 1;

class Texts {
  all(n) {
    return [n].map((v) => textArrow(v))[0];
  }
}

function hotCalls() {
  const t = new Texts();
  for (;;)
    t.all(1);
}

function recursion(n) {
  if (n === 0)
    return leaf();
  return recursion(n - 1) + 1;
}

function* generator() {
  yield 1;
  yield leaf();
}

async function later() {
  await null;
  await inner();
}

async function inner() {
  await new Promise((resolve) => setImmediate(resolve));
  leaf();
}

// What it allocates makes the collector move the functions that are at work: they are as young as their first call.
function allocating() {
  let kept = [];
  if (!told) {
    told = true;
    tell(171, 182);
  }
  for (let i = 0;; i++) {
    kept.push({at: i, text: 'number ' + i, next: kept[i - 1]});
    if (kept.length > 50000)
      kept = [];
  }
}

function moving(depth) {
  const young = (n) =>
    n === 0 ? allocating() : moving(n - 1);
  return young(depth);
}

// Functions that are made, compiled, called and dropped: whoever is below b17 is a17. With --expose-gc they are collected often,
// and others take their place.
function churn() {
  for (let i = 0;; i++) {
    if (i % 300 === 0 && globalThis.gc)
      gc();
    const made = new Function('short', `return function a${i}() {
  return (function b${i}() { return short(300) + ${i}; })();
}`);
    const a = made(short);
    for (let k = 0; k < 20; k++)
      a(k);
  }
}

// Closures of eight pairs of functions that stay: whoever is below b7 is a7, and has the place in memory that another one had
// before the last collection.
function closures() {
  const makers = [...Array(8)].map((_, i) => new Function('short', `return () => {
  const inner = function b${i}() { return short(300) + ${i}; };
  return function a${i}() { return inner() + 1; };
}`)(short));
  for (let x = 1;;) {
    x = (x * 75 + new Array(2000).length) % 65537;
    const a = makers[x % 8]();
    for (let k = 0; k < 5; k++)
      a();
  }
}

// Functions of a module of WebAssembly, which calls `leaf`.
function wasm(named, leaf) {
  const module = new WebAssembly.Module(require('./wasm.js').make(named));
  return new WebAssembly.Instance(module, {js: {leaf}}).exports;
}

function imported() {
  leaf();
  return 1;
}

function callsWasm(named) {
  return wasm(named, imported).run();
}

// Compiled with all that it calls, before it tells, when the innermost one begins to work so much.
function hotWasm(work) {
  let calls = 0;
  const {run} = wasm(true, function counting() {
    return calls++ < 20000 ? 0 : short(work);
  });
  for (;;)
    run();
}

// What it calls goes on for ever in the module itself.
function spinsInWasm(named) {
  return wasm(named, function telling() { tell(0, 0, 1); }).spin();
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

// Waits, and is at work then.
async function works() {
  await tick();
  leaf();
}

class Waiting {
  async method(what) {
    try {
      return await what();
    } finally {
      told = true;
    }
  }
}

async function waits(what) {
  const waiting = new Waiting();
  await waiting.method(what);
  return 1;
}

async function* yields(what) {
  yield 1;
  await what();
}

async function iterates(what) {
  for await (const x of yields(what))
    told = told || x > 2;
}

async function catches() {
  try {
    await tick().then(() => {
      throw new Error('caught');
    });
  } catch (e) {
    leaf();
  }
}

async function returnsPromise(what) {
  return what();
}

// Who waits for a function, in each way: Error.stack has these as "at async NAME".
const awaits = {
  plain: () => waits(works),
  deep: () => [...Array(30)].reduce((what) => async function again() {
    await what();
  }, works)(),
  arrow: () => (async () => {
    await waits(async () => {
      await works();
    });
  })(),
  all: () => waits(() => Promise.all([tick(), works()])),
  settled: () => waits(() => Promise.allSettled([tick(), works()])),
  any: () => waits(() => Promise.any([works(), works()])),
  race: () => waits(() => Promise.race([works()])),
  then: () => waits(() => works().then((x) => x)),
  finally: () => waits(() => works().finally(() => 1)),
  generator: () => iterates(works),
  rejected: () => waits(catches),
  returned: () => waits(() => returnsPromise(works)),
  several: () => {
    const p = works();
    waits(() => p);
    waits(() => p);
  },
  nobody: () => {
    works();
  },
  settling: async () => {
    await 1;
    leaf();
  },
};

// outer()'s optimized code is taken away while inner(), which is inlined there, calls something.
function deoptimized(parameter, calls) {
  require('v8').setFlagsFromString('--allow-natives-syntax');
  globalThis.leaf = leaf;
  vm.runInThisContext(`let isLast = false;
function takeAway() {
  if (isLast)
    %DeoptimizeFunction(outer);
}
function inner(n) {
  takeAway();
  return isLast ? leaf() : n + 1;
}
function outer(${parameter}) {
  return ${calls};
}
%NeverOptimizeFunction(takeAway);
%PrepareFunctionForOptimization(inner);
%PrepareFunctionForOptimization(outer);
for (let i = 0; i < 10; i++)
  outer(i);
%OptimizeFunctionOnNextCall(outer);
outer(1);
isLast = true;
outer(2);`, {filename: '/nowhere/deoptimized.js'});
}

const cases = {
  plain: () => leaf(),
  hot: () => hot(),
  'hot-calls': () => hotCalls(),
  recursion: () => recursion(300),
  methods: () => new Thing(1).method(0),
  getters: () => new Other(),
  sort: () => [3, 1, 2].sort((a, b) => leaf() || a - b),
  replace: () => 'abc'.replace(/b/, function replaced() {
    return leaf();
  }),
  json: () => JSON.parse('{"a": [1]}', function reviver() {
    return leaf();
  }),
  proxied: () => new Proxy({}, {get: function trap() {
    return leaf();
  }}).anything,
  generator: () => {
    for (const x of generator())
      told = told || x > 2;
  },
  evaluated: () => {
    globalThis.leaf = leaf;
    (0, eval)('function inEval() {\n  return leaf();\n}\ninEval();');
  },
  script: () => {
    globalThis.leaf = leaf;
    vm.runInThisContext('\nfunction grüße() {\n  leaf();\n}\n\ngrüße();', {filename: '/nowhere/größe.js', lineOffset: 10});
  },
  applied: () => Reflect.apply(function bound() {
    leaf();
  }.bind(null), null, [1, 2, 3]),
  timer: () => setTimeout(function ticked() {
    leaf();
  }, 1),
  async: () => later(),
  worker: () => leaf(),
  ...Object.fromEntries(Object.entries(awaits).map(([name, run]) => ['await-' + name, run])),
  // Not in all versions: `secret` is syntax that old ones do not know.
  secret: () => new (require('./secret.js').Secret)().call(leaf),
  module: () => {
    globalThis.leaf = leaf;
    import('./chain.mjs');
  },
  locals: () => {
    globalThis.leaf = leaf;
    const all = Array.from({length: 80}, (_, i) => 'v' + i);
    vm.runInThisContext(`function manyLocals() {
  let ${all.join(' = 1, ')} = 2;
  return (function inner() { return leaf() + ${all.join(' + ')}; })();
}
manyLocals();`, {filename: '/nowhere/locals.js'});
  },
  // V8 has made frames of their own of what called a function that was inlined there; `resumed`: also of a builtin that was.
  deoptimized: () => deoptimized('n', 'inner(n) + 1'),
  resumed: () => deoptimized('...list', 'list.map(inner)'),
  moving: () => moving(20),
  churn: () => churn(),
  closures: () => closures(),
  wasm: () => callsWasm(true),
  nameless: () => callsWasm(false),
  'hot-wasm': () => hotWasm(2000),
  'busy-wasm': () => hotWasm(4),
  spin: () => spinsInWasm(true),
  'spin-nameless': () => spinsInWasm(false),
  // C++ that JavaScript calls, and that calls it back, twice.
  native: () => {
    const {callBack} = require(process.env.CASES_ADDON);
    callBack(function calledBack() {
      callBack(function calledAgain() {
        return leaf();
      });
    });
  },
};

if (name === 'worker' && worker.isMainThread) {
  process.title = 'js-worker';
  new worker.Worker(__filename, {workerData: process.argv[3] || name});
} else {
  if (worker.isMainThread)
    process.title = 'js-' + (process.argv[3] || name);
  cases[name]();
}
