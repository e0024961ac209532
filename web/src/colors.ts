// SPDX-License-Identifier: Apache-2.0
/*
 * Colours by kind: the kernel, each native file, each language is a group with a hue of its own, the
 * heaviest files the clearest ones. Within a group four shades tell neighbours apart. Colours are
 * chosen in OKLCH, so that all groups look equally bright, and turned into sRGB here.
 */
import {
	KIND_COMM,
	KIND_INLINED,
	KIND_KERNEL,
	KIND_NATIVE,
	KIND_TRUNCATED,
	languageOf,
	type Profile,
	runtimeKind,
} from "./data.ts";

export interface Group {
	/** stands in the address: stable across recordings */
	key: string;
	label: string;
	title: string;
	/** samples whose leaf is in it */
	self: number;
	hue: number;
	chroma: number;
}

export interface Groups {
	list: Group[];
	/** by function */
	ofFunction: Uint16Array;
	shade: Uint8Array;
}

export const NR_SHADES = 4;
/** Hues of native files, by weight: far from the kernel's, from aqua and from each other. */
const FILE_HUES = [230, 150, 300, 255, 105, 275, 340, 165, 125, 285, 215, 320];
const KERNEL_HUE = 55;
/** Languages, in the order of their numbers: yellow, green, and so on. */
const RUNTIME_HUES = [92, 142, 325, 265, 182, 72, 292, 205, 120, 350];
/** Files' hues this near to a language's are used last. */
const NEAR = 20;
/** Aqua, as in other flame graphs. */
const INLINED_HUE = 193;
const ERROR_HUE = 22;
const MAX_GROUPS = 65535;

function hash(s: string): number {
	let h = 2166136261;
	for (let i = 0; i < s.length; i++)
		h = Math.imul(h ^ s.charCodeAt(i), 16777619);
	return (h ^ (h >>> 15)) >>> 0;
}

function lastComponent(path: string): string {
	return path.slice(path.lastIndexOf("/") + 1) || path;
}

function groupKey(p: Profile, f: number): string {
	switch (p.kinds[f]) {
	case KIND_KERNEL:
		return "kernel";
	case KIND_COMM:
		return "thread";
	case KIND_TRUNCATED:
		return "truncated";
	case KIND_INLINED:
		return "inlined";
	case KIND_NATIVE:
		return p.files[f] || "unknown";
	default:
		return `language-${languageOf(p, f)}`;
	}
}

const FIXED: { [key: string]: { label: string; title: string; hue: number; chroma: number } } = {
	kernel: { label: "kernel", title: "The kernel and its modules", hue: KERNEL_HUE, chroma: 0.1 },
	thread: { label: "threads", title: "Names of threads", hue: 250, chroma: 0.012 },
	truncated: {
		label: "truncated",
		title: "Stacks that did not reach the thread's first frame",
		hue: ERROR_HUE,
		chroma: 0.15,
	},
	inlined: {
		label: "inlined",
		title: "Functions that the compiler inlined into their caller",
		hue: INLINED_HUE,
		chroma: 0.075,
	},
	unknown: { label: "unknown", title: "Code of no known file", hue: 250, chroma: 0.012 },
};

function runtimeHue(kind: number): number {
	return RUNTIME_HUES[(kind - KIND_TRUNCATED - 1) % RUNTIME_HUES.length];
}

/** Those of FILE_HUES that look least like a language that is there come first. */
function fileHues(p: Profile): number[] {
	const taken = [...new Set(Array.from(p.kinds, runtimeKind))].filter(Boolean).map(runtimeHue);
	const near = (hue: number) => taken.some((t) => Math.abs(t - hue) < NEAR);
	return [...FILE_HUES.filter((hue) => !near(hue)), ...FILE_HUES.filter(near)];
}

