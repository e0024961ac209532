# SPDX-License-Identifier: Apache-2.0
"""The ordinary programs that are recorded: what they need, what is made for them once, and what runs while sonde looks.

`prepare` and `run` are bash. Both run in a folder of the program's own that stays from one time to the next; `run` has
$SECONDS_ to keep busy, `forever` repeats a command until they are over. What runs in the background is ended by `run`'s
end. `packages` are Debian's.
"""
import collections

# `complete`: percent, if it is less than run's COMPLETE, and `why`.
Program = collections.namedtuple("Program", "name packages prepare run short complete why")

ALL = []

PRELUDE = r"""
set -e
forever() {
	local end=$(($(date +%s) + SECONDS_))
	while [ "$(date +%s)" -lt "$end" ]; do timeout -k 3 $((end - $(date +%s) + 1)) "$@" || true; done
}
for_a_while() { timeout -k 3 "$SECONDS_" "$@" || true; }
server() { "$@" & servers+=" $!"; }
wait_for() { local i; for i in $(seq 200); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "not there: $*" >&2; exit 1; }
end() { [ -z "$servers" ] || kill $servers 2>/dev/null || true; wait; }
servers=
trap end EXIT
"""


# Code of a JIT that keeps no frame pointer, and that no runtime of sonde's knows: nobody can say where its caller is.
JIT = "its JIT keeps no frame pointer, and sonde has no step for it"


def program(name, run, packages="", prepare="", short=False, complete=None, why=""):
    ALL.append(Program(name, packages, prepare, run, short, complete, why))


program("openssl", "for_a_while openssl speed -seconds 60 -bytes 16384 -evp aes-128-gcm 2>/dev/null >&2", "openssl", short=True)
program("openssl-rsa", "for_a_while openssl speed -seconds 1 rsa2048 ecdsap256 ecdhx25519 sha256 aes-128-cbc ghash >/dev/null 2>&1",
        "openssl")
program(
    "soffice",
    "forever soffice -env:UserInstallation=file://$PWD/home --headless --convert-to pdf text.fodt >/dev/null 2>&1",
    "libreoffice-writer-nogui",
    r"""
{
	echo '<?xml version="1.0" encoding="UTF-8"?><office:document'
	echo ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
	echo ' office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text>'
	for i in $(seq 4000); do echo "<text:p>Paragraph $i: the quick brown fox jumps over the lazy dog, $i times.</text:p>"; done
	echo '</office:text></office:body></office:document>'
} >text.fodt
soffice -env:UserInstallation=file://$PWD/home --headless --convert-to pdf text.fodt >/dev/null 2>&1
""")
program(
    "rustc",
    "forever /usr/bin/rustc -C opt-level=3 -C codegen-units=4 --crate-type lib -o out.rlib many.rs",
    "rustc",
    r"""
{
	echo 'use std::collections::{BTreeMap, HashMap};'
	for i in $(seq 120); do
		echo "pub fn f$i(n: u64) -> BTreeMap<String, Vec<u64>> {"
		echo "  let mut m = BTreeMap::new(); let mut h: HashMap<u64, [u8; $i]> = HashMap::new();"
		echo "  for i in 0..n { m.entry(format!(\"{}-$i\", i % 7)).or_insert_with(Vec::new).push(i * $i); h.insert(i, [0; $i]); }"
		echo "  m.values_mut().for_each(|v| v.sort_by(|a, b| b.cmp(a))); m }"
	done
} >many.rs
""")
program(
    "chromium",
    r"""for_a_while chromium --headless --no-sandbox --disable-gpu --user-data-dir=$PWD/home --virtual-time-budget=600000 \
	--dump-dom file://$PWD/page.html >/dev/null 2>&1""",
    "chromium",
    r"""cat >page.html <<'EOF'
<html><body><div id=x></div><script>
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function step(i) {
  let d = document.getElementById('x'), t = '';
  for (let k = 0; k < 300; k++) t += '<p style="float:left;width:' + (k % 50) + 'px">word ' + k * i + ' <b>bold</b></p>';
  d.innerHTML = t; d.offsetHeight; fib(18); JSON.parse(JSON.stringify([...t].slice(0, 2000)));
  [...t].sort(); /(\w+)\s+\1/.test(t);
  if (i < 100000) setTimeout(step, 0, i + 1);
}
step(0);
</script></body></html>
EOF
""")
GO_SOURCE = r"""cat >main.go <<'EOF'
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
)

type node struct {
	Name     string
	Children []*node
	Values   map[string]int
}

func build(depth int) *node {
	n := &node{Name: fmt.Sprintf("n%d", depth), Values: map[string]int{}}
	for i := 0; i < 20; i++ {
		n.Values[fmt.Sprint(i*depth)] = i
	}
	for i := 0; depth > 0 && i < 4; i++ {
		n.Children = append(n.Children, build(depth-1))
	}
	return n
}

func work(until time.Time, wg *sync.WaitGroup) {
	defer wg.Done()
	re := regexp.MustCompile(`(\w+)-(\d+)`)
	for time.Now().Before(until) {
		text, _ := json.Marshal(build(4))
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(text)
		z.Close()
		var back node
		json.Unmarshal(text, &back)
		words := strings.Split(string(text), ",")
		sort.Strings(words)
		re.FindAllString(string(text[:10000]), -1)
		f, _ := os.Open("/dev/null")
		for i := 0; i < 2000; i++ {
			f.Read(text[:10])
		}
		f.Close()
		big := make([]byte, 1<<20)
		copy(big[1:], text)
	}
}

func main() {
	d, _ := time.ParseDuration(os.Args[1] + "s")
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go work(time.Now().Add(d), &wg)
	}
	wg.Wait()
}
EOF
"""
# Complete where the machine is not too busy to load the table soon.
LATE_GO = "samples before its table is loaded come raw, and the copy of a system stack has not the goroutine's"
program("go", "./go $SECONDS_", "golang-go", GO_SOURCE + "GO111MODULE=off go build -o go main.go", why=LATE_GO)
program("go-stripped", "./go $SECONDS_", "golang-go", GO_SOURCE + "GO111MODULE=off go build -ldflags='-s -w' -o go main.go", why=LATE_GO)
program("go-1.19", "./go $SECONDS_", "golang-go", GO_SOURCE +
        "GOFLAGS= GOROOT= GOTOOLCHAIN=local GO111MODULE=off /usr/lib/go/bin/go build -o go main.go")
