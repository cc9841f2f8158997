# SPDX-License-Identifier: MIT
"""What is aimed at, and what a run has reached of it."""
import dataclasses
import typing

from bench.report import cell, print_table

OURS = "pysample"
THEIRS = "profiling.sampling"
DEPTHS = (10, 100, 1000)


@dataclasses.dataclass(frozen=True)
class Reached:
    value: float
    where: str = ""  # if it is the worst of many


@dataclasses.dataclass(frozen=True)
class Aim:
    what: str
    digits: int
    at_least: bool
    limit: typing.Callable  # minor version as a number -> what is aimed at, or None
    find: typing.Callable  # Figures -> Reached, or None if it was not measured

    def cell(self, figures):
        reached = self.find(figures)
        if reached is None:
            return "–"
        text = cell(reached.value, self.digits) + (" " + reached.where if reached.where else "")
        return text + ("" if self.is_met(reached, figures.minor) else " **no**")

    def is_met(self, reached, minor):
        limit = self.limit(minor)
        if limit is None:
            return True
        return reached.value >= limit if self.at_least else reached.value <= limit

    def limit_text(self, minors):
        """The aims of all these versions."""
        limits = sorted({self.limit(minor) for minor in minors} - {None})
        return "–" if not limits else ("≥ " if self.at_least else "≤ ") + " / ".join(
            "%g" % limit for limit in limits)


class Figures:
    """The rows of one version."""

    def __init__(self, version, rows, work):
        self.version = version
        self.minor = int(version.split(".")[1])
        self.rows = [row for row in rows if row.python == version]
        self.work = [row for row in work if row.python == version]

    def value(self, field, program, rate, sampler=OURS):
        for row in self.rows:
            if (row.program, row.rate, row.sampler) == (program, rate, sampler):
                return getattr(row, field)
        return None

    def one(self, field, program, rate):
        value = self.value(field, program, rate)
        return None if value is None else Reached(value)

    def worst(self, field, rates, file=None):
        """The highest of pysample's rows, and which it is."""
        found = [row for row in self.rows
                 if row.sampler == OURS and row.rate in rates and getattr(row, field) is not None
                 and file in (None, row.program.rpartition("-")[0])]
        if not found:
            return None
        row = max(found, key=lambda row: getattr(row, field))
        return Reached(getattr(row, field), "(%s, %s)" % (row.program, row.rate))

    def times_theirs(self, program):
        ours = self.value("stacks_per_s", program, "max")
        theirs = self.value("stacks_per_s", program, "max", THEIRS)
        return Reached(ours / theirs) if ours and theirs else None

    def work_ratio(self, rate):
        for row in self.work:
            if (row.rate, row.sampler) == (rate, OURS):
                return Reached(row.ratio, "(%s–%s)" % (cell(row.low, 3), cell(row.high, 3)))
        return None


def always(limit):
    return lambda minor: limit


def since_311(limit, before=None):
    return lambda minor: limit if minor >= 11 else before


def distance_limit(minor):
    return {15: 2, 14: 3}.get(minor, 4 if minor >= 11 else None)


EVERY_RATE = ("max", "10 kHz", "1 kHz")
FIXED_RATES = EVERY_RATE[1:]


def of_depth(what, field, limits, digits, at_least):
    return [Aim("%s, depth %d" % (what, depth), digits, at_least, always(limit),
                lambda figures, depth=depth: figures.one(field, "calls-%d" % depth, "max"))
            for depth, limit in zip(DEPTHS, limits)]


AIMS = [
    *of_depth("complete stacks/s", "stacks_per_s", (400e3, 300e3, 60e3), 0, True),
    *(Aim("the same / profiling.sampling's, depth %d" % depth, 1, True, always(limit),
          lambda figures, depth=depth: figures.times_theirs("calls-%d" % depth))
      for depth, limit in zip(DEPTHS, (7, 6, 4))),
    *of_depth("CPU µs/stack", "cpu_us_per_stack", (2.5, 4, 15), 2, False),
    *(Aim("ticks/s, %d threads" % count, 0, True, always(limit),
          lambda figures, count=count: figures.one("ticks_per_s", "threads-%d" % count, "max"))
      for count, limit in ((64, 20e3), (256, 5e3), (1000, 1e3))),
    Aim("lost %, worst", 2, False, since_311(0.5),
        lambda figures: figures.worst("lost_percent", EVERY_RATE)),
    Aim("impossible %, worst to 10 kHz", 3, False, since_311(0.05, 0.5),
        lambda figures: figures.worst("impossible_percent", FIXED_RATES)),
    Aim("impossible %, worst at max", 3, False, since_311(0.1, 0.5),
        lambda figures: figures.worst("impossible_percent", ("max",))),
    Aim("TVD % of calls, worst", 1, False, distance_limit,
        lambda figures: figures.worst("distance_percent", EVERY_RATE, "calls")),
    *(Aim("CPU at %s / a loop that only sleeps" % rate, 2, False, always(1.5),
          lambda figures, rate=rate: figures.one("sleep_ratio", "calls-10", rate))
      for rate in FIXED_RATES),
    *(Aim("the target's work at %s, on / off" % rate, 3, True, always(None),
          lambda figures, rate=rate: figures.work_ratio(rate)) for rate in EVERY_RATE),
    Aim("reads/tick of calls, worst at max", 2, False, since_311(1.05),
        lambda figures: figures.worst("reads_per_tick", ("max",), "calls")),
    Aim("RSS MiB, worst", 1, False, always(5),
        lambda figures: figures.worst("rss_mib", EVERY_RATE)),
]


def print_figures(results):
    versions = list(dict.fromkeys(row.python for row in results.rows + results.work))
    figures = [Figures(version, results.rows, results.work) for version in versions]
    told = [aim for aim in AIMS if any(aim.find(one) for one in figures)]
    if not told:
        return
    print("\n### Aimed at, and reached\n")
    print_table(("", "aimed at", *versions), 2, [
        (aim.what, aim.limit_text([one.minor for one in figures]))
        + tuple(aim.cell(one) for one in figures) for aim in told])
