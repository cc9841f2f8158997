# SPDX-License-Identifier: MIT
"""As calls.py, but writes its number of rounds and its CPU time into a file beside it, which
others map. The number is on both sides of the time; if the two differ, the record is being
written. A second number in argv is the number of threads, of which all others wait.
"""
import mmap
import os
import struct
import sys
import time

import ready
import waiting_threads

RECORD = struct.Struct("=QdQ")
ROUNDS = 64  # between two readings of the clock, which is a system call


def leaf_a():
    total = 0
    for i in (1, 2, 3, 4, 5, 6, 7, 8):
        total += i * i
    return total


def leaf_b():
    return leaf_a() + 1


def calls(page):
    ready.announce()
    number = 0
    while True:
        for _ in range(ROUNDS):
            leaf_b()
            leaf_a()
        number += ROUNDS
        page[:RECORD.size] = RECORD.pack(number, time.process_time(), number)


def recurse(levels, page):
    if levels > 1:
        recurse(levels - 1, page)
    else:
        calls(page)


def map_count():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "work.count")
    with open(path, "wb") as file:
        file.write(bytes(mmap.PAGESIZE))
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), mmap.PAGESIZE)


sys.setrecursionlimit(100000)
if len(sys.argv) > 2:
    waiting_threads.start_threads(int(sys.argv[2]) - 1)
recurse(int(sys.argv[1]), map_count())
