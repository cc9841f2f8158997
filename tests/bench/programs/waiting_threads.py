# SPDX-License-Identifier: MIT
"""Threads that wait for a lock that is never released: start; descend (9 times); park."""
import _thread
import threading
import time

started = []


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


def start_threads(count):
    """Returns when all of them wait."""
    lock = threading.Lock()
    lock.acquire()
    threading.stack_size(256 * 1024)
    for _ in range(count):
        _thread.start_new_thread(start, (lock,))  # without frames of threading
    while len(started) < count:
        time.sleep(0.01)
    time.sleep(0.1)  # until the last one waits, too
