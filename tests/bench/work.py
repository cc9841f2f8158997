# SPDX-License-Identifier: MIT
"""What sampling does to the target: its work per second of its own CPU time, with the sampler
on and off in turn.

The sampler runs all the time and is stopped and continued by signals, so that nothing starts or
ends in between that would examine the target in another way than sampling does (finding the
interpreter, names and code objects for the first time), or use the machine otherwise. A sampler
that itself stops the target cannot be measured like this: it might never let the target go. The
events of perf go on while perf is stopped, so it is switched through its control file. Those of
BPF go on, too, and the BPF program runs in them, so pysample is ended and started again.
"""
import contextlib
import dataclasses
import mmap
import os
import shutil
import signal
import struct
import subprocess
import time

from bench import machine_load, say
from bench.catalogue import WORKERS
from bench.estimates import median, median_interval
from bench.processes import Waiting, end, read_number, running, start
from bench.profilers import profilers_of
from bench.samplers import RATES, Pysample, is_ours

DEFAULT_RATE = "100 Hz"
WORK_RATES = ("1 kHz", DEFAULT_RATE)
PHASE_S = 0.4
SETTLE_S = 0.05  # after each change; a sampler that catches up usually does so in this time
BEGIN_S = 0.7  # until a sampler samples
RECORD = struct.Struct("=QdQ")  # as in programs/work.py


@dataclasses.dataclass
class WorkRow:
    python: str
    program: str
    rate: str
    sampler: str
    pairs: int
    ratio: float  # work per CPU second, on / off: the median of the pairs
    low: float | None  # its 95 % interval
    high: float | None
    wall_ratio: float  # work per second of wall time, on / off
    wall_low: float | None
    wall_high: float | None
    sampler_cpu_percent: float  # of a core, while it is on
    target_waited_percent: float | None
    load: float
    stolen_percent: float | None


class SleepLoop:
    """Never reads the target: what the method itself costs."""

    name = "a loop that only sleeps"

    def __init__(self, tools):
        self.path = tools.sleeploop

    def endless_command(self, target, rate_hz):
        return [self.path, str(rate_hz), "100000"]


