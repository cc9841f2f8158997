# SPDX-License-Identifier: MIT
"""What 3.10 was the first to compile; see statements.py."""
from statements import Manager, stated


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, spot):
        self.x = 1
        self.spot = spot

    @property
    def y(self):
        return self.spot(2)


@stated
def matches(spot):
    for subject in (
            {"a": [1, 2, 3], "b": 4},
            Point(spot),
            "text",
            None):
        match spot(
                subject):
            case {"a": [1, *rest],
                  **others} if (
                    spot(rest)
                    and others):
                spot()
            case Point(
                    x=0) | Point(
                    1,
                    y=2):
                spot()
            case str(
            ) as text if spot(text): spot(
                text)
            case _: spot()


@stated
def parenthesised_with(spot):
    with (
        Manager(spot) as first,
        spot(
            Manager(spot)),
        Manager(spot),
    ):
        return spot(
            first)
