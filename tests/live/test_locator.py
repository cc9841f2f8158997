# SPDX-License-Identifier: MIT
"""The interpreter is found however it came into the process, or the reason is given."""
import ast
import contextlib
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import unittest

import support
from support import pysample

LIBPYTHON = re.compile(r"libpython(\d+\.\d+)[a-z]*\.so\.1\.0$")
SYSTEM_LIBRARIES = "/usr/lib/" + (sysconfig.get_config_var("MULTIARCH") or "")


class Library:
    """A libpython that can be loaded, and where its standard library is."""

    def __init__(self, path):
        self.path = path
        self.version = LIBPYTHON.search(path).group(1)
        self.home = "/usr" if path.startswith("/usr/lib/") else os.path.dirname(
            os.path.dirname(path))

    def __str__(self):
        return "%s (%s)" % (self.version, self.path)


def libraries():
    paths = glob.glob(os.path.expanduser("~/.pyenv/versions/*/lib/libpython*.so.1.0"))
    return [Library(path) for path in sorted(paths) if LIBPYTHON.search(path)]


def read_libraries():
    """Libraries of the versions that pysample reads."""
    return [library for library in libraries() if library.version in READ]


def system_library():
    """A libpython that any user can read, or None."""
    paths = glob.glob(SYSTEM_LIBRARIES + "/libpython3*.so.1.0")
    return Library(paths[0]) if paths else None


def elf_without(path, names=(), sections=True):
    """Overwrite a file in place: the symbols in names get another first letter, and without
    sections the ELF header loses them. Mappings of the file change, too."""
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        for name in names:
            for old in re.finditer(rb"\0" + name.encode() + rb"(?=\0)", bytes(data)):
                data[old.start() + 1] = ord("Q")
        if not sections:
            struct.pack_into("<Q", data, 0x28, 0)  # e_shoff
            struct.pack_into("<HH", data, 0x3c, 0, 0)  # e_shnum, e_shstrndx
        file.seek(0)
        file.write(data)


# The versions that pysample reads.
READ = ["3.%d" % minor for minor in range(6, 16)]

# Symbols that lead to the interpreter.
NAMES = ("_PyRuntime", "Py_Version", "interp_head")


class Program:
    """A running embed.c, or any other program that runs nested.py."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid

    def line(self):
        line = self.process.stdout.readline().decode()
        if not line:
            raise AssertionError("the program has ended")
        return line.strip()

    def resume(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def truth(self):
        """nested.py's report on itself. Skips what embed.c prints before it."""
        line = self.line()
        while line == "waiting":
            line = self.line()
        truth = ast.literal_eval(line)
        support.wait_until(lambda: support.reads_from(self.pid, self.pid, truth["parking"]),
                           "the program is parked")
        return truth


@contextlib.contextmanager
def running(command, home=None, wrapper=(), **kwargs):
    environment = dict(support.target_environment("/tmp"), LD_BIND_NOW="1")
    if home:
        environment["PYTHONHOME"] = home
    process = subprocess.Popen(support.TIED_TO_US + [*wrapper, *command], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=environment, **kwargs)
    try:
        yield Program(process)
    finally:
        process.kill()
        process.wait(timeout=support.PATIENCE_S)
        process.stdin.close()
        process.stdout.close()


class LocatorTestCase(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(support.fresh_folder())[0]
        cls.script = os.path.join(cls.folder, "nested.py")
        shutil.copy(os.path.join(support.TARGETS, "interpreters", "nested.py"), cls.script)

    @classmethod
    def build(cls, name, *options):
        """Compile embed.c and return its path. Skips the test where that is not possible."""
        path = os.path.join(cls.folder, name)
        source = os.path.join(support.TARGETS, "interpreters", "embed.c")
        command = ["gcc", "-w", "-o", path, source, *options]
        try:
            result = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            raise unittest.SkipTest("not tested here: embedding (no gcc)") from None
        if result.returncode:
            raise unittest.SkipTest("not tested here: %s (%s)" % (
                name, result.stderr.strip().splitlines()[-1]))
        return path

    def copied(self, path, name=None):
        copy = os.path.join(self.folder, name or os.path.basename(path))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy)
        shutil.copy(path, copy)
        os.chmod(copy, 0o755)
        return copy

    def assert_found(self, pid, truth, way=None, run=pysample):
        """dump shows what the target reports; doctor shows how the interpreter was found."""
        result = run("dump", pid, "--json")
        self.assertEqual(result.status, 0, result)
        dumped = json.loads(result.stdout)
        self.assertEqual(dumped["python"], truth["python"])
        (thread,) = dumped["threads"]
        self.assertEqual(support.dumped_frames(thread, support.PLACE_KEYS), truth["frames"])
        if way:
            self.assertRegex(run("doctor", pid).stdout, r"interpreter +CPython \S+, by %s in" % way)

    def assert_not_found(self, pid, pattern, status=3):
        for command in ("dump", "attach", "doctor"):
            result = pysample(command, pid)
            with self.subTest(command):
                self.assertEqual(result.status, status, result)
                self.assertRegex(result.stdout + result.stderr, pattern)


