# SPDX-License-Identifier: MIT
"""From runs to rows, to a file and back, and to the aims."""
import collections
import contextlib
import io
import json
import os
import tempfile
import types
import unittest

from bench import aims, machine_load, report, results
from bench.catalogue import ALL_PROGRAMS
from bench.row import Row, make_row
from bench.samplers import Run
from bench.work import WorkRow

CALLS = next(one for one in ALL_PROGRAMS if one.name == "calls-10")
HOT = ("<module>",) + ("recurse",) * 10 + ("calls",)
SAMPLER = types.SimpleNamespace(name="pysample", start_cpu_s=0.1, max_frames=None)
TARGET = types.SimpleNamespace(interpreter=types.SimpleNamespace(version="3.15.2"),
                               program=CALLS)


def run(complete, nr_lost, cpu_s, sampled_s, stacks, **more):
    return Run(complete + nr_lost, complete, complete + nr_lost, sampled_s, cpu_s, 2048, 1.0, 0.0,
               collections.Counter(stacks), **more)


def row(**values):
    """A row with nothing but these values."""
    known = {"python": "3.15.2", "program": "calls-10", "rate": "1 kHz", "sampler": "pysample",
             "load": 0.0, **values}
    return results.known(Row, known)


def work_row(**values):
    return results.known(WorkRow, {"python": "3.15.2", "program": "work-10", "rate": "1 kHz",
                                   "sampler": "pysample", "load": 0.0, **values})


class Rows(unittest.TestCase):
    def setUp(self):
        truths = [collections.Counter({HOT: 50, HOT + ("leaf_a",): 50})] * 2
        runs = [run(60, 0, 0.2, 1.0, {HOT: 60}, reads=60),
                run(30, 10, 0.4, 1.0, {HOT: 20, HOT + ("leaf_a", "leaf_a"): 10}, reads=50)]
        self.row = make_row(TARGET, "1 kHz", SAMPLER, runs, truths, 1000.0, 0.1, 0.0)

    def test_speed_and_cost(self):
        self.assertEqual((self.row.stacks_per_s, self.row.ticks_per_s), (45, 50))
        self.assertAlmostEqual(self.row.cpu_us_per_stack, (1e5 / 60 + 3e5 / 30) / 2)
        self.assertAlmostEqual(self.row.sleep_ratio, (1e5 / 60 + 3e5 / 40) / 2 / 1000)
        self.assertAlmostEqual(self.row.reads_per_tick, 1.1)
        self.assertIsNone(self.row.sleeps_per_tick)
        self.assertEqual(self.row.rss_mib, 2)

    def test_correctness_is_of_all_runs_together(self):
        self.assertEqual(self.row.lost_percent, 10)
        self.assertIsNone(self.row.lost_percents, "one run does not tell")
        self.assertAlmostEqual(self.row.impossible_percent, 100 * 10 / 90)
        self.assertEqual((self.row.samples, self.row.stops), (90, 200))

    def test_distances_are_of_the_windows(self):
        self.assertAlmostEqual(self.row.whole_floor, 0, delta=10)
        self.assertGreater(self.row.whole_percent, self.row.whole_floor + 20)
        self.assertEqual(self.row.whole_excess, self.row.whole_percent - self.row.whole_floor)

    def test_losses_are_reported_by_reason(self):
        runs = [run(90, 10, 0.2, 1.0, {HOT: 90}, lost={"moved": 6, "late": 4}),
                run(95, 5, 0.2, 1.0, {HOT: 95}, lost={"moved": 5, "late": 0})]
        found = make_row(TARGET, "1 kHz", SAMPLER, runs, [], None, 0.0, 0.0, "as nobody")
        self.assertEqual(found.lost_percents, {"moved": 5.5, "late": 2})
        self.assertEqual(found.condition, "as nobody")
        self.assertEqual(report.reasons_text(found.lost_percents), "late 2.00, moved 5.50")

    def test_sampler_without_stacks_has_a_row(self):
        found = make_row(TARGET, "1 kHz", SAMPLER, [run(0, 5, 0.2, 1.0, {})], [], None, 0.0, 0.0)
        self.assertEqual((found.stacks_per_s, found.lost_percent), (0, 100))
        self.assertIsNone(found.cpu_us_per_stack)
        self.assertIsNone(found.whole_percent)
        self.assertIsNone(found.whole_excess)


class Resuming(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run.json")

    def begin(self, resumed=True, **settings):
        return results.begin(self.path, resumed, "a machine", settings)

    def test_resumes_where_it_stopped(self):
        first = self.begin(turns=1)
        first.add("3.15 calls-10", [row(stacks_per_s=5)])
        first.add("work 3.15", work=[work_row(ratio=0.99)])
        second = self.begin(turns=1)
        self.assertEqual(second.done, {"3.15 calls-10", "work 3.15"})
        self.assertEqual(second.rows, first.rows)
        self.assertEqual(second.work, first.work)

    def test_starts_over_without_resume(self):
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
    """{figure: (aim, reached)} as printed"""
    text = printed(aims.print_aims, types.SimpleNamespace(rows=rows, work=list(work)))
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: tuple(cells[1:]) for cells in lines[2:]}


