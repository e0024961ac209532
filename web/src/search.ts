// SPDX-License-Identifier: Apache-2.0
/*
 * Search: a regular expression is matched against each function's name once; nodes then only look up
 * their function. A sample counts as matched once, however often its stack matches.
 */
import type { Profile } from "./data.ts";
import { FUNC_OTHERS, type Graph, ROOT } from "./graph.ts";

/** Case counts only if the pattern has an upper case letter (escapes like \S are none). */
export function compile(pattern: string): RegExp {
	const literal = pattern.replace(/\\./g, "");
	return new RegExp(pattern, /\p{Lu}/u.test(literal) ? "" : "i");
}

/** By function: 1 if its name matches. */
export function matchFunctions(p: Profile, re: RegExp): Uint8Array {
	const matched = new Uint8Array(p.names.length);
	for (let i = 0; i < matched.length; i++)
		matched[i] = re.test(p.names[i]) ? 1 : 0;
	return matched;
}

export function isMarked(marked: Uint8Array, func: number): boolean {
	return func < FUNC_OTHERS && marked[func] === 1;
}

/** prefix[i]: how many of the nodes before i are marked; so a run of nodes is asked in no time. */
export function markPrefix(g: Graph, marked: Uint8Array): Uint32Array {
	const prefix = new Uint32Array(g.nr + 1);
	for (let i = 0; i < g.nr; i++)
		prefix[i + 1] = prefix[i] + (isMarked(marked, g.func[i]) ? 1 : 0);
	return prefix;
}

/** Samples under `root` (or on the way to it) whose stack has a marked frame, each once. */
export function markedSamples(g: Graph, marked: Uint8Array, root: number): number {
	for (let i = root; i !== ROOT; i = g.parent[i])
		if (isMarked(marked, g.func[i]))
			return g.total[root];
	/* 0: outside of root, 1: inside with nothing marked above, 2: marked or below what is */
	const state = new Uint8Array(g.nr);
	let sum = 0;
	state[root] = 1;
	for (let i = root + 1; i < g.nr; i++) {
		const above = state[g.parent[i]];
		if (above === 1 && isMarked(marked, g.func[i])) {
			sum += g.total[i];
			state[i] = 2;
		} else {
			state[i] = above;
		}
	}
	return sum;
}

/** Marked nodes from left to right, callers before callees. */
export function markedNodes(g: Graph, marked: Uint8Array, order: Uint32Array): Uint32Array {
	const found = new Uint32Array(g.nr);
	let n = 0;
	for (let i = 0; i < order.length; i++)
		if (isMarked(marked, g.func[order[i]]))
			found[n++] = order[i];
	return found.slice(0, n);
}

/** By function: samples with it on the stack, each once, and samples in it. */
export function functionTotals(p: Profile): { total: Float64Array; self: Float64Array } {
	const total = new Float64Array(p.names.length);
	const self = new Float64Array(p.names.length);
	const onStack = new Uint32Array(p.names.length);
	const path: number[] = []; // functions of the stack
	const samples: number[] = []; // by level: samples of the subtree so far
	const pop = () => {
		const f = path.pop() as number;
		const n = samples.pop() as number;
		if (--onStack[f] === 0)
			total[f] += n;
		if (samples.length)
			samples[samples.length - 1] += n;
	};
	for (let i = 0; i < p.func.length; i++) {
		while (path.length > p.depth[i])
			pop();
		path.push(p.func[i]);
		samples.push(p.self[i]);
		onStack[p.func[i]]++;
		self[p.func[i]] += p.self[i];
	}
	while (path.length)
		pop();
	return { total, self };
}
