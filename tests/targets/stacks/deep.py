# SPDX-License-Identifier: MIT
"""Two chains that take turns of some ms each, below as many calls as argv says, and as deep again.

With a second argument threads come and go meanwhile, up to 100 calls deep. The first line reports
where the main thread's state is (0: unknown).

Possible stacks of the main thread: <module>; trunk (DEPTH times); alternate; then up to DEPTH
times chain_a or chain_b; and below all of these leaf_a or leaf_b.
"""
import sys
import threading
import time

import ready

TURN_S = 0.02


def thread_state():
    try:
        import ctypes
    except ImportError:
        return 0
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get() or 0


def leaf_a():
    n = 0
    while n < 20:
        n += 1


def leaf_b():
    n = 0
    while n < 20:
        n += 1


def chain_a(levels):
    if levels > 1:
        chain_a(levels - 1)
    else:
        end = time.monotonic() + TURN_S
        while time.monotonic() < end:
            leaf_a()


def chain_b(levels):
    if levels > 1:
        chain_b(levels - 1)
    else:
        end = time.monotonic() + TURN_S
        while time.monotonic() < end:
            leaf_b()


def alternate(levels):
    ready.announce(thread_state=thread_state())
    while True:
        chain_a(levels)
        chain_b(levels)


def trunk(left, levels):
    if left > 1:
        trunk(left - 1, levels)
    else:
        alternate(levels)


def worker(depth):
    if depth:
        worker(depth - 1)


def churn():
    depth = 0
    while True:
        threads = [threading.Thread(target=worker, args=(depth % 100,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        depth += 7


sys.setrecursionlimit(100000)
if len(sys.argv) > 2:
    threading.Thread(target=churn, daemon=True).start()
trunk(int(sys.argv[1]), int(sys.argv[1]))
