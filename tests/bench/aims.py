# SPDX-License-Identifier: MIT
"""The aims, and what a run has reached of them."""
import dataclasses
import statistics
import typing

from bench.conditions import AGAIN
from bench.engines import NEED_RIGHTS
from bench.estimates import median
from bench.report import cell, print_table, reasons_text
from bench.samplers import engine_of, is_ours
from bench.work import PerfRecord

EVERY_RATE = ("max", "5 kHz", "1 kHz", "100 Hz")

# Programs whose threads hold the GIL in turn, for 20 to 200 µs (handoff) or 50 to 500 µs (pool).
HANDOVER = ("handoff", "pool")

# {how many frames their stacks have: programs}
SHALLOW, DEEP = "up to 20", "500 and more"
DEPTHS = {SHALLOW: ("calls-10", "chains", "generators"), "100": ("calls-100",),
          DEEP: ("calls-1000", "recursion-1000")}


# In percent: how far whole stacks may be above their floor, and how far above that limit a program
# is measured again.
MAX_EXCESS, MAX_EXCESS_HANDOVER, NEAR_EXCESS = 1, 3, 1


def passes_gil(program):
    return program.partition("-")[0] in HANDOVER


def is_near_limit(rows, version, program):
    """Whether a program exceeds its limit by so little that one run does not decide."""
    limit = MAX_EXCESS_HANDOVER if passes_gil(program) else MAX_EXCESS
    return any(limit < row.whole_excess <= limit + NEAR_EXCESS for row in rows
               if (row.python, row.program) == (version, program) and is_ours(row.sampler)
               and row.rate in ("1 kHz", "100 Hz") and not row.condition
               and row.whole_excess is not None)


@dataclasses.dataclass(frozen=True)
class Reached:
    value: float
    where: str = ""  # which row, if the value is the worst of many


@dataclasses.dataclass(frozen=True)
class Aim:
    what: str
    digits: int
    at_least: bool
    limit: typing.Callable  # Figures -> the aim, or None
    find: typing.Callable  # Figures -> Reached, or None if it was not measured

    def cell(self, figures):
        reached = self.find(figures)
        if reached is None:
            return "–"
        text = cell(reached.value, self.digits) + (" " + reached.where if reached.where else "")
        return text + ("" if self.is_met(reached, figures) else " **no**")

    def is_met(self, reached, figures):
        limit = self.limit(figures)
        if limit is None:
            return True
        return reached.value >= limit if self.at_least else reached.value <= limit

    def limit_text(self, figures):
        """The different aims of these figures."""
        limits = sorted({self.limit(one) for one in figures} - {None})
        return "–" if not limits else ("≥ " if self.at_least else "≤ ") + " / ".join(
            "%g" % limit for limit in limits)


class Figures:
    """The rows of one version, by one engine of pysample."""

    def __init__(self, version, sampler, rows, work):
        self.sampler = sampler
        self.name = " ".join(filter(None, (version, engine_of(sampler))))
        self.rows = [row for row in rows if row.python == version]
        self.work = [row for row in work if row.python == version]

    def ours(self, rates=EVERY_RATE, condition="", programs=None):
        return [row for row in self.rows
                if row.sampler == self.sampler and row.rate in rates
                and (row.condition or "") == condition
                and (programs is None or row.program in programs)]

    def without_handover(self, rate):
        return [row for row in self.ours((rate,)) if not passes_gil(row.program)]

    def with_handover(self):
        return [row for row in self.ours(("1 kHz", "100 Hz")) if passes_gil(row.program)]

    def of_all_runs(self, row, field):
        """The median of all runs, if the program was measured again."""
        runs = [one for condition in AGAIN
                for one in self.ours((row.rate,), condition.name, (row.program,))]
        return median(getattr(one, field) for one in [row] + runs)

    def worst(self, field, rows):
        """The highest value of the rows, and which row has it."""
        found = [(self.of_all_runs(row, field), row) for row in rows
                 if getattr(row, field) is not None]
        if not found:
            return None
        value, row = max(found, key=lambda one: one[0])
        return Reached(value, "(%s, %s)" % (row.program, row.rate))

    def impossible(self):
        """The impossible stacks of all rates together."""
        rows = self.ours()
        nr_stacks = sum(row.samples or 0 for row in rows)
        if not nr_stacks:
            return None
        nr_bad = sum(row.samples * row.impossible_percent / 100 for row in rows)
        return Reached(round(nr_bad), "of %d" % nr_stacks)

    def moved_by_depth(self):
        """How much more of the deep stacks than of the shallow ones is lost as moved, in points."""
        deep, shallow = (self.lost_by_depth(depth, ("1 kHz",)) for depth in (DEEP, SHALLOW))
        if deep is None or shallow is None:
            return None
        return Reached(deep.get("moved", 0) - shallow.get("moved", 0))

    def lost_by_depth(self, depth, rates):
        """{reason: %}, the mean over the programs of that depth; None if none was measured."""
        found = [row.lost_percents for row in self.ours(rates, programs=DEPTHS[depth])
                 if row.lost_percents is not None]
        if not found:
            return None
        return {reason: statistics.mean(one.get(reason, 0) for one in found)
                for reason in sorted(set().union(*found))}

    def work_row(self, program, sampler, rate):
        for row in self.work:
            if (row.program, row.rate, row.sampler) == (program, rate, sampler):
                return row
        return None

    def work_lost(self, program, sampler, rate):
        """(the part of its work that the target does not do, the upper end of its interval)"""
        row = self.work_row(program, sampler, rate)
        if row is None or row.wall_low is None:
            return None
        return 1 - row.wall_ratio, 1 - row.wall_low

    def work_beside_perf(self, program, rate):
        ours, theirs = (self.work_lost(program, sampler, rate)
                        for sampler in (self.sampler, PerfRecord.name))
        if not ours or not theirs or theirs[0] <= 0:
            return None
        return Reached(ours[1] / theirs[0], "(%.1f, at most %.1f, and %.1f %%)" % (
            100 * ours[0], 100 * ours[1], 100 * theirs[0]))

    def sampler_cpu(self, program):
        row = self.work_row(program, self.sampler, "100 Hz")
        return row and Reached(row.sampler_cpu_percent)