program("ffmpeg", "for_a_while ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=1280x720:rate=25 -f lavfi -i sine "
        "-c:v libx264 -preset medium -c:a aac -f matroska -y /dev/null", "ffmpeg")
program("ffmpeg-more", "for_a_while ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25 -c:v libx265 "
        "-x265-params log-level=error -f matroska -y /dev/null", "ffmpeg")
program("ffmpeg-vp9", "for_a_while ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25 -vf scale=800:600,hqdn3d "
        "-c:v libvpx-vp9 -deadline realtime -cpu-used 4 -f matroska -y /dev/null", "ffmpeg")
program(
    "php", "for_a_while php -d pcre.jit=1 x.php $SECONDS_", "php-cli",
    r"""cat >x.php <<'EOF'
<?php
$end = time() + $argv[1];
while (time() < $end) {
	$s = str_repeat("The quick brown fox jumps over 13 lazy dogs. ", 200);
	preg_match_all('/(\w+)\s+(?=\w*o\w*)(\d+|[a-z]+)/i', $s, $m);
	$a = preg_split('/[\s,.]+/', $s);
	usort($a, fn($x, $y) => strcmp($x, $y) ?: 0);
	$j = json_decode(json_encode(array_map(fn($x) => ['k' => md5($x)], $a)), true);
	preg_replace_callback('/\b(\w)(\w*)\b/', fn($m) => strtoupper($m[1]) . $m[2], $s);
	serialize($j);
}
EOF
""", complete=96,
        why="PCRE's JIT keeps no frame pointer (docs/walker.md)")
program(
    "postgres",
    r"""
B=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
chown -R postgres .
server setpriv --reuid postgres --regid postgres --clear-groups $B/postgres -D data -k $PWD -p 54329 -c listen_addresses= >log 2>&1
wait_for psql -h $PWD -p 54329 -U postgres -c 'select 1'
psql -q -h $PWD -p 54329 -U postgres -c 'create table if not exists t as select i, md5(i::text) m from generate_series(1,200000) i' 2>/dev/null
for_a_while bash -c 'while :; do psql -h $PWD -p 54329 -U postgres -c "select count(*), max(a.m) from t a join t b on a.m = b.m where a.m ~ '"'^[0-9a-f]*7.*b$'"'" \
 -c "select m, count(*) from (select substr(m,1,3) m from t) x group by 1 order by 2 desc limit 5" -c "update t set m = md5(m) where i % 17 = 3"; done' >/dev/null
""", "postgresql",
    r"""B=$(ls -d /usr/lib/postgresql/*/bin | tail -1); rm -rf data; chown postgres .
setpriv --reuid postgres --regid postgres --clear-groups $B/initdb -D data -A trust >/dev/null""")
program(
    "redis",
    r"""server redis-server --port 63799 --save '' >/dev/null
wait_for redis-cli -p 63799 ping
for_a_while redis-benchmark -q -p 63799 -n 10000000 -c 20 -P 8 -t set,lpush,zadd,sort,lrange >/dev/null""", "redis-server redis-tools")
program(
    "nginx",
    r"""server nginx -p $PWD -c $PWD/nginx.conf
wait_for curl -sf http://127.0.0.1:80899/ -o /dev/null || true
for_a_while bash -c 'while :; do curl -s --compressed -o /dev/null "http://127.0.0.1:18099/text.html?[1-300]"; done'""".replace("80899", "18099"),
    "nginx-light curl",
    r"""cat >nginx.conf <<EOF
daemon off; master_process on; worker_processes 1; error_log stderr crit; pid $PWD/pid;
events {} http { access_log off; gzip on; gzip_comp_level 6; gzip_types text/html; gzip_min_length 1;
client_body_temp_path $PWD/a; proxy_temp_path $PWD/b; fastcgi_temp_path $PWD/c; uwsgi_temp_path $PWD/d; scgi_temp_path $PWD/e;
server { listen 127.0.0.1:18099; location / { root $PWD; index text.html; } } }
EOF
seq 40000 >text.html; chmod -R a+rX .""")
C_SOURCE = "cp $SOURCE/src/export/pprof_read.c . ; cat $SOURCE/src/util/vec.h >/dev/null; seq 2000 | " \
    "sed 's/.*/int f&(int a,char*b){for(int i=0;i<a;i++)b[i]+=a*&+i%3;switch(a%7){case 1:return f&(a-1,b);case 2:return b[2];case 5:return a;}return 0;}/' >many.c"
