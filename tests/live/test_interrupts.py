# SPDX-License-Identifier: MIT
"""Engine bpf: every stack is one that the program had, whoever holds the GIL."""
import collections
import contextlib
import functools
import json
import operator
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

import support
from support import names, parse_collapsed
from test_attach import is_possible

SHARED_PROGRAM = os.path.join(os.path.dirname(support.PYSAMPLE), "tests", "shared_program")
REFUSED = r"pysample: --engine bpf: (.*)\n"


def attach(target, *options, wrapper=()):
    return support.pysample("attach", target if isinstance(target, int) else target.pid,
                            "--engine", "bpf", *support.COLLAPSED, *options, wrapper=wrapper)


@functools.lru_cache(maxsize=None)
def why_not():
    """Why BPF cannot be used here; "" if it can."""
    with support.python_target(support.newest_interpreter(), "busy") as target:
        result = attach(target, "-d", "0.3")
    found = re.search(REFUSED, result.stderr)
    return found.group(1) if result.status == 4 and found else ""


class InterruptsTestCase(unittest.TestCase):

    def setUp(self):
        if why_not():
            self.skipTest(why_not())

    def sample(self, target, *options, wrapper=()):
        """The stacks of a run; empty if it was too short for one."""
        result = attach(target, "-r", 1000, "-d", "0.3", *options, wrapper=wrapper)
        self.assertIn(result.status, (0, 5), result.stderr)
        self.assertNotIn("could not", result.stderr)
        return support.without_gc(parse_collapsed(result.stdout))

    def check(self, target, check_stack, leaves, *options, wrapper=()):
        """Check every stack of runs until all leaves are seen."""

        def checked():
            stacks = self.sample(target, *options, wrapper=wrapper)
            for stack in stacks:
                check_stack(stack)
            return stacks

        stacks = support.sampled_until(checked, lambda stacks: all(
            any(names(stack)[-1:] == [leaf] for stack in stacks) for leaf in leaves),
            "all leaves are seen")
        self.assertTrue(target.runs(), target.stderr())
        return stacks


@support.per_interpreter
@support.per_free_threaded
class Interrupts(InterruptsTestCase):

    def check_chains(self, variant, *options, wrapper=()):
        with support.python_target(self.interpreter, "alternating", variant, 40,
                                   wrapper=wrapper) as target:
            self.check(target, lambda stack: self.assertTrue(
                is_possible(tuple(names(stack)), variant), stack), ("a005", "b005"), *options)

    def test_calls(self):
        self.check_chains("calls")

    def test_generators(self):
        self.check_chains("generators")

    def test_coroutines(self):
        self.check_chains("coroutines")

    def test_lines_and_names_of_code_that_comes_and_goes(self):
        """Each function is at the address where another one was a moment ago."""

        def check_stack(stack):
            text = ";".join(stack)
            found = re.findall(r"(?:outer|inner)_(\d+)", text)
            self.assertLessEqual(len(set(found)), 1, stack)
            for number in set(found):
                n = int(number)
                if "caller_" in text:
                    self.assertIn("caller_%d" % (n % 7), text)
                for path, line in re.findall(r"\(generation (\d+):(\d+)\)", text):
                    self.assertEqual(int(path), n, stack)
                    self.assertIn(int(line) - n % 1000, range(1, 7), stack)

        with support.python_target(self.interpreter, "code_churn") as target:
            support.sampled_until(
                lambda: list(filter(None, map(lambda stack: check_stack(stack) or stack,
                                              self.sample(target, "--lines")))),
                lambda stacks: any("inner_" in text for stack in stacks for text in stack),
                "some are seen")

    def test_short_lived_code_is_not_lost(self):
        with support.python_target(self.interpreter, "onelines") as target, \
                support.fresh_folder() as (folder, _):
            stats_path = os.path.join(folder, "stats")
            counts = collections.Counter()

            def are_enough():
                self.sample(target, "--stats-json", stats_path)
                stats = json.loads(support.read(stats_path))
                counts["taken"] += stats["samples"]
                counts["lost"] += stats["lost"]["code"] + stats["lost"]["unfinished"]
                return counts.total() >= 100

            support.wait_until(are_enough, "there are a hundred stacks")
        # A third and more were lost when such code was read from outside.
        self.assertLess(counts["lost"], counts["taken"] / 10)

    def test_deep_stack(self):
        with support.python_target(self.interpreter, "deep", 400) as target:
            support.sampled_until(lambda: self.sample(target), lambda stacks: any(
                len(names(stack)) > 800 for stack in stacks), "all frames are seen")

    def test_threads_that_start_later(self):
        """They are interrupted like the threads that created them."""
        with support.python_target(self.interpreter, "parallel", "calls", 40, 4, 5000, 0) as target:

            def check_stack(stack):
                found = [text.partition(" (")[0] for text in stack
                         if text != support.NO_PYTHON_FRAMES]
                if "dive" in found:
                    chain = found[found.index("dive") + 1:]
                    self.assertTrue(is_possible(("<module>", "alternate", *chain), "calls"), stack)

            self.check(target, check_stack, ("a005", "b005"))


