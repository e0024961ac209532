// SPDX-License-Identifier: Apache-2.0
/* The page's elements by their id, and making new ones. Text is only ever set as text. */

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
	const element = document.getElementById(id);
	if (!element)
		throw new Error(`the page has no element ${id}`);
	return element as T;
}

export function make<K extends keyof HTMLElementTagNameMap>(
	tag: K,
	className = "",
	...children: Array<Node | string>
): HTMLElementTagNameMap[K] {
	const element = document.createElement(tag);
	if (className)
		element.className = className;
	element.append(...children);
	return element;
}

export function swatch(color: string): HTMLElement {
	const element = make("span", "swatch");
	element.style.background = color;
	return element;
}

let toastTimer = 0;

export function toast(text: string): void {
	const element = byId("toast");
	element.textContent = text;
	element.hidden = false;
	clearTimeout(toastTimer);
	toastTimer = window.setTimeout(() => {
		element.hidden = true;
	}, 1800);
}

/** A place at the pointer that keeps a box inside the window. */
export function placeAt(box: HTMLElement, x: number, y: number, gap: number): void {
	const { width, height } = box.getBoundingClientRect();
	const left = x + gap + width > innerWidth - 8 ? x - gap - width : x + gap;
	const top = y + gap + height > innerHeight - 8 ? y - gap - height : y + gap;
	box.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
	box.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
}

export async function copyText(text: string): Promise<void> {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		/* Not every browser allows it in a local file. */
		const area = make("textarea");
		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
	toast(`Copied: ${text.split("\n")[0]}`);
}
