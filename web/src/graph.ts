// SPDX-License-Identifier: Apache-2.0
/*
 * A laid out tree: columns in level order. Node 0 is the root; the nodes of a level are contiguous and
 * sorted by x, and so are the children of a node. x and total are in samples: what a pixel is is the
 * view's business, so zooming lays out nothing anew.
 */
import type { Profile } from "./data.ts";

export const ROOT = 0;
/** func of the root, and of what stands for many nodes that are too small to tell apart */
export const FUNC_ROOT = 0xffffffff;
export const FUNC_OTHERS = 0xfffffffe;

export interface Graph {
	nr: number;
	func: Uint32Array;
	parent: Uint32Array;
	x: Float64Array;
	total: Float64Array;
	self: Float64Array;
	/** level d is [rowStart[d], rowStart[d + 1]) */
	rowStart: Uint32Array;
	/** node's children are [firstChild[node], firstChild[node + 1]) */
	firstChild: Uint32Array;
	/** whether small nodes were left out: then a zoomed part may be built anew, finer */
	pruned: boolean;
}

export function nrRows(g: Graph): number {
	return g.rowStart.length - 1;
}

/** Node -> its first child, from the parents: both are in level order. */
export function childIndex(parent: Uint32Array, nr: number): Uint32Array {
	const first = new Uint32Array(nr + 1);
	let child = 1;
	for (let i = 0; i < nr; i++) {
		first[i] = child;
		while (child < nr && parent[child] === i)
			child++;
	}
	first[nr] = nr;
	return first;
}

/** The profile's tree with a root on top: level order out of depth-first order. */
export function layout(p: Profile): Graph {
	const n = p.func.length;
	const nr = n + 1;
	let levels = 1;
	for (let i = 0; i < n; i++)
		if (p.depth[i] + 2 > levels)
			levels = p.depth[i] + 2;
	const rowStart = new Uint32Array(levels + 1);
	rowStart[1] = 1;
	for (let i = 0; i < n; i++)
		rowStart[p.depth[i] + 2]++;
	for (let d = 1; d < levels; d++)
		rowStart[d + 1] += rowStart[d];

	const g: Graph = {
		nr,
		func: new Uint32Array(nr),
		parent: new Uint32Array(nr),
		x: new Float64Array(nr),
		total: new Float64Array(nr),
		self: new Float64Array(nr),
		rowStart,
		firstChild: new Uint32Array(0),
		pruned: false,
	};
	const next = rowStart.slice(); // the next free place of each level
	const open = new Uint32Array(levels); // the node last made on each level
	g.func[ROOT] = FUNC_ROOT;
	for (let i = 0; i < n; i++) {
		const level = p.depth[i] + 1;
		const node = next[level]++;
		open[level] = node;
		g.func[node] = p.func[i];
		g.parent[node] = open[level - 1];
		g.self[node] = p.self[i];
		g.total[node] = p.self[i];
	}
	for (let node = nr - 1; node > 0; node--)
		g.total[g.parent[node]] += g.total[node];
	/* Children begin at their parent's left edge; its own samples are right of them. */
	g.firstChild = childIndex(g.parent, nr);
	for (let node = 0; node < nr; node++) {
		let x = g.x[node];
		for (let c = g.firstChild[node]; c < g.firstChild[node + 1]; c++) {
			g.x[c] = x;
			x += g.total[c];
		}
	}
	return g;
}

export function depthOf(g: Graph, node: number): number {
	let d = 0;
	for (let i = node; i !== ROOT; i = g.parent[i])
		d++;
	return d;
}

/** The first node of [lo, hi) that ends right of `x`. */
export function lowerBound(g: Graph, lo: number, hi: number, x: number): number {
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (g.x[mid] + g.total[mid] > x)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/** The first node of [lo, hi) that begins at or right of `x`; near `lo` as a rule, so it gallops. */
export function gallop(g: Graph, lo: number, hi: number, x: number): number {
	let step = 1;
	while (lo + step < hi && g.x[lo + step] < x)
		step *= 2;
	let from = lo + (step >>> 1);
	let to = Math.min(lo + step, hi);
	while (from < to) {
		const mid = (from + to) >>> 1;
		if (g.x[mid] < x)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/** The node of level `row` at `x`, or -1. */
export function nodeAt(g: Graph, row: number, x: number): number {
	if (row < 0 || row >= nrRows(g))
		return -1;
	const i = lowerBound(g, g.rowStart[row], g.rowStart[row + 1], x);
	return i < g.rowStart[row + 1] && g.x[i] <= x ? i : -1;
}

/** From below the root to `node`. */
export function pathOf(g: Graph, node: number): number[] {
	const path: number[] = [];
	for (let i = node; i !== ROOT; i = g.parent[i])
		path.push(i);
	return path.reverse();
}

export function isBelow(g: Graph, node: number, ancestor: number): boolean {
	let i = node;
	while (i > ancestor)
		i = g.parent[i];
	return i === ancestor;
}

/** The node at the end of a path of functions, as far as the graph has it. */
export function followPath(g: Graph, funcs: readonly number[]): number {
	let node = ROOT;
	for (const f of funcs) {
		let next = -1;
		for (let c = g.firstChild[node]; c < g.firstChild[node + 1] && next < 0; c++)
			if (g.func[c] === f)
				next = c;
		if (next < 0)
			return node;
		node = next;
	}
	return node;
}

/** Nodes in depth-first order: what reading from left to right means. */
export function depthFirst(g: Graph): Uint32Array {
	const size = new Uint32Array(g.nr).fill(1);
	for (let i = g.nr - 1; i > 0; i--)
		size[g.parent[i]] += size[i];
	const place = new Uint32Array(g.nr);
	for (let i = 0; i < g.nr; i++) {
		let at = place[i] + 1;
		for (let c = g.firstChild[i]; c < g.firstChild[i + 1]; c++) {
			place[c] = at;
			at += size[c];
		}
	}
	const order = new Uint32Array(g.nr);
	for (let i = 0; i < g.nr; i++)
		order[place[i]] = i;
	return order;
}
