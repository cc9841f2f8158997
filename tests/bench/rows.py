# SPDX-License-Identifier: MIT
"""One row of the table: a sampler at a rate, on a program under a version."""
import dataclasses

from bench import stacks
from bench.estimates import median, ratio


@dataclasses.dataclass
class Row:
    """None is what is not known."""
    python: str
    program: str
    rate: str
    sampler: str
    stacks_per_s: float
    ticks_per_s: float
    cpu_us_per_stack: float | None
    cpu_us_per_tick: float | None
    sleep_ratio: float | None  # CPU time of a tick / that of a wake of a loop that sleeps
    lost_percent: float
    impossible_percent: float
    distance_percent: float | None
    floor_percent: float | None
    whole_distance_percent: float | None  # of whole stacks; distance is of (caller, leaf)
    whole_floor_percent: float | None
    drift_percent: float | None
    reads_per_tick: float | None
    sleeps_per_tick: float | None
    clock_reads_per_tick: float | None
    late_percent: float | None
    p99_late_us: float | None
    rss_mib: float
    waited_percent: float | None
    target_waited_percent: float | None
    load: float  # cores that were busy with other work just before
    samples: int
    stops: int


def sums(runs, field):
    """None if a run does not tell."""
    values = [getattr(run, field) for run in runs]
    return None if None in values else sum(values)


def per_tick(runs, field):
    return ratio(sums(runs, field), sums(runs, "ticks"))


def cpu_us_per(run, field, start_cpu_s):
    return ratio(max(run.cpu_s - start_cpu_s, 0) * 1e6, getattr(run, field))



def correctness(seen, truths, program, max_frames):
    """What the stacks of all runs tell, held against the truth."""
    half = len(truths) // 2
    true_pairs = stacks.pairs(stacks.pooled(truths), program)
    pairs = stacks.pairs(seen, program)
    true_whole = stacks.working(stacks.pooled(truths), program)
    whole = stacks.working(seen, program)
    return {
        "impossible_percent": stacks.impossible_percent(seen, program, max_frames),
        "distance_percent": stacks.distance_percent(pairs, true_pairs),
        "floor_percent": stacks.expected_distance_percent(true_pairs, pairs.total()),
        "whole_distance_percent": stacks.distance_percent(whole, true_whole),
        "whole_floor_percent": stacks.expected_distance_percent(true_whole, whole.total()),
        "drift_percent": stacks.distance_percent(
            stacks.pairs(stacks.pooled(truths[:half]), program),
            stacks.pairs(stacks.pooled(truths[half:]), program)),
        "samples": seen.total(),
        "stops": true_pairs.total(),
    }


def cost(runs, start_cpu_s, sleep_us):
    cpu_us = median(cpu_us_per(run, "ticks", start_cpu_s) for run in runs)
    return {
        "cpu_us_per_stack": median(cpu_us_per(run, "complete", start_cpu_s) for run in runs),
        "cpu_us_per_tick": cpu_us,
        "sleep_ratio": ratio(cpu_us, sleep_us),
        "reads_per_tick": per_tick(runs, "reads"),
        "sleeps_per_tick": per_tick(runs, "sleeps"),
        "clock_reads_per_tick": per_tick(runs, "clock_reads"),
        "rss_mib": max(run.rss_kib for run in runs) / 1024,
    }


def make_row(target, rate, sampler, runs, truths, sleep_us, load):
    """sleep_us: CPU time of a wake of the loop that sleeps at that rate, or None."""
    tried, complete, ticks = (sums(runs, field) for field in ("tried", "complete", "ticks"))
    late = sums(runs, "late_ticks")
    return Row(
        python=target.interpreter.version, program=target.program.name, rate=rate,
        sampler=sampler.name,
        stacks_per_s=median(run.complete / run.sampled_s if run.sampled_s else 0 for run in runs),
        ticks_per_s=median(run.ticks / run.sampled_s if run.sampled_s else 0 for run in runs),
        lost_percent=stacks.percent(tried - complete, tried),
        late_percent=None if late is None else stacks.percent(late, ticks + late),
        p99_late_us=median(run.p99_late_us for run in runs),
        waited_percent=median(run.waited_percent for run in runs),
        target_waited_percent=median(run.target_waited_percent for run in runs), load=load,
        **cost(runs, sampler.start_cpu_s, sleep_us),
        **correctness(stacks.pooled(run.stacks for run in runs), truths, target.program,
                      sampler.max_frames))
