# SPDX-License-Identifier: MIT
"""`pysample core`: every thread of a dead process is where the interpreter last said it was."""
import collections
import os
import platform
import signal
import unittest

import support
from support import core_files, per_interpreter
from support.core_files import core_json
from test_threads import names_of

SITUATIONS = ("single", "threads", "deep", "names", "handled", "garbage")


class CoreTestCase(unittest.TestCase):
    """Comparisons with the truth."""

    maxDiff = 4000

    def assert_thread(self, thread, truth):
        fault = core_files.frames_fault(thread, truth)
        self.assertIsNone(fault, fault)
        self.assertIsNone(thread["error"])
        self.assertEqual(thread["main"], truth["main"])
        if "name" in truth:
            self.assertEqual(thread["name"], support.shown(truth["name"]))

    def assert_threads(self, document, truths, own_tid=lambda tid: tid):
        threads = {own_tid(thread["tid"]): thread for thread in document["threads"]}
        self.assertEqual(len(threads), len(document["threads"]), "a thread is there twice")
        self.assertEqual(set(threads), {truth["tid"] for truth in truths})
        for truth in truths:
            with self.subTest(thread=truth.get("name", truth.get("situation"))):
                self.assert_thread(threads[truth["tid"]], truth)

    def flagged(self, document, key, own_tid=lambda tid: tid):
        return [own_tid(thread["tid"]) for thread in document["threads"] if thread[key]]

    def assert_core(self, core, own_tid=lambda tid: tid, arguments=(), root=""):
        """The report has what tests/targets/processes/crash.py reported, and nothing else. root:
        the prefix of paths in a core that was written from outside the target's root."""
        document, report = core_json(core.path, *arguments), core.report
        self.assertEqual(document["core"], core.path)
        self.assertEqual(document["python"], report["python"])
        self.assertEqual(document["executable"], root + report["executable"])
        self.assertEqual(document["truncated_bytes"], 0)
        self.assert_threads(document, report["threads"], own_tid)
        # 3.6 does not record who holds the GIL.
        has_holder = (report["holds_gil"] and self.interpreter.minor != "3.6"
                      and not self.interpreter.is_free_threaded)
        holders = [report["tid"]] * has_holder
        self.assertEqual(self.flagged(document, "holds_gil", own_tid), holders)
        return document


DEATHS = {
    "abort": {"signal": 6, "name": "SIGABRT", "code": -6, "code_name": "SI_TKILL",
              "address": None},
    "quit": {"signal": 3, "name": "SIGQUIT", "code": 0, "code_name": "SI_USER", "address": None},
    "segv": {"signal": 11, "name": "SIGSEGV", "code": 1, "code_name": "SEGV_MAPERR",
             "sender_pid": None, "sender_uid": None},
}


