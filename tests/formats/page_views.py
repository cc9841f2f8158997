# SPDX-License-Identifier: MIT
"""What the views of the interactive flame graph must show of a recording: names and figures as
written there, and blocks of its canvases in their places.
"""
import collections
import decimal
import functools
import itertools
import math

import labels
import oracle

ROW, HEAD, GAP, FIRST_LANE = 20, 24, 8, 4  # px
NARROW_SPACE = "\u202f"
MOST_LINKS = 12
MOST_SEEN = 100  # boxes from top to bottom: no more fit

Block = collections.namedtuple("Block", "x y width name")
Run = collections.namedtuple("Run", "nr start end")  # samples, us


# ---- figures ---------------------------------------------------------------------


def fixed(value, digits):
    """toFixed(): of two numbers that are equally near, the larger one."""
    return str(decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-digits),
                                               decimal.ROUND_HALF_UP))


def percent(part):
    digits = 2 if abs(part) < 0.0995 else 1
    return (fixed(part * 100, digits) if part else "0") + NARROW_SPACE + "%"


def count(number):
    return "{:,}".format(number)


def duration(us):
    for unit, name in (1e6, "s"), (1e3, "ms"):
        if us >= 0.9995 * unit:
            digits = 0 if us >= 100 * unit else 1 if us >= 10 * unit else 2
            return fixed(us / unit, digits) + NARROW_SPACE + name
    return "%d%sµs" % (math.floor(us + 0.5), NARROW_SPACE)


# ---- names -------------------------------------------------------------------------


def in_json(function):
    return function._replace(qualname=labels.as_json(function.qualname),
                             path=labels.as_json(function.path))


def name_of(function):
    return labels.escaped(in_json(function).qualname) or "?"


def location(function, line=0):
    return labels.place(in_json(function).path, line or function.first_line)


def label(function, line=0):
    return labels.function_label(in_json(function), line or function.first_line)


def has_source(function):
    """Modules of C functions have no lines."""
    return function.kind == oracle.PYTHON and function.path


def boxes(frames, lines):
    """A stack as (function, line) pairs. Line 0 is the function itself. If lines are shown, each
    known line has a box inside its function's."""
    for frame in frames or (oracle.IDLE,):
        yield frame.function, 0
        if lines and frame.line:
            yield frame.function, frame.line


# ---- the table of functions ------------------------------------------------------------


class Shown:
    """The samples that a page shows, in us: determined by a view and a way to weigh them."""

    def __init__(self, view, by_samples=False):
        self.view, self.by_samples = view, by_samples
        self.whole = self.measure(view.whole()) or 1

    def measure(self, weight):
        return weight.samples if self.by_samples else weight.ns // 1000

    def amount(self, value):
        return count(value) if self.by_samples else duration(value)

    @functools.cached_property
    def stacks(self):
        """[(frames, Weight)]"""
        return list(self.view.stacks(oracle.by_line).items())

    def table(self):
        """Rows as page_drawn.mjs reports them, sorted by self and total time."""
        totals = self.view.totals(oracle.by_function)
        for function, total in sorted(totals.items(), key=lambda row: [
                -self.measure(row[1].self), -self.measure(row[1].total)]):
            own, all_ = self.measure(total.self), self.measure(total.total)
            yield {"label": label(function), "self": self.cell(own), "total": self.cell(all_),
                   "samples": count(total.self.samples)}

    def cell(self, value):
        return [percent(value / self.whole), self.amount(value)] if value else ["–", ""]

    # ---- callers and callees ----

    def calls(self, function, lines):
        """Callers, then callees: {path of (name, place): Weights of the boxes there}."""
        sums = [collections.defaultdict(lambda: oracle.NOTHING) for _ in range(2)]
        for frames, weight in self.stacks:
            here = [number for number, frame in enumerate(frames) if frame.function == function]
            if not here:
                continue
            outside = itertools.chain.from_iterable(
                boxes((frame,), lines) for frame in frames[:here[0]][::-1])
            inside = list(boxes(frames[here[0]:], lines))[1:]
            for found, way in zip(sums, (outside, inside)):
                path = ((function, 0),)
                found[path] = oracle.plus(found[path], weight)
                for box in itertools.islice(way, MOST_SEEN):
                    path += (box,)
                    found[path] = oracle.plus(found[path], weight)
        return [self.labelled(found) for found in sums]

    @staticmethod
    def labelled(sums):
        found = collections.defaultdict(list)
        for path, weight in sums.items():
            found[tuple(itertools.starmap(in_tip, path))].append(weight)
        return found

    # ---- lines of source ----

    @functools.cached_property
    def source(self):
        """{path: File}"""
        files = {}
        for frames, weight in self.stacks:
            placed = [frame for frame in frames if has_source(frame.function)]
            for path in {frame.function.path for frame in placed}:
                file = files.setdefault(path, File())
                file.total = oracle.plus(file.total, weight)
            for path, line in {(one.function.path, one.line) for one in placed if one.line}:
                files[path].add(line, weight, {
                    frame.function for frame in placed if self.measure(weight) and (
                        frame.function.path, frame.line) == (path, line)})
            if frames and has_source(frames[-1].function):
                files[frames[-1].function.path].own(frames[-1].line, weight)
        return {path: file for path, file in files.items() if self.measure(file.total)}

    def lines_of(self, file):
        """The lines that have a row."""
        return {line: row for line, row in file.lines.items() if self.measure(row[1])}

    def around(self, path, line):
        """[(us, label)] of a line's callers, and of its callees, the heaviest first."""
        callers, callees = collections.Counter(), collections.Counter()
        for frames, weight in self.stacks:
            places = [(frame.function.path, frame.line) for frame in frames]
            if (path, line) not in places:
                continue
            index = places.index((path, line))
            if index:
                callers[frames[index - 1]] += self.measure(weight)
            if index + 1 < len(frames):
                callees[frames[index + 1].function] += self.measure(weight)
        return [sorted(((us, name(key)) for key, us in found.items() if us), reverse=True)
                for found, name in ((callers, lambda frame: label(*frame)), (callees, label))]


