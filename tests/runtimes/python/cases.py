# SPDX-License-Identifier: Apache-2.0
"""Known answers: cases.py CASE builds a chain of calls and stays in its leaf, which has said what this Python itself
takes its chain for (tests/runtimes/runtimes.py has the protocol). Any Python from 3.6 on."""
import json
import os
import sys
import threading

expected = 1
told = 0
notify = None  # a descriptor that tells another interpreter
telling = threading.Lock()


def chain_of(frame):
    chain = []
    while frame:
        code = frame.f_code
        chain.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return chain[::-1]


def rename(comm):
    """The comm of this very thread."""
    with open("/proc/thread-self/comm", "w") as f:
        f.write(comm)


def wait_for_go():
    """Until standard input ends: all are there, and sonde is."""
    while os.read(0, 100):
        pass


def tell(frame, comm=None, **more):
    """Says what chain the frame is in; the last time, that all is ready. Goes on when it may."""
    global told
    comm = (comm or "py-" + sys.argv[1])[:15]
    rename(comm)
    with telling:
        print(json.dumps(dict({"comm": comm, "chain": chain_of(frame)}, **more)), flush=True)
        told += 1
        if told == expected:
            print(json.dumps({"ready": os.getpid()}), flush=True)
    if notify is not None:
        os.write(notify, b"x")
    wait_for_go()


def leaf(comm=None, **more):
    tell(sys._getframe(), comm, lines=[leaf.__code__.co_firstlineno + 2, leaf.__code__.co_firstlineno + 4], **more)
    x = 1
    while True:
        x = x * 3 % 1000003


# --- calls ---


def plain():
    first(1)


def first(a):
    return second(a, b=2)


def second(a, b):
    c = a + b
    return third(
        a, b,
        c=c)


def perf_plain():
    """With -X perf: trampolines between the interpreter's frames."""
    first(1)


def third(a, b, c):
    leaf(adjacent=sys.argv[1] == "plain")


def recursion(n=900):
    if n:
        recursion(n - 1)
    leaf()


def generator():
    for _ in outer_generator(3):
        pass


def outer_generator(n):
    yield from inner_generator(n)


def inner_generator(n):
    for i in range(n):
        if i == 1:
            leaf()
        yield i


def coroutine():
    c = outer_coroutine()
    try:
        c.send(None)
    except StopIteration:
        pass


async def outer_coroutine():
    async with Context():
        await inner_coroutine()


class Context:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        pass


async def inner_coroutine():
    async for _ in async_generator():
        pass


async def async_generator():
    yield 1
    leaf()


def asyncio_task():
    import asyncio

    async def main():
        await asyncio.sleep(0)
        await asyncio.gather(inner_coroutine())

    asyncio.new_event_loop().run_until_complete(main())


def comprehension():
    return [{k: [leaf_if(k, v) for v in range(3)] for k in (x for x in range(2))} for _ in "a"]


def leaf_if(k, v):
    return k and v and leaf()


# --- classes and functions of all kinds ---


class Base:
    def __init__(self):
        self.called()

    def __call__(self):
        return self.of_class()

    @classmethod
    def of_class(cls):
        return cls.static()

    @staticmethod
    def static():
        return Base.Inner().attribute

    class Inner:
        @property
        def attribute(self):
            return self.missing

        def __getattr__(self, name):
            with self:
                return None

        def __enter__(self):
            return str(self)

        def __exit__(self, *exc):
            pass

        def __str__(self):
            return self[1]

        def __getitem__(self, i):
            return Last(i) + 1


class Last(int):
    def __add__(self, other):
        leaf()


class Derived(Base):
    def __init__(self):
        super().__init__()

    def called(self):
        self()


def methods():
    Derived()


def decorated(function):
    import functools

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def decorators():
    import functools

    @decorated
    @functools.lru_cache()
    @decorated
    def target(a, b=2):
        return (lambda x: leaf() if x else None)(a)

    functools.partial(target, 1)(b=3)


def callbacks():
    """C code that calls Python code that is in C code that calls Python code."""
    import functools
    import re

    def key(x):
        return functools.reduce(lambda a, b: list(map(mapped, [a + b])), [1, 2])

    def mapped(x):
        return re.sub("b", replace, "abc")

    def replace(match):
        return max([1], key=lambda y: leaf())

    sorted([1], key=key)


