// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import { decodeBase64, decodeProfile, inflate } from "../src/data.ts";
import { test } from "./tap.mjs";

const meta = '{"samples":303}';
const good = [
	...Buffer.from("SNDF"), 2, 0, 0, 0,
	meta.length, ...Buffer.from(meta),
	4, 0, 2, 4, 2, ...Buffer.from("sh"), ...Buffer.from("main"), ...Buffer.from("/x"),
	2, 1, 2, 0, 3, 0, 12, 32, 1,
	3, 0, 1, 1, 0, 0, 0, 0, 0x80, 0x02, 1,
];

test("data: a profile is read column by column", () => {
	const p = decodeProfile(Uint8Array.from(good));
	assert.equal(p.meta.samples, 303);
	assert.deepEqual(p.names, ["sh", "main"]);
	assert.deepEqual(p.files, ["", "/x"]);
	assert.deepEqual([...p.lines], [0, 12]);
	assert.deepEqual([...p.kinds], [32, 1]);
	assert.deepEqual([...p.func], [0, 1, 1]);
	assert.deepEqual([...p.depth], [0, 1, 2]);
	assert.deepEqual([...p.self], [0, 256, 1]);
});

test("data: every cut is an error, not a hang", () => {
	for (let n = 0; n < good.length; n++)
		assert.throws(() => decodeProfile(Uint8Array.from(good.slice(0, n))));
});

test("data: what points nowhere is an error", () => {
	const bad = (at: number, value: number) => {
		const bytes = [...good];
		bytes[good.length + at] = value;
		return () => decodeProfile(Uint8Array.from(bytes));
	};
	assert.throws(bad(-8, 7), /names what it does not have/);
	assert.throws(bad(-6, 9), /above the root/);
	assert.throws(() => decodeProfile(Uint8Array.from([...good].fill(1, 4, 5))), /version 1/);
	assert.throws(() => decodeProfile(new Uint8Array(100)), /not profile data/);
});

test("data: numbers are exact up to 2^53", () => {
	const big = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]; // 2^53 - 1
	const p = decodeProfile(Uint8Array.from([...good.slice(0, -1), ...big]));
	assert.equal(p.self[2], Number.MAX_SAFE_INTEGER);
});

test("data: base64 and deflate are undone", async () => {
	const bytes = Uint8Array.from({ length: 3_000_001 }, (_, i) => (i * i) >> 3);
	const text = deflateSync(bytes).toString("base64");
	assert.deepEqual(await inflate(decodeBase64(text)), bytes);
});
