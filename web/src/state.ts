// SPDX-License-Identifier: Apache-2.0
/*
 * What the page shows, as the hash of its address: a link or a reload brings it back, and the back
 * button steps through zooms. Functions go by their numbers, which hold for the file at hand.
 */

export interface State {
	/** the zoomed node, as functions from below the root */
	zoom: number[];
	search: string;
	inverted: boolean;
	/** flames grow upwards */
	upwards: boolean;
	/** highlighted colour group, "" if none */
	group: string;
}

export const START: State = { zoom: [], search: "", inverted: false, upwards: false, group: "" };

export function encodeState(s: State): string {
	const parts: string[] = [];
	if (s.zoom.length)
		parts.push(`z=${encodePath(s.zoom)}`);
	if (s.search)
		parts.push(`q=${encodeURIComponent(s.search)}`);
	if (s.inverted)
		parts.push("i=1");
	if (s.upwards)
		parts.push("f=1");
	if (s.group)
		parts.push(`g=${encodeURIComponent(s.group)}`);
	return parts.join("&");
}

/** Anything may stand in an address: what does not make sense is left out. */
export function decodeState(hash: string): State {
	const s: State = { ...START };
	for (const part of hash.replace(/^#/, "").split("&")) {
		const equals = part.indexOf("=");
		const key = part.slice(0, Math.max(equals, 0));
		const value = part.slice(equals + 1);
		if (key === "z")
			s.zoom = decodePath(value);
		else if (key === "q")
			s.search = decodeText(value);
		else if (key === "g")
			s.group = decodeText(value);
		else if (key === "i")
			s.inverted = value === "1";
		else if (key === "f")
			s.upwards = value === "1";
	}
	return s;
}

/** Base 36, and "a*3" for a.a.a: recursion is common. */
function encodePath(path: readonly number[]): string {
	const parts: string[] = [];
	for (let i = 0; i < path.length; ) {
		let run = 1;
		while (path[i + run] === path[i])
			run++;
		parts.push(path[i].toString(36) + (run > 1 ? `*${run}` : ""));
		i += run;
	}
	return parts.join(".");
}

const MAX_PATH = 100_000;

function decodePath(text: string): number[] {
	const path: number[] = [];
	for (const part of text.split(".")) {
		const m = /^([0-9a-z]{1,7})(?:\*([0-9]{1,6}))?$/.exec(part);
		if (!m)
			return [];
		const run = m[2] === undefined ? 1 : Number(m[2]);
		for (let i = 0; i < run && path.length < MAX_PATH; i++)
			path.push(Number.parseInt(m[1], 36));
	}
	return path;
}

function decodeText(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return "";
	}
}
