# SPDX-License-Identifier: MIT
"""`pysample jit`: the code that a process has made.

The target reports the names of its functions. objdump, readelf and gdb read the code that is
extracted, and perf reads the same jitdump for comparison.
"""
import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import support
from native import test_native
from support import libunwind_codes, pysample

PERF_JIT = {"PYTHON_PERF_JIT_SUPPORT": "1"}
PERF_MAP = {"PYTHONPERFSUPPORT": "1"}


def listed(*args, status=0):
    """The output of --json, parsed."""
    result = pysample("jit", "--json", *args)
    if result.status != status:
        raise AssertionError(result)
    return json.loads(result.stdout)


def names(codes):
    return {code["name"] for code in codes}


def with_trampolines(minor="3.13"):
    """The interpreters since that version; perf's jitdump came with 3.13."""
    return [found for found in support.tested_interpreters()
            if support.version_key(found) >= [int(part) for part in minor.split(".")]]


class JitTestCase(unittest.TestCase):
    maxDiff = 4000

    def assert_names(self, codes, expected):
        self.assertEqual(set(expected) - names(codes), set())

    def end(self, target):
        """End it normally, so that buffers are written."""
        target.process.send_signal(signal.SIGTERM)
        target.process.wait(timeout=support.PATIENCE_S)


def dump_path(target, pid=None):
    """The path of its jitdump, as seen from here."""
    for line in support.read("/proc/%d/maps" % (pid or target.pid)).splitlines():
        if line.endswith(".dump"):
            return line.split(None, 5)[5]
    raise AssertionError("no jitdump is mapped")


class Jitdump(JitTestCase):
    def watched(self, interpreter):
        """Watch a target to its end: its first functions are printed, each code only once."""
        with support.python_target(interpreter, "jitted", environment=PERF_JIT) as target:
            self.addCleanup(os.unlink, dump_path(target))
            with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
                watcher = support.start_pysample("jit", "--watch", "--json", target.pid,
                                                 stdout=output)
                support.wait_until(lambda: os.fstat(output.fileno()).st_size > 0,
                                   "something is printed")
                self.end(target)
                self.assertEqual(support.finish(watcher).status, 0)
                output.seek(0)
                lines = [json.loads(line) for line in output]
            self.assert_names(lines, target.report["before"])
            places = [(line["address"], line["from_ns"]) for line in lines]
            self.assertEqual(len(places), len(set(places)))

    def assert_all_are_listed(self, found, in_file, whole, wanted):
        """Every wanted name is listed, even if not in the file yet, and all that is listed gets
        into the file later."""
        now, then, later = ({code["address"]: code["name"] for code in codes}
                            for codes in (found, in_file, whole))
        self.assertGreater(len(set(now) - set(then)), 0)
        self.assertEqual(set(wanted) - set(now.values()), set())
        self.assertEqual(set(now.items()) - set(later.items()), set())

    def live(self, interpreter):
        with support.python_target(interpreter, "jitted", environment=PERF_JIT) as target:
            path = dump_path(target)
            self.addCleanup(os.unlink, path)
            in_file = listed(path)
            found = listed(target.pid)
            (file,) = found["files"]
            self.assertEqual((file["source"], file["pid"], file["error"]),
                             ("jitdump", target.pid, None))
            dumped = [code for code in found["codes"] if code["source"] == "jitdump"]
            self.assertTrue(all(code["size"] == 12 and code["unwind"] and not code["lines"]
                                for code in dumped))
            addresses = [int(code["address"], 16) for code in found["codes"]]
            self.assertEqual(addresses, sorted(addresses))
            result = pysample("jit", "--verify", target.pid)
            self.assertEqual(result.status, 0, result)
            self.assertIn("codes        %d\n" % len(in_file["codes"]), result.stdout)
            self.end(target)
            whole = listed(path)
            self.assert_names(whole["codes"], target.report["before"])
            self.assert_all_are_listed(found["codes"], in_file["codes"], whole["codes"],
                                       target.report["before"])
            result = pysample("jit", "--verify", path)
            self.assertEqual(result.status, 0, result)
            self.assertIn("verdict      sound\n", result.stdout)


