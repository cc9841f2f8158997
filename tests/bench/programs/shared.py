# SPDX-License-Identifier: MIT
"""Two functions take turns to call a third one, which calls a different leaf for each of them.

Possible stacks: <module>; recurse (DEPTH times); alternate, then the beginning of by_a,
shared, leaf_a or of by_b, shared, leaf_b. argv gives how many steps a leaf takes, and DEPTH
(0 if absent), which decides where in a page the frames are.
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
