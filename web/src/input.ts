// SPDX-License-Identifier: Apache-2.0
/* Pointer, wheel, keys and buttons: each becomes a call of the app. */
import type { App } from "./app.ts";
import { ROOT } from "./graph.ts";
import { byId, copyText } from "./ui/dom.ts";
import { Menu } from "./ui/menu.ts";
import { Tooltip } from "./ui/tooltip.ts";
import { pan, zoom } from "./view.ts";

const DRAG_PX = 5;
const PAN_SHARE = 0.15;
const ZOOM_FACTOR = 1.4;
const SEARCH_DELAY_MS = 90;

export class Input {
	private readonly canvas = byId<HTMLCanvasElement>("canvas");
	private readonly scroller = byId("graph");
	private readonly search = byId<HTMLInputElement>("search");
	private readonly tooltip = new Tooltip();
	private readonly menu = new Menu();
	private searchTimer = 0;
	private pointer = { x: 0, y: 0 };
	private drag: { x: number; y: number; moved: boolean } | null = null;

	constructor(private readonly app: App) {
		this.listenToPointer();
		this.listenToSearch();
		byId("invert").addEventListener("click", () => this.invert());
		byId("flip").addEventListener("click", () => this.flip());
		byId("theme").addEventListener("click", () => this.app.themeSwitch.toggle());
		byId("help").addEventListener("click", () => byId<HTMLDialogElement>("keys").showModal());
		byId("next").addEventListener("click", () => this.app.step(1));
		byId("previous").addEventListener("click", () => this.app.step(-1));
		window.addEventListener("keydown", (e) => this.key(e));
	}

	private listenToPointer(): void {
		const { canvas, scroller } = this;
		canvas.addEventListener("pointermove", (e) => this.move(e));
		canvas.addEventListener("pointerleave", () => this.leave());
		canvas.addEventListener("pointerdown", (e) => {
			if (e.button === 0 && e.pointerType === "mouse")
				this.drag = { x: e.clientX, y: e.clientY, moved: false };
		});
		window.addEventListener("pointerup", () => {
			canvas.classList.remove("dragging");
			/* The click that follows must still know of the drag. */
			setTimeout(() => {
				this.drag = null;
			}, 0);
		});
		canvas.addEventListener("click", (e) => {
			if (this.drag?.moved)
				return;
			const node = this.app.hit(...this.local(e));
			if (node >= 0)
				this.app.zoomTo(node);
		});
		canvas.addEventListener("contextmenu", (e) => this.contextMenu(e));
		scroller.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
		scroller.addEventListener("scroll", () => this.hoverAt());
	}

	private listenToSearch(): void {
		const { search, app } = this;
		search.addEventListener("input", () => {
			clearTimeout(this.searchTimer);
			this.searchTimer = window.setTimeout(() => this.commitSearch(), SEARCH_DELAY_MS);
		});
		search.addEventListener("keydown", (e) => {
			if (e.key === "Enter") {
				this.commitSearch();
				app.step(e.shiftKey ? -1 : 1);
			} else if (e.key === "Escape") {
				search.value = "";
				this.commitSearch();
				this.scroller.focus({ preventScroll: true });
			} else {
				return;
			}
			e.preventDefault();
			e.stopPropagation();
		});
	}

	private commitSearch(): void {
		clearTimeout(this.searchTimer);
		if (this.search.value !== this.app.state.search)
			this.app.go({ search: this.search.value }, true);
	}

	private invert(): void {
		/* A path of callees means nothing among callers. */
		this.app.go({ inverted: !this.app.state.inverted, zoom: [] });
	}

	private flip(): void {
		this.app.go({ upwards: !this.app.state.upwards }, true);
		this.scroller.scrollTop = this.app.state.upwards ? this.scroller.scrollHeight : 0;
	}

	private local(e: MouseEvent): [number, number] {
		const box = this.canvas.getBoundingClientRect();
		return [e.clientX - box.left, e.clientY - box.top];
	}

