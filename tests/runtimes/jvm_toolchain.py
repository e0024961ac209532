# SPDX-License-Identifier: Apache-2.0
"""JDKs, their options, and the test programs (jvm/*.java) compiled."""
import fcntl
import glob
import hashlib
import json
import os
import re
import subprocess
import tempfile

from runtimes import HERE
from jvm_judge import LINES
from sonde import PATIENCE
import tap

SOURCES = os.path.join(HERE, "jvm")
TELLING = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames", "-XX:MaxJavaStackTraceDepth=100000",
           "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Truth.tellNow", "-XX:CompileCommand=exclude,*.interpreted*",
           "-XX:CompileCommand=exclude,Jni.inChild", "-XX:+DisplayVMOutputToStderr"]
# Without this, compiled code knows the inlined function and the line only where it calls or may stop.
EXACT = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
SMALL = ["-Xmx256m", "-Xss4m"]
# Nice values: what waits to be compiled would have to wait for all the threads that run it interpreted.
COMPILERS_FIRST = ["-XX:ThreadPriorityPolicy=1", "-XX:CompilerThreadPriority=-15"]
FOR_SHORT = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]  # a compiler that has ended before C2 would have paid
LINES_FILE = "lines.json"  # LINES, beside the compiled programs


def release_of(program):
    """(17, "17.0.15"), as java or javac say themselves."""
    done = subprocess.run([program, "-version"], stdin=subprocess.DEVNULL, capture_output=True, check=True,
                          timeout=300 * PATIENCE)
    text = re.search(r'(?:version "|javac )([^"\s]+)', (done.stderr + done.stdout).decode()).group(1)
    numbers = re.findall(r"\d+", text)
    return int(numbers[1] if numbers[0] == "1" else numbers[0]), text


class Jdk:
    """A Java runtime."""

    def __init__(self, home):
        self.home = home
        self.java = os.path.join(home, "bin/java")
        self.release, self.version = release_of(self.java)

    def argv(self, *args):
        return [self.java, *args]

    def has(self, options):
        """Was it built with what these options ask for?"""
        done = subprocess.run(self.argv(*options, "-version"), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=300 * PATIENCE)
        return done.returncode == 0


def jdks(args):
    homes = args.jdk or [h for h in os.environ.get("SONDE_JDKS", "").split(":") if h] or glob.glob("/usr/lib/jvm/*")
    found = {os.path.realpath(h) for h in homes if os.path.exists(os.path.join(h, "bin/java"))}
    return sorted(map(Jdk, found), key=lambda j: (j.release, j.home))


class Classes:
    """The programs, compiled by the newest javac of this machine, and what lines each method has. Compiling takes six seconds of CPU: the
    tests of a build folder do so once, together. Where that was done elsewhere (tests/vm), the environment's SONDE_CLASSES is the folder."""

    def __init__(self):
        self.folder = None
        self.virtual = self.library = False

    def ensure(self, setup):
        if self.folder:
            return
        if os.environ.get("SONDE_CLASSES"):
            self._use(os.environ["SONDE_CLASSES"])
            return
        compilers = sorted((release_of(p), p) for p in glob.glob("/usr/lib/jvm/*/bin/javac"))
        if not compilers:
            raise tap.Skip("no javac")
        (release, version), javac = compilers[-1]
        root = os.environ.get("SONDE_BUILD_ROOT")
        folder = os.path.join(root, "tests/java", self._key(version)) if root else setup.file("classes")
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with open(folder + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(folder):
                with tempfile.TemporaryDirectory(prefix=".new-", dir=os.path.dirname(folder)) as new:
                    self._make(javac, release, os.path.join(new, "classes"))
                    os.rename(os.path.join(new, "classes"), folder)
        self._use(folder)

    @staticmethod
    def _key(version):
        """Of all that the classes are made of."""
        sources = sorted(glob.glob(os.path.join(SOURCES, "*.[jc]*")))
        digest = hashlib.sha256(version.encode())
        for path in (*sources, __file__):
            with open(path, "rb") as f:
                digest.update(f.read())
        return digest.hexdigest()[:16]

    def _make(self, javac, release, folder):
        os.makedirs(folder)
        sources = [os.path.join(SOURCES, name + ".java") for name in ("Truth", "Calls", "Churn", "Deopt", "Embedded", "Jni")]
        self._compile(javac, folder, "8", sources)
        if release >= 21:
            self._compile(javac, folder, "21", [os.path.join(SOURCES, n + ".java") for n in ("Virtual", "VirtualNames")])
        include = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(javac))), "include")
        if os.path.exists(os.path.join(include, "jni.h")):
            subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                            "-I" + include, "-I" + os.path.join(include, "linux"), "-o",
                            os.path.join(folder, "libknown.so"), os.path.join(SOURCES, "jni.c")], check=True)
        lines = self._read_lines(javac, folder)
        with open(os.path.join(folder, LINES_FILE), "w", encoding="utf-8") as f:
            json.dump({name: sorted(numbers) for name, numbers in lines.items()}, f)

    def _use(self, folder):
        with open(os.path.join(folder, LINES_FILE), encoding="utf-8") as f:
            LINES.update((name, set(lines)) for name, lines in json.load(f).items())
        self.virtual = os.path.exists(os.path.join(folder, "Virtual.class"))
        self.library = os.path.exists(os.path.join(folder, "libknown.so"))
        self.folder = folder

    @staticmethod
    def _compile(javac, folder, release, sources):
        subprocess.run([javac, *FOR_SHORT, "-encoding", "UTF-8", "-g", "-Xlint:-options", "--release", release, "-cp", folder, "-d",
                        folder, *sources], check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})

    @staticmethod
    def _read_lines(javac, folder):
        """Lines of each "Class.method", out of the class files."""
        names = [os.path.basename(p)[:-len(".class")] for p in glob.glob(os.path.join(folder, "*.class"))]
        out = subprocess.run([javac.replace("javac", "javap"), *FOR_SHORT, "-J-Dstdout.encoding=UTF-8", "-J-Dfile.encoding=UTF-8", "-l", "-c",
                              "-p", "-cp", folder, *names], check=True,
                             capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.decode("utf-8")
        found, cls, method = {}, None, None
        for line in out.splitlines():
            m = re.match(r"^(?:public |abstract |final |static )*(?:class|interface) (\S+)", line)
            if m:
                cls = m.group(1)
            m = re.match(r"^  (?:.* )?(\S+)\(.*\)(?: throws .*)?;$", line)
            if m:
                method = "<init>" if m.group(1) == cls else m.group(1)
            elif line == "  static {};":
                method = "<clinit>"
            m = re.match(r"^\s+line (\d+): \d+$", line)
            if m:
                found.setdefault("%s.%s" % (cls, method), set()).add(int(m.group(1)))
        return found


CLASSES = Classes()
