# SPDX-License-Identifier: MIT
"""The table: every sampler at every rate on every program, held against the truth."""
import collections
import time

from bench import quiet, say
from bench.processes import SETTLE_S, running
from bench.rivals import rivals_of
from bench.rows import make_row
from bench.samplers import IDLE_SECONDS, RATES, Pysample, sleep_cost, take_truth

SLEEP_SECONDS = 0.4
START_S = 0.1  # of a sampler, about
STOP_S = 0.0015  # of the truth, about


class Turns:
    """All runs on one process."""

    def __init__(self, tools, target, options):
        self.tools, self.target, self.options = tools, target, options
        self.runs = collections.defaultdict(list)
        self.truths = []
        self.sleep_us = {}

    def look_at_truth(self):
        self.truths.append(take_truth(self.tools, self.target, self.options.stops,
                                      self.options.truth_seconds))

    def run(self, sampler, rate):
        try:
            self.runs[rate, sampler].append(
                sampler.run(self.target, RATES[rate], self.options.seconds_at(rate)))
        except RuntimeError as error:
            say("no figures: %s" % error)

    def run_all(self, samplers):
        """A, B, and in the next turn B, A: what drifts hits both. Truth before and after."""
        self.look_at_truth()
        for turn in range(self.options.turns_of(self.target.interpreter.minor)):
            for rate in self.options.rates:
                for sampler in samplers[::1 if turn % 2 == 0 else -1]:
                    if turn == 0 or sampler.every_turn:
                        self.run(sampler, rate)
            self.look_at_truth()

    def sleep_loop(self):
        for rate in self.options.rates:
            if RATES[rate]:
                self.sleep_us[rate] = sleep_cost(self.tools, self.target, RATES[rate],
                                                 SLEEP_SECONDS)

    def rows(self, samplers, load):
        return [make_row(self.target, rate, sampler, self.runs[rate, sampler], self.truths,
                         self.sleep_us.get(rate), load)
                for rate in self.options.rates for sampler in samplers
                if self.runs[rate, sampler]]


def tell_wrong_truth(turns):
    bad = sum(not turns.target.program.can_have(names)
              for truth in turns.truths for names in truth)
    if bad:
        say("%d stacks of the truth about %s are impossible" % (bad, turns.target.program.name))


def measure_program(tools, interpreter, program, samplers, options):
    """The rows of one process."""
    load = quiet.wait(options.anyway)
    with running(interpreter, program) as target:
        for sampler in samplers:
            sampler.learn_start_cost(target)
        turns = Turns(tools, target, options)
        turns.run_all(samplers)
        turns.sleep_loop()
    tell_wrong_truth(turns)
    return turns.rows(samplers, load)


def samplers_for(tools, interpreter, rival_runs):
    return [Pysample(tools.pysample)] + rivals_of(interpreter, rival_runs)


def unit(interpreter, program):
    return "%s %s" % (interpreter.minor, program.name)


def estimate_s(interpreters, rival_runs, tools, options, done):
    """How long it will take, about."""
    total_s = 0.0
    for interpreter in interpreters.values():
        samplers = samplers_for(tools, interpreter, rival_runs)
        turns = options.turns_of(interpreter.minor)
        runs_s = sum((turns if sampler.every_turn else 1) *
                     (sampler.seconds_of(options.seconds_at(rate)) + sampler.overhead_s)
                     for sampler in samplers for rate in options.rates)
        nr_programs = sum(unit(interpreter, one) not in done for one in options.programs)
        total_s += nr_programs * (runs_s + (turns + 1) * options.stops * STOP_S + SETTLE_S
                                  + 2 * SLEEP_SECONDS + 2 * IDLE_SECONDS + quiet.LOOK_S + START_S)
    return total_s


def measure(tools, interpreters, rival_runs, options, results):
    """Adds to the results, a program at a time."""
    begin = time.monotonic()
    expected_s = estimate_s(interpreters, rival_runs, tools, options, results.done)
    say("about %.0f minutes" % max(expected_s / 60, 1))
    for interpreter in interpreters.values():
        samplers = samplers_for(tools, interpreter, rival_runs)
        for program in options.programs:
            if unit(interpreter, program) in results.done:
                continue
            say("CPython %s, %s (%.0f of %.0f min)" % (
                interpreter, program.name, (time.monotonic() - begin) / 60, expected_s / 60))
            try:
                rows = measure_program(tools, interpreter, program, samplers, options)
            except RuntimeError as error:
                say("no figures for %s: %s" % (program.name, error))
                continue
            results.add(unit(interpreter, program), rows)
