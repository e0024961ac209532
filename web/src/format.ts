// SPDX-License-Identifier: Apache-2.0
/* Numbers and times as people read them. */

export function count(n: number): string {
	return n.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** Never "100 %" for less than all, nor "0 %" for more than nothing. */
export function percent(part: number, whole: number): string {
	if (!(whole > 0))
		return "–";
	const p = (100 * part) / whole;
	if (p === 0 || p === 100)
		return `${p} %`;
	if (p < 0.01)
		return "< 0.01 %";
	const digits = p < 1 || p > 99 ? 2 : 1;
	const text = p.toFixed(digits);
	return text === "100.00" ? "> 99.99 %" : `${text} %`;
}

export function seconds(ns: number): string {
	const s = ns / 1e9;
	if (s < 60)
		return `${s.toFixed(s < 10 ? 2 : 1)} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
	return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

export function date(ms: number): string {
	if (!(ms > 0))
		return "";
	const d = new Date(ms);
	const two = (n: number) => String(n).padStart(2, "0");
	return (
		`${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
		`${two(d.getHours())}:${two(d.getMinutes())}`
	);
}

export function plural(n: number, one: string, many = `${one}s`): string {
	return `${count(n)} ${n === 1 ? one : many}`;
}
