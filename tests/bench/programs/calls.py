# SPDX-License-Identifier: MIT
"""Call-heavy: functions of a microsecond or two, at the depth that argv gives.

Possible stacks: <module>; recurse (DEPTH times); calls, then nothing, leaf_a,
leaf_b, or leaf_b; leaf_a.
"""
import sys

import ready


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


sys.setrecursionlimit(100000)
recurse(int(sys.argv[1]))
