# SPDX-License-Identifier: MIT
"""Python that calls a kernel of numba all the time."""
import numba

import ready


@numba.njit
def kernel(count):
    total = 0
    for number in range(count):
        total = (total * 31 + number) ^ (total >> 3)
    return total


def call_kernel():
    return kernel(1000000)


def repeat():
    for _ in range(100):
        call_kernel()


def main():
    while True:
        repeat()


kernel(1)  # compiles it
ready.announce()
main()
