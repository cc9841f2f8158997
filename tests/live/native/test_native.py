# SPDX-License-Identifier: MIT
"""`pysample attach --native`: C frames of a running process, with Python frames in their places."""
import collections
import contextlib
import functools
import json
import os
import re
import subprocess
import time
import unittest

import support
from support import call_truth, native_truth, trampoline_truth
from test_interrupts import why_not

NATIVE_VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
TRAMPOLINE_VERSIONS = NATIVE_VERSIONS[1:]
PERF_JIT_VERSIONS = NATIVE_VERSIONS[2:]
DURATION_S = 1
WAITING_S = 1  # a thread that stands still is seen at once
NR_WAITING = 50
PERIOD_NS = 10000000  # at the default rate
IMPORTS_S = 2  # imports.py has imported everything by then
NR_GENERATED = 100

KEYED = ["<module>", "main", "key", "outer", "inner"]  # the calls of sort_key.py

# A thread that did not wait and had no copy for this long is shown with Python frames alone.
NO_COPY_MAX_NS = 1000000000


def attach_native(pid, *args, seconds=DURATION_S):
    return support.pysample("attach", "-n", "--plumbing", "-d", seconds, *support.COLLAPSED, *args,
                            pid)


def nr_with_native_frames(result, function):
    """The number of samples that begin with a C frame and have that Python function."""
    return sum(number for stack, number in support.parse_collapsed(result.stdout).items()
               if not trampoline_truth.PYTHON.match(stack[0])
               and any(label.startswith(function + " (") for label in stack))


def is_chain(names):
    """Whether names is the beginning of a chain of alternating.py."""
    chains = [["<module>", "alternate"] + [letter + "00%d" % i for i in range(6)]
              for letter in "ab"]
    return any(list(names) == chain[:len(names)] for chain in chains)


def skip_without_c_frames(result):
    if "no C frames" in result.stderr:
        raise unittest.SkipTest("not tested here: " + result.stderr.strip().splitlines()[-1])


def stacks_until(target, enough, what, *options):
    """The stacks of one run with C frames, or of more until they are enough."""

    def sample():
        result = attach_native(target.pid, *options)
        skip_without_c_frames(result)
        return support.parse_collapsed(result.stdout)

    return support.sampled_until(sample, enough, what)


def samples_of(target, *options, seconds=DURATION_S):
    """The samples of one run in order of time, each with its frames."""
    result = support.pysample("attach", "-n", "--plumbing", "-d", seconds, "-r", 500, "-f", "jsonl",
                              *options, target.pid)
    skip_without_c_frames(result)
    records = list(map(json.loads, result.stdout.splitlines()))
    frames = {record["id"]: record["frames"] for record in records if record["type"] == "stack"}
    return [dict(record, frames=frames[record["stack"]]) for record in records
            if record["type"] == "sample"]


def samples_until(target, enough, what, *options, **kwargs):
    """The samples of one run, or of more until they are enough."""
    samples = []

    def is_enough():
        samples.extend(samples_of(target, *options, **kwargs))
        return enough(samples)

    support.wait_until(is_enough, what)
    return samples


def names_of(stack):
    return [label.rsplit(" (", 1)[0] for label in stack]


def innermost(stacks):
    """The Python functions that run in these stacks."""
    return {function for stack in stacks
            for function in trampoline_truth.names_of(stack, ())[1][-1:]}


class CallsTests:
    """Tests for both ways of getting C frames and Python frames of one instant."""
    engine = ()  # the default

    def test_short_calls(self):
        """Compared with CPython's trampolines in each stack."""
        if self.interpreter.minor not in TRAMPOLINE_VERSIONS:
            self.skipTest("trampolines are new in 3.12")

        def all_are_right(stacks):
            perf_map = read_map()
            right = [stack for stack in stacks
                     if trampoline_truth.judge({stack: 1}, perf_map)[0]["right"]]
            return call_truth.FUNCTIONS <= innermost(right)

        with support.python_target(self.interpreter, "shortcalls",
                                   environment={"PYTHONPERFSUPPORT": "1"}) as target, \
                trampoline_truth.map_of(target, self.interpreter) as read_map:
            stacks = stacks_until(target, all_are_right,
                                  "each function runs in a correct stack",
                                  "-r", 500, "--trampolines", *self.engine)
            counts, examples = trampoline_truth.judge(stacks, read_map())
        # Evidence may be wrong, an instant may not.
        if not self.engine and not why_not():
            self.assertEqual(counts["wrong"], 0, examples)

    def test_possible_calls(self):
        """Without trampolines, compared with what the program can do."""

        def all_are_possible(stacks):
            possible = [stack for stack in stacks if trampoline_truth.GAP not in stack
                        and call_truth.is_possible(stack)]
            return call_truth.FUNCTIONS <= innermost(possible)

        if support.version_key(self.interpreter) < [3, 11]:
            self.skipTest("before 3.11 every call goes through C")
        with support.python_target(self.interpreter, "shortcalls") as target:
            stacks_until(target, all_are_possible, "each function runs in a possible stack",
                         "-r", 500, *self.engine)

    def test_c_between_python(self):
        """sorted() calls from C, so its frames are between, and every stack begins at _start."""

        def called(stacks):
            whole = [names for names in map(names_of, stacks)
                     if names[0] == "_start" and trampoline_truth.GAP not in names]
            return [names for names in whole if names[-1].endswith("__lt__")]

        with support.python_target(self.interpreter, "shortcalls") as target:
            stacks = stacks_until(target, called, "what sorted() calls is seen", "-r", 500,
                                  *self.engine)
        for names in called(stacks):
            self.assertRegex(" ".join(names[names.index("main"):]), "list_?sort")