function makeGroup(p: Profile, f: number, key: string): Group {
	const language = languageOf(p, f);
	if (language)
		return {
			key,
			label: language,
			title: `Functions of ${language}`,
			self: 0,
			hue: runtimeHue(runtimeKind(p.kinds[f])),
			chroma: 0.115,
		};
	const fixed = FIXED[key];
	return {
		key,
		label: fixed?.label ?? lastComponent(key),
		title: fixed?.title ?? key,
		self: 0,
		hue: fixed?.hue ?? -1,
		chroma: fixed?.chroma ?? 0.09,
	};
}

export function makeGroups(p: Profile, self: Float64Array): Groups {
	const byKey = new Map<string, Group>();
	const keys: string[] = [];
	for (let f = 0; f < p.names.length; f++) {
		const key = groupKey(p, f);
		let group = byKey.get(key);
		if (!group && byKey.size < MAX_GROUPS) {
			group = makeGroup(p, f, key);
			byKey.set(key, group);
		}
		if (group)
			group.self += self[f];
		keys.push(group ? key : "unknown");
	}
	const list = [...byKey.values()].sort((a, b) => b.self - a.self || (a.key < b.key ? -1 : 1));
	const hues = fileHues(p);
	let rank = 0;
	for (const group of list) {
		if (group.hue >= 0)
			continue;
		if (rank < hues.length) {
			group.hue = hues[rank++];
		} else {
			group.hue = 90 + (hash(group.key) % 270);
			group.chroma = 0.045;
		}
	}
	const index = new Map(list.map((group, i) => [group.key, i]));
	return {
		list,
		ofFunction: Uint16Array.from(keys, (key) => index.get(key) ?? 0),
		shade: Uint8Array.from(p.names, (name) => hash(name) % NR_SHADES),
	};
}

function toByte(linear: number): number {
	const c = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
	return Math.round(255 * Math.min(1, Math.max(0, c)));
}

/** OKLCH to "rgb(r, g, b)": Bjoern Ottosson's matrices. */
export function oklch(l: number, c: number, hue: number): string {
	const a = c * Math.cos((hue * Math.PI) / 180);
	const b = c * Math.sin((hue * Math.PI) / 180);
	const L = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const M = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const S = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const red = toByte(4.0767416621 * L - 3.3077115913 * M + 0.2309699292 * S);
	const green = toByte(-1.2684380046 * L + 2.6097574011 * M - 0.3413193965 * S);
	const blue = toByte(-0.0041960863 * L - 0.7034186147 * M + 1.707614701 * S);
	return `rgb(${red}, ${green}, ${blue})`;
}

export interface Theme {
	background: string;
	text: string;
	dimText: string;
	root: string;
	others: string;
	match: string;
	matchText: string;
	hover: string;
	current: string;
	/** by group * NR_SHADES + shade */
	frames: string[];
	dimmed: string[];
}

export function makeTheme(groups: Groups, dark: boolean): Theme {
	const frames: string[] = [];
	const dimmed: string[] = [];
	for (const group of groups.list) {
		for (let shade = 0; shade < NR_SHADES; shade++) {
			const off = (shade - (NR_SHADES - 1) / 2) * 0.016;
			const l = (dark ? 0.46 : 0.835) + off;
			const c = group.chroma * (dark ? 0.92 : 0.95);
			frames.push(oklch(l, c, group.hue));
			dimmed.push(oklch((dark ? 0.285 : 0.945) + off / 3, c * 0.22, group.hue));
		}
	}
	return {
		background: dark ? "#14161a" : "#ffffff",
		text: dark ? "#f1f3f6" : "#16181d",
		dimText: dark ? "#7d8590" : "#8b929c",
		root: dark ? "#343a43" : "#dfe3e8",
		others: dark ? "#2a2e35" : "#eceef1",
		match: dark ? "#c43fae" : "#e879d5",
		matchText: dark ? "#ffffff" : "#2b0526",
		hover: dark ? "#ffffff" : "#16181d",
		current: dark ? "#ffd33d" : "#b35900",
		frames,
		dimmed,
	};
}
