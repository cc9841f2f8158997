# SPDX-License-Identifier: MIT
"""From recordings and accounts of process trees to figures."""
import collections
import json
import types
import unittest

from bench import tree_brief, tree_children, tree_cost, tree_shares
from bench.catalogue import tree
from bench.recordings import Sample, samples_in
from bench.tests.test_results import printed

INTERPRETER = types.SimpleNamespace(version="3.15.2")
NO_LOSS = {"lost": {"moved": 0}, "samples": 1}


class Recorded(unittest.TestCase):
    def test_samples_belong_to_processes_and_have_the_time_of_the_clock(self):
        rows = ({"type": "run", "id": 0, "run": {}},
                {"type": "process", "id": 0, "pid": 70},
                {"type": "process", "id": 1, "pid": 71},
                {"type": "thread", "id": 0, "process": 1},
                {"type": "thread", "id": 1, "process": 0},
                {"type": "stack", "id": 0, "frames": [{"name": "<module>"}, {"name": "parse"}]},
                {"type": "stack", "id": 1, "frames": []},
                {"type": "sample", "thread": 0, "stack": 0, "time_ns": 1010, "cpu_ns": 5},
                {"type": "sample", "thread": 1, "stack": 1, "time_ns": 1020, "cpu_ns": None})
        self.assertEqual(list(samples_in(map(json.dumps, rows), 1000)),
                         [Sample(71, 10, 5, "parse"), Sample(70, 20, 0, "")])


class Programs(unittest.TestCase):
    def test_stacks_of_workers(self):
        for text, is_possible in (
                ("<module>", True), ("<module>;start;wait", True),
                ("<module>;start;work_for_ever;work;store", True), ("<module>;work", False),
                ("<module>;start;work_for_ever;parse", False)):
            self.assertEqual(tree("workers-busy-64").can_have(tuple(text.split(";"))),
                             is_possible, text)

    def test_stacks_of_children(self):
        for text, is_possible in ("<module>;start;work", True), ("<module>;work", False):
            self.assertEqual(tree("children-1000-20").can_have(tuple(text.split(";"))),
                             is_possible, text)


def account(time_ns, run_ns, **spent_ns):
    return tree_shares.Account(time_ns, run_ns, collections.Counter(spent_ns))


class Shares(unittest.TestCase):
    BEFORE = {1: account(100, 0), 2: account(110, 50, parse=30, compute=20),
              3: account(120, 70, parse=70)}
    AFTER = {1: account(200, 0), 2: account(210, 110, parse=70, compute=40),
             3: account(220, 110, parse=70, compute=40)}

    def run_of(self, *samples, stats=NO_LOSS):
        return tree_shares.make_run([Sample(*one) for one in samples], self.BEFORE, self.AFTER,
                                    stats)

    def test_a_perfect_profile(self):
        run = self.run_of((2, 150, 40, "parse"), (2, 160, 20, "compute"), (3, 170, 40, "compute"))
        self.assertEqual((run.processes.profile, run.functions.profile), (0, 0))
        self.assertGreater(run.processes.floor, 10)  # of three samples
        self.assertAlmostEqual(run.processes.excess, -run.processes.floor)
        self.assertEqual((run.nr_samples, run.cpu_percent, run.lost_percent), (3, 100, 0))

    def test_time_of_another_function_and_of_another_process(self):
        run = self.run_of((2, 150, 20, "parse"), (2, 160, 40, "work"), (3, 170, 40, "compute"))
        self.assertAlmostEqual(run.processes.profile, 0)
        self.assertAlmostEqual(run.functions.profile, 40)
        run = self.run_of((1, 150, 40, "parse"), (2, 160, 20, "compute"), (3, 170, 40, "compute"))
        self.assertAlmostEqual(run.processes.profile, 40)

    def test_only_samples_between_the_accounts_of_their_process_count(self):
        run = self.run_of((2, 109, 90, "parse"), (2, 110, 60, "parse"), (2, 210, 90, "parse"),
                          (3, 119, 90, "compute"), (3, 219, 40, "compute"), (4, 150, 90, "parse"),
                          (3, 160, 0, "parse"))
        self.assertEqual(run.nr_samples, 2)
        self.assertEqual(run.processes.profile, 0)

    def test_without_samples(self):
        run = self.run_of(stats={"lost": {"moved": 3, "late": 1}, "samples": 12})
        self.assertIsNone(run.processes)
        self.assertEqual((run.cpu_percent, run.lost_percent), (0, 25))

    def test_medians_are_compared_with_the_aims(self):
        runs = [tree_shares.Run(tree_shares.Distance(9.0, 8.0), tree_shares.Distance(12.5, 10.0),
                                500, 98.0, 2.5)]
        text = printed(tree_shares.print_rows, INTERPRETER,
                       {(case, "bpf"): runs for case in tree_shares.CASES})
        self.assertIn("| 64 busy workers | 100 | bpf | 500 (500–500) | 98.0 (98.0–98.0) "
                      "| 9.0 (9.0–9.0) | 8.0 | 1.0 (1.0–1.0) | ≤ 2 "
                      "| 12.5 (12.5–12.5) | 10.0 | 2.5 (2.5–2.5) **no** | ≤ 2 "
                      "| 2.50 (2.50–2.50) **no** | ≤ 2 |", text)
        self.assertIn("| 2.5 (2.5–2.5) | – | 2.50 (2.50–2.50) | – |", text)