class Loaded(LocatorTestCase):
    """A program of another name that loads libpython at any time."""

    sleeps = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.embed = cls.build("embed", "-ldl")
        if not read_libraries():
            raise unittest.SkipTest("not tested here: a loaded libpython (no pyenv)")

    def test_loaded_and_initialized_late(self):
        for library in read_libraries():
            with self.subTest(str(library)), running(
                    [self.embed, "wait", "load", library.path, "wait", "begin", "run",
                     self.script], home=library.home) as program:
                program.line()
                self.assert_not_found(program.pid, "no CPython interpreter was found")
                program.resume()
                program.line()
                self.assert_not_found(program.pid, "no interpreter (is running|was found in)")
                program.resume()
                self.assert_found(program.pid, program.truth(), "section|symbol")

    test_loaded_and_initialized_late.is_quick = False

    def test_without_symbols_and_sections(self):
        """Its names are overwritten after loading, so only its variables are left."""
        for library in read_libraries():
            copy = self.copied(library.path)
            subprocess.run(["strip", copy], check=True)
            with self.subTest(str(library)), running(
                    [self.embed, "load", copy, "wait", "begin", "run", self.script],
                    home=library.home) as program:
                program.line()
                elf_without(copy, NAMES, sections=False)
                program.resume()
                self.assert_found(program.pid, program.truth(), "(cookie|scan)")

    def test_without_section_headers(self):
        for library in read_libraries():
            copy = self.copied(library.path)
            elf_without(copy, sections=False)
            with self.subTest(str(library)), running(
                    [self.embed, "load", copy, "begin", "run", self.script],
                    home=library.home) as program:
                self.assert_found(program.pid, program.truth(), "(symbol|scan)")

    def test_deleted_and_replaced(self):
        for library in read_libraries():
            copy = self.copied(library.path)
            with self.subTest(str(library)), running(
                    [self.embed, "load", copy, "begin", "run", self.script],
                    home=library.home) as program:
                truth = program.truth()
                self.copied("/bin/true", os.path.basename(copy))
                self.assert_found(program.pid, truth)

    def test_several(self):
        """The one that runs is found, whatever else is loaded before or after it."""
        by_version = {library.version: library for library in read_libraries()}
        for idle, used in (("3.10", "3.11"), ("3.11", "3.10"), ("3.13", "3.9"), ("3.6", "3.13")):
            if idle not in by_version or used not in by_version:
                continue
            idle, used = by_version[idle], by_version[used]
            orders = (["load", idle.path, "load", used.path, "begin"],
                      ["load", used.path, "begin", "load", idle.path, "load", used.path])
            for order in orders:
                with self.subTest(idle=str(idle), used=str(used), order=order), running(
                        [self.embed, *order, "run", self.script], home=used.home) as program:
                    self.assert_found(program.pid, program.truth())

    def test_two_that_run(self):
        """One of them is sampled, and doctor reports the other."""
        pair = [library for library in read_libraries() if library.version in ("3.10", "3.11")]
        if len(pair) < 2:
            self.skipTest("not tested here: two interpreters (no 3.10 and 3.11)")
        for order in (pair, pair[::-1]):
            commands = [word for library in order
                        for word in ("home", library.home, "load", library.path, "begin")]
            with self.subTest(order=[str(library) for library in order]), running(
                    [self.embed, *commands, "run", self.script]) as program:
                program.truth()
                result = pysample("dump", program.pid, "--json")
                self.assertEqual(result.status, 0, result)
                self.assertRegex(json.loads(result.stdout)["python"], r"^3\.1[01]\.")
                self.assertIn("1 more CPython runs", pysample("doctor", program.pid).stdout)