class LiveJitdump(Jitdump):
    """What is listed while the process runs and after it has ended."""


class WatchedJitdump(Jitdump):
    """Everything is printed once, including the end of the file."""


support.one_test_each(LiveJitdump, Jitdump.live, with_trampolines())
support.one_test_each(WatchedJitdump, Jitdump.watched, with_trampolines())


class Fork(JitTestCase):
    """The child writes what its parent had buffered into the parent's file. Then it has a file of
    its own, which lacks the code that it has from its parent."""

    def check(self, interpreter):
        with support.python_target(interpreter, "jitted", "fork",
                                   environment=PERF_JIT) as target:
            child = self.child_of(target)
            path = dump_path(target)
            child_path = dump_path(target, child)
            self.addCleanup(os.unlink, path)
            self.addCleanup(os.unlink, child_path)
            theirs = listed(child)
            self.assertEqual({file["pid"] for file in theirs["files"]}, {target.pid, child})
            ours = set(target.report["before"])
            self.assert_names(theirs["codes"], ours)  # the fork has flushed them all
            self.assertEqual(names(theirs["codes"]) & set(target.report["after"]), set())
            self.end(target)
            whole = listed(path)
            self.assert_names(whole["codes"], ours | set(target.report["after"]))
            self.assertEqual(names(whole["codes"]) & set(target.report["theirs"]), set())
            self.assert_names(listed(child_path)["codes"], target.report["theirs"])
            self.check_damage(path, whole)

    @staticmethod
    def child_of(target):
        return support.child_of(target.pid)

    def check_damage(self, path, whole):
        (verified,) = json.loads(pysample("jit", "--verify", "--json", path).stdout)
        self.assertTrue(verified["damaged"])
        self.assertGreater(verified["faults"]["duplicate"], 0)
        self.assertEqual(verified["records"]["LOAD"] - verified["faults"]["duplicate"],
                         len(whole["codes"]))
        indexes = {code["index"] for code in whole["codes"]}
        self.assertEqual(indexes, set(range(1, len(indexes) + 1)))


support.one_test_each(Fork, Fork.check, with_trampolines())


@unittest.skipIf(os.geteuid() != 0, "needs root: a PID namespace, other users' files")
class Places(JitTestCase):
    def test_in_a_container(self):
        for environment in PERF_JIT, PERF_MAP:
            with self.subTest(environment=environment), support.python_target(
                    with_trampolines()[-1], "jitted", wrapper=support.IN_A_CONTAINER,
                    environment=environment) as target:
                pid = support.descendant(target.pid)
                found = listed(pid)
                (file,) = found["files"]
                self.assertRegex(file["path"], r"/(jit|perf)-%d\.(dump|map)$"
                                 % target.report["pid"])
                self.addCleanup(os.unlink, with_trampolines()[-1].root + "/tmp/"
                                + os.path.basename(file["path"]))
                self.assertGreater(len(names(found["codes"]) & set(target.report["before"])), 100)

    def test_whose_file_it_is(self):
        with support.plain_target("sleep", "60") as target:
            path = "/tmp/perf-%d.map" % target.pid
            self.addCleanup(os.unlink, path)
            with open(path, "w", encoding="ascii") as file:
                file.write("1000 10 one\n")
            self.assertEqual(names(listed(target.pid)["codes"]), {"one"})
            shutil.chown(path, "nobody")
            found = listed(target.pid)
            self.assertEqual(found["codes"], [])
            self.assertRegex(found["files"][0]["error"], "another user")

    def test_a_file_of_an_earlier_process(self):
        with support.plain_target("sleep", "60") as target:
            path = "/tmp/perf-%d.map" % target.pid
            self.addCleanup(os.unlink, path)
            with open(path, "w", encoding="ascii") as file:
                file.write("1000 10 stale\n")
            os.utime(path, (time.time() - 3600,) * 2)
            result = pysample("jit", target.pid)
            self.assertEqual(result.status, 5, result)
            with open(path, "a", encoding="ascii") as file:
                file.write("1008 10 new\n")
            self.assertEqual(names(listed(target.pid)["codes"]), {"new"})

    def test_a_link_is_not_followed(self):
        with support.plain_target("sleep", "60") as target, support.fresh_folder() as (folder, _):
            real = os.path.join(folder, "map")
            with open(real, "w", encoding="ascii") as file:
                file.write("1000 10 one\n")
            path = "/tmp/perf-%d.map" % target.pid
            os.symlink(real, path)
            self.addCleanup(os.unlink, path)
            self.assertEqual(pysample("jit", target.pid).status, 5)


