# SPDX-License-Identifier: MIT
"""From runs to rows, to a file and back, and to what was aimed at."""
import collections
import contextlib
import io
import json
import os
import tempfile
import types
import unittest

from bench import figures, quiet, report, results
from bench.catalogue import ALL_PROGRAMS
from bench.rows import Row, make_row
from bench.samplers import Run
from bench.work import WorkRow

CALLS = next(one for one in ALL_PROGRAMS if one.name == "calls-10")
HOT = ("<module>",) + ("recurse",) * 10 + ("calls",)
SAMPLER = types.SimpleNamespace(name="pysample", start_cpu_s=0.1, max_frames=None)
TARGET = types.SimpleNamespace(interpreter=types.SimpleNamespace(version="3.15.2"),
                               program=CALLS)


def run(complete, lost, cpu_s, sampled_s, stacks, **more):
    return Run(complete + lost, complete, complete + lost, sampled_s, cpu_s, 2048, 1.0, 0.0,
               collections.Counter(stacks), **more)


def row(**values):
    """One with nothing in it but that."""
    known = {"python": "3.15.2", "program": "calls-10", "rate": "max", "sampler": "pysample",
             "load": 0.0, **values}
    return results.known(Row, known)


def work_row(**values):
    return results.known(WorkRow, {"python": "3.15.2", "program": "work-10", "rate": "max",
                                   "sampler": "pysample", "load": 0.0, **values})


class Rows(unittest.TestCase):
    def setUp(self):
        truths = [collections.Counter({HOT: 50, HOT + ("leaf_a",): 50})] * 2
        runs = [run(60, 0, 0.2, 1.0, {HOT: 60}, reads=60),
                run(30, 10, 0.4, 1.0, {HOT: 20, HOT + ("leaf_a", "leaf_a"): 10}, reads=50)]
        self.row = make_row(TARGET, "1 kHz", SAMPLER, runs, truths, 1000.0, 0.1)

    def test_speed_and_cost(self):
        self.assertEqual((self.row.stacks_per_s, self.row.ticks_per_s), (45, 50))
        self.assertAlmostEqual(self.row.cpu_us_per_stack, (1e5 / 60 + 3e5 / 30) / 2)
        self.assertAlmostEqual(self.row.sleep_ratio, (1e5 / 60 + 3e5 / 40) / 2 / 1000)
        self.assertAlmostEqual(self.row.reads_per_tick, 1.1)
        self.assertIsNone(self.row.sleeps_per_tick)
        self.assertEqual(self.row.rss_mib, 2)

    def test_correctness_is_of_all_runs_together(self):
        self.assertEqual(self.row.lost_percent, 10)
        self.assertAlmostEqual(self.row.impossible_percent, 100 * 10 / 90)
        self.assertAlmostEqual(self.row.distance_percent, 50)
        self.assertEqual(self.row.drift_percent, 0)
        self.assertEqual((self.row.samples, self.row.stops), (90, 200))

    def test_drift_is_between_the_halves_of_the_truth(self):
        truths = [collections.Counter({HOT: 10, HOT + ("leaf_a",): count}) for count in (10, 30)]
        found = make_row(TARGET, "max", SAMPLER, [run(1, 0, 0.2, 1.0, {HOT: 1})], truths, None, 0)
        self.assertAlmostEqual(found.drift_percent, 25)

    def test_a_sampler_that_got_nothing_has_a_row(self):
        found = make_row(TARGET, "1 kHz", SAMPLER, [run(0, 5, 0.2, 1.0, {})], [], None, 0.0)
        self.assertEqual((found.stacks_per_s, found.lost_percent), (0, 100))
        self.assertIsNone(found.cpu_us_per_stack)
        self.assertIsNone(found.distance_percent)


class Resuming(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run.json")

    def begin(self, resumed=True, **settings):
        return results.begin(self.path, resumed, "a machine", settings)

    def test_goes_on_where_it_was(self):
        first = self.begin(turns=1)
        first.add("3.15 calls-10", [row(stacks_per_s=5)])
        first.add("work 3.15", work=[work_row(ratio=0.99)])
        second = self.begin(turns=1)
        self.assertEqual(second.done, {"3.15 calls-10", "work 3.15"})
        self.assertEqual(second.rows, first.rows)
        self.assertEqual(second.work, first.work)

    def test_begins_anew_if_not_asked(self):
        self.begin(turns=1).add("3.15 calls-10", [row()])
        self.assertEqual(self.begin(resumed=False, turns=1).done, set())

    def test_refuses_another_run(self):
        self.begin(turns=1).add("3.15 calls-10", [row()])
        with self.assertRaises(RuntimeError):
            self.begin(turns=2)

    def test_fields_of_another_version_of_the_script(self):
        self.begin(turns=1).add("3.15 calls-10", [row(stacks_per_s=5)])
        with open(self.path, encoding="utf-8") as file:
            content = json.load(file)
        content["rows"][0]["colour"] = "green"
        del content["rows"][0]["rss_mib"]
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        self.assertEqual(self.begin(turns=1).rows, [row(stacks_per_s=5)])


def printed(function, *args):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        function(*args)
    return text.getvalue()


def figures_of(rows, work=()):
    """{what was aimed at: (aim, reached)} as printed"""
    text = printed(figures.print_figures, types.SimpleNamespace(rows=rows, work=list(work)))
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: tuple(cells[1:]) for cells in lines[2:]}