def in_tip(function, line):
    """Name and place in the tooltip of a box."""
    if line:
        return "line %d" % line, name_of(function) + " " + location(function, line)
    return name_of(function), location(function)


class File:
    def __init__(self):
        self.self = self.total = oracle.NOTHING
        self.lines = {}  # {line: [self, total, functions]}

    def add(self, line, weight, functions):
        row = self.lines.setdefault(line, [oracle.NOTHING, oracle.NOTHING, set()])
        row[1] = oracle.plus(row[1], weight)
        row[2].update(functions)

    def own(self, line, weight):
        self.self = oracle.plus(self.self, weight)
        if line:
            self.lines[line][0] = oracle.plus(self.lines[line][0], weight)


# ---- time order -------------------------------------------------------------------------


class Lane:
    """A thread of the chart: samples as (time, start, node ids or None if not shown)."""

    def __init__(self, name, y):
        self.name, self.y, self.samples, self.rows = name, y, [], 1

    def at(self, time):
        """The index of the sample that is shown at a time, or None."""
        low, high = 0, len(self.samples)
        while low < high:
            middle = (low + high) // 2
            if self.samples[middle][0] < time:
                low = middle + 1
            else:
                high = middle
        if low < len(self.samples) and self.samples[low][1] <= time and self.samples[low][2]:
            return low
        return None

    def run(self, index, depth):
        """The adjacent samples that are in the same box at this depth."""
        def goes_on(one, next_one):
            before, after = self.samples[one], self.samples[next_one]
            return after[1] <= before[0] and both_in(before[2], after[2], depth)

        first = last = index
        while first and goes_on(first - 1, first):
            first -= 1
        while last + 1 < len(self.samples) and goes_on(last, last + 1):
            last += 1
        return Run(last - first + 1, self.samples[first][1], self.samples[last][0])


def both_in(one, other, depth):
    return (one and other and len(one) >= depth and len(other) >= depth
            and one[depth - 1] == other[depth - 1])


LATE = "samples ran in JIT code: the line may be a few statements late"