@support.per_interpreter
class InterruptsAndTicks(InterruptsTestCase):
    """Both exact engines find the same stacks of a program."""

    quick_on = ("3.15",)

    def check_same(self, variant):
        seen = {"bpf": set(), "preempt": set()}

        def are_same():
            for engine, stacks in seen.items():
                result = support.pysample("attach", target.pid, "--engine", engine, "-r", 1000,
                                          "-d", "0.3", *support.COLLAPSED)
                self.assertIn(result.status, (0, 5), result.stderr)
                stacks.update(tuple(names(stack)) for stack in support.without_gc(
                    parse_collapsed(result.stdout)))
            return len(seen["bpf"]) > 2 and seen["bpf"] == seen["preempt"]

        with support.python_target(self.interpreter, "alternating", variant, 400) as target:
            support.wait_until(are_same, "both engines have seen the same stacks")
        for stack in seen["bpf"]:
            self.assertTrue(is_possible(stack, variant), stack)

    def test_calls(self):
        self.check_same("calls")

    def test_generators(self):
        self.check_same("generators")


@support.per_minor("3.8", "3.11", "3.15")
class InterruptsOfWaiting(InterruptsTestCase):
    """Threads that use no CPU time have samples, too, and the times add up."""

    def test_every_thread(self):
        with support.fresh_folder() as (folder, _), \
                support.python_target(self.interpreter, "sleeps_in_c") as target:
            path = os.path.join(folder, "stats.json")
            stacks = support.sampled_until(
                lambda: self.sample(target, "--stats-json", path),
                lambda stacks: any("wait_in_c" in names(stack) for stack in stacks), "it is seen")
            self.assertTrue(stacks)
            self.assertEqual(json.loads(support.read(path))["engine"], "bpf")

    def test_each_has_a_sample_at_each_tick(self):
        """They have as many as a thread that runs all the time, so that stacks can be counted."""
        with support.fresh_folder() as (folder, _), \
                support.parked_target(self.interpreter, "corpus") as target:
            path = os.path.join(folder, "stats.json")
            self.sample(target, "--stats-json", path)
            stats = json.loads(support.read(path))
            looks = stats["samples"] + sum(stats["lost"].values())
            # On a busy machine the last tick may be cut off.
            self.assertGreaterEqual(looks, (stats["ticks"] - 1) * len(target.report["threads"]))

    def test_cpu_time(self):
        """One thread runs: its CPU time is at most the time that has passed, plus a period."""
        with support.fresh_folder() as (folder, _), \
                support.python_target(self.interpreter, "busy") as target:
            path = os.path.join(folder, "stats.json")
            begin_s = time.monotonic()
            result = attach(target, "-r", 100, "-d", 1, "--mode", "cpu", "--stats-json", path)
            passed_s = time.monotonic() - begin_s
            self.assertIn(result.status, (0, 5), result.stderr)
            sampled_s = json.loads(support.read(path))["sampled_cpu_s"] or 0
            self.assertLessEqual(sampled_s, passed_s + 0.01)


def account(pid):
    """Nanoseconds that a thread has run and has waited for a CPU, and the current time."""
    run_ns, wanted_ns = support.read("/proc/%d/schedstat" % pid).split()[:2]
    return int(run_ns), int(wanted_ns), time.monotonic_ns()


