# SPDX-License-Identifier: MIT
"""Parks event loops of asyncio with tasks of every kind, and reports the truth about each task.

Each situation runs an event loop in a thread of its own, brings tasks to where they await
something for good, and parks in the last one that runs. Runs on CPython 3.8 and newer.
"""
import asyncio
import builtins
import concurrent.futures
import contextlib
import functools
import gc
import sys
import threading
import types

import parking
from ready import native_id

DEEP = 100
MANY = 1000
HAS_AWAITED_BY = sys.version_info >= (3, 14)

loops = {}  # {loop: native id of its thread}
shields = {}  # {future of shield(): what it shields}
groups_entered = {}  # {task: tasks of the TaskGroup that it has entered}


# ---- what tasks await -----------------------------------------------------------------


async def awaits(future):
    return await future


async def nested(depth, future):
    if depth:
        return await nested(depth - 1, future)
    return await awaits(future)


@types.coroutine
def generator_based(future):
    yield from awaits(future).__await__()


class Awaitable:
    def __init__(self, coroutine):
        self.coroutine = coroutine

    def __await__(self):
        return (yield from self.coroutine.__await__())


class Yields:
    """Suspends in a yield, with the iterator of the loop, a generator, on the stack."""

    def __init__(self, future):
        self.future = future

    def __await__(self):
        for waiter in (it for it in [self.future] * 2):
            waiter._asyncio_future_blocking = True
            yield waiter


class Wrapper(Awaitable):
    def __await__(self):
        return self.coroutine.__await__()


async def counts(future):
    yield 1
    await awaits(future)
    yield 2


async def delegates(future):
    async for number in counts(future):
        yield number


async def iterates(future):
    async for _ in delegates(future): pass


async def asks_for_next(future):
    numbers = counts(future)
    await numbers.__anext__()
    await (anext(numbers, None) if hasattr(builtins, "anext") else numbers.__anext__())


async def cleans_up(future):
    try:
        yield
    finally:
        await future


async def throws(future):
    numbers = cleans_up(future)
    await numbers.__anext__()
    with contextlib.suppress(ValueError):
        await numbers.athrow(ValueError)


@contextlib.asynccontextmanager
async def resource(future):
    await future
    yield


async def enters(future):
    async with resource(
            future) as _: pass


async def waits_in_a_finally(future):
    try:
        raise ValueError
    except ValueError: [x async for x in counts(future)]


class OwnTask(asyncio.Task):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.more = "attributes"


# ---- situations: coroutines that leave tasks behind ------------------------------------

keep = []  # tasks and futures without other references


def future_for_good():
    keep.append(asyncio.get_running_loop().create_future())
    return keep[-1]


def started(coroutine, **kwargs):
    keep.append(asyncio.create_task(coroutine, **kwargs))
    return keep[-1]


async def kinds_of_awaits():
    future = future_for_good()
    for function in (awaits, iterates, asks_for_next, throws, enters, waits_in_a_finally):
        started(function(future), name=function.__name__)
    started(awaits(generator_based(future)))
    started(awaits(Awaitable(awaits(future))))
    started(awaits(Wrapper(awaits(future))))
    started(awaits(Yields(future)))
    started(nested(DEEP, future), name="deep")


async def names():
    future = future_for_good()
    for name in ("", "twice", "twice", "\u00e4\u00f6", "\u4e2d\u6587", "\U0001f600", "a\nb\x1b[31m",
                 "x" * 300, 2**70, None):
        started(awaits(future), name=name)
    started(awaits(future)).set_name(17)


async def groups():
    future = future_for_good()

    async def group():
        if not hasattr(asyncio, "TaskGroup"):
            return await asyncio.gather(*[nested(i, future) for i in range(3)])
        async with asyncio.TaskGroup() as inner:
            for i in range(3):
                keep.append(inner.create_task(nested(i, future)))
                groups_entered.setdefault(inner._parent_task, []).append(keep[-1])

    def shielded(inner):
        outer = asyncio.shield(inner)
        shields[outer] = inner
        return outer

    async def gathers():
        await asyncio.gather(awaits(future), group(), shielded(started(awaits(future))))

    async def awaits_a_shielded_gather():
        await shielded(asyncio.gather(both, awaits(future)))

    async def shares_callbacks(task):
        """Callbacks that refer to a task which does not await this one."""
        other = started(awaits(future))
        task.add_done_callback(lambda _: other.cancel())
        task.add_done_callback(other.cancel)
        task.add_done_callback(functools.partial(other.cancel, other))
        await future

    both = started(gathers())
    started(awaits(both))
    started(awaits(both))
    started(asyncio.wait_for(awaits(future), 10**6))
    started(asyncio.wait([started(awaits(future)), both]))
    started(awaits_a_shielded_gather())
    started(shares_callbacks(started(awaits(future))))


async def library():
    lock, queue, event = asyncio.Lock(), asyncio.Queue(), asyncio.Event()
    await lock.acquire()
    started(lock.acquire())
    started(queue.get())
    started(event.wait())
    started(asyncio.sleep(10**6))
    started(awaits(asyncio.wrap_future(concurrent.futures.Future())))


async def subclasses():
    loop = asyncio.get_running_loop()
    keep.append(OwnTask(nested(2, future_for_good()), loop=loop))


async def eager():
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    future = future_for_good()
    for depth in range(3):
        started(nested(depth, future))


async def many():
    future = future_for_good()
    children = [started(nested(2, future)) for _ in range(MANY)]
    keep.append(asyncio.gather(*children))