class Header(unittest.TestCase):
    def test_settings_are_words(self):
        as_ever = {"pysample": "0123456789abcdef", "seconds": None, "turns": 20, "stops": 1000,
                   "quick": False, "rates": ["1 kHz", "100 Hz"], "pairs": 30}
        said = report.describe_settings(as_ever)
        self.assertEqual(said, "rates: 1 kHz and 100 Hz; 20 turns; 1000 stops for the truth in "
                         "each; 30 pairs of on and off with work; pysample with SHA-256 "
                         "0123456789abcdef…")
        said = report.describe_settings({**as_ever, "quick": True, "seconds": 0.2})
        self.assertTrue(said.startswith("a quick run; rates: 1 kHz and 100 Hz; 0.2 s per window; "
                                        "20 turns; "), said)


def distances_of(profile, floor):
    one = {"profile": profile, "floor": floor, "floor_low": floor - 1, "floor_high": floor + 1}
    return {"self": one, "pair": one, "whole": one}


class Figures(unittest.TestCase):
    DISTANCE = "whole stacks at 1 kHz: distance minus floor, %, worst"

    def test_reached_and_missed(self):
        self.assertEqual(figures_of([row(distances=distances_of(3.5, 3))])[self.DISTANCE],
                         ("≤ 1", "0.5 (calls-10, 1 kHz)"))
        found = figures_of([row(distances=distances_of(3.5, 3)),
                            row(program="chains", distances=distances_of(9, 3)),
                            row(program="churn", distances=distances_of(90, 3),
                                sampler="profiling.sampling"),
                            row(program="genexprs", distances=distances_of(99, 3),
                                condition="as nobody")])
        self.assertEqual(found[self.DISTANCE], ("≤ 1", "6.0 (chains, 1 kHz) **no**"))
        self.assertNotIn("RSS MiB, worst", found)

    def test_programs_that_pass_the_gil_have_their_own_aim(self):
        found = figures_of([row(program="handoff-queues", distances=distances_of(5, 3)),
                            row(program="pool", distances=distances_of(4, 3))])
        self.assertNotIn(self.DISTANCE, found)
        heading = "programs that hand the GIL over: distance minus floor, by %s, worst"
        for kind in "function", "whole stack":
            self.assertEqual(found[heading % kind], ("≤ 3", "2.0 (handoff-queues, 1 kHz)"))
        self.assertNotIn(heading % "thread", found)  # no row has them
        distances = {**distances_of(4, 3), "thread": distances_of(7, 3)["self"]}
        found = figures_of([row(program="pool", distances=distances)])
        self.assertEqual(found[heading % "thread"], ("≤ 3", "4.0 (pool, 1 kHz) **no**"))

    def test_of_three_runs_the_median_counts(self):
        rows = [row(distances=distances_of(profile, 3), condition=condition)
                for profile, condition in ((4.5, ""), (3.5, "second run"), (3.7, "third run"))]
        self.assertTrue(aims.is_near_limit(rows, "3.15.2", "calls-10"))
        self.assertEqual(figures_of(rows)[self.DISTANCE], ("≤ 1", "0.7 (calls-10, 1 kHz)"))
        self.assertEqual(figures_of(rows[:1])[self.DISTANCE],
                         ("≤ 1", "1.5 (calls-10, 1 kHz) **no**"))
        for excess, program, is_near in ((0.9, "calls-10", False), (2.1, "calls-10", False),
                                         (1.9, "pool", False), (3.5, "pool", True)):
            one = row(program=program, distances=distances_of(3 + excess, 3))
            self.assertEqual(aims.is_near_limit([one], "3.15.2", program), is_near, program)

    def test_each_engine_has_a_column(self):
        rows = [row(sampler="pysample bpf", distances=distances_of(3.5, 3), rss_mib=8),
                row(sampler="pysample preempt", distances=distances_of(5, 3), rss_mib=6),
                row(sampler="py-spy", distances=distances_of(50, 3))]
        found = figures_of(rows)
        self.assertEqual(found[self.DISTANCE], (
            "≤ 1", "0.5 (calls-10, 1 kHz)", "2.0 (calls-10, 1 kHz) **no**"))
        self.assertEqual(found["RSS MiB, worst"], (
            "≤ 5 / 10", "8.0 (calls-10, 1 kHz)", "6.0 (calls-10, 1 kHz) **no**"))
        text = printed(report.print_overview, rows)
        self.assertIn("| program | 3.15.2 bpf | 3.15.2 preempt |", text)
        self.assertIn("| `calls-10` | 3.5 (3.0) | **5.0 (3.0)** |", text)

    def test_work_of_each_engine(self):
        found = figures_of([], [work_row(rate="100 Hz", sampler="pysample bpf",
                                         sampler_cpu_percent=0.2),
                                work_row(rate="100 Hz", sampler="pysample preempt",
                                         sampler_cpu_percent=0.9)])
        self.assertEqual(found["sampler's CPU at 100 Hz, work-10, % of a core"],
                         ("≤ 0.7", "0.20", "0.90 **no**"))
        text = printed(report.print_lost_work, [
            work_row(sampler="pysample bpf", wall_ratio=0.99, wall_low=0.98, wall_high=1.001),
            work_row(sampler="pysample preempt", wall_ratio=0.95),
            work_row(sampler="perf record", wall_ratio=0.5)])
        self.assertIn("| `work-10` | 1.0 (-0.1 to 2.0) | 5.0 (– to –) |", text)

    def test_conditions_have_figures_of_their_own(self):
        found = figures_of([row(lost_percent=5), row(lost_percent=0.4, condition="as nobody"),
                            row(lost_percent=3.5, condition="beside busy loops")])
        self.assertEqual(found["lost %, worst"], ("–", "5.00 (calls-10, 1 kHz)"))
        self.assertEqual(found["lost %, worst, as nobody"], ("≤ 0.5", "0.40 (calls-10, 1 kHz)"))
        self.assertEqual(found["lost %, worst, beside busy loops"],
                         ("≤ 3", "3.50 (calls-10, 1 kHz) **no**"))

    def test_impossible_stacks_are_counted(self):
        found = figures_of([row(samples=1000, impossible_percent=0.2),
                            row(rate="5 kHz", samples=500, impossible_percent=0)])
        self.assertEqual(found["impossible stacks"], ("≤ 0", "2 of 1500 **no**"))

    def test_deep_stacks_beside_shallow_ones(self):
        found = figures_of([row(lost_percents={"moved": 0.2}),
                            row(program="calls-1000", lost_percents={"moved": 0.9, "late": 5})])
        self.assertEqual(found["moved %, deep minus shallow"], ("≤ 0.5", "0.70 **no**"))

    def test_losses_are_reported_by_depth(self):
        rows = [row(lost_percents={"moved": 0.2}), row(program="chains", lost_percents={"late": 1}),
                row(program="calls-1000", lost_percents={"moved": 0.9, "late": 5}),
                row(program="lambdas", lost_percents={"code": 50})]
        text = printed(aims.print_aims, types.SimpleNamespace(rows=rows, work=[]))
        self.assertIn("| up to 20 | 1 kHz | 3.15.2 | 0.60 | late 0.50, moved 0.10 |", text)
        self.assertIn("| 500 and more | 1 kHz | 3.15.2 | 5.90 | late 5.00, moved 0.90 |", text)
        self.assertNotIn("| 100 |", text)
        rows = [row(sampler="pysample bpf", program="calls-100", lost_percents={})]
        text = printed(aims.print_aims, types.SimpleNamespace(rows=rows, work=[]))
        self.assertIn("| 100 | 1 kHz | 3.15.2 bpf | 0.00 | – |", text)

    def test_work_beside_perf(self):
        found = figures_of([], [work_row(wall_ratio=0.95, wall_low=0.94, wall_high=0.96),
                                work_row(sampler="perf record", wall_ratio=0.96, wall_low=0.95,
                                         wall_high=0.97)])
        self.assertEqual(found["work lost at 1 kHz / that of perf record, work-10"],
                         ("≤ 1.7", "1.50 (5.0, at most 6.0, and 4.0 %)"))

    def test_sampler_cpu(self):
        found = figures_of([], [work_row(rate="100 Hz", sampler_cpu_percent=0.6),
                                work_row(rate="100 Hz", program="work-10-64",
                                         sampler_cpu_percent=1.6),
                                work_row(sampler_cpu_percent=6)])
        self.assertEqual(found["sampler's CPU at 100 Hz, work-10, % of a core"], ("≤ 0.7", "0.60"))
        self.assertEqual(found["sampler's CPU at 100 Hz, work-10-64, % of a core"],
                         ("≤ 1.5", "1.60 **no**"))


