# SPDX-License-Identifier: MIT
"""`pysample attach --native`: C frames of a running process, with Python's in their places."""
import collections
import contextlib
import functools
import json
import os
import re
import subprocess
import time
import unittest

import call_truth
import native_truth
import support
import trampoline_truth

NATIVE_VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
TRAMPOLINE_VERSIONS = NATIVE_VERSIONS[1:]
PERF_JIT_VERSIONS = NATIVE_VERSIONS[2:]
DURATION_S = 1
WAITING_S = 1  # what stands still is seen at once
NR_WAITING = 50
CLOCK_STEP_NS = 2000  # recordings have microseconds

# A stack that is wrong is worse than a hole. That some are is known (docs/architecture.md): few
# of the interpreter's loops, and more of executors.
MOST_WRONG = 0.01
MOST_WRONG_IN_JIT = 0.03

# With trampolines a loop runs one frame: a hole is a call that has not begun, or is over.
MOST_HOLED_ALONE = 0.1

# The first copies of a file that was just mapped may come before that is known.
MOST_NAMELESS = 0.1

# A thread may end while it is looked at.
MOST_ALONE = 0.01

# Without trampolines one loop runs many frames, each for less than a microsecond.
MOST_IMPOSSIBLE = 0.05


def attach_native(pid, *args, seconds=DURATION_S):
    return support.pysample("attach", "-n", "-d", seconds, "-f", "collapsed", *args, pid)


def nr_with_natives(result, function):
    """How many samples have a function of Python behind C frames."""
    return sum(number for stack, number in support.parse_collapsed(result.stdout).items()
               if not trampoline_truth.PYTHON.match(stack[0])
               and any(label.startswith(function + " (") for label in stack))


def is_chain(names):
    """Whether that is the beginning of a chain of alternating.py."""
    chains = [["<module>", "alternate"] + [letter + "00%d" % i for i in range(6)]
              for letter in "ab"]
    return any(list(names) == chain[:len(names)] for chain in chains)


@functools.lru_cache(maxsize=None)
def short_calls(interpreter, jit=None):
    """What is said of shortcalls.py, which runs once for all tests that look at it."""
    with support.python_target(interpreter, "shortcalls",
                               environment={"PYTHON_JIT": jit} if jit else None) as target:
        result = attach_native(target.pid, "-r", 500)
    is_allowed(result)
    return result


def is_allowed(result):
    if "no C frames" in result.stderr:
        raise unittest.SkipTest("not tested here: " + result.stderr.strip().splitlines()[-1])


