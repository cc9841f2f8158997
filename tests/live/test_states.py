# SPDX-License-Identifier: MIT
"""What threads do beside their stacks, and `attach --mode`: tests/targets/states.py has a
thread for each state, and it is known which one that is."""
import collections
import json
import os
import re
import sys
import unittest

import support
from support import GC, per_layout, pysample

HERE = os.path.dirname(os.path.abspath(__file__))

# A thread is in its state nearly all the time; a machine that is busy otherwise takes the rest.
NEARLY_ALL = 0.9
HARDLY_ANY = 0.05

TOLD_IN = {"gil": 7, "<GC>": 7}  # since 3.N


def cpu_times(pid, tids):
    """{name: seconds} of threads, by the kernel's own account."""
    return {name: int(support.read("/proc/%d/task/%d/schedstat" % (pid, tid)).split()[0]) / 1e9
            for name, tid in tids.items()}


class StatesTestCase(unittest.TestCase):
    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def minor(self):
        return support.version_key(self.interpreter)[1]

    def need(self, what):
        if self.minor() < TOLD_IN[what]:
            self.skipTest("3.%d does not tell" % self.minor())

    def profile(self, target, *options, run=pysample, **kwargs):
        """{name of a thread of states.py: {its stack behind the function of that name: count}},
        and the counters."""
        stats_path = os.path.join(self.folder, "stats.json")
        if run is pysample:
            options += ("--stats-json", stats_path)
        result = run("attach", target.pid, "-d", "1", "-f", "collapsed", "-t", *options,
                     **kwargs)
        self.assertEqual(result.status, 0, result.stderr)
        names = {tid: name for name, tid in target.report["threads"].items()}
        counts = collections.defaultdict(collections.Counter)
        for stack, count in support.parse_collapsed(result.stdout).items():
            tid = int(re.search(r"\((\d+)\)$", stack[0]).group(1))
            functions = [label.partition(" (")[0] for label in stack[1:]]
            counts[names.get(tid, "main")][tuple(functions)] += count
        stats = json.loads(support.read(stats_path)) if run is pysample else None
        return counts, stats


def share(part, whole):
    return sum(part.values()) / max(1, sum(whole.values()))


def share_of_runs(part, part_stats, whole, whole_stats):
    """Of two runs, of which one may have had more ticks than the other."""
    return share(part, whole) * whole_stats["ticks"] / part_stats["ticks"]


@per_layout
class Gil(StatesTestCase):
    def test_only_who_holds_it_is_shown(self):
        """Two that take turns, one that sleeps, one that computes without it."""
        self.need("gil")
        with support.python_target(self.interpreter, "states", "spin", "half", "sleep",
                                   "compute") as target:
            holding, stats = self.profile(target, "--mode", "gil")
            everything, all_stats = self.profile(target, "--mode", "wall")
        self.assertEqual(set(everything), {"spin", "half", "sleep", "compute", "main"})
        total = sum(sum(counts.values()) for counts in holding.values())
        # One at a time: never more samples than ticks.
        self.assertLessEqual(total, stats["ticks"])
        self.assertEqual(total, stats["shown_samples"])
        self.assertGreater(total, stats["ticks"] * 0.5)

        def holds(name):
            return share_of_runs(holding[name], stats, everything[name], all_stats)

        for name in "sleep", "main", "compute":
            self.assertLess(holds(name), HARDLY_ANY)
        self.assertGreater(holds("spin"), 0.2)
        self.assertGreater(sum(holding["half"].values()), 0)
        self.assertLessEqual(stats["shown_s"], stats["sampled_wall_s"])
        self.assertEqual((stats["mode"], stats["unit"]), ("gil", "samples"))

    def test_version_that_does_not_tell(self):
        if self.minor() >= TOLD_IN["gil"]:
            self.skipTest("it does")
        with support.python_target(self.interpreter, "states", "spin") as target:
            result = pysample("attach", target.pid, "--mode", "gil", "-d", "1")
        self.assertEqual(result.status, 1)
        self.assertIn("who holds the GIL cannot be told", result.stderr)


@per_layout
class Cpu(StatesTestCase):
    def check(self, run=pysample, as_user=(), **kwargs):
        """Each thread's weight is what the kernel says that it used meanwhile."""
        with support.python_target(self.interpreter, "states", "spin", "half", "compute", "sleep",
                                   wrapper=as_user) as target:
            before = cpu_times(target.pid, target.report["threads"])
            shown, stats = self.profile(target, "--mode", "cpu", run=run, **kwargs)
            after = cpu_times(target.pid, target.report["threads"])
        weights = {name: sum(counts.values()) / 1e6 for name, counts in shown.items()}
        used = {name: after[name] - before[name] for name in after}
        # They may have been about to sleep still at the first tick.
        for name in "sleep", "main":
            self.assertLess(weights.pop(name, 0), HARDLY_ANY * sum(used.values()), name)
        self.assertGreater(weights["compute"], 0)
        for name, weight in weights.items():
            # The kernel's account of a thread that runs is behind by up to a tick of its timer.
            self.assertLessEqual(weight, used[name] + 0.02, (weights, used))
            self.assertAlmostEqual(weight / sum(weights.values()), used[name] / sum(used.values()),
                                   delta=0.15, msg=(weights, used))
        return stats

    def test_weights_are_what_was_used(self):
        stats = self.check()
        self.assertEqual((stats["mode"], stats["unit"]), ("cpu", "microseconds"))
        self.assertEqual(stats["clockless_threads"], 0)
        self.assertIn(stats["rough_clock_threads"], (0, 5))  # all, where perf is forbidden to us
        # A look at each thread when it is first seen, and one for each sample.
        self.assertGreaterEqual(stats["clock_reads"], stats["samples"])
        self.assertLessEqual(stats["clock_reads"], stats["samples"] + 6)
        self.assertAlmostEqual(stats["shown_s"], stats["sampled_cpu_s"], delta=0.001)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become nobody")
    def test_as_nobody(self):
        if self.interpreter.root or self.interpreter.path.startswith(os.path.expanduser("~")):
            self.skipTest("nobody may not execute it")
        self.check(run=support.pysample_as_nobody, as_user=support.AS_NOBODY)

    def test_where_perf_is_forbidden(self):
        """The kernel's account takes its place: the sums are right, at its timer's ticks."""
        forbidden = [sys.executable, os.path.join(HERE, "forbid_call.py"), "perf_event_open",
                     "EPERM"]
        stats = self.check(wrapper=forbidden)
        self.assertEqual(stats["rough_clock_threads"], 5)
        self.assertEqual(stats["clockless_threads"], 0)

    def test_nothing_is_measured_unless_asked(self):
        with support.python_target(self.interpreter, "states", "spin") as target:
            _, stats = self.profile(target)
            _, measured = self.profile(target, "--cpu")
        self.assertEqual(stats["clock_reads"], 0)
        self.assertIsNone(stats["sampled_cpu_s"])
        self.assertGreater(measured["sampled_cpu_s"], 0)
        self.assertLess(measured["sampled_cpu_s"], measured["sampled_wall_s"])
        self.assertEqual(measured["shown_samples"], measured["samples"])


