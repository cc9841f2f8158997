# SPDX-License-Identifier: MIT
"""Two functions call a third one in turns, which calls another leaf for each of them.

Possible stacks: <module>; alternate, and then the beginning of by_a, shared, leaf_a or of
by_b, shared, leaf_b. argv tells how many steps a leaf takes.
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


alternate()