class Watch(JitTestCase):
    """New code is printed once, until Ctrl-C or until the process ends."""

    def watched(self, pid, end):
        """The output for a process that makes two functions, one after the other."""
        path = "/tmp/perf-%d.map" % pid
        self.addCleanup(os.unlink, path)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            watcher = support.start_pysample("jit", "--watch", pid, stdout=output)
            for line in "1000 10 one\n", "2000 10 two\n":
                before = os.fstat(output.fileno()).st_size
                with open(path, "a", encoding="ascii") as file:
                    file.write(line)
                support.wait_until(lambda: os.fstat(output.fileno()).st_size > before,
                                   "it is printed")
            end(watcher)
            result = support.finish(watcher)
            output.seek(0)
            self.assertEqual((result.status, result.stderr), (0, ""))
            return [line.split()[-1] for line in output]

    def test_until_stopped(self):
        with support.plain_target("sleep", "60") as target:
            printed = self.watched(target.pid, lambda watcher: watcher.send_signal(signal.SIGINT))
        self.assertEqual(printed, ["name", "one", "two"])

    def test_until_the_process_ends(self):
        with support.plain_target("sleep", "60") as target:
            printed = self.watched(target.pid, lambda _: (target.kill(), target.wait()))
        self.assertEqual(printed, ["name", "one", "two"])


class PerfMap(JitTestCase):
    def check(self, interpreter):
        with support.python_target(interpreter, "jitted", environment=PERF_MAP) as target:
            path = "%s/tmp/perf-%d.map" % (interpreter.root, target.pid)
            self.addCleanup(os.unlink, path)
            found = listed(target.pid)
            self.assertEqual([file["source"] for file in found["files"]], ["perf map"])
            self.assert_names(found["codes"], target.report["before"])
            self.assert_names(listed(path)["codes"], target.report["before"])


support.one_test_each(PerfMap, PerfMap.check, with_trampolines("3.12"))


# ---- what other programs make of it -----------------------------------------------------


def tool(name):
    if not shutil.which(name):
        raise unittest.SkipTest("%s is not installed" % name)
    return name


def run(*command, **kwargs):
    result = subprocess.run(command, capture_output=True, text=True, timeout=support.PATIENCE_S,
                            **kwargs)
    if result.returncode:
        raise AssertionError("%s: %s" % (command, result.stderr))
    return result.stdout


# push rbp; mov rbp, rsp; imul eax, edi, 3; pop rbp; ret
MULTIPLY = bytes.fromhex("55 4889e5 6bc703 5d c3")
LINES = [(0, 10, b"/src/a b.py"), (4, 11, b"\xff"), (7, 3, b"/src/c.py"), (8, 12, b"/src/a b.py")]


def record(identity, body):
    return struct.pack("<IIQ", identity, 16 + len(body), 5) + body