def exceptions():
    try:
        raise ValueError("x")
    except ValueError:
        try:
            [][1]
        finally:
            leaf()


def executed():
    source = "def made():\n    eval('leaf()', dict(leaf=leaf))\n\n\nif 1:\n    made()\n"
    exec(compile(source, "/made/of/text.py", "exec"), {"leaf": leaf})


def with_strings():
    exec("def f():\n  leaf()\nf()", {"leaf": leaf})


def umlaute():
    source = "class K\u00e4se:\n  def \u6f22\u5b57(self):\n    (lambda \u00e9: \U00010900())(1)\ndef \U00010900():\n  leaf()\n" \
             "K\u00e4se().\u6f22\u5b57()\n"
    exec(compile(source, "/srv/\u00fcber/\U0001f600.py", "exec"), {"leaf": leaf})


def imported():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "imported_module.py"), "w") as f:
            f.write("import __main__\n\n\ndef in_module():\n    __main__.leaf()\n\n\nin_module()\n")
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        import imported_module


def finalizer():
    class Dying:
        def __del__(self):
            leaf()

    d = Dying()
    del d


def in_signal():
    import signal

    def on_signal(number, frame):
        leaf()

    signal.signal(signal.SIGUSR1, on_signal)
    os.kill(os.getpid(), signal.SIGUSR1)
    while True:
        pass


# --- native code that calls back ---


def ctypes_qsort():
    import ctypes

    libc = ctypes.CDLL(None)
    compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    array = (ctypes.c_int * 2)(2, 1)

    def outer(a, b):
        libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare_type(inner))
        return 0

    def inner(a, b):
        leaf(between=[["ctypes_qsort", "outer", "qsort"], ["outer", "inner", "qsort"]])
        return 0

    libc.qsort(array, 2, 4, compare_type(outer))


# --- threads ---


def threads():
    global expected
    expected = 4

    def run(i):
        if i % 2:
            threads_odd(i)
        threads_even(i)

    all_of_them = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(expected - 1)]
    for t in all_of_them:
        t.start()
    leaf("py-thr-main")


def threads_odd(i):
    leaf("py-thr-%d" % i)


def threads_even(i):
    threads_odd(i)


def no_gil():
    """Threads whose native code runs without the GIL, while others have it."""
    global expected
    expected = 3
    import hashlib
    import zlib

    data = os.urandom(1 << 22)

    def hashes():
        digest = hashlib.sha256()
        tell(sys._getframe(), "py-nogil-hash", lines=[sys._getframe().f_lineno + 1, sys._getframe().f_lineno + 2])
        while True:
            digest.update(data)

    def packs():
        tell(sys._getframe(), "py-nogil-zlib", lines=[sys._getframe().f_lineno + 1, sys._getframe().f_lineno + 2])
        while True:
            zlib.compress(data, 1)

    for f in (hashes, packs):
        threading.Thread(target=f, daemon=True).start()
    leaf("py-nogil-main")


def greenlets():
    """Of the three one is begun in another, and all are copied away from the stack and back: what lies above the first
    function of a greenlet there did not call it."""
    from greenlet import greenlet

    def deep(n, switch):
        return deep(n - 1, switch) if n else switch()

    def third():
        deep(40, first_one.switch)

    def second():
        greenlet(third).switch()

    def first():
        deep(20, greenlet(second).switch)
        in_greenlet()

    first_one = greenlet(first)
    first_one.switch()


def in_greenlet():
    leaf(outermost=r"greenlet::UserGreenlet::inner_bootstrap\(")


def waiting():
    """Threads that wait, for `sonde stack`."""
    global expected
    expected = 3
    import time

    lock = threading.Lock()
    lock.acquire()

    def sleeps():
        tell(sys._getframe(), "py-wait-sleep", lines=[sys._getframe().f_lineno + 1] * 2)
        time.sleep(1000)

    def locks():
        tell(sys._getframe(), "py-wait-lock", lines=[sys._getframe().f_lineno + 1] * 2)
        lock.acquire()

    for f in (sleeps, locks):
        threading.Thread(target=f, daemon=True).start()
    tell(sys._getframe(), "py-wait-main", lines=[sys._getframe().f_lineno + 1] * 2)
    time.sleep(1000)


