# SPDX-License-Identifier: MIT
"""`pysample attach --native`: Python that calls code of which nothing tells, which is not CPython's."""
import collections
import platform
import subprocess
import unittest

import support
import test_native
import trampoline_truth

UNNAMED = "[jit]"


def frames_of(stack):
    return [label.rsplit(" (", 1)[0] for label in stack]


def judge(stacks, python):
    """Counter: what the stacks in unnamed code say of Python's frames, which are python. Each stack
    is whole but for one hole, between the code and what has called it."""
    counts = collections.Counter()
    for stack, number in stacks.items():
        if stack[-1] != UNNAMED:
            counts["elsewhere"] += number
            continue
        told = [label.split(" (")[0] for label in stack if trampoline_truth.PYTHON.match(label)]
        holes = stack.count(trampoline_truth.HOLE)
        is_whole = frames_of(stack)[0] == "_start" and stack[-2] == trampoline_truth.HOLE
        if told == python:
            counts["right" if is_whole and holes == 1 else "holes"] += number
        else:
            counts["holes" if holes > 1 else "wrong"] += number
    return counts


def check(case, target, python):
    """Nearly all of its stacks are right; some functions of Python's own run between."""
    result = test_native.attach_native(target.pid)
    test_native.is_allowed(result)
    counts = judge(support.parse_collapsed(result.stdout), python)
    case.assertGreater(counts["right"], 0.8 * sum(counts.values()), (counts, result))
    case.assertLessEqual(counts["wrong"], test_native.MOST_WRONG * sum(counts.values()) + 1, counts)


def check_bare_code(case, jit):
    with support.python_target(case.interpreter, "barecode",
                               environment={"PYTHON_JIT": jit}) as target:
        check(case, target, ["<module>", "main", "repeat", "call_bare_code"])


@support.per_minor(*test_native.NATIVE_VERSIONS)
@unittest.skipIf(platform.machine() != "x86_64", "not tested here: the code is x86-64's")
class BareCode(unittest.TestCase):
    quick_on = ("3.11",)

    def test_python_frames(self):
        check_bare_code(self, jit="0")

    def test_where_a_file_was(self):
        """Code that is made where a file was mapped is the file's no more, once that was noticed."""
        with support.python_target(self.interpreter, "replaced") as target:
            result = test_native.attach_native(target.pid, seconds=5)
            test_native.is_allowed(result)
        last = collections.defaultdict(collections.Counter)
        for stack, number in support.parse_collapsed(result.stdout).items():
            last[next((name for name in frames_of(stack) if name.startswith("call_")), None)][
                ".code" if ".code+" in stack[-1] else stack[-1]] += number
        self.assertGreater(last["call_file"][".code"], 0, (last, result.stderr))
        self.assertGreater(last["call_made"][UNNAMED], 0, (last, result.stderr))


@support.per_minor("3.14", "3.15")
@unittest.skipIf(platform.machine() != "x86_64", "not tested here: the code is x86-64's")
class BareCodeBesideExecutors(unittest.TestCase):
    """Some of the code that is made at run time is that of CPython's JIT."""

    def test_python_frames(self):
        check_bare_code(self, jit="1")


@support.per_minor("3.14")
class Numba(unittest.TestCase):
    """That of Debian is made for its own default Python, and has no list for debuggers."""

    def check(self, jit):
        has_numba = subprocess.run([*self.interpreter.command(), "-c", "import numba"],
                                   stderr=subprocess.DEVNULL, check=False)
        if has_numba.returncode:
            self.skipTest("not tested here: %s has no numba (scripts/testbed --numba)"
                          % self.interpreter)
        with support.python_target(self.interpreter, "numbakernel",
                                   environment={"PYTHON_JIT": jit}) as target:
            check(self, target, ["<module>", "main", "repeat", "call_kernel"])

    def test_without_jit(self):
        self.check("0")

    def test_beside_executors(self):
        self.check("1")


if __name__ == "__main__":
    unittest.main()