def made_jitdump(address, name):
    """A jitdump with one function, which has lines."""
    lines = b"".join(struct.pack("<QII", address + at, line, 0) + path + b"\0"
                     for at, line, path in LINES)
    return (struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 7, 1, 0)
            + record(2, struct.pack("<QQ", address, len(LINES)) + lines)
            + record(0, struct.pack("<IIQQQQ", 7, 7, address, address, len(MULTIPLY), 1)
                     + name.encode() + b"\0" + MULTIPLY))


class Extracted(JitTestCase):
    """Object files made from a hand-made jitdump with lines and from CPython's trampolines."""

    ADDRESS = 0x7F0012345678

    @contextlib.contextmanager
    def extracted(self, address, *args):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.o")
            result = pysample("jit", "--dump", "%x" % address, "-o", path, *args)
            self.assertEqual((result.status, result.stdout), (0, ""), result)
            yield path

    @contextlib.contextmanager
    def with_lines(self):
        with tempfile.NamedTemporaryFile(suffix=".dump") as file:
            file.write(made_jitdump(self.ADDRESS, "multiply"))
            file.flush()
            with self.extracted(self.ADDRESS + 3, file.name) as path:
                yield path

    def test_objdump(self):
        with self.with_lines() as path:
            text = run(tool("objdump"), "-dl", path)
        self.assertIn("%016x <multiply>:" % self.ADDRESS, text)
        self.assertRegex(text, r"/src/a b.py:10\n.*push +%rbp")
        self.assertRegex(text, r"/src/a b.py:11\n.*imul +\$0x3,%edi,%eax")
        self.assertRegex(text, r"/src/c.py:3\n.*pop +%rbp")
        self.assertRegex(text, r"/src/a b.py:12\n.*ret")

    def test_readelf(self):
        with self.with_lines() as path:
            symbols = run(tool("readelf"), "-Ws", path)
            lines = run("readelf", "--debug-dump=decodedline", path)
            warned = subprocess.run(["readelf", "-a", "--debug-dump", path], capture_output=True,
                                    text=True)
        self.assertRegex(symbols, r"%016x +9 FUNC +GLOBAL +DEFAULT +1 multiply" % self.ADDRESS)
        self.assertEqual([(int(at, 16) - self.ADDRESS, int(line)) for line, at in
                          re.findall(r"\s(\d+)\s+0x([0-9a-f]+)\s", lines)],
                         [(at, line) for at, line, _ in LINES])
        self.assertEqual(warned.stderr, "")

    def test_gdb(self):
        with self.with_lines() as path:
            text = run(tool("gdb"), "-nx", "-batch", "-ex", "info line *0x%x" % (self.ADDRESS + 5),
                       "-ex", "info symbol 0x%x" % (self.ADDRESS + 5),
                       "-ex", "disassemble 'multiply'", path)
        self.assertRegex(text, r'Line 11 of "/src/a b\.py" starts at address 0x7f001234567c')
        self.assertIn("multiply + 5 in section .text", text)
        self.assertIn("End of assembler dump", text)

    def test_elfutils(self):
        with self.with_lines() as path:
            text = run(tool("eu-addr2line"), "-f", "-e", path,
                       *["0x%x" % (self.ADDRESS + at) for at, _, _ in LINES])
        self.assertEqual(re.findall(r"^multiply\n.*:(\d+)", text, re.M),
                         [str(line) for _, line, _ in LINES])

    def trampoline(self, interpreter):
        """Its instructions are those in memory, and its unwind rows fit them."""
        with support.python_target(interpreter, "jitted", environment=PERF_JIT) as target:
            self.addCleanup(os.unlink, dump_path(target))
            code = next(code for code in listed(target.pid)["codes"]
                        if code["name"] in target.report["before"])
            address = int(code["address"], 16)
            with open("/proc/%d/mem" % target.pid, "rb") as memory:
                memory.seek(address)
                in_memory = memory.read(code["size"])
            with self.extracted(address, target.pid) as path:
                text = run(tool("objdump"), "-d", "-j", ".text", path)
                rows = run(tool("readelf"), "--debug-dump=frames-interp", path)
        found = b"".join(bytes.fromhex(part)
                         for part in re.findall(r"^ +[0-9a-f]+:\t([0-9a-f ]+?) *\t", text, re.M))
        self.assertEqual(found, in_memory)
        self.assertIn("<%s>:" % code["name"], text)
        self.assertIn("pc=%016x..%016x" % (address, address + code["size"]), rows)
        # After "push %rbp" and "mov %rsp,%rbp", before "call".
        call = in_memory.index(b"\xff\xd1")
        self.assertRegex(rows, r"%016x rbp\+16 +c-16 +c-8" % (address + call))


