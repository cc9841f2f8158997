# SPDX-License-Identifier: MIT
"""The table: every sampler at every rate on every program, compared with the truth."""
import collections
import concurrent.futures
import functools
import time

from bench import aims, machine_load, plan, say
from bench.conditions import USUAL
from bench.processes import SETTLE_S, running
from bench.profilers import profilers_of
from bench.row import make_row
from bench.samplers import IDLE_SECONDS, RATES, Pysample, sleep_cost, stop_hz, take_truth

SLEEP_SECONDS = 0.4
ATTACH_S = 0.4  # enough for any of our engines to begin
LEAST_TRUTH_S = 0.1
START_S = 0.06  # rough start time of a process that samples the target
STOP_S, STOP_OF_THREAD_S = 0.0001, 0.0001  # rough length of a stop of the truth
MAX_TRIES = 3  # for a unit, if the host takes time from the machine


class Turns:
    """All windows on one process."""

    def __init__(self, tools, target, options):
        self.tools, self.target, self.options = tools, target, options
        self.runs = collections.defaultdict(list)
        self.truths = collections.defaultdict(list)  # by run if they are read meanwhile, else None
        self.sleep_us = {}

    def read_truth(self):
        self.truths[None].append(take_truth(self.tools, self.target, self.options.stops,
                                            self.options.truth_seconds))

    def read_truth_within(self, sampler, rate):
        """Of the time in which the sampler certainly samples."""
        time.sleep(ATTACH_S)
        self.truths[rate, sampler].append(take_truth(
            self.tools, self.target, self.options.stops,
            max(self.options.seconds_at(rate) - ATTACH_S, LEAST_TRUTH_S)))

    def run(self, sampler, rate):
        try:
            self.runs[rate, sampler].append(
                sampler.run(self.target, RATES[rate], self.options.seconds_at(rate)))
        except RuntimeError as error:
            say("no figures: %s" % error)

    def run_with_truth(self, sampler, rate):
        with concurrent.futures.ThreadPoolExecutor() as meanwhile:
            truth = meanwhile.submit(self.read_truth_within, sampler, rate)
            self.run(sampler, rate)
        truth.result()

    def run_all(self, samplers):
        """Truth, A, B, and in the next turn B, A, truth, so that drift affects all."""
        is_meanwhile = self.options.truth_meanwhile
        for turn in range(self.options.turns):
            windows = [] if is_meanwhile else [self.read_truth]
            windows += [
                functools.partial(self.run_with_truth if is_meanwhile else self.run, sampler, rate)
                for rate in self.options.rates_in(turn)
                for sampler in samplers if sampler.runs_in(turn, rate)]
            for window in windows[::1 if turn % 2 == 0 else -1]:
                window()

    def sleep_loop(self):
        for rate in self.options.rates:
            if RATES[rate]:
                self.sleep_us[rate] = sleep_cost(self.tools, self.target, RATES[rate],
                                                 SLEEP_SECONDS)

    def rows(self, samplers, load, stolen_percent, condition):
        return [make_row(self.target, rate, sampler, self.runs[rate, sampler],
                         self.truths[(rate, sampler) if self.options.truth_meanwhile else None],
                         self.sleep_us.get(rate), load, stolen_percent, condition)
                for rate in self.options.rates for sampler in samplers
                if self.runs[rate, sampler]]


def report_impossible_truth(turns):
    bad = sum(not turns.target.program.can_have(names)
              for truths in turns.truths.values() for truth in truths for names in truth)
    if bad:
        say("%d stacks of the truth of %s are impossible" % (bad, turns.target.program.name))


def measure_unit(tools, unit, samplers, options):
    """The rows of one process."""
    load = machine_load.wait_until_quiet(options.anyway)
    with unit.condition.holding(), \
            running(unit.interpreter, unit.program,
                    unit.condition.wrapper + unit.condition.target_wrapper()) as target:
        for sampler in samplers:
            sampler.learn_start_cost(target)
        turns, stolen = Turns(tools, target, options), machine_load.Stolen()
        turns.run_all(samplers)
        turns.sleep_loop()
        stolen_percent = stolen.percent()
    report_impossible_truth(turns)
    return turns.rows(samplers, load, stolen_percent, unit.condition.name)


def measure_undisturbed(tools, unit, samplers, options):
    """The rows of one process: of up to MAX_TRIES, the one from which the host took least time."""
    best = []
    for _ in range(1 if options.anyway else MAX_TRIES):
        rows = measure_unit(tools, unit, samplers, options)
        if not rows:
            break
        best = min(filter(None, (best, rows)), key=lambda found: found[0].stolen_percent)
        if best[0].stolen_percent <= machine_load.MAX_STOLEN_PERCENT:
            break
        say("the host took %.1f %% of the time" % rows[0].stolen_percent)
    return best


def samplers_for(tools, unit, has_profiling_sampling, options):
    engines = unit.condition.engines(options.engines)
    ours = [Pysample(tools.pysample, wrapper=unit.condition.wrapper, engine=engine,
                     turn=(i, len(engines)) if options.takes_turns else (0, 1))
            for i, engine in enumerate(engines)]
    has_others = not options.is_full or (unit.condition == USUAL
                                         and unit.program.name in plan.COMPARED_PROGRAMS)
    return ours + (profilers_of(unit.interpreter, has_profiling_sampling) if has_others else [])


def unit_s(tools, unit, has_profiling_sampling, options):
    """About how long a unit takes."""
    samplers = samplers_for(tools, unit, has_profiling_sampling, options)
    runs_s = sum(sampler.seconds_of(options.seconds_at(rate)) + sampler.overhead_s
                 for turn in range(options.turns) for rate in options.rates_in(turn)
                 for sampler in samplers if sampler.runs_in(turn, rate))
    stop_s = 1 / stop_hz(unit.program) + STOP_S + STOP_OF_THREAD_S * unit.program.nr_threads
    truth_s = min(options.stops * stop_s, options.truth_seconds) + START_S
    return (runs_s + options.turns * truth_s + SETTLE_S + 2 * SLEEP_SECONDS + 2 * IDLE_SECONDS
            + machine_load.MEASURED_S)


def measure(tools, interpreters, has_profiling_sampling, options, results):
    """Add to the results, a unit at a time."""
    units = plan.units(interpreters, options.programs, options.is_full)
    measure_units(tools, units, has_profiling_sampling, options, results)
    if options.is_full:
        near = plan.again(units, lambda unit: aims.is_near_limit(
            results.rows, unit.interpreter.version, unit.program.name))
        measure_units(tools, near, has_profiling_sampling, options, results)


def measure_units(tools, units, has_profiling_sampling, options, results):
    """Measure the units that the results do not have yet."""
    begin = time.monotonic()
    units = [one for one in units if str(one) not in results.done]
    if not units:
        return
    expected_s = sum(unit_s(tools, one, has_profiling_sampling, options) for one in units)
    say("about %.0f minutes" % max(expected_s / 60, 1))
    for unit in units:
        say("CPython %s (%.0f of %.0f min)" % (unit, (time.monotonic() - begin) / 60,
                                               expected_s / 60))
        try:
            rows = measure_undisturbed(
                tools, unit, samplers_for(tools, unit, has_profiling_sampling, options), options)
        except RuntimeError as error:
            say("no figures for %s: %s" % (unit, error))
            continue
        results.add(str(unit), rows)
