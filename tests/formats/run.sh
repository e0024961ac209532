#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh speedscope DIR: npm's viewers on the files in DIR. Fetches the packages of package-lock.json first
# if they are missing or older than it; one at a time, as several build folders share them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
installed=$here/node_modules/.package-lock.json

"$here/../../web/build.sh" # playwright-core
exec 9<"$here"
flock 9
if [ ! -e "$installed" ] || [ "$here/package-lock.json" -nt "$installed" ]; then
	(cd "$here" && npm ci --include=dev --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	touch "$installed"
fi
exec 9<&-
exec node "$here/$1_test.mjs" "$2"
