#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A Debian release as a folder: `tests/zoo/debian.sh SUITE PACKAGE...` prints the path of its root, in which these packages are installed.
#
# Made once by debootstrap in $SONDE_ZOO (default /var/cache/sonde-zoo), from the mirror that this machine's own apt uses, verified against the
# installed archive keyring. Programs run in it by chroot, with /proc. `experimental`, which is no whole release, is sid with these packages
# and what they need from there. Exit 77, with the reason on stderr, if it cannot be had here.
set -euo pipefail
zoo=${SONDE_ZOO:-/var/cache/sonde-zoo}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

unavailable() {
	echo "no Debian $suite: $*" >&2
	exit 77
}

suite=${1:?usage: debian.sh SUITE PACKAGE...}
shift
root=$zoo/debian-$suite
[ "$(id -u)" -eq 0 ] || unavailable "not root"
mkdir -p "$zoo/log"
exec 9>"$zoo/log/debian-$suite.lock"
flock 9

if [ ! -e "$root/.made" ]; then
	command -v debootstrap >/dev/null || unavailable "debootstrap is not installed"
	[ -r "$keyring" ] || unavailable "no $keyring (package debian-archive-keyring)"
	. /etc/os-release
	mirror=$(apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI)' \
		'Created-By: Packages' 'Component: main' 2>/dev/null |
		sed -nE "s/^(${VERSION_CODENAME-}|stable|oldstable) //p" | head -n 1) || true
	[ -n "$mirror" ] || unavailable "apt has no source for ${VERSION_CODENAME-this system}"
	rm -rf "$root"
	timeout 1200 debootstrap --variant=minbase --keyring="$keyring" "${suite/experimental/sid}" "$root" "$mirror" \
		>"$zoo/log/debian-$suite.log" 2>&1 </dev/null ||
		unavailable "$(tail -n 1 "$zoo/log/debian-$suite.log")"
	# How this machine's apt fetches; none of its hooks.
	grep -hs "^Acquire.*;$" /etc/apt/apt.conf.d/* >"$root/etc/apt/apt.conf.d/99zoo" || true
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	[ "$suite" != experimental ] || echo "deb $mirror experimental main" >"$root/etc/apt/sources.list.d/experimental.list"
	: >"$root/.made"
fi

missing=()
for package in "$@"; do
	[ -e "$root/var/lib/dpkg/info/$package.list" ] ||
		compgen -G "$root/var/lib/dpkg/info/$package:*.list" >/dev/null || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
	# Some packages (ca-certificates-java) want /proc while they are set up; nothing outside sees this mount.
	unshare --mount --propagation private bash -eu -c '
		mount -t proc proc "$1/proc"
		root=$1 suite=$2
		shift 2
		export DEBIAN_FRONTEND=noninteractive
		chroot "$root" apt-get -qq update
		mkdir -p "$root/usr/share/man/man1"
		[ "$suite" != experimental ] || set -- -t experimental "$@"
		chroot "$root" apt-get -qq -y --no-install-recommends install "$@"
		chroot "$root" apt-get clean
	' - "$root" "$suite" "${missing[@]}" >>"$zoo/log/debian-$suite.log" 2>&1 </dev/null ||
		unavailable "$(grep '^[EW]:' "$zoo/log/debian-$suite.log" | tail -n 1)"
fi
echo "$root"
