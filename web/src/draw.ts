// SPDX-License-Identifier: Apache-2.0
/*
 * Drawing: the visible levels, and of each level the visible nodes, found by binary search. Nodes
 * thinner than a pixel are drawn as one thin bar a pixel, so the number of rectangles is bounded by the
 * size of the canvas, never by the size of the graph.
 */
import { Bars } from "./bars.ts";
import { type Groups, NR_SHADES, type Theme } from "./colors.ts";
import { FUNC_OTHERS, FUNC_ROOT, type Graph, gallop, lowerBound, nrRows } from "./graph.ts";
import { isMarked } from "./search.ts";
import type { Range } from "./view.ts";

export const ROW_HEIGHT = 20;
/** Thinner nodes are drawn in bars of this width (CSS pixels). */
const MIN_PX = 1;
const TEXT_MIN_PX = 26;
const TEXT_PAD = 5;

export interface Scene {
	graph: Graph;
	names: readonly string[];
	groups: Groups;
	theme: Theme;
	range: Range;
	/** CSS pixels */
	width: number;
	height: number;
	scrollTop: number;
	/** flames grow upwards: level 0 is at the bottom of the content */
	upwards: boolean;
	contentHeight: number;
	/** marked functions (search and legend) and the prefix counts of their nodes */
	marked: Uint8Array | null;
	markPrefix: Uint32Array | null;
	/** marked nodes are drawn in the colour of a match, not in their own */
	searching: boolean;
	zoomDepth: number;
	hover: number;
	current: number;
	rootLabel: string;
}

export interface DrawCounts {
	rects: number;
	texts: number;
	rows: number;
}

export function levelTop(s: Scene, level: number): number {
	const y = s.upwards ? s.contentHeight - (level + 1) * ROW_HEIGHT : level * ROW_HEIGHT;
	return y - s.scrollTop;
}

/** The level under a y of the canvas. */
export function levelAt(s: Scene, y: number): number {
	const content = y + s.scrollTop;
	return Math.floor((s.upwards ? s.contentHeight - 1 - content : content) / ROW_HEIGHT);
}

export function nodeLabel(s: Scene, node: number): string {
	const f = s.graph.func[node];
	if (f === FUNC_ROOT)
		return s.rootLabel;
	return f === FUNC_OTHERS ? "…" : s.names[f];
}

export class Painter {
	private charWidth = 7;
	private font = "";
	private readonly bars = new Bars();

	constructor(private readonly ctx: CanvasRenderingContext2D) {}

	/** Monospaced: one measurement is enough for all texts to come. */
	setFont(font: string): void {
		this.font = font;
		this.ctx.font = font;
		this.charWidth = this.ctx.measureText("MMMMMMMMMM").width / 10;
	}

	draw(s: Scene, devicePixelRatio: number): DrawCounts {
		const { ctx } = this;
		const counts: DrawCounts = { rects: 0, texts: 0, rows: 0 };
		ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
		ctx.fillStyle = s.theme.background;
		ctx.fillRect(0, 0, s.width, s.height);
		ctx.font = this.font;
		ctx.textBaseline = "middle";
		const first = Math.max(0, Math.min(levelAt(s, 0), levelAt(s, s.height - 1)));
		const last = Math.min(
			nrRows(s.graph) - 1,
			Math.max(levelAt(s, 0), levelAt(s, s.height - 1)),
		);
		this.bars.begin(s.width, last - first + 1, devicePixelRatio);
		for (let level = first; level <= last; level++) {
			this.drawLevel(s, level, level - first, counts);
			counts.rows++;
		}
		this.bars.draw(ctx, ROW_HEIGHT - 1, (line) => levelTop(s, first + line));
		this.outline(s, s.current, s.theme.current, 2);
		this.outline(s, s.hover, s.theme.hover, 1);
		return counts;
	}

