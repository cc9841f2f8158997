# SPDX-License-Identifier: MIT
"""`pysample dump`: every thread of a parked process is where the interpreter says it is."""
import json
import linecache
import os
import re
import signal
import unittest

import support
from support import dump, per_interpreter, pysample


class DumpTestCase(unittest.TestCase):
    """Comparison with the truth."""

    maxDiff = 4000

    def assert_frames(self, thread, truth, keys=support.FRAME_KEYS):
        """Compare frame by frame: the first difference says more than two stacks of a thousand
        frames."""
        expected = support.expected_frames(truth)
        frames = support.dumped_frames(thread, keys)
        for got, wanted in zip(frames, expected):
            self.assertEqual(got, wanted)
        self.assertEqual(len(frames), len(expected),
                         "differ in length; ends: %r %r" % (frames[-2:], expected[-2:]))

    def assert_truth(self, dumped, truths, own_tid=lambda tid: tid):
        threads = {own_tid(thread["tid"]): thread for thread in dumped["threads"]}
        self.assertEqual(len(threads), len(dumped["threads"]), "a thread is listed twice")
        self.assertEqual(set(threads), {truth["tid"] for truth in truths})
        for truth in truths:
            with self.subTest(situation=truth["situation"]):
                thread = threads[truth["tid"]]
                self.assert_frames(thread, truth)
                self.assertEqual(thread["main"], truth["main"])
                self.assertEqual(thread["interpreter"], 0)