@support.per_minor("3.8", "3.10", *NATIVE_VERSIONS)
@support.slow_per_free_threaded
class Native(CallsTests, unittest.TestCase):
    quick_on = ("3.15",)

    def test_plumbing(self):
        """Code that starts a program or hands on calls is in no view that does not ask for it.
        Its time goes to its callers."""
        with support.fresh_folder() as (folder, _), \
                support.python_target(self.interpreter, "sort_key") as target:
            path = os.path.join(folder, "a.pysample")
            support.wait_until(lambda: self.has_plumbing(target.pid, path), "_start is seen")
            shown, kept = (support.parse_collapsed(support.pysample(
                "report", path, *support.COLLAPSED, *options).stdout)
                for options in ([], ["--plumbing"]))
        labels = {label for stack in shown for label in stack}
        folded = collections.Counter()
        for stack, number in kept.items():
            folded[tuple(label for label in stack if label in labels)] += number
        self.assertEqual(folded, collections.Counter(shown))
        self.assertFalse({"_start", "main", "Py_RunMain", "_PyEval_Vector"} & {
            name for label, name in zip(labels, names_of(labels))
            if not trampoline_truth.PYTHON.match(label)}, labels)

    def has_plumbing(self, pid, path):
        result = support.pysample("attach", "-n", "-d", "1", "-o", path, pid)
        skip_without_c_frames(result)
        return result.status == 0 and "_start (" in support.pysample(
            "report", path, *support.COLLAPSED, "--plumbing").stdout

    def test_loops_alone(self):
        """C functions with an older loop's entry left in them are not mistaken for loops. With
        trampolines there is no frame between two of them that could be missing."""
        if self.interpreter.minor not in TRAMPOLINE_VERSIONS:
            self.skipTest("trampolines are new in 3.12")

        def is_whole(stack):
            return (trampoline_truth.GAP not in stack
                    and trampoline_truth.names_of(stack, ())[1] == KEYED)

        with support.python_target(self.interpreter, "sort_key",
                                   environment={"PYTHONPERFSUPPORT": "1"}) as target, \
                trampoline_truth.map_of(target, self.interpreter):
            stacks = stacks_until(target, lambda stacks: any(map(is_whole, stacks)),
                                  "a whole stack is seen", "-r", 500)
        activations = map(trampoline_truth.activations_of, stacks)
        self.assertEqual([names for names in activations if names != KEYED[:len(names)]], [])

    def test_crowd(self):
        """With many waiting threads a tick takes longer than its interval. The running thread is
        copied nevertheless."""

        def is_seen():
            result = attach_native(target.pid, "-r", 1000)
            skip_without_c_frames(result)
            return nr_with_native_frames(result, "run")

        with support.python_target(self.interpreter, "crowd", 300) as target:
            support.wait_until(is_seen, "the running thread is seen with C frames")

    def test_threads_that_end(self):
        """Threads that have ended since the threads were listed have no sample of what they ran
        last: every thread that is left waits in C or is copied."""

        def is_alone(sample):
            return {frame["kind"] for frame in sample["frames"]} == {"python"}

        with support.python_target(self.interpreter, "thread_churn", 10) as target:
            samples = samples_until(target, lambda samples: any(
                "worker" in {frame["name"] for frame in sample["frames"]}
                and not is_alone(sample) for sample in samples),
                                    "a worker is seen with C frames")
        self.assertEqual([sample for sample in samples
                          if is_alone(sample) and sample["wall_ns"] < NO_COPY_MAX_NS], [])

    def test_collector(self):
        """It runs when Python frames are read, above more of them than the copy has."""

        def both_are_seen(stacks):
            return (any(support.GC in stack for stack in stacks)
                    and any("work" in names_of(stack) for stack in stacks))

        if self.interpreter.minor == "3.6":
            self.skipTest("3.6 does not record the collecting thread")
        if self.interpreter.is_free_threaded and self.interpreter.minor != "3.15":
            self.skipTest("without the GIL the collecting thread is recorded since 3.15")
        with support.python_target(self.interpreter, "collects") as target:
            stacks_until(target, both_are_seen, "the collector and the rest are seen", "-r", 1000)

    def test_several_interpreters(self):
        """A thread has a state in each of several interpreters. The main interpreter's state
        runs."""
        if support.version_key(self.interpreter) < [3, 8]:
            self.skipTest("Python code of %s cannot make interpreters" % self.interpreter.minor)

        def is_seen():
            result = attach_native(target.pid)
            skip_without_c_frames(result)
            return nr_with_native_frames(result, "work")

        with support.python_target(self.interpreter, "subinterpreter_calls", "main") as target:
            support.wait_until(is_seen, "the running thread is seen with C frames")

    def test_imports(self):
        """Code of files that are mapped meanwhile has its names and is not taken for a JIT's. The
        first copies of a file may come before its mapping is known, later ones may not."""
        named = set()  # first lines of the functions that call it

        def all_are_named():
            with support.python_target(self.interpreter, "imports") as target:
                samples = samples_of(target, seconds=IMPORTS_S)
            named_now = set()
            for sample in samples:
                frames = sample["frames"]
                line = self.line_of_caller(frames)
                is_named = not any(frame["name"] == "[jit]"
                                   or trampoline_truth.NOWHERE.match(frame["name"])
                                   for frame in frames)
                self.assertTrue(is_named or line not in named_now, frames)
                if is_named and line and frames[-1]["kind"] == "native":
                    named_now.add(line)
            named.update(named_now)
            return named >= set(target.report["lines"])

        support.wait_until(all_are_named, "code of each file is seen")

    @staticmethod
    def line_of_caller(frames):
        """The first line of the function that work() of imports.py has called; None: none runs."""
        python = [frame for frame in frames if frame["kind"] == "python"]
        for outer, inner in zip(python, python[1:]):
            if outer["name"] == "work" and inner["path"] == outer["path"]:
                return inner["first_line"]
        return None

    def test_frames_between(self):
        """Two chains of calls take turns. Python frames are of one instant, so a stack without a
        gap never mixes the chains."""

        def sample():
            result = attach_native(target.pid, "-r", 500)
            skip_without_c_frames(result)
            stacks = collections.Counter()
            for stack, number in support.parse_collapsed(result.stdout).items():
                names = [found.group(1) for found in map(trampoline_truth.PYTHON.match, stack)
                         if found]
                if trampoline_truth.GAP not in stack:
                    stacks[tuple(names)] += number
            wrong = {stack: number for stack, number in stacks.items() if not is_chain(stack)}
            self.assertEqual(wrong, {})
            return stacks

        with support.python_target(self.interpreter, "alternating", "calls", 4) as target:
            support.sampled_until(sample, lambda stacks: {"a", "b"} <= {
                "".join(stack[2:3])[:1] for stack in stacks}, "both chains are seen")

    @contextlib.contextmanager
    def perf_jit_target(self, program):
        """A target that writes a jitdump. The file is in a shared folder and is removed at the
        end."""
        if self.interpreter.minor not in PERF_JIT_VERSIONS:
            self.skipTest("-X perf_jit is new in 3.13")
        with support.python_target(self.interpreter, program,
                                   environment={"PYTHON_PERF_JIT_SUPPORT": "1"}) as target:
            self.addCleanup(os.unlink,
                            "%s/tmp/jit-%d.dump" % (self.interpreter.root, target.pid))
            yield target

    def sample_perf_jit(self, enough, what, *options, program="shortcalls"):
        """Sample until the samples are enough, and return the frames of each."""
        with self.perf_jit_target(program) as target:
            samples = samples_until(
                target, lambda samples: enough([sample["frames"] for sample in samples]), what,
                *options)
        return [sample["frames"] for sample in samples]

    @staticmethod
    def names_like(pattern, samples):
        names = {frame["name"] for frames in samples for frame in frames}
        return set(filter(re.compile(pattern).match, names))

    def check_names(self, samples):
        """CPython writes 4096 bytes of its file at a time. What is missing there is in its
        memory, from the first sample on."""
        names = [{frame["name"] for frame in frames} for frames in samples]
        self.assertEqual([found for found in names if trampoline_truth.UNNAMED in found], [])

    def test_trampolines(self):
        """No trampoline is shown beside the frame that it carries."""
        samples = self.sample_perf_jit(functools.partial(self.names_like, trampoline_truth.NAMED),
                                       "a trampoline without its frame is seen")
        self.check_names(samples)
        self.assertEqual(list(filter(self.has_trampoline_beside_frame, samples)), [])
        self.assertNotIn("[jit]", {frame["name"] for frames in samples for frame in frames})

    def test_all_trampolines(self):
        self.check_names(self.sample_perf_jit(
            lambda samples: any(map(self.has_trampoline_beside_frame, samples)),
            "a trampoline is shown beside its frame", "--trampolines"))

    def test_trampolines_that_are_new(self):
        """Functions that were called for the first and only time a millisecond before."""

        def are_many(samples):
            return len(self.names_like(r"py::.*:generation \d+$", samples)) > NR_GENERATED

        self.check_names(self.sample_perf_jit(are_many, "many are seen", "--trampolines",
                                              program="code_churn"))

    @staticmethod
    def has_trampoline_beside_frame(frames):
        """Whether a trampoline is shown beside its Python frame."""
        for outer, inner in zip(frames, frames[1:]):
            trampoline = trampoline_truth.NAMED.match(outer["name"])
            if trampoline and inner["kind"] == "python" and trampoline.group(1) == inner["name"]:
                return True
        return False

    def test_waiting(self):
        """A waiting thread shows what it has called in C."""
        with support.python_target(self.interpreter, "sleeps_in_c") as target:
            stacks = stacks_until(target, lambda stacks: any(
                "wait_in_c" in names_of(stack) for stack in stacks), "a waiting thread is seen")
        waiting = [names for names in map(names_of, stacks) if "wait_in_c" in names]
        for names in waiting:
            behind = names[names.index("wait_in_c") + 1:]
            self.assertRegex(" ".join(behind), "clock_nanosleep|select")  # select up to 3.10
            self.assertNotIn(trampoline_truth.GAP, names)
            self.assertIn("_start", names)


