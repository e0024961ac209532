// SPDX-License-Identifier: Apache-2.0
/*
 * The page: one state (state.ts), shown. Whatever changes the state goes through go(), which writes it
 * to the address; whatever shows it follows from show(). Input is input.ts.
 */
import { type Groups, NR_SHADES, type Theme, makeGroups, makeTheme } from "./colors.ts";
import { type Profile, isInlined, languageOf } from "./data.ts";
import { type DrawCounts, Painter, ROW_HEIGHT, type Scene, levelTop, nodeLabel } from "./draw.ts";
import { count, date, percent, plural, seconds } from "./format.ts";
import {
	FUNC_OTHERS,
	type Graph,
	ROOT,
	depthOf,
	followPath,
	isBelow,
	layout,
	lowerBound,
	nodeAt,
	nrRows,
	pathOf,
} from "./graph.ts";
import { Graphs, functionPath } from "./graphs.ts";
import { Marks } from "./marks.ts";
import { functionTotals, markedSamples } from "./search.ts";
import { START, type State, decodeState, encodeState } from "./state.ts";
import { showCrumbs } from "./ui/crumbs.ts";
import { byId, copyText, make } from "./ui/dom.ts";
import { Legend } from "./ui/legend.ts";
import type { MenuItem } from "./ui/menu.ts";
import { ThemeSwitch } from "./ui/theme.ts";
import type { TooltipContent } from "./ui/tooltip.ts";
import { type Range, between, clamp, easeOut } from "./view.ts";

const ZOOM_MS = 180;
const FONT = '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
/** A match narrower than this is zoomed to. */
const MATCH_MIN_PX = 40;

/** What was drawn so far: for tests. */
export interface Drawn extends DrawCounts {
	frames: number;
	maxRects: number;
}

export class App {
	readonly themeSwitch: ThemeSwitch;
	readonly drawn: Drawn = { frames: 0, maxRects: 0, rects: 0, texts: 0, rows: 0 };
	readonly total: number;
	state: State = START;
	graph: Graph;
	zoomNode = ROOT;
	range: Range;
	hover = -1;

	private readonly groups: Groups;
	private readonly totals: { total: Float64Array; self: Float64Array };
	private readonly graphs: Graphs;
	private readonly marks: Marks;
	private readonly legend: Legend;
	private readonly painter: Painter;
	private readonly canvas = byId<HTMLCanvasElement>("canvas");
	private readonly scroller = byId("graph");
	private readonly content = byId("content");
	private readonly rootLabel: string;
	private theme: Theme;
	private levels = 1;
	private zoomDepth = 0;
	private frame = 0;
	private opened = false;
	private animation: { from: Range; to: Range; start: number } | null = null;

	constructor(readonly profile: Profile) {
		const main = layout(profile);
		this.total = main.total[ROOT];
		this.rootLabel = `all · ${plural(this.total, "sample")}`;
		this.graph = main;
		this.range = { x0: 0, x1: this.total };
		this.graphs = new Graphs(main, (done) => this.showBusy(done));
		this.totals = functionTotals(profile);
		this.groups = makeGroups(profile, this.totals.self);
		this.marks = new Marks(profile, this.groups);
		this.legend = new Legend(this.groups, this.total, (key) =>
			this.go({ group: this.state.group === key ? "" : key }),
		);
		const ctx = this.canvas.getContext("2d", { alpha: false });
		if (!ctx)
			throw new Error("this browser has no canvas");
		this.painter = new Painter(ctx);
		this.themeSwitch = new ThemeSwitch(() => this.showTheme());
		this.theme = makeTheme(this.groups, this.themeSwitch.dark);
		this.showMeta();
	}

	start(): void {
		window.addEventListener("resize", () => this.resize());
		this.scroller.addEventListener("scroll", () => this.requestDraw());
		window.addEventListener("hashchange", () => this.fromAddress());
		this.resize();
		this.fromAddress();
	}

	/* State */

	private fromAddress(): void {
		const state = decodeState(location.hash);
		if (this.opened && encodeState(state) === encodeState(this.state))
			return;
		byId<HTMLInputElement>("search").value = state.search;
		void this.show(state, this.opened);
		this.opened = true;
	}

	/** Changes the state; `replace` keeps the back button from stepping through it. */
	go(change: Partial<State>, replace = false): void {
		const state = { ...this.state, ...change };
		const hash = `#${encodeState(state)}`;
		if (encodeState(state) !== encodeState(this.state)) {
			if (replace)
				history.replaceState(null, "", hash);
			else
				history.pushState(null, "", hash);
		}
		void this.show(state, true);
	}

