# SPDX-License-Identifier: Apache-2.0
"""Known answers of --async: awaits.py CASE runs tasks of which one stays in its leaf, and has said what its chain is
together with those of the tasks that wait for it. Where each of them is suspended is what its coroutines say; which ones
they are a case knows by construction, and from 3.14 on Python has to agree. Any Python from 3.7 on."""
import asyncio
import functools
import json
import os
import sys
import types

import cases

AWAITED = ["[python: awaited_by]", "[python]", 0]
SEVERAL = ["[python: awaited_by_several]", "[python]", 0]
UNKNOWN = ["[python: awaiter_unknown]", "[python]", 0]
RUN = ("Handle._run", "_run")

spawn = asyncio.ensure_future


def where(frame):
    code = frame.f_code
    return [getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno]


def suspended(task):
    """The frames of a task that waits, outermost first."""
    frames, awaited = [], task._coro if hasattr(task, "_coro") else task.get_coro()
    while True:
        frame = next((getattr(awaited, n) for n in ("cr_frame", "gi_frame", "ag_frame") if hasattr(awaited, n)), None)
        if frame:
            frames.append(where(frame))
        following = next((getattr(awaited, n) for n in ("cr_await", "gi_yieldfrom", "ag_await") if hasattr(awaited, n)), None)
        if following is None and type(awaited).__name__ == "async_generator_asend":
            following = generator_of.get("it")
        if following is None:
            return frames
        awaited = following


generator_of = {}  # what awaits the next item of one does not tell


def agrees(task, awaiters):
    """Does Python say the same? asyncio.capture_call_graph()'s facts, from 3.14 on."""
    for awaiter in awaiters:
        if not hasattr(task, "_asyncio_awaited_by"):
            return
        assert set(task._asyncio_awaited_by or ()) == {awaiter}, (task, task._asyncio_awaited_by)
        task = awaiter


def leaf(*awaiters, note=None, task=None, run_by_who_knows=None):
    """Stays here; the tasks that wait for this one (`task`), outwards; what is said behind the last of them. The name of
    the coroutine that is run by something else than a task."""
    agrees(task or current_task(), awaiters)
    chain = cases.chain_of(sys._getframe())
    at = max(i for i, frame in enumerate(chain) if frame[0] in RUN) + 1
    others = []
    for task in awaiters[::-1]:
        others += suspended(task) + [AWAITED]
    chain[at:at] = ([note] if note else []) + others
    if run_by_who_knows:
        chain.insert(max(i for i, frame in enumerate(chain) if frame[0].endswith(run_by_who_knows)), UNKNOWN)
    line = sys._getframe().f_lineno
    print_truth(chain, [line + 2, line + 5])
    cases.wait_for_go()
    x = 1
    while True:
        x = x * 3 % 1000003


def print_truth(chain, lines):
    comm = ("aw-" + sys.argv[1])[:15]
    cases.rename(comm)
    print(json.dumps({"comm": comm, "chain": chain, "lines": lines}))
    print(json.dumps({"ready": os.getpid()}), flush=True)


def current_task():
    return asyncio.current_task()


# --- who waits ---


async def works(*awaiters, **more):
    await asyncio.sleep(0)  # so that those who wait do
    await deeper(*awaiters, **more)


async def deeper(*awaiters, **more):
    leaf(*awaiters, **more)


async def waits_for(awaitable):
    return await awaitable


async def root():
    """Nobody waits for what asyncio.run() runs."""
    await asyncio.sleep(0)
    leaf()


async def nobody():
    """A task that nobody waits for."""
    spawn(works())
    await asyncio.sleep(3600)


async def nested():
    """Three tasks deep, in several coroutines each."""
    me = current_task()
    tasks = []

    async def middle():
        tasks.append(spawn(inner()))
        await waits_for(tasks[-1])

    async def inner():
        tasks.append(spawn(works(tasks[1], tasks[0], me)))
        await tasks[-1]

    tasks.append(spawn(middle()))
    await waits_for(waits_for(tasks[0]))


async def gather():
    me = current_task()
    await waits_for(asyncio.gather(asyncio.sleep(3600), works(me)))


async def gather_in_gather():
    me = current_task()
    tasks = []

    async def inner():
        await asyncio.gather(works(tasks[0], me), asyncio.sleep(3600))

    tasks.append(spawn(inner()))
    await asyncio.gather(tasks[0])


async def wait_for():
    """Up to 3.11 in a task of its own."""
    me = current_task()
    await asyncio.wait_for(works(*[me][:sys.version_info < (3, 12)]), 3600)


async def wait():
    me = current_task()
    await asyncio.wait([spawn(works(me)), spawn(asyncio.sleep(3600))])


async def shield():
    me = current_task()
    await asyncio.shield(works(me))