@support.per_minor(*NATIVE_VERSIONS)
class Native(unittest.TestCase):
    quick_on = ("3.15",)

    def test_short_calls(self):
        """Beside what CPython's trampolines say of each stack."""
        if self.interpreter.minor not in TRAMPOLINE_VERSIONS:
            self.skipTest("trampolines are new in 3.12")
        with support.python_target(self.interpreter, "shortcalls",
                                   environment={"PYTHONPERFSUPPORT": "1"}) as target:
            result = attach_native(target.pid, "-r", 500, "--trampolines")
            is_allowed(result)
            with trampoline_truth.map_of(target, self.interpreter) as perf_map:
                counts, examples = trampoline_truth.judge(
                    support.parse_collapsed(result.stdout), perf_map)
        proven = counts["right"] + counts["wrong"]
        self.assertGreater(counts["right"], 0, (counts, result.stderr))
        self.assertLessEqual(counts["wrong"], MOST_WRONG * proven + 1, (counts, examples[:5]))

    def test_loops_alone(self):
        """C functions in which an older loop has left its entry are no loops: with trampolines there
        is no frame between two of them that could be lacking."""
        if self.interpreter.minor not in TRAMPOLINE_VERSIONS:
            self.skipTest("trampolines are new in 3.12")
        with support.python_target(self.interpreter, "keyed",
                                   environment={"PYTHONPERFSUPPORT": "1"}) as target:
            result = attach_native(target.pid, "-r", 500)
            is_allowed(result)
            with trampoline_truth.map_of(target, self.interpreter):
                stacks = support.parse_collapsed(result.stdout)
        holed = {stack: number for stack, number in stacks.items()
                 if trampoline_truth.HOLE in stack}
        self.assertLessEqual(sum(holed.values()), MOST_HOLED_ALONE * sum(stacks.values()) + 2,
                             (list(holed)[:3], result.stderr))

    def test_crowd(self):
        """Of many threads that wait a tick takes longer than the time up to the next one. The copies
        of the one that runs are taken nevertheless."""

        def is_seen():
            result = attach_native(target.pid, "-r", 1000)
            is_allowed(result)
            return nr_with_natives(result, "run")

        with support.python_target(self.interpreter, "crowd", 300) as target:
            support.wait_until(is_seen, "the one that runs is seen with C frames")

    def test_threads_that_end(self):
        """Those that have ended since the threads were listed have no sample of what they ran last:
        each that there is waits in C, or is copied."""
        with support.python_target(self.interpreter, "churn") as target:
            result = attach_native(target.pid, "-r", 500)
            is_allowed(result)
        stacks = support.parse_collapsed(result.stdout)
        alone = {stack: number for stack, number in stacks.items()
                 if trampoline_truth.PYTHON.match(stack[0])}
        self.assertGreater(sum(stacks.values()), 5, result.stderr)
        self.assertLessEqual(sum(alone.values()), MOST_ALONE * sum(stacks.values()) + 1,
                             (alone, result.stderr))

    def test_several_interpreters(self):
        """Of a thread that has a state in each of some interpreters: that of the main one runs."""
        if support.version_key(self.interpreter) < [3, 8]:
            self.skipTest("Python code of %s cannot make interpreters" % self.interpreter.minor)

        def is_seen():
            result = attach_native(target.pid)
            is_allowed(result)
            return nr_with_natives(result, "work")

        with support.python_target(self.interpreter, "within", "main") as target:
            support.wait_until(is_seen, "the one that runs is seen with C frames")

    def test_imports(self):
        """Code of files that are mapped meanwhile has its names, and is none of a JIT."""
        with support.python_target(self.interpreter, "imports") as target:
            result = attach_native(target.pid, "-r", 200)
            is_allowed(result)
        stacks = support.parse_collapsed(result.stdout)
        working = {stack: number for stack, number in stacks.items()
                   if any(label.startswith("work (") for label in stack)}
        nameless = {stack: number for stack, number in working.items()
                    if any(trampoline_truth.NOWHERE.match(label) or label == "[jit]"
                           for label in stack)}
        self.assertTrue(working, result.stderr)
        self.assertLessEqual(sum(nameless.values()), MOST_NAMELESS * sum(working.values()) + 2,
                             (list(nameless)[:3], result.stderr))

    def test_frames_between(self):
        """Two chains of calls that take turns: Python's frames are of one instant, so those of a
        stack without a hole are never of both."""

        def sample():
            result = attach_native(target.pid, "-r", 500)
            is_allowed(result)
            stacks = collections.Counter()
            for stack, number in support.parse_collapsed(result.stdout).items():
                names = [found.group(1) for found in map(trampoline_truth.PYTHON.match, stack)
                         if found]
                if trampoline_truth.HOLE not in stack:
                    stacks[tuple(names)] += number
            wrong = {stack: number for stack, number in stacks.items() if not is_chain(stack)}
            self.assertEqual(wrong, {})
            return stacks

        with support.python_target(self.interpreter, "alternating", "calls", 4) as target:
            support.sampled_until(sample, lambda stacks: {"a", "b"} <= {
                "".join(stack[2:3])[:1] for stack in stacks}, "both chains are seen")

    @contextlib.contextmanager
    def perf_jit_target(self, program):
        """A target that writes a jitdump, which lies in a folder of everybody's."""
        if self.interpreter.minor not in PERF_JIT_VERSIONS:
            self.skipTest("-X perf_jit is new in 3.13")
        with support.python_target(self.interpreter, program,
                                   environment={"PYTHON_PERF_JIT_SUPPORT": "1"}) as target:
            self.addCleanup(os.unlink,
                            "%s/tmp/jit-%d.dump" % (self.interpreter.root, target.pid))
            yield target

    def sample_perf_jit(self, *options, program="shortcalls"):
        """The frames of each sample."""
        with self.perf_jit_target(program) as target:
            result = support.pysample("attach", "-n", "-d", DURATION_S, "-r", 500, "-f", "jsonl",
                                      *options, target.pid)
            is_allowed(result)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        frames = {record["id"]: record["frames"] for record in records
                  if record["type"] == "stack"}
        return [frames[record["stack"]] for record in records if record["type"] == "sample"]

    def check_names(self, samples):
        """CPython writes 4096 bytes of its file at a time; what lacks there is in its memory, from
        the first sample on."""
        names = [{frame["name"] for frame in frames} for frames in samples]
        self.assertTrue(any(map(trampoline_truth.NAMED.match, set().union(*names))))
        self.assertEqual([found for found in names if trampoline_truth.UNNAMED in found], [])

    def test_trampolines(self):
        """None is told beside the frame that it carries."""
        samples = self.sample_perf_jit()
        self.check_names(samples)
        self.assertEqual([frames for frames in samples if self.tells_twice(frames)], [])
        self.assertNotIn("[jit]", {frame["name"] for frames in samples for frame in frames})

    def test_all_trampolines(self):
        samples = self.sample_perf_jit("--trampolines")
        self.check_names(samples)
        self.assertTrue(any(map(self.tells_twice, samples)))

    def test_trampolines_that_are_new(self):
        """Functions that are called for the first time, and once, a millisecond before."""
        samples = self.sample_perf_jit("--trampolines", program="churncode")
        self.check_names(samples)
        made = {frame["name"] for frames in samples for frame in frames
                if re.match(r"py::.*:generation \d+$", frame["name"])}
        self.assertGreater(len(made), 100)

    @staticmethod
    def tells_twice(frames):
        """Whether a trampoline stands beside its Python frame."""
        for outer, inner in zip(frames, frames[1:]):
            trampoline = trampoline_truth.NAMED.match(outer["name"])
            if trampoline and inner["kind"] == "python" and trampoline.group(1) == inner["name"]:
                return True
        return False

    def test_possible_calls(self):
        """Without trampolines, beside what the program can do."""
        result = short_calls(self.interpreter)
        counts, examples = call_truth.judge(support.parse_collapsed(result.stdout))
        self.assertGreater(counts["possible"], 0, (counts, result.stderr))
        self.assertLessEqual(counts["impossible"], MOST_IMPOSSIBLE * sum(counts.values()) + 2,
                             (counts, examples[:5]))

    def test_waiting(self):
        """A thread that waits: what it has called in C is there."""
        with support.python_target(self.interpreter, "waiting") as target:
            result = attach_native(target.pid, seconds=WAITING_S)
            is_allowed(result)
        stacks = support.parse_collapsed(result.stdout)
        waiting = [[label.rsplit(" (", 1)[0] for label in stack] for stack in stacks
                   if any(label.startswith("wait_in_c (") for label in stack)]
        self.assertTrue(waiting, result.stdout)
        for names in waiting:
            behind = names[names.index("wait_in_c") + 1:]
            self.assertIn("clock_nanosleep", " ".join(behind), names)
            self.assertNotIn(trampoline_truth.HOLE, names)
            self.assertIn("_start", names)

    def test_c_between_python(self):
        """sorted() calls from C, so its frames stand between, and all begins at _start."""
        result = short_calls(self.interpreter)
        called = [
            [label.rsplit(" (", 1)[0] for label in stack]
            for stack in support.parse_collapsed(result.stdout)
            if any(label.startswith("_start (") for label in stack)
            and trampoline_truth.HOLE not in stack]
        called = [names for names in called if "Item.__lt__" in names]
        self.assertTrue(called, result.stderr)
        for names in called:
            self.assertNotEqual(names.index("main") + 1, names.index("Item.__lt__"), names)


