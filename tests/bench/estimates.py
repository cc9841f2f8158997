# SPDX-License-Identifier: MIT
"""Statistics that make no assumption about distributions."""
import math
import statistics


def median(values):
    """The median of the values that are not None; None if all are."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def chance_below(nr_values, rank):
    """The probability that fewer than rank of nr_values fall below the true median."""
    return sum(math.comb(nr_values, i) for i in range(rank)) / 2 ** nr_values


def median_interval(values, confidence=0.95):
    """(median, low, high): low and high are two of the values. The true median is between them
    with at least that confidence, whatever the distribution is. Both are None if there are too
    few values."""
    ordered = sorted(values)
    rank = 0  # of low from below and of high from above, counted from 1; 0: no interval
    while 2 * chance_below(len(ordered), rank + 1) <= 1 - confidence:
        rank += 1
    if rank == 0:
        return median(ordered), None, None
    return median(ordered), ordered[rank - 1], ordered[-rank]


def ratio(mine, theirs):
    """mine / theirs; None if mine is missing, or theirs is missing or 0."""
    return None if mine is None or not theirs else mine / theirs