@support.per_minor("3.8", "3.10", *NATIVE_VERSIONS)
@support.slow_per_free_threaded
class NativeByEvidence(CallsTests, unittest.TestCase):
    """No BPF program runs in the interrupt that copies the stack."""
    engine = support.PREEMPT
    quick_on = ("3.11", "3.15")


class InExecutors(unittest.TestCase):
    """Code of CPython's own JIT: on the list for debuggers in 3.15, on no list in 3.14."""

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
    def executors(self, *args):
        return support.python_target(self.interpreter, *args, environment=self.JIT)

    def is_in_executor(self, stack):
        return self.NAMES[self.interpreter.minor] in stack

    def test_flag(self):
        """Some samples are in executors, if there are any executors."""
        with self.executors("shortcalls") as target:
            samples_until(target, lambda samples: {False, True} == {
                sample["jit"] for sample in samples}, "both are seen")
        with support.python_target(self.interpreter, "shortcalls",
                                   environment={"PYTHON_JIT": "0"}) as target:
            samples = samples_until(target, bool, "some are seen")
        self.assertEqual({sample["jit"] for sample in samples}, {False})

    def check_whole(self, target):
        """Executors of 3.15 have unwind information. After those of 3.14 there is a loop again."""
        stacks_until(target, lambda stacks: any(
            self.is_in_executor(stack) and stack[0].startswith("_start (") for stack in stacks),
            "a whole stack in an executor is seen", "-r", 500)

    def test_whole_short_calls(self):
        with self.executors("shortcalls") as target:
            self.check_whole(target)

    def test_whole_loop(self):
        """One executor runs and nothing else."""
        with self.executors("jitted", "loop") as target:
            self.check_whole(target)

    def test_who_multiplies(self):
        """Only one function of shortcalls.py multiplies: C frames show that it runs, Python
        frames must agree."""
        with self.executors("shortcalls") as target:
            stacks_until(target, lambda stacks: call_truth.who_multiplies(stacks)["double"],
                         "it is seen", "-r", 1000)


