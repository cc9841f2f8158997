# SPDX-License-Identifier: MIT
"""As many threads as argv gives: one calls functions of a microsecond for ever, the others
wait for a lock that is never released.

Possible stacks of the first: <module>; recurse (10 times); calls, then nothing, leaf_a,
leaf_b, or leaf_b; leaf_a. Of the others: those of waiting_threads.py.
"""
import sys

import ready
import waiting_threads


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


waiting_threads.start_threads(int(sys.argv[1]) - 1)
recurse(10)
