# SPDX-License-Identifier: MIT
"""The command line of scripts/bench."""
import argparse
import dataclasses
import os

from bench import ROOT
from bench.catalogue import ALL_PROGRAMS, RECORDED, WORKERS, named
from bench.samplers import RARE_RATES, RATES
from bench.surroundings import RIVAL_PYTHON

ALL_PYTHONS = ["3.%d" % minor for minor in range(15, 5, -1)]
NATIVE_PYTHONS = ALL_PYTHONS[:3]  # their trampolines show calls, with frame pointers or without
PROOFS_PYTHONS = ["3.15", "3.11", "3.8"]

# The length of a window: twenty turns give 20,000 samples at 1 kHz and 3,000 at 100 Hz.
SECONDS = {"max": 0.5, "5 kHz": 0.5, "1 kHz": 1.0, "100 Hz": 1.5}
TURNS = 20
QUICK_TURNS = 5
USUAL_RATES = ["5 kHz", "1 kHz", "100 Hz"]
RARE_TURNS = 10  # the rare rates have a window in one turn of this many

STOPS = 1000
TRUTH_SECONDS = 2.0  # a stop of 1000 threads takes long

EPILOGUE = """
what is measured:
  attach   stacks a second, CPU time a stack, what is lost, impossible or in the wrong
           place, of every program at every rate (the default)
  compare  the same of two builds A and B, in turns on one process: what a change does
  start    how long it takes until the first sample, and to look once
  work     how much slower the target is while it is sampled
  formats  what it takes to write each format, to record, and to open the page
  core     how long it takes to say what is in a core file, beside gdb
  native   stacks with C frames: how many are right and whole, and what they cost, beside
           libdw and perf
  proofs   the proofs that a thread stood still, against each other and against a counter
           that it increments, and a million stacks by bpf against the program's text; fails
           if one was wrong
  waiting  the sampler's CPU time beside 1, 64 and 1000 threads that wait, by each engine, with
           and without -n, by wall and by CPU time
  interrupt
           how long the BPF program runs inside an interrupt, and the CPU time of pysample a
           sample, at 20, 100 and 1000 frames
  tick     what the kernel's tick as a clock (--engine tick) tells of programs in step with a
           timer, or beside a neighbour on their CPU, against their own account
  pressure what is lost while the target's pages are paged out, again and again
  show     nothing: it prints the tables of a FILE that --json or --resume has written

examples:
  scripts/bench --quick                                     a first look
  scripts/bench --only calls-100 --python 3.15,3.11 --rate max
  scripts/bench compare build-old build --only recursion-300 --rate 1k --processes 5
  scripts/bench --resume run.json                           2½ hours, and can be stopped

A figure of less than a few per cent between two runs is noise: repeat it, on a machine that
does nothing else. docs/benchmarks.md says what each column means.
"""


@dataclasses.dataclass
class Options:
    what: str
    builds: list
    folder: str
    quick: bool
    anyway: bool
    engine: str | None
    no_build: bool
    programs: list
    pythons: list
    rates: list
    seconds: float | None
    turns: int
    processes: int
    stops: int
    runs: int
    pairs: int
    json: str | None
    resume: str | None
    is_full: bool  # everything is measured
    takes_turns: bool  # each turn uses one engine, so that a run takes no longer with two
    engines: tuple = ()  # those that can be measured here: engines.possible()
    truth_seconds: float = TRUTH_SECONDS

    def seconds_at(self, rate):
        return self.seconds or SECONDS[rate]

    def rates_in(self, turn):
        return [rate for rate in self.rates if rate not in RARE_RATES or turn % RARE_TURNS == 0]


def rate_named(text):
    found = [rate for rate in RATES if rate.replace(" ", "").lower().startswith(text.lower())]
    if len(found) != 1:
        raise argparse.ArgumentTypeError("%r is none of %s" % (text, ", ".join(RATES)))
    return found[0]


def positive(kind):
    def parse(text):
        number = kind(text)
        if not number > 0:
            raise ValueError
        return number
    parse.__name__ = "positive number"
    return parse


