# SPDX-License-Identifier: MIT
"""`pysample core` and files: compressed cores, interpreters that are gone, moved or replaced,
containers, and what may be opened at all.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import unittest

import support
from core.test_core import CoreTestCase
from support import core_files, per_layout, pysample, python_copies
from support.core_files import core_json

PACKERS = {
    "zst": ["zstd", "-q", "-c", "-3"],
    "zst in two frames": ["sh", "-c", 'head -c 1000000 "$0" | zstd -q -c; '
                          'tail -c +1000001 "$0" | zstd -q -c'],
    "gz": ["gzip", "-c", "-1"],
    "xz": ["xz", "-c", "-0"],
    "lz4": ["lz4", "-q", "-c"],
    "zst of many threads": ["pzstd", "-q", "-c"],
}

# Zeros after the compressed data, as on a tape. The compressor itself accepts such a file as whole.
PADDED = {
    "gz": ["sh", "-c", 'gzip -c -1 "$0"; head -c 10240 /dev/zero'],
    "xz": ["sh", "-c", 'xz -c -0 "$0"; head -c 10240 /dev/zero'],
}


def packed(name, path, packers=PACKERS):
    """A compressed copy of a file. Skips the test if a program is missing."""
    command = packers[name]
    if not all(shutil.which(program) for program in (command[0], "zstd")):
        raise unittest.SkipTest("not tested here: packed cores (no %s)" % command[0])
    # Its content must identify it, not its name.
    copy = os.path.join(os.path.dirname(path), "packed")
    with open(copy, "wb") as file:
        subprocess.run([*command, path], stdout=file, check=True)
    return copy


def without_source(report):
    """A report, text or JSON, without source lines: a core from a pipe has no age, so none are
    shown."""
    if isinstance(report, str):
        return re.sub(r"(?m)^    .*\n", "", report)
    for thread in report["threads"]:
        for frame in thread["frames"]:
            frame["source"] = None
    return report


class Packed(unittest.TestCase):
    """The report is the same, byte for byte, and no file is left behind."""

    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(core_files.kernel_cores())
        cls.core = cls.enterClassContext(
            core_files.crashed(support.newest_interpreter(), "threads=10"))
        cls.temporary, _ = cls.enterClassContext(support.fresh_folder())

    def report(self, path, *options, **kwargs):
        result = pysample("core", *options, path, env={**os.environ, "TMPDIR": self.temporary},
                          **kwargs)
        self.assertEqual(os.listdir(self.temporary), [])
        self.assertEqual(result.status, 0, result.stderr)
        return result.stdout.replace(str(path), "CORE")

    def reports(self, path, **kwargs):
        return [self.report(path, **kwargs), json.loads(self.report(path, "--json", **kwargs))]

    def test_each_way_to_pack(self):
        plain = self.reports(self.core.path)
        self.assertEqual(len(plain[1]["threads"]), 11)
        for name in PACKERS:
            with self.subTest(name):
                self.assertEqual(self.reports(packed(name, self.core.path)), plain)

    def test_padding(self):
        plain = self.reports(self.core.path)
        for name, program in (("gz", "gzip"), ("xz", "xz")):
            with self.subTest(name):
                path = packed(name, self.core.path, PADDED)
                with open(path, "rb") as file:
                    subprocess.run([program, "-t"], stdin=file, check=True)
                self.assertEqual(self.reports(path), plain)

    def test_through_a_pipe(self):
        plain = [*map(without_source, self.reports(self.core.path))]
        for name in (None, "zst"):
            path = packed(name, self.core.path) if name else self.core.path
            for options, wanted in ((), plain[0]), (("--json",), plain[1]):
                with self.subTest(name, options=options):
                    found = self.piped(path, *options)
                    self.assertEqual(json.loads(found) if options else found, wanted)

    def piped(self, path, *options):
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            result = subprocess.run([support.PYSAMPLE, "core", *options, "-"], stdin=cat.stdout,
                                    capture_output=True, text=True, timeout=support.PATIENCE_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.sub('(?m)^(Core file |  "core": ")-', r"\1CORE", result.stdout)

    def test_fifo(self):
        """Even in the place of a program, a FIFO is opened only once: otherwise its writer would
        die."""
        fifo = os.path.join(self.core.folder, "fifo")
        os.mkfifo(fifo)
        with subprocess.Popen(["sh", "-c", 'exec cat "$0" > "$1"', self.core.path,
                               fifo]) as writer:
            support.wait_until(lambda: support.read("/proc/%d/stat" % writer.pid).split(
                ") ")[1].startswith("S") and support.read(
                    "/proc/%d/comm" % writer.pid) == "sh\n", "the writer waits for a reader")
            result = pysample("core", self.core.path, fifo)
        self.assertEqual((result.status, writer.wait()), (0, 0), result.stderr)
        self.assertIn("2 cores", result.stdout)

    def test_cut_off(self):
        """What is there is reported."""
        for name in PACKERS:
            path = packed(name, self.core.path)
            size = os.path.getsize(path)
            for kept in (size - 1, size * 9 // 10, size // 2, 100, 5):
                with self.subTest(name, kept=kept):
                    os.truncate(path, kept)
                    result = pysample("core", "--json", path)
                    self.assertIn(result.status, (0, 1, 3), result.stderr)
                    if result.status and kept >= 100:
                        self.assertIn("is truncated: ", result.stderr)
                    if kept == size - 1:
                        document = json.loads(result.stdout)
                        self.assertGreaterEqual(len(document["threads"]), 10)
                        self.assertTrue(document["problems"])


class Descriptors(unittest.TestCase):
    """A library in use stays open. A low limit makes a few libraries enough for the test."""

    def modules(self, path, soft, hard):
        document = core_json(path, "--modules", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (soft, hard)))
        return [module["state"] for module in document["modules"]], document["problems"]

    def test_limits(self):
        interpreter = next(found for found in support.supported_interpreters() if not found.root)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with core_files.kernel_cores(), core_files.crashed(interpreter, "single") as core:
            states, problems = self.modules(core.path, most, most)
            self.assertEqual((set(states), problems), ({"used"}, []))
            self.assertGreaterEqual(len(states), 3)
            # The soft limit is raised. Five are for stdin, stdout, stderr, the core and one file.
            self.assertEqual(self.modules(core.path, 5, most), (states, []))
            # Where the hard limit is too low, the report says so, not that files are missing.
            few, problems = self.modules(core.path, 22, 22)
            self.assertEqual(set(few), {"used", "too many open files"})
            self.assertEqual(len(problems), 1)
            self.assertRegex(problems[0], "^[1-9][0-9]* of its files .*ulimit -Hn")


@per_layout
class Executables(CoreTestCase):
    """Changes to an interpreter's own files, while it lives and after."""

    quick_on = ("3.11",)

    def setUp(self):
        self.enterContext(core_files.kernel_cores())

    def crashed(self, copy, situation="handled"):
        return core_files.crashed(copy.interpreter, situation, environment=copy.environment)

    def test_gone_with_the_process(self):
        """The core alone must be enough."""
        with python_copies.copied(self.interpreter) as copy, self.crashed(copy) as core:
            for path in copy.files:
                os.unlink(path)
            self.assert_core(core)

    def test_gone_before_it_died(self):
        with python_copies.copied(self.interpreter) as copy:
            with core_files.parked(copy.interpreter, "handled",
                                   environment=copy.environment) as target:
                for path in copy.files:
                    os.unlink(path)
                core = core_files.aborted(target)
                document = core_json(core.path)
                self.assert_threads(document, core.report["threads"])

    def test_moved(self):
        with python_copies.copied(self.interpreter) as copy, self.crashed(copy) as core:
            for path in copy.files:
                os.rename(path, path + ".moved")
            self.assert_core(core)
            self.assert_core(core, arguments=[copy.files[0] + ".moved"])

    def test_replaced(self):
        """Another file in its place is not mistaken for it."""
        with python_copies.copied(self.interpreter) as copy, self.crashed(copy) as core:
            for path in copy.files:
                os.unlink(path)
                shutil.copy(support.PYSAMPLE, path)
            self.assert_core(core)

    def test_another_is_given(self):
        with core_files.crashed(self.interpreter, "handled") as core:
            document = self.assert_core(core, arguments=["/bin/true"])
            self.assertRegex(" ".join(document["problems"]), "/bin/true")

    def test_stripped_and_renamed(self):
        with python_copies.copied(self.interpreter) as copy:
            for change in (python_copies.strip, python_copies.drop_sections, python_copies.rename):
                change(copy)
            with self.crashed(copy) as core:
                self.assert_core(core)
                for path in copy.files:
                    os.unlink(path)
                self.assert_core(core)


