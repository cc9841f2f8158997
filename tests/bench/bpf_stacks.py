# SPDX-License-Identifier: MIT
"""A million stacks that BPF took in the target's interrupts, and whether the program can have
each of them.

That engine needs no witness: while the interrupt runs, its thread does not. So its stacks are
checked against the text of programs whose every stack is known (catalogue.py), at the highest
rate, while the target is moved from CPU to CPU, stopped and continued.
"""
import contextlib
import dataclasses
import os
import random
import signal
import threading
import time

from bench import attach_run, machine_load, say
from bench.catalogue import named
from bench.processes import running
from bench.report import print_table
from bench.stacks import percent

PROGRAMS = ("calls-10", "chains", "shared-5", "generators", "drivers", "coroutines", "genexprs",
            "recursion-300", "locals-1800", "dying", "churn", "threads-8")
HZ = 10000
SECONDS, QUICK_SECONDS = 5, 1  # of each run
PATIENCE_S = 300  # limit on one program, which may end it with fewer stacks
ENGINE = "bpf"


@dataclasses.dataclass
class Row:
    python: str
    program: str
    nr_stacks: int  # of threads that work
    nr_impossible: int
    nr_lost: int
    moves: int
    example: str = ""  # an impossible stack


def disturb(pid, is_over, moves):
    """Until is_over is set, move the process to a random CPU every 0.1 to 3 ms, and sometimes stop
    it for a moment."""
    cpus, chance = sorted(os.sched_getaffinity(0)), random.Random(1)
    with contextlib.suppress(ProcessLookupError):
        while not is_over.wait(chance.uniform(0.0001, 0.003)):
            os.sched_setaffinity(pid, {chance.choice(cpus)})
            moves.append(1)
            if chance.random() < 0.05:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(chance.uniform(0.0001, 0.001))
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def disturbed(pid):
    """Yields a list with an item for each move."""
    is_over, moves = threading.Event(), []
    thread = threading.Thread(target=disturb, args=(pid, is_over, moves), daemon=True)
    thread.start()
    try:
        yield moves
    finally:
        is_over.set()
        thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def add(row, program, attached):
    for names, count in attached.stacks.items():
        row.nr_stacks += 0 if program.is_parked(names) else count
        if not program.can_have(names):
            row.nr_impossible += count
            row.example = row.example or ";".join(names)
    row.nr_lost += attached.nr_lost


def measure_program(tools, interpreter, program, nr_stacks, args):
    row = Row(interpreter.version, program.name, 0, 0, 0, 0)
    machine_load.wait_until_quiet(args.anyway)
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    deadline_s = time.monotonic() + PATIENCE_S
    with running(interpreter, program) as target, disturbed(target.pid) as moves:
        while row.nr_stacks < nr_stacks and time.monotonic() < deadline_s:
            add(row, program, attach_run.attach(tools, target.pid, seconds, HZ, "--engine",
                                                ENGINE))
            if args.seconds:
                break
        row.moves = len(moves)
    return row


def measure(tools, interpreters, nr_stacks, args):
    """[Row], of nr_stacks together"""
    programs = named(PROGRAMS)
    each = nr_stacks // max(len(programs) * len(interpreters), 1) + 1
    rows = []
    for interpreter in interpreters.values():
        for program in programs:
            say("CPython %s, %s: %d stacks by %s" % (interpreter, program.name, each, ENGINE))
            rows.append(measure_program(tools, interpreter, program, each, args))
    return rows


def print_rows(rows):
    if not rows:
        return
    print("\nStacks by %s, checked against what the program can have:\n" % ENGINE)
    total = Row("all", "", *(sum(getattr(row, field) for row in rows) for field in (
        "nr_stacks", "nr_impossible", "nr_lost", "moves")))
    print_table(("python", "program", "stacks", "impossible", "lost %", "moves"), 2,
                [(row.python, row.program, str(row.nr_stacks), str(row.nr_impossible),
                  "%.3f" % percent(row.nr_lost, row.nr_stacks + row.nr_lost), str(row.moves))
                 for row in [*rows, total]])


def check(rows):
    """RuntimeError if a stack is impossible, or a program has none."""
    found = ["%s on %s: %d, as %s" % (row.program, row.python, row.nr_impossible, row.example)
             for row in rows if row.nr_impossible]
    if found:
        raise RuntimeError("impossible stacks (%s)" % "; ".join(found))
    empty = ["%s on %s" % (row.program, row.python) for row in rows if not row.nr_stacks]
    if empty:
        raise RuntimeError("no stacks of: %s" % ", ".join(empty))