@support.per_minor("3.14", "3.15")
class WaitingForExecutors(InExecutors):
    sleeps = True

    def test_waiting(self):
        """A thread waits in C that an executor has called. Its line is right, so it is not
        flagged."""
        with support.python_target(self.interpreter, "jitwaits", environment=self.JIT) as target:
            support.wait_until(lambda: self.sees_waiting(target), "a waiting thread is seen")

    def sees_waiting(self, target):
        in_executor = [(sample["frames"], sample["jit"]) for sample in samples_of(target)
                       if any(frame["name"] == self.NAMES[self.interpreter.minor]
                              for frame in sample["frames"][:-1])]
        waiting = [frames for frames, is_flagged in in_executor if not is_flagged]
        for frames in waiting:
            lines = [frame["line"] for frame in frames if frame["kind"] == "python"]
            self.assertEqual(lines[-1:], [target.report["line"]], frames)
        return bool(waiting)


def nr_runs(pid):
    """{tid: how often it was given a CPU}, for all threads but the main one"""
    folder = "/proc/%d/task" % pid
    return {tid: support.read("%s/%s/schedstat" % (folder, tid)).split()[2]
            for tid in os.listdir(folder) if tid != str(pid)}


def none_runs(pid):
    """Whether no thread but the main one runs during a short time."""
    before = nr_runs(pid)
    time.sleep(0.2)
    return nr_runs(pid) == before


