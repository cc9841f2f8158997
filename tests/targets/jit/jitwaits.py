# SPDX-License-Identifier: MIT
"""A Python loop that waits in C on one of its lines. CPython's JIT compiles it if it is on."""
import time

import ready


def loop():
    total = 0
    for number in range(1 << 40):
        first = number * 3
        second = first ^ 5
        time.sleep(0.0002)
        third = second & 255
        total += third
    return total


ready.announce(line=loop.__code__.co_firstlineno + 5)
loop()
