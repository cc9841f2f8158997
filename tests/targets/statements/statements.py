# SPDX-License-Identifier: MIT
"""Statements over several lines, parked once at each call of spot() in them.

The functions call spot() in everything that leaves a mark in a line table. spot(value)
returns value, and each call of it is a situation of its own, see parking.py. This file
has what 3.6 can compile, statements_3N.py what 3.N can. Lines and columns matter, so do
not join lines here.
"""
import ast
import asyncio
import functools
import importlib
import itertools
import sys

FUNCTIONS = []


def stated(function):
    FUNCTIONS.append(function)
    return function


@stated
def literals(spot):
    found = {
        "a": spot(),
        "b": [
            spot(),
            1, spot(
                2),

            (
                spot(),
            ),
        ],
        spot("c"):
            spot(),
        **{
            "d": spot(),
        },
    }
    return [
        *[spot()], {
            spot(),
            1
        }, found[
            spot("a")
        ]]


@stated
def operators(spot):
    if (spot(1) <
            spot(2)
            < spot(3)
            <= 3):
        spot()
    value = (spot()
             + spot()
             * -
             spot())
    value = spot() if \
        spot(0) else \
        spot()
    value = (spot(0)
             or not
             spot() and
             spot())
    value = "text"[
        spot(0):
        spot(2)]
    assert spot(), \
        value
    return (
        spot(),
        value)


@stated
def calls(spot):
    def many(*args, **kwargs):
        spot()
        return many

    many(
        spot(),
        *[spot()],
        key=spot(),
        **{"other":
           spot()}
    )(
        spot(),
    )(
        many(
            spot()), a=many(
            b=spot())
    )
    many(
    )(

        spot)


@stated
def texts(spot):
    value = f"{spot()} {spot()!r:>{spot(3)}}" \
            f"{spot()}"
    value = f"""
    {spot()}
    {
        spot()} {[
            spot()
        ]}
    """
    return "%s %s" % (
        spot(),
        value)


@stated
def functions(spot):
    @spot(lambda function: function)
    @spot(
        lambda function: function
    )
    def decorated(
            a=spot(),
            *,
            b: spot(int) = spot(
                2)) -> spot(
                    int):
        """Its

        text."""
        return spot(
            a)

    decorated()
    (lambda one=spot(): (
        spot(),
        (lambda: (one,
                  spot()))()))()

    @spot(lambda kind: kind)
    class Kind(
            spot(object),
            metaclass=
            spot(type)):
        field: spot(int) = \
            spot()

        @property
        def of_kind(self): return [
            spot()]

    return Kind().of_kind


@stated
def blocks(spot):
    for number in spot(
            range(2)):
        if number: continue
        spot()
    else:
        spot()
    number = 2
    while spot(
            number):
        number -= 1
        try:
            if number:
                continue
            break
        finally:
            spot()
    try:
        with spot(Manager(spot)) as first, \
                spot(
                    Manager(spot)) as second:
            raise spot(KeyError)(
                first, second)
    except (ValueError,
            spot(KeyError)) as error:
        spot()
        error.args = [
            spot(), 1]
    else:
        spot()
    finally:
        spot()
    del first, \
        second
    return number


class Manager:
    def __init__(self, spot):
        self.spot = spot

    def __enter__(self):
        return self.spot()

    def __exit__(self, *_):
        self.spot()


@stated
def returning(spot):
    def within():
        with Manager(spot):
            try:
                for _ in range(3):
                    with Manager(
                            spot):
                        return spot(
                            1)
            finally:
                spot()

    return within()


@stated
def assigned(spot):
    targets = {}
    targets[
        spot("a")
    ] = targets[
        spot("b")] = \
        spot(1)
    targets["a"] += (
        spot()
    )
    first, *(
        rest) = [spot(),
                 spot()]
    del targets[
        spot("a")]
    return first, rest


@stated
def comprehensions(spot):
    return [
        [
            spot()
            for _
            in (
                spot([1]))
            if
            spot()
        ]
        for number
        in [1]
        if spot(
            number
        )
    ], {
        spot("key"):
            spot()
        for _ in spot([1])
    }, list(
        spot()
        for _ in
        spot([1]))


@stated
def generators(spot):
    def inner():
        got = yield (
            spot())
        yield [
            got,
            spot(),
            (yield
             spot())
        ]

    def outer():
        yield from spot(
            inner())
        return (
            spot())

    return list(
        outer())


@stated
def coroutines(spot):
    class Managed:
        async def __aenter__(self):
            return spot()

        async def __aexit__(self, *_):
            spot()

    async def numbers():
        for number in (1,
                       2):
            yield spot(
                number)

    async def waits():
        async with Managed() as first, \
                spot(Managed()):
            async for _ in spot(
                    numbers()):
                spot()
            else:
                spot()
        return [
            number
            async for number in
            numbers()
            if spot()
        ], await (
            asyncio.sleep(
                spot(0))), first

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(
            waits())
    finally:
        loop.close()


OUT_OF_ORDER = "def out_of_order(spot):\n" + "    spot(), [spot()]\n" * 12
LINES_OUT_OF_ORDER = [5, 900, 6, 7, 3, 130, 2, 131, 5000, 4872, 5000, 2]


@stated
def lines_out_of_order(spot):
    """Steps forwards and backwards that take one or more entries of a line table."""
    tree = ast.parse(OUT_OF_ORDER)
    for statement, line in zip(tree.body[0].body, LINES_OUT_OF_ORDER):
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line
    namespace = {}
    exec(compile(tree, "out_of_order.py", "exec"), namespace)
    namespace["out_of_order"](spot)


def count_spots(function):
    calls = []
    function(lambda value=1: (calls.append(1), value)[1])
    return len(calls)


def parked_at(number, function, park):
    calls = itertools.count()

    def spot(value=1):
        if next(calls) == number:
            park()
        return value

    function(spot)


def situations():
    """Every (name, situation) of this version."""
    for minor in (8, 10, 11, 12):
        if sys.version_info >= (3, minor):
            importlib.import_module("statements_3%d" % minor)
    return [("%s, spot %d" % (function.__name__, number),
             functools.partial(parked_at, number, function))
            for function in FUNCTIONS for number in range(count_spots(function))]
