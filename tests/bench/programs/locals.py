# SPDX-License-Identifier: MIT
"""Two chains of functions with as many locals as argv gives. Each frame fills most of a
data-stack chunk, so that every call begins another one.

Possible stacks: <module>; alternate, then the beginning of outer_a; inner_a; leaf_a, or
the same of b.
"""
import sys

import ready

# A frame also has room for locals that are never assigned.
TEMPLATE = """
def {name}(never=False):
    if never:
        {locals} = never
    n = 0
    while n < 8:
        n += 1
    {callee}()
"""


def leaf_a():
    n = 0
    while n < 8:
        n += 1


def leaf_b():
    n = 0
    while n < 8:
        n += 1


def make(name, callee):
    names = " = ".join("v%d" % i for i in range(int(sys.argv[1])))
    exec(TEMPLATE.format(name=name, callee=callee, locals=names), globals())


def alternate():
    ready.announce()
    while True:
        outer_a()  # noqa: F821
        outer_b()  # noqa: F821


for letter in "ab":
    make("inner_" + letter, "leaf_" + letter)
    make("outer_" + letter, "inner_" + letter)
alternate()
