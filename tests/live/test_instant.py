# SPDX-License-Identifier: MIT
"""Every stack is one that the program had: at each instruction, and with each proof."""
import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import support
from support import names, parse_collapsed
from test_attach import is_possible
from test_locator import LocatorTestCase, read_libraries, running

STEP_WALK = os.path.join(os.path.dirname(support.PYSAMPLE), "tests", "step_walk")
NR_STEPS = 100000


def attach(pid, *args, **kwargs):
    """Attach with the engine that holds the CPU."""
    return support.pysample("attach", pid, "--engine", "preempt", "--mode", "wall", *args, **kwargs)


def first_lines(text):
    """The first lines of the functions in a stack that step_walk printed."""
    return tuple(int(frame.rpartition(":")[2]) for frame in text.split(";") if frame)


class Following:
    """Which stack may follow which, as recorded by sys.setprofile."""

    def __init__(self, pairs):
        self.after = {}
        for before, after in pairs:
            self.after.setdefault(tuple(before), set()).add(tuple(after))
            self.after.setdefault(tuple(after), set())

    def may_follow(self, before, after, with_gap):
        """with_gap: one stack in between may have been dropped."""
        if after in self.after[before]:
            return True
        return with_gap and any(after in self.after[between] for between in self.after[before])


@support.per_interpreter
@support.per_free_threaded
@unittest.skipUnless(os.access(STEP_WALK, os.X_OK), "step_walk was not built")
class InstantOfEachInstruction(unittest.TestCase):
    """Stepping meets the states between two stores without load or luck."""

    def test_stacks_are_right_or_dropped(self):
        with support.python_target(self.interpreter, "steps") as target:
            result = subprocess.run([STEP_WALK, str(target.pid), str(NR_STEPS)],
                                    capture_output=True, text=True)
            if "not permitted" in result.stderr:
                self.skipTest("ptrace is not permitted here")
            self.assertEqual(result.returncode, 0, result.stderr)
            following = Following(target.report)
        *lines, end = result.stdout.splitlines()
        mark, nr_steps, nr_walked, nr_unfinished = end.split()
        self.assertEqual((mark, int(nr_steps)), ("=", NR_STEPS))
        self.assertEqual(int(nr_walked) + int(nr_unfinished), NR_STEPS)
        last, gap = None, False
        for line in lines:
            if line == "!":
                gap = True
                continue
            stack = first_lines(line)
            self.assertIn(stack, following.after, line)
            if last is not None and stack != last:
                self.assertTrue(following.may_follow(last, stack, gap), (last, line))
            last, gap = stack, False
        self.assertGreater(len(lines), 10)


def without(call):
    return [*support.FORBID_CALL, call, "EPERM"]


class InstantTestCase(unittest.TestCase):

    def check(self, target, variant, sample):
        """Both chains are seen, and nothing else."""

        def checked():
            result = sample()
            self.assertIn(result.status, (0, 5), result.stderr)  # 5: no stack was proven
            stacks = parse_collapsed(result.stdout)
            for stack in stacks:
                self.assertTrue(is_possible(tuple(names(stack)), variant), stack)
            return stacks

        support.sampled_until(checked, lambda stacks: all(
            any(names(stack)[-1:] == [leaf] for stack in stacks) for leaf in ("a005", "b005")),
            "both leaves are seen")
        self.assertTrue(target.runs(), target.stderr())


@support.per_minor("3.8", "3.12", "3.15")
@support.per_free_threaded
class InstantByEachProof(InstantTestCase):
    """With the C library's rseq word, the task clock, or the kernel's run count."""

    NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}

    def check_with(self, environment, wrapper):
        for variant in "calls", "generators", "coroutines":
            with self.subTest(variant), support.python_target(
                    self.interpreter, "alternating", variant, 40,
                    environment=environment) as target:
                self.check(target, variant, lambda: attach(target.pid, "-r", 1000, "-d", "0.3",
                                                           *support.COLLAPSED,
                    wrapper=wrapper))

    def test_rseq(self):
        self.check_with({}, without("perf_event_open"))

    def test_task_clock(self):
        self.check_with(self.NO_RSEQ, ())

    def test_run_count(self):
        self.check_with(self.NO_RSEQ, without("perf_event_open"))


def called(stack):
    """The functions of a stack with lines. At the instruction that begins a generator there is no
    line."""
    return [text.partition(" (")[0] for text in stack if text != support.NO_PYTHON_FRAMES]


