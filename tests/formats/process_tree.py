# SPDX-License-Identifier: MIT
"""A made-up recording of a pre-fork server: a master that waits, seven workers of one name, a
helper, and a child without samples."""
import random

import oracle
from oracle import Frame, Function, Process, Thread
from recording_writer import Writer

EPOCH_US = 1_767_225_600_000_000
BEGIN_NS = 5_000_000_000
TICK_NS = 10_000_000
NR_TICKS = 200
SERVER = "gunicorn app:wsgi"
PROCESSES = ([Process(4710, "", 0, SERVER, BEGIN_NS // 1000)]
             + [Process(4711 + i, "", 4710, SERVER, BEGIN_NS // 1000 + 1000 * i) for i in range(7)]
             + [Process(4800, "", 4710, "python -m <b>helper;", BEGIN_NS // 1000 + 500_000)])
ENDED = 8  # the helper
ENDED_US = BEGIN_NS // 1000 + 1_500_000
UNSAMPLED = Process(4801, "", 4710, "sleep", BEGIN_NS // 1000)

MAIN, SERVE, VIEW, QUERY, HELP = (
    Function(oracle.PYTHON, name, path, line) for name, path, line in (
        ("main", "/srv/app.py", 1), ("serve", "/srv/app.py", 20), ("view", "/srv/views.py", 5),
        ("query", "/srv/db.py", 7), ("help", "/srv/helper.py", 3)))


def stack(process, tick):
    """What the main thread of a process does. Worker N views in N of 8 ticks."""
    if process == 0:
        return ()
    if process == ENDED:
        return (Frame(HELP, 4),) if 50 <= tick < 150 else None
    top = (Frame(MAIN, 2), Frame(SERVE, 21))
    return top + (Frame(VIEW, 6),) if tick % 8 < process else top + (Frame(QUERY, 8),)


def is_idle(frames):
    """Whether a stack is one that waits."""
    return not frames or frames[-1].function == QUERY


def sample(slot, frames):
    """A sample of a stack, as recording_writer has it."""
    wall = TICK_NS // 1000
    ran = 0 if is_idle(frames) else oracle.ON_CPU
    approximate = oracle.APPROXIMATE * (bool(frames) and frames[-1].function == HELP)
    return (slot, frames, wall, wall if ran else 0,
            oracle.CPU_MEASURED | ran | oracle.WAITING * (not ran) | approximate)


def make(path, processes=None, mode="wall"):
    """Write the recording to path and return its samples: {(number, stack): ns}. processes are
    those of these numbers: {number: Process}."""
    processes = dict(enumerate(PROCESSES)) if processes is None else processes
    writer, times = Writer(random.Random(1), EPOCH_US), {}
    writer.info(pysample="1.2.3", start_unix_ns=EPOCH_US * 1000 + BEGIN_NS, pid=4710,
                command_line="gunicorn app:wsgi", engine="tick", mode=mode, requested_hz=100,
                start_ns=BEGIN_NS, end_ns=BEGIN_NS + NR_TICKS * TICK_NS, samples=0, ticks=NR_TICKS,
                states="true")
    for slot, process in enumerate(processes.values()):
        writer.process(process)
        writer.thread(slot, Thread(slot, process.pid, 0, True, "MainThread"))
    writer.process(UNSAMPLED)
    ticks, nr = [], 0
    for tick in range(NR_TICKS):
        row = []
        for slot, number in enumerate(processes):
            frames = stack(number, tick)
            if frames is not None:
                row.append(sample(slot, frames))
                times[number, frames] = times.get((number, frames), 0) + TICK_NS
        ticks.append((BEGIN_NS + (tick + 1) * TICK_NS, row))
        nr += len(row)
    writer.samples(ticks, TICK_NS)
    for slot, number in enumerate(processes):
        if number == ENDED:
            writer.process_end(slot, ENDED_US)
    writer.count(samples=nr)
    with open(path, "wb") as file:
        file.write(writer.finish())
    return times