class InExecutors(unittest.TestCase):
    """Code of CPython's own JIT: on a list for debuggers in 3.15, on none in 3.14."""

    NAMES = {"3.14": "[jit]", "3.15": "py::jit:executor"}
    JIT = {"PYTHON_JIT": "1"}

    def setUp(self):
        has_jit = subprocess.run(
            [*self.interpreter.command(), "-c", "import sys; print(sys._jit.is_enabled())"],
            env={**os.environ, **self.JIT}, capture_output=True, text=True, check=False)
        if has_jit.stdout != "True\n" or self.interpreter.minor not in self.NAMES:
            self.skipTest("not tested here: %s has no JIT" % self.interpreter)


@support.per_minor("3.14", "3.15")
class Executors(InExecutors):
    def test_names(self):
        """Nothing else that shortcalls.py calls is made at run time."""
        result = short_calls(self.interpreter, "1")
        named, unnamed = 0, 0
        for stack, number in support.parse_collapsed(result.stdout).items():
            named += number * (self.NAMES[self.interpreter.minor] in stack)
            unnamed += number * any(map(trampoline_truth.NOWHERE.match, stack))
        self.assertGreater(named, 0, result)
        # Of memory that is new nothing is known until what is mapped is read again.
        self.assertLess(unnamed, named, result)

    def flags(self, jit):
        """Counter: how many samples say that they are in code of the JIT."""
        with support.python_target(self.interpreter, "shortcalls",
                                   environment={"PYTHON_JIT": jit}) as target:
            result = support.pysample("attach", "-n", "-d", DURATION_S, "-r", 500, "-f", "jsonl",
                                      target.pid)
            is_allowed(result)
        records = map(json.loads, result.stdout.splitlines())
        return collections.Counter(record["jit"] for record in records
                                   if record["type"] == "sample")

    def test_flag(self):
        """Some run in executors, if there are any."""
        with_jit, without = self.flags("1"), self.flags("0")
        self.assertGreater(without[False], 0)
        self.assertEqual(without[True], 0)
        self.assertGreater(with_jit[True], 0.1 * with_jit[False])

    def check_whole(self, result):
        """Those of 3.15 tell how to unwind them, and behind those of 3.14 there is a loop again."""
        stacks = {stack: number
                  for stack, number in support.parse_collapsed(result.stdout).items()
                  if self.NAMES[self.interpreter.minor] in stack}
        whole = sum(number for stack, number in stacks.items()
                    if stack[0].startswith("_start ("))
        # New ones are known a tenth of a second later.
        self.assertGreater(whole, 0.9 * sum(stacks.values()), result)

    def test_whole_short_calls(self):
        self.check_whole(short_calls(self.interpreter, "1"))

    def test_whole_loop(self):
        """Nothing else runs than one executor."""
        with support.python_target(self.interpreter, "jitted", "loop",
                                   environment=self.JIT) as target:
            result = attach_native(target.pid, "-r", 500)
        is_allowed(result)
        self.check_whole(result)

    def test_who_multiplies(self):
        """Of the functions of shortcalls.py one alone does: C tells who runs, Python has to."""
        with support.python_target(self.interpreter, "shortcalls", environment=self.JIT) as target:
            result = attach_native(target.pid, "-r", 1000)
            is_allowed(result)
        who = collections.Counter()
        for stack, number in support.parse_collapsed(result.stdout).items():
            if any(re.match(r"_Py(Compact)?Long_Multiply \(", label) for label in stack):
                python = [label for label in stack
                          if trampoline_truth.PYTHON.match(label) or label == trampoline_truth.HOLE]
                who[python[-1].split(" (")[0]] += number
        if not who:
            self.skipTest("not tested here: no sample was in a multiplication")
        wrong = sum(who.values()) - who["double"] - who[trampoline_truth.HOLE]
        self.assertLessEqual(wrong, MOST_WRONG_IN_JIT * sum(who.values()) + 2, who)