def always(limit):
    return lambda figures: limit


def rss_limit(figures):
    """libbpf and what it loads about the kernel take memory."""
    return 10 if engine_of(figures.sampler) in NEED_RIGHTS else 5


AIMS = [
    *(Aim("whole stacks at %s: distance minus floor, %%, worst" % rate, 1, False,
          always(MAX_EXCESS), lambda figures, rate=rate: figures.worst(
              "whole_excess", figures.without_handover(rate)))
      for rate in ("1 kHz", "100 Hz")),
    *(Aim("programs that hand the GIL over: distance minus floor, by %s, worst" % kind, 1, False,
          always(MAX_EXCESS_HANDOVER),
          lambda figures, field=field: figures.worst(field, figures.with_handover()))
      for kind, field in (("function", "self_excess"), ("thread", "thread_excess"),
                          ("whole stack", "whole_excess"))),
    Aim("impossible stacks", 0, False, always(0), Figures.impossible),
    *(Aim("lost %%, worst%s" % (condition and ", " + condition), 2, False, always(limit),
          lambda figures, condition=condition: figures.worst(
              "lost_percent", figures.ours(("1 kHz", "100 Hz"), condition)))
      for condition, limit in (("", None), ("as nobody", 0.5), ("beside busy loops", 3))),
    Aim("moved %, deep minus shallow", 2, False, always(0.5), Figures.moved_by_depth),
    *(Aim("work lost at %s / that of perf record, %s" % (rate, program), 2, False, always(limit),
          lambda figures, program=program, rate=rate: figures.work_beside_perf(program, rate))
      for program, rate, limit in (
          ("work-10", "100 Hz", 2), ("work-10", "1 kHz", 1.7), ("work-100", "100 Hz", 2),
          ("work-1000", "100 Hz", None), ("work-10-64", "100 Hz", None),
          ("work-10-1000", "100 Hz", None))),
    *(Aim("sampler's CPU at 100 Hz, %s, %% of a core" % program, 2, False, always(limit),
          lambda figures, program=program: figures.sampler_cpu(program))
      for program, limit in (("work-10", 0.7), ("work-100", 0.7), ("work-10-64", 1.5),
                             ("work-10-1000", 5))),
    Aim("RSS MiB, worst", 1, False, rss_limit,
        lambda figures: figures.worst("rss_mib", figures.ours())),
]


def print_depths(figures):
    lines = [(depth, rate, one.name, lost) for depth in DEPTHS for rate in ("1 kHz", "100 Hz")
             for one in figures for lost in [one.lost_by_depth(depth, (rate,))]
             if lost is not None]
    if lines:
        print("\n### Lost by depth\n")
        print_table(("frames", "rate", "python", "lost %", "by reason"), 3, [
            (depth, rate, version, cell(sum(lost.values()), 2), reasons_text(lost) or "–")
            for depth, rate, version, lost in lines])


def print_aims(results):
    columns = dict.fromkeys((row.python, row.sampler) for row in results.rows + results.work
                            if is_ours(row.sampler))
    figures = [Figures(*column, results.rows, results.work) for column in columns]
    print_depths(figures)
    measured = [aim for aim in AIMS if any(aim.find(one) for one in figures)]
    if not measured:
        return
    print("\n### Aims and results\n")
    print_table(("", "aim", *(one.name for one in figures)), 2, [
        (aim.what, aim.limit_text(figures))
        + tuple(aim.cell(one) for one in figures) for aim in measured])