@per_layout
@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
class Containers(CoreTestCase):
    """In PID and mount namespaces, with a separate root."""

    quick_on = ("3.15",)

    def setUp(self):
        self.inside, self.container = self.enterContext(python_copies.rooted(self.interpreter))

    def test_it_dies_there(self):
        """Paths and ids are the container's, and the files are elsewhere."""
        self.enterContext(core_files.kernel_cores())
        with core_files.crashed(self.inside, "threads", container=self.container) as core:
            self.assert_core(core)
            document = core_json("--sysroot", self.inside.root, core.path)
            self.assert_threads(document, core.report["threads"])

    def test_core_of_a_container_is_read_on_the_host(self):
        """gdb records the host's ids and paths."""
        with core_files.parked(self.inside, "handled", container=self.container) as target:
            pid = support.descendant(target.pid)
            tids = support.innermost_tids(pid)
            self.assert_core(core_files.gcore(target, pid), tids.get, root=self.inside.root)


class Opened(unittest.TestCase):
    """What the command does to the system, traced from outside."""

    CALLS = "trace=%file,%process,%network,memfd_create,ptrace,process_vm_readv"

    def setUp(self):
        if not shutil.which("strace"):
            self.skipTest("not tested here: what is opened (no strace)")
        if support.is_sanitized():
            self.skipTest("LeakSanitizer fails under a tracer")
        self.enterContext(core_files.kernel_cores())
        # Its files are where the core says.
        interpreter = next(found for found in support.supported_interpreters() if not found.root)
        self.core = self.enterContext(core_files.crashed(interpreter, "threads=3"))
        self.executable = os.path.realpath(interpreter.path)

    def calls(self, *options):
        """The system calls after the core was opened."""
        log = os.path.join(self.core.folder, "strace")
        run = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", self.CALLS, support.PYSAMPLE,
                              "core", *options, self.core.path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = support.read(log).splitlines()
        first = next(number for number, line in enumerate(lines) if self.core.path in line
                     and "execve" not in line)
        return lines[first + 1:]

    def test_only_mapped_files(self):
        with open(self.core.path, "rb") as file:
            allowed = core_files.mapped_files(file.read(1 << 20))
        self.assertIn(self.executable, allowed)
        for options in ((), ("--json",), ("--json", "--modules")):
            with self.subTest(options):
                calls = self.calls(*options)
                self.assertFalse([line for line in calls if not re.search(
                    r"\b(open(at2?)?|stat|lstat|statx?|newfstatat|readlink(at)?|access|faccessat2?"
                    r"|fstat|exit_group|memfd_create|getcwd)\(|\+\+\+ exited", line)], calls)
                paths = set(re.findall(r'"(/[^"]*)"', "\n".join(calls)))
                others = {path for path in paths - allowed - {self.core.path, "/proc/self/root"}
                          if not path.startswith(("/usr/lib/debug/", "/proc/self/fd/"))}
                self.assertEqual(others - self.sources(), set())

    def sources(self):
        """Files of functions on the stacks, whose text is shown, and the folders above them:
        files are opened folder by folder, so that no link leads elsewhere."""
        files = {frame["path"] for truth in self.core.report["threads"]
                 for frame in core_files.expanded(truth)}
        return files | {str(folder) for path in files for folder in pathlib.Path(path).parents}
