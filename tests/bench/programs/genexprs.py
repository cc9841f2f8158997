# SPDX-License-Identifier: MIT
"""Two functions take turns for ever; each makes a generator expression and exhausts it.

All the expressions use the same memory, one after the other. Possible stacks:
<module>; alternate, then the beginning of add_a; its expression; leaf_a, or the
same of b.
"""
import ready

NUMBERS = (1, 2, 3, 4)


def leaf_a(number):
    n = 0
    while n < 3:
        n += 1
    return number


def leaf_b(number):
    n = 0
    while n < 3:
        n += 1
    return number


def add_a():
    return sum(leaf_a(number) for number in NUMBERS)


def add_b():
    return sum(leaf_b(number) for number in NUMBERS)


def alternate():
    ready.announce()
    while True:
        add_a()
        add_b()


alternate()
