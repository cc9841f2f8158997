# SPDX-License-Identifier: MIT
"""Collects garbage above a hundred calls, and works above one, in turn."""
import gc

import ready

KEPT = [[] for _ in range(5000)]


def work():
    return sum(range(5000))


def collect(depth):
    if depth:
        collect(depth - 1)
    else:
        gc.collect()


def main():
    while True:
        work()
        collect(100)


ready.announce()
main()
