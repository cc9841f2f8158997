# SPDX-License-Identifier: MIT
"""How much of a short script `pysample run` does not see at its beginning and its end: the time
from its first instruction to the first sample after that, and from the last sample to its end.

The script notes both moments by CLOCK_MONOTONIC, which is also the clock of the samples. So do a
child that it forks and one that it starts with subprocess.
"""
import collections
import dataclasses
import os
import statistics

import support

from bench import machine_load, recordings, say
from bench.catalogue import Program, tree
from bench.processes import folder_of_programs
from bench.report import print_table

MOST_RUNS, QUICK_RUNS = 20, 10
RATES = {"default": [], "1 kHz": ["-r", "1000"]}
MAX_UNSEEN_MS = 10


@dataclasses.dataclass(frozen=True)
class Case:
    program: Program
    options: list


ALONE, TREE = "run", "run -s"
CASES = {ALONE: Case(tree("brief-300"), []), TREE: Case(tree("brief-300-children"), ["-s"])}

# {what the script notes: what it is}
KINDS = {"script": "the script", "fork": "forked by it", "subprocess": "started by it"}


@dataclasses.dataclass
class Unseen:
    """In ms, a value for each run."""
    at_begin: list = dataclasses.field(default_factory=list)
    at_end: list = dataclasses.field(default_factory=list)
    nr_without: int = 0  # runs without a sample


def times_in(text):
    """{what: (process id, first instruction, end)}"""
    return {what: tuple(map(int, numbers))
            for what, *numbers in (line.split() for line in text.splitlines())}


def unseen_ms(samples, pid, begin_ns, end_ns):
    """(at the beginning, at the end); None without a sample in between"""
    found = [sample.time_ns for sample in samples
             if sample.pid == pid and begin_ns <= sample.time_ns <= end_ns]
    return ((min(found) - begin_ns) / 1e6, (end_ns - max(found)) / 1e6) if found else None


def measure_once(tools, interpreter, case, *options):
    """{what: (at the beginning, at the end)}"""
    with folder_of_programs(interpreter) as (outside, inside):
        recording = recordings.Recording(os.path.join(outside, "brief.pysample"))
        recordings.run(tools, case.program.command(interpreter, inside), recording, *case.options,
                       *options)
        times = times_in(support.read(os.path.join(outside, "brief.times")))
        samples = recording.samples(tools)
    return {what: unseen_ms(samples, *noted) for what, noted in times.items()}


def add(unseen, one):
    if one is None:
        unseen.nr_without += 1
        return
    unseen.at_begin.append(one[0])
    unseen.at_end.append(one[1])


def measure(tools, interpreter, args):
    """{(command, what, rate, engine): Unseen}"""
    found = collections.defaultdict(Unseen)
    say("CPython %s, a short script" % interpreter)
    for turn in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
        machine_load.wait_until_quiet(args.anyway)
        for command, case in CASES.items():
            for rate, options in RATES.items():
                for engine in args.engines[::1 if turn % 2 == 0 else -1]:
                    for what, one in measure_once(tools, interpreter, case, "--engine", engine,
                                                  *options).items():
                        add(found[command, what, rate, engine], one)
    return found


def worst_text(values):
    """The median and the worst."""
    if not values:
        return "–"
    middle = statistics.median(values)
    return "%.1f (%.1f)%s" % (middle, max(values), " **no**" if middle > MAX_UNSEEN_MS else "")


def print_rows(interpreter, found):
    print("\n### A script of 0.3 s, CPython %s: ms unseen, median (worst)\n" % interpreter.version)
    print_table(("command", "process", "rate", "engine", "runs", "without a sample",
                 "at the beginning", "at the end", "aim"), 4,
                [(command, KINDS[what], rate, engine,
                  str(len(unseen.at_begin) + unseen.nr_without), str(unseen.nr_without),
                  worst_text(unseen.at_begin), worst_text(unseen.at_end), "≤ %d" % MAX_UNSEEN_MS)
                 for (command, what, rate, engine), unseen in sorted(
                     found.items(), key=lambda item: (item[0][0], list(KINDS).index(item[0][1])))])