class PerfRecord:
    """The kernel's own sampler: an interrupt for each sample, and a record of it."""

    name = "perf record"

    @contextlib.contextmanager
    def sampling(self, target, rate_hz):
        control, answers = (os.path.join(target.outside, name) for name in ("control", "answers"))
        for path in control, answers:
            os.mkfifo(path)
        process = start(["perf", "record", "-q", "-F", str(rate_hz), "-e", "cpu-clock", "-p",
                         str(target.pid), "-o", os.devnull,
                         "--control", "fifo:%s,%s" % (control, answers)],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(BEGIN_S)
            with open(control, "w", encoding="ascii") as orders, \
                    open(answers, encoding="ascii") as replies:

                def switch(on):
                    orders.write("enable\n" if on else "disable\n")
                    orders.flush()
                    replies.readline()

                yield process, switch
        finally:
            end(process)
            for path in control, answers:
                os.unlink(path)


class Restarted:
    """A process that is ended to turn it off, and started again to turn it on."""

    def __init__(self, command):
        self.args = command
        self.process = None
        self.switch(True)

    @property
    def pid(self):
        return self.process.pid

    def poll(self):
        """Its exit status, if it has ended by itself."""
        return self.process.poll() if self.is_on else None

    def switch(self, on):
        self.is_on = on
        if on:
            self.process = start(self.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(BEGIN_S)
        else:
            end(self.process)

    def close(self):
        end(self.process)


@dataclasses.dataclass
class Moment:
    wall_s: float
    work: int  # rounds of the target
    cpu_s: float  # of the target
    sampler_s: float


class Phases:
    """Measures the target between changes of the sampler."""

    def __init__(self, page, sampler, switch):
        self.page, self.sampler, self.switch_sampler = page, sampler, switch
        self.on = True

    def moment(self):
        while True:
            number, cpu_s, again = RECORD.unpack(self.page[:RECORD.size])
            if number == again:
                break
        sampler_ns = read_number("/proc/%d/schedstat" % self.sampler.pid, r"^(\d+)") or 0
        return Moment(time.monotonic(), number, cpu_s, sampler_ns / 1e9)

    def switch(self, on):
        if on != self.on:
            self.switch_sampler(on)
            self.on = on
        time.sleep(SETTLE_S)

    def measure(self, on):
        """(first moment, last moment)"""
        self.switch(on)
        first = self.moment()
        time.sleep(PHASE_S)
        last = self.moment()
        if self.sampler.poll() is not None:
            raise RuntimeError("%s ended early" % self.sampler.args)
        return first, last

    def pairs(self, count):
        """[(phase with, phase without)], on off, off on, on off, …, so that drift affects both."""
        found = []
        for i in range(count):
            phases = {on: self.measure(on) for on in ((True, False) if i % 2 == 0 else
                                                      (False, True))}
            found.append((phases[True], phases[False]))
        return found


def per_cpu_second(phase):
    first, last = phase
    return (last.work - first.work) / (last.cpu_s - first.cpu_s)


def per_second(phase):
    first, last = phase
    return (last.work - first.work) / (last.wall_s - first.wall_s)


def sampler_percent(phase):
    first, last = phase
    return 100 * (last.sampler_s - first.sampler_s) / (last.wall_s - first.wall_s)


@contextlib.contextmanager
def sampling(sampler, target, rate_hz):
    """(process, function that turns it on and off)"""
    if hasattr(sampler, "sampling"):
        with sampler.sampling(target, rate_hz) as found:
            yield found
        return
    if getattr(sampler, "works_while_stopped", False):
        with contextlib.closing(Restarted(sampler.endless_command(target, rate_hz))) as restarted:
            yield restarted, restarted.switch
        return
    process = start(sampler.endless_command(target, rate_hz), stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
    try:
        time.sleep(BEGIN_S)
        yield process, lambda on: process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
    finally:
        end(process)


def measure_one(target, page, sampler, rate, options):
    load = machine_load.wait_until_quiet(options.anyway, target.pid)
    with sampling(sampler, target, RATES[rate]) as (process, switch):
        waiting, stolen = Waiting(target.pid), machine_load.Stolen()
        pairs = Phases(page, process, switch).pairs(options.pairs)
        waited_percent, stolen_percent = waiting.percent(), stolen.percent()
    ratios = [per_cpu_second(on) / per_cpu_second(off) for on, off in pairs]
    return WorkRow(
        target.interpreter.version, target.program.name, rate, sampler.name, len(pairs),
        *median_interval(ratios),
        *median_interval([per_second(on) / per_second(off) for on, off in pairs]),
        median(sampler_percent(on) for on, _ in pairs), waited_percent, load,
        stolen_percent)


def unit(interpreter, program, sampler, rate):
    return "work %s %s %s %s" % (interpreter.minor, program.name, sampler.name, rate)


def seconds_of(options):
    """How long one row takes."""
    return 2 * options.pairs * (PHASE_S + SETTLE_S) + BEGIN_S + machine_load.MEASURED_S


def samplers_for(tools, interpreter, has_profiling_sampling, engines):
    perf = [PerfRecord()] if shutil.which("perf") else []
    ours = [Pysample(tools.pysample, engine=engine) for engine in engines]
    return [*ours, *perf, SleepLoop(tools),
            *(one for one in profilers_of(interpreter, has_profiling_sampling)
              if one.can_be_stopped)]


def units_of(program, samplers, options):
    """[(sampler, rate)] for the rates that people use: a loop that sleeps has no "max", and other
    samplers do not keep 5 kHz. A full run has all of them on the first program; the other programs
    show what depth and threads cost at the default rate."""
    rates = [rate for rate in options.rates if rate in WORK_RATES]
    if options.is_full and program is not WORKERS[0]:
        samplers = [one for one in samplers if is_ours(one.name) or one.name == PerfRecord.name]
        rates = [rate for rate in rates if rate == DEFAULT_RATE]
    return [(sampler, rate) for rate in rates for sampler in samplers]


def measure_program(interpreter, program, units, options, results):
    """Add to the results, a row at a time."""
    with running(interpreter, program) as target, \
            open(os.path.join(target.outside, "work.count"), "rb") as file, \
            mmap.mmap(file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ) as page:
        for sampler, rate in units:
            say("CPython %s, %s, %s at %s" % (interpreter, program.name, sampler.name, rate))
            results.add(unit(interpreter, program, sampler, rate),
                        work=[measure_one(target, page, sampler, rate, options)])


def measure(tools, interpreter, has_profiling_sampling, programs, options, results):
    """Add to the results what they do not have yet."""
    samplers = samplers_for(tools, interpreter, has_profiling_sampling, options.engines)
    for program in programs:
        units = [(sampler, rate) for sampler, rate in units_of(program, samplers, options)
                 if unit(interpreter, program, sampler, rate) not in results.done]
        if units:
            say("about %.0f minutes" % max(len(units) * seconds_of(options) / 60, 1))
            measure_program(interpreter, program, units, options, results)
