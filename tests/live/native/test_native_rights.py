# SPDX-License-Identifier: MIT
"""`pysample attach --native` without all rights: what is shown, and what is reported."""
import unittest

import support
from native.test_native import names_of
from support import native_truth
from test_matrix import NobodysInterpreter

LATER_S = 4  # waits_later.py loads its library after 1 s, and maps are read each second


def newest_in_root():
    """An interpreter that another user can run: one in a separate root."""
    found = [one for one in support.tested_interpreters() if one.root and one.minor == "3.15"]
    if not found:
        raise unittest.SkipTest("not tested here: scripts/testbed was not run")
    return found[0]


class Forbidden(unittest.TestCase):
    """What is reported to a sandbox, and to a user without rights."""

    sleeps = True

    def sample(self, name, number, enough, seconds=1):
        """Sample one target after the other until the stacks, as names, are enough. Returns the
        stacks and what was reported. A seccomp filter fails perf_event_open() with that errno."""
        wrapper = [*support.FORBID_CALL, "perf_event_open", number]
        stacks, messages = [], set()

        def is_enough():
            with support.python_target(newest_in_root(), name) as target:
                result = support.pysample("attach", "-n", "--plumbing", "-d", seconds,
                                          *support.COLLAPSED, target.pid, wrapper=wrapper)
            if result.status == 5:
                return False
            self.assertEqual(result.status, 0, result.stderr)
            self.assertIn("no C frames for running threads: ", result.stderr)
            messages.add(result.stderr)
            stacks.extend(map(names_of, support.parse_collapsed(result.stdout)))
            return any(map(enough, stacks))

        support.wait_until(is_enough, "what is looked for is seen")
        return stacks, messages

    def test_running(self):
        for number, why in (("EPERM", "is not allowed"), ("ENOSYS", "cannot copy stacks")):
            with self.subTest(number):
                stacks, messages = self.sample("shortcalls", number, lambda names: "main" in names)
                for stderr in messages:
                    self.assertIn(why, stderr)
                for names in stacks:
                    self.assertEqual(names[0], "<module>")

    def test_waiting(self):
        """What /proc shows is still permitted."""
        stacks, _ = self.sample("sleeps_in_c", "EPERM", lambda names: "wait_in_c" in names)
        for names in stacks:
            if "wait_in_c" in names:
                self.assertEqual(names[0], "_start")
                self.assertIn("clock_nanosleep", names[names.index("wait_in_c"):])

    def test_libraries_loaded_during_sampling(self):
        """No event reports them, and no thread runs: a thread that waits there reveals them."""
        self.sample("waits_later", "EPERM", lambda names: (
            "wait_in_library" in names and any("poll" in name for name in names)
            and "??" not in names), seconds=LATER_S)


class Nobody(unittest.TestCase):
    """A user without any capability samples a process of the same user."""

    sleeps = True

    def sample(self, name, enough, *args):
        """Sample until the stacks of one run, as names, are enough. Returns what that run
        reported."""
        interpreter = NobodysInterpreter(**vars(newest_in_root()))
        found = []

        def is_enough():
            result = support.pysample_as_nobody(
                "attach", "-n", "--plumbing", "-d", "2", *support.COLLAPSED, target.pid, limit=args)
            if "perf_event_open" in result.stderr:
                self.skipTest("not tested here: " + result.stderr.strip())
            if result.status == 5:
                return False
            self.assertEqual(result.status, 0, result.stderr)
            found.append(result.stderr)
            return enough(list(map(names_of, support.parse_collapsed(result.stdout))))

        with support.python_target(interpreter, name) as target:
            support.wait_until(is_enough, "what is looked for is seen")
        return found[-1]

    def test_running(self):
        stderr = self.sample("shortcalls", lambda stacks: any(
            names[0] == "_start" and "main" in names for names in stacks))
        paranoid = int(support.read("/proc/sys/kernel/perf_event_paranoid"))
        self.assertEqual("user CPU only" in stderr, paranoid > 1, stderr)

    def test_little_locked_memory(self):
        """Rings are locked memory. Threads without one are still sampled: here all wait."""
        stderr = self.sample("every_wait", lambda stacks: all(
            any(way in names for names in stacks) for way in native_truth.WAYS),
            "prlimit", "--memlock=0")
        self.assertRegex(stderr, r"\b[1-9]\d* threads? could not be sampled while running.*ulimit -l")