program("gcc", "forever gcc -O2 -c -o many.o many.c", "gcc", C_SOURCE, short=True)
program("clang", "forever clang -O2 -c -o many.o many.c", "clang", C_SOURCE, short=True)
program("git", "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'\nforever bash -c 'git -C $SOURCE log --stat -n 100 -p >/dev/null; git -C $SOURCE grep -c -E \"(un|re)[a-z]+_(x|y)\" >/dev/null; "
        "rm -rf c; git clone -q --no-local $SOURCE c; git -C c gc -q --aggressive'", "git", short=True)
program(
    "numpy", "/usr/bin/python3 x.py $SECONDS_", "python3-numpy",
    r"""cat >x.py <<'EOF'
import sys, time
import numpy as np
end = time.time() + float(sys.argv[1])
while time.time() < end:
    a = np.random.rand(300, 300)
    np.linalg.svd(a); a @ a; np.sort(a, axis=0); np.fft.fft2(a); np.linalg.solve(a, a); np.exp(a).sum(); np.histogram(a)
EOF
""")
program(
    "mariadb",
    r"""server mariadbd --no-defaults --user=root --datadir=$PWD/data --socket=$PWD/s --skip-networking --pid-file=$PWD/pid >log 2>&1
wait_for mariadb -S $PWD/s -e 'select 1'
for_a_while bash -c 'while :; do mariadb -S $PWD/s test -e "select count(*), max(a.m) from t a join t b on a.m = b.m where a.m rlike \"^[0-9a-f]*7.*b$\";
select substr(m,1,3) x, count(*) from t group by 1 order by 2 desc limit 5; update t set m = md5(m) where i % 17 = 3; alter table t engine=innodb"; done' >/dev/null""",
    "mariadb-server mariadb-client",
    r"""rm -rf data; mariadb-install-db --no-defaults --user=root --datadir=$PWD/data --auth-root-authentication-method=normal >/dev/null
server mariadbd --no-defaults --user=root --datadir=$PWD/data --socket=$PWD/s --skip-networking --pid-file=$PWD/pid >log 2>&1
wait_for mariadb -S $PWD/s -e 'create database if not exists test'
mariadb -S $PWD/s test -e 'create table t (i int primary key, m char(32), key(m)) as select seq i, md5(seq) m from seq_1_to_100000'""")
program(
    "firefox",
    r"""export HOME=$PWD MOZ_HEADLESS=1
for_a_while bash -c 'while :; do timeout 20 firefox-esr --headless --no-remote --profile $PWD/profile --screenshot $PWD/shot.png file://$PWD/page.html; done' >/dev/null 2>&1""",
    "firefox-esr",
    r"""mkdir -p profile; cat >page.html <<'EOF'
<html><body><div id=x></div><script>
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (let i = 0; i < 40; i++) {
  let d = document.getElementById('x'), t = '';
  for (let k = 0; k < 300; k++) t += '<p style="float:left;width:' + (k % 50) + 'px">word ' + k * i + ' <b>bold</b></p>';
  d.innerHTML = t; d.offsetHeight; fib(18); JSON.parse(JSON.stringify([...t].slice(0, 2000)));
  [...t].sort(); /(\w+)\s+\1/.test(t);
}
</script></body></html>
EOF
""")
program(
    "blender",
    "export HOME=$PWD; for_a_while blender -b --factory-startup -P x.py >/dev/null 2>&1", "blender",
    r"""cat >x.py <<'EOF'
import bpy
s = bpy.context.scene
s.render.engine = 'CYCLES'
s.cycles.device = 'CPU'
s.cycles.samples = 64
s.render.resolution_x, s.render.resolution_y = 320, 240
s.render.filepath = '/dev/null'
for i in range(4):
    bpy.ops.mesh.primitive_monkey_add(location=(i, 0, 0))
    m = bpy.context.object.modifiers.new('s', 'SUBSURF')
    m.levels = m.render_levels = 3
while True:
    bpy.ops.render.render()
EOF
""")
program(
    "gjs", "for_a_while gjs x.js", "gjs",
    r"""cat >x.js <<'EOF'
const { GLib, Gio } = imports.gi;
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (;;) {
  fib(22);
  let a = [];
  for (let i = 0; i < 5000; i++) a.push({ k: 'v' + i * 7 % 1000, f: GLib.strdup ? 1 : 0 });
  a.sort((x, y) => x.k < y.k ? -1 : 1);
  JSON.parse(JSON.stringify(a));
  for (let i = 0; i < 200; i++) Gio.File.new_for_path('/usr/lib').query_exists(null);
  a.map(x => x.k.replace(/(\d)(\d)/, '$2$1')).join();
  let e = Gio.File.new_for_path('/usr/lib').enumerate_children('standard::*', 0, null);
  while (e.next_file(null)) ;
}
EOF
""", complete=1, why=JIT)
program(
    "r", "for_a_while Rscript --vanilla x.R", "r-base-core",
    r"""cat >x.R <<'EOF'
repeat {
  x <- matrix(rnorm(40000), 200); s <- svd(x); y <- solve(x); d <- data.frame(a = rnorm(5000), b = sample(letters, 5000, TRUE))
  m <- lm(a ~ b, d); t <- tapply(d$a, d$b, mean); o <- order(d$a); g <- gsub('([a-f])', '<\\1>', d$b, perl = TRUE)
  f <- function(n) if (n < 2) n else f(n - 1) + f(n - 2); f(15); l <- loess(a ~ seq_along(a), d[1:300, ])
}
EOF
""")
program(
    "octave", "for_a_while octave-cli --norc x.m", "octave",
    r"""cat >x.m <<'EOF'
1;
function r = fib(n) if n < 2 r = n; else r = fib(n - 1) + fib(n - 2); end, end
while true
  a = rand(200); [u, s, v] = svd(a); b = a \ a; e = eig(a); c = fft2(a); fib(9); d = sort(a); q = quad(@(x) sin(x), 0, 3);
  t = regexprep('hello world 123', '(\w+) (\w+)', '$2 $1'); z = cellfun(@(x) x * 2, num2cell(1:200));
end
EOF
""")
program(
    "ghc", "forever ghc -O -fforce-recomp -outputdir out Main.hs -o hs.tmp >/dev/null", "ghc",
    r"""cat >Main.hs <<'EOF'
module Main where
import qualified Data.Map.Strict as M
import Data.List
import Data.Char
fibs :: [Integer]
fibs = 0 : 1 : zipWith (+) fibs (tail fibs)
step :: Int -> M.Map Int String -> M.Map Int String
step i m = M.insertWith (++) (i `mod` 1000) (map toUpper (show i)) m
main :: IO ()
main = mapM_ once [1 ..]
once :: Int -> IO ()
once k = do
  let m = foldl' (flip step) M.empty [1 .. 20000 + k `mod` 7]
  writeFile "/dev/null" (show (M.toList m))
  writeFile "/dev/null" (show (sort (map (`mod` 977) [k .. k + 20000])) ++ show (fibs !! 2000))
EOF
""")
program("haskell", "for_a_while ./hs", "ghc", ALL[-1].prepare + "ghc -O -threaded -outputdir out Main.hs -o hs >/dev/null")
OCAML = r"""cat >x.ml <<'EOF'
module M = Map.Make (String)
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let () =
  while true do
    let m = ref M.empty in
    for i = 0 to 20000 do
      m := M.add (string_of_int (i * 7919 mod 10007)) [ i ] !m
    done;
    let l = M.fold (fun k v a -> (k, List.map succ v) :: a) !m [] in
    let l = List.sort (fun (a, _) (b, _) -> compare b a) l in
    ignore (fib 22);
    ignore (Marshal.to_string l []);
    (try List.iter (fun (k, _) -> if k = "77" then raise Not_found) l with Not_found -> ());
    let b = Buffer.create 16 in
    List.iter (fun (k, _) -> Printf.bprintf b "%s,%d;" k (Hashtbl.hash k)) l
  done
EOF
"""
program("ocaml", "for_a_while ./ml", "ocaml-nox", OCAML + "ocamlfind ocamlopt -o ml x.ml 2>/dev/null || ocamlopt -o ml x.ml")
program("ocaml-byte", "for_a_while ./ml", "ocaml-nox", OCAML + "ocamlc -custom -o ml x.ml")
SQLITE_LIKE = r"""cat >x.cc <<'EOF'
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>
struct Shape { virtual ~Shape() {} virtual double area(int d) const = 0; };
struct Leaf : Shape { double r; explicit Leaf(double x) : r(x) {} double area(int d) const override { return r * d; } };
struct Group : Shape {
	std::vector<std::unique_ptr<Shape>> kids;
	double area(int d) const override { double s = 0; for (auto &k : kids) s += k->area(d + 1); return s; }
};
static std::unique_ptr<Shape> grow(int d) {
	if (!d) return std::make_unique<Leaf>(rand() % 100);
	auto g = std::make_unique<Group>();
	for (int i = 0; i < 5; i++) g->kids.push_back(grow(d - 1));
	return g;
}
static int thrower(int n) { if (n == 0) throw std::runtime_error("x"); return thrower(n - 1) + 1; }
int main(int, char **argv) {
	time_t end = time(nullptr) + atoi(argv[1]);
	std::regex re("([a-z]+)-([0-9]+)");
	double total = 0;
	while (time(nullptr) < end) {
		auto t = grow(6);
		for (int i = 0; i < 20; i++) total += t->area(i);
		std::map<std::string, int> m;
		for (int i = 0; i < 20000; i++) m["k-" + std::to_string(i * 7919 % 10007)]++;
		std::smatch s; std::string text;
		for (auto &p : m) if (text.size() < 5000) text += p.first + " ";
		for (auto b = text.cbegin(); std::regex_search(b, text.cend(), s, re); b = s[0].second) total++;
		for (int i = 0; i < 2000; i++) try { total += thrower(20); } catch (std::exception &) { total++; }
		std::vector<std::function<int(int)>> f;
		for (int i = 0; i < 1000; i++) f.push_back([i](int x) { return x * i; });
		std::sort(f.begin(), f.end(), [](auto &a, auto &b) { return a(3) > b(3); });
	}
	printf("%f\n", total);
}
EOF
"""
program("c++", "./x $SECONDS_ >/dev/null", "g++", SQLITE_LIKE + "g++ -O2 -o x x.cc", short=False)
program("c++-lto", "./x $SECONDS_ >/dev/null", "clang-19 lld-19", SQLITE_LIKE +
        "clang++-19 -O3 -flto -fuse-ld=lld -static-libstdc++ -static-libgcc -ffunction-sections -Wl,--gc-sections,--icf=all -o x x.cc")
