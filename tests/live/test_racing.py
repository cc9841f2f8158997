# SPDX-License-Identifier: MIT
"""Racing, the fallback where pysample may use none of the process's CPUs, and how it is
reported."""
import contextlib
import json
import os
import re
import unittest

import support
from support import names, parse_collapsed

CPUS = sorted(os.sched_getaffinity(0))
APPROXIMATE = re.compile(r"approximate(?: in part: \S+ of|:) stacks were read while their threads ran")
RECORDINGS = os.path.join(support.ROOT, "tests", "recordings")


@contextlib.contextmanager
def target_elsewhere(interpreter, *target):
    """A target confined to the first CPU. confined() uses the second one."""
    with support.python_target(interpreter, *target) as target:
        for tid in os.listdir("/proc/%d/task" % target.pid):
            os.sched_setaffinity(int(tid), CPUS[:1])
        yield target


def confined(*args):
    return support.pysample(*args, wrapper=[
        "taskset", "-c", str(CPUS[1]), *support.WITHOUT_BPF])


def attach(target, *options):
    """The result of a run that had time for a sample."""
    while True:
        result = confined("attach", target.pid, "-r", 1000, "-d", "0.3", "--mode", "wall", *options)
        if "duration ended before" not in result.stderr or not target.runs():
            return result


def is_mixed(stack):
    """Whether it may be a stack of alternating.py, or a mix of two: each link is at its depth."""
    chains = ["<module>", "alternate"] + ["[ab]00%d" % depth for depth in range(6)]
    return stack[:2] == ["<module>", "announce"] or len(stack) <= len(chains) and all(
        re.fullmatch(link.replace("<", "[<]"), name) for link, name in zip(chains, stack))


def can_be_raced(interpreter):
    return support.version_key(interpreter) >= [3, 11]


