# SPDX-License-Identifier: MIT
"""One row of the table: a sampler at a rate, on a program under a version."""
import collections
import dataclasses

from bench import distances, stacks
from bench.estimates import median, ratio


@dataclasses.dataclass
class Row:
    """A value that is not known is None."""
    python: str
    program: str
    rate: str
    sampler: str
    stacks_per_s: float
    ticks_per_s: float
    cpu_us_per_stack: float | None
    sleep_ratio: float | None  # CPU time of a tick / that of a wake of a loop that sleeps
    lost_percent: float
    lost_percents: dict | None  # {reason: share of the stacks tried}
    impossible_percent: float
    distances: dict  # {kind: distances.Distance as a dict, or None}, of distances.KINDS
    reads_per_tick: float | None
    sleeps_per_tick: float | None
    clock_reads_per_tick: float | None
    late_percent: float | None
    p99_late_us: float | None
    rss_mib: float
    waited_percent: float | None
    target_waited_percent: float | None
    load: float  # cores that were busy with other work just before
    stolen_percent: float | None  # of the time of all cores, which the host gave to others
    samples: int
    stops: int
    condition: str = ""  # the unusual condition, if any

    def distance(self, kind, part):
        """None if it was not measured."""
        found = (self.distances or {}).get(kind)
        return found and found[part]

    def excess(self, kind):
        """How much farther from the truth it is than by chance alone, in percent."""
        profile, floor = self.distance(kind, "profile"), self.distance(kind, "floor")
        return None if profile is None else profile - floor

    self_percent = property(lambda self: self.distance("self", "profile"))
    self_floor = property(lambda self: self.distance("self", "floor"))
    pair_percent = property(lambda self: self.distance("pair", "profile"))
    pair_floor = property(lambda self: self.distance("pair", "floor"))
    whole_percent = property(lambda self: self.distance("whole", "profile"))
    whole_floor = property(lambda self: self.distance("whole", "floor"))
    thread_percent = property(lambda self: self.distance("thread", "profile"))
    thread_floor = property(lambda self: self.distance("thread", "floor"))
    self_excess = property(lambda self: self.excess("self"))
    whole_excess = property(lambda self: self.excess("whole"))
    thread_excess = property(lambda self: self.excess("thread"))


def sums(runs, field):
    """The sum of a field over the runs; None if it is unknown for one."""
    values = [getattr(run, field) for run in runs]
    return None if None in values else sum(values)


def per_tick(runs, field):
    return ratio(sums(runs, field), sums(runs, "ticks"))


def cpu_us_per(run, field, start_cpu_s):
    return ratio(max(run.cpu_s - start_cpu_s, 0) * 1e6, getattr(run, field))


def lost_percents(runs, tried):
    """{reason: %} of the reasons that occurred; None if the sampler does not report them."""
    if any(run.lost is None for run in runs):
        return None
    lost = sum((collections.Counter(run.lost) for run in runs), collections.Counter())
    return {reason: stacks.percent(count, tried) for reason, count in lost.items()}


def correctness(runs, truths, program, max_frames):
    """What the stacks of all runs show, compared with the truth."""
    seen = stacks.pooled(run.stacks for run in runs)
    found = distances.measure([stacks.working(one, program) for one in truths],
                              [stacks.working(run.stacks, program) for run in runs])
    return {
        "impossible_percent": stacks.impossible_percent(seen, program, max_frames),
        "distances": {kind: one and dataclasses.asdict(one) for kind, one in found.items()},
        "samples": seen.total(),
        "stops": stacks.working(stacks.pooled(truths), program).total(),
    }


def cost(runs, start_cpu_s, sleep_us):
    cpu_us = median(cpu_us_per(run, "ticks", start_cpu_s) for run in runs)
    return {
        "cpu_us_per_stack": median(cpu_us_per(run, "complete", start_cpu_s) for run in runs),
        "sleep_ratio": ratio(cpu_us, sleep_us),
        "reads_per_tick": per_tick(runs, "reads"),
        "sleeps_per_tick": per_tick(runs, "sleeps"),
        "clock_reads_per_tick": per_tick(runs, "clock_reads"),
        "rss_mib": max(run.rss_kib for run in runs) / 1024,
    }


def make_row(target, rate, sampler, runs, truths, sleep_us, load, stolen_percent, condition=""):
    """sleep_us: CPU time of a wake of the loop that sleeps at that rate, or None."""
    tried, complete, ticks = (sums(runs, field) for field in ("tried", "complete", "ticks"))
    late = sums(runs, "late_ticks")
    return Row(
        python=target.interpreter.version, program=target.program.name, rate=rate,
        sampler=sampler.name,
        stacks_per_s=median(run.complete / run.sampled_s if run.sampled_s else 0 for run in runs),
        ticks_per_s=median(run.ticks / run.sampled_s if run.sampled_s else 0 for run in runs),
        lost_percent=stacks.percent(tried - complete, tried),
        lost_percents=lost_percents(runs, tried), condition=condition,
        late_percent=None if late is None else stacks.percent(late, ticks + late),
        p99_late_us=median(run.p99_late_us for run in runs),
        waited_percent=median(run.waited_percent for run in runs),
        target_waited_percent=median(run.target_waited_percent for run in runs), load=load,
        stolen_percent=stolen_percent,
        **cost(runs, sampler.start_cpu_s, sleep_us),
        **correctness(runs, truths, target.program, sampler.max_frames))
