#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT.html OUT.S DEPFILE: builds the viewer's page, see build.mjs. Fetches the packages of
# package-lock.json first if they are missing or older than it. Several build folders share
# node_modules, so one at a time.
set -eu
web=$(dirname "$0")
installed=$web/node_modules/.package-lock.json

exec 9<"$web"
flock 9
if [ ! -e "$installed" ] || [ "$web/package-lock.json" -nt "$installed" ]; then
	(cd "$web" && npm ci --include=dev --ignore-scripts --no-audit --no-fund --loglevel=error >&2) || {
		echo "web: npm ci failed: building the viewer needs npm and its registry (or web/node_modules)" >&2
		exit 1
	}
	touch "$installed"
fi
[ $# -eq 0 ] || exec node "$web/build.mjs" "$@"
