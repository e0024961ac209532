// SPDX-License-Identifier: Apache-2.0
/* Opens the profile that the page carries, or says why it can't. */
import { App } from "./app.ts";
import { loadProfile } from "./data.ts";
import { Input } from "./input.ts";
import { byId } from "./ui/dom.ts";

declare global {
	interface Window {
		/** for tests and the curious */
		sonde?: App;
	}
}

function fail(error: unknown): void {
	const busy = byId("busy");
	busy.hidden = false;
	busy.classList.add("error");
	byId("busy-bar").hidden = true;
	byId("busy-text").textContent = error instanceof Error ? error.message : String(error);
}

async function main(): Promise<void> {
	const profile = await loadProfile(byId("profile-data"));
	if (!profile.meta.samples)
		throw new Error("This profile has no samples.");
	const app = new App(profile);
	byId("busy").hidden = true;
	new Input(app);
	app.start();
	window.sonde = app;
}

main().catch(fail);
