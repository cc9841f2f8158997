# SPDX-License-Identifier: MIT
"""The rights beyond its user's that pysample keeps while it samples: no more than it needs."""
import json
import os
import re
import shutil
import signal
import stat
import struct
import unittest

import support
from test_lifecycle import interpreters_without_root

CAPABILITIES = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "kill": 5,
                "ipc_lock": 14, "sys_ptrace": 19, "sys_admin": 21, "syslog": 34, "perfmon": 38,
                "bpf": 39, "checkpoint_restore": 40}
READING = {"sys_ptrace", "dac_read_search", "checkpoint_restore"}
WRITING = {"dac_override", "chown", "fowner"}
EVENTS = {"perfmon", "ipc_lock"}
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
if os.path.exists(PARANOID) and int(support.read(PARANOID)) > 2:  # as Debian has it
    EVENTS |= {"sys_admin"}
    READING |= {"sys_admin"}
OTHER_UID, OTHER_GID = 65534, 65533

# Of the file attribute that gives a program capabilities: linux/capability.h.
CAPABILITY_REVISION_2, CAPABILITY_EFFECTIVE, CAP_NET_RAW = 0x02000000, 1, 13


def status_of_threads(pid):
    """The status files of all threads of a process."""
    folder = "/proc/%d/task" % pid
    return [support.read(os.path.join(folder, tid, "status")) for tid in os.listdir(folder)]


def field(status, name, base=16):
    return int(re.search(r"^%s:\s*([0-9a-f]+)$" % name, status, re.M).group(1), base)


def names_of(number):
    """The names in a set of capabilities. Those beyond the table are numbers."""
    names = {number: name for name, number in CAPABILITIES.items()}
    return {names.get(bit, bit) for bit in range(64) if number >> bit & 1}


class RightsTestCase(unittest.TestCase):

    def setUp(self):
        if os.geteuid() != 0 or "sys_ptrace" not in names_of(
                field(support.read("/proc/self/status"), "CapEff")):
            self.skipTest("there are no capabilities to give up")
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.path = os.path.join(self.folder, "profile")

    def start(self, command, *args, **kwargs):
        return support.start_pysample(command, "-v", *support.COLLAPSED, "-o", self.path, *args,
                                      bufsize=0, **kwargs)

    def rights_of(self, process):
        """The rights that a started pysample has while it samples, which must be those that it
        reports."""
        for line in process.stderr:
            kept = re.fullmatch(r"pysample: capabilities kept: (.*)\n", line.decode())
            if kept:
                break
        else:
            self.fail("pysample ended with status %d" % process.wait())
        held = []
        for status in status_of_threads(process.pid):
            held.append(names_of(field(status, "CapEff")))
            self.assertEqual(field(status, "CapPrm"), field(status, "CapEff"))
            self.assertEqual(field(status, "CapInh"), 0)
            self.assertEqual(field(status, "NoNewPrivs", 10), 1)
        for one in held:
            self.assertEqual(one, set(kept.group(1).split(", ")))
        return held[0]

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        result = support.finish(process)
        self.assertEqual(result.status, 0, result.stderr)
        return result


class Rights(RightsTestCase):

    def test_rights_depend_on_options(self):
        """Events, and kernel stacks of threads that come later, take more."""
        with support.python_target(support.newest_interpreter(), "busy") as target:
            for options, rights in (
                    ([], READING),
                    (support.PREEMPT, READING | EVENTS),
                    (["-n"], READING | EVENTS),
                    (["--kernel", "-n"], READING | EVENTS | {"sys_admin", "syslog"})):
                with self.subTest(options):
                    process = self.start("attach", *options, target.pid)
                    held = self.rights_of(process)
                    support.wait_for_ticks(process.pid)
                    self.end(process)
                    self.assertLessEqual(READING, held)
                    # Without BPF, or where its maps take a right, events are opened instead.
                    self.assertLessEqual(held - {"bpf", "perfmon", "ipc_lock"}, rights)
                    if options:
                        self.assertEqual(held - {"bpf"}, rights)

    def test_sys_admin_instead_of_perfmon(self):
        """Kernels before 5.8 have CAP_SYS_ADMIN in the place of CAP_PERFMON."""
        with support.python_target(support.newest_interpreter(), "parallel", "calls", 40, 4, 5000,
                                   0) as target:
            result = support.run_with_samples(lambda: support.pysample(
                "attach", "-v", "-n", "-r", 1000, "-d", "0.5", *support.COLLAPSED, target.pid,
                wrapper=["setpriv", "--bounding-set=-perfmon", "--inh-caps=-perfmon", "--"]))
        kept = re.search(r"capabilities kept: (.*)\n", result.stderr).group(1).split(", ")
        self.assertIn("sys_admin", kept)
        self.assertNotIn("perfmon", kept)
        self.assertNotIn("could not be sampled while running", result.stderr)

    def test_a_command_gets_our_signals(self):
        process = self.start("run", "--", interpreters_without_root()[0].path,
                             os.path.join(support.TARGETS, "exits.py"))
        held = self.rights_of(process)
        self.assertIn("kill", held)
        self.assertFalse(held & WRITING)
        self.assertEqual(support.finish(process).status, 0)

    def check_written(self, mode):
        self.assertTrue(support.parse_collapsed(support.read(self.path)))
        status = os.stat(self.path)
        self.assertEqual((status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)), mode)

    def test_file_of_another_user(self):
        """It is replaced and keeps its owner."""
        with open(self.path, "w", encoding="utf-8"):
            os.chown(self.path, OTHER_UID, OTHER_GID)
            os.chmod(self.path, 0o640)
        with support.python_target(support.newest_interpreter(), "busy") as target:
            process = self.start("attach", target.pid)
            self.assertLessEqual(WRITING, self.rights_of(process))
            support.wait_for_ticks(process.pid)
            self.end(process)
        self.check_written((OTHER_UID, OTHER_GID, 0o640))

    def test_folder_of_another_user(self):
        """A recording has its name while it grows."""
        folder = os.path.join(self.folder, "theirs")
        os.mkdir(folder, 0o700)
        os.chown(folder, OTHER_UID, OTHER_GID)
        recording = os.path.join(folder, "out.pysample")
        with support.python_target(support.newest_interpreter(), "busy") as target:
            process = support.start_pysample("attach", "-v", "-o", recording, target.pid, bufsize=0)
            self.assertLessEqual(WRITING, self.rights_of(process))
            support.wait_until(lambda: os.path.exists(recording), "the recording exists")
            support.wait_for_ticks(process.pid)
            self.end(process)
        self.assertEqual(support.pysample("report", *support.COLLAPSED, recording).status, 0)

    def test_needed_capabilities_are_kept(self):
        """Without CAP_SYS_PTRACE a process may be read because it has no more rights than we
        have."""
        bound = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", "--"]
        with support.python_target(support.newest_interpreter(), "busy", wrapper=bound) as target:
            result = support.pysample("attach", "-v", "-d", "0.3", *support.COLLAPSED, target.pid,
                                      wrapper=bound)
        self.assertIn(result.status, (0, 5), result.stderr)
        self.assertNotIn("capabilities kept", result.stderr)


