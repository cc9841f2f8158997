# SPDX-License-Identifier: MIT
"""`pysample attach --native`: Python calls code that nothing describes and that is not
CPython's."""
import platform
import subprocess
import unittest

import support
from native import test_native
from support import native_truth, trampoline_truth

UNNAMED = "[jit]"


def python_of(stack):
    """The names of the Python frames."""
    return [label.split(" (")[0] for label in stack if trampoline_truth.PYTHON.match(label)]


def check(case, target, python):
    """No stack has Python frames other than python has there. Some stacks in unnamed code have
    all of them and are whole but for one gap, between the code and its caller."""

    def is_right(stack):
        gaps = [i for i, label in enumerate(stack) if label == trampoline_truth.GAP]
        return (stack[-1] == UNNAMED and test_native.names_of(stack)[0] == "_start"
                and gaps == [len(stack) - 2] and python_of(stack) == python)

    stacks = test_native.stacks_until(target, lambda stacks: any(map(is_right, stacks)),
                                      "a correct stack is seen")
    case.assertEqual([stack for stack in stacks
                      if not native_truth.is_in_order(python_of(stack), python)], [])


def check_bare_code(case, jit):
    if support.version_key(case.interpreter) < [3, 10]:
        case.skipTest("before 3.10 CPython does not record its loops")
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
        """Code made where a file was mapped is no longer the file's, once the change was
        noticed."""

        def has_both(stacks):
            ends = {(next((name for name in test_native.names_of(stack)
                           if name.startswith("call_")), None),
                     ".code" if ".code+" in stack[-1] else stack[-1]) for stack in stacks}
            return {("call_file", ".code"), ("call_made", UNNAMED)} <= ends

        support.sampled_until(self.sample_replaced, has_both, "both codes are seen")

    def sample_replaced(self):
        with support.python_target(self.interpreter, "replaced") as target:
            result = test_native.attach_native(target.pid, seconds=5)
            test_native.skip_without_c_frames(result)
        return support.parse_collapsed(result.stdout)


@support.per_minor("3.14", "3.15")
@unittest.skipIf(platform.machine() != "x86_64", "not tested here: the code is x86-64's")
class BareCodeBesideExecutors(unittest.TestCase):
    """Some of the code made at run time is that of CPython's JIT."""

    def test_python_frames(self):
        check_bare_code(self, jit="1")


@support.per_minor("3.14")
class Numba(unittest.TestCase):
    """Debian's numba is built for Debian's default Python and has no list for debuggers."""

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