class Archive:
    """A static libpython to link with."""

    def __init__(self, path, options):
        self.path = path
        self.options = ["-DSTATIC_PYTHON", path, *options, "-lm", "-ldl", "-lutil", "-lpthread"]
        self.version = re.search(r"libpython(\d+\.\d+)", path).group(1)
        self.home = path.split("/lib/python")[0]

    def __str__(self):
        return "%s (%s)" % (self.version, self.path)


def archives():
    paths = glob.glob(os.path.expanduser(
        "~/.pyenv/versions/*/lib/python*/config-*/libpython[0-9].[0-9]*.a"))
    found = [Archive(path, ["-lcrypt"]) for path in sorted(paths)]
    # Debian's is built for programs at a fixed address.
    found += [Archive(path, ["-no-pie", "-lexpat", "-lz"])
              for path in glob.glob("/usr/lib/python3*/config-3*/libpython3.*[0-9d].a")]
    return [archive for archive in found if archive.version in READ]


class Linked(LocatorTestCase):
    """CPython is linked into a program of another name."""

    is_quick = False
    sleeps = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = []
        for number, archive in enumerate(archives()):
            with contextlib.suppress(unittest.SkipTest):
                cls.programs.append((
                    archive,
                    cls.build("app%d" % number, *archive.options),
                    cls.build("exporting%d" % number, "-rdynamic", *archive.options)))
        if not cls.programs:
            raise unittest.SkipTest("not tested here: a linked CPython (no libpython*.a)")

    def check(self, archive, path, way, wrapper=()):
        with self.subTest(str(archive), path=os.path.basename(path), wrapper=wrapper), running(
                [path, "begin", "run", self.script], home=archive.home,
                wrapper=wrapper) as program:
            self.assert_found(program.pid, program.truth(), way)

    def stripped(self, path, sections):
        copy = self.copied(path, "stripped")
        subprocess.run(["strip", copy], check=True)
        if not sections:
            elf_without(copy, sections=False)
        return copy

    def test_with_symbols(self):
        for archive, plain, exporting in self.programs:
            self.check(archive, plain, "(section|symbol)")
            self.check(archive, exporting, "(section|symbol)")

    def test_stripped(self):
        for archive, plain, exporting in self.programs:
            self.check(archive, self.stripped(plain, True), "(section|scan)")
            self.check(archive, self.stripped(exporting, True), "(section|symbol|scan)")

    def test_stripped_of_section_headers(self):
        for archive, plain, exporting in self.programs:
            copy = self.stripped(plain, False)
            self.check(archive, copy, "(cookie|scan)")
            self.check(archive, copy, "(cookie|scan)", wrapper=support.FIXED_ADDRESSES)
            self.check(archive, self.stripped(exporting, False), "(symbol|scan)")

    def waiting(self, archive, path):
        """How its threads are dumped before any Python runs."""
        with running([path, "begin", "wait"], home=archive.home) as program:
            program.line()
            result = pysample("dump", program.pid, "--json")
        self.assertEqual(result.status, 0, result)
        return [(thread["main"], thread["interpreter"], thread["frames"])
                for thread in json.loads(result.stdout)["threads"]]

    def test_without_a_stack(self):
        """The interpreter has begun, and its thread runs the program's own code: a scan finds
        what the names lead to."""
        for archive, plain, _ in self.programs:
            with self.subTest(str(archive)):
                stripped = self.waiting(archive, self.stripped(plain, False))
                self.assertEqual(len(stripped), 1)
                self.assertEqual(stripped, self.waiting(archive, plain))

    def test_not_initialized(self):
        """A program without a name, a symbol and a section header cannot be identified."""
        for archive, plain, _ in self.programs:
            with self.subTest(str(archive)), running([plain, "wait"]) as program:
                program.line()
                self.assert_not_found(program.pid, "no interpreter is running|"
                                      "no CPython interpreter was found")

    def test_in_a_memfd(self):
        """The program is in a file that no path leads to."""
        start = ("import os, sys\n"
                 "fd = os.memfd_create('x')\n"
                 "os.write(fd, open(sys.argv[1], 'rb').read())\n"
                 "os.execve(fd, sys.argv[1:], os.environ)\n")
        for archive, plain, _ in self.programs:
            with self.subTest(str(archive)), running(
                    [sys.executable, "-I", "-c", start, plain, "begin", "run", self.script],
                    home=archive.home) as program:
                self.assert_found(program.pid, program.truth())


