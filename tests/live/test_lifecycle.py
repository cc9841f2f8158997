# SPDX-License-Identifier: MIT
"""Targets that begin, exec, fork, stop and end, and what is reported of each."""
import collections
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

import support
from support import names, parse_collapsed, pysample


def interpreters_without_root():
    """The interpreters that see the same files as we do."""
    return [found for found in support.supported_interpreters() if not found.root]


def functions_of(stack):
    """The names in a stack, without the thread that -t puts first."""
    return names(stack[1:] if stack and stack[0].startswith("thread ") else stack)


class LifecycleTestCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

        self.profile = os.path.join(self.folder, "profile")
        self.stats = os.path.join(self.folder, "stats")

    def start(self, pid, *options, **kwargs):
        return support.start_pysample("attach", pid, *support.COLLAPSED, "-o", self.profile,
                                      "--stats-json", self.stats, *options, **kwargs)

    def finish(self, process, status=0):
        """The result, with the stacks and the counters, if any."""
        result = support.finish(process)
        result.stacks = collections.Counter()
        if result.status == 5 and status == 0:  # on a busy machine
            self.assertRegex(result.stderr, "could be proven|before the first sample")
            return result
        self.assertEqual(result.status, status, result.stderr)
        if status == 0:
            result.stacks = support.without_gc(parse_collapsed(support.read(self.profile)))
            result.stats = json.loads(support.read(self.stats))
            self.assertEqual(sum(result.stacks.values()), result.stats["samples"])
        return result

    def attach(self, pid, *options, status=0, **kwargs):
        """Run to the end."""
        return self.finish(self.start(pid, *options, **kwargs), status)

    def attach_and_signal(self, target, *options, **kwargs):
        """The same for execs_itself.py, which gets a signal once it is sampled."""
        # Unbuffered, so that finish() gets what is not read here.
        process = self.start(target.pid, *options, bufsize=0, **kwargs)
        for line in process.stderr:
            if b"sampling process" in line:
                target.process.send_signal(signal.SIGUSR1)
                break
        return self.finish(process)

    def assert_truth(self, pid, truths, *options, **kwargs):
        """Every parked thread is seen, and nothing else. Return the last result."""
        results = []

        def sample():
            results.append(self.attach(pid, "-d", "0.3", *options, **kwargs))
            self.assertEqual(set(results[-1].stacks) - expected, set())
            return results[-1].stacks

        expected = set(map(support.expected_stack, truths))
        support.sampled_until(sample, lambda stacks: set(stacks) == expected, "all are seen")
        return results[-1]

    def until_seen(self, attempt, *functions):
        """Repeat attempt until a result has all the functions, and return that result."""
        results = []

        def all_are_seen():
            results.append(attempt())
            seen = {name for stack in results[-1].stacks for name in functions_of(stack)}
            return set(functions) <= seen

        support.wait_until(all_are_seen, "all of %s are seen" % (functions,))
        return results[-1]


@support.per_layout
class Exec(LifecycleTestCase):
    quick_on = ("3.11",)

    def test_the_same_program_again(self):
        """Without randomisation everything is at the same addresses, under the same thread id.

        At a low rate hardly any tick meets the interpreter while it starts. The first tick comes
        at once, while the first program surely runs. An interrupt comes once that program has
        used a whole period of CPU time.
        """
        for options in (["-r", "1000"], ["-r", "1000", *support.PREEMPT],
                        ["-r", "2.3", *support.PREEMPT]):
            with self.subTest(options):
                result = self.until_seen(lambda options=options: self.attempt(*options), "first",
                                         "second")
                self.assertRegex(result.stderr, r"\npysample: followed into .*execs_itself.py again, "
                                 r"CPython %s" % self.interpreter.minor.replace(".", r"\."))
                self.assertRegex(result.stderr, "followed into .*again; the process has ended; ")

    def attempt(self, *options):
        with support.python_target(self.interpreter, "execs_itself",
                                   wrapper=support.FIXED_ADDRESSES) as target:
            return self.attach_and_signal(target, *options, "-v", "--full-command")

    def test_a_program_without_python(self):
        def attempt():
            with support.python_target(self.interpreter, "execs") as target:
                result = self.attach(target.pid)
                self.assertTrue(target.runs())
                return result

        result = self.until_seen(attempt, "work")
        self.assertRegex(result.stderr, "executed a program without CPython; ")
        self.assertRegex(result.stderr, "the new program is not sampled: no CPython in sleep\n")


