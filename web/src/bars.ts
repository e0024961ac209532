// SPDX-License-Identifier: Apache-2.0
/*
 * The nodes thinner than a pixel. A dense graph has tens of thousands of them on screen, too many to
 * draw as rectangles; they are pixels of one image, a line a level, and each line is stretched to the
 * height of its level.
 */

/** "rgb(1, 2, 3)" or "#010203" as a pixel of an image: alpha, blue, green, red from the top. */
export function pixelOf(color: string): number {
	const hex = /^#(..)(..)(..)$/.exec(color);
	const [r, g, b] = hex
		? hex.slice(1).map((part) => Number.parseInt(part, 16))
		: (color.match(/\d+/g) ?? []).map(Number);
	return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export class Bars {
	private readonly canvas = document.createElement("canvas");
	private readonly pixels = new Map<string, number>();
	private image: ImageData | null = null;
	private data = new Uint32Array(0);
	private ratio = 1;
	/** by line: whether there is anything on it */
	private used = new Uint8Array(0);

	/** An empty image of so many levels. Widths are CSS pixels here and below. */
	begin(width: number, levels: number, ratio: number): void {
		const w = Math.max(1, Math.ceil(width * ratio));
		const h = Math.max(1, levels);
		this.ratio = ratio;
		if (this.image?.width !== w || this.image.height !== h) {
			this.canvas.width = w;
			this.canvas.height = h;
			this.image = new ImageData(w, h);
			this.data = new Uint32Array(this.image.data.buffer);
			this.used = new Uint8Array(h);
		} else {
			this.data.fill(0);
			this.used.fill(0);
		}
	}

	add(line: number, left: number, width: number, color: string): void {
		let pixel = this.pixels.get(color);
		if (pixel === undefined)
			this.pixels.set(color, (pixel = pixelOf(color)));
		const w = this.canvas.width;
		const from = Math.max(0, Math.floor(left * this.ratio));
		const to = Math.min(w, Math.max(from + 1, Math.floor((left + width) * this.ratio)));
		this.data.fill(pixel, line * w + from, line * w + to);
		this.used[line] = 1;
	}

	/** Draws each line from the y that `top` gives, so many pixels high. */
	draw(ctx: CanvasRenderingContext2D, height: number, top: (line: number) => number): void {
		const { canvas, image, ratio } = this;
		if (!image || !this.used.includes(1))
			return;
		canvas.getContext("2d")?.putImageData(image, 0, 0);
		ctx.imageSmoothingEnabled = false;
		for (let line = 0; line < this.used.length; line++)
			if (this.used[line])
				ctx.drawImage(
					canvas, 0, line, canvas.width, 1,
					0, top(line), canvas.width / ratio, height,
				);
	}
}