support.one_test_each(Extracted, Extracted.trampoline, with_trampolines())


class Executors(JitTestCase):
    """CPython's JIT registers its code on the list for debuggers."""

    @classmethod
    def setUpClass(cls):
        cls.interpreter = next((found for found in support.tested_interpreters()
                                if found.origin == "testbed" and found.minor == "3.15"), None)
        if not cls.interpreter:
            raise unittest.SkipTest("needs CPython 3.15 with a JIT, of the testbed")

    @contextlib.contextmanager
    def compiled(self):
        with support.python_target(self.interpreter, "jitted", "loop",
                                   environment={"PYTHON_JIT": "1"}) as target:
            support.wait_until(
                lambda: pysample("jit", target.pid).stdout.count("py::jit:executor") > 0,
                "something is compiled")
            yield target

    def test_are_listed(self):
        with self.compiled() as target:
            found = listed(target.pid)
            mapped = support.read("/proc/%d/maps" % target.pid)
        self.assertEqual({code["source"] for code in found["codes"]}, {"gdb"})
        executable = [tuple(int(part, 16) for part in line.split()[0].split("-"))
                      for line in mapped.splitlines() if " r-xp 00000000 00:00 0" in line]
        for code in found["codes"]:
            start = int(code["address"], 16)
            if code["to_ns"] is None:
                self.assertTrue(any(low <= start and start + code["size"] <= high
                                    for low, high in executable), code)

    def test_are_read_by_gdb_and_readelf(self):
        with self.compiled() as target, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.o")
            code = next(code for code in listed(target.pid)["codes"] if code["to_ns"] is None)
            result = pysample("jit", "--dump", code["address"], "-o", path, target.pid)
            self.assertEqual(result.status, 0, result)
            rows = run(tool("readelf"), "--debug-dump=frames-interp", path)
            text = run(tool("gdb"), "-nx", "-batch", "-ex", "info symbol " + code["address"], path)
        self.assertRegex(rows, r"pc=%016x\.\." % int(code["address"], 16))
        self.assertRegex(rows, r"rbp\+16 +c-16 +c-8")
        self.assertIn("py::jit:executor in section .text", text)


class UnnamedExecutors(JitTestCase):
    """CPython 3.14 registers the code of its JIT nowhere."""

    @classmethod
    def setUpClass(cls):
        cls.interpreter = next((found for found in support.tested_interpreters()
                                if found.origin == "testbed" and found.minor == "3.14"), None)
        if not cls.interpreter:
            raise unittest.SkipTest("needs CPython 3.14 with a JIT, of the testbed")

    @staticmethod
    def sums(pid, codes):
        """SHA-256 of the bytes at each code's address."""
        sums = set()
        with open("/proc/%d/mem" % pid, "rb") as memory:
            for code in codes:
                memory.seek(int(code["address"], 16))
                sums.add(hashlib.sha256(memory.read(code["size"])).hexdigest())
        return sums

    def test_are_listed(self):
        with support.python_target(self.interpreter, "jitted", "executors",
                                   environment={"PYTHON_JIT": "1"}) as target:
            codes = listed(target.pid)["codes"]
            found = self.sums(target.pid, codes)
            text = pysample("jit", target.pid).stdout
        self.assertEqual({(code["source"], code["name"]) for code in codes},
                         {("executors", "[jit]")})
        self.assertTrue(target.report["executors"])
        self.assertEqual(set(target.report["executors"]) - found, set())
        self.assertRegex(text, r"(?m) executors \[jit\]$")

    def test_without_any(self):
        """The output says what would make code known, and what that switches off."""
        with support.python_target(self.interpreter, "jitted", "loop",
                                   environment={"PYTHON_JIT": "0"}) as target:
            result = pysample("jit", target.pid)
        self.assertEqual((result.status, result.stdout), (5, ""), result)
        self.assertIn("-X perf_jit writes a jitdump if CPython's own JIT is off",
                      result.stderr)


