# SPDX-License-Identifier: MIT
"""What every command does on another kernel or architecture. Runs in a guest (guest.py), whose
emulated CPUs are slow, on its own interpreters: few threads and few runs. The live tests look
closer."""
import json
import os
import subprocess
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "live"))

import support  # noqa: E402
from support import call_truth, core_files, names, pysample, trampoline_truth  # noqa: E402

RATE = ["-r", 200, "-d", 1]
KEYED = ["<module>", "main", "key", "outer", "inner"]  # the calls of sort_key.py
WORK = """\
import time

def work():
    end = time.process_time() + 1
    while time.process_time() < end:
        sum(range(100))

work()
raise SystemExit(7)
"""


def is_chain(stack):
    """Whether a stack is the beginning of a chain of alternating.py."""
    return any(list(stack) == chain[:len(stack)] for chain in (
        ["<module>", "alternate", *("%s%03d" % (letter, n) for n in range(6))] for letter in "ab"))


def python_names(stack):
    return [found.group(1) for found in map(trampoline_truth.PYTHON.match, stack) if found]


def has_jit(interpreter):
    result = subprocess.run(
        [interpreter.path, "-c", "import sys; print(sys._jit.is_enabled())"],
        env={**os.environ, "PYTHON_JIT": "1"}, capture_output=True, text=True, check=False)
    return result.stdout == "True\n"


