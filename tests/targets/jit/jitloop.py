# SPDX-License-Identifier: MIT
"""A Python loop and nothing else, which CPython's JIT compiles if it is on. Half of the time an
exception is being handled."""
import ready


def loop(count):
    total = 0
    for number in range(count):
        first = number * 3
        second = first ^ 5
        third = second & 255
        total += third
    return total


def main():
    while True:
        loop(100000)
        try:
            raise ValueError
        except ValueError:
            loop(100000)


ready.announce()
main()