@support.per_minor("3.15")
@support.per_free_threaded
class InstantOfParallelThreads(unittest.TestCase):
    """Each thread has a stack of its own, with the lines of its calls, while other threads run,
    end and begin."""

    # Coroutines of a thread that ends are closed, which runs them without their callers.
    NR_TURNS = {"calls": 5000, "generators": 5000, "coroutines": sys.maxsize}
    CODE = support.read(os.path.join(support.TARGETS, "alternating.py")).split("\n")

    def check(self, variant, nr_threads, depth=0, wrapper=()):
        with support.python_target(
                self.interpreter, "parallel", variant, 40, nr_threads, self.NR_TURNS[variant],
                depth) as target:

            def sample():
                result = attach(target.pid, "-r", 1000, "-d", "0.5", "--lines",
                                          *support.COLLAPSED, wrapper=wrapper)
                self.assertIn(result.status, (0, 5), result.stderr)
                stacks = support.without_gc(parse_collapsed(result.stdout))
                for stack in stacks:
                    self.check_stack(stack, variant, depth)
                return stacks

            support.sampled_until(sample, lambda stacks: all(
                any(called(stack)[-1:] == [leaf] for stack in stacks)
                for leaf in ("a005", "b005")), "both leaves are seen")
            self.assertTrue(target.runs(), target.stderr())

    def check_stack(self, stack, variant, depth):
        found = called(stack)
        chain = ["take_turns"] + ["dive"] * (depth + 1)
        if found[:1] == ["<module>"]:
            self.assertIn(found[1:2], ([], ["announce"]), stack)
        elif len(found) <= len(chain):
            self.assertIn(found, (chain[:len(found)], ["take_turns", "own_chains"]), stack)
        else:
            self.assertEqual(found[:len(chain)], chain, stack)
            ours = found[len(chain):]
            self.assertTrue(is_possible(("<module>", "alternate", *ours), variant), stack)
            self.check_lines(stack[len(chain):], ours)

    def check_lines(self, stack, ours):
        for text, callee in zip(stack, ours[1:]):
            if not text.startswith("send_"):
                line = int(re.search(r":(\d+)\)$", text).group(1))
                self.assertIn(callee + "(", self.CODE[line - 1], stack)

    def test_chains(self):
        for variant in "calls", "generators", "coroutines":
            for nr_threads in 2, 4:
                with self.subTest(variant, nr_threads=nr_threads):
                    self.check(variant, nr_threads)

    def test_deep(self):
        self.check("calls", 4, depth=200)

    def test_without_clocks(self):
        self.check("calls", 4, wrapper=without("perf_event_open"))


@support.per_minor("3.8", "3.11", "3.12", "3.15")
class InstantOfSwappedStates(InstantTestCase):
    """Up to 3.12 a thread may run a thread state of another interpreter that does not name it."""

    def setUp(self):
        if self.interpreter.minor in ("3.6", "3.7"):
            self.skipTest("this version cannot make an interpreter from Python")

    def test_stacks_are_possible(self):
        def sample():
            result = attach(target.pid, "-r", 1000, "-d", "0.5",
                                      *support.COLLAPSED)
            self.assertIn(result.status, (0, 5), result.stderr)
            chains = [tuple(name for name in names(stack) if re.fullmatch(r"[ab]\d+", name))
                      for stack in parse_collapsed(result.stdout)]
            for chain in chains:
                self.assertIn(chain, [tuple(f"{letter}{n:03}" for n in range(len(chain)))
                                      for letter in "ab"])
            return collections.Counter(chains)

        with support.python_target(self.interpreter, "swapped") as target:
            support.sampled_until(
                sample, lambda chains: all(any(chain[-1:] == (leaf,) for chain in chains)
                                           for leaf in ("a005", "b005")), "both leaves are seen")


