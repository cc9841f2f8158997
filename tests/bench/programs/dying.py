# SPDX-License-Identifier: MIT
"""Two functions take turns for ever; each makes an object that dies when the function returns.

The locals of a function die after it has returned, so __del__ is called from its caller.
Possible stacks: <module>; alternate, then nothing, make_a, make_a; __init__, make_a;
work_a, __del__, or __del__; leaf_a; or the same of b.
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


def work_a():
    n = 0
    while n < 8:
        n += 1


def work_b():
    n = 0
    while n < 8:
        n += 1


class DyingA:
    def __init__(self):
        self.number = 1

    def __del__(self):
        leaf_a()


class DyingB:
    def __init__(self):
        self.number = 2

    def __del__(self):
        leaf_b()


def make_a():
    held = DyingA()
    work_a()
    return held.number


def make_b():
    held = DyingB()
    work_b()
    return held.number


def alternate():
    ready.announce()
    while True:
        make_a()
        make_b()


alternate()
