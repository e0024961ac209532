#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that is a GraalVM native image: `tests/zoo/native-image.sh VERSION` prints its path. It is the Closure compiler, which npm has
# packages of: VERSION is a package's, like 20200204.0.0 (with symbols, dynamically linked) or 20261015.0.0 (stripped, static, of musl).
#
# Made once in $SONDE_ZOO (default /var/cache/sonde-zoo) by npm, from the registry that this machine's npm uses. Exit 77, with the reason on
# stderr, if it cannot be had here.
set -euo pipefail
zoo=${SONDE_ZOO:-/var/cache/sonde-zoo}
version=${1:?usage: native-image.sh VERSION}

unavailable() {
	echo "no native image $version: $*" >&2
	exit 77
}

[ "$(uname -m)" = x86_64 ] || unavailable "its packages are for x86-64"
command -v npm >/dev/null || unavailable "no npm"
mkdir -p "$zoo/log"
home=$zoo/native-image-$version
log=$zoo/log/native-image-$version.log
exec 9>"$zoo/log/native-image-$version.lock"
flock 9
if [ ! -x "$home/compiler" ]; then
	new=$(mktemp -d "$zoo/native-image.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	(cd "$new" && npm pack --silent "google-closure-compiler-linux@$version") >"$log" 2>&1 </dev/null || unavailable "$(tail -n 1 "$log")"
	tar -x -C "$new" --strip-components 1 -f "$new"/*.tgz >>"$log" 2>&1 || unavailable "$(tail -n 1 "$log")"
	chmod 755 "$new" "$new/compiler" || unavailable "its package has no compiler"
	rm -rf "$home" "$new"/*.tgz
	mv "$new" "$home"
	trap - EXIT
fi
echo "$home/compiler"
