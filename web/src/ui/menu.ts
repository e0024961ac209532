// SPDX-License-Identifier: Apache-2.0
/* The menu of a frame: by right click, or by the keyboard's menu key. */
import { byId, make, placeAt } from "./dom.ts";

export interface MenuItem {
	label: string;
	run: () => void;
}

export class Menu {
	private readonly box = byId("menu");

	constructor() {
		document.addEventListener("pointerdown", (e) => {
			if (!this.box.contains(e.target as Node))
				this.hide();
		});
		this.box.addEventListener("keydown", (e) => this.key(e));
	}

	get open(): boolean {
		return !this.box.hidden;
	}

	show(items: MenuItem[], x: number, y: number): void {
		this.box.replaceChildren(
			...items.map((item) => {
				const button = make("button", "", item.label);
				button.type = "button";
				button.setAttribute("role", "menuitem");
				button.addEventListener("click", () => {
					this.hide();
					item.run();
				});
				return button;
			}),
		);
		this.box.hidden = false;
		placeAt(this.box, x, y, 2);
		(this.box.firstElementChild as HTMLElement | null)?.focus();
	}

	hide(): void {
		if (this.box.hidden)
			return;
		this.box.hidden = true;
		byId("graph").focus({ preventScroll: true });
	}

	private key(e: KeyboardEvent): void {
		const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
		if (e.key === "Escape") {
			this.hide();
		} else if (step) {
			const items = [...this.box.children] as HTMLElement[];
			const at = items.indexOf(document.activeElement as HTMLElement);
			items[(at + step + items.length) % items.length]?.focus();
		} else {
			return;
		}
		e.preventDefault();
		e.stopPropagation();
	}
}
