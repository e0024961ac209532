// SPDX-License-Identifier: Apache-2.0
/* The colours in use, heaviest first, each a button that highlights its frames. */
import { type Groups, NR_SHADES, type Theme } from "../colors.ts";
import { percent } from "../format.ts";
import { byId, make, swatch } from "./dom.ts";

const SHOWN = 8;
const SHOWN_ALL = 400;

export class Legend {
	private all = false;

	constructor(
		private readonly groups: Groups,
		private readonly total: number,
		private readonly onToggle: (key: string) => void,
	) {}

	show(theme: Theme, active: string): void {
		const box = byId("legend");
		const { list } = this.groups;
		const shown = this.all ? SHOWN_ALL : SHOWN;
		const focused = (document.activeElement as HTMLElement | null)?.dataset["group"];
		box.replaceChildren();
		list.forEach((group, i) => {
			/* The highlighted one is always there: it must be possible to click it off. */
			if (i >= shown && group.key !== active)
				return;
			const button = make(
				"button",
				"",
				swatch(theme.frames[i * NR_SHADES + 1]),
				make("span", "name", group.label),
				make("span", "share", percent(group.self, this.total)),
			);
			button.type = "button";
			button.title = `${group.title}: ${percent(group.self, this.total)} of the samples ran in it`;
			button.dataset["group"] = group.key;
			button.setAttribute("aria-pressed", String(group.key === active));
			button.addEventListener("click", () => this.onToggle(group.key));
			box.append(button);
			if (group.key === focused)
				button.focus();
		});
		if (list.length > SHOWN) {
			const more = make("button", "more", this.all ? "fewer" : `${list.length - SHOWN} more`);
			more.type = "button";
			more.setAttribute("aria-expanded", String(this.all));
			more.addEventListener("click", () => {
				this.all = !this.all;
				this.show(theme, active);
				window.dispatchEvent(new Event("resize"));
			});
			box.append(more);
		}
	}
}