class Marks(unittest.TestCase):
    def test_rows_of_a_busy_machine(self):
        for values, marked in (({}, False), ({"load": machine_load.MAX_LOAD + 0.1}, True),
                               ({"stolen_percent": machine_load.MAX_STOLEN_PERCENT + 0.1}, True),
                               ({"waited_percent": machine_load.MAX_WAITED_PERCENT + 1}, True),
                               ({"target_waited_percent": machine_load.MAX_WAITED_PERCENT + 1},
                                True)):
            text = printed(report.print_rows, "3.15.2", [row(**values)])
            self.assertEqual("calls-10 (!)" in text, marked, values)

    def test_refusal(self):
        loads = iter([0.9, 0.9, 0.0, 0.9])
        self.addCleanup(setattr, machine_load, "load_of_others", machine_load.load_of_others)
        self.addCleanup(setattr, machine_load, "PATIENCE_S", machine_load.PATIENCE_S)
        machine_load.load_of_others = lambda target_pid: next(loads)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(machine_load.wait_until_quiet(anyway=True), 0.9)
            self.assertEqual(machine_load.wait_until_quiet(anyway=False), 0.0)
            machine_load.PATIENCE_S = -1
            with self.assertRaises(machine_load.Busy):
                machine_load.wait_until_quiet(anyway=False)


if __name__ == "__main__":
    unittest.main()
