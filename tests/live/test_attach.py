# SPDX-License-Identifier: MIT
"""`pysample attach`: what a profile of a known program must say, and how a run ends."""
import collections
import contextlib
import itertools
import json
import math
import os
import pty
import re
import signal
import stat
import subprocess
import threading
import time
import unittest

import support
from support import names, parse_collapsed, parse_label, per_interpreter, pysample

LOST_KEYS = {"moved", "lock", "late", "unfinished", "code", "fault", "skipped", "too_deep"}
STATS_KEYS = {"ticks", "samples", "approximate", "engine", "lost", "cached", "writes", "late_ticks", "failed_ticks",
              "p50_lateness_ns", "p99_lateness_ns", "max_lateness_ns", "achieved_hz", "wall_s",
              "first_sample_ns", "cpu_user_s", "cpu_sys_s", "max_rss_kib", "reads",
              "other_syscalls", "clock_reads", "clockless_threads", "rough_clock_threads", "mode",
              "unit", "idle_samples", "idle_s", "idle_threads", "shown_samples", "jit_samples", "shown_s", "sampled_wall_s", "sampled_cpu_s",
              "native", "python", "python_free_threaded", "python_newer_than_tested",
              "runtime_found_by", "pysample", "arguments", "host", "start_unix_ns"}


class Profile:
    """One finished run with -o and --stats-json."""

    def __init__(self, folder, number):
        self.path = os.path.join(folder, "profile%d" % number)
        self.stats_path = self.path + ".json"

    def options(self):
        return ["-o", self.path, *support.COLLAPSED, "--stats-json", self.stats_path]

    def load(self):
        self.stacks = support.without_gc(parse_collapsed(support.read(self.path)))
        self.stats = json.loads(support.read(self.stats_path))
        self.lost = sum(self.stats["lost"].values())
        return self


class AttachTestCase(unittest.TestCase):
    maxDiff = 4000

    ENGINE = []  # the default

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.nr_profiles = 0

    def new_profile(self):
        self.nr_profiles += 1
        return Profile(self.folder, self.nr_profiles)

    def assert_ended_well(self, result, status=0):
        self.assertEqual(result.status, status, result.stderr)

    def assert_consistent(self, profile):
        stats = profile.stats
        self.assertLessEqual(STATS_KEYS, set(stats))
        self.assertEqual(set(stats["lost"]), LOST_KEYS)
        self.assertEqual(sum(profile.stacks.values()), stats["samples"])
        self.assertGreater(stats["ticks"], 0)
        if stats["engine"] == "preempt":
            self.assertGreaterEqual(stats["reads"], stats["ticks"])
        self.assertEqual(bool(stats["first_sample_ns"]), bool(stats["samples"]))

    def profile(self, target, *options):
        """A run in which some stacks could be proven."""
        profile = self.new_profile()

        def is_proven():
            result = pysample("attach", target.pid, *profile.options(), *self.ENGINE, *options)
            if result.status == 5:
                self.assertRegex(result.stderr, support.NO_PROVEN_STACK)
                return False
            self.assert_ended_well(result)
            return True

        support.wait_until(is_proven, "some stack could be proven")
        profile.load()
        self.assert_consistent(profile)
        return profile

    def stacks_until(self, target, enough, what, *options):
        """The stacks of as many runs as are needed."""
        return support.sampled_until(lambda: self.profile(target, *options).stacks, enough, what)


def nr_samples_at_most(stats):
    """The most samples of one thread: one a tick or, with bpf, one a period, whether or not ticks
    are late.

    Each look has one. Two looks may be closer than a period; later ones, if any, make up for it.
    """
    if stats["engine"] != "bpf":
        return stats["ticks"]
    return math.ceil(stats["wall_s"] * stats["requested_hz"]) + 2


def has_function(stacks, name):
    return any(name in names(stack) for stack in stacks)


