# SPDX-License-Identifier: MIT
"""Calls, generators, coroutines, exceptions and finalizers, over and over in one order, for a
test that walks the stack after each machine instruction.

First a line of JSON reports how stacks follow one another, as seen by sys.setprofile: pairs of
stacks, each a list of first lines, outermost first. Each function has its own line. Runs on
CPython 3.6 and newer.
"""
import json
import sys


def leaf(n):
    return n + 1


def branch(n):
    return leaf(n) + leaf(n)


def recurse(n):
    return recurse(n - 1) + 1 if n else leaf(n)


def numbers(n):
    for i in range(n):
        yield leaf(i)


def delegating(n):
    yield from numbers(n)


class Awaited:
    def __await__(self):
        yield 1
        return leaf(1)


async def inner(n):
    await Awaited()
    return leaf(n)


async def outer(n):
    return await inner(n) + await inner(n)


async def asynchronous(n):
    for i in range(n):
        await Awaited()
        yield i


async def collecting(n):
    async for i in asynchronous(n):
        leaf(i)


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def fail(n):
    if n:
        return fail(n - 1)
    raise ValueError(n)


def guarded():
    try:
        fail(2)
    except ValueError:
        leaf(0)
    finally:
        leaf(1)


def catching():
    try:
        yield 1
    except ValueError:
        yield leaf(2)


def thrown_into():
    generator = catching()
    next(generator)
    generator.throw(ValueError())
    generator.close()


class Finalized:
    def __del__(self):
        leaf(3)


def dying():
    Finalized()


def key(n):
    return -n


def through_c():
    return sorted([1, 2], key=key), list(map(leaf, [1, 2])), sum(numbers(2))


class Made:
    def __init__(self):
        self.number = leaf(4)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        leaf(5)

    def __getattr__(self, name):
        return leaf(6)


def with_objects():
    with Made() as made:
        return made.missing + made.number


def abandoned():
    generator = delegating(3)
    next(generator)
    next(generator)


# The frames of each take the places of the other's, which have ended.
def add_one():
    return sum(leaf(i) for i in range(2))


def add_other():
    return sum(key(i) for i in range(2))


def work():
    branch(1)
    add_one()
    add_other()
    recurse(3)
    for _ in delegating(2):
        leaf(7)
    drive(outer(1))
    drive(collecting(2))
    guarded()
    thrown_into()
    dying()
    through_c()
    with_objects()
    abandoned()


def stack_of(frame):
    lines = []
    while frame:
        if frame.f_code is not observe.__code__:
            lines.append(frame.f_code.co_firstlineno)
        frame = frame.f_back
    return tuple(reversed(lines))


def observe():
    """The pairs of stacks that follow one another."""
    pairs = set()
    last = [stack_of(sys._getframe())]

    def profile(frame, event, _):
        if event == "call":
            stack = stack_of(frame)
        elif event == "return":
            stack = stack_of(frame.f_back)
        else:
            return
        pairs.add((last[0], stack))
        last[0] = stack

    sys.setprofile(profile)
    work()
    work()
    sys.setprofile(None)
    return pairs


def main():
    # Specialization and warm-up counters are over before the stacks are observed.
    for _ in range(100):
        work()
    print(json.dumps(sorted(observe())), flush=True)
    while True:
        work()


main()