	private async show(state: State, animate: boolean): Promise<void> {
		const { graphs } = this;
		const turned = state.inverted !== this.state.inverted;
		this.state = state;
		graphs.cancel();
		const ready = graphs.ready(state.inverted, state.zoom);
		if (ready)
			this.showGraph(ready, animate && !turned);
		if (!graphs.wantsBuild(state.inverted, state.zoom))
			return;
		const built = await graphs.build(state.zoom);
		if (built && this.state === state)
			this.showGraph(built, false);
	}

	private showGraph(graph: Graph, animate: boolean): void {
		const { state } = this;
		const changed = graph !== this.graph;
		const before = this.zoomNode;
		if (changed)
			this.hover = -1;
		this.graph = graph;
		this.zoomNode = followPath(graph, state.zoom);
		this.zoomDepth = depthOf(graph, this.zoomNode);
		this.marks.update(graph, state.search, state.group);
		if (changed || this.zoomNode !== before) {
			const to = this.nodeRange(this.zoomNode);
			this.moveTo(to, animate && !changed);
			this.updateHeight(to);
			this.reveal(this.zoomDepth);
		} else {
			this.updateHeight(this.range);
		}
		this.showControls();
		this.requestDraw();
	}

	private nodeRange(node: number): Range {
		return { x0: this.graph.x[node], x1: this.graph.x[node] + this.graph.total[node] };
	}

	/* What surrounds the graph */

	private showControls(): void {
		const { state } = this;
		byId("invert").setAttribute("aria-pressed", String(state.inverted));
		byId("flip").setAttribute("aria-pressed", String(state.upwards));
		this.legend.show(this.theme, state.group);
		showCrumbs(
			[ROOT, ...pathOf(this.graph, this.zoomNode)].map((node) => ({
				label: node === ROOT ? (state.inverted ? "all, inverted" : "all") : this.name(node),
				node,
			})),
			this.zoomNode === ROOT
				? ""
				: `${plural(this.graph.total[this.zoomNode], "sample")} · ` +
						percent(this.graph.total[this.zoomNode], this.total),
			(node) => this.zoomTo(node),
		);
		this.showMatched();
	}

	private showMatched(): void {
		const { marks } = this;
		const box = byId("matched");
		const searching = this.state.search !== "";
		const invalid = marks.error !== "";
		box.parentElement?.classList.toggle("invalid", invalid);
		byId("search").setAttribute("aria-invalid", String(invalid));
		byId("search-key").hidden = searching;
		byId("next").hidden = byId("previous").hidden = !searching || marks.nodes.length === 0;
		box.title = invalid ? marks.error : "";
		if (!searching) {
			box.textContent = "";
		} else if (invalid) {
			box.textContent = "Invalid regex";
		} else {
			box.replaceChildren(make("b", "", percent(this.matchedSamples(), this.zoomTotal())));
			const n = marks.nodes.length;
			box.append(
				marks.at < 0
					? ` · ${plural(n, "frame")}`
					: ` · ${count(marks.at + 1)} of ${count(n)}`,
			);
			box.title =
				`${count(this.matchedSamples())} of ${count(this.zoomTotal())} samples matched, ` +
				"each counted once";
		}
	}

	/** Samples that match, of the zoomed node's; the pruned graph does not know all, so ask main. */
	private matchedSamples(): number {
		const { matched } = this.marks;
		if (!matched)
			return 0;
		const whole = this.zoomNode === ROOT || this.graph.pruned;
		return whole
			? markedSamples(this.graphs.main, matched, ROOT)
			: markedSamples(this.graph, matched, this.zoomNode);
	}

	private zoomTotal(): number {
		return this.graph.pruned ? this.total : this.graph.total[this.zoomNode];
	}

	private showMeta(): void {
		const { meta } = this.profile;
		const add = (value: string, label: string, title = "", warn = false) => {
			const item = make("div", warn ? "warn" : "", make("dt", "", label), make("dd", "", value));
			item.title = title;
			byId("meta").append(item);
		};
		const when = date(meta.start_ms);
		add(count(meta.samples), meta.samples === 1 ? "sample" : "samples");
		add(seconds(meta.duration_ns), "recorded");
		add(`${count(meta.frequency_hz)} Hz`, "");
		if (when)
			add(when, "", new Date(meta.start_ms).toString());
		if (meta.samples) {
			const why = Object.entries(meta.truncated)
				.sort((a, b) => b[1].samples - a[1].samples)
				.map(([r, t]) => `${percent(t.samples, meta.samples)} ${r}: ${t.sentence}`);
			add(
				percent(meta.complete, meta.samples),
				"complete",
				["Stacks that reach the thread's first frame.", ...why].join("\n"),
				meta.complete < 0.95 * meta.samples,
			);
			const own = meta.own ?? 0;
			if (own >= 0.05 * meta.samples)
				add(percent(own, meta.samples), "sonde itself", "What the recording took of a machine that did little else.");
		}
		document.title = when ? `Sonde · ${when}` : "Sonde";
	}

