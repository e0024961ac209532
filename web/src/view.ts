// SPDX-License-Identifier: Apache-2.0
/*
 * Which part of the graph is on screen: a range of samples, moved and zoomed within [0, total]. Plain
 * arithmetic; scrolling down the levels is the browser's.
 */

export interface Range {
	x0: number;
	x1: number;
}

/** Half a sample: nothing is gained by looking closer. */
const MIN_WIDTH = 0.5;

export function clamp(r: Range, total: number): Range {
	const width = Math.min(Math.max(r.x1 - r.x0, Math.min(MIN_WIDTH, total)), total);
	if (width > total * (1 - 1e-9))
		return { x0: 0, x1: total }; /* exactly, whatever the rounding */
	const x0 = Math.min(Math.max(r.x0, 0), total - width);
	return { x0, x1: x0 + width };
}

/** Moves by a share of what is visible. */
export function pan(r: Range, share: number, total: number): Range {
	const by = (r.x1 - r.x0) * share;
	return clamp({ x0: r.x0 + by, x1: r.x1 + by }, total);
}

/** factor > 1 comes closer; `at` (0 to 1) is the place on screen that stays where it is. */
export function zoom(r: Range, factor: number, at: number, total: number): Range {
	const width = r.x1 - r.x0;
	const next = Math.min(Math.max(width / factor, Math.min(MIN_WIDTH, total)), total);
	const x0 = r.x0 + at * (width - next);
	return clamp({ x0, x1: x0 + next }, total);
}

/** Between two ranges; in the logarithm of the width, so that a deep zoom goes evenly. */
export function between(a: Range, b: Range, t: number): Range {
	if (t >= 1)
		return b;
	const wa = a.x1 - a.x0;
	const wb = b.x1 - b.x0;
	if (!(wa > 0) || !(wb > 0))
		return b;
	const width = wa * Math.pow(wb / wa, t);
	/* The share of the way by width: the edges then arrive together. */
	const share = Math.abs(wb - wa) < 1e-9 * wa ? t : (width - wa) / (wb - wa);
	const x0 = a.x0 + (b.x0 - a.x0) * share;
	return { x0, x1: x0 + width };
}

export function easeOut(t: number): number {
	return 1 - (1 - t) ** 3;
}
