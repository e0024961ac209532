// SPDX-License-Identifier: Apache-2.0
/*
 * viewer_test.mjs MAKE_PAGE: the page in a real browser, opened from a file as a user does. make_page.c
 * says what the profiles hold. What the canvas shows is asked of window.sonde; input is real: mouse
 * and keys.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, test } from "../../web/test/tap.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const ROW = 20;
const WIDTH = 1200;
const HEIGHT = 700;
const HANG_MS = 60_000;

if (!existsSync(CHROMIUM)) {
	console.log(`1..0 # SKIP no ${CHROMIUM}: apt-get install chromium`);
	process.exit(0);
}
const { chromium } = await import("../../web/node_modules/playwright-core/index.mjs");
const dir = mkdtempSync(join(tmpdir(), "sonde-viewer-"));
const files = {};
for (const kind of ["small", "inlined", "scripts", "million", "empty"]) {
	files[kind] = join(dir, `${kind}.html`);
	execFileSync(process.argv[2], [kind, files[kind]]);
}
const browser = await chromium.launch({
	executablePath: CHROMIUM,
	args: [
		"--no-sandbox",
		"--disable-gpu",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
		"--no-first-run",
		"--disable-quic",
	],
});

/** Runs `body` on a page of its own; what it asked of the network or complained about fails the test. */
async function open(kind, options, body) {
	const { hash = "", ...rest } = options;
	const context = await browser.newContext({
		viewport: { width: WIDTH, height: HEIGHT },
		reducedMotion: "no-preference",
		colorScheme: "light",
		...rest,
	});
	const page = await context.newPage();
	page.setDefaultTimeout(HANG_MS);
	const wrong = [];
	page.on("request", (r) => {
		if (!/^(file|data|blob):/.test(r.url()))
			wrong.push(`request: ${r.url()}`);
	});
	page.on("pageerror", (e) => wrong.push(`error: ${e.stack}`));
	page.on("console", (m) => {
		if (m.type() === "error" || m.type() === "warning")
			wrong.push(`console: ${m.text()}`);
	});
	try {
		await page.goto(`file://${files[kind]}${hash}`);
		if (kind !== "empty")
			await settled(page);
		await body(page);
		assert.deepEqual(wrong, []);
	} finally {
		await context.close();
	}
}

function settled(page) {
	return page.waitForFunction(() => {
		const app = window.sonde;
		const busy = document.getElementById("busy");
		return app && app.drawn.frames > 0 && !app.frame && !app.animation && busy.hidden;
	});
}

/** What is known of the node at the end of a path of names. */
function find(page, ...path) {
	return page.evaluate((names) => {
		const { graph: g, profile } = window.sonde;
		let node = 0;
		for (const name of names) {
			let next = -1;
			for (let c = g.firstChild[node]; c < g.firstChild[node + 1]; c++)
				if (profile.names[g.func[c]] === name)
					next = c;
			if (next < 0)
				return null;
			node = next;
		}
		return { node, x: g.x[node], total: g.total[node], self: g.self[node], depth: names.length };
	}, path);
}

/** The middle of a node on screen. */
async function place(page, ...path) {
	const node = await find(page, ...path);
	assert.ok(node, `${path.join(";")} is in the graph`);
	const view = await page.evaluate(() => {
		const box = document.getElementById("canvas").getBoundingClientRect();
		return { ...window.sonde.range, left: box.left, top: box.top, width: box.width,
			scroll: document.getElementById("graph").scrollTop };
	});
	/* of what is visible of it */
	const middle =
		(Math.max(node.x, view.x0) + Math.min(node.x + node.total, view.x1)) / 2;
	return [
		view.left + ((middle - view.x0) / (view.x1 - view.x0)) * view.width,
		view.top + node.depth * ROW - view.scroll + ROW / 2,
	];
}

const hover = async (page, ...path) => page.mouse.move(...(await place(page, ...path)));
const text = (page, selector) => page.locator(selector).innerText();
const state = (page) => page.evaluate(() => window.sonde.state);
const drawn = (page) => page.evaluate(() => window.sonde.drawn);
const range = (page) => page.evaluate(() => window.sonde.range);

async function click(page, ...path) {
	await page.mouse.click(...(await place(page, ...path)));
	await settled(page);
}

async function press(page, key) {
	await page.keyboard.press(key);
	await settled(page);
}

