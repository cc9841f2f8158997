# SPDX-License-Identifier: MIT
"""`pysample attach --native --kernel`: what a thread does inside the kernel."""
import json
import unittest

import support
from native import test_native
from native.test_native_rights import NobodysInterpreter, newest_in_root
from support import native_truth, trampoline_truth

# A reader of /dev/zero is in one of these nearly all the time (Linux, fs/read_write.c).
READS = {"vfs_read", "ksys_read", "__x64_sys_read", "__arm64_sys_read"}


def functions_of_kernel():
    """The functions that the kernel lists."""
    lines = support.read("/proc/kallsyms").splitlines()
    return {line.split()[2] for line in lines if line.split()[0].strip("0")}


def stacks_of(result):
    """The frames of each distinct stack."""
    records = [json.loads(line) for line in result.stdout.splitlines()]
    return [record["frames"] for record in records if record["type"] == "stack"]


def sample(pid, *args, seconds=2):
    return support.pysample("attach", "-n", "--plumbing", "-d", seconds, "-r", "200", "-f", "jsonl",
                            *args, pid)


@support.per_minor(*test_native.NATIVE_VERSIONS)
class Kernel(unittest.TestCase):
    quick_on = ("3.11",)

    def test_reading(self):
        functions = functions_of_kernel()
        if not functions:
            self.skipTest("not tested here: /proc/kallsyms hides addresses")
        with support.python_target(self.interpreter, "kernelreads") as target:
            support.wait_until(lambda: self.has_caller(target.pid, functions),
                               "the function that calls read() is seen")
            support.wait_until(lambda: self.has_no_kernel_frames(target.pid),
                               "some stacks are seen")

    def has_caller(self, pid, functions):
        """Whether a Python function is shown as the caller. It is [unknown] until the loop is
        known."""
        result = sample(pid, "--kernel")
        if "no kernel frames" in result.stderr:
            self.skipTest("not tested here: " + result.stderr)
        test_native.skip_without_c_frames(result)
        inside = [frames for frames in stacks_of(result) if frames[-1]["kind"] == "kernel"]
        for frames in inside:
            self.check_order([frame["kind"] for frame in frames])
        reading = [frames for frames in inside
                   if READS & {frame["name"] for frame in frames if frame["kind"] == "kernel"}]
        callers = [{"read_zeros", trampoline_truth.GAP} & {frame["name"] for frame in frames}
                   for frames in reading]
        self.assertNotIn(set(), callers, reading)
        for frames in reading:
            self.check_names(frames, functions)
        return {"read_zeros"} in callers

    def has_no_kernel_frames(self, pid):
        kinds = {frame["kind"] for frames in stacks_of(sample(pid)) for frame in frames}
        self.assertNotIn("kernel", kinds)
        return {"python", "native"} <= kinds

    def check_order(self, kinds):
        """The kernel's frames are innermost, and a C frame has called them."""
        first = kinds.index("kernel")
        self.assertEqual(set(kinds[first:]), {"kernel"})
        self.assertEqual(kinds[first - 1], "native")

    def check_names(self, frames, functions):
        for frame in frames:
            if frame["kind"] == "kernel" and frame["path"] == "[kernel]":
                self.assertIn(frame["name"], functions | {"??"})


@support.per_interpreter
class Waiting(unittest.TestCase):
    """Waiting threads in all versions, compared with the kernel's own stacks at that moment."""

    quick_on = ("3.11",)
    sleeps = True

    def test_ways_of_waiting(self):
        with support.python_target(self.interpreter, "every_wait") as target:
            support.wait_until(lambda: native_truth.all_wait(target.pid), "all threads wait")
            with_kernel, without = (
                sample(target.pid, *args, seconds=test_native.WAITING_S)
                for args in (["--kernel"], []))
            truth = set(map(tuple, native_truth.in_kernel(target.pid).values()))
        self.assertEqual({self.in_kernel(frames) for frames in stacks_of(with_kernel)}, truth)
        self.assertEqual({self.in_kernel(frames) for frames in stacks_of(without)}, {()})

    @staticmethod
    def in_kernel(frames):
        return tuple(frame["name"] for frame in frames if frame["kind"] == "kernel")


class NoKernelFrames(unittest.TestCase):
    """Where kernel stacks are not permitted a sentence says so, and the other frames are shown."""

    def test_nobody(self):
        interpreter = NobodysInterpreter(**vars(newest_in_root()))
        with support.python_target(interpreter, "kernelreads") as target:
            support.wait_until(lambda: self.has_python(target.pid), "the function is seen")

    def has_python(self, pid):
        result = support.pysample_as_nobody("attach", "-n", "--kernel", "-d", "2", "-f", "jsonl",
                                            pid)
        if "perf_event_open is not allowed" in result.stderr:
            self.skipTest("not tested here: " + result.stderr.strip())
        if result.status == 5:
            return False
        self.assertEqual(result.status, 0, result.stderr)
        frames = [frame for stack in stacks_of(result) for frame in stack]
        kinds = {frame["kind"] for frame in frames}
        if int(support.read("/proc/sys/kernel/perf_event_paranoid")) > 1:
            self.assertIn("no kernel frames: ", result.stderr)
            self.assertIn("kernel.perf_event_paranoid", result.stderr)
            self.assertNotIn("kernel", kinds)
        return "read_zeros" in {frame["name"] for frame in frames}