program("c++-bolt", "./x $SECONDS_ >/dev/null", "bolt-19 libbolt-19-dev clang-19 lld-19", SQLITE_LIKE + r"""
clang++-19 -O2 -fuse-ld=lld -Wl,-q -fno-plt -static-libstdc++ -static-libgcc -o x0 x.cc
/usr/lib/llvm-19/bin/llvm-bolt x0 -instrument -instrumentation-file=$PWD/prof -o x1 >/dev/null 2>&1 && ./x1 1 >/dev/null
/usr/lib/llvm-19/bin/llvm-bolt x0 -o x -data=prof -reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-all-cold -split-eh -dyno-stats >/dev/null 2>&1""")
program("c++-o0", "./x $SECONDS_ >/dev/null", "g++", SQLITE_LIKE + "g++ -O0 -o x x.cc")
program("c++-no-cfi", "./x $SECONDS_ >/dev/null", "g++", "cat $SOURCE/src/util/vec.h >/dev/null\n" + r"""cat >x.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static int cmp(const void *a, const void *b) { return strcmp(a, b); }
__attribute__((noinline)) static int ack(int m, int n) { return !m ? n + 1 : !n ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1)); }
__attribute__((noinline)) static double mix(int n, char (*t)[32]) { double s = 0; for (int i = 0; i < n; i++) { snprintf(t[i], 32, "%d %f", i * 7919 % 10007, s); s += strtod(t[i] + 3, 0); } return s; }
int main(int c, char **v) { time_t end = time(0) + atoi(v[1]); static char t[20000][32]; double s = 0;
	while (time(0) < end) { s += mix(20000, t); qsort(t, 20000, 32, cmp); s += ack(2, 500); } printf("%f\n", s); }
EOF
gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer -static -s -o x x.c""")
program(
    "node", "for_a_while node x.js", "nodejs",
    r"""cat >x.js <<'EOF'
const crypto = require('crypto'), zlib = require('zlib');
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (;;) {
  fib(22); const b = zlib.deflateSync(crypto.randomBytes(100000)); zlib.inflateSync(b);
  crypto.pbkdf2Sync('a', 'b', 500, 64, 'sha512'); const a = Array.from({ length: 5000 }, (_, i) => 'k' + i * 7 % 1000);
  a.sort(); JSON.parse(JSON.stringify(a)); a.join().replace(/(\d)(\d)/g, '$2$1');
}
EOF
""")
program(
    "perl", "for_a_while perl x.pl", "perl",
    r"""cat >x.pl <<'EOF'
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
while (1) { my %h; $h{$_ * 7919 % 10007}++ for 1 .. 20000; my @s = sort { $h{$a} <=> $h{$b} || $a cmp $b } keys %h;
my $t = join ',', @s; my $n = () = $t =~ /(\d)(\d)\2/g; $t =~ s/(\d+),(\d+)/$2-$1/ge; fib(16); sprintf '%s %05.2f', $_, $n for 1 .. 2000 }
EOF
""", short=True)
program(
    "ruby", "for_a_while ruby x.rb", "ruby",
    r"""cat >x.rb <<'EOF'
require 'json'
def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
loop do
  fib(18); a = (1..5000).map { |i| "k#{i * 7919 % 10007}" }; a.sort_by { |x| x.reverse }; JSON.parse(JSON.generate(a))
  a.join(',').gsub(/(\d)(\d)/) { $2 + $1 }; h = Hash.new(0); a.each { |x| h[x[0, 3]] += 1 }; 5.times.map { Fiber.new { Fiber.yield fib(10); 1 } }.each(&:resume)
end
EOF
""")
program("erlang", "export HOME=$PWD; for_a_while erl -noshell -s x main", "erlang-base", r"""cat >x.erl <<'EOF'
-module(x).
-export([main/0]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
main() -> fib(20), L = [integer_to_list(X * 7919 rem 10007) || X <- lists:seq(1, 5000)], lists:sort(L), M = maps:from_list([{X, 1} || X <- L]),
  term_to_binary(M), re:run(lists:append(L), "(\\d)(\\d)\\2", [global]), erlang:md5(term_to_binary(L)), binary_to_term(term_to_binary(L)), main().
EOF
HOME=$PWD erlc x.erl""", complete=1, why=JIT)
program("sqlite", "for_a_while bash -c 'while :; do sqlite3 :memory: <x.sql; done >/dev/null'", "sqlite3", r"""cat >x.sql <<'EOF'
create table t(i integer primary key, m text, r real);
with recursive c(x) as (select 1 union all select x+1 from c where x < 100000) insert into t select x, hex(x * 7919 % 10007), x / 3.0 from c;
create index tm on t(m);
select count(*), sum(length(printf('%d-%s', i, m)) + instr(m, '3')) from t where m like '%3%' order by r;
select m, count(*) from t group by substr(m, 1, 3) order by 2 desc limit 5;
select count(*) from t a join t b on a.m = b.m where a.i < 2000;
update t set m = upper(m) || 'x' where i % 3 = 0;
EOF
""", short=True)
program("gdb", "forever gdb -nx -batch -ex 'info functions json' -ex 'list main' -ex 'info types vec' -ex 'disassemble main' $SONDE >/dev/null 2>&1", "gdb")
program("qemu-user", "for_a_while qemu-x86_64 /bin/busybox sh -c 'i=0; while :; do i=$((i+1)); x=${i%3}; done'", "qemu-user busybox-static")
program("qemu-system", "for_a_while qemu-system-x86_64 -machine pc -m 128 -display none -serial null -net none -no-reboot", "qemu-system-x86")
program("java-version", "forever java -version 2>/dev/null >&2", "default-jre-headless")
program("java-tiny", "forever java -cp . Tiny >/dev/null", "default-jdk-headless", r"""cat >Tiny.java <<'EOF'
import java.util.*;
public class Tiny { public static void main(String[] a) { var m = new TreeMap<String, Integer>();
for (int i = 0; i < 200000; i++) m.merge("k" + i * 7919 % 10007, 1, Integer::sum); System.out.println(m.size() + m.toString().replaceAll("(\\d)", "$1").length()); } }
EOF
javac Tiny.java""")
program("busybox", "forever /bin/busybox sh -c 'busybox seq 200000 | busybox sort -r | busybox gzip -9 | busybox gunzip | busybox sha256sum | busybox awk \"{ print toupper(\\$1) }\" >/dev/null'",
        "busybox-static")
