# SPDX-License-Identifier: MIT
"""What threads do beside their stacks, and `attach --mode`. tests/targets/threads/states.py has a
thread for each state and reports which one that is.
"""
import collections
import contextlib
import json
import os
import re
import unittest

import support
import test_interrupts
from support import GC, per_layout, pysample

FIRST_MINOR = {"gil": 7, "<GC>": 7}  # the first 3.N with it


def cpu_times(pid, tids):
    """{name: seconds} of CPU time, by the kernel's own account."""
    return {name: int(support.read("/proc/%d/task/%d/schedstat" % (pid, tid)).split()[0]) / 1e9
            for name, tid in tids.items()}


@contextlib.contextmanager
def states_target(interpreter, *names, **kwargs):
    """A target with these threads, once the sleeping ones sleep."""
    with support.python_target(interpreter, "states", *names, **kwargs) as target:
        sleeping = [tid for name, tid in target.report["threads"].items() if name == "sleep"]
        for tid in [target.pid, *sleeping]:
            path = "/proc/%d/task/%d/syscall" % (target.pid, tid)
            # select(2), clock_nanosleep(2), pselect(2); not futex(2), in which threads wait for
            # the GIL
            support.wait_until(lambda path=path: support.read(path).split()[0] in (
                "23", "230", "270"), "the sleeping threads sleep")
        yield target


class StatesTestCase(unittest.TestCase):
    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def minor(self):
        return support.version_key(self.interpreter)[1]

    def require(self, what):
        if self.minor() < FIRST_MINOR[what]:
            self.skipTest("3.%d does not record it" % self.minor())

    def profile(self, target, *options, run=pysample, **kwargs):
        """{name of a thread of states.py: {its stack after that function: count}}, and the
        counters."""
        stats_path = os.path.join(self.folder, "stats.json")
        if run is pysample:
            options += ("--stats-json", stats_path)
        results = []

        def is_proven():
            results.append(run("attach", target.pid, "-d", "0.3", *support.COLLAPSED, "-t",
                               *options, **kwargs))
            return results[-1].status != 5

        support.wait_until(is_proven, "there is something to show")
        result = results[-1]
        self.assertEqual(result.status, 0, result.stderr)
        names = {tid: name for name, tid in target.report["threads"].items()}
        counts = collections.defaultdict(collections.Counter)
        for stack, count in support.parse_collapsed(result.stdout).items():
            tid = int(re.search(r"\((\d+)\)$", stack[0]).group(1))
            functions = [label.partition(" (")[0] for label in stack[1:]]
            counts[names.get(tid, "main")][tuple(functions)] += count
        stats = json.loads(support.read(stats_path)) if run is pysample else None
        return counts, stats


    def profile_until(self, enough, what, target, *options, **kwargs):
        """The profile and the counters of the first run in which enough was seen."""
        profiles = []

        def is_enough():
            profiles.append(self.profile(target, *options, **kwargs))
            return enough(profiles[-1][0])

        support.wait_until(is_enough, what)
        return profiles[-1]


@per_layout
class Gil(StatesTestCase):
    def test_only_the_gil_holder_is_shown(self):
        """Two threads take turns, one sleeps, and one computes without the GIL."""
        self.require("gil")
        with states_target(self.interpreter, "spin", "half", "sleep",
                           "compute") as target:
            holding, stats = self.profile_until(
                lambda shown: shown["spin"] and shown["half"], "both are seen",
                target, "--mode", "gil", *support.PREEMPT)
            self.profile_until(lambda shown: set(shown) == {"spin", "half", "sleep", "compute",
                                                            "main"},
                               "all threads are seen", target, "--mode", "wall")
        total = sum(sum(counts.values()) for counts in holding.values())
        # One thread at a time, as all are of one instant: never more samples than ticks.
        self.assertLessEqual(total, stats["ticks"])
        self.assertEqual(total, stats["shown_samples"])
        for name in "sleep", "main":
            self.assertFalse(holding[name])
        self.assertLessEqual(stats["shown_s"], stats["sampled_wall_s"])
        self.assertEqual((stats["mode"], stats["unit"]), ("gil", "samples"))

    def test_unsupported_version(self):
        if self.minor() >= FIRST_MINOR["gil"]:
            self.skipTest("this version records it")
        with states_target(self.interpreter, "spin") as target:
            result = pysample("attach", target.pid, "--mode", "gil", "-d", "0.2")
        self.assertEqual(result.status, 1)
        self.assertIn("does not show who holds the GIL", result.stderr)


