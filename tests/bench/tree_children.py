# SPDX-License-Identifier: MIT
"""How many children that soon end have no sample, of a thousand that each work for 20 ms, and how
many pysample says that it missed.
"""
import collections
import dataclasses
import os
import re

import support

from bench import machine_load, recordings, say
from bench.catalogue import tree
from bench.processes import folder_of_programs
from bench.report import print_table, spread
from bench.stacks import percent

PROGRAM = tree("children-1000-20")
MOST_RUNS, QUICK_RUNS = 5, 3
MAX_MISSED_PERCENT = 1
REPORTED = re.compile(r"(?:up to )?(\d+) process(?:es)? (?:ended before (?:it|they) could be read"
                      r"|came and went unseen)")


@dataclasses.dataclass
class Run:
    nr_children: int
    nr_missed: int  # without a sample
    nr_reported: int  # by -v

    @property
    def missed_percent(self):
        return percent(self.nr_missed, self.nr_children)


def nr_reported(text):
    return sum(map(int, REPORTED.findall(text)))


def measure_once(tools, interpreter, engine):
    with folder_of_programs(interpreter) as (outside, inside):
        recording = recordings.Recording(os.path.join(outside, "tree.pysample"))
        said = recordings.run(tools, PROGRAM.command(interpreter, inside), recording, "-s",
                              "--engine", engine)
        children = set(map(int, support.read(os.path.join(outside, "children")).split()))
        sampled = {sample.pid for sample in recording.samples(tools)}
    return Run(len(children), len(children - sampled), nr_reported(said))


def measure(tools, interpreter, args):
    """{engine: [Run]}"""
    found = collections.defaultdict(list)
    say("CPython %s, children that soon end" % interpreter)
    for turn in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
        machine_load.wait_until_quiet(args.anyway)
        for engine in args.engines[::1 if turn % 2 == 0 else -1]:
            found[engine].append(measure_once(tools, interpreter, engine))
    return found


def print_rows(interpreter, found):
    print("\n### Children that work for %d ms, CPython %s: run -s\n"
          % (PROGRAM.second, interpreter.version))
    print_table(("engine", "children", "without a sample", "%", "aim", "reported as missed"), 1,
                [(engine, str(PROGRAM.argument), spread([run.nr_missed for run in runs], 0),
                  spread([run.missed_percent for run in runs], 1, MAX_MISSED_PERCENT),
                  "≤ %g" % MAX_MISSED_PERCENT, spread([run.nr_reported for run in runs], 0))
                 for engine, runs in found.items()])
