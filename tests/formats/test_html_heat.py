# SPDX-License-Identifier: MIT
"""The heatmap of the interactive flame graph, used in a headless browser: what is selected by a
pointer or keys has the sums that `report -f jsonl` gives for that time.
"""
import collections
import json
import pathlib
import random
import unittest

import oracle
import page_views
import subjects
import support
import tools
from oracle import Frame, Function, Process, Thread
from recording_writer import Writer

EPOCH_US = 1_767_225_600_000_000
BEGIN_NS = 5_000_000_000
ROWS = 50
S = 1_000_000  # in us
NOTHING = {"from": None, "to": None, "baseFrom": None, "baseTo": None, "threads": None}

PROCESSES = [Process(4242, "", 0, "shop"), Process(4243, "", 4242, "worker")]
FUNCTIONS = [Function(oracle.PYTHON, name, "/srv/%s.py" % name, 10) for name in ("a", "b", "c")]
STACKS = [tuple(Frame(FUNCTIONS[number], 11) for number in numbers)
          for numbers in ((0,), (0, 1), (0, 2), (1, 2))]


def make(path, tick_us, nr_ticks):
    """Write a recording of three threads, one in the first process and two in the second."""
    chance = random.Random(3)
    writer, ticks, before = Writer(chance, EPOCH_US), [], {}
    writer.info(pysample="1.2.3", start_unix_ns=EPOCH_US * 1000 + BEGIN_NS, pid=4242, mode="busy",
                command_line="shop", engine="tick", start_ns=BEGIN_NS, samples=0, ticks=nr_ticks,
                end_ns=BEGIN_NS + nr_ticks * tick_us * 1000, states="true")
    for process in PROCESSES:
        writer.process(process)
    for slot in range(3):
        writer.thread(slot, Thread(min(slot, 1), 4242 + slot, 0, slot < 2, "thread %d" % slot))
    for tick in range(nr_ticks):
        time = BEGIN_NS + (tick * tick_us + chance.randrange(tick_us // 2)) * 1000
        row = []
        for slot in range(3):
            is_idle = chance.random() < 0.3
            flags = oracle.CPU_MEASURED | (oracle.WAITING if is_idle else oracle.ON_CPU)
            wall = (time - before.get(slot, time)) // 1000
            row.append((slot, chance.choice(STACKS), wall, 0 if is_idle else wall, flags))
            before[slot] = time
        ticks.append((time, row))
    writer.samples(ticks, tick_us * 1000)
    writer.count(samples=3 * nr_ticks)
    pathlib.Path(path).write_bytes(writer.finish())


class Truth:
    """The samples of a recording as JSON Lines, by their time since the first one, in us."""

    def __init__(self, path, column_us):
        rows = collections.defaultdict(list)
        for line in support.read(path).splitlines():
            row = json.loads(line)
            rows[row["type"]].append(row)
        begin = rows["sample"][0]["time_ns"] // 1000
        self.cell_us = column_us // ROWS
        self.samples = [(
            one["time_ns"] // 1000 - begin, one["wall_ns"] // 1000, one["idle"],
            rows["process"][rows["thread"][one["thread"]]["process"]]["pid"],
            "%(name)s (%(path)s:%(first_line)d)" % rows["stack"][one["stack"]]["frames"][-1])
            for one in rows["sample"]]
        self.nr_columns = -(-(self.samples[-1][0] + 1) // column_us)

    def cells(self, first, last, pid=None):
        """(time, is idle, us, function) of the samples from one cell to another, [column, row]."""
        begin, end = (column * ROWS + row for column, row in (first, last))
        return [(time, idle, us, name) for time, us, idle, owner, name in self.samples
                if begin * self.cell_us <= time < (end + 1) * self.cell_us
                and pid in (None, owner)]


def sums(samples):
    own = collections.Counter()
    for _, _, us, name in samples:
        own[name] += us
    return {"total": sum(own.values()), "samples": len(samples), "self": dict(own)}


def busy(samples):
    return [sample for sample in samples if not sample[1]]


class Heat(unittest.TestCase):
    def use(self, name, column_us, steps):
        """Make a page, take steps in it, and return what is seen after each."""
        tick_us, nr_ticks = {"seconds": (10_000, 850), "hours": (2_500_000, 4320)}[name]
        path = subjects.path_of("heat-%s.pysample" % name)
        make(path, tick_us, nr_ticks)
        page = subjects.report(path, form="flamegraph", suffix=".html")
        truth = Truth(subjects.report(path, form="jsonl", options=["--mode", "wall"]), column_us)
        answer = tools.in_browser("page_heat.mjs", page, truth.nr_columns, steps(truth))
        self.assertEqual(answer["complaints"], [])
        self.assertEqual(answer["requests"], [pathlib.Path(page).as_uri()])
        return truth, answer["seen"]

    def same(self, seen, samples):
        self.assertTrue(samples, "nothing is compared")
        expected = sums(samples)
        got = {name: seen[name] for name in expected}
        got["self"] = {name: us for name, us in got["self"].items() if us}
        self.assertEqual(got, expected)

    def test_click(self):
        cells = [[0, 3], [4, 30], [8, 5]]
        truth, seen = self.use("seconds", S, lambda truth: [["click", cell] for cell in cells])
        for cell, one in zip(cells, seen, strict=True):
            self.same(one, busy(truth.cells(cell, cell)))
        self.assertEqual(seen[0]["scale"], "a column 1\u202fs, a row 20\u202fms")
        self.assertEqual(seen[0]["colours"][0], "0")
        self.assertRegex(seen[0]["colours"][1], "^(≥\u202f)?[0-9.]+\u202fms$")

    def test_tip(self):
        """The tooltip tells what a click would select."""
        cells = [[2, 3], [7, 40]]
        truth, seen = self.use("seconds", S, lambda truth: [["hover", cell] for cell in cells])
        for cell, one in zip(cells, seen, strict=True):
            every = truth.cells(cell, cell)
            shown = sums(busy(every))
            self.assertEqual(one["tip"], {
                "Time": page_views.duration(shown["total"]), "Samples": str(shown["samples"]),
                "Busy": "%d\u202f%%" % round(100 * shown["total"] / sums(every)["total"])})

    def test_drag(self):
        """Also from later to earlier, and past the edge."""
        drags = [([1, 30], [1, 44]), ([1, 45], [6, 10]), ([5, 49], [3, 0]), ([7, 20], [12, 70])]
        truth, seen = self.use("seconds", S, lambda truth: [["drag", *one] for one in drags])
        for (first, last), one in zip(drags, seen, strict=True):
            self.same(one, busy(truth.cells(*sorted((first, last)))))

    def test_two_ranges(self):
        ranges = ([1, 10], [3, 20]), ([5, 0], [6, 49])
        truth, seen = self.use("seconds", S, lambda truth: [
            ["drag", *ranges[0]], ["drag", *ranges[1], "Shift"], ["press", "Escape"],
            ["press", "Escape"]])
        first, both, one_left, all_again = seen
        shown, base = (busy(truth.cells(*cells)) for cells in ranges)
        self.same(first, shown)
        self.same(both, shown)
        self.assertEqual(both["base"], sums(base)["total"])
        self.assertEqual(both["legend"], ["grew", "unchanged", "shrank"])
        self.assertEqual(both["chips"][1], "base 5\u202fs – 7\u202fs ×")
        self.same(one_left, shown)
        self.assertEqual(one_left["base"], 0)
        self.same(all_again, busy(truth.cells([0, 0], [99, 0])))
        self.assertEqual([sum("idle" not in chip for chip in one["chips"]) for one in seen],
                         [1, 2, 1, 0])

    def test_filters(self):
        """Of a process, and with the samples of threads that wait."""
        cells = [2, 5], [4, 40]
        truth, seen = self.use("seconds", S, lambda truth: [
            ["only", "worker (4243)"], ["drag", *cells], ["hover", [3, 7]],
            ["set", {"state": "all"}], ["set", NOTHING]])
        worker = truth.cells(*cells, pid=4243)
        self.same(seen[0], busy(truth.cells([0, 0], [99, 0], pid=4243)))
        self.same(seen[1], busy(worker))
        self.assertEqual(seen[2]["tip"]["Samples"],
                         str(len(busy(truth.cells([3, 7], [3, 7], pid=4243)))))
        self.same(seen[3], worker)
        self.same(seen[4], truth.cells([0, 0], [99, 0]))

    def test_keys(self):
        """Arrows move a cell or a column; with Shift they extend, and Enter selects the base."""
        truth, seen = self.use("seconds", S, lambda truth: [
            ["focus"], ["press", "Home", "ArrowRight", "ArrowRight", "ArrowDown", "Enter"],
            ["press", *["Shift+ArrowDown"] * 3, "Enter"], ["press", "End", "Shift+Enter"]])
        end = truth.samples[-1][0] // truth.cell_us
        self.same(seen[1], busy(truth.cells([2, 1], [2, 1])))
        self.same(seen[2], busy(truth.cells([2, 1], [2, 4])))
        self.same(seen[3], busy(truth.cells([2, 1], [2, 4])))
        self.assertEqual(seen[3]["base"], sums(busy(truth.cells([0, end], [0, end])))["total"])

    def test_fragment(self):
        """A range that has only one end, or ends before it begins, is none."""
        fragments = [("from=%d&to=%d" % (2 * S, 3 * S), 1), ("from=%d" % (2 * S), 0),
                     ("baseFrom=%d&baseTo=%d" % (3 * S, 2 * S), 0), ("baseTo=%d" % S, 0),
                     ("baseFrom=%d&baseTo=%d" % (2 * S, 3 * S), 1)]
        _, seen = self.use("seconds", S, lambda truth: [
            ["fragment", fragment] for fragment, _ in fragments])
        self.assertEqual([sum("idle" not in chip for chip in one["chips"]) for one in seen],
                         [nr for _, nr in fragments])

    def test_hours(self):
        """Columns are as wide as is needed to show all, until they are wanted narrower."""
        def narrow(truth):
            """The first cell of a column of 30 s that has a sample of a busy thread."""
            time = next(time for time, *_ in busy(truth.cells([20, 0], [99, 0])))
            return divmod(time // (30 * S // ROWS), ROWS)

        truth, seen = self.use("hours", 60 * S, lambda truth: [
            ["click", [100, 20]], ["drag", [20, 30], [77, 3]],
            ["press", "+", "Home", *["ArrowRight"] * narrow(truth)[0],
             *["ArrowDown"] * narrow(truth)[1], "Enter"],
            ["press", "-"]])
        cell = narrow(truth)
        self.same(seen[0], busy(truth.cells([100, 20], [100, 20])))
        self.same(seen[1], busy(truth.cells([20, 30], [77, 3])))
        truth.cell_us //= 2
        self.same(seen[2], busy(truth.cells(cell, cell)))
        self.assertEqual([one["scale"].split(",")[0] for one in seen[1:]], [
            "a column %d\u202fs" % seconds for seconds in (60, 30, 60)])


if __name__ == "__main__":
    unittest.main()