@per_layout
@support.slow_per_free_threaded
class Cpu(StatesTestCase):
    def check(self, run=pysample, as_user=(), **kwargs):
        """No thread's weight exceeds the CPU time that the kernel counted meanwhile."""
        with states_target(self.interpreter, "spin", "half", "compute", "sleep",
                           wrapper=as_user) as target:
            before = cpu_times(target.pid, target.report["threads"])
            shown, stats = self.profile_until(
                lambda shown: {"spin", "half", "compute"} <= set(shown), "all workers are seen",
                target, "--mode", "cpu", run=run, **kwargs)
            after = cpu_times(target.pid, target.report["threads"])
        for name, counts in shown.items():
            if name != "main":
                # The kernel's account of a running thread lags by up to one timer tick.
                self.assertLessEqual(sum(counts.values()) / 1e6, after[name] - before[name] + 0.02,
                                     name)
        return stats

    def test_weights_are_what_was_used(self):
        stats = self.check()
        self.assertEqual((stats["mode"], stats["unit"]), ("cpu", "microseconds"))
        self.assertEqual(stats["clockless_threads"], 0)
        self.assertIn(stats["rough_clock_threads"], (0, 5))  # all, where we may not use perf
        self.assertAlmostEqual(stats["shown_s"], stats["sampled_cpu_s"], delta=0.001)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become nobody")
    def test_as_nobody(self):
        if self.interpreter.root or self.interpreter.path.startswith(os.path.expanduser("~")):
            self.skipTest("nobody cannot execute the interpreter")
        self.check(run=support.pysample_as_nobody, as_user=support.AS_NOBODY)

    def test_where_perf_is_forbidden(self):
        """The kernel's account takes its place: the sums are right, with the resolution of timer
        ticks."""
        forbidden = [*support.FORBID_CALL, "perf_event_open", "EPERM"]
        stats = self.check(wrapper=forbidden)
        self.assertEqual(stats["rough_clock_threads"], 5)
        self.assertEqual(stats["clockless_threads"], 0)

    def test_states_are_measured_only_on_request(self):
        with states_target(self.interpreter, "spin") as target:
            _, stats = self.profile(target)
            _, measured = self.profile_until(lambda shown: sum(shown["spin"].values()) > 1,
                                             "it has run between two samples", target, "--cpu")
        self.assertEqual(stats["clock_reads"], 0)
        self.assertIsNone(stats["sampled_cpu_s"])
        self.assertGreater(measured["sampled_cpu_s"], 0)
        self.assertEqual(measured["shown_samples"], measured["samples"])


