# SPDX-License-Identifier: MIT
"""Hardly anything but calls: a small tree of functions, walked for ever."""
import sys

import ready


def node(depth):
    if depth == 0:
        return 1
    return left(depth - 1) + right(depth - 1)


def left(depth):
    return node(depth)


def right(depth):
    return node(depth)


def descend(levels):
    """Calls the tree as deep in the stack as argv says."""
    if levels:
        return descend(levels - 1)
    while True:
        node(6)


ready.announce()
descend(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
