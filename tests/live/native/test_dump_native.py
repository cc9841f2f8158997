# SPDX-License-Identifier: MIT
"""`pysample dump --native`: C frames of a running process, compared with those that libdw finds
from all registers while the process is stopped.
"""
import itertools
import json
import unittest

import support
from support import native_truth, trampoline_truth

# One dump of a running thread may have a gap, or find that the thread did not run.


def dump_native(pid, *args):
    result = support.pysample("dump", "-n", "--json", *args, pid)
    if result.status:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)["threads"], result.stderr


def is_python(frame):
    return frame["kind"] == "python"


def nr_calls_of_loop(interpreter, frames):
    """How often the interpreter's loop is on the stack. Before 3.11 it calls itself for each
    Python frame."""
    if support.version_key(interpreter) < [3, 11]:
        return sum(map(is_python, frames))
    return sum(python for python, _ in itertools.groupby(frames, is_python))


@support.per_interpreter
@support.slow_per_free_threaded
class Waiting(unittest.TestCase):
    def test_same_as_libdw(self):
        """Every return address agrees, except those in the interpreter's loop, where Python
        frames are."""
        with support.python_target(self.interpreter, "every_wait") as target:
            support.wait_until(lambda: native_truth.all_wait(target.pid), "all threads wait")
            threads, stderr = dump_native(target.pid)
            truth = native_truth.unwind(target.pid)
        self.assertEqual(stderr, "")
        self.assertEqual({thread["tid"] for thread in threads}, set(truth))
        for thread in threads:
            frames = thread["frames"]
            with self.subTest(thread["name"]):
                self.assertNotIn(trampoline_truth.GAP, [frame["name"] for frame in frames])
                shown = [int(frame["address"], 16) for frame in frames if not is_python(frame)]
                pcs = list(reversed([pc for pc, _ in truth[thread["tid"]].frames["libdw"]]))
                self.assertTrue(native_truth.is_in_order(shown, pcs), (shown, pcs))
                self.assertEqual(len(pcs) - len(shown),
                                 nr_calls_of_loop(self.interpreter, frames), (shown, pcs))


    def test_in_kernel(self):
        """With --kernel, the kernel frames are those that the kernel itself lists for each
        thread."""
        with support.python_target(self.interpreter, "every_wait") as target:
            support.wait_until(lambda: native_truth.all_wait(target.pid), "all threads wait")
            threads, stderr = dump_native(target.pid, "--kernel")
            text = support.pysample("dump", "-n", "--kernel", target.pid).stdout
            truth = native_truth.in_kernel(target.pid)
        self.assertEqual(stderr, "")
        for thread in threads:
            shown = [frame["name"] for frame in thread["frames"] if frame["kind"] == "kernel"]
            self.assertEqual(shown, truth[thread["tid"]])
            self.assertIn('  C file "[kernel]", in %s\n' % shown[-1], text)


@support.per_interpreter
@support.slow_per_free_threaded
class Running(unittest.TestCase):
    def test_running(self):
        """A thread that runs all the time, from copies that the kernel makes. On a busy machine
        it may not run often enough for the first dump."""
        with support.python_target(self.interpreter, "shortcalls") as target:
            support.wait_until(lambda: self.is_whole(target.pid), "a whole stack is seen")

    def dump(self, pid):
        threads, stderr = dump_native(pid)
        if "perf_event_open" in stderr:
            self.skipTest("not tested here: " + stderr.strip())
        return threads

    def is_whole(self, pid):
        frames = self.dump(pid)[0]["frames"]
        names = [frame["name"] for frame in frames]
        if not {"_start", "main"} <= set(names) or trampoline_truth.GAP in names:
            return False
        self.assertEqual(names[0], "_start")
        python = [is_python(frame) for frame in frames]
        self.assertLess(names.index("PyEval_EvalCode"), python.index(True), names)
        self.assertEqual([name for name, is_ours in zip(names, python) if is_ours][:2],
                         ["<module>", "main"])
        return True

    def test_several_interpreters(self):
        """A thread in which one interpreter has called another: each has its own Python frames,
        in the C stack of both."""
        if support.version_key(self.interpreter) < [3, 8]:
            self.skipTest("there is no module for sub-interpreters before 3.8")
        with support.python_target(self.interpreter, "subinterpreter_calls", "second") as target:
            support.wait_until(lambda: self.shows_second(target.pid), "the second one is seen")

    def shows_second(self, pid):
        threads = {thread["interpreter"]: thread["frames"] for thread in self.dump(pid)}
        names = {n: [frame["name"] for frame in frames] for n, frames in threads.items()}
        if not all("_start" in found for found in names.values()):
            return False
        self.assertTrue(any("begin" in found for found in names.values()))
        self.assertEqual([frame["name"] for frame in threads[0] if is_python(frame)],
                         ["<module>", "main", "call"])
        return True


class MissingCStack(unittest.TestCase):
    def test_ended_main_thread(self):
        """It has no C stack any more, but CPython keeps its Python frames."""
        with support.ended_main_thread_target(support.newest_interpreter()) as target:
            threads, _ = dump_native(target.pid)
        (main,) = (thread for thread in threads if thread["tid"] == target.pid)
        self.assertTrue(main["frames"])
        self.assertTrue(all(map(is_python, main["frames"])), main["frames"])


class Text(unittest.TestCase):
    def test_text(self):
        with support.python_target(support.newest_interpreter(), "sleeps_in_c") as target:
            result = support.pysample("dump", "--native", target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        lines = result.stdout.splitlines()
        python = next(i for i, line in enumerate(lines) if line.endswith("line 9, in wait_in_c"))
        self.assertTrue(lines[python + 1].startswith("  C file "), result.stdout)
        self.assertIn("clock_nanosleep", result.stdout)