class Interpreters(LocatorTestCase):
    """Python itself, under other names."""

    def test_renamed(self):
        for interpreter in support.supported_interpreters():
            if interpreter.root:
                continue
            real = os.path.realpath(interpreter.path)
            copy = self.copied(real, "worker")
            home = os.path.dirname(os.path.dirname(real))
            wrapper = ["env", "LD_LIBRARY_PATH=%s/lib" % home]
            with self.subTest(str(interpreter)), running([copy, self.script], home=home,
                                                        wrapper=wrapper) as program:
                self.assert_found(program.pid, program.truth())

    def test_in_a_venv_and_by_a_link(self):
        for interpreter in support.supported_interpreters():
            if interpreter.root:
                continue
            folder = os.path.join(self.folder, "venv-" + interpreter.label)
            subprocess.run([interpreter.path, "-m", "venv", "--without-pip", folder], check=True)
            link = os.path.join(folder, "tool")
            os.symlink(os.path.join(folder, "bin", "python"), link)
            for path in (os.path.join(folder, "bin", "python"), link):
                with self.subTest(path), running([path, self.script]) as program:
                    self.assert_found(program.pid, program.truth())

    def test_python_2(self):
        """It is reported with its version, whatever its file is called."""
        paths = glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/lib/libpython2.7.so.1.0"))
        if not paths:
            raise unittest.SkipTest("not tested here: Python 2.7 (no such interpreter here)")
        embed = self.build("embed", "-ldl")
        copy = self.copied(paths[0], "plugin.so")
        subprocess.run(["strip", copy], check=True)
        home = os.path.dirname(os.path.dirname(paths[0]))
        for path in (paths[0], copy):
            with self.subTest(path), running([embed, "load", path, "begin", "wait"],
                                             home=home) as program:
                program.line()
                self.assert_not_found(program.pid, r"2\.7\.\d+.*pysample supports")

    def test_thousands_of_mappings(self):
        """Mappings of memory and of a file, some of them executable."""
        script = ("import mmap\n"
                  "file = open('/bin/true', 'rb')\n"
                  "kept = []\n"
                  "for i in range(10000):\n"
                  "    for fd, prot in ((-1, 7 if i % 2 else 3), (file.fileno(), 1 + i % 2 * 4)):\n"
                  "        kept.append(mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, prot))\n"
                  + support.read(self.script))
        path = os.path.join(self.folder, "thousands.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        with running([sys.executable, "-I", path]) as program:
            truth = program.truth()
            nr_mappings = support.read("/proc/%d/maps" % program.pid).count("\n")
            self.assertGreater(nr_mappings, 10000)
            self.assert_found(program.pid, truth)


@unittest.skipIf(os.geteuid() != 0, "needs root: to become an ordinary user")
class OrdinaryUser(LocatorTestCase):
    """Without the right to open what is mapped, and without a path to it."""

    def test_a_library_that_was_replaced(self):
        library = system_library()
        if not library:
            raise unittest.SkipTest("not tested here: an ordinary user's target (no libpython3.so)")
        embed = self.build("embed", "-ldl")
        for sections in (True, False):
            copy = self.copied(library.path)
            elf_without(copy, sections=sections)
            with self.subTest(sections=sections), running(
                    [embed, "load", copy, "begin", "run", self.script],
                    wrapper=support.AS_NOBODY) as program:
                truth = program.truth()
                self.copied("/bin/true", os.path.basename(copy))
                self.assert_found(program.pid, truth, "symbol in memory",
                                  run=support.pysample_as_nobody)

    def test_a_program_that_was_replaced(self):
        copy = self.copied(os.path.realpath("/usr/bin/python3"), "interpreter")
        with running([copy, self.script], wrapper=support.AS_NOBODY) as program:
            truth = program.truth()
            self.copied("/bin/true", "interpreter")
            self.assert_found(program.pid, truth, run=support.pysample_as_nobody)


if __name__ == "__main__":
    unittest.main()
