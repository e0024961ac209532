# SPDX-License-Identifier: Apache-2.0
"""The judge of jvm_test.py: frames as `record --lines -f folded` shows them, against the chains that programs have told.

In: told chains (runtimes.py) and stacks. Out: what is wrong of a stack, or None. jvm_checker_test.py shows that it can fail.
"""
import collections
import re

from runtimes import Tally

LINES = {}  # "Class.method" -> the lines it has, of the classes that the test compiles

# --- frames -----------------------------------------------------------------------------------------------------------

FRAME = re.compile(r"^(?P<name>.+?)(?P<tier>_\[[01j]\])?(?::(?P<line>\d+))?(?P<inlined>_\[i\])?$")
# A class and a method; natives' names have no dots, but for the compilers' parts and clones of functions.
JAVA = re.compile(r"^[^\s:()\[\]<>]+\.(?:<init>|<clinit>|[^\s.:()\[\]<>]+)$")
NATIVE_PART = re.compile(r"\.(?:cold|part|isra|constprop|localalias|lto_priv|llvm|\d+)(?:\.\d+)*$")


def plain(name):
    """What is different in each run is left out of a told name, as in the shown ones."""
    cls, _, method = name.rpartition(".")
    cls = re.sub(r"[/+](?:0x)?[0-9a-f]+$", "", cls)
    cls = re.sub(r"(\$\$Lambda|LambdaForm\$[A-Za-z]+|GeneratedMethodAccessor|GeneratedConstructorAccessor)(?:\$?\d+)$", r"\1", cls)
    return "%s.%s" % (cls, method)


class Frame:
    """A frame of a folded stack."""

    def __init__(self, text):
        m = FRAME.match(text)
        self.text = text
        self.name = m.group("name")
        self.tier = m.group("tier")
        self.line = int(m.group("line") or 0)
        self.inlined = bool(m.group("inlined"))
        self.java = bool(JAVA.match(self.name)) and not NATIVE_PART.search(self.name)
        if self.java:
            self.told = plain(self.name)


class Node:
    """A place in the tree of all told chains: what may be called from here, by name and line of the place there."""

    def __init__(self):
        self.children = {}

    def add(self, chain):
        node = self
        for name, _file, line in chain:
            # JDK 8 tells 1000000 + the bytecode's index where there is no line.
            node = node.children.setdefault((plain(name), line if line < 1000000 else 0), Node())

    def find(self, frame):
        """Children of this name: those where the line is right, and all."""
        named = [(line, n) for (name, line), n in self.children.items() if name == frame.told]
        return [n for line, n in named if line in (0, frame.line)], [n for _, n in named]


# What the virtual machine itself calls: it loads and initialises classes and links calls wherever it must.
UPCALL = re.compile(r"java\.lang\.(?:ClassLoader|invoke\.MethodHandleNatives|System|Thread)\.|Deopt\$Loader\.|.*\.<clinit>$")


def without_upcall(frames):
    """The frames up to the first Java frame that is called by native ones for no reason of the program's."""
    for i, f in enumerate(frames):
        if f.name == "Calls$Initialised.<clinit>":
            continue  # one that the program waits for
        if f.java and i and not frames[i - 1].java and any(g.java for g in frames[:i]) and UPCALL.match(f.name):
            return frames[:i]
    return frames


def library_calls_up(chains, before, between, after):
    """Beyond what was told, a native method of the JDK's own may call up into the JDK: doPrivileged(), invoke0(), a path's bytes."""
    return (chains.beyond and between[-1] == "StubRoutines::call_stub" and re.match(JDK, before.told) and
            chains.beyond.match(before.told) and chains.beyond.match(after.told))


def everywhere(name):
    return name in ("Truth.spin", "Truth.tell", "Truth.tellNow", "Truth.say", "Calls.much")


