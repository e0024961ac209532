// SPDX-License-Identifier: Apache-2.0
/*
 * Which graph shows a state: the profile's own, or an inverted one. Inverted graphs are built when they
 * are first wanted, in slices. Of a large profile the whole inverted graph is pruned to what can be
 * seen; a zoomed part is then built once more, finer.
 */
import { type Graph, ROOT, followPath, pathOf } from "./graph.ts";
import { invert } from "./invert.ts";
import { runInSlices } from "./slices.ts";

/** The parts of a whole that a wide screen can tell apart. */
const VISIBLE_PARTS = 8192;
/** Inverted completely if this many steps do it. */
const SMALL = 400_000;

export class Graphs {
	private whole: Graph | null = null;
	private part: { path: string; graph: Graph } | null = null;
	private building = new AbortController();

	constructor(
		readonly main: Graph,
		private readonly progress: (done: number | null) => void,
	) {}

	/** Stops what is being built. */
	cancel(): void {
		this.building.abort();
		this.progress(null);
	}

	/** What can be shown at once: the best graph there is for this path, or null. */
	ready(inverted: boolean, path: readonly number[]): Graph | null {
		if (!inverted)
			return this.main;
		if (this.part?.path === path.join())
			return this.part.graph;
		return this.whole;
	}

	/** Whether build() would give a better one. */
	wantsBuild(inverted: boolean, path: readonly number[]): boolean {
		if (!inverted)
			return false;
		if (!this.whole)
			return true;
		return this.whole.pruned && path.length > 0 && this.part?.path !== path.join();
	}

	/** The best graph for the path, or undefined if another call came in between. */
	async build(path: readonly number[]): Promise<Graph | undefined> {
		this.building.abort();
		const { signal } = (this.building = new AbortController());
		this.progress(0);
		const whole =
			this.whole ?? (await this.invert([], this.main.total[ROOT], signal));
		if (!whole)
			return undefined;
		this.whole = whole;
		let graph = whole;
		if (whole.pruned && path.length) {
			const node = followPath(whole, path);
			const part = await this.invert(path, whole.total[node], signal);
			if (!part)
				return undefined;
			this.part = { path: path.join(), graph: part };
			graph = part;
		}
		this.progress(null);
		return graph;
	}

	private invert(
		path: readonly number[],
		samples: number,
		signal: AbortSignal,
	): Promise<Graph | undefined> {
		const threshold = this.isSmall() ? 0 : samples / VISIBLE_PARTS;
		return runInSlices(invert(this.main, { threshold, path }), signal, this.progress);
	}

	/** The steps are the lengths of all stacks. */
	private isSmall(): boolean {
		const { rowStart, self } = this.main;
		let steps = 0;
		for (let d = 0; d + 1 < rowStart.length && steps <= SMALL; d++)
			for (let i = rowStart[d]; i < rowStart[d + 1]; i++)
				if (self[i] > 0)
					steps += d;
		return steps <= SMALL;
	}
}

/** A node's path as functions: what the state remembers. */
export function functionPath(g: Graph, node: number): number[] {
	return pathOf(g, node).map((i) => g.func[i]);
}
