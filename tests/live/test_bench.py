# SPDX-License-Identifier: MIT
"""scripts/bench runs to its end; its figures do not matter here."""
import json
import os
import subprocess
import tempfile
import unittest

import support

BUILD = os.path.dirname(support.PYSAMPLE)
RATES = {"5 kHz", "1 kHz", "100 Hz"}


def bench(*args):
    result = subprocess.run(
        [os.path.join(support.ROOT, "scripts", "bench"), *args, "--no-build", "--build", BUILD,
         "--anyway", "--python", support.newest_interpreter().minor],
        capture_output=True, text=True, timeout=10 * support.PATIENCE_S)
    if result.returncode != 0:
        raise AssertionError("status %d: %s" % (result.returncode, result.stderr[-2000:]))
    return result.stdout


@unittest.skipIf(support.is_sanitized(), "tested with the build without sanitizers")
@unittest.skipUnless(os.access(os.path.join(BUILD, "tests", "stopwalk"), os.X_OK),
                     "the benchmark programs are not in the folder of pysample")
class Bench(unittest.TestCase):
    is_quick = False

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run.json")

    def results(self):
        return json.loads(support.read(self.path))

    def test_sampling(self):
        asked = ["--quick", "--only", "calls-10", "--seconds", "0.2", "--stops", "50",
                 "--resume", self.path]
        text = bench(*asked)
        found = self.results()
        ours = [row for row in found["rows"] if row["sampler"].startswith("pysample ")]
        for engine in {row["sampler"] for row in ours}:
            self.assertEqual({row["rate"] for row in ours if row["sampler"] == engine}, RATES)
        self.assertIn("pysample preempt", {row["sampler"] for row in ours})
        for row in ours:
            self.assertEqual(row["program"], "calls-10")
            self.assertGreater(row["samples"], 0)
            self.assertGreaterEqual(row["stops"], 50)  # in each turn
            self.assertEqual(row["impossible_percent"], 0)
            self.assertIsNone(row["distances"].pop("thread"))  # there is only one
            for distance in row["distances"].values():
                self.assertLessEqual(distance["profile"], 100)
                self.assertLessEqual(distance["floor_low"], distance["floor_high"])
        self.assertIn("| calls-10 ", text)
        self.assertIn("### Aims and results", text)
        # A complete run is not measured again.
        found = self.results()
        self.assertEqual(bench(*asked), text)
        self.assertEqual(self.results(), found)

    def test_compare(self):
        text = bench("compare", support.PYSAMPLE, BUILD, "--only", "chains", "--rate", "1k",
                     "--seconds", "0.2", "--stops", "50", "--turns", "1", "--processes", "1")
        for build in "AB":
            self.assertRegex(text, r"\| chains \| 1 kHz \| %s \| \d" % build)
        self.assertRegex(text, r"\| chains \| 1 kHz \| 1 \| \d")

    def test_core(self):
        text = bench("core", "--quick", "--runs", "2")
        for core in "1 thread", "51 threads":
            self.assertRegex(text, r"\| %s \| [^|]+ \| pysample core \| \d" % core)

    def test_proofs(self):
        """The command fails if a proof was wrong."""
        text = bench("proofs", "--quick", "--seconds", "0.5", "--json", self.path)
        found = {row["target"] for row in self.results()["rows"]}
        self.assertLessEqual({"pinned", "maps in a second thread", "execs"}, found)
        self.assertRegex(text, r"\| all \| \d")

    def test_waiting(self):
        text = bench("waiting", "--quick", "--runs", "1", "--seconds", "0.2")
        for mode, count in (("wall", "1, 1"), ("top", "60, 4"), ("cpu", "1000, 1")):
            self.assertRegex(text, r"\| Python only \| %s \| %s \| [^|]+ \| \d"
                             % (mode, count))

    def test_tick(self):
        text = bench("tick", "--quick", "--seconds", "0.2")
        for program in "clocked-socket-1", "clocked-poll-4", "clocked-sleep-10", "clocked-spin-1":
            self.assertRegex(text, r"\| %s \| preempt \| \d" % program)

    def test_tree(self):
        text = bench("tree", "--quick", "--runs", "1", "--seconds", "0.5")
        for row in (r"64 \| preempt", r"64 busy workers \| 100 \| preempt",
                    r"8 unequal workers \| 1000 \| preempt", r"preempt \| 1000",
                    r"run \| the script \| default \| preempt",
                    r"run -s \| forked by it \| 1 kHz \| preempt",
                    r"run -s \| started by it \| default \| preempt"):
            self.assertRegex(text, r"\| %s \| [\d–]" % row)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_bpf_costs(self):
        text = bench("interrupt", "--runs", "1", "--seconds", "0.2")
        for nr_frames in 20, 100, 1000:
            self.assertRegex(text, r"\| %d \| \d" % nr_frames)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_pressure(self):
        text = bench("pressure", "--quick", "--seconds", "0.2")
        for engine in "bpf", "preempt":
            self.assertRegex(text, r"\| calls-10 \| 0\.1 s \| %s \| \d" % engine)

    def test_start(self):
        text = bench("start", "--runs", "2")
        for what in "attach", "run":
            self.assertRegex(text, r"\| pysample %s, preempt \| \d" % what)

    def test_work(self):
        bench("work", "--rate", "1k", "--pairs", "2", "--json", self.path)
        found = {row["sampler"]: row for row in self.results()["work"]}
        for sampler in "pysample preempt", "a loop that only sleeps":
            self.assertEqual(found[sampler]["pairs"], 2)
            self.assertGreater(found[sampler]["ratio"], 0)
            self.assertGreater(found[sampler]["sampler_cpu_percent"], 0)


if __name__ == "__main__":
    unittest.main()
