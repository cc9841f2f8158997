# SPDX-License-Identifier: MIT
"""Python's own account of stacks with C frames. Under -X perf every Python function is called
through its own trampoline, a C frame whose function CPython writes into a perf map. A stack's
trampolines are its Python frames, found in the same copy of the C stack but in another way. With
--trampolines pysample names them as the map does. Without, it leaves out those whose Python frame
it shows.
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
GAP = "[unknown]"


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
    """A function that reads the map that CPython has written of a target so far. The map is in a
    shared folder and is removed at the end."""
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
    """The names of what runs, outermost first: trampolines and Python frames, in a stack that
    shows no trampoline beside its frame."""
    found = [NAMED.match(label) or PYTHON.match(label) for label in stack]
    return [match.group(1) for match in found if match]


def judge(stacks, perf_map):
    """Count the samples of collapsed stacks that are "right", "with_gap", "wrong", or "without" C
    frames. Also return an example of each wrong stack.

    A trampoline that was called for a frame that does not run yet, or no longer runs, is the
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
        if GAP in stack:
            counts["with_gap"] += number
        elif trampolines == python:
            counts["right"] += number
        else:
            counts["wrong"] += number
            examples.append((trampolines, python))
    return counts, examples


def judge_frames(stacks, perf_map):
    """The same by frame: count the Python frames that are "right", one of the trampolines in
    their order, and "wrong"."""
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
