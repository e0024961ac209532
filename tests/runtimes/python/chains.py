# SPDX-License-Identifier: Apache-2.0
"""
Chains of Python frames, each said by the frames themselves before the innermost one blocks in read():

    case NAME THREAD
    frame CODE LASTI FUNCTION      innermost first: id() of the code object, offset in bytes
    end

then a byte is awaited on stdin. For any Python from 3.6 on.
"""
import os
import sys
import threading

try:
    import ctypes
except ImportError:
    ctypes = None


def chain(frame):
    lines = []
    while frame is not None:
        code = frame.f_code
        lines.append("frame %x %d %s" % (id(code), frame.f_lasti, code.co_name))
        frame = frame.f_back
    return lines


def thread_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    return ctypes.CDLL(None).syscall(186)  # x86-64's gettid


def leaf(name, outer=()):
    lines = ["case %s %d" % (name, thread_id())] + chain(sys._getframe()) + list(outer) + ["end\n"]
    os.write(1, "\n".join(lines).encode("utf-8", "surrogateescape"))
    os.read(0, 1)


def recurse(n, name):
    return recurse(n - 1, name) if n else leaf(name)


class Thing:
    def method(self, name):
        return [leaf(name) for _ in range(1)]

    def __call__(self, name):
        (lambda: self.method(name))()

    @property
    def prop(self):
        return leaf("property")


def generator(name):
    yield 1
    leaf(name)
    yield 2


def delegate(name):
    yield from generator(name)


class Awaited:
    def __await__(self):
        leaf("coroutine")
        yield 1


async def inner():
    await Awaited()


async def outer():
    await inner()


def by_key(name):
    leaf(name)
    return 0


def callback():
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    done = []

    def by_c(a, b):
        if not done:
            done.append(1)
            recurse(2, "ctypes")
        return 0
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare(by_c))


def in_thread():
    thread = threading.Thread(target=recurse, args=(3, "thread"))
    thread.start()
    thread.join()


def executed():
    exec(compile("def f(n):\n    leaf('exec')\nf(1)\n", "<made>", "exec"), {"leaf": leaf})


def interpreters():
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            return
    made = module.create()
    script = """if True:
        import sys
        sys.argv = ['']
        sys.path.insert(0, {folder!r})
        import chains
        def in_other():
            chains.leaf('interpreter', {outer!r})
        in_other()
        """.format(folder=os.path.dirname(os.path.abspath(__file__)), outer=chain(sys._getframe()))
    module.run_string(made, script)
    module.destroy(made)


def main():
    leaf("plain")
    recurse(300, "recursion")
    Thing()("method")
    Thing().prop
    list(delegate("generator"))
    outer().send(None)
    sorted([1], key=lambda n: by_key("key"))
    executed()
    in_thread()
    if ctypes:
        callback()
    interpreters()


if __name__ == "__main__":
    main()