	private showBusy(done: number | null): void {
		byId("busy").hidden = done === null;
		byId("busy-text").textContent = "Inverting…";
		byId<HTMLProgressElement>("busy-bar").value = done ?? 0;
	}

	private showTheme(): void {
		this.theme = makeTheme(this.groups, this.themeSwitch.dark);
		this.legend.show(this.theme, this.state.group);
		this.requestDraw();
	}

	/* Moving about */

	zoomTo(node: number): void {
		if (node === this.zoomNode) {
			this.setRange(this.nodeRange(node));
			return;
		}
		if (this.graph.func[node] !== FUNC_OTHERS)
			this.go({ zoom: functionPath(this.graph, node) });
	}

	/** Esc: first the zoom, then what is marked. */
	reset(): void {
		const whole = this.range.x0 === 0 && this.range.x1 === this.graph.total[ROOT];
		if (this.zoomNode !== ROOT) {
			this.go({ zoom: [] });
		} else if (!whole && !this.animation) {
			this.setRange(this.nodeRange(ROOT));
		} else if (this.state.search || this.state.group) {
			byId<HTMLInputElement>("search").value = "";
			this.go({ search: "", group: "" });
		}
	}

	setRange(range: Range): void {
		this.animation = null;
		this.range = clamp(range, this.graph.total[ROOT]);
		this.updateHeight(this.range);
		this.requestDraw();
	}

	private moveTo(to: Range, animate: boolean): void {
		const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
		if (!animate || still) {
			this.animation = null;
			this.range = to;
		} else {
			this.animation = { from: this.range, to, start: performance.now() };
		}
	}

	/** To the next match: it is scrolled to and, if it is too thin to see, zoomed to. */
	step(by: number): void {
		const node = this.marks.step(by);
		if (node < 0)
			return;
		if (!isBelow(this.graph, node, this.zoomNode))
			this.go({ zoom: [] });
		const g = this.graph;
		const range = this.animation?.to ?? this.range;
		const visible = g.x[node] >= range.x0 && g.x[node] + g.total[node] <= range.x1;
		const px = (g.total[node] / (range.x1 - range.x0)) * this.canvas.clientWidth;
		if (!visible || px < MATCH_MIN_PX) {
			const width = Math.max(g.total[node] * 4, 1);
			const x0 = g.x[node] + g.total[node] / 2 - width / 2;
			this.moveTo(clamp({ x0, x1: x0 + width }, g.total[ROOT]), true);
			this.updateHeight((this.animation as { to: Range } | null)?.to ?? this.range);
		}
		this.reveal(depthOf(g, node));
		this.showMatched();
		this.requestDraw();
	}

	/** Scrolls so that the level is on screen. */
	private reveal(level: number): void {
		const { scroller } = this;
		const scene = this.scene();
		const y = levelTop(scene, level);
		if (y >= 0 && y + ROW_HEIGHT <= scene.height)
			return;
		const third = this.state.upwards ? (2 * scene.height) / 3 : scene.height / 3;
		scroller.scrollTop += y - third;
	}

	/** Only as tall as what the range holds: else zooming into a flat part scrolls into nothing. */
	private updateHeight(range: Range): void {
		const g = this.graph;
		let levels = 1;
		const eps = (range.x1 - range.x0) * 1e-9;
		while (levels < nrRows(g)) {
			const end = g.rowStart[levels + 1];
			const i = lowerBound(g, g.rowStart[levels], end, range.x0 + eps);
			if (i >= end || g.x[i] >= range.x1 - eps)
				break;
			levels++;
		}
		this.levels = levels;
		this.content.style.height = `${this.contentHeight()}px`;
	}

	private contentHeight(): number {
		return Math.max(this.levels * ROW_HEIGHT + ROW_HEIGHT, this.scroller.clientHeight);
	}

	private resize(): void {
		const { canvas, scroller } = this;
		const width = scroller.clientWidth;
		const height = scroller.clientHeight;
		const ratio = window.devicePixelRatio || 1;
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		this.content.style.height = `${this.contentHeight()}px`;
		this.painter.setFont(FONT);
		this.draw();
	}