class RacingTestCase(unittest.TestCase):

    def check_refused(self, result, status, *parts):
        self.assertEqual((result.status, result.stdout), (status, ""), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def check_remedy(self, result, target):
        """Without racing: the sentence with the remedy, and status 4."""
        self.check_refused(result, 4, "process %d runs only on CPUs that pysample may not use: "
                           "start pysample in the process's cpuset, or with the CPUs that "
                           "'taskset -cp %d' prints" % (target.pid, target.pid))


@unittest.skipIf(len(CPUS) < 2, "there is only one CPU")
@support.per_minor("3.11", "3.12", "3.13", "3.14", "3.15")
class RacingElsewhere(RacingTestCase):
    quick_on = "3.11", "3.15"

    def setUp(self):
        if not can_be_raced(self.interpreter):
            self.skipTest("racing is for CPython 3.11 and newer")

    def test_fallback_to_racing_is_reported(self):
        with support.fresh_folder() as (folder, _), \
                target_elsewhere(self.interpreter, "busy") as target:
            stats_path = os.path.join(folder, "stats.json")

            def sample():
                result = attach(target, *support.COLLAPSED, "--stats-json", stats_path)
                self.assertEqual(result.status, 0, result.stderr)
                self.assertRegex(result.stderr, r"process %d runs only on CPUs that pysample may "
                                 r"not use, so its stacks are read while it runs, which is "
                                 r"approximate; .* 'taskset -cp %d' prints\n"
                                 % (target.pid, target.pid))
                stats = json.loads(support.read(stats_path))
                self.assertEqual(stats["engine"], "racing")
                self.assertLessEqual(stats["approximate"], stats["samples"])
                self.assertEqual(bool(APPROXIMATE.search(result.stderr)), stats["approximate"] > 0)
                stacks = parse_collapsed(result.stdout)
                for stack in stacks:
                    # spin() never calls, so its stack is right however it is read.
                    self.assertIn(names(stack)[-1], ("spin", "sleep", "announce"), stack)
                return stats["approximate"] > 0

            support.wait_until(sample, "a running thread is sampled")

    def test_calls(self):
        """Two moments may be mixed, but every frame is a real one, at its depth."""
        with target_elsewhere(self.interpreter, "alternating", "calls", 40) as target:

            def sample():
                result = attach(target, *support.COLLAPSED, "-q")
                self.assertEqual((result.status, result.stderr), (0, ""))
                stacks = parse_collapsed(result.stdout)
                for stack in stacks:
                    self.assertTrue(is_mixed(names(stack)), stack)
                return stacks

            support.sampled_until(sample, lambda stacks: all(
                any(names(stack)[-1:] == [leaf] for stack in stacks) for leaf in ("a005", "b005")),
                "both leaves are seen")

    def test_deep_stacks(self):
        """Stacks in several chunks of the data stack."""
        with target_elsewhere(self.interpreter, "deep", 400) as target:

            def sample():
                result = attach(target, *support.COLLAPSED)
                self.assertEqual(result.status, 0, result.stderr)
                return parse_collapsed(result.stdout)

            support.sampled_until(sample, lambda stacks: any(
                len(names(stack)) > 800 for stack in stacks), "all frames are seen")

    def test_a_target_that_sleeps(self):
        """What counts is where the target may run, not whether it runs."""
        with target_elsewhere(self.interpreter, "sleeps_in_c") as target:
            result = attach(target, *support.COLLAPSED)
            self.assertEqual(result.status, 0, result.stderr)
            self.assertIn("runs only on CPUs that pysample may not use, so", result.stderr)
            for stack in parse_collapsed(result.stdout):
                self.assertIn(names(stack)[1], ("wait_in_c", "announce"), stack)

    def test_options_that_refuse_racing(self):
        with target_elsewhere(self.interpreter, "busy") as target:
            for options in ["--exact"], ["--engine", "preempt"], ["-n"]:
                with self.subTest(options):
                    result = attach(target, *options)
                    self.check_remedy(result, target)
                    self.assertEqual("without -n" in result.stderr, options == ["-n"])

    def test_recording(self):
        with support.fresh_folder() as (folder, _), \
                target_elsewhere(self.interpreter, "busy") as target:
            path = os.path.join(folder, "out.pysample")

            def sample():
                self.assertEqual(attach(target, "-o", path).status, 0)
                return int(info(path)["approximate"]) > 0

            support.wait_until(sample, "a running thread is sampled")
            self.assertEqual(info(path)["engine"], "racing")
            result = support.pysample("report", path, "-f", "summary")
            self.assertRegex(result.stdout, APPROXIMATE)
            self.assertRegex(result.stderr, APPROXIMATE)
            only = support.pysample("report", path, "-f", "summary", "--state", "approximate")
            self.assertIn("approximate: stacks were read while their threads ran", only.stdout)
            exact = support.pysample("report", path, "-f", "summary", "--state", "!approximate")
            self.assertNotIn("approximate", exact.stdout.replace("--state", ""))


@unittest.skipIf(len(CPUS) < 2, "there is only one CPU")
@support.per_minor("3.6", "3.7", "3.8", "3.9", "3.10")
class NoRacing(RacingTestCase):
    quick_on = ("3.8",)

    def setUp(self):
        if can_be_raced(self.interpreter):
            self.skipTest("racing takes over here")

    def test_status_and_remedy(self):
        with target_elsewhere(self.interpreter, "busy") as target:
            self.check_remedy(attach(target), target)

    def test_forced(self):
        with support.python_target(self.interpreter, "busy") as target:
            self.check_refused(
                support.pysample("attach", target.pid, "-d", "0.1", "--engine", "racing"), 4,
                "--engine racing requires CPython 3.11 or newer with a GIL",
                "CPython " + self.interpreter.version)


@unittest.skipUnless(os.geteuid() == 0, "only root can have a real-time policy")
@support.per_minor("3.8", "3.11", "3.15")
class RacingBesideRealTime(RacingTestCase):
    """A thread with a higher real-time priority than ours keeps its CPU."""

    SENTENCE = "process %d has a real-time priority that pysample lacks"

    def test_fallback_to_racing_or_refusal(self):
        with support.python_target(self.interpreter, "sleeps_in_c") as target:
            os.sched_setscheduler(target.pid, os.SCHED_RR, os.sched_param(2))
            for options in [], ["--exact"]:
                with self.subTest(options):
                    result = support.run_with_samples(lambda options=options: support.pysample(
                        "attach", target.pid, "-d", "0.3", *support.COLLAPSED, *options,
                        wrapper=support.WITHOUT_BPF))
                    sentence = self.SENTENCE % target.pid
                    if can_be_raced(self.interpreter) and not options:
                        self.assertEqual(result.status, 0, result.stderr)
                        self.assertIn(sentence + ", so its stacks are read while", result.stderr)
                    else:
                        self.check_refused(result, 4, sentence + ": start pysample with a higher")

    def test_a_higher_priority_is_exact(self):
        with support.python_target(self.interpreter, "sleeps_in_c") as target:
            os.sched_setscheduler(target.pid, os.SCHED_RR, os.sched_param(2))
            result = support.run_with_samples(lambda: support.pysample(
                "attach", target.pid, "-d", "0.3", "--exact", *support.COLLAPSED,
                wrapper=["chrt", "-f", "3", *support.WITHOUT_BPF]))
            self.assertEqual(result.status, 0, result.stderr)


@unittest.skipIf(len(CPUS) < 2, "there is only one CPU")
class GoneElsewhere(unittest.TestCase):

    def test_is_said_at_the_end(self):
        """The engine is chosen when sampling begins. What it cannot do later is reported at the
        end."""
        with support.python_target(support.newest_interpreter(), "busy") as target:
            run = support.start_pysample(
                "attach", "-v", target.pid, "-r", 1000, *support.COLLAPSED,
                wrapper=["taskset", "-c", str(CPUS[1]), *support.WITHOUT_BPF])
            while b"engine preempt" not in run.stderr.readline():
                self.assertIsNone(run.poll())
            support.wait_for_ticks(run.pid)
            for tid in os.listdir("/proc/%d/task" % target.pid):
                os.sched_setaffinity(int(tid), CPUS[:1])
            support.wait_for_ticks(run.pid, 200)
            result = support.end_by_signal(run)
        self.assertRegex(result.stderr, r"process %d ran on CPUs that pysample may not use in \d+ "
                         r"looks, which are lost: .* 'taskset -cp %d' prints\n" % (target.pid, target.pid))


class RacingForced(RacingTestCase):

    def test_where_it_is_not_needed(self):
        """Any target may be raced, wherever it runs."""
        with support.fresh_folder() as (folder, _), \
                support.python_target(support.newest_interpreter(), "busy") as target:
            stats_path = os.path.join(folder, "stats.json")
            for engine in "racing", "preempt":
                with self.subTest(engine):
                    result = support.run_with_samples(lambda engine=engine: support.pysample(
                        "attach", target.pid, "-d", "0.2", *support.COLLAPSED, "--engine", engine,
                        "--stats-json", stats_path))
                    self.assertEqual(result.status, 0, result.stderr)
                    stats = json.loads(support.read(stats_path))
                    self.assertEqual(stats["engine"], engine)
                    self.assertNotIn("runs only on CPUs", result.stderr)
                    if engine == "preempt":
                        self.assertEqual(stats["approximate"], 0)

    def test_usage(self):
        for options, part in ((["--exact", "--engine", "racing"], "leave out --exact"),
                              (["--engine", "racing", "-n"], "leave out --engine racing, or -n"),
                              (["--engine", "racing", "--async"], "use --engine preempt"),
                              (["--engine", "turbo"], "use bpf, tick, preempt or racing")):
            with self.subTest(options):
                self.check_refused(support.pysample("attach", *options, os.getpid()), 2, part)


def info(path):
    return dict(line.split(": ", 1)
                for line in support.pysample("report", "--info", path).stdout.splitlines())


class OldRecordings(unittest.TestCase):
    """pysample 0.1.0 read stacks while their threads ran."""

    def report(self, *args):
        result = support.pysample("report", "-f", "summary", *args)
        self.assertEqual(result.status, 0, result.stderr)
        for text in result.stdout, result.stderr:
            self.assertRegex(text, APPROXIMATE)
        return result

    def test_are_approximate(self):
        for name, nr_samples in ("0.1.0", 50), ("0.1.0-native", 10):
            with self.subTest(name):
                path = os.path.join(RECORDINGS, name + ".pysample")
                found = info(path)
                self.assertEqual((found["pysample"], found["engine"]), ("0.1.0", "racing"))
                self.assertEqual((found["samples"], found["approximate"]), 2 * (str(nr_samples),))
                result = self.report(path)
                self.assertIn("approximate: stacks", result.stdout)
                self.assertIn("leaf", result.stdout)

    def test_approximate_and_exact_recordings_together(self):
        old = os.path.join(RECORDINGS, "0.1.0.pysample")
        with support.fresh_folder() as (folder, _), \
                support.python_target(support.newest_interpreter(), "sleeps_in_c") as target:
            new = os.path.join(folder, "new.pysample")
            result = support.pysample("attach", target.pid, "-d", "0.2", "-o", new)
            self.assertEqual(result.status, 0, result.stderr)
            for args in (old, new), (new, old), ("--diff", old, new), ("--diff", new, old):
                with self.subTest(args):
                    self.assertIn("approximate in part: ", self.report(*args).stdout)


if __name__ == "__main__":
    unittest.main()