class ExecOnce(LifecycleTestCase):
    """Cases that do not depend on the version."""

    def test_through_a_shell_and_into_another_version(self):
        found = sorted(interpreters_without_root(), key=support.version_key)
        first, last = found[0], found[-1]
        script = "sleep 0.1; exec %s" % shlex.join(
            [last.path, os.path.join(support.TARGETS, "exits.py")])

        def attempt():
            with support.python_target(first, "execs", "sh", "-c", script) as target:
                return self.attach(target.pid, "-t")

        def both_are_seen():
            results.append(attempt())
            paths = {support.parse_label(label)[1] for stack in results[-1].stacks
                     for label in stack[1:] if label != support.NO_PYTHON_FRAMES}
            return all(any(path.endswith(name) for path in paths)
                       for name in ("execs.py", "exits.py"))

        results = []
        support.wait_until(both_are_seen, "both programs are seen")
        self.assertRegex(results[-1].stderr, "followed into .*exits.py; the process has ended")
        self.assertEqual(results[-1].stats["python"], last.version)

    def test_duration_continues(self):
        def attempt():
            with support.python_target(support.newest_interpreter(), "execs_itself") as target:
                return self.attach_and_signal(target, "-d", "1.4", "--full-command")

        result = self.until_seen(attempt, "first", "second")
        self.assertRegex(result.stderr, "followed into [^\n]*again; [0-9]+ samples")

    def test_a_program_that_cannot_be_sampled(self):
        for refused in support.refused_interpreters()[:1]:
            command = [refused.path, "-c", "import time; time.sleep(60)"]

            def attempt():
                with support.python_target(interpreters_without_root()[0], "execs",
                                           *command) as target:
                    return self.attach(target.pid)

            result = self.until_seen(attempt, "work")
            self.assertRegex(result.stderr, "(called exec|or started none); ")
            self.assertRegex(result.stderr, "the new program is not sampled: .*%s" % refused.minor)

    def test_signal_while_waiting_for_the_process(self):
        def attempt():
            with support.python_target(support.newest_interpreter(), "execs", "sleep",
                                       "60") as target:
                process = self.start(target.pid, "--wait", "60")
                support.wait_until(lambda: os.readlink("/proc/%d/exe" % target.pid).endswith(
                    "sleep"), "it is another program")
                time.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                return self.finish(process)

        result = self.until_seen(attempt, "work")
        self.assertRegex(result.stderr, "stopped; [1-9]")

    def test_a_thread_that_is_not_the_main_one(self):
        """It takes over the main thread's id, and the other threads are gone."""
        def attempt():
            with support.python_target(support.newest_interpreter(), "execs_itself",
                                       "thread") as target:
                return self.attach_and_signal(target, "-r", "max", "--full-command")

        result = self.until_seen(attempt, "Condition.wait", "first", "second")
        self.assertRegex(result.stderr, "followed into .*again; the process has ended; ")

    def test_a_loop_of_execs(self):
        script = "import os, sys; os.execv(sys.executable, sys.orig_argv)"
        command = support.newest_interpreter().command()
        with subprocess.Popen([*support.TIED_TO_US, *command, "-c", script]) as target:
            try:
                result = pysample("attach", target.pid, "-d", "1", "-r", "max")
                self.assertIn(result.status, (0, 5), result)
                self.assertIsNone(target.poll())
            finally:
                target.kill()