@support.per_interpreter
class Smoke(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder, _ = self.enterContext(support.fresh_folder())
        self.recording = os.path.join(folder, "a.pysample")
        self.collapsed = os.path.join(folder, "a.collapsed")
        self.stats = os.path.join(folder, "a.json")

    def stats_of_run(self):
        return json.loads(support.read(self.stats))

    def report(self):
        """The stacks of the recording."""
        result = pysample("report", "--plumbing", self.recording, *support.COLLAPSED)
        self.assertEqual(result.status, 0, result.stderr)
        return support.parse_collapsed(result.stdout)

    def sampled(self, pid, *options):
        """The stacks of a run; none if it was too short to prove one. Its recording says the
        same."""
        result = pysample("attach", *RATE, "--mode", "wall", "-o", self.recording, "-o",
                          self.collapsed, "--stats-json", self.stats, *options, pid)
        if support.has_no_proven_stack(result):
            return {}
        self.assertEqual(result.status, 0, result.stderr)
        stacks = support.parse_collapsed(support.read(self.collapsed))
        self.assertEqual(self.report(), stacks)
        return stacks

    # ---- one look ----

    def assert_threads(self, threads, truths):
        found = {thread["tid"]: support.dumped_frames(thread) for thread in threads}
        self.assertEqual(found, {truth["tid"]: core_files.expanded(truth) for truth in truths})

    def test_dump(self):
        with support.parked_target(self.interpreter, "few_situations") as target:
            self.assert_threads(support.dump(target.pid)["threads"], target.report["threads"])

    def test_dump_native(self):
        """The threads are in read(2), in C. On x86-64 all is unwound to where the thread began. On
        aarch64 the kernel does not show x30, in which the innermost function returns: a gap."""
        with support.parked_target(self.interpreter, "few_situations") as target:
            result = pysample("dump", "-n", "--json", target.pid)
            truths = {truth["tid"]: truth for truth in target.report["threads"]}
        self.assertEqual((result.status, result.stderr), (0, ""))
        for thread in json.loads(result.stdout)["threads"]:
            frames = thread["frames"]
            self.assertEqual([frame["name"] for frame in frames if frame["kind"] == "python"],
                             [frame["name"] for frame in truths[thread["tid"]]["frames"]])
            self.assertEqual(frames[-1]["kind"], "native")
            self.assertIn("/libc.so.6", frames[-1]["path"])
            if os.uname().machine == "x86_64":
                self.assertNotIn(trampoline_truth.GAP, [frame["name"] for frame in frames])
                self.assertIn("read", frames[-1]["name"])
                self.assertEqual(frames[0]["kind"], "native")

    def test_doctor(self):
        with support.python_target(self.interpreter, "busy") as target:
            result = pysample("doctor", target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn(self.interpreter.version, result.stdout)
        for line in ("engine +bpf: ", "C frames +available", "kernel +available",
                     "verdict +it can be sampled: "):
            self.assertRegex(result.stdout, "(?m)^" + line)

    # ---- sampling ----

    def check_engine(self, engine):
        def sample():
            stacks = support.without_gc(self.sampled(target.pid, "--engine", engine))
            if stacks:
                self.assertEqual(self.stats_of_run()["engine"], engine)
            self.assertEqual([stack for stack in stacks if not is_chain(names(stack))], [])
            return stacks

        with support.python_target(self.interpreter, "alternating", "calls", 400) as target:
            support.sampled_until(sample, lambda stacks: {"a005", "b005"} <= {
                names(stack)[-1] for stack in stacks}, "both leaves are seen")

    def test_preempt(self):
        self.check_engine("preempt")

    def test_bpf(self):
        self.check_engine("bpf")

    def test_tick(self):
        """Where the kernel's structures have another layout, a sentence says what to use."""
        with support.python_target(self.interpreter, "busy") as target:
            result = pysample("attach", "-d", 1, "--engine", "tick", target.pid)
        if result.status == 4:
            self.assertRegex(result.stderr, r"\Apysample: --engine tick: .*: use --engine bpf\n\Z")
            self.skipTest("refused: " + result.stderr.rstrip("\n"))
        self.check_engine("tick")

    def test_native(self):
        """sorted() calls from C, so that its frames are between."""
        def sample():
            stacks = self.sampled(target.pid, "-n", "--plumbing")
            for stack in stacks:
                if trampoline_truth.GAP not in stack:
                    self.assertEqual(python_names(stack), KEYED[:len(python_names(stack))], stack)
            return stacks

        def is_whole(stack):
            names_and_gaps = call_truth.names_of(stack)
            return (trampoline_truth.GAP not in stack
                    and stack[0].startswith("_start (")
                    and names_and_gaps[names_and_gaps.index("<module>"):][:7]
                    == ["<module>", "main", None, *KEYED[2:]])

        with support.python_target(self.interpreter, "sort_key") as target:
            support.sampled_until(sample, lambda stacks: any(map(is_whole, stacks)),
                                  "a whole stack is seen")

    def test_run(self):
        result = pysample("run", *RATE[:2], "-o", self.recording, "--", self.interpreter.path, "-c",
                          WORK)
        self.assertEqual(result.status, 7, result.stderr)
        self.assertIn(["<module>", "work"], [
            [label.partition(" (")[0] for label in stack] for stack in self.report()])

    def test_tree(self):
        """A process and its child, which is another program."""
        with support.fresh_folder() as (folder, _):
            go = os.path.join(folder, "go")
            with open(go, "w", encoding="ascii"):
                pass
            with support.plain_target(self.interpreter.path,
                                      os.path.join(support.TARGETS, "processes", "workers.py"),
                                      "program", folder) as process:
                def pids():
                    return {int(name[:-len(".json")].rpartition("-")[2])
                            for name in os.listdir(folder) if name.endswith(".json")}

                support.wait_until(lambda: len(pids()) == 2, "both work")
                self.assertIn(process.pid, pids())
                support.sampled_until(
                    lambda: self.sampled(process.pid, "-s"),
                    lambda stacks: all(any(
                        "%d" % pid in stack[0] and stack[-1].startswith("work (")
                        for stack in stacks) for pid in pids()), "both are seen")

    # ---- JIT ----

    def test_jit(self):
        """Stacks are possible, executors are known, and with C frames the stack below one is whole;
        that of 3.14, whose executors have no unwind information, on x86-64 only."""
        if not has_jit(self.interpreter):
            self.skipTest("%s has no JIT" % self.interpreter.minor)
        with support.python_target(self.interpreter, "shortcalls",
                                   environment={"PYTHON_JIT": "1"}) as target:
            def sample():
                stacks = self.sampled(target.pid)
                self.assertTrue(set().union(*map(python_names, stacks)) <=
                                {"<module>", "main", *call_truth.FUNCTIONS}, stacks)
                return stacks

            support.sampled_until(sample, lambda stacks: call_truth.FUNCTIONS <= {
                stack[-1].partition(" (")[0] for stack in stacks}, "each function is seen")
            gap = {trampoline_truth.GAP} if (self.interpreter.minor, os.uname().machine) == (
                "3.14", "aarch64") else set()
            support.sampled_until(
                lambda: self.sampled(target.pid, "-n", "--plumbing"),
                lambda stacks: any({"[jit]", "py::jit:executor"} & set(stack)
                                   and (stack[0].startswith("_start (") or gap & set(stack))
                                   for stack in stacks), "a stack in an executor is seen")

    # ---- core files ----

    def test_core(self):
        self.enterContext(core_files.kernel_cores())
        with core_files.crashed(self.interpreter, "single") as core:
            document = core_files.core_json(core.path)
            native = core_files.core_json("-n", core.path)
            self.assertEqual(pysample("core", core.path).status, 0)
        self.assert_threads(document["threads"], core.report["threads"])
        self.assertEqual(document["death"]["name"], "SIGABRT")
        (thread,) = native["threads"]
        kinds = [frame["kind"] for frame in thread["frames"]]
        self.assertEqual((kinds[0], kinds[-1]), ("native", "native"))
        self.assertNotIn(trampoline_truth.GAP, [frame["name"] for frame in thread["frames"]])
        (truth,) = core.report["threads"]
        self.assertEqual([frame["name"] for frame in thread["frames"] if frame["kind"] == "python"],
                         [frame["name"] for frame in core_files.expanded(truth)])


if __name__ == "__main__":
    unittest.main()
