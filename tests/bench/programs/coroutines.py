# SPDX-License-Identifier: MIT
"""Two coroutines that take turns for ever; each awaits another one.

Two functions resume them, whose frames use the same memory in turn.
Possible stacks: <module>; alternate, then the beginning of send_a; outer_a;
inner_a; leaf_a (or pause), or the same of b.
"""
import types

import ready


@types.coroutine
def pause():
    yield


def leaf_a():
    n = 0
    while n < 8:
        n += 1


def leaf_b():
    n = 0
    while n < 8:
        n += 1


async def inner_a():
    while True:
        leaf_a()
        await pause()


async def inner_b():
    while True:
        leaf_b()
        await pause()


async def outer_a():
    await inner_a()


async def outer_b():
    await inner_b()


def send_a(coroutine):
    coroutine.send(None)


def send_b(coroutine):
    coroutine.send(None)


def alternate():
    a = outer_a()
    b = outer_b()
    ready.announce()
    while True:
        send_a(a)
        send_b(b)


alternate()
