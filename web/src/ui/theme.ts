// SPDX-License-Identifier: Apache-2.0
/* Dark or light: as the system has it until the reader chooses; the choice is remembered. */

const KEY = "sonde-theme";

function stored(): string | null {
	try {
		return localStorage.getItem(KEY);
	} catch {
		return null; /* storage may be switched off for local files */
	}
}

export class ThemeSwitch {
	private readonly system = matchMedia("(prefers-color-scheme: dark)");
	private chosen = stored();

	constructor(private readonly onChange: () => void) {
		this.system.addEventListener("change", () => this.apply());
		this.apply(false);
	}

	get dark(): boolean {
		return this.chosen ? this.chosen === "dark" : this.system.matches;
	}

	toggle(): void {
		this.chosen = this.dark ? "light" : "dark";
		try {
			localStorage.setItem(KEY, this.chosen);
		} catch {
			/* it holds for this page then */
		}
		this.apply();
	}

	private apply(notify = true): void {
		document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
		if (notify)
			this.onChange();
	}
}
