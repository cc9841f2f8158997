# SPDX-License-Identifier: MIT
"""Two recursions that descend and return in turn, as deep as argv gives.

Possible stacks: <module>; alternate, then up to DEPTH times down_a, or up
to DEPTH times down_b.
"""
import sys

import ready


def down_a(levels):
    if levels > 1:
        down_a(levels - 1)


def down_b(levels):
    if levels > 1:
        down_b(levels - 1)


def alternate(levels):
    ready.announce()
    while True:
        down_a(levels)
        down_b(levels)


sys.setrecursionlimit(100000)
alternate(int(sys.argv[1]))