@per_layout
@support.slow_per_free_threaded
class Busy(StatesTestCase):
    """By default threads that wait are hidden: not by their name, but by what they do."""

    def check(self, engine):
        with states_target(self.interpreter, "spin", "half", "sleep", "compute") as target:
            shown, stats = self.profile_until(
                lambda shown: {"spin", "half", "compute"} <= set(shown), "all workers are seen",
                target, "--mode", "busy", *engine)
        self.assertEqual(set(shown), {"spin", "half", "compute"})
        self.assertEqual(stats["mode"], "busy")
        self.assertEqual(stats["idle_samples"] + stats["shown_samples"], stats["samples"])
        self.assertAlmostEqual(stats["idle_s"] + stats["shown_s"], stats["sampled_wall_s"],
                               delta=0.001)
        # main and sleep; the others may have waited for the GIL.
        self.assertGreaterEqual(stats["idle_threads"], 2)
        if engine != support.PREEMPT:
            self.assertEqual(stats["clock_reads"], 0)

    def test_of_preempted_threads(self):
        self.check(support.PREEMPT)

    def test_of_interrupted_threads(self):
        if test_interrupts.why_not():
            self.skipTest("not tested here: engine bpf: " + test_interrupts.why_not())
        self.check(["--engine", "bpf"])

    def test_where_perf_is_forbidden(self):
        with states_target(self.interpreter, "spin", "sleep", "compute") as target:
            shown, _ = self.profile_until(
                lambda shown: {"spin", "compute"} <= set(shown), "all workers are seen",
                target, "--mode", "busy", *support.PREEMPT,
                wrapper=[*support.FORBID_CALL, "perf_event_open", "EPERM"])
        self.assertEqual(set(shown), {"spin", "compute"})

    def test_waiting_for_the_gil_is_busy(self):
        """Two threads take turns; a sample of a thread that holds the GIL or is known to wait for
        it is never idle."""
        if self.minor() < 15:
            self.skipTest("3.%d does not tell who waits for the GIL" % self.minor())

        def samples():
            result = pysample("attach", target.pid, "-d", "0.3", "-f", "jsonl")
            return [record for record in map(json.loads, result.stdout.splitlines())
                    if record["type"] == "sample"]

        def has_all(found):
            return all(any(sample[key] for sample in found)
                       for key in ("gil", "waits_for_gil", "idle"))

        with states_target(self.interpreter, "spin", "handle_none") as target:
            seen = []

            def is_enough():
                seen[:] = samples()
                return has_all(seen)

            support.wait_until(is_enough, "each state is seen")
        self.assertFalse([sample for sample in seen if sample["idle"] and (
            sample["gil"] or sample["waits_for_gil"])])

    def test_a_recording_has_all(self):
        """report hides what attach hides, and shows the rest on request."""
        recording = os.path.join(self.folder, "run.pysample")

        def tids(*options):
            text = pysample("report", recording, "-t", "-f", "collapsed", *options).stdout
            return {int(re.search(r"\((\d+)\)$", stack[0]).group(1))
                    for stack in support.parse_collapsed(text)}

        with states_target(self.interpreter, "spin", "sleep", "compute") as target:
            threads = target.report["threads"]
            busy = {threads["spin"], threads["compute"]}
            support.wait_until(lambda: pysample(
                "attach", target.pid, "-d", "0.3", "-o", recording).status == 0 and tids() == busy,
                "both workers are seen")
        self.assertEqual(tids("--idle"), {*threads.values(), target.pid})
        self.assertEqual(tids("--mode", "wall"), {*threads.values(), target.pid})
        self.assertEqual(tids("--state", "busy", "--idle"), busy)
        self.assertLessEqual({threads["sleep"], target.pid}, tids("--state", "idle", "--idle"))


class OnlyWaiting(unittest.TestCase):
    """A program that only waits has a profile, if an empty one, that says so."""

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.target = self.enterContext(
            support.python_target(support.newest_interpreter(), "sleeps_in_c"))

    def attach(self, *options):
        return support.run_with_samples(lambda: pysample(
            "attach", self.target.pid, "-d", "0.3", *options))

    def test_each_output(self):
        for name in "a.collapsed", "a.summary", "a.svg", "a.html", "callgrind.out.a":
            path = os.path.join(self.folder, name)
            with self.subTest(name):
                result = self.attach("-o", path)
                self.assertEqual(result.status, 0, result.stderr)
                self.assertRegex(result.stderr, r"(?m)^pysample: 1 thread waited for \S+ s of \S+ s, "
                                 "which is hidden: none of them was busy; --idle shows all$")
                self.assertTrue(os.path.exists(path))
        self.assertEqual(support.read(os.path.join(self.folder, "a.collapsed")), "")
        self.assertIn("all threads waited all the time: use --idle",
                      support.read(os.path.join(self.folder, "a.summary")))

    def test_all_are_shown_on_request(self):
        for options in ["--idle"], ["--mode", "wall"]:
            result = self.attach("-f", "collapsed", *options)
            self.assertTrue(support.parse_collapsed(result.stdout))
            self.assertNotIn("waited", result.stderr)

    def test_formats_with_samples_have_all(self):
        for form in "jsonl", "speedscope", "pprof", "gecko", "recording":
            with self.subTest(form):
                path = os.path.join(self.folder, form)
                result = self.attach("-f", form, "-o", path)
                self.assertEqual(result.status, 0, result.stderr)
                self.assertNotIn("waited", result.stderr)
        samples = [record for record in map(json.loads, support.read(
            os.path.join(self.folder, "jsonl")).splitlines()) if record["type"] == "sample"]
        self.assertTrue(samples)
        self.assertEqual({sample["idle"] for sample in samples}, {True})

    def test_contradiction(self):
        result = pysample("attach", self.target.pid, "--idle", "--mode", "cpu")
        self.assertEqual(result.status, 2)
        self.assertEqual(result.stderr, "pysample: --idle shows all samples, and --mode cpu does "
                         "not: leave out one\n")


