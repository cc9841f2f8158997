# SPDX-License-Identifier: MIT
"""Two functions call a third one in turns, which calls another leaf for each of them.

Possible stacks: <module>; recurse (DEPTH times); alternate, and then the beginning of by_a,
shared, leaf_a or of by_b, shared, leaf_b. argv tells how many steps a leaf takes, and DEPTH
(none: 0), which tells where in a page their frames lie.
"""
import sys

import ready

STEPS = int(sys.argv[1])


def leaf_a():
    n = 0
    while n < STEPS:
        n += 1


def leaf_b():
    n = 0
    while n < STEPS:
        n += 1


def shared(leaf):
    leaf()


def by_a():
    shared(leaf_a)


def by_b():
    shared(leaf_b)


def alternate():
    ready.announce()
    while True:
        by_a()
        by_b()


def recurse(levels):
    if levels > 1:
        recurse(levels - 1)
    else:
        alternate()


if len(sys.argv) > 2:
    recurse(int(sys.argv[2]))
else:
    alternate()
