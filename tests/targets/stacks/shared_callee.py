# SPDX-License-Identifier: MIT
"""Two functions call a third one, which calls a different leaf for each of them."""
import sys

import ready

STEPS = int(sys.argv[1])


def leaf_a():
    for _ in range(STEPS):
        pass


def leaf_b():
    for _ in range(STEPS):
        pass


def shared(leaf):
    leaf()


def by_a():
    shared(leaf_a)


def by_b():
    shared(leaf_b)


ready.announce()
while True:
    by_a()
    by_b()