@per_layout
class Collector(StatesTestCase):
    def test_it_runs_below_the_function_that_calls_it(self):
        self.need("<GC>")

        def fault_of(sampled):
            collecting = {stack: count for stack, count in sampled.stacks.items() if GC in stack}
            for stack in collecting:
                self.assertEqual(stack[-2:], ("collect", GC))
            if share(collecting, sampled.stacks) > NEARLY_ALL:
                return None
            return "the collector has too few of %s" % sampled.stacks

        support.check_pooled(self, self.sample, fault_of)

    def sample(self):
        """What is sampled of the thread that collects."""
        with support.python_target(self.interpreter, "states", "collect", "sleep") as target:
            seen, _ = self.profile(target)
            hidden, _ = self.profile(target, "--no-gc")
        for counts in seen["sleep"], seen["main"], hidden["collect"]:
            self.assertFalse([stack for stack in counts if GC in stack])
        return support.Sampled(collections.Counter(seen["collect"]))

    def test_finalisers_run_above_it(self):
        self.need("<GC>")
        if self.minor() < 15:
            self.skipTest("3.%d does not tell where it was begun" % self.minor())
        with support.python_target(self.interpreter, "states", "finalise") as target:
            seen, _ = self.profile(target)
        above = collections.Counter(
            {stack: count for stack, count in seen["finalise"].items()
             if stack[-4:-1] == ("finalise", GC, "Circle.__del__")})
        self.assertGreater(share(above, seen["finalise"]), 0.5, seen)


@per_layout
class Exceptions(StatesTestCase):
    def test_only_who_handles_one_is_shown(self):
        handling = ["handle", "handle_in_generator", "handle_around_generator"]
        with support.python_target(self.interpreter, "states", "handle_none", "sleep",
                                   *handling) as target:
            shown, stats = self.profile(target, "--mode", "exception")
            everything, all_stats = self.profile(target)

        def handles(name):
            return share_of_runs(shown[name], stats, everything[name], all_stats)

        for name in handling:
            self.assertGreater(handles(name), 0.8, name)
        self.assertLess(handles("handle_none"), HARDLY_ANY)
        for name in "sleep", "main":
            self.assertFalse(shown[name])
        self.assertEqual(stats["mode"], "exception")
        self.assertLess(stats["shown_s"], stats["sampled_wall_s"])


class NothingToShow(unittest.TestCase):
    """Where nobody does what the mode asks for there is no profile, but a sentence."""

    CASES = {"gil": "held the GIL", "cpu": "used CPU time", "exception": "handled an exception"}

    def check(self, target, mode, *options):
        folder, _ = self.enterContext(support.fresh_folder())
        profile, stats = (os.path.join(folder, name) for name in ("profile", "stats"))
        result = pysample("attach", target.pid, "--mode", mode, "-o", profile, "--stats-json",
                          stats, *options)
        self.assertEqual((result.status, result.stdout), (5, ""), result.stderr)
        self.assertFalse(os.path.exists(profile))
        counted = json.loads(support.read(stats))
        self.assertEqual(counted["shown_samples"], 0)
        self.assertGreater(counted["samples"], 0)
        self.assertRegex(result.stderr, r"(?m)^pysample: of %d samples? of process %d none %s, so "
                         r"there is no profile: --mode wall shows " % (
                             counted["samples"], target.pid, self.CASES[mode]))
        return result

    def test_of_threads_that_wait(self):
        with support.parked_target(support.newest_interpreter(), "few") as target:
            for mode in "gil", "cpu":
                with self.subTest(mode):
                    self.check(target, mode, "-d", "0.2", "-r", "100")
                    quiet = self.check(target, mode, "-d", "0.2", "-r", "100", "-q")
                    self.assertEqual(quiet.stderr.count("\n"), 1)

    def test_of_code_without_exceptions(self):
        with support.python_target(support.newest_interpreter(), "callheavy") as target:
            self.check(target, "exception", "-d", "0.2", "-r", "100")


class Options(unittest.TestCase):
    def test_modes_have_names(self):
        result = pysample("attach", "--mode", "walls", "1")
        self.assertEqual(result.status, 2)
        self.assertIn("there is no mode 'walls'", result.stderr)