	private move(e: PointerEvent): void {
		const { drag, app } = this;
		this.pointer = { x: e.clientX, y: e.clientY };
		if (drag && (drag.moved || Math.hypot(e.clientX - drag.x, e.clientY - drag.y) > DRAG_PX)) {
			drag.moved = true;
			this.canvas.classList.add("dragging");
			this.tooltip.hide();
			const share = (drag.x - e.clientX) / this.canvas.clientWidth;
			app.setRange(pan(app.range, share, app.total));
			this.scroller.scrollTop += drag.y - e.clientY;
			drag.x = e.clientX;
			drag.y = e.clientY;
			return;
		}
		this.hoverAt();
	}

	private hoverAt(): void {
		const { app, canvas } = this;
		if (!canvas.matches(":hover") || this.menu.open)
			return;
		const box = canvas.getBoundingClientRect();
		const node = app.hit(this.pointer.x - box.left, this.pointer.y - box.top);
		if (node !== app.hover) {
			app.hover = node;
			app.requestDraw();
		}
		canvas.classList.toggle("over", node >= 0);
		if (node >= 0)
			this.tooltip.show(app.describe(node), this.pointer.x, this.pointer.y);
		else
			this.tooltip.hide();
	}

	private leave(): void {
		this.tooltip.hide();
		if (this.app.hover >= 0) {
			this.app.hover = -1;
			this.app.requestDraw();
		}
	}

	private contextMenu(e: MouseEvent): void {
		const node = this.app.hit(...this.local(e));
		const items = node >= 0 ? this.app.menuItems(node) : [];
		if (!items.length)
			return;
		e.preventDefault();
		this.tooltip.hide();
		this.menu.show(items, e.clientX, e.clientY);
	}

	private wheel(e: WheelEvent): void {
		const { app } = this;
		if (e.ctrlKey || e.metaKey) {
			e.preventDefault();
			const at = this.local(e)[0] / this.canvas.clientWidth;
			app.setRange(zoom(app.range, Math.exp(-e.deltaY * 0.004), at, app.total));
		} else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) {
			e.preventDefault();
			const by = e.deltaX || e.deltaY;
			app.setRange(pan(app.range, by / this.canvas.clientWidth, app.total));
		}
	}

	private key(e: KeyboardEvent): void {
		const dialog = byId<HTMLDialogElement>("keys");
		if (dialog.open || this.menu.open)
			return;
		if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "f") {
			e.preventDefault();
			this.search.focus();
			this.search.select();
			return;
		}
		if (e.ctrlKey || e.metaKey || e.altKey || e.target === this.search)
			return;
		const run = this.keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
		if (run) {
			e.preventDefault();
			run();
		}
	}

	private readonly keys: { [key: string]: () => void } = {
		"/": () => {
			this.search.focus();
			this.search.select();
		},
		"?": () => byId<HTMLDialogElement>("keys").showModal(),
		Escape: () => this.app.reset(),
		"0": () => this.app.zoomTo(ROOT),
		n: () => this.app.step(1),
		p: () => this.app.step(-1),
		i: () => this.invert(),
		f: () => this.flip(),
		t: () => this.app.themeSwitch.toggle(),
		a: () => this.pan(-PAN_SHARE),
		d: () => this.pan(PAN_SHARE),
		ArrowLeft: () => this.pan(-PAN_SHARE),
		ArrowRight: () => this.pan(PAN_SHARE),
		ArrowUp: () => this.scroller.scrollBy(0, -60),
		ArrowDown: () => this.scroller.scrollBy(0, 60),
		w: () => this.zoom(ZOOM_FACTOR),
		s: () => this.zoom(1 / ZOOM_FACTOR),
		"+": () => this.zoom(ZOOM_FACTOR),
		"=": () => this.zoom(ZOOM_FACTOR),
		"-": () => this.zoom(1 / ZOOM_FACTOR),
		c: () => {
			if (this.app.hover > ROOT)
				void copyText(this.app.name(this.app.hover));
		},
	};

	private pan(share: number): void {
		this.app.setRange(pan(this.app.range, share, this.app.total));
	}

	private zoom(factor: number): void {
		this.app.setRange(zoom(this.app.range, factor, 0.5, this.app.total));
	}
}
