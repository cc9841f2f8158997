# SPDX-License-Identifier: MIT
"""A made-up recording: three processes, every kind of function, names of every kind.

It has what a real recording cannot be made to have: threads that are renamed, that take another's
slot, that are in a sub-interpreter; tables that begin anew; weights of a microsecond, and none;
stacks of 1000 frames; the same function in several processes.
"""
import os
import random
import sys

import oracle
from oracle import Frame, Function
from recording_writer import Writer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "targets", "names"))

import nasty_names  # noqa: E402

EPOCH_US = 1_767_225_600_123_456  # 2026-01-01, when the tick clock was 0
BEGIN_NS = 5_000_000_000  # of the run, by the tick clock
TICK_NS = 1_000_000
NR_TICKS = 1500
NR_PARTS = 5  # of the file

PROCESSES = [oracle.Process(4242, "python3 app.py --name 'a b' <&>\";"),
             oracle.Process(4243, "", 4242, "gunicorn <b>;\n", BEGIN_NS // 1000),
             oracle.Process(0, "\033[31mred\u202e")]



def as_bytes(name):
    """Encode a lone surrogate as three bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


FUNCTIONS = [Function(oracle.PYTHON, as_bytes(name), path, 10 * number)
             for number, name in enumerate(nasty_names.NAMES)
             for path in nasty_names.PATHS[number % 3:8:3]] + [
    Function(oracle.COLLECTOR, "<GC>", "", 0),
    Function(oracle.NATIVE, "memcpy", "/usr/lib/libc;.so.6", 0),
    Function(oracle.NATIVE, "std::vector<int, a<b> >::push_back(int&&)", "/opt/lib x.so", 0),
    Function(oracle.NATIVE, "memcpy", "/opt/other/libc.so.6", 0),
    Function(oracle.JIT, "py::main", "[anon:jit]", 0),
    Function(oracle.JIT, "py::main", "/srv/a;b c.py", 7),
    Function(oracle.KERNEL, "do_syscall_64", "[kernel]", 0),
    Function(oracle.TASK, "Task-1", "", 0),
    Function(oracle.TASK, "fetch; <b> 7", "", 0),
    Function(oracle.PYTHON, "bytes \udcff\udcfe", "/srv/\udce9.py", 3),
]


def line_of(chance, function):
    return function.first_line + chance.choice((0, 1, 1, 2, 40)) if function.first_line else 0


def stacks(chance):
    """Stacks of a tree. Children are chosen from a few, so that stacks share their outer frames."""
    children, found = {}, [()]
    for _ in range(400):
        frames, place = (), ()
        for _ in range(chance.choice((1, 2, 3, 5, 8, 13))):
            if place not in children:
                functions = chance.sample(FUNCTIONS, 3) + list(
                    dict.fromkeys(frame.function for frame in frames[-2:]))  # recursion
                children[place] = [Frame(one, line_of(chance, one)) for one in functions]
            frame = chance.choice(children[place])
            frames += (frame,)
            place = frames
        found.append(frames)
    deep = Frame(FUNCTIONS[0], 4)
    return found + [found[7] + 1000 * (deep,), 500 * (deep, found[9][0])]


class Maker:
    """Writes a recording and knows what is in it."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.truth = oracle.Recording()
        self.writer = Writer(self.chance, EPOCH_US)
        self.stacks = stacks(self.chance)
        self.busy = {}  # slot: [index of its thread, its current stack, ns of its last sample]

    def begin(self):
        self.info(pysample="1.2.3", arguments="attach \"4242\" -d <2> ;\n", host="host & <b>",
                  start_unix_ns=EPOCH_US * 1000 + BEGIN_NS, command_line=PROCESSES[0].command_line, pid=4242,
                  python="3.13.1", engine="racing", mode="wall", states="true", requested_hz=1000, start_ns=BEGIN_NS, samples=0,
                  ticks=0, approximate=0, native="true", **{"native.user_cpu_only": "true", "lost.moved": 3, "lost.lock": 0, "late_ticks": 2, "later": "x"})
        for process in PROCESSES:
            self.writer.process(process)
            self.truth.processes.append(process)
        self.writer.process_end(1, BEGIN_NS // 1000 + 1)
        for slot in range(12):
            self.begin_thread(slot)

    def info(self, **pairs):
        self.writer.info(**pairs)
        self.truth.info.update({name: str(value) for name, value in pairs.items()})

    def begin_thread(self, slot):
        number = len(self.truth.threads)
        names = nasty_names.THREADS
        thread = oracle.Thread(number % 3, 5000 + number if number != 7 else 0, int(number == 5),
                               number < 3, names[number % len(names)] if number else "MainThread")
        self.writer.thread(slot, thread)
        self.truth.threads.append(thread)
        self.busy[slot] = [number, (), None]

    def rename(self, slot, name):
        self.writer.rename(slot, name)
        self.truth.threads[self.busy[slot][0]].name = name

    def sample(self, slot, time):
        chance, state = self.chance, self.busy[slot]
        if chance.random() < 0.4:
            state[1] = chance.choice(self.stacks) if chance.random() < 0.9 else ()
        wall = (time - state[2]) // 1000 if state[2] is not None else 0
        if chance.random() < 0.03:
            wall = chance.choice((0, 1, 2, 999, 3_000_000))
        flags = chance.choice((0, oracle.HOLDS_GIL, oracle.WAITS_FOR_GIL, oracle.EXCEPTION))
        if any(frame.function.kind == oracle.COLLECTOR for frame in state[1]):
            flags |= oracle.GC
        if chance.random() < 0.15:
            flags |= oracle.IN_JIT
        if chance.random() < 0.25:
            flags |= oracle.APPROXIMATE
        if chance.random() < 0.3:
            flags |= oracle.WAITING
        cpu = 0
        if slot != 3:  # slot 3's clock cannot be read
            flags |= oracle.CPU_MEASURED
            cpu = chance.choice((0, wall, wall + 1, wall * 2 // 3))
            flags |= oracle.ON_CPU if cpu else 0
        state[2] = time
        self.truth.samples.append(oracle.Sample(
            EPOCH_US * 1000 + time, wall * 1000, cpu * 1000, state[0], self.truth.stack(state[1]),
            flags))
        return slot, state[1], wall, cpu, flags

    def part(self, number):
        chance, ticks = self.chance, []
        jitter = chance.choice((0, 0, TICK_NS))
        for tick in range(NR_TICKS // NR_PARTS):
            place = number * (NR_TICKS // NR_PARTS) + tick
            if chance.random() < 0.02:
                continue  # late
            time = BEGIN_NS + place * TICK_NS + chance.randrange(jitter + 1) // 1000 * 1000
            slots = sorted(self.busy) if tick % 50 else sorted(self.busy)[::-1]
            ticks.append((time, [self.sample(slot, time) for slot in slots
                                 if slot < 8 or tick % 100 < 50]))
        self.writer.samples(ticks, 0 if number == 1 else TICK_NS)
        rows = [one for _, row in ticks for one in row]
        self.count(samples=len(rows), ticks=len(ticks),
                   approximate=sum(bool(flags & oracle.APPROXIMATE) for *_, flags in rows))
        self.writer.flush()

    def count(self, **changes):
        self.writer.count(**changes)
        for name, change in changes.items():
            self.truth.info[name] = str(int(self.truth.info[name]) + change)

    def end(self):
        samples = self.truth.samples
        shown = sum(sample.wall for sample in samples)
        self.info(sampled_samples=len(samples), sampled_wall_ns=shown, shown_samples=len(samples),
                  jit_samples=sum(bool(sample.flags & oracle.IN_JIT) for sample in samples),
                  sampled_cpu_ns=sum(sample.cpu for sample in samples), shown_ns=shown,
                  cpu_measured_samples=sum(bool(sample.flags & oracle.CPU_MEASURED)
                                           for sample in samples),
                  end_ns=BEGIN_NS + NR_TICKS * TICK_NS, wall_s=NR_TICKS * TICK_NS / 1e9,
                  achieved_hz=repr(int(self.truth.info["ticks"]) / (NR_TICKS * TICK_NS / 1e9))
                  .removesuffix(".0"))
        return self.writer.finish()


def make(path, seed=1):
    """Write a recording to path and return what is in it."""
    maker = Maker(seed)
    maker.begin()
    for number in range(NR_PARTS):
        if number == 2:
            maker.writer.reset()
            maker.rename(1, "renamed; 5")
        if number == 3:
            for slot in (4, 9):
                maker.begin_thread(slot)
            maker.rename(4, "")
        maker.part(number)
    data = maker.end()
    with open(path, "wb") as file:
        file.write(data)
    return maker.truth