async function search(page, pattern) {
	await page.keyboard.press("/");
	await page.keyboard.type(pattern);
	await page.waitForFunction((p) => window.sonde.state.search === p, pattern);
	await settled(page);
}

/** The name and the place of the match that n and p stand on. */
function current(page) {
	return page.evaluate(() => {
		const app = window.sonde;
		const node = app.marks.current;
		return { name: app.name(node), x: app.graph.x[node], total: app.graph.total[node] };
	});
}

/* The size of what is drawn depends on the window, never on the profile. */
async function assertBounded(page) {
	const { rects, texts, rows } = await drawn(page);
	const size = await page.evaluate(() => {
		const c = document.getElementById("canvas");
		return { width: c.clientWidth, height: c.clientHeight };
	});
	assert.ok(size.height <= HEIGHT, "the canvas is not taller than the window");
	assert.ok(rows <= size.height / ROW + 2, `${rows} rows`);
	assert.ok(rects <= rows * 2 * (size.width + 1), `${rects} rectangles`);
	assert.ok(texts <= rows * (size.width / 20), `${texts} texts`);
}

test("the page opens and says what it shows", () =>
	open("small", {}, async (page) => {
		const meta = (await text(page, "#meta")).replace(/\s+/g, " ");
		assert.match(meta, /samples 1,000/);
		assert.match(meta, /recorded 10\.0 s/);
		assert.match(meta, /99 Hz/);
		assert.match(meta, /2026-11-2\d/);
		assert.match(meta, /complete 94\.0 %/);
		assert.doesNotMatch(meta, /sonde itself/);
		assert.match(await page.title(), /^Sonde · 2026/);
		assert.match(
			await page.locator("#meta .warn").getAttribute("title"),
			/6\.0 % no_rule: the unwind table does not cover an address/,
		);
		await assertBounded(page);
	}));

test("how much of a recording is sonde's own is said", () =>
	open("inlined", {}, async (page) => {
		const meta = (await text(page, "#meta")).replace(/\s+/g, " ");
		assert.match(meta, /sonde itself 100 %/);
	}));

test("every frame is in the graph with its samples", () =>
	open("small", {}, async (page) => {
		const total = async (...path) => (await find(page, ...path))?.total;
		assert.equal(await total("app"), 700);
		assert.equal(await total("app", "_start", "main", "parse"), 300);
		assert.equal(await total("app", "_start", "main", "parse", "parse", "parse"), 200);
		assert.equal(await total("app", "_start", "main", "work", "read", "vfs_read"), 150);
		assert.equal(await total("db", "[truncated: no_rule]", "loop", "Query<int, char>::run()"), 60);
		const unnamed = await page.evaluate(() => window.sonde.profile.names.filter((n) => n[0] === "["));
		assert.ok(unnamed.some((n) => /^\[kernel\+0x[0-9a-f]+\]$/.test(n)), unnamed.join());
	}));

test("hovering tells about a frame", () =>
	open("small", {}, async (page) => {
		await hover(page, "app", "_start", "main", "parse");
		const tip = (await text(page, "#tooltip")).replace(/\s+/g, " ");
		assert.match(tip, /^parse \/bin\/app /);
		assert.match(tip, /Total 300 30\.0 % Self 100 10\.0 %/);
		assert.match(tip, /of all/);
		assert.doesNotMatch(tip, /of zoomed/);
		await click(page, "app");
		await hover(page, "app", "_start", "main", "work", "memcpy");
		const zoomed = (await text(page, "#tooltip")).replace(/\s+/g, " ");
		assert.match(zoomed, /Total 250 25\.0 % 35\.7 % Self 250 25\.0 % 35\.7 %/);
		assert.match(zoomed, /Total in all stacks 450 45\.0 % Self in all stacks 450 45\.0 %/);
		await page.mouse.move(WIDTH / 2, 5);
		assert.ok(await page.locator("#tooltip").isHidden());
	}));