def first_difference(got, expected):
    """How many stacks are extra and how many are missing, with the shortest of each."""
    only_got = sorted(set(got) - set(expected), key=len)
    only_expected = sorted(set(expected) - set(got), key=len)
    return "%d stacks too many, the first %r; %d missing, the first %r" % (
        len(only_got), only_got[:1], len(only_expected), only_expected[:1])


@per_interpreter
class Parked(AttachTestCase):
    """Nothing moves, and everything is known."""

    def test_profile_equals_truth(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            truths = target.report["threads"]
            with self.subTest("stacks by function"):
                self.check(target, truths, lambda roots, truth: support.expected_stack(truth))
            with self.subTest("stacks by line"):
                self.check(target, truths, lambda roots, truth:
                           support.expected_stack(truth, "line"), "--lines")
            with self.subTest("stacks by thread"):
                self.check(target, truths, self.expected_of_thread, "-t")

    @staticmethod
    def expected_of_thread(roots, truth):
        return (roots.get(truth["tid"]),) + support.expected_stack(truth)

    def check(self, target, truths, expected_stack, *options):
        """Only true stacks appear, each at most once in a period, and all of them appear."""

        def sample():
            profile = self.profile(target, "-r", "1000", "-d", "0.3", *options)
            stats = profile.stats
            self.assertEqual(stats["python"], target.report["python"])
            roots = self.roots(profile) if "-t" in options else {}
            expected.clear()
            expected.update(expected_stack(roots, truth) for truth in truths)
            self.assertEqual(set(profile.stacks) - set(expected), set(),
                             first_difference(profile.stacks, expected))
            most = nr_samples_at_most(stats)
            for stack, count in profile.stacks.items():
                self.assertLessEqual(count, expected[stack] * most, stack)
            # On a busy machine the last tick may be cut off.
            looks = stats["samples"] + profile.lost
            self.assertLessEqual(looks, most * len(truths))
            self.assertGreaterEqual(looks, (stats["ticks"] - 1) * len(truths))
            return profile.stacks

        expected = collections.Counter()
        support.sampled_until(sample, lambda stacks: set(stacks) == set(expected),
                              "every thread is seen")

    def roots(self, profile):
        """{thread id: the root label of its stacks}"""
        roots = {}
        for stack in profile.stacks:
            found = re.fullmatch(r"thread (?:.* )?\((\d+)\)", stack[0])
            self.assertTrue(found, stack[0])
            self.assertEqual(roots.setdefault(int(found.group(1)), stack[0]), stack[0])
        return roots


@support.per_layout
class SubInterpreters(AttachTestCase):
    """Three, parked. Each of their threads also has a stack in the main interpreter, which
    waits."""

    def test_all_are_in_the_profile(self):
        with support.parked_sub_interpreters(self.interpreter) as target:
            truths = target.report["threads"]
            self.assertEqual(len(truths), 3)
            self.check(target, truths)
            self.check(target, truths, "-t")

    def check(self, target, truths, *options):
        def sample():
            profile = self.profile(target, "-d", "0.2", *options)
            if options:
                for stack, count in profile.stacks.items():
                    self.assertLessEqual(count, nr_samples_at_most(profile.stats), stack)
            return profile.stacks

        def all_are_seen(stacks):
            if not any(names(stack[-1:]) == ["park"] for stack in stacks):
                return False
            return all(any(self.is_of(stack, truth, *options) for stack in stacks)
                       for truth in truths)

        support.sampled_until(sample, all_are_seen, "all three and the main one are seen")

    def is_of(self, stack, truth, by_thread=None):
        expected = support.expected_stack(truth)
        if not by_thread:
            return stack == expected
        if stack[1:] != expected:
            return False
        self.assertRegex(stack[0], r"\Athread (.* )?\(%d, interpreter [1-9]\d*\)\Z" % truth["tid"])
        return True


CHAINS = {
    "calls": "%s000 %s001 %s002 %s003 %s004 %s005",
    "coroutines": "send_%s000 coroutine_%s001 coroutine_%s002 %s005",
    "generators": "generator_%s000 generator_%s001 generator_%s002 generator_%s003 %s004 %s005",
}


def is_possible(stack, variant):
    """Whether stack is the beginning of a chain of alternating.py, or the program's start."""
    for letter in "ab":
        chain = ["<module>", "alternate"] + CHAINS[variant].replace("%s", letter).split()
        if variant == "coroutines" and list(stack) == chain[:-1] + ["pause"]:
            return True
        if stack and list(stack) == chain[:len(stack)]:
            return True
    return stack[:2] == ("<module>", "announce")


@support.per_layout
class Alternating(AttachTestCase):
    """Two chains that alternate faster than looks can follow.

    A stack that cannot be proven is lost and counted. The profile never has a stack that did not
    exist.
    """

    ENGINE = support.PREEMPT  # the BPF engine's: test_interrupts.py

    def check(self, variant, *all_leaf_steps):
        for leaf_steps in all_leaf_steps:
            with support.python_target(self.interpreter, "alternating", variant,
                                       leaf_steps) as target:
                for rate in "1000", "max":
                    with self.subTest(leaf_steps=leaf_steps, rate=rate):
                        self.check_at(target, variant, rate)

    def check_at(self, target, variant, rate):
        def sample():
            stacks = self.profile(target, "-r", rate, "-d", "0.3").stacks
            impossible = {stack: count for stack, count in stacks.items()
                          if not is_possible(tuple(names(stack)), variant)}
            self.assertEqual(impossible, {})
            return stacks

        support.sampled_until(sample, lambda stacks: all(
            any(names(stack)[-1:] == [leaf] for stack in stacks) for leaf in ("a005", "b005")),
            "both leaves are seen")

    def test_calls(self):
        self.check("calls", 40)

    def test_generators(self):
        self.check("generators", 40, 4000)

    def test_coroutines(self):
        self.check("coroutines", 40)


GENERATED = re.compile(r"outer_\d+|(outer_\d+\.<locals>\.)?(?P<inner>inner_\d+)")


def generation_of(label):
    """The generations in a label of code_churn.py: its name, path and line; -1 if the line is
    wrong."""
    name, path, line = parse_label(label)
    found = GENERATED.fullmatch(name)
    if not found:
        return set()
    numbers = {int(number) for number in re.findall(r"\d+", name)}
    numbers.add(int(path.rpartition(" ")[2]))
    offset = 2 if found.group("inner") else 1
    return numbers if line == min(numbers) % 1000 + offset else numbers | {-1}


class Ticks(AttachTestCase):
    """Every interval of a run has a tick, taken or counted. The version makes no difference."""

    ENGINE = support.PREEMPT

    HIGHEST_RATE_HZ = 10000

    def test_none_is_missing(self):
        with support.python_target(support.newest_interpreter(), "callheavy") as target:
            for rate in (1000, self.HIGHEST_RATE_HZ, "max"):
                with self.subTest(rate=rate):
                    stats = self.profile(target, "-r", rate, "-d", "0.2").stats
                    self.assertEqual(stats["ticks"] + stats["late_ticks"] + stats["failed_ticks"],
                                     (self.HIGHEST_RATE_HZ if rate == "max" else rate) // 5)
                    self.assertEqual(stats["samples"] + sum(stats["lost"].values()),
                                     stats["ticks"])
                    self.assertLessEqual(stats["p50_lateness_ns"], stats["p99_lateness_ns"])
                    self.assertLessEqual(stats["p99_lateness_ns"], stats["max_lateness_ns"])
                    self.assertGreater(stats["max_lateness_ns"], 0)

    def test_one_is_no_plural(self):
        def has_one_sample():
            line = pysample("attach", target.pid, "-r", "100", "-d", "0.005",
                            *support.COLLAPSED).stderr
            self.assertNotRegex(line, r"\b1 (samples|ticks)\b")
            return re.search(r"(?m)^pysample: 1 sample of 1 tick in \S+ s, \S+ of 100 Hz, "
                             r"0\.00 % lost, 0 ticks late$", line)

        with support.python_target(support.newest_interpreter(), "callheavy") as target:
            support.wait_until(has_one_sample, "there is one sample of one tick")


@support.per_layout
class Changing(AttachTestCase):
    """The profile stays true while threads and code come and go."""

    ENGINE = support.PREEMPT  # the BPF engine's: test_interrupts.py

    def test_short_lived_code(self):
        def sample():
            stacks = self.profile(target, "-r", "10000", "-d", "0.4").stacks
            wrong = [names(stack) for stack in stacks if not self.belongs_together(stack)]
            self.assertEqual(wrong, [])
            return stacks

        with support.python_target(self.interpreter, "code_churn") as target:
            support.sampled_until(sample, lambda stacks: any(
                generation_of(stack[-1]) for stack in stacks), "such code is seen")

    @staticmethod
    def belongs_together(stack):
        if names(stack)[:1] != ["<module>"]:
            return False
        generations = set().union(*map(generation_of, stack))
        callers = {int(name[-1]) for name in names(stack) if name.startswith("caller_")}
        return len(generations) <= 1 and (
            not generations or not callers or callers == {min(generations) % 7})

    def test_threads_that_come_and_go(self):
        outer = [support.name_in(self.interpreter, "Thread." + name)
                 for name in ("_bootstrap", "_bootstrap_inner", "run")]

        def is_possible_here(stack):
            if stack[:1] == ["<module>"] or not stack:
                return True
            if not {"worker", "leaf"} & set(stack):  # only frames of threading
                return stack[0] == outer[0]
            return stack[:3] == outer and re.fullmatch(r"worker( worker)*( leaf)?",
                                                       " ".join(stack[3:]))

        def sample():
            stacks = self.profile(target, "-r", "1000", "-d", "0.5").stacks
            impossible = [stack for stack in map(names, stacks) if not is_possible_here(stack)]
            self.assertEqual(impossible, [])
            return stacks

        with support.python_target(self.interpreter, "thread_churn") as target:
            support.sampled_until(sample, lambda stacks: has_function(stacks, "worker"),
                                  "a worker is seen")
            self.assertTrue(target.runs())
            self.assertEqual(target.stderr(), "")

    def check_possible(self, possible, *target):
        """The names of every stack match the pattern."""
        with support.python_target(self.interpreter, *target) as target:
            profile = self.profile(target, "-r", "1000", "-d", "0.4")
        impossible = [shortened(names(stack)) for stack in profile.stacks
                      if not re.fullmatch(possible, " ".join(names(stack)))]
        self.assertEqual(impossible, [])

    def test_deep_calls(self):
        """The stack of callheavy.py grows and shrinks 200 frames deep."""
        self.check_possible(r"<module>( announce.*|( descend){1,201}|"
                            r"( descend){201}( node (left|right))*( node)?)?", "callheavy", 200)

    def test_function_with_two_callers(self):
        """Two callers share a function, which calls a different one for each of them."""
        self.check_possible(r"<module>( announce.*| by_a( shared( leaf_a)?)?"
                            r"| by_b( shared( leaf_b)?)?)?", "shared_callee", 300)


@support.per_minor("3.6", "3.11", "3.15")
class Leaving(AttachTestCase):
    """Targets that end, or whose main thread ends."""

    def check(self, name, args, leave, function):
        """The function is seen before the target leaves."""

        def sample():
            with support.python_target(self.interpreter, name, *args) as target:
                profile = self.new_profile()
                process = support.start_pysample("attach", target.pid, *profile.options())
                wait_until_sampling(process, 0.3)
                result = leave(target, process)
                if result.status == 5:
                    return {}
                self.assert_ended_well(result)
                self.assert_consistent(profile.load())
                return profile.stacks

        support.sampled_until(sample, lambda stacks: has_function(stacks, function),
                              function + " is seen")

    def test_target_ends(self):
        def leave(target, process):
            target.process.send_signal(signal.SIGUSR1)
            result = support.finish(process)
            self.assertEqual(target.process.wait(timeout=support.PATIENCE_S), 0)
            return result

        self.check("exits", ["signal"], leave, "work")

    def test_target_is_killed(self):
        def leave(target, process):
            target.process.kill()
            return support.finish(process)

        self.check("busy", [], leave, "spin")

    def test_main_thread_ends_during_sampling(self):
        def leave(target, process):
            target.process.send_signal(signal.SIGUSR1)
            support.wait_until(lambda: target.state() == "Z", "the main thread has ended")
            time.sleep(0.2)
            result = support.end_by_signal(process)
            self.assertNotIn("ended", result.stderr)
            return result

        self.check("ended_main_thread", ["signal"], leave, "until_signalled")

    def test_main_thread_has_ended(self):
        with support.ended_main_thread_target(self.interpreter) as target:
            self.stacks_until(target, lambda stacks: any(
                "(%d)" % target.report["worker"] in stack[0] and "work" in stack[-1]
                for stack in stacks), "the other thread is seen", "-t", "-d", "0.2")
            self.assertTrue(target.runs())


def shortened(stack):
    """Shorten runs of equal names: ("descend * 200", …)."""
    return tuple("%s * %d" % (name, len(list(group))) for name, group in itertools.groupby(stack))


PIPE_BYTES = 65536  # capacity of a pipe


def has_signal(process, mask, number):
    """Whether the signal is in that mask of the process; see proc_pid_status(5)."""
    status = support.read("/proc/%d/status" % process.pid)
    found = re.search(r"^%s:\s*([0-9a-f]+)$" % mask, status, re.M).group(1)
    return int(found, 16) >> (number - 1) & 1


def catches(process, number):
    return has_signal(process, "SigCgt", number)


def is_pending(process, number):
    return has_signal(process, "ShdPnd", number)


def is_writing(process):
    """Whether the process sleeps in write(2), system call 1 on x86-64."""
    return support.read("/proc/%d/syscall" % process.pid).split()[0] == "1"


def wait_until_sampling(process, pause_s=0.5):
    """Wait until pysample would write a profile if asked to end."""
    support.wait_until(lambda: catches(process, signal.SIGTERM), "pysample catches signals")
    time.sleep(pause_s)


class Ending(AttachTestCase):
    """The end of a run does not depend on the version, so the newest is enough."""

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def test_signals_finish_the_profile(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                support.sampled_until(lambda number=number: self.signalled(number), lambda stacks:
                                      has_function(stacks, "spin"), "spin is seen")
                self.assertTrue(self.target.runs())

    def signalled(self, number):
        """The stacks of a run that is ended by the signal."""
        profile = self.new_profile()
        process = support.start_pysample("attach", self.target.pid, *profile.options())
        wait_until_sampling(process, 0.2)
        result = support.end_by_signal(process, number)
        if result.status == 5:
            return {}
        self.assert_ended_well(result)
        self.assert_consistent(profile.load())
        return profile.stacks

    def test_a_killed_profiler_leaves_the_old_file(self):
        path = os.path.join(self.folder, "profile")
        with open(path, "w", encoding="ascii") as file:
            file.write("old\n")
        process = support.start_pysample("attach", self.target.pid, "-o", path)
        wait_until_sampling(process)
        process.kill()
        process.communicate()
        self.assertEqual(support.read(path), "old\n")
        self.assertEqual(os.listdir(self.folder), ["profile"])

    def test_only_requested_files_are_written(self):
        profile = self.profile(self.target, "-d", "0.2")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         sorted(os.path.basename(path)
                                for path in (profile.path, profile.stats_path)))

    def test_no_file_after_a_failure(self):
        path = os.path.join(self.folder, "profile")
        with support.plain_target("sleep", "60") as other:
            self.assert_ended_well(pysample("attach", other.pid, "-o", path), 3)
        self.assertEqual(os.listdir(self.folder), [])

    def file(self, name, text="", mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def link(self, name, target):
        path = os.path.join(self.folder, name)
        os.symlink(target, path)
        return path

    def attach_to(self, path, *options, **kwargs):
        """A short run that writes collapsed stacks to path."""
        return pysample("attach", self.target.pid, "-d", "0.1", *support.COLLAPSED, "-o", path,
                        *options, **kwargs)

    def test_a_failure_leaves_what_a_link_leads_to(self):
        self.file("real", "old\n")
        self.link("second", "real")
        path = self.link("link", "second")
        with support.plain_target("sleep", "60") as other:
            self.assert_ended_well(pysample("attach", other.pid, "-o", path), 3)
        self.assertEqual(support.read(path), "old\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["link", "real", "second"])

    def test_a_link_stays_a_link(self):
        self.file("real", "old\n", 0o640)
        os.mkdir(os.path.join(self.folder, "folder"))
        for name, target in ("link", "real"), ("folder/link", "../real"), ("to_none", "none"):
            with self.subTest(name):
                path = self.link(name, target)
                self.assert_ended_well(self.attach_to(path))
                self.assertEqual(os.readlink(path), target)
                self.assertTrue(parse_collapsed(support.read(path)))
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["folder", "link", "none", "real", "to_none"])

    def test_a_replaced_file_keeps_its_permissions(self):
        path = self.file("profile", "old\n", 0o604)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65533)
        before = os.stat(path)
        self.assert_ended_well(self.attach_to(path))
        after = os.stat(path)
        self.assertEqual((after.st_mode, after.st_uid, after.st_gid),
                         (before.st_mode, before.st_uid, before.st_gid))
        self.assertNotEqual(after.st_ino, before.st_ino)

    def test_what_cannot_be_replaced_for_all_is_written_in_place(self):
        path = self.file("profile", "old\n")
        os.link(path, os.path.join(self.folder, "other_name"))
        with open(path, encoding="utf-8") as reader:
            for name in path, "/dev/fd/%d" % reader.fileno():
                with self.subTest(name):
                    self.assert_ended_well(self.attach_to(name, pass_fds=(reader.fileno(),)))
                    reader.seek(0)
                    self.assertTrue(parse_collapsed(reader.read()))
                if os.path.exists(os.path.join(self.folder, "other_name")):
                    os.remove(os.path.join(self.folder, "other_name"))
        self.assertEqual(os.listdir(self.folder), ["profile"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a file")
    def test_a_file_that_is_mounted_alone(self):
        path = self.file("profile", "old\n")
        mounted = self.file("mounted", "")
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", path, mounted,
                   support.PYSAMPLE, "attach", str(self.target.pid), "-d", "0.1", "-q",
                   *support.COLLAPSED, "-o", mounted]
        subprocess.run(command, check=True)
        self.assertTrue(parse_collapsed(support.read(path)))

    def test_one_file_under_two_names(self):
        self.file("profile", "old\n")
        self.link("link", "profile")
        self.link("to_none", "none")
        for names in (("profile", "./profile"), ("profile", "link"), ("link", "profile"),
                      ("new", "./new"), ("new", self.folder + "/new"), ("to_none", "none"),
                      ("-", "-"), ("-", "/dev/stdout"), ("/dev/fd/1", "-")):
            with self.subTest(names=names):
                result = self.attach_to(names[0], "--stats-json", names[1], cwd=self.folder)
                self.assert_ended_well(result, 2)
                self.assertEqual(result.stdout, "")
                self.assertIn("--stats-json", result.stderr)
        self.assertEqual(support.read(os.path.join(self.folder, "profile")), "old\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["link", "profile", "to_none"])

    def test_stdout_by_name_is_appended_to(self):
        path = self.file("log")
        for name in "-", "/dev/stdout", "log":
            with self.subTest(name), open(path, "w", encoding="ascii") as out:
                out.write("before\n")
                out.flush()
                self.assert_ended_well(self.attach_to(name, stdout=out, cwd=self.folder))
                out.write("after\n")
                out.flush()
                first, *stacks, last = support.read(path).splitlines(keepends=True)
                self.assertEqual((first, last), ("before\n", "after\n"))
                self.assertTrue(parse_collapsed("".join(stacks)))

    def no_sample(self, pid, *options):
        """The counters of a run that ends with status 5."""
        profile = self.new_profile()
        self.assert_ended_well(pysample("attach", pid, *profile.options(), *options), 5)
        self.assertFalse(os.path.exists(profile.path))
        stats = json.loads(support.read(profile.stats_path))
        self.assertLessEqual(STATS_KEYS, set(stats))
        self.assertEqual((stats["ticks"], stats["samples"], stats["pid"]), (0, 0, pid))
        return stats

    def test_counters_of_no_sample(self):
        stats = self.no_sample(self.target.pid, "-d", "1e-9")
        self.assertEqual(stats["python"], support.newest_interpreter().version)

    def test_counters_of_a_target_that_has_ended(self):
        with subprocess.Popen(["true"]) as zombie:
            os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
            stats = self.no_sample(zombie.pid)
        self.assertIsNone(stats["python"])
        self.assertIsNone(stats["runtime_found_by"])

    def test_every_failing_file_is_reported(self):
        with open("/dev/full", "wb") as full:
            result = self.attach_to("/dev/full", "--stats-json", "-", stdout=full)
        self.assert_ended_well(result, 1)
        self.assertRegex(result.stderr, r"(?s)cannot write /dev/full: .*"
                         r"cannot write standard output: ")

    def test_a_file_that_is_too_large_leaves_the_old_one(self):
        path = self.file("profile", "old\n")
        limited = ["prlimit", "--fsize=16", "--"]
        self.assert_ended_well(self.attach_to(path, wrapper=limited), 1)
        self.assertEqual(support.read(path), "old\n")
        self.assertEqual(os.listdir(self.folder), ["profile"])

    def test_second_signal_leaves_no_file(self):
        """Whenever it comes, the file is either the old one or the new one, and whole."""
        path = self.file("profile", "old\n")
        for i in range(20):
            process = support.start_pysample("attach", self.target.pid, *support.COLLAPSED,
                                             "-o", path)
            wait_until_sampling(process, 0.02)
            if i == 0:  # both at once, before anything is written
                process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            time.sleep(i * 0.0005)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            self.assertIn(support.finish(process).status,
                          (0, 5, 128 + signal.SIGINT, 128 + signal.SIGTERM))
            self.assertEqual(os.listdir(self.folder), ["profile"])
            text = support.read(path)
            self.assertTrue(text == "old\n" or parse_collapsed(text))

    def test_output_that_cannot_be_written(self):
        result = pysample("attach", self.target.pid, "-d", "0.2", "-o", "/nonexistent/x")
        self.assert_ended_well(result, 1)
        self.assertRegex(result.stderr, r"\A[^\n]*/nonexistent/x[^\n]*\n\Z")

    def test_a_pipe_given_by_name_stays_a_pipe(self):
        path = os.path.join(self.folder, "fifo")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            self.assert_ended_well(pysample("attach", self.target.pid, "-d", "0.2", "-o", path))
            self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
            self.assertTrue(parse_collapsed(os.read(reader, 65536).decode("utf-8")))
        finally:
            os.close(reader)

    def test_signal_while_writing(self):
        """The first signal does not truncate a profile that waits for its reader."""
        with support.python_target(support.newest_interpreter(), "callheavy", 200) as target:
            for name, number in itertools.product(("fifo", "-"), (signal.SIGHUP, signal.SIGINT)):
                def is_whole_and_long(name=name, number=number):
                    text = self.signalled_while_writing(target.pid, name, number)
                    self.assertTrue(parse_collapsed(text))
                    return len(text) > 2 * PIPE_BYTES

                with self.subTest(name=name, number=number.name):
                    support.wait_until(is_whole_and_long, "there are many stacks")

    def test_two_signals_while_a_file_is_written(self):
        """They take effect once the temporary file is gone; the profile is whole."""
        path = os.path.join(self.folder, "profile")
        with support.python_target(support.newest_interpreter(), "callheavy", 200) as target:
            for _ in range(50):
                # A few MB, so that writing takes a while.
                process = support.start_pysample("attach", target.pid, "-q", "-d", "1", "-r",
                                                 "max", "-f", "jsonl", "-o", path)
                caught = self.stopped_while_writing(process)
                if caught:
                    process.send_signal(signal.SIGINT)
                    process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGCONT)
                result = support.finish(process)
                self.assertEqual(os.listdir(self.folder), ["profile"])
                text = support.read(path)
                self.assertEqual(text[-1], "\n")
                self.assertEqual(json.loads(text.splitlines()[-1])["type"], "sample")
                if caught:
                    self.assertIn(result.status, (128 + signal.SIGINT, 128 + signal.SIGTERM))
                    return
        self.fail("the temporary file was never seen")

    def stopped_while_writing(self, process):
        """Stop pysample as soon as it has a temporary file. Returns False if the file was gone
        first."""

        def temporaries():
            return [name for name in os.listdir(self.folder) if name != "profile"]

        support.wait_until(lambda: catches(process, signal.SIGTERM), "pysample catches signals")
        time.sleep(0.3)  # the set-up is over
        while process.poll() is None and not temporaries():
            pass
        process.send_signal(signal.SIGSTOP)
        support.wait_until(lambda: process.poll() is not None or support.state(process.pid) in "TZ",
                           "it is stopped")
        return process.poll() is None and bool(temporaries())

    def signalled_while_writing(self, pid, name, number):
        """The profile written to a pipe that was full when the signal came."""
        path = os.path.join(self.folder, "fifo")
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path)
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
            writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(writer, bytes(PIPE_BYTES))
            os.set_blocking(writer, True)
            process = support.start_pysample("attach", pid, "-q", "-d", "1", "-o", name,
                                             stdout=writer, cwd=self.folder)
            os.close(writer)
            support.wait_until(lambda: is_writing(process), "the profile waits for its reader")
            process.send_signal(number)
            support.wait_until(lambda: not is_pending(process, number), "the signal has come")
            os.set_blocking(reader.fileno(), True)
            text = reader.read()
        result = support.finish(process)
        self.assert_ended_well(result)
        self.assertEqual(result.stderr, "")
        return text[PIPE_BYTES:].decode("utf-8")

    def test_stdout_gets_collapsed_stacks(self):
        for options in ([], ["-o", "-"]):
            with self.subTest(options=options):
                result = pysample("attach", self.target.pid, "-d", "0.2", *options)
                self.assert_ended_well(result)
                stacks = parse_collapsed(result.stdout)
                self.assertTrue(any("spin" in names(stack) for stack in stacks))

    def test_terminal_gets_a_summary(self):
        output = self.on_terminal("attach", self.target.pid, "-d", "0.2")
        self.assertIn("spin", output)
        self.assertNotRegex(output, r"(?m)^[^\n]*;[^\n]* \d+\r$")

    def on_terminal(self, *args):
        """What pysample prints on a terminal that is its stdout."""
        controller, terminal = pty.openpty()
        output = []
        reader = threading.Thread(target=read_all, args=(controller, output))
        process = support.start_pysample(*args, stdout=terminal)
        os.close(terminal)
        reader.start()
        result = support.finish(process)
        reader.join()
        os.close(controller)
        self.assert_ended_well(result)
        return b"".join(output).decode("utf-8")

    def test_summary_by_name(self):
        result = pysample("attach", self.target.pid, "-d", "0.2", "-f", "summary")
        self.assert_ended_well(result)
        self.assertRegex(result.stdout, r"(?m)\bspin +\S*busy\.py:\d+$")

    def test_quiet(self):
        result = pysample("attach", self.target.pid, "-d", "0.2", "-q")
        self.assert_ended_well(result)
        self.assertEqual(result.stderr, "")


def read_all(descriptor, output):
    """Read to the end. A terminal whose other side is closed gives EIO, not an end of file."""
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            data = b""
        if not data:
            return
        output.append(data)


if __name__ == "__main__":
    unittest.main()
