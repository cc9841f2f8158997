# SPDX-License-Identifier: MIT
"""What is lost where memory is short: the target's pages are paged out again and again while it
is sampled.

MADV_PAGEOUT by process_madvise(2) does what the kernel does to pages for which there is no room:
they leave the page tables, and the next access waits for a fault. Anonymous memory needs swap for
that, so the target's memory is of files (file_memory.c). Dirty pages stay in the page cache; every
fourth time they are written first, and have to be read from the disk. All engines sample one
process in turn.
"""
import collections
import contextlib
import ctypes
import dataclasses
import os
import re
import shutil
import statistics
import threading
import time

import support

from bench import attach_run, machine_load, say
from bench.catalogue import named
from bench.processes import read_number, running
from bench.report import cell, print_table, reasons_text
from bench.stacks import percent

HZ = 1000
PROGRAMS = ("calls-10", "calls-100", "calls-1000", "generators")
INTERVALS_S = (1.0, 0.1, 0.01)  # between two times at which everything is paged out
SECONDS, QUICK_SECONDS = 4, 2
TURNS, QUICK_TURNS = 5, 2
MAX_LOST_PERCENT = 1

WRITE_EVERY = 4  # the pages are written to their files once in this many times

SYS_PROCESS_MADVISE = 440  # on every architecture
MADV_PAGEOUT = 21
SHIM = "libfile_memory.so"


class Range(ctypes.Structure):
    """struct iovec"""
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def file_ranges(maps):
    """[(address, length)] of the mappings of files in the text of /proc/PID/maps"""
    found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ [1-9]\d* +/", maps, re.MULTILINE)
    return [(int(begin, 16), int(end, 16) - int(begin, 16)) for begin, end in found]


class Pager:
    """Pages out all of a process."""

    def __init__(self, pid):
        self.pid, self.descriptor = pid, os.pidfd_open(pid)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.nr_times = 0

    def write(self, address, length):
        """Write a mapping to its file, if that is the target's memory: a file that was deleted."""
        path = "/proc/%d/map_files/%x-%x" % (self.pid, address, address + length)
        with contextlib.suppress(OSError):  # it was unmapped meanwhile
            if os.readlink(path).endswith(" (deleted)"):
                descriptor = os.open(path, os.O_RDWR)
                try:
                    os.fdatasync(descriptor)
                finally:
                    os.close(descriptor)

    def page_out(self):
        """Page out all mappings. Returns for how many that worked: it does not for what other
        processes map as well, such as libc."""
        done, is_written = 0, self.nr_times % WRITE_EVERY == 0
        self.nr_times += 1
        for address, length in file_ranges(support.read("/proc/%d/maps" % self.pid)):
            if is_written:
                self.write(address, length)
            done += self.libc.syscall(SYS_PROCESS_MADVISE, self.descriptor,
                                      ctypes.byref(Range(address, length)), ctypes.c_size_t(1),
                                      MADV_PAGEOUT, 0) >= 0
        return done

    @contextlib.contextmanager
    def paging_out(self, interval_s):
        """Page out at that interval, in a thread, until the block ends."""
        is_over = threading.Event()

        def run():
            while not is_over.wait(interval_s):
                self.page_out()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def close(self):
        os.close(self.descriptor)


@dataclasses.dataclass
class Row:
    program: str
    interval_s: float
    engine: str
    nr_samples: int
    lost_percent: float
    lost_percents: dict
    impossible: int
    faults_per_s: float  # of the target; each brought pages back
    reads_per_s: float  # those of them that had to wait for the disk


def make_row(program, interval_s, engine, runs, faults):
    lost = sum((collections.Counter(run.stats["lost"]) for run in runs), collections.Counter())
    nr_samples = sum(run.stats["samples"] for run in runs)
    tried = nr_samples + lost.total()
    return Row(program.name, interval_s, engine, nr_samples, percent(lost.total(), tried),
               {reason: percent(count, tried) for reason, count in lost.items()},
               sum(count for run in runs for names, count in run.stacks.items()
                   if not program.can_have(names)),
               *(statistics.median(values) for values in zip(*faults)))


def faults_of(pid):
    """(minor and major faults, major faults) so far"""
    minor, major = (read_number("/proc/%d/stat" % pid, r"\) (?:\S+ ){%d}(\d+)" % field) or 0
                    for field in (7, 9))
    return minor + major, major


def measure_once(tools, target, engine, seconds):
    """(Attached, [faults per second, faults per second that read from the disk])"""
    begin_s, first = time.monotonic(), faults_of(target.pid)
    attached = attach_run.attach(tools, target.pid, seconds, HZ, "--engine", engine)
    seconds = time.monotonic() - begin_s
    return attached, [(now - then) / seconds for now, then in zip(faults_of(target.pid), first)]


@contextlib.contextmanager
def target_of_files(tools, interpreter, program):
    """Run a program whose memory is of files in a folder below its root."""
    with support.fresh_folder(interpreter.root) as (outside, inside):
        shutil.copy(os.path.join(tools.folder, "tests", SHIM), outside)
        wrapper = ("env", "LD_PRELOAD=%s/%s" % (inside, SHIM), "FILE_MEMORY=" + inside)
        chroot, rest = interpreter.command()[:-1], interpreter.command()[-1:]
        preloaded = PreloadedInterpreter(interpreter, tuple(chroot) + wrapper + tuple(rest))
        with running(preloaded, program) as target:
            yield target


@dataclasses.dataclass(frozen=True)
class PreloadedInterpreter:
    """An interpreter whose command sets its environment inside its root."""
    interpreter: support.Interpreter
    words: tuple

    def command(self):
        return list(self.words)

    def __getattr__(self, name):
        return getattr(self.interpreter, name)


def measure_program(tools, interpreter, program, args):
    """[Row]"""
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    found = collections.defaultdict(list)
    machine_load.wait_until_quiet(args.anyway)
    with target_of_files(tools, interpreter, program) as target, \
            contextlib.closing(Pager(target.pid)) as pager:
        if not pager.page_out():
            raise RuntimeError("nothing of %s can be paged out" % program.name)
        for turn in range(QUICK_TURNS if args.quick else TURNS):
            for interval_s in INTERVALS_S:
                with pager.paging_out(interval_s):
                    for engine in args.engines[::1 if turn % 2 == 0 else -1]:
                        found[interval_s, engine].append(
                            measure_once(tools, target, engine, seconds))
    return [make_row(program, interval_s, engine, [run for run, _ in runs],
                     [faults for _, faults in runs])
            for (interval_s, engine), runs in found.items()]


def measure(tools, interpreter, args):
    rows = []
    for program in named(PROGRAMS):
        say("CPython %s, %s, paged out" % (interpreter, program.name))
        rows += measure_program(tools, interpreter, program, args)
    return rows


def lost_text(row):
    return cell(row.lost_percent, 2) + (
        " **no**" if row.lost_percent > MAX_LOST_PERCENT else "")


def print_rows(interpreter, rows):
    print("\n### Paged out repeatedly, CPython %s, %d Hz\n" % (interpreter.version, HZ))
    print_table(("program", "every", "engine", "samples", "lost %% (≤ %g)" % MAX_LOST_PERCENT,
                 "by reason", "impossible", "target's faults per second", "from the disk"), 3,
                [(row.program, "%g s" % row.interval_s, row.engine, str(row.nr_samples),
                  lost_text(row), reasons_text(row.lost_percents) or "–", str(row.impossible),
                  cell(row.faults_per_s, 0), cell(row.reads_per_s, 0)) for row in rows])
