# SPDX-License-Identifier: MIT
"""A recording's contents, summed in the simplest way: the truth that every format is compared
with.

All times are in nanoseconds.
"""
import collections
import dataclasses

# enum function_kind and enum sample_flags, as in docs/formats.md.
PYTHON, COLLECTOR, NATIVE, JIT, KERNEL, TASK = range(6)
HOLDS_GIL, UNPROVEN, WAITS_FOR_GIL, GC, EXCEPTION, CPU_MEASURED, ON_CPU = (1 << n for n in range(7))
IN_JIT = 1 << 12
APPROXIMATE = 1 << 13
WAITING = 1 << 14

Function = collections.namedtuple("Function", "kind qualname path first_line")
Frame = collections.namedtuple("Frame", "function line")
Weight = collections.namedtuple("Weight", "samples ns")
Total = collections.namedtuple("Total", "self total")  # both are a Weight

NOTHING = Weight(0, 0)
IDLE = Frame(Function(PYTHON, "[no python frames]", "", 0), 0)  # a stack without frames


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    command_line: str
    parent: int = 0  # pid
    name: str = ""
    start: int = 0  # in µs on the clock of the ticks


@dataclasses.dataclass
class Thread:
    process: int  # index
    tid: int
    interpreter: int
    is_main: bool
    name: str  # the last one


@dataclasses.dataclass(frozen=True)
class Sample:
    time: int  # CLOCK_REALTIME
    wall: int
    cpu: int
    thread: int  # index
    stack: int  # index
    flags: int


class Recording:
    """Definitions and samples in the order of the file. Equal stacks are one."""

    def __init__(self):
        self.info = {}  # about the run: {name: value}, both text
        self.processes, self.threads, self.samples = [], [], []
        self.stacks = [()]  # tuples of Frame, outermost first
        self.flushes = []  # the number of samples after each frame of the file
        self._known = {(): 0}

    def stack(self, frames):
        """The index of a stack, which is added if it is new."""
        if frames not in self._known:
            self._known[frames] = len(self.stacks)
            self.stacks.append(frames)
        return self._known[frames]

    def process_of(self, sample):
        return self.processes[self.threads[sample.thread].process]

    def thread_of(self, sample):
        return self.threads[sample.thread]


# {mode: (flags to compare, their value)}
MODES = {"wall": (0, 0), "busy": (WAITING, 0), "cpu": (ON_CPU, ON_CPU),
         "gil": (HOLDS_GIL, HOLDS_GIL), "exception": (EXCEPTION, EXCEPTION)}


class View:
    """The samples of recordings that a mode shows and a filter lets pass."""

    def __init__(self, *recordings, mode="wall", passes=lambda recording, sample: True):
        self.mode, self.recordings = mode, recordings
        looked, value = MODES[mode]
        self.samples = [
            (recording, sample) for recording in recordings for sample in recording.samples
            if sample.flags & looked == value and passes(recording, sample)]

    def ns(self, sample):
        return sample.cpu if self.mode == "cpu" else sample.wall

    def whole(self):
        return Weight(len(self.samples), sum(self.ns(sample) for _, sample in self.samples))

    def idle(self):
        """The Weight of samples without frames."""
        return self.stacks(lambda frame: frame).get((), NOTHING)

    def by_stack(self, group=lambda recording, sample: None):
        """{(group, tuple of Frame): Weight}"""
        sums = collections.defaultdict(lambda: [0, 0])
        for recording, sample in self.samples:
            pair = sums[group(recording, sample), recording.stacks[sample.stack]]
            pair[0] += 1
            pair[1] += self.ns(sample)
        return {key: Weight(*pair) for key, pair in sums.items()}

    def stacks(self, key, group=None):
        """{tuple of key(Frame): Weight}. With group the tuples are (group, key(Frame), ...)."""
        sums = collections.defaultdict(lambda: NOTHING)
        for (owner, frames), weight in self.by_stack(*([group] if group else [])).items():
            names = ((owner,) if group else ()) + tuple(key(frame) for frame in frames)
            sums[names] = plus(sums[names], weight)
        return dict(sums)

    def late(self):
        """Frames whose lines may be a few statements late: the innermost Python frames of samples
        in the JIT."""
        found = set()
        for recording, sample in self.samples:
            if sample.flags & IN_JIT:
                found.update([frame for frame in recording.stacks[sample.stack]
                              if frame.function.kind == PYTHON][-1:])
        return found

    def totals(self, key, group=None):
        """{key(Frame): Total}. Recursion counts once. IDLE is a row, too, if it occurs. With
        group {(group, key(Frame)): Total}."""
        own = collections.defaultdict(lambda: NOTHING)
        total = collections.defaultdict(lambda: NOTHING)
        for (owner, frames), weight in self.by_stack(*([group] if group else [])).items():
            names = [key(frame) for frame in frames or (IDLE,)]
            if group:
                names = [(owner, name) for name in names]
            own[names[-1]] = plus(own[names[-1]], weight)
            for name in set(names):
                total[name] = plus(total[name], weight)
        return {name: Total(own[name], total[name]) for name in total}


def plus(one, other):
    return Weight(one.samples + other.samples, one.ns + other.ns)


def by_function(frame):
    return frame.function


def by_line(frame):
    return frame


def prefixes(stacks):
    """{every beginning of a stack: Weight of all stacks with it}, like the boxes of a flame
    graph."""
    boxes = collections.defaultdict(lambda: NOTHING)
    for names, weight in stacks.items():
        for length in range(1, len(names) + 1):
            boxes[names[:length]] = plus(boxes[names[:length]], weight)
    return dict(boxes)


def in_time(start, end):
    """A filter for [start, end) since the run's start, in ns; end 0 is its end. Times of samples
    are truncated to microseconds, so the first sample may seem to precede the start."""
    def passes(recording, sample):
        since = sample.time - min(int(recording.info["start_unix_ns"]), recording.samples[0].time)
        return since >= start and (not end or since < end)
    return passes


def of_thread(*wanted):
    """A filter for threads by name or tid."""
    def passes(recording, sample):
        thread = recording.thread_of(sample)
        return thread.name in wanted or str(thread.tid) in wanted
    return passes