class Llvm(JitTestCase):
    """lli publishes its code in a jitdump, with lines, and on the list for debuggers."""

    FUNCTIONS = {"hotloop": range(4, 11), "main": range(13, 18)}  # with their lines

    @contextlib.contextmanager
    def running(self):
        source = os.path.join(support.TARGETS, "jit", "hotloop.c")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "hotloop.ll")
            run(tool("clang"), "-g", "-O1", "-S", "-emit-llvm", source, "-o", program)
            environment = {**os.environ, "JITDUMPDIR": folder}
            process = subprocess.Popen(
                [*support.TIED_TO_US, tool("lli"), "--jit-kind=mcjit", program], env=environment)
            try:
                support.wait_until(
                    lambda: "hotloop" in pysample("jit", process.pid).stdout,
                    "it is compiled")
                yield process.pid
            finally:
                process.kill()
                process.wait()

    @staticmethod
    def places(codes, source):
        return {(code["name"], code["address"], code["size"]) for code in codes
                if code["source"] == source}

    def test_sources_agree(self):
        with self.running() as pid:
            codes = listed(pid)["codes"]
            of_list = self.places(codes, "gdb")
            symbols = [run(tool("gdb"), "-nx", "-batch", "-p", str(pid), "-ex",
                           "info symbol " + address) for _, address, _ in sorted(of_list)]
        self.assertEqual({name for name, _, _ in of_list}, set(self.FUNCTIONS))
        for (name, _, _), text in zip(sorted(of_list), symbols):
            self.assertRegex(text, r"(?m)^%s in section \.text" % name)
        of_file = self.places(codes, "jitdump")
        if not of_file:
            self.skipTest("this LLVM writes no jitdump")
        self.assertEqual(of_file, of_list)

    def test_lines(self):
        with self.running() as pid, tempfile.TemporaryDirectory() as folder:
            codes = [code for code in listed(pid)["codes"] if code["lines"]]
            if not codes:
                self.skipTest("this LLVM writes no jitdump")
            for code in codes:
                path = os.path.join(folder, code["name"])
                result = pysample("jit", "--dump", code["address"], "-o", path, pid)
                self.assertEqual(result.status, 0, result)
                lines = re.findall(r"hotloop\.c:(\d+)", run(tool("objdump"), "-dl", path))
                self.assertGreater(len(lines), 2)
                self.assertLessEqual(set(map(int, lines)), set(self.FUNCTIONS[code["name"]]))