class Chains:
    """What was told of a comm, and what is allowed beyond."""

    def __init__(self, chains, beyond=None, between=None, starts=False):
        self.near = 0
        self.starts = starts  # such threads start during the recording
        self.root = Node()
        for chain in chains:
            self.root.add(chain)
        self.beyond = re.compile(beyond) if beyond else None
        self.between = between or {}  # name of a Java frame -> pattern of the native frames between it and the next

    def _beyond(self, frames):
        for i, f in enumerate(frames):
            if f.name == "Truth.tellNow":  # a thread that got no CPU still tells what it began to tell
                return all(re.match(JDK + r"|Truth\.", x.told) for x in frames[i:])
            if not everywhere(f.name) and not (self.beyond and self.beyond.match(f.told)):
                return False
        return True

    def _everywhere(self):
        """All places of all chains."""
        todo, found = [self.root], []
        while todo:
            found.append(todo.pop())
            todo += found[-1].children.values()
        return found

    def _match(self, java, anywhere=False):
        nodes = self._everywhere() if anywhere else [self.root]
        for i, frame in enumerate(java):
            exact, named = [], []
            for n in nodes:
                e, a = n.find(frame)
                exact += e
                named += a
            rest = java[i + 1:]
            if named and self._beyond(rest):
                known = LINES.get(frame.name)
                # Compiled code does not know each place's line; then none is shown.
                if known and frame.line and frame.line not in known:
                    return "%s has no line %d" % (frame.name, frame.line)
                return None
            if not exact:
                if not named and (i or anywhere) and self._beyond(java[i:]):
                    return None
                return "frame %d, %s, is not as told%s" % (i, frame.text, "" if not named else " (the line)")
            nodes = exact
        return None

    def judge(self, stack):
        wrong = self.judge_nearly([Frame(f) for f in stack.user], stack.count)
        return wrong and "%s: %s" % (wrong, ";".join(stack.user))

    def judge_nearly(self, frames, count, anywhere=False):
        """What is wrong; what is only nearly there is counted."""
        wrong = self.judge_frames(frames, anywhere)
        if wrong and self._near(frames, anywhere):
            self.near += count
            return None
        return wrong

    def _near(self, frames, anywhere):
        """Is everything right but what is inlined into the innermost compiled function? The compiler moves instructions
        from where they were written, and keeps what they come from: those seem to run where they do not yet, or no more."""
        java = [i for i, f in enumerate(frames) if f.java]
        real = [i for i in java if not frames[i].inlined]
        if not real or real[-1] == java[-1] and frames[real[-1]].tier == "_[0]":
            return False
        frames = frames[:real[-1] + 1]
        frames[-1] = Frame(frames[-1].name)
        return not self.judge_frames(frames, anywhere)

    def judge_frames(self, frames, anywhere=False):
        frames = without_upcall(frames)
        java = [f for f in frames if f.java]
        if not java:
            # A thread that starts has the name of its creator.
            # What JavaCalls finds out before it enters the method is the JVM's own, too.
            entering = next((f.name for i, f in enumerate(frames)
                             if i and frames[i - 1].name.startswith("JavaCalls::") and not f.name.startswith("JavaCalls::")), "")
            # The call stub, too, is entered and left without a Java frame; and before it JavaCalls touches the new stack's pages.
            starts = self.starts and (entering.startswith(BEFORE_THE_METHOD) or frames[-1].name == "StubRoutines::call_stub"
                                      or frames[-1].name.startswith("JavaCalls::call_helper(")
                                      or not any(f.name.startswith("JavaCalls::") for f in frames))
            return None if starts else "no Java frame"
        previous, between = None, []
        for f in frames:
            if not f.java:
                between.append(f.name)
                continue
            if previous and between:
                pattern = self.between.get(previous.told)
                if not (re.fullmatch(pattern, ";".join(between)) if pattern else library_calls_up(self, previous, between, f)):
                    return "native frames behind %s" % previous.text
            elif previous and self.between.get(previous.told):
                return "no native frames behind %s" % previous.text
            previous, between = f, []
        return self._match(java, anywhere)


# --- what each scenario may do beyond its chain -----------------------------------------------------------------------

JDK = r"(?:java|javax|jdk|sun|com\.sun)\."
# A round makes a loader, classes and objects of its own.
ROUND = JDK + r"|Deopt\$Loader\.loadClass$|Churn\.bytesOf$|Deopt\$(?:Loader|Round|Base|Other|\$Lambda)\.<(?:cl)?init>$"
BEYOND = {
    "lambda": r"java\.lang\.|jdk\.|Calls\$\$Lambda\.(?:<init>|get\$Lambda)$",
    "reference": r"java\.lang\.|jdk\.",
    "handle": r"java\.lang\.invoke\.",
    "reflection": JDK,
    "proxy": JDK + r"|.*\$Proxy",
    "stream": r"java\.(?:util|lang)\.",
    "traced": r"java\.lang\.",
    "thrown": r"java\.lang\.|Calls\.burn$",
    "arraycopy": r"java\.lang\.System\.arraycopy$",
    "crc32": r"java\.util\.zip\.|java\.lang\.|java\.util\.|sun\.nio\.|jdk\.internal\.",
    "aes": JDK,
    "sha": JDK,
    "multiply": r"java\.math\.|java\.lang\.|java\.util\.|jdk\.internal\.",
    "write": JDK,
    "native-leaf": r"Jni\.nativeLeaf$",
    "native-array": r"Jni\.fill$",
    "deopt": ROUND,
    "deopt2": ROUND,
}
ANY = r"[^;]+(?:;[^;]+)*"
BEFORE_THE_METHOD = ("LinkResolver::", "JavaCallWrapper::JavaCallWrapper", "CompilationPolicy::")  # whom JavaCalls calls
BETWEEN = {
    "initialiser": {"Calls.initialise": ANY},
    "up-down": {"Jni.down": r"Java_Jni_down;jni_inner(?:;[^;]+)*"},
}


# What becomes of samples until all tables are loaded.
EARLY = ("file_pending", "no_process", "stack_copy_end", "stale_mapping")
NOTE = re.compile(r"\[hotspot: (.*)\]$")


def notes_of(stack):
    return {m.group(1) for m in map(NOTE.match, stack.user) if m}


def is_early(stack):
    """Was it walked before its process's tables were loaded?"""
    return stack.reason in EARLY or bool(notes_of(stack) - {"frozen"})


class JavaTally(Tally):
    """Until the tables of a process's files are loaded, its samples are walked later, in a copy of their stack; they may be cut or lack frames,
    and say so. That is the first tenths of a second of a recording, of the program's own CPU time as well."""

    def __init__(self, name):
        super().__init__(name)
        self.early = 0
        self.why_early = collections.Counter()
        self.notes = collections.Counter()

    def take(self, stack, judge):
        for note in notes_of(stack):
            self.notes[note] += stack.count
        if is_early(stack):
            self.early += stack.count
            self.why_early[stack.reason or ", ".join(sorted(notes_of(stack)))] += stack.count
        else:
            super().take(stack, judge)

    def problems(self, least=20, complete_percent=99.0):
        found = super().problems(least, complete_percent)
        if self.early > max(20, 0.5 * (self.samples + self.early)):
            found.append("%s: %d samples were early, and %d not: %s" % (self.name, self.early, self.samples, dict(self.why_early)))
        return found

    def summary(self):
        return super().summary() + ("+%d" % self.early if self.early else "")
