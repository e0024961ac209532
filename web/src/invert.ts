// SPDX-License-Identifier: Apache-2.0
/*
 * The tree of callers: stacks merged from the leaf up. Level 1 are the functions that ran, level 2 who
 * called them, and so on; siblings are sorted by weight.
 *
 * The full tree can be many times larger than the profile (each leaf repeats its callers), so nodes
 * lighter than `threshold` samples get no callers, and the light children of a node become one node
 * ("others"). With `path` only what lies under that path of functions is built, finer: that is how a
 * pruned graph is zoomed.
 *
 * An entry is a node of the original graph with samples of its own. Entries of one inverted node are
 * a contiguous range; a level deeper each moves on to its parent and the range is regrouped in place.
 */
import { type Graph, FUNC_OTHERS, FUNC_ROOT, ROOT, childIndex } from "./graph.ts";
import type { Work } from "./slices.ts";

export interface InvertOptions {
	threshold: number;
	path: readonly number[];
	/** Stop growing past this many nodes: the rest counts as pruned. */
	maxNodes?: number;
}

const DEFAULT_MAX_NODES = 2_000_000;
const STEPS_A_YIELD = 10_000;

interface Range {
	lo: number;
	hi: number;
}

interface Group {
	func: number;
	weight: number;
	lo: number;
	hi: number;
}

class Builder {
	readonly func: number[] = [FUNC_ROOT];
	readonly parent: number[] = [0];
	readonly x: number[] = [0];
	readonly total: number[] = [0];
	readonly self: number[] = [0];
	readonly rowStart: number[] = [0];
	pruned = false;

	/** Entries: where each stands, and its weight. */
	private readonly cursor: Uint32Array;
	private readonly weight: Float64Array;
	private readonly scratchCursor: Uint32Array;
	private readonly scratchWeight: Float64Array;
	readonly nrEntries: number;
	private steps = 0;
	/** A guess: how many levels there are turns out at the end. */
	private done = 0;

	constructor(
		private readonly g: Graph,
		private readonly options: InvertOptions,
	) {
		let n = 0;
		for (let i = 1; i < g.nr; i++)
			if (g.self[i] > 0)
				n++;
		this.nrEntries = n;
		this.cursor = new Uint32Array(n);
		this.weight = new Float64Array(n);
		this.scratchCursor = new Uint32Array(n);
		this.scratchWeight = new Float64Array(n);
		n = 0;
		for (let i = 1; i < g.nr; i++) {
			if (g.self[i] > 0) {
				this.cursor[n] = i;
				this.weight[n++] = g.self[i];
				this.total[0] += g.self[i];
			}
		}
	}

	/**
	 * Regroups a range by function: one counting pass, one moving pass. `up` moves every entry to its
	 * parent first; entries that reach the root leave the groups and stay at the range's end.
	 */
	private *group({ lo, hi }: Range, up: boolean): Work<Group[]> {
		const groups = new Map<number, Group>();
		for (let i = lo; i < hi; i += STEPS_A_YIELD) {
			this.countEntries(groups, i, Math.min(i + STEPS_A_YIELD, hi), up);
			if (hi - i > STEPS_A_YIELD)
				yield this.done;
		}
		const sorted = [...groups.values()].sort(
			(a, b) =>
				Number(a.func === FUNC_ROOT) - Number(b.func === FUNC_ROOT) ||
				b.weight - a.weight ||
				a.func - b.func,
		);
		let at = lo;
		for (const group of sorted) {
			const count = group.hi;
			group.lo = group.hi = at;
			at += count;
		}
		for (let i = lo; i < hi; i += STEPS_A_YIELD) {
			this.moveEntries(groups, i, Math.min(i + STEPS_A_YIELD, hi));
			if (hi - i > STEPS_A_YIELD)
				yield this.done;
		}
		this.cursor.set(this.scratchCursor.subarray(lo, hi), lo);
		this.weight.set(this.scratchWeight.subarray(lo, hi), lo);
		this.steps += hi - lo;
		return sorted.filter((group) => group.func !== FUNC_ROOT);
	}

	private funcOf(node: number): number {
		return node === ROOT ? FUNC_ROOT : this.g.func[node];
	}