@support.per_minor("3.14", "3.15")
class WaitingForExecutors(InExecutors):
    sleeps = True

    def test_waiting(self):
        """What waits in C that an executor has called: the line is right, and so it is not flagged."""
        with support.python_target(self.interpreter, "jitwaits", environment=self.JIT) as target:
            support.wait_until(lambda: self.sees_waiting(target), "one that waits is seen")

    def sees_waiting(self, target):
        result = support.pysample("attach", "-n", "-d", 2 * DURATION_S, "-r", 500, "-f", "jsonl",
                                  target.pid)
        is_allowed(result)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        stacks = {record["id"]: record["frames"] for record in records
                  if record["type"] == "stack"}
        in_executor = [(stacks[record["stack"]], record["jit"]) for record in records
                       if record["type"] == "sample"
                       and any(frame["name"] == self.NAMES[self.interpreter.minor]
                               for frame in stacks[record["stack"]][:-1])]
        waiting = [frames for frames, is_flagged in in_executor if not is_flagged]
        for frames in waiting:
            lines = [frame["line"] for frame in frames if frame["kind"] == "python"]
            self.assertEqual(lines[-1:], [target.report["line"]], frames)
        return bool(waiting)


def nr_runs(pid):
    """{tid: how often it was given a processor}, of all threads but the main one"""
    folder = "/proc/%d/task" % pid
    return {tid: support.read("%s/%s/schedstat" % (folder, tid)).split()[2]
            for tid in os.listdir(folder) if tid != str(pid)}


