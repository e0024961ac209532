// SPDX-License-Identifier: Apache-2.0
/*
 * What is marked: by a search, by a legend entry, or both. Marks are kept by function; what depends on
 * the graph is worked out once for each graph.
 */
import type { Groups } from "./colors.ts";
import type { Profile } from "./data.ts";
import { type Graph, depthFirst } from "./graph.ts";
import { compile, markPrefix, markedNodes, matchFunctions } from "./search.ts";

export class Marks {
	/** by function; null: nothing is marked, all looks alike */
	marked: Uint8Array | null = null;
	prefix: Uint32Array | null = null;
	/** of the search alone, for its share */
	matched: Uint8Array | null = null;
	error = "";
	nodes: Uint32Array = new Uint32Array(0);
	/** the match that n and p stand on */
	at = -1;

	private graph: Graph | null = null;
	private search = "";
	private group = "";
	private readonly orders = new WeakMap<Graph, Uint32Array>();

	constructor(
		private readonly profile: Profile,
		private readonly groups: Groups,
	) {}

	update(graph: Graph, search: string, group: string): void {
		const sameMarks = search === this.search && group === this.group;
		if (sameMarks && graph === this.graph)
			return;
		if (!sameMarks) {
			this.search = search;
			this.group = group;
			this.compile();
		}
		this.graph = graph;
		this.prefix = this.marked && markPrefix(graph, this.marked);
		this.nodes = this.matched
			? markedNodes(graph, this.marked as Uint8Array, this.order(graph))
			: new Uint32Array(0);
		this.at = -1;
	}

	/** The next match (or, by -1, the previous one), round and round; -1 if there is none. */
	step(by: number): number {
		const n = this.nodes.length;
		if (!n)
			return -1;
		this.at = this.at < 0 ? (by > 0 ? 0 : n - 1) : (this.at + by + n) % n;
		return this.nodes[this.at];
	}

	get current(): number {
		return this.at < 0 ? -1 : this.nodes[this.at];
	}

	private compile(): void {
		this.error = "";
		this.matched = null;
		if (this.search) {
			try {
				this.matched = matchFunctions(this.profile, compile(this.search));
			} catch (e) {
				this.error = e instanceof Error ? e.message : String(e);
			}
		}
		const index = this.groups.list.findIndex((g) => g.key === this.group);
		this.marked = this.matched;
		if (index >= 0) {
			const { matched } = this;
			this.marked = Uint8Array.from(this.groups.ofFunction, (g, f) =>
				g === index && (!matched || matched[f]) ? 1 : 0,
			);
		}
	}

	private order(graph: Graph): Uint32Array {
		let order = this.orders.get(graph);
		if (!order) {
			order = depthFirst(graph);
			this.orders.set(graph, order);
		}
		return order;
	}
}
