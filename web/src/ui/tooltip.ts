// SPDX-License-Identifier: Apache-2.0
/* What is known of the frame under the pointer. */
import { count, percent } from "../format.ts";
import { byId, make, placeAt, swatch } from "./dom.ts";

export interface TooltipContent {
	name: string;
	file: string;
	color: string;
	/** null: not known here */
	self: number | null;
	total: number;
	/** of the whole profile, and of the zoomed node (0: not zoomed) */
	all: number;
	zoomed: number;
	/** the function in all stacks; null for what is no function */
	everywhere: { self: number; total: number } | null;
}

function row(c: TooltipContent, label: string, samples: number, here: boolean): HTMLElement {
	const tr = make("tr", here ? "" : "everywhere", make("th", "", label));
	tr.append(make("td", "", count(samples)), make("td", "", percent(samples, c.all)));
	if (c.zoomed)
		tr.append(make("td", "", here ? percent(samples, c.zoomed) : ""));
	return tr;
}

function rows(c: TooltipContent): HTMLElement[] {
	const list = [row(c, "Total", c.total, true)];
	if (c.self !== null)
		list.push(row(c, "Self", c.self, true));
	if (c.everywhere && (c.everywhere.total > c.total || c.self === null)) {
		list.push(row(c, "Total in all stacks", c.everywhere.total, false));
		list.push(row(c, "Self in all stacks", c.everywhere.self, false));
	}
	return list;
}

export class Tooltip {
	private readonly box = byId("tooltip");

	show(c: TooltipContent, x: number, y: number): void {
		const { box } = this;
		box.replaceChildren(make("div", "name", c.name));
		if (c.file)
			box.append(make("div", "file", swatch(c.color), c.file));
		const head = make("tr", "", make("th"));
		head.append(make("td", "", "samples"), make("td", "", "of all"));
		if (c.zoomed)
			head.append(make("td", "", "of zoomed"));
		const body = make("tbody", "", ...rows(c));
		box.append(make("table", "", make("thead", "", head), body));
		box.hidden = false;
		placeAt(box, x, y, 14);
	}

	hide(): void {
		this.box.hidden = true;
	}
}
