// SPDX-License-Identifier: Apache-2.0
/*
 * The profile inside the page: docs/formats/html-data.md. decodeProfile() turns the inflated bytes
 * into columns; loadProfile() gets these bytes out of the page's data element.
 */

export const KIND_KERNEL = 0;
export const KIND_NATIVE = 1;
export const KIND_TRUNCATED = 2;
export const KIND_COMM = 32;
/** a function inlined into the next outer one */
export const KIND_INLINED = 33;
/** plus the kind of a runtime's frames: the same of its functions */
const KIND_INLINED_OF = 64;

const MAGIC = 0x46444e53; // "SNDF"
const VERSION = 2;

export interface Meta {
	samples: number;
	complete: number;
	/** samples of sonde itself, which recorded them; pages of before have none */
	own?: number;
	duration_ns: number;
	frequency_hz: number;
	start_ms: number;
	/** by reason: how many samples, and what the reason means */
	truncated: { [reason: string]: { samples: number; sentence: string } };
	/** by kind: the languages of runtimes */
	runtimes: { [kind: string]: string };
}

export interface Profile {
	meta: Meta;
	/** columns by function */
	names: string[];
	files: string[]; // "" if none; of a runtime's function the source
	lines: Uint32Array; // where it begins in there; 0: not known
	kinds: Uint8Array;
	/** columns by node of the call tree, depth-first; depth 0 are the comms */
	func: Uint32Array;
	depth: Uint32Array;
	self: Float64Array;
}

export function isInlined(kind: number): boolean {
	return kind === KIND_INLINED || kind >= KIND_INLINED_OF;
}

/** The kind of the frames of a runtime; 0: it is none's. */
export function runtimeKind(kind: number): number {
	const base = kind >= KIND_INLINED_OF ? kind - KIND_INLINED_OF : kind;
	return base > KIND_TRUNCATED && base < KIND_COMM ? base : 0;
}

/** What people call the language of a runtime's function; "": it is none's. */
export function languageOf(p: Profile, f: number): string {
	const kind = runtimeKind(p.kinds[f]);
	return kind ? (p.meta.runtimes[kind] ?? `runtime ${kind}`) : "";
}

class Reader {
	private at = 0;
	constructor(private readonly bytes: Uint8Array) {}

	u8(): number {
		if (this.at >= this.bytes.length)
			throw new Error("the profile data ends too early");
		return this.bytes[this.at++];
	}

	u32(): number {
		return (this.u8() | (this.u8() << 8) | (this.u8() << 16) | (this.u8() << 24)) >>> 0;
	}

	/** LEB128; exact up to 2^53 */
	varint(): number {
		const { bytes } = this;
		let b = bytes[this.at];
		if (b < 0x80) {
			this.at++;
			return b;
		}
		let value = 0;
		let scale = 1;
		for (let i = 0; i < 10; i++) {
			b = this.u8();
			value += (b & 0x7f) * scale;
			if (b < 0x80)
				return value;
			scale *= 128;
		}
		throw new Error("the profile data has a number that does not end");
	}

	/** A number of things that take at least `size` bytes each. */
	count(size: number): number {
		const n = this.varint();
		if (!(n * size <= this.bytes.length - this.at))
			throw new Error("the profile data ends too early");
		return n;
	}

	slice(n: number): Uint8Array {
		if (!(n <= this.bytes.length - this.at))
			throw new Error("the profile data ends too early");
		this.at += n;
		return this.bytes.subarray(this.at - n, this.at);
	}
}

function readStrings(r: Reader): string[] {
	const n = r.count(1);
	const lengths = new Uint32Array(n);
	for (let i = 0; i < n; i++)
		lengths[i] = r.varint();
	const utf8 = new TextDecoder();
	const strings = new Array<string>(n);
	for (let i = 0; i < n; i++)
		strings[i] = utf8.decode(r.slice(lengths[i]));
	return strings;
}

function readIds(r: Reader, n: number, limit: number): Uint32Array {
	const ids = new Uint32Array(n);
	for (let i = 0; i < n; i++) {
		const id = r.varint();
		if (!(id < limit))
			throw new Error("the profile data names what it does not have");
		ids[i] = id;
	}
	return ids;
}

function readDepths(r: Reader, n: number): Uint32Array {
	const depth = new Uint32Array(n);
	let previous = -1;
	for (let i = 0; i < n; i++) {
		const d = previous + 1 - r.varint();
		if (!(d >= 0))
			throw new Error("the profile data has a node above the root");
		depth[i] = previous = d;
	}
	return depth;
}

export function decodeProfile(bytes: Uint8Array): Profile {
	const r = new Reader(bytes);
	if (r.u32() !== MAGIC)
		throw new Error("this is not profile data");
	const version = r.u32();
	if (version !== VERSION)
		throw new Error(`the profile data has version ${version}, this page reads ${VERSION}`);
	const meta = JSON.parse(new TextDecoder().decode(r.slice(r.varint()))) as Meta;
	const strings = readStrings(r);
	const nrFunctions = r.count(4);
	const name = readIds(r, nrFunctions, strings.length);
	const file = readIds(r, nrFunctions, strings.length);
	const lines = new Uint32Array(nrFunctions);
	for (let i = 0; i < nrFunctions; i++)
		lines[i] = r.varint();
	const kinds = r.slice(nrFunctions).slice();
	const nrNodes = r.count(3);
	const func = readIds(r, nrNodes, nrFunctions);
	const depth = readDepths(r, nrNodes);
	const self = new Float64Array(nrNodes);
	for (let i = 0; i < nrNodes; i++)
		self[i] = r.varint();
	return {
		meta,
		names: Array.from(name, (id) => strings[id]),
		files: Array.from(file, (id) => strings[id]),
		lines,
		kinds,
		func,
		depth,
		self,
	};
}

/** In pieces: one call of atob() for a hundred megabytes would need them three times over. */
export function decodeBase64(text: string): Uint8Array {
	const PIECE = 1 << 20; // a multiple of 4
	const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
	const bytes = new Uint8Array((text.length / 4) * 3 - padding);
	let at = 0;
	for (let i = 0; i < text.length; i += PIECE) {
		const piece = atob(text.slice(i, i + PIECE));
		for (let k = 0; k < piece.length; k++)
			bytes[at++] = piece.charCodeAt(k);
	}
	return bytes;
}

export async function inflate(bytes: Uint8Array): Promise<Uint8Array> {
	if (typeof DecompressionStream === "undefined")
		throw new Error("this browser is too old to unpack the profile (no DecompressionStream)");
	const stream = new Blob([bytes as Uint8Array<ArrayBuffer>])
		.stream()
		.pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function loadProfile(element: HTMLElement): Promise<Profile> {
	const text = (element.textContent ?? "").trim();
	if (!text || text.startsWith("@"))
		throw new Error("this page has no profile in it");
	const bytes = decodeBase64(text);
	element.textContent = "";
	return decodeProfile(await inflate(bytes));
}