	/** Until the groups are placed, hi counts their entries. */
	private countEntries(groups: Map<number, Group>, from: number, to: number, up: boolean): void {
		const { g, cursor, weight } = this;
		for (let i = from; i < to; i++) {
			if (up)
				cursor[i] = g.parent[cursor[i]];
			const func = this.funcOf(cursor[i]);
			const group = groups.get(func);
			if (group) {
				group.weight += weight[i];
				group.hi++;
			} else {
				groups.set(func, { func, weight: weight[i], lo: 0, hi: 1 });
			}
		}
	}

	private moveEntries(groups: Map<number, Group>, from: number, to: number): void {
		const { cursor, weight } = this;
		for (let i = from; i < to; i++) {
			const group = groups.get(this.funcOf(cursor[i])) as Group;
			this.scratchCursor[group.hi] = cursor[i];
			this.scratchWeight[group.hi++] = weight[i];
		}
	}

	private push(func: number, parent: number, x: number, total: number): void {
		this.func.push(func);
		this.parent.push(parent);
		this.x.push(x);
		this.total.push(total);
		this.self.push(0);
	}

	/** Makes the children of `node`; returns the ranges of those that may have children of their own. */
	private addChildren(node: number, groups: Group[], ranges: Array<Range | null>): void {
		let x = this.x[node];
		let others = 0;
		const { threshold } = this.options;
		for (const group of groups) {
			if (group.weight < threshold) {
				others += group.weight;
				continue;
			}
			this.push(group.func, node, x, group.weight);
			ranges.push(group);
			x += group.weight;
		}
		if (others > 0) {
			this.pruned = true;
			this.push(FUNC_OTHERS, node, x, others);
			ranges.push(null);
		}
		/* What has no caller is where stacks begin. */
		let called = others;
		for (const group of groups)
			if (group.weight >= threshold)
				called += group.weight;
		this.self[node] = Math.max(0, this.total[node] - called);
	}

	/** Level by level; the first levels only along the path. */
	*run(): Work<Graph> {
		const { path } = this.options;
		const maxNodes = this.options.maxNodes ?? DEFAULT_MAX_NODES;
		let level: Array<Range | null> = [{ lo: 0, hi: this.nrEntries }];
		let levelStart = 0;
		for (let d = 0; level.length > 0; d++) {
			const next: Array<Range | null> = [];
			const nextStart = this.func.length;
			for (let i = 0; i < level.length; i++) {
				const range = level[i];
				if (!range || range.lo === range.hi)
					continue;
				if (this.func.length >= maxNodes) {
					this.pruned = true;
					break;
				}
				const groups = yield* this.group(range, d > 0);
				if (d < path.length)
					this.keepOnly(levelStart + i, groups, path[d], next);
				else
					this.addChildren(levelStart + i, groups, next);
				if (this.steps > STEPS_A_YIELD) {
					this.steps = 0;
					yield (this.done = Math.min(0.99, d / (d + 4) + i / level.length / (d + 5)));
				}
			}
			this.rowStart.push(nextStart);
			levelStart = nextStart;
			level = next;
		}
		return this.finish();
	}

	/** On the way to the zoomed node everything beside it is left out. */
	private keepOnly(node: number, groups: Group[], func: number, ranges: Array<Range | null>): void {
		const group = groups.find((g) => g.func === func);
		this.pruned = true;
		if (!group)
			return;
		this.push(func, node, this.x[node], group.weight);
		ranges.push(group);
	}

	private finish(): Graph {
		const parent = Uint32Array.from(this.parent);
		/* The last level made is empty: it only closed the one before. */
		const rowStart = Uint32Array.from(this.rowStart);
		if (this.rowStart[this.rowStart.length - 1] !== this.func.length)
			throw new Error("internal: an open level");
		return {
			nr: this.func.length,
			func: Uint32Array.from(this.func),
			parent,
			x: Float64Array.from(this.x),
			total: Float64Array.from(this.total),
			self: Float64Array.from(this.self),
			rowStart,
			firstChild: childIndex(parent, this.func.length),
			pruned: this.pruned,
		};
	}
}

export function invert(g: Graph, options: InvertOptions): Work<Graph> {
	return new Builder(g, options).run();
}
