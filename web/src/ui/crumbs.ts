// SPDX-License-Identifier: Apache-2.0
/* The path to the zoomed node; of a long path the ends are shown. */
import { byId, make } from "./dom.ts";

const MAX_SHOWN = 9;
const HEAD = 3;

export interface Crumb {
	label: string;
	node: number;
}

export function showCrumbs(crumbs: Crumb[], share: string, onClick: (node: number) => void): void {
	const nav = byId("crumbs");
	nav.replaceChildren();
	const skip = Math.max(0, crumbs.length - MAX_SHOWN);
	crumbs.forEach((crumb, i) => {
		if (skip && i >= HEAD && i < HEAD + skip) {
			if (i === HEAD)
				nav.append(
					make("span", "sep", "›"),
					make("span", "sep", ` … ${skip} more … `),
				);
			return;
		}
		if (i > 0)
			nav.append(make("span", "sep", "›"));
		const button = make("button", "", crumb.label);
		button.type = "button";
		button.title = crumb.label;
		if (i === crumbs.length - 1)
			button.setAttribute("aria-current", "location");
		button.addEventListener("click", () => onClick(crumb.node));
		nav.append(button);
	});
	nav.append(make("span", "share", share));
}
