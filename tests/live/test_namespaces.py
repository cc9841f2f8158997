# SPDX-License-Identifier: MIT
"""Targets in containers, pysample beside them, and who may read what.

Containers are made by hand, from namespaces of unshare(1) and a separate root. The truth is the
target's own report, in its own thread ids.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import unittest

import support
from support import pysample

UNSHARE = ["unshare", "--fork", "--kill-child"]
NAMESPACES = {
    "mount": ["--mount"],
    "pid": ["--pid"],
    "pid with its own /proc": ["--pid", "--mount-proc"],
    "user": ["--user", "--map-root-user"],
    "user, pid, mount, net, ipc, uts": ["--user", "--map-root-user", "--pid", "--mount-proc",
                                        "--net", "--ipc", "--uts"],
}

# Makes a root with little more than the libraries that pysample needs, and runs a command in it.
# Arguments: the new root's folder, the program to put there, and the capabilities to keep, since
# a container has few of root's.
IN_ANOTHER_ROOT = """\
root=$1 program=$2 capabilities=$3
shift 3
mount -t tmpfs tmpfs "$root"
mkdir "$root/proc" "$root/usr" "$root/tmp"
for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "$root/$folder"; done
mkdir "$root/usr/lib" "$root/usr/lib64" "$root/usr/bin"
mount --bind /usr/lib "$root/usr/lib"
mount --bind /usr/lib64 "$root/usr/lib64"
cp "$program" "$root/pysample"
mount -t proc proc "$root/proc"
exec setpriv --bounding-set="$capabilities" --inh-caps=-all -- chroot "$root" "$@"
"""


def unshare_is_allowed(*options):
    return subprocess.run([*UNSHARE, *options, "true"], capture_output=True).returncode == 0


def interpreter_of(*origins):
    """The newest interpreter of one of these origins."""
    found = [found for found in support.supported_interpreters() if found.origin in origins]
    return max(found, key=lambda one: [int(part) for part in one.version.split(".")], default=None)


def tid_of(stack):
    """The id in a stack that begins with its thread."""
    return int(re.search(r"\((\d+)\)", stack[0]).group(1))


class NamespaceTestCase(unittest.TestCase):
    maxDiff = 4000

    def assert_truth(self, dumped, target, own_tid=lambda tid: tid):
        """Every thread is where the target reports it."""
        threads = {own_tid(thread["tid"]): support.dumped_frames(thread)
                   for thread in dumped["threads"]}
        self.assertEqual(threads, {truth["tid"]: support.expected_frames(truth)
                                   for truth in target.report["threads"]})

    def assert_stacks(self, attach, target):
        """Every stack of a parked target is in the result of attach(), sooner or later."""
        expected = set(map(support.expected_stack, target.report["threads"]))
        support.sampled_until(lambda: support.without_gc(support.stacks_of_run(attach())),
                              lambda stacks: expected <= set(stacks), "every thread is seen")

    def run_json(self, *command):
        result = subprocess.run(command, capture_output=True, text=True,
                                timeout=support.PATIENCE_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
class FromTheHost(NamespaceTestCase):
    """Everything is found through the target's own /proc/PID."""

    def check(self, interpreter, wrapper):
        with support.python_target(interpreter, "corpus", wrapper=wrapper) as target:
            pid = support.descendant(target.pid)
            support.wait_until_parked(target, pid)
            tids = support.innermost_tids(pid)
            result = pysample("dump", pid, "--json")
            self.assertEqual(result.status, 0, result.stderr)
            self.assert_truth(json.loads(result.stdout), target, tids.get)
            attach = functools.partial(pysample, "attach", pid, "-d", "0.3", "-q",
                                       *support.COLLAPSED)
            self.assert_stacks(attach, target)
            support.sampled_until(lambda: support.stacks_of_run(attach("-t")),
                                  lambda stacks: set(map(tid_of, stacks)) == set(tids),
                                  "every thread is seen by its id")
            self.assertEqual(pysample("doctor", pid).status, 0)

    def test_each_namespace(self):
        for name, options in NAMESPACES.items():
            with self.subTest(name):
                if not unshare_is_allowed(*options):
                    self.skipTest("not tested here: a namespace (unshare %s is not allowed)"
                                  % " ".join(options))
                for origins in (("system", "pyenv"), ("testbed",)):
                    interpreter = interpreter_of(*origins)
                    if interpreter and not (interpreter.root and "--mount-proc" in options):
                        with self.subTest(interpreter=str(interpreter)):
                            self.check(interpreter, [*UNSHARE, *options, "--"])

    def test_nested_pid_namespaces(self):
        inner = [*UNSHARE, "--pid", "--mount-proc", "--"]
        self.check(interpreter_of("system", "pyenv"), inner + inner)
        self.check(interpreter_of("system", "pyenv"), inner + inner + inner)


    def test_the_longest_host_name(self):
        """A recording names the mount namespace after it, so that its files are not ours."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', "h" * 64]
        with support.fresh_folder() as (folder, _), support.python_target(
                interpreter_of("system", "pyenv"), "busy",
                wrapper=[*UNSHARE, "--mount", "--"]) as target:
            pid = support.descendant(target.pid)
            path = os.path.join(folder, "out.pysample")
            result = pysample("attach", pid, "-d", "0.3", "-o", path, wrapper=named)
            self.assertEqual(result.status, 0, result.stderr)
            info = json.loads(pysample("report", "--info", "--json", path).stdout)
            self.assertEqual(info["host"],
                             "h" * 64 + ", mount namespace of process %d" % pid)


@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
class FromASidecar(NamespaceTestCase):
    """A container that shares only the target's PID namespace: it sees the target under the
    target's own ids and has none of its files."""

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def sidecar(self, pid, capabilities="+all"):
        return ["nsenter", "--pid", "--target", str(pid), "--", "unshare", "--mount",
                "sh", "-ec", IN_ANOTHER_ROOT, "sh", self.folder, support.PYSAMPLE, capabilities,
                "/pysample"]

    def check(self, wrapper, interpreter, capabilities="+all"):
        with support.python_target(interpreter, "corpus", wrapper=wrapper) as target:
            pid = support.descendant(target.pid)
            support.wait_until_parked(target, pid)
            inside = support.innermost_tids(pid)[pid]
            sidecar = self.sidecar(pid, capabilities)
            self.assert_truth(self.run_json(*sidecar, "dump", "--json", str(inside)), target)
            self.assert_stacks(functools.partial(self.attach, sidecar, inside), target)
            doctor = subprocess.run([*sidecar, "doctor", str(inside)], capture_output=True,
                                    text=True)
            self.assertEqual(doctor.returncode, 0, doctor.stdout)
            self.assertRegex(doctor.stdout, r"\nnamespaces +separate: mnt")

    @staticmethod
    def attach(sidecar, pid):
        run = subprocess.run([*sidecar, "attach", "-d", "0.3", "-q", *support.COLLAPSED, str(pid)],
                             capture_output=True, text=True)
        return support.Result(run.returncode, run.stdout, run.stderr)

    def test_without_the_targets_files(self):
        """The sidecar's root has neither pyenv's interpreters nor the testbed's."""
        for origin in ("pyenv", "testbed"):
            interpreter = interpreter_of(origin)
            if interpreter:
                with self.subTest(origin):
                    self.check([*UNSHARE, "--pid", "--mount", "--"], interpreter)

    def test_with_the_one_capability(self):
        """SYS_PTRACE is enough, as the remedy says (with SYS_CHROOT, for the sidecar itself)."""
        for origin in ("system", "pyenv"):
            interpreter = interpreter_of(origin)
            if interpreter:
                with self.subTest(origin):
                    self.check([*UNSHARE, "--pid", "--mount", "--"], interpreter,
                               "-all,+sys_ptrace,+sys_chroot")

    def test_one_pid_namespace_further_out(self):
        """The sidecar is in the middle one of three namespaces, with other ids than in either of
        the others."""
        inner = [*UNSHARE, "--pid", "--mount-proc", "--"]
        interpreter = interpreter_of("system", "pyenv")
        with support.python_target(interpreter, "corpus", wrapper=inner + inner) as target:
            pid = support.descendant(target.pid)
            middle = int(support.read("/proc/%d/status" % pid).split("NSpid:")[1].split()[1])
            support.wait_until_parked(target, pid)
            parent = int(support.read("/proc/%d/status" % pid).split("PPid:")[1].split()[0])
            command = [*self.sidecar(parent), "dump", "--json", str(middle)]
            ids = {}
            for tid in os.listdir("/proc/%d/task" % pid):
                line = support.read("/proc/%d/task/%s/status" % (pid, tid)).split("NSpid:")[1]
                _, in_middle, own = map(int, line.split("\n")[0].split())
                ids[in_middle] = own
            self.assert_truth(self.run_json(*command), target, ids.get)

    def test_in_another_user_namespace(self):
        options = ["--user", "--map-root-user"]
        if not unshare_is_allowed(*options):
            self.skipTest("not tested here: a user namespace (unshare is not allowed)")
        with support.python_target(interpreter_of("system"), "corpus") as target:
            for command in ("dump", "attach"):
                result = subprocess.run(["unshare", *options, "--", support.PYSAMPLE, command,
                                         str(target.pid)], capture_output=True, text=True)
                self.assertEqual(result.returncode, 4, result.stderr)
                self.assertRegex(result.stderr, "another user namespace, where our CAP_SYS_PTRACE "
                                 "has no effect: run pysample as root on the host")


