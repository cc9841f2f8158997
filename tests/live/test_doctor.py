# SPDX-License-Identifier: MIT
"""`pysample doctor`: whether a process can be read, and what helps if not."""
import os
import re
import subprocess
import unittest

import support
from support import per_interpreter, pysample
from test_matrix import NobodysInterpreter


def found(result, heading):
    (line,) = re.findall("(?m)^" + heading + " +(.*)$", result.stdout)
    return line


def check_c_frames(test, pid, run):
    """doctor says about C frames what attach says when it begins."""
    doctor = run("doctor", pid)
    test.assertEqual(doctor.status, 0, doctor)
    attach = support.run_with_samples(lambda: run("attach", "-n", "--kernel", "-d", "100ms", "-o",
                                                  "/dev/null", pid))
    why = re.search("no C frames for running threads: (.*)", attach.stderr)
    user_only = ", user CPU only" if "user CPU only" in attach.stderr else ""
    test.assertEqual(found(doctor, "C frames"), "for waiting threads only: " + why.group(1)
                     if why else "available%s: attach -n" % user_only)
    why = re.search("no kernel frames: (.*)", attach.stderr)
    test.assertEqual(found(doctor, "kernel"), "no frames: " + why.group(1)
                     if why else "available: attach -n --kernel")


class Instant(unittest.TestCase):
    """How looks are proven, and how soon they begin."""

    def test_proofs(self):
        without_rseq = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
        without_perf = [*support.FORBID_CALL, "perf_event_open", "EPERM"]
        rseq = ("rseq",) if os.uname().machine == "x86_64" else ()
        for environment, wrapper, words in (
                ({}, (), (*rseq, "perf_event_open", "schedstat")),
                (without_rseq, (), ("perf_event_open", "schedstat")),
                (without_rseq, without_perf, ("schedstat",))):
            with self.subTest(words), support.python_target(
                    support.newest_interpreter(), "busy", environment=environment) as target:
                result = pysample("doctor", target.pid, wrapper=wrapper)
            self.assertEqual(found(result, "instant"), "proven by " + ", ".join(words))

    @unittest.skipUnless(os.geteuid() == 0, "only root can have a better nice value")
    def test_a_better_nice_value(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            equal = found(pysample("doctor", target.pid), "preemption")
            os.setpriority(os.PRIO_PROCESS, target.pid,
                           os.getpriority(os.PRIO_PROCESS, 0) - 1)
            better = found(pysample("doctor", target.pid), "preemption")
        self.assertNotIn("nice", equal)
        self.assertIn("thread %d has precedence over pysample by its nice value" % target.pid, better)

    @unittest.skipUnless(os.geteuid() == 0, "only root can have a real-time policy")
    def test_a_real_time_policy(self):
        with support.python_target(support.newest_interpreter(), "sleeps_in_c") as target:
            os.sched_setscheduler(target.pid, os.SCHED_RR, os.sched_param(2))
            result = pysample("doctor", target.pid, wrapper=support.WITHOUT_BPF)
        self.assertIn("chrt -p %d" % target.pid, found(result, "preemption"))
        self.assertIn("only approximately", found(result, "verdict"))

    def test_cpus_outside_our_affinity_mask(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("there is only one CPU")
        with support.python_target(support.newest_interpreter(), "busy") as target:
            for tid in os.listdir("/proc/%d/task" % target.pid):
                os.sched_setaffinity(int(tid), {cpus[0]})
            result = pysample("doctor", target.pid, wrapper=[
                "taskset", "-c", str(cpus[1]), *support.WITHOUT_BPF])
        self.assertIn("taskset -cp %d" % target.pid, found(result, "preemption"))
        self.assertEqual((result.status, found(result, "verdict")),
                         (0, "it can be sampled, but only approximately: pysample attach %d"
                          % target.pid))


@per_interpreter
class Healthy(unittest.TestCase):
    def test_says_what_it_found(self):
        with support.python_target(self.interpreter, "busy") as target:
            result = pysample("doctor", target.pid)
            self.assertEqual(result.status, 0, result)
            self.assertIn(str(target.pid), result.stdout)
            self.assertIn(self.interpreter.version, result.stdout)
            self.assertRegex(result.stdout, r"\nthreads +3 in 1 interpreter, ")
            self.assertEqual(self.nr_stacks(result), 3, result)

    def test_c_frames(self):
        with support.python_target(self.interpreter, "busy") as target:
            check_c_frames(self, target.pid, pysample)

    def test_parked_threads_are_proven(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            result = pysample("doctor", target.pid)
            nr_threads = len(target.report["threads"])
            self.assertEqual(result.status, 0, result)
            self.assertRegex(result.stdout, r"\nthreads +%d in 1 interpreter, %d stacks proven\n"
                             % (nr_threads, nr_threads))

    @staticmethod
    def nr_stacks(result):
        """The number of stacks, proven or not."""
        counts = re.findall(r"(\d+)(?= stacks? proven| could )", result.stdout)
        return sum(map(int, counts))

    def test_threads_that_come_and_go(self):
        with support.python_target(self.interpreter, "thread_churn") as target:
            for _ in range(5):
                result = pysample("doctor", target.pid)
                self.assertEqual(result.status, 0, result)

    def test_main_thread_has_ended(self):
        with support.ended_main_thread_target(self.interpreter) as target:
            result = pysample("doctor", target.pid)
            self.assertEqual(result.status, 0, result)
            self.assertIn("it can be sampled", result.stdout)

    @unittest.skipIf(os.geteuid() != 0, "needs root: a PID namespace")
    def test_in_a_container(self):
        with support.python_target(self.interpreter, "busy",
                                   wrapper=support.IN_A_CONTAINER) as target:
            result = pysample("doctor", support.child_of(target.pid))
            self.assertEqual(result.status, 0, result)
            self.assertIn(self.interpreter.version, result.stdout)
            self.assertRegex(result.stdout, "(?i)namespace|container")


class OfAnotherUser(unittest.TestCase):
    @unittest.skipIf(os.geteuid() != 0, "needs root: another user")
    def test_c_frames(self):
        inside = [one for one in support.tested_interpreters() if one.root]
        if not inside:
            self.skipTest("not tested here: scripts/testbed was not run")
        interpreter = NobodysInterpreter(**vars(max(inside, key=support.version_key)))
        with support.python_target(interpreter, "busy") as target:
            check_c_frames(self, target.pid, support.pysample_as_nobody)


class Unhealthy(unittest.TestCase):
    def test_not_python(self):
        with support.plain_target("sleep", "60") as target:
            result = pysample("doctor", target.pid)
            self.assertEqual(result.status, 3, result)
            self.assertRegex(result.stdout + result.stderr, "(?i)python")

    def test_kernel_thread(self):
        pid = support.kernel_thread()
        if not pid:
            self.skipTest("no kernel thread is visible: a PID namespace")
        result = pysample("doctor", pid)
        self.assertEqual(result.status, 3, result)
        self.assertRegex(result.stdout, r"\nmemory +none: a kernel thread\n")
        self.assertRegex(result.stdout, r"\nverdict +[^\n]*kernel thread[^\n]*\n\Z")

    def test_no_such_process(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        result = pysample("doctor", gone.pid)
        self.assertEqual(result.status, 1, result)
        self.assertIn(str(gone.pid), result.stdout + result.stderr)

    def test_versions_that_are_not_supported(self):
        for interpreter in support.refused_interpreters():
            with self.subTest(version=interpreter.version):
                command = [*interpreter.command(), "-c", "import time; time.sleep(60)"]
                with support.plain_target(*command) as target:
                    result = pysample("doctor", target.pid)
                    self.assertEqual(result.status, 3, result)
                    self.assertRegex(result.stdout + result.stderr, "(?i)python")

    @unittest.skipIf(os.geteuid() != 0, "needs root: another user's process")
    def test_another_users_process(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            result = support.pysample_as_nobody("doctor", target.pid)
            self.assertEqual(result.status, 4, result)
            self.assertRegex(result.stdout + result.stderr, "CAP_SYS_PTRACE|sudo|root")


if __name__ == "__main__":
    unittest.main()
