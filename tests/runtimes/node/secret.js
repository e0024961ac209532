// SPDX-License-Identifier: Apache-2.0
// Private methods, which Node.js 12 does not know.
'use strict';

exports.Secret = class Secret {
  call(f) {
    return this.#inner(f);
  }

  #inner(f) {
    return Secret.#last(f);
  }

  static #last(f) {
    return f();
  }
};