@per_interpreter
@support.slow_per_free_threaded
class Corpus(DumpTestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(support.parked_target(cls.interpreter, "corpus"))

    def test_json_equals_truth(self):
        dumped = dump(self.target.pid)
        self.assertEqual(dumped["pid"], self.target.pid)
        self.assertIsNone(dumped["finalizing"])
        self.assertEqual(dumped["python"], self.target.report["python"])
        self.assertIn("corpus.py", dumped["command"])
        self.assert_truth(dumped, self.target.report["threads"])

    def test_sources_are_the_lines_of_files(self):
        if self.interpreter.root:
            self.skipTest("its files are in another root")
        result = pysample("dump", self.target.pid, "--json", "--source")
        self.assertEqual(result.status, 0, result.stderr)
        seen = 0
        for frame in (frame for thread in json.loads(result.stdout)["threads"]
                      for frame in thread["frames"]):
            if frame["source"] is not None:
                seen += 1
                line = linecache.getline(frame["path"], frame["line"])
                self.assertEqual(frame["source"], line.strip(" \t\f\n"), frame)
            elif frame["path"].endswith("/corpus.py"):  # root does not read others' files
                self.assertIsNone(frame["line"])
        self.assertGreater(seen, 50)

    def test_nobody_holds_the_gil(self):
        holders = [thread for thread in dump(self.target.pid)["threads"] if thread["holds_gil"]]
        self.assertEqual(holders, [])

    def test_text_has_every_thread_and_frame(self):
        result = pysample("dump", self.target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertNotRegex(result.stdout, r"[\x00-\x09\x0b-\x1f\x7f]")
        for truth in self.target.report["threads"]:
            self.assertRegex(result.stdout, r"\b%d\b" % truth["tid"])
            if truth["situation"].startswith("executed_with_odd_names"):
                continue
            for frame in support.expected_frames(truth):
                if frame["line"] and len(truth["frames"]) < 100:
                    self.assertIn('"%s", line %d, in %s\n' % (
                        frame["path"], frame["line"], frame["name"]), result.stdout)

    def test_a_stopped_process_stays_stopped(self):
        os.kill(self.target.pid, signal.SIGSTOP)
        try:
            support.wait_until(lambda: self.target.state() == "T", "the target is stopped")
            dumped = dump(self.target.pid)
            self.assertEqual(self.target.state(), "T")
        finally:
            os.kill(self.target.pid, signal.SIGCONT)
        self.assert_truth(dumped, self.target.report["threads"])


@per_interpreter
@support.slow_per_free_threaded
class Dump(DumpTestCase):
    def test_every_depth_around_the_end_of_a_chunk(self):
        with support.parked_target(self.interpreter, "boundary") as target:
            self.assert_truth(dump(target.pid), target.report["threads"])

    def test_gil_holder(self):
        if self.interpreter.minor == "3.6":
            self.skipTest("3.6 does not record the GIL holder")
        if self.interpreter.is_free_threaded:
            self.skipTest("there is no GIL")
        with support.python_target(self.interpreter, "busy") as target:
            # A thread that is still starting may hold it for a moment.
            holders = []
            for _ in range(10):
                threads = dump(target.pid)["threads"]
                self.assertEqual(len(threads), 3)
                holders.append([thread["tid"] for thread in threads if thread["holds_gil"]])
            self.assertLessEqual(max(map(len, holders)), 1)
            self.assertEqual(holders[-1], [target.report["tid"]])

    def test_finalizing(self):
        if self.interpreter.minor == "3.6":
            self.skipTest("3.6 does not record the finalizing thread")
        with support.python_target(self.interpreter, "finalizing") as target:
            self.assertTrue(target.report["finalizing"])
            self.assertEqual(dump(target.pid)["finalizing"], target.report["tid"])
            self.assertIn("\nThe interpreter is finalizing in thread %d\n"
                          % target.report["tid"], pysample("dump", target.pid).stdout)
            self.assertRegex(pysample("dump", "-s", target.pid).stdout,
                             r"\nThe interpreter of process %d \S.* is finalizing in thread %d\n"
                             % (target.pid, target.report["tid"]))

    def test_main_thread_has_ended(self):
        with support.ended_main_thread_target(self.interpreter) as target:
            threads = {thread["tid"]: thread for thread in dump(target.pid)["threads"]}
            worker = threads[target.report["worker"]]
            self.assertIn("work", [frame["name"] for frame in worker["frames"]])

    def test_sub_interpreters(self):
        with support.parked_sub_interpreters(self.interpreter) as target:
            threads = dump(target.pid)["threads"]
            subs = {thread["tid"]: thread for thread in threads if thread["interpreter"] != 0}
            self.assertEqual(len({thread["interpreter"] for thread in subs.values()}), 3)
            self.assertEqual(set(subs), {truth["tid"] for truth in target.report["threads"]})
            for truth in target.report["threads"]:
                # They park on the line where they report their place, but in another column.
                self.assert_frames(subs[truth["tid"]], truth, support.PLACE_KEYS)
            (main,) = [thread for thread in threads if thread["main"]]
            self.assertEqual([frame["name"] for frame in main["frames"]],
                             ["<module>", "main", "park"])

    @unittest.skipIf(os.geteuid() != 0, "needs root: a PID namespace")
    def test_in_a_container(self):
        with support.python_target(self.interpreter, "corpus",
                                   wrapper=support.IN_A_CONTAINER) as target:
            pid = support.child_of(target.pid)
            support.wait_until_parked(target, pid)
            tids = support.innermost_tids(pid)
            self.assert_truth(dump(pid), target.report["threads"], tids.get)

    @unittest.skipIf(os.geteuid() != 0, "needs root: a PID namespace")
    def test_many_threads_in_a_container(self):
        with support.python_target(self.interpreter, "manythreads", 50,
                                   wrapper=support.IN_A_CONTAINER) as target:
            pid = support.child_of(target.pid)
            tids = support.innermost_tids(pid)
            threads = {str(tids[thread["tid"]]): thread for thread in dump(pid)["threads"]}
            (main,) = [tid for tid, thread in threads.items() if thread["main"]]
            self.assertEqual(threads.pop(main)["tid"], pid)
            self.assertEqual({tid: thread["os_name"] for tid, thread in threads.items()},
                             target.report["named"])


class DumpOfWorking(unittest.TestCase):
    def test_threads_that_come_and_go(self):
        """The thread list changes during every look."""
        with support.python_target(support.newest_interpreter(), "thread_churn") as target:
            for _ in range(50):
                threads = dump(target.pid)["threads"]
                (main,) = [thread for thread in threads if thread["main"]]
                self.assertEqual(main["frames"][0]["name"], "<module>")

    def test_a_process_at_full_speed(self):
        """Every stack found is one that can occur."""
        with support.python_target(support.newest_interpreter(), "alternating") as target:
            for _ in range(20):
                (thread,) = dump(target.pid)["threads"]
                stack = " ".join(frame["name"] for frame in thread["frames"])
                self.assertTrue(re.fullmatch(r"<module>( announce| alternate( [ab]00\d)*)?", stack),
                                stack)


if __name__ == "__main__":
    unittest.main()
