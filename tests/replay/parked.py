# SPDX-License-Identifier: MIT
"""Park threads for a tape: each calls park() somewhere and never returns."""
import functools
import os
import threading
import time

READ_END, WRITE_END = os.pipe()
park = functools.partial(os.read, READ_END, 1)  # a C function: it has no frame


def plain():
    park()


def deep(depth):
    if depth:
        return deep(depth - 1)
    return park()


def numbers():
    yield 1
    park()


def generator_on_top():
    return sum(numbers())


def chain(depth):
    if depth:
        yield from chain(depth - 1)
    else:
        yield park()


def generators_in_the_middle():
    return list(plain() for _ in (1,))


def generator_chain():
    for number in chain(3):
        return number


def called_by_c():
    return sorted([2, 1], key=lambda number: park())


class Made:
    def __init__(self):
        park()


class Dying:
    def __del__(self):
        park()


def lets_die():
    dying = Dying()
    return None


def in_init():
    return Made()


def in_class_body():
    class Body:
        park()


async def waits(depth):
    if depth:
        return await waits(depth - 1)
    return park()


def coroutine():
    waits(3).send(None)


def has_popped(depth):
    """Returns from many calls before it parks, so that popped frames are above its own."""
    if depth:
        has_popped(depth - 1)
    if depth == 9:
        park()


SITUATIONS = (
    plain,
    functools.partial(deep, 150),
    generator_on_top,
    generators_in_the_middle,
    generator_chain,
    called_by_c,
    in_init,
    lets_die,
    in_class_body,
    coroutine,
    functools.partial(has_popped, 9),
)

for situation in SITUATIONS:
    threading.Thread(target=situation, daemon=True).start()
    time.sleep(0.2)  # each thread is parked before the next one starts
print("parked", flush=True)
park()
