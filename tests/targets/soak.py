# SPDX-License-Identifier: MIT
"""Loads for a long run, for ever. The first argument selects one.

code       functions, lambdas and classes are compiled, called and dropped; their names repeat
threads    threads are made and joined all the time; zero-filled buffers, of the size of a
           freed thread state and of other sizes, are searched for foreign writes
tasks      asyncio tasks that wait for one another come and go
recursion  a recursion goes deep for a moment and stays shallow for long
cached     as threads, beside a deep main thread, so that pysample writes to 3.15 and newer;
           the first line reports where the main thread's state is

SIGTERM ends it with a second line: how much was done, the largest number of threads at once, and
what was found in buffers. With the argument "poke" a buffer is damaged.
"""
import asyncio
import json
import signal
import sys
import threading
import time

import ready

NR_NAMES = 40
SOURCE = """
def function_{n}(steps):
    return sum(map(lambda x: x + {n}, range(steps)))

class Class_{n}:
    def method(self, steps):
        return [function_{n}(2) for _ in range(steps)]
"""

NR_THREADS = 5
# malloc() serves 513 bytes and more. It serves thread states, too, which have 300 to 2000.
BUFFER_SIZES = range(520, 2200, 8)
NR_KEPT = 20

DEEP, SHALLOW = 800, 10

report = {"turns": 0, "max_threads": 1, "buffers": 0, "foreign": []}
ends = False


def end(number, frame):
    global ends
    ends = True


def code():
    while not ends:
        n = report["turns"] % NR_NAMES
        namespace = {}
        exec(compile(SOURCE.format(n=n), "soak %d" % n, "exec"), namespace)
        namespace["function_%d" % n](100)
        namespace["Class_%d" % n]().method(20)
        report["turns"] += 1


def thread_state():
    try:
        import ctypes
    except ImportError:
        return 0
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get() or 0


def look_through(buffers):
    """Count the buffers, and report what is not zero in them."""
    for buffer in buffers:
        report["buffers"] += 1
        if any(buffer):
            at = next(i for i, byte in enumerate(buffer) if byte)
            report["foreign"].append([len(buffer), at, bytes(buffer[at & ~7:(at & ~7) + 8]).hex()])


def work(depth):
    if depth:
        work(depth - 1)
    else:
        sum(range(2000))


def threads():
    kept = []
    while not ends:
        started = [threading.Thread(target=work, args=((report["turns"] * 7 + i) % 100,))
                   for i in range(NR_THREADS)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        # These use the memory again that was just freed.
        kept.append([bytearray(size) for size in BUFFER_SIZES])
        if "poke" in sys.argv and report["turns"] == 3:
            kept[-1][5][56:64] = b"\x90\0\xff\x7f\0\0\0\0"
        if len(kept) > NR_KEPT:
            look_through(kept.pop(0))
        report["turns"] += 1
    for buffers in kept:
        look_through(buffers)


def stay(levels):
    if levels:
        return stay(levels - 1)
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        descend(SHALLOW)


def cached():
    churn = threading.Thread(target=threads)
    churn.start()
    while not ends:
        stay(DEEP)
    churn.join()


async def leaf(n):
    await asyncio.sleep(0)
    return sum(range(n))


async def branch(n):
    return sum(await asyncio.gather(*(asyncio.ensure_future(leaf(n + i)) for i in range(5))))


async def grow():
    while not ends:
        await asyncio.gather(*(branch(100 * i) for i in range(10)))
        report["turns"] += 1


def tasks():
    asyncio.new_event_loop().run_until_complete(grow())


def descend(levels):
    if levels:
        return descend(levels - 1)
    return sum(range(100))


def recursion():
    while not ends:
        descend(DEEP)
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            descend(SHALLOW)
        report["turns"] += 1


programs = {"code": code, "threads": threads, "tasks": tasks, "recursion": recursion,
            "cached": cached}
program = programs[sys.argv[1]]
report["max_threads"] = {threads: 1 + NR_THREADS, cached: 2 + NR_THREADS}.get(program, 1)
signal.signal(signal.SIGTERM, end)
ready.announce(thread_state=thread_state())
program()
print(json.dumps(report), flush=True)
