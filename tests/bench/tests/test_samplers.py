# SPDX-License-Identifier: MIT
"""The adapters, on output as its makers document it."""
import contextlib
import os
import unittest
from unittest import mock

from bench import work
from bench.processes import Finished
from bench.profilers import austin_run, profiling_sampling_run, py_spy_run
from bench.samplers import Pysample, pysample_run
from bench.tests.test_stacks import AUSTIN


def finished(stdout="", stderr=""):
    return Finished(stdout, stderr, 0.25, 2.0, 0.02, 2000, 0.5)


STATS = {"samples": 90, "lost": {"moved": 8, "vanished": 2}, "ticks": 50, "wall_s": 2.0,
         "max_rss_kib": 2500}


class Adapters(unittest.TestCase):
    def test_pysample(self):
        run = pysample_run(finished("<module> (x.py:1) 90\n"),
                           {**STATS, "reads": 51, "other_syscalls": 100, "clock_reads": 60,
                            "late_ticks": 1, "p99_lateness_ns": 7500})
        self.assertEqual((run.tried, run.complete, run.ticks), (100, 90, 50))
        self.assertEqual(run.stacks, {("<module>",): 90})
        self.assertEqual((run.reads, run.sleeps, run.clock_reads), (51, 100, 60))
        self.assertEqual((run.late_ticks, run.p99_late_us), (1, 7.5))
        self.assertEqual((run.rss_kib, run.waited_percent), (2500, 1))

    def test_older_pysample_that_reports_less(self):
        run = pysample_run(finished(), STATS)
        self.assertEqual(run.tried, 100)
        self.assertEqual([run.reads, run.clock_reads, run.p99_late_us], [None] * 3)

    def test_profiling_sampling(self):
        run = profiling_sampling_run(
            finished("Captured 2,000 samples in 2.50 seconds\nSample rate: 800 samples/sec\n"),
            "tid:1;x.py:<module>:1 1500\ntid:2;x.py:f:1 1900\n", 2)
        self.assertEqual((run.tried, run.complete, run.ticks), (4000, 3400, 2000))
        self.assertEqual(run.sampled_s, 2.5)
        with self.assertRaises(RuntimeError):
            profiling_sampling_run(finished("No samples"), "", 1)

    def test_py_spy(self):
        run = py_spy_run(finished(stderr="py-spy> Wrote raw data to 'x'. Samples: 98 Errors: 2"),
                         "<module> (x.py:1) 98\n", 1)
        self.assertEqual((run.tried, run.complete, run.ticks), (100, 98, 98))

    def test_austin(self):
        run = austin_run(finished(), AUSTIN, 1)
        self.assertEqual((run.tried, run.complete), (5, 3))
        self.assertAlmostEqual(run.sampled_s, 0.0004)
        with self.assertRaises(RuntimeError):
            austin_run(finished(), "MOJ\x03", 1)

    def test_a_sampler_that_works_while_stopped_is_restarted(self):
        for engine, is_restarted in (("bpf", True), ("tick", True), ("preempt", False)):
            self.assertEqual(Pysample("pysample", engine=engine).works_while_stopped, is_restarted)
        with mock.patch.object(work, "BEGIN_S", 0):
            with contextlib.closing(work.Restarted(["sleep", "100"])) as process:
                first = process.pid
                self.assertIsNone(process.poll())
                process.switch(False)
                self.assertIsNone(process.poll(), "it was turned off")
                self.assertFalse(os.path.exists("/proc/%d" % first))
                process.switch(True)
                self.assertNotEqual(process.pid, first)
                process.process.kill()
                process.process.wait()
                self.assertIsNotNone(process.poll(), "it has ended by itself")


if __name__ == "__main__":
    unittest.main()
