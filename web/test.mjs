// SPDX-License-Identifier: Apache-2.0
/* Bundles test/*.test.ts, runs them in node, prints TAP. */
import * as esbuild from "esbuild";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const dir = mkdtempSync(join(tmpdir(), "sonde-web-"));
const outfile = join(dir, "tests.mjs");
const files = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));

try {
	await esbuild.build({
		absWorkingDir: here,
		stdin: {
			contents: [
				...files.sort().map((name) => `import "./test/${name}";`),
				'import { run } from "./test/tap.mjs"; await run();',
			].join("\n"),
			resolveDir: here,
		},
		bundle: true,
		platform: "node",
		format: "esm",
		target: "node18",
		outfile,
		sourcemap: "inline",
		logLevel: "warning",
	});
	await import(pathToFileURL(outfile).href);
} finally {
	rmSync(dir, { recursive: true });
}
