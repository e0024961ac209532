// SPDX-License-Identifier: Apache-2.0
// A module of WebAssembly, made by hand: run() and what that calls, in turn, down to the imported js.leaf(); and spin(), whose
// callee calls js.leaf() once and goes on for ever.
'use strict';

const RUN = 1, GROESSE = 2, INNERMOST = 3, SPINNING = 4, SPIN = 5;
const ID_TYPE = 1, ID_IMPORT = 2, ID_FUNCTION = 3, ID_EXPORT = 7, ID_CODE = 10, ID_CUSTOM = 0;
const END = 0x0b, CALL = 0x10, DROP = 0x1a, LOOP = 0x03, BRANCH = 0x0c, UNREACHABLE = 0x00, VOID = 0x40, I32 = 0x7f;

const counted = (bytes) => [bytes.length, ...bytes];
const text = (s) => counted([...Buffer.from(s)]);
const list = (items) => [items.length, ...[].concat(...items)];
const section = (id, bytes) => [id, ...counted(bytes)];
const body = (...code) => counted([0, ...code, END]);

// With names of functions, or without. No part of it has 128 bytes: a number is a byte.
function make(named) {
  const names = [[0, 'leaf'], [RUN, 'run'], [GROESSE, 'größe'], [SPINNING, 'spinning'], [SPIN, 'spin']];
  return Uint8Array.from([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(ID_TYPE, list([[0x60, 0, 1, I32]])),
    ...section(ID_IMPORT, list([[...text('js'), ...text('leaf'), 0, 0]])),
    ...section(ID_FUNCTION, list([[0], [0], [0], [0], [0]])),
    ...section(ID_EXPORT, list([[...text('run'), 0, RUN], [...text('spin'), 0, SPIN]])),
    ...section(ID_CODE, list([body(CALL, GROESSE), body(CALL, INNERMOST), body(CALL, 0),
                              body(CALL, 0, DROP, LOOP, VOID, BRANCH, 0, END, UNREACHABLE), body(CALL, SPINNING)])),
    ...(named ? section(ID_CUSTOM, [...text('name'), ...section(0, text('a module')),
                                    ...section(1, list(names.map(([i, name]) => [i, ...text(name)])))]) : []),
  ]);
}

module.exports = {make};
