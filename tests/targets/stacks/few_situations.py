# SPDX-License-Identifier: MIT
"""Parked in a few situations that every CPython since 3.6 has; see parking.py."""
import functools

import parking


def call_over_several_lines(park):
    return dict(
        a=1,
        b=[
            len("something else"),
            park(),
        ],
        c=3,
    )


def recursion(park):
    def down(depth):
        if depth == 0:
            return park()
        return down(depth - 1)

    return down(60)


def c_in_between_twice(park):
    def inner(_):
        return park()

    def outer(_):
        return list(map(inner, [1]))

    return max([1], key=outer)


def generators(park):
    def link(depth):
        if depth:
            yield from link(depth - 1)
        else:
            yield park()

    return [n for n in link(3)]


def coroutines(park):
    async def outer():
        return await inner()

    async def inner():
        return park()

    return outer().send(None)


def class_body(park):
    class Outer:
        class Inner:
            value = park()

    return Outer


def exception_handled(park):
    try:
        {}["missing"]
    except KeyError:
        park()
    finally:
        del park


def decorated_lambda(park):
    @functools.lru_cache()
    def compute(action):
        return (lambda: action())()

    return compute(park)


SITUATIONS = [call_over_several_lines, recursion, c_in_between_twice, generators, coroutines,
              class_body, exception_handled, decorated_lambda]

if __name__ == "__main__":
    parking.main([(function.__name__, function) for function in SITUATIONS],
                 [("no Python frame", parking.park, ())])
