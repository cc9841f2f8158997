# SPDX-License-Identifier: MIT
"""Threads that do one thing each, to see how a profiler shows it: states.py NAME...

Prints {"threads": {NAME: tid}}.
"""
import gc
import hashlib
import json
import sys
import threading
import time

DATA = b"x" * (64 << 20)


def spin():
    """Runs Python code, or waits for the GIL."""
    while True:
        sum(range(100))


def sleep():
    while True:
        time.sleep(1000)


def compute():
    """Runs without the GIL, nearly all the time."""
    while True:
        hashlib.sha256(DATA).digest()


def rest(seconds):
    """A busy loop that rests as long as it has worked."""
    while True:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        time.sleep(seconds)


def half():
    rest(0.02)


def make_garbage():
    return [[number] for number in range(300000)]


def collect():
    """Collects garbage of a large heap nearly all the time, and nowhere else."""
    gc.disable()
    heap = make_garbage()
    while heap:
        gc.collect()


class Circle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        handle_slowly()


def finalise():
    """Its garbage runs Python code while it is collected."""
    while True:
        Circle()
        gc.collect()


def handle():
    """Is nearly always in an except block, in a function called from there."""
    while True:
        try:
            raise ValueError
        except ValueError:
            handle_slowly()


def handle_slowly():
    for _ in range(3000):
        sum(range(100))


def handle_none():
    """Has handled an exception, and handles none any more."""
    try:
        raise ValueError
    except ValueError:
        pass
    spin()


def handling_generator():
    while True:
        try:
            raise ValueError
        except ValueError:
            handle_slowly()
        yield


def quiet_generator(inner):
    for _ in inner:
        yield


def handle_in_generator():
    """Only a generator inside a generator handles an exception."""
    for _ in quiet_generator(handling_generator()):
        pass


def handle_around_generator():
    """A generator that handles nothing runs for a function that handles an exception."""
    while True:
        try:
            raise ValueError
        except ValueError:
            for _ in quiet_generator(range(100)):
                handle_slowly()


def tid():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    import ctypes

    return ctypes.CDLL(None).syscall(186)  # gettid


def main(names):
    tids, begun = {}, threading.Barrier(len(names) + 1)

    def begin(name):
        tids[name] = tid()
        begun.wait()
        globals()[name]()

    for name in names:
        threading.Thread(target=begin, args=(name,), daemon=True).start()
    begun.wait()
    print(json.dumps({"threads": tids}), flush=True)
    sleep()


main(sys.argv[1:])