	/* Drawing */

	requestDraw(): void {
		if (!this.frame)
			this.frame = requestAnimationFrame(() => this.draw());
	}

	private draw(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		if (this.animation) {
			const { from, to, start } = this.animation;
			const t = Math.min(1, (performance.now() - start) / ZOOM_MS);
			this.range = between(from, to, easeOut(Math.max(t, 0)));
			if (t >= 1)
				this.animation = null;
			else
				this.requestDraw();
		}
		/* The box around the canvas may have changed size with the legend or the crumbs. */
		if (this.canvas.clientHeight !== this.scroller.clientHeight) {
			this.resize();
			return;
		}
		Object.assign(this.drawn, this.painter.draw(this.scene(), window.devicePixelRatio || 1));
		this.drawn.frames++;
		this.drawn.maxRects = Math.max(this.drawn.maxRects, this.drawn.rects);
	}

	scene(): Scene {
		const { marks } = this;
		return {
			graph: this.graph,
			names: this.profile.names,
			groups: this.groups,
			theme: this.theme,
			range: this.range,
			width: this.canvas.clientWidth,
			height: this.canvas.clientHeight,
			scrollTop: this.scroller.scrollTop,
			upwards: this.state.upwards,
			contentHeight: this.contentHeight(),
			marked: marks.marked,
			markPrefix: marks.prefix,
			searching: marks.matched !== null,
			zoomDepth: this.zoomDepth,
			hover: this.hover,
			current: marks.current,
			rootLabel: this.rootLabel,
		};
	}

	/* Frames */

	/** The node under a place of the canvas, or -1. */
	hit(x: number, y: number): number {
		const s = this.scene();
		const content = y + s.scrollTop;
		const level = Math.floor((s.upwards ? s.contentHeight - 1 - content : content) / ROW_HEIGHT);
		const at = s.range.x0 + (x / s.width) * (s.range.x1 - s.range.x0);
		return at >= s.range.x0 && at <= s.range.x1 ? nodeAt(this.graph, level, at) : -1;
	}

	name(node: number): string {
		return node === ROOT ? "all" : nodeLabel(this.scene(), node);
	}

	describe(node: number): TooltipContent {
		const g = this.graph;
		const f = g.func[node];
		const known = f < FUNC_OTHERS;
		const group = known ? this.groups.ofFunction[f] : 0;
		const { file, title } = this.place(f);
		const inlined = known && isInlined(this.profile.kinds[f]);
		const language = known ? languageOf(this.profile, f) : "";
		return {
			name: f === FUNC_OTHERS ? "Frames too small to tell apart" : this.name(node),
			file:
				inlined || language
					? [inlined ? "inlined" : "", file, language].filter(Boolean).join(", ")
					: file || title,
			color: known ? this.theme.frames[group * NR_SHADES + 1] : "transparent",
			/* Among callers a node's own samples are stacks that begin there: not what self means. */
			self: this.state.inverted ? null : g.self[node],
			total: g.total[node],
			all: this.total,
			zoomed: this.zoomNode === ROOT ? 0 : g.total[this.zoomNode],
			everywhere: known ? { self: this.totals.self[f], total: this.totals.total[f] } : null,
		};
	}

	private place(f: number): { file: string; title: string } {
		if (f >= FUNC_OTHERS)
			return { file: "", title: "" };
		return {
			file: this.profile.files[f] + (this.profile.lines[f] ? `:${this.profile.lines[f]}` : ""),
			title: this.groups.list[this.groups.ofFunction[f]].title,
		};
	}

	menuItems(node: number): MenuItem[] {
		const f = this.graph.func[node];
		const name = this.name(node);
		const items: MenuItem[] = [];
		if (node === ROOT || f === FUNC_OTHERS)
			return items;
		const literal = `^${name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
		items.push({ label: "Zoom to this frame", run: () => this.zoomTo(node) });
		items.push({ label: "Copy name", run: () => void copyText(name) });
		items.push({
			label: "Copy stack",
			run: () =>
				void copyText(
					pathOf(this.graph, node)
						.map((i) => this.name(i))
						.join("\n"),
				),
		});
		if (this.profile.files[f])
			items.push({ label: "Copy file", run: () => void copyText(this.profile.files[f]) });
		items.push({
			label: "Search for this function",
			run: () => {
				byId<HTMLInputElement>("search").value = literal;
				this.go({ search: literal });
			},
		});
		return items;
	}
}
