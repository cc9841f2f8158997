# SPDX-License-Identifier: MIT
"""attach and run with -s: which processes are sampled, and what is said of the others.

Processes report themselves what they are (tests/targets/processes/working.py), and work until they
are told to end, once the recording, which is read as it grows, has samples of all of them.
"""
import collections
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import support
from support import PREEMPT, per_interpreter
from test_run import Terminal

VERSIONS = ("3.8", "3.12", "3.15")
BPF = ["--engine", "bpf"]
ENGINES = [BPF, PREEMPT] if os.geteuid() == 0 else [PREEMPT]
SYSTEM_PYTHON = "/usr/bin/python3"
WITHOUT_CONNECTOR = ["unshare", "--net"]  # which reports to the initial network namespace only
MULTIPROCESSING = r"\Apython[\d.]* \(multiprocessing %s\)\Z"
WORKERS = r"\Apython[\d.]* workers\.py\Z"


class Recording:
    """What a recording has, which may not be finished."""

    def __init__(self, path):
        self.processes, self.functions, self.last_ns, self.kinds = {}, {}, {}, {}
        self.innermost = collections.Counter()  # by process and function
        self.begin_ns = {}  # of the time that the samples of a process account for
        stacks, threads = {}, {}
        result = support.pysample("report", "-f", "jsonl", path)
        if result.status:
            return  # not begun
        for line in result.stdout.splitlines():
            row = json.loads(line)
            if row["type"] == "process":
                self.processes[row["id"]] = row
            elif row["type"] == "thread":
                threads[row["id"]] = self.processes[row["process"]]
            elif row["type"] == "stack":
                stacks[row["id"]] = row["frames"]
            elif row["type"] == "sample":
                pid, frames = threads[row["thread"]]["pid"], stacks[row["stack"]]
                self.functions.setdefault(pid, set()).update(f["name"] for f in frames)
                self.kinds.setdefault(pid, set()).update(f["kind"] for f in frames)
                self.innermost.update([(pid, f["name"]) for f in frames[-1:]])
                self.last_ns[pid] = row["time_ns"]
                self.begin_ns[pid] = min(self.begin_ns.get(pid, row["time_ns"]),
                                         row["time_ns"] - row["wall_ns"])

    def rows(self, pid):
        """The programs that a process was, the oldest first."""
        return [row for row in self.processes.values() if row["pid"] == pid]