test("a click zooms, the crumbs lead back, Esc and 0 reset", () =>
	open("small", {}, async (page) => {
		const whole = await range(page);
		assert.deepEqual(whole, { x0: 0, x1: 1000 });
		await click(page, "app", "_start", "main", "work");
		assert.deepEqual(await range(page), { x0: 300, x1: 700 });
		assert.match(await text(page, "#crumbs"), /all[\s›]+app[\s›]+_start[\s›]+main[\s›]+work/);
		assert.match(await text(page, "#crumbs .share"), /400 samples · 40\.0 %/);
		await page.getByRole("button", { name: "app", exact: true }).click();
		await settled(page);
		assert.deepEqual(await range(page), { x0: 0, x1: 700 });
		await press(page, "Escape");
		assert.deepEqual(await range(page), whole);
		await click(page, "db");
		assert.deepEqual(await range(page), { x0: 700, x1: 960 });
		await press(page, "0");
		assert.deepEqual(await range(page), whole);
		await click(page, "db");
		await page.mouse.click(...(await place(page)));
		await settled(page);
		assert.deepEqual(await range(page), whole);
	}));

test("a search counts each sample once", () =>
	open("small", {}, async (page) => {
		await search(page, "parse");
		assert.equal(await text(page, "#matched"), "30.0 % · 3 frames");
		await press(page, "Escape");
		assert.equal((await state(page)).search, "");
		assert.equal(await text(page, "#matched"), "");
		await search(page, "^(memcpy|loop)$");
		assert.equal(await text(page, "#matched"), "51.0 % · 4 frames");
	}));

test("a search is of what is zoomed, and minds case if it has any", () =>
	open("small", {}, async (page) => {
		await search(page, "MEMCPY");
		assert.equal(await text(page, "#matched"), "0 % · 0 frames");
		assert.ok(await page.locator("#next").isHidden());
		await press(page, "Escape");
		await search(page, "memcpy");
		assert.equal(await text(page, "#matched"), "45.0 % · 2 frames");
		await page.mouse.click(...(await place(page, "app")));
		await settled(page);
		assert.match(await text(page, "#matched"), /^35\.7 %/);
	}));

test("n and p step through the matches", () =>
	open("small", {}, async (page) => {
		await search(page, "memcpy|vfs_read");
		await press(page, "Enter");
		assert.deepEqual(await current(page), { name: "memcpy", x: 300, total: 250 });
		assert.match(await text(page, "#matched"), /1 of 3$/);
		await page.locator("#graph").focus();
		await press(page, "n");
		assert.deepEqual(await current(page), { name: "vfs_read", x: 550, total: 150 });
		await press(page, "n");
		await press(page, "n");
		assert.equal((await current(page)).x, 300);
		await press(page, "p");
		assert.deepEqual(await current(page), { name: "memcpy", x: 760, total: 200 });
		/* A match outside of what is zoomed leaves the zoom. */
		await click(page, "app");
		await press(page, "p");
		await press(page, "p");
		const { x0, x1 } = await range(page);
		const match = await current(page);
		assert.ok(x0 <= match.x && match.x + match.total <= x1, `${match.x} in ${x0}..${x1}`);
	}));

test("an invalid regex says so and does no harm", () =>
	open("small", {}, async (page) => {
		await search(page, "a(b");
		assert.equal(await text(page, "#matched"), "Invalid regex");
		assert.equal(await page.locator("#search").getAttribute("aria-invalid"), "true");
		await page.keyboard.type("|main)");
		await page.waitForFunction(() => window.sonde.state.search === "a(b|main)");
		assert.equal(await page.locator("#search").getAttribute("aria-invalid"), "false");
	}));

test("i inverts: callers from the leaf up, and back", () =>
	open("small", {}, async (page) => {
		await press(page, "i");
		assert.equal(await page.locator("#invert").getAttribute("aria-pressed"), "true");
		assert.equal((await find(page, "memcpy")).total, 450);
		assert.equal((await find(page, "memcpy")).x, 0);
		assert.equal((await find(page, "memcpy", "work", "main", "_start", "app")).total, 250);
		assert.equal((await find(page, "memcpy", "loop", "_start", "db")).total, 200);
		assert.equal((await find(page, "parse")).total, 300);
		assert.equal((await find(page, "parse", "parse", "parse", "main")).total, 200);
		await click(page, "memcpy", "work");
		assert.match(await text(page, "#crumbs"), /memcpy[\s›]+work/);
		await search(page, "main");
		assert.match(await text(page, "#matched"), /^100 %/);
		await page.locator("#invert").click();
		await settled(page);
		assert.equal((await find(page, "app")).total, 700);
	}));

