// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope_test.mjs DIR: npm's speedscope, in a real browser, opens what sonde wrote: DIR/timed and
 * DIR/counted.speedscope.json, DIR/recording.folded, .perf and .pb.gz, all of one recording. What it
 * read is what its own "Export" saves: it has to be the stacks and sums of DIR/recording.folded.
 * DIR/expect.json: { "functions": one of them is at the table's top, "period_ns": of a sample }.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { run, test } from "../../web/test/tap.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const RELEASE = new URL("node_modules/speedscope/dist/release/", import.meta.url);
const HANG_MS = 60_000;

if (!existsSync(CHROMIUM)) {
	console.log(`1..0 # SKIP no ${CHROMIUM}: apt-get install chromium`);
	process.exit(0);
}
const { chromium } = await import("../../web/node_modules/playwright-core/index.mjs");
const dir = process.argv[2];
const read = (name) => readFileSync(join(dir, name));
const expected = JSON.parse(read("expect.json"));
const browser = await chromium.launch({
	executablePath: CHROMIUM,
	args: ["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
		"--disable-background-networking", "--disable-component-update", "--no-first-run"],
});

/** Opens a file as `speedscope FILE` does it, until its table has a row that is expected; what the viewer's "Export" saves. */
async function open(name) {
	const context = await browser.newContext({ acceptDownloads: true });
	const page = await context.newPage();
	const wrong = [];
	page.setDefaultTimeout(HANG_MS);
	page.on("pageerror", (e) => wrong.push(e.stack));
	page.on("console", (m) => m.type() === "error" && wrong.push(m.text()));
	const script = join(dir, `${name}.load.js`);
	const words = [name, read(name).toString("base64")].map((word) => JSON.stringify(word));
	writeFileSync(script, `speedscope.loadFileFromBase64(${words})`);
	try {
		await page.goto(`${RELEASE}index.html#localProfilePath=${script}`);
		await page.getByText("Sandwich").click();
		await page.getByText(new RegExp(expected.functions.join("|"))).first().waitFor();
		const [download] = await Promise.all([
			page.waitForEvent("download"),
			page.keyboard.press("Control+s"),
		]);
		const saved = JSON.parse(readFileSync(await download.path()));
		assert.deepEqual(wrong, []);
		return saved;
	} finally {
		await context.close();
	}
}

const add = (sums, key, n) => sums.set(key, (sums.get(key) ?? 0) + n);

/** By stack "outer;inner": how much; over all threads. */
function sumsOf(saved) {
	const sums = new Map();
	for (const profile of saved.profiles) {
		assert.equal(profile.type, "evented");
		const stack = [];
		let since = profile.startValue;
		for (const { type, frame, at } of profile.events) {
			const name = saved.shared.frames[frame].name;
			if (at > since && stack.length)
				add(sums, stack.join(";"), at - since);
			since = at;
			if (type === "O")
				stack.push(name);
			else
				assert.equal(stack.pop(), name, "what opened last closes first");
		}
		assert.equal(stack.length, 0);
	}
	return sums;
}

/** The truth; `plain`: without comms and marks. */
function folded(plain) {
	const sums = new Map();
	for (const line of read("recording.folded").toString().trim().split("\n")) {
		const space = line.lastIndexOf(" ");
		const frames = line.slice(0, space).split(";");
		const stack = plain ? frames.slice(1).map((f) => f.replace(/_\[[ki]\]$/, "")) : frames;
		if (stack.length)
			add(sums, stack.join(";"), Number(line.slice(space + 1)));
	}
	return sums;
}

const sorted = (sums) => [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
const total = (sums) => [...sums.values()].reduce((a, b) => a + b, 0);

const ajv = new Ajv({ allErrors: true, strict: false });
const schema = JSON.parse(readFileSync(new URL("file-format-schema.json", RELEASE)));
const validate = ajv.compile(schema);

for (const name of ["timed.speedscope.json", "counted.speedscope.json"])
	test(`${name} is valid by speedscope's schema`, () => {
		assert.ok(validate(JSON.parse(read(name))), JSON.stringify(validate.errors?.slice(0, 3)));
	});

test("the schema check can fail", () => {
	const broken = JSON.parse(read("timed.speedscope.json"));
	broken.profiles[0].unit = "samples";
	assert.ok(!validate(broken));
});

test("speedscope opens counted stacks: the sums are exactly those of folded text", async () => {
	const saved = await open("counted.speedscope.json");
	const sums = sumsOf(saved);
	for (const [stack, n] of sums)
		sums.set(stack, Math.round(n / expected.period_ns));
	assert.deepEqual(sorted(sums), sorted(folded(true)));
});

test("speedscope opens stacks over time: they are those of folded text", async () => {
	const saved = await open("timed.speedscope.json");
	const sums = sumsOf(saved);
	const truth = folded(true);
	for (const [stack, ns] of sums) {
		assert.ok(truth.has(stack), `${stack} is in the folded text`);
		const most = 1.5 * expected.period_ns * truth.get(stack);
		assert.ok(ns <= most + 1, `${stack}: ${ns} ns are at most ${most}`);
	}
	assert.equal(sums.size, truth.size);
	assert.ok(JSON.parse(read("timed.speedscope.json")).profiles.every((p) => p.type === "evented"));
});

test("speedscope opens folded text", async () => {
	const saved = await open("recording.folded");
	assert.deepEqual(sorted(sumsOf(saved)), sorted(folded(false)));
});

test("speedscope opens perf text: the stacks are those of folded text", async () => {
	const saved = await open("recording.perf");
	/* It calls what has no name "??? (file)", or, if the file is "/x (deleted)", something else. */
	const unnamed = (stack) =>
		stack
			.split(";")
			.map((f) => f.replace(/^(\?\?\? \(.*\)|\[unknown\] \(.*|\[.*\+0x[0-9a-f]+\]|\[anon\]|\[unknown\])$/, "?"))
			.join(";");
	const truth = new Set([...folded(true).keys()].map(unnamed));
	const sums = sumsOf(saved);
	for (const stack of sums.keys())
		assert.ok(truth.has(unnamed(stack)), `${stack} is in the folded text`);
	assert.ok(sums.size > 1);
});

/* It leaves frames without a name out, and so stacks that have no others. */
test("speedscope opens pprof: the sum is that of folded text", async () => {
	const saved = await open("recording.pb.gz");
	const n = Math.round(total(sumsOf(saved)) / expected.period_ns);
	const named = [...folded(true)].filter(([stack]) => !/^((\[[^;]*\+0x[0-9a-f]+\]|\[anon\]);?)*$/.test(stack));
	assert.equal(n, total(new Map(named)));
});

try {
	await run();
} finally {
	await browser.close();
}
