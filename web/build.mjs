// SPDX-License-Identifier: Apache-2.0
/*
 * node build.mjs OUT.html [OUT.S [DEPFILE]]: bundles src/main.ts and src/style.css into one page. OUT.S
 * is that page as an object for the linker (symbols viewer_html and viewer_html_size); DEPFILE lists
 * what the page was made of, for ninja.
 */
import * as esbuild from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

async function bundle(entry) {
	const result = await esbuild.build({
		absWorkingDir: here,
		entryPoints: [entry],
		bundle: true,
		write: false,
		minify: true,
		metafile: true,
		charset: "utf8",
		format: "iife",
		target: ["chrome103", "firefox113", "safari16.4"],
		legalComments: "none",
		logLevel: "warning",
	});
	return {
		text: result.outputFiles[0].text.trim(),
		inputs: Object.keys(result.metafile.inputs).map((path) => join(here, path)),
	};
}

/* A comment that GNU as takes on every architecture, and the symbols. */
function assembly(path, page) {
	return `/* made by web/build.mjs: sha256 ${createHash("sha256").update(page).digest("hex")} */
	.section .rodata
	.balign 16
	.globl viewer_html
	.hidden viewer_html
viewer_html:
	.incbin "${path}"
viewer_html_end:
	.balign 8
	.globl viewer_html_size
	.hidden viewer_html_size
viewer_html_size:
	.8byte viewer_html_end - viewer_html
	.section .note.GNU-stack, "", %progbits
`;
}

const [out, outAssembly, depfile] = process.argv.slice(2);
const template = join(here, "src", "page.html");
const script = await bundle("src/main.ts");
const style = await bundle("src/style.css");
const page = readFileSync(template, "utf8")
	.replace("/*STYLE*/", () => style.text)
	.replace("/*SCRIPT*/", () => script.text);

if (page.split("@PROFILE_DATA@").length !== 2)
	throw new Error("the page must have the place of the data exactly once");
if (/\bhttps?:/.test(page))
	throw new Error("the page must not name anything on the network");
writeFileSync(out, page);
if (outAssembly)
	writeFileSync(outAssembly, assembly(resolve(out), page));
if (depfile) {
	const inputs = [template, ...script.inputs, ...style.inputs, fileURLToPath(import.meta.url)];
	const list = inputs.map((path) => relative(process.cwd(), path).replaceAll(" ", "\\ "));
	writeFileSync(depfile, `${out}: ${list.join(" \\\n  ")}\n`);
}