@support.per_minor("3.8", "3.11", "3.15")
class InterruptsOfTurns(InterruptsTestCase):
    """A thread that runs and waits in turns is shown doing each for as long as the kernel
    counts."""
    quick_on = ("3.15",)
    PERIOD_NS = 10**9 // 100
    SLACK_PERIODS = 6
    SECONDS = 2

    def check(self, *turn):
        with support.fresh_folder() as (folder, _), \
                support.python_target(self.interpreter, "turns", *turn) as target:
            path = os.path.join(folder, "a.pysample")
            before = account(target.pid)
            result = support.pysample("attach", target.pid, "--engine", "bpf", "-d", self.SECONDS,
                                      "-o", path)
            ran_ns, wanted_ns, passed_ns = map(operator.sub, account(target.pid), before)
            self.assertEqual(result.status, 0, result.stderr)
            records = [json.loads(line) for line in support.pysample(
                "report", path, "-f", "jsonl").stdout.splitlines()]
        frames = {record["id"]: {frame["name"] for frame in record["frames"]}
                  for record in records if record["type"] == "stack"}
        sampled_ns = collections.Counter()
        for record in records:
            if record["type"] == "sample":
                sampled_ns["wait" in frames[record["stack"]]] += record["wall_ns"]
        # The account covers a longer time, and a look may come between running and waiting.
        slack_ns = self.SLACK_PERIODS * self.PERIOD_NS
        self.assertLessEqual(sampled_ns[False], ran_ns + wanted_ns + slack_ns)
        self.assertLessEqual(sampled_ns[True], passed_ns - ran_ns + slack_ns)
        self.assertLessEqual(sampled_ns.total(), passed_ns + slack_ns)
        # Some of the time that it ran was before or after the sampling.
        beside_ns = passed_ns - self.SECONDS * 10**9
        self.assertGreaterEqual(sampled_ns[False], ran_ns - beside_ns - slack_ns)

    def test_shorter_than_a_period(self):
        self.check(0.001, 0.003)

    def test_longer_than_a_period(self):
        self.check(0.03, 0.03)


@support.per_interpreter
@support.per_free_threaded
class InterruptsOfSwitches(InterruptsTestCase):
    """Threads that run for some microseconds at a time, very often, have no events of their own
    for long."""
    quick_on = ("3.15",)
    NOTE = "all CPUs were interrupted"
    BELOW = {"<module>", "main", "_bootstrap", "_bootstrap_inner", "run"}
    SECONDS = 2.5

    def switches(self, pid):
        """CPU time in ns of all threads, and how often they were switched in."""
        texts = [support.read("/proc/%d/task/%s/schedstat" % (pid, tid)).split()
                 for tid in os.listdir("/proc/%d/task" % pid)]
        return sum(int(text[0]) for text in texts), sum(int(text[2]) for text in texts)

    def is_interrupted_by_cpu(self, target):
        """Or its threads do not switch as often as they should, on this machine at this time."""
        before_ns, nr_before = self.switches(target.pid)
        result = attach(target, "-r", 1000, "-d", self.SECONDS, "--idle", "-v")
        used_ns, nr = self.switches(target.pid)
        nr -= nr_before
        self.few = "" if nr > 20000 * self.SECONDS and (used_ns - before_ns) / nr < 20000 else \
            "%d switches, %.0f µs each" % (nr, (used_ns - before_ns) / max(nr, 1) / 1000)
        self.assertEqual(result.status, 0, result.stderr)
        for stack in support.without_gc(parse_collapsed(result.stdout)):
            *below, leaf = [name.rpartition(".")[2] for name in names(stack)]
            self.assertLessEqual(set(below), self.BELOW, stack)
            self.assertEqual(leaf, "pass_on", stack)
        return self.NOTE in result.stderr or self.few

    def test_threads_that_switch_often(self):
        with support.python_target(self.interpreter, "switches") as target:
            support.wait_until(lambda: self.is_interrupted_by_cpu(target), "CPUs are interrupted")
        if self.few:
            self.skipTest(self.few)

    def test_threads_that_switch_seldom(self):
        """A thousand times a second, for 20 µs each."""
        with support.python_target(self.interpreter, "turns", 0.00002, 0.001) as target:
            result = attach(target, "-d", self.SECONDS, "-v")
            self.assertIn(result.status, (0, 5), result.stderr)
            self.assertNotIn(self.NOTE, result.stderr)


