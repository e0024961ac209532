// SPDX-License-Identifier: Apache-2.0
/*
 * Tests as TAP for meson: test(name, function) runs them in order when run() is called; a function that
 * throws has failed. Used by the unit tests here and by the browser tests in tests/web.
 */

/** @type {Array<{ name: string, body: () => unknown }>} */
const tests = [];

/**
 * @param {string} name
 * @param {() => unknown} body
 */
export function test(name, body) {
	tests.push({ name, body });
}

/** @returns {Promise<void>} */
export async function run() {
	let failed = 0;
	console.log(`1..${tests.length}`);
	for (const [i, { name, body }] of tests.entries()) {
		try {
			await body();
			console.log(`ok ${i + 1} - ${name}`);
		} catch (error) {
			failed++;
			console.log(`not ok ${i + 1} - ${name}`);
			console.log(String(error?.stack ?? error).replace(/^/gm, "# "));
		}
	}
	process.exitCode = failed ? 1 : 0;
}
