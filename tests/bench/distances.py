# SPDX-License-Identifier: MIT
"""How far a profile is from the truth, and how far apart two truths are by chance alone.

Truth and profile are taken in many short windows, in turns, so that drift affects both. The
windows of the truth are split into two heaps at random, again and again. The distance between the
heaps is the floor; the distance of the profile from one of them is compared with it. All three
have the same number of stacks, so that chance has the same part in both distances.
"""
import collections
import dataclasses
import itertools
import random
import statistics

from bench.stacks import thread_of, without_thread

NR_DRAWS = 40
SEED = 1  # the same windows give the same figures

# {kind of distance: names -> the part of them that is compared}
KINDS = {"self": lambda names: without_thread(names)[-1:],
         "pair": lambda names: without_thread(names)[-2:],
         "whole": without_thread,
         "thread": thread_of}


@dataclasses.dataclass
class Distance:
    """All in percent."""
    profile: float
    floor: float
    floor_low: float  # 95 % of the draws lie between these
    floor_high: float


def total_variation_percent(one, other):
    """The total variation distance of two Counters; None if one is empty."""
    if not one.total() or not other.total():
        return None
    return 50 * sum(abs(one[key] / one.total() - other[key] / other.total())
                    for key in one.keys() | other.keys())


def chance_percent(truth, nr_samples):
    """The distance that nr_samples independent looks have from the truth, a Counter, on average;
    None if there is nothing to look at."""
    chance, keys, weights = random.Random(SEED), list(truth), list(truth.values())
    if not nr_samples or not truth.total():
        return None
    return statistics.mean(
        total_variation_percent(truth, collections.Counter(
            chance.choices(keys, weights, k=nr_samples))) for _ in range(NR_DRAWS))


class Numbering:
    """Numbers for stacks, so that a thousand names are hashed once and not in every draw."""

    def __init__(self):
        self.stacks = []
        self.numbers = {}

    def number(self, names):
        if names not in self.numbers:
            self.numbers[names] = len(self.stacks)
            self.stacks.append(names)
        return self.numbers[names]

    def windows(self, windows):
        """The windows as lists of numbers."""
        return [[self.number(names) for names, count in window.items() for _ in range(count)]
                for window in windows]

    def parts(self, part_of):
        """For each number the number of its part; stacks with the same part have the same one."""
        numbers = {}
        return [numbers.setdefault(part_of(names), len(numbers)) for names in self.stacks]


def heap(windows):
    return list(itertools.chain.from_iterable(windows))


def some(stacks, size, chance):
    return stacks if len(stacks) == size else chance.sample(stacks, size)


def draw(truths, profiles, chance):
    """Three lists with the same number of stacks: two of the truth, one of the profile. None if
    there are no stacks."""
    truths, profiles = chance.sample(truths, len(truths)), chance.sample(profiles, len(profiles))
    middle = len(truths) // 2
    one, other = heap(truths[:middle]), heap(truths[middle:])
    size = min(len(one), len(other))
    profile = heap(profiles[:len(profiles) // 2])
    if len(profile) < size:
        profile = heap(profiles)
    size = min(size, len(profile))
    if not size:
        return None
    return [some(stacks, size, chance) for stacks in (one, other, profile)]


def between(values, low, high):
    """The low and the high quantile of the values."""
    ordered = sorted(values)
    return tuple(ordered[round(part * (len(ordered) - 1))] for part in (low, high))


def measure(truths, profiles):
    """{kind: Distance} of windows, which are Counters of stacks. All are None if there are too few
    windows; that of threads is None if some stack does not name its thread."""
    have_threads = all(thread_of(names) for window in truths + profiles for names in window)
    kinds = [kind for kind in KINDS if have_threads or kind != "thread"]
    numbering = Numbering()
    truths, profiles = numbering.windows(truths), numbering.windows(profiles)
    parts = {kind: numbering.parts(KINDS[kind]) for kind in kinds}
    found = {kind: ([], []) for kind in kinds}
    chance = random.Random(SEED)
    for _ in range(NR_DRAWS):
        drawn = draw(truths, profiles, chance)
        if not drawn:
            return dict.fromkeys(KINDS)
        for kind in kinds:
            one, other, profile = (collections.Counter(map(parts[kind].__getitem__, stacks))
                                   for stacks in drawn)
            found[kind][0].append(total_variation_percent(one, profile))
            found[kind][1].append(total_variation_percent(one, other))
    return dict.fromkeys(KINDS) | {
        kind: Distance(statistics.mean(profile), statistics.mean(floor),
                       *between(floor, 0.025, 0.975))
        for kind, (profile, floor) in found.items()}