test("inlined functions are frames, coloured and called so", () =>
	open("inlined", {}, async (page) => {
		const tip = async () => (await text(page, "#tooltip")).replace(/\s+/g, " ");
		await hover(page, "app", "main", "get", "load");
		assert.match(await tip(), /^load inlined, \/bin\/app /);
		assert.equal((await find(page, "app", "main", "get", "load")).total, 600);
		const inlined = page.locator('#legend button[data-group="inlined"]');
		assert.match(await inlined.innerText(), /inlined\s+60\.0 %/);
		await inlined.click();
		await settled(page);
		const marked = await page.evaluate(() => {
			const { marks, profile } = window.sonde;
			return profile.names.filter((_, f) => marks.marked[f]).sort();
		});
		assert.deepEqual(marked, ["get", "load"]);
		/* The function that was called has a colour of its file. */
		const kinds = await page.evaluate(() => {
			const { profile } = window.sonde;
			return profile.names.map((n, f) => `${n} ${profile.kinds[f]}`).sort();
		});
		assert.deepEqual(kinds, ["app 32", "get 1", "get 33", "load 33", "main 1"]);
	}));

test("functions of scripts have their language's colour, their source and line", () =>
	open("scripts", {}, async (page) => {
		const tip = async () => (await text(page, "#tooltip")).replace(/\s+/g, " ");
		await hover(page, "app", "_start", "work", "app.Main.main");
		assert.match(await tip(), /^app\.Main\.main Main\.java:7, Java /);
		await hover(page, "app", "_start", "work", "app.Main.main", "app.List.get");
		assert.match(await tip(), /^app\.List\.get inlined, List\.java:80, Java /);
		await hover(page, "app", "_start", "[python: not_ready]", "[python: unknown]");
		assert.match(await tip(), /^\[python: unknown\] Python /);
		const java = page.locator('#legend button[data-group="language-Java"]');
		assert.match(await java.innerText(), /Java\s+50\.0 %/);
		const python = page.locator('#legend button[data-group="language-Python"]');
		assert.match(await python.innerText(), /Python\s+50\.0 %/);
		/* Two functions of one name in one file are two. */
		const work = await page.evaluate(() => {
			const { profile } = window.sonde;
			const all = profile.names.map((n, f) => `${n} ${profile.files[f]}:${profile.lines[f]}`);
			return all.filter((s) => s.startsWith("work"));
		});
		assert.deepEqual(work, ["work /srv/app.py:12", "work /srv/app.py:40"]);
		const hues = await page.evaluate(() => {
			const { groups } = window.sonde;
			return groups.list.map((g) => [g.key, g.hue]);
		});
		const files = hues.filter(([key]) => key !== "thread").map(([, hue]) => hue);
		assert.equal(new Set(files).size, 3, JSON.stringify(hues));
	}));

test("the legend highlights", () =>
	open("small", {}, async (page) => {
		const kernel = page.locator('#legend button[data-group="kernel"]');
		assert.match(await kernel.innerText(), /kernel\s+19\.0 %/);
		await kernel.click();
		await settled(page);
		assert.equal(await kernel.getAttribute("aria-pressed"), "true");
		assert.equal((await state(page)).group, "kernel");
		const marked = await page.evaluate(() => {
			const { marks, profile } = window.sonde;
			return profile.names.filter((_, f) => marks.marked[f]).sort();
		});
		assert.equal(marked.length, 3);
		assert.ok(marked.includes("vfs_read") && marked.includes("do_idle"));
		await kernel.click();
		await settled(page);
		assert.equal((await state(page)).group, "");
		await page.locator('#legend button[data-group="/bin/db"]').click();
		assert.match(page.url(), /g=%2Fbin%2Fdb/);
	}));

/* The colour in the canvas's lower right corner. */
const corner = (page) =>
	page.evaluate(() => {
		const c = document.getElementById("canvas");
		const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		copy.drawImage(c, 2 - c.width, 2 - c.height);
		return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
	});

test("dark and light follow the system, and the switch", async () => {
	await open("small", { colorScheme: "dark" }, async (page) => {
		assert.ok(Math.max(...(await corner(page))) < 60);
		await page.locator("#theme").click();
		await settled(page);
		assert.deepEqual(await corner(page), [255, 255, 255]);
		await page.reload();
		await settled(page);
		assert.deepEqual(await corner(page), [255, 255, 255]);
	});
	await open("small", {}, async (page) => {
		assert.deepEqual(await corner(page), [255, 255, 255]);
		await page.emulateMedia({ colorScheme: "dark" });
		await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
		await settled(page);
		assert.ok(Math.max(...(await corner(page))) < 60);
	});
});