class Header(unittest.TestCase):
    def test_settings_are_words(self):
        as_ever = {"pysample": "0123456789abcdef", "seconds": None, "turns": None, "stops": 1000,
                   "quick": False, "rates": ["max", "1 kHz"], "pairs": 60}
        said = report.describe_settings(as_ever)
        self.assertEqual(said, "rates: max and 1 kHz; 1000 stops for the truth; 60 pairs of on and "
                         "off with work; a pysample whose SHA-256 begins with 0123456789abcdef")
        said = report.describe_settings({**as_ever, "quick": True, "seconds": 0.2, "turns": 2})
        self.assertTrue(said.startswith("a quick run; rates: max and 1 kHz; 0.2 s a run; 2 turns "
                                        "of each; "), said)


class Figures(unittest.TestCase):
    def test_reached_and_missed(self):
        found = figures_of([row(stacks_per_s=400000, cpu_us_per_stack=2.51),
                            row(sampler="profiling.sampling", stacks_per_s=80000)])
        self.assertEqual(found["complete stacks/s, depth 10"], ("≥ 400000", "400000"))
        self.assertEqual(found["CPU µs/stack, depth 10"], ("≤ 2.5", "2.51 **no**"))
        self.assertEqual(found["the same / profiling.sampling's, depth 10"],
                         ("≥ 7", "5.0 **no**"))
        self.assertNotIn("complete stacks/s, depth 100", found)

    def test_worst_is_named(self):
        found = figures_of([row(lost_percent=0.1), row(rate="1 kHz", lost_percent=0.2),
                            row(program="churn", lost_percent=0.6),
                            row(program="chains", sampler="profiling.sampling", lost_percent=9)])
        self.assertEqual(found["lost %, worst"], ("≤ 0.5", "0.60 (churn, max) **no**"))

    def test_limits_depend_on_the_version(self):
        found = figures_of([row(distance_percent=2.5),
                            row(python="3.14.10", distance_percent=2.5),
                            row(python="3.10.1", distance_percent=50, lost_percent=1)])
        self.assertEqual(found["TVD % of calls, worst"],
                         ("≤ 2 / 3", "2.5 (calls-10, max) **no**", "2.5 (calls-10, max)",
                          "50.0 (calls-10, max)"))
        self.assertEqual(found["lost %, worst"], ("≤ 0.5", "–", "–", "1.00 (calls-10, max)"))

    def test_work(self):
        found = figures_of([], [work_row(ratio=0.95, low=0.94, high=0.96)])
        self.assertEqual(found["the target's work at max, on / off"],
                         ("–", "0.950 (0.940–0.960)"))


class Marks(unittest.TestCase):
    def test_rows_of_a_busy_machine(self):
        for values, marked in (({}, False), ({"load": quiet.MAX_LOAD + 0.1}, True),
                               ({"waited_percent": quiet.MAX_WAITED_PERCENT + 1}, True),
                               ({"target_waited_percent": quiet.MAX_WAITED_PERCENT + 1}, True)):
            text = printed(report.print_rows, "3.15.2", [row(**values)])
            self.assertEqual("calls-10 (!)" in text, marked, values)

    def test_refusal(self):
        looks = iter([0.9, 0.9, 0.0, 0.9])
        self.addCleanup(setattr, quiet, "look", quiet.look)
        self.addCleanup(setattr, quiet, "PATIENCE_S", quiet.PATIENCE_S)
        quiet.look = lambda target_pid: next(looks)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(quiet.wait(anyway=True), 0.9)
            self.assertEqual(quiet.wait(anyway=False), 0.0)
            quiet.PATIENCE_S = -1
            with self.assertRaises(quiet.Busy):
                quiet.wait(anyway=False)


if __name__ == "__main__":
    unittest.main()
