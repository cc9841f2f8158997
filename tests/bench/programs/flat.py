# SPDX-License-Identifier: MIT
"""One hot loop without any call, at the depth that argv gives.

Possible stack: <module>; recurse (DEPTH times); flat.
"""
import sys

import ready


def flat():
    ready.announce()
    total = 0
    while True:
        for i in (1, 2, 3, 4, 5, 6, 7, 8):
            total = (total + i * i) & 0xFFFF


def recurse(levels):
    if levels > 1:
        recurse(levels - 1)
    else:
        flat()


sys.setrecursionlimit(100000)
recurse(int(sys.argv[1]))