class Unreadable(LifecycleTestCase):
    sleeps = True

    def test_permanently_unreadable_is_not_an_exec(self):
        """The list of threads becomes a ring, at once or later: the run ends, even without -d."""
        for interpreter in support.tested_interpreters():
            if interpreter.minor not in ("3.13", "3.14", "3.15"):
                continue
            for samples in (False, True):
                with self.subTest(interpreter.version, samples=samples):
                    support.wait_until(lambda interpreter=interpreter, samples=samples:
                                       self.ends(interpreter, samples), "the run ends with samples")

    def ends(self, interpreter, samples):
        """Returns False if there should be samples and none could be proven."""
        args = ["later"] if samples else []
        with support.python_target(interpreter, "circular_thread_list", *args) as target:
            process = support.start_pysample("attach", target.pid, "-v", "-o", "/dev/null",
                                             "--stats-json", self.stats)
            if samples:
                self.assertIn(b"sampling process", process.stderr.readline())
                time.sleep(0.3)
                target.process.send_signal(signal.SIGUSR1)
            result = support.finish(process)
            self.assertTrue(target.runs())
        self.assertNotIn("followed into", result.stderr)
        if samples and support.has_no_proven_stack(result):
            return False
        self.assertEqual(result.status, 0 if samples else 5, result)
        self.assertRegex(result.stderr, "the interpreter's threads can no longer be listed; [1-9]"
                         if samples else "could not be listed: ")
        # It is tried for half a second, and with samples once again.
        self.assertLess(json.loads(support.read(self.stats))["failed_ticks"], 200)
        return True


def python_library():
    """The path of a libpython of a supported version, or None."""
    for found in interpreters_without_root():
        path = os.path.join(os.path.dirname(os.path.dirname(found.path)), "lib",
                            "libpython%s.so.1.0" % found.minor)
        if os.path.exists(path):
            return path
    return None


def is_waiting(process):
    """Whether pysample sleeps between two looks for an interpreter: in nanosleep(2) or
    clock_nanosleep(2)."""
    return support.read("/proc/%d/syscall" % process.pid).split()[0] in ("35", "230")


PYPY = b"""#include <unistd.h>
static char version[] __attribute__((aligned(32))) =
	"3.9.18 (c5262994620471e725f57f652d78d842270649d6, Sep 27 2023, 13:43:44)\\n"
	"[PyPy 7.3.13 with GCC 10.2.1]";
int main(void) { for (;;) { version[100] = 0; pause(); } }
"""