@support.per_minor("3.8", "3.11", "3.15")
class InterruptsOfStarved(InterruptsTestCase):
    """A thread that could run but shares its CPU with others is credited with all of its time."""

    NR_OTHERS = 4

    def check(self, *options):
        cpu = str(min(os.sched_getaffinity(0)))
        here = ["taskset", "--cpu-list", cpu]
        with contextlib.ExitStack() as stack, support.python_target(
                self.interpreter, "exits", "on signal", wrapper=here) as target:
            for _ in range(self.NR_OTHERS):
                other = subprocess.Popen([*support.TIED_TO_US, *here, sys.executable, "-c",
                                          "while True: pass"])
                stack.callback(other.wait)
                stack.callback(other.kill)

            def has_all():
                """All but the time after its last interrupt."""
                result = support.pysample("attach", target.pid, "--engine", "bpf", "-d", 2, "-f",
                                          "jsonl", *options)
                self.assertIn(result.status, (0, 5), result.stderr)
                samples = [record for record in map(json.loads, result.stdout.splitlines())
                           if record["type"] == "sample"]
                sampled_s = sum(sample["wall_ns"] for sample in samples) / 1e9
                self.assertLess(sampled_s, 2.5)
                return sampled_s > 1.5 and len(samples) > 150

            support.wait_until(has_all, "most of the time is credited")

    def test_python(self):
        self.check()

    def test_with_c_frames(self):
        self.check("-n")