def make_parser(description):
    parser = argparse.ArgumentParser(prog="scripts/bench", description=description,
                                     epilog=EPILOGUE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="attach",
                        choices=["attach", "start", "work", "compare", "formats", "core", "native",
                                 "proofs", "waiting", "interrupt", "tick", "pressure", "show"],
                        help="see below (default: attach)")
    parser.add_argument("builds", nargs="*", metavar="BUILD|FILE",
                        help="A and B, with compare; what --json wrote, with show")
    parser.add_argument("--quick", action="store_true",
                        help="fewer programs, fewer turns, %s only: five minutes or so"
                        % RIVAL_PYTHON)
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="of the programs only this one, in all sizes if none is given: "
                        + ", ".join(one.name for one in ALL_PROGRAMS))
    parser.add_argument("--python", metavar="LIST",
                        help="versions (default: 3.15 to 3.6; native: 3.15 to 3.13; proofs: "
                        "3.15, 3.11, 3.8; quick, work, compare, formats, core, waiting, "
                        "interrupt, tick and pressure: %s)" % RIVAL_PYTHON)
    parser.add_argument("--rate", action="append", type=rate_named, metavar="RATE",
                        help="of the rates only this one: max, 5k, 1k, 100 "
                        "(default: all but max)")
    parser.add_argument("--seconds", type=positive(float), metavar="S",
                        help="of each window (default: %s)" % ", ".join(
                            "%g at %s" % (seconds, rate) for rate, seconds in SECONDS.items()))
    parser.add_argument("--turns", type=positive(int), metavar="N",
                        help="windows of each kind on a process, of %s one in %d turns "
                        "(default: %d; quick: %d; compare: 2, formats: 5)"
                        % (" and ".join(RARE_RATES), RARE_TURNS, TURNS, QUICK_TURNS))
    parser.add_argument("--processes", type=positive(int), default=3, metavar="N",
                        help="with compare (default 3)")
    parser.add_argument("--stops", type=positive(int), default=STOPS, metavar="N",
                        help="of the target for the truth, in each window (default %d)" % STOPS)
    parser.add_argument("--runs", type=positive(int), default=40, metavar="N",
                        help="of each program, with start, core and native (default 40); of "
                        "waiting and interrupt no more than a few")
    parser.add_argument("--pairs", type=positive(int), default=25, metavar="N",
                        help="of on and off, with work (default 25)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="FOLDER",
                        help="(default build/)")
    parser.add_argument("--no-build", action="store_true", help="measure what is there")
    parser.add_argument("--json", metavar="FILE", help="write every row, for machines")
    parser.add_argument("--resume", metavar="FILE",
                        help="the same, but go on with a run that was stopped: what is in the "
                        "file is not measured again")
    parser.add_argument("--engine", metavar="NAME",
                        help="of pysample's only this one (default: bpf, where it is allowed, and "
                        "preempt, in turn)")
    parser.add_argument("--anyway", action="store_true",
                        help="measure also if the machine is busy with other work")
    return parser


def choose_programs(asked):
    if asked.only:
        return named(asked.only)
    if asked.what == "work":
        return WORKERS[:1]
    if asked.what == "formats":
        return named(RECORDED)
    return [one for one in ALL_PROGRAMS if one.quick or not asked.quick]


def default_turns(asked):
    few = {"compare": 2, "formats": 5}
    return few.get(asked.what, QUICK_TURNS if asked.quick else TURNS)


def parse(description):
    parser = make_parser(description)
    asked = parser.parse_args()
    if len(asked.builds) != {"compare": 2, "show": 1}.get(asked.what, 0):
        parser.error("compare takes two builds, show a file, nothing else takes any")
    if asked.json and asked.resume:
        parser.error("--resume FILE writes that file; there is no need for --json")
    programs = choose_programs(asked)
    if not programs:
        parser.error("no program has that name")
    few = asked.quick or asked.what in ("work", "compare", "formats", "core", "waiting",
                                        "interrupt", "tick", "pressure")
    every = {"native": NATIVE_PYTHONS, "proofs": PROOFS_PYTHONS}.get(asked.what, ALL_PYTHONS)
    pythons = asked.python.split(",") if asked.python else [RIVAL_PYTHON] if few else every
    return Options(
        asked.what, asked.builds, os.path.abspath(asked.build), asked.quick, asked.anyway,
        asked.engine, asked.no_build, programs, pythons, asked.rate or USUAL_RATES, asked.seconds,
        asked.turns or default_turns(asked), asked.processes, asked.stops,
        asked.runs, asked.pairs, asked.json or asked.resume, asked.resume,
        not asked.only and not asked.quick, not asked.only)
