# SPDX-License-Identifier: MIT
"""The asyncio tasks in a dump are those that the program has."""
import collections
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import support
from support import core_files, dump, pysample

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")


class WithTasks(unittest.TestCase):

    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        if support.version_key(cls.interpreter) < [3, 8]:
            raise unittest.SkipTest("tasks of %s are not read" % cls.interpreter.minor)


class TasksTestCase(WithTasks):
    """The comparison with the truth."""

    def assert_truth(self, dumped, report):
        truths = {truth["id"]: truth for truth in report["tasks"]}
        tasks = {task["id"]: task for task in dumped["tasks"]}
        self.assertGreater(len(truths), 1050)
        self.assertTrue(dumped["tasks_complete"])
        self.assertEqual(len(tasks), len(dumped["tasks"]), "a task is there twice")
        self.assertEqual(set(tasks), set(truths))
        cut = {thread["tid"] for thread in dumped["threads"] if thread["c_stack_missing"]}
        for number, truth in truths.items():
            with self.subTest(truth["name"], frames=truth["frames"]):
                is_cut = truth["running"] and truth["tid"] in cut
                self.assert_task(tasks[number], truth, is_cut)

    def assert_task(self, task, truth, is_cut):
        """is_cut: the task runs, and the innermost calls of its thread may be missing."""
        frames, expected = support.dumped_frames(task), support.expected_frames(truth)
        self.assertGreater(len(frames), 0)
        self.assertEqual(frames, expected[:len(frames)] if is_cut else expected)
        for key in ("running", "tid"):
            self.assertEqual(task[key], truth[key], key)
        self.assertEqual(sorted(task["awaited_by"]), truth["awaited_by"])
        self.assertEqual(task["name"], support.shown(truth["name"]))
        self.assertTrue(task["proven"] or is_cut)
        self.assertIsNone(task["error"])


