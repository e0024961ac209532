# SPDX-License-Identifier: Apache-2.0
"""Threads with stacks worth keeping, for every Python 3. Prints "ready" when they are there, and waits to be killed.

Waiting: the main thread below a C function that calls back into Python; `generator`, in generators and a sort;
`awaited`, in a task of asyncio that others wait for.
Working, in turns: `worker`, whose stack is whatever it is when the process is stopped.
"""
import os
import sys
import threading
import time

try:
    import ctypes
except ImportError:
    ctypes = None
try:
    import asyncio
except ImportError:
    asyncio = None

FROM, TO = os.pipe()  # nobody writes


def wait():
    if threading.current_thread() is threading.main_thread():
        print("ready", flush=True)
    os.read(FROM, 1)


class Thing:
    def key(self, value):
        wait()
        return value


def callback():
    if not ctypes:
        return Thing().key(1)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * 2)(2, 1)
    libc = ctypes.CDLL(None)
    libc.qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: Thing().key(a[0] - b[0])))


def inner():
    yield sorted([2, 1], key=Thing().key)


def outer():
    yield from inner()


def generating(größe):
    return [x for x in outer()]


async def awaited():
    await asyncio.sleep(0)
    in_task.set()
    wait()


async def awaiting():
    await asyncio.ensure_future(awaited())


async def gathering():
    await asyncio.gather(asyncio.sleep(0), awaiting())


def multiply(a, b):
    return a * b % 1000003


def work():
    value = 1
    while True:
        for i in range(1000):
            value = multiply(value, i) + 1


for target, args in ((generating, (1,)), (work, ())):
    threading.Thread(target=target, args=args, daemon=True).start()
if hasattr(sys, "setswitchinterval"):
    sys.setswitchinterval(0.001)
time.sleep(0.3)
in_task = threading.Event()
if asyncio:
    threading.Thread(target=lambda: asyncio.new_event_loop().run_until_complete(gathering()), daemon=True).start()
    in_task.wait(10)
callback()