class Costs(unittest.TestCase):
    def test_table(self):
        text = printed(tree_cost.print_rows, INTERPRETER, {
            (8, "bpf"): tree_cost.Costs([5.0], [30000]),
            (64, "bpf"): tree_cost.Costs([2.0, 3.5, 9.0], [20480, 20480, 20000])})
        self.assertIn("| 8 | bpf | 5.00 (5.00–5.00) | – | 30000 (30000–30000) | – |", text)
        self.assertIn("| 64 | bpf | 3.50 (2.00–9.00) **no** | ≤ 3 | 20480 (20000–20480) "
                      "| ≤ 20480 |", text)


class Children(unittest.TestCase):
    def test_what_is_said_of_missed_processes(self):
        self.assertEqual(tree_children.nr_reported(
            "pysample: 27 processes ended before they could be read\n"
            "pysample: up to 3 processes came and went unseen\n"), 30)
        self.assertEqual(tree_children.nr_reported(
            "pysample: 1 process ended before it could be read\n"), 1)
        self.assertEqual(tree_children.nr_reported("pysample: new processes are reported\n"), 0)

    def test_table(self):
        text = printed(tree_children.print_rows, INTERPRETER, {
            "bpf": [tree_children.Run(1000, 28, 28), tree_children.Run(1000, 4, 0),
                    tree_children.Run(1000, 12, 12)]})
        self.assertIn("| bpf | 1000 | 12 (4–28) | 1.2 (0.4–2.8) **no** | ≤ 1 | 12 (0–28) |", text)


class Brief(unittest.TestCase):
    def test_times_that_a_script_notes(self):
        self.assertEqual(tree_brief.times_in("fork 12 1000 2000\nscript 11 900 3000\n"),
                         {"fork": (12, 1000, 2000), "script": (11, 900, 3000)})

    def test_unseen(self):
        samples = [Sample(7, ms * 1000000, 0, "") for ms in (95, 112, 150, 391, 402)]
        begin_ns, end_ns = 100 * 1000000, 400 * 1000000
        self.assertEqual(tree_brief.unseen_ms(samples, 7, begin_ns, end_ns), (12, 9))
        self.assertIsNone(tree_brief.unseen_ms(samples, 8, begin_ns, end_ns))

    def test_table(self):
        unseen = tree_brief.Unseen()
        for one in (12.0, 3.0), (11.0, 9.0), None, (2.0, 20.0):
            tree_brief.add(unseen, one)
        text = printed(tree_brief.print_rows, INTERPRETER,
                       {("run -s", "fork", "1 kHz", "bpf"): unseen})
        self.assertIn("| run -s | forked by it | 1 kHz | bpf | 4 | 1 | 11.0 (12.0) **no** "
                      "| 9.0 (20.0) | ≤ 10 |", text)


if __name__ == "__main__":
    unittest.main()
