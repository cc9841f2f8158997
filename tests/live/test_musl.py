# SPDX-License-Identifier: MIT
"""Programs of another C library, musl: it registers no restartable sequences, and has
no call frame information."""
import itertools
import os
import re
import shutil
import subprocess
import unittest

import support
from support import core_files, names, pysample
from test_attach import is_possible
from test_interrupts import why_not
from test_locator import running

# What each thread of tests/targets/native/every_wait.py waits in.
WAITS_IN = {
    "MainThread": "clock_nanosleep", "sleep": "clock_nanosleep", "key_of_sort": "clock_nanosleep",
    "lock": "sem_timedwait", "timed_lock": "sem_timedwait", "get": "sem_timedwait",
    "get_simple": "sem_timedwait", "condition": "sem_timedwait", "event": "sem_timedwait",
    "select_select": "select", "epoll": "epoll_pwait", "poll": "poll", "read": "read",
    "receive": "recvfrom",
}
UNNAMED = re.compile(r"\?\? \(libc\.so\+0x[0-9a-f]+\)$")  # musl's own functions, stripped
GAP = "[unknown]"


class MuslTestCase(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.interpreter = support.musl_interpreter()
        if not cls.interpreter:
            raise unittest.SkipTest("not tested here: musl (run scripts/testbed to see why)")

    def assert_truth(self, dumped, report):
        threads = {thread["tid"]: thread for thread in dumped["threads"]}
        self.assertEqual(dumped["python"], report["python"])
        self.assertEqual(set(threads), {truth["tid"] for truth in report["threads"]})
        for truth in report["threads"]:
            with self.subTest(truth["situation"]):
                thread = threads[truth["tid"]]
                self.assertEqual(support.dumped_frames(thread), support.expected_frames(truth))
                self.assertEqual(thread["main"], truth["main"])


class Dump(MuslTestCase):
    def test_corpus(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            self.assert_truth(support.dump(target.pid), target.report)

    def test_names_of_threads(self):
        with support.python_target(self.interpreter, "every_wait") as target:
            threads = support.dump(target.pid)["threads"]
            tids = support.innermost_tids(target.pid)
        self.assertEqual({thread["name"] for thread in threads}, set(WAITS_IN))
        self.assertEqual({thread["tid"] for thread in threads}, set(tids))

    def test_cores(self):
        with core_files.kernel_cores(), core_files.killed(self.interpreter, "corpus") as core:
            self.assert_truth(core_files.core_json(core.path), core.report)
        with support.parked_target(self.interpreter, "corpus") as target:
            core = core_files.gcore(target)
            self.assert_truth(core_files.core_json(core.path), core.report)


class Attach(MuslTestCase):
    """Two chains of calls that take turns: both are seen, and no other."""

    def check(self, *options, wrapper=()):
        for variant in "calls", "generators", "coroutines":

            def sample(variant=variant):
                result = pysample("attach", target.pid, "-r", 1000, "-d", "0.3",
                                  *support.COLLAPSED, *options, wrapper=wrapper)
                self.assertIn(result.status, (0, 5), result.stderr)
                stacks = support.without_gc(support.parse_collapsed(result.stdout))
                for stack in stacks:
                    self.assertTrue(is_possible(tuple(names(stack)), variant), stack)
                return stacks

            with self.subTest(variant), support.python_target(
                    self.interpreter, "alternating", variant, 40) as target:
                support.sampled_until(sample, lambda stacks: all(
                    any(names(stack)[-1:] == [leaf] for stack in stacks)
                    for leaf in ("a005", "b005")), "both leaves are seen")
                self.assertTrue(target.runs(), target.stderr())

    def test_bpf(self):
        if why_not():
            self.skipTest(why_not())
        self.check("--engine", "bpf")

    def test_preempt_with_task_clock(self):
        self.check(*support.PREEMPT)

    def test_preempt_with_run_count(self):
        self.check(*support.PREEMPT, wrapper=[*support.FORBID_CALL, "perf_event_open", "EPERM"])

    def test_threads(self):
        """Each thread has a stack of its own, on whichever CPU it runs."""
        for engine in ["preempt"] + ["bpf"] * (not why_not()):

            def sample(engine=engine):
                result = pysample("attach", target.pid, "-r", 1000, "-d", "0.3",
                                  *support.COLLAPSED, "--engine", engine)
                self.assertIn(result.status, (0, 5), result.stderr)
                stacks = support.without_gc(support.parse_collapsed(result.stdout))
                for called in map(names, stacks):
                    if "alternate" in called:
                        chain = called[called.index("alternate"):]
                        self.assertTrue(is_possible(("<module>", *chain), "calls"), called)
                return stacks

            with self.subTest(engine), support.python_target(
                    self.interpreter, "parallel", "calls", 40, 4, 5000, 0) as target:
                support.sampled_until(sample, lambda stacks: all(
                    any(names(stack)[-1:] == [leaf] for stack in stacks)
                    for leaf in ("a005", "b005")), "both leaves are seen")

    def test_run(self):
        with support.fresh_folder(self.interpreter.root) as (outside, inside):
            with open(os.path.join(outside, "work.py"), "w", encoding="utf-8") as file:
                file.write("def work():\n    return sum(range(100))\n"
                           "import time\nend = time.monotonic() + 1\n"
                           "while time.monotonic() < end:\n    work()\nraise SystemExit(7)\n")

            def sample():
                result = pysample("run", *support.COLLAPSED, "--", *self.interpreter.command(),
                                  inside + "/work.py")
                self.assertEqual(result.status, 7, result.stderr)
                return support.parse_collapsed(result.stdout)

            support.sampled_until(sample, lambda stacks: any(
                names(stack) == ["<module>", "work"] for stack in stacks), "work() is seen")


class Native(MuslTestCase):
    """C frames. musl has no call frame information, and Debian strips its hidden names."""

    def assert_whole(self, frames, is_main):
        shown = [frame["name"] for frame in frames]
        self.assertNotIn(GAP, shown)
        self.assertEqual(shown[0] if is_main else bool(UNNAMED.match(shown[0])),
                         "_start" if is_main else True, shown)

    def test_waiting(self):
        with support.python_target(self.interpreter, "every_wait") as target:
            support.wait_until(
                lambda: all(re.match(r"\d", support.read("/proc/%d/task/%s/syscall" % (
                    target.pid, tid))) for tid in os.listdir("/proc/%d/task" % target.pid)),
                "all threads wait")
            threads = support.dump(target.pid, "--native")["threads"]
        self.assertEqual({thread["name"] for thread in threads}, set(WAITS_IN))
        for thread in threads:
            with self.subTest(thread["name"]):
                frames = thread["frames"]
                self.assert_whole(frames, thread["main"])
                innermost = itertools.takewhile(lambda frame: frame["kind"] != "python",
                                                reversed(frames))
                called = [frame["name"] for frame in reversed(list(innermost))]
                self.assertIn(WAITS_IN[thread["name"]], called)

    def test_running(self):
        if why_not():
            self.skipTest(why_not())

        def sample():
            result = pysample("attach", "-n", "--plumbing", "-d", 1, *support.COLLAPSED, target.pid)
            self.assertEqual(result.status, 0, result.stderr)
            stacks = support.parse_collapsed(result.stdout)
            for stack in stacks:
                if not any(GAP in label for label in stack):
                    self.assertRegex(stack[0], r"_start |\?\? \(libc|<module> ")
            return stacks

        with support.python_target(self.interpreter, "sort_key") as target:
            support.sampled_until(sample, lambda stacks: any(
                stack[0].startswith("_start ") and any("list_sort" in label for label in stack)
                for stack in stacks), "a whole stack is seen")

    def test_core(self):
        root = self.interpreter.root
        with core_files.kernel_cores(), core_files.killed(self.interpreter, "corpus") as core:
            document = core_files.core_json("--native", "--sysroot", root, core.path)
        for thread in document["threads"]:
            if thread["frames"]:
                self.assert_whole(thread["frames"], thread["main"])


class Embedded(MuslTestCase):
    """A program that loads libpython."""

    def test_loaded(self):
        root = self.interpreter.root
        with support.fresh_folder(root) as (outside, inside):
            for name in "embed.c", "nested.py":
                shutil.copy(os.path.join(support.TARGETS, "interpreters", name), outside)
            subprocess.run(["chroot", root, "musl-gcc", "-w", "-o", inside + "/embed",
                            inside + "/embed.c"], check=True, capture_output=True)
            library = "/usr/local/musl/lib/libpython%s.so.1.0" % self.interpreter.minor
            with running(["chroot", root, inside + "/embed", "load", library, "wait", "begin",
                          "run", inside + "/nested.py"], home="/usr/local/musl") as program:
                program.line()
                self.assertEqual(pysample("dump", program.pid).status, 3)
                program.resume()
                truth = program.truth()
                dumped = support.dump(program.pid)
                native = support.dump(program.pid, "--native")
        (thread,) = dumped["threads"]
        self.assertEqual(dumped["python"], truth["python"])
        self.assertEqual(support.dumped_frames(thread, support.PLACE_KEYS), truth["frames"])
        shown = [frame["name"] for frame in native["threads"][0]["frames"]]
        self.assertNotIn(GAP, shown)
        self.assertEqual(shown[0], "_start")
        self.assertLess(shown.index("main"), shown.index("PyRun_SimpleFileExFlags"))
        self.assertIn("read", shown)