# --- processes ---


def forked():
    global expected, told
    expected = 2
    if not os.fork():
        in_child("py-forked")
    # The child's truth comes on the same pipe, and it is ready when it is.
    os.wait()


def in_child(comm):
    global expected
    expected = 1
    leaf(comm)


def multiprocessing_fork():
    import multiprocessing

    p = multiprocessing.get_context("fork").Process(target=in_child, args=("py-multiproc",))
    p.start()
    p.join()


def reexec():
    if len(sys.argv) < 3:
        os.execv(sys.executable, [sys.executable, *interpreter_options(), sys.argv[0], "reexec", "again"])
    first_of_reexec()


def interpreter_options():
    return ["-X", "perf"] if "perf" in getattr(sys, "_xoptions", {}) else []


def first_of_reexec():
    leaf()


def subinterpreter():
    """A chain that goes through two interpreters: each knows its own part."""
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    in_main(interpreters, source_for(chain_of(sys._getframe())))


def in_main(interpreters, source):
    interpreters.run_string(interpreters.create(), source)


def source_for(chain):
    chain.append(["in_main", chain[-1][1], in_main.__code__.co_firstlineno + 1])
    return ("import sys\nsys.argv = %r\nsys.path.insert(0, %r)\nimport cases\ndef in_sub():\n  cases.leaf(before=%r)\n"
            "in_sub()\n" % (sys.argv, os.path.dirname(os.path.abspath(__file__)), chain))


def interpreters():
    """Threads that each go from the main interpreter through another one into a third one, all of them their own. Before
    3.12 they share the GIL, and one that works gives it to no other interpreter."""
    if sys.version_info < (3, 12):
        nested(2, [], "py-sub-0", None)
    comms = ["py-sub-%d" % i for i in range(3)]
    told_here, tell_there = os.pipe()
    for comm in comms:
        threading.Thread(target=nested, args=(2, [], comm, tell_there), daemon=True).start()
        os.read(told_here, 1)
    leaf("py-sub-main")


def nested(depth, before, comm, fd):
    try:
        import _interpreters as module
    except ImportError:
        import _xxsubinterpreters as module
    if not depth:
        leaf(comm, before=before)
    enter(module, nested_source(depth - 1, before + chain_of(sys._getframe()), comm, fd))


def enter(module, source):
    module.run_string(module.create(), source)


def nested_source(depth, chain, comm, fd):
    chain.append(["enter", chain[-1][1], enter.__code__.co_firstlineno + 1])
    return ("import sys\nsys.argv = %r\nsys.path.insert(0, %r)\nimport cases\ncases.expected, cases.notify = %d, %r\n"
            "cases.nested(%d, %r, %r, %r)\n"
            % (sys.argv, os.path.dirname(os.path.abspath(__file__)), 99 if fd else 1, fd, depth, chain, comm, fd))


# --- many short-lived functions ---


def churn():
    """Functions that are made, called once and freed, in generation after generation; the leaf's name and file say
    which its caller must be."""
    rename("py-churn")
    print(json.dumps({"ready": os.getpid()}), flush=True)
    wait_for_go()
    generation = 0
    while True:
        generation += 1
        source = ("def leaf_%d():\n    x = 1\n    for i in range(60):\n        x = x * 3 %% 1000003\n    return x\n"
                  "def caller_%d():\n    x = leaf_%d()\n    return x\n" % (generation, generation, generation))
        made = {}
        exec(compile(source, "/churn/%d.py" % generation, "exec"), made)
        call = made["caller_%d" % generation]
        # Most are gone before anybody can have read their names; some stay for some milliseconds.
        for _ in range(20 if generation % 8 else 1500):
            call()
        # A function and its globals refer to each other: freed at once only without that.
        call = None
        made.clear()


if __name__ == "__main__":
    sys.setrecursionlimit(3000)
    globals()[sys.argv[1]]()
