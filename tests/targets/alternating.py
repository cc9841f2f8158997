# SPDX-License-Identifier: MIT
"""Two chains of calls that take turns, a microsecond or two each, for ever.

A stack is possible only if it is the beginning of one chain: a stack that mixes the chains or
lacks a link never existed. With the argument "generators" the links 1 to 3 are generators, made
anew for each turn and run by a for loop, by yield from, and by C. With "coroutines" the links 1
and 2 are coroutines, made once for each thread. The second argument is the number of steps that a
leaf takes, 25 to 50 ns each.
"""
import sys
import types
import _thread

import ready

LEAF_STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 40  # a microsecond or so


def a000():
    a001()


def a001():
    a002()


def a002():
    a003()


def a003():
    a004()


def a004():
    a005()


def a005():
    n = 0
    while n < LEAF_STEPS:
        n += 1


def b000():
    b001()


def b001():
    b002()


def b002():
    b003()


def b003():
    b004()


def b004():
    b005()


def b005():
    n = 0
    while n < LEAF_STEPS:
        n += 1


def generator_a000():
    for _ in generator_a001():
        pass


def generator_a001():
    yield from generator_a002()


def generator_a002():
    yield list(generator_a003())


def generator_a003():
    yield a004()
    yield a004()


def generator_b000():
    for _ in generator_b001():
        pass


def generator_b001():
    yield from generator_b002()


def generator_b002():
    yield list(generator_b003())


def generator_b003():
    yield b004()
    yield b004()


@types.coroutine
def pause():
    yield


async def coroutine_a001():
    await coroutine_a002()


async def coroutine_a002():
    while True:
        a005()
        await pause()


async def coroutine_b001():
    await coroutine_b002()


async def coroutine_b002():
    while True:
        b005()
        await pause()


OWN = _thread._local()  # per thread


def send_a000():
    OWN.chain_a.send(None)


def send_b000():
    OWN.chain_b.send(None)


def alternate(first, second):
    while True:
        first()
        second()


def own_chains():
    if sys.argv[1:2] == ["generators"]:
        return generator_a000, generator_b000
    if sys.argv[1:2] == ["coroutines"]:
        OWN.chain_a, OWN.chain_b = coroutine_a001(), coroutine_b001()
        return send_a000, send_b000
    return a000, b000


if __name__ == "__main__":
    chains = own_chains()
    ready.announce()
    alternate(*chains)
