# SPDX-License-Identifier: MIT
"""Compares two builds of pysample, alternating on the same processes: what a change does.

Two processes that run the same program spend their time differently, and the machine drifts.
So both builds sample each process in turn (A B, B A, …), between reads of the truth.
"""
import collections
import dataclasses
import os

from bench import machine_load, say
from bench.estimates import median, median_interval, ratio
from bench.processes import running
from bench.report import cell, columns_with_values, print_table
from bench.row import make_row
from bench.samplers import RATES, Pysample, take_truth

@dataclasses.dataclass
class Comparison:
    """One program under one version, at one rate, over all processes."""
    python: str
    program: str
    rate: str
    rows: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    speeds: list = dataclasses.field(default_factory=list)  # stacks/s of B / of A, per turn
    costs: list = dataclasses.field(default_factory=list)  # CPU µs per stack, likewise


def builds(paths, engine):
    """The samplers A and B. RuntimeError if one is not an executable file."""
    found = []
    for letter, path in zip("AB", paths):
        program = os.path.join(path, "pysample") if os.path.isdir(path) else path
        if not os.access(program, os.X_OK):
            raise RuntimeError("%s: no pysample executable there" % path)
        found.append(Pysample(os.path.abspath(program), letter, engine=engine))
    return found


def measure_process(tools, target, samplers, rates, options):
    """{rate: {sampler: runs}}, truths"""
    runs = {rate: {sampler: [] for sampler in samplers} for rate in rates}
    truths = [take_truth(tools, target, options.stops, options.truth_seconds)]
    for turn in range(options.turns):
        for rate in rates:
            for sampler in samplers[::1 if turn % 2 == 0 else -1]:
                runs[rate][sampler].append(
                    sampler.run(target, RATES[rate], options.seconds_at(rate)))
        truths.append(take_truth(tools, target, options.stops, options.truth_seconds))
    return runs, truths


def add_process(comparison, target, samplers, runs, truths, load, stolen_percent):
    for sampler in samplers:
        comparison.rows[sampler.name].append(
            make_row(target, comparison.rate, sampler, runs[sampler], truths, None, load,
                     stolen_percent))
    for a, b in zip(*(runs[sampler] for sampler in samplers)):
        comparison.speeds.append(ratio(b.complete / b.sampled_s, a.complete / a.sampled_s))
        comparison.costs.append(ratio(
            (b.cpu_s - samplers[1].start_cpu_s) / max(b.complete, 1),
            (a.cpu_s - samplers[0].start_cpu_s) / max(a.complete, 1)))


def compare(tools, interpreter, program, samplers, options):
    """[Comparison], one for each rate"""
    found = {rate: Comparison(interpreter.version, program.name, rate) for rate in options.rates}
    for number in range(options.processes):
        load = machine_load.wait_until_quiet(options.anyway)
        say("CPython %s, %s, process %d of %d" % (interpreter, program.name, number + 1,
                                                  options.processes))
        with running(interpreter, program) as target:
            stolen = machine_load.Stolen()
            for sampler in samplers:
                sampler.learn_start_cost(target)
            runs, truths = measure_process(tools, target, samplers, options.rates, options)
            stolen_percent = stolen.percent()
            for rate, comparison in found.items():
                add_process(comparison, target, samplers, runs[rate], truths, load,
                            stolen_percent)
    return list(found.values())


def spread(values, digits):
    """The median, and the range if there is one."""
    known = [value for value in values if value is not None]
    lowest, highest = (cell(find(known, default=None), digits) for find in (min, max))
    middle = cell(median(known), digits)
    return middle if lowest == highest else "%s (%s–%s)" % (middle, lowest, highest)


def interval_text(values):
    middle, low, high = median_interval([value for value in values if value is not None])
    if low is None:
        return cell(middle, 3)
    return "%.3f (%.3f–%.3f)" % (middle, low, high)


def print_comparisons(comparisons, options):
    print("\nA: %s\nB: %s\n" % tuple(options.builds))
    print("%d processes, %d turns each; median (lowest–highest process)\n" % (
        options.processes, options.turns))
    columns = columns_with_values([row for one in comparisons for rows in one.rows.values()
                                   for row in rows])
    print_table(("python", "program", "rate", "build") + tuple(one[0] for one in columns), 4, [
        (one.python, one.program, one.rate, name) + tuple(
            spread([getattr(row, field) for row in rows], digits) for _, field, digits in columns)
        for one in comparisons for name, rows in one.rows.items()])
    print("\nB / A over pairs of runs, median and its 95 % interval:\n")
    print_table(("python", "program", "rate", "pairs", "stacks/s", "CPU/stack"), 3, [
        (one.python, one.program, one.rate, str(len(one.speeds)), interval_text(one.speeds),
         interval_text(one.costs)) for one in comparisons])
