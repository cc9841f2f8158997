# SPDX-License-Identifier: MIT
"""Statistics that make no assumption about distributions."""
import math
import statistics


def median(values):
    """Of those that are not None; None if all are."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def chance_below(nr_values, rank):
    """That fewer than rank of so many fall below the true median."""
    return sum(math.comb(nr_values, i) for i in range(rank)) / 2 ** nr_values


def median_interval(values, confidence=0.95):
    """(median, low, high): low and high are two of the values, between which the true median
    lies with that confidence at least, whatever the distribution is. None for both if there
    are too few values."""
    ordered = sorted(values)
    rank = 0  # how many values are left out at either end
    while 2 * chance_below(len(ordered), rank + 1) <= 1 - confidence:
        rank += 1
    if rank == 0:
        return median(ordered), None, None
    return median(ordered), ordered[rank - 1], ordered[-rank]


def ratio(mine, theirs):
    """None if there is none."""
    return None if mine is None or not theirs else mine / theirs
