// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import {
	FUNC_OTHERS,
	type Graph,
	ROOT,
	depthFirst,
	depthOf,
	followPath,
	gallop,
	isBelow,
	layout,
	nodeAt,
	nrRows,
	pathOf,
} from "../src/graph.ts";
import { invert } from "../src/invert.ts";
import { runAtOnce, runInSlices } from "../src/slices.ts";
import { fromFolded } from "./profiles.ts";
import { test } from "./tap.mjs";

const profile = fromFolded([
	"a;main;parse 10",
	"a;main;parse;parse 5",
	"a;main;copy 20",
	"a;main 3",
	"b;loop;copy 40",
	"b 2",
]);

/** "name@x+total" of a level */
function level(g: Graph, d: number, names: string[]): string[] {
	const texts: string[] = [];
	for (let i = g.rowStart[d]; i < g.rowStart[d + 1]; i++) {
		const name = g.func[i] === FUNC_OTHERS ? "others" : names[g.func[i]];
		texts.push(`${name}@${g.x[i]}+${g.total[i]}`);
	}
	return texts;
}

test("graph: levels are laid out from left to right", () => {
	const g = layout(profile);
	assert.equal(nrRows(g), 5);
	assert.equal(g.total[ROOT], 80);
	assert.deepEqual(level(g, 1, profile.names), ["a@0+38", "b@38+42"]);
	assert.deepEqual(level(g, 2, profile.names), ["main@0+38", "loop@38+40"]);
	assert.deepEqual(level(g, 3, profile.names), ["parse@0+15", "copy@15+20", "copy@38+40"]);
	assert.deepEqual(level(g, 4, profile.names), ["parse@0+5"]);
});

test("graph: a place finds its node", () => {
	const g = layout(profile);
	assert.equal(nodeAt(g, 3, 14.9), g.rowStart[3]);
	assert.equal(nodeAt(g, 3, 15), g.rowStart[3] + 1);
	assert.equal(nodeAt(g, 3, 36), -1);
	assert.equal(nodeAt(g, 3, 79), -1);
	assert.equal(nodeAt(g, 9, 1), -1);
	assert.equal(nodeAt(g, -1, 1), -1);
});

test("graph: paths lead to nodes and back", () => {
	const g = layout(profile);
	const leaf = g.rowStart[4];
	const funcs = pathOf(g, leaf).map((i) => g.func[i]);
	assert.equal(followPath(g, funcs), leaf);
	assert.equal(depthOf(g, leaf), 4);
	assert.equal(followPath(g, [funcs[0], 4711]), followPath(g, [funcs[0]]));
	assert.ok(isBelow(g, leaf, g.rowStart[1]));
	assert.ok(!isBelow(g, leaf, g.rowStart[1] + 1));
});

test("graph: depth first is left to right", () => {
	const g = layout(profile);
	const names = [...depthFirst(g)].slice(1).map((i) => profile.names[g.func[i]]);
	assert.deepEqual(names, ["a", "main", "parse", "parse", "copy", "b", "loop", "copy"]);
});

test("graph: galloping finds what scanning finds", () => {
	const g = layout(fromFolded(Array.from({ length: 1000 }, (_, i) => `c;f${i} ${1 + (i % 7)}`)));
	const [lo, hi] = [g.rowStart[2], g.rowStart[3]];
	for (let from = lo; from < hi; from += 37) {
		for (const x of [0, 1, 500, 1234.5, 3999, 1e9]) {
			let want = from;
			while (want < hi && g.x[want] < x)
				want++;
			assert.equal(gallop(g, from, hi, x), Math.max(want, from));
		}
	}
});

test("invert: callers are merged from the leaf, heaviest first", () => {
	const g = runAtOnce(invert(layout(profile), { threshold: 0, path: [] }));
	assert.equal(g.pruned, false);
	assert.equal(g.total[ROOT], 80);
	assert.deepEqual(level(g, 1, profile.names), [
		"copy@0+60", "parse@60+15", "main@75+3", "b@78+2",
	]);
	assert.deepEqual(level(g, 2, profile.names), [
		"loop@0+40", "main@40+20", "main@60+10", "parse@70+5", "a@75+3",
	]);
	assert.deepEqual(level(g, 3, profile.names), ["b@0+40", "a@40+20", "a@60+10", "main@70+5"]);
	assert.deepEqual(level(g, 4, profile.names), ["a@70+5"]);
	/* What begins at a node: "b" ran by itself. */
	assert.equal(g.self[g.rowStart[2] - 1], 2);
});

test("invert: light nodes become one", () => {
	const g = runAtOnce(invert(layout(profile), { threshold: 4, path: [] }));
	assert.equal(g.pruned, true);
	assert.deepEqual(level(g, 1, profile.names), ["copy@0+60", "parse@60+15", "others@75+5"]);
	assert.equal(nrRows(g), 5);
});

test("invert: a path is built alone and whole", () => {
	const main = layout(profile);
	const parse = profile.names.indexOf("parse");
	const g = runAtOnce(invert(main, { threshold: 0, path: [parse, parse] }));
	assert.deepEqual(level(g, 1, profile.names), ["parse@0+15"]);
	assert.deepEqual(level(g, 2, profile.names), ["parse@0+5"]);
	assert.deepEqual(level(g, 3, profile.names), ["main@0+5"]);
	const none = runAtOnce(invert(main, { threshold: 0, path: [4711] }));
	assert.equal(none.nr, 1);
});

test("invert: samples are neither lost nor made, at any threshold", () => {
	let seed = 7;
	const roll = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
	const lines = Array.from({ length: 400 }, () => {
		const frames = Array.from({ length: 1 + roll(9) }, () => `f${roll(12)}`);
		return `c${roll(3)};${frames.join(";")} ${1 + roll(20)}`;
	});
	const main = layout(fromFolded(lines));
	for (const threshold of [0, 5, 50, 1e9]) {
		const g = runAtOnce(invert(main, { threshold, path: [] }));
		for (let i = 0; i < g.nr; i++) {
			let children = 0;
			for (let c = g.firstChild[i]; c < g.firstChild[i + 1]; c++) {
				assert.equal(g.parent[c], i);
				assert.equal(g.x[c], g.x[i] + children);
				children += g.total[c];
			}
			assert.ok(children <= g.total[i]);
			assert.ok(g.func[i] < FUNC_OTHERS || i === ROOT || children === 0);
		}
		assert.equal(g.total[ROOT], main.total[ROOT]);
	}
});

test("invert: a large graph is inverted in many small pieces", () => {
	const lines = Array.from({ length: 100_000 }, (_, i) => `c;m${i % 7};f${i} 1`);
	const work = invert(layout(fromFolded(lines)), { threshold: 0, path: [] });
	let pieces = 0;
	while (!work.next().done)
		pieces++;
	assert.ok(pieces > 40, `${pieces} pieces`);
});

test("invert: the number of nodes is bounded", () => {
	const lines = Array.from({ length: 200 }, (_, i) => `c;g${i % 17};f${i};h${i % 5} 1`);
	const g = runAtOnce(invert(layout(fromFolded(lines)), { threshold: 0, path: [], maxNodes: 50 }));
	assert.ok(g.pruned);
	assert.ok(g.nr < 300);
});

test("slices: work yields to the page, and stops when aborted", async () => {
	const abort = new AbortController();
	let steps = 0;
	function* forever(): Generator<number, never, void> {
		for (;;) {
			steps++;
			yield 0;
		}
	}
	setTimeout(() => abort.abort(), 20);
	assert.equal(await runInSlices(forever(), abort.signal), undefined);
	assert.ok(steps > 0);
});
