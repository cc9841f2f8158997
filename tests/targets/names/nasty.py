# SPDX-License-Identifier: MIT
"""Functions, files and threads whose names mean something to one format or another; 3.8 and newer.

Each name belongs to two functions, in two files, one of which calls the other. Some work and
some sleep. The report has the names: {"functions": [[qualname, path], ...],
"threads": {tid: name}}.
"""
import gc
import sys
import threading
import time

import ready
from nasty_names import NAMES, PATHS, THREADS

LEAF = """
def leaf(seconds):
    end = clock() + seconds
    turns = 0
    while clock() < end:
        turns += 1
    return turns
"""

REST = """
def rest(seconds):
    pause(
        seconds)
"""

CALLER = """
def caller(callee, *rest):
    result = callee(*rest)
    return result
"""

RECURSIVE = """
def down(depth, callee, *rest):
    if depth:
        return down(depth - 1, callee, *rest)
    return callee(*rest)
"""

INDIRECT = """
def there(depth, callee, *rest):
    return back(depth, callee, *rest)
def back(depth, callee, *rest):
    if depth:
        return there(depth - 1, callee, *rest)
    return callee(*rest)
"""


def define(source, path, name=None):
    """A function that seems to come from the file path, renamed to name."""
    scope = {"clock": time.monotonic, "pause": time.sleep}
    exec(compile(source, path, "exec"), scope)
    function = scope[source.partition("def ")[2].partition("(")[0]]
    if name is not None:
        names = {"co_name": name}
        if sys.version_info >= (3, 11):
            names["co_qualname"] = name
        function.__code__ = function.__code__.replace(**names)
    return function


def pairs(body, shift):
    """For every name, a caller in one file and a function with that body in another."""
    for number, name in enumerate(NAMES):
        paths = PATHS[number % len(PATHS)], PATHS[(number + shift) % len(PATHS)]
        yield define(CALLER, paths[0], name), define(body, paths[1], name)


class Circle:
    """Garbage that runs Python code when it is collected."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        sum(range(3000))


def collect():
    heap = [[number] for number in range(100000)]
    for _ in range(3):
        Circle()
        gc.collect()
    return heap


def as_module(path, seconds):
    exec(compile("leaf(seconds)", path, "exec"), {"leaf": (lambda s: LEAVES[0][1](s)),
                                                  "seconds": seconds})


LEAVES = list(pairs(LEAF, 1))
RESTS = list(pairs(REST, 3))
DOWN = define(RECURSIVE, "/srv/recursive;.py")
THERE = define(INDIRECT, "/srv/indirect <i>.py")


def work():
    for caller, leaf in LEAVES:
        caller(leaf, 0.004)
    for path in PATHS:
        as_module(path, 0.004)
    DOWN(5, LEAVES[1][1], 0.01)
    DOWN(300, LEAVES[2][1], 0.01)
    THERE(4, DOWN, 3, LEAVES[3][1], 0.01)
    collect()
    handle()


def handle():
    try:
        raise ValueError
    except ValueError:
        LEAVES[4][1](0.01)


def idle(first):
    for caller, rest in RESTS[first:] + RESTS[:first]:
        caller(rest, 0.004)


def forever(tids, number, name, function, *args):
    tids[ready.native_id()] = name
    begun.wait()
    while True:
        function(*args)
        # One thread has another name now and then, and gets its own back.
        if number == 0:
            threading.current_thread().name = "renamed;\u2028" if function is idle else name
            function(*args)
            threading.current_thread().name = name


begun = threading.Barrier(len(THREADS) + 1)
tids = {}
for number, name in enumerate(THREADS):
    thread = threading.Thread(target=forever, daemon=True, args=(
        (tids, number, name) + ((work,) if number == 1 else (idle, 9 * number))))
    thread.name = name
    thread.start()
begun.wait()
ready.announce(threads=tids, functions=sorted(
    {(function.__code__.co_name, function.__code__.co_filename)
     for pair in LEAVES + RESTS for function in pair}))
while True:
    work()
