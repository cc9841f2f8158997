# SPDX-License-Identifier: MIT
"""A key function of sorted(), called through C, that calls two others. Each function is called in
one place only."""
import ready


def inner(n):
    total = 0
    for i in range(n):
        total += i
    return total


def outer(n):
    return inner(n) + 1


def key(n):
    return outer(100 * n)


def main():
    while True:
        sorted([3, 2, 1], key=key)


ready.announce()
main()