test("the address brings the view back, and the back button undoes a zoom", () =>
	open("small", {}, async (page) => {
		await click(page, "app", "_start", "main", "work");
		await search(page, "memcpy");
		const url = page.url();
		await page.reload();
		await settled(page);
		assert.equal(page.url(), url);
		assert.deepEqual(await range(page), { x0: 300, x1: 700 });
		assert.equal(await page.locator("#search").inputValue(), "memcpy");
		assert.match(await text(page, "#matched"), /^62\.5 %/);
		await page.goBack();
		await page.waitForFunction(() => window.sonde.state.zoom.length === 0);
		await settled(page);
		assert.deepEqual(await range(page), { x0: 0, x1: 1000 });
	}));

test("an inverted and zoomed view is restored too; nonsense is left out", async () => {
	let url;
	await open("small", {}, async (page) => {
		await press(page, "i");
		await click(page, "memcpy", "loop");
		url = page.url();
	});
	await open("small", { hash: url.slice(url.indexOf("#")) }, async (page) => {
		assert.match(await text(page, "#crumbs"), /memcpy[\s›]+loop/);
		assert.ok((await state(page)).inverted);
	});
	await open("small", { hash: "#z=zzz.1&q=%25%&i=7&x" }, async (page) => {
		assert.deepEqual(await range(page), { x0: 0, x1: 1000 });
	});
});

test("the keys pan, zoom, flip and help", () =>
	open("small", {}, async (page) => {
		await press(page, "w");
		const closer = await range(page);
		assert.ok(closer.x1 - closer.x0 < 1000 && closer.x0 > 0);
		await press(page, "d");
		assert.ok((await range(page)).x0 > closer.x0);
		await press(page, "ArrowLeft");
		assert.deepEqual(await range(page), closer);
		await press(page, "s");
		assert.deepEqual(await range(page), { x0: 0, x1: 1000 });
		await press(page, "Control+f");
		assert.equal(await page.evaluate(() => document.activeElement.id), "search");
		await press(page, "Escape");
		await page.keyboard.press("?");
		assert.ok(await page.locator("#keys").isVisible());
		await page.keyboard.press("Escape");
		assert.ok(await page.locator("#keys").isHidden());
		await press(page, "f");
		assert.ok((await state(page)).upwards);
		const level = await page.evaluate(() => {
			const app = window.sonde;
			const canvas = document.getElementById("canvas");
			return app.name(app.hit(5, canvas.clientHeight - 5));
		});
		assert.equal(level, "all");
	}));

test("the wheel with Ctrl zooms at the pointer, dragging pans", () =>
	open("small", {}, async (page) => {
		await hover(page, "app", "_start", "main", "parse");
		await page.keyboard.down("Control");
		await page.mouse.wheel(0, -200);
		await page.keyboard.up("Control");
		await page.waitForFunction(() => window.sonde.range.x1 < 1000);
		const before = await range(page);
		const [x, y] = await place(page, "app", "_start", "main", "parse");
		await page.mouse.move(x, y);
		await page.mouse.down();
		await page.mouse.move(x - 150, y, { steps: 5 });
		await page.mouse.up();
		await settled(page);
		assert.ok((await range(page)).x0 > before.x0);
		assert.deepEqual((await state(page)).zoom, [], "a drag is not a click");
	}));

test("a right click offers the name", () =>
	open("small", {}, async (page) => {
		const at = await place(page, "app", "_start", "main", "work");
		await page.mouse.click(...at, { button: "right" });
		await page.getByRole("menuitem", { name: "Copy name" }).click();
		await page.locator("#toast").waitFor({ state: "visible" });
		assert.equal(await text(page, "#toast"), "Copied: work");
		await page.mouse.click(...at, { button: "right" });
		await page.getByRole("menuitem", { name: "Search for this function" }).click();
		await settled(page);
		assert.equal(await text(page, "#matched"), "40.0 % · 1 frame");
	}));

test("the canvas follows the window and the density of its pixels", () =>
	open("small", { deviceScaleFactor: 2 }, async (page) => {
		const size = () =>
			page.evaluate(() => {
				const c = document.getElementById("canvas");
				return [c.width / c.clientWidth, c.clientWidth];
			});
		const [ratio, wide] = await size();
		assert.equal(ratio, 2);
		await page.setViewportSize({ width: 500, height: 400 });
		await page.waitForFunction((w) => document.getElementById("canvas").clientWidth < w, wide);
		assert.equal((await size())[0], 2);
		const overflow = await page.evaluate(() => document.documentElement.scrollWidth);
		assert.ok(overflow <= 500, "nothing is wider than the window");
	}));

