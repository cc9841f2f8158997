# SPDX-License-Identifier: MIT
"""`pysample attach`: what a profile of a known program has to say, and how a run ends."""
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

LOST_KEYS = {"grew", "chunk", "link", "code", "too_deep", "slow", "held"}
STATS_KEYS = {"ticks", "samples", "lost", "trimmed", "late_ticks", "failed_ticks",
              "p50_lateness_ns", "p99_lateness_ns", "max_lateness_ns", "achieved_hz", "wall_s",
              "first_sample_ns", "cpu_user_s", "cpu_sys_s", "max_rss_kib", "reads",
              "other_syscalls", "clock_reads", "clockless_threads", "rough_clock_threads", "mode",
              "unit", "shown_samples", "jit_samples", "shown_s", "sampled_wall_s", "sampled_cpu_s",
              "native", "python", "python_free_threaded", "python_newer_than_tested",
              "runtime_found_by", "pysample", "arguments", "host", "start_unix_ns"}


class Profile:
    """One finished run with -o and --stats-json."""

    def __init__(self, folder, number):
        self.path = os.path.join(folder, "profile%d" % number)
        self.stats_path = self.path + ".json"

    def options(self):
        return ["-o", self.path, "-f", "collapsed", "--stats-json", self.stats_path]

    def load(self):
        self.stacks = support.without_gc(parse_collapsed(support.read(self.path)))
        self.stats = json.loads(support.read(self.stats_path))
        self.lost = sum(self.stats["lost"].values())
        self.trimmed = self.stats["trimmed"]
        return self

    def nr_not_whole(self):
        """Of the stacks that were tried, what is not or not wholly in the profile. Before 3.11
        trimmed ones do not count: frames are copied one by one, and callers that change within
        a microsecond are left out."""
        on_heap = int(self.stats["python"].split(".")[1]) < 11
        return self.lost + (0 if on_heap else self.trimmed)

    def nr_tried(self):
        return self.lost + self.stats["samples"]

    def lost_share(self):
        return self.nr_not_whole() / max(1, self.nr_tried())


class AttachTestCase(unittest.TestCase):
    maxDiff = 4000

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
        self.assertGreaterEqual(stats["reads"], stats["ticks"])
        self.assertEqual(bool(stats["first_sample_ns"]), bool(stats["samples"]))

    def profile(self, target, *options):
        profile = self.new_profile()
        self.assert_ended_well(pysample("attach", target.pid, *profile.options(), *options))
        profile.load()
        self.assert_consistent(profile)
        return profile


def first_difference(got, expected):
    """The shortest stack that is too much or missing, with the nearest there is."""
    only_got = sorted(set(got) - set(expected), key=len)
    only_expected = sorted(set(expected) - set(got), key=len)
    return "%d stacks too many, the first %r; %d missing, the first %r" % (
        len(only_got), only_got[:1], len(only_expected), only_expected[:1])