# Most of it is built with -Os and has no CFI; what its functions call last never returns.
program("busybox-more", r"""b() { /bin/busybox "$@" >/dev/null 2>&1 || true; }
one() { b sort -n lines; b md5sum lines; b sha1sum lines; b sha512sum lines; b sha3sum lines; b bzip2 -kc lines; b gzip -c lines; b xxd lines; b od lines; b uuencode lines x
b sed 's/\([0-9]\)\([0-9]\)/\2\1/g' lines; b grep -E '(1|22)+3.*4$' lines; b tr 0-9 a-j <lines; b awk '{ s[$1 % 97] += $1; gsub(/1/, "x") } END { for (i in s) print s[i] }' lines
b expr match 12345 '1.*5'; echo 'x = 1; for (i = 1; i < 300; i++) x *= i; x' | b bc; b factor 1000000016000000063; b diff lines other; b cut -c2- lines; b uniq -c lines; b hexdump -C lines
b tar cf - lines other; b cksum lines; b base64 lines; b ash -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); x=${i%3}; done'; b printenv; b vi -c ':%s/1/2/g' -c ':q!' lines </dev/null; }
export -f b one; forever bash -c one""", "busybox-static", "seq 1 40000 >lines; seq 3 7 200000 >other", short=False)
program("musl", "./x $SECONDS_ >/dev/null", "musl-tools", ALL[[p.name for p in ALL].index("c++-no-cfi")].prepare.rsplit("gcc -O2", 1)[0] + "musl-gcc -O2 -o x x.c")
program("musl-static", "./x $SECONDS_ >/dev/null", "musl-tools", ALL[[p.name for p in ALL].index("c++-no-cfi")].prepare.rsplit("gcc -O2", 1)[0] + "musl-gcc -O2 -static -s -o x x.c")
program("d", "for_a_while ./x", "ldc", r"""cat >x.d <<'EOF'
import std.stdio, std.algorithm, std.array, std.conv, std.regex, std.range, std.json;
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
void main() { auto re = regex(`(\d)(\d)`); while (true) { fib(22); auto a = iota(5000).map!(i => to!string(i * 7919 % 10_007)).array; sort!((x, y) => x > y)(a);
int[string] h; foreach (x; a) h[x]++; auto t = a[0 .. 500].join(","); replaceAll(t, re, "$2$1"); auto j = JSONValue(a); parseJSON(j.toString());
foreach (i; 0 .. 100) try { if (i % 3 == 0) throw new Exception("x"); } catch (Exception e) {} } }
EOF
ldc2 -O2 -of=x x.d""")
program("gdc", "for_a_while ./x", "gdc", ALL[-1].prepare.replace("ldc2 -O2 -of=x", "gdc -O2 -o x"))
program("ada", "for_a_while ./x", "gnat", r"""cat >x.adb <<'EOF'
with Ada.Containers.Indefinite_Ordered_Maps; with Ada.Strings.Unbounded; use Ada.Strings.Unbounded;
procedure X is
   package Maps is new Ada.Containers.Indefinite_Ordered_Maps (String, Integer);
   task type Worker; 
   function Fib (N : Integer) return Integer is (if N < 2 then N else Fib (N - 1) + Fib (N - 2));
   procedure Fails (N : Integer) is begin if N = 0 then raise Constraint_Error; end if; Fails (N - 1); end Fails;
   procedure Work is
      M : Maps.Map; S : Unbounded_String;
   begin
      for I in 1 .. 20_000 loop M.Include (Integer'Image (I * 7919 mod 10_007), I); end loop;
      for C in M.Iterate loop Append (S, Maps.Key (C)); end loop;
      for I in 1 .. 200 loop begin Fails (10); exception when others => null; end; end loop;
      if Fib (22) + Length (S) = 0 then raise Program_Error; end if;
   end Work;
   task body Worker is begin loop Work; end loop; end Worker;
   W : array (1 .. 2) of Worker;
begin
   null;
end X;
EOF
gnatmake -q -O2 x.adb""")
program("fortran", "for_a_while ./x", "gfortran", r"""cat >x.f90 <<'EOF'
program x
  implicit none
  real(8) :: a(200,200), b(200,200), s
  character(40) :: t
  integer :: i, k
  do
    call random_number(a); b = matmul(a, a); s = sum(sin(b)) + fib(24)
    do i = 1, 20000
      write (t, '(i8,f12.4)') i, s / i
      read (t, '(i8)') k
    end do
  end do
contains
  recursive integer function fib(n) result(r)
    integer, intent(in) :: n
    if (n < 2) then
      r = n
    else
      r = fib(n - 1) + fib(n - 2)
    end if
  end function
end program
EOF
gfortran -O2 -fno-inline -o x x.f90""")