@unittest.skipIf(os.geteuid() != 0, "needs root: another /proc")
class Hidepid(NamespaceTestCase):
    def pysample(self, hidepid, *command):
        script = 'mount -t proc -o hidepid="$1" proc /proc && shift && exec "$@"'
        run = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(hidepid),
                              *map(str, command)], capture_output=True, text=True)
        return run

    def test_is_reported(self):
        with support.python_target(interpreter_of("system"), "corpus") as target:
            support.wait_until_parked(target, target.pid)
            for hidepid in (1, 2):
                with self.subTest(hidepid):
                    run = self.pysample(hidepid, *support.AS_NOBODY,
                                        support.pysample_for_nobody(), "dump", target.pid)
                    self.assertEqual(run.returncode, 4, run.stderr)
                    self.assertIn("hidden from us: run as root", run.stderr)
                    self.assertIn("hidepid", run.stderr)
                    run = self.pysample(hidepid, support.PYSAMPLE, "dump", "--json", target.pid)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assert_truth(json.loads(run.stdout), target)


# As nobody, but without no-new-privs, so that set-user-ID programs and file capabilities take
# effect.
NOBODYS = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=-all",
           "--pdeathsig=KILL", "--"]


@unittest.skipIf(os.geteuid() != 0, "needs root: other users")
class Unprivileged(NamespaceTestCase):
    """pysample runs as nobody."""

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def ptrace_scope(self):
        path = "/proc/sys/kernel/yama/ptrace_scope"
        return int(support.read(path)) if os.path.exists(path) else 0

    def copy_of_python(self):
        """The system's interpreter, in a folder that anybody may enter."""
        path = os.path.join(self.folder, "python3")
        shutil.copy(os.path.realpath("/usr/bin/python3"), path)
        os.chmod(path, 0o755)
        return path

    def test_own_process_needs_no_capability(self):
        if self.ptrace_scope() != 0:
            self.skipTest("not tested here: one's own process (ptrace_scope is not 0)")
        with support.python_target(interpreter_of("system"), "corpus", wrapper=NOBODYS) as target:
            support.wait_until_parked(target, target.pid)
            result = support.pysample_as_nobody("dump", "--json", target.pid)
            self.assertEqual(result.status, 0, result.stderr)
            self.assert_truth(json.loads(result.stdout), target)
            self.assert_stacks(functools.partial(
                support.pysample_as_nobody, "attach", "-d", "0.3", *support.COLLAPSED, target.pid),
                target)
            result = support.pysample_as_nobody("doctor", target.pid)
            self.assertEqual(result.status, 0, result.stdout)

    def assert_refused(self, pid, pattern):
        for command in ("attach", "dump"):
            with self.subTest(command):
                result = support.pysample_as_nobody(command, pid)
                self.assertEqual(result.status, 4, result.stderr)
                self.assertRegex(result.stderr, r"\Apysample: [^\n]*%s[^\n]*\n\Z" % pattern)
        result = support.pysample_as_nobody("doctor", pid)
        self.assertEqual(result.status, 4, result.stdout)
        self.assertRegex(result.stdout, pattern)
        self.assertRegex(result.stdout, r"\nmemory +cannot be read\n")

    def start(self, *command):
        """Start a target and wait for its first line."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(process.stdout.readline())
        return process

    PARK = "import time; print(1, flush=True); time.sleep(60)"

    def test_another_users_process(self):
        target = self.start(*support.TIED_TO_US, "/usr/bin/python3", "-c", self.PARK)
        self.assert_refused(target.pid, "another user .*lack CAP_SYS_PTRACE: run as root")

    def test_another_groups_process(self):
        command = [word.replace("nogroup", "daemon") for word in NOBODYS]
        target = self.start(*command, "/usr/bin/python3", "-c", self.PARK)
        self.assert_refused(target.pid, "runs under another group")

    def test_an_undumpable_process(self):
        script = "import ctypes; ctypes.CDLL(None).prctl(4, 0); " + self.PARK
        target = self.start(*NOBODYS, "/usr/bin/python3", "-c", script)
        self.assert_refused(target.pid, "has made itself undumpable")

    def test_a_set_user_id_program(self):
        python = self.copy_of_python()
        os.chown(python, 1, -1)
        os.chmod(python, 0o4755)
        target = self.start(*NOBODYS, python, "-c", self.PARK)
        if "\nUid:\t65534\t1\t" not in support.read("/proc/%d/status" % target.pid):
            self.skipTest("not tested here: a set-user-ID program (/tmp is mounted nosuid)")
        self.assert_refused(target.pid, "another user .uid 1, ours is 65534")

    def test_an_exec_of_a_set_user_id_program(self):
        python = self.copy_of_python()
        os.chown(python, 1, -1)
        os.chmod(python, 0o4755)
        command = [python, "-c", "import time; time.sleep(60)"]
        with support.python_target(interpreter_of("system"), "execs", *command,
                                   wrapper=NOBODYS) as target:
            result = support.pysample_as_nobody("attach", *support.COLLAPSED, target.pid)
            if "\nUid:\t65534\t1\t" not in support.read("/proc/%d/status" % target.pid):
                self.skipTest("not tested here: a set-user-ID program (/tmp is mounted nosuid)")
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, "called exec; [1-9]")
        self.assertRegex(result.stderr, "the new program is not sampled: process [0-9]+ belongs to another user")

    def test_file_capabilities(self):
        python = self.copy_of_python()
        if not shutil.which("setcap") or subprocess.run(
                ["setcap", "cap_net_raw+ep", python], capture_output=True).returncode:
            self.skipTest("not tested here: file capabilities (setcap does not work)")
        target = self.start(*NOBODYS, python, "-c", self.PARK)
        # fs.suid_dumpable also makes it undumpable, which is reported first.
        self.assert_refused(target.pid, "(undumpable|more capabilities than we have) .[^\n]*"
                            "file capabilities")

    def test_root_without_the_capability(self):
        target = self.start(*NOBODYS, "/usr/bin/python3", "-c", self.PARK)
        result = pysample("dump", target.pid, wrapper=[
            "setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", "--"])
        self.assertEqual(result.status, 4, result)
        self.assertRegex(result.stderr, "add the capability .Docker: --cap-add=SYS_PTRACE; "
                         "Kubernetes: ")


if __name__ == "__main__":
    unittest.main()
