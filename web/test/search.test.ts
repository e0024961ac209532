// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { pixelOf } from "../src/bars.ts";
import { makeGroups, makeTheme, NR_SHADES, oklch } from "../src/colors.ts";
import { percent, seconds } from "../src/format.ts";
import { ROOT, depthFirst, layout } from "../src/graph.ts";
import {
	compile,
	functionTotals,
	markPrefix,
	markedNodes,
	markedSamples,
	matchFunctions,
} from "../src/search.ts";
import { fromFolded } from "./profiles.ts";
import { test } from "./tap.mjs";

const profile = fromFolded([
	"a;main;Parse 10",
	"a;main;Parse;Parse 5",
	"a;main;copy 20",
	"b;loop;copy 40",
	"b;read_[k] 2",
]);
const graph = layout(profile);
const marked = (pattern: string) => matchFunctions(profile, compile(pattern));

test("search: case counts only with an upper case letter", () => {
	assert.ok(compile("parse").test("Parse"));
	assert.ok(!compile("PARSE").test("Parse"));
	assert.ok(compile("\\Sarse").test("parSE"));
	assert.throws(() => compile("("), SyntaxError);
});

test("search: a sample is counted once, however often its stack matches", () => {
	assert.equal(markedSamples(graph, marked("parse"), ROOT), 15);
	assert.equal(markedSamples(graph, marked("parse|main"), ROOT), 35);
	assert.equal(markedSamples(graph, marked("."), ROOT), 77);
	assert.equal(markedSamples(graph, marked("nothing"), ROOT), 0);
});

test("search: under a zoomed node, what its callers match counts too", () => {
	const a = graph.rowStart[1];
	assert.equal(markedSamples(graph, marked("copy"), a), 20);
	const parse = graph.rowStart[3];
	assert.equal(markedSamples(graph, marked("main"), parse), 15);
	assert.equal(markedSamples(graph, marked("copy"), parse), 0);
});

test("search: matches go from left to right", () => {
	const nodes = markedNodes(graph, marked("parse|copy"), depthFirst(graph));
	assert.deepEqual([...nodes].map((i) => profile.names[graph.func[i]]), [
		"Parse", "Parse", "copy", "copy",
	]);
	const prefix = markPrefix(graph, marked("parse|copy"));
	assert.equal(prefix[graph.nr], 4);
});

test("search: a function's total counts recursion once", () => {
	const { total, self } = functionTotals(profile);
	const of = (name: string) => profile.names.indexOf(name);
	assert.equal(total[of("Parse")], 15);
	assert.equal(self[of("Parse")], 15);
	assert.equal(total[of("copy")], 60);
	assert.equal(total[of("main")], 35);
	assert.equal(self[of("main")], 0);
	assert.equal(total[of("b")], 42);
});

test("colours: groups are by weight and every function has one", () => {
	const groups = makeGroups(profile, functionTotals(profile).self);
	assert.deepEqual(
		groups.list.map((g) => `${g.label} ${g.self}`),
		["x 75", "kernel 2", "threads 0"],
	);
	const theme = makeTheme(groups, true);
	assert.equal(theme.frames.length, groups.list.length * NR_SHADES);
	for (let f = 0; f < profile.names.length; f++)
		assert.ok(theme.frames[groups.ofFunction[f] * NR_SHADES + groups.shade[f]]);
});

test("colours: oklch becomes sRGB", () => {
	assert.equal(oklch(1, 0, 0), "rgb(255, 255, 255)");
	assert.equal(oklch(0, 0, 0), "rgb(0, 0, 0)");
	assert.equal(oklch(0.62796, 0.25768, 29.234), "rgb(255, 0, 0)");
});

test("colours: a colour becomes a pixel", () => {
	assert.equal(pixelOf("rgb(1, 2, 3)"), 0xff030201);
	assert.equal(pixelOf("#0102ff"), 0xffff0201);
});

test("format: shares never lie at the ends", () => {
	assert.equal(percent(0, 10), "0 %");
	assert.equal(percent(10, 10), "100 %");
	assert.equal(percent(999999, 1000000), "> 99.99 %");
	assert.equal(percent(1, 1e6), "< 0.01 %");
	assert.equal(percent(1, 3), "33.3 %");
	assert.equal(percent(1, 0), "–");
	assert.equal(seconds(10e9), "10.0 s");
	assert.equal(seconds(125e9), "2 min 5 s");
});

test("colours: inlined functions are a group of their own, apart from the function itself", () => {
	const p = fromFolded(["a;main;get_[i] 3", "a;main;get 4"]);
	const groups = makeGroups(p, functionTotals(p).self);
	assert.deepEqual(
		groups.list.map((g) => `${g.key} ${g.self}`),
		["/bin/x 4", "inlined 3", "thread 0"],
	);
});
