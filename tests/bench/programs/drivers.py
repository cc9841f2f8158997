# SPDX-License-Identifier: MIT
"""Two recursions, twenty deep, that resume one generator in turn: each level does so after the
deeper ones have returned.

Possible stacks: <module>; alternate, then up to 20 times drive_a, followed, if there is at
least one, by the beginning of shared; leaf_a; or the same of b.
"""
import ready


def leaf_a():
    n = 0
    while n < 4:
        n += 1


def leaf_b():
    n = 0
    while n < 4:
        n += 1


def shared():
    leaf = leaf_a
    while True:
        leaf()
        leaf = yield


def drive_a(levels, generator):
    if levels > 1:
        drive_a(levels - 1, generator)
    generator.send(leaf_a)


def drive_b(levels, generator):
    if levels > 1:
        drive_b(levels - 1, generator)
    generator.send(leaf_b)


def alternate():
    generator = shared()
    next(generator)
    ready.announce()
    while True:
        drive_a(20, generator)
        drive_b(20, generator)


alternate()
