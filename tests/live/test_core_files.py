# SPDX-License-Identifier: MIT
"""`pysample core` and files: interpreters that are gone, moved or others, containers, and what
may be opened at all."""
import os
import re
import shutil
import subprocess
import unittest

import copies
import core_support
import support
from core_support import core_json
from support import per_layout
from test_core import CoreTestCase


@per_layout
class Executables(CoreTestCase):
    """What happens to an interpreter's own files, while it lives and after."""

    def setUp(self):
        self.enterContext(core_support.kernel_cores())

    def crashed(self, copy, situation="handled"):
        return core_support.crashed(copy.interpreter, situation, environment=copy.environment)

    def test_gone_with_the_process(self):
        """The core alone has to do."""
        with copies.copied(self.interpreter) as copy, self.crashed(copy) as core:
            for path in copy.files:
                os.unlink(path)
            self.assert_core(core)

    def test_gone_before_it_died(self):
        with copies.copied(self.interpreter) as copy:
            with core_support.parked(copy.interpreter, "handled",
                                     environment=copy.environment) as target:
                for path in copy.files:
                    os.unlink(path)
                core = core_support.aborted(target)
                told = core_json(core.path)
                self.assert_threads(told, core.report["threads"])

    def test_moved(self):
        with copies.copied(self.interpreter) as copy, self.crashed(copy) as core:
            for path in copy.files:
                os.rename(path, path + ".moved")
            self.assert_core(core)

    def test_replaced(self):
        """Another version lies where it was: it is not taken for it."""
        with copies.copied(self.interpreter) as copy, self.crashed(copy) as core:
            for path in copy.files:
                os.unlink(path)
                shutil.copy(support.PYSAMPLE, path)
            self.assert_core(core)

    def test_stripped_and_renamed(self):
        with copies.copied(self.interpreter) as copy:
            for change in (copies.strip, copies.drop_sections, copies.rename):
                change(copy)
            with self.crashed(copy) as core:
                self.assert_core(core)
                for path in copy.files:
                    os.unlink(path)
                self.assert_core(core)


@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
@per_layout
class Containers(CoreTestCase):
    """In PID and mount namespaces, with a root of their own."""

    def setUp(self):
        self.inside, self.container = self.enterContext(copies.rooted(self.interpreter))

    def test_it_dies_there(self):
        """Paths and ids are the container's, and the files are not where they were."""
        self.enterContext(core_support.kernel_cores())
        with core_support.crashed(self.inside, "threads", container=self.container) as core:
            self.assert_core(core)

    def test_looked_at_from_the_host(self):
        """gdb has the host's ids and paths."""
        with core_support.parked(self.inside, "single", container=self.container) as target:
            pid = support.descendant(target.pid)
            tids = support.innermost_tids(pid)
            self.assert_core(core_support.gcore(target, pid), tids.get, root=self.inside.root)


class Opened(unittest.TestCase):
    """Looked at from outside: what it does to the system."""

    CALLS = "trace=%file,%process,%network,memfd_create,ptrace,process_vm_readv"

    def setUp(self):
        if not shutil.which("strace"):
            self.skipTest("not tested here: what is opened (no strace)")
        self.enterContext(core_support.kernel_cores())
        # Its files are where the core says.
        interpreter = next(found for found in support.supported_interpreters() if not found.root)
        self.core = self.enterContext(core_support.crashed(interpreter, "threads=3"))
        self.executable = os.path.realpath(interpreter.path)

    def calls(self, *options):
        """Of what is done behind the core was opened."""
        log = os.path.join(self.core.folder, "strace")
        run = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", self.CALLS, support.PYSAMPLE,
                              "core", *options, self.core.path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = support.read(log).splitlines()
        first = next(number for number, line in enumerate(lines) if self.core.path in line
                     and "execve" not in line)
        return lines[first + 1:]

    def test_nothing_but_mapped_files(self):
        with open(self.core.path, "rb") as file:
            allowed = core_support.mapped_files(file.read(1 << 20))
        self.assertIn(self.executable, allowed)
        for options in ((), ("--json",)):
            with self.subTest(options):
                calls = self.calls(*options)
                self.assertFalse([line for line in calls if not re.search(
                    r"\b(open(at2?)?|stat|lstat|statx?|newfstatat|readlink(at)?|access|faccessat2?"
                    r"|fstat|exit_group|memfd_create|getcwd)\(|\+\+\+ exited", line)], calls)
                paths = set(re.findall(r'"(/[^"]*)"', "\n".join(calls)))
                others = {path for path in paths - allowed
                          if not path.startswith(("/usr/lib/debug/", "/proc/self/fd/"))}
                self.assertEqual(others - self.sources(), set())

    def sources(self):
        """Of functions on the stacks, whose text may be shown."""
        return {frame["path"] for truth in self.core.report["threads"]
                for frame in core_support.expanded(truth)}


if __name__ == "__main__":
    unittest.main()