class Chart:
    def __init__(self, recording, meta, passes, threads, lines):
        """passes(recording, sample): whether its state is shown. threads: indices of the page,
        None for all."""
        self.recording, self.passes, self.lines = recording, passes, lines
        self.start_us = round(meta["start_ms"] * 1000)
        times = {self.us(sample) for sample in recording.samples}
        self.first, self.end = min(times), max(times) + 1
        self.tick = 1.5 * (self.end - self.first) / max(1, len(times) - 1)
        self.nodes, self.ids = [], {}
        self.late = oracle.View(recording).late()
        self.lanes = []
        self.add_lanes(meta, threads)

    def us(self, sample):
        return sample.time // 1000 - self.start_us

    def add_lanes(self, meta, threads):
        """Sort by process, the main thread first, then by weight."""
        own = collections.defaultdict(list)
        for sample in self.recording.samples:
            own[sample.thread].append(sample)
        by_identity = {self.identity(index): samples for index, samples in own.items()}
        found = []
        for index, thread in enumerate(meta["threads"]):
            samples = by_identity[thread["tid"], thread["name"]]
            if threads is None or index in threads:
                found.append((thread["process"] or 0, not thread["main"],
                              -sum(sample.wall for sample in samples), index, thread, samples))
        y = FIRST_LANE
        for *_, thread, samples in sorted(found, key=lambda row: row[:4]):
            lane = Lane(labels.escaped(thread["name"]) or "thread %d" % thread["tid"], y)
            self.fill(lane, samples)
            self.lanes.append(lane)
            y += HEAD + lane.rows * ROW + GAP

    def identity(self, index):
        thread = self.recording.threads[index]
        return thread.tid, labels.as_json(thread.name)

    def fill(self, lane, samples):
        before = self.first - self.tick
        for sample in samples:
            time = self.us(sample)
            start = max(time - max(sample.wall // 1000, 1), before)
            is_shown = self.passes(self.recording, sample)
            ids = self.ids_of(self.recording.stacks[sample.stack]) if is_shown else None
            lane.samples.append((time, start, ids))
            lane.rows = max(lane.rows, len(ids or ()))
            before = time

    def ids_of(self, frames):
        """A number for each box of a stack, which identifies the boxes outside of it, too."""
        if frames not in self.ids:
            found, outside = [], None
            for box in boxes(frames, self.lines):
                if (outside, box) not in self.ids:
                    self.ids[outside, box] = len(self.nodes)
                    self.nodes.append(box)
                outside = self.ids[outside, box]
                found.append(outside)
            self.ids[frames] = tuple(found)
        return self.ids[frames]

    def name(self, node):
        function, line = self.nodes[node]
        return "line %d" % line if line else name_of(function)

    def blocks(self, seen, begin, end):
        """The visible blocks of a stage that shows the times from begin to end. A pixel shows the
        sample at its middle."""
        width, height, scroll = seen["width"], seen["height"], seen["scroll"]
        for lane in self.lanes:
            top = lane.y - scroll + HEAD
            if lane.y - scroll > height or top + lane.rows * ROW < 0:
                continue
            columns = [lane.at(begin + (x + 0.5) / width * (end - begin)) for x in range(width)]
            stacks = [() if one is None else lane.samples[one][2] for one in columns]
            deepest = min(lane.rows, math.ceil((height - top) / ROW))
            for depth in range(max(1, math.floor(-top / ROW)), deepest + 1):
                yield from self.row(stacks, depth, top + (depth - 1) * ROW)

    def row(self, stacks, depth, y):
        x = 0
        for node, run in itertools.groupby(
                stacks, lambda ids: ids[depth - 1] if len(ids) >= depth else None):
            width = len(list(run))
            if node is not None:
                yield Block(x, y, width, self.name(node))
            x += width

    def tip(self, seen, x, y, begin, end):
        """The lines of the tooltip at a place; [] without a tooltip."""
        inside, time = y + seen["scroll"], begin + x / seen["width"] * (end - begin)
        for lane in self.lanes:
            if lane.y <= inside < lane.y + HEAD + lane.rows * ROW:
                depth = (inside - lane.y - HEAD) // ROW + 1
                index = lane.at(time) if depth > 0 else None
                if index is not None and len(lane.samples[index][2]) >= depth:
                    return self.run_text(lane, index, int(depth))
        return []

    def run_text(self, lane, index, depth):
        function, line = self.nodes[lane.samples[index][2][depth - 1]]
        run = lane.run(index, depth)
        start = max(run.start, self.first)
        return [name_of(function) + (" line %d" % line if line else ""), location(function, line),
                "%s from %s to %s" % tuple(map(duration, (
                    run.end - start, start - self.first, run.end - self.first))),
                "%s sample%s, %s" % (count(run.nr), "s in a row" * (run.nr > 1), lane.name),
                *[LATE] * ((function, line) in self.late and line > 0)]