# Applications of others on the runtimes, under load. What Debian has not comes from npm, in `prepare`.
LOAD = "for_a_while ab -q -s 60 -c 4 -n 100000000 "  # of apache2-utils
program(
    "rails", "server puma -q -t 2:2 -b tcp://127.0.0.1:21331 config.ru\nwait_for curl -sf http://127.0.0.1:21331/posts\n"
    + LOAD + "http://127.0.0.1:21331/posts >ab.log 2>&1", "ruby-railties ruby-actionpack ruby-activerecord ruby-sqlite3 puma apache2-utils curl",
    r"""cat >config.ru <<'EOF'
require 'action_controller/railtie'
require 'active_record/railtie'
class App < Rails::Application
  config.root = __dir__
  config.eager_load = true
  config.secret_key_base = 'x' * 64
  config.hosts.clear
  config.logger = Logger.new('rails.log')
  config.log_level = :info
  routes.append { resources :posts, only: %i[index show] }
end
ENV['DATABASE_URL'] = 'sqlite3:posts.db'
File.delete('posts.db') if File.exist?('posts.db')
App.initialize!
ActiveRecord::Schema.define do
  create_table(:posts) { |t| t.string :title; t.text :body; t.timestamps }
  create_table(:comments) { |t| t.references :post; t.string :text }
end
class Post < ActiveRecord::Base
  has_many :comments
  validates :title, presence: true
  scope :recent, -> { order(created_at: :desc).limit(30) }
end
class Comment < ActiveRecord::Base
  belongs_to :post
end
60.times { |i| Post.create!(title: "Post #{i}", body: 'word ' * 50).comments.create!(text: "first of #{i}") }
class PostsController < ActionController::Base
  before_action { response.headers['X-Before'] = 'yes' }
  def index
    @posts = Post.recent.includes(:comments).to_a
    render inline: <<~'ERB'
      <h1>Posts</h1><% @posts.each do |post| %><%= content_tag :h2, link_to(post.title, post_path(post)) %>
      <p><%= truncate post.body, length: 80 %></p><% post.comments.each do |c| %><li><%= c.text %></li><% end %><% end %>
    ERB
  end
  def show = render(json: Post.find(params[:id]).as_json(include: :comments))
end
run App
EOF
mkdir -p tmp log
""")
program(
    "wordpress", r"""
server mariadbd --no-defaults --user=root --datadir=$PWD/data --socket=$PWD/sock --skip-networking --log-error=$PWD/log
wait_for mariadb-admin --no-defaults -uroot -S $PWD/sock ping
server php-fpm8.2 -F -R -y fpm.conf -d opcache.jit_buffer_size=32M -d opcache.jit=tracing
server nginx -p $PWD -c nginx.conf
wait_for curl -sf http://127.0.0.1:21332/
""" + LOAD + "http://127.0.0.1:21332/ >ab.log 2>&1", "wordpress php8.2-fpm php8.2-mysql mariadb-server nginx apache2-utils curl",
    r"""
rm -rf data site; cp -rL /usr/share/wordpress site; rm -f site/wp-config.php
cat >site/wp-config.php <<EOF
<?php
define('DB_NAME', 'wp'); define('DB_USER', 'root'); define('DB_PASSWORD', ''); define('DB_HOST', 'localhost:$PWD/sock');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', ''); define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true);
\$table_prefix = 'wp_';
defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
EOF
cat >install.php <<'EOF'
<?php
define('WP_INSTALLING', true);
$_SERVER += ['HTTP_HOST' => '127.0.0.1:21332', 'SERVER_PROTOCOL' => 'HTTP/1.1'];
require __DIR__ . '/site/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
function wp_mail() { return true; }
wp_install('Site', 'admin', 'admin@example.com', true, '', 'password');
for ($i = 0; $i < 30; $i++) wp_insert_post(['post_title' => "Post $i", 'post_content' => str_repeat("<p>word $i</p>\n", 30), 'post_status' => 'publish']);
EOF
cat >fpm.conf <<EOF
[global]
error_log = $PWD/fpm.log
[www]
user = root
group = root
listen = $PWD/fpm
pm = static
pm.max_children = 3
EOF
cat >nginx.conf <<EOF
daemon off; pid $PWD/nginx.pid; error_log $PWD/nginx.log; user root; worker_processes 1;
events { }
http { access_log off; server { listen 127.0.0.1:21332; root $PWD/site; index index.php; location / { fastcgi_pass unix:$PWD/fpm; fastcgi_index index.php; include /etc/nginx/fastcgi_params;
  fastcgi_param SCRIPT_FILENAME $PWD/site\$fastcgi_script_name; } } }
EOF
mariadb-install-db --no-defaults --user=root --datadir=$PWD/data --auth-root-authentication-method=normal >/dev/null 2>&1
server mariadbd --no-defaults --user=root --datadir=$PWD/data --socket=$PWD/sock --skip-networking --log-error=$PWD/log
wait_for mariadb-admin --no-defaults -uroot -S $PWD/sock ping
mariadb --no-defaults -uroot -S $PWD/sock -e 'create database wp'
php install.php >install.log 2>&1
""")
program("mojolicious",
        "server perl app.pl daemon -m production -l http://127.0.0.1:21333\nwait_for curl -sf http://127.0.0.1:21333/\n"
        + LOAD + "http://127.0.0.1:21333/ >ab.log 2>&1", "libmojolicious-perl apache2-utils curl", r"""cat >app.pl <<'EOF'
use Mojolicious::Lite -signatures;
use Mojo::DOM;
use Mojo::JSON qw(encode_json decode_json);
helper rows => sub ($c) { map { { id => $_, name => "name $_", list => [1 .. 5] } } 1 .. 40 };
get '/' => sub ($c) {
	my $dom = Mojo::DOM->new('<ul>' . join('', map { "<li class=\"x$_\">$_</li>" } 1 .. 30) . '</ul>');
	$c->stash(rows => decode_json(encode_json([$c->rows])), dom => $dom->find('li.x7, li:nth-child(odd)')->map('text')->join(','));
	$c->render('index');
};
app->log->level('error');
app->start;
__DATA__
@@ index.html.ep
% layout 'page';
% for my $row (@$rows) {
<p id="<%= $row->{id} %>"><%= link_to $row->{name} => 'http://x' %> <%= join ' ', @{$row->{list}} %></p>
% }
<%= $dom %>
@@ layouts/page.html.ep
<!DOCTYPE html><html><body><%= content %></body></html>
EOF
""")
program("hugo", "forever hugo --quiet --ignoreCache -d out", "hugo", r"""
printf 'baseURL = "http://x/"\ntitle = "x"\n' >config.toml
mkdir -p content/posts layouts/_default
echo '<html><head><title>{{ .Title }}</title></head><body>{{ .Content }}{{ range first 20 .Site.RegularPages }}<a href="{{ .RelPermalink }}">{{ .Title }}</a>{{ end }}</body></html>' |
	tee layouts/_default/single.html layouts/_default/list.html >layouts/index.html
for i in $(seq 400); do
	{ printf -- '---\ntitle: "Post %s"\ntags: [a%s, b%s]\n---\n# Head\n' $i $((i % 7)) $((i % 11)); for k in $(seq 20); do printf 'Some *text* of `%s` with [a link](http://x/%s).\n\n```go\nfunc f%s() int { return %s }\n```\n\n' $k $i $k $i; done; } >content/posts/$i.md
done
""")
program("caddy", "export HOME=$PWD; server caddy run --config Caddyfile --adapter caddyfile 2>log\nwait_for curl -sf http://127.0.0.1:21334/page.html\n"
        + LOAD + "-H 'Accept-Encoding: gzip' http://127.0.0.1:21334/page.html >ab.log 2>&1", "caddy apache2-utils curl", r"""
printf '{\n\tadmin off\n}\nhttp://127.0.0.1:21334 {\n\troot * %s\n\tencode gzip\n\ttemplates\n\tfile_server\n}\n' "$PWD" >Caddyfile
{ echo '<html><body>{{ range $i, $e := splitList "," "a,b,c,d,e,f" }}<p>{{ upper $e }} {{ $i }}</p>{{ end }}{{ now }}'; seq 3000; } >page.html
""")
program("prometheus", "server prometheus --config.file=config.yml --storage.tsdb.path=$PWD/data --web.listen-address=127.0.0.1:21335 2>log\n"
        "wait_for curl -sf http://127.0.0.1:21335/-/ready\n" + LOAD +
        "'http://127.0.0.1:21335/api/v1/query?query=sort(topk(50,rate({__name__=~%22.%2B_(bucket|total)%22}[5m])))' >ab.log 2>&1",
        "prometheus apache2-utils curl",
        "printf 'global:\\n  scrape_interval: 1s\\nscrape_configs:\\n- job_name: self\\n  static_configs:\\n  - targets: [\"127.0.0.1:21335\"]\\n' >config.yml\n")