def none_runs(pid):
    """Whether no thread but the main one runs for a moment."""
    before = nr_runs(pid)
    time.sleep(0.2)
    return nr_runs(pid) == before


@support.per_interpreter
class Waiting(unittest.TestCase):
    quick_on = ("3.15",)
    sleeps = True

    def test_threads_that_do_not_run(self):
        """Who has not run since it was looked at is not looked at again, and has all of its time."""
        with support.python_target(self.interpreter, "crowd", NR_WAITING) as target:
            support.wait_until(lambda: none_runs(target.pid), "all but one wait")
            folder, _ = self.enterContext(support.fresh_folder())
            stats_path = os.path.join(folder, "stats")
            result = support.pysample("attach", "-n", "-d", 2 * WAITING_S, "-f", "jsonl",
                                      "--stats-json", stats_path, target.pid)
            self.assertEqual(result.status, 0, result.stderr)
        stats = json.loads(support.read(stats_path))
        # A look takes three and more.
        self.assertLess(stats["reads"], 2 * stats["native"]["stacks"], stats)
        threads, frames = collections.defaultdict(list), {}
        for record in map(json.loads, result.stdout.splitlines()):
            if record["type"] == "stack":
                frames[record["id"]] = [frame["name"] for frame in record["frames"]]
            elif record["type"] == "sample":
                threads[record["thread"]].append(record)
        waiting = [samples for samples in threads.values()
                   if "wait" in frames[samples[-1]["stack"]]]
        self.assertEqual(len(waiting), NR_WAITING)
        for samples in waiting:
            self.assertEqual({sample["stack"] for sample in samples[1:]}, {samples[-1]["stack"]})
            for before, sample in zip(samples, samples[1:]):
                passed_ns = sample["time_ns"] - before["time_ns"]
                self.assertAlmostEqual(sample["wall_ns"], passed_ns, delta=CLOCK_STEP_NS)
            self.assertFalse(any(sample["on_cpu"] or sample["gil"] for sample in samples[1:]))

    def test_ways_of_waiting(self):
        """Threads that wait are told of all versions: before 3.10 CPython does not tell where the
        interpreter's loops are, and 3.15 is built with frame pointers, of which the kernel does
        not tell."""
        with support.python_target(self.interpreter, "waits") as target:
            support.wait_until(lambda: native_truth.all_wait(target.pid), "all threads wait")
            result = attach_native(target.pid, seconds=WAITING_S)
        stacks = [[label.rsplit(" (", 1)[0] for label in stack]
                  for stack in support.parse_collapsed(result.stdout)]
        self.assertTrue(stacks, result.stderr)
        for names in stacks:
            self.assertNotIn(trampoline_truth.HOLE, names)
        for way in native_truth.WAYS:
            ends = [names[-1] for names in stacks if way in names]
            self.assertTrue(ends, way)
            self.assertNotIn(way, ends)


class NotTold(unittest.TestCase):
    """Where C frames cannot be had, a sentence says why, and there are Python's alone."""

    def check_python_alone(self, interpreter, why):
        with support.python_target(interpreter, "shortcalls") as target:
            result = support.pysample("attach", "-n", "-d", "1", "-f", "collapsed", target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn("no C frames", result.stderr)
        self.assertIn(why, result.stderr)
        self.assertTrue(any("main (" in label for stack in support.parse_collapsed(result.stdout)
                            for label in stack), result.stdout)

    def test_older_versions(self):
        older = [interpreter for interpreter in support.tested_interpreters()
                 if interpreter.minor in ("3.8", "3.10")]
        if not older:
            self.skipTest("not tested here: no CPython before 3.11")
        for interpreter in older:
            with self.subTest(str(interpreter)):
                self.check_python_alone(interpreter, "before 3.11")

    def test_options_that_need_them(self):
        for option in "--kernel", "--trampolines", "--affinity":
            with self.subTest(option):
                result = support.pysample("attach", option, os.getpid())
                self.assertEqual(result.status, 2, result.stderr)
                self.assertIn(option + " is for stacks with C frames: give -n, too",
                              result.stderr)


if __name__ == "__main__":
    unittest.main()
