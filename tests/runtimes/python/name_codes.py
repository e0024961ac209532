# SPDX-License-Identifier: Apache-2.0
"""Makes code objects with names of all kinds, and says where they are and what they are called.

    runtime ADDRESS SIZE             of _PyRuntime, in hexadecimal like all addresses
    type ADDRESS                     of PyCode_Type
    code ADDRESS OFFSET FIRST-LINE LINE<TAB>NAME<TAB>FILE
    ready

Then, for each line on its standard input, it frees the last code object that it made and makes another one, alike but
for its name and file: "code ..." again. Any Python from 3.6 on."""
import ctypes
import gc
import sys
import types

NAMES = ["plain", "with_\u00e9", "\u6f22\u5b57", "\U00010900x", "x" * 200, "\u00e9" * 150, "y" * 5000, "\u00df" * 3000]
FILES = ["/srv/app.py", "/srv/caf\u00e9.py", "/srv/\u6f22/\u5b57.py", "/srv/\U0001f600.py", "/srv/\udc80bytes.py",
         "<string>", "<frozen importlib._bootstrap>", "/" + "d/" * 400 + "x.py", "/srv/no name"]
NR_LINES = 40
kept = []


def codes_of(code):
    """The code objects in a code object, and itself."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in codes_of(constant):
                yield inner


def as_text(s):
    return "".join("\ufffd" if 0xd800 <= ord(c) < 0xe000 else c for c in s)


addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
addr2line.restype = ctypes.c_int


def say(code, offset):
    name = getattr(code, "co_qualname", code.co_name)
    line = "code %x %d %d %d\t%s\t%s\n" % (id(code), offset, code.co_firstlineno, max(0, addr2line(code, offset)),
                                          as_text(name), as_text(code.co_filename))
    sys.stdout.buffer.write(line.encode("utf-8"))


def source(name, first_line):
    return "\n" * first_line + "class K_%s:\n def %s(self):\n  def inner(): return (lambda: 1)\n%s  return inner\n" % (
        name, name, "".join("  x = %d\n" % i for i in range(NR_LINES)))


def churned(i):
    # Like its predecessors in all that does not matter, so that it takes their place.
    name = "churn_%05d" % i
    return compile("def %s():\n return %d\n" % (name, i), "/gen/file_%05d.py" % i, "exec").co_consts[0]


def main():
    sys.stdout.buffer.write(b"runtime %x %x\n" % (runtime_address(), 1024))
    sys.stdout.buffer.write(b"type %x\n" % id(types.CodeType))
    for i, name in enumerate(NAMES):
        for k, file in enumerate(FILES):
            top = compile(source(name, 100 * i + k), file, "exec")
            kept.append(top)
            for code in codes_of(top):
                say(code, (i * 2 + k * 6) % len(code.co_code) & ~1)
    # Frozen modules' code is part of the interpreter.
    import importlib
    for function in vars(importlib._bootstrap).values():
        if isinstance(function, types.FunctionType):
            say(function.__code__, 0)
    sys.stdout.buffer.write(b"ready\n")
    sys.stdout.buffer.flush()
    i = 0
    for _ in sys.stdin:
        code = None
        code = churned(i)
        say(code, 0)
        sys.stdout.buffer.flush()
        i += 1
        if i % 100 == 0:
            gc.collect()


def runtime_address():
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    except ValueError:  # 3.6 has none
        return 0


main()
