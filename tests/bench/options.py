# SPDX-License-Identifier: MIT
"""The command line of scripts/bench."""
import argparse
import dataclasses
import os

from bench import ROOT
from bench.catalogue import ALL_PROGRAMS, RECORDED, WORKERS, named
from bench.environment import NEWEST_PYTHON
from bench.samplers import RARE_RATES, RATES

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
  attach   stacks per second, CPU time per stack, lost, impossible and misplaced stacks,
           for every program at every rate (the default)
  compare  the same for two builds A and B, in turns on one process: what a change does
  start    the time until the first sample, and for one look
  work     how much slower the target is while it is sampled
  formats  the cost of writing each format, of recording, and of opening the page
  core     the time to report on a core file, compared with gdb
  native   stacks with C frames: how many are right and whole, and what they cost,
           compared with libdw and perf
  proofs   the proofs that a thread stood still, against each other and against a counter
           that it increments, and a million stacks by bpf against the program's text; fails
           if one was wrong
  waiting  the sampler's CPU time beside 1, 64 and 1000 waiting threads, and beside four that
           compete, by each engine, with and without -n, by wall and by CPU time, and in top
  interrupt
           how long the BPF program runs in an interrupt, and pysample's CPU time per sample,
           at 20, 100 and 1000 frames
  tick     what the kernel's tick as a clock (--engine tick) shows of programs in step with a
           timer, or sharing their CPU, compared with their own account
  tree     process trees (-s): the cost of 1, 8 and 64 workers, shares of processes and functions
           compared with the kernel's and their own account, children of 20 ms that have no
           sample, and what is unseen at the beginning and end of a script of 0.3 s
  tasks    shares of the asyncio tasks of a server with 200, compared with their own account
  pressure what is lost while the target's memory is paged out again and again
  show     print the tables of a FILE written by --json or --resume

examples:
  scripts/bench --quick                                     a first impression
  scripts/bench --only calls-100 --python 3.15,3.11 --rate max
  scripts/bench compare build-old build --only recursion-300 --rate 1k --processes 5
  scripts/bench --resume run.json                           2½ hours, and can be stopped

A difference of a few percent between two runs is noise: repeat it, on a machine that does
nothing else. docs/benchmarks.md says what each column means.
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
    truth_meanwhile: bool = False
    engines: tuple = ()  # those that can be measured here: engines.available()
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
                                 "proofs", "waiting", "interrupt", "tick", "tree", "tasks",
                                 "pressure", "show"],
                        help="see below (default: attach)")
    parser.add_argument("builds", nargs="*", metavar="BUILD|FILE",
                        help="with compare: A and B; with show: a file written by --json")
    parser.add_argument("--quick", action="store_true",
                        help="fewer programs and turns, %s only: about five minutes"
                        % NEWEST_PYTHON)
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="only this program, in all sizes if none is given: "
                        + ", ".join(one.name for one in ALL_PROGRAMS))
    parser.add_argument("--python", metavar="LIST",
                        help="versions; 3.15t is free-threaded (default: 3.15 to 3.6; native: "
                        "3.15 to 3.13; proofs: 3.15, 3.11, 3.8; quick, work, compare, formats, "
                        "core, waiting, interrupt, tick, tree, tasks and pressure: %s)"
                        % NEWEST_PYTHON)
    parser.add_argument("--rate", action="append", type=rate_named, metavar="RATE",
                        help="only this rate: max, 5k, 1k, 100 "
                        "(default: all but max)")
    parser.add_argument("--seconds", type=positive(float), metavar="S",
                        help="length of each window (default: %s)" % ", ".join(
                            "%g at %s" % (seconds, rate) for rate, seconds in SECONDS.items()))
    parser.add_argument("--turns", type=positive(int), metavar="N",
                        help="windows of each kind on a process, of %s one in %d turns "
                        "(default: %d; quick: %d; compare: 2, formats: 5)"
                        % (" and ".join(RARE_RATES), RARE_TURNS, TURNS, QUICK_TURNS))
    parser.add_argument("--processes", type=positive(int), default=3, metavar="N",
                        help="processes with compare (default 3)")
    parser.add_argument("--stops", type=positive(int), default=STOPS, metavar="N",
                        help="stops of the target per window, for the truth (default %d)" % STOPS)
    parser.add_argument("--truth-meanwhile", action="store_true",
                        help="read the truth while each sampler runs, and not before or after: how "
                        "wrong it is about a program that it changes")
    parser.add_argument("--runs", type=positive(int), default=40, metavar="N",
                        help="runs of each program with start, core and native (default 40); "
                        "waiting, interrupt, tree and tasks use only a few")
    parser.add_argument("--pairs", type=positive(int), default=25, metavar="N",
                        help="pairs of on and off with work (default 25)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="FOLDER",
                        help="(default build/)")
    parser.add_argument("--no-build", action="store_true", help="measure the existing build")
    parser.add_argument("--json", metavar="FILE", help="write every row as JSON")
    parser.add_argument("--resume", metavar="FILE",
                        help="the same, but resume a run that was stopped: what is in the "
                        "file is not measured again")
    parser.add_argument("--engine", metavar="NAME",
                        help="only this engine of pysample (default: bpf, where it is allowed, and "
                        "preempt, in turn)")
    parser.add_argument("--anyway", action="store_true",
                        help="measure even if the machine is busy with other work")
    return parser


def choose_programs(args):
    if args.only:
        return named(args.only)
    if args.what == "work":
        return WORKERS[:1]
    if args.what == "formats":
        return named(RECORDED)
    return [one for one in ALL_PROGRAMS if one.quick or not args.quick]


def default_turns(args):
    few = {"compare": 2, "formats": 5}
    return few.get(args.what, QUICK_TURNS if args.quick else TURNS)


def parse(description, argv=None):
    """The Options of argv (default: of this program). Exits if they are wrong."""
    parser = make_parser(description)
    args = parser.parse_intermixed_args(argv)  # options may stand between the command and builds
    if len(args.builds) != {"compare": 2, "show": 1}.get(args.what, 0):
        parser.error("compare takes two builds and show one file; nothing else takes any")
    if args.json and args.resume:
        parser.error("--resume FILE also writes FILE: leave out --json")
    if args.truth_meanwhile and args.what != "attach":
        parser.error("--truth-meanwhile is for attach")
    programs = choose_programs(args)
    if not programs:
        parser.error("no program has that name")
    few = args.quick or args.what in ("work", "compare", "formats", "core", "waiting",
                                      "interrupt", "tick", "tree", "tasks", "pressure")
    every = {"native": NATIVE_PYTHONS, "proofs": PROOFS_PYTHONS}.get(args.what, ALL_PYTHONS)
    pythons = args.python.split(",") if args.python else [NEWEST_PYTHON] if few else every
    return Options(
        args.what, args.builds, os.path.abspath(args.build), args.quick, args.anyway,
        args.engine, args.no_build, programs, pythons, args.rate or USUAL_RATES, args.seconds,
        args.turns or default_turns(args), args.processes, args.stops,
        args.runs, args.pairs, args.json or args.resume, args.resume,
        not args.only and not args.quick, not args.only, args.truth_meanwhile)
