# SPDX-License-Identifier: MIT
"""Functions of a microsecond or less, called by Python and through C: each is over long before a
look can begin."""
import ready


def add(x):
    return x + 1


def double(x):
    return x * 2


def both(x):
    return add(x) + double(x)


def nested(x):
    return double(add(x))


class Item:
    def work(self, x):
        return both(x) + nested(x)

    def __lt__(self, other):
        return id(self) < id(other)


def numbers(n):
    for i in range(n):
        yield both(i)


def recurse(n):
    return add(n) if n == 0 else recurse(n - 1)


def main():
    items = [Item() for _ in range(10)]
    while True:
        for i in range(50):
            items[0].work(i)
        sum(numbers(20))
        list(map(nested, range(20)))
        sorted(items)
        recurse(10)


ready.announce()
main()