	private drawLevel(s: Scene, level: number, line: number, counts: DrawCounts): void {
		const g = s.graph;
		const { x0, x1 } = s.range;
		const scale = s.width / (x1 - x0);
		const y = levelTop(s, level);
		const end = g.rowStart[level + 1];
		let i = lowerBound(g, g.rowStart[level], end, x0);
		while (i < end && g.x[i] < x1) {
			const left = (g.x[i] - x0) * scale;
			const right = (g.x[i] + g.total[i] - x0) * scale;
			if (right - left < MIN_PX) {
				const next = this.endOfBar(g, i, end, x0 + (left + MIN_PX) / scale, scale);
				this.bar(s, i, next, left, line);
				counts.rects++;
				i = next;
				continue;
			}
			this.node(s, i, level, Math.max(left, 0), Math.min(right, s.width), y, counts);
			i++;
		}
	}

	/**
	 * Everything that begins within this pixel is one bar, but for a last node that is wide enough to be
	 * seen: it begins where the bar is and goes on beyond.
	 */
	private endOfBar(g: Graph, from: number, end: number, x: number, scale: number): number {
		const next = Math.max(gallop(g, from, end, x), from + 1);
		const wide = next - 1 > from && g.total[next - 1] * scale >= MIN_PX;
		return wide ? next - 1 : next;
	}

	private bar(s: Scene, from: number, to: number, left: number, line: number): void {
		const anyMarked = s.markPrefix !== null && s.markPrefix[to] > s.markPrefix[from];
		this.bars.add(line, left, MIN_PX, this.fill(s, from, anyMarked));
	}

	private fill(s: Scene, node: number, marked: boolean): string {
		const f = s.graph.func[node];
		if (s.marked && marked && s.searching)
			return s.theme.match;
		if (f === FUNC_ROOT)
			return s.theme.root;
		if (f === FUNC_OTHERS)
			return s.theme.others;
		const index = s.groups.ofFunction[f] * NR_SHADES + s.groups.shade[f];
		return s.marked && !marked ? s.theme.dimmed[index] : s.theme.frames[index];
	}

	private node(
		s: Scene,
		node: number,
		level: number,
		left: number,
		right: number,
		y: number,
		counts: DrawCounts,
	): void {
		const { ctx } = this;
		const func = s.graph.func[node];
		const marked = s.marked !== null && isMarked(s.marked, func);
		/* A gap of a pixel where there is room for one. */
		const width = right - left > 3 ? right - left - 1 : right - left;
		/* What lies above the zoomed node is context. */
		ctx.globalAlpha = level < s.zoomDepth ? 0.55 : 1;
		ctx.fillStyle = this.fill(s, node, marked);
		ctx.fillRect(left, y, width, ROW_HEIGHT - 1);
		counts.rects++;
		if (width >= TEXT_MIN_PX) {
			const label = this.fit(nodeLabel(s, node), width - 2 * TEXT_PAD);
			if (label) {
				const dim = s.marked !== null && !marked && func !== FUNC_ROOT;
				ctx.fillStyle =
					marked && s.searching
						? s.theme.matchText
						: dim
							? s.theme.dimText
							: s.theme.text;
				ctx.fillText(label, left + TEXT_PAD, y + ROW_HEIGHT / 2, width - TEXT_PAD);
				counts.texts++;
			}
		}
		ctx.globalAlpha = 1;
	}

	private fit(label: string, width: number): string {
		const room = Math.floor(width / this.charWidth);
		if (label.length <= room)
			return label;
		return room < 2 ? "" : `${label.slice(0, room - 1)}…`;
	}

	private outline(s: Scene, node: number, color: string, lineWidth: number): void {
		if (node < 0 || node >= s.graph.nr)
			return;
		const g = s.graph;
		let level = 0;
		while (g.rowStart[level + 1] <= node)
			level++;
		const scale = s.width / (s.range.x1 - s.range.x0);
		const left = Math.max((g.x[node] - s.range.x0) * scale, -4);
		const right = Math.min((g.x[node] + g.total[node] - s.range.x0) * scale, s.width + 4);
		if (right < 0 || left > s.width)
			return;
		this.ctx.strokeStyle = color;
		this.ctx.lineWidth = lineWidth;
		const inset = lineWidth / 2;
		this.ctx.strokeRect(
			left + inset,
			levelTop(s, level) + inset,
			Math.max(right - left - 1 - lineWidth, 1),
			ROW_HEIGHT - 1 - lineWidth,
		);
	}
}