@per_interpreter
@support.slow_per_free_threaded
class KernelCores(CoreTestCase):
    """Cores of processes that die."""

    def setUp(self):
        self.enterContext(core_files.kernel_cores())

    def check(self, situation, end="abort", *arguments):
        with core_files.crashed(self.interpreter, situation, end, *arguments) as core:
            document = self.assert_core(core)
            self.assertEqual(self.flagged(document, "crashed"), [core.report["tid"]])
            self.assertEqual(document["threads"][0]["tid"], core.report["tid"],
                             "not the first thread")
            return core, document

    def test_each_situation(self):
        for situation in SITUATIONS:
            with self.subTest(situation):
                self.check(situation)

    def test_each_death(self):
        for end, death in DEATHS.items():
            with self.subTest(end):
                core, document = self.check("single", end)
                death = dict(death)
                if end == "segv":
                    death["address"] = core.report["address"]
                else:
                    death.update(sender_pid=core.report["pid"], sender_uid=os.geteuid())
                    self.assertIn("sent by itself", document["death"]["text"])
                self.assertEqual({key: document["death"][key] for key in death}, death)
                self.assertFalse(document["death"]["raised_again"])

    def test_signal_reraised_by_a_handler(self):
        """The handler is faulthandler's. The kernel then says that the process sent the signal
        itself."""
        sysroot = ["--sysroot", self.interpreter.root] if self.interpreter.root else []
        with core_files.crashed(self.interpreter, "single", "raised_again") as core:
            document = core_json("--native", *sysroot, core.path)
            # Its handler is installed without SA_SIGINFO, so the code is unknown.
            death = dict(DEATHS["segv"], code=0, code_name=None, raised_again=True,
                         address=core.report["address"])
            self.assertEqual({key: document["death"][key] for key in death}, death)
            self.assertIn("raised again by a handler", document["death"]["text"])
            names = [frame["name"] for frame in document["threads"][0]["frames"]]
            self.assertIn("<signal handler called>", names)
            # Without the files of the C library nothing is found and nothing is claimed.
            document = core_json("--sysroot", core.folder, core.path)
            self.assertFalse(self.interpreter.root and document["death"]["raised_again"])

    def test_hundred_thousand_frames(self):
        if support.version_key(self.interpreter) < [3, 11]:
            self.skipTest("up to 3.10 a call needs C stack")
        self.check("far")

    def test_c_stack_overflow(self):
        if support.version_key(self.interpreter) >= [3, 12]:
            self.skipTest("since 3.12 calls that need C stack are limited")
        with core_files.crashed(self.interpreter, "overflow") as core:
            document = core_json(core.path)
            (thread,) = document["threads"]
            self.assertEqual(document["death"]["signal"], signal.SIGSEGV)
            names = [frame["name"] for frame in thread["frames"]]
            self.assertEqual(names[:2], ["<module>", "overflow"])
            self.assertEqual(set(names[2:]), {"overflow_again"})
            self.assertGreater(len(names), 2000)
            self.assertIsNone(thread["error"])
            self.assertIn("C stack is full", document["death"]["finding"])

    def test_stack_pointer_below_a_full_stack(self):
        """In the main thread and in another one, whose guard page is made in another way."""
        if platform.machine() != "x86_64":
            self.skipTest("the target contains x86-64 machine code")
        for situation in ("deep_in_c", "thread_deep_in_c"):
            with self.subTest(situation), \
                    core_files.crashed(self.interpreter, situation, "segv") as core:
                document = core_json("-n", core.path)
                crashed, = [thread for thread in document["threads"] if thread["crashed"]]
                self.assertIn("C stack is full", document["death"]["finding"])
                self.assertFalse(crashed["c_stack_missing"])
                self.assertEqual(crashed["frames"][-1]["kind"], "native")
                self.assertNotIn("C stacks of", " ".join(document["problems"]))

    def test_killed_in_every_situation(self):
        """Killed by another process, which is named."""
        with core_files.killed(self.interpreter, "corpus") as core:
            document = core_json(core.path)
            self.assert_threads(document, core.report["threads"])
            self.assertEqual(document["death"]["sender_pid"], os.getpid())
            self.assertIn("sent by process %d " % os.getpid(), document["death"]["text"])
            self.assertEqual(self.flagged(document, "holds_gil"), [])

    def test_sub_interpreters(self):
        target = self.enterContext(support.parked_sub_interpreters(
            core_files.in_its_folder(self.interpreter)))
        document = core_json(core_files.aborted(target).path)
        inner = [thread for thread in document["threads"] if thread["interpreter"]]
        self.assertEqual(len({thread["interpreter"] for thread in inner}), 3)
        threads = {thread["tid"]: thread for thread in inner}
        self.assertEqual(set(threads), {truth["tid"] for truth in target.report["threads"]})
        for truth in target.report["threads"]:
            # They park on the line where they report their place, but in another column.
            self.assertEqual(support.dumped_frames(threads[truth["tid"]], support.PLACE_KEYS),
                             [dict(frame) for frame in truth["frames"]])

    def test_names_of_threads(self):
        """Python's names. A thread of C has none and is only counted."""
        target = self.enterContext(support.python_target(
            core_files.in_its_folder(self.interpreter), "named"))
        core = core_files.aborted(target)
        document = core_json(core.path)
        names = collections.defaultdict(set)
        for thread in document["threads"]:
            names[thread["tid"]].add(thread["name"])
        for key in "named", "subs":
            for tid, name in names_of(target.report, key).items():
                self.assertIn(name, names[int(tid)])
        self.assertEqual(len(names), sum(len(target.report[key])
                                         for key in ("named", "subs", "unnamed")))


    def test_arguments(self):
        """All of them are shown on request. psinfo has 80 bytes and may end within a character."""
        arguments = ["日本語" * 40, b"\xff not UTF-8", "", "tab\tnew\nline", "x" * 3000]
        sysroot = ["--sysroot", self.interpreter.root] if self.interpreter.root else []
        with core_files.crashed(self.interpreter, "single", "abort", *arguments) as core:
            document = core_json(core.path, "--full-command", *sysroot)
            argv = [support.shown(word) for word in core.report["argv"]]
            self.assertEqual(document["argv"], argv)
            self.assertEqual(document["command"], " ".join(argv))
            document = core_json(core.path, *sysroot)
            self.assertIsNone(document["argv"])
            self.assertRegex(document["command"], r"\Apython[\d.]*t? crash\.py\Z")

    def test_exceptions_that_are_handled(self):
        core, document = self.check("handled")
        truths = {truth["tid"]: truth["exception"] for truth in core.report["threads"]
                  if "exception" in truth}
        self.assertIn(core.report["tid"], truths)
        self.assertEqual({thread["tid"]: thread["exception"] for thread in document["threads"]
                          if thread["tid"] in truths}, truths)

    def test_finalizing(self):
        with support.python_target(core_files.in_its_folder(self.interpreter),
                                   "finalizing") as target:
            document = core_json(core_files.aborted(target).path)
        # 3.6 does not record who ends the interpreter.
        self.assertEqual(document["finalizing"],
                         None if self.interpreter.minor == "3.6" else target.report["tid"])

    def test_who_collects_garbage(self):
        for situation in "garbage", "single":
            with self.subTest(situation):
                core, document = self.check(situation)
                # 3.6 does not record this either, nor do 3.13 and 3.14 without the GIL.
                collects = (core.report["collects"] and self.interpreter.minor != "3.6"
                            and not (self.interpreter.is_free_threaded
                                     and self.interpreter.minor != "3.15"))
                self.assertEqual(self.flagged(document, "gc"), [core.report["tid"]] * collects)


@per_interpreter
@support.slow_per_free_threaded
class GdbCores(CoreTestCase):
    """Cores of processes that live on. gdb up to 17 writes zeros for the C stacks of threads that
    glibc 2.42 and newer guard in a way unknown to gdb."""

    quick_on = ("3.11",)

    def check(self, situation):
        with core_files.parked(self.interpreter, situation) as target:
            document = self.assert_core(core_files.gcore(target), root=self.interpreter.root)
            self.assertIsNone(document["death"])
            self.assertEqual(self.flagged(document, "crashed"), [])

    def test_one_thread(self):
        self.check("single")

    def test_threads(self):
        self.check("threads=10")

    def test_other_situations(self):
        for situation in "deep", "names", "handled":
            with self.subTest(situation):
                self.check(situation)