async def runs(situation, park):
    """Set a situation up, and park once all of its tasks are where they stay."""
    loops[asyncio.get_running_loop()] = native_id()
    await situation()
    for _ in range(20):
        await asyncio.sleep(0)
    started(awaits(future_for_good()), name="not begun")  # or begun eagerly
    await calls_park(park)


async def calls_park(park):
    def called():
        park()

    called()


async def parks_eagerly(park):
    """A task that has not awaited anything yet runs while the task that made it runs, too."""
    loop = asyncio.get_running_loop()
    loops[loop] = native_id()
    loop.set_task_factory(asyncio.eager_task_factory)
    # 3.14 and newer have no list of a task that is neither current nor has awaited anything.
    started(calls_park(park) if HAS_AWAITED_BY else starts_another(park), name="eager")


async def starts_another(park):
    started(calls_park(park), name="eager in another")


async def leaves_tasks():
    """The thread ends, and its tasks remain."""
    loops[asyncio.get_running_loop()] = None
    started(nested(3, future_for_good()), name="left")
    await asyncio.sleep(0)


def end_with_tasks():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leaves_tasks())
    keep.append(loop)


def between_tasks(park):
    """A loop that has tasks, but waits itself: no task runs."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leaves_tasks())
    loops[loop] = native_id()
    keep.append(loop)
    park()


has_eager_tasks = hasattr(asyncio, "eager_task_factory")
SITUATIONS = [
    (situation.__name__, functools.partial(lambda situation, park: asyncio.run(
        runs(situation, park)), situation))
    for situation in (kinds_of_awaits, names, groups, library, subclasses, many)
    + ((eager,) if has_eager_tasks else ())
] + [
    ("between tasks", between_tasks),
] + ([("parks eagerly", lambda park: asyncio.run(parks_eagerly(park)))] if has_eager_tasks else [])


# ---- the truth ------------------------------------------------------------------------


def step(awaited):
    """The frame of an awaited object, or None, and what it awaits itself."""
    if isinstance(awaited, types.CoroutineType):
        return awaited.cr_frame, awaited.cr_await
    if isinstance(awaited, types.GeneratorType):
        return awaited.gi_frame, awaited.gi_yieldfrom
    if isinstance(awaited, types.AsyncGeneratorType):
        return awaited.ag_frame, awaited.ag_await
    if type(awaited).__name__ in ("coroutine_wrapper", "async_generator_asend",
                                  "async_generator_athrow", "anext_awaitable"):
        return None, next(referred for referred in gc.get_referents(awaited)
                          if step(referred) != (None, None))
    return None, None


def frames_of(task, running_frames, described):
    awaited = task.get_coro()
    for ident, frame in running_frames.items():
        inner = []
        while frame is not None and frame is not awaited.cr_frame:
            inner.append(described(frame))
            frame = frame.f_back
        if frame is not None and asyncio.current_task(task.get_loop()) is task:
            return [described(frame)] + inner[::-1]
    frames = []
    while awaited is not None:
        frame, awaited = step(awaited)
        if frame is not None:
            frames.append(described(frame))
    return frames


def noted_awaiters(future):
    """The tasks that await a future, directly or by way of others, as 3.14 and newer note it."""
    found = set()
    for awaiter in future._asyncio_awaited_by or ():
        found |= {awaiter} if isinstance(awaiter, asyncio.Task) else noted_awaiters(awaiter)
    return found


def awaited_tasks(task):
    """The tasks that a task waits for, from what it waits in: before 3.14."""
    futures = [task._fut_waiter] + groups_entered.get(task, [])
    innermost = frames_of(task, {}, lambda frame: frame)[-1]
    if innermost is not None and innermost.f_globals is vars(asyncio.tasks):
        if innermost.f_code.co_name == "_wait":
            futures.extend(innermost.f_locals["fs"])
        if innermost.f_code.co_name == "wait_for":
            futures.append(innermost.f_locals["fut"])
    found = set()
    while futures:
        future = futures.pop()
        if isinstance(future, asyncio.Task):
            found.add(future)
        else:
            futures.extend(getattr(future, "_children", ()))
            futures.extend([shields[future]] if future in shields else [])
    return found


def truth():
    running_frames = sys._current_frames()
    tasks = [(task, loop, tid) for loop, tid in loops.items() for task in asyncio.all_tasks(loop)]
    awaiters = {}
    if not HAS_AWAITED_BY:
        for waiting, _, _ in tasks:
            for task in awaited_tasks(waiting):
                awaiters.setdefault(task, set()).add(waiting)
    return {"tasks": [
        {
            "id": hex(id(task)),
            "name": task.get_name(),
            "running": asyncio.current_task(loop) is task,
            # A thread is known to have a loop only while that runs, before 3.14.
            "tid": tid if HAS_AWAITED_BY or loop.is_running() else None,
            "frames": frames_of(task, running_frames, parking.described),
            "awaited_by": sorted(hex(id(awaiter)) for awaiter in (
                noted_awaiters(task) if HAS_AWAITED_BY else awaiters.get(task, ()))),
        }
        for task, loop, tid in tasks
    ]}


if __name__ == "__main__":
    thread = threading.Thread(target=end_with_tasks)
    thread.start()
    thread.join()
    # In free-threaded 3.13 loops of several threads get each other's tasks.
    parking.main(SITUATIONS, before_report=truth, one_by_one=True)
