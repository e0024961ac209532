// SPDX-License-Identifier: Apache-2.0
// A module of the language's own kind, for cases.js.
function inModule(f) {
  return f();
}

inModule(globalThis.leaf);