@per_interpreter
class Parked(AttachTestCase):
    """Nothing moves, so nothing may be lost and everything is known."""

    SECONDS = 2
    CUT_OFF_AFTER_S = 1  # a tick that goes on so long after the end of the run: sampler.c

    def test_profile_equals_truth(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            forms = {"functions": [], "lines": ["--lines"], "threads": ["-t"]}
            runs = {}
            for form, options in forms.items():
                profile = self.new_profile()
                process = support.start_pysample(
                    "attach", target.pid, "-r", "1000", "-d", self.SECONDS, *profile.options(),
                    *options)
                runs[form] = profile, process
            for profile, process in runs.values():
                self.assert_ended_well(support.finish(process))
                profile.load()
        truths = target.report["threads"]
        for form, (profile, _) in runs.items():
            with self.subTest(form=form):
                self.assert_consistent(profile)
                self.assertEqual(profile.stats["lost"], dict.fromkeys(LOST_KEYS, 0))
                self.assert_all_looked_at(profile, len(truths))
                self.assertEqual(profile.stats["python"], target.report["python"])
        with self.subTest("stacks by function"):
            self.check_stacks(runs["functions"][0], truths, "first_line")
        with self.subTest("stacks by line"):
            self.check_stacks(runs["lines"][0], truths, "line")
        with self.subTest("stacks by thread"):
            self.check_threads(runs["threads"][0], truths)

    def test_first_tick(self):
        """It has all frames already, of the deepest chain of generators, too."""
        with support.parked_target(self.interpreter, "corpus") as target:
            profile = self.profile(target, "-r", "1", "-d", "1")
        self.assertEqual(profile.trimmed, 0)
        self.check_stacks(profile, target.report["threads"], "first_line")

    @staticmethod
    def nr_looks(profile):
        """Every tick looks at every thread, the first one included."""
        return profile.stats["ticks"]

    def assert_all_looked_at(self, profile, nr_threads):
        """At every tick, but that the last one may have been cut off on a loaded machine."""
        lacking = self.nr_looks(profile) * nr_threads - profile.stats["samples"]
        self.assertGreaterEqual(lacking, 0)
        if profile.stats["wall_s"] < self.SECONDS + self.CUT_OFF_AFTER_S:
            self.assertEqual(lacking, 0)
        self.assertLess(lacking, nr_threads)

    def assert_learnt(self, profile, expected):
        """Every stack is a true one, but for the few that were trimmed, and counted as such,
        while it was learnt where their generators are."""
        extra = {stack: nr for stack, nr in profile.stacks.items() if stack not in expected}
        for stack in extra:
            self.assertTrue(any(support.is_beginning(stack, full) for full in expected), stack)
        self.assertLessEqual(sum(extra.values()), profile.trimmed, first_difference(
            profile.stacks, expected))
        self.assertLessEqual(set(expected), set(profile.stacks), first_difference(
            profile.stacks, expected))
        nr_different = sum(abs(nr - profile.stacks[stack]) for stack, nr in expected.items())
        lacking = sum(expected.values()) - profile.stats["samples"]
        self.assertLessEqual(nr_different, 2 * profile.trimmed + lacking)
        self.assertLessEqual(profile.trimmed, sum(expected.values()) / 100)

    def check_stacks(self, profile, truths, line):
        threads = collections.Counter(support.expected_stack(truth, line) for truth in truths)
        self.assert_learnt(profile, {stack: nr * self.nr_looks(profile)
                                     for stack, nr in threads.items()})

    def check_threads(self, profile, truths):
        for stack in profile.stacks:
            self.assertRegex(stack[0], r"\Athread (.* )?\(\d+\)\Z")
        roots = {stack[0].rpartition("(")[2]: stack[0] for stack in profile.stacks}
        self.assertEqual(set(roots), {"%d)" % truth["tid"] for truth in truths})
        self.assert_learnt(profile, {
            (roots["%d)" % truth["tid"]],) + support.expected_stack(truth): self.nr_looks(profile)
            for truth in truths})


@per_interpreter
class SubInterpreters(AttachTestCase):
    """Three, parked; a thread has a stack in the main interpreter, too, that waits for its own."""

    def test_all_are_in_the_profile(self):
        with support.parked_sub_interpreters(self.interpreter) as target:
            plain = self.profile(target, "-d", "0.3")
            by_thread = self.profile(target, "-d", "0.3", "-t")
        truths = target.report["threads"]
        self.assertEqual(len(truths), 3)
        for truth in truths:
            stack = support.expected_stack(truth)
            with self.subTest(situation=truth["situation"]):
                self.assert_at_every_tick(plain, stack)
                roots = [found[0] for found in by_thread.stacks if found[1:] == stack]
                self.assertEqual(len(roots), 1)
                self.assertRegex(roots[0],
                                 r"\Athread (.* )?\(%d, interpreter [1-9]\d*\)\Z" % truth["tid"])
                self.assert_at_every_tick(by_thread, (roots[0],) + stack)
        self.assertIn(["park"], [names(stack)[-1:] for stack in plain.stacks])

    def assert_at_every_tick(self, profile, stack):
        """But for those that were lost, which a loaded machine may cause."""
        self.assertLessEqual(profile.stacks[stack], profile.stats["ticks"])
        self.assertGreaterEqual(profile.stacks[stack],
                                max(1, profile.stats["ticks"] - profile.lost - profile.trimmed))


CHAINS = {
    "calls": "%s000 %s001 %s002 %s003 %s004 %s005",
    "coroutines": "send_%s000 coroutine_%s001 coroutine_%s002 %s005",
    "generators": "generator_%s000 generator_%s001 generator_%s002 generator_%s003 %s004 %s005",
}


def at_most(share, total):
    """How many of total there can be if the share is kept: three standard deviations more."""
    return share * total + 3 * math.sqrt(share * total)


def is_possible(stack, variant):
    """Whether it is the beginning of a chain of alternating.py, or the program's own."""
    for letter in "ab":
        chain = ["<module>", "alternate"] + CHAINS[variant].replace("%s", letter).split()
        if variant == "coroutines" and list(stack) == chain[:-1] + ["pause"]:
            return True
        if stack and list(stack) == chain[:len(stack)]:
            return True
    return stack[:2] == ("<module>", "announce")


@support.per_layout
class Alternating(AttachTestCase):
    """Two chains that take turns faster than anybody can look.

    A stack that could not be read in one piece has to be counted as lost or trimmed;
    a stack that never was must not be in the profile.
    """

    alone = True  # how often copies mix two moments depends on what shares the processor's caches

    def check(self, variant, leaf_steps, rate, max_impossible, max_lost):
        if support.is_sanitized():
            self.skipTest("bounds of throughput mean nothing with sanitizers")
        def fault_of(sampled):
            total = sum(sampled.stacks.values())
            impossible = collections.Counter({stack: count for stack, count
                                              in sampled.stacks.items()
                                              if not is_possible(stack, variant)})
            for leaf in ("a005", "b005"):
                if not any(stack[-1:] == (leaf,) for stack in sampled.stacks):
                    return "%s was not seen in %d samples" % (leaf, total)
            if sum(impossible.values()) > at_most(max_impossible, total):
                return "%d impossible ones of %d samples, the most frequent ones: %s" % (
                    sum(impossible.values()), total, impossible.most_common(5))
            if sampled.lost_share > max_lost:
                return "%d of %d were lost" % (sampled.lost, sampled.tried)
            return None

        support.check_pooled(self, lambda: self.sample(variant, leaf_steps, rate), fault_of)

    def sample(self, variant, leaf_steps, rate):
        with support.python_target(self.interpreter, "alternating", variant,
                                   leaf_steps) as target:
            # At full speed there are more samples of one second than at 1 kHz of many.
            profile = self.profile(target, "-r", rate, "-d", 1 if rate == "max" else 2)
        counts = collections.Counter()
        for stack, count in profile.stacks.items():
            counts[tuple(names(stack))] += count
        return support.Sampled(counts, profile.nr_not_whole(), profile.nr_tried())

    def test_calls_at_1_khz(self):
        self.check("calls", 40, "1000", 0.001, 0.02)

    def test_calls_at_full_speed(self):
        self.check("calls", 40, "max", 0.005, 0.02)

    def test_generators_at_1_khz(self):
        self.check("generators", 4000, "1000", 0.001, 0.06)

    def test_generators_at_full_speed(self):
        self.check("generators", 4000, "max", 0.005, 0.06)

    # Little of what follows can be read in one piece: what is lost or trimmed has no bound.

    def test_coroutines_at_1_khz(self):
        self.check("coroutines", 40, "1000", 0.02, 1)

    def test_coroutines_at_full_speed(self):
        self.check("coroutines", 40, "max", 0.02, 1)

    def test_generators_of_a_microsecond(self):
        self.check("generators", 40, "max", 0.005, 1)


GENERATED = re.compile(r"outer_\d+|(outer_\d+\.<locals>\.)?(?P<inner>inner_\d+)")


def generation_of(label):
    """The generations that a label of churncode.py speaks of, by name, path and line."""
    name, path, line = parse_label(label)
    found = GENERATED.fullmatch(name)
    if not found:
        return set()
    numbers = {int(number) for number in re.findall(r"\d+", name)}
    numbers.add(int(path.rpartition(" ")[2]))
    offset = 2 if found.group("inner") else 1
    return numbers if line == min(numbers) % 1000 + offset else numbers | {-1}


class Ticks(AttachTestCase):
    """Every interval of a run has its tick, taken or counted; no version makes a difference."""

    def test_none_is_missing(self):
        cases = [(rate, jitter) for rate in (1000, 20000, 100000)
                 for jitter in ("--jitter", "--no-jitter")]
        with support.python_target(support.newest_interpreter(), "callheavy") as target:
            for rate, jitter in cases:
                with self.subTest(rate=rate, jitter=jitter):
                    stats = self.profile(target, "-r", rate, "-d", "0.5", jitter).stats
                    self.assertEqual(stats["ticks"] + stats["late_ticks"] + stats["failed_ticks"],
                                     rate // 2)
                    self.assertEqual(stats["samples"] + sum(stats["lost"].values()),
                                     stats["ticks"])
                    self.assertLessEqual(stats["p50_lateness_ns"], stats["p99_lateness_ns"])
                    self.assertLessEqual(stats["p99_lateness_ns"], stats["max_lateness_ns"])
                    self.assertGreater(stats["max_lateness_ns"], 0)

    def test_one_is_no_plural(self):
        with support.python_target(support.newest_interpreter(), "callheavy") as target:
            result = support.pysample("attach", target.pid, "-r", "2", "-d", "0.4", "--no-jitter",
                                      "-f", "collapsed")
        self.assertRegex(result.stderr, r"(?m)^pysample: 1 sample of 1 tick in 0\.4 s, "
                         r"2\.\d\d of 2 Hz, 0\.00 % lost, 0 ticks late$")

    def test_as_fast_as_can_be(self):
        with support.python_target(support.newest_interpreter(), "callheavy") as target:
            stats = self.profile(target, "-r", "max", "-d", "0.3").stats
        for key in "late_ticks", "p50_lateness_ns", "p99_lateness_ns", "max_lateness_ns":
            self.assertEqual(stats[key], 0, key)


@support.per_layout
class Changing(AttachTestCase):
    """What the profile says stays true when threads and code come and go."""

    def test_code_that_is_thrown_away(self):
        with support.python_target(self.interpreter, "churncode") as target:
            profile = self.profile(target, "-r", "10000", "-d", "2")
        nothing = profile.stacks.pop((support.NO_PYTHON_FRAMES,), 0)
        self.assertLessEqual(nothing, profile.trimmed)
        wrong = [names(stack)[1:] for stack in profile.stacks if not self.belongs_together(stack)]
        self.assertTrue(not wrong, "%d of %d stacks: %s" % (len(wrong), len(profile.stacks), wrong))
        self.assertTrue(any(generation_of(stack[-1]) for stack in profile.stacks))
        if not support.is_sanitized():
            self.assertLessEqual(profile.lost_share(), 0.1, profile.stats)

    @staticmethod
    def belongs_together(stack):
        generations = set().union(*map(generation_of, stack))
        callers = {int(name[-1]) for name in names(stack) if name.startswith("caller_")}
        return len(generations) <= 1 and (
            not generations or not callers or callers == {min(generations) % 7})

    def test_threads_that_come_and_go(self):
        with support.python_target(self.interpreter, "churn") as target:
            profile = self.profile(target, "-r", "1000", "-d", "2")
            self.assertTrue(target.runs())
            self.assertEqual(target.stderr(), "")
        roots = collections.Counter()
        for stack, count in profile.stacks.items():
            roots[(names(stack) or [""])[0]] += count
        bootstrap = support.name_in(self.interpreter, "Thread._bootstrap")
        known = sum(roots[name] for name in ("<module>", bootstrap, ""))
        self.assertGreater(roots[bootstrap], 0)
        self.assertGreaterEqual(known / sum(roots.values()), 0.99, roots)
        if not support.is_sanitized():
            # Half of them end within a tick or two, while their stacks are being learnt.
            self.assertLessEqual(profile.lost_share(), 0.1, profile.stats)

    def test_target_ends(self):
        with support.python_target(self.interpreter, "exits") as target:
            profile = self.profile(target)
            self.assertTrue(any("work" in names(stack) for stack in profile.stacks))
            self.assertEqual(target.process.wait(timeout=support.PATIENCE_S), 0)

    def test_main_thread_has_ended(self):
        with support.headless_target(self.interpreter) as target:
            profile = self.profile(target, "-t", "-d", "0.5")
            self.assertTrue(target.runs())
        self.assertTrue(any("(%d)" % target.report["worker"] in stack[0] and "work" in stack[-1]
                            for stack in profile.stacks), profile.stacks)

    def test_main_thread_ends_meanwhile(self):
        with support.python_target(self.interpreter, "headless", "later") as target:
            profile = self.new_profile()
            result = pysample("attach", target.pid, "-d", "2", *profile.options())
            self.assert_ended_well(result)
            self.assertNotIn("ended", result.stderr)
            self.assertEqual(target.state(), "Z", "the main thread has ended")
        self.assert_consistent(profile.load())
        self.assertTrue(any("later" in names(stack) for stack in profile.stacks))

    def test_target_is_killed(self):
        with support.python_target(self.interpreter, "busy") as target:
            profile = self.new_profile()
            process = support.start_pysample("attach", target.pid, *profile.options())
            wait_until_sampling(process)
            target.process.kill()
            self.assert_ended_well(support.finish(process))
            self.assert_consistent(profile.load())
            self.assertTrue(any("spin" in names(stack) for stack in profile.stacks))

    def test_deep_calls(self):
        """The stack of callheavy.py grows and shrinks 200 frames deep."""
        with support.python_target(self.interpreter, "callheavy", 200) as target:
            profile = self.profile(target, "-r", "1000", "-d", "1")
        possible = re.compile(r"<module>( descend){1,201}|"
                              r"<module>( descend){201}( node (left|right))*( node)?")
        counts = collections.Counter()
        for stack, count in profile.stacks.items():
            if not possible.fullmatch(" ".join(names(stack))):
                counts[shortened(names(stack))] += count
        # Before 3.11 the frames of a stack lie anywhere and are copied one by one.
        on_heap = support.version_key(self.interpreter) < [3, 11]
        self.assertLessEqual(sum(counts.values()),
                             at_most(0.02 if on_heap else 0.005, profile.stats["samples"]), counts)
        if not support.is_sanitized() and not on_heap:
            self.assertLessEqual(profile.lost_share(), 0.02, profile.stats)


    def test_function_that_two_share(self):
        """Two callers of a function that goes on to another one for each of them."""
        with support.python_target(self.interpreter, "shared", 300) as target:
            profile = self.profile(target, "-r", "1000", "-d", "1")
        possible = re.compile(r"<module>( announce| by_a( shared( leaf_a)?)?| by_b( shared( leaf_b)?)?)?")
        counts = collections.Counter()
        for stack, count in profile.stacks.items():
            if not possible.fullmatch(" ".join(names(stack))):
                counts[tuple(names(stack))] += count
        self.assertLessEqual(sum(counts.values()), at_most(0.005, profile.stats["samples"]), counts)


def shortened(stack):
    """("descend * 200", …) for names in a row that are equal."""
    return tuple("%s * %d" % (name, len(list(group))) for name, group in itertools.groupby(stack))


PIPE_BYTES = 65536  # what one holds


def has_signal(process, mask, number):
    """Whether it is in that mask of the process; see proc_pid_status(5)."""
    status = support.read("/proc/%d/status" % process.pid)
    found = re.search(r"^%s:\s*([0-9a-f]+)$" % mask, status, re.M).group(1)
    return int(found, 16) >> (number - 1) & 1


def catches(process, number):
    return has_signal(process, "SigCgt", number)


def is_pending(process, number):
    return has_signal(process, "ShdPnd", number)


def is_writing(process):
    """Whether it sleeps in write(2), which is 1 on x86-64."""
    return support.read("/proc/%d/syscall" % process.pid).split()[0] == "1"


def wait_until_sampling(process, pause_s=0.5):
    """Until it would write a profile if it were asked to."""
    support.wait_until(lambda: catches(process, signal.SIGTERM), "pysample catches signals")
    time.sleep(pause_s)


class Ending(AttachTestCase):
    """How a run ends does not depend on the version, so the newest is enough."""

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def test_signals_finish_the_profile(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                profile = self.new_profile()
                process = support.start_pysample("attach", self.target.pid, *profile.options())
                wait_until_sampling(process)
                self.assert_ended_well(support.end_by_signal(process, number))
                self.assert_consistent(profile.load())
                self.assertTrue(any("spin" in names(stack) for stack in profile.stacks))
                self.assertTrue(self.target.runs())

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

    def test_nothing_but_the_files_asked_for(self):
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
        return pysample("attach", self.target.pid, "-d", "0.1", "-f", "collapsed", "-o", path,
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
                   support.PYSAMPLE, "attach", str(self.target.pid), "-d", "0.1", "-q", "-f",
                   "collapsed", "-o", mounted]
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

    def test_stdout_by_name_goes_on_where_it_is(self):
        path = self.file("log")
        for name in "-", "/dev/stdout", "log":
            with self.subTest(name), open(path, "w", encoding="ascii") as out:
                out.write("before\n")
                out.flush()
                self.assert_ended_well(self.attach_to(name, stdout=out, cwd=self.folder))
                out.write("behind\n")
                out.flush()
                first, *stacks, last = support.read(path).splitlines(keepends=True)
                self.assertEqual((first, last), ("before\n", "behind\n"))
                self.assertTrue(parse_collapsed("".join(stacks)))

    def no_sample(self, pid, *options):
        """The counters of a run that ends with 5."""
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

    def test_every_file_that_fails_is_told(self):
        with open("/dev/full", "wb") as full:
            result = self.attach_to("/dev/full", "--stats-json", "-", stdout=full)
        self.assert_ended_well(result, 1)
        self.assertRegex(result.stderr, r"(?s)cannot write /dev/full: .*"
                         r"cannot write the standard output: ")

    def test_a_file_that_is_too_large_leaves_the_old_one(self):
        path = self.file("profile", "old\n")
        limited = ["prlimit", "--fsize=16", "--"]
        self.assert_ended_well(self.attach_to(path, wrapper=limited), 1)
        self.assertEqual(support.read(path), "old\n")
        self.assertEqual(os.listdir(self.folder), ["profile"])

    def test_a_second_signal_leaves_nothing_behind(self):
        """Whenever it comes: the old file, or the new one and whole."""
        path = self.file("profile", "old\n")
        for i in range(20):
            process = support.start_pysample("attach", self.target.pid, "-f", "collapsed",
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
        """The first signal does not cut a profile that waits for its reader."""
        with support.python_target(support.newest_interpreter(), "callheavy", 200) as target:
            for name, number in itertools.product(("fifo", "-"), (signal.SIGHUP, signal.SIGINT)):
                with self.subTest(name=name, number=number.name):
                    text = self.signalled_while_writing(target.pid, name, number)
                    self.assertGreater(len(text), 2 * PIPE_BYTES)
                    self.assertTrue(parse_collapsed(text))

    def test_two_signals_while_a_file_is_written(self):
        """They wait until the temporary file is gone; the profile is whole."""
        path = os.path.join(self.folder, "profile")
        with support.python_target(support.newest_interpreter(), "callheavy", 200) as target:
            for _ in range(50):
                # Some MB, so that there is a while in which it is written.
                process = support.start_pysample("attach", target.pid, "-q", "-d", "0.5", "-r",
                                                 20000, "-f", "jsonl", "-o", path)
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
        """Stop it as soon as it has a temporary file; False if that was gone by then."""

        def temporaries():
            return [name for name in os.listdir(self.folder) if name != "profile"]

        support.wait_until(lambda: catches(process, signal.SIGTERM), "pysample catches signals")
        time.sleep(0.3)  # opening is over
        while process.poll() is None and not temporaries():
            pass
        process.send_signal(signal.SIGSTOP)
        support.wait_until(lambda: process.poll() is not None or support.state(process.pid) in "TZ",
                           "it is stopped")
        return process.poll() is None and bool(temporaries())

    def signalled_while_writing(self, pid, name, number):
        """The profile that is written to a pipe which was full when the signal came."""
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
        """What appears on a terminal that is pysample's stdout."""
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
    """A terminal whose other side is closed gives EIO, not an end."""
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