class TreeTestCase(unittest.TestCase):
    maxDiff = 4000
    interpreter = None

    def setUp(self):
        self.interpreter = self.interpreter or support.newest_interpreter()
        self.renew()

    def renew(self):
        """Begin with an empty folder, which has the targets."""
        self.folder, self.inside = self.enterContext(support.fresh_folder(self.interpreter.root))
        os.chmod(self.folder, 0o777)
        self.recording = self.path("r.pysample")
        for path in glob.glob(os.path.join(support.TARGETS, "processes", "work*.py")):
            shutil.copy(path, self.folder)
        for name in "go", "first", "later":
            self.touch(name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def touch(self, name):
        with open(self.path(name), "w"):
            pass

    def remove(self, *names):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(name))

    def command(self, way):
        return [*self.interpreter.command(), self.inside + "/workers.py", way, self.inside]

    def start(self, *args, program=support.PYSAMPLE, wrapper=(), **kwargs):
        """Start a pysample. Its children see that the folder is gone, and end."""
        process = subprocess.Popen(
            [*support.TIED_TO_US, *wrapper, program, *map(str, args)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def run_tree(self, way, *options, **kwargs):
        return self.start("run", "-s", "-v", "-o", self.recording, *options, "--",
                          *self.command(way), **kwargs)

    def target(self, way):
        """Start the target itself."""
        process = subprocess.Popen([*support.TIED_TO_US, *self.command(way)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(self.remove, "go", "first", "later")
        return process

    def attach(self, pid, *options, **kwargs):
        return self.start("attach", "-s", "-v", "-o", self.recording, *options, pid, **kwargs)

    def facts(self, label):
        """What all processes with that label have reported."""
        found = []
        for path in glob.glob(self.path(label + "-*.json")):
            found.append(json.loads(support.read(path)))
        return sorted(found, key=lambda facts: facts["pid"])

    def until_reported(self, *labels):
        """Wait until there are these processes, and return what they report."""

        def reported():
            return [facts for label in sorted(set(labels)) for facts in self.facts(label)]

        support.wait_until(lambda: len(reported()) == len(labels), "%s work" % (labels,))
        return reported()

    def until_sampled(self, process, *labels, function="work"):
        """Wait until these processes have samples of the function. Returns what they report."""
        found = self.until_reported(*labels)
        self.until_pids_sampled(process, [facts["pid"] for facts in found], function)
        return found

    def until_pids_sampled(self, process, pids, function="work"):
        def are_sampled():
            self.assertIsNone(process.poll(), process)
            functions = Recording(self.recording).functions
            time.sleep(0.1)  # what is waited for is written once a second
            return all(function in functions.get(pid, ()) for pid in pids)

        support.wait_until(are_sampled, "processes %s are sampled" % pids)

    def end(self, process, status=0):
        result = support.finish(process)
        self.assertEqual(result.status, status, result)
        self.assertNotIn("ended early", result.stderr)
        return result, Recording(self.recording)

    def assert_parents(self, recording, found):
        for facts in found:
            with self.subTest(facts=facts):
                self.assertEqual({row["parent_pid"] for row in recording.rows(facts["pid"])},
                                 {None if facts["label"] == "root" else facts["parent"]})

    def names(self, recording, found):
        return {facts["label"]: recording.rows(facts["pid"])[-1]["name"] for facts in found}


@per_interpreter
class Multiprocessing(TreeTestCase):
    quick_on = VERSIONS

    def check(self, way, name):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                process = self.run_tree(way, *engine)
                found = self.until_sampled(process, "root", "worker", "worker")
                self.remove("go")
                result, recording = self.end(process)
                self.assertNotIn("followed into", result.stderr)
                for facts in found:
                    self.assertRegex(result.stderr,
                                     r"\npysample: new process %d: python" % facts["pid"])
                self.assert_parents(recording, found)
                names = self.names(recording, found)
                self.assertRegex(names["root"], WORKERS)
                self.assertRegex(names["worker"], name)
                for row in recording.processes.values():
                    self.assertNotIn(self.inside, row["name"])
                    self.assertIsNotNone(row["end_ns"], row)
        return recording

    def test_fork(self):
        recording = self.check("fork", WORKERS)
        for row in recording.processes.values():  # at this rate times have units of 64 µs
            self.assertLess(row["start_ns"], recording.begin_ns[row["pid"]] + 65000)

    def test_spawn(self):
        self.check("spawn", MULTIPROCESSING % "spawn")

    def test_forkserver(self):
        self.check("forkserver", MULTIPROCESSING % "forkserver")

    def test_pool(self):
        # The start method of a pool is that of the version and the system.
        self.check("pool", r"\Apython[\d.]* (workers\.py|\(multiprocessing \w+\))\Z")


@per_interpreter
class Programs(TreeTestCase):
    quick_on = VERSIONS

    def test_shell_between(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                process = self.run_tree("shell", *engine)
                found = self.until_sampled(process, "root", "program", "worker")
                self.remove("go")
                _, recording = self.end(process)
                self.assert_parents(recording, found)
                self.assertRegex(self.names(recording, found)["worker"],
                                 r"\Apython[\d.]* working\.py\Z")
                (shell,) = [facts["shell"] for facts in found if facts["label"] == "root"]
                self.assertNotIn("work", recording.functions.get(shell, ()))

    def test_exec(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                process = self.run_tree("execs", *engine)
                before = self.until_sampled(process, "root", "worker")
                self.remove("first")
                self.until_reported("root_after", "worker_after")
                pids = {facts["pid"] for facts in before}
                nr = {pid: Recording(self.recording).last_ns[pid] for pid in pids}
                executed = time.time_ns()

                def are_sampled(pids=pids):
                    last_ns = Recording(self.recording).last_ns
                    return all(last_ns[pid] > executed for pid in pids)

                support.wait_until(are_sampled, "%s are sampled after %s" % (pids, nr))
                self.remove("go")
                _, recording = self.end(process)
                for pid in pids:
                    first, second = recording.rows(pid)
                    self.assertEqual([row["name"].split()[-1] for row in (first, second)],
                                     ["workers.py", "working.py"])
                    self.assertLessEqual(first["end_ns"], second["start_ns"])
                    self.assertIsNotNone(second["end_ns"])

    def test_shell_as_root(self):
        process = self.start("run", "-s", "-v", "-o", self.recording, "--", "sh", "-c",
                             '"$@" first go; "$@" second later; exit 7', "sh",
                             *self.interpreter.command(), self.inside + "/working.py", self.inside)
        found = self.until_sampled(process, "first")
        self.remove("go")
        found += self.until_sampled(process, "second")
        self.remove("later")
        result, recording = self.end(process, 7)
        self.assertIn("and the processes it starts\n", result.stderr)
        self.assertNotIn("not sampled", result.stderr)
        self.assertEqual(sorted(recording.functions), sorted(facts["pid"] for facts in found))
        self.assert_parents(recording, found)


class Ends(TreeTestCase):
    def test_daemon(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                process = self.run_tree("daemon", *engine)
                found = self.until_sampled(process, "root", "worker")
                self.remove("first")
                support.wait_until(lambda: "cpu_s" in self.facts("root")[0], "the root ends")
                ended = time.time_ns()
                (daemon,) = self.facts("worker")
                support.wait_until(
                    lambda: Recording(self.recording).last_ns[daemon["pid"]] > ended,
                    "the daemon is sampled after that")
                self.remove("go")
                _, recording = self.end(process)
                self.assert_parents(recording, found)

    def test_at_once(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                process = self.run_tree("exits", *engine)
                (root,) = self.until_sampled(process, "root")
                self.remove("go")
                result, recording = self.end(process)
                counted = re.search(r"(\d+) process(es)? ended before", result.stderr)
                seen = {row["pid"] for row in recording.processes.values()}
                self.assertEqual(len(root["children"]), 201)
                self.assertLessEqual(seen - {root["pid"]}, set(root["children"]))
                self.assertEqual(len(seen) - 1 + int(counted.group(1) if counted else 0), 201,
                                 result.stderr)

    def test_statuses(self):
        for status, end in (0, "pass"), (7, "os._exit(7)"), (139, "os.kill(os.getpid(), 11)"):
            with self.subTest(status=status):
                self.renew()
                code = ("import os, sys; sys.path.insert(0, %r); from working import work\n"
                        "if not os.fork(): work(%r, 'worker'); os._exit(3)\n"
                        "work(%r, 'root'); os.wait(); %s" % (*3 * [self.folder], end))
                process = self.start("run", "-s", "-o", self.recording, "--", SYSTEM_PYTHON,
                                     "-c", code)
                self.until_sampled(process, "root", "worker")
                self.remove("go")
                self.end(process, status)


class Signals(TreeTestCase):
    def test_interrupt_at_the_terminal(self):
        """Everyone in the foreground gets it; the command ends, and the profile is written."""
        for options in [], PREEMPT:
            with self.subTest(options=options):
                self.renew()
                terminal = Terminal(support.PYSAMPLE, "run", "-s", "-o", self.recording, *options,
                                    "--", *self.command("fork"))
                self.addCleanup(terminal.close)
                found = self.until_reported("root", "worker", "worker")
                pids = {facts["pid"] for facts in found}
                support.wait_until(lambda pids=pids: all(
                    "work" in Recording(self.recording).functions.get(pid, ()) for pid in pids),
                    "all are sampled")
                terminal.type(b"\x03")
                self.assertEqual(terminal.finish(), 130, terminal.shown)
                self.assertIn(b"KeyboardInterrupt", terminal.shown)
                self.assertIn(b"next: pysample report", terminal.shown)
                for pid in pids:
                    self.assertFalse(os.path.exists("/proc/%d" % pid))
                self.assertLessEqual(pids, set(Recording(self.recording).functions))

    def test_attach_is_interrupted(self):
        target = self.target("fork")
        process = self.attach(target.pid)
        found = self.until_sampled(process, "root", "worker", "worker")
        process.send_signal(signal.SIGINT)
        result, recording = self.end(process)
        self.assertIn("stopped; ", result.stderr)
        self.assertIsNone(target.poll())
        self.assertEqual({facts["pid"] for facts in found}, set(recording.functions))


@per_interpreter
class Attached(TreeTestCase):
    quick_on = VERSIONS

    def test_now_and_later(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                target = self.target("later")
                self.until_reported("root", "worker")
                process = self.attach(target.pid, *engine)
                found = self.until_sampled(process, "root", "worker")
                self.remove("later")
                found += self.until_sampled(process, "root_later", "later")
                self.remove("go")
                _, recording = self.end(process)
                self.assert_parents(
                    recording, [facts for facts in found if facts["label"] in ("worker", "later")])
                (sleep,) = [facts["sleep"] for facts in found if "sleep" in facts]
                # It may be seen between its fork and its exec.
                self.assertNotIn("work", recording.functions.get(sleep, ()))
                for row in recording.processes.values():
                    self.assertNotIn("sleep", row["name"])


@per_interpreter
class Waiting(TreeTestCase):
    """Of a process that waits the last sample is repeated, until it has run."""
    quick_on = VERSIONS

    def test_what_it_does_next(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.renew()
                for name in "first", "second":
                    os.mkfifo(self.path("fifo_" + name))
                process = self.run_tree("waits", *engine, "-r", "1000")
                (worker,) = self.until_reported("worker")
                for name in "first", "second":
                    self.until_pids_sampled(process, [worker["pid"]], "wait_" + name)
                    self.until_repeated(process, worker["pid"], "wait_" + name)
                    with open(self.path("fifo_" + name), "w"):
                        pass
                self.until_sampled(process, "root")
                self.remove("go")
                self.end(process)

    def until_repeated(self, process, pid, function, times=20):
        """Wait until the process has at least so many samples with that innermost function."""
        def is_repeated():
            self.assertIsNone(process.poll(), process)
            time.sleep(0.1)
            return Recording(self.recording).innermost[pid, function] >= times

        support.wait_until(is_repeated, "samples of %s" % function)


class Sources(TreeTestCase):
    """How new processes are learned of, where something is not allowed."""

    def check(self, source, wrapper=(), **kwargs):
        process = self.run_tree("fork", wrapper=wrapper, **kwargs)
        found = self.until_sampled(process, "root", "worker", "worker")
        self.remove("go")
        result, recording = self.end(process)
        self.assertRegex(result.stderr, "new processes are " + source)
        self.assert_parents(recording, found)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_perf(self):
        self.check("reported by perf events of all CPUs", WITHOUT_CONNECTOR)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_new_ids(self):
        self.check("found by their ids", [*WITHOUT_CONNECTOR, *support.FORBID_CALL,
                                          "perf_event_open", "EPERM"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_nobody(self):
        self.interpreter = support.Interpreter(SYSTEM_PYTHON, "")
        for name, wrapper, source in (
                ("all", [], "(reported|found)"),
                ("perf", WITHOUT_CONNECTOR, "(reported by perf|found)"),
                ("ids", [*WITHOUT_CONNECTOR, *support.FORBID_CALL, "perf_event_open", "EPERM"],
                 "found by their ids")):
            with self.subTest(name):
                self.renew()
                self.check(source, [*wrapper, *support.AS_NOBODY],
                           program=support.pysample_for_nobody(), cwd="/")


class Unsampled(TreeTestCase):
    """Without -s, one line says how many Python processes are left out."""

    def line(self, result):
        return re.findall(r"pysample: (\d+ Python child.*)\n", result.stderr)

    def test_it_is_said(self):
        for number, line in ((0, []), (1, ["1 Python child is not sampled: -s"]),
                             (3, ["3 Python children are not sampled: -s"])):
            with self.subTest(number=number):
                self.renew()
                for i in range(number):
                    self.touch("child%d" % i)
                target = self.target("alone")
                self.until_reported("root", *number * ["worker"])
                result = support.run_with_samples(lambda pid=target.pid: support.pysample(
                    "attach", "-d", "0.5", "-o", self.recording, pid))
                self.assertEqual(self.line(result), line, result)
                (row,) = Recording(self.recording).processes.values()
                self.assertIsNone(row["end_ns"])
                result = support.run_with_samples(lambda pid=target.pid: support.pysample(
                    "attach", "-s", "-d", "0.5", "-o", self.recording, pid))
                self.assertEqual(self.line(result), [], result)
                self.remove("go")
                target.wait()

    def test_they_have_ended(self):
        """With the command, or during the run."""
        process = self.start("run", "-o", self.recording, "--", *self.command("fork"))
        self.until_sampled(process, "root")
        self.remove("go")
        result, recording = self.end(process)
        self.assertEqual(self.line(result), ["2 Python children are not sampled: -s"])
        (row,) = recording.processes.values()
        self.assertGreaterEqual(row["end_ns"], recording.last_ns[row["pid"]] - 65000)


class Refused(TreeTestCase):
    """What is said of processes that cannot be sampled."""

    def renew(self):
        super().renew()
        shutil.copy(os.path.join(support.TARGETS, "processes", "refused.py"), self.folder)

    def target(self, way):
        self.command = lambda way: [*self.interpreter.command(), self.inside + "/refused.py", way,
                                    self.inside]
        return super().target(way)

    def until_refused(self, process):
        """Returns what is printed of the process that is refused. The process has no buffer."""
        printed = b""
        os.set_blocking(process.stderr.fileno(), False)

        def was_told():
            nonlocal printed
            printed += process.stderr.read() or b""
            return b" not sampled: " in printed and printed.endswith(b"\n")

        support.wait_until(was_told, "a process is refused")
        os.set_blocking(process.stderr.fileno(), True)
        return re.search(rb" not sampled: (.*\n)", printed).group(1).decode()

    def check_as_nobody(self, way, reason, *options):
        self.interpreter = support.Interpreter(SYSTEM_PYTHON, "")
        self.renew()
        target = self.target(way)
        self.until_reported("root", "child")
        process = self.attach(target.pid, *options, program=support.pysample_for_nobody(),
                              wrapper=support.AS_NOBODY, cwd="/", bufsize=0)
        self.check_reason(process, self.facts("child")[0]["pid"], reason)

    def check_reason(self, process, pid, reason):
        """The root is sampled; the other is named at once, and when the run is over."""
        why = self.until_refused(process)
        self.assertRegex(why, r"process %d\b.*%s" % (pid, reason))
        self.until_sampled(process, "root")
        self.remove("go")
        result, recording = self.end(process)
        self.assertIn("pysample: 1 process could not be sampled: " + why, result.stderr)
        self.assertNotIn(pid, recording.functions)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_permission(self):
        self.check_as_nobody("user", "belongs to another user")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_real_time(self):
        self.check_as_nobody("real_time", "has a real-time priority that pysample lacks", "--exact")

    def test_unsupported_version(self):
        for refused in support.refused_interpreters():
            with self.subTest(refused.version):
                self.renew()
                code = ("import os, subprocess, sys; sys.path.insert(0, %r); import working\n"
                        "child = subprocess.Popen(%r)\n"
                        "working.report(%r, 'child', child=child.pid)\n"
                        "working.work(%r, 'root'); child.kill(); child.wait()"
                        % (self.folder, [*refused.command(), "-c", "while True: pass"],
                           *2 * [self.folder]))
                process = self.start("run", "-s", "-v", "-o", self.recording, "--", SYSTEM_PYTHON,
                                     "-c", code, bufsize=0)
                (facts,) = self.until_reported("child")
                self.check_reason(process, facts["child"],
                                  "CPython %s.*supports" % re.escape(refused.minor))

    def check_first(self, options, reason, command):
        self.interpreter = support.Interpreter(SYSTEM_PYTHON, "")
        self.renew()
        process = self.start(
            "run", "-s", "-v", "-o", self.recording, *options, "--", *command, SYSTEM_PYTHON,
            self.path("working.py"), self.folder, "root", program=support.pysample_for_nobody(),
            wrapper=[*support.WITHOUT_BPF, *support.AS_NOBODY], cwd="/", bufsize=0)
        why = self.until_refused(process)
        self.assertRegex(why, r"\Aprocess \d+: %s" % reason)
        self.remove("go")
        result, recording = self.end(process)
        self.assertIn("pysample: " + why, result.stderr)
        self.assertFalse(recording.functions)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_engine_of_the_first(self):
        """What was requested is required of the first interpreter, wherever it is."""
        for options, reason in ((["--exact", "-n"], "--exact with C frames requires engine bpf"),
                                (["--engine", "bpf"], "--engine bpf: ")):
            for command in [], ["sh", "-c", '"$@"; exit $?', "sh"]:
                with self.subTest(options, command=command):
                    self.check_first(options, reason, command)

    def test_no_python(self):
        result = support.pysample("run", "-s", "-o", self.recording, "--", "sh", "-c", "exit 3")
        self.assertEqual(result.status, 3)
        self.assertRegex(result.stderr, r"\npysample: no CPython was found in process \d+ or in "
                         r"those that it started(; 1 ended before it could be read)?\n")

    def test_shell_is_attached_to(self):
        """A root without Python is not a program that is not sampled."""
        target = subprocess.Popen(
            [*support.TIED_TO_US, "sh", "-c", '"$@"; exit 0', "sh", *self.interpreter.command(),
             self.inside + "/working.py", self.inside, "root"], stdin=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(self.remove, "go")
        process = self.attach(target.pid)
        self.until_sampled(process, "root")
        self.remove("go")
        result, _ = self.end(process)
        self.assertNotIn("not sampled", result.stderr)
        self.assertNotIn("no CPython", result.stderr)

    def test_unreadable(self):
        target = self.target("threads")
        (facts,) = self.until_reported("child")
        process = self.attach(target.pid, bufsize=0)
        self.check_reason(process, facts["pid"], "cannot be listed")


class Options(TreeTestCase):
    def test_periods(self):
        target = self.target("fork")
        found = self.until_reported("root", "worker", "worker")
        pids = {facts["pid"] for facts in found}
        process = self.start("attach", "-s", "--loop", "1h", "-o", self.path("%n.pysample"),
                             target.pid)
        for number in range(1, 4):
            def has_all(number=number):
                recording = Recording(self.path("%d.pysample" % number))
                return pids <= set(recording.functions)

            support.wait_until(has_all, "all are sampled in period %d" % number)
            process.send_signal(signal.SIGUSR1)
        support.wait_until(lambda: os.path.exists(self.path("4.pysample")), "there are new files")
        process.send_signal(signal.SIGTERM)
        result = support.finish(process)
        self.assertEqual(result.status, 0, result)
        for number in range(1, 4):
            recording = Recording(self.path("%d.pysample" % number))
            self.assertEqual({row["pid"] for row in recording.processes.values()}, pids)
            self.assertEqual(len(recording.processes), 3)
            self.assert_parents(recording, [f for f in found if f["label"] == "worker"])
            for row in recording.processes.values():
                self.assertRegex(row["name"], WORKERS)

    def test_duration(self):
        target = self.target("fork")
        self.until_reported("root", "worker", "worker")
        result = support.run_with_samples(lambda: support.pysample(
            "attach", "-s", "-d", "0.5", "-o", self.recording, target.pid))
        self.assertEqual(result.status, 0, result)
        self.assertIsNone(target.poll())
        recording = Recording(self.recording)
        self.assertEqual(len(recording.processes), 3)
        self.assertEqual({row["end_ns"] for row in recording.processes.values()}, {None})

    def test_merge_processes(self):
        for options, is_merged in ([], False), (["--merge-processes"], True):
            with self.subTest(options=options):
                self.renew()
                process = self.run_tree("fork", "-o", self.path("c.collapsed"), *options)
                found = self.until_sampled(process, "root", "worker", "worker")
                self.remove("go")
                self.end(process)
                stacks = support.parse_collapsed(support.read(self.path("c.collapsed")))
                roots = {stack[0] for stack in stacks if stack[-1].startswith("work ")}
                wanted = {"workers.py (%d)" % facts["pid"] for facts in found}
                if is_merged:
                    self.assertFalse([root for root in roots if root.startswith("python")])
                else:
                    self.assertEqual({root.partition(" ")[2] for root in roots}, wanted)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_native(self):
        process = self.run_tree("fork", "-n", *BPF)
        found = self.until_sampled(process, "root", "worker", "worker")
        self.remove("go")
        _, recording = self.end(process)
        for facts in found:
            self.assertLessEqual({"python", "native"}, recording.kinds[facts["pid"]])


    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_tick(self):
        """The rights that the engine needs are kept until there is an interpreter."""
        result = support.pysample("attach", "--engine", "tick", "-d", "0.1", "-o", "/dev/null",
                                  os.getpid())
        if result.status == 4:
            self.skipTest(result.stderr)
        process = self.run_tree("spawn", "--engine", "tick")
        self.until_sampled(process, "root", "worker", "worker")
        self.remove("go")
        result, _ = self.end(process)
        self.assertRegex(result.stderr, "capabilities kept: .*syslog")
        # There are three processes, at least.
        for note in "engine tick\n", "at the kernel's tick":
            self.assertEqual(result.stderr.count(note), 1, result.stderr)
        self.assertNotIn("engine preempt", result.stderr)


APP = """\
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))


def handle():
    with open(os.path.join(FOLDER, "handled-%d" % os.getpid()), "w"):
        pass
    for _ in range(2000):
        sum(range(1000))


def wsgi(environ, start_response):
    handle()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]
"""


def is_installed(module, program):
    return bool(shutil.which(program)) and subprocess.run(
        [SYSTEM_PYTHON, "-c", "import " + module], capture_output=True).returncode == 0


class Servers(TreeTestCase):
    """Pre-fork servers of Debian, under load."""

    def setUp(self):
        self.interpreter = support.Interpreter(SYSTEM_PYTHON, "")
        super().setUp()
        self.write("shop.py", APP)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)

    @contextlib.contextmanager
    def load(self, port):
        """Ask for pages until the block ends."""
        is_over = threading.Event()

        def ask():
            while not is_over.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                    connection.request("GET", "/")
                    connection.getresponse().read()
                    connection.close()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                thread.join()

    @contextlib.contextmanager
    def server(self, command):
        """A server until the block ends. Yields its process and its port."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with open(self.path("log"), "wb") as log:
            master = subprocess.Popen(
                [*support.TIED_TO_US, *[word % {"port": port} for word in command]],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        try:
            yield master, port
        finally:
            master.terminate()
            master.wait()

    def check(self, command, name):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.remove(*os.listdir(self.folder))
                self.write("shop.py", APP)
                with self.server(command) as (master, port), self.load(port):
                    self.check_workers(master, name, engine)

    def check_workers(self, master, name, engine):
        def workers():
            return [int(path.rpartition("-")[2]) for path in glob.glob(self.path("handled-*"))]

        def work():
            self.assertIsNone(master.poll(), support.read(self.path("log")))
            return len(workers()) == 2

        support.wait_until(work, "two workers work")
        process = self.attach(master.pid, *engine)
        self.until_pids_sampled(process, workers(), "handle")
        process.send_signal(signal.SIGINT)
        _, recording = self.end(process)
        for pid in workers():
            (row,) = recording.rows(pid)
            self.assertRegex(row["name"], name)
            self.assertEqual(row["parent_pid"], master.pid)

    @unittest.skipUnless(is_installed("gunicorn", "gunicorn"), "gunicorn is not installed")
    def test_gunicorn(self):
        self.check(["gunicorn", "-w", "2", "-b", "127.0.0.1:%(port)d", "shop:wsgi"],
                   r"\Agunicorn(: worker \[shop:wsgi\]| shop:wsgi)\Z")

    @unittest.skipUnless(glob.glob("/usr/lib/uwsgi/plugins/python3*") and shutil.which("uwsgi"),
                         "uwsgi with its plugin for Python is not installed")
    def test_uwsgi(self):
        self.check(["uwsgi", "--plugin", "python3", "--http-socket", "127.0.0.1:%(port)d",
                    "--master", "--processes", "2", "--die-on-term", "--wsgi-file", "shop.py",
                    "--callable", "wsgi"], r"\Auwsgi\Z")

    @unittest.skipUnless(is_installed("pytest", "true"), "pytest is not installed")
    def test_pytest(self):
        self.write("test_shop.py", "import multiprocessing, working\n\n\n"
                   "def test_work():\n"
                   "    child = multiprocessing.Process(target=working.work, args=(%r, 'worker'))\n"
                   "    child.start()\n"
                   "    working.work(%r, 'root')\n"
                   "    child.join()\n" % (self.folder, self.folder))
        process = self.start("run", "-s", "-o", self.recording, "--", SYSTEM_PYTHON, "-m", "pytest",
                             "-p", "no:cacheprovider", "test_shop.py", cwd=self.folder)
        found = self.until_sampled(process, "root", "worker")
        self.remove("go")
        result, recording = self.end(process)
        self.assertIn("1 passed", result.stdout)
        self.assert_parents(recording, found)
        for name in self.names(recording, found).values():
            self.assertRegex(name, r"\Apython3 -m pytest\Z")
