// SPDX-License-Identifier: Apache-2.0
/*
 * Long work in short pieces: a generator that yields its progress (0 to 1) now and then is run for a
 * few milliseconds at a time, so that the page keeps drawing and answering. The work stops when the
 * signal is aborted.
 */

export type Work<T> = Generator<number, T, void>;

const SLICE_MS = 8;

function nextTask(): Promise<void> {
	return new Promise((resolve) => setTimeout(resolve, 0));
}

/** The result, or undefined if it was aborted. */
export async function runInSlices<T>(
	work: Work<T>,
	signal: AbortSignal,
	progress?: (done: number) => void,
): Promise<T | undefined> {
	for (;;) {
		const until = performance.now() + SLICE_MS;
		let done = 0;
		do {
			const step = work.next();
			if (step.done)
				return step.value;
			done = step.value;
		} while (performance.now() < until);
		progress?.(done);
		await nextTask();
		if (signal.aborted)
			return undefined;
	}
}

/** At once: for tests and small graphs. */
export function runAtOnce<T>(work: Work<T>): T {
	for (;;) {
		const step = work.next();
		if (step.done)
			return step.value;
	}
}