class Libunwind(JitTestCase):
    """Code that is registered with libunwind by _U_dyn_register()."""

    def test_are_listed(self):
        with libunwind_codes.python_target(libunwind_codes.interpreter()) as target:
            codes = listed(target.pid)["codes"]
        self.assertEqual({(code["name"], int(code["address"], 16)) for code in codes},
                         set(target.report["addrs"].items()))
        self.assertEqual({(code["source"], code["size"]) for code in codes}, {("libunwind", 11)})

    def test_come_and_go(self):
        with libunwind_codes.python_target(libunwind_codes.interpreter()) as target:
            watcher = subprocess.Popen([*support.TIED_TO_US, support.PYSAMPLE, "jit", "--watch",
                                        "--json", str(target.pid)], stdout=subprocess.PIPE, text=True)
            first = [json.loads(watcher.stdout.readline()) for _ in libunwind_codes.NAMES]
            target.process.send_signal(signal.SIGUSR1)
            support.wait_until(lambda: len(listed(target.pid)["codes"]) == 2, "one is cancelled")
            self.assertEqual(names(listed(target.pid)["codes"]), set(libunwind_codes.NAMES[1:]))
            target.process.kill()
            rest, _ = watcher.communicate(timeout=support.PATIENCE_S)
        self.assertEqual((names(first), rest), (set(libunwind_codes.NAMES), ""))

    def test_in_stacks(self):
        with libunwind_codes.python_target(libunwind_codes.interpreter()) as target:
            test_native.stacks_until(target, lambda stacks: any(
                stack[-1] == "hot" for stack in stacks), "it is seen")

    def test_static_program(self):
        with libunwind_codes.static_program() as target:
            support.wait_until(lambda: pysample("jit", target.pid).status == 0, "it is registered")
            codes = listed(target.pid)["codes"]
        self.assertEqual([(code["name"], code["source"]) for code in codes],
                         [("of a program", "libunwind")])


class Perf(JitTestCase):
    """perf makes an ELF file of each function of a jitdump, named by its index."""

    def test_perf_inject_has_the_same_functions(self):
        tool("perf")
        ours = [found for found in with_trampolines() if not found.root] or [
            found for found in support.supported_interpreters()
            if not found.root and support.version_key(found) >= [3, 13]]
        if not ours:
            self.skipTest("needs CPython 3.13 or newer outside of a chroot")
        with support.fresh_folder() as (folder, _):
            self.check(ours[-1], folder)

    def check(self, interpreter, folder):
        program = "import os\nprint(os.getpid(), flush=True)\n" + "".join(
            "def f%d(): return sum(i for i in range(50))\nf%d()\n" % (i, i) for i in range(60))
        recorded = subprocess.run(
            ["perf", "record", "-q", "-k", "1", "-e", "cpu-clock:u", "-o", "perf.data", "--",
             *interpreter.command(), "-X", "perf_jit", "-c", program],
            cwd=folder, capture_output=True, text=True, timeout=support.PATIENCE_S)
        if recorded.returncode:
            self.skipTest("perf record is not allowed here: " + recorded.stderr.strip()[:80])
        path = "/tmp/jit-%d.dump" % int(recorded.stdout.split()[0])
        self.addCleanup(os.unlink, path)
        run("perf", "inject", "-j", "-i", "perf.data", "-o", "jit.data", cwd=folder)
        made = {int(re.search(r"-(\d+)\.so$", file).group(1)): file
                for file in glob.glob(os.path.join(folder, "jitted-*.so"))
                + glob.glob("/tmp/jitted-*-*.so")}
        codes = listed(path)["codes"]
        if not made:
            self.skipTest("perf inject makes no files here")
        self.assertEqual(set(made), {code["index"] for code in codes})
        for code in codes[::20]:
            symbols = run(tool("readelf"), "-Ws", made[code["index"]])
            self.assertRegex(symbols, r"%d FUNC .* %s\n" % (code["size"], re.escape(code["name"])))