@support.per_interpreter
@support.slow_per_free_threaded
class Waiting(unittest.TestCase):
    quick_on = ("3.15",)
    sleeps = True

    def test_threads_that_do_not_run(self):
        """A thread that has not run since its last look is not looked at again and has all of its
        time."""
        if self.interpreter.minor == "3.6":
            self.skipTest("3.6 does not record the GIL holder: another may run a waiting state")
        with support.python_target(self.interpreter, "crowd", NR_WAITING) as target:
            support.wait_until(lambda: none_runs(target.pid), "all but one wait")
            support.wait_until(lambda: self.are_seldom_examined(target.pid),
                               "there are more samples than looks")

    def are_seldom_examined(self, pid):
        """False, too, for a run with few ticks: one tick a second looks at every thread."""
        with support.fresh_folder() as (folder, _):
            stats_path = os.path.join(folder, "stats")
            result = support.pysample("attach", "-n", "-d", 2 * WAITING_S, "-f", "jsonl",
                                      "--stats-json", stats_path, pid)
            self.assertEqual(result.status, 0, result.stderr)
            stats = json.loads(support.read(stats_path))
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
            # A look that comes late is shown as several samples.
            passed_ns = samples[-1]["time_ns"] - samples[0]["time_ns"]
            sampled_ns = sum(sample["wall_ns"] for sample in samples
                          if sample["time_ns"] > samples[0]["time_ns"])
            self.assertLessEqual(abs(sampled_ns - passed_ns), 2 * PERIOD_NS)
            self.assertFalse(any(sample["on_cpu"] or sample["gil"] for sample in samples[1:]))
        return stats["reads"] < 2 * stats["native"]["stacks"]  # a look takes three or more

    def test_ways_of_waiting(self):
        """Waiting threads have C frames in all versions: before 3.10 CPython does not show where
        the interpreter's loops are, and 3.15 is built with frame pointers, which the kernel does
        not report."""
        with support.python_target(self.interpreter, "every_wait") as target:
            support.wait_until(lambda: native_truth.all_wait(target.pid), "all threads wait")
            result = attach_native(target.pid, seconds=WAITING_S)
        stacks = [[label.rsplit(" (", 1)[0] for label in stack]
                  for stack in support.parse_collapsed(result.stdout)]
        self.assertTrue(stacks, result.stderr)
        for names in stacks:
            self.assertNotIn(trampoline_truth.GAP, names)
        for way in native_truth.WAYS:
            ends = [names[-1] for names in stacks if way in names]
            self.assertTrue(ends, way)
            self.assertNotIn(way, ends)


class Refused(unittest.TestCase):

    def test_options_that_need_them(self):
        for option in "--kernel", "--trampolines", "--plumbing":
            with self.subTest(option):
                result = support.pysample("attach", option, os.getpid())
                self.assertEqual(result.status, 2, result.stderr)
                self.assertIn(option + " requires -n",
                              result.stderr)
        result = support.pysample("core", "--plumbing", "-f", "collapsed", os.devnull)
        self.assertEqual(result.status, 2, result.stderr)
        self.assertIn("--plumbing requires -n", result.stderr)

    def test_letter_of_core(self):
        """-n is --native without a value, and can be combined with other letters."""
        for option, is_known in (("-n", True), ("-nv", True), ("-vn", True), ("-nall", False),
                                 ("-n=all", False)):
            with self.subTest(option):
                result = support.pysample("core", option, "--plumbing", "-f", "collapsed",
                                          os.devnull)
                self.assertEqual(result.status, 1 if is_known else 2, result.stderr)
