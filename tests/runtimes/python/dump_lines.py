# SPDX-License-Identifier: Apache-2.0
"""Prints the line table of every code object of some large modules, and the line that this Python itself has for each
instruction: "code FIRST-LINE TABLE-IN-HEX", then "OFFSET LINE" of every code unit, 0 for one without a line.
Any Python from 3.6 on."""
import argparse
import ctypes
import sys
import typing
import _pydecimal

addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
addr2line.restype = ctypes.c_int

# Lines that go back, far on and far back; bodies without a line; a long line; a def over many lines.
ODD = "def f(a, b):\n    return [g(a,\n" + "\n" * 300 + "   b) for g in (a,\n b)]\n" + """
async def h(x):
    async with x as y, \\
            y.z as w:
        try:
            return await (w
                .a
                .b(%s))
        finally:
            with x: pass
    while x and \\
          y:
        continue
lines = [lambda: (
    1,
    lambda: 2
)]
class C:
    def m(self): return [i for i in self if
        i]
match_like = {k: v
    for k, v in
    {}.items()}
""" % ("x, " * 200)


def dump(code, out):
    version = sys.version_info
    table = code.co_linetable if version >= (3, 10) else code.co_lnotab
    out.append("code %d %s" % (code.co_firstlineno, table.hex()))
    lines = [max(0, addr2line(code, i)) for i in range(0, len(code.co_code), 2)]
    if version >= (3, 11):
        positions = [p[0] or 0 for p in code.co_positions()]
        assert positions == lines, (code, positions, lines)
    elif version >= (3, 10):
        for start, end, line in code.co_lines():
            assert set(lines[start // 2:end // 2]) <= {line or 0}, (code, start, end, line)
    out.extend("%d %d" % (2 * i, line) for i, line in enumerate(lines))
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            dump(constant, out)


def main():
    out = []
    for module in (argparse, typing, _pydecimal):
        with open(module.__file__, encoding="utf-8") as f:
            dump(compile(f.read(), module.__file__, "exec"), out)
    dump(compile(ODD, "odd", "exec"), out)
    dump(compile("\n" * 100000 + ODD, "far", "exec"), out)
    print("\n".join(out))


main()
