# SPDX-License-Identifier: MIT
"""What every format says of a recording of several processes."""
import collections
import gzip
import json
import re
import unittest

import labels
import process_tree
import subjects
import support
import tools
from oracle import Process
from process_tree import ENDED, PROCESSES, SERVER


def label(process):
    return "%s (%d)" % (process.name, process.pid)


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = subjects.path_of("processes.pysample")
        cls.times = process_tree.make(cls.path)

    def report(self, *options, form, paths=None):
        result = support.pysample("report", *(paths or [self.path]), "-f", form, "-q", *options)
        self.assertEqual(result.status, 0, result.stderr)
        return result.stdout

    def stacks(self, root=lambda number: (), wanted=lambda number: True):
        """The expected collapsed stacks, in samples."""
        found = collections.Counter()
        for (number, frames), ns in self.times.items():
            if wanted(number):
                names = tuple(map(labels.by_function, frames)) or (labels.IDLE,)
                found[root(number) + names] += ns // process_tree.TICK_NS
        return found

    def assert_collapsed(self, expected, *options, paths=None):
        text = self.report(*options, form="collapsed", paths=paths)
        subjects.assert_same(self, support.parse_collapsed(text), expected)

    def test_roots(self):
        def root(number):
            return (labels.collapsed(label(PROCESSES[number])),)

        self.assert_collapsed(self.stacks(root))
        self.assert_collapsed(self.stacks(lambda n: root(n) + (
            "thread MainThread (%d)" % PROCESSES[n].pid,)), "--threads")

    def test_merged(self):
        self.assert_collapsed(self.stacks(), "--merge-processes")

    def test_selected(self):
        self.assert_collapsed(self.stacks(wanted=lambda n: n == 3), "--process", "4713")
        self.assert_collapsed(self.stacks(wanted=lambda n: n == ENDED), "--process", "*helper?")
        self.assert_collapsed(self.stacks(wanted=lambda n: n != ENDED), "--process", SERVER,
                              "--merge-processes")

    def test_single(self):
        """A process has no root if no other has samples, whatever else is in the recordings."""
        names = {"one": "python3.11 app.py", "other": "python3.12 app.py"}
        paths = {one: subjects.path_of(one + ".pysample") for one in names}
        for pid, one in enumerate(names, 5000):
            self.times = process_tree.make(paths[one], {3: Process(pid, "", 0, names[one])})
        self.assert_collapsed(self.stacks(), paths=[paths["one"]])
        self.assert_collapsed(self.stacks() + self.stacks(), paths=list(paths.values()))
        text = self.report("--diff", paths["other"], form="collapsed", paths=[paths["one"]])
        self.assertEqual(
            {line.rsplit(" ", 2)[0]: line.split()[-2:] for line in text.splitlines()},
            {";".join(stack): [str(nr * process_tree.TICK_NS // 1000)] * 2
             for stack, nr in self.stacks().items()})

    def test_filtered(self):
        """Roots depend on the samples that pass, not on the mode that shows them."""
        def root(number):
            return (labels.collapsed(label(PROCESSES[number])),)

        self.assert_collapsed(self.stacks(wanted=lambda n: n == 3), "--thread", "4713")
        self.assert_collapsed(self.stacks(wanted=lambda n: n == ENDED), "--include", "help")
        self.times = {(number, frames): ns for (number, frames), ns in self.times.items()
                      if not process_tree.is_idle(frames)}
        self.assert_collapsed(self.stacks(root, lambda n: n == 3), "--mode", "busy",
                              "--process", "4710", "--process", "4713")

    def test_idle(self):
        """A state that only threads that wait have shows them, in whatever mode the run was."""
        path = subjects.path_of("busy.pysample")
        self.times = {(number, frames): ns
                      for (number, frames), ns in process_tree.make(path, mode="busy").items()
                      if process_tree.is_idle(frames)}
        for state in "idle", "!busy":
            self.assert_collapsed(self.stacks(), "--state", state, "--merge-processes",
                                  paths=[path])
            result = support.pysample("report", path, "--state", state, "--mode", "busy")
            self.assertEqual(result.status, 2, result.stdout)
        result = support.pysample("report", path, "--state", "busy", "--mode", "busy")
        self.assertEqual(result.status, 0, result.stderr)

    def test_idle_note(self):
        """It is printed for formats that hide threads that wait, now or at first."""
        path = subjects.path_of("noted.pysample")
        process_tree.make(path, mode="busy")
        for suffix, is_hidden in ("html", True), ("collapsed", True), ("jsonl", False):
            output = subjects.path_of("noted." + suffix)
            notes = support.pysample("report", path, "-o", output).stderr
            self.assertEqual("8 threads waited for 9.000 s of 17.000 s, which is hidden" in notes,
                             is_hidden, (suffix, notes))

    def test_all_idle(self):
        """A summary of samples of threads that waited says so of what the filter selects."""
        path = subjects.path_of("idle.pysample")
        process_tree.make(path, {0: PROCESSES[0], 3: PROCESSES[3]}, mode="busy")
        result = support.pysample("report", path, "--thread", "4710", "-f", "summary")
        self.assertIn("\nall samples selected are of threads that waited: use --idle\n",
                      result.stdout)
        self.assertIn("1 thread waited for 2.000 s of 2.000 s, which is hidden: none of them was "
                      "busy", result.stderr)
        process_tree.make(path, {0: PROCESSES[0]}, mode="busy")
        self.assertIn("\nall threads waited all the time: use --idle\n",
                      self.report(form="summary", paths=[path]))

    def test_summary(self):
        text = self.report(form="summary")
        rows = re.findall(r"^ +[\d.]+ +([\d.]+) +(\S.* \(\d+\))$", text, re.M)
        found = {name: seconds for seconds, name in rows}
        total = collections.Counter()
        for (number, _), ns in self.times.items():
            total[label(PROCESSES[number])] += ns
        self.assertEqual(found, {name: "%.3f" % (ns / 1e9) for name, ns in total.items()}, text)
        self.assertNotIn(SERVER + " (4711)", self.report("--merge-processes", form="summary"))

    def test_gecko(self):
        path = subjects.path_of("processes.json.gz")
        self.report("-o", path, form="gecko")
        with gzip.open(path) as file:
            threads = json.load(file)["threads"]
        self.assertEqual([(one["pid"], one["processName"]) for one in threads],
                         [(str(one.pid), one.name) for one in PROCESSES])
        first = threads[0]["processStartupTime"]
        self.assertEqual(round(threads[ENDED]["processStartupTime"] - first), 500)
        self.assertEqual(round(threads[ENDED]["processShutdownTime"] - first), 1500)
        self.assertIsNone(threads[1]["processShutdownTime"])
        with gzip.open(path) as file:
            strings = json.load(file)["shared"]["stringArray"]
        marked = [sum(end - start for name, start, end in zip(
            one["markers"]["name"], one["markers"]["startTime"], one["markers"]["endTime"],
            strict=True) if strings[name] == "Idle") for one in threads]
        idle = [sum(ns for (owner, frames), ns in self.times.items()
                    if owner == number and process_tree.is_idle(frames)) / 1e6
                for number in range(len(PROCESSES))]
        self.assertEqual([round(time) for time in marked], idle)

    def test_jsonl(self):
        rows = [json.loads(line) for line in self.report(form="jsonl").splitlines()]
        processes = [row for row in rows if row["type"] == "process"]
        self.assertEqual([(one["pid"], one["name"], one["parent_pid"]) for one in processes],
                         [(one.pid, one.name, one.parent or None) for one in PROCESSES])
        self.assertEqual([one["end_ns"] is not None for one in processes],
                         [number == ENDED for number in range(len(PROCESSES))])
        self.assertEqual(processes[ENDED]["end_ns"],
                         (process_tree.EPOCH_US + process_tree.ENDED_US) * 1000)

    def test_speedscope(self):
        names = [one["name"] for one in json.loads(self.report(form="speedscope"))["profiles"]]
        self.assertEqual(names, ["MainThread (%d), process %d: %s" % (one.pid, one.pid, one.name)
                                 for one in PROCESSES])

    def test_info(self):
        result = support.pysample("report", "--info", "--json", self.path)
        processes = json.loads(result.stdout)["processes"]
        for number, (got, process) in enumerate(zip(processes, PROCESSES, strict=True)):
            ns = sum(time for (owner, _), time in self.times.items() if owner == number)
            self.assertEqual((got["pid"], got["name"], got["threads"], got["wall_ns"]),
                             (process.pid, process.name, 1, ns))
            self.assertEqual(got["parent_pid"], process.parent or None)
            self.assertEqual(got["start_ns"],
                             (process_tree.EPOCH_US + process.start) * 1000)
            self.assertEqual(got["end_ns"] is None, number != ENDED)
        text = support.pysample("report", "--info", self.path).stdout
        self.assertNotIn(process_tree.UNSAMPLED.name, text)
        self.assertIn("process: gunicorn app:wsgi (4711), parent 4710: 1 thread, "
                      "200 samples, 2.000 s", text)

    def test_compared(self):
        """In a comparison, processes of equal names share a root."""
        text = self.report("--diff", self.path, form="collapsed")
        roots = {line.split(";")[0] for line in text.splitlines()}
        self.assertEqual(roots, {labels.collapsed(one.name) for one in PROCESSES})

    def test_page(self):
        path = subjects.path_of("processes.html")
        self.report("-o", path, form="flamegraph")
        one, view = label(PROCESSES[3]), labels.function_label(process_tree.VIEW, 5)
        asked = tools.in_browser("page_totals.mjs", path, [
            ["set", {}], ["zoom", [one]], ["set", {"merge": True}], ["set", {"threads": [3]}],
            ["zoom", [labels.function_label(process_tree.MAIN, 1)]]])
        self.assertEqual(asked["complaints"], [])
        found = [dict(totals["totals"]) for totals in asked["totals"]]
        ns = collections.Counter()
        for (number, frames), time in self.times.items():
            for name in {labels.by_function(frame) for frame in frames}:
                ns[number, name] += time
            ns[number, None] += time
        for number, process in enumerate(PROCESSES):
            self.assertEqual(found[0][label(process)], ns[number, None] // 1000)
        self.assertEqual(found[1][view], ns[3, view] // 1000)
        self.assertNotIn(one, found[2])
        self.assertEqual(found[2][view], sum(ns[n, view] for n in range(len(PROCESSES))) // 1000)
        self.assertEqual(found[3][view], ns[3, view] // 1000)
        self.assertEqual(found[4], found[3])

    def test_page_compared(self):
        """The page says that stacks are approximate, whatever else there is to say, and whether a
        filter leaves out samples of one side only."""
        path = subjects.path_of("compared.html")
        for mode in "busy", "wall":
            self.report("-o", path, "--diff", self.path, "--mode", mode, form="flamegraph")
            asked = tools.in_browser("page_totals.mjs", path, [
                ["set", {"state": state}] for state in ("busy", "all", "gil")])
            self.assertIn("approximate in part", asked["facts"])
            self.assertEqual([totals["oneSided"] for totals in asked["totals"]],
                             [mode == "wall", False, True])
