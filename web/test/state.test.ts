// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { START, type State, decodeState, encodeState } from "../src/state.ts";
import { between, clamp, pan, zoom } from "../src/view.ts";
import { test } from "./tap.mjs";

test("state: the address brings everything back", () => {
	const states: State[] = [
		START,
		{ ...START, zoom: [0, 35, 36, 36, 36, 1000000] },
		{ zoom: [1], search: "a&b=c#%/ö", inverted: true, upwards: true, group: "/lib/x&y" },
	];
	for (const s of states)
		assert.deepEqual(decodeState(`#${encodeState(s)}`), s);
	assert.equal(encodeState(START), "");
	assert.equal(encodeState({ ...START, zoom: Array(900).fill(7) }), "z=7*900");
});

test("state: nonsense in the address is left out", () => {
	for (const hash of ["#z=..", "#z=1*x", "#q=%", "#=", "#&&", "#i=2&f=yes", "#z", "#foo=bar"])
		assert.deepEqual(decodeState(hash), START);
	assert.equal(decodeState(`#z=${"1*999999.".repeat(50)}1`).zoom.length, 100_000);
});

test("view: a range stays inside", () => {
	assert.deepEqual(clamp({ x0: -5, x1: 5 }, 100), { x0: 0, x1: 10 });
	assert.deepEqual(clamp({ x0: 95, x1: 105 }, 100), { x0: 90, x1: 100 });
	assert.deepEqual(clamp({ x0: -50, x1: 500 }, 100), { x0: 0, x1: 100 });
	assert.deepEqual(pan({ x0: 0, x1: 50 }, 0.5, 100), { x0: 25, x1: 75 });
	assert.deepEqual(pan({ x0: 50, x1: 100 }, 0.5, 100), { x0: 50, x1: 100 });
});

test("view: zooming keeps the pointer's place", () => {
	assert.deepEqual(zoom({ x0: 0, x1: 100 }, 2, 0.25, 100), { x0: 12.5, x1: 62.5 });
	assert.deepEqual(zoom({ x0: 10, x1: 60 }, 0.1, 0.5, 100), { x0: 0, x1: 100 });
	const tiny = zoom({ x0: 10, x1: 11 }, 1e9, 0.5, 100);
	assert.ok(tiny.x1 - tiny.x0 >= 0.5);
});

test("view: a transition begins and ends where it should", () => {
	const a = { x0: 0, x1: 1e6 };
	const b = { x0: 400, x1: 410 };
	assert.deepEqual(between(a, b, 1), b);
	const start = between(a, b, 0);
	assert.ok(Math.abs(start.x0) < 1e-6 && Math.abs(start.x1 - 1e6) < 1e-3);
	let width = Infinity;
	for (let t = 0; t <= 1; t += 0.1) {
		const r = between(a, b, t);
		assert.ok(r.x1 - r.x0 <= width && r.x0 >= 0 && r.x1 <= 1e6 + 1e-3);
		width = r.x1 - r.x0;
	}
});