class Refused(JitTestCase):
    def test_options(self):
        for args in ([], ["1", "2"], ["--watch", "--verify", "1"], ["--dump", "zz", "1"],
                     ["--dump", "10", "1"], ["-o", "x", "1"], ["--nothing"],
                     ["--dump", "10", "--json", "-o", "x", "1"]):
            result = pysample("jit", *args)
            self.assertEqual((result.status, result.stdout), (2, ""), args)
            self.assertEqual(result.stderr.count("\n"), 1, result)

    def test_other_file_is_refused(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom(5000))
            file.flush()
            result = pysample("jit", file.name)
            self.assertEqual(result.status, 1, result)
            self.assertIn("neither a jitdump nor a perf map", result.stderr)
        self.assertEqual(pysample("jit", "/nowhere/at/all").status, 1)
        self.assertEqual(pysample("jit", "/tmp").status, 1)

    def test_a_process_without_any(self):
        with support.plain_target("sleep", "60") as target:
            result = pysample("jit", target.pid)
            self.assertEqual((result.status, result.stdout), (5, ""), result)
            self.assertIn("perf_jit", result.stderr)
            result = pysample("jit", "--verify", target.pid)
            self.assertEqual((result.status, result.stdout), (5, ""), result)
            self.assertIn("process %d has no jitdump" % target.pid, result.stderr)
            self.assertIn("perf_jit", result.stderr)

    def test_verify_of_a_perf_map(self):
        with tempfile.NamedTemporaryFile("w", suffix=".map") as file:
            file.write("7f0000001000 20 py::multiply:/app.py\n")
            file.flush()
            result = pysample("jit", "--verify", file.name)
            self.assertEqual((result.status, result.stdout), (5, ""), result)
            self.assertIn("a perf map cannot be checked", result.stderr)

    def test_dump_out_of_a_perf_map(self):
        with tempfile.NamedTemporaryFile("w", suffix=".map") as file:
            file.write("7f0000001000 20 py::multiply:/app.py\n")
            file.flush()
            result = pysample("jit", "--dump", "7f0000001000", "-o", "/tmp/never", file.name)
            self.assertEqual((result.status, result.stdout), (5, ""), result)
            self.assertIn("give the process id to read the code", result.stderr)
            self.assertFalse(os.path.exists("/tmp/never"))

    def test_verify_of_a_file_whose_end_is_missing(self):
        with tempfile.NamedTemporaryFile(suffix=".dump") as file:
            file.write(made_jitdump(0x1000, "multiply")[:-1])
            file.flush()
            result = pysample("jit", "--verify", file.name)
            self.assertEqual(result.status, 1, result)
            self.assertIn("the last record is incomplete", result.stdout)
            self.assertIn("--verify PID", result.stdout)

    def test_an_address_without_code(self):
        with tempfile.NamedTemporaryFile(suffix=".dump") as file:
            file.write(made_jitdump(0x1000, "multiply"))
            file.flush()
            result = pysample("jit", "--dump", "0xfff", "-o", "/tmp/never", file.name)
            self.assertEqual(result.status, 5, result)
            self.assertFalse(os.path.exists("/tmp/never"))

    @unittest.skipIf(os.geteuid() != 0, "needs root: another user's process")
    def test_another_users_process(self):
        with support.plain_target("sleep", "60") as target:
            result = support.pysample_as_nobody("jit", target.pid)
            self.assertEqual(result.status, 4, result)
            self.assertRegex(result.stderr, "CAP_SYS_PTRACE|sudo|root")

    def test_broken_pipe(self):
        """An error long before the end is reported without a made-up reason."""
        with tempfile.NamedTemporaryFile("w", suffix=".map") as file:
            for address in range(0x1000, 0x100000, 0x100):
                file.write("%x 20 py::f:/app.py\n" % address)
            file.flush()
            for options in ["--json"], []:
                ours, theirs = os.pipe()
                os.close(ours)
                result = subprocess.run([support.PYSAMPLE, "jit", *options, file.name],
                                        stdout=theirs, stderr=subprocess.PIPE, text=True,
                                        check=False)
                os.close(theirs)
                self.assertEqual(result.returncode, 1, result)
                self.assertRegex(result.stderr, "standard output(: Broken pipe)?\n$")

    def test_names_cannot_steer_a_terminal(self):
        with tempfile.NamedTemporaryFile(suffix=".dump") as file:
            file.write(made_jitdump(0x1000, "\x1b[31mred\nline\x07"))
            file.flush()
            result = pysample("jit", file.name)
            self.assertIn(r"\x1b[31mred\x0aline\x07", result.stdout)
            self.assertEqual(names(listed(file.name)["codes"]), {"\x1b[31mred\nline\x07"})