class Wait(LifecycleTestCase):
    sleeps = True

    def late_python(self, *args):
        """A program that loads CPython late."""
        library, compiler = python_library(), shutil.which("cc")
        if not library or not compiler:
            self.skipTest("not tested here: libpython loaded late (no C compiler, or no libpython)")
        program = os.path.join(self.folder, "late_python")
        source = os.path.join(support.ROOT, "tests", "tools", "late_python.c")
        subprocess.run([compiler, "-o", program, source, "-ldl"], check=True)
        return support.plain_target(program, library, *args)

    def test_as_soon_as_it_is_there(self):
        """Whatever runs there just then: our fork, setpriv, or a Python that begins."""
        command = [*support.TIED_TO_US, *support.newest_interpreter().command(), "-c",
                   "import time; time.sleep(60)"]
        for i in range(20):
            with subprocess.Popen(command) as target:
                try:
                    result = pysample("dump", target.pid, "--wait", "30")
                finally:
                    target.kill()
            with self.subTest(i):
                self.assertIn(result.status, (0, 5), result)
                if result.status:  # seen right before an exec
                    self.assertIn("has called exec", result.stderr)

    def test_libpython_that_is_loaded_late(self):
        def attempt():
            with self.late_python("0.7") as target:
                return self.attach(target.pid, "-d", "0.5", "--wait", "30")

        self.until_seen(attempt, "late")
        with self.late_python("0.7") as target:
            result = pysample("doctor", target.pid, "--wait", "30")
            self.assertEqual(result.status, 0, result)
            self.assertIn("it can be sampled", result.stdout)

    def test_a_wait_in_vain(self):
        with support.plain_target("sleep", "60") as target:
            for command in ("attach", "dump"):
                for wait, pattern in (("0", "no CPython interpreter"),
                                      ("0.7", r"in 0\.7 s: .*--wait 1\.4")):
                    with self.subTest(command=command, wait=wait):
                        result = pysample(command, target.pid, "--wait", wait)
                        self.assertEqual(result.status, 3, result)
                        self.assertRegex(result.stderr, r"\Apysample: [^\n]*%s[^\n]*\n\Z" % pattern)

    def test_no_wait_for_other_interpreters(self):
        """A program with PyPy's version text in its variables never becomes CPython."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("not tested here: PyPy's text (no C compiler)")
        program = os.path.join(self.folder, "pypy")
        subprocess.run([compiler, "-x", "c", "-o", program, "-"], input=PYPY, check=True)
        with support.plain_target(program) as target:
            for options in ((), ("--wait", "3600")):
                result = pysample("dump", target.pid, *options)
                self.assertEqual(result.status, 3, result)
                self.assertIn("runs PyPy, which is not CPython", result.stderr)

    def test_it_ends_while_it_is_waited_for(self):
        with support.plain_target("sleep", "60") as target:
            process = support.start_pysample("dump", target.pid, "--wait", "60")
            support.wait_until(lambda: is_waiting(process), "it waits")
            target.kill()
            target.wait()
            result = support.finish(process)
            self.assertEqual(result.status, 5, result)
            self.assertIn("%d ended before the first sample" % target.pid, result.stderr)

    def test_a_signal_ends_it(self):
        with support.plain_target("sleep", "60") as target:
            process = support.start_pysample("attach", target.pid, "--wait", "60")
            support.wait_until(lambda: is_waiting(process), "it waits")
            result = support.end_by_signal(process)
            self.assertEqual(result.status, 5, result)
            self.assertIn("stopped before the first sample", result.stderr)


class Fork(LifecycleTestCase):
    def test_the_parent_alone_is_sampled(self):
        def attempt():
            with support.python_target(support.newest_interpreter(), "forks") as target:
                result = self.attach(target.pid, "-d", "0.5", "-r", "2k")
                self.assertTrue(target.runs())
            self.assertFalse([stack for stack in result.stacks if "in_child" in names(stack)])
            self.assertLessEqual({names(stack)[0] for stack in result.stacks}, {"<module>"})
            return result

        self.until_seen(attempt, "in_parent")


# Kills children at random moments of their start: some of another program, some forked.
DYING_CHILDREN = """\
import os, random, subprocess, sys, time
moments = random.Random(1)
for i in range(250):
    child = subprocess.Popen([sys.executable, "-S", "-E", "-c", "pass"])
    time.sleep(moments.uniform(0, 0.03))
    child.kill()
    child.wait()
    pid = os.fork()
    while not pid:
        pass
    time.sleep(moments.uniform(0, 0.003))
    os.kill(pid, 9)
    os.waitpid(pid, 0)
"""


class DyingChildren(LifecycleTestCase):
    def test_the_run_goes_on(self):
        result = pysample("run", "-s", "-r", "1000", "-o", self.profile + ".pysample", "--",
                          sys.executable, "-c", DYING_CHILDREN)
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("sampling ended early", result.stderr)


@support.per_layout
class Stopped(LifecycleTestCase):
    quick_on = ("3.11",)
    sleeps = True

    def test_it_stays_stopped(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            os.kill(target.pid, signal.SIGSTOP)
            support.wait_until(lambda: target.state() == "T", "the target is stopped")
            for args in (["dump"], ["doctor"]):
                self.assertEqual(pysample(*args, target.pid).status, 0)
                self.assertEqual(target.state(), "T")
            self.assert_truth(target.pid, target.report["threads"])
            self.assertEqual(target.state(), "T")
            os.kill(target.pid, signal.SIGCONT)


class Killed(LifecycleTestCase):
    def test_at_any_moment(self):
        interpreter = support.newest_interpreter()
        path = os.path.join(self.folder, "profile")
        moments = random.Random(1)
        for i in range(30):
            with support.python_target(interpreter, "callheavy", 50) as target:
                process = support.start_pysample("attach", target.pid, "-r", "max",
                                                 *support.COLLAPSED, "-o", path)
                time.sleep(moments.uniform(0, 0.1))
                target.process.kill()
                target.process.wait()
                result = support.finish(process)
            with self.subTest(i, result=result):
                if result.status == 0:
                    self.assertRegex(result.stderr, r"the process has ended; [1-9]")
                    self.assertTrue(parse_collapsed(support.read(path)))
                elif result.status == 5:
                    self.assertRegex(result.stderr, "ended before the first sample|could be proven")
                else:  # ended before it was opened
                    self.assertEqual(result.status, 1)
                    self.assertRegex(result.stderr, "no process |has just ended")


# Runs as the first process of a PID namespace. A Python is sampled and killed, and its id is
# reused at once. Prints how pysample ended.
REUSE = """\
import json, os, subprocess, sys, time
pysample, python, busy, alternating, out = sys.argv[1:]
victim = subprocess.Popen([python, busy], stdout=subprocess.PIPE)
victim.stdout.readline()
sampler = subprocess.Popen([pysample, "attach", str(victim.pid), "-r", "max", "-f", "collapsed",
                            "-o", out], stderr=subprocess.PIPE, text=True)
