# SPDX-License-Identifier: MIT
"""Python's own word on stacks with C frames: under -X perf every Python function is called
through a trampoline of its own, a C frame whose function CPython writes into a perf map. The
trampolines of a stack are its Python frames, told by the same copy of the C stack, but in
another way. pysample calls them what the map does, with --trampolines; without, it leaves out
those whose Python frame it tells.
"""
import collections
import contextlib
import os
import re

# "?? (0x7f12345678)": a C frame in no module.
NOWHERE = re.compile(r"\?\? \(0x([0-9a-f]+)\)$")
NAMED = re.compile(r"py::(.*?):/")
UNNAMED = "[trampoline]"
PYTHON = re.compile(r"(.*) \((/.*\.py):\d+\)$")
HOLE = "[unknown]"


def read_map(path):
    """[(start, end, qualname)] of a perf map."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            start, size, name = line.rstrip("\n").split(" ", 2)
            if name.startswith("py::"):
                begin = int(start, 16)
                found.append((begin, begin + int(size, 16), name[4:].split(":")[0]))
    return found


@contextlib.contextmanager
def map_of(target, interpreter):
    """What reads the map that CPython writes of a target, as far as it is. It lies in a folder of
    everybody's: it is removed in the end."""
    path = "%s/tmp/perf-%d.map" % (interpreter.root, target.pid)
    try:
        yield lambda: read_map(path)
    finally:
        os.unlink(path)


def trampoline_at(perf_map, addr):
    for start, end, name in perf_map:
        if start <= addr < end:
            return name
    return None


def names_of(stack, perf_map):
    """The names of a stack's trampolines, and those of its Python frames, outermost first."""
    trampolines, python = [], []
    for frame in stack:
        nowhere = NOWHERE.match(frame)
        named = NAMED.match(frame)
        if named:
            trampolines.append(named.group(1))
        elif nowhere:
            name = trampoline_at(perf_map, int(nowhere.group(1), 16))
            if name:
                trampolines.append(name)
        elif PYTHON.match(frame):
            python.append(PYTHON.match(frame).group(1))
    return trampolines, python


def activations_of(stack):
    """What runs by either word, outermost first, of a stack in which no trampoline is told beside
    its frame: the names of those that are told, and of Python frames."""
    found = [NAMED.match(label) or PYTHON.match(label) for label in stack]
    return [match.group(1) for match in found if match]


def judge(stacks, perf_map):
    """Of collapsed stacks, Counter: samples that are "right", "holed", "wrong", or "without" C
    frames; "wrong stacks" has an example of each.

    A trampoline that was called for a frame that does not run yet, or any more, is the
    innermost one of its stack and has no frame.
    """
    counts = collections.Counter()
    examples = []
    for stack, number in stacks.items():
        trampolines, python = names_of(stack, perf_map)
        if not trampolines or UNNAMED in stack:
            counts["without"] += number
            continue
        if len(trampolines) == len(python) + 1:
            trampolines = trampolines[:-1]
        if HOLE in stack:
            counts["holed"] += number
        elif trampolines == python:
            counts["right"] += number
        else:
            counts["wrong"] += number
            examples.append((trampolines, python))
    return counts, examples


def judge_frames(stacks, perf_map):
    """The same by frame: Counter of Python frames that are "right", as one of the trampolines in
    that order, and "wrong"."""
    counts = collections.Counter()
    for stack, number in stacks.items():
        trampolines, python = names_of(stack, perf_map)
        if not trampolines or UNNAMED in stack:
            continue
        left = iter(trampolines)
        right = sum(name in left for name in python)
        counts["right"] += number * right
        counts["wrong"] += number * (len(python) - right)
    return counts