NPM = "npm init -y >/dev/null && npm install --no-audit --no-fund "
program("tsc", "forever node --max-semi-space-size=16 node_modules/typescript/lib/tsc.js --noEmit --strict --target es2022 --lib es2022,dom x.ts", "nodejs",
        NPM + "typescript@5.9.3\n" + r"""
for i in $(seq 300); do
	echo "export interface I$i<T extends keyof HTMLElementTagNameMap> { a: Partial<Pick<HTMLElementTagNameMap[T], 'id'>>; b: T extends 'a' ? string : number }"
	echo "export async function f$i(x: I$i<'a'>[]) { const m = new Map(x.map((y, i) => [i, {...y, z: [y.b.length]}] as const)); return Promise.all([...m.values()].map(async v => v.z[0] + $i)); }"
done >x.ts""", complete=98, why="where V8 makes a frame for baseline code, and installs optimized code meanwhile (docs/v8.md)")
program("webpack", "forever npx webpack --mode production --no-cache -o out --entry ./x.js", "nodejs", NPM
        + "webpack@5.112.2 webpack-cli react react-dom lodash\n"
        "echo 'import React from \"react\"; import { createRoot } from \"react-dom/client\"; import _ from \"lodash\"; createRoot(document.body).render(React.createElement(\"p\", null, _.times(3)));' >x.js\n")
program("next", "export NEXT_TELEMETRY_DISABLED=1; server npx next start -H 127.0.0.1 -p 21336 >log 2>&1\nwait_for curl -sf http://127.0.0.1:21336/\n"
        + LOAD + "http://127.0.0.1:21336/ >ab.log 2>&1", "nodejs apache2-utils curl", NPM + "next@16.4.6 react react-dom\n" + r"""
npm pkg set type=module
mkdir -p app
cat >app/layout.js <<'EOF'
export default function Layout({ children }) { return <html><body>{children}</body></html>; }
EOF
cat >app/page.js <<'EOF'
export const dynamic = 'force-dynamic';
async function Row({ n }) { await null; return <li key={n}>{[...Array(10)].map((_, i) => <b key={i}>{n * i}</b>)}</li>; }
export default async function Page() { return <ul>{[...Array(60)].map((_, n) => <Row key={n} n={n} />)}</ul>; }
EOF
NEXT_TELEMETRY_DISABLED=1 npx next build >build.log 2>&1
""")