class RightsLater(RightsTestCase):
    """What begins after the rights were given up."""

    def stats_of(self, interpreter, program, *options, wrapper=()):
        """The result and the counters of a run on execs.py, which becomes that program."""
        path = os.path.join(self.folder, "stats")
        with support.python_target(interpreter, "execs", *program, wrapper=wrapper) as target:
            result = support.pysample("attach", "-v", "-r", 1000, *support.COLLAPSED,
                                      "--stats-json", path, *options, target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn("followed into", result.stderr)
        return result, json.loads(support.read(path))

    def program(self, interpreter):
        return [interpreter.path, os.path.join(support.TARGETS, "exits.py")]

    def test_loaded_program_continues(self):
        """No BPF program can be loaded any more, but the layout is the same."""
        found = interpreters_without_root()[0]
        for options in ([], ["-n"]):
            with self.subTest(options):
                result, stats = self.stats_of(found, self.program(found), *options)
                if stats["engine"] != "bpf" and "built without BPF" in result.stderr:
                    self.skipTest("engine bpf is not available")
                self.assertEqual(stats["engine"], "bpf", result.stderr)
                self.assertEqual(result.stderr.count("pysample: engine bpf\n"), 2)
                self.assertTrue(any("exits.py:" in label
                                    for stack in support.parse_collapsed(result.stdout)
                                    for label in stack), result.stdout)

    def test_a_program_of_more_rights(self):
        """Its exec ends the events opened before, without notice."""
        found = interpreters_without_root()[0]
        program = os.path.join(self.folder, "python")
        shutil.copy(os.path.realpath(found.path), program)
        os.chmod(program, 0o755)
        os.chmod(self.folder, 0o755)
        os.setxattr(program, "security.capability",
                    struct.pack("<5I", CAPABILITY_REVISION_2 | CAPABILITY_EFFECTIVE,
                                1 << CAP_NET_RAW, 0, 0, 0))
        result, stats = self.stats_of(
            found, [program, os.path.join(support.TARGETS, "exits.py")],
            wrapper=["setpriv", "--reuid=%d" % OTHER_UID, "--regid=%d" % OTHER_GID,
                     "--clear-groups"])
        if stats["engine"] != "bpf" and "built without BPF" in result.stderr:
            self.skipTest("engine bpf is not available")
        self.assertEqual(stats["engine"], "bpf", result.stderr)
        self.assertTrue(any("exits.py:" in label
                            for stack in support.parse_collapsed(result.stdout)
                            for label in stack), result.stdout)

    def test_another_layout(self):
        """The other engine goes on, and the reason is reported."""
        by_age = sorted(interpreters_without_root(), key=support.version_key)
        if by_age[0].minor == by_age[-1].minor:
            self.skipTest("there is only one version")
        result, stats = self.stats_of(by_age[-1], self.program(by_age[0]))
        if "pysample: engine bpf\n" not in result.stderr:
            self.skipTest("engine bpf is not available")
        self.assertEqual(stats["engine"], "preempt")
        self.assertIn("the right to load a BPF program for it was given up", result.stderr)

    def test_threads_with_c_frames(self):
        """The stacks of threads that begin later are copied, too."""
        with support.python_target(support.newest_interpreter(), "parallel", "calls", 40, 4, 5000,
                                   0) as target:
            def sample():
                result = support.run_with_samples(lambda: support.pysample(
                    "attach", "-v", "-n", "-r", 1000, "-d", "0.5", *support.COLLAPSED, target.pid))
                self.assertIn("capabilities kept: ", result.stderr)
                self.assertNotIn("could not be sampled while running", result.stderr)
                return support.parse_collapsed(result.stdout)

            support.sampled_until(sample, lambda stacks: any(
                any(label.startswith("dive (") for label in stack) and not support.LABEL.fullmatch(stack[0])
                for stack in stacks), "a thread is seen, from its C frames on")