@support.per_minor(*VERSIONS)
@support.per_free_threaded
class Live(TasksTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.target = cls.enterClassContext(support.parked_target(cls.interpreter, "tasks"))

    def test_json_equals_truth(self):
        self.assert_truth(dump(self.target.pid), self.target.report)

    def test_text_groups_equal_tasks(self):
        result = pysample("dump", self.target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertNotRegex(result.stdout, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertRegex(result.stdout, r"\n1000 equal tasks: \"Task-\d+\", .*, …")
        self.assertRegex(result.stdout, r'"left" of a loop that does not run ')
        if support.version_key(self.interpreter) >= [3, 14]:  # else it gets its name later
            self.assertRegex(result.stdout, r'Task "eager" of thread \d+, running ')
        self.assertLess(result.stdout.count("\nTask "), 100)

    def test_tasks_of_a_tree_name_their_process(self):
        result = pysample("dump", "-s", self.target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertRegex(result.stdout, r"\n1000 equal tasks: .* of thread \d+ of process %d \S"
                         % self.target.pid)

    def test_a_watch_compares_tasks(self):
        process = support.start_pysample("dump", "--watch", "0.1", self.target.pid)
        lines = []
        for line in process.stdout:
            lines.append(line.decode())
            if lines[-1].startswith("Same stack again: 1000 equal tasks: "):
                break
        process.send_signal(signal.SIGINT)
        self.assertEqual(support.finish(process).status, 0)
        self.assertEqual(sum(line.startswith("1000 equal tasks") for line in lines), 1)

    def test_the_tree_has_each_task_once(self):
        result = pysample("dump", "--async", self.target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertNotIn("Thread ", result.stdout)
        found = re.findall(r"^( *)(?:Task |(\d+) tasks: )(?:\"|0x)", result.stdout, re.M)
        self.assertEqual(sum(int(nr or 1) for _, nr in found), len(self.target.report["tasks"]))
        self.assertLess(len(found), 100)
        self.assertEqual(sum(int(nr or 1) for indent, nr in found if not indent),
                         sum(not truth["awaited_by"] for truth in self.target.report["tasks"]))

    def test_samples_of_all(self):
        """Each task that waits, and awaits no other, has one stack in each survey."""
        expected = self.expected_stacks()

        def sample():
            surveys = collections.defaultdict(list)
            result = pysample("attach", "--async=all", "-d", 1, "-f", "jsonl", self.target.pid)
            self.assertEqual(result.status, 0, result.stderr)
            for (thread, _), counts in surveys_in(result.stdout).items():
                surveys[thread].append(counts)
            for thread, of_thread in surveys.items():
                self.assertEqual(of_thread, of_thread[:1] * len(of_thread), "nothing moves")
            return sum((of_thread[0] for of_thread in surveys.values()), collections.Counter())

        support.wait_until(lambda: sample() == expected, "each loop has a survey")

    def expected_stacks(self):
        tasks = {truth["id"]: truth for truth in self.target.report["tasks"]}
        awaiting = {awaiter for truth in tasks.values() for awaiter in truth["awaited_by"]}
        return collections.Counter(
            stack_of(truth, tasks) for truth in tasks.values()
            if truth["tid"] and not truth["running"] and truth["id"] not in awaiting)


@support.per_minor(*VERSIONS)
@support.per_free_threaded
class Waiters(WithTasks):
    """Of tasks that wait, the others say the same."""

    def test_call_graph(self):
        """asyncio.capture_call_graph(), in the program itself; Task.get_stack() before 3.14."""
        old = support.version_key(self.interpreter) < [3, 14]
        with support.python_target(self.interpreter, "waiters") as target:
            dumped = {task["id"]: task for task in dump(target.pid)["tasks"]}
            self.assertEqual(len(dumped), len(target.report["tasks"]))
            for expected in target.report["tasks"]:
                task = dumped[expected["id"]]
                frames = [[frame["name"], frame["line"]] for frame in task["frames"]]
                self.assertEqual(frames[:1] if old else frames, expected["frames"])
                self.assertEqual(task["name"], expected["name"])
                if not old:
                    self.assertEqual(sorted(task["awaited_by"]), expected["awaited_by"])

    def test_profiling_sampling(self):
        """profiling.sampling reads the program from outside. It needs /proc in its own root."""
        if support.version_key(self.interpreter) < [3, 15] or not self.interpreter.root:
            self.skipTest("profiling.sampling is in the testbed's 3.15")
        root = self.interpreter.root
        with_proc = ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec "$@"',
                     root]
        with support.python_target(self.interpreter, "waiters", wrapper=with_proc) as target:
            theirs = subprocess.run(
                ["nsenter", "--mount", "--target", str(target.pid), *self.interpreter.command(),
                 "-m", "profiling.sampling", "dump", "--async-aware", str(target.pid)],
                capture_output=True, text=True, timeout=support.PATIENCE_S, check=True).stdout
            ours = pysample("attach", "--async=all", "-d", 1, "-f", "jsonl", target.pid)
        self.assertEqual(ours.status, 0, ours.stderr)
        surveys = surveys_in(ours.stdout)
        self.assertGreater(len(surveys), 0)
        for stacks in surveys.values():
            self.assertEqual(stacks, stacks_of_dump(theirs))


def surveys_in(text):
    """{(thread, time): stacks} of tasks that wait, in jsonl."""
    rows = [json.loads(line) for line in text.splitlines()]
    stacks = {row["id"]: tuple(frame["name"] for frame in row["frames"])
              for row in rows if row["type"] == "stack"}
    threads = {row["id"] for row in rows
               if row["type"] == "thread" and row["name"].startswith("tasks of ")}
    surveys = collections.defaultdict(collections.Counter)
    for row in rows:
        if row["type"] == "sample" and row["thread"] in threads:
            surveys[row["thread"], row["time_ns"]][stacks[row["stack"]]] += 1
    return surveys


def stacks_of_dump(text):
    """Of the dump that profiling.sampling prints."""
    return collections.Counter(
        tuple("Task" if path == "<task>" and re.fullmatch(r"Task-\d+", name) else name
              for path, name in re.findall(r'^  File "(.*?)"(?:, line \d+)?, in (.*)$', stack,
                                           re.M))
        for stack in re.split(r"(?m)^Stack dump", text)[1:])


def stack_of(truth, tasks):
    """The names of a task's frames, below those that lead to it. Of one that runs, only the
    coroutine is known to be where others wait for it."""
    name = support.shown(truth["name"])
    frames = [frame["name"] for frame in support.expected_frames(truth)]
    stack = ("Task" if re.fullmatch(r"(Task-\d+)?", name) else name,
             *frames[:1 if truth["running"] else None])
    awaiters = truth["awaited_by"]
    if len(awaiters) > 1:
        return ("[awaited by %d tasks]" % len(awaiters), *stack)
    return (*stack_of(tasks[awaiters[0]], tasks), *stack) if awaiters else stack


@support.per_minor(*VERSIONS)
@support.per_free_threaded
class Dead(TasksTestCase):
    def test_kernels_core(self):
        """The program's files cannot be found, so its memory must be enough."""
        with core_files.kernel_cores(), core_files.killed(self.interpreter, "tasks") as core:
            self.assert_truth(core_files.core_json(core.path), core.report)

    def test_awaiters_of_equal_tasks(self):
        """Two tasks await one of them, and each of the others is awaited by one of those two."""
        with core_files.kernel_cores(), core_files.crashed(self.interpreter, "tasks") as core:
            result = pysample("core", core.path)
            self.assertRegex(result.stdout, r'\n3 equal tasks: .*, some awaited by "Task-')
            self.assertRegex(result.stdout, r'\n2 equal tasks: "Task-\d+", "Task-\d+" of')

    def test_gdbs_core(self):
        with support.parked_target(self.interpreter, "tasks") as target:
            core = core_files.gcore(target)
            self.assert_truth(core_files.core_json(core.path), core.report)


@support.per_minor(*VERSIONS)
@support.per_free_threaded
class Busy(TasksTestCase):
    def test_tasks_that_come_and_go(self):
        """Every frame is the program's, whatever happens meanwhile."""
        chains = (("main",), ("parent",), ("child", "sleep", "__sleep0"))
        with support.python_target(self.interpreter, "manytasks") as target:
            seen = 0
            for _ in range(10):
                for task in dump(target.pid)["tasks"]:
                    names = tuple(frame["name"] for frame in task["frames"])
                    if task["proven"] and not task["running"]:
                        seen += 1
                        self.assertTrue(any(chain[:len(names)] == names for chain in chains),
                                        names)
            self.assertGreater(seen, 0)


@support.per_minor(*VERSIONS)
@support.per_free_threaded
class Rooted(unittest.TestCase):
    """attach --async: each stack is one that the program can have, below the tasks that await."""

    WAITS = {"waits for red": "red", "waits for blue": "blue"}
    LOOP_ENDS = ("burn", "sleep", "__sleep0")  # what coroutines call
    COROUTINES = {"main", "works", "waits_for_red", "waits_for_blue", "red", "red_step", "blue",
                  "blue_step"}

    @classmethod
    def setUpClass(cls):
        if support.version_key(cls.interpreter) < [3, 8]:
            raise unittest.SkipTest("tasks of %s are not read" % cls.interpreter.minor)

    def split(self, stack):
        """The tasks of a stack, outermost first: lists of a name and the names of functions."""
        parts = []
        for frame in stack:
            name, is_function, _ = frame.partition(" (")
            if name == "<GC>":
                continue
            if not is_function:
                parts.append([name])
            elif parts:
                parts[-1].append(name.rpartition(".")[2])
        return parts

    def check(self, stack):
        """The name of the task that runs in a stack; None: none does; "?": it is missing."""
        parts = self.split(stack)
        if not parts:
            return "?" if {frame.partition(" (")[0] for frame in stack} & self.COROUTINES else None
        *awaiting, (running, *functions) = parts
        allowed = [running, running + "_step"]
        if running == "main":  # it still says that it is ready
            self.assertEqual([awaiting, functions[0]], [[], "main"], stack)
            return running
        if running == "alone":
            self.assertEqual(awaiting, [], stack)
            allowed = ["works"]
        else:
            self.assertEqual(len(awaiting), 2, stack)
            outer, (name, *inner) = awaiting
            self.assertEqual(outer, ["main", "main", "wait", "_wait"], stack)
            self.assertEqual(self.WAITS[name], running, stack)
            self.assertEqual(inner, [name.replace(" ", "_")], stack)
        while functions and functions[-1] in self.LOOP_ENDS:
            functions.pop()
        self.assertGreater(len(functions), 0, stack)
        self.assertEqual(functions, allowed[:len(functions)], stack)
        return running

    def test_stacks_are_the_programs(self):
        with support.python_target(self.interpreter, "workingtasks") as target:
            def sample():
                run = pysample("attach", "--async", "--engine", "preempt", "-r", "1k", "-d", "0.5",
                               *support.COLLAPSED, "-o", "-", target.pid)
                self.assertEqual(run.status, 0, run.stderr)
                found = collections.Counter()
                for stack, count in support.parse_collapsed(run.stdout).items():
                    found[self.check(stack)] += count
                return found

            found = support.sampled_until(
                sample, lambda found: all(found[task] > 5 for task in ("red", "blue", "alone")),
                "samples of each task")
            # Before 3.14 a task is missing while another thread moves the dict of running tasks.
            may_miss = support.version_key(self.interpreter) < [3, 14]
            self.assertLessEqual(found["?"], found.total() // 10 if may_miss else 0)

    def test_with_c_frames(self):
        """The frames of Python and the tasks are the same."""
        with support.python_target(self.interpreter, "workingtasks") as target:
            def sample():
                run = pysample("attach", "-n", "--async=all", "-r", "1k", "-d", "0.5", "-f", "jsonl",
                               target.pid)
                self.assertEqual(run.status, 0, run.stderr)
                found, with_c = collections.Counter(), set()
                rows = [json.loads(line) for line in run.stdout.splitlines()]
                surveys = {row["id"] for row in rows if row["type"] == "thread"
                           and row["name"].startswith("tasks of ")}
                stacks = {row["id"]: row["frames"] for row in rows if row["type"] == "stack"}
                for row in rows:
                    if row["type"] != "sample" or row["thread"] in surveys:
                        continue
                    frames = stacks[row["stack"]]
                    if any(frame["name"] == "[unknown]" for frame in frames):
                        continue  # Python frames are missing
                    task = self.check([frame["name"] + (" (" if frame["kind"] == "python" else "")
                                       for frame in frames if frame["kind"] in ("python", "task")])
                    found[task] += 1
                    if any(frame["kind"] == "native" for frame in frames):
                        with_c.add(task)
                found["with C frames"] += len(with_c - {None, "?"})
                return found

            support.sampled_until(sample, lambda found: found["with C frames"] and all(
                found[task] for task in ("red", "blue", "alone")), "samples of each task")


@support.per_minor("3.8", "3.13", "3.15")
class Weights(WithTasks):
    """A survey stands for the time since the one before it, and for none without tasks."""

    ROUNDING_NS = 1000000  # of times and weights in a recording

    def sample(self, pauses):
        """The surveys of one run: [(time, weight)], and a time before which there were no tasks."""
        with support.python_target(self.interpreter, "latetasks") as target, \
                tempfile.TemporaryDirectory() as folder:
            stats_path = os.path.join(folder, "stats.json")
            process = support.start_pysample("attach", "--async=all", "-f", "jsonl",
                                             "--stats-json", stats_path, target.pid)
            support.wait_for_ticks(process.pid)
            target.process.send_signal(signal.SIGUSR1)
            self.assertEqual(target.process.stdout.readline(), b"waits\n")
            support.wait_for_ticks(process.pid, 30)
            for text in (b"is paused", b"is resumed") if pauses else ():
                process.send_signal(signal.SIGUSR2)
                self.assertTrue(any(text in line for line in iter(process.stderr.readline, b"")))
                time.sleep(1)
            support.wait_for_ticks(process.pid, 30)
            result = support.end_by_signal(process)
            self.assertEqual(result.status, 0, result.stderr)
            stats = json.loads(support.read(stats_path))
        self.assertEqual(stats["paused_ns"] > 0, pauses)
        return (*weights_in(result.stdout), stats["active_ns"])

    def check(self, pauses):
        def has_surveys():
            surveys, begin_ns, active_ns = self.sample(pauses)
            shorter = [time_ns for (before_ns, _), (time_ns, weight_ns)
                       in zip(surveys, surveys[1:])
                       if abs(weight_ns - (time_ns - before_ns)) > self.ROUNDING_NS]
            self.assertLessEqual(len(shorter), int(pauses), surveys)
            total_ns = sum(weight_ns - self.ROUNDING_NS for _, weight_ns in surveys)
            self.assertLess(total_ns, active_ns)
            if surveys:
                self.assertLessEqual(total_ns, surveys[-1][0] - begin_ns, surveys)
            return len(surveys) > 3

        support.wait_until(has_surveys, "there are surveys")

    def test_tasks_that_come_late(self):
        self.check(pauses=False)

    def test_pauses(self):
        self.check(pauses=True)


def weights_in(text):
    """([(time, weight)] of the surveys, the time of the last sample of before()), in jsonl."""
    rows = [json.loads(line) for line in text.splitlines()]
    before = {row["id"] for row in rows
              if row["type"] == "stack" and any(frame["name"] == "before" for frame in row["frames"])}
    threads = {row["id"] for row in rows
               if row["type"] == "thread" and row["name"].startswith("tasks of ")}
    samples = [row for row in rows if row["type"] == "sample"]
    surveys = {row["time_ns"]: row["wall_ns"] for row in samples if row["thread"] in threads}
    return sorted(surveys.items()), max(row["time_ns"] for row in samples if row["stack"] in before)


class Engine(unittest.TestCase):
    def test_verbose_says_why(self):
        with support.python_target(support.newest_interpreter(), "workingtasks") as target:
            run = pysample("attach", "-v", "--async", "-d", "0.1", *support.COLLAPSED, "-o", "-",
                           target.pid)
        self.assertIn("pysample: engine preempt, which --async requires\n", run.stderr)


@support.per_minor("3.6", "3.7")
class Older(unittest.TestCase):
    def test_no_tasks_in_older_versions(self):
        if support.version_key(self.interpreter) >= [3, 8]:
            self.skipTest("tasks of this version are read")
        with support.parked_target(self.interpreter, "boundary") as target:
            dumped = dump(target.pid)
            self.assertIsNone(dumped["tasks"])
            self.assertIsNone(dumped["tasks_complete"])


if __name__ == "__main__":
    unittest.main()
