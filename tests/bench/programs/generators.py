# SPDX-License-Identifier: MIT
"""Two generators that take turns for ever; each delegates to another one.

Possible stacks: <module>; alternate, then the beginning of outer_a;
inner_a; leaf_a or of outer_b; inner_b; leaf_b.
"""
import ready


def leaf_a():
    n = 0
    while n < 8:
        n += 1


def leaf_b():
    n = 0
    while n < 8:
        n += 1


def inner_a():
    while True:
        leaf_a()
        yield


def inner_b():
    while True:
        leaf_b()
        yield


def outer_a():
    yield from inner_a()


def outer_b():
    yield from inner_b()


def alternate():
    a = outer_a()
    b = outer_b()
    ready.announce()
    while True:
        next(a)
        next(b)


alternate()