async def group():
    """At the end of the TaskGroup."""
    me = current_task()
    async with asyncio.TaskGroup() as g:
        g.create_task(works(me))
        g.create_task(asyncio.sleep(3600))


async def group_body():
    """In the body of the TaskGroup, waiting for one of its tasks as well."""
    me = current_task()
    async with asyncio.TaskGroup() as g:
        await g.create_task(works(me))


async def group_nested():
    me = current_task()
    async with asyncio.TaskGroup() as outer:
        tasks = []

        async def inner():
            async with asyncio.TaskGroup() as g:
                g.create_task(works(tasks[0], me))

        tasks.append(outer.create_task(inner()))


async def several():
    """Two wait for the same one: nobody says which of them."""
    task = spawn(works(note=SEVERAL))
    others = [spawn(waits_for(task)), spawn(waits_for(task))]
    await asyncio.wait(others)


async def callback():
    """Somebody is told, which is no waiting from 3.14 on; before, who knows."""
    task = spawn(works(note=None if hasattr(asyncio.Future, "_asyncio_awaited_by") else UNKNOWN))
    task.add_done_callback(print)
    await asyncio.sleep(3600)


async def both():
    """Somebody is told, and one waits."""
    task = spawn(works(current_task()))
    task.add_done_callback(print)
    task.add_done_callback(functools.partial(print, 1))
    await task


async def no_longer():
    """There were two that waited; one was cancelled."""
    me = current_task()
    tasks = []

    async def one_is_gone():
        await asyncio.sleep(0)
        other.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leaf(tasks[0], me)

    async def waits_shielded(task):
        await asyncio.wait([task])

    task = spawn(one_is_gone())
    other = spawn(waits_shielded(task))
    tasks.append(spawn(waits_for(task)))
    await tasks[0]


# --- where they wait ---


async def depth(n, awaitable):
    if n:
        await depth(n - 1, awaitable)
    else:
        await awaitable


async def deep():
    """Many coroutines."""
    me = current_task()
    await depth(60, spawn(works(me)))


async def async_generator():
    """Within an asynchronous generator."""
    me = current_task()

    async def items():
        yield 1
        await spawn(works(me))
        yield 2

    generator_of["it"] = it = items()
    async for _ in it:
        pass


@types.coroutine
def old_style(awaitable):
    yield from awaitable.__await__()


async def generator():
    """Within a coroutine of the old style."""
    me = current_task()
    await old_style(spawn(works(me)))


class Manager:
    def __init__(self, task):
        self.task = task

    async def __aenter__(self):
        return self

    async def __aexit__(self, *args):
        await self.task


async def context():
    me = current_task()
    async with Manager(spawn(works(me))):
        pass


# --- other tasks ---


class Task(asyncio.Task):
    """Of a class of its own."""


def use_tasks(cls):
    asyncio.get_event_loop().set_task_factory(lambda loop, coro, **more: cls(coro, loop=loop, **more))


async def nested_in(outer):
    me = current_task()
    await spawn(works(me, outer))


async def subclasses():
    use_tasks(Task)
    await spawn(nested_in(current_task()))


async def eager():
    """A task that begins within what makes it: its caller is no awaiter."""
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    me = current_task()

    async def begins():
        leaf(me, task=maker, run_by_who_knows="begins")

    async def makes():
        await asyncio.sleep(0)
        await spawn(begins())

    maker = asyncio.Task(makes())
    await maker


async def python_task():
    """A task that is written in Python: nobody knows."""
    use_tasks(asyncio.tasks._PyTask)
    spawn(works(run_by_who_knows="works"))
    await asyncio.sleep(3600)


async def by_hand():
    """A coroutine that a function runs, within a generator."""
    me = current_task()

    async def inner():
        leaf(me, task=task, run_by_who_knows="within")

    @types.coroutine
    def within():
        yield from inner().__await__()

    def function():
        within().send(None)

    async def runs_it():
        await asyncio.sleep(0)
        function()

    task = spawn(runs_it())
    await task


async def timer():
    """Not in a task at all, but in a callback."""
    asyncio.get_event_loop().call_later(0.01, leaf)
    await asyncio.sleep(3600)


# --- tasks that come and go ---

CHURN = """
async def work_{n}():
    await sleep(0)
    for _ in range(50): spin()

async def wait_{n}():
    await spawn(work_{n}())

async def top_{n}():
    await gather(wait_{n}())
"""


def spin():
    x = 1
    for _ in range(200):
        x = x * 3 % 1000003


async def churn():
    functions = []
    for n in range(20):
        space = {"sleep": asyncio.sleep, "spawn": spawn, "gather": asyncio.gather, "spin": spin}
        exec(compile(CHURN.format(n=n), "<churn>", "exec"), space)
        functions.append(space["top_%d" % n])
    print_truth([], [0, 0])
    cases.wait_for_go()
    while True:
        await asyncio.gather(*(f() for f in functions))


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]]())
