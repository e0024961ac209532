# SPDX-License-Identifier: Apache-2.0
"""Python's part of a program that has a Python and a Perl in it (python.c): calls Perl, and is called back by it; with
"perls", an interpreter of Perl, another one, and the first one again. Each hands the other the chain so far, as the inside
of a JSON list of [LANGUAGE, NAME, FILE, LINE], outermost first; whoever is the leaf adds itself and prints the truth."""
import os
import sys

import native

WHICH = sys.argv[1]


def told(text, ours):
    """What is told already, and the frames from `ours` on, the function that C called, to whoever calls this."""
    frame, chain = sys._getframe(1), []
    while frame:
        code = frame.f_code
        chain.insert(0, '["python", "%s", "%s", %d]' % (code.co_name, code.co_filename, frame.f_lineno))
        if code.co_name == ours:
            break
        frame = frame.f_back
    return ", ".join([text] * bool(text) + chain)


def leaf(text, ours):
    print('{"comm": "mixed", "chain": [%s]}\n{"ready": %d}' % (told(text, ours), os.getpid()), flush=True); x = 0
    while x >= 0: x += 1


def again(text):
    native.perl(0, "main::inner", told(text, "back"))


def other(text):
    global WHICH
    WHICH = "perl"
    native.perl(1, "main::outer", told(text, "back"))


def back(text):
    if WHICH == "python":
        leaf(text, "back")
    elif WHICH == "perls":
        other(text)
    else:
        again(text)


def calls(n):
    if n:
        return calls(n - 1) + 1
    native.perl(0, "main::outer", told("", "<module>"))


calls(2)
