// SPDX-License-Identifier: Apache-2.0
/* Small profiles for tests, written as folded lines: "comm;f;g 3"; "_[k]", "_[i]": kernel, inlined. */
import { KIND_COMM, KIND_INLINED, KIND_KERNEL, KIND_NATIVE, type Profile } from "../src/data.ts";

interface Node {
	name: string;
	self: number;
	children: Map<string, Node>;
}

function kindOf(name: string): number {
	if (name.endsWith("_[i]"))
		return KIND_INLINED;
	return name.endsWith("_[k]") ? KIND_KERNEL : KIND_NATIVE;
}

export function fromFolded(lines: string[]): Profile {
	const root: Node = { name: "", self: 0, children: new Map() };
	for (const line of lines) {
		const space = line.lastIndexOf(" ");
		let node = root;
		for (const name of line.slice(0, space).split(";")) {
			let child = node.children.get(name);
			if (!child)
				node.children.set(name, (child = { name, self: 0, children: new Map() }));
			node = child;
		}
		node.self += Number(line.slice(space + 1));
	}
	const names: string[] = [];
	const kinds: number[] = [];
	const func: number[] = [];
	const depth: number[] = [];
	const self: number[] = [];
	const ids = new Map<string, number>();
	const visit = (node: Node, d: number) => {
		const key = `${d === 0}:${node.name}`;
		if (!ids.has(key)) {
			ids.set(key, names.length);
			names.push(node.name.replace(/_\[[ki]\]$/, ""));
			kinds.push(d === 0 ? KIND_COMM : kindOf(node.name));
		}
		func.push(ids.get(key) as number);
		depth.push(d);
		self.push(node.self);
		for (const child of node.children.values())
			visit(child, d + 1);
	};
	for (const child of root.children.values())
		visit(child, 0);
	const samples = self.reduce((a, b) => a + b, 0);
	return {
		meta: {
			samples,
			complete: samples,
			duration_ns: 1e9,
			frequency_hz: 99,
			start_ms: 0,
			truncated: {},
			runtimes: {},
		},
		names,
		files: names.map((_, i) => (kinds[i] === KIND_NATIVE ? "/bin/x" : "")),
		lines: new Uint32Array(names.length),
		kinds: Uint8Array.from(kinds),
		func: Uint32Array.from(func),
		depth: Uint32Array.from(depth),
		self: Float64Array.from(self),
	};
}