time.sleep(0.5)
victim.kill()
victim.wait()
with open("/proc/sys/kernel/ns_last_pid", "w") as file:
    file.write(str(victim.pid - 1))
other = subprocess.Popen([python, alternating], stdout=subprocess.PIPE)
other.stdout.readline()
stderr = sampler.communicate(timeout=50)[1]
print(json.dumps([victim.pid, other.pid, sampler.returncode, stderr, other.poll()]), flush=True)
other.kill()
"""


@unittest.skipIf(os.geteuid() != 0, "needs root: a PID namespace")
class IdThatIsUsedAgain(LifecycleTestCase):
    def test_the_other_process_is_not_followed(self):
        python = interpreters_without_root()[0].path
        out = os.path.join(self.folder, "profile")
        targets = [os.path.join(support.TARGETS, name) for name in ("busy.py", "alternating.py")]
        for wrapper in ([], support.FIXED_ADDRESSES):
            command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--",
                       *wrapper, sys.executable, "-c", REUSE, support.PYSAMPLE, python,
                       *targets, out]
            with self.subTest(wrapper=wrapper):
                support.wait_until(lambda command=command: self.ends(command),
                                   "the first process is seen")
                self.assertTrue(parse_collapsed(support.read(out)))

    def ends(self, command):
        """Returns False if the process ended before anything was proven."""
        run = subprocess.run(command, capture_output=True, text=True, timeout=support.PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        victim, other, status, stderr, other_status = json.loads(run.stdout)
        self.assertEqual(victim, other, "the id was not used again")
        self.assertIsNone(other_status)
        if status == 5:
            self.assertRegex(stderr, "ended before the first sample|could be proven")
            return False
        self.assertEqual(status, 0, stderr)
        self.assertIn("the process has ended; ", stderr)
        return True


class WithoutTheCallOnce(LifecycleTestCase):
    def test_a_target_that_works(self):
        wrapper = [*support.FORBID_CALL, "process_vm_readv", "EPERM"]
        def attempt():
            with support.python_target(support.newest_interpreter(), "execs_itself") as target:
                return self.attach_and_signal(target, wrapper=wrapper)

        result = self.until_seen(attempt, "first", "second")
        self.assertRegex(result.stderr, "followed into .*the process has ended; ")


@support.per_layout
class WithoutTheCall(LifecycleTestCase):
    """A seccomp filter forbids process_vm_readv, or hides it."""

    quick_on = ("3.15",)

    def test_everything_agrees_with_the_truth(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            truths = target.report["threads"]
            for error in ("EPERM", "ENOSYS"):
                wrapper = [*support.FORBID_CALL, "process_vm_readv", error]
                with self.subTest(error):
                    result = pysample("dump", target.pid, "--json", wrapper=wrapper)
                    self.assertEqual((result.status, result.stderr), (0, ""))
                    stacks = map(support.dumped_frames, json.loads(result.stdout)["threads"])
                    self.assertCountEqual(stacks, map(support.expected_frames, truths))
                    self.check_attach(target, truths, wrapper)
                    result = pysample("doctor", target.pid, wrapper=wrapper)
                    self.assertEqual(result.status, 0, result)
                    self.assertRegex(result.stdout, r"\nmemory +can be read through /proc/PID/mem")

    def check_attach(self, target, truths, wrapper):
        result = self.assert_truth(target.pid, truths, "-v", wrapper=wrapper)
        self.assertIn("read through /proc/PID/mem", result.stderr)


if __name__ == "__main__":
    unittest.main()
