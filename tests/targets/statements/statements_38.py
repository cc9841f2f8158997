# SPDX-License-Identifier: MIT
"""What 3.8 was the first to compile; see statements.py."""
from statements import Manager, stated


@stated
def walrus(spot):
    if (value := spot(
            1)) and (
            other := spot()
    ):
        spot()
    while (value :=
           spot(
               value) - 1) >= 0:
        spot()
    return [
        last for _ in [1]
        if (last :=
            spot())
    ], f"""{spot()=}
    {
        spot()=}""", other


@stated
def positional_only(spot):
    def only(
            a, b=
            spot(), /,
            c=spot()):
        return spot(), *[
            spot()], a, b, c

    return only(
        spot())


@stated
def finally_that_goes_on(spot):
    for _ in range(2):
        try:
            with Manager(spot): spot()
            1 // spot(
                0)
        except ZeroDivisionError:
            spot()
        finally:
            continue
    return spot()