class InterruptsOfNew(InterruptsTestCase):
    """The first samples of a program that is started come at four times the rate, each of a
    quarter of the weight."""
    PROGRAM = "import time\nwhile time.process_time() < 1: pass\n"
    PERIOD_NS, EARLY_NS, NR_EARLY = 10**7, 10**7 // 4, 8

    def weights(self, command, *args):
        """Of the samples of interrupts, in the order of time."""
        with support.fresh_folder() as (folder, _):
            path = os.path.join(folder, "new.pysample")
            result = support.run_with_samples(lambda: support.pysample(
                command, "--engine", "bpf", "--mode", "cpu", "-r", 100, "-o", path, *args))
            self.assertEqual(result.status, 0, result.stderr)
            records = map(json.loads, support.pysample(
                "report", path, "-f", "jsonl").stdout.splitlines())
            return [record["cpu_ns"] for record in records if record["type"] == "sample" and
                    record["cpu_ns"] in (self.EARLY_NS, self.PERIOD_NS)]

    def test_run(self):
        weights = self.weights("run", "--", sys.executable, "-c", self.PROGRAM)
        self.assertEqual(weights, sorted(weights))
        self.assertIn(self.PERIOD_NS, weights)
        self.assertIn(weights.count(self.EARLY_NS), range(1, self.NR_EARLY + 1))

    def test_attach(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            weights = self.weights("attach", "-d", 1, target.pid)
            self.assertIn(self.PERIOD_NS, weights)
            self.assertNotIn(self.EARLY_NS, weights)


class InterruptsAtTheTick(InterruptsTestCase):

    def test_possible_stacks(self):
        """These stacks are of one instant, too. The output says that they are taken at the
        kernel's tick."""
        with support.fresh_folder() as (folder, _), support.python_target(
                support.newest_interpreter(), "alternating", "calls", 40) as target:
            path = os.path.join(folder, "stats.json")

            def sample():
                result = support.pysample("attach", target.pid, "--engine", "tick", "-r", "max",
                                          "-d", "0.5", *support.COLLAPSED, "--stats-json", path)
                if result.status == 4:
                    self.skipTest(result.stderr)
                self.assertIn(result.status, (0, 5), result.stderr)
                self.assertIn("at the kernel's tick: work in step with it", result.stderr)
                stacks = support.without_gc(parse_collapsed(result.stdout))
                for stack in stacks:
                    self.assertTrue(is_possible(tuple(names(stack)), "calls"), stack)
                return stacks

            support.sampled_until(sample, lambda stacks: any(
                names(stack)[-1:] == ["a005"] for stack in stacks), "it is seen")
            self.assertEqual(json.loads(support.read(path))["engine"], "tick")

    def test_where_no_program_may_be_loaded(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            result = support.pysample("attach", target.pid, "--engine", "tick", "-d", "0.3",
                                      *support.COLLAPSED, wrapper=support.WITHOUT_BPF)
        self.assertEqual(result.status, 4)
        self.assertRegex(result.stderr, r"\Apysample: --engine tick: .*\n\Z")

    def test_with_c_frames(self):
        result = support.pysample("attach", "--engine", "tick", "-n", os.getpid())
        self.assertEqual(result.status, 2)
        self.assertIn("leave out --engine tick, or -n", result.stderr)


@unittest.skipUnless(os.access(SHARED_PROGRAM, os.X_OK), "shared_program was not built")
class SharedTestCase(InterruptsTestCase):
    """One BPF program samples processes that have different functions at the same addresses."""

    NAMES = "left_", "right"

    def check(self, engine):
        counts = collections.Counter()

        def are_enough(children):
            pids = [str(child["pid"]) for child in children.values()]
            result = subprocess.run([SHARED_PROGRAM, engine, "0.5", *pids], capture_output=True,
                                    text=True)
            if "use --engine bpf" in result.stderr:
                self.skipTest(result.stderr)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            *lines, programs = result.stdout.splitlines()
            self.assertEqual(programs, "= 1")
            for line in lines:
                pid, _, stack = line.partition(" ")
                if pid == "=":
                    pid, _, lost, _ = stack.split()
                    counts["lost", pid] += int(lost)
                    continue
                name = self.NAMES[pids.index(pid)]
                self.assertEqual(support.without_gc({tuple(stack.split(";")): 1}),
                                 {("<module>", "run", name): 1}, line)
                counts["taken", pid] += 1
            return all(counts["taken", pid] + counts["lost", pid] >= 20 for pid in pids)

        with support.python_target(self.interpreter, "fork_siblings", *self.NAMES) as target:
            children = target.report["children"]
            self.assertEqual(len({child["address"] for child in children.values()}), 1)
            support.wait_until(lambda: are_enough(children), "each process has 20 stacks")
        # Code that is reported for one process only is lost in the other.
        for child in children.values():
            pid = str(child["pid"])
            self.assertLess(counts["lost", pid], counts["taken", pid] / 10)


@support.per_interpreter
class InterruptsShared(SharedTestCase):

    def test_by_events(self):
        self.check("bpf")


class InterruptsSharedAtTheTick(SharedTestCase):

    def test_at_the_tick(self):
        self.interpreter = support.newest_interpreter()
        self.check("tick")


class InterruptsElsewhere(InterruptsTestCase):
    """Processes other than a plain child of ours, and processes that are refused."""

    def setUp(self):
        super().setUp()
        self.interpreter = support.newest_interpreter()

    def test_pid_namespace(self):
        """Threads have other ids there than here."""
        if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode:
            self.skipTest("unshare is not permitted here")
        with support.python_target(self.interpreter, "alternating", "calls", 40, wrapper=[
                "unshare", "--pid", "--fork", "--kill-child"]) as target:
            pid = support.descendant(target.pid)
            stacks = support.sampled_until(lambda: self.sample(pid), lambda stacks: any(
                names(stack)[-1:] == ["a005"] for stack in stacks), "it is seen")
            for stack in stacks:
                self.assertTrue(is_possible(tuple(names(stack)), "calls"), stack)

    def test_a_program_that_replaces_itself(self):
        """The next program may have another layout."""
        with support.python_target(self.interpreter, "execs_itself") as target:
            result = attach(target, "-r", 1000, "-d", 2)
            self.assertEqual(result.status, 0, result.stderr)
            self.assertNotIn("continues with engine", result.stderr)


class InterruptsChosen(InterruptsTestCase):
    """BPF is used where it is allowed, another engine where it is not, and both are reported."""

    def run_with_stats(self, *args, wrapper=()):
        with support.fresh_folder() as (folder, _):
            path = os.path.join(folder, "stats.json")
            result = support.run_with_samples(lambda: support.pysample(
                *args[:1], "-v", *support.COLLAPSED, "--stats-json", path, *args[1:],
                wrapper=wrapper))
            self.assertEqual(result.status, 0, result.stderr)
            return result, json.loads(support.read(path))

    def test_by_itself(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            args = "attach", target.pid, "-r", 1000, "-d", "0.3"
            result, stats = self.run_with_stats(*args)
            self.assertEqual(stats["engine"], "bpf")
            self.assertIn("pysample: engine bpf\n", result.stderr)
            result, stats = self.run_with_stats(*args, wrapper=support.WITHOUT_BPF)
            self.assertEqual(stats["engine"], "preempt")
            self.assertRegex(result.stderr, "pysample: engine preempt, because bpf is unavailable: .*CAP_BPF")
            result, stats = self.run_with_stats(*args, "--engine", "preempt")
            self.assertEqual(stats["engine"], "preempt")
            self.assertIn("pysample: engine preempt\n", result.stderr)

    def test_as_root_without_the_capabilities(self):
        """C frames then rest on evidence, and the counters say so."""
        if os.geteuid() != 0:
            self.skipTest("only root can give capabilities up")
        rights = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin",
                  "--inh-caps=-bpf,-perfmon,-sys_admin", "--"]
        with support.python_target(support.newest_interpreter(), "busy") as target:
            for options in ([], ["-n"]):
                with self.subTest(options):
                    result, stats = self.run_with_stats("attach", *options, target.pid, "-r", 1000,
                                                        "-d", "0.5", wrapper=rights)
                    self.assertEqual(stats["engine"], "preempt")
                    self.assertRegex(result.stderr, "engine preempt, because bpf is unavailable: .*CAP_BPF")
            if stats["native"]:
                self.assertTrue(stats["native"]["by_evidence"])

    def test_doctor(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            self.assertRegex(support.pysample("doctor", target.pid).stdout, r"\nengine +bpf: ")
            self.assertRegex(support.pysample("doctor", target.pid,
                                              wrapper=support.WITHOUT_BPF).stdout,
                             r"\nengine +preempt: .*CAP_BPF")

    def test_a_stack_that_is_too_deep(self):
        """The other engine goes on, and one profile has the stacks of both."""
        with support.python_target(support.newest_interpreter(), "deep", 2500) as target:
            def sample():
                result, stats = self.run_with_stats("attach", target.pid, "-r", 1000, "-d", 1)
                self.assertEqual("continuing with engine preempt" in result.stderr,
                                 stats["engine"] == "preempt")
                return parse_collapsed(result.stdout)

            support.sampled_until(sample, lambda stacks: any(
                len(names(stack)) > 5000 for stack in stacks), "a whole stack is seen")
            result = attach(target, "-r", 1000, "-d", "0.3")
            self.assertNotIn("continu", result.stderr)


class InterruptsKilled(InterruptsTestCase):
    """The BPF program is gone with the process that loaded it."""

    alone = True  # tests beside this one would load it, too
    BPFTOOL = shutil.which("bpftool", path=os.defpath + ":/usr/sbin:/sbin")

    def nr_loaded(self):
        result = subprocess.run([self.BPFTOOL, "--json", "prog", "show"], capture_output=True,
                                text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        # The kernel stores 15 characters of the name; some versions of bpftool show the rest.
        return sum(program.get("name", "")[:15] == "handle_interrupt"[:15]
                   for program in json.loads(result.stdout))

    def test_everything_is_unloaded(self):
        if not self.BPFTOOL:
            self.skipTest("there is no bpftool")
        with support.python_target(support.newest_interpreter(), "busy") as target:
            before = self.nr_loaded()
            process = support.start_pysample("attach", target.pid, "--engine", "bpf",
                                             *support.COLLAPSED)
            support.wait_until(lambda: self.nr_loaded() > before, "it is loaded")
            process.kill()
            support.finish(process)
            for delay in 0, 0.01, 0.03, 0.1:
                process = support.start_pysample("attach", target.pid, "--engine", "bpf",
                                                 *support.COLLAPSED)
                time.sleep(delay)
                process.kill()
                support.finish(process)
            support.wait_until(lambda: self.nr_loaded() <= before, "it is gone")
            self.assertTrue(target.runs(), target.stderr())


class InterruptsRefused(unittest.TestCase):

    def test_exact_c_frames(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            result = support.pysample("attach", target.pid, "--exact", "-n", "-d", "0.3",
                                      *support.COLLAPSED, wrapper=support.WITHOUT_BPF)
        self.assertEqual((result.status, result.stdout), (4, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Apysample: --exact with C frames requires engine bpf: .*\n\Z")

    def check_refused(self, result, why):
        self.assertEqual((result.status, result.stdout), (4, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Apysample: --engine bpf: .*(?:%s).*\n\Z" % why)

    def test_by_the_kernel(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            for call in "bpf", "perf_event_open":
                with self.subTest(call):
                    result = attach(target, "-d", "0.3", wrapper=[
                        *support.FORBID_CALL, call, "EPERM"])
                    self.check_refused(result, "CAP_BPF and CAP_PERFMON|built without BPF")

    def test_without_rights(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a process as nobody")
        python = "/usr/bin/python3"
        with support.plain_target(*support.AS_NOBODY, python, "-c", "while True: pass",
                                  program=python) as process:
            result = support.pysample_as_nobody("attach", process.pid, "--engine", "bpf", "-d",
                                                "0.3", *support.COLLAPSED, "--wait", 60)
            self.check_refused(result, "CAP_BPF and CAP_PERFMON|built without BPF")
