# SPDX-License-Identifier: MIT
"""As many threads as argv says: one calls functions of a microsecond for ever, the others
wait for a lock that is never released.

Possible stacks of the first: <module>; recurse (10 times); calls, and then nothing, leaf_a,
leaf_b, or leaf_b; leaf_a. Of the others: start; descend (9 times); park.
"""
import sys
import _thread
import threading
import time

import ready

started = []


def leaf_a():
    total = 0
    for i in (1, 2, 3, 4, 5, 6, 7, 8):
        total += i * i
    return total


def leaf_b():
    return leaf_a() + 1


def calls():
    ready.announce()
    while True:
        leaf_b()
        leaf_a()


def recurse(levels):
    if levels > 1:
        recurse(levels - 1)
    else:
        calls()


def park(lock):
    started.append(True)
    lock.acquire()


def descend(levels, lock):
    if levels > 1:
        descend(levels - 1, lock)
    else:
        park(lock)


def start(lock):
    descend(9, lock)


def start_others(count):
    lock = threading.Lock()
    lock.acquire()
    threading.stack_size(256 * 1024)
    for _ in range(count):
        _thread.start_new_thread(start, (lock,))  # without frames of threading
    while len(started) < count:
        time.sleep(0.01)
    time.sleep(0.1)  # the last one waits, too


start_others(int(sys.argv[1]) - 1)
recurse(10)