@per_layout
class Collector(StatesTestCase):
    def test_it_runs_below_the_function_that_calls_it(self):
        self.require("<GC>")

        def sample():
            seen, _ = self.profile(target)
            for stack in seen["collect"]:
                if GC in stack:
                    self.assertEqual(stack[-2:], ("collect", GC))
            for counts in seen["sleep"], seen["main"]:
                self.assertFalse([stack for stack in counts if GC in stack])
            return seen["collect"]

        with states_target(self.interpreter, "collect", "sleep") as target:
            support.sampled_until(sample, lambda stacks: any(GC in stack for stack in stacks),
                                  "it collects")
            hidden, _ = self.profile(target, "--no-gc")
        self.assertFalse([stack for stack in hidden["collect"] if GC in stack])

    def test_finalisers_run_above_it(self):
        self.require("<GC>")
        if self.minor() < 15:
            self.skipTest("3.%d does not record where the collection began" % self.minor())
        with states_target(self.interpreter, "finalise") as target:
            support.sampled_until(
                lambda: self.profile(target)[0]["finalise"], lambda stacks: any(
                    stack[-4:-1] == ("finalise", GC, "Circle.__del__") for stack in stacks),
                "a finalizer is seen above it")


@per_layout
@support.slow_per_free_threaded
class Exceptions(StatesTestCase):
    def test_only_handlers_are_shown(self):
        handling = ["handle", "handle_in_generator", "handle_around_generator"]
        with states_target(self.interpreter, "handle_none", "sleep",
                           *handling) as target:
            shown, stats = self.profile_until(
                lambda shown: set(handling) <= set(shown), "all that handle an exception are seen",
                target, "--mode", "exception")
        for name in "sleep", "main":
            self.assertFalse(shown[name])
        # spin() runs after the exception was handled.
        self.assertFalse([stack for stack in shown["handle_none"] if "spin" in stack])
        self.assertEqual(stats["mode"], "exception")
        self.assertLess(stats["shown_s"], stats["sampled_wall_s"])


class NothingToShow(unittest.TestCase):
    """Where no thread does what the mode asks for there is a sentence instead of a profile."""

    CASES = {"gil": "held the GIL", "cpu": "used CPU time", "exception": "handled an exception"}

    def check(self, target, mode, *options):
        folder, _ = self.enterContext(support.fresh_folder())
        profile, stats = (os.path.join(folder, name) for name in ("profile", "stats"))
        results = []

        def is_proven():
            results.append(pysample("attach", target.pid, "--mode", mode, "-o", profile,
                                    "--stats-json", stats, *options))
            return not support.has_no_proven_stack(results[-1])

        support.wait_until(is_proven, "some stack could be proven")
        result = results[-1]
        self.assertEqual((result.status, result.stdout), (5, ""), result.stderr)
        self.assertFalse(os.path.exists(profile))
        counted = json.loads(support.read(stats))
        self.assertEqual(counted["shown_samples"], 0)
        self.assertGreater(counted["samples"], 0)
        self.assertRegex(result.stderr, r"(?m)^pysample: no sample of process %d \(%d in all\) %s, "
                         r"so there is no profile: --mode wall shows " % (
                             target.pid, counted["samples"], self.CASES[mode]))
        return result

    def test_of_threads_that_wait(self):
        with support.parked_target(support.newest_interpreter(), "few_situations") as target:
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
        self.assertIn("unknown mode 'walls'", result.stderr)