test("controls have names", () =>
	open("small", {}, async (page) => {
		const nameless = await page.evaluate(() =>
			[...document.querySelectorAll("button, input, canvas")]
				.filter((e) => !e.innerText?.trim() && !e.getAttribute("aria-label"))
				.map((e) => e.outerHTML),
		);
		assert.deepEqual(nameless, []);
	}));

test("a profile without samples says so", () =>
	open("empty", {}, async (page) => {
		await page.getByText("This profile has no samples.").waitFor();
	}));

test("a page that is not drawn on is still", () =>
	open("small", {}, async (page) => {
		const before = await drawn(page);
		await page.evaluate(async () => {
			for (let i = 0; i < 5; i++)
				await new Promise((resolve) => requestAnimationFrame(resolve));
		});
		assert.equal((await drawn(page)).frames, before.frames);
	}));

test("a million nodes: opens, draws what is visible, scrolls", () =>
	open("million", {}, async (page) => {
		const nr = await page.evaluate(() => window.sonde.graph.nr);
		assert.ok(nr >= 1_000_000, `${nr} nodes`);
		await assertBounded(page);
		const tall = await page.evaluate(() => document.getElementById("graph").scrollHeight);
		assert.ok(tall > 1000 * ROW, "a thousand levels can be scrolled to");
		await page.mouse.move(600, 400);
		await page.mouse.wheel(0, 15000);
		await page.waitForFunction(() => document.getElementById("graph").scrollTop > 14000);
		await settled(page);
		await assertBounded(page);
		assert.ok((await drawn(page)).rects < 200, "only the recursion is that deep");
	}));

test("a million nodes: zooms in few frames, each of bounded size", () =>
	open("million", {}, async (page) => {
		const { frames } = await drawn(page);
		await page.mouse.click(400, 260);
		await page.waitForFunction(() => window.sonde.state.zoom.length > 0);
		await settled(page);
		const after = await drawn(page);
		assert.ok(after.frames - frames <= 60, `${after.frames - frames} frames`);
		assert.ok(after.maxRects <= (HEIGHT / ROW) * 2 * (WIDTH + 1), `${after.maxRects} rectangles`);
		await assertBounded(page);
		await press(page, "0");
		for (const key of ["w", "w", "w", "d", "a", "s"])
			await press(page, key);
		await assertBounded(page);
	}));

test("a million nodes: searches and steps", () =>
	open("million", {}, async (page) => {
		await search(page, "method_1.*5$");
		const [, share] = /^([\d.]+) % · [\d,]+ frames$/.exec(await text(page, "#matched"));
		assert.ok(Number(share) > 0 && Number(share) <= 100);
		const { frames } = await drawn(page);
		await press(page, "Enter");
		await press(page, "Shift+Enter");
		assert.ok((await drawn(page)).frames - frames <= 120);
		assert.match((await current(page)).name, /method_1.*5$/);
		await assertBounded(page);
		const outside = await page.evaluate(() => {
			const app = window.sonde;
			const node = app.marks.current;
			return app.graph.x[node] < app.range.x0 || app.graph.x[node] > app.range.x1;
		});
		assert.ok(!outside, "the match is on screen");
	}));

test("a million nodes: inverts, and zooms among callers", () =>
	open("million", {}, async (page) => {
		await page.keyboard.press("i");
		await page.waitForFunction(() => window.sonde.graph !== window.sonde.graphs.main);
		await settled(page);
		await assertBounded(page);
		const [total, nr] = await page.evaluate(() => {
			const { graph } = window.sonde;
			return [graph.total[0], graph.nr];
		});
		assert.equal(total, await page.evaluate(() => window.sonde.profile.meta.samples));
		assert.ok(nr < 2_000_000, `${nr} nodes`);
		await page.mouse.click(200, 190);
		await page.waitForFunction(() => window.sonde.state.zoom.length > 0);
		await settled(page);
		await assertBounded(page);
		await press(page, "i");
		assert.ok(await page.evaluate(() => window.sonde.graph === window.sonde.graphs.main));
	}));

try {
	await run();
} finally {
	await browser.close();
	rmSync(dir, { recursive: true });
}