class InstantOfHandedState(LocatorTestCase):
    """A thread state runs in another thread than the one that it names. The named thread proves
    nothing, whether it sleeps or works."""

    is_quick = False
    SCRIPT = """\
import sys
sys.path.insert(0, {folder!r})
sys.argv = ["alternating", "calls", "40"]
exec(compile(open("{folder}/alternating.py").read(), "alternating.py", "exec"))
"""
    def check_none(self, stacks):
        for stack in stacks:
            self.assertFalse([name for name in stack if re.fullmatch(r"[ab]\d+", name)], stack)

    def attach(self, program, *options):
        """The result, and whether it says that other threads run the state."""
        result = attach(program.pid, "-r", 1000, "-d", "0.5", *support.COLLAPSED,
                                  *options)
        self.assertIn(result.status, (0, 5), result.stderr)
        return result, "on threads other than their own" in result.stderr

    def check(self, program, library):
        if int(library.version[2:]) < 10:
            # There is only evidence here, so a look must meet a thread that runs.
            support.wait_until(lambda: self.attach(program)[1], "the note is printed")
            return
        for options in [], ["-n"]:
            result, is_noted = self.attach(program, *options)
            self.assertTrue(is_noted, result.stderr)
            self.check_none([text.partition(" (")[0] for text in stack]
                            for stack in parse_collapsed(result.stdout))
        dump = json.loads(support.pysample("dump", "--json", program.pid).stdout)
        self.check_none([frame["name"] for frame in thread["frames"]]
                        for thread in dump["threads"] if thread["proven"])

    def each(self, ways, check):
        """Check each way of running Python, with each library."""
        embed = self.build("embed", "-ldl", "-pthread")
        script = os.path.join(self.folder, "script.py")
        with open(script, "w", encoding="ascii") as file:
            file.write(self.SCRIPT.format(folder=support.TARGETS))
        for way in ways:
            for library in read_libraries():
                with self.subTest(way, library=str(library)), running(
                        [embed, "load", library.path, "begin", way, script],
                        home=library.home) as program:
                    program.line()
                    check(program, library)

    def test_stacks_are_dropped(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is only one CPU")
        self.each(["hand", "pass", "make"], self.check)

    def test_stack_outside_any_thread(self):
        """A C stack that the program made does not show which thread runs there."""
        def check(program, _library):

            def sample():
                result = attach(program.pid, "-r", 1000, "-d", "0.3",
                                          *support.COLLAPSED)
                self.assertIn(result.status, (0, 5), result.stderr)
                self.assertNotIn("on threads other than", result.stderr)
                return parse_collapsed(result.stdout)

            support.sampled_until(sample, lambda stacks: any(
                names(stack)[-1:] == ["a005"] for stack in stacks), "a leaf is seen")

        self.each(["apart"], check)


@support.per_minor("3.8", "3.10", "3.12", "3.15")
class InstantOfForkedThread(unittest.TestCase):
    """The only thread of a process that was forked in a thread has that thread's stack. One that
    C has forked has its parent's ids."""

    def test_stacks_are_proven(self):
        for way in "thread", "C":
            for wrapper in [], support.WITHOUT_BPF:
                with self.subTest(way, wrapper=wrapper), support.python_target(
                        self.interpreter, "forked", way) as target:
                    self.check(target.report["child"], wrapper)

    def check(self, child, wrapper):
        def sample():
            result = support.pysample("attach", child, "-r", 1000, "-d", "0.3",
                                      *support.COLLAPSED, wrapper=wrapper)
            self.assertIn(result.status, (0, 5), result.stderr)
            self.assertNotIn("on threads other than", result.stderr)
            return parse_collapsed(result.stdout)

        support.sampled_until(sample, lambda stacks: any(
            names(stack)[-1:] == ["spin"] for stack in stacks), "it is seen")


@contextlib.contextmanager
def control_group(controller, **settings):
    """A command that starts another one in a new control group of version 1."""
    folder = tempfile.mkdtemp(prefix="pysample-test-", dir=os.path.join(CONTROL_GROUPS, controller))
    try:
        for name, value in settings.items():
            with open(os.path.join(folder, controller + "." + name), "w",
                      encoding="ascii") as setting:
                setting.write(str(value))
        yield ["sh", "-c", 'echo $$ >"$0" && exec "$@"', os.path.join(folder, "cgroup.procs")]
    finally:
        os.rmdir(folder)


CONTROL_GROUPS = "/sys/fs/cgroup"


def can_make_groups():
    return all(os.access(os.path.join(CONTROL_GROUPS, controller), os.W_OK)
               for controller in ("cpu", "cpuset"))


@unittest.skipUnless(can_make_groups(), "control groups cannot be made here")
class InstantInGroups(InstantTestCase):
    """A control group limits the target's CPU time."""

    is_quick = False

    def check_in(self, target_group, wrapper=()):
        with support.python_target(support.newest_interpreter(), "alternating", "calls", 40,
                                   wrapper=target_group) as target:
            self.check(target, "calls", lambda: attach(
                target.pid, "-r", 1000, "-d", "0.3", *support.COLLAPSED,
                wrapper=wrapper))

    def test_quota(self):
        with control_group("cpu", cfs_quota_us=20000) as group:
            self.check_in(group)

    def test_group_of_more_weight(self):
        with control_group("cpu", shares=100000) as group:
            self.check_in(group)

    def test_own_group_of_less_weight(self):
        with control_group("cpu", shares=2) as group:
            self.check_in((), group)

    def test_one_processor_for_both(self):
        cpu = min(os.sched_getaffinity(0))
        with control_group("cpuset", cpus=cpu, mems=0) as group:
            self.check_in(group)
            self.check_in(group, group)


@unittest.skipUnless(os.geteuid() == 0, "only root can become nobody")
class InstantAsNobody(InstantTestCase):

    def test_stacks_are_right(self):
        found = [one for one in support.supported_interpreters() if one.origin == "system"]
        if not found:
            self.skipTest("no interpreter here that nobody can run")
        with support.python_target(found[0], "alternating", "calls", 40,
                                   wrapper=support.AS_NOBODY) as target:
            self.check(target, "calls", lambda: support.pysample_as_nobody(
                "attach", target.pid, "-r", 1000, "-d", "0.3", *support.COLLAPSED))


if __name__ == "__main__":
    unittest.main()
